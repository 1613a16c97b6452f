// convert_layout, as ConversionPlan says. There is one plan for every pair of layouts; nothing here knows an encoding.
#include "Emitter.h"

#include "tessera/passes/Allocation.h"

namespace tessera::codegen {

using mlir::LogicalResult;
using mlir::success;

LogicalResult Emitter::emitConvert(ttg::ConvertLayoutOp op) {
  ConversionPlan plan = planOf(op);
  llvm::ArrayRef<V> source = get(op.getSrc());
  Lanes result(plan.sameAs.size());
  switch (plan.kind) {
  case ConversionPlan::Kind::Copy:
    for (auto [r, from] : llvm::enumerate(plan.registerOf))
      result[r] = source[from];
    break;
  case ConversionPlan::Kind::Shuffle: convertByShuffles(plan, source, result); break;
  case ConversionPlan::Kind::Shared: {
    auto scratch = allocationOffset(op);
    if (!scratch)
      return op.emitOpError("needs shared memory but has no allocation.offset");
    convertThroughShared(op, plan, *scratch, source, result);
    break;
  }
  case ConversionPlan::Kind::Impossible: return op.emitOpError("needs elements that no warp of this program holds");
  }
  for (auto [r, same] : llvm::enumerate(plan.sameAs))
    result[r] = result[same];
  set(op.getResult(), std::move(result));
  return success();
}

/// Exchanges registers r and r ^ registerXor in the lanes and warps the step names.
void Emitter::applySelect(const ConversionPlan::Select &step, Lanes &registers) {
  auto parity = [&](V id, unsigned bits) -> V {
    if (!bits)
      return nullptr;
    V masked = b.CreateAnd(id, llvm::ConstantInt::get(id->getType(), bits));
    if (llvm::isPowerOf2_32(bits))
      return b.CreateICmpNE(masked, llvm::ConstantInt::get(id->getType(), 0));
    V count = b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, masked);
    return b.CreateTrunc(count, id->getType()->getWithNewType(b.getInt1Ty()));
  };
  V condition = parity(lane, step.laneBits);
  if (V ofWarp = parity(warp, step.warpBits)) {
    ofWarp = target.splat(b, ofWarp);
    condition = condition ? b.CreateXor(condition, ofWarp) : ofWarp;
  }
  if (!condition)
    return;
  Lanes moved(registers.size());
  for (unsigned r = 0; r < registers.size(); ++r) {
    V own = registers[r], other = registers[r ^ step.registerXor];
    moved[r] = own && other ? b.CreateSelect(condition, other, own) : own;
  }
  registers = std::move(moved);
}

void Emitter::convertByShuffles(const ConversionPlan &plan, llvm::ArrayRef<V> source, Lanes &result) {
  Lanes registers(source);
  for (auto &step : plan.before)
    applySelect(step, registers);
  std::optional<Base> sourceLane;
  for (unsigned r = 0; r < result.size(); ++r) {
    if (plan.sameAs[r] != r)
      continue;
    V v = registers[plan.registerOf[r]];
    if (auto mask = plan.xorMask(r)) {
      result[r] = *mask ? target.shuffleXor(b, v, *mask) : v;
      continue;
    }
    if (!sourceLane)
      sourceLane = baseOf(plan.sourceLane);
    result[r] = target.shuffleIdx(b, v, at(*sourceLane, registerImage(plan.sourceLane, r)));
  }
  for (auto &step : plan.after)
    applySelect(step, result);
}

void Emitter::convertThroughShared(ttg::ConvertLayoutOp op, const ConversionPlan &plan, unsigned scratch,
                                   llvm::ArrayRef<V> source, Lanes &result) {
  const LinearLayout &from = layoutOf(op.getSrc().getType()), &to = layoutOf(op.getType());
  llvm::Type *memory = memoryType(op.getType()), *scalar = scalarType(op.getType());
  unsigned bytes = storageBytes(mlir::getElementTypeOrSelf(op.getType()));
  V active = isFirstCopy(plan.idleLanes, plan.idleWarps);
  Base store = baseOf(plan.store), load = baseOf(plan.load);
  // The flat index of each element, for targets that check that what is loaded is what was meant.
  Base fromIndex, toIndex;
  if (target.wantsTags()) {
    fromIndex = baseOf(from);
    toIndex = baseOf(to);
  }
  auto tags = [&](const Base &base, const LinearLayout &layout, llvm::ArrayRef<unsigned> registers) {
    Lanes list;
    if (base.value)
      for (unsigned r : registers)
        list.push_back(at(base, registerImage(layout, r)));
    return list;
  };
  for (unsigned pass = 0; pass < plan.passes(); ++pass) {
    if (pass)
      target.barrier(b);
    for (const auto &access : plan.stores(pass)) {
      Lanes data;
      for (unsigned r : access.registers)
        data.push_back(toMemory(source[r], memory));
      target.storeShared(b, memory, byteOffset(store, access.offset, bytes, scratch), active, data,
                         tags(fromIndex, from, access.registers));
    }
    target.barrier(b);
    for (const auto &access : plan.loads(pass)) {
      auto loaded =
          target.loadShared(b, memory, access.registers.size(), byteOffset(load, access.offset, bytes, scratch),
                            nullptr, tags(toIndex, to, access.registers));
      for (auto [r, v] : llvm::zip_equal(access.registers, loaded))
        result[r] = fromMemory(v, scalar);
    }
  }
}

/// (base ^ constantElements) * elementBytes + scratch. Only the bits that the base may have set need the xor; the rest
/// and the scratch address are one constant, added last so that it can become part of the instruction.
V Emitter::byteOffset(const Base &base, uint64_t constantElements, unsigned elementBytes, unsigned scratch) {
  unsigned shift = llvm::Log2_32(elementBytes);
  V offset = b.CreateShl(base.value, shift, "", true, true);
  if (uint64_t meets = constantElements & base.mask)
    offset = b.CreateXor(offset, constant(meets << shift));
  uint64_t rest = ((constantElements & ~base.mask) << shift) + scratch;
  return rest ? b.CreateAdd(offset, constant(rest), "", true, true) : offset;
}

} // namespace tessera::codegen
