#pragma once
// What is known of the values of integer and pointer tiles along each axis. Vector width of memory accesses depends on
// it, so every fact must hold for all inputs.
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>

namespace tessera {

/// Facts of one value; each vector has one entry an axis (one entry for a scalar). All numbers are powers of two.
///
/// Along axis d the tile is cut into groups of `contiguity[d]` elements that start at multiples of that number:
///  - contiguity:   within a group each element is its predecessor plus 1 (for pointers: plus one element);
///  - divisibility: divides the first element of every group (for pointers: in bytes);
///  - constancy:    likewise groups, within which all elements are equal.
struct AxisInfo {
  using Dims = llvm::SmallVector<int64_t, 4>;
  Dims contiguity, divisibility, constancy;
  std::optional<int64_t> constantValue; ///< all elements are this (sign-extended) number
  /// No element is negative as a signed number. Sums and products of such values count as non-negative too: an index
  /// that passes the type's largest value is out of bounds of every tensor, and the emulated targets report it. So do
  /// quotients of such a value and a number unknown at compile time: nobody divides an index by less than 0.
  bool nonNegative = false;

  AxisInfo() = default;
  AxisInfo(Dims contiguity, Dims divisibility, Dims constancy, std::optional<int64_t> constantValue = {},
           bool nonNegative = false);
  static constexpr int64_t kMaxDivisibility = int64_t(1) << 40; ///< the divisibility of 0

  /// Nothing is known.
  static AxisInfo unknown(unsigned rank);
  static AxisInfo constant(int64_t value, llvm::ArrayRef<int64_t> shape);
  /// What holds whichever of the two a value is.
  static AxisInfo join(const AxisInfo &a, const AxisInfo &b, int64_t step = 1);

  unsigned rank() const { return contiguity.size(); }
  /// Divides the first element of every group of `size` elements along `dim` (`step`: of neighbours; bytes for
  /// pointers).
  int64_t divisibilityAt(unsigned dim, int64_t size, int64_t step = 1) const;
  /// Divides every element.
  int64_t divisibilityOfAll() const;
  bool operator==(const AxisInfo &) const = default;
};

/// The largest power of two that divides `value`; kMaxDivisibility for 0.
int64_t powerOfTwoDivisor(int64_t value);

/// Forward data flow over every function of a module, loops to their fixpoint. Sources: constants, ranges,
/// `tt.divisibility` of arguments, and the hints `tt.divisibility`, `tt.contiguity`, `tt.constancy` on ops. A snapshot:
/// ops made later are unknown to it.
class AxisInfoAnalysis {
public:
  explicit AxisInfoAnalysis(mlir::ModuleOp module);

  /// Facts of an integer, pointer or i1 value (scalar or tile); nullptr where the analysis has not seen it.
  const AxisInfo *lookup(mlir::Value value) const;

  /// Of a tile of pointers with a layout: consecutive registers of a thread that hold consecutive, aligned addresses (a
  /// power of two, at most `maxBits` of memory). A scalar pointer gives 1.
  unsigned contiguousElements(mlir::Value ptr, unsigned maxBits = 128) const;
  /// Bytes every address that starts such a run is a multiple of (at least the size of an element, at most 16).
  unsigned alignment(mlir::Value ptr) const;
  /// Of a mask with a layout: consecutive registers that are all on or all off.
  unsigned maskAlignment(mlir::Value mask) const;
  /// The addresses of a whole warp are one run: with v = registersPerLane, lane l holds elements l*v … l*v+v-1 of it.
  bool lanesContiguous(mlir::Value ptr, unsigned registersPerLane = 1) const;

private:
  llvm::DenseMap<mlir::Value, AxisInfo> info;
};

} // namespace tessera
