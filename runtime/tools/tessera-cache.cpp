// tessera-cache: looks into the folder where compiled kernels and tuning results are kept.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/codegen/compile.h>
#include <tessera/error.h>
#include <tessera/runtime/cache.h>
#include <tessera/runtime/launch.h>

namespace {

using tessera::cache_entry, tessera::disk_cache, tessera::error, tessera::stage;

std::string bytes_text(std::uint64_t n) {
  double v = double(n);
  for (const char *unit : {"B", "KiB", "MiB", "GiB"}) {
    if (v < 1024)
      return fmt::format("{:.{}f} {}", v, int(v < 10 && unit[0] != 'B'), unit);
    v /= 1024;
  }
  return fmt::format("{:.1f} TiB", v);
}

std::string age_text(std::int64_t nanoseconds) {
  const double s = std::max(0.0, double(std::time(nullptr)) - double(nanoseconds) * 1e-9);
  return s < 90       ? fmt::format("{:.0f} s", s)
         : s < 5400   ? fmt::format("{:.0f} min", s / 60)
         : s < 129600 ? fmt::format("{:.0f} h", s / 3600)
                      : fmt::format("{:.0f} d", s / 86400);
}

/// What an entry is of: the kernel's name, or that of what was tuned.
std::string_view name_of(const cache_entry &e) {
  const auto name = e.field(e.kind);
  return name.empty() ? "?" : name;
}

void print_list(const std::vector<cache_entry> &entries, const std::string &folder, bool json) {
  if (json) {
    auto array = nlohmann::ordered_json::array();
    for (auto &e : entries)
      array.push_back({{"hash", e.hash},
                       {"kind", e.kind},
                       {"name", name_of(e)},
                       {"target", e.field("target")},
                       {"options", e.field("options")},
                       {"bytes", e.bytes},
                       {"made", double(e.made) * 1e-9},
                       {"used", double(e.used) * 1e-9},
                       {"damage", e.damage},
                       {"file", e.file}});
    fmt::print("{}\n", array.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  std::uint64_t total = 0;
  fmt::print("{:<14}{:<8}{:<28}{:<24}{:>10}{:>10}{:>10}\n", "HASH", "KIND", "NAME", "TARGET", "SIZE", "MADE", "USED");
  for (auto &e : entries) {
    total += e.bytes;
    fmt::print("{:<14}{:<8}{:<28}{:<24}{:>10}{:>10}{:>10}{}\n", e.hash.substr(0, 12), e.kind, name_of(e),
               e.field("target"), bytes_text(e.bytes), age_text(e.made), age_text(e.used),
               e.damage.empty() ? "" : "  DAMAGED: " + e.damage);
  }
  fmt::print("{} entries, {} in {}\n", entries.size(), bytes_text(total), folder);
}

/// The one entry whose hash begins so.
cache_entry find(disk_cache &cache, const std::string &prefix) {
  std::vector<cache_entry> found;
  for (auto &e : cache.list(true))
    if (e.hash.starts_with(prefix) || name_of(e) == prefix)
      found.push_back(e);
  if (found.size() == 1)
    return found[0];
  std::string hashes;
  for (auto &e : found)
    hashes +=
        fmt::format("\n  {}  {} for {}, {}", e.hash.substr(0, 12), name_of(e), e.field("target"), e.field("options"));
  throw error(stage::launch, found.empty() ? fmt::format("no entry of {} is '{}'", cache.folder(), prefix)
                                           : fmt::format("'{}' are {} entries; name one by its hash:{}", prefix,
                                                         found.size(), hashes));
}

void show(disk_cache &cache, const cache_entry &e, const std::string &stage_name) {
  if (!e.damage.empty())
    throw error(stage::launch, fmt::format("entry {} is damaged: {}", e.hash, e.damage));
  if (e.kind != "kernel") {
    fmt::print("{}\n", cache.read(e).value_or(""));
    return;
  }
  const auto kernel = tessera::read_kernel(cache, e);
  if (!kernel)
    throw error(stage::launch, fmt::format("entry {} was written by another version of tessera", e.hash));
  const tessera::kernel_handle handle(kernel);
  if (!stage_name.empty()) {
    const std::string &text = handle.stage(stage_name);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  fmt::print("{}\n", handle.summary());
  std::string_view key = e.key_text;
  fmt::print("{}\n", key.substr(0, key.find("\n\n")));
  fmt::print("stages:");
  for (auto name : handle.stages())
    fmt::print(" {} ({})", name, bytes_text(handle.stage(name).size()));
  double total = 0;
  for (auto &t : handle.times())
    total += t.milliseconds;
  fmt::print("\ncompiled in {:.1f} ms:", total);
  for (auto &t : handle.times())
    if (t.milliseconds >= 0.1)
      fmt::print(" {} {:.1f}", t.name, t.milliseconds);
  fmt::print("\nfile: {}\n", e.file);
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Looks into the folder where Tessera keeps compiled kernels and tuning results", "tessera-cache");
  std::string folder, name, stage_name, kind;
  bool json = false, repair = false;
  double days = -1;
  app.add_option("--folder", folder, "the folder; else TESSERA_CACHE_DIR, XDG_CACHE_HOME/tessera or ~/.cache/tessera");
  app.require_subcommand(1);
  app.fallthrough(); // --folder may stand behind the subcommand, too
  auto *list = app.add_subcommand("list", "all entries, most recently used first");
  list->add_flag("--json", json, "as JSON");
  list->add_option("--kind", kind, "kernel or tuning only");
  auto *show_command = app.add_subcommand("show", "what an entry was made from, and its stages");
  show_command->add_option("entry", name, "first digits of its hash, or its name where that is one entry")->required();
  show_command->add_option("--stage", stage_name, "print this stage: ttir, ttgir, llir, ptx, cubin, …");
  auto *verify =
      app.add_subcommand("verify", "read everything and compare checksums; exits 1 where something is damaged");
  verify->add_flag("--remove", repair, "remove what is damaged");
  auto *clear = app.add_subcommand("clear", "remove entries");
  clear->add_option("--unused-for", days, "only those not used for so many days")
      ->check([](const std::string &text) { // not NaN, which is in no range
        double n = -1;
        return CLI::detail::lexical_cast(text, n) && n >= 0 && n <= 36500 ? "" : "'" + text + "' is no number of days";
      });
  clear->add_option("--kind", kind, "kernel or tuning only")->check(CLI::IsMember({"kernel", "tuning"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &e) {
    return app.exit(e) == 0 ? 0 : 2; // --help ends here too
  }

  try {
    if (folder.empty())
      folder = tessera::cache_settings_from_environment().folder;
    if (folder.empty())
      throw error(stage::launch, "there is no cache folder: TESSERA_CACHE_DIR is empty, or HOME is not set");
    disk_cache cache(folder);
    std::vector<std::string> names;
    if (const int failed = tessera::detail::system_files().list(folder, names); failed && failed != -ENOENT)
      throw error(stage::launch, fmt::format("the folder {} cannot be read: {}", folder, std::strerror(-failed)));
    auto entries = [&](bool check) {
      auto all = cache.list(check);
      std::erase_if(all, [&](auto &e) { return !kind.empty() && e.kind != kind; });
      return all;
    };
    if (*list) {
      print_list(entries(false), folder, json);
    } else if (*show_command) {
      show(cache, find(cache, name), stage_name);
    } else if (*verify) {
      int bad = 0, removed = 0;
      const auto all = entries(true);
      for (auto &e : all)
        if (!e.damage.empty()) {
          fmt::print("{}: {}\n", e.file, e.damage);
          ++bad;
          removed += repair && cache.remove(e) == 0;
        }
      fmt::print("{} entries, {} damaged{}\n", all.size(), bad, repair ? fmt::format(", {} removed", removed) : "");
      return bad > removed ? 1 : 0;
    } else {
      const std::int64_t before = (std::int64_t(std::time(nullptr)) - std::int64_t(days * 86400)) * 1'000'000'000;
      int removed = 0, kept = 0, why = 0;
      std::uint64_t bytes = 0;
      for (auto &e : entries(false))
        if (days < 0 || e.used < before) {
          if (const int failed = cache.remove(e); !failed || failed == ENOENT)
            ++removed, bytes += e.bytes;
          else
            ++kept, why = failed;
        }
      cache.shrink(UINT64_MAX); // sweeps up what killed writers left
      fmt::print("{} entries removed, {}\n", removed, bytes_text(bytes));
      if (kept)
        throw error(stage::launch, fmt::format("{} entries cannot be removed: {}", kept, std::strerror(why)));
    }
    return 0;
  } catch (const std::exception &e) {
    std::fflush(stdout);
    fmt::print(stderr, "tessera-cache: {}\n", e.what());
    return 2;
  }
}
