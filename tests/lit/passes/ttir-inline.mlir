// RUN: tessera-opt %s -split-input-file -verify-diagnostics -ttir-inline | FileCheck %s

// CHECK-NOT: @twice
// CHECK-NOT: @plus_one
// CHECK-LABEL: tt.func public @kernel
// CHECK-SAME: (%[[P:.*]]: !tt.ptr<i32>, %[[N:.*]]: i32)
// CHECK-NOT: tt.call
// CHECK: %[[A:.*]] = arith.addi %[[N]], %{{.*}} : i32
// CHECK: %[[B:.*]] = arith.addi %[[A]], %{{.*}} : i32
// CHECK: tt.store %[[P]], %[[B]]
tt.func private @plus_one(%x: i32) -> i32 {
  %c1 = arith.constant 1 : i32
  %y = arith.addi %x, %c1 : i32
  tt.return %y : i32
}
tt.func private @twice(%x: i32) -> i32 {
  %y = tt.call @plus_one(%x) : (i32) -> i32
  %z = tt.call @plus_one(%y) : (i32) -> i32
  tt.return %z : i32
}
tt.func public @kernel(%p: !tt.ptr<i32>, %n: i32) {
  %r = tt.call @twice(%n) : (i32) -> i32
  tt.store %p, %r : !tt.ptr<i32>
  tt.return
}

// -----

tt.func private @f(%x: i32) -> i32 {
  // expected-error @+1 {{recursive call of 'f'}}
  %y = tt.call @f(%x) : (i32) -> i32
  tt.return %y : i32
}
tt.func public @kernel(%n: i32) {
  %r = tt.call @f(%n) : (i32) -> i32
  tt.return
}

// -----

tt.func private @outside(i32) -> i32
tt.func public @kernel(%n: i32) {
  // expected-error @+1 {{calls 'outside', which has no body here}}
  %r = tt.call @outside(%n) : (i32) -> i32
  tt.return
}
