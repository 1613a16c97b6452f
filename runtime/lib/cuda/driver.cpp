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
    api.LaunchKernelEx = reinterpret_cast<decltype(api.LaunchKernelEx)>(dlsym(library, "cuLaunchKernelEx"));
    if (CUresult r = api.Init(0); r != success) {
      reason = fmt::format("the CUDA driver {} does not start: {}", path, api.describe(r));
      return;
    }
    api.DriverGetVersion(&api.version);
    gpu::watch_shutdown();
    usable = true;
  }
};

// Leaked on purpose: kernels at namespace scope unload their modules after static destructors began.
std::atomic<const driver_api *> in_use = nullptr;
std::atomic<CUcontext> any_context = nullptr;

const loaded_driver &loaded() {
  static const loaded_driver *driver = [] {
    auto *d = new loaded_driver;
    if (d->usable)
      in_use.store(&d->api, std::memory_order_release);
    return d;
  }();
  return *driver;
}

} // namespace

const driver_api *find_driver() { return loaded().usable ? &loaded().api : nullptr; }

bool is_device_only(std::uint64_t address) {
  const driver_api *cu = in_use.load(std::memory_order_acquire);
  if (!cu)
    return false;
  unsigned kind = no_memory, managed = 0;
  int attributes[] = {memory_type, is_managed};
  void *results[] = {&kind, &managed};
  CUcontext context = any_context.load(std::memory_order_relaxed), old = nullptr;
  const bool pushed = context && cu->CtxPushCurrent(context) == success;
  const bool known = cu->PointerGetAttributes(2, attributes, results, address) == success;
  if (pushed)
    cu->CtxPopCurrent(&old);
  return known && kind == device_memory && !managed;
}
void remember_context(CUcontext context) noexcept { any_context.store(context, std::memory_order_relaxed); }
const std::string &why_no_driver() { return loaded().reason; }

std::string_view driver_api::explain(CUresult r) {
  switch (r) {
  case illegal_address:
    return "a kernel read or wrote memory outside every allocation; check its masks, offsets and pointer arguments";
  case misaligned_address:
    return "a kernel used an address that is not a multiple of the access's size; check pointers and tl::multiple_of";
  case device_assert: return "a tl::device_assert failed; its message is on the standard output";
  case launch_timeout: return "a kernel ran longer than the display's watchdog allows";
  case hardware_stack_error:
  case illegal_instruction:
  case invalid_address_space:
  case invalid_pc:
  case launch_failed:
    return "a kernel crashed on the device; check its memory accesses (compute-sanitizer names the instruction)";
  default: return {};
  }
}

std::string driver_api::describe(CUresult r) const {
  const char *name = nullptr, *text = nullptr;
  if (GetErrorName(r, &name) != success || !name)
    return fmt::format("CUDA error {}", r);
  if (GetErrorString(r, &text) != success || !text)
    return name;
  return fmt::format("{} ({})", name, text);
}

} // namespace tessera::cuda
