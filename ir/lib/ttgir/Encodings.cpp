// Encodings as text: parsing, printing and verifying the attributes. What they mean is in EncodingLayouts.cpp.
#include "EncodingText.h"
#include "mlir/IR/DialectImplementation.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::ttg {

// ---- blocked --------------------------------------------------------------------------------------------------------

LogicalResult BlockedEncodingAttr::verify(EmitError emitError, ArrayRef<unsigned> sizePerThread,
                                          ArrayRef<unsigned> threadsPerWarp, ArrayRef<unsigned> warpsPerCTA,
                                          ArrayRef<unsigned> order, ArrayRef<unsigned> cga) {
  if (failed(verifyOrder(emitError, order)))
    return failure();
  unsigned rank = order.size();
  return success(succeeded(verifyPowersOfTwo(emitError, "sizePerThread", sizePerThread, rank, tt::maxTileElements)) &&
                 succeeded(verifyPowersOfTwo(emitError, "threadsPerWarp", threadsPerWarp, rank, 1024)) &&
                 succeeded(verifyPowersOfTwo(emitError, "warpsPerCTA", warpsPerCTA, rank, 1024)) &&
                 succeeded(verifyCga(emitError, cga, rank)));
}

LogicalResult BlockedEncodingAttr::verifyEncoding(ArrayRef<int64_t> shape, Type, EmitError emitError) const {
  return verifyTensor(shape, getRank(), emitError);
}

Attribute BlockedEncodingAttr::parse(AsmParser &parser, Type) {
  DictReader reader(parser);
  List size, threads, warps, order, cga;
  if (reader.open() || reader.list("sizePerThread", size) || reader.list("threadsPerWarp", threads) ||
      reader.list("warpsPerCTA", warps) || reader.list("order", order))
    return {};
  unsigned rank = order.size();
  if (reader.bases("CGALayout", rank, cga) || reader.close())
    return {};
  return getChecked(reader.emitter(), parser.getContext(), Ref(size), Ref(threads), Ref(warps), Ref(order), Ref(cga));
}

void BlockedEncodingAttr::print(AsmPrinter &printer) const {
  printer << "<{";
  printList(printer, "sizePerThread", getSizePerThread());
  printList(printer, ", threadsPerWarp", getThreadsPerWarp());
  printList(printer, ", warpsPerCTA", getWarpsPerCTA());
  printList(printer, ", order", getOrder());
  printCga(printer, getCgaLayout(), getRank());
  printer << "}>";
}

// ---- slice ----------------------------------------------------------------------------------------------------------

LogicalResult SliceEncodingAttr::verify(EmitError emitError, unsigned dim, DistributedEncoding parent) {
  if (!parent)
    return emitError() << "slice needs a parent that is a distributed layout";
  if (parent.getRank() < 2 || dim >= parent.getRank())
    return emitError() << "slice removes dimension " << dim << " of a parent with " << parent.getRank()
                       << " dimensions; one must be left";
  return success();
}

LogicalResult SliceEncodingAttr::verifyEncoding(ArrayRef<int64_t> shape, Type, EmitError emitError) const {
  return verifyTensor(shape, getRank(), emitError);
}

Attribute SliceEncodingAttr::parse(AsmParser &parser, Type) {
  DictReader reader(parser);
  unsigned dim = 0;
  if (reader.open() || reader.number("dim", dim))
    return {};
  auto parent = dyn_cast_or_null<DistributedEncoding>(reader.get("parent"));
  if (reader.close())
    return {};
  return getChecked(reader.emitter(), parser.getContext(), dim, parent);
}

void SliceEncodingAttr::print(AsmPrinter &printer) const {
  printer << "<{dim = " << getDim() << ", parent = " << getParent() << "}>";
}

// ---- linear ---------------------------------------------------------------------------------------------------------

LogicalResult LinearEncodingAttr::verify(EmitError emitError, unsigned rank, ArrayRef<unsigned> registers,
                                         ArrayRef<unsigned> lanes, ArrayRef<unsigned> warps,
                                         ArrayRef<unsigned> blocks) {
  if (rank == 0 || rank > maxRank)
    return emitError() << "a linear layout needs at least one basis vector, of 1 to " << maxRank << " entries";
  List all;
  unsigned limits[] = {20, 10, 10, 4};
  ArrayRef<unsigned> lists[] = {registers, lanes, warps, blocks};
  for (auto [bases, limit] : llvm::zip(lists, limits)) {
    if (bases.size() % rank || bases.size() / rank > limit)
      return emitError() << "a linear layout has at most 20 register, 10 lane, 10 warp and 4 block basis vectors";
    all.append(bases.begin(), bases.end());
  }
  return verifySurjective(emitError, all, rank);
}

LogicalResult LinearEncodingAttr::verifyEncoding(ArrayRef<int64_t> shape, Type, EmitError emitError) const {
  return verifyTensor(shape, getRank(), emitError);
}

Attribute LinearEncodingAttr::parse(AsmParser &parser, Type) {
  DictReader reader(parser);
  unsigned rank = 0;
  List registers, lanes, warps, blocks;
  if (reader.open() || reader.bases("register", rank, registers) || reader.bases("lane", rank, lanes) ||
      reader.bases("warp", rank, warps) || reader.bases("block", rank, blocks) || reader.close())
    return {};
  return getChecked(reader.emitter(), parser.getContext(), rank, Ref(registers), Ref(lanes), Ref(warps), Ref(blocks));
}

void LinearEncodingAttr::print(AsmPrinter &printer) const {
  printer << "<{";
  printBases(printer, "register", getRegisters(), getRank());
  printBases(printer, ", lane", getLanes(), getRank());
  printBases(printer, ", warp", getWarps(), getRank());
  printBases(printer, ", block", getBlocks(), getRank());
  printer << "}>";
}

// ---- nvmma_shared ---------------------------------------------------------------------------------------------------

LogicalResult NvmmaSharedEncodingAttr::verify(EmitError emitError, unsigned swizzle, bool, unsigned bits,
                                              ArrayRef<unsigned> cga) {
  if (!llvm::is_contained({0u, 32u, 64u, 128u}, swizzle))
    return emitError() << "swizzlingByteWidth of nvmma_shared is 0, 32, 64 or 128, not " << swizzle;
  if (!llvm::is_contained({8u, 16u, 32u}, bits))
    return emitError() << "elementBitWidth of nvmma_shared is 8, 16 or 32, not " << bits;
  return verifyCga(emitError, cga, 2);
}

/// What the layout needs of the buffer it describes: whole blocks, so that the permutation is one of address bits.
static LogicalResult verifyNvmma(EmitError emitError, NvmmaSharedEncodingAttr encoding, ArrayRef<int64_t> shape,
                                 unsigned bits) {
  if (encoding.getElementBitWidth() != bits)
    return emitError() << "elementBitWidth of the encoding is " << encoding.getElementBitWidth()
                       << ", but an element has " << bits << " bits";
  unsigned dim = encoding.getContiguousDim(), swizzle = encoding.getSwizzlingByteWidth();
  if (swizzle && (shape[dim] * bits / 8 < swizzle || shape[1 - dim] < 8))
    return emitError() << "a swizzle of " << swizzle
                       << " bytes needs at least 8 rows of as many bytes, but the buffer has " << shape[1 - dim]
                       << " rows of " << shape[dim] * bits / 8;
  return success();
}

Attribute NvmmaSharedEncodingAttr::parse(AsmParser &parser, Type) {
  DictReader reader(parser);
  unsigned swizzle = 0, bits = 0, rank = 2;
  bool transposed = false;
  List cga;
  if (reader.open() || reader.number("swizzlingByteWidth", swizzle) || reader.boolean("transposed", transposed) ||
      reader.number("elementBitWidth", bits) || reader.bases("CGALayout", rank, cga) || reader.close())
    return {};
  return getChecked(reader.emitter(), parser.getContext(), swizzle, transposed, bits, Ref(cga));
}

void NvmmaSharedEncodingAttr::print(AsmPrinter &printer) const {
  printer << "<{swizzlingByteWidth = " << getSwizzlingByteWidth()
          << ", transposed = " << (getTransposed() ? "true" : "false")
          << ", elementBitWidth = " << getElementBitWidth();
  printCga(printer, getCgaLayout(), getRank());
  printer << "}>";
}

// ---- swizzled_shared, amd_rotating_shared ---------------------------------------------------------------------------

static LogicalResult verifySwizzle(EmitError emitError, unsigned vec, unsigned perPhase, unsigned maxPhase, Ref order,
                                   Ref cga) {
  unsigned parameters[] = {vec, perPhase, maxPhase};
  if (failed(verifyOrder(emitError, order)) ||
      failed(verifyPowersOfTwo(emitError, "vec, perPhase, maxPhase", parameters, 3, 1u << 20)))
    return failure();
  return verifyCga(emitError, cga, order.size());
}

template <typename Encoding> static Attribute parseSwizzle(AsmParser &parser) {
  DictReader reader(parser);
  unsigned vec = 0, perPhase = 0, maxPhase = 0;
  List order, cga;
  if (reader.open() || reader.number("vec", vec) || reader.number("perPhase", perPhase) ||
      reader.number("maxPhase", maxPhase) || reader.list("order", order))
    return {};
  unsigned rank = order.size();
  if (reader.bases("CGALayout", rank, cga) || reader.close())
    return {};
  return Encoding::getChecked(reader.emitter(), parser.getContext(), vec, perPhase, maxPhase, Ref(order), Ref(cga));
}

template <typename Encoding> static void printSwizzle(AsmPrinter &printer, Encoding encoding) {
  printer << "<{vec = " << encoding.getVec() << ", perPhase = " << encoding.getPerPhase()
          << ", maxPhase = " << encoding.getMaxPhase();
  printList(printer, ", order", encoding.getOrder());
  printCga(printer, encoding.getCgaLayout(), encoding.getRank());
  printer << "}>";
}

LogicalResult SwizzledSharedEncodingAttr::verify(EmitError emitError, unsigned vec, unsigned perPhase,
                                                 unsigned maxPhase, Ref order, Ref cga) {
  return verifySwizzle(emitError, vec, perPhase, maxPhase, order, cga);
}
Attribute SwizzledSharedEncodingAttr::parse(AsmParser &parser, Type) {
  return parseSwizzle<SwizzledSharedEncodingAttr>(parser);
}
void SwizzledSharedEncodingAttr::print(AsmPrinter &printer) const { printSwizzle(printer, *this); }

LogicalResult AmdRotatingSharedEncodingAttr::verify(EmitError emitError, unsigned vec, unsigned perPhase,
                                                    unsigned maxPhase, Ref order, Ref cga) {
  return verifySwizzle(emitError, vec, perPhase, maxPhase, order, cga);
}
Attribute AmdRotatingSharedEncodingAttr::parse(AsmParser &parser, Type) {
  return parseSwizzle<AmdRotatingSharedEncodingAttr>(parser);
}
void AmdRotatingSharedEncodingAttr::print(AsmPrinter &printer) const { printSwizzle(printer, *this); }

// ---- padded_shared --------------------------------------------------------------------------------------------------

LogicalResult PaddedSharedEncodingAttr::verify(EmitError emitError, ArrayRef<unsigned> intervals,
                                               ArrayRef<unsigned> paddings, unsigned rank, ArrayRef<unsigned> offsets,
                                               ArrayRef<unsigned> blocks) {
  if (intervals.empty() || intervals.size() > 20 || intervals.size() != paddings.size())
    return emitError() << "padded_shared needs 1 to 20 interval:+padding pairs";
  for (auto [interval, padding] : llvm::zip(intervals, paddings))
    if (interval == 0 || (interval & (interval - 1)) || padding == 0)
      return emitError() << "an interval is a power of two and a padding is not 0, unlike " << interval << ":+"
                         << padding;
  if (rank == 0 || rank > maxRank)
    return emitError() << "padded_shared needs basis vectors of 1 to " << maxRank << " entries";
  if (offsets.size() % rank || offsets.size() / rank > 20 || blocks.size() % rank || blocks.size() / rank > 4)
    return emitError() << "padded_shared has at most 20 offset and 4 block basis vectors";
  List all(offsets);
  all.append(blocks.begin(), blocks.end());
  if (f2Rank(offsets, rank) != offsets.size() / rank)
    return emitError() << "two offsets of padded_shared would hold the same element";
  return verifySurjective(emitError, all, rank);
}

Attribute PaddedSharedEncodingAttr::parse(AsmParser &parser, Type) {
  DictReader reader(parser);
  List intervals, paddings;
  auto pair = [&]() -> ParseResult {
    // A number too large for the field parses as an error of its own.
    return failure(parser.parseInteger(intervals.emplace_back()) || parser.parseColon() || parser.parsePlus() ||
                   parser.parseInteger(paddings.emplace_back()));
  };
  if (parser.parseLess() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, pair) || reader.open(false) ||
      parser.parseGreater())
    return {};
  unsigned rank = 0;
  List offsets, blocks;
  if (!reader.has("order")) {
    if (reader.bases("offset", rank, offsets) || reader.bases("block", rank, blocks) || reader.close())
      return {};
    return getChecked(reader.emitter(), parser.getContext(), Ref(intervals), Ref(paddings), rank, Ref(offsets),
                      Ref(blocks));
  }
  List order, sizes;
  if (reader.list("order", order) || reader.list("shape", sizes) || reader.close())
    return {};
  if (failed(verifyOrder(reader.emitter(), order)) ||
      failed(verifyPowersOfTwo(reader.emitter(), "shape", sizes, order.size(), tt::maxTileElements)))
    return {};
  SmallVector<int64_t> shape(sizes.begin(), sizes.end());
  return getChecked(reader.emitter(), parser.getContext(), Ref(intervals), Ref(paddings), Ref(order),
                    ArrayRef<int64_t>(shape));
}

void PaddedSharedEncodingAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(llvm::zip(getIntervals(), getPaddings()), printer.getStream(),
                        [&](auto pair) { printer << std::get<0>(pair) << ":+" << std::get<1>(pair); });
  printer << "] {";
  printBases(printer, "offset", getOffsets(), getRank());
  printBases(printer, ", block", getBlocks(), getRank());
  printer << "}>";
}

// ---- memdesc --------------------------------------------------------------------------------------------------------

LogicalResult MemDescType::verify(EmitError emitError, ArrayRef<int64_t> shape, Type elementType, Attribute encoding,
                                  Attribute memorySpace, bool, ArrayRef<int64_t> allocShape) {
  auto shared = dyn_cast_or_null<SharedEncoding>(encoding);
  if (!shared)
    return emitError() << "a memdesc needs a shared-memory encoding, not " << encoding;
  if (!isa_and_nonnull<SharedMemorySpaceAttr>(memorySpace))
    return emitError() << "a memdesc lives in #ttg.shared_memory, not in " << memorySpace;
  if (tt::bitWidth(elementType) == 0)
    return emitError() << "a memdesc holds floats, integers or pointers, not " << elementType;
  if (shape.size() != shared.getRank() && shape.size() != shared.getRank() + 1)
    return emitError() << "the encoding describes " << shared.getRank()
                       << " dimensions, and at most one more counts buffers, but the memdesc has " << shape.size();
  for (ArrayRef<int64_t> sizes : {shape, allocShape})
    for (int64_t size : sizes)
      if (size <= 0 || size > tt::maxTileElements)
        return emitError() << "a dimension of a memdesc has 1 to " << tt::maxTileElements << " elements, not " << size;
  if (failed(verifyTensor(shape.take_back(shared.getRank()), shared.getRank(), emitError)))
    return failure();
  if (allocShape.size() < shape.size() ||
      !llvm::all_of(llvm::zip(shape, allocShape.take_back(shape.size())),
                    [](auto pair) { return std::get<0>(pair) <= std::get<1>(pair); }))
    return emitError() << "a memdesc is not larger than the allocation it is part of";
  ArrayRef<int64_t> whole = allocShape.take_back(shared.getRank());
  if (failed(verifyTensor(whole, shared.getRank(), emitError)))
    return failure();
  if (auto nvmma = dyn_cast<NvmmaSharedEncodingAttr>(encoding))
    return verifyNvmma(emitError, nvmma, whole, tt::bitWidth(elementType));
  return success();
}

Type MemDescType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape, allocShape;
  Type elementType;
  Attribute encoding, memorySpace;
  bool isMutable = false;
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(elementType) ||
      parser.parseComma() || parser.parseAttribute(encoding) || parser.parseComma() ||
      parser.parseAttribute(memorySpace))
    return {};
  bool more = succeeded(parser.parseOptionalComma());
  if (more && succeeded(parser.parseOptionalKeyword("mutable"))) {
    isMutable = true;
    more = succeeded(parser.parseOptionalComma());
  }
  if (more && parser.parseDimensionList(allocShape, /*allowDynamic=*/false, /*withTrailingX=*/false))
    return {};
  if (parser.parseGreater())
    return {};
  std::function<InFlightDiagnostic()> emit = [&] { return parser.emitError(loc); };
  return getChecked(emit, parser.getContext(), ArrayRef<int64_t>(shape), elementType, encoding, memorySpace, isMutable,
                    ArrayRef<int64_t>(allocShape.empty() ? shape : allocShape));
}

void MemDescType::print(AsmPrinter &printer) const {
  printer << "<";
  for (int64_t size : getShape())
    printer << size << "x";
  printer << getElementType() << ", " << getEncoding() << ", " << getMemorySpace();
  if (getMutableMemory())
    printer << ", mutable";
  if (getAllocShape() != getShape()) {
    printer << ", ";
    llvm::interleave(getAllocShape(), printer.getStream(), "x");
  }
  printer << ">";
}

MemDescType MemDescType::cloneWith(std::optional<ArrayRef<int64_t>> shape, Type elementType) const {
  return get(getContext(), shape.value_or(getShape()), elementType, getEncoding(), getMemorySpace(), getMutableMemory(),
             shape.value_or(getAllocShape()));
}

} // namespace tessera::ttg
