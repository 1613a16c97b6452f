// Addresses of asynchronous copies in loops: where each began plus one counter for all that move alike, which is what
// an access computes anyway. LLVM's loop strength reduction would keep a counter for each, or sums of two; ptxas copies
// pointers that a loop carries to other registers first, because a copy reads its address late.
//
//   for: p = phi [start], [p + step]          for: n = phi [0], [opaque(n + step)]
//        copy(p)                       ->          copy(start + n)
//
// Addresses at constant distances share one.
#include "CopyLoops.h"
#include "FastDivision.h"
#include "FetchAhead.h"
#include "LaterPrograms.h"
#include "WholeTiles.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

namespace tessera::codegen {

namespace {

/// A moving address, and the uses of it and of those a constant further.
struct Moving {
  const llvm::SCEVAddRecExpr *address;
  llvm::SmallVector<std::pair<llvm::Use *, int64_t>> uses;
};

void keepPointers(llvm::Loop &loop, llvm::ScalarEvolution &se, llvm::SmallVectorImpl<llvm::WeakTrackingVH> &dead) {
  llvm::BasicBlock *preheader = loop.getLoopPreheader(), *latch = loop.getLoopLatch(), *header = loop.getHeader();
  if (!preheader || !latch)
    return;
  llvm::SmallVector<Moving> all;
  for (llvm::BasicBlock *block : loop.blocks())
    for (llvm::Instruction &i : *block) {
      if (!isCopy(i))
        continue;
      for (llvm::Use &use : llvm::cast<llvm::CallInst>(i).args()) {
        auto *pointer = llvm::dyn_cast<llvm::PointerType>(use->getType());
        auto *address = pointer && pointer->getAddressSpace() == 1
                            ? llvm::dyn_cast<llvm::SCEVAddRecExpr>(se.getSCEV(use))
                            : nullptr;
        if (!address || address->getLoop() != &loop || !address->isAffine())
          continue;
        bool shared = false;
        for (Moving &one : all)
          if (one.address->getStepRecurrence(se) == address->getStepRecurrence(se))
            if (auto distance = se.computeConstantDifference(address, one.address)) {
              one.uses.emplace_back(&use, distance->getSExtValue());
              shared = true;
              break;
            }
        if (!shared)
          all.push_back({address, {{&use, 0}}});
      }
    }
  llvm::SCEVExpander expander(se, "copy");
  llvm::Instruction *end = preheader->getTerminator();
  llvm::IRBuilder<> b(end);
  llvm::DenseMap<const llvm::SCEV *, llvm::PHINode *> counters;
  for (Moving &one : all) {
    const llvm::SCEV *start = one.address->getStart(), *step = one.address->getStepRecurrence(se);
    if (!expander.isSafeToExpandAt(start, end) || !expander.isSafeToExpandAt(step, end))
      continue;
    V first = expander.expandCodeFor(start, one.uses.front().first->get()->getType(), end);
    llvm::PHINode *&counter = counters[step];
    if (!counter) {
      llvm::IntegerType *type = b.getInt64Ty();
      V by = expander.expandCodeFor(step, type, end);
      b.SetInsertPoint(header, header->begin());
      counter = b.CreatePHI(type, 2, "moved");
      b.SetInsertPoint(latch->getTerminator());
      auto *same = llvm::FunctionType::get(type, {type}, false);
      llvm::CallInst *next = b.CreateCall(same, llvm::InlineAsm::get(same, "", "=l,0", /*hasSideEffects=*/false),
                                          {b.CreateAdd(counter, by)});
      next->setDoesNotAccessMemory();
      next->setDoesNotThrow();
      counter->addIncoming(b.getInt64(0), preheader);
      counter->addIncoming(next, latch);
    }
    b.SetInsertPoint(header, header->getFirstInsertionPt());
    V address = b.CreateGEP(b.getInt8Ty(), first, counter);
    for (auto [use, distance] : one.uses) {
      b.SetInsertPoint(llvm::cast<llvm::Instruction>(use->getUser()));
      dead.emplace_back(use->get());
      use->set(distance ? b.CreateGEP(b.getInt8Ty(), address, b.getInt64(distance)) : address);
    }
  }
}

} // namespace

void NvidiaTargetInfo::finishModule(llvm::Module &m, llvm::TargetMachine &tm) const {
  llvm::TargetLibraryInfoImpl libraryFacts(m.getTargetTriple());
  for (llvm::Function &f : m) {
    bool copies = false;
    for (llvm::BasicBlock &block : f)
      copies |= llvm::any_of(block, isCopy);
    if (!copies) {
      addWholeVersion(f);
      if (facts.capability >= 90 && facts.ptx >= 80) // cp.async.bulk
        fetchForLaterPrograms(f);
      continue;
    }
    llvm::SmallVector<llvm::WeakTrackingVH> dead;
    llvm::TargetLibraryInfo library(libraryFacts);
    llvm::AssumptionCache assumptions(f);
    llvm::DominatorTree dominators(f);
    llvm::LoopInfo loops(dominators);
    const llvm::TargetTransformInfo costs = tm.getTargetTransformInfo(f);
    for (llvm::Loop *loop : loops.getLoopsInPreorder())
      testAtEnd(*loop, loops, dominators, assumptions, costs);
    llvm::ScalarEvolution se(f, library, assumptions, dominators, loops);
    for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
      fetchAhead(*loop, loops, dominators, se);
      keepPointers(*loop, se, dead);
    }
    llvm::RecursivelyDeleteTriviallyDeadInstructionsPermissive(dead);
    for (llvm::BasicBlock &block : f)
      llvm::DeleteDeadPHIs(&block);
    splitLoops(f);
    shortenDivisions(f);
  }
}

} // namespace tessera::codegen
