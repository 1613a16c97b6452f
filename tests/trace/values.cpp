// Operators, casts and functions: the operation each becomes, by element type.
#include "print.h"

#include <utility>
#include <vector>

// CHECK-LABEL: @signs(
// CHECK-DAG: arith.divsi %arg1, %arg1
// CHECK-DAG: arith.divui %arg2, %arg2
// CHECK-DAG: arith.remsi %arg1
// CHECK-DAG: arith.remui %arg2
// CHECK-DAG: arith.shrsi %arg1
// CHECK-DAG: arith.shrui %arg2
// CHECK-DAG: arith.cmpi slt, %arg1
// CHECK-DAG: arith.cmpi ult, %arg2
// CHECK-DAG: arith.maxsi %arg1
// CHECK-DAG: arith.maxui %arg2
// CHECK: tt.return
template <class T> auto spread(tl::val<T> x, tl::val<T> y) {
  return x / y + x % y + (x >> y) + (x < y + 1).template to<T>() + tl::maximum(x, y + 2);
}
const trace signs("signs", [](tl::ptr<tl::i32> p, tl::val<tl::i32> i, tl::val<tl::u32> u) {
  tl::store(p, spread(i, i));
  tl::store(p, spread(u, u).to<tl::i32>());
});

// CHECK-LABEL: @literals(
// CHECK-DAG: arith.constant 2 : i8
// CHECK-DAG: arith.constant 5.000000e-01 : f16
// CHECK-DAG: arith.constant 3.000000e+00 : bf16
// CHECK-DAG: arith.constant 1.000000e-01 : f64
// CHECK-DAG: arith.constant 0xFF800000 : f32
// CHECK-DAG: arith.constant -1 : i64
const trace literals("literals", [](tl::ptr<tl::i8> a, tl::ptr<tl::f16> b, tl::ptr<tl::bf16> c, tl::ptr<double> d, tl::ptr<float> e, tl::ptr<tl::i64> f) {
  tl::store(a, tl::load(a) * 2);
  tl::store(b, 0.5f * tl::load(b));
  tl::store(c, tl::load(c) + 3);
  tl::store(d, tl::load(d) - 0.1);
  tl::store(e, -tl::inf);
  tl::store(f, ~tl::load(f));
});

// CHECK-LABEL: @casts(
// CHECK-DAG: arith.extsi %{{.*}} : i8 to i32
// CHECK-DAG: arith.extui %{{.*}} : i8 to i32
// CHECK-DAG: arith.trunci %{{.*}} : i64 to i32
// CHECK-DAG: arith.fptosi %{{.*}} : f32 to i32
// CHECK-DAG: arith.fptoui %{{.*}} : f32 to i32
// CHECK-DAG: arith.uitofp %{{.*}} : i8 to f32
// CHECK-DAG: arith.sitofp %{{.*}} : i8 to f32
// CHECK-DAG: arith.cmpf une, %{{.*}}, %{{.*}} : f32
// CHECK-DAG: %[[W:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK-DAG: arith.truncf %[[W]] : f32 to bf16
// CHECK-DAG: tt.fp_to_fp %{{.*}}, rounding = rtz : f32 -> f16
// CHECK-DAG: tt.bitcast %{{.*}} : f32 -> i32
// CHECK-DAG: tt.ptr_to_int %{{.*}} : !tt.ptr<i32> -> i64
const trace casts("casts", [](tl::ptr<tl::i32> p, tl::ptr<float> q, tl::ptr<tl::bf16> r, tl::ptr<tl::f16> s, tl::val<tl::i8> i8, tl::val<tl::u8> u8,
                              tl::val<tl::i64> i64, tl::val<float> f, tl::val<tl::f16> h) {
  tl::store(p, i8.to<tl::i32>() + u8.to<tl::i32>() + i64.to<tl::i32>() + f.to<tl::i32>());
  tl::store(p, f.to<tl::u32>().to<tl::i32>() + f.bitcast<tl::i32>() + p.to<tl::i64>().to<tl::i32>());
  tl::store(q, i8.to<float>() + u8.to<float>());
  tl::store(q, tl::where(f.to<bool>(), 1.0f, f));
  tl::store(r, h.to<tl::bf16>());
  tl::store(s, f.to<tl::f16>(tl::rounding::toward_zero));
});

// CHECK-LABEL: @math(
// CHECK: %[[X:.*]] = tt.load
// CHECK-DAG: math.absf %[[X]]
// CHECK-DAG: math.exp %[[X]]
// CHECK-DAG: math.exp2 %[[X]]
// CHECK-DAG: math.log %[[X]]
// CHECK-DAG: math.log2 %[[X]]
// CHECK-DAG: math.log10 %[[X]]
// CHECK-DAG: math.sqrt %[[X]]
// CHECK-DAG: tt.precise_sqrt %[[X]]
// CHECK-DAG: math.rsqrt %[[X]]
// CHECK-DAG: math.sin %[[X]]
// CHECK-DAG: math.cos %[[X]]
// CHECK-DAG: math.tan %[[X]]
// CHECK-DAG: math.tanh %[[X]]
// CHECK-DAG: math.erf %[[X]]
// CHECK-DAG: math.floor %[[X]]
// CHECK-DAG: math.ceil %[[X]]
// CHECK-DAG: math.trunc %[[X]]
// CHECK-DAG: math.round %[[X]]
// CHECK-DAG: math.roundeven %[[X]]
// CHECK-DAG: math.powf %[[X]]
// CHECK-DAG: tt.precise_divf %[[X]]
// CHECK-DAG: math.fma %[[X]]
// CHECK-DAG: tt.clampf %[[X]], %{{.*}}, %{{.*}}, propagateNan = none
// CHECK-DAG: arith.minnumf %[[X]]
// CHECK-DAG: arith.maximumf %[[X]]
// CHECK-DAG: arith.remf %[[X]]
// CHECK-DAG: arith.negf %[[X]]
// CHECK: tt.store
const trace math("math", [](tl::ptr<float> p, tl::val<float> y) {
  auto at = p + tl::arange(0, 16);
  auto x = tl::load(at);
  auto s = tl::abs(x) + tl::exp(x) + tl::exp2(x) + tl::log(x) + tl::log2(x) + tl::log10(x) + tl::sqrt(x) + tl::sqrt_rn(x) + tl::rsqrt(x) +
           tl::sin(x) + tl::cos(x) + tl::tan(x) + tl::tanh(x) + tl::erf(x) + tl::floor(x) + tl::ceil(x) + tl::trunc(x) + tl::round(x) +
           tl::rint(x) + tl::pow(x, y) + tl::div_rn(x, y) + tl::fma(x, y, 1.0f) + tl::clamp(x, 0, y) + tl::minimum(x, y) +
           tl::maximum(x, y, tl::propagate_nan::all) + x % y - -x;
  tl::store(at, s);
});

// CHECK-LABEL: @integers(
// CHECK-DAG: math.absi
// CHECK-DAG: tt.mulhiui
// CHECK-DAG: arith.minsi
// CHECK-DAG: arith.xori
// CHECK-DAG: arith.shli
// CHECK-DAG: arith.subi %c0_i32
// CHECK: tt.store
const trace integers("integers", [](tl::ptr<tl::i32> p, tl::val<tl::i32> x) {
  tl::store(p, tl::abs(x) + tl::umulhi(x, 3) + tl::clamp(x, 0, 9) + (x ^ 5) + (x << 2) + -x);
});

// A library function shows its caller's line.
// CHECK-LABEL: @composed(
// CHECK: tt.store
// CHECK-NOT: math.h
// CHECK: values.cpp":[[#@LINE+3]]
const trace composed("composed", [](tl::ptr<float> p, tl::val<float> x) {
  tl::store(p,
            tl::sigmoid(x));
}, tessera::no_config{}, {}, true);

// Offsets are signed in the IR: u32 is widened, narrow ones are extended, 64-bit ones stay.
// CHECK-LABEL: @offsets(
// CHECK-DAG: %[[U:.*]] = arith.extui %arg1 : i32 to i64
// CHECK-DAG: tt.addptr %arg0, %[[U]] : !tt.ptr<f32>, i64
// CHECK-DAG: tt.addptr %arg0, %arg2 : !tt.ptr<f32>, i64
// CHECK-DAG: %[[B:.*]] = arith.extui %arg3 : i8 to i32
// CHECK-DAG: tt.addptr %arg0, %[[B]] : !tt.ptr<f32>, i32
// CHECK-DAG: %[[S:.*]] = arith.extsi %arg4 : i16 to i32
// CHECK-DAG: tt.addptr %arg0, %[[S]] : !tt.ptr<f32>, i32
const trace offsets("offsets", [](tl::ptr<float> p, tl::val<tl::u32> u, tl::val<tl::i64> l, tl::val<tl::u8> b, tl::val<tl::i16> s) {
  tl::store(p + u, 1.0f);
  tl::store(l + p, 1.0f);
  tl::store(p + b, 1.0f);
  tl::store(p + s, 1.0f);
});

// A bool takes a byte of memory.
// CHECK-LABEL: @masks(
// CHECK-SAME: !tt.ptr<i8>
// CHECK: %[[B:.*]] = tt.load %{{.*}} : tensor<8x!tt.ptr<i8>>
// CHECK: %[[M:.*]] = arith.cmpi ne, %[[B]], %{{.*}} : tensor<8xi8>
// CHECK: %[[X:.*]] = arith.andi %[[M]], %{{.*}} : tensor<8xi1>
// CHECK: %[[Y:.*]] = arith.xori %[[X]], %{{.*}} : tensor<8xi1>
// CHECK: arith.extui %[[Y]] : tensor<8xi1> to tensor<8xi8>
const trace masks("masks", [](tl::ptr<bool> p, tl::val<tl::i32> n) {
  auto at = p + tl::arange(0, 8);
  tl::store(at, !(tl::load(at) && tl::arange(0, 8) < n));
});

// A variable read as a value is the value it has then: later assignments do not reach copies, nor values chosen by a
// condition of the host.
// CHECK-LABEL: @chosen(
// CHECK: %[[A:.*]] = arith.addf %arg1, %{{.*}} : f32
// CHECK: %[[B:.*]] = arith.mulf %arg1, %{{.*}} : f32
// CHECK: tt.store %arg0, %[[A]]
// CHECK: tt.store %arg0, %arg1
// CHECK: tt.store %arg0, %[[A]]
// CHECK: tt.store %arg0, %[[B]]
const trace chosen("chosen", [](tl::ptr<float> p, tl::val<float> f) {
  const bool host = true;
  tl::var x = f + 1.0f;
  auto first = host ? x : f, second = host ? f : x;
  std::vector<tl::val<float>> kept{x};
  x = f * 2.0f;
  tl::store(p, first);
  tl::store(p, second);
  tl::store(p, kept[0]);
  tl::store(p, host ? x : f);
});

// Variables in a list are carried through a loop like any others.
// CHECK-LABEL: @listed(
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %cst{{.*}}, %[[B:.*]] = %cst{{.*}}) -> (f32, f32)
// CHECK: %[[C:.*]] = arith.addf %[[A]]
// CHECK: %[[D:.*]] = arith.addf %[[B]]
// CHECK: scf.yield %[[D]], %[[C]]
const trace listed("listed", [](tl::ptr<float> p, tl::val<tl::i32> n) {
  std::vector<tl::var<float>> sums(2, 0.0f);
  for (auto i : tl::range(n)) {
    for (auto &sum : sums) sum += tl::load(p + i);
    std::swap(sums[0], sums[1]);
  }
  tl::store(p, sums[0] + sums[1]);
});
