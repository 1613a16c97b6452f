// RUN: tessera-opt %s -ttir-combine | FileCheck %s

// A uniform offset is added once, in front of the tile's own.
// CHECK-LABEL: @uniform_base
// CHECK: %[[B:.*]] = tt.addptr %arg0, %arg1 : !tt.ptr<f32>, i32
// CHECK: %[[S:.*]] = tt.splat %[[B]]
// CHECK: %[[A:.*]] = tt.addptr %[[S]], %arg2
// CHECK: tt.load %[[A]]
tt.func @uniform_base(%p: !tt.ptr<f32>, %row: i32, %col: tensor<64xi32>) -> tensor<64xf32> {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %rs = tt.splat %row : i32 -> tensor<64xi32>
  %a = tt.addptr %ps, %rs : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %b = tt.addptr %a, %col : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %v = tt.load %b : tensor<64x!tt.ptr<f32>>
  tt.return %v : tensor<64xf32>
}

// CHECK-LABEL: @chain
// CHECK: %[[C:.*]] = arith.constant 7 : i32
// CHECK: tt.addptr %arg0, %[[C]]
tt.func @chain(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %a = tt.addptr %p, %c3 : !tt.ptr<f32>, i32
  %b = tt.addptr %a, %c4 : !tt.ptr<f32>, i32
  tt.return %b : !tt.ptr<f32>
}

// The sum does not fit i32, though the two steps do.
// CHECK-LABEL: @chain_overflow
// CHECK-COUNT-2: tt.addptr
tt.func @chain_overflow(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  %c = arith.constant 2000000000 : i32
  %a = tt.addptr %p, %c : !tt.ptr<f32>, i32
  %b = tt.addptr %a, %c : !tt.ptr<f32>, i32
  tt.return %b : !tt.ptr<f32>
}

// Sums of offsets that are not known may wrap: they stay apart.
// CHECK-LABEL: @chain_unknown
// CHECK-NOT: arith.addi
// CHECK-COUNT-2: tt.addptr
tt.func @chain_unknown(%p: !tt.ptr<f32>, %i: i32, %j: i32) -> !tt.ptr<f32> {
  %a = tt.addptr %p, %i : !tt.ptr<f32>, i32
  %b = tt.addptr %a, %j : !tt.ptr<f32>, i32
  tt.return %b : !tt.ptr<f32>
}

// CHECK-LABEL: @select_of_load
// CHECK: %[[V:.*]] = tt.load %arg0, %arg1, %arg2
// CHECK-NOT: arith.select
// CHECK: tt.return %[[V]]
tt.func @select_of_load(%p: tensor<64x!tt.ptr<f32>>, %m: tensor<64xi1>, %o: tensor<64xf32>) -> tensor<64xf32> {
  %v = tt.load %p, %m : tensor<64x!tt.ptr<f32>>
  %s = arith.select %m, %v, %o : tensor<64xi1>, tensor<64xf32>
  tt.return %s : tensor<64xf32>
}

// Another mask: both stay.
// CHECK-LABEL: @select_other_mask
// CHECK: arith.select
tt.func @select_other_mask(%p: tensor<64x!tt.ptr<f32>>, %m: tensor<64xi1>, %n: tensor<64xi1>, %o: tensor<64xf32>) -> tensor<64xf32> {
  %v = tt.load %p, %m : tensor<64x!tt.ptr<f32>>
  %s = arith.select %n, %v, %o : tensor<64xi1>, tensor<64xf32>
  tt.return %s : tensor<64xf32>
}

// CHECK-LABEL: @uniform_select
// CHECK: arith.select %arg0, %arg1, %arg2 : tensor<8xf32>
tt.func @uniform_select(%c: i1, %a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %cs = tt.splat %c : i1 -> tensor<8xi1>
  %s = arith.select %cs, %a, %b : tensor<8xi1>, tensor<8xf32>
  tt.return %s : tensor<8xf32>
}

// CHECK-LABEL: @add_zero
// CHECK: tt.return %arg0
tt.func @add_zero(%p: tensor<8x!tt.ptr<f32>>) -> tensor<8x!tt.ptr<f32>> {
  %c = arith.constant dense<0> : tensor<8xi32>
  %q = tt.addptr %p, %c : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  tt.return %q : tensor<8x!tt.ptr<f32>>
}

// CHECK-LABEL: @add_of_dot
tt.func @add_of_dot(%a: tensor<16x16xf16>, %s: tensor<16x16xf32>, %x: tensor<16x16xi8>, %y: tensor<16x16xi32>) -> (tensor<16x16xf32>, tensor<16x16xi32>, tensor<16x16xf32>) {
  // A sum becomes the accumulator, on either side; not where imprecision of the product alone was asked for.
  // CHECK: %[[A:.*]] = tt.dot %arg0, %arg0, %arg1, inputPrecision = tf32 :
  // CHECK: %[[B:.*]] = tt.dot %arg2, %arg2, %arg3 :
  // CHECK: tt.dot {{.*}} {maxNumImpreciseAcc = 32 : i32}
  // CHECK: %[[C:.*]] = arith.addf
  // CHECK: tt.return %[[A]], %[[B]], %[[C]]
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %none = arith.constant dense<0> : tensor<16x16xi32>
  %0 = tt.dot %a, %a, %zero, inputPrecision = tf32 : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %1 = arith.addf %s, %0 : tensor<16x16xf32>
  %2 = tt.dot %x, %x, %none : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xi32>
  %3 = arith.addi %2, %y : tensor<16x16xi32>
  %4 = tt.dot %a, %a, %zero {maxNumImpreciseAcc = 32 : i32} : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %5 = arith.addf %4, %s : tensor<16x16xf32>
  tt.return %1, %3, %5 : tensor<16x16xf32>, tensor<16x16xi32>, tensor<16x16xf32>
}

// The mean is left out where the load put zeros: a select for each mask, not for each element.
// CHECK-LABEL: @masked_difference
// CHECK: %[[V:.*]] = arith.extf
// CHECK: %[[M:.*]] = tt.splat %arg2
// CHECK: %[[S:.*]] = arith.select %arg1, %[[M]], %[[ZERO:.*]] : tensor<64xi1>, tensor<64xf32>
// CHECK: %[[D:.*]] = arith.subf %[[V]], %[[S]]
// CHECK: tt.return %[[D]]
tt.func @masked_difference(%p: tensor<64x!tt.ptr<f16>>, %m: tensor<64xi1>, %mean: f32) -> tensor<64xf32> {
  %zero = arith.constant dense<0.0> : tensor<64xf16>
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %h = tt.load %p, %m, %zero : tensor<64x!tt.ptr<f16>>
  %v = arith.extf %h : tensor<64xf16> to tensor<64xf32>
  %s = tt.splat %mean : f32 -> tensor<64xf32>
  %d = arith.subf %v, %s : tensor<64xf32>
  %r = arith.select %m, %d, %none : tensor<64xi1>, tensor<64xf32>
  tt.return %r : tensor<64xf32>
}

// From the other side, of a broadcast, and without `other`, which means zero.
// CHECK-LABEL: @masked_sum
// CHECK: %[[S:.*]] = arith.select %arg1, %{{.*}}, %{{.*}} : tensor<4x64xi1>
// CHECK: arith.addf %[[S]], %{{.*}}
tt.func @masked_sum(%p: tensor<4x64x!tt.ptr<f32>>, %m: tensor<4x64xi1>, %row: tensor<4x1xf32>) -> tensor<4x64xf32> {
  %none = arith.constant dense<0.0> : tensor<4x64xf32>
  %v = tt.load %p, %m : tensor<4x64x!tt.ptr<f32>>
  %s = tt.broadcast %row : tensor<4x1xf32> -> tensor<4x64xf32>
  %d = arith.addf %s, %v : tensor<4x64xf32>
  %r = arith.select %m, %d, %none : tensor<4x64xi1>, tensor<4x64xf32>
  tt.return %r : tensor<4x64xf32>
}

// What is under the mask is not zero, -0 is not what the sum of zeros gives, and the sum itself is used: all stay.
// CHECK-LABEL: @masked_difference_not
// CHECK: arith.subf
// CHECK: arith.select
// CHECK: arith.subf
// CHECK: arith.select
// CHECK: arith.subf
// CHECK: arith.select
// CHECK: arith.subf
// CHECK: arith.select
tt.func @masked_difference_not(%p: tensor<64x!tt.ptr<f32>>, %m: tensor<64xi1>, %n: tensor<64xi1>, %mean: f32)
    -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %minus = arith.constant dense<-0.0> : tensor<64xf32>
  %s = tt.splat %mean : f32 -> tensor<64xf32>
  %v1 = tt.load %p, %m, %one : tensor<64x!tt.ptr<f32>>
  %d1 = arith.subf %v1, %s : tensor<64xf32>
  %r1 = arith.select %m, %d1, %none : tensor<64xi1>, tensor<64xf32>
  %v2 = tt.load %p, %n : tensor<64x!tt.ptr<f32>>
  %d2 = arith.subf %v2, %s : tensor<64xf32>
  %r2 = arith.select %m, %d2, %none : tensor<64xi1>, tensor<64xf32>
  %v3 = tt.load %p, %m : tensor<64x!tt.ptr<f32>>
  %d3 = arith.subf %v3, %s : tensor<64xf32>
  %r3 = arith.select %m, %d3, %minus : tensor<64xi1>, tensor<64xf32>
  %d4 = arith.subf %s, %v3 : tensor<64xf32>
  %r4 = arith.select %m, %d4, %none : tensor<64xi1>, tensor<64xf32>
  tt.return %r1, %r2, %r3, %r4, %d4 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
