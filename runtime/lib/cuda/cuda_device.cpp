// A CUDA GPU through the driver API, in the device's primary context, which is the one that the CUDA runtime and other
// libraries of the process use.
#include "../gpu/gpu_device.h"
#include "driver.h"

#include <chrono>

#include <fmt/format.h>

namespace tessera::detail {
namespace {

using namespace cuda;

class cuda_device final : public gpu::gpu_device<driver_api> {
public:
  cuda_device(const driver_api &cu, int ordinal, std::string arch = {}) : gpu_device(cu), cu_(cu) {
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

  // ---- kernels
  // -------------------------------------------------------------------------------------------------------

  std::string assembler() const override {
    if (has_assembler() && runs_cubin(target.arch))
      return {};
    return fmt::format("CUDA {} for sm_{}{}", cu_.version, major_, minor_);
  }

  std::unique_ptr<loaded_code> load(compiled_kernel &kernel) override {
    const kernel_metadata &meta = kernel.metadata;
    auto code = prepare_code(meta);
    code->dynamic_shared = meta.shared_bytes;
    scope current(cu_, place());

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
      kernel.spills = local; // tile programs use local memory for nothing else
    if (meta.shared_bytes > 48 * 1024)
      check(cu_.FuncSetAttribute(code->function, max_dynamic_shared, int(meta.shared_bytes)),
            "raising a kernel's shared memory");
    return code;
  }

  void launch_with(const launch_options &how, const loaded_code &code, checked_grid g, const void **args,
                   void *stream) override {
    auto &c = static_cast<const gpu::gpu_code<driver_api> &>(code);
    if (!cu_.LaunchKernelEx)
      throw error(stage::launch,
                  fmt::format("cooperative launches and clusters need a driver for CUDA 12; this one is for {}.{}",
                              cu_.version / 1000, cu_.version % 1000 / 10));
    const unsigned programs = how.cluster[0] * how.cluster[1] * how.cluster[2];
    if (programs > 1 && major_ < 9)
      throw error(stage::launch,
                  fmt::format("clusters need an sm_90 GPU or a newer one; {} is sm_{}{}", str(), major_, minor_));
    launched(c);
    scope current(cu_, place());
    if (programs > 8) // more than every GPU has to allow
      check(cu_.FuncSetAttribute(c.function, non_portable_cluster, 1), "allowing a large cluster");
    launch_attribute attributes[2];
    unsigned count = 0;
    if (how.cooperative)
      attributes[count++] = {launch_cooperative, {.flag = 1}};
    if (programs > 1)
      attributes[count++] = {launch_cluster, {.dimension = {how.cluster[0], how.cluster[1], how.cluster[2]}}};
    const launch_config config{{g.x, g.y, g.z}, {c.threads, 1, 1}, c.dynamic_shared, queue(stream), attributes, count};
    CUresult r = cu_.LaunchKernelEx(&config, c.function, const_cast<void **>(args), nullptr);
    if (r == cooperative_too_large)
      fail_cooperative(c, g);
    if (r != success)
      fail(r, "launching a kernel");
  }

  std::unique_ptr<device_impl> for_arch(const std::string &arch) override {
    return runs(arch) ? std::make_unique<cuda_device>(cu_, properties.index, arch) : nullptr;
  }

private:
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

  bool look_at(std::uint64_t p, gpu::pointer_facts &f) override {
    unsigned kind = no_memory, managed = 0;
    std::uint64_t mapped = 0;
    int attributes[] = {memory_type, is_managed, device_ordinal, device_pointer, range_start, range_size};
    void *results[] = {&kind, &managed, &f.ordinal, &mapped, &f.begin, &f.bytes};
    CUresult r = cu_.PointerGetAttributes(6, attributes, results, p);
    if (r != success && !driver_api::explain(r).empty())
      fail(r, "looking at a pointer");
    f.own = kind == device_memory && !managed;
    if (!managed && mapped)
      f.passed = mapped;
    return r == success && kind != no_memory;
  }

  /// The primary context, retained at first use: looking at devices costs no memory on them.
  CUcontext place() override {
    if (context_) [[likely]]
      return context_;
    CUcontext c = nullptr;
    check(cu_.DevicePrimaryCtxRetain(&c, device_), "starting the device");
    context_ = c;
    remember_context(c);
    return c;
  }

  bool reach(int ordinal) override {
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
      if (!driver_api::explain(r).empty())
        fail(r, "assembling a kernel");
      log.resize(std::min(log.find('\0'), log.size()));
      const char *hint = r == unsupported_ptx_version
                             ? " The driver is older than this PTX: install a newer driver, or put ptxas on the PATH."
                             : "";
      throw error(stage::assemble,
                  fmt::format("the driver (CUDA {}.{}) refused the PTX of kernel '{}' for {}: {}.{}{}{}",
                              cu_.version / 1000, cu_.version % 1000 / 10, kernel.metadata.name,
                              kernel.compiled_for.str(), cu_.describe(r), hint, log.empty() ? "" : "\n", log));
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
};

gpu::left_out &unused() {
  static auto *devices = new gpu::left_out;
  return *devices;
}

} // namespace

std::vector<std::unique_ptr<device_impl>> make_cuda_devices() {
  std::vector<std::unique_ptr<device_impl>> devices;
  const driver_api *cu = find_driver();
  int count = 0;
  if (cu && cu->DeviceGetCount(&count) == success)
    for (int i = 0; i < count; ++i)
      try {
        devices.push_back(std::make_unique<cuda_device>(*cu, i));
      } catch (const error &e) {
        unused().add("cuda", i, e.message());
      }
  return devices;
}

int cuda_ordinal_of_stream(void *native) {
  const driver_api *cu = find_driver();
  if (!cu)
    throw error(stage::launch, "a native stream needs a CUDA driver: " + why_no_driver());
  CUcontext of_stream = nullptr, primary = nullptr;
  CUdevice device = 0;
  if (native) {
    gpu::check(*cu, cu->StreamGetCtx(static_cast<CUstream>(native), &of_stream), "looking at a stream");
    scoped_context current(*cu, of_stream);
    gpu::check(*cu, cu->CtxGetDevice(&device), "looking at a stream");
  } else {
    gpu::check(*cu, cu->CtxGetCurrent(&of_stream), "looking for the current context");
    if (!of_stream)
      throw error(stage::launch,
                  "the default stream belongs to the thread's current context, and there is none: name the device");
    gpu::check(*cu, cu->CtxGetDevice(&device), "looking for the current device");
  }
  gpu::check(*cu, cu->DevicePrimaryCtxRetain(&primary, device), "starting the device");
  if (of_stream != primary)
    throw error(stage::launch,
                "the stream belongs to a context made by cuCtxCreate; kernels run in the device's primary context, "
                "which the CUDA runtime uses too");
  return device; // a CUdevice is the ordinal
}

std::string why_no_cuda_device(bool none) {
  if (!find_driver())
    return why_no_driver();
  return none && unused().text().empty() ? "the CUDA driver finds no device" : unused().text();
}

} // namespace tessera::detail
