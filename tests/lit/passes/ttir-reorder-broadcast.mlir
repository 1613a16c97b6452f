// RUN: tessera-opt %s -ttir-reorder-broadcast | FileCheck %s

// CHECK-LABEL: @splats
// CHECK: %[[C:.*]] = arith.constant 8 : i32
// CHECK: %[[M:.*]] = arith.muli %arg0, %[[C]] : i32
// CHECK: %[[A:.*]] = arith.addi %[[M]], %arg1 : i32
// CHECK: %[[S:.*]] = tt.splat %[[A]] : i32 -> tensor<64xi32>
// CHECK: tt.return %[[S]]
tt.func @splats(%a: i32, %b: i32) -> tensor<64xi32> {
  %c = arith.constant dense<8> : tensor<64xi32>
  %as = tt.splat %a : i32 -> tensor<64xi32>
  %bs = tt.splat %b : i32 -> tensor<64xi32>
  %m = arith.muli %as, %c : tensor<64xi32>
  %s = arith.addi %m, %bs : tensor<64xi32>
  tt.return %s : tensor<64xi32>
}

// Attributes of the op stay.
// CHECK-LABEL: @attributes
// CHECK: arith.cmpi ult, %arg0, %arg1 : i32
// CHECK: arith.addf %arg2, %arg2 fastmath<contract> : f32
tt.func @attributes(%a: i32, %b: i32, %f: f32) -> (tensor<64xi1>, tensor<64xf32>) {
  %as = tt.splat %a : i32 -> tensor<64xi32>
  %bs = tt.splat %b : i32 -> tensor<64xi32>
  %c = arith.cmpi ult, %as, %bs : tensor<64xi32>
  %fs = tt.splat %f : f32 -> tensor<64xf32>
  %g = arith.addf %fs, %fs fastmath<contract> : tensor<64xf32>
  tt.return %c, %g : tensor<64xi1>, tensor<64xf32>
}

// CHECK-LABEL: @broadcasts
// CHECK: %[[S:.*]] = tt.splat %arg2 : i32 -> tensor<64x1xi32>
// CHECK: %[[A:.*]] = arith.muli %arg0, %[[S]] : tensor<64x1xi32>
// CHECK: %[[B:.*]] = arith.addi %[[A]], %arg1 : tensor<64x1xi32>
// CHECK: tt.broadcast %[[B]] : tensor<64x1xi32> -> tensor<64x32xi32>
tt.func @broadcasts(%a: tensor<64x1xi32>, %b: tensor<64x1xi32>, %c: i32) -> tensor<64x32xi32> {
  %as = tt.broadcast %a : tensor<64x1xi32> -> tensor<64x32xi32>
  %bs = tt.broadcast %b : tensor<64x1xi32> -> tensor<64x32xi32>
  %cs = tt.splat %c : i32 -> tensor<64x32xi32>
  %m = arith.muli %as, %cs : tensor<64x32xi32>
  %s = arith.addi %m, %bs : tensor<64x32xi32>
  tt.return %s : tensor<64x32xi32>
}

// A row and a column have no common small shape.
// CHECK-LABEL: @row_and_column
// CHECK: arith.addi %{{.*}}, %{{.*}} : tensor<64x32xi32>
tt.func @row_and_column(%a: tensor<64x1xi32>, %b: tensor<1x32xi32>) -> tensor<64x32xi32> {
  %as = tt.broadcast %a : tensor<64x1xi32> -> tensor<64x32xi32>
  %bs = tt.broadcast %b : tensor<1x32xi32> -> tensor<64x32xi32>
  %s = arith.addi %as, %bs : tensor<64x32xi32>
  tt.return %s : tensor<64x32xi32>
}

// Loads are not moved: they are not pure.
// CHECK-LABEL: @load_stays
// CHECK: tt.load %{{.*}} : tensor<64x!tt.ptr<f32>>
tt.func @load_stays(%p: !tt.ptr<f32>) -> tensor<64xf32> {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %v = tt.load %ps : tensor<64x!tt.ptr<f32>>
  tt.return %v : tensor<64xf32>
}

// CHECK-LABEL: @shape_of_splat
// CHECK: %[[S:.*]] = tt.splat %arg0 : f32 -> tensor<8x16xf32>
// CHECK-NEXT: tt.return %[[S]]
tt.func @shape_of_splat(%x: f32) -> tensor<8x16xf32> {
  %s = tt.splat %x : f32 -> tensor<16xf32>
  %e = tt.expand_dims %s {axis = 0 : i32} : tensor<16xf32> -> tensor<1x16xf32>
  %b = tt.broadcast %e : tensor<1x16xf32> -> tensor<8x16xf32>
  tt.return %b : tensor<8x16xf32>
}
