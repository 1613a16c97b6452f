// Float functions, conversions and packed operations on AMD GPUs.
// RUN: split-file %s %t
// RUN: tessera-translate %t/fast.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/fast.mlir --check-prefix=FAST
// RUN: tessera-translate %t/fast.mlir --target=hip:gfx942 --precise-math --emit=amdgcn | FileCheck %t/fast.mlir --check-prefix=PRECISE
// RUN: tessera-translate %t/libm.mlir --target=hip:gfx1100 --emit=llir | FileCheck %t/libm.mlir
// RUN: sed 's/SYMBOL/__ocml_exp_f32/' %t/extern.mlir | tessera-translate - --target=hip:gfx942 --emit=llir | FileCheck %t/extern.mlir --check-prefix=OCML
// RUN: sed 's/SYMBOL/__ocml_native_exp_f32/' %t/extern.mlir | tessera-translate - --target=cuda:sm_80 --emit=ptx | FileCheck %t/extern.mlir --check-prefix=NATIVE
// RUN: sed 's/SYMBOL/__ocml_frexp_f32/' %t/extern.mlir | not tessera-translate - --target=hip:gfx942 2>&1 | FileCheck %t/extern.mlir --check-prefix=UNKNOWN
// RUN: tessera-translate %t/toint.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/toint.mlir
// RUN: tessera-translate %t/remainder.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/remainder.mlir
// RUN: tessera-translate %t/remainder.mlir --target=hip:gfx1250 --emit=amdgcn | FileCheck %t/remainder.mlir
// RUN: tessera-translate %t/packed.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/packed.mlir --check-prefix=PACKED
// RUN: tessera-translate %t/packed.mlir --target=hip:gfx1100 --emit=amdgcn | FileCheck %t/packed.mlir --check-prefix=DUAL
// RUN: tessera-translate %t/maximum.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/maximum.mlir
// RUN: tessera-translate %t/fp8.mlir --target=hip:gfx90a --emit=amdgcn | FileCheck %t/fp8.mlir --check-prefix=SOFT
// RUN: tessera-translate %t/fp8.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/fp8.mlir --check-prefix=FNUZ
// RUN: sed 's/f8E4M3FN/f8E4M3FNUZ/g' %t/fp8.mlir | tessera-translate --target=hip:gfx942 --emit=amdgcn | FileCheck %t/fp8.mlir --check-prefix=OWN
// RUN: sed 's/f8E4M3FN/f8E5M2FNUZ/g' %t/fp8.mlir | tessera-translate --target=hip:gfx942 --emit=amdgcn | FileCheck %t/fp8.mlir --check-prefix=OWN5
// RUN: sed 's/f8E4M3FN/f8E4M3FNUZ/g' %t/fp8.mlir | tessera-translate --target=hip:gfx950 --emit=amdgcn | FileCheck %t/fp8.mlir --check-prefix=SOFT
// RUN: sed 's/f8E4M3FN/f8E5M2FNUZ/g' %t/fp8.mlir | tessera-translate --target=hip:gfx1201 --emit=amdgcn | FileCheck %t/fp8.mlir --check-prefix=SOFT
// RUN: tessera-translate %t/fp8.mlir --target=hip:gfx950 --emit=amdgcn | FileCheck %t/fp8.mlir --check-prefix=GFX950
// RUN: tessera-translate %t/fp8.mlir --target=hip:gfx1201 --emit=amdgcn | FileCheck %t/fp8.mlir --check-prefix=GFX12
// RUN: tessera-translate %t/fp8.mlir --target=hip:gfx1250 --emit=amdgcn | FileCheck %t/fp8.mlir --check-prefix=GFX1250
// RUN: tessera-translate %t/asm.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/asm.mlir
// RUN: tessera-translate %t/assert.mlir --target=hip:gfx942 --enable-asserts --emit=amdgcn | FileCheck %t/assert.mlir

//--- remainder.mlir
// Exact, by library code in the kernel; also of bf16, for which LLVM has nothing.
// CHECK-LABEL: remainder:
// CHECK-COUNT-2: v_cvt_f32_f64
// CHECK: s_endpgm
tt.func public @remainder(%o: !tt.ptr<bf16>, %p: !tt.ptr<f32>, %x: bf16, %y: bf16, %z: f32) {
  %0 = arith.remf %x, %y : bf16
  tt.store %o, %0 : !tt.ptr<bf16>
  %1 = arith.remf %z, %z : f32
  tt.store %p, %1 : !tt.ptr<f32>
  tt.return
}

//--- fast.mlir
// One transcendental instruction each; divisions and roots with a correction of the exponent.
// FAST-LABEL: fast:
// FAST-DAG: v_exp_f32
// FAST-DAG: v_log_f32
// FAST-DAG: v_rsq_f32
// FAST-DAG: v_sqrt_f32
// FAST-DAG: v_rcp_f32
// FAST-NOT: v_div_scale_f32
// FAST: s_endpgm
// PRECISE-LABEL: fast:
// PRECISE: v_div_scale_f32
// PRECISE: v_div_fixup_f32
// PRECISE: s_endpgm
tt.func public @fast(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %v = tt.load %p : tensor<256x!tt.ptr<f32>>
  %a = math.exp %v : tensor<256xf32>
  %b = math.log %v : tensor<256xf32>
  %c = math.sqrt %v : tensor<256xf32>
  %d = math.rsqrt %a : tensor<256xf32>
  %e = arith.divf %a, %b : tensor<256xf32>
  %f = arith.addf %c, %d : tensor<256xf32>
  %g = arith.addf %e, %f : tensor<256xf32>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %q = tt.addptr %ys, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  tt.store %q, %g : tensor<256x!tt.ptr<f32>>
  tt.return
}

//--- libm.mlir
// What the hardware has not comes from libclc, and is linked in.
// CHECK-NOT: declare {{.*}} @_Z
// CHECK: define protected amdgpu_kernel void @libm(
tt.func public @libm(%x: !tt.ptr<f64>) {
  %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %xs = tt.splat %x : !tt.ptr<f64> -> tensor<128x!tt.ptr<f64>>
  %p = tt.addptr %xs, %i : tensor<128x!tt.ptr<f64>>, tensor<128xi32>
  %v = tt.load %p : tensor<128x!tt.ptr<f64>>
  %a = math.erf %v : tensor<128xf64>
  %b = math.powf %a, %v : tensor<128xf64>
  %c = math.sin %b : tensor<128xf64>
  tt.store %p, %c : tensor<128x!tt.ptr<f64>>
  tt.return
}

//--- extern.mlir
// The names of ROCm's library mean their functions on every target.
// OCML-NOT: @__ocml
// OCML: define protected amdgpu_kernel void @extern(
// OCML-NOT: amdgcn.exp2
// OCML: ret void
// NATIVE: ex2.approx.ftz.f32
// UNKNOWN: 'tt.extern_elementwise' op calls '__ocml_frexp_f32', which the math library does not have with these types
tt.func public @extern(%x: !tt.ptr<f32>) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %v = tt.load %p : tensor<256x!tt.ptr<f32>>
  %a = tt.extern_elementwise %v {libname = "", libpath = "", pure = true, symbol = "SYMBOL"} : (tensor<256xf32>) -> tensor<256xf32>
  tt.store %p, %a : tensor<256x!tt.ptr<f32>>
  tt.return
}

//--- toint.mlir
// The conversion saturates as the language says: nothing is compared.
// CHECK-LABEL: toint:
// CHECK: v_cvt_i32_f32
// CHECK-NOT: v_cmp
// CHECK: s_endpgm
tt.func public @toint(%x: !tt.ptr<f32>, %y: !tt.ptr<i32>) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %v = tt.load %p : tensor<256x!tt.ptr<f32>>
  %a = arith.fptosi %v : tensor<256xf32> to tensor<256xi32>
  %ys = tt.splat %y : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
  %q = tt.addptr %ys, %i : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
  tt.store %q, %a : tensor<256x!tt.ptr<i32>>
  tt.return
}

//--- packed.mlir
// Two at a time: f32 where there are instructions for it, f16 everywhere.
// PACKED-LABEL: packed:
// PACKED-DAG: v_pk_fma_f32
// PACKED-DAG: v_pk_mul_f16
// DUAL-LABEL: packed:
// DUAL: v_pk_mul_f16
tt.func public @packed(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %h: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<2048x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<2048x!tt.ptr<f32>>, tensor<2048xi32>
  %v = tt.load %p : tensor<2048x!tt.ptr<f32>>
  %k = arith.constant dense<3.0> : tensor<2048xf32>
  %m = arith.mulf %v, %v : tensor<2048xf32>
  %a = arith.addf %m, %k : tensor<2048xf32>
  tt.store %p, %a : tensor<2048x!tt.ptr<f32>>
  %hs = tt.splat %h : !tt.ptr<f16> -> tensor<2048x!tt.ptr<f16>>
  %q = tt.addptr %hs, %i : tensor<2048x!tt.ptr<f16>>, tensor<2048xi32>
  %w = tt.load %q : tensor<2048x!tt.ptr<f16>>
  %b = arith.mulf %w, %w : tensor<2048xf16>
  tt.store %q, %b : tensor<2048x!tt.ptr<f16>>
  tt.return
}

//--- maximum.mlir
// No instruction makes loaded values quiet before a maximum.
// CHECK-LABEL: maximum:
// CHECK-COUNT-1: v_max_f32
// CHECK-NOT: v_max_f32
// CHECK: s_endpgm
tt.func public @maximum(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %q = tt.addptr %ys, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %v = tt.load %p : tensor<256x!tt.ptr<f32>>
  %w = tt.load %q : tensor<256x!tt.ptr<f32>>
  %m = arith.maxnumf %v, %w : tensor<256xf32>
  tt.store %q, %m : tensor<256x!tt.ptr<f32>>
  tt.return
}

//--- fp8.mlir
// The bits are OCP's everywhere. gfx942 converts to a format whose numbers are half as large for the same bits, and -0 and
// NaN are put right behind it; its other direction and gfx90a have shifts and products.
// SOFT-LABEL: fp8:
// SOFT-NOT: v_cvt_{{(scalef32_)?}}pk
// SOFT: s_endpgm
// FNUZ-LABEL: fp8:
// FNUZ-NOT: v_cvt_pk_f32_fp8
// FNUZ: v_cvt_pk_fp8_f32
// FNUZ: v_cmp_{{[uo]}}_f
// The format of its own in both directions, and nothing to put right.
// OWN-LABEL: fp8:
// OWN: v_cvt_pk_f32_fp8
// OWN: v_cvt_pk_fp8_f32
// OWN-NOT: v_cmp_{{[uo]}}_f
// OWN: s_endpgm
// OWN5-LABEL: fp8:
// OWN5: v_cvt_pk_f32_bf8
// OWN5: v_cvt_pk_bf8_f32
// GFX950-LABEL: fp8:
// GFX950: v_cvt_scalef32_pk_f16_fp8
// GFX950: v_cvt_pk_fp8_f32
// GFX12-LABEL: fp8:
// GFX12: v_cvt_pk_f32_fp8
// GFX12: v_cvt_pk_fp8_f32
// GFX1250-LABEL: fp8:
// GFX1250: v_cvt_pk_f16_fp8
// GFX1250: v_cvt_pk_fp8_f32
tt.func public @fp8(%x: !tt.ptr<f8E4M3FN> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %xs = tt.splat %x : !tt.ptr<f8E4M3FN> -> tensor<1024x!tt.ptr<f8E4M3FN>>
  %p = tt.addptr %xs, %i : tensor<1024x!tt.ptr<f8E4M3FN>>, tensor<1024xi32>
  %v = tt.load %p : tensor<1024x!tt.ptr<f8E4M3FN>>
  %h = tt.fp_to_fp %v : tensor<1024xf8E4M3FN> -> tensor<1024xf16>
  %m = arith.mulf %h, %h : tensor<1024xf16>
  %r = tt.fp_to_fp %m, rounding = rtne : tensor<1024xf16> -> tensor<1024xf8E4M3FN>
  tt.store %p, %r : tensor<1024x!tt.ptr<f8E4M3FN>>
  tt.return
}

//--- asm.mlir
// CHECK-LABEL: asm:
// CHECK: v_bfrev_b32 v{{[0-9]+}}, v{{[0-9]+}}
tt.func public @asm(%x: !tt.ptr<i32>) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
  %p = tt.addptr %xs, %i : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
  %v = tt.load %p : tensor<256x!tt.ptr<i32>>
  %r = tt.elementwise_inline_asm "v_bfrev_b32 $0, $1" {constraints = "=v,v", packed_element = 1 : i32, pure = true} %v : tensor<256xi32> -> tensor<256xi32>
  tt.store %p, %r : tensor<256x!tt.ptr<i32>>
  tt.return
}

//--- assert.mlir
// One scalar branch to a trap.
// CHECK-LABEL: assert:
// CHECK: s_cbranch_{{vcc|scc}}
// CHECK: s_trap 2
tt.func public @assert(%x: !tt.ptr<i32>) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
  %p = tt.addptr %xs, %i : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
  %v = tt.load %p : tensor<256x!tt.ptr<i32>>
  %z = arith.constant dense<0> : tensor<256xi32>
  %c = arith.cmpi sgt, %v, %z : tensor<256xi32>
  tt.assert %c, "positive" : tensor<256xi1>
  tt.store %p, %i : tensor<256x!tt.ptr<i32>>
  tt.return
}
