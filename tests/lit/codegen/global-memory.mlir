// Width, predicates and hints of accesses to global memory.
// RUN: split-file %s %t
// RUN: tessera-translate %t/masked.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/masked.mlir
// RUN: tessera-translate %t/full.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/full.mlir
// RUN: tessera-translate %t/unaligned.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/unaligned.mlir
// RUN: tessera-translate %t/hints.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/hints.mlir
// RUN: tessera-translate %t/copies.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/copies.mlir
// RUN: tessera-translate %t/scalar.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/scalar.mlir

//--- masked.mlir
// One predicate and one 128-bit access for four elements; the second access of a thread is an immediate away.
// CHECK-LABEL: .entry masked(
// CHECK: .reqntid 128
// CHECK-DAG: add.s64 [[FAR:%rd[0-9]+]], [[NEAR:%rd[0-9]+]], 2048;
// CHECK: mov.b32 [[A:%r[0-9]+]], 0; {{.*}} @[[P0:%p[0-9]+]] ld.global.v4.b32 {[[A]], {{.*}}}, [[[NEAR]]];
// CHECK: @[[P1:%p[0-9]+]] ld.global.v4.b32 {{.*}}, [[[FAR]]];
// CHECK-NOT: ld.global
// CHECK: @[[P0]] st.global.v4.b32
// CHECK: @[[P1]] st.global.v4.b32
// CHECK-NOT: st.global
tt.func public @masked(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32},
                       %n: i32 {tt.divisibility = 16 : i32}) {
  %c1024 = arith.constant 1024 : i32
  %pid = tt.get_program_id x : i32
  %first = arith.muli %pid, %c1024 : i32
  %range = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %firsts = tt.splat %first : i32 -> tensor<1024xi32>
  %i = arith.addi %firsts, %range : tensor<1024xi32>
  %ns = tt.splat %n : i32 -> tensor<1024xi32>
  %in = arith.cmpi slt, %i, %ns : tensor<1024xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %px = tt.addptr %xs, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %v = tt.load %px, %in : tensor<1024x!tt.ptr<f32>>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %po = tt.addptr %os, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %po, %v, %in : tensor<1024x!tt.ptr<f32>>
  tt.return
}

//--- full.mlir
// Without a mask there is no predicate and no assembly; eight halves are 128 bits.
// CHECK-LABEL: .entry full(
// CHECK-NOT: begin inline asm
// CHECK: ld.global.v4.b32 {{.*}}, [[[X:%rd[0-9]+]]];
// CHECK: ld.global.v4.b32 {{.*}}, [[[X]]+2048];
// CHECK: st.global.v4.b32 [[[O:%rd[0-9]+]]],
// CHECK: st.global.v4.b32 [[[O]]+2048],
// CHECK-NOT: begin inline asm
tt.func public @full(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32>
  %xs = tt.splat %x : !tt.ptr<f16> -> tensor<2048x!tt.ptr<f16>>
  %px = tt.addptr %xs, %i : tensor<2048x!tt.ptr<f16>>, tensor<2048xi32>
  %v = tt.load %px : tensor<2048x!tt.ptr<f16>>
  %os = tt.splat %o : !tt.ptr<f16> -> tensor<2048x!tt.ptr<f16>>
  %po = tt.addptr %os, %i : tensor<2048x!tt.ptr<f16>>, tensor<2048xi32>
  tt.store %po, %v : tensor<2048x!tt.ptr<f16>>
  tt.return
}

//--- unaligned.mlir
// Nothing is known of the pointer: elements one by one.
// CHECK-LABEL: .entry unaligned(
// CHECK-NOT: .v
// CHECK-COUNT-2: ld.global.b32
// CHECK-NOT: .v
// CHECK-COUNT-2: st.global.b32
// CHECK-NOT: .v
// CHECK: ret
tt.func public @unaligned(%x: !tt.ptr<f32>, %o: !tt.ptr<f32>) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %px = tt.addptr %xs, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %v = tt.load %px : tensor<256x!tt.ptr<f32>>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %po = tt.addptr %os, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  tt.store %po, %v : tensor<256x!tt.ptr<f32>>
  tt.return
}

//--- hints.mlir
// CHECK-LABEL: .entry hints(
// CHECK: ld.global.cg.b32
// CHECK: createpolicy.fractional.L2::evict_last.b64 [[KEEP:%rd[0-9]+]], 1.0;
// CHECK: ld.global.L1::evict_last.L2::cache_hint.b32 {{.*}}, [[KEEP]];
// CHECK: ld.volatile.global.b32
// CHECK: st.global.cs.b32
// CHECK: createpolicy.fractional.L2::evict_first.b64 [[DROP:%rd[0-9]+]], 1.0;
// CHECK: st.global.L1::evict_first.L2::cache_hint.b32 {{.*}}, [[DROP]];
tt.func public @hints(%x: !tt.ptr<f32>, %o: !tt.ptr<f32>) {
  %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %px = tt.addptr %xs, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %a = tt.load %px cacheModifier = cg : tensor<128x!tt.ptr<f32>>
  %b = tt.load %px evictionPolicy = evict_last : tensor<128x!tt.ptr<f32>>
  %c = tt.load %px {isVolatile = true} : tensor<128x!tt.ptr<f32>>
  %ab = arith.addf %a, %b : tensor<128xf32>
  %abc = arith.addf %ab, %c : tensor<128xf32>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %po = tt.addptr %os, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  tt.store %po, %abc cacheModifier = cs : tensor<128x!tt.ptr<f32>>
  tt.store %po, %ab evictionPolicy = evict_first : tensor<128x!tt.ptr<f32>>
  tt.return
}

//--- copies.mlir
// 32 elements on 128 threads: three warps hold copies and do not store.
// CHECK-LABEL: .entry copies(
// CHECK: setp.lt.u32 [[FIRST:%p[0-9]+]], %r{{[0-9]+}}, 32;
// CHECK: @[[FIRST]] st.global.b32
tt.func public @copies(%x: !tt.ptr<f32>, %o: !tt.ptr<f32>) {
  %i = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %px = tt.addptr %xs, %i : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %v = tt.load %px : tensor<32x!tt.ptr<f32>>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %po = tt.addptr %os, %i : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  tt.store %po, %v : tensor<32x!tt.ptr<f32>>
  tt.return
}

//--- scalar.mlir
// A scalar is stored by one thread.
// CHECK-LABEL: .entry scalar(
// CHECK: ld.global.b32 [[V:%r[0-9]+]]
// CHECK: setp.eq.b32 [[ONE:%p[0-9]+]], %r{{[0-9]+}}, 0;
// CHECK: @[[ONE]] st.global.b32 [%rd{{[0-9]+}}], [[V]];
tt.func public @scalar(%x: !tt.ptr<f32>, %o: !tt.ptr<f32>) {
  %v = tt.load %x : !tt.ptr<f32>
  tt.store %o, %v : !tt.ptr<f32>
  tt.return
}
