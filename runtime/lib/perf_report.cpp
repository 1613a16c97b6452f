// Sweeps and their forms; the timing report of one kernel.
#include <tessera/runtime/perf_report.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/error.h>
#include <tessera/runtime/launch.h>

namespace tessera {

std::vector<double> linear_steps(double first, double last, double step) {
  std::vector<double> steps;
  for (std::size_t i = 0; step > 0 && std::isfinite(last); ++i) {
    const double x = first + double(i) * step; // no sum of roundings
    if (!(x <= last))
      break;
    steps.push_back(x);
  }
  return steps;
}

std::vector<double> geometric_steps(double first, double last, double factor) {
  std::vector<double> steps;
  for (double x = first; factor > 1 && x > 0 && x <= last && std::isfinite(last); x *= factor)
    steps.push_back(x);
  return steps;
}

perf_report &perf_report::line(std::string name, std::function<perf_value(double x)> measure) {
  results_.push_back({std::move(name), {}, {}});
  measures_.push_back(std::move(measure));
  return *this;
}

perf_report &perf_report::run() {
  const bool shown = options_.progress && isatty(2);
  for (auto &r : results_)
    r.values.assign(options_.x.size(), {}), r.notes.assign(options_.x.size(), {});
  for (std::size_t i = 0; i < options_.x.size(); ++i)
    for (std::size_t k = 0; k < results_.size(); ++k) {
      if (shown)
        fmt::print(stderr, "\r\033[K{} {} = {:g} ({}/{}): {}", options_.title, options_.x_label, options_.x[i], i + 1,
                   options_.x.size(), results_[k].name);
      try {
        results_[k].values[i] = measures_[k](options_.x[i]);
      } catch (const std::exception &e) {
        results_[k].notes[i] = e.what();
      } catch (...) {
        results_[k].notes[i] = "something that is no std::exception was thrown";
      }
    }
  if (shown)
    fmt::print(stderr, "\r\033[K");
  return *this;
}

std::string perf_report::table() const {
  std::string text = fmt::format("{} ({})\n{:>12}", options_.title, options_.y_label, options_.x_label);
  std::vector<std::size_t> widths;
  for (auto &r : results_) {
    widths.push_back(std::max<std::size_t>(r.name.size(), 10));
    text += fmt::format("  {:>{}}", r.name, widths.back());
  }
  text += '\n';
  std::string notes;
  for (std::size_t i = 0; i < options_.x.size(); ++i) {
    text += fmt::format("{:>12.10g}", options_.x[i]);
    for (std::size_t k = 0; k < results_.size(); ++k) {
      auto &r = results_[k];
      const double v = i < r.values.size() ? r.values[i].value : NAN;
      text += std::isnan(v) ? fmt::format("  {:>{}}", "-", widths[k]) : fmt::format("  {:>{}.4g}", v, widths[k]);
      if (i < r.notes.size() && !r.notes[i].empty())
        notes += fmt::format("{} at {:g}: {}\n", r.name, options_.x[i], r.notes[i]);
    }
    text += '\n';
  }
  return text + notes;
}

namespace {
/// A name as a CSV field.
std::string quoted(const std::string &text) {
  if (text.find_first_of(",\"\n") == text.npos)
    return text;
  std::string out = "\"";
  for (char c : text)
    out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}
} // namespace

std::string perf_report::csv() const {
  std::string text = quoted(options_.x_label);
  for (auto &r : results_)
    text += fmt::format(",{},{},{}", quoted(r.name), quoted(r.name + " (20 %)"), quoted(r.name + " (80 %)"));
  text += '\n';
  auto field = [](double v) { return std::isnan(v) ? std::string() : fmt::format("{:.9g}", v); };
  for (std::size_t i = 0; i < options_.x.size(); ++i) {
    text += field(options_.x[i]);
    for (auto &r : results_) {
      const perf_value v = i < r.values.size() ? r.values[i] : perf_value();
      text += fmt::format(",{},{},{}", field(v.value), field(v.low), field(v.high));
    }
    text += '\n';
  }
  return text;
}

std::string perf_report::json() const {
  using nlohmann::ordered_json;
  auto number = [](double v) { return std::isnan(v) ? ordered_json(nullptr) : ordered_json(v); };
  ordered_json lines = ordered_json::array();
  for (auto &r : results_) {
    ordered_json points = ordered_json::array();
    for (std::size_t i = 0; i < std::min(options_.x.size(), r.values.size()); ++i) {
      ordered_json p{{"x", options_.x[i]},
                     {"value", number(r.values[i].value)},
                     {"p20", number(r.values[i].low)},
                     {"p80", number(r.values[i].high)}};
      if (!r.notes[i].empty())
        p["note"] = r.notes[i];
      points.push_back(std::move(p));
    }
    lines.push_back({{"name", r.name}, {"points", std::move(points)}});
  }
  return ordered_json{{"title", options_.title},
                      {"x_label", options_.x_label},
                      {"y_label", options_.y_label},
                      {"lines", std::move(lines)}}
      .dump(2, ' ', false, ordered_json::error_handler_t::replace); // names that are no UTF-8
}

void perf_report::write(const std::string &file) const {
  if (file.ends_with(".svg") || file.ends_with(".png")) {
    std::vector<plot_line> lines;
    for (auto &r : results_) {
      plot_line l{r.name, options_.x, {}, {}, {}};
      for (auto &v : r.values)
        l.y.push_back(v.value), l.low.push_back(v.low), l.high.push_back(v.high);
      lines.push_back(std::move(l));
    }
    return write_plot(file, options_.title, options_.x_label, options_.y_label, lines,
                          {.log_x = options_.log_x, .log_y = options_.log_y});
  }
  const bool as_json = file.ends_with(".json");
  if (!as_json && !file.ends_with(".csv"))
    throw error(stage::launch,
                fmt::format("'{}' is in no format that a sweep can be written in: .csv, .json, .svg or .png", file));
  std::ofstream out(file);
  if (!(out << (as_json ? json() + '\n' : csv())).flush())
    throw error(stage::launch, fmt::format("the file {} cannot be written", file));
}

std::string timing_report(const kernel_handle &k) {
  double total = 0;
  for (auto &t : k.times())
    total += t.milliseconds;
  std::string text = fmt::format("{} for {}: {:.2f} ms{}\n", k.name(), k.target().str(), total,
                                 k.cached() ? ", found in the cache" : "");
  for (auto &t : k.times()) {
    const double part = total > 0 ? t.milliseconds / total : 0;
    if (t.milliseconds >= 0.005)
      text += fmt::format("  {:<34} {:9.3f} ms {:5.1f} % {:#<{}}\n", t.name, t.milliseconds, 100 * part, "",
                          int(std::lround(40 * part)));
  }
  return text;
}

} // namespace tessera
