#pragma once
// tl::kernel: a lambda with a name, traced, compiled and launched. Its calls are checked against the lambda's
// signature.
#include <cstring>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>

#include <tessera/dsl/trace.h>
#include <tessera/runtime/buffer.h>
#include <tessera/runtime/detail/config.h>
#include <tessera/runtime/dlpack.h>
#include <tessera/runtime/launch.h>

namespace tessera {

namespace detail {

/// The grid of a launch: numbers, a tessera::grid, or a function of the configuration that gives one. Made by
/// conversion from what the user wrote, it also learns the line.
template <class Config> class launch_grid {
public:
  template <std::integral X, std::integral Y = int, std::integral Z = int>
  launch_grid(X x, Y y = 1, Z z = 1, const char *file = __builtin_FILE(), unsigned line = __builtin_LINE())
      : grid_{widen(x), widen(y), widen(z)}, site_{file, line} {}
  launch_grid(const grid &g, const char *file = __builtin_FILE(), unsigned line = __builtin_LINE())
      : grid_(g), site_{file, line} {}
  template <class F>
  requires std::invocable<const F &, const Config &> launch_grid(const F &f, const char *file = __builtin_FILE(),
                                                                 unsigned line = __builtin_LINE())
      : function_(&f), call_([](const void *function, const void *config) {
          return launch_grid((*static_cast<const F *>(function))(*static_cast<const Config *>(config))).grid_;
        }),
        site_{file, line} {}

  grid resolve(const void *config) const { return call_ ? call_(function_, config) : grid_; }
  launch_site site() const { return site_; }

private:
  static constexpr std::int64_t widen(std::integral auto n) {
    return std::in_range<std::int64_t>(n) ? static_cast<std::int64_t>(n) : std::numeric_limits<std::int64_t>::max();
  }
  grid grid_;
  const void *function_ = nullptr;
  grid (*call_)(const void *, const void *) = nullptr;
  launch_site site_;
};

template <class A>
concept buffer_like = requires(const A &a) {
  { a.memory_space() } -> std::same_as<int>;
  {a.data()};
};
template <class A>
concept contiguous_host_range = !buffer_like<A> && std::ranges::contiguous_range<A> && std::ranges::sized_range<A>;

/// Packs the arguments of one launch and finds what it is specialised on.
template <class Signature> struct packer {
  const kernel_core &core;
  const stream &s;
  launch_site site;
  launch_args args;

  void put_address(std::size_t i, std::uint64_t address) {
    args.values[i] = address;
    args.spec.divisible_by_16 |= std::uint64_t((address & 15) == 0) << i;
  }
  template <class T> void put_unchecked(std::size_t i, const T *p) {
    if (!p) [[unlikely]]
      core.fail_argument(i, "is a null pointer; write nullptr itself where the kernel is meant to get none", site);
    const auto address = reinterpret_cast<std::uint64_t>(p);
    if (address % sizeof(T)) [[unlikely]] // a GPU would give up its context over it
      core.fail_argument(i, "is an address that is not a multiple of its elements' " + std::to_string(sizeof(T)) + " bytes", site);
    put_address(i, address);
    args.unchecked |= std::uint64_t(1) << i;
  }
  template <std::size_t I, class T> void put_tensor(const dlpack_view &t, bool contiguous) {
    std::string why;
    const std::uint64_t address =
        dlpack_address(t, Signature::types[I].element, s, contiguous, !std::is_const_v<T>, why);
    if (!why.empty()) [[unlikely]]
      core.fail_argument(I, why, site);
    put_address(I, address);
  }
  template <class T, class U> static consteval void check_element() {
    static_assert(std::is_same_v<std::remove_const_t<T>, std::remove_cv_t<U>>,
                  "the argument's elements have another type than the kernel's tl::ptr parameter");
    static_assert(std::is_const_v<T> || !std::is_const_v<U>,
                  "the argument's elements are const, but the kernel may write them: make the parameter tl::ptr<const "
                  "T>, or pass a writable buffer");
  }

  /// Parameter I, a tl::ptr<T>.
  template <std::size_t I, class T, class A> void pointer(A &a) {
    using X = std::remove_cvref_t<A>;
    if constexpr (std::is_null_pointer_v<X>) {
      put_address(I, 0);
    } else if constexpr (buffer_like<X>) {
      // A const device_buffer's elements are const, as data() says.
      check_element<T, std::remove_pointer_t<decltype(a.data())>>();
      if (a.memory_space() != s.memory_space()) [[unlikely]]
        core.fail_argument(
            I, "is a buffer of " + a.device().place() + ", the stream is of " + s.device().place(), site);
      if (!a.data()) [[unlikely]]
        core.fail_argument(I, "is a device_buffer that was moved from, or a part of one", site);
      put_address(I, reinterpret_cast<std::uint64_t>(a.data()));
      if constexpr (requires { a.view(); }) { // owned: nothing of the memory lies outside, as it may with a view
        args.spec.below_2g |= std::uint64_t(a.size_bytes() < (std::size_t(1) << 31)) << I;
      }
    } else if constexpr (std::is_same_v<X, strided_tensor>) {
      put_tensor<I, T>(a.view, false);
    } else if constexpr (dlpack_tensor<X>) {
      put_tensor<I, T>(view_of(a), true);
    } else if constexpr (dlpack_managed<X>) {
      put_tensor<I, T>(view_of(a), true);
    } else if constexpr (std::is_pointer_v<X>) {
      using U = std::remove_pointer_t<X>;
      if constexpr (dlpack_tensor<std::remove_const_t<U>> || dlpack_managed<std::remove_const_t<U>>) {
        if (!a) [[unlikely]]
          core.fail_argument(I, "is a null pointer to a DLPack tensor", site);
        pointer<I, T>(*a);
      } else {
        check_element<T, U>();
        put_unchecked(I, a);
      }
    } else if constexpr (contiguous_host_range<X>) {
      check_element<T, std::remove_pointer_t<decltype(std::ranges::data(a))>>();
      if (std::ranges::empty(a))
        put_address(I, reinterpret_cast<std::uint64_t>(std::ranges::data(a)));
      else
        put_unchecked(I, std::ranges::data(a));
    } else {
      static_assert(never<A>, "a tl::ptr<T> parameter takes a device_buffer<T> or a slice of one, a T *, a "
                              "std::span<T>, a DLPack tensor or nullptr");
    }
  }

  /// Parameter I, a tl::val<T>.
  template <std::size_t I, class T, class A> void value(const A &a) {
    using X = std::remove_cvref_t<A>;
    T v{};
    if constexpr (std::is_same_v<X, T>) {
      v = a;
    } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<X, bool>) {
      static_assert(never<A>, "a tl::val<bool> parameter takes a bool, and a bool is no number");
    } else if constexpr (std::is_integral_v<T>) {
      static_assert(std::is_integral_v<X>, "the kernel's parameter is an integer; the argument is not");
      if (!std::in_range<T>(a)) [[unlikely]]
        core.fail_argument(I,
                           "is " + std::to_string(a) + ", which its type in the kernel, " +
                               std::string(name(dtype_of<T>)) + ", cannot hold",
                           site);
      v = static_cast<T>(a);
    } else {
      static_assert(std::is_floating_point_v<X> || float_element<X>,
                    "the kernel's parameter is a floating-point number; write the argument as one (2.0f)");
      constexpr bool narrow = std::is_same_v<X, double> && std::is_same_v<T, float>;
      static_assert(!narrow,
                    "the kernel's parameter is a float and the argument a double: write 2.0f, or static_cast<float>");
      v = T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(a));
    }
    args.values[I] = 0;
    std::memcpy(&args.values[I], &v, sizeof v);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      args.spec.divisible_by_16 |= std::uint64_t((v & 15) == 0) << I;
      args.spec.equal_to_1 |= std::uint64_t(v == 1) << I;
    }
  }

  template <std::size_t I, class A> void put(A &a) {
    using host = std::tuple_element_t<I, typename Signature::host_args>;
    if constexpr (std::is_pointer_v<host>)
      pointer<I, std::remove_pointer_t<host>>(a);
    else
      value<I, host>(a);
  }
};

/// A kernel with its lambda.
template <class F> class kernel_model final : public kernel_core {
public:
  using signature = kernel_signature<F>;
  using config = typename signature::config;

  kernel_model(std::string name, F f, const location &where)
      : kernel_core(std::move(name), signature::types, {equal, copy}, {where.file_name(), where.line()}),
        f_(std::move(f)), where_(where) {}

private:
  static bool equal(const void *a, const void *b) {
    return config_equal(*static_cast<const config *>(a), *static_cast<const config *>(b));
  }
  static std::shared_ptr<const void> copy(const void *c) {
    return std::make_shared<const config>(*static_cast<const config *>(c));
  }
  ir_module trace(const std::string &symbol, const void *c, std::span<const param_spec> specs) const override {
    return trace_kernel(symbol.c_str(), f_, *static_cast<const config *>(c), specs, where_);
  }

  F f_;
  location where_;
};

} // namespace detail

namespace tl {

template <class F> class autotuned;
class kernel_exporter;

/// A kernel: `const auto k = tl::kernel("name", [](tl::ptr<const float> x, tl::val<tl::i32> n, Config c) { … });`
///
/// The lambda is kept and traced at the first launch of each specialisation (configuration, options, device, which
/// pointers and integers are divisible by 16, which integers are 1); making a kernel costs nothing. What the lambda
/// captured is what it held when the kernel was made. A kernel is a handle: copies share their compiled code, and
/// calling it is thread-safe.
///
/// Arguments of a call: for tl::ptr<T> a device_buffer<T> or a slice of one, a T *, a std::span<T>, a DLPack tensor, or
/// nullptr; for tl::val<T> a T, or another integer that is checked to fit when T is one.
template <class F> class kernel {
  using model = tessera::detail::kernel_model<F>;
  using signature = typename model::signature;

public:
  /// The aggregate of compile-time parameters, or tessera::no_config.
  using config = typename model::config;

  kernel(std::string name, F f, const tessera::detail::location &where = tessera::detail::location::current())
      : model_(std::make_shared<model>(std::move(name), std::move(f), where)) {
    static_assert(signature::count <= 64, "a kernel has at most 64 parameters");
    if constexpr (std::is_default_constructible_v<config>)
      select(config{}, {});
  }
  // Moving copies, so that there is no empty kernel.
  kernel(const kernel &) = default;
  kernel &operator=(const kernel &) = default;

  /// The kernel with another configuration, its options kept.
  [[nodiscard]] kernel with(const config &c) const { return with(c, options()); }
  [[nodiscard]] kernel with(const config &c, const compile_options &o) const {
    kernel k(*this);
    k.select(c, o);
    return k;
  }
  /// The kernel with other compile options, its configuration kept.
  [[nodiscard]] kernel with_options(const compile_options &o) const { return with(configuration(), o); }
  /// The kernel launched in another way; its code is the same.
  [[nodiscard]] kernel launched(const launch_options &how) const {
    kernel k(*this);
    k.how_ = how;
    return k;
  }

  [[nodiscard]] const std::string &name() const noexcept { return model_->name(); }
  [[nodiscard]] const config &configuration() const {
    return *static_cast<const config *>(model::config_of(variant()));
  }
  [[nodiscard]] compile_options options() const { return variant_ ? model::options_of(*variant_) : compile_options{}; }

  /// Launches `g` programs on `s`: a number, {x, y}, {x, y, z}, or a function of the configuration that gives one of
  /// those.
  template <class... A> void operator()(const stream &s, tessera::detail::launch_grid<config> g, A &&...args) const {
    std::uint64_t values[signature::count + 1];
    auto packed = pack(s, g.site(), values, args...);
    model_->launch(variant(), s, g.resolve(model::config_of(variant())), packed.args, g.site(), &how_);
  }

  /// Compiles and loads what a launch on `s` with these arguments would run, so that the launch is warm.
  template <class... A> kernel_handle prepare(const stream &s, A &&...args) const {
    std::uint64_t values[signature::count + 1];
    auto packed = pack(s, {}, values, args...);
    return model_->prepare(variant(), s.device(), packed.args.spec);
  }
  /// The same for a specialisation given by itself.
  kernel_handle compile(const device &d, specialization spec = specialization::aligned()) const {
    return model_->prepare(variant(), d, spec);
  }
  /// Compiles for a target; the device need not exist.
  kernel_handle compile_for(const target &t, specialization spec = specialization::aligned()) const {
    return model_->compile_for(variant(), t, spec);
  }
  kernel_handle compile_for(std::string_view t, specialization spec = specialization::aligned()) const {
    return compile_for(parse_target(t), spec);
  }

private:
  friend autotuned<F>;
  friend kernel_exporter;
  void select(const config &c, const compile_options &o) {
    variant_ = &model_->variant(tessera::detail::config_hash(c), &c, o);
  }
  tessera::detail::kernel_variant &variant() const {
    if (!variant_) [[unlikely]]
      throw error(stage::launch,
                  "kernel '" + name() + "' has a configuration without defaults: launch kernel.with(configuration)");
    return *variant_;
  }
  template <class... A>
  auto pack(const stream &s, tessera::detail::launch_site site, std::uint64_t *values, A &...args) const {
    static_assert(sizeof...(A) == signature::count,
                  "the launch passes another number of arguments than the kernel's lambda takes");
    tessera::detail::packer<signature> p{*model_, s, site, {values, {}, 0}};
    if constexpr (sizeof...(A) == signature::count)
      [&]<std::size_t... I>(std::index_sequence<I...>) { (p.template put<I>(args), ...); }
    (std::index_sequence_for<A...>{});
    return p;
  }

  std::shared_ptr<const model> model_;
  tessera::detail::kernel_variant *variant_ = nullptr; // owned by the model
  launch_options how_;
};

} // namespace tl
} // namespace tessera
