// Chains of long functions (sin, then tanh, then pow, …) on many elements a thread. Called one by one they cost the
// assembler seconds: its time grows with the calls and with the registers that live across them. A chain becomes one
// function of one element instead, which is called once for each.
#include "DebugInfo.h"
#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::codegen {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

/// Calls that a chain may make before it is worth a function.
constexpr unsigned maxChainCalls = 256;

/// The ops of the chain that begins with `first`, up to its last long function; empty when it is none, or short.
llvm::SmallVector<mlir::Operation *> Emitter::longChain(mlir::Operation *first) {
  auto isLong = [&](mlir::Operation *op) {
    auto fn = mathFunction(op, options.precise_math);
    if (!fn)
      return false;
    llvm::Type *scalar = scalarType(op->getResult(0).getType());
    bool widened = (scalar->isHalfTy() || scalar->isBFloatTy()) && !target.hasNative(fn->first, scalar);
    return target.isLongFunction(fn->first, widened ? b.getFloatTy() : scalar, fn->second);
  };
  if (scalarsAreLanes || oneElement || first->getNumResults() != 1 || !isTensor(first->getResult(0)) || !isLong(first))
    return {};
  auto layout = mlir::cast<mlir::RankedTensorType>(first->getResult(0).getType()).getEncoding();
  llvm::SmallVector<mlir::Operation *> chain;
  unsigned longOnes = 0, untilLast = 0;
  for (mlir::Operation *op = first; op; op = op->getNextNode()) {
    bool arithmetic = mlir::isa_and_nonnull<mlir::arith::ArithDialect, mlir::math::MathDialect>(op->getDialect());
    auto type = op->getNumResults() == 1 ? mlir::dyn_cast<mlir::RankedTensorType>(op->getResult(0).getType()) : nullptr;
    if (!arithmetic || op->getNumRegions() || !type || type.getEncoding() != layout || !scalarType(type))
      break;
    chain.push_back(op);
    if (isLong(op))
      ++longOnes, untilLast = chain.size();
  }
  chain.truncate(untilLast);
  return longOnes > 1 && longOnes * numValues(first->getResult(0).getType()) > maxChainCalls ? chain
                                                                                             : decltype(chain)();
}

LogicalResult Emitter::emitChain(llvm::ArrayRef<mlir::Operation *> chain) {
  llvm::SmallPtrSet<mlir::Operation *, 16> inside(chain.begin(), chain.end());
  llvm::SetVector<mlir::Value> inputs;
  llvm::SmallVector<mlir::Value> outputs;
  for (mlir::Operation *op : chain) {
    for (mlir::Value operand : op->getOperands())
      if (!inside.contains(operand.getDefiningOp()))
        inputs.insert(operand);
    if (llvm::any_of(op->getUsers(), [&](mlir::Operation *user) { return !inside.contains(user); }))
      outputs.push_back(op->getResult(0));
  }
  unsigned count = numValues(chain.front()->getResult(0).getType());
  // A constant stays one inside; all else is passed.
  llvm::SmallVector<Lanes> passed;
  llvm::SmallVector<llvm::Type *> types, resultTypes;
  auto isConstant = [&](mlir::Value v) { return llvm::all_equal(get(v)) && llvm::isa<llvm::Constant>(get(v).front()); };
  for (mlir::Value v : inputs) {
    if (isConstant(v))
      continue;
    passed.push_back(getAsLanes(v, count));
    types.push_back(passed.back().front()->getType());
  }
  for (mlir::Value v : outputs)
    resultTypes.push_back(valueType(v.getType()));
  llvm::Type *returned = outputs.size() == 1 ? resultTypes.front() : llvm::StructType::get(b.getContext(), resultTypes);
  auto *element = llvm::Function::Create(llvm::FunctionType::get(returned, types, false),
                                         llvm::GlobalValue::InternalLinkage, "tessera.chain", llvmModule);
  element->addFnAttr(llvm::Attribute::NoInline);
  element->addFnAttr(llvm::Attribute::NoUnwind);

  llvm::SmallVector<std::pair<mlir::Value, llvm::ArrayRef<V>>> outer;
  for (mlir::Value v : inputs)
    outer.push_back({v, get(v)});
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b);
    b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "", element));
    b.SetCurrentDebugLocation({});
    std::unique_ptr<DebugInfo> lines = std::move(debug); // they belong to the kernel
    llvm::Function *kernel = std::exchange(function, element);
    oneElement = true;
    auto *arg = element->arg_begin();
    for (mlir::Value v : inputs)
      set(v, {isConstant(v) ? get(v).front() : arg++});
    LogicalResult done = success();
    for (mlir::Operation *op : chain)
      if (succeeded(done))
        done = emitOp(op);
    if (succeeded(done)) {
      Lanes results;
      for (mlir::Value v : outputs)
        results.push_back(getUniform(v));
      outputs.size() == 1 ? b.CreateRet(results.front()) : b.CreateAggregateRet(results.data(), results.size());
    }
    oneElement = false;
    function = kernel;
    debug = std::move(lines);
    for (auto [v, lanes] : outer)
      values[v] = lanes;
    if (failed(done))
      return failure();
  }

  if (debug)
    b.SetCurrentDebugLocation(debug->locate(chain.front()->getLoc()));
  llvm::SmallVector<Lanes> results(outputs.size());
  llvm::SmallVector<V> args(passed.size()), last;
  for (unsigned r = 0; r < count; ++r) {
    for (auto [arg, lanes] : llvm::zip_equal(args, passed))
      arg = lanes[r];
    bool same = r && args == last; // splats and copies: once
    V call = same ? nullptr : b.CreateCall(element, args);
    for (auto [i, list] : llvm::enumerate(results))
      list.push_back(same ? list.back() : outputs.size() == 1 ? call : b.CreateExtractValue(call, i));
    last = args;
  }
  for (auto [v, list] : llvm::zip_equal(outputs, results))
    set(v, std::move(list));
  return success();
}

} // namespace tessera::codegen
