// The pass pipeline knows the target machine: without its cost model and its divergence facts, jump threading may move
// control flow around barriers and exchanges between lanes.
#include "Optimize.h"
#include "Analyses.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Transforms/IPO/Internalize.h"

#include <tessera/error.h>

namespace tessera::codegen {

void linkBitcode(llvm::Module &m, llvm::MemoryBufferRef bitcode) {
  auto fail = [&](const std::string &why) {
    throw error(stage::codegen, "the library '" + bitcode.getBufferIdentifier().str() + "' cannot be linked: " + why);
  };
  auto library = llvm::getLazyBitcodeModule(bitcode, m.getContext());
  if (!library)
    fail(llvm::toString(library.takeError()));
  (*library)->setDataLayout(m.getDataLayout());
  (*library)->setTargetTriple(m.getTargetTriple());
  llvm::StringSet<> own;
  for (llvm::GlobalValue &g : m.global_values())
    if (!g.isDeclaration() || !llvm::isa<llvm::Function>(g))
      own.insert(g.getName());
  if (llvm::Linker::linkModules(m, std::move(*library), llvm::Linker::LinkOnlyNeeded))
    fail("its code does not fit");
  llvm::internalizeModule(m, [&](const llvm::GlobalValue &g) { return own.contains(g.getName()); });
}

std::mutex &processOptions() {
  static std::mutex one;
  return one;
}

void optimize(llvm::Module &m, llvm::TargetMachine &tm, bool packs) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false; // lanes are vectors already
  tuning.SLPVectorization = packs;
  tuning.LoopInterleaving = false;
  tuning.LoopUnrolling = true;
  Analyses analyses(tm, tuning);
  // An emulating target asks for quick code: its vectors are many registers wide, and it is there to check, not to be
  // fast.
  bool quick = tm.getOptLevel() == llvm::CodeGenOptLevel::None;
  analyses.builder.buildPerModuleDefaultPipeline(quick ? llvm::OptimizationLevel::O1 : llvm::OptimizationLevel::O3)
      .run(m, analyses.modules);
}

} // namespace tessera::codegen
