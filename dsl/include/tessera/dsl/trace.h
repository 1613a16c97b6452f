#pragma once
// From a lambda to ttir: what a kernel's parameters are, and the call that traces it once for one specialisation.
#include <array>
#include <memory>
#include <source_location>
#include <span>
#include <tuple>
#include <utility>

#include <tessera/ir/ir_module.h>
#include <tessera/dsl/dtype.h>
#include <tessera/dsl/val.h>

namespace tessera {

/// The type of one kernel parameter.
struct param_type {
  dtype element = dtype::i32; ///< of a pointer: what it points to
  bool pointer = false;
  bool is_const = false; ///< a pointer that is never stored through
  bool operator==(const param_type &) const = default;
};

/// What is known of an argument's value when a kernel is specialised.
struct param_spec {
  bool divisible_by_16 = false; ///< pointers and integers
  bool equal_to_1 = false;      ///< integers: the parameter becomes the constant 1 and is not passed
  bool below_2g = false;        ///< pointers: less than 2^31 bytes are touched behind them, and nothing before them
  bool operator==(const param_spec &) const = default;
};

/// Stands for the configuration of a kernel that takes none.
struct no_config {};

namespace detail {

template <class... T> struct type_list {};

template <class P> inline constexpr bool is_param = false;
template <class T> inline constexpr bool is_param<tl::val<T>> = true;

template <class P> struct param_traits; // val<T>: a scalar or, with T a pointer, an array in global memory
template <memory_element T> struct param_traits<tl::val<T>> {
  using host = T;
  static constexpr param_type type{dtype_of<T>, false, false};
};
template <class T> struct param_traits<tl::val<T *>> {
  using host = T *;
  static constexpr param_type type{dtype_of<std::remove_const_t<T>>, true, std::is_const_v<T>};
};

template <class Params, class Config> struct signature_base;
template <class... P, class Config> struct signature_base<type_list<P...>, Config> {
  /// tl::ptr<T> and tl::val<T> in the order of the lambda.
  using params = std::tuple<P...>;
  /// What the host passes for each: T* for tl::ptr<T>, T for tl::val<T>.
  using host_args = std::tuple<typename param_traits<P>::host...>;
  /// The aggregate of compile-time parameters, or no_config.
  using config = Config;
  static constexpr std::size_t count = sizeof...(P);
  static constexpr bool has_config = !std::is_same_v<Config, no_config>;
  static constexpr std::array<param_type, count> types{param_traits<P>::type...};
};

// Splits the lambda's parameters into leading tl:: ones and an optional aggregate in the last place.
template <class Done, class... Rest> struct split_params;
template <class... P> struct split_params<type_list<P...>> { using type = signature_base<type_list<P...>, no_config>; };
template <class... P, class Last>
  requires(!is_param<Last>)
struct split_params<type_list<P...>, Last> {
  static_assert(std::is_class_v<Last> && std::is_aggregate_v<Last>,
                "a kernel parameter is tl::ptr<T> or tl::val<T>; compile-time parameters are one aggregate, last");
  using type = signature_base<type_list<P...>, Last>;
};
template <class... P, class First, class... Rest>
  requires is_param<First>
struct split_params<type_list<P...>, First, Rest...> : split_params<type_list<P..., First>, Rest...> {};
template <class... P, class First, class Second, class... Rest>
  requires(!is_param<First>)
struct split_params<type_list<P...>, First, Second, Rest...> {
  static_assert(!sizeof(First *),
                "a kernel parameter is tl::ptr<T> or tl::val<T>; compile-time parameters are one aggregate, last");
};

template <class M> struct call_signature;
template <class R, class... A> struct call_signature<R (*)(A...)> {
  static_assert(std::is_void_v<R>, "a kernel returns nothing; write results with tl::store");
  static_assert(((!std::is_lvalue_reference_v<A> || std::is_const_v<std::remove_reference_t<A>>) && ...),
                "a kernel takes its parameters by value or by reference to const");
  using type = typename split_params<type_list<>, std::remove_cvref_t<A>...>::type;
};
template <class R, class... A> struct call_signature<R (*)(A...) noexcept> : call_signature<R (*)(A...)> {};
template <class C, class R, class... A> struct call_signature<R (C::*)(A...)> : call_signature<R (*)(A...)> {
  static_assert(never<C>, "a kernel's lambda is not mutable: it is traced anew for each specialisation");
};
template <class C, class R, class... A>
struct call_signature<R (C::*)(A...) noexcept> : call_signature<R (C::*)(A...)> {};
template <class C, class R, class... A> struct call_signature<R (C::*)(A...) const> : call_signature<R (*)(A...)> {};
template <class C, class R, class... A>
struct call_signature<R (C::*)(A...) const noexcept> : call_signature<R (*)(A...)> {};

template <class F>
concept has_one_call = std::is_pointer_v<F> || requires { &F::operator(); };

template <class F> consteval auto signature_of() {
  static_assert(has_one_call<F>, "a kernel's parameters have types, not auto: the signature is read from the lambda");
  if constexpr (!has_one_call<F>)
    return std::type_identity<signature_base<type_list<>, no_config>>{};
  else if constexpr (std::is_pointer_v<F>)
    return std::type_identity<typename call_signature<F>::type>{};
  else
    return std::type_identity<typename call_signature<decltype(&F::operator())>::type>{};
}

/// One trace in progress on this thread. Sessions nest; the innermost is the one that operators build into.
class TESSERA_API session {
public:
  session(const char *name, std::span<const param_type> types, std::span<const param_spec> specs,
          const location &where);
  ~session(); ///< drops what was built unless finish() was called
  session(const session &) = delete;
  session &operator=(const session &) = delete;

  /// The i-th parameter's value: a function argument, or the constant 1.
  [[nodiscard]] handle argument(std::size_t i) const;
  /// Ends the function, erases what nothing uses, verifies.
  [[nodiscard]] ir_module finish();

private:
  std::unique_ptr<trace_state> state_;
};

} // namespace detail

/// The signature of a kernel lambda (or function): `params`, `host_args`, `config`, `count`, `types`.
template <class F> struct kernel_signature : decltype(detail::signature_of<std::decay_t<F>>())::type {};

/// Runs `f` once with traced parameters and returns the tile IR it describes. `specs` has one entry per parameter, or
/// is empty (nothing known). Parameters with equal_to_1 do not appear among the function's. Exceptions of `f` pass
/// through.
template <class F, class Config = no_config>
ir_module trace_kernel(const char *name, const F &f, const Config &config = {}, std::span<const param_spec> specs = {},
                       const detail::location &where = detail::location::current()) {
  using signature = kernel_signature<F>;
  static_assert(std::is_same_v<Config, typename signature::config>,
                "the configuration is not the lambda's last parameter type");
  detail::session s(name, signature::types, specs, where);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    if constexpr (signature::has_config)
      f(std::tuple_element_t<I, typename signature::params>(s.argument(I))..., config);
    else
      f(std::tuple_element_t<I, typename signature::params>(s.argument(I))...);
  }(std::make_index_sequence<signature::count>{});
  return s.finish();
}

} // namespace tessera
