// Rings of buffers in shared memory: what lets a tile be written stages before it is read.
#include "Pipeliner.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tessera::pipeliner {

namespace {

/// Ops that must come first in every trip: counters, views of rings, and waits.
constexpr int kFirst = -1;

class RingMaker {
public:
  RingMaker(RewriterBase &rewriter, scf::ForOp loop, const llvm::DenseMap<Operation *, AsyncCopy> &copies)
      : b(rewriter), loop(loop), copies(copies) {}

  Rings make() {
    for (Operation &op : loop.getBody()->without_terminator())
      plan(&op);
    if (plans.empty())
      return {loop, {}, {}};
    if (!counters.empty())
      addCounters();
    for (Plan &plan : plans)
      lower(plan);
    addWaits();
    for (Operation *op : dead) // users before what they use
      b.eraseOp(op);
    return {loop, std::move(waits), std::move(buffers)};
  }

private:
  /// A use of a tile in registers, or of its buffer (maybe through views).
  struct Use {
    OpOperand *operand;
    Operation *user;                ///< the op of the body
    SmallVector<Operation *> views; ///< of the buffer, outermost first
  };
  struct Plan {
    Operation *writer;        ///< load or local_alloc
    ttg::LocalAllocOp buffer; ///< whose type the ring has
    SmallVector<Use> tiles, descriptors;
    unsigned depth = 1; ///< buffers of the ring
    int firstUse = 0;   ///< its stage
  };
  using CounterKey = std::pair<int, unsigned>; ///< stage, depth

  RewriterBase &b;
  scf::ForOp loop;
  const llvm::DenseMap<Operation *, AsyncCopy> &copies;
  std::vector<Plan> plans;
  llvm::MapVector<CounterKey, Value> counters;
  /// Copies of one stage that are first used in the same one are one group.
  llvm::MapVector<std::pair<int, int>, SmallVector<ttg::AsyncCopyGlobalToLocalOp>> groups;
  decltype(Rings::waits) waits;
  SmallVector<ttg::LocalAllocOp> buffers;
  SmallVector<Operation *> dead;

  static int stage(Operation *op) { return *intAttr(op, kStage); }
  static int cluster(Operation *op) { return *intAttr(op, kCluster); }
  template <typename Op> Op place(Op op, int stage, int cluster) {
    setIntAttr(op, kStage, stage);
    setIntAttr(op, kCluster, cluster);
    return op;
  }

  void addUses(Value value, SmallVector<Operation *> views, SmallVectorImpl<Use> &uses) {
    for (OpOperand &use : value.getUses()) {
      Operation *user = ancestorInBody(loop, use.getOwner());
      if (isa<ttg::MemDescTransOp, ttg::MemDescSubsliceOp>(use.getOwner())) {
        auto further = views;
        further.push_back(use.getOwner());
        addUses(use.getOwner()->getResult(0), further, uses);
      } else if (user) {
        uses.push_back({&use, user, views});
      }
    }
  }

  void plan(Operation *op) {
    Plan plan{op, {}, {}, {}};
    if (auto copy = copies.find(op); copy != copies.end()) {
      AsyncCopy found = copy->second;
      plan.buffer = found.buffer;
      for (OpOperand &use : op->getUses()) {
        auto alloc = dyn_cast<ttg::LocalAllocOp>(use.getOwner());
        if (alloc && alloc->getBlock() == loop.getBody() && alloc.getType() == plan.buffer.getType())
          addUses(alloc.getResult(), {}, plan.descriptors);
        else if (Operation *user = ancestorInBody(loop, use.getOwner()))
          plan.tiles.push_back({&use, user, {}});
      }
    } else if (auto alloc = dyn_cast<ttg::LocalAllocOp>(op); alloc && alloc.getSrc()) {
      if (auto copy = copies.find(alloc.getSrc().getDefiningOp());
          copy != copies.end() && becomesRing.contains(copy->first)) {
        AsyncCopy found = copy->second;
        if (found.buffer.getType() == alloc.getType())
          return; // one with the load
      }
      plan.buffer = alloc;
      addUses(alloc.getResult(), {}, plan.descriptors);
    } else {
      return;
    }
    int first = INT_MAX, last = stage(op);
    for (auto *uses : {&plan.tiles, &plan.descriptors})
      for (const Use &use : *uses) {
        first = std::min(first, stage(use.user));
        last = std::max(last, stage(use.user));
      }
    // A copy is not done in the stage that starts it.
    if (last == stage(op) || (isa<tt::LoadOp>(op) && first == stage(op)))
      return;
    // Where the last readers of a trip come before the writer, it may overwrite what they have read.
    bool behind = !isa<tt::LoadOp>(op);
    for (const Use &use : plan.descriptors)
      behind &=
          latencyOf(use.user) == 0 && (stage(use.user) < last || cluster(use.user) < cluster(op)); // not in flight
    plan.depth = last - stage(op) + (behind ? 0 : 1);
    plan.firstUse = first;
    becomesRing.insert(op);
    if (plan.depth > 1) {
      counters[{stage(op), plan.depth}];
      for (auto *uses : {&plan.tiles, &plan.descriptors})
        for (const Use &use : *uses)
          counters[{stage(use.user), plan.depth}];
    }
    plans.push_back(std::move(plan));
  }
  llvm::DenseSet<Operation *> becomesRing;

  /// One counter for each stage and depth: i = i + 1 == depth ? 0 : i + 1, so that it is (iteration mod depth) wherever
  /// it is used.
  void addCounters() {
    Location loc = loop.getLoc();
    auto number = [&](int n) -> Value {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(loop);
      return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(n));
    };
    Value start = number(-1), zero = number(0), one = number(1);
    llvm::SmallDenseMap<unsigned, Value> ends;
    for (auto &[key, counter] : counters)
      ends.try_emplace(key.second, number(key.second));
    SmallVector<Value> inits(counters.size(), start);
    auto yields = [&](OpBuilder &, Location, ArrayRef<BlockArgument> args) {
      SmallVector<Value> next;
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(args.front().getOwner());
      for (auto [entry, arg] : llvm::zip(counters, args)) {
        auto [stage, depth] = entry.first;
        Value up = place(arith::AddIOp::create(b, loc, arg, one), stage, kFirst);
        Value wraps = place(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, up, ends[depth]), stage, kFirst);
        entry.second = place(arith::SelectOp::create(b, loc, wraps, zero, up), stage, kFirst);
        next.push_back(entry.second);
      }
      return next;
    };
    auto replaced = loop.replaceWithAdditionalYields(b, inits, /*replaceInitOperandUsesInLoop=*/false, yields);
    loop = cast<scf::ForOp>(replaced->getOperation());
    b.setInsertionPointAfterValue(counters.back().second);
    front = counters.back().second.getDefiningOp();
  }
  Operation *front = nullptr; ///< the last op that was put first
  void goToFront() {
    if (front)
      b.setInsertionPointAfter(front);
    else
      b.setInsertionPointToStart(loop.getBody());
  }

  /// The buffer of the iteration that is in `stage`.
  Value view(Value ring, ttg::MemDescType type, int stage, unsigned depth, Location loc) {
    Value index;
    if (depth == 1) {
      b.setInsertionPoint(loop);
      index = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
    } else {
      index = counters[{stage, depth}];
    }
    goToFront();
    front = place(ttg::MemDescIndexOp::create(b, loc, type, ring, index), stage, kFirst);
    return front->getResult(0);
  }

  void lower(Plan &plan) {
    Location loc = plan.writer->getLoc();
    auto type = plan.buffer.getType();
    SmallVector<int64_t> shape{plan.depth};
    llvm::append_range(shape, type.getShape());
    auto ringType =
        ttg::MemDescType::get(shape, type.getElementType(), type.getEncoding(), type.getMemorySpace(), true);
    auto slotType = ttg::MemDescType::get(type.getContext(), type.getShape(), type.getElementType(), type.getEncoding(),
                                          type.getMemorySpace(), true, type.getShape());
    b.setInsertionPoint(loop);
    auto ring = ttg::LocalAllocOp::create(b, loc, ringType, Value());
    buffers.push_back(ring);

    int from = stage(plan.writer), order = cluster(plan.writer);
    Value slot = view(ring, slotType, from, plan.depth, loc);
    b.setInsertionPoint(plan.writer);
    if (auto load = dyn_cast<tt::LoadOp>(plan.writer)) {
      // Without `other` the rest is zero as well.
      auto copy =
          ttg::AsyncCopyGlobalToLocalOp::create(b, loc, load.getPtr(), slot, load.getMask(), Value(), load.getCache(),
                                                load.getEvict(), load.getIsVolatile(), copies.lookup(load).contiguity);
      groups[{from, plan.firstUse}].push_back(place(copy, from, order));
    } else {
      place(ttg::LocalStoreOp::create(b, loc, plan.buffer.getSrc(), slot), from, order);
    }

    llvm::SmallDenseMap<int, Value> slots{{from, slot}};
    auto slotIn = [&](int stage) {
      Value &known = slots[stage];
      if (!known)
        known = view(ring, slotType, stage, plan.depth, loc);
      return known;
    };
    for (Use &use : plan.descriptors)
      use.operand->set(viewAgain(slotIn(stage(use.user)), use));
    // Tiles in registers: one load for each stage, before its first user.
    llvm::MapVector<int, Operation *> firstUser;
    for (const Use &use : plan.tiles) {
      Operation *&first = firstUser[stage(use.user)];
      if (!first || cluster(use.user) < cluster(first) ||
          (cluster(use.user) == cluster(first) && use.user->isBeforeInBlock(first)))
        first = use.user;
    }
    llvm::SmallDenseMap<int, Value> tiles;
    for (auto [stage, user] : firstUser) {
      Value source = slotIn(stage);
      b.setInsertionPoint(user);
      tiles[stage] =
          place(ttg::LocalLoadOp::create(b, loc, plan.writer->getResult(0).getType(), source), stage, cluster(user));
    }
    for (Use &use : plan.tiles)
      use.operand->set(tiles[stage(use.user)]);
    retire(plan.writer);
  }

  /// Repeats the views through which `use` sees the buffer.
  Value viewAgain(Value slot, const Use &use) {
    b.setInsertionPoint(use.user);
    for (Operation *old : use.views) {
      if (auto trans = dyn_cast<ttg::MemDescTransOp>(old)) {
        slot = place(ttg::MemDescTransOp::create(b, old->getLoc(), slot, trans.getOrder()), stage(use.user),
                     cluster(use.user));
        continue;
      }
      auto part = cast<ttg::MemDescSubsliceOp>(old);
      auto type = part.getType();
      type = ttg::MemDescType::get(type.getContext(), type.getShape(), type.getElementType(), type.getEncoding(),
                                   type.getMemorySpace(), true, type.getAllocShape());
      slot = place(ttg::MemDescSubsliceOp::create(b, old->getLoc(), type, slot, part.getOffsets()), stage(use.user),
                   cluster(use.user));
    }
    return slot;
  }

  /// Marks an op and the buffers and views made of it as dead.
  void retire(Operation *op) {
    for (Operation *user : op->getUsers())
      retire(user);
    if (!llvm::is_contained(dead, op))
      dead.push_back(op);
  }

  void addWaits() {
    llvm::MapVector<int, SmallVector<ttg::AsyncCommitGroupOp>> byStage;
    for (auto &[key, copies] : groups) {
      auto last = copies.front(); // in the order of execution
      SmallVector<Value> tokens;
      for (auto copy : copies) {
        tokens.push_back(copy.getToken());
        if (cluster(copy) > cluster(last) || (cluster(copy) == cluster(last) && last->isBeforeInBlock(copy)))
          last = copy;
      }
      b.setInsertionPointAfter(last);
      auto commit = ttg::AsyncCommitGroupOp::create(b, last.getLoc(), tokens);
      byStage[key.second].push_back(place(commit, key.first, cluster(last)));
    }
    for (auto &[stage, commits] : byStage) {
      goToFront();
      auto wait = ttg::AsyncWaitOp::create(b, loop.getLoc(), ValueRange(), 0);
      setIntAttr(wait, kWaitIndex, waits.size());
      front = place(wait, stage, kFirst);
      waits.push_back({wait, std::move(commits)});
    }
  }
};

} // namespace

Rings makeRings(RewriterBase &rewriter, scf::ForOp loop, const llvm::DenseMap<Operation *, AsyncCopy> &copies) {
  return RingMaker(rewriter, loop, copies).make();
}

} // namespace tessera::pipeliner
