#pragma once
// What GPUs of all vendors do in the same way, written once over a driver's table of functions, which mean the same under
// other names. A vendor adds how its code is loaded, how it is launched with options, and what it knows of a pointer.
#include "../device_impl.h"
#include "driver.h"
#include "known_ranges.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <set>

namespace tessera::gpu {

template <class Driver> struct gpu_code final : detail::loaded_code {
  gpu_code(const Driver &driver, typename Driver::place where) : driver(driver), where(where) {}
  ~gpu_code() override {
    if (!module || shutting_down())
      return;
    typename Driver::scope scope(driver, where, std::nothrow);
    if (!scope)
      return;
    driver.Synchronize(); // a launch may still be running this code
    driver.ModuleUnload(module);
  }
  const Driver &driver;
  typename Driver::place where;
  typename Driver::module module = nullptr;
  typename Driver::function function = nullptr;
  unsigned threads = 0, dynamic_shared = 0;
  std::uint32_t most_x = std::numeric_limits<std::uint32_t>::max(); ///< programs along x with that many threads
  const std::string *name = nullptr; ///< kept by the device: a fault may be found when the kernel is gone
};

/// What a driver says of an address.
struct pointer_facts {
  bool own = false;              ///< a device's memory, which other devices reach only where they are connected
  int ordinal = -1;              ///< of that device
  std::uint64_t passed = 0;      ///< the address to pass on; differs for host memory mapped elsewhere
  std::uint64_t begin = 0, bytes = 0; ///< the allocation, as far as it is known
};

template <class Driver> class gpu_device : public detail::device_impl {
public:
  explicit gpu_device(const Driver &driver) : driver_(driver) {}

  // ---- memory
  // --------------------------------------------------------------------------------------------------------

  void *allocate(std::size_t bytes) override {
    scope current(driver_, place());
    typename Driver::address p{};
    result r = bytes > properties.memory_bytes ? Driver::out_of_memory : driver_.MemAlloc(&p, bytes);
    if (r == Driver::out_of_memory) {
      std::size_t free = 0, total = 0;
      driver_.MemGetInfo(&free, &total);
      throw error(stage::driver, fmt::format("out of memory: {} bytes asked for on {} ({}), which has {}, {} free: {}",
                                             bytes, str(), properties.name, total, free, driver_.describe(r)));
    }
    check(r, "allocating device memory");
    return reinterpret_cast<void *>(p);
  }
  void release(void *memory) noexcept override {
    free_epoch.fetch_add(1, std::memory_order_relaxed);
    if (shutting_down())
      return;
    if (scope current(driver_, place(), std::nothrow); current)
      driver_.MemFree(address(memory));
  }
  void copy_in(void *to, const void *from, std::size_t bytes, void *stream) override {
    scope current(driver_, place());
    check(driver_.MemcpyHtoDAsync(address(to), from, bytes, queue(stream)), "copying to the device");
  }
  void copy_out(void *to, const void *from, std::size_t bytes, void *stream) override {
    scope current(driver_, place());
    check(driver_.MemcpyDtoHAsync(to, address(from), bytes, queue(stream)), "copying from the device");
  }
  void copy_within(void *to, const void *from, std::size_t bytes, void *stream) override {
    scope current(driver_, place());
    check(driver_.MemcpyDtoDAsync(address(to), address(from), bytes, queue(stream)), "copying on the device");
  }
  void fill(void *to, const void *pattern, std::size_t width, std::size_t count, void *stream) override {
    scope current(driver_, place());
    auto set = [&](auto value, auto *driver_call, std::size_t n) {
      std::memcpy(&value, pattern, sizeof value);
      check(driver_call(address(to), value, n, queue(stream)), "filling device memory");
    };
    const auto *bytes = static_cast<const unsigned char *>(pattern);
    auto repeats = [&](std::size_t period) {
      return width % period == 0 && std::equal(bytes + period, bytes + width, bytes);
    };
    if (repeats(1))
      set(std::uint8_t{}, driver_.MemsetD8Async, width * count);
    else if (repeats(2))
      set(std::uint16_t{}, driver_.MemsetD16Async, width / 2 * count);
    else if (repeats(4))
      set(std::uint32_t{}, driver_.MemsetD32Async, width / 4 * count);
    else { // write one element, then double what is written
      check(driver_.MemcpyHtoDAsync(address(to), pattern, width, queue(stream)), "filling device memory");
      for (std::size_t done = 1; done < count; done *= 2)
        check(driver_.MemcpyDtoDAsync(address(static_cast<char *>(to) + done * width), address(to),
                                      std::min(done, count - done) * width, queue(stream)),
              "filling device memory");
    }
  }
  std::size_t free_bytes() override {
    scope current(driver_, place());
    std::size_t free = 0, total = 0;
    check(driver_.MemGetInfo(&free, &total), "asking for free memory");
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
    scope current(driver_, place());
    typename Driver::stream s;
    check(driver_.StreamCreate(&s, 0), "creating a stream");
    return s;
  }
  void destroy_stream(void *stream) noexcept override {
    if (!shutting_down())
      driver_.StreamDestroy(queue(stream));
  }
  void synchronize(void *stream) override {
    scope current(driver_, place());
    check(driver_.StreamSynchronize(queue(stream)), "waiting for a stream");
  }
  void synchronize_all() override {
    scope current(driver_, place());
    check(driver_.Synchronize(), "waiting for the device");
  }
  void *create_event() override {
    scope current(driver_, place());
    typename Driver::event e;
    check(driver_.EventCreate(&e, 0), "creating an event");
    return e;
  }
  void destroy_event(void *event) noexcept override {
    if (!shutting_down())
      driver_.EventDestroy(as_event(event));
  }
  void record(void *event, void *stream) override {
    scope current(driver_, place());
    check(driver_.EventRecord(as_event(event), queue(stream)), "recording an event");
  }
  void synchronize_event(void *event) override {
    scope current(driver_, place());
    check(driver_.EventSynchronize(as_event(event)), "waiting for an event");
  }
  void wait(void *stream, void *event) override {
    scope current(driver_, place());
    check(driver_.StreamWaitEvent(queue(stream), as_event(event), 0), "making a stream wait");
  }
  double elapsed_ms(void *start, void *stop) override {
    synchronize_event(start);
    synchronize_event(stop);
    scope current(driver_, place());
    float ms = 0;
    check(driver_.EventElapsedTime(&ms, as_event(start), as_event(stop)), "reading an event's time");
    return ms;
  }

  // ---- kernels
  // -------------------------------------------------------------------------------------------------------

  void launch(const detail::loaded_code &code, detail::checked_grid g, const void **args, void *stream) override {
    auto &c = static_cast<const gpu_code<Driver> &>(code);
    if (g.x > c.most_x) [[unlikely]]
      fail_threads(c, g);
    last_launched_.store(c.name, std::memory_order_relaxed);
    scope current(driver_, place());
    result r = driver_.LaunchKernel(c.function, g.x, g.y, g.z, c.threads, 1, 1, c.dynamic_shared, queue(stream),
                                    const_cast<void **>(args), nullptr);
    if (r != Driver::success) [[unlikely]]
      fail(r, "launching a kernel");
  }

  cpu_counters counters() const override {
    throw error(stage::launch,
                "a GPU does not count its traffic; run on the CPU device, or one that emulates this GPU");
  }
  void reset_counters() override {}

protected:
  using result = typename Driver::result;
  using scope = typename Driver::scope;
  using code = gpu_code<Driver>;

  /// What a scope of this device makes current.
  virtual typename Driver::place place() = 0;
  /// What the driver knows of `p`; false where it is no memory that a GPU may use. Called in a scope.
  virtual bool look_at(std::uint64_t p, pointer_facts &facts) = 0;
  /// Makes memory of another GPU usable, where the two are connected. Called in a scope.
  virtual bool reach(int ordinal) = 0;

  static typename Driver::address address(const void *p) {
    return reinterpret_cast<typename Driver::address>(const_cast<void *>(p));
  }
  static typename Driver::stream queue(void *s) { return static_cast<typename Driver::stream>(s); }
  std::string str() const { return fmt::format("{}:{}", Driver::kind, properties.index); }

  /// An error where the kernel needs more of the device than it has; else code that has everything but its module.
  std::unique_ptr<code> prepare_code(const kernel_metadata &meta) {
    if (meta.shared_bytes > properties.max_shared_bytes)
      throw error(
          stage::launch,
          fmt::format("kernel '{}' needs {} bytes of shared memory, {} has {}: use smaller tiles or fewer stages",
                      meta.name, meta.shared_bytes, str(), properties.max_shared_bytes));
    auto made = std::make_unique<code>(driver_, place());
    made->threads = unsigned(meta.num_warps * meta.warp_size);
    std::lock_guard guard(names_lock_);
    made->name = &*names_.insert(meta.name).first;
    return made;
  }

  /// Throws for a driver's answer; after a fault with the kernel it probably came from.
  [[noreturn]] void fail(result r, std::string_view doing) const {
    const std::string *last = last_launched_.load(std::memory_order_relaxed);
    gpu::fail(driver_, r,
              last && !Driver::explain(r).empty()
                  ? fmt::format("{} (the last kernel launched was '{}')", doing, *last)
                  : std::string(doing));
  }
  void check(result r, std::string_view doing) const {
    if (r != Driver::success) [[unlikely]]
      fail(r, doing);
  }
  void launched(const code &c) { last_launched_.store(c.name, std::memory_order_relaxed); }
  [[noreturn]] void fail_cooperative(const code &c, detail::checked_grid g) const {
    throw error(stage::launch,
                fmt::format("a cooperative launch of {} programs of kernel '{}' does not fit on {} at once: launch "
                            "fewer that do more each",
                            std::uint64_t(g.x) * g.y * g.z, *c.name, str()));
  }
  [[noreturn]] void fail_threads(const code &c, detail::checked_grid g) const {
    throw error(stage::launch,
                fmt::format("kernel '{}' cannot be launched with {} programs along x on {}: with {} threads each at "
                            "most {} are possible; let each do more, or use y",
                            *c.name, g.x, str(), c.threads, c.most_x));
  }

  const Driver &driver_;

private:
  static typename Driver::event as_event(void *e) { return static_cast<typename Driver::event>(e); }

  bool look_up(std::uint64_t &p, std::string &why, std::uint32_t epoch) {
    scope current(driver_, place());
    pointer_facts facts{.passed = p};
    if (!look_at(p, facts)) {
      why = fmt::format("is {:#x}, which is not memory of a GPU: pass a device_buffer, or memory from {}", p,
                        Driver::allocators);
      return false;
    }
    if (facts.own && facts.ordinal != properties.index && !reach(facts.ordinal)) {
      why = fmt::format("is memory of {}:{}, which {} cannot reach", Driver::kind, facts.ordinal, str());
      return false;
    }
    if (p - facts.begin >= facts.bytes) // the driver names no range: know this address alone
      facts.begin = p, facts.bytes = 1;
    near(p) = far(p) = {facts.begin, facts.begin + facts.bytes, facts.passed - p, this, epoch};
    p = facts.passed;
    return true;
  }

  std::atomic<const std::string *> last_launched_ = nullptr;
  std::mutex names_lock_;
  std::set<std::string> names_; // of kernels, never removed
};

} // namespace tessera::gpu
