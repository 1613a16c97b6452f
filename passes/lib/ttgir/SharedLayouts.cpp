// Swizzles of dot operands in shared memory.
#include "../SharedLayouts.h"
#include "tessera/ir/LayoutPlans.h"
#include "tessera/passes/Allocation.h"

using namespace mlir;

namespace tessera {

Attribute sharedEncodingFor(RankedTensorType operand, ArrayRef<unsigned> memoryOrder, ArrayRef<int32_t> order) {
  MLIRContext *context = operand.getContext();
  unsigned bytes = storageBytes(operand);
  // The tile as it is stored: its dimension order[i] is the operand's dimension i.
  SmallVector<int64_t> shape(order.size());
  for (auto [i, d] : llvm::enumerate(order))
    shape[d] = operand.getShape()[i];
  unsigned row = shape[memoryOrder[0]];
  LinearLayout registers = ttg::toLinearLayout(operand);
  auto make = [&](unsigned vec, unsigned perPhase, unsigned maxPhase) {
    return ttg::SwizzledSharedEncodingAttr::get(context, vec, perPhase, maxPhase, memoryOrder);
  };
  auto wavefronts = [&](Attribute shared) {
    LinearLayout memory = ttg::toLinearLayout(shape, shared).transpose(order);
    return sharedLoadWavefronts(registers, memory, bytes, /*matrixLoad=*/true);
  };

  // Eight rows of 16 bytes are read at once: rows that start in the same banks are shifted against each other.
  unsigned vec = std::min(16 / bytes, row);
  unsigned perPhase = std::clamp(128 / (row * bytes), 1u, 8u), maxPhase = std::min(8 / perPhase, row / vec);
  Attribute best = make(vec, perPhase, maxPhase);
  unsigned cost = wavefronts(best);
  // Other shapes of access (no ldmatrix: 8 and 32 bits against the order) need other swizzles; whole 16-byte units
  // stay.
  unsigned least = std::max<uint64_t>(1, registers.size(HwDim::Register) * registers.size(HwDim::Lane) * bytes / 128);
  for (unsigned v = vec; v <= row && cost > least; v *= 2)
    for (unsigned max = 2; max <= std::min(16u, row / v); max *= 2)
      for (unsigned per = 1; per <= 8; per *= 2) {
        Attribute candidate = make(v, per, max);
        if (unsigned c = wavefronts(candidate); c < cost)
          cost = c, best = candidate;
      }
  return best;
}

} // namespace tessera
