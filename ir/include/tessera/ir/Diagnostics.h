#pragma once
// From MLIR's diagnostics to this library's exception. MLIR is built without exceptions: errors are gathered while it runs
// and thrown at the library's edge.
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"

#include <tessera/error.h>

namespace tessera {

/// Gathers errors while MLIR runs, to be thrown once it has returned.
class Diagnostics {
public:
  explicit Diagnostics(mlir::MLIRContext *context)
      : handler(context, [this](mlir::Diagnostic &d) {
          if (d.getSeverity() == mlir::DiagnosticSeverity::Error && message.empty()) {
            message = d.str();
            where = position(d.getLocation());
            for (mlir::Diagnostic &note : d.getNotes())
              message += "\n  note: " + note.str();
          }
          return mlir::success();
        }) {
    context->printOpOnDiagnostic(false); // the location says where; the op's text would bury the sentence
  }

  [[noreturn]] void raise(tessera::stage s, llvm::StringRef fallback) const {
    throw error(s, message.empty() ? fallback.str() : message, where);
  }

private:
  static source_position position(mlir::Location loc) {
    source_position found;
    loc->walk([&](mlir::Location part) {
      auto at = mlir::dyn_cast<mlir::FileLineColLoc>(mlir::LocationAttr(part));
      if (!at || at.getLine() == 0)
        return mlir::WalkResult::advance();
      found = {at.getFilename().str(), at.getLine(), at.getColumn()};
      return mlir::WalkResult::interrupt();
    });
    return found;
  }

  std::string message;
  source_position where;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace tessera
