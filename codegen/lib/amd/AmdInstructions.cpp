// Which architecture has which matrix instruction: LLVM's IntrinsicsAMDGPU.td and the instruction lists of the ISA
// documents (CDNA2 to CDNA4, "Matrix Arithmetic Instructions"; RDNA3 and RDNA4, "WMMA").
#include "AmdInstructions.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"

namespace tessera::codegen {

namespace I = llvm::Intrinsic;
using T = MatrixType;
using Form = AmdForm;
constexpr MatrixFamily mfma = MatrixFamily::Mfma, wmma = MatrixFamily::Wmma;

struct Known {
  MatrixFamily family;
  unsigned first, last; ///< versions, as in MatrixInstruction
  unsigned m, n, k;
  T type;
  Form form;
  I::ID intrinsic;
};
static const Known instructions[] = {
    {mfma, 2, 4, 32, 32, 2, T::F32, Form::Mfma, I::amdgcn_mfma_f32_32x32x2f32},
    {mfma, 2, 4, 16, 16, 4, T::F32, Form::Mfma, I::amdgcn_mfma_f32_16x16x4f32},
    {mfma, 3, 3, 32, 32, 4, T::TF32, Form::Mfma, I::amdgcn_mfma_f32_32x32x4_xf32},
    {mfma, 3, 3, 16, 16, 8, T::TF32, Form::Mfma, I::amdgcn_mfma_f32_16x16x8_xf32},
    {mfma, 2, 4, 16, 16, 4, T::F64, Form::Mfma, I::amdgcn_mfma_f64_16x16x4f64},
    {mfma, 2, 4, 32, 32, 8, T::F16, Form::Mfma, I::amdgcn_mfma_f32_32x32x8f16},
    {mfma, 2, 4, 16, 16, 16, T::F16, Form::Mfma, I::amdgcn_mfma_f32_16x16x16f16},
    {mfma, 2, 4, 32, 32, 8, T::BF16, Form::Mfma, I::amdgcn_mfma_f32_32x32x8bf16_1k},
    {mfma, 2, 4, 16, 16, 16, T::BF16, Form::Mfma, I::amdgcn_mfma_f32_16x16x16bf16_1k},
    {mfma, 4, 4, 32, 32, 16, T::F16, Form::Mfma, I::amdgcn_mfma_f32_32x32x16_f16},
    {mfma, 4, 4, 16, 16, 32, T::F16, Form::Mfma, I::amdgcn_mfma_f32_16x16x32_f16},
    {mfma, 4, 4, 32, 32, 16, T::BF16, Form::Mfma, I::amdgcn_mfma_f32_32x32x16_bf16},
    {mfma, 4, 4, 16, 16, 32, T::BF16, Form::Mfma, I::amdgcn_mfma_f32_16x16x32_bf16},
    {mfma, 2, 2, 32, 32, 8, T::S8, Form::Mfma, I::amdgcn_mfma_i32_32x32x8i8}, // gone in the successors
    {mfma, 2, 2, 16, 16, 16, T::S8, Form::Mfma, I::amdgcn_mfma_i32_16x16x16i8},
    {mfma, 3, 4, 32, 32, 16, T::S8, Form::Mfma, I::amdgcn_mfma_i32_32x32x16_i8},
    {mfma, 3, 4, 16, 16, 32, T::S8, Form::Mfma, I::amdgcn_mfma_i32_16x16x32_i8},
    {mfma, 4, 4, 32, 32, 32, T::S8, Form::Mfma, I::amdgcn_mfma_i32_32x32x32_i8},
    {mfma, 4, 4, 16, 16, 64, T::S8, Form::Mfma, I::amdgcn_mfma_i32_16x16x64_i8},
    {wmma, 1, 2, 16, 16, 16, T::F16, Form::Wmma, I::amdgcn_wmma_f32_16x16x16_f16},
    {wmma, 1, 2, 16, 16, 16, T::BF16, Form::Wmma, I::amdgcn_wmma_f32_16x16x16_bf16},
    {wmma, 1, 2, 16, 16, 16, T::S8, Form::WmmaInt, I::amdgcn_wmma_i32_16x16x16_iu8},
    {wmma, 3, 3, 16, 16, 4, T::F32, Form::WmmaMods, I::amdgcn_wmma_f32_16x16x4_f32},
    {wmma, 3, 3, 16, 16, 32, T::F16, Form::WmmaMods, I::amdgcn_wmma_f32_16x16x32_f16},
    {wmma, 3, 3, 16, 16, 32, T::BF16, Form::WmmaMods, I::amdgcn_wmma_f32_16x16x32_bf16},
    {wmma, 3, 3, 16, 16, 64, T::S8, Form::WmmaModsInt, I::amdgcn_wmma_i32_16x16x64_iu8},
};

/// Eight-bit floats: an instruction for each pair of formats, by the exponent bits of a and b.
struct KnownFp8 {
  MatrixFamily family;
  unsigned first, last, m, n, k;
  Form form;
  I::ID e4e4, e4e5, e5e4, e5e5;
};
#define FP8(name) I::name##_fp8_fp8, I::name##_fp8_bf8, I::name##_bf8_fp8, I::name##_bf8_bf8
#define SCALED(name) I::name, I::name, I::name, I::name
static const KnownFp8 smallFloats[] = {
    {mfma, 3, 4, 32, 32, 16, Form::Mfma, FP8(amdgcn_mfma_f32_32x32x16)},
    {mfma, 3, 4, 16, 16, 32, Form::Mfma, FP8(amdgcn_mfma_f32_16x16x32)},
    {mfma, 4, 4, 32, 32, 64, Form::MfmaScaled, SCALED(amdgcn_mfma_scale_f32_32x32x64_f8f6f4)},
    {mfma, 4, 4, 16, 16, 128, Form::MfmaScaled, SCALED(amdgcn_mfma_scale_f32_16x16x128_f8f6f4)},
    {wmma, 2, 2, 16, 16, 16, Form::Wmma, FP8(amdgcn_wmma_f32_16x16x16)},
    {wmma, 3, 3, 16, 16, 64, Form::WmmaModsC, FP8(amdgcn_wmma_f32_16x16x64)},
    {wmma, 3, 3, 16, 16, 128, Form::WmmaModsC, FP8(amdgcn_wmma_f32_16x16x128)},
};
#undef FP8
#undef SCALED

std::optional<AmdInstruction> findAmdInstruction(const MmaShape &shape) {
  const MatrixInstruction &wanted = shape.instruction;
  auto meets = [&](const auto &i) {
    return i.family == wanted.family && i.first <= wanted.version && wanted.version <= i.last && i.m == wanted.m &&
           i.n == wanted.n && i.k == wanted.k;
  };
  for (const Known &i : instructions)
    if (meets(i) && i.type == shape.a && i.type == shape.b)
      return AmdInstruction{i.form, i.intrinsic};
  // gfx942 has its own formats, all others OCP's.
  bool fnuz = wanted.family == mfma && wanted.version == 3;
  T e4 = fnuz ? T::E4M3FNUZ : T::E4M3, e5 = fnuz ? T::E5M2FNUZ : T::E5M2;
  auto isOne = [&](T type) { return type == e4 || type == e5; };
  for (const KnownFp8 &i : smallFloats)
    if (meets(i) && isOne(shape.a) && isOne(shape.b))
      return AmdInstruction{i.form, shape.a == e4   ? (shape.b == e4 ? i.e4e4 : i.e4e5)
                                    : shape.b == e4 ? i.e5e4
                                                    : i.e5e5};
  return std::nullopt;
}

std::pair<MatrixFamily, unsigned> amdMatrixVersion(llvm::StringRef arch) {
  using Version = std::pair<MatrixFamily, unsigned>;
  return llvm::StringSwitch<Version>(arch)
      .Case("gfx90a", {MatrixFamily::Mfma, 2})
      .Case("gfx942", {MatrixFamily::Mfma, 3})
      .Case("gfx950", {MatrixFamily::Mfma, 4})
      .StartsWith("gfx11", {MatrixFamily::Wmma, 1})
      .Case("gfx1250", {MatrixFamily::Wmma, 3})
      .StartsWith("gfx12", {MatrixFamily::Wmma, 2})
      .Default({MatrixFamily::Mma, 0});
}

} // namespace tessera::codegen
