// Rewrites dots into ones that the target's matrix unit takes: types by conversion, sizes by zeros. Before layouts,
// where all of it is plain tile arithmetic.
#include "../target/MatrixModel.h"
#include "mlir/IR/Iterators.h"
#include "tessera/passes/Passes.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTIRLEGALIZEDOT
#include "tessera/passes/Passes.h.inc"

namespace {

/// More zeros than this, for each element asked for, cost more than they save.
constexpr int64_t kMaxPadding = 64;
/// A sum of so many products of 8-bit integers is exact in f32.
constexpr int64_t kExactByteProducts = 1024;

RankedTensorType typeOf(Value v) { return cast<RankedTensorType>(v.getType()); }

/// `type` with one dimension resized.
RankedTensorType resized(RankedTensorType type, unsigned dim, int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return RankedTensorType::get(shape, type.getElementType());
}

Value splatOf(OpBuilder &b, Location loc, RankedTensorType type, double value) {
  Type element = type.getElementType();
  Attribute one = isa<FloatType>(element) ? Attribute(b.getFloatAttr(element, value))
                                          : Attribute(b.getIntegerAttr(element, static_cast<int64_t>(value)));
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, one));
}

DenseElementsAttr constantSplat(Value v) {
  auto constant = v.getDefiningOp<arith::ConstantOp>();
  auto data = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  return data && data.isSplat() ? data : DenseElementsAttr();
}

bool isZero(DenseElementsAttr data) {
  if (isa<FloatType>(data.getElementType()))
    return data.getSplatValue<APFloat>().isPosZero();
  return isa<IntegerType>(data.getElementType()) && data.getSplatValue<APInt>().isZero();
}

/// Grows tiles by zeros and cuts the results back.
class Padding {
public:
  Padding(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  /// `v` with `size` elements along `dim`, those beyond its own being zero. A load that nobody else uses reads them as
  /// masked-off elements, so that it can still be an asynchronous copy.
  Value grow(Value v, unsigned dim, int64_t size) {
    RankedTensorType type = typeOf(v), wide = resized(type, dim, size);
    if (type == wide)
      return v;
    if (DenseElementsAttr data = constantSplat(v); data && isZero(data))
      return arith::ConstantOp::create(b, loc, data.resizeSplat(wide));
    if (Operation *op = v.getDefiningOp(); op && (v.use_empty() || v.hasOneUse())) {
      if (auto load = dyn_cast<tt::LoadOp>(op); load && !load.getIsVolatile())
        return growLoad(load, dim, size);
      if (auto trans = dyn_cast<tt::TransOp>(op)) {
        Value source = grow(trans.getSrc(), trans.getOrder()[dim], size);
        return tt::TransOp::create(b, loc, source, trans.getOrder());
      }
      if (isa<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::SIToFPOp, tt::FpToFpOp>(op)) { // 0 gives 0
        Value source = grow(op->getOperand(0), dim, size);
        Operation *copy = b.clone(*op);
        copy->setOperand(0, source);
        copy->getResult(0).setType(wide);
        return copy->getResult(0);
      }
    }
    Value inside = within(type.getShape()[dim], wide, dim);
    return arith::SelectOp::create(b, loc, inside, repeat(v, dim, size), splatOf(b, loc, wide, 0));
  }

  /// The first `size` elements along `dim`.
  Value shrink(Value v, unsigned dim, int64_t size) {
    for (int64_t extent = typeOf(v).getShape()[dim]; extent > size; extent /= 2) {
      RankedTensorType type = typeOf(v);
      SmallVector<int64_t> halves(type.getShape());
      halves[dim] = extent / 2;
      halves.insert(halves.begin() + dim, 2);
      v = tt::ReshapeOp::create(b, loc, halves, v);
      SmallVector<int32_t> order;
      for (unsigned d = 0; d < halves.size(); ++d)
        if (d != dim)
          order.push_back(d);
      order.push_back(dim);
      v = tt::SplitOp::create(b, loc, tt::TransOp::create(b, loc, v, order).getResult()).getOutLHS();
    }
    return v;
  }

  /// Element i along `dim` is the source's element i modulo its extent.
  Value repeat(Value v, unsigned dim, int64_t size) {
    RankedTensorType type = typeOf(v), wide = resized(type, dim, size);
    int64_t extent = type.getShape()[dim];
    if (type == wide)
      return v;
    if (auto splat = v.getDefiningOp<tt::SplatOp>())
      return tt::SplatOp::create(b, loc, wide, splat.getSrc());
    if (DenseElementsAttr data = constantSplat(v))
      return arith::ConstantOp::create(b, loc, data.resizeSplat(wide));
    if (extent == 1)
      return tt::BroadcastOp::create(b, loc, wide, v);
    SmallVector<int64_t> shape(type.getShape());
    shape.insert(shape.begin() + dim, size / extent);
    Value copies = tt::BroadcastOp::create(b, loc, RankedTensorType::get(shape, type.getElementType()),
                                           tt::ExpandDimsOp::create(b, loc, v, dim));
    return tt::ReshapeOp::create(b, loc, wide.getShape(), copies);
  }

private:
  OpBuilder &b;
  Location loc;

  /// i1 tile in the shape of `type`: the index along `dim` is below `extent`.
  Value within(int64_t extent, RankedTensorType type, unsigned dim) {
    auto line = RankedTensorType::get({type.getShape()[dim]}, b.getI32Type());
    Value index = tt::MakeRangeOp::create(b, loc, line, 0, static_cast<uint32_t>(type.getShape()[dim]));
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index, splatOf(b, loc, line, extent));
    for (unsigned d = 0; d < type.getRank(); ++d)
      if (d != dim)
        inside = tt::ExpandDimsOp::create(b, loc, inside, d);
    return tt::BroadcastOp::create(b, loc, RankedTensorType::get(type.getShape(), b.getI1Type()), inside);
  }

  Value growLoad(tt::LoadOp load, unsigned dim, int64_t size) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(load);
    RankedTensorType wide = resized(typeOf(load.getResult()), dim, size);
    Value ptr = repeat(load.getPtr(), dim, size);
    Value mask = within(typeOf(load.getResult()).getShape()[dim], wide, dim);
    if (load.getMask())
      mask = arith::AndIOp::create(b, loc, repeat(load.getMask(), dim, size), mask);
    Value other = load.getOther() ? grow(load.getOther(), dim, size) : Value();
    return tt::LoadOp::create(b, load.getLoc(), ptr, mask, other, load.getCache(), load.getEvict(), false);
  }
};

class LegalizeDot : public impl::TtirLegalizeDotBase<LegalizeDot> {
public:
  using TtirLegalizeDotBase::TtirLegalizeDotBase;

  void runOnOperation() override {
    model = TargetModel::of(target, threadsPerWarp);
    SmallVector<tt::DotOp> dots;
    getOperation().walk([&](tt::DotOp dot) { dots.push_back(dot); });
    for (tt::DotOp dot : dots) {
      dot = convertTypes(dot);
      if (dot && padded(dot))
        dot = pad(dot);
      if (dot && dot.getInputPrecision() == tt::InputPrecision::TF32x3)
        threeProducts(dot);
    }
    if (!dots.empty()) // loads that were replaced
      getOperation().walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
        if (isOpTriviallyDead(op))
          op->erase();
      });
  }

private:
  TargetModel model;

  static Value converted(OpBuilder &b, Location loc, Value v, Type element) {
    Type from = typeOf(v).getElementType(), to = typeOf(v).clone(element);
    if (from == element)
      return v;
    if (isa<IntegerType>(from))
      return arith::SIToFPOp::create(b, loc, to, v);
    if (from.getIntOrFloatBitWidth() == 8)
      return tt::FpToFpOp::create(b, loc, to, v, tt::RoundingModeAttr());
    return arith::ExtFOp::create(b, loc, to, v);
  }

  static tt::DotOp dotLike(OpBuilder &b, tt::DotOp dot, Value a, Value bb, Value c,
                           std::optional<tt::InputPrecision> precision = {}) {
    return tt::DotOp::create(b, dot.getLoc(), a, bb, c, precision.value_or(dot.getInputPrecision()),
                             dot.getMaxNumImpreciseAcc());
  }

  /// Operands and accumulators of types there is an instruction (on the native CPU: a fast loop) for. Null: the dot is
  /// done for good.
  tt::DotOp convertTypes(tt::DotOp dot) {
    OpBuilder b(dot);
    Location loc = dot.getLoc();
    Type type = getElementTypeOrSelf(dot.getType());
    if (type.isF16() || type.isBF16()) { // sums are in f32
      Value c = arith::ExtFOp::create(b, loc, typeOf(dot.getC()).clone(b.getF32Type()), dot.getC());
      tt::DotOp wide = dotLike(b, dot, dot.getA(), dot.getB(), c);
      dot.replaceAllUsesWith(arith::TruncFOp::create(b, loc, dot.getType(), wide).getResult());
      dot.erase();
      dot = wide;
    }
    Type a = typeOf(dot.getA()).getElementType(), bb = typeOf(dot.getB()).getElementType();
    auto convert = [&](Type to) {
      b.setInsertionPoint(dot);
      dot.getAMutable().assign(converted(b, loc, dot.getA(), to));
      dot.getBMutable().assign(converted(b, loc, dot.getB(), to));
    };
    dot.setInputPrecision(model.matrix && a.isF32() ? model.matrix->precision(dot.getInputPrecision())
                                                    : tt::InputPrecision::IEEE);
    if (model.wideLanes) {
      if (isa<FloatType>(a) && a.getIntOrFloatBitWidth() < 32)
        convert(b.getF32Type());
      if (a.isInteger(8) && bb.isInteger(8) && typeOf(dot.getA()).getShape().back() <= kExactByteProducts) {
        convert(b.getF32Type());
        Value zero = splatOf(b, loc, typeOf(dot.getC()).clone(b.getF32Type()), 0);
        Value product = dotLike(b, dot, dot.getA(), dot.getB(), zero);
        Value exact = arith::FPToSIOp::create(b, loc, dot.getType(), product);
        dot.replaceAllUsesWith(arith::AddIOp::create(b, loc, exact, dot.getC()).getResult());
        dot.erase();
        return {};
      }
    } else if (Type taken = model.matrix ? model.matrix->operandType(a, bb) : Type()) {
      convert(taken);
    }
    return dot;
  }

  /// (M, N, K) of the dot, the last two dimensions.
  static SmallVector<int64_t, 3> sizes(tt::DotOp dot) {
    ArrayRef<int64_t> a = typeOf(dot.getA()).getShape(), d = typeOf(dot.getResult()).getShape();
    return {d[d.size() - 2], d.back(), a.back()};
  }
  /// What the instruction for the dot needs at least; nothing where there is none.
  std::optional<std::array<int64_t, 3>> smallest(tt::DotOp dot) {
    if (!model.matrix)
      return std::nullopt;
    auto precision = dot.getInputPrecision();
    if (precision == tt::InputPrecision::TF32x3) // becomes tf32
      dot.setInputPrecision(tt::InputPrecision::TF32);
    auto instruction = model.matrix->instruction(Product::of(dot));
    dot.setInputPrecision(precision);
    return instruction ? std::optional(model.matrix->smallest(*instruction)) : std::nullopt;
  }

  /// Whether the tile is smaller than the instruction's and zeros are worth it.
  bool padded(tt::DotOp dot) {
    auto least = smallest(dot);
    if (!least)
      return false;
    int64_t factor = 1;
    for (auto [size, needed] : llvm::zip(sizes(dot), *least))
      factor *= std::max<int64_t>(1, needed / size);
    return factor > 1 && factor <= kMaxPadding;
  }

  /// From a value that the loop around `dot` carries, by element-wise ops, to the dot's C, which alone uses it.
  struct Carried {
    BlockArgument arg;
    SmallVector<OpOperand *> steps; ///< operands of those ops, from C back
  };
  static std::optional<Carried> carriedFor(tt::DotOp dot) {
    auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
    if (!loop || !dot->hasOneUse() || !isa<scf::YieldOp>(dot->use_begin()->getOwner()))
      return std::nullopt;
    Carried found;
    found.arg = loop.getRegionIterArg(dot->use_begin()->getOperandNumber());
    if (!found.arg.hasOneUse())
      return std::nullopt;
    for (Operation *op = found.arg.use_begin()->getOwner(); op != dot; op = op->use_begin()->getOwner()) {
      if (op->getBlock() != dot->getBlock() || !op->hasTrait<OpTrait::Elementwise>() || !isMemoryEffectFree(op) ||
          op->getNumResults() != 1 || !op->hasOneUse())
        return std::nullopt;
      Value before = found.steps.empty() ? Value(found.arg) : found.steps.back()->getOwner()->getResult(0);
      found.steps.push_back(&*before.use_begin());
    }
    Value c = found.steps.empty() ? Value(found.arg) : found.steps.back()->getOwner()->getResult(0);
    return c == dot.getC() ? std::optional(found) : std::nullopt;
  }

  tt::DotOp pad(tt::DotOp dot) {
    OpBuilder b(dot);
    Padding padding(b, dot.getLoc());
    SmallVector<int64_t, 3> size = sizes(dot);
    unsigned row = typeOf(dot.getResult()).getRank() - 2, column = row + 1;
    auto least = *smallest(dot);
    int64_t m = std::max(size[0], least[0]), n = std::max(size[1], least[1]), k = std::max(size[2], least[2]);
    auto grow = [&](Value v, int64_t rows, int64_t columns) {
      return padding.grow(padding.grow(v, row, rows), column, columns);
    };
    // What an accumulator holds outside of its tile has no effect inside.
    auto widen = [&](Value v) { return padding.repeat(padding.repeat(v, row, m), column, n); };
    auto shrink = [&](Value v) { return padding.shrink(padding.shrink(v, row, size[0]), column, size[1]); };
    Value a = grow(dot.getA(), m, k), bb = grow(dot.getB(), k, n);

    // An accumulator that only this dot and element-wise ops use stays wide while the loop runs.
    if (auto carried = carriedFor(dot)) {
      auto loop = cast<scf::ForOp>(dot->getParentOp());
      OpOperand &yield = *dot->use_begin();
      unsigned i = yield.getOperandNumber();
      b.setInsertionPoint(loop);
      OpOperand &init = loop.getInitArgsMutable()[i];
      init.assign(widen(init.get()));
      Value result = loop.getResult(i);
      result.setType(init.get().getType());
      b.setInsertionPointAfter(loop);
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : result.getUses())
        uses.push_back(&use);
      if (Value narrow = uses.empty() ? Value() : shrink(result))
        for (OpOperand *use : uses)
          use->assign(narrow);

      b.setInsertionPoint(dot);
      auto wideType = cast<RankedTensorType>(init.get().getType());
      carried->arg.setType(wideType);
      Value c = carried->arg;
      for (OpOperand *step : carried->steps) {
        Operation *op = step->getOwner();
        for (OpOperand &other : op->getOpOperands())
          if (&other != step && isa<RankedTensorType>(other.get().getType()))
            other.assign(widen(other.get()));
        op->moveBefore(dot);
        c = op->getResult(0);
        c.setType(wideType.clone(typeOf(c).getElementType()));
      }
      tt::DotOp wide = dotLike(b, dot, a, bb, c);
      yield.assign(wide);
      dot.erase();
      return wide;
    }
    tt::DotOp wide = dotLike(b, dot, a, bb, widen(dot.getC()));
    dot.replaceAllUsesWith(shrink(wide));
    dot.erase();
    return wide;
  }

  /// f32 operands as sums of two tf32 numbers; the product of the two small parts is below f32's precision.
  static void threeProducts(tt::DotOp dot) {
    OpBuilder b(dot);
    auto [bigA, smallA] = splitTf32(b, dot.getA());
    auto [bigB, smallB] = splitTf32(b, dot.getB());
    auto precision = tt::InputPrecision::TF32;
    Value c = dotLike(b, dot, smallA, bigB, dot.getC(), precision);
    c = dotLike(b, dot, bigA, smallB, c, precision);
    dot.replaceAllUsesWith(dotLike(b, dot, bigA, bigB, c, precision).getResult());
    dot.erase();
  }

  /// (big, small) with big + small == v, big a tf32 number. Infinity becomes (1, infinity): neither inf - inf nor inf *
  /// 0 then makes a NaN that the exact product has not.
  static std::pair<Value, Value> splitTf32(OpBuilder &b, Value v) {
    Location loc = v.getLoc();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(v);
    RankedTensorType type = typeOf(v), bits = RankedTensorType::get(type.getShape(), b.getI32Type());
    Value high = splatOf(b, loc, bits, static_cast<int32_t>(0xffffe000));
    Value big = tt::BitcastOp::create(
        b, loc, type, arith::AndIOp::create(b, loc, tt::BitcastOp::create(b, loc, bits, v), high).getResult());
    Value small = arith::SubFOp::create(b, loc, v, big);
    Value infinite = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, math::AbsFOp::create(b, loc, v),
                                           splatOf(b, loc, type, std::numeric_limits<double>::infinity()));
    Value one = math::CopySignOp::create(b, loc, splatOf(b, loc, type, 1), v);
    return {arith::SelectOp::create(b, loc, infinite, one, big), arith::SelectOp::create(b, loc, infinite, v, small)};
  }
};

} // namespace
} // namespace tessera
