#pragma once
// What the end-to-end tests share: the target under test, inputs, guarded outputs, and comparison with references.
#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <tessera/tessera.h>

namespace e2e {

namespace tl = tessera::tl;
using tl::bf16, tl::f16, tl::f8e4m3, tl::f8e4m3fnuz, tl::f8e5m2, tl::f8e5m2fnuz;
using tl::i16, tl::i32, tl::i64, tl::i8, tl::u16, tl::u32, tl::u64, tl::u8;

/// The device of --target, and its default stream.
const tessera::device &dev();
const tessera::stream &on();
/// The target of --also-compile: what is launched is compiled for it too, so that code of absent GPUs is at least
/// assembled.
const std::optional<tessera::target> &also_compile();
/// --exhaustive: every combination instead of a sample; --random=N: as many random matrix products.
bool exhaustive();
int random_products();
/// --shard=I/N: of those, every N-th from the I-th on, so that N processes share the work. Call it once for each.
bool mine();

/// Runs a kernel on the device under test.
template <class K, class... A>
void launch(const K &kernel, tessera::detail::launch_grid<typename K::config> grid, A &&...args) {
  if (also_compile())
    for (auto spec : {tessera::specialization{}, tessera::specialization::aligned()})
      kernel.compile_for(*also_compile(), spec);
  kernel(on(), grid, args...);
}

template <class T> constexpr bool is_float8 = tessera::float8_element<T>;
template <class T> constexpr bool is_small_float = std::is_same_v<T, f16> || std::is_same_v<T, bf16> || is_float8<T>;
template <class T> constexpr bool is_float = std::is_floating_point_v<T> || is_small_float<T>;
/// Significant bits, the implied one included.
template <class T>
constexpr int digits = std::is_same_v<T, f16>                                       ? 11
                       : std::is_same_v<T, bf16>                                    ? 8
                       : std::is_same_v<T, f8e4m3> || std::is_same_v<T, f8e4m3fnuz> ? 4
                       : is_float8<T>                                               ? 3
                                                                                    : std::numeric_limits<T>::digits;
template <class T>
constexpr int min_exponent = std::is_same_v<T, f16> || std::is_same_v<T, f8e5m2> ? -13
                             : std::is_same_v<T, f8e5m2fnuz>                     ? -14
                             : std::is_same_v<T, bf16>                           ? -125
                             : std::is_same_v<T, f8e4m3>                         ? -5
                             : std::is_same_v<T, f8e4m3fnuz>                     ? -6
                                                                                 : std::numeric_limits<T>::min_exponent;
template <class T>
constexpr int max_exponent = std::is_same_v<T, f16> || std::is_same_v<T, f8e5m2> || std::is_same_v<T, f8e5m2fnuz> ? 16
                             : std::is_same_v<T, bf16>                                                            ? 128
                             : std::is_same_v<T, f8e4m3>                                                          ? 9
                             : std::is_same_v<T, f8e4m3fnuz>                                                      ? 8
                                                             : std::numeric_limits<T>::max_exponent;

template <class T> std::string type_name() {
  return is_float8<T>                ? std::string(tessera::name(tessera::dtype_of<T>))
         : std::is_same_v<T, bool>   ? "bool"
         : std::is_same_v<T, f16>    ? "f16"
         : std::is_same_v<T, bf16>   ? "bf16"
         : std::is_same_v<T, float>  ? "f32"
         : std::is_same_v<T, double> ? "f64"
         : std::is_same_v<T, i8>     ? "i8"
         : std::is_same_v<T, i16>    ? "i16"
         : std::is_same_v<T, i32>    ? "i32"
         : std::is_same_v<T, i64>    ? "i64"
         : std::is_same_v<T, u8>     ? "u8"
         : std::is_same_v<T, u16>    ? "u16"
         : std::is_same_v<T, u32>    ? "u32"
                                     : "u64";
}

template <class T> double to_double(T v) {
  if constexpr (is_small_float<T>)
    return static_cast<float>(v);
  else
    return static_cast<double>(v);
}

/// Distance between neighbours of T around v.
template <class T> double ulp(double v) {
  int e = 0;
  std::frexp(v, &e);
  return std::ldexp(1.0, std::max(v == 0 || !std::isfinite(v) ? min_exponent<T> : e, min_exponent<T>) - digits<T>);
}

/// The value of the float type T nearest to v, ties to even, by exact arithmetic in double or wider.
template <class T> double round_to(long double v) {
  if (std::isnan(v) || std::isinf(v) || v == 0)
    return static_cast<double>(v);
  int e = 0;
  std::frexp(v, &e);
  const int scale = std::max(e, min_exponent<T>) - digits<T>;
  const long double rounded = std::ldexp(std::nearbyint(std::ldexp(v, -scale)), scale);
  return std::fabs(rounded) >= std::ldexp(1.0L, max_exponent<T>) ? std::copysign(HUGE_VAL, static_cast<double>(v))
                                                                 : static_cast<double>(rounded);
}

/// v as T: exact rounding for floats, plain conversion otherwise. fp8 saturates.
template <class T> T make(double v) {
  if constexpr (is_small_float<T>)
    return T(static_cast<float>(round_to<T>(v)));
  else
    return static_cast<T>(v);
}

/// n numbers evenly random in [lo, hi], the same in every run.
template <class T> std::vector<T> random(std::size_t n, double lo, double hi, unsigned seed = 1) {
  std::mt19937_64 bits(seed);
  std::uniform_real_distribution<double> d(lo, hi);
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = make<T>(d(bits));
  return v;
}

template <class T> std::vector<T> iota(std::size_t n, double first = 0) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = make<T>(first + static_cast<double>(i));
  return v;
}

/// std::vector<bool> is no array.
template <class T> using storage = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

/// Memory a kernel reads.
template <class T> class input {
public:
  input(const std::vector<T> &host) : mem_(dev(), host) {}
  tessera::buffer_view<const T> operator*() const { return std::as_const(mem_).view(); }

private:
  tessera::device_buffer<T> mem_;
};

/// Memory a kernel writes: poisoned, with poisoned margins that must stay so.
template <class T> class output {
public:
  static constexpr std::size_t margin = 64;
  static constexpr unsigned char poison = 0xA5;
  explicit output(std::size_t n) : mem_(dev(), n + 2 * margin) { mem_.fill_bytes(poison); }
  output(const std::vector<T> &initial) : output(initial.size()) {
    mem_.slice(margin, initial.size()).copy_from(initial);
  }

  tessera::buffer_view<T> operator*() { return mem_.slice(margin, mem_.size() - 2 * margin); }
  /// The contents; fails the test where a margin was written.
  std::vector<T> read() const {
    auto all = mem_.to_host();
    auto untouched = [](const T *from, std::size_t count) {
      auto bytes = reinterpret_cast<const unsigned char *>(from);
      return std::all_of(bytes, bytes + count * sizeof(T), [](unsigned char b) { return b == poison; });
    };
    CHECK_MESSAGE(untouched(all.data(), margin), "the kernel wrote before its output");
    CHECK_MESSAGE(untouched(all.data() + all.size() - margin, margin), "the kernel wrote behind its output");
    return {all.begin() + margin, all.end() - margin};
  }
  static bool is_poison(const T &v) {
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &v, sizeof(T));
    return std::all_of(bytes, bytes + sizeof(T), [](unsigned char b) { return b == poison; });
  }

private:
  tessera::device_buffer<T> mem_;
};

template <class T> bool same_bits(const T &a, const T &b) { return std::memcmp(&a, &b, sizeof(T)) == 0; }

/// One assertion for a whole result: values bit-identical, but any NaN equals any NaN.
template <class T> void check_equal(const std::string &what, const std::vector<T> &got, const std::vector<T> &want) {
  REQUIRE(got.size() == want.size());
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = got.size(); i-- > 0;)
    if (!same_bits(got[i], want[i]) &&
        !(is_float<T> && std::isnan(to_double(got[i])) && std::isnan(to_double(want[i]))))
      ++wrong, first = i;
  CHECK_MESSAGE(wrong == 0, what, " ", type_name<T>(), ": ", wrong, " of ", got.size(), " wrong, first at ", first,
                ": got ", to_double(got[first]), ", want ", to_double(want[first]));
}

/// Every got[i] within `ulps` units of want[i], a unit being that of max(|want[i]|, floor).
template <class T>
void check_close(const std::string &what, const std::vector<T> &got, const std::vector<double> &want, double ulps,
                 double floor = 0) {
  REQUIRE(got.size() == want.size());
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = got.size(); i-- > 0;) {
    const double g = to_double(got[i]), w = round_to<T>(want[i]);
    const bool same = (std::isnan(g) && std::isnan(w)) || g == w;
    if (!same && !(std::fabs(g - want[i]) <= ulps * ulp<T>(std::max(std::fabs(want[i]), floor))))
      ++wrong, first = i;
  }
  CHECK_MESSAGE(wrong == 0, what, " ", type_name<T>(), ": ", wrong, " of ", got.size(), " off by more than ", ulps,
                " ulp, first at ", first, ": got ", to_double(got[first]), ", want ", want[first]);
}

template <class T> std::vector<T> part(const std::vector<T> &v, std::size_t from, std::size_t count) {
  return {v.begin() + static_cast<std::ptrdiff_t>(from), v.begin() + static_cast<std::ptrdiff_t>(from + count)};
}

} // namespace e2e
