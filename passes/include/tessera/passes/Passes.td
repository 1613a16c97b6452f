// Every pass: what it needs, what it guarantees and why it exists. docs/passes.md is written from these texts.
#ifndef TESSERA_PASSES
#define TESSERA_PASSES

include "mlir/Pass/PassBase.td"

//===--------------------------------------------------------------------------------------------------------------===//
// ttir -> ttir
//===--------------------------------------------------------------------------------------------------------------===//

def TtirInline : Pass<"ttir-inline", "mlir::ModuleOp"> {
  let summary = "replaces every tt.call by its callee's body";
  let description = [{
    Needs: ttir. Guarantees: no `tt.call` is left, and private functions that nothing refers to are gone; a recursive call,
    a call of a declaration and a callee with several blocks are errors at the call.
    Why: machine code has one function a kernel. Tiles live in registers that a call could not pass.
  }];
}

def TtirCombine : Pass<"ttir-combine", "mlir::ModuleOp"> {
  let summary = "folds ops that are cheaper together";
  let description = [{
    Needs: ttir. Guarantees: the same results bit for bit (pointer arithmetic included: offsets are never added in a
    narrower type than the pointer).

    - `addptr(splat(p), splat(i))`                    -> `splat(addptr(p, i))`
    - `addptr(addptr(p, c1), c2)`, constants          -> `addptr(p, c1 + c2)` where the sum does not wrap
    - `addptr(p, 0)`                                  -> `p`
    - `select(m, load(p, m), x)`                      -> `load(p, m, x)`
    - `select(splat(c), a, b)`                        -> `select(c, a, b)`

    Why: fewer values per lane. A uniform base pointer costs one scalar addition instead of one for every register.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect"];
}

def TtirReorderBroadcast : Pass<"ttir-reorder-broadcast", "mlir::ModuleOp"> {
  let summary = "computes on the small tile and then broadcasts";
  let description = [{
    Needs: ttir. Guarantees: pure element-wise ops never have only splats, or only splats and equal broadcasts, as
    operands.

    - `op(splat(a), splat(b))`                    -> `splat(op(a, b))`
    - `op(broadcast(a), broadcast(b), splat(c))`  -> `broadcast(op(a, b, splat(c)))`
    - `shape-op(splat(a))`                        -> `splat(a)` for expand_dims, broadcast, reshape, trans
    - `broadcast(broadcast(a))`                   -> `broadcast(a)`

    Why: work on one value instead of on one for every element, and facts for the axis analysis: what is uniform is seen
    to be uniform.
  }];
}

def TtirLoopUnroll : Pass<"ttir-loop-unroll", "mlir::ModuleOp"> {
  let summary = "unrolls loops that carry tt.loop_unroll_factor";
  let description = [{
    Needs: ttir. Guarantees: a loop with `tt.loop_unroll_factor = N`, N > 1, has N copies of its body; what does not divide
    runs in a second loop behind it. The attribute is removed. N < 1 is an error.
    Why: the author of a kernel asked for it; loads of several iterations are then in flight together.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::scf::SCFDialect"];
}

//===--------------------------------------------------------------------------------------------------------------===//
// ttir -> ttgir
//===--------------------------------------------------------------------------------------------------------------===//

def ConvertTtirToTtgir : Pass<"convert-ttir-to-ttgir", "mlir::ModuleOp"> {
  let summary = "gives every tile a layout";
  let description = [{
    Needs: ttir without calls. Guarantees: every tile has an encoding, by default the blocked one with one element a thread
    and the last dimension fastest; `ttg.convert_layout` stands where an op (reduce, expand_dims, trans, …) relates the
    layouts of its operands and results otherwise; the module carries `ttg.num-warps`, `ttg.threads-per-warp`,
    `ttg.num-ctas` and `ttg.target`.
    Why: from here on each op says which thread holds which element, so that later passes can compare costs.
  }];
  let options = [
    Option<"numWarps", "num-warps", "int", "4", "warps of a program, a power of two">,
    Option<"threadsPerWarp", "threads-per-warp", "int", "32", "lanes of a warp, a power of two">,
    Option<"numCtas", "num-ctas", "int", "1", "programs of a cluster">,
    Option<"target", "target", "std::string", "\"cuda:90\"", "what ttg.target says">,
  ];
  let dependentDialects = ["tessera::ttg::TTGDialect"];
}

//===--------------------------------------------------------------------------------------------------------------===//
// ttgir -> ttgir
//===--------------------------------------------------------------------------------------------------------------===//

def TtgirCoalesce : Pass<"ttgir-coalesce", "mlir::ModuleOp"> {
  let summary = "chooses layouts of loads and stores by the axis analysis";
  let description = [{
    Needs: ttgir. Guarantees: every load, store and atomic on a tile of pointers works in a blocked layout whose fastest
    dimension is the one with the longest contiguous runs. A thread holds as many consecutive elements as one access of
    `max-vector-bits` can move (alignment and tile size permitting); stores and loads that feed each other agree.
    With `wide-lanes` (a warp is a vector on the host) a thread holds single elements and the lanes lie along the runs, so
    that the access of a whole warp is one run. Warps lie first along dimensions that no reduction removes.
    Why: memory traffic decides the speed of most kernels.
  }];
  let options = [
    Option<"maxVectorBits", "max-vector-bits", "unsigned", "128", "bits one thread accesses at once at most">,
    Option<"wideLanes", "wide-lanes", "bool", "false", "the lanes of a warp are one vector register">,
  ];
  let dependentDialects = ["tessera::ttg::TTGDialect"];
}

def TtgirRemoveLayoutConversions : Pass<"ttgir-remove-layout-conversions", "mlir::ModuleOp"> {
  let summary = "chooses the layout of every tile so that few conversions are left";
  let description = [{
    Needs: ttgir. Guarantees: the layouts in which loads, stores, atomics and unknown ops work are unchanged (those of tiles
    with no more elements than threads excepted: any layout is as good); all others follow from them:

    1. forward: a result takes the layout of the operand that descends from the largest (or innermost) anchor; through
       loops, branches, reductions and changes of shape;
    2. backward: what no anchor reaches takes the layout its users ask for;
    3. where a use still wants another layout, the cheaper of a `convert_layout` and of computing the value again in that
       layout (index and mask arithmetic costs nearly nothing) is taken, by a cost per register.

    A conversion stands behind the definition of its value, hence outside of loops where the value is loop-invariant.
    Why: a conversion is at best a few shuffles, at worst a round trip through shared memory and two barriers.
  }];
  let dependentDialects = ["tessera::ttg::TTGDialect"];
}

def TtgirReductionLocality : Pass<"ttgir-reduction-locality", "mlir::ModuleOp"> {
  let summary = "keeps loop-carried reductions in each thread until the loop ends";
  let description = [{
    Needs: ttgir. Guarantees: where a loop does nothing with a carried value but combine it with the reduction of a tile by
    the reduction's own operation (`acc = acc + sum(x)`; also mul, min, max, and, or, xor), each thread carries the
    combination of its own elements, and one reduction over threads and warps follows the loop.
    Loops that run zero times give the initial value as before. Float sums are associated differently, always in the same
    way.
    Why: shuffles, shared memory and barriers leave the loop.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "tessera::ttg::TTGDialect"];
}

def TtgirReorder : Pass<"ttgir-reorder", "mlir::ModuleOp"> {
  let summary = "moves conversions next to their users";
  let description = [{
    Needs: ttgir. Guarantees: a conversion stands directly before its first user, or in the branch that alone uses it; it
    never moves into a loop.
    Why: remove-layout-conversions puts them behind definitions. LLVM cannot move what goes through shared memory, so a
    branch not taken would pay, and registers would be held for too long.
  }];
}

def TtgirAllocateShared : Pass<"ttgir-allocate-shared", "mlir::ModuleOp"> {
  let summary = "places buffers and scratch in shared memory by liveness";
  let description = [{
    Needs: ttgir. Guarantees: every op that owns shared memory (`local_alloc`, or scratch of `reduce`, `convert_layout`)
    carries `allocation.offset` (i32, bytes, 16-byte aligned); what is live at one time does not overlap; the module carries
    `ttg.shared`. More than `max-shared-bytes` is an error at the op that needs most.
    Small scratch areas of neighbouring ops are kept apart, which saves the barrier between them.
    Why: shared memory is small and bounds occupancy.
  }];
  let options = [
    Option<"maxSharedBytes", "max-shared-bytes", "unsigned", "4294967295u", "what one program may use">,
  ];
}

def TtgirInsertBarriers : Pass<"ttgir-insert-barriers", "mlir::ModuleOp"> {
  let summary = "orders accesses of all warps to shared memory";
  let description = [{
    Needs: `allocation.offset` on every op that owns shared memory. Guarantees: between two accesses of overlapping bytes of
    which one is a write, on every path (around loops too), there is a barrier: a `ttg.barrier local` or the one inside an
    op that uses scratch (write, barrier, read). No barrier is added where no such pair exists.
    Why: warps of a program run at their own pace.
  }];
  let dependentDialects = ["tessera::ttg::TTGDialect"];
}

#endif // TESSERA_PASSES
