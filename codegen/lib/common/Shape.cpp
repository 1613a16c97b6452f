// Shape operations: nothing moves between lanes. Each result register takes a source register, found through the two
// linear layouts.
#include "Emitter.h"

#include "llvm/ADT/TypeSwitch.h"

namespace tessera::codegen {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

LogicalResult Emitter::emitMakeRange(tt::MakeRangeOp op) {
  auto type = mlir::cast<mlir::RankedTensorType>(op.getType());
  const LinearLayout &layout = layoutOf(type);
  auto [it, isNew] = bases.try_emplace(type);
  if (isNew)
    it->second = baseOf(layout);
  Base base = it->second;
  Lanes lanes;
  for (unsigned r = 0, n = layout.size(HwDim::Register); r < n; ++r) {
    V index = at(base, registerImage(layout, r));
    if (op.getStart())
      index = b.CreateAdd(index, constant(op.getStart()), "", /*NUW=*/true, /*NSW=*/true);
    lanes.push_back(b.CreateZExtOrTrunc(index, valueType(type)));
  }
  set(op.getResult(), std::move(lanes));
  return success();
}

LogicalResult Emitter::permuteRegisters(mlir::Operation *op, mlir::Value source, mlir::Value result,
                                        llvm::function_ref<uint64_t(uint64_t)> elementOf) {
  const LinearLayout &from = layoutOf(source.getType()), &to = layoutOf(result.getType());
  // The map is affine, so one check per basis vector shows that lanes and warps agree.
  uint64_t origin = elementOf(0);
  for (HwDim dim : {HwDim::Lane, HwDim::Warp}) {
    auto a = from.bases(dim), c = to.bases(dim);
    bool agree = a.size() == c.size();
    for (unsigned i = 0; agree && i < a.size(); ++i)
      agree = a[i] == (elementOf(c[i]) ^ origin);
    if (!agree)
      return op->emitOpError("needs a result layout that leaves every element in its lane: insert ttg.convert_layout");
  }
  llvm::DenseMap<uint64_t, unsigned> registerOf;
  for (unsigned r = 0, n = from.size(HwDim::Register); r < n; ++r)
    registerOf.try_emplace(registerImage(from, r), r);
  Lanes lanes;
  llvm::ArrayRef<V> values = get(source);
  for (unsigned r = 0, n = to.size(HwDim::Register); r < n; ++r) {
    auto it = registerOf.find(elementOf(registerImage(to, r)));
    if (it == registerOf.end())
      return op->emitOpError("needs a result layout that leaves every element in its lane: insert ttg.convert_layout");
    lanes.push_back(values[it->second]);
  }
  set(result, std::move(lanes));
  return success();
}

LogicalResult Emitter::emitJoin(tt::JoinOp op) {
  const LinearLayout &from = layoutOf(op.getLhs().getType()), &to = layoutOf(op.getType());
  llvm::DenseMap<uint64_t, unsigned> registerOf;
  for (unsigned r = 0, n = from.size(HwDim::Register); r < n; ++r)
    registerOf.try_emplace(registerImage(from, r), r);
  for (HwDim dim : {HwDim::Lane, HwDim::Warp})
    for (auto [i, basis] : llvm::enumerate(to.bases(dim)))
      if (i >= from.numBits(dim) || basis != from.bases(dim)[i] << 1)
        return op->emitOpError("needs a result layout that keeps both elements of the last dimension in one lane");
  Lanes lanes;
  for (unsigned r = 0, n = to.size(HwDim::Register); r < n; ++r) {
    uint64_t image = registerImage(to, r);
    auto it = registerOf.find(image >> 1);
    if (it == registerOf.end())
      return op->emitOpError("needs a result layout that keeps both elements of the last dimension in one lane");
    lanes.push_back(get(image & 1 ? op.getRhs() : op.getLhs())[it->second]);
  }
  set(op.getResult(), std::move(lanes));
  return success();
}

LogicalResult Emitter::emitSplit(tt::SplitOp op) {
  for (auto [half, result] : llvm::enumerate(op->getResults()))
    if (failed(permuteRegisters(op, op.getSrc(), result, [half = half](uint64_t e) { return e << 1 | half; })))
      return failure();
  return success();
}

LogicalResult Emitter::emitCat(tt::CatOp op) {
  Lanes lanes(get(op.getLhs()));
  llvm::append_range(lanes, get(op.getRhs()));
  if (lanes.size() != numValues(op.getType()))
    return op.emitOpError("needs a result layout with twice the registers of an operand");
  set(op.getResult(), std::move(lanes));
  return success();
}

std::optional<LogicalResult> Emitter::emitShapeOp(mlir::Operation *op) {
  auto shapeOf = [](mlir::Value v) { return mlir::cast<mlir::RankedTensorType>(v.getType()).getShape(); };
  return llvm::TypeSwitch<mlir::Operation *, std::optional<LogicalResult>>(op)
      .Case<tt::MakeRangeOp>([&](auto o) { return emitMakeRange(o); })
      .Case<tt::SplatOp>([&](auto o) {
        set(o.getResult(), Lanes(numValues(o.getType()), target.splat(b, getUniform(o.getSrc()))));
        return success();
      })
      .Case<tt::UnsplatOp>([&](auto o) {
        set(o.getResult(), {target.firstLane(b, get(o.getSrc()).front())});
        return success();
      })
      .Case<tt::ExpandDimsOp>(
          [&](auto o) { return permuteRegisters(o, o.getSrc(), o.getResult(), [](uint64_t e) { return e; }); })
      .Case<tt::ReshapeOp>([&](auto o) -> LogicalResult {
        // Free to reorder: the registers as they come, where their number and the lanes' copies allow.
        const LinearLayout &from = layoutOf(o.getSrc().getType()), &to = layoutOf(o.getType());
        if (o.getAllowReorder() && from.size(HwDim::Register) == to.size(HwDim::Register) && from.isInjective() &&
            to.isInjective()) {
          set(o.getResult(), Lanes(get(o.getSrc())));
          return success();
        }
        return permuteRegisters(o, o.getSrc(), o.getResult(), [](uint64_t e) { return e; });
      })
      .Case<tt::BroadcastOp>([&](auto o) {
        // Coordinates along the grown dimensions are 0 in the source; flat indices differ by the shapes' strides.
        auto small = shapeOf(o.getSrc()), big = shapeOf(o.getResult());
        return permuteRegisters(o, o.getSrc(), o.getResult(), [small, big](uint64_t e) {
          uint64_t index = 0, stride = 1;
          for (unsigned d = big.size(); d-- > 0;) {
            index += e % big[d] % small[d] * stride;
            e /= big[d];
            stride *= small[d];
          }
          return index;
        });
      })
      .Case<tt::TransOp>([&](auto o) {
        auto shape = shapeOf(o.getSrc()), result = shapeOf(o.getResult());
        auto order = o.getOrder();
        return permuteRegisters(o, o.getSrc(), o.getResult(), [shape, result, order](uint64_t e) {
          llvm::SmallVector<uint64_t> at(shape.size());
          for (unsigned d = result.size(); d-- > 0; e /= result[d])
            at[order[d]] = e % result[d];
          uint64_t index = 0;
          for (auto [d, size] : llvm::enumerate(shape))
            index = index * size + at[d];
          return index;
        });
      })
      .Case<tt::JoinOp>([&](auto o) { return emitJoin(o); })
      .Case<tt::SplitOp>([&](auto o) { return emitSplit(o); })
      .Case<tt::CatOp>([&](auto o) { return emitCat(o); })
      .Default([](auto) { return std::nullopt; });
}

} // namespace tessera::codegen
