// The driver: IR text or a traced module in, every stage out. MLIR and LLVM report by diagnostics; exceptions begin
// here.
#include "Emitter.h"
#include "Optimize.h"
#include "Vendors.h"

#include "tessera/ir/Diagnostics.h"
#include "tessera/ir/Module.h"
#include "tessera/ir/ttng/Ttng.h"
#include "tessera/passes/Allocation.h"
#include "tessera/passes/Pipelines.h"
#include "tessera/passes/TargetModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>

#include <tessera/error.h>

namespace tessera {

namespace {

/// Errors that LLVM reports while it makes code, of inline assembly for instance. Its own handler prints and ends the
/// process.
class LlvmDiagnostics : public llvm::DiagnosticHandler {
public:
  explicit LlvmDiagnostics(std::string &firstError) : firstError(firstError) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() == llvm::DS_Error && firstError.empty()) {
      llvm::raw_string_ostream stream(firstError);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
    }
    return true;
  }

private:
  std::string &firstError;
};

using Clock = std::chrono::steady_clock;

double millisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Times each pass, and prints the module after the passes that TESSERA_PRINT_AFTER names ("all": after each).
class PassObserver : public mlir::PassInstrumentation {
public:
  explicit PassObserver(std::vector<stage_time> &times) : times(times) {
    if (const char *names = std::getenv("TESSERA_PRINT_AFTER"))
      llvm::StringRef(names).split(printAfter, ',', -1, false);
    for (llvm::StringRef name : printAfter)
      if (static const bool known [[maybe_unused]] = (registerTesseraPasses(), true);
          name != "all" && !mlir::PassInfo::lookup(name))
        throw error(stage::passes, fmt::format("TESSERA_PRINT_AFTER: there is no pass '{}'; TESSERA_TIMING=1 shows those "
                                               "that run",
                                               name.str()));
  }
  void runBeforePass(mlir::Pass *, mlir::Operation *) override { starts.push_back(Clock::now()); }
  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override {
    double spent = millisecondsSince(starts.pop_back_val());
    llvm::StringRef name = pass->getArgument();
    if (name.empty()) // the adaptor that runs passes on nested ops
      return;
    times.push_back({name.str(), spent});
    if (llvm::is_contained(printAfter, name) || llvm::is_contained(printAfter, "all")) {
      llvm::errs() << "// ---- after " << name << '\n';
      op->print(llvm::errs());
      llvm::errs() << '\n';
    }
  }
  void runAfterPassFailed(mlir::Pass *, mlir::Operation *) override { starts.pop_back(); }

private:
  std::vector<stage_time> &times;
  llvm::SmallVector<Clock::time_point> starts;
  llvm::SmallVector<llvm::StringRef> printAfter;
};

void runPipeline(mlir::ModuleOp module, std::vector<stage_time> &times,
                 llvm::function_ref<void(mlir::OpPassManager &)> build) {
  Diagnostics diagnostics(module.getContext());
  mlir::PassManager passes(module.getContext());
  passes.addInstrumentation(std::make_unique<PassObserver>(times));
  build(passes);
  if (failed(passes.run(module)))
    diagnostics.raise(stage::passes, "a pass failed without saying why");
}

/// The one kernel of a module.
tt::FuncOp kernelOf(mlir::ModuleOp module) {
  tt::FuncOp kernel;
  for (auto f : module.getOps<tt::FuncOp>()) {
    if (!f.isPublic() || f.isExternal())
      continue;
    if (kernel)
      throw error(stage::verify, fmt::format("the module has two kernels, '{}' and '{}': compile one at a time",
                                             kernel.getName().str(), f.getName().str()));
    kernel = f;
  }
  if (!kernel)
    throw error(stage::verify, "the module has no public tt.func: nothing to compile");
  return kernel;
}

std::vector<std::string_view> stagesOf(const target &t) {
  std::vector<std::string_view> stages{"ttir", "ttgir", "llir"};
  constexpr std::array<std::string_view, 2> host{"asm", "obj"};
  const codegen::Vendor *vendor = codegen::vendorOf(t.kind);
  llvm::append_range(stages, vendor ? vendor->stages : host);
  return stages;
}

/// Words of the largest of these tiles.
int64_t wordsOf(mlir::TypeRange types) {
  int64_t words = 0;
  for (mlir::Type type : types)
    if (auto tile = mlir::dyn_cast<mlir::RankedTensorType>(type); tile && tile.getElementType().isIntOrFloat())
      words = std::max(words, tile.getNumElements() * std::max(1u, tile.getElementTypeBitWidth() / 32));
  return words;
}

/// Words of a tile that a lane may hold at once: more are mostly spilled.
constexpr int64_t kMostWords = 128;

/// Where the user says nothing: 4, as in Triton, but more where a lane would hold more than kMostWords, which register
/// allocators take seconds over. Products keep theirs, which their instructions depend on.
int usualNumWarps(mlir::ModuleOp module, const target &t) {
  int64_t words = 0;
  bool product = false;
  module.walk([&](mlir::Operation *op) {
    product |= mlir::isa<tt::DotOp>(op);
    words = std::max(words, wordsOf(op->getResultTypes()));
  });
  int warps = 4;
  while (!product && warps < 16 && words > kMostWords * warps * t.warp_size())
    warps *= 2;
  return warps;
}

/// Whether warps can take turns (codegen/lib/common/WarpTurns.h): products and copies in flight keep registers that are
/// one warp's, and branches without structure have no parts.
bool mayTakeTurns(mlir::ModuleOp module) {
  return !module
              .walk([](mlir::Operation *op) {
                bool apart = mlir::isa<tt::DotOp, ttg::LocalDotOp, tt::CallOp, ttg::AsyncCopyGlobalToLocalOp>(op) ||
                             mlir::isa<ttng::TTNGDialect>(op->getDialect()) || op->getNumSuccessors();
                return apart ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
              })
              .wasInterrupted();
}

/// What makes code of a word of a tile several times as long as usual.
int64_t lengthOf(mlir::Operation *op) {
  auto wide = [](mlir::Value v) {
    mlir::Type element = mlir::getElementTypeOrSelf(v);
    return element.isIntOrFloat() && element.getIntOrFloatBitWidth() > 32;
  };
  if (mlir::isa<mlir::arith::DivSIOp, mlir::arith::DivUIOp, mlir::arith::RemSIOp, mlir::arith::RemUIOp>(op) &&
      !op->getOperand(1).getDefiningOp<mlir::arith::ConstantOp>())
    return wide(op->getResult(0)) ? 4 : 2;
  auto reduce = mlir::dyn_cast<tt::ReduceOp>(op);
  return reduce && reduce.getSrcs().size() > 1 ? 2 : 1; // pairs of values and indices
}

/// How many warps of the layouts each warp does the work of in turn: as many as it takes for a lane to hold no more than
/// kMostWords of a tile at once. Else code grows with the tile, most of it spills, and compilers take seconds or minutes.
int chooseWarpTurns(mlir::ModuleOp module, const target &t, int warps) {
  constexpr int64_t kMostWarps = 64;
  int64_t words = 0;
  module.walk([&](mlir::Operation *op) {
    int64_t here = wordsOf(op->getResultTypes());
    for (mlir::Type operand : op->getOperandTypes())
      here = std::max(here, wordsOf(operand) * lengthOf(op));
    int64_t carried = 0; // all of it at once
    if (auto loop = mlir::dyn_cast<mlir::LoopLikeOpInterface>(op))
      for (mlir::Value v : loop.getRegionIterArgs())
        carried += wordsOf(v.getType());
    words = std::max({words, here, carried});
  });
  const bool may = mayTakeTurns(module);
  int turns = 1;
  while (may && 2 * turns * warps <= kMostWarps && words > kMostWords * turns * warps * t.warp_size())
    turns *= 2;
  return turns;
}

void checkRequest(const target &t, const compile_options &o, std::string_view lastStage) {
  auto refuse = [](std::string message) { throw error(stage::codegen, std::move(message)); };
  if (t.kind != target_kind::cpu && t.arch.empty())
    refuse(fmt::format("target '{}' names no architecture: write for instance {}:{}", t.str(),
                       t.str(), codegen::vendorOf(t.kind)->archs.front().name));
  unsigned most = 1024 / t.warp_size();
  if (o.num_warps < 0 ||
      (o.num_warps && (!llvm::has_single_bit(unsigned(o.num_warps)) || unsigned(o.num_warps) > most)))
    refuse(fmt::format("num_warps = {} is not a power of two from 1 to {}", o.num_warps, most));
  if (o.num_ctas != 1)
    refuse(fmt::format("num_ctas = {}: a program on several thread blocks of a cluster is not supported, use 1",
                       o.num_ctas));
  for (auto [option, value] : {std::pair("num_stages", o.num_stages), {"maxnreg", o.maxnreg}})
    if (value < 0)
      refuse(fmt::format("{} = {} is negative: 0 leaves it to the compiler", option, value));
  if (o.num_stages > 64)
    refuse(fmt::format("num_stages = {}: at most 64 trips of a loop can be in flight", o.num_stages));
  auto stages = stagesOf(t);
  if (!lastStage.empty() && !llvm::is_contained(stages, lastStage))
    refuse(
        fmt::format("target '{}' has no stage '{}'; its stages are {}", t.str(), lastStage, fmt::join(stages, ", ")));
}

/// What text says of shared memory must be true: every op's part lies within what the kernel is launched with.
void checkPlacement(mlir::ModuleOp module) {
  Diagnostics diagnostics(module.getContext());
  auto shared = module->getAttrOfType<mlir::IntegerAttr>(ttg::sharedAttr);
  bool outside = false;
  module.walk([&](mlir::Operation *op) {
    uint64_t bytes = uint64_t(scratchBytes(op)) + bufferBytes(op);
    std::optional<unsigned> offset = allocationOffset(op);
    if (!bytes || !offset || *offset + bytes <= uint64_t(shared.getInt()))
      return;
    op->emitError() << "needs shared memory up to byte " << *offset + bytes << ", but ttg.shared is " << shared.getInt();
    outside = true;
  });
  if (outside)
    diagnostics.raise(stage::codegen, "shared memory is not placed soundly");
}

/// Text may use matrix instructions that the target lacks; the pipeline does not.
void checkInstructions(mlir::ModuleOp module, const target &t) {
  Diagnostics diagnostics(module.getContext());
  using MatrixUnit = TargetModel::MatrixUnit;
  TargetModel model = TargetModel::of(codegen::modelOf(t), t.warp_size());
  bool lacking = false;
  module.walk([&](mlir::Operation *op) {
    auto dot = mlir::dyn_cast<tt::DotOp>(op);
    bool onWarp = dot && ttg::getMatrixEncoding(dot.getType());
    if ((mlir::isa<ttng::TTNGDialect>(op->getDialect()) && model.matrixUnit != MatrixUnit::WarpGroup) ||
        (onWarp && !model.executes(dot))) {
      op->emitError() << "'" << op->getName() << "' needs a matrix instruction that target '" << t.str() << "' lacks";
      lacking = true;
    }
  });
  if (lacking)
    diagnostics.raise(stage::codegen, "the ttgir was made for another target");
}

} // namespace

// ---- compile --------------------------------------------------------------------------------------------------------

compiled_kernel compile(ir_module &module, const target &t, const compile_options &options,
                        std::string_view lastStage) {
  compiled_kernel out;
  compile_into(out, module, t, options, lastStage);
  return out;
}

void compile_into(compiled_kernel &out, ir_module &owned, const target &t, const compile_options &given,
                  std::string_view lastStage) {
  checkRequest(t, given, lastStage);
  mlir::ModuleOp module = *owned.get().module;
  mlir::MLIRContext *context = module.getContext();
  out.compiled_for = t;
  out.options = given;
  if (!out.options.num_stages)
    out.options.num_stages = t.default_num_stages();
  auto finish = [&](std::string_view stage, std::string text) {
    out.stages.emplace_back(stage, std::move(text));
    return lastStage == stage;
  };

  // ttir and ttgir.
  bool native = t.kind == target_kind::cpu && !t.emulated();
  if (auto warps = module->getAttrOfType<mlir::IntegerAttr>(ttg::numWarpsAttr)) {
    // ttgir already: its layouts decide the number of warps, its lanes must be the target's.
    const int turns = ttg::lookupWarpTurns(module);
    out.options.num_warps = warps.getInt() / turns;
    if (turns > warps.getInt() || (turns > 1 && (native || !mayTakeTurns(module))))
      throw error(stage::codegen, fmt::format("the ttgir has {} = {}, but {}", ttg::warpTurnsAttr.str(), turns,
                                              turns > warps.getInt() ? "fewer warps" : "its warps cannot take turns"));
    if (ttg::lookupThreadsPerWarp(module) != t.warp_size())
      throw error(stage::codegen, fmt::format("the ttgir was made for warps of {} lanes, target '{}' has {}",
                                              ttg::lookupThreadsPerWarp(module), t.str(), t.warp_size()));
    checkInstructions(module, t);
    kernelOf(module);
    if (lastStage == "ttir")
      throw error(stage::codegen, "the module is ttgir already: there is no ttir stage");
    // Triton's dumps have no shared memory placed and leave barriers to its lowering.
    if (!module->hasAttr(ttg::sharedAttr))
      runPipeline(module, out.times,
                  [&](mlir::OpPassManager &pm) { buildSharedMemoryPipeline(pm, t.max_shared_bytes()); });
    else
      checkPlacement(module);
  } else {
    runPipeline(module, out.times, [](mlir::OpPassManager &pm) { buildTtirPipeline(pm); });
    kernelOf(module);
    if (finish("ttir", printModule(module)))
      return;
    // Warps are no hardware on the CPU but a way to cut the tile: the size of the tile decides.
    if (native)
      out.options.num_warps = chooseNumWarps(module, t.warp_size());
    else if (!out.options.num_warps)
      out.options.num_warps = usualNumWarps(module, t);
    TtgirOptions options;
    const int turns = native ? 1 : chooseWarpTurns(module, t, out.options.num_warps);
    options.numWarps = out.options.num_warps * turns;
    options.threadsPerWarp = t.warp_size();
    options.numCtas = out.options.num_ctas;
    options.numStages = out.options.num_stages;
    options.target = codegen::modelOf(t);
    options.wideLanes = native;
    options.maxSharedBytes = t.max_shared_bytes();
    runPipeline(module, out.times, [&](mlir::OpPassManager &pm) { buildTtgirPipeline(pm, options); });
    if (turns > 1)
      module->setAttr(ttg::warpTurnsAttr, mlir::IntegerAttr::get(mlir::IntegerType::get(context, 32), turns));
  }
  if (finish("ttgir", printModule(module)))
    return;

  // llir.
  auto start = Clock::now();
  tt::FuncOp kernel = kernelOf(module);
  unsigned sharedBytes = 0;
  if (auto shared = module->getAttrOfType<mlir::IntegerAttr>(ttg::sharedAttr))
    sharedBytes = shared.getInt();
  if (sharedBytes > t.max_shared_bytes())
    throw error(stage::codegen,
                fmt::format("the kernel needs {} bytes of shared memory, a program on '{}' may use {}: choose "
                            "smaller tiles",
                            sharedBytes, t.str(), t.max_shared_bytes()));
  auto info = codegen::createTargetInfo(t, out.options);
  auto machine = info->createTargetMachine(out.options);
  std::string llvmError;
  llvm::LLVMContext llvmContext;
  llvmContext.setDiagnosticHandler(std::make_unique<LlvmDiagnostics>(llvmError));
  auto raiseLlvmError = [&] {
    if (!llvmError.empty())
      throw error(stage::codegen, "LLVM makes no code of this: " + llvmError);
  };
  llvm::Module llvmModule("tessera", llvmContext);
  llvmModule.setTargetTriple(machine->getTargetTriple());
  llvmModule.setDataLayout(machine->createDataLayout());
  std::vector<std::string> libraries;
  {
    Diagnostics diagnostics(context);
    codegen::Emitter emitter(module, out.options, *info, llvmModule);
    if (failed(emitter.emitKernel(kernel, sharedBytes)))
      diagnostics.raise(stage::codegen, "the kernel cannot be lowered");
    libraries.assign(emitter.libraries().begin(), emitter.libraries().end());
  }
  std::string broken;
  llvm::raw_string_ostream brokenStream(broken);
  if (llvm::verifyModule(llvmModule, &brokenStream))
    throw error(stage::internal, "the lowering made invalid LLVM IR: " + broken);
  for (const std::string &path : libraries) {
    auto file = llvm::MemoryBuffer::getFile(path);
    if (!file)
      throw error(stage::codegen, fmt::format("the library '{}' cannot be read: {}", path, file.getError().message()));
    codegen::linkBitcode(llvmModule, **file);
  }
  info->linkLibraries(llvmModule);
  out.times.push_back({"llir", millisecondsSince(start)});
  start = Clock::now();
  codegen::optimize(llvmModule, *machine, info->packsOperations());
  info->finishModule(llvmModule, *machine);
  raiseLlvmError();
  out.times.push_back({"llvm-opt", millisecondsSince(start)});

  std::string llir;
  llvm::raw_string_ostream stream(llir);
  llvmModule.print(stream, nullptr);
  out.metadata.name = kernel.getName();
  out.metadata.num_warps = out.options.num_warps;
  out.metadata.warp_size = t.warp_size();
  out.metadata.num_ctas = out.options.num_ctas;
  out.metadata.shared_bytes = sharedBytes;
  for (mlir::Type type : kernel.getArgumentTypes()) {
    bool pointer = mlir::isa<tt::PointerType>(type);
    unsigned bits = pointer ? 64 : type.getIntOrFloatBitWidth();
    out.metadata.params.push_back({std::uint8_t(std::max(1u, bits / 8)), pointer});
  }
  if (finish("llir", std::move(llir)))
    return;

  try {
    info->emitMachineCode(llvmModule, *machine, out, lastStage);
  } catch (const error &) {
    raiseLlvmError(); // the cause of whatever the assembler says
    throw;
  }
  raiseLlvmError();
}

} // namespace tessera
