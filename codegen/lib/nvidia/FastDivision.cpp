#include "FastDivision.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/KnownBits.h"

namespace tessera::codegen {

namespace {

constexpr unsigned kDividendBits = 21, kDivisorBits = 23;
/// Divisions of one group: more are work rather than the way to something else.
constexpr unsigned kMostDivisions = 16;

bool isDivision(const llvm::Instruction &i) {
  return i.isIntDivRem() && i.getType()->isIntegerTy(32) && !llvm::isa<llvm::Constant>(i.getOperand(1));
}

bool mayMove(const llvm::Instruction &i) {
  auto *call = llvm::dyn_cast<llvm::CallBase>(&i);
  return !i.isTerminator() && !i.mayHaveSideEffects() && !i.mayReadFromMemory() && !(call && call->isConvergent());
}

/// Divisions of a block none of which needs another's result: one branch serves all.
struct Group {
  llvm::SmallVector<llvm::Instruction *> divisions;
  llvm::SmallVector<llvm::Instruction *> users; ///< of their results, also indirectly, in front of the last division
};

llvm::SmallVector<Group> groupsOf(llvm::BasicBlock &block) {
  llvm::SmallVector<Group> groups;
  Group group;
  llvm::SmallVector<llvm::Instruction *> users;
  llvm::SmallPtrSet<V, 16> behind;
  auto close = [&] {
    if (!group.divisions.empty())
      groups.push_back(std::move(group));
    group = {};
    users.clear();
    behind.clear();
  };
  for (llvm::Instruction &i : block) {
    bool uses = !llvm::isa<llvm::PHINode>(i) && llvm::any_of(i.operands(), [&](V v) { return behind.contains(v); });
    if ((uses && (isDivision(i) || !mayMove(i))) || group.divisions.size() == kMostDivisions) {
      close();
      uses = false;
    }
    if (isDivision(i)) {
      group.divisions.push_back(&i);
      group.users.append(std::exchange(users, {}));
    } else if (uses) {
      users.push_back(&i);
    } else {
      continue;
    }
    behind.insert(&i);
  }
  close();
  return groups;
}

/// A divisor as it was before it was replaced by 1 where it must not be used.
struct Divisor {
  V value, unless = nullptr; ///< unless: where this holds, 1

  explicit Divisor(V v) : value(v) {
    using namespace llvm::PatternMatch;
    if (V condition, other; match(v, m_Select(m_Value(condition), m_One(), m_Value(other))))
      value = other, unless = condition;
  }
};

class Shortener {
public:
  explicit Shortener(llvm::BasicBlock &block) : block(block), b(block.getContext()) {}

  void shorten(Group &group) {
    llvm::Instruction *last = group.divisions.back();
    llvm::Function &f = *block.getParent();
    llvm::BasicBlock *join = block.splitBasicBlock(std::next(last->getIterator()), "divided");
    llvm::BasicBlock *any = llvm::BasicBlock::Create(f.getContext(), "division", &f);
    b.SetInsertPoint(block.getTerminator());
    b.SetCurrentDebugLocation(last->getDebugLoc());
    llvm::MapVector<V, V> reciprocals;
    llvm::SmallSetVector<V, 8> dividends;
    V small = nullptr;
    auto also = [&](V condition) { small = small ? b.CreateAnd(small, condition) : condition; };
    for (llvm::Instruction *division : group.divisions) {
      const Divisor divisor(division->getOperand(1));
      if (V &reciprocal = reciprocals[division->getOperand(1)]; !reciprocal) {
        V value = divisor.unless ? b.CreateFreeze(divisor.value) : divisor.value; // no matter what where it is not used
        also(b.CreateICmpULT(b.CreateSub(value, b.getInt32(1)), b.getInt32((1u << kDivisorBits) - 1)));
        if (divisor.unless)
          also(b.CreateNot(divisor.unless));
        reciprocal = b.CreateIntrinsic(llvm::Intrinsic::nvvm_rcp_approx_ftz_f, {}, {toFloat(divisor.value, 0)});
      }
      V dividend = division->getOperand(0);
      if (dividends.insert(dividend) &&
          llvm::computeKnownBits(dividend, f.getDataLayout()).countMaxActiveBits() > kDividendBits)
        also(b.CreateICmpULT(dividend, b.getInt32(1u << kDividendBits)));
    }
    llvm::SmallVector<V> results;
    for (llvm::Instruction *division : group.divisions) {
      V dividend = division->getOperand(0), divisor = Divisor(division->getOperand(1)).value;
      V sum = b.CreateIntrinsic(llvm::Intrinsic::nvvm_fma_rz_f, {},
                                {toFloat(dividend, .5), reciprocals[division->getOperand(1)], number(kBase)});
      V quotient = b.CreateAnd(b.CreateBitCast(sum, b.getInt32Ty()), b.getInt32((1u << 23) - 1));
      bool remains =
          division->getOpcode() == llvm::Instruction::SRem || division->getOpcode() == llvm::Instruction::URem;
      results.push_back(remains ? b.CreateSub(dividend, b.CreateMul(quotient, divisor)) : quotient);
    }
    block.getTerminator()->eraseFromParent();
    b.SetInsertPoint(&block);
    b.CreateCondBr(small, join, any, llvm::MDBuilder(f.getContext()).createLikelyBranchWeights());

    b.SetInsertPoint(any);
    llvm::Instruction *back = b.CreateBr(join);
    auto place = join->begin();
    for (llvm::Instruction *user : group.users)
      user->moveBefore(*join, place);
    for (auto [division, result] : llvm::zip(group.divisions, results)) {
      division->moveBefore(back->getIterator());
      b.SetInsertPoint(join, join->begin());
      llvm::PHINode *either = b.CreatePHI(division->getType(), 2);
      division->replaceAllUsesWith(either);
      either->addIncoming(result, &block);
      either->addIncoming(division, any);
    }
  }

private:
  /// 2^23: the units of a float from there on are 1, and its low bits a whole number.
  static constexpr float kBase = 0x1p23f;
  static constexpr uint32_t kBaseBits = 0x4b000000;

  llvm::BasicBlock &block;
  llvm::IRBuilder<> b;

  V number(float value) { return llvm::ConstantFP::get(b.getFloatTy(), value); }
  /// n + `more`, of n < 2^23.
  V toFloat(V n, float more) {
    V sum = b.CreateBitCast(b.CreateOr(n, b.getInt32(kBaseBits)), b.getFloatTy());
    return b.CreateFAdd(sum, number(more - kBase));
  }
};

} // namespace

void shortenDivisions(llvm::Function &f) {
  llvm::DominatorTree dominators(f);
  llvm::LoopInfo loops(dominators);
  llvm::SmallVector<llvm::BasicBlock *> blocks;
  for (llvm::BasicBlock &block : f)
    if (!loops.getLoopFor(&block))
      blocks.push_back(&block);
  for (llvm::BasicBlock *block : blocks) {
    auto groups = groupsOf(*block);
    for (Group &group : llvm::reverse(groups)) // what comes behind leaves the block
      Shortener(*block).shorten(group);
  }
}

} // namespace tessera::codegen
