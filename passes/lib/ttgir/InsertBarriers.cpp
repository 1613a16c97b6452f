// Barriers between accesses of shared memory: forward data flow of the accesses since the last barrier.
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/passes/Allocation.h"
#include "tessera/passes/Passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTGIRINSERTBARRIERS
#include "tessera/passes/Passes.h.inc"

namespace {

using Range = std::pair<unsigned, unsigned>; ///< bytes [first, second)

bool overlap(const llvm::SetVector<Range> &a, const llvm::SetVector<Range> &b) {
  return llvm::any_of(
      a, [&](Range x) { return llvm::any_of(b, [&](Range y) { return x.first < y.second && y.first < x.second; }); });
}

struct Accesses {
  llvm::SetVector<Range> reads, writes;

  bool conflictsWith(const Accesses &later) const {
    return overlap(writes, later.reads) || overlap(reads, later.writes) || overlap(writes, later.writes);
  }
  /// Returns whether anything was new.
  bool add(const Accesses &o) {
    size_t before = reads.size() + writes.size();
    reads.insert_range(o.reads);
    writes.insert_range(o.writes);
    return reads.size() + writes.size() != before;
  }
};

class InsertBarriers : public impl::TtgirInsertBarriersBase<InsertBarriers> {
public:
  void runOnOperation() override {
    for (auto func : getOperation().getOps<tt::FuncOp>()) {
      if (func.isExternal())
        continue;
      buffers.clear();
      findBuffers(func);
      region(func.getBody(), Accesses());
    }
  }

private:
  llvm::DenseMap<Value, llvm::SetVector<Range>> buffers; ///< what a memory descriptor may point to

  /// Descriptors flow through views, loops and branches; the sets grow to a fixpoint.
  void findBuffers(tt::FuncOp func) {
    bool changed = true;
    auto flow = [&](Value from, Value to) {
      if (!isa<ttg::MemDescType>(to.getType()))
        return;
      auto source = buffers.lookup(from);
      auto &set = buffers[to];
      size_t before = set.size();
      set.insert_range(source);
      changed |= set.size() != before;
    };
    auto flowAll = [&](ValueRange from, ValueRange to) {
      for (auto [f, t] : llvm::zip(from, to))
        flow(f, t);
    };
    while (changed) {
      changed = false;
      func.walk([&](Operation *op) {
        if (unsigned bytes = bufferBytes(op)) {
          unsigned offset = allocationOffset(op).value_or(0);
          changed |= buffers[op->getResult(0)].insert({offset, offset + bytes});
        } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
          flowAll(loop.getInitArgs(), loop.getRegionIterArgs());
          flowAll(loop.getInitArgs(), loop.getResults());
        } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
          flowAll(loop.getInits(), loop.getBeforeArguments());
        } else if (auto cond = dyn_cast<scf::ConditionOp>(op)) {
          auto loop = cast<scf::WhileOp>(op->getParentOp());
          flowAll(cond.getArgs(), loop.getAfterArguments());
          flowAll(cond.getArgs(), loop.getResults());
        } else if (isa<scf::YieldOp>(op)) {
          if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp()))
            flowAll(op->getOperands(), loop.getRegionIterArgs());
          if (auto loop = dyn_cast<scf::WhileOp>(op->getParentOp()))
            flowAll(op->getOperands(), loop.getBeforeArguments());
          else
            flowAll(op->getOperands(), op->getParentOp()->getResults());
        } else {
          for (Value operand : op->getOperands()) // views; unknown ops may return any of their buffers
            for (Value result : op->getResults())
              flow(operand, result);
        }
      });
    }
  }

  Accesses accessesOf(Operation *op) {
    Accesses a;
    auto all = [&](Value desc, llvm::SetVector<Range> &set) {
      if (isa<ttg::MemDescType>(desc.getType()))
        set.insert_range(buffers.lookup(desc));
    };
    if (isa<ttg::LocalLoadOp>(op)) {
      all(op->getOperand(0), a.reads);
    } else if (auto store = dyn_cast<ttg::LocalStoreOp>(op)) {
      all(store.getDst(), a.writes);
    } else if (auto alloc = dyn_cast<ttg::LocalAllocOp>(op)) {
      if (alloc.getSrc())
        all(alloc.getResult(), a.writes);
    } else if (!isMemoryEffectFree(op)) { // an op of which we know nothing
      for (Value operand : op->getOperands()) {
        all(operand, a.reads);
        all(operand, a.writes);
      }
    }
    return a;
  }

  Accesses block(Block &block, Accesses state) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isa<tt::DebugBarrierOp>(op)) {
        state = {};
        continue;
      }
      if (auto barrier = dyn_cast<ttg::BarrierOp>(op)) {
        if (bitEnumContainsAny(barrier.getAddrSpace(), ttg::AddrSpace::Local))
          state = {};
        continue;
      }
      if (op.getNumRegions() && !isa<tt::ReduceOp>(op)) {
        state = nested(&op, std::move(state));
        continue;
      }
      auto offset = allocationOffset(&op);
      unsigned scratch = offset ? scratchBytes(&op) : 0;
      Accesses now = accessesOf(&op);
      if (scratch)
        now.writes.insert({*offset, *offset + scratch});
      if (state.conflictsWith(now)) {
        OpBuilder b(&op);
        ttg::BarrierOp::create(b, op.getLoc(), ttg::AddrSpace::Local);
        state = {};
      }
      if (scratch) { // its own barrier comes between its writes and its reads
        state = {};
        now.reads.insert({*offset, *offset + scratch});
        now.writes.remove({*offset, *offset + scratch});
      }
      state.add(now);
    }
    return state;
  }

  Accesses nested(Operation *op, Accesses state) {
    if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      Accesses atExit;
      do {
        atExit = region(loop.getBefore(), state);
      } while (state.add(region(loop.getAfter(), atExit)));
      return atExit;
    }
    if (isa<LoopLikeOpInterface>(op)) { // may run zero times; each trip starts with what the last one left
      bool grown = true;
      while (grown) {
        grown = false;
        for (Region &r : op->getRegions())
          grown |= state.add(region(r, state));
      }
      return state;
    }
    Accesses out;
    bool mayFallThrough = !isa<scf::IfOp, scf::IndexSwitchOp, scf::ExecuteRegionOp>(op);
    for (Region &r : op->getRegions()) {
      if (r.empty())
        mayFallThrough = true;
      else
        out.add(region(r, state));
    }
    if (mayFallThrough)
      out.add(state);
    return out;
  }

  /// State at the region's end, from the state at its entry.
  Accesses region(Region &r, Accesses entry) {
    if (r.empty())
      return entry;
    if (llvm::hasSingleElement(r))
      return block(r.front(), std::move(entry));
    llvm::DenseMap<Block *, Accesses> in;
    llvm::SetVector<Block *> work;
    Accesses atExit;
    in[&r.front()] = std::move(entry);
    for (Block &b : r)
      work.insert(&b);
    while (!work.empty()) {
      Block *b = work.front();
      work.erase(work.begin());
      Accesses out = block(*b, in[b]);
      if (b->getNumSuccessors() == 0)
        atExit.add(out);
      for (Block *next : b->getSuccessors())
        if (in[next].add(out))
          work.insert(next);
    }
    return atExit;
  }
};

} // namespace
} // namespace tessera
