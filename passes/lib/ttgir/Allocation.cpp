// Shared memory: how much each op needs, and where it lies (interval colouring by first fit over liveness).
#include "tessera/passes/Allocation.h"

#include "tessera/ir/ttng/Ttng.h"
#include "tessera/passes/Passes.h"
#include "tessera/passes/TargetModel.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

unsigned storageBytes(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (isa<tt::PointerType>(element))
    return 8;
  if (auto desc = dyn_cast<ttg::MemDescType>(element))
    return storageBytes(desc.getElementType());
  return element.isIntOrFloat() ? llvm::divideCeil(element.getIntOrFloatBitWidth(), 8) : 8;
}

ConversionPlan planOf(ttg::ConvertLayoutOp op) {
  ScratchLimits limits{kMaxConversionScratchBytes};
  if (auto attr = op->getAttrOfType<IntegerAttr>(kScratchLimit))
    limits.mostBytes = std::max<int64_t>(attr.getInt(), 1);
  return planConversion(ttg::toLinearLayout(op.getSrc().getType()), ttg::toLinearLayout(op.getType()),
                        storageBytes(op.getType()), TargetModel::of(op->getParentOfType<ModuleOp>()).shared, limits);
}

ReductionPlan planOf(tt::ReduceOp op) {
  return planReduction(ttg::toLinearLayout(cast<RankedTensorType>(op.getSrcs().front().getType())), op.getAxis());
}

static uint64_t reductionArea(tt::ReduceOp op, const ReductionPlan &plan, unsigned operand) {
  return llvm::alignTo(uint64_t(plan.scratchElements) * storageBytes(op.getSrcs()[operand].getType()),
                       kSharedAlignment);
}

unsigned reductionScratchOffset(tt::ReduceOp op, const ReductionPlan &plan, unsigned operand) {
  unsigned offset = 0;
  for (unsigned i = 0; i < operand; ++i)
    offset += reductionArea(op, plan, i);
  return offset;
}

unsigned scratchBytes(Operation *op) {
  auto hasLayout = [](Value v) {
    auto type = dyn_cast<RankedTensorType>(v.getType());
    return type && isa_and_nonnull<ttg::DistributedEncoding>(type.getEncoding());
  };
  if (auto convert = dyn_cast<ttg::ConvertLayoutOp>(op)) {
    if (!hasLayout(convert.getSrc()) || !hasLayout(convert.getResult()))
      return 0;
    ConversionPlan plan = planOf(convert);
    return plan.kind == ConversionPlan::Kind::Shared ? plan.scratchElements * storageBytes(convert.getType()) : 0;
  }
  if (auto reduce = dyn_cast<tt::ReduceOp>(op)) {
    if (reduce.getSrcs().empty() || !hasLayout(reduce.getSrcs().front()))
      return 0;
    ReductionPlan plan = planOf(reduce);
    return plan.scratchParts == 1 ? 0 : reductionScratchOffset(reduce, plan, reduce.getSrcs().size());
  }
  return 0;
}

unsigned bufferBytes(Operation *op) {
  auto alloc = dyn_cast<ttg::LocalAllocOp>(op);
  if (!alloc)
    return 0;
  auto type = alloc.getType();
  uint64_t elements = ShapedType::getNumElements(type.getAllocShape());
  if (auto padded = dyn_cast<ttg::PaddedSharedEncodingAttr>(type.getEncoding())) {
    // Padding applies within each buffer; a leading dimension counts buffers.
    uint64_t buffers = type.getAllocShape().size() > padded.getRank() ? type.getAllocShape().front() : 1;
    elements = buffers * (padded.paddedOffset(elements / buffers - 1) + 1);
  }
  return elements * storageBytes(type.getElementType());
}

unsigned bufferAlignment(Operation *op) {
  auto alloc = dyn_cast<ttg::LocalAllocOp>(op);
  return alloc ? ttg::sharedAlignment(alloc.getType()) : kSharedAlignment;
}

std::optional<unsigned> allocationOffset(Operation *op) {
  auto attr = op->getAttrOfType<IntegerAttr>(kAllocationOffset);
  return attr ? std::optional<unsigned>(attr.getInt()) : std::nullopt;
}

#define GEN_PASS_DEF_TTGIRALLOCATESHARED
#include "tessera/passes/Passes.h.inc"

namespace {

/// Where scratch lies apart (TargetModel), it is up to this size: the barrier saved is worth more than the bytes.
constexpr unsigned kSmallScratch = 4096;

struct Interval {
  Operation *op;
  unsigned bytes, begin, end; ///< live in [begin, end], as op numbers
  unsigned offset = 0;
};

class AllocateShared : public impl::TtgirAllocateSharedBase<AllocateShared> {
public:
  using TtgirAllocateSharedBase::TtgirAllocateSharedBase;

  void runOnOperation() override {
    apart = TargetModel::of(getOperation()).scratchApart;
    unsigned total = 0;
    for (auto func : getOperation().getOps<tt::FuncOp>()) {
      SmallVector<Interval> intervals = liveness(func);
      unsigned needed = place(intervals);
      while (needed > maxSharedBytes && shrinkLargest(intervals)) {
        intervals = liveness(func);
        needed = place(intervals);
      }
      total = std::max(total, needed);
      if (total > maxSharedBytes) {
        const Interval *most = &intervals.front();
        for (const Interval &i : intervals)
          if (i.bytes > most->bytes)
            most = &i;
        most->op->emitError() << "needs " << most->bytes
                              << " bytes of shared memory; with what is live at the same time " << total
                              << ", but a program may use " << maxSharedBytes.getValue()
                              << ": use smaller tiles or fewer stages";
        return signalPassFailure();
      }
    }
    Builder b(&getContext());
    getOperation()->setAttr(ttg::sharedAttr, b.getI32IntegerAttr(total));
  }

private:
  bool apart = true;

  /// Makes the conversion that needs the most scratch take more passes; false when none can.
  static bool shrinkLargest(ArrayRef<Interval> intervals) {
    SmallVector<Interval> order(intervals);
    llvm::stable_sort(order, [](const Interval &a, const Interval &b) { return a.bytes > b.bytes; });
    for (const Interval &i : order) {
      if (!isa<ttg::ConvertLayoutOp>(i.op))
        continue;
      Attribute before = i.op->getAttr(kScratchLimit);
      i.op->setAttr(kScratchLimit, Builder(i.op->getContext()).getI32IntegerAttr(i.bytes / 2));
      if (scratchBytes(i.op) < i.bytes)
        return true;
      before ? i.op->setAttr(kScratchLimit, before) : (void)i.op->removeAttr(kScratchLimit);
    }
    return false;
  }

  SmallVector<Interval> liveness(tt::FuncOp func) {
    llvm::DenseMap<Operation *, std::pair<unsigned, unsigned>> span; // numbers of an op's first and last nested op
    SmallVector<Interval> intervals;
    unsigned n = 0;
    std::function<void(Region &)> number = [&](Region &region) {
      for (Block &block : region)
        for (Operation &op : block) {
          unsigned begin = n++;
          for (Region &nested : op.getRegions())
            number(nested);
          span[&op] = {begin, n++};
          if (unsigned bytes = scratchBytes(&op))
            intervals.push_back({&op, bytes, begin, begin});
          else if (unsigned size = bufferBytes(&op))
            intervals.push_back({&op, size, begin, begin});
        }
    };
    number(func.getBody());
    bool structured = llvm::hasSingleElement(func.getBody());
    for (auto [i, interval] : llvm::enumerate(intervals)) {
      if (bufferBytes(interval.op)) {
        interval.end = structured ? lastUse(interval.op, span) : n;
      } else if (apart && interval.bytes <= kSmallScratch) { // until the next scratch op, whose barrier ends our reads
        for (const Interval &next : llvm::drop_begin(intervals, i + 1))
          if (!bufferBytes(next.op)) {
            if (next.bytes <= kSmallScratch)
              interval.end = next.begin;
            break;
          }
      }
    }
    return intervals;
  }

  static bool isMemDesc(Value v) { return isa<ttg::MemDescType>(v.getType()); }

  /// The number up to which any use of the buffer or of a view of it can run.
  static unsigned lastUse(Operation *alloc, const llvm::DenseMap<Operation *, std::pair<unsigned, unsigned>> &span) {
    unsigned end = span.lookup(alloc).second;
    SmallVector<Value> views{alloc->getResult(0)};
    llvm::DenseSet<Value> seen;
    while (!views.empty()) {
      Value view = views.pop_back_val();
      if (!seen.insert(view).second)
        continue;
      for (OpOperand &use : view.getUses()) {
        Operation *user = use.getOwner();
        // A use in a loop that does not contain the allocation runs until the loop ends; one in a branch does no harm
        // there.
        Operation *outer = user;
        for (Operation *p = user; p && p->getBlock() != alloc->getBlock(); p = p->getParentOp())
          if (isa_and_nonnull<LoopLikeOpInterface>(p->getParentOp()))
            outer = p->getParentOp();
        end = std::max(end, span.lookup(outer).second);
        for (Value result : user->getResults())
          if (isa<ttg::MemDescType>(result.getType()))
            views.push_back(result);
        // An asynchronous product reads until a wait returns its result: follow that as if it were a view.
        if (auto dot = dyn_cast<ttng::WarpGroupDotOp>(user); dot && dot.getIsAsync())
          views.push_back(dot.getResult());
        if (auto wait = dyn_cast<ttng::WarpGroupDotWaitOp>(user); wait && !isMemDesc(view) && wait.getPendings() > 0)
          views.push_back(wait.getResult(use.getOperandNumber()));
        if (auto loop = dyn_cast<scf::ForOp>(user)) {
          unsigned i = use.getOperandNumber();
          if (i >= loop.getNumControlOperands())
            views.push_back(loop.getRegionIterArg(i - loop.getNumControlOperands()));
        }
        if (isa<scf::WhileOp>(user))
          views.push_back(cast<scf::WhileOp>(user).getBeforeArguments()[use.getOperandNumber()]);
        if (user->hasTrait<OpTrait::IsTerminator>())
          if (Operation *parent = user->getParentOp()) {
            end = std::max(end, span.lookup(parent).second);
            for (Region &region : parent->getRegions())
              for (BlockArgument arg : region.getArguments())
                if (arg.getType() == view.getType())
                  views.push_back(arg);
            for (Value result : parent->getResults())
              if (result.getType() == view.getType())
                views.push_back(result);
          }
      }
    }
    return end;
  }

  /// First fit, large intervals first. Returns the bytes used.
  static unsigned place(SmallVectorImpl<Interval> &intervals) {
    SmallVector<Interval *> order;
    for (Interval &i : intervals)
      order.push_back(&i);
    llvm::stable_sort(order, [](Interval *a, Interval *b) { return a->bytes > b->bytes; });
    SmallVector<Interval *> placed;
    unsigned total = 0;
    for (Interval *i : order) {
      SmallVector<Interval *> rivals;
      for (Interval *p : placed)
        if (p->begin <= i->end && i->begin <= p->end)
          rivals.push_back(p);
      llvm::sort(rivals, [](Interval *a, Interval *b) { return a->offset < b->offset; });
      for (Interval *r : rivals) {
        if (i->offset + i->bytes <= r->offset)
          break;
        i->offset = std::max<unsigned>(i->offset, llvm::alignTo(r->offset + r->bytes, bufferAlignment(i->op)));
      }
      placed.push_back(i);
      total = std::max(total, i->offset + i->bytes);
      Builder b(i->op->getContext());
      i->op->setAttr(kAllocationOffset, b.getI32IntegerAttr(i->offset));
    }
    return total;
  }
};

} // namespace
} // namespace tessera
