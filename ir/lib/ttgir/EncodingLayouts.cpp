// What encodings mean: the linear layout of each, and the encoding of the result of a shape operation.
#include "LayoutBuilder.h"
#include "tessera/ir/LayoutPlans.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tessera::ttg {

namespace {

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

// ---- shared encodings -----------------------------------------------------------------------------------------------

/// Row-major by `order`; the units of row 2^i move along the columns by phase(2^i) units of `vec` elements.
static LinearLayout swizzled(ArrayRef<int64_t> shape, ArrayRef<unsigned> order, ArrayRef<unsigned> cga, unsigned vec,
                             function_ref<uint64_t(uint64_t)> phase) {
  LayoutBuilder builder(shape);
  LinearLayout::Bases blocks = builder.splitAmongBlocks(cga), offsets;
  for (unsigned dim : order)
    builder.takeRest(offsets, dim);
  if (order.size() > 1) {
    unsigned column = order[0], row = order[1];
    // The offsets' bits of the row: each also moves along the column by the phase of its row.
    for (unsigned bit = 0; bit < builder.limit[row]; ++bit) {
      uint64_t moved = (phase(uint64_t(1) << bit) * vec) & ((uint64_t(1) << builder.limit[column]) - 1);
      offsets[builder.limit[column] + bit] ^= moved << builder.position[column];
    }
  }
  return sharedLayout(shape, offsets, blocks);
}

unsigned SwizzledSharedEncodingAttr::getRank() const { return getOrder().size(); }

LinearLayout SwizzledSharedEncodingAttr::toLinearLayout(ArrayRef<int64_t> shape) const {
  return swizzled(shape, getOrder(), getCgaLayout(), getVec(),
                  [&](uint64_t row) { return row / getPerPhase() % getMaxPhase(); });
}

Attribute SwizzledSharedEncodingAttr::transpose(ArrayRef<int32_t> order) const {
  return get(getContext(), getVec(), getPerPhase(), getMaxPhase(), renamed(getOrder(), order),
             permutedBases(getCgaLayout(), order));
}

unsigned AmdRotatingSharedEncodingAttr::getRank() const { return getOrder().size(); }

LinearLayout AmdRotatingSharedEncodingAttr::toLinearLayout(ArrayRef<int64_t> shape) const {
  return swizzled(shape, getOrder(), getCgaLayout(), getVec(), [&](uint64_t row) {
    uint64_t phase = row / getPerPhase();
    return (phase ^ phase / getMaxPhase()) % getMaxPhase();
  });
}

Attribute AmdRotatingSharedEncodingAttr::transpose(ArrayRef<int32_t> order) const {
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

unsigned sharedAlignment(MemDescType type) {
  auto swizzled = dyn_cast<NvmmaSharedEncodingAttr>(type.getEncoding());
  return swizzled ? swizzled.getAlignment() : 16;
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
