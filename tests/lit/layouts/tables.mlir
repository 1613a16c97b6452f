// What tessera-layout prints for encodings of threads and of memory, and the errors of its command line.

// RUN: tessera-layout --shape 2x8 --encoding '#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [2, 2], warpsPerCTA = [1, 2], order = [1, 0]}>' | FileCheck %s --check-prefix=BLOCKED
// BLOCKED:      (0,0): T0:0 W0 T0:1 W0 T1:0 W0 T1:1 W0 T0:0 W1 T0:1 W1 T1:0 W1 T1:1 W1
// BLOCKED-NEXT: (1,0): T2:0 W0 T2:1 W0 T3:0 W0 T3:1 W0 T2:0 W1 T2:1 W1 T3:0 W1 T3:1 W1

// RUN: tessera-layout --shape 2x8 --linear --encoding '#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [2, 2], warpsPerCTA = [1, 2], order = [1, 0]}>' | FileCheck %s --check-prefix=LINEAR
// LINEAR: register = [1], lane = [2, 8], warp = [4], block = [] -> [2, 8]

// RUN: tessera-layout --shape 4 --encoding '#ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 2], warpsPerCTA = [1, 1], order = [1, 0]}>}>' | FileCheck %s --check-prefix=SLICE
// SLICE: (0): T0:0|T1:0 T2:0|T3:0 T4:0|T5:0 T6:0|T7:0

// RUN: tessera-layout --shape 2x4 --hardware --encoding '#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [2, 2], warpsPerCTA = [1, 1], order = [1, 0]}>' | FileCheck %s --check-prefix=HARDWARE
// HARDWARE:      T0: (0,0) (0,1)
// HARDWARE-NEXT: T1: (0,2) (0,3)
// HARDWARE-NEXT: T2: (1,0) (1,1)
// HARDWARE-NEXT: T3: (1,2) (1,3)

// RUN: tessera-layout --shape 4x8 --encoding '#ttg.swizzled_shared<{vec = 2, perPhase = 1, maxPhase = 4, order = [1, 0]}>' | FileCheck %s --check-prefix=SWIZZLED
// SWIZZLED:      (0,0): 0  1  2  3  4  5  6  7
// SWIZZLED-NEXT: (1,0): 10 11 8  9  14 15 12 13
// SWIZZLED-NEXT: (2,0): 20 21 22 23 16 17 18 19
// SWIZZLED-NEXT: (3,0): 30 31 28 29 26 27 24 25

// RUN: tessera-layout --shape 2x8 --encoding '#ttg.padded_shared<[8:+2] {order = [1, 0], shape = [2, 8]}>' | FileCheck %s --check-prefix=PADDED
// PADDED:      (0,0): 0  1  2  3  4  5  6  7
// PADDED-NEXT: (1,0): 10 11 12 13 14 15 16 17

// RUN: not tessera-layout --shape 16 --encoding '#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>' 2>&1 | FileCheck %s --check-prefix=RANK
// RANK: is for tensors of rank 2, --shape has rank 1
// RUN: not tessera-layout --shape 3x16 --encoding '#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>' 2>&1 | FileCheck %s --check-prefix=POWER
// POWER: '3' in --shape is not a power of two; write extents as in 16x32
// RUN: not tessera-layout --shape 16 --encoding '7 : i32' 2>&1 | FileCheck %s --check-prefix=NOENCODING
// NOENCODING: '7 : i32' is not an encoding of ttg
// RUN: not tessera-layout --shape 16 --encoding '#ttg.nothing' 2>&1 | FileCheck %s --check-prefix=NOATTRIBUTE
// NOATTRIBUTE: error: unknown attribute `nothing` in dialect `ttg`
