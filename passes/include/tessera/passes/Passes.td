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
    narrower type than the pointer), except that a float sum that becomes a dot's accumulator is rounded as the dot does.

    - `addptr(splat(p), splat(i))`                    -> `splat(addptr(p, i))`
    - `addptr(addptr(p, c1), c2)`, constants          -> `addptr(p, c1 + c2)` where the sum does not wrap
    - `addptr(p, 0)`                                  -> `p`
    - `select(m, load(p, m), x)`                      -> `load(p, m, x)`
    - `select(splat(c), a, b)`                        -> `select(c, a, b)`
    - `select(m, sub(a, b), 0)`, also of sums           -> `sub(a, select(m, b, 0))` where the load of `a` leaves zeros under
                                                         `m` and `b` is a splat or a broadcast
    - `add(c, dot(a, b, 0))`                          -> `dot(a, b, c)`, not with maxNumImpreciseAcc

    Why: fewer values per lane. A uniform base pointer costs one scalar addition instead of one for every register; elements
    under one mask share the select of `where(in, x - mean, 0)`.
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

def TtirLegalizeDot : Pass<"ttir-legalize-dot", "mlir::ModuleOp"> {
  let summary = "gives every tt.dot operand types and sizes that the target's matrix unit takes";
  let description = [{
    Needs: ttir. Guarantees: sums are in f32, f64 or i32; `tf32x3` has become three `tf32` dots of operands split in two;
    fp8 operands are f16 (or bf16) where the target does not multiply those; M, N and K are at least those of the instruction, by zeros,
    unless that is 64 times the work (or there is no instruction for the type).

    - A load that only the dot uses gets more lanes, masked off, instead of a select: it can still be an asynchronous copy.
    - An accumulator that only the dot touches is carried through the loop at its full size and cut behind it.
    - The native CPU (`cpu`) computes in f32 what is narrower; products of 8-bit integers are exact there.

    Why: the user's tile may be as small as one row, and matrix units are so much faster that multiplying zeros pays.
  }];
  let options = [
    Option<"target", "target", "std::string", "TargetModel::defaultName", "as ttg.target">,
    Option<"threadsPerWarp", "threads-per-warp", "int", "32", "lanes of a warp">,
  ];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::math::MathDialect"];
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
    Option<"target", "target", "std::string", "TargetModel::defaultName", "what ttg.target says">,
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
    Option<"maxVectorBits", "max-vector-bits", "unsigned", "128", "bits one thread accesses at once at most, which it has "
           "in neighbouring registers">,
    Option<"wideLanes", "wide-lanes", "bool", "false", "the lanes of a warp are one vector register">,
  ];
  let dependentDialects = ["tessera::ttg::TTGDialect"];
}

def TtgirRemoveLayoutConversions : Pass<"ttgir-remove-layout-conversions", "mlir::ModuleOp"> {
  let summary = "chooses the layout of every tile so that few conversions are left";
  let description = [{
    Needs: ttgir. Guarantees: the layouts in which loads, stores, atomics, matrix products and unknown ops work are unchanged
    (those of tiles with no more elements than threads excepted, unless a product uses them: any layout is as good; and on
    the native CPU stores of a product); all others follow from them:

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

def TtgirAccelerateMatmul : Pass<"ttgir-accelerate-matmul", "mlir::ModuleOp"> {
  let summary = "chooses how each tt.dot is computed, and the layouts for it";
  let description = [{
    Needs: ttgir; dots that ttir-legalize-dot has seen (smaller tiles fall to the last case). Guarantees: every dot is one of

    - `ttng.warp_group_dot` with operands in `local_alloc`s that the instruction reads by itself: where warp groups multiply, from
      64 rows on, for multiples of four warps; f16, bf16, tf32, fp8, int8. Warp groups lie along the rows first, one instruction is as wide as the tile allows (256 columns at most). Operands that are not of
      16 bits are stored along k; a load in the other order gets a layout that makes this cheap;
    - `tt.dot` on `dot_op` operands and accumulators of an instruction that one warp executes. A warp's part is as
      square as the tile allows; where one dot's result is the next one's A, warps own whole rows;
    - `ttg.local_dot` for all that has no matrix instruction: operands in shared memory, accumulators in a blocked layout
      (4x4 elements a thread; on the native CPU lanes along n and several rows a warp).

    Conversions stand at operands and results; remove-layout-conversions makes most of them go away.
    Why: which instruction computes a dot decides all layouts around it.
  }];
  let dependentDialects = ["tessera::ttg::TTGDialect", "tessera::ttng::TTNGDialect"];
}

def TtgirOptimizeDotOperands : Pass<"ttgir-optimize-dot-operands", "mlir::ModuleOp"> {
  let summary = "loads feed shared memory directly, transpositions cost nothing";
  let description = [{
    Needs: accelerated dots. Guarantees: an operand that comes from a load reaches the dot as
    `tt.load -> local_alloc -> (memdesc_trans)? -> warp_group_dot | local_dot`, or
    `tt.load -> local_alloc -> (memdesc_trans)? -> local_load -> (element-wise ops)* -> tt.dot`, which is what the
    pipeliner makes asynchronous copies of; rows in shared memory are those in device memory, swizzled such that reads do
    not conflict.

    - `tt.trans` of an operand is a view (`memdesc_trans`).
    - Element-wise ops between load and dot are computed behind the `local_load` (`tt.dot`, and A of
      `warp_group_dot`, which may be in registers).
    - An A that is the previous dot's result stays in registers where the layouts say that each lane holds what it needs.
    - Equal buffers are shared.

    Why: data then moves once, in the background, and without conversions through scratch.
  }];
  let dependentDialects = ["tessera::ttg::TTGDialect", "tessera::ttng::TTNGDialect"];
}

def TtgirAssignLatencies : Pass<"ttgir-assign-latencies", "mlir::ModuleOp"> {
  let summary = "says how many stages before their users loads should run";
  let description = [{
    Needs: ttgir after optimize-dot-operands (an operand that goes through shared memory is `load -> local_alloc`).
    Guarantees: in loops with n >= 2 stages (`tt.num_stages` of the loop, else `num-stages`) `tt.latency` (i32) is on

    - loads that feed a matrix product, and loads that feed the addresses or masks of such loads (1 each). Where the load
      can be an asynchronous copy it gets the rest of n - 1, in n buffers; less one, in n - 1 buffers, if the product does
      not stay in flight and n buffers exceed `max-shared-bytes`. Other tiles have to wait in registers, so 1;
    - `local_alloc`s that threads fill with what they computed, if stages are left or a product in flight reads them;
    - warp_group_dots that only accumulate: 1, they stay in flight for an iteration. With A in registers only if n buffers
      fit into `max-shared-bytes`, and if A's registers are not written meanwhile (OperandSlices.h): A is cut in slices with
      registers of their own, or is the same in all iterations;
    - if the loop itself says `tt.num_stages`: its other loads, 1, while all of them hold at most 64 registers of a thread.

    Loads that may read what the loop stores, by pointers made of the same argument, stay where they are. Loops that contain
    loops, or write global memory otherwise than by stores, are left alone; so are those of the native CPU, whose cores run
    ahead by themselves.
    Why: memory is some hundred instructions away.
  }];
  let options = [
    Option<"numStages", "num-stages", "int", "3", "iterations in flight, the one being computed included, of copies that "
           "run by themselves; tiles that wait in registers are at most one ahead">,
    Option<"maxSharedBytes", "max-shared-bytes", "unsigned", "0", "bytes up to which a loop's buffers are n of each, and "
           "up to which products with A in registers stay in flight">,
  ];
  let dependentDialects = ["tessera::ttng::TTNGDialect"];
}

def TtgirScheduleLoops : Pass<"ttgir-schedule-loops", "mlir::ModuleOp"> {
  let summary = "gives every op of a loop with latencies a stage and a cluster";
  let description = [{
    Needs: `tt.latency` on ops. Guarantees: every op of a loop to be pipelined has `loop.stage` and `loop.cluster` (i32):
    in trip t of the pipelined loop it runs for iteration t - stage; ops of a trip run in the order of their clusters. Users
    are at least `tt.latency` stages later; a value for the next iteration is made no later than it is used there; ops run as
    late as that allows; ops with effects, and loads that may see those of stores, are in the last stage. Latencies that
    cannot be kept (a load whose address depends on its own result) are given up. Cheap integers (masks) are computed again in each stage that uses them.
    The stages before the last come first in a trip, the younger the later; with products in flight the last comes first.
    Why: what runs when is decided, and can be read, apart from how the loop is rewritten.
  }];
  let dependentDialects = ["tessera::ttng::TTNGDialect"];
}

def TtgirPipelineLoops : Pass<"ttgir-pipeline-loops", "mlir::ModuleOp"> {
  let summary = "rewrites scheduled loops so that several iterations are in flight";
  let description = [{
    Needs: `loop.stage` and `loop.cluster` on all ops of a loop. Guarantees: the same results for any number of trips, zero
    included.

    - A buffer that is filled in one stage and read in a later one becomes one of a ring, of as many as there are stages
      from the first to the last of them. Loads become `async_copy_global_to_local` where that is possible, one group for
      the loads of a stage, and wait for exactly their group; other tiles are written by `local_store`. Counters modulo the
      ring's size choose the buffer.
    - A prologue runs what precedes the first trip of the last stage; in the last trips the early stages are masked off
      (loads, copies, stores) or skipped.
    - warp_group_dots with `tt.latency` are asynchronous: that of the trip before is waited for before the first write to a
      ring, all of them behind the loop.

    Other waits and all barriers are left to later passes. The attributes of the schedule are gone.
    Why: copies and matrix products run while the warps prepare what comes next.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::scf::SCFDialect", "mlir::ub::UBDialect",
                           "tessera::ttng::TTNGDialect"];
}

def TtgirPrefetch : Pass<"ttgir-prefetch", "mlir::ModuleOp"> {
  let summary = "loads operands in registers slice by slice, one slice ahead";
  let description = [{
    Needs: `tt.dot` whose operands are `local_load`s (and element-wise ops) of the same block. Guarantees: such a dot that is
    deeper than one instruction is a chain of dots of one instruction's depth each; the slice of both operands that the next
    one needs is loaded, through `memdesc_subslice`, before each.
    Why: registers hold two slices instead of whole operands, and loads run while the matrix unit works.
  }];
  let dependentDialects = ["tessera::ttg::TTGDialect"];
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
    Small scratch areas of neighbouring ops are kept apart where the target says so (TargetModel), which saves the barrier
    between them.
    Why: shared memory is small and bounds occupancy.
  }];
  let options = [
    Option<"maxSharedBytes", "max-shared-bytes", "unsigned", "4294967295u", "bytes that one program may use">,
  ];
}

def TtgirInsertBarriers : Pass<"ttgir-insert-barriers", "mlir::ModuleOp"> {
  let summary = "orders accesses of all warps to shared memory";
  let description = [{
    Needs: `allocation.offset` on every op that owns shared memory. Guarantees: between two accesses of overlapping bytes of
    which one is a write, on every path (around loops too), there is a barrier: a `ttg.barrier local` or the one inside an
    op that uses scratch (write, barrier, read). No barrier is added where no such pair exists.

    - An asynchronous copy writes from its start on, for other threads' reads and writes before it; what it wrote is there
      for the thread itself after `async_wait`, for others after a barrier behind that.
    - An asynchronous product reads until the `warp_group_dot_wait` that leaves fewer products in flight than were begun
      after it; only a barrier behind that wait lets others write.
    - Two buffers of one ring are told apart where both indices are constants or counters of the same loop.

    Why: warps of a program run at their own pace.
  }];
  let dependentDialects = ["tessera::ttg::TTGDialect"];
}

def TtgirFenceInsertion : Pass<"ttgir-fence-insertion", "mlir::ModuleOp"> {
  let summary = "makes writes to shared memory visible to warp_group_dot";
  let description = [{
    Needs: barriers. Guarantees: behind every `local_alloc` with a source and every `local_store` whose memory a
    `warp_group_dot` may read later, there is a `ttng.fence_async_shared` before the next barrier (those inside of ops
    included); runs of writes share one. With `fence-copies` also behind every `async_wait` for such memory: usual
    main loops of copies and products do without, and it costs 2 % of a matrix product.
    Why: `warp_group_dot` reads through another path (the asynchronous proxy) than threads write; a barrier alone does not order the
    two, and each writing thread has to fence before it.
  }];
  let options = [
    Option<"fenceCopies", "fence-copies", "bool", "false", "also behind waits for asynchronous copies">,
  ];
  let dependentDialects = ["tessera::ttng::TTNGDialect"];
}

#endif // TESSERA_PASSES
