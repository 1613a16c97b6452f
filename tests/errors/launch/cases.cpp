// Launches that must not compile, and what the compiler must say; read by compile/check.py. A case without a text must compile.
//header #include <tessera/tessera.h>
//header namespace tl = tessera::tl;
//header struct config { int block = 64; float scale = 1; bool relu = false; };
//header const auto kernel = tl::kernel("k", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<tl::i32> n, tl::val<float> f, config c) {});
//header const auto halves = tl::kernel("h", [](tl::ptr<const tl::f16> x, tl::val<tl::f16> h, tl::val<bool> b, tl::val<tl::u64> u) {});
//before [[maybe_unused]] static void launch(const tessera::stream &s, tessera::device_buffer<float> &x, const tessera::device_buffer<float> &fixed,
//before     tessera::device_buffer<double> &wide, tessera::device_buffer<tl::f16> &h, float *raw, std::span<float> span) {
//after }

//@ everything that may be passed
kernel(s, 1, fixed, x, 5, 1.0f);
kernel(s, {1, 2}, raw, span, std::size_t(5), tl::f16(1));
kernel(s, {1, 2, std::size_t(3)}, x.slice(1), x.slice(1, 2), tl::u8(5), 1.0f);
kernel.with({.block = 8})(s, [](const config &c) { return 100 / c.block; }, nullptr, raw, 5, 1.0f);
kernel.with({.block = 8}, {.num_warps = 8})(s, [](const config &c) { return tessera::grid{1, c.block}; }, x, x, 5, 1.0f);
kernel.with_options({.num_warps = 8})(s, tessera::grid{1, 2, 3}, x, x, 5, 1.0f);
halves(s, 1, h, 1.0f, true, 5);

//@ too few arguments: the launch passes another number of arguments than the kernel's lambda takes
kernel(s, 1, x, x, 5);

//@ too many arguments: the launch passes another number of arguments than the kernel's lambda takes
kernel(s, 1, x, x, 5, 1.0f, 2);

//@ other element type: the argument's elements have another type than the kernel's tl::ptr parameter
kernel(s, 1, wide, x, 5, 1.0f);

//@ other pointee: the argument's elements have another type than the kernel's tl::ptr parameter
kernel(s, 1, h.data(), x, 5, 1.0f);

//@ const buffer for an output: the argument's elements are const, but the kernel may write them
kernel(s, 1, x, fixed, 5, 1.0f);

//@ const pointer for an output: the argument's elements are const, but the kernel may write them
kernel(s, 1, x, static_cast<const float *>(raw), 5, 1.0f);

//@ number for a pointer: a tl::ptr<T> parameter takes a device_buffer<T>
kernel(s, 1, 5, x, 5, 1.0f);

//@ float for an integer: the kernel's parameter is an integer; the argument is not
kernel(s, 1, x, x, 5.0, 1.0f);

//@ pointer for an integer: the kernel's parameter is an integer; the argument is not
kernel(s, 1, x, x, raw, 1.0f);

//@ integer for a float: the kernel's parameter is a floating-point number; write the argument as one
kernel(s, 1, x, x, 5, 1);

//@ double for a float: the kernel's parameter is a float and the argument a double
kernel(s, 1, x, x, 5, 1.0);

//@ integer for a bool: a tl::val<bool> parameter takes a bool
halves(s, 1, h, 1.0f, 1, 5);

//@ bool for an integer: a tl::val<bool> parameter takes a bool
halves(s, 1, h, 1.0f, true, true);

//@ auto parameter: a kernel's parameters have types, not auto
auto k = tl::kernel("k", [](auto x) {});

//@ plain parameter: a kernel parameter is tl::ptr<T> or tl::val<T>
auto k = tl::kernel("k", [](tl::ptr<float> x, float *y, config c) {});

//@ kernel that returns: a kernel returns nothing
auto k = tl::kernel("k", [](tl::ptr<float> x) { return 1; });

//@ buffer of const: a device_buffer owns writable memory
tessera::device_buffer<const float> b(s.device(), 5);

//@ large configuration: a configuration has at most 16 fields
struct large { float a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q; };
auto k = tl::kernel("k", [](tl::ptr<float> x, large c) {});
