#pragma once
// Dialect ttg: encodings (named linear layouts) of tiles, shared memory, and conversions between them.
#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/TensorEncoding.h"
#include "tessera/ir/LinearLayout.h"
#include "tessera/ir/MatrixInstructions.h"
#include "tessera/ir/ttir/Ttir.h"

namespace tessera::ttg {

/// What shared-memory operations and barriers touch.
struct SharedMemory : mlir::SideEffects::Resource::Base<SharedMemory> {
  llvm::StringRef getName() final { return "SharedMemory"; }
};

/// The order in which a thread starts, groups and waits for asynchronous copies.
struct AsyncGroups : mlir::SideEffects::Resource::Base<AsyncGroups> {
  llvm::StringRef getName() final { return "AsyncGroups"; }
};

// Module attributes.
constexpr llvm::StringLiteral numWarpsAttr = "ttg.num-warps";
/// How many of these warps each warp of the machine is, one after the other between two barriers; 1 where absent.
constexpr llvm::StringLiteral warpTurnsAttr = "ttg.warp-turns";
constexpr llvm::StringLiteral numCTAsAttr = "ttg.num-ctas";
constexpr llvm::StringLiteral threadsPerWarpAttr = "ttg.threads-per-warp";
constexpr llvm::StringLiteral targetAttr = "ttg.target";
constexpr llvm::StringLiteral sharedAttr = "ttg.shared";
/// The values of the module around `op`; defaults (4, 1, 1, 32) where absent.
unsigned lookupNumWarps(mlir::Operation *op);
unsigned lookupWarpTurns(mlir::Operation *op);
unsigned lookupNumCTAs(mlir::Operation *op);
unsigned lookupThreadsPerWarp(mlir::Operation *op);

/// The linear layout of a tensor: distributed encodings have the inputs register, lane, warp, block (all present),
/// shared ones offset (and block). `encoding` must be one of this dialect's, of `shape`'s rank; shape: powers of two.
/// Layouts of distributed encodings have no zero register bases.
LinearLayout toLinearLayout(llvm::ArrayRef<int64_t> shape, mlir::Attribute encoding);
LinearLayout toLinearLayout(mlir::RankedTensorType type);

/// Whether two encodings place a tensor of `shape` alike. Null encodings are equal only to each other.
bool areEquivalent(llvm::ArrayRef<int64_t> shape, mlir::Attribute a, mlir::Attribute b);

/// An encoding for `layout` (register, lane, warp, block): blocked where that says it, else linear.
mlir::Attribute encodingOf(mlir::MLIRContext *context, const LinearLayout &layout);

// Encoding of an operation's result; `src` may be null (no encoding) and then so is the result. Failure: the operation
// cannot be done within lanes, or the encoding is not of this dialect.
using InferredEncoding = mlir::FailureOr<mlir::Attribute>;
InferredEncoding inferExpandDims(mlir::RankedTensorType src, unsigned axis);
InferredEncoding inferReduce(mlir::RankedTensorType src, unsigned axis);
InferredEncoding inferTrans(mlir::RankedTensorType src, llvm::ArrayRef<int32_t> order);
InferredEncoding inferReshape(mlir::RankedTensorType src, llvm::ArrayRef<int64_t> shape);
InferredEncoding inferJoin(mlir::RankedTensorType src);
InferredEncoding inferSplit(mlir::RankedTensorType src);
InferredEncoding inferCat(mlir::RankedTensorType src);
/// The source encoding for which expand_dims, trans or reshape gives `result`: what a layout change needs to move
/// backwards.
InferredEncoding inferSourceOf(mlir::Operation *op, mlir::Attribute result);

} // namespace tessera::ttg

#include "tessera/ir/ttgir/TtgirDialect.h.inc"
#include "tessera/ir/ttgir/TtgirEnums.h.inc"
#include "tessera/ir/ttgir/TtgirInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "tessera/ir/ttgir/TtgirAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "tessera/ir/ttgir/TtgirTypes.h.inc"
#define GET_OP_CLASSES
#include "tessera/ir/ttgir/TtgirOps.h.inc"

namespace tessera::ttg {

/// The layout of the allocation that `type` is a view of, without the dimension that counts buffers: offset -> element
/// of allocShape's last dimensions.
LinearLayout allocationLayout(MemDescType type);

/// Bytes that the place of such a buffer is a multiple of, 16 at least: some swizzles permute bits of the address.
unsigned sharedAlignment(MemDescType type);

/// The swizzle, with `order`, with which a warp reads `operand` from shared memory in the fewest wavefronts (by
/// ldmatrix if `matrixLoad`), and is written without conflicts by 16-byte copies along order[0].
SwizzledSharedEncodingAttr chooseSwizzle(mlir::RankedTensorType operand, llvm::ArrayRef<unsigned> order,
                                         bool matrixLoad);

/// The encoding of `type` if it is that of a matrix instruction's accumulators, else null.
inline MatrixEncoding getMatrixEncoding(mlir::RankedTensorType type) {
  return llvm::dyn_cast_or_null<MatrixEncoding>(type.getEncoding());
}
/// The same for mma.sync and wgmma only.
inline NvidiaMmaEncodingAttr getMma(mlir::RankedTensorType type) {
  return llvm::dyn_cast_or_null<NvidiaMmaEncodingAttr>(type.getEncoding());
}

/// Shapes and element types of the product c + a * b, ranks 2 and 3: whether they fit. Reports on `op`.
mlir::LogicalResult verifyDotTypes(mlir::Operation *op, mlir::ShapedType a, mlir::ShapedType b, mlir::ShapedType c);

} // namespace tessera::ttg
