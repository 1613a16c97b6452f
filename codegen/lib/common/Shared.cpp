// Buffers in shared memory that the IR names: local_alloc, local_load, local_store and views of them. A buffer's value
// is its byte offset.
#include "Emitter.h"

#include "tessera/passes/Allocation.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tessera::codegen {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

/// Every access of a tile to a buffer: fn(registers, byte offset) with as many elements as registers, at consecutive
/// places.
LogicalResult Emitter::forEachSharedAccess(mlir::Operation *op, mlir::Value tile, mlir::Value buffer,
                                           llvm::function_ref<void(llvm::ArrayRef<unsigned>, V)> fn) {
  auto type = mlir::cast<ttg::MemDescType>(buffer.getType());
  const LinearLayout &layout = layoutOf(tile.getType());
  LinearLayout offsets = layout.toMemory(ttg::toLinearLayout(type.getShape(), type.getEncoding()));
  auto padded = mlir::dyn_cast<ttg::PaddedSharedEncodingAttr>(type.getEncoding());
  unsigned bytes = storageBytes(type.getElementType());
  Base base = baseOf(offsets);

  // The widest access: register bits that are the low offset bits, and nothing else moves below them.
  unsigned limit = llvm::Log2_32(std::max(1u, 16 / bytes));
  if (padded)
    for (unsigned step : llvm::concat<const unsigned>(padded.getIntervals(), padded.getPaddings()))
      limit = std::min<unsigned>(limit, llvm::countr_zero(step));
  llvm::SmallVector<unsigned> vectorBits;
  while (vectorBits.size() < limit) {
    auto registers = offsets.bases(HwDim::Register);
    uint64_t wanted = uint64_t(1) << vectorBits.size();
    auto it = llvm::find(registers, wanted);
    bool alone = llvm::count_if(registers, [&](uint64_t basis) { return basis & wanted; }) == 1;
    if (it == registers.end() || !alone || (base.mask & wanted))
      break;
    vectorBits.push_back(it - registers.begin());
  }
  uint64_t vectorMask = 0;
  for (unsigned bit : vectorBits)
    vectorMask |= uint64_t(1) << bit;

  V start = target.splat(b, getUniform(buffer));
  for (unsigned r = 0, n = layout.size(HwDim::Register); r < n; ++r) {
    if (r & vectorMask)
      continue;
    llvm::SmallVector<unsigned> registers;
    for (unsigned k = 0; k < 1u << vectorBits.size(); ++k) {
      unsigned reg = r;
      for (auto [i, bit] : llvm::enumerate(vectorBits))
        reg |= (k >> i & 1) << bit;
      registers.push_back(reg);
    }
    V offset = at(base, registerImage(offsets, r));
    if (padded) {
      V linear = offset;
      for (auto [interval, padding] : llvm::zip_equal(padded.getIntervals(), padded.getPaddings()))
        offset = b.CreateAdd(offset, b.CreateMul(b.CreateLShr(linear, llvm::Log2_32(interval)), constant(padding)));
    }
    fn(registers, b.CreateAdd(b.CreateShl(offset, llvm::Log2_32(bytes)), start));
  }
  return success();
}

/// The index of each element in the tile as it was stored: through a transposed view it is that of the untransposed
/// one.
Lanes Emitter::tagsOf(mlir::Value tile, mlir::Value buffer, llvm::ArrayRef<unsigned> registers) {
  Lanes tags;
  if (!target.wantsTags())
    return tags;
  LinearLayout layout = layoutOf(tile.getType());
  for (; auto view = buffer.getDefiningOp<ttg::MemDescTransOp>(); buffer = view.getSrc()) {
    llvm::SmallVector<int32_t> inverse(view.getOrder().size());
    for (auto [i, dim] : llvm::enumerate(view.getOrder()))
      inverse[dim] = i;
    layout = layout.transpose(inverse);
  }
  Base base = baseOf(layout);
  for (unsigned r : registers)
    tags.push_back(at(base, registerImage(layout, r)));
  return tags;
}

LogicalResult Emitter::storeTile(mlir::Operation *op, mlir::Value tile, mlir::Value buffer) {
  const LinearLayout &layout = layoutOf(tile.getType());
  llvm::Type *memory = memoryType(tile.getType());
  V first = isFirstCopy(layout.freeMask(HwDim::Lane), layout.freeMask(HwDim::Warp));
  llvm::ArrayRef<V> values = get(tile);
  return forEachSharedAccess(op, tile, buffer, [&](llvm::ArrayRef<unsigned> registers, V offset) {
    Lanes data;
    for (unsigned r : registers)
      data.push_back(toMemory(values[r], memory));
    target.storeShared(b, memory, offset, first, data, tagsOf(tile, buffer, registers));
  });
}

std::optional<LogicalResult> Emitter::emitSharedOp(mlir::Operation *op) {
  return llvm::TypeSwitch<mlir::Operation *, std::optional<LogicalResult>>(op)
      .Case<ttg::LocalAllocOp>([&](auto o) -> LogicalResult {
        auto offset = allocationOffset(o);
        if (!offset)
          return o.emitOpError("has no allocation.offset: run the allocation pass");
        set(o.getResult(), {b.getInt32(*offset)});
        return o.getSrc() ? storeTile(o, o.getSrc(), o.getResult()) : success();
      })
      .Case<ttg::LocalStoreOp>([&](auto o) { return storeTile(o, o.getSrc(), o.getDst()); })
      .Case<ttg::LocalLoadOp>([&](auto o) {
        llvm::Type *memory = memoryType(o.getType()), *scalar = scalarType(o.getType());
        Lanes result(numValues(o.getType()));
        auto done =
            forEachSharedAccess(o, o.getResult(), o.getSrc(), [&](llvm::ArrayRef<unsigned> registers, V offset) {
              auto loaded = target.loadShared(b, memory, registers.size(), offset, nullptr,
                                              tagsOf(o.getResult(), o.getSrc(), registers));
              for (auto [r, v] : llvm::zip_equal(registers, loaded))
                result[r] = fromMemory(v, scalar);
            });
        set(o.getResult(), std::move(result));
        return done;
      })
      .Case<ttg::LocalDeallocOp>([&](auto) { return success(); })
      .Case<ttg::MemDescIndexOp>([&](auto o) {
        auto type = mlir::cast<ttg::MemDescType>(o.getType());
        uint64_t elements = mlir::ShapedType::getNumElements(type.getShape());
        if (auto padded = mlir::dyn_cast<ttg::PaddedSharedEncodingAttr>(type.getEncoding()))
          elements = padded.paddedOffset(elements);
        V stride = b.getInt32(elements * storageBytes(type.getElementType()));
        set(o.getResult(), {b.CreateAdd(getUniform(o.getSrc()), b.CreateMul(getUniform(o.getIndex()), stride))});
        return success();
      })
      .Case<ttg::MemDescTransOp>([&](auto o) {
        set(o.getResult(), Lanes(get(o.getSrc()))); // the encoding of the view says the rest
        return success();
      })
      .Case<ttg::BarrierOp, tt::DebugBarrierOp>([&](auto) {
        target.barrier(b);
        return success();
      })
      .Default([](auto) { return std::nullopt; });
}

} // namespace tessera::codegen
