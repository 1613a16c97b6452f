// mma.sync, ldmatrix and stmatrix, and the parts of wgmma that are arithmetic.
#include "matrix.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "checks.h"

namespace tessera::cpu {

// ---- number formats ------------------------------------------------------------------------------------------------

unsigned matrix_bytes(std::uint32_t type) {
  switch (type) {
  case tessera_matrix_f16:
  case tessera_matrix_bf16: return 2;
  case tessera_matrix_tf32:
  case tessera_matrix_f32: return 4;
  case tessera_matrix_f64: return 8;
  default: return 1;
  }
}

namespace {

/// A float of `exponent` and `mantissa` bits as f32 bits. `finite_only`: the format has no infinity, and of its largest
/// exponent only the all-ones mantissa is NaN (e4m3).
constexpr std::uint32_t decode(std::uint32_t bits, unsigned exponent_bits, unsigned mantissa_bits, bool finite_only) {
  std::uint32_t sign = bits >> (exponent_bits + mantissa_bits) << 31;
  std::uint32_t top = (1u << exponent_bits) - 1, ones = (1u << mantissa_bits) - 1;
  std::uint32_t exponent = bits >> mantissa_bits & top, mantissa = bits & ones;
  int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == top && (!finite_only || mantissa == ones))
    return sign | 0x7f800000 | (mantissa ? 0x400000 | mantissa << (23 - mantissa_bits) : 0);
  if (exponent)
    return sign | (exponent + 127 - bias) << 23 | mantissa << (23 - mantissa_bits);
  if (!mantissa)
    return sign;
  unsigned shift = mantissa_bits - (31 - std::countl_zero(mantissa)); // normalise: f32 has the smaller exponents
  return sign | (128 - bias - shift) << 23 | (mantissa << shift & ones) << (23 - mantissa_bits);
}

constexpr std::array<std::uint32_t, 256> table(unsigned exponent_bits, unsigned mantissa_bits, bool finite_only) {
  std::array<std::uint32_t, 256> values{};
  for (unsigned i = 0; i < 256; ++i)
    values[i] = decode(i, exponent_bits, mantissa_bits, finite_only);
  return values;
}
constexpr auto e4m3_values = table(4, 3, true), e5m2_values = table(5, 2, false);

/// The formats without infinities and without -0, whose code is the only NaN: the exponents are one less.
constexpr std::array<std::uint32_t, 256> table_fnuz(unsigned exponent_bits, unsigned mantissa_bits) {
  std::array<std::uint32_t, 256> values{};
  for (unsigned i = 0; i < 256; ++i) {
    std::uint32_t sign = i >> 7 << 31, rest = i & 127, top = rest >> mantissa_bits;
    float mantissa = float(rest & ((1u << mantissa_bits) - 1)) + (top ? float(1u << mantissa_bits) : 0);
    int exponent = int(top ? top : 1) - int(mantissa_bits) - (1 << (exponent_bits - 1));
    for (; exponent > 0; --exponent)
      mantissa *= 2;
    for (; exponent < 0; ++exponent)
      mantissa /= 2;
    values[i] = std::bit_cast<std::uint32_t>(mantissa) | sign;
  }
  values[128] = 0x7fc00000;
  return values;
}
constexpr auto e4m3fnuz_values = table_fnuz(4, 3), e5m2fnuz_values = table_fnuz(5, 2);

#if defined(__x86_64__)
const bool has_simd = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");

__attribute__((target("avx2,f16c"))) void widen_f16(const std::uint16_t *raw, std::uint32_t *out, unsigned count) {
  for (unsigned i = 0; i < count; i += 8)
    _mm256_storeu_ps(reinterpret_cast<float *>(out + i),
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(raw + i))));
}

// 8 * Width columns of a row of c stay in registers over all k.
template <bool Integer, unsigned Width>
__attribute__((target("avx2,fma"))) void multiply_rows(unsigned m, unsigned n, unsigned k, const std::uint32_t *a,
                                                       const std::uint32_t *b, std::uint32_t *c) {
  for (unsigned column = 0; column < n; column += 8 * Width)
    for (unsigned row = 0; row < m; ++row) {
      auto *to = reinterpret_cast<__m256i *>(c + row * n + column);
      __m256i sum[Width];
      for (unsigned i = 0; i < Width; ++i)
        sum[i] = _mm256_loadu_si256(to + i);
      for (unsigned x = 0; x < k; ++x) {
        auto *from = reinterpret_cast<const __m256i *>(b + x * n + column);
        const __m256i factor = _mm256_set1_epi32(static_cast<int>(a[row * k + x]));
        for (unsigned i = 0; i < Width; ++i) {
          const __m256i other = _mm256_loadu_si256(from + i);
          if constexpr (Integer)
            sum[i] = _mm256_add_epi32(sum[i], _mm256_mullo_epi32(factor, other));
          else
            sum[i] = _mm256_castps_si256(
                _mm256_fmadd_ps(_mm256_castsi256_ps(factor), _mm256_castsi256_ps(other), _mm256_castsi256_ps(sum[i])));
        }
      }
      for (unsigned i = 0; i < Width; ++i)
        _mm256_storeu_si256(to + i, sum[i]);
    }
}

template <bool Integer>
void multiply_simd(unsigned m, unsigned n, unsigned k, const std::uint32_t *a, const std::uint32_t *b,
                   std::uint32_t *c) {
  auto *rows = n % 64 == 0   ? multiply_rows<Integer, 8>
               : n % 32 == 0 ? multiply_rows<Integer, 4>
                             : multiply_rows<Integer, 1>;
  rows(m, n, k, a, b, c);
}
#else
const bool has_simd = false;
#endif

} // namespace

void widen(std::uint32_t type, const void *raw, std::uint32_t *out, unsigned count) {
  auto *bytes = static_cast<const std::uint8_t *>(raw);
  auto *halves = static_cast<const std::uint16_t *>(raw);
  switch (type) {
  case tessera_matrix_f16:
#if defined(__x86_64__)
    if (has_simd && count % 8 == 0)
      return widen_f16(halves, out, count);
#endif
    for (unsigned i = 0; i < count; ++i)
      out[i] = decode(halves[i], 5, 10, false);
    return;
  case tessera_matrix_bf16:
    for (unsigned i = 0; i < count; ++i)
      out[i] = std::uint32_t(halves[i]) << 16;
    return;
  case tessera_matrix_tf32:
    for (unsigned i = 0; i < count; ++i)
      out[i] = static_cast<const std::uint32_t *>(raw)[i] & 0xffffe000u;
    return;
  case tessera_matrix_f32: std::memcpy(out, raw, 4 * std::size_t(count)); return;
  case tessera_matrix_e4m3:
  case tessera_matrix_e5m2:
  case tessera_matrix_e4m3fnuz:
  case tessera_matrix_e5m2fnuz: {
    const auto &values = type == tessera_matrix_e4m3       ? e4m3_values
                         : type == tessera_matrix_e5m2     ? e5m2_values
                         : type == tessera_matrix_e4m3fnuz ? e4m3fnuz_values
                                                           : e5m2fnuz_values;
    for (unsigned i = 0; i < count; ++i)
      out[i] = values[bytes[i]];
    return;
  }
  case tessera_matrix_s8:
    for (unsigned i = 0; i < count; ++i)
      out[i] = static_cast<std::uint32_t>(static_cast<std::int8_t>(bytes[i]));
    return;
  default:
    for (unsigned i = 0; i < count; ++i)
      out[i] = bytes[i];
  }
}

void multiply_add(bool integer, unsigned m, unsigned n, unsigned k, const std::uint32_t *a, const std::uint32_t *b,
                  std::uint32_t *c) {
#if defined(__x86_64__)
  if (has_simd)
    return integer ? multiply_simd<true>(m, n, k, a, b, c) : multiply_simd<false>(m, n, k, a, b, c);
#endif
  if (integer) {
    for (unsigned row = 0; row < m; ++row)
      for (unsigned x = 0; x < k; ++x)
        for (unsigned column = 0; column < n; ++column)
          c[row * n + column] += a[row * k + x] * b[x * n + column];
    return;
  }
  auto *fa = reinterpret_cast<const float *>(a), *fb = reinterpret_cast<const float *>(b);
  auto *fc = reinterpret_cast<float *>(c);
  for (unsigned row = 0; row < m; ++row)
    for (unsigned x = 0; x < k; ++x)
      for (unsigned column = 0; column < n; ++column)
        fc[row * n + column] = std::fma(fa[row * k + x], fb[x * n + column], fc[row * n + column]);
}

// ---- fragments -----------------------------------------------------------------------------------------------------
// Lanes form eight groups of four. Group g holds rows g and g + 8 of A and column g of B; thread t of a group holds the
// k's that fill its registers: as many elements as fit in one (f64: one in 64 bits), then those 4 registers' worth
// further on.

void unpack_a(unsigned bytes, unsigned m, unsigned k, const void *registers, void *rows) {
  unsigned word = bytes == 8 ? 8 : 4, halves = m / 8, words = m * k * bytes / word / 32;
  for (unsigned r = 0; r < words; ++r)
    for (unsigned lane = 0; lane < 32; ++lane) {
      unsigned row = lane / 4 + 8 * (r % halves), at = (lane % 4 + r / halves * 4) * word;
      std::memcpy(static_cast<std::byte *>(rows) + row * k * bytes + at,
                  static_cast<const std::byte *>(registers) + (r * 32 + lane) * word, word);
    }
}

// ---- wgmma descriptors ---------------------------------------------------------------------------------------------

shared_matrix::shared_matrix(std::uint64_t descriptor, bool transposed, unsigned element_bytes)
    : transposed(transposed), per_chunk(16 / element_bytes) {
  // Addresses and offsets are encoded as 14 bits without the last four.
  auto field = [&](unsigned bit) { return static_cast<std::uint32_t>(descriptor >> bit & 0x3fff) << 4; };
  start = field(0);
  leading = field(16);
  stride = field(32);
  phase = descriptor >> 49 & 7;
  constexpr unsigned widths[] = {16, 128, 64, 32};
  swizzle = widths[descriptor >> 62];
}

std::uint32_t shared_matrix::chunk(unsigned row, unsigned k) const {
  std::uint32_t at = start;
  if (!transposed) {
    // Eight rows of `swizzle` bytes follow one another, groups of eight are `stride` apart. Without a swizzle a row is
    // one chunk, and the chunks of k are `leading` apart.
    at += row % 8 * swizzle + row / 8 * stride;
    at += k / per_chunk * (swizzle == 16 ? leading : 16);
  } else {
    // Eight k's of `swizzle` bytes follow one another.
    unsigned chunks = row / per_chunk, across = swizzle / 16;
    at += k % 8 * swizzle + k / 8 * (swizzle == 16 ? leading : stride);
    at += chunks % across * 16 + chunks / across * (swizzle == 16 ? stride : leading);
  }
  // The chunk's number within the row is xored with the row's number in the repeating pattern.
  std::uint32_t bits = swizzle / 16 - 1;
  return at ^ ((((at >> 7) - phase) & bits) << 4);
}

} // namespace tessera::cpu

// ---- what generated code calls --------------------------------------------------------------------------------------

using namespace tessera::cpu;

void tessera_cpu_mma(tessera_cpu_context *ctx, const tessera_cpu_matrix *matrix, const void *a, const void *b, void *c) {
  if (matrix->unit != tessera_unit_nvidia)
    return multiply_amd(state(ctx), *matrix, a, b, c);
  unsigned m = matrix->m, n = matrix->n, k = matrix->k, bytes = matrix_bytes(matrix->a), sums = m * n / 32;
  alignas(64) std::byte raw_a[16 * 128], raw_b[8 * 128];
  unpack_a(bytes, m, k, a, raw_a);
  // B is held as A is, its columns in the place of A's first eight rows.
  unpack_a(bytes, n, k, b, raw_b);
  if (matrix->a == tessera_matrix_f64) {
    double x[16 * 16], y[8 * 16];
    std::memcpy(x, raw_a, m * k * 8);
    std::memcpy(y, raw_b, n * k * 8);
    for (unsigned i = 0; i < sums; ++i)
      for (unsigned lane = 0; lane < 32; ++lane) {
        unsigned row = accumulator_row(i, lane), column = accumulator_column(i, lane);
        double &sum = static_cast<double *>(c)[i * 32 + lane];
        for (unsigned at = 0; at < k; ++at)
          sum = std::fma(x[row * k + at], y[column * k + at], sum);
      }
    return;
  }
  std::uint32_t x[16 * 32], columns[8 * 32], y[32 * 8], sum[16 * 8];
  widen(matrix->a, raw_a, x, m * k);
  widen(matrix->b, raw_b, columns, n * k);
  for (unsigned column = 0; column < n; ++column)
    for (unsigned at = 0; at < k; ++at)
      y[at * n + column] = columns[column * k + at];
  auto *registers = static_cast<std::uint32_t *>(c);
  for (unsigned i = 0; i < sums; ++i)
    for (unsigned lane = 0; lane < 32; ++lane)
      sum[accumulator_row(i, lane) * n + accumulator_column(i, lane)] = registers[i * 32 + lane];
  multiply_add(is_integer(matrix->a), m, n, k, x, y, sum);
  for (unsigned i = 0; i < sums; ++i)
    for (unsigned lane = 0; lane < 32; ++lane)
      registers[i * 32 + lane] = sum[accumulator_row(i, lane) * n + accumulator_column(i, lane)];
}

namespace {

/// Calls body(lane, half, offset, bytes) for each part of a register that one lane moves from or to row-major memory:
/// 16 bits of a transposed matrix, else all 32.
template <class Body> void each_part(std::uint32_t matrix, bool transposed, const std::uint32_t *offsets, Body body) {
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    std::uint32_t major = lane / 4, minor = lane % 4 * 2;
    if (!transposed) {
      body(lane, 0u, offsets[8 * matrix + major] + 2 * minor, 4u);
      continue;
    }
    for (std::uint32_t half = 0; half < 2; ++half)
      body(lane, half, offsets[8 * matrix + minor + half] + 2 * major, 2u);
  }
}

void check_rows(warp_state &warp, const tessera_cpu_access &access, std::uint32_t count, const std::uint32_t *offsets) {
  for (std::uint32_t lane = 0; lane < 8 * count; ++lane)
    check_shared(warp, lane, offsets[lane], 16, 16, &access.site);
}

/// The tag of the element at byte `byte` of a register, or none.
std::uint32_t tag_at(const tessera_cpu_access &access, const std::uint32_t *tags, std::uint32_t reg, std::uint32_t byte,
                     std::uint32_t lane) {
  return tags ? tags[(reg * (4 / access.elem_bytes) + byte / access.elem_bytes) * 32 + lane] : shadow::no_tag;
}

} // namespace

void tessera_cpu_load_matrix(tessera_cpu_context *ctx, const tessera_cpu_access *access, std::uint32_t count,
                             std::uint32_t transposed, const std::uint32_t *offsets, const std::uint32_t *tags,
                             std::uint32_t *registers) {
  warp_state &warp = state(ctx);
  shadow &s = warp.owner->shadow_;
  check_rows(warp, *access, count, offsets);
  for (std::uint32_t i = 0; i < count; ++i)
    each_part(
        i, transposed, offsets, [&](std::uint32_t lane, std::uint32_t half, std::uint32_t at, std::uint32_t bytes) {
          for (std::uint32_t byte = 0; byte < bytes; byte += access->elem_bytes)
            if (!s.read(shadow::thread(warp.warp, lane), at + byte, access->elem_bytes,
                        tag_at(*access, tags, i, 2 * half + byte, lane), &access->site, warp.owner->failure_))
              fail(warp, lane, &access->site, true);
          std::memcpy(reinterpret_cast<std::byte *>(registers + i * 32 + lane) + 2 * half, ctx->shared + at, bytes);
        });
}

void tessera_cpu_store_matrix(tessera_cpu_context *ctx, const tessera_cpu_access *access, std::uint32_t count,
                              std::uint32_t transposed, const std::uint32_t *offsets, const std::uint32_t *tags,
                              const std::uint32_t *registers) {
  warp_state &warp = state(ctx);
  shadow &s = warp.owner->shadow_;
  check_rows(warp, *access, count, offsets);
  for (std::uint32_t i = 0; i < count; ++i)
    each_part(i, transposed, offsets,
              [&](std::uint32_t lane, std::uint32_t half, std::uint32_t at, std::uint32_t bytes) {
                const auto *from = reinterpret_cast<const std::byte *>(registers + i * 32 + lane) + 2 * half;
                for (std::uint32_t byte = 0; byte < bytes; byte += access->elem_bytes)
                  if (!s.write(shadow::thread(warp.warp, lane), at + byte, access->elem_bytes,
                               tag_at(*access, tags, i, 2 * half + byte, lane),
                               std::memcmp(ctx->shared + at + byte, from + byte, access->elem_bytes) == 0,
                               &access->site, warp.owner->failure_))
                    fail(warp, lane, &access->site, true);
                std::memcpy(ctx->shared + at, from, bytes);
              });
}
