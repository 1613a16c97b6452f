// Facts about loops and loads that the passes of the software pipeliner share.
#include "Pipeliner.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tessera/passes/Allocation.h"

using namespace mlir;

namespace tessera::pipeliner {

std::optional<int> intAttr(Operation *op, StringRef name) {
  auto attr = op->getAttrOfType<IntegerAttr>(name);
  return attr && attr.getValue().isSignedIntN(32) ? std::optional<int>(attr.getInt()) : std::nullopt;
}

void setIntAttr(Operation *op, StringRef name, int value) {
  op->setAttr(name, IntegerAttr::get(IntegerType::get(op->getContext(), 32), value));
}

Operation *ancestorInBody(scf::ForOp loop, Operation *op) { return loop.getBody()->findAncestorOpInBlock(*op); }

/// Ops with effects that no load can observe.
static bool onlyReports(Operation *op) { return isa<tt::PrintOp, tt::AssertOp, tt::AssumeOp>(op); }

/// Reads, and buffers filled once, when they are made.
static bool onlyReads(Operation *op) {
  if (auto load = dyn_cast<tt::LoadOp>(op))
    return !load.getIsVolatile();
  if (auto alloc = dyn_cast<ttg::LocalAllocOp>(op))
    return alloc.getSrc() != nullptr;
  return isa<ttg::LocalLoadOp, ttg::LocalDotOp, ttng::WarpGroupDotOp>(op);
}

bool canPipeline(scf::ForOp loop) {
  if (loop.getUnsignedCmp())
    return false;
  return !loop.getBody()
              ->walk([&](Operation *op) {
                // A buffer's place must not depend on control flow.
                auto isBuffer = [](Type type) { return isa<ttg::MemDescType>(type); };
                if (isa<LoopLikeOpInterface>(op) ||
                    (isa<scf::YieldOp>(op) && llvm::any_of(op->getOperandTypes(), isBuffer)))
                  return WalkResult::interrupt();
                bool fine = op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || isMemoryEffectFree(op) ||
                            onlyReads(op) || onlyReports(op);
                return fine ? WalkResult::advance() : WalkResult::interrupt();
              })
              .wasInterrupted();
}

bool isMovable(Operation *op) { return isMemoryEffectFree(op) || onlyReads(op); }

Operation *bufferOf(Value memdesc) {
  Operation *op = memdesc.getDefiningOp();
  while (isa_and_nonnull<ttg::MemDescTransOp, ttg::MemDescSubsliceOp, ttg::MemDescIndexOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return op;
}

std::optional<AsyncCopy> asAsyncCopy(tt::LoadOp load, const AxisInfoAnalysis &axes, const TargetModel &target) {
  auto type = dyn_cast<RankedTensorType>(load.getType());
  if (target.minAsyncCopyBytes == 0 || !type || load.getIsVolatile())
    return std::nullopt;
  if (load.getOther() && !matchPattern(load.getOther(), m_Zero()) && !matchPattern(load.getOther(), m_AnyZeroFloat()))
    return std::nullopt;
  // A carried value must be in registers.
  if (llvm::any_of(load->getUsers(), [](Operation *user) { return isa<scf::YieldOp>(user); }))
    return std::nullopt;
  unsigned contiguity = axes.contiguousElements(load.getPtr(), target.maxAsyncCopyBytes * 8);
  if (load.getMask())
    contiguity = std::min(contiguity, axes.maskAlignment(load.getMask()));
  unsigned bytes = storageBytes(type);
  for (Operation *user : load->getUsers()) {
    auto alloc = dyn_cast<ttg::LocalAllocOp>(user);
    if (!alloc || alloc->getBlock() != load->getBlock())
      continue;
    auto shared = dyn_cast<ttg::SharedEncoding>(alloc.getType().getEncoding());
    if (!shared || isa<ttg::PaddedSharedEncodingAttr>(shared))
      continue;
    // Registers of a lane that lie together in the buffer as well.
    LinearLayout memory = shared.toLinearLayout(alloc.getType().getShape());
    unsigned together = ttg::toLinearLayout(type).toMemory(memory).numConsecutiveRegisters();
    if (std::min(contiguity, together) * bytes >= target.minAsyncCopyBytes)
      return AsyncCopy{alloc, contiguity};
  }
  return std::nullopt;
}

bool onlyAccumulates(ttng::WarpGroupDotOp dot, scf::ForOp loop) {
  // Upwards to the carried argument, then downwards to the yield.
  Value first = dot.getC();
  while (auto before = first.getDefiningOp<ttng::WarpGroupDotOp>()) {
    if (before->getBlock() != loop.getBody() || !first.hasOneUse())
      return false;
    first = before.getC();
  }
  auto arg = dyn_cast<BlockArgument>(first);
  if (!arg || arg.getOwner() != loop.getBody() || arg.getArgNumber() == 0 || !arg.hasOneUse())
    return false;
  Value last = dot.getD();
  while (last.hasOneUse()) {
    OpOperand &use = *last.getUses().begin();
    if (isa<scf::YieldOp>(use.getOwner()))
      return use.getOwner()->getBlock() == loop.getBody() && use.getOperandNumber() + 1 == arg.getArgNumber();
    auto after = dyn_cast<ttng::WarpGroupDotOp>(use.getOwner());
    if (!after || after->getBlock() != loop.getBody() || after.getC() != last)
      return false;
    last = after.getD();
  }
  return false;
}

void keepWholeChains(SmallVectorImpl<ttng::WarpGroupDotOp> &dots) {
  size_t before;
  do {
    before = dots.size();
    auto isOther = [&](Operation *op) {
      auto dot = dyn_cast_or_null<ttng::WarpGroupDotOp>(op);
      return dot && !llvm::is_contained(dots, dot);
    };
    llvm::erase_if(dots, [&](ttng::WarpGroupDotOp dot) {
      return isOther(dot.getC().getDefiningOp()) || llvm::any_of(dot->getUsers(), isOther);
    });
  } while (dots.size() != before);
}

} // namespace tessera::pipeliner
