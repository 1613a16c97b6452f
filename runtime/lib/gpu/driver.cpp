#include "driver.h"

#include <atomic>
#include <cstdlib>

namespace tessera::gpu {

namespace {
std::atomic<bool> ending = false;
}

bool shutting_down() noexcept { return ending.load(std::memory_order_relaxed); }
void watch_shutdown() {
  std::atexit([] { ending.store(true, std::memory_order_relaxed); });
}

} // namespace tessera::gpu
