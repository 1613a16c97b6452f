// Helpers are inlined into kernels unless they say noinline.
// RUN: tessera-opt %s -inline -symbol-dce | FileCheck %s

// CHECK-LABEL: @kernel
// CHECK-SAME: %[[X:.*]]: f32
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[X]], %[[X]] : f32
// CHECK-NEXT: %[[R:.*]] = tt.call @kept(%[[M]]) : (f32) -> f32
// CHECK-NEXT: tt.return %[[R]]
tt.func public @kernel(%x: f32) -> f32 {
  %0 = tt.call @inlined(%x) : (f32) -> f32
  %1 = tt.call @kept(%0) : (f32) -> f32
  tt.return %1 : f32
}

// CHECK-NOT: @inlined
tt.func private @inlined(%x: f32) -> f32 {
  %0 = arith.mulf %x, %x : f32
  tt.return %0 : f32
}

// CHECK: tt.func private @kept
tt.func private @kept(%x: f32) -> f32 attributes {noinline = true} {
  %0 = arith.addf %x, %x : f32
  tt.return %0 : f32
}
