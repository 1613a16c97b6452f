// What must not compile, and what the compiler must say. check.py compiles every case by itself in the body of a kernel with
// the parameters below; a case without a text must compile. The error must name a line of the case.
//
//   tl::ptr<float> p, tl::ptr<const float> q, tl::val<tl::i32> n, tl::val<float> f, tl::val<bool> flag

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

//@ break in if_: break statement not within loop or switch
for (auto i : tl::range(0, n)) tl::if_(i < 3, [&] { break; });

//@ continue in if_: continue statement not within a loop
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

//@ auto parameter: a kernel's parameters have types, not auto
(void)tessera::trace_kernel("k", [](auto x) { (void)x; });

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

//@ pointers to mutable elements serve where const is asked for
auto first = [](tl::ptr<const float> x) { return tl::load(x); };
tl::store(p, first(p) + first(q));

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
