#pragma once
// The dialects a Tessera module may use.
namespace mlir {
class DialectRegistry;
}

namespace tessera {

/// tt, ttg, ttng, arith, math, scf, cf and ub.
void registerAllDialects(mlir::DialectRegistry &registry);

} // namespace tessera
