// Loads and stores. What LLVM can say itself (no predicate, no cache hint) is plain IR, so that it can fold addresses
// and reorder; the rest is inline PTX.
#include "NvidiaTargetInfo.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/InlineAsm.h"

namespace tessera::codegen {

namespace {

/// `vec` elements as the registers of one PTX access: words of 16, 32 or 64 bits that hold one or several elements.
struct Words {
  llvm::Type *elem, *word;
  unsigned count, perWord, memoryBits; ///< memoryBits: of one word in memory; 8 for a byte in a 16-bit register

  Words(llvm::IRBuilderBase &b, llvm::Type *elem, unsigned vec) : elem(elem) {
    unsigned bits = elem->isPointerTy() ? 64 : elem->getPrimitiveSizeInBits().getFixedValue();
    memoryBits = std::max(bits, std::min(bits * vec, 32u));
    perWord = memoryBits / bits;
    count = vec / perWord;
    word = b.getIntNTy(std::max(memoryBits, 16u));
  }
  char constraint() const { return word->isIntegerTy(16) ? 'h' : word->isIntegerTy(32) ? 'r' : 'l'; }
  /// ".v4.b32"
  std::string suffix() const {
    return (count > 1 ? ".v" + std::to_string(count) : std::string()) + ".b" + std::to_string(memoryBits);
  }

  V toInt(llvm::IRBuilderBase &b, V v) const {
    if (v->getType()->isPointerTy())
      return b.CreatePtrToInt(v, word);
    return b.CreateZExt(b.CreateBitCast(v, b.getIntNTy(memoryBits)), word);
  }
  llvm::SmallVector<V> pack(llvm::IRBuilderBase &b, llvm::ArrayRef<V> values) const {
    llvm::SmallVector<V> words;
    for (unsigned i = 0; i < values.size(); i += perWord) {
      V v = values[i];
      if (perWord > 1) {
        v = llvm::PoisonValue::get(llvm::FixedVectorType::get(elem, perWord)); // every element is set
        for (unsigned k = 0; k < perWord; ++k)
          v = b.CreateInsertElement(v, values[i + k], k);
      }
      words.push_back(toInt(b, v));
    }
    return words;
  }
  void unpack(llvm::IRBuilderBase &b, V v, llvm::SmallVectorImpl<V> &values) const {
    if (elem->isPointerTy()) {
      values.push_back(b.CreateIntToPtr(v, elem));
    } else if (perWord == 1) {
      values.push_back(b.CreateBitCast(b.CreateTrunc(v, b.getIntNTy(memoryBits)), elem));
    } else {
      V vector = b.CreateBitCast(v, llvm::FixedVectorType::get(elem, perWord));
      for (unsigned k = 0; k < perWord; ++k)
        values.push_back(b.CreateExtractElement(vector, k));
    }
  }
};

/// "{$0, $1}" or "$0".
std::string operandList(unsigned first, unsigned count) {
  std::string list;
  for (unsigned i = 0; i < count; ++i)
    list += (i ? ", $" : "$") + std::to_string(first + i);
  return count > 1 ? "{" + list + "}" : list;
}

llvm::StringRef cacheSuffix(CacheModifier c) {
  switch (c) {
  case CacheModifier::None: return "";
  case CacheModifier::CA: return ".ca";
  case CacheModifier::CG: return ".cg";
  case CacheModifier::WB: return ".wb";
  case CacheModifier::CS: return ".cs";
  case CacheModifier::WT: return ".wt";
  case CacheModifier::CV: return ".cv";
  }
  return "";
}

/// A cache operator and an eviction priority exclude each other in PTX: the operator wins.
bool usesPolicy(const AccessHints &hints) {
  return hints.evict != EvictionPolicy::Normal && hints.cache == CacheModifier::None && !hints.isVolatile;
}

std::string globalOpcode(llvm::StringRef base, const AccessHints &hints) {
  std::string opcode = base.str();
  if (hints.isVolatile)
    return opcode + ".volatile.global";
  opcode += ".global" + cacheSuffix(hints.cache).str();
  if (usesPolicy(hints))
    opcode += hints.evict == EvictionPolicy::EvictFirst ? ".L1::evict_first.L2::cache_hint"
                                                        : ".L1::evict_last.L2::cache_hint";
  return opcode;
}

bool isPlain(const AccessHints &hints) {
  return hints.cache == CacheModifier::None && hints.evict == EvictionPolicy::Normal && !hints.isVolatile;
}

llvm::SmallVector<V> plainLoad(llvm::IRBuilderBase &b, llvm::Type *elem, unsigned vec, V ptr, unsigned alignment) {
  llvm::Type *type = vec > 1 ? llvm::FixedVectorType::get(elem, vec) : elem;
  V loaded = b.CreateAlignedLoad(type, ptr, llvm::Align(alignment));
  if (vec == 1)
    return {loaded};
  llvm::SmallVector<V> values;
  for (unsigned i = 0; i < vec; ++i)
    values.push_back(b.CreateExtractElement(loaded, i));
  return values;
}

void plainStore(llvm::IRBuilderBase &b, llvm::Type *elem, V ptr, llvm::ArrayRef<V> values, unsigned alignment) {
  V stored = values.front();
  if (values.size() > 1) {
    stored = llvm::PoisonValue::get(llvm::FixedVectorType::get(elem, values.size())); // every element is set
    for (auto [i, v] : llvm::enumerate(values))
      stored = b.CreateInsertElement(stored, v, i);
  }
  b.CreateAlignedStore(stored, ptr, llvm::Align(alignment));
}

unsigned bytesOf(llvm::Type *elem) {
  return elem->isPointerTy() ? 8 : elem->getPrimitiveSizeInBits().getFixedValue() / 8;
}

} // namespace

V NvidiaTargetInfo::cachePolicy(B &b, EvictionPolicy policy) {
  auto *type = llvm::FunctionType::get(b.getInt64Ty(), false);
  const char *text = policy == EvictionPolicy::EvictFirst ? "createpolicy.fractional.L2::evict_first.b64 $0, 1.0;"
                                                          : "createpolicy.fractional.L2::evict_last.b64 $0, 1.0;";
  llvm::CallInst *call = b.CreateCall(type, llvm::InlineAsm::get(type, text, "=l", false));
  call->setDoesNotAccessMemory();
  return call;
}

llvm::SmallVector<V> NvidiaTargetInfo::predicatedLoad(B &b, llvm::Twine opcode, llvm::Type *elem, unsigned vec, V ptr,
                                                      V pred, llvm::ArrayRef<V> other, V policy) {
  Words words(b, elem, vec);
  std::string text, constraints;
  llvm::SmallVector<V> operands;
  llvm::SmallVector<llvm::Type *> types;
  auto addOperand = [&](V v, llvm::StringRef constraint) {
    operands.push_back(v);
    types.push_back(v->getType());
    constraints += ("," + constraint).str();
    return "$" + std::to_string(words.count + operands.size() - 1);
  };
  for (unsigned i = 0; i < words.count; ++i)
    constraints += (i ? ",=&" : "=&") + std::string(1, words.constraint());
  if (pred) {
    // The registers hold `other` already where the load is not done.
    llvm::SmallVector<V> initial = other.empty() ? llvm::SmallVector<V>() : words.pack(b, other);
    std::string move = "mov.b" + std::to_string(words.word->getIntegerBitWidth()) + " $";
    for (unsigned i = 0; i < words.count; ++i) {
      std::string value = "0";
      if (!initial.empty()) {
        auto *known = llvm::dyn_cast<llvm::ConstantInt>(initial[i]);
        value = known ? "0x" + llvm::utohexstr(known->getZExtValue())
                      : addOperand(initial[i], llvm::StringRef(std::string(1, words.constraint())));
      }
      text += move + std::to_string(i) + ", " + value + "; ";
    }
    text += "@" + addOperand(pred, "b") + " ";
  }
  text += opcode.str() + words.suffix() + " " + operandList(0, words.count) + ", [" +
          addOperand(ptr, ptr->getType()->getPointerAddressSpace() == 3 ? "r" : "l") + "]";
  if (policy)
    text += ", " + addOperand(policy, "l");
  text += ";";
  llvm::Type *returned = words.word;
  if (words.count > 1)
    returned = llvm::StructType::get(b.getContext(), llvm::SmallVector<llvm::Type *>(words.count, words.word));
  auto *type = llvm::FunctionType::get(returned, types, false);
  V result = b.CreateCall(type, llvm::InlineAsm::get(type, text, constraints, /*hasSideEffects=*/true), operands);
  llvm::SmallVector<V> values;
  for (unsigned i = 0; i < words.count; ++i)
    words.unpack(b, words.count > 1 ? b.CreateExtractValue(result, i) : result, values);
  return values;
}

void NvidiaTargetInfo::predicatedStore(B &b, llvm::Twine opcode, llvm::Type *elem, V ptr, V pred,
                                       llvm::ArrayRef<V> values, V policy) {
  Words words(b, elem, values.size());
  llvm::SmallVector<V> operands = words.pack(b, values);
  std::string constraints;
  for (unsigned i = 0; i < words.count; ++i)
    constraints += (i ? "," : "") + std::string(1, words.constraint());
  constraints += ptr->getType()->getPointerAddressSpace() == 3 ? ",r" : ",l";
  operands.push_back(ptr);
  std::string text =
      opcode.str() + words.suffix() + " [$" + std::to_string(words.count) + "], " + operandList(0, words.count);
  if (policy) {
    text += ", $" + std::to_string(operands.size());
    operands.push_back(policy);
    constraints += ",l";
  }
  if (pred) {
    text = "@$" + std::to_string(operands.size()) + " " + text;
    operands.push_back(pred);
    constraints += ",b";
  }
  llvm::SmallVector<llvm::Type *> types;
  for (V v : operands)
    types.push_back(v->getType());
  auto *type = llvm::FunctionType::get(b.getVoidTy(), types, false);
  b.CreateCall(type, llvm::InlineAsm::get(type, text + ";", constraints + ",~{memory}", /*hasSideEffects=*/true),
               operands);
}

llvm::SmallVector<V> NvidiaTargetInfo::loadGlobal(B &b, llvm::Type *elem, unsigned vec, V ptr, V pred,
                                                  llvm::ArrayRef<V> other, const AccessHints &hints) {
  if (!pred && isPlain(hints))
    return plainLoad(b, elem, vec, ptr, hints.alignment);
  return predicatedLoad(b, globalOpcode("ld", hints), elem, vec, ptr, pred, other,
                        usesPolicy(hints) ? cachePolicy(b, hints.evict) : nullptr);
}

void NvidiaTargetInfo::storeGlobal(B &b, llvm::Type *elem, V ptr, V pred, llvm::ArrayRef<V> values,
                                   const AccessHints &hints) {
  if (!pred && isPlain(hints))
    return plainStore(b, elem, ptr, values, hints.alignment);
  predicatedStore(b, globalOpcode("st", hints), elem, ptr, pred, values,
                  usesPolicy(hints) ? cachePolicy(b, hints.evict) : nullptr);
}

llvm::SmallVector<V> NvidiaTargetInfo::loadShared(B &b, llvm::Type *elem, unsigned vec, V offset, V pred,
                                                  llvm::ArrayRef<V>) {
  V ptr = sharedPointer(b, offset);
  if (!pred)
    return plainLoad(b, elem, vec, ptr, vec * bytesOf(elem));
  return predicatedLoad(b, "ld.shared", elem, vec, ptr, pred, {}, nullptr);
}

void NvidiaTargetInfo::storeShared(B &b, llvm::Type *elem, V offset, V pred, llvm::ArrayRef<V> values,
                                   llvm::ArrayRef<V>) {
  V ptr = sharedPointer(b, offset);
  if (!pred)
    return plainStore(b, elem, ptr, values, values.size() * bytesOf(elem));
  predicatedStore(b, "st.shared", elem, ptr, pred, values, nullptr);
}

} // namespace tessera::codegen
