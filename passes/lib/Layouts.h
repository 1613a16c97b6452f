#pragma once
// How the encodings of an op's operands and results are related. All passes that move layouts around ask here.
#include "tessera/ir/ttgir/Ttgir.h"

namespace tessera::layouts {

/// The tile type, or null for scalars and descriptors.
inline mlir::RankedTensorType tileType(mlir::Value v) { return mlir::dyn_cast<mlir::RankedTensorType>(v.getType()); }
mlir::Attribute encodingOf(mlir::Value v); ///< null for all but tiles with an encoding
mlir::RankedTensorType withEncoding(mlir::RankedTensorType type, mlir::Attribute encoding);
/// Sets the encoding of a value's type, and that of the data of a constant.
void setEncoding(mlir::Value v, mlir::Attribute encoding);

/// All tiles of the op, operands and results, have one encoding: element-wise ops, loads, stores, broadcast.
bool isUniform(mlir::Operation *op);
/// The op makes its result from nothing: any encoding will do (constant, splat, make_range, poison).
bool isSource(mlir::Operation *op);
/// The result's encoding follows from the operand's: reduce, join, split, cat.
bool isForced(mlir::Operation *op);
/// Tiles of pointers: load or store of device memory.
mlir::Value memoryPointer(mlir::Operation *op); ///< its pointer operand when that is a tile, else null

/// Encoding of the results when operand `index` has `encoding`; null when nothing follows.
mlir::Attribute resultEncoding(mlir::Operation *op, unsigned index, mlir::Attribute encoding);
/// Encoding that operand `index` needs for results in `encoding`; null when there is none or the op does not care.
mlir::Attribute operandEncoding(mlir::Operation *op, unsigned index, mlir::Attribute encoding);

/// `v` in `encoding`, through a convert_layout where that is another.
mlir::Value convertTo(mlir::OpBuilder &b, mlir::Value v, mlir::Attribute encoding);
/// Makes a memory access work in `encoding`, with conversions before and behind it.
void setAccessEncoding(mlir::Operation *op, mlir::Attribute encoding);

/// A local_alloc filled with `v`; outside of the loops around that do not define `v`.
mlir::Value storeToShared(mlir::OpBuilder &b, mlir::Value v, mlir::Attribute encoding);

/// Dimensions of `v`'s tile, fastest first in the device memory it was loaded from: looks through conversions,
/// transpositions and element-wise ops. Where there is no load, as the lanes hold it.
llvm::SmallVector<unsigned> memoryOrder(mlir::Value v);

/// The default: one element a thread, last dimension fastest.
mlir::Attribute defaultEncoding(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> shape, unsigned numWarps,
                                unsigned threadsPerWarp);

} // namespace tessera::layouts
