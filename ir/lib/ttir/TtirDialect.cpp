// Dialect tt: types, functions and calls, inlining. Verifiers of the tile operations are in TtirOps.cpp, folders in
// TtirFold.cpp.
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Interfaces/FoldInterfaces.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "tessera/ir/ttir/Ttir.h"
#include "llvm/ADT/TypeSwitch.h"

#include "tessera/ir/ttir/TtirDialect.cpp.inc"
#include "tessera/ir/ttir/TtirEnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "tessera/ir/ttir/TtirTypes.cpp.inc"
#define GET_OP_CLASSES
#include "tessera/ir/ttir/TtirOps.cpp.inc"

using namespace mlir;

namespace tessera::tt {

namespace {

struct Inlining : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *call, Operation *callable, bool) const final {
    auto noinline = callable->getAttrOfType<BoolAttr>("noinline");
    return !noinline || !noinline.getValue();
  }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final { return true; }
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final { return true; }
  void handleTerminator(Operation *op, Block *next) const final {
    if (auto ret = dyn_cast<ReturnOp>(op)) {
      OpBuilder builder(op);
      cf::BranchOp::create(builder, op->getLoc(), next, ret.getSrcs());
      op->erase();
    }
  }
  void handleTerminator(Operation *op, ValueRange replaced) const final {
    for (auto [from, to] : llvm::zip(replaced, op->getOperands()))
      from.replaceAllUsesWith(to);
  }
};

/// Keeps constants made inside a combining region there: the region is inlined into scalar code.
struct Folding : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(Region *region) const final { return isa<ReduceOp>(region->getParentOp()); }
};

} // namespace

void TTDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "tessera/ir/ttir/TtirTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "tessera/ir/ttir/TtirOps.cpp.inc"
      >();
  addInterfaces<Inlining, Folding>();
}

Operation *TTDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

LogicalResult PointerType::verify(function_ref<InFlightDiagnostic()> emitError, Type pointee, int addressSpace) {
  if (!isa<FloatType, PointerType>(pointee) && !pointee.isSignlessInteger())
    return emitError() << "a pointer points to a float, a signless integer or a pointer, not to " << pointee;
  // tf32, i7 or f128 are values at most: layouts and vector accesses count elements of memory in powers of two.
  unsigned bits = isa<PointerType>(pointee) ? 64 : pointee.getIntOrFloatBitWidth();
  if (!pointee.isInteger(1) && (bits < 8 || bits > 64 || !llvm::isPowerOf2_32(bits)))
    return emitError() << "elements in memory have 8, 16, 32 or 64 bits (or are i1), not " << bits << " as " << pointee;
  if (addressSpace < 0)
    return emitError() << "an address space is not negative";
  return success();
}

// ---- types ----------------------------------------------------------------------------------------------------------

Type withElementType(Type type, Type element) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile ? RankedTensorType::get(tile.getShape(), element, tile.getEncoding()) : element;
}

Type pointeeLike(Type type) {
  auto pointer = dyn_cast<PointerType>(getElementTypeOrSelf(type));
  return pointer ? withElementType(type, pointer.getPointeeType()) : type;
}

Type boolLike(Type type) { return withElementType(type, IntegerType::get(type.getContext(), 1)); }

unsigned bitWidth(Type scalar) {
  if (isa<PointerType>(scalar))
    return 64;
  return scalar.isIntOrFloat() ? scalar.getIntOrFloatBitWidth() : 0;
}

bool isFloat8(Type scalar) {
  return isa<Float8E4M3FNType, Float8E5M2Type, Float8E4M3FNUZType, Float8E5M2FNUZType>(scalar);
}

// ---- functions ------------------------------------------------------------------------------------------------------

void FuncOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type,
                   ArrayRef<NamedAttribute> attrs, ArrayRef<DictionaryAttr> argAttrs) {
  state.addAttribute(getSymNameAttrName(state.name), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.attributes.append(attrs.begin(), attrs.end());
  state.addRegion();
  if (!argAttrs.empty())
    call_interface_impl::addArgAndResultAttrs(builder, state, argAttrs, {}, getArgAttrsAttrName(state.name),
                                              getResAttrsAttrName(state.name));
}

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &state) {
  auto functionType = [](Builder &builder, ArrayRef<Type> args, ArrayRef<Type> results,
                         function_interface_impl::VariadicFlag,
                         std::string &) { return builder.getFunctionType(args, results); };
  return function_interface_impl::parseFunctionOp(parser, state, /*allowVariadic=*/false,
                                                  getFunctionTypeAttrName(state.name), functionType,
                                                  getArgAttrsAttrName(state.name), getResAttrsAttrName(state.name));
}

void FuncOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
                                           getArgAttrsAttrName(), getResAttrsAttrName());
}

LogicalResult FuncOp::verify() {
  for (unsigned i = 0; i < getNumArguments(); ++i)
    if (auto divisibility = getArgAttr(i, "tt.divisibility")) {
      auto value = dyn_cast<IntegerAttr>(divisibility);
      if (!value || value.getValue().getSExtValue() <= 0)
        return emitOpError() << "tt.divisibility of argument " << i << " must be a positive integer";
    }
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto function = symbols.lookupNearestSymbolFrom<FuncOp>(*this, getCalleeAttr());
  if (!function)
    return emitOpError() << "calls '" << getCallee() << "', which is not a tt.func of this module";
  FunctionType type = function.getFunctionType();
  if (type.getInputs() != TypeRange(getOperands()))
    return emitOpError() << "passes " << TypeRange(getOperands()) << " where '" << getCallee() << "' takes "
                         << type.getInputs();
  if (type.getResults() != TypeRange(getResultTypes()))
    return emitOpError() << "expects " << TypeRange(getResultTypes()) << " where '" << getCallee() << "' returns "
                         << type.getResults();
  return success();
}

LogicalResult ReturnOp::verify() {
  auto function = cast<FuncOp>((*this)->getParentOp());
  if (function.getFunctionType().getResults() != TypeRange(getSrcs()))
    return emitOpError() << "returns " << TypeRange(getSrcs()) << " where '" << function.getSymName()
                         << "' is declared to return " << function.getFunctionType().getResults();
  return success();
}

} // namespace tessera::tt
