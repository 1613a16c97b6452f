// Reductions, as ReductionPlan says: over the registers of a lane, over the lanes of a warp by exchange, over warps
// through scratch. The order is a function of the layout alone, so two runs give the same bits.
#include "DebugInfo.h"
#include "Emitter.h"

#include "tessera/passes/Allocation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/OwningOpRef.h"

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
/// `inOrder`: what a chain combines with, where that is not the region itself.
LogicalResult Emitter::combineAll(mlir::Region &region, llvm::SmallVectorImpl<Lanes> &items, mlir::Region *inOrder) {
  unsigned chains = std::min<unsigned>(kChains, items.size());
  for (unsigned i = chains; i < items.size(); ++i)
    if (failed(combine(inOrder ? *inOrder : region, items[i % chains], items[i], items[i % chains])))
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

// Index reductions: a combination that keeps the better of two (value, index) pairs compares their indices, so that
// ties go to the lower one. Where a lane combines its registers from low to high index, that comparison's outcome is
// known, and what is left of the combination is a third of it. Long argmax reductions are made of this.

/// Whether `v` is a range that rises by one along `axis`, and is the same along the others.
static bool risesAlong(mlir::Value v, unsigned axis) {
  while (mlir::Operation *op = v.getDefiningOp()) {
    if (auto range = mlir::dyn_cast<tt::MakeRangeOp>(op))
      return range.getStart() < range.getEnd() && int32_t(range.getStart()) >= 0 && int32_t(range.getEnd()) > 0;
    if (auto expand = mlir::dyn_cast<tt::ExpandDimsOp>(op)) {
      if (expand.getAxis() == axis)
        return false;
      axis -= expand.getAxis() < axis;
    } else if (auto broadcast = mlir::dyn_cast<tt::BroadcastOp>(op)) {
      if (mlir::cast<mlir::RankedTensorType>(broadcast.getSrc().getType()).getDimSize(axis) == 1)
        return false;
    } else if (!mlir::isa<ttg::ConvertLayoutOp>(op)) {
      return false;
    }
    v = op->getOperand(0);
  }
  return false;
}

/// A copy of `op` whose combination is for a first tuple with an index below the second's; null where it compares none.
static mlir::OwningOpRef<tt::ReduceOp> combinedInOrder(tt::ReduceOp op) {
  mlir::OwningOpRef<tt::ReduceOp> copy(op.clone());
  mlir::Block &block = copy->getCombineOp().front();
  unsigned n = op.getSrcs().size();
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(&block);
  bool known = false;
  for (unsigned i = 0; i < n; ++i) {
    mlir::Value low = block.getArgument(i), high = block.getArgument(n + i);
    auto result = block.getTerminator()->getOperand(i).getDefiningOp<mlir::arith::SelectOp>();
    // A running result's index is below the next one's only if it is one of those before.
    if (!result || !((result.getTrueValue() == low && result.getFalseValue() == high) ||
                     (result.getTrueValue() == high && result.getFalseValue() == low)))
      continue;
    if (!risesAlong(op.getSrcs()[i], op.getAxis()))
      continue;
    for (auto compare : llvm::make_early_inc_range(block.getOps<mlir::arith::CmpIOp>())) {
      bool straight = compare.getLhs() == low && compare.getRhs() == high;
      if (!straight && !(compare.getLhs() == high && compare.getRhs() == low))
        continue;
      using P = mlir::arith::CmpIPredicate;
      P p = compare.getPredicate();
      bool below = p == P::slt || p == P::sle || p == P::ult || p == P::ule || p == P::ne;
      bool above = p == P::sgt || p == P::sge || p == P::ugt || p == P::uge || p == P::ne;
      auto outcome = mlir::arith::ConstantIntOp::create(builder, compare.getLoc(), straight ? below : above, 1);
      compare.replaceAllUsesWith(outcome.getResult());
      compare.erase();
      known = true;
    }
  }
  if (!known)
    return nullptr;
  for (mlir::Operation &o : llvm::make_early_inc_range(block)) {
    llvm::SmallVector<mlir::Value> folded;
    builder.setInsertionPoint(&o);
    if (!o.hasTrait<mlir::OpTrait::ConstantLike>() && succeeded(builder.tryFold(&o, folded)) && !folded.empty())
      o.replaceAllUsesWith(folded);
  }
  for (mlir::Operation &o : llvm::make_early_inc_range(llvm::reverse(block)))
    if (mlir::isOpTriviallyDead(&o))
      o.erase();
  return copy;
}

/// Whether registers of a lane that hold elements further along the axis do so in every lane and warp: then they can be
/// put in order.
static bool registersAreOrdered(const LinearLayout &layout, unsigned axis) {
  uint64_t own = 0, others = 0;
  for (const LinearLayout::In &in : layout.ins())
    for (uint64_t basis : in.bases)
      (in.dim == HwDim::Register ? own : others) |= uint64_t(layout.coords(basis)[axis]);
  return (own & others) == 0;
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
  // Far lanes first, unless the target likes it the other way: the last exchanges are between neighbours.
  llvm::SmallVector<unsigned> order(masks);
  if (!target.reducesNearLanesFirst())
    std::reverse(order.begin(), order.end());
  bool whole = masks.size() == llvm::Log2_32(target.warpSize());
  unsigned done = 0;
  for (unsigned mask : order) {
    Lanes other;
    for (V v : tuple)
      other.push_back(target.reductionPartner(b, v, mask, done, whole));
    if (failed(combine(op.getCombineOp(), tuple, other, tuple)))
      return failure();
    done |= mask;
  }
  if (whole)
    for (V &v : tuple)
      v = target.reductionResult(b, v);
  return success();
}

/// Operations in exchanges between lanes that are worth a function: of argmax along the short side of a large tile the
/// assembler would have thousands, in seconds.
static constexpr unsigned kMostInlined = 2048;

/// reduceLanes as a function of one tuple, where written out for each it would be too much; else null.
mlir::FailureOr<llvm::Function *> Emitter::laneReduction(tt::ReduceOp op, const ReductionPlan &plan) {
  mlir::Region &region = op.getCombineOp();
  unsigned perStep = llvm::range_size(region.front().without_terminator());
  if (perStep < 4 || plan.registersOf.size() * plan.laneMasks.size() * perStep <= kMostInlined)
    return nullptr;
  for (mlir::Operation &o : region.front())
    for (mlir::Value v : o.getOperands())
      if (v.getParentRegion() != &region && !llvm::all_of(get(v), llvm::IsaPred<llvm::Constant>))
        return nullptr;
  llvm::SmallVector<llvm::Type *> types;
  for (mlir::Value v : op.getSrcs())
    types.push_back(get(v).front()->getType());
  llvm::Type *tuple = llvm::StructType::get(b.getContext(), types);
  auto *f = llvm::Function::Create(llvm::FunctionType::get(tuple, types, false), llvm::GlobalValue::InternalLinkage,
                                   "tessera.reduce", llvmModule);
  for (auto attribute : {llvm::Attribute::NoInline, llvm::Attribute::NoUnwind, llvm::Attribute::Convergent})
    f->addFnAttr(attribute);
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "", f));
  b.SetCurrentDebugLocation({});
  std::unique_ptr<DebugInfo> lines = std::move(debug); // they belong to the kernel
  llvm::Function *kernel = std::exchange(function, f);
  Lanes values;
  for (llvm::Argument &a : f->args())
    values.push_back(&a);
  LogicalResult done = reduceLanes(op, plan.laneMasks, values);
  if (succeeded(done))
    b.CreateAggregateRet(values.data(), values.size());
  function = kernel;
  debug = std::move(lines);
  return failed(done) ? mlir::FailureOr<llvm::Function *>(failure()) : f;
}

LogicalResult Emitter::emitReduce(tt::ReduceOp op) {
  ReductionPlan plan = planOf(op);
  if (plan.crossesBlocks)
    return op.emitOpError("over elements of several programs of a cluster cannot be lowered");
  unsigned numResults = plan.registersOf.size(), numOperands = op.getSrcs().size();
  llvm::SmallVector<llvm::ArrayRef<V>> sources;
  for (mlir::Value v : op.getSrcs())
    sources.push_back(get(v));

  mlir::OwningOpRef<tt::ReduceOp> ordered;
  if (numOperands > 1 && plan.registersOf.front().size() > kChains && registersAreOrdered(plan.src, plan.axis))
    ordered = combinedInOrder(op);
  mlir::Region *inOrder = ordered ? &ordered->getCombineOp() : nullptr;
  auto acrossLanes = laneReduction(op, plan);
  if (failed(acrossLanes))
    return failure();
  llvm::SmallVector<Lanes> results; // per result register a tuple
  for (auto &registers : plan.registersOf) {
    if (inOrder)
      llvm::sort(registers, [&](unsigned a, unsigned c) {
        return plan.src.coords(registerImage(plan.src, a))[plan.axis] <
               plan.src.coords(registerImage(plan.src, c))[plan.axis];
      });
    llvm::SmallVector<Lanes> items;
    for (unsigned r : registers) {
      Lanes &item = items.emplace_back();
      for (auto source : sources)
        item.push_back(source[r]);
    }
    if (failed(combineAll(op.getCombineOp(), items, inOrder)))
      return failure();
    Lanes &tuple = items.front();
    if (llvm::Function *f = *acrossLanes) {
      V call = b.CreateCall(f, tuple);
      for (auto [i, v] : llvm::enumerate(tuple))
        v = b.CreateExtractValue(call, i);
    } else if (failed(reduceLanes(op, plan.laneMasks, tuple))) {
      return failure();
    }
    results.push_back(std::move(tuple));
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

/// Where a lane would combine this many partials, and every warp those of the same elements, the warps share the elements
/// and exchange the results: 32 rows in as many warps of the CPU, or 16 of a GPU. Two more barriers are little beside it.
static constexpr unsigned kWorthSharing = 512;

/// The result's layout with elements of a lane's registers given to the warps that hold copies of them; the layout itself
/// where that is not worth it.
static LinearLayout sharedByWarps(const ReductionPlan &plan) {
  const LinearLayout &layout = plan.result;
  LinearLayout::Bases registers(layout.bases(HwDim::Register)), warps(layout.bases(HwDim::Warp));
  if (plan.scratchParts < 16 || (uint64_t(plan.scratchParts) << registers.size()) < kWorthSharing)
    return layout;
  for (uint64_t &basis : warps)
    if (!basis && !registers.empty())
      basis = registers.pop_back_val();
  llvm::SmallVector<LinearLayout::In> ins(layout.ins());
  for (auto &in : ins)
    if (in.dim == HwDim::Register || in.dim == HwDim::Warp)
      in.bases = in.dim == HwDim::Register ? registers : warps;
  return LinearLayout(layout.shape(), ins);
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
      target.storeShared(b, memory[i], byteOffset(store, registerImage(stored, r), bytes[i], b.getInt32(area[i])),
                         first, {toMemory(v, memory[i])}, {});
  barrier();

  // Each lane reads a vector of partials; when that leaves many, lanes that hold copies of the result share the work.
  const LinearLayout layout = sharedByWarps(plan);
  const bool shared = layout.numBits(HwDim::Register) != plan.result.numBits(HwDim::Register);
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
  llvm::SmallVector<Lanes> combined(size_t(1) << layout.numBits(HwDim::Register));
  for (auto [r, tuple] : llvm::enumerate(combined)) {
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
  if (!shared) {
    results = std::move(combined);
    return success();
  }

  barrier(); // the results take the place of partials
  Base mine = baseOf(layout), all = baseOf(plan.result);
  first = isFirstCopy(layout.freeMask(HwDim::Lane), layout.freeMask(HwDim::Warp));
  for (auto [r, tuple] : llvm::enumerate(combined))
    for (auto [i, v] : llvm::enumerate(tuple))
      target.storeShared(b, memory[i], byteOffset(mine, registerImage(layout, r), bytes[i], b.getInt32(area[i])), first,
                         {toMemory(v, memory[i])}, {});
  barrier();
  for (auto [r, tuple] : llvm::enumerate(results))
    for (auto [i, v] : llvm::enumerate(tuple))
      v = fromMemory(target.loadShared(b, memory[i], 1,
                                       byteOffset(all, registerImage(plan.result, r), bytes[i], b.getInt32(area[i])),
                                       nullptr, {}).front(),
                     scalarType(op.getSrcs()[i].getType()));
  return success();
}

} // namespace tessera::codegen
