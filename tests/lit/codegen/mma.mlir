// mma.sync: one instruction for 16 x 8 results, for every element type; elements that a small tile lacks are zeros.
// RUN: split-file %s %t
// RUN: sed 's/ELT/f16/g; s/ACC/f32/g; s/WIDTH/2/g; s/PREC/ieee/' %t/types.mlir | tessera-translate --target=cuda:sm_80 --emit=ptx | FileCheck %s --check-prefixes=PTX74,F16
// RUN: sed 's/ELT/bf16/g; s/ACC/f32/g; s/WIDTH/2/g; s/PREC/ieee/' %t/types.mlir | tessera-translate --target=cuda:sm_80 --emit=ptx | FileCheck %s --check-prefixes=PTX74,BF16
// RUN: sed 's/ELT/f32/g; s/ACC/f32/g; s/WIDTH/1/g; s/PREC/tf32/' %t/types.mlir | tessera-translate --target=cuda:sm_80 --emit=ptx | FileCheck %s --check-prefixes=PTX74,TF32
// RUN: sed 's/ELT/f64/g; s/ACC/f64/g; s/WIDTH/1/g; s/PREC/ieee/' %t/types.mlir | tessera-translate --target=cuda:sm_80 --emit=ptx | FileCheck %s --check-prefixes=PTX74,F64
// RUN: sed 's/ELT/f64/g; s/ACC/f64/g; s/WIDTH/2/g; s/PREC/ieee/' %t/types.mlir | tessera-translate --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=F64-90
// RUN: sed 's/ELT/f64/g; s/ACC/f64/g; s/WIDTH/1/g; s/PREC/ieee/' %t/types.mlir | tessera-translate --target=cuda:sm_100a --emit=ptx | FileCheck %s --check-prefix=F64
// RUN: tessera-translate %t/rows.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/rows.mlir
// RUN: sed 's/ELT/i8/g; s/ACC/i32/g; s/WIDTH/4/g; s/PREC/ieee/' %t/types.mlir | tessera-translate --target=cuda:sm_80 --emit=ptx | FileCheck %s --check-prefixes=PTX74,S8
// RUN: sed 's/ELT/f8E4M3FN/g; s/ACC/f32/g; s/WIDTH/4/g; s/PREC/ieee/' %t/types.mlir | tessera-translate --target=cuda:sm_89 --emit=ptx | FileCheck %s --check-prefixes=PTX84,E4M3
// RUN: sed 's/ELT/f8E5M2/g; s/ACC/f32/g; s/WIDTH/4/g; s/PREC/ieee/' %t/types.mlir | tessera-translate --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefixes=PTX84,E5M2
// RUN: tessera-translate %t/small.mlir --target=cuda:sm_80 --emit=ptx | FileCheck %t/small.mlir
// RUN: tessera-translate %t/tiles.mlir --target=cuda:sm_80 --emit=llir | FileCheck %t/tiles.mlir
// RUN: not tessera-translate %t/misfit.mlir --target=cuda:sm_80 2>&1 | FileCheck %t/misfit.mlir

// The version is the lowest that has the instruction.
// PTX74: .version 7.4
// PTX84: .version 8.4
// A tile of 16 x 32 by 32 x 8: 32 / k instructions, the next one adding to the results of the last.
// F16: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {[[D:%r[0-9]+, %r[0-9]+, %r[0-9]+, %r[0-9]+]]}, {%r{{[0-9]+}}, %r{{[0-9]+}}, %r{{[0-9]+}}, %r{{[0-9]+}}}, {%r{{[0-9]+}}, %r{{[0-9]+}}},
// F16: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{.*}}, {[[D]]};
// F16-NOT: mma.sync
// BF16-COUNT-2: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// BF16-NOT: mma.sync
// TF32-COUNT-4: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
// TF32-NOT: mma.sync
// Two halves of 8 rows, in steps of 4.
// F64-COUNT-16: mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%rd{{[0-9]+}}, %rd{{[0-9]+}}}, {%rd{{[0-9]+}}}, {%rd{{[0-9]+}}}, {%rd{{[0-9]+}}, %rd{{[0-9]+}}};
// F64-NOT: mma.sync
// sm_90 has one instruction for both halves, four steps deep. The accumulators of the second are the results of the first.
// F64-90: mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {[[D:%rd[0-9]+, %rd[0-9]+, %rd[0-9]+, %rd[0-9]+]]}, {{{(%rd[0-9]+, ){7}%rd[0-9]+}}}, {{{(%rd[0-9]+, ){3}%rd[0-9]+}}},
// F64-90: mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {{.*}}, {[[D]]};
// F64-90-NOT: mma.sync
// S8-COUNT-1: mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
// S8-NOT: mma.sync
// E4M3-COUNT-1: mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32
// E5M2-COUNT-1: mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32

//--- types.mlir
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = WIDTH}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = WIDTH}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @types(%out: !tt.ptr<ACC>) {
    %x = ttg.local_alloc : () -> !ttg.memdesc<16x32xELT, #shared, #smem, mutable>
    %y = ttg.local_alloc : () -> !ttg.memdesc<32x8xELT, #shared, #smem, mutable>
    %a = ttg.local_load %x : !ttg.memdesc<16x32xELT, #shared, #smem, mutable> -> tensor<16x32xELT, #a>
    %b = ttg.local_load %y : !ttg.memdesc<32x8xELT, #shared, #smem, mutable> -> tensor<32x8xELT, #b>
    %column = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #ttg.slice<{dim = 0, parent = #mma}>>
    %row = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #mma}>>
    %i = tt.expand_dims %row {axis = 1 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #mma}>> -> tensor<16x1xi32, #mma>
    %j = tt.expand_dims %column {axis = 0 : i32} : tensor<8xi32, #ttg.slice<{dim = 0, parent = #mma}>> -> tensor<1x8xi32, #mma>
    %starts = tt.splat %out : !tt.ptr<ACC> -> tensor<16x1x!tt.ptr<ACC>, #mma>
    %rows = tt.addptr %starts, %i : tensor<16x1x!tt.ptr<ACC>, #mma>, tensor<16x1xi32, #mma>
    %q = tt.broadcast %rows : tensor<16x1x!tt.ptr<ACC>, #mma> -> tensor<16x8x!tt.ptr<ACC>, #mma>
    %k = tt.broadcast %j : tensor<1x8xi32, #mma> -> tensor<16x8xi32, #mma>
    %p = tt.addptr %q, %k : tensor<16x8x!tt.ptr<ACC>, #mma>, tensor<16x8xi32, #mma>
    %c = tt.load %p : tensor<16x8x!tt.ptr<ACC>, #mma>
    %d = tt.dot %a, %b, %c, inputPrecision = PREC : tensor<16x32xELT, #a> * tensor<32x8xELT, #b> -> tensor<16x8xACC, #mma>
    tt.store %p, %d : tensor<16x8x!tt.ptr<ACC>, #mma>
    tt.return
  }
}

//--- rows.mlir
// A tile of eight rows has no use for 16; nor has one of depth 4 for 16 (the second product).
// CHECK-LABEL: .entry rows(
// CHECK-COUNT-4: mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64
// CHECK: mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64
// CHECK-NOT: mma.sync
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @rows(%in: !tt.ptr<f64>, %out: !tt.ptr<f64>) {
    %pa = tt.splat %in : !tt.ptr<f64> -> tensor<8x16x!tt.ptr<f64>, #a>
    %pb = tt.splat %in : !tt.ptr<f64> -> tensor<16x8x!tt.ptr<f64>, #b>
    %pc = tt.splat %out : !tt.ptr<f64> -> tensor<8x8x!tt.ptr<f64>, #mma>
    %a = tt.load %pa : tensor<8x16x!tt.ptr<f64>, #a>
    %b = tt.load %pb : tensor<16x8x!tt.ptr<f64>, #b>
    %c = tt.load %pc : tensor<8x8x!tt.ptr<f64>, #mma>
    %d = tt.dot %a, %b, %c : tensor<8x16xf64, #a> * tensor<16x8xf64, #b> -> tensor<8x8xf64, #mma>
    tt.store %pc, %d : tensor<8x8x!tt.ptr<f64>, #mma>
    %px = tt.splat %in : !tt.ptr<f64> -> tensor<16x4x!tt.ptr<f64>, #a>
    %py = tt.splat %in : !tt.ptr<f64> -> tensor<4x8x!tt.ptr<f64>, #b>
    %pz = tt.splat %out : !tt.ptr<f64> -> tensor<16x8x!tt.ptr<f64>, #mma>
    %x = tt.load %px : tensor<16x4x!tt.ptr<f64>, #a>
    %y = tt.load %py : tensor<4x8x!tt.ptr<f64>, #b>
    %z = tt.load %pz : tensor<16x8x!tt.ptr<f64>, #mma>
    %e = tt.dot %x, %y, %z : tensor<16x4xf64, #a> * tensor<4x8xf64, #b> -> tensor<16x8xf64, #mma>
    tt.store %pz, %e : tensor<16x8x!tt.ptr<f64>, #mma>
    tt.return
  }
}

//--- small.mlir
// 4 x 4 by 4 x 2: rows 8 on are zeros, and so is k from 8 on; of the lanes along k, half hold copies that must not count.
// CHECK-LABEL: .entry small(
// CHECK: setp.eq.b32 [[FIRST:%p[0-9]+]], %r{{[0-9]+}}, 0;
// CHECK-NOT: setp
// CHECK: selp.b32 [[A:%r[0-9]+]], %r{{[0-9]+}}, 0, [[FIRST]];
// CHECK: selp.b32 [[B:%r[0-9]+]], %r{{[0-9]+}}, 0, [[FIRST]];
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{.*}}}, {[[A]], [[ZERO:%r[0-9]+]], [[ZERO]], [[ZERO]]}, {[[B]], [[ZERO]]}, {
// CHECK-NOT: mma.sync
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @small(%out: !tt.ptr<f32>) {
    %x = ttg.local_alloc : () -> !ttg.memdesc<4x4xf16, #shared, #smem, mutable>
    %y = ttg.local_alloc : () -> !ttg.memdesc<4x2xf16, #shared, #smem, mutable>
    %a = ttg.local_load %x : !ttg.memdesc<4x4xf16, #shared, #smem, mutable> -> tensor<4x4xf16, #a>
    %b = ttg.local_load %y : !ttg.memdesc<4x2xf16, #shared, #smem, mutable> -> tensor<4x2xf16, #b>
    %p = tt.splat %out : !tt.ptr<f32> -> tensor<4x2x!tt.ptr<f32>, #mma>
    %c = tt.load %p : tensor<4x2x!tt.ptr<f32>, #mma>
    %d = tt.dot %a, %b, %c : tensor<4x4xf16, #a> * tensor<4x2xf16, #b> -> tensor<4x2xf32, #mma>
    tt.store %p, %d : tensor<4x2x!tt.ptr<f32>, #mma>
    tt.return
  }
}

//--- tiles.mlir
// A batch of two products of 32 x 16 by 16 x 32, each of its own warp: 2 x 4 instructions a warp. Operands come by ldmatrix, B,
// whose columns are not contiguous, transposed; their words are multiplied as they came.
// CHECK-LABEL: define ptx_kernel void @tiles(
// CHECK-COUNT-2: call { i32, i32, i32, i32 } @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(
// CHECK-COUNT-2: call { i32, i32, i32, i32 } @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3(
// CHECK-NOT: ldmatrix
// CHECK-NOT: bitcast
// CHECK-COUNT-8: call %f32x4 asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK-NOT: mma.sync
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 1, 1], instrShape = [1, 16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 4, maxPhase = 2, order = [2, 1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 2 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @tiles(%out: !tt.ptr<f32>) {
    %x = ttg.local_alloc : () -> !ttg.memdesc<2x32x16xbf16, #shared, #smem, mutable>
    %y = ttg.local_alloc : () -> !ttg.memdesc<2x16x32xbf16, #shared, #smem, mutable>
    %a = ttg.local_load %x : !ttg.memdesc<2x32x16xbf16, #shared, #smem, mutable> -> tensor<2x32x16xbf16, #a>
    %b = ttg.local_load %y : !ttg.memdesc<2x16x32xbf16, #shared, #smem, mutable> -> tensor<2x16x32xbf16, #b>
    %c = arith.constant dense<0.0> : tensor<2x32x32xf32, #mma>
    %d = tt.dot %a, %b, %c : tensor<2x32x16xbf16, #a> * tensor<2x16x32xbf16, #b> -> tensor<2x32x32xf32, #mma>
    %p = tt.splat %out : !tt.ptr<f32> -> tensor<2x32x32x!tt.ptr<f32>, #mma>
    tt.store %p, %d : tensor<2x32x32x!tt.ptr<f32>, #mma>
    tt.return
  }
}

//--- misfit.mlir
// CHECK: misfit.mlir:[[#@LINE+10]]:10: codegen error: 'tt.dot' op has element types or a precision that no matrix instruction takes
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @misfit(%out: !tt.ptr<f32>) {
    %a = arith.constant dense<1.0> : tensor<16x8xf32, #a>
    %b = arith.constant dense<1.0> : tensor<8x8xf32, #b>
    %c = arith.constant dense<0.0> : tensor<16x8xf32, #mma>
    // f32 as it is has no instruction.
    %d = tt.dot %a, %b, %c : tensor<16x8xf32, #a> * tensor<8x8xf32, #b> -> tensor<16x8xf32, #mma>
    %p = tt.splat %out : !tt.ptr<f32> -> tensor<16x8x!tt.ptr<f32>, #mma>
    tt.store %p, %d : tensor<16x8x!tt.ptr<f32>, #mma>
    tt.return
  }
}
