#pragma once
// Equality and hash of a kernel's configuration, whatever aggregate the user wrote: two configurations that differ in
// any field are different kernels.
//
// In this order: a type without padding and floats is compared by its bytes; floats are, so that NaN equals itself and 0 is
// not -0; arrays and other ranges element by element; a type with operator== by that; any other aggregate of up to 16
// fields field by field.
#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ranges>
#include <tuple>
#include <type_traits>

namespace tessera::detail {

template <class C>
inline constexpr bool plain_bytes = std::is_trivially_copyable_v<C> &&std::has_unique_object_representations_v<C>;

// {} initialises exactly one field each, nested aggregates and arrays too, so the longest list accepted counts them.
template <class C> consteval int field_count() {
  // clang-format off
  if constexpr (requires { C{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}}; }) return 17;
  else if constexpr (requires { C{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}}; }) return 16;
  else if constexpr (requires { C{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}}; }) return 15;
  else if constexpr (requires { C{{},{},{},{},{},{},{},{},{},{},{},{},{},{}}; }) return 14;
  else if constexpr (requires { C{{},{},{},{},{},{},{},{},{},{},{},{},{}}; }) return 13;
  else if constexpr (requires { C{{},{},{},{},{},{},{},{},{},{},{},{}}; }) return 12;
  else if constexpr (requires { C{{},{},{},{},{},{},{},{},{},{},{}}; }) return 11;
  else if constexpr (requires { C{{},{},{},{},{},{},{},{},{},{}}; }) return 10;
  else if constexpr (requires { C{{},{},{},{},{},{},{},{},{}}; }) return 9;
  else if constexpr (requires { C{{},{},{},{},{},{},{},{}}; }) return 8;
  else if constexpr (requires { C{{},{},{},{},{},{},{}}; }) return 7;
  else if constexpr (requires { C{{},{},{},{},{},{}}; }) return 6;
  else if constexpr (requires { C{{},{},{},{},{}}; }) return 5;
  else if constexpr (requires { C{{},{},{},{}}; }) return 4;
  else if constexpr (requires { C{{},{},{}}; }) return 3;
  else if constexpr (requires { C{{},{}}; }) return 2;
  else if constexpr (requires { C{{}}; }) return 1;
  else return 0;
  // clang-format on
}

template <class C> constexpr auto fields_of(const C &c) {
  constexpr int n = field_count<C>();
  static_assert(n <= 16, "a configuration has at most 16 fields; give a larger one a defaulted operator==");
  // clang-format off
  if constexpr (n == 0) return std::tuple<>();
  else if constexpr (n == 1) { auto &[a] = c; return std::tie(a); }
  else if constexpr (n == 2) { auto &[a, b] = c; return std::tie(a, b); }
  else if constexpr (n == 3) { auto &[a, b, d] = c; return std::tie(a, b, d); }
  else if constexpr (n == 4) { auto &[a, b, d, e] = c; return std::tie(a, b, d, e); }
  else if constexpr (n == 5) { auto &[a, b, d, e, f] = c; return std::tie(a, b, d, e, f); }
  else if constexpr (n == 6) { auto &[a, b, d, e, f, g] = c; return std::tie(a, b, d, e, f, g); }
  else if constexpr (n == 7) { auto &[a, b, d, e, f, g, h] = c; return std::tie(a, b, d, e, f, g, h); }
  else if constexpr (n == 8) { auto &[a, b, d, e, f, g, h, i] = c; return std::tie(a, b, d, e, f, g, h, i); }
  else if constexpr (n == 9) { auto &[a, b, d, e, f, g, h, i, j] = c; return std::tie(a, b, d, e, f, g, h, i, j); }
  else if constexpr (n == 10) { auto &[a, b, d, e, f, g, h, i, j, k] = c; return std::tie(a, b, d, e, f, g, h, i, j, k); }
  else if constexpr (n == 11) { auto &[a, b, d, e, f, g, h, i, j, k, l] = c; return std::tie(a, b, d, e, f, g, h, i, j, k, l); }
  else if constexpr (n == 12) { auto &[a, b, d, e, f, g, h, i, j, k, l, m] = c; return std::tie(a, b, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (n == 13) { auto &[a, b, d, e, f, g, h, i, j, k, l, m, o] = c; return std::tie(a, b, d, e, f, g, h, i, j, k, l, m, o); }
  else if constexpr (n == 14) { auto &[a, b, d, e, f, g, h, i, j, k, l, m, o, p] = c; return std::tie(a, b, d, e, f, g, h, i, j, k, l, m, o, p); }
  else if constexpr (n == 15) { auto &[a, b, d, e, f, g, h, i, j, k, l, m, o, p, q] = c; return std::tie(a, b, d, e, f, g, h, i, j, k, l, m, o, p, q); }
  else { auto &[a, b, d, e, f, g, h, i, j, k, l, m, o, p, q, r] = c; return std::tie(a, b, d, e, f, g, h, i, j, k, l, m, o, p, q, r); }
  // clang-format on
}

template <class C> bool config_equal(const C &a, const C &b) {
  if constexpr (std::is_empty_v<C>) {
    return true;
  } else if constexpr (plain_bytes<C>) {
    return std::memcmp(&a, &b, sizeof a) == 0;
  } else if constexpr (std::same_as<C, float>) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  } else if constexpr (std::same_as<C, double>) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  } else if constexpr (std::ranges::sized_range<const C>) { // == of arrays compares addresses
    return std::ranges::equal(a, b, [](const auto &x, const auto &y) { return config_equal(x, y); });
  } else if constexpr (std::equality_comparable<C>) {
    return a == b;
  } else {
    static_assert(
        std::is_aggregate_v<C>,
        "a configuration is an aggregate of numbers, enums and aggregates; give other types a defaulted operator==");
    return std::apply(
        [&](auto &...x) { return std::apply([&](auto &...y) { return (config_equal(x, y) && ...); }, fields_of(b)); },
        fields_of(a));
  }
}

/// Equal configurations have equal hashes. A type of which only equality is known hashes to one value: there are few.
template <class C> std::uint64_t config_hash(const C &c) {
  constexpr std::uint64_t multiplier = 0x9e3779b97f4a7c15u;
  auto step = [](std::uint64_t h, std::uint64_t x) { return (std::rotl(h, 23) ^ x) * multiplier; };
  std::uint64_t h = sizeof(C);
  if constexpr (std::is_empty_v<C>) {
  } else if constexpr (plain_bytes<C>) {
    const char *bytes = reinterpret_cast<const char *>(&c);
    for (std::size_t i = 0; i < sizeof c; i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + i, sizeof c - i < 8 ? sizeof c - i : 8);
      h = step(h, word);
    }
  } else if constexpr (std::same_as<C, float>) {
    h = step(h, std::bit_cast<std::uint32_t>(c));
  } else if constexpr (std::same_as<C, double>) {
    h = step(h, std::bit_cast<std::uint64_t>(c));
  } else if constexpr (std::ranges::sized_range<const C>) {
    for (const auto &x : c)
      h = step(h, config_hash(x));
  } else if constexpr (std::equality_comparable<C>) {
  } else if constexpr (std::is_aggregate_v<C>) {
    std::apply([&](auto &...x) { ((h = step(h, config_hash(x))), ...); }, fields_of(c));
  }
  return h;
}

} // namespace tessera::detail
