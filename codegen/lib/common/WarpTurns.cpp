#include "WarpTurns.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

#include <tessera/error.h>

namespace tessera::codegen {

namespace {

using V = llvm::Value *;

class WarpTurns {
public:
  WarpTurns(llvm::Function &f, unsigned turns, llvm::Instruction *turn, llvm::ArrayRef<llvm::BasicBlock *> cutBlocks)
      : f(f), turns(turns), turn(turn), entry(&f.getEntryBlock()) {
    llvm::EliminateUnreachableBlocks(f);
    for (llvm::BasicBlock &block : f)
      if (llvm::is_contained(cutBlocks, &block))
        cuts.insert(&block);
  }

  void run() {
    findParts();
    findVarying();
    placeSlots();
    for (llvm::BasicBlock *block : original)
      rewrite(*block);
    for (auto &[value, slot] : slots)
      if (!llvm::isa<llvm::PHINode>(value) || !cuts.contains(value->getParent()))
        keep(value);
    for (Part &part : parts)
      repeat(part);
    for (llvm::PHINode *phi : carried)
      phi->replaceAllUsesWith(llvm::PoisonValue::get(phi->getType())); // of one another
    for (llvm::PHINode *phi : carried)
      phi->eraseFromParent();
    for (llvm::Instruction *i : llvm::reverse(varying))
      i->eraseFromParent();
  }

private:
  struct Part {
    llvm::SmallVector<llvm::BasicBlock *> blocks;
    llvm::BasicBlock *first = nullptr, *next = nullptr; ///< where it begins, the cut behind it
    llvm::BasicBlock *header = nullptr;
    llvm::PHINode *number = nullptr;
  };

  static void require(bool holds) {
    if (!holds)
      throw error(stage::internal, "a kernel whose warps take turns has a part with more than one way in or out");
  }

  void findParts() {
    for (llvm::BasicBlock &block : f)
      original.push_back(&block);
    auto isCut = [&](llvm::BasicBlock *block) { return block == entry || cuts.contains(block); };
    for (llvm::BasicBlock *start : original) {
      if (isCut(start) || partOf.contains(start))
        continue;
      Part &part = parts.emplace_back();
      part.blocks.push_back(start);
      partOf[start] = parts.size();
      for (size_t i = 0; i < part.blocks.size(); ++i) {
        llvm::BasicBlock *block = part.blocks[i];
        auto visit = [&](llvm::BasicBlock *other) {
          if (!isCut(other) && partOf.try_emplace(other, parts.size()).second)
            part.blocks.push_back(other);
        };
        for (llvm::BasicBlock *before : llvm::predecessors(block)) {
          visit(before);
          require(!isCut(before) || !part.first || part.first == block);
          part.first = isCut(before) ? block : part.first;
        }
        for (llvm::BasicBlock *after : llvm::successors(block)) {
          visit(after);
          require(!isCut(after) || !part.next || part.next == after);
          part.next = isCut(after) ? after : part.next;
        }
      }
      require(part.first && part.next && !llvm::isa<llvm::PHINode>(part.first->front()));
      part.header = llvm::BasicBlock::Create(f.getContext(), "turn", &f, part.first);
      part.number = llvm::PHINode::Create(turn->getType(), 2, "", part.header);
    }
  }

  /// Instructions of the entry block that differ from turn to turn.
  void findVarying() {
    for (llvm::Instruction &i : *entry)
      if (&i == turn || llvm::any_of(i.operands(), [&](V v) {
            auto *operand = llvm::dyn_cast<llvm::Instruction>(v);
            return operand && varying.contains(operand);
          }))
        varying.insert(&i);
  }

  /// The same everywhere and in every turn.
  bool isFixed(V v) const {
    auto *i = llvm::dyn_cast<llvm::Instruction>(v);
    return !i || (i->getParent() == entry && !varying.contains(i));
  }

  bool isCarried(V v) const {
    auto *phi = llvm::dyn_cast<llvm::PHINode>(v);
    return phi && cuts.contains(phi->getParent());
  }

  static bool isCheap(const llvm::Instruction &i) {
    if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&i))
      return call->doesNotAccessMemory() && !call->isConvergent();
    return (llvm::isa<llvm::BinaryOperator>(i) && !i.isIntDivRem()) ||
           llvm::isa<llvm::UnaryOperator, llvm::CastInst, llvm::CmpInst, llvm::SelectInst, llvm::GetElementPtrInst,
                     llvm::ExtractElementInst, llvm::InsertElementInst, llvm::ShuffleVectorInst>(i);
  }

  /// Whether `i` is computed again where another part needs it.
  bool isRecomputed(llvm::Instruction *i) {
    auto [known, added] = recomputed.try_emplace(i, false);
    if (!added)
      return known->second;
    bool is = isCheap(*i) && llvm::all_of(i->operands(), [&](V v) {
                return isFixed(v) || v == turn || isCarried(v) || isRecomputed(llvm::cast<llvm::Instruction>(v));
              });
    if (is)
      operandsOf[i].assign(i->op_begin(), i->op_end());
    return recomputed[i] = is;
  }

  bool isHere(llvm::Instruction *i, llvm::BasicBlock *block) const {
    unsigned part = partOf.lookup(block);
    return part ? part == partOf.lookup(i->getParent()) : i->getParent() == block && !isCarried(i);
  }

  // ---- memory of the turns ------------------------------------------------------------------------------------------

  struct Slot {
    llvm::AllocaInst *memory;
    unsigned index;
  };

  void placeSlots() {
    llvm::MapVector<llvm::Type *, llvm::SmallSetVector<llvm::Instruction *, 16>> kept;
    for (llvm::BasicBlock *block : original) {
      if (block == entry)
        continue;
      for (llvm::Instruction &i : *block) {
        if (isCarried(&i)) {
          carried.push_back(llvm::cast<llvm::PHINode>(&i));
          kept[i.getType()].insert(&i);
        }
        for (llvm::Use &use : i.operands()) {
          auto *value = llvm::dyn_cast<llvm::Instruction>(use.get());
          auto *phi = llvm::dyn_cast<llvm::PHINode>(&i);
          if (value && !isFixed(value) && value != turn && !isCarried(value) &&
              !isHere(value, phi ? phi->getIncomingBlock(use) : block) && !isRecomputed(value))
            kept[value->getType()].insert(value);
        }
      }
    }
    llvm::IRBuilder<> b(entry, entry->begin());
    for (auto &[type, values] : kept) {
      // What is kept in one turn lies together: several at a time are read and written.
      llvm::AllocaInst *memory = b.CreateAlloca(llvm::ArrayType::get(llvm::ArrayType::get(type, values.size()), turns));
      memory->setAlignment(std::max(memory->getAlign(), llvm::Align(16)));
      for (auto [index, value] : llvm::enumerate(values)) {
        require(value->getParent() != entry && (partOf.contains(value->getParent()) || isCarried(value)));
        slots[value] = {memory, unsigned(index)};
      }
    }
  }

  V address(llvm::IRBuilder<> &b, llvm::Instruction *value, V number) {
    const Slot &slot = slots.find(value)->second;
    return b.CreateInBoundsGEP(slot.memory->getAllocatedType(), slot.memory, {b.getInt32(0), number, b.getInt32(slot.index)});
  }

  V numberIn(llvm::BasicBlock *block) const {
    unsigned part = partOf.lookup(block);
    // A cut asks for what is the same in every turn.
    return part ? V(parts[part - 1].number) : llvm::ConstantInt::get(turn->getType(), 0);
  }

  /// Each turn writes where the value is made.
  void keep(llvm::Instruction *value) {
    llvm::IRBuilder<> b(value->getParent(), llvm::isa<llvm::PHINode>(value) ? value->getParent()->getFirstInsertionPt()
                                                                             : std::next(value->getIterator()));
    b.CreateStore(value, address(b, value, numberIn(value->getParent())));
  }

  // ---- uses ---------------------------------------------------------------------------------------------------------

  /// `v` as it is used by `user`, or at the end of a block by its terminator.
  V at(llvm::Instruction *user, V v) {
    llvm::BasicBlock *block = user->getParent();
    auto *i = llvm::dyn_cast<llvm::Instruction>(v);
    if (v == turn)
      return numberIn(block);
    if (isFixed(v) || isHere(i, block))
      return v;
    V &copy = copies[{i, block}];
    if (copy)
      return copy;
    if (slots.contains(i)) {
      llvm::IRBuilder<> b(user);
      return copy = b.CreateLoad(i->getType(), address(b, i, numberIn(block)));
    }
    auto operands = operandsOf.find(i); // as they were: those of the instruction may be of its own part by now
    require(operands != operandsOf.end());
    llvm::Instruction *again = i->clone();
    again->insertBefore(user->getIterator());
    for (auto [use, operand] : llvm::zip_equal(again->operands(), operands->second))
      use.set(at(again, operand));
    return copies[{i, block}] = again;
  }

  void rewrite(llvm::BasicBlock &block) {
    if (&block == entry)
      return;
    llvm::SmallVector<llvm::Instruction *> instructions(llvm::make_pointer_range(block));
    for (llvm::Instruction *i : instructions)
      if (!llvm::isa<llvm::PHINode>(i))
        for (llvm::Use &operand : i->operands())
          operand.set(at(i, operand.get()));
    llvm::Instruction *end = block.getTerminator();
    llvm::SmallVector<std::pair<llvm::PHINode *, V>> carriedOn; // all read before any is written
    for (llvm::BasicBlock *after : llvm::successors(&block))
      for (llvm::PHINode &phi : after->phis()) {
        V value = at(end, phi.getIncomingValueForBlock(&block));
        if (!isCarried(&phi)) {
          phi.setIncomingValueForBlock(&block, value);
          continue;
        }
        require(partOf.contains(&block));
        carriedOn.emplace_back(&phi, value);
      }
    llvm::IRBuilder<> b(end);
    for (auto [phi, value] : carriedOn)
      b.CreateStore(value, address(b, phi, numberIn(&block)));
  }

  void repeat(Part &part) {
    llvm::LLVMContext &context = f.getContext();
    llvm::BasicBlock *latch = llvm::BasicBlock::Create(context, "turn.end", &f, part.next);
    llvm::SmallVector<llvm::BasicBlock *> outside;
    for (llvm::BasicBlock *before : llvm::predecessors(part.first))
      if (!partOf.contains(before))
        outside.push_back(before);
    for (llvm::BasicBlock *before : outside) {
      before->getTerminator()->replaceSuccessorWith(part.first, part.header);
      part.number->addIncoming(llvm::ConstantInt::get(turn->getType(), 0), before);
    }
    for (llvm::BasicBlock *block : part.blocks)
      block->getTerminator()->replaceSuccessorWith(part.next, latch);
    llvm::IRBuilder<> b(part.header);
    b.CreateBr(part.first);
    b.SetInsertPoint(latch);
    V next = b.CreateAdd(part.number, llvm::ConstantInt::get(turn->getType(), 1), "", true, true);
    part.number->addIncoming(next, latch);
    auto *branch = b.CreateCondBr(b.CreateICmpULT(next, llvm::ConstantInt::get(turn->getType(), turns)), part.header, part.next);
    // To be written once is what the loop is for.
    auto *never = llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable"));
    auto *loop = llvm::MDNode::getDistinct(context, {nullptr, never});
    loop->replaceOperandWith(0, loop);
    branch->setMetadata(llvm::LLVMContext::MD_loop, loop);
  }

  llvm::Function &f;
  unsigned turns;
  llvm::Instruction *turn;
  llvm::BasicBlock *entry;
  llvm::SmallPtrSet<llvm::BasicBlock *, 16> cuts;
  llvm::SmallVector<llvm::BasicBlock *> original;
  std::vector<Part> parts;
  llvm::DenseMap<llvm::BasicBlock *, unsigned> partOf; ///< from 1 on; cuts and entry have none
  llvm::SmallSetVector<llvm::Instruction *, 16> varying;
  llvm::SmallVector<llvm::PHINode *> carried; ///< phis of cuts
  llvm::DenseMap<llvm::Instruction *, bool> recomputed;
  llvm::DenseMap<llvm::Instruction *, llvm::SmallVector<V, 4>> operandsOf; ///< of what is recomputed
  llvm::MapVector<llvm::Instruction *, Slot> slots;
  llvm::DenseMap<std::pair<llvm::Instruction *, llvm::BasicBlock *>, V> copies;
};

} // namespace

void takeTurns(llvm::Function &f, unsigned turns, llvm::Instruction *turn, llvm::ArrayRef<llvm::BasicBlock *> cuts) {
  WarpTurns(f, turns, turn, cuts).run();
}

} // namespace tessera::codegen
