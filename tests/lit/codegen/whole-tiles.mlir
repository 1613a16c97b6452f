// Masks that say which columns of the tile a row has: a second version without them, for rows that fill it.
// RUN: split-file %s %t
// RUN: tessera-translate %t/row.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=ROW
// RUN: tessera-translate %t/many.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=MANY
// RUN: tessera-translate %t/two.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=TWO

// In the first version, which is not jumped to, the condition is always true: `ptxas` drops it, and the zeros in front.
// ROW: setp.lt.s32 [[PART:%p[0-9]+]], {{%r[0-9]+}}, 512;
// ROW-NEXT: @[[PART]] bra [[MASKED:\$L__BB[0-9_]+]];
// ROW-NOT: bra
// ROW: mov.pred [[TRUE:%p[0-9]+]], -1;
// ROW: @[[TRUE]] ld.global
// ROW: shfl
// ROW: bar.sync
// ROW-NOT: selp
// ROW: @[[TRUE]] st.global
// ROW: ret;
// ROW: [[MASKED]]:
// ROW: setp.lt.s32 [[MASK:%p[0-9]+]]
// ROW: @[[MASK]] ld.global
// ROW: bar.sync
// ROW: ret;
// ROW-NOT: bra

//--- row.mlir
tt.func public @row(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %i = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %ns = tt.splat %n : i32 -> tensor<512xi32>
  %m = arith.cmpi slt, %i, %ns : tensor<512xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
  %v = tt.load %p, %m, %zero : tensor<512x!tt.ptr<f32>>
  %sum = "tt.reduce"(%v) ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) {axis = 0 : i32} : (tensor<512xf32>) -> f32
  %s = tt.splat %sum : f32 -> tensor<512xf32>
  %r = arith.select %m, %s, %zero : tensor<512xi1>, tensor<512xf32>
  %d = arith.mulf %r, %v : tensor<512xf32>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
  %q = tt.addptr %ys, %i : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
  tt.store %q, %d, %m : tensor<512x!tt.ptr<f32>>
  tt.return
}

// Positions in the whole array: programs differ, and only the last one needs masks.
// MANY: ld.global
// MANY-NOT: ld.global
//--- many.mlir
tt.func public @many(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
  %c128 = arith.constant 128 : i32
  %pid = tt.get_program_id x : i32
  %first = arith.muli %pid, %c128 : i32
  %fs = tt.splat %first : i32 -> tensor<128xi32>
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %i = arith.addi %fs, %r : tensor<128xi32>
  %ns = tt.splat %n : i32 -> tensor<128xi32>
  %m = arith.cmpi slt, %i, %ns : tensor<128xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %v = tt.load %p, %m : tensor<128x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %q = tt.addptr %ys, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  tt.store %q, %v, %m : tensor<128x!tt.ptr<f32>>
  tt.return
}

// Two lengths: both have to be long enough.
// TWO-DAG: setp.lt.s32 {{%p[0-9]+}}, {{%r[0-9]+}}, 64;
// TWO-DAG: setp.lt.s32 {{%p[0-9]+}}, {{%r[0-9]+}}, 128;
// TWO: bra
//--- two.mlir
tt.func public @two(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %rows: i32, %cols: i32) {
  %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %j = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %ns = tt.splat %rows : i32 -> tensor<64xi32>
  %ms = tt.splat %cols : i32 -> tensor<128xi32>
  %a = arith.cmpi slt, %i, %ns : tensor<64xi32>
  %b = arith.cmpi slt, %j, %ms : tensor<128xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %v = tt.load %p, %a : tensor<64x!tt.ptr<f32>>
  tt.store %p, %v, %a : tensor<64x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %q = tt.addptr %ys, %j : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %w = tt.load %q, %b : tensor<128x!tt.ptr<f32>>
  tt.store %q, %w, %b : tensor<128x!tt.ptr<f32>>
  tt.return
}
