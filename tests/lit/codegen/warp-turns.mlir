// A warp that is two warps of the layout, one after the other: from the beginning to the barrier, and from there on. What was
// loaded before is kept for each; positions are computed again.
// RUN: tessera-translate %s --target=cuda:sm_80 --emit=llir --no-line-info | FileCheck %s
// RUN: tessera-translate %s --target=cpu:emulate=sm_80 --emit=llir --no-line-info | FileCheck %s --check-prefix=EMULATED
// RUN: sed 's/warp-turns" = 2/warp-turns" = 8/' %s | not tessera-translate - --target=cuda:sm_80 -o %t 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: sed 's/warp-turns" = 2/warp-turns" = 3/' %s | not tessera-translate - --target=cuda:sm_80 -o %t 2>&1 | FileCheck %s --check-prefix=POWER

// CHECK: define ptx_kernel void @share
// CHECK: %[[KEPT:.*]] = alloca [2 x [1 x float]]
// CHECK: %[[TID:.*]] = tail call range(i32 0, 64) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
// CHECK: turn:
// CHECK: %[[TURN:.*]] = phi i32 [ 0, %entry ]
// CHECK: %[[BEFORE:.*]] = shl nuw nsw i32 %[[TURN]], 6
// CHECK: or disjoint i32 %[[BEFORE]], %[[TID]]
// CHECK: %[[LOADED:.*]] = load float, ptr addrspace(1)
// CHECK: store float %[[LOADED]], ptr
// CHECK: br i1 %{{.*}}, label %turn, label %barrier, !llvm.loop
// CHECK: barrier:
// CHECK: call void @llvm.nvvm.barrier.cta.sync.aligned.all
// CHECK-NOT: load float, ptr addrspace(1)
// CHECK: load float, ptr %[[KEPT]]
// CHECK-NOT: call void @llvm.nvvm.barrier
// CHECK: ret void
// CHECK: nvvm.reqntid"="64"

// EMULATED: alloca [2 x [1 x <32 x float>]]
// EMULATED: call void @tessera_cpu_barrier

// FEW: the ttgir has ttg.warp-turns = 8, but fewer warps
// POWER: ttg.warp-turns must be a power of two from 1 to 64, not 3

#row = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.warp-turns" = 2 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
  tt.func public @share(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #row>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #row>
    %p = tt.addptr %xs, %i : tensor<128x!tt.ptr<f32>, #row>, tensor<128xi32, #row>
    %v = tt.load %p : tensor<128x!tt.ptr<f32>, #row>
    %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<128xf32, #row>) -> f32
    %t = tt.splat %s : f32 -> tensor<128xf32, #row>
    %d = arith.divf %v, %t : tensor<128xf32, #row>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #row>
    %q = tt.addptr %ys, %i : tensor<128x!tt.ptr<f32>, #row>, tensor<128xi32, #row>
    tt.store %q, %d : tensor<128x!tt.ptr<f32>, #row>
    tt.return
  }
}
