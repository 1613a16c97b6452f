// What the vendors' models share.
#include "MatrixModel.h"

#include "../Layouts.h"

using namespace mlir;

namespace tessera {

using layouts::tileType;

Product Product::of(tt::DotOp dot) {
  ArrayRef<int64_t> d = tileType(dot.getResult()).getShape();
  Product p{dot};
  p.rank = d.size();
  p.batch = p.rank == 3 ? d[0] : 1;
  p.m = d[p.rank - 2];
  p.n = d[p.rank - 1];
  p.k = tileType(dot.getA()).getShape().back();
  p.numWarps = ttg::lookupNumWarps(dot);
  p.lanes = ttg::lookupThreadsPerWarp(dot);
  return p;
}

Value allocateOperand(OpBuilder &b, Value v, Attribute encoding) {
  while (auto convert = v.getDefiningOp<ttg::ConvertLayoutOp>()) // any layout can be stored
    v = convert.getSrc();
  return layouts::storeToShared(b, v, encoding);
}

void replaceDot(OpBuilder &b, tt::DotOp dot, Operation *by) {
  by->setDiscardableAttrs(dot->getDiscardableAttrDictionary());
  dot.replaceAllUsesWith(layouts::convertTo(b, by->getResult(0), dot.getType().getEncoding()));
  dot.erase();
}

tt::LoadOp loadOf(Value v) {
  while (Operation *op = v.getDefiningOp()) {
    if (!v.hasOneUse())
      break;
    if (auto load = dyn_cast<tt::LoadOp>(op))
      return load;
    if (!isa<ttg::ConvertLayoutOp, tt::TransOp>(op))
      break;
    v = op->getOperand(0);
  }
  return {};
}

} // namespace tessera
