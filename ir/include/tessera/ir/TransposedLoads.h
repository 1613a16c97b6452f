#pragma once
// Loads from shared memory that exchange elements among sixteen lanes, so that a tile whose memory runs along rows is held
// along columns: ds_read_b64_tr_b16 (AMD CDNA4 ISA, "LDS transpose load").
#include "tessera/ir/LayoutPlans.h"

namespace tessera {

/// How memory -> `distributed` is made of such loads, if it can be: in each group of 16 lanes, lane i reads four elements of
/// 16 bits at `rowOffset` and the instruction's offset, and gets of lanes i / 4, i / 4 + 4, i / 4 + 8 and i / 4 + 12 the
/// element i % 4, as registers[0] to [3]. `memory` as for planMatrixLoad. Nothing for elements that do not have 16 bits.
std::optional<MatrixAccess> planTransposedLoad(const LinearLayout &distributed, const LinearLayout &memory,
                                               unsigned elementBytes);

} // namespace tessera
