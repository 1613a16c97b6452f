// Encodings of matrix instructions: accumulators of each vendor's, and their operands. Text and meaning.
#include "EncodingText.h"
#include "LayoutBuilder.h"

using namespace mlir;

namespace tessera::ttg {

/// More registers, fastest dimension first, until the tensor is covered.
static void takeAllRest(LayoutBuilder &builder, LinearLayout::Bases &registers) {
  for (unsigned dim = builder.shape.size(); dim-- > 0;)
    builder.takeRest(registers, dim);
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

bool NvidiaMmaEncodingAttr::isOfOneWarp() const { return !isWarpGroup(); }
bool NvidiaMmaEncodingAttr::isTransposed() const { return false; }
SmallVector<unsigned> NvidiaMmaEncodingAttr::getTilesOfWarp() const { return SmallVector<unsigned>(getRank(), 1); }

MatrixInstruction NvidiaMmaEncodingAttr::getInstruction(unsigned elementBits) const {
  MatrixInstruction instruction{MatrixFamily::Mma, getVersionMajor(), 16, 8, 256 / elementBits, elementBits};
  if (elementBits == 64)
    instruction.m = 8; // of which the accumulators' 16 rows take two
  return !isWarpGroup() && exists(instruction) ? instruction : MatrixInstruction{};
}

std::string NvidiaMmaEncodingAttr::refusesOperand(unsigned opIdx, unsigned kWidth) const {
  if (isWarpGroup() && opIdx == 1)
    return "wgmma reads B in shared memory: opIdx of dot_op must be 0";
  if (!llvm::is_contained({1u, 2u, 4u, 8u}, kWidth))
    return ("kWidth of dot_op is 1, 2, 4 or 8, not " + Twine(kWidth)).str();
  return {};
}

// ---- amd_mfma, amd_wmma ---------------------------------------------------------------------------------------------

/// C's fragment of one instruction, side by side as a warp has them, then warps, columns first. `rowsLast`: a warp's
/// further columns come before its further rows.
static LinearLayout accumulators(MatrixEncoding encoding, const MatrixInstruction &instruction, ArrayRef<int64_t> shape,
                                 bool rowsLast) {
  LayoutBuilder builder(shape);
  unsigned rank = encoding.getRank();
  LinearLayout::Bases blocks = builder.splitAmongBlocks(encoding.getCgaLayout()), warps;
  LinearLayout fragment = fragmentOf(instruction, MatrixOperand::C);
  // The builder hands out a dimension's bits from the lowest up; in the fragment, lanes may have lower ones than
  // registers.
  LinearLayout::Bases registers(fragment.numBits(HwDim::Register)), lanes(fragment.numBits(HwDim::Lane));
  SmallVector<std::pair<uint64_t, uint64_t *>> bits;
  for (auto [i, basis] : llvm::enumerate(fragment.bases(HwDim::Register)))
    bits.push_back({basis, &registers[i]});
  for (auto [i, basis] : llvm::enumerate(fragment.bases(HwDim::Lane)))
    bits.push_back({basis, &lanes[i]});
  llvm::sort(bits);
  for (auto [basis, place] : bits) {
    bool alongRows = fragment.coords(basis)[0] != 0;
    LinearLayout::Bases next;
    builder.take(next, alongRows != encoding.isTransposed() ? rank - 2 : rank - 1, 1, true);
    *place = next.front();
  }
  SmallVector<unsigned> tiles = encoding.getTilesOfWarp();
  for (unsigned dim = rank; dim-- > 0;) {
    builder.take(registers, dim, log2of(tiles[dim]), false);
    builder.take(warps, dim, log2of(encoding.getWarpsPerCTA()[dim]), true);
    if (rowsLast && dim == rank - 1)
      builder.takeRest(registers, dim);
  }
  takeAllRest(builder, registers);
  return distributed(shape, registers, lanes, warps, blocks);
}

static SmallVector<unsigned> columnsFirst(unsigned rank) {
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq(rank));
  std::reverse(order.begin(), order.end());
  return order;
}

static std::string refusesWidth(unsigned kWidth) {
  return llvm::isPowerOf2_32(kWidth) && kWidth <= 32
             ? std::string()
             : ("kWidth of dot_op is a power of two up to 32, not " + Twine(kWidth)).str();
}

static LogicalResult verifyWarps(EmitError emitError, StringRef name, Ref warpsPerCTA, Ref cga, Ref tilesPerWarp) {
  unsigned rank = warpsPerCTA.size();
  if (rank != 2 && rank != 3)
    return emitError() << name << " has 2 or 3 dimensions, but warpsPerCTA has " << rank << " entries";
  if (tilesPerWarp.size() != rank)
    return emitError() << "tilesPerWarp has " << tilesPerWarp.size() << " entries where warpsPerCTA has " << rank;
  return success(succeeded(verifyPowersOfTwo(emitError, "warpsPerCTA", warpsPerCTA, rank, 1024)) &&
                 succeeded(verifyPowersOfTwo(emitError, "tilesPerWarp", tilesPerWarp, rank, 1024)) &&
                 succeeded(verifyCga(emitError, cga, rank)));
}

static void printTiles(AsmPrinter &printer, Ref tilesPerWarp) {
  if (llvm::any_of(tilesPerWarp, [](unsigned tiles) { return tiles != 1; }))
    printList(printer, ", tilesPerWarp", tilesPerWarp);
}

LogicalResult AmdMfmaEncodingAttr::verify(EmitError emitError, unsigned version, Ref warpsPerCTA, Ref instrShape, bool,
                                          Ref cga, Ref tilesPerWarp, unsigned elementBitWidth) {
  if (version < 2 || version > 4)
    return emitError() << "amd_mfma has version 2 (gfx90a), 3 (gfx942) or 4 (gfx950), not " << version;
  if (failed(verifyWarps(emitError, "amd_mfma", warpsPerCTA, cga, tilesPerWarp)))
    return failure();
  if (elementBitWidth != 32 && elementBitWidth != 64)
    return emitError() << "elementBitWidth of amd_mfma is that of an accumulator, 32 or 64, not " << elementBitWidth;
  bool known = instrShape.size() == 3;
  if (known) {
    known = false;
    for (unsigned bits : {8u, 16u, 32u, 64u})
      known |= (bits == 64) == (elementBitWidth == 64) &&
               exists({MatrixFamily::Mfma, version, instrShape[0], instrShape[1], instrShape[2], bits});
  }
  if (!known)
    return emitError()
           << "instrShape of amd_mfma is [16, 16, K] or [32, 32, K] with a K that an instruction of version " << version
           << " with " << elementBitWidth << "-bit accumulators has";
  return success();
}

LogicalResult AmdMfmaEncodingAttr::verifyEncoding(ArrayRef<int64_t> shape, Type, EmitError emitError) const {
  return verifyTensor(shape, getRank(), emitError);
}

Attribute AmdMfmaEncodingAttr::parse(AsmParser &parser, Type) {
  DictReader reader(parser);
  unsigned version = 0, bits = 32;
  bool transposed = false;
  List warps, instr, cga, tiles;
  if (reader.open() || reader.number("version", version) || reader.list("warpsPerCTA", warps) ||
      reader.list("instrShape", instr) || (reader.has("isTransposed") && reader.boolean("isTransposed", transposed)))
    return {};
  unsigned rank = warps.size();
  if (reader.bases("CGALayout", rank, cga) || (reader.has("tilesPerWarp") && reader.list("tilesPerWarp", tiles)) ||
      (reader.has("elementBitWidth") && reader.number("elementBitWidth", bits)) || reader.close())
    return {};
  if (tiles.empty())
    tiles.assign(warps.size(), 1);
  return getChecked(reader.emitter(), parser.getContext(), version, Ref(warps), Ref(instr), transposed, Ref(cga),
                    Ref(tiles), bits);
}

void AmdMfmaEncodingAttr::print(AsmPrinter &printer) const {
  printer << "<{version = " << getVersion();
  printList(printer, ", warpsPerCTA", getWarpsPerCTA());
  printList(printer, ", instrShape", getInstrShape());
  printer << ", isTransposed = " << (getIsTransposed() ? "true" : "false");
  printCga(printer, getCgaLayout(), getRank());
  printTiles(printer, getTilesPerWarp());
  if (getElementBitWidth() != 32)
    printer << ", elementBitWidth = " << getElementBitWidth();
  printer << "}>";
}

unsigned AmdMfmaEncodingAttr::getRank() const { return getWarpsPerCTA().size(); }
SmallVector<unsigned> AmdMfmaEncodingAttr::getWarpOrder() const { return columnsFirst(getRank()); }
bool AmdMfmaEncodingAttr::isOfOneWarp() const { return true; }
bool AmdMfmaEncodingAttr::isTransposed() const { return getIsTransposed(); }
SmallVector<unsigned> AmdMfmaEncodingAttr::getTilesOfWarp() const { return SmallVector<unsigned>(getTilesPerWarp()); }
std::string AmdMfmaEncodingAttr::refusesOperand(unsigned, unsigned kWidth) const { return refusesWidth(kWidth); }

MatrixInstruction AmdMfmaEncodingAttr::getInstruction(unsigned elementBits) const {
  Ref shape = getInstrShape();
  MatrixInstruction instruction{MatrixFamily::Mfma, getVersion(), shape[0], shape[1], shape[2], elementBits};
  return (elementBits == 64) == (getElementBitWidth() == 64) && exists(instruction) ? instruction : MatrixInstruction{};
}

LinearLayout AmdMfmaEncodingAttr::toLinearLayout(ArrayRef<int64_t> shape) const {
  // Only whether accumulators have 64 bits matters to their layout.
  MatrixInstruction instruction{MatrixFamily::Mfma, getVersion(),       getInstrShape()[0],
                                getInstrShape()[1], getInstrShape()[2], getElementBitWidth()};
  return accumulators(*this, instruction, shape, /*rowsLast=*/true);
}

LogicalResult AmdWmmaEncodingAttr::verify(EmitError emitError, unsigned version, bool, Ref warpsPerCTA, Ref cga,
                                          Ref tilesPerWarp, Ref instrShape) {
  if (version < 1 || version > 3)
    return emitError() << "amd_wmma has version 1 (gfx11), 2 (gfx12) or 3 (gfx1250), not " << version;
  if (failed(verifyWarps(emitError, "amd_wmma", warpsPerCTA, cga, tilesPerWarp)))
    return failure();
  bool known = instrShape.size() == 3 && llvm::any_of(Ref{8, 16, 32}, [&](unsigned bits) {
                 return exists({MatrixFamily::Wmma, version, instrShape[0], instrShape[1], instrShape[2], bits});
               });
  if (!known)
    return emitError() << "instrShape of amd_wmma is [16, 16, K] with a K that an instruction of version " << version
                       << " has";
  return success();
}

LogicalResult AmdWmmaEncodingAttr::verifyEncoding(ArrayRef<int64_t> shape, Type, EmitError emitError) const {
  return verifyTensor(shape, getRank(), emitError);
}

Attribute AmdWmmaEncodingAttr::parse(AsmParser &parser, Type) {
  DictReader reader(parser);
  unsigned version = 0;
  bool transposed = false;
  List warps, instr, cga, tiles;
  if (reader.open() || reader.number("version", version) ||
      (reader.has("isTranspose") && reader.boolean("isTranspose", transposed)) || reader.list("warpsPerCTA", warps))
    return {};
  unsigned rank = warps.size();
  if (reader.bases("CGALayout", rank, cga) || (reader.has("tilesPerWarp") && reader.list("tilesPerWarp", tiles)) ||
      (reader.has("instrShape") && reader.list("instrShape", instr)) || reader.close())
    return {};
  if (tiles.empty())
    tiles.assign(warps.size(), 1);
  if (instr.empty())
    instr.assign(3, 16);
  return getChecked(reader.emitter(), parser.getContext(), version, transposed, Ref(warps), Ref(cga), Ref(tiles),
                    Ref(instr));
}

void AmdWmmaEncodingAttr::print(AsmPrinter &printer) const {
  printer << "<{version = " << getVersion() << ", isTranspose = " << (getIsTransposed() ? "true" : "false");
  printList(printer, ", warpsPerCTA", getWarpsPerCTA());
  printCga(printer, getCgaLayout(), getRank());
  printTiles(printer, getTilesPerWarp());
  if (getInstrShape() != Ref{16, 16, 16})
    printList(printer, ", instrShape", getInstrShape());
  printer << "}>";
}

unsigned AmdWmmaEncodingAttr::getRank() const { return getWarpsPerCTA().size(); }
SmallVector<unsigned> AmdWmmaEncodingAttr::getWarpOrder() const { return columnsFirst(getRank()); }
bool AmdWmmaEncodingAttr::isOfOneWarp() const { return true; }
bool AmdWmmaEncodingAttr::isTransposed() const { return getIsTransposed(); }
SmallVector<unsigned> AmdWmmaEncodingAttr::getTilesOfWarp() const { return SmallVector<unsigned>(getTilesPerWarp()); }
std::string AmdWmmaEncodingAttr::refusesOperand(unsigned, unsigned kWidth) const { return refusesWidth(kWidth); }

MatrixInstruction AmdWmmaEncodingAttr::getInstruction(unsigned elementBits) const {
  Ref shape = getInstrShape();
  MatrixInstruction instruction{MatrixFamily::Wmma, getVersion(), shape[0], shape[1], shape[2], elementBits};
  return exists(instruction) ? instruction : MatrixInstruction{};
}

LinearLayout AmdWmmaEncodingAttr::toLinearLayout(ArrayRef<int64_t> shape) const {
  Ref s = getInstrShape();
  return accumulators(*this, {MatrixFamily::Wmma, getVersion(), s[0], s[1], s[2], 16}, shape, /*rowsLast=*/false);
}

// ---- dot_op ---------------------------------------------------------------------------------------------------------

LogicalResult DotOperandEncodingAttr::verify(EmitError emitError, unsigned opIdx, MatrixEncoding parent,
                                             unsigned kWidth) {
  if (opIdx > 1)
    return emitError() << "opIdx of dot_op is 0 (A) or 1 (B), not " << opIdx;
  if (!parent)
    return emitError()
           << "dot_op needs a parent that is the layout of a matrix instruction's accumulators (nvidia_mma, "
              "amd_mfma, amd_wmma)";
  if (std::string reason = parent.refusesOperand(opIdx, kWidth); !reason.empty())
    return emitError() << reason;
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
  auto parent = dyn_cast_or_null<MatrixEncoding>(reader.get("parent"));
  // Only with a parent that is refused anyway may kWidth be absent.
  if ((parent || reader.has("kWidth")) && reader.number("kWidth", kWidth))
    return {};
  if (reader.close())
    return {};
  return getChecked(reader.emitter(), parser.getContext(), opIdx, parent, kWidth);
}

void DotOperandEncodingAttr::print(AsmPrinter &printer) const {
  printer << "<{opIdx = " << getOpIdx() << ", parent = " << getParent() << ", kWidth = " << getKWidth() << "}>";
}

unsigned DotOperandEncodingAttr::getRank() const { return getParent().getRank(); }

/// One instruction's operand, with kWidth consecutive elements of a lane along k, and all the rest of k.
static void takeOperand(LayoutBuilder &builder, LinearLayout::Bases &registers, LinearLayout::Bases &lanes,
                        DotOperandEncodingAttr operand, unsigned k, unsigned other) {
  if (isa<NvidiaMmaEncodingAttr>(operand.getParent())) {
    takeFragment(builder, registers, lanes, k, 8 * operand.getKWidth(), other, operand.getOpIdx() == 0 ? 16 : 8,
                 operand.getKWidth());
    return;
  }
  unsigned extent = 16, groups = 2; // lanes along rows or columns, and along k
  bool repeats = false;
  if (auto mfma = dyn_cast<AmdMfmaEncodingAttr>(operand.getParent())) {
    extent = mfma.getInstrShape()[operand.getOpIdx()];
    groups = 64 / extent;
  } else {
    repeats = cast<AmdWmmaEncodingAttr>(operand.getParent()).getVersion() == 1;
  }
  builder.take(registers, k, log2of(operand.getKWidth()), false);
  builder.take(lanes, other, log2of(extent), true);
  if (repeats)
    lanes.append(log2of(groups), 0);
  else
    builder.take(lanes, k, log2of(groups), true);
  builder.takeRest(registers, k);
  builder.take(registers, other, log2of(operand.getParent().getTilesOfWarp()[other]), false);
}

LinearLayout DotOperandEncodingAttr::toLinearLayout(ArrayRef<int64_t> shape) const {
  LayoutBuilder builder(shape);
  MatrixEncoding parent = getParent();
  unsigned rank = getRank(), k = getKDim(), other = getOpIdx() == 0 ? rank - 2 : rank - 1;
  // Programs and warps that differ only in the dimension the operand lacks have the same part of it.
  SmallVector<unsigned> cga(parent.getCgaLayout());
  for (size_t i = k; i < cga.size(); i += rank)
    cga[i] = 0;
  LinearLayout::Bases blocks = builder.splitAmongBlocks(cga), registers, lanes, warps;
  takeOperand(builder, registers, lanes, *this, k, other);
  for (unsigned dim : parent.getWarpOrder()) {
    unsigned bits = log2of(parent.getWarpsPerCTA()[dim]);
    if (dim == k)
      warps.append(bits, 0);
    else
      builder.take(warps, dim, bits, true);
  }
  builder.takeRest(registers, k);
  takeAllRest(builder, registers);
  return distributed(shape, registers, lanes, warps, blocks);
}

} // namespace tessera::ttg
