// Copies from global memory to LDS on gfx950: 16 bytes a lane, from where the swizzle wants them; zeros from a page of zeros,
// so that every copy is issued; and waits for so many copies as the groups that may be pending hold.
// RUN: split-file %s %t
// RUN: tessera-translate %t/two.mlir --target=hip:gfx950 --emit=amdgcn | FileCheck %t/two.mlir
// RUN: tessera-translate %t/two.mlir --target=cpu:emulate=gfx950 --emit=llir | FileCheck %t/two.mlir --check-prefix=CPU
// RUN: not tessera-translate %t/two.mlir --target=hip:gfx942 2>&1 | FileCheck %t/two.mlir --check-prefix=NONE
// RUN: sed 's/#pointers = .*/#pointers = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [1, 1], order = [1, 0]}>/' %t/two.mlir > %t/mixed.mlir
// RUN: not tessera-translate %t/mixed.mlir --target=hip:gfx950 2>&1 | FileCheck %t/two.mlir --check-prefix=MIXED
// RUN: not tessera-translate %t/mixed.mlir --target=cpu:emulate=gfx950 2>&1 | FileCheck %t/two.mlir --check-prefix=MIXED

//--- two.mlir
// NONE: two.mlir:{{[0-9]+}}:{{.*}}'ttg.async_copy_global_to_local' op copies 16 bytes at a time, but the target has no asynchronous copies
// MIXED: mixed.mlir:{{[0-9]+}}:{{.*}}has a layout whose lanes do not write 4 or 16 bytes each, one beside the other
// Two registers of 8 rows each make two copies; M0 is where the wavefront's first lane writes.
// CHECK: s_{{mov|add|movk}}{{.*}} m0
// CHECK: global_load_lds_dwordx4 v[{{[0-9]+:[0-9]+}}], off
// CHECK: global_load_lds_dwordx4
// The second group's are masked: their lanes read zeros.
// CHECK: v_cndmask_b32
// CHECK: global_load_lds_dwordx4
// CHECK: global_load_lds_dwordx4
// CHECK-NOT: global_load_lds
// The older group has arrived when two copies are pending.
// CHECK: s_waitcnt vmcnt(2)
// CHECK-NOT: vmcnt(0)
// CHECK: ds_read_b128
// CHECK: s_waitcnt vmcnt(0)
// CHECK: ds_read_b128
// CPU: call void @tessera_cpu_copy_wait(ptr %ctx, i32 2)
// CPU: call void @tessera_cpu_copy_wait(ptr %ctx, i32 0)
#pointers = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [8, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]], warp = [], block = []}>
#values = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 64 : i32} {
  tt.func public @two(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %wanted: i1) {
    %column = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #pointers}>>
    %row = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #pointers}>>
    %i = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #pointers}>> -> tensor<16x1xi32, #pointers>
    %j = tt.expand_dims %column {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #pointers}>> -> tensor<1x64xi32, #pointers>
    %width = arith.constant dense<64> : tensor<16x1xi32, #pointers>
    %start = arith.muli %i, %width : tensor<16x1xi32, #pointers>
    %xs = tt.splat %x : !tt.ptr<f16> -> tensor<16x1x!tt.ptr<f16>, #pointers>
    %rows = tt.addptr %xs, %start : tensor<16x1x!tt.ptr<f16>, #pointers>, tensor<16x1xi32, #pointers>
    %q = tt.broadcast %rows : tensor<16x1x!tt.ptr<f16>, #pointers> -> tensor<16x64x!tt.ptr<f16>, #pointers>
    %k = tt.broadcast %j : tensor<1x64xi32, #pointers> -> tensor<16x64xi32, #pointers>
    %p = tt.addptr %q, %k : tensor<16x64x!tt.ptr<f16>, #pointers>, tensor<16x64xi32, #pointers>
    %mask = tt.splat %wanted : i1 -> tensor<16x64xi1, #pointers>
    %a = ttg.local_alloc : () -> !ttg.memdesc<16x64xf16, #shared, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<16x64xf16, #shared, #smem, mutable>
    %t = ttg.async_copy_global_to_local %p, %a : tensor<16x64x!tt.ptr<f16>, #pointers> -> !ttg.memdesc<16x64xf16, #shared, #smem, mutable>
    %g = ttg.async_commit_group tokens %t
    %u = ttg.async_copy_global_to_local %p, %b mask %mask : tensor<16x64x!tt.ptr<f16>, #pointers> -> !ttg.memdesc<16x64xf16, #shared, #smem, mutable>
    %h = ttg.async_commit_group tokens %u
    %w = ttg.async_wait %g {num = 1 : i32}
    %v = ttg.local_load %a token %w : !ttg.memdesc<16x64xf16, #shared, #smem, mutable> -> tensor<16x64xf16, #values>
    %z = ttg.async_wait %h {num = 0 : i32}
    %y = ttg.local_load %b token %z : !ttg.memdesc<16x64xf16, #shared, #smem, mutable> -> tensor<16x64xf16, #values>
    %sum = arith.addf %v, %y : tensor<16x64xf16, #values>
    %oc = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #values}>>
    %oj = tt.expand_dims %oc {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #values}>> -> tensor<1x64xi32, #values>
    %ok = tt.broadcast %oj : tensor<1x64xi32, #values> -> tensor<16x64xi32, #values>
    %os = tt.splat %o : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #values>
    %op = tt.addptr %os, %ok : tensor<16x64x!tt.ptr<f16>, #values>, tensor<16x64xi32, #values>
    tt.store %op, %sum : tensor<16x64x!tt.ptr<f16>, #values>
    tt.return
  }
}
