// How many float operations on tiles a block asks for, by the shapes: the same for every target, layout and number of warps.
#include "Emitter.h"

#include "tessera/ir/ttng/Ttng.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tessera::codegen {

static uint64_t numElements(mlir::Type type) {
  auto shaped = mlir::dyn_cast<mlir::ShapedType>(type);
  return shaped ? shaped.getNumElements() : 1;
}

/// Of one element. What only moves, compares, converts or changes the sign of numbers is none.
static uint64_t perElement(mlir::Operation &op) {
  if (op.getNumResults() != 1 || !mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(op.getResult(0).getType())))
    return 0;
  namespace arith = mlir::arith;
  return llvm::TypeSwitch<mlir::Operation *, uint64_t>(&op)
      .Case<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::RemFOp, arith::MaxNumFOp, arith::MinNumFOp,
            arith::MaximumFOp, arith::MinimumFOp, tt::PreciseDivFOp, tt::PreciseSqrtOp, tt::ExternElementwiseOp>(
          [](auto) { return 1; })
      .Case<mlir::math::FmaOp, tt::ClampFOp>([](auto) { return 2; })
      .Case<mlir::math::AbsFOp, mlir::math::CopySignOp>([](auto) { return 0; })
      .Default([](mlir::Operation *o) { return mlir::isa<mlir::math::MathDialect>(o->getDialect()); });
}

static uint64_t flopsOf(mlir::Operation &op) {
  auto product = [](mlir::Value a, mlir::Value sums) { // a multiplication and an addition for every element along k
    return 2 * numElements(sums.getType()) * mlir::cast<mlir::ShapedType>(a.getType()).getShape().back();
  };
  return llvm::TypeSwitch<mlir::Operation *, uint64_t>(&op)
      .Case<tt::DotOp, ttng::WarpGroupDotOp, ttg::LocalDotOp>([&](auto dot) { return product(dot.getA(), dot.getC()); })
      .Case<tt::ReduceOp>([](auto reduce) {
        uint64_t each = 0;
        for (mlir::Operation &combine : reduce.getRegion().front())
          each += perElement(combine);
        return each * (numElements(reduce->getOperand(0).getType()) - numElements(reduce->getResult(0).getType()));
      })
      .Default([](mlir::Operation *o) {
        bool tile = o->getNumResults() == 1 && mlir::isa<mlir::RankedTensorType>(o->getResult(0).getType());
        return tile ? perElement(*o) * numElements(o->getResult(0).getType()) : 0;
      });
}

uint64_t flopsOf(mlir::Block &block) {
  uint64_t sum = 0;
  for (mlir::Operation &op : block)
    sum += flopsOf(op);
  return sum;
}

} // namespace tessera::codegen
