// What lld, as a library, asks for and no code object needs: optimization at link time, and LLVM's other targets. Defined
// here, they stay out of the library; a target that LLVM may add is an undefined symbol of the static build.
#include "AmdTargetInfo.h"

#include "llvm/LTO/LTO.h"

#define NO_TARGET(name)                                                                                                \
  extern "C" void LLVMInitialize##name##TargetInfo() {}                                                                \
  extern "C" void LLVMInitialize##name##Target() {}                                                                    \
  extern "C" void LLVMInitialize##name##TargetMC() {}                                                                  \
  extern "C" void LLVMInitialize##name##AsmPrinter() {}                                                                \
  extern "C" void LLVMInitialize##name##AsmParser() {}
NO_TARGET(AArch64)
NO_TARGET(ARM)
NO_TARGET(AVR)
NO_TARGET(BPF)
NO_TARGET(Hexagon)
NO_TARGET(Lanai)
NO_TARGET(LoongArch)
NO_TARGET(M68k)
NO_TARGET(MSP430)
NO_TARGET(Mips)
NO_TARGET(PowerPC)
NO_TARGET(RISCV)
NO_TARGET(SPIRV)
NO_TARGET(Sparc)
NO_TARGET(SystemZ)
NO_TARGET(VE)
NO_TARGET(WebAssembly)
NO_TARGET(XCore)
NO_TARGET(Xtensa)

namespace lld::elf {

struct Ctx;
class BitcodeFile;
/// Made and asked at every link, whether there is bitcode or not. lld's own class, of which the members stay unused.
class BitcodeCompiler {
public:
  BitcodeCompiler(Ctx &);
  ~BitcodeCompiler();
  void add(BitcodeFile &);
  llvm::SmallVector<void *, 0> compile(); ///< object files: none
};
BitcodeCompiler::BitcodeCompiler(Ctx &) {}
BitcodeCompiler::~BitcodeCompiler() {}
void BitcodeCompiler::add(BitcodeFile &) {}
llvm::SmallVector<void *, 0> BitcodeCompiler::compile() { return {}; }

} // namespace lld::elf

namespace llvm::lto {

InputFile::~InputFile() = default;
Expected<std::unique_ptr<InputFile>> InputFile::create(MemoryBufferRef) {
  return createStringError("bitcode is not linked");
}
SmallVector<const char *> LTO::getRuntimeLibcallSymbols(const Triple &) { return {}; }

} // namespace llvm::lto

namespace tessera::codegen {

void withoutOtherTargets() {}

} // namespace tessera::codegen
