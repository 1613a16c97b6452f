// Loops whose loads the compiler may start early: results must not depend on how many stages are in flight, on the
// number of trips, nor on what the body does with what it loaded.
#include "matrix.h"

using namespace e2e;

namespace {

using tl::all, tl::newaxis;

struct config {
  int stages = 1, width = 1;
  int trips = -1; ///< -1: an argument
};

constexpr int all_stages[] = {1, 2, 3, 4, 5};

tl::val<i32> at(int rows, int cols) {
  return tl::arange(0, rows)[all, newaxis] * cols + tl::arange(0, cols)[newaxis, all];
}

// A product and a sum through an index, in a loop whose index is of the type I.
template <class I> const auto counted = tl::kernel(
    "counted", [](tl::ptr<const f16> a, tl::ptr<const i32> index, tl::ptr<float> y, tl::val<I> lo, tl::val<I> hi,
                  tl::val<I> step, config c) {
      tl::var acc = tl::zeros<float>({32, 32}), sum = tl::zeros<float>({32, 32});
      for (auto i : tl::range(lo, hi, step, {.stages = c.stages})) {
        auto trip = tl::cast<i32>((i - lo) / step);
        auto x = tl::load(a + trip * 1024 + at(32, 32));
        acc = tl::dot(x, tl::trans(x), acc);
        sum += tl::load(a + tl::load(index + trip) * 1024 + at(32, 32)).template to<float>();
      }
      tl::store(y + at(32, 32), acc);
      tl::store(y + 1024 + at(32, 32), sum);
    });

template <class I> void check_counted(I lo, I hi, I step, int trips) {
  std::vector<f16> a(5 * 1024);
  for (int i = 0; i < 5 * 1024; ++i)
    a[i] = f16(static_cast<float>((i * 7 + i / 32 * 3) % 5 - 2));
  const std::vector<i32> index{3, 0, 4, 1, 2};
  std::vector<float> want(2048);
  for (int t = 0; t < trips; ++t)
    for (int i = 0; i < 32; ++i)
      for (int j = 0; j < 32; ++j) {
        want[1024 + i * 32 + j] += a[index[t] * 1024 + i * 32 + j];
        for (int k = 0; k < 32; ++k)
          want[i * 32 + j] += a[t * 1024 + i * 32 + k] * a[t * 1024 + j * 32 + k];
      }
  input<f16> x(a);
  input<i32> at(index);
  for (int stages : {1, 2, 4}) {
    output<float> y(2048);
    launch(counted<I>.with({.stages = stages}), 1, *x, *at, *y, lo, hi, step);
    check_equal<float>(type_name<I>() + " " + std::to_string(lo) + " to " + std::to_string(hi) + ", stages " +
                           std::to_string(stages),
                       y.read(), want);
  }
}

// Divisions in front of a pipelined loop, and a product.
template <class I> const auto divided = tl::kernel(
    "divided", [](tl::ptr<const f16> a, tl::ptr<const I> starts, tl::ptr<const I> divisors, tl::ptr<I> quotients,
                  tl::ptr<I> rests, tl::ptr<float> y, config c) {
      auto program = tl::program_id(0);
      auto lane = tl::arange(0, 64);
      auto n = tl::load(starts + program) + lane.template to<I>();
      auto d = tl::load(divisors + program);
      tl::store(quotients + program * 64 + lane, n / d);
      tl::store(rests + program * 64 + lane, n % d);
      tl::var acc = tl::zeros<float>({32, 32});
      for (auto i : tl::range(0, 4, {.stages = c.stages})) {
        auto x = tl::load(a + i * 1024 + at(32, 32));
        acc = tl::dot(x, tl::trans(x), acc);
      }
      tl::store(y + program * 1024 + at(32, 32), acc);
    });

template <class I> void check_divided() {
  using wide = std::int64_t;
  std::vector<I> starts, divisors, quotients, rests;
  for (wide start : {wide(0), wide(100), (wide(1) << 21) - 32, wide(1) << 21, (wide(1) << 23) - 32,
                     (wide(1) << 31) - 64, wide(-32), -(wide(1) << 31)})
    for (wide d : {wide(1), wide(2), wide(7), wide(64), wide(1000), (wide(1) << 23) - 1, wide(1) << 23,
                   (wide(1) << 31) - 1, wide(0), wide(-1), wide(-7), -(wide(1) << 31)}) {
      starts.push_back(static_cast<I>(start));
      divisors.push_back(static_cast<I>(d));
      for (int i = 0; i < 64; ++i) {
        const wide n = static_cast<I>(start + i), by = divisors.back();
        quotients.push_back(static_cast<I>(by ? n / by : 0));
        rests.push_back(static_cast<I>(by ? n % by : n));
      }
    }
  const int programs = static_cast<int>(starts.size());
  std::vector<f16> a(4 * 1024);
  for (int i = 0; i < 4 * 1024; ++i)
    a[i] = f16(static_cast<float>((i * 7 + i / 32 * 3) % 5 - 2));
  std::vector<float> product;
  for (int p = 0; p < programs; ++p)
    for (int i = 0; i < 32; ++i)
      for (int j = 0; j < 32; ++j) {
        float sum = 0;
        for (int k = 0; k < 128 && p == 0; ++k)
          sum += a[k / 32 * 1024 + i * 32 + k % 32] * a[k / 32 * 1024 + j * 32 + k % 32];
        product.push_back(p == 0 ? sum : product[i * 32 + j]);
      }
  input<f16> x(a);
  input<I> from(starts), by(divisors);
  for (int stages : {1, 3}) {
    output<I> q(64 * programs), r(64 * programs);
    output<float> y(1024 * programs);
    launch(divided<I>.with({.stages = stages}), programs, *x, *from, *by, *q, *r, *y);
    const std::string name = type_name<I>() + ", stages " + std::to_string(stages);
    check_equal<I>(name + ", n / d", q.read(), quotients);
    check_equal<I>(name + ", n % d", r.read(), rests);
    check_equal<float>(name + ", product", y.read(), product);
  }
}

} // namespace

TEST_SUITE_BEGIN("pipelining");

TEST_CASE("a carried value that nothing reads, and its trip count") {
  const auto kernel = tl::kernel("trips", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<i32> n, config c) {
    auto r = tl::program_id(0) * 8 + tl::arange(0, 8), col = tl::program_id(1) * 8 + tl::arange(0, 8);
    auto where = r[all, newaxis] * 16 + col[newaxis, all];
    auto d = tl::load(x + where);
    tl::var num = tl::full<float>({8, 8}, 1.0f), den = d, out = d;
    auto body = [&] { out = num / den; };
    if (c.trips < 0)
      for ([[maybe_unused]] auto i : tl::range(0, n, {.stages = c.stages}))
        body();
    else
      for ([[maybe_unused]] auto i : tl::range(0, c.trips, {.stages = c.stages}))
        body();
    tl::store(y + where, out);
  });
  input<float> x(std::vector<float>(256, 12.0f));
  for (int n : {0, 1, 2, 3, 7})
    for (int stages : {1, 2, 4})
      for (bool constant : {false, true}) {
        output<float> out(256);
        launch(kernel.with({.stages = stages, .trips = constant ? n : -1},
                           {.num_warps = 1 << stages % 4, .precise_math = true}),
               {2, 2}, *x, *out, n);
        check_equal<float>(std::to_string(n) + " trips, stages " + std::to_string(stages), out.read(),
                           std::vector<float>(256, n == 0 ? 12.0f : std::bit_cast<float>(0x3DAAAAABu)));
      }
}

TEST_CASE("an index loaded at the top of the loop guards stores at its end") {
  const auto kernel = tl::kernel("guarded", [](tl::ptr<const i32> index, tl::ptr<i32> y, tl::val<i32> flag, config c) {
    for (auto i : tl::range(0, 17, 1, {.stages = c.stages})) {
      auto at = tl::load(index + i * c.width + tl::arange(0, c.width));
      tl::if_(flag != 0, [&] { tl::store(y + at, tl::broadcast_to(i + 1, {c.width})); }).else_([&] {
        tl::store(y + 17 * c.width + at, tl::broadcast_to(i + 100, {c.width}));
      });
    }
  });
  for (int width : {1, 4, 32})
    for (int stages : all_stages)
      for (int flag : {1, 0}) {
        input<i32> index(iota<i32>(17 * width));
        output<i32> out(std::vector<i32>(34 * width, 0));
        launch(kernel.with({.stages = stages, .width = width}, {.num_warps = 1 << stages % 4}), 1, *index, *out, flag);
        std::vector<i32> want(34 * width, 0);
        for (int i = 0; i < 17 * width; ++i)
          want[flag ? i : 17 * width + i] = i / width + (flag ? 1 : 100);
        check_equal<i32>("width " + std::to_string(width) + " stages " + std::to_string(stages) + " flag " +
                             std::to_string(flag),
                         out.read(), want);
      }
}

TEST_CASE("a tile is consumed before the next one is read into it") {
  const auto kernel = tl::kernel(
      "war", [](tl::ptr<const i32> a, tl::ptr<const i32> first, tl::ptr<i32> scratch, tl::ptr<i32> y, config c) {
        auto at = tl::arange(0, 32);
        tl::var s = tl::load(first + at);
        tl::var acc = tl::zeros<i32>({32});
        for (auto k : tl::range(0, 8, 1, {.stages = c.stages})) {
          acc += s;
          s = tl::load(a + k * 32 + at);
        }
        tl::store(y + at, acc);
        tl::store(scratch + at, tl::load(first + at)); // the same with the tile kept in memory
        tl::var again = tl::zeros<i32>({32});
        for (auto k : tl::range(0, 8, 1, {.stages = c.stages})) {
          again += tl::load(scratch + at);
          tl::store(scratch + at, tl::load(a + k * 32 + at));
        }
        tl::store(y + 32 + at, again);
      });
  std::vector<i32> a, want;
  for (int k = 0; k < 8; ++k)
    for (int i = 0; i < 32; ++i)
      a.push_back(100 * k + i);
  for (int i = 0; i < 64; ++i)
    want.push_back(3100 + 8 * (i % 32));
  input<i32> ina(a), first(iota<i32>(32, 1000));
  for (int stages : all_stages)
    for (int warps : {1, 2, 4, 8}) {
      output<i32> scratch(32), out(64);
      launch(kernel.with({.stages = stages}, {.num_warps = warps}), 1, *ina, *first, *scratch, *out);
      check_equal<i32>("stages " + std::to_string(stages) + " warps " + std::to_string(warps), out.read(), want);
    }
}

TEST_CASE("products: several loads, one used late, one of the trip before") {
  // Beside the operands each trip loads a row that scales the sum at its end, and a tile that the next trip adds.
  const auto kernel = tl::kernel("late", [](tl::ptr<const f16> a, tl::ptr<const f16> b, tl::ptr<const float> scale,
                                            tl::ptr<const float> extra, tl::ptr<float> y, tl::val<i32> K, config c) {
    tl::var acc = tl::zeros<float>({32, 32}), before = tl::zeros<float>({32, 32});
    for (auto k : tl::range(0, K, 32, {.stages = c.stages})) {
      auto s = tl::load(scale + k / 32 * 32 + tl::arange(0, 32));
      auto x = tl::load(a + k + tl::arange(0, 32)[all, newaxis] * K + tl::arange(0, 32)[newaxis, all]);
      auto z = tl::load(b + k * 32 + at(32, 32));
      acc = tl::dot(x, z, acc) + before;
      before = tl::load(extra + k * 32 + at(32, 32));
      acc = acc * s[newaxis, all];
    }
    tl::store(y + at(32, 32), acc);
  });
  for (int trips : {0, 1, 2, 5}) {
    const int K = 32 * trips;
    const matrix<f16> a(32, std::max(K, 1), 1), b(std::max(K, 1), 32, 2);
    const auto scale = random<float>(std::max(K, 1), 0.5, 1.5, 3), extra = random<float>(std::max(K, 1) * 32, -1, 1, 4);
    std::vector<double> want(32 * 32), before(32 * 32);
    for (int t = 0; t < trips; ++t)
      for (int i = 0; i < 32; ++i)
        for (int j = 0; j < 32; ++j) {
          double &v = want[i * 32 + j];
          for (int k = 32 * t; k < 32 * t + 32; ++k)
            v += a(i, k) * b(k, j);
          v = (v + before[i * 32 + j]) * scale[t * 32 + j];
          before[i * 32 + j] = extra[(t * 32 + i) * 32 + j];
        }
    input<f16> x(a.host), z(b.host);
    input<float> s(scale), e(extra);
    for (int stages : all_stages) {
      output<float> out(32 * 32);
      launch(kernel.with({.stages = stages}), 1, *x, *z, *s, *e, *out, K);
      check_close<float>(std::to_string(trips) + " trips, stages " + std::to_string(stages), out.read(), want, 64, 8);
    }
  }
}

TEST_CASE("fp8: a sum in parts on top of a product in flight, and under one") {
  // Whole numbers, so that all sums are exact. With 64 rows and 4 warps both products are Hopper's, which the second
  // adds up in parts of 32.
  const auto kernel =
      tl::kernel("parts", [](tl::ptr<const f8e5m2> a, tl::ptr<const f8e5m2> b, tl::ptr<const f8e4m3> u,
                             tl::ptr<const f8e4m3> v, tl::ptr<float> y, tl::val<i32> n, config c) {
        tl::var plain_first = tl::zeros<float>({64, 64}), parts_first = tl::zeros<float>({64, 64});
        for (auto i : tl::range(0, n, {.stages = c.stages})) {
          auto x = tl::load(a + i * 64 * 32 + at(64, 32)), z = tl::load(b + i * 64 * 32 + at(32, 64));
          auto s = tl::load(u + i * 64 * 64 + at(64, 64)), t = tl::load(v + i * 64 * 64 + at(64, 64));
          plain_first = tl::dot(s, t, tl::dot(x, z, plain_first), {.max_num_imprecise_acc = 32});
          parts_first = tl::dot(x, z, tl::dot(s, t, parts_first, {.max_num_imprecise_acc = 32}));
        }
        tl::store(y + at(64, 64), plain_first);
        tl::store(y + 64 * 64 + at(64, 64), parts_first);
      });
  constexpr int most = 5;
  const auto whole = [](auto type, int size, int seed) {
    using T = decltype(type);
    std::vector<T> numbers;
    for (int i = 0; i < size; ++i)
      numbers.push_back(make<T>((i * 7 + i / 64 * 3 + seed) % 5 - 2));
    return numbers;
  };
  const auto a = whole(f8e5m2{}, most * 2048, 0), b = whole(f8e5m2{}, most * 2048, 1);
  const auto u = whole(f8e4m3{}, most * 4096, 2), v = whole(f8e4m3{}, most * 4096, 3);
  input<f8e5m2> ia(a), ib(b);
  input<f8e4m3> iu(u), iv(v);
  for (int n : {0, 1, most}) {
    std::vector<float> want(2 * 4096);
    for (int t = 0; t < n; ++t)
      for (int i = 0; i < 64; ++i)
        for (int j = 0; j < 64; ++j) {
          double sum = 0;
          for (int k = 0; k < 32; ++k)
            sum += to_double(a[t * 2048 + i * 32 + k]) * to_double(b[t * 2048 + k * 64 + j]);
          for (int k = 0; k < 64; ++k)
            sum += to_double(u[t * 4096 + i * 64 + k]) * to_double(v[t * 4096 + k * 64 + j]);
          want[i * 64 + j] += static_cast<float>(sum), want[4096 + i * 64 + j] += static_cast<float>(sum);
        }
    for (int stages : all_stages) {
      output<float> y(2 * 4096);
      launch(kernel.with({.stages = stages}), 1, *ia, *ib, *iu, *iv, *y, n);
      check_equal<float>(std::to_string(n) + " trips, stages " + std::to_string(stages), y.read(), want);
    }
  }
}

TEST_CASE("indices of every type, signed and unsigned") {
  check_counted<u32>(0x7ffffffe, 0x80000002, 1, 4);
  check_counted<u32>(0x90000000, 0x90000005, 2, 3);
  check_counted<u32>(0x80000000, 5, 1, 0);
  check_counted<i64>(-(i64(1) << 62), i64(1) << 62, i64(1) << 61, 4);
  check_counted<u64>(u64(1) << 63, (u64(1) << 63) + 5, 2, 3);
  check_counted<u8>(126, 131, 1, 5);
  check_counted<i16>(-300, 300, 200, 3);
}

TEST_CASE("divisions in front of a loop, of numbers small and large, negative and by zero") {
  check_divided<i32>();
  check_divided<u32>();
}

TEST_CASE("persistent products: a pipelined loop inside a loop") {
  const auto kernel = tl::kernel("persistent", [](tl::ptr<const f16> a, tl::ptr<const f16> b, tl::ptr<float> y,
                                                  tl::val<i32> M, tl::val<i32> N, tl::val<i32> K, config c) {
    auto across = tl::cdiv(N, 32);
    for (auto tile : tl::range(tl::program_id(0), tl::cdiv(M, 64) * across, tl::num_programs(0))) {
      auto m = tile / across * 64 + tl::arange(0, 64), n = tile % across * 32 + tl::arange(0, 32);
      tl::var acc = tl::zeros<float>({64, 32});
      for (auto k0 : tl::range(0, K, 32, {.stages = c.stages})) {
        auto k = k0 + tl::arange(0, 32);
        auto x = tl::load(a + m[all, newaxis] * K + k[newaxis, all], m[all, newaxis] < M && k[newaxis, all] < K);
        auto z = tl::load(b + k[all, newaxis] * N + n[newaxis, all], k[all, newaxis] < K && n[newaxis, all] < N);
        acc = tl::dot(x, z, acc);
      }
      tl::store(y + m[all, newaxis] * N + n[newaxis, all], acc, m[all, newaxis] < M && n[newaxis, all] < N);
    }
  });
  for (auto [m, n, k] : {std::tuple(200, 96, 160), {130, 50, 33}, {64, 32, 16}}) {
    const matrix<f16> a(m, k, 1), b(k, n, 2);
    input<f16> x(a.host), z(b.host);
    const reference want(a, b);
    for (int stages : all_stages) {
      output<float> out(m * n);
      launch(kernel.with({.stages = stages}, {.num_warps = stages == 4 ? 8 : 4}), 3, *x, *z, *out, m, n, k);
      check_product("stages " + std::to_string(stages), out.read(), strides(m, n), want, 0x1p-23);
    }
  }
}

TEST_CASE("a loop that stores what the next trip loads") {
  // Each trip adds the product of a tile with itself to the tile behind it, through memory.
  const auto kernel = tl::kernel("through_memory", [](tl::ptr<float> y, tl::val<i32> n, config c) {
    for (auto i : tl::range(0, n, {.stages = c.stages})) {
      auto x = tl::load(y + i * 256 + at(16, 16));
      auto next = y + (i + 1) * 256 + at(16, 16);
      tl::store(next, tl::dot(x, x, tl::load(next)));
    }
  });
  const int n = 6;
  auto start = random<float>((n + 1) * 256, -0.25, 0.25);
  std::vector<double> want(start.begin(), start.end());
  for (int i = 0; i < n; ++i)
    for (int r = 0; r < 16; ++r)
      for (int c = 0; c < 16; ++c)
        for (int k = 0; k < 16; ++k)
          want[(i + 1) * 256 + r * 16 + c] += want[i * 256 + r * 16 + k] * want[i * 256 + k * 16 + c];
  for (int stages : all_stages) {
    output<float> y(start);
    launch(kernel.with({.stages = stages}, {.num_warps = 1 << stages % 3}), 1, *y, n);
    check_close<float>("stages " + std::to_string(stages), y.read(), want, 64, 1);
  }
}

TEST_CASE("loops that store what they make of what they load") {
  // Each trip multiplies a tile of a by b, adds a row of bias, stores the result, and counts in place how often a bin
  // came up: loads of a, bias and index may run ahead of the stores, that of the count must not.
  const auto kernel = tl::kernel("stores", [](tl::ptr<const f16> a, tl::ptr<const f16> b, tl::ptr<const float> bias,
                                              tl::ptr<const i32> index, tl::ptr<float> y, tl::ptr<i32> counts,
                                              tl::val<i32> n, config c) {
    auto z = tl::load(b + at(32, 32));
    for (auto i : tl::range(0, n, {.stages = c.stages})) {
      auto x = tl::load(a + i * 1024 + at(32, 32));
      auto row = tl::load(bias + i * 32 + tl::arange(0, 32));
      auto bin = counts + tl::load(index + i);
      tl::store(y + i * 1024 + at(32, 32), tl::dot(x, z) + row[newaxis, all]);
      tl::store(bin, tl::load(bin) + 1);
    }
  });
  constexpr int most = 7, bins = 3;
  const matrix<f16> a(32 * most, 32, 1), b(32, 32, 2);
  const auto bias = random<float>(32 * most, -1, 1, 3);
  const std::vector<i32> index{2, 2, 0, 2, 1, 1, 2};
  const reference product(a, b);
  input<f16> x(a.host), z(b.host);
  input<float> row(bias);
  input<i32> bin(index);
  for (int n : {0, 1, 2, most})
    for (int stages : all_stages) {
      const std::string what = std::to_string(n) + " trips, stages " + std::to_string(stages);
      output<float> y(1024 * most);
      output<i32> counts(std::vector<i32>(bins, 0));
      launch(kernel.with({.stages = stages}, {.num_warps = 1 << stages % 4}), 1, *x, *z, *row, *bin, *y, *counts, n);
      std::vector<i32> counted(bins, 0);
      for (int i = 0; i < n; ++i)
        ++counted[index[i]];
      check_equal<i32>(what + " counts", counts.read(), counted);
      std::vector<double> want(1024 * n);
      for (int i = 0; i < 1024 * n; ++i)
        want[i] = product.value[i] + bias[i / 1024 * 32 + i % 32];
      const auto got = y.read();
      check_close<float>(what, part(got, 0, 1024 * n), want, 64, 8);
      CHECK_MESSAGE(std::all_of(got.begin() + 1024 * n, got.end(), output<float>::is_poison), what,
                    ": stored for trips that there are not");
    }
}

TEST_CASE("rows in place: what a trip stores is not loaded before") {
  // Row i + 1 is loaded through the pointer that row i of the sums is stored through.
  const auto kernel = tl::kernel("running", [](tl::ptr<float> y, tl::ptr<const float> x, tl::val<i32> n, config c) {
    auto col = tl::arange(0, 64);
    for (auto i : tl::range(1, n, {.stages = c.stages}))
      tl::store(y + i * 64 + col, tl::load(y + (i - 1) * 64 + col) + tl::load(x + i * 64 + col));
  });
  constexpr int n = 9;
  const auto in = iota<float>(64 * n);
  std::vector<float> start(64 * n, 0), want(64 * n);
  for (int i = 0; i < 64 * n; ++i)
    want[i] = i < 64 ? 0 : want[i - 64] + in[i];
  input<float> x(in);
  for (int stages : all_stages) {
    output<float> y(start);
    launch(kernel.with({.stages = stages}, {.num_warps = 2}), 1, *y, *x, n);
    check_equal<float>("stages " + std::to_string(stages), y.read(), want);
  }
}

TEST_SUITE_END();
