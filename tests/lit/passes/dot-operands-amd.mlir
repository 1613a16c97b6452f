// How operands reach AMD's matrix cores: layouts in LDS, slices along k, stores behind the product.
// RUN: tessera-opt %s -split-input-file -ttgir-optimize-dot-operands | FileCheck %s
// RUN: tessera-opt %s -split-input-file -ttgir-optimize-dot-operands -ttgir-prefetch | FileCheck %s --check-prefix=SLICES

// A lies along k: 16 bytes, eight phases. B comes along n, four rows a lane: it is kept along k.
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#t = #ttg.blocked<{sizePerThread = [4, 8], threadsPerWarp = [8, 8], warpsPerCTA = [2, 2], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>
#bb = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 8}>
// CHECK-DAG: #[[$A:.*]] = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
// CHECK-DAG: #[[$B:.*]] = #ttg.amd_rotating_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>
// CHECK-LABEL: @turned
// CHECK: ttg.local_alloc %{{.*}} -> !ttg.memdesc<128x64xf16, #[[$A]], #smem>
// CHECK: ttg.local_alloc %{{.*}} -> !ttg.memdesc<64x128xf16, #[[$B]], #smem>
// Two instructions deep: what the lanes hold with kWidth elements each.
// SLICES-LABEL: @turned
// SLICES-COUNT-4: tt.dot {{.*}} : tensor<128x16xf16
// SLICES-NOT: tt.dot
// SLICES: tt.return
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
tt.func @turned(%ap: tensor<128x64x!tt.ptr<f16>, #b>, %bp: tensor<64x128x!tt.ptr<f16>, #t>, %c: tensor<128x128xf32, #mma>) -> tensor<128x128xf32, #mma> {
  %x = tt.load %ap : tensor<128x64x!tt.ptr<f16>, #b>
  %xd = ttg.convert_layout %x : tensor<128x64xf16, #b> -> tensor<128x64xf16, #a>
  %y = tt.load %bp : tensor<64x128x!tt.ptr<f16>, #t>
  %yd = ttg.convert_layout %y : tensor<64x128xf16, #t> -> tensor<64x128xf16, #bb>
  %d = tt.dot %xd, %yd, %c : tensor<128x64xf16, #a> * tensor<64x128xf16, #bb> -> tensor<128x128xf32, #mma>
  tt.return %d : tensor<128x128xf32, #mma>
}
}

// -----

// A transposition is a view here too; 8-bit floats are widened behind LDS.
#b = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#bt = #ttg.blocked<{sizePerThread = [16, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [2, 2]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>
#bb = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 16}>
// CHECK-LABEL: @viewed
// CHECK: %[[S:.*]] = ttg.local_alloc %{{.*}} : (tensor<64x64xf8E4M3FN, #{{.*}}>) -> !ttg.memdesc<64x64xf8E4M3FN, #[[E:.*]], #smem>
// CHECK: %[[T:.*]] = ttg.memdesc_trans %[[S]]
// CHECK: %[[L:.*]] = ttg.local_load %[[T]] : {{.*}} -> tensor<64x64xf8E4M3FN, #ttg.dot_op<{opIdx = 1
// CHECK: tt.fp_to_fp %[[L]]
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1100"} {
tt.func @viewed(%xd: tensor<64x64xf16, #a>, %bp: tensor<64x64x!tt.ptr<f8E4M3FN>, #b>, %c: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
  %y = tt.load %bp : tensor<64x64x!tt.ptr<f8E4M3FN>, #b>
  %f = tt.fp_to_fp %y : tensor<64x64xf8E4M3FN, #b> -> tensor<64x64xf16, #b>
  %t = tt.trans %f {order = array<i32: 1, 0>} : tensor<64x64xf16, #b> -> tensor<64x64xf16, #bt>
  %yd = ttg.convert_layout %t : tensor<64x64xf16, #bt> -> tensor<64x64xf16, #bb>
  %d = tt.dot %xd, %yd, %c : tensor<64x64xf16, #a> * tensor<64x64xf16, #bb> -> tensor<64x64xf32, #mma>
  tt.return %d : tensor<64x64xf32, #mma>
}
}

// -----

// A chained product: renamed registers on MFMA and gfx12. On gfx11 a lane of an operand has all of k, so lanes exchange.
#rows = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = true}>
#p = #ttg.dot_op<{opIdx = 0, parent = #rows, kWidth = 4}>
#w2 = #ttg.amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = [4, 1]}>
#p2 = #ttg.dot_op<{opIdx = 0, parent = #w2, kWidth = 8}>
// CHECK-LABEL: @chain
// CHECK-NOT: ttg.local_alloc
// CHECK: ttg.convert_layout
// CHECK-NOT: ttg.local_alloc
// CHECK: tt.return
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
tt.func @chain(%s: tensor<128x64xf16, #rows>) -> tensor<128x64xf16, #p> {
  %d = ttg.convert_layout %s : tensor<128x64xf16, #rows> -> tensor<128x64xf16, #p>
  tt.return %d : tensor<128x64xf16, #p>
}
}

// -----

#w2 = #ttg.amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = [4, 1]}>
#p2 = #ttg.dot_op<{opIdx = 0, parent = #w2, kWidth = 8}>
// CHECK-LABEL: @chain12
// CHECK-NOT: ttg.local_alloc
// CHECK: tt.return
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1201"} {
tt.func @chain12(%s: tensor<64x64xf16, #w2>) -> tensor<64x64xf16, #p2> {
  %d = ttg.convert_layout %s : tensor<64x64xf16, #w2> -> tensor<64x64xf16, #p2>
  tt.return %d : tensor<64x64xf16, #p2>
}
}

// -----

// gfx950: what lies along k is loaded in the order of LDS, phases and all; B along n stays so, in units that transposing
// loads take without conflicts.
#l = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [32, 0], [64, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 8], [4, 16]], warp = [[8, 32], [16, 0]], block = []}>
#r = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [32, 32, 16], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>
#bb = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 8}>
// CHECK-DAG: #[[$A:.*]] = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 8, order = [1, 0]}>
// CHECK-DAG: #[[$B:.*]] = #ttg.swizzled_shared<{vec = 32, perPhase = 1, maxPhase = 4, order = [1, 0]}>
// CHECK-LABEL: @in_order
// CHECK: ttg.local_alloc %{{.*}} -> !ttg.memdesc<128x64xf16, #[[$A]], #smem>
// CHECK: ttg.local_alloc %{{.*}} -> !ttg.memdesc<64x128xf16, #[[$B]], #smem>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx950"} {
tt.func @in_order(%ap: tensor<128x64x!tt.ptr<f16>, #l>, %bp: tensor<64x128x!tt.ptr<f16>, #r>, %c: tensor<128x128xf32, #mma>) -> tensor<128x128xf32, #mma> {
  %x = tt.load %ap : tensor<128x64x!tt.ptr<f16>, #l>
  %xd = ttg.convert_layout %x : tensor<128x64xf16, #l> -> tensor<128x64xf16, #a>
  %y = tt.load %bp : tensor<64x128x!tt.ptr<f16>, #r>
  %yd = ttg.convert_layout %y : tensor<64x128xf16, #r> -> tensor<64x128xf16, #bb>
  %d = tt.dot %xd, %yd, %c : tensor<128x64xf16, #a> * tensor<64x128xf16, #bb> -> tensor<128x128xf32, #mma>
  tt.return %d : tensor<128x128xf32, #mma>
}
}
