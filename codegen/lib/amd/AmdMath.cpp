// Float functions: the hardware's approximations (1 ulp, results below the normal range become zero) where speed is
// wanted, LLVM's correctly rounded expansions and libclc where precision is, libclc for all of f64. fp8 conversions.
#include "AmdTargetInfo.h"

#include "../common/FastSine.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/MDBuilder.h"

#include <numbers>

// The functions of libclc that are called below, cut out at build time (codegen/cmake/Libclc.cmake).
extern "C" {
extern const char tessera_libclc_amdgcn[];
extern const char tessera_libclc_amdgcn_end[];
}

namespace tessera::codegen {

namespace Intrinsic = llvm::Intrinsic;

void AmdTargetInfo::linkLibraries(llvm::Module &m) const {
  linkMath(m, llvm::StringRef(tessera_libclc_amdgcn, tessera_libclc_amdgcn_end - tessera_libclc_amdgcn));
  keepLongFunctions(m);
  for (llvm::Function &f : m) {
    if (f.isDeclaration())
      continue;
    // The mode in which minima and maxima need no instruction before that makes a quiet NaN of a signalling one. A
    // function of another mode would not be inlined.
    if (arch.generation < 12)
      f.addFnAttr("amdgpu-ieee", "false");
    // A kernel has as many as what it calls. Of generation 9 LLVM takes the number for one of two equal halves.
    if (maxRegisters > 0) {
      f.addFnAttr("amdgpu-num-vgpr", std::to_string(arch.generation == 9 ? maxRegisters / 2 : maxRegisters));
      f.addFnAttr("amdgpu-agpr-alloc", "0");
    }
  }
}

/// f32 to 32 bits: the instruction truncates, saturates and takes NaN to 0 (CDNA3 ISA 16.9), which LLVM's conversion
/// leaves undefined and its saturating one does by comparisons.
V AmdTargetInfo::saturate(B &b, V v, bool isSigned) const {
  auto *type = llvm::FunctionType::get(b.getInt32Ty(), {b.getFloatTy()}, false);
  llvm::CallInst *call = b.CreateCall(
      type, llvm::InlineAsm::get(type, isSigned ? "v_cvt_i32_f32 $0, $1" : "v_cvt_u32_f32 $0, $1", "=v,v", false), {v});
  call->setDoesNotAccessMemory();
  call->setDoesNotThrow();
  return call;
}

V AmdTargetInfo::fastMath(B &b, MathFn fn, llvm::ArrayRef<V> args) {
  V x = args.front();
  llvm::Type *type = x->getType();
  auto number = [&](double value) { return llvm::ConstantFP::get(type, value); };
  // Within 2.5 ulp, which LLVM reaches by the hardware's approximation and a correction of the exponent.
  auto approximate = [&](V v) {
    if (auto *i = llvm::dyn_cast<llvm::Instruction>(v))
      i->setMetadata(llvm::LLVMContext::MD_fpmath, llvm::MDBuilder(b.getContext()).createFPMath(2.5f));
    return v;
  };
  auto exp2 = [&](V v) { return b.CreateIntrinsic(type, Intrinsic::amdgcn_exp2, {v}); };
  // Denormal arguments are scaled, since the instruction takes them for zero.
  auto log2 = [&] {
    V small = b.CreateFCmpOLT(x, number(0x1p-126));
    V scaled = b.CreateFMul(x, b.CreateSelect(small, number(0x1p32), number(1)));
    V raw = b.CreateIntrinsic(type, Intrinsic::amdgcn_log, {scaled});
    return b.CreateFSub(raw, b.CreateSelect(small, number(32), number(0)));
  };
  auto sqrt = [&] { return approximate(b.CreateUnaryIntrinsic(Intrinsic::sqrt, x)); };
  auto toInt = [&](V v) { return saturate(b, v, /*isSigned=*/true); };
  switch (fn) {
  case MathFn::Exp: return exp2(b.CreateFMul(x, number(std::numbers::log2e)));
  case MathFn::Exp2: return exp2(x);
  case MathFn::Log: return b.CreateFMul(log2(), number(std::numbers::ln2));
  case MathFn::Log2: return log2();
  case MathFn::Log10: return b.CreateFMul(log2(), number(std::numbers::ln2 / std::numbers::ln10));
  case MathFn::Sqrt: return sqrt();
  case MathFn::Rsqrt: return approximate(b.CreateFDiv(number(1), sqrt()));
  case MathFn::Sin: return sineOrCosine(b, x, 0, toInt);
  case MathFn::Cos: return sineOrCosine(b, x, 1, toInt);
  case MathFn::Div: return approximate(b.CreateFDiv(x, args[1]));
  default: return nullptr;
  }
}

// ---- fp8 ------------------------------------------------------------------------------------------------------------

llvm::SmallVector<V> AmdTargetInfo::convertToFp8(B &b, MatrixType to, V low, V high) {
  bool toFnuz = to == MatrixType::E4M3FNUZ || to == MatrixType::E5M2FNUZ, fnuz = arch.is("gfx942");
  bool e4m3 = to == MatrixType::E4M3 || to == MatrixType::E4M3FNUZ, mended = fnuz && !toFnuz;
  if (toFnuz ? !fnuz : !fnuz && !arch.ocpConversions)
    return {};
  // The instructions make infinity or NaN of what is too large; NaN compares false and stays.
  double largest = !e4m3 ? 57344 : toFnuz ? 240 : 448;
  llvm::Type *f32 = b.getFloatTy();
  llvm::SmallVector<V, 2> values{low, high}, clamped;
  for (V &v : values) {
    v = v->getType()->isFloatTy() ? v : b.CreateFPExt(v, f32);
    V limit = llvm::ConstantFP::get(f32, largest);
    V large = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(Intrinsic::fabs, v), limit);
    clamped.push_back(b.CreateSelect(large, b.CreateBinaryIntrinsic(Intrinsic::copysign, limit, v), v));
    // gfx942 has fp8 without infinities and -0, whose exponent is biased by one more: the same bits mean half as much.
    if (mended)
      clamped.back() = b.CreateFMul(clamped.back(), llvm::ConstantFP::get(f32, 0.5));
  }
  V packed = b.CreateIntrinsic(e4m3 ? Intrinsic::amdgcn_cvt_pk_fp8_f32 : Intrinsic::amdgcn_cvt_pk_bf8_f32, {},
                               {clamped[0], clamped[1], b.getInt32(0), b.getFalse()});
  llvm::SmallVector<V> result;
  for (unsigned i = 0; i < 2; ++i) {
    V byte = b.CreateTrunc(i ? b.CreateLShr(packed, 8) : packed, b.getInt8Ty());
    if (mended) { // a negative number that became zero, and NaN
      V sign = b.CreateLShr(b.CreateBitCast(values[i], b.getInt32Ty()), 24);
      byte = b.CreateOr(byte, b.CreateAnd(b.CreateTrunc(sign, b.getInt8Ty()), 0x80));
      byte = b.CreateSelect(b.CreateFCmpUNO(values[i], values[i]), b.getInt8(0x7f), byte);
    }
    result.push_back(byte);
  }
  return result;
}

llvm::SmallVector<V> AmdTargetInfo::convertFromFp8(B &b, MatrixType from, V low, V high) {
  bool fnuz = from == MatrixType::E4M3FNUZ || from == MatrixType::E5M2FNUZ;
  // e5m2 is the upper byte of an f16, which no instruction beats.
  if (fnuz ? !arch.is("gfx942") : from != MatrixType::E4M3 || !arch.ocpConversions)
    return {};
  V packed =
      b.CreateOr(b.CreateZExt(low, b.getInt16Ty()), b.CreateShl(b.CreateZExt(high, b.getInt16Ty()), 8), "", true);
  if (fnuz) {
    V both = b.CreateIntrinsic(from == MatrixType::E4M3FNUZ ? Intrinsic::amdgcn_cvt_pk_f32_fp8
                                                            : Intrinsic::amdgcn_cvt_pk_f32_bf8,
                               {}, {b.CreateZExt(packed, b.getInt32Ty()), b.getFalse()});
    return {b.CreateExtractElement(both, uint64_t(0)), b.CreateExtractElement(both, uint64_t(1))};
  }
  V halves = nullptr;
  switch (arch.ocpConversions) {
  case 1: {
    V both =
        b.CreateIntrinsic(Intrinsic::amdgcn_cvt_pk_f32_fp8, {}, {b.CreateZExt(packed, b.getInt32Ty()), b.getFalse()});
    halves = b.CreateFPTrunc(both, llvm::FixedVectorType::get(b.getHalfTy(), 2));
    break;
  }
  case 2:
    halves = b.CreateIntrinsic(
        Intrinsic::amdgcn_cvt_scalef32_pk_f16_fp8, {},
        {b.CreateZExt(packed, b.getInt32Ty()), llvm::ConstantFP::get(b.getFloatTy(), 1), b.getFalse()});
    break;
  default: halves = b.CreateIntrinsic(Intrinsic::amdgcn_cvt_pk_f16_fp8, {}, {packed}); break;
  }
  return {b.CreateExtractElement(halves, uint64_t(0)), b.CreateExtractElement(halves, uint64_t(1))};
}

} // namespace tessera::codegen
