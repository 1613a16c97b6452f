// A tile of small elements that is loaded for the next iteration waits for it in words, where it comes in words.
// RUN: tessera-translate %s --target=cuda:sm_90a --emit=llir | FileCheck %s
// RUN: tessera-translate %s --target=cuda:sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: sed 's/tt.divisibility = 16/tt.divisibility = 1/' %s | tessera-translate - --target=cuda:sm_90a --emit=llir | FileCheck %s --check-prefix=SINGLE

// CHECK-LABEL: @turned
// CHECK-NOT: phi i8
// CHECK-COUNT-4: phi <4 x i8>
// CHECK-NOT: phi i8
// Four by four bytes change places in eight steps.
// PTX-LABEL: .entry turned
// PTX-COUNT-8: prmt.b32
// PTX-NOT: prmt.b32
// PTX: st.shared.b32
// SINGLE-LABEL: @turned
// SINGLE-COUNT-16: phi i8
#row = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @turned(%x: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %y: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<64x32xi8, #row>
  %width = arith.constant dense<32> : tensor<64x1xi32, #row>
  %step = arith.constant dense<2048> : tensor<64x32xi32, #row>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #row}>>
  %c = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #row}>>
  %r2 = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #row}>> -> tensor<64x1xi32, #row>
  %c2 = tt.expand_dims %c {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #row}>> -> tensor<1x32xi32, #row>
  %down = arith.muli %r2, %width : tensor<64x1xi32, #row>
  %rb = tt.broadcast %down : tensor<64x1xi32, #row> -> tensor<64x32xi32, #row>
  %cb = tt.broadcast %c2 : tensor<1x32xi32, #row> -> tensor<64x32xi32, #row>
  %off = arith.addi %rb, %cb : tensor<64x32xi32, #row>
  %xs = tt.splat %x : !tt.ptr<i8> -> tensor<64x32x!tt.ptr<i8>, #row>
  %ys = tt.splat %y : !tt.ptr<i8> -> tensor<64x32x!tt.ptr<i8>, #row>
  %p0 = tt.addptr %xs, %off : tensor<64x32x!tt.ptr<i8>, #row>, tensor<64x32xi32, #row>
  %q = tt.addptr %ys, %off : tensor<64x32x!tt.ptr<i8>, #row>, tensor<64x32xi32, #row>
  %buffer = ttg.local_alloc : () -> !ttg.memdesc<64x32xi8, #shared, #smem, mutable>
  %last:2 = scf.for %k = %c0 to %n step %c1 iter_args(%v = %zero, %p = %p0) -> (tensor<64x32xi8, #row>, tensor<64x32x!tt.ptr<i8>, #row>) : i32 {
    ttg.local_store %v, %buffer : tensor<64x32xi8, #row> -> !ttg.memdesc<64x32xi8, #shared, #smem, mutable>
    %next = tt.load %p : tensor<64x32x!tt.ptr<i8>, #row>
    %p1 = tt.addptr %p, %step : tensor<64x32x!tt.ptr<i8>, #row>, tensor<64x32xi32, #row>
    scf.yield %next, %p1 : tensor<64x32xi8, #row>, tensor<64x32x!tt.ptr<i8>, #row>
  }
  %t = ttg.local_load %buffer : !ttg.memdesc<64x32xi8, #shared, #smem, mutable> -> tensor<64x32xi8, #row>
  tt.store %q, %t : tensor<64x32x!tt.ptr<i8>, #row>
  tt.return
}
}
