// Softmax of every row of a matrix in one kernel: each element is read once and written once.
//
// Two forms of the grid: one program a row, and persistent programs, as many as the device runs at once, that stride
// over the rows. The rest is the check (float64, row sums, nothing left unwritten) and the sweep over row lengths.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;
using src = tl::ptr<const float>;
using dst = tl::ptr<float>;
using i32 = tl::val<tl::i32>;

struct config {
  int block = 1024; ///< columns of the tile: a power of two, no fewer than the matrix has
  int stages = 2;   ///< rows in flight in the persistent form
};

/// One row. A plain function: it is traced as part of whatever kernel calls it.
void softmax_row(src x, dst y, i32 cols, const config &c) {
  auto col = tl::arange(0, c.block);
  auto in = col < cols;
  auto v = tl::load(x + col, in, {.other = -tl::inf}); // columns past the end count for neither maximum nor sum
  auto e = tl::exp(v - tl::max(v, 0));
  tl::store(y + col, e / tl::sum(e, 0), in);
}

const auto row_softmax = tl::kernel("softmax", [](src x, dst y, i32 ld, i32 cols, config c) {
  auto row = tl::program_id(0);
  softmax_row(x + row * ld, y + row * ld, cols, c);
});

const auto persistent_softmax =
    tl::kernel("persistent_softmax", [](src x, dst y, i32 ld, i32 rows, i32 cols, config c) {
      for (auto row : tl::range(tl::program_id(0), rows, tl::num_programs(0), {.stages = c.stages}))
        softmax_row(x + row * ld, y + row * ld, cols, c);
    });

config config_for(std::int64_t cols) {
  return {.block = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(cols)))};
}

/// Warps of a program: on a GPU enough that a thread holds at most 32 elements; the CPU chooses by itself.
tessera::compile_options options_for(const tessera::target &t, std::int64_t cols) {
  return {.num_warps = t.str() == "cpu" ? 0 : std::clamp(config_for(cols).block / 1024, 4, 16)};
}

/// What --autotune tries: warps that share a row, with each of `configs`. The tile follows from the columns.
tl::tuning<config> search(std::string arguments, std::string key, const std::vector<config> &configs) {
  return {.arguments = std::move(arguments),
          .key = std::move(key),
          .candidates = tl::candidates<config>(
              configs, {{}, {.num_warps = 1}, {.num_warps = 2}, {.num_warps = 4}, {.num_warps = 8}, {.num_warps = 16}}),
          .heuristics = [](auto &c, auto &call) { c.config.block = config_for(call.integer("cols")).block; },
          .skip = [](auto &c, auto &call) -> std::string {
            const bool chooses = call.device().target().str() == "cpu";
            return chooses == (c.options.num_warps == 0) ? ""
                   : chooses                             ? "the CPU chooses its warps"
                                                         : "warps are to be named";
          }};
}

const auto tuned_rows = tl::autotune(row_softmax, search("x y ld cols", "cols", {{}}));
const auto tuned_persistent =
    tl::autotune(persistent_softmax,
                 search("x y ld rows cols", "rows cols", {{.stages = 1}, {.stages = 2}, {.stages = 3}, {.stages = 4}}));

/// A matrix of normal numbers on the device, and the place for its softmax.
struct problem {
  std::int64_t rows, cols;
  bool tune; ///< --autotune
  std::vector<float> host;
  tessera::device_buffer<float> x, y;

  problem(const tessera::device &d, std::int64_t rows, std::int64_t cols, bool tune)
      : rows(rows), cols(cols), tune(tune), host(random(elements(rows, cols))), x(d, host), y(d, host.size()) {}
  static std::size_t elements(std::int64_t rows, std::int64_t cols) {
    if (rows > std::numeric_limits<tl::i32>::max() / cols)
      throw tessera::error(tessera::stage::launch, "the kernels count elements with 32 bits: fewer rows or columns");
    return static_cast<std::size_t>(rows * cols);
  }
  static std::vector<float> random(std::size_t n) {
    std::mt19937 bits(1);
    std::normal_distribution<float> normal(0, 3);
    std::vector<float> v(n);
    for (std::size_t i = 0; i < n; ++i) // a sweep would else take minutes to make them
      v[i] = i < 1'000'003 ? normal(bits) : v[i - 1'000'003];
    return v;
  }

  void run(const tessera::stream &s, bool persistent) {
    const std::int64_t at_once = s.device().properties().multiprocessors * (s.device().is_cpu() ? 1 : 4);
    const std::int64_t programs = persistent ? std::min(rows, at_once) : rows;
    const auto options = options_for(s.device().target(), cols);
    if (tune && persistent)
      tuned_persistent(s, programs, x, y, cols, rows, cols);
    else if (tune)
      tuned_rows(s, programs, x, y, cols, cols);
    else if (persistent)
      persistent_softmax.with(config_for(cols), options)(s, programs, x, y, cols, rows, cols);
    else
      row_softmax.with(config_for(cols), options)(s, programs, x, y, cols, cols);
  }
  /// What --autotune found for this matrix.
  void report(tessera::cli &cli, const tessera::stream &s) {
    cli.report(tuned_rows.tune(s, rows, x, y, cols, cols));
    cli.report(tuned_persistent.tune(s, rows, x, y, cols, rows, cols));
  }

  /// Runs and compares with float64.
  bool check(const tessera::stream &s, bool persistent) {
    y.fill(std::nanf(""));
    run(s, persistent);
    s.synchronize();
    const auto result = y.to_host();
    double worst = 0, worst_sum = 0;
    std::vector<double> e(cols);
    for (std::int64_t r = 0; r < rows; ++r) {
      const float *in = host.data() + r * cols, *out = result.data() + r * cols;
      const double top = *std::max_element(in, in + cols);
      double total = 0, sum = 0;
      for (std::int64_t c = 0; c < cols; ++c)
        total += e[c] = std::exp(in[c] - top);
      for (std::int64_t c = 0; c < cols; ++c) {
        const double error = std::fabs(out[c] - e[c] / total) / (e[c] / total + 1e-6);
        worst = error <= worst ? worst : error; // NaN counts as worst
        sum += out[c];
      }
      const double off = std::fabs(sum - 1);
      worst_sum = off <= worst_sum ? worst_sum : off;
    }
    const bool ok = worst < 1e-5 && worst_sum < 1e-5;
    std::printf("%s (%s): softmax %lld x %lld, %s: relative error %.1e, row sums within %.1e of 1: %s\n",
                s.device().name().c_str(), s.device().target().str().c_str(), static_cast<long long>(rows),
                static_cast<long long>(cols), persistent ? "persistent programs" : "one program a row", worst,
                worst_sum, ok ? "right" : "WRONG");
    return ok;
  }

  tessera::bench_result time(const tessera::stream &s, bool persistent) {
    return tessera::bench(s, [&] { run(s, persistent); });
  }
  [[nodiscard]] double bytes() const { return 2.0 * sizeof(float) * static_cast<double>(rows * cols); }
};

int main(int argc, char **argv) {
  std::int64_t rows = 1823, cols = 781, bench_rows = 4096, bench_cols = 1024;
  bool sweep = false;
  tessera::cli cli("fused_softmax", "Softmax of the rows of a matrix");
  cli.option("--rows", rows, "rows of the matrix that is checked");
  cli.option("--cols", cols, "its columns", 1, 1 << 20); // a tile has no more
  cli.option("--bench-rows", bench_rows, "rows of the matrix that --bench times");
  cli.option("--bench-cols", bench_cols, "its columns", 1, 1 << 20);
  cli.flag("--sweep", sweep, "time 4096 rows of 256, 384, … 12672 columns; --plot draws them");

  return cli.run(argc, argv, [&] {
    if (cli.compile_only()) {
      const auto options = options_for(cli.target(), cols);
      cli.show(row_softmax.with(config_for(cols), options).compile_for(cli.target()));
      return cli.show(persistent_softmax.with(config_for(cols), options).compile_for(cli.target()));
    }
    const tessera::device device = cli.device();
    const tessera::stream stream(device);
    problem small(device, rows, cols, cli.autotune());
    const bool ok = small.check(stream, false) & small.check(stream, true);
    if (cli.autotune())
      small.report(cli, stream);

    if (cli.bench()) {
      problem p(device, bench_rows, bench_cols, cli.autotune());
      cli.show(row_softmax.with(config_for(p.cols), options_for(device.target(), p.cols))
                   .prepare(stream, p.x, p.y, p.cols, p.cols));
      for (bool persistent : {false, true}) {
        const auto t = p.time(stream, persistent);
        cli.report("softmax f32 " + std::to_string(p.rows) + "x" + std::to_string(p.cols) +
                       (persistent ? " persistent" : ""),
                   t, {{"gbps", t.gbytes_per_s(p.bytes())}});
      }
    }
    if (sweep || cli.plotting()) {
      tessera::perf_report report({.title = "Softmax of 4096 rows, f32, " + device.name(),
                                   .x_label = "columns",
                                   .y_label = "GB/s",
                                   .x = tessera::linear_steps(256, 12672, 128)});
      for (bool persistent : {false, true})
        report.line(persistent ? "persistent" : "one program a row", [&, persistent](double columns) {
          problem p(device, 4096, static_cast<std::int64_t>(columns), cli.autotune());
          const auto t = p.time(stream, persistent);
          cli.report("softmax f32 4096x" + std::to_string(p.cols) + (persistent ? " persistent" : ""), t,
                     {{"gbps", t.gbytes_per_s(p.bytes())}});
          return tessera::gbytes_per_s(t, p.bytes());
        });
      cli.report(report.run());
    }
    return ok;
  });
}
