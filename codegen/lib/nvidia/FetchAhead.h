#pragma once
// Lines that a loop's first trips copy, fetched into L2 before the loop.
#include "CopyLoops.h"

namespace llvm {
class ScalarEvolution;
} // namespace llvm

namespace tessera::codegen {

/// In front of a loop with short products of warp groups, behind the copies that fill its ring, fetches into L2 what
/// the loop's first sixteen trips copy, where these need no mask. Otherwise data that is in memory only arrives in as
/// many trips at a time as the ring has buffers. Programs that run side by side copy the same tiles, in a launch order
/// of groups those of a group and those with equal places in groups: each fetches what is copied in two of the trips,
/// one lane each line. Not where many programs hide the wait for memory from one another.
///
///   for: copy(p); p += step     ->     if programs <= 256:
///                                        k = (program + program / 8) % 8
///                                        if whole(k) and p % 128 < 16: fetch(p + k * step); the same for k + 8
///                                      for: copy(p); p += step
void fetchAhead(llvm::Loop &loop, llvm::LoopInfo &loops, llvm::DominatorTree &dominators, llvm::ScalarEvolution &se);

} // namespace tessera::codegen
