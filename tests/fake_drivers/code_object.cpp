#include "code_object.h"

#include <cstring>
#include <elf.h>
#include <stdexcept>
#include <string_view>

#include <nlohmann/json.hpp>

namespace fake_gpu {
namespace {

using nlohmann::json;

[[noreturn]] void fail(const std::string &why) { throw std::runtime_error(why); }
void require(bool condition, const std::string &why) {
  if (!condition)
    fail(why);
}

constexpr unsigned em_amdgpu = 224, osabi_hsa = 64, metadata_note = 32;

std::string arch_of(std::uint32_t flags) {
  // EF_AMDGPU_MACH of LLVM's "ELF Header" table.
  static const std::map<unsigned, const char *> names{{0x30, "gfx908"},  {0x36, "gfx1030"}, {0x3f, "gfx90a"},
                                                      {0x41, "gfx1100"}, {0x45, "gfx1036"}, {0x46, "gfx1101"},
                                                      {0x49, "gfx1250"}, {0x4c, "gfx942"},  {0x4e, "gfx1201"},
                                                      {0x4f, "gfx950"}};
  auto i = names.find(flags & 0xff);
  require(i != names.end(), "the ELF flags name an unknown processor");
  return i->second;
}

class reader {
public:
  explicit reader(const void *image) : base_(static_cast<const char *>(image)) {
    std::memcpy(&header_, base_, sizeof header_);
    require(!std::memcmp(header_.e_ident, ELFMAG, SELFMAG) && header_.e_ident[EI_CLASS] == ELFCLASS64,
            "not an ELF file of 64 bits");
    require(header_.e_machine == em_amdgpu && header_.e_ident[EI_OSABI] == osabi_hsa, "not for an AMD GPU under HSA");
    require(header_.e_ident[EI_ABIVERSION] >= 2 && header_.e_ident[EI_ABIVERSION] <= 4,
            "a code object of version 4, 5 or 6 is needed");
    require(header_.e_type == ET_DYN, "not a shared object: was it linked?");
    for (int i = 0; i < header_.e_phnum; ++i)
      std::memcpy(&programs_.emplace_back(), base_ + header_.e_phoff + std::size_t(i) * header_.e_phentsize,
                  sizeof(Elf64_Phdr));
  }

  std::uint32_t flags() const { return header_.e_flags; }

  /// The bytes that are loaded at an address.
  const char *at(std::uint64_t address, std::uint64_t bytes, unsigned permission = 0) const {
    for (auto &p : programs_)
      if (p.p_type == PT_LOAD && address - p.p_vaddr < p.p_filesz && bytes <= p.p_filesz - (address - p.p_vaddr) &&
          (p.p_flags & permission) == permission)
        return base_ + p.p_offset + (address - p.p_vaddr);
    fail("an address that no segment holds");
  }

  json metadata() const {
    for (auto &p : programs_)
      for (std::uint64_t i = 0; p.p_type == PT_NOTE && i + sizeof(Elf64_Nhdr) <= p.p_filesz;) {
        Elf64_Nhdr note;
        std::memcpy(&note, base_ + p.p_offset + i, sizeof note);
        auto padded = [](std::uint64_t n) { return (n + 3) & ~std::uint64_t(3); };
        const char *name = base_ + p.p_offset + i + sizeof note, *content = name + padded(note.n_namesz);
        if (note.n_type == metadata_note && std::string_view(name, note.n_namesz) == std::string_view("AMDGPU\0", 7))
          return json::from_msgpack(content, content + note.n_descsz);
        i += sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
      }
    fail("no metadata note");
  }

  /// Of the dynamic symbols, the only ones that are left when a code object is loaded.
  Elf64_Sym symbol(const std::string &wanted) const {
    std::uint64_t table = 0, names = 0, hash = 0;
    for (auto &p : programs_)
      for (std::uint64_t i = 0; p.p_type == PT_DYNAMIC && i + sizeof(Elf64_Dyn) <= p.p_filesz; i += sizeof(Elf64_Dyn)) {
        Elf64_Dyn d;
        std::memcpy(&d, base_ + p.p_offset + i, sizeof d);
        (d.d_tag == DT_SYMTAB ? table : d.d_tag == DT_STRTAB ? names : d.d_tag == DT_HASH ? hash : ignored_) = d.d_un.d_ptr;
      }
    require(table && names && hash, "no dynamic symbols");
    std::uint32_t count;
    std::memcpy(&count, at(hash, 8) + 4, sizeof count);
    for (std::uint32_t i = 0; i < count; ++i) {
      Elf64_Sym s;
      std::memcpy(&s, at(table + i * sizeof s, sizeof s), sizeof s);
      if (wanted == at(names + s.st_name, 1))
        return s;
    }
    fail("no symbol " + wanted);
  }

private:
  const char *base_;
  Elf64_Ehdr header_;
  std::vector<Elf64_Phdr> programs_;
  mutable std::uint64_t ignored_ = 0;
};

template <class T> T field(const char *descriptor, std::size_t offset) {
  T v;
  std::memcpy(&v, descriptor + offset, sizeof v);
  return v;
}

kernel_info read_kernel(const reader &elf, const json &k) {
  kernel_info info;
  const std::string name = k.at(".name");
  info.kernarg_bytes = k.at(".kernarg_segment_size"), info.shared_bytes = k.at(".group_segment_fixed_size");
  info.private_bytes = k.at(".private_segment_fixed_size");
  info.max_threads = k.at(".max_flat_workgroup_size"), info.warp_size = k.at(".wavefront_size");
  info.registers = k.at(".vgpr_count");
  if (auto required = k.find(".reqd_workgroup_size"); required != k.end())
    info.required_threads = required->at(0).get<unsigned>() * required->at(1).get<unsigned>() * required->at(2).get<unsigned>();
  std::uint64_t end = 0;
  for (const json &a : k.value(".args", json::array())) {
    const std::string kind = a.at(".value_kind");
    kernel_argument argument{a.at(".offset"), a.at(".size"), kind == "global_buffer", kind.starts_with("hidden_")};
    require(argument.pointer || argument.hidden || kind == "by_value", "an argument of kind " + kind);
    require(argument.offset >= end && argument.offset % std::min<std::uint64_t>(argument.bytes, 8) == 0,
            "an argument at offset " + std::to_string(argument.offset));
    require(!argument.pointer || argument.bytes == 8, "a pointer of other than 8 bytes");
    end = argument.offset + argument.bytes;
    info.arguments.push_back(argument);
  }
  require(end <= info.kernarg_bytes, "arguments beyond the kernarg segment");

  const std::string symbol = k.at(".symbol");
  require(symbol == name + ".kd", "the descriptor of " + name + " is called " + symbol);
  const Elf64_Sym kd = elf.symbol(symbol);
  require(kd.st_size == 64 && kd.st_value % 64 == 0, "a kernel descriptor has 64 aligned bytes");
  const char *descriptor = elf.at(kd.st_value, 64);
  auto same = [&](const char *what, std::uint64_t described, std::uint64_t said) {
    require(described == said, name + ": " + what + " is " + std::to_string(described) + " in the descriptor, " +
                                   std::to_string(said) + " in the metadata");
  };
  same("the LDS size", field<std::uint32_t>(descriptor, 0), info.shared_bytes);
  same("the scratch size", field<std::uint32_t>(descriptor, 4), info.private_bytes);
  same("the kernarg size", field<std::uint32_t>(descriptor, 8), info.kernarg_bytes);
  same("the wavefront size", field<std::uint16_t>(descriptor, 56) >> 10 & 1 ? 32 : 64, info.warp_size);
  const std::uint64_t entry = kd.st_value + std::uint64_t(field<std::int64_t>(descriptor, 16));
  require(entry % 256 == 0, "code that is not aligned to 256 bytes");
  elf.at(entry, 4, PF_X);
  require(elf.symbol(name).st_value == entry, "the descriptor starts other code than " + name);
  return info;
}

} // namespace

code_object read_code_object(const void *image) {
  try {
    const reader elf(image);
    const json metadata = elf.metadata();
    code_object object{arch_of(elf.flags()), {}};
    const std::string target = metadata.at("amdhsa.target");
    require(target.starts_with("amdgcn-amd-amdhsa--" + object.arch), "the metadata is for " + target);
    for (const json &k : metadata.at("amdhsa.kernels"))
      object.kernels[k.at(".name")] = read_kernel(elf, k);
    return object;
  } catch (const json::exception &e) {
    fail(std::string("metadata: ") + e.what());
  }
}

} // namespace fake_gpu
