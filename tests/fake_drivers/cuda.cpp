// The fake CUDA driver; see fake_gpu.h. A "cubin" is the PTX text it was made from, with a mark in front: what ptxas made
// is refused.
#include "state.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <regex>

namespace {

enum {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  invalid_context = 201,
  peer_already = 704,
  invalid_ptx = 218,
  invalid_image = 200,
  invalid_handle = 400,
  not_found = 500,
  illegal_address = 700,
  cooperative_too_large = 720,
  capture_unsupported = 900
};

struct parameter {
  std::size_t bytes;
  bool pointer;
};
struct function {
  std::string name;
  std::vector<parameter> params;
  int device = 0, reqntid = 0; ///< threads the code was made for
  int max_dynamic_shared = 48 * 1024;
};
struct module_image {
  std::map<std::string, std::unique_ptr<function>> functions;
};
struct link_state {
  std::string text;
  char *log = nullptr;
  std::size_t log_bytes = 0;
};

fake_gpu::state &fake() {
  static fake_gpu::state s("cuda", capture_unsupported,
                           {"cuModuleLoadData", "cuMemAlloc", "cuMemFree", "cuCtxSynchronize", "cuStreamSynchronize",
                            "cuEventSynchronize"});
  return s;
}
bool initialised = false;
thread_local std::vector<int> contexts; // ordinals + 1, the last is current

int current() { return contexts.empty() ? 0 : contexts.back(); }
void *context_handle(int ordinal) { return reinterpret_cast<void *>(std::uintptr_t(0x1000 + ordinal)); }
int ordinal_of(void *context) { return int(reinterpret_cast<std::uintptr_t>(context)) - 0x1000; }
fake_gpu::stream_or_event *handle(void *s) { return static_cast<fake_gpu::stream_or_event *>(s); }

int enter(const char *name) {
  if (int r = fake().enter(name))
    return r;
  return initialised || !std::strcmp(name, "cuInit") ? success : not_initialized;
}

std::size_t size_of(const std::string &type) {
  return type.ends_with("64") ? 8 : type.ends_with("32") ? 4 : type.ends_with("16") ? 2 : 1;
}

std::unique_ptr<module_image> parse(const std::string &ptx) {
  auto image = std::make_unique<module_image>();
  std::regex entry(R"(\.entry\s+([A-Za-z_$][\w$]*)\s*\(([^)]*)\)\s*(?:\.reqntid\s+(\d+))?)"),
      param(R"(\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)(\s+\.ptr)?[^,\[]*(?:\[(\d+)\])?)");
  for (std::sregex_iterator i(ptx.begin(), ptx.end(), entry), end; i != end; ++i) {
    auto f = std::make_unique<function>();
    f->name = (*i)[1];
    f->reqntid = (*i)[3].matched ? std::stoi((*i)[3]) : 0;
    std::string list = (*i)[2];
    for (std::sregex_iterator p(list.begin(), list.end(), param); p != end; ++p)
      f->params.push_back({size_of((*p)[1]) * ((*p)[3].matched ? std::stoul((*p)[3]) : 1), (*p)[2].matched});
    image->functions[f->name] = std::move(f);
  }
  return image;
}

} // namespace

fake_gpu::driver &fake_cuda() { return fake(); }

/// cuLaunchKernelEx's configuration, laid out as the driver has it.
struct launch_config {
  unsigned grid[3], block[3], shared;
  void *stream;
  struct {
    int id;
    alignas(8) unsigned value[16];
  } * attributes;
  unsigned count;
};

static int record(const char *call, void *f, std::array<unsigned, 3> grid, std::array<unsigned, 3> block,
                  unsigned shared, void *stream, void **params, void **extra, fake_gpu::launch l) {
  auto &fn = *static_cast<function *>(f);
  const auto refuse = [&](const std::string &why) {
    return fake().refuse(call, invalid_value, "kernel '" + fn.name + "': " + why);
  };
  auto [x, y, z] = grid;
  if (!x || !y || !z || x > 2147483647 || y > 65535 || z > 65535)
    return refuse("grid beyond the limits");
  if (block[1] != 1 || block[2] != 1 || block[0] % 32 || block[0] > 1024)
    return refuse(std::to_string(block[0]) + " threads");
  if (fn.reqntid && block[0] != unsigned(fn.reqntid))
    return refuse(std::to_string(block[0]) + " threads, the code was made for " + std::to_string(fn.reqntid));
  if (extra)
    return refuse("extra options");
  if (shared > unsigned(fn.max_dynamic_shared))
    return refuse(std::to_string(shared) + " bytes of shared memory without having asked for them");
  if (fn.device != current() - 1)
    return fake().refuse(call, invalid_handle, "kernel '" + fn.name + "' was loaded in another context");
  if (stream && handle(stream)->device != current() - 1)
    return fake().refuse(call, invalid_handle, "the stream is of another context");
  l.kernel = fn.name, l.device = fn.device;
  std::copy_n(grid.begin(), 3, l.grid);
  l.threads = block[0], l.shared_bytes = shared, l.stream = stream;
  for (std::size_t i = 0; i < fn.params.size(); ++i) {
    auto *bytes = static_cast<unsigned char *>(params[i]);
    l.params.emplace_back(bytes, bytes + fn.params[i].bytes);
    std::uint64_t address = 0;
    if (fn.params[i].pointer) {
      std::memcpy(&address, bytes, sizeof address);
      if (std::string why = fake().wrong_pointer(address, fn.device); !why.empty())
        return refuse("argument " + std::to_string(i + 1) + " " + why);
    }
  }
  fake().record(std::move(l));
  return success;
}

#define ENTER(NAME)                                                                                                    \
  std::lock_guard guard(fake().lock);                                                                                  \
  if (int r = enter(NAME))                                                                                             \
    return r;
#define ENTER_CONTEXT(NAME)                                                                                            \
  ENTER(NAME)                                                                                                          \
  if (!current())                                                                                                      \
    return invalid_context;

extern "C" {

int cuGetErrorName(int r, const char **name) {
  static const std::map<int, const char *> names{
      {2, "CUDA_ERROR_OUT_OF_MEMORY"},     {1, "CUDA_ERROR_INVALID_VALUE"},
      {218, "CUDA_ERROR_INVALID_PTX"},     {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"}};
  auto i = names.find(r);
  *name = i == names.end() ? "CUDA_ERROR_UNKNOWN" : i->second;
  return success;
}
int cuGetErrorString(int r, const char **text) {
  *text = r == 2 ? "out of memory" : r == 700 ? "an illegal memory access was encountered" : "something is wrong";
  return success;
}
int cuInit(unsigned) {
  ENTER("cuInit")
  initialised = true;
  return success;
}
int cuDriverGetVersion(int *v) {
  ENTER("cuDriverGetVersion")
  *v = 13000;
  return success;
}
int cuDeviceGetCount(int *n) {
  ENTER("cuDeviceGetCount")
  *n = fake_gpu::cuda_devices;
  return success;
}
int cuDeviceGet(int *d, int i) {
  ENTER("cuDeviceGet")
  *d = i;
  return i < fake_gpu::cuda_devices ? success : 101;
}
int cuDeviceGetName(char *name, int n, int d) {
  ENTER("cuDeviceGetName")
  std::strncpy(name, d == 0 ? "Fake H200" : "Fake A100", std::size_t(n));
  return success;
}
int cuDeviceGetAttribute(int *value, int a, int d) {
  ENTER("cuDeviceGetAttribute")
  const std::map<int, int> values{{1, 1024}, {5, 2147483647}, {6, 65535},  {7, 65535},     {13, 1980000},
                                  {16, 132}, {36, 3201000},   {37, 6144},  {38, 52428800}, {75, d == 0 ? 9 : 8},
                                  {76, 0},   {81, 233472},    {82, 65536}, {97, 232448}};
  auto i = values.find(a);
  if (i == values.end())
    return invalid_value;
  *value = i->second;
  return success;
}
int cuDeviceTotalMem_v2(std::size_t *n, int) {
  ENTER("cuDeviceTotalMem")
  *n = fake_gpu::memory_bytes;
  return success;
}
int cuDeviceCanAccessPeer(int *yes, int, int) {
  ENTER("cuDeviceCanAccessPeer")
  *yes = 0;
  return success;
}
int cuDevicePrimaryCtxRetain(void **c, int d) {
  ENTER("cuDevicePrimaryCtxRetain")
  *c = context_handle(d + 1);
  return success;
}
int cuCtxGetCurrent(void **c) {
  ENTER("cuCtxGetCurrent")
  *c = current() ? context_handle(current()) : nullptr;
  return success;
}
int cuCtxSetCurrent(void *c) {
  ENTER("cuCtxSetCurrent")
  contexts.assign(c ? 1 : 0, ordinal_of(c));
  return success;
}
int cuCtxPushCurrent_v2(void *c) {
  ENTER("cuCtxPushCurrent")
  contexts.push_back(ordinal_of(c));
  return success;
}
int cuCtxPopCurrent_v2(void **c) {
  std::lock_guard guard(fake().lock);
  (void)enter("cuCtxPopCurrent"); // works after a fault too
  if (contexts.empty())
    return invalid_context;
  *c = context_handle(contexts.back());
  contexts.pop_back();
  return success;
}
int cuCtxGetDevice(int *d) {
  ENTER_CONTEXT("cuCtxGetDevice")
  *d = current() - 1;
  return success;
}
int cuCtxSynchronize() {
  ENTER_CONTEXT("cuCtxSynchronize")
  return success;
}
int cuCtxEnablePeerAccess(void *, unsigned) {
  ENTER_CONTEXT("cuCtxEnablePeerAccess")
  return peer_already;
}
int cuMemGetInfo_v2(std::size_t *free, std::size_t *total) {
  ENTER_CONTEXT("cuMemGetInfo")
  *free = fake_gpu::memory_bytes - fake().allocated[current() - 1], *total = fake_gpu::memory_bytes;
  return success;
}
int cuMemAlloc_v2(std::uint64_t *p, std::size_t bytes) {
  ENTER_CONTEXT("cuMemAlloc")
  if (bytes == 0)
    return invalid_value;
  *p = fake().allocate(bytes, current() - 1);
  return *p ? success : out_of_memory;
}
int cuMemFree_v2(std::uint64_t p) {
  ENTER_CONTEXT("cuMemFree")
  return fake().free(p) ? success : invalid_value;
}
int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void *from, std::size_t n, void *) {
  ENTER_CONTEXT("cuMemcpyHtoDAsync")
  if (!fake().inside(to, n))
    return invalid_value;
  std::memcpy(reinterpret_cast<void *>(to), from, n);
  return success;
}
int cuMemcpyDtoHAsync_v2(void *to, std::uint64_t from, std::size_t n, void *) {
  ENTER_CONTEXT("cuMemcpyDtoHAsync")
  if (!fake().inside(from, n))
    return invalid_value;
  std::memcpy(to, reinterpret_cast<void *>(from), n);
  return success;
}
int cuMemcpyAsync(std::uint64_t to, std::uint64_t from, std::size_t n, void *) {
  ENTER_CONTEXT("cuMemcpyAsync")
  if (!fake().inside(from, n) || !fake().inside(to, n) || (from < to + n && to < from + n))
    return invalid_value;
  std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), n);
  return success;
}
int cuMemsetD8Async(std::uint64_t p, unsigned char v, std::size_t n, void *) {
  ENTER_CONTEXT("cuMemsetD8Async")
  if (!fake().inside(p, n))
    return invalid_value;
  std::memset(reinterpret_cast<void *>(p), v, n);
  return success;
}
int cuMemsetD16Async(std::uint64_t p, unsigned short v, std::size_t n, void *) {
  ENTER_CONTEXT("cuMemsetD16Async")
  if (!fake().inside(p, 2 * n) || p % 2)
    return invalid_value;
  std::fill_n(reinterpret_cast<unsigned short *>(p), n, v);
  return success;
}
int cuMemsetD32Async(std::uint64_t p, unsigned v, std::size_t n, void *) {
  ENTER_CONTEXT("cuMemsetD32Async")
  if (!fake().inside(p, 4 * n) || p % 4)
    return invalid_value;
  std::fill_n(reinterpret_cast<unsigned *>(p), n, v);
  return success;
}
int cuPointerGetAttributes(unsigned n, int *attributes, void **results, std::uint64_t p) {
  ENTER_CONTEXT("cuPointerGetAttributes")
  std::uint64_t base = 0;
  fake_gpu::allocation *a = fake().find(p, &base);
  for (unsigned i = 0; i < n; ++i)
    switch (attributes[i]) {
    case 2: *static_cast<unsigned *>(results[i]) = !a ? 0 : a->on_host ? 1 : 2; break;
    case 3: *static_cast<std::uint64_t *>(results[i]) = a ? p + a->shift : 0; break;
    case 8: *static_cast<unsigned *>(results[i]) = 0; break;
    case 11: *static_cast<std::uint64_t *>(results[i]) = a ? base : 0; break;
    case 12: *static_cast<std::size_t *>(results[i]) = a ? a->bytes : 0; break;
    case 9: *static_cast<int *>(results[i]) = a ? a->ordinal : -1; break;
    default: return invalid_value;
    }
  return success;
}
int cuStreamCreate(void **s, unsigned) {
  ENTER_CONTEXT("cuStreamCreate")
  *s = new fake_gpu::stream_or_event{current() - 1};
  return success;
}
int cuStreamGetCtx(void *s, void **c) {
  ENTER("cuStreamGetCtx")
  *c = context_handle(handle(s)->device + 1);
  return success;
}
int cuStreamDestroy_v2(void *s) {
  ENTER("cuStreamDestroy")
  delete handle(s);
  return success;
}
int cuStreamSynchronize(void *) {
  ENTER_CONTEXT("cuStreamSynchronize")
  return success;
}
int cuStreamWaitEvent(void *, void *, unsigned) {
  ENTER_CONTEXT("cuStreamWaitEvent")
  return success;
}
int cuEventCreate(void **e, unsigned) {
  ENTER_CONTEXT("cuEventCreate")
  *e = new fake_gpu::stream_or_event{current() - 1};
  return success;
}
int cuEventDestroy_v2(void *e) {
  ENTER("cuEventDestroy")
  delete handle(e);
  return success;
}
int cuEventRecord(void *e, void *) {
  ENTER_CONTEXT("cuEventRecord")
  handle(e)->time = fake().now += 0.25;
  return success;
}
int cuEventSynchronize(void *) {
  ENTER_CONTEXT("cuEventSynchronize")
  return success;
}
int cuEventElapsedTime(float *ms, void *a, void *b) {
  ENTER_CONTEXT("cuEventElapsedTime")
  double start = handle(a)->time, stop = handle(b)->time;
  if (start < 0 || stop < 0)
    return invalid_handle;
  *ms = float(stop - start);
  return success;
}
int cuLinkCreate_v2(unsigned n, int *options, void **values, void **state) {
  ENTER_CONTEXT("cuLinkCreate")
  auto *l = new link_state;
  for (unsigned i = 0; i < n; ++i) {
    if (options[i] == 5)
      l->log = static_cast<char *>(values[i]);
    if (options[i] == 6)
      l->log_bytes = reinterpret_cast<std::size_t>(values[i]);
  }
  *state = l;
  return success;
}
int cuLinkAddData_v2(void *state, int type, void *data, std::size_t bytes, const char *, unsigned, int *, void **) {
  std::lock_guard guard(fake().lock);
  auto *l = static_cast<link_state *>(state);
  if (int r = enter("cuLinkAddData")) {
    std::strncpy(l->log, "ptxas application ptx input, line 9; error   : Unexpected instruction types", l->log_bytes);
    return r;
  }
  if (type != 1 || bytes == 0 || static_cast<char *>(data)[bytes - 1] != 0) // PTX ends with a zero that is counted
    return invalid_ptx;
  l->text = static_cast<char *>(data);
  return success;
}
int cuLinkComplete(void *state, void **cubin, std::size_t *bytes) {
  ENTER_CONTEXT("cuLinkComplete")
  auto *l = static_cast<link_state *>(state);
  l->text.insert(0, "FAKE CUBIN\n");
  *cubin = l->text.data(), *bytes = l->text.size() + 1;
  return success;
}
int cuLinkDestroy(void *state) {
  ENTER("cuLinkDestroy")
  delete static_cast<link_state *>(state);
  return success;
}
int cuModuleLoadData(void **m, const void *image) {
  ENTER_CONTEXT("cuModuleLoadData")
  std::string text = static_cast<const char *>(image);
  if (!text.starts_with("FAKE CUBIN\n"))
    return invalid_image;
  auto parsed = parse(text);
  for (auto &[name, f] : parsed->functions)
    f->device = current() - 1;
  *m = parsed.release();
  ++fake().modules;
  return success;
}
int cuModuleUnload(void *m) {
  ENTER_CONTEXT("cuModuleUnload")
  delete static_cast<module_image *>(m);
  --fake().modules;
  return success;
}
int cuModuleGetFunction(void **f, void *m, const char *name) {
  ENTER_CONTEXT("cuModuleGetFunction")
  auto &functions = static_cast<module_image *>(m)->functions;
  auto i = functions.find(name);
  if (i == functions.end())
    return not_found;
  *f = i->second.get();
  return success;
}
int cuFuncGetAttribute(int *value, int a, void *) {
  ENTER_CONTEXT("cuFuncGetAttribute")
  *value = a == 4 ? 42 : 0;
  return success;
}
int cuFuncSetAttribute(void *f, int a, int value) {
  ENTER_CONTEXT("cuFuncSetAttribute")
  if (a == 14) // clusters of more than 8
    return success;
  if (a != 8)
    return invalid_value;
  static_cast<function *>(f)->max_dynamic_shared = fake().shared_limit = value;
  return success;
}
int cuLaunchKernel(void *f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **params, void **extra) {
  ENTER_CONTEXT("cuLaunchKernel")
  return record("cuLaunchKernel", f, {x, y, z}, {bx, by, bz}, shared, stream, params, extra, {});
}
int cuLaunchKernelEx(const launch_config *c, void *f, void **params, void **extra) {
  ENTER_CONTEXT("cuLaunchKernelEx")
  fake_gpu::launch options;
  for (unsigned i = 0; i < c->count; ++i) {
    auto &a = c->attributes[i];
    if (a.id == 2)
      options.cooperative = a.value[0] != 0;
    else if (a.id == 4)
      std::copy_n(a.value, 3, options.cluster);
    else
      return invalid_value;
  }
  if (options.cooperative && std::uint64_t(c->grid[0]) * c->grid[1] * c->grid[2] > 132 * 8)
    return cooperative_too_large;
  for (int i = 0; i < 3; ++i)
    if (!options.cluster[i] || c->grid[i] % options.cluster[i])
      return invalid_value;
  return record("cuLaunchKernelEx", f, {c->grid[0], c->grid[1], c->grid[2]}, {c->block[0], c->block[1], c->block[2]}, c->shared, c->stream,
                params, extra, options);
}
int nvtxRangePushA(const char *name) {
  std::lock_guard guard(fake().lock);
  fake().ranges.push_back(name);
  return 0;
}
int nvtxRangePop() {
  std::lock_guard guard(fake().lock);
  fake().ranges.push_back("");
  return 0;
}

} // extern "C"

