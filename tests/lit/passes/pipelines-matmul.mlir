// A matrix product the whole way, with both ways to write its pointers: every copy of 16 bytes, one barrier in a trip for
// mma.sync, two for wgmma (the other warp group may still read what is copied to next), no conversion but the epilogue's.
// RUN: tessera-opt %s -ttir-pipeline -ttgir-pipeline="num-warps=8 target=cuda:80 num-stages=4" | FileCheck %s --check-prefix=SM80
// RUN: tessera-opt %s -ttir-pipeline -ttgir-pipeline="num-warps=8 target=cuda:90 num-stages=3" | FileCheck %s --check-prefix=SM90
// RUN: tessera-opt %s -ttir-pipeline -ttgir-pipeline="num-warps=4 threads-per-warp=64 target=hip:gfx942 num-stages=2" | FileCheck %s --check-prefixes=AMD,GFX942
// RUN: tessera-opt %s -ttir-pipeline -ttgir-pipeline="num-warps=4 threads-per-warp=32 target=hip:gfx1100 num-stages=2" | FileCheck %s --check-prefixes=AMD,GFX11
// RUN: tessera-opt %s -ttir-pipeline -ttgir-pipeline="num-warps=4 threads-per-warp=32 target=hip:gfx1201 num-stages=2" | FileCheck %s --check-prefixes=AMD,GFX12
// RUN: tessera-opt %s -ttir-pipeline -ttgir-pipeline="num-warps=4 threads-per-warp=64 target=hip:gfx950 num-stages=2" | FileCheck %s --check-prefix=GFX950
// RUN: tessera-opt %s -ttir-pipeline -ttgir-pipeline="num-warps=16 threads-per-warp=8 target=cpu wide-lanes=true" | FileCheck %s --check-prefix=CPU

// Pointers from the induction variable, masks in all three directions.
// SM80-LABEL: @indexed
// SM80: ttg.async_copy_global_to_local {{.*}} {contiguity = 8 : i32} : tensor<128x64x!tt.ptr<f16>
// SM80: scf.for
// SM80: ttg.async_wait
// SM80-NOT: ttg.convert_layout
// SM80: ttg.barrier local
// SM80-NEXT: ttg.async_copy_global_to_local {{.*}} {contiguity = 8 : i32} : tensor<128x64x!tt.ptr<f16>
// SM80-NOT: ttg.barrier
// SM80: ttg.async_copy_global_to_local {{.*}} {contiguity = 8 : i32} : tensor<64x128x!tt.ptr<f16>
// SM80-NOT: ttg.barrier
// SM80-NOT: ttg.convert_layout
// SM80-COUNT-4: tt.dot
// SM80-NOT: ttg.barrier
// SM80: scf.yield
// SM90-LABEL: @indexed
// SM90: scf.for
// SM90: ttg.async_wait
// SM90-NEXT: ttg.barrier local
// SM90-NEXT: ttng.warp_group_dot {{.*}} {isAsync = true}
// SM90-NOT: ttg.barrier
// SM90: ttng.warp_group_dot_wait {{.*}} {pendings = 1 : i32}
// SM90-NEXT: ttg.barrier local
// SM90-NEXT: ttg.async_copy_global_to_local {{.*}} {contiguity = 8 : i32}
// SM90-NOT: ttg.barrier
// SM90-NOT: ttg.convert_layout
// SM90: scf.yield
// Tiles pass through registers: one buffer each, two barriers a trip, B stored along k.
// GFX942: #[[$MMA:.*]] = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
// GFX11: #[[$MMA:.*]] = #ttg.amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [2, 2]}>
// GFX12: #[[$MMA:.*]] = #ttg.amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = [2, 2]}>
// AMD: #[[$ROTATING:.*]] = #ttg.amd_rotating_shared<{{.*}} order = [0, 1]}>
// AMD: ttg.shared = 32768
// AMD-LABEL: @indexed
// AMD: ttg.local_alloc {{.*}} : () -> !ttg.memdesc<1x128x64xf16
// AMD: ttg.local_alloc {{.*}} : () -> !ttg.memdesc<1x64x128xf16, #[[$ROTATING]]
// AMD: scf.for
// AMD-NOT: ttg.convert_layout
// AMD: tt.load {{.*}} : tensor<128x64x!tt.ptr<f16>
// AMD: tt.load {{.*}} : tensor<64x128x!tt.ptr<f16>
// AMD: ttg.barrier local
// AMD-NOT: ttg.barrier
// AMD-COUNT-4: tt.dot {{.*}} -> tensor<128x128xf32, #[[$MMA]]>
// AMD: ttg.barrier local
// AMD-NEXT: ttg.local_store
// AMD-NEXT: ttg.local_store
// AMD-NEXT: scf.yield
// Copies in the background, whose lanes lie as the swizzle wants.
// GFX950-LABEL: @indexed
// GFX950: ttg.async_copy_global_to_local {{.*}} {contiguity = 8 : i32} : tensor<128x64x!tt.ptr<f16>, #linear
// GFX950: scf.for
// GFX950-NOT: ttg.convert_layout
// GFX950: ttg.async_copy_global_to_local {{.*}} {contiguity = 8 : i32} : tensor<128x64x!tt.ptr<f16>, #linear
// GFX950: ttg.async_copy_global_to_local {{.*}} {contiguity = 8 : i32} : tensor<64x128x!tt.ptr<f16>, #linear
// GFX950: tt.dot
// GFX950: scf.yield
// CPU-LABEL: @indexed
// CPU: ttg.local_dot
// CPU-NOT: ttg.convert_layout
// CPU: scf.yield
tt.func public @indexed(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %m: i32, %n: i32 {tt.divisibility = 16 : i32}, %k: i32 {tt.divisibility = 16 : i32}, %lda: i32 {tt.divisibility = 16 : i32}, %ldb: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %r128 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %r64 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %pm = tt.get_program_id x : i32
  %pn = tt.get_program_id y : i32
  %om = arith.muli %pm, %c128 : i32
  %on = arith.muli %pn, %c128 : i32
  %oms = tt.splat %om : i32 -> tensor<128xi32>
  %ons = tt.splat %on : i32 -> tensor<128xi32>
  %im = arith.addi %oms, %r128 : tensor<128xi32>
  %in = arith.addi %ons, %r128 : tensor<128xi32>
  %imc = tt.expand_dims %im {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %inr = tt.expand_dims %in {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %ms = tt.splat %m : i32 -> tensor<128x1xi32>
  %ns = tt.splat %n : i32 -> tensor<1x128xi32>
  %mm = arith.cmpi slt, %imc, %ms : tensor<128x1xi32>
  %nm = arith.cmpi slt, %inr, %ns : tensor<1x128xi32>
  %ldas = tt.splat %lda : i32 -> tensor<128x1xi32>
  %row = arith.muli %imc, %ldas : tensor<128x1xi32>
  %ldbs = tt.splat %ldb : i32 -> tensor<64x1xi32>
  %acc = scf.for %k0 = %c0 to %k step %c64 iter_args(%s = %zero) -> (tensor<128x128xf32>) : i32 {
    %k0s = tt.splat %k0 : i32 -> tensor<64xi32>
    %kk = arith.addi %k0s, %r64 : tensor<64xi32>
    %kr = tt.expand_dims %kk {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %kc = tt.expand_dims %kk {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %ks = tt.splat %k : i32 -> tensor<1x64xi32>
    %kcs = tt.splat %k : i32 -> tensor<64x1xi32>
    %km = arith.cmpi slt, %kr, %ks : tensor<1x64xi32>
    %kcm = arith.cmpi slt, %kc, %kcs : tensor<64x1xi32>
    %rowb = tt.broadcast %row : tensor<128x1xi32> -> tensor<128x64xi32>
    %krb = tt.broadcast %kr : tensor<1x64xi32> -> tensor<128x64xi32>
    %ao = arith.addi %rowb, %krb : tensor<128x64xi32>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>
    %ap = tt.addptr %as, %ao : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
    %mmb = tt.broadcast %mm : tensor<128x1xi1> -> tensor<128x64xi1>
    %kmb = tt.broadcast %km : tensor<1x64xi1> -> tensor<128x64xi1>
    %am = arith.andi %mmb, %kmb : tensor<128x64xi1>
    %x = tt.load %ap, %am : tensor<128x64x!tt.ptr<f16>>
    %bro = arith.muli %kc, %ldbs : tensor<64x1xi32>
    %brb = tt.broadcast %bro : tensor<64x1xi32> -> tensor<64x128xi32>
    %inb = tt.broadcast %inr : tensor<1x128xi32> -> tensor<64x128xi32>
    %bo = arith.addi %brb, %inb : tensor<64x128xi32>
    %bs = tt.splat %b : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
    %bp = tt.addptr %bs, %bo : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %kcb = tt.broadcast %kcm : tensor<64x1xi1> -> tensor<64x128xi1>
    %nmb = tt.broadcast %nm : tensor<1x128xi1> -> tensor<64x128xi1>
    %bm = arith.andi %kcb, %nmb : tensor<64x128xi1>
    %y = tt.load %bp, %bm : tensor<64x128x!tt.ptr<f16>>
    %d = tt.dot %x, %y, %s : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %half = arith.truncf %acc : tensor<128x128xf32> to tensor<128x128xf16>
  %rb = tt.broadcast %row : tensor<128x1xi32> -> tensor<128x128xi32>
  %nb = tt.broadcast %inr : tensor<1x128xi32> -> tensor<128x128xi32>
  %co = arith.addi %rb, %nb : tensor<128x128xi32>
  %cs = tt.splat %c : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>>
  %cp = tt.addptr %cs, %co : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
  %mb = tt.broadcast %mm : tensor<128x1xi1> -> tensor<128x128xi1>
  %nmb2 = tt.broadcast %nm : tensor<1x128xi1> -> tensor<128x128xi1>
  %cm = arith.andi %mb, %nmb2 : tensor<128x128xi1>
  tt.store %cp, %half, %cm : tensor<128x128x!tt.ptr<f16>>
  tt.return
}

// Pointers carried through the loop, rows and columns wrapped around instead of masked.
// SM80-LABEL: @carried
// SM80: scf.for
// SM80: ttg.barrier local
// SM80-NEXT: ttg.async_copy_global_to_local {{.*}} {contiguity = 8 : i32} : tensor<128x64x!tt.ptr<f16>
// SM80-NOT: ttg.barrier
// SM80: ttg.async_copy_global_to_local {{.*}} {contiguity = 8 : i32} : tensor<64x128x!tt.ptr<f16>
// SM80-NOT: ttg.barrier
// SM80: scf.yield
// SM90-LABEL: @carried
// SM90: scf.for
// SM90: ttg.async_copy_global_to_local {{.*}} {contiguity = 8 : i32} : tensor<128x64x!tt.ptr<f16>
// SM90: ttg.async_copy_global_to_local {{.*}} {contiguity = 8 : i32} : tensor<64x128x!tt.ptr<f16>
// SM90: scf.yield
tt.func public @carried(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %m: i32 {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %k: i32 {tt.divisibility = 16 : i32}, %lda: i32 {tt.divisibility = 16 : i32}, %ldb: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %step = arith.constant dense<64> : tensor<128x64xi32>
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %r128 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %r64 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %pid = tt.get_program_id x : i32
  %gn = arith.divsi %n, %c128 : i32
  %pm = arith.divsi %pid, %gn : i32
  %pn = arith.remsi %pid, %gn : i32
  %om = arith.muli %pm, %c128 : i32
  %on = arith.muli %pn, %c128 : i32
  %oms = tt.splat %om : i32 -> tensor<128xi32>
  %ons = tt.splat %on : i32 -> tensor<128xi32>
  %im = arith.addi %oms, %r128 : tensor<128xi32>
  %in = arith.addi %ons, %r128 : tensor<128xi32>
  %ms = tt.splat %m : i32 -> tensor<128xi32>
  %ns = tt.splat %n : i32 -> tensor<128xi32>
  %wm = arith.remsi %im, %ms : tensor<128xi32>
  %wn = arith.remsi %in, %ns : tensor<128xi32>
  %imc = tt.expand_dims %wm {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %inr = tt.expand_dims %wn {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %kr = tt.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %kc = tt.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %ldas = tt.splat %lda : i32 -> tensor<128x1xi32>
  %row = arith.muli %imc, %ldas : tensor<128x1xi32>
  %rowb = tt.broadcast %row : tensor<128x1xi32> -> tensor<128x64xi32>
  %krb = tt.broadcast %kr : tensor<1x64xi32> -> tensor<128x64xi32>
  %ao = arith.addi %rowb, %krb : tensor<128x64xi32>
  %as = tt.splat %a : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>
  %ap0 = tt.addptr %as, %ao : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
  %ldbs = tt.splat %ldb : i32 -> tensor<64x1xi32>
  %bro = arith.muli %kc, %ldbs : tensor<64x1xi32>
  %brb = tt.broadcast %bro : tensor<64x1xi32> -> tensor<64x128xi32>
  %inb = tt.broadcast %inr : tensor<1x128xi32> -> tensor<64x128xi32>
  %bo = arith.addi %brb, %inb : tensor<64x128xi32>
  %bs = tt.splat %b : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
  %bp0 = tt.addptr %bs, %bo : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
  %bstep = arith.muli %ldb, %c64 : i32
  %bsteps = tt.splat %bstep : i32 -> tensor<64x128xi32>
  %r:3 = scf.for %k0 = %c0 to %k step %c64 iter_args(%s = %zero, %ap = %ap0, %bp = %bp0) -> (tensor<128x128xf32>, tensor<128x64x!tt.ptr<f16>>, tensor<64x128x!tt.ptr<f16>>) : i32 {
    %left = arith.subi %k, %k0 : i32
    %ls = tt.splat %left : i32 -> tensor<1x64xi32>
    %lcs = tt.splat %left : i32 -> tensor<64x1xi32>
    %km = arith.cmpi slt, %kr, %ls : tensor<1x64xi32>
    %kcm = arith.cmpi slt, %kc, %lcs : tensor<64x1xi32>
    %am = tt.broadcast %km : tensor<1x64xi1> -> tensor<128x64xi1>
    %bm = tt.broadcast %kcm : tensor<64x1xi1> -> tensor<64x128xi1>
    %x = tt.load %ap, %am : tensor<128x64x!tt.ptr<f16>>
    %y = tt.load %bp, %bm : tensor<64x128x!tt.ptr<f16>>
    %d = tt.dot %x, %y, %s : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    %an = tt.addptr %ap, %step : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
    %bn = tt.addptr %bp, %bsteps : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    scf.yield %d, %an, %bn : tensor<128x128xf32>, tensor<128x64x!tt.ptr<f16>>, tensor<64x128x!tt.ptr<f16>>
  }
  %rb = tt.broadcast %row : tensor<128x1xi32> -> tensor<128x128xi32>
  %nb = tt.broadcast %inr : tensor<1x128xi32> -> tensor<128x128xi32>
  %co = arith.addi %rb, %nb : tensor<128x128xi32>
  %cs = tt.splat %c : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
  %cp = tt.addptr %cs, %co : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
  tt.store %cp, %r#0 : tensor<128x128x!tt.ptr<f32>>
  tt.return
}
