// What AMD's exchanges between lanes, range-checked accesses and fp8 conversions do: kernels of one warp, executed.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "amd_machine.h"
#include "kernel_text.h"

using namespace tessera;
using namespace tessera::test;

namespace {

/// Runs program `x`; pointers are the bytes of `memory`, other arguments `scalars`. The kernel has no branch: what is
/// masked is so by range checks. Gives the number of buffer accesses.
unsigned run(const compiled_kernel &kernel, unsigned x, const std::vector<std::vector<unsigned char> *> &memory,
             const std::vector<uint64_t> &scalars = {}) {
  REQUIRE(kernel.find("llir")->find("br i1") == std::string::npos);
  Arrays arrays;
  std::vector<uint64_t> args;
  for (auto *bytes : memory) {
    args.push_back(Arrays::addressOf(arrays.all.size()));
    arrays.all.push_back(*bytes);
  }
  args.insert(args.end(), scalars.begin(), scalars.end());
  Machine machine(kernel, arrays);
  machine.run(args, x);
  for (size_t k = 0; k < memory.size(); ++k)
    *memory[k] = arrays.all[k];
  return machine.buffers;
}

const char *const archs[] = {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"};

compiled_kernel build(const std::string &text, const std::string &arch) {
  ir_module module = parse_ir(text, "kernel.ttir");
  return compile(module, parse_target("hip:" + arch), {.num_warps = 1}, "llir");
}

std::vector<int32_t> numbers(size_t n) {
  std::mt19937 random(7);
  std::vector<int32_t> list(n);
  for (int32_t &v : list)
    v = int32_t(random());
  return list;
}
template <class T> std::vector<unsigned char> bytes(const std::vector<T> &list) {
  std::vector<unsigned char> b(list.size() * sizeof(T));
  std::memcpy(b.data(), list.data(), b.size());
  return b;
}
template <class T> std::vector<T> elements(const std::vector<unsigned char> &b) {
  std::vector<T> list(b.size() / sizeof(T));
  std::memcpy(list.data(), b.data(), b.size());
  return list;
}

std::string sum(const char *type) {
  return with(R"(
tt.func public @sum(%x: !tt.ptr<TYPE> {tt.divisibility = 16 : i32}, %y: !tt.ptr<TYPE>) {)" +
                  pointers("from", "%x", "TYPE", 256) + R"(
  %v = tt.load %fromp : tensor<256x!tt.ptr<TYPE>>)" +
                  reduction("%s", "%v", 0, "arith.addi", "TYPE", "tensor<256xTYPE>", "TYPE") + R"(
  tt.store %y, %s : !tt.ptr<TYPE>
  tt.return
})",
              {{"TYPE", type}});
}

std::string largest(int axis) {
  return R"(
tt.func public @largest(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {)" +
         pointers("from", "%x", "i32", 16, 16, false) + pointers("to", "%y", "i32", 16) + R"(
  %v = tt.load %fromp : tensor<16x16x!tt.ptr<i32>>)" +
         reduction("%s", "%v", axis, "arith.maxsi", "i32", "tensor<16x16xi32>", "tensor<16xi32>") + R"(
  tt.store %top, %s : tensor<16x!tt.ptr<i32>>
  tt.return
})";
}

const char *const copy = R"(
tt.func public @copy(%x: !tt.ptr<TYPE> {tt.divisibility = 16 : i32}, %y: !tt.ptr<TYPE> {tt.divisibility = 16 : i32}, %n: i32) {
  %c512 = arith.constant 512 : i32
  %pid = tt.get_program_id x : i32
  %first = arith.muli %pid, %c512 : i32
  %range = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %firsts = tt.splat %first : i32 -> tensor<512xi32>
  %i = arith.addi %firsts, %range : tensor<512xi32>
  %ns = tt.splat %n : i32 -> tensor<512xi32>
  %in = arith.cmpi slt, %i, %ns : tensor<512xi32>
  %other = arith.constant dense<OTHER> : tensor<512xTYPE>
  %xs = tt.splat %x : !tt.ptr<TYPE> -> tensor<512x!tt.ptr<TYPE>>
  %p = tt.addptr %xs, %i : tensor<512x!tt.ptr<TYPE>>, tensor<512xi32>
  %v = tt.load %p, %in, %other : tensor<512x!tt.ptr<TYPE>>
  %ys = tt.splat %y : !tt.ptr<TYPE> -> tensor<512x!tt.ptr<TYPE>>
  %q = tt.addptr %ys, %range : tensor<512x!tt.ptr<TYPE>>, tensor<512xi32>
  tt.store %q, %v : tensor<512x!tt.ptr<TYPE>>
  %z = tt.addptr %xs, %i : tensor<512x!tt.ptr<TYPE>>, tensor<512xi32>
  tt.store %z, %other, %in : tensor<512x!tt.ptr<TYPE>>
  tt.return
})";

const char *const convert = R"(
tt.func public @convert(%x: !tt.ptr<FROM> {tt.divisibility = 16 : i32}, %y: !tt.ptr<TO> {tt.divisibility = 16 : i32}) {
  %c1024 = arith.constant 1024 : i32
  %pid = tt.get_program_id x : i32
  %first = arith.muli %pid, %c1024 : i32
  %range = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %firsts = tt.splat %first : i32 -> tensor<1024xi32>
  %i = arith.addi %firsts, %range : tensor<1024xi32>
  %xs = tt.splat %x : !tt.ptr<FROM> -> tensor<1024x!tt.ptr<FROM>>
  %p = tt.addptr %xs, %i : tensor<1024x!tt.ptr<FROM>>, tensor<1024xi32>
  %v = tt.load %p : tensor<1024x!tt.ptr<FROM>>
  %r = tt.fp_to_fp %vROUND : tensor<1024xFROM> -> tensor<1024xTO>
  %ys = tt.splat %y : !tt.ptr<TO> -> tensor<1024x!tt.ptr<TO>>
  %q = tt.addptr %ys, %i : tensor<1024x!tt.ptr<TO>>, tensor<1024xi32>
  tt.store %q, %r : tensor<1024x!tt.ptr<TO>>
  tt.return
})";

} // namespace

TEST_SUITE_BEGIN("gpu"); // as on any host: run once

TEST_CASE("the steps of a reduction bring all lanes together") {
  auto check = [&]<class T>(const char *type, const std::vector<T> &x, const char *arch) {
    CAPTURE(std::string(arch));
    CAPTURE(std::string(type));
    std::vector<unsigned char> in = bytes(x), out(sizeof(T));
    run(build(sum(type), arch), 0, {&in, &out});
    std::make_unsigned_t<T> expected = 0;
    for (T v : x)
      expected += v;
    CHECK(elements<T>(out)[0] == T(expected));
  };
  for (const char *arch : archs) {
    auto x = numbers(256);
    check("i32", x, arch);
    check("i64", std::vector<int64_t>(x.begin(), x.end()), arch);
    check("i16", std::vector<int16_t>(x.begin(), x.end()), arch);
  }
}

TEST_CASE("lanes far and near exchange what they hold") {
  auto x = numbers(256);
  for (const char *arch : archs)
    for (int axis : {0, 1}) {
      CAPTURE(std::string(arch));
      CAPTURE(axis);
      std::vector<unsigned char> in = bytes(x), out(16 * 4);
      run(build(largest(axis), arch), 0, {&in, &out});
      auto most = elements<int32_t>(out);
      for (int k = 0; k < 16; ++k) {
        int32_t expected = INT32_MIN;
        for (int j = 0; j < 16; ++j)
          expected = std::max(expected, x[axis == 0 ? 16 * j + k : 16 * k + j]);
        CHECK(most[k] == expected);
      }
    }
}

namespace {

compiled_kernel conversion(const char *from, const char *to, const char *arch, const char *rounding = "") {
  return build(with(convert, {{"FROM", from}, {"TO", to}, {"ROUND", rounding}}), arch);
}

/// The codes of four times all 8-bit floats.
std::vector<unsigned char> everyFp8() {
  std::vector<unsigned char> all(1024);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Converts every f16 to `type` by the processor's instruction; `isRight(bits of the f16, its value without sign,
/// result)`.
void checkFromEveryHalf(const char *type, const char *arch, auto isRight) {
  std::vector<uint16_t> halves(65536);
  std::iota(halves.begin(), halves.end(), 0);
  compiled_kernel narrow = conversion("f16", type, arch, ", rounding = rtne");
  CHECK(narrow.find("llir")->find(".cvt.pk.") != std::string::npos);
  std::vector<unsigned char> in = bytes(halves), out(65536);
  for (unsigned program = 0; program < 64; ++program)
    run(narrow, program, {&in, &out});
  unsigned wrong = 0;
  for (unsigned i = 0; i < 65536; ++i)
    wrong += !isRight(i, f16.decode(i & 0x7fff), out[i]);
  CHECK(wrong == 0);
}

} // namespace

TEST_CASE("fp8 are OCP's whatever the processor's instruction makes") {
  for (const char *arch : {"gfx942", "gfx950", "gfx1201", "gfx1250"})
    for (auto &[type, format] : {std::pair("f8E4M3FN", e4m3), std::pair("f8E5M2", e5m2)}) {
      CAPTURE(std::string(arch));
      CAPTURE(std::string(type));
      checkFromEveryHalf(type, arch, [&](unsigned i, double v, unsigned is) {
        unsigned expected = std::min(format.round(v), format.largest) | (i >> 8 & 0x80);
        return std::isnan(v) ? std::isnan(format.decode(is & 0x7f)) : is == expected;
      });

      unsigned wrong = 0;
      compiled_kernel widen = conversion(type, "f16", arch);
      std::vector<unsigned char> small = everyFp8(), wide(2048);
      run(widen, 0, {&small, &wide});
      auto results = elements<uint16_t>(wide);
      for (unsigned i = 0; i < 256; ++i) {
        double v = format.decode(i & 0x7f), is = f16.decode(results[i] & 0x7fff);
        wrong += std::isnan(v) ? !std::isnan(is) : is != v || (results[i] >> 15) != (i >> 7);
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE("fp8 of the fnuz kind are what gfx942 has") {
  for (auto &[type, format] : {std::pair("f8E4M3FNUZ", e4m3fnuz), std::pair("f8E5M2FNUZ", e5m2fnuz)}) {
    CAPTURE(std::string(type));
    checkFromEveryHalf(type, "gfx942", [&](unsigned i, double v, unsigned is) {
      unsigned magnitude = std::min(format.round(v), format.largest);
      return is == (std::isnan(v) ? 0x80 : magnitude ? magnitude | (i >> 8 & 0x80) : 0);
    });

    unsigned wrong = 0;
    for (const char *to : {"f16", "f32"}) {
      CAPTURE(std::string(to));
      bool half = to == std::string("f16");
      const Format &result = half ? f16 : f32;
      compiled_kernel widen = conversion(type, to, "gfx942");
      CHECK(widen.find("llir")->find(".cvt.pk.f32.") != std::string::npos);
      std::vector<unsigned char> small = everyFp8(), wide(half ? 2048 : 4096);
      run(widen, 0, {&small, &wide});
      for (unsigned i = 0; i < 256; ++i) {
        uint32_t bits = half ? elements<uint16_t>(wide)[i] : elements<uint32_t>(wide)[i];
        uint32_t sign = half ? 0x8000 : 0x80000000;
        double v = i == 0x80 ? NAN : format.decode(i & 0x7f), is = result.decode(bits & ~sign);
        wrong += std::isnan(v) ? !std::isnan(is) : is != v || !(bits & sign) != !(i & 0x80);
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("masked lanes are out of range and touch nothing") {
  for (const char *arch : archs)
    for (const char *type : {"i32", "i8", "i64"})
      for (int n : {512 + 300, 512 + 1, 1024}) {
        CAPTURE(std::string(arch));
        CAPTURE(std::string(type));
        CAPTURE(n);
        unsigned size = type == std::string("i8") ? 1 : type == std::string("i64") ? 8 : 4;
        std::vector<unsigned char> in(n * size), out(512 * size, 0xcc); // in ends with the last element
        for (size_t i = 0; i < in.size(); ++i)
          in[i] = (i * 7 + 1) & 0x3f;
        std::vector<unsigned char> before = in;
        CHECK(run(build(with(copy, {{"TYPE", type}, {"OTHER", "-1"}}), arch), 1, {&in, &out}, {uint64_t(n)}) >= 2);
        unsigned valid = (n - 512) * size;
        CHECK(std::equal(out.begin(), out.begin() + valid, before.begin() + 512 * size));
        CHECK(std::all_of(out.begin() + valid, out.end(), [](unsigned char c) { return c == 0xff; }));
        CHECK(std::equal(before.begin(), before.begin() + 512 * size, in.begin()));
        CHECK(std::all_of(in.begin() + 512 * size, in.end(), [](unsigned char c) { return c == 0xff; }));
      }
}

TEST_SUITE_END();
