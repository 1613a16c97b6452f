// Barriers between accesses of shared memory, and of global memory through one pointer parameter: forward data flow of the
// accesses since the last barrier, and of copies and matrix products that are still in flight.
#include "../RingIndex.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/ir/ttng/Ttng.h"
#include "tessera/passes/Allocation.h"
#include "tessera/passes/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>
#include <set>

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTGIRINSERTBARRIERS
#include "tessera/passes/Passes.h.inc"

namespace {

/// Bytes [begin, end), or, where `ring` is not 0, one of the `ring` equal parts of them: the one whose number is
/// `phase` + the trips of `loop` so far, modulo `ring`.
struct Bytes {
  unsigned begin = 0, end = 0;
  Operation *loop = nullptr;
  int64_t ring = 0, phase = 0;

  auto key() const { return std::tuple(begin, end, loop, ring, phase); }
  bool operator<(const Bytes &o) const { return key() < o.key(); }

  bool overlaps(const Bytes &o) const {
    if (begin >= o.end || o.begin >= end)
      return false;
    bool sameRing = ring && begin == o.begin && end == o.end && loop == o.loop && ring == o.ring;
    return !sameRing || phase == o.phase;
  }
  /// The same part, named in the next trip of `of`.
  Bytes inNextTrip(Operation *of) const {
    Bytes aged = *this;
    if (ring && loop == of)
      aged.phase = (phase + ring - 1) % ring;
    return aged;
  }
  /// Behind the loop nothing is known of the number of trips.
  Bytes outside(Operation *of) const { return ring && loop == of ? Bytes{begin, end} : *this; }
};
using Set = std::set<Bytes>;

bool overlap(const Set &a, const Set &b) {
  return llvm::any_of(a,
                      [&](const Bytes &x) { return llvm::any_of(b, [&](const Bytes &y) { return x.overlaps(y); }); });
}

struct Accesses {
  Set reads, writes; ///< of any thread since the last barrier

  bool conflictsWith(const Accesses &later) const {
    return overlap(writes, later.reads) || overlap(reads, later.writes) || overlap(writes, later.writes);
  }
};

/// An access of global memory.
struct Touch {
  Value root;    ///< the parameter that the addresses come from; null: not known
  Value pointer; ///< the addresses
  bool writes = false;
  bool older = false; ///< `pointer` had another value

  auto key() const { return std::tuple(root.getAsOpaquePointer(), pointer.getAsOpaquePointer(), writes, older); }
  bool operator<(const Touch &o) const { return key() < o.key(); }

  /// Whether a thread may touch in `later` what another has touched here. Parameters are taken for different memory, and
  /// so are the addresses that one pointer has in different trips of a loop, for stores.
  bool mayMeet(const Touch &later) const {
    if ((!writes && !later.writes) || (root && later.root && root != later.root) ||
        (writes && later.writes && pointer == later.pointer))
      return false;
    return pointer != later.pointer || older || !isOfOneThread(pointer);
  }

private:
  /// Whether no element is in several threads.
  static bool isOfOneThread(Value tile) {
    auto type = dyn_cast<RankedTensorType>(tile.getType());
    if (!type)
      return false;
    LinearLayout layout = ttg::toLinearLayout(type);
    return !layout.freeMask(HwDim::Lane) && !layout.freeMask(HwDim::Warp);
  }
};

/// The parameter that all of `pointer`'s addresses come from; null where that is not seen.
Value rootOf(Value pointer) {
  llvm::SetVector<Value> seen;
  seen.insert(pointer);
  Value root;
  for (unsigned k = 0; k < seen.size(); ++k) {
    Value v = seen[k];
    auto from = [&](ValueRange values) { seen.insert(values.begin(), values.end()); };
    if (auto arg = dyn_cast<BlockArgument>(v)) {
      Operation *parent = arg.getOwner()->getParentOp();
      if (auto loop = dyn_cast<scf::ForOp>(parent)) {
        from(loop.getTiedLoopInit(arg)->get());
        from(loop.getTiedLoopYieldedValue(arg)->get());
      } else if (isa<tt::FuncOp>(parent) && arg.getOwner()->isEntryBlock() && (!root || root == v)) {
        root = v;
      } else {
        return {};
      }
      continue;
    }
    Operation *op = v.getDefiningOp();
    unsigned result = cast<OpResult>(v).getResultNumber();
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      from(loop.getInitArgs()[result]);
      from(loop.getYieldedValues()[result]);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      from(branch.thenYield().getOperand(result));
      from(branch.elseYield().getOperand(result));
    } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
      from({select.getTrueValue(), select.getFalseValue()});
    } else if (isa<tt::AddPtrOp, tt::SplatOp, tt::BroadcastOp, tt::ExpandDimsOp, tt::ReshapeOp, tt::TransOp, tt::BitcastOp,
                   ttg::ConvertLayoutOp>(op)) {
      from(op->getOperand(0));
    } else {
      return {};
    }
  }
  return root;
}

struct State : Accesses {
  std::set<Touch> global;         ///< accesses since the last barrier that orders them
  Set copying;                    ///< written by asynchronous copies that have not been waited for
  std::map<Bytes, unsigned> dots; ///< read by asynchronous products, with the number of those begun after it

  void barrier() {
    reads.clear();
    writes.clear();
  }
  size_t size() const { return reads.size() + writes.size() + global.size() + copying.size() + dots.size(); }
  bool meets(const Touch &now) const {
    return llvm::any_of(global, [&](const Touch &before) { return before.mayMeet(now); });
  }
  /// What was touched through pointers that `loop` computes was so in an earlier trip.
  void age(Operation *loop) {
    std::set<Touch> aged;
    for (Touch touch : global) {
      touch.older |= loop->isAncestor(touch.pointer.getParentBlock()->getParentOp());
      aged.insert(touch);
    }
    global = std::move(aged);
  }

  /// Returns whether anything was new.
  bool add(const State &o) {
    size_t before = size();
    bool younger = false;
    reads.insert(o.reads.begin(), o.reads.end());
    writes.insert(o.writes.begin(), o.writes.end());
    global.insert(o.global.begin(), o.global.end());
    copying.insert(o.copying.begin(), o.copying.end());
    for (auto [bytes, age] : o.dots) {
      auto [it, fresh] = dots.try_emplace(bytes, age);
      younger |= !fresh && age < it->second;
      it->second = std::min(it->second, age);
    }
    return younger || size() != before;
  }

  /// With every part renamed.
  template <typename F> State mapped(F &&f) const {
    State out;
    auto all = [&](const Set &from, Set &to) {
      for (const Bytes &bytes : from)
        to.insert(f(bytes));
    };
    all(reads, out.reads);
    all(writes, out.writes);
    all(copying, out.copying);
    out.global = global;
    for (auto [bytes, age] : dots) {
      auto [it, fresh] = out.dots.try_emplace(f(bytes), age);
      it->second = std::min(it->second, age);
    }
    return out;
  }
};

/// Products older than this are all alike.
constexpr unsigned kOldest = 16;

class InsertBarriers : public impl::TtgirInsertBarriersBase<InsertBarriers> {
public:
  void runOnOperation() override {
    for (auto func : getOperation().getOps<tt::FuncOp>()) {
      if (func.isExternal())
        continue;
      buffers.clear();
      inserted.clear();
      scratchSizes.clear();
      roots.clear();
      findBuffers(func);
      region(func.getBody(), State());
      removeRedundant(func);
    }
  }

private:
  llvm::DenseMap<Value, Set> buffers; ///< what a memory descriptor may point to
  SmallVector<Operation *> inserted;
  Operation *ignored = nullptr; ///< a barrier that is taken away to see whether it is missed
  bool onlyLook = false, missed = false;

  /// A barrier put for the first trip of a loop may not be needed beside one put for later trips.
  void removeRedundant(tt::FuncOp func) {
    onlyLook = true;
    for (Operation *barrier : inserted) {
      ignored = barrier;
      missed = false;
      region(func.getBody(), State());
      if (!missed)
        barrier->erase();
    }
    onlyLook = false;
    ignored = nullptr;
  }

  llvm::DenseMap<Operation *, unsigned> scratchSizes; ///< the plans behind them take long, and ops are visited often
  unsigned scratchOf(Operation *op) {
    auto [it, fresh] = scratchSizes.try_emplace(op, 0);
    if (fresh)
      it->second = scratchBytes(op);
    return it->second;
  }

  /// One buffer of those `source` may be.
  static Set elementOf(const Set &source, ttg::MemDescIndexOp op) {
    Set out;
    int64_t count = op.getSrc().getType().getShape().front();
    auto index = ringIndexOf(op.getIndex(), count);
    for (const Bytes &bytes : source) {
      if (!index || bytes.ring || (bytes.end - bytes.begin) % count)
        out.insert(bytes);
      else if (index->loop)
        out.insert({bytes.begin, bytes.end, index->loop, count, index->phase});
      else {
        unsigned size = (bytes.end - bytes.begin) / count, begin = bytes.begin + size * index->phase;
        out.insert({begin, begin + size});
      }
    }
    return out;
  }

  /// Descriptors flow through views, loops and branches; the sets grow to a fixpoint.
  void findBuffers(tt::FuncOp func) {
    bool changed = true;
    auto put = [&](Set source, Value to) {
      auto &set = buffers[to];
      size_t before = set.size();
      set.insert(source.begin(), source.end());
      changed |= set.size() != before;
    };
    auto flow = [&](ValueRange from, ValueRange to, auto &&rename) {
      for (auto [f, t] : llvm::zip(from, to)) {
        if (!isa<ttg::MemDescType>(t.getType()))
          continue;
        Set source;
        for (const Bytes &bytes : buffers.lookup(f))
          source.insert(rename(bytes));
        put(std::move(source), t);
      }
    };
    auto same = [](const Bytes &bytes) { return bytes; };
    while (changed) {
      changed = false;
      func.walk([&](Operation *op) {
        if (unsigned bytes = bufferBytes(op)) {
          unsigned offset = allocationOffset(op).value_or(0);
          put({{offset, offset + bytes}}, op->getResult(0));
        } else if (auto index = dyn_cast<ttg::MemDescIndexOp>(op)) {
          put(elementOf(buffers.lookup(index.getSrc()), index), index.getResult());
        } else if (auto wait = dyn_cast<ttng::WarpGroupDotWaitOp>(op)) {
          flow(wait.getInputs(), wait.getOutputs(), same);
        } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
          flow(loop.getInitArgs(), loop.getRegionIterArgs(), same);
          flow(loop.getInitArgs(), loop.getResults(), same);
        } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
          flow(loop.getInits(), loop.getBeforeArguments(), same);
        } else if (auto cond = dyn_cast<scf::ConditionOp>(op)) {
          auto loop = cast<scf::WhileOp>(op->getParentOp());
          flow(cond.getArgs(), loop.getAfterArguments(), same);
          flow(cond.getArgs(), loop.getResults(), same);
        } else if (isa<scf::YieldOp>(op)) {
          Operation *parent = op->getParentOp();
          if (auto loop = dyn_cast<scf::ForOp>(parent)) {
            flow(op->getOperands(), loop.getRegionIterArgs(), [&](const Bytes &b) { return b.inNextTrip(parent); });
            flow(op->getOperands(), loop.getResults(), [&](const Bytes &b) { return b.outside(parent); });
          } else if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
            flow(op->getOperands(), loop.getBeforeArguments(), same);
          } else {
            flow(op->getOperands(), parent->getResults(), same);
          }
        } else {
          for (Value operand : op->getOperands()) // views; unknown ops may return any of their buffers
            for (Value result : op->getResults())
              flow(operand, result, same);
        }
      });
    }
  }

  Accesses accessesOf(Operation *op) {
    Accesses a;
    auto all = [&](Value desc, Set &set) {
      if (isa<ttg::MemDescType>(desc.getType())) {
        Set bytes = buffers.lookup(desc);
        set.insert(bytes.begin(), bytes.end());
      }
    };
    if (isa<ttg::LocalLoadOp, ttg::LocalDotOp, ttng::WarpGroupDotOp>(op)) {
      for (Value operand : op->getOperands())
        all(operand, a.reads);
    } else if (auto store = dyn_cast<ttg::LocalStoreOp>(op)) {
      all(store.getDst(), a.writes);
    } else if (auto copy = dyn_cast<ttg::AsyncCopyGlobalToLocalOp>(op)) {
      all(copy.getResult(), a.writes);
    } else if (auto alloc = dyn_cast<ttg::LocalAllocOp>(op)) {
      if (alloc.getSrc())
        all(alloc.getResult(), a.writes);
    } else if (isa<ttg::LocalDeallocOp, ttng::WarpGroupDotWaitOp>(op)) {
      // touch nothing
    } else if (!isMemoryEffectFree(op)) { // an op of which we know nothing
      for (Value operand : op->getOperands()) {
        all(operand, a.reads);
        all(operand, a.writes);
      }
    }
    return a;
  }

  /// Products of which at most `pending` younger ones are in flight have read their operands, as far as this warp goes.
  static void retireDots(State &state, unsigned pending) {
    for (auto it = state.dots.begin(); it != state.dots.end();) {
      if (it->second < pending) {
        ++it;
        continue;
      }
      state.reads.insert(it->first);
      it = state.dots.erase(it);
    }
  }

  /// What the op leaves behind, its own accesses being `now`.
  static void record(Operation *op, Accesses now, State &state) {
    if (isa<ttg::AsyncCopyGlobalToLocalOp>(op)) {
      state.copying.insert(now.writes.begin(), now.writes.end());
      return;
    }
    if (auto wait =
            dyn_cast<ttg::AsyncWaitOp>(op)) { // of the groups still in flight we do not know which copies they are
      state.writes.insert(state.copying.begin(), state.copying.end());
      if (wait.getNum() == 0)
        state.copying.clear();
      return;
    }
    if (auto wait = dyn_cast<ttng::WarpGroupDotWaitOp>(op))
      return retireDots(state, wait.getPendings());
    if (auto dot = dyn_cast<ttng::WarpGroupDotOp>(op)) {
      if (dot.getIsAsync()) {
        for (auto &[bytes, age] : state.dots)
          age = std::min(age + 1, kOldest);
        for (const Bytes &bytes : now.reads)
          state.dots[bytes] = 0;
        return;
      }
      retireDots(state, 0); // waits for itself, and so for all before it
    }
    state.reads.insert(now.reads.begin(), now.reads.end());
    state.writes.insert(now.writes.begin(), now.writes.end());
  }

  llvm::DenseMap<Value, Value> roots; ///< of pointers
  std::optional<Touch> touchOf(Operation *op) {
    Value pointer = llvm::TypeSwitch<Operation *, Value>(op)
                        .Case<tt::LoadOp, tt::StoreOp>([](auto o) { return o.getPtr(); })
                        .Case<ttg::AsyncCopyGlobalToLocalOp>([](auto o) { return o.getSrc(); })
                        .Default([](auto) { return Value(); });
    if (!pointer)
      return std::nullopt;
    auto [it, fresh] = roots.try_emplace(pointer);
    if (fresh)
      it->second = rootOf(pointer);
    return Touch{it->second, pointer, isa<tt::StoreOp>(op)};
  }

  State block(Block &block, State state) {
    constexpr auto global = ttg::AddrSpace::GlobalRead | ttg::AddrSpace::GlobalWrite;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isa<tt::DebugBarrierOp>(op)) {
        if (&op != ignored) {
          state.barrier();
          state.global.clear();
        }
        continue;
      }
      if (auto barrier = dyn_cast<ttg::BarrierOp>(op)) {
        if (&op != ignored && bitEnumContainsAny(barrier.getAddrSpace(), ttg::AddrSpace::Local))
          state.barrier();
        if (&op != ignored && bitEnumContainsAll(barrier.getAddrSpace(), global))
          state.global.clear();
        continue;
      }
      if (op.getNumRegions() && !isa<tt::ReduceOp>(op)) {
        state = nested(&op, std::move(state));
        continue;
      }
      auto offset = allocationOffset(&op);
      unsigned scratch = offset ? scratchOf(&op) : 0;
      Accesses now = accessesOf(&op);
      Bytes area{offset.value_or(0), offset.value_or(0) + scratch};
      if (scratch)
        now.writes.insert(area);
      std::optional<Touch> touch = touchOf(&op);
      bool meets = touch && state.meets(*touch);
      if (meets || state.conflictsWith(now)) {
        missed = true;
        if (!onlyLook) {
          OpBuilder b(&op);
          inserted.push_back(meets ? tt::DebugBarrierOp::create(b, op.getLoc()).getOperation()
                                   : ttg::BarrierOp::create(b, op.getLoc(), ttg::AddrSpace::Local));
        }
        state.barrier();
        if (meets)
          state.global.clear();
      }
      if (touch)
        state.global.insert(*touch);
      if (scratch) { // its own barrier comes between its writes and its reads
        state.barrier();
        now.reads.insert(area);
        now.writes.erase(area);
      }
      record(&op, std::move(now), state);
    }
    return state;
  }

  State nested(Operation *op, State state) {
    if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      State atExit, end;
      do {
        atExit = region(loop.getBefore(), state);
        end = region(loop.getAfter(), atExit);
        end.age(op);
      } while (state.add(end));
      return atExit;
    }
    if (isa<LoopLikeOpInterface>(op)) { // may run zero times; each trip starts with what the last one left
      bool grown = true;
      while (grown) {
        grown = false;
        for (Region &r : op->getRegions()) {
          State end = region(r, state);
          end.age(op);
          grown |= state.add(end.mapped([&](const Bytes &bytes) { return bytes.inNextTrip(op); }));
        }
      }
      return state.mapped([&](const Bytes &bytes) { return bytes.outside(op); });
    }
    State out;
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
  State region(Region &r, State entry) {
    if (r.empty())
      return entry;
    if (llvm::hasSingleElement(r))
      return block(r.front(), std::move(entry));
    llvm::DenseMap<Block *, State> in;
    llvm::SetVector<Block *> work;
    State atExit;
    in[&r.front()] = std::move(entry);
    for (Block &b : r)
      work.insert(&b);
    while (!work.empty()) {
      Block *b = work.front();
      work.erase(work.begin());
      State out = block(*b, in[b]);
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
