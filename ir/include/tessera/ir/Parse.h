#pragma once
// Reading IR text.
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

namespace tessera {

/// Parses and verifies a module; `name` stands for the text in diagnostics. Null after an error has been reported to
/// the context. No text crashes it: what MLIR's parser cannot stand is refused beforehand.
mlir::OwningOpRef<mlir::ModuleOp> parseModule(llvm::StringRef text, llvm::StringRef name, mlir::MLIRContext *context);

/// Fails, with an error, on text that MLIR's parser cannot stand: for tools that call that parser themselves.
mlir::LogicalResult checkParsable(llvm::StringRef text, llvm::StringRef name, mlir::MLIRContext *context);

} // namespace tessera
