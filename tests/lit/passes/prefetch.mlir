// RUN: tessera-opt %s -ttgir-prefetch | FileCheck %s

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#sh = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// The second slices of both operands are loaded before the product of the first ones.
// CHECK-LABEL: @two_slices
// CHECK: %[[AS0:.*]] = ttg.memdesc_subslice %arg0[0, 0] : {{.*}} -> !ttg.memdesc<64x16xf16, #{{.*}}, #smem, 64x32>
// CHECK: %[[A0:.*]] = ttg.local_load %[[AS0]]
// CHECK: %[[E0:.*]] = arith.negf %[[A0]] : tensor<64x16xf16
// CHECK: %[[BS0:.*]] = ttg.memdesc_subslice %arg1[0, 0] : {{.*}} -> !ttg.memdesc<16x64xf16, #{{.*}}, #smem, 32x64>
// CHECK: %[[B0:.*]] = ttg.local_load %[[BS0]]
// CHECK: ttg.memdesc_subslice %arg0[0, 16]
// CHECK: %[[E1:.*]] = arith.negf
// CHECK: ttg.memdesc_subslice %arg1[16, 0]
// CHECK: %[[B1:.*]] = ttg.local_load
// CHECK: %[[C:.*]] = tt.dot %[[E0]], %[[B0]], %arg2
// CHECK: %[[D:.*]] = tt.dot %[[E1]], %[[B1]], %[[C]]
// CHECK-NOT: tt.dot
// CHECK: tt.return %[[D]]
tt.func @two_slices(%as: !ttg.memdesc<64x32xf16, #sh, #smem>, %bs: !ttg.memdesc<32x64xf16, #sh, #smem>, %c: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
  %x = ttg.local_load %as : !ttg.memdesc<64x32xf16, #sh, #smem> -> tensor<64x32xf16, #a>
  %n = arith.negf %x : tensor<64x32xf16, #a>
  %y = ttg.local_load %bs : !ttg.memdesc<32x64xf16, #sh, #smem> -> tensor<32x64xf16, #b>
  %d = tt.dot %n, %y, %c : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> tensor<64x64xf32, #mma>
  tt.return %d : tensor<64x64xf32, #mma>
}

// What is written between the load and the product must not be read later than it was.
// CHECK-LABEL: @overwritten
// CHECK-NOT: ttg.memdesc_subslice
// CHECK: tt.dot
tt.func @overwritten(%as: !ttg.memdesc<64x32xf16, #sh, #smem, mutable>, %y: tensor<32x64xf16, #b>, %c: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
  %x = ttg.local_load %as : !ttg.memdesc<64x32xf16, #sh, #smem, mutable> -> tensor<64x32xf16, #a>
  %z = arith.constant dense<0.0> : tensor<64x32xf16, #a>
  ttg.local_store %z, %as : tensor<64x32xf16, #a> -> !ttg.memdesc<64x32xf16, #sh, #smem, mutable>
  %d = tt.dot %x, %y, %c : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> tensor<64x64xf32, #mma>
  tt.return %d : tensor<64x64xf32, #mma>
}
}
