// The fake CUDA driver; see fake_cuda.h. A "cubin" is the PTX text it was made from, with a mark in front.
#include "fake_cuda.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <regex>
#include <string_view>
#include <utility>

namespace {

enum {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
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

struct function {
  std::string name;
  std::vector<std::size_t> params;
  int max_dynamic_shared = 48 * 1024;
};
struct module_image {
  int context;
  std::map<std::string, std::unique_ptr<function>> functions;
};
struct allocation {
  std::size_t bytes;
  int ordinal;
};
struct link_state {
  std::string text;
  char *log = nullptr;
  std::size_t log_bytes = 0;
};
struct stream_or_event {
  int context;
  double time = -1;
};

std::recursive_mutex lock;
std::map<std::string, int> call_counts;
std::map<std::string, std::pair<int, bool>> failures; // result, and whether all later calls give it too
int sticky_failure = 0;
std::vector<fake_cuda::launch> launch_log, graph;
void *captured = nullptr; // the stream
std::vector<std::string> ranges;
std::map<std::uint64_t, allocation> allocations; // by address
std::size_t allocated = 0;
int modules = 0, shared_limit = 0;
double now = 0;
bool initialised = false, peers = false;
thread_local std::vector<int> contexts; // ordinals + 1, the last is current

int current() { return contexts.empty() ? 0 : contexts.back(); }
void *context_handle(int ordinal) { return reinterpret_cast<void *>(std::uintptr_t(0x1000 + ordinal)); }
int ordinal_of(void *context) { return int(reinterpret_cast<std::uintptr_t>(context)) - 0x1000; }

bool forbidden_in_capture(std::string_view name) {
  return name == "cuModuleLoadData" || name == "cuMemAlloc" || name == "cuMemFree" || name == "cuCtxSynchronize" ||
         name == "cuStreamSynchronize" || name == "cuEventSynchronize";
}

/// Counts the call, and gives the failure a test asked for.
int enter(const char *name) {
  ++call_counts[name];
  if (sticky_failure)
    return sticky_failure;
  if (auto f = failures.find(name); f != failures.end()) {
    auto [r, sticky] = f->second;
    failures.erase(f);
    if (sticky)
      sticky_failure = r;
    return r;
  }
  if (captured && forbidden_in_capture(name))
    return capture_unsupported;
  return initialised || !std::strcmp(name, "cuInit") ? success : 3;
}

allocation *find(std::uint64_t p, std::uint64_t *base = nullptr) {
  auto it = allocations.upper_bound(p);
  if (it == allocations.begin())
    return nullptr;
  --it;
  if (p >= it->first + it->second.bytes)
    return nullptr;
  if (base)
    *base = it->first;
  return &it->second;
}
bool inside(std::uint64_t p, std::size_t bytes) {
  std::uint64_t base;
  allocation *a = find(p, &base);
  return a && p + bytes <= base + a->bytes;
}

std::size_t size_of(const std::string &type) {
  return type.ends_with("64") ? 8 : type.ends_with("32") ? 4 : type.ends_with("16") ? 2 : 1;
}

std::unique_ptr<module_image> parse(const std::string &ptx) {
  auto image = std::make_unique<module_image>();
  std::regex entry(R"(\.entry\s+([A-Za-z_$][\w$]*)\s*\(([^)]*)\))"),
      param(R"(\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)[^,\[]*(?:\[(\d+)\])?)");
  for (std::sregex_iterator i(ptx.begin(), ptx.end(), entry), end; i != end; ++i) {
    auto f = std::make_unique<function>();
    f->name = (*i)[1];
    std::string list = (*i)[2];
    for (std::sregex_iterator p(list.begin(), list.end(), param); p != end; ++p)
      f->params.push_back(size_of((*p)[1]) * ((*p)[2].matched ? std::stoul((*p)[2]) : 1));
    image->functions[f->name] = std::move(f);
  }
  return image;
}

} // namespace

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

static int record(void *f, std::array<unsigned, 3> grid, std::array<unsigned, 3> block, unsigned shared, void *stream,
                  void **params, void **extra, fake_cuda::launch options) {
  auto &fn = *static_cast<function *>(f);
  auto [x, y, z] = grid;
  if (!x || !y || !z || y > 65535 || z > 65535 || block[1] != 1 || block[2] != 1 || block[0] % 32 || block[0] > 1024 ||
      extra || shared > unsigned(fn.max_dynamic_shared))
    return invalid_value;
  if (stream && static_cast<stream_or_event *>(stream)->context != current())
    return invalid_handle;
  fake_cuda::launch l = std::move(options);
  l.kernel = fn.name;
  std::copy_n(grid.begin(), 3, l.grid);
  l.threads = block[0], l.shared_bytes = shared, l.stream = stream;
  for (std::size_t i = 0; i < fn.params.size(); ++i) {
    auto *bytes = static_cast<unsigned char *>(params[i]);
    l.params.emplace_back(bytes, bytes + fn.params[i]);
  }
  (captured && stream == captured ? graph : launch_log).push_back(std::move(l));
  return success;
}

#define ENTER(NAME)                                                                                                    \
  std::lock_guard guard(lock);                                                                                         \
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
  *n = fake_cuda::num_devices;
  return success;
}
int cuDeviceGet(int *d, int i) {
  ENTER("cuDeviceGet")
  *d = i;
  return i < fake_cuda::num_devices ? success : 101;
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
  *n = fake_cuda::memory_bytes;
  return success;
}
int cuDeviceCanAccessPeer(int *yes, int, int) {
  ENTER("cuDeviceCanAccessPeer")
  *yes = peers;
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
int cuCtxPushCurrent_v2(void *c) {
  ENTER("cuCtxPushCurrent")
  contexts.push_back(ordinal_of(c));
  return success;
}
int cuCtxPopCurrent_v2(void **c) {
  std::lock_guard guard(lock);
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
  *free = fake_cuda::memory_bytes - allocated, *total = fake_cuda::memory_bytes;
  return success;
}
int cuMemAlloc_v2(std::uint64_t *p, std::size_t bytes) {
  ENTER_CONTEXT("cuMemAlloc")
  if (bytes == 0)
    return invalid_value;
  if (bytes > fake_cuda::memory_bytes - allocated)
    return out_of_memory;
  *p = reinterpret_cast<std::uint64_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  std::memset(reinterpret_cast<void *>(*p), 0xcd, bytes);
  allocations[*p] = {bytes, current() - 1};
  allocated += bytes;
  return success;
}
int cuMemFree_v2(std::uint64_t p) {
  ENTER_CONTEXT("cuMemFree")
  auto a = allocations.find(p);
  if (a == allocations.end())
    return invalid_value;
  allocated -= a->second.bytes;
  allocations.erase(a);
  std::free(reinterpret_cast<void *>(p));
  return success;
}
int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void *from, std::size_t n, void *) {
  ENTER_CONTEXT("cuMemcpyHtoDAsync")
  if (!inside(to, n))
    return invalid_value;
  std::memcpy(reinterpret_cast<void *>(to), from, n);
  return success;
}
int cuMemcpyDtoHAsync_v2(void *to, std::uint64_t from, std::size_t n, void *) {
  ENTER_CONTEXT("cuMemcpyDtoHAsync")
  if (!inside(from, n))
    return invalid_value;
  std::memcpy(to, reinterpret_cast<void *>(from), n);
  return success;
}
int cuMemcpyAsync(std::uint64_t to, std::uint64_t from, std::size_t n, void *) {
  ENTER_CONTEXT("cuMemcpyAsync")
  if (!inside(from, n) || !inside(to, n) || (from < to + n && to < from + n))
    return invalid_value;
  std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), n);
  return success;
}
int cuMemsetD8Async(std::uint64_t p, unsigned char v, std::size_t n, void *) {
  ENTER_CONTEXT("cuMemsetD8Async")
  if (!inside(p, n))
    return invalid_value;
  std::memset(reinterpret_cast<void *>(p), v, n);
  return success;
}
int cuMemsetD16Async(std::uint64_t p, unsigned short v, std::size_t n, void *) {
  ENTER_CONTEXT("cuMemsetD16Async")
  if (!inside(p, 2 * n) || p % 2)
    return invalid_value;
  std::fill_n(reinterpret_cast<unsigned short *>(p), n, v);
  return success;
}
int cuMemsetD32Async(std::uint64_t p, unsigned v, std::size_t n, void *) {
  ENTER_CONTEXT("cuMemsetD32Async")
  if (!inside(p, 4 * n) || p % 4)
    return invalid_value;
  std::fill_n(reinterpret_cast<unsigned *>(p), n, v);
  return success;
}
int cuPointerGetAttributes(unsigned n, int *attributes, void **results, std::uint64_t p) {
  ENTER_CONTEXT("cuPointerGetAttributes")
  std::uint64_t base = 0;
  allocation *a = find(p, &base);
  for (unsigned i = 0; i < n; ++i)
    switch (attributes[i]) {
    case 2: *static_cast<unsigned *>(results[i]) = a ? 2 : 0; break; // memory type: device, or unknown
    case 3: *static_cast<std::uint64_t *>(results[i]) = a ? p : 0; break;
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
  *s = new stream_or_event{current()};
  return success;
}
int cuStreamGetCtx(void *s, void **c) {
  ENTER("cuStreamGetCtx")
  *c = context_handle(static_cast<stream_or_event *>(s)->context);
  return success;
}
int cuStreamDestroy_v2(void *s) {
  ENTER("cuStreamDestroy")
  delete static_cast<stream_or_event *>(s);
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
  *e = new stream_or_event{current()};
  return success;
}
int cuEventDestroy_v2(void *e) {
  ENTER("cuEventDestroy")
  delete static_cast<stream_or_event *>(e);
  return success;
}
int cuEventRecord(void *e, void *) {
  ENTER_CONTEXT("cuEventRecord")
  static_cast<stream_or_event *>(e)->time = now += 0.25;
  return success;
}
int cuEventSynchronize(void *) {
  ENTER_CONTEXT("cuEventSynchronize")
  return success;
}
int cuEventElapsedTime(float *ms, void *a, void *b) {
  ENTER_CONTEXT("cuEventElapsedTime")
  double start = static_cast<stream_or_event *>(a)->time, stop = static_cast<stream_or_event *>(b)->time;
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
  std::lock_guard guard(lock);
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
  parsed->context = current();
  *m = parsed.release();
  ++modules;
  return success;
}
int cuModuleUnload(void *m) {
  ENTER_CONTEXT("cuModuleUnload")
  delete static_cast<module_image *>(m);
  --modules;
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
  static_cast<function *>(f)->max_dynamic_shared = shared_limit = value;
  return success;
}
int cuLaunchKernel(void *f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **params, void **extra) {
  ENTER_CONTEXT("cuLaunchKernel")
  return record(f, {x, y, z}, {bx, by, bz}, shared, stream, params, extra, {});
}
int cuLaunchKernelEx(const launch_config *c, void *f, void **params, void **extra) {
  ENTER_CONTEXT("cuLaunchKernelEx")
  fake_cuda::launch options;
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
  return record(f, {c->grid[0], c->grid[1], c->grid[2]}, {c->block[0], c->block[1], c->block[2]}, c->shared, c->stream,
                params, extra, options);
}
int nvtxRangePushA(const char *name) {
  std::lock_guard guard(lock);
  ranges.push_back(name);
  return 0;
}
int nvtxRangePop() {
  std::lock_guard guard(lock);
  ranges.push_back("");
  return 0;
}

} // extern "C"

namespace fake_cuda {

std::vector<launch> launches() {
  std::lock_guard guard(lock);
  return launch_log;
}
std::map<std::string, int> calls() {
  std::lock_guard guard(lock);
  return call_counts;
}
int total_calls() {
  int n = 0;
  for (auto &[name, count] : calls())
    n += count;
  return n;
}
void fail_next(const std::string &function, int result, bool sticky) {
  std::lock_guard guard(lock);
  failures[function] = {result, sticky};
}
std::uint64_t memory_of(int ordinal, std::size_t bytes) {
  std::lock_guard guard(lock);
  auto p = reinterpret_cast<std::uint64_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  allocations[p] = {bytes, ordinal};
  return p;
}
int modules_alive() {
  std::lock_guard guard(lock);
  return modules;
}
void begin_capture(void *stream) {
  std::lock_guard guard(lock);
  captured = stream, graph.clear();
}
std::vector<launch> end_capture() {
  std::lock_guard guard(lock);
  captured = nullptr;
  return std::exchange(graph, {});
}
void replay(const std::vector<launch> &g) {
  std::lock_guard guard(lock);
  launch_log.insert(launch_log.end(), g.begin(), g.end());
}
std::vector<std::string> nvtx_log() {
  std::lock_guard guard(lock);
  return ranges;
}
int allocations_alive() {
  std::lock_guard guard(lock);
  return int(allocations.size());
}
int dynamic_shared_limit() {
  std::lock_guard guard(lock);
  return shared_limit;
}
void reset() {
  std::lock_guard guard(lock);
  call_counts.clear(), failures.clear(), launch_log.clear(), ranges.clear();
  captured = nullptr;
  sticky_failure = 0;
}

} // namespace fake_cuda
