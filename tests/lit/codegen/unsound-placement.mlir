// ttgir that promises less shared memory than its operations use is refused, not run.
// RUN: not tessera-translate %s --target=cuda:sm_90a --emit=llir 2>&1 | FileCheck %s
// CHECK: unsound-placement.mlir:9:10: codegen error: needs shared memory up to byte 32, but ttg.shared is 16

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.shared = 16 : i32} {
  tt.func public @kernel(%p: !tt.ptr<i32>) {
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #b>
    %0 = "tt.reduce"(%i) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %c: i32):
      %d = arith.addi %a, %c : i32
      tt.reduce.return %d : i32
    }) {allocation.offset = 16 : i32} : (tensor<128xi32, #b>) -> i32
    tt.store %p, %0 : !tt.ptr<i32>
    tt.return
  }
}
