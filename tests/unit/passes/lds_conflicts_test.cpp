// Operands of AMD's matrix instructions in LDS: every bank of every access of the compiled loop is counted, lane by lane.
// Loads, and stores of 16 bytes, meet in no bank.
#include "random_function.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/passes/Pipelines.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::testing;

namespace {

struct Machine {
  const char *target;
  int lanes;
  unsigned banks;
  std::vector<std::vector<unsigned>> wideLoads; ///< lanes served at once in 16-byte loads; empty: consecutive ones
};

/// AMD's published groups, shifted over all lanes.
std::vector<std::vector<unsigned>> shifted(std::vector<unsigned> group, std::initializer_list<unsigned> by) {
  std::vector<std::vector<unsigned>> all;
  for (unsigned half : {0u, 32u})
    for (unsigned x : by) {
      auto &g = all.emplace_back();
      for (unsigned lane : group)
        g.push_back((lane ^ x) + half);
    }
  return all;
}

const Machine machines[] = {
    {"hip:gfx90a", 64, 32, shifted({0, 1, 2, 3, 20, 21, 22, 23}, {0, 4, 8, 12})},
    {"hip:gfx942", 64, 32, shifted({0, 1, 2, 3, 20, 21, 22, 23}, {0, 4, 8, 12})},
    {"hip:gfx950", 64, 64, shifted({0, 1, 2, 3, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27}, {0, 4})},
    {"hip:gfx1100", 32, 32, {}},
    {"hip:gfx1201", 32, 32, {}},
};

struct Access {
  unsigned bytes = 0; ///< of a lane
  unsigned worst = 0; ///< accesses of one bank by the lanes served at once, 1 is the best there is
};

/// Takes the access apart as the hardware sees it: the widest vectors of registers that lie together, one phase of lanes
/// after the other.
Access simulate(const Machine &machine, RankedTensorType tile, ttg::MemDescType buffer, bool load) {
  unsigned bytes = tile.getElementType().getIntOrFloatBitWidth() / 8;
  LinearLayout layout = ttg::toLinearLayout(tile), memory = ttg::toLinearLayout(buffer.getShape(), buffer.getEncoding());
  std::map<uint64_t, uint64_t> offsetOf;
  for (uint64_t o = 0; o < uint64_t(memory.size(HwDim::Offset)); ++o)
    offsetOf.try_emplace(memory.apply({{HwDim::Offset, o}}), o);
  unsigned registers = layout.size(HwDim::Register), lanes = layout.size(HwDim::Lane);
  auto offset = [&](unsigned r, unsigned lane) {
    return offsetOf.at(layout.apply({{HwDim::Register, r}, {HwDim::Lane, lane}}));
  };
  // Registers of lane 0, by place: runs that all lanes have alike.
  std::map<uint64_t, unsigned> at;
  for (unsigned r = 0; r < registers; ++r)
    at[offset(r, 0)] = r;
  unsigned width = 1;
  auto together = [&](unsigned w) {
    for (auto [start, r] : at) {
      if (start % w)
        continue;
      for (unsigned i = 1; i < w; ++i) {
        auto next = at.find(start + i);
        if (next == at.end())
          return false;
        for (unsigned lane = 0; lane < lanes; ++lane)
          if (offset(next->second, lane) != offset(r, lane) + i || offset(r, lane) % w)
            return false;
      }
    }
    return at.size() % w == 0;
  };
  while (width * bytes < 16 && together(2 * width))
    width *= 2;
  Access result{width * bytes, 0};
  std::vector<std::vector<unsigned>> phases;
  if (load && result.bytes == 16 && !machine.wideLoads.empty()) {
    phases = machine.wideLoads;
  } else {
    unsigned perPhase = std::min(lanes, machine.banks * 4 / std::max(4u, result.bytes));
    for (unsigned lane = 0; lane < lanes; ++lane) {
      if (lane % perPhase == 0)
        phases.emplace_back();
      phases.back().push_back(lane);
    }
  }
  for (auto [start, r] : at) {
    if (start % width)
      continue;
    for (auto &phase : phases) {
      std::map<unsigned, std::set<uint64_t>> words; // of each bank
      for (unsigned lane : phase)
        for (uint64_t byte = offset(r, lane) * bytes, end = byte + result.bytes; byte < end; byte += 4)
          words[byte / 4 % machine.banks].insert(byte / 4);
      for (auto &[bank, distinct] : words)
        result.worst = std::max<unsigned>(result.worst, distinct.size());
    }
  }
  return result;
}

/// A loop over k of one product, A along k, B along k or along n.
std::string product(int m, int n, int k, std::string type, std::string sum, bool bAlongK) {
  auto fmt = [](std::string text, std::map<std::string, std::string> values) {
    for (auto &[key, value] : values)
      for (size_t at; (at = text.find("$" + key + "$")) != std::string::npos;)
        text.replace(at, key.size() + 2, value);
    return text;
  };
  bool integer = type == "i8";
  return fmt(R"(
tt.func public @f(%a: !tt.ptr<$t$> {tt.divisibility = 16 : i32}, %b: !tt.ptr<$t$> {tt.divisibility = 16 : i32}, %c: !tt.ptr<$s$> {tt.divisibility = 16 : i32}, %n: i32, %ld: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %step = arith.constant $k$ : i32
  %zero = arith.constant dense<$z$> : tensor<$m$x$n$x$s$>
  %rm = tt.make_range {start = 0 : i32, end = $m$ : i32} : tensor<$m$xi32>
  %rn = tt.make_range {start = 0 : i32, end = $n$ : i32} : tensor<$n$xi32>
  %rk = tt.make_range {start = 0 : i32, end = $k$ : i32} : tensor<$k$xi32>
  %rmc = tt.expand_dims %rm {axis = 1 : i32} : tensor<$m$xi32> -> tensor<$m$x1xi32>
  %rnr = tt.expand_dims %rn {axis = 0 : i32} : tensor<$n$xi32> -> tensor<1x$n$xi32>
  %rkr = tt.expand_dims %rk {axis = 0 : i32} : tensor<$k$xi32> -> tensor<1x$k$xi32>
  %rkc = tt.expand_dims %rk {axis = 1 : i32} : tensor<$k$xi32> -> tensor<$k$x1xi32>
  %ldm = tt.splat %ld : i32 -> tensor<$m$x1xi32>
  %am = arith.muli %rmc, %ldm : tensor<$m$x1xi32>
  %amb = tt.broadcast %am : tensor<$m$x1xi32> -> tensor<$m$x$k$xi32>
  %akb = tt.broadcast %rkr : tensor<1x$k$xi32> -> tensor<$m$x$k$xi32>
  %ao = arith.addi %amb, %akb : tensor<$m$x$k$xi32>
  %as = tt.splat %a : !tt.ptr<$t$> -> tensor<$m$x$k$x!tt.ptr<$t$>>
  %ap0 = tt.addptr %as, %ao : tensor<$m$x$k$x!tt.ptr<$t$>>, tensor<$m$x$k$xi32>
  %ldk = tt.splat %ld : i32 -> tensor<$bs$xi32>
  %bm = arith.muli $bi$, %ldk : tensor<$bs$xi32>
  %bmb = tt.broadcast %bm : tensor<$bs$xi32> -> tensor<$k$x$n$xi32>
  %bnb = tt.broadcast $bj$ -> tensor<$k$x$n$xi32>
  %bo = arith.addi %bmb, %bnb : tensor<$k$x$n$xi32>
  %bs = tt.splat %b : !tt.ptr<$t$> -> tensor<$k$x$n$x!tt.ptr<$t$>>
  %bp0 = tt.addptr %bs, %bo : tensor<$k$x$n$x!tt.ptr<$t$>>, tensor<$k$x$n$xi32>
  %sa = tt.splat %step : i32 -> tensor<$m$x$k$xi32>
  %sb0 = $sb$
  %sb = tt.splat %sb0 : i32 -> tensor<$k$x$n$xi32>
  %r:3 = scf.for %i = %c0 to %n step %step iter_args(%acc = %zero, %ap = %ap0, %bp = %bp0) -> (tensor<$m$x$n$x$s$>, tensor<$m$x$k$x!tt.ptr<$t$>>, tensor<$k$x$n$x!tt.ptr<$t$>>) : i32 {
    %x = tt.load %ap : tensor<$m$x$k$x!tt.ptr<$t$>>
    %y = tt.load %bp : tensor<$k$x$n$x!tt.ptr<$t$>>
    %d = tt.dot %x, %y, %acc : tensor<$m$x$k$x$t$> * tensor<$k$x$n$x$t$> -> tensor<$m$x$n$x$s$>
    %an = tt.addptr %ap, %sa : tensor<$m$x$k$x!tt.ptr<$t$>>, tensor<$m$x$k$xi32>
    %bn = tt.addptr %bp, %sb : tensor<$k$x$n$x!tt.ptr<$t$>>, tensor<$k$x$n$xi32>
    scf.yield %d, %an, %bn : tensor<$m$x$n$x$s$>, tensor<$m$x$k$x!tt.ptr<$t$>>, tensor<$k$x$n$x!tt.ptr<$t$>>
  }
  %cm = tt.broadcast %am0 : tensor<$m$x1xi32> -> tensor<$m$x$n$xi32>
  %cn = tt.broadcast %rnr : tensor<1x$n$xi32> -> tensor<$m$x$n$xi32>
  %co = arith.addi %cm, %cn : tensor<$m$x$n$xi32>
  %cs = tt.splat %c : !tt.ptr<$s$> -> tensor<$m$x$n$x!tt.ptr<$s$>>
  %cp = tt.addptr %cs, %co : tensor<$m$x$n$x!tt.ptr<$s$>>, tensor<$m$x$n$xi32>
  tt.store %cp, %r#0 : tensor<$m$x$n$x!tt.ptr<$s$>>
  tt.return
})",
             {{"m", std::to_string(m)},
              {"n", std::to_string(n)},
              {"k", std::to_string(k)},
              {"t", type},
              {"s", sum},
              {"z", integer ? "0" : "0.0"},
              {"bs", bAlongK ? "1x" + std::to_string(n) : std::to_string(k) + "x1"},
              {"bi", bAlongK ? "%rnr" : "%rkc"},
              {"bj", bAlongK ? "%rkc : tensor<" + std::to_string(k) + "x1xi32>" : "%rnr : tensor<1x" + std::to_string(n) + "xi32>"},
              {"sb", bAlongK ? "arith.addi %step, %c0 : i32" : "arith.muli %step, %ld : i32"},
              {"am0", "am"}});
}

} // namespace

TEST_CASE("operands of matrix cores are loaded from LDS, and stored 16 bytes at once, without bank conflicts") {
  auto context = makeContext();
  struct Tile {
    int m, n, k;
  };
  struct Types {
    const char *type, *sum;
    unsigned bytes;
  };
  int checked = 0;
  for (const Machine &machine : machines)
    for (Types types : {Types{"f16", "f32", 2}, Types{"i8", "i32", 1}, Types{"f32", "f32", 4}})
      for (Tile tile : {Tile{128, 128, 64}, Tile{64, 64, 64}, Tile{128, 128, 32}, Tile{256, 64, 64}, Tile{32, 64, 128}})
        for (bool bAlongK : {true, false}) {
          if (std::string(types.type) == "f32" && machine.lanes == 32)
            continue; // multiply-add
          std::string text = product(tile.m, tile.n, tile.k, types.type, types.sum, bAlongK);
          for (size_t at; (at = text.find("%am0")) != std::string::npos;)
            text.replace(at, 4, "%am");
          auto module = parseSourceString<ModuleOp>(text, context.get());
          REQUIRE(module);
          PassManager pm(context.get());
          buildTtirPipeline(pm);
          buildTtgirPipeline(pm, {.numWarps = 4, .threadsPerWarp = machine.lanes, .target = machine.target, .numStages = 2});
          REQUIRE(succeeded(pm.run(*module)));
          CAPTURE(std::string(machine.target));
          CAPTURE(std::string(types.type));
          CAPTURE(tile.m);
          CAPTURE(tile.n);
          CAPTURE(tile.k);
          CAPTURE(bAlongK);
          int dots = 0;
          module->walk([&](Operation *op) {
            dots += isa<tt::DotOp>(op);
            auto look = [&](RankedTensorType type, ttg::MemDescType buffer, bool load) {
              // A part of a buffer is read like the whole: its first part is simulated.
              auto whole = ttg::MemDescType::get(buffer.getAllocShape().take_back(2), buffer.getElementType(),
                                                 buffer.getEncoding(), buffer.getMemorySpace());
              auto tileType = type;
              if (type.getShape() != whole.getShape())
                tileType = RankedTensorType::get(whole.getShape(), type.getElementType(), type.getEncoding());
              Access access = simulate(machine, tileType, whole, load);
              CAPTURE(load);
              CAPTURE(access.bytes);
              // What lies along k is read 16 bytes at once, and so is what lanes had turned round in registers. gfx950 reads
              // 16-bit operands against k by transposing loads, 8 bytes a lane; bytes against k are read one by one.
              bool transposing = std::string(machine.target) == "hip:gfx950" && types.bytes == 2;
              if (load && transposing && !bAlongK && access.bytes < 16)
                return;
              if (load && access.bytes < 4)
                return;
              // Narrower stores may meet where that makes loads wide: they are fewer.
              CHECK(access.worst <= (load || access.bytes == 16 ? 1u : 4u));
              if (load && (bAlongK || (types.bytes > 1 && !transposing)))
                CHECK(access.bytes == 16);
              ++checked;
            };
            if (auto load = dyn_cast<ttg::LocalLoadOp>(op))
              look(cast<RankedTensorType>(load.getType()), load.getSrc().getType(), true);
            if (auto store = dyn_cast<ttg::LocalStoreOp>(op))
              look(cast<RankedTensorType>(store.getSrc().getType()), store.getDst().getType(), false);
          });
          CHECK(dots > 0);
        }
  CHECK(checked > 300);
}
