// Compiles IR text (ttir or ttgir) for a target as far as a stage, and writes that stage.
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

#include <tessera/codegen/compile.h>
#include <tessera/error.h>

namespace cl = llvm::cl;

static cl::OptionCategory category("tessera-translate");
static cl::opt<std::string> input(cl::Positional, cl::desc("<input: ttir or ttgir; - is stdin>"), cl::init("-"),
                                  cl::cat(category));
static cl::opt<std::string> output("o", cl::desc("Where to write the stage"), cl::value_desc("file"), cl::init("-"),
                                   cl::cat(category));
static cl::opt<std::string> targetName("target", cl::desc("cpu, cpu:emulate=ARCH, cuda:ARCH or hip:ARCH"),
                                       cl::init("cuda:sm_90a"), cl::cat(category));
static cl::opt<std::string> emit("emit", cl::desc("ttir, ttgir, llir, ptx, cubin, amdgcn, hsaco, asm or obj; default: the last"),
                                 cl::cat(category));
static cl::opt<int> numWarps("num-warps", cl::desc("Warps of a program"), cl::init(0), cl::cat(category));
static cl::opt<int> numStages("num-stages", cl::desc("Software pipelining depth"), cl::init(0), cl::cat(category));
static cl::opt<int> maxRegisters("maxnreg", cl::desc("Registers a thread may use"), cl::init(0), cl::cat(category));
static cl::opt<bool> preciseMath("precise-math", cl::desc("Correctly rounded f32 functions"), cl::cat(category));
static cl::opt<bool> noFusion("no-fp-fusion", cl::desc("Keep a * b + c in two roundings"), cl::cat(category));
static cl::opt<bool> noLineInfo("no-line-info", cl::desc("No source lines in the machine code"), cl::cat(category));
static cl::opt<bool> debug("enable-asserts", cl::desc("Compile tt.assert in"), cl::cat(category));
static cl::opt<bool> countTraffic("count-traffic", cl::desc("CPU targets: count bytes and flops"), cl::cat(category));
static cl::opt<bool> times("times", cl::desc("Print the milliseconds of each pass and stage, registers and spills"),
                           cl::cat(category));

static int translate() {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(input, /*IsText=*/true);
  if (!buffer) {
    llvm::errs() << "tessera-translate: " << input << ": " << buffer.getError().message() << '\n';
    return 1;
  }
  llvm::StringRef text = (*buffer)->getBuffer();
  tessera::target target = tessera::parse_target(targetName);
  tessera::compile_options options;
  options.num_warps = numWarps;
  options.num_stages = numStages;
  options.maxnreg = maxRegisters;
  options.precise_math = preciseMath;
  options.enable_fp_fusion = !noFusion;
  options.line_info = !noLineInfo;
  options.debug = debug;
  options.count_traffic = countTraffic;
  tessera::ir_module module =
      tessera::parse_ir({text.data(), text.size()}, input == "-" ? "<stdin>" : input.getValue());
  // lld, which makes code objects, resets all options of the process.
  std::string path = output;
  bool wantsTimes = times;
  tessera::compiled_kernel kernel = tessera::compile(module, target, options, emit.getValue());

  std::error_code failed;
  llvm::raw_fd_ostream stream(path, failed);
  if (!failed)
    stream << kernel.stages.back().second;
  stream.close();
  if (failed || stream.has_error()) {
    stream.clear_error(); // else the destructor ends the process
    llvm::errs() << "tessera-translate: cannot write " << path << '\n';
    return 1;
  }
  if (wantsTimes) {
    double total = 0;
    for (auto &[name, milliseconds] : kernel.times) {
      llvm::errs() << fmt::format("{:32} {:9.3f} ms\n", name, milliseconds);
      total += milliseconds;
    }
    llvm::errs() << fmt::format("{:32} {:9.3f} ms\n", "total", total);
    if (kernel.registers >= 0)
      llvm::errs() << fmt::format("registers {}, spilled bytes {}, shared bytes {}\n", kernel.registers, kernel.spills,
                                  kernel.metadata.shared_bytes);
  }
  return 0;
}

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Tessera: IR text to any stage for any target\n");
  try {
    return translate();
  } catch (const tessera::error &e) {
    llvm::errs() << e.what() << '\n';
    return 1;
  }
}
