#pragma once
// The contract between machine code of the CPU target and the executor that runs it: one plain struct, and the helper
// functions generated code may call. Helpers are resolved when a kernel is loaded; the generated code holds no
// addresses.
//
// A kernel is `extern "C" void NAME(const void *const *args, tessera_cpu_context *ctx)`; args[i] points to the value of
// parameter i. One call runs one warp of one program.
#include <cstddef>
#include <cstdint>

extern "C" {

/// What one warp of one program knows. Generated code reads the first part and adds to the counters; helpers get the
/// pointer back and find their own state behind it.
struct tessera_cpu_context {
  std::uint32_t program[3];
  std::uint32_t grid[3];
  std::uint32_t warp;
  std::uint32_t num_warps;
  std::byte *shared; ///< the program's shared memory
  // Added to only by code compiled with compile_options::count_traffic.
  std::uint64_t bytes_loaded, bytes_stored, flops;
};

/// A position in the user's source, a constant of the generated module. file is "" where unknown.
struct tessera_cpu_site {
  const char *file;
  std::uint32_t line, column;
};

/// One kind of access by every active lane of a warp, in the emulated targets: a constant of the generated module.
struct tessera_cpu_access {
  std::uint32_t lanes; ///< warp size
  std::uint32_t elem_bytes;
  std::uint32_t vec;       ///< consecutive elements per lane
  std::uint32_t alignment; ///< an address that is not a multiple of this faults on the GPU
  std::uint32_t run;       ///< global memory: lane l is `run` bytes after lane l - 1; 0: each lane has a pointer
  tessera_cpu_site site;
};

/// What tessera_cpu_print is told of a value.
enum tessera_cpu_print_kind : std::uint32_t {
  tessera_print_signed = 0,
  tessera_print_unsigned = 1,
  tessera_print_float = 2,
  tessera_print_pointer = 3,
};

// ---- helpers ------------------------------------------------------------------------------------------------------
/// All warps of the program arrive before any goes on.
void tessera_cpu_barrier(tessera_cpu_context *ctx);
/// Ends the kernel with an error if a bit of `failed` (one a lane) is set.
void tessera_cpu_assert(tessera_cpu_context *ctx, std::uint64_t failed, const char *message,
                        const tessera_cpu_site *site);
/// Prints `prefix` and a line for each of `lanes` values of `elem_bytes` (float: 4 or 8; integers: 1 to 8) that are
/// register `reg` of a tile; lanes 1: a scalar, 0: no value.
void tessera_cpu_print(tessera_cpu_context *ctx, const char *prefix, std::uint32_t kind, std::uint32_t hex,
                       std::uint32_t reg, const void *values, std::uint32_t elem_bytes, std::uint32_t lanes);

// Emulated targets only: memory access with the checks of the executor. Bit l of `mask`: lane l is active. Offsets and
// pointers are one a lane, in bytes (of a run: the address of lane 0); `tags` (TargetInfo::storeShared; may be null)
// and `data` are [element][lane]. Loads leave inactive lanes of `data` as they are.
void tessera_cpu_shared_load(tessera_cpu_context *ctx, const tessera_cpu_access *access, std::uint64_t mask,
                             const std::uint32_t *offsets, const std::uint32_t *tags, void *data);
void tessera_cpu_shared_store(tessera_cpu_context *ctx, const tessera_cpu_access *access, std::uint64_t mask,
                              const std::uint32_t *offsets, const std::uint32_t *tags, const void *data);
void tessera_cpu_global_load(tessera_cpu_context *ctx, const tessera_cpu_access *access, std::uint64_t mask,
                             const void *pointers, void *data);
void tessera_cpu_global_store(tessera_cpu_context *ctx, const tessera_cpu_access *access, std::uint64_t mask,
                              const void *pointers, const void *data);
}
