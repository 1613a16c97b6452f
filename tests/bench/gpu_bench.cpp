// Vector add, softmax and layer norm at the sizes, types and configurations that the Triton peer is measured with, with
// a cold cache. Prints the best configuration of each case; tests/bench/compare.py sets --json files of both side by
// side.
//
//     gpu_bench --target=cuda --bench --json=tessera.json && compare.py tessera.json triton.json
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;

namespace {

struct config {
  int block = 1024, stages = 1;
};

const auto add = tl::kernel(
    "add", [](tl::ptr<const float> x, tl::ptr<const float> y, tl::ptr<float> out, tl::val<tl::i32> n, config c) {
      auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
      auto in = at < n;
      tl::store(out + at, tl::load(x + at, in) + tl::load(y + at, in), in);
    });

template <class T>
const auto softmax = tl::kernel("softmax", [](tl::ptr<T> out, tl::ptr<const T> x, tl::val<tl::i32> x_stride,
                                              tl::val<tl::i32> out_stride, tl::val<tl::i32> rows, tl::val<tl::i32> cols,
                                              config c) {
  auto col = tl::arange(0, c.block);
  auto in = col < cols;
  for (auto row : tl::range(tl::program_id(0), rows, tl::num_programs(0), {.stages = c.stages})) {
    auto v = tl::load(x + row * x_stride + col, in, {.other = -tl::inf}).template to<float>();
    auto e = tl::exp(v - tl::max(v, 0));
    tl::store(out + row * out_stride + col, (e / tl::sum(e, 0)).template to<T>(), in);
  }
});

const auto layer_norm =
    tl::kernel("layer_norm", [](tl::ptr<const tl::f16> x, tl::ptr<tl::f16> y, tl::ptr<const tl::f16> w,
                                tl::ptr<const tl::f16> b, tl::ptr<float> mean, tl::ptr<float> rstd,
                                tl::val<tl::i32> stride, tl::val<tl::i32> cols, tl::val<float> eps, config c) {
      auto row = tl::program_id(0);
      auto col = tl::arange(0, c.block);
      auto in = col < cols;
      auto n = cols.to<float>();
      auto v = tl::load(x + row * stride + col, in, {.other = 0.0f}).to<float>();
      auto mu = tl::sum(v, 0) / n;
      auto d = tl::where(in, v - mu, 0.0f);
      auto rs = 1.0f / tl::sqrt(tl::sum(d * d, 0) / n + eps);
      tl::store(mean + row, mu);
      tl::store(rstd + row, rs);
      auto scaled = d * rs * tl::load(w + col, in).to<float>() + tl::load(b + col, in).to<float>();
      tl::store(y + row * stride + col, scaled.to<tl::f16>(), in);
    });

int tile_of(std::int64_t cols) { return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(cols))); }

/// n normal numbers on the device; a million different ones, repeated.
template <class T> tessera::device_buffer<T> random(const tessera::device &d, std::int64_t n, float mean = 0) {
  std::mt19937 bits(1);
  std::normal_distribution<float> normal(mean, 1);
  std::vector<T> host(n);
  for (std::int64_t i = 0; i < n; ++i)
    host[i] = i < 1'000'003 ? T(normal(bits)) : host[i - 1'000'003];
  return {d, host};
}

bool every_entry = false; ///< print every configuration, not only the best

/// Times configurations of one case and reports the fastest.
class contest {
public:
  contest(tessera::cli &cli, const tessera::stream &s, std::string name, double bytes)
      : cli_(cli), stream_(s), name_(std::move(name)), bytes_(bytes) {}
  /// A configuration that the device refuses (too many warps or registers) is skipped, as the peer does; why is
  /// printed.
  void entry(std::vector<std::pair<std::string, double>> settings, const std::function<void()> &run) {
    try {
      const auto t = tessera::bench(stream_, run);
      if (every_entry)
        cli_.report("  " + name_, t, settings);
      if (!best_ || t.median < best_->median)
        best_ = t, settings_ = std::move(settings);
    } catch (const tessera::error &e) {
      std::printf("# %s: skipped: %s\n", name_.c_str(), e.what());
    }
  }
  void report() {
    if (!best_)
      throw tessera::error(tessera::stage::launch, name_ + ": no configuration ran");
    settings_.insert(settings_.begin(), {"gbps", best_->gbytes_per_s(bytes_)});
    cli_.report(name_, *best_, settings_);
  }

private:
  tessera::cli &cli_;
  const tessera::stream &stream_;
  std::string name_;
  double bytes_;
  std::optional<tessera::bench_result> best_;
  std::vector<std::pair<std::string, double>> settings_;
};

void bench_copy(tessera::cli &cli, const tessera::stream &s) {
  const std::int64_t n = std::int64_t(1) << 31;
  tessera::device_buffer<unsigned char> x(s.device(), n), y(s.device(), n);
  x.fill_bytes(1);
  contest c(cli, s, "device copy 2 GiB", 2.0 * static_cast<double>(n));
  c.entry({}, [&] { y.copy_from(std::as_const(x).view(), s); });
  c.report();
}

void bench_add(tessera::cli &cli, const tessera::stream &s) {
  for (std::int64_t n : {std::int64_t(98432), std::int64_t(1) << 24, std::int64_t(1) << 28}) {
    const auto x = random<float>(s.device(), n), y = random<float>(s.device(), n, 1);
    tessera::device_buffer<float> out(s.device(), n);
    contest c(cli, s, "vector_add f32 n=" + std::to_string(n), 12.0 * static_cast<double>(n));
    for (int block : {1024, 2048, 4096})
      for (int warps : {4, 8}) {
        const auto k = add.with({.block = block}, {.num_warps = warps});
        c.entry({{"block", block}, {"warps", warps}}, [&] { k(s, tl::cdiv(n, std::int64_t(block)), x, y, out, n); });
      }
    c.report();
  }
}

/// Whether the rows of `out` are the softmax of those of `x`, in float64 on a sample of them.
template <class T>
bool softmax_is_right(const tessera::device_buffer<T> &x, const tessera::device_buffer<T> &out, std::int64_t rows,
                      std::int64_t cols) {
  for (std::int64_t r = 0; r < rows; r += std::max<std::int64_t>(1, rows / 8)) {
    const auto in = x.slice(r * cols, cols).to_host(), got = out.slice(r * cols, cols).to_host();
    double top = -HUGE_VAL, sum = 0;
    for (T v : in)
      top = std::max(top, static_cast<double>(static_cast<float>(v)));
    for (T v : in)
      sum += std::exp(static_cast<float>(v) - top);
    for (std::int64_t i = 0; i < cols; ++i) {
      const double want = std::exp(static_cast<float>(in[i]) - top) / sum;
      if (!(std::fabs(static_cast<float>(got[i]) - want) <=
            (sizeof(T) == 2 ? 1e-3 : 1e-5) * want + (sizeof(T) == 2 ? 1e-7 : 1e-9)))
        return false;
    }
  }
  return true;
}

template <class T>
bool bench_softmax(tessera::cli &cli, const tessera::stream &s, std::int64_t rows, std::int64_t cols) {
  const auto x = random<T>(s.device(), rows * cols);
  tessera::device_buffer<T> out(s.device(), rows * cols);
  const std::string name = std::string("softmax ") + (sizeof(T) == 2 ? "float16 " : "float32 ") + std::to_string(rows) +
                           "x" + std::to_string(cols);
  contest c(cli, s, name, 2.0 * sizeof(T) * static_cast<double>(rows * cols));
  const std::int64_t sms = s.device().properties().multiprocessors;
  for (int warps : {4, 8, 16, 32})
    for (std::int64_t grid : {rows, sms * 2, sms * 4, sms * 8})
      for (int stages : {1, 2, 4}) {
        if (grid == rows && stages > 1)
          continue;
        const auto k = softmax<T>.with({.block = tile_of(cols), .stages = stages}, {.num_warps = warps});
        c.entry({{"warps", warps}, {"grid", static_cast<double>(grid)}, {"stages", stages}},
                [&] { k(s, std::min(grid, rows), out, x, cols, cols, rows, cols); });
      }
  c.report();
  const bool right = softmax_is_right(x, out, rows, cols);
  if (!right)
    std::printf("%s: WRONG\n", name.c_str());
  return right;
}

void bench_layer_norm(tessera::cli &cli, const tessera::stream &s) {
  for (std::int64_t cols : {1024, 4096, 8192, 15872}) {
    const std::int64_t rows = 4096;
    const auto x = random<tl::f16>(s.device(), rows * cols), w = random<tl::f16>(s.device(), cols, 1),
               b = random<tl::f16>(s.device(), cols);
    tessera::device_buffer<tl::f16> y(s.device(), rows * cols);
    tessera::device_buffer<float> mean(s.device(), rows), rstd(s.device(), rows);
    contest c(cli, s, "layer_norm fwd f16 " + std::to_string(rows) + "x" + std::to_string(cols),
              4.0 * static_cast<double>(rows * cols));
    for (int warps : {4, 8, 16}) {
      const auto k = layer_norm.with({.block = tile_of(cols)}, {.num_warps = warps});
      c.entry({{"warps", warps}}, [&] { k(s, rows, x, y, w, b, mean, rstd, cols, cols, 1e-5f); });
    }
    c.report();
  }
}

} // namespace

int main(int argc, char **argv) {
  std::string only;
  tessera::cli cli("gpu_bench", "The cases of the Triton peer; give --bench");
  cli.option("--only", only, "copy, vector_add, softmax or layer_norm alone");
  cli.flag("--all", every_entry, "print every configuration, not only the best of each case");
  return cli.run(argc, argv, [&] {
    if (!cli.bench()) {
      std::printf("gpu_bench measures only: give --bench\n");
      return true;
    }
    const tessera::stream s(cli.device());
    std::printf("%s\n", s.device().name().c_str());
    bool right = true;
    if (only.empty() || only == "copy")
      bench_copy(cli, s);
    if (only.empty() || only == "vector_add")
      bench_add(cli, s);
    if (only.empty() || only == "softmax") {
      for (auto [rows, cols] : {std::pair(8192, 4096), {4096, 1024}, {4096, 781}, {4096, 12672}})
        right &= bench_softmax<float>(cli, s, rows, cols);
      right &= bench_softmax<tl::f16>(cli, s, 8192, 8192);
      right &= bench_softmax<float>(cli, s, 4096, 32768);
    }
    if (only.empty() || only == "layer_norm")
      bench_layer_norm(cli, s);
    return right;
  });
}
