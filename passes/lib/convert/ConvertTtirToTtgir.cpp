// Gives every tile the default layout, in place: types are set, and conversions are put where an op relates its
// operands' and results' layouts otherwise. No dialect conversion framework: nothing is replaced but types.
#include "../Layouts.h"
#include "tessera/passes/Passes.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_CONVERTTTIRTOTTGIR
#include "tessera/passes/Passes.h.inc"

namespace {

class ConvertTtirToTtgir : public impl::ConvertTtirToTtgirBase<ConvertTtirToTtgir> {
public:
  using ConvertTtirToTtgirBase::ConvertTtirToTtgirBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto power = [&](int v, StringRef what) -> LogicalResult {
      if (v > 0 && llvm::isPowerOf2_32(v))
        return success();
      return module.emitError() << what << " must be a positive power of two, not " << v;
    };
    if (failed(power(numWarps, "num-warps")) || failed(power(threadsPerWarp, "threads-per-warp")) ||
        failed(power(numCtas, "num-ctas")))
      return signalPassFailure();

    Builder b(&getContext());
    module->setAttr(ttg::numWarpsAttr, b.getI32IntegerAttr(numWarps));
    module->setAttr(ttg::threadsPerWarpAttr, b.getI32IntegerAttr(threadsPerWarp));
    module->setAttr(ttg::numCTAsAttr, b.getI32IntegerAttr(numCtas));
    module->setAttr(ttg::targetAttr, b.getStringAttr(target));
    for (auto func : module.getOps<tt::FuncOp>())
      if (failed(convert(func)))
        return signalPassFailure();
  }

private:
  llvm::DenseMap<Type, Attribute> defaults; ///< by tile type without encoding

  void setDefault(Value v) {
    auto type = layouts::tileType(v);
    if (!type || type.getEncoding())
      return;
    Attribute &encoding = defaults[type];
    if (!encoding)
      encoding = layouts::defaultEncoding(&getContext(), type.getShape(), numWarps, threadsPerWarp);
    layouts::setEncoding(v, encoding);
  }

  static Value convertTo(OpBuilder &b, Value v, Attribute encoding) {
    return ttg::ConvertLayoutOp::create(b, v.getLoc(), layouts::withEncoding(layouts::tileType(v), encoding), v);
  }

  LogicalResult convert(tt::FuncOp func) {
    if (func.isExternal())
      return success();
    auto isTile = [](Type t) { return isa<RankedTensorType>(t); };
    if (llvm::any_of(func.getArgumentTypes(), isTile) || llvm::any_of(func.getResultTypes(), isTile))
      return func.emitError("a function that takes or returns tiles must be inlined before layouts are chosen");

    SmallVector<Operation *> related;
    WalkResult walked = func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<tt::CallOp>(op)) {
        op->emitError("calls must be inlined before layouts are chosen");
        return WalkResult::interrupt();
      }
      for (Value result : op->getResults())
        setDefault(result);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument arg : block.getArguments())
            setDefault(arg);
      if (op->getNumOperands() &&
          (layouts::isForced(op) ||
           isa<tt::BroadcastOp, tt::ExpandDimsOp, tt::TransOp, tt::ReshapeOp, tt::GatherOp>(op)))
        related.push_back(op);
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();

    for (Operation *op : related) {
      OpBuilder b(op);
      Attribute wanted = layouts::encodingOf(op->getResult(0));
      if (layouts::isForced(op)) {
        Attribute natural = layouts::resultEncoding(op, 0, layouts::encodingOf(op->getOperand(0)));
        if (!natural && isa<tt::SplitOp>(op)) { // the default layout does not hold both elements in one thread
          natural = wanted;
          Attribute source = layouts::operandEncoding(op, 0, natural);
          op->setOperand(0, convertTo(b, op->getOperand(0), source));
        }
        if (!natural || natural == wanted)
          continue; // natural is null for reductions to scalars
        b.setInsertionPointAfter(op);
        for (Value result : op->getResults()) {
          layouts::setEncoding(result, natural);
          Value back = convertTo(b, result, wanted);
          result.replaceAllUsesExcept(back, back.getDefiningOp());
        }
        continue;
      }
      for (OpOperand &operand : op->getOpOperands()) {
        Attribute source = layouts::operandEncoding(op, operand.getOperandNumber(), wanted);
        if (source && source != layouts::encodingOf(operand.get()))
          operand.set(convertTo(b, operand.get(), source));
      }
    }
    return success();
  }
};

} // namespace
} // namespace tessera
