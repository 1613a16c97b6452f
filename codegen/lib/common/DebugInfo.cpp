// Locations: an op's FileLineColLoc becomes a DILocation in the kernel's one subprogram. A call site becomes inlinedAt,
// in a scope of the callee's file, so that helper functions of the user show as inlined frames.
#include "DebugInfo.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Path.h"

namespace tessera::codegen {

static mlir::FileLineColLoc position(mlir::Location loc) {
  return llvm::TypeSwitch<mlir::LocationAttr, mlir::FileLineColLoc>(loc)
      .Case<mlir::FileLineColLoc>([](auto l) { return l; })
      .Case<mlir::NameLoc>([](auto l) { return position(l.getChildLoc()); })
      .Case<mlir::CallSiteLoc>([](auto l) { return position(l.getCallee()); })
      .Case<mlir::FusedLoc>([](auto l) {
        for (mlir::Location part : l.getLocations())
          if (auto found = position(part))
            return found;
        return mlir::FileLineColLoc();
      })
      .Default([](auto) { return mlir::FileLineColLoc(); });
}

llvm::DIFile *DebugInfo::file(llvm::StringRef path) {
  return builder.createFile(llvm::sys::path::filename(path), llvm::sys::path::parent_path(path));
}

DebugInfo::DebugInfo(llvm::Module &m, llvm::Function &f, mlir::Location loc, bool directivesOnly) : builder(m) {
  mlir::FileLineColLoc at = position(loc);
  llvm::DIFile *where = file(at ? at.getFilename().getValue() : "<unknown>");
  builder.createCompileUnit(llvm::dwarf::DW_LANG_C_plus_plus, where, "tessera", /*isOptimized=*/true, "", 0, "",
                            directivesOnly ? llvm::DICompileUnit::DebugDirectivesOnly
                                           : llvm::DICompileUnit::LineTablesOnly);
  unsigned line = at ? at.getLine() : 0;
  subprogram = builder.createFunction(
      where, f.getName(), f.getName(), where, line, builder.createSubroutineType(builder.getOrCreateTypeArray({})),
      line, llvm::DINode::FlagPrototyped, llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
  f.setSubprogram(subprogram);
  m.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
}

llvm::DILocation *DebugInfo::locate(mlir::Location loc) {
  auto [it, isNew] = cache.try_emplace(loc);
  if (isNew)
    it->second = locate(loc, nullptr);
  return it->second;
}

llvm::DILocation *DebugInfo::locate(mlir::Location loc, llvm::DILocation *inlinedAt) {
  if (auto call = llvm::dyn_cast<mlir::CallSiteLoc>(mlir::LocationAttr(loc)))
    return locate(call.getCallee(), locate(call.getCaller(), inlinedAt));
  mlir::FileLineColLoc at = position(loc);
  if (!at)
    return inlinedAt;
  // Every scope belongs to the kernel's subprogram: an inlined frame needs a subprogram of its own.
  llvm::DILocalScope *scope = subprogram;
  llvm::StringRef path = at.getFilename().getValue();
  if (inlinedAt) {
    llvm::DIFile *where = file(path);
    scope = builder.createFunction(where, llvm::sys::path::filename(path), "", where, at.getLine(),
                                   builder.createSubroutineType(builder.getOrCreateTypeArray({})), at.getLine(),
                                   llvm::DINode::FlagPrototyped,
                                   llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
  } else if (file(path) != subprogram->getFile()) {
    scope = builder.createLexicalBlockFile(subprogram, file(path));
  }
  return llvm::DILocation::get(subprogram->getContext(), at.getLine(), at.getColumn(), scope, inlinedAt);
}

} // namespace tessera::codegen
