#pragma once
// Dialect tt: the tile IR that tracing makes and Triton dumps as .ttir.
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tessera::tt {

/// Largest number of elements of one tile.
constexpr int64_t maxTileElements = 1 << 20;

/// What device memory accesses, prints and asserts touch.
struct GlobalMemory : mlir::SideEffects::Resource::Base<GlobalMemory> {
  llvm::StringRef getName() final { return "GlobalMemory"; }
};

/// `type` with its element type replaced: a scalar becomes `element`, a tile keeps shape and encoding.
mlir::Type withElementType(mlir::Type type, mlir::Type element);
/// Type loaded through a pointer or a tile of pointers (`type` itself if it is neither).
mlir::Type pointeeLike(mlir::Type type);
/// i1 in the shape of `type`.
mlir::Type boolLike(mlir::Type type);
/// Bits of a float, integer or pointer; 0 for others.
unsigned bitWidth(mlir::Type scalar);

/// Whether `scalar` is an 8-bit float that tiles may have: OCP's two, and the two of the fnuz kind.
bool isFloat8(mlir::Type scalar);

/// Whether result types are equal up to the names of their encodings.
bool areCompatible(mlir::TypeRange a, mlir::TypeRange b);

/// Checks the shape of every tile among `op`'s operands and results: powers of two, at most maxTileElements.
mlir::LogicalResult verifyTileShapes(mlir::Operation *op);

template <typename ConcreteOp> class TileShapes : public mlir::OpTrait::TraitBase<ConcreteOp, TileShapes> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return verifyTileShapes(op); }
};

} // namespace tessera::tt

#include "tessera/ir/ttir/TtirDialect.h.inc"
#include "tessera/ir/ttir/TtirEnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "tessera/ir/ttir/TtirTypes.h.inc"
#define GET_OP_CLASSES
#include "tessera/ir/ttir/TtirOps.h.inc"
