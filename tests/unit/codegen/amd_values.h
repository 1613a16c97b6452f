#pragma once
// What the memory and the registers of the machine of amd_machine.h hold: bytes of arrays, floats by their formats, bits.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tessera::test {

inline uint64_t cut(uint64_t v, unsigned bits) { return bits >= 64 ? v : v & ((uint64_t(1) << bits) - 1); }
inline int64_t extended(uint64_t v, unsigned bits) { return int64_t(v << (64 - bits)) >> (64 - bits); }

/// REQUIRE, for what is asked a million times.
inline void require(bool condition, const char *what) {
  if (!condition)
    FAIL(what);
}

/// Global memory.
struct Memory {
  virtual ~Memory() = default;
  virtual unsigned char read(uint64_t address) = 0;
  virtual void write(uint64_t address, unsigned char byte) = 0;
};

/// Arrays, far from each other.
struct Arrays : Memory {
  std::vector<std::vector<unsigned char>> all;
  static uint64_t addressOf(unsigned array) { return uint64_t(array + 1) << 40; }
  unsigned char &at(uint64_t address) {
    uint64_t array = (address >> 40) - 1, offset = address & ((uint64_t(1) << 40) - 1);
    require(array < all.size() && offset < all[array].size(), "an access outside of all arrays");
    return all[array][offset];
  }
  unsigned char read(uint64_t address) override { return at(address); }
  void write(uint64_t address, unsigned char byte) override { at(address) = byte; }
  template <class T> T get(unsigned array, size_t index) {
    T v;
    std::memcpy(&v, &all[array][index * sizeof(T)], sizeof(T));
    return v;
  }
};

/// A binary float: `mantissa` bits, exponents from 1 - bias on. Magnitudes as bits; more than `largest` is no number.
struct Format {
  int mantissa, bias;
  unsigned largest;
  bool infinity = false; ///< one above largest

  double decode(unsigned bits) const {
    int e = bits >> mantissa, m = bits & ((1 << mantissa) - 1);
    if (bits > largest)
      return infinity && bits == largest + 1 ? INFINITY : NAN;
    return e ? std::ldexp(1 + std::ldexp(m, -mantissa), e - bias) : std::ldexp(m, 1 - bias - mantissa);
  }
  /// To nearest even, without a limit: the result may be more than largest.
  unsigned round(double magnitude) const {
    if (std::isinf(magnitude))
      return ~0u;
    int e = std::max(magnitude > 0 ? std::ilogb(magnitude) : -1000, 1 - bias);
    return unsigned(std::nearbyint(std::ldexp(magnitude, mantissa - e))) + ((e + bias - 1) << mantissa);
  }
};
inline constexpr Format f16{10, 15, 0x7bff, true}, f32{23, 127, 0x7f7fffff, true}, e4m3{3, 7, 0x7e},
    e5m2{2, 15, 0x7b, true}, e4m3fnuz{3, 8, 0x7f}, e5m2fnuz{2, 16, 0x7f};

struct Bits {
  uint64_t v = 0;
  bool poison = false;
};
using Value = std::vector<Bits>; ///< the elements of a vector

} // namespace tessera::test
