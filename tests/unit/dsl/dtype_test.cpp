// The host's 8 and 16-bit floats: exact to float, and correctly rounded from it.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include <tessera/tile.h>

using tessera::bfloat16, tessera::half;

namespace {

/// Finite values of T in order: their bits, sign apart.
template <class T, int exponent_all_ones> void check_rounding() {
  for (std::uint32_t b = 0; b < 0x10000; ++b) {
    const T x = T::from_bits(static_cast<std::uint16_t>(b));
    const float f = x;
    if (std::isnan(f))
      CHECK_UNARY(std::isnan(static_cast<float>(T(f))));
    else
      CHECK_EQ(T(f).bits, x.bits);
  }
  // Between neighbours the nearer one wins, and the even one if both are as near.
  for (std::uint32_t b = 0; b + 1 < (std::uint32_t(exponent_all_ones) << (std::is_same_v<T, half> ? 10 : 7)); ++b) {
    const float lo = T::from_bits(static_cast<std::uint16_t>(b)), hi = T::from_bits(static_cast<std::uint16_t>(b + 1));
    const float middle = static_cast<float>((static_cast<double>(lo) + hi) / 2);
    CHECK_EQ(T(middle).bits, b + (b & 1));
    CHECK_EQ(T(std::nextafter(middle, -1.0f)).bits, b);
    CHECK_EQ(T(std::nextafter(middle, std::numeric_limits<float>::infinity())).bits, b + 1);
    CHECK_EQ(T(-middle).bits, (b + (b & 1)) | 0x8000);
  }
}

} // namespace

TEST_CASE("half") {
  check_rounding<half, 31>();
  CHECK(half(65504.0f).bits == 0x7bff);
  CHECK(half(65519.996f).bits == 0x7bff);
  CHECK(half(65520.0f).bits == 0x7c00);
  CHECK(half(-1e30f).bits == 0xfc00);
  CHECK(half(0x1p-24f).bits == 1);
  CHECK(half(0x1p-25f).bits == 0);
  CHECK(half(0x1.000002p-25f).bits == 1);
  CHECK(half(-0.0f).bits == 0x8000);
  static_assert(half(1.0f).bits == 0x3c00 && half(0.1f) != 0.1f);
}

TEST_CASE("bfloat16") {
  check_rounding<bfloat16, 255>();
  CHECK(bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(bfloat16(1.00390625f).bits == 0x3f80);
  static_assert(bfloat16(1.5f) == 1.5f);
}

/// All 256 bit patterns, and the numbers between them: the nearer neighbour wins, the even one if both are as near.
template <class T> void check_float8(float largest, float smallest) {
  std::vector<std::pair<float, unsigned>> finite;
  for (unsigned b = 0; b < 256; ++b) {
    const float f = T::from_bits(static_cast<std::uint8_t>(b));
    if (std::isnan(f))
      CHECK_EQ(T(f).bits, T::fnuz ? 0x80 : (b & 0x80) | 0x7f);
    else if (std::isfinite(f))
      CHECK_EQ(T(f).bits, b);
    if (b < 128 && std::isfinite(f))
      finite.emplace_back(f, b);
  }
  for (std::size_t i = 0; i + 1 < finite.size(); ++i) {
    const auto [lo, b] = finite[i];
    const float middle = (lo + finite[i + 1].first) / 2;
    CHECK_EQ(finite[i + 1].second, b + 1);
    CHECK_EQ(T(middle).bits, b + (b & 1));
    CHECK_EQ(T(std::nextafter(middle, -1.0f)).bits, b);
    CHECK_EQ(T(std::nextafter(middle, largest)).bits, b + 1);
    const unsigned even = b + (b & 1);
    CHECK_EQ(T(-middle).bits, T::fnuz && even == 0 ? 0 : even | 0x80);
  }
  CHECK(finite.back().first == largest);
  CHECK(finite[1].first == smallest);
  for (float f : {largest * 1.01f, largest * 2, 1e30f, std::numeric_limits<float>::infinity()}) {
    CHECK(static_cast<float>(T(f)) == largest);
    CHECK(static_cast<float>(T(-f)) == -largest);
  }
}

TEST_CASE("float8") {
  check_float8<tessera::float8_e4m3>(448, 0x1p-9f);
  check_float8<tessera::float8_e5m2>(57344, 0x1p-16f);
  CHECK(std::isinf(static_cast<float>(tessera::float8_e5m2::from_bits(0x7c))));
  CHECK(std::isnan(static_cast<float>(tessera::float8_e4m3::from_bits(0x7f))));
  CHECK(static_cast<float>(tessera::float8_e5m2(9.0f)) == 8);
  CHECK(static_cast<float>(tessera::float8_e5m2(11.0f)) == 12);
  check_float8<tessera::float8_e4m3fnuz>(240, 0x1p-10f);
  check_float8<tessera::float8_e5m2fnuz>(57344, 0x1p-17f);
  CHECK(tessera::float8_e4m3fnuz(-0.0f).bits == 0);
  CHECK(tessera::float8_e5m2fnuz(std::nanf("")).bits == 0x80);
  static_assert(tessera::float8_e4m3fnuz(1.0f).bits == 0x40 && tessera::float8_e5m2fnuz(1.0f).bits == 0x40);
  static_assert(tessera::float8_e4m3(1.0f).bits == 0x38 && tessera::float8_e5m2(1.0f).bits == 0x3c);
}

TEST_CASE("names and sizes") {
  using tessera::dtype;
  CHECK(tessera::name(dtype::bf16) == "bf16");
  CHECK(tessera::name(tessera::dtype_of<tessera::tl::u8>) == "u8");
  CHECK(tessera::name(tessera::dtype_of<tessera::tl::f8e5m2>) == "f8e5m2");
  CHECK(tessera::name(tessera::dtype_of<tessera::tl::f8e4m3fnuz>) == "f8e4m3fnuz");
  CHECK(tessera::name(tessera::dtype_of<double>) == "f64");
  CHECK(tessera::size_of(dtype::f8e4m3) == 1);
  CHECK(tessera::size_of(dtype::f8e5m2fnuz) == 1);
  CHECK(tessera::is_float8(dtype::f8e5m2fnuz));
  CHECK(!tessera::is_float8(dtype::f16));
  CHECK(tessera::size_of(dtype::f16) == 2);
  CHECK(tessera::size_of(dtype::i1) == 1);
  CHECK(tessera::size_of(dtype::f64) == 8);
  CHECK(!tessera::is_signed(dtype::i1));
  CHECK(tessera::is_integer(dtype::u64));
}
