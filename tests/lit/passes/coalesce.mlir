// RUN: tessera-opt %s -split-input-file -convert-ttir-to-ttgir -ttgir-coalesce | FileCheck %s
// RUN: tessera-opt %s -split-input-file -convert-ttir-to-ttgir="num-warps=2 threads-per-warp=8 target=cpu" -ttgir-coalesce="wide-lanes=true" | FileCheck %s --check-prefix=WIDE

// 128 bits a thread; f16 is held back by the f32 store, whose threads would leave gaps.
// CHECK-DAG: #[[$V4:.*]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @widen
// CHECK: tt.load {{.*}} : tensor<1024x!tt.ptr<f16>, #[[$V4]]>
// CHECK: tt.store {{.*}} : tensor<1024x!tt.ptr<f32>, #[[$V4]]>
// On the host a warp is the vector.
// WIDE-DAG: #[[$W:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [2], order = [0]}>
// WIDE-LABEL: @widen
// WIDE: tt.load {{.*}} : tensor<1024x!tt.ptr<f16>, #[[$W]]>
tt.func public @widen(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %ps = tt.splat %p : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
  %q = tt.addptr %ps, %r : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  %v = tt.load %q : tensor<1024x!tt.ptr<f16>>
  %f = arith.extf %v : tensor<1024xf16> to tensor<1024xf32>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %t = tt.addptr %os, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %t, %f : tensor<1024x!tt.ptr<f32>>
  tt.return
}

// -----

// Nothing known of the pointer: single elements, lane beside lane.
// CHECK-DAG: #[[$V1:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @unaligned
// CHECK: tt.load {{.*}} : tensor<1024x!tt.ptr<f32>, #[[$V1]]>
tt.func public @unaligned(%p: !tt.ptr<f32>) {
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %q = tt.addptr %ps, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %v = tt.load %q : tensor<1024x!tt.ptr<f32>>
  tt.store %q, %v : tensor<1024x!tt.ptr<f32>>
  tt.return
}

// -----

// Column-major memory turns the order; the tile has no more than 2 elements for each thread.
// CHECK-DAG: #[[$COL:.*]] = #ttg.blocked<{sizePerThread = [2, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-LABEL: @columns
// CHECK: tt.load {{.*}} : tensor<16x16x!tt.ptr<f32>, #[[$COL]]>
// WIDE-DAG: #[[$WCOL:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 1], warpsPerCTA = [1, 2], order = [0, 1]}>
// WIDE-LABEL: @columns
// WIDE: tt.load {{.*}} : tensor<16x16x!tt.ptr<f32>, #[[$WCOL]]>
tt.func public @columns(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32>) {
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %c16 = arith.constant dense<16> : tensor<1x16xi32>
  %i = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %j = tt.expand_dims %r {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %jl = arith.muli %j, %c16 : tensor<1x16xi32>
  %ib = tt.broadcast %i : tensor<16x1xi32> -> tensor<16x16xi32>
  %jb = tt.broadcast %jl : tensor<1x16xi32> -> tensor<16x16xi32>
  %off = arith.addi %ib, %jb : tensor<16x16xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %q = tt.addptr %ps, %off : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
  %v = tt.load %q : tensor<16x16x!tt.ptr<f32>>
  tt.store %q, %v : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// -----

// Rows are reduced: each warp takes whole rows, so that the reduction stays within a warp.
// CHECK-DAG: #[[$ROWS:.*]] = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @row_sums
// CHECK: tt.load {{.*}} : tensor<4x512x!tt.ptr<f32>, #[[$ROWS]]>
tt.func public @row_sums(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32>) {
  %r = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %j = tt.expand_dims %r {axis = 0 : i32} : tensor<512xi32> -> tensor<1x512xi32>
  %jb = tt.broadcast %j : tensor<1x512xi32> -> tensor<4x512xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<4x512x!tt.ptr<f32>>
  %q = tt.addptr %ps, %jb : tensor<4x512x!tt.ptr<f32>>, tensor<4x512xi32>
  %v = tt.load %q : tensor<4x512x!tt.ptr<f32>>
  %s = "tt.reduce"(%v) <{axis = 1 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<4x512xf32>) -> tensor<4xf32>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  tt.store %os, %s : tensor<4x!tt.ptr<f32>>
  tt.return
}
