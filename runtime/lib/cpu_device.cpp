// The CPU as a device: memory is the host's, work is done when it is given, kernels run on the thread pool of lib/cpu.
#include "cuda/driver.h"
#include "hip/driver.h"
#include "device_impl.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <unistd.h>

#include <fmt/format.h>

#include <tessera/error.h>

namespace tessera::detail {
namespace {

using clock = std::chrono::steady_clock;

struct cpu_code final : loaded_code {
  explicit cpu_code(const compiled_kernel &k) : kernel(cpu_kernel::load(k)) {}
  std::shared_ptr<const cpu_kernel> kernel;
};

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name"))
      if (auto at = line.find(": "); at != line.npos)
        return line.substr(at + 2);
  return "CPU";
}

std::size_t page_bytes(int count_name) {
  long pages = sysconf(count_name), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? std::size_t(pages) * std::size_t(size) : 0;
}

class cpu_device final : public device_impl {
public:
  explicit cpu_device(const tessera::target &t) {
    target = t;
    auto &p = properties;
    p.name = processor_name();
    p.arch = t.emulated() ? t.arch : host_cpu();
    p.multiprocessors = cpu_threads();
    p.warp_size = t.warp_size();
    p.max_threads_per_program = 1024;
    p.max_shared_bytes = p.shared_bytes_per_multiprocessor = t.max_shared_bytes();
    // An emulated GPU refuses the grids that the GPU refuses.
    p.max_grid = t.emulated() ? std::array<std::uint64_t, 3>{0x7fffffff, 65535, 65535}
                              : std::array<std::uint64_t, 3>{0x7fffffff, 0x7fffffff, 0x7fffffff};
    p.memory_bytes = page_bytes(_SC_PHYS_PAGES);
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (cache <= 0)
      cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    p.l2_bytes = cache > 0 ? cache : 0;
  }

  void *allocate(std::size_t bytes) override {
    // The kernel promises memory it does not have and kills the process later: more than the machine has fails here.
    std::size_t rounded = bytes + 255 < bytes ? bytes : (bytes + 255) & ~std::size_t(255);
    void *p = properties.memory_bytes && bytes > properties.memory_bytes ? nullptr : std::aligned_alloc(256, rounded);
    if (!p)
      throw error(stage::driver,
                  fmt::format("out of memory: {} bytes asked for on the CPU device, the machine has {}, {} free", bytes,
                              properties.memory_bytes, free_bytes()));
    return p;
  }
  void release(void *memory) noexcept override { std::free(memory); }
  void copy_in(void *to, const void *from, std::size_t n, void *) override { std::memmove(to, from, n); }
  void copy_out(void *to, const void *from, std::size_t n, void *) override { std::memmove(to, from, n); }
  void copy_within(void *to, const void *from, std::size_t n, void *) override { std::memmove(to, from, n); }
  void fill(void *to, const void *pattern, std::size_t width, std::size_t count, void *) override {
    if (width == 1)
      std::memset(to, *static_cast<const unsigned char *>(pattern), count);
    else
      for (std::size_t i = 0; i < count; ++i)
        std::memcpy(static_cast<char *>(to) + i * width, pattern, width);
  }
  std::size_t free_bytes() override { return page_bytes(_SC_AVPHYS_PAGES); }

  bool usable_pointer(std::uint64_t &address, std::string &why) override {
    const char *vendor = cuda::is_device_only(address) ? "CUDA" : hip::is_device_only(address) ? "HIP" : nullptr;
    if (vendor)
      why = fmt::format("is memory of a {} device, which the CPU cannot read; copy it to a buffer of the CPU device",
                        vendor);
    return !vendor;
  }

  void *create_stream() override { return nullptr; }
  void destroy_stream(void *) noexcept override {}
  void synchronize(void *) override {}
  void synchronize_all() override {}
  void *create_event() override { return new clock::time_point{}; }
  void destroy_event(void *event) noexcept override { delete static_cast<clock::time_point *>(event); }
  void record(void *event, void *) override { *static_cast<clock::time_point *>(event) = clock::now(); }
  void synchronize_event(void *) override {}
  void wait(void *, void *) override {}
  double elapsed_ms(void *start, void *stop) override {
    auto a = *static_cast<clock::time_point *>(start), b = *static_cast<clock::time_point *>(stop);
    if (a == clock::time_point{} || b == clock::time_point{})
      throw error(stage::driver, "an event's time is known only after event::record");
    return std::chrono::duration<double, std::milli>(b - a).count();
  }

  std::unique_ptr<loaded_code> load(compiled_kernel &kernel) override { return std::make_unique<cpu_code>(kernel); }

  void launch(const loaded_code &code, checked_grid g, const void **args, void *) override {
    cpu_counters c = static_cast<const cpu_code &>(code).kernel->run({g.x, g.y, g.z}, args);
    programs_.fetch_add(c.programs, std::memory_order_relaxed);
    bytes_loaded_.fetch_add(c.bytes_loaded, std::memory_order_relaxed);
    bytes_stored_.fetch_add(c.bytes_stored, std::memory_order_relaxed);
    flops_.fetch_add(c.flops, std::memory_order_relaxed);
  }

  void launch_with(const launch_options &how, const loaded_code &code, checked_grid g, const void **args,
                   void *stream) override {
    if (how.cooperative)
      throw error(stage::launch, "a cooperative launch needs a GPU: the CPU runs a program to its end before it starts "
                                 "others, so programs cannot wait for one another");
    launch(code, g, args, stream); // a cluster changes where programs run, not what they do
  }

  cpu_counters counters() const override { return {programs_, bytes_loaded_, bytes_stored_, flops_}; }
  void reset_counters() override { programs_ = bytes_loaded_ = bytes_stored_ = flops_ = 0; }

private:
  std::atomic<std::uint64_t> programs_ = 0, bytes_loaded_ = 0, bytes_stored_ = 0, flops_ = 0;
};

} // namespace

std::unique_ptr<device_impl> make_cpu_device(const tessera::target &t) { return std::make_unique<cpu_device>(t); }

} // namespace tessera::detail
