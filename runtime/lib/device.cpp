// The registry of devices, and the parts of buffers, streams and events that are the same for all of them.
#include "device_impl.h"

#include <cstring>
#include <map>
#include <mutex>
#include <optional>

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
  std::vector<std::unique_ptr<detail::device_impl>> gpus; // in the order of device::all()
  std::map<std::string, std::unique_ptr<detail::device_impl>> others; // CPU devices, GPUs with a target named

  registry() {
    for (auto make : {detail::make_cuda_devices, detail::make_hip_devices})
      for (auto &device : make())
        gpus.push_back(std::move(device));
  }

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

struct vendor {
  target_kind kind;
  std::string_view name;
  std::string (*why_missing)(bool none);
  int (*ordinal_of_stream)(void *);
};
constexpr vendor vendors[] = {
    {target_kind::cuda, "cuda", detail::why_no_cuda_device, detail::cuda_ordinal_of_stream},
    {target_kind::hip, "hip", detail::why_no_hip_device, detail::hip_ordinal_of_stream},
};

/// The GPUs of one vendor, in the order of their ordinals.
std::vector<detail::device_impl *> gpus_of(target_kind kind) {
  std::vector<detail::device_impl *> found;
  for (auto &g : all_devices().gpus)
    if (g->target.kind == kind)
      found.push_back(g.get());
  return found;
}

/// What there is, and why there is no more of `asked`, or of any vendor.
std::string found(std::optional<target_kind> asked) {
  std::string text, missing;
  for (const vendor &v : vendors) {
    const auto gpus = gpus_of(v.kind);
    for (auto *g : gpus)
      text += fmt::format(", {}:{} ({}, {})", v.name, g->properties.index, g->properties.name, g->properties.arch);
    if (!asked || v.kind == *asked)
      if (const std::string why = v.why_missing(gpus.empty()); !why.empty())
        missing += (missing.empty() ? "" : "; ") + why;
  }
  return fmt::format("this machine has the CPU{}{}", text.empty() ? " only" : text,
                     missing.empty() ? "" : fmt::format(" ({})", missing));
}

detail::device_impl &gpu_at(const vendor &v, int index) {
  for (auto *g : gpus_of(v.kind))
    if (g->properties.index == index)
      return *g;
  throw error(stage::launch, fmt::format("there is no device {}:{}; {}", v.name, index, found(v.kind)));
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

device device::cuda(int index) { return device(gpu_at(vendors[0], index)); }
device device::hip(int index) { return device(gpu_at(vendors[1], index)); }

device device::open(std::string_view text) {
  if (text == "auto")
    return best();
  for (const vendor &v : vendors) {
    if (!text.starts_with(v.name))
      continue;
    std::string_view rest = text.substr(v.name.size());
    if (rest.empty())
      if (const auto gpus = gpus_of(v.kind); !gpus.empty())
        return device(*gpus.front());
    if (rest.empty() || (rest.size() > 1 && rest[0] == ':' && rest.find_first_not_of("0123456789", 1) == rest.npos))
      return device(gpu_at(v, rest.empty() ? 0 : rest.size() > 5 ? -1 : std::stoi(std::string(rest.substr(1)))));
  }

  const tessera::target t = parse_target(text);
  registry &r = all_devices();
  if (t.kind == target_kind::cpu)
    return device(r.cpu(t));
  std::lock_guard guard(r.lock);
  auto &slot = r.others[t.str()];
  for (auto *g : gpus_of(t.kind)) { // the first that runs such code
    if (slot)
      break;
    if (g->target == t)
      return device(*g);
    slot = g->for_arch(t.arch);
  }
  if (!slot)
    throw error(stage::launch, fmt::format("there is no device that runs code for '{}'; {}", text, found(t.kind)));
  return device(*slot);
}

const device_properties &device::properties() const noexcept { return impl_->properties; }
const target &device::target() const noexcept { return impl_->target; }
std::string device::place() const {
  for (const vendor &v : vendors)
    if (v.kind == target().kind)
      return fmt::format("{}:{}", v.name, properties().index);
  return target().str();
}
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
  const vendor *owner = nullptr;
  for (const vendor &v : vendors)
    if (!gpus_of(v.kind).empty()) {
      if (owner)
        throw error(stage::launch, "this machine has GPUs of two vendors, and a native stream does not say whose it is: "
                                   "name the device");
      owner = &v;
    }
  if (!owner)
    owner = &vendors[0]; // says why there is none
  return {gpu_at(*owner, owner->ordinal_of_stream(native)), native, false};
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
void *event::native() const {
  if (!native_)
    throw error(stage::launch, "this event was moved from");
  return native_;
}
void event::record(const stream &s) {
  if (s.memory_space() != impl_->memory_space)
    throw error(stage::launch, "an event is recorded on a stream of the device it was made for");
  impl_->record(native(), s.native());
}
void event::synchronize() const { impl_->synchronize_event(native()); }
void event::wait(const stream &s) const {
  if (s.impl().target.kind == impl_->target.kind && s.memory_space() != 0)
    s.impl().wait(s.native(), native());
  else // not the same driver's; and work on the CPU is done when it is given, so that nothing is left to order
    impl_->synchronize_event(native());
}
double event::elapsed_ms(const event &start) const {
  if (start.impl_->memory_space != impl_->memory_space)
    throw error(stage::launch, "the time between two events is known where both are of one device");
  return impl_->elapsed_ms(start.native(), native());
}

// ---- memory
// ------------------------------------------------------------------------------------------------------------

namespace detail {

std::string what_machine_has() { return found({}); }

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
                fmt::format("this memory is of {}, the stream of {}", device(const_cast<device_impl &>(d)).place(),
                            s->device().place()));
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
void copy_between(device_impl &to_device, void *to, device_impl &from_device, const void *from, std::size_t bytes,
                  const stream *s) {
  if (to_device.target.kind == from_device.target.kind) {
    if (!s && to_device.memory_space != from_device.memory_space) { // one default stream does not wait for another's
      event done{device(from_device)};
      done.record(stream::default_of(device(from_device)));
      done.wait(stream::default_of(device(to_device)));
    }
    return copy_within(to_device, to, from, bytes, s);
  }
  void *q = queue(to_device, s);
  std::vector<std::byte> host(bytes);
  copy_out(from_device, host.data(), from, bytes, nullptr);
  if (bytes)
    to_device.copy_in(to, host.data(), bytes, q);
  to_device.synchronize(q); // before the host's copy goes
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
