// Index arithmetic of what follows a loop of matrix products is done behind it, from the thread's id in disguise: merged with
// that of what precedes the loop, its results would take registers in the loop. Other loops have registers enough.
// RUN: split-file %s %t
// RUN: tessera-translate %t/product.mlir --target=hip:gfx942 --num-warps=4 --emit=llir | FileCheck %s --check-prefix=PRODUCT
// RUN: tessera-translate %t/sum.mlir --target=hip:gfx942 --num-warps=4 --emit=llir | FileCheck %s --check-prefix=SUM

// PRODUCT: for.body:
// PRODUCT: @llvm.amdgcn.mfma
// PRODUCT: br i1 %{{.*}}, label %for.body
// PRODUCT: [[ID:%.*]] = call i32 asm "", "=v,0"(i32 %{{.*}})
// PRODUCT: {{and|shl|lshr}}{{.*}} i32 [[ID]]
// PRODUCT: store
// SUM: for.body:
// SUM-NOT: asm

//--- product.mlir
tt.func public @product(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %start = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %pitch_a = arith.constant dense<1024> : tensor<64x1xi32>
  %pitch_b = arith.constant dense<64> : tensor<32x1xi32>
  %pitch_c = arith.constant dense<64> : tensor<64x1xi32>
  %move_a = arith.constant dense<32> : tensor<64x32xi32>
  %move_b = arith.constant dense<2048> : tensor<32x64xi32>
  %r64 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %r32 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %m = tt.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %n64 = tt.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %k_a = tt.expand_dims %r32 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %k_b = tt.expand_dims %r32 {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %row_a = arith.muli %m, %pitch_a : tensor<64x1xi32>
  %row_b = arith.muli %k_b, %pitch_b : tensor<32x1xi32>
  %row_c = arith.muli %m, %pitch_c : tensor<64x1xi32>
  %a0 = tt.broadcast %row_a : tensor<64x1xi32> -> tensor<64x32xi32>
  %a1 = tt.broadcast %k_a : tensor<1x32xi32> -> tensor<64x32xi32>
  %a2 = arith.addi %a0, %a1 : tensor<64x32xi32>
  %b0 = tt.broadcast %row_b : tensor<32x1xi32> -> tensor<32x64xi32>
  %b1 = tt.broadcast %n64 : tensor<1x64xi32> -> tensor<32x64xi32>
  %b2 = arith.addi %b0, %b1 : tensor<32x64xi32>
  %pa = tt.splat %a : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
  %pb = tt.splat %b : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
  %ap = tt.addptr %pa, %a2 : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
  %bp = tt.addptr %pb, %b2 : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
  %sum:3 = scf.for %k = %start to %n step %step iter_args(%acc = %zero, %x = %ap, %y = %bp) -> (tensor<64x64xf32>, tensor<64x32x!tt.ptr<f16>>, tensor<32x64x!tt.ptr<f16>>) : i32 {
    %u = tt.load %x : tensor<64x32x!tt.ptr<f16>>
    %v = tt.load %y : tensor<32x64x!tt.ptr<f16>>
    %d = tt.dot %u, %v, %acc : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    %x1 = tt.addptr %x, %move_a : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    %y1 = tt.addptr %y, %move_b : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
    scf.yield %d, %x1, %y1 : tensor<64x64xf32>, tensor<64x32x!tt.ptr<f16>>, tensor<32x64x!tt.ptr<f16>>
  }
  %c0 = tt.broadcast %row_c : tensor<64x1xi32> -> tensor<64x64xi32>
  %c1 = tt.broadcast %n64 : tensor<1x64xi32> -> tensor<64x64xi32>
  %c2 = arith.addi %c0, %c1 : tensor<64x64xi32>
  %pc = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %cp = tt.addptr %pc, %c2 : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %cp, %sum#0 : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

//--- sum.mlir
tt.func public @sum(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %start = arith.constant 0 : i32
  %step = arith.constant 1024 : i32
  %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %pa = tt.splat %a : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %ap = tt.addptr %pa, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %sum = scf.for %k = %start to %n step %step iter_args(%acc = %zero) -> (tensor<1024xf32>) : i32 {
    %at = tt.splat %k : i32 -> tensor<1024xi32>
    %p = tt.addptr %ap, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %x = tt.load %p : tensor<1024x!tt.ptr<f32>>
    %s = arith.addf %acc, %x : tensor<1024xf32>
    scf.yield %s : tensor<1024xf32>
  }
  tt.store %ap, %sum : tensor<1024x!tt.ptr<f32>>
  tt.return
}
