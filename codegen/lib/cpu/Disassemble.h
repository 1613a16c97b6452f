#pragma once
// The "asm" stage of the CPU target: what is in the object file, not what another run of the code generator would
// print.
#include "llvm/ADT/StringRef.h"
#include "llvm/Target/TargetMachine.h"

#include <string>

namespace tessera::codegen {

/// Every function of the object with its calls named.
std::string disassemble(llvm::StringRef object, const llvm::TargetMachine &tm);

} // namespace tessera::codegen
