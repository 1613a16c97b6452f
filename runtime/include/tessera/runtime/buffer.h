#pragma once
// Memory of a device, owned by one object.
#include <bit>
#include <cstring>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include <tessera/error.h>
#include <tessera/runtime/device.h>
#include <tessera/runtime/stream.h>

namespace tessera {

namespace detail {

/// Untyped device memory. Aligned to 256 bytes; an empty allocation has an address too.
class TESSERA_API raw_buffer {
public:
  raw_buffer(const device &d, std::size_t bytes);
  raw_buffer(raw_buffer &&other) noexcept
      : impl_(other.impl_), data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)),
        space_(other.space_) {}
  raw_buffer &operator=(raw_buffer &&other) noexcept {
    raw_buffer taken(std::move(other)); // what was here goes with it
    std::swap(impl_, taken.impl_), std::swap(data_, taken.data_);
    std::swap(bytes_, taken.bytes_), std::swap(space_, taken.space_);
    return *this;
  }
  ~raw_buffer();

  device_impl *impl_;
  void *data_;
  std::size_t bytes_;
  int space_;
};

// `s` null: on the default stream, and wait until done.
TESSERA_API void copy_in(device_impl &d, void *to, const void *from, std::size_t bytes, const stream *s);
TESSERA_API void copy_out(device_impl &d, void *to, const void *from, std::size_t bytes, const stream *s);
TESSERA_API void copy_within(device_impl &d, void *to, const void *from, std::size_t bytes, const stream *s);
/// Between GPUs: of different vendors by way of the host, and done when it returns.
TESSERA_API void copy_between(device_impl &to_device, void *to, device_impl &from_device, const void *from,
                              std::size_t bytes, const stream *s);
TESSERA_API void fill(device_impl &d, void *to, const void *pattern, std::size_t width, std::size_t count,
                      const stream *s);
[[noreturn]] TESSERA_API void fail_slice(std::size_t offset, std::size_t count, std::size_t size);
[[noreturn]] TESSERA_API void fail_copy(const char *what, std::size_t host_elements, std::size_t device_elements);

} // namespace detail

/// Part of a device's memory, which a device_buffer owns.
///
/// Copies without a stream are done when they return. With a stream they are ordered after its work so far, and host
/// memory must stay untouched until the stream is synchronised.
template <class T> class buffer_view {
  static_assert(std::is_trivially_copyable_v<T>,
                "a device buffer holds plain data: its element type must be trivially copyable");

public:
  using value_type = std::remove_const_t<T>;
  buffer_view(detail::device_impl &impl, T *data, std::size_t size, int space) noexcept
      : impl_(&impl), data_(data), size_(size), space_(space) {}
  operator buffer_view<const T>() const noexcept requires(!std::is_const_v<T>) {
    return {*impl_, data_, size_, space_};
  }

  /// The address on the device; not to be read through on the host unless the device is a CPU.
  [[nodiscard]] T *data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
  [[nodiscard]] tessera::device device() const noexcept { return tessera::device(*impl_); }
  [[nodiscard]] int memory_space() const noexcept { return space_; }

  /// `count` elements from `offset` on. Throws tessera::error (launch) when they are not inside.
  [[nodiscard]] buffer_view slice(std::size_t offset, std::size_t count) const {
    if (offset > size_ || count > size_ - offset)
      detail::fail_slice(offset, count, size_);
    return {*impl_, data_ + offset, count, space_};
  }
  [[nodiscard]] buffer_view slice(std::size_t offset) const {
    return slice(offset, offset > size_ ? 0 : size_ - offset);
  }

  /// Copies all elements from the host. The sizes must agree.
  void copy_from(std::span<const value_type> host) const { copy_in(host, nullptr); }
  void copy_from(std::span<const value_type> host, const stream &s) const { copy_in(host, &s); }
  /// Copies all elements to the host. The sizes must agree.
  void copy_to(std::span<value_type> host) const { copy_out(host, nullptr); }
  void copy_to(std::span<value_type> host, const stream &s) const { copy_out(host, &s); }
  /// Copies from memory of the same device, or of one it can reach. Without a stream, after the work given to both devices.
  void copy_from(buffer_view<const value_type> other) const { copy_peer(other, nullptr); }
  void copy_from(buffer_view<const value_type> other, const stream &s) const { copy_peer(other, &s); }
  /// A new vector with all elements.
  [[nodiscard]] std::vector<value_type> to_host() const {
    std::vector<value_type> v(size_);
    copy_to(v);
    return v;
  }
  /// Sets every element to `value`.
  void fill(const value_type &value) const { detail::fill(*impl_, mut(), &value, sizeof(T), size_, nullptr); }
  void fill(const value_type &value, const stream &s) const {
    detail::fill(*impl_, mut(), &value, sizeof(T), size_, &s);
  }
  /// Sets every byte.
  void fill_bytes(unsigned char byte) const { detail::fill(*impl_, mut(), &byte, 1, size_bytes(), nullptr); }

private:
  value_type *mut() const noexcept {
    static_assert(!std::is_const_v<T>, "this view is of const elements: it can be read, not written");
    return data_;
  }
  void copy_in(std::span<const value_type> host, const stream *s) const {
    if (host.size() != size_)
      detail::fail_copy("from the host", host.size(), size_);
    detail::copy_in(*impl_, mut(), host.data(), size_bytes(), s);
  }
  void copy_out(std::span<value_type> host, const stream *s) const {
    if (host.size() != size_)
      detail::fail_copy("to the host", host.size(), size_);
    detail::copy_out(*impl_, host.data(), data_, size_bytes(), s);
  }
  void copy_peer(buffer_view<const value_type> other, const stream *s) const {
    if (other.size() != size_)
      detail::fail_copy("from a buffer", other.size(), size_);
    if (other.memory_space() == 0 && space_ != 0)
      detail::copy_in(*impl_, mut(), other.data(), size_bytes(), s);
    else if (other.memory_space() != 0 && space_ == 0)
      detail::copy_out(other.device().impl(), mut(), other.data(), size_bytes(), s);
    else
      detail::copy_between(*impl_, mut(), other.device().impl(), other.data(), size_bytes(), s);
  }

  detail::device_impl *impl_;
  T *data_;
  std::size_t size_;
  int space_;
};

/// `size` elements of device memory, freed with this object. On the CPU device it is host memory.
template <class T> class device_buffer {
  static_assert(!std::is_const_v<T>,
                "a device_buffer owns writable memory; a kernel may still take it as ptr<const T>");

public:
  /// Not initialised. Throws tessera::error (driver) when the memory does not suffice; nothing is lost by that.
  device_buffer(const tessera::device &d, std::size_t size) : raw_(d, checked_bytes(size)) {}
  /// A copy of host data.
  device_buffer(const tessera::device &d, std::span<const T> host) : device_buffer(d, host.size()) {
    view().copy_from(host);
  }
  device_buffer(const tessera::device &d, const std::vector<T> &host) : device_buffer(d, std::span<const T>(host)) {}

  [[nodiscard]] buffer_view<T> view() noexcept { return {*raw_.impl_, data(), size(), raw_.space_}; }
  [[nodiscard]] buffer_view<const T> view() const noexcept { return {*raw_.impl_, data(), size(), raw_.space_}; }
  operator buffer_view<T>() noexcept { return view(); }
  operator buffer_view<const T>() const noexcept { return view(); }

  [[nodiscard]] T *data() noexcept { return static_cast<T *>(raw_.data_); }
  [[nodiscard]] const T *data() const noexcept { return static_cast<const T *>(raw_.data_); }
  [[nodiscard]] std::size_t size() const noexcept { return raw_.bytes_ / sizeof(T); }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return raw_.bytes_; }
  [[nodiscard]] tessera::device device() const noexcept { return tessera::device(*raw_.impl_); }
  [[nodiscard]] int memory_space() const noexcept { return raw_.space_; }

  [[nodiscard]] buffer_view<T> slice(std::size_t offset, std::size_t count) { return view().slice(offset, count); }
  [[nodiscard]] buffer_view<const T> slice(std::size_t offset, std::size_t count) const {
    return view().slice(offset, count);
  }
  [[nodiscard]] buffer_view<T> slice(std::size_t offset) { return view().slice(offset); }
  [[nodiscard]] buffer_view<const T> slice(std::size_t offset) const { return view().slice(offset); }

  void copy_from(std::span<const T> host) { view().copy_from(host); }
  void copy_from(std::span<const T> host, const stream &s) { view().copy_from(host, s); }
  void copy_from(buffer_view<const T> other) { view().copy_from(other); }
  void copy_from(buffer_view<const T> other, const stream &s) { view().copy_from(other, s); }
  void copy_to(std::span<T> host) const { view().copy_to(host); }
  void copy_to(std::span<T> host, const stream &s) const { view().copy_to(host, s); }
  [[nodiscard]] std::vector<T> to_host() const { return view().to_host(); }
  void fill(const T &value) { view().fill(value); }
  void fill(const T &value, const stream &s) { view().fill(value, s); }
  void fill_bytes(unsigned char byte) { view().fill_bytes(byte); }

private:
  static std::size_t checked_bytes(std::size_t size) {
    // A size that overflows asks for more than any machine has: keep it that large.
    return size > SIZE_MAX / sizeof(T) ? SIZE_MAX : size * sizeof(T);
  }
  detail::raw_buffer raw_;
};

} // namespace tessera
