// MFMA, WMMA, and copies from global memory to LDS.
#include "AmdInstructions.h"
#include "AmdTargetInfo.h"

#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/PatternMatch.h"

namespace tessera::codegen {

using namespace llvm;

MatrixFeatures AmdTargetInfo::matrixFeatures() const {
  if (!arch.is("gfx950")) // others copy 4 bytes a lane at most, which is not worth it
    return {};
  return {.minAsyncCopyBytes = 4, .copiesInLaneOrder = true, .loadTransposed = true};
}

SmallVector<V> AmdTargetInfo::loadTransposed(B &b, V rowOffset, ArrayRef<V>) {
  CallInst *load = b.CreateIntrinsic(Intrinsic::amdgcn_ds_read_tr16_b64, {FixedVectorType::get(b.getInt16Ty(), 4)},
                                     {sharedPointer(b, rowOffset)});
  markNoCopy(load);
  V words = b.CreateBitCast(load, FixedVectorType::get(b.getInt32Ty(), 2));
  return {b.CreateExtractElement(words, uint64_t(0)), b.CreateExtractElement(words, 1)};
}

// ---- matrix instructions -------------------------------------------------------------------------------------------

static V vectorOf(IRBuilderBase &b, ArrayRef<V> values) {
  if (values.size() == 1)
    return values.front();
  V vector = PoisonValue::get(FixedVectorType::get(values.front()->getType(), values.size()));
  for (auto [i, v] : enumerate(values))
    vector = b.CreateInsertElement(vector, v, i);
  return vector;
}

/// The type in which an intrinsic wants the words of an operand.
static Type *operandType(IRBuilderBase &b, const AmdInstruction &i, MatrixType type, unsigned words) {
  auto vector = [&](Type *element, unsigned count) { return FixedVectorType::get(element, count); };
  bool brainAsInteger = i.intrinsic != Intrinsic::amdgcn_mfma_f32_16x16x32_bf16 &&
                        i.intrinsic != Intrinsic::amdgcn_mfma_f32_32x32x16_bf16 && i.form != AmdForm::WmmaMods;
  switch (type) {
  case MatrixType::F16: return vector(b.getHalfTy(), 2 * words);
  case MatrixType::BF16: return vector(brainAsInteger ? b.getInt16Ty() : b.getBFloatTy(), 2 * words);
  case MatrixType::F32:
  case MatrixType::TF32: return words == 1 ? b.getFloatTy() : static_cast<Type *>(vector(b.getFloatTy(), words));
  case MatrixType::F64: return b.getDoubleTy();
  default: // bytes
    if (words == 1)
      return b.getInt32Ty();
    return words == 2 && i.form == AmdForm::Mfma ? b.getInt64Ty() : static_cast<Type *>(vector(b.getInt32Ty(), words));
  }
}

SmallVector<V> AmdTargetInfo::mma(B &b, const MmaShape &shape, ArrayRef<V> a, ArrayRef<V> bb, ArrayRef<V> c) {
  std::optional<AmdInstruction> i = findAmdInstruction(shape);
  if (!i || amdMatrixVersion(arch.name) != std::pair(shape.instruction.family, shape.instruction.version))
    return {};
  multiplies = true;
  V x = b.CreateBitCast(vectorOf(b, a), operandType(b, *i, shape.a, a.size()));
  V y = b.CreateBitCast(vectorOf(b, bb), operandType(b, *i, shape.b, bb.size()));
  V sums = vectorOf(b, c), no = b.getFalse(), zero = b.getInt32(0);
  auto format = [&](MatrixType type) { return b.getInt32(type == MatrixType::E5M2); };
  Type *types[] = {sums->getType(), x->getType()}, *operandTypes[] = {x->getType(), y->getType()};
  switch (i->form) {
  case AmdForm::Mfma: sums = b.CreateIntrinsic(i->intrinsic, {}, {x, y, sums, zero, zero, zero}); break;
  case AmdForm::MfmaScaled: // scales that are zero mean that there are none
    sums = b.CreateIntrinsic(i->intrinsic, operandTypes,
                             {x, y, sums, format(shape.a), format(shape.b), zero, zero, zero, zero});
    break;
  case AmdForm::Wmma: sums = b.CreateIntrinsic(i->intrinsic, types, {x, y, sums}); break;
  case AmdForm::WmmaInt:
    sums = b.CreateIntrinsic(i->intrinsic, types, {b.getTrue(), x, b.getTrue(), y, sums, no});
    break;
  case AmdForm::WmmaMods:
    sums = b.CreateIntrinsic(i->intrinsic, types, {no, x, no, y, b.getInt16(0), sums, no, no});
    break;
  case AmdForm::WmmaModsC: sums = b.CreateIntrinsic(i->intrinsic, types, {x, y, b.getInt16(0), sums, no, no}); break;
  case AmdForm::WmmaModsInt:
    sums = b.CreateIntrinsic(i->intrinsic, types, {b.getTrue(), x, b.getTrue(), y, sums, no, no, no});
    break;
  }
  SmallVector<V> result;
  for (unsigned r = 0; r < c.size(); ++r)
    result.push_back(b.CreateExtractElement(sums, r));
  return result;
}

// ---- copies to LDS -------------------------------------------------------------------------------------------------
// LLVM waits for all of them before whatever may read their bytes; that other accesses of LDS do not is said by scopes,
// and our own waits see to it.

static MDNode *copyScope(LLVMContext &context) {
  MDBuilder md(context);
  MDNode *domain = md.createAliasScopeDomain("tessera.copies");
  return MDNode::get(context, md.createAliasScope("tessera.copies", domain));
}

void AmdTargetInfo::markNoCopy(Instruction *access) {
  if (!matrixFeatures().minAsyncCopyBytes)
    return;
  if (!scopeOfCopies)
    scopeOfCopies = copyScope(access->getContext());
  access->setMetadata(LLVMContext::MD_noalias, scopeOfCopies);
}

void AmdTargetInfo::asyncCopy(B &b, unsigned bytes, V sharedOffset, V globalPtr, V active, V pred,
                              const AccessHints &hints, ArrayRef<V>) {
  // The destination is that of the warp's first lane. What is added last stays behind it.
  V moving = sharedOffset, fixed = nullptr;
  if (PatternMatch::match(sharedOffset, PatternMatch::m_Add(PatternMatch::m_Value(moving), PatternMatch::m_Constant())))
    fixed = cast<User>(sharedOffset)->getOperand(1);
  else
    moving = sharedOffset;
  V start = firstLane(b, moving);
  if (fixed)
    start = b.CreateAdd(start, fixed);
  // Every copy must be issued, or the wait would count others in its place: lanes that are to get zeros copy them.
  // Warps that are not active have the same to copy as one that is.
  if (pred) {
    Module &m = *b.GetInsertBlock()->getModule();
    auto *type = ArrayType::get(b.getInt8Ty(), 16);
    GlobalVariable *zeros = m.getGlobalVariable("tessera.zeros", true);
    if (!zeros) {
      zeros = new GlobalVariable(m, type, true, GlobalValue::InternalLinkage, ConstantAggregateZero::get(type),
                                 "tessera.zeros", nullptr, GlobalValue::NotThreadLocal, globalAddressSpace());
      zeros->setAlignment(Align(16));
    }
    globalPtr = b.CreateSelect(pred, globalPtr, zeros);
  }
  (void)active;
  unsigned policy = hints.isVolatile ? 1u << 31 : hints.evict == EvictionPolicy::EvictFirst ? 2 : 0; // nt
  CallInst *call =
      b.CreateIntrinsic(Intrinsic::amdgcn_global_load_lds, {},
                        {globalPtr, sharedPointer(b, start), b.getInt32(bytes), b.getInt32(0), b.getInt32(policy)});
  if (!scopeOfCopies)
    scopeOfCopies = copyScope(b.getContext());
  call->setMetadata(LLVMContext::MD_alias_scope, scopeOfCopies);
  copies.copy(b.GetInsertBlock());
}

void AmdTargetInfo::asyncCommit(B &b) { copies.commit(b.GetInsertBlock()); }

/// The operand of s_waitcnt of generation 9: vmcnt in bits 3:0 and 15:14, expcnt in 6:4, lgkmcnt in 11:8; all bits:
/// any.
static unsigned encodeWait(unsigned vmcnt, unsigned lgkmcnt) {
  vmcnt = std::min(vmcnt, 63u);
  return (vmcnt & 15) | (vmcnt >> 4) << 14 | 7 << 4 | lgkmcnt << 8;
}
constexpr unsigned any = 15; ///< lgkmcnt

void AmdTargetInfo::barrierAmongCopies(B &b) {
  // The fences are for the compiler; what the wavefront has done to LDS is waited for here.
  b.CreateFence(AtomicOrdering::Release, SyncScope::SingleThread);
  b.CreateIntrinsic(Intrinsic::amdgcn_s_waitcnt, {}, {b.getInt32(encodeWait(63, 0))});
  b.CreateIntrinsic(Intrinsic::amdgcn_s_barrier, {});
  b.CreateFence(AtomicOrdering::Acquire, SyncScope::SingleThread);
}

void AmdTargetInfo::asyncWait(B &b, unsigned pending) {
  if (matrixFeatures().minAsyncCopyBytes)
    copies.wait(b.CreateIntrinsic(Intrinsic::amdgcn_s_waitcnt, {}, {b.getInt32(encodeWait(0, any))}), pending);
}

void AmdTargetInfo::finishCopies() {
  copies.finish([](CallInst *call, unsigned pending) {
    call->setArgOperand(0, ConstantInt::get(Type::getInt32Ty(call->getContext()), encodeWait(pending, any)));
  });
}

} // namespace tessera::codegen
