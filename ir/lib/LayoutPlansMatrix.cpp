// Instructions that know the shape of a matrix: ldmatrix, stmatrix, and the operands of wgmma in shared memory. All
// questions are put to the map from a place to an offset in memory, whatever encodings it came from.
#include "LayoutPlansImpl.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace tessera {
using namespace f2;

// ---- ldmatrix and stmatrix ------------------------------------------------------------------------------------------

static constexpr unsigned rowBytes = 16, registerBytes = 4, unitBytes = 2;

/// Whether a part of `memory`, starting at any multiple of its size, starts at a row's boundary or within the row only.
static bool keepsRows(const LinearLayout &memory, unsigned rowElements) {
  return all_of(LinearLayout::identity(memory.shape(), HwDim::Register).toMemory(memory).bases(HwDim::Register),
                [&](Vec offset) { return offset < rowElements || offset % rowElements == 0; });
}

/// The bits of `number`, put to the places `bits`.
static unsigned spread(ArrayRef<unsigned> bits, unsigned number) {
  unsigned result = 0;
  for (auto [i, bit] : enumerate(bits))
    result |= (number >> i & 1) << bit;
  return result;
}

/// One kind of access, or nothing. In the offsets of lanes and registers, the bits within a row must come from exactly
/// the lane and register bits that the instruction spreads over the row; all others move whole rows.
static std::optional<MatrixAccess> planMatrix(const LinearLayout &offsets, unsigned elementBytes, bool transposed) {
  if (elementBytes > (transposed ? unitBytes : registerBytes))
    return std::nullopt;
  ArrayRef<Vec> lanes = offsets.bases(HwDim::Lane), registers = offsets.bases(HwDim::Register);
  unsigned rowElements = rowBytes / elementBytes;
  unsigned elementBits = Log2_32((transposed ? unitBytes : registerBytes) / elementBytes); // consecutive, in a register
  if (lanes.size() != 5)
    return std::nullopt;

  // Register bits of one 32-bit register: consecutive elements, then (transposed) the next row.
  SmallVector<unsigned> packed;
  for (unsigned i = 0; i < elementBits; ++i) {
    const Vec *at = find(registers, Vec(1) << i);
    if (at == registers.end())
      return std::nullopt;
    packed.push_back(at - registers.begin());
  }
  auto isRow = [&](Vec offset) { return offset % rowElements == 0; };
  auto nextRow = [&] {
    for (unsigned i = 0; i < registers.size(); ++i)
      if (!is_contained(packed, i) && isRow(registers[i]))
        return i;
    return unsigned(registers.size());
  };
  if (transposed) {
    packed.push_back(nextRow());
    if (packed.back() == registers.size())
      return std::nullopt;
  }
  // Lane bits along the row, and those that with the packed row bit number the eight rows.
  unsigned alongStart = transposed ? 2 : 0, alongBits = Log2_32(rowElements) - elementBits;
  Vecs rows;
  if (transposed)
    rows.push_back(registers[packed.back()]);
  for (unsigned i = 0; i < lanes.size(); ++i) {
    bool along = i >= alongStart && i < alongStart + alongBits;
    if (along ? lanes[i] != Vec(1) << (elementBits + i - alongStart) : !isRow(lanes[i]))
      return std::nullopt;
    if (!along)
      rows.push_back(lanes[i]);
  }
  for (HwDim dim : {HwDim::Warp, HwDim::Block})
    if (!all_of(offsets.bases(dim), isRow))
      return std::nullopt;

  // The other register bits: up to two tell the matrices of an instruction apart, the rest the instructions.
  SmallVector<unsigned> matrices, rest;
  for (unsigned i = 0; i < registers.size(); ++i) {
    if (is_contained(packed, i))
      continue;
    if (!isRow(registers[i]))
      return std::nullopt;
    (matrices.size() < 2 ? matrices : rest).push_back(i);
  }
  for (unsigned bit : matrices)
    rows.push_back(registers[bit]);
  rows.resize(lanes.size(), 0);

  MatrixAccess access;
  access.transposed = transposed;
  access.count = 1u << matrices.size();
  access.rowOffset = LinearLayout(offsets.shape(), {{HwDim::Lane, rows},
                                                    {HwDim::Warp, Vecs(offsets.bases(HwDim::Warp))},
                                                    {HwDim::Block, Vecs(offsets.bases(HwDim::Block))}});
  packed.append(matrices);
  for (unsigned n = 0; n < 1u << rest.size(); ++n) {
    MatrixAccess::Instruction instruction;
    instruction.offset = combine(registers, spread(rest, n));
    for (unsigned i = 0; i < 1u << packed.size(); ++i)
      instruction.registers.push_back(spread(rest, n) | spread(packed, i));
    access.instructions.push_back(std::move(instruction));
  }
  return access;
}

std::optional<MatrixAccess> planMatrix(const LinearLayout &offsets, unsigned elementBytes) {
  auto plain = planMatrix(offsets, elementBytes, /*transposed=*/false);
  return plain ? plain : planMatrix(offsets, elementBytes, /*transposed=*/true);
}

std::optional<MatrixAccess> planMatrixLoad(const LinearLayout &distributed, const LinearLayout &memory,
                                           unsigned elementBytes) {
  if (elementBytes > registerBytes || memory.size(HwDim::Offset) * elementBytes < 8 * rowBytes ||
      !keepsRows(memory, rowBytes / elementBytes))
    return std::nullopt;
  LinearLayout offsets = distributed.within(memory.shape()).toMemory(memory);
  return planMatrix(offsets, elementBytes);
}

std::optional<MatrixAccess> planMatrixStore(const LinearLayout &distributed, const LinearLayout &memory,
                                            unsigned elementBytes) {
  return planMatrixLoad(distributed, memory, elementBytes); // the instructions are each other's inverse
}

std::optional<MatrixAccess> ConversionPlan::matrixStores(unsigned pass, unsigned elementBytes) const {
  // All lanes of a warp take part.
  if (any_of(srcIterated, [](auto iterated) { return iterated.first == HwDim::Lane; }))
    return std::nullopt;
  PassRegisters ofPass = passRegisters(*this, pass, /*store=*/true);
  SmallVector<unsigned> kept; // register bits that are neither copies nor fixed in the pass, whose own offset is 0
  Vecs registers;
  for (auto [bit, offset] : enumerate(store.bases(HwDim::Register)))
    if (!((srcDuplicates | ofPass.bits) >> bit & 1)) {
      kept.push_back(bit);
      registers.push_back(offset);
    }
  auto access = planMatrix(store.withIn(HwDim::Register, registers), elementBytes);
  if (access)
    for (MatrixAccess::Instruction &instruction : access->instructions)
      for (unsigned &reg : instruction.registers)
        reg = spread(kept, reg) | ofPass.values;
  return access;
}

unsigned bankConflicts(const MatrixAccess &access, unsigned elementBytes, const SharedMemoryModel &model) {
  return 1u << conflictBits(access.rowOffset.bases(HwDim::Lane).take_front(3), rowBytes, elementBytes, model);
}

/// Lane offsets such that the lanes of a phase come first.
static Vecs inPhases(ArrayRef<Vec> lanes, unsigned accessBytes, bool load, const SharedMemoryModel &model) {
  if (!load || accessBytes != 16 || model.wideLoadLanes.empty())
    return Vecs(lanes);
  Span seen;
  Vecs result;
  SmallVector<unsigned> masks(ArrayRef<unsigned>(model.wideLoadLanes));
  for (unsigned bit = 0; bit < lanes.size(); ++bit)
    masks.push_back(1u << bit);
  for (unsigned mask : masks) {
    if (mask >> lanes.size() || !seen.add(mask))
      continue;
    Vec offset = 0;
    for (unsigned bit = 0; bit < lanes.size(); ++bit)
      offset ^= mask >> bit & 1 ? lanes[bit] : 0;
    result.push_back(offset);
  }
  return result;
}

SharedAccessCost sharedAccessCost(const LinearLayout &distributed, const LinearLayout &memory, unsigned elementBytes,
                                  bool load, const SharedMemoryModel &model) {
  LinearLayout offsets = distributed.within(memory.shape()).toMemory(memory);
  ArrayRef<Vec> registers = offsets.bases(HwDim::Register);
  unsigned vecBits = 0;
  for (; (elementBytes << vecBits) < model.maxVectorBytes; ++vecBits) {
    Vec step = Vec(1) << vecBits;
    auto moves = [&](Vec offset) { return (offset & step) != 0; };
    if (!is_contained(registers, step) || count_if(registers, moves) != 1 ||
        any_of(offsets.bases(HwDim::Lane), moves) || any_of(offsets.bases(HwDim::Warp), moves))
      break;
  }
  unsigned vecBytes = elementBytes << vecBits;
  Vecs lanes = inPhases(offsets.bases(HwDim::Lane), vecBytes, load, model);
  unsigned phases = lanes.size() - phaseBits(lanes.size(), vecBytes, model), accesses = registers.size() - vecBits;
  return {1u << accesses, 1u << (accesses + phases + conflictBits(lanes, vecBytes, elementBytes, model))};
}

unsigned sharedLoadWavefronts(const LinearLayout &distributed, const LinearLayout &memory, unsigned elementBytes,
                              bool matrixLoad, const SharedMemoryModel &model) {
  if (matrixLoad)
    if (auto access = planMatrixLoad(distributed, memory, elementBytes))
      return access->instructions.size() * access->count * bankConflicts(*access, elementBytes, model);
  return sharedAccessCost(distributed, memory, elementBytes, /*load=*/true, model).wavefronts;
}

// ---- wgmma ----------------------------------------------------------------------------------------------------------

uint64_t WarpGroupOperand::startBytes(ArrayRef<int64_t> coords) const {
  LinearLayout first(memory.shape(), {{HwDim::Register, {memory.flat(coords)}}});
  return first.toMemory(memory).bases(HwDim::Register).front() * elementBytes;
}

namespace {

/// Byte offsets of the bits of each coordinate, compared with what a swizzle mode makes of an instruction's operand.
struct WgmmaMatcher {
  ArrayRef<Vec> k, other; ///< offsets of the bits along k and along m or n
  unsigned extentBits, kBits, unitBits;

  /// The swizzle permutes address bits: 16-byte units by the place of the 128-byte line in its group of eight.
  static Vec swizzled(Vec address, unsigned swizzle) {
    return swizzle ? address ^ (address >> 7 & (swizzle / 16 - 1)) << 4 : address;
  }

  /// Bits [from, to) of `offsets` double a step, which is returned: any multiple of `unit`. With no such bit
  /// `otherwise`.
  static std::optional<unsigned> step(ArrayRef<Vec> offsets, unsigned from, unsigned to, unsigned unit,
                                      unsigned otherwise) {
    if (from >= to)
      return otherwise;
    for (unsigned i = from; i < to; ++i)
      if (offsets[i] != offsets[from] << (i - from))
        return std::nullopt;
    return offsets[from] % unit == 0 ? std::optional(unsigned(offsets[from])) : std::nullopt;
  }
  /// Bits [from, to) are the address bits from `start` on, swizzled.
  static bool matches(ArrayRef<Vec> offsets, unsigned from, unsigned to, Vec start, unsigned swizzle) {
    for (unsigned i = from; i < to; ++i)
      if (offsets[i] != swizzled(start << (i - from), swizzle))
        return false;
    return true;
  }

  std::optional<WarpGroupOperand> match(unsigned swizzle, bool transposed) const {
    unsigned width = std::max(swizzle, 16u), group = 8 * width; // bytes of a row, and of eight
    unsigned unit = swizzle ? group : 16;                       // what strides are multiples of
    WarpGroupOperand result;
    result.swizzleBytes = swizzle;
    result.transposed = transposed;
    std::optional<unsigned> leading, stride;
    if (!transposed) {
      // k: the elements of a unit, then the second unit of the instruction. Rows: eight `width` apart, then any stride.
      if (!matches(k, 0, unitBits, 16 >> unitBits, 0) || !matches(other, 0, std::min(3u, extentBits), width, swizzle) ||
          (swizzle && !matches(k, unitBits, kBits, 16, swizzle)))
        return std::nullopt;
      leading = swizzle ? 16 : step(k, unitBits, kBits, 16, 16);
      stride = step(other, 3, extentBits, unit, group);
    } else {
      // m or n: units of a row, then further blocks. k: eight rows, then the other eight.
      unsigned rowBits = unitBits + Log2_32(width / 16);
      if (!matches(other, 0, std::min(rowBits, extentBits), 16 >> unitBits, swizzle) ||
          !matches(k, 0, std::min(3u, kBits), width, swizzle))
        return std::nullopt;
      auto blocks = step(other, rowBits, extentBits, unit, group), rows = step(k, 3, kBits, unit, group);
      leading = swizzle ? blocks : rows;
      stride = swizzle ? rows : blocks;
    }
    // Where an instruction starts: at a 16-byte unit, of the first of eight rows if they are swizzled.
    auto starts = [&](ArrayRef<Vec> offsets, unsigned from) {
      return all_of(offsets.drop_front(from),
                    [&](Vec offset) { return offset % 16 == 0 && (!swizzle || offset % group < width); });
    };
    if (!leading || !stride || !starts(k, kBits) || !starts(other, extentBits))
      return std::nullopt;
    result.leadingBytes = *leading;
    result.strideBytes = *stride;
    return result;
  }
};

} // namespace

std::optional<WarpGroupOperand> planWarpGroupOperand(const LinearLayout &memory, unsigned kDim, unsigned extent,
                                                     unsigned elementBytes) {
  unsigned kElements = elementBytes ? 32 / elementBytes : 0;
  if (memory.rank() != 2 || kDim > 1 || elementBytes > 4 || kElements == 0 || memory.shape()[kDim] < kElements ||
      memory.shape()[1 - kDim] < extent)
    return std::nullopt;
  Vecs offsets(LinearLayout::identity(memory.shape(), HwDim::Register).toMemory(memory).bases(HwDim::Register));
  for (Vec &offset : offsets)
    offset *= elementBytes;
  unsigned columnBits = Log2_64(memory.shape()[1]);
  ArrayRef<Vec> columns = ArrayRef(offsets).take_front(columnBits), rows = ArrayRef(offsets).drop_front(columnBits);
  WgmmaMatcher matcher{kDim ? columns : rows, kDim ? rows : columns, Log2_32(extent), Log2_32(kElements),
                       Log2_32(16 / elementBytes)};
  for (bool transposed : {false, true}) {
    if (transposed && elementBytes != 2)
      break; // the instruction transposes 16-bit types only
    for (unsigned swizzle : {128u, 64u, 32u, 0u})
      if (auto operand = matcher.match(swizzle, transposed)) {
        operand->memory = memory;
        operand->elementBytes = elementBytes;
        return operand;
      }
  }
  return std::nullopt;
}

} // namespace tessera
