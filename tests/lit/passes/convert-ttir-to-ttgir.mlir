// RUN: tessera-opt %s -split-input-file -verify-diagnostics -convert-ttir-to-ttgir="num-warps=4 threads-per-warp=32 target=cuda:80" | FileCheck %s

// CHECK-DAG: #[[$B1:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-DAG: #[[$B2:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [{{[0-9]}}, {{[0-9]}}], order = [1, 0]}>
// CHECK: module attributes {
// CHECK-SAME: "ttg.num-ctas" = 1 : i32
// CHECK-SAME: "ttg.num-warps" = 4 : i32
// CHECK-SAME: ttg.target = "cuda:80"
// CHECK-SAME: "ttg.threads-per-warp" = 32 : i32
// CHECK-LABEL: @sum
// CHECK: arith.constant dense<0.000000e+00> : tensor<64x128xf32, #[[$B2]]>
// CHECK: %[[R:.*]] = tt.make_range {{.*}} : tensor<128xi32, #[[$B1]]>
// CHECK: ttg.convert_layout %[[R]] : tensor<128xi32, #[[$B1]]> -> tensor<128xi32, #ttg.slice<{dim = 0, parent = #[[$E:.*]]}>>
// CHECK: tt.expand_dims {{.*}} -> tensor<1x128xi32, #[[$E]]>
// CHECK: scf.for {{.*}} -> (tensor<64x128xf32, #[[$B2]]>)
// CHECK: %[[S:.*]] = "tt.reduce"
// CHECK: (tensor<64x128xf32, #[[$B2]]>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #[[$B2]]}>>
// CHECK: ttg.convert_layout %[[S]] : {{.*}} -> tensor<64xf32, #[[$B1]]>
tt.func public @sum(%p: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %e = tt.expand_dims %r {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %b = tt.broadcast %e : tensor<1x128xi32> -> tensor<64x128xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>>
  %q = tt.addptr %ps, %b : tensor<64x128x!tt.ptr<f32>>, tensor<64x128xi32>
  %acc = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> tensor<64x128xf32> : i32 {
    %v = tt.load %q : tensor<64x128x!tt.ptr<f32>>
    %s = arith.addf %a, %v : tensor<64x128xf32>
    scf.yield %s : tensor<64x128xf32>
  }
  %s = "tt.reduce"(%acc) <{axis = 1 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<64x128xf32>) -> tensor<64xf32>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  tt.store %os, %s : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// A split needs both halves in one thread.
// CHECK-LABEL: @split
// CHECK: %[[C:.*]] = ttg.convert_layout %{{.*}} : tensor<64x2xf32, {{.*}}> -> tensor<64x2xf32, #[[$L:.*]]>
// CHECK: tt.split %[[C]]
tt.func public @split(%x: f32, %p: !tt.ptr<f32>) {
  %v = tt.splat %x : f32 -> tensor<64x2xf32>
  %a, %b = tt.split %v : tensor<64x2xf32> -> tensor<64xf32>
  %s = arith.addf %a, %b : tensor<64xf32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  tt.store %ps, %s : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// expected-error @+1 {{a function that takes or returns tiles must be inlined before layouts are chosen}}
tt.func public @takes_tiles(%x: tensor<64xf32>) {
  tt.return
}
