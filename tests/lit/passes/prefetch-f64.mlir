// f64: slices as deep as what the target multiplies at once, 16 on sm_90 and 4 else; at least kWidth for each lane.
// RUN: sed 's/CHIP/90/; s/WIDTH/1/' %s | tessera-opt -ttgir-prefetch | FileCheck %s --check-prefix=DEEP
// RUN: sed 's/CHIP/80/; s/WIDTH/2/' %s | tessera-opt -ttgir-prefetch | FileCheck %s --check-prefix=EIGHT
// DEEP-COUNT-2: tt.dot {{.*}} : tensor<64x16xf64, {{.*}} * tensor<16x64xf64
// DEEP-NOT: tt.dot
// EIGHT-COUNT-4: tt.dot {{.*}} : tensor<64x8xf64, {{.*}} * tensor<8x64xf64
// EIGHT-NOT: tt.dot

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = WIDTH}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = WIDTH}>
#sh = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:CHIP"} {
tt.func @double(%as: !ttg.memdesc<64x32xf64, #sh, #smem>, %bs: !ttg.memdesc<32x64xf64, #sh, #smem>, %c: tensor<64x64xf64, #mma>) -> tensor<64x64xf64, #mma> {
  %x = ttg.local_load %as : !ttg.memdesc<64x32xf64, #sh, #smem> -> tensor<64x32xf64, #a>
  %y = ttg.local_load %bs : !ttg.memdesc<32x64xf64, #sh, #smem> -> tensor<32x64xf64, #b>
  %d = tt.dot %x, %y, %c : tensor<64x32xf64, #a> * tensor<32x64xf64, #b> -> tensor<64x64xf64, #mma>
  tt.return %d : tensor<64x64xf64, #mma>
}
}
