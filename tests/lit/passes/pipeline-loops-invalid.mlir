// Schedules that cannot be carried out.
// RUN: tessera-opt %s -split-input-file -ttgir-pipeline-loops -verify-diagnostics

tt.func public @incomplete(%p: !tt.ptr<i32>, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c0) -> (i32) : i32 {
    %x = tt.load %p {loop.stage = 0 : i32, loop.cluster = 0 : i32} : !tt.ptr<i32>
    // expected-error @+1 {{is in a scheduled loop: loop.stage (0 to 63) and loop.cluster are needed on every op of it}}
    %s = arith.addi %sum, %x {loop.stage = 1 : i32} : i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}

// -----

tt.func public @backwards(%p: !tt.ptr<i32>, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @+1 {{cannot be pipelined with this schedule}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c0) -> (i32) : i32 {
    %x = tt.load %p {loop.stage = 1 : i32, loop.cluster = 0 : i32} : !tt.ptr<i32>
    // expected-error @+1 {{operation scheduled before its operands}}
    %s = arith.addi %sum, %x {loop.stage = 0 : i32, loop.cluster = 1 : i32} : i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}

// -----

tt.func public @negative(%p: !tt.ptr<i32>, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c0) -> (i32) : i32 {
    // expected-error @+1 {{is in a scheduled loop}}
    %s = arith.addi %sum, %sum {loop.stage = -1 : i32, loop.cluster = 1 : i32} : i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}

// -----

tt.func public @unsigned(%p: !tt.ptr<i32>, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @+1 {{compares unsigned}}
  %r = scf.for unsigned %i = %c0 to %n step %c1 iter_args(%sum = %c0) -> (i32) : i32 {
    %x = tt.load %p {loop.stage = 0 : i32, loop.cluster = 0 : i32} : !tt.ptr<i32>
    %s = arith.addi %sum, %x {loop.stage = 1 : i32, loop.cluster = 0 : i32} : i32
    scf.yield %s : i32
  }
  tt.return %r : i32
}
