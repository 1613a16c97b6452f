// Products without matrix unit (ttg.local_dot) in all layouts, and conversions with 8-bit floats, from IR text to
// results on the CPU and on emulated GPUs.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernel_text.h"

#include <tessera/error.h>

using namespace tessera;
using test::bytes_of;
using test::compile_text;
using test::encoded;
using test::launch;
using test::pointers;
using test::value_of;

namespace {

const char *const every_target[] = {"cpu", "cpu:emulate=sm_80", "cpu:emulate=sm_90a", "cpu:emulate=gfx942",
                                    "cpu:emulate=gfx1100"};

// ---- numbers -------------------------------------------------------------------------------------------------------

struct fp8 {
  const char *name;
  int exponent_bits, mantissa_bits;
  bool finite_only;
  std::uint8_t largest;
  bool fnuz = false;
  double operator()(std::uint32_t bits) const {
    return fnuz ? test::value_of_fnuz(bits, exponent_bits, mantissa_bits)
                : value_of(bits, exponent_bits, mantissa_bits, finite_only);
  }
  /// Whether `code` is the number of this magnitude with the sign of x, or NaN where x is.
  bool is(std::uint8_t code, std::uint8_t magnitude, double x) const {
    if (std::isnan(x))
      return fnuz ? code == 0x80 : (code & 0x7f) == 0x7f;
    return code == (magnitude | (std::signbit(x) && !(fnuz && magnitude == 0) ? 0x80 : 0));
  }
  /// The positive finite values, in order: an index is the code.
  std::vector<double> values() const {
    std::vector<double> list;
    for (unsigned i = 0; i <= largest; ++i)
      list.push_back((*this)(i));
    return list;
  }
};

/// The last value that is not larger, or the nearest one, the even one of two.
std::uint8_t rounded(const std::vector<double> &values, double x, bool toward_zero) {
  std::size_t below = std::size_t(std::upper_bound(values.begin(), values.end(), std::fabs(x)) - values.begin()) - 1;
  if (toward_zero || below + 1 == values.size())
    return std::uint8_t(below);
  double up = values[below + 1] - std::fabs(x), down = std::fabs(x) - values[below];
  return std::uint8_t(below + (up < down || (up == down && below % 2 == 1)));
}

constexpr fp8 formats[] = {{"f8E4M3FN", 4, 3, true, 0x7e},
                           {"f8E5M2", 5, 2, false, 0x7b},
                           {"f8E4M3FNUZ", 4, 3, true, 0x7f, true},
                           {"f8E5M2FNUZ", 5, 2, true, 0x7f, true}};

/// y[i] = x[i], cast, 256 elements a program. `cast` goes from %v to %w.
std::string casting(const char *from, const char *to, const std::string &cast) {
  return fmt::format(R"(
tt.func public @casting(%x: !tt.ptr<{0}>, %y: !tt.ptr<{1}>) {{
  %pid = tt.get_program_id x : i32
  %c256 = arith.constant 256 : i32
  %start = arith.muli %pid, %c256 : i32
  %r = tt.make_range {{start = 0 : i32, end = 256 : i32}} : tensor<256xi32>
  %s = tt.splat %start : i32 -> tensor<256xi32>
  %i = arith.addi %r, %s : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<{0}> -> tensor<256x!tt.ptr<{0}>>
  %xp = tt.addptr %xs, %i : tensor<256x!tt.ptr<{0}>>, tensor<256xi32>
  %v = tt.load %xp : tensor<256x!tt.ptr<{0}>>
  %w = {2} : tensor<256x{0}> -> tensor<256x{1}>
  %ys = tt.splat %y : !tt.ptr<{1}> -> tensor<256x!tt.ptr<{1}>>
  %yp = tt.addptr %ys, %i : tensor<256x!tt.ptr<{1}>>, tensor<256xi32>
  tt.store %yp, %w : tensor<256x!tt.ptr<{1}>>
  tt.return
}})",
                     from, to, cast);
}

bool same_value(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

template <class T> double decoded(T v) { return double(v); }
double half_value(std::uint16_t v) { return value_of(v, 5, 10, false); }
double bfloat_value(std::uint16_t v) { return value_of(v, 8, 7, false); }

template <class T>
void check_to_fp8(const char *target, const fp8 &f, const char *from, std::vector<T> inputs, double (*value)(T)) {
  inputs.resize((inputs.size() + 255) / 256 * 256);
  std::vector<double> values = f.values();
  for (bool zero : {false, true}) {
    std::vector<std::uint8_t> out(inputs.size());
    launch(compile_text(casting(from, f.name, fmt::format("tt.fp_to_fp %v, rounding = {}", zero ? "rtz" : "rtne")),
                        target),
           unsigned(inputs.size() / 256), inputs.data(), out.data());
    int bad = 0;
    for (std::size_t i = 0; i < inputs.size() && bad < 5; ++i) {
      double x = value(inputs[i]);
      std::uint8_t expect = std::isnan(x) ? 0x7f : rounded(values, x, zero);
      if (!f.is(out[i], expect, x)) {
        ++bad;
        FAIL_CHECK(target << " " << from << " -> " << f.name << ": " << x << " gave " << +out[i] << ", not "
                          << +expect);
      }
    }
  }
}

} // namespace

TEST_CASE("all 256 8-bit floats become what they are in wider types") {
  std::vector<std::uint8_t> all(256);
  for (int i = 0; i < 256; ++i)
    all[i] = std::uint8_t(i);
  for (const char *target : every_target)
    for (const fp8 &f : formats) {
      std::vector<float> single(256);
      std::vector<double> twice(256);
      std::vector<std::uint16_t> half(256), bfloat(256);
      launch(compile_text(casting(f.name, "f32", "tt.fp_to_fp %v"), target), 1, all.data(), single.data());
      launch(compile_text(casting(f.name, "f64", "tt.fp_to_fp %v"), target), 1, all.data(), twice.data());
      launch(compile_text(casting(f.name, "f16", "tt.fp_to_fp %v"), target), 1, all.data(), half.data());
      launch(compile_text(casting(f.name, "bf16", "tt.fp_to_fp %v"), target), 1, all.data(), bfloat.data());
      for (int i = 0; i < 256; ++i) {
        double expect = f(std::uint32_t(i));
        bool right = same_value(expect, single[i]) && same_value(expect, twice[i]) &&
                     same_value(expect, half_value(half[i])) && same_value(expect, bfloat_value(bfloat[i]));
        if (!right)
          FAIL_CHECK(target << " " << f.name << " " << i << " gave " << single[i] << " " << half_value(half[i]) << " "
                            << bfloat_value(bfloat[i]));
      }
    }
}

TEST_CASE("8-bit floats take the nearest value, the even one of two, the largest beyond it") {
  std::vector<std::uint16_t> all(65536);
  for (int i = 0; i < 65536; ++i)
    all[i] = std::uint16_t(i);
  std::mt19937 bits(5);
  for (const fp8 &f : formats) {
    std::vector<float> single;
    std::vector<double> twice, values = f.values();
    for (unsigned i = 0; i < f.largest; ++i) {
      // Values, and around the middle between them.
      double middle = (values[i] + values[i + 1]) / 2;
      for (double x : {f(i), middle, -middle, double(std::nextafterf(float(middle), 0)),
                       double(std::nextafterf(float(middle), INFINITY))})
        single.push_back(float(x)), twice.push_back(x);
      // f64 that would round to the middle in f32, and then wrongly.
      twice.push_back(std::nextafter(middle, 0));
      twice.push_back(-std::nextafter(middle, INFINITY));
    }
    for (double x : {0.0, -0.0, 1e30, -1e30, double(INFINITY), -double(INFINITY), double(NAN), 1e-30, 448.0, 464.0,
                     465.0, 480.0, 57344.0, 61440.0, 65536.0})
      single.push_back(float(x)), twice.push_back(x);
    for (int i = 0; i < 2000; ++i)
      single.push_back(std::bit_cast<float>(std::uint32_t(bits())));
    for (const char *target : {"cpu", "cpu:emulate=sm_80"}) {
      check_to_fp8<float>(target, f, "f32", single, decoded<float>);
      check_to_fp8<double>(target, f, "f64", twice, decoded<double>);
      check_to_fp8<std::uint16_t>(target, f, "f16", all, half_value);
      check_to_fp8<std::uint16_t>(target, f, "bf16", all, bfloat_value);
    }
  }
}

TEST_CASE("one 8-bit float becomes another with one rounding") {
  std::vector<std::uint8_t> all(256), out(256);
  for (int i = 0; i < 256; ++i)
    all[i] = std::uint8_t(i);
  for (const char *target : {"cpu", "cpu:emulate=sm_90a"})
    for (const fp8 &from : formats)
      for (const fp8 &to : formats) {
        if (&from == &to)
          continue;
        std::vector<double> values = to.values();
        launch(compile_text(casting(from.name, to.name, "tt.fp_to_fp %v, rounding = rtne"), target), 1, all.data(),
               out.data());
        int bad = 0;
        for (int i = 0; i < 256; ++i) {
          double x = from(std::uint32_t(i));
          bad += !to.is(out[i], std::isnan(x) ? 0 : rounded(values, x, false), x);
        }
        CHECK_MESSAGE(bad == 0, from.name << " -> " << to.name << " on " << target);
      }
}

// ---- local_dot -----------------------------------------------------------------------------------------------------

namespace {

struct dot_case {
  const char *element, *sum;
  int m, n, k, warps;
  std::string acc, a = row_major, b = row_major;
  static constexpr const char *row_major =
      "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>";
  static constexpr const char *column_major =
      "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>";
  static constexpr const char *swizzled = "#ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 4, order = [1, 0]}>";
  static constexpr const char *swizzled_columns =
      "#ttg.swizzled_shared<{vec = 2, perPhase = 2, maxPhase = 8, order = [0, 1]}>";
  static constexpr const char *padded = "#ttg.padded_shared<[32:+4] {order = [1, 0], shape = [SHAPE]}>";
};

std::string dot_text(const dot_case &c, unsigned lanes, const char *target) {
  auto sized = [](std::string layout, int rows, int columns) {
    if (auto at = layout.find("SHAPE"); at != layout.npos)
      layout.replace(at, 5, fmt::format("{}, {}", rows, columns));
    return layout;
  };
  return fmt::format(R"(
#a = #ttg.blocked<{{sizePerThread = [1, 2], threadsPerWarp = [{0}, 4], warpsPerCTA = [{1}, 1], order = [1, 0]}}>
#b = #ttg.blocked<{{sizePerThread = [1, 1], threadsPerWarp = [4, {0}], warpsPerCTA = [1, {1}], order = [1, 0]}}>
#acc = {2}
#sa = {3}
#sb = {4}
#smem = #ttg.shared_memory
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {1} : i32, "ttg.threads-per-warp" = {5} : i32, ttg.target = "{6}"}} {{
  tt.func public @product(%A: !tt.ptr<{7}>, %B: !tt.ptr<{7}>, %C: !tt.ptr<{8}>) {{
{9}{10}{11}
    %av = tt.load %ap : tensor<{12}x{14}x!tt.ptr<{7}>, #a>
    %bv = tt.load %bp : tensor<{14}x{13}x!tt.ptr<{7}>, #b>
    %cv = tt.load %accp : tensor<{12}x{13}x!tt.ptr<{8}>, #acc>
    %am = ttg.local_alloc %av : (tensor<{12}x{14}x{7}, #a>) -> !ttg.memdesc<{12}x{14}x{7}, #sa, #smem>
    %bm = ttg.local_alloc %bv : (tensor<{14}x{13}x{7}, #b>) -> !ttg.memdesc<{14}x{13}x{7}, #sb, #smem>
    %d = ttg.local_dot %am, %bm, %cv : !ttg.memdesc<{12}x{14}x{7}, #sa, #smem> * !ttg.memdesc<{14}x{13}x{7}, #sb, #smem>, tensor<{12}x{13}x{8}, #acc> -> tensor<{12}x{13}x{8}, #acc>
    tt.store %accp, %d : tensor<{12}x{13}x!tt.ptr<{8}>, #acc>
    tt.return
  }}
}})",
                     lanes / 4, c.warps, c.acc, sized(c.a, c.m, c.k), sized(c.b, c.k, c.n), lanes, target, c.element,
                     c.sum, pointers("a", "%A", c.element, c.m, c.k), pointers("b", "%B", c.element, c.k, c.n),
                     pointers("acc", "%C", c.sum, c.m, c.n), c.m, c.n, c.k);
}

void check_dot(const dot_case &c, const char *target) {
  unsigned lanes = parse_target(target).warp_size();
  const char *name = lanes == 64 ? "hip:gfx942" : std::string_view(target) == "cpu" ? "cpu" : "cuda:80";
  std::mt19937 bits(3);
  auto fill = [&](int count, const char *type, std::vector<std::byte> &bytes) {
    std::vector<int> values(count);
    bytes.resize(count * bytes_of(type));
    for (int i = 0; i < count; ++i) {
      values[i] = int(bits() % 9) - 4;
      if (std::string_view(type).starts_with("f8E5M2") && values[i] % 2)
        values[i] = 1;
      std::uint64_t code = encoded(type, values[i]);
      std::memcpy(&bytes[i * bytes_of(type)], &code, bytes_of(type));
    }
    return values;
  };
  std::vector<std::byte> a_bytes, b_bytes, c_bytes;
  auto a = fill(c.m * c.k, c.element, a_bytes), b = fill(c.k * c.n, c.element, b_bytes),
       sums = fill(c.m * c.n, c.sum, c_bytes);
  INFO(target << " " << c.element << " " << c.m << "x" << c.n << "x" << c.k << " " << c.acc << " " << c.a << " "
              << c.b);
  launch(compile_text(dot_text(c, lanes, name), target), 1, a_bytes.data(), b_bytes.data(), c_bytes.data());
  int bad = 0;
  for (int m = 0; m < c.m; ++m)
    for (int n = 0; n < c.n; ++n) {
      int expect = sums[m * c.n + n];
      for (int k = 0; k < c.k; ++k)
        expect += a[m * c.k + k] * b[k * c.n + n];
      std::uint64_t want = encoded(c.sum, expect);
      if (std::memcmp(&c_bytes[(m * c.n + n) * bytes_of(c.sum)], &want, bytes_of(c.sum)) != 0)
        ++bad;
    }
  CHECK(bad == 0);
}

std::string blocked(int size_m, int size_n, int lanes_m, int lanes_n, int warps_m, int warps_n) {
  return fmt::format(
      "#ttg.blocked<{{sizePerThread = [{}, {}], threadsPerWarp = [{}, {}], warpsPerCTA = [{}, {}], order "
      "= [1, 0]}}>",
      size_m, size_n, lanes_m, lanes_n, warps_m, warps_n);
}

} // namespace

TEST_CASE("local_dot multiplies every type") {
  const char *const types[][2] = {{"f32", "f32"},    {"f16", "f32"},        {"bf16", "f32"},
                                  {"f64", "f64"},    {"i8", "i32"},         {"f8E4M3FN", "f32"},
                                  {"f8E5M2", "f32"}, {"f8E4M3FNUZ", "f32"}, {"f8E5M2FNUZ", "f32"}};
  for (auto [element, sum] : types)
    for (const char *target : {"cpu", "cpu:emulate=sm_80", "cpu:emulate=gfx942"}) {
      int lanes = int(parse_target(target).warp_size());
      check_dot({element, sum, 16, 64, 32, 2, blocked(4, 1, 1, lanes, 2, 1)}, target);
      check_dot({element, sum, 16, 16, 16, 2, blocked(2, 2, lanes / 4, 4, 2, 1)}, target);
    }
}

TEST_CASE("local_dot takes every layout") {
  for (const char *target : {"cpu", "cpu:emulate=sm_80"}) {
    int lanes = int(parse_target(target).warp_size());
    std::string along = blocked(8, 1, 1, lanes, 1, 2), square = blocked(4, 4, lanes / 4, 4, 2, 1),
                tall = blocked(1, 2, lanes, 1, 1, 2);
    const char *const memories[][2] = {{dot_case::row_major, dot_case::row_major},
                                       {dot_case::column_major, dot_case::swizzled},
                                       {dot_case::swizzled, dot_case::swizzled_columns},
                                       {dot_case::padded, dot_case::column_major}};
    for (const std::string &acc : {along, square, tall})
      for (auto [a, b] : memories)
        check_dot({"f32", "f32", 32, 32, 16, 2, acc, a, b}, target);
    // Shapes smaller than the layout, and smaller than what the loop takes at once.
    for (auto [m, n, k] : {std::array{1, 16, 32}, {16, 1, 8}, {1, 1, 1}, {4, 8, 2}, {64, 4, 4}, {2, 2, 64}})
      check_dot({"f32", "f32", m, n, k, 2, m < n ? along : square}, target);
  }
  // Bases that are no product of rows and columns.
  check_dot(
      {"f16", "f32", 32, 32, 16, 4,
       "#ttg.linear<{register = [[0, 1], [8, 0], [16, 4]], lane = [[0, 2], [0, 4], [1, 0], [3, 0], [4, 1]], warp = "
       "[[0, 8], [0, 16]], block = []}>"},
      "cpu:emulate=sm_80");
}

/// Batches of products, from ttir: the passes choose the layouts.
TEST_CASE("products without matrix unit come in batches") {
  const char *text = R"(
tt.func public @batched(%A: !tt.ptr<f64>, %B: !tt.ptr<f64>, %C: !tt.ptr<f64>) {
  %ra = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %as = tt.splat %A : !tt.ptr<f64> -> tensor<1024x!tt.ptr<f64>>
  %ap = tt.addptr %as, %ra : tensor<1024x!tt.ptr<f64>>, tensor<1024xi32>
  %al = tt.load %ap : tensor<1024x!tt.ptr<f64>>
  %a = tt.reshape %al : tensor<1024xf64> -> tensor<4x16x16xf64>
  %rb = tt.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32>
  %bs = tt.splat %B : !tt.ptr<f64> -> tensor<2048x!tt.ptr<f64>>
  %bp = tt.addptr %bs, %rb : tensor<2048x!tt.ptr<f64>>, tensor<2048xi32>
  %bl = tt.load %bp : tensor<2048x!tt.ptr<f64>>
  %b = tt.reshape %bl : tensor<2048xf64> -> tensor<4x16x32xf64>
  %zero = arith.constant dense<1.0> : tensor<4x16x32xf64>
  %d = tt.dot %a, %b, %zero : tensor<4x16x16xf64> * tensor<4x16x32xf64> -> tensor<4x16x32xf64>
  %cs = tt.splat %C : !tt.ptr<f64> -> tensor<2048x!tt.ptr<f64>>
  %cp = tt.addptr %cs, %rb : tensor<2048x!tt.ptr<f64>>, tensor<2048xi32>
  %f = tt.reshape %d : tensor<4x16x32xf64> -> tensor<2048xf64>
  tt.store %cp, %f : tensor<2048x!tt.ptr<f64>>
  tt.return
})";
  for (const char *target : every_target) {
    std::vector<double> a(1024), b(2048), c(2048);
    for (std::size_t i = 0; i < b.size(); ++i) {
      a[i % 1024] = double(i * 7 % 13) - 6;
      b[i] = double(i * 5 % 11) - 5;
    }
    launch(compile_text(text, target), 1, a.data(), b.data(), c.data());
    int bad = 0;
    for (int batch = 0; batch < 4; ++batch)
      for (int m = 0; m < 16; ++m)
        for (int n = 0; n < 32; ++n) {
          double expect = 1;
          for (int k = 0; k < 16; ++k)
            expect += a[batch * 256 + m * 16 + k] * b[batch * 512 + k * 32 + n];
          bad += c[batch * 512 + m * 32 + n] != expect;
        }
    INFO(target);
    CHECK(bad == 0);
  }
}

TEST_CASE("the micro-kernel's accumulators stay in registers") {
  int lanes = int(parse_target("cpu").warp_size());
  if (lanes < 8) // SSE has no multiply-add
    return;
  int rows = lanes == 16 ? 8 : 4, k = 64;
  dot_case c{"f32", "f32", rows, 2 * lanes, k, 1, blocked(rows, 1, 1, lanes, 1, 1)};
  std::string code = *compile_text(dot_text(c, unsigned(lanes), "cpu"), "cpu", "asm").find("asm");
  std::vector<std::string> lines;
  std::istringstream stream(code);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  // The loop: from the first multiply-add to the jump back.
  auto holds = [](const char *text) {
    return [text](const std::string &line) { return line.find(text) != line.npos; };
  };
  auto first = std::find_if(lines.begin(), lines.end(), holds("vfmadd"));
  auto last = std::find_if(first, lines.end(), holds("\tj"));
  REQUIRE(last != lines.end());
  INFO(code);
  CHECK(std::count_if(first, last, holds("vfmadd")) == 4 * rows * 2); // four k's at once
  CHECK(std::count_if(first, last, holds("%rsp")) == 0);
  CHECK(std::count_if(lines.begin(), lines.end(), holds("vfmadd")) == 4 * rows * 2);
}
