// Folders and canonicalisation patterns of ttg.
// RUN: tessera-opt %s -canonicalize | FileCheck %s

// CHECK-DAG: #[[$A:blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-DAG: #[[$B:blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#c = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>

// CHECK-LABEL: @free_layouts
// CHECK-SAME: %[[X:.*]]: f32
tt.func @free_layouts(%x: f32) -> (tensor<512xf32, #b>, tensor<512xi32, #b>, tensor<512xf32, #b>) {
  // Splat, range and constant are made in the layout wanted.
  // CHECK-DAG: %[[C:.*]] = arith.constant dense<3.000000e+00> : tensor<512xf32, #[[$B]]>
  // CHECK-DAG: %[[S:.*]] = tt.splat %[[X]] : f32 -> tensor<512xf32, #[[$B]]>
  // CHECK-DAG: %[[R:.*]] = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #[[$B]]>
  // CHECK: tt.return %[[S]], %[[R]], %[[C]]
  %0 = tt.splat %x : f32 -> tensor<512xf32, #a>
  %1 = ttg.convert_layout %0 : tensor<512xf32, #a> -> tensor<512xf32, #b>
  %2 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #a>
  %3 = ttg.convert_layout %2 : tensor<512xi32, #a> -> tensor<512xi32, #b>
  %4 = arith.constant dense<3.0> : tensor<512xf32, #a>
  %5 = ttg.convert_layout %4 : tensor<512xf32, #a> -> tensor<512xf32, #b>
  tt.return %1, %3, %5 : tensor<512xf32, #b>, tensor<512xi32, #b>, tensor<512xf32, #b>
}

// CHECK-LABEL: @chains
// CHECK-SAME: %[[X:.*]]: tensor<512xf32, #[[$A]]>
tt.func @chains(%x: tensor<512xf32, #a>) -> (tensor<512xf32, #a>, tensor<512xf32, #b>) {
  // CHECK-NEXT: %[[Y:.*]] = ttg.convert_layout %[[X]] : tensor<512xf32, #[[$A]]> -> tensor<512xf32, #[[$B]]>
  // CHECK-NEXT: tt.return %[[X]], %[[Y]]
  %0 = ttg.convert_layout %x : tensor<512xf32, #a> -> tensor<512xf32, #c>
  %1 = ttg.convert_layout %0 : tensor<512xf32, #c> -> tensor<512xf32, #a>
  %2 = ttg.convert_layout %0 : tensor<512xf32, #c> -> tensor<512xf32, #b>
  tt.return %1, %2 : tensor<512xf32, #a>, tensor<512xf32, #b>
}

// CHECK-LABEL: @reordering_reshape
tt.func @reordering_reshape(%x: tensor<512xf32, #a>) -> (tensor<512xf32, #b>, tensor<512xf32, #b>) {
  // CHECK-NEXT: tt.reshape %{{.*}} allow_reorder : tensor<512xf32, #[[$A]]> -> tensor<512xf32, #[[$B]]>
  // CHECK-NEXT: tt.reshape %{{.*}} allow_reorder efficient_layout
  // CHECK-NEXT: ttg.convert_layout
  %0 = tt.reshape %x allow_reorder : tensor<512xf32, #a> -> tensor<512xf32, #c>
  %1 = ttg.convert_layout %0 : tensor<512xf32, #c> -> tensor<512xf32, #b>
  %2 = tt.reshape %x allow_reorder efficient_layout : tensor<512xf32, #a> -> tensor<512xf32, #c>
  %3 = ttg.convert_layout %2 : tensor<512xf32, #c> -> tensor<512xf32, #b>
  tt.return %1, %3 : tensor<512xf32, #b>, tensor<512xf32, #b>
}

// CHECK-LABEL: @effects
tt.func @effects(%m: !ttg.memdesc<4x4xf32, #s, #ttg.shared_memory, mutable>) -> !ttg.memdesc<4x4xf32, #s, #ttg.shared_memory, mutable> {
  // Barriers stay although nothing uses them; an unused buffer goes; an identity view goes.
  // CHECK-NEXT: ttg.barrier local
  // CHECK-NEXT: tt.return %arg0
  ttg.barrier local
  %0 = ttg.local_alloc : () -> !ttg.memdesc<4x4xf32, #s, #ttg.shared_memory, mutable>
  %1 = ttg.memdesc_trans %m {order = array<i32: 0, 1>} : !ttg.memdesc<4x4xf32, #s, #ttg.shared_memory, mutable> -> !ttg.memdesc<4x4xf32, #s, #ttg.shared_memory, mutable>
  tt.return %1 : !ttg.memdesc<4x4xf32, #s, #ttg.shared_memory, mutable>
}
