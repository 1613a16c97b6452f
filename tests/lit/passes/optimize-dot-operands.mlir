// RUN: tessera-opt %s -split-input-file -ttgir-optimize-dot-operands | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#bt = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#bb = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
// CHECK-DAG: #[[$A:.*]] = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
// CHECK-DAG: #[[$B:.*]] = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
// Both loads first, then both buffers. Rows of 64 bytes need a phase every second row.
// CHECK-LABEL: @through_shared
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[Y:.*]] = tt.load
// CHECK: %[[XS:.*]] = ttg.local_alloc %[[X]] : {{.*}} -> !ttg.memdesc<64x32xf16, #[[$A]], #smem>
// CHECK: %[[XD:.*]] = ttg.local_load %[[XS]] : {{.*}} -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0
// CHECK: %[[YS:.*]] = ttg.local_alloc %[[Y]] : {{.*}} -> !ttg.memdesc<32x64xf16, #[[$B]], #smem>
// CHECK: %[[YD:.*]] = ttg.local_load %[[YS]]
// CHECK: tt.dot %[[XD]], %[[YD]], %arg2
tt.func @through_shared(%ap: tensor<64x32x!tt.ptr<f16>, #b>, %bp: tensor<32x64x!tt.ptr<f16>, #b>, %c: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
  %x = tt.load %ap : tensor<64x32x!tt.ptr<f16>, #b>
  %xd = ttg.convert_layout %x : tensor<64x32xf16, #b> -> tensor<64x32xf16, #a>
  %y = tt.load %bp : tensor<32x64x!tt.ptr<f16>, #b>
  %yd = ttg.convert_layout %y : tensor<32x64xf16, #b> -> tensor<32x64xf16, #bb>
  %d = tt.dot %xd, %yd, %c : tensor<64x32xf16, #a> * tensor<32x64xf16, #bb> -> tensor<64x64xf32, #mma>
  tt.return %d : tensor<64x64xf32, #mma>
}

// A transposition is a view, and what is computed with the tile is computed behind shared memory.
// CHECK-LABEL: @transposed_and_scaled
// CHECK: %[[Y:.*]] = tt.load
// CHECK: %[[YS:.*]] = ttg.local_alloc %[[Y]] : (tensor<64x32xf8E5M2, #{{.*}}>)
// CHECK: %[[YT:.*]] = ttg.memdesc_trans %[[YS]] {order = array<i32: 1, 0>} : {{.*}} -> !ttg.memdesc<32x64xf8E5M2
// CHECK: %[[YL:.*]] = ttg.local_load %[[YT]] : {{.*}} -> tensor<32x64xf8E5M2, #ttg.dot_op<{opIdx = 1
// CHECK: %[[YF:.*]] = tt.fp_to_fp %[[YL]] : tensor<32x64xf8E5M2, #ttg.dot_op<{opIdx = 1
// CHECK: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<32x64xf16, #ttg.dot_op<{opIdx = 1
// CHECK: %[[YM:.*]] = arith.mulf %[[YF]], %[[TWO]]
// CHECK: tt.dot %arg0, %[[YM]], %arg2
tt.func @transposed_and_scaled(%xd: tensor<64x32xf16, #a>, %bp: tensor<64x32x!tt.ptr<f8E5M2>, #b>, %c: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
  %two = arith.constant dense<2.0> : tensor<64x32xf16, #b>
  %y = tt.load %bp : tensor<64x32x!tt.ptr<f8E5M2>, #b>
  %f = tt.fp_to_fp %y : tensor<64x32xf8E5M2, #b> -> tensor<64x32xf16, #b>
  %m = arith.mulf %f, %two : tensor<64x32xf16, #b>
  %t = tt.trans %m {order = array<i32: 1, 0>} : tensor<64x32xf16, #b> -> tensor<32x64xf16, #bt>
  %yd = ttg.convert_layout %t : tensor<32x64xf16, #bt> -> tensor<32x64xf16, #bb>
  %d = tt.dot %xd, %yd, %c : tensor<64x32xf16, #a> * tensor<32x64xf16, #bb> -> tensor<64x64xf32, #mma>
  tt.return %d : tensor<64x64xf32, #mma>
}
}

// -----

// The result of a product is the next one's A as it lies: no shared memory.
#rows = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#p = #ttg.dot_op<{opIdx = 0, parent = #rows, kWidth = 2}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
// CHECK-LABEL: @chain
// CHECK-NOT: ttg.local_alloc
// CHECK: ttg.convert_layout
tt.func @chain(%s: tensor<64x64xf16, #rows>) -> tensor<64x64xf16, #p> {
  %d = ttg.convert_layout %s : tensor<64x64xf16, #rows> -> tensor<64x64xf16, #p>
  tt.return %d : tensor<64x64xf16, #p>
}
}

// -----

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bt = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#sh = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#sht = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
// CHECK-DAG: #[[$SH:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false
// CHECK-DAG: #[[$MMA:.*]] = #ttg.nvidia_mma
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
// wgmma: B as a view of the untransposed tile; one buffer for both uses of K.
// CHECK-LABEL: @warp_group
// CHECK: %[[K:.*]] = ttg.local_alloc %arg0 : (tensor<64x64xf16, #{{.*}}>) -> !ttg.memdesc<64x64xf16, #[[$SH]], #smem>
// CHECK: %[[T:.*]] = ttg.memdesc_trans %[[K]]
// CHECK: %[[S:.*]] = ttng.warp_group_dot %{{.*}}, %[[T]], %arg2
// CHECK: %[[P:.*]] = arith.truncf %[[S]]
// CHECK: %[[A:.*]] = ttg.convert_layout %[[P]] : {{.*}} -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #[[$MMA]], kWidth = 2}>>
// CHECK-NOT: ttg.local_alloc
// CHECK: ttng.warp_group_dot %[[A]], %[[K]], %arg2
tt.func @warp_group(%k: tensor<64x64xf16, #b>, %q: !ttg.memdesc<64x64xf16, #sh, #smem>, %c: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
  %t = tt.trans %k {order = array<i32: 1, 0>} : tensor<64x64xf16, #b> -> tensor<64x64xf16, #bt>
  %ks = ttg.local_alloc %t : (tensor<64x64xf16, #bt>) -> !ttg.memdesc<64x64xf16, #sht, #smem>
  %s = ttng.warp_group_dot %q, %ks, %c : !ttg.memdesc<64x64xf16, #sh, #smem> * !ttg.memdesc<64x64xf16, #sht, #smem> -> tensor<64x64xf32, #mma>
  %p = arith.truncf %s : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
  %ps = ttg.local_alloc %p : (tensor<64x64xf16, #mma>) -> !ttg.memdesc<64x64xf16, #sh, #smem>
  %vs = ttg.local_alloc %k : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #sh, #smem>
  %d = ttng.warp_group_dot %ps, %vs, %c : !ttg.memdesc<64x64xf16, #sh, #smem> * !ttg.memdesc<64x64xf16, #sh, #smem> -> tensor<64x64xf32, #mma>
  tt.return %d : tensor<64x64xf32, #mma>
}

// A that is computed from a loaded tile goes through shared memory as it was loaded, then through registers.
// CHECK-LABEL: @scaled_rows
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[XS:.*]] = ttg.local_alloc %[[X]]
// CHECK: %[[XL:.*]] = ttg.local_load %[[XS]] : {{.*}} -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0
// CHECK: %[[E:.*]] = math.exp %[[XL]]
// CHECK: ttng.warp_group_dot %[[E]], %arg1, %arg2
tt.func @scaled_rows(%ap: tensor<64x64x!tt.ptr<f16>, #b>, %v: !ttg.memdesc<64x64xf16, #sh, #smem>, %c: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
  %x = tt.load %ap : tensor<64x64x!tt.ptr<f16>, #b>
  %e = math.exp %x : tensor<64x64xf16, #b>
  %es = ttg.local_alloc %e : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #sh, #smem>
  %d = ttng.warp_group_dot %es, %v, %c : !ttg.memdesc<64x64xf16, #sh, #smem> * !ttg.memdesc<64x64xf16, #sh, #smem> -> tensor<64x64xf32, #mma>
  tt.return %d : tensor<64x64xf32, #mma>
}
}
