// Loads operands that are in registers in slices along k, each before the product of the slice in front of it.
#include "../Layouts.h"
#include "mlir/IR/IRMapping.h"
#include "tessera/passes/Passes.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTGIRPREFETCH
#include "tessera/passes/Passes.h.inc"

namespace {

using layouts::tileType;

/// An operand of a dot as it comes from shared memory: a local_load, then element-wise ops of one tile each, all used
/// once.
struct Operand {
  ttg::LocalLoadOp load;
  SmallVector<Operation *> elementwise; ///< from the load to the dot
};

class Prefetch : public impl::TtgirPrefetchBase<Prefetch> {
public:
  void runOnOperation() override {
    SmallVector<tt::DotOp> dots;
    getOperation().walk([&](tt::DotOp dot) { dots.push_back(dot); });
    for (tt::DotOp dot : dots)
      slice(dot);
  }

private:
  static std::optional<Operand> operandOf(Value v, Block *block) {
    Operand out;
    while (Operation *op = v.getDefiningOp()) {
      if (!v.hasOneUse() || op->getBlock() != block)
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

  /// Nothing between the load and the dot may write what it reads.
  static bool canSink(Operation *load, Operation *dot) {
    for (Operation *op = load->getNextNode(); op != dot; op = op->getNextNode())
      if (op->getNumRegions() || isa<ttg::LocalStoreOp, ttg::AsyncCopyGlobalToLocalOp, ttg::AsyncWaitOp,
                                     ttg::LocalDeallocOp, ttg::BarrierOp, tt::DebugBarrierOp>(op))
        return false;
    return true;
  }

  static Value clone(OpBuilder &b, Operand &operand, ArrayRef<int64_t> shape, ArrayRef<int32_t> offsets) {
    auto source = cast<ttg::MemDescType>(operand.load.getSrc().getType());
    auto part = ttg::MemDescType::get(b.getContext(), shape, source.getElementType(), source.getEncoding(),
                                      source.getMemorySpace(), source.getMutableMemory(), source.getAllocShape());
    Location loc = operand.load.getLoc();
    Value memory = ttg::MemDescSubsliceOp::create(b, loc, part, operand.load.getSrc(), offsets);
    auto resized = [&](Value like) {
      RankedTensorType type = tileType(like);
      return RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
    };
    Value v = ttg::LocalLoadOp::create(b, loc, resized(operand.load.getResult()), memory, operand.load.getToken());
    Value whole = operand.load.getResult();
    for (Operation *op : operand.elementwise) {
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

  static void slice(tt::DotOp dot) {
    auto a = operandOf(dot.getA(), dot->getBlock()), bb = operandOf(dot.getB(), dot->getBlock());
    if (!a || !bb || !canSink(a->load, dot) || !canSink(bb->load, dot))
      return;
    RankedTensorType aType = tileType(dot.getA()), bType = tileType(dot.getB());
    auto encoding = dyn_cast<ttg::DotOperandEncodingAttr>(aType.getEncoding());
    if (!encoding)
      return;
    // One instruction, or what the lanes hold with kWidth elements each.
    unsigned rank = aType.getRank();
    LinearLayout layout = ttg::toLinearLayout(aType);
    int64_t lanes = 1 << llvm::count_if(layout.bases(HwDim::Lane),
                                        [&](uint64_t basis) { return layout.coords(basis)[rank - 1] != 0; });
    unsigned deep = encoding.getParent().getInstruction(tt::bitWidth(aType.getElementType())).k;
    int64_t depth = std::max<int64_t>(deep, lanes * encoding.getKWidth()), k = aType.getShape().back();
    if (k < 2 * depth)
      return;
    OpBuilder b(dot);
    SmallVector<int64_t> aShape(aType.getShape()), bShape(bType.getShape());
    aShape[rank - 1] = bShape[rank - 2] = depth;
    auto loadSlice = [&](int64_t begin) -> std::pair<Value, Value> {
      SmallVector<int32_t> aOffsets(rank, 0), bOffsets(rank, 0);
      aOffsets[rank - 1] = bOffsets[rank - 2] = begin;
      Value first = clone(b, *a, aShape, aOffsets);
      return {first, clone(b, *bb, bShape, bOffsets)};
    };
    Value c = dot.getC();
    auto current = loadSlice(0);
    for (int64_t begin = 0; begin < k; begin += depth) {
      auto next = begin + depth < k ? loadSlice(begin + depth) : std::pair<Value, Value>();
      c = tt::DotOp::create(b, dot.getLoc(), current.first, current.second, c, dot.getInputPrecision(),
                            dot.getMaxNumImpreciseAcc());
      current = next;
    }
    dot.replaceAllUsesWith(c);
    dot.erase();
    for (Operand *operand : {&*a, &*bb}) {
      for (Operation *op : llvm::reverse(operand->elementwise))
        op->erase();
      operand->load.erase();
    }
  }
};

} // namespace
} // namespace tessera
