// Where lanes move within a run of registers, an access is only as wide as no lane moves: lane 16 has elements 2, 3, 0, 1 of
// its group of four.
// RUN: tessera-translate %s --target=cuda:sm_80 --emit=ptx | FileCheck %s
// RUN: tessera-translate %s --target=hip:gfx1100 --emit=amdgcn | FileCheck %s --check-prefix=AMD
// And the lanes of a warp are one run only if no register moves them: the executor gets an address for each lane.
// RUN: sed 's/lane = .*, warp/lane = [[4], [8], [16], [32], [64]], warp/; s/128/256/g; s/\[2\]\]/[2], [160]]/' %s > %t.mlir
// RUN: tessera-translate %t.mlir --target=cpu:emulate=gfx1100 --emit=llir | FileCheck %s --check-prefix=LANES
// LANES: private {{.*}}constant { i32, i32, i32, i32, i32, { ptr, i32, i32 } } { i32 32, i32 4, i32 4, i32 4, i32 0,
// CHECK-COUNT-2: ld.global.v2.b32
// CHECK-NOT: ld.global
// CHECK-COUNT-2: st.global.v2.b32
// CHECK-NOT: st.global
// AMD-COUNT-2: global_load_b64
// AMD-NOT: global_load
#swizzled = #ttg.linear<{register = [[1], [2]], lane = [[4], [8], [16], [32], [66]], warp = [], block = []}>
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @copy(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #swizzled>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #swizzled>
    %xp = tt.addptr %xs, %i : tensor<128x!tt.ptr<f32>, #swizzled>, tensor<128xi32, #swizzled>
    %v = tt.load %xp : tensor<128x!tt.ptr<f32>, #swizzled>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #swizzled>
    %yp = tt.addptr %ys, %i : tensor<128x!tt.ptr<f32>, #swizzled>, tensor<128xi32, #swizzled>
    tt.store %yp, %v : tensor<128x!tt.ptr<f32>, #swizzled>
    tt.return
  }
}
