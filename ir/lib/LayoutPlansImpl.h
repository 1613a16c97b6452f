#pragma once
// What the parts of layout planning share. Internal to ir/lib.
#include "tessera/ir/LayoutPlans.h"

#include "F2.h"

namespace tessera {

/// Register bits whose elements earlier register bits reach as well.
uint64_t duplicateRegisterBits(const LinearLayout &layout);

/// Fills the Shared part of `plan`. Both layouts have all of Register, Lane, Warp, Block, in this order, and `src`
/// holds every element of `dst` in the same program.
void planShared(ConversionPlan &plan, const LinearLayout &src, const LinearLayout &dst, unsigned elementBytes,
                const SharedMemoryModel &model, uint64_t maxScratchBytes);

} // namespace tessera
