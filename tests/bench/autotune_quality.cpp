// How long the autotuner takes, and how good its choice is: tunes a matrix product over 28 configurations, then
// measures every one of them at length and compares.
//
//     TESSERA_CACHE_DIR=$(mktemp -d) autotune_quality --target=cuda [--m --n --k]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;
using tl::all, tl::newaxis;
using num = tl::val<tl::i32>;

namespace {

struct config {
  int bm = 128, bn = 128, bk = 64, stages = 3;
};
const auto matmul = tl::kernel("matmul", [](tl::ptr<const tl::f16> a, tl::ptr<const tl::f16> b, tl::ptr<tl::f16> c,
                                            num M, num N, num K, config t) {
  auto pid = tl::program_id(0);
  auto down = tl::cdiv(M, t.bm);
  auto m = pid % down * t.bm + tl::arange(0, t.bm), n = pid / down * t.bn + tl::arange(0, t.bn);
  tl::var acc = tl::zeros<float>({t.bm, t.bn});
  for (auto k0 : tl::range(0, K, t.bk, {.stages = t.stages})) {
    auto k = k0 + tl::arange(0, t.bk);
    auto x = tl::load(a + m[all, newaxis] * K + k[newaxis, all], m[all, newaxis] < M && k[newaxis, all] < K);
    auto y = tl::load(b + k[all, newaxis] * N + n[newaxis, all], k[all, newaxis] < K && n[newaxis, all] < N);
    acc = tl::dot(x, y, acc);
  }
  tl::store(c + m[all, newaxis] * N + n[newaxis, all], acc.to<tl::f16>(), m[all, newaxis] < M && n[newaxis, all] < N);
});

std::vector<config> tiles() {
  std::vector<config> all_tiles;
  for (auto [bm, bn] : {std::pair(64, 64), {64, 128}, {128, 64}, {128, 128}, {64, 256}, {128, 256}, {256, 128}})
    for (int bk : {32, 64})
      all_tiles.push_back({.bm = bm, .bn = bn, .bk = bk});
  return all_tiles;
}

} // namespace

int main(int argc, char **argv) {
  std::int64_t m = 4096, n = 4096, k = 4096;
  tessera::cli cli("autotune_quality", "Time and choice of the autotuner for a matrix product");
  cli.option("--m", m, "rows of A"), cli.option("--n", n, "columns of B"), cli.option("--k", k, "columns of A");
  return cli.run(argc, argv, [&] {
    const tessera::device device = cli.device();
    const tessera::stream s(device);
    tessera::device_buffer<tl::f16> a(device, m * k), b(device, k * n), c(device, m * n);
    a.fill(tl::f16(0.5f)), b.fill(tl::f16(0.25f));
    const auto grid = [&](const config &t) {
      return tl::cdiv(m, std::int64_t(t.bm)) * tl::cdiv(n, std::int64_t(t.bn));
    };
    const auto candidates = tl::candidates<config>(tiles(), {{.num_warps = 4}, {.num_warps = 8}});
    const auto tuned = tl::autotune(matmul, {.arguments = "a b c m n k", .key = "m n k", .candidates = candidates});

    const auto start = std::chrono::steady_clock::now();
    const auto report = tuned.tune(s, grid, a, b, c, m, n, k);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    cli.report(report);

    // Twice in turn, so that a machine that slows down slows all of them.
    std::vector<double> times(candidates.size(), std::numeric_limits<double>::infinity());
    for (int round = 0; round < 2; ++round)
      for (std::size_t i = 0; i < candidates.size(); ++i)
        if (report.trials[i].measured()) {
          const auto kernel = matmul.with(candidates[i].config, candidates[i].options);
          times[i] = std::min(
              times[i],
              tessera::bench(s, [&] { kernel(s, grid, a, b, c, m, n, k); }, {.flush_cache = !device.is_cpu()}).median);
        }
    const double best = *std::min_element(times.begin(), times.end()), chosen = times[std::size_t(report.best)];
    std::printf("tuned in %.1f s%s; the choice takes %.4f ms, the best of all %.4f ms: %+.1f %%\n", seconds,
                report.from_cache ? " (found on disk)" : "", chosen, best, 100 * (chosen / best - 1));
    return chosen <= 1.02 * best;
  });
}
