#!/usr/bin/env python3
"""Tests of amdgcn.py and of the verdicts of compare_amdgcn.py, on small texts written for them."""
import json, unittest

import amdgcn
import compare_amdgcn

HEADER = '\t.amdgcn_target "amdgcn-amd-amdhsa--{arch}"\nk:\n'
FOOTER = """.Lfunc_end0:
\t.amdhsa_kernel k
\t.end_amdhsa_kernel
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     {agprs}
    .group_segment_fixed_size: {lds}
    .max_flat_workgroup_size: {threads}
    .private_segment_fixed_size: {scratch}
    .sgpr_count:     20
    .vgpr_count:     {registers}
    .vgpr_spill_count: 0
    .wavefront_size: {wave}
...
\t.end_amdgpu_metadata
"""


def text(body, arch="gfx942", agprs=0, lds=0, threads=256, scratch=0, registers=64, wave=64):
    return HEADER.format(arch=arch) + body + FOOTER.format(**locals())


LOOP = """\ts_load_dwordx4 s[0:3], s[4:5], 0x0
\tbuffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen
.LBB0_1:                                ; %loop
\ts_cbranch_scc0 .LBB0_3
\tds_read2_b64 v[0:3], v4 offset1:1
\tds_read_u16_d16_hi v5, v6
\tbuffer_load_dword v7, v8, s[0:3], 0 offen
\tv_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
\tv_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
\ts_branch .LBB0_1
.LBB0_3:
\tv_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
\tds_write_b128 v4, v[0:3]
\tglobal_store_dwordx2 v[0:1], v[2:3], off
\ts_endpgm
"""


class Reading(unittest.TestCase):
    def test_accesses(self):
        for name, want in {"buffer_load_dwordx4": ("load", 16), "global_load_b96": ("load", 12), "global_store_short": ("store", 2),
                           "buffer_store_b16": ("store", 2), "ds_read_b128": ("lds_read", 16), "ds_read2_b32": ("lds_read", 8),
                           "ds_load_2addr_stride64_b64": ("lds_read", 16), "ds_load_u16_d16_hi": ("lds_read", 2),
                           "ds_read_u8_d16": ("lds_read", 1), "ds_write2st64_b64": ("lds_write", 16), "ds_store_b8": ("lds_write", 1),
                           "buffer_load_dwordx4_lds": ("load", 16), "global_load_lds_dwordx4": ("load", 16), "ds_read_b64_tr_b16": ("lds_read", 8),
                           "s_load_dwordx4": None, "scratch_load_dword": None, "ds_bpermute_b32": None, "v_add_f32_e32": None}.items():
            self.assertEqual(amdgcn.access(name), want, name)

    def test_multiplies(self):
        for name, want in {"v_mfma_f32_32x32x8_f16": 8192, "v_mfma_f32_32x32x8_bf16_1k": 8192, "v_mfma_f32_4x4x4_16b_f16": 1024,
                           "v_mfma_scale_f32_16x16x128_f8f6f4": 32768, "v_wmma_i32_16x16x16_iu8": 4096, "v_fma_f32": 0}.items():
            self.assertEqual(amdgcn.multiplies(name), want, name)

    def test_loop(self):
        k = amdgcn.parse(text(LOOP, registers=100, agprs=16, lds=8192))
        self.assertTrue(k.looped)
        self.assertEqual((k.matrix.total(), k.all_matrix.total()), (2, 3))
        self.assertEqual((k.widths("lds_read"), k.widths("load"), k.widths("lds_write")), ("1x16 1x2", "1x4", "-"))
        self.assertEqual((k.widths("load", True), k.widths("store", True), k.widths("lds_write", True)), ("1x16 1x4", "1x8", "1x16"))
        self.assertEqual((k.warps, k.wave, k.registers, k.agprs, k.lds, k.scratch), (4, 64, 100, 16, 8192, 0))
        again = amdgcn.Kernel.of_facts(json.loads(json.dumps(k.facts())))
        self.assertEqual(again, k)

    def test_inner_loop(self):
        nest = "A:\n\tds_read_b32 v0, v1\nB:\n\tds_read_b64 v[0:1], v1\n\ts_cbranch_scc1 B\n\ts_cbranch_vccnz A\n\ts_endpgm\n"
        self.assertEqual(amdgcn.parse(text(nest)).widths("lds_read"), "1x8")

    def test_occupancy(self):
        for (arch, registers, lds, warps), want in {
                ("gfx942", 64, 0, 4): 8, ("gfx942", 65, 0, 4): 7, ("gfx942", 512, 0, 4): 1, ("gfx942", 40, 32768, 4): 2,
                ("gfx942", 89, 0, 8): 4,  # five waves' registers, but programs of two waves a SIMD
                ("gfx950", 40, 65536, 4): 2, ("gfx1100", 96, 0, 4): 16, ("gfx1100", 97, 0, 4): 12, ("gfx1100", 24, 32768, 4): 4}.items():
            self.assertEqual(amdgcn.occupancy(arch, registers, lds, warps), want, (arch, registers, lds, warps))


class Verdicts(unittest.TestCase):
    CASE = "matmul bm=64 bn=64 bk=16 warps=4"

    def worse(self, body=LOOP, peer=LOOP, **changes):
        ours, peer = amdgcn.parse(text(body, **changes)), amdgcn.parse(text(peer))
        return [what for what, _, _, fine in compare_amdgcn.measures(ours, peer, self.CASE) if fine is False]

    def test_equal(self):
        self.assertEqual(self.worse(), [])

    def test_worse(self):
        self.assertEqual(self.worse(registers=72), ["VGPR + AGPR", "waves a SIMD"])
        self.assertEqual(self.worse(registers=70), ["waves a SIMD"])
        self.assertEqual(self.worse(lds=16), ["LDS bytes"])
        self.assertEqual(self.worse(scratch=4), ["scratch bytes"])
        self.assertEqual(self.worse(LOOP.replace("ds_read2_b64", "ds_read_b64")), ["LDS reads", "bytes of an LDS access"])
        self.assertEqual(self.worse(LOOP.replace("\tbuffer_load_dword v7", "\tbuffer_load_ushort v7")), ["loads"])
        self.assertEqual(self.worse(LOOP.replace("store_dwordx2", "store_dword")), ["stores"])
        self.assertEqual(self.worse(LOOP.replace("32x32x8", "16x16x16")), ["matrix instructions"])

    def test_turned(self):
        """Narrow writes are made up for by wider reads, if both are fewer then; narrow reads are not by writes."""
        written = LOOP.replace("\tds_read_u16_d16_hi v5, v6\n", "\tds_read_u16_d16_hi v5, v6\n" * 8 + "\tds_write_b128 v6, v[0:3]\n")
        turned = LOOP.replace("\tds_read_u16_d16_hi v5, v6\n", "\tds_read_b128 v[10:13], v6\n" + "\tds_write_b32 v5, v6\n" * 4)
        self.assertEqual(self.worse(turned, peer=written), [])
        self.assertEqual(self.worse(written, peer=turned), ["LDS reads", "bytes of an LDS access"])
        many = turned.replace("\tds_write_b32 v5, v6\n", "\tds_write_b32 v5, v6\n" * 2)
        self.assertEqual(self.worse(many, peer=written), ["LDS writes"])

    def test_unrolled(self):
        """Two steps of K in a trip are as many instructions for each as one step's."""
        product = "\tv_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]\n" * 2
        loads = "\tds_read2_b64 v[0:3], v4 offset1:1\n\tds_read_u16_d16_hi v5, v6\n\tbuffer_load_dword v7, v8, s[0:3], 0 offen\n"
        self.assertEqual(self.worse(LOOP.replace("\ts_branch", loads + product + "\ts_branch")), [])


if __name__ == "__main__":
    unittest.main()
