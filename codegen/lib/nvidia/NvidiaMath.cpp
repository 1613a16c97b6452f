// Float functions: the special function unit's approximations where speed is wanted, correctly rounded instructions and
// libclc where precision is, libclc for all of f64.
#include "NvidiaTargetInfo.h"

#include "../common/FastSine.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

#include <numbers>

// The functions of libclc that are called below, cut out at build time (codegen/cmake/Libclc.cmake).
extern "C" {
extern const char tessera_libclc_nvptx[];
extern const char tessera_libclc_nvptx_end[];
}

namespace tessera::codegen {

namespace Intrinsic = llvm::Intrinsic;

V NvidiaTargetInfo::instruction(B &b, llvm::StringRef text, llvm::ArrayRef<V> args) {
  llvm::Type *operand = args.front()->getType();
  std::string constraint = operand->isFloatTy() ? "f" : "d", constraints = "=" + constraint, code = text.str() + " $0";
  for (unsigned i = 0; i < args.size(); ++i) {
    constraints += "," + constraint;
    code += ", $" + std::to_string(i + 1);
  }
  auto *type = llvm::FunctionType::get(operand, llvm::SmallVector<llvm::Type *>(args.size(), operand), false);
  llvm::CallInst *call = b.CreateCall(type, llvm::InlineAsm::get(type, code + ";", constraints, false), args);
  call->setDoesNotAccessMemory();
  return call;
}

/// Divisions and square roots of 64 bits, which become some hundred instructions each, call one function where there
/// are many of them. Integers over a constant are multiplications of 64 bits, not much shorter.
static void outlineDivisions(llvm::Module &m) {
  llvm::MapVector<std::pair<unsigned, llvm::ConstantInt *>, llvm::SmallVector<llvm::Instruction *>> alike;
  for (llvm::Function &f : m)
    for (llvm::Instruction &i : llvm::instructions(f)) {
      auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
      bool onFloats = i.getType()->isDoubleTy() &&
                      (i.getOpcode() == llvm::Instruction::FDiv || (call && call->getIntrinsicID() == Intrinsic::sqrt));
      bool onIntegers = i.getType()->isIntegerTy(64) && i.isIntDivRem();
      auto *divisor = onIntegers ? llvm::dyn_cast<llvm::ConstantInt>(i.getOperand(1)) : nullptr;
      if (onFloats || (onIntegers && !(divisor && divisor->getValue().abs().isPowerOf2())))
        alike[{i.getOpcode(), divisor}].push_back(&i);
    }
  for (auto &[key, operations] : alike) {
    if (operations.size() * 100 <= maxInlinedInstructions)
      continue;
    llvm::Instruction *first = operations.front();
    llvm::Type *type = first->getType();
    bool unary = llvm::isa<llvm::CallBase>(first);
    unsigned params = unary || key.second ? 1 : 2;
    std::string name = unary ? "sqrt" : first->getOpcodeName();
    auto *f = llvm::Function::Create(
        llvm::FunctionType::get(type, llvm::SmallVector<llvm::Type *>(params, type), false),
        llvm::GlobalValue::InternalLinkage, "tessera_" + name + (type->isDoubleTy() ? "_f64" : "_i64"), m);
    f->addFnAttr(llvm::Attribute::NoInline);
    f->addFnAttr(llvm::Attribute::NoUnwind);
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(m.getContext(), "", f));
    llvm::Instruction *body = b.Insert(first->clone());
    body->setDebugLoc({});
    for (llvm::Argument &arg : f->args())
      body->setOperand(arg.getArgNo(), &arg);
    b.CreateRet(body);
    for (llvm::Instruction *operation : operations) {
      b.SetInsertPoint(operation);
      operation->replaceAllUsesWith(
          b.CreateCall(f, llvm::SmallVector<V>(operation->op_begin(), operation->op_begin() + params)));
      operation->eraseFromParent();
    }
  }
}

void NvidiaTargetInfo::linkLibraries(llvm::Module &m) const {
  outlineDivisions(m);
  if (!linkMath(m, llvm::StringRef(tessera_libclc_nvptx, tessera_libclc_nvptx_end - tessera_libclc_nvptx)))
    return;
  keepLongFunctions(m);
  // libclc allows its own divisions 2.5 ulp; the fast form has 2. LLVM would take the correctly rounded one.
  if (!preciseMath)
    for (llvm::Function &f : m)
      for (llvm::Instruction &i : llvm::make_early_inc_range(llvm::instructions(f)))
        if (i.getOpcode() == llvm::Instruction::FDiv && i.getType()->isFloatTy() &&
            i.hasMetadata(llvm::LLVMContext::MD_fpmath)) {
          llvm::IRBuilder<> b(&i);
          i.replaceAllUsesWith(instruction(b, "div.full.f32", {i.getOperand(0), i.getOperand(1)}));
          i.eraseFromParent();
        }
}

// cvt.rzi saturates and takes NaN to 0, except from f64.
V NvidiaTargetInfo::saturate(B &b, V v, bool isSigned) const {
  return b.CreateIntrinsic(b.getInt32Ty(), isSigned ? Intrinsic::nvvm_f2i_rz : Intrinsic::nvvm_f2ui_rz, {v});
}

V NvidiaTargetInfo::fastMath(B &b, MathFn fn, llvm::ArrayRef<V> args) {
  V x = args.front();
  auto number = [&](double value) { return llvm::ConstantFP::get(x->getType(), value); };
  auto log2 = [&] { return instruction(b, "lg2.approx.f32", x); };
  auto toInt = [&](V v) { return saturate(b, v, /*isSigned=*/true); };
  switch (fn) {
  case MathFn::Exp: return instruction(b, "ex2.approx.ftz.f32", b.CreateFMul(x, number(std::numbers::log2e)));
  case MathFn::Exp2: return instruction(b, "ex2.approx.ftz.f32", x);
  case MathFn::Log: return b.CreateFMul(log2(), number(std::numbers::ln2));
  case MathFn::Log2: return log2();
  case MathFn::Log10: return b.CreateFMul(log2(), number(std::numbers::ln2 / std::numbers::ln10));
  case MathFn::Sqrt: return instruction(b, "sqrt.approx.f32", x);
  case MathFn::Rsqrt: return instruction(b, "rsqrt.approx.f32", x);
  case MathFn::Sin: return sineOrCosine(b, x, 0, toInt);
  case MathFn::Cos: return sineOrCosine(b, x, 1, toInt);
  case MathFn::Div: return instruction(b, "div.full.f32", args);
  default: return nullptr;
  }
}

} // namespace tessera::codegen
