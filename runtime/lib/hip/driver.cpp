// Opens the HIP runtime and turns its results into tessera::error.
#include "driver.h"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>
#include <vector>

namespace tessera::hip {
namespace {

constexpr const char *library_names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"};

/// Never closed: modules live until the process ends.
void *open_library(std::string &path, std::string &reason) {
  if (const char *named = std::getenv("TESSERA_LIBHIP"); named && *named) {
    path = named;
    void *library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
    if (!library)
      reason = fmt::format("the HIP runtime cannot be opened: {}", dlerror());
    return library;
  }
  // A process with two HIP runtimes would have two views of each GPU: what is loaded goes first.
  for (const char *name : library_names)
    if (void *library = dlopen(path.assign(name).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD))
      return library;
  if (access("/dev/kfd", F_OK) != 0 && access("/dev/dxg", F_OK) != 0) { // opening the library takes some 15 ms
    reason = "there is no AMD GPU: the machine has no /dev/kfd";
    return nullptr;
  }
  // The newest version wins: beside ROCm's own there may be a distribution's, which knows fewer GPUs.
  std::vector<std::string> folders;
  if (const char *rocm = std::getenv("ROCM_PATH"); rocm && *rocm)
    folders.push_back(rocm + std::string("/lib/"));
  folders.insert(folders.end(), {"/opt/rocm/lib/", ""});
  for (const char *name : library_names)
    for (const std::string &folder : folders)
      if (void *library = dlopen(path.assign(folder + name).c_str(), RTLD_NOW | RTLD_LOCAL))
        return library;
  reason = fmt::format("the HIP runtime cannot be opened: {}", dlerror());
  return nullptr;
}

struct loaded_driver {
  driver_api api;
  bool usable = false;
  std::string reason;

  loaded_driver() {
    std::string path;
    void *library = open_library(path, reason);
    if (!library)
      return;
    auto find = [&](auto &pointer, const char *symbol) {
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(dlsym(library, symbol));
      if (!pointer && reason.empty())
        reason = fmt::format("the HIP runtime {} has no function {}; version 5 or a newer one is needed", path, symbol);
    };
#define TESSERA_HIP_LOAD(NAME, SYMBOL, ...) find(api.NAME, #SYMBOL);
    TESSERA_HIP_FUNCTIONS(TESSERA_HIP_LOAD)
#undef TESSERA_HIP_LOAD
    find(api.GetErrorName, "hipGetErrorName");
    find(api.GetErrorString, "hipGetErrorString");
    api.LaunchCooperativeKernel = reinterpret_cast<decltype(api.LaunchCooperativeKernel)>(
        dlsym(library, "hipModuleLaunchCooperativeKernel"));
    const bool since_6 = dlsym(library, "hipGetDevicePropertiesR0600");
    find(api.GetDeviceProperties, since_6 ? "hipGetDevicePropertiesR0600" : "hipGetDeviceProperties");
    api.arch_name_offset = since_6 ? property_bytes::arch_name_of_6 : property_bytes::arch_name_of_5;
    if (!reason.empty())
      return;
    int count = 0;
    hipError_t r = api.Init(0); // without a GPU version 5 gives another error than the next call, which is clearer
    if (hipError_t counted = api.GetDeviceCount(&count); r == success || counted == no_device)
      r = counted;
    if (r != success) {
      api.GetLastError();
      reason = fmt::format("the HIP runtime {} {}: {}", path, r == no_device ? "finds no GPU" : "does not start",
                           api.describe(r));
      return;
    }
    api.RuntimeGetVersion(&api.version);
    gpu::watch_shutdown();
    usable = true;
  }
};

std::atomic<const driver_api *> in_use = nullptr;

// Leaked on purpose: kernels at namespace scope unload their modules after static destructors began.
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
const std::string &why_no_driver() { return loaded().reason; }

bool look_at(const driver_api &hip, std::uint64_t address, pointer_attributes &attributes, hipError_t &r) {
  attributes = {};
  r = hip.PointerGetAttributes(&attributes, reinterpret_cast<const void *>(address));
  if (r != success && driver_api::explain(r).empty())
    hip.GetLastError(); // version 5 answers with an error, which the thread's next caller of hipGetLastError would get
  return r == success && attributes.device_pointer;
}

bool is_device_only(std::uint64_t address) {
  const driver_api *hip = in_use.load(std::memory_order_acquire);
  pointer_attributes a;
  hipError_t r;
  return hip && look_at(*hip, address, a, r) && !a.host_pointer && !a.is_managed;
}

std::string driver_api::describe(hipError_t r) const {
  const char *name = GetErrorName(r), *text = GetErrorString(r);
  return name ? fmt::format("{} ({})", name, text ? text : "") : fmt::format("HIP error {}", r);
}

std::string_view driver_api::explain(hipError_t r) {
  switch (r) {
  case hip::illegal_address:
    return "a kernel read or wrote memory outside every allocation; check its masks, offsets and pointer arguments";
  case hip::device_assert: return "a tl::device_assert failed";
  case hip::launch_timeout: return "a kernel ran longer than the driver allows";
  case hip::launch_failure:
    return "a kernel crashed on the device, or a tl::device_assert failed; check its memory accesses";
  default: return {};
  }
}

} // namespace tessera::hip
