// Types and sizes for AMD's matrix cores.
// RUN: tessera-opt %s -ttir-legalize-dot="target=hip:gfx942" | FileCheck %s --check-prefixes=CHECK,GFX942
// RUN: tessera-opt %s -ttir-legalize-dot="target=hip:gfx90a" | FileCheck %s --check-prefixes=CHECK,EXACT,GFX90A
// RUN: tessera-opt %s -ttir-legalize-dot="target=hip:gfx950" | FileCheck %s --check-prefixes=CHECK,EXACT,FP8
// RUN: tessera-opt %s -ttir-legalize-dot="target=hip:gfx1100" | FileCheck %s --check-prefixes=CHECK,EXACT,F16
// RUN: tessera-opt %s -ttir-legalize-dot="target=hip:gfx1201" | FileCheck %s --check-prefixes=CHECK,EXACT,FP8

// OCP's 8-bit floats are what only gfx950 and gfx12 multiply; elsewhere f16 holds them exactly. gfx942's own formats have
// another bias, and no NaN at 0x7f. gfx90a takes denormal f16 for zero: where there may be some, it gets bf16.
// CHECK-LABEL: @fp8
// F16-COUNT-2: tt.fp_to_fp {{.*}} -> tensor<64x64xf16>
// F16: tt.dot {{.*}} : tensor<64x64xf16> * tensor<64x64xf16>
// GFX942-COUNT-2: tt.fp_to_fp {{.*}} -> tensor<64x64xf16>
// GFX942: tt.dot {{.*}} : tensor<64x64xf16> * tensor<64x64xf16>
// GFX90A-COUNT-2: tt.fp_to_fp {{.*}} -> tensor<64x64xbf16>
// GFX90A: tt.dot {{.*}} : tensor<64x64xbf16> * tensor<64x64xbf16>
// FP8: tt.dot {{.*}} : tensor<64x64xf8E4M3FN> * tensor<64x64xf8E5M2>
tt.func @fp8(%a: tensor<64x64xf8E4M3FN>, %b: tensor<64x64xf8E5M2>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot %a, %b, %c : tensor<64x64xf8E4M3FN> * tensor<64x64xf8E5M2> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// Those of the fnuz kind are gfx942's; with one of OCP's f16 takes both.
// CHECK-LABEL: @fnuz
// F16-COUNT-2: tt.fp_to_fp {{.*}} -> tensor<64x64xf16>
// F16: tt.dot {{.*}} : tensor<64x64xf16> * tensor<64x64xf16>
// FP8-COUNT-2: tt.fp_to_fp {{.*}} -> tensor<64x64xf16>
// FP8: tt.dot {{.*}} : tensor<64x64xf16> * tensor<64x64xf16>
// GFX90A: tt.dot {{.*}} : tensor<64x64xbf16> * tensor<64x64xbf16>
// GFX942: tt.dot {{.*}} : tensor<64x64xf8E4M3FNUZ> * tensor<64x64xf8E5M2FNUZ>
// GFX90A: tt.dot {{.*}} : tensor<64x64xf16> * tensor<64x64xf16>
// GFX942: tt.dot {{.*}} : tensor<64x64xf16> * tensor<64x64xf16>
tt.func @fnuz(%a: tensor<64x64xf8E4M3FNUZ>, %b: tensor<64x64xf8E5M2FNUZ>, %o: tensor<64x64xf8E4M3FN>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot %a, %b, %c : tensor<64x64xf8E4M3FNUZ> * tensor<64x64xf8E5M2FNUZ> -> tensor<64x64xf32>
  %e = tt.dot %a, %o, %d : tensor<64x64xf8E4M3FNUZ> * tensor<64x64xf8E4M3FN> -> tensor<64x64xf32>
  tt.return %e : tensor<64x64xf32>
}

// gfx942 alone has something less exact than f32. Three products are never needed.
// CHECK-LABEL: @precision
// GFX942: tt.dot %arg0, %arg0, %arg0, inputPrecision = tf32
// GFX942: tt.dot %arg0, %arg0, %arg0 :
// EXACT: tt.dot %arg0, %arg0, %arg0 :
// EXACT: tt.dot %arg0, %arg0, %arg0 :
// CHECK-NOT: tt.dot
// CHECK: tt.return
tt.func @precision(%a: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %d = tt.dot %a, %a, %a, inputPrecision = tf32 : tensor<64x64xf32> * tensor<64x64xf32> -> tensor<64x64xf32>
  %e = tt.dot %a, %a, %a, inputPrecision = tf32x3 : tensor<64x64xf32> * tensor<64x64xf32> -> tensor<64x64xf32>
  tt.return %d, %e : tensor<64x64xf32>, tensor<64x64xf32>
}

// One row becomes sixteen, and k what the shallowest instruction needs.
// CHECK-LABEL: @one_row
// CHECK: tt.dot {{.*}} : tensor<16x16xf16> * tensor<16x64xf16> -> tensor<16x64xf32>
tt.func @one_row(%a: tensor<1x8xf16>, %b: tensor<8x64xf16>, %c: tensor<1x64xf32>) -> tensor<1x64xf32> {
  %d = tt.dot %a, %b, %c : tensor<1x8xf16> * tensor<8x64xf16> -> tensor<1x64xf32>
  tt.return %d : tensor<1x64xf32>
}
