// Which loads may run ahead, and how far.
// RUN: tessera-opt %s -ttgir-assign-latencies=num-stages=4 | FileCheck %s
// RUN: tessera-opt %s -ttgir-assign-latencies="num-stages=4 max-shared-bytes=200000" | FileCheck %s --check-prefix=ROOM
// RUN: tessera-opt %s -ttgir-assign-latencies=num-stages=2 | FileCheck %s --check-prefix=TWO
// RUN: sed 's/cuda:80/hip:gfx942/' %s | tessera-opt -ttgir-assign-latencies=num-stages=4 | FileCheck %s --check-prefix=NOCOPY
// RUN: sed 's/cuda:80/cpu/' %s | tessera-opt -ttgir-assign-latencies=num-stages=4 | FileCheck %s --check-prefix=CPU

// CPU-NOT: tt.latency
#row = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// Copies: four stages are three buffers, two of which are being filled. In registers a tile waits for one iteration; what
// threads compute of it is stored a stage before the product where stages are left.
// CHECK-LABEL: @product
// CHECK: tt.load {{.*}}tt.latency = 2
// CHECK: tt.load {{.*}}tt.latency = 1
// CHECK: local_alloc
// CHECK-NOT: tt.latency
// CHECK: local_alloc {{.*}}tt.latency = 1
// CHECK-NOT: tt.latency
// CHECK: scf.yield
// With room for a fourth buffer the copy runs a stage earlier.
// ROOM-LABEL: @product
// ROOM: tt.load {{.*}}tt.latency = 3
// ROOM: scf.yield
// TWO-LABEL: @product
// TWO: tt.load {{.*}}tt.latency = 1
// TWO: tt.load {{.*}}tt.latency = 1
// TWO-NOT: tt.latency
// TWO: scf.yield
// Stored behind the product, in the trip of their loads.
// NOCOPY-LABEL: @product
// NOCOPY: tt.load
// NOCOPY-NOT: tt.latency
// NOCOPY: local_alloc {{.*}}tt.latency = 1
// NOCOPY: local_alloc {{.*}}tt.latency = 1
// NOCOPY: scf.yield
tt.func public @product(%a: tensor<32x32x!tt.ptr<f32>, #row>, %b: tensor<32x32x!tt.ptr<f32>, #row>, %n: index) -> tensor<32x32xf32, #row> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<32x32xf32, #row>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32, #row>) {
    %x = tt.load %a : tensor<32x32x!tt.ptr<f32>, #row>
    %y = tt.load %b : tensor<32x32x!tt.ptr<f32>, #row>
    %y2 = arith.addf %y, %y : tensor<32x32xf32, #row>
    %xs = ttg.local_alloc %x : (tensor<32x32xf32, #row>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
    %ys = ttg.local_alloc %y2 : (tensor<32x32xf32, #row>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
    %d = ttg.local_dot %xs, %ys, %acc : !ttg.memdesc<32x32xf32, #shared, #smem> * !ttg.memdesc<32x32xf32, #shared, #smem>, tensor<32x32xf32, #row> -> tensor<32x32xf32, #row>
    scf.yield %d : tensor<32x32xf32, #row>
  }
  tt.return %r : tensor<32x32xf32, #row>
}

// An index, and what lies there.
// CHECK-LABEL: @indirect
// CHECK: tt.load {{.*}}tt.latency = 1{{.*}} !tt.ptr<i32>
// CHECK: tt.load {{.*}}tt.latency = 1{{.*}} tensor
// CHECK: scf.yield
// Two stages are enough for one load of the two.
// TWO-LABEL: @indirect
// TWO: tt.load %{{.*}} : !tt.ptr<i32>
// TWO: tt.load {{.*}}tt.latency = 1{{.*}} tensor
tt.func public @indirect(%index: !tt.ptr<i32>, %a: tensor<32x32x!tt.ptr<f32>, #row>, %n: i32) -> tensor<32x32xf32, #row> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32, #row>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32, #row>) : i32 {
    %p = tt.addptr %index, %i : !tt.ptr<i32>, i32
    %at = tt.load %p : !tt.ptr<i32>
    %s = tt.splat %at : i32 -> tensor<32x32xi32, #row>
    %q = tt.addptr %a, %s : tensor<32x32x!tt.ptr<f32>, #row>, tensor<32x32xi32, #row>
    %x = tt.load %q : tensor<32x32x!tt.ptr<f32>, #row>
    %xs = ttg.local_alloc %x : (tensor<32x32xf32, #row>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
    %d = ttg.local_dot %xs, %xs, %acc : !ttg.memdesc<32x32xf32, #shared, #smem> * !ttg.memdesc<32x32xf32, #shared, #smem>, tensor<32x32xf32, #row> -> tensor<32x32xf32, #row>
    scf.yield %d : tensor<32x32xf32, #row>
  }
  tt.return %r : tensor<32x32xf32, #row>
}

// Copies fill with zeros only.
// CHECK-LABEL: @filled
// CHECK: tt.load {{.*}}tt.latency = 1
tt.func public @filled(%a: tensor<32x32x!tt.ptr<f32>, #row>, %m: tensor<32x32xi1, #row>, %n: index) -> tensor<32x32xf32, #row> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<32x32xf32, #row>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %one) -> (tensor<32x32xf32, #row>) {
    %x = tt.load %a, %m, %one : tensor<32x32x!tt.ptr<f32>, #row>
    %xs = ttg.local_alloc %x : (tensor<32x32xf32, #row>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
    %d = ttg.local_dot %xs, %xs, %acc : !ttg.memdesc<32x32xf32, #shared, #smem> * !ttg.memdesc<32x32xf32, #shared, #smem>, tensor<32x32xf32, #row> -> tensor<32x32xf32, #row>
    scf.yield %d : tensor<32x32xf32, #row>
  }
  tt.return %r : tensor<32x32xf32, #row>
}

// A store may write what the next load reads, if both pointers may be made of the same argument. A volatile load stays
// where it is, and no load of a branch or of a loop around another moves.
// CHECK-LABEL: @stores
// CHECK-NOT: tt.latency
// CHECK: tt.return
tt.func public @stores(%p: tensor<32x32x!tt.ptr<f32>, #row>, %s: !tt.ptr<f32>, %c: i1, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<32x32xf32, #row>
  scf.for %i = %c0 to %n step %c1 {
    %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #row>
    %y = arith.addf %x, %x : tensor<32x32xf32, #row>
    tt.store %p, %y : tensor<32x32x!tt.ptr<f32>, #row>
  } {tt.num_stages = 3 : i32}
  scf.for %i = %c0 to %n step %c1 {
    %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #row>
    scf.if %c {
      tt.store %p, %x : tensor<32x32x!tt.ptr<f32>, #row>
    }
  } {tt.num_stages = 3 : i32}
  %v = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %one) -> (tensor<32x32xf32, #row>) {
    %x = tt.load %p {isVolatile = true} : tensor<32x32x!tt.ptr<f32>, #row>
    %y = arith.addf %x, %acc : tensor<32x32xf32, #row>
    scf.yield %y : tensor<32x32xf32, #row>
  } {tt.num_stages = 3 : i32}
  %w = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %v) -> (tensor<32x32xf32, #row>) {
    %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #row>
    %y = scf.for %j = %c0 to %n step %c1 iter_args(%in = %acc) -> (tensor<32x32xf32, #row>) {
      %z = scf.if %c -> tensor<32x32xf32, #row> {
        %u = tt.load %p : tensor<32x32x!tt.ptr<f32>, #row>
        scf.yield %u : tensor<32x32xf32, #row>
      } else {
        scf.yield %in : tensor<32x32xf32, #row>
      }
      scf.yield %z : tensor<32x32xf32, #row>
    } {tt.num_stages = 3 : i32}
    %z = arith.addf %x, %y : tensor<32x32xf32, #row>
    scf.yield %z : tensor<32x32xf32, #row>
  } {tt.num_stages = 3 : i32}
  tt.store %p, %w : tensor<32x32x!tt.ptr<f32>, #row>
  tt.return
}

// Memory of another argument is not what is stored to; a pointer from memory may lead anywhere.
// CHECK-LABEL: @elsewhere
// CHECK: scf.for
// CHECK-NEXT: tt.load %arg0 {{.*}}tt.latency = 1
// CHECK-NEXT: tt.load %arg1
// CHECK-NOT: tt.latency
// CHECK: tt.return
tt.func public @elsewhere(%arg0: tensor<32x32x!tt.ptr<f32>, #row>, %arg1: tensor<32x32x!tt.ptr<f32>, #row>, %pp: !tt.ptr<!tt.ptr<f32>>, %c: i1, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %x = tt.load %arg0 : tensor<32x32x!tt.ptr<f32>, #row>
    %v = tt.load %arg1 : tensor<32x32x!tt.ptr<f32>, #row>
    %y = arith.addf %x, %v : tensor<32x32xf32, #row>
    scf.if %c {
      tt.store %arg1, %y : tensor<32x32x!tt.ptr<f32>, #row>
    }
  } {tt.num_stages = 3 : i32}
  %m = scf.for %i = %c0 to %n step %c1 iter_args(%q = %arg1) -> (tensor<32x32x!tt.ptr<f32>, #row>) {
    %x = tt.load %arg0 : tensor<32x32x!tt.ptr<f32>, #row>
    tt.store %q, %x : tensor<32x32x!tt.ptr<f32>, #row>
    %r = arith.select %c, %q, %arg0 : tensor<32x32x!tt.ptr<f32>, #row>
    scf.yield %r : tensor<32x32x!tt.ptr<f32>, #row>
  } {tt.num_stages = 3 : i32}
  %p = tt.load %pp : !tt.ptr<!tt.ptr<f32>>
  scf.for %i = %c0 to %n step %c1 {
    %x = tt.load %arg0 : tensor<32x32x!tt.ptr<f32>, #row>
    tt.store %p, %one : !tt.ptr<f32>
  } {tt.num_stages = 3 : i32}
  tt.return
}

// Without a product only if the loop itself asks, and if the tile does not take too many registers.
tt.func public @sums(%p: tensor<32x32x!tt.ptr<f32>, #row>, %big: tensor<128x128x!tt.ptr<f32>, #row>, %n: index) -> (tensor<32x32xf32, #row>, tensor<128x128xf32, #row>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<32x32xf32, #row>
  %bigZero = arith.constant dense<0.0> : tensor<128x128xf32, #row>
  // CHECK: tt.load %{{[a-z0-9]+}} : tensor
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32, #row>) {
    %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #row>
    %y = arith.addf %x, %acc : tensor<32x32xf32, #row>
    scf.yield %y : tensor<32x32xf32, #row>
  }
  // CHECK: tt.load {{.*}}tt.latency = 1
  // CHECK: tt.load {{.*}}tt.latency = 1
  // TWO-LABEL: @sums
  // TWO: tt.load {{.*}}tt.latency = 1
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %r) -> (tensor<32x32xf32, #row>) {
    tt.print "x" {hex = false, isSigned = array<i32: 0>} : %acc : tensor<32x32xf32, #row>
    %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #row>
    %x2 = tt.load %p : tensor<32x32x!tt.ptr<f32>, #row>
    %y = arith.addf %x, %x2 : tensor<32x32xf32, #row>
    %z = arith.addf %y, %acc : tensor<32x32xf32, #row>
    scf.yield %z : tensor<32x32xf32, #row>
  } {tt.num_stages = 3 : i32}
  // CHECK-NOT: tt.latency
  %t = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %bigZero) -> (tensor<128x128xf32, #row>) {
    %x = tt.load %big : tensor<128x128x!tt.ptr<f32>, #row>
    %y = arith.addf %x, %acc : tensor<128x128xf32, #row>
    scf.yield %y : tensor<128x128xf32, #row>
  } {tt.num_stages = 3 : i32}
  tt.return %s, %t : tensor<32x32xf32, #row>, tensor<128x128xf32, #row>
}
}
