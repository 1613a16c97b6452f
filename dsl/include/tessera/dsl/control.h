#pragma once
// Loops and branches of the device. Their bodies are traced once; tl::var carries values through them.
#include <exception>
#include <tuple>
#include <type_traits>

#include <tessera/dsl/reduce.h>

namespace tessera::detail {

/// What tl::range gives: opens the loop's body in begin(), closes it when the range-for steps.
template <class T> class for_loop {
  static_assert(integer_element<T>, "loop bounds are integers");

public:
  for_loop(handle lo, handle hi, handle step, const tl::loop_options &o, const location &w)
      : lo_(lo), hi_(hi), step_(step), options_(o), where_(w), exceptions_(std::uncaught_exceptions()) {}
  for_loop(const for_loop &) = delete;
  for_loop &operator=(const for_loop &) = delete;
  ~for_loop() noexcept(false) {
    if (!open_) return;
    if (std::uncaught_exceptions() > exceptions_) abandon(loop_.region); // the user's exception passes
    else loop_left_early(loop_.region, where_);
  }

  struct sentinel {};
  struct iterator {
    for_loop *loop;
    tl::val<T> operator*() const { return tl::val<T>(loop->loop_.induction); }
    iterator &operator++() {
      loop->open_ = close_for(loop->loop_.region, loop->loop_.induction);
      return *this;
    }
    bool operator!=(sentinel) const { return loop->open_; }
  };
  iterator begin() {
    loop_ = open_for(dtype_of<T>, lo_, hi_, step_, options_, where_);
    open_ = true;
    return {this};
  }
  sentinel end() { return {}; }

private:
  handle lo_, hi_, step_;
  tl::loop_options options_;
  location where_;
  int exceptions_;
  open_loop loop_{};
  bool open_ = false;
};

template <class... X> struct bound_type { using type = std::int32_t; };
template <class... X>
  requires one_traced<X...>
struct bound_type<X...> { using type = common_element<X...>; };
template <class... X>
  requires(!one_traced<X...> && ((sizeof(X) > 4) || ...))
struct bound_type<X...> { using type = std::int64_t; };

// Numbers are taken as they are here: one whose bits fit only, 3000000000u in an i32, would count from or to below 0.
template <class T, class X> auto bound(const X &x, const location &w) {
  if constexpr (std::integral<X> && integer_element<T>)
    if (x < X{} ? static_cast<std::int64_t>(x) < static_cast<std::int64_t>(std::numeric_limits<T>::min())
                : static_cast<std::uint64_t>(x) > static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
      fail("a bound of tl::range is beyond what its element type holds; give one bound as a traced tl::i64", w);
  return operand_of<T>(x, w);
}

template <class A, class B, class C>
for_loop<typename bound_type<A, B, C>::type> make_loop(const A &lo, const B &hi, const C &step,
                                                       const tl::loop_options &o, const location &w) {
  using T = typename bound_type<A, B, C>::type;
  return {bound<T>(lo, w), bound<T>(hi, w), bound<T>(step, w), o, w};
}

template <class X>
concept loop_bound = traced<X> || std::integral<X>;

/// A branch traced by tl::if_, waiting for its else_; the operation is built when the statement ends.
class if_statement {
public:
  template <class F>
  if_statement(handle c, F &then, const location &w)
      : region_(open_if(c, w)), where_(w), exceptions_(std::uncaught_exceptions()) {
    region_guard guard{region_};
    trace(then);
    guard.done = true;
  }
  if_statement(const if_statement &) = delete;
  if_statement &operator=(const if_statement &) = delete;
  ~if_statement() noexcept(false) {
    if (std::uncaught_exceptions() > exceptions_) abandon(region_);
    else finish_if(region_, {});
  }
  template <class F> void else_(F &&body) && {
    open_else(region_);
    trace(body);
  }

private:
  template <class F> void trace(F &body) {
    static_assert(std::is_void_v<std::invoke_result_t<F &>>,
                  "the body of if_ and else_ returns nothing: assign to a tl::var declared outside, or use tl::cond");
    body();
    close_branch(region_, {}, where_);
  }

  std::uint32_t region_;
  location where_;
  int exceptions_;
};

/// What a branch of tl::cond returns: a value or a tuple of values.
template <class R> struct cond_values {
  static_assert(never<R>, "a branch of cond returns a value or a tuple of values; write a number as tl::scalar<T>(n)");
};
template <class T> struct cond_values<tl::val<T>> {
  static constexpr std::size_t count = 1;
  using type = tl::val<T>;
  static std::array<handle, 1> ids(const type &x) { return {x.id()}; }
  static type make(const std::array<handle, 1> &h) { return type(h[0]); }
};
template <class T> struct cond_values<tl::var<T>> : cond_values<tl::val<T>> {};
template <traced... X> struct cond_values<std::tuple<X...>> {
  static constexpr std::size_t count = sizeof...(X);
  using type = std::tuple<tl::val<element_of<X>>...>;
  static std::array<handle, count> ids(const type &x) {
    return std::apply([](auto &...v) { return std::array<handle, count>{v.id()...}; }, x);
  }
  static type make(const std::array<handle, count> &h) {
    return std::apply([](auto... x) { return type(tl::val<element_of<X>>(x)...); }, h);
  }
};

} // namespace tessera::detail

namespace tessera::tl {

/// `for (auto k : tl::range(lo, hi, step))`: a loop of the device. The body is traced once and runs to its end: `break`
/// and `return` are errors, `continue` ends this trace of the body. Steps are positive. Bounds may be traced integers
/// or numbers.
template <detail::loop_bound A, detail::loop_bound B, detail::loop_bound C>
auto range(const A &lo, const B &hi, const C &step, loop_options o = {}, location w = location::current()) {
  return detail::make_loop(lo, hi, step, o, w);
}
template <detail::loop_bound A, detail::loop_bound B>
auto range(const A &lo, const B &hi, loop_options o = {}, location w = location::current()) {
  return detail::make_loop(lo, hi, 1, o, w);
}
template <detail::loop_bound B> auto range(const B &hi, loop_options o = {}, location w = location::current()) {
  return detail::make_loop(0, hi, 1, o, w);
}

/// A loop of the host: the body is traced once per trip, with a plain int.
class static_range {
public:
  constexpr explicit static_range(int hi) : static_range(0, hi) {}
  constexpr static_range(int lo, int hi, int step = 1, location w = location::current())
      : lo_(lo), hi_(hi), step_(step) {
    if (step == 0) detail::fail("static_range: the step is 0", w);
  }
  struct iterator {
    int i, hi, step;
    constexpr int operator*() const { return i; }
    constexpr iterator &operator++() { i += step; return *this; }
    constexpr bool operator!=(const iterator &) const { return step > 0 ? i < hi : i > hi; }
  };
  [[nodiscard]] constexpr iterator begin() const { return {lo_, hi_, step_}; }
  [[nodiscard]] constexpr iterator end() const { return {hi_, hi_, step_}; }

private:
  int lo_, hi_, step_;
};

/// `tl::if_(c, [&] { … }).else_([&] { … })`: a branch of the device on a scalar condition. Variables assigned in a
/// branch carry out of it; where a branch does not assign, the old value stays.
template <class F> detail::if_statement if_(detail::operand<bool> c, F &&then, location w = location::current()) {
  return detail::if_statement(c.h, then, w);
}

/// The value form: both branches return a value, or a tuple of values, of the same types and shapes.
template <class F, class G>
auto cond(detail::operand<bool> c, F &&then, G &&otherwise, location w = location::current()) {
  using R = detail::cond_values<std::invoke_result_t<F &>>;
  static_assert(std::is_same_v<typename R::type, typename detail::cond_values<std::invoke_result_t<G &>>::type>,
                "the two branches of cond return different types");
  const std::uint32_t region = detail::open_if(c.h, w);
  detail::region_guard guard{region};
  detail::close_branch(region, R::ids(then()), w);
  detail::open_else(region);
  detail::close_branch(region, R::ids(otherwise()), w);
  std::array<detail::handle, R::count> results;
  guard.done = true;
  detail::finish_if(region, results);
  return R::make(results);
}

/// `tl::while_([&] { return lo < hi; }, [&] { … })`: repeats the body while the scalar condition holds.
template <class C, class F> void while_(C &&condition, F &&body, location w = location::current()) {
  static_assert(std::is_void_v<std::invoke_result_t<F &>>,
                "the body of while_ returns nothing: assign to a tl::var declared outside");
  const std::uint32_t region = detail::open_while(w);
  detail::region_guard guard{region};
  do {
    detail::while_condition(region, detail::operand_of<bool>(condition(), w));
    body();
  } while (detail::close_while(region));
  guard.done = true;
}

} // namespace tessera::tl
