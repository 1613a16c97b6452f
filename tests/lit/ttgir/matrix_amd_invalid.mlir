// Malformed encodings of AMD's matrix instructions, and products on them.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{amd_mfma has version 2 (gfx90a), 3 (gfx942) or 4 (gfx950), not 1}}
#x = #ttg.amd_mfma<{version = 1, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = true}>

// -----

// expected-error @+1 {{amd_mfma has 2 or 3 dimensions, but warpsPerCTA has 1 entries}}
#x = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4], instrShape = [32, 32, 8], isTransposed = true}>

// -----

// expected-error @+1 {{warpsPerCTA must hold powers of two, not 3}}
#x = #ttg.amd_mfma<{version = 3, warpsPerCTA = [3, 1], instrShape = [32, 32, 8], isTransposed = true}>

// -----

// Twice the depth is gfx950's.
// expected-error @+1 {{instrShape of amd_mfma is [16, 16, K] or [32, 32, K] with a K that an instruction of version 3 with 32-bit accumulators has}}
#x = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 128], isTransposed = true}>

// -----

// expected-error @+1 {{instrShape of amd_mfma}}
#x = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [16, 32, 8], isTransposed = true}>

// -----

// expected-error @+1 {{instrShape of amd_mfma}}
#x = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32], isTransposed = true}>

// -----

// f64 has 16 rows only.
// expected-error @+1 {{with 64-bit accumulators}}
#x = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 4], isTransposed = true, elementBitWidth = 64}>

// -----

// expected-error @+1 {{elementBitWidth of amd_mfma is that of an accumulator, 32 or 64, not 16}}
#x = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = true, elementBitWidth = 16}>

// -----

// expected-error @+1 {{tilesPerWarp has 1 entries where warpsPerCTA has 2}}
#x = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = true, tilesPerWarp = [2]}>

// -----

// expected-error @+1 {{'isTransposed' must be true or false}}
#x = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = 1}>

// -----

// expected-error @+1 {{'colour' is not a parameter of this layout}}
#x = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], colour = 1}>

// -----

// expected-error @+1 {{amd_wmma has version 1 (gfx11), 2 (gfx12) or 3 (gfx1250), not 4}}
#x = #ttg.amd_wmma<{version = 4, isTranspose = true, warpsPerCTA = [2, 2]}>

// -----

// The default of 16 is not gfx1250's.
// expected-error @+1 {{instrShape of amd_wmma is [16, 16, K] with a K that an instruction of version 3 has}}
#x = #ttg.amd_wmma<{version = 3, isTranspose = true, warpsPerCTA = [2, 2]}>

// -----

// expected-error @+1 {{instrShape of amd_wmma}}
#x = #ttg.amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = [2, 2], instrShape = [32, 32, 16]}>

// -----

#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = true}>
// expected-error @+1 {{kWidth of dot_op is a power of two up to 32, not 3}}
#x = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 3}>

// -----

#mma = #ttg.amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [2, 2]}>
// expected-error @+1 {{kWidth of dot_op is a power of two up to 32, not 64}}
#x = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 64}>

// -----

// expected-error @+1 {{vec, perPhase, maxPhase must hold powers of two, not 3}}
#x = #ttg.amd_rotating_shared<{vec = 4, perPhase = 3, maxPhase = 8, order = [0, 1]}>

// -----

#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
tt.func @no_such_instruction(%a: tensor<64x32xi8, #a>, %b: tensor<32x64xi8, #b>, %c: tensor<64x64xi32, #mma>) {
  // expected-error @+1 {{has no instruction of the accumulators' layout for operands of 'i8'}}
  %d = tt.dot %a, %b, %c : tensor<64x32xi8, #a> * tensor<32x64xi8, #b> -> tensor<64x64xi32, #mma>
  tt.return
}
}

// -----

#mma = #ttg.amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = [2, 2]}>
#mma1 = #ttg.amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = [4, 1]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma1, kWidth = 8}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 8}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @other_parent(%a: tensor<64x32xf16, #a>, %b: tensor<32x64xf16, #b>, %c: tensor<64x64xf32, #mma>) {
  // expected-error @+1 {{on a matrix instruction needs a and b with #ttg.dot_op}}
  %d = tt.dot %a, %b, %c : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> tensor<64x64xf32, #mma>
  tt.return
}
}

// -----

// MFMA is of 64 lanes.
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = true}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// expected-error @+1 {{a layout for 64 threads per warp, in a module for 32}}
tt.func @lanes(%c: tensor<64x64xf32, #mma>) {
  tt.return
}
}
