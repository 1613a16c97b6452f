#pragma once
// Shared memory of ops. Allocation, barrier insertion and lowering must agree on how an op uses its scratch, so all ask
// here.
#include "mlir/IR/Operation.h"
#include "tessera/ir/LayoutPlans.h"

#include <cstdint>
#include <optional>

namespace tessera {

namespace ttg {
class ConvertLayoutOp;
}
namespace tt {
class ReduceOp;
}

inline constexpr llvm::StringLiteral kAllocationOffset = "allocation.offset";
inline constexpr unsigned kSharedAlignment = 16;

/// A conversion through shared memory takes several passes rather than more scratch than this, where its layouts allow.
inline constexpr uint64_t kMaxConversionScratchBytes = 32 * 1024;
/// The allocation pass puts this on a conversion that must do with less, and would else not fit the target.
inline constexpr llvm::StringLiteral kScratchLimit = "allocation.scratch_limit";

/// Bytes of an element of `type` (of its element type, for a tile) in shared or global memory: i1 takes 1, pointers 8.
unsigned storageBytes(mlir::Type type);

/// The plans that the lowering must follow. `planOf(reduce)` is for operand 0; all operands share the layout.
ConversionPlan planOf(ttg::ConvertLayoutOp op);
ReductionPlan planOf(tt::ReduceOp op);

/// Scratch of a reduction: the operands' areas follow each other, each aligned to 16 bytes; this is operand i's first
/// byte.
unsigned reductionScratchOffset(tt::ReduceOp op, const ReductionPlan &plan, unsigned operand);

/// Bytes of shared memory the op needs while it runs (0 for most).
unsigned scratchBytes(mlir::Operation *op);
/// Bytes of the buffer that the op defines (`local_alloc`; 0 for all others).
unsigned bufferBytes(mlir::Operation *op);
/// What the offset of that buffer must be a multiple of: some swizzles are permutations of address bits.
unsigned bufferAlignment(mlir::Operation *op);

/// Byte offset that the allocation pass gave the op.
std::optional<unsigned> allocationOffset(mlir::Operation *op);

} // namespace tessera
