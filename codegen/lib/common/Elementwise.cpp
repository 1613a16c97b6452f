// Elementwise operations: the same instruction for every register. What the IR leaves undefined and the language
// defines (division by zero, long shifts, float to integer out of range) is defined here, once for all targets.
#include "Emitter.h"
#include "Vendors.h"

#include "mlir/Dialect/UB/IR/UBOps.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/MDBuilder.h"

namespace tessera::codegen {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
namespace arith = mlir::arith;
namespace Intrinsic = llvm::Intrinsic;

LogicalResult Emitter::mapLanes(mlir::Operation *op, llvm::function_ref<V(llvm::ArrayRef<V>)> fn) {
  unsigned count = numValues(op->getResult(0).getType());
  bool lanes = scalarsAreLanes || isTensor(op->getResult(0));
  llvm::SmallVector<Lanes, 3> operands;
  for (mlir::Value operand : op->getOperands()) {
    operands.push_back(lanes ? getAsLanes(operand, count) : Lanes(get(operand)));
    if (operands.back().size() != count)
      return op->emitOpError("has operands in different layouts");
  }
  // A mask that is known to be equal over groups of registers is computed once a group.
  unsigned group = 1;
  if (isTensor(op->getResult(0)) && scalarType(op->getResult(0).getType())->isIntegerTy(1))
    group = axisInfo.maskAlignment(op->getResult(0));
  Lanes results;
  llvm::SmallVector<V, 3> args(operands.size()), last;
  for (unsigned r = 0; r < count; ++r) {
    if (r % group) {
      results.push_back(results.back());
      continue;
    }
    for (auto [arg, list] : llvm::zip_equal(args, operands))
      arg = list[r];
    // Splats and copies have the same operands in every register: compute once.
    results.push_back(r && args == last ? results.back() : fn(args));
    last = args;
  }
  set(op->getResult(0), std::move(results));
  return success();
}

static V constantLike(V v, uint64_t value) { return llvm::ConstantInt::get(v->getType(), value, /*IsSigned=*/true); }

/// Truncating division; x / 0 is 0 with remainder x, and the most negative number over -1 wraps.
V Emitter::divide(V a, V c, bool isSigned, bool remainder) {
  auto emit = [&](V divisor) {
    return isSigned ? (remainder ? b.CreateSRem(a, divisor) : b.CreateSDiv(a, divisor))
                    : (remainder ? b.CreateURem(a, divisor) : b.CreateUDiv(a, divisor));
  };
  V zero = constantLike(c, 0), one = constantLike(c, 1);
  V onZero = remainder ? a : zero;
  V isZero = b.CreateICmpEQ(c, zero);
  if (!isSigned)
    return b.CreateSelect(isZero, onZero, emit(b.CreateSelect(isZero, one, c)));
  // 0 and -1 are the two divisors below 2 after adding one, unsigned.
  V special = b.CreateICmpULT(b.CreateAdd(c, one), constantLike(c, 2));
  V onMinusOne = remainder ? zero : b.CreateNeg(a);
  return b.CreateSelect(special, b.CreateSelect(isZero, onZero, onMinusOne), emit(b.CreateSelect(special, one, c)));
}

V Emitter::floatToInt(V v, llvm::Type *to, bool isSigned) {
  if (V own = target.floatToInt(b, v, to, isSigned))
    return own;
  return b.CreateIntrinsic(to, isSigned ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat, {v});
}

V Emitter::truncateFloat(V v, llvm::Type *to, bool towardZero) {
  V nearest = b.CreateFPTrunc(v, to);
  if (!towardZero)
    return nearest;
  // One step back towards zero where rounding to nearest went away from it; infinities and NaN compare false.
  V back = b.CreateFPExt(nearest, v->getType());
  V away = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(Intrinsic::fabs, back), b.CreateUnaryIntrinsic(Intrinsic::fabs, v));
  llvm::Type *bits = llvm::Type::getIntNTy(b.getContext(), to->getScalarSizeInBits());
  if (auto *vector = llvm::dyn_cast<llvm::VectorType>(to))
    bits = llvm::VectorType::get(bits, vector->getElementCount());
  V asInt = b.CreateBitCast(nearest, bits);
  return b.CreateBitCast(b.CreateSub(asInt, b.CreateZExt(away, bits)), to);
}

V Emitter::math(MathFn fn, llvm::ArrayRef<V> args, bool precise) {
  llvm::Type *type = args.front()->getType(), *scalar = type->getScalarType();
  bool narrow = scalar->isHalfTy() || scalar->isBFloatTy();
  if (!narrow || target.hasNative(fn, scalar))
    return target.math(b, fn, args, precise);
  llvm::Type *wide = b.getFloatTy();
  if (auto *vector = llvm::dyn_cast<llvm::VectorType>(type))
    wide = llvm::VectorType::get(wide, vector->getElementCount());
  llvm::SmallVector<V, 3> widened;
  for (V arg : args)
    widened.push_back(b.CreateFPExt(arg, wide));
  return b.CreateFPTrunc(target.math(b, fn, widened, precise), type);
}

/// A function of its own that takes any argument: the fast form in its range, the precise one outside.
llvm::Function *Emitter::mathAnywhere(MathFn fn, llvm::ArrayRef<V> like) {
  llvm::SmallVector<llvm::Type *, 2> types;
  for (V v : like)
    types.push_back(v->getType());
  std::string name;
  llvm::raw_string_ostream(name) << "tessera.math." << unsigned(fn) << '.' << *types.front();
  if (llvm::Function *known = llvmModule.getFunction(name))
    return known;
  auto *f = llvm::Function::Create(llvm::FunctionType::get(types.front(), types, false),
                                   llvm::GlobalValue::InternalLinkage, name, llvmModule);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "", f));
  b.SetCurrentDebugLocation({});
  llvm::SmallVector<V, 2> args(llvm::make_pointer_range(f->args()));
  V outside = target.outOfFastRange(b, fn, args);
  b.CreateRet(b.CreateSelect(outside, math(fn, args, /*precise=*/true), math(fn, args, /*precise=*/false)));
  return f;
}

LogicalResult Emitter::emitMathFn(mlir::Operation *op, MathFn fn, bool precise) {
  auto straight = [&] { return mapLanes(op, [&](llvm::ArrayRef<V> a) { return math(fn, a, precise); }); };
  if (precise)
    return straight();
  V outside = nullptr;
  llvm::SmallVector<V, 2> like;
  auto test = [&](llvm::ArrayRef<V> a) {
    if (V is = target.outOfFastRange(b, fn, a)) {
      outside = outside ? b.CreateOr(outside, is) : is;
      like.assign(a.begin(), a.end());
    }
    return a.front();
  };
  if (failed(mapLanes(op, test)))
    return failure();
  if (!outside)
    return straight();
  // One branch for all registers: the usual path stays straight, the other may take its time.
  llvm::BasicBlock *inRange = newBlock("in.range"), *anywhere = newBlock("anywhere"), *joined = newBlock("joined");
  b.CreateCondBr(outside, anywhere, inRange, llvm::MDBuilder(b.getContext()).createUnlikelyBranchWeights());
  llvm::SmallVector<std::pair<Lanes, llvm::BasicBlock *>, 2> ways;
  auto finish = [&](LogicalResult done) {
    ways.emplace_back(Lanes(get(op->getResult(0))), b.GetInsertBlock());
    b.CreateBr(joined);
    return done;
  };
  b.SetInsertPoint(inRange);
  if (failed(finish(straight())))
    return failure();
  b.SetInsertPoint(anywhere);
  llvm::Function *slow = mathAnywhere(fn, like);
  if (failed(finish(mapLanes(op, [&](llvm::ArrayRef<V> a) { return b.CreateCall(slow, a); }))))
    return failure();
  b.SetInsertPoint(joined);
  auto phis = createPhis(op->getResultTypes(), ways.size());
  for (auto &[results, from] : ways)
    addIncoming(phis, results, from);
  bindPhis(op->getResults(), phis);
  return success();
}

LogicalResult Emitter::emitConstant(mlir::Operation *op, mlir::Attribute value) {
  mlir::Type type = op->getResult(0).getType();
  if (auto dense = mlir::dyn_cast<mlir::DenseElementsAttr>(value)) {
    if (!dense.isSplat())
      return op->emitOpError("a tile constant must have one value everywhere");
    value = dense.getSplatValue<mlir::Attribute>();
  }
  llvm::Constant *scalar = nullptr;
  if (auto integer = mlir::dyn_cast<mlir::IntegerAttr>(value))
    scalar = llvm::ConstantInt::get(scalarType(type),
                                    integer.getValue().sextOrTrunc(scalarType(type)->getIntegerBitWidth()));
  else if (auto number = mlir::dyn_cast<mlir::FloatAttr>(value))
    scalar = scalarType(type)->isIntegerTy() // fp8
                 ? llvm::Constant::getIntegerValue(scalarType(type), number.getValue().bitcastToAPInt())
                 : llvm::ConstantFP::get(scalarType(type), number.getValue());
  if (!scalar)
    return op->emitOpError("has a constant that cannot be lowered");
  bool lanes = scalarsAreLanes || isTensor(op->getResult(0));
  set(op->getResult(0), Lanes(numValues(type), lanes ? target.splat(b, scalar) : scalar));
  return success();
}

/// The function that `name` is in every math library.
static std::optional<MathFn> functionNamed(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<MathFn>>(name)
      .Case("exp", MathFn::Exp)
      .Case("exp2", MathFn::Exp2)
      .Case("log", MathFn::Log)
      .Case("log2", MathFn::Log2)
      .Case("log10", MathFn::Log10)
      .Case("sqrt", MathFn::Sqrt)
      .Case("rsqrt", MathFn::Rsqrt)
      .Case("sin", MathFn::Sin)
      .Case("cos", MathFn::Cos)
      .Case("tan", MathFn::Tan)
      .Case("tanh", MathFn::Tanh)
      .Case("erf", MathFn::Erf)
      .Case("pow", MathFn::Pow)
      .Case("floor", MathFn::Floor)
      .Case("ceil", MathFn::Ceil)
      .Case("trunc", MathFn::Trunc)
      .Case("round", MathFn::Round)
      .Case("fma", MathFn::Fma)
      .Case("fabs", MathFn::Abs)
      .Default(std::nullopt);
}

LogicalResult Emitter::emitExternCall(tt::ExternElementwiseOp op) {
  // Triton reaches functions that math lacks by the names of vendors' libraries. They mean the same on every target here.
  mlir::Type element = mlir::getElementTypeOrSelf(op.getType());
  unsigned bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  for (const Vendor *vendor : vendors()) {
    std::string_view symbol = op.getSymbol();
    bool own = symbol.starts_with(vendor->libraryPrefix);
    if (!op.getLibpath().empty() || !own)
      continue;
    bool alike = llvm::all_of(op->getOperandTypes(), [&](auto t) { return mlir::getElementTypeOrSelf(t) == element; });
    auto called = mlir::isa<mlir::FloatType>(element) ? vendor->libraryFunction(symbol, bits) : std::nullopt;
    if (called && called->name == "rint" && alike && op->getNumOperands() == 1)
      return mapLanes(op, [&](auto a) { return b.CreateUnaryIntrinsic(Intrinsic::roundeven, a[0]); });
    auto known = called ? functionNamed(called->name) : std::nullopt;
    unsigned operands = !known ? 0 : *known == MathFn::Pow ? 2 : *known == MathFn::Fma ? 3 : 1;
    if (!known || !alike || op->getNumOperands() != operands)
      return op.emitOpError() << "calls '" << op.getSymbol()
                              << "', which the math library does not have with these types; libpath may name a bitcode "
                                 "file that has it";
    return emitMathFn(op, *known, called->precise);
  }
  if (!isSymbolName(op.getSymbol()))
    return op.emitOpError() << "calls '" << op.getSymbol() << "', which is no name of a function";
  if (std::string path = op.getLibpath().str(); !path.empty() && !llvm::is_contained(libraryPaths, path))
    libraryPaths.push_back(path);
  llvm::SmallVector<llvm::Type *> types;
  for (mlir::Value operand : op->getOperands())
    types.push_back(scalarType(operand.getType()));
  auto callee = llvmModule.getOrInsertFunction(
      op.getSymbol(), llvm::FunctionType::get(scalarType(op.getType()), types, /*isVarArg=*/false));
  if (op.getPure())
    if (auto *declared = llvm::dyn_cast<llvm::Function>(callee.getCallee()))
      declared->setDoesNotAccessMemory();
  return mapLanes(op, [&](llvm::ArrayRef<V> args) -> V {
    auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(valueType(op.getType()));
    if (!vector)
      return b.CreateCall(callee, args);
    V result = llvm::PoisonValue::get(vector); // every element is set below
    for (unsigned l = 0; l < vector->getNumElements(); ++l) {
      llvm::SmallVector<V, 3> one;
      for (V arg : args)
        one.push_back(b.CreateExtractElement(arg, l));
      result = b.CreateInsertElement(result, b.CreateCall(callee, one), l);
    }
    return result;
  });
}

/// Why LLVM would end the process over `text`, or nothing: its printer takes "$N", "${N:modifier}" and "$$" and calls every
/// other use of the sign a fatal error.
static std::optional<std::string> badAssembly(llvm::StringRef text, uint64_t operands) {
  for (size_t dollar = text.find('$'); dollar != text.npos; dollar = text.find('$')) {
    text = text.drop_front(dollar + 1);
    if (text.consume_front("$"))
      continue;
    bool braces = text.consume_front("{");
    uint64_t number = 0;
    if (text.consumeInteger(10, number))
      return "has '$' before '" + text.take_front(1).str() + "' in its assembly: write $N, ${N:modifier} or $$";
    if (number >= operands)
      return "names operand $" + std::to_string(number) + " in its assembly, but its operands are $0 to $" +
             std::to_string(operands - 1);
    if (!braces)
      continue;
    if (text.consume_front(":"))
      text = text.drop_while([](char c) { return llvm::isAlnum(c); });
    if (!text.consume_front("}"))
      return "does not close '${" + std::to_string(number) + "' in its assembly";
  }
  return std::nullopt;
}

/// Triton's form: every call handles packed_element elements of each argument, narrow ones packed into 32-bit
/// registers.
LogicalResult Emitter::emitInlineAsm(tt::ElementwiseInlineAsmOp op) {
  if (!target.supportsInlineAsm())
    return op.emitOpError("target assembly needs a GPU target");
  unsigned pack = op.getPackedElement();
  unsigned count = numValues(op->getResult(0).getType());
  llvm::SmallVector<Lanes> operands;
  for (mlir::Value operand : op.getArgs())
    operands.push_back(getAsLanes(operand, count));
  // How `pack` elements of a type travel: words of `perWord` elements.
  auto perWord = [&](llvm::Type *type) {
    return type->isPointerTy() ? 1u : std::max(1u, std::min(pack, 32 / type->getScalarSizeInBits()));
  };
  auto wordType = [&](llvm::Type *type) -> llvm::Type * {
    unsigned n = perWord(type);
    return n == 1 ? type : b.getIntNTy(n * type->getScalarSizeInBits());
  };
  llvm::SmallVector<llvm::Type *> resultWords;
  for (mlir::Type type : op.getResultTypes())
    for (unsigned i = 0; i < pack; i += perWord(scalarType(type)))
      resultWords.push_back(wordType(scalarType(type)));
  llvm::Type *returned =
      resultWords.size() == 1 ? resultWords.front() : llvm::StructType::get(b.getContext(), resultWords);
  llvm::SmallVector<Lanes> results(op->getNumResults());
  for (unsigned r = 0; r < count; r += pack) {
    llvm::SmallVector<V> words;
    llvm::SmallVector<llvm::Type *> types;
    for (Lanes &list : operands) {
      llvm::Type *type = list.front()->getType();
      unsigned n = perWord(type);
      for (unsigned i = 0; i < pack; i += n) {
        V word = list[std::min(r + i, count - 1)];
        if (n > 1) {
          V vector = llvm::PoisonValue::get(llvm::FixedVectorType::get(type, n));
          for (unsigned k = 0; k < n; ++k)
            vector = b.CreateInsertElement(vector, list[std::min(r + i + k, count - 1)], k);
          word = b.CreateBitCast(vector, wordType(type));
        }
        words.push_back(word);
        types.push_back(word->getType());
      }
    }
    auto *type = llvm::FunctionType::get(returned, types, false);
    if (auto error = llvm::InlineAsm::verify(type, op.getConstraints()))
      return op.emitOpError() << "has bad constraints: " << llvm::toString(std::move(error));
    if (auto reason = badAssembly(op.getAsmString(), resultWords.size() + words.size()))
      return op.emitOpError() << *reason;
    V call =
        b.CreateCall(type, llvm::InlineAsm::get(type, op.getAsmString(), op.getConstraints(), !op.getPure()), words);
    unsigned word = 0;
    for (auto [list, resultType] : llvm::zip_equal(results, op.getResultTypes())) {
      llvm::Type *element = scalarType(resultType);
      unsigned n = perWord(element);
      for (unsigned i = 0; i < pack; i += n, ++word) {
        V value = resultWords.size() == 1 ? call : b.CreateExtractValue(call, word);
        V vector = n > 1 ? b.CreateBitCast(value, llvm::FixedVectorType::get(element, n)) : nullptr;
        for (unsigned k = 0; k < n && list.size() < count; ++k)
          list.push_back(vector ? b.CreateExtractElement(vector, k) : value);
      }
    }
  }
  for (auto [result, list] : llvm::zip_equal(op->getResults(), results))
    set(result, std::move(list));
  return success();
}

std::optional<std::pair<MathFn, bool>> mathFunction(mlir::Operation *op, bool precise) {
  namespace math = mlir::math;
  auto fn = llvm::TypeSwitch<mlir::Operation *, std::optional<MathFn>>(op)
                .Case<math::ExpOp>([](auto) { return MathFn::Exp; })
                .Case<math::Exp2Op>([](auto) { return MathFn::Exp2; })
                .Case<math::LogOp>([](auto) { return MathFn::Log; })
                .Case<math::Log2Op>([](auto) { return MathFn::Log2; })
                .Case<math::Log10Op>([](auto) { return MathFn::Log10; })
                .Case<math::SqrtOp>([](auto) { return MathFn::Sqrt; })
                .Case<math::RsqrtOp>([](auto) { return MathFn::Rsqrt; })
                .Case<math::SinOp>([](auto) { return MathFn::Sin; })
                .Case<math::CosOp>([](auto) { return MathFn::Cos; })
                .Case<math::TanOp>([](auto) { return MathFn::Tan; })
                .Case<math::TanhOp>([](auto) { return MathFn::Tanh; })
                .Case<math::ErfOp>([](auto) { return MathFn::Erf; })
                .Case<math::PowFOp>([](auto) { return MathFn::Pow; })
                .Case<math::FloorOp>([](auto) { return MathFn::Floor; })
                .Case<math::CeilOp>([](auto) { return MathFn::Ceil; })
                .Case<math::TruncOp>([](auto) { return MathFn::Trunc; })
                .Case<math::RoundOp>([](auto) { return MathFn::Round; })
                .Case<math::FmaOp>([](auto) { return MathFn::Fma; })
                .Case<math::AbsFOp>([](auto) { return MathFn::Abs; })
                .Case<arith::DivFOp>([](auto) { return MathFn::Div; })
                .Case<tt::PreciseSqrtOp>([&](auto) {
                  precise = true;
                  return MathFn::Sqrt;
                })
                .Case<tt::PreciseDivFOp>([&](auto) {
                  precise = true;
                  return MathFn::Div;
                })
                .Default([](auto) { return std::nullopt; });
  return fn ? std::optional(std::pair(*fn, precise)) : std::nullopt;
}

std::optional<LogicalResult> Emitter::emitMath(mlir::Operation *op) {
  namespace math = mlir::math;
  if (auto fn = mathFunction(op, options.precise_math))
    return emitMathFn(op, fn->first, fn->second);
  auto unary = [&](Intrinsic::ID id) {
    return mapLanes(op, [&, id](llvm::ArrayRef<V> a) { return b.CreateUnaryIntrinsic(id, a[0]); });
  };
  return llvm::TypeSwitch<mlir::Operation *, std::optional<LogicalResult>>(op)
      .Case<math::RoundEvenOp>([&](auto) { return unary(Intrinsic::roundeven); })
      .Case<math::CtPopOp>([&](auto) { return unary(Intrinsic::ctpop); })
      .Case<math::CountLeadingZerosOp>([&](auto) {
        return mapLanes(
            op, [&](llvm::ArrayRef<V> a) { return b.CreateBinaryIntrinsic(Intrinsic::ctlz, a[0], b.getFalse()); });
      })
      .Case<math::AbsIOp>([&](auto) {
        return mapLanes(
            op, [&](llvm::ArrayRef<V> a) { return b.CreateBinaryIntrinsic(Intrinsic::abs, a[0], b.getFalse()); });
      })
      .Case<math::CopySignOp>([&](auto) {
        return mapLanes(op,
                        [&](llvm::ArrayRef<V> a) { return b.CreateBinaryIntrinsic(Intrinsic::copysign, a[0], a[1]); });
      })
      .Default([](auto) { return std::nullopt; });
}

static llvm::CmpInst::Predicate predicate(arith::CmpIPredicate p) {
  using P = arith::CmpIPredicate;
  switch (p) {
  case P::eq: return llvm::CmpInst::ICMP_EQ;
  case P::ne: return llvm::CmpInst::ICMP_NE;
  case P::slt: return llvm::CmpInst::ICMP_SLT;
  case P::sle: return llvm::CmpInst::ICMP_SLE;
  case P::sgt: return llvm::CmpInst::ICMP_SGT;
  case P::sge: return llvm::CmpInst::ICMP_SGE;
  case P::ult: return llvm::CmpInst::ICMP_ULT;
  case P::ule: return llvm::CmpInst::ICMP_ULE;
  case P::ugt: return llvm::CmpInst::ICMP_UGT;
  case P::uge: return llvm::CmpInst::ICMP_UGE;
  }
  return llvm::CmpInst::BAD_ICMP_PREDICATE;
}

static llvm::CmpInst::Predicate predicate(arith::CmpFPredicate p) {
  using P = arith::CmpFPredicate;
  switch (p) {
  case P::AlwaysFalse: return llvm::CmpInst::FCMP_FALSE;
  case P::OEQ: return llvm::CmpInst::FCMP_OEQ;
  case P::OGT: return llvm::CmpInst::FCMP_OGT;
  case P::OGE: return llvm::CmpInst::FCMP_OGE;
  case P::OLT: return llvm::CmpInst::FCMP_OLT;
  case P::OLE: return llvm::CmpInst::FCMP_OLE;
  case P::ONE: return llvm::CmpInst::FCMP_ONE;
  case P::ORD: return llvm::CmpInst::FCMP_ORD;
  case P::UEQ: return llvm::CmpInst::FCMP_UEQ;
  case P::UGT: return llvm::CmpInst::FCMP_UGT;
  case P::UGE: return llvm::CmpInst::FCMP_UGE;
  case P::ULT: return llvm::CmpInst::FCMP_ULT;
  case P::ULE: return llvm::CmpInst::FCMP_ULE;
  case P::UNE: return llvm::CmpInst::FCMP_UNE;
  case P::UNO: return llvm::CmpInst::FCMP_UNO;
  case P::AlwaysTrue: return llvm::CmpInst::FCMP_TRUE;
  }
  return llvm::CmpInst::BAD_FCMP_PREDICATE;
}

/// Whether `op` would compute with 8-bit floats, which can only be moved, converted and multiplied by a dot.
static bool computesWithFp8(mlir::Operation *op) {
  if (!mlir::isa<arith::ArithDialect, mlir::math::MathDialect>(op->getDialect()) &&
      !mlir::isa<tt::ClampFOp, tt::PreciseSqrtOp, tt::PreciseDivFOp>(op))
    return false;
  auto isFp8 = [](mlir::Type type) { return tt::isFloat8(mlir::getElementTypeOrSelf(type)); };
  return (llvm::any_of(op->getOperandTypes(), isFp8) || llvm::any_of(op->getResultTypes(), isFp8)) &&
         !mlir::isa<arith::ConstantOp, arith::SelectOp, arith::BitcastOp, arith::ExtFOp, arith::TruncFOp>(op);
}

std::optional<LogicalResult> Emitter::emitElementwise(mlir::Operation *op) {
  using Args = llvm::ArrayRef<V>;
  if (computesWithFp8(op))
    return op->emitOpError("computes with 8-bit floats: convert them with tt.fp_to_fp first");
  if (op->getNumResults() == 1 && op->getNumRegions() == 0)
    if (auto result = emitMath(op))
      return result;
  auto binary = [&](llvm::Instruction::BinaryOps opcode) {
    return mapLanes(op, [&, opcode](Args a) { return b.CreateBinOp(opcode, a[0], a[1]); });
  };
  auto intrinsic = [&](Intrinsic::ID id) {
    return mapLanes(op, [&, id](Args a) { return b.CreateBinaryIntrinsic(id, a[0], a[1]); });
  };
  auto cast = [&](llvm::Instruction::CastOps opcode) {
    llvm::Type *to = valueType(op->getResult(0).getType());
    return mapLanes(op, [&, opcode, to](Args a) { return b.CreateCast(opcode, a[0], to); });
  };
  // Shifts by the width or more: all bits leave.
  auto shift = [&](llvm::Instruction::BinaryOps opcode) {
    return mapLanes(op, [&, opcode](Args a) -> V {
      unsigned width = a[0]->getType()->getScalarSizeInBits();
      if (opcode == llvm::Instruction::AShr)
        return b.CreateAShr(a[0], b.CreateBinaryIntrinsic(Intrinsic::umin, a[1], constantLike(a[1], width - 1)));
      // Masked, not selected: the unused side is no poison, and a back end of LLVM 22 does not take a 64-bit amount for its
      // low word, as it does where it finds select(amount < 64, x << amount, 0).
      V inside = b.CreateICmpULT(a[1], constantLike(a[1], width));
      V amount = b.CreateAnd(a[1], constantLike(a[1], width - 1));
      return b.CreateSelect(inside, b.CreateBinOp(opcode, a[0], amount), constantLike(a[0], 0));
    });
  };
  auto division = [&](bool isSigned, bool remainder) {
    return mapLanes(op, [&, isSigned, remainder](Args a) { return divide(a[0], a[1], isSigned, remainder); });
  };
  auto toInt = [&](bool isSigned) {
    llvm::Type *to = valueType(op->getResult(0).getType());
    return mapLanes(op, [&, to, isSigned](Args a) { return floatToInt(a[0], to, isSigned); });
  };
  auto extendedProduct = [&](bool isSigned) {
    // Two results: low and high half.
    auto low = get(op->getOperand(0)), other = get(op->getOperand(1));
    Lanes lows, highs;
    for (auto [x, y] : llvm::zip_equal(low, other)) {
      unsigned width = x->getType()->getScalarSizeInBits();
      llvm::Type *wide = x->getType()->getExtendedType();
      V product = isSigned ? b.CreateMul(b.CreateSExt(x, wide), b.CreateSExt(y, wide))
                           : b.CreateMul(b.CreateZExt(x, wide), b.CreateZExt(y, wide));
      lows.push_back(b.CreateMul(x, y));
      highs.push_back(b.CreateTrunc(b.CreateLShr(product, width), x->getType()));
    }
    set(op->getResult(0), lows);
    set(op->getResult(1), highs);
    return success();
  };

  using I = llvm::Instruction;
  return llvm::TypeSwitch<mlir::Operation *, std::optional<LogicalResult>>(op)
      .Case<arith::ConstantOp>([&](auto o) { return emitConstant(o, o.getValue()); })
      .Case<arith::AddIOp>([&](auto) { return binary(I::Add); })
      .Case<arith::SubIOp>([&](auto) { return binary(I::Sub); })
      .Case<arith::MulIOp>([&](auto) { return binary(I::Mul); })
      .Case<arith::AndIOp>([&](auto) { return binary(I::And); })
      .Case<arith::OrIOp>([&](auto) { return binary(I::Or); })
      .Case<arith::XOrIOp>([&](auto) { return binary(I::Xor); })
      .Case<arith::DivSIOp>([&](auto) { return division(true, false); })
      .Case<arith::DivUIOp>([&](auto) { return division(false, false); })
      .Case<arith::RemSIOp>([&](auto) { return division(true, true); })
      .Case<arith::RemUIOp>([&](auto) { return division(false, true); })
      .Case<arith::ShLIOp>([&](auto) { return shift(I::Shl); })
      .Case<arith::ShRUIOp>([&](auto) { return shift(I::LShr); })
      .Case<arith::ShRSIOp>([&](auto) { return shift(I::AShr); })
      .Case<arith::MinSIOp>([&](auto) { return intrinsic(Intrinsic::smin); })
      .Case<arith::MinUIOp>([&](auto) { return intrinsic(Intrinsic::umin); })
      .Case<arith::MaxSIOp>([&](auto) { return intrinsic(Intrinsic::smax); })
      .Case<arith::MaxUIOp>([&](auto) { return intrinsic(Intrinsic::umax); })
      .Case<arith::AddFOp>([&](auto) { return binary(I::FAdd); })
      .Case<arith::SubFOp>([&](auto) { return binary(I::FSub); })
      .Case<arith::MulFOp>([&](auto) { return binary(I::FMul); })
      .Case<arith::RemFOp>([&](auto) { return binary(I::FRem); })
      .Case<arith::NegFOp>([&](auto) { return mapLanes(op, [&](Args a) { return b.CreateFNeg(a[0]); }); })
      .Case<arith::MaxNumFOp>([&](auto) { return intrinsic(Intrinsic::maxnum); })
      .Case<arith::MinNumFOp>([&](auto) { return intrinsic(Intrinsic::minnum); })
      .Case<arith::MaximumFOp>([&](auto) { return intrinsic(Intrinsic::maximum); })
      .Case<arith::MinimumFOp>([&](auto) { return intrinsic(Intrinsic::minimum); })
      .Case<arith::MulUIExtendedOp>([&](auto) { return extendedProduct(false); })
      .Case<arith::MulSIExtendedOp>([&](auto) { return extendedProduct(true); })
      .Case<tt::MulhiUIOp>([&](auto) {
        return mapLanes(op, [&](Args a) {
          llvm::Type *wide = a[0]->getType()->getExtendedType();
          V product = b.CreateMul(b.CreateZExt(a[0], wide), b.CreateZExt(a[1], wide));
          return b.CreateTrunc(b.CreateLShr(product, a[0]->getType()->getScalarSizeInBits()), a[0]->getType());
        });
      })
      .Case<tt::ClampFOp>([&](auto o) {
        bool nan = o.getPropagateNan() == tt::PropagateNan::ALL;
        return mapLanes(op, [&, nan](Args a) {
          V low = b.CreateBinaryIntrinsic(nan ? Intrinsic::maximum : Intrinsic::maxnum, a[0], a[1]);
          return b.CreateBinaryIntrinsic(nan ? Intrinsic::minimum : Intrinsic::minnum, low, a[2]);
        });
      })
      .Case<arith::CmpIOp>([&](auto o) {
        return mapLanes(op, [&, p = predicate(o.getPredicate())](Args a) { return b.CreateICmp(p, a[0], a[1]); });
      })
      .Case<arith::CmpFOp>([&](auto o) {
        return mapLanes(op, [&, p = predicate(o.getPredicate())](Args a) { return b.CreateFCmp(p, a[0], a[1]); });
      })
      .Case<arith::SelectOp>(
          [&](auto) { return mapLanes(op, [&](Args a) { return b.CreateSelect(a[0], a[1], a[2]); }); })
      .Case<arith::ExtSIOp>([&](auto) { return cast(I::SExt); })
      .Case<arith::ExtUIOp>([&](auto) { return cast(I::ZExt); })
      .Case<arith::TruncIOp>([&](auto) { return cast(I::Trunc); })
      .Case<arith::ExtFOp>([&](auto o) {
        auto fp8 = emitFp8Cast(o, false);
        return fp8 ? *fp8 : cast(I::FPExt);
      })
      .Case<arith::SIToFPOp>([&](auto) { return cast(I::SIToFP); })
      .Case<arith::UIToFPOp>([&](auto) { return cast(I::UIToFP); })
      .Case<arith::FPToSIOp>([&](auto) { return toInt(true); })
      .Case<arith::FPToUIOp>([&](auto) { return toInt(false); })
      .Case<arith::TruncFOp>([&](auto o) {
        bool towardZero = o.getRoundingmode() == arith::RoundingMode::toward_zero;
        if (auto fp8 = emitFp8Cast(o, towardZero))
          return *fp8;
        llvm::Type *to = valueType(o.getType());
        return mapLanes(op, [&, to, towardZero](Args a) { return truncateFloat(a[0], to, towardZero); });
      })
      .Case<tt::FpToFpOp>([&](auto o) {
        bool towardZero = o.getRounding() == tt::RoundingMode::RTZ;
        if (auto fp8 = emitFp8Cast(o, towardZero))
          return *fp8;
        llvm::Type *to = valueType(o.getType());
        return mapLanes(op, [&, to, towardZero](Args a) -> V {
          unsigned from = a[0]->getType()->getScalarSizeInBits(), width = to->getScalarSizeInBits();
          if (width > from)
            return b.CreateFPExt(a[0], to);
          if (width < from)
            return truncateFloat(a[0], to, towardZero);
          if (a[0]->getType() == to)
            return a[0];
          llvm::Type *wide = to->getWithNewType(b.getFloatTy()); // f16 <-> bf16
          return truncateFloat(b.CreateFPExt(a[0], wide), to, towardZero);
        });
      })
      .Case<arith::IndexCastOp>([&](auto o) {
        return mapLanes(op, [&, to = valueType(o.getType())](Args a) { return b.CreateSExtOrTrunc(a[0], to); });
      })
      .Case<arith::IndexCastUIOp>([&](auto o) {
        return mapLanes(op, [&, to = valueType(o.getType())](Args a) { return b.CreateZExtOrTrunc(a[0], to); });
      })
      .Case<arith::BitcastOp, tt::BitcastOp>([&](auto o) {
        return mapLanes(op, [&, to = valueType(o.getType())](Args a) { return b.CreateBitCast(a[0], to); });
      })
      .Case<tt::IntToPtrOp>([&](auto) { return cast(I::IntToPtr); })
      .Case<tt::PtrToIntOp>([&](auto) { return cast(I::PtrToInt); })
      .Case<tt::AddPtrOp>([&](auto o) {
        auto pointer = mlir::cast<tt::PointerType>(mlir::getElementTypeOrSelf(o.getPtr().getType()));
        llvm::Type *element = memoryType(pointer.getPointeeType());
        return mapLanes(op, [&, element](Args a) { return b.CreateGEP(element, a[0], a[1]); });
      })
      .Case<mlir::ub::PoisonOp>([&](auto o) {
        // Nothing is undefined here: zero.
        V zero = llvm::Constant::getNullValue(valueType(o.getType()));
        set(o.getResult(), Lanes(numValues(o.getType()), zero));
        return success();
      })
      .Case<tt::ExternElementwiseOp>([&](auto o) { return emitExternCall(o); })
      .Case<tt::ElementwiseInlineAsmOp>([&](auto o) { return emitInlineAsm(o); })
      .Default([](auto) { return std::nullopt; });
}

} // namespace tessera::codegen
