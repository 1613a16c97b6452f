// The pass pipeline knows the target machine: without its cost model and its divergence facts, jump threading may move
// control flow around barriers and exchanges between lanes.
#include "Optimize.h"

#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/Passes/PassBuilder.h"

namespace tessera::codegen {

void optimize(llvm::Module &m, llvm::TargetMachine &tm) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = false; // lanes are vectors already
  tuning.LoopInterleaving = false;
  tuning.LoopUnrolling = true;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&tm, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  // An emulating target asks for quick code: its vectors are many registers wide, and it is there to check, not to be fast.
  bool quick = tm.getOptLevel() == llvm::CodeGenOptLevel::None;
  builder.buildPerModuleDefaultPipeline(quick ? llvm::OptimizationLevel::O1 : llvm::OptimizationLevel::O3).run(m, modules);
}

} // namespace tessera::codegen
