#pragma once
// Operands of the emulated matrix instructions in tests.
#include <random>

#include "small_floats.h"

#include <tessera/codegen/cpu_abi.h>

namespace tessera::test {

inline std::uint32_t encode(std::uint32_t type, int value) {
  auto bits = std::bit_cast<std::uint32_t>(float(value));
  switch (type) {
  case tessera_matrix_f16: return encode_small(value, 5, 10);
  case tessera_matrix_bf16: return bits >> 16;
  case tessera_matrix_tf32: return bits | 0x1abc; // the unit must not see these
  case tessera_matrix_e4m3: return encode_small(value, 4, 3);
  case tessera_matrix_e5m2: return encode_small(value, 5, 2);
  default: return std::uint32_t(value) & 255;
  }
}

struct numbers {
  std::mt19937 bits{7};
  int operator()(std::uint32_t type) {
    int value = int(bits() % 9) - 4;
    return type == tessera_matrix_u8 ? value + 200 : value;
  }
};

inline std::uint32_t word_of(double sum, bool integer) {
  return integer ? std::uint32_t(std::int64_t(sum)) : std::bit_cast<std::uint32_t>(float(sum));
}

} // namespace tessera::test
