// RUN: tessera-opt %s -ttgir-reorder | FileCheck %s

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// Into the branch that uses it.
// CHECK-LABEL: @into_branch
// CHECK: math.exp
// CHECK: scf.if
// CHECK-NEXT: ttg.convert_layout
// CHECK-NEXT: tt.store
tt.func @into_branch(%x: tensor<64x64xf32, #a>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #a>, %c: i1) {
  %v = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  %e = math.exp %x : tensor<64x64xf32, #a>
  tt.store %q, %e : tensor<64x64x!tt.ptr<f32>, #a>
  scf.if %c {
    tt.store %p, %v : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.return
}

// Never into a loop.
// CHECK-LABEL: @not_into_loop
// CHECK: math.exp
// CHECK: ttg.convert_layout
// CHECK-NEXT: scf.for
tt.func @not_into_loop(%x: tensor<64x64xf32, #a>, %p: tensor<64x64x!tt.ptr<f32>, #b>, %q: tensor<64x64x!tt.ptr<f32>, #a>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %v = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  %e = math.exp %x : tensor<64x64xf32, #a>
  tt.store %q, %e : tensor<64x64x!tt.ptr<f32>, #a>
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %p, %v : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.return
}
}
