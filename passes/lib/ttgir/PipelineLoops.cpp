// Carries out the schedule of a loop: rings of buffers, the pipelined loop with its prologue, and products in flight.
#include "OperandSlices.h"
#include "Pipeliner.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/PatternMatch.h"
#include "tessera/passes/Passes.h"
#include "tessera/passes/Pipelining.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTGIRPIPELINELOOPS
#include "tessera/passes/Passes.h.inc"

namespace {

using namespace pipeliner;

/// Runs `op` only where `predicate` is true. Results are 0, or undefined, elsewhere: whoever uses them does not run
/// then. `copiesUnread`: neither does who reads what copies write.
Operation *predicate(RewriterBase &b, Operation *op, Value predicate, bool copiesUnread) {
  if (isMovable(op) && !isa<tt::LoadOp>(op)) // may well run for nothing
    return op;
  // The number of groups must stay the same; a store to a ring finds its buffer free.
  if (isa<ttg::AsyncCommitGroupOp, ttg::AsyncWaitOp, ttg::LocalStoreOp>(op))
    return op;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  Location loc = op->getLoc();
  auto addTo = [&](MutableOperandRange mask, Type pointers, bool unread = false) {
    Value all = predicate;
    if (auto tile = dyn_cast<RankedTensorType>(pointers)) {
      all = tt::SplatOp::create(b, loc, cast<RankedTensorType>(tt::boolLike(tile)), predicate);
      if (unread)
        all.getDefiningOp()->setAttr(kTripExists, b.getUnitAttr());
    }
    mask.assign(mask.empty() ? all : arith::AndIOp::create(b, loc, all, mask[0].get()).getResult());
    return op;
  };
  if (auto load = dyn_cast<tt::LoadOp>(op))
    return addTo(load.getMaskMutable(), load.getPtr().getType());
  if (auto copy = dyn_cast<ttg::AsyncCopyGlobalToLocalOp>(op))
    return addTo(copy.getMaskMutable(), copy.getSrc().getType(), copiesUnread);
  if (auto store = dyn_cast<tt::StoreOp>(op))
    return addTo(store.getMaskMutable(), store.getPtr().getType());
  auto branch = scf::IfOp::create(b, loc, op->getResultTypes(), predicate, /*withElseRegion=*/op->getNumResults() > 0);
  for (auto [from, to] : llvm::zip(op->getResults(), branch.getResults()))
    b.replaceAllUsesWith(from, to);
  if (op->getNumResults()) {
    b.setInsertionPointToStart(branch.elseBlock());
    SmallVector<Value> nothing;
    for (Type type : op->getResultTypes())
      nothing.push_back(ub::PoisonOp::create(b, loc, type));
    scf::YieldOp::create(b, loc, nothing);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, loc, op->getResults());
  }
  b.moveOpBefore(op, branch.thenBlock(), branch.thenBlock()->begin());
  return branch;
}

/// Whether the op, or one in it, reads a buffer rather than fills it or makes a view of it.
bool readsBuffer(Operation *op) {
  auto isBuffer = [](Type type) { return isa<ttg::MemDescType>(type); };
  return op
      ->walk([&](Operation *inner) {
        bool reads = !isa<ttg::AsyncCopyGlobalToLocalOp, ttg::LocalStoreOp>(inner) &&
                     llvm::any_of(inner->getOperandTypes(), isBuffer) &&
                     llvm::none_of(inner->getResultTypes(), isBuffer);
        return reads ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

class PipelineLoops : public impl::TtgirPipelineLoopsBase<PipelineLoops> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<scf::ForOp> loops;
    bool failed = false;
    module.walk([&](scf::ForOp loop) {
      auto ops = loop.getBody()->without_terminator();
      if (llvm::none_of(ops, [](Operation &op) { return op.hasAttr(kStage); }))
        return;
      for (Operation &op : ops)
        if (int stage = intAttr(&op, kStage).value_or(-1); stage < 0 || stage > kMaxStage || !intAttr(&op, kCluster)) {
          op.emitError() << "is in a scheduled loop: " << kStage << " (0 to " << kMaxStage << ") and " << kCluster
                         << " are needed on every op of it";
          failed = true;
          return;
        }
      if (loop.getUnsignedCmp()) {
        loop.emitError("is in stages, but compares unsigned: ttgir-schedule-loops would have changed that");
        failed = true;
      }
      loops.push_back(loop);
    });
    if (failed)
      return signalPassFailure();
    if (loops.empty())
      return;
    // The analysis knows the IR as it is now.
    llvm::DenseMap<Operation *, AsyncCopy> copies;
    {
      AxisInfoAnalysis axes(module);
      TargetModel target = TargetModel::of(module);
      for (scf::ForOp loop : loops)
        for (auto load : loop.getBody()->getOps<tt::LoadOp>())
          if (auto copy = asAsyncCopy(load, axes, target))
            copies.insert({load, *copy});
    }
    for (scf::ForOp loop : loops)
      if (mlir::failed(pipeline(loop, copies)))
        return signalPassFailure();
    module.walk([](Operation *op) {
      for (StringRef name : {kStage, kCluster, kLatency})
        op->removeAttr(name);
    });
  }

private:
  static constexpr int kMaxStage = 63;
  using Order = std::vector<std::pair<Operation *, unsigned>>; ///< ops with their stages

  LogicalResult pipeline(scf::ForOp loop, const llvm::DenseMap<Operation *, AsyncCopy> &copies) {
    IRRewriter b(&getContext());
    Rings rings = makeRings(b, loop, copies);
    loop = rings.loop;
    yieldOwnValues(b, loop);

    Order order;
    for (Operation &op : loop.getBody()->without_terminator())
      order.push_back({&op, *intAttr(&op, kStage)});
    llvm::stable_sort(order,
                      [](auto &x, auto &y) { return *intAttr(x.first, kCluster) < *intAttr(y.first, kCluster); });
    unsigned last = 0;
    for (auto [op, stage] : order)
      last = std::max(last, stage);

    scf::PipeliningOption options;
    options.getScheduleFn = [&](scf::ForOp, Order &out) { out = order; };
    options.supportDynamicLoops = true;
    options.peelEpilogue = false;
    bool readEarly = llvm::any_of(order, [&](auto &entry) { return entry.second < last && readsBuffer(entry.first); });
    // Not for the first iteration, with which the prologue begins: a branch on whether it exists would merge with the
    // one around the loop, and what the loop carries would begin in several places, which products in flight do not
    // bear.
    Value first;
    options.predicateFn = [&](RewriterBase &b, Operation *op, Value exists) {
      if (!first)
        first = exists;
      return predicate(b, op, exists, /*copiesUnread=*/!readEarly && exists != first);
    };
    auto pending = countPending(rings, order, last);
    options.annotateFn = [&](Operation *op, scf::PipeliningOption::PipelinerPart part, unsigned trip) {
      auto wait = dyn_cast<ttg::AsyncWaitOp>(op);
      if (auto index = wait ? intAttr(wait, kWaitIndex) : std::nullopt) {
        bool prologue = part == scf::PipeliningOption::PipelinerPart::Prologue;
        wait.setNum(pending[*index][prologue ? trip : last]);
        wait->removeAttr(kWaitIndex);
      }
    };
    b.setInsertionPoint(loop);
    bool changed = false;
    FailureOr<scf::ForOp> pipelined = scf::pipelineForLoop(b, loop, options, &changed);
    if (failed(pipelined))
      return loop.emitError("cannot be pipelined with this schedule");
    loop = *pipelined;
    for (UnrealizedConversionCastOp copy : copiesOf(loop))
      b.replaceOp(copy, copy.getInputs());

    leaveInFlight(b, loop);
    Operation *behind = loop;
    while (isa_and_nonnull<ttng::WarpGroupDotWaitOp>(behind->getNextNode()))
      behind = behind->getNextNode();
    b.setInsertionPointAfter(behind);
    if (!rings.waits.empty()) // also those that copy nothing but zeros
      ttg::AsyncWaitOp::create(b, loop.getLoc(), ValueRange(), 0);
    for (ttg::LocalAllocOp buffer : rings.buffers)
      ttg::LocalDeallocOp::create(b, buffer.getLoc(), buffer.getResult());
    return success();
  }

  /// The expansion wants every yielded value to come from an op of the body: `yield %arg` yields a copy of it, made in
  /// the stage of its first user.
  static void yieldOwnValues(RewriterBase &b, scf::ForOp loop) {
    int last = 0;
    for (Operation &op : loop.getBody()->without_terminator())
      last = std::max(last, *intAttr(&op, kStage));
    std::function<int(BlockArgument, llvm::SmallBitVector)> firstUse = [&](BlockArgument arg,
                                                                           llvm::SmallBitVector seen) {
      int first = last;
      if (seen.test(arg.getArgNumber()))
        return first;
      seen.set(arg.getArgNumber());
      for (OpOperand &use : arg.getUses())
        if (use.getOwner() == loop.getBody()->getTerminator())
          first = std::min(first, firstUse(loop.getRegionIterArg(use.getOperandNumber()), seen));
        else
          first = std::min(first, *intAttr(ancestorInBody(loop, use.getOwner()), kStage));
      return first;
    };
    Operation *yield = loop.getBody()->getTerminator();
    SmallVector<std::pair<OpOperand *, int>> borrowed;
    for (OpOperand &operand : yield->getOpOperands())
      if (Operation *op = operand.get().getDefiningOp(); !op || op->getBlock() != loop.getBody())
        borrowed.push_back({&operand, firstUse(loop.getRegionIterArg(operand.getOperandNumber()),
                                               llvm::SmallBitVector(loop.getBody()->getNumArguments()))});
    b.setInsertionPoint(yield);
    for (auto [operand, stage] : borrowed) {
      Type type = operand->get().getType();
      auto copy = UnrealizedConversionCastOp::create(b, yield->getLoc(), TypeRange{type}, operand->get());
      setIntAttr(copy, kStage, stage);
      setIntAttr(copy, kCluster, INT_MAX);
      operand->set(copy.getResult(0));
    }
  }

  /// For each wait and each trip of the prologue, then for the loop: how many groups may be in flight. Trip t commits
  /// for iteration t - stage, so of the group waited for in trip t those follow that are committed later in trip t -
  /// distance, or in a trip after that, before the wait. The loop's first trip has the fewest.
  static SmallVector<SmallVector<unsigned>> countPending(const Rings &rings, const Order &order, unsigned last) {
    llvm::DenseMap<Operation *, int> position, stage;
    SmallVector<Operation *> commits;
    for (auto [i, entry] : llvm::enumerate(order)) {
      position[entry.first] = i;
      stage[entry.first] = entry.second;
      if (isa<ttg::AsyncCommitGroupOp>(entry.first))
        commits.push_back(entry.first);
    }
    SmallVector<SmallVector<unsigned>> counts;
    for (auto &[wait, awaited] : rings.waits) {
      auto &perTrip = counts.emplace_back();
      for (int trip = 0; trip <= int(last); ++trip) {
        unsigned least = UINT_MAX;
        for (Operation *group : awaited) {
          unsigned later = 0;
          int start = trip - (stage[wait] - stage[group]);
          for (Operation *commit : commits)
            for (int t = std::max(start, stage[commit]); t <= trip; ++t)
              later +=
                  (t > start || position[commit] > position[group]) && (t < trip || position[commit] < position[wait]);
          least = std::min(least, later);
        }
        perTrip.push_back(least);
      }
    }
    return counts;
  }

  static SmallVector<UnrealizedConversionCastOp> copiesOf(scf::ForOp loop) {
    SmallVector<UnrealizedConversionCastOp> copies;
    loop->getParentOfType<tt::FuncOp>().walk([&](UnrealizedConversionCastOp op) { copies.push_back(op); });
    return copies;
  }

  /// Products with A in registers are cut in so many, so that some are in flight while the others' registers are
  /// loaded.
  static constexpr unsigned kSlices = 2;

  /// Products marked so stay in flight for an iteration: the wait for that of the trip before comes before the first op
  /// that may write to its buffers; the last ones are waited for behind the loop. A in registers: before these are
  /// loaded there is a wait for the product that they were loaded for in the trip before, the oldest one then.
  static void leaveInFlight(RewriterBase &b, scf::ForOp loop) {
    SmallVector<ttng::WarpGroupDotOp> dots;
    for (auto dot : loop.getBody()->getOps<ttng::WarpGroupDotOp>())
      if (latencyOf(dot) > 0)
        dots.push_back(dot);
    size_t marked = dots.size();
    keepWholeChains(dots);
    if (dots.empty() || dots.size() != marked)
      return;
    auto writes = [](Operation *op) { // itself, or in a branch for the trips that exist
      return op
          ->walk([](Operation *inner) {
            bool writing = isa<ttg::AsyncCopyGlobalToLocalOp, ttg::LocalStoreOp, ttg::LocalAllocOp>(inner);
            return writing ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
    };
    auto isOutside = [&](Value operand) {
      Operation *buffer = bufferOf(operand);
      return !buffer || !loop->isProperAncestor(buffer);
    };
    auto mayStay = [&](ttng::WarpGroupDotOp dot) {
      bool inMemory = isa<ttg::MemDescType>(dot.getA().getType());
      return onlyAccumulates(dot, loop) && isOutside(dot.getB()) && (!inMemory || isOutside(dot.getA())) &&
             keepsRegisters(dot);
    };
    auto ahead = llvm::make_range(loop.getBody()->begin(), Block::iterator(dots.back()));
    if (!llvm::all_of(dots, mayStay) || llvm::any_of(ahead, [&](Operation &op) { return writes(&op); }))
      return; // a schedule from elsewhere may leave no room for this
    Operation *end = loop.getBody()->getTerminator();
    Operation *before = dots.back()->getNextNode();
    while (before != end && !writes(before))
      before = before->getNextNode();

    SmallVector<ttng::WarpGroupDotOp> all;
    llvm::MapVector<Operation *, ttng::WarpGroupDotOp> loaded; ///< the first op that makes A's registers
    for (ttng::WarpGroupDotOp dot : dots) {
      dot.setIsAsync(true);
      auto a = slicedA(dot);
      if (!a) {
        all.push_back(dot);
        continue;
      }
      for (ttng::WarpGroupDotOp part : cutAlongK(dot, *a, kSlices)) {
        loaded.insert({LoadedOperand::of(part.getA(), loop.getBody())->load, part});
        all.push_back(part);
      }
    }
    dots = all;
    OpBuilder::InsertionGuard guard(b);
    for (auto [load, dot] : loaded) {
      b.setInsertionPoint(load);
      auto wait = ttng::WarpGroupDotWaitOp::create(b, dot.getLoc(), dot.getC(), dots.size() - 1);
      dot.getCMutable().assign(wait.getResult(0));
    }
    SmallVector<Value> inLoop, behind;
    SmallVector<OpOperand *> yields;
    for (ttng::WarpGroupDotOp dot : dots) {
      OpOperand &use = *dot.getD().getUses().begin();
      if (use.getOwner() != end)
        continue; // a link of a chain
      inLoop.push_back(dot.getD());
      yields.push_back(&use);
      behind.push_back(loop.getResult(use.getOperandNumber()));
    }
    b.setInsertionPoint(before);
    auto wait = ttng::WarpGroupDotWaitOp::create(b, dots.back().getLoc(), inLoop, dots.size());
    for (auto [yield, value] : llvm::zip(yields, wait.getOutputs()))
      yield->set(value);
    b.setInsertionPointAfter(loop);
    auto lastWait = ttng::WarpGroupDotWaitOp::create(b, loop.getLoc(), behind, 0);
    for (auto [value, valid] : llvm::zip(behind, lastWait.getOutputs()))
      b.replaceAllUsesExcept(value, valid, lastWait);
  }
};

} // namespace
} // namespace tessera
