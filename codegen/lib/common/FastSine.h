#pragma once
// sin and cos of f32 without a library, for targets that count instructions.
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"

namespace tessera::codegen {

/// Up to here three floats of pi/2 are enough for sineOrCosine.
constexpr double maxFastAngle = 105615;

/// True where `x` (f32 or narrower) is beyond it.
llvm::Value *beyondFastAngle(llvm::IRBuilderBase &b, llvm::Value *x);

/// sin(x + quadrant * pi/2) for f32, within 1 ulp of 1 up to |x| = maxFastAngle. `toInt`: f32 to i32 towards zero, NaN to any.
llvm::Value *sineOrCosine(llvm::IRBuilderBase &b, llvm::Value *x, int quadrant,
                          llvm::function_ref<llvm::Value *(llvm::Value *)> toInt);

} // namespace tessera::codegen
