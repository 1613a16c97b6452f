#pragma once
// Global accesses that are more than a load or store of LLVM: under a mask, or with a hint. Calls, until the middle end is
// done with them (AmdMasked.cpp).
#include "llvm/IR/IRBuilder.h"

namespace tessera::codegen::masked {

/// How soon, and by whom, the data is used again.
enum class Reuse : unsigned {
  Normal,
  Once,   ///< not soon: leaves the caches first
  Device, ///< by other compute units rather than by this one
  System, ///< anybody may change it at any time: volatile
};

/// The value of `type` at `pointer` where `mask` (i1), else `otherwise`. `alignment` in bytes.
llvm::Value *load(llvm::IRBuilderBase &b, llvm::Type *type, llvm::Value *pointer, llvm::Value *mask,
                  llvm::Value *otherwise, unsigned alignment, Reuse reuse);
void store(llvm::IRBuilderBase &b, llvm::Value *value, llvm::Value *pointer, llvm::Value *mask, unsigned alignment,
           Reuse reuse);

} // namespace tessera::codegen::masked
