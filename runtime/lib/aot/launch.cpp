// libtessera-launch.so: the devices of the runtime behind a C interface, for kernels compiled ahead of time.
#include "../device_impl.h"
#include "../launch_options.h"
#include "linked_function.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include <fmt/format.h>

#include <tessera/aot/launch.h>
#include <tessera/error.h>
#include <tessera/runtime/device.h>

namespace tessera::aot {
namespace {

thread_local std::string last_error;

/// Runs `work`; an exception becomes the thread's error text.
template <class F> int guarded(const F &work) noexcept {
  try {
    last_error.clear();
    work();
    return 0;
  } catch (const std::exception &e) {
    last_error = e.what();
  }
  return 1;
}

detail::device_impl &device_of(int number) {
  static const auto *all = new std::vector<device>(device::all()); // the CPU is the last
  if (number >= 0 && std::size_t(number) + 1 < all->size())
    return (*all)[std::size_t(number)].impl();
  if (number != -1)
    throw error(stage::launch, fmt::format("there is no device {}: {}", number, detail::what_machine_has()));
  return all->back().impl();
}

/// An image on one device. Loaded at its first launch, then only read.
struct choice {
  const tessera_image *image;
  tessera::target target;
  detail::device_impl *device;
  std::unique_ptr<detail::device_impl> own_device; ///< the same GPU, for code of another architecture
  std::unique_ptr<detail::loaded_code> code;
  std::atomic<const detail::loaded_code *> ready = nullptr;
  std::vector<std::uint8_t> passed; ///< parameters that the code takes
};

/// What of a kernel runs on one device, the best first.
struct on_device {
  std::vector<std::unique_ptr<choice>> choices;
};

constexpr int most_devices = 64;
struct kernel_state {
  std::mutex lock;
  std::vector<std::unique_ptr<on_device>> owned;
  std::atomic<const on_device *> devices[most_devices + 1] = {};
};

/// Made at the first launch and kept: code runs until the process ends.
kernel_state &state_of(tessera_kernel &k) {
  if (void *s = __atomic_load_n(&k.state, __ATOMIC_ACQUIRE)) [[likely]]
    return *static_cast<kernel_state *>(s);
  auto made = std::make_unique<kernel_state>();
  void *expected = nullptr;
  if (__atomic_compare_exchange_n(&k.state, &expected, static_cast<void *>(made.get()), false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return *made.release();
  return *static_cast<kernel_state *>(expected);
}

/// "sm_90a" -> 901: newer architectures are better, and code that is specific to one more so.
int rank(const std::string &arch) {
  int number = 0;
  for (char c : arch)
    if (c >= '0' && c <= '9')
      number = number * 10 + (c - '0');
  return 10 * number + (arch.ends_with('a') ? 1 : 0);
}

std::unique_ptr<on_device> find_choices(const tessera_kernel &k, int number) {
  detail::device_impl &d = device_of(number);
  auto found = std::make_unique<on_device>();
  std::string targets;
  for (std::uint32_t i = 0; i < k.num_images; ++i) {
    const tessera_image &image = k.images[i];
    auto c = std::make_unique<choice>();
    c->image = &image, c->target = parse_target(image.target), c->device = &d;
    if (targets.find(image.target) == targets.npos)
      targets += (targets.empty() ? "" : ", ") + std::string(image.target);
    if (c->target.kind != d.target.kind)
      continue;
    if (c->target.kind != target_kind::cpu && c->target != d.target) {
      c->own_device = d.for_arch(c->target.arch);
      if (!(c->device = c->own_device.get()))
        continue;
    }
    if (c->target.kind == target_kind::cpu && image.warp_size > d.target.warp_size())
      continue; // made for a processor with wider vectors
    for (std::uint32_t p = 0; p < k.num_parameters; ++p)
      if (!(image.equal_to_1 >> p & 1))
        c->passed.push_back(std::uint8_t(p));
    found->choices.push_back(std::move(c));
  }
  if (found->choices.empty())
    throw error(stage::launch, fmt::format("kernel '{}' has no code for {} ({}); it was compiled for {}", k.name,
                                           d.target.str(), d.properties.arch, targets));
  std::ranges::stable_sort(found->choices, std::greater<>(), [](const auto &c) {
    return std::tuple(rank(c->target.arch), std::popcount(c->image->equal_to_1),
                      std::popcount(c->image->divisible_by_16));
  });
  return found;
}

const on_device &choices_of(tessera_kernel &k, kernel_state &s, int number) {
  if (number < -1 || number >= most_devices)
    throw error(stage::launch, fmt::format("there is no device {}", number));
  auto &slot = s.devices[number + 1];
  if (const on_device *known = slot.load(std::memory_order_acquire)) [[likely]]
    return *known;
  std::lock_guard guard(s.lock);
  if (const on_device *known = slot.load(std::memory_order_acquire))
    return *known;
  s.owned.push_back(find_choices(k, number));
  slot.store(s.owned.back().get(), std::memory_order_release);
  return *s.owned.back();
}

const detail::loaded_code &load(const tessera_kernel &k, kernel_state &s, choice &c) {
  if (const detail::loaded_code *ready = c.ready.load(std::memory_order_acquire)) [[likely]]
    return *ready;
  std::lock_guard guard(s.lock);
  if (const detail::loaded_code *ready = c.ready.load(std::memory_order_acquire))
    return *ready;
  const tessera_image &image = *c.image;
  compiled_kernel kernel;
  kernel.compiled_for = c.target;
  kernel.metadata.name = image.symbol;
  kernel.metadata.num_warps = int(image.num_warps), kernel.metadata.warp_size = int(image.warp_size);
  kernel.metadata.shared_bytes = image.shared_bytes;
  for (std::uint8_t p : c.passed)
    kernel.metadata.params.push_back({k.parameters[p].bytes, k.parameters[p].pointer != 0});
  auto add = [&](const char *name, const void *bytes, std::size_t size) {
    if (bytes)
      kernel.stages.emplace_back(name, std::string(static_cast<const char *>(bytes), size));
  };
  add("ptx", image.ptx, image.ptx_bytes);
  add(c.target.kind == target_kind::hip ? "hsaco" : "cubin", image.code, image.code_bytes);
  if (image.function) {
    const cpu::linked_function linked{reinterpret_cast<cpu::entry_point>(image.function), image.waits != 0};
    add("obj", &linked, sizeof linked);
  }
  c.code = c.device->load(kernel);
  c.ready.store(c.code.get(), std::memory_order_release);
  return *c.code;
}

/// What of the values the code may rely on, as tl::kernel finds it.
specialization describe(const tessera_kernel &k, const std::uint64_t *values) {
  specialization s;
  for (std::uint32_t i = 0; i < k.num_parameters; ++i) {
    const tessera_parameter &p = k.parameters[i];
    s.divisible_by_16 |= std::uint64_t((p.pointer || p.integer) && (values[i] & 15) == 0) << i;
    s.equal_to_1 |= std::uint64_t(p.integer && values[i] == 1) << i;
  }
  return s;
}

choice &choose(const tessera_kernel &k, const on_device &d, const std::uint64_t *values) {
  const specialization s = describe(k, values);
  for (auto &c : d.choices)
    if (!(c->image->divisible_by_16 & ~s.divisible_by_16) && !(c->image->equal_to_1 & ~s.equal_to_1)) [[likely]]
      return *c;
  throw error(
      stage::launch,
      fmt::format("kernel '{}' was not compiled for such arguments: export it with the specialisation {{}} too, "
                  "which takes any",
                  k.name));
}

void launch(tessera_kernel &k, tessera_stream stream, tessera_grid g, const std::uint64_t *given) {
  kernel_state &s = state_of(k);
  const on_device &d = choices_of(k, s, stream.device);
  choice &c = choose(k, d, given);
  auto &most = c.device->properties.max_grid;
  const std::int64_t sizes[] = {g.x, g.y, g.z};
  for (int i = 0; i < 3; ++i)
    if (std::uint64_t(sizes[i]) > most[i]) // a negative one is large
      throw error(stage::launch,
                  fmt::format("kernel '{}' cannot be launched with grid ({}, {}, {}): {} takes at most ({}, {}, {}) "
                              "programs",
                              k.name, g.x, g.y, g.z, c.device->target.str(), most[0], most[1], most[2]));
  if (!g.x || !g.y || !g.z)
    return;
  std::uint64_t values[64];
  const void *passed[64];
  std::string why;
  for (std::size_t i = 0; i < c.passed.size(); ++i) {
    const std::uint8_t p = c.passed[i];
    values[i] = given[p];
    passed[i] = &values[i];
    if (k.parameters[p].pointer && values[i] && !c.device->usable_pointer(values[i], why))
      throw error(stage::launch, fmt::format("argument {} of kernel '{}' {}", p + 1, k.name, why));
  }
  const detail::checked_grid programs{std::uint32_t(g.x), std::uint32_t(g.y), std::uint32_t(g.z)};
  const launch_options how{k.cooperative != 0, {k.cluster[0], k.cluster[1], k.cluster[2]}};
  if (how == launch_options()) [[likely]]
    return c.device->launch(load(k, s, c), programs, passed, stream.native);
  if (const std::string why = detail::refused(how, {g.x, g.y, g.z}); !why.empty())
    throw error(stage::launch, fmt::format("kernel '{}' cannot be launched {}", k.name, why));
  c.device->launch_with(how, load(k, s, c), programs, passed, stream.native);
}

} // namespace
} // namespace tessera::aot

using tessera::aot::device_of, tessera::aot::guarded;

extern "C" {

const char *tessera_error(void) { return tessera::aot::last_error.c_str(); }

int tessera_count_devices(int *count) {
  return guarded([&] { *count = int(tessera::device::all().size()) - 1; }); // the CPU is the last of all
}
int tessera_target_of(int device, const char **target) {
  return guarded([&] {
    static std::mutex lock;
    static auto *names = new std::map<int, std::string>;
    std::lock_guard guard(lock);
    *target = names->try_emplace(device, device_of(device).target.str()).first->second.c_str();
  });
}
int tessera_allocate(int device, size_t bytes, void **memory) {
  return guarded([&] { *memory = device_of(device).allocate(bytes ? bytes : 1); });
}
int tessera_release(int device, void *memory) {
  return guarded([&] {
    if (memory)
      device_of(device).release(memory);
  });
}
int tessera_copy_to_device(tessera_stream s, void *to, const void *from, size_t bytes) {
  return guarded([&] {
    auto &d = device_of(s.device);
    if (bytes)
      d.copy_in(to, from, bytes, s.native);
    d.synchronize(s.native);
  });
}
int tessera_copy_to_host(tessera_stream s, void *to, const void *from, size_t bytes) {
  return guarded([&] {
    auto &d = device_of(s.device);
    if (bytes)
      d.copy_out(to, from, bytes, s.native);
    d.synchronize(s.native);
  });
}
int tessera_create_stream(int device, tessera_stream *s) {
  return guarded([&] { *s = {device, device_of(device).create_stream()}; });
}
int tessera_destroy_stream(tessera_stream s) {
  return guarded([&] {
    if (s.native)
      device_of(s.device).destroy_stream(s.native);
  });
}
int tessera_synchronize(tessera_stream s) {
  return guarded([&] { device_of(s.device).synchronize(s.native); });
}

int tessera_launch(tessera_kernel *kernel, tessera_stream s, tessera_grid programs, const uint64_t *values) {
  return guarded([&] { tessera::aot::launch(*kernel, s, programs, values); });
}
int tessera_prepare(tessera_kernel *kernel, tessera_stream s) {
  return guarded([&] {
    auto &state = tessera::aot::state_of(*kernel);
    for (auto &c : tessera::aot::choices_of(*kernel, state, s.device).choices)
      (void)tessera::aot::load(*kernel, state, *c);
  });
}

} // extern "C"
