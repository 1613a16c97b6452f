// Loops without copies in the background: the tile of the next iteration is in registers while the product runs, and is
// stored behind it, to the one buffer there is.
// RUN: tessera-opt %s -ttgir-assign-latencies=num-stages=2 -ttgir-schedule-loops | FileCheck %s --check-prefix=SCHEDULE
// RUN: tessera-opt %s -ttgir-assign-latencies=num-stages=2 -ttgir-schedule-loops -ttgir-pipeline-loops | FileCheck %s
// RUN: tessera-opt %s -ttgir-assign-latencies=num-stages=4 -ttgir-schedule-loops -ttgir-pipeline-loops | FileCheck %s
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>
#bb = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 8}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
// The loads first, the product of the iteration before, then the stores and what is computed for them.
// SCHEDULE-LABEL: @loop
// SCHEDULE: tt.load {{.*}}loop.cluster = 0 : i32, loop.stage = 0
// SCHEDULE: arith.mulf {{.*}}loop.cluster = 2 : i32, loop.stage = 0
// SCHEDULE: ttg.local_alloc {{.*}}loop.cluster = 2 : i32, loop.stage = 0
// SCHEDULE: ttg.local_load {{.*}}loop.cluster = 1 : i32, loop.stage = 1
// SCHEDULE: tt.dot {{.*}}loop.cluster = 1 : i32, loop.stage = 1
// CHECK-LABEL: @loop
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<1x64x64xf16
// CHECK: tt.load
// CHECK: ttg.local_store
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK: tt.load
// CHECK: ttg.local_load
// CHECK: tt.dot
// CHECK: arith.mulf
// CHECK: ttg.local_store
// CHECK: scf.yield
tt.func public @loop(%p: tensor<64x64x!tt.ptr<f16>, #b>, %step: tensor<64x64xi32, #b>, %n: i32) -> tensor<64x64xf32, #mma> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %q = %p) -> (tensor<64x64xf32, #mma>, tensor<64x64x!tt.ptr<f16>, #b>) : i32 {
    %x = tt.load %q : tensor<64x64x!tt.ptr<f16>, #b>
    %y = arith.mulf %x, %x : tensor<64x64xf16, #b>
    %s = ttg.local_alloc %y : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    %xa = ttg.local_load %s : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #a>
    %xb = ttg.local_load %s : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #bb>
    %d = tt.dot %xa, %xb, %acc : tensor<64x64xf16, #a> * tensor<64x64xf16, #bb> -> tensor<64x64xf32, #mma>
    %next = tt.addptr %q, %step : tensor<64x64x!tt.ptr<f16>, #b>, tensor<64x64xi32, #b>
    scf.yield %d, %next : tensor<64x64xf32, #mma>, tensor<64x64x!tt.ptr<f16>, #b>
  }
  tt.return %r#0 : tensor<64x64xf32, #mma>
}
}
