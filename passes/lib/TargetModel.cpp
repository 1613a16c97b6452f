// The machines that `ttg.target` names.
#include "tessera/passes/TargetModel.h"

#include "tessera/ir/ttgir/Ttgir.h"

using namespace mlir;

namespace tessera {

TargetModel TargetModel::of(ModuleOp module) {
  auto target = module->getAttrOfType<StringAttr>(ttg::targetAttr);
  return of(target ? target.getValue() : StringRef(), ttg::lookupThreadsPerWarp(module));
}

TargetModel TargetModel::of(StringRef name, unsigned threadsPerWarp) {
  TargetModel model;
  if (name == "cpu") {
    model.wideLanes = true;
    // Sixteen vector registers hold 4x2 accumulators beside their operands; AVX-512 has twice as many.
    model.accumulatorRows = threadsPerWarp >= 16 ? 8 : 4;
    return model;
  }
  unsigned capability = 0;
  if (!name.consume_front("cuda:") || name.getAsInteger(10, capability))
    return model;
  if (capability >= 80) {
    model.matrixUnit = capability == 90 ? MatrixUnit::WarpGroup : MatrixUnit::Warp; // only Hopper has wgmma
    model.minAsyncCopyBytes = 4;
    model.maxAsyncCopyBytes = 16;
    model.fp8Mma = capability >= 89;
  }
  return model;
}

} // namespace tessera
