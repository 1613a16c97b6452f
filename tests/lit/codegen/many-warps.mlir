// A program of 512 threads that needs more than the 128 registers each can have. Left alone, `ptxas` settles for 32 and
// spills three times as much.
// REQUIRES: ptxas
// RUN: tessera-translate %s --target=cuda:sm_90a --num-warps=16 --times -o %t 2>&1 | FileCheck %s
// RUN: tessera-translate %s --target=cuda:sm_90a --num-warps=16 --maxnreg=64 --times -o %t 2>&1 | FileCheck %s --check-prefix=CHOSEN
// CHECK: registers 128,
// CHOSEN: registers 64,
tt.func public @many_warps(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<512x128xf32>
  %rows = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %inner = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %columns = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %width = arith.constant dense<128> : tensor<512x1xi32>
  %wide = arith.constant dense<128> : tensor<16x1xi32>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<512xi32> -> tensor<512x1xi32>
  %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %pitch = tt.splat %n : i32 -> tensor<512x1xi32>
  %from = arith.muli %row, %pitch : tensor<512x1xi32>
  %as = tt.splat %a : !tt.ptr<f32> -> tensor<512x1x!tt.ptr<f32>>
  %ar = tt.addptr %as, %from : tensor<512x1x!tt.ptr<f32>>, tensor<512x1xi32>
  %arow = tt.broadcast %ar : tensor<512x1x!tt.ptr<f32>> -> tensor<512x16x!tt.ptr<f32>>
  %bs = tt.splat %b : !tt.ptr<f32> -> tensor<1x128x!tt.ptr<f32>>
  %br = tt.addptr %bs, %column : tensor<1x128x!tt.ptr<f32>>, tensor<1x128xi32>
  %brow = tt.broadcast %br : tensor<1x128x!tt.ptr<f32>> -> tensor<16x128x!tt.ptr<f32>>
  %sum = scf.for %k = %c0 to %n step %c16 iter_args(%acc = %zero) -> (tensor<512x128xf32>) : i32 {
    %ks = tt.splat %k : i32 -> tensor<16xi32>
    %at = arith.addi %ks, %inner : tensor<16xi32>
    %flat = tt.expand_dims %at {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %ao = tt.broadcast %flat : tensor<1x16xi32> -> tensor<512x16xi32>
    %ap = tt.addptr %arow, %ao : tensor<512x16x!tt.ptr<f32>>, tensor<512x16xi32>
    %x = tt.load %ap : tensor<512x16x!tt.ptr<f32>>
    %up = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %down = arith.muli %up, %wide : tensor<16x1xi32>
    %bo = tt.broadcast %down : tensor<16x1xi32> -> tensor<16x128xi32>
    %bp = tt.addptr %brow, %bo : tensor<16x128x!tt.ptr<f32>>, tensor<16x128xi32>
    %y = tt.load %bp : tensor<16x128x!tt.ptr<f32>>
    %next = tt.dot %x, %y, %acc : tensor<512x16xf32> * tensor<16x128xf32> -> tensor<512x128xf32>
    scf.yield %next : tensor<512x128xf32>
  }
  %to = arith.muli %row, %width : tensor<512x1xi32>
  %cs = tt.splat %c : !tt.ptr<f32> -> tensor<512x1x!tt.ptr<f32>>
  %cr = tt.addptr %cs, %to : tensor<512x1x!tt.ptr<f32>>, tensor<512x1xi32>
  %crow = tt.broadcast %cr : tensor<512x1x!tt.ptr<f32>> -> tensor<512x128x!tt.ptr<f32>>
  %co = tt.broadcast %column : tensor<1x128xi32> -> tensor<512x128xi32>
  %cp = tt.addptr %crow, %co : tensor<512x128x!tt.ptr<f32>>, tensor<512x128xi32>
  tt.store %cp, %sum : tensor<512x128x!tt.ptr<f32>>
  tt.return
}
