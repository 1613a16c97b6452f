#include "WholeTiles.h"

#include "CopyLoops.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Support/KnownBits.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"

namespace tessera::codegen {

namespace {

/// Instructions that a kernel with two versions may have in one: `ptxas` takes twice as long.
constexpr unsigned kMostInstructions = 2048;
/// No tile has more columns: larger bounds are of positions in the whole array.
constexpr uint64_t kMostColumns = 1 << 17;

bool dependsOnThread(V v, unsigned depth = 0) {
  auto *i = llvm::dyn_cast<llvm::Instruction>(v);
  if (!i || depth > 8)
    return false;
  if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(i))
    return call->getIntrinsicID() == llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x;
  return llvm::isa<llvm::BinaryOperator, llvm::CastInst>(i) &&
         llvm::any_of(i->operands(), [&](V operand) { return dependsOnThread(operand, depth + 1); });
}

/// Comparisons of positions in a tile with an argument, which hold in all lanes from `bound` on.
struct Masks {
  uint64_t bound = 0;
  llvm::SmallVector<llvm::ICmpInst *> comparisons;
};

bool isMemoryAccess(const llvm::User *user) {
  auto *i = llvm::dyn_cast<llvm::Instruction>(user);
  return i && (isAssembly(*i, "ld.global") || isAssembly(*i, "st.global"));
}

llvm::MapVector<llvm::Argument *, Masks> masksOf(llvm::Function &f) {
  llvm::MapVector<llvm::Argument *, Masks> masks;
  bool guardMemory = false;
  for (llvm::Instruction &i : llvm::instructions(f)) {
    auto *compare = llvm::dyn_cast<llvm::ICmpInst>(&i);
    if (!compare)
      continue;
    V position = compare->getOperand(0), length = compare->getOperand(1);
    llvm::CmpInst::Predicate predicate = compare->getPredicate();
    if (llvm::isa<llvm::Argument>(position)) {
      std::swap(position, length);
      predicate = compare->getSwappedPredicate();
    }
    auto *argument = llvm::dyn_cast<llvm::Argument>(length);
    if (!argument || predicate != llvm::CmpInst::ICMP_SLT || !dependsOnThread(position))
      continue;
    const llvm::KnownBits known = llvm::computeKnownBits(position, f.getDataLayout());
    if (!known.isNonNegative() || known.getMaxValue().uge(kMostColumns))
      continue;
    Masks &those = masks[argument];
    those.bound = std::max(those.bound, known.getMaxValue().getZExtValue() + 1);
    those.comparisons.push_back(compare);
    guardMemory |= llvm::any_of(compare->users(), isMemoryAccess);
  }
  if (!guardMemory)
    masks.clear();
  return masks;
}

} // namespace

void addWholeVersion(llvm::Function &f) {
  if (f.getCallingConv() != llvm::CallingConv::PTX_Kernel || f.getInstructionCount() > kMostInstructions)
    return;
  for (const llvm::Instruction &i : llvm::instructions(f))
    if (llvm::isa<llvm::AllocaInst>(i) || isAssembly(i, "mma") || isCopy(i))
      return;
  auto masks = masksOf(f);
  if (masks.empty())
    return;

  llvm::SmallVector<llvm::BasicBlock *> blocks, clones;
  for (llvm::BasicBlock &block : f)
    blocks.push_back(&block);
  llvm::ValueToValueMapTy map;
  for (llvm::BasicBlock *block : blocks) {
    clones.push_back(llvm::CloneBasicBlock(block, map, ".whole", &f));
    map[block] = clones.back();
  }
  llvm::remapInstructionsInBlocks(clones, map);

  llvm::IRBuilder<> b(llvm::BasicBlock::Create(f.getContext(), "start", &f, blocks.front()));
  V part = b.getFalse();
  for (auto &[argument, those] : masks) {
    part = b.CreateOr(part, b.CreateICmpSLT(argument, llvm::ConstantInt::get(argument->getType(), those.bound)));
    for (llvm::ICmpInst *comparison : those.comparisons)
      llvm::cast<llvm::ICmpInst>(map.lookup(comparison))->replaceAllUsesWith(b.getTrue());
  }
  // The one that large rows take stands next, and is not jumped to.
  for (llvm::BasicBlock *clone : clones)
    clone->moveBefore(blocks.front());
  b.CreateCondBr(part, blocks.front(), clones.front(), llvm::MDBuilder(f.getContext()).createUnlikelyBranchWeights());
  f.addFnAttr(kTwoVersions);
  for (llvm::BasicBlock *clone : clones)
    llvm::SimplifyInstructionsInBlock(clone);
}

} // namespace tessera::codegen
