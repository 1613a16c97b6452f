#include "LaterPrograms.h"

#include "CopyLoops.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/KnownBits.h"

namespace tessera::codegen {

namespace {

/// Bytes of the rows between a program and the one it fetches for: what a Hopper's memory moves in its latency. Small
/// programs begin more slowly than that: never more than so many between (docs/measurements.md).
constexpr uint64_t kBytesAhead = 4 << 20, kProgramsAhead = 768;
/// Of what is fetched at once; an aligned load of as many bytes, at a position that is a multiple of it, says that its row
/// begins at one too.
constexpr unsigned kAlignment = 16;
/// Shorter rows were not measured.
constexpr uint64_t kShortest = 2 << 10;

bool isRegister(V v, llvm::Intrinsic::ID id) {
  auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(v);
  return call && call->getIntrinsicID() == id;
}

/// Whether `v` is computed from the special register `id`.
bool dependsOn(V v, llvm::Intrinsic::ID id, llvm::SmallPtrSetImpl<V> &seen) {
  auto *i = llvm::dyn_cast<llvm::Instruction>(v);
  if (!i || !seen.insert(v).second)
    return false;
  return isRegister(i, id) || llvm::any_of(i->operands(), [&](V operand) { return dependsOn(operand, id, seen); });
}
bool dependsOn(V v, llvm::Intrinsic::ID id) {
  llvm::SmallPtrSet<V, 16> seen;
  return dependsOn(v, id, seen);
}

/// What the threads of a program load from one address that is the same for all of them.
struct Row {
  uint64_t elementBytes = 0, end = 0, loaded = 0; ///< in elements: behind the last position, and how many are loaded
  [[nodiscard]] uint64_t bytes() const { return end * elementBytes; }
  llvm::Argument *length = nullptr;               ///< positions from here on are masked off
  llvm::Instruction *last = nullptr;              ///< load of it
};

/// Values of a later program, computed where the builder stands.
class Later {
public:
  Later(llvm::IRBuilder<> &b, V program, const llvm::LoopInfo &loops, const llvm::DominatorTree &dominators)
      : b(b), program(program), loops(loops), dominators(dominators) {}

  /// `v` as that program computes it when it first gets there; null where that cannot be said.
  V value(V v) {
    auto *i = llvm::dyn_cast<llvm::Instruction>(v);
    if (!i)
      return v;
    if (auto known = values.find(v); known != values.end())
      return known->second;
    values[v] = nullptr; // for what depends on itself
    return values[v] = compute(i);
  }

  /// Whether that program gets to the block; null where that cannot be said.
  V reaches(llvm::BasicBlock *block) {
    V all = b.getTrue();
    while (block != &block->getParent()->getEntryBlock()) {
      const llvm::Loop *loop = loops.getLoopFor(block);
      llvm::BasicBlock *before =
          loop && loop->getHeader() == block ? loop->getLoopPredecessor() : block->getSinglePredecessor();
      auto *branch = before ? llvm::dyn_cast<llvm::BranchInst>(before->getTerminator()) : nullptr;
      if (!branch)
        return nullptr;
      if (branch->isConditional() && branch->getSuccessor(0) != branch->getSuccessor(1)) {
        V condition = value(branch->getCondition());
        if (!condition)
          return nullptr;
        all = b.CreateAnd(all, branch->getSuccessor(0) == block ? condition : b.CreateNot(condition));
      }
      block = before;
    }
    return all;
  }

private:
  V compute(llvm::Instruction *i) {
    if (isRegister(i, llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x))
      return program;
    if (isRegister(i, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x))
      return nullptr;
    if (auto *phi = llvm::dyn_cast<llvm::PHINode>(i)) {
      const llvm::Loop *loop = loops.getLoopFor(phi->getParent());
      llvm::BasicBlock *before =
          loop && loop->getHeader() == phi->getParent() ? loop->getLoopPredecessor() : nullptr;
      return before ? value(phi->getIncomingValueForBlock(before)) : nullptr;
    }
    if (i->mayReadOrWriteMemory() || !llvm::isSafeToSpeculativelyExecute(i))
      return nullptr;
    llvm::SmallVector<V> operands;
    for (V operand : i->operands())
      if (V later = value(operand))
        operands.push_back(later);
      else
        return nullptr;
    if (llvm::equal(operands, i->operands()) && dominators.dominates(i, &*b.GetInsertPoint()))
      return i;
    llvm::Instruction *copy = i->clone();
    for (auto [n, operand] : llvm::enumerate(operands))
      copy->setOperand(n, operand);
    copy->dropPoisonGeneratingAnnotations();
    return b.Insert(copy);
  }

  llvm::IRBuilder<> &b;
  V program;
  const llvm::LoopInfo &loops;
  const llvm::DominatorTree &dominators;
  llvm::DenseMap<V, V> values;
};

/// The row that `i` loads a part of: its address, and what this load adds; null for any other instruction.
V rowOf(llvm::Instruction &i, Row &part, unsigned threads) {
  V pointer = nullptr, mask = nullptr;
  llvm::Type *type = i.getType();
  if (auto *load = llvm::dyn_cast<llvm::LoadInst>(&i);
      load && load->isSimple() && load->getPointerAddressSpace() == 1 && load->getAlign() >= kAlignment) {
    pointer = load->getPointerOperand();
  } else if (isAssembly(i, "ld.global.") && !isAssembly(i, "L2::cache_hint")) {
    for (V operand : llvm::cast<llvm::CallInst>(i).args())
      if (operand->getType()->isPointerTy())
        pointer = operand;
      else if (operand->getType()->isIntegerTy(1))
        mask = operand;
  }
  if (!pointer)
    return nullptr;
  const llvm::DataLayout &layout = i.getDataLayout();
  llvm::APInt distance(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
  pointer = pointer->stripAndAccumulateConstantOffsets(layout, distance, /*AllowNonInbounds=*/true);
  auto *element = llvm::dyn_cast<llvm::GetElementPtrInst>(pointer);
  if (!element || element->getNumIndices() != 1)
    return nullptr;
  V base = element->getPointerOperand(), position = element->getOperand(1);
  if (auto *wide = llvm::dyn_cast<llvm::CastInst>(position); wide && wide->getOpcode() != llvm::Instruction::Trunc)
    position = wide->getOperand(0);
  using namespace llvm::Intrinsic;
  if (!dependsOn(position, nvvm_read_ptx_sreg_tid_x) || dependsOn(position, nvvm_read_ptx_sreg_ctaid_x) ||
      !dependsOn(base, nvvm_read_ptx_sreg_ctaid_x))
    return nullptr;
  const llvm::KnownBits known = llvm::computeKnownBits(position, layout);
  part.elementBytes = layout.getTypeAllocSize(element->getSourceElementType());
  const uint64_t loaded = layout.getTypeStoreSize(type) / part.elementBytes;
  if (!llvm::isPowerOf2_64(loaded) || known.countMinTrailingZeros() < llvm::Log2_64(loaded))
    return nullptr; // the address is aligned, but its base may not be
  if (!known.isNonNegative() || loaded * part.elementBytes != kAlignment || known.getMaxValue().getActiveBits() > 32 ||
      distance.isNegative() || distance.urem(kAlignment))
    return nullptr;
  part.end = known.getMaxValue().getZExtValue() + distance.getZExtValue() / part.elementBytes + loaded;
  part.loaded = threads * loaded;
  part.last = &i;
  if (auto *compare = mask ? llvm::dyn_cast<llvm::ICmpInst>(mask) : nullptr)
    if (compare->getPredicate() == llvm::CmpInst::ICMP_SLT && compare->getOperand(0) == position)
      if (compare->getOperand(1)->getType()->getIntegerBitWidth() >= 32)
        part.length = llvm::dyn_cast<llvm::Argument>(compare->getOperand(1));
  if (mask && !part.length && mask != llvm::ConstantInt::getTrue(mask->getType()))
    return nullptr;
  return base;
}

/// Whether a loop is in its first trip, true outside of one; null where it does not count.
V firstTrip(llvm::IRBuilder<> &b, const llvm::Loop *loop) {
  if (!loop)
    return b.getTrue();
  llvm::BasicBlock *before = loop->getLoopPredecessor();
  if (before && !loop->getParentLoop())
    for (llvm::PHINode &phi : loop->getHeader()->phis())
      if (phi.getType()->isIntegerTy(32))
        return b.CreateICmpEQ(&phi, phi.getIncomingValueForBlock(before));
  return nullptr;
}

} // namespace

void fetchForLaterPrograms(llvm::Function &f) {
  if (f.getCallingConv() != llvm::CallingConv::PTX_Kernel || f.hasFnAttribute("nvvm.cluster_dim"))
    return;
  const auto threads = unsigned(f.getFnAttributeAsParsedInteger("nvvm.reqntid"));
  bool waits = false;
  llvm::MapVector<V, Row> rows;
  for (llvm::Instruction &i : llvm::instructions(f)) {
    if (llvm::isa<llvm::AllocaInst>(i) || isAssembly(i, "mma") || isCopy(i))
      return;
    waits |= isRegister(&i, llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all);
    Row part;
    if (V base = rowOf(i, part, threads)) {
      auto [at, isNew] = rows.insert({base, part});
      Row &row = at->second;
      if (isNew)
        continue;
      const bool one = row.elementBytes == part.elementBytes && row.length == part.length &&
                       row.last->getParent() == i.getParent();
      row.end = std::max(row.end, part.end);
      row.loaded += part.loaded;
      row.elementBytes *= one;
      row.last = &i;
    }
  }
  if (!waits)
    return;
  rows.remove_if([](const auto &of) {
    const Row &row = of.second;
    return row.loaded < row.end || row.bytes() < kShortest || row.bytes() % kAlignment;
  });
  llvm::DenseMap<llvm::BasicBlock *, uint64_t> bytes; // a kernel may have two versions
  for (auto &[base, row] : rows)
    bytes[row.last->getParent()] += row.bytes();
  const llvm::DominatorTree dominators(f);
  const llvm::LoopInfo loops(dominators);
  for (auto &[base, row] : rows) {
    llvm::BasicBlock *block = row.last->getParent();
    llvm::IRBuilder<> b(row.last->getNextNode());
    const unsigned distance = std::clamp<uint64_t>(kBytesAhead / bytes[block], 1, kProgramsAhead);
    auto reg = [&](llvm::Intrinsic::ID id) { return b.CreateIntrinsic(b.getInt32Ty(), id, llvm::ArrayRef<V>()); };
    V program = b.CreateAdd(reg(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x), b.getInt32(distance));
    V does = b.CreateAnd(b.CreateICmpEQ(reg(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x), b.getInt32(0)),
                         b.CreateICmpULT(program, reg(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x)));
    Later later(b, program, loops, dominators);
    V address = later.value(base), reached = later.reaches(block);
    V first = firstTrip(b, loops.getLoopFor(block));
    if (!address || !reached || !first)
      continue;
    V size = b.getInt32(row.bytes());
    if (row.length) { // whole words of what is not masked off
      V length = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, row.length,
                                         llvm::ConstantInt::get(row.length->getType(), row.end));
      size = b.CreateMul(b.CreateTrunc(length, b.getInt32Ty()), b.getInt32(row.elementBytes));
      size = b.CreateAnd(size, b.getInt32(-int(kAlignment)));
      does = b.CreateAnd(does, b.CreateICmpSGT(size, b.getInt32(0)));
    }
    auto *type = llvm::FunctionType::get(b.getVoidTy(), {address->getType(), b.getInt32Ty(), b.getInt1Ty()}, false);
    b.CreateCall(type, llvm::InlineAsm::get(type, "@$2 cp.async.bulk.prefetch.L2.global [$0], $1;", "l,r,b", true),
                 {address, size, b.CreateAnd(b.CreateAnd(does, reached), first)});
  }
}

} // namespace tessera::codegen
