#pragma once
// Reductions along one axis, or over all elements. Their order is fixed for a given kernel, options and target.
#include <array>
#include <tuple>

#include <tessera/dsl/math.h>

namespace tessera::tl {

/// The axis to reduce; negative counts from the end, all_axes takes every element.
struct axis {
  int index = detail::all_axes;
  constexpr axis() = default;
  constexpr axis(int i) : index(i) {}
};
inline constexpr axis all_axes{};

struct reduce_options {
  bool keep_dims = false; ///< the axis stays, with size 1
};

} // namespace tessera::tl

namespace tessera::detail {

// Sums of narrow integers and of masks are taken in 32 bits.
template <class T> struct sum_type { using type = T; };
template <class T>
  requires((integer_element<T> && sizeof(T) < 4) || std::same_as<T, bool>)
struct sum_type<T> {
  using type = std::conditional_t<integer_element<T> && !is_signed(dtype_of<T>), std::uint32_t, std::int32_t>;
};

template <reduce_op Op, reduce_op Propagate = Op> struct extreme_reduction {
  template <traced X>
  auto operator()(const X &x, tl::axis a = {}, tl::reduce_options o = {}, tl::propagate_nan p = tl::propagate_nan::none,
                  location w = location::current()) const {
    using T = element_of<X>;
    check_domain<domain::any, T>();
    return tl::val<T>(
        reduce(p == tl::propagate_nan::all ? Propagate : Op, dtype_of<T>, x.id(w), a.index, o.keep_dims, w));
  }
};

template <bool Maximum> struct index_reduction {
  template <traced X>
  tl::val<std::int32_t> operator()(const X &x, tl::axis a = {}, tl::reduce_options o = {},
                                   location w = location::current()) const {
    check_domain<domain::any, element_of<X>>();
    return tl::val<std::int32_t>(reduce_index(Maximum, dtype_of<element_of<X>>, x.id(w), a.index, o.keep_dims, w)[1]);
  }
};
template <bool Maximum> struct value_index_reduction {
  template <traced X>
  auto operator()(const X &x, tl::axis a = {}, tl::reduce_options o = {}, location w = location::current()) const {
    using T = element_of<X>;
    check_domain<domain::any, T>();
    const auto [v, i] = reduce_index(Maximum, dtype_of<T>, x.id(w), a.index, o.keep_dims, w);
    return std::pair<tl::val<T>, tl::val<std::int32_t>>(v, i);
  }
};

/// Drops region `id` when an exception leaves its scope.
struct region_guard {
  std::uint32_t id;
  bool done = false;
  ~region_guard() {
    if (!done) abandon(id);
  }
};

} // namespace tessera::detail

namespace tessera::tl {

/// Sum. i8, i16 and bool add up in i32, u8 and u16 in u32; floats in their own type.
template <detail::traced X> auto sum(const X &x, axis a = {}, reduce_options o = {}, location w = location::current()) {
  using T = detail::element_of<X>;
  using S = typename detail::sum_type<T>::type;
  static_assert(memory_element<T> && !float8_element<T>, "sum takes numbers; convert fp8 with .to<float>()");
  return val<S>(detail::reduce(detail::reduce_op::sum, dtype_of<S>, x.template to<S>(rounding::nearest, w).id(),
                               a.index, o.keep_dims, w));
}
/// Bitwise exclusive or of integers or masks.
template <detail::traced X>
auto xor_sum(const X &x, axis a = {}, reduce_options o = {}, location w = location::current()) {
  using T = detail::element_of<X>;
  static_assert(integer_element<T> || std::same_as<T, bool>, "xor_sum takes integers and masks");
  return val<T>(detail::reduce(detail::reduce_op::bit_xor, dtype_of<T>, x.id(w), a.index, o.keep_dims, w));
}

/// Extremes; NaNs are ignored unless they propagate. The index forms give the lowest index among equals.
inline constexpr detail::extreme_reduction<detail::reduce_op::max, detail::reduce_op::max_nan> max;
inline constexpr detail::extreme_reduction<detail::reduce_op::min, detail::reduce_op::min_nan> min;
inline constexpr detail::index_reduction<true> argmax;
inline constexpr detail::index_reduction<false> argmin;
inline constexpr detail::value_index_reduction<true> max_with_index;
inline constexpr detail::value_index_reduction<false> min_with_index;

/// Reduces several tiles of one shape together: `combine(a, b)` takes two tuples of scalars and returns one. It must be
/// associative and commutative, and may use its arguments and numbers only.
template <detail::traced... X, class F>
std::tuple<val<detail::element_of<X>>...> reduce(const std::tuple<X...> &xs, axis a, F &&combine, reduce_options o = {},
                                                 location w = location::current()) {
  constexpr std::size_t n = sizeof...(X);
  using tuple = std::tuple<val<detail::element_of<X>>...>;
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    const std::array<detail::handle, n> in{std::get<I>(xs).id(w)...};
    std::array<detail::handle, 2 * n> args;
    std::array<detail::handle, n> out;
    const std::uint32_t region = detail::open_combine(in, a.index, args, w);
    detail::region_guard guard{region};
    using result = std::invoke_result_t<F &, tuple, tuple>;
    static_assert(std::tuple_size_v<result> == n, "combine returns a tuple of as many values as are reduced");
    const result r =
        combine(tuple(val<detail::element_of<X>>(args[I])...), tuple(val<detail::element_of<X>>(args[n + I])...));
    ((out[I] = detail::operand_of<detail::element_of<X>>(std::get<I>(r), w)), ...);
    detail::close_combine(out, o.keep_dims, w);
    guard.done = true;
    return tuple(val<detail::element_of<X>>(out[I])...);
  }(std::make_index_sequence<n>{});
}
/// Reduces one tile: `tl::reduce(x, 0, [](auto a, auto b) { return a * b; })`.
template <detail::traced X, class F>
auto reduce(const X &x, axis a, F &&combine, reduce_options o = {}, location w = location::current()) {
  using V = val<detail::element_of<X>>;
  using tuple = std::tuple<V>;
  return std::get<0>(reduce(std::tuple<X>(x), a, [&](const tuple &l, const tuple &r) {
    return tuple(V(detail::operand_of<detail::element_of<X>>(combine(std::get<0>(l), std::get<0>(r)), w)));
  }, o, w));
}

/// exp(x - max) / sum of it, along an axis.
template <detail::traced X> auto softmax(const X &x, axis a = -1, location w = location::current()) {
  using V = val<detail::element_of<X>>;
  const detail::location_scope s(w);
  const V e = exp(V(x.id(w)) - max(x, a, {.keep_dims = true}));
  return e / sum(e, a, {.keep_dims = true});
}

} // namespace tessera::tl
