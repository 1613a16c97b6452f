// Shape operations rename registers: they leave no instruction.
// RUN: tessera-translate %s --target=cuda:sm_90a --num-warps=1 --emit=ptx | FileCheck %s
// CHECK-NOT: .shared
// CHECK-LABEL: .entry shape(
// CHECK: ld.global.v2.b32 {[[A:%r[0-9]+]], [[B:%r[0-9]+]]}
// CHECK-NOT: shfl
// CHECK-NOT: selp
// CHECK-NOT: mov.b32
// CHECK: sub.{{(rn.)?}}f32 [[D:%r[0-9]+]], [[A]], [[B]];
// CHECK: st.global.v2.b32 [%rd{{[0-9]+}}], {[[D]], [[D]]};
tt.func public @shape(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %px = tt.addptr %xs, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %v = tt.load %px : tensor<64x!tt.ptr<f32>>
  // Neighbours apart, their difference repeated, back in one row.
  %pairs = tt.reshape %v : tensor<64xf32> -> tensor<32x2xf32>
  %a, %b = tt.split %pairs : tensor<32x2xf32> -> tensor<32xf32>
  %d = arith.subf %a, %b : tensor<32xf32>
  %column = tt.expand_dims %d {axis = 1 : i32} : tensor<32xf32> -> tensor<32x1xf32>
  %twice = tt.broadcast %column : tensor<32x1xf32> -> tensor<32x2xf32>
  %flat = tt.reshape %twice : tensor<32x2xf32> -> tensor<64xf32>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %po = tt.addptr %os, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %po, %flat : tensor<64x!tt.ptr<f32>>
  tt.return
}
