#pragma once
// What is shown of a tuning while it runs, and how its result is kept.
#include <cstddef>
#include <string>
#include <string_view>

#include <tessera/runtime/autotune.h>

namespace tessera {

/// A candidate in one line: its configuration, and the options that are not the usual ones.
std::string text_of(const tuning_trial &t);
inline std::string first_line(const std::string &text) { return text.substr(0, text.find('\n')); }

/// The report in one line of JSON, which read_report reads.
std::string stored_form(const tuning_report &r);
/// Fills in what an earlier process measured; false where the text is no report of these trials.
bool read_report(tuning_report &r, std::string_view text);

/// Shows on stderr how far tuning is: a bar that is redrawn on a terminal, a line at the beginning and the end
/// elsewhere. $TESSERA_AUTOTUNE_PROGRESS = 0 silences it. Not for several threads at once.
class tuning_progress {
public:
  /// `r` is read whenever something is shown.
  tuning_progress(bool wanted, const tuning_report &r);
  ~tuning_progress();
  tuning_progress(const tuning_progress &) = delete;
  tuning_progress &operator=(const tuning_progress &) = delete;
  void step(const char *doing, std::size_t done, std::size_t all);

private:
  std::string title() const;
  std::string best() const;
  bool shown_, terminal_;
  const tuning_report &report_;
};

} // namespace tessera
