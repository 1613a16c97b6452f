// NVTX without its headers: the library libnvToolsExt, or the tool's own library, which asks for a table of function
// pointers to fill in. AMD's ROCTX has the same two functions under other names.
#include "launch_hooks.h"

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <tessera/error.h>

namespace tessera {
namespace detail {

std::atomic<const active_hooks *> hooks_in_use = nullptr;

namespace {

// The interface between NVTX and tools, as NVTX 3 publishes it. A tool gets a function that finds tables by number;
// table 1 finds the function pointers of a module; module 1 are the functions without domains, among them these two.
using function_pointer = void (*)();
enum : unsigned { callbacks_table = 1, core_module = 1, push_ascii = 9, pop_range = 11, core_functions = 16 };

nvtx_functions found;
/// A place for each function of the module; tools fill in those they have.
std::array<function_pointer, core_functions> filled{};
std::array<function_pointer *, core_functions + 1> places{};

int find_functions(unsigned module, function_pointer ***table, unsigned *size) {
  if (module != core_module)
    return 0;
  for (unsigned i = 0; i < core_functions; ++i)
    places[i] = &filled[i];
  *table = places.data();
  *size = core_functions;
  return 1;
}
const void *find_table(unsigned number) {
  static const struct {
    std::size_t size = sizeof(*this);
    int (*find)(unsigned, function_pointer ***, unsigned *) = find_functions;
  } callbacks;
  return number == callbacks_table ? &callbacks : nullptr;
}

bool use_library(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL); // stays: ranges are pushed until the process ends
  if (!library)
    return false;
  for (auto [push, pop] : {std::pair("nvtxRangePushA", "nvtxRangePop"), {"roctxRangePushA", "roctxRangePop"}}) {
    found.push = reinterpret_cast<int (*)(const char *)>(dlsym(library, push));
    found.pop = reinterpret_cast<int (*)()>(dlsym(library, pop));
    if (found.push && found.pop)
      return true;
  }
  auto initialize = reinterpret_cast<int (*)(const void *(*)(unsigned))>(dlsym(library, "InitializeInjectionNvtx2"));
  if (!initialize || !initialize(find_table))
    return false;
  found.push = reinterpret_cast<int (*)(const char *)>(filled[push_ascii]);
  found.pop = reinterpret_cast<int (*)()>(filled[pop_range]);
  return found.push && found.pop;
}

const nvtx_functions *find_nvtx() {
  const char *wanted = std::getenv("TESSERA_NVTX"), *tool = std::getenv("NVTX_INJECTION64_PATH");
  const std::string how = wanted ? wanted : "";
  if (how == "0" || (how.empty() && !tool))
    return nullptr;
  if (how.empty() || how == "1") {
    for (const char *library : {tool, "libnvToolsExt.so.1", "libroctx64.so.4", "libroctx64.so"})
      if (library && use_library(library))
        return &found;
  } else if (use_library(how.c_str())) {
    return &found;
  }
  if (!how.empty()) // asked for by name
    throw error(stage::launch, "TESSERA_NVTX is '" + how + "', but there is no such library with NVTX or ROCTX ranges: name "
                               "one, or unset it");
  return nullptr;
}

struct hook_state {
  std::mutex lock;
  std::vector<std::unique_ptr<active_hooks>> all; ///< kept: launches of other threads may still be calling old ones
  const nvtx_functions *nvtx = nullptr;

  void publish(launch_hooks user) {
    if (!user.before && !user.after && !nvtx) {
      hooks_in_use.store(nullptr, std::memory_order_release);
      return;
    }
    all.push_back(std::make_unique<active_hooks>(active_hooks{std::move(user), nvtx}));
    hooks_in_use.store(all.back().get(), std::memory_order_release);
  }
};
hook_state &state() {
  static auto *s = new hook_state;
  return *s;
}

} // namespace

void start_profiling() {
  static std::once_flag once;
  std::call_once(once, [] {
    const nvtx_functions *nvtx = find_nvtx();
    if (!nvtx)
      return;
    hook_state &s = state();
    std::lock_guard guard(s.lock);
    s.nvtx = nvtx;
    const active_hooks *now = hooks_in_use.load();
    s.publish(now ? now->user : launch_hooks());
  });
}

} // namespace detail

void set_launch_hooks(launch_hooks hooks) {
  detail::hook_state &s = detail::state();
  std::lock_guard guard(s.lock);
  s.publish(std::move(hooks));
}

} // namespace tessera
