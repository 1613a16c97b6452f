// The kernels of the language guide.
#include "print.h"

struct add_config { int BLOCK = 1024; };
// CHECK-LABEL: tt.func public @vector_add(
// CHECK-SAME: %[[X:.*]]: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %[[Y:.*]]: !tt.ptr<f32>, %[[OUT:.*]]: !tt.ptr<f32>, %[[N:.*]]: i32
// CHECK-DAG: %[[PID:.*]] = tt.get_program_id x : i32
// CHECK-DAG: %[[B:.*]] = arith.constant 1024 : i32
// CHECK-DAG: %[[R:.*]] = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
// CHECK-DAG: %[[S:.*]] = arith.muli %[[PID]], %[[B]] : i32
// CHECK: %[[T:.*]] = tt.splat %[[S]] : i32 -> tensor<1024xi32>
// CHECK: %[[O:.*]] = arith.addi %[[T]], %[[R]] : tensor<1024xi32>
// CHECK: %[[M:.*]] = arith.cmpi slt, %[[O]], %{{.*}} : tensor<1024xi32>
// CHECK-COUNT-2: tt.load %{{.*}}, %[[M]] : tensor<1024x!tt.ptr<f32>>
// CHECK: %[[V:.*]] = arith.addf
// CHECK: tt.store %{{.*}}, %[[V]], %[[M]] : tensor<1024x!tt.ptr<f32>>
// CHECK-NEXT: tt.return
const trace vector_add("vector_add", [](tl::ptr<const float> x, tl::ptr<const float> y, tl::ptr<float> out, tl::val<tl::i32> n, add_config c) {
  auto offs = tl::program_id(0) * c.BLOCK + tl::arange(0, c.BLOCK);
  auto in = offs < n;
  tl::store(out + offs, tl::load(x + offs, in) + tl::load(y + offs, in), in);
}, add_config{}, {{true, false}});

struct row_config { int COLS = 1024, stages = 2; };
// CHECK-LABEL: tt.func public @softmax(
// CHECK-SAME: %{{.*}}: i32, %[[ROWS:.*]]: i32, %{{.*}}: i32)
// CHECK-DAG: %[[P:.*]] = tt.get_program_id x
// CHECK-DAG: %[[G:.*]] = tt.get_num_programs x
// CHECK: scf.for %[[ROW:.*]] = %[[P]] to %[[ROWS]] step %[[G]] : i32 {
// CHECK: %[[V:.*]] = tt.load %{{.*}}, %{{.*}}, %{{.*}} : tensor<1024x!tt.ptr<f32>>
// CHECK: %[[TOP:.*]] = "tt.reduce"(%[[V]]) <{axis = 0 : i32}> ({
// CHECK: arith.maxnumf
// CHECK: %[[E:.*]] = math.exp
// CHECK: "tt.reduce"(%[[E]])
// CHECK: arith.addf
// CHECK: arith.divf %[[E]],
// CHECK: tt.store
// CHECK: } {tt.num_stages = 2 : i32}
const trace softmax("softmax", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<tl::i32> ld, tl::val<tl::i32> rows, tl::val<tl::i32> cols, row_config c) {
  auto col = tl::arange(0, c.COLS);
  auto in = col < cols;
  for (auto row : tl::range(tl::program_id(0), rows, tl::num_programs(0), {.stages = c.stages})) {
    auto v = tl::load(x + row * ld + col, in, {.other = -tl::inf});
    auto e = tl::exp(v - tl::max(v, 0));
    tl::store(y + row * ld + col, e / tl::sum(e, 0), in);
  }
}, row_config{});

// A parameter known to be 1 is the constant and not passed.
// CHECK-LABEL: tt.func public @strided(
// CHECK-SAME: %{{[^:]*}}: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %[[N:[^:]*]]: i32 {tt.divisibility = 16 : i32}) {
// CHECK-NOT: arith.muli
// CHECK: tt.return
const trace strided("strided", [](tl::ptr<float> p, tl::val<tl::i32> stride, tl::val<tl::i32> n) {
  tl::store(p + n * stride, 1.0f);
}, tessera::no_config{}, {{true, false}, {true, true}, {true, false}});

struct norm_config { int COLS = 256; };
// CHECK-LABEL: tt.func public @layer_norm(
// CHECK-COUNT-2: "tt.reduce"
// CHECK: math.rsqrt
// CHECK: arith.truncf %{{.*}} : tensor<256xf32> to tensor<256xf16>
const trace layer_norm("layer_norm", [](tl::ptr<const tl::f16> x, tl::ptr<const tl::f16> weight, tl::ptr<tl::f16> y, tl::val<tl::i32> ld,
                                        tl::val<tl::i32> cols, tl::val<float> eps, norm_config c) {
  auto row = tl::program_id(0);
  auto col = tl::arange(0, c.COLS);
  auto in = col < cols;
  auto v = tl::load(x + row * ld + col, in).to<float>();
  auto n = cols.to<float>();
  auto mean = tl::sum(v, 0) / n;
  auto centred = tl::where(in, v - mean, 0);
  auto scale = tl::rsqrt(tl::sum(centred * centred, 0) / n + eps);
  auto w = tl::load(weight + col, in).to<float>();
  tl::store(y + row * ld + col, (centred * scale * w).to<tl::f16>(), in);
}, norm_config{});
