// Conversions with 8-bit floats, which registers hold as i8. To fp8: to nearest even, beyond the largest finite value
// that value, NaN stays NaN. Where the target has no instruction, this is their one software form.
#include "Emitter.h"

#include "llvm/IR/Intrinsics.h"

#include <cmath>

namespace tessera::codegen {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
namespace Intrinsic = llvm::Intrinsic;

namespace {

struct Format {
  MatrixType type;
  unsigned mantissa; ///< bits
  int bias;
  uint64_t largest; ///< finite value, as bits

  bool fnuz() const { return largest == 0x7f; } ///< no infinity, no -0: its bits are the one NaN
};

std::optional<Format> formatOf(mlir::Type type) {
  mlir::Type element = mlir::getElementTypeOrSelf(type);
  if (mlir::isa<mlir::Float8E4M3FNType>(element))
    return Format{MatrixType::E4M3, 3, 7, 0x7e}; // 448; no infinity, one NaN of each sign
  if (mlir::isa<mlir::Float8E5M2Type>(element))
    return Format{MatrixType::E5M2, 2, 15, 0x7b}; // 57344
  if (mlir::isa<mlir::Float8E4M3FNUZType>(element))
    return Format{MatrixType::E4M3FNUZ, 3, 8, 0x7f}; // 240
  if (mlir::isa<mlir::Float8E5M2FNUZType>(element))
    return Format{MatrixType::E5M2FNUZ, 2, 16, 0x7f}; // 57344
  return std::nullopt;
}

V number(llvm::Type *type, uint64_t value) { return llvm::ConstantInt::get(type, value); }

/// f64 -> f32 so that rounding the result to fewer bits rounds the f64 once: where bits are lost the last one is set.
V narrowToOdd(llvm::IRBuilderBase &b, V v, llvm::Type *f32, llvm::Type *i32) {
  V nearest = b.CreateFPTrunc(v, f32), back = b.CreateFPExt(nearest, v->getType());
  V bits = b.CreateBitCast(nearest, i32);
  V away = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(Intrinsic::fabs, back), b.CreateUnaryIntrinsic(Intrinsic::fabs, v));
  V odd = b.CreateOr(b.CreateSub(bits, b.CreateZExt(away, i32)), number(i32, 1));
  return b.CreateBitCast(b.CreateSelect(b.CreateFCmpUEQ(back, v), bits, odd), f32);
}

/// i8 -> f16, bf16, f32 or f64; always exact.
V decode(llvm::IRBuilderBase &b, V v, const Format &from, llvm::Type *to) {
  llvm::Type *f32 = to->getWithNewType(b.getFloatTy()), *scalar = to->getScalarType();
  auto finish = [&](V value) {
    unsigned have = value->getType()->getScalarSizeInBits(), want = to->getScalarSizeInBits();
    if (value->getType() == to)
      return value;
    if (have == want) // f16 -> bf16
      return b.CreateFPTrunc(b.CreateFPExt(value, f32), to);
    return have < want ? b.CreateFPExt(value, to) : b.CreateFPTrunc(value, to);
  };
  llvm::Type *f16 = to->getWithNewType(b.getHalfTy());
  if (from.type == MatrixType::E5M2) // the upper byte of an f16
    return finish(b.CreateBitCast(b.CreateShl(b.CreateZExt(v, to->getWithNewType(b.getInt16Ty())), 8), f16));
  if (from.type == MatrixType::E5M2FNUZ) { // an f16's but for the bias, and its top exponent would be that of infinity
    llvm::Type *i16 = to->getWithNewType(b.getInt16Ty());
    V x = b.CreateZExt(v, i16), magnitude = b.CreateAnd(x, number(i16, 0x7f));
    V normal = b.CreateSub(b.CreateShl(magnitude, 8), number(i16, 0x400)); // the greater from 2^-14 on
    V value = b.CreateBinaryIntrinsic(Intrinsic::smax, normal, b.CreateShl(magnitude, 7));
    value = b.CreateOr(value, b.CreateShl(b.CreateAnd(x, number(i16, 0x80)), 8));
    V nan = b.CreateICmpEQ(x, number(i16, 0x80));
    return finish(b.CreateBitCast(b.CreateSelect(nan, number(i16, 0x7e00), value), f16));
  }
  // Put exponent and mantissa where the wider format has them, and correct the bias by a product: denormals come right,
  // too.
  bool half = scalar->isHalfTy();
  llvm::Type *wide = half ? f16 : f32, *bits = to->getWithNewType(half ? b.getInt16Ty() : b.getInt32Ty());
  unsigned size = bits->getScalarSizeInBits(), mantissa = half ? 10 : 23, bias = half ? 15 : 127;
  V x = b.CreateZExt(v, bits), magnitude = b.CreateAnd(x, number(bits, 0x7f));
  V sign = b.CreateShl(b.CreateAnd(x, number(bits, 0x80)), size - 8);
  V placed = b.CreateOr(sign, b.CreateShl(magnitude, mantissa - from.mantissa), "", true);
  V value =
      b.CreateFMul(b.CreateBitCast(placed, wide), llvm::ConstantFP::get(wide, std::ldexp(1.0, int(bias) - from.bias)));
  V nan = b.CreateBitCast(b.CreateOr(sign, number(bits, half ? 0x7e00 : 0x7fc00000), "", true), wide);
  V isNan = from.fnuz() ? b.CreateICmpEQ(x, number(bits, 0x80)) : b.CreateICmpEQ(magnitude, number(bits, 0x7f));
  return finish(b.CreateSelect(isNan, nan, value));
}

/// f32 -> i8.
V encode(llvm::IRBuilderBase &b, V v, const Format &to) {
  llvm::Type *f32 = v->getType(), *i32 = f32->getWithNewType(b.getInt32Ty());
  unsigned dropped = 23 - to.mantissa;
  V bits = b.CreateBitCast(v, i32), magnitude = b.CreateAnd(bits, number(i32, 0x7fffffff));
  // Half of the last place kept, less one where that place is even.
  V rebased = b.CreateSub(magnitude, number(i32, uint64_t(127 - to.bias) << 23));
  V last = b.CreateAnd(b.CreateLShr(magnitude, dropped), number(i32, 1));
  V normal = b.CreateLShr(b.CreateAdd(b.CreateAdd(rebased, last), number(i32, (1u << (dropped - 1)) - 1)), dropped);
  // A sum whose last place is that of the denormals rounds to them.
  float unit = std::ldexp(1.0f, 1 - to.bias - int(to.mantissa) + 23);
  V sum = b.CreateFAdd(b.CreateBitCast(magnitude, f32), llvm::ConstantFP::get(f32, unit));
  V denormal = b.CreateSub(b.CreateBitCast(sum, i32), number(i32, llvm::bit_cast<uint32_t>(unit)));
  V small = b.CreateICmpULT(magnitude, number(i32, uint64_t(128 - to.bias) << 23));
  V rounded =
      b.CreateBinaryIntrinsic(Intrinsic::umin, b.CreateSelect(small, denormal, normal), number(i32, to.largest));
  V sign = b.CreateAnd(b.CreateLShr(bits, 24), number(i32, 0x80));
  V isNan = b.CreateICmpUGT(magnitude, number(i32, 0x7f800000));
  if (to.fnuz())
    sign = b.CreateSelect(b.CreateICmpEQ(rounded, number(i32, 0)), number(i32, 0), sign);
  V result = b.CreateSelect(isNan, number(i32, to.fnuz() ? 0x80 : 0x7f), b.CreateOr(rounded, sign));
  return b.CreateTrunc(result, f32->getWithNewType(b.getInt8Ty()));
}

} // namespace

V Emitter::fromFp8(V v, mlir::Type from, llvm::Type *to) { return decode(b, v, *formatOf(from), to); }

std::optional<LogicalResult> Emitter::emitFp8Cast(mlir::Operation *op, bool towardZero) {
  mlir::Type fromType = op->getOperand(0).getType(), toType = op->getResult(0).getType();
  auto from = formatOf(fromType), to = formatOf(toType);
  if (!from && !to)
    return std::nullopt;
  unsigned count = numValues(toType);
  bool lanes = scalarsAreLanes || isTensor(op->getResult(0));
  Lanes values = lanes ? getAsLanes(op->getOperand(0), count) : Lanes(get(op->getOperand(0)));
  if (values.size() != count)
    return op->emitOpError("has operands in different layouts");
  llvm::Type *type = valueType(toType);
  if (from && to && from->type == to->type) {
    set(op->getResult(0), std::move(values));
    return success();
  }
  auto extended = [&](V v, llvm::Type *elem) { // f16, bf16 -> f32
    llvm::Type *wide = v->getType()->getWithNewType(elem);
    return v->getType() == wide ? v : b.CreateFPExt(v, wide);
  };
  Lanes results;
  for (unsigned r = 0; r < count; r += 2) {
    llvm::SmallVector<V, 2> pair{values[r], values[std::min(r + 1, count - 1)]};
    if (from) {
      llvm::Type *half = type->getWithNewType(b.getHalfTy()), *stop = to ? half : type;
      auto native = target.convertFromFp8(b, from->type, pair[0], pair[1]);
      for (auto [i, v] : llvm::enumerate(pair)) {
        if (native.empty())
          v = decode(b, v, *from, stop);
        else if (stop->getScalarSizeInBits() == 16 && native[i]->getType() != stop)
          v = b.CreateFPTrunc(extended(native[i], b.getFloatTy()), stop);
        else
          v = extended(native[i], stop->getScalarType());
      }
    }
    if (to) {
      llvm::Type *f32 = type->getWithNewType(b.getFloatTy()), *i32 = type->getWithNewType(b.getInt32Ty());
      for (V &v : pair)
        if (v->getType()->getScalarType()->isDoubleTy())
          v = narrowToOdd(b, v, f32, i32);
        else if (v->getType()->getScalarType()->isBFloatTy())
          v = extended(v, b.getFloatTy());
      auto native = target.convertToFp8(b, to->type, pair[0], pair[1]);
      for (auto [i, v] : llvm::enumerate(pair)) {
        V wide = extended(v, b.getFloatTy());
        v = native.empty() ? encode(b, wide, *to) : native[i];
        if (towardZero) { // one step back where rounding went away from zero
          V back = b.CreateUnaryIntrinsic(Intrinsic::fabs, decode(b, v, *to, f32));
          V away = b.CreateFCmpOGT(back, b.CreateUnaryIntrinsic(Intrinsic::fabs, wide));
          v = b.CreateSub(v, b.CreateZExt(away, v->getType()));
          if (to->fnuz()) // a negative number that became zero
            v = b.CreateSelect(b.CreateAnd(away, b.CreateICmpEQ(v, number(v->getType(), 0x80))),
                               number(v->getType(), 0), v);
        }
      }
    }
    for (unsigned i = 0; i < 2 && r + i < count; ++i)
      results.push_back(pair[i]);
  }
  set(op->getResult(0), std::move(results));
  return success();
}

} // namespace tessera::codegen
