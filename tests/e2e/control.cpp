// Loops, branches, carried values, arguments, grids and helper functions.
#include <array>
#include <atomic>
#include <tuple>

#include "harness.h"

using namespace e2e;

namespace {

using tl::all, tl::newaxis;

struct trips {
  int count = -1; ///< -1: an argument
};

// One helper for signed and unsigned tiles: signedness belongs to the type, not to the function.
template <class T> auto smaller_quotient_half(tl::val<T> a, tl::val<T> b) {
  return std::tuple{tl::where(a < b, a, b), a / b, a >> 1};
}

} // namespace

TEST_SUITE_BEGIN("control");

TEST_CASE("what a loop computes does not depend on its trip count; no trip keeps the value before") {
  const auto kernel = tl::kernel("trips", [](tl::ptr<float> y, tl::val<i32> n, tl::val<float> d, trips c) {
    auto r = tl::program_id(0) * 8 + tl::arange(0, 8), col = tl::program_id(1) * 8 + tl::arange(0, 8);
    tl::var num = tl::full<float>({8, 8}, 1.0f);
    tl::var den = tl::broadcast_to(d, {8, 8});
    tl::var out = tl::broadcast_to(d, {8, 8});
    auto body = [&] { out = num / den; };
    if (c.count < 0)
      for ([[maybe_unused]] auto i : tl::range(0, n))
        body();
    else
      for ([[maybe_unused]] auto i : tl::range(0, c.count))
        body();
    tl::store(y + r[all, newaxis] * 16 + col[newaxis, all], out);
  });
  for (int n : {0, 1, 2, 3, 7})
    for (bool constant : {false, true}) {
      output<float> out(256);
      launch(kernel.with({.count = constant ? n : -1}, {.precise_math = true}), {2, 2}, *out, n, 12.0f);
      check_equal<float>(std::to_string(n) + " trips", out.read(),
                         std::vector<float>(256, n == 0 ? 12.0f : std::bit_cast<float>(0x3DAAAAABu)));
    }
}

TEST_CASE("an index loaded at the top of a loop guards a store at its end") {
  const auto kernel = tl::kernel("guarded", [](tl::ptr<const i32> index, tl::ptr<i32> y, tl::val<i32> flag) {
    for (auto i : tl::range(0, 17, 1, {.stages = 2})) {
      auto at = tl::load(index + i + tl::arange(0, 1));
      tl::if_(flag != 0, [&] { tl::store(y + at, tl::broadcast_to(i + 1, {1})); }).else_([&] {
        tl::store(y + 17 + at, tl::broadcast_to(i + 100, {1}));
      });
    }
  });
  input<i32> index(iota<i32>(17));
  for (int flag : {1, 0}) {
    output<i32> out(std::vector<i32>(34, 0));
    launch(kernel, 1, *index, *out, flag);
    std::vector<i32> want(34, 0);
    for (int i = 0; i < 17; ++i)
      want[flag ? i : 17 + i] = flag ? i + 1 : i + 100;
    check_equal<i32>("flag " + std::to_string(flag), out.read(), want);
  }
}

TEST_CASE("a tile is consumed before the next one is read into it") {
  const auto kernel =
      tl::kernel("war", [](tl::ptr<const i32> a, tl::ptr<const i32> first, tl::ptr<i32> scratch, tl::ptr<i32> y) {
        auto at = tl::arange(0, 32);
        tl::var s = tl::load(first + at);
        tl::var acc = tl::zeros<i32>({32});
        for (auto k : tl::range(0, 8, 1, {.stages = 3})) {
          acc += s;
          s = tl::load(a + k * 32 + at);
        }
        tl::store(y + at, acc);
        // The same with the tile kept in memory.
        tl::store(scratch + at, tl::load(first + at));
        tl::var again = tl::zeros<i32>({32});
        for (auto k : tl::range(0, 8)) {
          again += tl::load(scratch + at);
          tl::store(scratch + at, tl::load(a + k * 32 + at));
        }
        tl::store(y + 32 + at, again);
      });
  std::vector<i32> a, want;
  for (int k = 0; k < 8; ++k)
    for (int i = 0; i < 32; ++i)
      a.push_back(100 * k + i);
  for (int twice = 0; twice < 2; ++twice)
    for (int i = 0; i < 32; ++i)
      want.push_back(3100 + 8 * i);
  input<i32> ina(a), first(iota<i32>(32, 1000));
  for (int warps : {1, 2, 4, 8}) {
    output<i32> scratch(32), out(64);
    launch(kernel.with_options({.num_warps = warps}), 1, *ina, *first, *scratch, *out);
    check_equal<i32>("sums", out.read(), want);
  }
}

TEST_CASE("bounds: negative, empty, steps that do not divide, 64 bits") {
  const auto kernel =
      tl::kernel("bounds", [](tl::ptr<i64> y, tl::val<i32> lo, tl::val<i32> hi, tl::val<i32> step, tl::val<i64> big) {
        tl::var sum = tl::full<i64>({}, 0), count = tl::full<i64>({}, 0);
        for (auto i : tl::range(lo, hi, step)) {
          sum += i.to<i64>();
          count += 1;
        }
        tl::store(y, sum);
        tl::store(y + 1, count);
        tl::var far = tl::full<i64>({}, 0);
        for (auto i : tl::range(big, big + 3))
          far += i;
        tl::store(y + 2, far);
      });
  struct {
    i32 lo, hi, step;
  } cases[] = {{0, 10, 1}, {-5, 6, 3}, {3, 3, 1}, {5, -5, 1}, {0, 10, 4}, {-8, -1, 2}};
  for (auto [lo, hi, step] : cases) {
    i64 sum = 0, count = 0;
    for (i32 i = lo; i < hi; i += step)
      sum += i, ++count;
    output<i64> out(3);
    launch(kernel, 1, *out, lo, hi, step, i64(1) << 40);
    check_equal<i64>("range " + std::to_string(lo) + " … " + std::to_string(hi), out.read(),
                     {sum, count, 3 * (i64(1) << 40) + 3});
  }
}

TEST_CASE("nested loops carry tiles and scalars; inner bounds depend on the outer index") {
  const auto kernel = tl::kernel("nested", [](tl::ptr<i32> y, tl::val<i32> n) {
    auto at = tl::arange(0, 64);
    tl::var tile = tl::zeros<i32>({64});
    tl::var steps = 0;
    for (auto i : tl::range(0, n)) {
      tl::var inner = at;
      for (auto j : tl::range(0, i)) {
        inner = inner + j;
        steps += 1;
      }
      tile = tile + inner * i;
    }
    tl::store(y + at, tile + steps);
  });
  output<i32> out(64);
  launch(kernel, 1, *out, 9);
  std::vector<i32> want(64, 0);
  for (int e = 0; e < 64; ++e) {
    int steps = 0;
    for (int i = 0; i < 9; ++i) {
      int inner = e;
      for (int j = 0; j < i; ++j)
        inner += j, ++steps;
      want[e] += inner * i;
    }
    want[e] += steps;
  }
  check_equal<i32>("nested", out.read(), want);
}

TEST_CASE("branches carry values; one arm may leave them alone") {
  const auto kernel = tl::kernel("branches", [](tl::ptr<const i32> x, tl::ptr<i32> y) {
    auto p = tl::program_id(0);
    auto at = tl::arange(0, 32);
    tl::var v = tl::load(x + p * 32 + at);
    tl::var tag = 0;
    tl::if_(p % 3 == 0, [&] {
      v = v * 2;
      tag = 1;
    }).else_([&] { tl::if_(p % 3 == 1, [&] { v = v + tl::sum(v, 0); }); });
    auto [low, high] = tl::cond(
        p > 3,
        [&] {
          return std::tuple{p * 1000, p * 2000};
        },
        [&] {
          return std::tuple{p, p + 1};
        });
    tl::store(y + p * 32 + at, v + tag + low + high);
  });
  const auto x = iota<i32>(192);
  input<i32> in(x);
  output<i32> out(192);
  launch(kernel, 6, *in, *out);
  std::vector<i32> want(192);
  for (int p = 0; p < 6; ++p) {
    int sum = 0;
    for (int i = 0; i < 32; ++i)
      sum += x[p * 32 + i];
    for (int i = 0; i < 32; ++i) {
      const int v = x[p * 32 + i];
      want[p * 32 + i] = (p % 3 == 0 ? 2 * v + 1 : p % 3 == 1 ? v + sum : v) + (p > 3 ? 3000 * p : 2 * p + 1);
    }
  }
  check_equal<i32>("branches", out.read(), want);
}

TEST_CASE("while: a search whose number of steps depends on the data") {
  const auto kernel =
      tl::kernel("lower_bound", [](tl::ptr<const i32> sorted, tl::ptr<const i32> keys, tl::ptr<i32> y, tl::val<i32> n) {
        auto p = tl::program_id(0);
        auto key = tl::load(keys + p);
        tl::var lo = 0;
        tl::var hi = n;
        tl::while_([&] { return lo < hi; },
                   [&] {
                     auto mid = (lo + hi) / 2;
                     tl::if_(tl::load(sorted + mid) < key, [&] { lo = mid + 1; }).else_([&] { hi = mid; });
                   });
        tl::store(y + p, lo);
      });
  std::vector<i32> sorted, keys, want;
  for (int i = 0; i < 100; ++i)
    sorted.push_back(i * i / 3);
  for (int k = -1; k < 3300; k += 100) {
    keys.push_back(k);
    want.push_back(static_cast<i32>(std::lower_bound(sorted.begin(), sorted.end(), k) - sorted.begin()));
  }
  input<i32> ins(sorted), ink(keys);
  output<i32> out(keys.size());
  launch(kernel, static_cast<int>(keys.size()), *ins, *ink, *out, 100);
  check_equal<i32>("lower bound", out.read(), want);
}

TEST_CASE("host loops unroll; host conditions choose while tracing") {
  const auto kernel = tl::kernel("unrolled", [](tl::ptr<i32> y, trips c) {
    tl::var v = tl::arange(0, 16);
    for (int i : tl::static_range(4)) {
      if (i == c.count)
        break;
      v = v * 2 + i;
    }
    tl::store(y + tl::arange(0, 16), v);
  });
  for (int stop : {0, 2, 9}) {
    output<i32> out(16);
    launch(kernel.with({.count = stop}), 1, *out);
    std::vector<i32> want = iota<i32>(16);
    for (int i = 0; i < std::min(stop, 4); ++i)
      for (auto &w : want)
        w = w * 2 + i;
    check_equal<i32>("unrolled", out.read(), want);
  }
}

TEST_CASE("every program of a grid of three dimensions runs once") {
  const auto kernel = tl::kernel("grid", [](tl::ptr<i32> y) {
    auto p = tl::program_id(0), q = tl::program_id(1), r = tl::program_id(2);
    auto flat = (r * tl::num_programs(1) + q) * tl::num_programs(0) + p;
    tl::store(y + flat, p + 10 * q + 100 * r);
  });
  output<i32> out(5 * 3 * 2);
  launch(kernel, {5, 3, 2}, *out);
  std::vector<i32> want;
  for (int r = 0; r < 2; ++r)
    for (int q = 0; q < 3; ++q)
      for (int p = 0; p < 5; ++p)
        want.push_back(p + 10 * q + 100 * r);
  check_equal<i32>("grid", out.read(), want);

  output<i32> untouched(4);
  launch(kernel, {0, 3, 2}, *untouched);
  for (i32 v : untouched.read())
    CHECK(output<i32>::is_poison(v));
}

TEST_CASE("grids whose number of programs needs more than 32 bits are counted, not cut off") {
  CHECK(tessera::program_count({16384, 16384, 16}) == 4294967296ull);
  CHECK(tessera::program_count({65536, 65536, 1}) == 4294967296ull);
  CHECK(tessera::program_count({2147483647, 2, 1}) == 4294967294ull);
  CHECK(tessera::program_count({7, 0, 3}) == 0);
  const auto kernel = tl::kernel("large_grid", [](tl::ptr<i32> y) { tl::store(y, 1); });
  output<i32> out(1);
  if (!dev().is_cpu())
    CHECK_THROWS_AS(launch(kernel, {65536, 65536, 1}, *out), tessera::error);
  CHECK_THROWS_AS(launch(kernel, {std::int64_t(1) << 33, 1, 1}, *out), tessera::error);
}

TEST_CASE("persistent programs share the rows between them") {
  const auto kernel = tl::kernel("persistent", [](tl::ptr<i32> y, tl::val<i32> rows) {
    for (auto row : tl::range(tl::program_id(0), rows, tl::num_programs(0)))
      tl::store(y + row * 4 + tl::arange(0, 4), row * 4 + tl::arange(0, 4));
  });
  for (int programs : {1, 3, 16, 50}) {
    output<i32> out(40 * 4);
    launch(kernel, programs, *out, 40);
    check_equal<i32>(std::to_string(programs) + " programs", out.read(), iota<i32>(160));
  }
}

TEST_CASE("scalar arguments of every width arrive whole") {
  const auto kernel = tl::kernel("arguments", [](tl::val<i8> a, tl::val<f16> h, tl::ptr<double> y, tl::val<double> d,
                                                 tl::val<bf16> b, tl::val<i64> n, tl::val<float> f) {
    tl::store(y, a.to<double>());
    tl::store(y + 1, h.to<double>());
    tl::store(y + 2, d);
    tl::store(y + 3, b.to<double>());
    tl::store(y + 4, n.to<double>());
    tl::store(y + 5, f.to<double>());
  });
  output<double> out(6);
  launch(kernel, 1, i8(-3), f16(42.0f), *out, 0.1, bf16(1.5f), i64(-5000000000), 0.1f);
  check_equal<double>("arguments", out.read(), {-3, 42, 0.1, 1.5, -5000000000.0, 0.10000000149011612});
}

TEST_CASE("arguments equal to 1 or divisible by 16 are specialised on, and the result stays the same") {
  const auto kernel =
      tl::kernel("specialised", [](tl::ptr<const i32> x, tl::ptr<i32> y, tl::val<i32> stride, tl::val<u64> scale) {
        auto at = tl::arange(0, 64);
        tl::store(y + at, tl::load(x + at * stride) * scale.to<i32>());
      });
  input<i32> in(iota<i32>(64 * 48));
  for (i32 stride : {1, 2, 16, 48, 0})
    for (u64 scale : {u64(1), u64(16), u64(3)}) {
      output<i32> out(64);
      launch(kernel, 1, *in, *out, stride, scale);
      std::vector<i32> want(64);
      for (int i = 0; i < 64; ++i)
        want[i] = i * stride * static_cast<i32>(scale);
      check_equal<i32>("stride " + std::to_string(stride), out.read(), want);
    }
}

TEST_CASE("one helper function, signed and unsigned in one kernel") {
  const auto kernel =
      tl::kernel("helper", [](tl::ptr<const i32> x, tl::ptr<const u32> u, tl::ptr<i32> y, tl::ptr<u32> v) {
        auto at = tl::arange(0, 4);
        auto [smin, sdiv, sshr] = smaller_quotient_half(tl::load(x + at), tl::load(x + 4 + at));
        auto [umin, udiv, ushr] = smaller_quotient_half(tl::load(u + at), tl::load(u + 4 + at));
        tl::store(y + at, smin);
        tl::store(y + 4 + at, sdiv);
        tl::store(y + 8 + at, sshr);
        tl::store(v + at, umin);
        tl::store(v + 4 + at, udiv);
        tl::store(v + 8 + at, ushr);
      });
  const std::vector<u32> bits = {0xFFFFFFFF, 1, 0x80000000, 5, 1, 0xFFFFFFFF, 0x7FFFFFFF, 5};
  std::vector<i32> same(8);
  std::memcpy(same.data(), bits.data(), 32);
  input<i32> x(same);
  input<u32> u(bits);
  output<i32> y(12);
  output<u32> v(12);
  launch(kernel, 1, *x, *u, *y, *v);
  check_equal<i32>("signed", y.read(),
                   {-1, -1, std::numeric_limits<i32>::min(), 5, -1, -1, -1, 1, -1, 0, -1073741824, 2});
  check_equal<u32>("unsigned", v.read(), {1, 1, 2147483647, 5, 4294967295, 0, 1, 1, 2147483647, 0, 1073741824, 2});
}

TEST_CASE("division of a run that crosses zero is not constant") {
  const auto kernel = tl::kernel("crossing", [](tl::ptr<const i32> x, tl::ptr<i32> y) {
    auto t = (tl::arange(0, 8) - 64) / 32;
    tl::store(y + tl::arange(0, 8), t);
    tl::store(y + 8 + tl::arange(0, 8), tl::load(x + (t + 2)));
  });
  input<i32> in(std::vector<i32>{70, 71, 72});
  output<i32> out(16);
  launch(kernel, 1, *in, *out);
  check_equal<i32>("crossing zero", out.read(), {-2, -1, -1, -1, -1, -1, -1, -1, 70, 71, 71, 71, 71, 71, 71, 71});
}

TEST_CASE("variables count up and down, pointers too; a null pointer is seen") {
  const auto kernel = tl::kernel("counts", [](tl::ptr<const float> x, tl::ptr<const float> bias, tl::ptr<float> y) {
    auto at = tl::arange(0, 8);
    tl::var sum = tl::zeros<float>({8});
    tl::var from = x;
    tl::var trips = 0;
    tl::while_([&] { return trips < 3; }, [&] {
      sum += tl::load(from++ + at);
      ++trips;
      --sum;
    });
    tl::if_(bias != nullptr, [&] { sum += tl::load(bias + at); });
    tl::store(y + at, sum);
    tl::store(y + 8, trips--.to<float>());
    tl::store(y + 9, trips.to<float>());
    tl::store(y + 10, tl::where(nullptr == bias, 1.0f, tl::scalar<float>(0)));
  });
  const auto x = iota<float>(16);
  input<float> in(x);
  for (bool with_bias : {false, true}) {
    output<float> out(11);
    if (with_bias)
      launch(kernel, 1, *in, *in, *out);
    else
      launch(kernel, 1, *in, nullptr, *out);
    std::vector<float> want;
    for (int i = 0; i < 8; ++i)
      want.push_back(static_cast<float>(3 * i + (with_bias ? i : 0))); // i + i + 1 + i + 2 - 3
    want.insert(want.end(), {3, 2, with_bias ? 0.0f : 1.0f});
    check_equal<float>(with_bias ? "with bias" : "without", out.read(), want);
  }
}

TEST_CASE("an assertion on the device names itself and its line; the next launch works") {
  const auto kernel = tl::kernel("asserts", [](tl::ptr<const i32> x, tl::ptr<i32> y) {
    auto at = tl::arange(0, 32);
    auto v = tl::load(x + at);
    tl::device_assert(v >= 0, "the input must not be negative");
    tl::store(y + at, v);
  });
  if (!dev().is_cpu())
    return; // a GPU's trap ends its context, and with it this process's other tests
  auto x = iota<i32>(32);
  output<i32> out(32);
  launch(kernel.with_options({.debug = true}), 1, *input<i32>(x), *out);
  check_equal<i32>("assertion that holds", out.read(), x);
  x[17] = -1;
  input<i32> bad(x);
  launch(kernel, 1, *bad, *out); // not compiled in
  check_equal<i32>("without debug", out.read(), x);
  try {
    launch(kernel.with_options({.debug = true}), 1, *bad, *out);
    FAIL("the assertion did not stop the kernel");
  } catch (const tessera::error &e) {
    CHECK(e.stage() == tessera::stage::execute);
    CHECK(std::string(e.what()).find("the input must not be negative") != std::string::npos);
    CHECK(std::string(e.what()).find("control.cpp") != std::string::npos);
  }
  launch(kernel.with_options({.debug = true}), 1, *input<i32>(iota<i32>(32)), *out);
  check_equal<i32>("afterwards", out.read(), iota<i32>(32));
}

TEST_CASE("facts the user states are used and do no harm where they hold") {
  const auto kernel = tl::kernel("hints", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<i32> n) {
    tl::assume(n > 0);
    auto base = tl::multiple_of(tl::program_id(0) * n, {16});
    auto at = tl::max_contiguous(tl::multiple_of(base + tl::arange(0, 64), {16}), {64});
    tl::store(y + at, tl::load(x + at) + 1.0f);
  });
  const auto x = random<float>(256, -1, 1);
  input<float> in(x);
  output<float> out(256);
  launch(kernel, 4, *in, *out, 64);
  std::vector<float> want(256);
  for (int i = 0; i < 256; ++i)
    want[i] = x[i] + 1;
  check_equal<float>("hints", out.read(), want);
}

TEST_SUITE_END();
