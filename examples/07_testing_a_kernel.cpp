// How to test a kernel, on a matrix product.
//
// 1. Edge shapes: 1, primes, one less and one more than a tile; random inputs; memory that may not be read holds NaN,
// and
//    memory that may not be written is looked at afterwards.
// 2. A test must be able to fail: the same kernel without the mask of its K loop is right wherever K is a multiple of
// the
//    tile, and must be caught everywhere else.
// 3. How exact must a sum of K products be? Its rounding errors are like a random walk, so the tolerance grows with
//    sqrt(K). Added up in f16 the error leaves that bound far behind, which is why tl::dot adds up in f32.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;
using i32 = tl::val<tl::i32>;

struct config {
  int bm = 32, bn = 32, bk = 32;
  bool masked_k = true; ///< false: the mistake
};

template <class Sum>
const auto matmul = tl::kernel("matmul", [](tl::ptr<const tl::f16> A, tl::ptr<const tl::f16> B, tl::ptr<Sum> C, i32 M,
                                            i32 N, i32 K, config c) {
  using tl::all, tl::newaxis;
  auto m = tl::program_id(0) * c.bm + tl::arange(0, c.bm), n = tl::program_id(1) * c.bn + tl::arange(0, c.bn);
  tl::var acc = tl::zeros<Sum>({c.bm, c.bn});
  for (auto k0 : tl::range(0, K, c.bk)) {
    auto k = k0 + tl::arange(0, c.bk);
    auto a_inside = m[all, newaxis] < M, b_inside = n[newaxis, all] < N;
    auto a =
        tl::load(A + m[all, newaxis] * K + k[newaxis, all], c.masked_k ? a_inside && k[newaxis, all] < K : a_inside);
    auto b =
        tl::load(B + k[all, newaxis] * N + n[newaxis, all], c.masked_k ? k[all, newaxis] < K && b_inside : b_inside);
    acc = tl::dot(a, b, acc);
  }
  tl::store(C + m[all, newaxis] * N + n[newaxis, all], acc, m[all, newaxis] < M && n[newaxis, all] < N);
});

/// `n` normal numbers, and behind them `margin` that nobody may use.
std::vector<tl::f16> random(std::size_t n, std::size_t margin, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  std::vector<tl::f16> v(n + margin, tl::f16(std::nanf("")));
  for (std::size_t i = 0; i < n; ++i) {
    float x = normal(bits);
    v[i] = tl::f16(std::fabs(x) < 0x1p-14f ? 0 : x); // smaller f16 are zeros to the MI200's matrix cores
  }
  return v;
}

struct outcome {
  double error = 0;     ///< largest, relative to the size of a sum of K random products, |a| |b| / sqrt(K)
  double tolerance = 0; ///< what f32 sums may have of it
  bool outside = false; ///< something was written behind C
  [[nodiscard]] bool pass() const { return error <= tolerance && !outside; }
};

/// Rounding errors of a sum of K terms add up like a random walk: sqrt(K) eps. Tensor cores cut bits off instead of
/// rounding, so the steps have a direction; 8 leaves room for that.
double sum_tolerance(std::int64_t K) { return 8 * std::sqrt(static_cast<double>(K)) * 0x1p-23; }

/// Runs one shape and compares with float64.
template <class Sum>
outcome test(const tessera::stream &s, std::int64_t M, std::int64_t N, std::int64_t K, const config &c) {
  // The margins let the wrong kernel read past its operands without a fault.
  const auto a = random(M * K, c.bk, 1), b = random(K * N, c.bk * N, 2);
  const std::size_t margin = 64;
  tessera::device_buffer<tl::f16> da(s.device(), a), db(s.device(), b);
  tessera::device_buffer<Sum> dc(s.device(), M * N + margin);
  dc.fill(Sum(std::nanf("")));
  matmul<Sum>.with(c)(s, {tl::cdiv(M, std::int64_t(c.bm)), tl::cdiv(N, std::int64_t(c.bn))}, da, db, dc, M, N, K);
  s.synchronize();
  const auto got = dc.to_host();

  outcome o;
  const double root = std::sqrt(static_cast<double>(K));
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t n = 0; n < N; ++n) {
      double sum = 0, a_norm = 0, b_norm = 0;
      for (std::int64_t k = 0; k < K; ++k) {
        const double x = static_cast<double>(a[m * K + k]), y = static_cast<double>(b[k * N + n]);
        sum += x * y, a_norm += x * x, b_norm += y * y;
      }
      const double size = std::sqrt(a_norm * b_norm) / root;
      const double error = size > 0 ? std::fabs(static_cast<double>(got[m * N + n]) - sum) / size : 0;
      o.error = error <= o.error ? o.error : error; // NaN stays
    }
  for (std::size_t i = M * N; i < got.size(); ++i)
    o.outside |= !std::isnan(static_cast<double>(got[i]));
  o.tolerance = sum_tolerance(K);
  return o;
}

int main(int argc, char **argv) {
  std::int64_t longest = 4096;
  tessera::cli cli("testing_a_kernel", "Edge shapes, a mistake that must be caught, and the error of long sums");
  cli.option("--longest", longest, "the longest sum", 16, 1 << 20);

  return cli.run(argc, argv, [&] {
    if (cli.compile_only()) {
      cli.show(matmul<tl::f16>.compile_for(cli.target()));
      return cli.show(matmul<float>.compile_for(cli.target()));
    }
    const tessera::device device = cli.device();
    const tessera::stream stream(device);
    std::printf("%s (%s)\n", device.name().c_str(), device.target().str().c_str());
    bool ok = true;

    std::printf("\n     M    N    K   right kernel        mask of K forgotten\n");
    for (auto [m, n, k] : {std::tuple(1, 1, 1),
                           {1, 100, 64},
                           {31, 33, 32},
                           {32, 32, 96},
                           {33, 31, 31},
                           {17, 33, 65},
                           {64, 64, 40},
                           {97, 53, 127}}) {
      const outcome right = test<float>(stream, m, n, k, {}),
                    broken = test<float>(stream, m, n, k, {.masked_k = false});
      const bool must_fail = k % config{}.bk != 0;
      const bool as_expected = right.pass() && broken.pass() != must_fail;
      std::printf("%6d %4d %4d   %-4s (%.1e)      %-6s %s%s\n", m, n, k, right.pass() ? "pass" : "FAIL", right.error,
                  broken.pass() ? "passes" : "caught", must_fail ? "" : "(K is a multiple of the tile: nothing to see)",
                  as_expected ? "" : "  WRONG");
      ok = ok && as_expected;
    }

    std::printf("\n     K   tolerance 8 sqrt(K) eps   error, f32 sums   error, f16 sums\n");
    double f16_error = 0;
    for (std::int64_t k = 16; k <= longest; k *= 4) {
      const outcome wide = test<float>(stream, 64, 64, k, {}), narrow = test<tl::f16>(stream, 64, 64, k, {});
      std::printf("%6lld   %23.1e   %15.1e   %15.1e%s\n", static_cast<long long>(k), wide.tolerance, wide.error,
                  narrow.error, wide.pass() ? "" : "  WRONG");
      ok = ok && wide.pass() && !narrow.outside;
      f16_error = narrow.error;
    }
    if (cli.bench()) { // K is a multiple of the tile here: both are right
      constexpr std::int64_t n = 512;
      tessera::device_buffer<tl::f16> a(device, random(n * n, 0, 1)), b(device, random(n * n, 0, 2));
      tessera::device_buffer<float> c(device, n * n);
      for (bool masked : {true, false}) {
        const config tile{.masked_k = masked};
        const auto k = matmul<float>.with(tile);
        const auto t = tessera::bench(stream, [&] { k(stream, {n / tile.bm, n / tile.bn}, a, b, c, n, n, n); });
        cli.report(masked ? "matmul f16 512^3" : "matmul f16 512^3 without the mask of K", t,
                   {{"tflops", t.tflops(2.0 * n * n * n)}});
      }
    }

    const bool worse = !(f16_error <= sum_tolerance(longest));
    std::printf("\nf16 sums %s the tolerance of f32 sums: %s\n", worse ? "exceed" : "keep",
                ok && worse ? "right" : "WRONG");
    return ok && worse;
  });
}
