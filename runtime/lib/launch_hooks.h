#pragma once
// What runs around launches: the user's hooks, and NVTX ranges.
#include <atomic>

#include <tessera/runtime/launch.h>

namespace tessera::detail {

/// The two functions of NVTX that name a range on the calling thread.
struct nvtx_functions {
  int (*push)(const char *) = nullptr;
  int (*pop)() = nullptr;
};

struct active_hooks {
  launch_hooks user;
  const nvtx_functions *nvtx = nullptr;
};

/// Null where nothing is to be called: a launch looks at this pointer and no more.
extern std::atomic<const active_hooks *> hooks_in_use;

/// Finds NVTX where it was asked for. Called whenever code is loaded, so before its first launch; does something once.
void start_profiling();

} // namespace tessera::detail
