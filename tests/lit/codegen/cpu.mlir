// The CPU target: a warp is a vector. SSE2 is asked for because every x86-64 host has it.
// RUN: env TESSERA_CPU_ISA=sse2 tessera-translate %s --target=cpu --emit=llir | FileCheck %s
// RUN: env TESSERA_CPU_ISA=sse2 tessera-translate %s --target=cpu --emit=asm | FileCheck %s --check-prefix=ASM
// RUN: env TESSERA_CPU_ISA=sse2 tessera-translate %s --target=cpu --count-traffic --emit=llir | FileCheck %s --check-prefix=COUNT
// RUN: tessera-translate %s --target=cpu:emulate=sm_90a --emit=llir | FileCheck %s --check-prefix=EMULATED

// CHECK-LABEL: define void @f.kernel(ptr {{.*}}%args, ptr {{.*}}%ctx)
// A masked run without hardware for it is one function a module.
// CHECK: [[V:%.*]] = tail call fastcc <4 x float> @tessera.load.4xfloat(ptr %{{.*}}, <4 x i1> [[MASK:%.*]])
// CHECK: [[E:%.*]] = tail call contract <4 x float> @_ZGVbN4v_expf(<4 x float> [[V]])
// CHECK: call fastcc void @tessera.store.4xfloat(ptr %{{.*}}, <4 x i1> [[MASK]], <4 x float> [[E]])
// bf16 is loaded as integers, added as f32, rounded to nearest even.
// CHECK: load <4 x i16>
// CHECK: fadd <4 x float>
// CHECK: add <4 x i32> {{.*}}, splat (i32 32767)
// CHECK: store <4 x i16>
// CHECK: call fastcc <4 x i32> @tessera.sdiv.4xi32(
// CHECK: define internal fastcc <4 x float> @tessera.load.4xfloat(
// CHECK: define internal fastcc <4 x i32> @tessera.sdiv.4xi32(
// CHECK: fdiv <4 x double>
// CHECK-NOT: sdiv <4 x

// ASM: f:
// ASM: # _ZGVbN4v_expf
// ASM: tessera.sdiv.4xi32:

// COUNT: call {{.*}} @llvm.ctpop.i

// Emulated, every access is a call with a constant that describes it: lanes, element, vector, alignment, run, source line.
// EMULATED: @access = private unnamed_addr constant { i32, i32, i32, i32, i32, { ptr, i32, i32 } } { i32 32, i32 4, i32 1, i32 4, i32 0, { ptr, i32, i32 } { ptr @file, i32 {{[1-9][0-9]+}}, i32 {{[0-9]+}} } }
// EMULATED-LABEL: define void @f.kernel(
// EMULATED: call void @tessera_cpu_global_load(ptr %ctx, ptr {{.*}}@access, i64
// EMULATED: call void @tessera_cpu_global_store(
tt.func public @f(%x: !tt.ptr<f32>, %b: !tt.ptr<bf16>, %i: !tt.ptr<i32>, %n: i32) {
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %ns = tt.splat %n : i32 -> tensor<16xi32>
  %mask = arith.cmpi slt, %r, %ns : tensor<16xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %xp = tt.addptr %xs, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %v = tt.load %xp, %mask : tensor<16x!tt.ptr<f32>>
  %e = math.exp %v : tensor<16xf32>
  tt.store %xp, %e, %mask : tensor<16x!tt.ptr<f32>>
  %bs = tt.splat %b : !tt.ptr<bf16> -> tensor<16x!tt.ptr<bf16>>
  %bp = tt.addptr %bs, %r : tensor<16x!tt.ptr<bf16>>, tensor<16xi32>
  %w = tt.load %bp : tensor<16x!tt.ptr<bf16>>
  %s = arith.addf %w, %w : tensor<16xbf16>
  tt.store %bp, %s : tensor<16x!tt.ptr<bf16>>
  %is = tt.splat %i : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
  %ip = tt.addptr %is, %r : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
  %k = tt.load %ip : tensor<16x!tt.ptr<i32>>
  %q = arith.divsi %k, %ns : tensor<16xi32>
  tt.store %ip, %q : tensor<16x!tt.ptr<i32>>
  tt.return
}
