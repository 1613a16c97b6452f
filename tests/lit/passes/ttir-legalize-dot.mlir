// RUN: tessera-opt %s -split-input-file -ttir-legalize-dot="target=cuda:80" -cse | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: tessera-opt %s -split-input-file -ttir-legalize-dot="target=cuda:90" -cse | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: tessera-opt %s -split-input-file -ttir-legalize-dot="target=cpu threads-per-warp=8" -cse | FileCheck %s --check-prefix=CPU

// One row: the load gets 15 more, masked off, and the accumulator is carried as 16 rows and cut behind the loop.
// CHECK-LABEL: @one_row
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<16x32xf32>
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[ZERO]]) -> (tensor<16x32xf32>)
// CHECK-NEXT: %[[P:.*]] = tt.broadcast %{{.*}} : tensor<1x16x!tt.ptr<f16>> -> tensor<16x16x!tt.ptr<f16>>
// CHECK: %[[M:.*]] = tt.broadcast %{{.*}} : tensor<16x1xi1> -> tensor<16x16xi1>
// CHECK: %[[A:.*]] = tt.load %[[P]], %[[M]] : tensor<16x16x!tt.ptr<f16>>
// CHECK: %[[D:.*]] = tt.dot %[[A]], %{{.*}}, %[[ACC]] : tensor<16x16xf16> * tensor<16x32xf16> -> tensor<16x32xf32>
// CHECK-NEXT: scf.yield %[[D]]
// CHECK-COUNT-4: tt.split
// CHECK-NOT: tt.split
// CHECK: tt.store %{{.*}}, %{{.*}} : tensor<1x32x!tt.ptr<f32>>
// The CPU multiplies what there is, in f32.
// CPU-LABEL: @one_row
// CPU: tt.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x16xf32> * tensor<16x32xf32> -> tensor<1x32xf32>
tt.func @one_row(%ap: tensor<1x16x!tt.ptr<f16>>, %b: tensor<16x32xf16>, %cp: tensor<1x32x!tt.ptr<f32>>, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<1x32xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<1x32xf32>) : i32 {
    %a = tt.load %ap : tensor<1x16x!tt.ptr<f16>>
    %d = tt.dot %a, %b, %acc : tensor<1x16xf16> * tensor<16x32xf16> -> tensor<1x32xf32>
    scf.yield %d : tensor<1x32xf32>
  }
  tt.store %cp, %r : tensor<1x32x!tt.ptr<f32>>
  tt.return
}

// -----

// K below the instruction's: zeros by select where there is no load to mask. B is transposed behind it.
// CHECK-LABEL: @short_k
// CHECK: %[[KEEP:.*]] = tt.broadcast %{{.*}} : tensor<1x16xi1> -> tensor<64x16xi1>
// CHECK: %[[REP:.*]] = tt.reshape %{{.*}} : tensor<64x4x4xf16> -> tensor<64x16xf16>
// CHECK: %[[A:.*]] = arith.select %[[KEEP]], %[[REP]]
// CHECK: %[[B:.*]] = tt.trans %{{.*}} : tensor<64x16xf16> -> tensor<16x64xf16>
// CHECK: tt.dot %[[A]], %[[B]], %{{.*}} : tensor<64x16xf16> * tensor<16x64xf16> -> tensor<64x64xf32>
tt.func @short_k(%a: tensor<64x4xf16>, %bp: tensor<64x4x!tt.ptr<f16>>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %bt = tt.load %bp : tensor<64x4x!tt.ptr<f16>>
  %b = tt.trans %bt {order = array<i32: 1, 0>} : tensor<64x4xf16> -> tensor<4x64xf16>
  %d = tt.dot %a, %b, %c : tensor<64x4xf16> * tensor<4x64xf16> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// -----

// Eight rows are enough for f64.
// CHECK-LABEL: @double
// CHECK: tt.dot {{.*}} : tensor<8x4xf64> * tensor<4x16xf64> -> tensor<8x16xf64>
tt.func @double(%a: tensor<2x4xf64>, %b: tensor<4x16xf64>, %c: tensor<2x16xf64>) -> tensor<2x16xf64> {
  %d = tt.dot %a, %b, %c : tensor<2x4xf64> * tensor<4x16xf64> -> tensor<2x16xf64>
  tt.return %d : tensor<2x16xf64>
}

// -----

// 128 times the work for a single number: left to multiply-add. So is what has no instruction.
// CHECK-LABEL: @not_worth_it
// CHECK: tt.dot %arg0, %arg1, %arg2 : tensor<1x16xf16>
// CHECK: tt.dot %arg3, %arg4, %arg5 : tensor<2x2xf32>
tt.func @not_worth_it(%a: tensor<1x16xf16>, %b: tensor<16x1xf16>, %c: tensor<1x1xf32>, %x: tensor<2x2xf32>,
                      %y: tensor<2x2xf32>, %z: tensor<2x2xf32>) -> (tensor<1x1xf32>, tensor<2x2xf32>) {
  %d = tt.dot %a, %b, %c : tensor<1x16xf16> * tensor<16x1xf16> -> tensor<1x1xf32>
  %e = tt.dot %x, %y, %z : tensor<2x2xf32> * tensor<2x2xf32> -> tensor<2x2xf32>
  tt.return %d, %e : tensor<1x1xf32>, tensor<2x2xf32>
}

// -----

// Three tf32 products of numbers split in two, the small parts first.
// CHECK-LABEL: @three_products
// CHECK: arith.constant dense<-8192> : tensor<32x32xi32>
// CHECK: %[[C1:.*]] = tt.dot %[[SA:.*]], %[[BB:.*]], %arg2, inputPrecision = tf32
// CHECK: %[[C2:.*]] = tt.dot %[[BA:.*]], %[[SB:.*]], %[[C1]], inputPrecision = tf32
// CHECK: %[[C3:.*]] = tt.dot %[[BA]], %[[BB]], %[[C2]], inputPrecision = tf32
// CHECK: tt.return %[[C3]]
// CPU-LABEL: @three_products
// CPU-NEXT: tt.dot %arg0, %arg1, %arg2 : tensor<32x32xf32>
tt.func @three_products(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %d = tt.dot %a, %b, %c, inputPrecision = tf32x3 : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>
  tt.return %d : tensor<32x32xf32>
}

// -----

// SM80-LABEL: @fp8
// SM80: %[[A:.*]] = tt.fp_to_fp %arg0 : tensor<32x32xf8E4M3FN> -> tensor<32x32xf16>
// SM80: %[[B:.*]] = tt.fp_to_fp %arg1 : tensor<32x32xf8E5M2> -> tensor<32x32xf16>
// SM80: tt.dot %[[A]], %[[B]], %arg2
// SM90-LABEL: @fp8
// SM90-NEXT: tt.dot %arg0, %arg1, %arg2
tt.func @fp8(%a: tensor<32x32xf8E4M3FN>, %b: tensor<32x32xf8E5M2>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %d = tt.dot %a, %b, %c : tensor<32x32xf8E4M3FN> * tensor<32x32xf8E5M2> -> tensor<32x32xf32>
  tt.return %d : tensor<32x32xf32>
}

// -----

// Of the fnuz kind f16 holds all, too.
// SM90-LABEL: @fnuz
// SM90: %[[A:.*]] = tt.fp_to_fp %arg0 : tensor<32x32xf8E4M3FNUZ> -> tensor<32x32xf16>
// SM90: %[[B:.*]] = tt.fp_to_fp %arg1 : tensor<32x32xf8E4M3FN> -> tensor<32x32xf16>
// SM90: tt.dot %[[A]], %[[B]], %arg2
tt.func @fnuz(%a: tensor<32x32xf8E4M3FNUZ>, %b: tensor<32x32xf8E4M3FN>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %d = tt.dot %a, %b, %c : tensor<32x32xf8E4M3FNUZ> * tensor<32x32xf8E4M3FN> -> tensor<32x32xf32>
  tt.return %d : tensor<32x32xf32>
}

// -----

// Bytes: exact in f32 on the CPU up to 1024 products.
// CPU-LABEL: @bytes
// CPU: %[[P:.*]] = tt.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<32x64xf32> * tensor<64x32xf32> -> tensor<32x32xf32>
// CPU: %[[I:.*]] = arith.fptosi %[[P]]
// CPU: arith.addi %[[I]], %arg2
// CHECK-LABEL: @bytes
// CHECK-NEXT: tt.dot %arg0, %arg1, %arg2
tt.func @bytes(%a: tensor<32x64xi8>, %b: tensor<64x32xi8>, %c: tensor<32x32xi32>) -> tensor<32x32xi32> {
  %d = tt.dot %a, %b, %c : tensor<32x64xi8> * tensor<64x32xi8> -> tensor<32x32xi32>
  tt.return %d : tensor<32x32xi32>
}

// -----

// f16 accumulators: the sum is made in f32.
// CHECK-LABEL: @half_sums
// CHECK: %[[C:.*]] = arith.extf %arg2
// CHECK: %[[D:.*]] = tt.dot %arg0, %arg1, %[[C]]
// CHECK: arith.truncf %[[D]]
tt.func @half_sums(%a: tensor<32x32xf16>, %b: tensor<32x32xf16>, %c: tensor<32x32xf16>) -> tensor<32x32xf16> {
  %d = tt.dot %a, %b, %c : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf16>
  tt.return %d : tensor<32x32xf16>
}

// -----

// Element-wise ops on the accumulator are done at full size.
// CHECK-LABEL: @rescaled_row
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<16x32xf32>)
// CHECK: %[[F:.*]] = tt.broadcast %arg2 : tensor<1x32xf32> -> tensor<16x32xf32>
// CHECK: %[[C:.*]] = arith.mulf %[[ACC]], %[[F]] : tensor<16x32xf32>
// CHECK: tt.dot %{{.*}}, %{{.*}}, %[[C]]
tt.func @rescaled_row(%a: tensor<1x16xf16>, %b: tensor<16x32xf16>, %f: tensor<1x32xf32>, %n: i32) -> tensor<1x32xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x32xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<1x32xf32>) : i32 {
    %s = arith.mulf %acc, %f : tensor<1x32xf32>
    %d = tt.dot %a, %b, %s : tensor<1x16xf16> * tensor<16x32xf16> -> tensor<1x32xf32>
    scf.yield %d : tensor<1x32xf32>
  }
  tt.return %r : tensor<1x32xf32>
}
