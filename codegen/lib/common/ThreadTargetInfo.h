#pragma once
// What targets have in common whose code is written for one thread: a lane value is a plain value, the hardware numbers the
// threads of a program, and shared memory is one array in the module.
#include "llvm/IR/GlobalVariable.h"
#include "llvm/Support/MathExtras.h"

#include <tessera/codegen/TargetInfo.h>

namespace tessera::codegen {

class ThreadTargetInfo : public TargetInfo {
public:
  unsigned globalAddressSpace() const override { return 1; }

  llvm::Type *laneType(llvm::Type *elem) const override { return elem; }
  V splat(B &, V uniform) override { return uniform; }
  V laneId(B &b) override { return b.CreateAnd(thread, warpSize() - 1); }
  V warpId(B &b) override { return b.CreateLShr(thread, llvm::Log2_32(warpSize())); }
  V threadId(B &) override { return thread; }

  V loadUniform(B &b, llvm::Type *elem, V ptr, V pred, V other, const AccessHints &hints) override;
  void storeUniform(B &b, V ptr, V pred, V value, const AccessHints &hints) override;

  bool hasNative(MathFn fn, llvm::Type *elem) const override;
  bool isLongFunction(MathFn fn, llvm::Type *elem, bool precise) const override;
  V outOfFastRange(B &b, MathFn fn, llvm::ArrayRef<V> args) override;
  V floatToInt(B &b, V v, llvm::Type *to, bool isSigned) override;
  bool supportsInlineAsm() const override { return true; }

protected:
  /// f32 to i32 or u32, truncated; saturates, and takes NaN to 0.
  virtual V saturate(B &b, V v, bool isSigned) const = 0;
  V sharedPointer(B &b, V offset);

  V thread = nullptr; ///< number of the thread in its program (i32)
  llvm::GlobalVariable *sharedMemory = nullptr;
};

} // namespace tessera::codegen
