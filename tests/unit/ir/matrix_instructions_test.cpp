// fragmentOf against the layouts that the ISA documents print, written down here again as formulas; and the encodings
// of AMD's matrix instructions made of them.
#include "context.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "tessera/ir/LayoutPlans.h"
#include "tessera/ir/MatrixInstructions.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include <doctest/doctest.h>

#include <set>

using namespace mlir;
using namespace tessera;

namespace {

using Place = std::pair<int, int>; ///< row, column

template <class F> void check(const MatrixInstruction &i, MatrixOperand operand, int registers, F place) {
  LinearLayout layout = fragmentOf(i, operand);
  REQUIRE(layout.size(HwDim::Register) == registers);
  REQUIRE(layout.size(HwDim::Lane) == i.lanes());
  std::set<Place> reached;
  for (int lane = 0; lane < int(i.lanes()); ++lane)
    for (int r = 0; r < registers; ++r) {
      auto at = layout.coords(layout.apply({{HwDim::Register, r}, {HwDim::Lane, lane}}));
      CAPTURE(r);
      CAPTURE(lane);
      CHECK(Place(at[0], at[1]) == place(r, lane));
      reached.insert({at[0], at[1]});
    }
  CHECK(int64_t(reached.size()) == layout.numElements());
}

MatrixInstruction mfma(unsigned version, unsigned edge, unsigned k, unsigned bits) {
  return {MatrixFamily::Mfma, version, edge, edge, k, bits};
}
MatrixInstruction wmma(unsigned version, unsigned k, unsigned bits) {
  return {MatrixFamily::Wmma, version, 16, 16, k, bits};
}

Attribute parse(Context &context, StringRef text) { return parseAttribute(text, &context); }

} // namespace

TEST_CASE("MFMA: a lane's elements are consecutive along k, lanes along rows or columns, then along k") {
  for (auto [version, edge, k, bits] : std::initializer_list<std::array<unsigned, 4>>{
           {2, 32, 8, 16}, {2, 16, 16, 16}, {3, 32, 8, 16}, {3, 16, 16, 16}, {4, 32, 16, 16}, {4, 16, 32, 16},
           {2, 32, 8, 8},  {2, 16, 16, 8},  {3, 32, 16, 8}, {3, 16, 32, 8},  {4, 32, 32, 8},  {4, 16, 64, 8},
           {4, 32, 64, 8}, {4, 16, 128, 8}, {3, 32, 4, 32}, {3, 16, 8, 32},  {2, 32, 2, 32},  {2, 16, 4, 32},
           {2, 16, 4, 64}, {3, 16, 4, 64},  {4, 32, 2, 32}}) {
    MatrixInstruction i = mfma(version, edge, k, bits);
    REQUIRE(exists(i));
    int perLane = edge * k / 64, n = edge;
    check(i, MatrixOperand::A, perLane, [&](int r, int lane) { return Place(lane % n, perLane * (lane / n) + r); });
    check(i, MatrixOperand::B, perLane, [&](int r, int lane) { return Place(perLane * (lane / n) + r, lane % n); });
    CHECK(elementsPerLane(i) == perLane);
    CHECK(runAlongK(i) == perLane);
  }
}

TEST_CASE("MFMA: accumulators") {
  // "AMD matrix instruction calculator": D of v_mfma_f32_32x32x8_f16 and v_mfma_f32_16x16x16_f16.
  check(mfma(3, 32, 8, 16), MatrixOperand::C, 16,
        [](int r, int lane) { return Place(8 * (r / 4) + 4 * (lane / 32) + r % 4, lane % 32); });
  check(mfma(3, 16, 16, 16), MatrixOperand::C, 4,
        [](int r, int lane) { return Place(4 * (lane / 16) + r, lane % 16); });
  // v_mfma_f64_16x16x4_f64: four rows apart.
  check(mfma(2, 16, 4, 64), MatrixOperand::C, 4, [](int r, int lane) { return Place(4 * r + lane / 16, lane % 16); });
}

TEST_CASE("WMMA of gfx11: both halves of the lanes hold A and B, accumulators alternate") {
  for (unsigned bits : {16u, 8u}) {
    check(wmma(1, 16, bits), MatrixOperand::A, 16, [](int r, int lane) { return Place(lane % 16, r); });
    check(wmma(1, 16, bits), MatrixOperand::B, 16, [](int r, int lane) { return Place(r, lane % 16); });
    check(wmma(1, 16, bits), MatrixOperand::C, 8, [](int r, int lane) { return Place(2 * r + lane / 16, lane % 16); });
  }
}

TEST_CASE("WMMA of gfx12 and gfx1250: the upper half of the lanes goes on along k, and has the lower rows of C") {
  for (unsigned bits : {16u, 8u}) {
    check(wmma(2, 16, bits), MatrixOperand::A, 8,
          [](int r, int lane) { return Place(lane % 16, 8 * (lane / 16) + r); });
    check(wmma(2, 16, bits), MatrixOperand::B, 8,
          [](int r, int lane) { return Place(8 * (lane / 16) + r, lane % 16); });
    check(wmma(2, 16, bits), MatrixOperand::C, 8,
          [](int r, int lane) { return Place(8 * (lane / 16) + r, lane % 16); });
  }
  check(wmma(3, 32, 16), MatrixOperand::A, 16,
        [](int r, int lane) { return Place(lane % 16, 16 * (r / 8) + 8 * (lane / 16) + r % 8); });
  check(wmma(3, 32, 16), MatrixOperand::B, 16,
        [](int r, int lane) { return Place(16 * (r / 8) + 8 * (lane / 16) + r % 8, lane % 16); });
  check(wmma(3, 4, 32), MatrixOperand::A, 2, [](int r, int lane) { return Place(lane % 16, 2 * (lane / 16) + r); });
  check(wmma(3, 32, 16), MatrixOperand::C, 8, [](int r, int lane) { return Place(8 * (lane / 16) + r, lane % 16); });
}

TEST_CASE("mma.sync") {
  MatrixInstruction f16{MatrixFamily::Mma, 2, 16, 8, 16, 16};
  check(f16, MatrixOperand::A, 8,
        [](int r, int lane) { return Place(lane / 4 + 8 * (r / 2 % 2), 2 * (lane % 4) + r % 2 + 8 * (r / 4)); });
  check(f16, MatrixOperand::B, 4,
        [](int r, int lane) { return Place(2 * (lane % 4) + r % 2 + 8 * (r / 2), lane / 4); });
  check(f16, MatrixOperand::C, 4,
        [](int r, int lane) { return Place(lane / 4 + 8 * (r / 2), 2 * (lane % 4) + r % 2); });
  MatrixInstruction f64{MatrixFamily::Mma, 2, 8, 8, 4, 64};
  check(f64, MatrixOperand::A, 1, [](int, int lane) { return Place(lane / 4, lane % 4); });
  check(f64, MatrixOperand::B, 1, [](int, int lane) { return Place(lane % 4, lane / 4); });
  check(f64, MatrixOperand::C, 2, [](int r, int lane) { return Place(lane / 4, 2 * (lane % 4) + r); });
  for (unsigned k : {4, 8, 16}) { // of sm_90
    MatrixInstruction wide{MatrixFamily::Mma, 3, 16, 8, k, 64};
    check(wide, MatrixOperand::A, k / 2,
          [](int r, int lane) { return Place(r % 2 == 0 ? lane / 4 : lane / 4 + 8, lane % 4 + r / 2 * 4); });
    check(wide, MatrixOperand::B, k / 4, [](int r, int lane) { return Place(lane % 4 + r * 4, lane / 4); });
    check(wide, MatrixOperand::C, 4,
          [](int r, int lane) { return Place(r < 2 ? lane / 4 : lane / 4 + 8, 2 * (lane % 4) + r % 2); });
    CHECK(elementsPerLane(wide) == k / 2);
  }
}

TEST_CASE("sm_90 multiplies 16 rows of f64 at once, as deep as the tile is") {
  MatrixInstruction f64{MatrixFamily::Mma, 2, 8, 8, 4, 64}, f16{MatrixFamily::Mma, 2, 16, 8, 16, 16};
  auto wide = [](unsigned k) { return MatrixInstruction{MatrixFamily::Mma, 3, 16, 8, k, 64}; };
  CHECK(widestOnNvidia(90, f64, 16, 4) == wide(4));
  CHECK(widestOnNvidia(90, f64, 64, 8) == wide(8));
  CHECK(widestOnNvidia(90, f64, 64, 64) == wide(16));
  CHECK(widestOnNvidia(90, f64, 16, 2) == wide(4));
  CHECK(widestOnNvidia(90, f64, 8, 64) == f64);
  CHECK(widestOnNvidia(90, f16, 64, 64) == f16);
  for (unsigned other : {80, 89, 100, 120})
    CHECK(widestOnNvidia(other, f64, 64, 64) == f64);
}

TEST_CASE("only instructions of the generation exist") {
  CHECK_FALSE(exists(mfma(3, 32, 16, 16))); // gfx950's
  CHECK(exists(mfma(4, 32, 8, 16)));
  CHECK_FALSE(exists(mfma(2, 32, 4, 32))); // xf32 is gfx942's alone
  CHECK_FALSE(exists(mfma(4, 32, 4, 32)));
  CHECK_FALSE(exists(mfma(3, 32, 8, 8)));
  CHECK_FALSE(exists(mfma(3, 32, 2, 64)));
  CHECK_FALSE(exists(mfma(5, 32, 8, 16)));
  CHECK_FALSE(exists(mfma(3, 64, 4, 16)));
  CHECK_FALSE(exists(wmma(1, 32, 16)));
  CHECK_FALSE(exists(wmma(2, 4, 32)));
  CHECK_FALSE(exists({MatrixFamily::Wmma, 2, 32, 16, 16, 16}));
  CHECK_FALSE(exists({MatrixFamily::Mma, 2, 16, 16, 16, 16}));
  CHECK_FALSE(exists({MatrixFamily::Mma, 2, 16, 8, 4, 64})); // sm_90's
  CHECK_FALSE(exists({MatrixFamily::Mma, 3, 8, 8, 4, 64}));
  CHECK_FALSE(exists({MatrixFamily::Mma, 3, 16, 8, 32, 64}));
  CHECK_FALSE(exists({MatrixFamily::Mma, 3, 16, 8, 16, 16}));
  CHECK_FALSE(exists({}));
}

TEST_CASE("amd_mfma: warps beside each other, columns first; transposed means rows and columns exchanged") {
  Context context;
  auto plain = parse(
      context, "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = false}>");
  auto swapped = parse(
      context, "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>");
  LinearLayout a = ttg::toLinearLayout({128, 128}, plain), b = ttg::toLinearLayout({128, 128}, swapped);
  for (int warp = 0; warp < 4; ++warp)
    for (int lane = 0; lane < 64; ++lane)
      for (int r = 0; r < 64; ++r) {
        auto at = a.coords(a.apply({{HwDim::Register, r}, {HwDim::Lane, lane}, {HwDim::Warp, warp}}));
        int inner = 8 * (r / 4 % 4) + 4 * (lane / 32) + r % 4, tile = r / 16;
        CHECK(Place(at[0], at[1]) ==
              Place(inner + 32 * (warp / 2) + 64 * (tile / 2), lane % 32 + 32 * (warp % 2) + 64 * (tile % 2)));
        at = b.coords(b.apply({{HwDim::Register, r}, {HwDim::Lane, lane}, {HwDim::Warp, warp}}));
        CHECK(Place(at[0], at[1]) ==
              Place(lane % 32 + 32 * (warp / 2) + 64 * (tile / 2), inner + 32 * (warp % 2) + 64 * (tile % 2)));
      }
}

TEST_CASE("a transposed product is the next one's A as it lies") {
  Context context;
  // mfma: four consecutive columns a lane; gfx12: eight.
  for (auto [parent, kWidth] :
       {std::pair("#ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = true}>",
                  4u),
        std::pair("#ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [16, 16, 32], isTransposed = true}>",
                  4u),
        std::pair("#ttg.amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = [4, 1]}>", 8u)}) {
    auto c = cast<ttg::MatrixEncoding>(parse(context, parent));
    auto operand = ttg::DotOperandEncodingAttr::get(&context, 0, c, kWidth);
    CHECK(
        planConversion(ttg::toLinearLayout({128, 64}, Attribute(c)), ttg::toLinearLayout({128, 64}, operand), 2).kind ==
        ConversionPlan::Kind::Copy);
  }
  // gfx11 has no such luck: a lane of an operand holds all of k.
  auto c = cast<ttg::MatrixEncoding>(
      parse(context, "#ttg.amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [4, 1]}>"));
  CHECK(planConversion(ttg::toLinearLayout({128, 64}, Attribute(c)),
                       ttg::toLinearLayout({128, 64}, ttg::DotOperandEncodingAttr::get(&context, 0, c, 16)), 2)
            .kind != ConversionPlan::Kind::Copy);
}

TEST_CASE("operands hold k in runs of kWidth, and all warps along the other dimension the same") {
  Context context;
  auto c = cast<ttg::MatrixEncoding>(parse(
      context, "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>"));
  for (unsigned kWidth : {4u, 8u}) {
    LinearLayout a = ttg::toLinearLayout({64, 32}, ttg::DotOperandEncodingAttr::get(&context, 0, c, kWidth));
    for (int warp = 0; warp < 4; ++warp)
      for (int lane = 0; lane < 64; ++lane)
        for (int r = 0; r < 16; ++r) {
          auto at = a.coords(a.apply({{HwDim::Register, r}, {HwDim::Lane, lane}, {HwDim::Warp, warp}}));
          CHECK(Place(at[0], at[1]) ==
                Place(lane % 32 + 32 * (warp / 2), r % kWidth + kWidth * (lane / 32) + 2 * kWidth * (r / kWidth)));
        }
  }
}
