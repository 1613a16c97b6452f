// Every op that changes a shape, ops with two results, assembly, and plain control flow go through both pipelines.
// RUN: tessera-opt %s -ttir-pipeline -ttgir-pipeline | FileCheck %s
// RUN: tessera-opt %s -ttir-pipeline -ttgir-pipeline="num-warps=1 threads-per-warp=8 wide-lanes=true target=cpu" | FileCheck %s
// RUN: tessera-opt %s -ttir-pipeline -ttgir-pipeline="num-warps=16 threads-per-warp=64 target=hip:gfx942" | FileCheck %s

// CHECK-LABEL: @shapes
// CHECK: tt.cat
// CHECK: tt.join
// CHECK: tt.gather
// CHECK-LABEL: @blocks
// CHECK: cf.cond_br
tt.func public @shapes(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32>, %n: i32) {
  %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %q = tt.addptr %ps, %r : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %v = tt.load %q : tensor<256x!tt.ptr<f32>>
  %j = tt.join %v, %v : tensor<256xf32> -> tensor<256x2xf32>
  %a, %b = tt.split %j : tensor<256x2xf32> -> tensor<256xf32>
  %c = tt.cat %a, %b : tensor<256xf32> -> tensor<512xf32>
  %m = tt.reshape %c : tensor<512xf32> -> tensor<16x32xf32>
  %t = tt.trans %m {order = array<i32: 1, 0>} : tensor<16x32xf32> -> tensor<32x16xf32>
  %t2 = tt.reshape %t allow_reorder : tensor<32x16xf32> -> tensor<512xf32>
  %asm = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %t2 : tensor<512xf32> -> tensor<512xf32>
  %j2 = tt.join %asm, %c : tensor<512xf32> -> tensor<512x2xf32>
  %f = tt.reshape %j2 : tensor<512x2xf32> -> tensor<1024xf32>
  %r2 = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %oq = tt.addptr %os, %r2 : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %oq, %f : tensor<1024x!tt.ptr<f32>>
  %rs = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %src = tt.load %q : tensor<256x!tt.ptr<f32>>
  %g = tt.gather %src[%rs] {axis = 0 : i32} : (tensor<256xf32>, tensor<32xi32>) -> tensor<32xf32>
  %arg:2 = "tt.reduce"(%g, %rs) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %i: i32, %y: f32, %k: i32):
    %gt = arith.cmpf ogt, %x, %y : f32
    %s = arith.select %gt, %x, %y : f32
    %u = arith.select %gt, %i, %k : i32
    tt.reduce.return %s, %u : f32, i32
  }) : (tensor<32xf32>, tensor<32xi32>) -> (f32, i32)
  tt.print "x" {hex = false, isSigned = array<i32: 1, 0>} : %arg#1, %g : i32, tensor<32xf32>
  tt.store %o, %arg#0 : !tt.ptr<f32>
  tt.return
}
tt.func public @blocks(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %x = arith.cmpi slt, %n, %c0 : i32
  %z = arith.constant dense<1.0> : tensor<128xf32>
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  cf.cond_br %x, ^bb1(%z : tensor<128xf32>), ^bb2
^bb1(%w: tensor<128xf32>):
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %q = tt.addptr %ps, %r : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  tt.store %q, %w : tensor<128x!tt.ptr<f32>>
  %s = "tt.reduce"(%w) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %gg = arith.addf %a, %b : f32
    tt.reduce.return %gg : f32
  }) : (tensor<128xf32>) -> f32
  %s2 = tt.splat %s : f32 -> tensor<128xf32>
  cf.cond_br %x, ^bb1(%s2 : tensor<128xf32>), ^bb2
^bb2:
  tt.return
}
