// Products of two formats on gfx942: which is A's decides the instruction, and accumulators that are kept transposed take
// the operands in the other order. OCP's are multiplied as f16, and so are a fnuz and an OCP.
// RUN: sed 's/TA/f8E4M3FNUZ/g; s/TB/f8E5M2FNUZ/g' %s | tessera-translate --target=hip:gfx942 --num-warps=1 --emit=amdgcn | FileCheck %s --check-prefix=E4E5
// RUN: sed 's/TA/f8E5M2FNUZ/g; s/TB/f8E4M3FNUZ/g' %s | tessera-translate --target=hip:gfx942 --num-warps=1 --emit=amdgcn | FileCheck %s --check-prefix=E5E4
// RUN: sed 's/TA/f8E4M3FNUZ/g; s/TB/f8E4M3FN/g' %s | tessera-translate --target=hip:gfx942 --num-warps=1 --emit=amdgcn | FileCheck %s --check-prefix=MIXED
// RUN: sed 's/TA/f8E5M2FNUZ/g; s/TB/f8E4M3FNUZ/g' %s | tessera-translate --target=hip:gfx90a --num-warps=1 --emit=amdgcn | FileCheck %s --check-prefix=GFX90A
// RUN: sed 's/TA/f8E4M3FNUZ/g; s/TB/f8E4M3FNUZ/g' %s | tessera-translate --target=hip:gfx1201 --num-warps=1 --emit=amdgcn | FileCheck %s --check-prefix=GFX12

// E4E5-COUNT-2: v_mfma_f32_32x32x16_bf8_fp8
// E4E5-NOT: v_mfma
// E5E4-COUNT-2: v_mfma_f32_32x32x16_fp8_bf8
// E5E4-NOT: v_mfma
// MIXED-COUNT-4: v_mfma_f32_32x32x8_f16
// MIXED-NOT: v_mfma
// GFX90A-COUNT-4: v_mfma_f32_32x32x8{{_?}}bf16_1k
// GFX90A-NOT: v_mfma
// GFX12-COUNT-8: v_wmma_f32_16x16x16_f16
// GFX12-NOT: v_wmma
tt.func public @product(%A: !tt.ptr<TA> {tt.divisibility = 16 : i32}, %B: !tt.ptr<TB> {tt.divisibility = 16 : i32}, %C: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %r0 = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %c0 = tt.expand_dims %r {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %w = arith.constant dense<32> : tensor<32x1xi32>
  %r1 = arith.muli %r0, %w : tensor<32x1xi32>
  %r2 = tt.broadcast %r1 : tensor<32x1xi32> -> tensor<32x32xi32>
  %c2 = tt.broadcast %c0 : tensor<1x32xi32> -> tensor<32x32xi32>
  %at = arith.addi %r2, %c2 : tensor<32x32xi32>
  %as = tt.splat %A : !tt.ptr<TA> -> tensor<32x32x!tt.ptr<TA>>
  %ap = tt.addptr %as, %at : tensor<32x32x!tt.ptr<TA>>, tensor<32x32xi32>
  %a = tt.load %ap : tensor<32x32x!tt.ptr<TA>>
  %bs = tt.splat %B : !tt.ptr<TB> -> tensor<32x32x!tt.ptr<TB>>
  %bp = tt.addptr %bs, %at : tensor<32x32x!tt.ptr<TB>>, tensor<32x32xi32>
  %b = tt.load %bp : tensor<32x32x!tt.ptr<TB>>
  %z = arith.constant dense<0.0> : tensor<32x32xf32>
  %d = tt.dot %a, %b, %z : tensor<32x32xTA> * tensor<32x32xTB> -> tensor<32x32xf32>
  %cs = tt.splat %C : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  %cp = tt.addptr %cs, %at : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
  tt.store %cp, %d : tensor<32x32x!tt.ptr<f32>>
  tt.return
}
