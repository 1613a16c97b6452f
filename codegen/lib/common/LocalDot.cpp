// ttg.local_dot: a product without matrix unit. Every thread adds up its own results in a loop over k that reads rows
// of A and columns of B from shared memory: outer products of the registers of a lane. Where registers are few, results
// are computed in blocks that stay in registers during the loop; on the native CPU this is the micro-kernel of a matrix
// product, its shared memory the packed panels.
#include "Emitter.h"

#include "tessera/passes/Allocation.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"

namespace tessera::codegen {

using mlir::LogicalResult;
using mlir::success;

namespace {

/// The layout of an operand in which a thread holds what its results need: register bits are those of k, then those of
/// the accumulator.
LinearLayout operandLayout(const LinearLayout &acc, llvm::ArrayRef<int64_t> shape, bool isA) {
  unsigned rank = shape.size(), dimK = isA ? rank - 1 : rank - 2, own = isA ? rank - 2 : rank - 1;
  LinearLayout whole = LinearLayout::identity(shape, HwDim::Offset);
  llvm::SmallVector<LinearLayout::In> ins(acc.ins());
  for (LinearLayout::In &in : ins)
    for (LinearLayout::Basis &basis : in.bases) {
      llvm::SmallVector<int64_t> coords = acc.coords(basis), mine(rank, 0);
      if (rank == 3)
        mine[0] = coords[0];
      mine[own] = coords[own];
      basis = whole.flat(mine);
    }
  LinearLayout::Bases registers;
  for (int64_t k = 1; k < shape[dimK]; k *= 2) {
    llvm::SmallVector<int64_t> coords(rank, 0);
    coords[dimK] = k;
    registers.push_back(whole.flat(coords));
  }
  for (LinearLayout::In &in : ins)
    if (in.dim == HwDim::Register) {
      llvm::append_range(registers, in.bases);
      in.bases = registers;
    }
  return LinearLayout(shape, ins);
}

/// For each result register the number of the row (of A) or column (of B) that it needs, among those of its thread.
llvm::SmallVector<unsigned> numbersOf(const LinearLayout &operand, unsigned kBits, unsigned numRegisters) {
  llvm::SmallVector<uint64_t> images;
  for (unsigned r = 0; r < numRegisters; ++r)
    images.push_back(registerImage(operand, r << kBits));
  llvm::SmallVector<uint64_t> distinct(images);
  llvm::sort(distinct);
  distinct.erase(llvm::unique(distinct), distinct.end());
  return llvm::map_to_vector(
      images, [&](uint64_t image) { return unsigned(llvm::lower_bound(distinct, image) - distinct.begin()); });
}

} // namespace

/// Reads elements of an operand for `unroll` consecutive k's.
class Emitter::DotOperand {
public:
  DotOperand(Emitter &e, mlir::Value buffer, const LinearLayout &layout, unsigned kBits, unsigned unrolledBits,
             llvm::Type *acc)
      : e(e), type(mlir::cast<ttg::MemDescType>(buffer.getType()).getElementType()), kBits(kBits),
        unrolledBits(unrolledBits), acc(acc), tile(e.sharedTile(layout, buffer)) {
    auto registers = tile.offsets.bases(HwDim::Register);
    movingK.assign(registers.begin(), registers.begin() + kBits);
    std::fill_n(movingK.begin(), unrolledBits, 0);
    for (uint64_t basis : movingK)
      kMask |= basis;
    if (e.target.wantsTags()) {
      std::tie(original, origin) = e.inAllocation(layout, buffer);
      tagBase = e.baseOf(original);
      auto tags = original.bases(HwDim::Register);
      movingTags.assign(tags.begin(), tags.begin() + kBits);
      std::fill_n(movingTags.begin(), unrolledBits, 0);
    }
    // The vector of an access: consecutive places that are unrolled k's or registers of the result.
    SharedTile whole = tile;
    whole.base.mask |= kMask;
    if (e.target.accumulatorBlock(acc).first == 0)
      vector = e.vectorBits(whole);
  }

  /// Moves to the k's from `k` (uniform, a multiple of the unrolled ones) on; k is null where there are no others.
  void moveTo(V k) {
    now = tile;
    nowTags = tagBase;
    if (!k)
      return;
    now.base = moved(tile.base, movingK, k);
    if (e.target.wantsTags())
      nowTags = moved(tagBase, movingTags, k);
    loaded.clear();
  }

  /// Lane value of type acc: the element of result register `reg` at the `k`-th unrolled k.
  V get(unsigned reg, unsigned k) {
    unsigned index = reg << kBits | k;
    uint64_t image = registerImage(tile.offsets, index);
    if (V &known = loaded[image])
      return known;
    unsigned first = index;
    for (unsigned bit : vector)
      first &= ~(1u << bit);
    llvm::SmallVector<unsigned> group{first};
    for (unsigned bit : vector)
      for (unsigned i = 0, n = group.size(); i < n; ++i)
        group.push_back(group[i] | 1u << bit);
    llvm::Type *memory = e.memoryType(type);
    Lanes tags;
    if (e.target.wantsTags())
      for (unsigned r : group)
        tags.push_back(e.at(nowTags, registerImage(original, r) ^ origin));
    auto values = e.target.loadShared(e.b, memory, group.size(), e.sharedOffset(now, registerImage(now.offsets, first)),
                                      nullptr, tags);
    for (auto [r, v] : llvm::zip_equal(group, values))
      loaded[registerImage(tile.offsets, r)] = widened(v);
    return loaded[image];
  }

private:
  Base moved(Base base, llvm::ArrayRef<uint64_t> bases, V k) {
    uint64_t mask = 0;
    V offset = e.applyBits(bases, k, mask);
    if (!offset)
      return base;
    offset = e.target.splat(e.b, offset);
    base.value = (base.mask & mask) ? e.b.CreateXor(base.value, offset) : e.b.CreateOr(base.value, offset, "", true);
    base.mask |= mask;
    return base;
  }
  V widened(V v) {
    llvm::Type *to = e.target.laneType(acc);
    if (v->getType() == to)
      return v;
    if (tt::isFloat8(type))
      return e.fromFp8(v, type, to);
    return acc->isIntegerTy() ? e.b.CreateSExt(v, to) : e.b.CreateFPExt(v, to);
  }

  Emitter &e;
  mlir::Type type;
  unsigned kBits, unrolledBits;
  llvm::Type *acc;
  SharedTile tile, now;
  LinearLayout original; ///< of tags
  uint64_t origin = 0, kMask = 0;
  Base tagBase, nowTags;
  llvm::SmallVector<uint64_t> movingK, movingTags; ///< images of the bits of k that the loop counts
  llvm::SmallVector<unsigned> vector;
  llvm::DenseMap<uint64_t, V> loaded; ///< by image, of the k's moved to last
};

LogicalResult Emitter::emitLocalDot(ttg::LocalDotOp op) {
  const LinearLayout &layout = layoutOf(op.getType());
  auto typeA = mlir::cast<ttg::MemDescType>(op.getA().getType()),
       typeB = mlir::cast<ttg::MemDescType>(op.getB().getType());
  llvm::Type *acc = scalarType(op.getType());
  unsigned k = typeA.getShape().back(), kBits = llvm::Log2_32(k);
  LinearLayout layoutA = operandLayout(layout, typeA.getShape(), true),
               layoutB = operandLayout(layout, typeB.getShape(), false);
  Lanes results(get(op.getC()));
  auto rowOf = numbersOf(layoutA, kBits, results.size()), columnOf = numbersOf(layoutB, kBits, results.size());
  auto [rows, columns] = target.accumulatorBlock(acc);

  // Enough k's at once for the widest vectors along k, and to hide the loop.
  unsigned widest =
      16 / std::max(1u, std::min(storageBytes(typeA.getElementType()), storageBytes(typeB.getElementType())));
  unsigned unrolledBits = std::min<unsigned>(kBits, rows ? 2 : llvm::Log2_32(std::clamp(widest, 2u, 8u)));
  unsigned unrolled = 1u << unrolledBits;

  // Registers of one block of rows and columns, block by block.
  llvm::MapVector<std::pair<unsigned, unsigned>, llvm::SmallVector<unsigned>> blocks;
  for (unsigned r = 0; r < results.size(); ++r)
    blocks[{rows ? rowOf[r] / rows : 0, columns ? columnOf[r] / columns : 0}].push_back(r);

  DotOperand operandA(*this, op.getA(), layoutA, kBits, unrolledBits, acc),
      operandB(*this, op.getB(), layoutB, kBits, unrolledBits, acc);
  for (auto &[at, registers] : blocks) {
    Lanes sums;
    for (unsigned r : registers)
      sums.push_back(results[r]);
    auto multiply = [&](V from) {
      operandA.moveTo(from);
      operandB.moveTo(from);
      for (unsigned i = 0; i < unrolled; ++i)
        for (auto [sum, r] : llvm::zip_equal(sums, registers)) {
          V x = operandA.get(r, i), y = operandB.get(r, i);
          sum = acc->isIntegerTy() ? b.CreateAdd(sum, b.CreateMul(x, y))
                                   : b.CreateIntrinsic(llvm::Intrinsic::fmuladd, {sum->getType()}, {x, y, sum});
        }
    };
    if (k == unrolled) {
      multiply(nullptr);
    } else {
      llvm::BasicBlock *before = b.GetInsertBlock(), *loop = newBlock("dot"), *after = newBlock("dot.end");
      b.CreateBr(loop);
      b.SetInsertPoint(loop);
      llvm::PHINode *counter = b.CreatePHI(b.getInt32Ty(), 2);
      counter->addIncoming(b.getInt32(0), before);
      llvm::SmallVector<llvm::PHINode *> phis;
      for (V &sum : sums) {
        phis.push_back(b.CreatePHI(sum->getType(), 2));
        phis.back()->addIncoming(sum, before);
        sum = phis.back();
      }
      multiply(counter);
      llvm::BasicBlock *latch = b.GetInsertBlock();
      for (auto [phi, sum] : llvm::zip_equal(phis, sums))
        phi->addIncoming(sum, latch);
      V next = b.CreateAdd(counter, b.getInt32(unrolled), "", true, true);
      counter->addIncoming(next, latch);
      b.CreateCondBr(b.CreateICmpULT(next, b.getInt32(k)), loop, after);
      b.SetInsertPoint(after);
    }
    for (auto [r, sum] : llvm::zip_equal(registers, sums))
      results[r] = sum;
  }
  set(op.getResult(), std::move(results));
  return success();
}

} // namespace tessera::codegen
