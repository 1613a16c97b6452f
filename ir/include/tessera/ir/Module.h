#pragma once
// The owned ttir module behind tessera::ir_module: one MLIRContext per module, so that modules can be built and compiled
// on several threads without sharing.
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>

#include <tessera/ir/ir_module.h>

namespace tessera {

struct ir_module::impl {
  std::unique_ptr<mlir::MLIRContext> context; ///< all dialects of registerAllDialects loaded, threading off
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// The module's text, ending with a line break.
std::string printModule(mlir::ModuleOp module, bool locations = false);

} // namespace tessera
