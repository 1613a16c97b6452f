// What tessera-layout prints for matrix instructions: fragments, ldmatrix and stmatrix, and operands of wgmma.

// RUN: tessera-layout --shape 16x8 --encoding '#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>' | FileCheck %s --check-prefix=C
// C:      (0,0) : T0:0 T0:1 T1:0 T1:1 T2:0 T2:1 T3:0 T3:1
// C-NEXT: (1,0) : T4:0
// C:      (8,0) : T0:2 T0:3 T1:2

// RUN: tessera-layout --shape 16x16 --linear --encoding '#ttg.dot_op<{opIdx = 0, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], instrShape = [16, 8]}>, kWidth = 2}>' | FileCheck %s --check-prefix=A
// A: register = [1, 128, 8], lane = [2, 4, 16, 32, 64], warp = [0], block = [] -> [16, 16]

// RUN: tessera-layout --shape 16x32 --element-bytes 2 --encoding '#ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>' --to '#ttg.dot_op<{opIdx = 0, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>, kWidth = 2}>' | FileCheck %s --check-prefix=LOAD
// LOAD:      ldmatrix.x4: 2 instructions, 1 wavefront a matrix
// LOAD-NEXT: rows at: lane = [32, 72, 144, 256, 8], warp = [], block = [] -> [512]
// LOAD-NEXT: ^ 0: registers 0, 1, 2, 3, 4, 5, 6, 7
// LOAD-NEXT: ^ 16: registers 8, 9, 10, 11, 12, 13, 14, 15

// RUN: tessera-layout --shape 16x16 --element-bytes 2 --encoding '#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>' --to '#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 1, order = [0, 1]}>' | FileCheck %s --check-prefix=STORE
// STORE: stmatrix.x4.trans: 1 instruction, 2 wavefronts a matrix

// RUN: tessera-layout --shape 16x32 --element-bytes 4 --encoding '#ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>' --to '#ttg.dot_op<{opIdx = 0, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>, kWidth = 2}>' | FileCheck %s --check-prefix=VECTORS
// VECTORS: no ldmatrix: 32 wavefronts by vectors

// RUN: tessera-layout --shape 64x128 --element-bytes 2 --wgmma 1 --encoding '#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>' | FileCheck %s --check-prefix=WGMMA
// WGMMA:      K-major, swizzle 128, leading 16, stride 1024 (bytes)
// WGMMA-NEXT: (0,0): 0
// WGMMA-NEXT: (0,16): 32
// WGMMA:      (0,64): 8192

// RUN: tessera-layout --shape 64x128 --element-bytes 2 --wgmma 0 --extent 128 --encoding '#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>' | FileCheck %s --check-prefix=MN
// MN:      MN-major, swizzle 128, leading 8192, stride 1024 (bytes)
// MN-NEXT: (0,0): 0
// MN-NEXT: (16,0): 2048

// RUN: not tessera-layout --shape 64x64 --element-bytes 2 --wgmma 1 --encoding '#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>' 2>&1 | FileCheck %s --check-prefix=UNREADABLE
// UNREADABLE: wgmma cannot read this memory along dimension 1

// RUN: not tessera-layout --shape 64x64 --wgmma 1 --encoding '#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>' 2>&1 | FileCheck %s --check-prefix=REGISTERS
// REGISTERS: --wgmma is for the encoding of two-dimensional memory

// RUN: not tessera-layout --shape 4x4 --encoding '#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>' --to '#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>' 2>&1 | FileCheck %s --check-prefix=MEMORIES
// MEMORIES: one of the two encodings is of registers

// RUN: not tessera-layout --shape 4x128 --encoding '#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>' 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: a swizzle of 128 bytes needs at least 8 rows of as many bytes

// AMD's: accumulators with rows and columns exchanged, an operand in runs of 16 bytes, lanes that repeat one.
// RUN: tessera-layout --shape 32x32 --encoding '#ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 8], isTransposed = true}>' | FileCheck %s --check-prefix=MFMA
// MFMA:      (0,0) : T0:0 T0:1 T0:2 T0:3 T32:0 T32:1 T32:2 T32:3 T0:4
// MFMA-NEXT: (1,0) : T1:0

// RUN: tessera-layout --shape 32x16 --linear --encoding '#ttg.dot_op<{opIdx = 0, parent = #ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 8], isTransposed = true}>, kWidth = 8}>' | FileCheck %s --check-prefix=MFMA-A
// MFMA-A: register = [1, 2, 4], lane = [16, 32, 64, 128, 256, 8], warp = [], block = [] -> [32, 16]

// RUN: tessera-layout --shape 16x16 --encoding '#ttg.amd_wmma<{version = 1, isTranspose = false, warpsPerCTA = [1, 1]}>' | FileCheck %s --check-prefix=WMMA
// WMMA:      (0,0) : T0:0 T1:0
// WMMA:      (1,0) : T16:0 T17:0
// WMMA:      (2,0) : T0:1 T1:1

// RUN: tessera-layout --shape 16x16 --linear --encoding '#ttg.dot_op<{opIdx = 0, parent = #ttg.amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [1, 1]}>, kWidth = 16}>' | FileCheck %s --check-prefix=WMMA-A
// WMMA-A: register = [1, 2, 4, 8], lane = [16, 32, 64, 128, 0], warp = [], block = [] -> [16, 16]

// RUN: tessera-layout --shape 32x8 --encoding '#ttg.amd_rotating_shared<{vec = 2, perPhase = 1, maxPhase = 4, order = [1, 0]}>' | FileCheck %s --check-prefix=ROTATING
// ROTATING:      (0,0) :{{ +}}0{{ +}}1{{ +}}2
// ROTATING-NEXT: (1,0) :{{ +}}10{{ +}}11{{ +}}8{{ +}}9
// ROTATING:      (4,0) :{{ +}}34{{ +}}35{{ +}}32{{ +}}33
