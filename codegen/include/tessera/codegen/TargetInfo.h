#pragma once
// What the shared lowering asks of a target. Everything that is not asked here is lowered once for all targets.
//
// Two kinds of LLVM value: a *uniform* value is the same for the whole program (a tt scalar: plain T); a *lane value* holds
// one register of every lane of a warp. On a GPU both are plain T, since the code is written for one lane. On the CPU a
// lane value is the vector <W x T>, since the code is written for one warp.
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
  /// warpId * warpSize + laneId where the hardware has it in one register (i32 lane value); nullptr where it has not.
  virtual V threadId(B &b) { return nullptr; }
  virtual V programId(B &b, unsigned axis) = 0;   ///< i32 uniform
  virtual V numPrograms(B &b, unsigned axis) = 0; ///< i32 uniform
  virtual void barrier(B &b) = 0;              ///< all warps of the program
  /// Lane value whose lane l holds `v` of lane l ^ mask. Any element type up to 64 bits.
  virtual V shuffleXor(B &b, V v, unsigned mask) = 0;
  /// Lane value whose lane l holds `v` of lane index[l] (i32 lane value).
  virtual V shuffleIdx(B &b, V v, V index) = 0;
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

  // ---- arithmetic ---------------------------------------------------------------------------------------------------
  /// `args` are all lane values or all uniform values of one float type (f16, bf16, f32, f64). f16/bf16 are widened by the
  /// shared lowering beforehand unless hasNative(fn, type).
  virtual V math(B &b, MathFn fn, llvm::ArrayRef<V> args, bool precise) = 0;
  virtual bool hasNative(MathFn fn, llvm::Type *elem) const { return false; }
  /// Float to integer, truncating, saturating, NaN to 0, in the target's own instruction; nullptr: the shared form.
  virtual V floatToInt(B &b, V v, llvm::Type *to, bool isSigned) { return nullptr; }
  /// Whether tt.elementwise_inline_asm may be used: the text is the target's own assembly.
  virtual bool supportsInlineAsm() const { return false; }
  /// Fails the kernel with `message` (and its location, as text) in lanes where `cond` (lane value or uniform i1) is false.
  virtual void assertTrue(B &b, V cond, llvm::StringRef message) = 0;
  /// device_print: prefix, then one line per lane value.
  virtual void print(B &b, llvm::StringRef prefix, llvm::ArrayRef<V> values, llvm::ArrayRef<bool> isSigned, bool hex) = 0;

  // ---- machine code -------------------------------------------------------------------------------------------------
  /// Appends the stages after "llir" ("ptx", "cubin"; "asm", "obj"; …) up to `lastStage`.
  virtual void emitMachineCode(llvm::Module &m, llvm::TargetMachine &tm, compiled_kernel &out, llvm::StringRef lastStage) const = 0;
};

/// The target's implementation, chosen by kind. Throws tessera::error for an unknown architecture.
std::unique_ptr<TargetInfo> createTargetInfo(const target &t, const compile_options &options);
std::unique_ptr<TargetInfo> createNvidiaTargetInfo(const target &t, const compile_options &options); // codegen/lib/nvidia
std::unique_ptr<TargetInfo> createCpuTargetInfo(const target &t, const compile_options &options);    // codegen/lib/cpu

} // namespace tessera::codegen
