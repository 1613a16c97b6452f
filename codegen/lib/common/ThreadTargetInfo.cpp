// Targets whose code is written for one thread.
#include "ThreadTargetInfo.h"

#include "FastSine.h"

using namespace llvm;

namespace tessera::codegen {

// ---- memory ---------------------------------------------------------------------------------------------------------

Value *ThreadTargetInfo::loadUniform(B &b, Type *elem, V ptr, V pred, V other, const AccessHints &hints) {
  SmallVector<V, 1> others;
  if (pred)
    others.push_back(other);
  return loadGlobal(b, elem, 1, ptr, pred, others, hints).front();
}

void ThreadTargetInfo::storeUniform(B &b, V ptr, V pred, V value, const AccessHints &hints) {
  V first = b.CreateICmpEQ(thread, b.getInt32(0));
  storeGlobal(b, value->getType(), ptr, pred ? b.CreateAnd(pred, first) : first, {value}, hints);
}

/// The terms of a sum get steps of their own: what no iteration of a loop changes is added up outside of it, and a
/// constant at the end becomes the immediate of the access.
Value *ThreadTargetInfo::sharedPointer(B &b, V offset) {
  auto *sum = dyn_cast<BinaryOperator>(offset);
  V pointer = sum && sum->getOpcode() == Instruction::Add ? sharedPointer(b, sum->getOperand(0)) : sharedMemory;
  return b.CreateGEP(b.getInt8Ty(), pointer, pointer == sharedMemory ? offset : sum->getOperand(1));
}

// ---- arithmetic -----------------------------------------------------------------------------------------------------

bool ThreadTargetInfo::hasNative(MathFn fn, Type *) const {
  // Exact functions: LLVM has them for every float type.
  return fn == MathFn::Abs || fn == MathFn::Fma || fn == MathFn::Floor || fn == MathFn::Ceil || fn == MathFn::Trunc ||
         fn == MathFn::Round;
}

bool ThreadTargetInfo::isLongFunction(MathFn fn, Type *elem, bool precise) const {
  switch (fn) {
  case MathFn::Sin:
  case MathFn::Cos:
  case MathFn::Tan:
  case MathFn::Tanh:
  case MathFn::Erf:
  case MathFn::Pow: return true;
  case MathFn::Exp:
  case MathFn::Exp2:
  case MathFn::Log:
  case MathFn::Log2:
  case MathFn::Log10: return precise || elem->isDoubleTy();
  default: return false;
  }
}

Value *ThreadTargetInfo::outOfFastRange(B &b, MathFn fn, ArrayRef<V> args) {
  Type *type = args.front()->getType();
  bool limited = (fn == MathFn::Sin || fn == MathFn::Cos) && (type->isFloatTy() || type->isBFloatTy());
  return limited ? beyondFastAngle(b, args.front()) : nullptr; // f16 ends before
}

Value *ThreadTargetInfo::floatToInt(B &b, V v, Type *to, bool isSigned) {
  // Narrower integers are clamped from 32 bits.
  unsigned width = to->getIntegerBitWidth();
  if (v->getType()->isDoubleTy() || width > 32 || width == 1)
    return nullptr;
  if (!v->getType()->isFloatTy())
    v = b.CreateFPExt(v, b.getFloatTy());
  V wide = saturate(b, v, isSigned);
  if (width == 32)
    return wide;
  auto limit = [&](const APInt &value) { return b.getInt(isSigned ? value.sext(32) : value.zext(32)); };
  if (isSigned) {
    wide = b.CreateBinaryIntrinsic(Intrinsic::smax, wide, limit(APInt::getSignedMinValue(width)));
    wide = b.CreateBinaryIntrinsic(Intrinsic::smin, wide, limit(APInt::getSignedMaxValue(width)));
  } else {
    wide = b.CreateBinaryIntrinsic(Intrinsic::umin, wide, limit(APInt::getMaxValue(width)));
  }
  return b.CreateTrunc(wide, to);
}

} // namespace tessera::codegen
