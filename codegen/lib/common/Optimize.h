#pragma once
// What happens to a kernel between emission and machine code: library code is linked in, LLVM's middle end runs.
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBufferRef.h"
#include "llvm/Target/TargetMachine.h"

namespace tessera::codegen {

/// Adds the functions that `m` declares and the bitcode defines, as internal ones. Throws tessera::error.
void linkBitcode(llvm::Module &m, llvm::MemoryBufferRef bitcode);

void optimize(llvm::Module &m, llvm::TargetMachine &tm);

} // namespace tessera::codegen
