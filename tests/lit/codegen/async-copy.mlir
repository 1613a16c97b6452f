// Asynchronous copies: as wide as both sides allow, zeros where masked off, swizzled places, a branch around the predicates.
// RUN: split-file %s %t
// RUN: tessera-translate %t/swizzled.mlir --target=cuda:sm_80 --emit=ptx | FileCheck %t/swizzled.mlir
// RUN: tessera-translate %t/narrow.mlir --target=cuda:sm_80 --emit=ptx | FileCheck %t/narrow.mlir
// RUN: tessera-translate %t/copies.mlir --target=cuda:sm_80 --emit=ptx | FileCheck %t/copies.mlir
// RUN: tessera-translate %t/loop.mlir --target=cuda:sm_90a --emit=ptx -o %t/loop.ptx
// RUN: FileCheck %t/loop.mlir < %t/loop.ptx
// RUN: FileCheck %t/loop.mlir --check-prefix=WHOLE < %t/loop.ptx
// RUN: sed 's/start = 0 : i32, end = 256/start = -256 : i32, end = 0/' %t/loop.mlir | tessera-translate - --target=cuda:sm_90a --emit=ptx | FileCheck %t/loop.mlir --check-prefix=NEGATIVE
// RUN: not tessera-translate %t/byte.mlir --target=cuda:sm_80 2>&1 | FileCheck %t/byte.mlir
// RUN: not tessera-translate %t/other.mlir --target=cuda:sm_80 2>&1 | FileCheck %t/other.mlir

//--- swizzled.mlir
// 32 x 64 halves by one warp: a row is 8 lanes of 16 bytes, a register 4 rows. Rows 4 on are another phase of the swizzle: their
// place is that of the first with a bit flipped; rows 8 on are 1024 bytes further.
// CHECK: .version 7.5
// CHECK: xor.b32 [[FLIPPED:%r[0-9]+]], [[PLACE:%r[0-9]+]], 64;
// CHECK: add.s32 [[A:%r[0-9]+]], {{.*}}[[PLACE]]
// CHECK: cp.async.cg.shared.global.L2::128B {{.}}[[A]] + 0], [%rd{{[0-9]+}} + 0], 16, [[IGNORED:%p[0-9]+]];
// CHECK: add.s32 [[B:%r[0-9]+]], {{.*}}[[FLIPPED]]
// CHECK: cp.async.cg.shared.global.L2::128B {{.}}[[B]] + 512], [%rd{{[0-9]+}} + {{[0-9]+}}], 16, [[IGNORED]];
// CHECK: cp.async.cg.shared.global.L2::128B {{.}}[[A]] + 1024], [%rd{{[0-9]+}} + {{[0-9]+}}], 16, [[IGNORED]];
// CHECK-COUNT-5: cp.async.cg.shared.global.L2::128B
// CHECK-NOT: cp.async.cg
// CHECK: cp.async.commit_group;
// CHECK: cp.async.wait_group 0;
// CHECK: bar.sync 0;
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @swizzled(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %wanted: i1) {
    %column = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %row = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %i = tt.expand_dims %row {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<32x1xi32, #blocked>
    %j = tt.expand_dims %column {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
    %width = arith.constant dense<64> : tensor<32x1xi32, #blocked>
    %start = arith.muli %i, %width : tensor<32x1xi32, #blocked>
    %xs = tt.splat %x : !tt.ptr<f16> -> tensor<32x1x!tt.ptr<f16>, #blocked>
    %rows = tt.addptr %xs, %start : tensor<32x1x!tt.ptr<f16>, #blocked>, tensor<32x1xi32, #blocked>
    %q = tt.broadcast %rows : tensor<32x1x!tt.ptr<f16>, #blocked> -> tensor<32x64x!tt.ptr<f16>, #blocked>
    %k = tt.broadcast %j : tensor<1x64xi32, #blocked> -> tensor<32x64xi32, #blocked>
    %p = tt.addptr %q, %k : tensor<32x64x!tt.ptr<f16>, #blocked>, tensor<32x64xi32, #blocked>
    %mask = tt.splat %wanted : i1 -> tensor<32x64xi1, #blocked>
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
    %t = ttg.async_copy_global_to_local %p, %buffer mask %mask : tensor<32x64x!tt.ptr<f16>, #blocked> -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
    %g = ttg.async_commit_group tokens %t
    %w = ttg.async_wait %g {num = 0 : i32}
    %v = ttg.local_load %buffer token %w : !ttg.memdesc<32x64xf16, #shared, #smem, mutable> -> tensor<32x64xf16, #blocked>
    %os = tt.splat %o : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>, #blocked>
    %op = tt.addptr %os, %k : tensor<32x64x!tt.ptr<f16>, #blocked>, tensor<32x64xi32, #blocked>
    tt.store %op, %v : tensor<32x64x!tt.ptr<f16>, #blocked>
    tt.return
  }
}

//--- narrow.mlir
// The swizzle moves 4 bytes at a time: so does a copy, which then goes through L1.
// CHECK: .version 7.4
// CHECK-COUNT-4: cp.async.ca.shared.global [%r{{[0-9]+}} + {{[0-9]+}}], [%rd{{[0-9]+}} + {{[0-9]+}}], 4;
// CHECK-NOT: cp.async.c{{[ag]}}
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#shared = #ttg.padded_shared<[1:+1] {order = [0], shape = [128]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @narrow(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #blocked>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #blocked>
    %p = tt.addptr %xs, %i : tensor<128x!tt.ptr<f32>, #blocked>, tensor<128xi32, #blocked>
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    %t = ttg.async_copy_global_to_local %p, %buffer : tensor<128x!tt.ptr<f32>, #blocked> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    %g = ttg.async_commit_group tokens %t
    tt.return
  }
}

//--- copies.mlir
// Lanes that hold copies of the first ones copy nothing.
// CHECK: setp.lt.u32 [[FIRST:%p[0-9]+]], %r{{[0-9]+}}, 8;
// CHECK: @[[FIRST]] cp.async.cg.shared.global.L2::128B
// CHECK-NOT: cp.async.cg
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @copies(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #blocked>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>, #blocked>
    %p = tt.addptr %xs, %i : tensor<32x!tt.ptr<f32>, #blocked>, tensor<32xi32, #blocked>
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #shared, #smem, mutable>
    %t = ttg.async_copy_global_to_local %p, %buffer : tensor<32x!tt.ptr<f32>, #blocked> -> !ttg.memdesc<32xf32, #shared, #smem, mutable>
    %g = ttg.async_commit_group tokens %t
    tt.return
  }
}

//--- loop.mlir
// 16 rows in as many copies: the addresses are where they began plus one counter; below the last tile no predicate is computed.
// CHECK: [[LOOP:\$L__BB[0-9_]+]]:
// CHECK: add.s64 %rd{{[0-9]+}}, %rd{{[0-9]+}}, [[COUNTER:%rd[0-9]+]];
// CHECK-COUNT-15: , [[COUNTER]];
// CHECK: setp.{{[lg]t}}.s32 [[ALL:%p[0-9]+]],
// CHECK: @[[ALL]] bra
// CHECK-COUNT-16: cp.async.cg.shared.global.L2::128B [%r{{[0-9]+}} + {{[0-9]+}}], [%rd{{[0-9]+}} + 0], 16, %p
// WHOLE-COUNT-16: cp.async.cg.shared.global.L2::128B [%r{{[0-9]+}} + {{[0-9]+}}], [%rd{{[0-9]+}} + 0], 16;
// WHOLE-NOT: cp.async.cg.shared.global.L2::128B {{.*}}, 16;
// From a negative start, an index added to a scalar may wrap around to a large one: nothing is said of all elements.
// NEGATIVE-COUNT-16: cp.async.cg.shared.global.L2::128B {{.*}}, 16, %p
// NEGATIVE-NOT: cp.async.cg
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [1, 32], warpsPerCTA = [1, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @loop(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %pitch: i32 {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %c0 = arith.constant 0 : i32
    %c256 = arith.constant 256 : i32
    %step = arith.constant dense<256> : tensor<16x256xi32, #blocked>
    %column = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %row = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %i = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<16x1xi32, #blocked>
    %j = tt.expand_dims %column {axis = 0 : i32} : tensor<256xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x256xi32, #blocked>
    %pitches = tt.splat %pitch : i32 -> tensor<16x1xi32, #blocked>
    %start = arith.muli %i, %pitches : tensor<16x1xi32, #blocked>
    %xs = tt.splat %x : !tt.ptr<f16> -> tensor<16x1x!tt.ptr<f16>, #blocked>
    %rows = tt.addptr %xs, %start : tensor<16x1x!tt.ptr<f16>, #blocked>, tensor<16x1xi32, #blocked>
    %q = tt.broadcast %rows : tensor<16x1x!tt.ptr<f16>, #blocked> -> tensor<16x256x!tt.ptr<f16>, #blocked>
    %k = tt.broadcast %j : tensor<1x256xi32, #blocked> -> tensor<16x256xi32, #blocked>
    %first = tt.addptr %q, %k : tensor<16x256x!tt.ptr<f16>, #blocked>, tensor<16x256xi32, #blocked>
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<16x256xf16, #shared, #smem, mutable>
    %end = scf.for %at = %c0 to %n step %c256 iter_args(%p = %first) -> (tensor<16x256x!tt.ptr<f16>, #blocked>) : i32 {
      %left = arith.subi %n, %at : i32
      %lefts = tt.splat %left : i32 -> tensor<1x256xi32, #blocked>
      %below = arith.cmpi slt, %j, %lefts : tensor<1x256xi32, #blocked>
      %mask = tt.broadcast %below : tensor<1x256xi1, #blocked> -> tensor<16x256xi1, #blocked>
      %t = ttg.async_copy_global_to_local %p, %buffer mask %mask : tensor<16x256x!tt.ptr<f16>, #blocked> -> !ttg.memdesc<16x256xf16, #shared, #smem, mutable>
      %g = ttg.async_commit_group tokens %t
      %w = ttg.async_wait %g {num = 0 : i32}
      %next = tt.addptr %p, %step : tensor<16x256x!tt.ptr<f16>, #blocked>, tensor<16x256xi32, #blocked>
      scf.yield %next : tensor<16x256x!tt.ptr<f16>, #blocked>
    }
    tt.return
  }
}

//--- byte.mlir
// CHECK: byte.mlir:[[#@LINE+9]]:10: codegen error: 'ttg.async_copy_global_to_local' op copies 1 bytes at a time, less than the target's asynchronous copies do
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @byte(%x: !tt.ptr<i8>) {
    %xs = tt.splat %x : !tt.ptr<i8> -> tensor<32x!tt.ptr<i8>, #blocked>
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<32xi8, #shared, #smem, mutable>
    // One element a lane.
    %t = ttg.async_copy_global_to_local %xs, %buffer : tensor<32x!tt.ptr<i8>, #blocked> -> !ttg.memdesc<32xi8, #shared, #smem, mutable>
    tt.return
  }
}

//--- other.mlir
// CHECK: other.mlir:[[#@LINE+11]]:10: codegen error: 'ttg.async_copy_global_to_local' op fills with other values than zeros, which an asynchronous copy cannot
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @other(%x: !tt.ptr<f32>, %wanted: i1) {
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #blocked>
    %mask = tt.splat %wanted : i1 -> tensor<128xi1, #blocked>
    %one = arith.constant dense<1.0> : tensor<128xf32, #blocked>
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    // Ones where masked off.
    %t = ttg.async_copy_global_to_local %xs, %buffer mask %mask other %one : tensor<128x!tt.ptr<f32>, #blocked> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    tt.return
  }
}
