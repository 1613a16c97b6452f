// Indices of rings.
#include "../RingIndex.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tessera {

static std::optional<int64_t> constantOf(Value v) {
  APInt value;
  if (matchPattern(v, m_ConstantInt(&value)))
    return value.getSExtValue();
  return std::nullopt;
}

static int64_t modulo(int64_t x, int64_t size) { return (x % size + size) % size; }

/// (base, d) where v is base + d modulo size; d is 0 for values that are not understood.
static std::pair<Value, int64_t> offsetFrom(Value v, int64_t size) {
  int64_t sum = 0;
  while (Operation *op = v.getDefiningOp()) {
    if (auto select = dyn_cast<arith::SelectOp>(op)) { // x >= size ? 0 : x, for x up to size
      auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
      if (!compare || constantOf(compare.getRhs()) != size)
        break;
      using P = arith::CmpIPredicate;
      P p = compare.getPredicate();
      bool wraps = p == P::sge || p == P::uge || p == P::eq, stays = p == P::slt || p == P::ult || p == P::ne;
      Value zero = wraps ? select.getTrueValue() : select.getFalseValue();
      Value x = wraps ? select.getFalseValue() : select.getTrueValue();
      if (!(wraps || stays) || constantOf(zero) != 0 || x != compare.getLhs())
        break;
      v = x;
    } else if (auto add = dyn_cast<arith::AddIOp>(op)) {
      auto d = constantOf(add.getRhs());
      if (!d)
        break;
      sum += *d;
      v = add.getLhs();
    } else if (isa<arith::RemSIOp, arith::RemUIOp>(op) && constantOf(op->getOperand(1)) == size) {
      v = op->getOperand(0);
    } else {
      break;
    }
  }
  return {v, sum};
}

std::optional<RingIndex> ringIndexOf(Value index, int64_t size) {
  if (size < 1)
    return std::nullopt;
  auto [base, offset] = offsetFrom(index, size);
  if (auto value = constantOf(base))
    return RingIndex{nullptr, modulo(*value + offset, size)};
  auto arg = dyn_cast<BlockArgument>(base);
  auto loop = arg ? dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp()) : scf::ForOp();
  if (!loop || arg == loop.getInductionVar())
    return std::nullopt;
  auto first = constantOf(loop.getTiedLoopInit(arg)->get());
  auto [from, step] = offsetFrom(loop.getTiedLoopYieldedValue(arg)->get(), size);
  if (!first || from != arg || step != 1)
    return std::nullopt;
  return RingIndex{loop, modulo(*first + offset, size)};
}

} // namespace tessera
