#pragma once
// What of launch_options can be wrong whatever the device is.
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include <tessera/runtime/launch.h>

namespace tessera::detail {

/// Why `g` cannot be launched so, as the end of the sentence "kernel … cannot be launched "; empty: it can.
inline std::string refused(const launch_options &how, const grid &g) {
  const std::int64_t sizes[] = {g.x, g.y, g.z};
  for (int i = 0; i < 3; ++i)
    if (how.cluster[i] == 0 || how.cluster[i] > 16 || sizes[i] % how.cluster[i] != 0)
      return fmt::format(
          "with grid ({}, {}, {}) in clusters of ({}, {}, {}): each number of programs must be a multiple "
          "of the cluster's, which is 1 to 16",
          g.x, g.y, g.z, how.cluster[0], how.cluster[1], how.cluster[2]);
  return {};
}

} // namespace tessera::detail
