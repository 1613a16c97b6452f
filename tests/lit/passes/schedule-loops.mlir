// Stages and clusters. Addresses and masks run with the loads that need them, the rest in the last stage.
// RUN: tessera-opt %s -ttgir-schedule-loops | FileCheck %s

#row = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#half = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 32, 16]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Without a product in flight the early stages come first in a trip, so that their copies run during the product. What is
// carried to the next iteration's early stage is early, too.
// CHECK-LABEL: @product
// CHECK: arith.addi {{.*}}loop.cluster = 1 : i32, loop.stage = 0 : i32
// CHECK: tt.addptr {{.*}}loop.cluster = 1 : i32, loop.stage = 0 : i32
// CHECK: tt.load {{.*}}loop.cluster = 1 : i32, loop.stage = 0 : i32
// CHECK: local_alloc {{.*}}loop.cluster = 2 : i32, loop.stage = 2 : i32
// CHECK: local_dot {{.*}}loop.cluster = 2 : i32, loop.stage = 2 : i32
// CHECK: arith.muli {{.*}}loop.cluster = 2 : i32, loop.stage = 2 : i32
// CHECK: tt.print {{.*}}loop.cluster = 2 : i32, loop.stage = 2 : i32
tt.func public @product(%a: tensor<32x32x!tt.ptr<f32>, #row>, %n: i32) -> (tensor<32x32xf32, #row>, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32, #row>
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %k = %c0, %f = %c1) -> (tensor<32x32xf32, #row>, i32, i32) : i32 {
    %next = arith.addi %k, %c1 : i32
    %s = tt.splat %k : i32 -> tensor<32x32xi32, #row>
    %p = tt.addptr %a, %s : tensor<32x32x!tt.ptr<f32>, #row>, tensor<32x32xi32, #row>
    %x = tt.load %p {tt.latency = 2 : i32} : tensor<32x32x!tt.ptr<f32>, #row>
    %xs = ttg.local_alloc %x : (tensor<32x32xf32, #row>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
    %d = ttg.local_dot %xs, %xs, %acc : !ttg.memdesc<32x32xf32, #shared, #smem> * !ttg.memdesc<32x32xf32, #shared, #smem>, tensor<32x32xf32, #row> -> tensor<32x32xf32, #row>
    %g = arith.muli %f, %i : i32
    tt.print "k" {hex = false, isSigned = array<i32: 1>} : %k : i32
    scf.yield %d, %next, %g : tensor<32x32xf32, #row>, i32, i32
  }
  tt.return %r#0, %r#2 : tensor<32x32xf32, #row>, i32
}

// With products in flight the last stage comes first.
// CHECK-LABEL: @in_flight
// CHECK: tt.load {{.*}}loop.cluster = 2 : i32, loop.stage = 0 : i32
// CHECK: local_alloc {{.*}}loop.cluster = 0 : i32, loop.stage = 2 : i32
// CHECK: warp_group_dot {{.*}}loop.cluster = 0 : i32, loop.stage = 2 : i32
// CHECK: tt.addptr {{.*}}loop.cluster = 2 : i32, loop.stage = 0 : i32
tt.func public @in_flight(%p: tensor<64x32x!tt.ptr<f16>, #half>, %step: tensor<64x32xi32, #half>, %b: !ttg.memdesc<32x32xf16, #nvmma, #smem, mutable>, %n: index) -> tensor<64x32xf32, #mma> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x32xf32, #mma>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %q = %p) -> (tensor<64x32xf32, #mma>, tensor<64x32x!tt.ptr<f16>, #half>) {
    %x = tt.load %q {tt.latency = 2 : i32} : tensor<64x32x!tt.ptr<f16>, #half>
    %xs = ttg.local_alloc %x : (tensor<64x32xf16, #half>) -> !ttg.memdesc<64x32xf16, #nvmma, #smem>
    %d = ttng.warp_group_dot %xs, %b, %acc {tt.latency = 1 : i32} : !ttg.memdesc<64x32xf16, #nvmma, #smem> * !ttg.memdesc<32x32xf16, #nvmma, #smem, mutable> -> tensor<64x32xf32, #mma>
    %q2 = tt.addptr %q, %step : tensor<64x32x!tt.ptr<f16>, #half>, tensor<64x32xi32, #half>
    scf.yield %d, %q2 : tensor<64x32xf32, #mma>, tensor<64x32x!tt.ptr<f16>, #half>
  }
  tt.return %r#0 : tensor<64x32xf32, #mma>
}

// An unsigned loop counts its trips: the expansion compares signed. What is said of the index stays with it.
// CHECK-LABEL: @unsigned(
// CHECK-SAME: %[[A:.*]]: !tt.ptr<f32>, %[[N:.*]]: i32
// CHECK: %[[ANY:.*]] = arith.cmpi ugt, %[[N]], %[[LOW:.*]] :
// CHECK: %[[LENGTH:.*]] = arith.subi %[[N]], %[[LOW]]
// CHECK: %[[LAST:.*]] = arith.subi %[[LENGTH]], %[[ONE:.*]] : i32
// CHECK: %[[STEPS:.*]] = arith.divui %[[LAST]], %{{.*}} : i32
// CHECK: %[[COUNT:.*]] = arith.addi %[[STEPS]], %[[ONE]]
// CHECK: %[[TRIPS:.*]] = arith.select %[[ANY]], %[[COUNT]], %{{.*}} : i32
// CHECK: %[[END:.*]] = arith.extui %[[TRIPS]] : i32 to i64
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[END]] step %{{.*}} : i64
// CHECK: %[[TRIP:.*]] = arith.trunci %[[I]] {{.*}}loop.stage = 0 : i32
// CHECK: %[[PAST:.*]] = arith.muli %[[TRIP]], %{{.*}} {{.*}}loop.stage = 0 : i32
// CHECK: %[[K:.*]] = arith.addi %[[LOW]], %[[PAST]] {{.*}}loop.stage = 0 : i32{{.*}}tt.divisibility = dense<4>
// CHECK: tt.addptr %[[A]], %[[K]] {{.*}}loop.stage = 0 : i32
// CHECK: tt.load {{.*}}loop.stage = 0 : i32
// CHECK: arith.addf {{.*}}loop.stage = 1 : i32
tt.func public @unsigned(%a: !tt.ptr<f32>, %n: i32) -> f32 {
  %c12 = arith.constant 12 : i32
  %c4 = arith.constant 4 : i32
  %zero = arith.constant 0.0 : f32
  %r = scf.for unsigned %i = %c12 to %n step %c4 iter_args(%acc = %zero) -> (f32) : i32 {
    %p = tt.addptr %a, %i : !tt.ptr<f32>, i32
    %x = tt.load %p {tt.latency = 1 : i32} : !tt.ptr<f32>
    %y = arith.addf %acc, %x : f32
    scf.yield %y : f32
  } {tt.divisibility_arg0 = dense<4> : tensor<1xi32>}
  tt.return %r : f32
}

// Latencies add up along a chain; a load that has none keeps to its user.
// CHECK-LABEL: @indirect
// CHECK: %[[N:.*]] = tt.load {{.*}}loop.cluster = 0 : i32, loop.stage = 1 : i32
// CHECK: tt.load {{.*}}loop.cluster = 1 : i32, loop.stage = 0 : i32
// CHECK: tt.load {{.*}}loop.cluster = 0 : i32, loop.stage = 1 : i32
// CHECK: arith.addf {{.*}}loop.cluster = 2 : i32, loop.stage = 2 : i32
tt.func public @indirect(%index: !tt.ptr<i32>, %a: !tt.ptr<f32>, %n: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %offset = tt.load %index : !tt.ptr<i32>
    %p = tt.addptr %index, %i : !tt.ptr<i32>, i32
    %at = tt.load %p {tt.latency = 1 : i32} : !tt.ptr<i32>
    %sum = arith.addi %at, %offset : i32
    %q = tt.addptr %a, %sum : !tt.ptr<f32>, i32
    %x = tt.load %q {tt.latency = 1 : i32} : !tt.ptr<f32>
    %y = arith.addf %acc, %x : f32
    scf.yield %y : f32
  }
  tt.return %r : f32
}

// A load whose address depends on its own result cannot run ahead; nothing else is left.
// CHECK-LABEL: @chase
// CHECK-NOT: loop.stage
// CHECK: tt.func public @carried
tt.func public @chase(%index: !tt.ptr<i32>, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%at = %c0, %sum = %c0) -> (i32, i32) : i32 {
    %p = tt.addptr %index, %at : !tt.ptr<i32>, i32
    %x = tt.load %p {tt.latency = 1 : i32} : !tt.ptr<i32>
    %y = arith.addi %x, %c1 : i32
    %z = arith.addi %sum, %y : i32
    scf.yield %y, %z : i32, i32
  }
  tt.return %r#1 : i32
}

// A loaded value that is used in the next iteration is early enough where it is.
tt.func public @carried(%a: !tt.ptr<i32>, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK-NOT: loop.stage
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%old = %c0, %sum = %c0) -> (i32, i32) : i32 {
    %z = arith.addi %sum, %old : i32
    %p = tt.addptr %a, %i : !tt.ptr<i32>, i32
    %x = tt.load %p {tt.latency = 1 : i32} : !tt.ptr<i32>
    scf.yield %x, %z : i32, i32
  }
  // CHECK: tt.return
  tt.return %r#1 : i32
}

// What runs once only must not run ahead: the load behind the atomic stays with it, the other one does not.
// CHECK-LABEL: @effects
// CHECK: tt.load {{.*}}loop.stage = 1 : i32
// CHECK: tt.load {{.*}}loop.stage = 0 : i32
// CHECK: tt.assert {{.*}}loop.stage = 1 : i32
tt.func public @effects(%a: !tt.ptr<i32>, %cond: i1, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c0) -> (i32) : i32 {
    %once = scf.if %cond -> i32 {
      tt.print "i" {hex = false, isSigned = array<i32: 1>} : %i : i32
      scf.yield %i : i32
    } else {
      scf.yield %c0 : i32
    }
    %p = tt.addptr %a, %once : !tt.ptr<i32>, i32
    %x = tt.load %p {tt.latency = 1 : i32} : !tt.ptr<i32>
    %q = tt.addptr %a, %i : !tt.ptr<i32>, i32
    %y = tt.load %q {tt.latency = 1 : i32} : !tt.ptr<i32>
    %fine = arith.cmpi sgt, %y, %c0 : i32
    tt.assert %fine, "positive" : i1
    %s = arith.addi %x, %y : i32
    %t = arith.addi %sum, %s : i32
    scf.yield %t : i32
  }
  tt.return %r : i32
}

// A mask that the load and, two stages later, the sum use is computed in both stages; a loaded tile is not.
// CHECK-LABEL: @mask_again
// CHECK: tt.splat {{.*}}loop.stage = 0 : i32
// CHECK: tt.splat {{.*}}loop.stage = 2 : i32
// CHECK: %[[EARLY:.*]] = arith.cmpi {{.*}}loop.stage = 0 : i32
// CHECK: %[[LATE:.*]] = arith.cmpi {{.*}}loop.cluster = 2 : i32, loop.stage = 2 : i32
// CHECK: %[[X:.*]] = tt.load %{{.*}}, %[[EARLY]]
// CHECK: arith.select %[[LATE]], %[[X]]
tt.func public @mask_again(%p: tensor<32x32x!tt.ptr<f32>, #row>, %columns: tensor<32x32xi32, #row>, %n: i32) -> tensor<32x32xf32, #row> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant dense<1.0> : tensor<32x32xf32, #row>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %one) -> (tensor<32x32xf32, #row>) : i32 {
    %s = tt.splat %i : i32 -> tensor<32x32xi32, #row>
    %m = arith.cmpi slt, %columns, %s : tensor<32x32xi32, #row>
    %x = tt.load %p, %m {tt.latency = 2 : i32} : tensor<32x32x!tt.ptr<f32>, #row>
    %y = arith.select %m, %x, %one : tensor<32x32xi1, #row>, tensor<32x32xf32, #row>
    %z = arith.addf %acc, %y : tensor<32x32xf32, #row>
    scf.yield %z : tensor<32x32xf32, #row>
  }
  tt.return %r : tensor<32x32xf32, #row>
}

// A load that a store of an earlier iteration may have written for stays in the last stage, whatever its latency, and so
// does the load whose address it holds.
// CHECK-LABEL: @stored_index
// CHECK: tt.load %arg0 {{.*}}loop.stage = 0 : i32
// CHECK: tt.load %arg1 {{.*}}loop.stage = 1 : i32
// CHECK: tt.load %{{[0-9]+}} {{.*}}loop.stage = 1 : i32
// CHECK: tt.store {{.*}}loop.stage = 1 : i32
tt.func public @stored_index(%arg0: !tt.ptr<i32>, %arg1: !tt.ptr<i32>, %arg2: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tt.load %arg0 {tt.latency = 1 : i32} : !tt.ptr<i32>
    %at = tt.load %arg1 {tt.latency = 1 : i32} : !tt.ptr<i32>
    %p = tt.addptr %arg2, %at : !tt.ptr<i32>, i32
    %y = tt.load %p {tt.latency = 1 : i32} : !tt.ptr<i32>
    %s = arith.addi %x, %y : i32
    tt.store %arg1, %s : !tt.ptr<i32>
  }
  tt.return
}
}
