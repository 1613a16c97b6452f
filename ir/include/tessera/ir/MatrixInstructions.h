#pragma once
// Which element of a matrix instruction's operands each lane of a warp holds, by the vendors' ISA documents:
//   Mma   PTX ISA, "Warp-level matrix instructions", fragments of mma.sync;
//   Mfma  AMD Instinct MI200 (CDNA2), MI300 (CDNA3) and MI350 (CDNA4) ISA, "Matrix arithmetic instructions", dense
//   forms
//         with one block;
//   Wmma  AMD RDNA3 ISA 7.9, RDNA4 ISA 7.12, and LLVM's gfx1250: "Wave matrix multiply accumulate".
#include "tessera/ir/LinearLayout.h"

namespace tessera {

enum class MatrixFamily : uint8_t { Mma, Mfma, Wmma };
enum class MatrixOperand : uint8_t { A, B, C };

/// One instruction of a warp: C (m x n) += A (m x k) * B (k x n).
struct MatrixInstruction {
  MatrixFamily family = MatrixFamily::Mma;
  unsigned version = 2; ///< Mma 2, 3 = what sm_90 adds; Mfma 2 = gfx90a, 3 = gfx942, 4 = gfx950; Wmma 1 = gfx11, 2 = gfx12, 3 = gfx1250
  unsigned m = 0, n = 0, k = 0;
  unsigned bits = 16; ///< of an element of A and B

  unsigned lanes() const { return family == MatrixFamily::Mfma ? 64 : 32; }
  bool operator==(const MatrixInstruction &) const = default;
};

/// Whether the family's generation has the instruction, for some type of that many bits: dense products only, 16 or 32
/// rows and columns for Mfma, 16 for Wmma, 16x8 for Mma (64-bit: 8x8 of version 2, 16x8 of version 3).
bool exists(const MatrixInstruction &instruction);

/// (Register, Lane) -> (row, column) of one operand: A is {m, k}, B {k, n}, C {m, n}. A register is one element;
/// consecutive registers of A and B fill a 32-bit word from its low end, and consecutive words are the instruction's
/// registers. Lanes that hold copies have zero bases (Wmma 1: lanes 16 to 31 repeat A and B). The instruction exists.
LinearLayout fragmentOf(const MatrixInstruction &instruction, MatrixOperand operand);

/// Whether an NVIDIA GPU of this compute capability, as `ttg.target` has it (sm_90a is 90, sm_90 is 89), has wgmma.
constexpr bool hasWarpGroupMma(unsigned capability) { return capability == 90; }
/// The instruction that does the work of several of `i` on a tile of so many rows and so deep, on an NVIDIA GPU of this
/// compute capability; `i` where there is none, or where it is no faster.
MatrixInstruction widestOnNvidia(unsigned capability, const MatrixInstruction &i, int64_t rows, int64_t depth);

/// Elements of A (and B) that a lane holds in one instruction.
unsigned elementsPerLane(const MatrixInstruction &instruction);

/// Consecutive elements along k that a lane holds before k goes on in other lanes: the whole of elementsPerLane but for
/// Mma (two runs) and Wmma 3.
unsigned runAlongK(const MatrixInstruction &instruction);

} // namespace tessera
