// Writes stages of compiled kernels to the standard output or to a folder, and how long they took.
#include "dump.h"
#include "publish_table.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include <tessera/error.h>
#include <tessera/runtime/launch.h>
#include <tessera/runtime/perf_report.h>

namespace tessera {
namespace {

constexpr std::array known_stages{"ttir", "ttgir", "llir", "ptx", "cubin", "amdgcn", "hsaco", "asm", "obj"};
bool is_binary(std::string_view stage) { return stage == "cubin" || stage == "hsaco" || stage == "obj"; }

struct dump_spec {
  std::vector<std::string> stages;
  std::string folder; ///< empty: standard output
};

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (std::size_t end; !text.empty(); text.remove_prefix(std::min(text.size(), end + 1))) {
    end = std::min(text.find(at), text.size());
    if (end)
      parts.emplace_back(text.substr(0, end));
  }
  return parts;
}

dump_spec parse(std::string_view text) {
  dump_spec spec;
  auto colon = text.find(':');
  if (colon != text.npos)
    spec.folder = text.substr(colon + 1);
  spec.stages = split(text.substr(0, colon), ',');
  for (auto &s : spec.stages)
    if (std::ranges::find(known_stages, s) == known_stages.end())
      throw error(stage::launch,
                  fmt::format("'{}' is no stage that can be dumped; there are {}", s, fmt::join(known_stages, ", ")));
  if (spec.stages.empty() && !text.empty())
    throw error(stage::launch,
                fmt::format("'{}' names no stage to dump; there are {}", text, fmt::join(known_stages, ", ")));
  return spec;
}

struct state {
  std::mutex lock;
  dump_spec spec;
  bool timing = false; ///< TESSERA_TIMING
  state() {
    const char *timed = std::getenv("TESSERA_TIMING");
    timing = timed && std::string_view(timed) != "" && std::string_view(timed) != "0";
    if (const char *text = std::getenv("TESSERA_DUMP"))
      spec = parse(text);
  }
};
state &current() {
  static state s; // where the variable is wrong, this throws at every compile until it is put right
  return s;
}

// Names one compilation: same IR, options and target give the same files.
std::uint64_t fingerprint(const compiled_kernel &k) {
  auto &o = k.options;
  std::uint64_t h = 0;
  auto add = [&](std::uint64_t x) { h = detail::mix(h ^ x); };
  if (auto *ttir = k.find("ttir"))
    add(std::hash<std::string>{}(*ttir));
  for (int x : {o.num_warps, o.num_stages, o.num_ctas, o.maxnreg,
                o.precise_math << 4 | o.enable_fp_fusion << 3 | o.line_info << 2 | o.debug << 1 | o.count_traffic})
    add(static_cast<std::uint32_t>(x));
  return h;
}

void write(const std::filesystem::path &file, const std::string &content) {
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  std::ofstream out(file, std::ios::binary);
  if (!out.write(content.data(), std::streamsize(content.size())).flush())
    throw error(stage::launch, fmt::format("the dump file {} cannot be written", file.string()));
}

} // namespace

void set_dump(std::string_view text) {
  dump_spec spec = parse(text);
  state &s = current();
  std::lock_guard guard(s.lock);
  s.spec = std::move(spec);
}

void detail::dump(const compiled_kernel &k, std::size_t first, bool last) {
  state &s = current();
  std::lock_guard guard(s.lock); // one kernel's text stays together
  if (last && s.timing)
    fmt::print(stderr, "{}", timing_report(kernel_handle(std::make_shared<compiled_kernel>(k))));
  if (s.spec.stages.empty())
    return;
  std::string target = k.compiled_for.str();
  std::ranges::replace(target, ':', '-');
  for (std::size_t i = first; i < k.stages.size(); ++i) {
    auto &[name, text] = k.stages[i];
    if (std::ranges::find(s.spec.stages, name) == s.spec.stages.end())
      continue;
    if (!s.spec.folder.empty()) {
      auto file = std::filesystem::path(s.spec.folder) /
                  fmt::format("{}.{}.{:08x}.{}", k.metadata.name, target, fingerprint(k) & 0xffffffff, name);
      write(file, text);
      fmt::print("// {} of {} for {}: {}\n", name, k.metadata.name, k.compiled_for.str(), file.string());
    } else if (is_binary(name)) {
      fmt::print("// {} of {} for {}: {} bytes; name a folder to have them, as in {}:DIR\n", name, k.metadata.name,
                 k.compiled_for.str(), text.size(), name);
    } else {
      fmt::print("// ---- {} of {} for {} ----\n{}{}", name, k.metadata.name, k.compiled_for.str(), text,
                 text.ends_with('\n') ? "" : "\n");
    }
  }
  if (last) {
    std::vector<std::string> absent;
    for (auto &stage : s.spec.stages)
      if (!k.find(stage))
        absent.push_back(stage);
    if (!absent.empty())
      fmt::print("// {} for {} has no {}\n", k.metadata.name, k.compiled_for.str(), fmt::join(absent, ", "));
    fmt::print("// {}\n", kernel_handle(std::make_shared<compiled_kernel>(k)).summary());
  }
  std::fflush(stdout);
}

} // namespace tessera
