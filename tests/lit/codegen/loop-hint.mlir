// What the author knows of a loop's variable reaches the loads: aligned runs of four, though the bounds say nothing.
// RUN: tessera-translate %s --target=cuda:sm_90a --emit=ptx | FileCheck %s
// RUN: sed 's/tt.divisibility_arg0/not_a_hint/' %s | tessera-translate - --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=NONE
// CHECK: ld.global.v4.b32
// NONE-NOT: ld.global.v

tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %first: i32, %last: i32, %step: i32) {
  %i = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %sum = scf.for %k = %first to %last step %step iter_args(%acc = %zero) -> (tensor<512xf32>) : i32 {
    %ks = tt.splat %k : i32 -> tensor<512xi32>
    %at = arith.addi %ks, %i : tensor<512xi32>
    %p = tt.addptr %xs, %at : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %v = tt.load %p : tensor<512x!tt.ptr<f32>>
    %next = arith.addf %acc, %v : tensor<512xf32>
    scf.yield %next : tensor<512xf32>
  } {tt.divisibility_arg0 = dense<16> : tensor<1xi32>}
  %q = tt.addptr %ys, %i : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
  tt.store %q, %sum : tensor<512x!tt.ptr<f32>>
  tt.return
}
