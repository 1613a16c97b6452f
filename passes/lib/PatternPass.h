#pragma once
// A pass that is nothing but patterns, applied until none matches.
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tessera {

/// `Base`: what TableGen makes of the pass's definition.
template <class Base, class... Patterns> class PatternPass : public Base {
public:
  mlir::LogicalResult initialize(mlir::MLIRContext *context) override {
    mlir::RewritePatternSet set(context);
    set.add<Patterns...>(context);
    patterns = std::move(set);
    return mlir::success();
  }
  void runOnOperation() override {
    if (failed(mlir::applyPatternsGreedily(this->getOperation(), patterns)))
      this->signalPassFailure();
  }

private:
  mlir::FrozenRewritePatternSet patterns;
};

} // namespace tessera
