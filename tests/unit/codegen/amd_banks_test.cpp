// How many cycles the accesses of LDS take that the compiler chooses for the operands of products on AMD's GPUs: each
// lane's bytes are placed in banks, by the groups of lanes that AMD publishes.
#include "tessera/ir/LinearLayout.h"
#include "tessera/ir/Module.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "llvm/Support/MathExtras.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <tessera/codegen/compile.h>

using namespace tessera;

namespace {

/// C (128 x 128) = A (128 x K) * B (K x 128) with tiles of `depth` along K; an operand's memory runs along K or across.
std::string product(const char *element, const char *sum, int depth, bool a_along_k, bool b_along_k) {
  return fmt::format(R"(
tt.func public @product(%A: !tt.ptr<{0}> {{tt.divisibility = 16 : i32}}, %B: !tt.ptr<{0}> {{tt.divisibility = 16 : i32}}, %C: !tt.ptr<{1}> {{tt.divisibility = 16 : i32}}, %K: i32 {{tt.divisibility = 16 : i32}}) {{
  %c0 = arith.constant 0 : i32
  %step = arith.constant {2} : i32
  %zero = arith.constant dense<{3}> : tensor<128x128x{1}>
  %m = tt.make_range {{start = 0 : i32, end = 128 : i32}} : tensor<128xi32>
  %k = tt.make_range {{start = 0 : i32, end = {2} : i32}} : tensor<{2}xi32>
  %m1 = tt.expand_dims %m {{axis = 1 : i32}} : tensor<128xi32> -> tensor<128x1xi32>
  %n0 = tt.expand_dims %m {{axis = 0 : i32}} : tensor<128xi32> -> tensor<1x128xi32>
  %k0 = tt.expand_dims %k {{axis = 0 : i32}} : tensor<{2}xi32> -> tensor<1x{2}xi32>
  %k1 = tt.expand_dims %k {{axis = 1 : i32}} : tensor<{2}xi32> -> tensor<{2}x1xi32>
  %am = arith.constant dense<{4}> : tensor<128x1xi32>
  %ak = arith.constant dense<{5}> : tensor<1x{2}xi32>
  %bk = arith.constant dense<{6}> : tensor<{2}x1xi32>
  %bn = arith.constant dense<{7}> : tensor<1x128xi32>
  %am1 = arith.muli %m1, %am : tensor<128x1xi32>
  %ak0 = arith.muli %k0, %ak : tensor<1x{2}xi32>
  %bk1 = arith.muli %k1, %bk : tensor<{2}x1xi32>
  %bn0 = arith.muli %n0, %bn : tensor<1x128xi32>
  %am2 = tt.broadcast %am1 : tensor<128x1xi32> -> tensor<128x{2}xi32>
  %ak2 = tt.broadcast %ak0 : tensor<1x{2}xi32> -> tensor<128x{2}xi32>
  %bk2 = tt.broadcast %bk1 : tensor<{2}x1xi32> -> tensor<{2}x128xi32>
  %bn2 = tt.broadcast %bn0 : tensor<1x128xi32> -> tensor<{2}x128xi32>
  %ai = arith.addi %am2, %ak2 : tensor<128x{2}xi32>
  %bi = arith.addi %bk2, %bn2 : tensor<{2}x128xi32>
  %aa = arith.constant {5} : i32
  %bb = arith.constant {6} : i32
  %d = scf.for %i = %c0 to %K step %step iter_args(%acc = %zero) -> (tensor<128x128x{1}>) : i32 {{
    %ao = arith.muli %i, %aa : i32
    %ap = tt.addptr %A, %ao : !tt.ptr<{0}>, i32
    %as = tt.splat %ap : !tt.ptr<{0}> -> tensor<128x{2}x!tt.ptr<{0}>>
    %aps = tt.addptr %as, %ai : tensor<128x{2}x!tt.ptr<{0}>>, tensor<128x{2}xi32>
    %a = tt.load %aps : tensor<128x{2}x!tt.ptr<{0}>>
    %bo = arith.muli %i, %bb : i32
    %bp = tt.addptr %B, %bo : !tt.ptr<{0}>, i32
    %bs = tt.splat %bp : !tt.ptr<{0}> -> tensor<{2}x128x!tt.ptr<{0}>>
    %bps = tt.addptr %bs, %bi : tensor<{2}x128x!tt.ptr<{0}>>, tensor<{2}x128xi32>
    %b = tt.load %bps : tensor<{2}x128x!tt.ptr<{0}>>
    %next = tt.dot %a, %b, %acc : tensor<128x{2}x{0}> * tensor<{2}x128x{0}> -> tensor<128x128x{1}>
    scf.yield %next : tensor<128x128x{1}>
  }}
  %cm = arith.constant dense<128> : tensor<128x1xi32>
  %cm1 = arith.muli %m1, %cm : tensor<128x1xi32>
  %cm2 = tt.broadcast %cm1 : tensor<128x1xi32> -> tensor<128x128xi32>
  %cn2 = tt.broadcast %n0 : tensor<1x128xi32> -> tensor<128x128xi32>
  %ci = arith.addi %cm2, %cn2 : tensor<128x128xi32>
  %cs = tt.splat %C : !tt.ptr<{1}> -> tensor<128x128x!tt.ptr<{1}>>
  %cp = tt.addptr %cs, %ci : tensor<128x128x!tt.ptr<{1}>>, tensor<128x128xi32>
  tt.store %cp, %d : tensor<128x128x!tt.ptr<{1}>>
  tt.return
}})",
                     element, sum, depth, std::string_view(sum) == "i32" ? "0" : "0.0", a_along_k ? 4096 : 1,
                     a_along_k ? 1 : 128, b_along_k ? 1 : 128, b_along_k ? 4096 : 1);
}

/// Groups of lanes that LDS serves at once, as far as they are known: of 16-byte reads on wavefronts of 64, lanes 0-3
/// go with 20-23, 4-7 with 16-19, 8-11 with 28-31, 12-15 with 24-27 (AMD, "Avoiding LDS bank conflicts on AMD GPUs
/// using CK-Tile"); otherwise neighbours, as many as the banks have words for.
std::vector<std::vector<unsigned>> groups(std::string_view arch, unsigned bytes, bool load) {
  unsigned lanes = arch.starts_with("gfx9") ? 64 : 32, banks = arch == "gfx950" ? 64 : 32;
  unsigned size = std::min(lanes, 4 * banks / std::max(bytes, 4u));
  std::vector<unsigned> order(lanes);
  for (unsigned i = 0; i < lanes; ++i)
    order[i] = i;
  if (load && bytes == 16 && lanes == 64) {
    constexpr unsigned fours[] = {0, 5, 1, 4, 2, 7, 3, 6}, wide[] = {0, 5, 3, 6, 1, 4, 2, 7};
    for (unsigned i = 0; i < lanes; ++i)
      order[i] = i / 32 * 32 + (banks == 64 ? wide : fours)[i / 4 % 8] * 4 + i % 4;
  }
  std::vector<std::vector<unsigned>> result;
  for (unsigned first = 0; first < lanes; first += size)
    result.emplace_back(order.begin() + first, order.begin() + first + size);
  return result;
}

/// Cycles of one access by every lane, and the fewest it could take.
std::pair<unsigned, unsigned> cycles(std::string_view arch, const std::vector<unsigned> &offsets, unsigned bytes,
                                     bool load) {
  unsigned banks = arch == "gfx950" ? 64 : 32, taken = 0, least = 0;
  for (const auto &group : groups(arch, bytes, load)) {
    std::map<unsigned, std::set<unsigned>> words; // of each bank
    for (unsigned lane : group)
      for (unsigned at = offsets[lane] / 4; at < (offsets[lane] + bytes + 3) / 4; ++at)
        words[at % banks].insert(at);
    unsigned most = 0;
    for (auto &[bank, list] : words)
      most = std::max(most, unsigned(list.size()));
    taken += most;
    ++least;
  }
  return {taken, least};
}

struct access_cost {
  unsigned bytes = 0, accesses = 0, taken = 0, least = 0;
};

access_cost cost_of(std::string_view arch, mlir::RankedTensorType tile, ttg::MemDescType buffer, bool load) {
  LinearLayout memory = ttg::allocationLayout(buffer);
  LinearLayout offsets = ttg::toLinearLayout(tile).within(memory.shape()).toMemory(memory);
  unsigned element = tile.getElementTypeBitWidth() / 8;
  auto registers = offsets.bases(HwDim::Register);
  std::vector<unsigned> vector; // register bits within an access
  while (vector.size() < llvm::Log2_32(16 / element)) {
    auto at = llvm::find(registers, uint64_t(1) << vector.size());
    if (at == registers.end())
      break;
    vector.push_back(unsigned(at - registers.begin()));
  }
  access_cost cost{element << vector.size()};
  for (unsigned reg = 0; reg < offsets.size(HwDim::Register); ++reg) {
    if (llvm::any_of(vector, [&](unsigned bit) { return reg >> bit & 1; }))
      continue;
    for (unsigned warp = 0; warp < offsets.size(HwDim::Warp); ++warp) {
      std::vector<unsigned> bytes;
      for (unsigned lane = 0; lane < offsets.size(HwDim::Lane); ++lane)
        bytes.push_back(unsigned(offsets.apply({{HwDim::Register, reg}, {HwDim::Lane, lane}, {HwDim::Warp, warp}})) *
                        element);
      auto [taken, least] = cycles(arch, bytes, cost.bytes, load);
      cost.taken += taken;
      cost.least += least;
      cost.accesses += warp == 0;
    }
  }
  return cost;
}

} // namespace

TEST_CASE("operands in LDS are read in wide accesses without bank conflicts") {
  for (std::string arch : {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"})
    for (auto [element, sum] : {std::pair("f16", "f32"), {"bf16", "f32"}, {"i8", "i32"}})
      for (int depth : {32, 64})
        for (bool along : {true, false}) {
          ir_module given = parse_ir(product(element, sum, depth, true, along), "product.ttir");
          std::string ttgir = *compile(given, parse_target("cpu:emulate=" + arch), {}, "ttgir").find("ttgir");
          ir_module module = parse_ir(ttgir, "product.ttgir");
          unsigned products = 0, accesses = 0;
          module.get().module->walk([&](mlir::Operation *op) {
            products += op->getName().getStringRef() == "tt.dot";
            mlir::RankedTensorType tile;
            ttg::MemDescType buffer;
            bool load = false;
            if (auto read = mlir::dyn_cast<ttg::LocalLoadOp>(op)) {
              tile = mlir::dyn_cast<mlir::RankedTensorType>(read.getResult().getType());
              buffer = read.getSrc().getType();
              load = true;
            } else if (auto write = mlir::dyn_cast<ttg::LocalStoreOp>(op)) {
              tile = mlir::dyn_cast<mlir::RankedTensorType>(write.getSrc().getType());
              buffer = write.getDst().getType();
            }
            if (!tile)
              return;
            access_cost cost = cost_of(arch, tile, buffer, load);
            std::string what = fmt::format("{} {} of depth {}, {} k: {} of {} x {} bytes take {} cycles, at least {}",
                                           arch, element, depth, along ? "along" : "across", load ? "loads" : "stores",
                                           cost.accesses, cost.bytes, cost.taken, cost.least);
            INFO(what);
            ++accesses;
            if (along) { // as it lies
              CHECK(cost.bytes == 16);
              CHECK(cost.taken == cost.least);
            } else { // turned round in registers, by stores, or by loads
              CHECK(cost.taken <= 4 * cost.least);
            }
          });
          CHECK(products > 0);
          CHECK(accesses > 0);
        }
}
