// The driver: IR text or a traced module in, every stage out. MLIR and LLVM report by diagnostics; exceptions begin
// here.
#include "Emitter.h"
#include "Optimize.h"

#include "tessera/ir/Module.h"
#include "tessera/ir/Parse.h"
#include "tessera/ir/Register.h"
#include "tessera/passes/Allocation.h"
#include "tessera/passes/Pipelines.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cstdlib>
#include <fmt/format.h>

#include <tessera/error.h>

namespace tessera {

// ---- modules --------------------------------------------------------------------------------------------------------

ir_module::ir_module(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
ir_module::ir_module(ir_module &&) noexcept = default;
ir_module &ir_module::operator=(ir_module &&) noexcept = default;
ir_module::~ir_module() = default;

static std::string print(mlir::ModuleOp module, bool locations) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::OpPrintingFlags flags;
  if (locations)
    flags.enableDebugInfo();
  module->print(stream, flags);
  if (!text.ends_with('\n'))
    stream << '\n';
  return text;
}

std::string ir_module::str(bool locations) const { return print(*impl_->module, locations); }

namespace {

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

using Clock = std::chrono::steady_clock;

double millisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Times each pass, and prints the module after the passes that TESSERA_PRINT_AFTER names ("all": after each).
class PassObserver : public mlir::PassInstrumentation {
public:
  explicit PassObserver(std::vector<stage_time> &times) : times(times) {
    if (const char *names = std::getenv("TESSERA_PRINT_AFTER"))
      llvm::StringRef(names).split(printAfter, ',');
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
  switch (t.kind) {
  case target_kind::cuda: stages.insert(stages.end(), {"ptx", "cubin"}); break;
  case target_kind::hip: stages.insert(stages.end(), {"amdgcn", "hsaco"}); break;
  case target_kind::cpu: stages.insert(stages.end(), {"asm", "obj"}); break;
  }
  return stages;
}

void checkRequest(const target &t, const compile_options &o, std::string_view lastStage) {
  auto refuse = [](std::string message) { throw error(stage::codegen, std::move(message)); };
  if (t.kind != target_kind::cpu && t.arch.empty())
    refuse(fmt::format("target '{}' names no architecture: write for instance cuda:sm_90a", t.str()));
  unsigned most = 1024 / t.warp_size();
  if (o.num_warps < 0 ||
      (o.num_warps && (!llvm::has_single_bit(unsigned(o.num_warps)) || unsigned(o.num_warps) > most)))
    refuse(fmt::format("num_warps = {} is not a power of two from 1 to {}", o.num_warps, most));
  if (o.num_ctas != 1)
    refuse(fmt::format("num_ctas = {}: a program on several thread blocks of a cluster is not supported, use 1",
                       o.num_ctas));
  if (o.num_stages < 0 || o.maxnreg < 0)
    refuse("num_stages and maxnreg cannot be negative");
  auto stages = stagesOf(t);
  if (!lastStage.empty() && !llvm::is_contained(stages, lastStage))
    refuse(
        fmt::format("target '{}' has no stage '{}'; its stages are {}", t.str(), lastStage, fmt::join(stages, ", ")));
}

/// The text of `ttg.target`: "cuda:90", "hip:gfx942" or "cpu".
std::string targetText(const target &t) {
  llvm::StringRef arch(t.arch);
  if (arch.consume_front("sm_"))
    return "cuda:" + arch.take_while([](char c) { return c >= '0' && c <= '9'; }).str();
  return arch.empty() ? "cpu" : "hip:" + arch.str();
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

} // namespace

ir_module parse_ir(std::string_view text, std::string_view name) {
  auto p = std::make_unique<ir_module::impl>();
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  p->context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  p->context->loadAllAvailableDialects();
  Diagnostics diagnostics(p->context.get());
  p->module = parseModule({text.data(), text.size()}, {name.data(), name.size()}, p->context.get());
  if (!p->module)
    diagnostics.raise(stage::verify, "the text is no module");
  return ir_module(std::move(p));
}

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
    out.options.num_stages = t.kind == target_kind::cuda ? 3 : 2;
  auto finish = [&](std::string_view stage, std::string text) {
    out.stages.emplace_back(stage, std::move(text));
    return lastStage == stage;
  };

  // ttir and ttgir.
  bool native = t.kind == target_kind::cpu && !t.emulated();
  if (auto warps = module->getAttrOfType<mlir::IntegerAttr>(ttg::numWarpsAttr)) {
    // ttgir already: its layouts decide the number of warps, its lanes must be the target's.
    out.options.num_warps = warps.getInt();
    if (ttg::lookupThreadsPerWarp(module) != t.warp_size())
      throw error(stage::codegen, fmt::format("the ttgir was made for warps of {} lanes, target '{}' has {}",
                                              ttg::lookupThreadsPerWarp(module), t.str(), t.warp_size()));
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
    if (finish("ttir", print(module, false)))
      return;
    // Warps are no hardware on the CPU but a way to cut the tile: the size of the tile decides.
    if (native)
      out.options.num_warps = chooseNumWarps(module, t.warp_size());
    else if (!out.options.num_warps)
      out.options.num_warps = 4;
    TtgirOptions options;
    options.numWarps = out.options.num_warps;
    options.threadsPerWarp = t.warp_size();
    options.numCtas = out.options.num_ctas;
    options.target = targetText(t);
    options.wideLanes = native;
    options.maxSharedBytes = t.max_shared_bytes();
    runPipeline(module, out.times, [&](mlir::OpPassManager &pm) { buildTtgirPipeline(pm, options); });
  }
  if (finish("ttgir", print(module, false)))
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
  llvm::LLVMContext llvmContext;
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
  codegen::optimize(llvmModule, *machine);
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

  info->emitMachineCode(llvmModule, *machine, out, lastStage);
}

} // namespace tessera
