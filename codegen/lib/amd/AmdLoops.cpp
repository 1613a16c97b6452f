// Index arithmetic of what follows a loop is done behind it, not before: carried through, it would take registers in the
// loop, where they are scarce. LLVM has merged it with that of what precedes the loop, and sinks no shared computation.
#include "AmdTargetInfo.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/UniformityAnalysis.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/Passes/PassBuilder.h"

namespace tessera::codegen {

namespace {

namespace Intrinsic = llvm::Intrinsic;

/// More than this is not done twice.
constexpr unsigned maxInstructions = 24;

bool isThreadId(const llvm::Value *v) {
  auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(v);
  return call && call->getIntrinsicID() == Intrinsic::amdgcn_workitem_id_x;
}

class BehindLoops {
public:
  BehindLoops(llvm::Function &f, llvm::FunctionAnalysisManager &analyses)
      : f(f), loops(analyses.getResult<llvm::LoopAnalysis>(f)),
        dominators(analyses.getResult<llvm::DominatorTreeAnalysis>(f)),
        uniformity(analyses.getResult<llvm::UniformityInfoAnalysis>(f)) {}

  void run() {
    for (llvm::Loop *loop : loops.getLoopsInPreorder())
      if (loop->isInnermost() && multiplies(*loop))
        run(*loop);
  }

private:
  /// Accumulators fill the registers of such a loop; others have enough.
  static bool multiplies(const llvm::Loop &loop) {
    return llvm::any_of(loop.blocks(), [](llvm::BasicBlock *block) {
      return llvm::any_of(*block, [](llvm::Instruction &i) {
        auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
        llvm::StringRef name = call ? call->getCalledFunction()->getName() : "";
        return name.starts_with("llvm.amdgcn.mfma") || name.starts_with("llvm.amdgcn.wmma");
      });
    });
  }

  /// The block where `use` needs its value.
  static llvm::BasicBlock *placeOf(const llvm::Use &use) {
    auto *user = llvm::cast<llvm::Instruction>(use.getUser());
    auto *phi = llvm::dyn_cast<llvm::PHINode>(user);
    return phi ? phi->getIncomingBlock(use) : user->getParent();
  }

  void run(llvm::Loop &loop) {
    llvm::BasicBlock *header = loop.getHeader();
    auto before = [&](const llvm::BasicBlock *block) { return !loop.contains(block) && dominators.dominates(block, header); };
    // A register of a lane that lives through the loop without being used in it.
    llvm::SmallVector<llvm::Use *> uses;
    for (llvm::Instruction &i : llvm::instructions(f)) {
      if (!before(i.getParent()) || usedIn(i, loop) || !cost(i, loop))
        continue;
      for (llvm::Use &use : i.uses())
        if (llvm::BasicBlock *place = placeOf(use); !before(place) && !loop.contains(place))
          uses.push_back(&use);
    }
    for (llvm::Use *use : uses) {
      llvm::BasicBlock *place = placeOf(*use);
      for (llvm::Loop *next = loops.getLoopFor(place); place && next && !next->contains(&loop); next = next->getParentLoop())
        place = next->getLoopPreheader(); // most loops have one
      if (!place)
        continue;
      Done &there = done.try_emplace(place).first->second;
      if (!there.at)
        there.at = &*place->getFirstInsertionPt();
      use->set(copy(use->get(), loop, there));
    }
    done.clear(); // another loop may use what this one does not
  }

  static bool usedIn(const llvm::Instruction &i, const llvm::Loop &loop) {
    return llvm::any_of(i.uses(), [&](const llvm::Use &use) { return loop.contains(placeOf(use)); });
  }

  /// What is there behind the loop without a register of a lane, or is in one for the loop's sake.
  bool isFree(llvm::Value *v, const llvm::Loop &loop) {
    auto *i = llvm::dyn_cast<llvm::Instruction>(v);
    return !i || v->getType()->isIntegerTy(1) || uniformity.isUniform(v) || (!isThreadId(i) && usedIn(*i, loop));
  }

  /// Instructions that it takes to compute `i` again from the thread's id and what is free; nothing where that cannot be.
  std::optional<unsigned> cost(llvm::Instruction &i, const llvm::Loop &loop) {
    llvm::SetVector<llvm::Instruction *> all;
    if (isFree(&i, loop) || isThreadId(&i))
      return std::nullopt;
    all.insert(&i);
    for (unsigned k = 0; k < all.size(); ++k) {
      llvm::Instruction *now = all[k];
      bool simple = llvm::isa<llvm::CastInst>(now) || llvm::isa<llvm::FreezeInst>(now) ||
                    (llvm::isa<llvm::BinaryOperator>(now) && !now->isIntDivRem());
      if (!simple || !now->getType()->isIntegerTy() || all.size() > maxInstructions)
        return std::nullopt;
      for (llvm::Value *operand : now->operands())
        if (!isFree(operand, loop) && !isThreadId(operand))
          all.insert(llvm::cast<llvm::Instruction>(operand));
    }
    return all.size();
  }

  /// What was computed again in a block, before its instruction `at`.
  struct Done {
    llvm::Instruction *at = nullptr;
    llvm::DenseMap<llvm::Value *, llvm::Value *> copies;
  };

  llvm::Value *copy(llvm::Value *v, const llvm::Loop &loop, Done &there) {
    if (isFree(v, loop))
      return v;
    if (llvm::Value *known = there.copies.lookup(v))
      return known;
    auto *i = llvm::cast<llvm::Instruction>(v);
    llvm::Instruction *made;
    if (isThreadId(i)) { // in disguise, lest it be merged again
      llvm::Type *type = i->getType();
      auto *same = llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "", "=v,0", /*hasSideEffects=*/false);
      made = llvm::CallInst::Create(same, {i}, "", there.at->getIterator());
    } else {
      llvm::SmallVector<llvm::Value *> operands;
      for (llvm::Value *operand : i->operands())
        operands.push_back(copy(operand, loop, there));
      made = i->clone();
      made->insertBefore(there.at->getIterator());
      for (auto [k, operand] : llvm::enumerate(operands))
        made->setOperand(k, operand);
    }
    return there.copies[v] = made;
  }

  llvm::Function &f;
  llvm::LoopInfo &loops;
  llvm::DominatorTree &dominators;
  llvm::UniformityInfo &uniformity;
  llvm::DenseMap<llvm::BasicBlock *, Done> done;
};

} // namespace

void recomputeBehindLoops(llvm::Function &f, llvm::FunctionAnalysisManager &analyses) { BehindLoops(f, analyses).run(); }

} // namespace tessera::codegen
