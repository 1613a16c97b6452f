// A CUDA GPU through the driver API: memory, streams, module loading and launch in the device's primary context, which
// is the one that the CUDA runtime and other libraries of the process use.
#include "../device_impl.h"
#include "driver.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>

#include <fmt/format.h>

namespace tessera::detail {
namespace {

using namespace cuda;

/// A range of addresses known to be good. An entry dies when any memory of this library is freed; memory freed by
/// others is not noticed, and a kernel that uses it faults as it would anywhere else.
struct known_range {
  std::uint64_t begin = 0, end = 0, shift = 0; ///< shift: from the address given to the one passed (mapped host memory)
  const void *device = nullptr;
  std::uint32_t epoch = 0;
};
std::atomic<std::uint32_t> free_epoch = 1;

/// Each thread's small cache of ranges. An address is looked for where itself was entered, then where its 2 MiB were:
/// so many small allocations and many places of a large one are found both.
thread_local std::array<known_range, 64> known_ranges;
known_range &near(std::uint64_t address) { return known_ranges[address * 0x9e3779b97f4a7c15u >> 59]; }
known_range &far(std::uint64_t address) { return known_ranges[32 + ((address >> 21) * 0x9e3779b97f4a7c15u >> 59)]; }

struct cuda_code final : loaded_code {
  cuda_code(const driver_api &cu, CUcontext context) : cu(cu), context(context) {}
  ~cuda_code() override {
    CUcontext old;
    if (!module || shutting_down() || cu.CtxPushCurrent(context) != success)
      return;
    cu.CtxSynchronize(); // a launch may still be running this code
    cu.ModuleUnload(module);
    cu.CtxPopCurrent(&old);
  }
  const driver_api &cu;
  CUcontext context;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  unsigned threads = 0, shared_bytes = 0;
  const std::string *name = nullptr; ///< kept by the device: a fault may be found when the kernel is gone
};

class cuda_device final : public device_impl {
public:
  cuda_device(const driver_api &cu, int ordinal, std::string arch = {}) : cu_(cu) {
    check(cu.DeviceGet(&device_, ordinal), "looking at a CUDA device");
    memory_space = 1 + ordinal;
    major_ = attribute(compute_major), minor_ = attribute(compute_minor);

    auto &p = properties;
    char name[256] = "";
    check(cu.DeviceGetName(name, sizeof name, device_), "looking at a CUDA device");
    p.name = name;
    // From 9.0 on, the architecture-specific instructions (suffix a) are what makes the GPU fast.
    p.arch = fmt::format("sm_{}{}{}", major_, minor_, major_ >= 9 ? "a" : "");
    p.index = ordinal;
    p.multiprocessors = attribute(sm_count);
    p.warp_size = 32;
    p.max_threads_per_program = attribute(max_threads_per_block);
    p.max_shared_bytes = attribute(shared_per_block_optin);
    p.shared_bytes_per_multiprocessor = attribute(shared_per_sm);
    p.registers_per_multiprocessor = attribute(registers_per_sm);
    p.max_grid = {std::uint64_t(attribute(max_grid_x)), std::uint64_t(attribute(max_grid_y)),
                  std::uint64_t(attribute(max_grid_z))};
    check(cu.DeviceTotalMem(&p.memory_bytes, device_), "looking at a CUDA device");
    p.l2_bytes = attribute(l2_bytes);
    p.clock_ghz = attribute(clock_khz) * 1e-6;
    // Two transfers a clock; the bus is given in bits.
    p.peak_gbytes_per_s = 2.0 * attribute(memory_clock_khz) * attribute(memory_bus_bits) / 8 * 1e-6;
    p.driver_version = cu.version;
    target = {target_kind::cuda, arch.empty() ? p.arch : std::move(arch)};
  }

  /// Whether code for `arch` ("sm_80", "sm_90a") runs here: suffixed code on that GPU alone, other code on newer ones
  /// too.
  bool runs(std::string_view arch) const {
    auto [number, suffix] = split(arch);
    int own = major_ * 10 + minor_;
    return suffix ? number == own : number > 0 && number <= own;
  }

  // ---- memory
  // --------------------------------------------------------------------------------------------------------

  void *allocate(std::size_t bytes) override {
    scoped_context scope(cu_, context());
    CUdeviceptr p = 0;
    CUresult r = bytes > properties.memory_bytes ? out_of_memory : cu_.MemAlloc(&p, bytes);
    if (r == out_of_memory) {
      std::size_t free = 0, total = 0;
      cu_.MemGetInfo(&free, &total);
      throw error(stage::driver, fmt::format("out of memory: {} bytes asked for on {} ({}), which has {}, {} free: {}",
                                             bytes, str(), properties.name, total, free, describe(cu_, r)));
    }
    check(r, "allocating device memory");
    return reinterpret_cast<void *>(p);
  }
  void release(void *memory) noexcept override {
    free_epoch.fetch_add(1, std::memory_order_relaxed);
    CUcontext old;
    if (!context_ || shutting_down() || cu_.CtxPushCurrent(context_) != success)
      return;
    cu_.MemFree(reinterpret_cast<CUdeviceptr>(memory));
    cu_.CtxPopCurrent(&old);
  }
  void copy_in(void *to, const void *from, std::size_t bytes, void *stream) override {
    scoped_context scope(cu_, context());
    check(cu_.MemcpyHtoDAsync(address(to), from, bytes, queue(stream)), "copying to the device");
  }
  void copy_out(void *to, const void *from, std::size_t bytes, void *stream) override {
    scoped_context scope(cu_, context());
    check(cu_.MemcpyDtoHAsync(to, address(from), bytes, queue(stream)), "copying from the device");
  }
  void copy_within(void *to, const void *from, std::size_t bytes, void *stream) override {
    scoped_context scope(cu_, context());
    check(cu_.MemcpyAsync(address(to), address(from), bytes, queue(stream)), "copying on the device");
  }
  void fill(void *to, const void *pattern, std::size_t width, std::size_t count, void *stream) override {
    scoped_context scope(cu_, context());
    auto set = [&](auto value, auto *driver_call, std::size_t n) {
      std::memcpy(&value, pattern, sizeof value);
      check(driver_call(address(to), value, n, queue(stream)), "filling device memory");
    };
    const auto *bytes = static_cast<const unsigned char *>(pattern);
    auto repeats = [&](std::size_t period) {
      return width % period == 0 && std::equal(bytes + period, bytes + width, bytes);
    };
    if (repeats(1))
      set(std::uint8_t{}, cu_.MemsetD8Async, width * count);
    else if (repeats(2))
      set(std::uint16_t{}, cu_.MemsetD16Async, width / 2 * count);
    else if (repeats(4))
      set(std::uint32_t{}, cu_.MemsetD32Async, width / 4 * count);
    else { // write one element, then double what is written
      check(cu_.MemcpyHtoDAsync(address(to), pattern, width, queue(stream)), "filling device memory");
      for (std::size_t done = 1; done < count; done *= 2)
        check(cu_.MemcpyAsync(address(to) + done * width, address(to), std::min(done, count - done) * width,
                              queue(stream)),
              "filling device memory");
    }
  }
  std::size_t free_bytes() override {
    scoped_context scope(cu_, context());
    std::size_t free = 0, total = 0;
    check(cu_.MemGetInfo(&free, &total), "asking for free memory");
    return free;
  }

  bool usable_pointer(std::uint64_t &p, std::string &why) override {
    const std::uint32_t epoch = free_epoch.load(std::memory_order_relaxed);
    for (known_range *known : {&near(p), &far(p)})
      if (p - known->begin < known->end - known->begin && known->device == this && known->epoch == epoch) [[likely]] {
        p += known->shift;
        return true;
      }
    return look_up(p, why, epoch);
  }

  // ---- queues
  // --------------------------------------------------------------------------------------------------------

  void *create_stream() override {
    scoped_context scope(cu_, context());
    CUstream s;
    check(cu_.StreamCreate(&s, 0), "creating a stream");
    return s;
  }
  void destroy_stream(void *stream) noexcept override {
    if (!shutting_down())
      cu_.StreamDestroy(queue(stream));
  }
  void synchronize(void *stream) override {
    scoped_context scope(cu_, context());
    check(cu_.StreamSynchronize(queue(stream)), "waiting for a stream");
  }
  void synchronize_all() override {
    scoped_context scope(cu_, context());
    check(cu_.CtxSynchronize(), "waiting for the device");
  }
  void *create_event() override {
    scoped_context scope(cu_, context());
    CUevent e;
    check(cu_.EventCreate(&e, 0), "creating an event");
    return e;
  }
  void destroy_event(void *event) noexcept override {
    if (!shutting_down())
      cu_.EventDestroy(static_cast<CUevent>(event));
  }
  void record(void *event, void *stream) override {
    scoped_context scope(cu_, context());
    check(cu_.EventRecord(static_cast<CUevent>(event), queue(stream)), "recording an event");
  }
  void synchronize_event(void *event) override {
    scoped_context scope(cu_, context());
    check(cu_.EventSynchronize(static_cast<CUevent>(event)), "waiting for an event");
  }
  void wait(void *stream, void *event) override {
    scoped_context scope(cu_, context());
    check(cu_.StreamWaitEvent(queue(stream), static_cast<CUevent>(event), 0), "making a stream wait");
  }
  double elapsed_ms(void *start, void *stop) override {
    synchronize_event(start);
    synchronize_event(stop);
    scoped_context scope(cu_, context());
    float ms = 0;
    check(cu_.EventElapsedTime(&ms, static_cast<CUevent>(start), static_cast<CUevent>(stop)),
          "reading an event's time");
    return ms;
  }

  // ---- kernels
  // -------------------------------------------------------------------------------------------------------

  std::string assembler() const override {
    if (has_assembler() && runs_cubin(target.arch))
      return {};
    return fmt::format("CUDA {} for sm_{}{}", cu_.version, major_, minor_);
  }

  std::unique_ptr<loaded_code> load(compiled_kernel &kernel) override {
    const kernel_metadata &meta = kernel.metadata;
    if (meta.shared_bytes > properties.max_shared_bytes)
      throw error(
          stage::launch,
          fmt::format("kernel '{}' needs {} bytes of shared memory, {} has {}: use smaller tiles or fewer stages",
                      meta.name, meta.shared_bytes, str(), properties.max_shared_bytes));
    scoped_context scope(cu_, context());
    auto code = std::make_unique<cuda_code>(cu_, context());
    code->threads = unsigned(meta.num_warps * meta.warp_size);
    code->shared_bytes = meta.shared_bytes;
    {
      std::lock_guard guard(names_lock_);
      code->name = &*names_.insert(meta.name).first;
    }

    // Machine code of an older architecture does not run on a newer GPU, its PTX does.
    const std::string *cubin = runs_cubin(kernel.compiled_for.arch) || kernel.cached ? kernel.find("cubin") : nullptr;
    if (!cubin)
      cubin = &assemble(kernel);
    if (CUresult r = cu_.ModuleLoadData(&code->module, cubin->data()); r != success)
      fail(r,
           fmt::format(
               "loading the machine code of kernel '{}' (where ptxas is newer than the driver, TESSERA_PTXAS= leaves "
               "assembling to the driver)",
               meta.name));
    check(cu_.ModuleGetFunction(&code->function, code->module, meta.name.c_str()), "finding a kernel in its module");

    int registers = 0, local = 0;
    check(cu_.FuncGetAttribute(&registers, num_registers, code->function), "reading a kernel's registers");
    check(cu_.FuncGetAttribute(&local, local_bytes, code->function), "reading a kernel's local memory");
    kernel.registers = registers;
    if (kernel.spills < 0)
      kernel.spills = local / 4; // tile programs use local memory for nothing else
    if (meta.shared_bytes > 48 * 1024)
      check(cu_.FuncSetAttribute(code->function, max_dynamic_shared, int(meta.shared_bytes)),
            "raising a kernel's shared memory");
    return code;
  }

  void launch(const loaded_code &code, checked_grid g, const void **args, void *stream) override {
    auto &c = static_cast<const cuda_code &>(code);
    last_launched_.store(c.name, std::memory_order_relaxed);
    scoped_context scope(cu_, context());
    CUresult r = cu_.LaunchKernel(c.function, g.x, g.y, g.z, c.threads, 1, 1, c.shared_bytes, queue(stream),
                                  const_cast<void **>(args), nullptr);
    if (r != success) [[unlikely]]
      fail(r, "launching a kernel");
  }

  void launch_with(const launch_options &how, const loaded_code &code, checked_grid g, const void **args,
                   void *stream) override {
    auto &c = static_cast<const cuda_code &>(code);
    if (!cu_.LaunchKernelEx)
      throw error(stage::launch,
                  fmt::format("cooperative launches and clusters need a driver for CUDA 12; this one is for {}.{}",
                              cu_.version / 1000, cu_.version % 1000 / 10));
    const unsigned programs = how.cluster[0] * how.cluster[1] * how.cluster[2];
    if (programs > 1 && major_ < 9)
      throw error(stage::launch,
                  fmt::format("clusters need an sm_90 GPU or a newer one; {} is sm_{}{}", str(), major_, minor_));
    last_launched_.store(c.name, std::memory_order_relaxed);
    scoped_context scope(cu_, context());
    if (programs > 8) // more than every GPU has to allow
      check(cu_.FuncSetAttribute(c.function, non_portable_cluster, 1), "allowing a large cluster");
    launch_attribute attributes[2];
    unsigned count = 0;
    if (how.cooperative)
      attributes[count++] = {launch_cooperative, {.flag = 1}};
    if (programs > 1)
      attributes[count++] = {launch_cluster, {.dimension = {how.cluster[0], how.cluster[1], how.cluster[2]}}};
    const launch_config config{{g.x, g.y, g.z}, {c.threads, 1, 1}, c.shared_bytes, queue(stream), attributes, count};
    CUresult r = cu_.LaunchKernelEx(&config, c.function, const_cast<void **>(args), nullptr);
    if (r == cooperative_too_large)
      throw error(stage::launch,
                  fmt::format("a cooperative launch of {} programs of kernel '{}' does not fit on {} at once: launch "
                              "fewer that do more each",
                              std::uint64_t(g.x) * g.y * g.z, *c.name, str()));
    if (r != success)
      fail(r, "launching a kernel");
  }

  cpu_counters counters() const override {
    throw error(stage::launch,
                "a GPU does not count its traffic; run on the CPU device, or one that emulates this GPU");
  }
  void reset_counters() override {}

private:
  static CUdeviceptr address(const void *p) { return reinterpret_cast<CUdeviceptr>(p); }
  static CUstream queue(void *s) { return static_cast<CUstream>(s); }
  std::string str() const { return fmt::format("cuda:{}", memory_space - 1); }

  int attribute(device_attribute a) const {
    int value = 0;
    check(cu_.DeviceGetAttribute(&value, a, device_), "looking at a CUDA device");
    return value;
  }

  /// Whether machine code of `arch` runs here as it is.
  bool runs_cubin(std::string_view arch) const { return split(arch).first / 10 == major_; }

  /// "sm_90a" -> 90, true.
  static std::pair<int, bool> split(std::string_view arch) {
    int number = 0;
    if (arch.starts_with("sm_"))
      arch.remove_prefix(3);
    while (!arch.empty() && arch.front() >= '0' && arch.front() <= '9')
      number = number * 10 + (arch.front() - '0'), arch.remove_prefix(1);
    return {number, !arch.empty()};
  }

  bool look_up(std::uint64_t &p, std::string &why, std::uint32_t epoch) {
    scoped_context scope(cu_, context());
    unsigned kind = no_memory, managed = 0;
    int ordinal = -1;
    std::uint64_t mapped = 0, begin = 0;
    std::size_t bytes = 0;
    int attributes[] = {memory_type, is_managed, device_ordinal, device_pointer, range_start, range_size};
    void *results[] = {&kind, &managed, &ordinal, &mapped, &begin, &bytes};
    CUresult r = cu_.PointerGetAttributes(6, attributes, results, p);
    if (r != success && is_fault(r))
      fail(r, "looking at a pointer");
    if (r != success || kind == no_memory) {
      why = fmt::format("is {:#x}, which is not memory of a GPU: pass a device_buffer, or memory from cudaMalloc, "
                        "cudaMallocManaged or cudaHostRegister",
                        p);
      return false;
    }
    if (kind == device_memory && !managed && ordinal != memory_space - 1 && !reach(ordinal)) {
      why = fmt::format("is memory of cuda:{}, which {} cannot reach", ordinal, str());
      return false;
    }
    if (p - begin >= bytes) // the driver names no range: know this address alone
      begin = p, bytes = 1;
    near(p) = far(p) = {begin, begin + bytes, managed || !mapped ? 0 : mapped - p, this, epoch};
    p += near(p).shift;
    return true;
  }

  /// Throws for a driver's answer; after a fault with the kernel it probably came from.
  [[noreturn]] void fail(CUresult r, std::string_view doing) const {
    const std::string *last = last_launched_.load(std::memory_order_relaxed);
    cuda::fail(cu_, r,
               last && is_fault(r) ? fmt::format("{} (the last kernel launched was '{}')", doing, *last)
                                   : std::string(doing));
  }
  void check(CUresult r, std::string_view doing) const {
    if (r != success) [[unlikely]]
      fail(r, doing);
  }

  /// The primary context, retained at first use: looking at devices costs no memory on them.
  CUcontext context() {
    if (context_) [[likely]]
      return context_;
    CUcontext c = nullptr;
    check(cu_.DevicePrimaryCtxRetain(&c, device_), "starting the device");
    context_ = c;
    remember_context(c);
    return c;
  }

  /// Makes memory of another GPU usable, where the two are connected.
  bool reach(int ordinal) {
    int yes = 0;
    CUdevice other;
    CUcontext its_context = nullptr;
    if (cu_.DeviceGet(&other, ordinal) != success || cu_.DeviceCanAccessPeer(&yes, device_, other) != success || !yes ||
        cu_.DevicePrimaryCtxRetain(&its_context, other) != success)
      return false;
    CUresult r = cu_.CtxEnablePeerAccess(its_context, 0);
    return r == success || r == peer_access_already_enabled;
  }

  /// PTX to machine code by the driver's linker; the result becomes the "cubin" stage.
  const std::string &assemble(compiled_kernel &kernel) {
    const std::string *ptx = kernel.find("ptx");
    if (!ptx)
      throw error(stage::launch, fmt::format("kernel '{}' compiled for {} cannot be loaded on {} ({}): it holds no PTX",
                                             kernel.metadata.name, kernel.compiled_for.str(), str(), properties.arch));
    auto began = std::chrono::steady_clock::now();
    std::string log(16384, '\0');
    int options[] = {error_log, error_log_bytes, generate_line_info};
    void *values[] = {log.data(), reinterpret_cast<void *>(log.size()),
                      reinterpret_cast<void *>(std::uintptr_t(kernel.options.line_info))};
    CUlinkState link = nullptr;
    void *cubin = nullptr;
    std::size_t bytes = 0;
    CUresult r = cu_.LinkCreate(3, options, values, &link);
    if (r == success)
      r = cu_.LinkAddData(link, input_ptx, const_cast<char *>(ptx->c_str()), ptx->size() + 1,
                          kernel.metadata.name.c_str(), 0, nullptr, nullptr);
    if (r == success)
      r = cu_.LinkComplete(link, &cubin, &bytes);
    std::string code(static_cast<const char *>(cubin), bytes);
    if (link)
      cu_.LinkDestroy(link);
    if (r != success) {
      if (is_fault(r))
        fail(r, "assembling a kernel");
      log.resize(std::min(log.find('\0'), log.size()));
      const char *hint = r == unsupported_ptx_version
                             ? " The driver is older than this PTX: install a newer driver, or put ptxas on the PATH."
                             : "";
      throw error(stage::assemble,
                  fmt::format("the driver (CUDA {}.{}) refused the PTX of kernel '{}' for {}: {}.{}{}{}",
                              cu_.version / 1000, cu_.version % 1000 / 10, kernel.metadata.name,
                              kernel.compiled_for.str(), describe(cu_, r), hint, log.empty() ? "" : "\n", log));
    }
    kernel.times.push_back(
        {"driver-jit", std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count()});
    std::erase_if(kernel.stages, [](auto &s) { return s.first == "cubin"; });
    return kernel.stages.emplace_back("cubin", std::move(code)).second;
  }

  const driver_api &cu_;
  CUdevice device_ = 0;
  std::atomic<CUcontext> context_ = nullptr;
  int major_ = 0, minor_ = 0;
  std::atomic<const std::string *> last_launched_ = nullptr;
  std::mutex names_lock_;
  std::set<std::string> names_; // of kernels, never removed
};

} // namespace

std::vector<std::unique_ptr<device_impl>> make_cuda_devices() {
  std::vector<std::unique_ptr<device_impl>> devices;
  const driver_api *cu = find_driver();
  int count = 0;
  if (cu && cu->DeviceGetCount(&count) == success)
    for (int i = 0; i < count; ++i)
      devices.push_back(std::make_unique<cuda_device>(*cu, i));
  return devices;
}

std::unique_ptr<device_impl> make_cuda_device(const device_impl &like, const std::string &arch) {
  if (!static_cast<const cuda_device &>(like).runs(arch))
    return nullptr;
  return std::make_unique<cuda_device>(*find_driver(), like.properties.index, arch);
}

int cuda_ordinal_of_stream(void *native) {
  const driver_api *cu = find_driver();
  if (!cu)
    throw error(stage::launch, "a native stream needs a CUDA driver: " + why_no_driver());
  CUcontext of_stream = nullptr, primary = nullptr;
  CUdevice device = 0;
  if (native) {
    cuda::check(*cu, cu->StreamGetCtx(static_cast<CUstream>(native), &of_stream), "looking at a stream");
    scoped_context scope(*cu, of_stream);
    cuda::check(*cu, cu->CtxGetDevice(&device), "looking at a stream");
  } else {
    cuda::check(*cu, cu->CtxGetCurrent(&of_stream), "looking for the current context");
    if (!of_stream)
      throw error(stage::launch,
                  "the default stream belongs to the thread's current context, and there is none: name the device");
    cuda::check(*cu, cu->CtxGetDevice(&device), "looking for the current device");
  }
  cuda::check(*cu, cu->DevicePrimaryCtxRetain(&primary, device), "starting the device");
  if (of_stream != primary)
    throw error(stage::launch,
                "the stream belongs to a context made by cuCtxCreate; kernels run in the device's primary context, "
                "which the CUDA runtime uses too");
  return device; // a CUdevice is the ordinal
}

std::string why_no_cuda_device() { return find_driver() ? "the CUDA driver finds no device" : why_no_driver(); }

} // namespace tessera::detail
