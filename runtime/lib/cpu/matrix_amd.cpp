// MFMA and WMMA, from AMD's documents: where the elements are, and what the units do to numbers.
//   MFMA: CDNA2, CDNA3 and CDNA4 instruction set architecture, "Matrix arithmetic instructions" (chapter 7), dense
//   forms; WMMA: RDNA3 ISA, section 7.9, and RDNA4 ISA, section 7.12, for waves of 32.
// The AMD matrix instruction calculator prints the same maps.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

#include "checks.h"
#include "matrix.h"

namespace tessera::cpu {

amd_place amd_operand(const tessera_cpu_matrix &i, bool is_b, unsigned element, unsigned lane) {
  unsigned outer = is_b ? i.n : i.m;
  switch (i.unit) {
  case tessera_unit_rdna3: // all of k in each lane; lanes 16 to 31 repeat lanes 0 to 15
    return {lane % 16, element};
  case tessera_unit_rdna4: // the upper half of the lanes has the upper half of k
    return {lane % 16, lane / 16 * (i.k / 2) + element};
  default: { // lanes run along rows, then along k in pieces as long as a lane holds
    unsigned of_lane = outer * i.k / 64;
    return {lane % outer, lane / outer * of_lane + element};
  }
  }
}

amd_place amd_sum(const tessera_cpu_matrix &i, unsigned element, unsigned lane) {
  switch (i.unit) {
  case tessera_unit_rdna3: return {2 * element + lane / 16, lane % 16};
  case tessera_unit_rdna4: return {lane / 16 * 8 + element, lane % 16};
  default: {
    // Groups of `high` rows go to a lane, then to the next 64 / n lanes, then on in the lane's registers.
    unsigned high = i.a == tessera_matrix_f64 ? 1 : 4, groups = 64 / i.n;
    return {element % high + high * (lane / i.n + groups * (element / high)), lane % i.n};
  }
  }
}

unsigned amd_elements(const tessera_cpu_matrix &i, bool is_b) {
  if (i.unit == tessera_unit_rdna3)
    return i.k;
  return (is_b ? i.n : i.m) * i.k / amd_lanes(i);
}

namespace {

/// The maps of one instruction: where each register of each lane is in row-major matrices, [register][lane]. B is kept
/// with columns as rows. A register of 32 bits (f64: 64) holds elements that are neighbours along k, low bits first.
struct maps {
  unsigned lanes, of_a, of_b, of_c;           ///< registers of a lane
  std::array<std::uint16_t, 16 * 64> a, b, c; ///< a, b: byte; c: element
};

const maps &maps_of(const tessera_cpu_matrix &i) {
  using key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  unsigned bytes = matrix_bytes(i.a), per_register = bytes == 8 ? 1 : 4 / bytes;
  thread_local std::map<key, maps> known;
  auto [at, made] = known.try_emplace({i.unit, i.m, i.n, i.k, bytes});
  maps &m = at->second;
  if (!made)
    return m;
  m.lanes = amd_lanes(i);
  m.of_a = amd_elements(i, false) / per_register;
  m.of_b = amd_elements(i, true) / per_register;
  m.of_c = i.m * i.n / m.lanes;
  for (unsigned lane = 0; lane < m.lanes; ++lane) {
    auto byte = [&](bool is_b, unsigned reg) {
      amd_place p = amd_operand(i, is_b, reg * per_register, lane);
      return static_cast<std::uint16_t>((p.row * i.k + p.column) * bytes);
    };
    for (unsigned reg = 0; reg < m.of_a; ++reg)
      m.a[reg * m.lanes + lane] = byte(false, reg);
    for (unsigned reg = 0; reg < m.of_b; ++reg)
      m.b[reg * m.lanes + lane] = byte(true, reg);
    for (unsigned reg = 0; reg < m.of_c; ++reg) {
      amd_place p = amd_sum(i, reg, lane);
      m.c[reg * m.lanes + lane] = static_cast<std::uint16_t>(p.row * i.n + p.column);
    }
  }
  return m;
}

/// Registers to a row-major matrix.
template <class Register, class Map>
void gather(const void *registers, const Map &map, unsigned count, unsigned lanes, std::byte *matrix) {
  auto *from = static_cast<const Register *>(registers);
  for (unsigned at = 0; at < count * lanes; ++at)
    std::memcpy(matrix + map[at], from + at, sizeof(Register));
}

/// CDNA2's f16 and bf16 instructions take denormals, of operands and of sums, as zeros (AMD's MIOpen documentation,
/// "MI200 MFMA behavior specifics").
void flush_denormals(std::uint32_t *values, unsigned count, std::uint32_t smallest_exponent) {
  for (unsigned i = 0; i < count; ++i)
    if ((values[i] >> 23 & 255) < smallest_exponent)
      values[i] &= 0x80000000;
}

} // namespace

void multiply_amd(warp_state &warp, const tessera_cpu_matrix &i, const void *a, const void *b, void *c) {
  const maps &m = maps_of(i);
  unsigned bytes = matrix_bytes(i.a);
  alignas(64) std::byte rows[32 * 64], columns[32 * 64]; // the largest is 16 x 128 bytes
  if (i.unit == tessera_unit_rdna3)
    for (const void *operand : {a, b})
      for (unsigned at = 0; at < m.of_a * m.lanes; ++at)
        if (auto *words = static_cast<const std::uint32_t *>(operand); at % 32 >= 16 && words[at] != words[at - 16]) {
          warp.owner->failure_.why = failure::reason::unequal_halves;
          fail(warp, at % 32, &i.site);
        }
  auto to_matrix = bytes == 8 ? gather<std::uint64_t, decltype(m.a)> : gather<std::uint32_t, decltype(m.a)>;
  to_matrix(a, m.a, m.of_a, m.lanes, rows);
  to_matrix(b, m.b, m.of_b, m.lanes, columns);
  if (i.a == tessera_matrix_f64) {
    auto *sums = static_cast<double *>(c);
    for (unsigned at = 0; at < m.of_c * m.lanes; ++at) {
      unsigned row = m.c[at] / i.n, column = m.c[at] % i.n;
      for (unsigned k = 0; k < i.k; ++k) {
        double x, y;
        std::memcpy(&x, rows + (row * i.k + k) * 8, 8);
        std::memcpy(&y, columns + (column * i.k + k) * 8, 8);
        sums[at] = std::fma(x, y, sums[at]);
      }
    }
    return;
  }
  std::uint32_t x[32 * 64], turned[32 * 64], y[32 * 64], sum[32 * 32];
  widen(i.a, rows, x, i.m * i.k);
  widen(i.b, columns, turned, i.n * i.k);
  for (unsigned column = 0; column < i.n; ++column)
    for (unsigned k = 0; k < i.k; ++k)
      y[k * i.n + column] = turned[column * i.k + k];
  auto *registers = static_cast<std::uint32_t *>(c);
  for (unsigned at = 0; at < m.of_c * m.lanes; ++at)
    sum[m.c[at]] = registers[at];
  bool flush = i.unit == tessera_unit_cdna2 && bytes == 2;
  if (flush) {
    std::uint32_t smallest = i.a == tessera_matrix_f16 ? 127 - 14 : 1;
    flush_denormals(x, i.m * i.k, smallest);
    flush_denormals(y, i.n * i.k, smallest);
    flush_denormals(sum, i.m * i.n, 1);
  }
  multiply_add(is_integer(i.a), i.m, i.n, i.k, x, y, sum);
  if (flush)
    flush_denormals(sum, i.m * i.n, 1);
  for (unsigned at = 0; at < m.of_c * m.lanes; ++at)
    registers[at] = sum[m.c[at]];
}

} // namespace tessera::cpu

// ---- what generated code calls --------------------------------------------------------------------------------------

using namespace tessera::cpu;

void tessera_cpu_load_transposed(tessera_cpu_context *ctx, const tessera_cpu_access *access,
                                 const std::uint32_t *offsets, const std::uint32_t *tags, std::uint32_t *registers) {
  warp_state &warp = state(ctx);
  shadow &s = warp.owner->shadow_;
  for (std::uint32_t lane = 0; lane < access->lanes; ++lane)
    check_shared(warp, lane, offsets[lane], 8, 8, &access->site);
  for (std::uint32_t lane = 0; lane < access->lanes; ++lane)
    for (std::uint32_t e = 0; e < 4; ++e) {
      std::uint32_t from = lane / 16 * 16 + lane % 16 / 4 + 4 * e, offset = offsets[from] + lane % 4 * 2;
      if (!s.read(shadow::thread(warp.warp, lane), offset, 2, tags ? tags[e * access->lanes + lane] : shadow::no_tag,
                  &access->site, warp.owner->failure_))
        fail(warp, lane, &access->site, true);
      std::memcpy(reinterpret_cast<std::byte *>(registers + e / 2 * access->lanes + lane) + e % 2 * 2,
                  ctx->shared + offset, 2);
    }
}
