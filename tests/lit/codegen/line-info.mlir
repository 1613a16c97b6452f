// Positions of the user's source reach PTX; code of a helper shows the helper's line.
// RUN: tessera-translate %s --target=cuda:sm_90a --emit=ptx | FileCheck %s
// RUN: tessera-translate %s --target=cuda:sm_90a --no-line-info --emit=ptx | FileCheck %s --check-prefix=NONE

// CHECK: .loc [[FILE:[0-9]+]] 12 5
// CHECK: ld.global
// CHECK: .loc [[HELPER:[0-9]+]] 30 7
// CHECK: mul
// CHECK: .file [[FILE]] "/src/kernel.cpp"
// CHECK: .file [[HELPER]] "/src/helper.h"
// NONE-NOT: .loc
tt.func public @lines(%x: !tt.ptr<f32>, %o: !tt.ptr<f32>) {
  %v = tt.load %x : !tt.ptr<f32> loc(#load)
  %w = arith.mulf %v, %v : f32 loc(#inlined)
  tt.store %o, %w : !tt.ptr<f32> loc(#store)
  tt.return loc(#store)
} loc(#kernel)
#kernel = loc("/src/kernel.cpp":10:1)
#load = loc("/src/kernel.cpp":12:5)
#callee = loc("/src/helper.h":30:7)
#caller = loc("/src/kernel.cpp":14:3)
#inlined = loc(callsite(#callee at #caller))
#store = loc("/src/kernel.cpp":15:3)
