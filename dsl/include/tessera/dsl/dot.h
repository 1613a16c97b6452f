#pragma once
// The matrix product of two tiles: what runs on a GPU's matrix units.
#include <tessera/dsl/ops.h>

namespace tessera::tl {

/// `tl::dot(a, b, acc, {.input_precision = tl::precision::tf32})`
struct dot_options {
  precision input_precision = precision::ieee; ///< of f32 operands
  /// Of fp8 operands: products that may be added with the matrix unit's own, lower precision before they are added to
  /// the accumulator in f32. 0: any number.
  int max_num_imprecise_acc = 0;
};

} // namespace tessera::tl

namespace tessera::detail {

template <class A, class B> struct accumulator {
  static constexpr bool float8 = float8_element<A> && float8_element<B>;
  static_assert(float8 || (std::same_as<A, B> && (float_element<A> || std::same_as<A, tl::i8>)),
                "tl::dot multiplies tiles of one element type, f16, bf16, f32, f64 or i8, or of two fp8 types: convert "
                "one with .to<T>()");
  using type = std::conditional_t<std::same_as<A, double>, double,
                                  std::conditional_t<std::same_as<A, tl::i8>, std::int32_t, float>>;
  template <class T>
  static constexpr bool allows = std::same_as<T, type> || (std::same_as<T, half> && (std::same_as<A, half> || float8));
};

template <class Out, traced A, traced B>
auto typed_dot(const A &a, const B &b, handle acc, const tl::dot_options &o, const location &w) {
  static_assert(
      accumulator<element_of<A>, element_of<B>>::template allows<Out>,
      "tl::dot adds up f16, bf16, fp8 and f32 in float, f64 in double, i8 in i32, and f16 and fp8 in f16 if asked to: "
      "convert the result with .to<T>()");
  return tl::val<Out>(dot(a.id(w), b.id(w), acc, dtype_of<Out>, o.input_precision, o.max_num_imprecise_acc, w));
}

} // namespace tessera::detail

namespace tessera::tl {

/// a * b + acc, of an M x K and a K x N tile, or of B such pairs in tiles of three dimensions. The result has the
/// accumulator's type.
template <detail::traced A, detail::traced B, detail::traced C>
auto dot(const A &a, const B &b, const C &acc, dot_options o = {}, location w = location::current()) {
  return detail::typed_dot<detail::element_of<C>>(a, b, acc.id(w), o, w);
}
/// a * b. `tl::dot<tl::f16>(a, b)` of f16 or fp8 has an f16 result where the default would be float.
template <memory_element Out, detail::traced A, detail::traced B>
val<Out> dot(const A &a, const B &b, dot_options o = {}, location w = location::current()) {
  return detail::typed_dot<Out>(a, b, {}, o, w);
}
template <detail::traced A, detail::traced B>
auto dot(const A &a, const B &b, dot_options o = {}, location w = location::current()) {
  using out = typename detail::accumulator<detail::element_of<A>, detail::element_of<B>>::type;
  return detail::typed_dot<out>(a, b, {}, o, w);
}

} // namespace tessera::tl
