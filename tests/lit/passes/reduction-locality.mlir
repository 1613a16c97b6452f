// RUN: tessera-opt %s -split-input-file -ttgir-reduction-locality | FileCheck %s

// Registers are reduced in the loop, lanes and warps behind it. Nothing changes -0.0 when added to it.
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @sum
// CHECK: %[[ID:.*]] = arith.constant dense<-0.000000e+00> : tensor<128xf32
// CHECK: %[[L:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[ID]])
// CHECK: tt.reshape {{.*}} tensor<2048xf32, {{.*}} -> tensor<4x128x4xf32
// CHECK: "tt.reduce"{{.*}}axis = 2
// CHECK: (tensor<4x128x4xf32, {{.*}}) -> tensor<4x128xf32
// CHECK: "tt.reduce"{{.*}}axis = 0
// CHECK: arith.addf %[[ACC]], %{{.*}} : tensor<128xf32
// CHECK: scf.yield
// CHECK: %[[T:.*]] = "tt.reduce"(%[[L]]) <{axis = 0 : i32}>
// CHECK: %[[R:.*]] = arith.addf %arg1, %[[T]] : f32
// CHECK: tt.store %{{.*}}, %[[R]]
tt.func @sum(%p: tensor<2048x!tt.ptr<f32>, #b>, %init: f32, %n: i32, %o: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = scf.for %i = %c0 to %n step %c1 iter_args(%a = %init) -> f32 : i32 {
    %v = tt.load %p : tensor<2048x!tt.ptr<f32>, #b>
    %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<2048xf32, #b>) -> f32
    %t = arith.addf %a, %s : f32
    scf.yield %t : f32
  }
  tt.store %o, %acc : !tt.ptr<f32>
  tt.return
}
}

// -----

// The accumulator is used for something else too: nothing to win.
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @running_max
// CHECK: scf.for {{.*}} -> (f32)
// CHECK: "tt.reduce"
// CHECK: (tensor<2048xf32, {{.*}}) -> f32
tt.func @running_max(%p: tensor<2048x!tt.ptr<f32>, #b>, %init: f32, %n: i32, %o: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = scf.for %i = %c0 to %n step %c1 iter_args(%a = %init) -> f32 : i32 {
    %v = tt.load %p : tensor<2048x!tt.ptr<f32>, #b>
    %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.maxnumf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<2048xf32, #b>) -> f32
    %t = arith.maxnumf %a, %s : f32
    tt.store %o, %t : !tt.ptr<f32>
    scf.yield %t : f32
  }
  tt.store %o, %acc : !tt.ptr<f32>
  tt.return
}
}

// -----

// The axis lies in registers only: each thread has its sum already.
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @in_thread
// CHECK-NOT: tt.reshape
tt.func @in_thread(%p: tensor<128x4x!tt.ptr<i32>, #b>, %init: tensor<128xi32, #ttg.slice<{dim = 1, parent = #b}>>, %n: i32) -> tensor<128xi32, #ttg.slice<{dim = 1, parent = #b}>> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = scf.for %i = %c0 to %n step %c1 iter_args(%a = %init) -> tensor<128xi32, #ttg.slice<{dim = 1, parent = #b}>> : i32 {
    %v = tt.load %p : tensor<128x4x!tt.ptr<i32>, #b>
    %s = "tt.reduce"(%v) <{axis = 1 : i32}> ({
    ^bb0(%x: i32, %y: i32):
      %z = arith.addi %x, %y : i32
      tt.reduce.return %z : i32
    }) : (tensor<128x4xi32, #b>) -> tensor<128xi32, #ttg.slice<{dim = 1, parent = #b}>>
    %t = arith.addi %a, %s : tensor<128xi32, #ttg.slice<{dim = 1, parent = #b}>>
    scf.yield %t : tensor<128xi32, #ttg.slice<{dim = 1, parent = #b}>>
  }
  tt.return %acc : tensor<128xi32, #ttg.slice<{dim = 1, parent = #b}>>
}
}
