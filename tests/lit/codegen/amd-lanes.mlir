// Exchanges between lanes, reductions, barriers and shared memory on AMD GPUs.
// RUN: split-file %s %t
// RUN: tessera-translate %t/sum.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/sum.mlir --check-prefix=WAVE64
// RUN: tessera-translate %t/sum.mlir --target=hip:gfx1100 --emit=amdgcn | FileCheck %t/sum.mlir --check-prefix=WAVE32
// RUN: tessera-translate %t/sum.mlir --target=hip:gfx1201 --emit=amdgcn | FileCheck %t/sum.mlir --check-prefix=GFX12
// RUN: tessera-translate %t/sum.mlir --target=hip:gfx942 --num-warps=1 --emit=amdgcn | FileCheck %t/sum.mlir --check-prefix=ONE
// RUN: tessera-translate %t/sum.mlir --target=hip:gfx942 --emit=llir | FileCheck %t/sum.mlir --check-prefix=LLIR
// RUN: tessera-translate %t/argmax.mlir --target=hip:gfx90a --num-warps=1 --emit=amdgcn | FileCheck %t/argmax.mlir
// RUN: tessera-translate %t/columns.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/columns.mlir --check-prefix=WAVE64
// RUN: tessera-translate %t/columns.mlir --target=hip:gfx950 --emit=amdgcn | FileCheck %t/columns.mlir --check-prefix=SWAP
// RUN: tessera-translate %t/columns.mlir --target=hip:gfx1100 --emit=amdgcn | FileCheck %t/columns.mlir --check-prefix=WAVE32

//--- sum.mlir
// A sum over a warp: near lanes first, each exchange a part of the addition; the last two steps only bring rows to the last
// lane, from which the result goes to scalar registers. Then warps through shared memory, of static size.
// WAVE64-LABEL: sum:
// WAVE64: global_load_dwordx4
// WAVE64-NOT: ds_bpermute
// WAVE64: v_add_f32_dpp {{.*}} quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
// WAVE64: v_add_f32_dpp {{.*}} quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
// WAVE64: v_add_f32_dpp {{.*}} row_half_mirror row_mask:0xf bank_mask:0xf
// WAVE64: v_add_f32_dpp {{.*}} row_ror:8 row_mask:0xf bank_mask:0xf
// WAVE64: v_add_f32_dpp {{.*}} row_bcast:15 row_mask:0xf bank_mask:0xf
// WAVE64: v_add_f32_dpp {{.*}} row_bcast:31 row_mask:0xf bank_mask:0xf
// WAVE64: v_readlane_b32 s{{[0-9]+}}, v{{[0-9]+}}, 63
// WAVE64: ds_write_b32
// WAVE64: s_barrier
// WAVE64: ds_read_b128
// WAVE64-NOT: s_barrier
// WAVE64: s_endpgm
// WAVE64: .group_segment_fixed_size: 16
//
// WAVE32-LABEL: sum:
// WAVE32: v_add_f32_dpp {{.*}} row_xmask:1
// WAVE32: v_add_f32_dpp {{.*}} row_xmask:2
// WAVE32: v_add_f32_dpp {{.*}} row_xmask:4
// WAVE32: v_add_f32_dpp {{.*}} row_xmask:8
// WAVE32: v_permlanex16_b32
// WAVE32: ds_store_b32
// WAVE32: s_barrier
// WAVE32: ds_load_b128
//
// GFX12-LABEL: sum:
// GFX12: ds_store_b32
// GFX12: s_barrier_signal -1
// GFX12: s_barrier_wait
// GFX12: ds_load_b128
//
// ONE-LABEL: sum:
// ONE-NOT: {{ds_|s_barrier}}
// ONE: .group_segment_fixed_size: 0
//
// What a barrier orders is shared memory alone.
// LLIR: @shared_memory = external {{.*}}addrspace(3) global [0 x i8], align 16
// LLIR: fence syncscope("workgroup") release, {{.*}}!mmra [[LOCAL:![0-9]+]]
// LLIR-NEXT: call void @llvm.amdgcn.s.barrier()
// LLIR-NEXT: fence syncscope("workgroup") acquire, {{.*}}!mmra [[LOCAL]]
// LLIR: [[LOCAL]] = !{!"amdgpu-synchronize-as", !"local"}
tt.func public @sum(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 4096 : i32} : tensor<4096xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<4096x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<4096x!tt.ptr<f32>>, tensor<4096xi32>
  %v = tt.load %p : tensor<4096x!tt.ptr<f32>>
  %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%l: f32, %r: f32):
    %t = arith.addf %l, %r : f32
    tt.reduce.return %t : f32
  }) : (tensor<4096xf32>) -> f32
  tt.store %y, %s : !tt.ptr<f32>
  tt.return
}

//--- argmax.mlir
// Two values that go together, by the same exchanges.
// CHECK-LABEL: argmax:
// CHECK-NOT: {{ds_bpermute|ds_swizzle}}
// CHECK: v_mov_b32_dpp {{.*}} row_bcast:31
// CHECK: v_readlane_b32 s{{[0-9]+}}, v{{[0-9]+}}, 63
tt.func public @argmax(%x: !tt.ptr<f32>, %y: !tt.ptr<i32>) {
  %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %v = tt.load %p : tensor<64x!tt.ptr<f32>>
  %m:2 = "tt.reduce"(%v, %i) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %ai: i32, %c: f32, %ci: i32):
    %gt = arith.cmpf ogt, %a, %c : f32
    %eq = arith.cmpf oeq, %a, %c : f32
    %lt = arith.cmpi slt, %ai, %ci : i32
    %tie = arith.andi %eq, %lt : i1
    %first = arith.ori %gt, %tie : i1
    %best = arith.select %first, %a, %c : f32
    %at = arith.select %first, %ai, %ci : i32
    tt.reduce.return %best, %at : f32, i32
  }) : (tensor<64xf32>, tensor<64xi32>) -> (f32, i32)
  tt.store %y, %m#1 : !tt.ptr<i32>
  tt.return
}

//--- columns.mlir
// Lanes 16 and 32 apart only: no last lane has all, so each gets its partner's value.
// WAVE64-LABEL: columns:
// WAVE64: ds_swizzle_b32 {{.*}} offset:swizzle(SWAP,16)
// WAVE64: ds_bpermute_b32
// SWAP-LABEL: columns:
// SWAP: ds_swizzle_b32 {{.*}} offset:swizzle(SWAP,16)
// SWAP: v_permlane32_swap_b32
// WAVE32-LABEL: columns:
// WAVE32: v_permlanex16_b32
tt.func public @columns(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %c = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %r1 = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %w = arith.constant dense<16> : tensor<16x1xi32>
  %rw = arith.muli %r1, %w : tensor<16x1xi32>
  %rb = tt.broadcast %rw : tensor<16x1xi32> -> tensor<16x16xi32>
  %c1 = tt.expand_dims %c {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %cb = tt.broadcast %c1 : tensor<1x16xi32> -> tensor<16x16xi32>
  %at = arith.addi %rb, %cb : tensor<16x16xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %p = tt.addptr %xs, %at : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
  %v = tt.load %p : tensor<16x16x!tt.ptr<f32>>
  %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%l: f32, %rr: f32):
    %t = arith.addf %l, %rr : f32
    tt.reduce.return %t : f32
  }) : (tensor<16x16xf32>) -> tensor<16xf32>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %q = tt.addptr %ys, %c : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  tt.store %q, %s : tensor<16x!tt.ptr<f32>>
  tt.return
}
