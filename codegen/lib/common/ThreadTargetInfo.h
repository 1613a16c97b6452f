#pragma once
// What targets have in common whose code is written for one thread: a lane value is a plain value, the hardware numbers the
// threads of a program, and shared memory is one array in the module.
#include "llvm/IR/GlobalVariable.h"
#include "llvm/Support/MathExtras.h"

#include <tessera/codegen/TargetInfo.h>

namespace tessera::codegen {

/// Instructions that the calls of one function may add to a kernel.
inline constexpr unsigned maxInlinedInstructions = 2048;

class ThreadTargetInfo : public TargetInfo {
public:
  unsigned globalAddressSpace() const override { return 1; }

  llvm::Type *laneType(llvm::Type *elem) const override { return elem; }
  V splat(B &, V uniform) override { return uniform; }
  V laneId(B &b) override { return b.CreateAnd(thread, warpSize() - 1); }
  V warpId(B &b) override { return b.CreateLShr(thread, llvm::Log2_32(warpSize())); }
  V threadId(B &) override { return thread; }
  void takeTurn(B &b, V turn, unsigned warps) override;

  V loadUniform(B &b, llvm::Type *elem, V ptr, V pred, V other, const AccessHints &hints) override;
  void storeUniform(B &b, V ptr, V pred, V value, const AccessHints &hints) override;

  V math(B &b, MathFn fn, llvm::ArrayRef<V> args, bool precise) override;
  bool hasNative(MathFn fn, llvm::Type *elem) const override;
  bool isLongFunction(MathFn fn, llvm::Type *elem, bool precise) const override;
  V outOfFastRange(B &b, MathFn fn, llvm::ArrayRef<V> args) override;
  V floatToInt(B &b, V v, llvm::Type *to, bool isSigned) override;
  bool supportsInlineAsm() const override { return true; }

protected:
  /// An f32 function where speed is wanted; nullptr: nothing is faster than the precise form.
  virtual V fastMath(B &b, MathFn fn, llvm::ArrayRef<V> args) = 0;
  /// Adds what the module needs of libclc, whose bitcode for the target this is. Whether it needs anything.
  static bool linkMath(llvm::Module &m, llvm::StringRef libclc);
  /// A long function that a thread calls for each of many elements stays a function: an assembler may need tens of seconds
  /// for hundreds of inlined copies with their branches.
  static void keepLongFunctions(llvm::Module &m);

  /// f32 to i32 or u32, truncated; saturates, and takes NaN to 0.
  virtual V saturate(B &b, V v, bool isSigned) const = 0;
  V sharedPointer(B &b, V offset);

  V thread = nullptr; ///< number of the thread in its program (i32)
  llvm::GlobalVariable *sharedMemory = nullptr;
};

} // namespace tessera::codegen
