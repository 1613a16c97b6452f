// Asynchronous copies from global to shared memory. A copy is one access on both sides: as wide as the elements are
// consecutive in memory, consecutive in the buffer, and under one mask.
#include "Emitter.h"

#include "tessera/ir/ttng/Ttng.h"
#include "tessera/passes/Pipelining.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tessera::codegen {

using mlir::LogicalResult;
using mlir::success;

/// The largest element of an integer tile: a scalar, or nothing, plus a constant.
static std::optional<std::pair<mlir::Value, int64_t>> largestElement(mlir::Value tile) {
  using Largest = std::optional<std::pair<mlir::Value, int64_t>>;
  mlir::Operation *op = tile.getDefiningOp();
  if (!op)
    return std::nullopt;
  return llvm::TypeSwitch<mlir::Operation *, Largest>(op)
      .Case<tt::BroadcastOp, tt::ExpandDimsOp, ttg::ConvertLayoutOp>([](auto o) { return largestElement(o.getSrc()); })
      .Case<tt::MakeRangeOp>([](auto o) -> Largest { // from a negative start, sums might wrap around below
        if (int32_t(o.getStart()) < 0)
          return std::nullopt;
        return std::pair(mlir::Value(), int64_t(o.getEnd()) - 1);
      })
      .Case<tt::SplatOp>([](auto o) { return std::pair(mlir::Value(o.getSrc()), int64_t(0)); })
      .Case<mlir::arith::AddIOp>([](auto o) -> Largest {
        auto a = largestElement(o.getLhs()), c = largestElement(o.getRhs());
        if (!a || !c || (a->first && c->first))
          return std::nullopt;
        return std::pair(a->first ? a->first : c->first, a->second + c->second);
      })
      .Default([](auto) { return std::nullopt; });
}

/// A uniform condition under which every element of `mask` is true, where one is easily had; null: none.
V Emitter::trueEverywhere(mlir::Value mask) {
  mlir::Operation *op = mask.getDefiningOp();
  if (!op)
    return nullptr;
  return llvm::TypeSwitch<mlir::Operation *, V>(op)
      .Case<tt::BroadcastOp, tt::ExpandDimsOp, ttg::ConvertLayoutOp>([&](auto o) { return trueEverywhere(o.getSrc()); })
      .Case<tt::SplatOp>([&](auto o) { return getUniform(o.getSrc()); })
      .Case<mlir::arith::AndIOp>([&](auto o) -> V {
        V a = trueEverywhere(o.getLhs()), c = a ? trueEverywhere(o.getRhs()) : nullptr;
        return c ? b.CreateAnd(a, c) : nullptr;
      })
      .Case<mlir::arith::CmpIOp>([&](auto o) -> V {
        auto largest = largestElement(o.getLhs());
        auto bound = largestElement(o.getRhs());
        bool below = o.getPredicate() == mlir::arith::CmpIPredicate::slt;
        if (!below || !largest || !bound || !bound->first || bound->second || !bound->first.getType().isInteger(32))
          return nullptr;
        // In 64 bits: a sum that wraps around in the tile is beyond every bound here.
        V limit = getUniform(bound->first);
        if (!largest->first)
          return b.CreateICmpSGT(limit, b.getInt32(largest->second));
        V most = b.CreateAdd(b.CreateSExt(getUniform(largest->first), b.getInt64Ty()), b.getInt64(largest->second));
        return b.CreateICmpSLT(most, b.CreateSExt(limit, b.getInt64Ty()));
      })
      .Default([](auto) { return nullptr; });
}

/// The condition in `mask` under which the trip of a pipelined loop exists that the copy is for; null: none.
V Emitter::tripExists(mlir::Value mask) {
  if (auto both = mask.getDefiningOp<mlir::arith::AndIOp>()) {
    V exists = tripExists(both.getLhs());
    return exists ? exists : tripExists(both.getRhs());
  }
  auto splat = mask.getDefiningOp<tt::SplatOp>();
  return splat && splat->hasAttr(kTripExists) ? getUniform(splat.getSrc()) : nullptr;
}

LogicalResult Emitter::emitAsyncCopy(ttg::AsyncCopyGlobalToLocalOp op) {
  mlir::Value pointer = op.getSrc();
  if (op.getOther() && !mlir::matchPattern(op.getOther(), mlir::m_Zero()) &&
      !mlir::matchPattern(op.getOther(), mlir::m_AnyZeroFloat()))
    return op.emitOpError("fills with other values than zeros, which an asynchronous copy cannot");
  const LinearLayout &layout = layoutOf(pointer.getType());
  AccessHints hints = hintsOf(op.getCache(), op.getEvict(), op.getIsVolatile());
  unsigned width = accessWidth(pointer, op.getMask(), hints);
  if (unsigned promised = op.getContiguity(); promised > width && llvm::isPowerOf2_32(promised))
    width = promised;

  SharedTile place = sharedTile(layout, op.getResult());
  llvm::SmallVector<unsigned> vector = vectorBits(place);
  unsigned bits = 0;
  while (bits < vector.size() && vector[bits] == bits && 1u << bits < width)
    ++bits;
  vector.resize(bits);
  unsigned bytes = place.elementBytes << bits, least = target.matrixFeatures().minAsyncCopyBytes;
  if (!least || bytes < least)
    return op.emitOpError() << "copies " << bytes << " bytes at a time, "
                            << (least ? "less than the target's asynchronous copies do"
                                      : "but the target has no asynchronous copies");
  if (target.matrixFeatures().copiesInLaneOrder) {
    llvm::SmallVector<uint64_t> wanted;
    for (unsigned bit = 0; bit < place.offsets.numBits(HwDim::Lane); ++bit)
      wanted.push_back(uint64_t(1) << (bits + bit));
    uint64_t ofLanes = (uint64_t(1) << (bits + wanted.size())) - 1;
    bool mixed = llvm::any_of(place.offsets.bases(HwDim::Register).drop_front(bits),
                              [&](uint64_t basis) { return basis & ofLanes; }) ||
                 llvm::any_of(place.offsets.bases(HwDim::Warp), [&](uint64_t basis) { return basis & ofLanes; });
    if (bytes == 8 || mixed || place.padded || (place.viewMask & ofLanes) ||
        place.offsets.bases(HwDim::Lane) != llvm::ArrayRef(wanted))
      return op.emitOpError("has a layout whose lanes do not write 4 or 16 bytes each, one beside the other");
  }
  Lanes pointers(get(pointer)), masks;
  if (op.getMask())
    masks = getAsLanes(op.getMask(), pointers.size());
  V first = isFirstCopy(layout.freeMask(HwDim::Lane), layout.freeMask(HwDim::Warp));
  uint64_t copies = layout.freeMask(HwDim::Register);
  V everywhere = masks.empty() ? nullptr : trueEverywhere(op.getMask());
  V exists = masks.empty() ? nullptr : tripExists(op.getMask());
  bool branches = target.matrixFeatures().minBranchedCopies;
  if (exists && !branches && !target.matrixFeatures().copiesInLaneOrder) { // there, copies are counted
    V lanes = target.splat(b, exists);
    first = first ? b.CreateAnd(first, lanes) : lanes;
  }
  auto here = [&](auto is) { return llvm::any_of(*op->getBlock(), is); };
  bool besideProduct =
      here([](mlir::Operation &other) { return llvm::isa<ttng::WarpGroupDotOp>(other); }) &&
      !here([](mlir::Operation &other) { return llvm::isa<ttg::LocalLoadOp, ttg::LocalStoreOp>(other); });
  forEachSharedAccess(place, vector, [&](llvm::ArrayRef<unsigned> registers, V offset) {
    unsigned r = registers.front();
    if (!(r & copies))
      startedCopies.push_back({bytes, offset, pointers[r], first, masks.empty() ? nullptr : simplify(masks[r]),
                               everywhere, exists, besideProduct, hints, tagsOf(pointer, op.getResult(), registers)});
  });
  if (!branches)
    flushCopies();
  set(op.getToken(), {});
  return success();
}

/// Copies wait until something comes that may care whether they have begun, so that one branch serves all of them: in
/// most iterations no element is masked off, and predicates, of which there are few, are computed only in the others.
void Emitter::flushCopies() {
  llvm::SmallVector<AsyncCopy> all = std::exchange(startedCopies, {});
  if (all.empty())
    return;
  auto emit = [&](bool masked) {
    for (const AsyncCopy &copy : all)
      target.asyncCopy(b, copy.bytes, copy.offset, copy.pointer, copy.active, masked ? copy.mask : nullptr, copy.hints,
                       copy.tags);
  };
  V everywhere = nullptr, exists = all.front().exists;
  bool known = true;
  for (const AsyncCopy &copy : all) {
    if (copy.exists != exists)
      exists = nullptr;
    if (copy.mask) {
      known &= copy.everywhere != nullptr;
      if (known)
        everywhere =
            !everywhere || everywhere == copy.everywhere ? copy.everywhere : b.CreateAnd(everywhere, copy.everywhere);
    }
  }
  unsigned least = target.matrixFeatures().minBranchedCopies;
  if (least && all.front().besideProduct) // of few copies too: the target may take the branch out of the loop
    least = 1;
  if (!known || !everywhere || llvm::isa<llvm::Constant>(everywhere) || !least || all.size() < least)
    return emit(true);
  llvm::BasicBlock *whole = newBlock("copy.all"), *part = newBlock("copy.some"), *after = newBlock("copied");
  llvm::BasicBlock *otherwise = exists ? newBlock("copy.any") : part;
  b.CreateCondBr(everywhere, whole, otherwise);
  if (exists) {
    b.SetInsertPoint(otherwise);
    b.CreateCondBr(exists, part, after);
  }
  for (llvm::BasicBlock *block : {whole, part}) {
    b.SetInsertPoint(block);
    emit(block == part);
    b.CreateBr(after);
  }
  b.SetInsertPoint(after);
}

std::optional<LogicalResult> Emitter::emitAsyncOp(mlir::Operation *op) {
  auto ordered = [&](mlir::Value token) {
    set(token, {});
    return success();
  };
  return llvm::TypeSwitch<mlir::Operation *, std::optional<LogicalResult>>(op)
      .Case<ttg::AsyncCopyGlobalToLocalOp>([&](auto o) { return emitAsyncCopy(o); })
      .Case<ttg::AsyncCommitGroupOp>([&](auto o) {
        target.asyncCommit(b);
        return ordered(o.getToken());
      })
      .Case<ttg::AsyncWaitOp>([&](auto o) {
        target.asyncWait(b, o.getNum());
        return ordered(o.getToken());
      })
      .Default([](auto) { return std::nullopt; });
}

} // namespace tessera::codegen
