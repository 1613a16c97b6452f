#pragma once
// Layouts built dimension by dimension, for EncodingLayouts.cpp and MatrixEncodings.cpp.
#include "tessera/ir/LinearLayout.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera::ttg {

inline unsigned log2of(uint64_t powerOfTwo) { return llvm::countr_zero(powerOfTwo); }

/// Builds a layout dimension by dimension: each dimension's coordinate bits are handed out from the lowest up, to
/// register, lane and warp bits in the order they are asked for.
class LayoutBuilder {
public:
  explicit LayoutBuilder(llvm::ArrayRef<int64_t> shape)
      : shape(shape), position(shape.size()), done(shape.size(), 0), limit(shape.size()) {
    for (unsigned dim = shape.size(), bit = 0; dim-- > 0;) {
      position[dim] = bit;
      limit[dim] = log2of(shape[dim]);
      bit += limit[dim];
    }
  }

  /// Splits dimensions among the programs of a cluster; `bases` are in units of a program's part.
  LinearLayout::Bases splitAmongBlocks(llvm::ArrayRef<unsigned> bases) {
    unsigned rank = shape.size();
    llvm::SmallVector<unsigned> whole(limit);
    for (unsigned dim = 0; dim < rank; ++dim) {
      unsigned all = 0;
      for (size_t i = dim; i < bases.size(); i += rank)
        all |= bases[i];
      limit[dim] -= std::min<unsigned>(limit[dim], llvm::bit_width(all));
    }
    LinearLayout::Bases blocks;
    for (size_t i = 0; i < bases.size(); i += rank) {
      uint64_t basis = 0;
      for (unsigned dim = 0; dim < rank; ++dim) {
        uint64_t coordinate = (uint64_t(bases[i + dim]) << limit[dim]) & (shape[dim] - 1);
        basis |= coordinate << position[dim];
      }
      blocks.push_back(basis);
    }
    return blocks;
  }

  /// The next `bits` bits of `dim`; beyond its size copies (zero bases), or nothing without `copies`.
  void take(LinearLayout::Bases &bases, unsigned dim, unsigned bits, bool copies) {
    for (; bits > 0; --bits) {
      if (done[dim] < limit[dim])
        bases.push_back(uint64_t(1) << (position[dim] + done[dim]++));
      else if (copies)
        bases.push_back(0);
    }
  }
  void takeRest(LinearLayout::Bases &bases, unsigned dim) { take(bases, dim, limit[dim] - done[dim], false); }

  /// A basis vector of coordinates, reduced to the shape.
  uint64_t flat(llvm::ArrayRef<unsigned> coordinates) const {
    uint64_t basis = 0;
    for (auto [dim, coordinate] : llvm::enumerate(coordinates))
      basis |= (uint64_t(coordinate) & (shape[dim] - 1)) << position[dim];
    return basis;
  }

  llvm::ArrayRef<int64_t> shape;
  llvm::SmallVector<unsigned> position, done, limit;
};

/// Two registers of a lane never hold the same element: register bases that depend on others are dropped.
inline LinearLayout::Bases independent(llvm::ArrayRef<uint64_t> bases) {
  LinearLayout::Bases kept, reduced;
  for (uint64_t basis : bases) {
    uint64_t rest = basis;
    for (uint64_t pivot : reduced)
      rest = std::min(rest, rest ^ pivot);
    if (rest) {
      kept.push_back(basis);
      reduced.push_back(rest);
    }
  }
  return kept;
}

inline LinearLayout distributed(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<uint64_t> registers,
                                llvm::ArrayRef<uint64_t> lanes, llvm::ArrayRef<uint64_t> warps,
                                llvm::ArrayRef<uint64_t> blocks) {
  auto bases = [](llvm::ArrayRef<uint64_t> list) { return LinearLayout::Bases(list.begin(), list.end()); };
  return LinearLayout(shape, {{HwDim::Register, independent(registers)},
                              {HwDim::Lane, bases(lanes)},
                              {HwDim::Warp, bases(warps)},
                              {HwDim::Block, bases(blocks)}});
}

} // namespace tessera::ttg
