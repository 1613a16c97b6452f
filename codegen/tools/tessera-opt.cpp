// tessera-opt: runs passes and named pipelines over IR text; what the JIT runs can be tried here.
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "tessera/ir/Register.h"
#include "tessera/passes/Pipelines.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tessera::registerAllDialects(registry);
  mlir::registerTransformsPasses();
  tessera::registerTesseraPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Tessera IR optimizer\n", registry));
}
