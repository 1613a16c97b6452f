#pragma once
// Kernels register themselves under the name of their file; main prints those of one file.
#include <functional>
#include <string>
#include <vector>

#include <tessera/tile.h>

namespace tl = tessera::tl;

struct traced_kernel {
  std::string file, name;
  std::function<std::string()> print;
};
std::vector<traced_kernel> &traced_kernels();

/// `const trace k("name", [](…) { … }, config{}, {specs});`
struct trace {
  template <class F, class Config = tessera::no_config>
  trace(const char *name, F f, Config c = {}, std::vector<tessera::param_spec> specs = {}, bool locations = false,
        std::source_location w = std::source_location::current()) {
    traced_kernels().push_back(
        {w.file_name(), name, [=] { return tessera::trace_kernel(name, f, c, specs, w).str(locations); }});
  }
};
