#pragma once
// What the shared lowering asks of a target. Everything that is not asked here is lowered once for all targets.
//
// Two kinds of LLVM value: a *uniform* value is the same for the whole program (a tt scalar: plain T); a *lane value* holds
// one register of every lane of a warp. On a GPU both are plain T, since the code is written for one lane. On the CPU a
// lane value is the vector <W x T>, since the code is written for one warp.
#include "tessera/ir/MatrixInstructions.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>

#include <tessera/codegen/compile.h>
#include <tessera/codegen/target.h>

namespace tessera::codegen {

/// Float functions whose code is a target's choice.
enum class MathFn { Exp, Exp2, Log, Log2, Log10, Sqrt, Rsqrt, Sin, Cos, Tan, Tanh, Erf, Pow, Floor, Ceil, Trunc, Round, Div, Fma, Abs };

enum class CacheModifier { None, CA, CG, WB, CS, WT, CV };
enum class EvictionPolicy { Normal, EvictFirst, EvictLast };

/// How one access of `vec` consecutive elements per lane goes to memory.
struct AccessHints {
  CacheModifier cache = CacheModifier::None;
  EvictionPolicy evict = EvictionPolicy::Normal;
  bool isVolatile = false;
  unsigned alignment = 1;      ///< bytes every lane's address is known to be a multiple of
  bool contiguousLanes = false; ///< lane l accesses element l * vec after lane 0's: the warp touches one run of memory
  llvm::Value *firstCopies = nullptr; ///< where countsTraffic: lanes that do not load what another lane loads too; null: all
};

/// What a matrix instruction multiplies. TF32 is f32 of which the unit reads fewer bits; FNUZ: no infinities, no -0.
enum class MatrixType { F16, BF16, TF32, F64, E4M3, E5M2, S8, U8, F32, E4M3FNUZ, E5M2FNUZ };

/// One warp-wide multiply-add. The fragments are fragmentOf(instruction, …).
struct MmaShape {
  MatrixInstruction instruction;
  MatrixType a, b;
  llvm::Type *acc; ///< f32, i32 or f64
};

/// One multiply-add of four warps: m is 64; B, and A unless it is in registers, lie in shared memory. Fragments and
/// descriptors are those of PTX `wgmma.mma_async`.
struct WarpGroupShape {
  unsigned n, k;
  MatrixType a, b;
  llvm::Type *acc;     ///< f32 or i32
  bool transA, transB; ///< the memory is m-fastest (A), n-fastest (B)
};

/// What a target has of the operations between shared memory and matrix fragments.
struct MatrixFeatures {
  bool loadMatrix = false, storeMatrix = false;
  unsigned minAsyncCopyBytes = 0; ///< of one lane; 0: no asynchronous copies
  /// Copies of 4 or 16 bytes only, and lane l writes l times as many bytes after where lane 0 does.
  bool copiesInLaneOrder = false;
  bool loadTransposed = false;
  /// From so many copies on is a branch around their predicates worth its code, for when all elements are wanted; 0: never.
  unsigned minBranchedCopies = 0;
};

class TargetInfo {
public:
  using B = llvm::IRBuilderBase;
  using V = llvm::Value *;

  virtual ~TargetInfo();

  // ---- module ------------------------------------------------------------------------------------------------------
  virtual unsigned warpSize() const = 0;
  virtual unsigned globalAddressSpace() const = 0;
  virtual std::unique_ptr<llvm::TargetMachine> createTargetMachine(const compile_options &options) const = 0;
  /// Creates the kernel's function with an entry block, positions `b` in it, sets attributes (block size, …), and returns
  /// one uniform value per ttir parameter. `types` are scalar LLVM types, pointers in globalAddressSpace().
  virtual llvm::Function *createKernel(llvm::Module &m, B &b, llvm::StringRef name, llvm::ArrayRef<llvm::Type *> types,
                                       llvm::SmallVectorImpl<V> &args, const compile_options &options, unsigned sharedBytes) = 0;
  /// Whether source lines go into the code as directives only, without the sections of a debugger.
  virtual bool lineDirectivesOnly() const { return false; }
  /// Called when the body is complete (b at the end of the last block): emits the return.
  virtual void finishKernel(B &b) = 0;
  /// Links math bitcode and the like, before optimisation.
  virtual void linkLibraries(llvm::Module &m) const = 0;

  // ---- lanes and warps ----------------------------------------------------------------------------------------------
  virtual llvm::Type *laneType(llvm::Type *elem) const = 0;
  virtual V splat(B &b, V uniform) = 0;        ///< uniform -> lane value
  virtual V firstLane(B &b, V lane) = 0;       ///< lane value equal in every lane -> uniform
  virtual V laneId(B &b) = 0;                  ///< i32 lane value
  virtual V warpId(B &b) = 0;                  ///< i32 uniform within the warp
  /// warpId in a form that the hardware knows to be uniform, for descriptors.
  virtual V uniformWarpId(B &b) { return warpId(b); }
  /// warpId * warpSize + laneId where the hardware has it in one register (i32 lane value); nullptr where it has not.
  virtual V threadId(B &b) { return nullptr; }
  /// From here on the ids above are those of warp + turn * warps: each of so many warps does the work of several.
  virtual void takeTurn(B &b, V turn, unsigned warps) = 0;
  virtual V programId(B &b, unsigned axis) = 0;   ///< i32 uniform
  virtual V numPrograms(B &b, unsigned axis) = 0; ///< i32 uniform
  virtual void barrier(B &b) = 0; ///< all warps of the program; orders their accesses of shared memory
  /// Orders accesses of global memory as well, among the warps of the program.
  virtual void globalBarrier(B &b) { barrier(b); }
  /// Lane value whose lane l holds `v` of lane l ^ mask. Any element type up to 64 bits.
  virtual V shuffleXor(B &b, V v, unsigned mask) = 0;
  /// Lane value whose lane l holds `v` of lane index[l] (i32 lane value).
  virtual V shuffleIdx(B &b, V v, V index) = 0;
  /// A reduction over lanes in log2 steps: `v` of a lane whose number differs from l's in bit `mask` and, besides, at most in
  /// bits of `done`, over which all is combined already. Where the whole warp is reduced (`whole`), only its last lane need
  /// be right. Steps go from far to near lanes, or the other way where the target wants that.
  virtual V reductionPartner(B &b, V v, unsigned mask, unsigned done, bool whole) { return shuffleXor(b, v, mask); }
  virtual bool reducesNearLanesFirst() const { return false; }
  /// The result of such a reduction of the whole warp, in every lane.
  virtual V reductionResult(B &b, V v) { return v; }
  /// Packed reduction of a whole warp in one instruction where the target has it (redux.sync, …); nullptr if not.
  virtual V warpReduce(B &b, V v, unsigned numLanes, llvm::StringRef combine) { return nullptr; }

  // ---- memory -------------------------------------------------------------------------------------------------------
  /// Loads `vec` consecutive elements of type `elem` at each lane's `ptr` where `pred` (i1 lane value, nullptr = all).
  /// Returns `vec` lane values; where masked off they hold other[i], or 0 when `other` is empty.
  virtual llvm::SmallVector<V> loadGlobal(B &b, llvm::Type *elem, unsigned vec, V ptr, V pred, llvm::ArrayRef<V> other,
                                          const AccessHints &hints) = 0;
  virtual void storeGlobal(B &b, llvm::Type *elem, V ptr, V pred, llvm::ArrayRef<V> values, const AccessHints &hints) = 0;
  /// Uniform forms: one scalar. The store is done by one lane of one warp.
  virtual V loadUniform(B &b, llvm::Type *elem, V ptr, V pred, V other, const AccessHints &hints) = 0;
  virtual void storeUniform(B &b, V ptr, V pred, V value, const AccessHints &hints) = 0;
  /// Shared memory: `offset` is a byte offset (i32 lane value) into the program's shared memory. `tag`, when not null, is
  /// the i32 flat tensor index of the first element: emulated targets store it beside the data and compare it on loads,
  /// so that a wrong swizzle is seen; others ignore it.
  virtual llvm::SmallVector<V> loadShared(B &b, llvm::Type *elem, unsigned vec, V offset, V pred, llvm::ArrayRef<V> tags) = 0;
  virtual void storeShared(B &b, llvm::Type *elem, V offset, V pred, llvm::ArrayRef<V> values, llvm::ArrayRef<V> tags) = 0;
  virtual bool wantsTags() const { return false; }
  /// Whether the code counts what it does: loads then say which lanes hold copies, and countFlops is called.
  virtual bool countsTraffic() const { return false; }
  /// Adds to the program's count; every warp runs this.
  virtual void countFlops(B &b, uint64_t flops) {}

  /// How many rows and columns of lane values of accumulators stay in registers at once in a product without matrix
  /// unit; {0, 0}: all.
  virtual std::pair<unsigned, unsigned> accumulatorBlock(llvm::Type *acc) const { return {0, 0}; }

  // ---- matrix units and asynchronous copies -------------------------------------------------------------------------
  // Operands are packed: one i32 lane value for each 32-bit register, low elements in low bits; f64 operands are doubles.
  // Accumulators are one lane value of type `acc` per element. The defaults say that the target has none: an empty
  // result is reported by the lowering at the op.
  virtual MatrixFeatures matrixFeatures() const { return {}; }
  /// The instruction to use for tiles of so many rows and so deep where the accumulators' layout names `i`.
  virtual MatrixInstruction widest(const MatrixInstruction &i, int64_t rows, int64_t depth) const { return i; }
  /// d = a * b + c, one value for each of `c`. A and B are the fragments' registers in order.
  virtual llvm::SmallVector<V> mma(B &b, const MmaShape &shape, llvm::ArrayRef<V> a, llvm::ArrayRef<V> bb,
                                   llvm::ArrayRef<V> c) {
    return {};
  }
  /// Starts d = a * b + c (c ignored where the uniform i1 `useAcc` is false). `a`: 4 packed registers, or one i64 uniform
  /// descriptor. The result, and registers of `a`, must not be touched before warpGroupWait has returned them.
  virtual llvm::SmallVector<V> warpGroupMma(B &b, const WarpGroupShape &shape, llvm::ArrayRef<V> a, V descB, llvm::ArrayRef<V> c,
                                     V useAcc) {
    return {};
  }
  /// One product for each of `descB`, along k on the same accumulators; `a` holds the operands of one after those of the
  /// other, useAcc is that of the first. `c` may hold the accumulators (n / 2 each) of several such chains: `a` and `descB`
  /// then are those of one chain after those of the other. A target whose cost is in the number of statements makes one.
  virtual llvm::SmallVector<V> warpGroupChains(B &b, const WarpGroupShape &shape, llvm::ArrayRef<V> a,
                                               llvm::ArrayRef<V> descB, llvm::ArrayRef<V> c, V useAcc) {
    llvm::SmallVector<V> result;
    size_t own = shape.n / 2, steps = descB.size() * own / c.size(), perStep = a.size() / descB.size();
    for (size_t at = 0; at < descB.size();) {
      llvm::SmallVector<V> sums(c.slice(at / steps * own, own));
      for (size_t step = 0; step < steps; ++step, ++at)
        sums = warpGroupMma(b, shape, a.slice(at * perStep, perStep), descB[at], sums, step ? b.getTrue() : useAcc);
      result.append(sums);
    }
    return result;
  }
  /// What the address field of a descriptor holds for byte 0 of shared memory: bits 4 to 17 of its address (i32 uniform).
  virtual V sharedBaseOfDescriptors(B &b) { return b.getInt32(0); }
  /// Orders earlier register writes before the wgmmas that follow, where these do not see to it.
  virtual void warpGroupFence(B &b) {}
  virtual void warpGroupCommit(B &b) {} ///< closes a group of wgmmas
  /// Waits until at most `pending` groups are in flight; returns `values` as they are afterwards. Results of groups
  /// that may still be in flight are passed too, so that nothing moves across.
  virtual llvm::SmallVector<V> warpGroupWait(B &b, unsigned pending, llvm::ArrayRef<V> values) {
    return llvm::SmallVector<V>(values);
  }
  virtual void fenceAsyncShared(B &b) {} ///< makes shared-memory writes of this thread visible to wgmma
  /// Starts a copy of `bytes` (4, 8 or 16, naturally aligned) a lane from `globalPtr` to the shared byte offset. Lanes
  /// with `active` (null: all) false do nothing; of the others those with `pred` (null: all) false write zeros and do not
  /// read. `tags` (where wantsTags): flat index of each element, as for storeShared.
  virtual void asyncCopy(B &b, unsigned bytes, V sharedOffset, V globalPtr, V active, V pred, const AccessHints &hints,
                         llvm::ArrayRef<V> tags) {}
  virtual void asyncCommit(B &b) {}
  virtual void asyncWait(B &b, unsigned pending) {} ///< at most `pending` groups of this thread still in flight
  /// ldmatrix: `count` (1, 2, 4) matrices of 8 rows of 16 bytes; lane 8 i + r gives the shared byte offset of row r of
  /// matrix i. Register i of lane l holds bytes 4 (l % 4) … of row l / 4 of matrix i; `transposed`: of its transpose, with
  /// elements of 16 bits.
  /// `tags` (where wantsTags): flat index of each element of each register.
  virtual llvm::SmallVector<V> loadMatrix(B &b, unsigned count, bool transposed, V rowOffset, llvm::ArrayRef<V> tags) {
    return {};
  }
  /// The load of TransposedLoads.h: two words of four elements of 16 bits. `tags` as of loadMatrix.
  virtual llvm::SmallVector<V> loadTransposed(B &b, V rowOffset, llvm::ArrayRef<V> tags) { return {}; }
  /// stmatrix: the reverse, of registers.size() matrices.
  virtual void storeMatrix(B &b, bool transposed, V rowOffset, llvm::ArrayRef<V> registers, llvm::ArrayRef<V> tags) {}

  // ---- arithmetic ---------------------------------------------------------------------------------------------------
  /// `args` are all lane values or all uniform values of one float type (f16, bf16, f32, f64). f16/bf16 are widened by the
  /// shared lowering beforehand unless hasNative(fn, type).
  virtual V math(B &b, MathFn fn, llvm::ArrayRef<V> args, bool precise) = 0;
  virtual bool hasNative(MathFn fn, llvm::Type *elem) const { return false; }
  /// Whether `fn` is some dozens of instructions or more in every lane: chains of such are called, not inlined, where
  /// there are many.
  virtual bool isLongFunction(MathFn fn, llvm::Type *elem, bool precise) const { return false; }
  /// Where the fast form of `fn` does not hold and the precise one must be taken: true in lanes whose arguments lie
  /// outside its range; nullptr when it holds everywhere.
  virtual V outOfFastRange(B &b, MathFn fn, llvm::ArrayRef<V> args) { return nullptr; }
  /// Float to integer, truncating, saturating, NaN to 0, in the target's own instruction; nullptr: the shared form.
  virtual V floatToInt(B &b, V v, llvm::Type *to, bool isSigned) { return nullptr; }
  /// Conversions with fp8, rounding to nearest even; to fp8 saturating to the largest finite value, NaN stays NaN. Two
  /// lane values at once, as the hardware does: fp8 are i8 values, the others f16 or f32 (from fp8: whichever the
  /// hardware makes). Empty where the target has no such instruction.
  virtual llvm::SmallVector<V> convertToFp8(B &b, MatrixType to, V low, V high) { return {}; }
  virtual llvm::SmallVector<V> convertFromFp8(B &b, MatrixType from, V low, V high) { return {}; }
  /// Why device_print cannot be had, as the rest of a sentence; empty where it can.
  virtual llvm::StringRef whyNoPrint() const { return {}; }
  /// Whether tt.elementwise_inline_asm may be used: the text is the target's own assembly.
  virtual bool supportsInlineAsm() const { return false; }
  /// Fails the kernel with `message` (and its location, as text) in lanes where `cond` (lane value or uniform i1) is false.
  virtual void assertTrue(B &b, V cond, llvm::StringRef message) = 0;
  /// device_print: prefix, then one line per lane value.
  virtual void print(B &b, llvm::StringRef prefix, llvm::ArrayRef<V> values, llvm::ArrayRef<bool> isSigned, bool hex) = 0;

  // ---- machine code -------------------------------------------------------------------------------------------------
  /// Whether LLVM shall make pairs of equal operations: where instructions take two packed values.
  virtual bool packsOperations() const { return false; }
  /// What the target does to the module behind LLVM's middle end, before it is printed.
  virtual void finishModule(llvm::Module &m, llvm::TargetMachine &tm) const {}
  /// Appends the stages after "llir" ("ptx", "cubin"; "asm", "obj"; …) up to `lastStage`.
  virtual void emitMachineCode(llvm::Module &m, llvm::TargetMachine &tm, compiled_kernel &out, llvm::StringRef lastStage) const = 0;
};

/// The target's implementation, chosen by kind. Throws tessera::error for an unknown architecture.
std::unique_ptr<TargetInfo> createTargetInfo(const target &t, const compile_options &options);
std::unique_ptr<TargetInfo> createNvidiaTargetInfo(const target &t, const compile_options &options); // codegen/lib/nvidia
std::unique_ptr<TargetInfo> createAmdTargetInfo(const target &t, const compile_options &options);    // codegen/lib/amd
std::unique_ptr<TargetInfo> createCpuTargetInfo(const target &t, const compile_options &options);    // codegen/lib/cpu

} // namespace tessera::codegen
