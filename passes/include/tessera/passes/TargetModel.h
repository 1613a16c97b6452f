#pragma once
// What the passes may know of the machine: which matrix instructions and copies it has. Made from `ttg.target`, which
// no pass looks at otherwise.
#include "mlir/IR/BuiltinOps.h"

namespace tessera {

struct TargetModel {
  enum class MatrixUnit {
    None,      ///< `ttg.local_dot`: multiply-add of each thread's own results
    Warp,      ///< a warp multiplies tiles in registers (mma.sync)
    WarpGroup, ///< also: four warps multiply tiles in shared memory, asynchronously (wgmma)
  };
  MatrixUnit matrixUnit = MatrixUnit::None;
  unsigned minAsyncCopyBytes = 0; ///< narrowest copy of a lane from global to shared memory; 0: there are none
  unsigned maxAsyncCopyBytes = 0;
  bool fp8Mma = false;    ///< matrix instructions take fp8; else fp8 operands become f16 (both formats fit in it)
  bool wideLanes = false; ///< native CPU: the lanes of a warp are one vector register
  /// Accumulator rows that a warp of the native CPU keeps in vector registers, two vectors each.
  unsigned accumulatorRows = 0;

  /// From "cuda:90", "hip:gfx942" or "cpu"; anything else has none of it.
  static TargetModel of(llvm::StringRef target, unsigned threadsPerWarp);
  static TargetModel of(mlir::ModuleOp module); ///< by its attributes
};

} // namespace tessera
