// Barriers on AMD GPUs. Those of the compiler order shared memory, and loads of global memory stay in flight; one that a
// program asks for orders global memory as well. On gfx11 and gfx12 a program's warps may lie under two first-level caches.
// RUN: split-file %s %t
// RUN: tessera-translate %t/asked.mlir --target=hip:gfx1100 --emit=amdgcn | FileCheck %t/asked.mlir --check-prefix=GFX11
// RUN: tessera-translate %t/asked.mlir --target=hip:gfx1201 --emit=amdgcn | FileCheck %t/asked.mlir --check-prefix=GFX12
// RUN: tessera-translate %t/asked.mlir --target=hip:gfx950 --emit=amdgcn | FileCheck %t/asked.mlir --check-prefix=GFX9
// RUN: tessera-translate %t/ttgir.mlir --target=hip:gfx1100 --emit=llir | FileCheck %t/ttgir.mlir

//--- asked.mlir
// GFX11-LABEL: asked:
// GFX11: global_store_b32
// GFX11: s_waitcnt_vscnt null, 0x0
// GFX11: s_barrier
// GFX11: buffer_gl0_inv
// GFX11: global_load_b32
//
// GFX12-LABEL: asked:
// GFX12: global_store_b32
// GFX12: s_wait_storecnt 0x0
// GFX12: s_barrier_signal -1
// GFX12: s_barrier_wait -1
// GFX12: global_inv scope:SCOPE_SE
// GFX12: global_load_b32
//
// GFX9-LABEL: asked:
// GFX9: global_store_dword
// GFX9: s_barrier
// GFX9: global_load_dword
tt.func public @asked(%x: !tt.ptr<i32>, %o: !tt.ptr<i32>) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %last = arith.constant dense<255> : tensor<256xi32>
  %back = arith.subi %last, %i : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
  %p = tt.addptr %xs, %i : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
  tt.store %p, %i : tensor<256x!tt.ptr<i32>>
  gpu.barrier
  %q = tt.addptr %xs, %back : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
  %v = tt.load %q : tensor<256x!tt.ptr<i32>>
  %os = tt.splat %o : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
  %op = tt.addptr %os, %i : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
  tt.store %op, %v : tensor<256x!tt.ptr<i32>>
  tt.return
}

//--- ttgir.mlir
// CHECK-LABEL: @orders(
// CHECK: fence syncscope("workgroup") release, {{.*}}!mmra
// CHECK-NEXT: {{.*}}call void @llvm.amdgcn.s.barrier()
// CHECK-NEXT: fence syncscope("workgroup") acquire, {{.*}}!mmra
// CHECK: fence syncscope("workgroup") release, !dbg !{{[0-9]+$}}
// CHECK-NEXT: {{.*}}call void @llvm.amdgcn.s.barrier()
// CHECK-NEXT: fence syncscope("workgroup") acquire, !dbg !{{[0-9]+$}}
// CHECK: fence syncscope("workgroup") release, !dbg !{{[0-9]+$}}
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @orders(%x: !tt.ptr<i32>) {
  %c = arith.constant 1 : i32
  tt.store %x, %c : !tt.ptr<i32>
  ttg.barrier local
  ttg.barrier local|global_write
  ttg.barrier global_read|global_write
  tt.return
}
}
