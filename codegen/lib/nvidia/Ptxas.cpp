// The external assembler: found at run time, spoken to through files and its report.
#include "NvidiaTargetInfo.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tessera/error.h>

extern char **environ;

namespace tessera::codegen {

std::string findPtxas() {
  auto usable = [](const std::string &path) { return llvm::sys::fs::can_execute(path); };
  if (const char *path = std::getenv("TESSERA_PTXAS")) {
    if (*path && !usable(path))
      throw error(stage::assemble, fmt::format("TESSERA_PTXAS is '{}', which is no program that can be run", path));
    return path;
  }
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *home = std::getenv(variable))
      if (std::string path = std::string(home) + "/bin/ptxas"; usable(path))
        return path;
  if (auto path = llvm::sys::findProgramByName("ptxas"))
    return *path;
  return usable("/usr/local/cuda/bin/ptxas") ? "/usr/local/cuda/bin/ptxas" : "";
}

namespace {

/// A file that goes away with its scope.
struct TemporaryFile {
  llvm::SmallString<128> path;
  explicit TemporaryFile(llvm::StringRef suffix) {
    if (auto failed = llvm::sys::fs::createTemporaryFile("tessera", suffix, path))
      throw error(stage::assemble, "no temporary file for ptxas can be made: " + failed.message());
  }
  ~TemporaryFile() { llvm::sys::fs::remove(path); }
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;
  std::string read() const {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }
};

/// Runs `args` with stdout and stderr to `log`; the exit status, or -1 when it could not run.
int run(const std::vector<std::string> &args, const char *log) {
  std::vector<char *> argv;
  for (auto &arg : args)
    argv.push_back(const_cast<char *>(arg.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t pid = 0;
  int failed = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed)
    return -1;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int numberIn(llvm::StringRef text, llvm::StringRef pattern) {
  llvm::SmallVector<llvm::StringRef> match;
  int value = -1;
  if (llvm::Regex(pattern).match(text, &match) && !match[1].getAsInteger(10, value))
    return value;
  return -1;
}

} // namespace

Assembled assemblePtx(const std::string &ptxas, llvm::StringRef ptx, llvm::StringRef arch,
                      const compile_options &options) {
  TemporaryFile source("ptx"), object("cubin"), log("log");
  {
    std::error_code failed;
    llvm::raw_fd_ostream stream(source.path, failed);
    stream << ptx;
    stream.close();
    if (failed || stream.has_error())
      throw error(stage::assemble, "PTX cannot be written to " + source.path.str().str());
  }
  std::vector<std::string> args{ptxas, "-v", "--gpu-name=" + arch.str()};
  if (options.line_info)
    args.push_back("-lineinfo");
  if (!options.enable_fp_fusion)
    args.push_back("--fmad=false");
  args.insert(args.end(), {source.path.str().str(), "-o", object.path.str().str()});
  int status = run(args, log.path.c_str());
  std::string report = log.read();
  if (status != 0)
    throw error(stage::assemble, status < 0 ? fmt::format("{} cannot be run", ptxas)
                                            : fmt::format("{} refused the PTX:\n{}", ptxas, report));
  Assembled result;
  result.cubin = object.read();
  result.registers = numberIn(report, "Used ([0-9]+) registers");
  result.spills = numberIn(report, "([0-9]+) bytes spill stores");
  return result;
}

} // namespace tessera::codegen
