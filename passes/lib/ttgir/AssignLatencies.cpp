// How many stages before its users an op should be scheduled: loads that feed matrix products, and loads of loops whose
// author asked for stages.
#include "OperandSlices.h"
#include "Pipeliner.h"
#include "tessera/passes/Allocation.h"
#include "tessera/passes/Passes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTGIRASSIGNLATENCIES
#include "tessera/passes/Passes.h.inc"

namespace {

using namespace pipeliner;

/// 32-bit registers of a thread that prefetched tiles of a loop may hold.
constexpr int64_t kMaxPrefetchRegisters = 64;

class AssignLatencies : public impl::TtgirAssignLatenciesBase<AssignLatencies> {
public:
  using TtgirAssignLatenciesBase::TtgirAssignLatenciesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    target = TargetModel::of(module);
    SmallVector<scf::ForOp> loops;
    module.walk([&](scf::ForOp loop) {
      loop.getBody()->walk([](Operation *op) { op->removeAttr(kLatency); });
      if (!target.wideLanes && stagesOf(loop) >= 2 &&
          canPipeline(loop)) // a host core runs ahead of its loads by itself
        loops.push_back(loop);
    });
    if (loops.empty())
      return;
    threads = int64_t(ttg::lookupNumWarps(module)) * ttg::lookupThreadsPerWarp(module);
    AxisInfoAnalysis axisInfo(module);
    axes = &axisInfo;
    for (scf::ForOp loop : loops)
      assign(loop);
  }

private:
  TargetModel target;
  const AxisInfoAnalysis *axes = nullptr;
  int64_t threads = 1;

  int stagesOf(scf::ForOp loop) { return intAttr(loop, kNumStages).value_or(numStages); }

  /// Loads on whose data `value` depends within an iteration: 0 for those that hold the data itself, 1 for those that
  /// hold its addresses, and so on; the largest number counts. Buffers that are filled on the way go to `filled`.
  struct Sources {
    llvm::MapVector<Operation *, int> loads;
    llvm::SetVector<Operation *> filled;
  };
  static void findSources(Value value, int level, scf::ForOp loop, Sources &sources, llvm::DenseMap<Value, int> &seen) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != loop.getBody())
      return;
    auto [known, isNew] = seen.insert({value, level});
    if (!isNew && known->second >= level)
      return;
    known->second = level;
    if (isa<tt::LoadOp>(op)) {
      sources.loads[op] = level;
      ++level;
    } else if (isa<ttg::LocalAllocOp>(op)) {
      sources.filled.insert(op);
    } else if (!isMemoryEffectFree(op) && !isa<ttg::LocalLoadOp>(op)) {
      return; // another product, or an op with effects
    }
    op->walk([&](Operation *inner) { // what nested regions use, too
      for (Value operand : inner->getOperands())
        findSources(operand, level, loop, sources, seen);
    });
  }

  void assign(scf::ForOp loop) {
    const int stages = stagesOf(loop), available = stages - 1;
    const auto fixed = readsOfStores(loop);
    Sources sources;
    llvm::DenseMap<Value, int> seen;
    SmallVector<ttng::WarpGroupDotOp> asyncDots;
    for (Operation &op : *loop.getBody())
      if (isa<tt::DotOp, ttg::LocalDotOp, ttng::WarpGroupDotOp>(op)) {
        findSources(op.getOperand(0), 0, loop, sources, seen);
        findSources(op.getOperand(1), 0, loop, sources, seen);
        if (auto dot = dyn_cast<ttng::WarpGroupDotOp>(op); dot && onlyAccumulates(dot, loop))
          asyncDots.push_back(dot);
      }

    // Buffers that copies fill, and those that threads fill.
    llvm::DenseMap<Operation *, AsyncCopy> copies;
    llvm::DenseSet<Operation *> copied;
    int levels = 1;
    for (auto [load, level] : sources.loads) {
      if (fixed.contains(load))
        continue;
      levels = std::max(levels, level + 1);
      if (auto copy = asAsyncCopy(cast<tt::LoadOp>(load), *axes, target)) {
        copies.insert({load, *copy});
        copied.insert(copy->buffer);
      }
    }
    levels = std::min(levels, available);

    // Data: what address loads leave over of the stages.
    const int dataStages = available - (levels - 1);
    uint64_t ringBytes = 0;
    for (Operation *buffer : copied)
      ringBytes += bufferBytes(buffer) * uint64_t(dataStages + 1);

    // A product in flight reads its buffers one iteration longer: there must be several of them.
    auto isBuffered = [&](Value operand) {
      Operation *buffer = bufferOf(operand);
      return !buffer || !loop->isProperAncestor(buffer) || sources.filled.contains(buffer);
    };
    // Registers: what they are loaded from, as the loads then come before the copies of a trip; B's else. Where the
    // rings do not fit, one buffer less is more than having these in flight.
    auto memoryOfA = [](ttng::WarpGroupDotOp dot) -> Value {
      if (isa<ttg::MemDescType>(dot.getA().getType()))
        return dot.getA();
      auto a = slicedA(dot);
      return a ? a->load.getSrc() : dot.getB();
    };
    llvm::erase_if(asyncDots, [&](ttng::WarpGroupDotOp dot) {
      bool fits = isa<ttg::MemDescType>(dot.getA().getType()) || ringBytes <= maxSharedBytes;
      return !fits || !isBuffered(memoryOfA(dot)) || !isBuffered(dot.getB()) || !keepsRegisters(dot);
    });
    keepWholeChains(asyncDots);
    llvm::DenseSet<Operation *> readInFlight;
    for (ttng::WarpGroupDotOp dot : asyncDots) {
      setIntAttr(dot, kLatency, 1);
      for (Value operand : {memoryOfA(dot), Value(dot.getB())})
        if (Operation *buffer = bufferOf(operand))
          readInFlight.insert(buffer);
    }

    // Where no product is in flight, copies can do with a stage less and a ring of one buffer less, and must where
    // memory is short.
    const bool full = !asyncDots.empty() || ringBytes <= maxSharedBytes;
    llvm::DenseSet<Operation *> filledLater; // by threads, a stage before the product
    for (Operation *alloc : sources.filled)
      if (!copied.contains(alloc) && !fixed.contains(alloc->getOperand(0).getDefiningOp()) &&
          (dataStages >= 2 || readInFlight.contains(alloc) ||
           (target.storesBehindProduct && isFilledFrom(alloc, sources, fixed)))) {
        setIntAttr(alloc, kLatency, 1);
        filledLater.insert(alloc);
      }
    for (auto [load, level] : sources.loads) {
      if (level >= levels || fixed.contains(load))
        continue;
      if (level > 0)
        setIntAttr(load, kLatency, 1);
      else if (copies.contains(load))
        setIntAttr(load, kLatency, full ? dataStages : std::max(1, dataStages - 1));
      else if (!feeds(load, filledLater) || (dataStages >= 2 && !target.storesBehindProduct))
        setIntAttr(load, kLatency, 1); // registers are too few for more
    }
    if (loop->hasAttr(kNumStages))
      prefetchOthers(loop, sources, fixed);
  }

  /// Whether a load of the loop that may move, and no other, brings what the buffer is filled with.
  static bool isFilledFrom(Operation *alloc, const Sources &sources, const llvm::DenseSet<Operation *> &fixed) {
    bool any = false;
    for (auto [load, level] : sources.loads)
      if (level == 0 && feeds(load, {alloc})) {
        if (fixed.contains(load))
          return false;
        any = true;
      }
    return any;
  }

  static bool feeds(Operation *load, const llvm::DenseSet<Operation *> &allocs) {
    SmallVector<Operation *> work{load};
    llvm::DenseSet<Operation *> seen;
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (allocs.contains(op))
        return true;
      for (Operation *user : op->getUsers())
        if (user->getBlock() == load->getBlock() && seen.insert(user).second)
          work.push_back(user);
    }
    return false;
  }

  /// Loads of data that no product needs, one iteration ahead in registers.
  void prefetchOthers(scf::ForOp loop, const Sources &sources, const llvm::DenseSet<Operation *> &fixed) {
    int64_t registers = 0;
    SmallVector<tt::LoadOp> loads;
    for (auto load : loop.getBody()->getOps<tt::LoadOp>())
      if (!sources.loads.contains(load) && !fixed.contains(load)) {
        auto tile = dyn_cast<RankedTensorType>(load.getType());
        int64_t elements = tile ? std::max<int64_t>(1, tile.getNumElements() / threads) : 1;
        unsigned bits = getElementTypeOrSelf(load.getType()).isIntOrFloat()
                            ? getElementTypeOrSelf(load.getType()).getIntOrFloatBitWidth()
                            : 64;
        registers += (elements * bits + 31) / 32;
        loads.push_back(load);
      }
    if (registers <= kMaxPrefetchRegisters)
      for (tt::LoadOp load : loads)
        setIntAttr(load, kLatency, 1);
  }
};

} // namespace
} // namespace tessera
