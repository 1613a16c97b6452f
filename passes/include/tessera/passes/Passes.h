#pragma once
// The passes of Passes.td. Each is created with defaults or with its options struct.
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/ir/ttir/Ttir.h"
#include "tessera/ir/ttng/Ttng.h"
#include "tessera/passes/TargetModel.h"

#include <memory>
#include <string>

namespace tessera {

#define GEN_PASS_DECL
#include "tessera/passes/Passes.h.inc"

} // namespace tessera
