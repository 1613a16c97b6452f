// Loads and stores. What LLVM can say itself (no predicate, no cache hint) is plain IR; the others are calls that
// AmdMasked.cpp turns into instructions behind LLVM's middle end, when it is known where their addresses come from.
#include "AmdTargetInfo.h"
#include "AmdMasked.h"

#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/Module.h"

namespace tessera::codegen {

namespace {

unsigned bytesOf(llvm::Type *elem) {
  return elem->isPointerTy() ? 8 : elem->getPrimitiveSizeInBits().getFixedValue() / 8;
}

llvm::Type *accessType(llvm::Type *elem, unsigned vec) {
  return vec > 1 ? llvm::FixedVectorType::get(elem, vec) : elem;
}

llvm::SmallVector<V> split(llvm::IRBuilderBase &b, V value, unsigned vec) {
  if (vec == 1)
    return {value};
  llvm::SmallVector<V> values;
  for (unsigned i = 0; i < vec; ++i)
    values.push_back(b.CreateExtractElement(value, i));
  return values;
}

V join(llvm::IRBuilderBase &b, llvm::ArrayRef<V> values) {
  if (values.size() == 1)
    return values.front();
  V vector = llvm::PoisonValue::get(accessType(values.front()->getType(), values.size())); // every element is set
  for (auto [i, v] : llvm::enumerate(values))
    vector = b.CreateInsertElement(vector, v, i);
  return vector;
}

bool isPlain(const AccessHints &hints) {
  return hints.cache == CacheModifier::None && hints.evict == EvictionPolicy::Normal && !hints.isVolatile;
}

/// How often and by whom the data will be used.
masked::Reuse reuseOf(const AccessHints &hints) {
  if (hints.isVolatile || hints.cache == CacheModifier::CV || hints.cache == CacheModifier::WT)
    return masked::Reuse::System;
  if (hints.cache == CacheModifier::CS || hints.evict == EvictionPolicy::EvictFirst)
    return masked::Reuse::Once;
  return hints.cache == CacheModifier::CG ? masked::Reuse::Device : masked::Reuse::Normal;
}

} // namespace

llvm::SmallVector<V> AmdTargetInfo::loadGlobal(B &b, llvm::Type *elem, unsigned vec, V ptr, V pred,
                                               llvm::ArrayRef<V> other, const AccessHints &hints) {
  llvm::Type *type = accessType(elem, vec);
  if (!pred && isPlain(hints))
    return split(b, b.CreateAlignedLoad(type, ptr, llvm::Align(hints.alignment)), vec);
  V otherwise = other.empty() ? llvm::Constant::getNullValue(type) : join(b, other);
  return split(b, masked::load(b, type, ptr, pred ? pred : b.getTrue(), otherwise, hints.alignment, reuseOf(hints)), vec);
}

void AmdTargetInfo::storeGlobal(B &b, llvm::Type *elem, V ptr, V pred, llvm::ArrayRef<V> values,
                                const AccessHints &hints) {
  if (!pred && isPlain(hints)) {
    b.CreateAlignedStore(join(b, values), ptr, llvm::Align(hints.alignment));
    return;
  }
  masked::store(b, join(b, values), ptr, pred ? pred : b.getTrue(), hints.alignment, reuseOf(hints));
}

// ---- shared memory --------------------------------------------------------------------------------------------------

V AmdTargetInfo::predicated(B &b, V pred, V otherwise, llvm::function_ref<V()> then) {
  llvm::Function *kernel = b.GetInsertBlock()->getParent();
  llvm::BasicBlock *from = b.GetInsertBlock();
  auto *active = llvm::BasicBlock::Create(b.getContext(), "active", kernel);
  auto *next = llvm::BasicBlock::Create(b.getContext(), "next", kernel);
  b.CreateCondBr(pred, active, next);
  b.SetInsertPoint(active);
  V value = then();
  active = b.GetInsertBlock();
  b.CreateBr(next);
  b.SetInsertPoint(next);
  if (!otherwise)
    return nullptr;
  llvm::PHINode *phi = b.CreatePHI(otherwise->getType(), 2);
  phi->addIncoming(otherwise, from);
  phi->addIncoming(value, active);
  return phi;
}

llvm::SmallVector<V> AmdTargetInfo::loadShared(B &b, llvm::Type *elem, unsigned vec, V offset, V pred,
                                               llvm::ArrayRef<V>) {
  llvm::Type *type = accessType(elem, vec);
  V ptr = sharedPointer(b, offset);
  auto load = [&] {
    llvm::LoadInst *loaded = b.CreateAlignedLoad(type, ptr, llvm::Align(vec * bytesOf(elem)));
    markNoCopy(loaded);
    return loaded;
  };
  return split(b, pred ? predicated(b, pred, llvm::Constant::getNullValue(type), load) : load(), vec);
}

void AmdTargetInfo::storeShared(B &b, llvm::Type *elem, V offset, V pred, llvm::ArrayRef<V> values,
                                llvm::ArrayRef<V>) {
  V ptr = sharedPointer(b, offset), value = join(b, values);
  auto store = [&] {
    llvm::StoreInst *stored = b.CreateAlignedStore(value, ptr, llvm::Align(values.size() * bytesOf(elem)));
    markNoCopy(stored);
    return stored;
  };
  if (pred)
    predicated(b, pred, nullptr, [&]() -> V { return store(); });
  else
    store();
}

} // namespace tessera::codegen
