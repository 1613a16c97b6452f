// A long library function, or a division of 64 bits, stays a function where a thread needs it for many elements, and is
// inlined where for few. Wide tiles would compile for seconds otherwise.
// RUN: split-file %s %t
// RUN: tessera-translate %t/gelu.mlir --target=cuda:sm_90a --num-warps=4 --emit=ptx | FileCheck %s --check-prefix=MANY
// RUN: tessera-translate %t/gelu.mlir --target=cuda:sm_90a --num-warps=32 --emit=ptx | FileCheck %s --check-prefix=FEW
// MANY: .func {{.*}}_Z3erff
// MANY-COUNT-64: call.uni (retval0), _Z3erff
// FEW-NOT: call.uni
// FEW: .visible .entry gelu(
// FEW-NOT: call.uni
// RUN: tessera-translate %t/divide.mlir --target=cuda:sm_90a --emit=llir | FileCheck %s --check-prefix=DIVIDE
// RUN: tessera-translate %t/divide.mlir --target=cpu:emulate=sm_90a --emit=llir | FileCheck %s --check-prefix=CPU
// DIVIDE-COUNT-64: call {{.*}}@tessera_sdiv_i64(i64
// DIVIDE: define internal {{.*}}@tessera_sdiv_i64(
// DIVIDE: sdiv i64 %{{.*}}, 7
// CPU: call {{.*}}@tessera.sdiv.32xi64.7(
// CPU: define internal {{.*}}@tessera.sdiv.32xi64.7(
// CPU: sdiv i64 %{{.*}}, 7

// A chain of them becomes one function of one element; what is needed of it outside comes back together.
// RUN: tessera-translate %t/chain.mlir --target=cuda:sm_90a --num-warps=4 --emit=llir | FileCheck %s --check-prefix=CHAIN
// RUN: tessera-translate %t/chain.mlir --target=cuda:sm_90a --num-warps=16 --emit=llir | FileCheck %s --check-prefix=SHORT
// RUN: tessera-translate %t/chain.mlir --target=cpu:emulate=sm_90a --num-warps=4 --emit=llir | FileCheck %s --check-prefix=SHORT
// CHAIN-COUNT-128: call {{.*}}@tessera.chain(float
// CHAIN-NOT: call {{.*}}@tessera.chain
// CHAIN: define internal {{.*}}{ float, float } @tessera.chain(float
// CHAIN-NOT: call {{.*}}_Z
// CHAIN: ret { float, float }
// SHORT-NOT: tessera.chain

//--- gelu.mlir
tt.func public @gelu(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 8192 : i32} : tensor<8192xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<8192x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<8192x!tt.ptr<f32>>, tensor<8192xi32>
  %v = tt.load %p : tensor<8192x!tt.ptr<f32>>
  %e = math.erf %v : tensor<8192xf32>
  tt.store %p, %e : tensor<8192x!tt.ptr<f32>>
  tt.return
}
//--- chain.mlir
tt.func public @chain(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 16384 : i32} : tensor<16384xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16384x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<16384x!tt.ptr<f32>>, tensor<16384xi32>
  %v = tt.load %p : tensor<16384x!tt.ptr<f32>>
  %half = arith.constant dense<0.5> : tensor<16384xf32>
  %t = math.tanh %v : tensor<16384xf32>
  %h = arith.mulf %t, %half : tensor<16384xf32>
  %e = math.erf %h : tensor<16384xf32>
  %w = math.powf %e, %v : tensor<16384xf32>
  %s = arith.addf %w, %t : tensor<16384xf32>
  tt.store %p, %s : tensor<16384x!tt.ptr<f32>>
  tt.return
}
//--- divide.mlir
tt.func public @divide(%x: !tt.ptr<i64> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 8192 : i32} : tensor<8192xi32>
  %xs = tt.splat %x : !tt.ptr<i64> -> tensor<8192x!tt.ptr<i64>>
  %p = tt.addptr %xs, %i : tensor<8192x!tt.ptr<i64>>, tensor<8192xi32>
  %v = tt.load %p : tensor<8192x!tt.ptr<i64>>
  %c = arith.constant dense<7> : tensor<8192xi64>
  %d = arith.constant dense<8> : tensor<8192xi64>
  %q = arith.divsi %v, %c : tensor<8192xi64>
  %r = arith.divsi %q, %d : tensor<8192xi64>
  tt.store %p, %r : tensor<8192x!tt.ptr<i64>>
  tt.return
}
