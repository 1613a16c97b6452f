// Moves element-wise work in front of splats and broadcasts.
#include "../PatternPass.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "tessera/ir/ttir/Ttir.h"
#include "tessera/passes/Passes.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTIRREORDERBROADCAST
#include "tessera/passes/Passes.h.inc"

namespace {

/// Pure, one result, all tiles of one shape. Without an encoding: ttir only.
bool isElementwise(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0 || op->getNumRegions() ||
      !op->hasTrait<OpTrait::Elementwise>() || !isMemoryEffectFree(op))
    return false;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return type && !type.getEncoding();
}

bool isSplatConstant(Value v, DenseElementsAttr &data) {
  return isa<RankedTensorType>(v.getType()) && matchPattern(v, m_Constant(&data)) && data.isSplat();
}

Type withShape(Type type, ArrayRef<int64_t> shape) {
  Type element = getElementTypeOrSelf(type);
  return shape.empty() ? element : RankedTensorType::get(shape, element);
}

/// The same op on other operands with a result of another shape.
Value rebuild(PatternRewriter &b, Operation *op, ArrayRef<Value> operands, ArrayRef<int64_t> shape) {
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(withShape(op->getResult(0).getType(), shape));
  state.addAttributes(op->getDiscardableAttrDictionary().getValue());
  if (Attribute properties = op->getPropertiesAsAttribute())
    state.propertiesAttr = properties;
  // Hints have one entry a dimension and do not fit another rank.
  for (StringRef hint : {"tt.divisibility", "tt.contiguity", "tt.constancy"})
    state.attributes.erase(hint);
  return b.create(state)->getResult(0);
}

/// op(splat a, splat b, constant) -> splat op(a, b, constant)
struct ElementwiseOfSplats : RewritePattern {
  ElementwiseOfSplats(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &b) const override {
    if (!isElementwise(op))
      return failure();
    bool anySplat = false;
    DenseElementsAttr data;
    for (Value v : op->getOperands()) {
      bool splat = v.getDefiningOp<tt::SplatOp>() != nullptr;
      if (!splat && isa<RankedTensorType>(v.getType()) && !isSplatConstant(v, data))
        return failure();
      anySplat |= splat;
    }
    if (!anySplat)
      return failure(); // all constants: for the folder
    SmallVector<Value> scalars;
    for (Value v : op->getOperands()) {
      if (auto splat = v.getDefiningOp<tt::SplatOp>())
        scalars.push_back(splat.getSrc());
      else if (isSplatConstant(v, data))
        scalars.push_back(arith::ConstantOp::create(b, v.getLoc(), cast<TypedAttr>(data.getSplatValue<Attribute>())));
      else
        scalars.push_back(v);
    }
    b.replaceOpWithNewOp<tt::SplatOp>(op, op->getResult(0).getType(), rebuild(b, op, scalars, {}));
    return success();
  }
};

/// op(broadcast a, broadcast b, splat c) -> broadcast op(a, b, splat c), for sources of one shape
struct ElementwiseOfBroadcasts : RewritePattern {
  ElementwiseOfBroadcasts(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &b) const override {
    if (!isElementwise(op))
      return failure();
    ArrayRef<int64_t> shape;
    DenseElementsAttr data;
    for (Value v : op->getOperands()) {
      if (auto broadcast = v.getDefiningOp<tt::BroadcastOp>()) {
        ArrayRef<int64_t> source = cast<RankedTensorType>(broadcast.getSrc().getType()).getShape();
        if (!shape.empty() && shape != source)
          return failure();
        shape = source;
      } else if (isa<RankedTensorType>(v.getType()) && !v.getDefiningOp<tt::SplatOp>() && !isSplatConstant(v, data)) {
        return failure();
      }
    }
    if (shape.empty())
      return failure();
    SmallVector<Value> small;
    for (Value v : op->getOperands()) {
      if (auto broadcast = v.getDefiningOp<tt::BroadcastOp>())
        small.push_back(broadcast.getSrc());
      else if (auto splat = v.getDefiningOp<tt::SplatOp>())
        small.push_back(tt::SplatOp::create(b, v.getLoc(), withShape(v.getType(), shape), splat.getSrc()));
      else if (isSplatConstant(v, data))
        small.push_back(arith::ConstantOp::create(b, v.getLoc(),
                                                  data.resizeSplat(cast<ShapedType>(withShape(v.getType(), shape)))));
      else
        small.push_back(v);
    }
    b.replaceOpWithNewOp<tt::BroadcastOp>(op, op->getResult(0).getType(), rebuild(b, op, small, shape));
    return success();
  }
};

/// Shape changes of a splat give a splat.
template <typename Op> struct ShapeOfSplat : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &b) const override {
    auto splat = op.getSrc().template getDefiningOp<tt::SplatOp>();
    if (!splat)
      return failure();
    b.template replaceOpWithNewOp<tt::SplatOp>(op, op.getType(), splat.getSrc());
    return success();
  }
};

struct BroadcastOfBroadcast : OpRewritePattern<tt::BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tt::BroadcastOp op, PatternRewriter &b) const override {
    auto inner = op.getSrc().getDefiningOp<tt::BroadcastOp>();
    if (!inner)
      return failure();
    b.replaceOpWithNewOp<tt::BroadcastOp>(op, op.getType(), inner.getSrc());
    return success();
  }
};

class ReorderBroadcast
    : public PatternPass<impl::TtirReorderBroadcastBase<ReorderBroadcast>, ElementwiseOfSplats, ElementwiseOfBroadcasts,
                         BroadcastOfBroadcast, ShapeOfSplat<tt::ExpandDimsOp>, ShapeOfSplat<tt::BroadcastOp>,
                         ShapeOfSplat<tt::ReshapeOp>, ShapeOfSplat<tt::TransOp>> {};

} // namespace
} // namespace tessera
