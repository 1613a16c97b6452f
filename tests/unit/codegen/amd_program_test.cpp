// Whole kernels as AMD's GPUs get them, executed from their LLVM IR by all lanes of several warps: products through LDS
// on MFMA and WMMA, with copies in flight on gfx950, sums over a program, transposition.
#include <doctest/doctest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "amd_machine.h"
#include "kernel_text.h"

using namespace tessera;
using namespace tessera::test;

namespace {

compiled_kernel build(const std::string &text, const std::string &arch, int warps, int stages = 2) {
  ir_module module = parse_ir(text, "kernel.ttir");
  return compile(module, parse_target("hip:" + arch), {.num_warps = warps, .num_stages = stages}, "llir");
}

// C = A * B for programs (x, y), with every edge masked.
const char *const product = R"(
tt.func public @product(%a: !tt.ptr<$T> {tt.divisibility = 16 : i32$HINT}, %b: !tt.ptr<$T> {tt.divisibility = 16 : i32$HINT},
                        %c: !tt.ptr<$C> {tt.divisibility = 16 : i32}, %m: i32, %n: i32$SIZE, %k: i32$SIZE, %lda: i32 {tt.divisibility = 16 : i32},
                        %ldb: i32 {tt.divisibility = 16 : i32}, %ldc: i32 {tt.divisibility = 16 : i32}) {
  %cm = arith.constant $M : i32
  %cn = arith.constant $N : i32
  %ck = arith.constant $K : i32
  %c0 = arith.constant 0 : i32
  %px = tt.get_program_id x : i32
  %py = tt.get_program_id y : i32
  %m0 = arith.muli %px, %cm : i32
  %n0 = arith.muli %py, %cn : i32
  %rm = tt.make_range {start = 0 : i32, end = $M : i32} : tensor<$Mxi32>
  %rn = tt.make_range {start = 0 : i32, end = $N : i32} : tensor<$Nxi32>
  %rk = tt.make_range {start = 0 : i32, end = $K : i32} : tensor<$Kxi32>
  %sm = tt.splat %m0 : i32 -> tensor<$Mxi32>
  %sn = tt.splat %n0 : i32 -> tensor<$Nxi32>
  %im1 = arith.addi %sm, %rm : tensor<$Mxi32>
  %in1 = arith.addi %sn, %rn : tensor<$Nxi32>
  %im = tt.expand_dims %im1 {axis = 1 : i32} : tensor<$Mxi32> -> tensor<$Mx1xi32>
  %in = tt.expand_dims %in1 {axis = 0 : i32} : tensor<$Nxi32> -> tensor<1x$Nxi32>
  %mm = tt.splat %m : i32 -> tensor<$Mx1xi32>
  %nn = tt.splat %n : i32 -> tensor<1x$Nxi32>
  %inM = arith.cmpi slt, %im, %mm : tensor<$Mx1xi32>
  %inN = arith.cmpi slt, %in, %nn : tensor<1x$Nxi32>
  %inMA = tt.broadcast %inM : tensor<$Mx1xi1> -> tensor<$Mx$Kxi1>
  %inNB = tt.broadcast %inN : tensor<1x$Nxi1> -> tensor<$Kx$Nxi1>
  %la = tt.splat %lda : i32 -> tensor<$Mx1xi32>
  %rowA = arith.muli %im, %la : tensor<$Mx1xi32>
  %rowAB = tt.broadcast %rowA : tensor<$Mx1xi32> -> tensor<$Mx$Kxi32>
  %as = tt.splat %a : !tt.ptr<$T> -> tensor<$Mx$Kx!tt.ptr<$T>>
  %bs = tt.splat %b : !tt.ptr<$T> -> tensor<$Kx$Nx!tt.ptr<$T>>
  %zero = arith.constant dense<$Z> : tensor<$Mx$Nx$C>
  %kk = tt.splat %k : i32 -> tensor<$Kxi32>
  %sum = scf.for %at = %c0 to %k step %ck iter_args(%acc = %zero) -> (tensor<$Mx$Nx$C>) : i32 {
    %k0 = tt.splat %at : i32 -> tensor<$Kxi32>
    %ik = arith.addi %k0, %rk : tensor<$Kxi32>
    %inK = arith.cmpi slt, %ik, %kk : tensor<$Kxi32>
    %ka1 = tt.expand_dims %ik {axis = 0 : i32} : tensor<$Kxi32> -> tensor<1x$Kxi32>
    %ka = tt.broadcast %ka1 : tensor<1x$Kxi32> -> tensor<$Mx$Kxi32>
    %oa = arith.addi %rowAB, %ka : tensor<$Mx$Kxi32>
    %pa = tt.addptr %as, %oa : tensor<$Mx$Kx!tt.ptr<$T>>, tensor<$Mx$Kxi32>
    %ma1 = tt.expand_dims %inK {axis = 0 : i32} : tensor<$Kxi1> -> tensor<1x$Kxi1>
    %ma2 = tt.broadcast %ma1 : tensor<1x$Kxi1> -> tensor<$Mx$Kxi1>
    %ma = arith.andi %inMA, %ma2 : tensor<$Mx$Kxi1>
    %va = tt.load %pa, %ma : tensor<$Mx$Kx!tt.ptr<$T>>
    %kb = tt.expand_dims %ik {axis = 1 : i32} : tensor<$Kxi32> -> tensor<$Kx1xi32>
    $PLACE
    %pb = tt.addptr %bs, %ob : tensor<$Kx$Nx!tt.ptr<$T>>, tensor<$Kx$Nxi32>
    %mb1 = tt.expand_dims %inK {axis = 1 : i32} : tensor<$Kxi1> -> tensor<$Kx1xi1>
    %mb2 = tt.broadcast %mb1 : tensor<$Kx1xi1> -> tensor<$Kx$Nxi1>
    %mb = arith.andi %inNB, %mb2 : tensor<$Kx$Nxi1>
    %vb = tt.load %pb, %mb : tensor<$Kx$Nx!tt.ptr<$T>>
    %d = tt.dot %va, %vb, %acc : tensor<$Mx$Kx$T> * tensor<$Kx$Nx$T> -> tensor<$Mx$Nx$C>
    scf.yield %d : tensor<$Mx$Nx$C>
  }
  %lc = tt.splat %ldc : i32 -> tensor<$Mx1xi32>
  %rowC = arith.muli %im, %lc : tensor<$Mx1xi32>
  %rowCB = tt.broadcast %rowC : tensor<$Mx1xi32> -> tensor<$Mx$Nxi32>
  %colC = tt.broadcast %in : tensor<1x$Nxi32> -> tensor<$Mx$Nxi32>
  %oc = arith.addi %rowCB, %colC : tensor<$Mx$Nxi32>
  %cs = tt.splat %c : !tt.ptr<$C> -> tensor<$Mx$Nx!tt.ptr<$C>>
  %pc = tt.addptr %cs, %oc : tensor<$Mx$Nx!tt.ptr<$C>>, tensor<$Mx$Nxi32>
  %mc1 = tt.broadcast %inM : tensor<$Mx1xi1> -> tensor<$Mx$Nxi1>
  %mc2 = tt.broadcast %inN : tensor<1x$Nxi1> -> tensor<$Mx$Nxi1>
  %mc = arith.andi %mc1, %mc2 : tensor<$Mx$Nxi1>
  tt.store %pc, %sum, %mc : tensor<$Mx$Nx!tt.ptr<$C>>
  tt.return
})";
const char *const byRows = R"(%lb = tt.splat %ldb : i32 -> tensor<$Kx1xi32>
    %rowB = arith.muli %kb, %lb : tensor<$Kx1xi32>
    %rowBB = tt.broadcast %rowB : tensor<$Kx1xi32> -> tensor<$Kx$Nxi32>
    %colB = tt.broadcast %in : tensor<1x$Nxi32> -> tensor<$Kx$Nxi32>
    %ob = arith.addi %rowBB, %colB : tensor<$Kx$Nxi32>)";
const char *const byColumns = R"(%lb = tt.splat %ldb : i32 -> tensor<1x$Nxi32>
    %colB = arith.muli %in, %lb : tensor<1x$Nxi32>
    %colBB = tt.broadcast %colB : tensor<1x$Nxi32> -> tensor<$Kx$Nxi32>
    %rowB = tt.broadcast %kb : tensor<$Kx1xi32> -> tensor<$Kx$Nxi32>
    %ob = arith.addi %colBB, %rowB : tensor<$Kx$Nxi32>)";

struct Case {
  const char *arch, *type;
  int m, n, k, warps, stages;
  bool columns;      ///< B runs along k
  bool even = false; ///< n and k are multiples of 16: copies to LDS can be masked by 16 bytes
};

unsigned check(const Case &c) {
  const std::string type = c.type, sum = type == "i8" ? "i32" : type == "f64" ? "f64" : "f32";
  CAPTURE(std::string(c.arch));
  CAPTURE(type);
  CAPTURE(c.m);
  CAPTURE(c.n);
  CAPTURE(c.k);
  CAPTURE(c.warps);
  CAPTURE(c.stages);
  CAPTURE(c.columns);
  // The last program's tile is cut at every edge.
  const int M = c.m + c.m / 2 + 1, N = c.n + (c.even ? 16 : 3), K = 2 * c.k + (c.even ? 16 : 5);
  const int lda = (K + 15) / 16 * 16, ldb = ((c.columns ? K : N) + 15) / 16 * 16, ldc = (N + 15) / 16 * 16;
  const unsigned size = bytes_of(type), wide = bytes_of(sum);
  Arrays memory;
  memory.all = {std::vector<unsigned char>((M - 1) * lda * size + K * size),
                std::vector<unsigned char>(((c.columns ? N : K) - 1) * ldb * size + (c.columns ? K : N) * size),
                std::vector<unsigned char>(M * ldc * wide, 0xcd)};
  std::mt19937 random(c.m + c.k);
  auto filled = [&](unsigned array, int rows, int columns, int stride) {
    std::vector<int> values(rows * columns);
    for (int r = 0; r < rows; ++r)
      for (int k = 0; k < columns; ++k) {
        int v = values[r * columns + k] = int(random() % 7) - 3;
        uint64_t bits = encoded(type, v);
        std::memcpy(&memory.all[array][(r * stride + k) * size], &bits, size);
      }
    return values;
  };
  std::vector<int> a = filled(0, M, K, lda), b = filled(1, c.columns ? N : K, c.columns ? K : N, ldb);
  const std::string text = with(product, {{"$PLACE", c.columns ? byColumns : byRows},
                                          {"$T", type},
                                          {"$C", sum},
                                          {"$HINT", c.stages == 3 ? "" : ", tt.pointer_range = 32 : i32"},
                                          {"$SIZE", c.even ? " {tt.divisibility = 16 : i32}" : ""},
                                          {"$Z", sum[0] == 'f' ? "0.0" : "0"},
                                          {"$M", std::to_string(c.m)},
                                          {"$N", std::to_string(c.n)},
                                          {"$K", std::to_string(c.k)}});
  Machine machine(build(text, c.arch, c.warps, c.stages), memory);
  for (auto [x, y] : {std::pair(0, 0), {1, 1}}) {
    machine.run({Arrays::addressOf(0), Arrays::addressOf(1), Arrays::addressOf(2), uint64_t(M), uint64_t(N),
                 uint64_t(K), uint64_t(lda), uint64_t(ldb), uint64_t(ldc)},
                x, y);
    unsigned wrong = 0;
    for (int i = x * c.m; i < std::min(M, (x + 1) * c.m); ++i)
      for (int j = y * c.n; j < std::min(ldc, (y + 1) * c.n); ++j) {
        int expected = 0;
        for (int k = 0; k < K && j < N; ++k)
          expected += a[i * K + k] * (c.columns ? b[j * K + k] : b[k * N + j]);
        size_t at = size_t(i) * ldc + j;
        if (j >= N)
          wrong += memory.get<uint32_t>(2, at * wide / 4) != 0xcdcdcdcd; // behind the row
        else
          wrong += expected != (sum == "i32"   ? memory.get<int32_t>(2, at)
                                : sum == "f32" ? memory.get<float>(2, at)
                                               : memory.get<double>(2, at));
      }
    CHECK(wrong == 0);
  }
  CHECK(machine.matrices > 0);
  return machine.copies;
}

} // namespace

TEST_SUITE_BEGIN("gpu"); // as on any host: run once

TEST_CASE("products are right in the code that AMD's GPUs get") {
  const Case cases[] = {
      {"gfx90a", "f16", 32, 32, 16, 4, 2, false},     {"gfx90a", "bf16", 16, 64, 32, 2, 1, true},
      {"gfx90a", "i8", 32, 32, 32, 4, 2, true},       {"gfx90a", "f32", 32, 16, 8, 1, 2, false},
      {"gfx90a", "f64", 16, 16, 8, 2, 2, false},      {"gfx942", "f16", 64, 32, 32, 4, 2, false},
      {"gfx942", "f16", 32, 64, 32, 4, 3, true},      {"gfx942", "bf16", 64, 64, 16, 8, 2, false},
      {"gfx942", "i8", 32, 32, 64, 4, 2, false},      {"gfx942", "f8E4M3FNUZ", 32, 32, 32, 4, 2, true},
      {"gfx942", "f8E5M2", 16, 32, 32, 2, 2, false},  {"gfx942", "f32", 16, 16, 16, 1, 2, true},
      {"gfx1100", "f16", 32, 32, 32, 4, 2, false},    {"gfx1100", "bf16", 32, 64, 16, 2, 2, true},
      {"gfx1100", "i8", 32, 32, 32, 4, 3, false},     {"gfx1100", "f8E4M3FN", 16, 16, 32, 1, 2, true},
      {"gfx1201", "f16", 32, 32, 32, 4, 2, false},    {"gfx1201", "bf16", 64, 32, 16, 8, 1, true},
      {"gfx1201", "i8", 32, 32, 32, 4, 2, false},     {"gfx1201", "f8E4M3FN", 32, 32, 32, 4, 2, true},
      {"gfx1201", "f8E5M2", 16, 64, 16, 2, 3, false},
  };
  for (const Case &c : cases)
    CHECK(check(c) == 0);
}

TEST_CASE("copies to LDS have come when they are read") {
  const Case cases[] = {
      {"gfx950", "f16", 64, 64, 64, 4, 3, true, true},   {"gfx950", "f16", 64, 64, 32, 4, 2, false, true},
      {"gfx950", "bf16", 64, 64, 64, 4, 4, false, true}, {"gfx950", "f8E4M3FN", 64, 64, 128, 4, 2, true, true},
      {"gfx950", "i8", 64, 64, 64, 4, 3, true, true},    {"gfx950", "f8E5M2", 32, 32, 64, 2, 3, false, true},
  };
  for (const Case &c : cases)
    CHECK(check(c) > 0);
  check({"gfx950", "f16", 32, 32, 32, 4, 2, true}); // odd sizes: without copies
}

/// Sums and maxima of a tile of m x n numbers, and the tile turned: a kernel, and what it must give.
static void checkSums(const std::string &arch, int warps, unsigned m, unsigned n, bool turns) {
  const std::string tile = std::to_string(m) + "x" + std::to_string(n) + "x", turned = std::to_string(n) + "x" + std::to_string(m) + "x",
                    row = std::to_string(n) + "x", column = std::to_string(m) + "x";
  auto tensor = [](const std::string &shape, const char *element = "i32") { return "tensor<" + shape + element + ">"; };
  const std::string text = R"(
tt.func public @rows(%x: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<i32>, %z: !tt.ptr<i32>, %t: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %s: !tt.ptr<i32>) {)" +
                           pointers("from", "%x", "i32", m, n, false) + pointers("to", "%t", "i32", n, m, false) +
                           pointers("along", "%y", "i32", n) + pointers("down", "%z", "i32", m) + R"(
  %v = tt.load %fromp : )" + tensor(tile, "!tt.ptr<i32>") +
                           reduction("%a", "%v", 0, "arith.addi", "i32", tensor(tile).c_str(), tensor(row).c_str()) +
                           reduction("%b", "%v", 1, "arith.maxsi", "i32", tensor(tile).c_str(), tensor(column).c_str()) +
                           reduction("%all", "%b", 0, "arith.addi", "i32", tensor(column).c_str(), "i32") + R"(
  tt.store %alongp, %a : )" + tensor(row, "!tt.ptr<i32>") + R"(
  tt.store %downp, %b : )" + tensor(column, "!tt.ptr<i32>") + R"(
  tt.store %s, %all : !tt.ptr<i32>
  %u = tt.trans %v {order = array<i32: 1, 0>} : )" + tensor(tile) + " -> " + tensor(turned) + R"(
  tt.store %top, %u : )" + tensor(turned, "!tt.ptr<i32>") + R"(
  tt.return
})";
  CAPTURE(arch);
  CAPTURE(warps);
  Arrays memory;
  for (unsigned words : {m * n, n, m, m * n, 1u})
    memory.all.emplace_back(4 * words, 0xcd);
  std::mt19937 random(warps);
  for (unsigned char &byte : memory.all[0])
    byte = random();
  const compiled_kernel kernel = build(text, arch, warps);
  CHECK((kernel.find("ttgir")->find("ttg.warp-turns") != std::string::npos) == turns);
  Machine machine(kernel, memory);
  std::vector<uint64_t> args;
  for (unsigned array = 0; array < 5; ++array)
    args.push_back(Arrays::addressOf(array));
  machine.run(args, 0);
  CHECK(machine.barriers > 0);
  unsigned wrong = 0;
  uint32_t total = 0;
  for (unsigned i = 0; i < m; ++i) {
    int32_t most = INT32_MIN;
    for (unsigned j = 0; j < n; ++j) {
      int32_t v = memory.get<int32_t>(0, n * i + j);
      most = std::max(most, v);
      wrong += memory.get<int32_t>(3, m * j + i) != v;
    }
    total += most;
    wrong += memory.get<int32_t>(2, i) != most;
  }
  for (unsigned j = 0; j < n; ++j) {
    uint32_t sum = 0;
    for (unsigned i = 0; i < m; ++i)
      sum += memory.get<uint32_t>(0, n * i + j);
    wrong += memory.get<uint32_t>(1, j) != sum;
  }
  CHECK(wrong == 0);
  CHECK(memory.get<uint32_t>(4, 0) == total);
}

TEST_CASE("sums over a program, along rows and columns, and a tile turned through LDS") {
  for (const char *arch : {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"})
    for (int warps : {1, 2, 4, 8})
      checkSums(arch, warps, 32, 64, /*turns=*/false);
}

TEST_CASE("the same of a tile so wide that each warp does the work of several in turn") {
  for (const char *arch : {"gfx942", "gfx1100", "gfx1250"})
    checkSums(arch, 1, 128, 128, /*turns=*/true);
}

TEST_SUITE_END();
