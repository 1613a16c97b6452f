#pragma once
// The contract between machine code of the CPU target and the executor that runs it: one plain struct, and the helper
// functions generated code may call. Helpers are resolved when a kernel is loaded; the generated code holds no
// addresses.
//
// A kernel is `extern "C" void ENTRY(const void *const *args, tessera_cpu_context *ctx)`; args[i] points to the value
// of parameter i. One call runs one warp of one program.
#include <cstddef>
#include <cstdint>

/// ENTRY is the kernel's name with this behind it: a kernel may be called `exp`, and call the C library's.
inline constexpr char tessera_cpu_entry_suffix[] = ".kernel";

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

/// What matrix instructions multiply, in the order of codegen's MatrixType.
enum tessera_cpu_matrix_type : std::uint32_t {
  tessera_matrix_f16,
  tessera_matrix_bf16,
  tessera_matrix_tf32,
  tessera_matrix_f64,
  tessera_matrix_e4m3,
  tessera_matrix_e5m2,
  tessera_matrix_s8,
  tessera_matrix_u8,
  tessera_matrix_f32,
  tessera_matrix_e4m3fnuz,
  tessera_matrix_e5m2fnuz,
};

/// Whose instruction it is: what a register of a lane holds differs between these.
enum tessera_cpu_matrix_unit : std::uint32_t {
  tessera_unit_nvidia,
  tessera_unit_cdna2, ///< MFMA; f16 and bf16 lose denormals
  tessera_unit_cdna3, ///< MFMA, of CDNA4 too
  tessera_unit_rdna3, ///< WMMA
  tessera_unit_rdna4, ///< WMMA
};

/// An emulated matrix instruction of a warp (m, n, k) or wgmma.mma_async (n, k; m is 64), a constant of the generated
/// module. The accumulator's type follows: f64 for f64, i32 for s8 and u8, f32 for all others.
struct tessera_cpu_matrix {
  std::uint32_t m, n, k;
  std::uint32_t a, b;             ///< tessera_cpu_matrix_type
  std::uint32_t trans_a, trans_b; ///< wgmma: the operand in shared memory is m- or n-fastest
  std::uint32_t unit;             ///< tessera_cpu_matrix_unit
  tessera_cpu_site site;
  std::uint32_t registers[4]; ///< wgmma: numbers of A's registers; 0 where nothing says when they are written again
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

// Emulated targets: what matrix units and asynchronous copies do. Registers are [register][lane] of 32 bits (f64: 64).
// What must be waited for happens in the wait: until then shared memory holds what it held, and the results of a wgmma
// are tickets.

/// c = a * b + c, of one warp.
void tessera_cpu_mma(tessera_cpu_context *ctx, const tessera_cpu_matrix *matrix, const void *a, const void *b,
                     void *c);
/// ldmatrix and stmatrix of `count` matrices: lane 8 i + r gives the byte offset of row r of matrix i. `tags` (may be
/// null) are those of the elements of access->elem_bytes in each register: [register][element][lane].
void tessera_cpu_load_matrix(tessera_cpu_context *ctx, const tessera_cpu_access *access, std::uint32_t count,
                             std::uint32_t transposed, const std::uint32_t *offsets, const std::uint32_t *tags,
                             std::uint32_t *registers);
void tessera_cpu_store_matrix(tessera_cpu_context *ctx, const tessera_cpu_access *access, std::uint32_t count,
                              std::uint32_t transposed, const std::uint32_t *offsets, const std::uint32_t *tags,
                              const std::uint32_t *registers);
/// ds_read_b64_tr_b16: lane i of 16 reads 8 bytes at offsets[i] and gets the 16 bits number i % 4 of what lanes i / 4,
/// i / 4 + 4, i / 4 + 8, i / 4 + 12 of the 16 read. `tags` as of tessera_cpu_load_matrix.
void tessera_cpu_load_transposed(tessera_cpu_context *ctx, const tessera_cpu_access *access,
                                 const std::uint32_t *offsets, const std::uint32_t *tags, std::uint32_t *registers);
/// Starts a wgmma. A: four registers, or descriptor `a_matrix` where `a` is null. The accumulator: registers `c`; or,
/// where `c` is null, the ticket `chained` of the wgmma before; or, where that is 0, zeros. Returns a ticket: until the
/// wait, result register i is ticket + i in every lane.
std::uint32_t tessera_cpu_wgmma_start(tessera_cpu_context *ctx, const tessera_cpu_matrix *matrix,
                                      const std::uint32_t *a, std::uint64_t a_matrix, std::uint64_t b_matrix,
                                      const std::uint32_t *c, std::uint32_t chained);
void tessera_cpu_wgmma_fence(tessera_cpu_context *ctx);
void tessera_cpu_wgmma_commit(tessera_cpu_context *ctx);
/// Completes all but the `pending` youngest groups, and puts results in the place of their tickets in `count`
/// registers.
void tessera_cpu_wgmma_wait(tessera_cpu_context *ctx, std::uint32_t pending, std::uint32_t count,
                            std::uint32_t *registers);
/// Register `number` (tessera_cpu_matrix::registers) gets a new value; no wgmma in flight may read it.
void tessera_cpu_register_written(tessera_cpu_context *ctx, std::uint32_t number, const tessera_cpu_site *site);
/// Something other than a wgmma or a wait reads the 32 lanes of a register that a wgmma may not have written yet.
void tessera_cpu_register_read(tessera_cpu_context *ctx, const std::uint32_t *lanes, const tessera_cpu_site *site);
/// fence.proxy.async: what this warp wrote to shared memory may be read by wgmma, after a barrier.
void tessera_cpu_fence_async(tessera_cpu_context *ctx);
/// cp.async, global_load_lds: each active lane copies access->elem_bytes * vec bytes, or writes zeros where its bit of
/// `reads` is not set.
void tessera_cpu_copy_start(tessera_cpu_context *ctx, const tessera_cpu_access *access, std::uint64_t mask,
                            std::uint64_t reads, const std::uint32_t *offsets, const void *pointers,
                            const std::uint32_t *tags);
void tessera_cpu_copy_commit(tessera_cpu_context *ctx);
void tessera_cpu_copy_wait(tessera_cpu_context *ctx, std::uint32_t pending);
}
