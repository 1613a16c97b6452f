// tessera-opt: runs passes and named pipelines over IR text; what the JIT runs can be tried here.
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "tessera/ir/Parse.h"
#include "tessera/ir/Register.h"
#include "tessera/passes/Pipelines.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

static mlir::LogicalResult run(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tessera::registerAllDialects(registry);
  mlir::registerTransformsPasses();
  tessera::registerTesseraPasses();
  auto [inputName, outputName] = mlir::registerAndParseCLIOptions(argc, argv, "Tessera IR optimizer\n", registry);
  mlir::MlirOptMainConfig config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldListPasses()) {
    mlir::printRegisteredPasses();
    return mlir::success();
  }
  if (config.shouldShowDialects()) {
    llvm::interleave(registry.getDialectNames(), llvm::outs(), "\n");
    llvm::outs() << '\n';
    return mlir::success();
  }
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> input = mlir::openInputFile(inputName, &error);
  std::unique_ptr<llvm::ToolOutputFile> output = input ? mlir::openOutputFile(outputName, &error) : nullptr;
  if (!output) {
    llvm::errs() << "tessera-opt: " << error << '\n';
    return mlir::failure();
  }
  mlir::MLIRContext context;
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(*input), {});
  mlir::SourceMgrDiagnosticHandler diagnostics(sources, &context);
  if (failed(tessera::checkParsable(input->getBuffer(), inputName, &context)) ||
      failed(
          mlir::MlirOptMain(output->os(), std::move(input), registry, mlir::MlirOptMainConfig::createFromCLOptions())))
    return mlir::failure();
  output->keep();
  return mlir::success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  return mlir::asMainReturnCode(run(argc, argv));
}
