// How tessera-layout says conversions are done: in the thread, by shuffles, through memory.

// RUN: tessera-layout --shape 2x8 --encoding '#ttg.linear<{register = [[0, 1], [1, 0]], lane = [[0, 2], [0, 4]], warp = [], block = []}>' --to '#ttg.linear<{register = [[1, 0], [0, 1]], lane = [[0, 2], [0, 4]], warp = [], block = []}>' | FileCheck %s --check-prefix=COPY
// COPY: copy: every thread has its elements already
// COPY: registers: 0, 2, 1, 3

// RUN: tessera-layout --shape 2x4 --encoding '#ttg.linear<{register = [[1, 0]], lane = [[0, 1], [0, 2]], warp = [], block = []}>' --to '#ttg.linear<{register = [[1, 0]], lane = [[0, 2], [0, 1]], warp = [], block = []}>' | FileCheck %s --check-prefix=LANES
// LANES:      shuffle: within warps; 0 selects before, 0 after
// LANES-NEXT: register 0 from register 0
// LANES-NEXT: register 1 from register 1
// LANES-NEXT: of lane: register = [0], lane = [2, 1], warp = [] -> [4]

// A register bit and a lane bit change places: one exchange between neighbours per register.
// RUN: tessera-layout --shape 2x4 --encoding '#ttg.linear<{register = [[1, 0]], lane = [[0, 1], [0, 2]], warp = [], block = []}>' --to '#ttg.linear<{register = [[0, 1]], lane = [[1, 0], [0, 2]], warp = [], block = []}>' | FileCheck %s --check-prefix=EXCHANGE
// EXCHANGE:      shuffle: within warps; 1 selects before, 1 after
// EXCHANGE-NEXT: register 0 from register 0 of lane ^ 0
// EXCHANGE-NEXT: register 1 from register 1 of lane ^ 1

// RUN: tessera-layout --shape 64x64 --element-bytes 4 --encoding '#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>' --to '#ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>' | FileCheck %s --check-prefix=TRANSPOSE
// TRANSPOSE:      shared memory: 16384 bytes, 1 pass
// TRANSPOSE-NEXT: stores: {{[0-9]+}} element{{s?}} an access, 1 wavefront a phase
// TRANSPOSE-NEXT: loads: {{[0-9]+}} element{{s?}} an access, 1 wavefront a phase

// RUN: tessera-layout --shape 2x2 --memory --encoding '#ttg.linear<{register = [[0, 1]], lane = [], warp = [[1, 0]], block = []}>' --to '#ttg.linear<{register = [[1, 0]], lane = [], warp = [[0, 1]], block = []}>' | FileCheck %s --check-prefix=MEMORY
// MEMORY:      shared memory: 16 bytes, 1 pass
// MEMORY:      offset = [{{.*}}] -> [2, 2]
// MEMORY-NEXT: (0,0): {{[0-3]}} {{[0-3]}}
// MEMORY-NEXT: (1,0): {{[0-3]}} {{[0-3]}}

// RUN: not tessera-layout --shape 64 --encoding '#ttg.linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = [], block = []}>' --to '#ttg.linear<{register = [[16], [32]], lane = [[1], [2], [4], [8]], warp = [], block = []}>' 2>&1 | FileCheck %s --check-prefix=THREADS
// THREADS: other numbers of threads
