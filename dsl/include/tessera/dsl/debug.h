#pragma once
// Facts told to the compiler, checks and prints.
#include <string_view>

#include <tessera/dsl/ops.h>

namespace tessera::tl {

/// Promises about a value, one number per dimension: its runs start at multiples of …; elements come in contiguous runs
/// of …; elements come in constant runs of … . A false promise makes wrong code. Each returns the value.
template <detail::traced X> auto multiple_of(const X &x, const dims &values, location w = location::current()) {
  return val<detail::element_of<X>>(detail::set_hint(detail::hint::divisibility, x.id(w), values, w));
}
template <detail::traced X> auto max_contiguous(const X &x, const dims &values, location w = location::current()) {
  return val<detail::element_of<X>>(detail::set_hint(detail::hint::contiguity, x.id(w), values, w));
}
template <detail::traced X> auto max_constancy(const X &x, const dims &values, location w = location::current()) {
  return val<detail::element_of<X>>(detail::set_hint(detail::hint::constancy, x.id(w), values, w));
}
/// Promises that a scalar condition holds.
inline void assume(detail::operand<bool> c) { detail::assume(c.h, c.w); }

/// Refuses the configuration while tracing.
inline void static_assert_(bool ok, std::string_view message, location w = location::current()) {
  if (!ok) detail::fail(message, w);
}
/// Stops the kernel with `message` where the condition is false (and the mask true). Compiled in with options.debug.
inline void device_assert(detail::operand<bool> c, std::string_view message, location w = location::current()) {
  detail::device_assert(c.h, message, {}, w);
}
inline void device_assert(detail::operand<bool> c, std::string_view message, detail::operand<bool> mask,
                          location w = location::current()) {
  detail::device_assert(c.h, message, mask.h, w);
}

/// The text before printed values; tl::hex("…") prints them in base 16.
struct print_prefix {
  std::string_view text;
  bool base16 = false;
  location w;
  template <std::convertible_to<std::string_view> S>
  print_prefix(const S &s, location l = location::current()) : text(s), w(l) {}
};
inline print_prefix hex(print_prefix p) {
  p.base16 = true;
  return p;
}
/// Prints the values from the device.
template <detail::traced... X> void device_print(print_prefix p, const X &...x) {
  const std::array<detail::handle, sizeof...(X)> ids{x.id(p.w)...};
  const std::array<element_type, sizeof...(X)> types{element_type_of<detail::element_of<X>>...};
  detail::device_print(p.text, ids, types, p.base16, p.w);
}

} // namespace tessera::tl
