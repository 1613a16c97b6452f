// Global memory: loads and stores as wide as alignment, contiguity and mask allow, each element touched once; print and
// assert.
#include "Emitter.h"

#include "tessera/passes/Allocation.h"

namespace tessera::codegen {

using mlir::LogicalResult;
using mlir::success;

static CacheModifier cacheOf(tt::CacheModifier c) {
  switch (c) {
  case tt::CacheModifier::NONE: return CacheModifier::None;
  case tt::CacheModifier::CA: return CacheModifier::CA;
  case tt::CacheModifier::CG: return CacheModifier::CG;
  case tt::CacheModifier::WB: return CacheModifier::WB;
  case tt::CacheModifier::CS: return CacheModifier::CS;
  case tt::CacheModifier::WT: return CacheModifier::WT;
  case tt::CacheModifier::CV: return CacheModifier::CV;
  }
  return CacheModifier::None;
}

static EvictionPolicy evictionOf(tt::EvictionPolicy e) {
  switch (e) {
  case tt::EvictionPolicy::NORMAL: return EvictionPolicy::Normal;
  case tt::EvictionPolicy::EVICT_FIRST: return EvictionPolicy::EvictFirst;
  case tt::EvictionPolicy::EVICT_LAST: return EvictionPolicy::EvictLast;
  }
  return EvictionPolicy::Normal;
}

AccessHints hintsOf(tt::CacheModifier cache, tt::EvictionPolicy evict, bool isVolatile) {
  return {cacheOf(cache), evictionOf(evict), isVolatile};
}

V simplify(V predicate) {
  auto *known = llvm::dyn_cast_or_null<llvm::Constant>(predicate);
  return known && known->isAllOnesValue() ? nullptr : predicate;
}

static bool allZero(llvm::ArrayRef<V> values) {
  return llvm::all_of(values, [](V v) {
    auto *known = llvm::dyn_cast<llvm::Constant>(v);
    return known && known->isNullValue();
  });
}

V Emitter::toMemory(V v, llvm::Type *memory) {
  return v->getType()->isIntOrIntVectorTy(1) ? b.CreateZExt(v, v->getType()->getWithNewType(memory)) : v;
}

V Emitter::fromMemory(V v, llvm::Type *scalar) {
  return scalar->isIntegerTy(1) ? b.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType())) : v;
}

unsigned Emitter::accessWidth(mlir::Value ptr, mlir::Value mask, AccessHints &hints) {
  unsigned width = axisInfo.contiguousElements(ptr);
  if (mask)
    width = std::min(width, axisInfo.maskAlignment(mask));
  unsigned bytes =
      storageBytes(mlir::cast<tt::PointerType>(mlir::getElementTypeOrSelf(ptr.getType())).getPointeeType());
  hints.alignment = width * bytes;
  hints.contiguousLanes = axisInfo.lanesContiguous(ptr, width);
  return width;
}

LogicalResult Emitter::emitLoad(tt::LoadOp op) {
  llvm::Type *scalar = scalarType(op.getType()), *memory = memoryType(op.getType());
  AccessHints hints{cacheOf(op.getCache()), evictionOf(op.getEvict()), op.getIsVolatile(),
                    storageBytes(mlir::getElementTypeOrSelf(op.getType()))};
  if (!isTensor(op.getPtr())) {
    V pred = op.getMask() ? simplify(getUniform(op.getMask())) : nullptr;
    V other = pred
                  ? (op.getOther() ? toMemory(getUniform(op.getOther()), memory) : llvm::Constant::getNullValue(memory))
                  : nullptr;
    set(op.getResult(),
        {fromMemory(target.loadUniform(b, memory, getUniform(op.getPtr()), pred, other, hints), scalar)});
    return success();
  }

  unsigned width = accessWidth(op.getPtr(), op.getMask(), hints);
  Lanes pointers(get(op.getPtr())), masks, others;
  if (op.getMask())
    masks = getAsLanes(op.getMask(), pointers.size());
  if (op.getOther())
    others = getAsLanes(op.getOther(), pointers.size());
  const LinearLayout &layout = layoutOf(op.getPtr().getType());
  V first = target.countsTraffic() ? isFirstCopy(layout.freeMask(HwDim::Lane), layout.freeMask(HwDim::Warp)) : nullptr;
  Lanes result;
  for (unsigned r = 0; r < pointers.size(); r += width) {
    if (target.countsTraffic())
      hints.firstCopies = r & layout.freeMask(HwDim::Register) ? asLane(b.getFalse()) : first;
    V pred = masks.empty() ? nullptr : simplify(masks[r]);
    Lanes other;
    if (pred && !others.empty() && !allZero(llvm::ArrayRef(others).slice(r, width)))
      for (unsigned i = 0; i < width; ++i)
        other.push_back(toMemory(others[r + i], memory));
    for (V v : target.loadGlobal(b, memory, width, pointers[r], pred, other, hints))
      result.push_back(fromMemory(v, scalar));
  }
  set(op.getResult(), std::move(result));
  return success();
}

LogicalResult Emitter::emitStore(tt::StoreOp op) {
  llvm::Type *memory = memoryType(op.getValue().getType());
  AccessHints hints{cacheOf(op.getCache()), evictionOf(op.getEvict()), false,
                    storageBytes(mlir::getElementTypeOrSelf(op.getValue().getType()))};
  if (!isTensor(op.getPtr())) {
    V pred = op.getMask() ? simplify(getUniform(op.getMask())) : nullptr;
    target.storeUniform(b, getUniform(op.getPtr()), pred, toMemory(getUniform(op.getValue()), memory), hints);
    return success();
  }

  unsigned width = accessWidth(op.getPtr(), op.getMask(), hints);
  Lanes pointers(get(op.getPtr())), data = getAsLanes(op.getValue(), pointers.size()), masks;
  if (op.getMask())
    masks = getAsLanes(op.getMask(), pointers.size());
  const LinearLayout &layout = layoutOf(op.getPtr().getType());
  // Of several copies of an element only the first is stored.
  V first = isFirstCopy(layout.freeMask(HwDim::Lane), layout.freeMask(HwDim::Warp));
  uint64_t copies = layout.freeMask(HwDim::Register);
  for (unsigned r = 0; r < pointers.size(); r += width) {
    if (r & copies)
      continue;
    V pred = masks.empty() ? nullptr : simplify(masks[r]);
    if (first)
      pred = pred ? b.CreateAnd(pred, first) : first;
    Lanes elements;
    for (unsigned i = 0; i < width; ++i)
      elements.push_back(toMemory(data[r + i], memory));
    target.storeGlobal(b, memory, pointers[r], pred, elements, hints);
  }
  return success();
}

LogicalResult Emitter::emitPrint(tt::PrintOp op) {
  if (llvm::StringRef why = target.whyNoPrint(); !why.empty())
    return op.emitOpError() << why;
  if (op.getArgs().empty()) {
    target.print(b, op.getPrefix(), {}, {}, op.getHex());
    return success();
  }
  for (auto [i, arg] : llvm::enumerate(op.getArgs())) {
    bool isSigned = i < op.getIsSigned().size() && op.getIsSigned()[i];
    Lanes lanes(get(arg));
    llvm::SmallVector<bool> signs(lanes.size(), isSigned);
    target.print(b, op.getPrefix(), lanes, signs, op.getHex());
  }
  return success();
}

LogicalResult Emitter::emitAssert(tt::AssertOp op) {
  if (!options.debug)
    return success();
  V all = nullptr;
  for (V condition : get(op.getCondition())) {
    V holds = b.CreateICmpNE(condition, llvm::Constant::getNullValue(condition->getType()));
    all = all ? b.CreateAnd(all, holds) : holds;
  }
  std::string message = op.getMessage().str();
  target.assertTrue(b, all, message);
  return success();
}

} // namespace tessera::codegen
