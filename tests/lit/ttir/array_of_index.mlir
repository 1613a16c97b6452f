// An array attribute of indices, which crashes MLIR's parser, is refused before it.
// RUN: not tessera-opt %s 2>&1 | FileCheck %s
// CHECK: array_of_index.mlir:5:30: error: an array attribute holds integers or floats, not indices
// "array<index: 1>" in a string or a comment is none: array<index: 1>.
module attributes {a = array<index: 1>, b = "array<index: 1>"} {}
