// Vector add, softmax, layer norm and matrix products at the sizes, types and configurations that the Triton peer is
// measured with, with a cold cache. Prints the best configuration of each case; tests/bench/compare.py sets --json
// files of both side by side.
//
//     gpu_bench --target=cuda --bench --json=tessera.json && compare.py tessera.json triton.json
//
// With --export=DIR every configuration's machine code is written there, for contest.py.
#include "kernel_index.h"

#include <algorithm>
#include <array>
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
template <class T>
tessera::device_buffer<T> random(const tessera::device &d, std::int64_t n, float mean = 0, unsigned seed = 1) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal(mean, 1);
  std::vector<T> host(n);
  std::uniform_int_distribution<int> small(-8, 7); // as the peer's integers
  for (std::int64_t i = 0; i < n; ++i)
    if (i >= 1'000'003)
      host[i] = host[i - 1'000'003];
    else if constexpr (std::is_integral_v<T>)
      host[i] = static_cast<T>(small(bits));
    else
      host[i] = T(normal(bits));
  return {d, host};
}

bool every_entry = false; ///< print every configuration, not only the best
std::string match;        ///< only cases whose name contains it
std::int64_t group = 8;   ///< block rows of a matrix product launched together

/// What a case does, and the rate that is reported of it.
struct work {
  const char *rate;
  double amount;
  [[nodiscard]] double per_second(const tessera::bench_result &t) const { // in units of 1e9 bytes or 1e12 operations
    return amount / t.median * (rate == std::string("gbps") ? 1e-6 : 1e-9);
  }
};
work bytes(double n) { return {"gbps", n}; }
work flops(double n) { return {"tflops", n}; }

/// Times configurations of one case and reports the fastest.
class contest {
public:
  contest(tessera::cli &cli, const tessera::stream &s, std::string name, work w)
      : cli_(cli), stream_(s), name_(std::move(name)), work_(w) {}
  [[nodiscard]] bool wanted() const { return name_.find(match) != std::string::npos; }
  /// A configuration that the device refuses (too many warps or registers) is skipped, as the peer does; why is
  /// printed.
  void entry(std::vector<std::pair<std::string, double>> settings, const std::function<void()> &run) {
    if (!wanted())
      return;
    try {
      const auto t = tessera::bench(stream_, run);
      if (every_entry) {
        auto figures = settings;
        figures.insert(figures.begin(), {work_.rate, work_.per_second(t)});
        cli_.report("  " + name_, t, figures);
      }
      if (!best_ || t.median < best_->median)
        best_ = t, settings_ = std::move(settings), best_run_ = run;
    } catch (const tessera::error &e) {
      std::printf("# %s: skipped: %s\n", name_.c_str(), e.what());
    }
  }
  /// False where no configuration ran.
  bool report() {
    if (!wanted())
      return true;
    if (!best_) {
      std::printf("%s: no configuration ran\n", name_.c_str());
      return false;
    }
    settings_.insert(settings_.begin(), {work_.rate, work_.per_second(*best_)});
    cli_.report(name_, *best_, settings_);
    return true;
  }
  void run_best() const { best_run_(); }

private:
  tessera::cli &cli_;
  const tessera::stream &stream_;
  std::string name_;
  work work_;
  std::optional<tessera::bench_result> best_;
  std::function<void()> best_run_;
  std::vector<std::pair<std::string, double>> settings_;
};

bool bench_copy(tessera::cli &cli, const tessera::stream &s) {
  const std::int64_t n = std::int64_t(1) << 31;
  tessera::device_buffer<unsigned char> x(s.device(), n), y(s.device(), n);
  x.fill_bytes(1);
  contest c(cli, s, "device copy 2 GiB", bytes(2.0 * static_cast<double>(n)));
  c.entry({}, [&] { y.copy_from(std::as_const(x).view(), s); });
  return c.report();
}

/// What is tried of a case.
template <class Kernel> struct configuration {
  kernel_index::settings settings;
  Kernel kernel;
  std::int64_t programs;
};
template <class Kernel> using configurations = std::vector<configuration<std::remove_cvref_t<Kernel>>>;

constexpr std::int64_t add_sizes[] = {98432, 1 << 24, 1 << 28};
std::string add_name(std::int64_t n) { return "vector_add f32 n=" + std::to_string(n); }
auto add_configurations(std::int64_t n) {
  configurations<decltype(add)> list;
  for (int block : {1024, 2048, 4096})
    for (int warps : {4, 8})
      list.push_back({{{"block", block}, {"warps", warps}},
                      add.with({.block = block}, {.num_warps = warps}),
                      tl::cdiv(n, std::int64_t(block))});
  return list;
}

bool bench_add(tessera::cli &cli, const tessera::stream &s) {
  bool ran = true;
  for (std::int64_t n : add_sizes) {
    const auto x = random<float>(s.device(), n), y = random<float>(s.device(), n, 1);
    tessera::device_buffer<float> out(s.device(), n);
    contest c(cli, s, add_name(n), bytes(12.0 * static_cast<double>(n)));
    for (auto &[settings, k, programs] : add_configurations(n))
      c.entry(settings, [&] { k(s, programs, x, y, out, n); });
    ran &= c.report();
  }
  return ran;
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

template <class T> std::string softmax_name(std::int64_t rows, std::int64_t cols) {
  return std::string("softmax ") + (sizeof(T) == 2 ? "float16 " : "float32 ") + std::to_string(rows) + "x" +
         std::to_string(cols);
}
template <class T> auto softmax_configurations(std::int64_t rows, std::int64_t cols, std::int64_t sms) {
  configurations<decltype(softmax<T>)> list;
  for (int warps : {4, 8, 16, 32})
    for (std::int64_t grid : {rows, sms * 2, sms * 4, sms * 8})
      for (int stages : {1, 2, 4})
        if (grid != rows || stages == 1)
          list.push_back({{{"warps", warps}, {"grid", static_cast<double>(grid)}, {"stages", stages}},
                          softmax<T>.with({.block = tile_of(cols), .stages = stages}, {.num_warps = warps}),
                          std::min(grid, rows)});
  return list;
}
/// Calls f<element type>(rows, cols) for every case.
void each_softmax(const auto &f) {
  for (auto [rows, cols] : {std::pair(8192, 4096), {4096, 1024}, {4096, 781}, {4096, 12672}})
    f.template operator()<float>(rows, cols);
  f.template operator()<tl::f16>(8192, 8192);
  f.template operator()<float>(4096, 32768);
}

template <class T>
bool bench_softmax(tessera::cli &cli, const tessera::stream &s, std::int64_t rows, std::int64_t cols) {
  const auto x = random<T>(s.device(), rows * cols);
  tessera::device_buffer<T> out(s.device(), rows * cols);
  const std::string name = softmax_name<T>(rows, cols);
  contest c(cli, s, name, bytes(2.0 * sizeof(T) * static_cast<double>(rows * cols)));
  for (auto &[settings, k, programs] : softmax_configurations<T>(rows, cols, s.device().properties().multiprocessors))
    c.entry(settings, [&] { k(s, programs, out, x, cols, cols, rows, cols); });
  const bool right = c.report() && (!c.wanted() || softmax_is_right(x, out, rows, cols));
  if (!right)
    std::printf("%s: WRONG\n", name.c_str());
  return right;
}

constexpr std::int64_t norm_rows = 4096, norm_cols[] = {1024, 4096, 8192, 15872};
std::string norm_name(std::int64_t cols) {
  return "layer_norm fwd f16 " + std::to_string(norm_rows) + "x" + std::to_string(cols);
}
auto norm_configurations(std::int64_t cols) {
  configurations<decltype(layer_norm)> list;
  for (int warps : {4, 8, 16})
    list.push_back({{{"warps", warps}}, layer_norm.with({.block = tile_of(cols)}, {.num_warps = warps}), norm_rows});
  return list;
}

bool bench_layer_norm(tessera::cli &cli, const tessera::stream &s) {
  bool ran = true;
  for (std::int64_t cols : norm_cols) {
    const auto x = random<tl::f16>(s.device(), norm_rows * cols), w = random<tl::f16>(s.device(), cols, 1),
               b = random<tl::f16>(s.device(), cols);
    tessera::device_buffer<tl::f16> y(s.device(), norm_rows * cols);
    tessera::device_buffer<float> mean(s.device(), norm_rows), rstd(s.device(), norm_rows);
    contest c(cli, s, norm_name(cols), bytes(4.0 * static_cast<double>(norm_rows * cols)));
    for (auto &[settings, k, programs] : norm_configurations(cols))
      c.entry(settings, [&] { k(s, programs, x, y, w, b, mean, rstd, cols, cols, 1e-5f); });
    ran &= c.report();
  }
  return ran;
}

// ---- matrix products ------------------------------------------------------------------------------------------------

struct mm_config {
  int bm = 128, bn = 128, bk = 64, group = 8, stages = 3;
};

/// The element type of C, and of the sums.
template <class T>
using mm_result = std::conditional_t<std::is_integral_v<T>, tl::i32, std::conditional_t<sizeof(T) == 1, tl::f16, T>>;
template <class T> using mm_sum = std::conditional_t<std::is_integral_v<T>, tl::i32, float>;

// The peer's kernel: rows and columns past the edge wrap around, so that only K needs masks. f32 is multiplied as tf32.
template <class T>
const auto matmul = tl::kernel("matmul", [](tl::ptr<const T> a, tl::ptr<const T> b, tl::ptr<mm_result<T>> c,
                                            tl::val<tl::i32> M, tl::val<tl::i32> N, tl::val<tl::i32> K,
                                            tl::val<tl::i32> am, tl::val<tl::i32> ak, tl::val<tl::i32> bk,
                                            tl::val<tl::i32> bn, tl::val<tl::i32> cm, tl::val<tl::i32> cn,
                                            mm_config s) {
  using tl::all, tl::newaxis;
  auto pid = tl::program_id(0);
  auto per = tl::cdiv(N, s.bn) * s.group;
  auto first = pid / per * s.group;
  auto rows = tl::minimum(tl::cdiv(M, s.bm) - first, s.group);
  auto m = (first + pid % per % rows) * s.bm + tl::arange(0, s.bm);
  auto n = pid % per / rows * s.bn + tl::arange(0, s.bn);
  auto k = tl::arange(0, s.bk);
  auto row = m % M, col = n % N;
  tl::var x = a + row[all, newaxis] * am + k[newaxis, all] * ak;
  tl::var y = b + k[all, newaxis] * bk + col[newaxis, all] * bn;
  tl::var acc = tl::zeros<mm_sum<T>>({s.bm, s.bn});
  for (auto i : tl::range(0, tl::cdiv(K, s.bk), {.stages = s.stages})) {
    auto left = K - i * s.bk;
    acc = tl::dot(tl::load(x, k[newaxis, all] < left), tl::load(y, k[all, newaxis] < left), acc,
                  {.input_precision = tl::precision::tf32});
    x += s.bk * ak;
    y += s.bk * bk;
  }
  tl::store(c + m[all, newaxis] * cm + n[newaxis, all] * cn, tl::cast<mm_result<T>>(acc),
            m[all, newaxis] < M && n[newaxis, all] < N);
});

/// Eight rows of C against float64.
template <class T>
bool product_is_right(const tessera::device_buffer<T> &a, const tessera::device_buffer<T> &b,
                      const tessera::device_buffer<mm_result<T>> &c, std::int64_t M, std::int64_t N, std::int64_t K,
                      bool transposed) {
  const auto hb = b.to_host();
  const double exact = std::is_integral_v<T> ? 0 : sizeof(T) == 4 ? 0x1p-9 : 0x1p-11; // of a product, or of the result
  for (std::int64_t r = 0; r < M; r += std::max<std::int64_t>(1, M / 8)) {
    const auto x = a.slice(r * K, K).to_host();
    const auto got = c.slice(r * N, N).to_host();
    std::vector<double> want(N);
    for (std::int64_t k = 0; k < K; ++k)
      for (std::int64_t n = 0; n < N; ++n)
        want[n] += static_cast<double>(x[k]) * static_cast<double>(hb[transposed ? n * K + k : k * N + n]);
    // Hopper adds products of fp8, 32 at a time, to a sum of which it keeps 13 bits behind the first: the errors are
    // cut off, so they add up.
    const bool short_sums = !std::is_integral_v<T> && sizeof(T) == 1;
    const double root = std::sqrt(static_cast<double>(K)), steps = static_cast<double>(K) / 32;
    const double allowed = (exact * 8 + (short_sums ? steps * 0x1p-12 : 0)) * root;
    for (std::int64_t n = 0; n < N; ++n)
      if (!(std::fabs(static_cast<double>(got[n]) - want[n]) <= allowed + 8 * exact * std::fabs(want[n])))
        return false;
  }
  return true;
}

kernel_index::settings settings_of(const mm_config &c, int warps) {
  return {{"bm", c.bm}, {"bn", c.bn}, {"bk", c.bk}, {"stages", c.stages}, {"warps", warps}};
}

/// One case: its sizes, and every configuration of the peer's list; the last is not on it, and is for tf32.
struct mm_case {
  const char *type;
  std::int64_t m, n, k;
  bool transposed = false; ///< B is stored column by column

  [[nodiscard]] std::string name() const {
    return std::string("matmul ") + type + " " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
           (transposed ? " B^T" : "");
  }
  [[nodiscard]] double operations() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
  [[nodiscard]] std::int64_t b_row() const { return transposed ? 1 : n; }
  [[nodiscard]] std::int64_t b_col() const { return transposed ? k : 1; }
  [[nodiscard]] std::int64_t programs(const mm_config &c) const {
    return tl::cdiv(m, std::int64_t(c.bm)) * tl::cdiv(n, std::int64_t(c.bn));
  }
  [[nodiscard]] std::vector<std::pair<mm_config, int>> configurations(std::size_t element_bytes) const {
    std::vector<std::pair<mm_config, int>> list;
    for (auto [bm, bn, bk, stages, warps] : std::initializer_list<std::array<int, 5>>{{128, 256, 64, 3, 8},
                                                                                      {128, 128, 64, 4, 4},
                                                                                      {128, 128, 64, 3, 8},
                                                                                      {256, 128, 64, 3, 8},
                                                                                      {64, 256, 64, 4, 4},
                                                                                      {128, 64, 64, 4, 4},
                                                                                      {64, 128, 64, 4, 4},
                                                                                      {64, 64, 64, 4, 4},
                                                                                      {128, 256, 128, 3, 8},
                                                                                      {128, 128, 128, 3, 8},
                                                                                      {128, 128, 32, 4, 4},
                                                                                      {128, 128, 32, 3, 4}})
      list.push_back({{.bm = m <= 16 ? 16 : bm,
                       .bn = bn,
                       .bk = element_bytes == 4 ? std::min(bk, 32) : bk,
                       .group = static_cast<int>(group),
                       .stages = stages},
                      warps});
    return list;
  }
};

std::string text(const mm_config &c, int warps) {
  return std::to_string(c.bm) + "x" + std::to_string(c.bn) + "x" + std::to_string(c.bk) + ", " +
         std::to_string(c.stages) + " stages, " + std::to_string(warps) + " warps";
}

/// --compile-only: what each configuration takes.
template <class T> bool list_matmul(const tessera::cli &cli, const mm_case &p) {
  if (p.name().find(match) == std::string::npos)
    return true;
  for (auto [c, warps] : p.configurations(sizeof(T))) {
    std::string what;
    try { // parameters 3 to 11 are M, N, K and the strides
      tessera::specialization spec;
      const std::int64_t values[] = {0, 0, 0, p.m, p.n, p.k, p.k, 1, p.b_row(), p.b_col(), p.n, 1};
      for (std::size_t i = 0; i < std::size(values); ++i) {
        spec.divisible_by_16 |= std::uint64_t(values[i] % 16 == 0) << i;
        spec.equal_to_1 |= std::uint64_t(values[i] == 1) << i;
      }
      spec.below_2g = 7;
      what = matmul<T>.with(c, {.num_warps = warps}).compile_for(cli.target(), spec).summary();
    } catch (const tessera::error &e) {
      what = e.message();
    }
    std::printf("%-34s %-36s %s\n", p.name().c_str(), text(c, warps).c_str(), what.c_str());
  }
  return true;
}

template <class T> bool bench_matmul(tessera::cli &cli, const mm_case &p) {
  if (cli.compile_only())
    return list_matmul<T>(cli, p);
  const tessera::stream s(cli.device());
  contest contest(cli, s, p.name(), flops(p.operations()));
  if (!contest.wanted())
    return true;
  const auto a = random<T>(s.device(), p.m * p.k), b = random<T>(s.device(), p.n * p.k, 0, 2);
  tessera::device_buffer<mm_result<T>> c(s.device(), p.m * p.n);
  for (auto [at, warps] : p.configurations(sizeof(T))) {
    const auto k = matmul<T>.with(at, {.num_warps = warps});
    const std::int64_t programs = p.programs(at);
    kernel_index::settings settings = settings_of(at, warps);
    try {
      const auto compiled = k.prepare(s, a, b, c, p.m, p.n, p.k, p.k, 1, p.b_row(), p.b_col(), p.n, 1);
      settings.emplace_back("registers", compiled.registers());
      settings.emplace_back("spills", compiled.spills());
    } catch (const tessera::error &) { // the entry says why
    }
    contest.entry(settings, [&s, &a, &b, &c, p, k, programs] {
      k(s, programs, a, b, c, p.m, p.n, p.k, p.k, 1, p.b_row(), p.b_col(), p.n, 1);
    });
  }
  if (!contest.report())
    return false;
  c.fill_bytes(0xff);
  contest.run_best();
  s.synchronize();
  const bool right = product_is_right(a, b, c, p.m, p.n, p.k, p.transposed);
  if (!right)
    std::printf("%s: WRONG\n", p.name().c_str());
  return right;
}

/// Calls f<element type>(case) for every case.
void each_matmul(const auto &f) {
  f.template operator()<tl::f16>({"f16", 4096, 4096, 4096});
  f.template operator()<tl::f16>({"f16", 8192, 8192, 8192});
  f.template operator()<tl::bf16>({"bf16", 8192, 8192, 8192, true});
  for (int n : {512, 1024, 2048})
    f.template operator()<tl::f16>({"f16", n, n, n});
  f.template operator()<tl::f16>({"f16", 16, 4096, 4096, true});
  f.template operator()<tl::f16>({"f16", 4096, 4096, 781});
  f.template operator()<float>({"tf32", 4096, 4096, 4096});
  f.template operator()<tl::f8e4m3>({"f8e4m3", 8192, 8192, 8192, true});
  f.template operator()<tl::i8>({"i8", 4096, 4096, 4096, true});
}

bool bench_matmuls(tessera::cli &cli) {
  bool right = true;
  each_matmul([&]<class T>(const mm_case &p) { right &= bench_matmul<T>(cli, p); });
  return right;
}

// ---- export ---------------------------------------------------------------------------------------------------------

/// Writes the chosen cases' kernels; buffers have the names of the kernels' parameters.
void export_kernels(const tessera::cli &cli, const std::string &folder, const auto &chosen) {
  kernel_index index(folder);
  using arguments = std::vector<kernel_index::argument>;
  const auto put = [&](const std::string &name, const auto &list, const arguments &with) {
    if (name.find(match) != std::string::npos)
      for (auto &[settings, k, programs] : list)
        index.add(name, settings, k, programs, with);
  };
  const auto i32 = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  if (chosen("vector_add"))
    for (std::int64_t n : add_sizes)
      put(add_name(n), add_configurations(n), {"x", "y", "out", i32(n)});
  const std::int64_t sms = cli.compile_only() ? 132 : cli.device().properties().multiprocessors; // 132: an H200's
  if (chosen("softmax"))
    each_softmax([&]<class T>(std::int64_t rows, std::int64_t cols) {
      put(softmax_name<T>(rows, cols), softmax_configurations<T>(rows, cols, sms),
          {"out", "x", i32(cols), i32(cols), i32(rows), i32(cols)});
    });
  if (chosen("layer_norm"))
    for (std::int64_t cols : norm_cols)
      put(norm_name(cols), norm_configurations(cols),
          {"x", "y", "w", "b", "mean", "rstd", i32(cols), i32(cols), 1e-5f});
  if (chosen("matmul"))
    each_matmul([&]<class T>(const mm_case &p) {
      configurations<decltype(matmul<T>)> list;
      for (auto [at, warps] : p.configurations(sizeof(T)))
        list.push_back({settings_of(at, warps), matmul<T>.with(at, {.num_warps = warps}), p.programs(at)});
      put(p.name(), list,
          {"a", "b", "c", i32(p.m), i32(p.n), i32(p.k), i32(p.k), 1, i32(p.b_row()), i32(p.b_col()), i32(p.n), 1});
    });
  index.write(cli);
}

} // namespace

int main(int argc, char **argv) {
  std::string only, folder;
  tessera::cli cli("gpu_bench",
                   "The cases of the Triton peer; give --bench, or --compile-only for what the products take");
  cli.option("--only", only, "some of copy, vector_add, softmax, layer_norm, matmul, separated by commas");
  cli.option("--match", match, "only cases with this in their name");
  cli.option("--group", group, "block rows of a matrix product launched together");
  cli.option("--export", folder, "write the machine code of every configuration to this folder, for contest.py");
  cli.flag("--all", every_entry, "print every configuration, not only the best of each case");
  return cli.run(argc, argv, [&] {
    const auto chosen = [&](const std::string &part) {
      return only.empty() || ("," + only + ",").find("," + part + ",") != std::string::npos;
    };
    if (!folder.empty()) {
      export_kernels(cli, folder, chosen);
      return true;
    }
    if (cli.compile_only())
      return bench_matmuls(cli);
    if (!cli.bench()) {
      std::printf("gpu_bench measures only: give --bench\n");
      return true;
    }
    const tessera::stream s(cli.device());
    std::printf("%s\n", s.device().name().c_str());
    bool right = true;
    if (chosen("copy"))
      right &= bench_copy(cli, s);
    if (chosen("vector_add"))
      right &= bench_add(cli, s);
    if (chosen("softmax"))
      each_softmax([&]<class T>(std::int64_t rows, std::int64_t cols) { right &= bench_softmax<T>(cli, s, rows, cols); });
    if (chosen("layer_norm"))
      right &= bench_layer_norm(cli, s);
    if (chosen("matmul"))
      right &= bench_matmuls(cli);
    return right;
  });
}
