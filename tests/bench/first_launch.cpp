// What the first launch of a kernel costs, from the kernel object to the end of its run, by stage. Run it twice with
// one TESSERA_CACHE_DIR: the first process compiles, the second finds the code on disk.
//
//     TESSERA_CACHE_DIR=/tmp/c first_launch --target=cuda [--kernel=softmax] [--json=FILE --bench]
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;
using tl::all, tl::newaxis;
using num = tl::val<tl::i32>;

namespace {

struct row_config {
  int block = 1024;
};
const auto softmax = tl::kernel("softmax", [](tl::ptr<const float> x, tl::ptr<float> y, num cols, row_config c) {
  auto col = tl::arange(0, c.block);
  auto in = col < cols;
  auto v = tl::load(x + tl::program_id(0) * cols + col, in, {.other = -tl::inf});
  auto e = tl::exp(v - tl::max(v, 0));
  tl::store(y + tl::program_id(0) * cols + col, e / tl::sum(e, 0), in);
});

const auto layer_norm =
    tl::kernel("layer_norm", [](tl::ptr<const float> x, tl::ptr<const float> w, tl::ptr<const float> b,
                                tl::ptr<float> y, num cols, tl::val<float> eps, row_config c) {
      auto col = tl::arange(0, c.block);
      auto in = col < cols;
      auto n = cols.to<float>();
      auto v = tl::load(x + tl::program_id(0) * cols + col, in);
      auto d = tl::where(in, v - tl::sum(v, 0) / n, 0.0f);
      auto scale = tl::rsqrt(tl::sum(d * d, 0) / n + eps);
      tl::store(y + tl::program_id(0) * cols + col, d * scale * tl::load(w + col, in) + tl::load(b + col, in), in);
    });

struct matmul_config {
  int bm = 128, bn = 128, bk = 64, stages = 3;
};
const auto matmul = tl::kernel("matmul", [](tl::ptr<const tl::f16> a, tl::ptr<const tl::f16> b, tl::ptr<tl::f16> c,
                                            num M, num N, num K, matmul_config t) {
  auto m = tl::program_id(0) * t.bm + tl::arange(0, t.bm), n = tl::program_id(1) * t.bn + tl::arange(0, t.bn);
  tl::var acc = tl::zeros<float>({t.bm, t.bn});
  for (auto k0 : tl::range(0, K, t.bk, {.stages = t.stages})) {
    auto k = k0 + tl::arange(0, t.bk);
    auto x = tl::load(a + m[all, newaxis] * K + k[newaxis, all], m[all, newaxis] < M && k[newaxis, all] < K);
    auto y = tl::load(b + k[all, newaxis] * N + n[newaxis, all], k[all, newaxis] < K && n[newaxis, all] < N);
    acc = tl::dot(x, y, acc);
  }
  tl::store(c + m[all, newaxis] * N + n[newaxis, all], acc.to<tl::f16>(), m[all, newaxis] < M && n[newaxis, all] < N);
});

/// Launches once and reports; the kernel object exists, nothing else of it does.
template <class K, class... A>
void first(tessera::cli &cli, const tessera::stream &s, const K &kernel, tessera::grid g, A &...args) {
  const auto start = std::chrono::steady_clock::now();
  kernel(s, g, args...);
  s.synchronize();
  tessera::bench_result total;
  total.runs = 1;
  total.median = total.p20 = total.p80 = total.min = total.max = total.mean =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  const auto handle = kernel.prepare(s, args...);
  std::vector<std::pair<std::string, double>> stages{{"cached", handle.cached()}, {"passes", 0}};
  for (auto &t : handle.times())
    if (t.name == "trace" || t.name == "cache" || t.name == "llir" || t.name == "llvm-opt" || t.name == "isel" ||
        t.name == "ptxas" || t.name == "driver-jit" || t.name == "load")
      stages.emplace_back(t.name, t.milliseconds);
    else
      stages[1].second += t.milliseconds;
  cli.report("first launch of " + kernel.name(), total, stages);
  if (cli.bench())
    std::printf("%s", tessera::timing_report(handle).c_str());
}

} // namespace

int main(int argc, char **argv) {
  std::string only;
  tessera::cli cli("first_launch", "Time from a kernel object to the end of its first run, by stage");
  cli.option("--kernel", only, "softmax, layer_norm or matmul; all in this order without it");
  return cli.run(argc, argv, [&] {
    const tessera::device device = cli.device();
    const tessera::stream s(device);
    tessera::device_buffer<float> x(device, 1 << 20), y(device, 1 << 20);
    tessera::device_buffer<tl::f16> a(device, 1 << 18), b(device, 1 << 18), c(device, 1 << 18);
    x.fill(1.0f), y.fill(1.0f), a.fill(tl::f16(1.0f)), b.fill(tl::f16(1.0f));
    s.synchronize();
    const int cols = 1024, size = 512;
    const float eps = 1e-5f;
    const tessera::compile_options warps{.num_warps = device.target().str() == "cpu" ? 0 : 4};
    if (only.empty() || only == "softmax")
      first(cli, s, softmax.with({}, warps), {64}, x, y, cols);
    if (only.empty() || only == "layer_norm")
      first(cli, s, layer_norm.with({}, warps), {64}, x, x, x, y, cols, eps);
    if (only.empty() || only == "matmul")
      first(cli, s, matmul.with({}, warps), {4, 4}, a, b, c, size, size, size);
    return true;
  });
}
