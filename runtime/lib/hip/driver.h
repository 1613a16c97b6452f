#pragma once
// AMD's HIP runtime (libamdhip64.so, versions 5 to 7), opened at run time. Prototypes are declared here, so that neither
// building nor running needs ROCm; a machine without it simply has no HIP devices. tests/unit/runtime/hip_headers.cpp
// compares them with HIP's own headers.
#include "../gpu/driver.h"

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>

struct ihipStream_t;
struct ihipEvent_t;
struct ihipModule_t;
struct ihipModuleSymbol_t;

namespace tessera::hip {

using hipError_t = int;
using hipDevice_t = int;
using hipDeviceptr_t = void *;
using hipStream_t = ihipStream_t *;
using hipEvent_t = ihipEvent_t *;
using hipModule_t = ihipModule_t *;
using hipFunction_t = ihipModuleSymbol_t *;

/// The results this library tells apart.
enum result : hipError_t {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  no_device = 100,
  no_binary_for_gpu = 209,
  illegal_address = 700,
  launch_timeout = 702,
  peer_access_already_enabled = 704,
  device_assert = 710,
  launch_failure = 719,
  cooperative_too_large = 720,
  capture_unsupported = 900,
  capture_implicit = 906,
};

/// The same numbers in all versions, unlike the offsets of hipDeviceProp_t.
enum device_attribute : int {
  clock_khz = 5,
  l2_bytes = 19,
  max_grid_x = 29,
  max_grid_y = 30,
  max_grid_z = 31,
  max_threads_per_block = 56,
  multiprocessor_count = 63,
  registers_per_block = 71,
  registers_per_multiprocessor = 72, ///< not in version 5
  shared_per_block = 74,
  warp_size = 87,
  shared_per_multiprocessor = 10002,
};
enum function_attribute : int { local_bytes = 3, num_registers = 4 };

/// hipPointerAttribute_t. Its first member's values differ between versions 5 and 6, so nothing here reads it: memory
/// that HIP does not know has no device pointer, memory of the host has a host pointer.
struct pointer_attributes {
  int type, device;
  void *device_pointer, *host_pointer;
  int is_managed;
  unsigned flags;
};

/// hipDeviceProp_t, which grew and was reordered in version 6: only the name of the architecture is read, such as
/// "gfx942:sramecc+:xnack-". No attribute tells it.
struct property_bytes {
  static constexpr std::size_t arch_name_of_5 = 396; ///< hipGetDeviceProperties before version 6
  static constexpr std::size_t arch_name_of_6 = 1160; ///< hipGetDevicePropertiesR0600
  alignas(8) char bytes[8192]; ///< with room for what later versions add
};

// name in this table, exported symbol, parameters
#define TESSERA_HIP_FUNCTIONS(F)                                                                                       \
  F(Init, hipInit, unsigned)                                                                                           \
  F(RuntimeGetVersion, hipRuntimeGetVersion, int *)                                                                    \
  F(GetDeviceCount, hipGetDeviceCount, int *)                                                                          \
  F(GetDevice, hipGetDevice, int *)                                                                                    \
  F(SetDevice, hipSetDevice, int)                                                                                      \
  F(DeviceGetName, hipDeviceGetName, char *, int, hipDevice_t)                                                         \
  F(DeviceGetAttribute, hipDeviceGetAttribute, int *, int, int)                                                        \
  F(DeviceTotalMem, hipDeviceTotalMem, std::size_t *, hipDevice_t)                                                     \
  F(DeviceCanAccessPeer, hipDeviceCanAccessPeer, int *, int, int)                                                      \
  F(DeviceEnablePeerAccess, hipDeviceEnablePeerAccess, int, unsigned)                                                  \
  F(GetLastError, hipGetLastError)                                                                                     \
  F(Synchronize, hipDeviceSynchronize)                                                                                 \
  F(MemGetInfo, hipMemGetInfo, std::size_t *, std::size_t *)                                                           \
  F(MemAlloc, hipMalloc, void **, std::size_t)                                                                         \
  F(MemFree, hipFree, void *)                                                                                          \
  F(MemcpyHtoDAsync, hipMemcpyHtoDAsync, hipDeviceptr_t, const void *, std::size_t, hipStream_t)                       \
  F(MemcpyDtoHAsync, hipMemcpyDtoHAsync, void *, hipDeviceptr_t, std::size_t, hipStream_t)                             \
  F(MemcpyDtoDAsync, hipMemcpyDtoDAsync, hipDeviceptr_t, hipDeviceptr_t, std::size_t, hipStream_t)                     \
  F(MemsetD8Async, hipMemsetD8Async, hipDeviceptr_t, unsigned char, std::size_t, hipStream_t)                          \
  F(MemsetD16Async, hipMemsetD16Async, hipDeviceptr_t, unsigned short, std::size_t, hipStream_t)                       \
  F(MemsetD32Async, hipMemsetD32Async, hipDeviceptr_t, int, std::size_t, hipStream_t)                                  \
  F(PointerGetAttributes, hipPointerGetAttributes, pointer_attributes *, const void *)                                 \
  F(MemGetAddressRange, hipMemGetAddressRange, hipDeviceptr_t *, std::size_t *, hipDeviceptr_t)                        \
  F(StreamCreate, hipStreamCreateWithFlags, hipStream_t *, unsigned)                                                   \
  F(StreamDestroy, hipStreamDestroy, hipStream_t)                                                                      \
  F(StreamSynchronize, hipStreamSynchronize, hipStream_t)                                                              \
  F(StreamWaitEvent, hipStreamWaitEvent, hipStream_t, hipEvent_t, unsigned)                                            \
  F(GetStreamDeviceId, hipGetStreamDeviceId, hipStream_t)                                                              \
  F(EventCreate, hipEventCreateWithFlags, hipEvent_t *, unsigned)                                                      \
  F(EventDestroy, hipEventDestroy, hipEvent_t)                                                                         \
  F(EventRecord, hipEventRecord, hipEvent_t, hipStream_t)                                                              \
  F(EventSynchronize, hipEventSynchronize, hipEvent_t)                                                                 \
  F(EventElapsedTime, hipEventElapsedTime, float *, hipEvent_t, hipEvent_t)                                            \
  F(ModuleLoadData, hipModuleLoadData, hipModule_t *, const void *)                                                    \
  F(ModuleUnload, hipModuleUnload, hipModule_t)                                                                        \
  F(ModuleGetFunction, hipModuleGetFunction, hipFunction_t *, hipModule_t, const char *)                               \
  F(FuncGetAttribute, hipFuncGetAttribute, int *, int, hipFunction_t)                                                  \
  F(LaunchKernel, hipModuleLaunchKernel, hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,    \
    unsigned, hipStream_t, void **, void **)

class scoped_device;

/// One pointer per function.
struct driver_api {
#define TESSERA_HIP_MEMBER(NAME, SYMBOL, ...) hipError_t (*NAME)(__VA_ARGS__) = nullptr;
  TESSERA_HIP_FUNCTIONS(TESSERA_HIP_MEMBER)
#undef TESSERA_HIP_MEMBER
  const char *(*GetErrorName)(hipError_t) = nullptr;
  const char *(*GetErrorString)(hipError_t) = nullptr;
  /// hipModuleLaunchCooperativeKernel; null in early releases of version 5.
  hipError_t (*LaunchCooperativeKernel)(hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                        unsigned, hipStream_t, void **) = nullptr;
  hipError_t (*GetDeviceProperties)(property_bytes *, int) = nullptr; ///< hipGetDevicePropertiesR0600 where it is
  std::size_t arch_name_offset = 0;                                      ///< in what GetDeviceProperties fills in
  int version = 0;                                                       ///< 60342134 is HIP 6.3.42134

  // What gpu/driver.h asks of a table.
  using result = hipError_t;
  using stream = hipStream_t;
  using event = hipEvent_t;
  using module = hipModule_t;
  using function = hipFunction_t;
  using address = hipDeviceptr_t;
  using place = int; ///< the device's ordinal
  using scope = scoped_device;
  static constexpr hipError_t success = hip::success, out_of_memory = hip::out_of_memory,
                              capture_unsupported = hip::capture_unsupported, capture_implicit = hip::capture_implicit;
  static constexpr const char *kind = "hip", *allocators = "hipMalloc, hipMallocManaged or hipHostRegister";
  std::string describe(hipError_t r) const;
  static std::string_view explain(hipError_t r);
};

/// The library, opened and initialised at the first call; nullptr where there is none. $TESSERA_LIBHIP names another one.
/// Without it the one that the process holds already is taken, and nothing is opened on machines without AMD's kernel
/// driver.
const driver_api *find_driver();
/// Why find_driver() gave nullptr, as a sentence.
const std::string &why_no_driver();

/// Whether `address` is memory of a GPU that the host cannot use. Asks nothing where the process uses no HIP GPU.
bool is_device_only(std::uint64_t address);
/// What hipPointerGetAttributes says of `address`; false where HIP does not know it. Leaves no error behind for others.
bool look_at(const driver_api &hip, std::uint64_t address, pointer_attributes &attributes, hipError_t &result);

/// Makes a device the calling thread's current one for a scope. Nothing happens where it is current already.
class scoped_device {
public:
  scoped_device(const driver_api &hip, int ordinal, std::nothrow_t) noexcept : hip_(hip) {
    int current = -1;
    result_ = hip.GetDevice(&current);
    if (result_ == success && current == ordinal) [[likely]]
      return;
    before_ = result_ == success ? current : -1;
    result_ = hip.SetDevice(ordinal);
  }
  scoped_device(const driver_api &hip, int ordinal) : scoped_device(hip, ordinal, std::nothrow) {
    gpu::check(hip, result_, "making the device current");
  }
  ~scoped_device() {
    if (before_ >= 0)
      hip_.SetDevice(before_);
  }
  scoped_device(const scoped_device &) = delete;
  scoped_device &operator=(const scoped_device &) = delete;
  explicit operator bool() const noexcept { return result_ == success; }

private:
  const driver_api &hip_;
  hipError_t result_ = success;
  int before_ = -1;
};

} // namespace tessera::hip
