// Matrix products of every element type, operand order and edge shape, with every number of warps and stages: a sample
// of them in each run, all with --exhaustive, and more with --random=N.
#include <numeric>

#include "matrix.h"

using namespace e2e;

namespace {

using tl::all, tl::newaxis;

struct config {
  int bm = 64, bn = 64, bk = 32, group = 1, stages = 1;
  bool carried = false;
  int imprecise = 0;
  tl::precision precision = tl::precision::ieee;
  /// Sizes and strides x are passed as 2 x + 1, on which no launch is specialised; along k, n and n they are 1 (m and k
  /// where a or b is transposed).
  bool general = false, trans_a = false, trans_b = false;
};

template <class A, class B, class R>
const auto product = tl::kernel("product", [](tl::ptr<const A> a, tl::ptr<const B> b, tl::ptr<R> c, tl::val<i32> m_in,
                                              tl::val<i32> n_in, tl::val<i32> k_in, tl::val<i32> am_in,
                                              tl::val<i32> ak_in, tl::val<i32> bk_in, tl::val<i32> bn_in,
                                              tl::val<i32> cm_in, tl::val<i32> cn, config s) {
  const auto given = [&](tl::val<i32> x, bool is_one = false) {
    return s.general && !is_one ? tl::val<i32>(x >> 1) : x;
  };
  auto M = given(m_in), N = given(n_in), K = given(k_in);
  auto am = given(am_in, s.trans_a), ak = given(ak_in, !s.trans_a);
  auto bk = given(bk_in, s.trans_b), bn = given(bn_in, !s.trans_b), cm = given(cm_in);
  auto pid = tl::program_id(0);
  auto in_group = tl::cdiv(N, s.bn) * s.group;
  auto first = pid / in_group * s.group;
  auto rows = tl::minimum(tl::cdiv(M, s.bm) - first, s.group);
  auto m = (first + pid % in_group % rows) * s.bm + tl::arange(0, s.bm);
  auto n = pid % in_group / rows * s.bn + tl::arange(0, s.bn);
  tl::var acc = tl::zeros<R>({s.bm, s.bn});
  if (s.carried) { // addresses move along K; rows and columns past the edge start again from the first
    auto k = tl::arange(0, s.bk);
    tl::var x = a + (m % M)[all, newaxis] * am + k[newaxis, all] * ak;
    tl::var y = b + k[all, newaxis] * bk + (n % N)[newaxis, all] * bn;
    for (auto k0 : tl::range(0, K, s.bk, {.stages = s.stages})) {
      acc = tl::dot(tl::load(x, k[newaxis, all] < K - k0), tl::load(y, k[all, newaxis] < K - k0), acc,
                    {.input_precision = s.precision, .max_num_imprecise_acc = s.imprecise});
      x += s.bk * ak;
      y += s.bk * bk;
    }
  } else { // addresses computed anew, masks on all sides
    for (auto k0 : tl::range(0, K, s.bk, {.stages = s.stages})) {
      auto k = k0 + tl::arange(0, s.bk);
      auto x = tl::load(a + m[all, newaxis] * am + k[newaxis, all] * ak, m[all, newaxis] < M && k[newaxis, all] < K);
      auto y = tl::load(b + k[all, newaxis] * bk + n[newaxis, all] * bn, k[all, newaxis] < K && n[newaxis, all] < N);
      acc = tl::dot(x, y, acc, {.input_precision = s.precision, .max_num_imprecise_acc = s.imprecise});
    }
  }
  tl::store(c + m[all, newaxis] * cm + n[newaxis, all] * cn, acc, m[all, newaxis] < M && n[newaxis, all] < N);
});

struct shape {
  int m, n, k;
};
constexpr shape shapes[] = {{256, 256, 256}, {300, 200, 150}, {1, 1000, 64}, {129, 65, 33}, {128, 64, 96},
                            {1, 1, 1},       {17, 33, 65},    {100, 70, 50}, {64, 64, 40}};
constexpr shape tiles[] = {{64, 64, 32},   {128, 64, 64}, {16, 16, 16},  {64, 128, 32}, {32, 64, 64},
                           {128, 128, 32}, {64, 32, 128}, {16, 128, 64}, {128, 16, 32}, {32, 32, 16}};

struct variant {
  shape size, tile;
  bool trans_a = false, trans_b = false, trans_c = false;
  int pad = 0, step = 1, warps = 4, stages = 1, group = 1;
  bool carried = false;
  int imprecise = 0;
};

std::string describe(const std::string &type, const variant &v) {
  auto n = [](int i) { return std::to_string(i); };
  return type + " " + n(v.size.m) + "x" + n(v.size.n) + "x" + n(v.size.k) + (v.trans_a ? " A^T" : "") +
         (v.trans_b ? " B^T" : "") + (v.trans_c ? " C^T" : "") + " pad " + n(v.pad) + " step " + n(v.step) + " tile " +
         n(v.tile.m) + "x" + n(v.tile.n) + "x" + n(v.tile.k) + " warps " + n(v.warps) + " stages " + n(v.stages) +
         " group " + n(v.group) + (v.carried ? " carried" : "") + (v.imprecise ? " imprecise " + n(v.imprecise) : "");
}

/// Operands of one size and what they make; both are the same in every order and with every stride.
template <class A, class B> struct problem {
  matrix<A> a;
  matrix<B> b;
  reference want;
  explicit problem(shape s) : a(s.m, s.k, 1), b(s.k, s.n, 2), want(a, b) {}
};

template <class A, class B, class R = sum_of<A>>
void check_variant(variant v, tl::precision precision, const std::string &type, const problem<A, B> &p,
                   bool general = false) {
  // All stages of both operands fit the shared memory of the smallest target.
  const int bytes = static_cast<int>(std::max(sizeof(A), sizeof(B)));
  while (v.tile.k > 16 && (v.tile.m + v.tile.n) * v.tile.k * bytes * v.stages > 60 * 1024)
    v.tile.k /= 2;
  const std::string what = describe(type, v);
  INFO(what);
  const auto [m, n, k] = v.size;
  const matrix<A> a(p.a, strides(m, k, v.trans_a, v.pad, v.step));
  const matrix<B> b(p.b, strides(k, n, v.trans_b, v.pad, v.step));
  const strides at(m, n, v.trans_c, v.pad, v.step);
  input<A> x(a.host);
  input<B> y(b.host);
  output<R> z(at.size);
  const auto kernel = product<A, B, R>.with({.bm = v.tile.m,
                                             .bn = v.tile.n,
                                             .bk = v.tile.k,
                                             .group = v.group,
                                             .stages = v.stages,
                                             .carried = v.carried,
                                             .imprecise = v.imprecise,
                                             .precision = precision,
                                             .general = general,
                                             .trans_a = general && v.trans_a,
                                             .trans_b = general && v.trans_b},
                                            {.num_warps = v.warps});
  if (also_compile())
    kernel.compile_for(*also_compile());
  const auto in = [&](std::int64_t x, bool is_one = false) { return general && !is_one ? 2 * x + 1 : x; };
  kernel(on(), tl::cdiv(m, v.tile.m) * tl::cdiv(n, v.tile.n), *x, *y, *z, in(m), in(n), in(k), in(a.at.row, v.trans_a),
         in(a.at.col, !v.trans_a), in(b.at.row, v.trans_b), in(b.at.col, !v.trans_b), in(at.row), at.col);
  check_product(what, z.read(), at, p.want, product_epsilon<A>(precision));
}

template <class A, class B> void check_variant(const variant &v, tl::precision precision, const std::string &type) {
  check_variant<A, B>(v, precision, type, problem<A, B>(v.size));
}

/// Calls f with the element types of every product there is.
template <class F> void for_each_type(F &&f) {
  const auto ieee = tl::precision::ieee;
  f.template operator()<f16, f16>("f16", ieee);
  f.template operator()<bf16, bf16>("bf16", ieee);
  f.template operator()<float, float>("tf32", tl::precision::tf32);
  f.template operator()<float, float>("tf32x3", tl::precision::tf32x3);
  f.template operator()<float, float>("f32", ieee);
  f.template operator()<double, double>("f64", ieee);
  f.template operator()<f8e4m3, f8e4m3>("f8e4m3", ieee);
  f.template operator()<f8e5m2, f8e5m2>("f8e5m2", ieee);
  f.template operator()<f8e4m3, f8e5m2>("f8e4m3 f8e5m2", ieee);
  f.template operator()<i8, i8>("i8", ieee);
}

/// Without --exhaustive a target takes every other case of a list, and which ones differs between targets.
bool taken(unsigned index) {
  const std::string target = dev().target().str();
  return exhaustive() || (std::accumulate(target.begin(), target.end(), index) & 1) == 0;
}

/// Chosen so that over the types and shapes of a run every order, number of warps, depth and tile comes up.
variant sample(shape size, unsigned seed) {
  chooser c(seed);
  variant v{.size = size, .tile = tiles[c.below(std::size(tiles))]};
  v.trans_a = c.below(2), v.trans_b = c.below(2), v.trans_c = c.below(4) == 0;
  v.pad = c.of({0, 0, 0, 3, 16});
  v.step = c.of({1, 1, 1, 1, 2});
  v.warps = c.of({1, 2, 4, 4, 8});
  v.stages = c.of({1, 2, 3, 4, 5});
  v.group = c.of({1, 2, 8});
  v.carried = c.below(2);
  v.imprecise = c.of({0, 0, 32, 128});
  return v;
}

} // namespace

TEST_SUITE_BEGIN("dot");

TEST_CASE("products of every type and edge shape") {
  unsigned type = 0;
  for_each_type([&]<class A, class B>(const char *name, tl::precision p) {
    ++type;
    for (unsigned s = 0; s < std::size(shapes); ++s)
      if (also_compile() ? (s + type) % 3 == 0 : taken(s + type))
        check_variant<A, B>(sample(shapes[s], type * 100 + s), p, name);
  });
}

TEST_CASE("aligned matrices: asynchronous copies, and operands in every order") {
  unsigned seed = 0;
  for_each_type([&]<class A, class B>(const char *name, tl::precision p) {
    for (int order = 0; order < 4; ++order) {
      chooser c(++seed + 5000);
      const int k = c.of({64, 160, 256});
      variant v{.size = {128, 128, k},
                .tile = c.of({shape{64, 64, 32}, shape{128, 128, 64}, shape{128, 64, 32}}),
                .trans_a = order % 2 == 1,
                .trans_b = order >= 2};
      v.warps = c.of({4, 4, 8}), v.stages = c.of({2, 3, 4}), v.group = 2, v.carried = c.below(2);
      if (also_compile() ? order == static_cast<int>(seed) % 4 : taken(seed + (seed - 1) / 4))
        check_variant<A, B>(v, p, name);
    }
  });
}

// Nearly all of the time goes into compiling. With padded rows one kernel does for all sizes; without padding each size
// has the kernel that a user's launch gets. A shard has all cases of a kernel.
TEST_CASE("every combination") {
  if (!exhaustive())
    return;
  for_each_type([&]<class A, class B>(const char *name, tl::precision p) {
    std::vector<problem<A, B>> problems;
    for (int order = 0; order < 4; ++order)
      for (int warps : {1, 2, 4, 8})
        for (int stages : {1, 2, 3, 4, 5}) {
          if (!mine())
            continue;
          for (std::size_t i = problems.size(); i < std::size(shapes); ++i)
            problems.emplace_back(shapes[i]);
          for (const problem<A, B> &one : problems)
            for (int pad : {0, 3})
              check_variant<A, B>({.size = {int(one.want.m), int(one.want.n), int(one.want.k)},
                                   .tile = {64, 64, 32},
                                   .trans_a = order % 2 == 1,
                                   .trans_b = order >= 2,
                                   .pad = pad,
                                   .warps = warps,
                                   .stages = stages,
                                   .group = 2,
                                   .carried = (warps + stages) % 2 == 0},
                                  p, name, one, pad > 0);
        }
  });
}

TEST_CASE("random shapes") {
  chooser c(42);
  for (int i = 0; i < random_products(); ++i) {
    auto extent = [&] { return static_cast<int>(1 + c.below(c.of({8, 64, 150, 400}))); };
    const shape size{extent(), extent(), extent()};
    const std::int64_t wanted = c.below(10);
    std::int64_t type = 0;
    for_each_type([&]<class A, class B>(const char *name, tl::precision p) {
      if (type++ == wanted && mine())
        check_variant<A, B>(sample(size, 10000 + static_cast<unsigned>(i)), p, name);
    });
  }
}

TEST_CASE("8-bit floats without infinities: with each other, and with OCP's") {
  unsigned type = 0;
  const auto check = [&]<class A, class B>(std::type_identity<A>, std::type_identity<B>) {
    ++type;
    for (unsigned s = 0; s < std::size(shapes); ++s)
      if (also_compile() ? (s + type) % 3 == 0 : taken(s + type))
        check_variant<A, B>(sample(shapes[s], 7000 + type * 100 + s), tl::precision::ieee,
                            type_name<A>() + " " + type_name<B>());
  };
  const auto e4 = std::type_identity<f8e4m3fnuz>{};
  const auto e5 = std::type_identity<f8e5m2fnuz>{};
  check(e4, e4);
  check(e5, e5);
  check(e4, e5);
  check(std::type_identity<f8e4m3>{}, e4);
}

TEST_CASE("sums of many products of i8 are exact") {
  const auto fill = [](std::int64_t rows, std::int64_t cols, int value) {
    matrix<i8> m(rows, cols, 1);
    std::fill(m.host.begin(), m.host.end(), static_cast<i8>(value));
    return m;
  };
  constexpr int n = 32, k = 4608;
  int step = 0;
  for (auto [a, b, want] :
       {std::tuple(127, 127, 74322432), {127, 126, 73737216}, {-127, 125, -73152000}, {127, -127, -74322432}}) {
    input<i8> x(fill(n, k, a).host), y(fill(k, n, b).host);
    for (int bk : {1, 2, 4, 16, 32}) {
      ++step;
      if (!exhaustive() && bk < 4 && a != 127)
        continue;
      output<i32> z(n * n);
      const auto kernel = product<i8, i8, i32>.with({.bm = 16, .bn = 16, .bk = bk, .stages = 1 + step % 4},
                                                    {.num_warps = 1 << step % 3});
      launch(kernel, 4, *x, *y, *z, n, n, k, k, 1, n, 1, n, 1);
      check_equal<i32>("i8 sums, tiles of " + std::to_string(bk), z.read(), std::vector<i32>(n * n, want));
    }
  }
}

TEST_CASE_TEMPLATE("f16 and fp8 added up in f16", T, f16, f8e5m2, f8e4m3) {
  for (shape s : {shape{64, 64, 64}, shape{100, 70, 50}})
    for (int warps : {1, 4}) {
      const matrix<T> a(s.m, s.k, 1), b(s.k, s.n, 2);
      input<T> x(a.host), y(b.host);
      output<f16> z(s.m * s.n);
      const auto kernel = product<T, T, f16>.with({.stages = 3}, {.num_warps = warps});
      launch(kernel, tl::cdiv(s.m, 64) * tl::cdiv(s.n, 64), *x, *y, *z, s.m, s.n, s.k, s.k, 1, s.n, 1, s.n, 1);
      check_product("f16 sums of " + type_name<T>(), z.read(), strides(s.m, s.n), reference(a, b), 0x1p-10);
    }
}

TEST_CASE("no trip of the K loop leaves zeros") {
  input<f16> x(std::vector<f16>(16)), y(std::vector<f16>(16));
  for (int stages : {1, 3}) {
    output<float> z(64 * 64);
    launch(product<f16, f16, float>.with({.stages = stages}), 1, *x, *y, *z, 64, 64, 0, 16, 1, 64, 1, 64, 1);
    check_equal<float>("zeros", z.read(), std::vector<float>(64 * 64, 0.0f));
  }
}

TEST_SUITE_END();
