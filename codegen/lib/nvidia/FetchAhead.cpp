#include "FetchAhead.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/DomTreeUpdater.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

namespace tessera::codegen {

namespace {

constexpr unsigned kCopyBytes = 16, kLineBytes = 128;
/// Programs that share the fetching, and trips that each fetches for.
constexpr unsigned kPrograms = 8, kTurns = 2;
/// More addresses than that are not worth their code.
constexpr unsigned kMostFetches = 32;
/// What a trip's products take (64 x 128 x 64 of f16) where three trips pass while memory answers; where they take
/// longer, fetches only delay what is needed first.
constexpr unsigned kLongestTrip = 256;
/// As many as multiprocessors hold at a time, of such small tiles: with more, others work while one waits.
constexpr unsigned kMostPrograms = 256;

/// The loop's copies without masks, and when they are done.
struct WholeCopies {
  llvm::BasicBlock *block = nullptr;
  V condition = nullptr;
  bool ifTrue = true;

  static std::optional<WholeCopies> of(const llvm::Loop &loop) {
    WholeCopies found;
    unsigned fewest = UINT_MAX;
    for (llvm::BasicBlock *block : loop.blocks())
      if (unsigned operands = operandsOfCopies(*block); operands && operands < fewest) {
        fewest = operands;
        found.block = block;
      }
    llvm::BasicBlock *before = found.block ? found.block->getSinglePredecessor() : nullptr;
    auto *branch =
        before && loop.contains(before) ? llvm::dyn_cast<llvm::BranchInst>(before->getTerminator()) : nullptr;
    if (!branch || !branch->isConditional())
      return std::nullopt;
    found.condition = branch->getCondition();
    found.ifTrue = branch->getSuccessor(0) == found.block;
    return found;
  }
};

class Fetcher {
public:
  Fetcher(llvm::Loop &loop, llvm::LoopInfo &loops, llvm::DominatorTree &dominators, llvm::ScalarEvolution &se)
      : loop(loop), loops(loops), dominators(dominators), se(se), expander(se, "ahead"),
        end(loop.getLoopPreheader()->getTerminator()), b(end) {}

  void fetch(const WholeCopies &copies) {
    // What moves alike shares the distance.
    llvm::MapVector<const llvm::SCEV *, llvm::SmallSetVector<const llvm::SCEV *, 8>> starts;
    unsigned count = 0;
    for (llvm::Instruction &i : *copies.block)
      if (isAssembly(i, "cp.async.cg")) // of 16 bytes
        for (const llvm::Use &use : llvm::cast<llvm::CallInst>(i).args()) {
          auto *pointer = llvm::dyn_cast<llvm::PointerType>(use->getType());
          auto *address = pointer && pointer->getAddressSpace() == 1
                              ? llvm::dyn_cast<llvm::SCEVAddRecExpr>(se.getSCEV(use))
                              : nullptr;
          if (address && address->getLoop() == &loop && address->isAffine() && mayExpand(address->getStart()) &&
              mayExpand(address->getStepRecurrence(se)))
            count += starts[address->getStepRecurrence(se)].insert(address->getStart());
        }
    if (!count || count > kMostFetches || !mayEvaluate(copies.condition))
      return;
    auto read = [&](llvm::Intrinsic::ID what) { return b.CreateIntrinsic(b.getInt32Ty(), what, {}); };
    V programs = b.CreateMul(read(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x),
                             b.CreateMul(read(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_y),
                                         read(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_z)));
    llvm::DomTreeUpdater updater(dominators, llvm::DomTreeUpdater::UpdateStrategy::Eager);
    end = llvm::SplitBlockAndInsertIfThen(b.CreateICmpULE(programs, b.getInt32(kMostPrograms)), end->getIterator(),
                                          /*Unreachable=*/false, nullptr, &updater, &loops);
    b.SetInsertPoint(end);
    V program = read(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
    V share =
        b.CreateAnd(b.CreateAdd(program, b.CreateLShr(program, llvm::Log2_32(kPrograms))), b.getInt32(kPrograms - 1));
    llvm::SmallVector<llvm::SmallVector<V>> from;
    llvm::SmallVector<std::pair<V, V>> stepAndLane;
    for (auto &[step, addresses] : starts) {
      auto &pointers = from.emplace_back();
      for (const llvm::SCEV *address : addresses)
        pointers.push_back(expander.expandCodeFor(address, nullptr, end));
      V low = b.CreateTrunc(b.CreatePtrToInt(pointers.front(), b.getInt64Ty()), b.getInt32Ty());
      V isFirst = b.CreateICmpULT(b.CreateAnd(low, b.getInt32(kLineBytes - 1)), b.getInt32(kCopyBytes));
      stepAndLane.push_back({expander.expandCodeFor(step, b.getInt64Ty(), end), isFirst});
    }
    for (unsigned turn = 0; turn < kTurns; ++turn) {
      V trip = b.CreateAdd(share, b.getInt32(turn * kPrograms));
      V whole = evaluate(copies.condition, trip);
      if (!copies.ifTrue)
        whole = b.CreateNot(whole);
      for (auto [pointers, entry] : llvm::zip(from, stepAndLane)) {
        V distance = b.CreateMul(b.CreateZExt(trip, b.getInt64Ty()), entry.first),
          does = b.CreateAnd(whole, entry.second);
        auto *type = llvm::FunctionType::get(b.getVoidTy(), {pointers.front()->getType(), does->getType()}, false);
        auto *code = llvm::InlineAsm::get(type, "@$1 prefetch.global.L2 [$0];", "l,b", /*hasSideEffects=*/true);
        for (V start : pointers)
          b.CreateCall(code, {b.CreateGEP(b.getInt8Ty(), start, distance), does});
      }
    }
  }

private:
  llvm::Loop &loop;
  llvm::LoopInfo &loops;
  llvm::DominatorTree &dominators;
  llvm::ScalarEvolution &se;
  llvm::SCEVExpander expander;
  llvm::Instruction *end;
  llvm::IRBuilder<> b;

  bool mayExpand(const llvm::SCEV *s) { return expander.isSafeToExpandAt(s, end); }

  /// The operands of a condition that is made of others; none of a comparison.
  static llvm::SmallVector<V, 2> partsOf(V condition) {
    using namespace llvm::PatternMatch;
    V x, y;
    if (match(condition, m_LogicalAnd(m_Value(x), m_Value(y))) || match(condition, m_LogicalOr(m_Value(x), m_Value(y))))
      return {x, y};
    if (match(condition, m_Not(m_Value(x))))
      return {x};
    return {};
  }

  bool mayEvaluate(V condition, unsigned depth = 0) {
    if (loop.isLoopInvariant(condition))
      return true;
    if (auto parts = partsOf(condition); !parts.empty())
      return depth < 8 && llvm::all_of(parts, [&](V part) { return mayEvaluate(part, depth + 1); });
    auto *compare = llvm::dyn_cast<llvm::ICmpInst>(condition);
    return compare && llvm::all_of(compare->operands(), [&](V operand) {
             if (!operand->getType()->isIntegerTy())
               return false;
             const llvm::SCEV *s = se.getSCEV(operand);
             auto *moving = llvm::dyn_cast<llvm::SCEVAddRecExpr>(s);
             if (!moving)
               return se.isLoopInvariant(s, &loop) && mayExpand(s);
             return moving->getLoop() == &loop && moving->isAffine() && mayExpand(moving->getStart()) &&
                    mayExpand(moving->getStepRecurrence(se));
           });
  }

  /// The condition, as of trip `trip`.
  V evaluate(V condition, V trip) {
    using namespace llvm::PatternMatch;
    if (loop.isLoopInvariant(condition))
      return condition;
    if (auto parts = partsOf(condition); !parts.empty()) {
      for (V &part : parts)
        part = evaluate(part, trip);
      if (parts.size() == 1)
        return b.CreateNot(parts[0]);
      V x, y;
      bool both = match(condition, m_LogicalAnd(m_Value(x), m_Value(y)));
      return both ? b.CreateAnd(parts[0], parts[1]) : b.CreateOr(parts[0], parts[1]);
    }
    auto *compare = llvm::cast<llvm::ICmpInst>(condition);
    auto at = [&](V operand) -> V {
      const llvm::SCEV *s = se.getSCEV(operand);
      auto *moving = llvm::dyn_cast<llvm::SCEVAddRecExpr>(s);
      if (!moving)
        return expander.expandCodeFor(s, operand->getType(), end);
      V start = expander.expandCodeFor(moving->getStart(), operand->getType(), end);
      V step = expander.expandCodeFor(moving->getStepRecurrence(se), operand->getType(), end);
      return b.CreateAdd(start, b.CreateMul(step, b.CreateZExtOrTrunc(trip, operand->getType())));
    };
    V x = at(compare->getOperand(0)), y = at(compare->getOperand(1));
    return b.CreateICmp(compare->getPredicate(), x, y);
  }
};

} // namespace

void fetchAhead(llvm::Loop &loop, llvm::LoopInfo &loops, llvm::DominatorTree &dominators, llvm::ScalarEvolution &se) {
  const unsigned cycles = cyclesOfProducts(loop);
  if (!loop.isInnermost() || !loop.getLoopPreheader() || !cycles || cycles > kLongestTrip)
    return;
  if (auto copies = WholeCopies::of(loop))
    Fetcher(loop, loops, dominators, se).fetch(*copies);
}

} // namespace tessera::codegen
