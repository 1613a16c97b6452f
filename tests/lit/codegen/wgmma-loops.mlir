// Copies beside products of warp groups: the loop becomes two. In the first, while the copies of a trip are whole, a trip is one
// block: no predicates, no branch but the last. In the second, trips that do not exist copy nothing, others with masks.
// RUN: tessera-translate %s --target=cuda:sm_90a --emit=ptx | FileCheck %s
// CHECK-LABEL: .entry product(
// Filling the ring: not in a loop.
// CHECK-COUNT-2: cp.async.commit_group;
// CHECK-COUNT-16: prefetch.global.L2
// CHECK: @%p{{[0-9]+}} bra $L__BB0_
// CHECK: [[FIRST:\$L__BB0_[0-9]+]]:
// CHECK-NOT: $L__BB
// CHECK: wgmma.mma_async
// CHECK: wgmma.wait_group.sync.aligned 1;
// CHECK-NOT: {{bra|BB0}}
// CHECK-COUNT-8: cp.async.cg.shared.global.L2::128B [%r{{[0-9]+}} + {{[0-9]+}}], [%rd{{[0-9]+}} + {{[0-9]+}}], 16;
// CHECK-NOT: {{bra|BB0|cp.async.cg}}
// CHECK: cp.async.commit_group;
// CHECK-NOT: {{bra|BB0}}
// CHECK: @%p{{[0-9]+}} bra [[FIRST]];
// CHECK: wgmma.mma_async
// CHECK: wgmma.wait_group.sync.aligned 1;
// CHECK-NOT: cp.async.cg
// CHECK: @%p{{[0-9]+}} bra
// CHECK-COUNT-8: cp.async.cg.shared.global.L2::128B [%r{{[0-9]+}} + {{[0-9]+}}], [%rd{{[0-9]+}} + {{[0-9]+}}], 16, %p{{[0-9]+}};
// CHECK-NOT: cp.async.cg
// CHECK: st.global
//
// Products of 1024 cycles a trip: one loop, whose copies go two ways.
// RUN: sed s/64/128/g %s | tessera-translate - --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=LONG
// LONG-LABEL: .entry product(
// LONG: wgmma.wait_group.sync.aligned 1;
// LONG: bra
// LONG: cp.async.cg
// LONG-NOT: wgmma.wait_group.sync.aligned 1;
// LONG: wgmma.wait_group.sync.aligned 0;

tt.func public @product(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32},
                        %c: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %pitch: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x64xf16>
  %step = arith.constant dense<64> : tensor<64x64xi32>
  %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %columns = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %pitches = tt.splat %pitch : i32 -> tensor<64x1xi32>
  %starts = arith.muli %rows, %pitches : tensor<64x1xi32>
  %r = tt.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
  %l = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %r, %l : tensor<64x64xi32>
  %as = tt.splat %a : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %bs = tt.splat %b : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %a0 = tt.addptr %as, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %b0 = tt.addptr %bs, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %down = arith.muli %pitch, %c64 : i32
  %downs = tt.splat %down : i32 -> tensor<64x64xi32>
  %d:3 = scf.for %k = %c0 to %n step %c64 iter_args(%ap = %a0, %bp = %b0, %acc = %zero) -> (tensor<64x64x!tt.ptr<f16>>, tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf32>) : i32 {
    %left = arith.subi %n, %k : i32
    %lefts = tt.splat %left : i32 -> tensor<1x64xi32>
    %inA = arith.cmpi slt, %columns, %lefts : tensor<1x64xi32>
    %maskA = tt.broadcast %inA : tensor<1x64xi1> -> tensor<64x64xi1>
    %leftsB = tt.splat %left : i32 -> tensor<64x1xi32>
    %inB = arith.cmpi slt, %rows, %leftsB : tensor<64x1xi32>
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
  %cp = tt.addptr %cs, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  tt.store %cp, %half : tensor<64x64x!tt.ptr<f16>>
  tt.return
}
