// The CPU target against OpenBLAS, on the same threads in the same run: square products of f32, and f64; for the types
// that OpenBLAS lacks, what they reach. OpenBLAS is looked for at run time (Debian: libopenblas0-pthread).
#include <cmath>
#include <cstdio>
#include <dlfcn.h>
#include <functional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;

struct config {
  int bm = 128, bn = 256, bk = 64;
};

template <class T>
using sum_of =
    std::conditional_t<std::is_integral_v<T>, tl::i32, std::conditional_t<std::is_same_v<T, double>, double, float>>;

template <class T>
const auto matmul = tl::kernel("matmul", [](tl::ptr<const T> A, tl::ptr<const T> B, tl::ptr<sum_of<T>> C,
                                            tl::val<tl::i32> M, tl::val<tl::i32> N, tl::val<tl::i32> K, config c) {
  using tl::all, tl::newaxis;
  auto columns = tl::cdiv(N, c.bn), pid = tl::program_id(0);
  auto m = pid / columns * c.bm + tl::arange(0, c.bm), n = pid % columns * c.bn + tl::arange(0, c.bn);
  tl::var acc = tl::zeros<sum_of<T>>({c.bm, c.bn});
  for (auto k0 : tl::range(0, K, c.bk)) {
    auto k = k0 + tl::arange(0, c.bk);
    auto a = tl::load(A + m[all, newaxis] * K + k[newaxis, all], m[all, newaxis] < M && k[newaxis, all] < K);
    auto b = tl::load(B + k[all, newaxis] * N + n[newaxis, all], k[all, newaxis] < K && n[newaxis, all] < N);
    acc = tl::dot(a, b, acc);
  }
  tl::store(C + m[all, newaxis] * N + n[newaxis, all], acc, m[all, newaxis] < M && n[newaxis, all] < N);
});

/// cblas_sgemm or cblas_dgemm.
template <class T>
using gemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, T alpha, const T *a, int lda,
                      const T *b, int ldb, T beta, T *c, int ldc);

struct settings {
  std::int64_t size = 1024, bm = 128, bn = 256, bk = 64, rounds = 5;
  double min_ratio = 0;
};

template <class T> bool measure(tessera::cli &cli, const settings &s, const char *type, void *blas) {
  const tessera::stream stream(tessera::device::cpu());
  const auto n = static_cast<std::size_t>(s.size);
  std::mt19937 bits(1);
  std::normal_distribution<float> normal;
  const auto random = [&] { return static_cast<T>(std::is_integral_v<T> ? 40 * normal(bits) : normal(bits)); };
  std::vector<T> a(n * n), b(n * n);
  for (T &v : a)
    v = random();
  for (T &v : b)
    v = random();
  std::vector<sum_of<T>> ours(n * n);
  const auto kernel =
      matmul<T>.with({.bm = static_cast<int>(s.bm), .bn = static_cast<int>(s.bn), .bk = static_cast<int>(s.bk)});
  const std::int64_t programs = tl::cdiv(s.size, s.bm) * tl::cdiv(s.size, s.bn);
  const auto run = [&] { kernel(stream, programs, a, b, ours, s.size, s.size, s.size); };
  run();
  double worst = 0;
  for (std::size_t row = 0; row < n; row += n / 7 + 1)
    for (std::size_t column = 0; column < n; ++column) {
      double want = 0;
      for (std::size_t k = 0; k < n; ++k)
        want += static_cast<double>(a[row * n + k]) * static_cast<double>(b[k * n + column]);
      worst = std::fmax(worst, std::fabs(static_cast<double>(ours[row * n + column]) - want));
    }
  const double flops = 2.0 * std::pow(static_cast<double>(s.size), 3);
  const std::string what = std::string(type) + " " + std::to_string(s.size) + "^3";
  const bool right = worst <= (std::is_integral_v<T> ? 0 : 1e-5 * std::sqrt(static_cast<double>(n)) * 10);
  if (!right)
    std::printf("%s: the results are wrong by %.1e\n", what.c_str(), worst);
  std::function<void()> peer;
  if constexpr (std::is_floating_point_v<T>)
    if (blas)
      peer = [&, product = reinterpret_cast<gemm<T>>(dlsym(blas, sizeof(T) == 4 ? "cblas_sgemm" : "cblas_dgemm")),
              theirs = std::vector<T>(n * n)]() mutable {
        const int side = static_cast<int>(n);
        constexpr int row_major = 101, as_it_is = 111;
        product(row_major, as_it_is, as_it_is, side, side, side, 1, a.data(), side, b.data(), side, 0, theirs.data(),
                side);
      };
  // In turns, and of each the best round: other work on the machine slows some of them.
  tessera::bench_result best, best_peer;
  for (int round = 0; round < s.rounds; ++round) {
    const auto keep = [&](tessera::bench_result &kept, const std::function<void()> &work) {
      const auto now = tessera::bench(stream, work, {.measure_ms = 60});
      if (round == 0 || now.median < kept.median)
        kept = now;
    };
    keep(best, run);
    if (peer)
      keep(best_peer, peer);
  }
  cli.report("tessera " + what, best, {{"tflops", best.tflops(flops)}});
  if (!peer)
    return right;
  cli.report("OpenBLAS " + what, best_peer, {{"tflops", best_peer.tflops(flops)}});
  const double ratio = best_peer.median / best.median;
  std::printf("%s: %.2f of OpenBLAS's speed\n", what.c_str(), ratio);
  return right && ratio >= s.min_ratio;
}

int main(int argc, char **argv) {
  settings s;
  std::string type = "f32";
  tessera::cli cli("matmul_cpu", "Matrix product on the CPU against OpenBLAS");
  cli.option("--size", s.size, "rows and columns of all matrices");
  cli.option("--type", type, "f32, f64, f16, bf16, i8 or all");
  cli.option("--bm", s.bm, "rows of a tile");
  cli.option("--bn", s.bn, "columns of a tile");
  cli.option("--bk", s.bk, "depth of a tile");
  cli.option("--rounds", s.rounds, "rounds, of which the best counts");
  cli.option("--min-ratio", s.min_ratio, "fail where Tessera reaches less than this part of OpenBLAS's speed");

  return cli.run(argc, argv, [&] {
    void *blas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!blas)
      std::puts("libopenblas.so.0 is not here: nothing to compare with");
    else if (auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(blas, "openblas_set_num_threads")))
      set_threads(static_cast<int>(tessera::cpu_threads()));
    std::printf("%s, %u threads\n", tessera::device::cpu().name().c_str(), tessera::cpu_threads());
    bool ok = true;
    const auto chosen = [&](const char *name) { return type == name || type == "all"; };
    if (chosen("f32"))
      ok &= measure<float>(cli, s, "f32", blas);
    if (chosen("f64"))
      ok &= measure<double>(cli, s, "f64", blas);
    if (chosen("f16"))
      ok &= measure<tl::f16>(cli, s, "f16", blas);
    if (chosen("bf16"))
      ok &= measure<tl::bf16>(cli, s, "bf16", blas);
    if (chosen("i8"))
      ok &= measure<tl::i8>(cli, s, "i8", blas);
    return ok;
  });
}
