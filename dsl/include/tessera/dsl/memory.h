#pragma once
// Reading and writing global memory through pointers.
#include <tessera/dsl/ops.h>

namespace tessera::tl {

/// What a load may be told: `tl::load(p, mask, {.other = -tl::inf, .evict = tl::evict::first})`.
template <memory_element T> struct load_options {
  detail::optional_operand<T> other{}; ///< the value where the mask is false; 0 without it
  tl::cache cache = tl::cache::none;   ///< none, ca, cg, cv
  tl::evict evict = tl::evict::normal;
  bool is_volatile = false;
};
struct store_options {
  tl::cache cache = tl::cache::none; ///< none, wb, cg, cs, wt
  tl::evict evict = tl::evict::normal;
};

} // namespace tessera::tl

namespace tessera::detail {
/// What a pointer value points to, without const.
template <traced P> struct pointee {
  static_assert(pointer_element<element_of<P>>, "load and store take a pointer, or a tile of pointers");
  using type = std::remove_const_t<std::remove_pointer_t<element_of<P>>>;
};
template <traced P> using pointee_of = typename pointee<P>::type;
} // namespace tessera::detail

namespace tessera::tl {

/// One element per pointer. Where `mask` is false memory is not touched.
template <detail::traced P>
val<detail::pointee_of<P>> load(const P &p, load_options<detail::pointee_of<P>> o = {},
                                location w = location::current()) {
  using T = detail::pointee_of<P>;
  return val<T>(detail::load(dtype_of<T>, p.id(w), {{}, o.other.h, o.cache, o.evict, o.is_volatile}, w));
}
template <detail::traced P>
val<detail::pointee_of<P>> load(const P &p, detail::operand<bool> mask, load_options<detail::pointee_of<P>> o = {},
                                location w = location::current()) {
  using T = detail::pointee_of<P>;
  return val<T>(detail::load(dtype_of<T>, p.id(w), {mask.h, o.other.h, o.cache, o.evict, o.is_volatile}, w));
}

/// Writes `x`, broadcast to the pointers' shape. Where `mask` is false memory is not touched.
template <detail::traced P, class X>
void store(const P &p, const X &x, store_options o = {}, location w = location::current()) {
  using T = detail::pointee_of<P>;
  static_assert(!std::is_const_v<std::remove_pointer_t<detail::element_of<P>>>,
                "store through a pointer to const: declare the parameter tl::ptr<T>");
  detail::store(dtype_of<T>, p.id(w), detail::operand_of<T>(x, w), {{}, {}, o.cache, o.evict}, w);
}
template <detail::traced P, class X>
void store(const P &p, const X &x, detail::operand<bool> mask, store_options o = {}, location w = location::current()) {
  using T = detail::pointee_of<P>;
  static_assert(!std::is_const_v<std::remove_pointer_t<detail::element_of<P>>>,
                "store through a pointer to const: declare the parameter tl::ptr<T>");
  detail::store(dtype_of<T>, p.id(w), detail::operand_of<T>(x, w), {mask.h, {}, o.cache, o.evict}, w);
}

} // namespace tessera::tl
