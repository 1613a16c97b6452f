// Inlines every call. Helpers are single-block functions: the tracer and Triton's front end make no others.
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "tessera/ir/ttir/Ttir.h"
#include "tessera/passes/Passes.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTIRINLINE
#include "tessera/passes/Passes.h.inc"

namespace {

class TtirInline : public impl::TtirInlineBase<TtirInline> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    for (auto func : module.getOps<tt::FuncOp>())
      if (failed(inlineInto(func, symbols)))
        return signalPassFailure();
    if (!anyCall)
      return;
    for (auto func : llvm::make_early_inc_range(module.getOps<tt::FuncOp>()))
      if (func.isPrivate())
        func.erase(); // whatever called it has its body now
  }

private:
  enum class State { Active, Done };
  llvm::DenseMap<Operation *, State> states;
  bool anyCall = false;

  /// Callees first, so that each body is copied in its final form.
  LogicalResult inlineInto(tt::FuncOp func, SymbolTable &symbols) {
    if (!states.try_emplace(func, State::Active).second)
      return success();
    SmallVector<tt::CallOp> calls;
    func.walk([&](tt::CallOp call) { calls.push_back(call); });
    for (tt::CallOp call : calls) {
      anyCall = true;
      auto callee = symbols.lookup<tt::FuncOp>(call.getCallee());
      if (!callee || callee.isExternal())
        return call.emitError() << "calls '" << call.getCallee()
                                << "', which has no body here: only functions of the module can be called";
      if (auto it = states.find(callee); it != states.end() && it->second == State::Active)
        return call.emitError() << "recursive call of '" << call.getCallee()
                                << "': helper functions are inlined, so recursion must end while tracing";
      if (failed(inlineInto(callee, symbols)))
        return failure();
      if (!llvm::hasSingleElement(callee.getBody()))
        return call.emitError()
               << "'" << call.getCallee()
               << "' has several basic blocks and cannot be inlined: use scf.if or one return at the end";

      IRMapping map;
      Block &body = callee.getBody().front();
      map.map(body.getArguments(), call.getOperands());
      OpBuilder b(call);
      for (Operation &op : body.without_terminator()) {
        Operation *copy = b.clone(op, map);
        copy->walk([&](Operation *o) { o->setLoc(CallSiteLoc::get(o->getLoc(), call.getLoc())); });
      }
      for (auto [result, value] : llvm::zip(call.getResults(), body.getTerminator()->getOperands()))
        result.replaceAllUsesWith(map.lookupOrDefault(value));
      call.erase();
    }
    states[func] = State::Done;
    return success();
  }
};

} // namespace
} // namespace tessera
