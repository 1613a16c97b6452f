#pragma once
// LLVM's analysis managers, set up for a target machine.
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

namespace tessera::codegen {

/// Every analysis that LLVM has, computed on demand with the target's cost model and its knowledge of which values
/// differ between threads. Results are kept until they are invalidated.
struct Analyses {
  explicit Analyses(llvm::TargetMachine &tm, llvm::PipelineTuningOptions tuning = {}) : builder(&tm, tuning) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(sccs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, sccs, modules);
  }

  // In this order: the results of the later ones refer to the earlier ones, and go first.
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
};

} // namespace tessera::codegen
