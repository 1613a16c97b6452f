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
