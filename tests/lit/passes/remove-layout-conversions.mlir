// RUN: tessera-opt %s -split-input-file -ttgir-remove-layout-conversions | FileCheck %s

// Index and mask arithmetic is done again in the layout of the load; nothing is converted.
#def = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#vec = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK: #[[$VEC:.*]] = #ttg.blocked<{sizePerThread = [4]
// CHECK-LABEL: @elementwise
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.make_range {{.*}} : tensor<1024xi32, #[[$VEC]]>
// CHECK: arith.cmpi slt, {{.*}} : tensor<1024xi32, #[[$VEC]]>
// CHECK: tt.load
// CHECK: math.exp {{.*}} : tensor<1024xf32, #[[$VEC]]>
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.store
tt.func @elementwise(%p: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32) {
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #def>
  %ns = tt.splat %n : i32 -> tensor<1024xi32, #def>
  %m = arith.cmpi slt, %r, %ns : tensor<1024xi32, #def>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #def>
  %q = tt.addptr %ps, %r : tensor<1024x!tt.ptr<f32>, #def>, tensor<1024xi32, #def>
  %qc = ttg.convert_layout %q : tensor<1024x!tt.ptr<f32>, #def> -> tensor<1024x!tt.ptr<f32>, #vec>
  %mc = ttg.convert_layout %m : tensor<1024xi1, #def> -> tensor<1024xi1, #vec>
  %v = tt.load %qc, %mc : tensor<1024x!tt.ptr<f32>, #vec>
  %d = ttg.convert_layout %v : tensor<1024xf32, #vec> -> tensor<1024xf32, #def>
  %e = math.exp %d : tensor<1024xf32, #def>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #def>
  %t = tt.addptr %os, %r : tensor<1024x!tt.ptr<f32>, #def>, tensor<1024xi32, #def>
  %tc = ttg.convert_layout %t : tensor<1024x!tt.ptr<f32>, #def> -> tensor<1024x!tt.ptr<f32>, #vec>
  %ec = ttg.convert_layout %e : tensor<1024xf32, #def> -> tensor<1024xf32, #vec>
  tt.store %tc, %ec, %mc : tensor<1024x!tt.ptr<f32>, #vec>
  tt.return
}
}

// -----

// Loop-carried values take the layout of the loads that feed them, whatever they start from.
#def = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#vec = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK: #[[$VEC:.*]] = #ttg.blocked<{sizePerThread = [4]
// CHECK-LABEL: @carried
// CHECK-NOT: ttg.convert_layout
// CHECK: scf.for {{.*}} -> (tensor<1024xf32, #[[$VEC]]>, tensor<1024x!tt.ptr<f32>, #[[$VEC]]>)
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.store {{.*}} #[[$VEC]]>
tt.func @carried(%p: !tt.ptr<f32>, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<1024xf32, #def>
  %step = arith.constant dense<1024> : tensor<1024xi32, #def>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #def>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #def>
  %q = tt.addptr %ps, %r : tensor<1024x!tt.ptr<f32>, #def>, tensor<1024xi32, #def>
  %acc:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %b = %q) -> (tensor<1024xf32, #def>, tensor<1024x!tt.ptr<f32>, #def>) : i32 {
    %bc = ttg.convert_layout %b : tensor<1024x!tt.ptr<f32>, #def> -> tensor<1024x!tt.ptr<f32>, #vec>
    %v = tt.load %bc : tensor<1024x!tt.ptr<f32>, #vec>
    %d = ttg.convert_layout %v : tensor<1024xf32, #vec> -> tensor<1024xf32, #def>
    %s = arith.addf %a, %d : tensor<1024xf32, #def>
    %next = tt.addptr %b, %step : tensor<1024x!tt.ptr<f32>, #def>, tensor<1024xi32, #def>
    scf.yield %s, %next : tensor<1024xf32, #def>, tensor<1024x!tt.ptr<f32>, #def>
  }
  %qc = ttg.convert_layout %q : tensor<1024x!tt.ptr<f32>, #def> -> tensor<1024x!tt.ptr<f32>, #vec>
  %sc = ttg.convert_layout %acc#0 : tensor<1024xf32, #def> -> tensor<1024xf32, #vec>
  tt.store %qc, %sc : tensor<1024x!tt.ptr<f32>, #vec>
  tt.return
}
}

// -----

// Branches: both arms yield what the result's user asks for.
#def = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#vec = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK: #[[$VEC:.*]] = #ttg.blocked<{sizePerThread = [4]
// CHECK-LABEL: @branch
// CHECK-NOT: ttg.convert_layout
// CHECK: scf.if {{.*}} -> (tensor<1024xf32, #[[$VEC]]>)
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.store
tt.func @branch(%p: tensor<1024x!tt.ptr<f32>, #vec>, %c: i1) {
  %one = arith.constant dense<1.0> : tensor<1024xf32, #def>
  %x = scf.if %c -> tensor<1024xf32, #def> {
    %v = tt.load %p : tensor<1024x!tt.ptr<f32>, #vec>
    %d = ttg.convert_layout %v : tensor<1024xf32, #vec> -> tensor<1024xf32, #def>
    scf.yield %d : tensor<1024xf32, #def>
  } else {
    scf.yield %one : tensor<1024xf32, #def>
  }
  %xc = ttg.convert_layout %x : tensor<1024xf32, #def> -> tensor<1024xf32, #vec>
  tt.store %p, %xc : tensor<1024x!tt.ptr<f32>, #vec>
  tt.return
}
}

// -----

// A row statistic stays in the slice of the tile's layout, and a small load of a row vector is done in that slice.
#r1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#t = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK: #[[$T:.*]] = #ttg.blocked<{sizePerThread = [1, 4]
// CHECK-LABEL: @rows
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.load {{.*}} : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #[[$T]]}>>
// CHECK: arith.addf {{.*}} : tensor<64xf32, #ttg.slice<{dim = 1, parent = #[[$T]]}>>
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.store
tt.func @rows(%q: tensor<64x128x!tt.ptr<f32>, #t>, %w: !tt.ptr<f32>) {
  %v = tt.load %q : tensor<64x128x!tt.ptr<f32>, #t>
  %s = "tt.reduce"(%v) <{axis = 1 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<64x128xf32, #t>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #t}>>
  %sc = ttg.convert_layout %s : tensor<64xf32, #ttg.slice<{dim = 1, parent = #t}>> -> tensor<64xf32, #r1>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
  %ws = tt.splat %w : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #r1>
  %wp = tt.addptr %ws, %r : tensor<64x!tt.ptr<f32>, #r1>, tensor<64xi32, #r1>
  %wv = tt.load %wp : tensor<64x!tt.ptr<f32>, #r1>
  %a = arith.addf %sc, %wv : tensor<64xf32, #r1>
  %ac = ttg.convert_layout %a : tensor<64xf32, #r1> -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #t}>>
  %e = tt.expand_dims %ac {axis = 1 : i32} : tensor<64xf32, #ttg.slice<{dim = 1, parent = #t}>> -> tensor<64x1xf32, #t>
  %b = tt.broadcast %e : tensor<64x1xf32, #t> -> tensor<64x128xf32, #t>
  tt.store %q, %b : tensor<64x128x!tt.ptr<f32>, #t>
  tt.return
}
}

// -----

// A transpose needs one conversion, and it stands outside of the loop that uses it.
#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @transpose
// CHECK: tt.trans
// CHECK: ttg.convert_layout
// CHECK: scf.for
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.return
tt.func @transpose(%q: tensor<64x64x!tt.ptr<f32>, #a>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %v = tt.load %q : tensor<64x64x!tt.ptr<f32>, #a>
  %t = tt.trans %v {order = array<i32: 1, 0>} : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %c = ttg.convert_layout %t : tensor<64x64xf32, #b> -> tensor<64x64xf32, #a>
    tt.store %q, %c : tensor<64x64x!tt.ptr<f32>, #a>
  }
  tt.return
}
}

// -----

// Of x -> f32 the narrow side is converted.
#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @narrow
// CHECK: ttg.convert_layout {{.*}} : tensor<64x64xf16
// CHECK: arith.extf
// CHECK-NOT: ttg.convert_layout
tt.func @narrow(%q: tensor<64x64x!tt.ptr<f16>, #a>, %o: tensor<64x64x!tt.ptr<f64>, #b>) {
  %v = tt.load %q : tensor<64x64x!tt.ptr<f16>, #a>
  %f = arith.extf %v : tensor<64x64xf16, #a> to tensor<64x64xf64, #a>
  %c = ttg.convert_layout %f : tensor<64x64xf64, #a> -> tensor<64x64xf64, #b>
  tt.store %o, %c : tensor<64x64x!tt.ptr<f64>, #b>
  tt.return
}
}

// -----

// Ops that the pass does not know keep their layouts.
#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#sh = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK: #[[$A:.*]] = #ttg.blocked<{sizePerThread = [1]
// CHECK-LABEL: @local
// CHECK: ttg.local_load {{.*}} -> tensor<1024xf32, #[[$A]]>
// CHECK: ttg.convert_layout
// CHECK: tt.store
tt.func @local(%p: tensor<1024x!tt.ptr<f32>, #b>) {
  %buf = ttg.local_alloc : () -> !ttg.memdesc<1024xf32, #sh, #smem, mutable>
  %v = ttg.local_load %buf : !ttg.memdesc<1024xf32, #sh, #smem, mutable> -> tensor<1024xf32, #a>
  %c = ttg.convert_layout %v : tensor<1024xf32, #a> -> tensor<1024xf32, #b>
  tt.store %p, %c : tensor<1024x!tt.ptr<f32>, #b>
  tt.return
}
}

// -----

// A tile of few elements may be loaded in any layout, but not one that goes to a product through shared memory.
#v = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 8], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-warps" = 8 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
// CHECK: #[[$V:.*]] = #ttg.blocked<{sizePerThread = [1, 4]
// CHECK: #[[$MMA:.*]] = #ttg.nvidia_mma
// CHECK-LABEL: @product
// CHECK: scf.for {{.*}} -> (tensor<16x64xf32, #[[$MMA]]>)
// CHECK-NEXT: %[[X:.*]] = tt.load %{{.*}} : tensor<16x16x!tt.ptr<f16>, #[[$V]]>
// CHECK-NEXT: ttg.convert_layout %[[X]] : {{.*}} -> tensor<16x16xf16, #ttg.dot_op
// What follows the product is computed where it lies.
// CHECK-NEXT: tt.dot
// CHECK-NOT: ttg.convert_layout
// CHECK: scf.yield
// CHECK: arith.truncf {{.*}} : tensor<16x64xf32, #[[$MMA]]> to tensor<16x64xf16, #[[$MMA]]>
// CHECK-NEXT: ttg.convert_layout
// CHECK-NEXT: tt.store
tt.func @product(%ap: tensor<16x16x!tt.ptr<f16>, #v>, %y: tensor<16x64xf16, #b>, %cp: tensor<16x64x!tt.ptr<f16>, #v>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16x64xf32, #v>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<16x64xf32, #v>) : i32 {
    %x = tt.load %ap : tensor<16x16x!tt.ptr<f16>, #v>
    %xd = ttg.convert_layout %x : tensor<16x16xf16, #v> -> tensor<16x16xf16, #a>
    %c = ttg.convert_layout %s : tensor<16x64xf32, #v> -> tensor<16x64xf32, #mma>
    %d = tt.dot %xd, %y, %c : tensor<16x16xf16, #a> * tensor<16x64xf16, #b> -> tensor<16x64xf32, #mma>
    %t = ttg.convert_layout %d : tensor<16x64xf32, #mma> -> tensor<16x64xf32, #v>
    scf.yield %t : tensor<16x64xf32, #v>
  }
  %h = arith.truncf %r : tensor<16x64xf32, #v> to tensor<16x64xf16, #v>
  tt.store %cp, %h : tensor<16x64x!tt.ptr<f16>, #v>
  tt.return
}
}

// -----

// The native CPU stores sums where they are: its lanes lie along rows.
#v = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [1, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#sh = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 8 : i32, ttg.target = "cpu"} {
// CHECK: #[[$S:.*]] = #ttg.blocked<{sizePerThread = [8, 1]
// CHECK-LABEL: @sums
// CHECK: ttg.local_dot
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.store {{.*}} : tensor<32x32x!tt.ptr<f32>, #[[$S]]>
tt.func @sums(%a: !ttg.memdesc<32x32xf32, #sh, #smem>, %p: !tt.ptr<f32>) {
  %zero = arith.constant dense<0.0> : tensor<32x32xf32, #s>
  %d = ttg.local_dot %a, %a, %zero : !ttg.memdesc<32x32xf32, #sh, #smem> * !ttg.memdesc<32x32xf32, #sh, #smem>, tensor<32x32xf32, #s> -> tensor<32x32xf32, #s>
  %v = ttg.convert_layout %d : tensor<32x32xf32, #s> -> tensor<32x32xf32, #v>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #v>
  tt.store %ps, %v : tensor<32x32x!tt.ptr<f32>, #v>
  tt.return
}
}
