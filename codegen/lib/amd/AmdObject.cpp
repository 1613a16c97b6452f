// Assembly text to object file by LLVM's assembler, object file to code object by lld, both in this process; and what the
// code object's note says.
#include "AmdTargetInfo.h"

#include "../common/Optimize.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/MC/MCAsmBackend.h"
#include "llvm/MC/MCCodeEmitter.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCObjectFileInfo.h"
#include "llvm/MC/MCObjectWriter.h"
#include "llvm/MC/MCParser/MCAsmParser.h"
#include "llvm/MC/MCParser/MCTargetAsmParser.h"
#include "llvm/MC/MCStreamer.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"

#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

#include <tessera/error.h>

LLD_HAS_DRIVER(elf)

namespace tessera::codegen {

std::string assembleAmd(llvm::StringRef text, llvm::TargetMachine &tm) {
  const llvm::Target &target = tm.getTarget();
  const llvm::Triple &triple = tm.getTargetTriple();
  const llvm::MCTargetOptions &options = tm.Options.MCOptions;
  const llvm::MCSubtargetInfo &subtarget = *tm.getMCSubtargetInfo();

  std::string messages;
  llvm::SourceMgr source;
  source.setDiagHandler(
      [](const llvm::SMDiagnostic &d, void *to) {
        llvm::raw_string_ostream stream(*static_cast<std::string *>(to));
        d.print(nullptr, stream, /*ShowColors=*/false);
      },
      &messages);
  source.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text, "kernel.s", /*RequiresNullTerminator=*/false), {});
  llvm::MCContext context(triple, tm.getMCAsmInfo(), tm.getMCRegisterInfo(), &subtarget, &source, &options);
  std::unique_ptr<llvm::MCObjectFileInfo> sections(target.createMCObjectFileInfo(context, /*PIC=*/true));
  context.setObjectFileInfo(sections.get());

  llvm::SmallString<0> object;
  {
    llvm::raw_svector_ostream stream(object);
    std::unique_ptr<llvm::MCAsmBackend> backend(target.createMCAsmBackend(subtarget, *tm.getMCRegisterInfo(), options));
    std::unique_ptr<llvm::MCCodeEmitter> encoder(target.createMCCodeEmitter(*tm.getMCInstrInfo(), context));
    auto writer = backend->createObjectWriter(stream);
    std::unique_ptr<llvm::MCStreamer> streamer(target.createMCObjectStreamer(
        triple, context, std::move(backend), std::move(writer), std::move(encoder), subtarget));
    std::unique_ptr<llvm::MCAsmParser> parser(llvm::createMCAsmParser(source, context, *streamer, *tm.getMCAsmInfo()));
    std::unique_ptr<llvm::MCTargetAsmParser> instructions(
        target.createMCAsmParser(subtarget, *parser, *tm.getMCInstrInfo(), options));
    parser->setTargetParser(*instructions);
    if (parser->Run(/*NoInitialTextSection=*/false) || context.hadError())
      throw error(stage::assemble, "LLVM's assembler refused the code:\n" + messages);
  }
  return std::string(object);
}

namespace {

/// A file descriptor; lld knows it by its name below /proc.
struct Descriptor {
  int fd;
  std::string path;
  explicit Descriptor(int fd) : fd(fd), path(fmt::format("/proc/self/fd/{}", fd)) {
    if (fd < 0)
      throw error(stage::assemble, "the linker's files cannot be made: " + std::string(std::strerror(errno)));
  }
  ~Descriptor() { close(); }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  void close() {
    if (fd >= 0)
      ::close(fd);
    fd = -1;
  }
};

} // namespace

std::string linkAmd(llvm::StringRef object) {
  withoutOtherTargets();
  Descriptor input(::memfd_create("kernel.o", MFD_CLOEXEC));
  for (size_t written = 0; written < object.size();) {
    ssize_t n = ::write(input.fd, object.data() + written, object.size() - written);
    if (n <= 0)
      throw error(stage::assemble, "no memory for the linker's input");
    written += n;
  }
  // Only what is no regular file is written without a temporary one beside it. A pipe must be read while it is written.
  int ends[2] = {-1, -1};
  (void)!::pipe2(ends, O_CLOEXEC);
  Descriptor from(ends[0]), to(ends[1]);
  std::string codeObject, messages;
  std::thread reader([&] {
    char part[1 << 16];
    for (ssize_t n; (n = ::read(from.fd, part, sizeof part)) != 0;)
      if (n > 0)
        codeObject.append(part, n);
      else if (errno != EINTR)
        break;
  });
  bool linked = false;
  {
    // lld keeps its state in globals, and resets LLVM's options.
    std::lock_guard lock(processOptions());
    llvm::raw_string_ostream stream(messages);
    linked = lld::elf::link({"ld.lld", "-shared", "--threads=1", input.path.c_str(), "-o", to.path.c_str()}, stream,
                            stream, /*exitEarly=*/false, /*disableOutput=*/false);
    lld::CommonLinkerContext::destroy();
  }
  to.close();
  reader.join();
  if (!linked || codeObject.empty())
    throw error(stage::assemble, "lld made no code object:\n" + messages);
  return codeObject;
}

namespace {

using Map = llvm::msgpack::MapDocNode;

std::optional<uint64_t> number(Map &map, llvm::StringRef key) {
  auto node = map.find(key);
  if (node == map.end() || node->second.getKind() != llvm::msgpack::Type::UInt)
    return std::nullopt;
  return node->second.getUInt();
}

/// What in the note is not as the launcher is told; empty: nothing.
std::string difference(Map &kernel, const kernel_metadata &told) {
  auto differs = [](llvm::StringRef what, std::optional<uint64_t> is, uint64_t expected) {
    return is == expected ? std::string() : fmt::format("{} is {}, not {}", what.str(), is.value_or(0), expected);
  };
  std::string found;
  auto compare = [&](llvm::StringRef key, uint64_t expected) {
    if (found.empty())
      found = differs(key, number(kernel, key), expected);
  };
  compare(".wavefront_size", told.warp_size);
  compare(".max_flat_workgroup_size", told.num_warps * told.warp_size);
  compare(".group_segment_fixed_size", told.shared_bytes);
  auto list = kernel.find(".args");
  if (list == kernel.end())
    return !found.empty() || told.params.empty() ? found : "there are no arguments";
  auto &args = list->second.getArray(true);
  if (args.size() != told.params.size())
    return fmt::format("there are {} arguments, not {}", args.size(), told.params.size());
  uint64_t offset = 0;
  for (auto [i, param] : llvm::enumerate(told.params)) {
    offset = llvm::alignTo(offset, param.size);
    Map &arg = args[i].getMap(true);
    if (found.empty())
      found = differs(fmt::format("the offset of argument {}", i), number(arg, ".offset"), offset);
    if (found.empty())
      found = differs(fmt::format("the size of argument {}", i), number(arg, ".size"), param.size);
    offset += param.size;
  }
  return found;
}

} // namespace

AmdKernelFacts readAmdFacts(llvm::StringRef codeObject, const kernel_metadata &told) {
  auto fail = [](std::string why) {
    return error(stage::internal, "the code object is not what the launcher would be told: " + why);
  };
  auto file = llvm::object::ELF64LEFile::create(codeObject);
  if (!file)
    throw fail(llvm::toString(file.takeError()));
  auto headers = file->program_headers();
  if (!headers)
    throw fail(llvm::toString(headers.takeError()));
  for (const auto &header : *headers) {
    if (header.p_type != llvm::ELF::PT_NOTE)
      continue;
    llvm::msgpack::Document document;
    bool found = false;
    llvm::Error broken = llvm::Error::success();
    for (const auto &note : file->notes(header, broken))
      if (note.getName() == "AMDGPU" && note.getType() == llvm::ELF::NT_AMDGPU_METADATA)
        found |= document.readFromBlob(note.getDescAsStringRef(4), /*Multi=*/false);
    if (broken)
      throw fail(llvm::toString(std::move(broken)));
    if (!found)
      continue;
    auto &kernels = document.getRoot().getMap(true)["amdhsa.kernels"].getArray(true);
    if (kernels.size() != 1)
      throw fail(fmt::format("it has {} kernels", kernels.size()));
    Map &kernel = kernels[0].getMap(true);
    if (std::string why = difference(kernel, told); !why.empty())
      throw fail(why);
    return {int(number(kernel, ".vgpr_count").value_or(-1)), int(number(kernel, ".private_segment_fixed_size").value_or(-1))};
  }
  throw fail("it has no note");
}

} // namespace tessera::codegen
