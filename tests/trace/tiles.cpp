// Shapes, memory and reductions.
#include "print.h"

// CHECK-LABEL: @broadcasting(
// CHECK-DAG: %[[C:.*]] = tt.expand_dims %{{.*}} {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
// CHECK-DAG: %[[R:.*]] = tt.expand_dims %{{.*}} {axis = 0 : i32} : tensor<8xi32> -> tensor<1x8xi32>
// CHECK-DAG: tt.broadcast %[[R]] : tensor<1x8xi32> -> tensor<4x8xi32>
// CHECK: tt.addptr %{{.*}} : tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>
// CHECK: tt.store %{{.*}}, %{{.*}} : tensor<4x8x!tt.ptr<f32>>
const trace broadcasting("broadcasting", [](tl::ptr<float> p, tl::val<tl::i32> ld) {
  using tl::all, tl::newaxis;
  tl::store(p + tl::arange(0, 4)[all, newaxis] * ld + tl::arange(0, 8)[newaxis, all], 1.0f);
});

// A tile with fewer dimensions is extended on the left.
// CHECK-LABEL: @left(
// CHECK: tt.expand_dims %{{.*}} {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
// CHECK: tt.broadcast %{{.*}} : tensor<1x8xf32> -> tensor<4x8xf32>
const trace left("left", [](tl::ptr<float> p) {
  auto x = tl::load(p + tl::arange(0, 8)), y = tl::load(p + tl::reshape(tl::arange(0, 32), {4, 8}));
  tl::store(p + tl::reshape(tl::arange(0, 32), {4, 8}), x + y);
});

// CHECK-LABEL: @shapes(
// CHECK: tt.trans %{{.*}} {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
// CHECK: tt.trans %{{.*}} {order = array<i32: 2, 0, 1>}
// CHECK: %[[J:.*]] = tt.join
// CHECK: tt.split %[[J]]
// CHECK: tt.join %{{.*}} : tensor<4x8xf32> -> tensor<4x8x2xf32>
// CHECK: tt.trans %{{.*}} {order = array<i32: 0, 2, 1>} : tensor<4x8x2xf32> -> tensor<4x2x8xf32>
// CHECK: tt.reshape %{{.*}} : tensor<4x2x8xf32> -> tensor<4x16xf32>
const trace shapes("shapes", [](tl::ptr<float> p, tl::ptr<float> q) {
  auto a = tl::load(p + tl::reshape(tl::arange(0, 32), {4, 8}));
  tl::store(q + tl::reshape(tl::arange(0, 32), {8, 4}), tl::trans(a));
  tl::store(q + tl::reshape(tl::arange(0, 32), {4, 2, 4}), tl::permute(tl::reshape(a, {2, 4, 4}), {2, 0, 1}));
  auto [x, y] = tl::split(tl::join(a, a * 2));
  tl::store(q + tl::reshape(tl::arange(0, 32), {4, 8}), x + y);
  tl::store(q + tl::reshape(tl::arange(0, 64), {4, 16}), tl::cat(a, a, -1));
});

// CHECK-LABEL: @accesses(
// CHECK: tt.load %{{.*}}, %[[M:.*]], %{{.*}} cacheModifier = ca evictionPolicy = evict_first : tensor<16x!tt.ptr<f32>>
// CHECK: tt.load %{{.*}} {isVolatile = true} : !tt.ptr<f32>
// CHECK: tt.store %{{.*}}, %{{.*}}, %{{.*}} cacheModifier = wt evictionPolicy = evict_last : tensor<16x!tt.ptr<f32>>
const trace accesses("accesses", [](tl::ptr<float> p, tl::val<tl::i32> n) {
  auto r = tl::arange(0, 16);
  auto x = tl::load(p + r, r < n, {.other = 1, .cache = tl::cache::ca, .evict = tl::evict::first});
  auto y = tl::load(p, {.is_volatile = true});
  tl::store(p + r, x + y, n > 0, {.cache = tl::cache::wt, .evict = tl::evict::last});
});

// CHECK-LABEL: @sums(
// CHECK: arith.extsi %{{.*}} : tensor<16xi8> to tensor<16xi32>
// CHECK: "tt.reduce"{{.*}}
// CHECK: arith.addi
// CHECK: }) : (tensor<16xi32>) -> i32
// CHECK: arith.extui %{{.*}} : tensor<16xi1> to tensor<16xi32>
// CHECK: }) : (tensor<16xf16>) -> f16
const trace sums("sums", [](tl::ptr<tl::i8> a, tl::ptr<tl::i32> b, tl::ptr<tl::f16> c) {
  auto r = tl::arange(0, 16);
  tl::store(b, tl::sum(tl::load(a + r)));
  tl::store(b, tl::sum(r < 4));
  tl::store(c, tl::sum(tl::load(c + r)));
});

// CHECK-LABEL: @axes(
// CHECK: }) : (tensor<4x8xf32>) -> tensor<4xf32>
// CHECK: }) : (tensor<4x8xf32>) -> tensor<8xf32>
// CHECK: tt.expand_dims %{{.*}} {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
// CHECK: tt.reshape %{{.*}} : tensor<4x8xf32> -> tensor<32xf32>
// CHECK: arith.minimumf
// CHECK: }) : (tensor<32xf32>) -> f32
const trace axes("axes", [](tl::ptr<float> p) {
  auto x = tl::load(p + tl::reshape(tl::arange(0, 32), {4, 8}));
  tl::store(p + tl::arange(0, 4), tl::sum(x, -1));
  tl::store(p + tl::arange(0, 8)[tl::newaxis, tl::all], tl::max(x, 0, {.keep_dims = true}));
  tl::store(p, tl::min(x, tl::all_axes, {}, tl::propagate_nan::all));
});

// The index among the dimension reduced; the lower one wins ties, and NaN loses.
// CHECK-LABEL: @indices(
// CHECK: %[[I:.*]] = tt.broadcast %{{.*}} : tensor<1x8xi32> -> tensor<4x8xi32>
// CHECK: %[[R:.*]]:2 = "tt.reduce"(%{{.*}}, %[[I]]) <{axis = 1 : i32}> ({
// CHECK: ^bb0(%[[A:.*]]: f32, %[[IA:.*]]: i32, %[[B:.*]]: f32, %[[IB:.*]]: i32):
// CHECK-DAG: arith.cmpf ogt, %[[A]], %[[B]]
// CHECK-DAG: arith.cmpf uno, %[[B]], %[[B]]
// CHECK-DAG: arith.cmpi slt, %[[IA]], %[[IB]]
// CHECK: tt.reduce.return
// CHECK: (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4xf32>, tensor<4xi32>)
// CHECK: tt.store %{{.*}}, %[[R]]#1
const trace indices("indices", [](tl::ptr<float> p, tl::ptr<tl::i32> q) {
  auto x = tl::load(p + tl::reshape(tl::arange(0, 32), {4, 8}));
  tl::store(q + tl::arange(0, 4), tl::argmax(x, 1));
});

// CHECK-LABEL: @custom(
// CHECK: "tt.reduce"
// CHECK: arith.mulf
// CHECK: "tt.reduce"(%{{.*}}, %{{.*}})
// CHECK: arith.select
// CHECK: (tensor<16xf32>, tensor<16xi32>) -> (f32, i32)
const trace custom("custom", [](tl::ptr<float> p, tl::ptr<tl::i32> q) {
  auto x = tl::load(p + tl::arange(0, 16));
  tl::store(p, tl::reduce(x, 0, [](auto a, auto b) { return a * b; }));
  auto [v, n] = tl::reduce(std::tuple{x, tl::arange(0, 16)}, 0, [](auto a, auto b) {
    auto [ax, an] = a;
    auto [bx, bn] = b;
    return std::tuple{tl::where(ax < bx, ax, bx), an + bn};
  });
  tl::store(p, v);
  tl::store(q, n);
});

// CHECK-LABEL: @hints(
// CHECK-SAME: %{{.*}}: i32 {tt.divisibility = 8 : i32}
// CHECK: arith.addi {{.*}} {tt.contiguity = dense<16> : tensor<1xi32>, tt.divisibility = dense<4> : tensor<1xi32>}
// CHECK: llvm.intr.assume %{{.*}} : i1
// CHECK: tt.assert %{{.*}}, "in range"
// CHECK: tt.print "x" {hex = false, isSigned = array<i32: 1, 0>}
const trace hints("hints", [](tl::ptr<tl::i32> p, tl::val<tl::i32> n) {
  auto m = tl::multiple_of(n, {8});
  auto o = tl::max_contiguous(tl::multiple_of(m + tl::arange(0, 16), {4}), {16});
  tl::assume(n > 0);
  tl::device_assert(o < 100, "in range", o > 2);
  tl::device_print("x", o, o.to<tl::u8>());
  tl::store(p + o, o);
});

// Hints inside loops: about the induction variable they stay with the loop; about a variable that the loop only reads
// they belong to the value it has outside.
// CHECK-LABEL: @hints_in_loops(
// CHECK: %[[A:.*]] = arith.addi %arg1, %{{.*}} {tt.divisibility = dense<8> : tensor<1xi32>} : i32
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.while
// CHECK: arith.addi %{{.*}}, %[[A]]
// CHECK: } {tt.divisibility_arg0 = dense<32> : tensor<1xi32>}
// CHECK: } {tt.divisibility_arg0 = dense<16> : tensor<1xi32>}
const trace hints_in_loops("hints_in_loops", [](tl::ptr<tl::i32> p, tl::val<tl::i32> n) {
  tl::var pitch = n + 1, i = n;
  for (auto j : tl::range(n, 2 * n)) {
    (void)tl::multiple_of(j, {16});
    for (auto k : tl::range(j, n)) {
      auto at = tl::multiple_of(k, {32});
      tl::while_([&] { return i < 3; }, [&] { i += at + tl::multiple_of(pitch, {8}); });
    }
  }
  tl::store(p, i);
});
