// RUN: tessera-opt %s -split-input-file -verify-diagnostics -ttgir-allocate-shared="max-shared-bytes=20000" | FileCheck %s

// Two buffers that live at the same time lie apart; a third takes the place of the first.
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#sh = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// CHECK: module attributes {{.*}}ttg.shared = 8192 : i32
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @buffers
// CHECK: ttg.local_alloc {{.*}}allocation.offset = [[X:[0-9]+]] : i32
// CHECK: ttg.local_alloc {{.*}}allocation.offset = {{[0-9]+}} : i32
// CHECK: ttg.local_alloc {{.*}}allocation.offset = [[X]] : i32
tt.func @buffers(%v: tensor<1024xf32, #b>, %p: tensor<1024x!tt.ptr<f32>, #b>) {
  %x = ttg.local_alloc %v : (tensor<1024xf32, #b>) -> !ttg.memdesc<1024xf32, #sh, #smem>
  %y = ttg.local_alloc %v : (tensor<1024xf32, #b>) -> !ttg.memdesc<1024xf32, #sh, #smem>
  %a = ttg.local_load %x : !ttg.memdesc<1024xf32, #sh, #smem> -> tensor<1024xf32, #b>
  %z = ttg.local_alloc %a : (tensor<1024xf32, #b>) -> !ttg.memdesc<1024xf32, #sh, #smem>
  %c = ttg.local_load %y : !ttg.memdesc<1024xf32, #sh, #smem> -> tensor<1024xf32, #b>
  %d = ttg.local_load %z : !ttg.memdesc<1024xf32, #sh, #smem> -> tensor<1024xf32, #b>
  tt.store %p, %c : tensor<1024x!tt.ptr<f32>, #b>
  tt.store %p, %d : tensor<1024x!tt.ptr<f32>, #b>
  tt.return
}
}

// -----

// A buffer used in a loop lives until the loop ends: one made in the loop must not take its place.
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#sh = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// CHECK: module attributes {{.*}}ttg.shared = 8192 : i32
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @loop
tt.func @loop(%v: tensor<1024xf32, #b>, %p: tensor<1024x!tt.ptr<f32>, #b>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = ttg.local_alloc %v : (tensor<1024xf32, #b>) -> !ttg.memdesc<1024xf32, #sh, #smem>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %a = ttg.local_load %x : !ttg.memdesc<1024xf32, #sh, #smem> -> tensor<1024xf32, #b>
    %y = ttg.local_alloc %a : (tensor<1024xf32, #b>) -> !ttg.memdesc<1024xf32, #sh, #smem>
    %c = ttg.local_load %y : !ttg.memdesc<1024xf32, #sh, #smem> -> tensor<1024xf32, #b>
    tt.store %p, %c : tensor<1024x!tt.ptr<f32>, #b>
  }
  tt.return
}
}

// -----

// Scratch of neighbouring reductions is kept apart.
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK: module attributes {{.*}}ttg.shared = 32 : i32
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @reductions
// CHECK: {allocation.offset = 0 : i32} : (tensor<1024xf32
// CHECK: {allocation.offset = 16 : i32} : (tensor<1024xf32
// CHECK: {allocation.offset = 0 : i32} : (tensor<1024xf32
tt.func @reductions(%v: tensor<1024xf32, #b>) -> (f32, f32, f32) {
  %r = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<1024xf32, #b>) -> f32
  %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.mulf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<1024xf32, #b>) -> f32
  %t = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.maxnumf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<1024xf32, #b>) -> f32
  tt.return %r, %s, %t : f32, f32, f32
}
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#sh = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @too_much(%v: tensor<8192xf32, #b>) {
  // expected-error @+1 {{needs 32768 bytes of shared memory; with what is live at the same time 32768, but a program may use 20000: use smaller tiles}}
  %x = ttg.local_alloc %v : (tensor<8192xf32, #b>) -> !ttg.memdesc<8192xf32, #sh, #smem>
  tt.return
}
}
