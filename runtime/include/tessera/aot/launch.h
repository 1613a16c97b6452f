/* Launching kernels that were compiled ahead of time, from C or C++.
 *
 * tessera_add_kernels (CMake) turns kernels into a library and a header with one function for each; this is what that
 * header includes. Programs need tessera::launch (libtessera-launch.so): neither the compiler nor LLVM is loaded.
 *
 * Every function gives 0, or another number where something went wrong: tessera_error() then says what. They may be called
 * from any thread.
 */
#ifndef TESSERA_AOT_LAUNCH_H
#define TESSERA_AOT_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TESSERA_LAUNCH_API __attribute__((visibility("default")))

/* Where a kernel runs, and in which queue. A launch on the CPU returns when its programs are done. */
typedef struct tessera_stream {
  int device;   /* the number of a GPU: CUDA devices first, then those of HIP; -1: the CPU */
  void *native; /* a CUstream, cudaStream_t or hipStream_t; NULL: the device's default stream */
} tessera_stream;

/* Programs along x, y and z. A zero: nothing is launched. */
typedef struct tessera_grid {
  int64_t x, y, z;
} tessera_grid;

/* What went wrong in the calling thread's last call that failed, as a sentence; valid until its next call. */
TESSERA_LAUNCH_API const char *tessera_error(void);

/* How many GPUs there are; 0 on a machine without a driver. */
TESSERA_LAUNCH_API int tessera_count_devices(int *count);
/* What a device runs code for, such as "cuda:sm_90a", "hip:gfx942" or "cpu"; valid until the process ends. */
TESSERA_LAUNCH_API int tessera_target_of(int device, const char **target);
/* Memory of a device, aligned to 256 bytes. Memory from cudaMalloc, hipMalloc and others serves as well. */
TESSERA_LAUNCH_API int tessera_allocate(int device, size_t bytes, void **memory);
TESSERA_LAUNCH_API int tessera_release(int device, void *memory);
/* Between the host and the stream's device, after the work of the stream; done when they return. */
TESSERA_LAUNCH_API int tessera_copy_to_device(tessera_stream s, void *to, const void *from, size_t bytes);
TESSERA_LAUNCH_API int tessera_copy_to_host(tessera_stream s, void *to, const void *from, size_t bytes);
TESSERA_LAUNCH_API int tessera_create_stream(int device, tessera_stream *s);
TESSERA_LAUNCH_API int tessera_destroy_stream(tessera_stream s);
/* Waits for the stream's work; fails with what a kernel did wrong. */
TESSERA_LAUNCH_API int tessera_synchronize(tessera_stream s);

/* ---- what generated code hands over ------------------------------------------------------------------------------- */

typedef struct tessera_parameter {
  uint8_t bytes;   /* 1, 2, 4 or 8 */
  uint8_t pointer; /* boolean */
  uint8_t integer; /* boolean */
} tessera_parameter;

/* Machine code of one target and specialisation: bit i of a mask speaks of parameter i. */
typedef struct tessera_image {
  const char *target; /* "cuda:sm_90a", "hip:gfx942", "cpu" */
  const char *symbol;
  uint64_t divisible_by_16, equal_to_1;
  const void *code, *ptx; /* the GPU's machine code (cubin, hsaco) and PTX; NULL where there is none */
  size_t code_bytes, ptx_bytes;
  void (*function)(const void *const *, void *); /* the CPU's code */
  uint8_t waits;                                 /* whether its warps wait for one another */
  uint32_t num_warps, warp_size, shared_bytes;
} tessera_image;

typedef struct tessera_kernel {
  const char *name;
  const tessera_parameter *parameters;
  const tessera_image *images;
  uint32_t num_parameters, num_images;
  uint32_t cluster[3]; /* programs that run on one part of the GPU */
  uint8_t cooperative; /* boolean: all programs run at the same time */
  void *state;         /* the runtime's; NULL before the first launch */
} tessera_kernel;

/* values[i]: parameter i in its first bytes, the others zero. */
TESSERA_LAUNCH_API int tessera_launch(tessera_kernel *kernel, tessera_stream s, tessera_grid programs, const uint64_t *values);
/* Loads what the launch would need, so that it can be captured into a graph. */
TESSERA_LAUNCH_API int tessera_prepare(tessera_kernel *kernel, tessera_stream s);

#ifdef __cplusplus
}
#endif
#endif
