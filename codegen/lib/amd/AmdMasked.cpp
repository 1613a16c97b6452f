// Code for global accesses, those under a mask above all, behind LLVM's middle end, when induction variables, ranges and uniformity are known.
//
//   address = uniform base + offset, 0 <= offset < 2^31:
//       buffer access at (mask ? offset : out of range); the hardware's range check drops what is out of range, and a
//       load gives zero there (CDNA3 ISA 9.1.5, RDNA3 ISA 9.1.7 "Range checking")
//   else:
//       branch around a plain access
//
// Plain accesses in loops become buffer accesses, too: what moves is then the base, in scalar registers.
//
// The offset is what is left of the address when all that is the same for the program is taken out of it. It is proven to be
// small from ranges; or believed where the kernel's argument says that its memory ends within 2^31 bytes.
#include "AmdMasked.h"
#include "AmdTargetInfo.h"

#include "../common/Analyses.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/UniformityAnalysis.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/AMDGPUAddrSpace.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

namespace tessera::codegen {

namespace Intrinsic = llvm::Intrinsic;

constexpr llvm::StringLiteral loadName = "tessera.load.", storeName = "tessera.store.";

namespace masked {

static llvm::Function *declare(llvm::IRBuilderBase &b, llvm::StringRef prefix, llvm::Type *data, llvm::Type *result,
                               llvm::ArrayRef<llvm::Type *> params, Reuse reuse) {
  llvm::Module &m = *b.GetInsertBlock()->getModule();
  bool isVolatile = reuse == Reuse::System, loads = !result->isVoidTy();
  std::string name = prefix.str() + (isVolatile ? "volatile." : "");
  llvm::raw_string_ostream(name) << *data;
  if (llvm::Function *known = m.getFunction(name))
    return known;
  auto *f = llvm::Function::Create(llvm::FunctionType::get(result, params, false), llvm::GlobalValue::ExternalLinkage,
                                   name, m);
  for (auto attribute : {llvm::Attribute::NoUnwind, llvm::Attribute::WillReturn, llvm::Attribute::NoCallback,
                         llvm::Attribute::NoFree, llvm::Attribute::NoSync})
    f->addFnAttr(attribute);
  f->setMemoryEffects(llvm::MemoryEffects::argMemOnly(isVolatile ? llvm::ModRefInfo::ModRef
                                                      : loads    ? llvm::ModRefInfo::Ref
                                                                 : llvm::ModRefInfo::Mod));
  return f;
}

llvm::Value *load(llvm::IRBuilderBase &b, llvm::Type *type, llvm::Value *pointer, llvm::Value *mask,
                  llvm::Value *otherwise, unsigned alignment, Reuse reuse) {
  llvm::Type *word = b.getInt32Ty();
  llvm::Function *f =
      declare(b, loadName, type, type, {pointer->getType(), mask->getType(), type, word, word}, reuse);
  return b.CreateCall(f, {pointer, mask, otherwise, b.getInt32(alignment), b.getInt32(unsigned(reuse))});
}

void store(llvm::IRBuilderBase &b, llvm::Value *value, llvm::Value *pointer, llvm::Value *mask, unsigned alignment,
           Reuse reuse) {
  llvm::Type *word = b.getInt32Ty();
  llvm::Function *f = declare(b, storeName, value->getType(), b.getVoidTy(),
                              {pointer->getType(), mask->getType(), value->getType(), word, word}, reuse);
  b.CreateCall(f, {pointer, mask, value, b.getInt32(alignment), b.getInt32(unsigned(reuse))});
}

} // namespace masked

namespace {

using masked::Reuse;

/// One of the calls above, or a plain load or store.
struct Access {
  llvm::Instruction *at;
  bool loads;
  llvm::CallInst *call() const { return llvm::dyn_cast<llvm::CallInst>(at); }
  V pointer() const { return call() ? call()->getArgOperand(0) : llvm::getLoadStorePointerOperand(at); }
  /// Where it is done; nullptr: everywhere.
  V mask() const {
    V mask = call() ? call()->getArgOperand(1) : nullptr;
    return llvm::isa_and_nonnull<llvm::Constant>(mask) ? nullptr : mask;
  }
  bool nowhere() const { // LLVM has found the mask to be false
    auto *mask = call() ? llvm::dyn_cast<llvm::Constant>(call()->getArgOperand(1)) : nullptr;
    return mask && !mask->isOneValue();
  }
  /// What is stored; of a masked load, what masked lanes get.
  V data() const { return call() ? call()->getArgOperand(2) : loads ? nullptr : at->getOperand(0); }
  llvm::Type *type() const { return loads ? at->getType() : data()->getType(); }
  unsigned alignment() const { return call() ? number(3) : llvm::getLoadStoreAlignment(at).value(); }
  Reuse reuse() const { return call() ? Reuse(number(4)) : Reuse::Normal; }
  unsigned bytes() const { return at->getModule()->getDataLayout().getTypeStoreSize(type()); }

private:
  uint64_t number(unsigned i) const { return llvm::cast<llvm::ConstantInt>(call()->getArgOperand(i))->getZExtValue(); }
};

/// What lies beyond every buffer. Immediate offsets added to it do not wrap.
constexpr uint64_t outOfRange = 0x80000000, bufferBytes = 0x7fffffff;

/// pointer = base + offset + constant: base is uniform, offset an i32 of the lane.
struct Split {
  const llvm::SCEV *base = nullptr, *offset = nullptr;
  uint64_t constant = 0;
  bool proven = true; ///< else the kernel's argument says so
};

class Addresses {
public:
  Addresses(llvm::ScalarEvolution &se, llvm::UniformityInfo &uniformity, const AmdArch &arch)
      : se(se), uniformity(uniformity), immediateBits(arch.generation >= 12 ? 22 : 12), wraps(!arch.is("gfx1250")) {}

  std::optional<Split> split(V pointer, unsigned bytes) {
    const llvm::SCEV *address = se.getSCEV(pointer);
    auto *root = llvm::dyn_cast<llvm::SCEVUnknown>(se.getPointerBase(address));
    if (!root || !uniformity.isUniform(root->getValue()))
      return std::nullopt;
    const llvm::SCEV *distance = se.removePointerBase(address);
    if (distance->getType() != index())
      return std::nullopt;
    auto [same, own] = take(distance);
    auto [constant, rest] = takeConstant(own);
    auto [more, sameRest] = takeConstant(same);
    if (constant + more < uint64_t(1) << immediateBits)
      constant += more, same = sameRest;
    if (isSmall(rest, constant, bytes))
      return Split{se.getAddExpr(root, same), se.getTruncateExpr(rest, word()), constant};
    auto *argument = llvm::dyn_cast<llvm::Argument>(root->getValue());
    if (!argument || !argument->hasAttribute("tessera.below-2g"))
      return std::nullopt;
    // All of the distance lies in [0, 2^31) wherever memory is touched, so its low bits are enough.
    std::tie(constant, rest) = wraps ? takeConstant(distance) : std::pair(uint64_t(0), distance);
    return Split{root, se.getTruncateExpr(rest, word()), constant, false};
  }

private:
  llvm::Type *index() const { return llvm::Type::getInt64Ty(se.getContext()); }
  llvm::Type *word() const { return llvm::Type::getInt32Ty(se.getContext()); }

  bool isUniform(const llvm::SCEV *s) {
    return !llvm::SCEVExprContains(s, [&](const llvm::SCEV *part) {
      auto *leaf = llvm::dyn_cast<llvm::SCEVUnknown>(part);
      return leaf && !uniformity.isUniform(leaf->getValue());
    });
  }

  /// s = (uniform part) + (the lane's).
  std::pair<const llvm::SCEV *, const llvm::SCEV *> take(const llvm::SCEV *s) {
    const llvm::SCEV *zero = se.getZero(s->getType());
    if (isUniform(s))
      return {s, zero};
    if (auto *sum = llvm::dyn_cast<llvm::SCEVAddExpr>(s)) {
      llvm::SmallVector<const llvm::SCEV *> same{zero}, own{zero};
      for (const llvm::SCEV *term : sum->operands()) {
        auto [u, n] = take(term);
        same.push_back(u);
        own.push_back(n);
      }
      return {se.getAddExpr(same), se.getAddExpr(own)};
    }
    if (auto *product = llvm::dyn_cast<llvm::SCEVMulExpr>(s); product && product->getNumOperands() == 2)
      if (auto *factor = llvm::dyn_cast<llvm::SCEVConstant>(product->getOperand(0))) {
        auto [u, n] = take(product->getOperand(1));
        return {se.getMulExpr(factor, u), se.getMulExpr(factor, n)};
      }
    if (auto *wide = llvm::dyn_cast<llvm::SCEVIntegralCastExpr>(s); wide && !llvm::isa<llvm::SCEVTruncateExpr>(s)) {
      bool isSigned = llvm::isa<llvm::SCEVSignExtendExpr>(s);
      auto extend = [&](const llvm::SCEV *part) {
        return isSigned ? se.getSignExtendExpr(part, s->getType()) : se.getZeroExtendExpr(part, s->getType());
      };
      if (auto [u, n] = take(wide->getOperand(0)); !u->isZero() && addsUp(u, n, isSigned))
        return {extend(u), extend(n)};
    }
    if (auto *moving = llvm::dyn_cast<llvm::SCEVAddRecExpr>(s); moving && moving->isAffine()) {
      const llvm::SCEV *step = moving->getStepRecurrence(se);
      if (isUniform(step)) {
        auto [u, n] = take(moving->getStart());
        return {se.getAddRecExpr(u, step, moving->getLoop(), llvm::SCEV::FlagAnyWrap), n};
      }
    }
    return {zero, s};
  }

  /// u + n does not wrap.
  bool addsUp(const llvm::SCEV *u, const llvm::SCEV *n, bool isSigned) {
    llvm::ConstantRange own = isSigned ? se.getSignedRange(n) : se.getUnsignedRange(n);
    // A multiple of a power of two, and what is less than that, like a program's first index and the lane's in its block.
    unsigned low = std::min<unsigned>(se.getMinTrailingZeros(u), own.getBitWidth() - 1);
    if (own.getUnsignedMax().ult(llvm::APInt::getOneBitSet(own.getBitWidth(), low)))
      return true;
    llvm::ConstantRange same = isSigned ? se.getSignedRange(u) : se.getUnsignedRange(u);
    using Overflow = llvm::ConstantRange::OverflowResult;
    return (isSigned ? same.signedAddMayOverflow(own) : same.unsignedAddMayOverflow(own)) == Overflow::NeverOverflows;
  }

  /// s = (a constant that the immediate of an access holds) + rest: neighbours share the rest.
  std::pair<uint64_t, const llvm::SCEV *> takeConstant(const llvm::SCEV *s) {
    auto *moving = llvm::dyn_cast<llvm::SCEVAddRecExpr>(s);
    if (moving && moving->isAffine()) {
      auto [constant, start] = takeConstant(moving->getStart());
      return {constant, se.getAddRecExpr(start, moving->getStepRecurrence(se), moving->getLoop(), llvm::SCEV::FlagAnyWrap)};
    }
    auto *sum = llvm::dyn_cast<llvm::SCEVAddExpr>(s);
    auto *number = llvm::dyn_cast<llvm::SCEVConstant>(sum ? sum->getOperand(0) : s);
    if (!number)
      return {0, s};
    uint64_t low = number->getAPInt().getLoBits(immediateBits).getZExtValue();
    return {low, se.getMinusSCEV(s, se.getConstant(s->getType(), low))};
  }

  bool isSmall(const llvm::SCEV *s, uint64_t constant, unsigned bytes) {
    return se.getSignedRangeMin(s).isNonNegative() &&
           se.getSignedRangeMax(s).ult(bufferBytes - bytes - constant);
  }

  llvm::ScalarEvolution &se;
  llvm::UniformityInfo &uniformity;
  unsigned immediateBits; ///< of an offset in the instruction, which is not negative
  bool wraps;             ///< the sum of offset and immediate has 32 bits, else more
};

/// Values as the words that buffer instructions move, and back.
struct Words {
  llvm::Type *type, *words;
  Words(llvm::IRBuilderBase &b, llvm::Type *type, unsigned bytes) : type(type) {
    words = b.getIntNTy(std::min(bytes, 4u) * 8);
    if (bytes > 4)
      words = llvm::FixedVectorType::get(words, bytes / 4);
  }
  llvm::Type *integers(llvm::IRBuilderBase &b) const { return type->getWithNewType(b.getInt64Ty()); }
  V to(llvm::IRBuilderBase &b, V v) const {
    return b.CreateBitCast(type->isPtrOrPtrVectorTy() ? b.CreatePtrToInt(v, integers(b)) : v, words);
  }
  V from(llvm::IRBuilderBase &b, V v) const {
    if (type->isPtrOrPtrVectorTy())
      return b.CreateIntToPtr(b.CreateBitCast(v, integers(b)), type);
    return b.CreateBitCast(v, type);
  }
};

void setReuse(llvm::Instruction *i, Reuse reuse, bool loads) {
  if (reuse == Reuse::Once || (reuse == Reuse::Device && loads))
    i->setMetadata(llvm::LLVMContext::MD_nontemporal,
                   llvm::MDNode::get(i->getContext(), llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(
                                                          llvm::Type::getInt32Ty(i->getContext()), 1))));
}

V bufferOf(llvm::IRBuilderBase &b, V base, const AmdArch &arch) {
  // Word 3 of the descriptor (CDNA3 ISA 9.1.8, RDNA3 ISA 9.1.6): a format that is not "invalid"; from RDNA on bit 24 is 1, and
  // bits 28-29 choose the check of raw buffers: offset against size. gfx1250 has neither, its sizes have 45 bits.
  unsigned flags = 7u << 12 | 4u << 15;
  if (arch.generation > 9)
    flags |= 1u << 24 | 3u << 28;
  if (arch.is("gfx1250"))
    flags = 0;
  llvm::Module &m = *b.GetInsertBlock()->getModule();
  llvm::Function *make = Intrinsic::getOrInsertDeclaration(
      &m, Intrinsic::amdgcn_make_buffer_rsrc, {b.getPtrTy(llvm::AMDGPUAS::BUFFER_RESOURCE), base->getType()});
  return b.CreateCall(make, {base, b.getInt16(0),
                             llvm::ConstantInt::get(make->getFunctionType()->getParamType(2), bufferBytes),
                             b.getInt32(flags)});
}

void replace(Access &a, V with) {
  if (with)
    a.at->replaceAllUsesWith(with);
  a.at->eraseFromParent();
}

void lowerToBuffer(Access &a, const Split &at, llvm::SCEVExpander &expander, const AmdArch &arch) {
  V base = expander.expandCodeFor(at.base, a.pointer()->getType(), a.at);
  V offset = expander.expandCodeFor(at.offset, llvm::Type::getInt32Ty(a.at->getContext()), a.at);
  llvm::IRBuilder<> b(a.at);
  if (a.mask())
    offset = b.CreateSelect(a.mask(), offset, b.getInt32(outOfRange));
  // What is only promised to be small in sum may wrap here, as the hardware's sum does.
  if (at.constant)
    offset = b.CreateAdd(offset, b.getInt32(at.constant), "", /*NUW=*/at.proven);
  V buffer = bufferOf(b, base, arch);
  Words words(b, a.type(), a.bytes());
  V zero = b.getInt32(0), bits = b.getInt32(a.reuse() == Reuse::System ? 1u << 31 : 0); // volatile; LLVM knows the bits
  if (!a.loads) {
    setReuse(b.CreateIntrinsic(b.getVoidTy(), Intrinsic::amdgcn_raw_ptr_buffer_store,
                               {words.to(b, a.data()), buffer, offset, zero, bits}),
             a.reuse(), false);
    return replace(a, nullptr);
  }
  llvm::CallInst *loaded =
      b.CreateIntrinsic(words.words, Intrinsic::amdgcn_raw_ptr_buffer_load, {buffer, offset, zero, bits});
  setReuse(loaded, a.reuse(), true);
  V value = words.from(b, loaded);
  auto *otherwise = a.mask() ? llvm::dyn_cast<llvm::Constant>(a.data()) : nullptr;
  if (a.mask() && !(otherwise && otherwise->isNullValue()))
    value = b.CreateSelect(a.mask(), value, a.data());
  replace(a, value);
}

/// A plain access from a base in scalar registers.
void rebase(Access &a, const Split &at, llvm::SCEVExpander &expander) {
  V base = expander.expandCodeFor(at.base, a.pointer()->getType(), a.at);
  V offset = expander.expandCodeFor(at.offset, llvm::Type::getInt32Ty(a.at->getContext()), a.at);
  llvm::IRBuilder<> b(a.at);
  V pointer = b.CreateGEP(b.getInt8Ty(), base, b.CreateZExt(offset, b.getInt64Ty()));
  if (at.constant)
    pointer = b.CreateGEP(b.getInt8Ty(), pointer, b.getInt64(at.constant));
  a.at->setOperand(a.loads ? 0 : 1, pointer);
}

void lowerToBranch(Access &a) {
  llvm::Instruction *at = a.at;
  V from = a.data();
  bool always = !a.mask();
  llvm::BasicBlock *before = at->getParent();
  if (!always)
    at = llvm::SplitBlockAndInsertIfThen(a.mask(), at, /*Unreachable=*/false);
  llvm::IRBuilder<> b(at);
  b.SetCurrentDebugLocation(a.at->getDebugLoc());
  bool isVolatile = a.reuse() == Reuse::System;
  if (!a.loads) {
    setReuse(b.CreateAlignedStore(from, a.pointer(), llvm::Align(a.alignment()), isVolatile), a.reuse(), false);
    return replace(a, nullptr);
  }
  llvm::LoadInst *loaded = b.CreateAlignedLoad(a.type(), a.pointer(), llvm::Align(a.alignment()), isVolatile);
  setReuse(loaded, a.reuse(), true);
  if (always)
    return replace(a, loaded);
  b.SetInsertPoint(a.at->getParent(), a.at->getParent()->begin());
  llvm::PHINode *value = b.CreatePHI(a.type(), 2);
  value->addIncoming(loaded, loaded->getParent());
  value->addIncoming(from, before);
  replace(a, value);
}

void eraseUnused(const llvm::SmallPtrSetImpl<llvm::Function *> &callees) {
  for (llvm::Function *callee : callees)
    if (callee->use_empty())
      callee->eraseFromParent();
}

} // namespace

void lowerMaskedAccesses(llvm::Function &f, llvm::TargetMachine &tm, const AmdArch &arch) {
  llvm::SmallVector<Access> accesses;
  llvm::SmallPtrSet<llvm::Function *, 4> callees;
  for (llvm::Instruction &i : llvm::instructions(f)) {
    if (auto *call = llvm::dyn_cast<llvm::CallInst>(&i)) {
      llvm::Function *callee = call->getCalledFunction();
      bool loads = callee && callee->getName().starts_with(loadName);
      if (!loads && !(callee && callee->getName().starts_with(storeName)))
        continue;
      accesses.push_back({call, loads});
      callees.insert(callee);
    } else if (V pointer = llvm::getLoadStorePointerOperand(&i);
               pointer && pointer->getType()->getPointerAddressSpace() == llvm::AMDGPUAS::GLOBAL_ADDRESS &&
               !i.isVolatile() && !i.isAtomic()) {
      accesses.push_back({&i, llvm::isa<llvm::LoadInst>(i)});
    }
  }
  llvm::erase_if(accesses, [](Access &a) {
    bool nowhere = a.nowhere();
    if (nowhere)
      replace(a, a.loads ? a.data() : nullptr);
    return nowhere;
  });
  if (accesses.empty())
    return eraseUnused(callees);

  Analyses analyses(tm);
  llvm::FunctionAnalysisManager &functions = analyses.functions;

  auto &se = functions.getResult<llvm::ScalarEvolutionAnalysis>(f);
  auto &uniformity = functions.getResult<llvm::UniformityInfoAnalysis>(f);
  auto &loopInfo = functions.getResult<llvm::LoopAnalysis>(f);
  Addresses addresses(se, uniformity, arch);
  llvm::SmallVector<std::optional<Split>> splits;
  for (Access &a : accesses) {
    bool fits = llvm::isPowerOf2_32(a.bytes()) && a.bytes() <= 16 && a.alignment() >= std::min(a.bytes(), 4u) &&
                (a.call() || !uniformity.isUniform(a.pointer()));
    splits.push_back(fits ? addresses.split(a.pointer(), a.bytes()) : std::nullopt);
  }
  llvm::SmallVector<llvm::WeakTrackingVH> pointers;
  {
    llvm::SCEVExpander expander(se, "at");
    for (auto [a, at] : llvm::zip_equal(accesses, splits)) {
      pointers.emplace_back(a.pointer());
      bool safe = at && expander.isSafeToExpand(at->base) && expander.isSafeToExpand(at->offset);
      // LLVM would make an immediate of any constant in a sum, unless a selection hides it.
      if (!safe || (!at->proven && !a.mask() && arch.is("gfx1250")))
        at.reset();
      else if (!a.call() && at->proven && !loopInfo.getLoopFor(a.at->getParent()))
        rebase(a, *at, expander);
      else // also in loops, where other passes would make one address of base and offset again
        lowerToBuffer(a, *at, expander, arch);
    }
  }
  for (auto [a, at] : llvm::zip_equal(accesses, splits))
    if (!at && a.call())
      lowerToBranch(a);
  llvm::RecursivelyDeleteTriviallyDeadInstructionsPermissive(pointers);
  for (llvm::BasicBlock &block : f)
    llvm::DeleteDeadPHIs(&block);
  functions.invalidate(f, llvm::PreservedAnalyses::none());
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass());
  passes.run(f, functions);
  eraseUnused(callees);
}

} // namespace tessera::codegen
