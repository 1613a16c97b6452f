// Floats to integers, vector by vector: what fits is converted, the ends and NaN are selected. LLVM's own saturating
// conversion would take each lane by itself.
// RUN: env TESSERA_CPU_ISA=sse2 tessera-translate %s --target=cpu --emit=llir | FileCheck %s
// RUN: tessera-translate %s --target=cpu:emulate=sm_90a --emit=llir | FileCheck %s --check-prefix=EMULATED

// CHECK-LABEL: define void @f.kernel(
// CHECK-NOT: .sat.
// CHECK-DAG: fcmp {{.*}} <4 x float> {{.*}}, splat (float 0x41E0000000000000)
// CHECK-DAG: fcmp uno <4 x float>
// CHECK-DAG: fptosi <4 x float> %{{.*}} to <4 x i32>
// CHECK-DAG: fptoui <4 x float> %{{.*}} to <4 x i16>
// CHECK: ret void

// EMULATED-NOT: .sat.
// EMULATED: fptosi <32 x float>
tt.func public @f(%x: !tt.ptr<f32>, %i: !tt.ptr<i32>, %u: !tt.ptr<i16>) {
  %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %xp = tt.addptr %xs, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %v = tt.load %xp : tensor<16x!tt.ptr<f32>>
  %is = tt.splat %i : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
  %ip = tt.addptr %is, %r : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
  %s = arith.fptosi %v : tensor<16xf32> to tensor<16xi32>
  tt.store %ip, %s : tensor<16x!tt.ptr<i32>>
  %us = tt.splat %u : !tt.ptr<i16> -> tensor<16x!tt.ptr<i16>>
  %up = tt.addptr %us, %r : tensor<16x!tt.ptr<i16>>, tensor<16xi32>
  %t = arith.fptoui %v : tensor<16xf32> to tensor<16xi16>
  tt.store %up, %t : tensor<16x!tt.ptr<i16>>
  tt.return
}
