// Loops and conditions become blocks and phis; helpers that were not inlined are emitted in place.
// RUN: split-file %s %t
// RUN: tessera-translate %t/for.mlir --target=cuda:sm_90a --emit=llir | FileCheck %t/for.mlir
// RUN: tessera-translate %t/while.mlir --target=cuda:sm_90a --emit=llir | FileCheck %t/while.mlir
// RUN: tessera-translate %t/branches.mlir --target=cuda:sm_90a --emit=llir | FileCheck %t/branches.mlir

//--- for.mlir
// CHECK-LABEL: define {{.*}}@loop(
// CHECK: icmp slt i32 %{{.*}}, %{{.*}}
// CHECK: [[ACC:%.*]] = phi i32
// CHECK: [[IV:%.*]] = phi i32
// CHECK: add i32 [[ACC]], [[IV]]
// CHECK: phi i32
tt.func public @loop(%o: !tt.ptr<i32>, %lo: i32, %hi: i32, %step: i32, %n: i32) {
  %zero = arith.constant 0 : i32
  %sum = scf.for %i = %lo to %hi step %step iter_args(%acc = %zero) -> (i32) : i32 {
    %even = arith.cmpi slt, %i, %n : i32
    %next = scf.if %even -> i32 {
      %0 = arith.addi %acc, %i : i32
      scf.yield %0 : i32
    } else {
      %0 = arith.xori %acc, %i : i32
      scf.yield %0 : i32
    }
    tt.store %o, %next : !tt.ptr<i32>
    scf.yield %next : i32
  }
  tt.store %o, %sum : !tt.ptr<i32>
  tt.return
}

//--- while.mlir
// CHECK-LABEL: define {{.*}}@collatz(
// CHECK: phi i32
// CHECK: br i1
tt.func public @collatz(%o: !tt.ptr<i32>, %n: i32) {
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %r = scf.while (%x = %n) : (i32) -> i32 {
    %go = arith.cmpi sgt, %x, %c1 : i32
    scf.condition(%go) %x : i32
  } do {
  ^bb0(%x: i32):
    %odd = arith.andi %x, %c1 : i32
    %is = arith.cmpi eq, %odd, %c1 : i32
    %y = scf.if %is -> i32 {
      %t = arith.muli %x, %c3 : i32
      %u = arith.addi %t, %c1 : i32
      scf.yield %u : i32
    } else {
      %h = arith.shrsi %x, %c1 : i32
      scf.yield %h : i32
    }
    scf.yield %y : i32
  }
  tt.store %o, %r : !tt.ptr<i32>
  tt.return
}

//--- branches.mlir
// Early returns come as cf branches from other front ends.
// CHECK-LABEL: define {{.*}}@branches(
// CHECK: br i1
// CHECK: ret void
tt.func public @branches(%o: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %none = arith.cmpi sle, %n, %c0 : i32
  cf.cond_br %none, ^done(%c0 : i32), ^work
^work:
  tt.store %o, %n : !tt.ptr<i32>
  cf.br ^done(%n : i32)
^done(%v: i32):
  %p = tt.addptr %o, %v : !tt.ptr<i32>, i32
  tt.store %p, %v : !tt.ptr<i32>
  tt.return
}
