// Opens the CUDA driver and turns its results into tessera::error.
#include "driver.h"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>

#include <fmt/format.h>

namespace tessera::cuda {
namespace {

struct loaded_driver {
  driver_api api;
  bool usable = false;
  std::string reason;

  loaded_driver() {
    const char *override_path = std::getenv("TESSERA_LIBCUDA");
    const char *path = override_path && *override_path ? override_path : "libcuda.so.1";
    // Never closed: modules and contexts live until the process ends.
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      reason = fmt::format("the CUDA driver cannot be opened: {}", dlerror());
      return;
    }
#define TESSERA_CUDA_LOAD(NAME, SYMBOL, ...)                                                                           \
  if (!(api.NAME = reinterpret_cast<decltype(api.NAME)>(dlsym(library, SYMBOL)))) {                                    \
    reason = fmt::format("the CUDA driver {} has no function " SYMBOL "; a newer driver is needed", path);             \
    return;                                                                                                            \
  }
    TESSERA_CUDA_FUNCTIONS(TESSERA_CUDA_LOAD)
#undef TESSERA_CUDA_LOAD
    if (CUresult r = api.Init(0); r != success) {
      reason = fmt::format("the CUDA driver {} does not start: {}", path, describe(api, r));
      return;
    }
    api.DriverGetVersion(&api.version);
    usable = true;
  }
};

// Leaked on purpose: kernels at namespace scope unload their modules after static destructors began.
std::atomic<const driver_api *> in_use = nullptr;

const loaded_driver &loaded() {
  static const loaded_driver *driver = [] {
    auto *d = new loaded_driver;
    if (d->usable)
      in_use.store(&d->api, std::memory_order_release);
    return d;
  }();
  return *driver;
}

std::string_view explain(CUresult r) {
  switch (r) {
  case illegal_address: return "a kernel read or wrote memory outside every allocation; check its masks, offsets and pointer arguments";
  case misaligned_address: return "a kernel used an address that is not a multiple of the access's size; check pointers and tl::multiple_of";
  case device_assert: return "a tl::device_assert failed; its message is on the standard output";
  case launch_timeout: return "a kernel ran longer than the display's watchdog allows";
  case hardware_stack_error:
  case illegal_instruction:
  case invalid_address_space:
  case invalid_pc:
  case launch_failed: return "a kernel crashed on the device; check its memory accesses (compute-sanitizer names the instruction)";
  default: return {};
  }
}

} // namespace

const driver_api *find_driver() { return loaded().usable ? &loaded().api : nullptr; }
const driver_api *driver_in_use() noexcept { return in_use.load(std::memory_order_acquire); }
const std::string &why_no_driver() { return loaded().reason; }

std::string describe(const driver_api &cu, CUresult r) {
  const char *name = nullptr, *text = nullptr;
  if (cu.GetErrorName(r, &name) != success || !name)
    return fmt::format("CUDA error {}", r);
  if (cu.GetErrorString(r, &text) != success || !text)
    return name;
  return fmt::format("{} ({})", name, text);
}

bool is_fault(CUresult r) noexcept { return !explain(r).empty(); }

void fail(const driver_api &cu, CUresult r, std::string_view doing) {
  if (auto why = explain(r); !why.empty())
    throw error(stage::execute, fmt::format("{}: {}, found while {}. The device's context is lost: every later call on "
                                            "this device fails until the process is started again.",
                                            why, describe(cu, r), doing));
  throw error(stage::driver, fmt::format("{} failed: {}", doing, describe(cu, r)));
}

} // namespace tessera::cuda
