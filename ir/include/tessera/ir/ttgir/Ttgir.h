#pragma once
// Dialect ttg: encodings (named linear layouts) of tiles, shared memory, and conversions between them.
#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/TensorEncoding.h"
#include "tessera/ir/LinearLayout.h"
#include "tessera/ir/ttir/Ttir.h"

namespace tessera::ttg {

/// What shared-memory operations and barriers touch.
struct SharedMemory : mlir::SideEffects::Resource::Base<SharedMemory> {
  llvm::StringRef getName() final { return "SharedMemory"; }
};

// Module attributes.
constexpr llvm::StringLiteral numWarpsAttr = "ttg.num-warps";
constexpr llvm::StringLiteral numCTAsAttr = "ttg.num-ctas";
constexpr llvm::StringLiteral threadsPerWarpAttr = "ttg.threads-per-warp";
constexpr llvm::StringLiteral targetAttr = "ttg.target";
constexpr llvm::StringLiteral sharedAttr = "ttg.shared";
/// The values of the module around `op`; defaults (4, 1, 32) where absent.
unsigned lookupNumWarps(mlir::Operation *op);
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
