// Elementwise operations: the same instruction for every register. What the IR leaves undefined and the language
// defines (division by zero, long shifts, float to integer out of range) is defined here, once for all targets. Float
// functions are in Math.cpp.
#include "Emitter.h"

#include "mlir/Dialect/UB/IR/UBOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/Intrinsics.h"

namespace tessera::codegen {

using mlir::LogicalResult;
using mlir::success;
namespace arith = mlir::arith;
namespace Intrinsic = llvm::Intrinsic;

LogicalResult Emitter::mapLanes(mlir::Operation *op, llvm::function_ref<V(llvm::ArrayRef<V>)> fn) {
  unsigned count = numValues(op->getResult(0).getType());
  bool lanes = scalarsAreLanes || isTensor(op->getResult(0));
  llvm::SmallVector<Lanes, 3> operands;
  for (mlir::Value operand : op->getOperands()) {
    operands.push_back(lanes ? getAsLanes(operand, count) : Lanes(get(operand)));
    if (operands.back().size() != count)
      return op->emitOpError("has operands in different layouts");
  }
  // A mask that is known to be equal over groups of registers is computed once a group.
  unsigned group = 1;
  if (isTensor(op->getResult(0)) && scalarType(op->getResult(0).getType())->isIntegerTy(1))
    group = axisInfo.maskAlignment(op->getResult(0));
  Lanes results;
  llvm::SmallVector<V, 3> args(operands.size()), last;
  for (unsigned r = 0; r < count; ++r) {
    if (r % group) {
      results.push_back(results.back());
      continue;
    }
    for (auto [arg, list] : llvm::zip_equal(args, operands))
      arg = list[r];
    // Splats and copies have the same operands in every register: compute once.
    results.push_back(r && args == last ? results.back() : fn(args));
    last = args;
  }
  set(op->getResult(0), std::move(results));
  return success();
}

static V constantLike(V v, uint64_t value) { return llvm::ConstantInt::get(v->getType(), value, /*IsSigned=*/true); }

/// Truncating division; x / 0 is 0 with remainder x, and the most negative number over -1 wraps.
V Emitter::divide(V a, V c, bool isSigned, bool remainder) {
  auto emit = [&](V divisor) {
    return isSigned ? (remainder ? b.CreateSRem(a, divisor) : b.CreateSDiv(a, divisor))
                    : (remainder ? b.CreateURem(a, divisor) : b.CreateUDiv(a, divisor));
  };
  V zero = constantLike(c, 0), one = constantLike(c, 1);
  V onZero = remainder ? a : zero;
  V isZero = b.CreateICmpEQ(c, zero);
  if (!isSigned)
    return b.CreateSelect(isZero, onZero, emit(b.CreateSelect(isZero, one, c)));
  // 0 and -1 are the two divisors below 2 after adding one, unsigned.
  V special = b.CreateICmpULT(b.CreateAdd(c, one), constantLike(c, 2));
  V onMinusOne = remainder ? zero : b.CreateNeg(a);
  return b.CreateSelect(special, b.CreateSelect(isZero, onZero, onMinusOne), emit(b.CreateSelect(special, one, c)));
}

V Emitter::floatToInt(V v, llvm::Type *to, bool isSigned) {
  if (V own = target.floatToInt(b, v, to, isSigned))
    return own;
  return b.CreateIntrinsic(to, isSigned ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat, {v});
}

V Emitter::truncateFloat(V v, llvm::Type *to, bool towardZero) {
  V nearest = b.CreateFPTrunc(v, to);
  if (!towardZero)
    return nearest;
  // One step back towards zero where rounding to nearest went away from it; infinities and NaN compare false.
  V back = b.CreateFPExt(nearest, v->getType());
  V away = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(Intrinsic::fabs, back), b.CreateUnaryIntrinsic(Intrinsic::fabs, v));
  llvm::Type *bits = llvm::Type::getIntNTy(b.getContext(), to->getScalarSizeInBits());
  if (auto *vector = llvm::dyn_cast<llvm::VectorType>(to))
    bits = llvm::VectorType::get(bits, vector->getElementCount());
  V asInt = b.CreateBitCast(nearest, bits);
  return b.CreateBitCast(b.CreateSub(asInt, b.CreateZExt(away, bits)), to);
}

LogicalResult Emitter::emitConstant(mlir::Operation *op, mlir::Attribute value) {
  mlir::Type type = op->getResult(0).getType();
  if (auto dense = mlir::dyn_cast<mlir::DenseElementsAttr>(value)) {
    if (!dense.isSplat())
      return op->emitOpError("a tile constant must have one value everywhere");
    value = dense.getSplatValue<mlir::Attribute>();
  }
  llvm::Constant *scalar = nullptr;
  if (auto integer = mlir::dyn_cast<mlir::IntegerAttr>(value))
    scalar = llvm::ConstantInt::get(scalarType(type),
                                    integer.getValue().sextOrTrunc(scalarType(type)->getIntegerBitWidth()));
  else if (auto number = mlir::dyn_cast<mlir::FloatAttr>(value))
    scalar = scalarType(type)->isIntegerTy() // fp8
                 ? llvm::Constant::getIntegerValue(scalarType(type), number.getValue().bitcastToAPInt())
                 : llvm::ConstantFP::get(scalarType(type), number.getValue());
  if (!scalar)
    return op->emitOpError("has a constant that cannot be lowered");
  bool lanes = scalarsAreLanes || isTensor(op->getResult(0));
  set(op->getResult(0), Lanes(numValues(type), lanes ? target.splat(b, scalar) : scalar));
  return success();
}

static llvm::CmpInst::Predicate predicate(arith::CmpIPredicate p) {
  using P = arith::CmpIPredicate;
  switch (p) {
  case P::eq: return llvm::CmpInst::ICMP_EQ;
  case P::ne: return llvm::CmpInst::ICMP_NE;
  case P::slt: return llvm::CmpInst::ICMP_SLT;
  case P::sle: return llvm::CmpInst::ICMP_SLE;
  case P::sgt: return llvm::CmpInst::ICMP_SGT;
  case P::sge: return llvm::CmpInst::ICMP_SGE;
  case P::ult: return llvm::CmpInst::ICMP_ULT;
  case P::ule: return llvm::CmpInst::ICMP_ULE;
  case P::ugt: return llvm::CmpInst::ICMP_UGT;
  case P::uge: return llvm::CmpInst::ICMP_UGE;
  }
  return llvm::CmpInst::BAD_ICMP_PREDICATE;
}

static llvm::CmpInst::Predicate predicate(arith::CmpFPredicate p) {
  using P = arith::CmpFPredicate;
  switch (p) {
  case P::AlwaysFalse: return llvm::CmpInst::FCMP_FALSE;
  case P::OEQ: return llvm::CmpInst::FCMP_OEQ;
  case P::OGT: return llvm::CmpInst::FCMP_OGT;
  case P::OGE: return llvm::CmpInst::FCMP_OGE;
  case P::OLT: return llvm::CmpInst::FCMP_OLT;
  case P::OLE: return llvm::CmpInst::FCMP_OLE;
  case P::ONE: return llvm::CmpInst::FCMP_ONE;
  case P::ORD: return llvm::CmpInst::FCMP_ORD;
  case P::UEQ: return llvm::CmpInst::FCMP_UEQ;
  case P::UGT: return llvm::CmpInst::FCMP_UGT;
  case P::UGE: return llvm::CmpInst::FCMP_UGE;
  case P::ULT: return llvm::CmpInst::FCMP_ULT;
  case P::ULE: return llvm::CmpInst::FCMP_ULE;
  case P::UNE: return llvm::CmpInst::FCMP_UNE;
  case P::UNO: return llvm::CmpInst::FCMP_UNO;
  case P::AlwaysTrue: return llvm::CmpInst::FCMP_TRUE;
  }
  return llvm::CmpInst::BAD_FCMP_PREDICATE;
}

/// Whether `op` would compute with 8-bit floats, which can only be moved, converted and multiplied by a dot.
static bool computesWithFp8(mlir::Operation *op) {
  if (!mlir::isa<arith::ArithDialect, mlir::math::MathDialect>(op->getDialect()) &&
      !mlir::isa<tt::ClampFOp, tt::PreciseSqrtOp, tt::PreciseDivFOp>(op))
    return false;
  auto isFp8 = [](mlir::Type type) { return tt::isFloat8(mlir::getElementTypeOrSelf(type)); };
  return (llvm::any_of(op->getOperandTypes(), isFp8) || llvm::any_of(op->getResultTypes(), isFp8)) &&
         !mlir::isa<arith::ConstantOp, arith::SelectOp, arith::BitcastOp, arith::ExtFOp, arith::TruncFOp>(op);
}

std::optional<LogicalResult> Emitter::emitElementwise(mlir::Operation *op) {
  using Args = llvm::ArrayRef<V>;
  if (computesWithFp8(op))
    return op->emitOpError("computes with 8-bit floats: convert them with tt.fp_to_fp first");
  if (op->getNumResults() == 1 && op->getNumRegions() == 0)
    if (auto result = emitMath(op))
      return result;
  auto binary = [&](llvm::Instruction::BinaryOps opcode) {
    return mapLanes(op, [&, opcode](Args a) { return b.CreateBinOp(opcode, a[0], a[1]); });
  };
  auto intrinsic = [&](Intrinsic::ID id) {
    return mapLanes(op, [&, id](Args a) { return b.CreateBinaryIntrinsic(id, a[0], a[1]); });
  };
  auto cast = [&](llvm::Instruction::CastOps opcode) {
    llvm::Type *to = valueType(op->getResult(0).getType());
    return mapLanes(op, [&, opcode, to](Args a) { return b.CreateCast(opcode, a[0], to); });
  };
  // Shifts by the width or more: all bits leave.
  auto shift = [&](llvm::Instruction::BinaryOps opcode) {
    return mapLanes(op, [&, opcode](Args a) -> V {
      unsigned width = a[0]->getType()->getScalarSizeInBits();
      if (opcode == llvm::Instruction::AShr)
        return b.CreateAShr(a[0], b.CreateBinaryIntrinsic(Intrinsic::umin, a[1], constantLike(a[1], width - 1)));
      // Masked, not selected: the unused side is no poison, and a back end of LLVM 22 does not take a 64-bit amount for
      // its low word, as it does where it finds select(amount < 64, x << amount, 0).
      V inside = b.CreateICmpULT(a[1], constantLike(a[1], width));
      V amount = b.CreateAnd(a[1], constantLike(a[1], width - 1));
      return b.CreateSelect(inside, b.CreateBinOp(opcode, a[0], amount), constantLike(a[0], 0));
    });
  };
  auto division = [&](bool isSigned, bool remainder) {
    return mapLanes(op, [&, isSigned, remainder](Args a) { return divide(a[0], a[1], isSigned, remainder); });
  };
  auto toInt = [&](bool isSigned) {
    llvm::Type *to = valueType(op->getResult(0).getType());
    return mapLanes(op, [&, to, isSigned](Args a) { return floatToInt(a[0], to, isSigned); });
  };
  auto highHalf = [&](V x, V y, bool isSigned) {
    llvm::Type *type = x->getType(), *wide = type->getExtendedType();
    V product = isSigned ? b.CreateMul(b.CreateSExt(x, wide), b.CreateSExt(y, wide))
                         : b.CreateMul(b.CreateZExt(x, wide), b.CreateZExt(y, wide));
    return b.CreateTrunc(b.CreateLShr(product, type->getScalarSizeInBits()), type);
  };
  auto extendedProduct = [&](bool isSigned) {
    Lanes lows, highs;
    for (auto [x, y] : llvm::zip_equal(get(op->getOperand(0)), get(op->getOperand(1)))) {
      highs.push_back(highHalf(x, y, isSigned));
      lows.push_back(b.CreateMul(x, y));
    }
    set(op->getResult(0), lows);
    set(op->getResult(1), highs);
    return success();
  };

  using I = llvm::Instruction;
  return llvm::TypeSwitch<mlir::Operation *, std::optional<LogicalResult>>(op)
      .Case<arith::ConstantOp>([&](auto o) { return emitConstant(o, o.getValue()); })
      .Case<arith::AddIOp>([&](auto) { return binary(I::Add); })
      .Case<arith::SubIOp>([&](auto) { return binary(I::Sub); })
      .Case<arith::MulIOp>([&](auto) { return binary(I::Mul); })
      .Case<arith::AndIOp>([&](auto) { return binary(I::And); })
      .Case<arith::OrIOp>([&](auto) { return binary(I::Or); })
      .Case<arith::XOrIOp>([&](auto) { return binary(I::Xor); })
      .Case<arith::DivSIOp>([&](auto) { return division(true, false); })
      .Case<arith::DivUIOp>([&](auto) { return division(false, false); })
      .Case<arith::RemSIOp>([&](auto) { return division(true, true); })
      .Case<arith::RemUIOp>([&](auto) { return division(false, true); })
      .Case<arith::ShLIOp>([&](auto) { return shift(I::Shl); })
      .Case<arith::ShRUIOp>([&](auto) { return shift(I::LShr); })
      .Case<arith::ShRSIOp>([&](auto) { return shift(I::AShr); })
      .Case<arith::MinSIOp>([&](auto) { return intrinsic(Intrinsic::smin); })
      .Case<arith::MinUIOp>([&](auto) { return intrinsic(Intrinsic::umin); })
      .Case<arith::MaxSIOp>([&](auto) { return intrinsic(Intrinsic::smax); })
      .Case<arith::MaxUIOp>([&](auto) { return intrinsic(Intrinsic::umax); })
      .Case<arith::AddFOp>([&](auto) { return binary(I::FAdd); })
      .Case<arith::SubFOp>([&](auto) { return binary(I::FSub); })
      .Case<arith::MulFOp>([&](auto) { return binary(I::FMul); })
      .Case<arith::RemFOp>([&](auto) { return binary(I::FRem); })
      .Case<arith::NegFOp>([&](auto) { return mapLanes(op, [&](Args a) { return b.CreateFNeg(a[0]); }); })
      .Case<arith::MaxNumFOp>([&](auto) { return intrinsic(Intrinsic::maxnum); })
      .Case<arith::MinNumFOp>([&](auto) { return intrinsic(Intrinsic::minnum); })
      .Case<arith::MaximumFOp>([&](auto) { return intrinsic(Intrinsic::maximum); })
      .Case<arith::MinimumFOp>([&](auto) { return intrinsic(Intrinsic::minimum); })
      .Case<arith::MulUIExtendedOp>([&](auto) { return extendedProduct(false); })
      .Case<arith::MulSIExtendedOp>([&](auto) { return extendedProduct(true); })
      .Case<tt::MulhiUIOp>(
          [&](auto) { return mapLanes(op, [&](Args a) { return highHalf(a[0], a[1], /*isSigned=*/false); }); })
      .Case<tt::ClampFOp>([&](auto o) {
        bool nan = o.getPropagateNan() == tt::PropagateNan::ALL;
        return mapLanes(op, [&, nan](Args a) {
          V low = b.CreateBinaryIntrinsic(nan ? Intrinsic::maximum : Intrinsic::maxnum, a[0], a[1]);
          return b.CreateBinaryIntrinsic(nan ? Intrinsic::minimum : Intrinsic::minnum, low, a[2]);
        });
      })
      .Case<arith::CmpIOp>([&](auto o) {
        return mapLanes(op, [&, p = predicate(o.getPredicate())](Args a) { return b.CreateICmp(p, a[0], a[1]); });
      })
      .Case<arith::CmpFOp>([&](auto o) {
        return mapLanes(op, [&, p = predicate(o.getPredicate())](Args a) { return b.CreateFCmp(p, a[0], a[1]); });
      })
      .Case<arith::SelectOp>(
          [&](auto) { return mapLanes(op, [&](Args a) { return b.CreateSelect(a[0], a[1], a[2]); }); })
      .Case<arith::ExtSIOp>([&](auto) { return cast(I::SExt); })
      .Case<arith::ExtUIOp>([&](auto) { return cast(I::ZExt); })
      .Case<arith::TruncIOp>([&](auto) { return cast(I::Trunc); })
      .Case<arith::ExtFOp>([&](auto o) {
        auto fp8 = emitFp8Cast(o, false);
        return fp8 ? *fp8 : cast(I::FPExt);
      })
      .Case<arith::SIToFPOp>([&](auto) { return cast(I::SIToFP); })
      .Case<arith::UIToFPOp>([&](auto) { return cast(I::UIToFP); })
      .Case<arith::FPToSIOp>([&](auto) { return toInt(true); })
      .Case<arith::FPToUIOp>([&](auto) { return toInt(false); })
      .Case<arith::TruncFOp>([&](auto o) {
        bool towardZero = o.getRoundingmode() == arith::RoundingMode::toward_zero;
        if (auto fp8 = emitFp8Cast(o, towardZero))
          return *fp8;
        llvm::Type *to = valueType(o.getType());
        return mapLanes(op, [&, to, towardZero](Args a) { return truncateFloat(a[0], to, towardZero); });
      })
      .Case<tt::FpToFpOp>([&](auto o) {
        bool towardZero = o.getRounding() == tt::RoundingMode::RTZ;
        if (auto fp8 = emitFp8Cast(o, towardZero))
          return *fp8;
        llvm::Type *to = valueType(o.getType());
        return mapLanes(op, [&, to, towardZero](Args a) -> V {
          unsigned from = a[0]->getType()->getScalarSizeInBits(), width = to->getScalarSizeInBits();
          if (width > from)
            return b.CreateFPExt(a[0], to);
          if (width < from)
            return truncateFloat(a[0], to, towardZero);
          if (a[0]->getType() == to)
            return a[0];
          llvm::Type *wide = to->getWithNewType(b.getFloatTy()); // f16 <-> bf16
          return truncateFloat(b.CreateFPExt(a[0], wide), to, towardZero);
        });
      })
      .Case<arith::IndexCastOp>([&](auto o) {
        return mapLanes(op, [&, to = valueType(o.getType())](Args a) { return b.CreateSExtOrTrunc(a[0], to); });
      })
      .Case<arith::IndexCastUIOp>([&](auto o) {
        return mapLanes(op, [&, to = valueType(o.getType())](Args a) { return b.CreateZExtOrTrunc(a[0], to); });
      })
      .Case<arith::BitcastOp, tt::BitcastOp>([&](auto o) {
        return mapLanes(op, [&, to = valueType(o.getType())](Args a) { return b.CreateBitCast(a[0], to); });
      })
      .Case<tt::IntToPtrOp>([&](auto) { return cast(I::IntToPtr); })
      .Case<tt::PtrToIntOp>([&](auto) { return cast(I::PtrToInt); })
      .Case<tt::AddPtrOp>([&](auto o) {
        auto pointer = mlir::cast<tt::PointerType>(mlir::getElementTypeOrSelf(o.getPtr().getType()));
        llvm::Type *element = memoryType(pointer.getPointeeType());
        return mapLanes(op, [&, element](Args a) { return b.CreateGEP(element, a[0], a[1]); });
      })
      .Case<mlir::ub::PoisonOp>([&](auto o) {
        // Nothing is undefined here: zero.
        V zero = llvm::Constant::getNullValue(valueType(o.getType()));
        set(o.getResult(), Lanes(numValues(o.getType()), zero));
        return success();
      })
      .Case<tt::ExternElementwiseOp>([&](auto o) { return emitExternCall(o); })
      .Case<tt::ElementwiseInlineAsmOp>([&](auto o) { return emitInlineAsm(o); })
      .Default([](auto) { return std::nullopt; });
}

} // namespace tessera::codegen
