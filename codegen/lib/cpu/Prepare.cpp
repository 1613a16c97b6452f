// Rewrites of a kernel's module before optimisation, where x86 would make long code, call functions that do not exist
// everywhere, or differ from a GPU:
//   - f16 and bf16 arithmetic is done in f32 and rounded after every operation, moves of them are moves of integers;
//   - f32/f64 -> bf16 and f64 -> f16 round once, to nearest even, denormals kept (hardware bf16 conversion flushes
//   them);
//   - saturating conversions of vectors to integers are conversions of what fits;
//   - vector integer division is one outlined function a type, by f64 up to 32 bits, lane by lane for 64; so is fmod.
#include "CpuTargetInfo.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

#include <cmath>
#include <cstddef>

#include <tessera/codegen/cpu_abi.h>

using namespace llvm;

namespace tessera::codegen {

static bool isSmallFloat(Type *type) {
  return type->getScalarType()->isHalfTy() || type->getScalarType()->isBFloatTy();
}
static Type *like(Type *shape, Type *elem) {
  if (auto *vector = dyn_cast<FixedVectorType>(shape))
    return FixedVectorType::get(elem, vector->getNumElements());
  return elem;
}
static V splatLike(Type *type, uint64_t value) { return ConstantInt::get(type, value); }

// ---- conversions --------------------------------------------------------------------------------------------------

/// f64 -> f32 so that a second rounding to fewer bits gives what one rounding would: an inexact result gets an odd last
/// bit.
static V truncToOdd(Builder &b, V v) {
  Type *f32 = like(v->getType(), b.getFloatTy()), *i32 = like(v->getType(), b.getInt32Ty());
  V nearest = b.CreateFPTrunc(v, f32), back = b.CreateFPExt(nearest, v->getType());
  V bits = b.CreateBitCast(nearest, i32);
  // Toward zero, then set the last bit where anything was lost. An infinity made by overflow stays one.
  V away = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(Intrinsic::fabs, back), b.CreateUnaryIntrinsic(Intrinsic::fabs, v));
  V towardZero = b.CreateSub(bits, b.CreateZExt(away, i32));
  V odd = b.CreateOr(towardZero, splatLike(i32, 1));
  V keep = b.CreateFCmpUEQ(back, v);
  return b.CreateBitCast(b.CreateSelect(keep, bits, odd), f32);
}

static V roundToBFloat(Builder &b, V v) {
  if (v->getType()->getScalarType()->isDoubleTy())
    v = truncToOdd(b, v);
  Type *i32 = like(v->getType(), b.getInt32Ty()), *i16 = like(v->getType(), b.getInt16Ty());
  V bits = b.CreateBitCast(v, i32), high = b.CreateLShr(bits, 16);
  V bias = b.CreateAdd(b.CreateAnd(high, splatLike(i32, 1)), splatLike(i32, 0x7fff));
  V rounded = b.CreateLShr(b.CreateAdd(bits, bias), 16);
  V result = b.CreateSelect(b.CreateFCmpUNO(v, v), b.CreateOr(high, splatLike(i32, 0x40)), rounded);
  return b.CreateBitCast(b.CreateTrunc(result, i16), like(v->getType(), b.getBFloatTy()));
}

static V narrow(Builder &b, V v, Type *type) {
  if (type->getScalarType()->isBFloatTy())
    return roundToBFloat(b, v);
  return b.CreateFPTrunc(v->getType()->getScalarType()->isDoubleTy() ? truncToOdd(b, v) : v, type);
}

static V widen(Builder &b, V v) {
  Type *f32 = like(v->getType(), b.getFloatTy());
  if (v->getType()->getScalarType()->isHalfTy())
    return b.CreateFPExt(v, f32);
  Type *i32 = like(v->getType(), b.getInt32Ty());
  V bits = b.CreateZExt(b.CreateBitCast(v, like(v->getType(), b.getInt16Ty())), i32);
  return b.CreateBitCast(b.CreateShl(bits, 16), f32);
}

/// A 64-bit integer that f64 holds exactly and that a later rounding to few bits takes for `v`: where v needs more than
/// 53 bits, the low ones become one that says whether any was set.
static V fitDouble(Builder &b, V v, bool isSigned) {
  Type *type = v->getType();
  if (type->getScalarSizeInBits() <= 53)
    return v;
  constexpr uint64_t limit = uint64_t(1) << 53, low = 2047;
  V fits = isSigned ? b.CreateICmpULT(b.CreateAdd(v, splatLike(type, limit)), splatLike(type, 2 * limit))
                    : b.CreateICmpULT(v, splatLike(type, limit));
  V any = b.CreateZExt(b.CreateIsNotNull(b.CreateAnd(v, splatLike(type, low))), type);
  V sticky = b.CreateOr(b.CreateAnd(v, splatLike(type, ~low)), b.CreateShl(any, 11));
  return b.CreateSelect(fits, v, sticky);
}

/// llvm.fptosi.sat and llvm.fptoui.sat, which LLVM does lane by lane on x86: one conversion of what fits, and the ends
/// by selection. NaN is 0.
static V saturated(Builder &b, V v, Type *to, bool isSigned) {
  Type *from = v->getType();
  unsigned bits = to->getScalarSizeInBits();
  // This and its negative are floats; the highest integer need not be one.
  double limit = std::ldexp(1.0, int(bits) - isSigned);
  V bottom = ConstantFP::get(from, isSigned ? -limit : 0.0);
  V tooHigh = b.CreateFCmpOGE(v, ConstantFP::get(from, limit));
  V fits = b.CreateAnd(b.CreateFCmpOGE(v, bottom), b.CreateNot(tooHigh));
  V inside = b.CreateSelect(fits, v, bottom);
  V converted = isSigned ? b.CreateFPToSI(inside, to) : b.CreateFPToUI(inside, to);
  APInt highest = isSigned ? APInt::getSignedMaxValue(bits) : APInt::getMaxValue(bits);
  V result = b.CreateSelect(tooHigh, ConstantInt::get(to, highest), converted);
  return isSigned ? b.CreateSelect(b.CreateFCmpUNO(v, v), Constant::getNullValue(to), result) : result;
}

static V toInteger(Builder &b, V v, Type *to, bool isSigned) {
  if (to->isVectorTy())
    return saturated(b, v, to, isSigned);
  return b.CreateIntrinsic(isSigned ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat, {to, v->getType()}, {v});
}

/// Moves of f16 and bf16 as moves of 16-bit integers; nullptr where `inst` is none.
static V movedAsBits(Builder &b, Instruction &inst) {
  Type *type = inst.getType();
  auto bits = [&](Builder &b, V v) {
    return isSmallFloat(v->getType()) ? b.CreateBitCast(v, like(v->getType(), b.getInt16Ty())) : v;
  };
  if (!isSmallFloat(type))
    return nullptr;
  V moved = nullptr;
  if (auto *select = dyn_cast<SelectInst>(&inst)) {
    moved = b.CreateSelect(select->getCondition(), bits(b, select->getTrueValue()), bits(b, select->getFalseValue()));
  } else if (auto *shuffle = dyn_cast<ShuffleVectorInst>(&inst)) {
    moved = b.CreateShuffleVector(bits(b, shuffle->getOperand(0)), bits(b, shuffle->getOperand(1)),
                                  shuffle->getShuffleMask());
  } else if (isa<ExtractElementInst>(inst)) {
    moved = b.CreateExtractElement(bits(b, inst.getOperand(0)), inst.getOperand(1));
  } else if (isa<InsertElementInst>(inst)) {
    moved = b.CreateInsertElement(bits(b, inst.getOperand(0)), bits(b, inst.getOperand(1)), inst.getOperand(2));
  } else if (isa<FreezeInst>(inst)) {
    moved = b.CreateFreeze(bits(b, inst.getOperand(0)));
  } else if (auto *phi = dyn_cast<PHINode>(&inst)) {
    PHINode *integers = b.CreatePHI(like(type, b.getInt16Ty()), phi->getNumIncomingValues());
    for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
      IRBuilder<> at(phi->getIncomingBlock(i)->getTerminator());
      integers->addIncoming(bits(at, phi->getIncomingValue(i)), phi->getIncomingBlock(i));
    }
    b.SetInsertPoint(phi->getParent(), phi->getParent()->getFirstInsertionPt());
    moved = integers;
  }
  return moved ? b.CreateBitCast(moved, type) : nullptr;
}

/// The same value computed without arithmetic on f16 or bf16; nullptr where `inst` has none.
static V widenedOperation(Builder &b, Instruction &inst) {
  Type *type = inst.getType();
  Type *from = inst.getNumOperands() ? inst.getOperand(0)->getType() : type;
  auto wide = [&](V v) { return isSmallFloat(v->getType()) ? widen(b, v) : v; };
  if (auto *cast = dyn_cast<CastInst>(&inst)) {
    Type *f32 = like(type, b.getFloatTy());
    switch (cast->getOpcode()) {
    case Instruction::FPTrunc:
      return isSmallFloat(type) && (type->getScalarType()->isBFloatTy() || from->getScalarType()->isDoubleTy())
                 ? narrow(b, inst.getOperand(0), type)
                 : nullptr;
    case Instruction::FPExt:
      if (!isSmallFloat(from) || (from->getScalarType()->isHalfTy() && type == f32))
        return nullptr;
      return type == f32 ? widen(b, inst.getOperand(0)) : b.CreateFPExt(widen(b, inst.getOperand(0)), type);
    case Instruction::SIToFP:
    case Instruction::UIToFP:
      if (!isSmallFloat(type))
        return nullptr;
      return narrow(b,
                    b.CreateCast(cast->getOpcode(), fitDouble(b, inst.getOperand(0), isa<SIToFPInst>(inst)),
                                 like(type, b.getDoubleTy())),
                    type);
    case Instruction::FPToSI:
    case Instruction::FPToUI:
      return isSmallFloat(from) ? b.CreateCast(cast->getOpcode(), widen(b, inst.getOperand(0)), type) : nullptr;
    default: return nullptr;
    }
  }
  auto *call = dyn_cast<IntrinsicInst>(&inst);
  if (call && (call->getIntrinsicID() == Intrinsic::fptosi_sat || call->getIntrinsicID() == Intrinsic::fptoui_sat))
    return isSmallFloat(from) || type->isVectorTy()
               ? toInteger(b, wide(inst.getOperand(0)), type, call->getIntrinsicID() == Intrinsic::fptosi_sat)
               : nullptr;
  if (!isSmallFloat(from))
    return nullptr;
  if (auto *compare = dyn_cast<FCmpInst>(&inst))
    return b.CreateFCmp(compare->getPredicate(), wide(inst.getOperand(0)), wide(inst.getOperand(1)));
  if (auto *binary = dyn_cast<BinaryOperator>(&inst))
    return narrow(b, b.CreateBinOp(binary->getOpcode(), wide(inst.getOperand(0)), wide(inst.getOperand(1))), type);
  // Sign operations are bit operations.
  Type *i16 = like(from, b.getInt16Ty());
  auto bits = [&](unsigned i) { return b.CreateBitCast(inst.getOperand(i), i16); };
  if (isa<UnaryOperator>(inst))
    return b.CreateBitCast(b.CreateXor(bits(0), splatLike(i16, 0x8000)), type);
  if (!call)
    return nullptr;
  switch (call->getIntrinsicID()) {
  case Intrinsic::fabs: return b.CreateBitCast(b.CreateAnd(bits(0), splatLike(i16, 0x7fff)), type);
  case Intrinsic::copysign:
    return b.CreateBitCast(
        b.CreateOr(b.CreateAnd(bits(0), splatLike(i16, 0x7fff)), b.CreateAnd(bits(1), splatLike(i16, 0x8000))), type);
  case Intrinsic::minnum:
  case Intrinsic::maxnum:
  case Intrinsic::minimum:
  case Intrinsic::maximum:
  case Intrinsic::minimumnum:
  case Intrinsic::maximumnum:
  case Intrinsic::fma:
  case Intrinsic::fmuladd:
  case Intrinsic::sqrt:
  case Intrinsic::floor:
  case Intrinsic::ceil:
  case Intrinsic::trunc:
  case Intrinsic::round:
  case Intrinsic::roundeven:
  case Intrinsic::rint:
  case Intrinsic::nearbyint:
  case Intrinsic::exp:
  case Intrinsic::exp2:
  case Intrinsic::log:
  case Intrinsic::log2:
  case Intrinsic::log10:
  case Intrinsic::sin:
  case Intrinsic::cos:
  case Intrinsic::pow: {
    SmallVector<V> args;
    for (V v : call->args())
      args.push_back(wide(v));
    return narrow(b, b.CreateIntrinsic(args[0]->getType(), call->getIntrinsicID(), args), type);
  }
  default: return nullptr;
  }
}

// ---- division -----------------------------------------------------------------------------------------------------

static V outlinedDivision(Builder &b, BinaryOperator &op) {
  auto *type = dyn_cast<FixedVectorType>(op.getType());
  Instruction::BinaryOps code = op.getOpcode();
  if (type && code == Instruction::FRem)
    return callOutlined(
        b, "frem." + typeName(type), type, {op.getOperand(0), op.getOperand(1)}, [&](Builder &b, ArrayRef<V> args) {
          return mapLanes(b, type, args, [](Builder &b, ArrayRef<V> x) { return b.CreateFRem(x[0], x[1]); });
        });
  bool isSigned = code == Instruction::SDiv || code == Instruction::SRem;
  bool remainder = code == Instruction::SRem || code == Instruction::URem;
  if (!type || !(isSigned || remainder || code == Instruction::UDiv))
    return nullptr;
  if (auto *constant = dyn_cast<Constant>(op.getOperand(1))) {
    // Multiplications and shifts. Vectors have no upper half of a 64-bit product, so that one goes lane by lane, too.
    auto *divisor = dyn_cast_or_null<ConstantInt>(constant->getSplatValue());
    if (type->getScalarSizeInBits() <= 32 || !divisor || divisor->getValue().abs().isPowerOf2())
      return nullptr;
    return callOutlined(
        b, Twine(op.getOpcodeName()) + "." + typeName(type) + "." + toString(divisor->getValue(), 10, isSigned), type,
        {op.getOperand(0)}, [&](Builder &b, ArrayRef<V> args) {
          return mapLanes(b, type, args, [&](Builder &b, ArrayRef<V> x) { return b.CreateBinOp(code, x[0], divisor); });
        });
  }
  return callOutlined(
      b, Twine(op.getOpcodeName()) + "." + typeName(type), type, {op.getOperand(0), op.getOperand(1)},
      [&](Builder &b, ArrayRef<V> args) -> V {
        if (type->getScalarSizeInBits() > 32)
          return mapLanes(b, type, args, [&](Builder &b, ArrayRef<V> x) { return b.CreateBinOp(code, x[0], x[1]); });
        // The quotient of 32-bit integers in f64 never rounds up to the next integer.
        Type *f64 = like(type, b.getDoubleTy());
        auto toFloat = [&](V v) { return isSigned ? b.CreateSIToFP(v, f64) : b.CreateUIToFP(v, f64); };
        V ratio = b.CreateFDiv(toFloat(args[0]), toFloat(args[1]));
        // Through 64 bits, so that INT_MIN / -1 wraps and x / 0 is a value, whatever the guards before.
        V quotient = b.CreateTrunc(toInteger(b, ratio, like(type, b.getInt64Ty()), true), type);
        return remainder ? b.CreateSub(args[0], b.CreateMul(quotient, args[1])) : quotient;
      });
}

void prepareForHost(Module &m) {
  SmallVector<Instruction *> work;
  for (Function &f : m) {
    if (f.isDeclaration())
      continue;
    for (Instruction &inst : instructions(f))
      work.push_back(&inst);
  }
  for (Instruction *inst : work) {
    IRBuilder<> b(inst);
    V value = widenedOperation(b, *inst);
    if (!value)
      value = movedAsBits(b, *inst);
    if (auto *binary = dyn_cast<BinaryOperator>(inst); binary && !value)
      value = outlinedDivision(b, *binary);
    if (!value)
      continue;
    inst->replaceAllUsesWith(value);
    inst->eraseFromParent();
  }
}

} // namespace tessera::codegen
