// Dialect ttg: module attributes, aliases of encodings, and the operations.
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tessera::ttg {

// `custom<Offsets>` in the ODS: integers with commas.
static mlir::ParseResult parseOffsets(mlir::OpAsmParser &parser, mlir::DenseI32ArrayAttr &offsets) {
  llvm::SmallVector<int32_t> values;
  if (parser.parseCommaSeparatedList([&] { return parser.parseInteger(values.emplace_back()); }))
    return mlir::failure();
  offsets = parser.getBuilder().getDenseI32ArrayAttr(values);
  return mlir::success();
}
static void printOffsets(mlir::OpAsmPrinter &printer, mlir::Operation *, mlir::DenseI32ArrayAttr offsets) {
  llvm::interleaveComma(offsets.asArrayRef(), printer.getStream());
}

// `custom<AddrSpace>`: none, or what is ordered, such as local|global_read.
static mlir::ParseResult parseAddrSpace(mlir::OpAsmParser &parser, AddrSpaceAttr &space) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  std::string text;
  llvm::StringRef word;
  do {
    if (parser.parseKeyword(&word))
      return mlir::failure();
    text += (text.empty() ? "" : "|") + word.str();
  } while (mlir::succeeded(parser.parseOptionalVerticalBar()));
  auto value = symbolizeAddrSpace(text);
  if (!value)
    return parser.emitError(loc) << "expected none, or local, global_read, global_write with | between them";
  space = AddrSpaceAttr::get(parser.getContext(), *value);
  return mlir::success();
}

static void printAddrSpace(mlir::OpAsmPrinter &printer, mlir::Operation *, AddrSpaceAttr space) {
  printer << stringifyAddrSpace(space.getValue());
}

} // namespace tessera::ttg

#include "tessera/ir/ttgir/TtgirDialect.cpp.inc"
#include "tessera/ir/ttgir/TtgirEnums.cpp.inc"
#include "tessera/ir/ttgir/TtgirInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "tessera/ir/ttgir/TtgirAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "tessera/ir/ttgir/TtgirTypes.cpp.inc"
#define GET_OP_CLASSES
#include "tessera/ir/ttgir/TtgirOps.cpp.inc"

using namespace mlir;

namespace tessera::ttg {

// ---- dialect --------------------------------------------------------------------------------------------------------

namespace {

/// Prints encodings once at the top: #blocked, #blocked1, #linear, #shared, #smem.
struct Aliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attr, raw_ostream &os) const final {
    StringRef alias = llvm::TypeSwitch<Attribute, StringRef>(attr)
                          .Case<BlockedEncodingAttr>([](auto) { return "blocked"; })
                          .Case<LinearEncodingAttr>([](auto) { return "linear"; })
                          .Case<MatrixEncoding>([](auto) { return "mma"; })
                          .Case<SharedMemorySpaceAttr>([](auto) { return "smem"; })
                          .Case<SharedEncoding>([](auto) { return "shared"; })
                          .Default([](Attribute) { return ""; });
    if (alias.empty())
      return AliasResult::NoAlias;
    os << alias;
    return AliasResult::FinalAlias;
  }
};

} // namespace

void TTGDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "tessera/ir/ttgir/TtgirAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "tessera/ir/ttgir/TtgirTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "tessera/ir/ttgir/TtgirOps.cpp.inc"
      >();
  addInterfaces<Aliases>();
}

Operation *TTGDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

static unsigned lookup(Operation *op, StringRef name, unsigned otherwise) {
  auto module = isa<ModuleOp>(op) ? op : op->getParentOfType<ModuleOp>().getOperation();
  auto attr = module ? module->getAttrOfType<IntegerAttr>(name) : IntegerAttr();
  return attr ? attr.getValue().getZExtValue() : otherwise;
}
unsigned lookupNumWarps(Operation *op) { return lookup(op, numWarpsAttr, 4); }
unsigned lookupWarpTurns(Operation *op) { return lookup(op, warpTurnsAttr, 1); }
unsigned lookupNumCTAs(Operation *op) { return lookup(op, numCTAsAttr, 1); }
unsigned lookupThreadsPerWarp(Operation *op) { return lookup(op, threadsPerWarpAttr, 32); }

/// Every layout in the module is for the module's number of warps and lanes.
static LogicalResult verifyLayouts(Operation *module) {
  unsigned warps = lookupNumWarps(module), lanes = lookupThreadsPerWarp(module), blocks = lookupNumCTAs(module);
  llvm::DenseSet<Type> seen;
  auto check = [&](Operation *op, Type type) -> LogicalResult {
    auto tile = dyn_cast<RankedTensorType>(type);
    if (!tile || !isa_and_nonnull<DistributedEncoding>(tile.getEncoding()) || !seen.insert(tile).second)
      return success();
    LinearLayout layout = toLinearLayout(tile);
    auto differs = [&](HwDim dim, unsigned size, StringRef what) -> LogicalResult {
      if (layout.size(dim) == size)
        return success();
      return op->emitOpError() << "has " << tile << ", a layout for " << layout.size(dim) << " " << what
                               << ", in a module for " << size;
    };
    if (failed(differs(HwDim::Lane, lanes, "threads per warp")) || failed(differs(HwDim::Warp, warps, "warps")))
      return failure();
    // A layout that says nothing of clusters is repeated in each program of one.
    return layout.numBits(HwDim::Block) ? differs(HwDim::Block, blocks, "programs per cluster") : success();
  };
  return success(!module
                      ->walk([&](Operation *op) {
                        for (Type type : op->getResultTypes())
                          if (failed(check(op, type)))
                            return WalkResult::interrupt();
                        for (Region &region : op->getRegions())
                          for (Block &block : region)
                            for (Type type : block.getArgumentTypes())
                              if (failed(check(op, type)))
                                return WalkResult::interrupt();
                        return WalkResult::advance();
                      })
                      .wasInterrupted());
}

LogicalResult TTGDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  StringRef name = attr.getName();
  if (name == targetAttr)
    return isa<StringAttr>(attr.getValue()) ? success()
                                            : op->emitError() << name << " must be a string such as \"cuda:90\"";
  unsigned most = name == numWarpsAttr || name == warpTurnsAttr ? 64 : name == numCTAsAttr ? 16 : name == threadsPerWarpAttr ? 64 : 0;
  if (most) {
    auto value = dyn_cast<IntegerAttr>(attr.getValue());
    if (!isa<ModuleOp>(op) || !value || !value.getType().isSignlessInteger(32))
      return op->emitError() << name << " is an i32 attribute of the module";
    int64_t number = value.getInt();
    if (number <= 0 || (number & (number - 1)) || number > most)
      return op->emitError() << name << " must be a power of two from 1 to " << most << ", not " << number;
    // Checked with one attribute, after the others it needs are known to be sound.
    auto sound = [&](StringRef other) { return !op->hasAttr(other) || op->getAttrOfType<IntegerAttr>(other); };
    if (name == numWarpsAttr && sound(threadsPerWarpAttr) && sound(numCTAsAttr))
      return verifyLayouts(op);
  }
  if (name == sharedAttr) {
    auto value = dyn_cast<IntegerAttr>(attr.getValue());
    if (!value || !value.getType().isSignlessInteger(32) || value.getInt() < 0)
      return op->emitError() << name << " is a number of bytes (i32)";
  }
  return success();
}

// ---- convert_layout -------------------------------------------------------------------------------------------------

LogicalResult ConvertLayoutOp::verify() {
  Attribute from = cast<RankedTensorType>(getSrc().getType()).getEncoding(), to = getType().getEncoding();
  if (!isa_and_nonnull<DistributedEncoding>(from) || !isa_and_nonnull<DistributedEncoding>(to))
    return emitOpError("converts between distributed layouts; both tiles need one");
  return success();
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor adaptor) {
  if (getSrc().getType() == getType())
    return getSrc();
  if (auto constant = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSrc()))
    return constant.resizeSplat(cast<ShapedType>(getType()));
  // convert(convert(x)) back to x's layout.
  if (auto inner = getSrc().getDefiningOp<ConvertLayoutOp>()) {
    if (inner.getSrc().getType() == getType())
      return inner.getSrc();
    getSrcMutable().assign(inner.getSrc());
    return getResult();
  }
  return {};
}

namespace {

/// An operation whose result can have any layout is made again with the layout wanted.
struct ConvertOfFreeLayout : OpRewritePattern<ConvertLayoutOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvertLayoutOp op, PatternRewriter &rewriter) const final {
    Operation *source = op.getSrc().getDefiningOp();
    if (!source)
      return failure();
    if (auto splat = dyn_cast<tt::SplatOp>(source)) {
      rewriter.replaceOpWithNewOp<tt::SplatOp>(op, op.getType(), splat.getSrc());
      return success();
    }
    if (auto range = dyn_cast<tt::MakeRangeOp>(source)) {
      rewriter.replaceOpWithNewOp<tt::MakeRangeOp>(op, op.getType(), range.getStart(), range.getEnd());
      return success();
    }
    if (auto reshape = dyn_cast<tt::ReshapeOp>(source);
        reshape && reshape.getAllowReorder() && !reshape.getEfficientLayout() && reshape->hasOneUse()) {
      rewriter.replaceOpWithNewOp<tt::ReshapeOp>(op, op.getType(), reshape.getSrc(), true, false);
      return success();
    }
    return failure();
  }
};

} // namespace

void ConvertLayoutOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ConvertOfFreeLayout>(context);
}

// ---- shared memory --------------------------------------------------------------------------------------------------

/// A tile and the buffer it is moved to or from agree, and the tile says who holds what.
static LogicalResult verifyTransfer(Operation *op, RankedTensorType tile, MemDescType buffer) {
  if (tile.getShape() != buffer.getShape() || tile.getElementType() != buffer.getElementType())
    return op->emitOpError() << "needs one shape and element type for " << tile << " and " << buffer;
  if (!isa_and_nonnull<DistributedEncoding>(tile.getEncoding()))
    return op->emitOpError() << "needs a distributed layout on " << tile;
  return success();
}

LogicalResult LocalAllocOp::verify() {
  MemDescType type = getType();
  if (type.getShape() != type.getAllocShape())
    return emitOpError("allocates a whole buffer, not a view of one");
  if (getSrc())
    return verifyTransfer(*this, cast<RankedTensorType>(getSrc().getType()), type);
  return type.getMutableMemory() ? success() : emitOpError("without a tile to store needs a mutable memdesc");
}

void LocalAllocOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Allocate::get(), getOperation()->getOpResult(0), SharedMemory::get());
  if (getSrc())
    effects.emplace_back(MemoryEffects::Write::get(), getOperation()->getOpResult(0), SharedMemory::get());
}

LogicalResult LocalLoadOp::verify() {
  return verifyTransfer(*this, cast<RankedTensorType>(getType()), getSrc().getType());
}

LogicalResult LocalStoreOp::verify() {
  if (!getDst().getType().getMutableMemory())
    return emitOpError("writes only to a mutable memdesc");
  return verifyTransfer(*this, cast<RankedTensorType>(getSrc().getType()), getDst().getType());
}

LogicalResult MemDescIndexOp::verify() {
  MemDescType src = getSrc().getType(), dst = getType();
  if (src.getShape().size() != dst.getShape().size() + 1 || src.getShape().drop_front() != dst.getShape() ||
      src.getElementType() != dst.getElementType() || src.getEncoding() != dst.getEncoding() ||
      src.getMutableMemory() != dst.getMutableMemory())
    return emitOpError() << "removes the leading dimension and changes nothing else, but goes from " << src << " to "
                         << dst;
  return success();
}

LogicalResult MemDescTransOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc, ValueRange operands,
                                               DictionaryAttr attributes, OpaqueProperties properties,
                                               RegionRange regions, SmallVectorImpl<Type> &results) {
  Adaptor op(operands, attributes, properties, regions);
  auto src = dyn_cast<MemDescType>(op.getSrc().getType());
  auto encoding = src ? cast<SharedEncoding>(src.getEncoding()) : SharedEncoding();
  if (!src || encoding.getRank() != src.getShape().size() || op.getOrder().size() != src.getShape().size() ||
      !isPermutationVector(SmallVector<int64_t>(op.getOrder())))
    return emitOptionalError(loc, "memdesc_trans: order must be a permutation of the buffer's dimensions");
  Attribute transposed = encoding.transpose(op.getOrder());
  if (!transposed)
    return emitOptionalError(loc, "memdesc_trans cannot transpose ", encoding);
  SmallVector<int64_t> shape, allocShape(src.getAllocShape().drop_back(src.getShape().size()));
  for (int32_t dim : op.getOrder()) {
    shape.push_back(src.getShape()[dim]);
    allocShape.push_back(src.getAllocShape().take_back(src.getShape().size())[dim]);
  }
  results.push_back(MemDescType::get(context, shape, src.getElementType(), transposed, src.getMemorySpace(),
                                     src.getMutableMemory(), allocShape));
  return success();
}

OpFoldResult MemDescTransOp::fold(FoldAdaptor) {
  if (llvm::is_sorted(getOrder()))
    return getSrc();
  // A permutation of a permutation.
  auto inner = getSrc().getDefiningOp<MemDescTransOp>();
  if (!inner)
    return {};
  SmallVector<int32_t> order = llvm::map_to_vector(getOrder(), [&](int32_t dim) { return inner.getOrder()[dim]; });
  getSrcMutable().assign(inner.getSrc());
  setOrder(order);
  return getResult();
}

LogicalResult MemDescSubsliceOp::verify() {
  MemDescType src = getSrc().getType(), dst = getType();
  if (src.getElementType() != dst.getElementType() || src.getEncoding() != dst.getEncoding() ||
      src.getMutableMemory() != dst.getMutableMemory() || src.getAllocShape() != dst.getAllocShape() ||
      src.getShape().size() != dst.getShape().size())
    return emitOpError() << "changes only the shape, and keeps the allocation's, but goes from " << src << " to "
                         << dst;
  if (src.getShape().size() != cast<SharedEncoding>(src.getEncoding()).getRank())
    return emitOpError("takes a part of one buffer: pick it with memdesc_index first");
  if (getOffsets().size() != src.getShape().size())
    return emitOpError() << "needs " << src.getShape().size() << " offsets, not " << getOffsets().size();
  for (auto [dim, offset] : llvm::enumerate(getOffsets())) {
    int64_t part = dst.getShape()[dim];
    if (offset < 0 || offset % part || offset + part > src.getShape()[dim])
      return emitOpError() << "needs offsets that are multiples of the part's size and inside the buffer, but has "
                           << offset << " for " << part << " of " << src.getShape()[dim];
  }
  return success();
}

OpFoldResult MemDescSubsliceOp::fold(FoldAdaptor) {
  if (getSrc().getType() == getType())
    return getSrc();
  // A part of a part.
  auto inner = getSrc().getDefiningOp<MemDescSubsliceOp>();
  if (!inner)
    return {};
  SmallVector<int32_t> offsets;
  for (auto [a, b] : llvm::zip(inner.getOffsets(), getOffsets()))
    offsets.push_back(a + b);
  getSrcMutable().assign(inner.getSrc());
  setOffsets(offsets);
  return getResult();
}

// ---- matrix product -------------------------------------------------------------------------------------------------

LogicalResult verifyDotTypes(Operation *op, ShapedType a, ShapedType b, ShapedType c) {
  ArrayRef<int64_t> x = a.getShape(), y = b.getShape(), z = c.getShape();
  size_t rank = z.size();
  if ((rank != 2 && rank != 3) || x.size() != rank || y.size() != rank)
    return op->emitOpError() << "multiplies tiles of 2 dimensions, or 3 with the batch first, not of " << x.size()
                             << ", " << y.size() << " and " << rank;
  if (x[rank - 1] != y[rank - 2] || x[rank - 2] != z[rank - 2] || y[rank - 1] != z[rank - 1] ||
      (rank == 3 && (x[0] != z[0] || y[0] != z[0])))
    return op->emitOpError() << "needs shapes (M, K), (K, N) and (M, N), after equal batches, but has " << a << ", "
                             << b << " and " << c;
  Type p = a.getElementType(), q = b.getElementType(), sum = c.getElementType();
  bool fp8 = tt::isFloat8(p) && tt::isFloat8(q);
  if (p != q && !fp8)
    return op->emitOpError() << "needs operands of one type, or two 8-bit floats, not " << p << " and " << q;
  bool fits = p.isInteger(8)            ? sum.isInteger(32)
              : p.isF64()               ? sum.isF64()
              : p.isF32() || p.isBF16() ? sum.isF32()
              : p.isF16() || fp8        ? sum.isF32() || sum.isF16()
                                        : false;
  if (!fits)
    return op->emitOpError()
           << "cannot sum products of " << p << " in " << sum
           << ": i8 is summed in i32, f16 and 8-bit floats in f32 or f16, bf16 and f32 in f32, f64 in f64";
  return success();
}

LogicalResult LocalDotOp::verify() {
  auto c = cast<RankedTensorType>(getC().getType());
  if (!isa_and_nonnull<DistributedEncoding>(c.getEncoding()))
    return emitOpError() << "needs a distributed layout on " << c;
  return verifyDotTypes(*this, getA().getType(), getB().getType(), c);
}

// ---- asynchronous copies --------------------------------------------------------------------------------------------

LogicalResult AsyncCopyGlobalToLocalOp::verify() {
  auto src = cast<RankedTensorType>(getSrc().getType());
  if (!getResult().getType().getMutableMemory())
    return emitOpError("writes only to a mutable memdesc");
  if (getOther() && !getMask())
    return emitOpError("has `other` but no mask: without a mask every element is copied");
  if (!llvm::isPowerOf2_32(getContiguity()))
    return emitOpError("contiguity is a power of two");
  if (getCache() != tt::CacheModifier::NONE && getCache() != tt::CacheModifier::CA &&
      getCache() != tt::CacheModifier::CG)
    return emitOpError() << "does not know cacheModifier " << tt::stringifyCacheModifier(getCache());
  return verifyTransfer(*this, cast<RankedTensorType>(tt::pointeeLike(src)), getResult().getType());
}

void AsyncCopyGlobalToLocalOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getSrcMutable(), tt::GlobalMemory::get());
  effects.emplace_back(MemoryEffects::Write::get(), &getResultMutable(), SharedMemory::get());
  effects.emplace_back(MemoryEffects::Write::get(), AsyncGroups::get());
  if (getIsVolatile())
    effects.emplace_back(MemoryEffects::Write::get(), tt::GlobalMemory::get());
}

LogicalResult AsyncWaitOp::verify() {
  return static_cast<int32_t>(getNum()) >= 0 ? success() : emitOpError("num is not negative");
}

// ---- order ----------------------------------------------------------------------------------------------------------

/// Nothing that reads or writes the memory it orders may cross it.
void BarrierOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), SharedMemory::get());
  effects.emplace_back(MemoryEffects::Write::get(), SharedMemory::get());
  if (bitEnumContainsAny(getAddrSpace(), AddrSpace::GlobalRead | AddrSpace::GlobalWrite)) {
    effects.emplace_back(MemoryEffects::Read::get(), tt::GlobalMemory::get());
    effects.emplace_back(MemoryEffects::Write::get(), tt::GlobalMemory::get());
  }
}

} // namespace tessera::ttg
