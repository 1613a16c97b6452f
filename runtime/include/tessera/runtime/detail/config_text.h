#pragma once
// A configuration as text, "block=128, relu=false", for tables of results: values and the names of their fields.
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/runtime/detail/config.h>

namespace tessera::detail {

// A field's name is read off the compiler's spelling of a template argument that points to it.
template <class T> struct imagined_holder { T value; };
#ifdef __clang__
#pragma clang diagnostic ignored "-Wundefined-var-template" // nothing reads it: only its fields' names are asked for
#endif
template <class T> extern const imagined_holder<T> imagined;
template <auto *Field> consteval std::string_view spelling() { return __PRETTY_FUNCTION__; }
template <class T, std::size_t I> consteval std::string_view field_name() {
  std::string_view s = spelling<&std::get<I>(fields_of(imagined<T>.value))>();
  s = s.substr(0, s.find_last_of(s.contains(';') ? ';' : ']')); // GCC adds "; std::string_view = …"
  if (s.ends_with(')'))
    s.remove_suffix(1);
  return s.substr(s.find_last_of(":.") + 1);
}

template <class T> void append_text(std::string &out, const T &v) {
  if constexpr (std::is_same_v<T, bool>) {
    out += v ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    append_text(out, std::to_underlying(v));
  } else if constexpr (std::is_arithmetic_v<T>) {
    char digits[64];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, v).ptr);
  } else if constexpr (std::is_convertible_v<const T &, std::string_view>) {
    out += '"', out += std::string_view(v), out += '"';
  } else if constexpr (std::ranges::sized_range<const T> || std::is_array_v<T>) {
    const char *before = "[";
    for (auto &x : v)
      out += std::exchange(before, ", "), append_text(out, x);
    out += *before == '[' ? "[]" : "]";
  } else if constexpr (std::is_aggregate_v<T> && field_count<T>() <= 16) {
    out += '{';
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      [[maybe_unused]] const auto fields = fields_of(v);
      ((out += I ? ", " : "", out += field_name<T, I>(), out += '=', append_text(out, std::get<I>(fields))), ...);
    }
    (std::make_index_sequence<std::size_t(field_count<T>())>{});
    out += '}';
  } else {
    out += '?';
  }
}

/// "block=128, stages=3"; "?" for a type whose fields cannot be seen.
template <class C> std::string config_text(const C &c) {
  std::string text;
  append_text(text, c);
  if (text.starts_with('{'))
    text = text.substr(1, text.size() - 2);
  return text;
}

} // namespace tessera::detail
