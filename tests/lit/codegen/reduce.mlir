// Reductions: registers, then exchanges, then scratch with one barrier.
// RUN: split-file %s %t
// RUN: tessera-translate %t/sum.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/sum.mlir
// RUN: tessera-translate %t/one-warp.mlir --target=cuda:sm_90a --num-warps=1 --emit=ptx | FileCheck %t/one-warp.mlir
// RUN: tessera-translate %t/integer.mlir --target=cuda:sm_90a --num-warps=1 --emit=ptx | FileCheck %t/integer.mlir
// RUN: tessera-translate %t/argmax.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/argmax.mlir
// RUN: tessera-translate %t/long.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/long.mlir
// RUN: tessera-translate %t/many-rows.mlir --target=cuda:sm_90a --num-warps=1 --emit=llir | FileCheck %t/many-rows.mlir
// RUN: tessera-translate %t/sum.mlir --target=cuda:sm_90a --num-warps=32 --emit=ptx | FileCheck %t/sum.mlir --check-prefix=WIDE

//--- sum.mlir
// CHECK-LABEL: .entry sum(
// CHECK: ld.global.v4.b32
// CHECK-COUNT-7: add.{{(rn.)?}}f32
// CHECK: shfl.sync.bfly.b32 {{.*}}, 16, 31, -1;
// CHECK: shfl.sync.bfly.b32 {{.*}}, 8, 31, -1;
// CHECK: shfl.sync.bfly.b32 {{.*}}, 4, 31, -1;
// CHECK: shfl.sync.bfly.b32 {{.*}}, 2, 31, -1;
// CHECK: shfl.sync.bfly.b32 {{.*}}, 1, 31, -1;
// CHECK: st.shared.b32
// CHECK: bar.sync 0;
// CHECK: ld.shared.v4.b32
// CHECK-NOT: bar.sync
// CHECK-NOT: shfl
// CHECK: st.global.b32
//
// Of 32 partial sums each lane reads four, then lanes share the rest of the work.
// WIDE-LABEL: .entry sum(
// WIDE: bar.sync 0;
// WIDE: ld.shared.v4.b32
// WIDE-NOT: ld.shared
// WIDE-COUNT-3: shfl.sync.bfly.b32
// WIDE-NOT: shfl
// WIDE: st.global.b32
tt.func public @sum(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32>) {
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %px = tt.addptr %xs, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %v = tt.load %px : tensor<1024x!tt.ptr<f32>>
  %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    tt.reduce.return %0 : f32
  }) : (tensor<1024xf32>) -> f32
  tt.store %o, %s : !tt.ptr<f32>
  tt.return
}

//--- one-warp.mlir
// One warp needs neither shared memory nor a barrier. NaN is propagated by the region's own operation.
// CHECK-NOT: .shared
// CHECK-LABEL: .entry one_warp(
// CHECK-NOT: bar.sync
// CHECK: max.NaN.f32
// CHECK: shfl.sync.bfly.b32
// CHECK-NOT: bar.sync
// CHECK: ret;
tt.func public @one_warp(%x: !tt.ptr<f32>, %o: !tt.ptr<f32>) {
  %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %px = tt.addptr %xs, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %v = tt.load %px : tensor<64x!tt.ptr<f32>>
  %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %0 = arith.maximumf %a, %b : f32
    tt.reduce.return %0 : f32
  }) : (tensor<64xf32>) -> f32
  tt.store %o, %s : !tt.ptr<f32>
  tt.return
}

//--- integer.mlir
// i32 over a whole warp is one instruction.
// CHECK-LABEL: .entry integer(
// CHECK: redux.sync.max.s32
// CHECK-NOT: shfl
// CHECK: ret;
tt.func public @integer(%x: !tt.ptr<i32>, %o: !tt.ptr<i32>) {
  %i = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
  %px = tt.addptr %xs, %i : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
  %v = tt.load %px : tensor<32x!tt.ptr<i32>>
  %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %0 = arith.maxsi %a, %b : i32
    tt.reduce.return %0 : i32
  }) : (tensor<32xi32>) -> i32
  tt.store %o, %s : !tt.ptr<i32>
  tt.return
}

//--- argmax.mlir
// Two operands travel together: both are exchanged, both have their part of scratch.
// CHECK-LABEL: .entry argmax(
// CHECK: shfl.sync.bfly.b32 {{.*}}, 16,
// CHECK: shfl.sync.bfly.b32 {{.*}}, 16,
// CHECK: st.shared.b32
// CHECK: st.shared.b32
// CHECK: bar.sync 0;
// CHECK: ld.shared.v4.b32 {{.*}}, [shared_memory];
// CHECK: ld.shared.v4.b32 {{.*}}, [shared_memory+16];
tt.func public @argmax(%x: !tt.ptr<f32>, %o: !tt.ptr<i32>) {
  %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %px = tt.addptr %xs, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %v = tt.load %px : tensor<128x!tt.ptr<f32>>
  %m, %at = "tt.reduce"(%v, %i) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
    %gt = arith.cmpf ogt, %a, %b : f32
    %eq = arith.cmpf oeq, %a, %b : f32
    %lower = arith.cmpi slt, %ai, %bi : i32
    %tie = arith.andi %eq, %lower : i1
    %keep = arith.ori %gt, %tie : i1
    %0 = arith.select %keep, %a, %b : f32
    %1 = arith.select %keep, %ai, %bi : i32
    tt.reduce.return %0, %1 : f32, i32
  }) : (tensor<128xf32>, tensor<128xi32>) -> (f32, i32)
  tt.store %o, %at : !tt.ptr<i32>
  tt.return
}

//--- long.mlir
// A lane combines 32 registers in four chains. Within a chain indices rise, so that no comparison of them is left: of
// "greater, or equal and lower" that gives "not less", of "greater, or equal and higher" "greater".
// CHECK-LABEL: .entry long(
// CHECK-NOT: setp.lt.s32
// CHECK-COUNT-28: setp.ge.f32
// CHECK-NOT: setp.ge.f32
// CHECK: setp.lt.s32
// CHECK-NOT: setp.ge.f32
// CHECK: bar.sync
tt.func public @long(%x: !tt.ptr<f32>, %o: !tt.ptr<i32>) {
  %i = tt.make_range {start = 0 : i32, end = 4096 : i32} : tensor<4096xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<4096x!tt.ptr<f32>>
  %px = tt.addptr %xs, %i : tensor<4096x!tt.ptr<f32>>, tensor<4096xi32>
  %v = tt.load %px : tensor<4096x!tt.ptr<f32>>
  %m, %at = "tt.reduce"(%v, %i) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
    %gt = arith.cmpf ogt, %a, %b : f32
    %eq = arith.cmpf oeq, %a, %b : f32
    %lower = arith.cmpi slt, %ai, %bi : i32
    %tie = arith.andi %eq, %lower : i1
    %keep = arith.ori %gt, %tie : i1
    %0 = arith.select %keep, %a, %b : f32
    %1 = arith.select %keep, %ai, %bi : i32
    tt.reduce.return %0, %1 : f32, i32
  }) : (tensor<4096xf32>, tensor<4096xi32>) -> (f32, i32)
  tt.store %o, %at : !tt.ptr<i32>
  %last, %last_at = "tt.reduce"(%v, %i) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
    %gt = arith.cmpf ogt, %a, %b : f32
    %eq = arith.cmpf oeq, %a, %b : f32
    %lower = arith.cmpi sgt, %ai, %bi : i32
    %tie = arith.andi %eq, %lower : i1
    %keep = arith.ori %gt, %tie : i1
    %0 = arith.select %keep, %a, %b : f32
    %1 = arith.select %keep, %ai, %bi : i32
    tt.reduce.return %0, %1 : f32, i32
  }) : (tensor<4096xf32>, tensor<4096xi32>) -> (f32, i32)
  %o1 = tt.addptr %o, %last_at : !tt.ptr<i32>, i32
  tt.store %o1, %last_at : !tt.ptr<i32>
  tt.return
}

//--- many-rows.mlir
// 128 rows a lane, 64 in each of two turns, five exchanges of two values each: a function makes them, called for each row.
// CHECK-LABEL: define{{.*}} void @many(
// CHECK: turn:
// CHECK-COUNT-64: call {{.*}} @tessera.reduce(
// CHECK-NOT: call {{.*}} @tessera.reduce(
// CHECK: define internal {{.*}} @tessera.reduce(
// CHECK-COUNT-10: {{.*}}call {{.*}} @llvm.nvvm.shfl
tt.func public @many(%x: !tt.ptr<f32>, %o: !tt.ptr<i32>) {
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %c = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %r1 = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %c1 = tt.expand_dims %c {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %pitch = arith.constant dense<32> : tensor<128x1xi32>
  %row = arith.muli %r1, %pitch : tensor<128x1xi32>
  %rows = tt.broadcast %row : tensor<128x1xi32> -> tensor<128x32xi32>
  %cols = tt.broadcast %c1 : tensor<1x32xi32> -> tensor<128x32xi32>
  %offsets = arith.addi %rows, %cols : tensor<128x32xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<128x32x!tt.ptr<f32>>
  %px = tt.addptr %xs, %offsets : tensor<128x32x!tt.ptr<f32>>, tensor<128x32xi32>
  %v = tt.load %px : tensor<128x32x!tt.ptr<f32>>
  %m, %at = "tt.reduce"(%v, %cols) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
    %gt = arith.cmpf ogt, %a, %b : f32
    %eq = arith.cmpf oeq, %a, %b : f32
    %lower = arith.cmpi slt, %ai, %bi : i32
    %tie = arith.andi %eq, %lower : i1
    %keep = arith.ori %gt, %tie : i1
    %0 = arith.select %keep, %a, %b : f32
    %1 = arith.select %keep, %ai, %bi : i32
    tt.reduce.return %0, %1 : f32, i32
  }) : (tensor<128x32xf32>, tensor<128x32xi32>) -> (tensor<128xf32>, tensor<128xi32>)
  %os = tt.splat %o : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
  %po = tt.addptr %os, %r : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
  tt.store %po, %at : tensor<128x!tt.ptr<i32>>
  tt.return
}
