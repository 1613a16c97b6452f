// The whole way, as the compiler goes it: no conversion, no barrier but those inside of the reductions, 128-bit accesses.
// RUN: tessera-opt %s -ttir-pipeline -ttgir-pipeline="num-warps=4 threads-per-warp=32 target=cuda:90" | FileCheck %s
// RUN: tessera-opt %s -ttir-pipeline -ttgir-pipeline="num-warps=16 threads-per-warp=8 target=cpu wide-lanes=true" | FileCheck %s --check-prefix=CPU
// RUN: tessera-opt %s -ttir-pipeline -ttgir-pipeline="num-warps=4 threads-per-warp=64 target=hip:gfx942" | FileCheck %s --check-prefix=AMD
// RUN: tessera-opt %s -ttir-pipeline -ttgir-pipeline="num-warps=4 threads-per-warp=32 target=hip:gfx1100" | FileCheck %s --check-prefix=AMD

// On AMD both reductions have the same scratch, and a barrier before each of them.
// AMD: ttg.shared = 16 : i32
// AMD-LABEL: @softmax
// AMD: scf.for
// AMD: ttg.barrier local
// AMD: tt.reduce
// AMD: allocation.offset = 0 : i32
// AMD: ttg.barrier local
// AMD: tt.reduce
// AMD: allocation.offset = 0 : i32
// AMD-NOT: ttg.barrier
// AMD: tt.return
// CHECK: #[[$B:.*]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK: ttg.shared = 32 : i32
// CHECK-LABEL: @softmax
// CHECK-NOT: ttg.convert_layout
// CHECK-NOT: ttg.barrier
// CHECK: tt.load {{.*}} : tensor<1024x!tt.ptr<f32>, #[[$B]]>
// CHECK-NOT: ttg.convert_layout
// CHECK-NOT: ttg.barrier
// CHECK: tt.store {{.*}} : tensor<1024x!tt.ptr<f32>, #[[$B]]>
// CPU: #[[$B:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [16], order = [0]}>
// CPU-LABEL: @softmax
// CPU-NOT: ttg.convert_layout
// CPU: tt.load {{.*}} : tensor<1024x!tt.ptr<f32>, #[[$B]]>
module {
  tt.func public @softmax(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %ld: i32 {tt.divisibility = 16 : i32}, %rows: i32, %cols: i32 {tt.divisibility = 16 : i32}) {
    %ninf = arith.constant 0xFF800000 : f32
    %pid = tt.get_program_id x : i32
    %np = tt.get_num_programs x : i32
    %col = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
    %c = tt.splat %cols : i32 -> tensor<1024xi32>
    %in = arith.cmpi slt, %col, %c : tensor<1024xi32>
    scf.for %row = %pid to %rows step %np : i32 {
      %off = arith.muli %row, %ld : i32
      %p = tt.addptr %x, %off : !tt.ptr<f32>, i32
      %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
      %pp = tt.addptr %ps, %col : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      %o = tt.splat %ninf : f32 -> tensor<1024xf32>
      %v = tt.load %pp, %in, %o : tensor<1024x!tt.ptr<f32>>
      %m = "tt.reduce"(%v) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %r = arith.maxnumf %a, %b : f32
        tt.reduce.return %r : f32
      }) : (tensor<1024xf32>) -> f32
      %ms = tt.splat %m : f32 -> tensor<1024xf32>
      %d = arith.subf %v, %ms : tensor<1024xf32>
      %e = math.exp %d : tensor<1024xf32>
      %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %r = arith.addf %a, %b : f32
        tt.reduce.return %r : f32
      }) : (tensor<1024xf32>) -> f32
      %ss = tt.splat %s : f32 -> tensor<1024xf32>
      %q = arith.divf %e, %ss : tensor<1024xf32>
      %yp = tt.addptr %y, %off : !tt.ptr<f32>, i32
      %yps = tt.splat %yp : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
      %ypp = tt.addptr %yps, %col : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      tt.store %ypp, %q, %in : tensor<1024x!tt.ptr<f32>>
    }
    tt.return
  }
}
