#pragma once
// What the passes may know of the machine: which matrix instructions and copies it has. Made from `ttg.target`, which
// no pass looks at otherwise; what only one vendor has is behind MatrixModel (passes/lib/target).
#include "mlir/IR/BuiltinOps.h"
#include "tessera/ir/LayoutPlans.h"
#include "tessera/ir/ttir/Ttir.h"

#include <memory>

namespace tessera {

class MatrixModel;

struct TargetModel {
  enum class MatrixUnit {
    None,      ///< `ttg.local_dot`: multiply-add of each thread's own results
    Warp,      ///< a warp multiplies tiles in registers
    WarpGroup, ///< also: four warps multiply tiles in shared memory, asynchronously
  };
  MatrixUnit matrixUnit = MatrixUnit::None;
  std::shared_ptr<const MatrixModel> matrix; ///< null if and only if matrixUnit is None
  unsigned minAsyncCopyBytes = 0; ///< narrowest copy of a lane from global to shared memory; 0: there are none
  unsigned maxAsyncCopyBytes = 0;
  /// Lane l of a warp writes to the l-th place from where the warp's copy starts, and nowhere else; only the narrowest
  /// and the widest copy exist.
  bool asyncCopiesInOrder = false;
  /// A tile that passes through registers is stored to shared memory behind the product that reads the tile before it:
  /// one buffer is enough, and registers hold one tile in flight.
  bool storesBehindProduct = false;
  /// Small scratch of ops that follow each other lies apart, which saves the barrier between the reads of the one and
  /// the writes of the next; else all of it shares bytes.
  bool scratchApart = true;
  SharedMemoryModel shared; ///< banks, and what there is to access it
  bool wideLanes = false;   ///< native CPU: the lanes of a warp are one vector register
  /// Accumulator rows that a warp of the native CPU keeps in vector registers, two vectors each.
  unsigned accumulatorRows = 0;

  /// Whether there is a matrix instruction for this dot on accumulators of a matrix encoding (as text may have it).
  bool executes(tt::DotOp dot) const;

  /// What passes run by hand take where nothing is said.
  static constexpr const char *defaultName = "cuda:90";

  /// From "cuda:90", "hip:gfx942" or "cpu"; anything else has none of it.
  static TargetModel of(llvm::StringRef target, unsigned threadsPerWarp);
  static TargetModel of(mlir::ModuleOp module); ///< by its attributes
};

} // namespace tessera
