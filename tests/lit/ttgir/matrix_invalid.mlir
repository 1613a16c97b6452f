// Malformed matrix encodings, matrix products and asynchronous copies of ttg and ttng.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{nvidia_mma has version 2.0 (mma.sync) or 3.0 (wgmma), not 5.0}}
#x = #ttg.nvidia_mma<{versionMajor = 5, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>

// -----

// expected-error @+1 {{nvidia_mma of version 3 has 2 dimensions, but warpsPerCTA has 3 entries}}
#x = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [1, 4, 1], instrShape = [16, 64, 16]}>

// -----

// expected-error @+1 {{nvidia_mma of version 2 has 2 or 3 dimensions, but warpsPerCTA has 1 entries}}
#x = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4], instrShape = [16, 8]}>

// -----

// expected-error @+1 {{warpsPerCTA must hold powers of two, not 3}}
#x = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [3, 1], instrShape = [16, 8]}>

// -----

// expected-error @+1 {{instrShape of nvidia_mma of version 2 is [16, 8], after a 1 for a batch dimension}}
#x = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 1, 2], instrShape = [16, 8]}>

// -----

// expected-error @+1 {{wgmma works on groups of 4 warps along the rows, so warpsPerCTA[0] cannot be 2}}
#x = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 64, 16]}>

// -----

// expected-error @+1 {{instrShape of nvidia_mma of version 3 is [16, N, K] with N a power of two from 8 to 256 and K 8, 16 or 32}}
#x = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 96, 16]}>

// -----

// expected-error @+1 {{'CGALayout' has basis vectors of another length}}
#x = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8], CGALayout = [[1]]}>

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
// expected-error @+1 {{opIdx of dot_op is 0 (A) or 1 (B), not 2}}
#x = #ttg.dot_op<{opIdx = 2, parent = #mma, kWidth = 2}>

// -----

#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// expected-error @+1 {{dot_op needs a parent that is the layout of a matrix instruction's accumulators (nvidia_mma, amd_mfma, amd_wmma)}}
#x = #ttg.dot_op<{opIdx = 0, parent = #b}>

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
// expected-error @+1 {{'kWidth' must be an integer}}
#x = #ttg.dot_op<{opIdx = 0, parent = #mma}>

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
// expected-error @+1 {{kWidth of dot_op is 1, 2, 4 or 8, not 3}}
#x = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 3}>

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// expected-error @+1 {{wgmma reads B in shared memory: opIdx of dot_op must be 0}}
#x = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
// expected-error @+1 {{the encoding describes 2 dimensions, the tensor has 1}}
tt.func private @f(tensor<64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>)

// -----

// expected-error @+1 {{swizzlingByteWidth of nvmma_shared is 0, 32, 64 or 128, not 16}}
#x = #ttg.nvmma_shared<{swizzlingByteWidth = 16, transposed = false, elementBitWidth = 16}>

// -----

// expected-error @+1 {{elementBitWidth of nvmma_shared is 8, 16 or 32, not 64}}
#x = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 64}>

// -----

// expected-error @+1 {{'transposed' must be true or false}}
#x = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = 1, elementBitWidth = 16}>

// -----

#n = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// expected-error @+1 {{elementBitWidth of the encoding is 16, but an element has 32 bits}}
tt.func private @f(!ttg.memdesc<64x64xf32, #n, #ttg.shared_memory>)

// -----

#n = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
// expected-error @+1 {{a swizzle of 128 bytes needs at least 8 rows of as many bytes, but the buffer has 64 rows of 64}}
tt.func private @f(!ttg.memdesc<32x64xf16, #n, #ttg.shared_memory>)

// -----

#n = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// expected-error @+1 {{a tensor with a layout needs dimensions that are powers of two}}
tt.func private @f(!ttg.memdesc<64x64xf16, #n, #ttg.shared_memory, mutable, 96x64>)

// -----

tt.func @f(%a: tensor<16xf16>, %c: tensor<16xf32>) {
  // expected-error @+1 {{multiplies tiles of 2 dimensions, or 3 with the batch first, not of 1, 1 and 1}}
  %0 = tt.dot %a, %a, %c : tensor<16xf16> * tensor<16xf16> -> tensor<16xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<16x32xf16>, %c: tensor<16x16xf32>) {
  // expected-error @+1 {{needs shapes (M, K), (K, N) and (M, N), after equal batches, but has 'tensor<16x32xf16>', 'tensor<16x32xf16>' and 'tensor<16x16xf32>'}}
  %0 = tt.dot %a, %a, %c : tensor<16x32xf16> * tensor<16x32xf16> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<16x16xf16>, %b: tensor<16x16xbf16>, %c: tensor<16x16xf32>) {
  // expected-error @+1 {{needs operands of one type, or two 8-bit floats, not 'f16' and 'bf16'}}
  %0 = tt.dot %a, %b, %c : tensor<16x16xf16> * tensor<16x16xbf16> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<16x16xbf16>, %c: tensor<16x16xf16>) {
  // expected-error @+1 {{cannot sum products of 'bf16' in 'f16'}}
  %0 = tt.dot %a, %a, %c : tensor<16x16xbf16> * tensor<16x16xbf16> -> tensor<16x16xf16>
  tt.return
}

// -----

tt.func @f(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @+1 {{maxNumImpreciseAcc is not negative}}
  %0 = tt.dot %a, %a, %c {maxNumImpreciseAcc = -1 : i32} : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  tt.return
}

// -----

#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
tt.func @f(%a: tensor<16x16xf16>, %c: tensor<16x16xf32, #b>) {
  // expected-error @+1 {{needs an encoding on all three tiles or on none}}
  %0 = tt.dot %a, %a, %c : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32, #b>
  tt.return
}

// -----

#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
tt.func @f(%a: tensor<16x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, %b: tensor<16x16xf16, #b>, %c: tensor<16x16xf32, #mma>) {
  // expected-error @+1 {{on a matrix instruction needs a and b with #ttg.dot_op of opIdx 0 and 1, one kWidth and the accumulators' layout, of an instruction of one warp}}
  %0 = tt.dot %a, %b, %c : tensor<16x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<16x16xf16, #b> -> tensor<16x16xf32, #mma>
  tt.return
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
tt.func @f(%a: tensor<16x16xf16, #a>, %b: tensor<16x16xf16, #b>, %c: tensor<16x16xf32, #mma>) {
  // expected-error @+1 {{one kWidth}}
  %0 = tt.dot %a, %b, %c : tensor<16x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<16x16xf32, #mma>
  tt.return
}

// -----

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
tt.func @f(%a: !ttg.memdesc<16x16xf32, #s, #ttg.shared_memory>, %c: tensor<16x16xf32>) {
  // expected-error @+1 {{needs a distributed layout on 'tensor<16x16xf32>'}}
  %0 = ttg.local_dot %a, %a, %c : !ttg.memdesc<16x16xf32, #s, #ttg.shared_memory> * !ttg.memdesc<16x16xf32, #s, #ttg.shared_memory>, tensor<16x16xf32> -> tensor<16x16xf32>
  tt.return
}

// -----

#n = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
tt.func @f(%a: !ttg.memdesc<16x16xf16, #n, #ttg.shared_memory>, %c: tensor<16x16xf32, #mma>) {
  // expected-error @+1 {{needs accumulators with #ttg.nvidia_mma of versionMajor 3, not}}
  %0 = ttng.warp_group_dot %a, %a, %c : !ttg.memdesc<16x16xf16, #n, #ttg.shared_memory> * !ttg.memdesc<16x16xf16, #n, #ttg.shared_memory> -> tensor<16x16xf32, #mma>
  tt.return
}

// -----

#n = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 16, 16]}>
tt.func @f(%a: tensor<16x16xf16, #mma>, %b: !ttg.memdesc<16x16xf16, #n, #ttg.shared_memory>, %c: tensor<16x16xf32, #mma>) {
  // expected-error @+1 {{needs a tile a with #ttg.dot_op of opIdx 0 and the accumulators' layout as parent, not}}
  %0 = ttng.warp_group_dot %a, %b, %c : tensor<16x16xf16, #mma> * !ttg.memdesc<16x16xf16, #n, #ttg.shared_memory> -> tensor<16x16xf32, #mma>
  tt.return
}

// -----

#n = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 16, 16]}>
tt.func @f(%a: !ttg.memdesc<16x16xf16, #n, #ttg.shared_memory>, %c: tensor<16x16xf32, #mma>) {
  // expected-error @+1 {{maxNumImpreciseAcc is not negative}}
  %0 = ttng.warp_group_dot %a, %a, %c {maxNumImpreciseAcc = -3 : i32} : !ttg.memdesc<16x16xf16, #n, #ttg.shared_memory> * !ttg.memdesc<16x16xf16, #n, #ttg.shared_memory> -> tensor<16x16xf32, #mma>
  tt.return
}

// -----

tt.func @f() {
  // expected-error @+1 {{needs at least one operand to wait for}}
  "ttng.warp_group_dot_wait"() <{pendings = 0 : i32}> : () -> ()
  tt.return
}

// -----

tt.func @f(%c: tensor<16x16xf32>) {
  // expected-error @+1 {{pendings is not negative}}
  %0 = ttng.warp_group_dot_wait %c {pendings = -1 : i32} : tensor<16x16xf32>
  tt.return
}

// -----

tt.func @f() {
  // expected-error @+1 {{num is not negative}}
  %0 = ttg.async_wait {num = -1 : i32}
  tt.return
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @f(%p: tensor<16x!tt.ptr<f32>, #b>, %m: !ttg.memdesc<16xf32, #s, #ttg.shared_memory>) {
  // expected-error @+1 {{writes only to a mutable memdesc}}
  %0 = ttg.async_copy_global_to_local %p, %m : tensor<16x!tt.ptr<f32>, #b> -> <16xf32, #s, #ttg.shared_memory>
  tt.return
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @f(%p: tensor<16x!tt.ptr<f16>, #b>, %m: !ttg.memdesc<16xf32, #s, #ttg.shared_memory, mutable>) {
  // expected-error @+1 {{needs one shape and element type for}}
  %0 = ttg.async_copy_global_to_local %p, %m : tensor<16x!tt.ptr<f16>, #b> -> <16xf32, #s, #ttg.shared_memory, mutable>
  tt.return
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @f(%p: tensor<16x!tt.ptr<f32>, #b>, %o: tensor<16xf32, #b>, %m: !ttg.memdesc<16xf32, #s, #ttg.shared_memory, mutable>) {
  // expected-error @+1 {{has `other` but no mask: without a mask every element is copied}}
  %0 = ttg.async_copy_global_to_local %p, %m other %o : tensor<16x!tt.ptr<f32>, #b> -> <16xf32, #s, #ttg.shared_memory, mutable>
  tt.return
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @f(%p: tensor<16x!tt.ptr<f32>, #b>, %m: !ttg.memdesc<16xf32, #s, #ttg.shared_memory, mutable>) {
  // expected-error @+1 {{contiguity is a power of two}}
  %0 = ttg.async_copy_global_to_local %p, %m {contiguity = 0 : i32} : tensor<16x!tt.ptr<f32>, #b> -> <16xf32, #s, #ttg.shared_memory, mutable>
  tt.return
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @f(%p: tensor<16x!tt.ptr<f32>, #b>, %m: !ttg.memdesc<16xf32, #s, #ttg.shared_memory, mutable>) {
  // expected-error @+1 {{does not know cacheModifier wt}}
  %0 = ttg.async_copy_global_to_local %p, %m cacheModifier = wt : tensor<16x!tt.ptr<f32>, #b> -> <16xf32, #s, #ttg.shared_memory, mutable>
  tt.return
}

// -----

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
tt.func @f(%m: !ttg.memdesc<16x16xf32, #s, #ttg.shared_memory>) {
  // expected-error @+1 {{changes only the shape, and keeps the allocation's}}
  %0 = ttg.memdesc_subslice %m[0, 8] : !ttg.memdesc<16x16xf32, #s, #ttg.shared_memory> -> !ttg.memdesc<16x8xf32, #s, #ttg.shared_memory>
  tt.return
}

// -----

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
tt.func @f(%m: !ttg.memdesc<2x16x16xf32, #s, #ttg.shared_memory>) {
  // expected-error @+1 {{takes a part of one buffer: pick it with memdesc_index first}}
  %0 = ttg.memdesc_subslice %m[0, 0, 8] : !ttg.memdesc<2x16x16xf32, #s, #ttg.shared_memory> -> !ttg.memdesc<2x16x8xf32, #s, #ttg.shared_memory, 2x16x16>
  tt.return
}

// -----

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
tt.func @f(%m: !ttg.memdesc<16x16xf32, #s, #ttg.shared_memory>) {
  // expected-error @+1 {{needs 2 offsets, not 1}}
  %0 = ttg.memdesc_subslice %m[8] : !ttg.memdesc<16x16xf32, #s, #ttg.shared_memory> -> !ttg.memdesc<16x8xf32, #s, #ttg.shared_memory, 16x16>
  tt.return
}

// -----

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
tt.func @f(%m: !ttg.memdesc<16x16xf32, #s, #ttg.shared_memory>) {
  // expected-error @+1 {{needs offsets that are multiples of the part's size and inside the buffer, but has 4 for 8 of 16}}
  %0 = ttg.memdesc_subslice %m[0, 4] : !ttg.memdesc<16x16xf32, #s, #ttg.shared_memory> -> !ttg.memdesc<16x8xf32, #s, #ttg.shared_memory, 16x16>
  tt.return
}
