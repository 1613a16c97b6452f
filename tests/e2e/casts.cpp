// Every conversion between element types: saturation and NaN from float to integer, wrapping between integers, one
// rounding to nearest even into floats, of which the 8-bit ones saturate. One kernel a source type, with an output for
// each destination type; then all values of the small floats.
#include "harness.h"

using namespace e2e;

namespace {

/// What conversion means, computed without the conversion under test.
template <class D, class S> D convert(S s) {
  if constexpr (std::is_same_v<D, bool>) {
    return to_double(s) != 0; // NaN is true
  } else if constexpr (is_float<D>) {
    if constexpr (is_float<S> || std::is_same_v<S, bool>)
      return make<D>(round_to<D>(to_double(s)));
    else
      return make<D>(round_to<D>(static_cast<long double>(s))); // 64-bit integers fit a long double
  } else if constexpr (is_float<S>) {
    const double v = to_double(s);
    if (std::isnan(v))
      return 0;
    if (v <= static_cast<double>(std::numeric_limits<D>::min()))
      return std::numeric_limits<D>::min();
    if (v >= std::ldexp(1.0, std::numeric_limits<D>::digits))
      return std::numeric_limits<D>::max();
    return static_cast<D>(v);
  } else {
    return static_cast<D>(s);
  }
}

template <class S> std::vector<S> sources() {
  std::vector<S> v;
  if constexpr (std::is_same_v<S, bool>) {
    for (int i = 0; i < 64; ++i)
      v.push_back(i % 3 == 0);
  } else if constexpr (is_float<S>) {
    for (double x :
         {0.0,     0.4,     0.5,          0.9,          1.0,          1.5,          2.5,    3.5,    100.7,   127.0,
          127.9,   128.0,   129.0,        200.5,        255.0,        255.9,        256.0,  257.0,  32767.9, 32768.0,
          65504.0, 65520.0, 2147483647.0, 2147483648.0, 4294967295.0, 4294967296.0, 9.2e18, 9.3e18, 1.9e19,  HUGE_VAL})
      v.push_back(make<S>(x)), v.push_back(make<S>(-x));
    v.push_back(make<S>(std::nan("")));
    for (double x : {1.0009765625, 1.00048828125, 1.00390625}) // ties of f16 and bf16
      v.push_back(make<S>(x));
  } else {
    const S lo = std::numeric_limits<S>::min(), hi = std::numeric_limits<S>::max();
    for (S x : {lo, hi, S(0), S(1), S(-1), S(127), S(128), S(-128), S(200), S(255), S(256), S(lo + 1), S(hi - 1),
                S(hi / 2), S(hi / 2 + 1)})
      v.push_back(x);
    for (int shift = 0; v.size() < 64; ++shift) // ties and near ties of every float type
      v.push_back(static_cast<S>((u64(0x101) << shift % 48) + static_cast<u64>(shift % 3)));
  }
  REQUIRE(v.size() == 64);
  return v;
}

/// Loads 64 values and stores them as each type. bool is memory of one byte, 0 or 1.
template <class S> void test_casts_from() {
  const auto kernel =
      tl::kernel("casts", [](tl::ptr<const S> x, tl::ptr<bool> b, tl::ptr<i8> i1, tl::ptr<i16> i2, tl::ptr<i32> i4,
                             tl::ptr<i64> i8_, tl::ptr<u8> u1, tl::ptr<u16> u2, tl::ptr<u32> u4, tl::ptr<u64> u8_,
                             tl::ptr<f8e4m3> e4, tl::ptr<f8e5m2> e5, tl::ptr<f8e4m3fnuz> n4, tl::ptr<f8e5m2fnuz> n5,
                             tl::ptr<f16> f2, tl::ptr<bf16> b2, tl::ptr<float> f4, tl::ptr<double> f8) {
        auto at = tl::arange(0, 64);
        auto v = tl::load(x + at);
        tl::store(b + at, v.template to<bool>());
        tl::store(i1 + at, v.template to<i8>());
        tl::store(i2 + at, v.template to<i16>());
        tl::store(i4 + at, v.template to<i32>());
        tl::store(i8_ + at, v.template to<i64>());
        tl::store(u1 + at, v.template to<u8>());
        tl::store(u2 + at, v.template to<u16>());
        tl::store(u4 + at, v.template to<u32>());
        tl::store(u8_ + at, v.template to<u64>());
        tl::store(e4 + at, v.template to<f8e4m3>());
        tl::store(e5 + at, v.template to<f8e5m2>());
        tl::store(n4 + at, v.template to<f8e4m3fnuz>());
        tl::store(n5 + at, v.template to<f8e5m2fnuz>());
        tl::store(f2 + at, v.template to<f16>());
        tl::store(b2 + at, v.template to<bf16>());
        tl::store(f4 + at, v.template to<float>());
        tl::store(f8 + at, v.template to<double>());
      });
  const auto x = sources<S>();
  tessera::device_buffer<S> in(dev(), 64);
  {
    std::unique_ptr<S[]> plain(new S[64]); // vector<bool> has no data()
    std::copy(x.begin(), x.end(), plain.get());
    in.copy_from(std::span<const S>(plain.get(), 64));
  }
  auto run = [&]<class... D>(std::type_identity<D>...) {
    std::tuple<tessera::device_buffer<D>...> out(tessera::device_buffer<D>(dev(), 64)...);
    std::apply([&](auto &...o) { launch(kernel, 1, in, o...); }, out);
    auto check = [&]<class T>(const tessera::device_buffer<T> &got) {
      std::unique_ptr<T[]> values(new T[64]);
      got.copy_to(std::span<T>(values.get(), 64));
      std::size_t wrong = 0, first = 0;
      for (std::size_t i = 64; i-- > 0;) {
        const T want = convert<T, S>(x[i]);
        if (!same_bits(values[i], want) &&
            !(is_float<T> && std::isnan(to_double(values[i])) && std::isnan(to_double(want))))
          ++wrong, first = i;
      }
      CHECK_MESSAGE(wrong == 0, type_name<S>(), " -> ", type_name<T>(), ": ", wrong,
                    " of 64 wrong, first: ", to_double(static_cast<S>(x[first])), " gave ", to_double(values[first]),
                    ", want ", to_double(convert<T, S>(x[first])));
    };
    std::apply([&](auto &...o) { (check(o), ...); }, out);
  };
  run(std::type_identity<bool>{}, std::type_identity<i8>{}, std::type_identity<i16>{}, std::type_identity<i32>{},
      std::type_identity<i64>{}, std::type_identity<u8>{}, std::type_identity<u16>{}, std::type_identity<u32>{},
      std::type_identity<u64>{}, std::type_identity<f8e4m3>{}, std::type_identity<f8e5m2>{},
      std::type_identity<f8e4m3fnuz>{}, std::type_identity<f8e5m2fnuz>{}, std::type_identity<f16>{},
      std::type_identity<bf16>{}, std::type_identity<float>{}, std::type_identity<double>{});
}

struct narrowing {
  tl::rounding rounding = tl::rounding::nearest;
};

/// S to D on as many elements as x has, in tiles of 1024.
template <class D, class S> std::vector<D> converted(const std::vector<S> &x, tl::rounding r = tl::rounding::nearest) {
  static const auto kernel = tl::kernel("convert", [](tl::ptr<const S> x, tl::ptr<D> y, tl::val<i32> n, narrowing c) {
    auto at = tl::program_id(0) * 1024 + tl::arange(0, 1024);
    tl::store(y + at, tl::load(x + at, at < n).template to<D>(c.rounding), at < n);
  });
  input<S> in(x);
  output<D> out(x.size());
  launch(kernel.with({r}), tl::cdiv(x.size(), std::size_t(1024)), *in, *out, x.size());
  return out.read();
}

/// The fp8 number at or next to x towards zero.
template <class D> D cut(double x) {
  const D nearest = make<D>(x);
  if (!(std::fabs(to_double(nearest)) > std::fabs(x)))
    return nearest;
  const u8 bits = static_cast<u8>(nearest.bits - 1);
  return D::from_bits(D::fnuz && bits == 0x80 ? 0 : bits); // there is no -0
}

template <class D, class S> void check_narrowing(const std::vector<S> &x) {
  const std::string what = type_name<S>() + " to";
  std::vector<D> nearest, zero;
  for (S v : x)
    nearest.push_back(make<D>(to_double(v))), zero.push_back(cut<D>(to_double(v)));
  check_equal<D>(what, converted<D>(x), nearest);
  check_equal<D>(what + " (towards zero)", converted<D>(x, tl::rounding::toward_zero), zero);
}

template <class T> std::vector<T> all_values() {
  std::vector<T> v;
  for (unsigned b = 0; b < 1u << 8 * sizeof(T); ++b)
    v.push_back(T::from_bits(static_cast<decltype(T::bits)>(b)));
  return v;
}

template <class D> void check_fp8() {
  const auto all = all_values<D>();
  auto check_widening = [&]<class W>(std::type_identity<W>) {
    std::vector<W> want;
    for (D v : all)
      want.push_back(make<W>(to_double(v)));
    check_equal<W>(type_name<D>() + " to", converted<W>(all), want);
  };
  check_widening(std::type_identity<f16>{});
  check_widening(std::type_identity<bf16>{});
  check_widening(std::type_identity<float>{});
  check_widening(std::type_identity<double>{});
  check_narrowing<D>(all_values<f16>());
  check_narrowing<D>(all_values<bf16>());
  // Ties, and what is next to them. Of double by so little that f32 would see a tie: there is one rounding, not two.
  std::vector<float> f;
  std::vector<double> d;
  for (unsigned b = 0; b < 255; ++b) {
    const double middle =
        (to_double(D::from_bits(static_cast<u8>(b))) + to_double(D::from_bits(static_cast<u8>(b + 1)))) / 2;
    for (double x : {middle, middle * (1 + 0x1p-22), middle * (1 - 0x1p-22)})
      f.push_back(static_cast<float>(x));
    for (double x : {middle, middle * (1 + 0x1p-40), middle * (1 - 0x1p-40)})
      d.push_back(x);
  }
  check_narrowing<D>(f);
  check_narrowing<D>(d);
}

} // namespace

TEST_SUITE_BEGIN("casts");

TEST_CASE("all fp8 values, and all that round to them") {
  check_fp8<f8e4m3>();
  check_fp8<f8e5m2>();
}

TEST_CASE("all fp8 values of the fnuz kind, and all that round to them") {
  check_fp8<f8e4m3fnuz>();
  check_fp8<f8e5m2fnuz>();
}

/// Codes go through loads, choices and turns as they are, those that are no numbers too.
template <class T> void check_moved() {
  const auto kernel = tl::kernel("moved", [](tl::ptr<const T> x, tl::ptr<T> y) {
    auto r = tl::arange(0, 32);
    auto at = r[tl::all, tl::newaxis] * 16 + tl::arange(0, 16)[tl::newaxis, tl::all];
    auto v = tl::load(x + at, r[tl::all, tl::newaxis] < 16, {.other = -1e9f});
    auto turned = tl::reshape(tl::trans(v), {32, 16});
    tl::store(y + at, tl::where(r[tl::all, tl::newaxis] % 2 == 0, v, turned));
  });
  const auto x = all_values<T>();
  std::vector<T> want(512);
  for (int i = 0; i < 512; ++i) {
    const int from = i / 16 % 2 == 0 ? i : i % 32 * 16 + i / 32;
    want[i] = from < 256 ? x[from] : T(-1e9f);
  }
  input<T> in(x);
  output<T> out(512);
  launch(kernel, 1, *in, *out);
  const auto got = out.read();
  int wrong = 0;
  for (int i = 0; i < 512; ++i)
    wrong += !same_bits(got[i], want[i]);
  CHECK_MESSAGE(wrong == 0, type_name<T>(), ": ", wrong, " codes changed");
}

TEST_CASE("fp8 are moved as they are") {
  check_moved<f8e4m3>();
  check_moved<f8e5m2>();
  check_moved<f8e4m3fnuz>();
  check_moved<f8e5m2fnuz>();
}

TEST_CASE("from one kind of fp8 into the others") {
  auto check = [&]<class S, class D>(std::type_identity<S>, std::type_identity<D>) {
    check_narrowing<D>(all_values<S>());
  };
  auto into_others = [&]<class... D>(std::type_identity<D>... to) {
    auto from = [&]<class S>(std::type_identity<S> s) { ((std::is_same_v<S, D> ? void() : check(s, to)), ...); };
    (from(to), ...);
  };
  into_others(std::type_identity<f8e4m3>{}, std::type_identity<f8e5m2>{}, std::type_identity<f8e4m3fnuz>{},
              std::type_identity<f8e5m2fnuz>{});
}

TEST_CASE("f16 to e5m2: ties to even, on tiles as wide as a packed conversion") {
  const std::vector<std::pair<float, float>> pairs{
      {8, 8},      {9, 8},         {9.0078125f, 10}, {10, 10},    {11, 12}, {12, 12},   {13, 12},      {15, 16},
      {1.125f, 1}, {1.375f, 1.5f}, {1.625f, 1.5f},   {1.875f, 2}, {-9, -8}, {-11, -12}, {-0.0f, -0.0f}};
  const auto kernel = tl::kernel("round_trip", [](tl::ptr<const f16> x, tl::ptr<float> y) {
    auto at = tl::arange(0, 16);
    tl::store(y + at, tl::load(x + at).to<f8e5m2>().to<float>());
  });
  std::vector<f16> x(16, f16(1.0f));
  std::vector<float> want(16, 1.0f);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    x[i] = f16(pairs[i].first), want[i] = pairs[i].second;
  input<f16> in(x);
  for (int warps : {1, 4}) {
    output<float> out(16);
    launch(kernel.with_options({.num_warps = warps}), 1, *in, *out);
    check_equal<float>("e5m2", out.read(), want);
  }
}

TEST_CASE("two conversions round twice, whatever may be contracted") {
  const auto kernel = tl::kernel("twice", [](tl::ptr<const double> x, tl::ptr<f16> y, tl::ptr<float> z) {
    auto at = tl::arange(0, 64);
    auto v = tl::load(x + at);
    tl::store(y + at, v.to<float>().to<f16>());
    tl::store(z + at, v.to<float>().to<bf16>().to<float>());
  });
  // The first rounding makes ties, which the second takes to even.
  std::vector<double> x;
  std::vector<f16> halves;
  std::vector<float> rounded;
  for (int i = 0; i < 64; ++i) {
    x.push_back(std::ldexp(1 + i % 2 * 0x1p-10 + 0x1p-11 + (i % 4 < 2 ? 0x1p-40 : -0x1p-40), i / 4 - 8));
    x.back() += std::ldexp(i % 8 < 4 ? 0 : 0x1p-8, i / 4 - 8);
    halves.push_back(f16(static_cast<float>(x.back())));
    rounded.push_back(static_cast<float>(bf16(static_cast<float>(x.back()))));
  }
  output<f16> out(64);
  output<float> out2(64);
  launch(kernel, 1, *input<double>(x), *out, *out2);
  check_equal<f16>("f64 to f32 to f16", out.read(), halves);
  check_equal<float>("f64 to f32 to bf16 to f32", out2.read(), rounded);
}

TEST_CASE("from bool") { test_casts_from<bool>(); }
TEST_CASE("from signed integers") {
  test_casts_from<i8>();
  test_casts_from<i16>();
  test_casts_from<i32>();
  test_casts_from<i64>();
}
TEST_CASE("from unsigned integers") {
  test_casts_from<u8>();
  test_casts_from<u16>();
  test_casts_from<u32>();
  test_casts_from<u64>();
}
TEST_CASE("from floats") {
  test_casts_from<f8e4m3>();
  test_casts_from<f8e5m2>();
  test_casts_from<f8e4m3fnuz>();
  test_casts_from<f8e5m2fnuz>();
  test_casts_from<f16>();
  test_casts_from<bf16>();
  test_casts_from<float>();
  test_casts_from<double>();
}

TEST_CASE("the same bits as another type") {
  const auto kernel = tl::kernel("bitcast", [](tl::ptr<const float> x, tl::ptr<i32> y, tl::ptr<float> z) {
    auto at = tl::arange(0, 32);
    auto bits = tl::load(x + at).bitcast<i32>();
    tl::store(y + at, bits);
    tl::store(z + at, (bits ^ std::numeric_limits<i32>::min()).bitcast<float>());
  });
  const auto x = random<float>(32, -5, 5);
  input<float> in(x);
  output<i32> bits(32);
  output<float> negated(32);
  launch(kernel, 1, *in, *bits, *negated);
  std::vector<i32> want(32);
  std::vector<float> minus(32);
  for (int i = 0; i < 32; ++i)
    want[i] = std::bit_cast<i32>(x[i]), minus[i] = -x[i];
  check_equal<i32>("bitcast", bits.read(), want);
  check_equal<float>("bitcast back", negated.read(), minus);
}

TEST_SUITE_END();
