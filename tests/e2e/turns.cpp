// Tiles so wide that each warp does the work of several in turn: everything that ends a part of a kernel, and every kind of
// value that must outlive one.
#include "harness.h"

using namespace e2e;

namespace {

using tl::all, tl::newaxis;

constexpr int kWide = 32768; ///< 1024 words of each lane of one warp of 32

/// `warps` on GPUs and emulated ones; the CPU chooses by itself.
tessera::compile_options with_warps(int warps) { return {.num_warps = warps}; }

/// Whether the kernel's warps take turns on the device under test, as they must for what these tests are about.
template <class K> void check_turns(const K &kernel) {
  const tessera::target t = dev().target();
  if (t.kind != tessera::target_kind::cpu || t.emulated())
    CHECK(kernel.compile(dev()).stage("ttgir").find("ttg.warp-turns") != std::string_view::npos);
}

const auto softmax = tl::kernel("wide_softmax", [](tl::ptr<const float> x, tl::ptr<float> y, tl::ptr<float> top, tl::val<i32> n) {
  auto at = tl::arange(0, kWide);
  auto v = tl::load(x + at, at < n, {.other = -tl::inf});
  auto most = tl::max(v, 0);
  auto e = tl::exp(v - most);
  tl::store(top, most);
  tl::store(y + at, e / tl::sum(e, 0), at < n);
});

// Carried tiles that change places, a carried sum, branches with and without an else arm, with barriers in them.
const auto steps = tl::kernel("wide_steps", [](tl::ptr<const i32> x, tl::ptr<i32> y, tl::ptr<i32> z, tl::val<i32> trips) {
  auto at = tl::arange(0, kWide);
  tl::var a = tl::load(x + at);
  tl::var b = at * 3;
  tl::var sum = 1;
  for (auto k : tl::range(0, trips)) {
    auto s = tl::sum(a, 0);
    tl::var kept = a;
    a = b + s;
    b = kept ^ k;
    tl::if_(s % 2 == 0, [&] { sum += tl::max(b, 0); });
    tl::if_(s % 3 == 0, [&] { b = b + tl::min(a, 0); }).else_([&] { b = b - 1; });
  }
  tl::while_([&] { return tl::sum(b, 0) % 4 != 0; }, [&] { b = tl::where(at == 5, b + 1, b); });
  tl::store(y + at, a - b);
  tl::store(z, sum);
});

const auto axes = tl::kernel("wide_axes", [](tl::ptr<const float> x, tl::ptr<i32> rows, tl::ptr<i32> cols, tl::ptr<float> sums) {
  auto r = tl::arange(0, 64), c = tl::arange(0, kWide / 64);
  auto v = tl::load(x + r[all, newaxis] * (kWide / 64) + c[newaxis, all]);
  tl::store(rows + r, tl::argmax(v, 1));
  tl::store(cols + c, tl::argmax(v, 0));
  tl::store(sums, tl::sum(v));
});

template <class T>
const auto transposed = tl::kernel("wide_transposed", [](tl::ptr<const T> x, tl::ptr<T> y) {
  auto r = tl::arange(0, 64), c = tl::arange(0, kWide / 64);
  auto v = tl::load(x + r[all, newaxis] * (kWide / 64) + c[newaxis, all]);
  tl::store(y + c[all, newaxis] * 64 + r[newaxis, all], tl::trans(v));
});

const auto in_place = tl::kernel("wide_in_place", [](tl::ptr<i32> x) {
  auto at = tl::arange(0, kWide);
  tl::store(x + at, tl::load(x + at) + 1);
  tl::store(x + (kWide - 1 - at), tl::load(x + at) * 2); // reads all before it writes
  tl::store(x, tl::load(x) + 7);
});

const auto quotients = tl::kernel("wide_quotients", [](tl::ptr<const i64> x, tl::ptr<const i64> y, tl::ptr<i64> z, tl::val<i32> n) {
  auto at = tl::arange(0, kWide);
  auto a = tl::load(x + at, at < n, {.other = 7}), b = tl::load(y + at, at < n, {.other = 3});
  tl::store(z + at, a / b + a % b, at < n);
});

} // namespace

TEST_SUITE_BEGIN("control");

TEST_CASE("tiles wider than a warp's registers: a row's softmax") {
  for (int warps : {1, 2}) {
    const int n = kWide - 77;
    const auto x = random<float>(n, -3, 3);
    double most = -1e9, sum = 0;
    for (float v : x)
      most = std::max(most, double(v));
    std::vector<double> want(n);
    for (int i = 0; i < n; ++i)
      sum += want[i] = std::exp(x[i] - most);
    for (double &v : want)
      v /= sum;
    input<float> in(x);
    output<float> out(n), top(1);
    const auto kernel = softmax.with_options(with_warps(warps));
    check_turns(kernel);
    launch(kernel, 1, *in, *out, *top, n);
    check_close("softmax", out.read(), want, 32, 1e-6);
    check_equal<float>("maximum", top.read(), {float(most)});
  }
}

TEST_CASE("tiles wider than a warp's registers: loops and branches with barriers in them") {
  const int trips = 5;
  const auto x = random<i32>(kWide, -1000, 1000);
  std::vector<i32> a(x), b(kWide), y(kWide);
  for (int i = 0; i < kWide; ++i)
    b[i] = 3 * i;
  const auto total = [](const std::vector<i32> &v) {
    u32 sum = 0;
    for (i32 e : v)
      sum += u32(e);
    return i32(sum);
  };
  i32 sum = 1;
  for (int k = 0; k < trips; ++k) {
    const i32 s = total(a);
    for (int i = 0; i < kWide; ++i) {
      const i32 kept = a[i];
      a[i] = i32(u32(b[i]) + u32(s));
      b[i] = kept ^ k;
    }
    if (s % 2 == 0)
      sum = i32(u32(sum) + u32(*std::max_element(b.begin(), b.end())));
    const i32 least = *std::min_element(a.begin(), a.end());
    for (i32 &v : b)
      v = s % 3 == 0 ? i32(u32(v) + u32(least)) : i32(u32(v) - 1);
  }
  while (total(b) % 4 != 0)
    b[5] = i32(u32(b[5]) + 1);
  for (int i = 0; i < kWide; ++i)
    y[i] = i32(u32(a[i]) - u32(b[i]));
  input<i32> in(x);
  for (int warps : {1, 2}) {
    output<i32> out(kWide), sums(1);
    const auto kernel = steps.with_options(with_warps(warps));
    check_turns(kernel);
    launch(kernel, 1, *in, *out, *sums, trips);
    check_equal("tile", out.read(), y);
    check_equal<i32>("number", sums.read(), {sum});
  }
}

TEST_CASE("tiles wider than a warp's registers: reductions over both axes, transposition") {
  constexpr int rows = 64, cols = kWide / rows;
  auto x = iota<float>(kWide);
  for (int i = 0; i < kWide; ++i)
    x[i] = float(i * 7919 % 509);
  std::vector<i32> of_rows(rows), of_cols(cols);
  double sum = 0;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) {
      of_rows[r] = x[r * cols + c] > x[r * cols + of_rows[r]] ? c : of_rows[r];
      of_cols[c] = x[r * cols + c] > x[of_cols[c] * cols + c] ? r : of_cols[c];
      sum += x[r * cols + c];
    }
  input<float> in(x);
  output<i32> out_rows(rows), out_cols(cols);
  output<float> out_sum(1);
  const auto kernel = axes.with_options(with_warps(1));
  check_turns(kernel);
  launch(kernel, 1, *in, *out_rows, *out_cols, *out_sum);
  check_equal("rows", out_rows.read(), of_rows);
  check_equal("columns", out_cols.read(), of_cols);
  check_equal<float>("sum", out_sum.read(), {float(sum)}); // below 2^24

  const auto turned = [&]<class T>(T) {
    std::vector<T> from(kWide), want(kWide);
    for (int i = 0; i < kWide; ++i)
      want[i % cols * rows + i / cols] = from[i] = T(i * 31);
    input<T> given(from);
    output<T> out(kWide);
    const auto k = transposed<T>.with_options(with_warps(1));
    check_turns(k);
    launch(k, 1, *given, *out);
    check_equal("transposed", out.read(), want);
  };
  turned(i32());
  turned(i64());
}

TEST_CASE("tiles wider than a warp's registers: stores that other warps load, division, counts") {
  const auto x = random<i32>(kWide, -1000, 1000);
  std::vector<i32> want(kWide);
  for (int i = 0; i < kWide; ++i)
    want[i] = 2 * (x[kWide - 1 - i] + 1);
  want[0] += 7;
  output<i32> out(x);
  const auto kernel = in_place.with_options(with_warps(1));
  check_turns(kernel);
  launch(kernel, 1, *out);
  check_equal("in place", out.read(), want);

  const int n = kWide - 5;
  const auto a = random<i64>(n, -1e12, 1e12), b = random<i64>(n, 1, 1e6);
  std::vector<i64> quotient(n);
  for (int i = 0; i < n; ++i)
    quotient[i] = a[i] / b[i] + a[i] % b[i];
  input<i64> left(a), right(b);
  output<i64> result(n);
  const auto divides = quotients.with_options(with_warps(4));
  check_turns(divides);
  launch(divides, 1, *left, *right, *result, n);
  check_equal("quotients", result.read(), quotient);

  // Bytes are counted once for each element, numbers once a program.
  if (dev().target().kind == tessera::target_kind::cpu) {
    output<float> y(n), top(1);
    input<float> in(random<float>(n, -1, 1));
    on().reset_counters();
    softmax.with_options({.num_warps = 1, .count_traffic = true})(on(), 1, *in, *y, *top, n);
    CHECK(on().counters().bytes_loaded == 4u * n);
    CHECK(on().counters().bytes_stored == 4u * n + 4);
  }
}

TEST_SUITE_END();
