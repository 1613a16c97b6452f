// The fast sine of f32 holds up to some magnitude. One test and one branch for all elements of a thread: beyond it they
// go through a function that takes any angle. f16 ends before, f64 and precise f32 have one form only.
// RUN: split-file %s %t
// RUN: tessera-translate %t/sin.mlir --target=cuda:sm_90a --emit=llir | FileCheck %s --check-prefix=LLIR
// RUN: tessera-translate %t/sin.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: tessera-translate %t/sin.mlir --target=cuda:sm_90a --precise-math --emit=ptx | FileCheck %s --check-prefix=ONE
// RUN: tessera-translate %t/half.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=ONE
// RUN: tessera-translate %t/sin.mlir --target=cpu:emulate=sm_90a --emit=llir | FileCheck %s --check-prefix=ONE

// LLIR-LABEL: define {{.*}}void @k(
// LLIR-COUNT-4: fcmp {{.*}}ogt float {{.*}}, 1.056150e+05
// LLIR-NOT:     fcmp
// LLIR:         br i1 %{{.*}}, label %anywhere, label %in.range,{{.*}} !prof
// LLIR:       in.range:
// LLIR-NOT:     call {{.*}}@tessera.math
// LLIR:       anywhere:
// LLIR-COUNT-4: call {{.*}}@[[SLOW:tessera.math.*float]](float
// LLIR:       define internal {{.*}}float @[[SLOW]](

// PTX-LABEL: .visible .entry k(
// PTX-COUNT-4: abs.f32
// PTX:         setp.{{.*}}.f32 {{.*}}0f47CE4780
// PTX-NEXT:    @%p{{.*}} bra
// PTX-NOT:     setp
// PTX-COUNT-4: fma.rn.f32 {{.*}}0fBFC90FDB
// PTX:         call.uni

// ONE-NOT: tessera{{.*}}math

//--- sin.mlir
tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
  %v = tt.load %p : tensor<512x!tt.ptr<f32>>
  %s = math.sin %v : tensor<512xf32>
  tt.store %p, %s : tensor<512x!tt.ptr<f32>>
  tt.return
}
//--- half.mlir
tt.func public @k(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %xs = tt.splat %x : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>>
  %p = tt.addptr %xs, %i : tensor<512x!tt.ptr<f16>>, tensor<512xi32>
  %v = tt.load %p : tensor<512x!tt.ptr<f16>>
  %s = math.cos %v : tensor<512xf16>
  tt.store %p, %s : tensor<512x!tt.ptr<f16>>
  tt.return
}
