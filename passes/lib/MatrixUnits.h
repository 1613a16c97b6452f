#pragma once
// What matrix instructions take. Legalisation and acceleration of dots must agree on it.
#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/passes/TargetModel.h"

namespace tessera {

/// Smallest tile of one mma.sync; that of wgmma has the same depth.
constexpr int64_t kMmaRows = 16, kMmaColumns = 8;

/// Depth (elements along k) of the matrix instruction for a dot's operand type, 32 bytes of it; 0 where the target has
/// none for it.
inline int64_t instructionDepth(tt::DotOp dot, const TargetModel &model) {
  using mlir::isa;
  if (model.matrixUnit == TargetModel::MatrixUnit::None)
    return 0;
  mlir::Type a = mlir::getElementTypeOrSelf(dot.getA().getType()), b = mlir::getElementTypeOrSelf(dot.getB().getType()),
             c = mlir::getElementTypeOrSelf(dot.getC().getType());
  auto isFp8 = [](mlir::Type t) { return isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(t); };
  if (isFp8(a) && isFp8(b) && c.isF32() && model.fp8Mma)
    return 32;
  if (a != b)
    return 0;
  if ((a.isF16() || a.isBF16()) && c.isF32())
    return 16;
  if (a.isF32() && c.isF32() && dot.getInputPrecision() == tt::InputPrecision::TF32)
    return 8;
  if (a.isInteger(8) && c.isInteger(32))
    return 32;
  return 0;
}

} // namespace tessera
