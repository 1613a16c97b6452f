// Names the programs that make machine code, for the cache key: a rebuilt library or another assembler is another tool.
#include "nvidia/NvidiaTargetInfo.h"

#include "llvm-c/Core.h"
#include "llvm/Config/llvm-config.h"

#include <cstring>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>

#include <tessera/codegen/target.h>

namespace tessera {

namespace {

/// The build ID that the linker gave to the loaded file which holds `address`: a hash of its content.
std::string buildId(const void *address) {
  struct Search {
    ElfW(Addr) address;
    std::string id;
  } search{reinterpret_cast<ElfW(Addr)>(address), {}};
  dl_iterate_phdr(
      [](dl_phdr_info *file, size_t, void *data) {
        auto &s = *static_cast<Search *>(data);
        bool holds = false;
        for (int i = 0; i < file->dlpi_phnum; ++i) {
          auto &p = file->dlpi_phdr[i];
          holds |= p.p_type == PT_LOAD && s.address - (file->dlpi_addr + p.p_vaddr) < p.p_memsz;
        }
        for (int i = 0; holds && i < file->dlpi_phnum; ++i) {
          auto &p = file->dlpi_phdr[i];
          if (p.p_type != PT_NOTE)
            continue;
          auto *at = reinterpret_cast<const char *>(file->dlpi_addr + p.p_vaddr), *end = at + p.p_memsz;
          while (at + sizeof(ElfW(Nhdr)) <= end) {
            ElfW(Nhdr) note;
            std::memcpy(&note, at, sizeof note);
            auto padded = [](size_t n) { return (n + 3) & ~size_t(3); };
            const char *name = at + sizeof note, *content = name + padded(note.n_namesz);
            at = content + padded(note.n_descsz);
            if (note.n_type == NT_GNU_BUILD_ID && at <= end && note.n_namesz == 4 && !std::memcmp(name, "GNU", 4))
              for (size_t k = 0; k < note.n_descsz; ++k)
                s.id += fmt::format("{:02x}", static_cast<unsigned char>(content[k]));
          }
        }
        return holds ? 1 : 0;
      },
      &search);
  return search.id;
}

/// The assembler by its size and time of change: asking it for its version would cost more than reading the kernel.
std::string fileIdentity(const std::string &path) {
  struct stat s;
  if (path.empty() || ::stat(path.c_str(), &s) != 0)
    return "none";
  return fmt::format("{} bytes of {}.{:09}", s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
}

} // namespace

bool has_assembler() { return !codegen::findPtxas().empty(); }

std::string toolchain(const target &t) {
  static const std::string builds =
      fmt::format("tessera {}, llvm " LLVM_VERSION_STRING " {}", buildId(reinterpret_cast<const void *>(&buildId)),
                  buildId(reinterpret_cast<const void *>(&LLVMContextCreate)));
  switch (t.kind) {
  case target_kind::cuda: return builds + ", ptxas " + fileIdentity(codegen::findPtxas());
  case target_kind::cpu: return builds + ", " + host_cpu();
  case target_kind::hip: break;
  }
  return builds;
}

} // namespace tessera
