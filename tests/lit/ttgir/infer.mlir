// Encodings of the results of shape operations: the verifier compares linear layouts, not names, and a wrong one is an error
// that names the encoding it wants.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics

#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#bt = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
tt.func @trans(%x: tensor<16x32xf32, #b>) {
  %0 = tt.trans %x {order = array<i32: 1, 0>} : tensor<16x32xf32, #b> -> tensor<32x16xf32, #bt>
  // expected-error @+2 {{are incompatible with return type(s)}}
  // expected-error @+1 {{failed to infer returned types}}
  %1 = tt.trans %x {order = array<i32: 1, 0>} : tensor<16x32xf32, #b> -> tensor<32x16xf32, #b>
  tt.return
}

// -----

// The same layout under two names: blocked, and the bases written out.
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#l = #ttg.linear<{register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]], block = []}>
tt.func @equivalent(%x: tensor<16xi32, #ttg.slice<{dim = 1, parent = #b}>>, %y: tensor<16x1xf32, #b>) {
  %0 = tt.expand_dims %x {axis = 1 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #b}>> -> tensor<16x1xi32, #l>
  %1 = tt.broadcast %y : tensor<16x1xf32, #b> -> tensor<16x32xf32, #l>
  tt.return
}

// -----

// Reshape moves nothing: 16x32 -> 512 keeps each lane's elements.
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#flat = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#other = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @reshape(%x: tensor<16x32xf32, #b>) {
  %0 = tt.reshape %x : tensor<16x32xf32, #b> -> tensor<512xf32, #flat>
  %1 = tt.reshape %x allow_reorder : tensor<16x32xf32, #b> -> tensor<512xf32, #other>
  // expected-error @+1 {{so the result needs encoding #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}> or `allow_reorder`}}
  %2 = tt.reshape %x : tensor<16x32xf32, #b> -> tensor<512xf32, #other>
  tt.return
}

// -----

// Join puts the new dimension into the lowest register; split takes it out.
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#j = #ttg.blocked<{sizePerThread = [4, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#k = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>
tt.func @join(%x: tensor<512xf32, #b>, %y: tensor<512x2xf32, #k>) {
  %0 = tt.join %x, %x : tensor<512xf32, #b> -> tensor<512x2xf32, #j>
  %1, %2 = tt.split %0 : tensor<512x2xf32, #j> -> tensor<512xf32, #b>
  // expected-error @+2 {{split cannot be done within a lane on}}
  // expected-error @+1 {{failed to infer returned types}}
  %3, %4 = tt.split %y : tensor<512x2xf32, #k> -> tensor<512xf32, #b>
  tt.return
}

// -----

// Cat needs a result with twice the registers.
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#c = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @cat(%x: tensor<64xf32, #b>) {
  %0 = tt.cat %x, %x : tensor<64xf32, #b> -> tensor<128xf32, #c>
  // expected-error @+1 {{needs a result with twice the registers of an operand}}
  %1 = tt.cat %x, %x : tensor<64xf32, #b> -> tensor<128xf32, #b>
  tt.return
}

// -----

#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
tt.func @reduce(%x: tensor<16x32xf32, #b>) {
  // expected-error @+2 {{are incompatible with return type(s)}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%c: f32, %d: f32):
    %m = arith.addf %c, %d : f32
    tt.reduce.return %m : f32
  }) : (tensor<16x32xf32, #b>) -> tensor<16xf32, #ttg.slice<{dim = 0, parent = #b}>>
  tt.return
}

// -----

#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#c = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
tt.func @broadcast(%x: tensor<16x1xf32, #b>) {
  // expected-error @+1 {{keeps the encoding}}
  %0 = tt.broadcast %x : tensor<16x1xf32, #b> -> tensor<16x32xf32, #c>
  tt.return
}
