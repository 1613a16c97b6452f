// RUN: tessera-opt %s -split-input-file -ttgir-accelerate-matmul | FileCheck %s

// wgmma: operands in shared memory in the order they come in, the instruction as wide as the tile.
// CHECK: #[[$MMA:.*]] = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 256, 16]}>
// CHECK: #[[$SH:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: @warp_group
// CHECK: %[[A:.*]] = ttg.local_alloc %arg0 : (tensor<128x64xf16, #{{.*}}>) -> !ttg.memdesc<128x64xf16, #[[$SH]], #smem>
// CHECK: %[[B:.*]] = ttg.local_alloc %arg1 : (tensor<64x256xf16, #{{.*}}>) -> !ttg.memdesc<64x256xf16, #[[$SH]], #smem>
// CHECK: %[[C:.*]] = ttg.convert_layout %arg2 : {{.*}} -> tensor<128x256xf32, #[[$MMA]]>
// CHECK: ttng.warp_group_dot %[[A]], %[[B]], %[[C]]
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 8 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
tt.func @warp_group(%a: tensor<128x64xf16, #b>, %b: tensor<64x256xf16, #b>, %c: tensor<128x256xf32, #b>) -> tensor<128x256xf32, #b> {
  %d = tt.dot %a, %b, %c : tensor<128x64xf16, #b> * tensor<64x256xf16, #b> -> tensor<128x256xf32, #b>
  tt.return %d : tensor<128x256xf32, #b>
}
}

// -----

// Of 16 warps a thread has 128 registers: two instructions for a row of 256, since the accumulators of one would fill
// them.
// CHECK: warpsPerCTA = [16, 1], instrShape = [16, 128, 16]
// CHECK-LABEL: @many_warps
// CHECK: ttng.warp_group_dot
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [16, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 16 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
tt.func @many_warps(%a: tensor<256x64xf16, #b>, %b: tensor<64x256xf16, #b>, %c: tensor<256x256xf32, #b>) -> tensor<256x256xf32, #b> {
  %d = tt.dot %a, %b, %c : tensor<256x64xf16, #b> * tensor<64x256xf16, #b> -> tensor<256x256xf32, #b>
  tt.return %d : tensor<256x256xf32, #b>
}
}

// -----

// Two warp groups side by side where there are only 64 rows.
// CHECK: warpsPerCTA = [4, 2], instrShape = [16, 64, 32]
// CHECK-LABEL: @one_group_of_rows
// CHECK: ttng.warp_group_dot
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 8 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
tt.func @one_group_of_rows(%a: tensor<64x64xi8, #b>, %b: tensor<64x128xi8, #b>, %c: tensor<64x128xi32, #b>) -> tensor<64x128xi32, #b> {
  %d = tt.dot %a, %b, %c : tensor<64x64xi8, #b> * tensor<64x128xi8, #b> -> tensor<64x128xi32, #b>
  tt.return %d : tensor<64x128xi32, #b>
}
}

// -----

// tf32: B is loaded along n and must lie along k. Its lanes become 8 along n by 4 along k, of one element each.
// CHECK: #[[$LOAD:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK: #[[$SH:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 32}>
// CHECK-LABEL: @transposed_on_the_way
// CHECK: %[[L:.*]] = tt.load %{{.*}} : tensor<32x64x!tt.ptr<f32>, #[[$LOAD]]>
// CHECK: ttg.local_alloc %[[L]] : (tensor<32x64xf32, #[[$LOAD]]>) -> !ttg.memdesc<32x64xf32, #[[$SH]], #smem>
// CHECK: ttng.warp_group_dot {{.*}} {inputPrecision = 0 : i32}
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
tt.func @transposed_on_the_way(%a: tensor<64x32xf32, #b>, %bp: tensor<32x64x!tt.ptr<f32>, #b>, %c: tensor<64x64xf32, #b>) -> tensor<64x64xf32, #b> {
  %b = tt.load %bp : tensor<32x64x!tt.ptr<f32>, #b>
  %d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<64x32xf32, #b> * tensor<32x64xf32, #b> -> tensor<64x64xf32, #b>
  tt.return %d : tensor<64x64xf32, #b>
}
}

// -----

// mma.sync: few rows, few warps, or an older chip.
// CHECK: #[[$MMA:.*]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
// CHECK-LABEL: @few_rows
// CHECK: tt.dot %{{.*}} : tensor<16x64xf16, #ttg.dot_op<{opIdx = 0, parent = #[[$MMA]], kWidth = 2}>> * tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #[[$MMA]], kWidth = 2}>> -> tensor<16x64xf32, #[[$MMA]]>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
tt.func @few_rows(%a: tensor<16x64xf16, #b>, %b: tensor<64x64xf16, #b>, %c: tensor<16x64xf32, #b>) -> tensor<16x64xf32, #b> {
  %d = tt.dot %a, %b, %c : tensor<16x64xf16, #b> * tensor<64x64xf16, #b> -> tensor<16x64xf32, #b>
  tt.return %d : tensor<16x64xf32, #b>
}
}

// -----

// CHECK: #[[$MMA:.*]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 4], instrShape = [16, 8]}>
// CHECK: #[[$BATCH:.*]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1, 2], instrShape = [1, 16, 8]}>
// CHECK: #[[$ROWS:.*]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 8]}>
// CHECK-LABEL: @square
// CHECK: tt.dot {{.*}} -> tensor<128x128xf32, #[[$MMA]]>
// CHECK-LABEL: @batch
// CHECK: tt.dot {{.*}} -> tensor<4x16x32xf32, #[[$BATCH]]>
// Warps own whole rows where one product is an operand of the next.
// CHECK-LABEL: @chain
// CHECK: tt.dot {{.*}} -> tensor<128x64xf32, #[[$ROWS]]>
// CHECK: tt.dot {{.*}} -> tensor<128x64xf32, #[[$ROWS]]>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#b3 = #ttg.blocked<{sizePerThread = [1, 1, 8], threadsPerWarp = [1, 8, 4], warpsPerCTA = [8, 1, 1], order = [2, 1, 0]}>
module attributes {"ttg.num-warps" = 8 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
tt.func @square(%a: tensor<128x32xf16, #b>, %b: tensor<32x128xf16, #b>, %c: tensor<128x128xf32, #b>) -> tensor<128x128xf32, #b> {
  %d = tt.dot %a, %b, %c : tensor<128x32xf16, #b> * tensor<32x128xf16, #b> -> tensor<128x128xf32, #b>
  tt.return %d : tensor<128x128xf32, #b>
}
tt.func @batch(%a: tensor<4x16x32xf16, #b3>, %b: tensor<4x32x32xf16, #b3>, %c: tensor<4x16x32xf32, #b3>) -> tensor<4x16x32xf32, #b3> {
  %d = tt.dot %a, %b, %c : tensor<4x16x32xf16, #b3> * tensor<4x32x32xf16, #b3> -> tensor<4x16x32xf32, #b3>
  tt.return %d : tensor<4x16x32xf32, #b3>
}
tt.func @chain(%a: tensor<128x64xf16, #b>, %b: tensor<64x64xf16, #b>, %v: tensor<64x64xf16, #b>, %c: tensor<128x64xf32, #b>) -> tensor<128x64xf32, #b> {
  %d = tt.dot %a, %b, %c : tensor<128x64xf16, #b> * tensor<64x64xf16, #b> -> tensor<128x64xf32, #b>
  %p = arith.truncf %d : tensor<128x64xf32, #b> to tensor<128x64xf16, #b>
  %e = tt.dot %p, %v, %c : tensor<128x64xf16, #b> * tensor<64x64xf16, #b> -> tensor<128x64xf32, #b>
  tt.return %e : tensor<128x64xf32, #b>
}
}

// -----

// f64 in tiles of at least 8 x 8 x 4: one element a lane along k. Two where it is computed by sm_80, or of another product.
// CHECK: #[[$MMA:.*]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK: #[[$FLAT:.*]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
// CHECK-LABEL: @double
// CHECK: tt.dot {{.*}} : tensor<64x16xf64, #ttg.dot_op<{opIdx = 0, parent = #[[$MMA]], kWidth = 1}>> * tensor<16x64xf64, #ttg.dot_op<{opIdx = 1, parent = #[[$MMA]], kWidth = 1}>> -> tensor<64x64xf64, #[[$MMA]]>
// CHECK: tt.dot {{.*}} : tensor<8x4xf64, #ttg.dot_op<{opIdx = 0, parent = #[[$FLAT]], kWidth = 1}>> * tensor<4x64xf64, {{.*}}kWidth = 1}>> -> tensor<8x64xf64, #[[$FLAT]]>
// CHECK-LABEL: @double_chain
// CHECK: tt.dot {{.*}}kWidth = 1}>> -> tensor<64x64xf64, #[[$ROWS:.*]]>
// CHECK: tt.dot {{.*}}kWidth = 2}>> -> tensor<64x64xf64, #[[$ROWS]]>
#b = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
tt.func @double(%a: tensor<64x16xf64, #b>, %b: tensor<16x64xf64, #b>, %c: tensor<64x64xf64, #b>, %x: tensor<8x4xf64, #b>, %y: tensor<4x64xf64, #b>, %z: tensor<8x64xf64, #b>) -> (tensor<64x64xf64, #b>, tensor<8x64xf64, #b>) {
  %d = tt.dot %a, %b, %c : tensor<64x16xf64, #b> * tensor<16x64xf64, #b> -> tensor<64x64xf64, #b>
  %e = tt.dot %x, %y, %z : tensor<8x4xf64, #b> * tensor<4x64xf64, #b> -> tensor<8x64xf64, #b>
  tt.return %d, %e : tensor<64x64xf64, #b>, tensor<8x64xf64, #b>
}
tt.func @double_chain(%a: tensor<64x64xf64, #b>, %c: tensor<64x64xf64, #b>) -> tensor<64x64xf64, #b> {
  %d = tt.dot %a, %a, %c : tensor<64x64xf64, #b> * tensor<64x64xf64, #b> -> tensor<64x64xf64, #b>
  %e = tt.dot %d, %a, %c : tensor<64x64xf64, #b> * tensor<64x64xf64, #b> -> tensor<64x64xf64, #b>
  tt.return %e : tensor<64x64xf64, #b>
}
}

// -----

// CHECK-LABEL: @double_ampere
// CHECK: tt.dot {{.*}} : tensor<64x16xf64, #ttg.dot_op<{opIdx = 0, parent = #{{.*}}, kWidth = 2}>>
#b = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
tt.func @double_ampere(%a: tensor<64x16xf64, #b>, %b: tensor<16x64xf64, #b>, %c: tensor<64x64xf64, #b>) -> tensor<64x64xf64, #b> {
  %d = tt.dot %a, %b, %c : tensor<64x16xf64, #b> * tensor<16x64xf64, #b> -> tensor<64x64xf64, #b>
  tt.return %d : tensor<64x64xf64, #b>
}
}

// -----

// No instruction: every thread multiplies and adds its own 4x4 results.
// CHECK: #[[$ACC:.*]] = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @multiply_add
// CHECK: ttg.local_dot %{{.*}}, %{{.*}}, %{{.*}} : {{.*}} -> tensor<64x64xf32, #[[$ACC]]>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx1030"} {
tt.func @multiply_add(%a: tensor<64x32xf16, #b>, %b: tensor<32x64xf16, #b>, %c: tensor<64x64xf32, #b>) -> tensor<64x64xf32, #b> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf16, #b> * tensor<32x64xf16, #b> -> tensor<64x64xf32, #b>
  tt.return %d : tensor<64x64xf32, #b>
}
}

// -----

// The native CPU: lanes along n, several rows a warp, rows of B as vectors.
// CHECK: #[[$ACC:.*]] = #ttg.blocked<{sizePerThread = [16, 1], threadsPerWarp = [1, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK: #[[$SH:.*]] = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
// CHECK-LABEL: @vectors
// CHECK: ttg.local_dot {{.*}} : !ttg.memdesc<64x32xf32, #[[$SH]], #smem> * !ttg.memdesc<32x64xf32, #[[$SH]], #smem>, {{.*}} -> tensor<64x64xf32, #[[$ACC]]>
#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 8 : i32, ttg.target = "cpu"} {
tt.func @vectors(%a: tensor<64x32xf32, #b>, %b: tensor<32x64xf32, #b>, %c: tensor<64x64xf32, #b>) -> tensor<64x64xf32, #b> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf32, #b> * tensor<32x64xf32, #b> -> tensor<64x64xf32, #b>
  tt.return %d : tensor<64x64xf32, #b>
}
}

// -----

// 32-bit elements are read along k only, or by threads into A's registers: with B along n and a sum that the loop carries,
// (B^T A^T)^T is computed.
// CHECK: #[[$COPIES:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
// CHECK: #[[$MMA:.*]] = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 128, 8]}>
// CHECK-LABEL: @turned
// CHECK: %[[SUM:.*]] = scf.for {{.*}} -> (tensor<256x128xf32,
// CHECK-DAG: %[[A:.*]] = tt.trans %{{.*}} : tensor<128x32xf32, {{.*}} -> tensor<32x128xf32,
// CHECK-DAG: %[[B:.*]] = tt.trans %{{.*}} : tensor<32x256xf32, {{.*}} -> tensor<256x32xf32,
// CHECK: ttng.warp_group_dot {{.*}} : !ttg.memdesc<256x32xf32, {{.*}} * !ttg.memdesc<32x128xf32, {{.*}} -> tensor<256x128xf32, #[[$MMA]]>
// CHECK: tt.trans %[[SUM]] {{.*}} -> tensor<128x256xf32,
// Else the copies turn it: a warp takes 8 neighbours along n in 4 rows, and warps lie along k.
// CHECK-LABEL: @alone
// CHECK: tt.load {{.*}} #[[$COPIES]]>
// CHECK: ttng.warp_group_dot {{.*}} -> tensor<128x256xf32,
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 8 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
tt.func @turned(%p: tensor<128x32x!tt.ptr<f32>, #b>, %q: tensor<32x256x!tt.ptr<f32>, #b>, %c: tensor<128x256xf32, #b>, %n: index) -> tensor<128x256xf32, #b> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<128x256xf32, #b>) {
    %x = tt.load %p : tensor<128x32x!tt.ptr<f32>, #b>
    %y = tt.load %q : tensor<32x256x!tt.ptr<f32>, #b>
    %d = tt.dot %x, %y, %acc, inputPrecision = tf32 : tensor<128x32xf32, #b> * tensor<32x256xf32, #b> -> tensor<128x256xf32, #b>
    scf.yield %d : tensor<128x256xf32, #b>
  }
  tt.return %r : tensor<128x256xf32, #b>
}
tt.func @alone(%p: tensor<128x32x!tt.ptr<f32>, #b>, %q: tensor<32x256x!tt.ptr<f32>, #b>, %c: tensor<128x256xf32, #b>) -> tensor<128x256xf32, #b> {
  %x = tt.load %p : tensor<128x32x!tt.ptr<f32>, #b>
  %y = tt.load %q : tensor<32x256x!tt.ptr<f32>, #b>
  %d = tt.dot %x, %y, %c, inputPrecision = tf32 : tensor<128x32xf32, #b> * tensor<32x256xf32, #b> -> tensor<128x256xf32, #b>
  tt.return %d : tensor<128x256xf32, #b>
}
}
