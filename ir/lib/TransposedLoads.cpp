// Which tiles the loads that exchange elements among lanes can read: asked of the map from a place to an offset.
#include "tessera/ir/TransposedLoads.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tessera {

std::optional<MatrixAccess> planTransposedLoad(const LinearLayout &distributed, const LinearLayout &memory,
                                               unsigned elementBytes) {
  constexpr unsigned unit = 4; // elements that a lane reads
  if (elementBytes != 2)
    return std::nullopt;
  LinearLayout offsets = distributed.within(memory.shape()).toMemory(memory);
  ArrayRef<LinearLayout::Basis> lanes = offsets.bases(HwDim::Lane), registers = offsets.bases(HwDim::Register);
  if (lanes.size() < 4 || registers.size() < 2 || lanes[0] != 1 || lanes[1] != 2)
    return std::nullopt;
  // All but the lanes within a unit move whole units; so does any part of the memory that a view may be.
  auto whole = [](uint64_t offset) { return offset % unit == 0; };
  LinearLayout everywhere = LinearLayout::identity(memory.shape(), HwDim::Register).toMemory(memory);
  bool sound =
      all_of(lanes.drop_front(2), whole) && all_of(registers, whole) && all_of(offsets.bases(HwDim::Warp), whole) &&
      all_of(offsets.bases(HwDim::Block), whole) &&
      all_of(everywhere.bases(HwDim::Register), [&](uint64_t offset) { return offset < unit || whole(offset); });
  if (!sound)
    return std::nullopt;

  MatrixAccess access;
  access.transposed = true;
  access.count = 2;
  // The lanes' numbers, from the lowest bit: unit of the row, row (which a register's bit was), the rest as it was.
  LinearLayout::Bases rows{lanes[2], lanes[3], registers[0], registers[1]};
  rows.append(lanes.begin() + 4, lanes.end());
  access.rowOffset = LinearLayout(offsets.shape(), {{HwDim::Lane, rows},
                                                    {HwDim::Warp, LinearLayout::Bases(offsets.bases(HwDim::Warp))},
                                                    {HwDim::Block, LinearLayout::Bases(offsets.bases(HwDim::Block))}});
  for (unsigned first = 0; first < 1u << registers.size(); first += 4) {
    MatrixAccess::Instruction instruction;
    instruction.offset = offsets.apply({{HwDim::Register, first}});
    for (unsigned i = 0; i < 4; ++i)
      instruction.registers.push_back(first | i);
    access.instructions.push_back(std::move(instruction));
  }
  return access;
}

} // namespace tessera
