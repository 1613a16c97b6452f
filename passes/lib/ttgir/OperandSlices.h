#pragma once
// Operands of matrix products that registers get from shared memory, taken in slices.
#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/ir/ttng/Ttng.h"

#include <optional>

namespace tessera {

/// A local_load, then element-wise ops of one tile each, every result used by the next one only.
struct LoadedOperand {
  ttg::LocalLoadOp load;
  llvm::SmallVector<mlir::Operation *> elementwise; ///< from the load to the product

  /// `v` as such an operand; nothing if it is none, or made outside of `block`.
  static std::optional<LoadedOperand> of(mlir::Value v, mlir::Block *block);

  /// Whether all of it may take place just before `op`, which is further down: nothing between may write what it reads.
  bool canSinkTo(mlir::Operation *op) const;
  /// The part of `shape` at `offsets`, loaded and computed where `b` is.
  mlir::Value slice(mlir::OpBuilder &b, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int32_t> offsets) const;
  /// When nobody uses the result any more.
  void erase();
};

/// A view of the part of `memory` of `shape` at `offsets`.
mlir::Value partOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value memory, llvm::ArrayRef<int64_t> shape,
                   llvm::ArrayRef<int32_t> offsets);

/// A of a product that can be computed in several products one behind the other, each with a slice of k, whose
/// registers are loaded separately; nothing if A is in shared memory, comes from elsewhere, or is one step deep.
std::optional<LoadedOperand> slicedA(ttng::WarpGroupDotOp dot);

/// Whether a loop can leave the product in flight at the end of a trip: A is in shared memory, or can be sliced, or has
/// the same registers in all trips. An A made of another product's result would be safe too, as that is waited for
/// first; but the vendor's assembler then lets every instruction of the loop wait for itself.
bool keepsRegisters(ttng::WarpGroupDotOp dot);

/// Cuts such a product along k in `parts`, which divide it. Returns the products, all of them asynchronous as `dot`
/// was.
llvm::SmallVector<ttng::WarpGroupDotOp> cutAlongK(ttng::WarpGroupDotOp dot, LoadedOperand &a, unsigned parts);

} // namespace tessera
