#pragma once
// Waiting for asynchronous copies on hardware that counts instructions, not groups: a wait says how many of the
// youngest may be in flight. All groups hold as many copies as the smallest one at least, so that many times the number
// of groups that may be pending never leaves an older one unfinished, and is exact where the groups are equal. A group
// of a loop's body may come after a wait in the text, so the numbers are put in at the end.
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Instructions.h"

#include <algorithm>

namespace tessera::codegen {

class CopyCounter {
public:
  void copy(llvm::BasicBlock *block) { blocks.push_back(block); }
  /// Copies in other blocks than the commit's need not have been made.
  void commit(llvm::BasicBlock *block) {
    least = std::min<unsigned>(least, llvm::count(blocks, block));
    blocks.clear();
  }
  /// `call` waits; its argument is still to be set.
  void wait(llvm::CallInst *call, unsigned pendingGroups) { waits.push_back({call, pendingGroups}); }
  /// Sets the arguments: argumentOf(copies that may be in flight).
  void finish(llvm::function_ref<void(llvm::CallInst *, unsigned)> setPending) {
    for (auto [call, groups] : waits)
      setPending(call, least == ~0u ? 0 : groups * least);
  }

private:
  unsigned least = ~0u;
  llvm::SmallVector<llvm::BasicBlock *> blocks; ///< of the copies since the last commit
  llvm::SmallVector<std::pair<llvm::CallInst *, unsigned>> waits;
};

} // namespace tessera::codegen
