// RUN: tessera-opt %s -split-input-file -verify-diagnostics -ttir-loop-unroll | FileCheck %s
// RUN: tessera-opt %s -split-input-file -verify-diagnostics -ttir-pipeline | FileCheck %s --check-prefix=PIPE

// CHECK-LABEL: @unroll
// CHECK: scf.for
// CHECK-COUNT-4: tt.store
// CHECK-NOT: tt.loop_unroll_factor
// The rest of the trips:
// CHECK: scf.for
// CHECK: tt.store
tt.func public @unroll(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %q = tt.addptr %p, %i : !tt.ptr<i32>, i32
    tt.store %q, %i : !tt.ptr<i32>
  } {tt.loop_unroll_factor = 4 : i32}
  tt.return
}

// -----

tt.func public @bad_factor(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @+1 {{'tt.loop_unroll_factor' must be an integer of at least 1}}
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %p, %i : !tt.ptr<i32>
  } {tt.loop_unroll_factor = 0 : i32}
  tt.return
}

// -----

tt.func public @factor_too_large(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @+1 {{unrolling 1048577 times makes 65536 operations or more of a body of 2: choose a smaller factor}}
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %p, %i : !tt.ptr<i32>
  } {tt.loop_unroll_factor = 1048577 : i32}
  tt.return
}

// -----

// A carried value that the body does not read: the loop's result is the quotient after one trip and %d after none, so the
// loop must not go.
// PIPE-LABEL: @zero_trips
// PIPE: %[[Q:.*]] = arith.divf
// PIPE: scf.for {{.*}} iter_args(%{{.*}} = %[[D:.*]]) -> (tensor<64xf32>)
tt.func public @zero_trips(%p: !tt.ptr<f32>, %n: i32, %num: f32, %den: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %ps, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %d = tt.load %q : tensor<64x!tt.ptr<f32>>
  %ns = tt.splat %num : f32 -> tensor<64xf32>
  %out = scf.for %i = %c0 to %n step %c1 iter_args(%o = %d) -> tensor<64xf32> : i32 {
    %x = arith.divf %ns, %d : tensor<64xf32>
    scf.yield %x : tensor<64xf32>
  }
  tt.store %q, %out : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// A load is not hoisted: without a trip it must not touch memory.
// PIPE-LABEL: @load_in_loop
// PIPE: scf.for
// PIPE: tt.load
tt.func public @load_in_loop(%p: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tt.load %p : !tt.ptr<f32>
    %q = tt.addptr %o, %i : !tt.ptr<f32>, i32
    tt.store %q, %x : !tt.ptr<f32>
  }
  tt.return
}
