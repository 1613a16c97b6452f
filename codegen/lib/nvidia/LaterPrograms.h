#pragma once
// What a program can do for programs that begin after it.
#include "NvidiaTargetInfo.h"

namespace tessera::codegen {

/// Programs that load whole rows, reduce them and store leave memory idle while they wait at barriers. They therefore fetch
/// the rows of a program that has not begun into the L2 cache, by one instruction of one thread:
///
///   v = load(p(pid) + i)      ->     v = load(p(pid) + i)
///   …; barrier; …                    if thread == 0 and pid + d < programs: prefetch p(pid + d), bytes of the row
///                                    …; barrier; …
///
/// d is so large that the rows between fill the memory's pipeline (its rate times its latency). Only what that program is
/// sure to load is fetched: under the same conditions, with its own number in them, and as long as the mask says. In a loop
/// the first trip fetches the first trip's row.
/// Kernels with matrix instructions or copies in the background, which keep memory busy themselves, stay as they are.
void fetchForLaterPrograms(llvm::Function &f);

} // namespace tessera::codegen
