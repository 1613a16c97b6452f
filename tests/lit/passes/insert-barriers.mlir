// RUN: tessera-opt %s -split-input-file -ttgir-insert-barriers | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#sh = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// Read after write, write after read; reads need none between them.
// CHECK-LABEL: @straight
// CHECK: ttg.local_alloc
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.local_load
// CHECK-NEXT: ttg.local_load
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.local_store
// CHECK-NEXT: ttg.local_store
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.local_load
// CHECK-NEXT: tt.return
tt.func @straight(%v: tensor<1024xf32, #b>, %o: !ttg.memdesc<1024xf32, #sh, #smem, mutable>) {
  %c = ttg.local_alloc %v {allocation.offset = 0 : i32} : (tensor<1024xf32, #b>) -> !ttg.memdesc<1024xf32, #sh, #smem, mutable>
  %x = ttg.local_load %c : !ttg.memdesc<1024xf32, #sh, #smem, mutable> -> tensor<1024xf32, #b>
  %y = ttg.local_load %c : !ttg.memdesc<1024xf32, #sh, #smem, mutable> -> tensor<1024xf32, #b>
  ttg.local_store %x, %c : tensor<1024xf32, #b> -> !ttg.memdesc<1024xf32, #sh, #smem, mutable>
  ttg.local_store %y, %o : tensor<1024xf32, #b> -> !ttg.memdesc<1024xf32, #sh, #smem, mutable>
  %z = ttg.local_load %c : !ttg.memdesc<1024xf32, #sh, #smem, mutable> -> tensor<1024xf32, #b>
  tt.return
}

// Buffers that do not overlap; a barrier that is there already.
// CHECK-LABEL: @apart
// CHECK-COUNT-1: ttg.barrier
// CHECK-NOT: ttg.barrier
tt.func @apart(%v: tensor<1024xf32, #b>) {
  %c = ttg.local_alloc %v {allocation.offset = 0 : i32} : (tensor<1024xf32, #b>) -> !ttg.memdesc<1024xf32, #sh, #smem>
  ttg.barrier local
  %d = ttg.local_alloc %v {allocation.offset = 4096 : i32} : (tensor<1024xf32, #b>) -> !ttg.memdesc<1024xf32, #sh, #smem>
  %x = ttg.local_load %c : !ttg.memdesc<1024xf32, #sh, #smem> -> tensor<1024xf32, #b>
  tt.return
}

// Around the loop: the load of one trip comes before the store of the next.
// CHECK-LABEL: @loop
// CHECK: scf.for
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.local_store
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.local_load
// CHECK: }
tt.func @loop(%v: tensor<1024xf32, #b>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<1024xf32, #sh, #smem, mutable>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %v) -> tensor<1024xf32, #b> : i32 {
    ttg.local_store %a, %c : tensor<1024xf32, #b> -> !ttg.memdesc<1024xf32, #sh, #smem, mutable>
    %x = ttg.local_load %c : !ttg.memdesc<1024xf32, #sh, #smem, mutable> -> tensor<1024xf32, #b>
    scf.yield %x : tensor<1024xf32, #b>
  }
  tt.return
}

// A store in one arm only: what follows the branch must wait.
// CHECK-LABEL: @branch
// CHECK: scf.if
// CHECK-NEXT: ttg.local_store
// CHECK-NEXT: }
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.local_load
tt.func @branch(%v: tensor<1024xf32, #b>, %p: i1) {
  %c = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<1024xf32, #sh, #smem, mutable>
  scf.if %p {
    ttg.local_store %v, %c : tensor<1024xf32, #b> -> !ttg.memdesc<1024xf32, #sh, #smem, mutable>
  }
  %x = ttg.local_load %c : !ttg.memdesc<1024xf32, #sh, #smem, mutable> -> tensor<1024xf32, #b>
  tt.return
}

// A while loop: the condition reads what the body wrote.
// CHECK-LABEL: @while
// CHECK: scf.while
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.local_load
// CHECK: } do {
// CHECK: ttg.barrier local
// CHECK-NEXT: ttg.local_store
tt.func @while(%v: tensor<1024xf32, #b>) {
  %c = ttg.local_alloc %v {allocation.offset = 0 : i32} : (tensor<1024xf32, #b>) -> !ttg.memdesc<1024xf32, #sh, #smem, mutable>
  scf.while : () -> () {
    %x = ttg.local_load %c : !ttg.memdesc<1024xf32, #sh, #smem, mutable> -> tensor<1024xf32, #b>
    %t = arith.constant true
    scf.condition(%t)
  } do {
    ttg.local_store %v, %c : tensor<1024xf32, #b> -> !ttg.memdesc<1024xf32, #sh, #smem, mutable>
    scf.yield
  }
  tt.return
}
}

// -----

// Scratch of reductions: the same place needs a barrier, neighbours none; around a loop of two none, of one one.
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @two_in_loop
// CHECK-NOT: ttg.barrier
// CHECK: tt.return
tt.func @two_in_loop(%v: tensor<1024xf32, #b>, %p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %r = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tt.reduce.return %z : f32
    }) {allocation.offset = 0 : i32} : (tensor<1024xf32, #b>) -> f32
    tt.store %p, %r : !tt.ptr<f32>
    %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.mulf %x, %y : f32
      tt.reduce.return %z : f32
    }) {allocation.offset = 16 : i32} : (tensor<1024xf32, #b>) -> f32
    tt.store %p, %s : !tt.ptr<f32>
  }
  tt.return
}
// CHECK-LABEL: @one_in_loop
// CHECK: scf.for
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: "tt.reduce"
// CHECK-NOT: ttg.barrier
tt.func @one_in_loop(%v: tensor<1024xf32, #b>, %p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %r = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tt.reduce.return %z : f32
    }) {allocation.offset = 0 : i32} : (tensor<1024xf32, #b>) -> f32
    tt.store %p, %r : !tt.ptr<f32>
  }
  tt.return
}
}

// -----

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#sh = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
!ring = !ttg.memdesc<3x64x32xf16, #sh, #smem, mutable>
!slot = !ttg.memdesc<64x32xf16, #sh, #smem, mutable>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// A ring of three: the one barrier lies between the wait and the copy. It makes what was copied visible, and separates the
// reads of the trip before from the copy into the same buffer; this trip reads another one.
// CHECK-LABEL: @ring
// CHECK: ttg.async_copy_global_to_local
// CHECK-NOT: ttg.barrier
// CHECK: scf.for
// CHECK: ttg.async_wait
// CHECK: ttg.barrier local
// CHECK-NEXT: ttg.async_copy_global_to_local
// CHECK-NOT: ttg.barrier
// CHECK: scf.yield
tt.func @ring(%p: tensor<64x32x!tt.ptr<f16>, #b>, %o: tensor<64x32x!tt.ptr<f16>, #b>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %cm1 = arith.constant -1 : i32
  %r = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ring
  %s0 = ttg.memdesc_index %r[%c0] : !ring -> !slot
  %t0 = ttg.async_copy_global_to_local %p, %s0 : tensor<64x32x!tt.ptr<f16>, #b> -> <64x32xf16, #sh, #smem, mutable>
  %s1 = ttg.memdesc_index %r[%c1] : !ring -> !slot
  %t1 = ttg.async_copy_global_to_local %p, %s1 : tensor<64x32x!tt.ptr<f16>, #b> -> <64x32xf16, #sh, #smem, mutable>
  %e:2 = scf.for %k = %c0 to %n step %c1 iter_args(%w = %c1, %x = %cm1) -> (i32, i32) : i32 {
    %w1 = arith.addi %w, %c1 : i32
    %wc = arith.cmpi sge, %w1, %c3 : i32
    %wn = arith.select %wc, %c0, %w1 : i32
    %x1 = arith.addi %x, %c1 : i32
    %xc = arith.cmpi sge, %x1, %c3 : i32
    %xn = arith.select %xc, %c0, %x1 : i32
    %write = ttg.memdesc_index %r[%wn] : !ring -> !slot
    %read = ttg.memdesc_index %r[%xn] : !ring -> !slot
    %wait = ttg.async_wait {num = 1 : i32}
    %t = ttg.async_copy_global_to_local %p, %write : tensor<64x32x!tt.ptr<f16>, #b> -> <64x32xf16, #sh, #smem, mutable>
    %v = ttg.local_load %read : !slot -> tensor<64x32xf16, #b>
    tt.store %o, %v : tensor<64x32x!tt.ptr<f16>, #b>
    scf.yield %wn, %xn : i32, i32
  }
  tt.return
}

// A copy to where this trip reads comes behind a barrier. The other buffer of the two, which the trip before copied to and
// this one has waited for, is read in the next trip, behind that barrier: no other is needed.
// CHECK-LABEL: @in_place
// CHECK: scf.for
// CHECK: ttg.async_wait
// CHECK-NEXT: ttg.local_load
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.async_copy_global_to_local
// CHECK-NOT: ttg.barrier
// CHECK: tt.return
tt.func @in_place(%p: tensor<64x32x!tt.ptr<f16>, #b>, %o: tensor<64x32x!tt.ptr<f16>, #b>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %cm1 = arith.constant -1 : i32
  %r = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<2x64x32xf16, #sh, #smem, mutable>
  %e = scf.for %k = %c0 to %n step %c1 iter_args(%x = %cm1) -> (i32) : i32 {
    %x1 = arith.addi %x, %c1 : i32
    %xn = arith.remsi %x1, %c2 : i32
    %slot = ttg.memdesc_index %r[%xn] : !ttg.memdesc<2x64x32xf16, #sh, #smem, mutable> -> !slot
    %wait = ttg.async_wait {num = 0 : i32}
    %v = ttg.local_load %slot : !slot -> tensor<64x32xf16, #b>
    %t = ttg.async_copy_global_to_local %p, %slot : tensor<64x32x!tt.ptr<f16>, #b> -> <64x32xf16, #sh, #smem, mutable>
    tt.store %o, %v : tensor<64x32x!tt.ptr<f16>, #b>
    scf.yield %xn : i32
  }
  tt.return
}
}

// -----

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#sh = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!view = !ttg.memdesc<64x64xf16, #sh, #smem, mutable>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// An asynchronous product reads until the wait that retires it; a barrier before that does not help.
// CHECK-LABEL: @in_flight
// CHECK: ttg.local_store %arg0
// CHECK-NEXT: ttg.local_store %arg0
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttng.warp_group_dot
// CHECK-NEXT: ttng.warp_group_dot
// CHECK-NEXT: ttng.warp_group_dot_wait %{{.*}} {pendings = 1
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.local_store %arg0
// CHECK-NEXT: ttng.warp_group_dot_wait %{{.*}} {pendings = 0
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.local_store %arg0
tt.func @in_flight(%x: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #mma>) {
  %p = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !view
  %q = ttg.local_alloc {allocation.offset = 8192 : i32} : () -> !view
  ttg.local_store %x, %p : tensor<64x64xf16, #b> -> !view
  ttg.local_store %x, %q : tensor<64x64xf16, #b> -> !view
  %d = ttng.warp_group_dot %p, %p, %c {isAsync = true} : !view * !view -> tensor<64x64xf32, #mma>
  %e = ttng.warp_group_dot %q, %q, %d {isAsync = true} : !view * !view -> tensor<64x64xf32, #mma>
  %w = ttng.warp_group_dot_wait %e {pendings = 1 : i32} : tensor<64x64xf32, #mma>
  ttg.local_store %x, %p : tensor<64x64xf16, #b> -> !view
  %z = ttng.warp_group_dot_wait %w {pendings = 0 : i32} : tensor<64x64xf32, #mma>
  ttg.local_store %x, %q : tensor<64x64xf16, #b> -> !view
  tt.return
}
}
