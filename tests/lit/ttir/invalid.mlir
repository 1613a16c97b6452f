// What the verifiers of tt refuse, and the sentence they give.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics

tt.func @not_power_of_two(%p: !tt.ptr<f32>) {
  // expected-error @+1 {{result #0 is 'tensor<100x!tt.ptr<f32>>': every dimension of a tile must be a power of two}}
  %0 = tt.splat %p : !tt.ptr<f32> -> tensor<100x!tt.ptr<f32>>
  tt.return
}

// -----

tt.func @too_large(%x: f32) {
  // expected-error @+1 {{a tile has at most 1048576 elements}}
  %0 = tt.splat %x : f32 -> tensor<2048x1024xf32>
  tt.return
}

// -----

tt.func @overflowing(%x: f32) {
  // expected-error @+1 {{every dimension of a tile must be a power of two}}
  %0 = tt.splat %x : f32 -> tensor<4611686018427387904x4xf32>
  tt.return
}

// -----

tt.func @rank_0(%x: f32) {
  // expected-error @+1 {{a tile has at least one dimension; use a scalar}}
  %0 = tt.splat %x : f32 -> tensor<f32>
  tt.return
}

// -----

tt.func @dynamic(%x: f32) {
  // expected-error @+1 {{every dimension of a tile must be a power of two}}
  %0 = tt.splat %x : f32 -> tensor<?xf32>
  tt.return
}

// -----

tt.func @foreign_encoding(%x: f32) {
  // expected-error @+1 {{the encoding must be a distributed layout of dialect ttg}}
  %0 = tt.splat %x : f32 -> tensor<4xf32, "row">
  tt.return
}

// -----

// expected-error @+1 {{a pointer points to a float, a signless integer or a pointer, not to 'si32'}}
tt.func private @signed(!tt.ptr<si32>)

// -----

// expected-error @+1 {{a pointer points to a float, a signless integer or a pointer, not to 'tensor<4xf32>'}}
tt.func private @to_tile(!tt.ptr<tensor<4xf32>>)

// -----

tt.func @splat(%x: f32) {
  // expected-error @+1 {{makes a tile of 'f32', not of 'f16'}}
  %0 = tt.splat %x : f32 -> tensor<4xf16>
  tt.return
}

// -----

tt.func @range_size() {
  // expected-error @+1 {{gives a 1-D tile of 16 elements, not 'tensor<8xi32>'}}
  %0 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<8xi32>
  tt.return
}

// -----

tt.func @range_order() {
  // expected-error @+1 {{needs start < end, but start is 16 and end is 8}}
  %0 = tt.make_range {end = 8 : i32, start = 16 : i32} : tensor<8xi32>
  tt.return
}

// -----

tt.func @range_type() {
  // expected-error @+1 {{gives i32 elements}}
  %0 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi64>
  tt.return
}

// -----

tt.func @load_scalar(%x: f32) {
  // expected-error @+1 {{'ptr' must be pointer or tile of pointers, but got 'f32'}}
  %0 = tt.load %x : f32
  tt.return
}

// -----

tt.func @other_without_mask(%p: !tt.ptr<f32>, %x: f32) {
  // expected-error @+1 {{has `other` but no mask}}
  %0 = "tt.load"(%p, %x) <{operandSegmentSizes = array<i32: 1, 0, 1>}> : (!tt.ptr<f32>, f32) -> f32
  tt.return
}

// -----

tt.func @mask_shape(%p: tensor<8x!tt.ptr<f32>>, %m: tensor<4xi1>) {
  // expected-error @+1 {{mask has one bit per pointer}}
  %0 = "tt.load"(%p, %m) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<8x!tt.ptr<f32>>, tensor<4xi1>) -> tensor<8xf32>
  tt.return
}

// -----

tt.func @load_type(%p: tensor<8x!tt.ptr<f32>>) {
  // expected-error @+1 {{result is what the pointer points to}}
  %0 = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf16>
  tt.return
}

// -----

tt.func @store_type(%p: !tt.ptr<f32>, %x: f16) {
  // expected-error @+1 {{value is what the pointer points to}}
  "tt.store"(%p, %x) : (!tt.ptr<f32>, f16) -> ()
  tt.return
}

// -----

// expected-error @+1 {{elements in memory have 8, 16, 32 or 64 bits (or are i1), not 24 as 'i24'}}
tt.func @odd_width(%p: !tt.ptr<i24>) {
  tt.return
}

// -----

tt.func @store_modifier(%p: !tt.ptr<f32>, %x: f32) {
  // expected-error @+1 {{does not know cacheModifier ca}}
  tt.store %p, %x cacheModifier = ca : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @addptr(%p: tensor<8x!tt.ptr<f32>>, %i: tensor<4xi32>) {
  // expected-error @+1 {{all non-scalar operands/results must have the same shape and base type}}
  %0 = tt.addptr %p, %i : tensor<8x!tt.ptr<f32>>, tensor<4xi32>
  tt.return
}

// -----

tt.func @addptr_scalar(%p: tensor<8x!tt.ptr<f32>>, %i: i32) {
  // expected-error @+1 {{needs the same shape and encoding for 'tensor<8x!tt.ptr<f32>>' and 'i32'}}
  %0 = tt.addptr %p, %i : tensor<8x!tt.ptr<f32>>, i32
  tt.return
}

// -----

tt.func @bitcast_width(%x: tensor<8xf32>) {
  // expected-error @+1 {{needs types of one width, but 'f32' has 32 bits and 'i16' has 16}}
  %0 = tt.bitcast %x : tensor<8xf32> -> tensor<8xi16>
  tt.return
}

// -----

tt.func @bitcast_pointer(%x: i64) {
  // expected-error @+1 {{casts pointers only to pointers; use int_to_ptr or ptr_to_int}}
  %0 = tt.bitcast %x : i64 -> !tt.ptr<f32>
  tt.return
}

// -----

tt.func @address_width(%x: i32) {
  // expected-error @+1 {{takes 64-bit addresses}}
  %0 = tt.int_to_ptr %x : i32 -> !tt.ptr<f32>
  tt.return
}

// -----

tt.func @no_rounding(%x: f32) {
  // expected-error @+1 {{needs a rounding mode to narrow 'f32' to 'f16'}}
  %0 = tt.fp_to_fp %x : f32 -> f16
  tt.return
}

// -----

tt.func @expand_axis(%x: tensor<8xf32>) {
  // expected-error @+2 {{axis must be between 0 and the rank of the source}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = tt.expand_dims %x {axis = 2 : i32} : tensor<8xf32> -> tensor<8x1xf32>
  tt.return
}

// -----

tt.func @expand_negative(%x: tensor<8xf32>) {
  // expected-error @+2 {{axis must be between 0 and the rank of the source}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = tt.expand_dims %x {axis = -1 : i32} : tensor<8xf32> -> tensor<8x1xf32>
  tt.return
}

// -----

tt.func @expand_shape(%x: tensor<8xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<8x1xf32>' are incompatible}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = tt.expand_dims %x {axis = 1 : i32} : tensor<8xf32> -> tensor<1x8xf32>
  tt.return
}

// -----

tt.func @broadcast_size(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{repeats only dimensions of size 1, but one of size 2 becomes 4}}
  %0 = tt.broadcast %x : tensor<2x8xf32> -> tensor<4x8xf32>
  tt.return
}

// -----

tt.func @broadcast_rank(%x: tensor<8xf32>) {
  // expected-error @+1 {{keeps element type and rank, but goes from 'tensor<8xf32>' to 'tensor<4x8xf32>'}}
  %0 = tt.broadcast %x : tensor<8xf32> -> tensor<4x8xf32>
  tt.return
}

// -----

tt.func @reshape_count(%x: tensor<8xf32>) {
  // expected-error @+1 {{keeps element type and number of elements}}
  %0 = tt.reshape %x : tensor<8xf32> -> tensor<4x4xf32>
  tt.return
}

// -----

tt.func @trans_order(%x: tensor<8x4xf32>) {
  // expected-error @+2 {{order must be a permutation of the source's dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = tt.trans %x {order = array<i32: 0, 0>} : tensor<8x4xf32> -> tensor<4x8xf32>
  tt.return
}

// -----

tt.func @cat_shape(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{doubles the first dimension of 'tensor<8x4xf32>', it cannot give 'tensor<8x8xf32>'}}
  %0 = tt.cat %x, %x : tensor<8x4xf32> -> tensor<8x8xf32>
  tt.return
}

// -----

tt.func @split_size(%x: tensor<8x4xf32>) {
  // expected-error @+2 {{split needs a tile of at least two dimensions, the last of size 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %l, %r = tt.split %x : tensor<8x4xf32> -> tensor<8xf32>
  tt.return
}

// -----

tt.func @unsplat(%x: tensor<2xf32>) {
  // expected-error @+2 {{unsplat needs a tile with one element}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "tt.unsplat"(%x) : (tensor<2xf32>) -> f32
  tt.return
}

// -----

tt.func @gather_axis(%x: tensor<8x4xf32>, %i: tensor<8x4xi32>) {
  // expected-error @+2 {{gather: axis must be less than the rank of the source}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = tt.gather %x[%i] {axis = 2 : i32} : (tensor<8x4xf32>, tensor<8x4xi32>) -> tensor<8x4xf32>
  tt.return
}

// -----

tt.func @gather_shape(%x: tensor<8x4xf32>, %i: tensor<8x8xi32>) {
  // expected-error @+2 {{must agree in every dimension but the axis, yet have 4 and 8 in dimension 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = tt.gather %x[%i] {axis = 0 : i32} : (tensor<8x4xf32>, tensor<8x8xi32>) -> tensor<8x8xf32>
  tt.return
}

// -----

tt.func @reduce_axis(%x: tensor<8xf32>) {
  // expected-error @+2 {{reduce: axis must be less than the rank of the operands}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %m = arith.addf %a, %b : f32
    tt.reduce.return %m : f32
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// -----

tt.func @reduce_arguments(%x: tensor<8xf32>) {
  // expected-error @+1 {{its region takes ('f32', 'f32'), not ('f32')}}
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32):
    tt.reduce.return %a : f32
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// -----

tt.func @reduce_returns(%x: tensor<8xf32>) {
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    // expected-error @+1 {{must give one scalar per operand: ('f32'), not ('f32', 'f32')}}
    tt.reduce.return %a, %b : f32, f32
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// -----

tt.func @reduce_effects(%x: tensor<8xf32>, %p: !tt.ptr<f32>) {
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    // expected-error @+1 {{has side effects, so it cannot be used to combine elements}}
    tt.store %p, %a : !tt.ptr<f32>
    tt.reduce.return %a : f32
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// -----

tt.func @reduce_shapes(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{needs operands of one shape and encoding}}
  %0:2 = "tt.reduce"(%x, %y) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    tt.reduce.return %a, %b : f32, f32
  }) : (tensor<8xf32>, tensor<4xf32>) -> (f32, f32)
  tt.return
}

// -----

tt.func @print(%x: f32) {
  // expected-error @+1 {{has 1 values but isSigned for 2}}
  tt.print "x" {hex = false, isSigned = array<i32: 0, 0>} : %x : f32
  tt.return
}

// -----

tt.func @packed(%x: tensor<8xf32>) {
  // expected-error @+1 {{packed_element must be a power of two from 1 to 64}}
  %0 = tt.elementwise_inline_asm "" {constraints = "", packed_element = 3 : i32, pure = true} %x : tensor<8xf32> -> tensor<8xf32>
  tt.return
}

// -----

tt.func @callee(%x: f32) {
  // expected-error @+1 {{calls 'nobody', which is not a tt.func of this module}}
  tt.call @nobody(%x) : (f32) -> ()
  tt.return
}

// -----

tt.func private @takes_int(i32)
tt.func @call_types(%x: f32) {
  // expected-error @+1 {{passes 'f32' where 'takes_int' takes 'i32'}}
  tt.call @takes_int(%x) : (f32) -> ()
  tt.return
}

// -----

tt.func @returns(%x: f32) -> i32 {
  // expected-error @+1 {{returns 'f32' where 'returns' is declared to return 'i32'}}
  tt.return %x : f32
}

// -----

// expected-error @+1 {{tt.divisibility of argument 0 must be a positive integer}}
tt.func @divisibility(%p: !tt.ptr<f32> {tt.divisibility = 0 : i32}) {
  tt.return
}

// -----

// expected-error @+1 {{elements in memory have 8, 16, 32 or 64 bits (or are i1), not 19 as 'tf32'}}
tt.func @tf32_in_memory(%p: !tt.ptr<tf32>) {
  tt.return
}
