// Folders and canonicalisation patterns of ttg.
// RUN: tessera-opt %s -canonicalize -cse | FileCheck %s

// CHECK-DAG: #[[$A:blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-DAG: #[[$B:blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#c = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#t = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>

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

// CHECK-LABEL: @views
tt.func @views(%m: !ttg.memdesc<8x16xf32, #s, #ttg.shared_memory>) -> (!ttg.memdesc<2x4xf32, #s, #ttg.shared_memory, 8x16>, !ttg.memdesc<8x16xf32, #s, #ttg.shared_memory>) {
  // A part of a part, a whole, and a permutation undone.
  // CHECK-NEXT: %[[P:.*]] = ttg.memdesc_subslice %arg0[6, 12] :
  // CHECK-NEXT: tt.return %[[P]], %arg0
  %0 = ttg.memdesc_subslice %m[4, 8] : !ttg.memdesc<8x16xf32, #s, #ttg.shared_memory> -> !ttg.memdesc<4x8xf32, #s, #ttg.shared_memory, 8x16>
  %1 = ttg.memdesc_subslice %0[2, 4] : !ttg.memdesc<4x8xf32, #s, #ttg.shared_memory, 8x16> -> !ttg.memdesc<2x4xf32, #s, #ttg.shared_memory, 8x16>
  %2 = ttg.memdesc_subslice %m[0, 0] : !ttg.memdesc<8x16xf32, #s, #ttg.shared_memory> -> !ttg.memdesc<8x16xf32, #s, #ttg.shared_memory>
  %3 = ttg.memdesc_trans %2 {order = array<i32: 1, 0>} : !ttg.memdesc<8x16xf32, #s, #ttg.shared_memory> -> !ttg.memdesc<16x8xf32, #t, #ttg.shared_memory>
  %4 = ttg.memdesc_trans %3 {order = array<i32: 1, 0>} : !ttg.memdesc<16x8xf32, #t, #ttg.shared_memory> -> !ttg.memdesc<8x16xf32, #s, #ttg.shared_memory>
  tt.return %1, %4 : !ttg.memdesc<2x4xf32, #s, #ttg.shared_memory, 8x16>, !ttg.memdesc<8x16xf32, #s, #ttg.shared_memory>
}

// CHECK-LABEL: @asynchronous
tt.func @asynchronous(%p: tensor<512x!tt.ptr<f32>, #b>, %m: !ttg.memdesc<512xf32, #one, #ttg.shared_memory, mutable>, %x: tensor<512xf32, #b>) {
  // What starts, groups, waits for or orders copies and dots stays though nobody uses its result, and in its place.
  // CHECK-NEXT: ttg.async_copy_global_to_local
  // CHECK-NEXT: ttg.async_commit_group
  // CHECK-NEXT: ttg.async_copy_global_to_local
  // CHECK-NEXT: ttg.async_commit_group
  // CHECK-NEXT: ttg.async_wait
  // CHECK-NEXT: ttng.fence_async_shared
  // CHECK-NEXT: ttng.warp_group_dot_wait
  // CHECK-NEXT: tt.return
  %0 = ttg.async_copy_global_to_local %p, %m : tensor<512x!tt.ptr<f32>, #b> -> <512xf32, #one, #ttg.shared_memory, mutable>
  %1 = ttg.async_commit_group
  %2 = ttg.async_copy_global_to_local %p, %m : tensor<512x!tt.ptr<f32>, #b> -> <512xf32, #one, #ttg.shared_memory, mutable>
  %3 = ttg.async_commit_group
  %4 = ttg.async_wait {num = 0 : i32}
  ttng.fence_async_shared {bCluster = false}
  %5 = ttng.warp_group_dot_wait %x {pendings = 0 : i32} : tensor<512xf32, #b>
  tt.return
}

// CHECK-LABEL: @dot_of_zero
tt.func @dot_of_zero(%a: tensor<16x16xf16>) -> tensor<16x16xf32> {
  // A zero accumulator stays.
  // CHECK-NEXT: %[[Z:.*]] = arith.constant dense<0.000000e+00>
  // CHECK-NEXT: tt.dot %arg0, %arg0, %[[Z]] :
  %0 = arith.constant dense<0.0> : tensor<16x16xf32>
  %1 = tt.dot %a, %a, %0 : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  tt.return %1 : tensor<16x16xf32>
}
