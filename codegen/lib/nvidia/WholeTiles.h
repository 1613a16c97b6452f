#pragma once
// Kernels whose masks are known where they begin.
#include "NvidiaTargetInfo.h"

namespace tessera::codegen {

/// The attribute of a kernel that has two.
inline constexpr llvm::StringLiteral kTwoVersions = "tessera-two-versions";

/// Gives a kernel whose masks say which columns of a tile a row has (`arange(0, N) < n`, n an argument) a second version
/// for rows that fill the tile, taken where n >= N:
///
///   v = load(p + i, i < n, 0)     ->     if n >= N: v = load(p + i); …
///   …                                    else:      v = load(p + i, i < n, 0); …
///
/// There, loads need no predicates and no values put into their registers first, and selects by a mask fall away: 15 %
/// of the instructions of a softmax or a layer norm. Kernels with matrix instructions, memory of their own, or
/// very many instructions stay as they are.
void addWholeVersion(llvm::Function &f);

} // namespace tessera::codegen
