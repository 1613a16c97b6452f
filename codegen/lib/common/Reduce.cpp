// Reductions, as ReductionPlan says: over the registers of a lane, over the lanes of a warp by exchange, over warps
// through scratch. The order is a function of the layout alone, so two runs give the same bits.
#include "Emitter.h"

#include "tessera/passes/Allocation.h"

namespace tessera::codegen {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

/// Independent chains kept going at once while a lane combines its registers: latency is hidden, sums of products still
/// become fused multiply-adds.
static constexpr unsigned kChains = 4;

LogicalResult Emitter::combine(mlir::Region &region, llvm::ArrayRef<V> a, llvm::ArrayRef<V> c, Lanes &result) {
  mlir::Block &block = region.front();
  for (auto [i, argument] : llvm::enumerate(block.getArguments()))
    set(argument, {i < a.size() ? a[i] : c[i - a.size()]});
  bool outer = std::exchange(scalarsAreLanes, true);
  yielded.emplace_back();
  LogicalResult done = emitBlock(block);
  result = yielded.pop_back_val();
  scalarsAreLanes = outer;
  return done;
}

/// Combines `items` (tuples, one value per operand) to one: kChains running results, then a tree of those.
LogicalResult Emitter::combineAll(mlir::Region &region, llvm::SmallVectorImpl<Lanes> &items) {
  unsigned chains = std::min<unsigned>(kChains, items.size());
  for (unsigned i = chains; i < items.size(); ++i)
    if (failed(combine(region, items[i % chains], items[i], items[i % chains])))
      return failure();
  for (; chains > 1; chains = (chains + 1) / 2)
    for (unsigned i = 0; i < chains / 2; ++i) {
      // Neighbours first: results move to the front.
      if (failed(combine(region, items[2 * i], items[2 * i + 1], items[i])))
        return failure();
      if (i + 1 == chains / 2 && chains % 2)
        items[i + 1] = items[chains - 1];
    }
  return success();
}

/// The name under which a target may know the combination of a whole warp in one instruction.
static llvm::StringRef combinerName(tt::ReduceOp op) {
  mlir::Operation *single = op.getSingleCombiner();
  if (!single)
    return {};
  return llvm::StringSwitch<llvm::StringRef>(single->getName().getStringRef())
      .Case("arith.addi", "add")
      .Case("arith.andi", "and")
      .Case("arith.ori", "or")
      .Case("arith.xori", "xor")
      .Case("arith.minsi", "min")
      .Case("arith.maxsi", "max")
      .Case("arith.minui", "umin")
      .Case("arith.maxui", "umax")
      .Default({});
}

LogicalResult Emitter::reduceLanes(tt::ReduceOp op, llvm::ArrayRef<unsigned> masks, Lanes &tuple) {
  if (tuple.size() == 1 && !masks.empty())
    if (llvm::StringRef name = combinerName(op); !name.empty())
      if (V whole = target.warpReduce(b, tuple[0], 1u << masks.size(), name)) {
        tuple[0] = whole;
        return success();
      }
  // Far lanes first: the last exchanges are between neighbours.
  for (unsigned mask : llvm::reverse(masks)) {
    Lanes other;
    for (V v : tuple)
      other.push_back(target.shuffleXor(b, v, mask));
    if (failed(combine(op.getCombineOp(), tuple, other, tuple)))
      return failure();
  }
  return success();
}

LogicalResult Emitter::emitReduce(tt::ReduceOp op) {
  ReductionPlan plan = planOf(op);
  if (plan.crossesBlocks)
    return op.emitOpError("over elements of several programs of a cluster cannot be lowered");
  unsigned numResults = plan.registersOf.size(), numOperands = op.getSrcs().size();
  llvm::SmallVector<llvm::ArrayRef<V>> sources;
  for (mlir::Value v : op.getSrcs())
    sources.push_back(get(v));

  llvm::SmallVector<Lanes> results; // per result register a tuple
  for (auto &registers : plan.registersOf) {
    llvm::SmallVector<Lanes> items;
    for (unsigned r : registers) {
      Lanes &item = items.emplace_back();
      for (auto source : sources)
        item.push_back(source[r]);
    }
    if (failed(combineAll(op.getCombineOp(), items)) || failed(reduceLanes(op, plan.laneMasks, items.front())))
      return failure();
    results.push_back(std::move(items.front()));
  }
  if (plan.scratchParts > 1 && failed(reduceWarps(op, plan, results)))
    return failure();

  for (unsigned i = 0; i < numOperands; ++i) {
    Lanes lanes;
    for (unsigned r = 0; r < numResults; ++r)
      lanes.push_back(results[r][i]);
    mlir::Value result = op->getResult(i);
    if (!isTensor(result))
      lanes = {target.firstLane(b, lanes.front())};
    else if (lanes.size() != numValues(result.getType()))
      return op.emitOpError("has a result layout that is not the reduced layout of its operand");
    set(result, std::move(lanes));
  }
  return success();
}

/// The plan numbers scratch [part][result element]; here the parts of one element lie next to each other, so that a
/// lane reads several at once.
static LinearLayout partsInnermost(const ReductionPlan &plan) {
  uint64_t elements = plan.result.numElements();
  llvm::SmallVector<LinearLayout::In> ins(plan.scratchStore.ins());
  for (auto &in : ins)
    for (auto &basis : in.bases)
      basis = basis % elements * plan.scratchParts | basis / elements;
  return LinearLayout(plan.scratchStore.shape(), ins);
}

LogicalResult Emitter::reduceWarps(tt::ReduceOp op, const ReductionPlan &plan, llvm::SmallVectorImpl<Lanes> &results) {
  auto scratch = allocationOffset(op);
  if (!scratch)
    return op.emitOpError("needs shared memory but has no allocation.offset");
  llvm::SmallVector<llvm::Type *> memory;
  llvm::SmallVector<unsigned> bytes, area;
  for (auto [i, v] : llvm::enumerate(op.getSrcs())) {
    memory.push_back(memoryType(v.getType()));
    bytes.push_back(storageBytes(mlir::getElementTypeOrSelf(v.getType())));
    area.push_back(*scratch + reductionScratchOffset(op, plan, i));
  }

  LinearLayout stored = partsInnermost(plan);
  Base store = baseOf(stored);
  V first = isFirstCopy(plan.idleLanes, plan.idleWarps);
  for (auto [r, tuple] : llvm::enumerate(results))
    for (auto [i, v] : llvm::enumerate(tuple))
      target.storeShared(b, memory[i], byteOffset(store, registerImage(stored, r), bytes[i], b.getInt32(area[i])), first,
                         {toMemory(v, memory[i])}, {});
  target.barrier(b);

  // Each lane reads a vector of partials; when that leaves many, lanes that hold copies of the result share the work.
  const LinearLayout &layout = plan.result;
  unsigned parts = plan.scratchParts, vector = parts;
  for (unsigned size : bytes)
    vector = std::min(vector, 16 / size);
  unsigned loads = parts / vector;
  uint64_t freeLanes = 0; // lane bits that change no element; a dependent bit would pair different ones
  for (auto [bit, basis] : llvm::enumerate(layout.bases(HwDim::Lane)))
    freeLanes |= uint64_t(basis == 0) << bit;
  llvm::SmallVector<unsigned> shareMasks;
  LinearLayout::Bases shareOf(layout.numBits(HwDim::Lane), 0);
  if (loads > 2 && unsigned(llvm::popcount(freeLanes)) >= llvm::Log2_32(loads)) {
    for (unsigned bit = 0; bit < shareOf.size() && (1u << shareMasks.size()) < loads; ++bit)
      if (freeLanes >> bit & 1) {
        shareOf[bit] = uint64_t(vector) << shareMasks.size();
        shareMasks.push_back(1u << bit);
      }
    loads = 1;
  }
  // Where a lane starts to read: (element * parts + its share) * size.
  llvm::SmallVector<LinearLayout::In> ins(layout.ins());
  for (auto &in : ins)
    for (auto [bit, basis] : llvm::enumerate(in.bases)) {
      basis *= parts;
      if (in.dim == HwDim::Lane)
        basis ^= shareOf[bit];
    }
  LinearLayout loaded({int64_t(plan.scratchElements)}, ins);
  Base load = baseOf(loaded);
  for (auto [r, tuple] : llvm::enumerate(results)) {
    llvm::SmallVector<Lanes> items(loads * vector);
    for (unsigned i = 0; i < memory.size(); ++i)
      for (unsigned l = 0; l < loads; ++l) {
        V offset = byteOffset(load, registerImage(loaded, r) | l * vector, bytes[i], b.getInt32(area[i]));
        for (auto [k, v] : llvm::enumerate(target.loadShared(b, memory[i], vector, offset, nullptr, {})))
          items[l * vector + k].push_back(fromMemory(v, scalarType(op.getSrcs()[i].getType())));
      }
    if (failed(combineAll(op.getCombineOp(), items)))
      return failure();
    for (unsigned mask : shareMasks) {
      Lanes other;
      for (V v : items.front())
        other.push_back(target.shuffleXor(b, v, mask));
      if (failed(combine(op.getCombineOp(), items.front(), other, items.front())))
        return failure();
    }
    tuple = std::move(items.front());
  }
  return success();
}

} // namespace tessera::codegen
