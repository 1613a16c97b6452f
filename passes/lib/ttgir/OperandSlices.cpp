// Slices of operands: what ttgir-prefetch and the pipeliner make of a product whose registers are loaded piece by
// piece.
#include "OperandSlices.h"

#include "../Layouts.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tessera {

using layouts::tileType;

std::optional<LoadedOperand> LoadedOperand::of(Value v, Block *block) {
  LoadedOperand out;
  while (Operation *op = v.getDefiningOp()) {
    if (!llvm::all_equal(v.getUsers()) || op->getBlock() != block)
      return std::nullopt;
    if ((out.load = dyn_cast<ttg::LocalLoadOp>(op))) {
      std::reverse(out.elementwise.begin(), out.elementwise.end());
      return out;
    }
    Value tile;
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      bool splat = isa_and_nonnull<tt::SplatOp>(def);
      if (auto constant = dyn_cast_or_null<arith::ConstantOp>(def))
        if (auto data = dyn_cast<DenseElementsAttr>(constant.getValue()))
          splat = data.isSplat();
      if (!tileType(operand) || splat)
        continue;
      if (tile && tile != operand)
        return std::nullopt;
      tile = operand;
    }
    if (!tile || !layouts::isUniform(op) || !isMemoryEffectFree(op) || isa<tt::BroadcastOp>(op) ||
        op->getNumResults() != 1)
      return std::nullopt;
    out.elementwise.push_back(op);
    v = tile;
  }
  return std::nullopt;
}

bool LoadedOperand::canSinkTo(Operation *end) const {
  for (Operation *op = load->getNextNode(); op != end; op = op->getNextNode())
    if (op->getNumRegions() || isa<ttg::LocalStoreOp, ttg::AsyncCopyGlobalToLocalOp, ttg::AsyncWaitOp,
                                   ttg::LocalDeallocOp, ttg::BarrierOp, tt::DebugBarrierOp>(op))
      return false;
  return true;
}

Value partOf(OpBuilder &b, Location loc, Value memory, ArrayRef<int64_t> shape, ArrayRef<int32_t> offsets) {
  auto source = cast<ttg::MemDescType>(memory.getType());
  auto part = ttg::MemDescType::get(b.getContext(), shape, source.getElementType(), source.getEncoding(),
                                    source.getMemorySpace(), source.getMutableMemory(), source.getAllocShape());
  return ttg::MemDescSubsliceOp::create(b, loc, part, memory, offsets);
}

Value LoadedOperand::slice(OpBuilder &b, ArrayRef<int64_t> shape, ArrayRef<int32_t> offsets) const {
  ttg::LocalLoadOp from = load;
  auto resized = [&](Value like) {
    RankedTensorType type = tileType(like);
    return RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
  };
  Value memory = partOf(b, from.getLoc(), from.getSrc(), shape, offsets);
  Value v = ttg::LocalLoadOp::create(b, from.getLoc(), resized(from.getResult()), memory, from.getToken());
  Value whole = from.getResult();
  for (Operation *op : elementwise) {
    IRMapping map;
    map.map(whole, v);
    for (Value other : op->getOperands()) {
      if (!tileType(other) || other == whole)
        continue;
      Operation *copy = b.clone(*other.getDefiningOp());
      if (auto constant = dyn_cast<arith::ConstantOp>(copy))
        constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).resizeSplat(resized(other)));
      copy->getResult(0).setType(resized(other));
      map.map(other, copy->getResult(0));
    }
    Operation *copy = b.clone(*op, map);
    copy->getResult(0).setType(resized(op->getResult(0)));
    whole = op->getResult(0);
    v = copy->getResult(0);
  }
  return v;
}

void LoadedOperand::erase() {
  for (Operation *op : llvm::reverse(elementwise))
    op->erase();
  load.erase();
}

std::optional<LoadedOperand> slicedA(ttng::WarpGroupDotOp dot) {
  RankedTensorType type = tileType(dot.getA());
  if (!type)
    return std::nullopt;
  // Sums of 8-bit floats that are added up apart are waited for at once.
  unsigned bits = tt::bitWidth(type.getElementType());
  if (type.getShape()[1] < 2 * (256 / bits) || (bits == 8 && dot.getMaxNumImpreciseAcc()))
    return std::nullopt;
  auto a = LoadedOperand::of(dot.getA(), dot->getBlock());
  return a && a->canSinkTo(dot) ? a : std::nullopt;
}

bool keepsRegisters(ttng::WarpGroupDotOp dot) {
  auto loop = dot->getParentOfType<LoopLikeOpInterface>();
  return isa<ttg::MemDescType>(dot.getA().getType()) || slicedA(dot) ||
         (loop && loop.isDefinedOutsideOfLoop(dot.getA()));
}

SmallVector<ttng::WarpGroupDotOp> cutAlongK(ttng::WarpGroupDotOp dot, LoadedOperand &a, unsigned parts) {
  OpBuilder b(dot);
  Location loc = dot.getLoc();
  SmallVector<int64_t> shapeA(tileType(dot.getA()).getShape()), shapeB(dot.getB().getType().getShape());
  shapeA[1] = shapeB[0] /= parts;
  SmallVector<ttng::WarpGroupDotOp> dots;
  Value sum = dot.getC(), useC = dot.getUseC();
  for (unsigned i = 0; i < parts; ++i) {
    auto at = int32_t(i * shapeA[1]);
    Value fragments = a.slice(b, shapeA, {0, at});
    Value memory = partOf(b, loc, dot.getB(), shapeB, {at, 0});
    dots.push_back(ttng::WarpGroupDotOp::create(b, loc, dot.getType(), fragments, memory, sum, i ? Value() : useC,
                                                dot.getInputPrecision(), dot.getMaxNumImpreciseAcc(),
                                                dot.getIsAsync()));
    sum = dots.back();
  }
  dot.replaceAllUsesWith(sum);
  dot.erase();
  a.erase();
  return dots;
}

} // namespace tessera
