// Every pass keeps what a function does: random functions store the same before and after the pipelines.
#include "interpreter.h"
#include "random_function.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/passes/Allocation.h"
#include "tessera/passes/Pipelines.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <doctest/doctest.h>

using namespace mlir;
using namespace tessera;
using namespace tessera::testing;

namespace {

std::map<int64_t, int64_t> run(ModuleOp module, ArrayRef<int64_t> args, bool &undefined) {
  Interpreter interpreter;
  interpreter.run(*module.getOps<tt::FuncOp>().begin(), args);
  undefined = interpreter.undefined;
  return interpreter.stored;
}

/// Follows one run and looks for two accesses of the same scratch bytes, one a write, with no barrier between them.
class RaceFinder {
public:
  std::string race;
  void operator()(Operation *op) {
    if (isa<ttg::BarrierOp>(op))
      return accesses.clear();
    unsigned bytes = scratchBytes(op);
    if (bytes == 0)
      return;
    auto offset = allocationOffset(op);
    if (!offset || *offset % kSharedAlignment)
      return fail(op, "has no aligned offset");
    if (*offset + bytes > op->getParentOfType<ModuleOp>()->getAttrOfType<IntegerAttr>(ttg::sharedAttr).getInt())
      return fail(op, "exceeds ttg.shared");
    for (auto [begin, end] : accesses)
      if (begin < *offset + bytes && *offset < end)
        return fail(op, "writes what others may still read");
    accesses = {{*offset, *offset + bytes}}; // its own barrier ends all others' accesses; its reads stay
  }

private:
  std::vector<std::pair<unsigned, unsigned>> accesses;
  void fail(Operation *op, const char *what) { llvm::raw_string_ostream(race) << *op << ' ' << what << '\n'; }
};

std::string print(ModuleOp module) {
  std::string s;
  llvm::raw_string_ostream(s) << module;
  return s;
}

const TtgirOptions machines[] = {
    {.numWarps = 4, .threadsPerWarp = 32},
    {.numWarps = 2, .threadsPerWarp = 2},
    {.numWarps = 1, .threadsPerWarp = 8, .target = "cpu", .wideLanes = true},
    {.numWarps = 8, .threadsPerWarp = 4, .maxVectorBits = 64},
};

} // namespace

TEST_CASE("pipelines keep the meaning of random functions") {
  auto context = makeContext();
  int checked = 0, conversions = 0, barriers = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    auto module = randomFunction(*context, seed);
    std::mt19937 random(seed);
    auto args = randomArguments(random);
    std::string source = print(*module);
    bool undefined = false;
    auto expected = run(*module, args, undefined);
    if (undefined)
      continue; // a pass may drop a division by zero

    PassManager ttir(context.get());
    buildTtirPipeline(ttir);
    REQUIRE_MESSAGE(succeeded(ttir.run(*module)), "seed ", seed);
    CHECK_MESSAGE(run(*module, args, undefined) == expected, "seed ", seed, " after ttir:\n", source, print(*module));

    PassManager ttgir(context.get());
    buildTtgirPipeline(ttgir, machines[seed % std::size(machines)]);
    std::string between = print(*module);
    REQUIRE_MESSAGE(succeeded(ttgir.run(*module)), "seed ", seed, "\n", between);
    bool same = run(*module, args, undefined) == expected;
    CHECK_MESSAGE(same, "seed ", seed, " after ttgir:\n", between, print(*module));
    if (!same)
      return;
    RaceFinder races;
    Interpreter interpreter;
    interpreter.visit = [&](Operation *op) {
      races(op);
      barriers += isa<ttg::BarrierOp>(op);
    };
    interpreter.run(*module->getOps<tt::FuncOp>().begin(), args);
    CHECK_MESSAGE(races.race.empty(), "seed ", seed, ": ", races.race, print(*module));
    module->walk([&](ttg::ConvertLayoutOp) { ++conversions; });
    ++checked;
  }
  CHECK(checked > 200);
  CHECK(barriers > 0);
  MESSAGE(checked, " functions, ", conversions, " conversions left, ", barriers, " barriers passed");
}
