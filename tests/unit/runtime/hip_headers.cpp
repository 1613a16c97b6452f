// What runtime/lib/hip/driver.h declares, against HIP's own header: there is nothing to run, it must compile.
#include "../../../runtime/lib/hip/driver.h"

#include <type_traits>

#define __HIP_PLATFORM_AMD__ 1
#define __HIP_DISABLE_CPP_FUNCTIONS__ 1 // its overloads have no address
#include <hip/hip_runtime_api.h>

namespace {

namespace ours = tessera::hip;

/// Enumerations are passed as the integers they are stored in. `const T *` and `T *` are passed alike: version 5 forgot some.
template <class T> struct passed { using type = T; };
template <class T>
  requires std::is_enum_v<T>
struct passed<T> {
  static_assert(sizeof(T) == sizeof(int));
  using type = int;
};
template <class T> struct passed<const T *> { using type = T *; };
template <> struct passed<hipPointerAttribute_t *> { using type = ours::pointer_attributes *; };
template <> struct passed<hipDeviceProp_t *> { using type = ours::property_bytes *; };

template <class F> struct call;
template <class R, class... A> struct call<R (*)(A...)> {
  using type = typename passed<R>::type(typename passed<A>::type...);
};
template <class F> struct call<F *const> : call<F *> {};

#define SAME(NAME, SYMBOL, ...)                                                                                        \
  static_assert(std::is_same_v<call<decltype(ours::driver_api::NAME)>::type, call<decltype(&SYMBOL)>::type>, #SYMBOL);
TESSERA_HIP_FUNCTIONS(SAME)
#if HIP_VERSION_MAJOR >= 6
SAME(LaunchCooperativeKernel, hipModuleLaunchCooperativeKernel)
#endif
SAME(GetErrorName, hipGetErrorName)
SAME(GetErrorString, hipGetErrorString)
SAME(GetDeviceProperties, hipGetDeviceProperties)

static_assert(std::is_same_v<ours::hipStream_t, hipStream_t> && std::is_same_v<ours::hipEvent_t, hipEvent_t> &&
              std::is_same_v<ours::hipModule_t, hipModule_t> && std::is_same_v<ours::hipFunction_t, hipFunction_t> &&
              std::is_same_v<ours::hipDeviceptr_t, hipDeviceptr_t> && std::is_same_v<ours::hipDevice_t, hipDevice_t>);

#define EQUAL(OURS, THEIRS) static_assert(int(ours::OURS) == int(THEIRS), #THEIRS);
EQUAL(success, hipSuccess)
EQUAL(invalid_value, hipErrorInvalidValue)
EQUAL(out_of_memory, hipErrorOutOfMemory)
EQUAL(no_device, hipErrorNoDevice)
EQUAL(no_binary_for_gpu, hipErrorNoBinaryForGpu)
EQUAL(illegal_address, hipErrorIllegalAddress)
EQUAL(launch_timeout, hipErrorLaunchTimeOut)
EQUAL(peer_access_already_enabled, hipErrorPeerAccessAlreadyEnabled)
EQUAL(device_assert, hipErrorAssert)
EQUAL(launch_failure, hipErrorLaunchFailure)
EQUAL(cooperative_too_large, hipErrorCooperativeLaunchTooLarge)
EQUAL(capture_unsupported, hipErrorStreamCaptureUnsupported)
EQUAL(capture_implicit, hipErrorStreamCaptureImplicit)

EQUAL(clock_khz, hipDeviceAttributeClockRate)
EQUAL(l2_bytes, hipDeviceAttributeL2CacheSize)
EQUAL(max_grid_x, hipDeviceAttributeMaxGridDimX)
EQUAL(max_grid_y, hipDeviceAttributeMaxGridDimY)
EQUAL(max_grid_z, hipDeviceAttributeMaxGridDimZ)
EQUAL(max_threads_per_block, hipDeviceAttributeMaxThreadsPerBlock)
EQUAL(multiprocessor_count, hipDeviceAttributeMultiprocessorCount)
EQUAL(registers_per_block, hipDeviceAttributeMaxRegistersPerBlock)
EQUAL(registers_per_multiprocessor, hipDeviceAttributeMaxRegistersPerMultiprocessor)
EQUAL(shared_per_block, hipDeviceAttributeMaxSharedMemoryPerBlock)
EQUAL(warp_size, hipDeviceAttributeWarpSize)
EQUAL(shared_per_multiprocessor, hipDeviceAttributeMaxSharedMemoryPerMultiprocessor)
EQUAL(local_bytes, HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
EQUAL(num_registers, HIP_FUNC_ATTRIBUTE_NUM_REGS)

// Where the two structures keep what is read of them.
#define SAME_PLACE(OURS, THEIRS)                                                                                       \
  static_assert(offsetof(ours::pointer_attributes, OURS) == offsetof(hipPointerAttribute_t, THEIRS), #THEIRS);
SAME_PLACE(device, device)
SAME_PLACE(device_pointer, devicePointer)
SAME_PLACE(host_pointer, hostPointer)
SAME_PLACE(is_managed, isManaged)
SAME_PLACE(flags, allocationFlags)
static_assert(sizeof(ours::pointer_attributes) == sizeof(hipPointerAttribute_t));
static_assert((HIP_VERSION_MAJOR < 6 ? ours::property_bytes::arch_name_of_5 : ours::property_bytes::arch_name_of_6) ==
              offsetof(hipDeviceProp_t, gcnArchName));
static_assert(sizeof(ours::property_bytes) > sizeof(hipDeviceProp_t));

} // namespace
