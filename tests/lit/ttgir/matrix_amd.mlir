// Encodings of AMD's matrix instructions, as Triton 3.6 prints them.
// RUN: tessera-opt %s | FileCheck %s
// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// CHECK-DAG: #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
// CHECK-DAG: #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [16, 16, 4], isTransposed = false, CGALayout = {{\[\[}}0, 0]], tilesPerWarp = [2, 1], elementBitWidth = 64}>
// CHECK-DAG: #ttg.amd_mfma<{version = 4, warpsPerCTA = [1, 2, 2], instrShape = [16, 16, 32], isTransposed = true}>
// CHECK-DAG: #ttg.amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [2, 2]}>
// CHECK-DAG: #ttg.amd_wmma<{version = 2, isTranspose = false, warpsPerCTA = [2, 2], CGALayout = {{\[\[}}0, 0]], tilesPerWarp = [2, 1]}>
// CHECK-DAG: #ttg.amd_wmma<{version = 3, isTranspose = false, warpsPerCTA = [2, 2], instrShape = [16, 16, 32]}>
// CHECK-DAG: #ttg.amd_rotating_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [0, 1]}>
#m0 = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
#m1 = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], tilesPerWarp = [2, 1], elementBitWidth = 64, CGALayout = [[0, 0]], instrShape = [16, 16, 4]}>
#m2 = #ttg.amd_mfma<{version = 4, warpsPerCTA = [1, 2, 2], tilesPerWarp = [1, 1, 1], elementBitWidth = 32, instrShape = [16, 16, 32], isTransposed = true}>
#w0 = #ttg.amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [2, 2], instrShape = [16, 16, 16]}>
#w1 = #ttg.amd_wmma<{version = 2, warpsPerCTA = [2, 2], tilesPerWarp = [2, 1], CGALayout = [[0, 0]]}>
#w2 = #ttg.amd_wmma<{version = 3, isTranspose = false, warpsPerCTA = [2, 2], instrShape = [16, 16, 32]}>
#s = #ttg.amd_rotating_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [0, 1]}>
#smem = #ttg.shared_memory
// CHECK: @every
tt.func @every(%0: tensor<64x64xf32, #m0>, %1: tensor<64x64xf64, #m1>, %2: tensor<2x32x32xf32, #m2>, %3: tensor<64x64xf32, #w0>,
               %4: tensor<64x64xi32, #w1>, %5: tensor<64x64xf32, #w2>, %6: !ttg.memdesc<64x64xf16, #s, #smem>,
               %7: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #m0, kWidth = 8}>>,
               %8: tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #w0, kWidth = 16}>>) {
  // The view of the other order: the same swizzle.
  // CHECK: ttg.memdesc_trans %{{.*}} -> !ttg.memdesc<64x64xf16, #[[T:.*]], #smem>
  %t = ttg.memdesc_trans %6 {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #s, #smem> -> !ttg.memdesc<64x64xf16, #ttg.amd_rotating_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [1, 0]}>, #smem>
  tt.return
}
