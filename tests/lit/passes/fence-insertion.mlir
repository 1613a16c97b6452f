// RUN: tessera-opt %s -ttgir-fence-insertion=fence-copies=true | FileCheck %s --check-prefixes=CHECK,COPIES
// RUN: tessera-opt %s -ttgir-fence-insertion | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#sh = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!view = !ttg.memdesc<64x64xf16, #sh, #smem>
!slot = !ttg.memdesc<64x64xf16, #sh, #smem, mutable>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// One fence for both buffers, in front of the barrier; none for a buffer that no product reads.
// CHECK-LABEL: @stores
// CHECK: ttg.local_alloc %arg0
// CHECK-NEXT: ttg.local_alloc %arg0
// CHECK-NEXT: ttng.fence_async_shared
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttng.warp_group_dot
// CHECK-NEXT: ttg.local_alloc
// CHECK-NEXT: ttg.local_load
// CHECK-NOT: fence
tt.func @stores(%x: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #mma>) {
  %a = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !view
  %v = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !view
  ttg.barrier local
  %d = ttng.warp_group_dot %a, %v, %c : !view * !view -> tensor<64x64xf32, #mma>
  %o = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !view
  %l = ttg.local_load %o : !view -> tensor<64x64xf16, #b>
  tt.return
}

// A ring filled by copies, and by stores in a branch.
// CHECK-LABEL: @ring
// CHECK: scf.for
// CHECK: ttg.async_wait
// COPIES-NEXT: ttng.fence_async_shared
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.async_copy_global_to_local
// CHECK-NEXT: ttng.warp_group_dot
// CHECK: scf.if
// CHECK-NEXT: ttg.local_store
// CHECK-NEXT: ttng.fence_async_shared {{{.*}}}
// CHECK-NEXT: }
// No product follows: no fence.
// CHECK: ttg.async_wait
// CHECK-NEXT: ttg.local_dealloc
tt.func @ring(%p: tensor<64x64x!tt.ptr<f16>, #b>, %x: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #mma>, %n: i32, %i: i32, %t: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16, #sh, #smem, mutable>
  %s = ttg.memdesc_index %r[%i] : !ttg.memdesc<3x64x64xf16, #sh, #smem, mutable> -> !slot
  %acc = scf.for %k = %c0 to %n step %c1 iter_args(%a = %c) -> (tensor<64x64xf32, #mma>) : i32 {
    %w = ttg.async_wait {num = 0 : i32}
    ttg.barrier local
    %q = ttg.async_copy_global_to_local %p, %s : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #sh, #smem, mutable>
    %d = ttng.warp_group_dot %s, %s, %a : !slot * !slot -> tensor<64x64xf32, #mma>
    scf.if %t {
      ttg.local_store %x, %s : tensor<64x64xf16, #b> -> !slot
    }
    scf.yield %d : tensor<64x64xf32, #mma>
  }
  %last = ttg.async_wait {num = 0 : i32}
  ttg.local_dealloc %r : !ttg.memdesc<3x64x64xf16, #sh, #smem, mutable>
  tt.return
}
}
