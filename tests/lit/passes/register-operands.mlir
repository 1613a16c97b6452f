// Products in flight with A in registers: cut along k, and a wait before each slice's loads for the product that its registers
// were loaded for in the trip before.
// RUN: tessera-opt %s -ttgir-assign-latencies="num-stages=3 max-shared-bytes=200000" -ttgir-schedule-loops -ttgir-pipeline-loops | FileCheck %s
// RUN: tessera-opt %s -ttgir-assign-latencies="num-stages=3 max-shared-bytes=40000" -ttgir-schedule-loops -ttgir-pipeline-loops | FileCheck %s --check-prefix=SMALL

#row = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#half = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 8]}>
#mma16 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 32, 16]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#a16 = #ttg.dot_op<{opIdx = 0, parent = #mma16, kWidth = 2}>
#rows = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#columns = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [0, 1]}>
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#nvmmaT = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 32}>
#lines = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#nvmma16 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!flat = !ttg.memdesc<32x64xf32, #rows, #smem>
!turned = !ttg.memdesc<64x32xf32, #columns, #smem>
!b = !ttg.memdesc<64x32xf32, #nvmma, #smem>
!bT = !ttg.memdesc<32x64xf32, #nvmmaT, #smem>
!line = !ttg.memdesc<64x32xf16, #lines, #smem>
!half = !ttg.memdesc<32x32xf16, #nvmma16, #smem>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Three buffers do not fit: with two, no product stays in flight.
// SMALL-LABEL: @turned
// SMALL-DAG: local_alloc : () -> !ttg.memdesc<2x32x64xf32
// SMALL-DAG: local_alloc : () -> !ttg.memdesc<2x64x32xf32
// SMALL-NOT: isAsync
// SMALL-LABEL: @computed

// Loaded against k. The loads come before the copies of a trip, so that three buffers are enough here too.
// CHECK-LABEL: @turned
// CHECK-DAG: local_alloc : () -> !ttg.memdesc<3x32x64xf32
// CHECK-DAG: local_alloc : () -> !ttg.memdesc<3x64x32xf32
// CHECK: scf.for {{.*}}iter_args(%[[ACC:[^ ]*]] =
// CHECK: ttg.async_wait {num = 1 : i32}
// CHECK: %[[A:.*]] = ttg.memdesc_trans {{.*}} -> !ttg.memdesc<64x32xf32
// CHECK: %[[B:.*]] = ttg.memdesc_trans {{.*}} -> !ttg.memdesc<32x64xf32
// CHECK: %[[A0:.*]] = ttg.memdesc_subslice %[[A]][0, 0] {{.*}} -> !ttg.memdesc<64x16xf32
// CHECK-NEXT: %[[W0:.*]] = ttng.warp_group_dot_wait %{{.*}} {pendings = 1 : i32}
// CHECK-NEXT: %[[R0:.*]] = ttg.local_load %[[A0]]
// CHECK-NEXT: %[[B0:.*]] = ttg.memdesc_subslice %[[B]][0, 0] {{.*}} -> !ttg.memdesc<16x64xf32
// CHECK-NEXT: %[[D0:.*]] = ttng.warp_group_dot %[[R0]], %[[B0]], %[[W0]] {inputPrecision = 0 : i32, isAsync = true}
// CHECK-NEXT: %[[A1:.*]] = ttg.memdesc_subslice %[[A]][0, 16]
// CHECK-NEXT: %[[W1:.*]] = ttng.warp_group_dot_wait %[[D0]] {pendings = 1 : i32}
// CHECK-NEXT: %[[R1:.*]] = ttg.local_load %[[A1]]
// CHECK-NEXT: %[[B1:.*]] = ttg.memdesc_subslice %[[B]][16, 0]
// CHECK-NEXT: %[[D1:.*]] = ttng.warp_group_dot %[[R1]], %[[B1]], %[[W1]] {inputPrecision = 0 : i32, isAsync = true}
// CHECK: %[[W:.*]] = ttng.warp_group_dot_wait %[[D1]] {pendings = 2 : i32}
// CHECK: ttg.async_copy_global_to_local
// CHECK: scf.yield {{.*}}%[[W]]
// CHECK: ttng.warp_group_dot_wait {{.*}}pendings = 0
tt.func public @turned(%p: tensor<32x64x!tt.ptr<f32>, #row>, %q: tensor<64x32x!tt.ptr<f32>, #row>, %n: index) -> tensor<64x64xf32, #mma> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) {
    %x = tt.load %p : tensor<32x64x!tt.ptr<f32>, #row>
    %y = tt.load %q : tensor<64x32x!tt.ptr<f32>, #row>
    %xs = ttg.local_alloc %x : (tensor<32x64xf32, #row>) -> !flat
    %ys = ttg.local_alloc %y : (tensor<64x32xf32, #row>) -> !b
    %xt = ttg.memdesc_trans %xs {order = array<i32: 1, 0>} : !flat -> !turned
    %a = ttg.local_load %xt : !turned -> tensor<64x32xf32, #a>
    %yt = ttg.memdesc_trans %ys {order = array<i32: 1, 0>} : !b -> !bT
    %d = ttng.warp_group_dot %a, %yt, %acc {inputPrecision = 0 : i32} : tensor<64x32xf32, #a> * !bT -> tensor<64x64xf32, #mma>
    scf.yield %d : tensor<64x64xf32, #mma>
  }
  tt.return %r : tensor<64x64xf32, #mma>
}

// What is computed with the tile is computed with each slice. Two sums: four products in a trip, of which three may be in
// flight when the registers of one are loaded.
// CHECK-LABEL: @computed
// CHECK: scf.for
// CHECK: ttg.memdesc_subslice {{.*}}[0, 0]
// CHECK-COUNT-4: ttng.warp_group_dot_wait {{.*}} {pendings = 3 : i32}
// CHECK-NOT: pendings = 3
// CHECK: ttng.warp_group_dot_wait %{{.*}}, %{{.*}} {pendings = 4 : i32}
// CHECK: scf.yield
tt.func public @computed(%p: tensor<64x32x!tt.ptr<f16>, #half>, %q: tensor<32x32x!tt.ptr<f16>, #half>, %n: index) -> (tensor<64x32xf32, #mma16>, tensor<64x32xf32, #mma16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x32xf32, #mma16>
  %two = arith.constant dense<2.0> : tensor<64x32xf16, #a16>
  %r, %s = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %sum = %zero) -> (tensor<64x32xf32, #mma16>, tensor<64x32xf32, #mma16>) {
    %x = tt.load %p : tensor<64x32x!tt.ptr<f16>, #half>
    %y = tt.load %q : tensor<32x32x!tt.ptr<f16>, #half>
    %xs = ttg.local_alloc %x : (tensor<64x32xf16, #half>) -> !line
    %ys = ttg.local_alloc %y : (tensor<32x32xf16, #half>) -> !half
    %a = ttg.local_load %xs : !line -> tensor<64x32xf16, #a16>
    %a2 = arith.mulf %a, %two : tensor<64x32xf16, #a16>
    %d = ttng.warp_group_dot %a2, %ys, %acc : tensor<64x32xf16, #a16> * !half -> tensor<64x32xf32, #mma16>
    %b = ttg.local_load %xs : !line -> tensor<64x32xf16, #a16>
    %b2 = arith.addf %b, %b : tensor<64x32xf16, #a16>
    %e = ttng.warp_group_dot %b2, %ys, %sum : tensor<64x32xf16, #a16> * !half -> tensor<64x32xf32, #mma16>
    scf.yield %d, %e : tensor<64x32xf32, #mma16>, tensor<64x32xf32, #mma16>
  }
  tt.return %r, %s : tensor<64x32xf32, #mma16>, tensor<64x32xf32, #mma16>
}

// A tile that is needed elsewhere stays whole, and its product waits for itself.
// CHECK-LABEL: @elsewhere
// CHECK: scf.for
// CHECK-NOT: isAsync
// CHECK-NOT: memdesc_subslice
// CHECK: scf.yield
tt.func public @elsewhere(%p: tensor<64x32x!tt.ptr<f16>, #half>, %q: tensor<32x32x!tt.ptr<f16>, #half>, %n: index) -> (tensor<64x32xf32, #mma16>, tensor<64x32xf16, #a16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x32xf32, #mma16>
  %none = arith.constant dense<0.0> : tensor<64x32xf16, #a16>
  %r, %s = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %sum = %none) -> (tensor<64x32xf32, #mma16>, tensor<64x32xf16, #a16>) {
    %x = tt.load %p : tensor<64x32x!tt.ptr<f16>, #half>
    %y = tt.load %q : tensor<32x32x!tt.ptr<f16>, #half>
    %xs = ttg.local_alloc %x : (tensor<64x32xf16, #half>) -> !line
    %ys = ttg.local_alloc %y : (tensor<32x32xf16, #half>) -> !half
    %a = ttg.local_load %xs : !line -> tensor<64x32xf16, #a16>
    %d = ttng.warp_group_dot %a, %ys, %acc : tensor<64x32xf16, #a16> * !half -> tensor<64x32xf32, #mma16>
    %t = arith.addf %sum, %a : tensor<64x32xf16, #a16>
    scf.yield %d, %t : tensor<64x32xf32, #mma16>, tensor<64x32xf16, #a16>
  }
  tt.return %r, %s : tensor<64x32xf32, #mma16>, tensor<64x32xf16, #a16>
}
// A made of another product's result could stay in flight, as that one is waited for, but ptxas would not have it.
// CHECK-LABEL: @chained
// CHECK: scf.for
// CHECK-NOT: isAsync
// CHECK: scf.yield
tt.func public @chained(%p: tensor<64x32x!tt.ptr<f16>, #half>, %q: tensor<32x32x!tt.ptr<f16>, #half>, %s: tensor<32x32x!tt.ptr<f16>, #half>, %n: index) -> tensor<64x32xf32, #mma16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x32xf32, #mma16>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x32xf32, #mma16>) {
    %x = tt.load %p : tensor<64x32x!tt.ptr<f16>, #half>
    %y = tt.load %q : tensor<32x32x!tt.ptr<f16>, #half>
    %z = tt.load %s : tensor<32x32x!tt.ptr<f16>, #half>
    %xs = ttg.local_alloc %x : (tensor<64x32xf16, #half>) -> !ttg.memdesc<64x32xf16, #nvmma16, #smem>
    %ys = ttg.local_alloc %y : (tensor<32x32xf16, #half>) -> !half
    %zs = ttg.local_alloc %z : (tensor<32x32xf16, #half>) -> !half
    %d = ttng.warp_group_dot %xs, %ys, %zero : !ttg.memdesc<64x32xf16, #nvmma16, #smem> * !half -> tensor<64x32xf32, #mma16>
    %t = arith.truncf %d : tensor<64x32xf32, #mma16> to tensor<64x32xf16, #mma16>
    %a = ttg.convert_layout %t : tensor<64x32xf16, #mma16> -> tensor<64x32xf16, #a16>
    %e = ttng.warp_group_dot %a, %zs, %acc : tensor<64x32xf16, #a16> * !half -> tensor<64x32xf32, #mma16>
    scf.yield %e : tensor<64x32xf32, #mma16>
  }
  tt.return %r : tensor<64x32xf32, #mma16>
}

// The same registers in all trips: the product stays whole.
// CHECK-LABEL: @invariant
// CHECK: %[[A:.*]] = ttg.local_load
// CHECK: scf.for
// CHECK: %[[D:.*]] = ttng.warp_group_dot %[[A]], {{.*}} {isAsync = true}
// CHECK: ttng.warp_group_dot_wait %[[D]] {pendings = 1 : i32}
// CHECK-NEXT: ttg.local_store
// CHECK: scf.yield
tt.func public @invariant(%m: !line, %q: tensor<32x32x!tt.ptr<f16>, #half>, %n: index) -> tensor<64x32xf32, #mma16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x32xf32, #mma16>
  %a = ttg.local_load %m : !line -> tensor<64x32xf16, #a16>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x32xf32, #mma16>) {
    %y = tt.load %q : tensor<32x32x!tt.ptr<f16>, #half>
    %ys = ttg.local_alloc %y : (tensor<32x32xf16, #half>) -> !half
    %d = ttng.warp_group_dot %a, %ys, %acc : tensor<64x32xf16, #a16> * !half -> tensor<64x32xf32, #mma16>
    scf.yield %d : tensor<64x32xf32, #mma16>
  }
  tt.return %r : tensor<64x32xf32, #mma16>
}
}
