#include "interpreter.h"

#include "tessera/ir/ttgir/Ttgir.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::testing {

namespace {

unsigned bitsOf(Value v) {
  Type t = getElementTypeOrSelf(v);
  return isa<IntegerType>(t) ? t.getIntOrFloatBitWidth() : 64;
}
int64_t narrow(uint64_t v, unsigned bits) {
  return bits == 1 ? v & 1 : bits >= 64 ? static_cast<int64_t>(v) : llvm::SignExtend64(v, bits);
}
uint64_t unsign(int64_t v, unsigned bits) { return bits >= 64 ? v : v & ((uint64_t(1) << bits) - 1); }
std::vector<int64_t> shapeOf(Value v) {
  if (auto t = dyn_cast<RankedTensorType>(v.getType()))
    return t.getShape();
  return {};
}
int64_t count(const std::vector<int64_t> &shape) {
  int64_t n = 1;
  for (int64_t s : shape)
    n *= s;
  return n;
}
std::vector<int64_t> coords(int64_t flat, const std::vector<int64_t> &shape) {
  std::vector<int64_t> c(shape.size());
  for (size_t d = shape.size(); d-- > 0; flat /= shape[d])
    c[d] = flat % shape[d];
  return c;
}
int64_t flat(const std::vector<int64_t> &c, const std::vector<int64_t> &shape) {
  int64_t f = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    f = f * shape[d] + c[d];
  return f;
}

} // namespace

void Interpreter::set(Value v, Elements e) {
  if (observe)
    observe(v, e);
  values[v] = std::move(e);
}

void Interpreter::run(tt::FuncOp func, llvm::ArrayRef<int64_t> args) {
  for (auto [arg, value] : llvm::zip(func.getBody().getArguments(), args))
    set(arg, {value});
  runBlock(func.getBody().front());
  if (!products.empty())
    fail(products.front().op, "is never waited for");
  if (!groups.empty() || !started.empty())
    fail(func, "ends with copies under way");
}

void Interpreter::runBlock(Block &block) {
  for (Operation &op : block)
    runOp(&op);
}

int64_t Interpreter::binary(Operation *op, int64_t a, int64_t b, unsigned bits) {
  uint64_t ua = unsign(a, bits), ub = unsign(b, bits);
  auto fit = [&](int64_t exact) {
    int64_t v = narrow(exact, bits);
    overflowed |= bits > 1 && v != exact;
    return v;
  };
  if ((isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op)) && b == 0) {
    undefined = true;
    return 0;
  }
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case<arith::AddFOp>([&](auto) { return a + b; })
      .Case<arith::MulFOp>([&](auto) { return a * b; })
      .Case([&](arith::AddIOp) { return fit(a + b); })
      .Case([&](arith::SubIOp) { return fit(a - b); })
      .Case([&](arith::MulIOp) { return fit(a * b); })
      .Case([&](arith::DivSIOp) {
        overflowed |= a >= 0 && b < 0; // the axis analysis takes it that no index is divided by a negative number
        return fit(a / b);
      })
      .Case([&](arith::RemSIOp) { return b == -1 ? 0 : a % b; })
      .Case([&](arith::DivUIOp) { return narrow(ua / ub, bits); })
      .Case([&](arith::RemUIOp) { return narrow(ua % ub, bits); })
      .Case([&](arith::AndIOp) { return a & b; })
      .Case([&](arith::OrIOp) { return a | b; })
      .Case([&](arith::XOrIOp) { return a ^ b; })
      .Case([&](arith::ShLIOp) { return ub >= bits ? 0 : narrow(ua << ub, bits); })
      .Case([&](arith::ShRUIOp) { return ub >= bits ? 0 : narrow(ua >> ub, bits); })
      .Case([&](arith::ShRSIOp) { return a >> std::min<uint64_t>(ub, bits - 1); })
      .Case([&](arith::MaxSIOp) { return std::max(a, b); })
      .Case([&](arith::MinSIOp) { return std::min(a, b); })
      .Case([&](arith::MaxUIOp) { return ua > ub ? a : b; })
      .Case([&](arith::MinUIOp) { return ua < ub ? a : b; })
      .Case([&](arith::CmpIOp cmp) {
        return int64_t(arith::applyCmpPredicate(cmp.getPredicate(), APInt(bits, ua), APInt(bits, ub)));
      });
}

void Interpreter::runReduce(tt::ReduceOp op) {
  Value src = op.getSrcs().front();
  std::vector<int64_t> shape = shapeOf(src);
  int64_t extent = shape[op.getAxis()], inner = 1;
  for (size_t d = op.getAxis() + 1; d < shape.size(); ++d)
    inner *= shape[d];
  const Elements in = values[src];
  Elements out(in.size() / extent);
  Block &block = op.getCombineBlock();
  for (size_t k = 0; k < out.size(); ++k) {
    int64_t base = k / inner * inner * extent + k % inner, acc = in[base];
    for (int64_t i = 1; i < extent; ++i) {
      values[block.getArgument(0)] = {acc};
      values[block.getArgument(1)] = {in[base + i * inner]};
      for (Operation &o : block.without_terminator())
        runOp(&o);
      acc = values[block.getTerminator()->getOperand(0)][0];
    }
    out[k] = acc;
  }
  set(op->getResult(0), std::move(out));
}

Elements Interpreter::load(const Elements &address, Value mask, Value other, unsigned bits) {
  Elements out(address.size());
  for (size_t k = 0; k < address.size(); ++k) {
    bool on = !mask || values[mask][k];
    if (on)
      read.insert(address[k]);
    uint64_t hash = static_cast<uint64_t>(address[k]) * 0x9E3779B97F4A7C15u;
    auto written = stored.find(address[k]);
    int64_t held = written == stored.end() ? narrow(hash >> 58, bits) : written->second;
    out[k] = on ? held : other ? values[other][k] : 0;
  }
  return out;
}

void Interpreter::runOp(Operation *op) {
  if (visit)
    visit(op);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (auto [arg, init] : llvm::zip(loop.getRegionIterArgs(), loop.getInitArgs()))
      set(arg, values[init]);
    int64_t lb = values[loop.getLowerBound()][0], ub = values[loop.getUpperBound()][0],
            step = values[loop.getStep()][0];
    if (step <= 0) {
      undefined = true;
      step = ub > lb ? ub - lb : 1;
    }
    if (loop.getUnsignedCmp()) {
      unsigned bits = bitsOf(loop.getInductionVar());
      lb = int64_t(unsign(lb, bits)), ub = int64_t(unsign(ub, bits));
    }
    for (int64_t i = lb; i < ub; i += step) {
      set(loop.getInductionVar(), {i});
      runBlock(*loop.getBody());
      std::vector<Elements> next;
      for (Value v : loop.getBody()->getTerminator()->getOperands())
        next.push_back(values[v]);
      for (auto [arg, e] : llvm::zip(loop.getRegionIterArgs(), next))
        set(arg, e);
    }
    for (auto [result, arg] : llvm::zip(loop.getResults(), loop.getRegionIterArgs()))
      set(result, values[arg]);
    return;
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    auto assign = [&](ValueRange from, ValueRange to) {
      std::vector<Elements> copy;
      for (Value v : from)
        copy.push_back(values[v]);
      for (auto [v, e] : llvm::zip(to, copy))
        set(v, e);
    };
    assign(loop.getInits(), loop.getBeforeArguments());
    while (true) {
      runBlock(*loop.getBeforeBody());
      auto condition = loop.getConditionOp();
      bool go = values[condition.getCondition()][0];
      assign(condition.getArgs(), go ? ValueRange(loop.getAfterArguments()) : ValueRange(loop.getResults()));
      if (!go)
        return;
      runBlock(*loop.getAfterBody());
      assign(loop.getYieldOp().getOperands(), loop.getBeforeArguments());
    }
  }
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    Region &region = values[branch.getCondition()][0] ? branch.getThenRegion() : branch.getElseRegion();
    if (region.empty())
      return;
    runBlock(region.front());
    for (auto [result, v] : llvm::zip(op->getResults(), region.front().getTerminator()->getOperands()))
      set(result, values[v]);
    return;
  }
  if (auto store = dyn_cast<tt::StoreOp>(op)) {
    const Elements &address = values[store.getPtr()], &value = values[store.getValue()];
    for (size_t k = 0; k < address.size(); ++k)
      if (!store.getMask() || values[store.getMask()][k])
        stored[address[k]] = value[k];
    return;
  }
  if (auto reduce = dyn_cast<tt::ReduceOp>(op))
    return runReduce(reduce);
  if (runShared(op))
    return;
  if (op->getNumResults() != 1)
    return;
  Value result = op->getResult(0);
  std::vector<int64_t> shape = shapeOf(result);
  int64_t n = count(shape);
  unsigned bits = bitsOf(result);
  Elements out(n);
  auto in = [&](unsigned i) -> const Elements & { return values[op->getOperand(i)]; };
  auto at = [&](unsigned i, int64_t k) { return in(i).size() == 1 ? in(i)[0] : in(i)[k]; };

  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    APInt v(64, 0);
    if (auto dense = dyn_cast<DenseFPElementsAttr>(constant.getValue()))
      v = APInt(64, int64_t(dense.getSplatValue<APFloat>().convertToDouble()));
    else if (auto number = dyn_cast<FloatAttr>(constant.getValue()))
      v = APInt(64, int64_t(number.getValueAsDouble()));
    else if (auto dense = dyn_cast<DenseIntElementsAttr>(constant.getValue()))
      v = dense.getSplatValue<APInt>();
    else
      v = cast<IntegerAttr>(constant.getValue()).getValue();
    out.assign(n, v.getBitWidth() == 1 ? v.getZExtValue() : v.getSExtValue());
  } else if (auto range = dyn_cast<tt::MakeRangeOp>(op)) {
    for (int64_t k = 0; k < n; ++k)
      out[k] = static_cast<int32_t>(range.getStart()) + k;
  } else if (isa<tt::SplatOp>(op)) {
    out.assign(n, in(0)[0]);
  } else if (isa<tt::ExpandDimsOp, tt::ReshapeOp, ttg::ConvertLayoutOp, arith::ExtFOp, arith::SIToFPOp>(op)) {
    out = in(0);
  } else if (isa<tt::BroadcastOp>(op)) {
    auto from = shapeOf(op->getOperand(0));
    for (int64_t k = 0; k < n; ++k) {
      auto c = coords(k, shape);
      for (size_t d = 0; d < c.size(); ++d)
        c[d] %= from[d];
      out[k] = in(0)[flat(c, from)];
    }
  } else if (auto trans = dyn_cast<tt::TransOp>(op)) {
    auto from = shapeOf(op->getOperand(0));
    for (int64_t k = 0; k < n; ++k) {
      auto c = coords(k, shape), s = c;
      for (auto [d, o] : llvm::enumerate(trans.getOrder()))
        s[o] = c[d];
      out[k] = in(0)[flat(s, from)];
    }
  } else if (isa<arith::ExtSIOp>(op)) {
    bool bit = bitsOf(op->getOperand(0)) == 1;
    for (int64_t k = 0; k < n; ++k)
      out[k] = bit ? -in(0)[k] : in(0)[k];
  } else if (isa<arith::ExtUIOp>(op)) {
    for (int64_t k = 0; k < n; ++k)
      out[k] = unsign(in(0)[k], bitsOf(op->getOperand(0)));
  } else if (isa<arith::TruncIOp>(op)) {
    for (int64_t k = 0; k < n; ++k)
      out[k] = narrow(in(0)[k], bits);
  } else if (isa<arith::SelectOp>(op)) {
    for (int64_t k = 0; k < n; ++k)
      out[k] = at(0, k) ? at(1, k) : at(2, k);
  } else if (auto load = dyn_cast<tt::LoadOp>(op)) {
    out = this->load(in(0), load.getMask(), load.getOther(), bits);
  } else if (isa<tt::AddPtrOp>(op)) {
    auto ptr = cast<tt::PointerType>(getElementTypeOrSelf(result));
    int64_t bytes = ptr.getPointeeType().getIntOrFloatBitWidth() / 8;
    for (int64_t k = 0; k < n; ++k)
      out[k] = at(0, k) + at(1, k) * bytes;
  } else if (op->getNumOperands() == 2) {
    for (int64_t k = 0; k < n; ++k)
      out[k] = binary(op, at(0, k), at(1, k), bitsOf(op->getOperand(0)));
  }
  set(result, std::move(out));
}

} // namespace tessera::testing
