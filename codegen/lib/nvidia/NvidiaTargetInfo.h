#pragma once
// NVIDIA GPUs through LLVM's NVPTX backend and ptxas. A lane value is a plain value: the code is written for one
// thread.
#include "../common/ThreadTargetInfo.h"

namespace tessera::codegen {

using V = llvm::Value *;

/// What differs between architectures.
struct NvidiaArch {
  unsigned capability = 0; ///< 80, 86, 90, …
  unsigned ptx = 0;        ///< lowest PTX version that has all the instructions used here, as in "+ptx80"
};
/// Throws tessera::error for an unknown architecture.
NvidiaArch nvidiaArch(llvm::StringRef arch);

class NvidiaTargetInfo final : public ThreadTargetInfo {
public:
  NvidiaTargetInfo(const target &t, const compile_options &options);

  unsigned warpSize() const override { return 32; }
  std::unique_ptr<llvm::TargetMachine> createTargetMachine(const compile_options &options) const override;
  llvm::Function *createKernel(llvm::Module &m, B &b, llvm::StringRef name, llvm::ArrayRef<llvm::Type *> types,
                               llvm::SmallVectorImpl<V> &args, const compile_options &options,
                               unsigned sharedBytes) override;
  bool lineDirectivesOnly() const override { return true; }
  void finishKernel(B &b) override { b.CreateRetVoid(); }
  void linkLibraries(llvm::Module &m) const override;

  V firstLane(B &, V lane) override { return lane; }
  V uniformWarpId(B &b) override { return shuffleIdx(b, warpId(b), b.getInt32(0)); }
  V programId(B &b, unsigned axis) override;
  V numPrograms(B &b, unsigned axis) override;
  void barrier(B &b) override;
  V shuffleXor(B &b, V v, unsigned mask) override;
  V shuffleIdx(B &b, V v, V index) override;
  V warpReduce(B &b, V v, unsigned numLanes, llvm::StringRef combine) override;

  llvm::SmallVector<V> loadGlobal(B &b, llvm::Type *elem, unsigned vec, V ptr, V pred, llvm::ArrayRef<V> other,
                                  const AccessHints &hints) override;
  void storeGlobal(B &b, llvm::Type *elem, V ptr, V pred, llvm::ArrayRef<V> values, const AccessHints &hints) override;
  llvm::SmallVector<V> loadShared(B &b, llvm::Type *elem, unsigned vec, V offset, V pred,
                                  llvm::ArrayRef<V> tags) override;
  void storeShared(B &b, llvm::Type *elem, V offset, V pred, llvm::ArrayRef<V> values, llvm::ArrayRef<V> tags) override;

  MatrixFeatures matrixFeatures() const override;
  MatrixInstruction widest(const MatrixInstruction &i, int64_t rows, int64_t depth) const final;
  llvm::SmallVector<V> mma(B &b, const MmaShape &shape, llvm::ArrayRef<V> a, llvm::ArrayRef<V> bb,
                           llvm::ArrayRef<V> c) override;
  llvm::SmallVector<V> warpGroupChains(B &b, const WarpGroupShape &shape, llvm::ArrayRef<V> a, llvm::ArrayRef<V> descB,
                                  llvm::ArrayRef<V> c, V useAcc) override;
  V sharedBaseOfDescriptors(B &b) override;
  void warpGroupCommit(B &b) override;
  llvm::SmallVector<V> warpGroupWait(B &b, unsigned pending, llvm::ArrayRef<V> values) override;
  void fenceAsyncShared(B &b) override;
  void asyncCopy(B &b, unsigned bytes, V sharedOffset, V globalPtr, V active, V pred, const AccessHints &hints,
                 llvm::ArrayRef<V> tags) override;
  void asyncCommit(B &b) override;
  void asyncWait(B &b, unsigned pending) override;
  llvm::SmallVector<V> loadMatrix(B &b, unsigned count, bool transposed, V rowOffset,
                                  llvm::ArrayRef<V> tags) override;
  void storeMatrix(B &b, bool transposed, V rowOffset, llvm::ArrayRef<V> registers, llvm::ArrayRef<V> tags) override;
  llvm::SmallVector<V> convertToFp8(B &b, MatrixType to, V low, V high) override;
  llvm::SmallVector<V> convertFromFp8(B &b, MatrixType from, V low, V high) override;

  void assertTrue(B &b, V cond, llvm::StringRef message) override;
  void print(B &b, llvm::StringRef prefix, llvm::ArrayRef<V> values, llvm::ArrayRef<bool> isSigned, bool hex) override;

  void finishModule(llvm::Module &m, llvm::TargetMachine &tm) const override;
  void emitMachineCode(llvm::Module &m, llvm::TargetMachine &tm, compiled_kernel &out,
                       llvm::StringRef lastStage) const override;

private:
  V fastMath(B &b, MathFn fn, llvm::ArrayRef<V> args) override;
  V saturate(B &b, V v, bool isSigned) const override;
  V shuffle(B &b, V v, llvm::Intrinsic::ID id, V operand);
  V specialRegister(B &b, llvm::Intrinsic::ID id, unsigned limit);
  /// An instruction on one type without memory or side effects, as text: "ex2.approx.ftz.f32".
  static V instruction(B &b, llvm::StringRef text, llvm::ArrayRef<V> args);
  V cachePolicy(B &b, EvictionPolicy policy);
  llvm::SmallVector<V> predicatedLoad(B &b, llvm::Twine opcode, llvm::Type *elem, unsigned vec, V ptr, V pred,
                                      llvm::ArrayRef<V> other, V policy);
  void predicatedStore(B &b, llvm::Twine opcode, llvm::Type *elem, V ptr, V pred, llvm::ArrayRef<V> values, V policy);
  /// The kernel uses an instruction that needs this version.
  void requirePtx(unsigned version) { facts.ptx = std::max(facts.ptx, version); }

  std::string arch;
  NvidiaArch facts;
  bool preciseMath;
};

/// Machine code of PTX, and what the assembler says of it.
struct Assembled {
  std::string cubin;
  int registers = -1, spills = -1;
};
/// Path of ptxas: TESSERA_PTXAS, $CUDA_HOME/bin, PATH, /usr/local/cuda/bin; empty where there is none.
std::string findPtxas();
/// Throws tessera::error (stage assemble) with the assembler's text.
Assembled assemblePtx(const std::string &ptxas, llvm::StringRef ptx, llvm::StringRef arch,
                      const compile_options &options);

} // namespace tessera::codegen
