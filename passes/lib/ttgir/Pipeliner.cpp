// Facts about loops and loads that the passes of the software pipeliner share.
#include "Pipeliner.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tessera/passes/Allocation.h"
#include "llvm/ADT/SetVector.h"

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
  auto index = dyn_cast<IntegerType>(loop.getInductionVar().getType());
  if (loop.getUnsignedCmp() && (!index || index.getWidth() > 64)) // trips are counted in 64 bits
    return false;
  return !loop.getBody()
              ->walk([&](Operation *op) {
                // A buffer's place must not depend on control flow.
                auto isBuffer = [](Type type) { return isa<ttg::MemDescType>(type); };
                if (isa<LoopLikeOpInterface>(op) ||
                    (isa<scf::YieldOp>(op) && llvm::any_of(op->getOperandTypes(), isBuffer)))
                  return WalkResult::interrupt();
                bool fine = op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || isMemoryEffectFree(op) ||
                            onlyReads(op) || onlyReports(op) || isa<tt::StoreOp>(op);
                return fine ? WalkResult::advance() : WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// The arguments of the kernel that a pointer, or a tile of pointers, may be made of; false: it may lead anywhere.
static bool findArguments(Value pointer, llvm::DenseSet<Value> &seen, llvm::SmallSetVector<Value, 4> &arguments) {
  if (!seen.insert(pointer).second)
    return true;
  auto follow = [&](Value v) { return findArguments(v, seen, arguments); };
  if (auto arg = dyn_cast<BlockArgument>(pointer)) {
    Operation *parent = arg.getOwner()->getParentOp();
    if (isa<tt::FuncOp>(parent) && arg.getOwner()->isEntryBlock()) {
      arguments.insert(arg);
      return true;
    }
    auto loop = dyn_cast<scf::ForOp>(parent);
    return loop && arg.getArgNumber() > 0 && follow(loop.getTiedLoopInit(arg)->get()) &&
           follow(loop.getTiedLoopYieldedValue(arg)->get());
  }
  Operation *op = pointer.getDefiningOp();
  unsigned result = cast<OpResult>(pointer).getResultNumber();
  if (isa<tt::AddPtrOp, tt::SplatOp, tt::BroadcastOp, tt::ExpandDimsOp, tt::ReshapeOp, tt::TransOp, tt::BitcastOp,
          ttg::ConvertLayoutOp>(op))
    return follow(op->getOperand(0));
  if (isa<arith::SelectOp>(op))
    return follow(op->getOperand(1)) && follow(op->getOperand(2));
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return follow(loop.getInitArgs()[result]) && follow(loop.getYieldedValues()[result]);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return follow(branch.thenYield().getOperand(result)) && follow(branch.elseYield().getOperand(result));
  return false;
}

llvm::DenseSet<Operation *> readsOfStores(scf::ForOp loop) {
  llvm::SmallSetVector<Value, 4> stored;
  bool any = false, anywhere = false;
  loop.getBody()->walk([&](tt::StoreOp store) {
    llvm::DenseSet<Value> seen;
    any = true;
    anywhere |= !findArguments(store.getPtr(), seen, stored);
  });
  llvm::DenseSet<Operation *> reads;
  if (!any)
    return reads;
  for (auto load : loop.getBody()->getOps<tt::LoadOp>()) {
    llvm::DenseSet<Value> seen;
    llvm::SmallSetVector<Value, 4> loaded;
    bool known = findArguments(load.getPtr(), seen, loaded) && !anywhere;
    if (!known || llvm::any_of(loaded, [&](Value v) { return stored.contains(v); }))
      reads.insert(load);
  }
  return reads;
}

bool isMovable(Operation *op) { return isMemoryEffectFree(op) || onlyReads(op); }

Operation *bufferOf(Value memdesc) {
  Operation *op = memdesc.getDefiningOp();
  while (isa_and_nonnull<ttg::MemDescTransOp, ttg::MemDescSubsliceOp, ttg::MemDescIndexOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return op;
}

/// Whether lane l writes the l-th run of `run` elements of the warp's, wherever in memory those are.
static bool isInOrder(const LinearLayout &offsets, unsigned run) {
  uint64_t ofWarp = (uint64_t(run) << offsets.numBits(HwDim::Lane)) - 1;
  auto isOutside = [&](uint64_t basis) { return !(basis & ofWarp); };
  return llvm::all_of(llvm::enumerate(offsets.bases(HwDim::Lane)),
                      [&](auto lane) { return lane.value() == uint64_t(run) << lane.index(); }) &&
         llvm::all_of(offsets.bases(HwDim::Register).drop_front(llvm::Log2_32(run)), isOutside) &&
         llvm::all_of(offsets.bases(HwDim::Warp), isOutside);
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
    LinearLayout offsets = ttg::toLinearLayout(type).toMemory(memory);
    unsigned together = offsets.numConsecutiveRegisters(), width = std::min(contiguity, together) * bytes;
    if (width < target.minAsyncCopyBytes)
      continue;
    if (target.asyncCopiesInOrder) {
      width = width < target.maxAsyncCopyBytes ? target.minAsyncCopyBytes : target.maxAsyncCopyBytes;
      if (bytes > width || !isInOrder(offsets, width / bytes))
        continue;
      contiguity = width / bytes;
    }
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
