#pragma once
// The CPU target: the code is written for one warp, a lane value is the vector <W x T>. Native code has as many lanes
// as the host's registers hold floats; an emulating target has the lanes of the GPU and sends memory accesses through
// the executor's checks.
#include "HostCpu.h"
#include "Outline.h"

#include <tessera/codegen/TargetInfo.h>

namespace tessera::codegen {

class CpuTargetInfo final : public TargetInfo {
public:
  CpuTargetInfo(const target &t, const compile_options &options);

  unsigned warpSize() const override { return lanes; }
  unsigned globalAddressSpace() const override { return 0; }
  std::unique_ptr<llvm::TargetMachine> createTargetMachine(const compile_options &options) const override;
  llvm::Function *createKernel(llvm::Module &m, B &b, llvm::StringRef name, llvm::ArrayRef<llvm::Type *> types,
                               llvm::SmallVectorImpl<V> &args, const compile_options &options,
                               unsigned sharedBytes) override;
  void finishKernel(B &b) override { b.CreateRetVoid(); }
  void linkLibraries(llvm::Module &m) const override;

  llvm::Type *laneType(llvm::Type *elem) const override;
  V splat(B &b, V uniform) override { return b.CreateVectorSplat(lanes, uniform); }
  V firstLane(B &b, V lane) override { return b.CreateExtractElement(lane, uint64_t(0)); }
  V laneId(B &b) override;
  V warpId(B &) override { return warp; }
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
  /// Calls one of the executor's checked accesses. `data` is what is stored, or what inactive lanes get from a load;
  /// `run`: the lanes' addresses follow one another. Returns what was loaded.
  llvm::SmallVector<V> checkedAccess(B &b, llvm::StringRef helper, llvm::Type *elem, unsigned vec, V address, V pred,
                                     llvm::ArrayRef<V> tags, llvm::ArrayRef<V> data, unsigned alignment, bool run);
  V slot(B &b, llvm::StringRef purpose, llvm::Type *type);
  V laneMask(B &b, V pred); ///< pred as i64, bit l = lane l; all lanes where null
  llvm::Constant *site(B &b, bool asPointer);
  V call(B &b, llvm::StringRef helper, llvm::ArrayRef<V> args);
  void count(B &b, unsigned field, V amount);
  void countLanes(B &b, unsigned field, V pred, unsigned bytesPerLane);
  void countUniform(B &b, unsigned field, V pred, llvm::Type *elem);

  bool emulated, counting, amd;
  unsigned lanes, numWarps = 1;
  const HostCpu &host;
  // Of the kernel being made.
  llvm::Function *kernel = nullptr;
  V context = nullptr, shared = nullptr, warp = nullptr, program[3] = {}, grid[3] = {};
  llvm::StringMap<V> slots;
};

/// Rewrites what the host's code generator does badly: arithmetic on f16 and bf16 (done in f32 and rounded after each
/// operation), conversions to them, and vector integer division. `countFlops`: adds float operations to the context's
/// counter in each block.
void prepareForHost(llvm::Module &m, bool countFlops);

} // namespace tessera::codegen
