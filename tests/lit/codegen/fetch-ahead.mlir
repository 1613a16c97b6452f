// What the first trips of a loop copy is fetched into L2 behind the copies that fill the ring: each program fetches two of sixteen
// trips, one lane each line.
// RUN: tessera-translate %S/wgmma-loops.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %s
// CHECK-LABEL: .entry product(
// CHECK-NOT: prefetch
// CHECK-COUNT-2: cp.async.commit_group;
// Not where there are many programs.
// CHECK-COUNT-3: %nctaid
// CHECK: setp.lt.u32 [[FEW:%p[0-9]+]], {{%r[0-9]+}}, 257;
// CHECK: @[[FEW]] bra [[FETCH:\$L__BB0_[0-9]+]];
// CHECK: [[FETCH]]:
// CHECK: mov.u32 [[PROGRAM:%r[0-9]+]], %ctaid.x;
// CHECK: shr.u32 [[GROUP:%r[0-9]+]], [[PROGRAM]], 3;
// CHECK: add.s32 [[SUM:%r[0-9]+]], [[PROGRAM]], [[GROUP]];
// CHECK: and.b32 {{%r[0-9]+}}, [[SUM]], 7;
// CHECK: setp.lt.u32 [[LANE:%p[0-9]+]], {{%r[0-9]+}}, 16;
// Trips that exist and need no mask.
// CHECK: and.pred [[DOES:%p[0-9]+]], {{%p[0-9]+}}, [[LANE]];
// CHECK-COUNT-4: @[[DOES]] prefetch.global.L2 [%rd{{[0-9]+}}];
// CHECK-COUNT-12: prefetch.global.L2
// CHECK-NOT: prefetch
// CHECK: wgmma.mma_async
// CHECK-NOT: prefetch
// CHECK: ret;
//
// Only what moves by the same distance in every trip.
// RUN: sed 's/%bn = tt.addptr %bp, %downs/%k2 = arith.muli %k, %k : i32 %far = tt.splat %k2 : i32 -> tensor<64x64xi32> %bn = tt.addptr %bp, %far/' %S/wgmma-loops.mlir \
// RUN:   | tessera-translate - --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=ONE
// ONE-LABEL: .entry product(
// ONE-COUNT-8: prefetch.global.L2
// ONE-NOT: prefetch
// ONE: ret;
//
// Masks that are not one condition of a trip: not known to be whole.
// RUN: sed 's/cmpi slt, %columns, %lefts/cmpi ne, %columns, %lefts/' %S/wgmma-loops.mlir | tessera-translate - --target=cuda:sm_90a --emit=ptx \
// RUN:   | FileCheck %s --check-prefix=NONE
// NONE-LABEL: .entry product(
// NONE-NOT: prefetch
// NONE: ret;
//
// Products of 1024 cycles a trip: the ring is enough.
// RUN: sed s/64/128/g %S/wgmma-loops.mlir | tessera-translate - --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=NONE
