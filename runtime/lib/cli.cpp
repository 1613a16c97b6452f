// The shared command line, on CLI11.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <stdexcept>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/error.h>
#include <tessera/runtime/cli.h>

namespace tessera {

namespace {

/// Asked before the work, whose results would be lost: why `file` cannot be written, or nothing.
std::string why_unwritable(const std::string &file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    return "'" + file + "' is a folder";
  const bool there = std::filesystem::exists(file, ignored);
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (access(there ? file.c_str() : folder.empty() ? "." : folder.c_str(), there ? W_OK : W_OK | X_OK) == 0)
    return {};
  return fmt::format("'{}' cannot be written: {}", file, std::strerror(errno));
}

} // namespace

struct cli::impl {
  CLI::App app;
  std::string name, target = "auto", dump, json_file, plot_file;
  std::string ran_for, ran_on; ///< the device's target and name
  bool compile_only = false, bench = false, autotune = false;
  nlohmann::ordered_json results = nlohmann::ordered_json::array(), tunings = nlohmann::ordered_json::array();
  bool plotted = false, device_missing = false;

  impl(std::string description, std::string n) : app(std::move(description), n), name(std::move(n)) {
    app.add_option("--target", target,
                   "auto | cpu | cpu:emulate=ARCH | cuda[:ARCH] | hip[:ARCH]; ARCH is sm_80, sm_90a, gfx942, …")
        ->capture_default_str();
    app.add_option("--dump", dump,
                   "STAGE[,STAGE…][:DIR]: ttir ttgir llir ptx cubin amdgcn hsaco asm obj, to stdout or files");
    auto *only = app.add_flag("--compile-only", compile_only, "compile for the target; no device is needed");
    app.add_flag("--autotune", autotune, "search the configurations for the fastest (kept on disk) and show them")
        ->excludes(only);
    app.add_flag("--bench", bench, "measure")->excludes(only);
    app.add_option("--json", json_file, "write the measurements, and what --autotune tried, to this file")
        ->check(why_unwritable);
    app.add_option("--plot", plot_file, "write the sweep of the measurements to this file: .svg, .png, .csv or .json")
        ->needs("--bench")
        ->check([](const std::string &file) {
          const std::string_view form = std::string_view(file).substr(std::min(file.rfind('.'), file.size()));
          const bool known = form == ".svg" || form == ".png" || form == ".csv" || form == ".json";
          return known ? why_unwritable(file) : "'" + file + "' ends with none of .svg, .png, .csv, .json";
        });
  }

  void write_json() const {
    if (json_file.empty())
      return;
    nlohmann::ordered_json document{{"program", name}, {"target", ran_for.empty() ? target : ran_for}};
    if (!ran_on.empty())
      document["device"] = ran_on;
    document["results"] = results;
    if (!tunings.empty())
      document["autotune"] = tunings;
    std::ofstream out(json_file);
    const auto as_utf8 = nlohmann::ordered_json::error_handler_t::replace;
    if (!(out << document.dump(2, ' ', false, as_utf8) << '\n').flush())
      throw error(stage::launch, fmt::format("the file {} cannot be written", json_file));
  }
};

cli::cli(std::string name, std::string description)
    : impl_(std::make_unique<impl>(std::move(description), std::move(name))) {}
cli::~cli() = default;

void cli::option(const std::string &flag, std::int64_t &value, const std::string &help, std::int64_t least,
                 std::int64_t most) {
  const bool endless = most == std::numeric_limits<std::int64_t>::max();
  impl_->app.add_option(flag, value, help)
      ->capture_default_str()
      ->check([](const std::string &text) { // would be taken as the largest there is
        errno = 0;
        std::strtoll(text.c_str(), nullptr, 0);
        return errno == ERANGE ? "'" + text + "' does not fit into 64 bits" : "";
      })
      ->check(CLI::Range(least, most, endless ? fmt::format("≥ {}", least) : fmt::format("{} to {}", least, most)));
}
void cli::option(const std::string &flag, double &value, const std::string &help) {
  impl_->app.add_option(flag, value, help)->capture_default_str();
}
void cli::option(const std::string &flag, std::string &value, const std::string &help) {
  impl_->app.add_option(flag, value, help)->capture_default_str();
}
void cli::flag(const std::string &flag, bool &value, const std::string &help) {
  impl_->app.add_flag(flag, value, help);
}

int cli::run(int argc, char **argv, const std::function<bool()> &body) {
  try {
    impl_->app.parse(argc, argv);
    if (!impl_->json_file.empty() && !impl_->bench && !impl_->autotune)
      throw CLI::RequiresError("--json", "--bench or --autotune");
  } catch (const CLI::ParseError &e) {
    return impl_->app.exit(e) == 0 ? 0 : 2; // --help ends here too
  }
  try {
    if (!impl_->dump.empty())
      set_dump(impl_->dump);
    const bool right = body();
    if (right && impl_->autotune && impl_->tunings.empty())
      throw error(stage::launch, "this program has no configurations for --autotune to try");
    if (right && !impl_->json_file.empty() && impl_->results.empty() && impl_->tunings.empty())
      throw error(stage::launch, "this program has no measurements for the --json file");
    impl_->write_json();
    if (right && !impl_->plot_file.empty() && !impl_->plotted)
      throw error(stage::launch, "this program has nothing to plot");
    return right ? 0 : 1;
  } catch (const std::exception &e) {
    const bool no_memory = dynamic_cast<const std::bad_alloc *>(&e) || dynamic_cast<const std::length_error *>(&e);
    std::fflush(stdout);
    fmt::print(stderr, "{}: {}\n", impl_->name, no_memory ? "the host has not enough memory for these sizes" : e.what());
    return impl_->device_missing ? 77 : 2;
  }
}

tessera::device cli::device() const {
  (void)target(); // a target that cannot be parsed is a mistake, not a device that is missing
  try {
    const tessera::device d = tessera::device::open(impl_->target);
    impl_->ran_for = d.target().str(), impl_->ran_on = d.name();
    return d;
  } catch (const error &) {
    impl_->device_missing = true;
    throw;
  }
}

tessera::target cli::target() const {
  const std::string &text = impl_->target;
  if (text == "auto")
    return tessera::device::best().target();
  for (const auto &[vendor, usual] : {std::pair(std::string("cuda"), tessera::target{target_kind::cuda, "sm_90a"}),
                                      std::pair(std::string("hip"), tessera::target{target_kind::hip, "gfx942"})}) {
    const bool ordinal = text.starts_with(vendor + ":") && text.size() > vendor.size() + 1 &&
                         text.find_first_not_of("0123456789", vendor.size() + 1) == text.npos;
    if (text != vendor && !ordinal)
      continue;
    for (auto &d : tessera::device::all())
      if (d.target().kind == usual.kind)
        return tessera::device::open(text).target();
    return usual;
  }
  return parse_target(text);
}

bool cli::compile_only() const noexcept { return impl_->compile_only; }
bool cli::autotune() const noexcept { return impl_->autotune; }
bool cli::bench() const noexcept { return impl_->bench; }
bool cli::plotting() const noexcept { return !impl_->plot_file.empty(); }

bool cli::show(const kernel_handle &k) const {
  fmt::print("{}\n{}", k.summary(), timing_report(k));
  return true;
}

void cli::report(const std::string &what, const bench_result &r, std::vector<std::pair<std::string, double>> figures) {
  std::string line =
      fmt::format("{:<40} {:9.4f} ms (20 % {:.4f}, 80 % {:.4f}, {} runs)", what, r.median, r.p20, r.p80, r.runs);
  nlohmann::ordered_json entry{{"name", what},    {"median_ms", r.median}, {"p20_ms", r.p20}, {"p80_ms", r.p80},
                               {"min_ms", r.min}, {"max_ms", r.max},       {"runs", r.runs}};
  for (auto &[name, value] : figures) {
    line += fmt::format("  {} {:.6g}", name, value);
    entry[name] = value;
  }
  fmt::print("{}\n", line);
  std::fflush(stdout);
  impl_->results.push_back(std::move(entry));
}

void cli::report(const tuning_report &r) {
  fmt::print("{}", r.table());
  std::fflush(stdout);
  impl_->tunings.push_back(nlohmann::ordered_json::parse(r.json()));
}

void cli::report(const perf_report &r) {
  fmt::print("{}", r.table());
  if (impl_->plot_file.empty())
    return;
  r.write(impl_->plot_file);
  impl_->plotted = true;
  fmt::print("plot: {}\n", impl_->plot_file);
}

void cli::plot(const std::string &title, const std::string &x_label, const std::string &y_label,
               std::vector<plot_line> lines) {
  if (impl_->plot_file.empty())
    return;
  write_plot(impl_->plot_file, title, x_label, y_label, lines);
  impl_->plotted = true;
  fmt::print("plot: {}\n", impl_->plot_file);
}

} // namespace tessera
