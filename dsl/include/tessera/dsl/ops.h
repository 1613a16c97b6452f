#pragma once
// Making tiles, choosing between them and changing their shape. No function here touches memory.
#include <utility>

#include <tessera/dsl/val.h>

namespace tessera::detail {

template <class... X>
concept one_traced = (traced<X> || ...);

// The element type of the first traced argument.
template <class X, class... Rest> struct first_element : first_element<Rest...> {};
template <traced X, class... Rest> struct first_element<X, Rest...> { using type = element_of<X>; };
template <class... X> using common_element = typename first_element<X...>::type;

} // namespace tessera::detail

namespace tessera::tl {

/// This program's index along a grid axis (0, 1, 2), and the number of programs along it.
inline val<i32> program_id(int axis, location w = location::current()) {
  return val<i32>(detail::program_id(axis, false, w));
}
inline val<i32> num_programs(int axis, location w = location::current()) {
  return val<i32>(detail::program_id(axis, true, w));
}

/// first, first + 1, …, last - 1; as many as a power of two.
inline val<i32> arange(std::int64_t first, std::int64_t last, location w = location::current()) {
  return val<i32>(detail::arange(first, last, w));
}

/// A tile of one value, which may be traced.
template <element T> val<T> full(const dims &shape, detail::operand<T> x, location w = location::current()) {
  return val<T>(detail::full(x.h, shape, w));
}
template <memory_element T> val<T> zeros(const dims &shape, location w = location::current()) {
  return val<T>(detail::constant(element_type_of<T>, {}, shape, w));
}
template <detail::traced X> val<detail::element_of<X>> zeros_like(const X &x, location w = location::current()) {
  return zeros<detail::element_of<X>>(x.shape(w), w);
}
/// A traced scalar from a number: `tl::scalar<tl::i64>(n)`.
template <memory_element T> val<T> scalar(detail::operand<T> x) { return val<T>(x.h); }

/// Element-wise choice. One of `a`, `b` may be a number; both sides are always evaluated.
template <class A, class B>
  requires detail::one_traced<A, B>
auto where(detail::operand<bool> c, const A &a, const B &b, location w = location::current()) {
  using T = detail::common_element<A, B>;
  return val<T>(detail::select(c.h, detail::operand_of<T>(a, w), detail::operand_of<T>(b, w), w));
}

/// x.to<U>() and x.bitcast<U>() as functions, for templates.
template <element U, detail::traced X>
val<U> cast(const X &x, rounding r = rounding::nearest, location w = location::current()) {
  return x.template to<U>(r, w);
}
template <element U, detail::traced X> val<U> bitcast(const X &x, location w = location::current()) {
  return x.template bitcast<U>(w);
}

/// Repeats a scalar, and dimensions that are missing on the left or 1, until the shape is `shape`.
template <detail::traced X> auto broadcast_to(const X &x, const dims &shape, location w = location::current()) {
  return val<detail::element_of<X>>(detail::broadcast_to(x.id(w), shape, w));
}

struct reshape_options {
  bool can_reorder = false; ///< elements may end in any place, which can be cheaper
};
/// The same elements in row-major order under another shape.
template <detail::traced X>
auto reshape(const X &x, const dims &shape, reshape_options o = {}, location w = location::current()) {
  return val<detail::element_of<X>>(detail::reshape(x.id(w), shape, o.can_reorder, w));
}
template <detail::traced X> auto ravel(const X &x, location w = location::current()) {
  std::int64_t n = 1;
  const dims s = x.shape(w);
  for (int i = 0; i < s.rank; ++i) n *= s[i];
  return val<detail::element_of<X>>(detail::reshape(x.id(w), {n}, false, w));
}

/// Result dimension i is dimension order[i] of x.
template <detail::traced X> auto permute(const X &x, const dims &order, location w = location::current()) {
  return val<detail::element_of<X>>(detail::permute(x.id(w), order, w));
}
/// Swaps the last two dimensions, or permutes as told.
template <detail::traced X> auto trans(const X &x, const dims &order = {}, location w = location::current()) {
  return val<detail::element_of<X>>(detail::permute(x.id(w), order, w));
}

/// Inserts a dimension of size 1; a negative axis counts from the end of the result.
template <detail::traced X> auto expand_dims(const X &x, int axis, location w = location::current()) {
  return val<detail::element_of<X>>(detail::expand_dims(x.id(w), axis, w));
}

/// a, then b, along `axis`.
template <detail::traced A, detail::traced B>
auto cat(const A &a, const B &b, int axis = 0, location w = location::current()) {
  using T = detail::element_of<A>;
  return val<T>(detail::cat(a.id(w), detail::operand_of<T>(b, w), axis, w));
}
/// a and b as the two elements of a new last dimension; split is the inverse.
template <detail::traced A, detail::traced B> auto join(const A &a, const B &b, location w = location::current()) {
  using T = detail::element_of<A>;
  return val<T>(detail::join(a.id(w), detail::operand_of<T>(b, w), w));
}
template <detail::traced X> auto split(const X &x, location w = location::current()) {
  using V = val<detail::element_of<X>>;
  const auto [a, b] = detail::split(x.id(w), w);
  return std::pair<V, V>(a, b);
}

} // namespace tessera::tl
