// A combining region may use values from outside, and may even return one: they are the same in all lanes.
// RUN: tessera-translate %s --target=cpu --emit=llir | FileCheck %s
// RUN: tessera-translate %s --target=cuda:sm_90a --emit=ptx -o %t

// CHECK: define {{.*}}@kernel
tt.func public @kernel(%p: !tt.ptr<i32>, %u: i32) {
  %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %0 = "tt.reduce"(%i) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.andi %a, %u : i32
    %d = arith.addi %c, %b : i32
    tt.reduce.return %d : i32
  }) : (tensor<128xi32>) -> i32
  %1 = "tt.reduce"(%i) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    tt.reduce.return %u : i32
  }) : (tensor<128xi32>) -> i32
  %2 = arith.addi %0, %1 : i32
  tt.store %p, %2 : !tt.ptr<i32>
  tt.return
}
