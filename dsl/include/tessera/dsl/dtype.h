#pragma once
// Element types: the runtime enum, the host storage of the 8 and 16-bit floats, and the map from C++ types to both.
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <tessera/export.h>

namespace tessera {

// clang-format off
enum class dtype : std::uint8_t {
  i1, i8, i16, i32, i64, u8, u16, u32, u64, f8e4m3, f8e5m2, f8e4m3fnuz, f8e5m2fnuz, f16, bf16, f32, f64
};
// clang-format on

/// "i1", "u8", "bf16", …
TESSERA_API std::string_view name(dtype t) noexcept;

/// Bytes an element takes in memory; bool takes one.
constexpr std::size_t size_of(dtype t) noexcept {
  constexpr std::uint8_t sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 1, 1, 1, 2, 2, 4, 8};
  return sizes[static_cast<std::size_t>(t)];
}
constexpr bool is_float(dtype t) noexcept { return t >= dtype::f8e4m3; }
constexpr bool is_float8(dtype t) noexcept { return t >= dtype::f8e4m3 && t <= dtype::f8e5m2fnuz; }
constexpr bool is_signed(dtype t) noexcept { return (t >= dtype::i8 && t <= dtype::i64) || is_float(t); }
constexpr bool is_integer(dtype t) noexcept { return t > dtype::i1 && t <= dtype::u64; }

/// IEEE binary16 in memory. Arithmetic on the host goes through float.
struct half {
  std::uint16_t bits = 0;

  half() = default;
  /// Rounds to nearest, ties to even; too large a value gives infinity.
  constexpr half(float x) noexcept {
    const std::uint32_t u = std::bit_cast<std::uint32_t>(x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    if (a > 0x7f800000)
      bits =
          static_cast<std::uint16_t>(sign | 0x7e00 | (a >> 13 & 0x3ff)); // a quiet NaN, with its payload's upper bits
    else if (a >= 0x477ff000)
      bits = static_cast<std::uint16_t>(sign | 0x7c00); // 65520 and above rounds to infinity
    else if (a >= 0x38800000) // normal
      bits = static_cast<std::uint16_t>(sign | (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13);
    else // subnormal: let the float adder round; 0.5f has an ulp of 2^-24, that of a subnormal half
      bits = static_cast<std::uint16_t>(sign |
                                        (std::bit_cast<std::uint32_t>(std::bit_cast<float>(a) + 0.5f) - 0x3f000000));
  }
  constexpr operator float() const noexcept {
    const std::uint32_t sign = (bits & 0x8000u) << 16, e = bits >> 10 & 31, m = bits & 0x3ffu;
    if (e == 0) {
      const float tiny = static_cast<float>(m) * 0x1p-24f;
      return sign ? -tiny : tiny;
    }
    return std::bit_cast<float>(sign | (e == 31 ? 0x7f800000u : (e + 112) << 23) | m << 13);
  }
  static constexpr half from_bits(std::uint16_t b) noexcept { half h; h.bits = b; return h; }
};

/// The upper half of a float.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  /// Rounds to nearest, ties to even.
  constexpr bfloat16(float x) noexcept {
    const std::uint32_t u = std::bit_cast<std::uint32_t>(x);
    bits =
        static_cast<std::uint16_t>((u & 0x7fffffff) > 0x7f800000 ? u >> 16 | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16);
  }
  constexpr operator float() const noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  static constexpr bfloat16 from_bits(std::uint16_t b) noexcept { bfloat16 h; h.bits = b; return h; }
};

/// One byte: a sign, an exponent with this bias, `Mantissa` bits. `Largest` are the bits of the largest finite value;
/// where they are all ones, the format is of the fnuz kind: no infinities, no -0, whose code means NaN.
template <int Mantissa, int Bias, std::uint8_t Largest> struct float8 {
  static constexpr bool fnuz = Largest == 0x7f;
  std::uint8_t bits = 0;

  float8() = default;
  /// Rounds to nearest, ties to even. Too large a value, infinity too, gives the largest finite one; NaN stays NaN.
  constexpr float8(float x) noexcept {
    const std::uint32_t u = std::bit_cast<std::uint32_t>(x), a = u & 0x7fffffff;
    constexpr int cut = 23 - Mantissa;
    constexpr std::uint32_t offset = std::uint32_t(127 - Bias) << 23;
    // Of the same ulp as a subnormal: the float adder rounds those.
    constexpr std::uint32_t anchor = std::uint32_t(127 + 24 - Bias - Mantissa) << 23;
    std::uint32_t r = fnuz ? 0x80 : 0x7f;
    bool negative = u >> 31;
    if (a <= 0x7f800000) {
      r = a < offset + (1u << 23)
              ? std::bit_cast<std::uint32_t>(std::bit_cast<float>(a) + std::bit_cast<float>(anchor)) - anchor
              : (a - offset + (1u << (cut - 1)) - 1 + (a >> cut & 1)) >> cut;
      r = r < Largest ? r : Largest;
      negative &= !fnuz || r;
    }
    bits = static_cast<std::uint8_t>(r | (negative ? 0x80 : 0));
  }
  constexpr operator float() const noexcept {
    if (fnuz && bits == 0x80)
      return std::bit_cast<float>(0x7fc00000u);
    const std::uint32_t sign = (bits & 0x80u) << 24, e = (bits & 0x7fu) >> Mantissa, m = bits & ((1u << Mantissa) - 1);
    if (e == 0) {
      const float tiny = static_cast<float>(m) * std::bit_cast<float>(std::uint32_t(128 - Bias - Mantissa) << 23);
      return sign ? -tiny : tiny;
    }
    const std::uint32_t exponent = (bits & 0x7fu) > Largest ? 255 : e + 127 - Bias; // NaN, or infinity where there is one
    return std::bit_cast<float>(sign | exponent << 23 | m << (23 - Mantissa));
  }
  static constexpr float8 from_bits(std::uint8_t b) noexcept { float8 h; h.bits = b; return h; }
};
/// 3 bits of mantissa, up to 448, no infinities.
using float8_e4m3 = float8<3, 7, 0x7e>;
/// 2 bits of mantissa, up to 57344: the upper half of an IEEE binary16.
using float8_e5m2 = float8<2, 15, 0x7b>;
/// 3 bits of mantissa, up to 240; one zero, one NaN, no infinities. AMD's gfx942 multiplies these and the next.
using float8_e4m3fnuz = float8<3, 8, 0x7f>;
/// 2 bits of mantissa, up to 57344; one zero, one NaN, no infinities.
using float8_e5m2fnuz = float8<2, 16, 0x7f>;

static_assert(sizeof(half) == 2 && sizeof(bfloat16) == 2 && sizeof(float8_e4m3) == 1);

namespace tl {
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using f8e4m3 = float8_e4m3;
using f8e5m2 = float8_e5m2;
using f8e4m3fnuz = float8_e4m3fnuz;
using f8e5m2fnuz = float8_e5m2fnuz;
using f16 = half;
using bf16 = bfloat16;
using f32 = float;
using f64 = double;
} // namespace tl

namespace detail {
template <class T> inline constexpr int dtype_index = -1;
template <> inline constexpr int dtype_index<bool> = int(dtype::i1);
template <> inline constexpr int dtype_index<std::int8_t> = int(dtype::i8);
template <> inline constexpr int dtype_index<std::int16_t> = int(dtype::i16);
template <> inline constexpr int dtype_index<std::int32_t> = int(dtype::i32);
template <> inline constexpr int dtype_index<std::int64_t> = int(dtype::i64);
template <> inline constexpr int dtype_index<std::uint8_t> = int(dtype::u8);
template <> inline constexpr int dtype_index<std::uint16_t> = int(dtype::u16);
template <> inline constexpr int dtype_index<std::uint32_t> = int(dtype::u32);
template <> inline constexpr int dtype_index<std::uint64_t> = int(dtype::u64);
template <> inline constexpr int dtype_index<float8_e4m3> = int(dtype::f8e4m3);
template <> inline constexpr int dtype_index<float8_e5m2> = int(dtype::f8e5m2);
template <> inline constexpr int dtype_index<float8_e4m3fnuz> = int(dtype::f8e4m3fnuz);
template <> inline constexpr int dtype_index<float8_e5m2fnuz> = int(dtype::f8e5m2fnuz);
template <> inline constexpr int dtype_index<half> = int(dtype::f16);
template <> inline constexpr int dtype_index<bfloat16> = int(dtype::bf16);
template <> inline constexpr int dtype_index<float> = int(dtype::f32);
template <> inline constexpr int dtype_index<double> = int(dtype::f64);
} // namespace detail

/// A type that memory may hold: bool, i8 … u64, f8e4m3(fnuz), f8e5m2(fnuz), f16, bf16, f32, f64.
template <class T>
concept memory_element = detail::dtype_index<T> >= 0;
template <memory_element T> inline constexpr dtype dtype_of = static_cast<dtype>(detail::dtype_index<T>);

/// The type of one tile element: a memory element, or a pointer to (const) one.
struct element_type {
  dtype base = dtype::i1; ///< of a pointer: what it points to
  bool pointer = false;
  bool operator==(const element_type &) const = default;
};
template <class T> inline constexpr element_type element_type_of{dtype_of<T>, false};
template <class T> inline constexpr element_type element_type_of<T *>{dtype_of<std::remove_const_t<T>>, true};

template <class T>
concept float_element = memory_element<T> && is_float(dtype_of<T>);
template <class T>
concept float8_element = memory_element<T> && is_float8(dtype_of<T>);
template <class T>
concept integer_element = memory_element<T> && is_integer(dtype_of<T>);
template <class T>
concept pointer_element = std::is_pointer_v<T> && memory_element<std::remove_const_t<std::remove_pointer_t<T>>>;
template <class T>
concept element = memory_element<T> || pointer_element<T>;

} // namespace tessera
