// Assembly text, and how many wavefronts run at once. LLVM's scheduler gives up a wavefront as soon as a first schedule
// takes too many registers for it. Where a product misses the next program of a compute unit by a few registers, LLVM is
// told to keep it, and what it then makes is taken if it needs no scratch.
#include "AmdTargetInfo.h"

#include <tessera/error.h>

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace tessera::codegen {

namespace {

/// What the wavefronts of a compute unit share (gfx11 and gfx12: of two, a work-group processor), with four SIMDs each.
/// LLVM's AMDGPU usage guide, "Kernel descriptor": granules of registers; CDNA3 ISA 3.6, RDNA3 ISA 3.3.
struct Shares {
  unsigned registers, registerGranule, waves; ///< of a SIMD
  unsigned sharedBytes, sharedGranule;
  static constexpr unsigned simds = 4;

  static std::optional<Shares> of(const AmdArch &arch) {
    if (arch.is("gfx950"))
      return Shares{512, 8, 8, 160 << 10, 1280};
    if (arch.generation == 9)
      return Shares{512, 8, 8, 64 << 10, 512};
    if (arch.is("gfx1100") || arch.is("gfx1201"))
      return Shares{1536, 24, 16, 128 << 10, 1024};
    return std::nullopt;
  }

  unsigned wavesWith(unsigned used) const {
    return std::min<unsigned>(waves, registers / llvm::alignTo(std::max(used, 1u), registerGranule));
  }
};

/// More than this above what one more program allows, and it is not tried.
constexpr unsigned mostAbovePercent = 20;

std::string write(llvm::Module &m, llvm::TargetMachine &tm) {
  llvm::SmallString<0> written;
  llvm::raw_svector_ostream stream(written);
  llvm::legacy::PassManager passes;
  if (tm.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    throw error(stage::internal, "LLVM's AMDGPU target cannot write assembly");
  passes.run(m);
  return std::string(written);
}

unsigned noted(llvm::StringRef assembly, llvm::StringRef key) {
  unsigned value = 0;
  llvm::StringRef rest = assembly.split(key).second.ltrim();
  if (rest.consumeInteger(10, value))
    throw error(stage::internal, "the assembly says nothing of " + key.str());
  return value;
}

/// The wavefronts of a SIMD with which one more program runs, where `used` registers are a little too many for it.
std::optional<unsigned> withinReach(const Shares &shares, unsigned used, unsigned warps, unsigned sharedBytes) {
  unsigned programs = shares.wavesWith(used) * Shares::simds / warps + 1;
  unsigned waves = llvm::divideCeil(programs * warps, Shares::simds);
  if (waves > shares.waves || (sharedBytes && programs * llvm::alignTo(sharedBytes, shares.sharedGranule) > shares.sharedBytes))
    return std::nullopt;
  unsigned most = llvm::alignDown(shares.registers / waves, shares.registerGranule);
  if (used * 100 > most * (100 + mostAbovePercent))
    return std::nullopt;
  return shares.wavesWith(most);
}

} // namespace

std::string writeAmdAssembly(llvm::Module &m, llvm::TargetMachine &tm, const AmdArch &arch, unsigned warps, unsigned sharedBytes,
                             bool multiplies) {
  std::optional<Shares> shares = Shares::of(arch);
  if (!multiplies || !shares)
    return write(m, tm);
  std::unique_ptr<llvm::Module> again = llvm::CloneModule(m);
  std::string assembly = write(m, tm);
  std::optional<unsigned> waves = withinReach(*shares, noted(assembly, ".vgpr_count:"), warps, sharedBytes);
  if (!waves)
    return assembly;
  for (llvm::Function &f : *again)
    if (!f.isDeclaration())
      f.addFnAttr("amdgpu-waves-per-eu", std::to_string(*waves));
  std::string tighter = write(*again, tm);
  return noted(tighter, ".private_segment_fixed_size:") ? assembly : tighter;
}

} // namespace tessera::codegen
