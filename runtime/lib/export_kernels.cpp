// Writes compiled kernels as C: a header with one function each, and their code as constants.
#include <tessera/aot/export.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tessera/codegen/cpu_abi.h>
#include <tessera/error.h>

namespace tessera::tl {
namespace {

bool is_word(const std::string &s) {
  return !s.empty() && !std::isdigit(static_cast<unsigned char>(s[0])) &&
         std::ranges::all_of(s, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

/// Of a function or argument in a header that C and C++ read.
bool is_c_name(const std::string &s) {
  static constexpr std::string_view reserved =
      " alignas alignof and asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class "
      "co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue "
      "decltype default delete do double dynamic_cast else enum explicit export extern false float for friend "
      "goto if inline int long main mutable namespace new noexcept not nullptr operator or private protected "
      "public register reinterpret_cast requires restrict return short signed sizeof static static_assert "
      "static_cast struct switch template this thread_local throw true try typedef typeid typename typeof union "
      "unsigned using virtual void volatile wchar_t while xor ";
  return is_word(s) && !reserved.contains(" " + s + " ") && !s.starts_with("tessera_"); // which are ours
}

/// Text inside of a C string, or of a comment.
std::string quoted(const std::string &text) {
  std::string out;
  for (unsigned char c : text)
    out += c == '"' || c == '\\' || c == '?' || c < 0x20 || c >= 0x7f ? fmt::format("\\{:03o}", c)
                                                                      : std::string(1, char(c));
  return out;
}
std::string in_comment(std::string text) {
  for (std::size_t at; (at = text.find("*/")) != text.npos;)
    text.insert(at + 1, " ");
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == '\\'; }, ' ');
  return text;
}

const char *c_type(dtype t) {
  switch (t) {
  case dtype::i8: return "int8_t";
  case dtype::i16: return "int16_t";
  case dtype::i32: return "int32_t";
  case dtype::i64: return "int64_t";
  case dtype::u32: return "uint32_t";
  case dtype::u64: return "uint64_t";
  case dtype::f32: return "float";
  case dtype::f64: return "double";
  case dtype::u16:
  case dtype::f16: // C has no type for these: their bits
  case dtype::bf16: return "uint16_t";
  case dtype::i1:
  case dtype::u8:
  case dtype::f8e4m3:
  case dtype::f8e5m2:
  case dtype::f8e4m3fnuz:
  case dtype::f8e5m2fnuz: break;
  }
  return "uint8_t";
}

void write_file(const std::string &file, const std::string &content) {
  std::ofstream out(file, std::ios::binary);
  if (!out.write(content.data(), std::streamsize(content.size())).flush())
    throw error(stage::launch, fmt::format("{} cannot be written", file));
}

/// "0x7f,0x45,…", a zero at the end.
std::string byte_list(const std::string &bytes) {
  std::string text;
  text.reserve(4 * bytes.size() + bytes.size() / 32 + 8);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    text += fmt::format("{},", static_cast<unsigned char>(bytes[i]));
    if (i % 32 == 31)
      text += '\n';
  }
  return text + "0";
}

} // namespace

void kernel_exporter::add(std::shared_ptr<const tessera::detail::kernel_core> core,
                          tessera::detail::kernel_variant &variant, const launch_options &how, std::string config,
                          export_options o) {
  if (o.symbol.empty())
    o.symbol = core->name();
  auto refuse = [&](std::string why) {
    throw error(stage::launch, fmt::format("kernel '{}' cannot be exported: {}", core->name(), why));
  };
  if (!is_c_name(o.symbol))
    refuse(fmt::format("'{}' is no name of a C function", o.symbol));
  for (auto &e : entries_)
    for (auto &[mine, other] : {std::pair(o.symbol, e.options.symbol),
                                {o.symbol + "_prepare", e.options.symbol},
                                {o.symbol, e.options.symbol + "_prepare"}})
      if (mine == other)
        refuse(fmt::format("another one is called '{}' too; give them symbols", mine));
  if (o.specializations.empty())
    refuse("no specialisation is named");
  std::vector<std::string> names;
  std::string word;
  for (char c : o.arguments + ' ')
    if (c != ' ' && c != ',')
      word += c;
    else if (!word.empty())
      names.push_back(std::exchange(word, {}));
  const auto params = core->params();
  for (std::size_t i = 0; names.empty() && i < params.size(); ++i)
    for (std::size_t k = 0; k < params.size(); ++k)
      names.push_back(fmt::format("a{}", k));
  if (names.size() != params.size())
    refuse(fmt::format("{} arguments are named, it takes {}", names.size(), params.size()));
  for (auto &n : names)
    if (!is_c_name(n) || n == "stream" || n == "programs" || std::ranges::count(names, n) > 1)
      refuse(fmt::format("'{}' is no name of an argument, or the name of two", n));
  entries_.push_back({std::move(core), &variant, how, std::move(config), std::move(o), std::move(names)});
}

void kernel_exporter::write(const std::string &name, const std::string &folder,
                            const std::vector<target> &targets) const {
  if (!is_word(name))
    throw error(stage::launch, fmt::format("'{}' is no name for a header's functions", name));
  if (targets.empty())
    throw error(stage::launch, "name the targets to compile for, such as --target cuda:sm_90a");
  std::filesystem::create_directories(folder);
  const std::string note = "/* Generated from kernels of Tessera when this program was built: do not edit. */\n";
  std::string guard = name + "_H";
  std::ranges::transform(guard, guard.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  std::string header = fmt::format(
      "{}#ifndef {}\n#define {}\n#include <tessera/aot/launch.h>\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n", note,
      guard, guard);
  std::string source = fmt::format(
      "{}#include \"{}.h\"\n#include <string.h>\n#ifdef __cplusplus\n#define KERNEL extern \"C\"\n#else\n#define "
      "KERNEL extern\n#endif\n",
      note, name);
  std::string objects;

  for (const entry &e : entries_) {
    const std::string &symbol = e.options.symbol;
    const auto params = e.core->params();
    std::string images, used_for;
    int count = 0;
    for (const target &t : targets) {
      if (t.emulated())
        throw error(stage::launch,
                    fmt::format("'{}' checks kernels, it is no target to ship: use cpu, cuda:ARCH, hip:ARCH", t.str()));
      used_for += (used_for.empty() ? "" : ", ") + t.str();
      std::set<std::pair<std::uint64_t, std::uint64_t>> done;
      for (specialization s : e.options.specializations) {
        // Bits that say nothing of these parameters make no difference.
        specialization meaningful;
        for (std::size_t i = 0; i < params.size(); ++i) {
          const bool integer = !params[i].pointer && is_integer(params[i].element);
          meaningful.divisible_by_16 |= std::uint64_t(integer || params[i].pointer) << i;
          meaningful.equal_to_1 |= std::uint64_t(integer) << i;
        }
        s.equal_to_1 &= meaningful.equal_to_1;
        s.divisible_by_16 &= meaningful.divisible_by_16 & ~s.equal_to_1;
        s.below_2g = 0; // callers from C pass addresses without sizes
        if (!done.insert({s.divisible_by_16, s.equal_to_1}).second)
          continue;
        std::string unique = fmt::format("{}__{}_{}", symbol, t.arch.empty() ? "cpu" : t.arch, count);
        const kernel_handle k = e.core->compile_as(unique, *e.variant, t, s);
        auto embed = [&](const char *stage) -> std::pair<std::string, std::size_t> {
          if (!k.has(stage))
            return {"0", 0};
          source +=
              fmt::format("static const unsigned char {}_{}[] = {{\n{}}};\n", unique, stage, byte_list(k.stage(stage)));
          return {fmt::format("{}_{}", unique, stage), k.stage(stage).size()};
        };
        std::string function = "0";
        bool waits = false;
        if (t.kind == target_kind::cpu) {
          const std::string file = fmt::format("{}/{}.o", folder, unique);
          write_file(file, k.stage("obj"));
          for (const char c : file + '\n') { // a response file of ar
            if (std::string_view(" \t\"'\\").find(c) != std::string_view::npos)
              objects += '\\';
            objects += c;
          }
          source += fmt::format("KERNEL void {}(const void *const *, void *) __asm__(\"{}{}\");\n", unique, unique,
                                tessera_cpu_entry_suffix);
          function = unique;
          // Code whose warps wait for one another names this helper in its table of symbols.
          waits = k.stage("obj").find("tessera_cpu_barrier") != std::string::npos;
        }
        const auto code = embed(t.kind == target_kind::hip ? "hsaco" : "cubin"), ptx = embed("ptx");
        images += fmt::format("  {{\"{}\", \"{}\", {}u, {}u, {}, {}, {}, {}, {}, {}, {}, {}, {}}},\n", t.str(), unique,
                              s.divisible_by_16, s.equal_to_1, code.first, ptx.first, code.second, ptx.second, function,
                              int(waits), k.num_warps(), k.compiled().metadata.warp_size, k.shared_bytes());
        ++count;
      }
    }

    std::string declared, packed, described;
    for (std::size_t i = 0; i < params.size(); ++i) {
      const param_type &p = params[i];
      declared += fmt::format(", {}{} {}{}", p.pointer && p.is_const ? "const " : "", c_type(p.element),
                              p.pointer ? "*" : "", e.arguments[i]);
      packed += fmt::format("  memcpy(&tessera_values[{}], &{}, sizeof {});\n", i, e.arguments[i], e.arguments[i]);
      described += fmt::format("{{{}, {}, {}}}, ", p.pointer ? 8 : size_of(p.element), int(p.pointer),
                               int(!p.pointer && is_integer(p.element)));
    }
    header += fmt::format("\n/* {}{}{}: {}. */\nint {}(tessera_stream stream, tessera_grid programs{});\n"
                          "/* Loads its code on the stream's device before the first launch. */\nint "
                          "{}_prepare(tessera_stream stream);\n",
                          in_comment(e.core->name()), e.config.empty() ? "" : ", ", in_comment(e.config), used_for,
                          symbol, declared, symbol);
    source += fmt::format(
        "static const tessera_image {0}__images[] = {{\n{1}}};\n"
        "static const tessera_parameter {0}__parameters[] = {{{2}{{0, 0, 0}}}};\n"
        "static tessera_kernel {0}__kernel = {{\"{3}\", {0}__parameters, {0}__images, {4}, {5}, {{{9}, {10}, {11}}}, "
        "{12}, "
        "0}};\n"
        "int {0}(tessera_stream stream, tessera_grid programs{6}) {{\n  uint64_t tessera_values[{7}] = {{0}};\n{8}"
        "  return tessera_launch(&{0}__kernel, stream, programs, tessera_values);\n}}\n"
        "int {0}_prepare(tessera_stream stream) {{ return tessera_prepare(&{0}__kernel, stream); }}\n",
        symbol, images, described, quoted(e.core->name()), params.size(), count, declared, params.size() + 1, packed,
        e.how.cluster[0], e.how.cluster[1], e.how.cluster[2], int(e.how.cooperative));
  }
  header += "\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
  write_file(fmt::format("{}/{}.h", folder, name), header);
  write_file(fmt::format("{}/{}.c", folder, name), source);
  write_file(fmt::format("{}/{}.objects", folder, name), objects);
}

int export_kernels(int argc, char **argv, void (*list)(kernel_exporter &)) {
  CLI::App app("Compiles the kernels of this program for targets and writes them as C");
  std::string name = "kernels", folder = ".";
  std::vector<std::string> targets;
  app.add_option("--name", name, "of the header and the source file")->capture_default_str();
  app.add_option("--out", folder, "the folder they are written to")->capture_default_str();
  app.add_option("--target", targets, "cuda:ARCH, hip:ARCH, cpu; several may be given")->required();
  CLI11_PARSE(app, argc, argv);
  try {
    std::vector<target> parsed;
    for (auto &t : targets)
      parsed.push_back(parse_target(t));
    kernel_exporter exporter;
    list(exporter);
    exporter.write(name, folder, parsed);
    return 0;
  } catch (const std::exception &e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
    return 1;
  }
}

} // namespace tessera::tl
