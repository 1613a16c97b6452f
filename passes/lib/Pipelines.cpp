// The pipelines, and registration of everything for tools.
#include "tessera/passes/Pipelines.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "tessera/passes/Passes.h"

using namespace mlir;

namespace tessera {

namespace {
#define GEN_PASS_REGISTRATION
#include "tessera/passes/Passes.h.inc"

struct TtgirPipelineOptions : PassPipelineOptions<TtgirPipelineOptions> {
  Option<int> numWarps{*this, "num-warps", llvm::cl::desc("warps of a program"), llvm::cl::init(4)};
  Option<int> threadsPerWarp{*this, "threads-per-warp", llvm::cl::desc("lanes of a warp"), llvm::cl::init(32)};
  Option<int> numCtas{*this, "num-ctas", llvm::cl::desc("programs of a cluster"), llvm::cl::init(1)};
  Option<std::string> target{*this, "target", llvm::cl::desc("what ttg.target says"), llvm::cl::init(TargetModel::defaultName)};
  Option<unsigned> maxVectorBits{*this, "max-vector-bits", llvm::cl::desc("bits one thread accesses at once"),
                                 llvm::cl::init(128)};
  Option<bool> wideLanes{*this, "wide-lanes", llvm::cl::desc("lanes are one vector register"), llvm::cl::init(false)};
  Option<unsigned> maxSharedBytes{*this, "max-shared-bytes", llvm::cl::desc("bytes of shared memory that a program may use"),
                                  llvm::cl::init(UINT32_MAX)};
  Option<int> numStages{*this, "num-stages", llvm::cl::desc("software pipelining depth"), llvm::cl::init(3)};
};
} // namespace

void buildTtirPipeline(OpPassManager &pm) {
  pm.addPass(createTtirInline());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createTtirCombine());
  pm.addPass(createTtirReorderBroadcast());
  pm.addPass(createCSEPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(createTtirLoopUnroll());
}

void buildTtgirPipeline(OpPassManager &pm, const TtgirOptions &options) {
  TtirLegalizeDotOptions legalize;
  legalize.target = options.target;
  legalize.threadsPerWarp = options.threadsPerWarp;
  pm.addPass(createTtirLegalizeDot(legalize));
  pm.addPass(createCSEPass());
  ConvertTtirToTtgirOptions convert;
  convert.numWarps = options.numWarps;
  convert.threadsPerWarp = options.threadsPerWarp;
  convert.numCtas = options.numCtas;
  convert.target = options.target;
  pm.addPass(createConvertTtirToTtgir(convert));
  TtgirCoalesceOptions coalesce;
  coalesce.maxVectorBits = options.maxVectorBits;
  coalesce.wideLanes = options.wideLanes;
  pm.addPass(createTtgirCoalesce(coalesce));
  pm.addPass(createTtgirRemoveLayoutConversions());
  pm.addPass(createTtgirReductionLocality());
  pm.addPass(createTtgirAccelerateMatmul());
  pm.addPass(createTtgirRemoveLayoutConversions());
  pm.addPass(createTtgirOptimizeDotOperands());
  pm.addPass(createCSEPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  TtgirAssignLatenciesOptions latencies;
  latencies.numStages = options.numStages;
  latencies.maxSharedBytes = options.maxSharedBytes;
  pm.addPass(createTtgirAssignLatencies(latencies));
  pm.addPass(createTtgirScheduleLoops());
  pm.addPass(createTtgirPipelineLoops());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createTtgirPrefetch());
  pm.addPass(createTtgirReorder());
  buildSharedMemoryPipeline(pm, options.maxSharedBytes);
  pm.addPass(createTtgirFenceInsertion());
}

void buildSharedMemoryPipeline(OpPassManager &pm, unsigned maxSharedBytes) {
  TtgirAllocateSharedOptions allocate;
  allocate.maxSharedBytes = maxSharedBytes;
  pm.addPass(createTtgirAllocateShared(allocate));
  pm.addPass(createTtgirInsertBarriers());
}

void registerTesseraPasses() {
  registerTesseraGeneratedPasses();
  registerTransformsPasses(); // canonicalize, cse, …
  PassPipelineRegistration<>("ttir-pipeline", "every pass over ttir", buildTtirPipeline);
  PassPipelineRegistration<TtgirPipelineOptions>(
      "ttgir-pipeline", "from ttir to ttgir that can be lowered", [](OpPassManager &pm, const TtgirPipelineOptions &o) {
        buildTtgirPipeline(pm, {o.numWarps, o.threadsPerWarp, o.numCtas, o.target, o.maxVectorBits, o.wideLanes,
                                o.maxSharedBytes, o.numStages});
      });
}

int chooseNumWarps(ModuleOp module, unsigned warpSize, unsigned maxRegistersPerLane) {
  int64_t largest = 1;
  module.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (auto tile = dyn_cast<RankedTensorType>(type))
        largest = std::max(largest, tile.getNumElements());
  });
  int64_t warps = 1, perWarp = std::max<int64_t>(1, int64_t(warpSize) * maxRegistersPerLane);
  while (warps * perWarp < largest && warps < 64)
    warps *= 2; // 64: the most ttgir takes
  return static_cast<int>(warps);
}

} // namespace tessera
