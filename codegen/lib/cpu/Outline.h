#pragma once
// Code that is long for vectors (a gather without hardware, a division, a call per lane) lives once a module in an
// internal function instead of once a use: wide tiles use it hundreds of times, and must compile in well under a
// second.
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"

#include <string>

namespace tessera::codegen {

using Builder = llvm::IRBuilderBase;
using V = llvm::Value *;

/// Lets a function keep and pass the host's widest vectors whole, and probe its stack so that overflow meets a guard
/// page.
void setVectorAttributes(llvm::Function &f);

/// Calls the internal function `name` of b's module, which `body` makes at its first use from the arguments.
llvm::Value *callOutlined(Builder &b, const llvm::Twine &name, llvm::Type *result, llvm::ArrayRef<llvm::Value *> args,
                          llvm::function_ref<llvm::Value *(Builder &, llvm::ArrayRef<llvm::Value *>)> body);

/// Emits `for (lane = 0; lane < n; ++lane) body(lane)`; b goes on after the loop.
void laneLoop(Builder &b, unsigned n, llvm::function_ref<void(Builder &, llvm::Value *lane)> body);
/// Emits `if (condition) body()`.
void emitIf(Builder &b, llvm::Value *condition, llvm::function_ref<void(Builder &)> body);

/// The vector's lanes in memory of the current function (i1 as bytes).
llvm::Value *spill(Builder &b, llvm::Value *vector);
/// Lane `lane` of a spilled vector of type `vector`.
llvm::Value *loadLane(Builder &b, llvm::Type *vector, llvm::Value *memory, llvm::Value *lane);
void storeLane(Builder &b, llvm::Value *memory, llvm::Value *lane, llvm::Value *value);

/// Calls `fn` with every lane of the vectors `args` (one lane count) and collects the scalar results.
llvm::Value *mapLanes(Builder &b, llvm::Type *result, llvm::ArrayRef<llvm::Value *> args,
                      llvm::function_ref<llvm::Value *(Builder &, llvm::ArrayRef<llvm::Value *>)> fn);

/// "16xfloat": for the names of outlined functions.
std::string typeName(const llvm::Type *type);

} // namespace tessera::codegen
