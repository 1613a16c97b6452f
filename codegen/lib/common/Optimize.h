#pragma once
// What happens to a kernel between emission and machine code: library code is linked in, LLVM's middle end runs.
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBufferRef.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

namespace tessera::codegen {

/// Adds the functions that `m` declares and the bitcode defines, as internal ones. Throws tessera::error.
void linkBitcode(llvm::Module &m, llvm::MemoryBufferRef bitcode);

/// Held while LLVM's options of the whole process are set and read: lld puts them all back.
std::mutex &processOptions();

/// `packs`: also pairs equal operations on neighbouring values.
void optimize(llvm::Module &m, llvm::TargetMachine &tm, bool packs);

} // namespace tessera::codegen
