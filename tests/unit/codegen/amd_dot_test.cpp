// Products on MFMA and WMMA from ttgir, run by the emulated GPUs: every instruction, operands swapped and not, other
// orders along k, several warps, tiles smaller than an instruction; and what a target lacks, refused at the op.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernel_text.h"

#include <tessera/error.h>

using namespace tessera;
using namespace tessera::test;

namespace {

struct product {
  const char *arch, *element, *sum;
  int version, tile, step; ///< tile x tile x step is the instruction's shape
  int m, n, k, k_width;
  bool transposed = false;
  int warps_m = 1, warps_n = 1;
  const char *precision = "ieee";
  const char *b_memory = "vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]";
};

std::string accumulators(const product &p) {
  bool wmma = std::string_view(p.arch).starts_with("gfx1");
  return fmt::format("#ttg.{}<{{version = {}, {}warpsPerCTA = [{}, {}], instrShape = [{}, {}, {}]{}{}}}>",
                     wmma ? "amd_wmma" : "amd_mfma", p.version,
                     wmma ? fmt::format("isTranspose = {}, ", p.transposed) : "", p.warps_m, p.warps_n, p.tile, p.tile,
                     p.step, wmma ? "" : fmt::format(", isTransposed = {}", p.transposed),
                     std::string_view(p.sum) == "f64" ? ", elementBitWidth = 64" : "");
}

std::string text_of(const product &p) {
  int lanes = int(parse_target(std::string("cpu:emulate=") + p.arch).warp_size()), warps = p.warps_m * p.warps_n;
  return fmt::format(R"(
#a = #ttg.blocked<{{sizePerThread = [1, 4], threadsPerWarp = [{0}, 4], warpsPerCTA = [{1}, 1], order = [1, 0]}}>
#b = #ttg.blocked<{{sizePerThread = [1, 4], threadsPerWarp = [4, {0}], warpsPerCTA = [1, {1}], order = [1, 0]}}>
#acc = {2}
#da = #ttg.dot_op<{{opIdx = 0, parent = #acc, kWidth = {3}}}>
#db = #ttg.dot_op<{{opIdx = 1, parent = #acc, kWidth = {3}}}>
#sa = #ttg.swizzled_shared<{{vec = 4, perPhase = 1, maxPhase = 4, order = [1, 0]}}>
#sb = #ttg.swizzled_shared<{{{15}}}>
#smem = #ttg.shared_memory
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {1} : i32, "ttg.threads-per-warp" = {4} : i32, ttg.target = "hip:{5}"}} {{
  tt.func public @product(%A: !tt.ptr<{6}> {{tt.divisibility = 16 : i32}}, %B: !tt.ptr<{6}> {{tt.divisibility = 16 : i32}}, %C: !tt.ptr<{7}> {{tt.divisibility = 16 : i32}}) {{
{8}{9}{10}
    %av = tt.load %ap : tensor<{11}x{13}x!tt.ptr<{6}>, #a>
    %bv = tt.load %bp : tensor<{13}x{12}x!tt.ptr<{6}>, #b>
    %cv = tt.load %accp : tensor<{11}x{12}x!tt.ptr<{7}>, #acc>
    %am = ttg.local_alloc %av : (tensor<{11}x{13}x{6}, #a>) -> !ttg.memdesc<{11}x{13}x{6}, #sa, #smem>
    %bm = ttg.local_alloc %bv : (tensor<{13}x{12}x{6}, #b>) -> !ttg.memdesc<{13}x{12}x{6}, #sb, #smem>
    %ad = ttg.local_load %am : !ttg.memdesc<{11}x{13}x{6}, #sa, #smem> -> tensor<{11}x{13}x{6}, #da>
    %bd = ttg.local_load %bm : !ttg.memdesc<{13}x{12}x{6}, #sb, #smem> -> tensor<{13}x{12}x{6}, #db>
    %d = tt.dot %ad, %bd, %cv, inputPrecision = {14} : tensor<{11}x{13}x{6}, #da> * tensor<{13}x{12}x{6}, #db> -> tensor<{11}x{12}x{7}, #acc>
    tt.store %accp, %d : tensor<{11}x{12}x!tt.ptr<{7}>, #acc>
    tt.return
  }}
}})",
                     lanes / 4, warps, accumulators(p), p.k_width, lanes, p.arch, p.element, p.sum,
                     pointers("a", "%A", p.element, p.m, p.k), pointers("b", "%B", p.element, p.k, p.n),
                     pointers("acc", "%C", p.sum, p.m, p.n), p.m, p.n, p.k, p.precision, p.b_memory);
}

void check(const product &p) {
  std::string what = fmt::format("{} {} {}x{}x{} of {}x{}x{} kWidth {}{}", p.arch, p.element, p.m, p.n, p.k, p.tile,
                                 p.tile, p.step, p.k_width, p.transposed ? " transposed" : "");
  INFO(what);
  std::mt19937 bits(11);
  auto fill = [&](int count, const char *type, std::vector<std::byte> &bytes) {
    std::vector<int> values(count);
    bytes.resize(count * bytes_of(type));
    for (int i = 0; i < count; ++i) {
      values[i] = int(bits() % 5) - 2;
      std::uint64_t code = encoded(type, values[i]);
      std::memcpy(&bytes[i * bytes_of(type)], &code, bytes_of(type));
    }
    return values;
  };
  std::vector<std::byte> a_bytes, b_bytes, c_bytes;
  auto a = fill(p.m * p.k, p.element, a_bytes), b = fill(p.k * p.n, p.element, b_bytes),
       sums = fill(p.m * p.n, p.sum, c_bytes);
  launch(compile_text(text_of(p), std::string("cpu:emulate=") + p.arch), 1, a_bytes.data(), b_bytes.data(),
         c_bytes.data());
  int bad = 0;
  for (int m = 0; m < p.m; ++m)
    for (int n = 0; n < p.n; ++n) {
      int expect = sums[m * p.n + n];
      for (int k = 0; k < p.k; ++k)
        expect += a[m * p.k + k] * b[k * p.n + n];
      std::uint64_t want = encoded(p.sum, expect);
      bad += std::memcmp(&c_bytes[(m * p.n + n) * bytes_of(p.sum)], &want, bytes_of(p.sum)) != 0;
    }
  CHECK(bad == 0);
}

unsigned count(const std::string &text, std::string_view what) {
  unsigned found = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

/// The vector unit of the host makes no difference to what is tested here: once is enough.
bool again() { return std::getenv("TESSERA_CPU_ISA") != nullptr; }

/// The error of compiling for `target`.
std::string refusal(const product &p, const char *target) {
  try {
    compile_text(text_of(p), target);
  } catch (const error &e) {
    return e.what();
  }
  return "";
}

} // namespace

TEST_CASE("tt.dot runs on every instruction of MFMA and WMMA") {
  if (again())
    return;
  const product every[] = {
      {"gfx90a", "f16", "f32", 2, 32, 8, 32, 32, 16, 4},
      {"gfx90a", "bf16", "f32", 2, 16, 16, 16, 32, 32, 4},
      {"gfx90a", "f32", "f32", 2, 32, 2, 32, 32, 8, 1},
      {"gfx90a", "i8", "i32", 2, 32, 8, 32, 32, 32, 4},
      {"gfx90a", "i8", "i32", 2, 16, 16, 16, 32, 32, 4},
      {"gfx90a", "f64", "f64", 2, 16, 4, 16, 16, 8, 1},
      {"gfx942", "f16", "f32", 3, 16, 16, 16, 32, 32, 4},
      {"gfx942", "bf16", "f32", 3, 32, 8, 32, 32, 16, 4},
      {"gfx942", "f32", "f32", 3, 16, 4, 16, 16, 16, 1},
      {"gfx942", "i8", "i32", 3, 32, 16, 32, 32, 32, 8},
      {"gfx942", "i8", "i32", 3, 16, 32, 16, 16, 64, 8},
      {"gfx942", "f64", "f64", 3, 16, 4, 16, 16, 8, 1},
      {"gfx942", "f8E4M3FNUZ", "f32", 3, 32, 16, 32, 32, 32, 8},
      {"gfx942", "f8E4M3FNUZ", "f32", 3, 16, 32, 16, 16, 64, 16},
      {"gfx942", "f8E5M2FNUZ", "f32", 3, 32, 16, 32, 64, 32, 16},
      {"gfx942", "f8E5M2FNUZ", "f32", 3, 16, 32, 32, 16, 32, 8},
      {"gfx950", "f16", "f32", 4, 32, 16, 32, 32, 32, 8},
      {"gfx950", "bf16", "f32", 4, 16, 32, 16, 16, 32, 8},
      {"gfx950", "i8", "i32", 4, 16, 64, 16, 16, 64, 16},
      {"gfx950", "i8", "i32", 4, 32, 32, 32, 32, 64, 16},
      {"gfx950", "f8E4M3FN", "f32", 4, 16, 32, 16, 16, 64, 8},
      {"gfx950", "f8E5M2", "f32", 4, 32, 16, 32, 32, 32, 8},
      {"gfx950", "f8E4M3FN", "f32", 4, 16, 128, 16, 16, 128, 16},
      {"gfx950", "f8E5M2", "f32", 4, 32, 64, 32, 32, 64, 32},
      {"gfx1100", "f16", "f32", 1, 16, 16, 16, 32, 32, 16},
      {"gfx1100", "bf16", "f32", 1, 16, 16, 16, 16, 16, 16},
      {"gfx1100", "i8", "i32", 1, 16, 16, 16, 16, 32, 16},
      {"gfx1201", "f16", "f32", 2, 16, 16, 16, 32, 32, 8},
      {"gfx1201", "bf16", "f32", 2, 16, 16, 16, 16, 16, 8},
      {"gfx1201", "i8", "i32", 2, 16, 16, 16, 16, 32, 8},
      {"gfx1201", "f8E4M3FN", "f32", 2, 16, 16, 16, 16, 32, 8},
      {"gfx1201", "f8E5M2", "f32", 2, 16, 16, 16, 32, 16, 8},
  };
  bool transposed = false;
  for (product p : every) {
    p.transposed = transposed = !transposed;
    check(p);
  }
  for (int tile : {32, 16}) // xf32: small integers are exact in it
    check({"gfx942", "f32", "f32", 3, tile, tile == 32 ? 4 : 8, tile, 32, 16, 2, true, 1, 1, "tf32"});
}

TEST_CASE("the order along k is free") {
  if (again())
    return;
  for (int width : {1, 8, 16})
    check({"gfx942", "f16", "f32", 3, 32, 8, 32, 32, 32, width, true});
  for (int width : {2, 16})
    check({"gfx1201", "f16", "f32", 2, 16, 16, 16, 16, 32, width});
  check({"gfx1100", "i8", "i32", 1, 16, 16, 16, 16, 32, 4});
}

TEST_CASE("warps side by side, and tiles that are smaller than an instruction") {
  if (again())
    return;
  for (bool transposed : {false, true}) {
    check({"gfx942", "f16", "f32", 3, 32, 8, 64, 128, 8, 4, transposed, 2, 4});
    check({"gfx1100", "f16", "f32", 1, 16, 16, 64, 64, 16, 16, transposed, 2, 4});
    for (auto [m, n, k] : {std::tuple(16, 64, 16), {64, 8, 8}, {2, 2, 2}, {32, 1, 64}}) {
      check({"gfx942", "f16", "f32", 3, 32, 8, m, n, k, 4, transposed, 1, 2});
      check({"gfx90a", "f32", "f32", 2, 16, 4, m, n, k, 1, transposed, 1, 2});
      check({"gfx950", "i8", "i32", 4, 16, 64, m, n, k, 16, transposed, 1, 2});
      check({"gfx1100", "f16", "f32", 1, 16, 16, m, n, k, 16, transposed, 1, 2});
      check({"gfx1201", "i8", "i32", 2, 16, 16, m, n, k, 8, transposed, 1, 2});
    }
  }
}

TEST_CASE("16-bit operands that lie along rows are exchanged among lanes while they are read") {
  if (again())
    return;
  for (const char *memory :
       {"vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]", "vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]",
        "vec = 4, perPhase = 2, maxPhase = 8, order = [1, 0]"}) {
    product p{"gfx950", "f16", "f32", 4, 32, 16, 32, 32, 32, 8, true, 1, 1, "ieee", memory};
    check(p);
    std::string code = *compile_text(text_of(p), "cpu:emulate=gfx950", "llir").find("llir");
    CHECK(count(code, "call void @tessera_cpu_load_transposed") == 4); // of a lane's 16 elements
    CHECK(count(code, "call void @tessera_cpu_shared_load") == 4);     // A, 4 elements each
    check({"gfx950", "bf16", "f32", 4, 16, 32, 16, 32, 32, 8, true, 1, 2, "ieee", memory});
  }
  // Others, and 8-bit elements, are read one by one.
  std::string memory = "vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]";
  check({"gfx942", "f16", "f32", 3, 32, 8, 32, 32, 16, 4, true, 1, 1, "ieee", memory.c_str()});
  check({"gfx950", "i8", "i32", 4, 32, 32, 32, 32, 32, 16, true, 1, 1, "ieee", memory.c_str()});
}

TEST_CASE("an instruction that the target lacks is refused at the op") {
  const product newer{"gfx950", "f16", "f32", 4, 32, 16, 64, 32, 32, 8},
      older{"gfx90a", "i8", "i32", 2, 32, 8, 64, 32, 32, 4}, ocp{"gfx942", "f8E4M3FN", "f32", 3, 32, 16, 32, 32, 32, 8},
      fnuz{"gfx950", "f8E5M2FNUZ", "f32", 4, 32, 16, 32, 32, 32, 8},
      rdna4{"gfx1201", "f16", "f32", 2, 16, 16, 32, 32, 32, 8};
  for (auto [p, target] : {std::pair(newer, "cpu:emulate=gfx942"),
                           {older, "cpu:emulate=gfx942"},
                           {newer, "hip:gfx90a"},
                           {older, "hip:gfx942"},
                           {ocp, "hip:gfx942"},
                           {ocp, "cpu:emulate=gfx942"},
                           {fnuz, "hip:gfx950"},
                           {fnuz, "cpu:emulate=gfx950"},
                           {rdna4, "cpu:emulate=gfx1100"},
                           {rdna4, "hip:gfx1100"}}) {
    std::string message = refusal(p, target);
    INFO(target << ": " << message);
    CHECK(message.find("kernel.ttir:") != message.npos);
    CHECK(message.find("'tt.dot' needs a matrix instruction that target") != message.npos);
  }
}
