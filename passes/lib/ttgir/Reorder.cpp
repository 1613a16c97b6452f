// Sinks layout conversions to their users.
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/passes/Passes.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTGIRREORDER
#include "tessera/passes/Passes.h.inc"

namespace {

/// The first op of the block deepest inside branches (not loops) that still holds all users, before which `op` can
/// stand.
Operation *firstUse(Operation *op) {
  Block *block = op->getBlock();
  Operation *best = nullptr;
  while (true) {
    Operation *first = nullptr;
    Region *only = nullptr; // the one region below `first` with all users in it
    bool single = true;
    for (OpOperand &use : op->getUses()) {
      Operation *ancestor = block->findAncestorOpInBlock(*use.getOwner());
      if (!ancestor)
        return best;
      Region *region = nullptr;
      if (ancestor != use.getOwner()) // which of the ancestor's regions
        for (Region &r : ancestor->getRegions())
          if (r.findAncestorOpInRegion(*use.getOwner()))
            region = &r;
      if (!first)
        only = region;
      single &= (!first || first == ancestor) && region && region == only;
      if (!first || ancestor->isBeforeInBlock(first))
        first = ancestor;
    }
    if (!first)
      return best;
    best = first;
    if (!single || !isa<scf::IfOp>(first) || !llvm::hasSingleElement(*only))
      return best;
    block = &only->front();
  }
}

class Reorder : public impl::TtgirReorderBase<Reorder> {
public:
  void runOnOperation() override {
    SmallVector<Operation *> conversions;
    getOperation().walk([&](ttg::ConvertLayoutOp op) { conversions.push_back(op); });
    for (Operation *op : llvm::reverse(conversions))
      if (Operation *before = firstUse(op); before && before != op->getNextNode())
        op->moveBefore(before);
  }
};

} // namespace
} // namespace tessera
