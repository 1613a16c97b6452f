#pragma once
// Shared-memory layouts of dot operands.
#include "tessera/ir/ttgir/Ttgir.h"

namespace tessera {

/// The encoding in which a tile is kept in shared memory that is read in `operand`'s dot_op layout. Dimension i of the
/// operand is dimension order[i] of the tile, whose fastest dimension in device memory is memoryOrder[0]: rows stay
/// rows, so that copies are wide, and the swizzle is chosen so that reads do not conflict.
mlir::Attribute sharedEncodingFor(mlir::RankedTensorType operand, llvm::ArrayRef<unsigned> memoryOrder,
                                  llvm::ArrayRef<int32_t> order);

} // namespace tessera
