#pragma once
// What the parts of layout planning share. Internal to ir/lib.
#include "tessera/ir/LayoutPlans.h"

#include "F2.h"

namespace tessera {

/// Register bits whose elements earlier register bits reach as well.
uint64_t duplicateRegisterBits(const LinearLayout &layout);

/// Register bits that number the pass, and their values in this one.
struct PassRegisters {
  uint64_t bits = 0, values = 0;
};
PassRegisters passRegisters(const ConversionPlan &plan, unsigned pass, bool store);

/// How many lane bits take part in one phase of an access: as many lanes as the banks can serve at once.
unsigned phaseBits(unsigned laneBits, unsigned accessBytes, const SharedMemoryModel &model);

/// log2 of the wavefronts per phase; `offsets` are those of the lane bits, in elements.
unsigned conflictBits(llvm::ArrayRef<f2::Vec> offsets, unsigned vecBytes, unsigned elementBytes,
                      const SharedMemoryModel &model);

/// How lanes whose elements lie at `offsets` (Register, Lane, Warp, Block) are served by ldmatrix or stmatrix.
std::optional<MatrixAccess> planMatrix(const LinearLayout &offsets, unsigned elementBytes);

/// Fills the Shared part of `plan`. Both layouts have all of Register, Lane, Warp, Block, in this order, and `src`
/// holds every element of `dst` in the same program.
void planShared(ConversionPlan &plan, const LinearLayout &src, const LinearLayout &dst, unsigned elementBytes,
                const SharedMemoryModel &model, const ScratchLimits &limits);

} // namespace tessera
