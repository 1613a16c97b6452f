#pragma once
// Where the elements of an operand or of accumulators are, by row and column.
#include "Emitter.h"

namespace tessera::codegen {

/// What a matrix instruction makes of elements of this type; f32 is taken as TF32. Nothing: none multiplies them.
std::optional<MatrixType> matrixType(mlir::Type type);

/// A layout of two dimensions, or three with the batch first, by coordinates; `swapped`: of the transposed tile.
class MatrixTile {
public:
  struct At {
    int64_t batch, row, column;
    bool operator==(const At &) const = default;
  };

  explicit MatrixTile(const LinearLayout &layout, bool swapped = false) : layout(layout), swapped(swapped) {
    for (unsigned r = 0, n = layout.size(HwDim::Register); r < n; ++r)
      registers.try_emplace(registerImage(layout, r), r);
  }
  int64_t rows() const { return layout.shape()[layout.rank() - (swapped ? 1 : 2)]; }
  int64_t columns() const { return layout.shape()[layout.rank() - (swapped ? 2 : 1)]; }
  At locate(uint64_t flat) const {
    auto coords = layout.coords(flat);
    int64_t row = coords[coords.size() - 2], column = coords.back();
    return {coords.size() == 3 ? coords[0] : 0, swapped ? column : row, swapped ? row : column};
  }
  At imageOf(unsigned reg) const { return locate(registerImage(layout, reg)); }
  At basis(HwDim dim, unsigned bit) const { return locate(layout.bases(dim)[bit]); }
  unsigned numBits(HwDim dim) const { return layout.numBits(dim); }
  unsigned numRegisters() const { return layout.size(HwDim::Register); }
  /// The register of lane 0 of warp 0 that holds the element, if one does.
  std::optional<unsigned> find(At at) const {
    if (at.row >= rows() || at.column >= columns())
      return std::nullopt;
    llvm::SmallVector<int64_t, 3> coords{at.batch, swapped ? at.column : at.row, swapped ? at.row : at.column};
    auto it = registers.find(layout.flat(llvm::ArrayRef(coords).take_back(layout.rank())));
    return it == registers.end() ? std::nullopt : std::optional(it->second);
  }

private:
  LinearLayout layout;
  bool swapped;
  llvm::DenseMap<uint64_t, unsigned> registers;
};

} // namespace tessera::codegen
