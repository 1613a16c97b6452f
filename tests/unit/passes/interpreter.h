#pragma once
// A direct interpreter of integer and pointer ttir on the host: what the axis analysis claims is compared with the
// values, and what a function stores before the passes with what it stores after them (encodings mean nothing here).
// Memory holds a hash of its address until something is stored there. Floats are computed with as if they were integers.
//
// Shared memory consists of cells; a memdesc's elements are numbers of cells. Asynchronous copies arrive, and
// asynchronous products read their buffers, when they are waited for and not earlier.
#include "tessera/ir/ttir/Ttir.h"
#include "llvm/ADT/DenseMap.h"

#include <deque>
#include <functional>
#include <map>
#include <set>
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
  std::set<int64_t> read;                                     ///< addresses
  std::string fault; ///< of shared memory or an asynchronous product that is used too early or too late

  /// Runs the function's only block.
  void run(tt::FuncOp func, llvm::ArrayRef<int64_t> args);

private:
  llvm::DenseMap<mlir::Value, Elements> values;
  void set(mlir::Value v, Elements e);
  void runBlock(mlir::Block &block);
  void runOp(mlir::Operation *op);
  void runReduce(tt::ReduceOp op);
  bool runShared(mlir::Operation *op); ///< false: not an op of shared memory
  int64_t binary(mlir::Operation *op, int64_t a, int64_t b, unsigned bits);
  Elements load(const Elements &address, mlir::Value mask, mlir::Value other, unsigned bits);

  struct Cell {
    int64_t value = 0;
    bool written = false, arriving = false; ///< arriving: a copy to it has not been waited for
    int readers = 0;                        ///< asynchronous products
  };
  using Group = std::vector<std::pair<int64_t, int64_t>>; ///< cell, value
  /// a and b are values, or cells; c values, or the mark of an unfinished product.
  struct Product {
    mlir::Operation *op;
    Elements a, b, c;
    int64_t number;
  };
  std::vector<Cell> cells;
  Group started; ///< not yet committed
  std::deque<Group> groups;
  std::deque<Product> products;
  std::map<int64_t, Elements> finished; ///< by product's number
  int64_t productCount = 0;

  void fail(mlir::Operation *op, const char *what);
  int64_t readCell(mlir::Operation *op, int64_t cell);
  void writeCell(mlir::Operation *op, int64_t cell, int64_t value);
  void finishCopies(size_t left);
  void finishProducts(size_t left);
  Elements multiply(const Product &product);
};

} // namespace tessera::testing
