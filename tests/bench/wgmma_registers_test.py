#!/usr/bin/env python3
"""Tests of wgmma_registers.py on small texts written for them."""
import unittest

from wgmma_registers import faults

LOOP = """
.L_x_1:
      {wait0}
      /*0010*/              LDS R{first}, [R100] ;
      LDS.64 R10, [R100+0x10] ;
      WARPGROUP.ARRIVE ;
      HGMMA.64x16x8.F32.TF32 R24, R8, gdesc[UR8], R24, gsb0 ;
      WARPGROUP.DEPBAR.LE gsb0, {wait1} ;
      LDS.128 R12, [R100+0x20] ;
      {between}
      WARPGROUP.ARRIVE ;
      HGMMA.64x16x8.F32.TF32 R24, R12, gdesc[UR12], R24, gsb0 ;
      @!P0 BRA `(.L_x_1) ;
      WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
      STG.E desc[UR4][R2.64], R24 ;
      EXIT ;
"""


def of(wait0="WARPGROUP.DEPBAR.LE gsb0, 0x1 ;", wait1="0x1", between="", first=8):
    return faults(LOOP.format(**locals()))


class Paths(unittest.TestCase):
    def test_sound(self):
        self.assertEqual(of(), ([], 2, 2))
        self.assertEqual(of(between="IMAD.WIDE R2, R4, 0x4, R6 ;")[0], [])
        self.assertEqual(of(between="LDGSTS.E.128 [R8], desc[UR4][R12.64] ;")[0], [])  # reads them only
        self.assertEqual(of(between="UIADD3 UR8, UR8, 0x1, URZ ;")[0], [])

    def test_early_loads(self):
        for found, _, _ in (of(wait0=""), of(wait0="@!P0 BRA `(.L_x_1) ;"), of(wait0="WARPGROUP.DEPBAR.LE gsb0, 0x2 ;")):
            self.assertIn("LDS R8, [R100]: writes R8, which a product in flight reads", found[0])
        self.assertIn("LDS.128 R12, [R100+0x20]: writes R12", of(wait1="0x2")[0][0])

    def test_width(self):
        self.assertIn("writes R11", of(between="IMAD.WIDE R11, R4, 0x4, R6 ;")[0][0])
        self.assertIn("writes R8", of(between="IMAD.WIDE R7, R4, 0x4, R6 ;")[0][0])
        self.assertIn("writes R8", of(between="@P1 IADD3 R8, P2, R4, R6, RZ ;")[0][0])
        self.assertIn("writes R9", of(between="LOP3.LUT P2, R9, R4, R6, RZ, 0xc0, !PT ;")[0][0])
        self.assertEqual(of(between="IADD3 R7, R4, R6, RZ ;")[0], [])

    def test_sums(self):
        self.assertIn("touches R31", of(between="FADD R3, R31, R4 ;")[0][0])
        self.assertEqual(of(between="FADD R3, R32, R4 ;")[0], [])
        self.assertIn("share registers", of(between="HGMMA.64x8x8.F32.TF32 R8, R16, gdesc[UR8], R8, gsb0 ;")[0][0])

    def test_groups(self):
        # Instructions of one group are waited for together.
        text = """
      HGMMA.64x8x8.F32.TF32 R24, R8, gdesc[UR8], R24 ;
      HGMMA.64x8x8.F32.TF32 R24, R12, gdesc[UR8], R24, gsb0 ;
      HGMMA.64x8x8.F32.TF32 R28, R16, gdesc[UR8], R28, gsb0 ;
      WARPGROUP.DEPBAR.LE gsb0, 0x1 ;
      MOV R{}, R4 ;
      EXIT ;
"""
        self.assertEqual(faults(text.format(8)), ([], 3, 2))
        self.assertEqual(faults(text.format(12))[0], [])
        self.assertEqual(len(faults(text.format(16))[0]), 1)


if __name__ == "__main__":
    unittest.main()
