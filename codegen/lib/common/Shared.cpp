// Buffers in shared memory that the IR names: local_alloc, local_load, local_store and views of them. A buffer has two
// uniform values: the byte offset where its allocation starts, and the offset of the view's first element in it, in
// elements. They cannot be one: a swizzled place is the xor of the view's and the element's offset.
#include "Emitter.h"

#include "tessera/ir/TransposedLoads.h"
#include "tessera/passes/Allocation.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tessera::codegen {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

/// `layout` as that of a tile at the origin of a larger one.
static LinearLayout placedIn(const LinearLayout &layout, llvm::ArrayRef<int64_t> shape) {
  if (layout.shape() == shape)
    return layout;
  LinearLayout whole = LinearLayout::identity(shape, HwDim::Offset);
  llvm::SmallVector<LinearLayout::In> ins(layout.ins());
  for (LinearLayout::In &in : ins)
    for (LinearLayout::Basis &basis : in.bases)
      basis = whole.flat(layout.coords(basis));
  return LinearLayout(shape, ins);
}

/// The offset, in elements, of the element at `coords` of an allocation with layout `memory`.
static uint64_t offsetAt(const LinearLayout &memory, llvm::ArrayRef<int64_t> coords) {
  LinearLayout element(memory.shape(), {{HwDim::Register, {memory.flat(coords)}}});
  return element.toMemory(memory).bases(HwDim::Register).front();
}

Emitter::SharedTile Emitter::placeOf(const LinearLayout &layout, mlir::Value buffer) {
  auto type = mlir::cast<ttg::MemDescType>(buffer.getType());
  LinearLayout memory = ttg::allocationLayout(type);
  SharedTile tile;
  tile.offsets = placedIn(layout, memory.shape()).toMemory(memory);
  tile.elementBytes = storageBytes(type.getElementType());
  tile.padded = mlir::dyn_cast<ttg::PaddedSharedEncodingAttr>(type.getEncoding());
  if (tile.padded && llvm::all_of(tile.padded.getIntervals(), [&](int64_t i) { return i >= memory.numElements(); }))
    tile.padded = {}; // none in a buffer of this size
  llvm::ArrayRef<V> place = get(buffer);
  tile.start = place[0];
  // A view may begin at any element whose coordinates are multiples of its size.
  for (auto [dim, whole] : llvm::enumerate(memory.shape()))
    for (int64_t i = type.getShape().take_back(memory.rank())[dim]; i < whole; i *= 2) {
      llvm::SmallVector<int64_t> coords(memory.rank(), 0);
      coords[dim] = i;
      tile.viewMask |= offsetAt(memory, coords);
    }
  if (tile.viewMask) {
    if (auto *known = llvm::dyn_cast<llvm::ConstantInt>(place[1]))
      tile.view = known->getZExtValue();
    else
      tile.movingView = place[1];
  }
  return tile;
}

Emitter::Base Emitter::baseIn(const SharedTile &tile, const LinearLayout &offsets) {
  Base base = baseOf(offsets);
  if (tile.movingView) {
    base.value = b.CreateXor(base.value, target.splat(b, tile.movingView));
    base.mask |= tile.viewMask;
  }
  return base;
}

Emitter::SharedTile Emitter::sharedTile(const LinearLayout &layout, mlir::Value buffer) {
  SharedTile tile = placeOf(layout, buffer);
  tile.base = baseIn(tile, tile.offsets);
  return tile;
}

V Emitter::sharedOffset(const SharedTile &tile, uint64_t image) {
  image ^= tile.view;
  if (!tile.padded)
    return byteOffset(tile.base, image, tile.elementBytes, tile.start);
  V linear = at(tile.base, image), offset = linear;
  for (auto [interval, padding] : llvm::zip_equal(tile.padded.getIntervals(), tile.padded.getPaddings()))
    offset = b.CreateAdd(offset, b.CreateMul(b.CreateLShr(linear, llvm::Log2_32(interval)), constant(padding)));
  return b.CreateAdd(b.CreateShl(offset, llvm::Log2_32(tile.elementBytes)), target.splat(b, tile.start));
}

/// Register bits of the widest access: they are the low offset bits, and nothing else moves below them.
llvm::SmallVector<unsigned> Emitter::vectorBits(const SharedTile &tile, unsigned maxBytes) {
  unsigned limit = llvm::Log2_32(std::max(1u, maxBytes / tile.elementBytes));
  if (tile.padded)
    for (unsigned step : llvm::concat<const unsigned>(tile.padded.getIntervals(), tile.padded.getPaddings()))
      limit = std::min<unsigned>(limit, llvm::countr_zero(step));
  auto registers = tile.offsets.bases(HwDim::Register);
  llvm::SmallVector<unsigned> bits;
  while (bits.size() < limit) {
    uint64_t wanted = uint64_t(1) << bits.size();
    auto it = llvm::find(registers, wanted);
    bool alone = llvm::count_if(registers, [&](uint64_t basis) { return basis & wanted; }) == 1;
    if (it == registers.end() || !alone || ((tile.base.mask | tile.viewMask) & wanted))
      break;
    bits.push_back(it - registers.begin());
  }
  return bits;
}

/// Every access of a tile: fn(registers, byte offset) with as many elements as registers, at consecutive places.
void Emitter::forEachSharedAccess(const SharedTile &tile, llvm::ArrayRef<unsigned> vectorBits,
                                  llvm::function_ref<void(llvm::ArrayRef<unsigned>, V)> fn) {
  uint64_t vectorMask = 0;
  for (unsigned bit : vectorBits)
    vectorMask |= uint64_t(1) << bit;
  for (unsigned r = 0, n = tile.offsets.size(HwDim::Register); r < n; ++r) {
    if (r & vectorMask)
      continue;
    llvm::SmallVector<unsigned> registers;
    for (unsigned k = 0; k < 1u << vectorBits.size(); ++k) {
      unsigned reg = r;
      for (auto [i, bit] : llvm::enumerate(vectorBits))
        reg |= (k >> i & 1) << bit;
      registers.push_back(reg);
    }
    fn(registers, sharedOffset(tile, registerImage(tile.offsets, r)));
  }
}

/// The index of each element in the allocation as it was made: that of the whole, untransposed one.
Lanes Emitter::tagsOf(mlir::Value tile, mlir::Value buffer, llvm::ArrayRef<unsigned> registers) {
  Lanes tags;
  if (!target.wantsTags())
    return tags;
  auto [layout, start] = inAllocation(layoutOf(tile.getType()), buffer);
  Base base = baseOf(layout);
  for (unsigned r : registers)
    tags.push_back(at(base, registerImage(layout, r) ^ start));
  return tags;
}

std::pair<LinearLayout, uint64_t> Emitter::inAllocation(LinearLayout layout, mlir::Value buffer) {
  uint64_t start = 0;
  for (mlir::Operation *view = buffer.getDefiningOp(); view; view = buffer.getDefiningOp()) {
    if (auto trans = mlir::dyn_cast<ttg::MemDescTransOp>(view)) {
      llvm::SmallVector<int32_t> inverse(trans.getOrder().size());
      for (auto [i, dim] : llvm::enumerate(trans.getOrder()))
        inverse[dim] = i;
      LinearLayout at(layout.shape(), {{HwDim::Register, {start}}});
      start = at.transpose(inverse).bases(HwDim::Register).front();
      layout = layout.transpose(inverse);
      buffer = trans.getSrc();
    } else if (auto part = mlir::dyn_cast<ttg::MemDescSubsliceOp>(view)) {
      LinearLayout whole = LinearLayout::identity(part.getSrc().getType().getShape(), HwDim::Offset);
      llvm::SmallVector<int64_t> origin(part.getOffsets().begin(), part.getOffsets().end());
      for (auto [o, offset] : llvm::zip_equal(layout.coords(start), origin))
        offset += o;
      start = whole.flat(origin);
      layout = placedIn(layout, whole.shape());
      buffer = part.getSrc();
    } else {
      break;
    }
  }
  return {std::move(layout), start};
}

/// Whether 8x8 matrices take fewer instructions than vectors of the elements of one lane.
static bool isWorthwhile(const std::optional<MatrixAccess> &access, const LinearLayout &layout, unsigned vector) {
  return access && access->instructions.size() * vector < uint64_t(layout.size(HwDim::Register));
}

void Emitter::storeTile(mlir::Value value, mlir::Value buffer) {
  const LinearLayout &layout = layoutOf(value.getType());
  llvm::Type *memory = memoryType(value.getType());
  llvm::ArrayRef<V> values = get(value);
  SharedTile tile = sharedTile(layout, buffer);
  llvm::SmallVector<unsigned> vector = vectorBits(tile);
  std::optional<MatrixAccess> access;
  if (target.matrixFeatures().storeMatrix && !tile.padded)
    access = planMatrixStore(layout, ttg::allocationLayout(mlir::cast<ttg::MemDescType>(buffer.getType())),
                             tile.elementBytes);
  if (isWorthwhile(access, layout, 1u << vector.size())) {
    tile.base = baseIn(tile, access->rowOffset);
    storeMatrices(
        *access, values, memory, [&](uint64_t offset) { return sharedOffset(tile, offset); },
        [&](llvm::ArrayRef<unsigned> registers) { return tagsOf(value, buffer, registers); });
    return;
  }
  V first = isFirstCopy(layout.freeMask(HwDim::Lane), layout.freeMask(HwDim::Warp));
  forEachSharedAccess(tile, vector, [&](llvm::ArrayRef<unsigned> registers, V offset) {
    Lanes data;
    for (unsigned r : registers)
      data.push_back(toMemory(values[r], memory));
    llvm::Type *stored = memory;
    if (memory->isIntegerTy(8) && data.size() % 4 == 0 && !data[0]->getType()->isVectorTy() &&
        wordOf.contains(data[0])) { // bytes that came in words
      Lanes words;
      for (llvm::ArrayRef<V> rest = data; !rest.empty(); rest = rest.drop_front(4))
        words.push_back(pack(rest.take_front(4)));
      data = std::move(words);
      stored = b.getInt32Ty();
    }
    target.storeShared(b, stored, offset, first, data, tagsOf(value, buffer, registers));
  });
}

void Emitter::loadTile(mlir::Value value, mlir::Value buffer) {
  const LinearLayout &layout = layoutOf(value.getType());
  llvm::Type *memory = memoryType(value.getType()), *scalar = scalarType(value.getType());
  Lanes result(numValues(value.getType()));
  SharedTile tile = sharedTile(layout, buffer);
  llvm::SmallVector<unsigned> vector = vectorBits(tile);
  std::optional<MatrixAccess> access;
  MatrixFeatures features = target.matrixFeatures();
  if ((features.loadMatrix || features.loadTransposed) && !tile.padded)
    access = (features.loadMatrix ? planMatrixLoad : planTransposedLoad)(
        layout, ttg::allocationLayout(mlir::cast<ttg::MemDescType>(buffer.getType())), tile.elementBytes);
  if (isWorthwhile(access, layout, 1u << vector.size())) {
    tile.base = baseIn(tile, access->rowOffset);
    loadMatrices(
        *access, memory, scalar, [&](uint64_t offset) { return sharedOffset(tile, offset); },
        [&](llvm::ArrayRef<unsigned> registers) { return tagsOf(value, buffer, registers); }, result);
  } else {
    forEachSharedAccess(tile, vector, [&](llvm::ArrayRef<unsigned> registers, V offset) {
      auto loaded = target.loadShared(b, memory, registers.size(), offset, nullptr, tagsOf(value, buffer, registers));
      for (auto [r, v] : llvm::zip_equal(registers, loaded))
        result[r] = fromMemory(v, scalar);
    });
  }
  set(value, std::move(result));
}

void Emitter::loadMatrices(const MatrixAccess &access, llvm::Type *memory, llvm::Type *scalar,
                           llvm::function_ref<V(uint64_t)> byteOffsetOf,
                           llvm::function_ref<Lanes(llvm::ArrayRef<unsigned>)> tagsOf, Lanes &result) {
  for (const auto &instruction : access.instructions) {
    llvm::ArrayRef<unsigned> rest = instruction.registers;
    V offset = byteOffsetOf(instruction.offset);
    Lanes tags = tagsOf(instruction.registers);
    for (V word : target.matrixFeatures().loadMatrix
                      ? target.loadMatrix(b, access.count, access.transposed, offset, tags)
                      : target.loadTransposed(b, offset, tags))
      for (V element : unpack(word, memory)) {
        result[rest.front()] = fromMemory(element, scalar);
        rest = rest.drop_front();
      }
  }
}

void Emitter::storeMatrices(const MatrixAccess &access, llvm::ArrayRef<V> values, llvm::Type *memory,
                            llvm::function_ref<V(uint64_t)> byteOffsetOf,
                            llvm::function_ref<Lanes(llvm::ArrayRef<unsigned>)> tagsOf) {
  unsigned perWord = 32 / memory->getPrimitiveSizeInBits().getFixedValue();
  for (const auto &instruction : access.instructions) {
    Lanes words;
    for (llvm::ArrayRef<unsigned> rest = instruction.registers; !rest.empty(); rest = rest.drop_front(perWord)) {
      Lanes elements;
      for (unsigned r : rest.take_front(perWord))
        elements.push_back(toMemory(values[r], memory));
      words.push_back(pack(elements));
    }
    target.storeMatrix(b, access.transposed, byteOffsetOf(instruction.offset), words, tagsOf(instruction.registers));
  }
}

/// Bytes from one buffer to the next.
unsigned Emitter::bufferStride(ttg::MemDescIndexOp op) {
  ttg::MemDescType type = op.getType();
  LinearLayout memory = ttg::allocationLayout(type);
  uint64_t elements = memory.size(HwDim::Offset);
  if (auto padded = mlir::dyn_cast<ttg::PaddedSharedEncodingAttr>(type.getEncoding()))
    elements = padded.paddedOffset(elements);
  for (int64_t inner : type.getShape().drop_back(memory.rank()))
    elements *= inner;
  return elements * storageBytes(type.getElementType());
}

std::optional<LogicalResult> Emitter::emitSharedOp(mlir::Operation *op) {
  return llvm::TypeSwitch<mlir::Operation *, std::optional<LogicalResult>>(op)
      .Case<ttg::LocalAllocOp>([&](auto o) -> LogicalResult {
        auto offset = allocationOffset(o);
        if (!offset)
          return o.emitOpError("has no allocation.offset: run the allocation pass");
        set(o.getResult(), {b.getInt32(*offset), b.getInt32(0)});
        if (o.getSrc())
          storeTile(o.getSrc(), o.getResult());
        return success();
      })
      .Case<ttg::LocalStoreOp>([&](auto o) {
        storeTile(o.getSrc(), o.getDst());
        return success();
      })
      .Case<ttg::LocalLoadOp>([&](auto o) {
        loadTile(o.getResult(), o.getSrc());
        return success();
      })
      .Case<ttg::LocalDeallocOp>([&](auto) { return success(); })
      .Case<ttg::MemDescIndexOp>([&](auto o) {
        llvm::ArrayRef<V> source = get(o.getSrc());
        V moved = b.CreateMul(getUniform(o.getIndex()), b.getInt32(bufferStride(o)), "", true, true);
        set(o.getResult(), {addLast(source[0], moved), source[1]});
        return success();
      })
      .Case<ttg::MemDescSubsliceOp>([&](auto o) -> LogicalResult {
        LinearLayout memory = ttg::allocationLayout(o.getSrc().getType());
        if (memory.rank() != o.getOffsets().size())
          return o.emitOpError("cannot be lowered: index the buffer first");
        llvm::SmallVector<int64_t> coords(o.getOffsets().begin(), o.getOffsets().end());
        llvm::ArrayRef<V> source = get(o.getSrc());
        set(o.getResult(), {source[0], b.CreateXor(source[1], b.getInt32(offsetAt(memory, coords)))});
        return success();
      })
      .Case<ttg::MemDescTransOp>([&](auto o) {
        set(o.getResult(), Lanes(get(o.getSrc()))); // the encoding of the view says the rest
        return success();
      })
      .Case<ttg::BarrierOp>([&](auto o) {
        bool local = o.getAddrSpace() == ttg::AddrSpace::Local;
        barrier(!local);
        return success();
      })
      .Case<tt::DebugBarrierOp>([&](auto) {
        barrier(/*ofGlobalMemory=*/true);
        return success();
      })
      .Default([](auto) { return std::nullopt; });
}

} // namespace tessera::codegen
