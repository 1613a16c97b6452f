// Follows an asynchronous product along all paths behind it, until it is waited for or its registers are written.
#include "tessera/passes/InFlight.h"

#include "tessera/ir/ttir/Ttir.h"

#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace tessera {

namespace {

class Flight {
public:
  explicit Flight(ttng::WarpGroupDotOp dot) : dot(dot) {
    findWriters(dot.getA());
    // A register needs all that it is computed from.
    if (!parted)
      for (Operation *writer : writers)
        if (Operation *here = dot->getBlock()->findAncestorOpInBlock(*writer);
            here && here->isBeforeInBlock(dot) && (!last || last->isBeforeInBlock(here)))
          last = here;
  }

  bool overwritten() { return leave(dot, 0); }

private:
  enum class End { Open, Done, Overwritten };
  ttng::WarpGroupDotOp dot;
  llvm::DenseSet<Operation *> writers; ///< ops that begin to make A anew; loops that carry a part of it
  llvm::DenseSet<Value> seen;
  bool parted = false;       ///< some registers come from one writer only
  Operation *last = nullptr; ///< of the writers, in the product's block; the others make nothing yet

  /// What is computed without effects may be computed as soon as what it is computed from is there.
  void findWriters(Value value) {
    if (!seen.insert(value).second)
      return;
    Operation *op = value.getDefiningOp();
    if (!op) {
      if (Operation *parent = value.getParentBlock()->getParentOp(); isa<LoopLikeOpInterface>(parent))
        writers.insert(parent);
      return;
    }
    if (op->getNumRegions() || !isMemoryEffectFree(op)) {
      writers.insert(op);
      return;
    }
    parted |= isa<tt::CatOp, tt::JoinOp>(op);
    for (Value operand : op->getOperands())
      findWriters(operand);
  }

  /// The ops from `op` on to the end of their block, or to the product itself. `later`: groups begun behind it.
  End follow(Operation *op, unsigned &later) {
    for (; op && op != dot; op = op->getNextNode()) {
      if (auto other = dyn_cast<ttng::WarpGroupDotOp>(op)) {
        if (!other.getIsAsync()) // waits for all
          return End::Done;
        ++later;
      } else if (auto wait = dyn_cast<ttng::WarpGroupDotWaitOp>(op); wait && later >= wait.getPendings()) {
        return End::Done;
      }
      if (last ? op->isAncestor(last)
               : llvm::any_of(writers, [&](Operation *writer) { return op->isAncestor(writer); }))
        return End::Overwritten;
    }
    return End::Open;
  }

  /// Goes on behind `op`, in its block and those around it.
  bool leave(Operation *op, unsigned later) {
    if (End end = follow(op->getNextNode(), later); end != End::Open)
      return end == End::Overwritten;
    Operation *parent = op->getParentOp();
    if (!op->getParentRegion()->hasOneBlock()) // of branches between blocks nothing is known
      return true;
    if (parent->hasTrait<OpTrait::IsIsolatedFromAbove>())
      return false;
    if (isa<LoopLikeOpInterface>(parent)) {
      if (!last && writers.contains(parent))
        return true;
      for (Region &region : parent->getRegions())
        if (unsigned further = later; follow(&region.front().front(), further) == End::Overwritten)
          return true;
    }
    return leave(parent, later);
  }
};

} // namespace

bool overwritesOperandInFlight(ttng::WarpGroupDotOp dot) {
  return dot.getIsAsync() && isa<RankedTensorType>(dot.getA().getType()) && Flight(dot).overwritten();
}

} // namespace tessera
