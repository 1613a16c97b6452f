// What LLVM leaves undefined and the language defines.
// RUN: split-file %s %t
// RUN: tessera-translate %t/integers.mlir --target=cuda:sm_90a --emit=llir | FileCheck %t/integers.mlir
// RUN: tessera-translate %t/casts.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/casts.mlir
// RUN: tessera-translate %t/math.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/math.mlir --check-prefixes=BOTH,FAST
// RUN: tessera-translate %t/math.mlir --target=cuda:sm_90a --precise-math --emit=ptx | FileCheck %t/math.mlir --check-prefixes=BOTH,PRECISE
// RUN: tessera-translate %t/remainder.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/remainder.mlir
// RUN: tessera-translate %t/fusion.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/fusion.mlir --check-prefix=FUSED
// RUN: tessera-translate %t/fusion.mlir --target=cuda:sm_90a --no-fp-fusion --emit=ptx | FileCheck %t/fusion.mlir --check-prefix=APART

//--- integers.mlir
// CHECK-LABEL: define {{.*}}@integers(
// x / 0 is 0, the most negative number over -1 wraps: the division itself never sees these divisors.
// CHECK: [[ZERO:%.*]] = icmp eq i32 [[D:%.*]], 0
// CHECK: [[NEXT:%.*]] = add i32 [[D]], 1
// CHECK: [[SPECIAL:%.*]] = icmp ult i32 [[NEXT]], 2
// CHECK: [[SAFE:%.*]] = select i1 [[SPECIAL]], i32 1, i32 [[D]]
// CHECK: sdiv i32 %{{.*}}, [[SAFE]]
// A constant divisor needs no care.
// CHECK: call void asm
// CHECK-NOT: select
// CHECK: sdiv i32 %{{[^,]*}}, 7
// Long shifts lose all bits.
// CHECK: icmp ult i32 [[S:%.*]], 32
// CHECK: shl i32
// CHECK: select i1
// CHECK: call i32 @llvm.umin.i32(i32 [[S]], i32 31)
// CHECK: ashr i32
tt.func public @integers(%o: !tt.ptr<i32>, %a: i32, %d: i32, %s: i32) {
  %c7 = arith.constant 7 : i32
  %0 = arith.divsi %a, %d : i32
  tt.store %o, %0 : !tt.ptr<i32>
  %1 = arith.divsi %a, %c7 : i32
  tt.store %o, %1 : !tt.ptr<i32>
  %2 = arith.shli %a, %s : i32
  tt.store %o, %2 : !tt.ptr<i32>
  %3 = arith.shrsi %a, %s : i32
  tt.store %o, %3 : !tt.ptr<i32>
  tt.return
}

//--- casts.mlir
// Conversion to 32 bits saturates and takes NaN to 0 by itself, except from f64.
// CHECK-LABEL: .entry casts(
// CHECK: cvt.rzi.s32.f32 [[W:%r[0-9]+]],
// CHECK: st.global.b32 [%rd{{[0-9]+}}], [[W]];
// CHECK: cvt.rzi.u32.f32
// CHECK: min.u32 {{.*}}, 255;
// CHECK: setp.nan.f64
// Two conversions round twice.
// CHECK: cvt.rn.f32.f64
// CHECK: cvt.rn.f16.f32
tt.func public @casts(%o: !tt.ptr<i32>, %p: !tt.ptr<i8>, %x: f32, %y: f64, %h: !tt.ptr<f16>) {
  %0 = arith.fptosi %x : f32 to i32
  tt.store %o, %0 : !tt.ptr<i32>
  %1 = arith.fptoui %x : f32 to i8
  tt.store %p, %1 : !tt.ptr<i8>
  %2 = arith.fptosi %y : f64 to i32
  tt.store %o, %2 : !tt.ptr<i32>
  %3 = arith.truncf %y : f64 to f32
  %4 = arith.truncf %3 : f32 to f16
  tt.store %h, %4 : !tt.ptr<f16>
  tt.return
}

//--- math.mlir
// BOTH-LABEL: .entry math(
// FAST: ex2.approx.ftz.f32
// FAST: div.full.f32
// FAST: sqrt.approx.f32
// PRECISE-NOT: approx
// PRECISE-NOT: div.full
// The operations that ask for precision always get it.
// BOTH: div.rn.f32
// BOTH: sqrt.rn.f32
// Library code is inside the kernel, with divisions of the wanted kind.
// BOTH-NOT: .func
// FAST-NOT: div.rn.f32
// FAST: div.full.f32
// FAST-NOT: div.rn.f32
// PRECISE-NOT: div.full
// PRECISE: div.rn.f32
tt.func public @math(%o: !tt.ptr<f32>, %x: f32, %y: f32) {
  %0 = math.exp %x : f32
  tt.store %o, %0 : !tt.ptr<f32>
  %1 = arith.divf %x, %y : f32
  tt.store %o, %1 : !tt.ptr<f32>
  %2 = math.sqrt %x : f32
  tt.store %o, %2 : !tt.ptr<f32>
  %3 = tt.precise_divf %y, %x : f32
  tt.store %o, %3 : !tt.ptr<f32>
  %4 = tt.precise_sqrt %y : f32
  tt.store %o, %4 : !tt.ptr<f32>
  %5 = math.erf %x : f32
  tt.store %o, %5 : !tt.ptr<f32>
  tt.return
}

//--- remainder.mlir
// Not x - trunc(x / y) * y, which is far off for large quotients.
// CHECK-LABEL: .entry remainder(
// CHECK-NOT: div.{{rn|full}}.f32
// CHECK: cvt.rn.f32.f64
// CHECK: ret;
tt.func public @remainder(%o: !tt.ptr<f32>, %x: f32, %y: f32) {
  %0 = arith.remf %x, %y : f32
  tt.store %o, %0 : !tt.ptr<f32>
  tt.return
}

//--- fusion.mlir
// FUSED: fma.rn.f32
// APART: mul.rn.f32
// APART: add.rn.f32
tt.func public @fusion(%o: !tt.ptr<f32>, %x: f32, %y: f32) {
  %0 = arith.mulf %x, %y : f32
  %1 = arith.addf %0, %y : f32
  tt.store %o, %1 : !tt.ptr<f32>
  tt.return
}
