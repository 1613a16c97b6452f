// An AMD GPU through HIP's module interface. Streams, memory and modules are those of HIP's default context, which other
// libraries of the process use too.
#include "../gpu/gpu_device.h"
#include "driver.h"

namespace tessera::detail {
namespace {

using namespace hip;

/// "gfx942:sramecc+:xnack-" -> "gfx942": code made without saying so runs with either setting.
std::string arch_of(const driver_api &hip, int ordinal) {
  auto p = std::make_unique<property_bytes>();
  std::memset(p->bytes, 0, sizeof p->bytes);
  gpu::check(hip, hip.GetDeviceProperties(p.get(), ordinal), "looking at a HIP device");
  const char *name = p->bytes + hip.arch_name_offset;
  const std::string_view text(name, strnlen(name, 256));
  if (!text.starts_with("gfx"))
    throw error(stage::driver, fmt::format("HIP {}.{} does not name the architecture of device {} where it is expected",
                                           hip.version / 10000000, hip.version / 100000 % 100, ordinal));
  return std::string(text.substr(0, text.find(':')));
}

/// Bytes of the cache between L2 and memory ("Infinity Cache" in AMD's data sheets: MI300, MI350, RX 7900, RX 9070), which
/// HIP does not tell of; the largest of each architecture.
std::size_t memory_side_cache(std::string_view arch) {
  constexpr std::size_t MiB = 1 << 20;
  return arch == "gfx942" || arch == "gfx950" ? 256 * MiB : arch == "gfx1100" ? 96 * MiB : arch == "gfx1201" ? 64 * MiB : 0;
}

class hip_device final : public gpu::gpu_device<driver_api> {
public:
  hip_device(const driver_api &hip, int ordinal) : gpu_device(hip), hip_(hip) {
    memory_space = first_space + ordinal;
    auto &p = properties;
    p.arch = arch_of(hip, ordinal);
    p.index = ordinal;
    char name[256] = "";
    check(hip.DeviceGetName(name, sizeof name, ordinal), "looking at a HIP device");
    p.name = *name ? name : "AMD " + p.arch; // versions without a table of names leave it empty
    p.multiprocessors = attribute(multiprocessor_count);
    p.warp_size = attribute(hip::warp_size);
    p.max_threads_per_program = attribute(max_threads_per_block);
    p.max_shared_bytes = attribute(shared_per_block);
    p.shared_bytes_per_multiprocessor = attribute(shared_per_multiprocessor);
    p.registers_per_multiprocessor = attribute(registers_per_multiprocessor, attribute(registers_per_block, 0));
    // Before version 6.3 HIP says 2^31 - 1 for y and z too; gfx12 counts there with 16 bits, and the code believes it.
    const auto of_16_bits = [&](device_attribute a) { return std::uint64_t(std::min(attribute(a), 65535)); };
    p.max_grid = {std::uint64_t(attribute(max_grid_x)), of_16_bits(max_grid_y), of_16_bits(max_grid_z)};
    check(hip.DeviceTotalMem(&p.memory_bytes, ordinal), "looking at a HIP device");
    p.l2_bytes = std::max<std::size_t>(attribute(l2_bytes, 0), memory_side_cache(p.arch));
    p.clock_ghz = attribute(clock_khz, 0) * 1e-6;
    // No peak_gbytes_per_s: how many transfers a memory clock stands for differs by generation, and HIP does not say.
    p.driver_version = hip.version;
    target = {target_kind::hip, p.arch};
  }

  /// Empty for GPUs that code can be made for.
  std::string why_unusable() const {
    try {
      parse_target(target.str());
    } catch (const error &) {
      return fmt::format("no code is made for {} ({})", properties.arch, properties.name);
    }
    if (properties.warp_size != target.warp_size())
      return fmt::format("its warps have {} lanes, code for {} is made for {}", properties.warp_size, properties.arch,
                         target.warp_size());
    return {};
  }

  std::unique_ptr<device_impl> for_arch(const std::string &arch) override {
    return arch == properties.arch ? std::make_unique<hip_device>(hip_, properties.index) : nullptr;
  }

  std::unique_ptr<loaded_code> load(compiled_kernel &kernel) override {
    const kernel_metadata &meta = kernel.metadata;
    const std::string *hsaco = kernel.find("hsaco");
    if (!hsaco || kernel.compiled_for.arch != properties.arch)
      throw error(stage::launch, fmt::format("kernel '{}' compiled for {} cannot be loaded on {} ({})", meta.name,
                                             kernel.compiled_for.str(), str(), properties.arch));
    auto code = prepare_code(meta); // its shared memory is part of the code object: none is added at the launch
    code->most_x = std::numeric_limits<std::uint32_t>::max() / code->threads; // a dispatch counts threads with 32 bits
    scope current(hip_, place());
    if (hipError_t r = hip_.ModuleLoadData(&code->module, hsaco->data()); r != success)
      fail(r, fmt::format("loading the code object of kernel '{}' for {}{}", meta.name, properties.arch,
                          r == no_binary_for_gpu ? " (the HIP runtime is too old for it, or made for another GPU)" : ""));
    check(hip_.ModuleGetFunction(&code->function, code->module, meta.name.c_str()), "finding a kernel in its module");
    int registers = 0, local = 0;
    if (kernel.registers < 0 && hip_.FuncGetAttribute(&registers, num_registers, code->function) == success)
      kernel.registers = registers;
    if (kernel.spills < 0 && hip_.FuncGetAttribute(&local, local_bytes, code->function) == success)
      kernel.spills = local; // tile programs use scratch memory for nothing else
    return code;
  }

  void launch_with(const launch_options &how, const loaded_code &code, checked_grid g, const void **args,
                   void *stream) override {
    auto &c = static_cast<const gpu::gpu_code<driver_api> &>(code);
    if (how.cluster[0] * how.cluster[1] * how.cluster[2] > 1)
      throw error(stage::launch, fmt::format("clusters need an sm_90 GPU or a newer one; {} is {}", str(), target.arch));
    if (!hip_.LaunchCooperativeKernel)
      throw error(stage::launch, fmt::format("cooperative launches need a newer HIP runtime; this one is {}.{}",
                                             hip_.version / 10000000, hip_.version / 100000 % 100));
    if (g.x > c.most_x)
      fail_threads(c, g);
    launched(c);
    scope current(hip_, place());
    hipError_t r = hip_.LaunchCooperativeKernel(c.function, g.x, g.y, g.z, c.threads, 1, 1, c.dynamic_shared,
                                                queue(stream), const_cast<void **>(args));
    if (r == cooperative_too_large)
      fail_cooperative(c, g);
    if (r != success)
      fail(r, "launching a kernel");
  }

private:
  static constexpr int first_space = 1 << 16; ///< beyond those of CUDA devices

  int attribute(device_attribute a) const {
    int value = 0;
    check(hip_.DeviceGetAttribute(&value, a, properties.index), "looking at a HIP device");
    return value;
  }
  /// The same, of one that not every version knows.
  int attribute(device_attribute a, int otherwise) const {
    int value = 0;
    if (hip_.DeviceGetAttribute(&value, a, properties.index) == success && value > 0)
      return value;
    hip_.GetLastError();
    return otherwise;
  }

  int place() override { return properties.index; }

  bool look_at(std::uint64_t p, gpu::pointer_facts &f) override {
    pointer_attributes a;
    hipError_t r;
    const bool known = hip::look_at(hip_, p, a, r);
    if (r != success && !driver_api::explain(r).empty())
      fail(r, "looking at a pointer");
    if (!known)
      return false;
    f.own = !a.host_pointer && !a.is_managed;
    f.ordinal = a.device;
    f.passed = a.is_managed ? p : reinterpret_cast<std::uint64_t>(a.device_pointer);
    void *begin = nullptr;
    if (hip_.MemGetAddressRange(&begin, &f.bytes, reinterpret_cast<void *>(p)) == success)
      f.begin = reinterpret_cast<std::uint64_t>(begin);
    else
      hip_.GetLastError(); // this address alone is known
    return true;
  }

  bool reach(int ordinal) override {
    int yes = 0;
    if (hip_.DeviceCanAccessPeer(&yes, properties.index, ordinal) != success || !yes)
      return false;
    const hipError_t r = hip_.DeviceEnablePeerAccess(ordinal, 0);
    if (r == peer_access_already_enabled)
      hip_.GetLastError();
    return r == success || r == peer_access_already_enabled;
  }

  const driver_api &hip_;
};

gpu::left_out &unused() { // such as the small GPU inside a processor
  static auto *devices = new gpu::left_out;
  return *devices;
}

} // namespace

std::vector<std::unique_ptr<device_impl>> make_hip_devices() {
  std::vector<std::unique_ptr<device_impl>> devices;
  const driver_api *hip = find_driver();
  int count = 0;
  if (!hip || hip->GetDeviceCount(&count) != success)
    return devices;
  for (int i = 0; i < count; ++i)
    try {
      auto device = std::make_unique<hip_device>(*hip, i);
      if (std::string why = device->why_unusable(); !why.empty())
        unused().add("hip", i, why);
      else
        devices.push_back(std::move(device));
    } catch (const error &e) {
      unused().add("hip", i, e.message());
    }
  return devices;
}

int hip_ordinal_of_stream(void *native) {
  const driver_api *hip = find_driver();
  if (!hip)
    throw error(stage::launch, "a native stream needs a driver: " + why_no_driver());
  if (native)
    return hip->GetStreamDeviceId(static_cast<hipStream_t>(native));
  int device = 0;
  gpu::check(*hip, hip->GetDevice(&device), "looking for the current device");
  return device;
}

std::string why_no_hip_device(bool none) {
  return !find_driver() ? why_no_driver() : none && unused().text().empty() ? "HIP finds no device" : unused().text();
}

} // namespace tessera::detail
