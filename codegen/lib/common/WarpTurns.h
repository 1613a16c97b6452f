#pragma once
// A warp that does the work of several warps of the layouts, one after the other, from each barrier to the next: so that
// a lane never holds more of a wide tile at once than it has registers for, and code is written once for all of them.
#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

namespace tessera::codegen {

/// `f` is the code of one warp of the layouts, the number of whose turn is `turn` (in the entry block); `cuts` are the
/// blocks that are run once, in between: barriers, and loops and branches around such. They hold nothing but these and what
/// control flow asks for; what leads from one cut to the next is a part with one way in and one way out, and is repeated.
/// Values that are needed in another part than their own are kept in memory for each turn, or computed again where they
/// depend on nothing but positions, arguments and what is carried by a loop.
void takeTurns(llvm::Function &f, unsigned turns, llvm::Instruction *turn, llvm::ArrayRef<llvm::BasicBlock *> cuts);

} // namespace tessera::codegen
