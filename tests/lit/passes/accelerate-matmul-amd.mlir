// AMD's matrix instructions: which one, how warps lie, and how operands are loaded.
// RUN: tessera-opt %s -split-input-file -ttgir-accelerate-matmul | FileCheck %s

// f16 on gfx942: 32x32 where the tile allows it; 16 bytes of k a lane.
// CHECK: #[[$MMA:.*]] = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
// CHECK-LABEL: @f16
// CHECK: tt.dot {{.*}} : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #[[$MMA]], kWidth = 8}>> * tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #[[$MMA]], kWidth = 8}>> -> tensor<128x128xf32, #[[$MMA]]>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
tt.func @f16(%a: tensor<128x64xf16, #b>, %b: tensor<64x128xf16, #b>, %c: tensor<128x128xf32, #b>) -> tensor<128x128xf32, #b> {
  %d = tt.dot %a, %b, %c : tensor<128x64xf16, #b> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #b>
  tt.return %d : tensor<128x128xf32, #b>
}
}

// -----

// Sixteen rows: the small instruction, twice as deep. Warps lie along the columns.
// CHECK: #[[$MMA:.*]] = #ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 4], instrShape = [16, 16, 16], isTransposed = true}>
// CHECK-LABEL: @few_rows
// CHECK: kWidth = 8
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
tt.func @few_rows(%a: tensor<16x64xbf16, #b>, %b: tensor<64x128xbf16, #b>, %c: tensor<16x128xf32, #b>) -> tensor<16x128xf32, #b> {
  %d = tt.dot %a, %b, %c : tensor<16x64xbf16, #b> * tensor<64x128xbf16, #b> -> tensor<16x128xf32, #b>
  tt.return %d : tensor<16x128xf32, #b>
}
}

// -----

// f32 is exact unless tf32 is asked for; f64 has accumulators of 64 bits.
// CHECK-DAG: #[[$F32:.*]] = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 2], isTransposed = true}>
// CHECK-DAG: #[[$XF32:.*]] = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 4], isTransposed = true}>
// CHECK-DAG: #[[$F64:.*]] = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [16, 16, 4], isTransposed = true, elementBitWidth = 64}>
// CHECK-LABEL: @wide
// CHECK: tt.dot {{.*}}kWidth = 4}>> -> tensor<64x64xf32, #[[$F32]]>
// CHECK: tt.dot {{.*}}inputPrecision = tf32 {{.*}}kWidth = 4}>> -> tensor<64x64xf32, #[[$XF32]]>
// CHECK: tt.dot {{.*}}kWidth = 2}>> -> tensor<64x64xf64, #[[$F64]]>
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
tt.func @wide(%a: tensor<64x64xf32, #b>, %b: tensor<64x64xf32, #b>, %c: tensor<64x64xf32, #b>, %e: tensor<64x64xf64, #b>) -> (tensor<64x64xf32, #b>, tensor<64x64xf32, #b>, tensor<64x64xf64, #b>) {
  %d = tt.dot %a, %b, %c : tensor<64x64xf32, #b> * tensor<64x64xf32, #b> -> tensor<64x64xf32, #b>
  %x = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<64x64xf32, #b> * tensor<64x64xf32, #b> -> tensor<64x64xf32, #b>
  %y = tt.dot %e, %e, %e : tensor<64x64xf64, #b> * tensor<64x64xf64, #b> -> tensor<64x64xf64, #b>
  tt.return %d, %x, %y : tensor<64x64xf32, #b>, tensor<64x64xf32, #b>, tensor<64x64xf64, #b>
}
}

// -----

// gfx950: twice as deep where k allows it, and 8-bit floats; the deepest form from 64 elements of k on.
// CHECK-DAG: #[[$F16:.*]] = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [32, 32, 16], isTransposed = true}>
// CHECK-DAG: #[[$F8:.*]] = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [32, 32, 64], isTransposed = true}>
// CHECK-DAG: #[[$I8:.*]] = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [32, 32, 32], isTransposed = true}>
// CHECK-LABEL: @deeper
// CHECK: tt.dot {{.*}}kWidth = 8}>> -> tensor<64x64xf32, #[[$F16]]>
// CHECK: tt.dot {{.*}}kWidth = 16}>> -> tensor<64x64xf32, #[[$F8]]>
// CHECK: tt.dot {{.*}}kWidth = 16}>> -> tensor<64x64xi32, #[[$I8]]>
// CHECK: tt.dot {{.*}} : tensor<64x8xf16, {{.*}}kWidth = 4}>>
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx950"} {
tt.func @deeper(%a: tensor<64x64xf16, #b>, %f: tensor<64x64xf8E4M3FN, #b>, %g: tensor<64x64xf8E5M2, #b>, %i: tensor<64x64xi8, #b>, %c: tensor<64x64xf32, #b>, %j: tensor<64x64xi32, #b>, %s: tensor<64x8xf16, #b>, %t: tensor<8x64xf16, #b>)
    -> (tensor<64x64xf32, #b>, tensor<64x64xf32, #b>, tensor<64x64xi32, #b>, tensor<64x64xf32, #b>) {
  %d = tt.dot %a, %a, %c : tensor<64x64xf16, #b> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #b>
  %x = tt.dot %f, %g, %c : tensor<64x64xf8E4M3FN, #b> * tensor<64x64xf8E5M2, #b> -> tensor<64x64xf32, #b>
  %y = tt.dot %i, %i, %j : tensor<64x64xi8, #b> * tensor<64x64xi8, #b> -> tensor<64x64xi32, #b>
  %z = tt.dot %s, %t, %c : tensor<64x8xf16, #b> * tensor<8x64xf16, #b> -> tensor<64x64xf32, #b>
  tt.return %d, %x, %y, %z : tensor<64x64xf32, #b>, tensor<64x64xf32, #b>, tensor<64x64xi32, #b>, tensor<64x64xf32, #b>
}
}

// -----

// gfx1100: one instruction; a lane holds all of its k. f32 has none.
// CHECK: #[[$MMA:.*]] = #ttg.amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [2, 2]}>
// CHECK-LABEL: @gfx11
// CHECK: tt.dot {{.*}}kWidth = 16}>> -> tensor<64x64xf32, #[[$MMA]]>
// CHECK: tt.dot {{.*}}kWidth = 16}>> -> tensor<64x64xi32, #[[$MMA]]>
// CHECK: ttg.local_dot
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1100"} {
tt.func @gfx11(%a: tensor<64x64xf16, #b>, %i: tensor<64x64xi8, #b>, %c: tensor<64x64xf32, #b>, %j: tensor<64x64xi32, #b>) -> (tensor<64x64xf32, #b>, tensor<64x64xi32, #b>, tensor<64x64xf32, #b>) {
  %d = tt.dot %a, %a, %c : tensor<64x64xf16, #b> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #b>
  %y = tt.dot %i, %i, %j : tensor<64x64xi8, #b> * tensor<64x64xi8, #b> -> tensor<64x64xi32, #b>
  %z = tt.dot %c, %c, %c : tensor<64x64xf32, #b> * tensor<64x64xf32, #b> -> tensor<64x64xf32, #b>
  tt.return %d, %y, %z : tensor<64x64xf32, #b>, tensor<64x64xi32, #b>, tensor<64x64xf32, #b>
}
}

// -----

// gfx1201: lanes share k; 8-bit floats as they are.
// CHECK: #[[$MMA:.*]] = #ttg.amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = [2, 2]}>
// CHECK-LABEL: @gfx12
// CHECK: tt.dot {{.*}}kWidth = 8}>> -> tensor<64x64xf32, #[[$MMA]]>
// CHECK: tt.dot {{.*}} : tensor<64x64xf8E4M3FN, {{.*}}kWidth = 16}>> -> tensor<64x64xf32, #[[$MMA]]>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1201"} {
tt.func @gfx12(%a: tensor<64x64xf16, #b>, %i: tensor<64x64xf8E4M3FN, #b>, %c: tensor<64x64xf32, #b>) -> (tensor<64x64xf32, #b>, tensor<64x64xf32, #b>) {
  %d = tt.dot %a, %a, %c : tensor<64x64xf16, #b> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #b>
  %y = tt.dot %i, %i, %c : tensor<64x64xf8E4M3FN, #b> * tensor<64x64xf8E4M3FN, #b> -> tensor<64x64xf32, #b>
  tt.return %d, %y : tensor<64x64xf32, #b>, tensor<64x64xf32, #b>
}
}

// -----

// Chained: both own whole rows, and the second takes what a lane of the first has: four columns.
// CHECK: #[[$MMA:.*]] = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = true}>
// CHECK-LABEL: @chained
// CHECK: tt.dot {{.*}}kWidth = 8}>> -> tensor<128x64xf32, #[[$MMA]]>
// CHECK: tt.dot {{.*}}kWidth = 4}>> -> tensor<128x64xf32, #[[$MMA]]>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
tt.func @chained(%a: tensor<128x64xf16, #b>, %k: tensor<64x64xf16, #b>, %v: tensor<64x64xf16, #b>, %c: tensor<128x64xf32, #b>) -> tensor<128x64xf32, #b> {
  %d = tt.dot %a, %k, %c : tensor<128x64xf16, #b> * tensor<64x64xf16, #b> -> tensor<128x64xf32, #b>
  %p = arith.truncf %d : tensor<128x64xf32, #b> to tensor<128x64xf16, #b>
  %e = tt.dot %p, %v, %c : tensor<128x64xf16, #b> * tensor<64x64xf16, #b> -> tensor<128x64xf32, #b>
  tt.return %e : tensor<128x64xf32, #b>
}
}

// -----

// B is loaded along n: lanes take blocks of 4 along k by 8 along n, so that they can store along k. The result is stored
// as it lies.
// CHECK: #[[$LOAD:.*]] = #ttg.blocked<{sizePerThread = [4, 8], threadsPerWarp = [8, 8], warpsPerCTA = [2, 2], order = [1, 0]}>
// CHECK: #[[$MMA:.*]] = #ttg.amd_mfma
// CHECK-LABEL: @turned
// CHECK: tt.load %{{.*}} : tensor<64x128x!tt.ptr<f16>, #[[$LOAD]]>
// CHECK: tt.store %{{.*}}, %{{.*}} : tensor<128x128x!tt.ptr<f16>, #[[$MMA]]>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
tt.func @turned(%a: tensor<128x64xf16, #b>, %bp: tensor<64x128x!tt.ptr<f16>, #b>, %c: tensor<128x128xf32, #b>, %o: tensor<128x128x!tt.ptr<f16>, #b>) {
  %b = tt.load %bp : tensor<64x128x!tt.ptr<f16>, #b>
  %d = tt.dot %a, %b, %c : tensor<128x64xf16, #b> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #b>
  %h = arith.truncf %d : tensor<128x128xf32, #b> to tensor<128x128xf16, #b>
  tt.store %o, %h : tensor<128x128x!tt.ptr<f16>, #b>
  tt.return
}
}

// -----

// gfx1100: a lane has every second column of its row. Results go through shared memory for wide stores where they take no
// more of it than the operands, else they are stored as they lie.
// CHECK: #[[$B:.*]] = #ttg.blocked
// CHECK: #[[$MMA:.*]] = #ttg.amd_wmma
// CHECK-LABEL: @every_second_column
// CHECK: tt.store %{{.*}}, %{{.*}} : tensor<64x64x!tt.ptr<f16>, #[[$B]]>
// CHECK: tt.store %{{.*}}, %{{.*}} : tensor<64x64x!tt.ptr<f32>, #[[$MMA]]>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1100"} {
tt.func @every_second_column(%a: tensor<64x32xf16, #b>, %b: tensor<32x64xf16, #b>, %c: tensor<64x64xf32, #b>, %o: tensor<64x64x!tt.ptr<f16>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
  %d = tt.dot %a, %b, %c : tensor<64x32xf16, #b> * tensor<32x64xf16, #b> -> tensor<64x64xf32, #b>
  %h = arith.truncf %d : tensor<64x64xf32, #b> to tensor<64x64xf16, #b>
  tt.store %o, %h : tensor<64x64x!tt.ptr<f16>, #b>
  tt.store %q, %d : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}
}

// -----

// gfx1250: twice the depth, and f32.
// CHECK-DAG: #[[$F16:.*]] = #ttg.amd_wmma<{version = 3, isTranspose = true, warpsPerCTA = [2, 2], instrShape = [16, 16, 32]}>
// CHECK-DAG: #[[$F32:.*]] = #ttg.amd_wmma<{version = 3, isTranspose = true, warpsPerCTA = [2, 2], instrShape = [16, 16, 4]}>
// CHECK-DAG: #[[$F8:.*]] = #ttg.amd_wmma<{version = 3, isTranspose = true, warpsPerCTA = [2, 2], instrShape = [16, 16, 64]}>
// CHECK-LABEL: @gfx1250
// CHECK: tt.dot {{.*}}kWidth = 8}>> -> tensor<64x64xf32, #[[$F16]]>
// CHECK: tt.dot {{.*}}kWidth = 4}>> -> tensor<64x64xf32, #[[$F32]]>
// CHECK: tt.dot {{.*}}kWidth = 16}>> -> tensor<64x64xf32, #[[$F8]]>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1250"} {
tt.func @gfx1250(%a: tensor<64x64xf16, #b>, %f: tensor<64x64xf8E4M3FN, #b>, %c: tensor<64x64xf32, #b>) -> (tensor<64x64xf32, #b>, tensor<64x64xf32, #b>, tensor<64x64xf32, #b>) {
  %d = tt.dot %a, %a, %c : tensor<64x64xf16, #b> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #b>
  %e = tt.dot %c, %c, %c : tensor<64x64xf32, #b> * tensor<64x64xf32, #b> -> tensor<64x64xf32, #b>
  %g = tt.dot %f, %f, %c : tensor<64x64xf8E4M3FN, #b> * tensor<64x64xf8E4M3FN, #b> -> tensor<64x64xf32, #b>
  tt.return %d, %e, %g : tensor<64x64xf32, #b>, tensor<64x64xf32, #b>, tensor<64x64xf32, #b>
}
}
