// Fragments of matrix instructions, as the ISA documents print them.
#include "tessera/ir/MatrixInstructions.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cassert>

namespace tessera {

namespace {

/// Builds a fragment bit by bit; a dimension's bits are taken from the lowest up.
class Fragment {
public:
  Fragment(int64_t rows, int64_t columns) : shape{rows, columns} {}

  Fragment &registers(unsigned dim, unsigned size) { return take(registerBases, dim, size); }
  Fragment &lanes(unsigned dim, unsigned size) { return take(laneBases, dim, size); }
  /// Lanes that hold the same as those before.
  Fragment &copies(unsigned size) {
    laneBases.append(llvm::Log2_32(size), 0);
    return *this;
  }
  /// All that is left of `dim`.
  Fragment &rest(unsigned dim) { return registers(dim, shape[dim] >> done[dim]); }
  LinearLayout layout() const {
    return LinearLayout(shape, {{HwDim::Register, registerBases}, {HwDim::Lane, laneBases}});
  }

private:
  llvm::SmallVector<int64_t, 2> shape;
  unsigned done[2] = {0, 0};
  LinearLayout::Bases registerBases, laneBases;

  Fragment &take(LinearLayout::Bases &bases, unsigned dim, unsigned size) {
    for (; size > 1; size /= 2) {
      unsigned bit = done[dim]++;
      assert(int64_t(1) << bit < shape[dim] && "the instruction's shape is none of its family");
      bases.push_back(uint64_t(1) << (bit + (dim == 0 ? llvm::Log2_64(shape[1]) : 0)));
    }
    return *this;
  }
};

LinearLayout operandFragment(const MatrixInstruction &i, unsigned outer, int64_t rows, int64_t columns) {
  Fragment f(rows, columns);
  unsigned k = 1 - outer, run = runAlongK(i);
  int64_t extent = outer == 0 ? rows : columns;
  switch (i.family) {
  case MatrixFamily::Mma: // quads of lanes along k, eight of them along rows; further rows, then further words
    return f.registers(k, run).lanes(k, 4).lanes(outer, 8).registers(outer, extent / 8).rest(k).layout();
  case MatrixFamily::Mfma: return f.registers(k, run).lanes(outer, extent).lanes(k, 64 / extent).layout();
  case MatrixFamily::Wmma:
    f.registers(k, run).lanes(outer, 16);
    return (i.version == 1 ? f.copies(2) : f.lanes(k, 2)).rest(k).layout();
  }
  return {};
}

LinearLayout accumulatorFragment(const MatrixInstruction &i) {
  Fragment f(i.m, i.n);
  constexpr unsigned row = 0, column = 1;
  switch (i.family) {
  case MatrixFamily::Mma: return f.registers(column, 2).lanes(column, 4).lanes(row, 8).rest(row).layout();
  case MatrixFamily::Mfma:
    f.lanes(column, i.n);
    if (i.bits == 64) // f64: neighbouring rows are in neighbouring groups of lanes
      return f.lanes(row, 64 / i.n).rest(row).layout();
    return f.registers(row, 4).lanes(row, 64 / i.n).rest(row).layout();
  case MatrixFamily::Wmma:
    f.lanes(column, 16);
    if (i.version == 1) // even rows in the lower half of the lanes, odd rows in the upper half
      return f.lanes(row, 2).rest(row).layout();
    return f.registers(row, 8).lanes(row, 2).layout();
  }
  return {};
}

} // namespace

bool exists(const MatrixInstruction &i) {
  switch (i.family) {
  case MatrixFamily::Mma: {
    if (i.n != 8)
      return false;
    if (i.version == 3)
      return i.bits == 64 && i.m == 16 && (i.k == 4 || i.k == 8 || i.k == 16);
    if (i.version != 2)
      return false;
    if (i.bits == 64)
      return i.m == 8 && i.k == 4;
    bool known = i.bits == 8 || i.bits == 16 || i.bits == 32;
    return known && i.m == 16 && (i.k * i.bits == 256 || i.k * i.bits == 128); // two or one 32-bit words of B
  }
  case MatrixFamily::Mfma: {
    if (i.version < 2 || i.version > 4 || i.m != i.n || (i.m != 16 && i.m != 32) || i.m * i.k % 64)
      return false;
    unsigned perLane = i.m * i.k / 64;
    switch (i.bits) {
    case 64: return i.m == 16 && i.k == 4;
    case 32: // f32, and xf32 on gfx942
      return perLane == 1 || (perLane == 2 && i.version == 3);
    case 16: return perLane == 4 || (perLane == 8 && i.version == 4);
    case 8: // integers first double on gfx942, both double on gfx950: there also 32, the f8f6f4 forms
      return i.version == 2 ? perLane == 4 : perLane == 8 || (i.version == 4 && (perLane == 16 || perLane == 32));
    }
    return false;
  }
  case MatrixFamily::Wmma:
    if (i.m != 16 || i.n != 16)
      return false;
    if (i.version == 1 || i.version == 2)
      return (i.bits == 16 || i.bits == 8) && i.k == 16;
    if (i.version != 3)
      return false;
    return i.bits == 32 ? i.k == 4 : i.bits == 16 ? i.k == 32 : i.bits == 8 && (i.k == 64 || i.k == 128);
  }
  return false;
}

// Generations behind sm_90 take the wide f64 instructions too, but ptxas makes single ones of them.
MatrixInstruction widestOnNvidia(unsigned capability, const MatrixInstruction &i, int64_t rows, int64_t depth) {
  if (capability != 90 || i != MatrixInstruction{MatrixFamily::Mma, 2, 8, 8, 4, 64} || rows < 16)
    return i;
  return {MatrixFamily::Mma, 3, 16, 8, unsigned(std::clamp<int64_t>(depth, 4, 16)), 64};
}

unsigned elementsPerLane(const MatrixInstruction &i) {
  if (i.family == MatrixFamily::Wmma && i.version == 1)
    return i.k;
  return std::max(1u, i.m * i.k / i.lanes());
}

unsigned runAlongK(const MatrixInstruction &i) {
  switch (i.family) {
  case MatrixFamily::Mma: return std::max(1u, 32 / i.bits);
  case MatrixFamily::Mfma: return elementsPerLane(i);
  case MatrixFamily::Wmma: // gfx1250: 16 bytes of a lane, then of the other
    return i.version == 3 ? std::min(elementsPerLane(i), 128 / i.bits) : elementsPerLane(i);
  }
  return 1;
}

LinearLayout fragmentOf(const MatrixInstruction &i, MatrixOperand operand) {
  switch (operand) {
  case MatrixOperand::A: return operandFragment(i, 0, i.m, i.k);
  case MatrixOperand::B: return operandFragment(i, 1, i.k, i.n);
  case MatrixOperand::C: return accumulatorFragment(i);
  }
  return {};
}

} // namespace tessera
