// What cannot be compiled is refused with a sentence.
// RUN: split-file %s %t
// RUN: not tessera-translate %t/kernel.mlir --target=cuda:sm_75 2>&1 | FileCheck %s --check-prefix=ARCH
// RUN: not tessera-translate %t/kernel.mlir --target=vulkan 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not tessera-translate %t/kernel.mlir --target=cuda 2>&1 | FileCheck %s --check-prefix=NOARCH
// RUN: not tessera-translate %t/print.mlir --target=hip:gfx942 2>&1 | FileCheck %s --check-prefix=PRINT
// RUN: not tessera-translate %t/kernel.mlir --emit=hsaco 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not tessera-translate %t/kernel.mlir --num-warps=3 2>&1 | FileCheck %s --check-prefix=WARPS
// RUN: not tessera-translate %t/kernel.mlir --num-stages=-1 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: not tessera-translate %t/kernel.mlir --maxnreg=-5 2>&1 | FileCheck %s --check-prefix=REGISTERS
// RUN: not tessera-translate %t/two.mlir 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not tessera-translate %t/none.mlir 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not tessera-translate %t/syntax.mlir 2>&1 | FileCheck %s --check-prefix=SYNTAX
// RUN: not tessera-translate %t/unknown.mlir 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not tessera-translate %t/extern.mlir 2>&1 | FileCheck %s --check-prefix=EXTERN
// RUN: not tessera-translate %t/extern.mlir --target=cpu 2>&1 | FileCheck %s --check-prefix=EXTERN
// RUN: sed 's/TEXT/add.f32 $0, $3, $2;/' %t/assembly.mlir | not tessera-translate - 2>&1 | FileCheck %s --check-prefix=OPERAND
// RUN: sed 's/TEXT/add.f32 $0, $1, $;/' %t/assembly.mlir | not tessera-translate - 2>&1 | FileCheck %s --check-prefix=DOLLAR
// RUN: sed 's/TEXT/add.f32 $0, $1, ${2:x;/' %t/assembly.mlir | not tessera-translate - 2>&1 | FileCheck %s --check-prefix=BRACE
// RUN: sed 's/TEXT/add.f32 ${0:Q}, $1, $2;/' %t/assembly.mlir | not tessera-translate - 2>&1 | FileCheck %s --check-prefix=LLVM
// RUN: not tessera-translate %t/name.mlir 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not tessera-translate %t/name.mlir --target=cpu 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not tessera-translate %t/library-name.mlir 2>&1 | FileCheck %s --check-prefix=LIBRARY
// RUN: not tessera-translate %t/symbol.mlir 2>&1 | FileCheck %s --check-prefix=SYMBOL
// RUN: not tessera-translate %t/warps.mlir --target=cpu:emulate=gfx942 2>&1 | FileCheck %s --check-prefix=LANES
// RUN: not tessera-translate %t/fp8.mlir 2>&1 | FileCheck %s --check-prefix=FP8
// RUN: not tessera-translate %t/fp8.mlir --target=cpu 2>&1 | FileCheck %s --check-prefix=FP8
// RUN: not tessera-translate %t/wgmma.mlir --target=cuda:sm_80 2>&1 | FileCheck %s --check-prefix=WGMMA
// RUN: not tessera-translate %t/wgmma.mlir --target=cuda:sm_90 2>&1 | FileCheck %s --check-prefix=WGMMA
// RUN: not tessera-translate %t/wgmma.mlir --target=cpu:emulate=sm_80 2>&1 | FileCheck %s --check-prefix=WGMMA
// RUN: not tessera-translate %t/fp8-mma.mlir --target=cuda:sm_80 2>&1 | FileCheck %s --check-prefix=FP8MMA
// ARCH: launch error: target 'cuda:sm_75' names an unknown architecture
// TARGET: launch error: target 'vulkan' is not known. Targets are cpu, cpu:emulate=ARCH, cuda[:ARCH]
// NOARCH: codegen error: target 'cuda' names no architecture
// PRINT: print.mlir:3:3: codegen error: 'tt.print' op is not supported on AMD GPUs: printing needs the device library of ROCm; run the kernel on cpu or cpu:emulate=ARCH
// STAGE: codegen error: target 'cuda:sm_90a' has no stage 'hsaco'; its stages are ttir, ttgir, llir, ptx, cubin
// WARPS: codegen error: num_warps = 3 is not a power of two from 1 to 32
// STAGES: codegen error: num_stages = -1 is negative: 0 leaves it to the compiler
// REGISTERS: codegen error: maxnreg = -5 is negative: 0 leaves it to the compiler
// TWO: verify error: the module has two kernels, 'a' and 'b'
// EMPTY: verify error: the module has no public tt.func
// SYNTAX: syntax.mlir:2:{{[0-9]+}}: verify error:
// UNKNOWN: unknown.mlir:2:{{[0-9]+}}: codegen error: {{.*}}has no lowering to LLVM IR
// EXTERN: extern.mlir:3:{{[0-9]+}}: codegen error: {{.*}}calls '__nv_fancyf', which the math library does not have with these types
// FP8: fp8.mlir:3:{{[0-9]+}}: codegen error: {{.*}}computes with 8-bit floats: convert them with tt.fp_to_fp first
// WGMMA: wgmma.mlir:3:{{[0-9]+}}: codegen error: {{.*}}'ttng.fence_async_shared' needs a matrix instruction that target '{{.*}}' lacks
// FP8MMA: fp8-mma.mlir:8:{{[0-9]+}}: codegen error: {{.*}}'tt.dot' needs a matrix instruction that target 'cuda:sm_80' lacks
// OPERAND: codegen error: {{.*}}names operand $3 in its assembly, but its operands are $0 to $2
// DOLLAR: codegen error: {{.*}}has '$' before ';' in its assembly
// BRACE: codegen error: {{.*}}does not close '${2' in its assembly
// LLVM: codegen error: LLVM makes no code of this: {{.*}}invalid operand in inline asm
// NAME: name.mlir:1:1: codegen error: 'my kernel' cannot be a kernel's name: use letters, digits and _, no digit first
// LIBRARY: codegen error: '_Z3sinf' cannot be a kernel's name: _Z and __ begin those of libraries
// SYMBOL: codegen error: {{.*}}calls '#smem', which is no name of a function
// LANES: codegen error: the ttgir was made for warps of 32 lanes, target 'cpu:emulate=gfx942' has 64

//--- kernel.mlir
tt.func public @kernel(%o: !tt.ptr<i32>) {
  tt.return
}
//--- library-name.mlir
tt.func public @_Z3sinf(%o: !tt.ptr<i32>) {
  tt.return
}
//--- two.mlir
tt.func public @a(%o: !tt.ptr<i32>) {
  tt.return
}
tt.func public @b(%o: !tt.ptr<i32>) {
  tt.return
}
//--- none.mlir
module {
}
//--- syntax.mlir
tt.func public @kernel(%o: !tt.ptr<i32>) {
  %0 = tt.load %nothing : !tt.ptr<i32>
  tt.return
}
//--- unknown.mlir
tt.func public @kernel(%o: !tt.ptr<f32>, %x: f32) {
  %0 = math.acosh %x : f32
  tt.store %o, %0 : !tt.ptr<f32>
  tt.return
}
//--- extern.mlir
tt.func public @kernel(%o: !tt.ptr<f32>, %x: f32) {
  // The user named no library.
  %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_fancyf"} : (f32) -> f32
  tt.store %o, %0 : !tt.ptr<f32>
  tt.return
}
//--- assembly.mlir
tt.func public @kernel(%o: !tt.ptr<f32>, %x: f32) {
  %0 = tt.elementwise_inline_asm "TEXT" {constraints = "=f,f,f", pure = true, packed_element = 1 : i32} %x, %x : f32, f32 -> f32
  tt.store %o, %0 : !tt.ptr<f32>
  tt.return
}
//--- name.mlir
tt.func public @"my kernel"(%o: !tt.ptr<i32>) {
  tt.return
}
//--- symbol.mlir
tt.func public @kernel(%o: !tt.ptr<f32>, %x: f32) {
  %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "#smem"} : (f32) -> f32
  tt.store %o, %0 : !tt.ptr<f32>
  tt.return
}
//--- warps.mlir
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%o: !tt.ptr<i32>) {
    tt.return
  }
}

//--- fp8.mlir
tt.func public @f(%o: !tt.ptr<f8E4M3FN>) {
  %x = tt.load %o : !tt.ptr<f8E4M3FN>
  %0 = arith.mulf %x, %x : f8E4M3FN
  tt.store %o, %0 : !tt.ptr<f8E4M3FN>
  tt.return
}
//--- wgmma.mlir
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%o: !tt.ptr<i32>) {
    ttng.fence_async_shared {bCluster = false}
    tt.return
  }
}
//--- fp8-mma.mlir
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%o: !tt.ptr<i32>) {
    %z = arith.constant dense<0.0> : tensor<16x8xf32, #mma>
    %a = arith.constant dense<1.0> : tensor<16x32xf8E5M2, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
    %b = arith.constant dense<1.0> : tensor<32x8xf8E5M2, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>

    %d = tt.dot %a, %b, %z : tensor<16x32xf8E5M2, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * tensor<32x8xf8E5M2, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<16x8xf32, #mma>
    tt.return
  }
}

//--- print.mlir
tt.func public @print(%x: i32) {
  // The device has no way to the terminal.
  tt.print "x" {hex = false, isSigned = array<i32: 1>} : %x : i32
  tt.return
}
