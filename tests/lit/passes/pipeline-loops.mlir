// Scheduled loops: rings of buffers, prologue, predicates, waits.
// RUN: tessera-opt %s -split-input-file -ttgir-pipeline-loops -canonicalize | FileCheck %s

#row = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#sharedT = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// Two loads of stage 0 for stage 2: rings of three, one group. One of the tiles is also wanted in registers, and in the
// product through a view.
// CHECK-LABEL: @copies
// CHECK-SAME: (%[[A:[a-z0-9]+]]: tensor<32x32x!tt.ptr<f32>
// CHECK-DAG: %[[R0:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable>
// CHECK-DAG: %[[R1:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable>
// The prologue: first iteration, if there is one.
// CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[N:.*]], %c0_i32
// CHECK: %[[S0:.*]] = ttg.memdesc_index %[[R0]][%c0_i32]
// CHECK: %[[ALL:.*]] = tt.splat %[[ANY]] : i1
// CHECK: %[[T0:.*]] = ttg.async_copy_global_to_local %[[A]], %[[S0]] mask %[[ALL]]
// CHECK: %[[BOTH:.*]] = arith.andi %{{.*}}, %{{.*}} : tensor<32x32xi1
// CHECK: %[[T1:.*]] = ttg.async_copy_global_to_local %{{.*}} mask %[[BOTH]]
// CHECK: ttg.async_commit_group tokens %[[T0]], %[[T1]]
// CHECK: %[[TWO:.*]] = arith.cmpi sgt, %[[N]], %c1_i32
// CHECK: ttg.memdesc_index %[[R0]][%c1_i32]
// CHECK: tt.splat %[[TWO]] {loop.trip_exists}
// CHECK: async_copy
// CHECK: async_copy
// CHECK: ttg.async_commit_group
// The loop: counters modulo three, of the copies and of the product.
// CHECK: scf.for %[[I:.*]] = %c0_i32 to %[[N]] step %c1_i32 iter_args(%{{.*}}, %[[IN:.*]] = %c1_i32, %[[OUT:.*]] = %c-1_i32)
// CHECK-DAG: %[[END:.*]] = arith.subi %[[N]], %c2_i32
// CHECK-DAG: %[[MORE:.*]] = arith.cmpi slt, %[[I]], %[[END]]
// CHECK-DAG: %[[UP:.*]] = arith.addi %[[IN]], %c1_i32
// CHECK-DAG: %[[WRAPS:.*]] = arith.cmpi sge, %[[UP]], %c3_i32
// CHECK-DAG: %[[NEXT:.*]] = arith.select %[[WRAPS]], %c0_i32, %[[UP]]
// CHECK-DAG: %[[FREE:.*]] = ttg.memdesc_index %[[R0]][%[[NEXT]]]
// One group, of the next iteration, may still be under way.
// CHECK: ttg.async_wait {num = 1 : i32}
// What is copied for a trip that does not exist is read by nobody.
// CHECK: tt.splat %[[MORE]] {loop.trip_exists}
// CHECK: ttg.async_copy_global_to_local %[[A]], %[[FREE]]
// CHECK: ttg.async_copy_global_to_local
// CHECK: ttg.async_commit_group
// CHECK: %[[VIEW:.*]] = ttg.memdesc_trans
// CHECK: %[[D:.*]] = ttg.local_dot %{{.*}}, %[[VIEW]]
// CHECK: %[[X:.*]] = ttg.local_load
// CHECK: arith.addf %[[X]], %[[D]]
// CHECK: scf.yield
// CHECK: ttg.async_wait {num = 0 : i32}
// CHECK: ttg.local_dealloc %[[R0]]
// CHECK: ttg.local_dealloc %[[R1]]
// CHECK-NOT: loop.
tt.func public @copies(%a: tensor<32x32x!tt.ptr<f32>, #row>, %b: tensor<32x32x!tt.ptr<f32>, #row>, %m: tensor<32x32xi1, #row>, %n: i32) -> tensor<32x32xf32, #row> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32, #row>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32, #row>) : i32 {
    %x = tt.load %a {loop.stage = 0 : i32, loop.cluster = 1 : i32} : tensor<32x32x!tt.ptr<f32>, #row>
    %y = tt.load %b, %m, %zero {loop.stage = 0 : i32, loop.cluster = 1 : i32} : tensor<32x32x!tt.ptr<f32>, #row>
    %xs = ttg.local_alloc %x {loop.stage = 2 : i32, loop.cluster = 2 : i32} : (tensor<32x32xf32, #row>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
    %ys = ttg.local_alloc %y {loop.stage = 2 : i32, loop.cluster = 2 : i32} : (tensor<32x32xf32, #row>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
    %yt = ttg.memdesc_trans %ys {loop.stage = 2 : i32, loop.cluster = 2 : i32, order = array<i32: 1, 0>} : !ttg.memdesc<32x32xf32, #shared, #smem> -> !ttg.memdesc<32x32xf32, #sharedT, #smem>
    %d = ttg.local_dot %xs, %yt, %acc {loop.stage = 2 : i32, loop.cluster = 2 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem> * !ttg.memdesc<32x32xf32, #sharedT, #smem>, tensor<32x32xf32, #row> -> tensor<32x32xf32, #row>
    %s = arith.addf %x, %d {loop.stage = 2 : i32, loop.cluster = 2 : i32} : tensor<32x32xf32, #row>
    scf.yield %s : tensor<32x32xf32, #row>
  }
  tt.return %r : tensor<32x32xf32, #row>
}

// A buffer that is read in an early stage is read for trips that do not exist as well: there must be zeros.
// CHECK-LABEL: @read_early
// CHECK-NOT: loop.trip_exists
// CHECK: scf.for
// CHECK: ttg.async_copy_global_to_local
// CHECK: ttg.local_load
// CHECK-NOT: loop.trip_exists
// CHECK: scf.yield
tt.func public @read_early(%a: tensor<32x32x!tt.ptr<f32>, #row>, %n: i32) -> tensor<32x32xf32, #row> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32, #row>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32, #row>) : i32 {
    %x = tt.load %a {loop.stage = 0 : i32, loop.cluster = 1 : i32} : tensor<32x32x!tt.ptr<f32>, #row>
    %xs = ttg.local_alloc %x {loop.stage = 2 : i32, loop.cluster = 2 : i32} : (tensor<32x32xf32, #row>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
    %y = math.exp2 %x {loop.stage = 1 : i32, loop.cluster = 2 : i32} : tensor<32x32xf32, #row>
    %xt = ttg.memdesc_trans %xs {loop.stage = 2 : i32, loop.cluster = 2 : i32, order = array<i32: 1, 0>} : !ttg.memdesc<32x32xf32, #shared, #smem> -> !ttg.memdesc<32x32xf32, #sharedT, #smem>
    %d = ttg.local_dot %xs, %xt, %acc {loop.stage = 2 : i32, loop.cluster = 2 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem> * !ttg.memdesc<32x32xf32, #sharedT, #smem>, tensor<32x32xf32, #row> -> tensor<32x32xf32, #row>
    %s = arith.addf %y, %d {loop.stage = 2 : i32, loop.cluster = 2 : i32} : tensor<32x32xf32, #row>
    scf.yield %s : tensor<32x32xf32, #row>
  }
  tt.return %r : tensor<32x32xf32, #row>
}

// A tile in registers: the load of the next iteration, masked off in the last one. What has effects is skipped in early
// stages.
// CHECK-LABEL: @registers
// CHECK: %[[ANY:.*]] = arith.cmpi sgt
// CHECK: %[[M0:.*]] = tt.splat %[[ANY]]
// CHECK: %[[FIRST:.*]] = tt.load %{{.*}}, %[[M0]]
// CHECK: scf.if %[[ANY]]
// CHECK-NEXT: tt.print
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[X:.*]] = %[[FIRST]])
// CHECK: %[[MORE:.*]] = arith.cmpi slt
// CHECK: %[[M:.*]] = tt.splat %[[MORE]]
// CHECK: %[[AHEAD:.*]] = tt.load %{{.*}}, %[[M]]
// CHECK: scf.if %[[MORE]]
// CHECK-NEXT: tt.print
// CHECK: %[[SUM:.*]] = arith.addf %[[ACC]], %[[X]]
// CHECK: scf.yield %[[SUM]], %[[AHEAD]]
tt.func public @registers(%a: tensor<32x32x!tt.ptr<f32>, #row>, %n: i32) -> tensor<32x32xf32, #row> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32, #row>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32, #row>) : i32 {
    %x = tt.load %a {loop.stage = 0 : i32, loop.cluster = 0 : i32} : tensor<32x32x!tt.ptr<f32>, #row>
    tt.print "i" {loop.stage = 0 : i32, loop.cluster = 0 : i32, hex = false, isSigned = array<i32: 1>} : %i : i32
    %s = arith.addf %acc, %x {loop.stage = 1 : i32, loop.cluster = 1 : i32} : tensor<32x32xf32, #row>
    scf.yield %s : tensor<32x32xf32, #row>
  }
  tt.return %r : tensor<32x32xf32, #row>
}

// Three trips are known to fill two stages: no predicates in the prologue.
// CHECK-LABEL: @known_trips
// CHECK-NOT: arith.cmpi
// CHECK: tt.load %{{[a-z0-9]+}} : tensor
// CHECK: scf.for
tt.func public @known_trips(%a: tensor<32x32x!tt.ptr<f32>, #row>) -> tensor<32x32xf32, #row> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32, #row>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32, #row>) : i32 {
    %x = tt.load %a {loop.stage = 0 : i32, loop.cluster = 0 : i32} : tensor<32x32x!tt.ptr<f32>, #row>
    %s = arith.addf %acc, %x {loop.stage = 1 : i32, loop.cluster = 1 : i32} : tensor<32x32xf32, #row>
    scf.yield %s : tensor<32x32xf32, #row>
  }
  tt.return %r : tensor<32x32xf32, #row>
}
}

// -----

#half = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 32, 16]}>
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// The product of this trip is issued, that of the trip before has ended, its buffers are free. What threads store is a
// stage, and so a buffer, ahead.
// CHECK-LABEL: @in_flight
// CHECK-DAG: local_alloc : () -> !ttg.memdesc<3x64x32xf16
// CHECK-DAG: local_alloc : () -> !ttg.memdesc<2x32x32xf16
// CHECK: scf.for
// CHECK: ttg.async_wait {num = 1 : i32}
// CHECK-NEXT: %[[D:.*]] = ttng.warp_group_dot {{.*}}isAsync = true
// CHECK: %[[W:.*]] = ttng.warp_group_dot_wait %[[D]] {pendings = 1 : i32}
// CHECK-NEXT: ttg.local_store
// CHECK: ttg.async_copy_global_to_local
// CHECK: scf.yield %[[W]]
// CHECK: ttng.warp_group_dot_wait {{.*}}pendings = 0
// CHECK: ttg.async_wait {num = 0 : i32}
tt.func public @in_flight(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %p2: tensor<32x32x!tt.ptr<f16>, #half>, %n: index) -> tensor<64x32xf32, #mma> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x32xf32, #mma>
  %range = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #half}>>
  %line = tt.expand_dims %range {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #half}>> -> tensor<1x32xi32, #half>
  %off = tt.broadcast %line : tensor<1x32xi32, #half> -> tensor<64x32xi32, #half>
  %p = tt.splat %a : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>, #half>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x32xf32, #mma>) {
    %q = tt.addptr %p, %off {loop.stage = 0 : i32, loop.cluster = 2 : i32} : tensor<64x32x!tt.ptr<f16>, #half>, tensor<64x32xi32, #half>
    %x = tt.load %q {loop.stage = 0 : i32, loop.cluster = 2 : i32} : tensor<64x32x!tt.ptr<f16>, #half>
    %y = tt.load %p2 {loop.stage = 0 : i32, loop.cluster = 2 : i32} : tensor<32x32x!tt.ptr<f16>, #half>
    %y2 = arith.addf %y, %y {loop.stage = 1 : i32, loop.cluster = 1 : i32} : tensor<32x32xf16, #half>
    %xs = ttg.local_alloc %x {loop.stage = 2 : i32, loop.cluster = 0 : i32} : (tensor<64x32xf16, #half>) -> !ttg.memdesc<64x32xf16, #nvmma, #smem>
    %ys = ttg.local_alloc %y2 {loop.stage = 1 : i32, loop.cluster = 1 : i32} : (tensor<32x32xf16, #half>) -> !ttg.memdesc<32x32xf16, #nvmma, #smem>
    %d = ttng.warp_group_dot %xs, %ys, %acc {loop.stage = 2 : i32, loop.cluster = 0 : i32, tt.latency = 1 : i32} : !ttg.memdesc<64x32xf16, #nvmma, #smem> * !ttg.memdesc<32x32xf16, #nvmma, #smem> -> tensor<64x32xf32, #mma>
    scf.yield %d : tensor<64x32xf32, #mma>
  }
  tt.return %r : tensor<64x32xf32, #mma>
}
}
