// The host's 16-bit floats: exact to float, and correctly rounded from it.
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

TEST_CASE("names and sizes") {
  using tessera::dtype;
  CHECK(tessera::name(dtype::bf16) == "bf16");
  CHECK(tessera::name(tessera::dtype_of<tessera::tl::u8>) == "u8");
  CHECK(tessera::size_of(dtype::i1) == 1);
  CHECK(tessera::size_of(dtype::f64) == 8);
  CHECK(!tessera::is_signed(dtype::i1));
  CHECK(tessera::is_integer(dtype::u64));
}
