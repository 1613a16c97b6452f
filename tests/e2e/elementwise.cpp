// Unary and binary operations on every element type: each is one row of a table that holds the traced form, the
// reference and the tolerance. One kernel applies all rows, so that a type costs one compilation.
#include "harness.h"

using namespace e2e;

namespace {

struct tile_config {
  int block = 128;
};

// ---- float functions of one value
// -----------------------------------------------------------------------------------------

template <class T> struct unary_op {
  const char *name;
  tl::val<T> (*trace)(tl::val<T>);
  double (*reference)(double);
  double lo, hi;
  double ulps;           ///< tolerance with fast math
  double floor = 0;      ///< results smaller than this are held to its ulp
  double small_ulps = 1; ///< tolerance of 16-bit types: computed in f32, rounded once an operation
};

template <class T> const std::vector<unary_op<T>> &unary_ops() {
  using v = tl::val<T>;
  static const std::vector<unary_op<T>> ops = {
      {"neg", [](v x) -> v { return -x; }, [](double x) { return -x; }, -4, 4, 0},
      {"abs", [](v x) -> v { return tl::abs(x); }, [](double x) { return std::fabs(x); }, -4, 4, 0},
      {"floor", [](v x) -> v { return tl::floor(x); }, [](double x) { return std::floor(x); }, -9, 9, 0},
      {"ceil", [](v x) -> v { return tl::ceil(x); }, [](double x) { return std::ceil(x); }, -9, 9, 0},
      {"trunc", [](v x) -> v { return tl::trunc(x); }, [](double x) { return std::trunc(x); }, -9, 9, 0},
      {"round", [](v x) -> v { return tl::round(x * make<T>(0.5)); }, [](double x) { return std::round(x * 0.5); }, -9,
       9, 0},
      {"rint", [](v x) -> v { return tl::rint(x * make<T>(0.5)); }, [](double x) { return std::nearbyint(x * 0.5); },
       -9, 9, 0},
      {"exp", [](v x) -> v { return tl::exp(x); }, [](double x) { return std::exp(x); }, -10, 10, 32},
      {"exp2", [](v x) -> v { return tl::exp2(x); }, [](double x) { return std::exp2(x); }, -12, 12, 4},
      {"log", [](v x) -> v { return tl::log(x); }, [](double x) { return std::log(x); }, 0.01, 100, 4, 1},
      {"log2", [](v x) -> v { return tl::log2(x); }, [](double x) { return std::log2(x); }, 0.01, 100, 4, 1},
      {"log10", [](v x) -> v { return tl::log10(x); }, [](double x) { return std::log10(x); }, 0.01, 100, 4, 1},
      {"sqrt", [](v x) -> v { return tl::sqrt(x); }, [](double x) { return std::sqrt(x); }, 0, 100, 2},
      {"sqrt_rn", [](v x) -> v { return tl::sqrt_rn(x); }, [](double x) { return std::sqrt(x); }, 0, 100, 0.5000001},
      {"rsqrt", [](v x) -> v { return tl::rsqrt(x); }, [](double x) { return 1 / std::sqrt(x); }, 0.01, 100, 4},
      {"sin", [](v x) -> v { return tl::sin(x); }, [](double x) { return std::sin(x); }, -30, 30, 4, 1},
      {"cos", [](v x) -> v { return tl::cos(x); }, [](double x) { return std::cos(x); }, -30, 30, 4, 1},
      {"tan", [](v x) -> v { return tl::tan(x); }, [](double x) { return std::tan(x); }, -1.2, 1.2, 8, 0.1},
      {"tanh", [](v x) -> v { return tl::tanh(x); }, [](double x) { return std::tanh(x); }, -6, 6, 8, 0.01},
      {"erf", [](v x) -> v { return tl::erf(x); }, [](double x) { return std::erf(x); }, -4, 4, 8, 0.01},
      {"pow", [](v x) -> v { return tl::pow(x, make<T>(1.5)); }, [](double x) { return std::pow(x, 1.5); }, 0.1, 20,
       32},
      {"sigmoid", [](v x) -> v { return tl::sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); }, -8, 8, 32,
       0, 3},
      {"1/x", [](v x) -> v { return make<T>(1) / x; }, [](double x) { return 1 / x; }, 0.1, 10, 2},
      {"3x-1", [](v x) -> v { return x * make<T>(3) - make<T>(1); }, [](double x) { return 3 * x - 1; }, 1, 4, 1},
      {"fma", [](v x) -> v { return tl::fma(x, x, x); }, [](double x) { return x * x + x; }, 0, 4, 1},
      {"clamp", [](v x) -> v { return tl::clamp(x, make<T>(-1), make<T>(1)); },
       [](double x) { return std::clamp(x, -1.0, 1.0); }, -4, 4, 0},
  };
  return ops;
}

template <class T> void test_unary(bool precise) {
  const auto &ops = unary_ops<T>();
  const auto kernel = tl::kernel("unary", [](tl::ptr<const T> x, tl::ptr<T> y, tl::val<i32> n, tile_config c) {
    auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
    auto in = at < n;
    int row = 0;
    for (auto &op : unary_ops<T>()) {
      tl::store(y + row * n + at, op.trace(tl::load(x + row * n + at, in, {.other = make<T>(1)})), in);
      ++row;
    }
  });
  for (int n : {1, 127, 400}) {
    std::vector<T> x;
    for (auto &op : ops) {
      auto r = random<T>(n, op.lo, op.hi);
      x.insert(x.end(), r.begin(), r.end());
    }
    input<T> in(x);
    output<T> out(x.size());
    launch(kernel.with({.block = 128}, {.precise_math = precise}), tl::cdiv(n, 128), *in, *out, n);
    const auto y = out.read();
    for (std::size_t k = 0; k < ops.size(); ++k) {
      std::vector<double> want(n);
      for (int i = 0; i < n; ++i)
        want[i] = ops[k].reference(to_double(x[k * n + i]));
      // f64 has no fast forms.
      const double ulps = is_small_float<T>                      ? std::min(ops[k].ulps, ops[k].small_ulps)
                          : std::is_same_v<T, double> || precise ? std::min(ops[k].ulps, 4.0)
                                                                 : ops[k].ulps;
      check_close<T>(ops[k].name, part(y, k * n, n), want, ulps, ops[k].floor);
    }
  }
}

/// Angles of every magnitude up to the type's largest, and some of the floats nearest to multiples of pi/2: far from 0
/// it takes hundreds of bits of 2/pi to know where in its turn an angle is. Programs of few elements mix both kinds.
template <class T> void test_angles(bool precise) {
  std::vector<T> x = {make<T>(0), make<T>(HUGE_VAL), make<T>(-HUGE_VAL), make<T>(std::nan(""))};
  std::mt19937_64 bits(3);
  for (int e = min_exponent<T> - 1; e < max_exponent<T>; ++e)
    for (int k = 0; k < 4; ++k) // one of them the power itself
      x.push_back(
          make<T>(std::ldexp(k ? 1 + std::ldexp(static_cast<double>(bits() >> 12), -52) : 1.0, e) * (k % 2 ? -1 : 1)));
  for (double v : {1.5707963267948966, 105615.0, 105616.0, 16367173.0 * 0x1p+72, 3.40282347e38, 6381956970095103.0})
    if (v < std::ldexp(1.0, max_exponent<T>))
      x.push_back(make<T>(v));
  const int n = static_cast<int>(x.size());
  const auto kernel = tl::kernel("angles", [](tl::ptr<const T> x, tl::ptr<T> y, tl::val<i32> n, tile_config c) {
    auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
    auto v = tl::load(x + at, at < n);
    tl::store(y + at, tl::sin(v), at < n);
    tl::store(y + n + at, tl::cos(v), at < n);
    tl::store(y + 2 * n + at, tl::tan(v), at < n);
  });
  std::vector<double> want[3];
  for (const T &v : x)
    for (auto [list, fn] : {std::pair(&want[0], static_cast<double (*)(double)>(std::sin)),
                            {&want[1], static_cast<double (*)(double)>(std::cos)},
                            {&want[2], static_cast<double (*)(double)>(std::tan)}})
      list->push_back(fn(to_double(v)));
  input<T> in(x);
  for (int block : {32, 512}) {
    output<T> out(3 * x.size());
    launch(kernel.with({.block = block}, {.num_warps = 1, .precise_math = precise}), tl::cdiv(n, block), *in, *out, n);
    const auto y = out.read();
    const double small = is_small_float<T> ? 1 : 4; // f32 fast forms are off by an ulp of 1 near their zeros
    check_close<T>("sin", part(y, 0, x.size()), want[0], small, precise || !std::is_same_v<T, float> ? 0 : 1);
    check_close<T>("cos", part(y, x.size(), x.size()), want[1], small, precise || !std::is_same_v<T, float> ? 0 : 1);
    check_close<T>("tan", part(y, 2 * x.size(), x.size()), want[2], 2 * small);
  }
}

/// Infinities, NaN, signed zeros and subnormals through the functions that have a definite answer for them.
template <class T> void test_special_values() {
  const double inf = HUGE_VAL, nan = std::nan("");
  const std::vector<double> xs = {0.0, -0.0, inf, -inf, nan, 1.0, -1.0, std::ldexp(1.0, min_exponent<T> - 2)};
  const int n = static_cast<int>(xs.size());
  std::vector<T> x;
  for (double v : xs)
    x.push_back(make<T>(v));
  const auto kernel = tl::kernel("special", [](tl::ptr<const T> x, tl::ptr<T> y) {
    auto at = tl::arange(0, 8);
    auto v = tl::load(x + at);
    int row = 0;
    for (auto r : {tl::exp(v), tl::sqrt(tl::abs(v)), tl::abs(v), -v, tl::floor(v),
                   tl::maximum(v, tl::full<T>({8}, make<T>(2))), tl::minimum(v, tl::full<T>({8}, make<T>(2))), v - v})
      tl::store(y + 8 * row++ + at, r);
  });
  input<T> in(x);
  output<T> out(8 * n);
  launch(kernel, 1, *in, *out);
  const auto y = out.read();
  const double tiny = to_double(x[7]);
  const std::vector<std::vector<double>> want = {
      {1, 1, inf, 0, nan, std::exp(1.0), std::exp(-1.0), 1},
      {0, 0, inf, inf, nan, 1, 1, std::sqrt(tiny)},
      {0, 0, inf, inf, nan, 1, 1, tiny},
      {-0.0, 0, -inf, inf, nan, -1, 1, -tiny},
      {0, -0.0, inf, -inf, nan, 1, -1, 0},
      {2, 2, inf, 2, 2, 2, 2, 2}, // NaN is ignored
      {0, -0.0, 2, -inf, 2, 1, -1, tiny},
      {0, 0, nan, nan, nan, 0, 0, 0},
  };
  const char *names[] = {"exp", "sqrt", "abs", "neg", "floor", "maximum", "minimum", "v - v"};
  for (std::size_t k = 0; k < want.size(); ++k) {
    auto expected = want[k];
    if (k <= 1 && std::is_same_v<T, float>)
      expected[7] = k == 0 ? 1 : to_double(y[k * 8 + 7]); // fast sqrt may flush an f32 subnormal
    check_close<T>(names[k], part(y, k * 8, 8), expected, 4);
  }
}

// ---- two values
// -------------------------------------------------------------------------------------------------------------

template <class T> struct binary_op {
  const char *name;
  tl::val<T> (*trace)(tl::val<T>, tl::val<T>);
  T (*reference)(T, T);
  bool (*defined)(T, T) = [](T, T) { return true; }; ///< elsewhere any value will do, but nothing may trap
};

// Wrapping arithmetic: by way of a type that neither promotes to int nor overflows.
template <class T> using wide = std::conditional_t<std::is_signed_v<T>, i64, u64>;
template <class T> T wrap_add(T a, T b) { return static_cast<T>(static_cast<u64>(a) + static_cast<u64>(b)); }
template <class T> T wrap_sub(T a, T b) { return static_cast<T>(static_cast<u64>(a) - static_cast<u64>(b)); }
template <class T> T wrap_mul(T a, T b) { return static_cast<T>(static_cast<u64>(a) * static_cast<u64>(b)); }
template <class T> bool overflows(T a, T b) {
  return std::is_signed_v<T> && a == std::numeric_limits<T>::min() && b == static_cast<T>(-1);
}
template <class T> T shift_left(T a, T b) {
  const auto s = static_cast<std::make_unsigned_t<T>>(b);
  return s >= 8 * sizeof(T) ? T(0) : static_cast<T>(static_cast<u64>(a) << s);
}
template <class T> T shift_right(T a, T b) {
  const auto s = static_cast<std::make_unsigned_t<T>>(b);
  return s >= 8 * sizeof(T) ? (std::is_signed_v<T> && a < 0 ? T(-1) : T(0)) : static_cast<T>(wide<T>(a) >> s);
}

template <class T> const std::vector<binary_op<T>> &integer_ops() {
  using v = tl::val<T>;
  static constexpr auto nonzero = [](T, T b) { return b != 0; };
  static const std::vector<binary_op<T>> ops = {
      {"+", [](v a, v b) -> v { return a + b; }, wrap_add<T>},
      {"-", [](v a, v b) -> v { return a - b; }, wrap_sub<T>},
      {"*", [](v a, v b) -> v { return a * b; }, wrap_mul<T>},
      {"/", [](v a, v b) -> v { return a / b; },
       [](T a, T b) { return b == 0            ? T(0)
                             : overflows(a, b) ? a
                                               : T(a / b); }, nonzero},
      {"%", [](v a, v b) -> v { return a % b; }, [](T a, T b) { return b == 0 || overflows(a, b) ? T(0) : T(a % b); },
       nonzero},
      {"&", [](v a, v b) -> v { return a & b; }, [](T a, T b) { return T(a & b); }},
      {"|", [](v a, v b) -> v { return a | b; }, [](T a, T b) { return T(a | b); }},
      {"^", [](v a, v b) -> v { return a ^ b; }, [](T a, T b) { return T(a ^ b); }},
      {"<<", [](v a, v b) -> v { return a << b; }, shift_left<T>},
      {">>", [](v a, v b) -> v { return a >> b; }, shift_right<T>},
      {"min", [](v a, v b) -> v { return tl::minimum(a, b); }, [](T a, T b) { return std::min(a, b); }},
      {"max", [](v a, v b) -> v { return tl::maximum(a, b); }, [](T a, T b) { return std::max(a, b); }},
      {"<", [](v a, v b) -> v { return (a < b).template to<T>(); }, [](T a, T b) { return T(a < b); }},
      {"<=", [](v a, v b) -> v { return (a <= b).template to<T>(); }, [](T a, T b) { return T(a <= b); }},
      {">", [](v a, v b) -> v { return (a > b).template to<T>(); }, [](T a, T b) { return T(a > b); }},
      {">=", [](v a, v b) -> v { return (a >= b).template to<T>(); }, [](T a, T b) { return T(a >= b); }},
      {"==", [](v a, v b) -> v { return (a == b).template to<T>(); }, [](T a, T b) { return T(a == b); }},
      {"!=", [](v a, v b) -> v { return (a != b).template to<T>(); }, [](T a, T b) { return T(a != b); }},
      {"~", [](v a, v) -> v { return ~a; }, [](T a, T) { return T(~a); }},
      {"-a", [](v a, v) -> v { return -a; }, [](T a, T) { return wrap_sub<T>(0, a); }},
      {"where", [](v a, v b) -> v { return tl::where(a < b, a - b, b); },
       [](T a, T b) { return a < b ? wrap_sub(a, b) : b; }},
      {"where literal", [](v a, v b) -> v { return tl::where(a == b, T(7), b); },
       [](T a, T b) { return a == b ? T(7) : b; }},
      {"/ 7", [](v a, v) -> v { return a / T(7); }, [](T a, T) { return T(a / T(7)); }},
      {"% 8", [](v a, v) -> v { return a % T(8); }, [](T a, T) { return T(a % T(8)); }},
      {"100 / b", [](v, v b) -> v { return T(100) / b; }, [](T, T b) { return b == 0 ? T(0) : T(T(100) / b); },
       nonzero},
  };
  return ops;
}

float as_float(f16 x) { return static_cast<float>(x); }
float as_float(bf16 x) { return static_cast<float>(x); }
template <class T> T as_float(T x) { return x; }

template <class T> const std::vector<binary_op<T>> &float_ops() {
  using v = tl::val<T>;
  static const std::vector<binary_op<T>> ops = {
      {"+", [](v a, v b) -> v { return a + b; },
       [](T a, T b) {
         return make<T>(static_cast<double>(round_to<T>(to_double(a) + static_cast<long double>(to_double(b)))));
       }},
      {"-", [](v a, v b) -> v { return a - b; },
       [](T a, T b) {
         return make<T>(static_cast<double>(round_to<T>(to_double(a) - static_cast<long double>(to_double(b)))));
       }},
      {"*", [](v a, v b) -> v { return a * b; },
       [](T a, T b) {
         return make<T>(static_cast<double>(round_to<T>(to_double(a) * static_cast<long double>(to_double(b)))));
       }},
      {"%", [](v a, v b) -> v { return a % b; }, [](T a, T b) { return make<T>(std::fmod(to_double(a), to_double(b))); }},
      {"min", [](v a, v b) -> v { return tl::minimum(a, b); },
       [](T a, T b) { return T(as_float(b) < as_float(a) || std::isnan(as_float(a)) ? b : a); }},
      {"max", [](v a, v b) -> v { return tl::maximum(a, b); },
       [](T a, T b) { return T(as_float(a) < as_float(b) || std::isnan(as_float(a)) ? b : a); }},
      {"<", [](v a, v b) -> v { return (a < b).template to<T>(); },
       [](T a, T b) { return make<T>(as_float(a) < as_float(b)); }},
      {"<=", [](v a, v b) -> v { return (a <= b).template to<T>(); },
       [](T a, T b) { return make<T>(as_float(a) <= as_float(b)); }},
      {">", [](v a, v b) -> v { return (a > b).template to<T>(); },
       [](T a, T b) { return make<T>(as_float(a) > as_float(b)); }},
      {">=", [](v a, v b) -> v { return (a >= b).template to<T>(); },
       [](T a, T b) { return make<T>(as_float(a) >= as_float(b)); }},
      {"==", [](v a, v b) -> v { return (a == b).template to<T>(); },
       [](T a, T b) { return make<T>(as_float(a) == as_float(b)); }},
      {"!=", [](v a, v b) -> v { return (a != b).template to<T>(); },
       [](T a, T b) { return make<T>(as_float(a) != as_float(b)); }},
      {"where", [](v a, v b) -> v { return tl::where(a < b, a, b); },
       [](T a, T b) { return as_float(a) < as_float(b) ? a : b; }},
  };
  return ops;
}

/// Every pair of edge values through every operation of the table; results bit-identical on all targets.
template <class T, const std::vector<binary_op<T>> &(*Ops)()> void test_binary(const std::vector<T> &edges) {
  const auto &ops = Ops();
  std::vector<T> a, b;
  for (T p : edges)
    for (T q : edges)
      a.push_back(p), b.push_back(q);
  const int n = static_cast<int>(a.size()), block = 64;
  const auto kernel =
      tl::kernel("binary", [](tl::ptr<const T> a, tl::ptr<const T> b, tl::ptr<T> y, tl::val<i32> n, tile_config c) {
        auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
        auto in = at < n;
        auto p = tl::load(a + at, in), q = tl::load(b + at, in);
        int row = 0;
        for (auto &op : Ops())
          tl::store(y + (row++ * n + at), op.trace(p, q), in);
      });
  input<T> ina(a), inb(b);
  output<T> out(ops.size() * n);
  launch(kernel.with({.block = block}), tl::cdiv(n, block), *ina, *inb, *out, n);
  const auto y = out.read();
  for (std::size_t k = 0; k < ops.size(); ++k) {
    std::vector<T> got = part(y, k * n, n), want(n);
    for (int i = 0; i < n; ++i)
      want[i] = ops[k].defined(a[i], b[i]) ? ops[k].reference(a[i], b[i]) : got[i];
    check_equal<T>(ops[k].name, got, want);
  }
}

template <class T> std::vector<T> integer_edges() {
  const T lo = std::numeric_limits<T>::min(), hi = std::numeric_limits<T>::max();
  return {lo, T(lo + 1), T(-7), T(-1), T(0), T(1), T(2), T(7), T(8), T(31), T(64), T(hi / 2), T(hi - 1), hi};
}
template <class T> std::vector<T> float_edges() {
  std::vector<T> v;
  for (double x :
       {-HUGE_VAL, -1000.0, -1.5, -1.0, -0.125, 0.0, 0.3, 1.0, 1.25, 3.0, 1000.0, HUGE_VAL, double(std::nanf(""))})
    v.push_back(make<T>(x));
  return v;
}

} // namespace

TEST_SUITE_BEGIN("elementwise");

TEST_CASE("float functions of one value, fast") {
  test_unary<float>(false);
  test_unary<f16>(false);
  test_unary<bf16>(false);
  test_unary<double>(false);
}

TEST_CASE("float functions of one value, precise") {
  test_unary<float>(true);
  test_unary<f16>(true);
  test_unary<bf16>(true);
  test_unary<double>(true);
}

TEST_CASE("sine, cosine and tangent of angles of every magnitude") {
  test_angles<float>(false);
  test_angles<float>(true);
  test_angles<f16>(false);
  test_angles<bf16>(false);
  test_angles<double>(false);
}

TEST_CASE("infinities, NaN, signed zeros, subnormals") {
  test_special_values<float>();
  test_special_values<double>();
  test_special_values<f16>();
  test_special_values<bf16>();
}

TEST_CASE("integer operations on all pairs of edge values") {
  test_binary<i8, integer_ops<i8>>(integer_edges<i8>());
  test_binary<u8, integer_ops<u8>>(integer_edges<u8>());
  test_binary<i16, integer_ops<i16>>(integer_edges<i16>());
  test_binary<u16, integer_ops<u16>>(integer_edges<u16>());
  test_binary<i32, integer_ops<i32>>(integer_edges<i32>());
  test_binary<u32, integer_ops<u32>>(integer_edges<u32>());
  test_binary<i64, integer_ops<i64>>(integer_edges<i64>());
  test_binary<u64, integer_ops<u64>>(integer_edges<u64>());
}

TEST_CASE("float operations on all pairs of edge values") {
  test_binary<float, float_ops<float>>(float_edges<float>());
  test_binary<double, float_ops<double>>(float_edges<double>());
  test_binary<f16, float_ops<f16>>(float_edges<f16>());
  test_binary<bf16, float_ops<bf16>>(float_edges<bf16>());
}

TEST_CASE("division of floats, fast and precise") {
  const auto kernel = tl::kernel("divide", [](tl::ptr<const float> a, tl::ptr<const float> b, tl::ptr<float> y) {
    auto at = tl::arange(0, 512);
    tl::store(y + at, tl::load(a + at) / tl::load(b + at));
  });
  const auto a = random<float>(512, -100, 100, 1), b = random<float>(512, 0.01, 100, 2);
  input<float> ina(a), inb(b);
  for (bool precise : {false, true}) {
    output<float> out(512);
    launch(kernel.with_options({.precise_math = precise}), 1, *ina, *inb, *out);
    std::vector<double> want(512);
    for (int i = 0; i < 512; ++i)
      want[i] = double(a[i]) / b[i];
    check_close<float>(precise ? "precise a / b" : "a / b", out.read(), want, precise ? 0.5000001 : 2);
  }
}

TEST_CASE("NaN in minimum, maximum and clamp: ignored, or passed on when asked") {
  const auto kernel = tl::kernel("extremes", [](tl::ptr<const float> a, tl::ptr<const float> b, tl::ptr<float> y) {
    auto at = tl::arange(0, 4);
    auto p = tl::load(a + at), q = tl::load(b + at);
    int row = 0;
    for (auto nan : {tl::propagate_nan::none, tl::propagate_nan::all})
      for (auto r : {tl::minimum(p, q, nan), tl::maximum(p, q, nan), tl::clamp(p, -1.0f, 1.0f, nan)})
        tl::store(y + 4 * row++ + at, r);
  });
  const float nan = std::nanf("");
  input<float> a(std::vector<float>{nan, 2, nan, -3}), b(std::vector<float>{1, nan, nan, 4});
  output<float> out(24);
  launch(kernel, 1, *a, *b, *out);
  check_equal<float>("extremes", out.read(), {1,   2,   nan, -3, 1,   2,   nan, 4, -1,  1, -1,  -1, //
                                              nan, nan, nan, -3, nan, nan, nan, 4, nan, 1, nan, -1});
}

TEST_CASE("quotients and upper halves of products") {
  const auto kernel = tl::kernel("exact", [](tl::ptr<const u32> a, tl::ptr<const u32> b, tl::ptr<u32> high,
                                             tl::ptr<float> quotient, tl::ptr<i32> ceiled) {
    auto at = tl::arange(0, 64);
    auto p = tl::load(a + at), q = tl::load(b + at);
    tl::store(high + at, tl::umulhi(p, q));
    tl::store(quotient + at, tl::div_rn(p.to<float>(), q.to<float>()));
    tl::store(ceiled + at, tl::cdiv((p >> 8).to<i32>(), 37));
  });
  const auto a = random<u32>(64, 0, 4.29e9, 1), b = random<u32>(64, 1, 4.29e9, 2);
  input<u32> ina(a), inb(b);
  output<u32> high(64);
  output<float> quotient(64);
  output<i32> ceiled(64);
  launch(kernel, 1, *ina, *inb, *high, *quotient, *ceiled);
  std::vector<u32> want_high(64);
  std::vector<float> want(64);
  std::vector<i32> want_ceiled(64);
  for (int i = 0; i < 64; ++i) {
    want_high[i] = static_cast<u32>(u64(a[i]) * b[i] >> 32);
    want[i] = static_cast<float>(a[i]) / static_cast<float>(b[i]);
    want_ceiled[i] = static_cast<i32>(((a[i] >> 8) + 36) / 37);
  }
  check_equal<u32>("umulhi", high.read(), want_high);
  check_equal<float>("div_rn", quotient.read(), want);
  check_equal<i32>("cdiv", ceiled.read(), want_ceiled);
}

namespace {
template <class T> void test_wide_divisions() {
  constexpr int n = 8192; // many elements a thread: divisions are called, not inlined
  const auto kernel = tl::kernel("wide", [](tl::ptr<const T> x, tl::ptr<T> y, tl::val<T> d) {
    auto at = tl::arange(0, n);
    auto v = tl::load(x + at);
    tl::store(y + at, v / 7);
    tl::store(y + n + at, v % 1000000007);
    tl::store(y + 2 * n + at, v / d);
    tl::store(y + 3 * n + at, v % d);
    tl::store(y + 4 * n + at, v / 16);
  });
  std::mt19937_64 bits(5);
  std::vector<T> host(n), want(5 * n);
  for (T &v : host)
    v = static_cast<T>(bits() >> bits() % 64);
  host[0] = std::numeric_limits<T>::min(), host[1] = std::numeric_limits<T>::max();
  const T d = 12345678912;
  for (int i = 0; i < n; ++i) {
    const T v = host[i];
    want[i] = v / 7, want[n + i] = v % 1000000007, want[2 * n + i] = v / d, want[3 * n + i] = v % d;
    want[4 * n + i] = v / 16;
  }
  input<T> in(host);
  output<T> out(5 * n);
  launch(kernel.with_options({.num_warps = 4}), 1, *in, *out, d);
  check_equal<T>(type_name<T>(), out.read(), want);
}
} // namespace

TEST_CASE("64-bit divisions of a wide tile, by constants and by an argument") {
  test_wide_divisions<i64>();
  test_wide_divisions<u64>();
}

TEST_CASE("a long function of a wide tile") {
  const auto kernel = tl::kernel("gelu", [](tl::ptr<const float> x, tl::ptr<float> y) {
    auto at = tl::arange(0, 4096);
    auto v = tl::load(x + at);
    tl::store(y + at, v * 0.5f * (1.0f + tl::erf(v * 0.70710678f)));
  });
  const auto host = random<float>(4096, -4, 4);
  input<float> in(host);
  output<float> out(4096);
  launch(kernel.with_options({.num_warps = 1}), 1, *in, *out);
  const auto got = out.read();
  double worst = 0;
  for (std::size_t i = 0; i < host.size(); ++i)
    worst = std::max(worst, std::fabs(got[i] - host[i] * 0.5 * (1 + std::erf(host[i] * std::sqrt(0.5)))));
  CHECK(worst < 2e-6);
}

TEST_CASE("kernels named like the functions they call") {
  const auto run = [](const char *name, auto fn, double (*reference)(double)) {
    const auto kernel = tl::kernel(name, [fn](tl::ptr<const double> x, tl::ptr<double> y) {
      auto at = tl::arange(0, 64);
      tl::store(y + at, fn(tl::load(x + at)));
      tl::store(y + 64, fn(tl::load(x)));
    });
    const auto x = random<double>(64, 0.5, 2);
    input<double> in(x);
    output<double> out(65);
    launch(kernel, 1, *in, *out);
    std::vector<double> want(65);
    for (int i = 0; i < 65; ++i)
      want[i] = reference(x[i % 64]);
    check_close<double>(name, out.read(), want, 4);
  };
  run("exp", [](tl::val<double> v) { return tl::exp(v); }, std::exp);
  run("tanh", [](tl::val<double> v) { return tl::tanh(v); }, std::tanh);
  run("erf", [](tl::val<double> v) { return tl::erf(v); }, std::erf);
  run("memset", [](tl::val<double> v) { return tl::sin(v); }, std::sin);
  run("shared_memory", [](tl::val<double> v) { return v.rank() ? v + tl::sum(v - v) : v; },
      [](double x) { return x; });
}

namespace {
template <class T> void test_chain(double ulps) {
  constexpr int n = 8192; // many elements a thread: the chain is a function of one
  const auto kernel = tl::kernel("chain", [](tl::ptr<const T> x, tl::ptr<T> y, tl::val<i32> flag) {
    auto at = tl::arange(0, n);
    auto v = tl::load(x + at);
    auto a = tl::sin(v), b = tl::tanh(a * make<T>(2)), c = tl::erf(b + v);
    auto d = tl::pow(tl::abs(c), tl::where(flag > 0, v, a));
    tl::store(y + at, d);
    tl::store(y + n + at, a + b);
  });
  const auto x = random<T>(n, 0.25, 3);
  input<T> in(x);
  output<T> out(2 * n);
  launch(kernel.with_options({.num_warps = 1}), 1, *in, *out, 1);
  const auto y = out.read();
  std::vector<double> d(n), sum(n);
  auto rounded = [](double r) { return to_double(make<T>(r)); }; // as each operation of a narrow type is
  for (int i = 0; i < n; ++i) {
    const double v = to_double(x[i]), a = rounded(std::sin(v)), b = rounded(std::tanh(rounded(a * 2)));
    d[i] = std::pow(rounded(std::erf(rounded(b + v))), v);
    sum[i] = a + b;
  }
  check_close<T>("pow", part(y, 0, n), d, ulps, 0.25);
  check_close<T>("sum", part(y, n, n), sum, ulps, 0.25);
}
} // namespace

TEST_CASE("a chain of long functions on a wide tile") {
  test_chain<float>(32);
  test_chain<double>(32);
  test_chain<f16>(8);
}

TEST_CASE("logic on bool tiles") {
  const auto kernel = tl::kernel("logic", [](tl::ptr<const i32> a, tl::ptr<i32> y) {
    auto at = tl::arange(0, 16);
    auto v = tl::load(a + at);
    auto p = (v & 1) != 0, q = (v & 2) != 0;
    int row = 0;
    for (auto r : {p && q, p || q, !p, p ^ q, tl::where(p, q, !q)})
      tl::store(y + 16 * row++ + at, r.to<i32>());
  });
  input<i32> in(iota<i32>(16));
  output<i32> out(80);
  launch(kernel, 1, *in, *out);
  std::vector<i32> want;
  for (int row = 0; row < 5; ++row)
    for (int v = 0; v < 16; ++v) {
      const bool p = v & 1, q = v & 2;
      want.push_back(row == 0 ? p && q : row == 1 ? p || q : row == 2 ? !p : row == 3 ? p != q : p ? q : !q);
    }
  check_equal<i32>("logic", out.read(), want);
}

TEST_CASE("a tile of any length, in one program and in many") {
  const auto kernel = tl::kernel(
      "saxpy", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<i32> n, tl::val<float> a, tile_config c) {
        auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
        auto in = at < n;
        tl::store(y + at, tl::load(x + at, in) * a + 1.0f, in);
      });
  for (int block : {1, 2, 16, 128, 1024, 4096})
    for (int n : {1, 2, 31, 127, 128, 129, 1000}) {
      if (n > 128 * block)
        continue; // thousands of programs of one element show nothing new
      const auto x = random<float>(n, -1, 1);
      input<float> in(x);
      output<float> out(n);
      launch(kernel.with({.block = block}), tl::cdiv(n, block), *in, *out, n, 2.0f);
      std::vector<float> want(n);
      for (int i = 0; i < n; ++i)
        want[i] = x[i] * 2 + 1; // exact: doubling loses nothing
      check_equal<float>("block " + std::to_string(block) + ", n " + std::to_string(n), out.read(), want);
    }
}

TEST_SUITE_END();
