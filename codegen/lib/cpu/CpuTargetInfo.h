#pragma once
// The CPU target: the code is written for one warp, a lane value is the vector <W x T>. Native code has as many lanes
// as the host's registers hold floats; an emulating target has the lanes of the GPU and sends memory accesses through
// the executor's checks.
#include "../common/CopyCounter.h"
#include "HostCpu.h"
#include "Outline.h"

#include <tessera/codegen/TargetInfo.h>

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace tessera::codegen {

struct LaneRun;

class CpuTargetInfo final : public TargetInfo {
public:
  CpuTargetInfo(const target &t, const compile_options &options);

  unsigned warpSize() const override { return lanes; }
  unsigned globalAddressSpace() const override { return 0; }
  std::unique_ptr<llvm::TargetMachine> createTargetMachine(const compile_options &options) const override;
  llvm::Function *createKernel(llvm::Module &m, B &b, llvm::StringRef name, llvm::ArrayRef<llvm::Type *> types,
                               llvm::SmallVectorImpl<V> &args, const compile_options &options,
                               unsigned sharedBytes) override;
  void finishKernel(B &b) override;
  void linkLibraries(llvm::Module &m) const override;

  llvm::Type *laneType(llvm::Type *elem) const override;
  V splat(B &b, V uniform) override { return b.CreateVectorSplat(lanes, uniform); }
  V firstLane(B &b, V lane) override { return b.CreateExtractElement(lane, uint64_t(0)); }
  V laneId(B &b) override;
  V warpId(B &) override { return warp; }
  void takeTurn(B &b, V turn, unsigned warps) override {
    warp = b.CreateOr(warp, b.CreateShl(turn, llvm::Log2_32(warps), "", true, true), "", /*IsDisjoint=*/true);
  }
  V programId(B &, unsigned axis) override { return program[axis]; }
  V numPrograms(B &, unsigned axis) override { return grid[axis]; }
  void barrier(B &b) override;
  V shuffleXor(B &b, V v, unsigned mask) override;
  V shuffleIdx(B &b, V v, V index) override;

  llvm::SmallVector<V> loadGlobal(B &b, llvm::Type *elem, unsigned vec, V ptr, V pred, llvm::ArrayRef<V> other,
                                  const AccessHints &hints) override;
  void storeGlobal(B &b, llvm::Type *elem, V ptr, V pred, llvm::ArrayRef<V> values, const AccessHints &hints) override;
  V loadUniform(B &b, llvm::Type *elem, V ptr, V pred, V other, const AccessHints &hints) override;
  void storeUniform(B &b, V ptr, V pred, V value, const AccessHints &hints) override;
  llvm::SmallVector<V> loadShared(B &b, llvm::Type *elem, unsigned vec, V offset, V pred,
                                  llvm::ArrayRef<V> tags) override;
  void storeShared(B &b, llvm::Type *elem, V offset, V pred, llvm::ArrayRef<V> values, llvm::ArrayRef<V> tags) override;
  bool wantsTags() const override { return emulated; }
  bool countsTraffic() const override { return counting; }
  void countFlops(B &b, uint64_t flops) override;

  std::pair<unsigned, unsigned> accumulatorBlock(llvm::Type *acc) const override;
  // Of emulated GPUs (CpuMatrix.cpp).
  MatrixFeatures matrixFeatures() const override;
  MatrixInstruction widest(const MatrixInstruction &i, int64_t rows, int64_t depth) const final;
  llvm::SmallVector<V> mma(B &b, const MmaShape &shape, llvm::ArrayRef<V> a, llvm::ArrayRef<V> bb,
                           llvm::ArrayRef<V> c) override;
  llvm::SmallVector<V> warpGroupMma(B &b, const WarpGroupShape &shape, llvm::ArrayRef<V> a, V descB, llvm::ArrayRef<V> c,
                             V useAcc) override;
  void warpGroupFence(B &b) override { call(b, "tessera_cpu_wgmma_fence", {context}); }
  void warpGroupCommit(B &b) override { call(b, "tessera_cpu_wgmma_commit", {context}); }
  llvm::SmallVector<V> warpGroupWait(B &b, unsigned pending, llvm::ArrayRef<V> values) override;
  void fenceAsyncShared(B &b) override { call(b, "tessera_cpu_fence_async", {context}); }
  void asyncCopy(B &b, unsigned bytes, V sharedOffset, V globalPtr, V active, V pred, const AccessHints &hints,
                 llvm::ArrayRef<V> tags) override;
  void asyncCommit(B &b) override;
  void asyncWait(B &b, unsigned pending) override;
  llvm::SmallVector<V> loadMatrix(B &b, unsigned count, bool transposed, V rowOffset, llvm::ArrayRef<V> tags) override;
  llvm::SmallVector<V> loadTransposed(B &b, V rowOffset, llvm::ArrayRef<V> tags) override;
  void storeMatrix(B &b, bool transposed, V rowOffset, llvm::ArrayRef<V> registers, llvm::ArrayRef<V> tags) override;

  V math(B &b, MathFn fn, llvm::ArrayRef<V> args, bool precise) override;
  void assertTrue(B &b, V cond, llvm::StringRef message) override;
  void print(B &b, llvm::StringRef prefix, llvm::ArrayRef<V> values, llvm::ArrayRef<bool> isSigned, bool hex) override;

  void emitMachineCode(llvm::Module &m, llvm::TargetMachine &tm, compiled_kernel &out,
                       llvm::StringRef lastStage) const override;

private:
  V perLaneLoad(B &b, llvm::Type *elem, V ptrs, V pred, V other, unsigned alignment);
  void perLaneStore(B &b, V ptrs, V pred, V value, unsigned alignment);
  V runLoad(B &b, llvm::Type *vector, V ptr, V pred, V other, const AccessHints &hints);
  void runStore(B &b, V ptr, V pred, V value, const AccessHints &hints);
  V sharedPointers(B &b, V offset, unsigned bytes);
  V sharedPointer(B &b, const LaneRun &run);
  /// Calls one of the executor's checked accesses. `data` is what is stored, or what inactive lanes get from a load;
  /// `run`: the lanes' addresses follow one another. Returns what was loaded.
  llvm::SmallVector<V> checkedAccess(B &b, llvm::StringRef helper, llvm::Type *elem, unsigned vec, V address, V pred,
                                     llvm::ArrayRef<V> tags, llvm::ArrayRef<V> data, unsigned alignment, bool run);
  V slot(B &b, llvm::StringRef purpose, llvm::Type *type);
  V toSlot(B &b, llvm::StringRef purpose, llvm::ArrayRef<V> values); ///< values of one type, one after the other
  llvm::SmallVector<V> fromSlot(B &b, V memory, llvm::Type *type, unsigned count);
  /// A constant of the module for one access of the executor.
  llvm::Constant *accessOf(B &b, unsigned elemBytes, unsigned vec, unsigned alignment, unsigned run);
  V laneMask(B &b, V pred); ///< pred as i64, bit l = lane l; all lanes where null
  llvm::Constant *site(B &b, bool asPointer);
  V call(B &b, llvm::StringRef helper, llvm::ArrayRef<V> args, llvm::Type *result = nullptr);
  std::uint32_t registerOf(V word); ///< its number, as an operand of wgmma; 0 of constants
  void markRegisterWrites(B &b);
  V accumulatorsToSlot(B &b, llvm::ArrayRef<V> values); ///< for a wgmma or a wait, which take those not written yet
  void checkAccumulatorReads(B &b);
  bool countsCopies() const; ///< a wait says how many copies may be in flight, not how many groups
  void count(B &b, unsigned field, V amount);
  void countLanes(B &b, unsigned field, V pred, unsigned bytesPerLane);
  void countUniform(B &b, unsigned field, V pred, llvm::Type *elem);
  V once(B &b);

  bool emulated, counting, amd;
  unsigned computeCapability = 0; ///< of the emulated NVIDIA GPU
  std::pair<MatrixFamily, unsigned> amdVersion; ///< of the matrix instructions of the emulated AMD GPU
  unsigned lanes, numWarps = 1;
  const HostCpu &host;
  // Of the kernel being made.
  llvm::Function *kernel = nullptr;
  V context = nullptr, shared = nullptr, warp = nullptr, program[3] = {}, grid[3] = {};
  llvm::StringMap<V> slots;
  llvm::SmallVector<V> tickets; ///< results of the last wgmma
  V ticket = nullptr;           ///< what they are made of
  llvm::MapVector<V, std::uint32_t> operandRegisters; ///< numbers of values that a wgmma reads in registers
  llvm::SetVector<V> unfinished;                      ///< values that a wgmma may not have written yet
  llvm::SmallPtrSet<V, 4> accumulatorSlots;
  CopyCounter copies;
};

/// A constant of the generated module that nothing outside refers to.
llvm::GlobalVariable *privateConstant(llvm::Module &m, llvm::Constant *value, llvm::StringRef name);

/// Rewrites what the host's code generator does badly: arithmetic on f16 and bf16 (done in f32 and rounded after each
/// operation), conversions to them, and vector integer division.
void prepareForHost(llvm::Module &m);

} // namespace tessera::codegen
