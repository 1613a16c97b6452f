#pragma once
// Element-wise functions. Each is a function object, so that `tl::exp` never competes with the C library's.
#include <tessera/dsl/ops.h>

namespace tessera::detail {

enum class domain { any, floats, integers };

template <domain D, class T> consteval void check_domain() {
  if constexpr (float8_element<T>)
    check_number<T>();
  else if constexpr (D == domain::floats)
    static_assert(float_element<T>, "this function takes floats; convert with .to<float>()");
  else if constexpr (D == domain::integers)
    static_assert(integer_element<T>, "this function takes integers");
  else
    static_assert(float_element<T> || integer_element<T>, "this function takes numbers");
}

/// One tile in, one out.
template <unary_op Op, domain D = domain::floats> struct unary_fn {
  template <traced X> tl::val<element_of<X>> operator()(const X &x, location w = location::current()) const {
    using T = element_of<X>;
    check_domain<D, T>();
    return tl::val<T>(unary(Op, dtype_of<T>, x.id(w), w));
  }
};

/// Two operands, of which one may be a number.
template <binary_op Op, domain D = domain::floats> struct binary_fn {
  template <class X, class Y>
    requires one_traced<X, Y>
  auto operator()(const X &x, const Y &y, location w = location::current()) const {
    using T = common_element<X, Y>;
    check_domain<D, T>();
    return tl::val<T>(binary(Op, dtype_of<T>, operand_of<T>(x, w), operand_of<T>(y, w), w));
  }
};

/// minimum, maximum: a third argument says what a NaN does.
template <binary_op Ignore, binary_op Propagate> struct extreme_fn {
  template <class X, class Y>
    requires one_traced<X, Y>
  auto operator()(const X &x, const Y &y, tl::propagate_nan p = tl::propagate_nan::none,
                  location w = location::current()) const {
    using T = common_element<X, Y>;
    check_domain<domain::any, T>();
    const binary_op op = p == tl::propagate_nan::all ? Propagate : Ignore;
    return tl::val<T>(binary(op, dtype_of<T>, operand_of<T>(x, w), operand_of<T>(y, w), w));
  }
};

} // namespace tessera::detail

namespace tessera::tl {

inline constexpr detail::unary_fn<detail::unary_op::abs, detail::domain::any> abs;
inline constexpr detail::unary_fn<detail::unary_op::exp> exp;
inline constexpr detail::unary_fn<detail::unary_op::exp2> exp2;
inline constexpr detail::unary_fn<detail::unary_op::log> log;
inline constexpr detail::unary_fn<detail::unary_op::log2> log2;
inline constexpr detail::unary_fn<detail::unary_op::log10> log10;
inline constexpr detail::unary_fn<detail::unary_op::sqrt> sqrt;
inline constexpr detail::unary_fn<detail::unary_op::sqrt_rn> sqrt_rn; ///< correctly rounded
inline constexpr detail::unary_fn<detail::unary_op::rsqrt> rsqrt;
inline constexpr detail::unary_fn<detail::unary_op::sin> sin;
inline constexpr detail::unary_fn<detail::unary_op::cos> cos;
inline constexpr detail::unary_fn<detail::unary_op::tan> tan;
inline constexpr detail::unary_fn<detail::unary_op::tanh> tanh;
inline constexpr detail::unary_fn<detail::unary_op::erf> erf;
inline constexpr detail::unary_fn<detail::unary_op::floor> floor;
inline constexpr detail::unary_fn<detail::unary_op::ceil> ceil;
inline constexpr detail::unary_fn<detail::unary_op::trunc> trunc;
inline constexpr detail::unary_fn<detail::unary_op::round> round; ///< halves away from zero
inline constexpr detail::unary_fn<detail::unary_op::rint> rint;   ///< halves to even

inline constexpr detail::binary_fn<detail::binary_op::pow> pow;
inline constexpr detail::binary_fn<detail::binary_op::div_rn> div_rn; ///< quotient, correctly rounded
/// Upper half of the unsigned product.
inline constexpr detail::binary_fn<detail::binary_op::mulhi, detail::domain::integers> umulhi;
inline constexpr detail::extreme_fn<detail::binary_op::min, detail::binary_op::min_nan> minimum;
inline constexpr detail::extreme_fn<detail::binary_op::max, detail::binary_op::max_nan> maximum;

/// a * b + c, rounded once.
template <class X, class Y, class Z>
  requires detail::one_traced<X, Y, Z>
auto fma(const X &a, const Y &b, const Z &c, location w = location::current()) {
  using T = detail::common_element<X, Y, Z>;
  detail::check_domain<detail::domain::floats, T>();
  return val<T>(detail::fma(detail::operand_of<T>(a, w), detail::operand_of<T>(b, w), detail::operand_of<T>(c, w), w));
}

/// min(max(x, lo), hi). A NaN x gives lo unless NaN propagates.
template <detail::traced X, class L, class H>
auto clamp(const X &x, const L &lo, const H &hi, propagate_nan p = propagate_nan::none,
           location w = location::current()) {
  using T = detail::element_of<X>;
  detail::check_domain<detail::domain::any, T>();
  return val<T>(detail::clamp(dtype_of<T>, x.id(w), detail::operand_of<T>(lo, w), detail::operand_of<T>(hi, w),
                              p == propagate_nan::all, w));
}

/// ceil(a / b) for non-negative a and positive b: without the sum that could overflow.
template <class X, class Y>
  requires detail::one_traced<X, Y>
auto cdiv(const X &a, const Y &b, location w = location::current()) {
  using T = detail::common_element<X, Y>;
  detail::check_domain<detail::domain::integers, T>();
  const detail::location_scope s(w);
  const val<T> n(detail::operand_of<T>(a, w)), d(detail::operand_of<T>(b, w));
  return n / d + (n % d != 0).template to<T>();
}
/// The same on the host, for grids.
template <std::integral X, std::integral Y> constexpr std::common_type_t<X, Y> cdiv(X a, Y b) {
  return a / b + (a % b != 0);
}

/// 1 / (1 + exp(-x)).
template <detail::traced X> auto sigmoid(const X &x, location w = location::current()) {
  detail::check_domain<detail::domain::floats, detail::element_of<X>>();
  const detail::location_scope s(w);
  return 1.0f / (1.0f + exp(-x, w));
}

} // namespace tessera::tl
