// The fake HIP runtime; see fake_gpu.h. It is compiled with HIP's own header, which declares what is defined here. Devices:
// a gfx942, a gfx1100 and the small GPU of a processor, or those of FAKE_HIP_ARCHS=gfx950,…  With FAKE_HIP_VERSION 5 it
// answers as that version does, else as 6 and 7 do.
#include "code_object.h"
#include "state.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#define EXPORT __attribute__((visibility("default")))

struct ihipModuleSymbol_t {
  std::string name;
  fake_gpu::kernel_info info;
  int device = 0;
};
struct ihipModule_t {
  std::map<std::string, std::unique_ptr<ihipModuleSymbol_t>> functions;
  int device = 0;
};

namespace {

fake_gpu::state &fake() {
  static fake_gpu::state s("hip", hipErrorStreamCaptureUnsupported,
                           {"hipModuleLoadData", "hipMalloc", "hipFree", "hipDeviceSynchronize", "hipStreamSynchronize",
                            "hipEventSynchronize"});
  return s;
}

struct gpu {
  std::string arch, name;
  int units;
  unsigned warp_size, shared_bytes;
};
const std::vector<gpu> &gpus() {
  static const std::vector<gpu> all = [] {
    const char *named = std::getenv("FAKE_HIP_ARCHS");
    std::string archs = named ? named : "gfx942,gfx1100,gfx1036";
    std::vector<gpu> list;
    for (std::size_t i = 0; i < archs.size();) {
      const std::size_t end = std::min(archs.find(',', i), archs.size());
      const std::string arch = archs.substr(i, end - i);
      const bool cdna = arch.starts_with("gfx9");
      list.push_back({arch, "Fake " + arch, cdna ? 304 : 48, cdna ? 64u : 32u,
                      (arch == "gfx950" ? 160u : arch == "gfx1250" ? 320u : 64u) * 1024});
      i = end + 1;
    }
    return list;
  }();
  return all;
}

thread_local int current = 0;
thread_local hipError_t last_error = hipSuccess;
bool initialised = false;

hipError_t answer(int r) {
  if (r)
    last_error = hipError_t(r);
  return hipError_t(r);
}
hipError_t enter(const char *name) {
  if (int r = fake().enter(name))
    return answer(r);
  return answer(initialised || !std::strcmp(name, "hipInit") ? hipSuccess : hipErrorNotInitialized);
}
bool is_device(int d) { return d >= 0 && d < int(gpus().size()); }
fake_gpu::stream_or_event *handle(void *s) { return static_cast<fake_gpu::stream_or_event *>(s); }
std::uint64_t number(const void *p) { return reinterpret_cast<std::uint64_t>(p); }

} // namespace

EXPORT fake_gpu::driver &fake_hip() { return fake(); }

#define ENTER(NAME)                                                                                                    \
  std::lock_guard guard(fake().lock);                                                                                  \
  if (hipError_t r = enter(NAME); r != hipSuccess)                                                                     \
    return r;

static hipError_t launch(const char *call, hipFunction_t f, std::array<unsigned, 3> grid,
                         std::array<unsigned, 3> block, unsigned shared, hipStream_t stream, void **params,
                         void **extra, bool cooperative) {
  const auto refuse = [&](hipError_t r, const std::string &why) {
    return answer(fake().refuse(call, r, "kernel '" + f->name + "': " + why));
  };
  if (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2])
    return refuse(hipErrorInvalidConfiguration, "an empty grid");
  for (int i = 0; i < 3; ++i)
    if (std::uint64_t(grid[i]) * block[i] > std::numeric_limits<std::uint32_t>::max())
      return refuse(hipErrorInvalidConfiguration, "more threads than a dispatch counts");
  const unsigned threads = block[0] * block[1] * block[2];
  if (threads > f->info.max_threads || threads > 1024)
    return refuse(hipErrorInvalidConfiguration, std::to_string(threads) + " threads, the code object allows " +
                                                    std::to_string(f->info.max_threads));
  if (threads % f->info.warp_size)
    return refuse(hipErrorInvalidConfiguration, std::to_string(threads) + " threads are no whole wavefronts of " +
                                                    std::to_string(f->info.warp_size));
  if (f->info.required_threads && threads != f->info.required_threads)
    return refuse(hipErrorInvalidConfiguration, std::to_string(threads) + " threads, the code was made for " +
                                                    std::to_string(f->info.required_threads));
  if (shared + f->info.shared_bytes > gpus()[std::size_t(f->device)].shared_bytes)
    return refuse(hipErrorInvalidValue, std::to_string(shared) + " bytes of LDS more than the " +
                                            std::to_string(f->info.shared_bytes) + " of the code object");
  if (extra)
    return refuse(hipErrorInvalidValue, "extra options");
  if (f->device != current)
    return refuse(hipErrorInvalidDeviceFunction, "loaded on another device than the current one");
  if (stream && handle(stream)->device != current)
    return refuse(hipErrorInvalidHandle, "the stream is of another device");
  if (cooperative && std::uint64_t(grid[0]) * grid[1] * grid[2] > 8u * unsigned(gpus()[std::size_t(current)].units))
    return answer(hipErrorCooperativeLaunchTooLarge);

  fake_gpu::launch l;
  l.kernel = f->name, l.device = current, l.cooperative = cooperative, l.stream = stream;
  std::copy_n(grid.begin(), 3, l.grid);
  l.threads = threads, l.shared_bytes = unsigned(shared + f->info.shared_bytes);
  int i = 0;
  for (const auto &a : f->info.arguments) {
    if (a.hidden)
      continue;
    auto *bytes = static_cast<unsigned char *>(params[i++]);
    l.params.emplace_back(bytes, bytes + a.bytes);
    std::uint64_t address = 0;
    if (a.pointer) {
      std::memcpy(&address, bytes, sizeof address);
      if (std::string why = fake().wrong_pointer(address, current); !why.empty())
        return refuse(hipErrorInvalidValue, "argument " + std::to_string(i) + " " + why);
    }
  }
  fake().record(std::move(l));
  return hipSuccess;
}

extern "C" {

EXPORT const char *hipGetErrorName(hipError_t r) {
  switch (int(r)) {
  case 0: return "hipSuccess";
  case 1: return "hipErrorInvalidValue";
  case 2: return "hipErrorOutOfMemory";
  case 9: return "hipErrorInvalidConfiguration";
  case 200: return "hipErrorInvalidImage";
  case 209: return "hipErrorNoBinaryForGpu";
  case 700: return "hipErrorIllegalAddress";
  case 701: return "hipErrorLaunchOutOfResources";
  default: return "hipErrorUnknown";
  }
}
EXPORT const char *hipGetErrorString(hipError_t r) {
  return r == 2     ? "out of memory"
         : r == 700 ? "an illegal memory access was encountered"
                    : "something is wrong";
}
EXPORT int roctxRangePushA(const char *name) {
  std::lock_guard guard(fake().lock);
  fake().ranges.push_back(name);
  return 0;
}
EXPORT int roctxRangePop() {
  std::lock_guard guard(fake().lock);
  fake().ranges.push_back("");
  return 0;
}
EXPORT hipError_t hipGetLastError() { return std::exchange(last_error, hipSuccess); }
EXPORT hipError_t hipInit(unsigned flags) {
  ENTER("hipInit")
  initialised = true;
  return answer(flags ? hipErrorInvalidValue : hipSuccess);
}
EXPORT hipError_t hipRuntimeGetVersion(int *version) {
  ENTER("hipRuntimeGetVersion")
  *version = FAKE_HIP_VERSION * 10000000 + 342134;
  return hipSuccess;
}
EXPORT hipError_t hipGetDeviceCount(int *count) {
  ENTER("hipGetDeviceCount")
  *count = int(gpus().size());
  return answer(*count ? hipSuccess : hipErrorNoDevice);
}
EXPORT hipError_t hipGetDevice(int *device) {
  ENTER("hipGetDevice")
  *device = current;
  return hipSuccess;
}
EXPORT hipError_t hipSetDevice(int device) {
  ENTER("hipSetDevice")
  if (!is_device(device))
    return answer(hipErrorInvalidDevice);
  current = device;
  return hipSuccess;
}
EXPORT hipError_t hipDeviceGetName(char *name, int bytes, hipDevice_t device) {
  ENTER("hipDeviceGetName")
  std::strncpy(name, gpus().at(std::size_t(device)).name.c_str(), std::size_t(bytes));
  return hipSuccess;
}
EXPORT hipError_t hipDeviceTotalMem(std::size_t *bytes, hipDevice_t) {
  ENTER("hipDeviceTotalMem")
  *bytes = fake_gpu::memory_bytes;
  return hipSuccess;
}
EXPORT hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device) {
  ENTER("hipDeviceGetAttribute")
  if (!is_device(device))
    return answer(hipErrorInvalidDevice);
  const gpu &g = gpus()[std::size_t(device)];
  switch (attribute) {
  case hipDeviceAttributeClockRate: *value = 2100000; break;
  case hipDeviceAttributeL2CacheSize: *value = 4 << 20; break;
  case hipDeviceAttributeMaxGridDimX: *value = std::numeric_limits<int>::max(); break;
  case hipDeviceAttributeMaxGridDimY:
  case hipDeviceAttributeMaxGridDimZ: // since 6.3 what hipModuleLaunchKernel can do
    *value = FAKE_HIP_VERSION >= 6 ? 65536 : std::numeric_limits<int>::max();
    break;
  case hipDeviceAttributeMaxThreadsPerBlock: *value = 1024; break;
  case hipDeviceAttributeMultiprocessorCount: *value = g.units; break;
  case hipDeviceAttributeMaxRegistersPerBlock: *value = 65536; break;
  case hipDeviceAttributeMaxSharedMemoryPerBlock:
  case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor: *value = int(g.shared_bytes); break;
  case hipDeviceAttributeWarpSize: *value = int(g.warp_size); break;
  default: return answer(hipErrorInvalidValue); // as for those of other vendors or versions
  }
  return hipSuccess;
}
#if FAKE_HIP_VERSION >= 6
EXPORT hipError_t hipGetDevicePropertiesR0600(void *properties, int device) {
  ENTER("hipGetDevicePropertiesR0600")
  if (!is_device(device))
    return answer(hipErrorInvalidDevice);
  std::memset(properties, 0, 1472); // sizeof hipDeviceProp_t of version 6, and where it has gcnArchName
  std::strcpy(static_cast<char *>(properties) + 1160, (gpus()[std::size_t(device)].arch + ":sramecc+:xnack-").c_str());
  return hipSuccess;
}
#endif
EXPORT hipError_t hipGetDeviceProperties(hipDeviceProp_t *properties, int device) {
  ENTER("hipGetDeviceProperties")
  if (!is_device(device))
    return answer(hipErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->gcnArchName, (gpus()[std::size_t(device)].arch + ":sramecc+:xnack-").c_str());
  return hipSuccess;
}
EXPORT hipError_t hipDeviceCanAccessPeer(int *yes, int, int) {
  ENTER("hipDeviceCanAccessPeer")
  *yes = 0;
  return hipSuccess;
}
EXPORT hipError_t hipDeviceEnablePeerAccess(int, unsigned) {
  ENTER("hipDeviceEnablePeerAccess")
  return answer(hipErrorPeerAccessAlreadyEnabled);
}
EXPORT hipError_t hipDeviceSynchronize() {
  ENTER("hipDeviceSynchronize")
  return hipSuccess;
}

EXPORT hipError_t hipMemGetInfo(std::size_t *free, std::size_t *total) {
  ENTER("hipMemGetInfo")
  *free = fake_gpu::memory_bytes - fake().allocated[current], *total = fake_gpu::memory_bytes;
  return hipSuccess;
}
EXPORT hipError_t hipMalloc(void **p, std::size_t bytes) {
  ENTER("hipMalloc")
  *p = reinterpret_cast<void *>(fake().allocate(bytes, current));
  return answer(*p ? hipSuccess : hipErrorOutOfMemory);
}
EXPORT hipError_t hipFree(void *p) {
  ENTER("hipFree")
  return answer(fake().free(number(p)) ? hipSuccess : hipErrorInvalidValue);
}
EXPORT hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void *from, std::size_t n, hipStream_t) {
  ENTER("hipMemcpyHtoDAsync")
  if (!fake().inside(number(to), n))
    return answer(fake().refuse("hipMemcpyHtoDAsync", hipErrorInvalidValue, "beyond an allocation"));
  std::memcpy(to, from, n);
  return hipSuccess;
}
EXPORT hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, std::size_t n, hipStream_t) {
  ENTER("hipMemcpyDtoHAsync")
  if (!fake().inside(number(from), n))
    return answer(fake().refuse("hipMemcpyDtoHAsync", hipErrorInvalidValue, "beyond an allocation"));
  std::memcpy(to, from, n);
  return hipSuccess;
}
EXPORT hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, std::size_t n, hipStream_t) {
  ENTER("hipMemcpyDtoDAsync")
  const std::uint64_t a = number(to), b = number(from);
  if (!fake().inside(a, n) || !fake().inside(b, n) || (b < a + n && a < b + n))
    return answer(fake().refuse("hipMemcpyDtoDAsync", hipErrorInvalidValue, "beyond an allocation, or overlapping"));
  std::memcpy(to, from, n);
  return hipSuccess;
}
#define MEMSET(NAME, TYPE, STORED)                                                                                     \
  EXPORT hipError_t NAME(hipDeviceptr_t p, TYPE value, std::size_t n, hipStream_t) {                                   \
    ENTER(#NAME)                                                                                                       \
    if (!fake().inside(number(p), n * sizeof(STORED)) || number(p) % sizeof(STORED))                                   \
      return answer(fake().refuse(#NAME, hipErrorInvalidValue, "beyond an allocation, or not aligned"));               \
    std::fill_n(static_cast<STORED *>(p), n, STORED(value));                                                           \
    return hipSuccess;                                                                                                 \
  }
MEMSET(hipMemsetD8Async, unsigned char, std::uint8_t)
MEMSET(hipMemsetD16Async, unsigned short, std::uint16_t)
MEMSET(hipMemsetD32Async, int, std::uint32_t)

EXPORT hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *p) {
  ENTER("hipPointerGetAttributes")
  std::memset(attributes, 0, sizeof *attributes);
  const fake_gpu::allocation *a = fake().find(number(p));
  if (!a) {
    attributes->device = -2;
    return answer(FAKE_HIP_VERSION >= 6 ? hipSuccess : hipErrorInvalidValue);
  }
  attributes->memoryType = hipMemoryType((FAKE_HIP_VERSION >= 6) + !a->on_host);
  attributes->device = a->ordinal;
  attributes->devicePointer = reinterpret_cast<void *>(number(p) + a->shift);
  attributes->hostPointer = a->on_host ? const_cast<void *>(p) : nullptr;
  return hipSuccess;
}
EXPORT hipError_t hipMemGetAddressRange(hipDeviceptr_t *begin, std::size_t *bytes, hipDeviceptr_t p) {
  ENTER("hipMemGetAddressRange")
  std::uint64_t base = 0;
  const fake_gpu::allocation *a = fake().find(number(p), &base);
  if (!a)
    return answer(hipErrorNotFound);
  *begin = reinterpret_cast<hipDeviceptr_t>(base), *bytes = a->bytes;
  return hipSuccess;
}

EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t *s, unsigned flags) {
  ENTER("hipStreamCreateWithFlags")
  *s = reinterpret_cast<hipStream_t>(new fake_gpu::stream_or_event{current});
  return answer(flags > 1 ? hipErrorInvalidValue : hipSuccess);
}
EXPORT hipError_t hipStreamDestroy(hipStream_t s) {
  ENTER("hipStreamDestroy")
  delete handle(s);
  return hipSuccess;
}
EXPORT hipError_t hipStreamSynchronize(hipStream_t) {
  ENTER("hipStreamSynchronize")
  return hipSuccess;
}
EXPORT hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned) {
  ENTER("hipStreamWaitEvent")
  return hipSuccess;
}
EXPORT int hipGetStreamDeviceId(hipStream_t s) { return s ? handle(s)->device : current; }
EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t *e, unsigned) {
  ENTER("hipEventCreateWithFlags")
  *e = reinterpret_cast<hipEvent_t>(new fake_gpu::stream_or_event{current});
  return hipSuccess;
}
EXPORT hipError_t hipEventDestroy(hipEvent_t e) {
  ENTER("hipEventDestroy")
  delete handle(e);
  return hipSuccess;
}
EXPORT hipError_t hipEventRecord(hipEvent_t e, hipStream_t s) {
  ENTER("hipEventRecord")
  if (s && handle(s)->device != handle(e)->device)
    return answer(hipErrorInvalidHandle);
  handle(e)->time = fake().now += 0.25;
  return hipSuccess;
}
EXPORT hipError_t hipEventSynchronize(hipEvent_t) {
  ENTER("hipEventSynchronize")
  return hipSuccess;
}
EXPORT hipError_t hipEventElapsedTime(float *ms, hipEvent_t a, hipEvent_t b) {
  ENTER("hipEventElapsedTime")
  const double start = handle(a)->time, stop = handle(b)->time;
  if (start < 0 || stop < 0)
    return answer(hipErrorInvalidHandle);
  *ms = float(stop - start);
  return hipSuccess;
}

EXPORT hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
  ENTER("hipModuleLoadData")
  try {
    fake_gpu::code_object object = fake_gpu::read_code_object(image);
    const std::string &arch = gpus()[std::size_t(current)].arch;
    if (object.arch != arch)
      return answer(fake().refuse("hipModuleLoadData", hipErrorNoBinaryForGpu, "code for " + object.arch + " on " + arch));
    auto loaded = std::make_unique<ihipModule_t>();
    loaded->device = current;
    for (auto &[name, info] : object.kernels) {
      if (info.warp_size != gpus()[std::size_t(current)].warp_size)
        throw std::runtime_error("wavefronts of " + std::to_string(info.warp_size));
      loaded->functions[name] = std::make_unique<ihipModuleSymbol_t>(ihipModuleSymbol_t{name, std::move(info), current});
    }
    *module = loaded.release();
  } catch (const std::exception &e) {
    return answer(fake().refuse("hipModuleLoadData", hipErrorInvalidImage, e.what()));
  }
  ++fake().modules;
  return hipSuccess;
}
EXPORT hipError_t hipModuleUnload(hipModule_t module) {
  ENTER("hipModuleUnload")
  if (module->device != current)
    return answer(fake().refuse("hipModuleUnload", hipErrorInvalidHandle, "another device is current"));
  delete module;
  --fake().modules;
  return hipSuccess;
}
EXPORT hipError_t hipModuleGetFunction(hipFunction_t *f, hipModule_t module, const char *name) {
  ENTER("hipModuleGetFunction")
  auto i = module->functions.find(name);
  if (i == module->functions.end())
    return answer(hipErrorNotFound);
  *f = i->second.get();
  return hipSuccess;
}
EXPORT hipError_t hipFuncGetAttribute(int *value, hipFunction_attribute attribute, hipFunction_t f) {
  ENTER("hipFuncGetAttribute")
  switch (attribute) {
  case HIP_FUNC_ATTRIBUTE_NUM_REGS: *value = int(f->info.registers); break;
  case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = int(f->info.private_bytes); break;
  default: return answer(hipErrorInvalidValue);
  }
  return hipSuccess;
}
EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                                        unsigned bz, unsigned shared, hipStream_t stream, void **params, void **extra) {
  ENTER("hipModuleLaunchKernel")
  return launch("hipModuleLaunchKernel", f, {x, y, z}, {bx, by, bz}, shared, stream, params, extra, false);
}
#if FAKE_HIP_VERSION >= 6
EXPORT hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t f, unsigned x, unsigned y, unsigned z, unsigned bx,
                                                   unsigned by, unsigned bz, unsigned shared, hipStream_t stream,
                                                   void **params) {
  ENTER("hipModuleLaunchCooperativeKernel")
  return launch("hipModuleLaunchCooperativeKernel", f, {x, y, z}, {bx, by, bz}, shared, stream, params, nullptr, true);
}
#endif

} // extern "C"
