// Malformed encodings, memory descriptors, module attributes and operations of ttg.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{threadsPerWarp must hold powers of two, not 33}}
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [33], warpsPerCTA = [4], order = [0]}>

// -----

// expected-error @+1 {{warpsPerCTA has 1 entries where order has 2}}
#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4], order = [1, 0]}>

// -----

// expected-error @+1 {{order must name every dimension from 0 to 1 once}}
#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 1]}>

// -----

// expected-error @+1 {{a layout has 1 to 8 dimensions, not 0}}
#b = #ttg.blocked<{sizePerThread = [], threadsPerWarp = [], warpsPerCTA = [], order = []}>

// -----

// expected-error @+1 {{'warpsPerCTA' must be a list of integers}}
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], order = [0]}>

// -----

// expected-error @+1 {{'warps' is not a parameter of this layout}}
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], warps = 3}>

// -----

// expected-error @+1 {{'sizePerThread' must be an integer from 0 to 1048576}}
#b = #ttg.blocked<{sizePerThread = [-1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

// -----

// expected-error @+1 {{the product of threadsPerWarp is more than 1024}}
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [2048], warpsPerCTA = [4], order = [0]}>

// -----

// expected-error @+1 {{'CGALayout' has basis vectors of another length}}
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1, 0]]}>

// -----

// expected-error @+1 {{slice removes dimension 2 of a parent with 2 dimensions; one must be left}}
#s = #ttg.slice<{dim = 2, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>}>

// -----

// expected-error @+1 {{slice removes dimension 0 of a parent with 1 dimensions; one must be left}}
#s = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>}>

// -----

// expected-error @+1 {{slice needs a parent that is a distributed layout}}
#s = #ttg.slice<{dim = 0, parent = #ttg.shared_memory}>

// -----

// expected-error @+1 {{the basis vectors do not reach every element of the tensor they span}}
#l = #ttg.linear<{register = [[1]], lane = [[4]], warp = [], block = []}>

// -----

// expected-error @+1 {{a linear layout needs at least one basis vector}}
#l = #ttg.linear<{register = [], lane = [], warp = [], block = []}>

// -----

// expected-error @+1 {{vec, perPhase, maxPhase must hold powers of two, not 3}}
#s = #ttg.swizzled_shared<{vec = 3, perPhase = 1, maxPhase = 1, order = [0]}>

// -----

// expected-error @+1 {{an interval is a power of two and a padding is not 0, unlike 3:+4}}
#s = #ttg.padded_shared<[3:+4] {order = [0], shape = [64]}>

// -----

// expected-error @+1 {{two offsets of padded_shared would hold the same element}}
#s = #ttg.padded_shared<[4:+4] {offset = [[1], [2], [3]], block = []}>

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// expected-error @+1 {{the encoding describes 1 dimensions, the tensor has 2}}
tt.func private @f(tensor<4x4xf32, #b>)

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// expected-error @+1 {{a tensor with a layout needs dimensions that are powers of two}}
tt.func private @f(tensor<100xf32, #b>)

// -----

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
// expected-error @+1 {{a memdesc lives in #ttg.shared_memory, not in 3 : i64}}
tt.func private @f(!ttg.memdesc<16xf32, #s, 3>)

// -----

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
// expected-error @+1 {{the encoding describes 1 dimensions, and at most one more counts buffers, but the memdesc has 3}}
tt.func private @f(!ttg.memdesc<2x2x16xf32, #s, #ttg.shared_memory>)

// -----

// expected-error @+1 {{a memdesc needs a shared-memory encoding}}
tt.func private @f(!ttg.memdesc<16xf32, #ttg.shared_memory, #ttg.shared_memory>)

// -----

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
// expected-error @+1 {{a memdesc is not larger than the allocation it is part of}}
tt.func private @f(!ttg.memdesc<16xf32, #s, #ttg.shared_memory, mutable, 8>)

// -----

// expected-error @+1 {{ttg.num-warps must be a power of two from 1 to 64, not 3}}
module attributes {"ttg.num-warps" = 3 : i32} {}

// -----

// expected-error @+1 {{ttg.threads-per-warp is an i32 attribute of the module}}
module attributes {"ttg.threads-per-warp" = "many"} {}

// -----

// expected-error @+1 {{ttg.target must be a string such as "cuda:90"}}
module attributes {ttg.target = 90 : i32} {}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 8 : i32} {
  tt.func @f() {
    // expected-error @+1 {{has 'tensor<128xi32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>', a layout for 4 warps, in a module for 8}}
    %0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #b>
    tt.return
  }
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
  // expected-error @+1 {{a layout for 32 threads per warp, in a module for 64}}
  tt.func @f(%x: tensor<128xi32, #b>) {
    tt.return
  }
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @f(%x: tensor<128xf32>) {
  // expected-error @+1 {{converts between distributed layouts; both tiles need one}}
  %0 = ttg.convert_layout %x : tensor<128xf32> -> tensor<128xf32, #b>
  tt.return
}

// -----

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @f() {
  // expected-error @+1 {{without a tile to store needs a mutable memdesc}}
  %0 = ttg.local_alloc : () -> !ttg.memdesc<16xf32, #s, #ttg.shared_memory>
  tt.return
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @f(%x: tensor<16xf32, #b>, %m: !ttg.memdesc<16xf32, #s, #ttg.shared_memory>) {
  // expected-error @+1 {{writes only to a mutable memdesc}}
  ttg.local_store %x, %m : tensor<16xf32, #b> -> !ttg.memdesc<16xf32, #s, #ttg.shared_memory>
  tt.return
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @f(%m: !ttg.memdesc<16xf32, #s, #ttg.shared_memory>) {
  // expected-error @+1 {{needs one shape and element type}}
  %0 = ttg.local_load %m : !ttg.memdesc<16xf32, #s, #ttg.shared_memory> -> tensor<16xf16, #b>
  tt.return
}

// -----

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @f(%m: !ttg.memdesc<2x16xf32, #s, #ttg.shared_memory, mutable>, %i: i32) {
  // expected-error @+1 {{removes the leading dimension and changes nothing else}}
  %0 = ttg.memdesc_index %m[%i] : !ttg.memdesc<2x16xf32, #s, #ttg.shared_memory, mutable> -> !ttg.memdesc<8xf32, #s, #ttg.shared_memory, mutable>
  tt.return
}

// -----

tt.func @f() {
  // expected-error @+1 {{expected none, or local, global_read, global_write with | between them}}
  ttg.barrier local|shared
  tt.return
}
