#pragma once
// Measuring: the time of a launch, and tables, JSON and plots of many.
#include <functional>
#include <string>
#include <vector>

#include <tessera/export.h>
#include <tessera/runtime/stream.h>

namespace tessera {

struct bench_options {
  double warmup_ms = 25;   ///< run at least this long before measuring
  double measure_ms = 100; ///< and measure about this long
  int min_runs = 5, max_runs = 10000; ///< the smaller one counts where they contradict each other
  bool flush_cache = true; ///< overwrite the last level cache before every run, so that inputs come from memory
  /// Before every run, not timed; gives work to the same stream, such as restoring what a run changes.
  std::function<void()> setup = {};
  /// After every run, not timed either.
  std::function<void()> finish = {};
};

/// Times of single runs, in milliseconds.
struct bench_result {
  double median = 0, min = 0, max = 0, mean = 0;
  double p20 = 0, p80 = 0;
  int runs = 0;
  /// At the median.
  [[nodiscard]] double gbytes_per_s(double bytes) const { return bytes / median * 1e-6; }
  [[nodiscard]] double tflops(double flops) const { return flops / median * 1e-9; }
};

/// Runs `work`, which gives work to `s`, over and over, and times each run: with the device's events on a GPU, so that
/// the host's cost of launching is left out, with the clock on the CPU. Throws what `work` throws.
TESSERA_API bench_result bench(const stream &s, const std::function<void()> &work, const bench_options &options = {});

/// Value at fraction `q` (0 … 1) of the sorted samples, linear between neighbours.
TESSERA_API double quantile(std::vector<double> samples, double q);

/// One line of a plot, with a band from low to high around it where those are given.
struct plot_line {
  std::string name;
  std::vector<double> x, y, low = {}, high = {};
};
struct plot_options {
  bool log_x = false, log_y = false;
};

/// Writes lines as a picture, SVG or PNG by the file's name; values that are not finite (or beyond 1e300), or not positive
/// on a logarithmic axis, are gaps. Throws tessera::error (launch) for other names, and where the file cannot be written.
TESSERA_API void write_plot(const std::string &file, const std::string &title, const std::string &x_label,
                            const std::string &y_label, const std::vector<plot_line> &lines,
                            const plot_options &options = {});

} // namespace tessera
