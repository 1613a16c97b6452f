// Fences between ordinary writes to shared memory and warp_group_dot, which reads it through the asynchronous proxy.
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tessera/ir/ttng/Ttng.h"
#include "tessera/passes/Allocation.h"
#include "tessera/passes/Passes.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTGIRFENCEINSERTION
#include "tessera/passes/Passes.h.inc"

namespace {

class FenceInsertion : public impl::TtgirFenceInsertionBase<FenceInsertion> {
public:
  using TtgirFenceInsertionBase::TtgirFenceInsertionBase;

  void runOnOperation() override {
    for (auto func : getOperation().getOps<tt::FuncOp>()) {
      readByDots.clear();
      func.walk([&](ttng::WarpGroupDotOp dot) {
        for (Value operand : {Value(dot.getA()), Value(dot.getB())})
          if (isa<ttg::MemDescType>(operand.getType()))
            markAliases(operand);
      });
      if (readByDots.empty())
        continue;
      bool copies = false;
      func.walk([&](ttg::AsyncCopyGlobalToLocalOp copy) { copies |= readByDots.contains(copy.getResult()); });
      func.walk([&](Block *block) { visit(*block, copies && fenceCopies); });
    }
  }

private:
  llvm::DenseSet<Value> readByDots; ///< descriptors of memory that some warp_group_dot may read

  /// Everything a descriptor may be a view of, and all views of that.
  void markAliases(Value desc) {
    SmallVector<Value> work{desc};
    auto visitAll = [&](ValueRange values) {
      for (Value v : values)
        if (isa<ttg::MemDescType>(v.getType()))
          work.push_back(v);
    };
    while (!work.empty()) {
      Value v = work.pop_back_val();
      if (!readByDots.insert(v).second)
        continue;
      if (Operation *op = v.getDefiningOp()) {
        visitAll(op->getOperands());
        for (Region &region : op->getRegions()) // results of loops and branches
          for (Block &block : region)
            visitAll(block.getTerminator()->getOperands());
      } else {
        Operation *parent = v.getParentBlock()->getParentOp();
        visitAll(parent->getOperands());
        visitAll(v.getParentBlock()->getTerminator()->getOperands());
      }
      for (Operation *user : v.getUsers()) {
        visitAll(user->getResults());
        for (Region &region : user->getRegions())
          visitAll(region.getArguments());
        if (user->hasTrait<OpTrait::IsTerminator>()) {
          visitAll(user->getParentOp()->getResults());
          for (Region &region : user->getParentOp()->getRegions())
            visitAll(region.getArguments());
        }
      }
    }
  }

  bool writes(Operation *op, bool copies) const {
    if (auto alloc = dyn_cast<ttg::LocalAllocOp>(op))
      return alloc.getSrc() && readByDots.contains(alloc.getResult());
    if (auto store = dyn_cast<ttg::LocalStoreOp>(op))
      return readByDots.contains(store.getDst());
    return copies && isa<ttg::AsyncWaitOp>(op);
  }

  static bool containsDot(Operation *op) {
    return op->walk([](ttng::WarpGroupDotOp) { return WalkResult::interrupt(); }).wasInterrupted();
  }
  /// Whether a product may run at `op` or later.
  static bool dotFollows(Operation *op) {
    for (; op && !isa<tt::FuncOp>(op); op = op->getParentOp()) {
      for (Operation *next = op; next; next = next->getNextNode())
        if (containsDot(next))
          return true;
      if (isa<LoopLikeOpInterface>(op->getParentOp()) && containsDot(op->getParentOp()))
        return true;
    }
    return false;
  }

  /// One fence behind a run of writes, before the barrier that separates them from the product; a product in the same
  /// block ends the run as well, and so does the end of the block.
  void visit(Block &block, bool copies) {
    bool pending = false;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isa<ttng::FenceAsyncSharedOp>(op))
        pending = false;
      bool ends = isa<ttg::BarrierOp, tt::DebugBarrierOp, ttng::WarpGroupDotOp>(op) || op.getNumRegions() > 0 ||
                  op.hasTrait<OpTrait::IsTerminator>() || scratchBytes(&op) > 0; // which has a barrier inside
      if (pending && ends) {
        OpBuilder b(&op);
        if (dotFollows(&op))
          ttng::FenceAsyncSharedOp::create(b, op.getLoc(), false);
        pending = false;
      }
      pending |= writes(&op, copies);
    }
  }
};

} // namespace
} // namespace tessera
