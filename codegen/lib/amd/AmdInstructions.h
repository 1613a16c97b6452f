#pragma once
// The matrix instructions of AMD GPUs that are used here, by what they multiply.
#include <optional>

#include <tessera/codegen/TargetInfo.h>

namespace tessera::codegen {

/// How the intrinsic of an instruction takes its operands besides A, B and C.
enum class AmdForm : uint8_t {
  Mfma,       ///< a, b, c, cbsz, abid, blgp
  MfmaScaled, ///< a, b, c, format of a, format of b, four numbers for scales
  Wmma,       ///< a, b, c
  WmmaInt,    ///< sign of a, a, sign of b, b, c, clamp
  WmmaMods,   ///< negate a, a, negate b, b, modify c, c, reuse a, reuse b
  WmmaModsC,  ///< a, b, modify c, c, reuse a, reuse b
  WmmaModsInt ///< sign of a, a, sign of b, b, c, reuse a, reuse b, clamp
};

struct AmdInstruction {
  AmdForm form;
  llvm::Intrinsic::ID intrinsic;
};

/// The instruction for `shape`; none where its version of the hardware has none.
std::optional<AmdInstruction> findAmdInstruction(const MmaShape &shape);
/// The family and version of `arch`'s matrix instructions.
std::pair<MatrixFamily, unsigned> amdMatrixVersion(llvm::StringRef arch);

} // namespace tessera::codegen
