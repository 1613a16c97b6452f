// What must not compile, and what the compiler must say. check.py compiles every case by itself in the body of a kernel with
// the parameters below; a case without a text must compile. The error must name a line of the case.
//
//   tl::ptr<float> p, tl::ptr<const float> q, tl::val<tl::i32> n, tl::val<float> f, tl::val<bool> flag

//header #include <array>
//header #include <utility>
//header #include <vector>
//header #include <tessera/tile.h>
//header namespace tl = tessera::tl;
//before [[maybe_unused]] static auto kernel = [](tl::ptr<float> p, tl::ptr<const float> q, tl::val<tl::i32> n, tl::val<float> f, tl::val<bool> flag) {
//after };

//@ assign to a value: a value cannot be assigned: declare 'tl::var x = …'
auto x = n + 1;
x = n;

//@ assign to a value inside a loop: a value cannot be assigned: declare 'tl::var x = …'
auto acc = tl::zeros<float>({8});
for (auto i : tl::range(0, n)) acc = acc + i.to<float>();

//@ add to a value: a value cannot be assigned: declare 'tl::var x = …'
auto x = n + 1;
x += 1;

//@ shift a value in place: a value cannot be assigned: declare 'tl::var x = …'
auto x = n + 1;
x <<= 1;

//@ count a value up: a value cannot be assigned: declare 'tl::var x = …'
auto x = n + 1;
++x;

//@ count a value down: a value cannot be assigned: declare 'tl::var x = …'
auto x = n + 1;
x--;

//@ cond of numbers: a branch of cond returns a value or a tuple of values
auto x = tl::cond(flag, [&] { return 1; }, [&] { return 2; });

//@ cond of a tuple with a number: a branch of cond returns a value or a tuple of values
auto x = tl::cond(flag, [&] { return std::tuple{n, 1}; }, [&] { return std::tuple{n, 2}; });

//@ assign an element of a list of values: a value cannot be assigned: declare 'tl::var x = …'
std::vector<tl::val<float>> kept(2, f);
kept[0] = f + 1.0f;

//@ add to an element of a list of values: a value cannot be assigned: declare 'tl::var x = …'
std::array<tl::val<float>, 2> sums{f, f};
sums[1] += f;

//@ assign a structure of values: a value cannot be assigned: declare 'tl::var x = …'
struct complex { tl::val<float> re, im; } x{f, f}, y{f, f};
x = y;

//@ g++ swap of values: a value cannot be assigned: declare 'tl::var x = …'
tl::val<float> x = f, y = f + 1.0f;
std::swap(x, y);

//@ assign what a condition chose: a value cannot be assigned: declare 'tl::var x = …'
tl::var x = f;
(true ? x : f) = f;

//@ if on a value: a traced value has no value while tracing; use tl::if_
if (n < 0) tl::store(p, 1.0f);

//@ while on a value: a traced value has no value while tracing; use tl::if_
while (flag) tl::store(p, 1.0f);

//@ ?: on a value: a traced value has no value while tracing; use tl::if_
auto x = n < 0 ? 1 : 2;

//@ ! of a number: ! negates a mask; a traced value has no value while tracing
auto x = !n;

//@ && of numbers: && and || combine masks
auto x = n && n;

//@ mixed element types: operands have different element types; convert one with .to<T>()
auto x = f + n;

//@ mixed widths: operands have different element types; convert one with .to<T>()
auto x = n * n.to<tl::i64>();

//@ mixed signs in a function: operands have different element types; convert one with .to<T>()
auto x = tl::maximum(n, n.to<tl::u32>());

//@ chained comparison: operands have different element types
auto x = 0 < n < 5 < n;

//@ a < b < c: a < b < c is a < b && b < c
auto x = f < f < f;

//@ arithmetic on masks: bool is not an arithmetic type
auto x = flag + flag;

//@ float literal and integer tile: a floating-point literal meets an integer tile
auto x = n + 0.5f;

//@ infinity and integer tile: a floating-point literal meets an integer tile
auto x = tl::maximum(n, tl::inf);

//@ number for a mask: a condition or mask has bool elements
auto x = tl::load(p, n);

//@ store through const: store through a pointer to const: declare the parameter tl::ptr<T>
tl::store(q, 1.0f);

//@ store of another type: operands have different element types; convert one with .to<T>()
tl::store(p, n);

//@ load from a number: load and store take a pointer
auto x = tl::load(n);

//@ other of another type: different element types
auto x = tl::load(p, flag, {.other = n});

//@ break in if_: break statement not within loop or switch | 'break' statement not in loop or switch statement
for (auto i : tl::range(0, n)) tl::if_(i < 3, [&] { break; });

//@ continue in if_: continue statement not within a loop | 'continue' statement not in loop statement
for (auto i : tl::range(0, n)) tl::if_(i < 3, [&] { continue; });

//@ if_ body returns a value: the body of if_ and else_ returns nothing
tl::if_(flag, [&] { return n; });

//@ while_ body returns a value: the body of while_ returns nothing
tl::while_([&] { return flag; }, [&] { return n; });

//@ cond with two types: the two branches of cond return different types
auto x = tl::cond(flag, [&] { return n; }, [&] { return f; });

//@ subscript with a number: a tile is subscripted with tl::all and tl::newaxis only
auto x = tl::arange(0, 8)[n];

//@ exp of integers: this function takes floats
auto x = tl::exp(n);

//@ shift of floats: << and >> take integers
auto x = f << f;

//@ float loop bounds: loop bounds are integers
for (auto i : tl::range(f, f)) (void)i;

//@ dot of two types: tl::dot multiplies tiles of one element type
auto x = tl::dot(tl::zeros<tl::f16>({16, 16}), tl::zeros<tl::bf16>({16, 16}));

//@ dot of unsigned integers: tl::dot multiplies tiles of one element type
auto x = tl::dot(tl::zeros<tl::u8>({16, 16}), tl::zeros<tl::u8>({16, 16}));

//@ dot with another accumulator: tl::dot adds up f16, bf16, fp8 and f32 in float, f64 in double, i8 in i32
auto x = tl::dot(tl::zeros<tl::i8>({16, 16}), tl::zeros<tl::i8>({16, 16}), tl::zeros<float>({16, 16}));

//@ arithmetic on fp8: fp8 elements are stored, converted and multiplied by tl::dot only
auto x = tl::zeros<tl::f8e4m3>({16}) + 1.0f;

//@ a function of fp8: fp8 elements are stored, converted and multiplied by tl::dot only
auto x = tl::exp(tl::zeros<tl::f8e5m2>({16}));

//@ a comparison of fp8: fp8 elements are stored, converted and multiplied by tl::dot only
auto x = tl::zeros<tl::f8e5m2>({16}) < 1.0f;

//@ a sum of fp8: sum takes numbers; convert fp8 with .to<float>()
auto x = tl::sum(tl::zeros<tl::f8e5m2>({16}));

//@ auto parameter: a kernel's parameters have types, not auto
(void)tessera::trace_kernel("k", [](auto x) { (void)x; });

//@ mutable lambda: a kernel's lambda is not mutable: it is traced anew for each specialisation
(void)tessera::trace_kernel("k", [i = 0](tl::ptr<float> x) mutable { tl::store(x, static_cast<float>(++i)); });

//@ reference parameter: a kernel takes its parameters by value or by reference to const
(void)tessera::trace_kernel("k", [](tl::ptr<float> &x) { tl::store(x, 1.0f); });

//@ functions are kernels too, noexcept or not, and parameters may be references to const
struct kernels {
  static void plain(const tl::ptr<float> &x) { tl::store(x, 1.0f); }
  static void never_throws(tl::ptr<float> x) noexcept { tl::store(x, 1.0f); }
};
(void)tessera::trace_kernel("k", kernels::plain);
(void)tessera::trace_kernel("k", &kernels::never_throws);

//@ host parameter: a kernel parameter is tl::ptr<T> or tl::val<T>
(void)tessera::trace_kernel("k", [](tl::ptr<float>, int) {});

//@ kernel returns a value: a kernel returns nothing
(void)tessera::trace_kernel("k", [](tl::val<tl::i32> x) { return x; });

//@ wrong configuration: the configuration is not the lambda's last parameter type
struct a { int n; };
struct b { int n; };
(void)tessera::trace_kernel("k", [](tl::ptr<float>, a) {}, b{});

//@ continue at the level of the loop is allowed
for (auto i : tl::range(0, n)) {
  tl::store(p + i, 1.0f);
  if (i.rank() == 0) continue;
}

//@ a host condition between two values is allowed
const bool host = true;
auto end = host ? tl::minimum(n + 1, n) : n;
auto mask = host ? n < 3 && flag : flag;
tl::store(p + end, 1.0f, mask && host);
tl::store(p + end, 1.0f, !mask || host || !flag);

//@ a host condition between variables, and between a variable and a value
const bool host = true;
tl::var x = f, y = f + 1.0f;
tl::var at = p;
auto value = host ? x : f, other = host ? f * 2.0f : x;
auto copy = host ? x : y;
static_assert(std::is_same_v<decltype(value), tl::val<float>> && std::is_same_v<decltype(copy), tl::var<float>>);
x = host ? y : x;
y = host ? f : x;
y += host ? x : value;
copy = tl::maximum(host ? x : other, 1.0f);
tl::store(host ? at : p, x + y + copy, host ? flag : !flag);

//@ variables in containers and structures are assigned like any other object
struct state { tl::var<float> sum; tl::var<tl::i32> count; } a{f, n}, b{0.0f, 0};
a = b;
std::swap(a, b);
b = state{f, n};
std::vector<tl::var<float>> list(2, f);
list[0] = f + 1.0f;
list[0] += list[1];
list.insert(list.begin(), list[1]);
list.erase(list.begin() + 1);
std::swap(list[0], list[1]);
std::array<tl::var<float>, 2> pair{a.sum, list[0]};
pair[0] = pair[1];
std::vector<tl::val<float>> values{f, a.sum};
values.push_back(pair[0]);

//@ helpers that take values take variables, templates too
auto twice = [](tl::val<float> v) { return v * 2.0f; };
auto square = []<class T>(const tl::val<T> &v) { return v * v; };
tl::var x = f;
x = twice(x) + square(x) + square(f);

//@ pointers to mutable elements serve where const is asked for
auto first = [](tl::ptr<const float> x) { return tl::load(x); };
tl::store(p, first(p) + first(q));

//@ a variable that is a pointer to const takes a pointer to mutable elements; both compare, and with nullptr
tl::var at = q;
at = p;
at = tl::where(at == p && p != at && at != nullptr && nullptr != p && !(nullptr == at), q, p);

//@ shapes of integers of any type and of constants of an enumeration
const std::size_t rows = 4;
const unsigned char cols = 8;
enum { depth = 16 };
auto x = tl::zeros<float>({rows, cols, depth}), y = tl::zeros<float>({rows}), z = tl::zeros<float>(8);
auto i = tl::multiple_of(tl::arange(0, rows), 4);
tl::store(p, tl::sum(x) + tl::sum(y) + tl::sum(z) + tl::sum(i).to<float>());

//@ a variable has the type of the number it starts as
auto is = []<class T>(std::type_identity<T>, const tl::var<T> &) {};
is(std::type_identity<tl::i32>(), tl::var(1));
is(std::type_identity<tl::u32>(), tl::var(1u));
is(std::type_identity<tl::u8>(), tl::var(tl::u8(1)));
is(std::type_identity<float>(), tl::var(1.0f));
is(std::type_identity<double>(), tl::var(1.0));
is(std::type_identity<tl::f16>(), tl::var(tl::f16(1.0f)));
is(std::type_identity<bool>(), tl::var(true));

//@ variables count up and down
tl::var a = 1, b = a++;
tl::var c = 1.0f;
tl::var d = p;
for (auto i : tl::range(n)) ++a, --c, d++, tl::store(d--, c + (i + b).to<float>());

//@ variables of every kind
tl::var a = 1, c = n, g = c;
tl::var b = 1.0f;
tl::var d = p;
tl::var e = flag;
c += a;
c <<= 1;
d += c;
e = flag;
e = !e && true && flag;
g = c;
a = g * 2;
b = -tl::inf;
tl::store(d, b * 2 + 1);
