// Global memory on AMD GPUs: buffer accesses whose range check is the mask, where offsets are small; branches elsewhere;
// widths, hints, argument metadata.
// RUN: split-file %s %t
// RUN: tessera-translate %t/masked.mlir --target=hip:gfx942 --emit=llir | FileCheck %t/masked.mlir --check-prefix=LLIR
// RUN: tessera-translate %t/masked.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/masked.mlir --check-prefix=GFX9
// RUN: tessera-translate %t/masked.mlir --target=hip:gfx1100 --emit=amdgcn | FileCheck %t/masked.mlir --check-prefix=GFX11
// RUN: tessera-translate %t/masked.mlir --target=hip:gfx1201 --emit=amdgcn | FileCheck %t/masked.mlir --check-prefix=GFX12
// RUN: tessera-translate %t/masked.mlir --target=hip:gfx1250 --emit=amdgcn | FileCheck %t/masked.mlir --check-prefix=GFX1250
// RUN: tessera-translate %t/full.mlir --target=hip:gfx90a --emit=amdgcn | FileCheck %t/full.mlir
// RUN: sed 's/RANGE//' %t/rows.mlir | tessera-translate - --target=hip:gfx942 --emit=llir | FileCheck %t/rows.mlir --check-prefix=FAR
// RUN: sed 's/RANGE/, tt.pointer_range = 32 : i32/' %t/rows.mlir > %t/near.mlir
// RUN: tessera-translate %t/near.mlir --target=hip:gfx942 --emit=llir | FileCheck %t/rows.mlir --check-prefix=NEAR
// RUN: tessera-translate %t/loop.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/loop.mlir
// RUN: tessera-translate %t/moving.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/moving.mlir
// RUN: tessera-translate %t/wrap.mlir --target=hip:gfx942 --emit=llir | FileCheck %t/wrap.mlir
// RUN: tessera-translate %t/before.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/before.mlir --check-prefix=WRAPS
// RUN: tessera-translate %t/before.mlir --target=hip:gfx1250 --emit=amdgcn | FileCheck %t/before.mlir --check-prefix=EXTENDS
// RUN: tessera-translate %t/narrow.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/narrow.mlir
// RUN: tessera-translate %t/nowhere.mlir --target=hip:gfx942 --emit=llir | FileCheck %t/nowhere.mlir
// RUN: tessera-translate %t/hints.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/hints.mlir --check-prefix=GFX942
// RUN: tessera-translate %t/hints.mlir --target=hip:gfx90a --emit=amdgcn | FileCheck %t/hints.mlir --check-prefix=GFX90A
// RUN: tessera-translate %t/hints.mlir --target=hip:gfx1201 --emit=amdgcn | FileCheck %t/hints.mlir --check-prefix=GFX1201
// RUN: tessera-translate %t/scalar.mlir --target=hip:gfx942 --emit=amdgcn | FileCheck %t/scalar.mlir

//--- masked.mlir
// The program's first element is taken into the base; what is left is the lane's own offset, under 2^31. A lane that is
// masked off gets an offset that is out of range. No branch, no zeros moved.
// LLIR-LABEL: define protected amdgpu_kernel void @masked(
// LLIR-SAME: ptr addrspace(1) inreg %0
// LLIR: [[TID:%.*]] = tail call range(i32 0, 256) i32 @llvm.amdgcn.workitem.id.x()
// LLIR-DAG: [[OFFSET:%.*]] = shl {{.*}}i32 [[TID]], 4
// LLIR-DAG: [[AT:%.*]] = select i1 {{.*}}, i32 [[OFFSET]], i32 -2147483648
// LLIR: call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) {{.*}}, i16 0, i64 2147483647, i32 159744)
// LLIR: call <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8) {{.*}}, i32 [[AT]], i32 0, i32 0)
// LLIR: call void @llvm.amdgcn.raw.ptr.buffer.store.v4i32(<4 x i32> {{.*}}, ptr addrspace(8) {{.*}}, i32 [[AT]], i32 0, i32 0)
// LLIR-NOT: tessera.load
//
// GFX9-LABEL: masked:
// GFX9-NOT: s_cbranch
// GFX9: buffer_load_dwordx4 v[{{[0-9:]+}}], [[AT:v[0-9]+]], s[{{[0-9:]+}}], 0 offen{{$}}
// GFX9-NOT: buffer_load
// GFX9: buffer_store_dwordx4 v[{{[0-9:]+}}], [[AT]], s[{{[0-9:]+}}], 0 offen{{$}}
// GFX9: s_endpgm
// GFX9: .amdhsa_user_sgpr_kernarg_preload_length
// GFX9: .amdhsa_system_sgpr_workgroup_id_y 0
// GFX9: .amdhsa_system_vgpr_workitem_id 0
// GFX9: .group_segment_fixed_size: 0
// GFX9: .kernarg_segment_size: 20
// GFX9: .max_flat_workgroup_size: 256
// GFX9: .reqd_workgroup_size:
// GFX9-NEXT: - 256
// GFX9: .wavefront_size: 64
// GFX9: amdhsa.target: {{.*}}gfx942
// GFX9: amdhsa.version:
// GFX9-NEXT: - 1
// GFX9-NEXT: - 2
//
// Warps of 32: two accesses, the second an immediate away, each with its mask.
// GFX11-LABEL: masked:
// GFX11: s_mov_b32 s{{[0-9]+}}, 0x31027000
// GFX11-DAG: buffer_load_b128 v[{{[0-9:]+}}], v{{[0-9]+}}, s[{{[0-9:]+}}], 0 offen{{$}}
// GFX11-DAG: buffer_load_b128 v[{{[0-9:]+}}], v{{[0-9]+}}, s[{{[0-9:]+}}], 0 offen offset:2048
// GFX11: buffer_store_b128
// GFX11: buffer_store_b128
// GFX11: .wavefront_size: 32
//
// GFX12-LABEL: masked:
// GFX12: buffer_load_b128 v[{{[0-9:]+}}], v{{[0-9]+}}, s[{{[0-9:]+}}], null offen offset:2048
//
// The descriptor has another shape there: 57 bits of address, 45 of size.
// GFX1250-LABEL: masked:
// GFX1250-DAG: 0xfe00000000000000
// GFX1250-DAG: buffer_load_b128
tt.func public @masked(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32},
                       %n: i32 {tt.divisibility = 16 : i32}) {
  %c1024 = arith.constant 1024 : i32
  %pid = tt.get_program_id x : i32
  %first = arith.muli %pid, %c1024 : i32
  %range = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %firsts = tt.splat %first : i32 -> tensor<1024xi32>
  %i = arith.addi %firsts, %range : tensor<1024xi32>
  %ns = tt.splat %n : i32 -> tensor<1024xi32>
  %in = arith.cmpi slt, %i, %ns : tensor<1024xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %px = tt.addptr %xs, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %v = tt.load %px, %in : tensor<1024x!tt.ptr<f32>>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %po = tt.addptr %os, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %po, %v, %in : tensor<1024x!tt.ptr<f32>>
  tt.return
}

//--- full.mlir
// Without a mask an access is one of global memory, from a base in scalar registers.
// CHECK-LABEL: full:
// CHECK: global_load_dwordx4 v[{{[0-9:]+}}], [[AT:v[0-9]+]], s[{{[0-9:]+}}]{{$}}
// CHECK: global_store_dwordx4 [[AT]], v[{{[0-9:]+}}], s[{{[0-9:]+}}]{{$}}
tt.func public @full(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32>
  %xs = tt.splat %x : !tt.ptr<f16> -> tensor<2048x!tt.ptr<f16>>
  %px = tt.addptr %xs, %i : tensor<2048x!tt.ptr<f16>>, tensor<2048xi32>
  %v = tt.load %px : tensor<2048x!tt.ptr<f16>>
  %os = tt.splat %o : !tt.ptr<f16> -> tensor<2048x!tt.ptr<f16>>
  %po = tt.addptr %os, %i : tensor<2048x!tt.ptr<f16>>, tensor<2048xi32>
  tt.store %po, %v : tensor<2048x!tt.ptr<f16>>
  tt.return
}

//--- rows.mlir
// A row times an unknown stride may be anywhere: a branch, unless the memory behind the pointer is known to be short.
// FAR-LABEL: define protected amdgpu_kernel void @rows(
// FAR-NOT: buffer
// FAR: br i1
// FAR: load <4 x float>
// NEAR-LABEL: define protected amdgpu_kernel void @rows(
// NEAR-SAME: "tessera.below-2g"
// NEAR-NOT: br i1
// NEAR: raw.ptr.buffer.load.v4i32
// NEAR: raw.ptr.buffer.store.v4i32
tt.func public @rows(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32RANGE}, %stride: i32 {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %r1 = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %s = tt.splat %stride : i32 -> tensor<32x1xi32>
  %rs = arith.muli %r1, %s : tensor<32x1xi32>
  %rb = tt.broadcast %rs : tensor<32x1xi32> -> tensor<32x32xi32>
  %c1 = tt.expand_dims %r {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %cb = tt.broadcast %c1 : tensor<1x32xi32> -> tensor<32x32xi32>
  %at = arith.addi %rb, %cb : tensor<32x32xi32>
  %ns = tt.splat %n : i32 -> tensor<1x32xi32>
  %m1 = arith.cmpi slt, %c1, %ns : tensor<1x32xi32>
  %m = tt.broadcast %m1 : tensor<1x32xi1> -> tensor<32x32xi1>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  %p = tt.addptr %xs, %at : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
  %v = tt.load %p, %m : tensor<32x32x!tt.ptr<f32>>
  %w = arith.addf %v, %v : tensor<32x32xf32>
  tt.store %p, %w, %m : tensor<32x32x!tt.ptr<f32>>
  tt.return
}

//--- loop.mlir
// The base moves with the loop, in scalar registers; the lane's offset stays.
// CHECK-LABEL: loop:
// CHECK: %for.body
// CHECK-NOT: {{v_add_co|v_lshl_add_u64|v_ashrrev|s_cbranch_exec}}
// CHECK: s_add_u32
// CHECK-NOT: {{v_add_co|v_lshl_add_u64|v_ashrrev|s_cbranch_exec}}
// CHECK: buffer_load_dwordx4
// CHECK-NOT: {{v_add_co|v_lshl_add_u64|v_ashrrev|s_cbranch_exec}}
// CHECK: s_cbranch_scc
tt.func public @loop(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c1024 = arith.constant 1024 : i32
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %range = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %ns = tt.splat %n : i32 -> tensor<1024xi32>
  %sum = scf.for %first = %c0 to %n step %c1024 iter_args(%acc = %zero) -> (tensor<1024xf32>) : i32 {
    %firsts = tt.splat %first : i32 -> tensor<1024xi32>
    %i = arith.addi %firsts, %range : tensor<1024xi32>
    %in = arith.cmpi slt, %i, %ns : tensor<1024xi32>
    %px = tt.addptr %xs, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %v = tt.load %px, %in : tensor<1024x!tt.ptr<f32>>
    %next = arith.addf %acc, %v : tensor<1024xf32>
    scf.yield %next : tensor<1024xf32>
  }
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %po = tt.addptr %os, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %po, %sum : tensor<1024x!tt.ptr<f32>>
  tt.return
}

//--- wrap.mlir
// A sum of 32 bits that may wrap is not taken apart: its wrapped value is the address.
// CHECK-LABEL: define protected amdgpu_kernel void @wrap(
// CHECK-NOT: buffer
// CHECK: load <4 x float>
// CHECK: ret void
tt.func public @wrap(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %first: i32 {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
  %range = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %firsts = tt.splat %first : i32 -> tensor<1024xi32>
  %i = arith.addi %firsts, %range : tensor<1024xi32>
  %ns = tt.splat %n : i32 -> tensor<1024xi32>
  %in = arith.cmpi slt, %i, %ns : tensor<1024xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %px = tt.addptr %xs, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %v = tt.load %px, %in : tensor<1024x!tt.ptr<f32>>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %po = tt.addptr %os, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %po, %v : tensor<1024x!tt.ptr<f32>>
  tt.return
}

//--- narrow.mlir
// Bytes, halves and doubles one by one.
// CHECK-LABEL: narrow:
// CHECK: buffer_load_ubyte
// CHECK: buffer_store_byte
// CHECK: buffer_load_ushort
// CHECK: buffer_store_short
// CHECK: buffer_load_dwordx2
// CHECK: buffer_store_dwordx2
tt.func public @narrow(%b: !tt.ptr<i8>, %h: !tt.ptr<f16>, %d: !tt.ptr<f64> {tt.divisibility = 16 : i32}, %n: i32) {
  %i = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %one = arith.constant dense<1> : tensor<512xi32>
  %j = arith.addi %i, %one : tensor<512xi32>
  %ns = tt.splat %n : i32 -> tensor<512xi32>
  %in = arith.cmpi slt, %i, %ns : tensor<512xi32>
  %bs = tt.splat %b : !tt.ptr<i8> -> tensor<512x!tt.ptr<i8>>
  %pb = tt.addptr %bs, %i : tensor<512x!tt.ptr<i8>>, tensor<512xi32>
  %qb = tt.addptr %bs, %j : tensor<512x!tt.ptr<i8>>, tensor<512xi32>
  %vb = tt.load %pb, %in : tensor<512x!tt.ptr<i8>>
  tt.store %qb, %vb, %in : tensor<512x!tt.ptr<i8>>
  %hs = tt.splat %h : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>>
  %ph = tt.addptr %hs, %i : tensor<512x!tt.ptr<f16>>, tensor<512xi32>
  %qh = tt.addptr %hs, %j : tensor<512x!tt.ptr<f16>>, tensor<512xi32>
  %vh = tt.load %ph, %in : tensor<512x!tt.ptr<f16>>
  tt.store %qh, %vh, %in : tensor<512x!tt.ptr<f16>>
  %two = arith.constant dense<256> : tensor<512xi32>
  %even = arith.cmpi slt, %i, %two : tensor<512xi32>
  %ds = tt.splat %d : !tt.ptr<f64> -> tensor<512x!tt.ptr<f64>>
  %pd = tt.addptr %ds, %i : tensor<512x!tt.ptr<f64>>, tensor<512xi32>
  %vd = tt.load %pd, %even : tensor<512x!tt.ptr<f64>>
  %wd = arith.addf %vd, %vd : tensor<512xf64>
  tt.store %pd, %wd, %even : tensor<512x!tt.ptr<f64>>
  tt.return
}

//--- nowhere.mlir
// A mask that LLVM finds to be false: nothing is touched, not everything.
// CHECK-LABEL: define protected amdgpu_kernel void @nowhere(
// CHECK-NOT: buffer
// CHECK-NOT: {{load|store}}
// CHECK: ret void
tt.func public @nowhere(%x: !tt.ptr<i32>, %n: i32) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %most = arith.constant dense<-1> : tensor<256xi32>
  %ns = tt.splat %n : i32 -> tensor<256xi32>
  %in = arith.cmpi ult, %most, %ns : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
  %p = tt.addptr %xs, %i : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
  %v = tt.load %p, %in : tensor<256x!tt.ptr<i32>>
  %w = arith.addi %v, %i : tensor<256xi32>
  tt.store %p, %w, %in : tensor<256x!tt.ptr<i32>>
  tt.return
}

//--- hints.mlir
// Data that is not used again leaves the caches first; volatile data passes them by.
// GFX942-LABEL: hints:
// GFX942: buffer_load_dwordx4 {{.*}} offen nt
// GFX942: buffer_load_dwordx4 {{.*}} offen sc0 sc1
// GFX942: buffer_store_dwordx4 {{.*}} offen nt
// GFX90A-LABEL: hints:
// GFX90A: buffer_load_dwordx4 {{.*}} offen glc slc
// GFX90A: buffer_store_dwordx4 {{.*}} offen glc slc
// GFX1201-LABEL: hints:
// GFX1201: buffer_load_b128 {{.*}} offen th:TH_LOAD_NT
// GFX1201: buffer_store_b128 {{.*}} offen th:TH_STORE_NT
tt.func public @hints(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %px = tt.addptr %xs, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %v = tt.load %px evictionPolicy = evict_first : tensor<1024x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %py = tt.addptr %ys, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %w = tt.load %py {isVolatile = true} : tensor<1024x!tt.ptr<f32>>
  %s = arith.addf %v, %w : tensor<1024xf32>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %po = tt.addptr %os, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %po, %s cacheModifier = cs : tensor<1024x!tt.ptr<f32>>
  tt.return
}

//--- scalar.mlir
// A scalar is loaded into scalar registers, and stored by one work-item. The number of programs is in the dispatch packet.
// CHECK-LABEL: scalar:
// CHECK: s_load_dword {{s[0-9]+}}, s[{{[0-9:]+}}], 0x10
// CHECK: .amdhsa_user_sgpr_dispatch_ptr 1
// CHECK: .amdhsa_user_sgpr_queue_ptr 0
tt.func public @scalar(%x: !tt.ptr<i32>, %o: !tt.ptr<i32>) {
  %v = tt.load %x : !tt.ptr<i32>
  %n = tt.get_num_programs y : i32
  %s = arith.addi %v, %n : i32
  tt.store %o, %s : !tt.ptr<i32>
  tt.return
}

//--- moving.mlir
// Pointers that a loop carries, without a mask: the base moves in scalar registers, where proven as where promised.
// CHECK-LABEL: moving:
// CHECK: %for.body
// CHECK-NOT: {{v_add_co|v_lshl_add_u64|global_load|v_add_u32}}
// CHECK: buffer_load_dwordx4
// CHECK-NOT: {{v_add_co|v_lshl_add_u64|global_load|v_add_u32}}
// CHECK: s_cbranch_scc
tt.func public @moving(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %step: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %range = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %px = tt.addptr %xs, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %steps = tt.splat %step : i32 -> tensor<1024xi32>
  %sum:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %at = %px) -> (tensor<1024xf32>, tensor<1024x!tt.ptr<f32>>) : i32 {
    %v = tt.load %at : tensor<1024x!tt.ptr<f32>>
    %next = arith.addf %acc, %v : tensor<1024xf32>
    %further = tt.addptr %at, %steps : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    scf.yield %next, %further : tensor<1024xf32>, tensor<1024x!tt.ptr<f32>>
  }
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %po = tt.addptr %os, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %po, %sum#0 : tensor<1024x!tt.ptr<f32>>
  tt.return
}

//--- before.mlir
// The sum is promised to be small, its parts may be negative. Hardware that does not wrap at 32 bits gets no immediate.
// WRAPS-LABEL: before:
// WRAPS: buffer_load_dword v{{[0-9]+}}, v{{[0-9]+}}, s[{{[0-9:]+}}], 0 offen offset:32
// EXTENDS-LABEL: before:
// EXTENDS: buffer_load_b32 v{{[0-9]+}}, v{{[0-9]+}}, s[{{[0-9:]+}}], null offen{{$}}
tt.func public @before(%x: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %o: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %stride: i32) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %one = arith.constant dense<1> : tensor<256xi32>
  %strides = tt.splat %stride : i32 -> tensor<256xi32>
  %far = arith.muli %i, %strides : tensor<256xi32>
  %eight = arith.constant dense<8> : tensor<256xi32>
  %in = arith.cmpi sge, %i, %one : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %p0 = tt.addptr %xs, %far : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %p = tt.addptr %p0, %eight : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %v = tt.load %p, %in : tensor<256x!tt.ptr<f32>>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %q = tt.addptr %os, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  tt.store %q, %v : tensor<256x!tt.ptr<f32>>
  tt.return
}
