// Divisions in front of the first copy: small numbers take a short way, the others the one they had, behind everything.
// RUN: tessera-translate %s --target=cuda:sm_90a --emit=ptx | FileCheck %s
// RUN: tessera-translate %s --target=cuda:sm_80 --emit=ptx | FileCheck %s
//
// CHECK-LABEL: .entry grouped(
// One with 1 <= d < 2^23 and 0 <= n < 2^21. 1258291200 are the bits of 2^23, which n turns into 2^23 + n.
// CHECK-DAG: setp.gt.u32 {{%p[0-9]+}}, {{%r[0-9]+}}, 8388606;
// CHECK-DAG: setp.gt.u32 {{%p[0-9]+}}, [[PROGRAM:%r[0-9]+]], 2097151;
// CHECK-DAG: or.b32 [[BITS:%r[0-9]+]], [[PROGRAM]], 1258291200;
// CHECK-DAG: add.rn.f32 [[HALF:%r[0-9]+]], [[BITS]], 0fCAFFFFFF;
// CHECK-DAG: rcp.approx.ftz.f32 [[RECIPROCAL:%r[0-9]+]]
// CHECK: fma.rz.f32 [[SUM:%r[0-9]+]], [[HALF]], [[RECIPROCAL]],
// CHECK: and.b32 [[QUOTIENT:%r[0-9]+]], [[SUM]], 8388607;
// CHECK: @%p{{[0-9]+}} bra [[SLOW:\$L__BB0_[0-9]+]];
// CHECK: [[BACK:\$L__BB0_[0-9]+]]:
// Those that need its result have divisors of their own, and one branch.
// CHECK-NOT: bra
// CHECK-COUNT-2: rcp.approx.ftz.f32
// CHECK-NOT: {{bra|rcp}}
// CHECK-COUNT-8: fma.rz.f32
// CHECK-NOT: {{fma.rz|rcp}}
// CHECK: bra [[OTHERS:\$L__BB0_[0-9]+]];
// CHECK-NOT: {{div|rem}}.s32
// CHECK: cp.async.cg
// CHECK-NOT: {{div|rem}}.s32
// CHECK: ret;
// CHECK: [[SLOW]]:
// CHECK: div.s32 [[QUOTIENT]], [[PROGRAM]],
// CHECK-NEXT: bra.uni [[BACK]];
// CHECK: [[OTHERS]]:
// CHECK: rem.s32
// CHECK: div.s32
//
// By constants, and in loops: as they were.
// RUN: sed -e 's/divsi %id, %group/divsi %id, %c7/' -e 's/remsi %at1, %ms/remsi %at1, %allseven/' -e 's/divsi %at1, %ns/divsi %at1, %allseven/' \
// RUN:   -e 's/%left = arith.subi %n, %k/%left1 = arith.remsi %k, %group : i32 %left = arith.subi %n, %left1/' %s \
// RUN:   | tessera-translate - --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=OTHER
// OTHER-LABEL: .entry grouped(
// OTHER-NOT: rcp.approx
// OTHER: cp.async.commit_group;
// OTHER: cp.async.commit_group;
// OTHER-NOT: rcp.approx
// OTHER: wgmma.mma_async
// OTHER-NOT: rcp.approx
// OTHER: rem.s32
// OTHER-NOT: rcp.approx
// OTHER: ret;

tt.func public @grouped(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32},
                        %c: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %m: i32 {tt.divisibility = 16 : i32},
                        %n: i32 {tt.divisibility = 16 : i32}, %group: i32, %pitch: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c7 = arith.constant 7 : i32
  %allseven = arith.constant dense<7> : tensor<64xi32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x64xf16>
  %step = arith.constant dense<64> : tensor<64x64xi32>
  %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %id = tt.get_program_id x : i32
  %block = arith.divsi %id, %group : i32
  %start = arith.muli %block, %c64 : i32
  %starts1 = tt.splat %start : i32 -> tensor<64xi32>
  %at1 = arith.addi %starts1, %i : tensor<64xi32>
  %ms = tt.splat %m : i32 -> tensor<64xi32>
  %ns = tt.splat %n : i32 -> tensor<64xi32>
  %row = arith.remsi %at1, %ms : tensor<64xi32>
  %column = arith.divsi %at1, %ns : tensor<64xi32>
  %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %others = tt.expand_dims %column {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %down1 = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %columns = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %pitches = tt.splat %pitch : i32 -> tensor<64x1xi32>
  %startsA = arith.muli %rows, %pitches : tensor<64x1xi32>
  %startsB = arith.muli %others, %pitches : tensor<64x1xi32>
  %ra = tt.broadcast %startsA : tensor<64x1xi32> -> tensor<64x64xi32>
  %rb = tt.broadcast %startsB : tensor<64x1xi32> -> tensor<64x64xi32>
  %l = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
  %atA = arith.addi %ra, %l : tensor<64x64xi32>
  %atB = arith.addi %rb, %l : tensor<64x64xi32>
  %as = tt.splat %a : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %bs = tt.splat %b : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %a0 = tt.addptr %as, %atA : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %b0 = tt.addptr %bs, %atB : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %down = arith.muli %pitch, %c64 : i32
  %downs = tt.splat %down : i32 -> tensor<64x64xi32>
  %d:3 = scf.for %k = %c0 to %n step %c64 iter_args(%ap = %a0, %bp = %b0, %acc = %zero) -> (tensor<64x64x!tt.ptr<f16>>, tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>) : i32 {
    %left = arith.subi %n, %k : i32
    %lefts = tt.splat %left : i32 -> tensor<1x64xi32>
    %inA = arith.cmpi slt, %columns, %lefts : tensor<1x64xi32>
    %maskA = tt.broadcast %inA : tensor<1x64xi1> -> tensor<64x64xi1>
    %leftsB = tt.splat %left : i32 -> tensor<64x1xi32>
    %inB = arith.cmpi slt, %down1, %leftsB : tensor<64x1xi32>
    %maskB = tt.broadcast %inB : tensor<64x1xi1> -> tensor<64x64xi1>
    %x = tt.load %ap, %maskA, %none : tensor<64x64x!tt.ptr<f16>>
    %y = tt.load %bp, %maskB, %none : tensor<64x64x!tt.ptr<f16>>
    %s = tt.dot %x, %y, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %an = tt.addptr %ap, %step : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %bn = tt.addptr %bp, %downs : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    scf.yield %an, %bn, %s : tensor<64x64x!tt.ptr<f16>>, tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>
  } {tt.num_stages = 3 : i32}
  %half = arith.truncf %d#2 : tensor<64x64xf32> to tensor<64x64xf16>
  %cs = tt.splat %c : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %cp = tt.addptr %cs, %atB : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  tt.store %cp, %half : tensor<64x64x!tt.ptr<f16>>
  tt.return
}
