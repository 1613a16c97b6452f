// The registry of devices, and the parts of buffers, streams and events that are the same for all of them.
#include "device_impl.h"

#include <cstring>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include <tessera/error.h>
#include <tessera/runtime/buffer.h>
#include <tessera/runtime/event.h>
#include <tessera/runtime/stream.h>

namespace tessera {
namespace {

// Devices are never destroyed: kernels and buffers at namespace scope may outlive every static object here.
struct registry {
  std::mutex lock;
  std::vector<std::unique_ptr<detail::device_impl>> gpus = detail::make_cuda_devices();
  std::map<std::string, std::unique_ptr<detail::device_impl>> others; // CPU devices, GPUs with a target named

  detail::device_impl &cpu(const target &t) {
    std::lock_guard guard(lock);
    auto &slot = others[t.str()];
    if (!slot)
      slot = detail::make_cpu_device(t);
    return *slot;
  }
};

registry &all_devices() {
  static registry *r = new registry;
  return *r;
}

std::string found() {
  auto &gpus = all_devices().gpus;
  if (gpus.empty())
    return fmt::format("this machine has the CPU only ({})", detail::why_no_cuda_device());
  std::string text = "this machine has the CPU";
  for (auto &g : gpus)
    text += fmt::format(", cuda:{} ({}, {})", g->properties.index, g->properties.name, g->properties.arch);
  return text;
}

} // namespace

std::vector<device> device::all() {
  std::vector<device> devices;
  for (auto &g : all_devices().gpus)
    devices.emplace_back(*g);
  devices.push_back(cpu());
  return devices;
}

device device::best() { return all().front(); }
device device::cpu() { return device(all_devices().cpu({target_kind::cpu, ""})); }

device device::cuda(int index) {
  auto &gpus = all_devices().gpus;
  if (index < 0 || static_cast<std::size_t>(index) >= gpus.size())
    throw error(stage::launch, fmt::format("there is no device cuda:{}; {}", index, found()));
  return device(*gpus[index]);
}

device device::open(std::string_view text) {
  if (text == "auto")
    return best();
  if (text == "cuda")
    return cuda(0);
  if (text.starts_with("cuda:") && text.size() > 5 && text.find_first_not_of("0123456789", 5) == text.npos)
    return cuda(text.size() > 9 ? -1 : std::stoi(std::string(text.substr(5))));

  const tessera::target t = parse_target(text);
  if (t.kind == target_kind::cpu)
    return device(all_devices().cpu(t));
  if (t.kind != target_kind::cuda)
    throw error(stage::launch,
                fmt::format("kernels cannot be launched on '{}': devices are the CPU and CUDA GPUs; {}",
                            text, found()));
  registry &r = all_devices();
  std::lock_guard guard(r.lock);
  auto &slot = r.others[t.str()];
  for (auto &g : r.gpus)
    if (!slot)
      slot = detail::make_cuda_device(*g, t.arch);
  if (!slot)
    throw error(stage::launch, fmt::format("there is no device that runs code for '{}'; {}", text, found()));
  return device(*slot);
}

const device_properties &device::properties() const noexcept { return impl_->properties; }
const target &device::target() const noexcept { return impl_->target; }
void device::synchronize() const { impl_->synchronize_all(); }
std::size_t device::free_bytes() const { return impl_->free_bytes(); }

// ---- streams and events
// ------------------------------------------------------------------------------------------------

stream::stream(detail::device_impl &impl, void *native, bool owned) noexcept
    : impl_(&impl), native_(native), space_(impl.memory_space), owned_(owned) {}
stream::stream(const tessera::device &d) : stream(d.impl(), d.impl().create_stream(), true) {}
stream stream::default_of(const tessera::device &d) { return {d.impl(), nullptr, false}; }
stream stream::from_native(const tessera::device &d, void *native) {
  if (d.is_cpu() && native)
    throw error(stage::launch, "a native stream belongs to a GPU; the CPU device has none");
  return {d.impl(), native, false};
}
stream stream::from_native(void *native) {
  all_devices(); // opens the driver
  return {device::cuda(detail::cuda_ordinal_of_stream(native)).impl(), native, false};
}
stream::~stream() {
  if (owned_ && native_)
    impl_->destroy_stream(native_);
}
void stream::synchronize() const { impl_->synchronize(native_); }
cpu_counters stream::counters() const { return impl_->counters(); }
void stream::reset_counters() const { impl_->reset_counters(); }

event::event(const device &d) : impl_(&d.impl()), native_(impl_->create_event()) {}
event::~event() {
  if (native_)
    impl_->destroy_event(native_);
}
void event::record(const stream &s) {
  if (&s.impl() != impl_)
    throw error(stage::launch, "an event is recorded on a stream of the device it was made for");
  impl_->record(native_, s.native());
}
void event::synchronize() const { impl_->synchronize_event(native_); }
void event::wait(const stream &s) const {
  if (s.memory_space() == 0 || impl_->memory_space == 0)
    impl_->synchronize_event(native_); // work on the CPU is done when it is given: nothing is left to order
  else
    s.impl().wait(s.native(), native_);
}
double event::elapsed_ms(const event &start) const { return impl_->elapsed_ms(start.native_, native_); }

// ---- memory
// ------------------------------------------------------------------------------------------------------------

namespace detail {

raw_buffer::raw_buffer(const device &d, std::size_t bytes)
    : impl_(&d.impl()), data_(impl_->allocate(bytes ? bytes : 1)), bytes_(bytes), space_(impl_->memory_space) {}
raw_buffer::~raw_buffer() {
  if (data_)
    impl_->release(data_);
}

namespace {
void *queue(const device_impl &d, const stream *s) {
  if (s && s->memory_space() != d.memory_space)
    throw error(stage::launch,
                fmt::format("this memory is of {}, the stream of {}", d.target.str(), s->device().target().str()));
  return s ? s->native() : nullptr;
}
} // namespace

void copy_in(device_impl &d, void *to, const void *from, std::size_t bytes, const stream *s) {
  void *q = queue(d, s);
  if (bytes)
    d.copy_in(to, from, bytes, q);
  if (!s)
    d.synchronize(nullptr);
}
void copy_out(device_impl &d, void *to, const void *from, std::size_t bytes, const stream *s) {
  void *q = queue(d, s);
  if (bytes)
    d.copy_out(to, from, bytes, q);
  if (!s)
    d.synchronize(nullptr);
}
void copy_within(device_impl &d, void *to, const void *from, std::size_t bytes, const stream *s) {
  void *q = queue(d, s);
  if (bytes)
    d.copy_within(to, from, bytes, q);
  if (!s)
    d.synchronize(nullptr);
}
void fill(device_impl &d, void *to, const void *pattern, std::size_t width, std::size_t count, const stream *s) {
  void *q = queue(d, s);
  if (count)
    d.fill(to, pattern, width, count, q);
  if (!s)
    d.synchronize(nullptr);
}

void fail_slice(std::size_t offset, std::size_t count, std::size_t size) {
  throw error(stage::launch, fmt::format("slice of {} elements from {} on is not inside a buffer of {} elements", count,
                                         offset, size));
}
void fail_copy(const char *what, std::size_t host, std::size_t device) {
  throw error(stage::launch,
              fmt::format("copy {}: {} elements given, the buffer has {}; the sizes must agree (use slice)", what, host,
                          device));
}

} // namespace detail
} // namespace tessera
