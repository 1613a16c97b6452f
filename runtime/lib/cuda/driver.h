#pragma once
// The CUDA driver API, opened at run time. Prototypes are declared here, so that neither building nor running needs a
// toolkit; a machine without a driver simply has no CUDA devices.
#include "../gpu/driver.h"

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>

namespace tessera::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUlinkState = struct CUlinkState_st *;

/// The results this library tells apart.
enum result : CUresult {
  success = 0,
  out_of_memory = 2,
  deinitialized = 4,
  no_device = 100,
  invalid_ptx = 218,
  unsupported_ptx_version = 222,
  peer_access_already_enabled = 704,
  not_ready = 600,
  illegal_address = 700,
  launch_out_of_resources = 701,
  launch_timeout = 702,
  cooperative_too_large = 720,
  device_assert = 710,
  hardware_stack_error = 714,
  illegal_instruction = 715,
  misaligned_address = 716,
  invalid_address_space = 717,
  invalid_pc = 718,
  launch_failed = 719,
  capture_unsupported = 900,
  capture_invalidated = 901,
  capture_implicit = 906,
};

enum device_attribute : int {
  max_threads_per_block = 1,
  max_grid_x = 5,
  max_grid_y = 6,
  max_grid_z = 7,
  clock_khz = 13,
  sm_count = 16,
  memory_clock_khz = 36,
  memory_bus_bits = 37,
  l2_bytes = 38,
  compute_major = 75,
  compute_minor = 76,
  shared_per_sm = 81,
  registers_per_sm = 82,
  shared_per_block_optin = 97,
};

enum function_attribute : int { local_bytes = 3, num_registers = 4, max_dynamic_shared = 8, non_portable_cluster = 14 };
enum pointer_attribute : int {
  memory_type = 2,
  device_pointer = 3,
  is_managed = 8,
  device_ordinal = 9,
  range_start = 11,
  range_size = 12
};
enum memory_kind : unsigned { no_memory = 0, host_memory = 1, device_memory = 2, array_memory = 3, unified_memory = 4 };
enum jit_option : int { error_log = 5, error_log_bytes = 6, generate_line_info = 12 };
enum jit_input : int { input_ptx = 1 };

/// The structures of cuLaunchKernelEx.
enum launch_attribute_id : int { launch_cooperative = 2, launch_cluster = 4 };
struct launch_attribute {
  launch_attribute_id id;
  alignas(8) union {
    int flag;
    unsigned dimension[3];
    char bytes[64];
  } value;
};
struct launch_config {
  unsigned grid[3], block[3], shared_bytes;
  CUstream stream;
  launch_attribute *attributes;
  unsigned count;
};
static_assert(sizeof(launch_attribute) == 72 && sizeof(launch_config) == 56);

// name in this table, exported symbol, parameters
#define TESSERA_CUDA_FUNCTIONS(F)                                                                                      \
  F(GetErrorName, "cuGetErrorName", CUresult, const char **)                                                           \
  F(GetErrorString, "cuGetErrorString", CUresult, const char **)                                                       \
  F(Init, "cuInit", unsigned)                                                                                          \
  F(DriverGetVersion, "cuDriverGetVersion", int *)                                                                     \
  F(DeviceGetCount, "cuDeviceGetCount", int *)                                                                         \
  F(DeviceGet, "cuDeviceGet", CUdevice *, int)                                                                         \
  F(DeviceGetName, "cuDeviceGetName", char *, int, CUdevice)                                                           \
  F(DeviceGetAttribute, "cuDeviceGetAttribute", int *, int, CUdevice)                                                  \
  F(DeviceTotalMem, "cuDeviceTotalMem_v2", std::size_t *, CUdevice)                                                    \
  F(DeviceCanAccessPeer, "cuDeviceCanAccessPeer", int *, CUdevice, CUdevice)                                           \
  F(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", CUcontext *, CUdevice)                                         \
  F(CtxGetCurrent, "cuCtxGetCurrent", CUcontext *)                                                                     \
  F(CtxPushCurrent, "cuCtxPushCurrent_v2", CUcontext)                                                                  \
  F(CtxPopCurrent, "cuCtxPopCurrent_v2", CUcontext *)                                                                  \
  F(CtxGetDevice, "cuCtxGetDevice", CUdevice *)                                                                        \
  F(Synchronize, "cuCtxSynchronize")                                                                                   \
  F(CtxEnablePeerAccess, "cuCtxEnablePeerAccess", CUcontext, unsigned)                                                 \
  F(MemGetInfo, "cuMemGetInfo_v2", std::size_t *, std::size_t *)                                                       \
  F(MemAlloc, "cuMemAlloc_v2", CUdeviceptr *, std::size_t)                                                             \
  F(MemFree, "cuMemFree_v2", CUdeviceptr)                                                                              \
  F(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", CUdeviceptr, const void *, std::size_t, CUstream)                         \
  F(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", void *, CUdeviceptr, std::size_t, CUstream)                               \
  F(MemcpyDtoDAsync, "cuMemcpyAsync", CUdeviceptr, CUdeviceptr, std::size_t, CUstream)                                 \
  F(MemsetD8Async, "cuMemsetD8Async", CUdeviceptr, unsigned char, std::size_t, CUstream)                               \
  F(MemsetD16Async, "cuMemsetD16Async", CUdeviceptr, unsigned short, std::size_t, CUstream)                            \
  F(MemsetD32Async, "cuMemsetD32Async", CUdeviceptr, unsigned, std::size_t, CUstream)                                  \
  F(PointerGetAttributes, "cuPointerGetAttributes", unsigned, int *, void **, CUdeviceptr)                             \
  F(StreamCreate, "cuStreamCreate", CUstream *, unsigned)                                                              \
  F(StreamGetCtx, "cuStreamGetCtx", CUstream, CUcontext *)                                                             \
  F(StreamDestroy, "cuStreamDestroy_v2", CUstream)                                                                     \
  F(StreamSynchronize, "cuStreamSynchronize", CUstream)                                                                \
  F(StreamWaitEvent, "cuStreamWaitEvent", CUstream, CUevent, unsigned)                                                 \
  F(EventCreate, "cuEventCreate", CUevent *, unsigned)                                                                 \
  F(EventDestroy, "cuEventDestroy_v2", CUevent)                                                                        \
  F(EventRecord, "cuEventRecord", CUevent, CUstream)                                                                   \
  F(EventSynchronize, "cuEventSynchronize", CUevent)                                                                   \
  F(EventElapsedTime, "cuEventElapsedTime", float *, CUevent, CUevent)                                                 \
  F(LinkCreate, "cuLinkCreate_v2", unsigned, int *, void **, CUlinkState *)                                            \
  F(LinkAddData, "cuLinkAddData_v2", CUlinkState, int, void *, std::size_t, const char *, unsigned, int *, void **)    \
  F(LinkComplete, "cuLinkComplete", CUlinkState, void **, std::size_t *)                                               \
  F(LinkDestroy, "cuLinkDestroy", CUlinkState)                                                                         \
  F(ModuleLoadData, "cuModuleLoadData", CUmodule *, const void *)                                                      \
  F(ModuleUnload, "cuModuleUnload", CUmodule)                                                                          \
  F(ModuleGetFunction, "cuModuleGetFunction", CUfunction *, CUmodule, const char *)                                    \
  F(FuncGetAttribute, "cuFuncGetAttribute", int *, int, CUfunction)                                                    \
  F(FuncSetAttribute, "cuFuncSetAttribute", CUfunction, int, int)                                                      \
  F(LaunchKernel, "cuLaunchKernel", CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,  \
    CUstream, void **, void **)

class scoped_context;

/// One pointer per driver function.
struct driver_api {
#define TESSERA_CUDA_MEMBER(NAME, SYMBOL, ...) CUresult (*NAME)(__VA_ARGS__) = nullptr;
  TESSERA_CUDA_FUNCTIONS(TESSERA_CUDA_MEMBER)
#undef TESSERA_CUDA_MEMBER
  /// Null in drivers before CUDA 12.
  CUresult (*LaunchKernelEx)(const launch_config *, CUfunction, void **, void **) = nullptr;
  int version = 0; ///< 13000 is CUDA 13.0

  // What gpu/driver.h asks of a table.
  using result = CUresult;
  using stream = CUstream;
  using event = CUevent;
  using module = CUmodule;
  using function = CUfunction;
  using address = CUdeviceptr;
  using place = CUcontext;
  using scope = scoped_context;
  static constexpr CUresult success = cuda::success, out_of_memory = cuda::out_of_memory,
                            capture_unsupported = cuda::capture_unsupported, capture_implicit = cuda::capture_implicit;
  static constexpr const char *kind = "cuda", *allocators = "cudaMalloc, cudaMallocManaged or cudaHostRegister";
  std::string describe(CUresult r) const;
  static std::string_view explain(CUresult r);
};

/// The driver, opened and initialised at the first call; nullptr where there is none. $TESSERA_LIBCUDA names another
/// library.
const driver_api *find_driver();
/// Why find_driver() gave nullptr, as a sentence.
const std::string &why_no_driver();

/// Whether `address` is memory of a GPU that the host cannot use. Asks nothing where the process uses no CUDA GPU.
bool is_device_only(std::uint64_t address);
/// A context that pointers can be looked up in by threads that have none.
void remember_context(CUcontext context) noexcept;

/// Makes `context` the calling thread's current one for a scope. Nothing happens where it is current already.
class scoped_context {
public:
  scoped_context(const driver_api &cu, CUcontext context, std::nothrow_t) noexcept : cu_(cu) {
    CUcontext current = nullptr;
    if (cu.CtxGetCurrent(&current) == success && current == context) [[likely]]
      return;
    result_ = cu.CtxPushCurrent(context);
    pushed_ = result_ == success;
  }
  scoped_context(const driver_api &cu, CUcontext context) : scoped_context(cu, context, std::nothrow) {
    gpu::check(cu, result_, "making the device current");
  }
  ~scoped_context() {
    CUcontext old;
    if (pushed_)
      cu_.CtxPopCurrent(&old);
  }
  scoped_context(const scoped_context &) = delete;
  scoped_context &operator=(const scoped_context &) = delete;
  explicit operator bool() const noexcept { return result_ == success; }

private:
  const driver_api &cu_;
  CUresult result_ = success;
  bool pushed_ = false;
};

} // namespace tessera::cuda
