// Offsets that grow by the same amount each iteration are carried and added to instead of multiplied anew.
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "tessera/ir/ttir/Ttir.h"
#include "tessera/passes/Passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTIRSTRENGTHREDUCE
#include "tessera/passes/Passes.h.inc"

namespace {

bool isShapeOp(Operation *op) { return isa_and_nonnull<tt::BroadcastOp, tt::ExpandDimsOp>(op); }

class Loop {
public:
  explicit Loop(scf::ForOp loop) : loop(loop), before(loop) {}

  void run() {
    llvm::SetVector<Value> roots;
    for (auto op : loop.getBody()->getOps<tt::AddPtrOp>())
      collect(op.getOffset(), roots);
    SmallVector<Value> carried, inits, steps;
    for (Value root : roots) {
      IRMapping atStart;
      atStart.map(loop.getInductionVar(), loop.getLowerBound());
      inits.push_back(clone(root, atStart));
      steps.push_back(step(root)->value);
      carried.push_back(root);
    }
    if (carried.empty())
      return;
    IRRewriter rewriter(loop.getContext());
    NewYieldValuesFn yield = [&](OpBuilder &b, Location loc, ArrayRef<BlockArgument> arguments) {
      SmallVector<Value> next;
      for (auto [argument, by] : llvm::zip_equal(arguments, steps)) {
        Value tile = tt::SplatOp::create(b, loc, argument.getType(), by);
        next.push_back(arith::AddIOp::create(b, loc, argument, tile));
      }
      return next;
    };
    auto replaced = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(rewriter, inits, false, yield));
    for (auto [root, argument] : llvm::zip_equal(carried, replaced.getRegionIterArgs().take_back(carried.size())))
      root.replaceAllUsesWith(argument);
  }

private:
  /// What one iteration adds to each element; null: nothing.
  struct Step {
    Value value;
    bool multiplies = false; ///< a tile is multiplied in the loop to get there
  };

  bool isInvariant(Value v) { return loop.isDefinedOutsideOfLoop(v); }

  /// The largest sums that may be carried, below broadcasts: they have the fewest elements.
  void collect(Value v, llvm::SetVector<Value> &roots) {
    Operation *op = v.getDefiningOp();
    if (!op || isInvariant(v) || op->getParentRegion() != &loop.getRegion() || !isa<RankedTensorType>(v.getType()))
      return;
    bool spreads =
        isShapeOp(op) || (isa<arith::AddIOp, arith::SubIOp>(op) && llvm::any_of(op->getOperands(), [](Value o) {
                            return isa_and_nonnull<tt::BroadcastOp>(o.getDefiningOp());
                          }));
    if (spreads) {
      for (Value operand : op->getOperands())
        collect(operand, roots);
    } else if (auto by = step(v); by && by->value && by->multiplies) {
      roots.insert(v);
    }
  }

  /// The scalar all elements of an invariant tile equal, or null.
  Value uniform(Value v) {
    if (!isa<RankedTensorType>(v.getType()))
      return v;
    Operation *op = v.getDefiningOp();
    if (auto splat = dyn_cast_or_null<tt::SplatOp>(op))
      return splat.getSrc();
    if (isShapeOp(op))
      return uniform(op->getOperand(0));
    SplatElementsAttr all;
    if (matchPattern(v, m_Constant(&all)))
      return arith::ConstantOp::create(before, v.getLoc(), cast<TypedAttr>(all.getSplatValue<Attribute>()));
    return {};
  }

  /// Sums and products wrap, so the difference of two iterations is exact whatever the values are.
  std::optional<Step> step(Value v) {
    if (isInvariant(v) || matchPattern(v, m_Constant()))
      return Step{};
    if (v == loop.getInductionVar())
      return Step{loop.getStep()};
    Operation *op = v.getDefiningOp();
    if (!op || op->getParentRegion() != &loop.getRegion())
      return std::nullopt;
    if (isShapeOp(op) || isa<tt::SplatOp>(op))
      return step(op->getOperand(0));
    if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
      return std::nullopt;
    auto a = step(op->getOperand(0)), b = step(op->getOperand(1));
    if (!a || !b)
      return std::nullopt;
    Location loc = op->getLoc();
    Step sum{a->value, a->multiplies || b->multiplies};
    if (isa<arith::MulIOp>(op)) {
      if (a->value && b->value)
        return std::nullopt;
      Value by = a->value ? a->value : b->value;
      Value factor = uniform(op->getOperand(a->value ? 1 : 0));
      if (!by)
        return sum;
      if (!factor)
        return std::nullopt;
      return Step{arith::MulIOp::create(before, loc, by, factor), true};
    }
    bool subtract = isa<arith::SubIOp>(op);
    if (!b->value)
      return sum;
    Value zero = a->value ? a->value : zeroOf(b->value);
    sum.value = subtract   ? arith::SubIOp::create(before, loc, zero, b->value).getResult()
                : a->value ? arith::AddIOp::create(before, loc, a->value, b->value).getResult()
                           : b->value;
    return sum;
  }

  Value zeroOf(Value like) {
    return arith::ConstantOp::create(before, like.getLoc(), before.getZeroAttr(like.getType()));
  }

  Value clone(Value v, IRMapping &map) {
    if (Value known = map.lookupOrNull(v))
      return known;
    if (isInvariant(v))
      return v;
    Operation *op = v.getDefiningOp();
    for (Value operand : op->getOperands())
      map.map(operand, clone(operand, map));
    return before.clone(*op, map)->getResult(0);
  }

  scf::ForOp loop;
  OpBuilder before;
};

class StrengthReduce : public impl::TtirStrengthReduceBase<StrengthReduce> {
public:
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) // inner ones first, and each is visited once: the handles stay valid
      Loop(loop).run();
  }
};

} // namespace
} // namespace tessera
