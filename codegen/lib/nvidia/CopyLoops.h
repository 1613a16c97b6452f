#pragma once
// Loops that start asynchronous copies, as LLVM leaves them.
#include "NvidiaTargetInfo.h"

namespace llvm {
class AssumptionCache;
class DominatorTree;
class Loop;
class LoopInfo;
class TargetTransformInfo;
} // namespace llvm

namespace tessera::codegen {

/// Inline assembly with `text` in it.
bool isAssembly(const llvm::Instruction &i, llvm::StringRef text);
inline bool isCopy(const llvm::Instruction &i) { return isAssembly(i, "cp.async"); }
/// The most that a copy of the block has: one more with a mask. 0: no copies.
unsigned operandsOfCopies(const llvm::BasicBlock &block);
/// Cycles that the products of warp groups of a trip keep the matrix units of a multiprocessor busy: one of 64 x n takes
/// n / 2.
unsigned cyclesOfProducts(const llvm::Loop &loop);

/// Loops of products whose first block LLVM finds too long to be copied test at their beginning: now they do at their
/// end.
void testAtEnd(llvm::Loop &loop, llvm::LoopInfo &loops, llvm::DominatorTree &dominators,
               llvm::AssumptionCache &assumptions, const llvm::TargetTransformInfo &costs);

/// Makes two loops of each with products of warp groups and copies that go two ways, with masks and without: the first
/// goes on while no mask is needed, the second has the rest of the trips.
///
///   for: …                                 while whole(trip): …; copies without masks; …
///        if whole(trip): copies     ->     for:               …; copies with masks; …
///        else: copies with masks
///        …
///
/// A trip of the first is one block. With the branch in it, products took up to 1.5 % longer and 15 to 50
/// registers more; those that take 1024 cycles a trip do not, and stay one loop.
void splitLoops(llvm::Function &f);

} // namespace tessera::codegen
