// local_dot on a GPU: a loop over k of outer products; A is read by vectors along k, B by vectors along n.
// RUN: tessera-translate %s --target=cuda:sm_80 --emit=ptx | FileCheck %s --check-prefix=LOADS
// RUN: tessera-translate %s --target=cuda:sm_80 --emit=ptx | FileCheck %s --check-prefix=SUMS

#acc = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.shared = 8192 : i32, ttg.target = "cuda:80"} {
  // Four rows of A by four k's, and four k's of B by four columns, are 64 multiply-adds.
  // LOADS: [[LOOP:\$L__BB0_[0-9]+]]:
  // LOADS-COUNT-8: ld.shared.v4.b32
  // LOADS-NOT: ld.shared
  // LOADS: bra{{.*}} [[LOOP]];
  // LOADS-NOT: ld.shared
  // SUMS: [[LOOP:\$L__BB0_[0-9]+]]:
  // SUMS-COUNT-64: fma.rn.f32
  // SUMS-NOT: fma.rn.f32
  // SUMS: bra{{.*}} [[LOOP]];
  // SUMS-NOT: fma.rn.f32
  tt.func public @product() {
    %zero = arith.constant dense<0.0> : tensor<16x32xf32, #acc>
    %a = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    %b = ttg.local_alloc {allocation.offset = 2048 : i32} : () -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    %d = ttg.local_dot %a, %b, %zero : !ttg.memdesc<16x32xf32, #shared, #smem, mutable> * !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<16x32xf32, #acc> -> tensor<16x32xf32, #acc>
    %c = ttg.local_alloc {allocation.offset = 6144 : i32} : () -> !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    ttg.local_store %d, %c : tensor<16x32xf32, #acc> -> !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    tt.return
  }
}
