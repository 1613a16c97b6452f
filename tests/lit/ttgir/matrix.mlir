// Matrix products, their layouts, and asynchronous copies in their textual form (ttg and ttng).
// RUN: tessera-opt %s | FileCheck %s
// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: tessera-opt %s --mlir-print-op-generic | tessera-opt | FileCheck %s

// CHECK-DAG: #[[$B:blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-DAG: #[[$V2:mma[0-9]*]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-DAG: #[[$V2B:mma[0-9]*]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1, 1], instrShape = [1, 16, 8]}>
// CHECK-DAG: #[[$V3:mma[0-9]*]] = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK-DAG: #[[$V3I:mma[0-9]*]] = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 32, 32]}>
// CHECK-DAG: #[[$V2C:mma[0-9]*]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], CGALayout = {{\[\[}}1, 0]], instrShape = [16, 8]}>
// CHECK-DAG: #[[$N:shared[0-9]*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-DAG: #[[$T:shared[0-9]*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
// CHECK-DAG: #[[$N0:shared[0-9]*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 32}>
// CHECK-DAG: #[[$NC:shared[0-9]*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = true, elementBitWidth = 8, CGALayout = {{\[\[}}0, 1]]}>
// CHECK-DAG: #[[$S:shared[0-9]*]] = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#v2 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#v2b = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1, 1], instrShape = [1, 16, 8]}>
#v2c = #ttg.nvidia_mma<{instrShape = [16, 8], warpsPerCTA = [4, 1], versionMinor = 0, versionMajor = 2, CGALayout = [[1, 0]]}>
#v3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#v3i = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 32, 32]}>
#n = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#t = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#n0 = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 32}>
#nc = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = true, elementBitWidth = 8, CGALayout = [[0, 1]]}>
#s = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#m = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: @dot
tt.func @dot(%a: tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #v2, kWidth = 2}>>,
             %b: tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #v2, kWidth = 2}>>, %c: tensor<32x64xf32, #v2>) -> tensor<32x64xf32, #v2> {
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #[[$V2]], kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #[[$V2]], kWidth = 2}>> -> tensor<32x64xf32, #[[$V2]]>
  %0 = tt.dot %a, %b, %c : tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #v2, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #v2, kWidth = 2}>> -> tensor<32x64xf32, #v2>
  tt.return %0 : tensor<32x64xf32, #v2>
}

// Any layouts before one is chosen; 8-bit floats may be mixed.
// CHECK-LABEL: @dot_blocked
tt.func @dot_blocked(%a: tensor<32x32xf8E4M3FN, #b>, %b: tensor<32x32xf8E5M2, #b>, %c: tensor<32x32xf16, #b>) {
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}} {maxNumImpreciseAcc = 32 : i32} : tensor<32x32xf8E4M3FN, #[[$B]]> * tensor<32x32xf8E5M2, #[[$B]]> -> tensor<32x32xf16, #[[$B]]>
  %0 = tt.dot %a, %b, %c {maxNumImpreciseAcc = 32 : i32} : tensor<32x32xf8E4M3FN, #b> * tensor<32x32xf8E5M2, #b> -> tensor<32x32xf16, #b>
  tt.return
}

// CHECK-LABEL: @batch
tt.func @batch(%a: tensor<4x16x32xi8, #ttg.dot_op<{opIdx = 0, parent = #v2b, kWidth = 4}>>,
               %b: tensor<4x32x16xi8, #ttg.dot_op<{opIdx = 1, parent = #v2b, kWidth = 4}>>, %c: tensor<4x16x16xi32, #v2b>) {
  // CHECK: tt.dot {{.*}} -> tensor<4x16x16xi32, #[[$V2B]]>
  %0 = tt.dot %a, %b, %c : tensor<4x16x32xi8, #ttg.dot_op<{opIdx = 0, parent = #v2b, kWidth = 4}>> * tensor<4x32x16xi8, #ttg.dot_op<{opIdx = 1, parent = #v2b, kWidth = 4}>> -> tensor<4x16x16xi32, #v2b>
  // A slice and a transposed tile of a matrix layout.
  // CHECK: (tensor<4x16x16xi32, #[[$V2B]]>) -> tensor<4x16xi32, #ttg.slice<{dim = 2, parent = #[[$V2B]]}>>
  %1 = "tt.reduce"(%0) <{axis = 2 : i32}> ({
  ^bb0(%x: i32, %y: i32):
    %z = arith.addi %x, %y : i32
    tt.reduce.return %z : i32
  }) : (tensor<4x16x16xi32, #v2b>) -> tensor<4x16xi32, #ttg.slice<{dim = 2, parent = #v2b}>>
  tt.return
}

// CHECK-LABEL: @cluster
// CHECK-SAME: tensor<128x8xf32, #[[$V2C]]>
tt.func private @cluster(tensor<128x8xf32, #v2c>, !ttg.memdesc<64x64xi8, #nc, #m>, !ttg.memdesc<64x4xf32, #n0, #m>)

// CHECK-LABEL: @copies
tt.func @copies(%p: tensor<64x64x!tt.ptr<f16>, #b>, %mask: tensor<64x64xi1, #b>, %other: tensor<64x64xf16, #b>, %i: i32) {
  // CHECK: %[[BUFFERS:.*]] = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #[[$S]], #smem, mutable>
  %buffers = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #s, #m, mutable>
  %x = ttg.memdesc_index %buffers[%i] : !ttg.memdesc<2x64x64xf16, #s, #m, mutable> -> !ttg.memdesc<64x64xf16, #s, #m, mutable>
  // CHECK: %[[A:.*]] = ttg.async_copy_global_to_local %{{.*}}, %[[X:.*]] : tensor<64x64x!tt.ptr<f16>, #[[$B]]> -> <64x64xf16, #[[$S]], #smem, mutable>
  %0 = ttg.async_copy_global_to_local %p, %x : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #m, mutable>
  // CHECK: %[[C:.*]] = ttg.async_copy_global_to_local %{{.*}}, %[[X]] mask %{{.*}} other %{{.*}} cacheModifier = cg evictionPolicy = evict_last {contiguity = 8 : i32} : tensor<64x64x!tt.ptr<f16>, #[[$B]]> -> <64x64xf16, #[[$S]], #smem, mutable>
  %1 = ttg.async_copy_global_to_local %p, %x mask %mask other %other cacheModifier = cg evictionPolicy = evict_last {contiguity = 8 : i32} : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #m, mutable>
  // CHECK: %[[G:.*]] = ttg.async_commit_group tokens %[[A]], %[[C]]
  %2 = ttg.async_commit_group tokens %0, %1
  // CHECK: ttg.async_commit_group{{$}}
  %3 = ttg.async_commit_group
  // CHECK: %[[W:.*]] = ttg.async_wait %[[G]] {num = 1 : i32}
  %4 = ttg.async_wait %2 {num = 1 : i32}
  // CHECK: ttg.async_wait {num = 0 : i32}
  %5 = ttg.async_wait {num = 0 : i32}
  // CHECK: ttg.local_load %[[X]] token %[[W]] : !ttg.memdesc<64x64xf16, #[[$S]], #smem, mutable> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #[[$V2]], kWidth = 2}>>
  %6 = ttg.local_load %x token %4 : !ttg.memdesc<64x64xf16, #s, #m, mutable> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #v2, kWidth = 2}>>
  // CHECK: %[[P:.*]] = ttg.memdesc_subslice %[[X]][0, 16] : !ttg.memdesc<64x64xf16, #[[$S]], #smem, mutable> -> !ttg.memdesc<64x16xf16, #[[$S]], #smem, mutable, 64x64>
  %7 = ttg.memdesc_subslice %x[0, 16] : !ttg.memdesc<64x64xf16, #s, #m, mutable> -> !ttg.memdesc<64x16xf16, #s, #m, mutable, 64x64>
  // CHECK: ttg.local_load %[[P]] :
  %8 = ttg.local_load %7 : !ttg.memdesc<64x16xf16, #s, #m, mutable, 64x64> -> tensor<64x16xf16, #ttg.dot_op<{opIdx = 0, parent = #v2, kWidth = 2}>>
  tt.return
}

// CHECK-LABEL: @local_dot
tt.func @local_dot(%a: !ttg.memdesc<64x64xf16, #s, #m>, %b: !ttg.memdesc<64x32xf16, #s, #m>, %c: tensor<64x32xf32, #b>) {
  // CHECK: ttg.local_dot %{{.*}}, %{{.*}}, %{{.*}} : !ttg.memdesc<64x64xf16, #[[$S]], #smem> * !ttg.memdesc<64x32xf16, #[[$S]], #smem>, tensor<64x32xf32, #[[$B]]> -> tensor<64x32xf32, #[[$B]]>
  %0 = ttg.local_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #s, #m> * !ttg.memdesc<64x32xf16, #s, #m>, tensor<64x32xf32, #b> -> tensor<64x32xf32, #b>
  tt.return
}

// CHECK-LABEL: @warp_group
tt.func @warp_group(%a: !ttg.memdesc<64x64xf16, #n, #m>, %b: !ttg.memdesc<64x64xf16, #t, #m>, %c: tensor<64x64xf32, #v3>,
                    %r: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #v3, kWidth = 2}>>, %use: i1) {
  // CHECK: ttng.fence_async_shared {bCluster = false}
  ttng.fence_async_shared {bCluster = false}
  // CHECK: %[[D:.*]] = ttng.warp_group_dot %{{.*}}, %{{.*}}, %{{.*}} {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xf16, #[[$N]], #smem> * !ttg.memdesc<64x64xf16, #[[$T]], #smem> -> tensor<64x64xf32, #[[$V3]]>
  %0 = ttng.warp_group_dot %a, %b, %c {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xf16, #n, #m> * !ttg.memdesc<64x64xf16, #t, #m> -> tensor<64x64xf32, #v3>
  // CHECK: %{{.*}}:3 = ttng.warp_group_dot_wait %[[D]], %{{.*}}, %{{.*}} {pendings = 1 : i32} : tensor<64x64xf32, #[[$V3]]>, !ttg.memdesc<64x64xf16, #[[$N]], #smem>, !ttg.memdesc<64x64xf16, #[[$T]], #smem>
  %1:3 = ttng.warp_group_dot_wait %0, %a, %b {pendings = 1 : i32} : tensor<64x64xf32, #v3>, !ttg.memdesc<64x64xf16, #n, #m>, !ttg.memdesc<64x64xf16, #t, #m>
  // A in registers; accumulators that may be ignored.
  // CHECK: ttng.warp_group_dot %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #[[$V3]], kWidth = 2}>> * !ttg.memdesc<64x64xf16, #[[$T]], #smem> -> tensor<64x64xf32, #[[$V3]]>
  %2 = ttng.warp_group_dot %r, %b, %1#0, %use : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #v3, kWidth = 2}>> * !ttg.memdesc<64x64xf16, #t, #m> -> tensor<64x64xf32, #v3>
  tt.return
}

// CHECK-LABEL: @integers
tt.func private @integers(tensor<64x32xi32, #v3i>)

}
