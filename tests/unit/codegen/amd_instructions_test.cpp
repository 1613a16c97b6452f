// The layouts' instructions of AMD's matrix units and the code's are the same ones.
#include <doctest/doctest.h>

#include <vector>

#include "../../../codegen/lib/amd/AmdInstructions.h"

using namespace tessera;
using namespace tessera::codegen;

TEST_SUITE_BEGIN("gpu"); // as on any host: run once

TEST_CASE("every instruction that has a layout has an intrinsic, and no other") {
  using T = MatrixType;
  struct operand {
    T type;
    unsigned bits;
  };
  constexpr operand operands[] = {{T::F16, 16}, {T::BF16, 16}, {T::F32, 32}, {T::TF32, 32},    {T::F64, 64},
                                  {T::S8, 8},   {T::E4M3, 8},  {T::E5M2, 8}, {T::E4M3FNUZ, 8}, {T::E5M2FNUZ, 8}};
  unsigned found = 0;
  for (auto [family, version] : {std::pair(MatrixFamily::Mfma, 2u),
                                 {MatrixFamily::Mfma, 3u},
                                 {MatrixFamily::Mfma, 4u},
                                 {MatrixFamily::Wmma, 1u},
                                 {MatrixFamily::Wmma, 2u},
                                 {MatrixFamily::Wmma, 3u}})
    for (unsigned edge : {16, 32})
      for (unsigned k = 1; k <= 256; k *= 2)
        for (unsigned bits : {8, 16, 32, 64}) {
          CAPTURE(int(family));
          CAPTURE(version);
          CAPTURE(edge);
          CAPTURE(k);
          CAPTURE(bits);
          const MatrixInstruction instruction{family, version, edge, edge, k, bits};
          bool has = false;
          for (operand o : operands)
            has |= o.bits == bits && findAmdInstruction({instruction, o.type, o.type, nullptr});
          CHECK(has == exists(instruction));
          found += has;
        }
  CHECK(found == 37);
}

TEST_SUITE_END();
