#pragma once
// Small floats by their definition, and small integers in every element type, where all formats are exact.
#include <bit>
#include <cmath>
#include <cstdint>

namespace tessera::test {

/// The value of a float of so many bits. `finite_only`: no infinity, and one NaN of each sign (e4m3).
inline double value_of(std::uint32_t bits, int exponent_bits, int mantissa_bits, bool finite_only) {
  int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  int exponent = int(bits >> mantissa_bits) & top, mantissa = int(bits) & ((1 << mantissa_bits) - 1);
  double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
  if (exponent == top && (!finite_only || mantissa == (1 << mantissa_bits) - 1))
    return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0)
    return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

/// The same of the fnuz kind: the exponent is biased by one more, and -0 is the one that is no number.
inline double value_of_fnuz(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  int bias = 1 << (exponent_bits - 1), exponent = int(bits & 127) >> mantissa_bits;
  int mantissa = int(bits) & ((1 << mantissa_bits) - 1);
  if (bits == 128)
    return NAN;
  double magnitude = exponent ? std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits)
                              : std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return bits & 128 ? -magnitude : magnitude;
}

/// An integer that the format holds.
inline std::uint32_t encode_small(int value, int exponent_bits, int mantissa_bits) {
  if (value == 0)
    return 0;
  auto bits = std::bit_cast<std::uint32_t>(float(value));
  int bias = (1 << (exponent_bits - 1)) - 1, exponent = int(bits >> 23 & 255) - 127 + bias;
  return bits >> 31 << (exponent_bits + mantissa_bits) | std::uint32_t(exponent) << mantissa_bits |
         (bits & 0x7fffff) >> (23 - mantissa_bits);
}

} // namespace tessera::test
