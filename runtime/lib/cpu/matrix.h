#pragma once
// The arithmetic of the emulated matrix units, written from the vendors' ISA documents alone: number formats, which element
// of a matrix a register of a lane holds, and where a wgmma descriptor puts an element. It knows nothing of the
// compiler's layouts, which are checked against it by every kernel that runs.
#include <cstdint>

#include <tessera/codegen/cpu_abi.h>

namespace tessera::cpu {

struct warp_state;

/// Bytes of an element.
unsigned matrix_bytes(std::uint32_t type);
/// Whether products of `type` are added up in i32.
inline bool is_integer(std::uint32_t type) { return type == tessera_matrix_s8 || type == tessera_matrix_u8; }

/// c[m][n] += a[m][k] * b[k][n] of row-major matrices, in the order of k: f32 (multiply and add rounded together) or
/// i32 that wraps; 32 bits an element in all of them.
void multiply_add(bool integer, unsigned m, unsigned n, unsigned k, const std::uint32_t *a, const std::uint32_t *b,
                  std::uint32_t *c);

/// `count` elements, one after the other, as f32 (s8 and u8: as i32). tf32 loses the 13 bits that the unit ignores.
void widen(std::uint32_t type, const void *raw, std::uint32_t *out, unsigned count);

/// The fragment of A that four registers of 32 lanes hold, `k` elements of 16 rows, as row-major elements.
void unpack_a(unsigned bytes, unsigned m, unsigned k, const void *registers, void *rows);

/// Row and column of accumulator register `i` of `lane` (within 16 or 8 rows, and n columns).
constexpr unsigned accumulator_row(unsigned i, unsigned lane) { return lane / 4 + 8 * (i / 2 % 2); }
constexpr unsigned accumulator_column(unsigned i, unsigned lane) { return i / 4 * 8 + lane % 4 * 2 + i % 2; }

// ---- MFMA and WMMA (matrix_amd.cpp) --------------------------------------------------------------------------------

/// Row and column; of an operand: row of A or column of B, and k.
struct amd_place {
  unsigned row, column;
  bool operator==(const amd_place &) const = default;
};
constexpr unsigned amd_lanes(const tessera_cpu_matrix &i) { return i.unit >= tessera_unit_rdna3 ? 32 : 64; }
/// Elements of A or B that a lane holds.
unsigned amd_elements(const tessera_cpu_matrix &instruction, bool is_b);
/// What `lane` holds as element number `element` of A or B, and of the sums.
amd_place amd_operand(const tessera_cpu_matrix &instruction, bool is_b, unsigned element, unsigned lane);
amd_place amd_sum(const tessera_cpu_matrix &instruction, unsigned element, unsigned lane);
/// tessera_cpu_mma of these units.
void multiply_amd(warp_state &warp, const tessera_cpu_matrix &instruction, const void *a, const void *b, void *c);

/// A matrix in shared memory as a wgmma descriptor tells it: a grid of 16-byte chunks.
struct shared_matrix {
  /// `row`: index along m or n; `k`. With `transposed`, memory runs along the rows, else along k. Chunks hold the 16 /
  /// element size elements along that direction.
  shared_matrix(std::uint64_t descriptor, bool transposed, unsigned element_bytes);
  /// Byte offset of the chunk of element (row, k), which must be the first in its chunk.
  [[nodiscard]] std::uint32_t chunk(unsigned row, unsigned k) const;

private:
  std::uint32_t start, leading, stride, phase;
  unsigned swizzle; ///< bytes of a swizzled row: 128, 64, 32; 16: none
  bool transposed;
  unsigned per_chunk;
};

} // namespace tessera::cpu
