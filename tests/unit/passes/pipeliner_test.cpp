// The software pipeliner keeps what loops do: random loops store the same before and after it, for every number of
// trips, read no address they did not read before, and use shared memory only when it holds what they expect.
#include "interpreter.h"
#include "random_function.h"
#include "random_loop.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/ir/ttng/Ttng.h"
#include "tessera/passes/InFlight.h"
#include "tessera/passes/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <cstdlib>
#include <doctest/doctest.h>

using namespace mlir;
using namespace tessera;
using namespace tessera::testing;

namespace {

constexpr int64_t kData = 1 << 20, kIndex = 1 << 24, kOut = int64_t(1) << 40;

Interpreter run(ModuleOp module, int64_t trips, int64_t out = kOut) {
  Interpreter interpreter;
  interpreter.run(*module.getOps<tt::FuncOp>().begin(), {kData, kIndex, trips, 16, out});
  return interpreter;
}

std::string print(ModuleOp module) {
  std::string s;
  llvm::raw_string_ostream(s) << module;
  return s;
}

} // namespace

OwningOpRef<ModuleOp> pipeline(ModuleOp module, unsigned seed) {
  OwningOpRef<ModuleOp> after(module.clone());
  PassManager passes(module.getContext());
  TtgirAssignLatenciesOptions latencies;
  latencies.numStages = 1 + seed % 5;
  latencies.maxSharedBytes = seed % 4 ? 200000 : 0;
  passes.addPass(createTtgirAssignLatencies(latencies));
  passes.addPass(createTtgirScheduleLoops());
  passes.addPass(createTtgirPipelineLoops());
  if (seed % 3) {
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
  }
  return succeeded(passes.run(*after)) ? std::move(after) : nullptr;
}

TEST_CASE("pipelined loops compute what they did") {
  auto context = makeContext();
  int pipelined = 0, stores = 0, aliased = 0, copies = 0, products = 0, registers = 0;
  unsigned first = 0, count = 400;
  if (const char *seed = std::getenv("TESSERA_LOOP_SEED"))
    first = std::atoi(seed), count = 1;
  for (unsigned seed = first; seed < first + count; ++seed) {
    std::string source = randomLoop(seed);
    auto before = parseSourceString<ModuleOp>(source, context.get());
    REQUIRE_MESSAGE(before, "seed ", seed, "\n", source);
    auto after = pipeline(*before, seed);
    REQUIRE_MESSAGE(after, "seed ", seed, "\n", source);
    for (int64_t trips : {0, 1, 2, 3, 4, 7}) {
      Interpreter expected = run(*before, trips), got = run(*after, trips);
      bool fine = expected.stored == got.stored && got.fault.empty() && expected.fault.empty() &&
                  std::includes(expected.read.begin(), expected.read.end(), got.read.begin(), got.read.end());
      CHECK_MESSAGE(fine, "seed ", seed, " with ", trips, " trips: ", expected.fault, got.fault, source, print(*after));
      if (!fine)
        return;
    }
    int loads = 0; // the prologue has some more
    before->walk([&](tt::LoadOp) { --loads; });
    after->walk([&](Operation *op) {
      loads += isa<tt::LoadOp, ttg::AsyncCopyGlobalToLocalOp>(op);
      copies += isa<ttg::AsyncCopyGlobalToLocalOp>(op);
      products += isa<ttng::WarpGroupDotWaitOp>(op);
      auto dot = dyn_cast<ttng::WarpGroupDotOp>(op);
      registers += dot && dot.getIsAsync() && isa<RankedTensorType>(dot.getA().getType());
      CHECK(!(dot && overwritesOperandInFlight(dot)));
    });
    pipelined += loads > 0;
    after->walk([&](scf::ForOp loop) {
      Block &body = *loop.getBody();
      stores += loads > 0 && body.getOps<scf::ForOp>().empty() && !body.getOps<tt::StoreOp>().empty();
    });
    // What may not be: the loop stores through one argument what it loads through another. This also shows that a load
    // which passes a store is seen.
    for (int64_t same : {kData, kIndex})
      aliased += run(*before, 7, same).stored != run(*after, 7, same).stored;
  }
  MESSAGE(pipelined, " loops pipelined, ", stores, " with stores (", aliased, " wrong with aliases), ", copies,
          " copies, ", products, " waits for products, ", registers, " of them in flight with A in registers");
  if (count > 1) {
    CHECK(pipelined > 200);
    CHECK(stores > 50);
    CHECK(aliased > 8);
    CHECK(copies > 400);
    CHECK(products > 50);
    CHECK(registers > 20);
  }
}

// What the test above would see if the pipeliner were wrong.
TEST_CASE("waits that are too short, and buffers that are too few, are seen") {
  auto context = makeContext();
  struct Fault {
    const char *name;
    std::function<bool(Operation *)> make;
    int made = 0, seen = 0;
  };
  Fault faults[] = {{"one more group in flight",
                     [](Operation *op) {
                       auto wait = dyn_cast<ttg::AsyncWaitOp>(op);
                       if (!wait || !op->getParentOfType<scf::ForOp>())
                         return false;
                       wait.setNum(wait.getNum() + 1);
                       return true;
                     }},
                    {"one more product in flight",
                     [](Operation *op) {
                       auto wait = dyn_cast<ttng::WarpGroupDotWaitOp>(op);
                       if (!wait || wait.getPendings() == 0)
                         return false;
                       wait.setPendings(wait.getPendings() + 1);
                       return true;
                     }},
                    {"no wait behind the loop",
                     [](Operation *op) {
                       auto wait = dyn_cast<ttng::WarpGroupDotWaitOp>(op);
                       if (!wait || wait.getPendings() != 0)
                         return false;
                       op->replaceAllUsesWith(wait.getInputs());
                       return true;
                     }},
                    {"one buffer less",
                     [](Operation *op) {
                       auto wraps = dyn_cast<arith::CmpIOp>(op);
                       if (!wraps || wraps.getPredicate() != arith::CmpIPredicate::sge)
                         return false;
                       auto depth = wraps.getRhs().getDefiningOp<arith::ConstantOp>();
                       int64_t n = cast<IntegerAttr>(depth.getValue()).getInt();
                       OpBuilder b(op);
                       wraps.setOperand(1, arith::ConstantOp::create(b, op->getLoc(), b.getI32IntegerAttr(n - 1)));
                       return true;
                     }},
                    {"masks that hold for iterations that do not exist", [](Operation *op) {
                       auto more = dyn_cast<arith::CmpIOp>(op);
                       if (!more || more.getPredicate() != arith::CmpIPredicate::slt ||
                           !isa<scf::ForOp>(op->getParentOp()) || isa<RankedTensorType>(more.getType()))
                         return false;
                       OpBuilder b(op);
                       more.setOperand(1, arith::ConstantOp::create(b, op->getLoc(), b.getI32IntegerAttr(1000)));
                       return true;
                     }}};
  for (unsigned seed = 1; seed < 200; ++seed) {
    auto before = parseSourceString<ModuleOp>(randomLoop(seed), context.get());
    auto after = pipeline(*before, seed);
    for (Fault &fault : faults) {
      OwningOpRef<ModuleOp> faulty(after->clone());
      bool made = false;
      faulty->walk([&](Operation *op) { made |= fault.make(op); });
      if (!made)
        continue;
      Interpreter expected = run(*before, 7), got = run(*faulty, 7);
      ++fault.made;
      fault.seen += expected.stored != got.stored || !got.fault.empty() ||
                    !std::includes(expected.read.begin(), expected.read.end(), got.read.begin(), got.read.end());
    }
  }
  for (const Fault &fault : faults) {
    MESSAGE(std::string(fault.name), ": seen ", fault.seen, " times of ", fault.made);
    CHECK(fault.made > 10);
    CHECK(fault.seen > fault.made / 2);
  }
}
