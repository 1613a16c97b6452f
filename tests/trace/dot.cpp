// Matrix products and 8-bit floats.
#include "print.h"

using tl::all, tl::newaxis;

// CHECK-LABEL: @products(
// CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<16x32xf16> * tensor<32x8xf16> -> tensor<16x8xf32>
// CHECK: tt.dot %{{.*}} : tensor<16x32xf16> * tensor<32x8xf16> -> tensor<16x8xf16>
// CHECK: tt.dot %{{.*}}, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK: tt.dot %{{.*}}, inputPrecision = tf32x3 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK: tt.dot %{{.*}} : tensor<4x16x16xi8> * tensor<4x16x16xi8> -> tensor<4x16x16xi32>
const trace products("products", [](tl::ptr<float> p, tl::ptr<tl::f16> h, tl::ptr<tl::i8> b, tl::ptr<tl::i32> q) {
  auto m = tl::arange(0, 16), n = tl::arange(0, 8), k = tl::arange(0, 32);
  auto x = tl::load(h + m[all, newaxis] * 32 + k[newaxis, all]), y = tl::load(h + k[all, newaxis] * 8 + n[newaxis, all]);
  auto at = m[all, newaxis] * 8 + n[newaxis, all];
  tl::store(p + at, tl::dot(x, y));
  tl::store(h + at, tl::dot<tl::f16>(x, y));
  auto square = m[all, newaxis] * 16 + m[newaxis, all];
  auto f = tl::load(p + square);
  tl::var acc = tl::dot(f, f, f, {.input_precision = tl::precision::tf32});
  acc = tl::dot(f, f, acc, {.input_precision = tl::precision::tf32x3});
  tl::store(p + square, acc);
  auto batch = tl::arange(0, 4)[all, newaxis, newaxis] * 256 + square[newaxis, all, all];
  auto i = tl::load(b + batch);
  tl::store(q + batch, tl::dot(i, i));
});

// Two fp8 types may meet. Without a word about precision a matrix unit adds up as it likes.
// CHECK-LABEL: @float8(
// CHECK-SAME: !tt.ptr<f8E4M3FN>, %{{.*}}: !tt.ptr<f8E5M2>
// CHECK: tt.dot %{{[^{]*}} : tensor<16x16xf8E4M3FN> * tensor<16x16xf8E5M2> -> tensor<16x16xf32>
// CHECK: tt.dot %{{.*}} {maxNumImpreciseAcc = 64 : i32} : tensor<16x16xf8E5M2> * tensor<16x16xf8E5M2> -> tensor<16x16xf32>
// CHECK: tt.fp_to_fp %{{.*}}, rounding = rtne : tensor<16x16xf32> -> tensor<16x16xf8E4M3FN>
// CHECK: tt.fp_to_fp %{{.*}}, rounding = rtz : tensor<16x16xf32> -> tensor<16x16xf8E5M2>
const trace float8("float8", [](tl::ptr<tl::f8e4m3> p, tl::ptr<tl::f8e5m2> q) {
  auto r = tl::arange(0, 16);
  auto at = r[all, newaxis] * 16 + r[newaxis, all];
  auto a = tl::load(p + at);
  auto b = tl::load(q + at);
  auto c = tl::dot(b, b, tl::dot(a, b), {.max_num_imprecise_acc = 64});
  tl::store(p + at, c.to<tl::f8e4m3>());
  tl::store(q + at, c.to<tl::f8e5m2>(tl::rounding::toward_zero));
});

// Between the two, to and from integers and double: through f32, which holds them all.
// CHECK-LABEL: @float8_casts(
// CHECK: %[[X:.*]] = tt.load
// CHECK: %[[F:.*]] = tt.fp_to_fp %[[X]] : tensor<16xf8E5M2> -> tensor<16xf32>
// CHECK: tt.fp_to_fp %[[F]], rounding = rtne : tensor<16xf32> -> tensor<16xf8E4M3FN>
// CHECK: arith.fptosi %{{.*}} : tensor<16xf32> to tensor<16xi8>
// CHECK: tt.fp_to_fp %{{.*}} : tensor<16xf8E5M2> -> tensor<16xf16>
// CHECK: tt.fp_to_fp %{{.*}} : tensor<16xf8E5M2> -> tensor<16xf32>
// CHECK: arith.extf %{{.*}} : tensor<16xf32> to tensor<16xf64>
// CHECK: tt.fp_to_fp %{{.*}}, rounding = rtne : tensor<16xf64> -> tensor<16xf8E5M2>
// CHECK: arith.sitofp %{{.*}} : tensor<16xi32> to tensor<16xf32>
// CHECK: tt.fp_to_fp %{{.*}}, rounding = rtne : tensor<16xf32> -> tensor<16xf8E5M2>
const trace float8_casts("float8_casts", [](tl::ptr<tl::f8e5m2> p, tl::ptr<tl::f8e4m3> q, tl::ptr<tl::i8> b,
                                            tl::ptr<tl::f16> h, tl::ptr<double> d) {
  auto r = tl::arange(0, 16);
  auto x = tl::load(p + r);
  tl::store(q + r, x.to<tl::f8e4m3>());
  tl::store(b + r, x.to<tl::i8>());
  tl::store(h + r, x.to<tl::f16>());
  auto wide = x.to<double>();
  tl::store(d + r, wide);
  tl::store(p + r, wide.to<tl::f8e5m2>());
  tl::store(p + r, r.to<tl::f8e5m2>());
});

// Numbers saturate as conversions do.
// CHECK-LABEL: @float8_numbers(
// CHECK-DAG: arith.constant dense<4.480000e+02> : tensor<16xf8E4M3FN>
// CHECK-DAG: arith.constant dense<-5.734400e+04> : tensor<16xf8E5M2>
const trace float8_numbers("float8_numbers", [](tl::ptr<tl::f8e4m3> p, tl::ptr<tl::f8e5m2> q) {
  auto r = tl::arange(0, 16);
  tl::store(p + r, tl::full<tl::f8e4m3>({16}, 1000));
  tl::store(q + r, tl::full<tl::f8e5m2>({16}, -tl::inf));
});

// Those without infinities multiply each other, and OCP's; -0 is no number of theirs.
// CHECK-LABEL: @float8_fnuz(
// CHECK-SAME: !tt.ptr<f8E4M3FNUZ>, %{{.*}}: !tt.ptr<f8E5M2FNUZ>
// CHECK: tt.dot %{{[^{]*}} : tensor<16x16xf8E4M3FNUZ> * tensor<16x16xf8E5M2FNUZ> -> tensor<16x16xf32>
// CHECK: arith.constant dense<2.400000e+02> : tensor<16x16xf8E4M3FNUZ>
// CHECK: arith.constant dense<0.000000e+00> : tensor<16x16xf8E5M2FNUZ>
// CHECK: tt.fp_to_fp %{{.*}}, rounding = rtne : tensor<16x16xf32> -> tensor<16x16xf8E5M2FNUZ>
const trace float8_fnuz("float8_fnuz", [](tl::ptr<tl::f8e4m3fnuz> p, tl::ptr<tl::f8e5m2fnuz> q) {
  auto r = tl::arange(0, 16);
  auto at = r[all, newaxis] * 16 + r[newaxis, all];
  auto c = tl::dot(tl::load(p + at), tl::load(q + at));
  tl::store(p + at, tl::full<tl::f8e4m3fnuz>({16, 16}, 1000));
  tl::store(q + at, tl::full<tl::f8e5m2fnuz>({16, 16}, -0.0f));
  tl::store(q + at, c.to<tl::f8e5m2fnuz>());
});

// A product in a loop carries its accumulator; the loop says how deep it is pipelined.
struct mm_config { int BM = 128, BN = 128, BK = 64, GROUP = 8, stages = 3; bool relu = false; };
// CHECK-LABEL: @matmul(
// CHECK: %[[ACC:.*]] = scf.for %{{.*}} iter_args(%[[C:.*]] = %{{.*}}) -> (tensor<128x128xf32>)
// CHECK-DAG: %[[A:.*]] = tt.load %{{.*}} : tensor<128x64x!tt.ptr<f16>>
// CHECK-DAG: %[[B:.*]] = tt.load %{{.*}} : tensor<64x128x!tt.ptr<f16>>
// CHECK: %[[D:.*]] = tt.dot %[[A]], %[[B]], %[[C]] : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
// CHECK: scf.yield %[[D]]
// CHECK: } {tt.num_stages = 3 : i32}
// CHECK: arith.maxnumf %[[ACC]]
// CHECK: arith.truncf
// CHECK: tt.store
const trace matmul("matmul",
  [](tl::ptr<const tl::f16> A, tl::ptr<const tl::f16> B, tl::ptr<tl::f16> C, tl::val<tl::i32> M, tl::val<tl::i32> N,
     tl::val<tl::i32> K, tl::val<tl::i32> lda, tl::val<tl::i32> ldb, tl::val<tl::i32> ldc, mm_config c) {
    using tl::all, tl::newaxis;
    auto pid = tl::program_id(0);
    auto width = tl::cdiv(N, c.BN) * c.GROUP;                    // programs in one group of block rows
    auto first = pid / width * c.GROUP;
    auto height = tl::minimum(tl::cdiv(M, c.BM) - first, c.GROUP);
    auto pm = first + pid % width % height;
    auto pn = pid % width / height;
    auto m = pm * c.BM + tl::arange(0, c.BM), n = pn * c.BN + tl::arange(0, c.BN), k = tl::arange(0, c.BK);
    tl::var acc = tl::zeros<float>({c.BM, c.BN});
    for (auto k0 : tl::range(0, K, c.BK, {.stages = c.stages})) {
      auto kk = k0 + k;
      auto a = tl::load(A + m[all, newaxis] * lda + kk[newaxis, all], m[all, newaxis] < M && kk[newaxis, all] < K);
      auto b = tl::load(B + kk[all, newaxis] * ldb + n[newaxis, all], kk[all, newaxis] < K && n[newaxis, all] < N);
      acc = tl::dot(a, b, acc);
    }
    if (c.relu) acc = tl::maximum(acc, 0.0f);                     // host condition: chosen while tracing
    tl::store(C + m[all, newaxis] * ldc + n[newaxis, all], acc.to<tl::f16>(), m[all, newaxis] < M && n[newaxis, all] < N);
  }, mm_config{.relu = true});

struct attention_config { int BM = 128, BN = 64, D = 64, stages = 2; bool causal = true; };
// CHECK-LABEL: @attention(
// CHECK: scf.for
// CHECK: tt.trans %{{.*}} : tensor<64x64xf16> -> tensor<64x64xf16>
// CHECK: tt.dot %{{.*}} : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
// CHECK: arith.select
// CHECK: "tt.reduce"
// CHECK: math.exp2
// CHECK: tt.dot %{{.*}} : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}} : tensor<128xf32>, tensor<128xf32>, tensor<128x64xf32>
const trace attention("attention",
  [](tl::ptr<const tl::f16> Q, tl::ptr<const tl::f16> K, tl::ptr<const tl::f16> V, tl::ptr<tl::f16> O,
     tl::val<tl::i32> seq, tl::val<float> scale, attention_config c) {      // scale = log2(e) / sqrt(D)
    using tl::all, tl::newaxis;
    auto row0 = tl::program_id(0) * c.BM, base = tl::program_id(1) * seq * c.D;
    auto m = row0 + tl::arange(0, c.BM), n = tl::arange(0, c.BN), d = tl::arange(0, c.D);
    auto q_at = base + m[all, newaxis] * c.D + d[newaxis, all];
    auto q = tl::load(Q + q_at, m[all, newaxis] < seq);
    tl::var hi = tl::full<float>({c.BM}, -tl::inf);
    tl::var den = tl::zeros<float>({c.BM});
    tl::var acc = tl::zeros<float>({c.BM, c.D});
    auto end = c.causal ? tl::minimum(row0 + c.BM, seq) : seq;    // host ?: between two traced values
    for (auto j : tl::range(0, end, c.BN, {.stages = c.stages})) {
      auto col = j + n;
      auto at = base + col[all, newaxis] * c.D + d[newaxis, all];
      auto k = tl::load(K + at, col[all, newaxis] < seq);
      auto inside = col[newaxis, all] < seq;
      auto keep = c.causal ? inside && m[all, newaxis] >= col[newaxis, all] : inside;
      auto s = tl::where(keep, tl::dot(q, tl::trans(k), tl::zeros<float>({c.BM, c.BN})) * scale, -tl::inf);
      auto top = tl::maximum(hi, tl::max(s, 1));
      auto p = tl::exp2(s - top[all, newaxis]);
      auto fix = tl::exp2(hi - top);
      acc = tl::dot(p.to<tl::f16>(), tl::load(V + at, col[all, newaxis] < seq), acc * fix[all, newaxis]);
      den = den * fix + tl::sum(p, 1);
      hi = top;
    }
    tl::store(O + q_at, (acc / den[all, newaxis]).to<tl::f16>(), m[all, newaxis] < seq);
  }, attention_config{});
