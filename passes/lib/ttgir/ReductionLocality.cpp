// acc = acc + sum(tile) in a loop: each thread carries its own share, one reduction over threads follows the loop.
//
//   for … iter_args(acc = init) {            for … iter_args(part = identity) {
//     r = reduce(x)                            p = reduce(reshape(x))       // over registers only: no communication
//     yield acc + r                    ->      yield part + p
//   }                                        }
//                                            acc = init + reduce(reshape(part))
#include "../Layouts.h"
#include "tessera/passes/Passes.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTGIRREDUCTIONLOCALITY
#include "tessera/passes/Passes.h.inc"

namespace {

/// The value e with op(e, x) == x for all x, bit for bit; null when the op has none that we know.
TypedAttr identityOf(Operation *op, Type type) {
  Builder b(type.getContext());
  if (auto f = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &s = f.getFloatSemantics();
    if (isa<arith::AddFOp>(op))
      return b.getFloatAttr(type, APFloat::getZero(s, /*Negative=*/true));
    if (isa<arith::MulFOp>(op))
      return b.getFloatAttr(type, APFloat(s, 1));
    // maxnum and minnum prefer numbers to NaN, so that NaN changes nothing.
    if (isa<arith::MaxNumFOp, arith::MinNumFOp>(op))
      return b.getFloatAttr(type, APFloat::getNaN(s));
    if (isa<arith::MaximumFOp>(op))
      return b.getFloatAttr(type, APFloat::getInf(s, /*Negative=*/true));
    if (isa<arith::MinimumFOp>(op))
      return b.getFloatAttr(type, APFloat::getInf(s));
    return {};
  }
  auto i = dyn_cast<IntegerType>(type);
  if (!i)
    return {};
  unsigned bits = i.getWidth();
  if (isa<arith::AddIOp, arith::OrIOp, arith::XOrIOp, arith::MaxUIOp>(op))
    return b.getIntegerAttr(type, APInt::getZero(bits));
  if (isa<arith::MulIOp>(op))
    return b.getIntegerAttr(type, APInt(bits, 1));
  if (isa<arith::AndIOp, arith::MinUIOp>(op))
    return b.getIntegerAttr(type, APInt::getAllOnes(bits));
  if (isa<arith::MaxSIOp>(op))
    return b.getIntegerAttr(type, APInt::getSignedMinValue(bits));
  if (isa<arith::MinSIOp>(op))
    return b.getIntegerAttr(type, APInt::getSignedMaxValue(bits));
  return {};
}

struct Candidate {
  unsigned index;     ///< of the loop-carried value
  Operation *combine; ///< acc op r
  tt::ReduceOp reduce;
  ttg::ConvertLayoutOp convert; ///< of r, may be null
};

/// A carried value that the loop only combines with a reduction, both by the same op.
std::optional<Candidate> match(scf::ForOp loop, unsigned index) {
  Value arg = loop.getRegionIterArg(index);
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  Operation *combine = yield.getOperand(index).getDefiningOp();
  if (!combine || combine->getBlock() != loop.getBody() || combine->getNumOperands() != 2 || !combine->hasOneUse() ||
      !arg.hasOneUse() || *arg.user_begin() != combine)
    return std::nullopt;
  Value reduced = combine->getOperand(combine->getOperand(0) == arg ? 1 : 0);
  auto convert = reduced.getDefiningOp<ttg::ConvertLayoutOp>();
  if (convert && reduced.hasOneUse())
    reduced = convert.getSrc();
  auto reduce = reduced.getDefiningOp<tt::ReduceOp>();
  if (!reduce || reduce->getBlock() != loop.getBody() || reduce.getSrcs().size() != 1 || !reduced.hasOneUse())
    return std::nullopt;
  Operation *inner = reduce.getSingleCombiner();
  if (!inner || inner->getName() != combine->getName() || !identityOf(combine, getElementTypeOrSelf(arg.getType())))
    return std::nullopt;
  if (!isa_and_nonnull<ttg::DistributedEncoding>(layouts::encodingOf(reduce.getSrcs().front())))
    return std::nullopt;
  return Candidate{index, combine, reduce, convert};
}

/// `reduce` of `src` over `axis`, with the same combine region.
Value reduceOver(OpBuilder &b, tt::ReduceOp like, Value src, unsigned axis) {
  auto type = layouts::tileType(src);
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + axis);
  Type result = type.getElementType();
  if (!shape.empty())
    result = RankedTensorType::get(shape, result, *ttg::inferReduce(type, axis));
  auto op = cast<tt::ReduceOp>(b.clone(*like));
  op->setOperand(0, src);
  op.setAxis(axis);
  op->getResult(0).setType(result);
  return op->getResult(0);
}

Value reshape(OpBuilder &b, Location loc, Value src, ArrayRef<int64_t> shape) {
  auto type = layouts::tileType(src);
  if (type.getShape() == shape)
    return src;
  auto encoding = ttg::inferReshape(type, shape);
  if (failed(encoding))
    return {};
  auto result = RankedTensorType::get(shape, type.getElementType(), *encoding);
  return tt::ReshapeOp::create(b, loc, result, src, /*allow_reorder=*/false, /*efficient_layout=*/false);
}

class ReductionLocality : public impl::TtgirReductionLocalityBase<ReductionLocality> {
public:
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      for (unsigned i = 0; i < loop.getNumRegionIterArgs(); ++i)
        if (auto candidate = match(loop, i))
          rewrite(loop, *candidate);
  }

private:
  static void rewrite(scf::ForOp loop, Candidate c) {
    Value x = c.reduce.getSrcs().front();
    auto type = layouts::tileType(x);
    unsigned axis = c.reduce.getAxis();
    LinearLayout layout = ttg::toLinearLayout(type);

    // The axis in runs of bits, slowest first: those of registers are reduced in the loop, the others are carried.
    uint64_t stride = 1;
    for (int64_t s : type.getShape().drop_front(axis + 1))
      stride *= s;
    SmallVector<std::pair<int64_t, bool>> runs; // size, in registers
    for (int64_t bit = type.getShape()[axis]; (bit >>= 1) >= 1;) {
      bool inRegister = llvm::is_contained(layout.bases(HwDim::Register), stride * bit);
      if (runs.empty() || runs.back().second != inRegister)
        runs.push_back({2, inRegister});
      else
        runs.back().first *= 2;
    }
    if (llvm::all_of(runs, [](auto run) { return run.second; }))
      return; // needs no other thread as it is

    Location loc = c.reduce.getLoc();
    OpBuilder b(c.combine);
    SmallVector<int64_t> split(type.getShape().take_front(axis)), carried(split), whole(split);
    int64_t left = 1;
    for (auto [size, inRegister] : runs) {
      split.push_back(size);
      if (inRegister)
        continue;
      carried.push_back(size);
      left *= size;
    }
    whole.push_back(left);
    for (auto *shape : {&split, &carried, &whole})
      llvm::append_range(*shape, type.getShape().drop_front(axis + 1));

    Value part = reshape(b, loc, x, split);
    if (!part)
      return;
    for (unsigned d = runs.size(); d-- > 0;)
      if (runs[d].second)
        part = reduceOver(b, c.reduce, part, axis + d);
    auto partType = layouts::tileType(part);

    // The loop again, with the carried value replaced.
    Value init = loop.getInitArgs()[c.index];
    TypedAttr identity = identityOf(c.combine, type.getElementType());
    b.setInsertionPoint(loop);
    Value start = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(partType, Attribute(identity)));
    loop.getInitArgsMutable()[c.index].assign(start);
    Value arg = loop.getRegionIterArg(c.index);
    arg.setType(partType);
    Value result = loop.getResult(c.index);
    Type resultType = result.getType();
    result.setType(partType);

    b.setInsertionPoint(c.combine);
    unsigned accSide = c.combine->getOperand(0) == arg ? 0 : 1;
    Operation *combine = b.clone(*c.combine);
    combine->setOperand(accSide, arg);
    combine->setOperand(1 - accSide, part);
    combine->getResult(0).setType(partType);
    c.combine->getResult(0).replaceAllUsesWith(combine->getResult(0));

    SmallVector<OpOperand *> uses;
    for (OpOperand &use : result.getUses())
      uses.push_back(&use);
    b.setInsertionPointAfter(loop);
    Value total = reduceOver(b, c.reduce, reshape(b, loc, result, whole), axis);
    if (total.getType() != resultType)
      total = ttg::ConvertLayoutOp::create(b, loc, resultType, total);
    Operation *last = b.clone(*c.combine);
    last->setOperand(accSide, init);
    last->setOperand(1 - accSide, total);
    for (OpOperand *use : uses)
      use->set(last->getResult(0));

    c.combine->erase();
    if (c.convert)
      c.convert.erase();
    c.reduce.erase();
  }
};

} // namespace
} // namespace tessera
