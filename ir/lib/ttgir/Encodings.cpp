// Encodings as text: parsing, printing and verifying the attributes. What they mean is in EncodingLayouts.cpp.
#include "mlir/IR/DialectImplementation.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::ttg {

namespace {

constexpr unsigned maxRank = 8;
constexpr unsigned maxParameter = 1u << 20;
using EmitError = function_ref<InFlightDiagnostic()>;
using List = SmallVector<unsigned>;
using Ref = ArrayRef<unsigned>;

/// Reads `<{key = value, …}>`; every getter reports what is wrong at the attribute's place.
class DictReader {
public:
  explicit DictReader(AsmParser &parser) : parser(parser), loc(parser.getCurrentLocation()) {}

  ParseResult open(bool brackets = true) {
    if ((brackets && parser.parseLess()) || parser.parseAttribute(dict) || (brackets && parser.parseGreater()))
      return failure();
    return success();
  }
  bool has(StringRef key) const { return static_cast<bool>(dict.get(key)); }

  ParseResult boolean(StringRef key, bool &value) {
    auto flag = dyn_cast_or_null<BoolAttr>(get(key));
    if (!flag)
      return error(key, "must be true or false");
    value = flag.getValue();
    return success();
  }

  ParseResult number(StringRef key, unsigned &value) { return toNumber(get(key), key, value); }

  ParseResult list(StringRef key, List &values) {
    auto array = dyn_cast_or_null<ArrayAttr>(get(key));
    if (!array)
      return error(key, "must be a list of integers");
    return toList(array, key, values);
  }

  /// [[…], …] with vectors of one length, which sets `rank` if it is 0. An absent key is an empty list.
  ParseResult bases(StringRef key, unsigned &rank, List &values) {
    if (!has(key))
      return success();
    auto array = dyn_cast_or_null<ArrayAttr>(get(key));
    if (!array)
      return error(key, "must be a list of basis vectors");
    for (Attribute entry : array) {
      auto vector = dyn_cast<ArrayAttr>(entry);
      if (!vector || vector.empty())
        return error(key, "must be a list of basis vectors, each a list of integers");
      if (rank == 0)
        rank = vector.size();
      if (vector.size() != rank)
        return error(key, "has basis vectors of another length than the rest of the layout");
      if (toList(vector, key, values))
        return failure();
    }
    return success();
  }

  Attribute get(StringRef key) {
    used.push_back(key);
    return dict.get(key);
  }

  /// Reports a key that nothing asked for.
  ParseResult close() {
    for (NamedAttribute entry : dict)
      if (!llvm::is_contained(used, entry.getName().getValue()))
        return error(entry.getName(), "is not a parameter of this layout");
    return success();
  }

  ParseResult error(StringRef key, const Twine &message) {
    return parser.emitError(loc) << "'" << key << "' " << message;
  }
  EmitError emitter() {
    emit = [this] { return parser.emitError(loc); };
    return emit;
  }

private:
  ParseResult toNumber(Attribute attr, StringRef key, unsigned &value) {
    auto integer = dyn_cast_or_null<IntegerAttr>(attr);
    if (!integer || integer.getValue().ugt(maxParameter))
      return error(key, "must be an integer from 0 to " + Twine(maxParameter));
    value = integer.getValue().getZExtValue();
    return success();
  }
  ParseResult toList(ArrayAttr array, StringRef key, List &values) {
    for (Attribute entry : array)
      if (toNumber(entry, key, values.emplace_back()))
        return failure();
    return success();
  }

  AsmParser &parser;
  SMLoc loc;
  DictionaryAttr dict;
  SmallVector<StringRef> used;
  std::function<InFlightDiagnostic()> emit;
};

void printList(AsmPrinter &printer, StringRef key, ArrayRef<unsigned> values) {
  printer << key << " = [";
  llvm::interleaveComma(values, printer.getStream());
  printer << "]";
}

void printBases(AsmPrinter &printer, StringRef key, ArrayRef<unsigned> values, unsigned rank) {
  printer << key << " = [";
  for (size_t i = 0; i + rank <= values.size(); i += rank) {
    printer << (i ? ", [" : "[");
    llvm::interleaveComma(values.slice(i, rank), printer.getStream());
    printer << "]";
  }
  printer << "]";
}

void printCga(AsmPrinter &printer, ArrayRef<unsigned> bases, unsigned rank) {
  if (bases.empty())
    return;
  printer << ", ";
  printBases(printer, "CGALayout", bases, rank);
}

LogicalResult verifyPowersOfTwo(EmitError emitError, StringRef key, ArrayRef<unsigned> values, unsigned rank,
                                uint64_t maxProduct) {
  if (values.size() != rank)
    return emitError() << key << " has " << values.size() << " entries where order has " << rank;
  uint64_t product = 1;
  for (unsigned value : values) {
    if (value == 0 || (value & (value - 1)))
      return emitError() << key << " must hold powers of two, not " << value;
    if ((product *= value) > maxProduct)
      return emitError() << "the product of " << key << " is more than " << maxProduct;
  }
  return success();
}

LogicalResult verifyOrder(EmitError emitError, ArrayRef<unsigned> order) {
  if (order.empty() || order.size() > maxRank)
    return emitError() << "a layout has 1 to " << maxRank << " dimensions, not " << order.size();
  llvm::SmallVector<bool> seen(order.size(), false);
  for (unsigned dim : order) {
    if (dim >= order.size() || seen[dim])
      return emitError() << "order must name every dimension from 0 to " << order.size() - 1 << " once";
    seen[dim] = true;
  }
  return success();
}

LogicalResult verifyCga(EmitError emitError, ArrayRef<unsigned> bases, unsigned rank) {
  if (bases.size() % rank || bases.size() / rank > 4)
    return emitError() << "CGALayout has at most 4 basis vectors of " << rank << " entries each";
  for (unsigned value : bases)
    if ((value & (value - 1)) || value > 8)
      return emitError() << "CGALayout holds 0 or powers of two up to 8, not " << value;
  return success();
}

/// A tensor with an encoding has the encoding's rank, and dimensions that are powers of two.
LogicalResult verifyTensor(ArrayRef<int64_t> shape, unsigned rank, EmitError emitError) {
  if (shape.size() != rank)
    return emitError() << "the encoding describes " << rank << " dimensions, the tensor has " << shape.size();
  uint64_t count = 1;
  for (int64_t size : shape) {
    if (size <= 0 || (size & (size - 1)) || size > tt::maxTileElements)
      return emitError() << "a tensor with a layout needs dimensions that are powers of two, at most "
                         << tt::maxTileElements;
    if ((count *= size) > static_cast<uint64_t>(tt::maxTileElements))
      return emitError() << "a tile has at most " << tt::maxTileElements << " elements";
  }
  return success();
}

/// Rank over F2 of basis vectors given as coordinates.
unsigned f2Rank(ArrayRef<unsigned> bases, unsigned rank) {
  using Row = std::array<uint32_t, maxRank>;
  SmallVector<Row> rows;
  for (size_t i = 0; i + rank <= bases.size(); i += rank) {
    Row row = {};
    llvm::copy(bases.slice(i, rank), row.begin());
    for (const Row &pivot : rows) {
      // Each pivot row's leading bit is cleared from the new row.
      unsigned dim = llvm::find_if(pivot, [](uint32_t x) { return x != 0; }) - pivot.begin();
      if (row[dim] & llvm::bit_floor(pivot[dim]))
        for (unsigned d = 0; d < maxRank; ++d)
          row[d] ^= pivot[d];
    }
    if (llvm::any_of(row, [](uint32_t x) { return x != 0; }))
      rows.push_back(row);
  }
  return rows.size();
}

/// The basis vectors reach every element of the smallest power-of-two box around them.
LogicalResult verifySurjective(EmitError emitError, ArrayRef<unsigned> bases, unsigned rank) {
  unsigned bits = 0;
  for (unsigned dim = 0; dim < rank; ++dim) {
    unsigned all = 0;
    for (size_t i = dim; i < bases.size(); i += rank)
      all |= bases[i];
    bits += llvm::bit_width(all);
  }
  if (f2Rank(bases, rank) != bits)
    return emitError() << "the basis vectors do not reach every element of the tensor they span";
  return success();
}

} // namespace

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

// ---- nvidia_mma -----------------------------------------------------------------------------------------------------

LogicalResult NvidiaMmaEncodingAttr::verify(EmitError emitError, unsigned major, unsigned minor,
                                            ArrayRef<unsigned> warpsPerCTA, ArrayRef<unsigned> cga,
                                            ArrayRef<unsigned> instrShape) {
  if ((major != 2 && major != 3) || minor != 0)
    return emitError() << "nvidia_mma has version 2.0 (mma.sync) or 3.0 (wgmma), not " << major << "." << minor;
  unsigned rank = warpsPerCTA.size();
  if (rank != 2 && (rank != 3 || major != 2))
    return emitError() << "nvidia_mma of version " << major << " has 2 " << (major == 2 ? "or 3 " : "")
                       << "dimensions, but warpsPerCTA has " << rank << " entries";
  if (failed(verifyPowersOfTwo(emitError, "warpsPerCTA", warpsPerCTA, rank, 1024)) ||
      failed(verifyCga(emitError, cga, rank)))
    return failure();
  if (major == 2) {
    static constexpr unsigned tile[] = {1, 16, 8};
    if (instrShape != ArrayRef(tile).take_back(rank))
      return emitError() << "instrShape of nvidia_mma of version 2 is [16, 8], after a 1 for a batch dimension";
    return success();
  }
  if (warpsPerCTA[0] % 4)
    return emitError() << "wgmma works on groups of 4 warps along the rows, so warpsPerCTA[0] cannot be "
                       << warpsPerCTA[0];
  bool known = instrShape.size() == 3 && instrShape[0] == 16 && instrShape[1] >= 8 && instrShape[1] <= 256 &&
               llvm::isPowerOf2_32(instrShape[1]) && llvm::is_contained({8u, 16u, 32u}, instrShape[2]);
  if (!known)
    return emitError() << "instrShape of nvidia_mma of version 3 is [16, N, K] with N a power of two from 8 to 256 and "
                          "K 8, 16 or 32";
  return success();
}

LogicalResult NvidiaMmaEncodingAttr::verifyEncoding(ArrayRef<int64_t> shape, Type, EmitError emitError) const {
  return verifyTensor(shape, getRank(), emitError);
}

Attribute NvidiaMmaEncodingAttr::parse(AsmParser &parser, Type) {
  DictReader reader(parser);
  unsigned major = 0, minor = 0;
  List warps, cga, instr;
  if (reader.open() || reader.number("versionMajor", major) || reader.number("versionMinor", minor) ||
      reader.list("warpsPerCTA", warps))
    return {};
  unsigned rank = warps.size();
  if (reader.bases("CGALayout", rank, cga) || reader.list("instrShape", instr) || reader.close())
    return {};
  return getChecked(reader.emitter(), parser.getContext(), major, minor, Ref(warps), Ref(cga), Ref(instr));
}

void NvidiaMmaEncodingAttr::print(AsmPrinter &printer) const {
  printer << "<{versionMajor = " << getVersionMajor() << ", versionMinor = " << getVersionMinor();
  printList(printer, ", warpsPerCTA", getWarpsPerCTA());
  printCga(printer, getCgaLayout(), getRank());
  printList(printer, ", instrShape", getInstrShape());
  printer << "}>";
}

// ---- dot_op ---------------------------------------------------------------------------------------------------------

LogicalResult DotOperandEncodingAttr::verify(EmitError emitError, unsigned opIdx, DistributedEncoding parent,
                                             unsigned kWidth) {
  if (opIdx > 1)
    return emitError() << "opIdx of dot_op is 0 (A) or 1 (B), not " << opIdx;
  auto mma = dyn_cast_or_null<NvidiaMmaEncodingAttr>(parent);
  if (!mma)
    return emitError()
           << "dot_op needs a parent that is the layout of a matrix instruction's accumulators (nvidia_mma)";
  if (mma.isWarpGroup() && opIdx == 1)
    return emitError() << "wgmma reads B in shared memory: opIdx of dot_op must be 0";
  if (!llvm::is_contained({1u, 2u, 4u, 8u}, kWidth))
    return emitError() << "kWidth of dot_op is 1, 2, 4 or 8, not " << kWidth;
  return success();
}

LogicalResult DotOperandEncodingAttr::verifyEncoding(ArrayRef<int64_t> shape, Type, EmitError emitError) const {
  return verifyTensor(shape, getRank(), emitError);
}

Attribute DotOperandEncodingAttr::parse(AsmParser &parser, Type) {
  DictReader reader(parser);
  unsigned opIdx = 0, kWidth = 0;
  if (reader.open() || reader.number("opIdx", opIdx))
    return {};
  auto parent = dyn_cast_or_null<DistributedEncoding>(reader.get("parent"));
  // Only with a parent that is refused anyway may kWidth be absent.
  if ((isa_and_nonnull<NvidiaMmaEncodingAttr>(parent) || reader.has("kWidth")) && reader.number("kWidth", kWidth))
    return {};
  if (reader.close())
    return {};
  return getChecked(reader.emitter(), parser.getContext(), opIdx, parent, kWidth);
}

void DotOperandEncodingAttr::print(AsmPrinter &printer) const {
  printer << "<{opIdx = " << getOpIdx() << ", parent = " << getParent() << ", kWidth = " << getKWidth() << "}>";
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

// ---- swizzled_shared ------------------------------------------------------------------------------------------------

LogicalResult SwizzledSharedEncodingAttr::verify(EmitError emitError, unsigned vec, unsigned perPhase,
                                                 unsigned maxPhase, ArrayRef<unsigned> order, ArrayRef<unsigned> cga) {
  unsigned parameters[] = {vec, perPhase, maxPhase};
  if (failed(verifyOrder(emitError, order)) ||
      failed(verifyPowersOfTwo(emitError, "vec, perPhase, maxPhase", parameters, 3, 1u << 20)))
    return failure();
  return verifyCga(emitError, cga, order.size());
}

Attribute SwizzledSharedEncodingAttr::parse(AsmParser &parser, Type) {
  DictReader reader(parser);
  unsigned vec = 0, perPhase = 0, maxPhase = 0;
  List order, cga;
  if (reader.open() || reader.number("vec", vec) || reader.number("perPhase", perPhase) ||
      reader.number("maxPhase", maxPhase) || reader.list("order", order))
    return {};
  unsigned rank = order.size();
  if (reader.bases("CGALayout", rank, cga) || reader.close())
    return {};
  return getChecked(reader.emitter(), parser.getContext(), vec, perPhase, maxPhase, Ref(order), Ref(cga));
}

void SwizzledSharedEncodingAttr::print(AsmPrinter &printer) const {
  printer << "<{vec = " << getVec() << ", perPhase = " << getPerPhase() << ", maxPhase = " << getMaxPhase();
  printList(printer, ", order", getOrder());
  printCga(printer, getCgaLayout(), getRank());
  printer << "}>";
}

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
