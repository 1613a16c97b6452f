// Folders and canonicalisation of the tile operations.
#include "mlir/Dialect/CommonFolders.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "tessera/ir/ttir/Ttir.h"

using namespace mlir;

namespace tessera::tt {

/// A constant with one value, in the type of `result`; null if `constant` is none or pointers are involved.
static OpFoldResult splatTo(Attribute constant, Type result) {
  auto splat = dyn_cast_or_null<SplatElementsAttr>(constant);
  auto type = dyn_cast<RankedTensorType>(result);
  if (!splat || !type || splat.getElementType() != type.getElementType())
    return {};
  return splat.resizeSplat(type);
}

/// Replaces `op(splat x)` by `splat x` in op's type.
template <typename Op> struct OfSplat : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const final {
    auto splat = op.getSrc().template getDefiningOp<SplatOp>();
    if (!splat)
      return failure();
    rewriter.replaceOpWithNewOp<SplatOp>(op, op.getType(), splat.getSrc());
    return success();
  }
};

// ---- casts and arithmetic -------------------------------------------------------------------------------------------

OpFoldResult IntToPtrOp::fold(FoldAdaptor) {
  auto inner = getSrc().getDefiningOp<PtrToIntOp>();
  return inner && inner.getSrc().getType() == getType() ? inner.getSrc() : OpFoldResult();
}

OpFoldResult BitcastOp::fold(FoldAdaptor) {
  if (getSrc().getType() == getType())
    return getSrc();
  if (auto inner = getSrc().getDefiningOp<BitcastOp>()) {
    getSrcMutable().assign(inner.getSrc());
    return getResult();
  }
  return {};
}

OpFoldResult FpToFpOp::fold(FoldAdaptor adaptor) {
  if (getSrc().getType() == getType())
    return getSrc();
  auto to = cast<FloatType>(getElementTypeOrSelf(getType()));
  if (!isFloat8(to) && !isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(to))
    return {};
  bool towardZero = getRounding() == RoundingMode::RTZ;
  return constFoldCastOp<FloatAttr, FloatAttr>(adaptor.getOperands(), getType(), [&](const APFloat &x, bool &) {
    APFloat y = x;
    bool inexact;
    y.convert(to.getFloatSemantics(), towardZero ? APFloat::rmTowardZero : APFloat::rmNearestTiesToEven, &inexact);
    // 8-bit floats saturate.
    if (to.getWidth() == 8 && !x.isNaN() && !y.isFinite())
      y = APFloat::getLargest(to.getFloatSemantics(), x.isNegative());
    return y;
  });
}

OpFoldResult MulhiUIOp::fold(FoldAdaptor adaptor) {
  return constFoldBinaryOp<IntegerAttr>(adaptor.getOperands(),
                                        [](const APInt &a, const APInt &b) { return llvm::APIntOps::mulhu(a, b); });
}

OpFoldResult AddPtrOp::fold(FoldAdaptor adaptor) {
  return matchPattern(adaptor.getOffset(), m_Zero()) ? getPtr() : OpFoldResult();
}

// ---- shapes ---------------------------------------------------------------------------------------------------------

OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  if (!isa_and_nonnull<IntegerAttr, FloatAttr>(adaptor.getSrc()))
    return {};
  return SplatElementsAttr::get(cast<ShapedType>(getType()), adaptor.getSrc());
}

OpFoldResult UnsplatOp::fold(FoldAdaptor adaptor) {
  if (auto splat = getSrc().getDefiningOp<SplatOp>())
    return splat.getSrc();
  if (auto constant = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSrc()))
    return constant.getSplatValue<Attribute>();
  return {};
}

OpFoldResult MakeRangeOp::fold(FoldAdaptor) {
  if (getEnd() - getStart() != 1)
    return {};
  auto type = cast<ShapedType>(getType());
  return SplatElementsAttr::get(type,
                                Attribute(IntegerAttr::get(type.getElementType(), static_cast<int32_t>(getStart()))));
}

OpFoldResult ExpandDimsOp::fold(FoldAdaptor adaptor) { return splatTo(adaptor.getSrc(), getType()); }
void ExpandDimsOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<OfSplat<ExpandDimsOp>>(context);
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getSrc().getType() == getType())
    return getSrc();
  if (auto inner = getSrc().getDefiningOp<BroadcastOp>()) {
    getSrcMutable().assign(inner.getSrc());
    return getResult();
  }
  return splatTo(adaptor.getSrc(), getType());
}
void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<OfSplat<BroadcastOp>>(context);
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getSrc().getType() == getType())
    return getSrc();
  return splatTo(adaptor.getSrc(), getType());
}

namespace {

/// Only one reshape is needed; it may reorder if one of the two may.
struct ReshapeOfReshape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const final {
    auto inner = op.getSrc().getDefiningOp<ReshapeOp>();
    if (!inner || inner.getEfficientLayout())
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getSrc(),
                                           op.getAllowReorder() || inner.getAllowReorder(), op.getEfficientLayout());
    return success();
  }
};

struct TransOfTrans : OpRewritePattern<TransOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransOp op, PatternRewriter &rewriter) const final {
    auto inner = op.getSrc().getDefiningOp<TransOp>();
    if (!inner)
      return failure();
    SmallVector<int32_t> order;
    for (int32_t dim : op.getOrder())
      order.push_back(inner.getOrder()[dim]);
    rewriter.replaceOpWithNewOp<TransOp>(op, op.getType(), inner.getSrc(), order);
    return success();
  }
};

} // namespace

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<OfSplat<ReshapeOp>, ReshapeOfReshape>(context);
}

OpFoldResult TransOp::fold(FoldAdaptor adaptor) {
  if (getSrc().getType() == getType() && llvm::is_sorted(getOrder()))
    return getSrc();
  return splatTo(adaptor.getSrc(), getType());
}
void TransOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<OfSplat<TransOp>, TransOfTrans>(context);
}

OpFoldResult JoinOp::fold(FoldAdaptor) {
  auto split = getLhs().getDefiningOp<SplitOp>();
  bool whole =
      split && getLhs() == split.getOutLHS() && getRhs() == split.getOutRHS() && split.getSrc().getType() == getType();
  return whole ? split.getSrc() : OpFoldResult();
}

LogicalResult SplitOp::fold(FoldAdaptor adaptor, SmallVectorImpl<OpFoldResult> &results) {
  if (auto join = getSrc().getDefiningOp<JoinOp>(); join && join.getLhs().getType() == getOutLHS().getType()) {
    results.assign({join.getLhs(), join.getRhs()});
    return success();
  }
  OpFoldResult constant = splatTo(adaptor.getSrc(), getOutLHS().getType());
  if (!constant)
    return failure();
  results.assign({constant, constant});
  return success();
}

// ---- memory ---------------------------------------------------------------------------------------------------------

/// A mask that is the same everywhere and known.
static std::optional<bool> constantMask(Value mask) {
  if (!mask)
    return std::nullopt;
  if (matchPattern(mask, m_One()))
    return true;
  if (matchPattern(mask, m_Zero()))
    return false;
  return std::nullopt;
}

namespace {

struct LoadWithKnownMask : OpRewritePattern<LoadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LoadOp op, PatternRewriter &rewriter) const final {
    std::optional<bool> mask = constantMask(op.getMask());
    if (!mask)
      return failure();
    if (*mask) {
      rewriter.modifyOpInPlace(op, [&] {
        op.getMaskMutable().clear();
        op.getOtherMutable().clear();
      });
      return success();
    }
    if (op.getOther()) {
      rewriter.replaceOp(op, op.getOther());
      return success();
    }
    TypedAttr zero = rewriter.getZeroAttr(op.getType());
    if (!zero)
      return failure(); // pointers have no constants
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, zero);
    return success();
  }
};

struct StoreWithKnownMask : OpRewritePattern<StoreOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(StoreOp op, PatternRewriter &rewriter) const final {
    std::optional<bool> mask = constantMask(op.getMask());
    if (!mask)
      return failure();
    if (*mask)
      rewriter.modifyOpInPlace(op, [&] { op.getMaskMutable().clear(); });
    else
      rewriter.eraseOp(op);
    return success();
  }
};

struct AssertOfTrue : OpRewritePattern<AssertOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AssertOp op, PatternRewriter &rewriter) const final {
    Attribute constant;
    if (!matchPattern(op.getCondition(), m_Constant(&constant)))
      return failure();
    bool holds = false;
    if (auto scalar = dyn_cast<IntegerAttr>(constant))
      holds = !scalar.getValue().isZero();
    else if (auto elements = dyn_cast<SplatElementsAttr>(constant))
      holds = !elements.getSplatValue<APInt>().isZero();
    if (!holds)
      return failure();
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void LoadOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<LoadWithKnownMask>(context);
}
void StoreOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<StoreWithKnownMask>(context);
}
void AssertOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<AssertOfTrue>(context);
}

} // namespace tessera::tt
