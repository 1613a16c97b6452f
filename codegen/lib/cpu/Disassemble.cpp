// Object file -> assembly text with labels, branch targets and the names of what is called.
#include "Disassemble.h"

#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBufferRef.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

#include <tessera/error.h>

using namespace llvm;

namespace tessera::codegen {

template <class T> static T value(Expected<T> result) {
  if (!result)
    throw error(stage::codegen, "the machine code cannot be read back: " + toString(result.takeError()));
  return std::move(*result);
}

std::string disassemble(StringRef object, const TargetMachine &tm) {
  InitializeNativeTargetDisassembler();
  const Target &target = tm.getTarget();
  MCContext context(tm.getTargetTriple(), tm.getMCAsmInfo(), tm.getMCRegisterInfo(), tm.getMCSubtargetInfo());
  std::unique_ptr<MCDisassembler> decoder(target.createMCDisassembler(*tm.getMCSubtargetInfo(), context));
  std::unique_ptr<MCInstPrinter> printer(
      target.createMCInstPrinter(tm.getTargetTriple(), tm.getMCAsmInfo()->getAssemblerDialect(), *tm.getMCAsmInfo(),
                                 *tm.getMCInstrInfo(), *tm.getMCRegisterInfo()));
  if (!decoder || !printer)
    throw error(stage::codegen, "this build of LLVM has no disassembler for the host");
  printer->setPrintBranchImmAsAddress(true);

  std::unique_ptr<object::ObjectFile> file =
      value(object::ObjectFile::createObjectFile(MemoryBufferRef(object, "kernel")));
  std::string text;
  raw_string_ostream out(text);
  for (const object::SectionRef &section : file->sections()) {
    if (!section.isText() || section.getSize() == 0)
      continue;
    std::map<uint64_t, StringRef> labels, targets;
    for (const object::SymbolRef &symbol : file->symbols())
      if (auto in = value(symbol.getSection());
          in != file->section_end() && *in == section && value(symbol.getType()) == object::SymbolRef::ST_Function)
        labels[value(symbol.getAddress())] = value(symbol.getName());
    for (const object::SectionRef &relocations : file->sections())
      if (auto of = value(relocations.getRelocatedSection()); of != file->section_end() && *of == section)
        for (const object::RelocationRef &relocation : relocations.relocations())
          if (relocation.getSymbol() != file->symbol_end())
            targets[relocation.getOffset()] = value(relocation.getSymbol()->getName());

    StringRef content = value(section.getContents());
    ArrayRef<uint8_t> bytes(content.bytes_begin(), content.bytes_end());
    for (uint64_t at = 0, size; at < bytes.size(); at += size) {
      if (auto label = labels.find(at); label != labels.end())
        out << label->second << ":\n";
      MCInst inst;
      if (decoder->getInstruction(inst, size, bytes.slice(at), at, nulls()) != MCDisassembler::Success) {
        size = std::max<uint64_t>(size, 1);
        out << format("%8x:\t.byte ", unsigned(at)) << format_hex(bytes[at], 4) << '\n';
        continue;
      }
      out << format("%8x:", unsigned(at));
      printer->printInst(&inst, at, "", *tm.getMCSubtargetInfo(), out);
      auto used = targets.lower_bound(at);
      if (used != targets.end() && used->first < at + size && !used->second.empty())
        out << "\t# " << used->second;
      out << '\n';
    }
  }
  return text;
}

} // namespace tessera::codegen
