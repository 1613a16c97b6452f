// Conversions between layouts: moves of registers, exchanges in a warp, shared memory.
// RUN: split-file %s %t
// RUN: tessera-translate %t/copy.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/copy.mlir
// RUN: tessera-translate %t/shuffle.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/shuffle.mlir
// RUN: tessera-translate %t/shared.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/shared.mlir
// RUN: tessera-translate %t/passes.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/passes.mlir
// RUN: tessera-translate %t/local.mlir --target=cuda:sm_90a --emit=ptx | FileCheck %t/local.mlir

//--- copy.mlir
// The same lanes hold the same elements: nothing is left.
// CHECK-LABEL: .entry copy(
// CHECK-NOT: shfl
// CHECK-NOT: shared
// CHECK: ret;
#a = #ttg.linear<{register = [[32], [64]], lane = [[1], [2], [4], [8], [16]], warp = [], block = []}>
#b = #ttg.linear<{register = [[64], [32]], lane = [[1], [2], [4], [8], [16]], warp = [], block = []}>
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @copy(%x: !tt.ptr<f32>, %o: !tt.ptr<f32>) {
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #a>
    %j = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #b>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #a>
    %px = tt.addptr %xs, %i : tensor<128x!tt.ptr<f32>, #a>, tensor<128xi32, #a>
    %v = tt.load %px : tensor<128x!tt.ptr<f32>, #a>
    %w = ttg.convert_layout %v : tensor<128xf32, #a> -> tensor<128xf32, #b>
    %os = tt.splat %o : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #b>
    %po = tt.addptr %os, %j : tensor<128x!tt.ptr<f32>, #b>, tensor<128xi32, #b>
    tt.store %po, %w : tensor<128x!tt.ptr<f32>, #b>
    tt.return
  }
}

//--- shuffle.mlir
// One warp holds all elements on both sides: one exchange a register, no shared memory.
// CHECK-NOT: .shared
// CHECK-LABEL: .entry shuffle(
// CHECK-COUNT-4: shfl.sync
// CHECK-NOT: shfl
// CHECK: ret;
#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @shuffle(%x: !tt.ptr<f32>, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #a>
    %j = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #b>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #a>
    %px = tt.addptr %xs, %i : tensor<128x!tt.ptr<f32>, #a>, tensor<128xi32, #a>
    %v = tt.load %px : tensor<128x!tt.ptr<f32>, #a>
    %w = ttg.convert_layout %v : tensor<128xf32, #a> -> tensor<128xf32, #b>
    %os = tt.splat %o : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #b>
    %po = tt.addptr %os, %j : tensor<128x!tt.ptr<f32>, #b>, tensor<128xi32, #b>
    tt.store %po, %w : tensor<128x!tt.ptr<f32>, #b>
    tt.return
  }
}

//--- shared.mlir
// A transposition goes through shared memory; constant parts of the swizzled addresses are immediates.
// CHECK: .extern .shared .align 16 .b8 shared_memory[];
// CHECK-LABEL: .entry shared(
// CHECK: st.shared.b32 [[[A:%r[0-9]+]]], {{%r[0-9]+}};
// CHECK: st.shared.b32 [[[A]]+{{[0-9]+}}],
// CHECK: bar.sync 0;
// CHECK: ld.shared.v4.b32
// CHECK: st.global.v4.b32
tt.func public @shared(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %row = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %col = tt.expand_dims %r {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %c32 = arith.constant dense<32> : tensor<32x1xi32>
  %start = arith.muli %row, %c32 : tensor<32x1xi32>
  %starts = tt.broadcast %start : tensor<32x1xi32> -> tensor<32x32xi32>
  %cols = tt.broadcast %col : tensor<1x32xi32> -> tensor<32x32xi32>
  %i = arith.addi %starts, %cols : tensor<32x32xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  %px = tt.addptr %xs, %i : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
  %v = tt.load %px : tensor<32x32x!tt.ptr<f32>>
  %t = tt.trans %v {order = array<i32: 1, 0>} : tensor<32x32xf32> -> tensor<32x32xf32>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  %po = tt.addptr %os, %i : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
  tt.store %po, %t : tensor<32x32x!tt.ptr<f32>>
  tt.return
}

//--- passes.mlir
// Too little memory for the whole tile: half of the lanes store, all load what that gives; then the other half. Every
// thread stores and loads each of its registers once.
// CHECK-LABEL: .entry passes(
// CHECK:         and.b32 %[[BIT:.*]], %{{.*}}, 4;
// CHECK:         setp.eq.b32 %[[FIRST:.*]], %[[BIT]], 0;
// CHECK-COUNT-4: @%[[FIRST]] st.shared.v4.b32
// CHECK-NOT:     st.shared
// CHECK:         bar.sync 0;
// CHECK-NOT:     st.shared
// CHECK:         bar.sync 0;
// CHECK-COUNT-4: @%p{{.*}} st.shared.v4.b32
// CHECK-NOT:     st.shared
// CHECK:         bar.sync 0;
// CHECK-NOT:     bar.sync
#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 2], order = [0, 1]}>
module attributes {"ttg.num-warps" = 2 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.shared = 2048 : i32} {
  tt.func public @passes(%o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %x: f32) {
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #b}>>
    %c = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #b}>>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #b}>> -> tensor<32x1xi32, #b>
    %col = tt.expand_dims %c {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x32xi32, #b>
    %c32 = arith.constant dense<32> : tensor<1x32xi32, #b>
    %start = arith.muli %col, %c32 : tensor<1x32xi32, #b>
    %starts = tt.broadcast %start : tensor<1x32xi32, #b> -> tensor<32x32xi32, #b>
    %rows = tt.broadcast %row : tensor<32x1xi32, #b> -> tensor<32x32xi32, #b>
    %i = arith.addi %starts, %rows : tensor<32x32xi32, #b>
    %v = tt.splat %x : f32 -> tensor<32x32xf32, #a>
    %w = ttg.convert_layout %v {allocation.offset = 0 : i32, allocation.scratch_limit = 2048 : i32} : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
    %os = tt.splat %o : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #b>
    %po = tt.addptr %os, %i : tensor<32x32x!tt.ptr<f32>, #b>, tensor<32x32xi32, #b>
    tt.store %po, %w : tensor<32x32x!tt.ptr<f32>, #b>
    tt.return
  }
}

//--- local.mlir
// A swizzled buffer takes vectors as wide as its swizzle keeps together.
// CHECK-LABEL: .entry local(
// CHECK: st.shared.v4.b32
// CHECK: bar.sync 0;
// CHECK: ld.shared.v2.b32
#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
#s = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.shared = 2048 : i32} {
  tt.func public @local(%o: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %x: f16) {
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #b}>>
    %c = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #b}>>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #b}>> -> tensor<32x1xi32, #b>
    %col = tt.expand_dims %c {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x32xi32, #b>
    %c32 = arith.constant dense<32> : tensor<32x1xi32, #b>
    %start = arith.muli %row, %c32 : tensor<32x1xi32, #b>
    %starts = tt.broadcast %start : tensor<32x1xi32, #b> -> tensor<32x32xi32, #b>
    %cols = tt.broadcast %col : tensor<1x32xi32, #b> -> tensor<32x32xi32, #b>
    %i = arith.addi %starts, %cols : tensor<32x32xi32, #b>
    %v = tt.splat %x : f16 -> tensor<32x32xf16, #a>
    %buffer = ttg.local_alloc %v {allocation.offset = 0 : i32} : (tensor<32x32xf16, #a>) -> !ttg.memdesc<32x32xf16, #s, #smem>
    ttg.barrier local
    %w = ttg.local_load %buffer : !ttg.memdesc<32x32xf16, #s, #smem> -> tensor<32x32xf16, #b>
    %os = tt.splat %o : !tt.ptr<f16> -> tensor<32x32x!tt.ptr<f16>, #b>
    %po = tt.addptr %os, %i : tensor<32x32x!tt.ptr<f16>, #b>, tensor<32x32xi32, #b>
    tt.store %po, %w : tensor<32x32x!tt.ptr<f16>, #b>
    tt.return
  }
}
