#pragma once
// From ttir to machine code: the one entry the runtime and the tools call. Plain C++, no LLVM types.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/codegen/target.h>
#include <tessera/export.h>
#include <tessera/ir/ir_module.h>

namespace tessera {

/// One scalar or pointer the machine code takes, in order.
struct kernel_param {
  std::uint8_t size = 8; ///< bytes
  bool pointer = false;
};

/// What the launcher needs to know of a compiled kernel.
struct kernel_metadata {
  std::string name;              ///< symbol to look up
  int num_warps = 4;
  int warp_size = 32;
  int num_ctas = 1;
  unsigned shared_bytes = 0;     ///< dynamic shared memory a program needs
  std::vector<kernel_param> params;
};

struct stage_time {
  std::string name; ///< a pass, "llir", "llvm-opt", "isel", "ptxas", …
  double milliseconds = 0;
};

/// The text or bytes of every stage, in pipeline order ("ttir", "ttgir", "llir", "ptx", "cubin" | "asm", "obj" | …).
struct compiled_kernel {
  target compiled_for;
  compile_options options; ///< as used: zeros replaced by what was chosen
  kernel_metadata metadata;
  std::vector<std::pair<std::string, std::string>> stages;
  std::vector<stage_time> times;
  int registers = -1, spills = -1; ///< of a thread, the latter in bytes; from the assembler or the driver; -1: unknown
  bool cached = false; ///< found in the compile cache instead of being compiled

  /// The stage's content, or nullptr.
  [[nodiscard]] const std::string *find(std::string_view stage) const {
    for (auto &[n, s] : stages)
      if (n == stage) return &s;
    return nullptr;
  }
};

/// Compiles `module` (ttir, or ttgir made for the same target) as far as `last_stage` ("" = machine code).
/// The module is consumed by the passes. Throws tessera::error.
TESSERA_API compiled_kernel compile(ir_module &module, const target &t, const compile_options &options = {},
                                    std::string_view last_stage = {});
/// The same; when it throws, `out` holds the stages reached until then.
TESSERA_API void compile_into(compiled_kernel &out, ir_module &module, const target &t, const compile_options &options = {},
                              std::string_view last_stage = {});

} // namespace tessera
