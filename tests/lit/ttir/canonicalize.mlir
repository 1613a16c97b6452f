// Folders and canonicalisation patterns of tt.
// RUN: tessera-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: @splat_of_constant
tt.func @splat_of_constant() -> tensor<8xf32> {
  // CHECK: %[[C:.*]] = arith.constant dense<2.000000e+00> : tensor<8xf32>
  // CHECK-NEXT: tt.return %[[C]]
  %c = arith.constant 2.0 : f32
  %0 = tt.splat %c : f32 -> tensor<8xf32>
  tt.return %0 : tensor<8xf32>
}

// CHECK-LABEL: @shapes_of_splat
// CHECK-SAME: %[[P:.*]]: !tt.ptr<f32>
tt.func @shapes_of_splat(%p: !tt.ptr<f32>) -> tensor<8x4x!tt.ptr<f32>> {
  // CHECK-NEXT: %[[S:.*]] = tt.splat %[[P]] : !tt.ptr<f32> -> tensor<8x4x!tt.ptr<f32>>
  // CHECK-NEXT: tt.return %[[S]]
  %0 = tt.splat %p : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<4x!tt.ptr<f32>> -> tensor<1x4x!tt.ptr<f32>>
  %2 = tt.trans %1 {order = array<i32: 1, 0>} : tensor<1x4x!tt.ptr<f32>> -> tensor<4x1x!tt.ptr<f32>>
  %3 = tt.reshape %2 : tensor<4x1x!tt.ptr<f32>> -> tensor<1x4x!tt.ptr<f32>>
  %4 = tt.broadcast %3 : tensor<1x4x!tt.ptr<f32>> -> tensor<8x4x!tt.ptr<f32>>
  tt.return %4 : tensor<8x4x!tt.ptr<f32>>
}

// CHECK-LABEL: @shapes_of_constant
tt.func @shapes_of_constant() -> (tensor<8x4xi32>, tensor<4xi32>) {
  // CHECK-DAG: %[[A:.*]] = arith.constant dense<7> : tensor<8x4xi32>
  // CHECK-DAG: %[[B:.*]] = arith.constant dense<7> : tensor<4xi32>
  // CHECK: tt.return %[[A]], %[[B]]
  %0 = arith.constant dense<7> : tensor<4xi32>
  %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  %2 = tt.broadcast %1 : tensor<1x4xi32> -> tensor<8x4xi32>
  %3 = arith.constant dense<7> : tensor<4x2xi32>
  %l, %r = tt.split %3 : tensor<4x2xi32> -> tensor<4xi32>
  tt.return %2, %r : tensor<8x4xi32>, tensor<4xi32>
}

// CHECK-LABEL: @identities
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>, %[[P:.*]]: tensor<8x!tt.ptr<f32>>, %[[A:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>, %[[S:.*]]: f32
tt.func @identities(%x: tensor<8x4xf32>, %p: tensor<8x!tt.ptr<f32>>, %a: tensor<8xf32>, %b: tensor<8xf32>, %s: f32)
    -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x!tt.ptr<f32>>, tensor<8x!tt.ptr<f32>>, tensor<8xf32>, f32) {
  // CHECK-NEXT: tt.return %[[X]], %[[X]], %[[X]], %[[P]], %[[P]], %[[B]], %[[S]]
  %0 = tt.broadcast %x : tensor<8x4xf32> -> tensor<8x4xf32>
  %1 = tt.trans %x {order = array<i32: 1, 0>} : tensor<8x4xf32> -> tensor<4x8xf32>
  %2 = tt.trans %1 {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  %3 = tt.reshape %x : tensor<8x4xf32> -> tensor<32xf32>
  %4 = tt.reshape %3 : tensor<32xf32> -> tensor<8x4xf32>
  %c0 = arith.constant dense<0> : tensor<8xi32>
  %5 = tt.addptr %p, %c0 : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %6 = tt.ptr_to_int %p : tensor<8x!tt.ptr<f32>> -> tensor<8xi64>
  %7 = tt.int_to_ptr %6 : tensor<8xi64> -> tensor<8x!tt.ptr<f32>>
  %8 = tt.join %a, %b : tensor<8xf32> -> tensor<8x2xf32>
  %9, %10 = tt.split %8 : tensor<8x2xf32> -> tensor<8xf32>
  %11 = tt.splat %s : f32 -> tensor<1x1xf32>
  %12 = tt.unsplat %11 : tensor<1x1xf32>
  tt.return %0, %2, %4, %5, %7, %10, %12 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x!tt.ptr<f32>>, tensor<8x!tt.ptr<f32>>, tensor<8xf32>, f32
}

// CHECK-LABEL: @join_of_split
// CHECK-SAME: %[[X:.*]]: tensor<8x2xf32>
tt.func @join_of_split(%x: tensor<8x2xf32>) -> (tensor<8x2xf32>, tensor<8x2xf32>) {
  // CHECK: %[[L:.*]], %[[R:.*]] = tt.split
  // CHECK-NEXT: %[[J:.*]] = tt.join %[[R]], %[[L]]
  // CHECK-NEXT: tt.return %[[X]], %[[J]]
  %l, %r = tt.split %x : tensor<8x2xf32> -> tensor<8xf32>
  %0 = tt.join %l, %r : tensor<8xf32> -> tensor<8x2xf32>
  %1 = tt.join %r, %l : tensor<8xf32> -> tensor<8x2xf32>
  tt.return %0, %1 : tensor<8x2xf32>, tensor<8x2xf32>
}

// CHECK-LABEL: @composed
// CHECK-SAME: %[[X:.*]]: tensor<2x4x8xf32>, %[[Y:.*]]: tensor<1x1xf32>, %[[I:.*]]: i64
tt.func @composed(%x: tensor<2x4x8xf32>, %y: tensor<1x1xf32>, %i: i64)
    -> (tensor<8x2x4xf32>, tensor<64xf32>, tensor<4x4xf32>, f64) {
  // CHECK-DAG: %[[T:.*]] = tt.trans %[[X]] {order = array<i32: 2, 0, 1>} : tensor<2x4x8xf32> -> tensor<8x2x4xf32>
  %0 = tt.trans %x {order = array<i32: 1, 2, 0>} : tensor<2x4x8xf32> -> tensor<4x8x2xf32>
  %1 = tt.trans %0 {order = array<i32: 1, 2, 0>} : tensor<4x8x2xf32> -> tensor<8x2x4xf32>
  // CHECK-DAG: %[[R:.*]] = tt.reshape %[[X]] allow_reorder : tensor<2x4x8xf32> -> tensor<64xf32>
  %2 = tt.reshape %x allow_reorder : tensor<2x4x8xf32> -> tensor<8x8xf32>
  %3 = tt.reshape %2 : tensor<8x8xf32> -> tensor<64xf32>
  // CHECK-DAG: %[[B:.*]] = tt.broadcast %[[Y]] : tensor<1x1xf32> -> tensor<4x4xf32>
  %4 = tt.broadcast %y : tensor<1x1xf32> -> tensor<4x1xf32>
  %5 = tt.broadcast %4 : tensor<4x1xf32> -> tensor<4x4xf32>
  // CHECK-DAG: %[[C:.*]] = tt.bitcast %[[I]] : i64 -> f64
  %6 = tt.bitcast %i : i64 -> i64
  %7 = tt.bitcast %6 : i64 -> f64
  // CHECK: tt.return %[[T]], %[[R]], %[[B]], %[[C]]
  tt.return %1, %3, %5, %7 : tensor<8x2x4xf32>, tensor<64xf32>, tensor<4x4xf32>, f64
}

// CHECK-LABEL: @constants
tt.func @constants() -> (tensor<1xi32>, i32, i32) {
  // CHECK-DAG: %[[R:.*]] = arith.constant dense<5> : tensor<1xi32>
  // CHECK-DAG: %[[H:.*]] = arith.constant 1 : i32
  // CHECK-DAG: %[[U:.*]] = arith.constant 9 : i32
  // CHECK: tt.return %[[R]], %[[H]], %[[U]]
  %0 = tt.make_range {end = 6 : i32, start = 5 : i32} : tensor<1xi32>
  %big = arith.constant 0x80000000 : i32
  %two = arith.constant 2 : i32
  %1 = tt.mulhiui %big, %two : i32
  %one = arith.constant dense<9> : tensor<1x1xi32>
  %2 = tt.unsplat %one : tensor<1x1xi32>
  tt.return %0, %1, %2 : tensor<1xi32>, i32, i32
}

// CHECK-LABEL: @true_masks
// CHECK-SAME: %[[P:.*]]: tensor<8x!tt.ptr<f32>>, %[[O:.*]]: tensor<8xf32>
tt.func @true_masks(%p: tensor<8x!tt.ptr<f32>>, %o: tensor<8xf32>) {
  // CHECK-NEXT: %[[V:.*]] = tt.load %[[P]] cacheModifier = cg : tensor<8x!tt.ptr<f32>>
  // CHECK-NEXT: tt.store %[[P]], %[[V]] : tensor<8x!tt.ptr<f32>>
  // CHECK-NEXT: tt.return
  %true = arith.constant dense<true> : tensor<8xi1>
  %0 = tt.load %p, %true, %o cacheModifier = cg : tensor<8x!tt.ptr<f32>>
  tt.store %p, %0, %true : tensor<8x!tt.ptr<f32>>
  tt.assert %true, "never" : tensor<8xi1>
  tt.return
}

// CHECK-LABEL: @false_masks
// CHECK-SAME: %[[P:.*]]: tensor<8x!tt.ptr<f32>>, %[[O:.*]]: tensor<8xf32>
tt.func @false_masks(%p: tensor<8x!tt.ptr<f32>>, %o: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // A masked-off element is `other`, or 0.
  // CHECK: %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<8xf32>
  // CHECK-NEXT: tt.return %[[O]], %[[Z]]
  %f = arith.constant false
  %false = tt.splat %f : i1 -> tensor<8xi1>
  %0 = tt.load %p, %false, %o : tensor<8x!tt.ptr<f32>>
  %1 = tt.load %p, %false : tensor<8x!tt.ptr<f32>>
  tt.store %p, %o, %false : tensor<8x!tt.ptr<f32>>
  tt.return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: @effects
tt.func @effects(%p: !tt.ptr<f32>, %x: f32, %c: i1) {
  // Unused plain loads and pure calls go, volatile loads and what writes stay.
  // CHECK-NEXT: tt.load %{{.*}} {isVolatile = true}
  // CHECK-NEXT: tt.assert
  // CHECK-NEXT: tt.print
  // CHECK-NEXT: tt.extern_elementwise %{{.*}} {{.*}}pure = false
  // CHECK-NEXT: tt.return
  %0 = tt.load %p : !tt.ptr<f32>
  %1 = tt.load %p {isVolatile = true} : !tt.ptr<f32>
  tt.assert %c, "holds" : i1
  tt.print "x" {hex = false, isSigned = array<i32: 0>} : %x : f32
  %2 = tt.extern_elementwise %x {libname = "", libpath = "", pure = false, symbol = "f"} : (f32) -> f32
  %3 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "f"} : (f32) -> f32
  tt.return
}

// Constants stay inside the combining region, which becomes scalar code.
// CHECK-LABEL: @constant_in_reduce
tt.func @constant_in_reduce(%x: tensor<8xi32>) -> i32 {
  // CHECK: "tt.reduce"
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: arith.constant 3
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.constant 3 : i32
    %d = arith.andi %a, %c : i32
    %e = arith.addi %d, %b : i32
    tt.reduce.return %e : i32
  }) : (tensor<8xi32>) -> i32
  tt.return %0 : i32
}

// CHECK-LABEL: @small_floats
tt.func @small_floats() -> (f8E4M3FN, f8E5M2, tensor<8xf8E4M3FN>, f8E4M3FN, f8E5M2, f16, f8E4M3FN) {
  // Rounding to nearest even or toward zero; beyond the largest value that value, also for infinities; NaN stays.
  // CHECK-DAG: %[[A:.*]] = arith.constant 1.125000e+00 : f8E4M3FN
  // CHECK-DAG: %[[B:.*]] = arith.constant 1.000000e+00 : f8E5M2
  // CHECK-DAG: %[[C:.*]] = arith.constant dense<4.480000e+02> : tensor<8xf8E4M3FN>
  // CHECK-DAG: %[[D:.*]] = arith.constant -4.480000e+02 : f8E4M3FN
  // CHECK-DAG: %[[E:.*]] = arith.constant 5.734400e+04 : f8E5M2
  // CHECK-DAG: %[[F:.*]] = arith.constant 5.734400e+04 : f16
  // CHECK-DAG: %[[G:.*]] = arith.constant 0x7F : f8E4M3FN
  // CHECK: tt.return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]], %[[F]], %[[G]]
  %a = arith.constant 1.15 : f32
  %0 = tt.fp_to_fp %a, rounding = rtne : f32 -> f8E4M3FN
  %b = arith.constant 1.24 : f32
  %1 = tt.fp_to_fp %b, rounding = rtz : f32 -> f8E5M2
  %c = arith.constant dense<1.0e6> : tensor<8xf32>
  %2 = tt.fp_to_fp %c, rounding = rtne : tensor<8xf32> -> tensor<8xf8E4M3FN>
  %d = arith.constant 0xFC00 : f16
  %3 = tt.fp_to_fp %d, rounding = rtne : f16 -> f8E4M3FN
  %e = arith.constant 60000.0 : f16
  %4 = tt.fp_to_fp %e, rounding = rtz : f16 -> f8E5M2
  %5 = tt.fp_to_fp %4 : f8E5M2 -> f16
  %g = arith.constant 0x7FC00000 : f32
  %6 = tt.fp_to_fp %g, rounding = rtne : f32 -> f8E4M3FN
  tt.return %0, %1, %2, %3, %4, %5, %6 : f8E4M3FN, f8E5M2, tensor<8xf8E4M3FN>, f8E4M3FN, f8E5M2, f16, f8E4M3FN
}

// CHECK-LABEL: @without_minus_zero
tt.func @without_minus_zero() -> (f8E4M3FNUZ, f8E5M2FNUZ, f8E4M3FNUZ, f8E5M2FNUZ, f8E4M3FNUZ) {
  // What is too large is the largest number, too; what is too small is zero without a sign, and NaN has one code.
  // CHECK-DAG: %[[A:.*]] = arith.constant -2.400000e+02 : f8E4M3FNUZ
  // CHECK-DAG: %[[B:.*]] = arith.constant 5.734400e+04 : f8E5M2FNUZ
  // CHECK-DAG: %[[C:.*]] = arith.constant 0.000000e+00 : f8E4M3FNUZ
  // CHECK-DAG: %[[D:.*]] = arith.constant 0x80 : f8E5M2FNUZ
  // CHECK-DAG: %[[E:.*]] = arith.constant 2.400000e+02 : f8E4M3FNUZ
  // CHECK: tt.return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]]
  %a = arith.constant -1.0e6 : f32
  %0 = tt.fp_to_fp %a, rounding = rtne : f32 -> f8E4M3FNUZ
  %b = arith.constant 0x7F800000 : f32
  %1 = tt.fp_to_fp %b, rounding = rtne : f32 -> f8E5M2FNUZ
  %c = arith.constant -1.0e-6 : f32
  %2 = tt.fp_to_fp %c, rounding = rtne : f32 -> f8E4M3FNUZ
  %d = arith.constant 0x7FC00000 : f32
  %3 = tt.fp_to_fp %d, rounding = rtne : f32 -> f8E5M2FNUZ
  %e = arith.constant 247.0 : f32
  %4 = tt.fp_to_fp %e, rounding = rtne : f32 -> f8E4M3FNUZ
  tt.return %0, %1, %2, %3, %4 : f8E4M3FNUZ, f8E5M2FNUZ, f8E4M3FNUZ, f8E5M2FNUZ, f8E4M3FNUZ
}
