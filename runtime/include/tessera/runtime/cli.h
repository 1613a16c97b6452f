#pragma once
// The command line that all examples and benchmarks share.
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/export.h>
#include <tessera/runtime/autotune.h>
#include <tessera/runtime/bench.h>
#include <tessera/runtime/device.h>
#include <tessera/runtime/launch.h>
#include <tessera/runtime/perf_report.h>

namespace tessera {

/// Parses --target, --dump, --compile-only, --autotune, --bench, --json, --plot and a program's own options, and writes what those
/// ask for.
///
///     int main(int argc, char **argv) {
///       std::int64_t rows = 1823;
///       tessera::cli cli("fused_softmax", "Softmax of the rows of a matrix");
///       cli.option("--rows", rows, "rows of the matrix");
///       return cli.run(argc, argv, [&] {
///         if (cli.compile_only()) return cli.show(softmax.compile_for(cli.target()));
///         tessera::stream s(cli.device());
///         …
///         return correct;
///       });
///     }
class TESSERA_API cli {
public:
  cli(std::string name, std::string description);
  cli(const cli &) = delete;
  cli &operator=(const cli &) = delete;
  ~cli();

  /// A program's own option, which keeps `value` where it is not given. Integers are sizes, from `least` to `most`.
  void option(const std::string &flag, std::int64_t &value, const std::string &help, std::int64_t least = 1,
              std::int64_t most = std::numeric_limits<std::int64_t>::max());
  void option(const std::string &flag, double &value, const std::string &help);
  void option(const std::string &flag, std::string &value, const std::string &help);
  void flag(const std::string &flag, bool &value, const std::string &help);

  /// Parses and calls `body`, which returns whether all results were right. Gives main's result: 0 if so, 1 if not, 2
  /// for a wrong command line or an exception, whose text it prints; 77, which test drivers take for "skipped", where
  /// the machine lacks the device of --target.
  int run(int argc, char **argv, const std::function<bool()> &body);

  /// The device of --target, "auto" without it.
  [[nodiscard]] tessera::device device() const;
  /// The target alone, for --compile-only: "auto" is the best device's; "cuda" and "hip" without
  /// one are sm_90a and gfx942.
  [[nodiscard]] tessera::target target() const;
  [[nodiscard]] bool compile_only() const noexcept;
  /// Whether to search the program's configurations for the fastest.
  [[nodiscard]] bool autotune() const noexcept;
  [[nodiscard]] bool bench() const noexcept;
  /// Whether --plot asks for a picture.
  [[nodiscard]] bool plotting() const noexcept;

  /// Prints a compiled kernel's summary and how long each stage took. Gives true, for compile-only bodies.
  bool show(const kernel_handle &k) const;
  /// Adds a measurement: printed as a line, and written to the --json file at the end.
  void report(const std::string &what, const bench_result &r, std::vector<std::pair<std::string, double>> figures = {});
  /// Prints what was tried, the fastest first, and adds it to the --json file.
  void report(const tuning_report &r);
  /// Prints a sweep's table and writes it to the --plot file, in the format of its name (.svg, .png, .csv, .json).
  void report(const perf_report &r);
  /// Keeps a line for the --plot file, if one is asked for.
  void plot(const std::string &title, const std::string &x_label, const std::string &y_label,
            std::vector<plot_line> lines);

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace tessera
