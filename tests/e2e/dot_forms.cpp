// One product at a time: tiles down to 1, batches, accumulators, operands that are results, transposes and padding.
#include "matrix.h"

using namespace e2e;

namespace {

using tl::all, tl::newaxis;

struct config {
  int m = 16, n = 16, k = 16, batch = 1;
  tl::precision precision = tl::precision::ieee;
};

/// Offsets of a row-major tile.
tl::val<i32> at(int rows, int cols) {
  return tl::arange(0, rows)[all, newaxis] * cols + tl::arange(0, cols)[newaxis, all];
}

/// Whether a program may use more shared memory than the 64 KiB of AMD's GPUs.
bool roomy() { return dev().target().max_shared_bytes() > 65536; }

template <class T> struct tile_test {
  using R = sum_of<T>;
  static inline const auto kernel =
      tl::kernel("tile", [](tl::ptr<const T> a, tl::ptr<const T> b, tl::ptr<const R> c, tl::ptr<R> d, config s) {
        auto x = tl::load(a + at(s.m, s.k)), y = tl::load(b + at(s.k, s.n));
        tl::store(d + at(s.m, s.n), tl::dot(x, y, tl::load(c + at(s.m, s.n)), {.input_precision = s.precision}));
      });

  static void run(int m, int n, int k, int warps, tl::precision p = tl::precision::ieee) {
    const std::string what = type_name<T>() + " tile " + std::to_string(m) + "x" + std::to_string(n) + "x" +
                             std::to_string(k) + " warps " + std::to_string(warps);
    INFO(what);
    const matrix<T> a(m, k, 1), b(k, n, 2);
    const matrix<R> c(m, n, 3);
    input<T> x(a.host), y(b.host);
    input<R> z(c.host);
    output<R> d(m * n);
    const auto k_ = kernel.with({.m = m, .n = n, .k = k, .precision = p}, {.num_warps = warps});
    if (also_compile())
      k_.compile_for(*also_compile());
    k_(on(), 1, *x, *y, *z, *d);
    reference want(a, b);
    for (std::int64_t i = 0; i < m * n; ++i)
      want.value[i] += to_double(c.host[i]), want.size[i] += std::fabs(to_double(c.host[i]));
    check_product(what, d.read(), strides(m, n), want, product_epsilon<T>(p));
  }
};

template <class T> void small_tiles(unsigned seed, tl::precision p = tl::precision::ieee) {
  constexpr int sizes[] = {1, 2, 4, 8, 16, 32};
  if (exhaustive()) {
    for (int m : sizes)
      for (int n : sizes)
        for (int k : sizes)
          if (mine())
            tile_test<T>::run(m, n, k, 1 << (m + n + k) % 4, p);
    return;
  }
  chooser c(seed);
  for (auto [m, n, k] : {std::tuple(1, 1, 1),
                         {1, 16, 16},
                         {16, 1, 16},
                         {16, 16, 1},
                         {2, 8, 4},
                         {8, 8, 8},
                         {4, 32, 64},
                         {1, 128, 32},
                         {128, 1, 32},
                         {64, 16, 2}})
    if (!also_compile() || c.below(3) == 0)
      tile_test<T>::run(m, n, k, c.of({1, 2, 4, 8}), p);
}

template <class T>
const auto batched = tl::kernel("batched", [](tl::ptr<const T> a, tl::ptr<const T> b, tl::ptr<sum_of<T>> c, config s) {
  auto i = tl::arange(0, s.batch)[all, newaxis, newaxis];
  auto x = tl::load(a + i * (s.m * s.k) + at(s.m, s.k)[newaxis, all, all]);
  auto y = tl::load(b + i * (s.k * s.n) + at(s.k, s.n)[newaxis, all, all]);
  tl::store(c + i * (s.m * s.n) + at(s.m, s.n)[newaxis, all, all], tl::dot(x, y));
});

template <class T> void check_batched(int batch, int m, int n, int k, int warps) {
  const std::string what = type_name<T>() + " batch " + std::to_string(batch) + " of " + std::to_string(m) + "x" +
                           std::to_string(n) + "x" + std::to_string(k) + " warps " + std::to_string(warps);
  INFO(what);
  const matrix<T> a(batch * m, k, 1), b(batch * k, n, 2);
  input<T> x(a.host), y(b.host);
  output<sum_of<T>> out(batch * m * n);
  launch(batched<T>.with({.m = m, .n = n, .k = k, .batch = batch}, {.num_warps = warps}), 1, *x, *y, *out);
  const auto got = out.read();
  for (int i = 0; i < batch; ++i) {
    matrix<T> ai(m, k, 1), bi(k, n, 2);
    ai.host = part(a.host, i * m * k, m * k), bi.host = part(b.host, i * k * n, k * n);
    check_product(what, part(got, i * m * n, m * n), strides(m, n), reference(ai, bi),
                  product_epsilon<T>(tl::precision::ieee));
  }
}

// A tile of which one row is in memory, times the transposed of another.
template <class T> void check_padded() {
  static const auto kernel = tl::kernel(
      "padded", [](tl::ptr<const T> a, tl::ptr<const T> b, tl::ptr<float> c, tl::ptr<float> column, tl::ptr<T> copy) {
        auto n = tl::arange(0, 16), k = tl::arange(0, 128);
        auto x = tl::load(a + at(16, 128));
        auto y = tl::load(b + n[all, newaxis] * 128 + k[newaxis, all], n[all, newaxis] < 1, {.other = 0});
        auto z = tl::dot(x, tl::trans(y));
        tl::store(c + at(16, 16), z);
        tl::store(column + at(16, 16), z, n[newaxis, all] == 0);
        tl::store(copy + at(16, 128), x);
      });
  std::vector<T> a(16 * 128), b(16 * 128, T(std::nanf("")));
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 128; ++k)
      a[i * 128 + k] = make<T>((i + k) % 7 - 3);
  for (int k = 0; k < 128; ++k)
    b[k] = make<T>(k % 5 - 2);
  const float column[] = {2, 13, 10, -7, -3, -13, -2, 2, 13, 10, -7, -3, -13, -2, 2, 13};
  std::vector<float> want(256, 0.0f);
  for (int i = 0; i < 16; ++i)
    want[i * 16] = column[i];
  input<T> x(a), y(b);
  for (int warps : {1, 2, 4, 8}) {
    output<float> c(256), first(256);
    output<T> copy(16 * 128);
    launch(kernel.with_options({.num_warps = warps}), 1, *x, *y, *c, *first, *copy);
    check_equal<float>("padded", c.read(), want);
    check_equal<T>("operand", copy.read(), a);
    const auto got = first.read();
    std::int64_t wrong = 0;
    for (int i = 0; i < 256; ++i)
      wrong += i % 16 ? !output<float>::is_poison(got[i]) : got[i] != column[i / 16];
    CHECK(wrong == 0);
  }
}

struct attention_config {
  int bm = 64, bn = 32, d = 64, stages = 2;
  bool causal = true;
};
template <class T>
const auto attention = tl::kernel("attention", [](tl::ptr<const T> Q, tl::ptr<const T> K, tl::ptr<const T> V,
                                                  tl::ptr<T> O, tl::val<i32> seq, tl::val<float> scale,
                                                  attention_config c) {
  auto row0 = tl::program_id(0) * c.bm, base = tl::program_id(1) * seq * c.d;
  auto m = row0 + tl::arange(0, c.bm), n = tl::arange(0, c.bn), d = tl::arange(0, c.d);
  auto q_at = base + m[all, newaxis] * c.d + d[newaxis, all];
  auto q = tl::load(Q + q_at, m[all, newaxis] < seq);
  tl::var hi = tl::full<float>({c.bm}, -tl::inf);
  tl::var den = tl::zeros<float>({c.bm});
  tl::var acc = tl::zeros<float>({c.bm, c.d});
  auto end = c.causal ? tl::minimum(row0 + c.bm, seq) : seq;
  for (auto j : tl::range(0, end, c.bn, {.stages = c.stages})) {
    auto col = j + n;
    auto at = base + col[all, newaxis] * c.d + d[newaxis, all];
    auto k = tl::load(K + at, col[all, newaxis] < seq);
    auto inside = col[newaxis, all] < seq;
    auto keep = c.causal ? inside && m[all, newaxis] >= col[newaxis, all] : inside;
    auto s = tl::where(keep, tl::dot(q, tl::trans(k), tl::zeros<float>({c.bm, c.bn})) * scale, -tl::inf);
    auto top = tl::maximum(hi, tl::max(s, 1));
    auto p = tl::exp2(s - top[all, newaxis]);
    auto fix = tl::exp2(hi - top);
    acc = tl::dot(p.template to<T>(), tl::load(V + at, col[all, newaxis] < seq), acc * fix[all, newaxis]);
    den = den * fix + tl::sum(p, 1);
    hi = top;
  }
  tl::store(O + q_at, (acc / den[all, newaxis]).template to<T>(), m[all, newaxis] < seq);
});

template <class T> void check_attention(int seq, const attention_config &c, int warps) {
  const int d = c.d, heads = 2;
  const matrix<T> q(heads * seq, d, 1), k(heads * seq, d, 2), v(heads * seq, d, 3);
  input<T> iq(q.host), ik(k.host), iv(v.host);
  output<T> o(heads * seq * d);
  const double scale = 1 / std::sqrt(d);
  launch(attention<T>.with(c, {.num_warps = warps}), {tl::cdiv(seq, c.bm), heads}, *iq, *ik, *iv, *o, seq,
         static_cast<float>(scale * 1.4426950408889634));
  std::vector<double> want;
  for (int h = 0; h < heads; ++h)
    for (int i = 0; i < seq; ++i) {
      const int end = c.causal ? i + 1 : seq;
      std::vector<double> p(end), row(d);
      double sum = 0;
      for (int j = 0; j < end; ++j) {
        double s = 0;
        for (int e = 0; e < d; ++e)
          s += q(h * seq + i, e) * k(h * seq + j, e);
        sum += p[j] = std::exp(s * scale);
      }
      for (int j = 0; j < end; ++j)
        for (int e = 0; e < d; ++e)
          row[e] += p[j] / sum * v(h * seq + j, e);
      want.insert(want.end(), row.begin(), row.end());
    }
  check_close<T>("attention of " + std::to_string(seq) + (c.causal ? " causal" : "") + ", stages " +
                     std::to_string(c.stages) + ", warps " + std::to_string(warps),
                 o.read(), want, 4, 1);
}

} // namespace

TEST_SUITE_BEGIN("dot_forms");

TEST_CASE("tiles down to one row, column and product, and an accumulator") {
  small_tiles<f16>(1);
  small_tiles<bf16>(2);
  small_tiles<float>(3);
  small_tiles<float>(4, tl::precision::tf32);
  small_tiles<double>(5);
  small_tiles<f8e4m3>(6);
  small_tiles<f8e5m2>(7);
  small_tiles<i8>(8);
  small_tiles<f8e4m3fnuz>(9);
  small_tiles<f8e5m2fnuz>(10);
}

TEST_CASE("large tiles") {
  if (!roomy())
    return;
  tile_test<f16>::run(256, 64, 64, 8);
  tile_test<f16>::run(64, 256, 32, 4);
  tile_test<f16>::run(256, 256, 32, 16);
  tile_test<f8e4m3>::run(128, 128, 128, 4);
  tile_test<i8>::run(128, 64, 128, 8);
  tile_test<float>::run(128, 128, 32, 8, tl::precision::tf32);
}

TEST_CASE("batches") {
  check_batched<f16>(4, 32, 16, 64, 4);
  check_batched<f16>(2, 64, 64, 32, 8);
  check_batched<bf16>(8, 16, 32, 16, 1);
  check_batched<float>(2, 16, 16, 16, 2);
  check_batched<double>(2, 8, 16, 4, 4);
  check_batched<f8e5m2>(2, 32, 32, 32, 4);
  check_batched<f8e4m3fnuz>(2, 32, 32, 32, 4);
  check_batched<i8>(4, 16, 16, 64, 4);
  check_batched<f16>(1, 16, 16, 16, 4);
  check_batched<f16>(16, 1, 2, 8, 4);
}

TEST_CASE("a row padded to 16 leaves no trace in the other columns") {
  check_padded<f16>();
  check_padded<bf16>();
}

/// The smallest number of T times the largest, 32 of them added up: exact.
template <class T> void check_smallest(float smallest, float largest) {
  const auto kernel = tl::kernel("smallest", [](tl::ptr<const T> a, tl::ptr<const T> b, tl::ptr<float> c) {
    tl::store(c + at(32, 32), tl::dot(tl::load(a + at(32, 32)), tl::load(b + at(32, 32))));
  });
  REQUIRE(T(smallest).bits == 1);
  REQUIRE(float(T(largest)) == largest);
  input<T> a(std::vector<T>(1024, T(smallest))), b(std::vector<T>(1024, T(largest)));
  output<float> c(1024);
  launch(kernel, 1, *a, *b, *c);
  check_equal<float>("smallest " + type_name<T>(), c.read(), std::vector<float>(1024, 32 * smallest * largest));
}

TEST_CASE("denormals of 8-bit floats count") {
  check_smallest<f8e4m3>(0x1p-9f, 448);
  check_smallest<f8e5m2>(0x1p-16f, 57344);
  check_smallest<f8e4m3fnuz>(0x1p-10f, 240);
  check_smallest<f8e5m2fnuz>(0x1p-17f, 57344);
}

TEST_CASE("operands that are results") {
  const auto kernel =
      tl::kernel("chain", [](tl::ptr<const f16> a, tl::ptr<const f16> b, tl::ptr<const f16> c, tl::ptr<float> left,
                             tl::ptr<float> right, tl::ptr<float> turned, tl::ptr<float> sums) {
        auto x = tl::load(a + at(64, 32)), y = tl::load(b + at(32, 64)), z = tl::load(c + at(64, 64));
        auto xy = tl::dot(x, y);
        tl::store(left + at(64, 64), tl::dot(xy.to<f16>(), z));              // first operand
        tl::store(right + at(64, 64), tl::dot(z, xy.to<f16>()));             // second operand
        tl::store(turned + at(64, 64), tl::dot(tl::trans(xy).to<f16>(), z)); // transposed
        tl::store(sums + tl::arange(0, 64), tl::sum(xy, 1));
      });
  const matrix<f16> a(64, 32, 1), b(32, 64, 2), c(64, 64, 3);
  const reference xy(a, b);
  matrix<f16> first(64, 64, 4), turned(64, 64, 4);
  std::vector<double> sums(64);
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 64; ++j) {
      first.host[i * 64 + j] = turned.host[j * 64 + i] = make<f16>(xy.value[i * 64 + j]);
      sums[i] += xy.value[i * 64 + j];
    }
  input<f16> x(a.host), y(b.host), z(c.host);
  for (int warps : {1, 4, 8}) {
    INFO(warps, " warps");
    output<float> left(64 * 64), right(64 * 64), t(64 * 64), s(64);
    launch(kernel.with_options({.num_warps = warps}), 1, *x, *y, *z, *left, *right, *t, *s);
    // The intermediate result may be rounded the other way where f32 sums differ from float64 ones.
    check_product("result as first operand", left.read(), strides(64, 64), reference(first, c), 0x1p-14);
    check_product("result as second operand", right.read(), strides(64, 64), reference(c, first), 0x1p-14);
    check_product("result transposed", t.read(), strides(64, 64), reference(turned, c), 0x1p-14);
    check_close<float>("sums of a result", s.read(), sums, 64, 8);
  }
}

TEST_CASE("f64: whole numbers are exact to 53 bits, through chains too") {
  const auto kernel = tl::kernel("chain64", [](tl::ptr<const double> a, tl::ptr<const double> b, tl::ptr<double> once,
                                               tl::ptr<double> left, tl::ptr<double> right, config s) {
    auto x = tl::load(a + at(s.m, s.k)), y = tl::load(b + at(s.k, s.m));
    auto xy = tl::dot(x, y);
    tl::store(once + at(s.m, s.m), xy);
    tl::store(left + at(s.m, s.k), tl::dot(xy, x));
    tl::store(right + at(s.k, s.m), tl::dot(y, tl::trans(xy)));
  });
  for (auto [m, k] : {std::pair(64, 16), {32, 64}, {16, 4}, {8, 8}, {4, 32}}) {
    std::vector<double> a(m * k), b(k * m), once(m * m), left(m * k), right(k * m);
    for (int i = 0; i < m * k; ++i) // sums of products of three have up to 46 bits
      a[i] = (i * 7919) % 8191 - 4095, b[i] = (i * 104729) % 8191 - 4095;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < m; ++j)
        for (int l = 0; l < k; ++l)
          once[i * m + j] += a[i * k + l] * b[l * m + j];
    for (int i = 0; i < m; ++i)
      for (int l = 0; l < k; ++l)
        for (int j = 0; j < m; ++j) {
          left[i * k + l] += once[i * m + j] * a[j * k + l];
          right[l * m + i] += b[l * m + j] * once[i * m + j];
        }
    input<double> x(a), y(b);
    for (int warps : {1, 2, 4}) {
      const std::string what = std::to_string(m) + " x " + std::to_string(k) + ", warps " + std::to_string(warps);
      output<double> o(m * m), l(m * k), r(k * m);
      launch(kernel.with({.m = m, .k = k}, {.num_warps = warps}), 1, *x, *y, *o, *l, *r);
      check_equal<double>("product " + what, o.read(), once);
      check_equal<double>("result as first operand " + what, l.read(), left);
      check_equal<double>("result transposed as second operand " + what, r.read(), right);
    }
  }
}

TEST_CASE("transposed tiles, and elements changed on their way into the product") {
  const auto kernel = tl::kernel("on_the_way", [](tl::ptr<const f16> a, tl::ptr<const f16> b, tl::ptr<const i8> q,
                                                  tl::ptr<float> c, tl::ptr<float> d, tl::ptr<float> e) {
    auto x = tl::load(a + at(32, 64)), y = tl::load(b + at(64, 32));
    tl::store(c + at(64, 64), tl::dot(tl::trans(x), tl::trans(y)));
    tl::store(d + at(32, 32), tl::dot(x * 0.5f, y + 1.0f));
    tl::store(e + at(32, 32), tl::dot(x, tl::load(q + at(64, 32)).to<f16>()));
  });
  const matrix<f16> a(32, 64, 1), b(64, 32, 2);
  const matrix<i8> q(64, 32, 3);
  matrix<f16> at_(64, 32, 1), bt(32, 64, 1), half = a, more = b, from_q(64, 32, 1);
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 64; ++j) {
      at_.host[j * 32 + i] = a.host[i * 64 + j], bt.host[i * 64 + j] = b.host[j * 32 + i];
      half.host[i * 64 + j] = make<f16>(to_double(a.host[i * 64 + j]) / 2);
      more.host[j * 32 + i] = make<f16>(to_double(b.host[j * 32 + i]) + 1);
      from_q.host[j * 32 + i] = make<f16>(to_double(q.host[j * 32 + i]));
    }
  input<f16> x(a.host), y(b.host);
  input<i8> w(q.host);
  for (int warps : {1, 4}) {
    output<float> c(64 * 64), d(32 * 32), e(32 * 32);
    launch(kernel.with_options({.num_warps = warps}), 1, *x, *y, *w, *c, *d, *e);
    check_product("both transposed", c.read(), strides(64, 64), reference(at_, bt), 0x1p-23);
    check_product("scaled", d.read(), strides(32, 32), reference(half, more), 0x1p-23);
    check_product("from i8", e.read(), strides(32, 32), reference(a, from_q), 0x1p-23);
  }
}

TEST_CASE("one loop, two products, and a product under a condition") {
  const auto kernel = tl::kernel("two", [](tl::ptr<const f16> a, tl::ptr<const f16> b, tl::ptr<float> c,
                                           tl::ptr<float> d, tl::val<i32> K, tl::val<i32> flag) {
    tl::var sum = tl::zeros<float>({32, 32}), scaled = tl::zeros<float>({32, 32});
    for (auto k : tl::range(0, K, 32, {.stages = 3})) {
      auto x = tl::load(a + k + tl::arange(0, 32)[all, newaxis] * K + tl::arange(0, 32)[newaxis, all]);
      auto y = tl::load(b + k * 32 + at(32, 32));
      sum = tl::dot(x, y, sum);
      scaled = tl::dot(y, x, scaled * 0.5f);
      tl::if_(flag != 0, [&] { sum = tl::dot(x, y, sum); });
    }
    tl::store(c + at(32, 32), sum);
    tl::store(d + at(32, 32), scaled);
  });
  const int K = 128;
  const matrix<f16> a(32, K, 1), b(K, 32, 2);
  input<f16> x(a.host), y(b.host);
  const reference once(a, b);
  reference halves = once;
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 32; ++j) {
      double v = 0;
      for (int k = 0; k < K; k += 32) {
        v *= 0.5;
        for (int l = 0; l < 32; ++l)
          v += b(k + i, l) * a(l, k + j);
      }
      halves.value[i * 32 + j] = v;
    }
  for (int flag : {0, 1}) {
    output<float> c(32 * 32), d(32 * 32);
    launch(kernel, 1, *x, *y, *c, *d, K, flag);
    reference want = once;
    for (double &v : want.value)
      v *= 1 + flag;
    check_product("sum", c.read(), strides(32, 32), want, 0x1p-22);
    check_product("scaled", d.read(), strides(32, 32), halves, 0x1p-20);
  }
}

TEST_CASE("attention: chained products in a pipelined loop") {
  for (int stages : {1, 2, 3}) {
    check_attention<f16>(100, {.stages = stages, .causal = true}, 4);
    check_attention<f16>(128, {.bn = 64, .stages = stages, .causal = false}, stages == 2 ? 8 : 4);
  }
  if (!roomy())
    return;
  check_attention<bf16>(65, {.bm = 16, .bn = 16, .d = 32, .causal = true}, 1);
  check_attention<f16>(129, {.bm = 128, .bn = 64, .d = 64, .stages = 3, .causal = true}, 8);
}

TEST_SUITE_END();
