// Fragments through shared memory: ldmatrix and stmatrix where they take fewer instructions; parts of swizzled buffers; fp8.
// RUN: split-file %s %t
// RUN: tessera-translate %t/convert.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/convert.mlir
// RUN: tessera-translate %t/convert.mlir --target=cuda:sm_80 --emit=ptx | FileCheck %t/convert.mlir --check-prefix=SM80
// RUN: tessera-translate %t/taller.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/taller.mlir
// RUN: sed 's/order = .1, 0./order = [0, 1]/; s/.1, 8., threadsPerWarp = .4, 8./[8, 1], threadsPerWarp = [16, 2]/; s/.4, 1., order/[1, 4], order/' %t/taller.mlir | tessera-translate --target=cuda:sm_90a --emit=ptx | FileCheck %t/taller.mlir --check-prefix=COLUMNS
// RUN: tessera-translate %t/part.mlir --target=cuda:sm_80 --emit=ptx | FileCheck %t/part.mlir
// RUN: sed 's/FP8/f8E4M3FN/g' %t/fp8.mlir | tessera-translate --target=cuda:sm_89 --emit=ptx | FileCheck %s --check-prefix=E4M3
// RUN: sed 's/FP8/f8E5M2/g' %t/fp8.mlir | tessera-translate --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=E5M2
// RUN: sed 's/FP8/f8E5M2/g' %t/fp8.mlir | tessera-translate --target=cuda:sm_80 --emit=ptx | FileCheck %s --check-prefix=SOFT

// Two elements an instruction.
// E4M3: cvt.rn.f16x2.e4m3x2
// E4M3: cvt.rn.satfinite.e4m3x2.f32
// E5M2: cvt.rn.f16x2.e5m2x2
// E5M2: cvt.rn.satfinite.e5m2x2.f32
// SOFT-NOT: e5m2x2

//--- convert.mlir
// Accumulators as rows of 16 bytes: 32 elements a lane are 4 stores of 4 matrices, where sm_80 needs 16 of a word.
// CHECK-COUNT-4: stmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-NOT: st{{(matrix|.shared)}}
// CHECK: bar.sync 0;
// CHECK-COUNT-4: ld.shared.v4.b32
// CHECK-NOT: ld.shared
// SM80-NOT: stmatrix
// SM80-COUNT-16: st.shared.b32
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#rows = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @convert(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %column = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>>
    %row = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %i = tt.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<64x1xi32, #rows>
    %j = tt.expand_dims %column {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x64xi32, #rows>
    %width = arith.constant dense<64> : tensor<64x1xi32, #rows>
    %start = arith.muli %i, %width : tensor<64x1xi32, #rows>
    %starts = tt.broadcast %start : tensor<64x1xi32, #rows> -> tensor<64x64xi32, #rows>
    %columns = tt.broadcast %j : tensor<1x64xi32, #rows> -> tensor<64x64xi32, #rows>
    %at = arith.addi %starts, %columns : tensor<64x64xi32, #rows>
    %xs = tt.splat %x : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #mma>
    %v = tt.load %xs : tensor<64x64x!tt.ptr<f16>, #mma>
    %w = ttg.convert_layout %v : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #rows>
    %os = tt.splat %o : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #rows>
    %p = tt.addptr %os, %at : tensor<64x64x!tt.ptr<f16>, #rows>, tensor<64x64xi32, #rows>
    tt.store %p, %w : tensor<64x64x!tt.ptr<f16>, #rows>
    tt.return
  }
}

//--- taller.mlir
// Rows of two instructions: 8-byte stores of the same columns of both would take as many wavefronts, but twice the instructions.
// Stored by columns they are transposed on the way.
// CHECK-COUNT-8: stmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-NOT: st{{(matrix|.shared)}}
// CHECK: bar.sync 0;
// COLUMNS-COUNT-8: stmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// COLUMNS-NOT: st{{(matrix|.shared)}}
// COLUMNS: bar.sync 0;
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#wide = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @taller(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %xs = tt.splat %x : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>, #mma>
    %v = tt.load %xs : tensor<128x64x!tt.ptr<f16>, #mma>
    %w = ttg.convert_layout %v : tensor<128x64xf16, #mma> -> tensor<128x64xf16, #wide>
    %os = tt.splat %x : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>, #wide>
    tt.store %os, %w : tensor<128x64x!tt.ptr<f16>, #wide>
    tt.return
  }
}

//--- part.mlir
// Columns 16 to 31 of a swizzled buffer: the offset of the part meets bits of the swizzle: they are put together by xor.
// CHECK: {{x?}}or.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, 32;
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-NOT: ldmatrix
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @part(%o: !tt.ptr<f16>) {
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<16x64xf16, #shared, #smem, mutable>
    %view = ttg.memdesc_subslice %buffer[0, 16] : !ttg.memdesc<16x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<16x16xf16, #shared, #smem, mutable, 16x64>
    %v = ttg.local_load %view : !ttg.memdesc<16x16xf16, #shared, #smem, mutable, 16x64> -> tensor<16x16xf16, #a>
    %p = tt.splat %o : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>, #a>
    tt.store %p, %v : tensor<16x16x!tt.ptr<f16>, #a>
    tt.return
  }
}

//--- fp8.mlir
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @fp8(%x: !tt.ptr<FP8> {tt.divisibility = 16 : i32}, %o: !tt.ptr<FP8> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #b>
    %xs = tt.splat %x : !tt.ptr<FP8> -> tensor<128x!tt.ptr<FP8>, #b>
    %px = tt.addptr %xs, %i : tensor<128x!tt.ptr<FP8>, #b>, tensor<128xi32, #b>
    %v = tt.load %px : tensor<128x!tt.ptr<FP8>, #b>
    %f = tt.fp_to_fp %v : tensor<128xFP8, #b> -> tensor<128xf32, #b>
    %g = arith.addf %f, %f : tensor<128xf32, #b>
    %w = tt.fp_to_fp %g, rounding = rtne : tensor<128xf32, #b> -> tensor<128xFP8, #b>
    %os = tt.splat %o : !tt.ptr<FP8> -> tensor<128x!tt.ptr<FP8>, #b>
    %po = tt.addptr %os, %i : tensor<128x!tt.ptr<FP8>, #b>, tensor<128xi32, #b>
    tt.store %po, %w : tensor<128x!tt.ptr<FP8>, #b>
    tt.return
  }
}
