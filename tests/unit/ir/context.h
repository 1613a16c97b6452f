#pragma once
// What tests of the IR's types parse and build in.
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "tessera/ir/Register.h"

/// A context that has loaded every dialect a kernel may hold.
struct Context : mlir::MLIRContext {
  Context() : MLIRContext(Threading::DISABLED) {
    mlir::DialectRegistry registry;
    tessera::registerAllDialects(registry);
    appendDialectRegistry(registry);
    loadAllAvailableDialects();
  }
};
