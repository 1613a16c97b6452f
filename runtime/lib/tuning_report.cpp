// What is shown of a tuning, and how its result is kept.
#include "tuning_report.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tessera {
namespace {

using json = nlohmann::ordered_json;

std::string options_text(const compile_options &o) {
  const compile_options standard;
  std::string text;
  auto add = [&](const char *name, auto value, auto usual) {
    if (value != usual)
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  };
  add("num_warps", o.num_warps, standard.num_warps);
  add("num_stages", o.num_stages, standard.num_stages);
  add("num_ctas", o.num_ctas, standard.num_ctas);
  add("maxnreg", o.maxnreg, standard.maxnreg);
  add("precise_math", o.precise_math, standard.precise_math);
  add("enable_fp_fusion", o.enable_fp_fusion, standard.enable_fp_fusion);
  add("line_info", o.line_info, standard.line_info);
  add("debug", o.debug, standard.debug);
  return text;
}

json to_json(const tuning_report &r) {
  auto number = [](double v) { return v == v ? json(v) : json(nullptr); };
  json trials = json::array();
  for (auto &t : r.trials) {
    json entry{{"config", t.config}, {"options", options_text(t.options)}};
    if (t.measured())
      entry.update({{"median_ms", number(t.median_ms)}, {"p20_ms", number(t.p20_ms)}, {"p80_ms", number(t.p80_ms)}});
    if (!t.skipped.empty())
      entry["skipped"] = t.skipped;
    entry.update({{"compile_ms", t.compile_ms},
                  {"registers", t.registers},
                  {"spills", t.spills},
                  {"shared_bytes", t.shared_bytes}});
    trials.push_back(std::move(entry));
  }
  return {{"kernel", r.kernel}, {"target", r.target},   {"device", r.device},         {"key", r.key},
          {"best", r.best},     {"seconds", r.seconds}, {"from_cache", r.from_cache}, {"trials", std::move(trials)}};
}

/// As text; names that are no UTF-8 lose what is wrong in them.
std::string dump(const json &j, int indent) { return j.dump(indent, ' ', false, json::error_handler_t::replace); }

/// The order of a table: measured ones by time, then those left early, then the rest.
std::vector<const tuning_trial *> ranked(const tuning_report &r) {
  std::vector<const tuning_trial *> order;
  for (auto &t : r.trials)
    order.push_back(&t);
  std::ranges::stable_sort(order, {}, [](const tuning_trial *t) {
    return std::pair(t->measured() ? t->skipped.empty() ? 0 : 1 : 2, t->measured() ? t->median_ms : 0);
  });
  return order;
}

bool progress_allowed() {
  const char *text = std::getenv("TESSERA_AUTOTUNE_PROGRESS");
  return !text || std::string_view(text) != "0";
}

} // namespace

std::string text_of(const tuning_trial &t) {
  const std::string options = options_text(t.options);
  return t.config + (t.config.empty() || options.empty() ? "" : ", ") + options;
}

std::string stored_form(const tuning_report &r) { return dump(to_json(r), -1); }

bool read_report(tuning_report &r, std::string_view text) try {
  const json j = json::parse(text, nullptr, false);
  if (!j.is_object() || !j.contains("trials") || !j["trials"].is_array() || j["trials"].size() != r.trials.size())
    return false;
  r.best = j.value("best", -1);
  for (std::size_t i = 0; i < r.trials.size(); ++i) {
    const json &t = j["trials"][i];
    tuning_trial &to = r.trials[i];
    if (!t.is_object() || t.value("config", "") != to.config)
      return false;
    auto number = [&](const char *name, double otherwise) {
      return t.contains(name) && t[name].is_number() ? t[name].get<double>() : otherwise;
    };
    to.median_ms = number("median_ms", to.median_ms), to.p20_ms = number("p20_ms", to.p20_ms);
    to.p80_ms = number("p80_ms", to.p80_ms), to.compile_ms = number("compile_ms", 0);
    to.registers = int(number("registers", -1)), to.spills = int(number("spills", -1));
    to.shared_bytes = unsigned(number("shared_bytes", 0));
    to.skipped = t.value("skipped", "");
  }
  return r.best >= 0 && std::size_t(r.best) < r.trials.size() && r.trials[std::size_t(r.best)].measured();
} catch (const json::exception &) { // a text where a number should be
  return false;
}

std::string tuning_report::table() const {
  std::size_t width = 9;
  for (auto &t : trials)
    width = std::max(width, text_of(t).size());
  std::string text = fmt::format("{} for {} on {} ({}): {} candidates, {}\n", kernel,
                                 key.empty() ? "all arguments" : key, device, target, trials.size(),
                                 from_cache ? "measured by an earlier process" : fmt::format("{:.1f} s", seconds));
  text += fmt::format("  {:<{}}  {:>10} {:>8} {:>5} {:>7} {:>10}\n", "candidate", width, "ms", "vs best", "regs",
                      "spills", "shared");
  const double fastest = best < 0 ? 0 : trials[std::size_t(best)].median_ms;
  for (const tuning_trial *t : ranked(*this)) {
    text += fmt::format("{} {:<{}}  ", best >= 0 && t == &trials[std::size_t(best)] ? '*' : ' ', text_of(*t), width);
    if (t->measured())
      text += fmt::format("{:>10.4g} {:>7.2f}x ", t->median_ms, fastest > 0 ? t->median_ms / fastest : 1.0);
    if (t->measured() && t->registers >= 0)
      text += fmt::format("{:>5} {:>7} {:>10}", t->registers, t->spills, t->shared_bytes);
    else if (t->measured())
      text += fmt::format("{:>5} {:>7} {:>10}", "", "", t->shared_bytes);
    if (!t->skipped.empty())
      text += (t->measured() ? "  " : "") + first_line(t->skipped);
    while (text.ends_with(' '))
      text.pop_back();
    text += '\n';
  }
  return text;
}

std::string tuning_report::json() const { return dump(to_json(*this), 2); }

// ---- progress -------------------------------------------------------------------------------------------------------

tuning_progress::tuning_progress(bool wanted, const tuning_report &r)
    : shown_(wanted && progress_allowed()), terminal_(isatty(2)), report_(r) {
  if (shown_ && !terminal_)
    fmt::print(stderr, "tessera: tuning {}: {} candidates on {}\n", title(), r.trials.size(), r.device);
}

void tuning_progress::step(const char *doing, std::size_t done, std::size_t all) {
  if (!shown_ || !terminal_)
    return;
  constexpr std::size_t width = 24;
  const std::size_t full = all ? done * width / all : width;
  std::string line =
      fmt::format("{:#<{}}{:.<{}} {}/{} {} {}{}", "", full, "", width - full, done, all, doing, title(), best());
  // A line that the terminal breaks could not be redrawn.
  winsize window{};
  const std::size_t most = ioctl(2, TIOCGWINSZ, &window) == 0 && window.ws_col > 1 ? window.ws_col - 1u : 79;
  if (line.size() > most) {
    line.resize(most);
    while (!line.empty() && (line.back() & 0x80)) // not half a character
      line.pop_back();
  }
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
}

tuning_progress::~tuning_progress() {
  if (!shown_)
    return;
  if (terminal_)
    fmt::print(stderr, "\r\033[K");
  const auto measured = std::ranges::count_if(report_.trials, [](auto &t) { return t.measured(); });
  fmt::print(stderr, "tessera: tuned {}{}, {} measured, {} skipped, {:.1f} s\n", title(), best(), measured,
             report_.trials.size() - std::size_t(measured), report_.seconds);
}

std::string tuning_progress::title() const {
  return report_.kernel + (report_.key.empty() ? "" : " for " + report_.key);
}

std::string tuning_progress::best() const {
  if (report_.best < 0)
    return {};
  auto &t = report_.trials[std::size_t(report_.best)];
  return fmt::format(": {} takes {:.4g} ms", text_of(t), t.median_ms);
}

} // namespace tessera
