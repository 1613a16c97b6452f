// Loads operands that are in registers in slices along k, each before the product of the slice in front of it.
#include "../Layouts.h"
#include "../target/MatrixModel.h"
#include "OperandSlices.h"
#include "tessera/passes/Passes.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTGIRPREFETCH
#include "tessera/passes/Passes.h.inc"

namespace {

using layouts::tileType;

class Prefetch : public impl::TtgirPrefetchBase<Prefetch> {
public:
  void runOnOperation() override {
    model = TargetModel::of(getOperation());
    SmallVector<tt::DotOp> dots;
    getOperation().walk([&](tt::DotOp dot) { dots.push_back(dot); });
    for (tt::DotOp dot : dots)
      slice(dot);
  }

private:
  TargetModel model;

  void slice(tt::DotOp dot) const {
    auto a = LoadedOperand::of(dot.getA(), dot->getBlock()), bb = LoadedOperand::of(dot.getB(), dot->getBlock());
    if (!a || !bb || !a->canSinkTo(dot) || !bb->canSinkTo(dot))
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
    int64_t k = aType.getShape().back();
    MatrixInstruction one = encoding.getParent().getInstruction(tt::bitWidth(aType.getElementType()));
    if (model.matrix)
      one = model.matrix->widest(one, aType.getShape()[rank - 2], k);
    int64_t depth = std::max<int64_t>(one.k, lanes * encoding.getKWidth());
    if (k < 2 * depth)
      return;
    OpBuilder b(dot);
    SmallVector<int64_t> aShape(aType.getShape()), bShape(bType.getShape());
    aShape[rank - 1] = bShape[rank - 2] = depth;
    auto loadSlice = [&](int64_t begin) -> std::pair<Value, Value> {
      SmallVector<int32_t> aOffsets(rank, 0), bOffsets(rank, 0);
      aOffsets[rank - 1] = bOffsets[rank - 2] = begin;
      Value first = a->slice(b, aShape, aOffsets);
      return {first, bb->slice(b, bShape, bOffsets)};
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
    a->erase();
    bb->erase();
  }
};

} // namespace
} // namespace tessera
