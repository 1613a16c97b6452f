// Verifiers, type inference and memory effects of the tile operations.
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/ir/ttir/Ttir.h"

using namespace mlir;

namespace tessera::tt {

// ---- tiles ----------------------------------------------------------------------------------------------------------

LogicalResult verifyTileShapes(Operation *op) {
  auto check = [&](Type type, StringRef kind, unsigned index) -> LogicalResult {
    auto tile = dyn_cast<RankedTensorType>(type);
    if (!tile)
      return success();
    int64_t count = 1;
    for (int64_t size : tile.getShape()) {
      if (size <= 0 || (size & (size - 1)) || size > maxTileElements)
        return op->emitOpError() << kind << " #" << index << " is " << tile
                                 << ": every dimension of a tile must be a power of two";
      if ((count *= size) > maxTileElements)
        return op->emitOpError() << kind << " #" << index << " is " << tile << ": a tile has at most "
                                 << maxTileElements << " elements";
    }
    if (tile.getRank() == 0)
      return op->emitOpError() << kind << " #" << index << ": a tile has at least one dimension; use a scalar";
    if (tile.getEncoding() && !isa<ttg::DistributedEncoding>(tile.getEncoding()))
      return op->emitOpError() << kind << " #" << index << ": the encoding must be a distributed layout of dialect ttg";
    return success();
  };
  for (auto [i, type] : llvm::enumerate(op->getOperandTypes()))
    if (failed(check(type, "operand", i)))
      return failure();
  for (auto [i, type] : llvm::enumerate(op->getResultTypes()))
    if (failed(check(type, "result", i)))
      return failure();
  return success();
}

/// Both scalars, or both tiles of one shape and encoding.
static bool haveSameForm(Type a, Type b) {
  auto x = dyn_cast<RankedTensorType>(a), y = dyn_cast<RankedTensorType>(b);
  if (!x || !y)
    return !x && !y;
  return x.getShape() == y.getShape() && x.getEncoding() == y.getEncoding();
}

static LogicalResult verifySameForm(Operation *op, Type a, Type b) {
  if (haveSameForm(a, b))
    return success();
  return op->emitOpError() << "needs the same shape and encoding for " << a << " and " << b;
}

bool areCompatible(TypeRange a, TypeRange b) {
  return a.size() == b.size() && llvm::all_of(llvm::zip(a, b), [](auto pair) {
           auto [p, q] = pair;
           auto x = dyn_cast<RankedTensorType>(p), y = dyn_cast<RankedTensorType>(q);
           if (!x || !y)
             return p == q;
           return x.getShape() == y.getShape() && x.getElementType() == y.getElementType() &&
                  ttg::areEquivalent(x.getShape(), x.getEncoding(), y.getEncoding());
         });
}

/// Appends the tile type of `shape`, or reports that `op` cannot work on the source's encoding.
static LogicalResult infer(std::optional<Location> loc, StringRef what, ArrayRef<int64_t> shape, RankedTensorType src,
                           ttg::InferredEncoding encoding, SmallVectorImpl<Type> &results) {
  if (failed(encoding))
    return emitOptionalError(loc, what, " cannot be done within a lane on ", src, ": convert the layout first");
  results.push_back(RankedTensorType::get(shape, src.getElementType(), *encoding));
  return success();
}

// ---- casts and element-wise -----------------------------------------------------------------------------------------

LogicalResult IntToPtrOp::verify() {
  if (bitWidth(getElementTypeOrSelf(getSrc())) != 64)
    return emitOpError("takes 64-bit addresses");
  return verifySameForm(*this, getSrc().getType(), getType());
}

LogicalResult PtrToIntOp::verify() {
  if (bitWidth(getElementTypeOrSelf(getType())) != 64)
    return emitOpError("gives 64-bit addresses");
  return verifySameForm(*this, getSrc().getType(), getType());
}

LogicalResult BitcastOp::verify() {
  Type from = getElementTypeOrSelf(getSrc()), to = getElementTypeOrSelf(getType());
  if (isa<PointerType>(from) != isa<PointerType>(to))
    return emitOpError("casts pointers only to pointers; use int_to_ptr or ptr_to_int");
  if (bitWidth(from) != bitWidth(to))
    return emitOpError() << "needs types of one width, but " << from << " has " << bitWidth(from) << " bits and " << to
                         << " has " << bitWidth(to);
  return verifySameForm(*this, getSrc().getType(), getType());
}

LogicalResult FpToFpOp::verify() {
  Type from = getElementTypeOrSelf(getSrc()), to = getElementTypeOrSelf(getType());
  if (bitWidth(from) > bitWidth(to) && !getRounding())
    return emitOpError() << "needs a rounding mode to narrow " << from << " to " << to;
  return verifySameForm(*this, getSrc().getType(), getType());
}

LogicalResult ExternElementwiseOp::verify() {
  for (Value src : getSrcs())
    if (failed(verifySameForm(*this, src.getType(), getType())))
      return failure();
  return success();
}

LogicalResult ElementwiseInlineAsmOp::verify() {
  if (getNumResults() == 0)
    return emitOpError("needs a result");
  int32_t packed = getPackedElement();
  if (packed < 1 || packed > 64 || !llvm::isPowerOf2_32(packed))
    return emitOpError("packed_element must be a power of two from 1 to 64");
  Type form = getResultTypes()[0];
  for (Type type : llvm::concat<Type>(SmallVector<Type>(getArgs().getTypes()), SmallVector<Type>(getResultTypes())))
    if (failed(verifySameForm(*this, type, form)))
      return failure();
  return success();
}

/// Assembly or a library function that is not pure may write anything.
static void impure(bool pure, SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (!pure) {
    effects.emplace_back(MemoryEffects::Read::get());
    effects.emplace_back(MemoryEffects::Write::get());
  }
}
static Speculation::Speculatability speculatable(bool pure) {
  return pure ? Speculation::Speculatable : Speculation::NotSpeculatable;
}
void ExternElementwiseOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  impure(getPure(), effects);
}
Speculation::Speculatability ExternElementwiseOp::getSpeculatability() { return speculatable(getPure()); }
void ElementwiseInlineAsmOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  impure(getPure(), effects);
}
Speculation::Speculatability ElementwiseInlineAsmOp::getSpeculatability() { return speculatable(getPure()); }

// ---- memory ---------------------------------------------------------------------------------------------------------

LogicalResult AddPtrOp::verify() { return verifySameForm(*this, getPtr().getType(), getOffset().getType()); }

/// ODS has checked that mask and value agree with the pointer; the rest is common to load and store.
static LogicalResult verifyAccess(Operation *op, CacheModifier cache, ArrayRef<CacheModifier> allowed) {
  if (cache != CacheModifier::NONE && !llvm::is_contained(allowed, cache))
    return op->emitOpError() << "does not know cacheModifier " << stringifyCacheModifier(cache);
  return success();
}

LogicalResult LoadOp::verify() {
  if (getOther() && !getMask())
    return emitOpError("has `other` but no mask: without a mask every element is read");
  return verifyAccess(*this, getCache(), {CacheModifier::CA, CacheModifier::CG, CacheModifier::CV});
}

LogicalResult StoreOp::verify() {
  return verifyAccess(*this, getCache(), {CacheModifier::WB, CacheModifier::CG, CacheModifier::CS, CacheModifier::WT});
}

void LoadOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getPtrMutable(), GlobalMemory::get());
  if (getIsVolatile())
    effects.emplace_back(MemoryEffects::Write::get(), GlobalMemory::get());
}

void StoreOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getPtrMutable(), GlobalMemory::get());
}

// ---- shapes ---------------------------------------------------------------------------------------------------------

LogicalResult SplatOp::verify() {
  if (cast<RankedTensorType>(getType()).getElementType() != getSrc().getType())
    return emitOpError() << "makes a tile of " << getSrc().getType() << ", not of "
                         << cast<RankedTensorType>(getType()).getElementType();
  return success();
}

LogicalResult UnsplatOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, ValueRange operands,
                                          DictionaryAttr, OpaqueProperties, RegionRange,
                                          SmallVectorImpl<Type> &results) {
  auto src = dyn_cast<RankedTensorType>(operands[0].getType());
  if (!src || !llvm::all_of(src.getShape(), [](int64_t size) { return size == 1; }))
    return emitOptionalError(loc, "unsplat needs a tile with one element");
  results.push_back(src.getElementType());
  return success();
}

LogicalResult MakeRangeOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  int64_t start = static_cast<int32_t>(getStart()), end = static_cast<int32_t>(getEnd());
  if (start >= end)
    return emitOpError() << "needs start < end, but start is " << start << " and end is " << end;
  if (type.getRank() != 1 || type.getDimSize(0) != end - start)
    return emitOpError() << "gives a 1-D tile of " << end - start << " elements, not " << type;
  if (!type.getElementType().isInteger(32))
    return emitOpError("gives i32 elements");
  return success();
}

LogicalResult ExpandDimsOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, ValueRange operands,
                                             DictionaryAttr attributes, OpaqueProperties properties,
                                             RegionRange regions, SmallVectorImpl<Type> &results) {
  Adaptor op(operands, attributes, properties, regions);
  auto src = dyn_cast<RankedTensorType>(op.getSrc().getType());
  if (!src || op.getAxis() > static_cast<uint64_t>(src.getRank()))
    return emitOptionalError(loc, "expand_dims: axis must be between 0 and the rank of the source");
  SmallVector<int64_t> shape(src.getShape());
  shape.insert(shape.begin() + op.getAxis(), 1);
  return infer(loc, "expand_dims", shape, src, ttg::inferExpandDims(src, op.getAxis()), results);
}

LogicalResult BroadcastOp::verify() {
  auto src = cast<RankedTensorType>(getSrc().getType()), dst = cast<RankedTensorType>(getType());
  if (src.getElementType() != dst.getElementType() || src.getRank() != dst.getRank())
    return emitOpError() << "keeps element type and rank, but goes from " << src << " to " << dst;
  for (auto [from, to] : llvm::zip(src.getShape(), dst.getShape()))
    if (from != to && from != 1)
      return emitOpError() << "repeats only dimensions of size 1, but one of size " << from << " becomes " << to;
  if (!ttg::areEquivalent(src.getShape(), src.getEncoding(), dst.getEncoding()))
    return emitOpError() << "keeps the encoding, but goes from " << src << " to " << dst;
  return success();
}

void ReshapeOp::build(OpBuilder &builder, OperationState &state, ArrayRef<int64_t> shape, Value src,
                      bool allowReorder) {
  auto type = cast<RankedTensorType>(src.getType());
  Attribute encoding;
  // A shape that does not fit is left to the verifier to report.
  if (ShapedType::getNumElements(shape) == type.getNumElements())
    if (auto inferred = ttg::inferReshape(type, shape); succeeded(inferred))
      encoding = *inferred;
  build(builder, state, RankedTensorType::get(shape, type.getElementType(), encoding), src, allowReorder, false);
}

LogicalResult ReshapeOp::verify() {
  auto src = cast<RankedTensorType>(getSrc().getType()), dst = cast<RankedTensorType>(getType());
  if (src.getElementType() != dst.getElementType() || src.getNumElements() != dst.getNumElements())
    return emitOpError() << "keeps element type and number of elements, but goes from " << src << " to " << dst;
  if (!src.getEncoding() != !dst.getEncoding())
    return emitOpError("needs an encoding on both sides or on none");
  if (!src.getEncoding() || getAllowReorder())
    return success();
  auto encoding = ttg::inferReshape(src, dst.getShape());
  if (failed(encoding) || !ttg::areEquivalent(dst.getShape(), *encoding, dst.getEncoding()))
    return emitOpError() << "moves no element between lanes, so the result needs encoding "
                         << (failed(encoding) ? Attribute() : *encoding) << " or `allow_reorder`";
  return success();
}

LogicalResult TransOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, ValueRange operands,
                                        DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
                                        SmallVectorImpl<Type> &results) {
  Adaptor op(operands, attributes, properties, regions);
  auto src = dyn_cast<RankedTensorType>(op.getSrc().getType());
  if (!src || !isPermutationVector(SmallVector<int64_t>(op.getOrder())) ||
      op.getOrder().size() != static_cast<size_t>(src.getRank()))
    return emitOptionalError(loc, "trans: order must be a permutation of the source's dimensions");
  SmallVector<int64_t> shape;
  for (int32_t dim : op.getOrder())
    shape.push_back(src.getDimSize(dim));
  return infer(loc, "trans", shape, src, ttg::inferTrans(src, op.getOrder()), results);
}

LogicalResult CatOp::verify() {
  auto src = cast<RankedTensorType>(getLhs().getType()), dst = cast<RankedTensorType>(getType());
  SmallVector<int64_t> shape(src.getShape());
  if (!shape.empty())
    shape[0] *= 2;
  if (dst.getElementType() != src.getElementType() || dst.getShape() != ArrayRef(shape))
    return emitOpError() << "doubles the first dimension of " << src << ", it cannot give " << dst;
  if (!src.getEncoding() != !dst.getEncoding())
    return emitOpError("needs an encoding on both sides or on none");
  if (!isa_and_nonnull<ttg::DistributedEncoding>(src.getEncoding()))
    return success();
  // The result's registers are those of the operands, so it must have them all.
  LinearLayout from = ttg::toLinearLayout(src), to = ttg::toLinearLayout(dst);
  if (to.numBits(HwDim::Register) != from.numBits(HwDim::Register) + 1)
    return emitOpError() << "needs a result with twice the registers of an operand, but " << dst << " has "
                         << to.size(HwDim::Register) << " and " << src << " has " << from.size(HwDim::Register);
  return success();
}

LogicalResult JoinOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, ValueRange operands, DictionaryAttr,
                                       OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  auto src = dyn_cast<RankedTensorType>(operands[0].getType());
  if (!src)
    return emitOptionalError(loc, "join takes tiles");
  SmallVector<int64_t> shape(src.getShape());
  shape.push_back(2);
  return infer(loc, "join", shape, src, ttg::inferJoin(src), results);
}

LogicalResult SplitOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, ValueRange operands, DictionaryAttr,
                                        OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  auto src = dyn_cast<RankedTensorType>(operands[0].getType());
  if (!src || src.getRank() < 2 || src.getShape().back() != 2)
    return emitOptionalError(loc, "split needs a tile of at least two dimensions, the last of size 2");
  if (failed(infer(loc, "split", src.getShape().drop_back(), src, ttg::inferSplit(src), results)))
    return failure();
  results.push_back(results.back());
  return success();
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, ValueRange operands,
                                         DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
                                         SmallVectorImpl<Type> &results) {
  Adaptor op(operands, attributes, properties, regions);
  auto src = dyn_cast<RankedTensorType>(op.getSrc().getType());
  auto indices = dyn_cast<RankedTensorType>(op.getIndices().getType());
  if (!src || !indices || src.getRank() != indices.getRank())
    return emitOptionalError(loc, "gather needs a source and indices of one rank");
  if (op.getAxis() >= static_cast<uint64_t>(src.getRank()))
    return emitOptionalError(loc, "gather: axis must be less than the rank of the source");
  for (int64_t dim = 0; dim < src.getRank(); ++dim)
    if (dim != op.getAxis() && src.getDimSize(dim) != indices.getDimSize(dim))
      return emitOptionalError(loc, "gather: source and indices must agree in every dimension but the axis, yet have ",
                               src.getDimSize(dim), " and ", indices.getDimSize(dim), " in dimension ", dim);
  results.push_back(RankedTensorType::get(indices.getShape(), src.getElementType(), indices.getEncoding()));
  return success();
}

// ---- matrix product -------------------------------------------------------------------------------------------------

LogicalResult DotOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType()), b = cast<RankedTensorType>(getB().getType()),
       c = cast<RankedTensorType>(getC().getType());
  if (failed(ttg::verifyDotTypes(*this, a, b, c)))
    return failure();
  if (getMaxNumImpreciseAcc() > static_cast<uint32_t>(INT32_MAX))
    return emitOpError("maxNumImpreciseAcc is not negative");
  if (!a.getEncoding() != !c.getEncoding() || !b.getEncoding() != !c.getEncoding())
    return emitOpError("needs an encoding on all three tiles or on none");
  auto x = dyn_cast_or_null<ttg::DotOperandEncodingAttr>(a.getEncoding()),
       y = dyn_cast_or_null<ttg::DotOperandEncodingAttr>(b.getEncoding());
  ttg::MatrixEncoding matrix = ttg::getMatrixEncoding(c);
  if (!matrix && !x && !y)
    return success();
  // A matrix instruction of a warp fixes all three layouts.
  if (!matrix || !matrix.isOfOneWarp() || !x || !y || x.getOpIdx() != 0 || y.getOpIdx() != 1 ||
      x.getParent() != matrix || y.getParent() != matrix || x.getKWidth() != y.getKWidth())
    return emitOpError()
           << "on a matrix instruction needs a and b with #ttg.dot_op of opIdx 0 and 1, one kWidth and the "
              "accumulators' layout, of an instruction of one warp (#ttg.nvidia_mma of versionMajor 2, #ttg.amd_mfma, "
              "#ttg.amd_wmma), as parent, but has "
           << a << ", " << b << " and " << c;
  if (matrix.getInstruction(tt::bitWidth(a.getElementType())).m == 0)
    return emitOpError() << "has no instruction of the accumulators' layout for operands of " << a.getElementType();
  return success();
}

// ---- reduction ------------------------------------------------------------------------------------------------------

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, ValueRange operands,
                                         DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
                                         SmallVectorImpl<Type> &results) {
  Adaptor op(operands, attributes, properties, regions);
  for (Value operand : operands) {
    auto src = dyn_cast<RankedTensorType>(operand.getType());
    if (!src || op.getAxis() >= static_cast<uint64_t>(src.getRank()))
      return emitOptionalError(loc, "reduce: axis must be less than the rank of the operands");
    if (src.getRank() == 1) {
      results.push_back(src.getElementType());
      continue;
    }
    SmallVector<int64_t> shape(src.getShape());
    shape.erase(shape.begin() + op.getAxis());
    if (failed(infer(loc, "reduce", shape, src, ttg::inferReduce(src, op.getAxis()), results)))
      return failure();
  }
  return success();
}

LogicalResult ReduceOp::verify() {
  if (getSrcs().empty())
    return emitOpError("needs at least one operand");
  for (Value src : getSrcs())
    if (!haveSameForm(src.getType(), getSrcs()[0].getType()))
      return emitOpError("needs operands of one shape and encoding");
  return success();
}

LogicalResult ReduceOp::verifyRegions() {
  SmallVector<Type> elements = getElementTypes();
  SmallVector<Type> expected(elements);
  expected.append(elements);
  Block &block = getCombineBlock();
  if (TypeRange(block.getArgumentTypes()) != TypeRange(expected))
    return emitOpError() << "combines scalars, so its region takes (" << expected << "), not ("
                         << block.getArgumentTypes() << ")";
  auto ret = block.empty() ? nullptr : dyn_cast<ReduceReturnOp>(block.back());
  if (!ret)
    return emitOpError("needs a region that ends with tt.reduce.return");
  if (TypeRange(ret.getResult()) != TypeRange(elements))
    return ret.emitOpError() << "must give one scalar per operand: (" << elements << "), not ("
                             << TypeRange(ret.getResult()) << ")";
  for (Operation &op : block.without_terminator())
    if (!isMemoryEffectFree(&op))
      return op.emitOpError("has side effects, so it cannot be used to combine elements");
  return success();
}

SmallVector<Type> ReduceOp::getElementTypes() {
  return llvm::map_to_vector(getSrcs(), [](Value src) { return getElementTypeOrSelf(src); });
}

Operation *ReduceOp::getSingleCombiner() {
  Block &block = getCombineBlock();
  if (block.getNumArguments() != 2 || block.getOperations().size() != 2)
    return nullptr;
  Operation *op = &block.front();
  Operation *ret = block.getTerminator();
  bool combines = op->getNumOperands() == 2 && op->getNumResults() == 1 && ret->getOperand(0) == op->getResult(0) &&
                  ((op->getOperand(0) == block.getArgument(0) && op->getOperand(1) == block.getArgument(1)) ||
                   (op->getOperand(0) == block.getArgument(1) && op->getOperand(1) == block.getArgument(0)));
  return combines ? op : nullptr;
}

LogicalResult PrintOp::verify() {
  if (getIsSigned().size() != getArgs().size())
    return emitOpError() << "has " << getArgs().size() << " values but isSigned for " << getIsSigned().size();
  return success();
}

} // namespace tessera::tt
