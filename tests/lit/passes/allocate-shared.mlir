// RUN: tessera-opt %s -split-input-file -verify-diagnostics -ttgir-allocate-shared="max-shared-bytes=20000" | FileCheck %s

// Two buffers that live at the same time lie apart; a third takes the place of the first.
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#sh = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// CHECK: module attributes {{.*}}ttg.shared = 8192 : i32
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @buffers
// CHECK: ttg.local_alloc {{.*}}allocation.offset = [[X:[0-9]+]] : i32
// CHECK: ttg.local_alloc {{.*}}allocation.offset = {{[0-9]+}} : i32
// CHECK: ttg.local_alloc {{.*}}allocation.offset = [[X]] : i32
tt.func @buffers(%v: tensor<1024xf32, #b>, %p: tensor<1024x!tt.ptr<f32>, #b>) {
  %x = ttg.local_alloc %v : (tensor<1024xf32, #b>) -> !ttg.memdesc<1024xf32, #sh, #smem>
  %y = ttg.local_alloc %v : (tensor<1024xf32, #b>) -> !ttg.memdesc<1024xf32, #sh, #smem>
  %a = ttg.local_load %x : !ttg.memdesc<1024xf32, #sh, #smem> -> tensor<1024xf32, #b>
  %z = ttg.local_alloc %a : (tensor<1024xf32, #b>) -> !ttg.memdesc<1024xf32, #sh, #smem>
  %c = ttg.local_load %y : !ttg.memdesc<1024xf32, #sh, #smem> -> tensor<1024xf32, #b>
  %d = ttg.local_load %z : !ttg.memdesc<1024xf32, #sh, #smem> -> tensor<1024xf32, #b>
  tt.store %p, %c : tensor<1024x!tt.ptr<f32>, #b>
  tt.store %p, %d : tensor<1024x!tt.ptr<f32>, #b>
  tt.return
}
}

// -----

// A buffer used in a loop lives until the loop ends: one made in the loop must not take its place.
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#sh = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// CHECK: module attributes {{.*}}ttg.shared = 8192 : i32
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @loop
tt.func @loop(%v: tensor<1024xf32, #b>, %p: tensor<1024x!tt.ptr<f32>, #b>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = ttg.local_alloc %v : (tensor<1024xf32, #b>) -> !ttg.memdesc<1024xf32, #sh, #smem>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %a = ttg.local_load %x : !ttg.memdesc<1024xf32, #sh, #smem> -> tensor<1024xf32, #b>
    %y = ttg.local_alloc %a : (tensor<1024xf32, #b>) -> !ttg.memdesc<1024xf32, #sh, #smem>
    %c = ttg.local_load %y : !ttg.memdesc<1024xf32, #sh, #smem> -> tensor<1024xf32, #b>
    tt.store %p, %c : tensor<1024x!tt.ptr<f32>, #b>
  }
  tt.return
}
}

// -----

// Scratch of neighbouring reductions is kept apart.
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK: module attributes {{.*}}ttg.shared = 32 : i32
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @reductions
// CHECK: {allocation.offset = 0 : i32} : (tensor<1024xf32
// CHECK: {allocation.offset = 16 : i32} : (tensor<1024xf32
// CHECK: {allocation.offset = 0 : i32} : (tensor<1024xf32
tt.func @reductions(%v: tensor<1024xf32, #b>) -> (f32, f32, f32) {
  %r = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<1024xf32, #b>) -> f32
  %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.mulf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<1024xf32, #b>) -> f32
  %t = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.maxnumf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<1024xf32, #b>) -> f32
  tt.return %r, %s, %t : f32, f32, f32
}
}

// -----

// It shares its bytes where the target would rather have barriers; what lives at the same time lies apart there, too.
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#sh = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// CHECK: module attributes {{.*}}ttg.shared = 4112 : i32
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
// CHECK-LABEL: @shared_scratch
// CHECK: ttg.local_alloc {{.*}}allocation.offset = 0 : i32
// CHECK: {allocation.offset = 4096 : i32} : (tensor<1024xf32
// CHECK: {allocation.offset = 4096 : i32} : (tensor<1024xf32
// CHECK: {allocation.offset = 0 : i32} : (tensor<1024xf32
tt.func @shared_scratch(%v: tensor<1024xf32, #b>) -> (f32, f32, f32, tensor<1024xf32, #b>) {
  %a = ttg.local_alloc %v : (tensor<1024xf32, #b>) -> !ttg.memdesc<1024xf32, #sh, #smem>
  %r = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<1024xf32, #b>) -> f32
  %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.mulf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<1024xf32, #b>) -> f32
  %l = ttg.local_load %a : !ttg.memdesc<1024xf32, #sh, #smem> -> tensor<1024xf32, #b>
  %t = "tt.reduce"(%l) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.maxnumf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<1024xf32, #b>) -> f32
  tt.return %r, %s, %t, %l : f32, f32, f32, tensor<1024xf32, #b>
}
}

// -----

// A conversion that would not fit takes more passes; only as many as it must. One that fits keeps its scratch.
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK: module attributes {{.*}}ttg.shared = 16384 : i32
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @passes
// CHECK: ttg.convert_layout %arg0 {allocation.offset = 0 : i32, allocation.scratch_limit = 16384 : i32} : tensor<64x128xf32
// CHECK: ttg.convert_layout %arg1 {allocation.offset = 0 : i32} : tensor<32x128xf32
tt.func @passes(%v: tensor<64x128xf32, #rows>, %w: tensor<32x128xf32, #rows>) -> (tensor<64x128xf32, #columns>, tensor<32x128xf32, #columns>) {
  %x = ttg.convert_layout %v : tensor<64x128xf32, #rows> -> tensor<64x128xf32, #columns>
  %y = ttg.convert_layout %w : tensor<32x128xf32, #rows> -> tensor<32x128xf32, #columns>
  tt.return %x, %y : tensor<64x128xf32, #columns>, tensor<32x128xf32, #columns>
}
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#sh = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @too_much(%v: tensor<8192xf32, #b>) {
  // expected-error @+1 {{needs 32768 bytes of shared memory; with what is live at the same time 32768, but a program may use 20000: use smaller tiles or fewer stages}}
  %x = ttg.local_alloc %v : (tensor<8192xf32, #b>) -> !ttg.memdesc<8192xf32, #sh, #smem>
  tt.return
}
}

// -----

// Swizzled buffers start at a multiple of what the permutation covers. What an asynchronous product reads stays until the
// wait behind which its result is used: %q must not get its place, %s may.
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#v = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#sh = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK: ttg.shared = 17408 : i32
// CHECK-LABEL: @in_flight
// CHECK: %[[SMALL:.*]] = ttg.local_alloc %arg1 {allocation.offset = 16384 : i32}
// CHECK: ttg.local_alloc %arg0 {allocation.offset = 0 : i32}
// CHECK: ttg.local_alloc %arg0 {allocation.offset = 8192 : i32}
// CHECK: warp_group_dot_wait
// CHECK: ttg.local_alloc %arg0 {allocation.offset = 0 : i32}
tt.func @in_flight(%x: tensor<64x64xf16, #b>, %l: tensor<256xf32, #v>, %c: tensor<64x64xf32, #mma>) {
  %small = ttg.local_alloc %l : (tensor<256xf32, #v>) -> !ttg.memdesc<256xf32, #flat, #smem>
  %p = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #sh, #smem>
  %d = ttng.warp_group_dot %p, %p, %c {isAsync = true} : !ttg.memdesc<64x64xf16, #sh, #smem> * !ttg.memdesc<64x64xf16, #sh, #smem> -> tensor<64x64xf32, #mma>
  %q = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #sh, #smem>
  %y = ttg.local_load %q : !ttg.memdesc<64x64xf16, #sh, #smem> -> tensor<64x64xf16, #b>
  %w = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x64xf32, #mma>
  %s = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #sh, #smem>
  %z = ttg.local_load %s : !ttg.memdesc<64x64xf16, #sh, #smem> -> tensor<64x64xf16, #b>
  %m = ttg.local_load %small : !ttg.memdesc<256xf32, #flat, #smem> -> tensor<256xf32, #v>
  tt.return
}
}
