#pragma once
// Random functions of ttir: integer arithmetic on scalars, 1-D and 2-D tiles, loops, branches, loads, reductions,
// stores.
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <random>

namespace tessera::testing {

/// A context with every dialect.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// A module with one function `f(ptr divisible by 16, i32 divisible by 16, i32, i32, ptr)` that stores to the last
/// pointer.
mlir::OwningOpRef<mlir::ModuleOp> randomFunction(mlir::MLIRContext &context, unsigned seed);

/// Arguments that fit it.
llvm::SmallVector<int64_t> randomArguments(std::mt19937 &random);

} // namespace tessera::testing
