// The machines that `ttg.target` names.
#include "tessera/passes/TargetModel.h"

#include "MatrixModel.h"

using namespace mlir;

namespace tessera {

TargetModel TargetModel::of(ModuleOp module) {
  auto target = module->getAttrOfType<StringAttr>(ttg::targetAttr);
  return of(target ? target.getValue() : StringRef(), ttg::lookupThreadsPerWarp(module));
}

static TargetModel nvidia(unsigned capability) {
  TargetModel model;
  model.shared.matrixStores = capability >= 90;
  model.matrix = nvidiaMatrixModel(capability);
  if (!model.matrix)
    return model;
  using Unit = TargetModel::MatrixUnit;
  model.matrixUnit = hasWarpGroupMma(capability) ? Unit::WarpGroup : Unit::Warp;
  model.minAsyncCopyBytes = 4;
  model.maxAsyncCopyBytes = 16;
  return model;
}

static TargetModel amd(StringRef arch) {
  TargetModel model;
  model.shared = amdSharedMemory(arch);
  model.storesBehindProduct = true;
  model.scratchApart = false; // no more LDS than a peer takes; its barriers between reductions are more than ours
  model.matrix = amdMatrixModel(arch);
  if (model.matrix)
    model.matrixUnit = TargetModel::MatrixUnit::Warp;
  if (arch == "gfx950") { // global_load_lds of 4 and 16 bytes a lane
    model.minAsyncCopyBytes = 4;
    model.maxAsyncCopyBytes = 16;
    model.asyncCopiesInOrder = true;
  }
  return model;
}

TargetModel TargetModel::of(StringRef name, unsigned threadsPerWarp) {
  if (name == "cpu") {
    TargetModel model;
    model.wideLanes = true;
    // Sixteen vector registers hold 4x2 accumulators beside their operands; AVX-512 has twice as many.
    model.accumulatorRows = threadsPerWarp >= 16 ? 8 : 4;
    return model;
  }
  unsigned capability = 0;
  if (name.consume_front("cuda:"))
    return name.getAsInteger(10, capability) ? TargetModel() : nvidia(capability);
  return name.consume_front("hip:") ? amd(name) : TargetModel();
}

bool TargetModel::executes(tt::DotOp dot) const {
  ttg::MatrixEncoding encoding = ttg::getMatrixEncoding(dot.getType());
  Type a = getElementTypeOrSelf(dot.getA().getType()), b = getElementTypeOrSelf(dot.getB().getType());
  return matrix && encoding && matrix->executes(encoding.getInstruction(tt::bitWidth(a)), a, b);
}

} // namespace tessera
