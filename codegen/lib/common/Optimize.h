#pragma once
// LLVM's middle end, cut to what tile code has use for.
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace tessera::codegen {

void optimize(llvm::Module &m, llvm::TargetMachine &tm);

} // namespace tessera::codegen
