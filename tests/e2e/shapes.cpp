// Operations that move values: reshape, transpose, expand, broadcast, join, split, cat; alone and in chains that force
// every kind of layout conversion. Results are compared bit by bit.
#include "harness.h"

using namespace e2e;

namespace {

using tl::all, tl::newaxis;

struct tile_shape {
  int rows = 16, cols = 32;
};

auto grid_of(int rows, int cols) {
  return tl::arange(0, rows)[all, newaxis] * cols + tl::arange(0, cols)[newaxis, all];
}

/// A tile read by rows and written by columns: the layouts on both sides are coalesced differently.
template <class T> void test_transpose(tile_shape s, int num_warps) {
  const auto kernel = tl::kernel("transpose", [](tl::ptr<const T> x, tl::ptr<T> y, tl::ptr<T> z, tile_shape c) {
    auto v = tl::load(x + grid_of(c.rows, c.cols));
    tl::store(y + grid_of(c.cols, c.rows), tl::trans(v));
    tl::store(z + (tl::arange(0, c.rows)[all, newaxis] + tl::arange(0, c.cols)[newaxis, all] * c.rows), v);
  });
  const auto x = random<T>(s.rows * s.cols, -100, 100);
  input<T> in(x);
  output<T> by_trans(x.size()), by_pointer(x.size());
  launch(kernel.with(s, {.num_warps = num_warps}), 1, *in, *by_trans, *by_pointer);
  std::vector<T> want(x.size());
  for (int r = 0; r < s.rows; ++r)
    for (int c = 0; c < s.cols; ++c)
      want[c * s.rows + r] = x[r * s.cols + c];
  const auto what =
      std::to_string(s.rows) + " x " + std::to_string(s.cols) + ", num_warps " + std::to_string(num_warps);
  check_equal<T>("trans " + what, by_trans.read(), want);
  check_equal<T>("strided store " + what, by_pointer.read(), want);
}

/// Swaps neighbours by data movement: splits off the last bit of the index, swaps the halves, joins again.
tl::val<float> flip_last_pair(tl::val<float> v, int n) {
  auto [even, odd] = tl::split(tl::reshape(v, {n / 2, 2}));
  return tl::reshape(tl::join(odd, even), {n});
}

} // namespace

TEST_SUITE_BEGIN("shapes");

TEST_CASE("transposes of every shape and width") {
  for (tile_shape s : {tile_shape{1, 1}, {1, 64}, {64, 1}, {2, 2}, {16, 32}, {64, 64}, {8, 256}, {128, 16}})
    test_transpose<float>(s, 4);
  test_transpose<float>({128, 256}, 4); // more than some targets have shared memory for: goes in several passes
  for (int warps : {0, 1, 2, 8})
    test_transpose<i32>({32, 64}, warps);
  test_transpose<i8>({64, 32}, 4);
  test_transpose<f16>({64, 32}, 4);
  test_transpose<double>({16, 64}, 4);
}

TEST_CASE("permutations of three dimensions") {
  const auto kernel = tl::kernel("permute", [](tl::ptr<const i32> x, tl::ptr<i32> y) {
    auto v = tl::reshape(tl::load(x + tl::arange(0, 512)), {4, 8, 16});
    int row = 0;
    for (auto p : {tl::permute(v, {0, 1, 2}), tl::permute(v, {0, 2, 1}), tl::permute(v, {1, 0, 2}),
                   tl::permute(v, {1, 2, 0}), tl::permute(v, {2, 0, 1}), tl::permute(v, {2, 1, 0})})
      tl::store(y + 512 * row++ + tl::arange(0, 512), tl::reshape(p, {512}));
  });
  const auto x = iota<i32>(512);
  input<i32> in(x);
  output<i32> out(6 * 512);
  launch(kernel, 1, *in, *out);
  const auto y = out.read();
  const int extents[3] = {4, 8, 16}, strides[3] = {128, 16, 1};
  const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (int k = 0; k < 6; ++k) {
    std::vector<i32> want;
    for (int a = 0; a < extents[orders[k][0]]; ++a)
      for (int b = 0; b < extents[orders[k][1]]; ++b)
        for (int c = 0; c < extents[orders[k][2]]; ++c)
          want.push_back(a * strides[orders[k][0]] + b * strides[orders[k][1]] + c * strides[orders[k][2]]);
    check_equal<i32>("permute " + std::to_string(k), part(y, 512 * k, 512), want);
  }
}

TEST_CASE("reshape keeps the row-major order") {
  const auto kernel = tl::kernel("reshape", [](tl::ptr<const i32> x, tl::ptr<i32> y) {
    auto v = tl::load(x + grid_of(16, 32));
    tl::store(y + grid_of(32, 16), tl::reshape(v, {32, 16}));
    tl::store(y + 512 + tl::arange(0, 512), tl::reshape(v, {512}));
    tl::store(y + 1024 + grid_of(2, 256), tl::reshape(tl::reshape(v, {8, 4, 16}), {2, 256}));
    tl::store(y + 1536 + grid_of(512, 1), tl::reshape(v, {512, 1}));
  });
  const auto x = random<i32>(512, -1e6, 1e6);
  input<i32> in(x);
  output<i32> out(2048);
  launch(kernel, 1, *in, *out);
  const auto y = out.read();
  for (int k = 0; k < 4; ++k)
    check_equal<i32>("reshape " + std::to_string(k), part(y, 512 * k, 512), x);
}

TEST_CASE("expand and broadcast along every dimension") {
  const auto kernel = tl::kernel("broadcast", [](tl::ptr<const i32> x, tl::ptr<i32> y) {
    auto v = tl::load(x + tl::arange(0, 16));
    auto w = tl::load(x + 16 + tl::arange(0, 8));
    tl::store(y + grid_of(16, 8), v[all, newaxis] * 100 + w[newaxis, all]);
    tl::store(y + 128 + grid_of(8, 16), tl::broadcast_to(tl::expand_dims(v, 0), {8, 16}));
    tl::store(y + 256 + grid_of(8, 16), tl::broadcast_to(w[all, newaxis], {8, 16}));
    auto three = v[newaxis, all, newaxis] + w[all, newaxis, newaxis] * 2 + tl::arange(0, 4)[newaxis, newaxis, all];
    tl::store(y + 384 + tl::arange(0, 512), tl::reshape(three, {512}));
    tl::store(y + 896 + tl::arange(0, 16), tl::broadcast_to(tl::program_id(0) + 5, {16}));
  });
  const auto x = random<i32>(24, -50, 50);
  input<i32> in(x);
  output<i32> out(912);
  launch(kernel, 1, *in, *out);
  std::vector<i32> want;
  for (int r = 0; r < 16; ++r)
    for (int c = 0; c < 8; ++c)
      want.push_back(x[r] * 100 + x[16 + c]);
  for (int r = 0; r < 8; ++r)
    want.insert(want.end(), x.begin(), x.begin() + 16);
  for (int r = 0; r < 8; ++r)
    want.insert(want.end(), 16, x[16 + r]);
  for (int a = 0; a < 8; ++a)
    for (int b = 0; b < 16; ++b)
      for (int c = 0; c < 4; ++c)
        want.push_back(x[b] + x[16 + a] * 2 + c);
  want.insert(want.end(), 16, 5);
  check_equal<i32>("broadcast", out.read(), want);
}

TEST_CASE("join, split and cat") {
  const auto kernel = tl::kernel("join", [](tl::ptr<const i32> x, tl::ptr<i32> y) {
    auto a = tl::load(x + tl::arange(0, 64)), b = tl::load(x + 64 + tl::arange(0, 64));
    auto pairs = tl::join(a, b); // (64, 2)
    tl::store(y + grid_of(64, 2), pairs);
    auto [first, second] = tl::split(pairs);
    tl::store(y + 128 + tl::arange(0, 64), first - second);
    auto [even, odd] = tl::split(tl::reshape(a, {32, 2}));
    tl::store(y + 192 + tl::arange(0, 32), even);
    tl::store(y + 224 + tl::arange(0, 32), odd);
    tl::store(y + 256 + tl::arange(0, 128), tl::cat(a, b));
    tl::store(y + 384 + grid_of(8, 16), tl::cat(tl::reshape(a, {8, 8}), tl::reshape(b, {8, 8}), 1));
  });
  const auto x = random<i32>(128, -1e6, 1e6);
  input<i32> in(x);
  output<i32> out(512);
  launch(kernel, 1, *in, *out);
  std::vector<i32> want;
  for (int i = 0; i < 64; ++i)
    want.push_back(x[i]), want.push_back(x[64 + i]);
  for (int i = 0; i < 64; ++i)
    want.push_back(x[i] - x[64 + i]);
  for (int first : {0, 1})
    for (int i = first; i < 64; i += 2)
      want.push_back(x[i]);
  auto y = out.read();
  check_equal<i32>("join, split", part(y, 0, 256), want);
  check_equal<i32>("cat", part(y, 256, 128), x);
  std::vector<i32> side_by_side;
  for (int r = 0; r < 8; ++r)
    for (int half : {0, 64})
      side_by_side.insert(side_by_side.end(), x.begin() + half + 8 * r, x.begin() + half + 8 * r + 8);
  check_equal<i32>("cat along the last axis", part(y, 384, 128), side_by_side);
}

TEST_CASE("moving values moves bits: infinities, NaN payloads and signed zeros survive") {
  const auto kernel = tl::kernel("flip", [](tl::ptr<const float> x, tl::ptr<float> y) {
    auto at = tl::arange(0, 16);
    auto v = tl::load(x + at);
    tl::store(y + at, flip_last_pair(v, 16));
    // The whole tile reversed: as (2, 2, 2, 2), pairs swapped along each dimension in turn.
    tl::var r = flip_last_pair(v, 16);
    for (int half : {2, 4, 8}) {
      auto turned = tl::reshape(tl::permute(tl::reshape(r, {16 / (2 * half), 2, half}), {0, 2, 1}), {16});
      r = tl::reshape(tl::permute(tl::reshape(flip_last_pair(turned, 16), {16 / (2 * half), half, 2}), {0, 2, 1}),
                      {16});
    }
    tl::store(y + 16 + at, r);
  });
  auto run = [&](const std::vector<float> &x) {
    input<float> in(x);
    output<float> out(32);
    launch(kernel, 1, *in, *out);
    const auto y = out.read();
    bool same = true;
    for (int i = 0; i < 16; ++i)
      same = same && same_bits(y[i], x[i ^ 1]) && same_bits(y[16 + i], x[15 - i]);
    CHECK(same);
  };
  auto x = iota<float>(16);
  x[15] = HUGE_VALF;
  run(x);
  x[0] = -0.0f, x[7] = std::bit_cast<float>(0x7FC00123), x[8] = -HUGE_VALF;
  run(x);
}

TEST_CASE("a chain through row sums, column sums and transposes") {
  const auto kernel = tl::kernel("chain", [](tl::ptr<const i32> x, tl::ptr<i32> y, tile_shape c) {
    auto v = tl::load(x + grid_of(c.rows, c.cols));
    auto row = tl::sum(v, 1), col = tl::sum(v, 0);
    auto centred = v * 3 - row[all, newaxis] + col[newaxis, all];
    auto turned = tl::trans(centred) + row[newaxis, all];
    tl::store(y + grid_of(c.cols, c.rows), turned * tl::max(turned, 0)[newaxis, all]);
  });
  for (tile_shape s : {tile_shape{16, 32}, {64, 64}, {4, 256}, {128, 2}})
    for (int warps : {1, 4, 8}) {
      const auto x = random<i32>(s.rows * s.cols, -9, 9);
      input<i32> in(x);
      output<i32> out(x.size());
      launch(kernel.with(s, {.num_warps = warps}), 1, *in, *out);
      std::vector<i32> row(s.rows), col(s.cols), turned(x.size()), want(x.size());
      for (int r = 0; r < s.rows; ++r)
        for (int c = 0; c < s.cols; ++c)
          row[r] += x[r * s.cols + c], col[c] += x[r * s.cols + c];
      for (int r = 0; r < s.rows; ++r) {
        i32 top = std::numeric_limits<i32>::min();
        for (int c = 0; c < s.cols; ++c)
          top = std::max(top, turned[c * s.rows + r] = x[r * s.cols + c] * 3 - row[r] + col[c] + row[r]);
        for (int c = 0; c < s.cols; ++c)
          want[c * s.rows + r] = turned[c * s.rows + r] * top;
      }
      check_equal<i32>("chain " + std::to_string(s.rows) + " x " + std::to_string(s.cols), out.read(), want);
    }
}

TEST_SUITE_END();
