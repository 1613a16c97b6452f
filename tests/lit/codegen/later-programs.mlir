// Rows that programs reduce: each fetches the row of a program that begins later into L2.
// RUN: split-file %s %t
// RUN: tessera-translate %t/row.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=ROW
// RUN: tessera-translate %t/row.mlir --target=cuda:sm_80 --emit=ptx | FileCheck %s --check-prefix=NONE
// RUN: tessera-translate %t/loop.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=LOOP
// RUN: tessera-translate %t/not.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=NONE
// RUN: tessera-translate %t/map.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=NONE
// NONE-NOT: prefetch

// 2048 columns are 8192 bytes, 512 of which rows are 4 MiB. Of the weights, which are the same for all programs, nothing is
// fetched. The version with masks fetches what n says, in whole 16 bytes.
// ROW: ld.param.b64 [[X:%rd[0-9]+]], [row_param_0]
// ROW: mov.u32 [[PID:%r[0-9]+]], %ctaid.x
// ROW: ld.global.v4
// ROW: add.s32 [[LATER:%r[0-9]+]], [[PID]], 512;
// ROW: mov.u32 [[PROGRAMS:%r[0-9]+]], %nctaid.x
// ROW: setp.lt.u32 {{%p[0-9]+}}, [[LATER]], [[PROGRAMS]];
// ROW: mul.lo.s32 [[OFFSET:%r[0-9]+]], {{%r[0-9]+}}, [[LATER]];
// ROW: mul.wide.s32 [[BYTES:%rd[0-9]+]], [[OFFSET]], 4;
// ROW: add.s64 [[AT:%rd[0-9]+]], [[X]], [[BYTES]];
// ROW: mov.b32 [[SIZE:%r[0-9]+]], 8192;
// ROW: @{{%p[0-9]+}} cp.async.bulk.prefetch.L2.global {{\[}}[[AT]]], [[SIZE]];
// ROW-NOT: prefetch
// ROW: bar.sync
// ROW-NOT: prefetch
// ROW: ret;
// ROW: and.b32 [[PART:%r[0-9]+]], {{%r[0-9]+}}, -16;
// ROW: cp.async.bulk.prefetch.L2.global {{\[%rd[0-9]+\]}}, [[PART]];
// ROW-NOT: prefetch

//--- row.mlir
tt.func public @row(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %w: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
  %zero = arith.constant dense<0.0> : tensor<2048xf32>
  %pid = tt.get_program_id x : i32
  %offset = arith.muli %pid, %stride : i32
  %row = tt.addptr %x, %offset : !tt.ptr<f32>, i32
  %i = tt.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32>
  %ns = tt.splat %n : i32 -> tensor<2048xi32>
  %m = arith.cmpi slt, %i, %ns : tensor<2048xi32>
  %xs = tt.splat %row : !tt.ptr<f32> -> tensor<2048x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<2048x!tt.ptr<f32>>, tensor<2048xi32>
  %v = tt.load %p, %m, %zero : tensor<2048x!tt.ptr<f32>>
  %sum = "tt.reduce"(%v) ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) {axis = 0 : i32} : (tensor<2048xf32>) -> f32
  %s = tt.splat %sum : f32 -> tensor<2048xf32>
  %d = arith.mulf %s, %v : tensor<2048xf32>
  %ws = tt.splat %w : !tt.ptr<f32> -> tensor<2048x!tt.ptr<f32>>
  %q = tt.addptr %ws, %i : tensor<2048x!tt.ptr<f32>>, tensor<2048xi32>
  %weights = tt.load %q, %m, %zero : tensor<2048x!tt.ptr<f32>>
  %r = arith.mulf %d, %weights : tensor<2048xf32>
  tt.store %p, %r, %m : tensor<2048x!tt.ptr<f32>>
  tt.return
}

// Rows in a loop, each program every programs-th: in the first trip, and only where the later program has a first trip.
// LOOP: mov.u32 [[PID:%r[0-9]+]], %ctaid.x
// LOOP: setp.ge.s32 {{%p[0-9]+}}, [[PID]], [[ROWS:%r[0-9]+]];
// LOOP: ld.global.v4
// LOOP: add.s32 [[LATER:%r[0-9]+]], [[PID]], 512;
// LOOP: setp.lt.s32 {{%p[0-9]+}}, [[LATER]], [[ROWS]];
// LOOP: setp.eq.b32 [[FIRST:%p[0-9]+]], {{%r[0-9]+}}, 0;
// LOOP: and.pred [[ALL:%p[0-9]+]], {{%p[0-9]+}}, [[FIRST]];
// LOOP: @[[ALL]] cp.async.bulk.prefetch.L2.global
// LOOP-NOT: prefetch
// LOOP: bra
// LOOP: cp.async.bulk.prefetch.L2.global
// LOOP-NOT: prefetch
//--- loop.mlir
tt.func public @loop(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}, %rows: i32, %n: i32 {tt.divisibility = 16 : i32}) {
  %zero = arith.constant dense<0.0> : tensor<2048xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %i = tt.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32>
  %ns = tt.splat %n : i32 -> tensor<2048xi32>
  %m = arith.cmpi slt, %i, %ns : tensor<2048xi32>
  scf.for %at = %pid to %rows step %programs : i32 {
    %offset = arith.muli %at, %stride : i32
    %row = tt.addptr %x, %offset : !tt.ptr<f32>, i32
    %xs = tt.splat %row : !tt.ptr<f32> -> tensor<2048x!tt.ptr<f32>>
    %p = tt.addptr %xs, %i : tensor<2048x!tt.ptr<f32>>, tensor<2048xi32>
    %v = tt.load %p, %m, %zero : tensor<2048x!tt.ptr<f32>>
    %sum = "tt.reduce"(%v) ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) {axis = 0 : i32} : (tensor<2048xf32>) -> f32
    %s = tt.splat %sum : f32 -> tensor<2048xf32>
    %d = arith.mulf %s, %v : tensor<2048xf32>
    tt.store %p, %d, %m : tensor<2048x!tt.ptr<f32>>
  }
  tt.return
}

// No program waits for another thread's part of a row: memory is kept busy without.
//--- not.mlir
tt.func public @not(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}) {
  %pid = tt.get_program_id x : i32
  %offset = arith.muli %pid, %stride : i32
  %row = tt.addptr %x, %offset : !tt.ptr<f32>, i32
  %i = tt.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32>
  %xs = tt.splat %row : !tt.ptr<f32> -> tensor<2048x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<2048x!tt.ptr<f32>>, tensor<2048xi32>
  %v = tt.load %p : tensor<2048x!tt.ptr<f32>>
  %d = arith.addf %v, %v : tensor<2048xf32>
  tt.store %p, %d : tensor<2048x!tt.ptr<f32>>
  tt.return
}

// Which row a program has is read from memory: what a later one has is not known.
//--- map.mlir
tt.func public @map(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %which: !tt.ptr<i32>, %stride: i32 {tt.divisibility = 16 : i32}) {
  %pid = tt.get_program_id x : i32
  %at = tt.addptr %which, %pid : !tt.ptr<i32>, i32
  %number = tt.load %at : !tt.ptr<i32>
  %offset = arith.muli %number, %stride : i32
  %row = tt.addptr %x, %offset : !tt.ptr<f32>, i32
  %i = tt.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32>
  %xs = tt.splat %row : !tt.ptr<f32> -> tensor<2048x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<2048x!tt.ptr<f32>>, tensor<2048xi32>
  %v = tt.load %p : tensor<2048x!tt.ptr<f32>>
  %sum = "tt.reduce"(%v) ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) {axis = 0 : i32} : (tensor<2048xf32>) -> f32
  %s = tt.splat %sum : f32 -> tensor<2048xf32>
  %d = arith.mulf %s, %v : tensor<2048xf32>
  tt.store %p, %d : tensor<2048x!tt.ptr<f32>>
  tt.return
}
