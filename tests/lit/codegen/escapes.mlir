// Code of the user's own: target assembly, functions by name, printing, assertions.
// RUN: tessera-translate %s --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefixes=CHECK,OFF
// RUN: tessera-translate %s --target=cuda:sm_90a --enable-asserts --emit=ptx | FileCheck %s --check-prefixes=CHECK,ON
// RUN: not tessera-translate %s --target=cpu 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: escapes.mlir:{{.*}}: codegen error: {{.*}}target assembly needs a GPU target

// OFF-NOT: __assertfail
// ON: .extern .func __assertfail
// CHECK-LABEL: .entry escapes(
// ON: call.uni __assertfail
// CHECK: vprintf
// CHECK: add.f32
// Two halves travel in one register.
// CHECK: add.f16x2
// Pointers are 64-bit operands.
// CHECK: mov.b64 %rd{{[0-9]+}}, %rd{{[0-9]+}}; // address
// A function of the math library by its own name.
// CHECK-NOT: _Z4tanhf
// CHECK: fma.rn.f32
tt.func public @escapes(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %h: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %px = tt.addptr %xs, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %v = tt.load %px : tensor<256x!tt.ptr<f32>>
  %hs = tt.splat %h : !tt.ptr<f16> -> tensor<256x!tt.ptr<f16>>
  %ph = tt.addptr %hs, %i : tensor<256x!tt.ptr<f16>>, tensor<256xi32>
  %hv = tt.load %ph : tensor<256x!tt.ptr<f16>>
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %ok = arith.cmpf ogt, %v, %zero : tensor<256xf32>
  tt.assert %ok, "must be positive" : tensor<256xi1>
  tt.print "value " {hex = false, isSigned = array<i32: 0>} : %v : tensor<256xf32>
  %a = tt.elementwise_inline_asm "add.f32 $0, $1, $2;" {constraints = "=f,f,f", pure = true, packed_element = 1 : i32} %v, %v : tensor<256xf32>, tensor<256xf32> -> tensor<256xf32>
  %b = tt.elementwise_inline_asm "add.f16x2 $0, $1, $1;" {constraints = "=r,r", pure = true, packed_element = 2 : i32} %hv : tensor<256xf16> -> tensor<256xf16>
  %p = tt.elementwise_inline_asm "mov.b64 $0, $1; // address" {constraints = "=l,l", pure = false, packed_element = 1 : i32} %x : !tt.ptr<f32> -> i64
  %t = tt.extern_elementwise %a {libname = "", libpath = "", symbol = "_Z4tanhf", pure = true} : (tensor<256xf32>) -> tensor<256xf32>
  tt.store %px, %t : tensor<256x!tt.ptr<f32>>
  tt.store %ph, %b : tensor<256x!tt.ptr<f16>>
  tt.return
}
