// Peephole rewrites of ttir that need no analysis.
#include "../PatternPass.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "tessera/ir/ttir/Ttir.h"
#include "tessera/passes/Passes.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTIRCOMBINE
#include "tessera/passes/Passes.h.inc"

namespace {

/// The scalar that fills `v`: its own if it is one, or of a splat; constants are made at `b`. Null if there is none.
Value splatSource(Value v) {
  auto splat = v.getDefiningOp<tt::SplatOp>();
  return splat ? splat.getSrc() : Value();
}

/// addptr(splat p, splat i) -> splat addptr(p, i), and of a uniform base in front of a varying offset alike:
/// addptr(addptr(splat p, splat i), x) falls out of it.
struct UniformAddPtr : OpRewritePattern<tt::AddPtrOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tt::AddPtrOp op, PatternRewriter &b) const override {
    Value base = splatSource(op.getPtr());
    if (!base)
      return failure();
    Value offset = splatSource(op.getOffset());
    if (!offset) {
      DenseIntElementsAttr data;
      if (!matchPattern(op.getOffset(), m_Constant(&data)) || !data.isSplat())
        return failure();
      offset = arith::ConstantOp::create(b, op.getLoc(), data.getSplatValue<IntegerAttr>());
    }
    Value sum = tt::AddPtrOp::create(b, op.getLoc(), base.getType(), base, offset);
    b.replaceOpWithNewOp<tt::SplatOp>(op, op.getType(), sum);
    return success();
  }
};

/// Offsets add up only where the sum is exact: adding them in i32 would wrap where two pointer steps do not.
struct ChainedAddPtr : OpRewritePattern<tt::AddPtrOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tt::AddPtrOp op, PatternRewriter &b) const override {
    auto inner = op.getPtr().getDefiningOp<tt::AddPtrOp>();
    APInt first, second;
    if (!inner || inner.getOffset().getType() != op.getOffset().getType() ||
        !matchPattern(inner.getOffset(), m_ConstantInt(&first)) ||
        !matchPattern(op.getOffset(), m_ConstantInt(&second)))
      return failure();
    bool overflow = false;
    APInt sum = first.sadd_ov(second, overflow);
    if (overflow)
      return failure();
    Type type = op.getOffset().getType();
    TypedAttr value;
    if (auto tile = dyn_cast<RankedTensorType>(type))
      value = DenseElementsAttr::get(tile, sum);
    else
      value = IntegerAttr::get(type, sum);
    Value offset = arith::ConstantOp::create(b, op.getLoc(), value);
    b.replaceOpWithNewOp<tt::AddPtrOp>(op, op.getType(), inner.getPtr(), offset);
    return success();
  }
};

/// select(m, load(p, m), x) -> load(p, m, x): the select only fills what the load left out.
struct SelectOfLoad : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::SelectOp op, PatternRewriter &b) const override {
    auto load = op.getTrueValue().getDefiningOp<tt::LoadOp>();
    if (!load || !load->hasOneUse() || !load.getMask() || load.getMask() != op.getCondition() ||
        load->getBlock() != op->getBlock() || load.getIsVolatile())
      return failure();
    Value other = op.getFalseValue();
    // `other` may be made after the load: only what stands before it can be its operand.
    Operation *def = other.getDefiningOp();
    if (def && def->getBlock() == load->getBlock() && !def->isBeforeInBlock(load)) {
      if (!def->hasTrait<OpTrait::ConstantLike>())
        return failure();
      b.moveOpBefore(def, load);
    }
    b.modifyOpInPlace(load, [&] { load.getOtherMutable().assign(other); });
    b.replaceOp(op, load.getResult());
    return success();
  }
};

/// select(splat c, a, b) -> select(c, a, b): one branch condition instead of one a lane.
struct UniformSelect : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::SelectOp op, PatternRewriter &b) const override {
    Value condition = splatSource(op.getCondition());
    if (!condition)
      return failure();
    b.modifyOpInPlace(op, [&] { op.getConditionMutable().assign(condition); });
    return success();
  }
};

/// Whether every element of `v` that `mask` leaves out is +0: a load fills it, and conversions keep it.
bool zeroWhereMaskedOff(Value v, Value mask) {
  while (Operation *def = v.getDefiningOp()) {
    if (auto load = dyn_cast<tt::LoadOp>(def))
      return load.getMask() == mask &&
             (!load.getOther() || matchPattern(load.getOther(), m_PosZeroFloat()) || matchPattern(load.getOther(), m_Zero()));
    if (!isa<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp, tt::FpToFpOp>(def))
      return false;
    v = def->getOperand(0);
  }
  return false;
}

/// select(m, a - b, 0) -> a - select(m, b, 0) where m leaves zeros in `a`, and sums alike. Worth it where `b` has few
/// values: elements under one mask then share the select.
template <typename Op> struct MaskedDifference : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern<arith::SelectOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::SelectOp op, PatternRewriter &b) const override {
    auto inner = op.getTrueValue().getDefiningOp<Op>();
    if (!inner || !inner->hasOneUse() || !matchPattern(op.getFalseValue(), m_PosZeroFloat()))
      return failure();
    for (unsigned filled : {0, 1}) {
      Value few = inner->getOperand(1 - filled);
      if (!zeroWhereMaskedOff(inner->getOperand(filled), op.getCondition()) ||
          !isa_and_nonnull<tt::SplatOp, tt::BroadcastOp>(few.getDefiningOp()))
        continue;
      Value masked = arith::SelectOp::create(b, op.getLoc(), op.getCondition(), few, op.getFalseValue());
      SmallVector<Value> operands{inner->getOperand(0), inner->getOperand(1)};
      operands[1 - filled] = masked;
      b.replaceOpWithNewOp<Op>(op, operands[0], operands[1], inner.getFastmath());
      return success();
    }
    return failure();
  }
};

/// sum + dot(a, b, 0) -> dot(a, b, sum). A product with maxNumImpreciseAcc stays: only it may be summed less exactly.
template <typename Add> struct AddOfDot : OpRewritePattern<Add> {
  using OpRewritePattern<Add>::OpRewritePattern;
  LogicalResult matchAndRewrite(Add op, PatternRewriter &b) const override {
    for (auto [term, sum] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
      auto dot = term.template getDefiningOp<tt::DotOp>();
      if (!dot || !dot->hasOneUse() || dot.getMaxNumImpreciseAcc() != 0 ||
          !(matchPattern(dot.getC(), m_Zero()) || matchPattern(dot.getC(), m_AnyZeroFloat())))
        continue;
      b.replaceOpWithNewOp<tt::DotOp>(op, dot.getA(), dot.getB(), sum, dot.getInputPrecision(), 0);
      return success();
    }
    return failure();
  }
};

class Combine : public PatternPass<impl::TtirCombineBase<Combine>, UniformAddPtr, ChainedAddPtr, SelectOfLoad,
                                   UniformSelect, MaskedDifference<arith::SubFOp>, MaskedDifference<arith::AddFOp>,
                                   AddOfDot<arith::AddFOp>, AddOfDot<arith::AddIOp>> {};

} // namespace
} // namespace tessera
