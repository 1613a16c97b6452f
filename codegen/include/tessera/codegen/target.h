#pragma once
// What a kernel is compiled for, and with which options. Plain C++: safe in public headers.
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/export.h>

namespace tessera {

enum class target_kind : std::uint8_t { cpu, cuda, hip };

/// A compilation target, written "cpu", "cpu:emulate=sm_90a", "cuda:sm_90a" or "hip:gfx942".
struct target {
  target_kind kind = target_kind::cpu;
  /// "sm_90a", "gfx942", …; on the CPU: empty for native code, or the architecture emulated.
  std::string arch;

  [[nodiscard]] bool emulated() const noexcept { return kind == target_kind::cpu && !arch.empty(); }
  /// Lanes of a warp: 32 or 64 on GPUs and emulated GPUs; the host's f32 SIMD width on the CPU.
  [[nodiscard]] TESSERA_API unsigned warp_size() const;
  /// Bytes of shared memory one program may use.
  [[nodiscard]] TESSERA_API unsigned max_shared_bytes() const;
  /// Depth of software pipelines where the options do not say; 1: none.
  [[nodiscard]] TESSERA_API int default_num_stages() const;
  [[nodiscard]] TESSERA_API std::string str() const;
  bool operator==(const target &) const = default;
};

/// Parses the text forms above. Throws tessera::error (stage launch) naming the known ones.
TESSERA_API target parse_target(std::string_view text);

/// Processor and features that the CPU target, emulating or not, makes code for; belongs in the cache key. TESSERA_CPU_ISA
/// (sse2, avx2, avx512) lowers it.
TESSERA_API std::string host_cpu();

/// What decides the machine code for `t` besides the IR and the options, in one line: the builds of this library and of
/// LLVM, the processor or the assembler. Belongs in the cache key; takes microseconds and starts nothing of LLVM.
TESSERA_API std::string toolchain(const target &t);
/// Whether a `ptxas` was found: else a CUDA driver assembles, and its version decides too.
TESSERA_API bool has_assembler();

/// Options that change the code of a kernel. All of them are part of the cache key.
struct compile_options {
  int num_warps = 0;          ///< warps of a program, a power of two; 0: 4 on a GPU, more for large tiles; on the CPU by tile size
  int num_stages = 0;         ///< software pipelining depth; 0: the target's default
  int num_ctas = 1;           ///< programs of a cluster
  int maxnreg = 0;            ///< registers a thread may use; 0: no limit
  bool precise_math = false;  ///< f32 exp, log, div, sqrt: IEEE or within 1 ulp instead of the fast forms
  bool enable_fp_fusion = true; ///< a * b + c may become one fma
  bool line_info = true;      ///< source lines of the lambda in the machine code
  bool debug = false;         ///< device_assert is compiled in
  bool count_traffic = false; ///< CPU and emulated targets: count bytes and flops (cpu_counters)
  bool operator==(const compile_options &) const = default;
};

} // namespace tessera
