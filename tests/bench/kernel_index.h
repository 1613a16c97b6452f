#pragma once
// A benchmark's kernels for a harness outside: a folder with the machine code of each, and index.json, which says how each is
// launched. contest.py reads it.
#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <tessera/tessera.h>

class kernel_index {
public:
  /// A buffer, by the name the harness gives it, or a value passed as i32 or f32.
  using argument = std::variant<const char *, std::int32_t, float>;
  using settings = std::vector<std::pair<std::string, double>>;

  explicit kernel_index(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// One configuration of a case; buffers are taken as aligned to 16 bytes and below 2 GiB. `grid` programs along x.
  template <class Kernel>
  void add(const std::string &name, const settings &with, const Kernel &kernel, std::int64_t grid,
           const std::vector<argument> &arguments) {
    tessera::specialization spec;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto *integer = std::get_if<std::int32_t>(&arguments[i]);
      const bool buffer = std::holds_alternative<const char *>(arguments[i]);
      spec.divisible_by_16 |= std::uint64_t(buffer || (integer && *integer % 16 == 0)) << i;
      spec.equal_to_1 |= std::uint64_t(integer && *integer == 1) << i;
      spec.below_2g |= std::uint64_t(buffer) << i;
    }
    entries_.push_back({name, with, grid, arguments, spec, [kernel, spec](const tessera::cli &cli) {
                          return cli.compile_only() ? kernel.compile_for(cli.target(), spec)
                                                    : kernel.compile(cli.device(), spec);
                        }});
  }

  /// Compiles all, as many at once as there are processors, and writes them. A configuration that cannot be compiled is
  /// listed with its "error". Throws tessera::error where a file cannot be written.
  void write(const tessera::cli &cli) const {
    std::filesystem::create_directories(folder_);
    std::vector<std::string> lines(entries_.size());
    std::vector<std::exception_ptr> failed(entries_.size());
    std::atomic<std::size_t> next = 0;
    {
      std::vector<std::jthread> workers(std::max(1u, std::thread::hardware_concurrency()));
      for (auto &worker : workers)
        worker = std::jthread([&] {
          for (std::size_t i; (i = next++) < entries_.size();)
            try {
              lines[i] = line(entries_[i], cli);
            } catch (...) {
              failed[i] = std::current_exception();
            }
        });
    }
    for (auto &e : failed)
      if (e)
        std::rethrow_exception(e);
    std::string text = "{\"target\": \"" + cli.target().str() + "\",\n \"kernels\": [\n";
    for (std::size_t i = 0; i < lines.size(); ++i)
      text += lines[i] + (i + 1 < lines.size() ? ",\n" : "\n");
    store("index.json", text + " ]}\n");
    std::printf("%zu configurations in %s\n", entries_.size(), folder_.c_str());
  }

private:
  struct entry {
    std::string name;
    settings with;
    std::int64_t grid;
    std::vector<argument> arguments;
    tessera::specialization spec;
    std::function<tessera::kernel_handle(const tessera::cli &)> compile;
  };

  static std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text)
      if (c == '"' || c == '\\')
        (out += '\\') += c;
      else
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    return out + '"';
  }
  static std::string number(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
  }

  void store(const std::string &name, const std::string &bytes) const {
    std::ofstream file(folder_ / name, std::ios::binary);
    file << bytes;
    file.close();
    if (!file)
      throw tessera::error(tessera::stage::launch, "cannot write " + (folder_ / name).string());
  }

  std::string line(const entry &e, const tessera::cli &cli) const {
    std::string out = "  {\"case\": " + quoted(e.name) + ", \"settings\": {", file = e.name;
    for (const char *comma = ""; auto &[key, value] : e.with) {
      out += comma + quoted(key) + ": " + number(value);
      file += "." + key + number(value);
      comma = ", ";
    }
    out += "}";
    std::optional<tessera::kernel_handle> k;
    try {
      k = e.compile(cli);
    } catch (const tessera::error &error) {
      return out + ", \"error\": " + quoted(error.message()) + "}";
    }
    const std::string stage(k->stages().back()); // machine code, or PTX where nothing assembled it
    std::replace_if(
        file.begin(), file.end(), [](unsigned char c) { return !std::isalnum(c) && c != '.'; }, '_');
    file += "." + stage;
    store(file, k->stage(stage));
    out += ", \"file\": " + quoted(file) + ", \"symbol\": " + quoted(k->name()) +
           ", \"grid\": " + std::to_string(e.grid) +
           ", \"threads\": " + std::to_string(k->num_warps() * k->compiled().metadata.warp_size) +
           ", \"shared\": " + std::to_string(k->shared_bytes()) + ", \"registers\": " + std::to_string(k->registers()) +
           ", \"spills\": " + std::to_string(k->spills()) + ", \"arguments\": [";
    const char *comma = "";
    for (std::size_t i = 0; i < e.arguments.size(); ++i) {
      if (e.spec.equal_to_1 >> i & 1) // part of the code, and not passed
        continue;
      out += comma;
      if (auto *buffer = std::get_if<const char *>(&e.arguments[i]))
        out += "{\"buffer\": " + quoted(*buffer) + "}";
      else if (auto *integer = std::get_if<std::int32_t>(&e.arguments[i]))
        out += "{\"i32\": " + std::to_string(*integer) + "}";
      else
        out += "{\"f32\": " + number(std::get<float>(e.arguments[i])) + "}";
      comma = ", ";
    }
    return out + "]}";
  }

  std::filesystem::path folder_;
  std::vector<entry> entries_;
};
