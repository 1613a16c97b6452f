// Dialect ttng: verifiers, type inference and memory effects.
#include "tessera/ir/ttng/Ttng.h"

#include "tessera/ir/ttng/TtngDialect.cpp.inc"
#define GET_OP_CLASSES
#include "tessera/ir/ttng/TtngOps.cpp.inc"

using namespace mlir;

namespace tessera::ttng {

void TTNGDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "tessera/ir/ttng/TtngOps.cpp.inc"
      >();
}

LogicalResult WarpGroupDotOp::verify() {
  auto a = cast<ShapedType>(getA().getType());
  auto c = cast<RankedTensorType>(getC().getType());
  ttg::MemDescType b = getB().getType();
  if (failed(ttg::verifyDotTypes(*this, a, b, c)))
    return failure();
  ttg::NvidiaMmaEncodingAttr mma = ttg::getMma(c);
  if (!mma || !mma.isWarpGroup())
    return emitOpError() << "needs accumulators with #ttg.nvidia_mma of versionMajor 3, not " << c;
  if (auto tile = dyn_cast<RankedTensorType>(a)) {
    auto operand = dyn_cast_or_null<ttg::DotOperandEncodingAttr>(tile.getEncoding());
    if (!operand || Attribute(operand.getParent()) != Attribute(mma) || operand.getOpIdx() != 0)
      return emitOpError() << "needs a tile a with #ttg.dot_op of opIdx 0 and the accumulators' layout as parent, not "
                           << tile;
  }
  if (getMaxNumImpreciseAcc() > static_cast<uint32_t>(INT32_MAX))
    return emitOpError("maxNumImpreciseAcc is not negative");
  return success();
}

void WarpGroupDotOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand *operand : {&getAMutable(), &getBMutable()})
    if (isa<ttg::MemDescType>(operand->get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), operand, ttg::SharedMemory::get());
}

LogicalResult WarpGroupDotWaitOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor op,
                                                   SmallVectorImpl<Type> &results) {
  llvm::append_range(results, op.getInputs().getTypes());
  return success();
}

LogicalResult WarpGroupDotWaitOp::verify() {
  if (getInputs().empty())
    return emitOpError("needs at least one operand to wait for");
  return static_cast<int32_t>(getPendings()) >= 0 ? success() : emitOpError("pendings is not negative");
}

} // namespace tessera::ttng
