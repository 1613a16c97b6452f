// The part of the interpreter that runs shared memory, asynchronous copies and matrix products.
#include "interpreter.h"

#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/ir/ttng/Ttng.h"

using namespace mlir;

namespace tessera::testing {

namespace {

/// What stands for the elements of a product in flight: this, and its number.
constexpr int64_t kUnfinished = int64_t(-0x5eed5eed5eed);
bool isUnfinished(const Elements &e) { return e.size() == 2 && e[0] == kUnfinished; }

ArrayRef<int64_t> shapeOf(Value v) { return cast<ShapedType>(v.getType()).getShape(); }

} // namespace

void Interpreter::fail(Operation *op, const char *what) {
  if (fault.empty())
    llvm::raw_string_ostream(fault) << *op << ' ' << what << '\n';
}

int64_t Interpreter::readCell(Operation *op, int64_t cell) {
  const Cell &c = cells[cell];
  if (c.arriving)
    fail(op, "reads what is still being copied");
  if (!c.written)
    fail(op, "reads what nobody has written");
  return c.value;
}

void Interpreter::writeCell(Operation *op, int64_t cell, int64_t value) {
  Cell &c = cells[cell];
  if (c.arriving)
    fail(op, "writes where a copy will arrive");
  if (c.readers > 0)
    fail(op, "overwrites what a product in flight reads");
  c.value = value;
  c.written = true;
}

void Interpreter::finishCopies(size_t left) {
  for (; groups.size() > left; groups.pop_front())
    for (auto [cell, value] : groups.front()) {
      cells[cell].value = value;
      cells[cell].written = true;
      cells[cell].arriving = false;
    }
}

Elements Interpreter::multiply(const Product &p) {
  auto cellsOf = [&](Value operand, Elements e) {
    if (isa<ttg::MemDescType>(operand.getType()))
      for (int64_t &x : e)
        x = readCell(p.op, x);
    return e;
  };
  if (!isa<ttg::MemDescType>(p.op->getOperand(0).getType()) && values[p.op->getOperand(0)] != p.a)
    fail(p.op, "reads registers that were written before it was waited for");
  Elements a = cellsOf(p.op->getOperand(0), p.a), b = cellsOf(p.op->getOperand(1), p.b), d = p.c;
  if (isUnfinished(d))
    d = finished[d[1]]; // an earlier one
  ArrayRef<int64_t> shape = shapeOf(p.op->getOperand(0));
  int64_t m = shape[shape.size() - 2], k = shape.back(), n = shapeOf(p.op->getOperand(1)).back();
  Type type = getElementTypeOrSelf(p.op->getOperand(2));
  bool wraps = type.isInteger(32);
  for (int64_t i = 0; i < int64_t(d.size()); ++i) {
    int64_t batch = i / (m * n), row = i / n % m, column = i % n;
    for (int64_t j = 0; j < k; ++j)
      d[i] += a[(batch * m + row) * k + j] * b[(batch * k + j) * n + column];
    if (wraps)
      d[i] = static_cast<int32_t>(d[i]);
  }
  return d;
}

void Interpreter::finishProducts(size_t left) {
  for (; products.size() > left; products.pop_front()) {
    const Product &p = products.front();
    finished[p.number] = multiply(p);
    for (auto [operand, e] : {std::pair(p.op->getOperand(0), &p.a), std::pair(p.op->getOperand(1), &p.b)})
      if (isa<ttg::MemDescType>(operand.getType()))
        for (int64_t cell : *e)
          --cells[cell].readers;
  }
}

bool Interpreter::runShared(Operation *op) {
  auto in = [&](unsigned i) -> const Elements & { return values[op->getOperand(i)]; };
  if (!isa<ttng::WarpGroupDotOp, ttng::WarpGroupDotWaitOp, scf::YieldOp>(op))
    for (Value operand : op->getOperands())
      if (isUnfinished(values[operand])) {
        fail(op, "uses the result of a product in flight");
        values[operand] = finished[values[operand][1]] =
            Elements(cast<ShapedType>(operand.getType()).getNumElements()); // to go on
      }
  if (auto alloc = dyn_cast<ttg::LocalAllocOp>(op)) {
    Elements e(alloc.getType().getNumElements());
    for (int64_t &cell : e) {
      cell = cells.size();
      cells.emplace_back();
    }
    if (alloc.getSrc())
      for (auto [cell, value] : llvm::zip(e, in(0)))
        writeCell(op, cell, value);
    set(alloc.getResult(), std::move(e));
  } else if (isa<ttg::LocalDeallocOp>(op)) {
    for (int64_t cell : in(0)) {
      writeCell(op, cell, 0);
      cells[cell].written = false;
    }
  } else if (isa<ttg::LocalLoadOp>(op)) {
    Elements e = in(0);
    for (int64_t &x : e)
      x = readCell(op, x);
    set(op->getResult(0), std::move(e));
  } else if (isa<ttg::LocalStoreOp>(op)) {
    for (auto [value, cell] : llvm::zip(in(0), in(1)))
      writeCell(op, cell, value);
  } else if (auto index = dyn_cast<ttg::MemDescIndexOp>(op)) {
    int64_t size = index.getType().getNumElements(), i = in(1)[0];
    if (i < 0 || (i + 1) * size > int64_t(in(0).size())) {
      fail(op, "has no such buffer");
      i = 0;
    }
    Elements part(in(0).begin() + i * size, in(0).begin() + (i + 1) * size);
    set(index.getResult(), std::move(part));
  } else if (auto trans = dyn_cast<ttg::MemDescTransOp>(op)) {
    ArrayRef<int64_t> from = shapeOf(trans.getSrc()), to = shapeOf(trans.getResult());
    Elements e(in(0).size());
    for (size_t i = 0; i < e.size(); ++i) {
      std::vector<int64_t> at(from.size());
      int64_t rest = i;
      for (size_t d = to.size(); d-- > 0; rest /= to[d])
        at[trans.getOrder()[d]] = rest % to[d];
      int64_t source = 0;
      for (size_t d = 0; d < from.size(); ++d)
        source = source * from[d] + at[d];
      e[i] = in(0)[source];
    }
    set(trans.getResult(), std::move(e));
  } else if (auto part = dyn_cast<ttg::MemDescSubsliceOp>(op)) {
    ArrayRef<int64_t> from = shapeOf(part.getSrc()), to = shapeOf(part.getResult());
    Elements e(part.getType().getNumElements());
    for (size_t i = 0; i < e.size(); ++i) {
      int64_t rest = i, source = 0, stride = 1;
      for (size_t d = to.size(); d-- > 0; rest /= to[d], stride *= from[d])
        source += (rest % to[d] + part.getOffsets()[d]) * stride;
      e[i] = in(0)[source];
    }
    set(part.getResult(), std::move(e));
  } else if (auto copy = dyn_cast<ttg::AsyncCopyGlobalToLocalOp>(op)) {
    Elements e = load(values[copy.getSrc()], copy.getMask(), copy.getOther(), 64);
    for (auto [cell, value] : llvm::zip(values[copy.getResult()], e)) {
      writeCell(op, cell, -1); // whoever reads too early, sees it
      cells[cell].arriving = true;
      started.push_back({cell, value});
    }
    set(copy.getToken(), {0});
  } else if (isa<ttg::AsyncCommitGroupOp>(op)) {
    groups.push_back(std::move(started));
    started.clear();
    set(op->getResult(0), {0});
  } else if (auto wait = dyn_cast<ttg::AsyncWaitOp>(op)) {
    finishCopies(wait.getNum());
    set(op->getResult(0), {0});
  } else if (isa<tt::DotOp, ttg::LocalDotOp>(op)) {
    set(op->getResult(0), multiply({op, in(0), in(1), in(2), 0}));
  } else if (auto dot = dyn_cast<ttng::WarpGroupDotOp>(op)) {
    products.push_back({op, in(0), in(1), in(2), ++productCount});
    for (unsigned i : {0, 1})
      if (isa<ttg::MemDescType>(op->getOperand(i).getType()))
        for (int64_t cell : in(i)) {
          readCell(op, cell); // what is not there now will not be there in time
          ++cells[cell].readers;
        }
    if (!dot.getIsAsync())
      finishProducts(0);
    set(dot.getD(), dot.getIsAsync() ? Elements{kUnfinished, productCount} : finished[productCount]);
  } else if (auto wait = dyn_cast<ttng::WarpGroupDotWaitOp>(op)) {
    finishProducts(wait.getPendings());
    for (auto [from, to] : llvm::zip(wait.getInputs(), wait.getOutputs())) {
      Elements e = values[from];
      if (isUnfinished(e) && finished.contains(e[1]))
        e = finished[e[1]];
      set(to, std::move(e));
    }
  } else {
    return false;
  }
  return true;
}

} // namespace tessera::testing
