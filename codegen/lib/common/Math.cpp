// Float functions: in the target's own form, as functions of one branch where that form has a range, and by the names
// of vendors' libraries.
#include "Emitter.h"
#include "Vendors.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/MDBuilder.h"

namespace tessera::codegen {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
namespace arith = mlir::arith;
namespace Intrinsic = llvm::Intrinsic;

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

// ---- functions of libraries
// ------------------------------------------------------------------------------------------

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
  // Triton reaches functions that math lacks by the names of vendors' libraries. They mean the same on every target
  // here.
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

} // namespace tessera::codegen
