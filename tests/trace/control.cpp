// Variables through loops and branches: what is carried, and what is not.
#include "print.h"

// Only what the body assigns is carried; `fixed` is read and stays the value outside.
// CHECK-LABEL: @carried(
// CHECK-SAME: %[[P:.*]]: !tt.ptr<f32>, %[[N:.*]]: i32
// CHECK: %[[FIXED:.*]] = tt.load
// CHECK: %[[R:.*]] = scf.for %[[I:.*]] = %{{.*}} to %[[N]] step %{{.*}} iter_args(%[[A:.*]] = %{{.*}}) -> (tensor<8xf32>) : i32 {
// CHECK: %[[S:.*]] = arith.addf %[[A]], %[[FIXED]]
// CHECK: scf.yield %[[S]]
// CHECK: tt.store %{{.*}}, %[[R]]
const trace carried("carried", [](tl::ptr<float> p, tl::val<tl::i32> n) {
  auto at = p + tl::arange(0, 8);
  tl::var fixed = tl::load(at);
  tl::var acc = tl::zeros<float>({8});
  for ([[maybe_unused]] auto i : tl::range(n)) acc += fixed;
  tl::store(at, acc);
});

// `auto` before the assignment keeps the old value.
// CHECK-LABEL: @swap(
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %[[A0:.*]], %[[B:.*]] = %[[B0:.*]]) -> (i32, i32)
// CHECK: %[[S:.*]] = arith.addi %[[A]], %[[B]]
// CHECK: scf.yield %[[B]], %[[S]]
// CHECK: tt.store %{{.*}}, %[[R]]#0
const trace swap("swap", [](tl::ptr<tl::i32> p, tl::val<tl::i32> n) {
  tl::var a = 0, b = 1;
  for ([[maybe_unused]] auto i : tl::range(n)) {
    auto old = a + b;
    a = b;
    b = old;
  }
  tl::store(p, a);
});

// A variable assigned but not read is carried too: the loop may run zero times.
// CHECK-LABEL: @last(
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %c7_i32) -> (i32)
// CHECK: scf.yield %[[I]]
const trace last("last", [](tl::ptr<tl::i32> p, tl::val<tl::i32> n) {
  tl::var x = 7;
  for (auto i : tl::range(n)) x = i;
  tl::store(p, x);
});

// CHECK-LABEL: @nested(
// CHECK: %[[OUT:.*]] = scf.for %[[I:.*]] = {{.*}} iter_args(%[[A:.*]] = %{{.*}}) -> (f32)
// CHECK: %[[IN:.*]] = scf.for %[[J:.*]] = %[[I]] to %{{.*}} iter_args(%[[B:.*]] = %[[A]]) -> (f32)
// CHECK: %[[IF:.*]] = scf.if %{{.*}} -> (f32) {
// CHECK: %[[S:.*]] = arith.addf %[[B]],
// CHECK: scf.yield %[[S]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[B]]
// CHECK: scf.yield %[[IF]]
// CHECK-NEXT: } {tt.loop_unroll_factor = 4 : i32}
// CHECK: scf.yield %[[IN]]
// CHECK: tt.store %{{.*}}, %[[OUT]]
const trace nested("nested", [](tl::ptr<float> p, tl::val<tl::i32> n) {
  tl::var acc = 0.0f;
  for (auto i : tl::range(n))
    for (auto j : tl::range(i, n, 2, {.unroll = 4}))
      tl::if_(j > 3, [&] { acc += j.to<float>(); });
  tl::store(p, acc);
});

// CHECK-LABEL: @branches(
// CHECK: %[[R:.*]]:2 = scf.if %{{.*}} -> (i32, i32) {
// CHECK: scf.yield %[[N2:.*]], %c1_i32
// CHECK: } else {
// CHECK: scf.yield %c0_i32{{.*}}, %[[N3:.*]] : i32, i32
// CHECK: scf.if %{{.*}} {
// CHECK-NOT: else
// CHECK: tt.return
const trace branches("branches", [](tl::ptr<tl::i32> p, tl::val<tl::i32> n) {
  tl::var a = 0, b = 1;
  tl::if_(n > 0, [&] { a = n * 2; }).else_([&] { b = n * 3; });
  tl::if_(n > 5, [&] { tl::store(p, a + b); });
});

// CHECK-LABEL: @value_form(
// CHECK: %[[R:.*]]:2 = scf.if %{{.*}} -> (tensor<8xi32>, f32) {
// CHECK: } else {
// CHECK: tt.store %{{.*}}, %[[R]]#0
const trace value_form("value_form", [](tl::ptr<tl::i32> p, tl::ptr<float> q, tl::val<tl::i32> n, tl::val<float> f) {
  auto r = tl::arange(0, 8);
  auto [x, y] = tl::cond(n > 0, [&] { return std::tuple{r + n, f}; }, [&] { return std::tuple{r, f * 2}; });
  tl::store(p + r, x);
  tl::store(q, y);
});

// The condition reads what the body assigns; `step` is neither.
// CHECK-LABEL: @bisect(
// CHECK-SAME: %{{[^:]*}}: !tt.ptr<i32>, %[[N:[^:]*]]: i32, %[[STEP:[^:]*]]: i32
// CHECK: %[[R:.*]]:2 = scf.while (%[[L:.*]] = %{{.*}}, %[[H:.*]] = %[[N]]) : (i32, i32) -> (i32, i32) {
// CHECK: %[[C:.*]] = arith.cmpi slt, %[[L]], %[[H]]
// CHECK: scf.condition(%[[C]]) %[[L]], %[[H]]
// CHECK: ^bb0(%[[L2:.*]]: i32, %[[H2:.*]]: i32):
// CHECK: %[[A:.*]] = arith.addi %[[L2]], %[[STEP]]
// CHECK: %[[B:.*]] = arith.subi %[[H2]], %{{.*}}
// CHECK: scf.yield %[[A]], %[[B]]
// CHECK: tt.store %{{.*}}, %[[R]]#0
const trace bisect("bisect", [](tl::ptr<tl::i32> p, tl::val<tl::i32> n, tl::val<tl::i32> by) {
  tl::var lo = 0, hi = n, step = by;
  tl::while_([&] { return lo < hi; }, [&] {
    lo += step;
    hi -= 1;
  });
  tl::store(p, lo);
});

// Pointers are carried like any other value.
// CHECK-LABEL: @walk(
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[Q:.*]] = %{{.*}}) -> (tensor<16xf32>, tensor<16x!tt.ptr<f32>>)
// CHECK: tt.load %[[Q]]
// CHECK: tt.addptr %[[Q]]
const trace walk("walk", [](tl::ptr<float> p, tl::val<tl::i32> n) {
  tl::var acc = tl::zeros<float>({16});
  tl::var q = p + tl::arange(0, 16);
  for ([[maybe_unused]] auto i : tl::range(n)) {
    acc += tl::load(q);
    q += 16;
  }
  tl::store(p + tl::arange(0, 16), acc);
});

// CHECK-LABEL: @bounds(
// CHECK: scf.for unsigned %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} : i32 {
// CHECK: scf.for %{{.*}} = %c0_i64 to %{{.*}} step %c1_i64{{.*}} : i64 {
const trace bounds("bounds", [](tl::ptr<float> p, tl::val<tl::u32> u, tl::val<tl::i64> l) {
  for (auto i : tl::range(u)) tl::store(p + i, 1.0f);
  for (auto i : tl::range(l)) tl::store(p + i, 1.0f);
});

// CHECK-LABEL: @unrolled(
// CHECK-NOT: scf.for
// CHECK-COUNT-3: tt.store
// CHECK-NOT: tt.store
// CHECK: tt.return
const trace unrolled("unrolled", [](tl::ptr<float> p) {
  for (int i : tl::static_range(5)) {
    if (i == 3) break;
    tl::store(p + i, static_cast<float>(i));
  }
});

// What nothing uses leaves nothing behind, a loop's body included.
// CHECK-LABEL: @unused(
// CHECK-NEXT: tt.return
const trace unused("unused", [](tl::ptr<float> p, tl::val<tl::i32> n) {
  auto x = tl::exp(tl::load(p + tl::arange(0, 16)));
  (void)tl::sum(x * 2, 0);
  (void)tl::cdiv(n, 16);
});
