// Every operation of tt in its textual form; printed and parsed again, through the generic form too.
// RUN: tessera-opt %s | FileCheck %s
// RUN: tessera-opt %s --mlir-print-op-generic | tessera-opt | FileCheck %s

// CHECK-LABEL: tt.func public @grid(
// CHECK-SAME: %{{.*}}: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %{{.*}}: !tt.ptr<f16, 3>, %{{.*}}: !tt.ptr<!tt.ptr<i8>>)
// CHECK-SAME: attributes {noinline = false}
tt.func public @grid(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16, 3>, %c: !tt.ptr<!tt.ptr<i8>>) attributes {noinline = false} {
  // CHECK: tt.get_program_id x : i32
  %0 = tt.get_program_id x : i32
  // CHECK: tt.get_program_id z : i32
  %1 = tt.get_program_id z : i32
  // CHECK: tt.get_num_programs y : i32
  %2 = tt.get_num_programs y : i32
  tt.return
}

// CHECK-LABEL: @casts
tt.func @casts(%p: tensor<16x!tt.ptr<f32>>, %q: !tt.ptr<i32>, %i: tensor<16xi64>, %f: tensor<16xf32>, %h: f16) {
  // CHECK: tt.ptr_to_int %{{.*}} : tensor<16x!tt.ptr<f32>> -> tensor<16xi64>
  %0 = tt.ptr_to_int %p : tensor<16x!tt.ptr<f32>> -> tensor<16xi64>
  // CHECK: tt.int_to_ptr %{{.*}} : tensor<16xi64> -> tensor<16x!tt.ptr<f16>>
  %1 = tt.int_to_ptr %i : tensor<16xi64> -> tensor<16x!tt.ptr<f16>>
  // CHECK: tt.bitcast %{{.*}} : tensor<16xf32> -> tensor<16xi32>
  %2 = tt.bitcast %f : tensor<16xf32> -> tensor<16xi32>
  // CHECK: tt.bitcast %{{.*}} : !tt.ptr<i32> -> !tt.ptr<f32>
  %3 = tt.bitcast %q : !tt.ptr<i32> -> !tt.ptr<f32>
  // CHECK: tt.fp_to_fp %{{.*}}, rounding = rtz : tensor<16xf32> -> tensor<16xf16>
  %4 = tt.fp_to_fp %f, rounding = rtz : tensor<16xf32> -> tensor<16xf16>
  // CHECK: tt.fp_to_fp %{{.*}}, rounding = rtne : tensor<16xf32> -> tensor<16xf8E5M2>
  %5 = tt.fp_to_fp %f, rounding = rtne : tensor<16xf32> -> tensor<16xf8E5M2>
  // CHECK: tt.fp_to_fp %{{.*}} : f16 -> f32
  %6 = tt.fp_to_fp %h : f16 -> f32
  tt.return
}

// CHECK-LABEL: @dot
tt.func @dot(%a: tensor<16x32xf32>, %b: tensor<32x16xf32>, %c: tensor<16x16xf32>, %x: tensor<4x16x16xi8>, %y: tensor<4x16x16xi32>) {
  // ieee is not written.
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<16x32xf32> * tensor<32x16xf32> -> tensor<16x16xf32>
  %0 = tt.dot %a, %b, %c, inputPrecision = ieee : tensor<16x32xf32> * tensor<32x16xf32> -> tensor<16x16xf32>
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}}, inputPrecision = tf32 : tensor<16x32xf32> * tensor<32x16xf32> -> tensor<16x16xf32>
  %1 = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x32xf32> * tensor<32x16xf32> -> tensor<16x16xf32>
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}}, inputPrecision = tf32x3 {maxNumImpreciseAcc = 8 : i32} : tensor<16x32xf32>
  %2 = tt.dot %a, %b, %c, inputPrecision = tf32x3 {maxNumImpreciseAcc = 8 : i32} : tensor<16x32xf32> * tensor<32x16xf32> -> tensor<16x16xf32>
  // The batch comes first.
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x16x16xi8> * tensor<4x16x16xi8> -> tensor<4x16x16xi32>
  %3 = tt.dot %x, %x, %y : tensor<4x16x16xi8> * tensor<4x16x16xi8> -> tensor<4x16x16xi32>
  tt.return
}

// CHECK-LABEL: @elementwise
tt.func @elementwise(%x: tensor<8xf32>, %y: f32, %u: tensor<8xi32>) {
  // CHECK: tt.clampf %{{.*}}, %{{.*}}, %{{.*}}, propagateNan = none : tensor<8xf32>
  %0 = tt.clampf %x, %x, %x, propagateNan = none : tensor<8xf32>
  // CHECK: tt.clampf %{{.*}}, %{{.*}}, %{{.*}}, propagateNan = all : f32
  %1 = tt.clampf %y, %y, %y, propagateNan = all : f32
  // CHECK: tt.precise_sqrt %{{.*}} : tensor<8xf32>
  %2 = tt.precise_sqrt %x : tensor<8xf32>
  // CHECK: tt.precise_divf %{{.*}}, %{{.*}} : tensor<8xf32>
  %3 = tt.precise_divf %x, %x : tensor<8xf32>
  // CHECK: tt.mulhiui %{{.*}}, %{{.*}} : tensor<8xi32>
  %4 = tt.mulhiui %u, %u : tensor<8xi32>
  // CHECK: tt.extern_elementwise %{{.*}} {libname = "", libpath = "", pure = true, symbol = "__nv_asinf"} : (tensor<8xf32>) -> tensor<8xf32>
  %5 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_asinf"} : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: tt.elementwise_inline_asm "mul.f32 $0, $1, 2.0;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %{{.*}} : tensor<8xf32> -> tensor<8xf32>
  %6 = tt.elementwise_inline_asm "mul.f32 $0, $1, 2.0;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : tensor<8xf32> -> tensor<8xf32>
  tt.return
}

// CHECK-LABEL: @memory
tt.func @memory(%base: !tt.ptr<f32>, %i: tensor<1024xi32>, %mask: tensor<1024xi1>, %other: tensor<1024xf32>, %bit: i1) {
  // CHECK: tt.addptr %{{.*}}, %{{.*}} : !tt.ptr<f32>, i32
  %c4 = arith.constant 4 : i32
  %s = tt.addptr %base, %c4 : !tt.ptr<f32>, i32
  %0 = tt.splat %base : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  // CHECK: tt.addptr %{{.*}}, %{{.*}} : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %p = tt.addptr %0, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  // CHECK: tt.load %{{[^,]*}} : tensor<1024x!tt.ptr<f32>>
  %1 = tt.load %p : tensor<1024x!tt.ptr<f32>>
  // CHECK: tt.load %{{[^,]*}}, %{{[^,]*}} : tensor<1024x!tt.ptr<f32>>
  %2 = tt.load %p, %mask : tensor<1024x!tt.ptr<f32>>
  // CHECK: tt.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} evictionPolicy = evict_last {isVolatile = true} : tensor<1024x!tt.ptr<f32>>
  %3 = tt.load %p, %mask, %other evictionPolicy = evict_last {isVolatile = true} : tensor<1024x!tt.ptr<f32>>
  // CHECK: tt.load %{{.*}} cacheModifier = cg evictionPolicy = evict_first : !tt.ptr<f32>
  %4 = tt.load %s evictionPolicy = evict_first cacheModifier = cg : !tt.ptr<f32>
  // CHECK: tt.load %{{.*}}, %{{.*}} : !tt.ptr<f32>
  %5 = tt.load %s, %bit : !tt.ptr<f32>
  // CHECK: tt.store %{{[^,]*}}, %{{[^,]*}} : tensor<1024x!tt.ptr<f32>>
  tt.store %p, %1 : tensor<1024x!tt.ptr<f32>>
  // CHECK: tt.store %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} cacheModifier = wt : tensor<1024x!tt.ptr<f32>>
  tt.store %p, %2, %mask cacheModifier = wt : tensor<1024x!tt.ptr<f32>>
  // CHECK: tt.store %{{[^,]*}}, %{{[^,]*}} : !tt.ptr<f32>
  tt.store %s, %4 : !tt.ptr<f32>
  tt.return
}

// CHECK-LABEL: @shapes
tt.func @shapes(%x: tensor<64x32xf32>, %one: tensor<1x1xf32>, %k: tensor<64x32xi32>) {
  // CHECK: tt.make_range {end = 96 : i32, start = 32 : i32} : tensor<64xi32>
  %0 = tt.make_range {end = 96 : i32, start = 32 : i32} : tensor<64xi32>
  // CHECK: tt.expand_dims %{{.*}} {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %1 = tt.expand_dims %0 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  // CHECK: tt.broadcast %{{.*}} : tensor<64x1xi32> -> tensor<64x32xi32>
  %2 = tt.broadcast %1 : tensor<64x1xi32> -> tensor<64x32xi32>
  // CHECK: tt.trans %{{.*}} {order = array<i32: 1, 0>} : tensor<64x32xf32> -> tensor<32x64xf32>
  %3 = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x32xf32> -> tensor<32x64xf32>
  // CHECK: tt.reshape %{{[^ ]*}} : tensor<64x32xf32> -> tensor<64x16x2xf32>
  %4 = tt.reshape %x : tensor<64x32xf32> -> tensor<64x16x2xf32>
  // CHECK: tt.reshape %{{.*}} allow_reorder efficient_layout : tensor<64x32xf32> -> tensor<2048xf32>
  %5 = tt.reshape %x allow_reorder efficient_layout : tensor<64x32xf32> -> tensor<2048xf32>
  // CHECK: %[[L:.*]], %[[R:.*]] = tt.split %{{.*}} : tensor<64x16x2xf32> -> tensor<64x16xf32>
  %l, %r = tt.split %4 : tensor<64x16x2xf32> -> tensor<64x16xf32>
  // CHECK: tt.join %[[L]], %[[R]] : tensor<64x16xf32> -> tensor<64x16x2xf32>
  %6 = tt.join %l, %r : tensor<64x16xf32> -> tensor<64x16x2xf32>
  // CHECK: tt.cat %[[L]], %[[R]] : tensor<64x16xf32> -> tensor<128x16xf32>
  %7 = tt.cat %l, %r : tensor<64x16xf32> -> tensor<128x16xf32>
  // CHECK: tt.gather %{{.*}}[%{{.*}}] {axis = 0 : i32} : (tensor<64x32xf32>, tensor<64x32xi32>) -> tensor<64x32xf32>
  %8 = tt.gather %x[%k] {axis = 0 : i32} : (tensor<64x32xf32>, tensor<64x32xi32>) -> tensor<64x32xf32>
  // CHECK: tt.gather %{{.*}}[%{{.*}}] {axis = 1 : i32, efficient_layout} :
  %9 = tt.gather %x[%k] {axis = 1 : i32, efficient_layout} : (tensor<64x32xf32>, tensor<64x32xi32>) -> tensor<64x32xf32>
  // CHECK: tt.unsplat %{{.*}} : tensor<1x1xf32>
  %10 = tt.unsplat %one : tensor<1x1xf32>
  tt.return
}

// CHECK-LABEL: @reduce
tt.func @reduce(%x: tensor<64x32xf32>, %k: tensor<64x32xi32>, %v: tensor<8xf32>) -> (f32, tensor<64xi32>) {
  // CHECK: "tt.reduce"(%{{.*}}) <{axis = 0 : i32}> ({
  // CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
  // CHECK-NEXT: arith.maxnumf %[[A]], %[[B]] : f32
  // CHECK-NEXT: tt.reduce.return %{{.*}} : f32
  // CHECK-NEXT: }) : (tensor<8xf32>) -> f32
  %0 = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %m = arith.maxnumf %a, %b : f32
    tt.reduce.return %m : f32
  }) : (tensor<8xf32>) -> f32
  // CHECK: }) : (tensor<64x32xf32>, tensor<64x32xi32>) -> (tensor<64xf32>, tensor<64xi32>)
  %1:2 = "tt.reduce"(%x, %k) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
    %g = arith.cmpf ogt, %a, %b : f32
    %m = arith.select %g, %a, %b : f32
    %mi = arith.select %g, %ai, %bi : i32
    tt.reduce.return %m, %mi : f32, i32
  }) : (tensor<64x32xf32>, tensor<64x32xi32>) -> (tensor<64xf32>, tensor<64xi32>)
  tt.return %0, %1#1 : f32, tensor<64xi32>
}

// CHECK-LABEL: @debug
tt.func @debug(%x: tensor<8xf32>, %c: tensor<8xi1>, %n: i32) {
  // CHECK: tt.print " x: " {hex = true, isSigned = array<i32: 0, 1>} : %{{.*}}, %{{.*}} : tensor<8xf32>, i32
  tt.print " x: " {hex = true, isSigned = array<i32: 0, 1>} : %x, %n : tensor<8xf32>, i32
  // CHECK: tt.print " here" {hex = false, isSigned = array<i32>}
  tt.print " here" {hex = false, isSigned = array<i32>}
  // CHECK: tt.assert %{{.*}}, "small" : tensor<8xi1>
  tt.assert %c, "small" : tensor<8xi1>
  tt.return
}

// CHECK-LABEL: tt.func private @helper(f32) -> f32
tt.func private @helper(f32) -> f32

// CHECK-LABEL: @calls
tt.func @calls(%x: f32) -> f32 {
  // CHECK: tt.call @helper(%{{.*}}) : (f32) -> f32
  %0 = tt.call @helper(%x) : (f32) -> f32
  // CHECK: tt.return %{{.*}} : f32
  tt.return %0 : f32
}
