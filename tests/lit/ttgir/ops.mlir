// Encodings, shared memory and the operations of ttg in their textual form.
// RUN: tessera-opt %s | FileCheck %s
// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: tessera-opt %s --mlir-print-op-generic | tessera-opt | FileCheck %s

// Encodings are aliases at the top of the text.
// CHECK-DAG: #[[$B1:blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-DAG: #[[$B2:blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-DAG: #[[$L:linear[0-9]*]] = #ttg.linear<{register = {{\[\[}}0, 1], [8, 0]], lane = {{\[\[}}0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = {{\[\[}}0, 8], [0, 0]], block = []}>
// CHECK-DAG: #[[$S:shared[0-9]*]] = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0]}>
// CHECK-DAG: #[[$T:shared[0-9]*]] = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [0, 1]}>
// CHECK-DAG: #[[$P:shared[0-9]*]] = #ttg.padded_shared<[64:+4, 128:+8] {offset = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]], block = []}>
// CHECK-DAG: #[[$M:smem]] = #ttg.shared_memory
#a = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#l = #ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 8], [0, 0]], block = []}>
#s = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#t = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [0, 1]}>
#p = #ttg.padded_shared<[64:+4, 128:+8] {order = [1, 0], shape = [16, 32]}>
#m = #ttg.shared_memory

// CHECK: module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: @convert
tt.func @convert(%x: tensor<16x16xf32, #b>) -> tensor<16x16xf32, #l> {
  // CHECK: ttg.convert_layout %{{.*}} : tensor<16x16xf32, #[[$B2]]> -> tensor<16x16xf32, #[[$L]]>
  %0 = ttg.convert_layout %x : tensor<16x16xf32, #b> -> tensor<16x16xf32, #l>
  tt.return %0 : tensor<16x16xf32, #l>
}

// CHECK-LABEL: @slices
// CHECK-SAME: tensor<16xi32, #ttg.slice<{dim = 1, parent = #[[$B2]]}>>
tt.func @slices(%i: tensor<16xi32, #ttg.slice<{dim = 1, parent = #b}>>, %x: tensor<16x16xf32, #b>) {
  // CHECK: tt.expand_dims %{{.*}} {axis = 1 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #[[$B2]]}>> -> tensor<16x1xi32, #[[$B2]]>
  %0 = tt.expand_dims %i {axis = 1 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #b}>> -> tensor<16x1xi32, #b>
  // CHECK: tt.broadcast %{{.*}} : tensor<16x1xi32, #[[$B2]]> -> tensor<16x16xi32, #[[$B2]]>
  %1 = tt.broadcast %0 : tensor<16x1xi32, #b> -> tensor<16x16xi32, #b>
  // CHECK: }) : (tensor<16x16xf32, #[[$B2]]>) -> tensor<16xf32, #ttg.slice<{dim = 0, parent = #[[$B2]]}>>
  %2 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%c: f32, %d: f32):
    %m = arith.addf %c, %d : f32
    tt.reduce.return %m : f32
  }) : (tensor<16x16xf32, #b>) -> tensor<16xf32, #ttg.slice<{dim = 0, parent = #b}>>
  tt.return
}

// CHECK-LABEL: @shared
tt.func @shared(%x: tensor<16x32xf16, #b>, %i: i32) {
  // CHECK: ttg.local_alloc %{{.*}} : (tensor<16x32xf16, #[[$B2]]>) -> !ttg.memdesc<16x32xf16, #[[$S]], #[[$M]]>
  %0 = ttg.local_alloc %x : (tensor<16x32xf16, #b>) -> !ttg.memdesc<16x32xf16, #s, #m>
  // CHECK: ttg.local_load %{{.*}} : !ttg.memdesc<16x32xf16, #[[$S]], #[[$M]]> -> tensor<16x32xf16, #[[$B2]]>
  %1 = ttg.local_load %0 : !ttg.memdesc<16x32xf16, #s, #m> -> tensor<16x32xf16, #b>
  // CHECK: ttg.memdesc_trans %{{.*}} {order = array<i32: 1, 0>} : !ttg.memdesc<16x32xf16, #[[$S]], #[[$M]]> -> !ttg.memdesc<32x16xf16, #[[$T]], #[[$M]]>
  %2 = ttg.memdesc_trans %0 {order = array<i32: 1, 0>} : !ttg.memdesc<16x32xf16, #s, #m> -> !ttg.memdesc<32x16xf16, #t, #m>
  // A leading dimension counts buffers.
  // CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x16x32xf16, #[[$P]], #[[$M]], mutable>
  %3 = ttg.local_alloc : () -> !ttg.memdesc<3x16x32xf16, #p, #m, mutable>
  // CHECK: ttg.memdesc_index %{{.*}}[%{{.*}}] : !ttg.memdesc<3x16x32xf16, #[[$P]], #[[$M]], mutable> -> !ttg.memdesc<16x32xf16, #[[$P]], #[[$M]], mutable>
  %4 = ttg.memdesc_index %3[%i] : !ttg.memdesc<3x16x32xf16, #p, #m, mutable> -> !ttg.memdesc<16x32xf16, #p, #m, mutable>
  // CHECK: ttg.local_store %{{.*}}, %{{.*}} : tensor<16x32xf16, #[[$B2]]> -> !ttg.memdesc<16x32xf16, #[[$P]], #[[$M]], mutable>
  ttg.local_store %x, %4 : tensor<16x32xf16, #b> -> !ttg.memdesc<16x32xf16, #p, #m, mutable>
  // CHECK: ttg.barrier local{{$}}
  ttg.barrier local
  // CHECK: ttg.barrier local|global_read|global_write{{$}}
  ttg.barrier global_write | local|global_read
  // CHECK: ttg.barrier none{{$}}
  ttg.barrier none
  // CHECK: ttg.local_dealloc %{{.*}} : !ttg.memdesc<3x16x32xf16, #[[$P]], #[[$M]], mutable>
  ttg.local_dealloc %3 : !ttg.memdesc<3x16x32xf16, #p, #m, mutable>
  tt.return
}

// CHECK-LABEL: @view
// CHECK-SAME: !ttg.memdesc<16x32xf16, #[[$S]], #[[$M]], mutable, 3x16x64>
tt.func private @view(!ttg.memdesc<16x32xf16, #s, #m, mutable, 3x16x64>)

// CHECK-LABEL: @elementwise
tt.func @elementwise(%p: tensor<512x!tt.ptr<f32>, #a>, %m: tensor<512xi1, #a>) {
  // CHECK: arith.constant dense<1.000000e+00> : tensor<512xf32, #[[$B1]]>
  %c = arith.constant dense<1.0> : tensor<512xf32, #a>
  // CHECK: tt.load %{{.*}}, %{{.*}}, %{{.*}} : tensor<512x!tt.ptr<f32>, #[[$B1]]>
  %0 = tt.load %p, %m, %c : tensor<512x!tt.ptr<f32>, #a>
  // CHECK: math.exp2 %{{.*}} : tensor<512xf32, #[[$B1]]>
  %1 = math.exp2 %0 : tensor<512xf32, #a>
  // CHECK: arith.cmpf olt, %{{.*}}, %{{.*}} : tensor<512xf32, #[[$B1]]>
  %2 = arith.cmpf olt, %0, %1 : tensor<512xf32, #a>
  // CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<512xi1, #[[$B1]]>, tensor<512xf32, #[[$B1]]>
  %3 = arith.select %2, %0, %1 : tensor<512xi1, #a>, tensor<512xf32, #a>
  tt.store %p, %3, %m : tensor<512x!tt.ptr<f32>, #a>
  tt.return
}

}
