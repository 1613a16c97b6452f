// Targets whose code is written for one thread.
#include "ThreadTargetInfo.h"

#include "FastSine.h"
#include "Optimize.h"

#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace tessera::codegen {

void ThreadTargetInfo::takeTurn(B &b, V turn, unsigned warps) {
  V before = b.CreateShl(turn, llvm::Log2_32(warps * warpSize()), "", /*NUW=*/true, /*NSW=*/true);
  thread = b.CreateOr(thread, before, "", /*IsDisjoint=*/true);
}

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

/// A call of libclc, which has OpenCL's names in the Itanium mangling.
static Value *libraryCall(IRBuilderBase &b, StringRef name, ArrayRef<Value *> args) {
  Type *type = args.front()->getType();
  std::string symbol =
      "_Z" + std::to_string(name.size()) + name.str() + std::string(args.size(), type->isFloatTy() ? 'f' : 'd');
  FunctionCallee callee = b.GetInsertBlock()->getModule()->getOrInsertFunction(
      symbol, FunctionType::get(type, SmallVector<Type *>(args.size(), type), false));
  CallInst *call = b.CreateCall(callee, args);
  call->setDoesNotAccessMemory();
  return call;
}

/// Remainders by libclc's function for f64, which is exact and serves all types: the remainder of two narrow numbers is
/// one. LLVM's own for GPUs lack bf16 or are x - trunc(x / y) * y, which is wrong by multiples of y where the quotient is
/// large or rounds up to an integer.
static void callRemainders(Module &m) {
  for (Function &f : m)
    for (Instruction &i : make_early_inc_range(instructions(f))) {
      if (i.getOpcode() != Instruction::FRem)
        continue;
      IRBuilder<> b(&i);
      auto wide = [&](Value *v) { return i.getType()->isDoubleTy() ? v : b.CreateFPExt(v, b.getDoubleTy()); };
      Value *r = libraryCall(b, "fmod", {wide(i.getOperand(0)), wide(i.getOperand(1))});
      i.replaceAllUsesWith(i.getType()->isDoubleTy() ? r : b.CreateFPTrunc(r, i.getType()));
      i.eraseFromParent();
    }
}

bool ThreadTargetInfo::linkMath(Module &m, StringRef libclc) {
  callRemainders(m);
  bool needed = any_of(m, [](Function &f) { return f.isDeclaration() && f.getName().starts_with("_Z"); });
  if (needed)
    linkBitcode(m, MemoryBufferRef(libclc, "libclc"));
  return needed;
}

void ThreadTargetInfo::keepLongFunctions(Module &m) {
  for (Function &f : m)
    if (f.hasLocalLinkage() && !f.isDeclaration() && f.getInstructionCount() * f.getNumUses() > maxInlinedInstructions)
      f.addFnAttr(Attribute::NoInline);
}

Value *ThreadTargetInfo::math(B &b, MathFn fn, ArrayRef<V> args, bool precise) {
  V x = args.front();
  if (x->getType()->isFloatTy() && !precise)
    if (V fast = fastMath(b, fn, args))
      return fast;
  auto library = [&](StringRef name) { return libraryCall(b, name, args); };
  auto exact = [&](Intrinsic::ID id) { return b.CreateUnaryIntrinsic(id, x); };
  switch (fn) {
  case MathFn::Exp: return library("exp");
  case MathFn::Exp2: return library("exp2");
  case MathFn::Log: return library("log");
  case MathFn::Log2: return library("log2");
  case MathFn::Log10: return library("log10");
  case MathFn::Sin: return library("sin");
  case MathFn::Cos: return library("cos");
  case MathFn::Tan: return library("tan");
  case MathFn::Tanh: return library("tanh");
  case MathFn::Erf: return library("erf");
  case MathFn::Pow: return library("pow");
  case MathFn::Sqrt: return exact(Intrinsic::sqrt);
  case MathFn::Rsqrt: return b.CreateFDiv(ConstantFP::get(x->getType(), 1), exact(Intrinsic::sqrt));
  case MathFn::Div: return b.CreateFDiv(x, args[1]);
  case MathFn::Floor: return exact(Intrinsic::floor);
  case MathFn::Ceil: return exact(Intrinsic::ceil);
  case MathFn::Trunc: return exact(Intrinsic::trunc);
  case MathFn::Round: return exact(Intrinsic::round);
  case MathFn::Abs: return exact(Intrinsic::fabs);
  case MathFn::Fma: return b.CreateIntrinsic(Intrinsic::fma, {x->getType()}, args);
  }
  return nullptr;
}

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
