#pragma once
// A direct interpreter of integer and pointer ttir on the host: what the axis analysis claims is compared with the
// values, and what a function stores before the passes with what it stores after them (encodings mean nothing here).
// Memory that is read holds a hash of its address.
#include "tessera/ir/ttir/Ttir.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <map>
#include <vector>

namespace tessera::testing {

/// Elements in row-major order, sign-extended; i1 as 0 and 1; pointers as byte addresses. A scalar has one element.
using Elements = std::vector<int64_t>;

class Interpreter {
public:
  std::function<void(mlir::Value, const Elements &)> observe; ///< called for every value each time it is made
  std::function<void(mlir::Operation *)> visit;               ///< called for every op before it runs
  bool overflowed = false;                                    ///< a sum or product of signed integers did not fit
  bool undefined = false;                                     ///< division by zero
  std::map<int64_t, int64_t> stored;                          ///< address -> last value

  /// Runs the function's only block.
  void run(tt::FuncOp func, llvm::ArrayRef<int64_t> args);

private:
  llvm::DenseMap<mlir::Value, Elements> values;
  void set(mlir::Value v, Elements e);
  void runBlock(mlir::Block &block);
  void runOp(mlir::Operation *op);
  void runReduce(tt::ReduceOp op);
  int64_t binary(mlir::Operation *op, int64_t a, int64_t b, unsigned bits);
};

} // namespace tessera::testing
