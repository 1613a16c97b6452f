#pragma once
// AMD GPUs through LLVM's AMDGPU backend and lld. A lane value is a plain value: the code is written for one work-item.
#include "../common/CopyCounter.h"
#include "../common/ThreadTargetInfo.h"

namespace tessera::codegen {

using V = llvm::Value *;

/// What differs between architectures.
struct AmdArch {
  llvm::StringLiteral name;
  unsigned generation; ///< 9 (CDNA), 11 (RDNA 3), 12 (RDNA 4 and gfx1250)
  unsigned waveSize;
  bool laneSwaps;      ///< v_permlane16_swap and v_permlane32_swap
  /// fp8 conversions in hardware, of OCP's formats: 0 none, 1 to and from f32, 2 also through a scaled f16 (gfx950),
  /// 3 directly to and from f16 (gfx1250).
  unsigned ocpConversions;

  bool is(llvm::StringRef other) const { return name == other; }
};
/// Throws tessera::error for an unknown architecture.
const AmdArch &amdArch(llvm::StringRef arch);

class AmdTargetInfo final : public ThreadTargetInfo {
public:
  AmdTargetInfo(const target &t, const compile_options &options);

  unsigned warpSize() const override { return arch.waveSize; }
  std::unique_ptr<llvm::TargetMachine> createTargetMachine(const compile_options &options) const override;
  void takeTurn(B &b, V turn, unsigned warps) override;
  llvm::Function *createKernel(llvm::Module &m, B &b, llvm::StringRef name, llvm::ArrayRef<llvm::Type *> types,
                               llvm::SmallVectorImpl<V> &args, const compile_options &options,
                               unsigned sharedBytes) override;
  void finishKernel(B &b) override {
    finishCopies();
    b.CreateRetVoid();
  }
  void linkLibraries(llvm::Module &m) const override;

  V firstLane(B &b, V lane) override;
  V uniformWarpId(B &b) override { return firstLane(b, warpId(b)); }
  V programId(B &b, unsigned axis) override;
  V numPrograms(B &b, unsigned axis) override;
  void barrier(B &b) override;
  void globalBarrier(B &b) override;
  V shuffleXor(B &b, V v, unsigned mask) override;
  V shuffleIdx(B &b, V v, V index) override;
  V reductionPartner(B &b, V v, unsigned mask, unsigned done, bool whole) override;
  bool reducesNearLanesFirst() const override { return true; }
  V reductionResult(B &b, V v) override;

  llvm::SmallVector<V> loadGlobal(B &b, llvm::Type *elem, unsigned vec, V ptr, V pred, llvm::ArrayRef<V> other,
                                  const AccessHints &hints) override;
  void storeGlobal(B &b, llvm::Type *elem, V ptr, V pred, llvm::ArrayRef<V> values, const AccessHints &hints) override;
  llvm::SmallVector<V> loadShared(B &b, llvm::Type *elem, unsigned vec, V offset, V pred,
                                  llvm::ArrayRef<V> tags) override;
  void storeShared(B &b, llvm::Type *elem, V offset, V pred, llvm::ArrayRef<V> values, llvm::ArrayRef<V> tags) override;

  // AmdMatrix.cpp
  MatrixFeatures matrixFeatures() const override;
  llvm::SmallVector<V> mma(B &b, const MmaShape &shape, llvm::ArrayRef<V> a, llvm::ArrayRef<V> bb,
                           llvm::ArrayRef<V> c) override;
  llvm::SmallVector<V> loadTransposed(B &b, V rowOffset, llvm::ArrayRef<V> tags) override;
  void asyncCopy(B &b, unsigned bytes, V sharedOffset, V globalPtr, V active, V pred, const AccessHints &hints,
                 llvm::ArrayRef<V> tags) override;
  void asyncCommit(B &b) override;
  void asyncWait(B &b, unsigned pending) override;
  /// `access` of LDS reads or writes no byte of a copy that has not been waited for.
  void markNoCopy(llvm::Instruction *access);
  /// A barrier that does not wait for copies in flight, as LLVM's fences do.
  void barrierAmongCopies(B &b);
  void finishCopies(); ///< when the kernel's body is complete

  // AmdMath.cpp
  llvm::SmallVector<V> convertToFp8(B &b, MatrixType to, V low, V high) override;
  llvm::SmallVector<V> convertFromFp8(B &b, MatrixType from, V low, V high) override;

  void assertTrue(B &b, V cond, llvm::StringRef message) override;
  llvm::StringRef whyNoPrint() const override;
  void print(B &, llvm::StringRef, llvm::ArrayRef<V>, llvm::ArrayRef<bool>, bool) override {}

  bool packsOperations() const override { return true; }
  void finishModule(llvm::Module &m, llvm::TargetMachine &tm) const override;
  void emitMachineCode(llvm::Module &m, llvm::TargetMachine &tm, compiled_kernel &out,
                       llvm::StringRef lastStage) const override;

private:
  V fastMath(B &b, MathFn fn, llvm::ArrayRef<V> args) override;
  V saturate(B &b, V v, bool isSigned) const override;
  /// `fn` of each 32-bit word of `v`, of any element type.
  V mapWords(B &b, V v, llvm::function_ref<V(V)> fn);
  V dataParallel(B &b, V word, unsigned control); ///< a DPP move, of a word in all lanes
  std::string features() const; ///< of the processor, for LLVM
  V laneHere(B &b);                               ///< laneId, also in functions that the kernel calls
  /// Emits `then` for work-items with `pred`; the builder goes on behind it. Yields what `then` returned, else `otherwise`.
  V predicated(B &b, V pred, V otherwise, llvm::function_ref<V()> then);

  const AmdArch &arch;
  bool preciseMath;
  int maxRegisters; ///< of a work-item; 0: no limit
  unsigned threads = 0; ///< of a program
  CopyCounter copies;
  bool multiplies = false; ///< the kernel has had a matrix instruction
  llvm::MDNode *scopeOfCopies = nullptr;
};

/// Global accesses under a mask are calls of `tessera.load…` and `tessera.store…` while LLVM's middle end works. This makes
/// code of them: buffer instructions, whose range check drops lanes that are masked off, where each address is a uniform
/// base and an offset of 31 bits, else branches. AmdMasked.cpp.
void lowerMaskedAccesses(llvm::Function &f, llvm::TargetMachine &tm, const AmdArch &arch);

/// Index arithmetic that is used behind a loop of matrix products only: there instead of before it (AmdLoops.cpp).
void recomputeBehindLoops(llvm::Function &f, llvm::FunctionAnalysisManager &analyses);

/// The assembly text of a kernel of `warps` wavefronts; uses `m` up. `multiplies`: it has matrix instructions, and the
/// registers that they leave are worth another try (AmdOccupancy.cpp). Throws tessera::error.
std::string writeAmdAssembly(llvm::Module &m, llvm::TargetMachine &tm, const AmdArch &arch, unsigned warps, unsigned sharedBytes,
                             bool multiplies);

/// The machine code of assembly text as an object file. Throws tessera::error (stage assemble) with the assembler's text.
std::string assembleAmd(llvm::StringRef text, llvm::TargetMachine &tm);
void withoutOtherTargets(); ///< nothing; brings LldParts.cpp into the program
/// The code object that the HIP runtime loads, of such an object file.
std::string linkAmd(llvm::StringRef object);

/// What a code object says of its one kernel.
struct AmdKernelFacts {
  int vectorRegisters = -1; ///< of a work-item, accumulation registers included
  int scratchBytes = -1;    ///< of a work-item
};
/// Throws tessera::error (stage internal) where the note is not what the launcher is told.
AmdKernelFacts readAmdFacts(llvm::StringRef codeObject, const kernel_metadata &told);

} // namespace tessera::codegen
