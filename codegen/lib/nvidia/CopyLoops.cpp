#include "CopyLoops.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/InstructionSimplify.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LoopRotationUtils.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

namespace tessera::codegen {

bool isAssembly(const llvm::Instruction &i, llvm::StringRef name) {
  auto *call = llvm::dyn_cast<llvm::CallInst>(&i);
  auto *assembly = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
  return assembly && llvm::StringRef(assembly->getAsmString()).contains(name);
}

unsigned operandsOfCopies(const llvm::BasicBlock &block) {
  unsigned most = 0;
  for (const llvm::Instruction &i : block)
    if (isCopy(i))
      most = std::max<unsigned>(most, llvm::cast<llvm::CallInst>(i).arg_size());
  return most;
}

unsigned cyclesOfProducts(const llvm::Loop &loop) {
  unsigned columns = 0;
  for (const llvm::BasicBlock *block : loop.blocks())
    for (const llvm::Instruction &i : *block) {
      if (!isAssembly(i, "wgmma.mma_async"))
        continue;
      llvm::StringRef text = llvm::cast<llvm::InlineAsm>(llvm::cast<llvm::CallInst>(i).getCalledOperand())->getAsmString();
      for (unsigned n = 0; !(text = text.split("wgmma.mma_async.sync.aligned.m64n").second).empty(); columns += n)
        text.consumeInteger(10, n);
    }
  const auto threads = loop.getHeader()->getParent()->getFnAttributeAsParsedInteger("nvvm.reqntid", 128);
  return columns / 2 * unsigned(threads / 128);
}

namespace {

/// From here on (128 x 256 x 64 of f16) the branch costs nothing, and a second loop doubles the time in ptxas.
constexpr unsigned kLongTrip = 1024;

/// Whether the loop copies and multiplies, by warp groups, and does little else: where operands are loaded or stored by
/// other instructions, or more is computed, that takes longer than a branch, and registers that a second loop has not.
bool multipliesOnly(const llvm::Loop &loop) {
  constexpr unsigned kMost = 180, kMostCarried = 200; // 64 x 256 x 64 by 4 warps: 174 and 151; masks on m and n: 201
  bool products = false;
  unsigned size = 0;
  if (llvm::range_size(loop.getHeader()->phis()) > kMostCarried)
    return false;
  for (const llvm::BasicBlock *block : loop.blocks())
    for (const llvm::Instruction &i : *block) {
      products |= isAssembly(i, "wgmma.mma_async");
      size += !llvm::isa<llvm::PHINode, llvm::ExtractValueInst>(i);
      auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
      if (llvm::isa<llvm::LoadInst, llvm::StoreInst>(i) ||
          (call && call->getCalledFunction()->getName().contains("matrix")))
        return false;
    }
  return products && size <= kMost;
}

/// A condition of a loop as of any trip: what it is computed from, in order.
struct Condition {
  V value;
  llvm::SmallVector<llvm::Instruction *> from;

  /// Nothing if not cheaply known where a trip begins.
  static std::optional<Condition> of(V value, const llvm::Loop &loop) {
    Condition c{value, {}};
    llvm::SmallPtrSet<V, 8> seen;
    auto collect = [&](auto &self, V v) -> bool {
      auto *i = llvm::dyn_cast<llvm::Instruction>(v);
      if (!i || !loop.contains(i) || !seen.insert(i).second)
        return true;
      if (llvm::isa<llvm::PHINode>(i))
        return i->getParent() == loop.getHeader();
      if (!llvm::isa<llvm::BinaryOperator, llvm::CmpInst, llvm::CastInst, llvm::SelectInst>(i) ||
          !llvm::isSafeToSpeculativelyExecute(i) || seen.size() > 32 ||
          !llvm::all_of(i->operands(), [&](V operand) { return self(self, operand); }))
        return false;
      c.from.push_back(i);
      return true;
    };
    return collect(collect, value) ? std::optional(c) : std::nullopt;
  }
  /// Where the loop is entered from `edge`.
  V at(llvm::IRBuilder<> &b, const llvm::BasicBlock *header, llvm::BasicBlock *edge) const {
    llvm::ValueToValueMapTy map;
    for (const llvm::PHINode &phi : header->phis())
      map[&phi] = phi.getIncomingValueForBlock(edge);
    for (llvm::Instruction *i : from) {
      llvm::Instruction *copy = b.Insert(i->clone());
      copy->dropPoisonGeneratingFlags(); // behind the last trip, what is said of the next need not hold
      llvm::RemapInstruction(copy, map, llvm::RF_NoModuleLevelChanges | llvm::RF_IgnoreMissingLocals);
      map[i] = copy;
    }
    V there = map.lookup(value);
    return there ? there : value;
  }
};

bool split(llvm::Loop &loop, llvm::LoopInfo &loops, llvm::DominatorTree &dominators) {
  llvm::BasicBlock *preheader = loop.getLoopPreheader(), *latch = loop.getLoopLatch(), *header = loop.getHeader();
  llvm::BasicBlock *exit = loop.getExitBlock();
  if (!preheader || !latch || loop.getExitingBlock() != latch || !exit || !multipliesOnly(loop) ||
      cyclesOfProducts(loop) >= kLongTrip)
    return false;
  auto *end = llvm::cast<llvm::BranchInst>(latch->getTerminator());
  unsigned most = 0;
  for (llvm::BasicBlock *block : loop.blocks())
    most = std::max(most, operandsOfCopies(*block));
  llvm::BasicBlock *whole = nullptr, *before = nullptr;
  for (llvm::BasicBlock *block : loop.blocks())
    if (unsigned operands = operandsOfCopies(*block); operands && operands < most && block->getSinglePredecessor()) {
      if (whole)
        return false;
      whole = block;
      before = block->getSinglePredecessor();
    }
  auto *branch = before ? llvm::dyn_cast<llvm::BranchInst>(before->getTerminator()) : nullptr;
  auto condition = branch && branch->isConditional() ? Condition::of(branch->getCondition(), loop) : std::nullopt;
  if (!condition || !end->isConditional())
    return false;
  llvm::formLCSSA(loop, dominators, &loops, nullptr);

  llvm::Function &f = *header->getParent();
  llvm::ValueToValueMapTy map;
  llvm::SmallVector<llvm::BasicBlock *> clones;
  for (llvm::BasicBlock *block : loop.blocks()) {
    clones.push_back(llvm::CloneBasicBlock(block, map, ".rest", &f));
    map[block] = clones.back();
  }
  llvm::remapInstructionsInBlocks(clones, map);
  auto cloneOf = [&](auto *v) { return llvm::cast<std::remove_pointer_t<decltype(v)>>(map.lookup(v)); };
  llvm::BasicBlock *rest = cloneOf(header), *between = llvm::BasicBlock::Create(f.getContext(), "rest", &f, rest);

  // Into the first loop, and from trip to trip in it.
  bool wholeIfTrue = branch->getSuccessor(0) == whole;
  auto wholeFrom = [&](llvm::IRBuilder<> &b, llvm::BasicBlock *edge) {
    V value = condition->at(b, header, edge);
    return wholeIfTrue ? value : b.CreateNot(value);
  };
  llvm::IRBuilder<> b(preheader->getTerminator());
  b.CreateCondBr(wholeFrom(b, preheader), header, rest);
  preheader->getTerminator()->eraseFromParent();
  b.SetInsertPoint(end);
  V again = end->getSuccessor(0) == header ? end->getCondition() : b.CreateNot(end->getCondition());
  b.CreateCondBr(b.CreateLogicalAnd(again, wholeFrom(b, latch)), header, between);
  end->eraseFromParent();
  b.SetInsertPoint(between);
  b.CreateCondBr(again, rest, exit);

  for (llvm::PHINode &phi : header->phis())
    cloneOf(&phi)->addIncoming(phi.getIncomingValueForBlock(latch), between);
  for (llvm::PHINode &phi : exit->phis()) {
    V value = phi.getIncomingValueForBlock(latch), inRest = map.lookup(value);
    phi.replaceIncomingBlockWith(latch, between);
    phi.addIncoming(inRest ? inRest : value, cloneOf(latch));
  }
  auto always = [](llvm::BasicBlock *from, llvm::BasicBlock *to) {
    llvm::Instruction *old = from->getTerminator();
    for (llvm::BasicBlock *other : llvm::successors(from))
      if (other != to)
        other->removePredecessor(from, /*KeepOneInputPHIs=*/true);
    llvm::IRBuilder<>(old).CreateBr(to);
    old->eraseFromParent();
  };
  llvm::BasicBlock *part = branch->getSuccessor(wholeIfTrue ? 1 : 0);
  always(cloneOf(before), cloneOf(part));
  always(before, whole);
  return true;
}

} // namespace

void testAtEnd(llvm::Loop &loop, llvm::LoopInfo &loops, llvm::DominatorTree &dominators,
               llvm::AssumptionCache &assumptions, const llvm::TargetTransformInfo &costs) {
  if (!loop.isInnermost() || loop.isLoopExiting(loop.getLoopLatch()) || !multipliesOnly(loop))
    return;
  llvm::simplifyLoop(&loop, &dominators, &loops, nullptr, &assumptions, nullptr, /*PreserveLCSSA=*/false);
  llvm::formLCSSA(loop, dominators, &loops, nullptr);
  const llvm::SimplifyQuery query(loop.getHeader()->getDataLayout());
  llvm::LoopRotation(&loop, &loops, &costs, &assumptions, &dominators, nullptr, nullptr, query, /*RotationOnly=*/true,
                     /*Threshold=*/unsigned(-1), /*IsUtilMode=*/true);
}

void splitLoops(llvm::Function &f) {
  for (bool again = true, any = false; again;) {
    again = false;
    llvm::DominatorTree dominators(f);
    llvm::LoopInfo loops(dominators);
    for (llvm::Loop *loop : loops.getLoopsInPreorder())
      if (loop->isInnermost() && split(*loop, loops, dominators)) {
        again = any = true;
        break;
      }
    if (!any)
      return;
    llvm::EliminateUnreachableBlocks(f);
    for (llvm::BasicBlock &block : llvm::make_early_inc_range(f))
      llvm::MergeBlockIntoPredecessor(&block);
  }
}

} // namespace tessera::codegen
