// Prints what an encoding means: which thread and register holds each element, or where memory holds it; and how a
// tensor is converted from one encoding to another.
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "tessera/ir/LayoutPlans.h"
#include "tessera/ir/Register.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

using namespace tessera;
namespace cl = llvm::cl;

static cl::OptionCategory category("tessera-layout");
static cl::opt<std::string> encodingText("encoding", cl::desc("'#ttg.blocked<{…}>' or any other encoding of ttg"),
                                         cl::Required, cl::cat(category));
static cl::opt<std::string> shapeText("shape", cl::desc("Extents, powers of two: 16x16"), cl::Required,
                                      cl::cat(category));
static cl::opt<bool> hardwareView("hardware", cl::desc("List the elements of each thread, or of memory, instead"),
                                  cl::cat(category));
static cl::opt<bool> linearForm("linear", cl::desc("Print the bases of the linear layout only"), cl::cat(category));
static cl::opt<std::string> toText("to", cl::desc("An encoding: print how a conversion, load or store to it is done"),
                                   cl::cat(category));
static cl::opt<int> wgmmaDim("wgmma", cl::desc("Print how wgmma reads this memory, summing over this dimension"),
                             cl::init(-1), cl::cat(category));
static cl::opt<unsigned> extent("extent", cl::desc("With --wgmma: m or n of the instruction"), cl::init(64),
                                cl::cat(category));
static cl::opt<unsigned> elementBytes("element-bytes", cl::desc("Size of an element in a conversion"), cl::init(4),
                                      cl::cat(category));
static cl::opt<bool> memoryTable("memory", cl::desc("With --to: also print the shared-memory offset of each element"),
                                 cl::cat(category));

/// Printed tables stay readable and cheap.
static constexpr int64_t maxElements = 1 << 16;

static std::nullopt_t fail(const llvm::Twine &message) {
  llvm::errs() << "tessera-layout: " << message << '\n';
  return std::nullopt;
}

static std::optional<llvm::SmallVector<int64_t>> parseShape(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::SmallVector<int64_t> shape;
  int64_t elements = 1;
  text.split(parts, 'x');
  for (llvm::StringRef part : parts) {
    int64_t extent = 0;
    if (part.getAsInteger(10, extent) || extent <= 0 || !llvm::isPowerOf2_64(extent))
      return fail("'" + part + "' in --shape is not a power of two; write extents as in 16x32");
    if (extent > maxElements || (elements *= extent) > maxElements)
      return fail("--shape has more than " + llvm::Twine(maxElements) + " elements");
    shape.push_back(extent);
  }
  return shape;
}

/// An encoding and its layout; says on stderr what is wrong with the text.
struct Layout {
  mlir::Attribute encoding;
  LinearLayout linear;
};
static std::optional<Layout> parseLayout(llvm::StringRef text, llvm::ArrayRef<int64_t> shape,
                                         mlir::MLIRContext &context) {
  mlir::Attribute encoding = mlir::parseAttribute(text, &context);
  if (!encoding)
    return std::nullopt; // the parser has said why
  std::optional<unsigned> rank;
  if (auto distributed = mlir::dyn_cast<ttg::DistributedEncoding>(encoding))
    rank = distributed.getRank();
  else if (auto shared = mlir::dyn_cast<ttg::SharedEncoding>(encoding))
    rank = shared.getRank();
  if (!rank)
    return fail("'" + text + "' is not an encoding of ttg");
  if (*rank != shape.size())
    return fail("'" + text + "' is for tensors of rank " + llvm::Twine(*rank) + ", --shape has rank " +
                llvm::Twine(shape.size()));
  // A tensor type checks what depends on the shape.
  auto where = [&] { return mlir::emitError(mlir::UnknownLoc::get(&context)); };
  if (auto verifiable = mlir::dyn_cast<mlir::VerifiableTensorEncoding>(encoding))
    if (mlir::failed(verifiable.verifyEncoding(shape, mlir::Float32Type::get(&context), where)))
      return std::nullopt;
  if (mlir::isa<ttg::SharedEncoding>(encoding)) {
    auto nvmma = mlir::dyn_cast<ttg::NvmmaSharedEncodingAttr>(encoding);
    mlir::Type element = mlir::IntegerType::get(&context, nvmma ? nvmma.getElementBitWidth() : 8);
    mlir::Attribute space = ttg::SharedMemorySpaceAttr::get(&context);
    if (!ttg::MemDescType::getChecked(where, &context, shape, element, encoding, space, false, shape))
      return std::nullopt;
  }
  return Layout{encoding, ttg::toLinearLayout(shape, encoding)};
}

static void print(const Layout &layout) {
  if (linearForm)
    llvm::outs() << layout.linear.str() << '\n';
  else if (hardwareView)
    llvm::outs() << renderHardware(layout.linear);
  else if (auto padded = mlir::dyn_cast<ttg::PaddedSharedEncodingAttr>(layout.encoding))
    llvm::outs() << renderTable(layout.linear, [&](uint64_t offset) { return padded.paddedOffset(offset); });
  else
    llvm::outs() << renderTable(layout.linear);
}

static bool printConversion(const LinearLayout &src, const LinearLayout &dst) {
  ConversionPlan plan = planConversion(src, dst, elementBytes);
  auto &os = llvm::outs();
  switch (plan.kind) {
  case ConversionPlan::Kind::Impossible:
    fail("the second layout needs elements that its program does not hold in the first, or other numbers of threads");
    return false;
  case ConversionPlan::Kind::Copy:
    os << "copy: every thread has its elements already\nregisters: ";
    llvm::interleaveComma(plan.registerOf, os);
    os << '\n';
    break;
  case ConversionPlan::Kind::Shuffle:
    os << fmt::format("shuffle: within warps; {} selects before, {} after\n", plan.before.size(), plan.after.size());
    for (unsigned r = 0; r < plan.sameAs.size(); ++r)
      if (plan.sameAs[r] != r)
        os << fmt::format("  register {} = register {}\n", r, plan.sameAs[r]);
      else if (auto mask = plan.xorMask(r))
        os << fmt::format("  register {} from register {} of lane ^ {}\n", r, plan.registerOf[r], *mask);
      else
        os << fmt::format("  register {} from register {}\n", r, plan.registerOf[r]);
    if (!plan.xorMask(0))
      os << "  of lane: " << plan.sourceLane.str() << '\n';
    break;
  case ConversionPlan::Kind::Shared:
    os << fmt::format("shared memory: {} bytes, {} pass{}\n", plan.scratchElements * elementBytes, plan.passes(),
                      plan.passes() == 1 ? "" : "es");
    auto side = [&](llvm::StringRef name, const LinearLayout &offsets, unsigned vec) {
      unsigned wavefronts =
          bankConflicts(offsets, LinearLayout::identity(offsets.shape(), HwDim::Offset), vec, elementBytes);
      os << fmt::format("{}: {} element{} an access, {} wavefront{} a phase\n", name.str(), vec, vec == 1 ? "" : "s",
                        wavefronts, wavefronts == 1 ? "" : "s");
    };
    side("stores", plan.store, plan.vecStore);
    side("loads", plan.load, plan.vecLoad);
    os << plan.memory.str() << '\n';
    if (memoryTable)
      os << renderTable(plan.memory);
    break;
  }
  return true;
}

/// Between registers and memory.
static void printTransfer(const LinearLayout &tile, const LinearLayout &memory, bool load) {
  auto &os = llvm::outs();
  auto plural = [](unsigned n) { return n == 1 ? "" : "s"; };
  auto access = load ? planMatrixLoad(tile, memory, elementBytes) : planMatrixStore(tile, memory, elementBytes);
  if (!access) {
    os << fmt::format("no {}: {} wavefronts by vectors\n", load ? "ldmatrix" : "stmatrix",
                      sharedLoadWavefronts(tile, memory, elementBytes, /*matrixLoad=*/false));
    return;
  }
  unsigned wavefronts = bankConflicts(*access, elementBytes);
  os << fmt::format("{}.x{}{}: {} instruction{}, {} wavefront{} a matrix\nrows at: {}\n",
                    load ? "ldmatrix" : "stmatrix", access->count, access->transposed ? ".trans" : "",
                    access->instructions.size(), plural(access->instructions.size()), wavefronts, plural(wavefronts),
                    access->rowOffset.str());
  for (const MatrixAccess::Instruction &instruction : access->instructions)
    os << fmt::format("  ^ {}: registers {}\n", instruction.offset, fmt::join(instruction.registers, ", "));
}

static bool printWgmma(const LinearLayout &memory) {
  auto operand = wgmmaDim > 1 || !llvm::isPowerOf2_32(extent)
                     ? std::nullopt
                     : planWarpGroupOperand(memory, wgmmaDim, extent, elementBytes);
  if (!operand) {
    fail("wgmma cannot read this memory along dimension " + llvm::Twine(wgmmaDim));
    return false;
  }
  llvm::outs() << fmt::format("{}-major, swizzle {}, leading {}, stride {} (bytes)\n", operand->transposed ? "MN" : "K",
                              operand->swizzleBytes, operand->leadingBytes, operand->strideBytes);
  llvm::SmallVector<int64_t> at(2), step(2, extent);
  step[wgmmaDim] = 32 / elementBytes;
  for (at[0] = 0; at[0] < memory.shape()[0]; at[0] += step[0])
    for (at[1] = 0; at[1] < memory.shape()[1]; at[1] += step[1])
      llvm::outs() << fmt::format("  ({},{}): {}\n", at[0], at[1], operand->startBytes(at));
  return true;
}

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Tessera: what an encoding means\n");
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto shape = parseShape(shapeText);
  if (!shape)
    return 1;
  auto layout = parseLayout(encodingText, *shape, context);
  if (!layout)
    return 1;
  if (toText.empty() && wgmmaDim < 0) {
    print(*layout);
    return 0;
  }
  if (!llvm::is_contained({1u, 2u, 4u, 8u}, elementBytes.getValue())) {
    fail("--element-bytes is 1, 2, 4 or 8");
    return 1;
  }
  bool fromMemory = layout->linear.has(HwDim::Offset);
  if (wgmmaDim >= 0) {
    if (fromMemory && shape->size() == 2)
      return printWgmma(layout->linear) ? 0 : 1;
    fail("--wgmma is for the encoding of two-dimensional memory");
    return 1;
  }
  auto to = parseLayout(toText, *shape, context);
  if (!to)
    return 1;
  bool toMemory = to->linear.has(HwDim::Offset);
  if (fromMemory && toMemory) {
    fail("one of the two encodings is of registers");
    return 1;
  }
  if (fromMemory || toMemory) {
    printTransfer((fromMemory ? to : layout)->linear, (fromMemory ? layout : to)->linear, fromMemory);
    return 0;
  }
  return printConversion(layout->linear, to->linear) ? 0 : 1;
}
