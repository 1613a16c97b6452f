// Chooses the encoding of every tile of a function at once, then repairs the uses that disagree in the cheapest way.
//
// All conversions are first looked through. What remains fixed are anchors: memory accesses and ops we know nothing
// about. Choices flow forward from anchors, then backward from demands; the heaviest (most elements, deepest loop)
// wins.
#include "../Layouts.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tessera/ir/ttng/Ttng.h"
#include "tessera/passes/Allocation.h"
#include "tessera/passes/Passes.h"
#include "tessera/passes/TargetModel.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTGIRREMOVELAYOUTCONVERSIONS
#include "tessera/passes/Passes.h.inc"

namespace {

using layouts::tileType;

constexpr int64_t kAnchor = INT64_MAX;
constexpr int64_t kImpossible = INT64_MAX / 4;
constexpr unsigned kMaxChain = 256; ///< ops looked through when a value is computed again

unsigned loopDepth(Operation *op) {
  unsigned depth = 0;
  for (Operation *p = op->getParentOp(); p; p = p->getParentOp())
    depth += isa<LoopLikeOpInterface>(p);
  return std::min(depth, 5u);
}

/// What a layout is worth at an op: elements moved, eightfold in each loop.
int64_t weightAt(Operation *op, RankedTensorType type) { return type.getNumElements() << (3 * loopDepth(op)); }

class Relayout {
public:
  Relayout(tt::FuncOp func, const TargetModel &model)
      : func(func), model(model), threads(ttg::lookupNumWarps(func) * ttg::lookupThreadsPerWarp(func)) {}

  void run() {
    collect();
    forward();
    for (bool changed = true; changed;)
      changed = backward();
    settle();
    for (auto &[value, choice] : choices)
      layouts::setEncoding(value, choice.encoding);
    for (Operation *op : ops) {
      SmallVector<Attribute> wanted; // all before any operand changes: they depend on each other
      for (OpOperand &operand : op->getOpOperands())
        wanted.push_back(requirement(operand));
      for (auto [operand, encoding] : llvm::zip(op->getOpOperands(), wanted))
        if (encoding && encoding != layouts::encodingOf(operand.get()))
          operand.set(materialise(operand.get(), encoding));
    }
    eraseDead();
  }

private:
  struct Choice {
    Attribute encoding;
    int64_t weight = 0; ///< kAnchor: fixed
  };

  tt::FuncOp func;
  TargetModel model;
  int64_t threads;
  SmallVector<Operation *> ops;                      ///< in program order, without conversions
  SmallVector<Value> values;                         ///< tiles, likewise
  llvm::MapVector<Value, Choice> choices;            ///< tied values each have an entry, always equal
  llvm::DenseMap<Value, SmallVector<Value, 2>> tied; ///< other values that must have the same type
  llvm::DenseMap<OpOperand *, Attribute> anchored;   ///< operands whose encoding is fixed
  SmallVector<Value> work;

  //--- collection -----------------------------------------------------------------------------------------------------

  /// Tiles with no more elements than threads are accessed as well in any layout.
  bool isSmall(RankedTensorType type) const { return type.getNumElements() <= threads; }

  static bool isControl(Operation *op) {
    if (isa<scf::YieldOp>(op))
      op = op->getParentOp();
    return isa<scf::ForOp, scf::WhileOp, scf::IfOp, scf::ConditionOp>(op);
  }
  /// Takes tiles in any layout and returns none.
  static bool takesAny(Operation *op) {
    return isa<tt::PrintOp, tt::AssertOp, tt::UnsplatOp, ttg::LocalAllocOp, ttg::LocalStoreOp>(op);
  }
  /// An operand of a matrix instruction goes through shared memory, asynchronously if its load stays as it is.
  static bool feedsDot(Value load) {
    SmallVector<Value> work{load};
    llvm::DenseSet<Value> seen;
    while (!work.empty()) {
      Value v = work.pop_back_val();
      if (!seen.insert(v).second)
        continue;
      for (Operation *user : v.getUsers()) {
        if (isa<tt::DotOp, ttg::LocalAllocOp>(user))
          return true;
        if (user->getNumResults() == 1 && tileType(user->getResult(0)) &&
            (isa<ttg::ConvertLayoutOp, tt::TransOp>(user) || layouts::isUniform(user)))
          work.push_back(user->getResult(0));
      }
    }
    return false;
  }
  static bool changesShape(Operation *op) { return isa<tt::ExpandDimsOp, tt::TransOp, tt::ReshapeOp>(op); }

  /// The lanes of the native CPU's sums lie along rows: storing them there writes whole vectors.
  bool storesSums(tt::StoreOp store) const {
    auto blocked = dyn_cast_or_null<ttg::BlockedEncodingAttr>(layouts::encodingOf(store.getPtr()));
    if (!model.wideLanes || !blocked || blocked.getOrder()[0] + 1 != blocked.getOrder().size())
      return false;
    SmallVector<Value> work{store.getValue()};
    llvm::DenseSet<Value> seen;
    while (!work.empty()) {
      Value v = work.pop_back_val();
      Operation *op = v.getDefiningOp();
      if (!op || !tileType(v) || !seen.insert(v).second)
        continue;
      if (isa<ttg::LocalDotOp>(op))
        return true;
      if (auto loop = dyn_cast<scf::ForOp>(op))
        work.push_back(loop.getYieldedValues()[cast<OpResult>(v).getResultNumber()]);
      else if (isa<ttg::ConvertLayoutOp>(op) || (layouts::isUniform(op) && !isa<tt::LoadOp>(op)))
        llvm::append_range(work, op->getOperands());
    }
    return false;
  }

  void collect() {
    SmallVector<ttg::ConvertLayoutOp> conversions;
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto convert = dyn_cast<ttg::ConvertLayoutOp>(op)) {
        conversions.push_back(convert);
        return;
      }
      ops.push_back(op);
      for (Value result : op->getResults())
        if (layouts::encodingOf(result))
          values.push_back(result);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument arg : block.getArguments())
            if (layouts::encodingOf(arg))
              values.push_back(arg);
      anchor(op);
      tie(op);
    });
    // Shared encodings were recorded; from here on a conversion is its source.
    for (ttg::ConvertLayoutOp convert : conversions) {
      convert.replaceAllUsesWith(convert.getSrc());
      convert.erase();
    }
  }

  void anchor(Operation *op) {
    if (Value ptr = layouts::memoryPointer(op)) {
      if (isSmall(tileType(ptr)) && !(isa<tt::LoadOp>(op) && feedsDot(op->getResult(0))))
        return;
      if (auto store = dyn_cast<tt::StoreOp>(op); store && storesSums(store))
        return;
    } else if (layouts::isUniform(op) || layouts::isSource(op) || layouts::isForced(op) || changesShape(op) ||
               isControl(op) || takesAny(op)) {
      return;
    }
    for (OpOperand &operand : op->getOpOperands())
      if (Attribute e = layouts::encodingOf(operand.get()))
        anchored[&operand] = e;
    for (Value result : op->getResults())
      if (Attribute e = layouts::encodingOf(result))
        choices[result] = {e, kAnchor};
    for (Region &region : op->getRegions()) // arguments of regions we do not know
      for (Block &block : region)
        for (BlockArgument arg : block.getArguments())
          if (Attribute e = layouts::encodingOf(arg))
            choices[arg] = {e, kAnchor};
  }

  void tie(Operation *op) {
    auto tieAll = [&](ValueRange a, ValueRange b) {
      for (auto [x, y] : llvm::zip(a, b)) {
        tied[x].push_back(y);
        tied[y].push_back(x);
      }
    };
    if (auto loop = dyn_cast<scf::ForOp>(op))
      tieAll(loop.getRegionIterArgs(), loop.getResults());
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      tieAll(loop.getAfterArguments(), loop.getResults());
  }

  //--- choice
  //-----------------------------------------------------------------------------------------------------------

  const Choice *chosen(Value v) const {
    auto it = choices.find(v);
    return it == choices.end() ? nullptr : &it->second;
  }
  Attribute encodingFor(Value v) const {
    const Choice *c = chosen(v);
    return c ? c->encoding : Attribute();
  }

  bool offer(Value v, Attribute encoding, int64_t weight) {
    if (!encoding || !tileType(v))
      return false;
    if (const Choice *c = chosen(v); c && c->weight >= weight)
      return false;
    choices[v] = {encoding, weight};
    work.push_back(v);
    for (Value other : tied.lookup(v)) {
      choices[other] = {encoding, weight};
      work.push_back(other);
    }
    return true;
  }

  /// Where the value of an operand of a control-flow op goes.
  static Value target(OpOperand &operand) {
    Operation *op = operand.getOwner();
    unsigned i = operand.getOperandNumber();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return i < loop.getNumControlOperands() ? Value()
                                              : Value(loop.getRegionIterArg(i - loop.getNumControlOperands()));
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      return loop.getBeforeArguments()[i];
    if (isa<scf::ConditionOp>(op))
      return i == 0 ? Value() : op->getParentOp()->getResult(i - 1);
    if (isa<scf::YieldOp>(op)) {
      Operation *parent = op->getParentOp();
      if (auto loop = dyn_cast<scf::WhileOp>(parent))
        return loop.getBeforeArguments()[i];
      if (isa<scf::ForOp, scf::IfOp>(parent))
        return parent->getResult(i);
    }
    return {};
  }

  void forward() {
    for (Value v : values)
      if (chosen(v))
        work.push_back(v);
    propagate();
  }

  void propagate() {
    while (!work.empty()) {
      Value v = work.pop_back_val();
      Choice choice = *chosen(v);
      int64_t weight = choice.weight;
      if (weight == kAnchor) {
        Operation *at = v.getDefiningOp() ? v.getDefiningOp() : v.getParentBlock()->getParentOp();
        weight = weightAt(at, tileType(v));
      }
      for (OpOperand &use : v.getUses()) {
        Operation *op = use.getOwner();
        if (anchored.contains(&use))
          continue;
        if (isControl(op)) {
          if (Value to = target(use))
            offer(to, choice.encoding, weight);
          continue;
        }
        // A small anchor says nothing about the larger tiles made of it, nor a 1-D one about the plane it lies in.
        if (auto broadcast = dyn_cast<tt::BroadcastOp>(op); broadcast && weight < broadcast.getType().getNumElements())
          continue;
        if (auto expand = dyn_cast<tt::ExpandDimsOp>(op)) {
          auto slice = dyn_cast<ttg::SliceEncodingAttr>(choice.encoding);
          if (!slice || slice.getDim() != expand.getAxis())
            continue;
        }
        Attribute e = layouts::resultEncoding(op, use.getOperandNumber(), choice.encoding);
        for (Value result : op->getResults())
          offer(result, e, weight);
      }
    }
  }

  /// The heaviest choice among the tiles that must agree with each other: operands of reduce, join, cat and small
  /// stores.
  const Choice *siblings(Operation *op) const {
    const Choice *best = nullptr;
    for (Value operand : op->getOperands())
      if (const Choice *c = chosen(operand); c && (!best || c->weight > best->weight))
        best = c;
    return best;
  }

  /// What the user of `use` would like, given the choices so far.
  Attribute demand(OpOperand &use) {
    if (Attribute fixed = anchored.lookup(&use))
      return fixed;
    Operation *op = use.getOwner();
    if (isControl(op)) {
      Value to = target(use);
      return to ? encodingFor(to) : Attribute();
    }
    if (takesAny(op))
      return {};
    unsigned i = use.getOperandNumber();
    if (op->getNumResults())
      if (Attribute e = encodingFor(op->getResult(0)))
        return layouts::operandEncoding(op, i, e);
    if (layouts::isForced(op) || op->getNumResults() == 0)
      if (const Choice *c = siblings(op))
        return c->encoding;
    return {};
  }

  bool backward() {
    bool changed = false;
    for (Value v : llvm::reverse(values)) {
      if (chosen(v))
        continue;
      Attribute best;
      int64_t weight = -1;
      auto consider = [&](Value member) {
        for (OpOperand &use : member.getUses())
          if (Attribute e = demand(use)) {
            int64_t w = weightAt(use.getOwner(), tileType(v));
            if (w > weight)
              best = e, weight = w;
          }
      };
      consider(v);
      for (Value other : tied.lookup(v))
        consider(other);
      if (!best)
        continue;
      // What follows from the operand can be asked for only if some operand's layout gives it.
      Operation *def = v.getDefiningOp();
      if (def && layouts::isForced(def) && !layouts::operandEncoding(def, 0, best))
        continue;
      changed |= offer(v, best, 0); // weight 0: whatever else comes along wins
    }
    if (changed)
      propagate();
    return changed;
  }

  /// Choices for what neither flow reached, and for results that follow from their operands.
  void settle() {
    for (Operation *op : ops) {
      if (layouts::isForced(op) && op->getNumOperands()) {
        const Choice *c = siblings(op);
        Choice source = c ? *c : Choice{layouts::encodingOf(op->getOperand(0)), 0};
        Attribute natural = layouts::resultEncoding(op, 0, source.encoding);
        for (Value result : op->getResults())
          if (natural && tileType(result))
            choices[result] = {natural, source.weight};
        if (!natural && tileType(op->getResult(0))) { // the operand will be converted; the results still agree
          keep(op->getResult(0));
          Choice first = *chosen(op->getResult(0));
          for (Value result : llvm::drop_begin(op->getResults()))
            choices[result] = first;
        }
      }
      for (Value result : op->getResults())
        keep(result);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument arg : block.getArguments())
            keep(arg);
    }
  }
  void keep(Value v) {
    if (Attribute e = layouts::encodingOf(v); e && !chosen(v))
      choices[v] = {e, 0};
  }

  /// The encoding that an operand must have, now that all values have theirs; null: any.
  Attribute requirement(OpOperand &operand) {
    if (!tileType(operand.get()))
      return {};
    if (Attribute fixed = anchored.lookup(&operand))
      return fixed;
    Operation *op = operand.getOwner();
    if (isControl(op)) {
      Value to = target(operand);
      return to ? layouts::encodingOf(to) : Attribute();
    }
    if (takesAny(op))
      return {};
    unsigned i = operand.getOperandNumber();
    bool tileResult = op->getNumResults() && layouts::encodingOf(op->getResult(0));
    if (layouts::isForced(op)) {
      if (tileResult)
        if (Attribute e = layouts::operandEncoding(op, i, layouts::encodingOf(op->getResult(0))))
          return e;
      const Choice *c = siblings(op);
      return c ? c->encoding : layouts::encodingOf(op->getOperand(0));
    }
    if (tileResult)
      return layouts::operandEncoding(op, i, layouts::encodingOf(op->getResult(0)));
    if (layouts::isUniform(op)) { // a small store works where its value is
      auto store = dyn_cast<tt::StoreOp>(op);
      return store ? layouts::encodingOf(store.getValue()) : layouts::encodingOf(op->getOperand(0));
    }
    return {};
  }

  //--- repair
  //-----------------------------------------------------------------------------------------------------------

  struct Decision {
    int64_t cost;
    bool recompute;
  };
  llvm::DenseMap<std::pair<Value, Attribute>, Decision> decisions;
  llvm::DenseMap<std::pair<Value, Attribute>, Value> made;

  static int64_t registers(RankedTensorType type, Attribute encoding) {
    return ttg::toLinearLayout(type.getShape(), encoding).size(HwDim::Register);
  }

  llvm::DenseMap<std::pair<Type, Attribute>, int64_t> conversionCosts;

  /// Rough cost of an op for one register, two for an instruction.
  static int64_t opCost(Operation *op) {
    if (layouts::isSource(op))
      return 1;
    if (changesShape(op) || isa<tt::BroadcastOp>(op))
      return 0;
    if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::DivFOp, tt::PreciseDivFOp,
            tt::PreciseSqrtOp, tt::ExternElementwiseOp>(op) ||
        isa_and_nonnull<math::MathDialect>(op->getDialect()))
      return 16;
    return isa<tt::LoadOp>(op) ? 24 : 2;
  }

  int64_t conversionCost(Value v, Attribute to) {
    RankedTensorType type = tileType(v);
    auto [it, fresh] = conversionCosts.try_emplace({type, to}, kImpossible);
    if (fresh) {
      ConversionPlan plan = planConversion(ttg::toLinearLayout(type), ttg::toLinearLayout(type.getShape(), to),
                                           storageBytes(type), model.shared, {kMaxConversionScratchBytes});
      if (plan.kind != ConversionPlan::Kind::Impossible)
        it->second = 2 * int64_t(plan.cost);
    }
    return it->second;
  }

  bool canRecompute(Operation *op) const {
    if (op->getNumResults() != 1 || op->getNumRegions())
      return false;
    if (const Choice *c = chosen(op->getResult(0)); c && c->weight == kAnchor)
      return false;
    if (layouts::isSource(op) || changesShape(op))
      return true;
    if (auto load = dyn_cast<tt::LoadOp>(op))
      return tileType(load.getResult()) && isSmall(tileType(load.getResult())) && !load.getIsVolatile();
    return layouts::isUniform(op) && isMemoryEffectFree(op);
  }

  Decision decide(Value v, Attribute encoding, unsigned depth) {
    if (layouts::encodingOf(v) == encoding || made.contains({v, encoding}))
      return {0, false};
    if (auto it = decisions.find({v, encoding}); it != decisions.end())
      return it->second;
    Operation *op = v.getDefiningOp();
    int64_t scale = int64_t(1) << (3 * loopDepth(op ? op : v.getParentBlock()->getParentOp()));
    Decision d{std::min(conversionCost(v, encoding), kImpossible / scale) * scale, false};
    if (op && depth < kMaxChain && canRecompute(op)) {
      // An op with this one user moves instead of being done twice.
      int64_t cost = v.hasOneUse() ? 0 : opCost(op) * registers(tileType(v), encoding) * scale;
      for (OpOperand &operand : op->getOpOperands()) {
        if (!tileType(operand.get()) || cost >= d.cost)
          continue;
        Attribute e = layouts::operandEncoding(op, operand.getOperandNumber(), encoding);
        cost += e ? decide(operand.get(), e, depth + 1).cost : kImpossible;
      }
      if (cost < d.cost)
        d = {cost, true};
    }
    return decisions[{v, encoding}] = d;
  }

  /// `v` in `encoding`.
  Value materialise(Value v, Attribute encoding) {
    if (layouts::encodingOf(v) == encoding)
      return v;
    if (Value known = made.lookup({v, encoding}))
      return known;
    bool recompute = decide(v, encoding, 0).recompute;
    OpBuilder b(func.getContext());
    b.setInsertionPointAfterValue(v);
    Value result;
    if (recompute) {
      Operation *op = v.getDefiningOp();
      IRMapping map;
      for (OpOperand &operand : op->getOpOperands())
        if (tileType(operand.get()))
          map.map(operand.get(),
                  materialise(operand.get(), layouts::operandEncoding(op, operand.getOperandNumber(), encoding)));
      result = b.clone(*op, map)->getResult(0);
      layouts::setEncoding(result, encoding);
    } else {
      result = ttg::ConvertLayoutOp::create(b, v.getLoc(), layouts::withEncoding(tileType(v), encoding), v);
    }
    return made[{v, encoding}] = result;
  }

  void eraseDead() {
    func.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
      if (isOpTriviallyDead(op))
        op->erase();
    });
  }
};

class RemoveLayoutConversions : public impl::TtgirRemoveLayoutConversionsBase<RemoveLayoutConversions> {
public:
  void runOnOperation() override {
    for (auto func : getOperation().getOps<tt::FuncOp>())
      if (!func.isExternal())
        Relayout(func, TargetModel::of(getOperation())).run();
  }
};

} // namespace
} // namespace tessera
