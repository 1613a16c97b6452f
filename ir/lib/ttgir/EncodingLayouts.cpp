// What encodings mean: the linear layout of each, and the encoding of the result of a shape operation.
#include "tessera/ir/LayoutPlans.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tessera::ttg {

namespace {

unsigned log2of(uint64_t powerOfTwo) { return llvm::countr_zero(powerOfTwo); }

/// Builds a layout dimension by dimension: each dimension's coordinate bits are handed out from the lowest up, to
/// register, lane and warp bits in the order they are asked for.
class LayoutBuilder {
public:
  explicit LayoutBuilder(ArrayRef<int64_t> shape)
      : shape(shape), position(shape.size()), done(shape.size(), 0), limit(shape.size()) {
    for (unsigned dim = shape.size(), bit = 0; dim-- > 0;) {
      position[dim] = bit;
      limit[dim] = log2of(shape[dim]);
      bit += limit[dim];
    }
  }

  /// Splits dimensions among the programs of a cluster; `bases` are in units of a program's part.
  LinearLayout::Bases splitAmongBlocks(ArrayRef<unsigned> bases) {
    unsigned rank = shape.size();
    SmallVector<unsigned> whole(limit);
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
  uint64_t flat(ArrayRef<unsigned> coordinates) const {
    uint64_t basis = 0;
    for (auto [dim, coordinate] : llvm::enumerate(coordinates))
      basis |= (uint64_t(coordinate) & (shape[dim] - 1)) << position[dim];
    return basis;
  }

  ArrayRef<int64_t> shape;
  SmallVector<unsigned> position, done, limit;
};

/// Two registers of a lane never hold the same element: register bases that depend on others are dropped.
LinearLayout::Bases independent(ArrayRef<uint64_t> bases) {
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

LinearLayout distributed(ArrayRef<int64_t> shape, ArrayRef<uint64_t> registers, ArrayRef<uint64_t> lanes,
                         ArrayRef<uint64_t> warps, ArrayRef<uint64_t> blocks) {
  auto bases = [](ArrayRef<uint64_t> list) { return LinearLayout::Bases(list.begin(), list.end()); };
  return LinearLayout(shape, {{HwDim::Register, independent(registers)},
                              {HwDim::Lane, bases(lanes)},
                              {HwDim::Warp, bases(warps)},
                              {HwDim::Block, bases(blocks)}});
}

LinearLayout sharedLayout(ArrayRef<int64_t> shape, LinearLayout::Bases offsets, LinearLayout::Bases blocks) {
  if (blocks.empty())
    return LinearLayout(shape, {{HwDim::Offset, std::move(offsets)}});
  return LinearLayout(shape, {{HwDim::Offset, std::move(offsets)}, {HwDim::Block, std::move(blocks)}});
}

SmallVector<unsigned> permuted(ArrayRef<unsigned> values, ArrayRef<int32_t> order) {
  return llvm::map_to_vector(order, [&](int32_t dim) { return values[dim]; });
}
/// `order` of the transposed layout: where each dimension went.
SmallVector<unsigned> renamed(ArrayRef<unsigned> dims, ArrayRef<int32_t> order) {
  return llvm::map_to_vector(dims,
                             [&](unsigned dim) { return unsigned(llvm::find(order, int32_t(dim)) - order.begin()); });
}
SmallVector<unsigned> permutedBases(ArrayRef<unsigned> bases, ArrayRef<int32_t> order) {
  SmallVector<unsigned> result;
  for (size_t i = 0; i < bases.size(); i += order.size())
    result.append(permuted(bases.slice(i, order.size()), order));
  return result;
}

/// Coordinates of the bases of one input, flattened.
SmallVector<unsigned> coordinates(const LinearLayout &layout, HwDim dim) {
  SmallVector<unsigned> result;
  for (uint64_t basis : layout.bases(dim))
    for (int64_t coordinate : layout.coords(basis))
      result.push_back(coordinate);
  return result;
}

} // namespace

// ---- distributed encodings ------------------------------------------------------------------------------------------

unsigned BlockedEncodingAttr::getRank() const { return getOrder().size(); }

LinearLayout BlockedEncodingAttr::toLinearLayout(ArrayRef<int64_t> shape) const {
  LayoutBuilder builder(shape);
  LinearLayout::Bases blocks = builder.splitAmongBlocks(getCgaLayout()), registers, lanes, warps;
  for (unsigned dim : getOrder())
    builder.take(registers, dim, log2of(getSizePerThread()[dim]), false);
  for (unsigned dim : getOrder())
    builder.take(lanes, dim, log2of(getThreadsPerWarp()[dim]), true);
  for (unsigned dim : getOrder())
    builder.take(warps, dim, log2of(getWarpsPerCTA()[dim]), true);
  for (unsigned dim : getOrder())
    builder.takeRest(registers, dim);
  return distributed(shape, registers, lanes, warps, blocks);
}

Attribute BlockedEncodingAttr::transpose(ArrayRef<int32_t> order) const {
  return get(getContext(), permuted(getSizePerThread(), order), permuted(getThreadsPerWarp(), order),
             permuted(getWarpsPerCTA(), order), renamed(getOrder(), order), permutedBases(getCgaLayout(), order));
}

BlockedEncodingAttr BlockedEncodingAttr::get(MLIRContext *context, ArrayRef<int64_t> shape,
                                             ArrayRef<unsigned> sizePerThread, ArrayRef<unsigned> order,
                                             unsigned numWarps, unsigned threadsPerWarp) {
  SmallVector<unsigned> lanes(order.size(), 1), warps(order.size(), 1);
  unsigned freeLanes = threadsPerWarp, freeWarps = numWarps;
  for (unsigned dim : order) {
    bool last = dim == order.back();
    unsigned blocks = std::max<int64_t>(1, shape[dim] / sizePerThread[dim]);
    lanes[dim] = last ? freeLanes : std::min(blocks, freeLanes);
    warps[dim] = last ? freeWarps : std::min(std::max(1u, blocks / lanes[dim]), freeWarps);
    freeLanes /= lanes[dim];
    freeWarps /= warps[dim];
  }
  return get(context, sizePerThread, lanes, warps, order);
}

unsigned SliceEncodingAttr::getRank() const { return getParent().getRank() - 1; }

LinearLayout SliceEncodingAttr::toLinearLayout(ArrayRef<int64_t> shape) const {
  SmallVector<int64_t> parentShape(shape);
  parentShape.insert(parentShape.begin() + getDim(), 1);
  // A dimension of size 1 has no bits: flat indices are the same without it.
  return LinearLayout(shape, getParent().toLinearLayout(parentShape).ins());
}

LinearLayout LinearEncodingAttr::toLinearLayout(ArrayRef<int64_t> shape) const {
  LayoutBuilder builder(shape);
  unsigned rank = getRank();
  SmallVector<unsigned> order;
  auto bases = [&](ArrayRef<unsigned> list) {
    LinearLayout::Bases result;
    for (size_t i = 0; i < list.size(); i += rank) {
      ArrayRef<unsigned> vector = list.slice(i, rank);
      result.push_back(builder.flat(vector));
      for (unsigned dim = rank; dim-- > 0;) {
        builder.done[dim] = std::max<unsigned>(builder.done[dim], llvm::bit_width(vector[dim]));
        if (vector[dim] && !llvm::is_contained(order, dim))
          order.push_back(dim);
      }
    }
    return result;
  };
  LinearLayout::Bases registers = bases(getRegisters()), lanes = bases(getLanes()), warps = bases(getWarps()),
                      blocks = bases(getBlocks());
  // A tensor larger than the bases reach is covered by more registers, along the fastest dimensions first.
  for (unsigned dim = rank; dim-- > 0;)
    if (!llvm::is_contained(order, dim))
      order.push_back(dim);
  for (unsigned dim : order)
    if (builder.done[dim] < builder.limit[dim])
      builder.takeRest(registers, dim);
  return distributed(shape, registers, lanes, warps, blocks);
}

LinearEncodingAttr LinearEncodingAttr::get(MLIRContext *context, const LinearLayout &layout) {
  SmallVector<unsigned> registers = coordinates(layout, HwDim::Register), lanes = coordinates(layout, HwDim::Lane),
                        warps = coordinates(layout, HwDim::Warp), blocks = coordinates(layout, HwDim::Block);
  // The text gives the rank through the vectors, so there must be one.
  if (registers.empty() && lanes.empty() && warps.empty() && blocks.empty())
    registers.assign(layout.rank(), 0);
  return get(context, layout.rank(), registers, lanes, warps, blocks);
}

// ---- matrix instructions --------------------------------------------------------------------------------------------

/// Fragment of a warp in mma.sync and wgmma (PTX ISA): a quad of lanes holds `width` consecutive elements each along
/// `inner`, eight quads are eight positions along `outer`; further registers go on along `outer`, then along `inner`.
static void takeFragment(LayoutBuilder &builder, LinearLayout::Bases &registers, LinearLayout::Bases &lanes,
                         unsigned inner, unsigned innerSize, unsigned outer, unsigned outerSize, unsigned width) {
  builder.take(registers, inner, log2of(width), false);
  builder.take(lanes, inner, 2, true);
  builder.take(lanes, outer, 3, true);
  builder.take(registers, outer, log2of(outerSize / 8), false);
  builder.take(registers, inner, log2of(innerSize / (4 * width)), false);
}

unsigned NvidiaMmaEncodingAttr::getRank() const { return getWarpsPerCTA().size(); }

SmallVector<unsigned> NvidiaMmaEncodingAttr::getWarpOrder() const {
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq(getRank()));
  if (!isWarpGroup())
    std::reverse(order.begin(), order.end());
  return order;
}

LinearLayout NvidiaMmaEncodingAttr::toLinearLayout(ArrayRef<int64_t> shape) const {
  LayoutBuilder builder(shape);
  unsigned rank = getRank();
  LinearLayout::Bases blocks = builder.splitAmongBlocks(getCgaLayout()), registers, lanes, warps;
  takeFragment(builder, registers, lanes, rank - 1, getInstrN(), rank - 2, 16, 2);
  for (unsigned dim : getWarpOrder())
    builder.take(warps, dim, log2of(getWarpsPerCTA()[dim]), true);
  for (unsigned dim = rank; dim-- > 0;)
    builder.takeRest(registers, dim);
  return distributed(shape, registers, lanes, warps, blocks);
}

DotOperandEncodingAttr DotOperandEncodingAttr::get(MLIRContext *context, unsigned opIdx, NvidiaMmaEncodingAttr parent,
                                                   unsigned kWidth) {
  return get(context, opIdx, cast<DistributedEncoding>(Attribute(parent)), kWidth);
}

unsigned DotOperandEncodingAttr::getRank() const { return getParent().getRank(); }
NvidiaMmaEncodingAttr DotOperandEncodingAttr::getMma() const { return cast<NvidiaMmaEncodingAttr>(getParent()); }

LinearLayout DotOperandEncodingAttr::toLinearLayout(ArrayRef<int64_t> shape) const {
  LayoutBuilder builder(shape);
  NvidiaMmaEncodingAttr mma = getMma();
  unsigned rank = getRank(), k = getKDim(), other = getOpIdx() == 0 ? rank - 2 : rank - 1;
  // Programs and warps that differ only in the dimension the operand lacks have the same part of it.
  SmallVector<unsigned> cga(mma.getCgaLayout());
  for (size_t i = k; i < cga.size(); i += rank)
    cga[i] = 0;
  LinearLayout::Bases blocks = builder.splitAmongBlocks(cga), registers, lanes, warps;
  takeFragment(builder, registers, lanes, k, 8 * getKWidth(), other, getOpIdx() == 0 ? 16 : 8, getKWidth());
  for (unsigned dim : mma.getWarpOrder()) {
    unsigned bits = log2of(mma.getWarpsPerCTA()[dim]);
    if (dim == k)
      warps.append(bits, 0);
    else
      builder.take(warps, dim, bits, true);
  }
  builder.takeRest(registers, k);
  for (unsigned dim = rank; dim-- > 0;)
    builder.takeRest(registers, dim);
  return distributed(shape, registers, lanes, warps, blocks);
}

// ---- shared encodings -----------------------------------------------------------------------------------------------

unsigned SwizzledSharedEncodingAttr::getRank() const { return getOrder().size(); }

LinearLayout SwizzledSharedEncodingAttr::toLinearLayout(ArrayRef<int64_t> shape) const {
  LayoutBuilder builder(shape);
  LinearLayout::Bases blocks = builder.splitAmongBlocks(getCgaLayout()), offsets;
  for (unsigned dim : getOrder())
    builder.takeRest(offsets, dim);
  if (getOrder().size() > 1) {
    unsigned column = getOrder()[0], row = getOrder()[1];
    // The offsets' bits of the row: each also moves along the column by the phase of its row.
    for (unsigned bit = 0; bit < builder.limit[row]; ++bit) {
      uint64_t phase = ((uint64_t(1) << bit) / getPerPhase()) % getMaxPhase();
      uint64_t moved = (phase * getVec()) & ((uint64_t(1) << builder.limit[column]) - 1);
      offsets[builder.limit[column] + bit] ^= moved << builder.position[column];
    }
  }
  return sharedLayout(shape, offsets, blocks);
}

Attribute SwizzledSharedEncodingAttr::transpose(ArrayRef<int32_t> order) const {
  return get(getContext(), getVec(), getPerPhase(), getMaxPhase(), renamed(getOrder(), order),
             permutedBases(getCgaLayout(), order));
}

SwizzledSharedEncodingAttr chooseSwizzle(RankedTensorType operand, ArrayRef<unsigned> order, bool matrixLoad) {
  LinearLayout layout = toLinearLayout(operand);
  unsigned bytes = std::max(1u, tt::bitWidth(operand.getElementType()) / 8);
  uint64_t rowBytes = operand.getDimSize(order[0]) * bytes;
  unsigned rows = std::max<uint64_t>(1, 128 / rowBytes); // that the banks hold side by side
  SwizzledSharedEncodingAttr best;
  unsigned fewest = UINT_MAX;
  // Simpler ones first. Whole 16-byte units move, so copies and ldmatrix work on any.
  for (unsigned perPhase : {rows, 2 * rows, 4 * rows})
    for (unsigned vecBytes : {16u, 32u, 64u})
      for (unsigned maxPhase : {1u, 2u, 4u, 8u}) {
        if (maxPhase > 1 && vecBytes * maxPhase > rowBytes)
          break;
        auto candidate = SwizzledSharedEncodingAttr::get(operand.getContext(), std::max(1u, vecBytes / bytes), perPhase,
                                                         maxPhase, order);
        unsigned wavefronts =
            sharedLoadWavefronts(layout, candidate.toLinearLayout(operand.getShape()), bytes, matrixLoad);
        if (wavefronts < fewest) {
          best = candidate;
          fewest = wavefronts;
        }
      }
  return best;
}

unsigned NvmmaSharedEncodingAttr::getRank() const { return 2; }

NvmmaSharedEncodingAttr NvmmaSharedEncodingAttr::get(MLIRContext *context, ArrayRef<int64_t> shape,
                                                     ArrayRef<unsigned> order, unsigned elementBitWidth) {
  uint64_t rowBytes = shape[order[0]] * elementBitWidth / 8;
  unsigned swizzle = rowBytes < 32 || shape[order[1]] < 8 ? 0 : std::min<uint64_t>(rowBytes, 128);
  return get(context, swizzle, order[0] == 0, elementBitWidth);
}

LinearLayout NvmmaSharedEncodingAttr::toLinearLayout(ArrayRef<int64_t> shape) const {
  LayoutBuilder builder(shape);
  LinearLayout::Bases blocks = builder.splitAmongBlocks(getCgaLayout()), offsets;
  unsigned column = getContiguousDim(), row = 1 - column, swizzle = getSwizzlingByteWidth();
  if (swizzle)
    builder.take(offsets, column, log2of(swizzle * 8 / getElementBitWidth()), false);
  else
    builder.takeRest(offsets, column);
  size_t rows = offsets.size();
  builder.takeRest(offsets, row);
  builder.takeRest(offsets, column);
  // Rows 1, 2 and 4 of the block also move along it, by 16-byte units.
  for (unsigned bit = 0; swizzle && bit < std::min(3u, builder.limit[row]); ++bit) {
    uint64_t unit = (uint64_t(1) << bit) * swizzle / 128 % (swizzle / 16);
    uint64_t moved = unit * (128 / getElementBitWidth()) & ((uint64_t(1) << builder.limit[column]) - 1);
    offsets[rows + bit] ^= moved << builder.position[column];
  }
  return sharedLayout(shape, offsets, blocks);
}

Attribute NvmmaSharedEncodingAttr::transpose(ArrayRef<int32_t> order) const {
  return get(getContext(), getSwizzlingByteWidth(), getTransposed() != (order[0] == 1), getElementBitWidth(),
             permutedBases(getCgaLayout(), order));
}

PaddedSharedEncodingAttr PaddedSharedEncodingAttr::get(MLIRContext *context, ArrayRef<unsigned> intervals,
                                                       ArrayRef<unsigned> paddings, ArrayRef<unsigned> order,
                                                       ArrayRef<int64_t> shape) {
  return getChecked([&] { return emitError(UnknownLoc::get(context)); }, context, intervals, paddings, order, shape);
}

PaddedSharedEncodingAttr PaddedSharedEncodingAttr::getChecked(function_ref<InFlightDiagnostic()> emitError,
                                                              MLIRContext *context, ArrayRef<unsigned> intervals,
                                                              ArrayRef<unsigned> paddings, ArrayRef<unsigned> order,
                                                              ArrayRef<int64_t> shape) {
  SmallVector<unsigned> offsets;
  for (unsigned dim : order)
    for (int64_t coordinate = 1; coordinate < shape[dim]; coordinate *= 2)
      for (unsigned d = 0; d < shape.size(); ++d)
        offsets.push_back(d == dim ? coordinate : 0);
  return getChecked(emitError, context, intervals, paddings, unsigned(order.size()), ArrayRef<unsigned>(offsets),
                    ArrayRef<unsigned>());
}

LinearLayout PaddedSharedEncodingAttr::toLinearLayout(ArrayRef<int64_t> shape) const {
  LayoutBuilder builder(shape);
  auto bases = [&](ArrayRef<unsigned> list) {
    LinearLayout::Bases result;
    for (size_t i = 0; i < list.size(); i += getRank()) {
      ArrayRef<unsigned> vector = list.slice(i, getRank());
      for (unsigned dim = 0; dim < getRank(); ++dim)
        builder.done[dim] = std::max<unsigned>(builder.done[dim], llvm::bit_width(vector[dim]));
      result.push_back(builder.flat(vector));
    }
    return result;
  };
  LinearLayout::Bases offsets = bases(getOffsets()), blocks = bases(getBlocks());
  for (unsigned dim = getRank(); dim-- > 0;)
    if (builder.done[dim] < builder.limit[dim])
      builder.takeRest(offsets, dim);
  return sharedLayout(shape, offsets, blocks);
}

uint64_t PaddedSharedEncodingAttr::paddedOffset(uint64_t i) const {
  uint64_t offset = i;
  for (auto [interval, padding] : llvm::zip(getIntervals(), getPaddings()))
    offset += i / interval * padding;
  return offset;
}

// ---- layouts of tensors ---------------------------------------------------------------------------------------------

LinearLayout toLinearLayout(ArrayRef<int64_t> shape, Attribute encoding) {
  if (auto layout = dyn_cast_or_null<DistributedEncoding>(encoding))
    return layout.toLinearLayout(shape);
  if (auto layout = dyn_cast_or_null<SharedEncoding>(encoding))
    return layout.toLinearLayout(shape);
  // Without an encoding one lane holds everything.
  LayoutBuilder builder(shape);
  LinearLayout::Bases registers;
  for (unsigned dim = shape.size(); dim-- > 0;)
    builder.takeRest(registers, dim);
  return distributed(shape, registers, {}, {}, {});
}

LinearLayout allocationLayout(MemDescType type) {
  auto encoding = cast<SharedEncoding>(type.getEncoding());
  return encoding.toLinearLayout(type.getAllocShape().take_back(encoding.getRank()));
}

LinearLayout toLinearLayout(RankedTensorType type) { return toLinearLayout(type.getShape(), type.getEncoding()); }

bool areEquivalent(ArrayRef<int64_t> shape, Attribute a, Attribute b) {
  if (a == b)
    return true;
  auto describes = [&](Attribute encoding) {
    auto layout = dyn_cast_or_null<DistributedEncoding>(encoding);
    return layout && layout.getRank() == shape.size();
  };
  return describes(a) && describes(b) && toLinearLayout(shape, a) == toLinearLayout(shape, b);
}

Attribute encodingOf(MLIRContext *context, const LinearLayout &layout) {
  unsigned rank = layout.rank();
  SmallVector<unsigned> size(rank, 1), lanes(rank, 1), warps(rank, 1), order(rank);
  SmallVector<uint64_t> lowest(rank, UINT64_MAX); // least coordinate that a lane or warp bit moves by
  auto single = [&](uint64_t basis) -> int {      // the dimension a basis moves along, if it is one bit of one
    auto at = layout.coords(basis);
    return llvm::has_single_bit(basis) ? llvm::find_if(at, [](int64_t c) { return c != 0; }) - at.begin() : -1;
  };
  bool blocked = rank > 0 && rank <= 4 && layout.numBits(HwDim::Block) == 0;
  for (HwDim in : {HwDim::Lane, HwDim::Warp})
    for (uint64_t basis : layout.bases(in)) {
      int dim = single(basis);
      if (dim < 0 || !blocked) {
        blocked = false;
        break;
      }
      (in == HwDim::Lane ? lanes : warps)[dim] *= 2;
      lowest[dim] = std::min<uint64_t>(lowest[dim], layout.coords(basis)[dim]);
    }
  for (uint64_t basis : layout.bases(HwDim::Register)) {
    int dim = blocked ? single(basis) : -1;
    if (dim < 0) {
      blocked = false;
      break;
    }
    if (static_cast<uint64_t>(layout.coords(basis)[dim]) < lowest[dim])
      size[dim] *= 2;
  }
  if (blocked) {
    for (unsigned i = 0; i < rank; ++i)
      order[i] = i;
    // Row-major, the usual order, is the last permutation.
    SmallVector<SmallVector<unsigned>> orders;
    do
      orders.push_back(order);
    while (std::next_permutation(order.begin(), order.end()));
    for (ArrayRef<unsigned> candidate : llvm::reverse(orders)) {
      auto encoding = BlockedEncodingAttr::get(context, size, lanes, warps, candidate);
      if (encoding.toLinearLayout(layout.shape()) == layout)
        return encoding;
    }
  }
  return LinearEncodingAttr::get(context, layout);
}

// ---- encodings of results -------------------------------------------------------------------------------------------

/// Whether the source has an encoding to work with; `none` is set if it has no encoding at all.
static DistributedEncoding encodingIn(RankedTensorType src, bool &none) {
  none = !src.getEncoding();
  return dyn_cast_or_null<DistributedEncoding>(src.getEncoding());
}

/// Applies `shapeOp` to the source's layout.
static InferredEncoding mapLayout(RankedTensorType src, function_ref<LinearLayout(const LinearLayout &)> shapeOp) {
  bool none;
  DistributedEncoding encoding = encodingIn(src, none);
  if (!encoding)
    return none ? InferredEncoding(Attribute()) : InferredEncoding(failure());
  return encodingOf(src.getContext(), shapeOp(toLinearLayout(src)));
}

InferredEncoding inferExpandDims(RankedTensorType src, unsigned axis) {
  if (auto slice = dyn_cast_or_null<SliceEncodingAttr>(src.getEncoding()); slice && slice.getDim() == axis)
    return Attribute(slice.getParent());
  return mapLayout(src, [&](const LinearLayout &layout) {
    SmallVector<int64_t> shape(layout.shape());
    shape.insert(shape.begin() + axis, 1);
    return LinearLayout(shape, layout.ins());
  });
}

InferredEncoding inferReduce(RankedTensorType src, unsigned axis) {
  bool none;
  DistributedEncoding encoding = encodingIn(src, none);
  if (!encoding)
    return none ? InferredEncoding(Attribute()) : InferredEncoding(failure());
  return Attribute(SliceEncodingAttr::get(src.getContext(), axis, encoding));
}

InferredEncoding inferTrans(RankedTensorType src, ArrayRef<int32_t> order) {
  bool none;
  if (DistributedEncoding encoding = encodingIn(src, none))
    if (Attribute transposed = encoding.transpose(order))
      return transposed;
  return mapLayout(src, [&](const LinearLayout &layout) { return layout.transpose(order); });
}

InferredEncoding inferReshape(RankedTensorType src, ArrayRef<int64_t> shape) {
  if (src.getShape() == shape)
    return src.getEncoding();
  // Row-major positions, which are the outputs, do not change.
  return mapLayout(src, [&](const LinearLayout &layout) { return LinearLayout(shape, layout.ins()); });
}

/// The layout with its register bases replaced by `change(bases)`, over `shape`.
static LinearLayout withRegisters(const LinearLayout &layout, ArrayRef<int64_t> shape,
                                  function_ref<uint64_t(uint64_t)> move, std::optional<uint64_t> first,
                                  std::optional<uint64_t> last) {
  SmallVector<LinearLayout::In> ins;
  for (const LinearLayout::In &in : layout.ins()) {
    LinearLayout::In moved{in.dim, {}};
    if (in.dim == HwDim::Register && first)
      moved.bases.push_back(*first);
    for (uint64_t basis : in.bases)
      moved.bases.push_back(move(basis));
    if (in.dim == HwDim::Register && last)
      moved.bases.push_back(*last);
    ins.push_back(moved);
  }
  return LinearLayout(shape, ins);
}

InferredEncoding inferJoin(RankedTensorType src) {
  return mapLayout(src, [&](const LinearLayout &layout) {
    SmallVector<int64_t> shape(layout.shape());
    shape.push_back(2);
    return withRegisters(
        layout, shape, [](uint64_t basis) { return basis << 1; }, 1, std::nullopt);
  });
}

InferredEncoding inferSplit(RankedTensorType src) {
  bool none;
  DistributedEncoding encoding = encodingIn(src, none);
  if (!encoding)
    return none ? InferredEncoding(Attribute()) : InferredEncoding(failure());
  LinearLayout layout = toLinearLayout(src);
  SmallVector<LinearLayout::In> ins;
  bool found = false;
  // The last dimension is the lowest bit: one register must move along it alone, everything else not at all.
  for (const LinearLayout::In &in : layout.ins()) {
    LinearLayout::In halved{in.dim, {}};
    for (uint64_t basis : in.bases) {
      if (in.dim == HwDim::Register && basis == 1) {
        found = true;
        continue;
      }
      if (basis & 1)
        return failure();
      halved.bases.push_back(basis >> 1);
    }
    ins.push_back(halved);
  }
  if (!found)
    return failure();
  return encodingOf(src.getContext(), LinearLayout(layout.shape().drop_back(), ins));
}

InferredEncoding inferCat(RankedTensorType src) {
  return mapLayout(src, [&](const LinearLayout &layout) {
    SmallVector<int64_t> shape(layout.shape());
    shape[0] *= 2;
    return withRegisters(
        layout, shape, [](uint64_t basis) { return basis; }, std::nullopt, uint64_t(layout.numElements()));
  });
}

InferredEncoding inferSourceOf(Operation *op, Attribute result) {
  auto encoding = dyn_cast_or_null<DistributedEncoding>(result);
  if (!encoding || op->getNumResults() == 0)
    return failure();
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || type.getRank() != encoding.getRank())
    return failure();
  auto wanted = RankedTensorType::get(type.getShape(), type.getElementType(), encoding);
  if (auto expand = dyn_cast<tt::ExpandDimsOp>(op))
    return Attribute(SliceEncodingAttr::get(op->getContext(), expand.getAxis(), encoding));
  if (auto trans = dyn_cast<tt::TransOp>(op)) {
    SmallVector<int32_t> inverse(trans.getOrder().size());
    for (auto [i, dim] : llvm::enumerate(trans.getOrder()))
      inverse[dim] = i;
    return inferTrans(wanted, inverse);
  }
  if (auto reshape = dyn_cast<tt::ReshapeOp>(op))
    return inferReshape(wanted, cast<RankedTensorType>(reshape.getSrc().getType()).getShape());
  if (isa<tt::SplitOp>(op))
    return inferJoin(wanted);
  if (isa<tt::JoinOp>(op))
    return inferSplit(wanted);
  if (isa<tt::BroadcastOp>(op) || op->hasTrait<OpTrait::Elementwise>())
    return Attribute(encoding);
  return failure();
}

} // namespace tessera::ttg
