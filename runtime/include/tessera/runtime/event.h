#pragma once
// A point in a stream's work, for timing and for ordering streams.
#include <utility>

#include <tessera/runtime/stream.h>

namespace tessera {

class TESSERA_API event {
public:
  explicit event(const device &d);
  event(event &&other) noexcept : impl_(other.impl_), native_(std::exchange(other.native_, nullptr)) {}
  event &operator=(event &&other) noexcept {
    event taken(std::move(other)); // what was here goes with it
    std::swap(impl_, taken.impl_), std::swap(native_, taken.native_);
    return *this;
  }
  ~event();

  /// Marks the place after the work given to `s` so far.
  void record(const stream &s);
  /// Waits until that place is reached.
  void synchronize() const;
  /// Makes work given to `s` from now on wait for it.
  void wait(const stream &s) const;
  /// Milliseconds from `start` to this event; both recorded, waits for both.
  [[nodiscard]] double elapsed_ms(const event &start) const;

private:
  void *native() const; ///< throws where the event was moved from

  detail::device_impl *impl_;
  void *native_;
};

} // namespace tessera
