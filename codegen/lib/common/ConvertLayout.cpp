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
  V start = b.getInt32(scratch);
  MatrixFeatures features = target.matrixFeatures();
  auto rowsOf = [&](const MatrixAccess &access) {
    return [&, base = baseOf(access.rowOffset)](uint64_t offset) { return byteOffset(base, offset, bytes, start); };
  };
  for (unsigned pass = 0; pass < plan.passes(); ++pass) {
    if (pass)
      barrier();
    auto stores = plan.stores(pass);
    ConversionPlan::Threads storers = plan.storers(pass);
    auto matrices = features.storeMatrix ? plan.matrixStores(pass, bytes) : std::nullopt;
    if (matrices && matrices->instructions.size() < stores.size()) {
      // Whole warps store: the others go around.
      llvm::BasicBlock *after = nullptr;
      if (storers.warpMask) {
        after = newBlock("stored");
        llvm::BasicBlock *storing = newBlock("store");
        b.CreateCondBr(b.CreateICmpEQ(b.CreateAnd(warp, storers.warpMask), b.getInt32(storers.warp)), storing, after);
        b.SetInsertPoint(storing);
      }
      storeMatrices(*matrices, source, memory, rowsOf(*matrices),
                    [&](auto list) { return tags(fromIndex, from, list); });
      if (after) {
        b.CreateBr(after);
        b.SetInsertPoint(after);
      }
    } else {
      V active = isThread(storers.laneMask, storers.warpMask, storers.lane, storers.warp);
      for (const auto &access : stores) {
        Lanes data;
        for (unsigned r : access.registers)
          data.push_back(toMemory(source[r], memory));
        target.storeShared(b, memory, byteOffset(store, access.offset, bytes, start), active, data,
                           tags(fromIndex, from, access.registers));
      }
    }
    barrier();
    for (const auto &access : plan.loads(pass)) {
      auto loaded = target.loadShared(b, memory, access.registers.size(), byteOffset(load, access.offset, bytes, start),
                                      nullptr, tags(toIndex, to, access.registers));
      for (auto [r, v] : llvm::zip_equal(access.registers, loaded))
        result[r] = fromMemory(v, scalar);
    }
  }
}

V Emitter::byteOffset(const Base &base, uint64_t constantElements, unsigned elementBytes, V start) {
  unsigned shift = llvm::Log2_32(elementBytes);
  V offset = b.CreateShl(base.value, shift, "", true, true);
  // Only the bits that the base may have set need the xor.
  if (uint64_t meets = constantElements & base.mask)
    offset = b.CreateXor(offset, constant(meets << shift));
  uint64_t rest = (constantElements & ~base.mask) << shift;
  return addLast(addLast(offset, start), b.getInt32(rest));
}

V Emitter::addLast(V sum, V term) {
  auto constantOf = [](V v) -> std::optional<uint64_t> {
    auto *known = llvm::dyn_cast<llvm::Constant>(v);
    if (known && known->getType()->isVectorTy())
      known = known->getSplatValue();
    auto *number = llvm::dyn_cast_or_null<llvm::ConstantInt>(known);
    return number ? std::optional(number->getZExtValue()) : std::nullopt;
  };
  auto split = [&](V v) -> std::pair<V, uint64_t> {
    if (auto known = constantOf(v))
      return {nullptr, *known};
    auto *add = llvm::dyn_cast<llvm::BinaryOperator>(v);
    if (add && add->getOpcode() == llvm::Instruction::Add)
      if (auto known = constantOf(add->getOperand(1)))
        return {add->getOperand(0), *known};
    return {v, 0};
  };
  auto [total, constantPart] = split(sum);
  auto [other, otherConstant] = split(term);
  if (other && other->getType() != sum->getType())
    other = target.splat(b, other);
  total = !total ? other : !other ? total : b.CreateAdd(total, other, "", true, true);
  auto *rest = llvm::ConstantInt::get(sum->getType(), constantPart + otherConstant);
  return !total ? rest : rest->isNullValue() ? total : b.CreateAdd(total, rest, "", true, true);
}

} // namespace tessera::codegen
