#pragma once
// The dialects a Tessera module may use.
namespace mlir {
class DialectRegistry;
}

namespace tessera {

/// tt, ttg, arith, math, scf, cf, ub, and the inliner interfaces they need.
void registerAllDialects(mlir::DialectRegistry &registry);

} // namespace tessera
