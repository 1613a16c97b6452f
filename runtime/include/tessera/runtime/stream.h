#pragma once
// A queue of work on one device.
#include <utility>

#include <tessera/export.h>
#include <tessera/runtime/cpu_executor.h>
#include <tessera/runtime/device.h>

namespace tessera {

/// An ordered queue of launches and copies. On the CPU device work is done at once, when it is given: a launch returns
/// when its programs have run, and throws what they reported. On a GPU work runs later; faults are thrown by
/// synchronize(). Streams created here wait for the device's default stream and the other way round.
class TESSERA_API stream {
public:
  /// A new stream.
  explicit stream(const device &d);
  /// The device's default stream, on which buffers copy when no stream is named.
  static stream default_of(const device &d);
  /// Uses an existing CUstream (or cudaStream_t) or hipStream_t of `d`, which the caller keeps alive.
  static stream from_native(const device &d, void *native);
  /// The same, on the device the stream belongs to: the current one of this thread where `native` is null. Throws on a
  /// machine with GPUs of two vendors.
  static stream from_native(void *native);

  /// `other` becomes the default stream of its device.
  stream(stream &&other) noexcept
      : impl_(other.impl_), native_(std::exchange(other.native_, nullptr)), space_(other.space_),
        owned_(std::exchange(other.owned_, false)) {}
  stream &operator=(stream &&other) noexcept {
    stream taken(std::move(other)); // what was here goes with it
    std::swap(impl_, taken.impl_), std::swap(native_, taken.native_);
    std::swap(space_, taken.space_), std::swap(owned_, taken.owned_);
    return *this;
  }
  ~stream();

  /// Waits for everything given to the stream. Throws what a kernel did wrong (stage execute).
  void synchronize() const;
  [[nodiscard]] tessera::device device() const noexcept { return tessera::device(*impl_); }
  /// The CUstream or hipStream_t; null for the default stream and on the CPU.
  [[nodiscard]] void *native() const noexcept { return native_; }

  /// CPU only: what launches on this device did since the last reset (see compile_options::count_traffic).
  [[nodiscard]] cpu_counters counters() const;
  void reset_counters() const;

  [[nodiscard]] detail::device_impl &impl() const noexcept { return *impl_; }
  /// Which memory the device uses: 0 for the host's, 1 + ordinal for a GPU's.
  [[nodiscard]] int memory_space() const noexcept { return space_; }

private:
  stream(detail::device_impl &impl, void *native, bool owned) noexcept;

  detail::device_impl *impl_;
  void *native_;
  int space_;
  bool owned_;
};

} // namespace tessera
