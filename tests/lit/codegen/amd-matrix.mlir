// MFMA and WMMA: one instruction for each tile of accumulators and each of its steps along k, with operands in the words
// that LDS has them in; and how transposed accumulators exchange A and B.
// RUN: split-file %s %t
// DEFINE: %{arch} =
// DEFINE: %{elt} =
// DEFINE: %{acc} = f32
// DEFINE: %{enc} =
// DEFINE: %{width} =
// DEFINE: %{lanes} = 64
// DEFINE: %{rows} = 16
// DEFINE: %{prec} = ieee
// DEFINE: %{code} = sed 's/ELT/%{elt}/g; s/ACC/%{acc}/g; s/ENC/%{enc}/; s/WIDTH/%{width}/g; s/LANES/%{lanes}/; s/ROWS/%{rows}/; s/PREC/%{prec}/' %t/tile.mlir | tessera-translate --target=hip:%{arch} --emit=amdgcn

// REDEFINE: %{arch} = gfx942
// REDEFINE: %{elt} = f16
// REDEFINE: %{enc} = amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 8], isTransposed = false}>
// REDEFINE: %{width} = 4
// RUN: %{code} | FileCheck %s --check-prefix=F16
// REDEFINE: %{elt} = bf16
// RUN: %{code} | FileCheck %s --check-prefix=BF16
// REDEFINE: %{elt} = f32
// REDEFINE: %{width} = 1
// REDEFINE: %{enc} = amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [16, 16, 4], isTransposed = true}>
// RUN: %{code} | FileCheck %s --check-prefix=F32
// REDEFINE: %{enc} = amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 4], isTransposed = true}>
// REDEFINE: %{prec} = tf32
// REDEFINE: %{width} = 2
// RUN: %{code} | FileCheck %s --check-prefix=XF32
// REDEFINE: %{prec} = ieee
// REDEFINE: %{elt} = i8
// REDEFINE: %{acc} = i32
// REDEFINE: %{width} = 8
// REDEFINE: %{enc} = amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 16], isTransposed = true}>
// RUN: %{code} | FileCheck %s --check-prefix=I8
// REDEFINE: %{elt} = f8E4M3FNUZ
// REDEFINE: %{acc} = f32
// RUN: %{code} | FileCheck %s --check-prefix=FNUZ4
// REDEFINE: %{elt} = f8E5M2FNUZ
// REDEFINE: %{enc} = amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [16, 16, 32], isTransposed = true}>
// RUN: %{code} | FileCheck %s --check-prefix=FNUZ5
// REDEFINE: %{elt} = i8
// REDEFINE: %{acc} = i32
// REDEFINE: %{arch} = gfx90a
// REDEFINE: %{width} = 4
// REDEFINE: %{enc} = amd_mfma<{version = 2, warpsPerCTA = [1, 1], instrShape = [32, 32, 8], isTransposed = true}>
// RUN: %{code} | FileCheck %s --check-prefix=I8OLD
// REDEFINE: %{elt} = f64
// REDEFINE: %{acc} = f64
// REDEFINE: %{width} = 1
// REDEFINE: %{enc} = amd_mfma<{version = 2, warpsPerCTA = [1, 1], instrShape = [16, 16, 4], isTransposed = true, elementBitWidth = 64}>
// RUN: %{code} | FileCheck %s --check-prefix=F64
// REDEFINE: %{arch} = gfx950
// REDEFINE: %{acc} = f32
// REDEFINE: %{elt} = bf16
// REDEFINE: %{width} = 8
// REDEFINE: %{enc} = amd_mfma<{version = 4, warpsPerCTA = [1, 1], instrShape = [32, 32, 16], isTransposed = true}>
// RUN: %{code} | FileCheck %s --check-prefix=WIDE
// REDEFINE: %{elt} = f8E5M2
// RUN: %{code} | FileCheck %s --check-prefix=BF8
// REDEFINE: %{arch} = gfx1100
// REDEFINE: %{lanes} = 32
// REDEFINE: %{rows} = 8
// REDEFINE: %{elt} = f16
// REDEFINE: %{width} = 16
// REDEFINE: %{enc} = amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [1, 1]}>
// RUN: %{code} | FileCheck %s --check-prefix=WMMA1
// REDEFINE: %{elt} = i8
// REDEFINE: %{acc} = i32
// RUN: %{code} | FileCheck %s --check-prefix=WMMA1I
// REDEFINE: %{arch} = gfx1201
// REDEFINE: %{width} = 8
// REDEFINE: %{enc} = amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = [1, 1]}>
// RUN: %{code} | FileCheck %s --check-prefix=WMMA2I
// REDEFINE: %{acc} = f32
// REDEFINE: %{elt} = f8E4M3FN
// RUN: %{code} | FileCheck %s --check-prefix=WMMA2F8
// REDEFINE: %{arch} = gfx1250
// REDEFINE: %{elt} = f16
// REDEFINE: %{enc} = amd_wmma<{version = 3, isTranspose = true, warpsPerCTA = [1, 1], instrShape = [16, 16, 32]}>
// RUN: %{code} | FileCheck %s --check-prefix=WMMA3

// 32 x 32 of 32 along k. The second step adds to the results of the first.
// Four elements of a lane at a time, two such reads in one.
// F16: ds_read2_b64
// F16: v_mfma_f32_32x32x8_f16 [[D:[av]\[[0-9]+:[0-9]+\]]], v[{{[0-9]+:[0-9]+}}], v[{{[0-9]+:[0-9]+}}], [[C:.*]]
// F16: v_mfma_f32_32x32x8_f16 [[D]], v[{{[0-9]+:[0-9]+}}], v[{{[0-9]+:[0-9]+}}], [[D]]
// F16-COUNT-2: v_mfma_f32_32x32x8_f16
// F16-NOT: v_mfma
// BF16-COUNT-4: v_mfma_f32_32x32x8_bf16
// BF16-NOT: v_mfma
// F32-COUNT-32: v_mfma_f32_16x16x4_f32
// F32-NOT: v_mfma
// XF32-COUNT-8: v_mfma_f32_32x32x4_xf32
// XF32-NOT: v_mfma
// I8-COUNT-2: v_mfma_i32_32x32x16_i8
// I8-NOT: v_mfma
// FNUZ4-COUNT-2: v_mfma_f32_32x32x16_fp8_fp8
// FNUZ4-NOT: v_mfma
// FNUZ5-COUNT-4: v_mfma_f32_16x16x32_bf8_bf8
// FNUZ5-NOT: v_mfma
// I8OLD-COUNT-4: v_mfma_i32_32x32x8i8
// I8OLD-NOT: v_mfma
// F64-COUNT-32: v_mfma_f64_16x16x4f64
// F64-NOT: v_mfma
// WIDE-COUNT-2: v_mfma_f32_32x32x16_bf16
// WIDE-NOT: v_mfma
// BF8-COUNT-2: v_mfma_f32_32x32x16_bf8_bf8
// BF8-NOT: v_mfma
// WMMA1-COUNT-8: v_wmma_f32_16x16x16_f16 v[{{[0-9]+:[0-9]+}}], v[{{[0-9]+:[0-9]+}}], v[{{[0-9]+:[0-9]+}}]
// WMMA1-NOT: v_wmma
// Both operands are signed.
// WMMA1I-COUNT-8: v_wmma_i32_16x16x16_iu8 {{.*}} neg_lo:[1,1,0]
// WMMA1I-NOT: v_wmma
// WMMA2I-COUNT-8: v_wmma_i32_16x16x16_iu8 {{.*}} neg_lo:[1,1,0]
// WMMA2I-NOT: v_wmma
// WMMA2F8-COUNT-8: v_wmma_f32_16x16x16_fp8_fp8
// WMMA2F8-NOT: v_wmma
// WMMA3-COUNT-4: v_wmma_f32_16x16x32_f16
// WMMA3-NOT: v_wmma

//--- tile.mlir
#acc = #ttg.ENC
#a = #ttg.dot_op<{opIdx = 0, parent = #acc, kWidth = WIDTH}>
#b = #ttg.dot_op<{opIdx = 1, parent = #acc, kWidth = WIDTH}>
#values = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [ROWS, 4], warpsPerCTA = [1, 1], order = [1, 0]}>
#k = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#kb = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = LANES : i32} {
  tt.func public @tile(%in: !tt.ptr<ELT> {tt.divisibility = 16 : i32}, %out: !tt.ptr<ACC>) {
    %vc = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #values}>>
    %vr = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #values}>>
    %vj = tt.expand_dims %vc {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #values}>> -> tensor<1x32xi32, #values>
    %vi = tt.expand_dims %vr {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #values}>> -> tensor<32x1xi32, #values>
    %c64 = arith.constant dense<64> : tensor<32x1xi32, #values>
    %vs = arith.muli %vi, %c64 : tensor<32x1xi32, #values>
    %vp = tt.splat %in : !tt.ptr<ELT> -> tensor<32x1x!tt.ptr<ELT>, #values>
    %vq = tt.addptr %vp, %vs : tensor<32x1x!tt.ptr<ELT>, #values>, tensor<32x1xi32, #values>
    %ve = tt.broadcast %vq : tensor<32x1x!tt.ptr<ELT>, #values> -> tensor<32x32x!tt.ptr<ELT>, #values>
    %vk = tt.broadcast %vj : tensor<1x32xi32, #values> -> tensor<32x32xi32, #values>
    %vl = tt.addptr %ve, %vk : tensor<32x32x!tt.ptr<ELT>, #values>, tensor<32x32xi32, #values>
    %v = tt.load %vl : tensor<32x32x!tt.ptr<ELT>, #values>
    %x = ttg.local_alloc %v : (tensor<32x32xELT, #values>) -> !ttg.memdesc<32x32xELT, #k, #smem>
    %y = ttg.local_alloc %v : (tensor<32x32xELT, #values>) -> !ttg.memdesc<32x32xELT, #kb, #smem>
    %a = ttg.local_load %x : !ttg.memdesc<32x32xELT, #k, #smem> -> tensor<32x32xELT, #a>
    %b = ttg.local_load %y : !ttg.memdesc<32x32xELT, #kb, #smem> -> tensor<32x32xELT, #b>
    %column = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #acc}>>
    %row = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #acc}>>
    %i = tt.expand_dims %row {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #acc}>> -> tensor<32x1xi32, #acc>
    %j = tt.expand_dims %column {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #acc}>> -> tensor<1x32xi32, #acc>
    %starts = tt.splat %out : !tt.ptr<ACC> -> tensor<32x1x!tt.ptr<ACC>, #acc>
    %width = arith.constant dense<32> : tensor<32x1xi32, #acc>
    %down = arith.muli %i, %width : tensor<32x1xi32, #acc>
    %rows = tt.addptr %starts, %down : tensor<32x1x!tt.ptr<ACC>, #acc>, tensor<32x1xi32, #acc>
    %q = tt.broadcast %rows : tensor<32x1x!tt.ptr<ACC>, #acc> -> tensor<32x32x!tt.ptr<ACC>, #acc>
    %s = tt.broadcast %j : tensor<1x32xi32, #acc> -> tensor<32x32xi32, #acc>
    %p = tt.addptr %q, %s : tensor<32x32x!tt.ptr<ACC>, #acc>, tensor<32x32xi32, #acc>
    %c = tt.load %p : tensor<32x32x!tt.ptr<ACC>, #acc>
    %d = tt.dot %a, %b, %c, inputPrecision = PREC : tensor<32x32xELT, #a> * tensor<32x32xELT, #b> -> tensor<32x32xACC, #acc>
    tt.store %p, %d : tensor<32x32x!tt.ptr<ACC>, #acc>
    tt.return
  }
}
