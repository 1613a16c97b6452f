#pragma once
// Values, variables, operands and operators: what a tile expression is made of.
//
// An operator computes the result's element type and its static errors at compile time, and hands typed operands to the
// builder. Every operator on elements T gives a val<T>, whatever was combined: so `auto a = x + 1, b = y` declares
// both, and a host `c ? a + b : a` has one type.
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include <tessera/dsl/detail/builder.h>

namespace tessera::tl {
template <element T> class val;
template <element T> class var;
/// Pointer(s) to elements in global memory: a value whose elements are addresses. `ptr<const T>` refuses stores.
template <class T> using ptr = val<T *>;

/// A float constant of whichever float type it meets.
struct float_constant {
  double value;
  constexpr float_constant operator-() const { return {-value}; }
};
inline constexpr float_constant inf{std::numeric_limits<double>::infinity()};
inline constexpr float_constant nan{std::numeric_limits<double>::quiet_NaN()};

/// A line of the user's source; functions take their caller's by default.
using location = detail::location;

struct all_t {};
struct newaxis_t {};
/// In a subscript: keeps a dimension, or inserts one of size 1. `x[all, newaxis]` makes a column of a row.
inline constexpr all_t all{};
inline constexpr newaxis_t newaxis{};
} // namespace tessera::tl

namespace tessera::detail {

struct traced_base {};
template <class X>
concept traced = std::derived_from<std::remove_cvref_t<X>, traced_base>;
template <traced X> using element_of = typename std::remove_cvref_t<X>::element;

template <class X>
concept host_scalar = std::is_arithmetic_v<X> || std::same_as<X, tl::float_constant> ||
                      (float_element<X> && !std::is_arithmetic_v<X>);

template <class...> inline constexpr bool never = false;

/// Refuses element types that cannot be computed with.
template <class T> consteval void check_number() {
  static_assert(!std::same_as<T, bool>,
                "bool is not an arithmetic type: use && || ! ^ and tl::where, or convert with .to<T>()");
  static_assert(!float8_element<T>,
                "fp8 elements are stored, converted and multiplied by tl::dot only: convert with .to<float>()");
}
template <class T, class> struct dependent_type { using type = T; };
/// T, but known only when the template is used.
template <class T, class X> using dependent = typename dependent_type<T, X>::type;

/// A value of elements From is one of elements To: the same, or a pointer that becomes one to const.
template <class From, class To>
concept becomes =
    std::same_as<From, To> || (std::is_pointer_v<From> && std::same_as<To, const std::remove_pointer_t<From> *>);

/// Refuses, with the reason, what cannot be an operand beside elements T.
template <class T, class X> consteval void check_operand() {
  if constexpr (traced<X>) {
    using E = element_of<X>;
    if constexpr (becomes<E, T>) return;
    else if constexpr (std::same_as<T, bool>)
      static_assert(never<X>, "operands have different element types: a condition or mask has bool elements; compare "
                              "the value, as in x != 0");
    else if constexpr (std::same_as<E, bool>)
      static_assert(never<X>, "operands have different element types: bool is not an arithmetic type; use tl::where or "
                              "convert with .to<T>()");
    else
      static_assert(never<X>, "operands have different element types; convert one with .to<T>()");
  } else if constexpr (host_scalar<X>) {
    if constexpr (!memory_element<T>)
      static_assert(never<X>, "a pointer takes no number; add an offset to one");
    else if constexpr (std::same_as<T, bool> || std::same_as<X, bool>)
      static_assert(std::same_as<T, X>,
                    "bool is not an arithmetic type: use && || ! ^ and tl::where, or convert with .to<T>()");
    else
      static_assert(std::integral<X> || float_element<T>,
                    "a floating-point literal meets an integer tile; convert the tile with .to<float>()");
  }
}

template <class T, host_scalar U> literal make_literal(U x) {
  check_operand<T, U>();
  if constexpr (std::same_as<U, bool>) return {.tag = literal::kind::boolean, .i = x};
  else if constexpr (std::unsigned_integral<U>) return {.tag = literal::kind::unsigned_integer, .u = x};
  else if constexpr (std::integral<U>) return {.tag = literal::kind::integer, .i = x};
  else if constexpr (std::same_as<U, tl::float_constant>) return {.tag = literal::kind::real, .f = x.value};
  else return {.tag = literal::kind::real, .f = static_cast<double>(x)};
}

template <class T, host_scalar U> handle constant_of(U x, const location &w) {
  return constant(element_type_of<T>, make_literal<T>(x), {}, w);
}

/// The traced operand that gives an operator its element type.
template <class T> struct traced_operand {
  handle h;
  location w;
  traced_operand(const tl::val<T> &x, location l = location::current()) : h(x.id(l)), w(l) {}
  template <traced X>
    requires(!std::same_as<element_of<X>, T> && becomes<element_of<X>, T>)
  traced_operand(const X &x, location l = location::current()) : h(x.id(l)), w(l) {}
};

/// A host number as operand.
template <class T> struct literal_operand {
  handle h;
  location w;
  template <host_scalar U> literal_operand(U x, location l = location::current()) : h(constant_of<T>(x, l)), w(l) {}
};

/// Any operand: traced, or a number that takes T. A conversion of the user's expression to this records his line, which
/// an operator could not ask for itself.
template <class T> struct operand {
  handle h;
  location w;
  operand(const tl::val<T> &x, location l = location::current()) : h(x.id(l)), w(l) {}
  template <host_scalar U> operand(U x, location l = location::current()) : h(constant_of<T>(x, l)), w(l) {}
  template <traced X>
    requires(!std::same_as<element_of<X>, T> && !(pointer_element<element_of<X>> && !pointer_element<T>) &&
             !becomes<T, element_of<X>>)
  operand(const X &x, location l = location::current()) : w(l) {
    check_operand<T, X>();
    h = x.id(l);
  }
};

/// What a function was given as operand beside elements T. Its return type is deduced, so that compilers instantiate it
/// where it is called: only then does Clang's account of an error reach the user's line.
template <class T, class X> auto operand_of(const X &x, const location &w) {
  check_operand<T, X>();
  return operand<T>(x, w).h;
}

/// An operand that may be left out.
template <class T> struct optional_operand {
  handle h{};
  optional_operand() = default;
  template <class U>
    requires std::constructible_from<operand<T>, const U &, location>
  optional_operand(const U &x, location l = location::current()) : h(operand<T>(x, l).h) {}
};

/// A pointer's offset: an integer of any width, traced or not.
struct offset_operand {
  handle h;
  dtype t;
  location w;
  template <traced X>
    requires integer_element<element_of<X>>
  offset_operand(const X &x, location l = location::current()) : h(x.id(l)), t(dtype_of<element_of<X>>), w(l) {}
  template <std::integral U>
    requires(!std::same_as<U, bool>)
  offset_operand(U x, location l = location::current())
      : h(constant_of<offset_t<U>>(x, l)), t(dtype_of<offset_t<U>>), w(l) {}

private:
  template <class U>
  using offset_t = std::conditional_t<(sizeof(U) > 4 || std::same_as<U, unsigned>), std::int64_t, std::int32_t>;
};

/// One entry of a subscript.
struct subscript_operand {
  bool is_new;
  location w;
  subscript_operand(tl::all_t, location l = location::current()) : is_new(false), w(l) {}
  subscript_operand(tl::newaxis_t, location l = location::current()) : is_new(true), w(l) {}
  template <class X>
    requires(traced<X> || std::integral<X>)
  subscript_operand(const X &) {
    static_assert(never<X>,
                  "a tile is subscripted with tl::all and tl::newaxis only; select elements with masks or pointers");
  }
};

// Operators are hidden friends of the base of val<T> and var<T>: found for these alone, and not templates, so that
// operands convert and record the user's line.
template <class T> struct operators : traced_base {
  using element = T;
  using V = tl::val<T>;
  using M = tl::val<dependent<bool, T>>;
  using A = traced_operand<T>;
  using L = literal_operand<T>;
  using B = operand<T>;

  friend V operator+(A a, B b) { return arithmetic(binary_op::add, a, b.h); }
  friend V operator+(L a, A b) { return arithmetic(binary_op::add, a, b.h); }
  friend V operator-(A a, B b) { return arithmetic(binary_op::sub, a, b.h); }
  friend V operator-(L a, A b) { return arithmetic(binary_op::sub, a, b.h); }
  friend V operator*(A a, B b) { return arithmetic(binary_op::mul, a, b.h); }
  friend V operator*(L a, A b) { return arithmetic(binary_op::mul, a, b.h); }
  friend V operator/(A a, B b) { return arithmetic(binary_op::div, a, b.h); }
  friend V operator/(L a, A b) { return arithmetic(binary_op::div, a, b.h); }
  friend V operator%(A a, B b) { return arithmetic(binary_op::rem, a, b.h); }
  friend V operator%(L a, A b) { return arithmetic(binary_op::rem, a, b.h); }
  friend V operator-(A a) {
    check_number<T>();
    return V(unary(unary_op::neg, dtype_of<T>, a.h, a.w));
  }
  friend V operator+(A a) { return V(a.h); }

  friend V operator&(A a, B b) { return bits(binary_op::bit_and, a, b.h); }
  friend V operator&(L a, A b) { return bits(binary_op::bit_and, a, b.h); }
  friend V operator|(A a, B b) { return bits(binary_op::bit_or, a, b.h); }
  friend V operator|(L a, A b) { return bits(binary_op::bit_or, a, b.h); }
  friend V operator^(A a, B b) { return bits(binary_op::bit_xor, a, b.h); }
  friend V operator^(L a, A b) { return bits(binary_op::bit_xor, a, b.h); }
  friend V operator~(A a) {
    static_assert(integer_element<T>, "~ takes integers; negate a mask with !");
    return V(unary(unary_op::bit_not, dtype_of<T>, a.h, a.w));
  }
  friend V operator<<(A a, B b) { return shift(binary_op::shl, a, b.h); }
  friend V operator<<(L a, A b) { return shift(binary_op::shl, a, b.h); }
  friend V operator>>(A a, B b) { return shift(binary_op::shr, a, b.h); }
  friend V operator>>(L a, A b) { return shift(binary_op::shr, a, b.h); }

  friend M operator<(A a, B b) { return compared(compare_op::lt, a, b.h); }
  friend M operator<(L a, A b) { return compared(compare_op::lt, a, b.h); }
  friend M operator<=(A a, B b) { return compared(compare_op::le, a, b.h); }
  friend M operator<=(L a, A b) { return compared(compare_op::le, a, b.h); }
  friend M operator>(A a, B b) { return compared(compare_op::gt, a, b.h); }
  friend M operator>(L a, A b) { return compared(compare_op::gt, a, b.h); }
  friend M operator>=(A a, B b) { return compared(compare_op::ge, a, b.h); }
  friend M operator>=(L a, A b) { return compared(compare_op::ge, a, b.h); }
  friend M operator==(A a, B b) { return compared(compare_op::eq, a, b.h); }
  friend M operator==(L a, A b) { return compared(compare_op::eq, a, b.h); }
  friend M operator!=(A a, B b) { return compared(compare_op::ne, a, b.h); }
  friend M operator!=(L a, A b) { return compared(compare_op::ne, a, b.h); }

  // Both sides are always evaluated: a mask is data, not control flow. Operands match exactly here, or the built-in
  // operators on bool would be as good; so `!` and a number on the left show the line of the mask.
  friend V operator&&(const V &a, B b) { return logic(binary_op::bit_and, a.id(b.w), b.h, b.w); }
  friend V operator&&(bool a, const V &b) { return logic(binary_op::bit_and, constant_of<T>(a, {}), b.id(), {}); }
  friend V operator&&(const V &a, bool b) { return b && a; }
  friend V operator||(const V &a, B b) { return logic(binary_op::bit_or, a.id(b.w), b.h, b.w); }
  friend V operator||(bool a, const V &b) { return logic(binary_op::bit_or, constant_of<T>(a, {}), b.id(), {}); }
  friend V operator||(const V &a, bool b) { return b || a; }
  friend V operator!(const V &a) { return negated(a.id()); }

protected:
  template <class O> static V arithmetic(binary_op op, const O &a, handle b) {
    check_number<T>();
    return V(binary(op, dtype_of<T>, a.h, b, a.w));
  }
  template <class O> static V bits(binary_op op, const O &a, handle b) {
    static_assert(integer_element<T> || std::same_as<T, bool>, "& | ^ take integers and masks");
    return V(binary(op, dtype_of<T>, a.h, b, a.w));
  }
  template <class O> static V shift(binary_op op, const O &a, handle b) {
    static_assert(integer_element<T>, "<< and >> take integers");
    return V(binary(op, dtype_of<T>, a.h, b, a.w));
  }
  template <class O> static M compared(compare_op op, const O &a, handle b) {
    static_assert(!std::same_as<T, bool>,
                  "masks are combined with && || ! ^, not compared; a < b < c is a < b && b < c");
    if constexpr (float8_element<T>) check_number<T>();
    return M(compare(op, element_type_of<T>, a.h, b, a.w));
  }
  static V logic(binary_op op, handle a, handle b, const location &w) {
    static_assert(std::same_as<T, bool>, "&& and || combine masks; compare the value, as in x != 0");
    return V(binary(op, dtype::i1, a, b, w));
  }
  static V negated(handle a) {
    static_assert(std::same_as<T, bool>,
                  "! negates a mask; a traced value has no value while tracing: compare it, as in x == 0");
    return V(unary(unary_op::bit_not, dtype::i1, a, {}));
  }
};

// Addresses move by elements and compare for equality.
template <class P> struct operators<P *> : traced_base {
  using element = P *;
  using V = tl::val<P *>;
  using M = tl::val<dependent<bool, P>>;
  using A = traced_operand<P *>;

  friend V operator+(A p, offset_operand o) { return V(add_pointer(p.h, o.h, o.t, false, p.w)); }
  friend V operator+(offset_operand o, A p) { return V(add_pointer(p.h, o.h, o.t, false, p.w)); }
  friend V operator-(A p, offset_operand o) { return V(add_pointer(p.h, o.h, o.t, true, p.w)); }
  friend M operator==(A a, operand<P *> b) { return M(compare(compare_op::eq, element_type_of<P *>, a.h, b.h, a.w)); }
  friend M operator!=(A a, operand<P *> b) { return M(compare(compare_op::ne, element_type_of<P *>, a.h, b.h, a.w)); }
  friend M operator==(A a, std::nullptr_t) { return against_null(compare_op::eq, a); }
  friend M operator==(std::nullptr_t, A a) { return against_null(compare_op::eq, a); }
  friend M operator!=(A a, std::nullptr_t) { return against_null(compare_op::ne, a); }
  friend M operator!=(std::nullptr_t, A a) { return against_null(compare_op::ne, a); }

private:
  static M against_null(compare_op op, const A &a) {
    constexpr element_type number{dtype::i64};
    const handle address = cast(element_type_of<P *>, number, a.h, {}, a.w);
    return M(compare(op, number, address, constant(number, {}, {}, a.w), a.w));
  }
};

/// Members that values and variables share.
template <class D, class T> struct tile_members : operators<T> {
  /// Converts every element: integers wrap, float to integer saturates (NaN gives 0), anything != 0 is true.
  template <element U> tl::val<U> to(tl::rounding r = tl::rounding::nearest, location w = location::current()) const {
    return tl::val<U>(cast(element_type_of<T>, element_type_of<U>, self(w), r, w));
  }
  /// The same bits as another type of the same width.
  template <element U> tl::val<U> bitcast(location w = location::current()) const {
    return tl::val<U>(detail::bitcast(element_type_of<T>, element_type_of<U>, self(w), w));
  }
  [[nodiscard]] tl::dims shape(location w = location::current()) const { return shape_of(self(w), w); }
  [[nodiscard]] int rank(location w = location::current()) const { return shape(w).rank; }

  tl::val<T> operator[](subscript_operand a) const { return index({a}); }
  tl::val<T> operator[](subscript_operand a, subscript_operand b) const { return index({a, b}); }
  tl::val<T> operator[](subscript_operand a, subscript_operand b, subscript_operand c) const {
    return index({a, b, c});
  }
  tl::val<T> operator[](subscript_operand a, subscript_operand b, subscript_operand c, subscript_operand d) const {
    return index({a, b, c, d});
  }
  tl::val<T> operator[](subscript_operand a, subscript_operand b, subscript_operand c, subscript_operand d,
                        subscript_operand e) const {
    return index({a, b, c, d, e});
  }

  /// Only to say what to write instead: an `if`, `while` or `?:` of the host cannot look at a value of the device.
  template <class B>
    requires std::same_as<B, bool>
  explicit operator B() const {
    static_assert(
        never<B>,
        "a traced value has no value while tracing; use tl::if_, tl::while_ or tl::where, or a host constant");
    return false;
  }

private:
  handle self(const location &w) const { return static_cast<const D &>(*this).id(w); }
  tl::val<T> index(std::initializer_list<subscript_operand> list) const {
    bool is_new[5];
    int n = 0;
    for (auto &s : list) is_new[n++] = s.is_new;
    return tl::val<T>(subscript(self(list.begin()->w), {is_new, list.size()}, list.begin()->w));
  }
};

} // namespace tessera::detail

namespace tessera::tl {

/// A value: a scalar or a tile of elements T. Immutable; `auto` names one, tl::var declares a variable.
template <element T> class val : public detail::tile_members<val<T>, T> {
public:
  explicit val(detail::handle h) : handle_(h) {}
  val(const val &o) : handle_(o.id()) {} // a variable's present value
  /// Pointers to mutable elements are pointers to const ones.
  template <class U>
    requires(std::is_pointer_v<T> && std::same_as<T, const U *>)
  val(const val<U *> &p) : handle_(p.id()) {}

  // These exist to say what to write instead.
  val &operator=(const val &) { return refuse<T>(); }
  template <class U> val &operator=(const U &) { return refuse<U>(); }
  template <class U> val &operator+=(const U &) { return refuse<U>(); }
  template <class U> val &operator-=(const U &) { return refuse<U>(); }
  template <class U> val &operator*=(const U &) { return refuse<U>(); }
  template <class U> val &operator/=(const U &) { return refuse<U>(); }
  template <class U> val &operator%=(const U &) { return refuse<U>(); }
  template <class U> val &operator&=(const U &) { return refuse<U>(); }
  template <class U> val &operator|=(const U &) { return refuse<U>(); }
  template <class U> val &operator^=(const U &) { return refuse<U>(); }
  template <class U> val &operator<<=(const U &) { return refuse<U>(); }
  template <class U> val &operator>>=(const U &) { return refuse<U>(); }
  val &operator++() { return refuse<T>(); }
  val &operator--() { return refuse<T>(); }
  val &operator++(int) { return refuse<T>(); }
  val &operator--(int) { return refuse<T>(); }

  [[nodiscard]] detail::handle id(const location &w = {}) const {
    if (!handle_.variable) return handle_;
    return detail::read_variable(handle_, w.line() ? w : detail::variable_location(handle_));
  }

protected:
  detail::handle handle_;

private:
  template <class U> val &refuse() {
    static_assert(detail::never<U>, "a value cannot be assigned: declare 'tl::var x = …' for a variable");
    return *this;
  }
};

/// A variable: may be assigned, in loops and branches too, where its value is carried. Its shape stays that of its
/// first value. Also a value, the present one: a copy as val<T> keeps that, a reference reads it when it is used.
template <element T> class var : public val<T> {
  using base = detail::operators<T>;
  using op = detail::binary_op;
  using operand = detail::operand<T>;
  static constexpr bool pointer = std::is_pointer_v<T>;

public:
  var(const val<T> &x, location w = location::current()) : val<T>(detail::declare_variable(x.id(w), w)) {}
  template <detail::host_scalar U>
  var(U x, location w = location::current()) : val<T>(detail::declare_variable(detail::constant_of<T>(x, w), w)) {}
  /// A new variable with the other's present value.
  var(const var &o) : val<T>(detail::declare_variable(o.id(), detail::variable_location(o.handle_))) {}

  // The first takes a non-const reference so that only another variable binds to it: all else converts to an operand,
  // which knows the line.
  var &operator=(var &o) {
    detail::assign_variable(handle_, o.id(), nullptr);
    return *this;
  }
  template <std::same_as<var> V> var &operator=(V &&o) { return *this = o; } // members of structs that are moved
  var &operator=(operand x) {
    detail::assign_variable(handle_, x.h, &x.w);
    return *this;
  }

  var &operator+=(operand x) requires(!pointer) { return update(x, base::arithmetic(op::add, self(x), x.h)); }
  var &operator-=(operand x) requires(!pointer) { return update(x, base::arithmetic(op::sub, self(x), x.h)); }
  var &operator*=(operand x) { return update(x, base::arithmetic(op::mul, self(x), x.h)); }
  var &operator/=(operand x) { return update(x, base::arithmetic(op::div, self(x), x.h)); }
  var &operator%=(operand x) { return update(x, base::arithmetic(op::rem, self(x), x.h)); }
  var &operator&=(operand x) { return update(x, base::bits(op::bit_and, self(x), x.h)); }
  var &operator|=(operand x) { return update(x, base::bits(op::bit_or, self(x), x.h)); }
  var &operator^=(operand x) { return update(x, base::bits(op::bit_xor, self(x), x.h)); }
  var &operator<<=(operand x) { return update(x, base::shift(op::shl, self(x), x.h)); }
  var &operator>>=(operand x) { return update(x, base::shift(op::shr, self(x), x.h)); }
  var &operator+=(detail::offset_operand o) requires pointer {
    detail::assign_variable(handle_, detail::add_pointer(this->id(o.w), o.h, o.t, false, o.w), &o.w);
    return *this;
  }
  var &operator-=(detail::offset_operand o) requires pointer {
    detail::assign_variable(handle_, detail::add_pointer(this->id(o.w), o.h, o.t, true, o.w), &o.w);
    return *this;
  }
  // These operators cannot know their line: they show that of what was built before.
  var &operator++() { return *this += one(); }
  var &operator--() { return *this -= one(); }
  val<T> operator++(int) {
    const val<T> before(*this);
    ++*this;
    return before;
  }
  val<T> operator--(int) {
    const val<T> before(*this);
    --*this;
    return before;
  }

private:
  static auto one() { return std::conditional_t<pointer, detail::offset_operand, operand>(1, location{}); }
  using val<T>::handle_;
  detail::traced_operand<T> self(const operand &x) const { return {*this, x.w}; }
  var &update(const operand &x, const val<T> &y) {
    detail::assign_variable(handle_, y.id(), &x.w);
    return *this;
  }
};

template <detail::traced X> var(const X &) -> var<detail::element_of<X>>;
template <memory_element U> var(U) -> var<U>; // of a host number: int gives i32, float f32, double f64

} // namespace tessera::tl
