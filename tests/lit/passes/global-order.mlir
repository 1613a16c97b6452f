// Loads and stores of one program keep their order, whichever threads do them: a barrier where what is accessed through one
// parameter may have been written, or be overwritten, by another thread.
// RUN: tessera-opt %s -ttgir-insert-barriers | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @turned
// CHECK: tt.store
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: tt.load
// CHECK-NOT: barrier
// CHECK: tt.return
tt.func public @turned(%x: !tt.ptr<i32>, %o: !tt.ptr<i32>) {
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #b>
  %last = arith.constant dense<1023> : tensor<1024xi32, #b>
  %back = arith.subi %last, %i : tensor<1024xi32, #b>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>, #b>
  %p = tt.addptr %xs, %i : tensor<1024x!tt.ptr<i32>, #b>, tensor<1024xi32, #b>
  %q = tt.addptr %xs, %back : tensor<1024x!tt.ptr<i32>, #b>, tensor<1024xi32, #b>
  %os = tt.splat %o : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>, #b>
  %r = tt.addptr %os, %i : tensor<1024x!tt.ptr<i32>, #b>, tensor<1024xi32, #b>
  tt.store %p, %i : tensor<1024x!tt.ptr<i32>, #b>
  %v = tt.load %q : tensor<1024x!tt.ptr<i32>, #b>
  tt.store %r, %v : tensor<1024x!tt.ptr<i32>, #b>
  tt.return
}

// The same thread does both; parameters are taken for different memory.
// CHECK-LABEL: @own
// CHECK-NOT: barrier
// CHECK: tt.return
tt.func public @own(%x: !tt.ptr<i32>, %o: !tt.ptr<i32>) {
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #b>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>, #b>
  %p = tt.addptr %xs, %i : tensor<1024x!tt.ptr<i32>, #b>, tensor<1024xi32, #b>
  %os = tt.splat %o : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>, #b>
  %r = tt.addptr %os, %i : tensor<1024x!tt.ptr<i32>, #b>, tensor<1024xi32, #b>
  %v = tt.load %p : tensor<1024x!tt.ptr<i32>, #b>
  tt.store %p, %i : tensor<1024x!tt.ptr<i32>, #b>
  tt.store %r, %v : tensor<1024x!tt.ptr<i32>, #b>
  %w = tt.load %p : tensor<1024x!tt.ptr<i32>, #b>
  tt.store %r, %w : tensor<1024x!tt.ptr<i32>, #b>
  tt.return
}

// 64 elements lie in two of the four warps twice, and a scalar in all threads: one of them stores.
// CHECK-LABEL: @copies
// CHECK: tt.load
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: tt.store
// CHECK: tt.load
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: tt.store
tt.func public @copies(%x: !tt.ptr<i32>, %s: !tt.ptr<i32>) {
  %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #b>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #b>
  %p = tt.addptr %xs, %i : tensor<64x!tt.ptr<i32>, #b>, tensor<64xi32, #b>
  %v = tt.load %p : tensor<64x!tt.ptr<i32>, #b>
  tt.store %p, %v : tensor<64x!tt.ptr<i32>, #b>
  %w = tt.load %s : !tt.ptr<i32>
  tt.store %s, %w : !tt.ptr<i32>
  tt.return
}

// A trip loads what the one before has stored, through pointers that are other ones by then; each trip its own, no more.
// CHECK-LABEL: @trips
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK-NEXT: tt.load
// CHECK-NOT: barrier
// CHECK: tt.return
tt.func public @trips(%x: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c1024 = arith.constant 1024 : i32
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #b>
  scf.for %t = %c0 to %n step %c1 : i32 {
    %at = arith.muli %t, %c1024 : i32
    %y = tt.addptr %x, %at : !tt.ptr<i32>, i32
    %ys = tt.splat %y : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>, #b>
    %p = tt.addptr %ys, %i : tensor<1024x!tt.ptr<i32>, #b>, tensor<1024xi32, #b>
    %v = tt.load %p : tensor<1024x!tt.ptr<i32>, #b>
    tt.store %p, %v : tensor<1024x!tt.ptr<i32>, #b>
  }
  tt.return
}

// A program's own barrier serves.
// CHECK-LABEL: @asked
// CHECK: gpu.barrier
// CHECK-NEXT: tt.load
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: arith.addi
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: tt.store
// CHECK-NEXT: tt.return
tt.func public @asked(%x: !tt.ptr<i32>) {
  %c = arith.constant 1 : i32
  tt.store %x, %c : !tt.ptr<i32>
  gpu.barrier
  %v = tt.load %x : !tt.ptr<i32>
  ttg.barrier local
  %w = arith.addi %v, %c : i32
  gpu.barrier
  tt.store %x, %w : !tt.ptr<i32>
  tt.return
}
}
