// The axis analysis: transfer functions of ops, and a sparse forward data flow (an op is visited again only when an
// operand's facts got weaker), so that deep loop nests cost no more than their number of values.
#include "tessera/passes/AxisInfo.h"

#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/passes/Allocation.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <deque>

using namespace mlir;

namespace tessera {

int64_t powerOfTwoDivisor(int64_t value) {
  if (value == 0)
    return AxisInfo::kMaxDivisibility;
  return std::min(AxisInfo::kMaxDivisibility, int64_t(1) << llvm::countr_zero(static_cast<uint64_t>(value)));
}

AxisInfo::AxisInfo(Dims contiguity, Dims divisibility, Dims constancy, std::optional<int64_t> constantValue,
                   bool nonNegative)
    : contiguity(std::move(contiguity)), divisibility(std::move(divisibility)), constancy(std::move(constancy)),
      constantValue(constantValue), nonNegative(nonNegative) {}

AxisInfo AxisInfo::unknown(unsigned rank) { return AxisInfo(Dims(rank, 1), Dims(rank, 1), Dims(rank, 1)); }

AxisInfo AxisInfo::constant(int64_t value, llvm::ArrayRef<int64_t> shape) {
  unsigned rank = shape.size();
  return AxisInfo(Dims(rank, 1), Dims(rank, powerOfTwoDivisor(value)), Dims(shape), value, value >= 0);
}

int64_t AxisInfo::divisibilityAt(unsigned dim, int64_t size, int64_t step) const {
  // Shorter groups start inside of ours, at multiples of `size` after its first element.
  return size >= contiguity[dim] ? divisibility[dim] : std::min(divisibility[dim], powerOfTwoDivisor(size * step));
}

int64_t AxisInfo::divisibilityOfAll() const {
  int64_t best = 1;
  for (unsigned d = 0; d < rank(); ++d)
    if (contiguity[d] == 1)
      best = std::max(best, divisibility[d]);
  return best;
}

AxisInfo AxisInfo::join(const AxisInfo &a, const AxisInfo &b, int64_t step) {
  AxisInfo r = unknown(a.rank());
  for (unsigned d = 0; d < a.rank(); ++d) {
    r.contiguity[d] = std::min(a.contiguity[d], b.contiguity[d]);
    r.constancy[d] = std::min(a.constancy[d], b.constancy[d]);
    r.divisibility[d] =
        std::min(a.divisibilityAt(d, r.contiguity[d], step), b.divisibilityAt(d, r.contiguity[d], step));
  }
  if (a.constantValue == b.constantValue)
    r.constantValue = a.constantValue;
  r.nonNegative = a.nonNegative && b.nonNegative;
  return r;
}

namespace {

using Dims = AxisInfo::Dims;

Dims shapeOf(Value v) {
  if (auto t = dyn_cast<RankedTensorType>(v.getType()))
    return Dims(t.getShape());
  return {1};
}

/// Distance in the unit of the facts between neighbours of a group: bytes for pointers, 1 for integers.
int64_t stepOf(Type type) {
  auto ptr = dyn_cast<tt::PointerType>(getElementTypeOrSelf(type));
  return ptr ? storageBytes(ptr.getPointeeType()) : 1;
}

int64_t lowestBit(int64_t v) { return v <= 0 ? 1 : int64_t(1) << llvm::countr_zero(static_cast<uint64_t>(v)); }

/// `v` as a number of `bits` bits: sign-extended, but 0 or 1 for i1.
int64_t wrap(uint64_t v, unsigned bits) {
  if (bits == 1)
    return v & 1;
  return bits >= 64 ? static_cast<int64_t>(v) : llvm::SignExtend64(v, bits);
}
uint64_t zext(int64_t v, unsigned bits) {
  return bits >= 64 ? v : static_cast<uint64_t>(v) & ((uint64_t(1) << bits) - 1);
}

int64_t saturatingMul(int64_t a, int64_t b) {
  return a > AxisInfo::kMaxDivisibility / b ? AxisInfo::kMaxDivisibility : a * b;
}

/// Transfer functions and the work list.
class Analyzer {
public:
  explicit Analyzer(llvm::DenseMap<Value, AxisInfo> &info) : info(info) {}

  void run(ModuleOp module) {
    module.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto func = dyn_cast<tt::FuncOp>(op))
        visitArguments(func);
      if (!isa<scf::ForOp, scf::WhileOp>(op)) // whose arguments flow() fills
        for (Region &region : op->getRegions())
          for (Block &block : region)
            for (BlockArgument arg : block.getArguments())
              if (!isa<tt::FuncOp>(op) || !block.isEntryBlock())
                update(arg, AxisInfo::unknown(shapeOf(arg).size()));
      enqueue(op);
    });
    while (!work.empty()) {
      Operation *op = work.front();
      work.pop_front();
      queued.erase(op);
      visit(op);
    }
  }

private:
  llvm::DenseMap<Value, AxisInfo> &info;
  std::deque<Operation *> work;
  llvm::DenseSet<Operation *> queued;

  void enqueue(Operation *op) {
    if (queued.insert(op).second)
      work.push_back(op);
  }

  const AxisInfo *get(Value v) const {
    auto it = info.find(v);
    return it == info.end() ? nullptr : &it->second;
  }

  /// Facts only ever get weaker, hence the flow ends.
  void update(Value v, AxisInfo fact) {
    auto [it, fresh] = info.try_emplace(v, fact);
    if (!fresh) {
      AxisInfo joined = AxisInfo::join(it->second, fact, stepOf(v.getType()));
      if (joined == it->second)
        return;
      it->second = std::move(joined);
    }
    for (Operation *user : v.getUsers())
      enqueue(user);
  }

  void visitArguments(tt::FuncOp func) {
    if (func.isExternal())
      return;
    for (BlockArgument arg : func.getBody().getArguments()) {
      AxisInfo fact = AxisInfo::unknown(shapeOf(arg).size());
      auto attr = [&](StringRef name) { return func.getArgAttr(arg.getArgNumber(), name); };
      applyHints(fact, shapeOf(arg), attr("tt.divisibility"), attr("tt.contiguity"), attr("tt.constancy"));
      update(arg, std::move(fact));
    }
  }

  /// The author vouches for hints; they only strengthen what is known.
  static void applyHints(AxisInfo &fact, const Dims &shape, Attribute divisibility, Attribute contiguity,
                         Attribute constancy) {
    auto strengthen = [&](Attribute attr, Dims &dims, bool limited) {
      SmallVector<int64_t> values;
      if (auto i = dyn_cast_or_null<IntegerAttr>(attr))
        values.assign(dims.size(), i.getValue().getSExtValue());
      if (auto a = dyn_cast_or_null<DenseI32ArrayAttr>(attr))
        values.assign(a.asArrayRef().begin(), a.asArrayRef().end());
      if (auto e = dyn_cast_or_null<DenseIntElementsAttr>(attr))
        for (const APInt &v : e.getValues<APInt>()) { // no more than are wanted: text may repeat one billions of times
          if (values.size() == dims.size())
            break;
          values.push_back(v.getSExtValue());
        }
      for (unsigned d = 0; d < std::min(values.size(), dims.size()); ++d)
        dims[d] = std::max(dims[d], limited ? std::min(lowestBit(values[d]), shape[d]) : lowestBit(values[d]));
    };
    strengthen(contiguity, fact.contiguity, true);
    strengthen(divisibility, fact.divisibility, false);
    strengthen(constancy, fact.constancy, true);
  }

  //--- control flow ---------------------------------------------------------------------------------------------------

  void flow(Value from, Value to) {
    if (const AxisInfo *fact = get(from))
      update(to, AxisInfo(*fact));
  }
  void flow(ValueRange from, ValueRange to) {
    for (auto [f, t] : llvm::zip(from, to))
      flow(f, t);
  }

  void visit(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      const AxisInfo *lb = get(loop.getLowerBound()), *step = get(loop.getStep());
      if (lb && step) {
        AxisInfo iv({1}, {std::min(lb->divisibilityOfAll(), step->divisibilityOfAll())}, {1});
        iv.nonNegative = lb->nonNegative && (step->nonNegative || loop.getUnsignedCmp());
        applyHints(iv, {1}, loop->getAttr("tt.divisibility_arg0"), {}, {});
        update(loop.getInductionVar(), std::move(iv));
      }
      flow(loop.getInitArgs(), loop.getRegionIterArgs());
      flow(loop.getInitArgs(), loop.getResults()); // no trip
      return;
    }
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      return flow(loop.getInits(), loop.getBeforeArguments());
    if (auto cond = dyn_cast<scf::ConditionOp>(op)) {
      auto loop = cast<scf::WhileOp>(op->getParentOp());
      flow(cond.getArgs(), loop.getAfterArguments());
      return flow(cond.getArgs(), loop.getResults());
    }
    if (auto yield = dyn_cast<scf::YieldOp>(op)) {
      Operation *parent = op->getParentOp();
      if (auto loop = dyn_cast<scf::ForOp>(parent))
        flow(yield.getOperands(), loop.getRegionIterArgs());
      if (auto loop = dyn_cast<scf::WhileOp>(parent))
        return flow(yield.getOperands(), loop.getBeforeArguments());
      return flow(yield.getOperands(), parent->getResults());
    }
    if (isa<scf::IfOp, scf::IndexSwitchOp, scf::ExecuteRegionOp>(op))
      return; // results flow from the yields
    if (op->getNumResults() == 0)
      return;
    for (Value operand : op->getOperands())
      if (!get(operand))
        return; // not reached yet: comes back when it is
    AxisInfo fact = infer(op);
    applyHints(fact, shapeOf(op->getResult(0)), op->getDiscardableAttr("tt.divisibility"),
               op->getDiscardableAttr("tt.contiguity"), op->getDiscardableAttr("tt.constancy"));
    update(op->getResult(0), std::move(fact));
    for (Value other : llvm::drop_begin(op->getResults()))
      update(other, AxisInfo::unknown(shapeOf(other).size()));
  }

  //--- transfer functions ---------------------------------------------------------------------------------------------

  AxisInfo infer(Operation *op) {
    Value result = op->getResult(0);
    Dims shape = shapeOf(result);
    auto in = [&](unsigned i) -> const AxisInfo & { return info.find(op->getOperand(i))->second; };

    return llvm::TypeSwitch<Operation *, AxisInfo>(op)
        .Case([&](arith::ConstantOp c) { return inferConstant(c, shape); })
        .Case([&](tt::MakeRangeOp range) {
          int64_t start = static_cast<int32_t>(range.getStart());
          return AxisInfo(shape, {powerOfTwoDivisor(start)}, {1}, {}, start >= 0);
        })
        .Case<tt::GetProgramIdOp, tt::GetNumProgramsOp>([&](auto) {
          AxisInfo fact = AxisInfo::unknown(1);
          fact.nonNegative = true;
          return fact;
        })
        .Case([&](tt::SplatOp) {
          AxisInfo fact(Dims(shape.size(), 1), Dims(shape.size(), in(0).divisibility[0]), shape, in(0).constantValue,
                        in(0).nonNegative);
          return fact;
        })
        .Case([&](tt::UnsplatOp) {
          AxisInfo fact({1}, {in(0).divisibilityOfAll()}, {1}, in(0).constantValue, in(0).nonNegative);
          return fact;
        })
        .Case([&](tt::ExpandDimsOp expand) {
          AxisInfo fact = in(0);
          unsigned axis = expand.getAxis();
          fact.contiguity.insert(fact.contiguity.begin() + axis, 1);
          fact.constancy.insert(fact.constancy.begin() + axis, 1);
          fact.divisibility.insert(fact.divisibility.begin() + axis, in(0).divisibilityOfAll());
          return fact;
        })
        .Case([&](tt::BroadcastOp b) {
          AxisInfo fact = in(0);
          Dims from = shapeOf(b.getSrc());
          for (unsigned d = 0; d < shape.size(); ++d)
            if (from[d] == 1 && shape[d] != 1) {
              fact.contiguity[d] = 1;
              fact.constancy[d] = shape[d];
            }
          return fact;
        })
        .Case([&](tt::TransOp trans) {
          AxisInfo fact = in(0);
          for (auto [d, from] : llvm::enumerate(trans.getOrder())) {
            fact.contiguity[d] = in(0).contiguity[from];
            fact.divisibility[d] = in(0).divisibility[from];
            fact.constancy[d] = in(0).constancy[from];
          }
          return fact;
        })
        .Case([&](tt::ReshapeOp reshape) { return inferReshape(reshape, in(0), shape); })
        .Case([&](ttg::ConvertLayoutOp) { return in(0); })
        .Case<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(
            [&](auto) { return inferResize(op, in(0), shape); })
        .Case<tt::BitcastOp, tt::IntToPtrOp, tt::PtrToIntOp>([&](auto) {
          // Neighbours are `step` units apart before and after; only an equal step keeps groups.
          Type from = getElementTypeOrSelf(op->getOperand(0)), to = getElementTypeOrSelf(result);
          bool numbers = !isa<FloatType>(from) && !isa<FloatType>(to);
          if (numbers && stepOf(from) == stepOf(to))
            return in(0);
          AxisInfo fact = AxisInfo::unknown(shape.size());
          fact.constancy = in(0).constancy;
          if (numbers)
            for (unsigned d = 0; d < shape.size(); ++d)
              fact.divisibility[d] = std::max(in(0).divisibilityOfAll(), in(0).divisibilityAt(d, 1, stepOf(from)));
          return fact;
        })
        .Case([&](tt::AddPtrOp) { return inferAdd(in(0), in(1), stepOf(result.getType()), false); })
        .Case([&](arith::AddIOp) { return withConstant(op, inferAdd(in(0), in(1), 1, false)); })
        .Case([&](arith::SubIOp) { return withConstant(op, inferAdd(in(0), in(1), 1, true)); })
        .Case([&](arith::MulIOp) { return withConstant(op, inferMul(in(0), in(1))); })
        .Case<arith::DivSIOp, arith::DivUIOp>(
            [&](auto) { return withConstant(op, inferDiv(in(0), in(1), isa<arith::DivUIOp>(op), shape)); })
        .Case<arith::RemSIOp, arith::RemUIOp>(
            [&](auto) { return withConstant(op, inferRem(in(0), in(1), isa<arith::RemUIOp>(op))); })
        .Case<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(
            [&](auto) { return withConstant(op, inferShift(op, in(0), in(1))); })
        .Case<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(
            [&](auto) { return withConstant(op, inferBitwise(op, in(0), in(1))); })
        .Case<arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp>([&](auto) {
          AxisInfo fact = elementwise(op);
          for (unsigned d = 0; d < shape.size(); ++d)
            fact.divisibility[d] = std::min(in(0).divisibilityAt(d, 1), in(1).divisibilityAt(d, 1));
          bool both = in(0).nonNegative && in(1).nonNegative;
          fact.nonNegative = isa<arith::MaxSIOp>(op)   ? in(0).nonNegative || in(1).nonNegative
                             : isa<arith::MinUIOp>(op) ? in(0).nonNegative || in(1).nonNegative
                                                       : both;
          return withConstant(op, std::move(fact));
        })
        .Case([&](arith::CmpIOp cmp) { return withConstant(op, inferCompare(cmp, in(0), in(1))); })
        .Case([&](arith::SelectOp select) { return inferSelect(select, in(0), in(1), in(2)); })
        .Case([&](tt::LoadOp load) { // the same address gives the same value
          return load.getIsVolatile() ? AxisInfo::unknown(shape.size()) : elementwise(op);
        })
        .Default([&](Operation *) {
          bool pure = op->hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(op);
          return pure ? elementwise(op) : AxisInfo::unknown(shape.size());
        });
  }

  /// Integer to integer of another width. A group that wraps around in the narrow type is none in the wide type. From
  /// 32 bits on we say it is, as Triton does: its offsets lie 2^32 elements apart, so some are outside of the tensor.
  static AxisInfo inferResize(Operation *op, const AxisInfo &src, const Dims &shape) {
    auto bitsOf = [](Value v) -> unsigned {
      Type type = getElementTypeOrSelf(v);
      return isa<IntegerType>(type) ? type.getIntOrFloatBitWidth() : 64;
    };
    unsigned from = bitsOf(op->getOperand(0)), to = bitsOf(op->getResult(0));
    bool isUnsigned = isa<arith::ExtUIOp, arith::IndexCastUIOp>(op);
    if (src.constantValue) {
      int64_t v = isUnsigned ? zext(*src.constantValue, from) : from == 1 ? -*src.constantValue : *src.constantValue;
      return AxisInfo::constant(wrap(v, to), shape);
    }
    AxisInfo fact = src;
    if (unsigned narrow = std::min(from, to); narrow < 32)
      for (unsigned d = 0; d < src.rank(); ++d) { // aligned groups of at most half the range do not wrap
        fact.contiguity[d] = std::min({src.contiguity[d], src.divisibility[d], int64_t(1) << (narrow - 1)});
        fact.divisibility[d] = src.divisibilityAt(d, fact.contiguity[d]);
      }
    fact.nonNegative = to >= from && (isUnsigned || (src.nonNegative && from > 1));
    return fact;
  }

  static AxisInfo inferConstant(arith::ConstantOp c, const Dims &shape) {
    Attribute value = c.getValue();
    if (auto i = dyn_cast<IntegerAttr>(value)) {
      const APInt &v = i.getValue();
      return AxisInfo::constant(v.getBitWidth() == 1 ? v.getZExtValue() : v.getSExtValue(), shape);
    }
    if (auto dense = dyn_cast<DenseElementsAttr>(value); dense && dense.isSplat()) {
      if (!isa<DenseIntElementsAttr>(dense))
        return AxisInfo(Dims(shape.size(), 1), Dims(shape.size(), 1), shape);
      APInt v = dense.getSplatValue<APInt>();
      return AxisInfo::constant(v.getBitWidth() == 1 ? v.getZExtValue() : v.getSExtValue(), shape);
    }
    AxisInfo fact = AxisInfo::unknown(shape.size());
    if (isa<FloatAttr>(value))
      fact.constancy = shape;
    return fact;
  }

  /// Row-major: only the last dimension keeps its neighbours, and only as far as both shapes have them in one row.
  static AxisInfo inferReshape(tt::ReshapeOp op, const AxisInfo &src, const Dims &shape) {
    AxisInfo fact = AxisInfo::unknown(shape.size());
    Dims from = shapeOf(op.getSrc());
    bool uniform = src.constancy == from;
    fact.divisibility.assign(shape.size(), src.divisibilityOfAll());
    fact.nonNegative = src.nonNegative;
    fact.constantValue = src.constantValue;
    if (uniform)
      fact.constancy = shape;
    if (uniform || op.getAllowReorder())
      return fact;
    auto fastest = [](const Dims &dims) {
      unsigned d = dims.size() - 1;
      while (d > 0 && dims[d] == 1)
        --d;
      return d;
    };
    unsigned last = fastest(shape), srcLast = fastest(from);
    fact.contiguity[last] = std::min(src.contiguity[srcLast], shape[last]);
    fact.constancy[last] = std::min(src.constancy[srcLast], shape[last]);
    fact.divisibility[last] =
        std::max(src.divisibilityAt(srcLast, fact.contiguity[last], stepOf(op.getSrc().getType())),
                 fact.contiguity[last] == 1 ? src.divisibilityOfAll() : 1);
    return fact;
  }

  /// Equal operands give equal results.
  AxisInfo elementwise(Operation *op) {
    AxisInfo fact = AxisInfo::unknown(shapeOf(op->getResult(0)).size());
    fact.constancy = shapeOf(op->getResult(0));
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()) || !isa<RankedTensorType>(op->getResult(0).getType()))
        for (unsigned d = 0; d < fact.rank(); ++d)
          fact.constancy[d] = std::min(fact.constancy[d], info.find(operand)->second.constancy[d]);
    return fact;
  }

  /// a ± b; b is scaled by `step` (pointer arithmetic).
  static AxisInfo inferAdd(const AxisInfo &a, const AxisInfo &b, int64_t step, bool minus) {
    AxisInfo r = AxisInfo::unknown(a.rank());
    for (unsigned d = 0; d < a.rank(); ++d) {
      r.constancy[d] = std::min(a.constancy[d], b.constancy[d]);
      int64_t c = std::min(a.contiguity[d], b.constancy[d]);
      if (!minus)
        c = std::max(c, std::min(a.constancy[d], b.contiguity[d]));
      r.contiguity[d] = c;
      // Divisibility by powers of two survives wrap-around.
      r.divisibility[d] = std::min(a.divisibilityAt(d, c, step), saturatingMul(b.divisibilityAt(d, c), step));
    }
    r.nonNegative = !minus && a.nonNegative && b.nonNegative;
    return r;
  }

  static AxisInfo inferMul(const AxisInfo &a, const AxisInfo &b) {
    if (a.constantValue == 1)
      return b;
    if (b.constantValue == 1)
      return a;
    AxisInfo r = AxisInfo::unknown(a.rank());
    for (unsigned d = 0; d < a.rank(); ++d) {
      r.constancy[d] = std::min(a.constancy[d], b.constancy[d]);
      r.divisibility[d] = saturatingMul(a.divisibilityAt(d, 1), b.divisibilityAt(d, 1));
    }
    r.nonNegative = a.nonNegative && b.nonNegative;
    return r;
  }

  /// Length of the runs of `x` that start at a multiple of g = their length, where `m` is a uniform multiple of g: such
  /// runs do not cross a multiple of m.
  static int64_t alignedRun(const AxisInfo &x, const AxisInfo &m, unsigned d) {
    return std::min({x.contiguity[d], x.divisibility[d], m.constancy[d], m.divisibilityAt(d, 1)});
  }

  static AxisInfo inferDiv(const AxisInfo &a, const AxisInfo &b, bool isUnsigned, const Dims &shape) {
    if (b.constantValue == 1)
      return a;
    AxisInfo r = AxisInfo::unknown(a.rank());
    // Signed division truncates, so -1/4 == 0/4 but -4/4 != -3/4: runs below zero do not give equal quotients.
    bool floors = isUnsigned || a.nonNegative;
    for (unsigned d = 0; d < a.rank(); ++d) {
      r.constancy[d] = std::min(a.constancy[d], b.constancy[d]);
      if (floors)
        r.constancy[d] = std::max(r.constancy[d], alignedRun(a, b, d));
      if (b.constantValue && *b.constantValue > 0 && llvm::isPowerOf2_64(*b.constantValue))
        r.divisibility[d] = std::max<int64_t>(1, a.divisibilityAt(d, 1) / *b.constantValue);
    }
    // A block index is often divided by a count that the analysis knows nothing of (a difference, an argument).
    r.nonNegative = a.nonNegative && (isUnsigned || b.nonNegative || !b.constantValue);
    return r;
  }

  static AxisInfo inferRem(const AxisInfo &a, const AxisInfo &b, bool isUnsigned) {
    AxisInfo r = AxisInfo::unknown(a.rank());
    bool floors = isUnsigned || a.nonNegative;
    for (unsigned d = 0; d < a.rank(); ++d) {
      r.constancy[d] = std::min(a.constancy[d], b.constancy[d]);
      int64_t run = floors ? std::max<int64_t>(1, alignedRun(a, b, d)) : 1;
      r.contiguity[d] = run;
      r.divisibility[d] = std::min(a.divisibilityAt(d, run), b.divisibilityAt(d, 1));
    }
    // Unsigned: not larger than the dividend, so its sign bit stays clear.
    r.nonNegative = a.nonNegative;
    return r;
  }

  static AxisInfo inferShift(Operation *op, const AxisInfo &a, const AxisInfo &b) {
    if (b.constantValue == 0)
      return a;
    AxisInfo r = AxisInfo::unknown(a.rank());
    int64_t bits = getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth();
    int64_t amount = b.constantValue.value_or(-1);
    bool known = amount >= 0 && amount < std::min<int64_t>(bits, 40);
    for (unsigned d = 0; d < a.rank(); ++d) {
      r.constancy[d] = std::min(a.constancy[d], b.constancy[d]);
      if (isa<arith::ShLIOp>(op)) {
        r.divisibility[d] = saturatingMul(a.divisibilityAt(d, 1), known ? int64_t(1) << amount : 1);
      } else if (known) { // rounds down, below zero too
        int64_t run = std::min({a.contiguity[d], a.divisibility[d], int64_t(1) << amount});
        r.constancy[d] = std::max(r.constancy[d], run);
        r.divisibility[d] = std::max<int64_t>(1, a.divisibilityAt(d, 1) >> amount);
      }
    }
    // Left shifts also mix bits on purpose (random numbers, hashes): the sign bit may be hit.
    if (!isa<arith::ShLIOp>(op))
      r.nonNegative = a.nonNegative || (isa<arith::ShRUIOp>(op) && known && amount > 0);
    return r;
  }

  static AxisInfo inferBitwise(Operation *op, const AxisInfo &a, const AxisInfo &b) {
    AxisInfo r = AxisInfo::unknown(a.rank());
    bool isAnd = isa<arith::AndIOp>(op);
    for (unsigned d = 0; d < a.rank(); ++d) {
      r.constancy[d] = std::min(a.constancy[d], b.constancy[d]);
      int64_t da = a.divisibilityAt(d, 1), db = b.divisibilityAt(d, 1);
      r.divisibility[d] = isAnd ? std::max(da, db) : std::min(da, db);
    }
    if (isAnd)
      for (auto [x, m] : {std::pair(&a, &b), std::pair(&b, &a)}) {
        if (!m->constantValue)
          continue;
        int64_t mask = *m->constantValue;
        for (unsigned d = 0; d < a.rank(); ++d) {
          // x & (2^k - 1) is x mod 2^k; x & -(2^k) rounds down to a multiple of 2^k.
          int64_t low = powerOfTwoDivisor(static_cast<int64_t>(uint64_t(mask) + 1)), high = powerOfTwoDivisor(mask);
          int64_t run = std::min({x->contiguity[d], x->divisibility[d], low});
          if (run > 1) {
            r.contiguity[d] = run;
            r.divisibility[d] = x->divisibilityAt(d, run);
          }
          r.constancy[d] = std::max(r.constancy[d], std::min({x->contiguity[d], x->divisibility[d], high}));
        }
      }
    r.nonNegative = isAnd ? a.nonNegative || b.nonNegative : a.nonNegative && b.nonNegative;
    return r;
  }

  static AxisInfo inferCompare(arith::CmpIOp op, const AxisInfo &a, const AxisInfo &b) {
    AxisInfo r = AxisInfo::unknown(a.rank());
    using P = arith::CmpIPredicate;
    P p = op.getPredicate();
    // x < n and x >= n do not change within aligned runs of x when n is a multiple of their length; x <= n does.
    bool left = p == P::slt || p == P::ult || p == P::sge || p == P::uge;
    bool right = p == P::sgt || p == P::ugt || p == P::sle || p == P::ule;
    for (unsigned d = 0; d < a.rank(); ++d) {
      r.constancy[d] = std::min(a.constancy[d], b.constancy[d]);
      if (left)
        r.constancy[d] = std::max(r.constancy[d], alignedRun(a, b, d));
      if (right)
        r.constancy[d] = std::max(r.constancy[d], alignedRun(b, a, d));
    }
    r.nonNegative = false;
    return r;
  }

  static AxisInfo inferSelect(arith::SelectOp op, const AxisInfo &cond, const AxisInfo &a, const AxisInfo &b) {
    if (cond.constantValue)
      return *cond.constantValue ? a : b;
    int64_t step = stepOf(op.getType());
    AxisInfo r = AxisInfo::join(a, b, step);
    if (isa<RankedTensorType>(op.getCondition().getType()))
      for (unsigned d = 0; d < r.rank(); ++d) {
        r.contiguity[d] = std::min(r.contiguity[d], cond.constancy[d]);
        r.divisibility[d] =
            std::min(a.divisibilityAt(d, r.contiguity[d], step), b.divisibilityAt(d, r.contiguity[d], step));
        // Equal constants on both sides make the condition irrelevant.
        if (!r.constantValue)
          r.constancy[d] = std::min(r.constancy[d], cond.constancy[d]);
      }
    return r;
  }

  /// Folds an op on two uniform known numbers.
  AxisInfo withConstant(Operation *op, AxisInfo fact) {
    auto a = get(op->getOperand(0))->constantValue, b = get(op->getOperand(1))->constantValue;
    if (!a || !b)
      return fact;
    Type type = getElementTypeOrSelf(op->getOperand(0));
    unsigned bits = isa<IntegerType>(type) ? type.getIntOrFloatBitWidth() : 64;
    int64_t x = *a, y = *b;
    uint64_t ux = zext(x, bits), uy = zext(y, bits);
    using P = arith::CmpIPredicate;
    std::optional<int64_t> v =
        llvm::TypeSwitch<Operation *, std::optional<int64_t>>(op)
            .Case([&](arith::AddIOp) { return wrap(ux + uy, bits); })
            .Case([&](arith::SubIOp) { return wrap(ux - uy, bits); })
            .Case([&](arith::MulIOp) { return wrap(ux * uy, bits); })
            .Case([&](arith::AndIOp) { return wrap(ux & uy, bits); })
            .Case([&](arith::OrIOp) { return wrap(ux | uy, bits); })
            .Case([&](arith::XOrIOp) { return wrap(ux ^ uy, bits); })
            .Case([&](arith::MaxSIOp) { return std::max(x, y); })
            .Case([&](arith::MinSIOp) { return std::min(x, y); })
            .Case([&](arith::DivUIOp) { return uy ? std::optional(wrap(ux / uy, bits)) : std::nullopt; })
            .Case([&](arith::RemUIOp) { return uy ? std::optional(wrap(ux % uy, bits)) : std::nullopt; })
            .Case([&](arith::DivSIOp) { return y > 0 && bits > 1 ? std::optional(x / y) : std::nullopt; })
            .Case([&](arith::RemSIOp) { return y > 0 && bits > 1 ? std::optional(x % y) : std::nullopt; })
            .Case([&](arith::CmpIOp cmp) -> std::optional<int64_t> {
              switch (cmp.getPredicate()) {
              case P::eq: return x == y;
              case P::ne: return x != y;
              case P::ult: return ux < uy;
              case P::ule: return ux <= uy;
              case P::ugt: return ux > uy;
              case P::uge: return ux >= uy;
              default: break;
              }
              if (bits == 1)
                return std::nullopt; // signed order of i1 puts true below false
              switch (cmp.getPredicate()) {
              case P::slt: return x < y;
              case P::sle: return x <= y;
              case P::sgt: return x > y;
              default: return x >= y;
              }
            })
            .Default([](Operation *) { return std::nullopt; });
    return v ? AxisInfo::constant(*v, shapeOf(op->getResult(0))) : fact;
  }
};

/// Flat distance of neighbours along `dim`.
uint64_t strideOf(llvm::ArrayRef<int64_t> shape, unsigned dim) {
  uint64_t stride = 1;
  for (int64_t s : shape.drop_front(dim + 1))
    stride *= s;
  return stride;
}

/// Consecutive registers that are neighbours along `dim`, the first at a multiple of their number: nothing else moves
/// among them, as lanes of a swizzled layout may.
int64_t registerRun(const LinearLayout &layout, unsigned dim) {
  int64_t run = 1;
  uint64_t stride = strideOf(layout.shape(), dim);
  for (const LinearLayout::Basis &basis : layout.bases(HwDim::Register)) {
    bool alone = llvm::all_of(layout.ins(), [&](const LinearLayout::In &in) {
      return llvm::none_of(in.bases, [&](const LinearLayout::Basis &other) {
        return &other != &basis && other & stride * run;
      });
    });
    if (basis != stride * run || run * 2 > layout.shape()[dim] || !alone)
      break;
    run *= 2;
  }
  return run;
}

/// The tile's layout, or none for scalars and tiles without one.
std::optional<LinearLayout> layoutOf(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  if (!type || !isa_and_nonnull<ttg::DistributedEncoding>(type.getEncoding()))
    return std::nullopt;
  return ttg::toLinearLayout(type);
}

unsigned pointeeBytes(Value ptr) {
  auto type = dyn_cast<tt::PointerType>(getElementTypeOrSelf(ptr.getType()));
  return type ? std::max(1u, storageBytes(type.getPointeeType())) : 1;
}

/// The best run of registers over all dimensions: (dimension, elements).
std::pair<unsigned, int64_t> bestRun(const AxisInfo &fact, const LinearLayout &layout, int64_t bytes,
                                     unsigned maxBits) {
  std::pair<unsigned, int64_t> best{0, 1};
  for (unsigned d = 0; d < fact.rank(); ++d) {
    int64_t limit = std::max<int64_t>(1, maxBits / 8 / bytes);
    int64_t aligned = std::max<int64_t>(1, fact.divisibility[d] / bytes);
    int64_t run = std::min({registerRun(layout, d), fact.contiguity[d], aligned, limit});
    if (run > best.second)
      best = {d, run};
  }
  return best;
}

} // namespace

AxisInfoAnalysis::AxisInfoAnalysis(ModuleOp module) { Analyzer(info).run(module); }

const AxisInfo *AxisInfoAnalysis::lookup(Value value) const {
  auto it = info.find(value);
  return it == info.end() ? nullptr : &it->second;
}

unsigned AxisInfoAnalysis::contiguousElements(Value ptr, unsigned maxBits) const {
  const AxisInfo *fact = lookup(ptr);
  auto layout = layoutOf(ptr);
  return fact && layout ? bestRun(*fact, *layout, pointeeBytes(ptr), maxBits).second : 1;
}

unsigned AxisInfoAnalysis::alignment(Value ptr) const {
  const AxisInfo *fact = lookup(ptr);
  int64_t bytes = pointeeBytes(ptr), known = bytes;
  if (fact && !isa<RankedTensorType>(ptr.getType()))
    known = fact->divisibility[0];
  if (auto layout = layoutOf(ptr); fact && layout) {
    auto [dim, run] = bestRun(*fact, *layout, bytes, 128);
    known = run == 1 ? fact->divisibilityOfAll() : fact->divisibilityAt(dim, run, bytes);
  }
  return std::min<int64_t>(std::max(known, bytes), 16);
}

unsigned AxisInfoAnalysis::maskAlignment(Value mask) const {
  const AxisInfo *fact = lookup(mask);
  auto layout = layoutOf(mask);
  int64_t best = 1;
  if (fact && layout)
    for (unsigned d = 0; d < fact->rank(); ++d)
      best = std::max(best, std::min(registerRun(*layout, d), fact->constancy[d]));
  return best;
}

bool AxisInfoAnalysis::lanesContiguous(Value ptr, unsigned registersPerLane) const {
  const AxisInfo *fact = lookup(ptr);
  auto layout = layoutOf(ptr);
  if (!fact || !layout)
    return false;
  for (unsigned d = 0; d < fact->rank(); ++d) {
    if (registerRun(*layout, d) < registersPerLane)
      continue;
    uint64_t reach = registersPerLane, stride = strideOf(layout->shape(), d);
    bool along = llvm::all_of(layout->bases(HwDim::Lane), [&](LinearLayout::Basis basis) {
      bool next = basis == stride * reach;
      reach *= 2;
      return next;
    });
    // Nothing else moves among the lanes' elements: a warp starts at a multiple of `reach`, so it lies within one group.
    uint64_t within = stride * reach - stride;
    unsigned moves = 0;
    for (const LinearLayout::In &in : layout->ins())
      moves += llvm::count_if(in.bases, [&](LinearLayout::Basis basis) { return basis & within; });
    bool alone = moves == llvm::Log2_64(reach);
    if (along && alone && fact->contiguity[d] >= static_cast<int64_t>(reach))
      return true;
  }
  return false;
}

} // namespace tessera
