#pragma once
// Addresses that a driver was asked about already.
#include <array>
#include <atomic>
#include <cstdint>

namespace tessera::gpu {

/// A range of addresses known to be good. An entry dies when any memory of this library is freed; memory freed by
/// others is not noticed, and a kernel that uses it faults as it would anywhere else.
struct known_range {
  std::uint64_t begin = 0, end = 0, shift = 0; ///< shift: from the address given to the one passed (mapped host memory)
  const void *device = nullptr;
  std::uint32_t epoch = 0;
};
inline constinit std::atomic<std::uint32_t> free_epoch = 1;

/// Each thread's small cache of ranges. An address is looked for where itself was entered, then where its 2 MiB were:
/// so many small allocations and many places of a large one are found both.
inline constinit thread_local std::array<known_range, 64> known_ranges{};
inline known_range &near(std::uint64_t address) { return known_ranges[address * 0x9e3779b97f4a7c15u >> 59]; }
inline known_range &far(std::uint64_t address) {
  return known_ranges[32 + ((address >> 21) * 0x9e3779b97f4a7c15u >> 59)];
}

} // namespace tessera::gpu
