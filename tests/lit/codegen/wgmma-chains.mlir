// A group of four warps whose part is two instructions high: both chains of products are one statement behind one fence.
// RUN: tessera-translate %s --target=cuda:sm_90a --emit=ptx | FileCheck %s
// RUN: tessera-translate %s --target=cpu:emulate=sm_90a --emit=llir | FileCheck %s --check-prefix=EMULATED

// CHECK: wgmma.fence.sync.aligned;
// CHECK-NEXT: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {[[FIRST:%r[0-9]+]],
// CHECK-NEXT: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {[[FIRST]],
// CHECK-NEXT: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {[[SECOND:%r[0-9]+]],
// CHECK-NEXT: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {[[SECOND]],
// CHECK-NOT: wgmma.fence
// CHECK: wgmma.commit_group.sync.aligned;

// EMULATED-COUNT-4: call i32 @tessera_cpu_wgmma_start
// EMULATED-NOT: call i32 @tessera_cpu_wgmma_start
// EMULATED: call void @tessera_cpu_wgmma_commit

#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @chains(%out: !tt.ptr<f32>, %start: f32) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<128x32xf16, #shared, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
    %c = tt.splat %start : f32 -> tensor<128x64xf32, #mma>
    %d = ttng.warp_group_dot %a, %b, %c {inputPrecision = 2 : i32} : !ttg.memdesc<128x32xf16, #shared, #smem, mutable> * !ttg.memdesc<32x64xf16, #shared, #smem, mutable> -> tensor<128x64xf32, #mma>
    %p = tt.splat %out : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>, #mma>
    tt.store %p, %d : tensor<128x64x!tt.ptr<f32>, #mma>
    tt.return
  }
}
