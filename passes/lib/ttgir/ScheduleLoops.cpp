// A modulo schedule: in which trip of the pipelined loop (stage) and in which order (cluster) each op of an iteration
// runs.
#include "Pipeliner.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "tessera/passes/Passes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTGIRSCHEDULELOOPS
#include "tessera/passes/Passes.h.inc"

namespace {

using namespace pipeliner;

/// Stages are counted from the end ("height"): an op runs as late as its users allow, so that addresses and masks are
/// computed in the stage that uses them and all the rest stays in the last stage.
class Schedule {
public:
  explicit Schedule(scf::ForOp loop) : loop(loop), fixed(readsOfStores(loop)) {
    for (Operation &op : loop.getBody()->without_terminator())
      if (int latency = latencyOf(&op); latency > 0 && !isa<ttng::WarpGroupDotOp>(op) && !fixed.contains(&op))
        latencies[&op] = latency;
  }

  /// Gives up latencies until a schedule exists. False if nothing is left to pipeline.
  bool solve() {
    while (!latencies.empty()) {
      if (!relax())
        dropCycles();
      else if (!dropEffects())
        break;
    }
    return !latencies.empty() && last() > 0;
  }

  int last() const {
    int most = 0;
    for (auto [op, height] : heights)
      most = std::max(most, height);
    return most;
  }
  int stage(Operation *op) const { return last() - heights.lookup(op); }

private:
  scf::ForOp loop;
  llvm::DenseSet<Operation *> fixed; ///< loads that must not run ahead of stores
  llvm::MapVector<Operation *, int> latencies;
  llvm::MapVector<Operation *, int> heights;

  Value yielded(BlockArgument arg) { return loop.getTiedLoopYieldedValue(arg)->get(); }
  bool isCarried(Value v) {
    auto arg = dyn_cast<BlockArgument>(v);
    return arg && arg.getOwner() == loop.getBody() && arg.getArgNumber() > 0;
  }

  /// Ops of the body, and carried arguments, that `value` reaches directly.
  template <typename F> void forUsers(Value value, F each) {
    for (OpOperand &use : value.getUses())
      if (isa<scf::YieldOp>(use.getOwner()) && use.getOwner()->getBlock() == loop.getBody())
        each(nullptr, loop.getRegionIterArg(use.getOperandNumber()));
      else if (Operation *user = ancestorInBody(loop, use.getOwner()))
        each(user, BlockArgument());
  }

  /// The longest paths, by relaxation. A value used in the next iteration is no younger than that use, so that any
  /// order within a trip will do; its latency counts from the iteration it is made in. False: some cycle adds up to
  /// more stages than an iteration has.
  bool relax() {
    heights.clear();
    llvm::DenseMap<Value, int> carried;
    int bound = 0;
    for (auto [op, latency] : latencies)
      bound += latency;
    bool changed = true;
    while (changed) {
      changed = false;
      for (Operation &op : llvm::reverse(loop.getBody()->without_terminator())) {
        int latency = latencies.lookup(&op), height = heights.lookup(&op);
        for (Value result : op.getResults())
          forUsers(result, [&](Operation *user, BlockArgument arg) {
            height = std::max(height,
                              user ? heights.lookup(user) + latency : carried.lookup(arg) + std::max(0, latency - 1));
          });
        changed |= height != heights.lookup(&op);
        heights[&op] = height;
        if (height > bound)
          return false;
      }
      for (BlockArgument arg : loop.getRegionIterArgs()) {
        int height = carried.lookup(arg);
        forUsers(arg, [&](Operation *user, BlockArgument next) {
          height = std::max(height, user ? heights.lookup(user) : carried.lookup(next));
        });
        changed |= height != carried.lookup(arg);
        carried[arg] = height;
      }
    }
    return true;
  }

  /// Everything that depends on `start`, in this or a later iteration.
  llvm::DenseSet<Operation *> dependents(Operation *start) {
    llvm::DenseSet<Operation *> reached;
    llvm::DenseSet<Value> args;
    SmallVector<Value> work(start->getResults());
    while (!work.empty()) {
      Value value = work.pop_back_val();
      forUsers(value, [&](Operation *user, BlockArgument arg) {
        if (user && reached.insert(user).second)
          llvm::append_range(work, user->getResults());
        else if (!user && args.insert(arg).second)
          work.push_back(arg);
      });
    }
    return reached;
  }

  void dropCycles() {
    latencies.remove_if([&](auto &entry) { return dependents(entry.first).contains(entry.first); });
  }
  /// An op with effects, or that sees those of others, must not run ahead; then what depends on it cannot either.
  /// Returns whether anything changed.
  bool dropEffects() {
    size_t before = latencies.size();
    for (auto [op, height] : heights)
      if (height > 0 && (!isMovable(op) || fixed.contains(op))) {
        auto later = dependents(op);
        latencies.remove_if([&](auto &entry) { return later.contains(entry.first); });
      }
    return latencies.size() != before;
  }
};

class ScheduleLoops : public impl::TtgirScheduleLoopsBase<ScheduleLoops> {
public:
  void runOnOperation() override {
    getOperation().walk([](scf::ForOp loop) {
      for (Operation &op : *loop.getBody()) {
        op.removeAttr(kStage);
        op.removeAttr(kCluster);
      }
      if (canPipeline(loop)) {
        if (loop.getUnsignedCmp() && llvm::any_of(*loop.getBody(), isEarly))
          countTrips(loop);
        schedule(loop);
      }
    });
  }

private:
  static bool isEarly(Operation &op) { return latencyOf(&op) > 0; }

  /// The expansion of loops compares signed, and steps back from the upper bound: an unsigned loop counts its trips.
  static void countTrips(scf::ForOp loop) {
    OpBuilder b(loop);
    Location loc = loop.getLoc();
    Value lower = loop.getLowerBound(), upper = loop.getUpperBound(), step = loop.getStep();
    Type type = lower.getType(), wide = b.getI64Type();
    auto number = [&](Type type, int64_t n) -> Value {
      return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, n));
    };
    Value one = number(type, 1);
    Value any = b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, lower, upper);
    Value last = b.createOrFold<arith::SubIOp>(loc, b.createOrFold<arith::SubIOp>(loc, upper, lower), one);
    Value divisor = b.createOrFold<arith::MaxUIOp>(loc, step, one); // an empty loop's step may be 0
    Value trips = b.createOrFold<arith::AddIOp>(loc, b.createOrFold<arith::DivUIOp>(loc, last, divisor), one);
    trips = b.createOrFold<arith::SelectOp>(loc, any, trips, number(type, 0));
    loop.setUpperBound(type == wide ? trips : b.createOrFold<arith::ExtUIOp>(loc, wide, trips));
    loop.setLowerBound(number(wide, 0));
    loop.setStep(number(wide, 1));
    loop.setUnsignedCmp(false);

    auto trip = cast<BlockArgument>(loop.getInductionVar());
    b.setInsertionPointToStart(loop.getBody());
    Value placeholder = number(type, 0);
    trip.replaceAllUsesWith(placeholder);
    trip.setType(wide);
    Value narrow = type == wide ? Value(trip) : arith::TruncIOp::create(b, loc, type, trip).getResult();
    Value index = arith::AddIOp::create(b, loc, lower, arith::MulIOp::create(b, loc, narrow, step).getResult());
    if (Attribute hint = loop->removeAttr("tt.divisibility_arg0")) // of the index
      index.getDefiningOp()->setAttr("tt.divisibility", hint);
    placeholder.replaceAllUsesWith(index);
    placeholder.getDefiningOp()->erase();
  }

  static void schedule(scf::ForOp loop) {
    Schedule result(loop);
    if (!result.solve())
      return;
    // With products in flight the last stage comes first: the product of this trip is issued, that of the trip before
    // ends, and its buffers are free for the copies of earlier stages. Else these come first, into buffers the trip
    // before has read, so that they run during the last stage.
    bool inFlight = llvm::any_of(loop.getBody()->getOps<ttng::WarpGroupDotOp>(), latencyOf);
    const int last = result.last();
    for (Operation &op : loop.getBody()->without_terminator()) {
      int stage = result.stage(&op);
      setIntAttr(&op, kStage, stage);
      setIntAttr(&op, kCluster, clusterOf(stage, last, inFlight));
    }
    if (!inFlight && TargetModel::of(loop->getParentOfType<ModuleOp>()).storesBehindProduct)
      storeLate(loop, last);
    computeAgain(loop, last, inFlight);
  }

  static int stageOf(Operation *op) { return *intAttr(op, kStage); }

  /// Buffers that threads fill for a later stage are filled at the end of the trip, behind what reads the buffer of the
  /// iteration before, and so is what lies between the loads of their data and them: it would wait for these loads.
  static void storeLate(scf::ForOp loop, int last) {
    Operation *yield = loop.getBody()->getTerminator();
    auto hasUserInStage = [&](Operation *op, auto which) {
      return llvm::any_of(op->getUsers(), [&](Operation *user) {
        Operation *here = ancestorInBody(loop, user);
        return here && here != yield && which(here) && stageOf(here) == stageOf(op);
      });
    };
    SmallVector<Operation *> work;
    for (auto alloc : loop.getBody()->getOps<ttg::LocalAllocOp>())
      if (alloc.getSrc() && latencyOf(alloc) > 0 && stageOf(alloc) < last &&
          !hasUserInStage(alloc, [](Operation *) { return true; }))
        work.push_back(alloc);
    llvm::DenseSet<Operation *> behindLoads;
    for (auto load : loop.getBody()->getOps<tt::LoadOp>())
      addDependents(loop, load, behindLoads);
    llvm::SetVector<Operation *> late;
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (!late.insert(op))
        continue;
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp();
            def && behindLoads.contains(def) && !isa<tt::LoadOp>(def) && stageOf(def) == stageOf(op))
          work.push_back(def);
    }
    // Not what something else of the stage needs before.
    while (late.remove_if(
        [&](Operation *op) { return hasUserInStage(op, [&](Operation *user) { return !late.contains(user); }); }))
      ;
    for (Operation *op : late)
      setIntAttr(op, kCluster, last + 1);
  }

  /// Ops of the body that use results of `op` in the same iteration, directly or not.
  static void addDependents(scf::ForOp loop, Operation *op, llvm::DenseSet<Operation *> &reached) {
    for (Operation *user : op->getUsers())
      if (Operation *here = ancestorInBody(loop, user);
          here && here != loop.getBody()->getTerminator() && reached.insert(here).second)
        addDependents(loop, here, reached);
  }

  static int clusterOf(int stage, int last, bool inFlight) {
    return inFlight ? last - stage : stage == last ? last : last - 1 - stage;
  }

  /// Integer arithmetic on loop invariants and the induction variable, such as masks.
  static bool isCheap(Operation *op, scf::ForOp loop) {
    if (op->getNumResults() != 1 || op->getNumRegions() || !isMemoryEffectFree(op) ||
        !getElementTypeOrSelf(op->getResult(0)).isInteger())
      return false;
    if (!isa<arith::ArithDialect>(op->getDialect()) &&
        !isa<tt::SplatOp, tt::BroadcastOp, tt::ExpandDimsOp, tt::MakeRangeOp>(op))
      return false;
    return llvm::all_of(op->getOperands(), [&](Value v) {
      if (v == loop.getInductionVar() || !getElementTypeOrSelf(v).isInteger())
        return v == loop.getInductionVar() || loop.isDefinedOutsideOfLoop(v);
      Operation *def = v.getDefiningOp();
      return loop.isDefinedOutsideOfLoop(v) || (def && isCheap(def, loop));
    });
  }

  /// What is cheap is computed in each stage that uses it: a value that lives for several stages takes registers in
  /// each.
  static void computeAgain(scf::ForOp loop, int last, bool inFlight) {
    OpBuilder b(loop.getContext());
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(loop.getBody()->without_terminator()))) {
      int own = *intAttr(&op, kStage);
      if (!isCheap(&op, loop))
        continue;
      llvm::MapVector<int, SmallVector<OpOperand *>> later;
      for (OpOperand &use : op.getUses())
        if (Operation *user = ancestorInBody(loop, use.getOwner()); user != loop.getBody()->getTerminator())
          if (int stage = *intAttr(user, kStage); stage > own)
            later[stage].push_back(&use);
      for (auto &[stage, uses] : later) {
        b.setInsertionPointAfter(&op);
        Operation *again = b.clone(op);
        setIntAttr(again, kStage, stage);
        setIntAttr(again, kCluster, clusterOf(stage, last, inFlight));
        for (OpOperand *use : uses)
          use->set(again->getResult(0));
      }
    }
  }
};

} // namespace
} // namespace tessera
