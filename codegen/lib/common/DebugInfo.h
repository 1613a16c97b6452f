#pragma once
// Source lines of the user's lambda, carried from MLIR locations into LLVM debug metadata.
#include "mlir/IR/Location.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/DebugInfoMetadata.h"

namespace tessera::codegen {

class DebugInfo {
public:
  /// `directivesOnly`: line directives without the sections of a debugger: for text that another assembler takes.
  DebugInfo(llvm::Module &m, llvm::Function &f, mlir::Location loc, bool directivesOnly);
  /// The debug location of an op; null when it has no position in a file.
  llvm::DILocation *locate(mlir::Location loc);
  void finalize() { builder.finalize(); }

private:
  llvm::DIFile *file(llvm::StringRef path);
  llvm::DILocation *locate(mlir::Location loc, llvm::DILocation *inlinedAt);

  llvm::DIBuilder builder;
  llvm::DISubprogram *subprogram = nullptr;
  llvm::DenseMap<mlir::Attribute, llvm::DILocation *> cache;
};

} // namespace tessera::codegen
