// Reductions: every operation, element type, rank, axis and a range of shapes, with ties and NaN.
#include "harness.h"

using namespace e2e;

namespace {

struct cube {
  int a = 1, b = 1, c = 1; ///< extents; ranks below 3 use the last ones
  [[nodiscard]] int size() const { return a * b * c; }
};

/// Offsets of a row-major tile of the shape.
auto offsets(cube s) {
  using tl::all, tl::newaxis;
  auto i = tl::arange(0, s.a), j = tl::arange(0, s.b), k = tl::arange(0, s.c);
  return i[all, newaxis, newaxis] * (s.b * s.c) + j[newaxis, all, newaxis] * s.c + k[newaxis, newaxis, all];
}

/// Where element (i, j, k) goes when `axis` is reduced away, and its position along it.
struct place {
  int group, position;
};
place place_of(cube s, int axis, int index) {
  const int i = index / (s.b * s.c), j = index / s.c % s.b, k = index % s.c;
  return axis == 0 ? place{j * s.c + k, i} : axis == 1 ? place{i * s.c + k, j} : place{i * s.b + j, k};
}
int groups(cube s, int axis) { return s.size() / (axis == 0 ? s.a : axis == 1 ? s.b : s.c); }

struct reduce_config {
  cube shape;
  int axis = 0;
};

/// Flat offsets of the result of reducing `axis`.
auto result_offsets(cube s, int axis) {
  using tl::all, tl::newaxis;
  const int rows = axis == 0 ? s.b : s.a, cols = axis == 2 ? s.b : s.c;
  return tl::arange(0, rows)[all, newaxis] * cols + tl::arange(0, cols)[newaxis, all];
}

/// sum, max, min, argmax, argmin of one tile; integers also xor_sum. Results follow one another in y and at.
template <class T> void test_shape(cube s, int axis, int num_warps) {
  const auto kernel = tl::kernel("reduce", [](tl::ptr<const T> x, tl::ptr<T> y, tl::ptr<i32> index, reduce_config c) {
    auto v = tl::load(x + offsets(c.shape));
    const int n = groups(c.shape, c.axis);
    auto to = result_offsets(c.shape, c.axis);
    tl::store(y + to, tl::max(v, c.axis));
    tl::store(y + n + to, tl::min(v, c.axis));
    tl::store(y + 2 * n + to, tl::sum(v, c.axis).template to<T>());
    if constexpr (!is_float<T>)
      tl::store(y + 3 * n + to, tl::xor_sum(v, c.axis));
    tl::store(index + to, tl::argmax(v, c.axis));
    tl::store(index + n + to, tl::argmin(v, c.axis));
  });
  const int n = groups(s, axis);
  auto x = is_float<T> ? random<T>(s.size(), -2, 2)
                       : random<T>(s.size(), std::is_signed_v<T> ? -9 : 0, 9); // integers: many ties
  input<T> in(x);
  output<T> out(4 * n);
  output<i32> at(2 * n);
  launch(kernel.with({s, axis}, {.num_warps = num_warps}), 1, *in, *out, *at);

  std::vector<T> hi(n), lo(n), parity(n);
  std::vector<double> sum(n, 0), size(n, 0);
  std::vector<i32> argmax(n), argmin(n);
  for (int e = 0; e < s.size(); ++e) {
    const auto [g, p] = place_of(s, axis, e);
    if (p == 0)
      hi[g] = lo[g] = x[e], argmax[g] = argmin[g] = 0;
    if (to_double(x[e]) > to_double(hi[g]))
      hi[g] = x[e], argmax[g] = p;
    if (to_double(x[e]) < to_double(lo[g]))
      lo[g] = x[e], argmin[g] = p;
    sum[g] += to_double(x[e]), size[g] += std::fabs(to_double(x[e]));
    if constexpr (!is_float<T>)
      parity[g] = static_cast<T>(parity[g] ^ x[e]);
  }
  const auto y = out.read();
  const auto where = "(" + std::to_string(s.a) + "," + std::to_string(s.b) + "," + std::to_string(s.c) + ") axis " +
                     std::to_string(axis) + ", num_warps " + std::to_string(num_warps) + ": ";
  check_equal<T>(where + "max", part(y, 0, n), hi);
  check_equal<T>(where + "min", part(y, n, n), lo);
  if constexpr (is_float<T>) {
    check_close<T>(where + "sum", part(y, 2 * n, n), sum, is_small_float<T> ? 1.5 : 8,
                   *std::max_element(size.begin(), size.end()));
  } else {
    std::vector<T> exact(n);
    for (int g = 0; g < n; ++g)
      exact[g] = static_cast<T>(static_cast<i64>(sum[g]));
    check_equal<T>(where + "sum", part(y, 2 * n, n), exact);
    check_equal<T>(where + "xor_sum", part(y, 3 * n, n), parity);
  }
  auto indices = argmax;
  indices.insert(indices.end(), argmin.begin(), argmin.end());
  check_equal<i32>(where + "argmax, argmin", at.read(), indices);
}

struct length_config {
  int n = 128;
};

} // namespace

TEST_SUITE_BEGIN("reduce");

TEST_CASE("every axis of tiles of many shapes, f32") {
  for (cube s : {cube{1, 1, 1},
                 {1, 1, 16},
                 {1, 16, 1},
                 {16, 1, 1},
                 {1, 2, 64},
                 {2, 8, 4},
                 {1, 32, 32},
                 {4, 4, 64},
                 {1, 128, 8},
                 {1, 4, 512},
                 {64, 2, 2}})
    for (int axis : {0, 1, 2})
      test_shape<float>(s, axis, 4);
}

TEST_CASE("every number of warps") {
  for (int warps : {0, 1, 2, 8})
    for (int axis : {1, 2})
      test_shape<float>({1, 16, 128}, axis, warps);
}

TEST_CASE("rows in many warps, which share the columns' results") {
  for (cube s : {cube{1, 32, 512}, {1, 32, 256}, {2, 16, 64}}) { // 16 partials a column must fit into 64 KB
    test_shape<float>(s, 1, 16);
    test_shape<i64>(s, 1, 16);
    test_shape<u8>(s, 1, 16);
  }
  test_shape<f16>({1, 32, 1024}, 2, 0);
}

TEST_CASE("every element type") {
  for (int axis : {1, 2}) {
    const cube s{1, 8, 64};
    test_shape<double>(s, axis, 4);
    test_shape<f16>(s, axis, 4);
    test_shape<bf16>(s, axis, 4);
    test_shape<i8>(s, axis, 4);
    test_shape<i16>(s, axis, 4);
    test_shape<i32>(s, axis, 4);
    test_shape<i64>(s, axis, 4);
    test_shape<u8>(s, axis, 4);
    test_shape<u16>(s, axis, 4);
    test_shape<u32>(s, axis, 4);
    test_shape<u64>(s, axis, 4);
  }
}

TEST_CASE("vectors of every length, down to one element") {
  const auto kernel = tl::kernel("reduce_vector", [](tl::ptr<const float> x, tl::ptr<float> y, length_config c) {
    auto v = tl::load(x + tl::arange(0, c.n));
    tl::store(y, tl::sum(v, 0));
    tl::store(y + 1, tl::max(v, 0));
    tl::store(y + 2, tl::min(v, 0));
  });
  for (int n : {1, 2, 4, 16, 64, 256, 1024, 8192}) {
    const auto x = random<float>(n, -1, 1);
    input<float> in(x);
    output<float> out(3);
    launch(kernel.with({.n = n}), 1, *in, *out);
    double sum = 0;
    for (float v : x)
      sum += v;
    const auto y = out.read();
    check_close<float>("sum of " + std::to_string(n), part(y, 0, 1), {sum}, 4, std::sqrt(n));
    check_equal<float>("max, min of " + std::to_string(n), part(y, 1, 2),
                       {*std::max_element(x.begin(), x.end()), *std::min_element(x.begin(), x.end())});
  }
}

TEST_CASE("NaN is ignored, a tile of nothing else gives NaN; ties take the lowest index") {
  const auto kernel = tl::kernel("nan", [](tl::ptr<const float> x, tl::ptr<float> y, tl::ptr<i32> i) {
    auto v = tl::load(x + tl::arange(0, 64));
    tl::store(y, tl::max(v, 0));
    tl::store(y + 1, tl::min(v, 0));
    tl::store(i, tl::argmax(v, 0));
    tl::store(i + 1, tl::argmin(v, 0));
  });
  auto run = [&](const std::vector<float> &x, std::vector<float> values, std::vector<i32> indices,
                 bool check_indices = true) {
    input<float> in(x);
    output<float> y(2);
    output<i32> i(2);
    launch(kernel, 1, *in, *y, *i);
    check_equal<float>("values", y.read(), values);
    if (check_indices)
      check_equal<i32>("indices", i.read(), indices);
  };
  const float nan = std::nanf(""), inf = HUGE_VALF;
  std::vector<float> x(64, 1);
  run(x, {1, 1}, {0, 0});
  x[5] = x[40] = 2, x[7] = x[41] = -2;
  run(x, {2, -2}, {5, 7});
  x[0] = nan, x[63] = nan;
  run(x, {2, -2}, {5, 7});
  x[20] = x[21] = inf, x[50] = -inf;
  run(x, {inf, -inf}, {20, 50});
  run(std::vector<float>(64, nan), {nan, nan}, {}, false);
}

TEST_CASE("argmax sixteen times over, with tied infinities") {
  const auto kernel = tl::kernel("top_k", [](tl::ptr<const float> x, tl::ptr<i32> y) {
    auto at = tl::arange(0, 128);
    tl::var v = tl::load(x + at);
    for (auto k : tl::range(0, 16)) {
      auto i = tl::argmax(v, 0);
      tl::store(y + k, i);
      v = tl::where(at == i, -tl::inf, v);
    }
  });
  std::vector<float> x(128);
  for (int i = 0; i < 128; ++i)
    x[i] = 1 + static_cast<float>(37 * i % 97) / 128;
  x[0] = x[1] = x[26] = x[27] = HUGE_VALF;
  input<float> in(x);
  for (int warps : {1, 2, 4, 8}) {
    output<i32> out(16);
    launch(kernel.with_options({.num_warps = warps}), 1, *in, *out);
    check_equal<i32>("top 16", out.read(), {0, 1, 26, 27, 76, 55, 34, 13, 110, 89, 68, 47, 123, 5, 102, 81});
  }
}

TEST_CASE("index reductions of many elements a lane: ties, NaNs, and combinations of one's own") {
  using tl::all, tl::newaxis;
  constexpr int rows = 128, cols = 64; // so many rows that one warp exchanges them in a function
  // 0: the lowest index wins ties; 1: the highest; 2: the lowest of indices that begin at 5; 3: the sum of the indices
  // of the winners so far, which a combination may give, too.
  const auto kernel = tl::kernel("many", [](tl::ptr<const float> x, tl::ptr<i32> y) {
    auto r = tl::arange(0, rows), c = tl::arange(0, cols);
    auto v = tl::load(x + r[all, newaxis] * cols + c[newaxis, all]);
    tl::store(y + c, tl::argmax(v, 0));
    tl::store(y + cols + c, tl::argmin(v, 0));
    tl::store(y + 2 * cols + r, tl::argmax(v, 1));
    tl::store(y + 2 * cols + rows + r, tl::argmin(v, 1));
    auto in_row = tl::broadcast_to(c[newaxis, all], {rows, cols});
    auto clean = tl::where(v == v, v, 0.0f);
    auto best = [&](auto index, auto &&first_wins) {
      return std::get<1>(tl::reduce(std::tuple(clean, index), 1, [&](auto a, auto b) {
        auto &[va, ia] = a;
        auto &[vb, ib] = b;
        auto left = va > vb || (va == vb && first_wins(ia, ib));
        return std::tuple(tl::where(left, va, vb), tl::where(left, ia, ib));
      }));
    };
    const int at = 2 * (cols + rows);
    tl::store(y + at + r, best(in_row, [](auto a, auto b) { return b > a; }));
    tl::store(y + at + rows + r, best(in_row, [](auto a, auto b) { return a > b; }));
    tl::store(y + at + 2 * rows + r, best(in_row + 5, [](auto a, auto b) { return a < b; }));
    auto sums = std::get<1>(tl::reduce(std::tuple(clean, in_row), 1, [&](auto a, auto b) {
      auto &[va, ia] = a;
      auto &[vb, ib] = b;
      return std::tuple(tl::maximum(va, vb), tl::where(va == vb, ia + ib, tl::where(va > vb, ia, ib)));
    }));
    tl::store(y + at + 3 * rows + r, sums);
  });
  std::vector<float> x(rows * cols);
  for (int i = 0; i < rows * cols; ++i)
    x[i] = i * 7919 % 13 == 0 ? std::nanf("") : static_cast<float>(i * 31 % 17 - 8);
  for (int c = 0; c < cols; ++c)
    x[3 * cols + c] = std::nanf(""); // a row of nothing else
  std::vector<i32> want;
  auto index_of = [&](int group, int axis, bool maximum) {
    int found = 0;
    const int n = axis == 0 ? rows : cols;
    auto value = [&](int i) { return axis == 0 ? x[i * cols + group] : x[group * cols + i]; };
    for (int i = 1; i < n; ++i)
      if (std::isnan(value(found)) ? !std::isnan(value(i))
          : maximum                ? value(i) > value(found)
                                   : value(i) < value(found))
        found = i;
    return found;
  };
  for (int axis : {0, 1})
    for (bool maximum : {true, false})
      for (int g = 0; g < (axis == 0 ? cols : rows); ++g)
        want.push_back(index_of(g, axis, maximum));
  std::vector<i32> last, sums;
  for (int r = 0; r < rows; ++r) {
    auto value = [&](int c) { return std::isnan(x[r * cols + c]) ? 0.0f : x[r * cols + c]; };
    int low = 0, high = 0, sum = 0;
    for (int c = 1; c < cols; ++c) {
      low = value(c) > value(low) ? c : low;
      high = value(c) >= value(high) ? c : high;
    }
    for (int c = 0; c < cols; ++c)
      sum += value(c) == value(low) ? c : 0;
    want.push_back(low);
    last.push_back(high);
    sums.push_back(sum);
  }
  want.insert(want.end(), last.begin(), last.end());
  for (int r = 0; r < rows; ++r)
    want.push_back(want[2 * (cols + rows) + r] + 5);
  want.insert(want.end(), sums.begin(), sums.end());
  input<float> in(x);
  for (int warps : {1, 4}) {
    output<i32> out(want.size());
    launch(kernel.with_options({.num_warps = warps}), 1, *in, *out);
    check_equal<i32>("indices, " + std::to_string(warps) + " warps", out.read(), want);
  }
}

TEST_CASE("max over the inner window of a gathered tile") {
  using tl::all, tl::newaxis;
  const auto kernel = tl::kernel("pool", [](tl::ptr<const i32> x, tl::ptr<i32> y) {
    auto j = tl::arange(0, 8), w = tl::arange(0, 4);
    auto window = tl::load(x + (w / 2)[newaxis, all] * 16 + 2 * j[all, newaxis] + (w % 2)[newaxis, all]);
    tl::store(y + j, tl::max(window, 1));
    auto two_rows = tl::load(x + tl::arange(0, 2)[all, newaxis] * 16 + tl::arange(0, 16)[newaxis, all]);
    tl::store(y + 8 + j, tl::max(tl::max(tl::reshape(two_rows, {2, 8, 2}), 2), 0));
    auto turned = tl::load(x + (w / 2)[all, newaxis] * 16 + 2 * j[newaxis, all] + (w % 2)[all, newaxis]);
    tl::store(y + 16 + j, tl::max(turned, 0));
  });
  auto x = iota<i32>(16, 1), second = iota<i32>(16, 16);
  second[0] = 15;
  x.insert(x.end(), second.begin(), second.end());
  input<i32> in(x);
  std::vector<i32> want;
  for (int variant = 0; variant < 3; ++variant)
    for (int v = 17; v <= 31; v += 2)
      want.push_back(v);
  for (int warps : {1, 2, 4, 8}) {
    output<i32> out(24);
    launch(kernel.with_options({.num_warps = warps}), 1, *in, *out);
    check_equal<i32>("2 x 2 pooling", out.read(), want);
  }
}

TEST_CASE("small integers are summed in at least 32 bits, 64-bit ones in 64") {
  const auto wide = tl::kernel("sum64", [](tl::ptr<const i64> x, tl::ptr<i64> y) {
    auto p = tl::program_id(0);
    tl::store(y + p, tl::sum(tl::load(x + p * 256 + tl::arange(0, 256)), 0));
  });
  input<i64> in(iota<i64>(8192));
  output<i64> out(32);
  launch(wide, 32, *in, *out);
  std::vector<i64> want(32);
  for (int p = 0; p < 32; ++p)
    want[p] = 65536 * p + 32640;
  check_equal<i64>("i64", out.read(), want);

  const auto narrow = tl::kernel("sum8", [](tl::ptr<const i8> s, tl::ptr<const u8> u, tl::ptr<i32> y) {
    auto at = tl::arange(0, 256);
    tl::store(y, tl::sum(tl::load(s + at), 0));
    tl::store(y + 1, tl::sum(tl::load(u + at), 0).to<i32>());
    tl::store(y + 2, tl::sum((tl::load(s + at) == 127).to<i32>(), 0));
  });
  input<i8> s(std::vector<i8>(256, 127));
  input<u8> u(std::vector<u8>(256, 255));
  output<i32> sums(3);
  launch(narrow, 1, *s, *u, *sums);
  check_equal<i32>("i8, u8, bool", sums.read(), {32512, 65280, 256});
}

TEST_CASE("a combination of one's own; extents kept") {
  using tl::all, tl::newaxis;
  const auto kernel = tl::kernel("custom", [](tl::ptr<const float> x, tl::ptr<float> y) {
    auto at = tl::arange(0, 16)[all, newaxis] * 8 + tl::arange(0, 8)[newaxis, all];
    auto v = tl::load(x + at);
    auto product = tl::reduce(v, 1, [](auto a, auto b) { return a * b; });
    tl::store(y + tl::arange(0, 16), product);
    tl::store(y + 16 + at, v - tl::max(v, 1, {.keep_dims = true}));
    tl::store(y + 144 + at, v - tl::sum(v, 0, {.keep_dims = true}));
  });
  const auto x = random<float>(128, 0.5, 1.5);
  input<float> in(x);
  output<float> out(272);
  launch(kernel, 1, *in, *out);
  const auto y = out.read();
  std::vector<double> product(16, 1), minus_max(128), minus_sum(128);
  for (int r = 0; r < 16; ++r)
    for (int c = 0; c < 8; ++c) {
      product[r] *= x[r * 8 + c];
      minus_max[r * 8 + c] = x[r * 8 + c] - *std::max_element(x.begin() + r * 8, x.begin() + r * 8 + 8);
      double sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += x[k * 8 + c];
      minus_sum[r * 8 + c] = x[r * 8 + c] - sum;
    }
  check_close<float>("product", part(y, 0, 16), product, 8);
  check_close<float>("less the row's maximum", part(y, 16, 128), minus_max, 1, 1);
  check_close<float>("less the column's sum", part(y, 144, 128), minus_sum, 4, 16);
}

TEST_CASE("two tiles reduced together; all axes at once; value and index agree") {
  using tl::all, tl::newaxis;
  const auto kernel = tl::kernel("pairs", [](tl::ptr<const float> x, tl::ptr<float> y, tl::ptr<i32> at) {
    auto grid = tl::arange(0, 16)[all, newaxis] * 32 + tl::arange(0, 32)[newaxis, all];
    auto v = tl::load(x + grid);
    // The largest magnitude and where it stands.
    auto [top, where] =
        tl::reduce(std::tuple{v, tl::broadcast_to(tl::arange(0, 32)[newaxis, all], {16, 32})}, 1, [](auto a, auto b) {
          auto [va, ia] = a;
          auto [vb, ib] = b;
          auto first = tl::abs(va) > tl::abs(vb) || (tl::abs(va) == tl::abs(vb) && ia < ib);
          return std::tuple{tl::where(first, va, vb), tl::where(first, ia, ib)};
        });
    tl::store(y + tl::arange(0, 16), top);
    tl::store(at + tl::arange(0, 16), where);
    auto [low, index] = tl::min_with_index(v, 0);
    tl::store(y + 16 + tl::arange(0, 32), low);
    tl::store(at + 16 + tl::arange(0, 32), index);
    tl::store(y + 48, tl::sum(v));
    tl::store(y + 49, tl::max(v));
    tl::store(y + 50 + grid, tl::softmax(v, 1));
  });
  const auto x = random<float>(512, -4, 4);
  input<float> in(x);
  output<float> out(562);
  output<i32> at(48);
  launch(kernel, 1, *in, *out, *at);
  const auto y = out.read();
  std::vector<float> values(48);
  std::vector<i32> indices(48);
  std::vector<double> soft(512);
  double total = 0;
  for (int r = 0; r < 16; ++r) {
    double sum = 0;
    for (int c = 0; c < 32; ++c) {
      const float v = x[r * 32 + c];
      if (c == 0 || std::fabs(v) > std::fabs(values[r]))
        values[r] = v, indices[r] = c;
      if (r == 0 || v < values[16 + c])
        values[16 + c] = v, indices[16 + c] = r;
      total += v, sum += std::exp(double(v));
    }
    for (int c = 0; c < 32; ++c)
      soft[r * 32 + c] = std::exp(double(x[r * 32 + c])) / sum;
  }
  check_equal<float>("values", part(y, 0, 48), values);
  check_equal<i32>("indices", at.read(), indices);
  check_close<float>("sum of all", part(y, 48, 1), {total}, 8, 100);
  CHECK(y[49] == *std::max_element(x.begin(), x.end()));
  check_close<float>("softmax", part(y, 50, 512), soft, 64);
}

TEST_CASE("NaN passes through a maximum when asked to") {
  const auto kernel = tl::kernel("nan_all", [](tl::ptr<const float> x, tl::ptr<float> y) {
    auto v = tl::load(x + tl::arange(0, 64));
    tl::store(y, tl::max(v, 0, {}, tl::propagate_nan::all));
    tl::store(y + 1, tl::min(v, 0, {}, tl::propagate_nan::all));
  });
  auto x = random<float>(64, -1, 1);
  x[37] = std::nanf("");
  input<float> in(x);
  output<float> out(2);
  launch(kernel, 1, *in, *out);
  check_equal<float>("max, min", out.read(), {x[37], x[37]});
}

TEST_CASE("two runs are bit-identical") {
  const auto kernel = tl::kernel("sum_once_more", [](tl::ptr<const float> x, tl::ptr<float> y) {
    tl::store(y + tl::program_id(0), tl::sum(tl::load(x + tl::arange(0, 4096)), 0));
  });
  input<float> in(random<float>(4096, -1, 1));
  output<float> out(64);
  launch(kernel, 64, *in, *out);
  const auto y = out.read();
  check_equal<float>("64 programs", y, std::vector<float>(64, y[0]));
  output<float> again(64);
  launch(kernel, 64, *in, *again);
  check_equal<float>("second launch", again.read(), y);
}

TEST_SUITE_END();
