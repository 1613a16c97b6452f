#pragma once
// A trace in progress: the module being built, the regions open in it, and the present value of every variable.
//
// Variables become SSA values in one pass. A region that is still being traced lies in a block of its own. Reading a
// variable older than a loop makes a block argument of the loop's body stand for it; when the loop closes it is known
// whether the body assigned the variable: if so the argument is an iter_arg, if not the outer value replaces it.
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tessera/ir/ir_module.h>
#include <tessera/dsl/detail/builder.h>
#include <tessera/error.h>
#include <tessera/ir/ttir/Ttir.h>

namespace tessera::detail {

using variable_id = std::uint32_t;

enum class region_kind { function, loop, then_branch, else_branch, condition, body, combine };

/// A region number is never used twice, so a value can say where it was made after that region is gone.
struct region_info {
  region_kind kind;
  location opened;
  bool open = true;
};

/// What the user promised of a value: tt.divisibility and the like.
struct promise {
  mlir::Value of;
  const char *name;
  mlir::DenseIntElementsAttr numbers;
  location where;
};

/// An open region, or one that waits for its operation to be built.
struct frame {
  std::uint32_t region = 0, construct = 0;
  region_kind kind = region_kind::function;
  std::unique_ptr<mlir::Region> holder; ///< owns the block while the operation does not exist yet
  mlir::Block *block = nullptr;
  std::map<variable_id, mlir::Value> values;          ///< of variables read or assigned here
  std::map<variable_id, mlir::BlockArgument> entries; ///< the arguments that stand for outer values
  std::vector<promise> promises;                      ///< of `block`'s arguments
};

/// A loop, branch, while or combine whose operation is built when it closes.
struct construct {
  std::uint32_t id;
  location where;
  mlir::Location loc;
  std::vector<frame> done;                      ///< then and else; the condition of a while
  std::vector<mlir::Value> operands;            ///< condition; lower bound, upper bound, step; tiles to reduce
  std::vector<std::vector<mlir::Value>> yields; ///< of the value form of a branch
  tl::loop_options options{};
  bool is_unsigned = false;
  int axis = 0;
  mlir::Operation *before = nullptr; ///< a branch: the last operation in front of it
  bool touched = false;              ///< a branch: variables that it uses were used behind it
  std::string first_trace; ///< strict mode: the body as it was traced the first time
  bool again = false;
};

struct variable {
  std::uint32_t region;
  location declared;
  mlir::Type type;
};

struct trace_state {
  trace_state();
  ~trace_state();
  /// The session of this thread; throws if there is none.
  static trace_state &current(const location &w);

  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  tt::FuncOp function;
  mlir::OpBuilder b; ///< always at the end of the innermost region's block
  std::uint32_t epoch;
  trace_state *outer = nullptr; ///< the session this one interrupts
  bool strict = false;
  location last{};

  struct entry {
    mlir::Value value;
    std::uint32_t region;
    bool number = false; ///< written as a number, not what values fold to
  };
  std::vector<entry> values;
  std::vector<handle> arguments;
  std::vector<variable> variables;
  std::vector<region_info> regions;
  std::vector<frame> frames;
  std::vector<std::unique_ptr<construct>> constructs;

  // ---- values (session.cpp) ----
  mlir::Location at(const location &w);
  handle make(mlir::Value v);
  /// The value behind a handle; throws if it belongs to another trace or to a region that is closed.
  mlir::Value use(handle h, const location &w);
  variable &variable_of(handle h, const location &w);
  mlir::Value read(std::size_t level, variable_id v);
  mlir::Type type_of(element_type t);

  /// Builds an operation, or what it folds to.
  template <class Op, class... A> mlir::Value fold(mlir::Location loc, A &&...a) {
    return b.createOrFold<Op>(loc, std::forward<A>(a)...);
  }

  // ---- regions (control.cpp) ----
  construct &open_construct(const location &w);
  construct &top(std::uint32_t id);
  frame &push(construct &c, region_kind kind);
  frame pop();
  void drop(std::uint32_t construct) noexcept;

  // ---- shapes (tile.cpp) ----
  mlir::Value to_shape(mlir::Value v, llvm::ArrayRef<std::int64_t> shape, mlir::Location loc);
  /// `v` repeated to `shape`; throws, naming `what`, if it does not fit.
  mlir::Value fit(mlir::Value v, mlir::Type like, const char *what, const location &w);
  /// Gives all the values the shape that NumPy's rules find for them.
  void broadcast(llvm::MutableArrayRef<mlir::Value> v, const location &w);
  mlir::Value constant(element_type t, const literal &x, llvm::ArrayRef<std::int64_t> shape, const location &w);

  // ---- hints (memory.cpp) ----
  void keep(const promise &p);
};

[[noreturn]] void fail_at(std::string message, const location &w);
/// "file.cpp:12".
std::string brief(const location &w);
std::string to_string(llvm::ArrayRef<std::int64_t> shape);
llvm::ArrayRef<std::int64_t> shape_of(mlir::Type t);
inline llvm::ArrayRef<std::int64_t> shape_of(mlir::Value v) { return shape_of(v.getType()); }
mlir::Type with_shape(mlir::Type element, llvm::ArrayRef<std::int64_t> shape);
/// Throws unless every dimension is a power of two and the tile is not too large.
void check_shape(llvm::ArrayRef<std::int64_t> shape, const location &w);
llvm::ArrayRef<std::int64_t> checked(const tl::dims &shape, const location &w);

} // namespace tessera::detail
