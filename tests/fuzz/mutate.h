#pragma once
// Wrong texts by the thousand: the IR texts of tests/lit, with words, numbers and lines changed at random. One seed
// gives one series of texts, on every machine: only the generator's own numbers are used, no library distribution.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::fuzz {

/// The modules in the given folders of `root`: files in the order of their names, cut at "// -----", without comment
/// lines.
inline std::vector<std::string> read_texts(const std::filesystem::path &root, const std::vector<std::string> &folders) {
  std::vector<std::string> texts;
  std::vector<std::filesystem::path> files;
  for (const std::string &folder : folders)
    for (const auto &entry : std::filesystem::directory_iterator(root / folder))
      if (entry.is_regular_file())
        files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto &path : files) {
    std::ifstream file(path);
    std::string line, text;
    auto flush = [&] {
      if (!text.empty())
        texts.push_back(std::move(text));
      text.clear();
    };
    while (std::getline(file, line)) {
      if (line == "// -----")
        flush();
      else if (line.find("//") == line.npos)
        text += line + "\n";
    }
    flush();
  }
  return texts;
}

/// A module of several public functions as one module for each; private functions go along with all. By lines: a
/// function ends at the first "}" that is indented as its "tt.func" is.
inline std::vector<std::string> one_kernel_each(const std::string &text) {
  std::vector<std::string> lines, result;
  for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
  }
  constexpr int shared = -1;
  std::vector<int> owner(lines.size(), shared); // which kernel a line belongs to
  int kernels = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::size_t indent = lines[i].find_first_not_of(' ');
    if (indent == std::string::npos || lines[i].compare(indent, 8, "tt.func ") != 0 ||
        lines[i].find(" private ") != std::string::npos)
      continue;
    const std::string closing = std::string(indent, ' ') + "}";
    owner[i] = kernels;
    while (i + 1 < lines.size() && !lines[i].starts_with(closing))
      owner[++i] = kernels;
    ++kernels;
  }
  for (int kernel = 0; kernel < kernels; ++kernel) {
    std::string &one = result.emplace_back();
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (owner[i] == shared || owner[i] == kernel)
        one += lines[i] + "\n";
  }
  return result;
}

using tokens = std::vector<std::string>;

/// A text as values (%x), words, numbers and single other characters; mutations replace, drop, repeat and swap these.
inline tokens split(std::string_view text) {
  tokens result;
  auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    if (in_word(text[i]) || text[i] == '%')
      while (end < text.size() && in_word(text[end]))
        ++end;
    // 4x8xf32 is four things.
    if (std::isdigit(static_cast<unsigned char>(text[i])))
      if (auto x = text.substr(i, end - i).find('x'); x != text.npos)
        end = x ? i + x : i + 1;
    if (text[i] == 'x' && end > i + 1)
      end = i + 1;
    result.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return result;
}

inline std::string join(const tokens &text) {
  std::string joined;
  for (const std::string &token : text)
    joined += token;
  return joined;
}

inline bool is_number(const std::string &token) { return std::isdigit(static_cast<unsigned char>(token[0])); }
inline bool is_value(const std::string &token) { return token[0] == '%' && token.size() > 1; }
inline bool is_type(const std::string &token) {
  static constexpr std::string_view types[] = {"f16", "bf16", "f32",   "f64",    "i1",       "i8",        "i16",
                                               "i32", "i64",  "index", "f8E5M2", "f8E4M3FN", "f8E4M3FNUZ"};
  return std::find(std::begin(types), std::end(types), token) != std::end(types);
}

/// `original` with one change, at times two or three. A third of them touch single tokens, so most of those texts end
/// in the parser; the others change a number, a type or an op for its like, so many of those get deep into the passes.
inline std::string mutate(const tokens &original, const tokens &other, std::mt19937 &random) {
  using list = std::vector<std::string_view>;
  static const list numbers = {"0",  "1",  "2",   "3",   "4",  "5",       "8",          "16",
                               "32", "64", "128", "256", "-1", "1048577", "4294967296", "99999999999999999999"};
  static const list types = {"f16", "bf16", "f32",   "f64", "i1",   "i8",     "i16",      "i32",        "i64",
                             "i32", "f32",  "index", "i7",  "i128", "f8E5M2", "f8E4M3FN", "f8E4M3FNUZ", "tf32"};
  static const list words = {"tensor",
                             "x",
                             "<",
                             ">",
                             "[",
                             "]",
                             "{",
                             "}",
                             "(",
                             ")",
                             ",",
                             "?",
                             "*",
                             "#smem",
                             "none",
                             "!tt.ptr<f32>",
                             "dense<0>",
                             "array<i32>",
                             "tensor<4xf32>",
                             "vector<4xf32>",
                             "complex<f32>"};
  static const std::vector<list> alike = {
      {"arith.addi", "arith.subi", "arith.muli", "arith.divsi", "arith.divui", "arith.remsi", "arith.remui",
       "arith.shli", "arith.shrsi", "arith.shrui", "arith.andi", "arith.ori", "arith.xori", "arith.maxsi",
       "arith.minui", "arith.ceildivsi", "arith.floordivsi", "tt.mulhiui"},
      {"arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.remf", "arith.maxnumf", "arith.minimumf",
       "tt.precise_divf", "math.powf", "math.atan2"},
      {"arith.negf", "math.exp", "math.exp2", "math.log", "math.sqrt", "math.rsqrt", "math.sin", "math.erf",
       "math.absf", "math.floor", "math.tan", "tt.precise_sqrt"},
      {"arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui", "arith.extsi",
       "arith.extui", "arith.trunci", "arith.index_cast", "arith.bitcast", "tt.bitcast", "tt.fp_to_fp", "tt.int_to_ptr",
       "tt.ptr_to_int"},
      {"slt", "sle", "sgt", "ult", "uge", "eq", "ne", "olt", "une", "ord"},
      {"tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape", "tt.unsplat", "tt.split", "tt.join",
       "tt.cat", "ttg.convert_layout"},
      {"ttg.local_alloc", "ttg.local_load", "ttg.local_store", "ttg.local_dealloc", "ttg.memdesc_index",
       "ttg.memdesc_trans", "ttg.memdesc_subslice", "ttg.async_copy_global_to_local", "tt.load"},
      {"tt.dot", "ttg.local_dot", "ttng.warp_group_dot"},
      {"ttg.async_commit_group", "ttg.async_wait", "ttng.warp_group_dot_wait", "ttng.fence_async_shared",
       "ttg.barrier"},
      {"ttg.blocked",    "ttg.slice",    "ttg.linear",  "ttg.nvidia_mma",
       "ttg.amd_mfma",   "ttg.amd_wmma", "ttg.dot_op"},
      {"ttg.swizzled_shared", "ttg.padded_shared", "ttg.nvmma_shared"},
      {"tokens", "mask", "other", "token"},
      {"tf32", "tf32x3", "ieee", "rtz", "rtne"},
      {"add", "fadd", "max", "umin", "and", "xor", "exch"},
      {"sizePerThread", "threadsPerWarp", "warpsPerCTA", "order"},
      {"acq_rel", "relaxed", "acquire", "release"},
      {"gpu", "cta", "sys"}};
  tokens text = original;
  auto any = [&](const auto &from) { return std::string(from[random() % from.size()]); };
  auto find = [&](auto wanted) {
    std::size_t at = random() % text.size();
    for (unsigned tries = 0; tries < 60 && !wanted(text[at]); ++tries)
      at = random() % text.size();
    return at;
  };
  auto line = [&](std::size_t at) {
    std::size_t begin = at, end = at;
    while (begin > 0 && text[begin - 1] != "\n")
      --begin;
    while (end < text.size() && text[end] != "\n")
      ++end;
    return std::pair(begin, std::min(end + 1, text.size()));
  };
  auto everywhere = [&](std::size_t at, const std::string &with) {
    std::replace(text.begin(), text.end(), std::string(text[at]), with);
  };
  for (unsigned n = random() % 3 ? 1 : 2 + random() % 2; n-- > 0 && !text.empty();) {
    std::size_t at = random() % text.size();
    switch (random() % 18) {
    case 0: text[at] = any(words); break;
    case 1: text.erase(text.begin() + at); break;
    case 2: text.insert(text.begin() + at, std::string(text[random() % text.size()])); break;
    case 3: std::swap(text[at], text[random() % text.size()]); break;
    case 4: text[at] = any(other); break;
    case 5: text.erase(text.begin() + at, text.begin() + std::min(text.size(), at + random() % 12)); break;
    case 6:
    case 7: text[find(is_number)] = any(numbers); break;
    case 8:
    case 9: everywhere(find(is_number), any(numbers)); break;
    case 10: text[find(is_type)] = any(types); break;
    case 11: everywhere(find(is_type), any(types)); break;
    case 12: text[find(is_value)] = text[find(is_value)]; break;
    case 13: { // two operands of an op change places, or one comes twice
      auto [begin, end] = line(find(is_value));
      std::vector<std::size_t> places;
      for (std::size_t i = begin; i < end; ++i)
        if (is_value(text[i]))
          places.push_back(i);
      if (places.size() < 2)
        break;
      std::size_t a = places[random() % places.size()], b = places[random() % places.size()];
      if (random() % 2)
        std::swap(text[a], text[b]);
      else
        text[a] = text[b];
      break;
    }
    case 14: { // an op goes, or comes twice
      auto [begin, end] = line(at);
      if (random() % 2) {
        text.erase(text.begin() + begin, text.begin() + end);
      } else {
        tokens copy(text.begin() + begin, text.begin() + end);
        text.insert(text.begin() + begin, copy.begin(), copy.end());
      }
      break;
    }
    default: { // one name for another of its kind
      const list *kind = nullptr;
      std::size_t to = find([&](const std::string &token) {
        auto has = [&](const list &names) { return std::find(names.begin(), names.end(), token) != names.end(); };
        auto found = std::find_if(alike.begin(), alike.end(), has);
        kind = found == alike.end() ? nullptr : &*found;
        return kind;
      });
      if (kind)
        text[to] = any(*kind);
    }
    }
  }
  return join(text);
}

} // namespace tessera::fuzz
