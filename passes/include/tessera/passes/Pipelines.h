#pragma once
// The two pipelines. The compiler, the tools and the tests run exactly these.
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "tessera/passes/TargetModel.h"

#include <cstdint>
#include <string>

namespace tessera {

/// What ttgir is made for.
struct TtgirOptions {
  int numWarps = 4;
  int threadsPerWarp = 32;
  int numCtas = 1;
  std::string target = TargetModel::defaultName; ///< the text of `ttg.target`
  unsigned maxVectorBits = 128;   ///< widest access of one thread to global memory
  bool wideLanes = false;         ///< native CPU: the lanes of a warp are one vector register
  unsigned maxSharedBytes = UINT32_MAX;
  int numStages = 3; ///< software pipelining depth of loops that do not say
};

/// inline, canonicalise, combine, reorder broadcasts, CSE, loop-invariant code motion, unroll.
void buildTtirPipeline(mlir::OpPassManager &pm);

/// ttir -> ttgir that the lowering takes: layouts, few conversions, shared memory placed, barriers inserted.
void buildTtgirPipeline(mlir::OpPassManager &pm, const TtgirOptions &options);

/// The end of that pipeline by itself: places shared memory and inserts barriers in ttgir that was made elsewhere.
void buildSharedMemoryPipeline(mlir::OpPassManager &pm, unsigned maxSharedBytes);

/// Registers every pass and the pipelines `ttir-pipeline` and `ttgir-pipeline{num-warps=4 …}` by name, for tools.
void registerTesseraPasses();

/// The smallest power of two of warps with which a lane holds at most `maxRegistersPerLane` elements of the largest
/// tile: the CPU's choice, where warps are not hardware but a way to cut work.
int chooseNumWarps(mlir::ModuleOp module, unsigned warpSize, unsigned maxRegistersPerLane = 64);

} // namespace tessera
