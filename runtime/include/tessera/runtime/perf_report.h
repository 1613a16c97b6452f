#pragma once
// Sweeps: some ways to do a thing, measured over a range of sizes, as a table, CSV, JSON and a picture.
//
//     tessera::perf_report sweep({.title = "Copy", .x_label = "elements", .y_label = "GB/s",
//                                 .x = tessera::geometric_steps(1 << 12, 1 << 26, 2), .log_x = true});
//     sweep.line("tile 1024", [&](double n) {
//       return tessera::gbytes_per_s(tessera::bench(s, [&] { copy(s, …); }), 8 * n);
//     });
//     sweep.run();
//     sweep.write("copy.svg");
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <tessera/export.h>
#include <tessera/runtime/bench.h>

namespace tessera {

/// A measured number and the quantiles around it.
struct perf_value {
  double value = std::numeric_limits<double>::quiet_NaN();
  double low = value, high = value; ///< at 20 % and 80 % of the runs
  perf_value() = default;
  perf_value(double v) : value(v) {}
  perf_value(double v, double p20, double p80) : value(v), low(p20), high(p80) {}
};
/// Milliseconds of a run; what `bytes` or `flops` a run make of them. Rates are high where times are low.
inline perf_value milliseconds(const bench_result &r) { return {r.median, r.p20, r.p80}; }
inline perf_value gbytes_per_s(const bench_result &r, double bytes) {
  return {bytes / r.median * 1e-6, bytes / r.p80 * 1e-6, bytes / r.p20 * 1e-6};
}
inline perf_value tflops(const bench_result &r, double flops) {
  return {flops / r.median * 1e-9, flops / r.p80 * 1e-9, flops / r.p20 * 1e-9};
}

/// first, first + step, … up to last; first, first * factor, … up to last.
TESSERA_API std::vector<double> linear_steps(double first, double last, double step);
TESSERA_API std::vector<double> geometric_steps(double first, double last, double factor);

class TESSERA_API perf_report {
public:
  struct options {
    std::string title = {}, x_label = "x", y_label = "y";
    std::vector<double> x = {};
    bool log_x = false, log_y = false;
    bool progress = true; ///< a line on the standard error while it runs, where that is a terminal
  };
  explicit perf_report(options o) : options_(std::move(o)) {}

  /// Adds a way to do it. `measure` is called once for every x; where it throws, the line has a gap and a note says
  /// why.
  perf_report &line(std::string name, std::function<perf_value(double x)> measure);
  /// Measures: all lines at the first x, then at the next, so that a slow drift of the machine spoils none of them
  /// alone.
  perf_report &run();

  struct result {
    std::string name;
    std::vector<perf_value> values; ///< one for every x
    std::vector<std::string> notes; ///< why there is none; else empty
  };
  [[nodiscard]] const options &settings() const noexcept { return options_; }
  [[nodiscard]] const std::vector<result> &results() const noexcept { return results_; }

  [[nodiscard]] std::string table() const;
  [[nodiscard]] std::string csv() const;
  [[nodiscard]] std::string json() const;
  /// In the format of the file's name: .csv, .json, .svg or .png. Throws tessera::error (launch) for other names, and where
  /// the file cannot be written.
  void write(const std::string &file) const;

private:
  options options_;
  std::vector<std::function<perf_value(double)>> measures_;
  std::vector<result> results_;
};

class kernel_handle;
/// Where the time of a kernel's first launch went: tracing, every pass, LLVM, the assembler, loading, with bars.
TESSERA_API std::string timing_report(const kernel_handle &k);

} // namespace tessera
