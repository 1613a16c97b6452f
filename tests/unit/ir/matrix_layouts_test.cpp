// Layouts of matrix instructions against the fragment layouts of the PTX ISA, written down here as the ISA has them;
// and plans for ldmatrix, stmatrix and wgmma, carried out by small simulators of these instructions.
#include "context.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "tessera/ir/LayoutPlans.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace mlir;
using namespace tessera;

namespace {

using Place = std::pair<int, int>; ///< row, column

/// Whether a lane's registers hold what `place(i, lane, warp)` says, on a tensor that one instruction covers.
template <class F> void checkFragment(const LinearLayout &layout, int registers, F place) {
  REQUIRE(layout.size(HwDim::Register) == registers);
  for (int warp = 0; warp < layout.size(HwDim::Warp); ++warp)
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < registers; ++i) {
        auto at = layout.coords(layout.apply({{HwDim::Register, i}, {HwDim::Lane, lane}, {HwDim::Warp, warp}}));
        Place expected = place(i, lane, warp);
        CAPTURE(i);
        CAPTURE(lane);
        CHECK(Place(at[0], at[1]) == expected);
      }
}

ttg::NvidiaMmaEncodingAttr mma2(MLIRContext &context, unsigned m = 1, unsigned n = 1) {
  return ttg::NvidiaMmaEncodingAttr::get(&context, 2, {m, n}, {16, 8});
}
ttg::NvidiaMmaEncodingAttr mma3(MLIRContext &context, unsigned n, unsigned k, unsigned warps = 4) {
  return ttg::NvidiaMmaEncodingAttr::get(&context, 3, {warps, 1}, {16, n, k});
}
LinearLayout operand(ttg::NvidiaMmaEncodingAttr mma, unsigned opIdx, unsigned kWidth, ArrayRef<int64_t> shape) {
  return ttg::toLinearLayout(shape, ttg::DotOperandEncodingAttr::get(mma.getContext(), opIdx, mma, kWidth));
}

Type integer(MLIRContext &context, unsigned bytes) { return IntegerType::get(&context, 8 * bytes); }

} // namespace

// ---- fragments ------------------------------------------------------------------------------------------------------

TEST_CASE("fragments of mma.m16n8k16 with 16-bit operands") {
  Context context;
  auto mma = mma2(context);
  checkFragment(operand(mma, 0, 2, {16, 16}), 8, [](int i, int lane, int) {
    int group = lane >> 2, thread = lane % 4;
    int row = (i >= 0 && i < 2) || (i >= 4 && i < 6) ? group : group + 8;
    int column = i < 4 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8;
    return Place(row, column);
  });
  checkFragment(operand(mma, 1, 2, {16, 8}), 4, [](int i, int lane, int) {
    int group = lane >> 2, thread = lane % 4;
    return Place(i < 2 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8, group);
  });
  checkFragment(ttg::toLinearLayout({16, 8}, mma), 4, [](int i, int lane, int) {
    int group = lane >> 2, thread = lane % 4;
    return Place(i < 2 ? group : group + 8, thread * 2 + (i & 1));
  });
}

TEST_CASE("fragments of mma.m16n8k8 with tf32 operands") {
  Context context;
  auto mma = mma2(context);
  checkFragment(operand(mma, 0, 1, {16, 8}), 4, [](int i, int lane, int) {
    int group = lane >> 2, thread = lane % 4;
    return Place(i == 0 || i == 2 ? group : group + 8, i == 0 || i == 1 ? thread : thread + 4);
  });
  checkFragment(operand(mma, 1, 1, {8, 8}), 2, [](int i, int lane, int) {
    int group = lane >> 2, thread = lane % 4;
    return Place(i == 0 ? thread : thread + 4, group);
  });
}

TEST_CASE("fragments of mma.m16n8k32 with 8-bit operands") {
  Context context;
  auto mma = mma2(context);
  checkFragment(operand(mma, 0, 4, {16, 32}), 16, [](int i, int lane, int) {
    int group = lane >> 2, thread = lane % 4;
    int row = (i >= 0 && i < 4) || (i >= 8 && i < 12) ? group : group + 8;
    int column = i < 8 ? thread * 4 + (i & 3) : thread * 4 + (i & 3) + 16;
    return Place(row, column);
  });
  checkFragment(operand(mma, 1, 4, {32, 8}), 8, [](int i, int lane, int) {
    int group = lane >> 2, thread = lane % 4;
    return Place(i < 4 ? thread * 4 + (i & 3) : thread * 4 + (i & 3) + 16, group);
  });
}

TEST_CASE("fragments of mma.m16n8k4, k8 and k16 with f64 operands") {
  Context context;
  auto mma = mma2(context);
  checkFragment(operand(mma, 0, 1, {16, 4}), 2,
                [](int i, int lane, int) { return Place(i == 0 ? lane >> 2 : (lane >> 2) + 8, lane % 4); });
  checkFragment(operand(mma, 1, 1, {4, 8}), 1, [](int, int lane, int) { return Place(lane % 4, lane >> 2); });
  for (int k : {8, 16}) {
    checkFragment(operand(mma, 0, 1, {16, k}), k / 2, [](int i, int lane, int) {
      return Place(i % 2 == 0 ? lane >> 2 : (lane >> 2) + 8, i / 2 * 4 + lane % 4);
    });
    checkFragment(operand(mma, 1, 1, {k, 8}), k / 4,
                  [](int i, int lane, int) { return Place(i * 4 + lane % 4, lane >> 2); });
  }
  // Two neighbours along k: what a lane has of a row of accumulators.
  checkFragment(operand(mma, 0, 2, {16, 8}), 4,
                [](int i, int lane, int) { return Place(i < 2 ? lane >> 2 : (lane >> 2) + 8, lane % 4 * 2 + i % 2); });
}

TEST_CASE("fragments of wgmma: accumulators of 64 rows, A in registers") {
  Context context;
  for (int n : {8, 16, 64, 256}) {
    checkFragment(ttg::toLinearLayout({64, n}, mma3(context, n, 16)), n / 2, [](int i, int lane, int warp) {
      int row = 16 * warp + lane / 4 + 8 * (i / 2 % 2);
      int column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
      return Place(row, column);
    });
  }
  checkFragment(operand(mma3(context, 64, 16), 0, 2, {64, 16}), 8, [](int i, int lane, int warp) {
    int row = 16 * warp + lane / 4 + 8 * (i / 2 % 2);
    int column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
    return Place(row, column);
  });
  checkFragment(operand(mma3(context, 64, 8), 0, 1, {64, 8}), 4, [](int i, int lane, int warp) {
    return Place(16 * warp + lane / 4 + 8 * (i % 2), lane % 4 + 4 * (i / 2));
  });
  checkFragment(operand(mma3(context, 64, 32), 0, 4, {64, 32}), 16, [](int i, int lane, int warp) {
    return Place(16 * warp + lane / 4 + 8 * (i / 4 % 2), 16 * (i / 8) + 4 * (lane % 4) + i % 4);
  });
}

TEST_CASE("warps and repetitions of a matrix instruction") {
  Context context;
  // Two warps down, four across, columns first: warp 5 is the second row of warps, second column.
  LinearLayout c = ttg::toLinearLayout({128, 64}, mma2(context, 2, 4));
  CHECK(c.bases(HwDim::Warp) == ArrayRef<uint64_t>{8, 16, 16 * 64});
  CHECK(c.size(HwDim::Register) == 128 * 64 / 256);
  // Repetitions: columns (32 a step), then rows (32 a step).
  CHECK(c.bases(HwDim::Register) == ArrayRef<uint64_t>{1, 8 * 64, 32, 32 * 64, 64 * 64});
  // A lacks the columns' warps, B the rows'; k is repeated first.
  LinearLayout a = operand(mma2(context, 2, 4), 0, 2, {128, 64});
  CHECK(a.bases(HwDim::Warp) == ArrayRef<uint64_t>{0, 0, 16 * 64});
  CHECK(a.bases(HwDim::Register) == ArrayRef<uint64_t>{1, 8 * 64, 8, 16, 32, 32 * 64, 64 * 64});
  LinearLayout b = operand(mma2(context, 2, 4), 1, 2, {64, 128});
  CHECK(b.bases(HwDim::Warp) == ArrayRef<uint64_t>{8, 16, 0});
  CHECK(b.bases(HwDim::Register) == ArrayRef<uint64_t>{128, 8 * 128, 16 * 128, 32 * 128, 32, 64});
  // Warp groups: rows first.
  LinearLayout d = ttg::toLinearLayout({128, 128}, ttg::NvidiaMmaEncodingAttr::get(&context, 3, {4, 2}, {16, 64, 16}));
  CHECK(d.bases(HwDim::Warp) == ArrayRef<uint64_t>{16 * 128, 32 * 128, 64});
  // A batch dimension is the slowest in everything.
  auto batched = ttg::NvidiaMmaEncodingAttr::get(&context, 2, {2, 1, 2}, {1, 16, 8});
  LinearLayout e = ttg::toLinearLayout({4, 16, 16}, batched);
  CHECK(e.bases(HwDim::Warp) == ArrayRef<uint64_t>{8, 256});
  CHECK(e.bases(HwDim::Register) == ArrayRef<uint64_t>{1, 8 * 16, 512});
}

TEST_CASE("matrix layouts cover every shape, without copies in a lane") {
  Context context;
  auto check = [](const LinearLayout &layout) {
    CHECK(layout.isSurjective());
    CHECK(layout.numBits(HwDim::Lane) == 5);
    std::set<uint64_t> held;
    for (int64_t reg = 0; reg < layout.size(HwDim::Register); ++reg)
      held.insert(layout.apply({{HwDim::Register, reg}}));
    CHECK(held.size() == static_cast<size_t>(layout.size(HwDim::Register)));
  };
  for (int64_t m = 1; m <= 128; m *= 2)
    for (int64_t n = 1; n <= 128; n *= 2) {
      for (auto mma : {mma2(context, 2, 2), mma2(context, 4, 1), mma3(context, 32, 16, 8)}) {
        check(ttg::toLinearLayout({m, n}, mma));
        for (unsigned kWidth : {1, 2, 4}) {
          check(operand(mma, 0, kWidth, {m, n}));
          if (!mma.isWarpGroup())
            check(operand(mma, 1, kWidth, {m, n}));
        }
      }
    }
}

// ---- nvmma_shared ---------------------------------------------------------------------------------------------------

TEST_CASE("nvmma_shared permutes address bits as the hardware's swizzle does") {
  Context context;
  for (unsigned swizzle : {32u, 64u, 128u})
    for (unsigned bytes : {1u, 2u, 4u})
      for (bool transposed : {false, true}) {
        auto encoding = ttg::NvmmaSharedEncodingAttr::get(&context, swizzle, transposed, 8 * bytes);
        unsigned rows = 32, columns = 256 / bytes, width = swizzle / bytes;
        SmallVector<int64_t> shape{transposed ? columns : rows, transposed ? rows : columns};
        LinearLayout layout = ttg::toLinearLayout(shape, encoding);
        for (unsigned row = 0; row < rows; ++row)
          for (unsigned column = 0; column < columns; ++column) {
            unsigned address = (column / width * rows + row) * swizzle + column % width * bytes;
            unsigned mask = swizzle == 128 ? 7 : swizzle == 64 ? 3 : 1;
            address ^= (address >> 7 & mask) << 4;
            uint64_t flat = transposed ? column * rows + row : row * columns + column;
            CHECK(layout.apply({{HwDim::Offset, address / bytes}}) == flat);
          }
        CHECK(encoding.getAlignment() == 8 * swizzle);
        SmallVector<int32_t> swapped{1, 0};
        auto other = cast<ttg::NvmmaSharedEncodingAttr>(encoding.transpose(swapped));
        CHECK(ttg::toLinearLayout({shape[1], shape[0]}, other) == layout.transpose(swapped));
      }
  // The widest swizzle that fits.
  auto widest = [&](ArrayRef<int64_t> shape, ArrayRef<unsigned> order, unsigned bits) {
    return ttg::NvmmaSharedEncodingAttr::get(&context, shape, order, bits).getSwizzlingByteWidth();
  };
  CHECK(widest({128, 64}, {1, 0}, 16) == 128);
  CHECK(widest({128, 64}, {1, 0}, 8) == 64);
  CHECK(widest({16, 64}, {0, 1}, 16) == 32);
  CHECK(widest({64, 8}, {1, 0}, 16) == 0);
  CHECK(widest({4, 64}, {1, 0}, 16) == 0);
}

// ---- ldmatrix and stmatrix ------------------------------------------------------------------------------------------

namespace {

/// One byte of an element: what memory and registers hold here.
using Byte = std::pair<int64_t, unsigned>;
constexpr Byte nothing = {-1, 0};

std::vector<Byte> filledMemory(const LinearLayout &memory, unsigned bytes) {
  std::vector<Byte> content;
  for (int64_t offset = 0; offset < memory.size(HwDim::Offset); ++offset)
    for (unsigned byte = 0; byte < bytes; ++byte)
      content.push_back({memory.apply({{HwDim::Offset, offset}}), byte});
  return content;
}

/// For each byte of each lane's 32-bit registers, the address ldmatrix takes it from and stmatrix puts it to.
template <class F>
void forEachMatrixByte(const MatrixAccess &access, const MatrixAccess::Instruction &instruction, unsigned warp,
                       unsigned bytes, F body) {
  auto rowAddress = [&](unsigned matrix, unsigned row) { // given by lane 8 matrix + row
    uint64_t offset = access.rowOffset.apply({{HwDim::Lane, 8 * matrix + row}, {HwDim::Warp, warp}});
    return (offset ^ instruction.offset) * bytes;
  };
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned matrix = 0; matrix < access.count; ++matrix)
      for (unsigned half = 0; half < 2; ++half)
        for (unsigned byte = 0; byte < 2; ++byte) {
          unsigned row = access.transposed ? 2 * (lane % 4) + half : lane / 4;
          unsigned unit = access.transposed ? lane / 4 : 2 * (lane % 4) + half;
          CHECK(rowAddress(matrix, row) % 16 == 0);
          body(lane, 4 * matrix + 2 * half + byte, rowAddress(matrix, row) + 2 * unit + byte);
        }
}

/// The most rows of a matrix that share a bank, over all matrices of the first instruction.
unsigned countConflicts(const MatrixAccess &access, unsigned bytes) {
  unsigned worst = 0;
  for (unsigned matrix = 0; matrix < access.count; ++matrix) {
    std::map<unsigned, std::set<unsigned>> wordsOfBank;
    for (unsigned row = 0; row < 8; ++row)
      for (unsigned word = 0; word < 4; ++word) {
        unsigned address = access.rowOffset.apply({{HwDim::Lane, 8 * matrix + row}}) * bytes / 4 + word;
        wordsOfBank[address % 32].insert(address);
      }
    for (auto &[bank, words] : wordsOfBank)
      worst = std::max<unsigned>(worst, words.size());
  }
  return worst;
}

/// Loads and stores by the plan and looks at what arrives.
void checkMatrixPlan(const LinearLayout &layout, const LinearLayout &memory, unsigned bytes) {
  auto load = planMatrixLoad(layout, memory, bytes), store = planMatrixStore(layout, memory, bytes);
  REQUIRE(load);
  REQUIRE(store);
  LinearLayout placed = layout.within(memory.shape());
  std::vector<Byte> content = filledMemory(memory, bytes), written(content.size(), nothing);
  std::set<unsigned> covered;
  for (auto &instruction : load->instructions) {
    REQUIRE(instruction.registers.size() == load->count * 4 / bytes);
    covered.insert(instruction.registers.begin(), instruction.registers.end());
  }
  CHECK(covered.size() == static_cast<size_t>(layout.size(HwDim::Register)));
  for (unsigned warp = 0; warp < layout.size(HwDim::Warp); ++warp) {
    for (auto &instruction : load->instructions)
      forEachMatrixByte(*load, instruction, warp, bytes, [&](unsigned lane, unsigned i, uint64_t address) {
        unsigned reg = instruction.registers[i / bytes];
        int64_t wanted = placed.apply({{HwDim::Register, reg}, {HwDim::Lane, lane}, {HwDim::Warp, warp}});
        REQUIRE(address < content.size());
        CHECK(content[address] == Byte(wanted, i % bytes));
      });
    for (auto &instruction : store->instructions)
      forEachMatrixByte(*store, instruction, warp, bytes, [&](unsigned lane, unsigned i, uint64_t address) {
        unsigned reg = instruction.registers[i / bytes];
        written[address] = {placed.apply({{HwDim::Register, reg}, {HwDim::Lane, lane}, {HwDim::Warp, warp}}),
                            i % bytes};
      });
  }
  for (auto [have, want] : llvm::zip(written, content)) // a smaller tile leaves the rest alone
    CHECK((have == nothing || have == want));
  CHECK(bankConflicts(*load, bytes) == countConflicts(*load, bytes));
}

} // namespace

TEST_CASE("operands of mma.sync are read by ldmatrix without bank conflicts, with the swizzle chosen") {
  Context context;
  auto mma = mma2(context, 2, 2);
  for (unsigned bytes : {1u, 2u, 4u})
    for (unsigned opIdx : {0u, 1u})
      for (bool kContiguous : {true, false})
        for (int64_t k = 32 / bytes; k <= 128; k *= 2)
          for (int64_t other = 16; other <= 128; other *= 2) {
            CAPTURE(bytes);
            CAPTURE(opIdx);
            CAPTURE(kContiguous);
            CAPTURE(k);
            CAPTURE(other);
            SmallVector<int64_t> shape = opIdx == 0 ? SmallVector<int64_t>{other, k} : SmallVector<int64_t>{k, other};
            SmallVector<unsigned> order =
                (opIdx == 0) == kContiguous ? SmallVector<unsigned>{1, 0} : SmallVector<unsigned>{0, 1};
            auto type = RankedTensorType::get(shape, integer(context, bytes),
                                              ttg::DotOperandEncodingAttr::get(&context, opIdx, mma, 4 / bytes));
            auto encoding = ttg::chooseSwizzle(type, order, /*matrixLoad=*/true);
            LinearLayout layout = ttg::toLinearLayout(type), memory = ttg::toLinearLayout(shape, encoding);
            auto plan = planMatrixLoad(layout, memory, bytes);
            REQUIRE(plan.has_value() == (kContiguous || bytes == 2)); // only 16-bit elements are transposed
            if (plan) {
              CHECK(plan->transposed == !kContiguous);
              CHECK(bankConflicts(*plan, bytes) == 1);
              CHECK(plan->count == std::min<int64_t>(4, layout.size(HwDim::Register) * bytes / 4));
            } else {
              // One element an access, one wavefront an access; two where rows are too short to permute.
              unsigned wavefronts = sharedLoadWavefronts(layout, memory, bytes, true);
              CHECK(wavefronts == layout.size(HwDim::Register) * (shape[order[0]] * bytes < 64 ? 2 : 1));
            }
            if (plan && k * other <= 2048)
              checkMatrixPlan(layout, memory, bytes);
          }
}

TEST_CASE("the swizzle chosen is the usual one") {
  Context context;
  auto chosen = [&](ArrayRef<int64_t> shape, unsigned opIdx, unsigned bytes, ArrayRef<unsigned> order) {
    auto type =
        RankedTensorType::get(shape, integer(context, bytes),
                              ttg::DotOperandEncodingAttr::get(&context, opIdx, mma2(context, 2, 2), 4 / bytes));
    auto encoding = ttg::chooseSwizzle(type, order, true);
    return std::tuple(encoding.getVec(), encoding.getPerPhase(), encoding.getMaxPhase());
  };
  CHECK(chosen({128, 32}, 0, 2, {1, 0}) == std::tuple(8u, 2u, 4u));
  CHECK(chosen({32, 128}, 1, 2, {1, 0}) == std::tuple(8u, 1u, 8u));
  CHECK(chosen({128, 64}, 0, 2, {1, 0}) == std::tuple(8u, 1u, 8u));
  CHECK(chosen({64, 32}, 0, 4, {1, 0}) == std::tuple(4u, 1u, 8u));
  CHECK(chosen({128, 64}, 0, 1, {1, 0}) == std::tuple(16u, 2u, 4u));
}

TEST_CASE("a part of a buffer is read by ldmatrix as the whole is") {
  Context context;
  auto mma = mma2(context, 2, 2);
  LinearLayout memory =
      ttg::toLinearLayout({64, 64}, ttg::SwizzledSharedEncodingAttr::get(&context, 8, 1, 8, ArrayRef<unsigned>{1, 0}));
  checkMatrixPlan(operand(mma, 0, 2, {64, 16}), memory, 2);
  checkMatrixPlan(operand(mma, 1, 2, {16, 64}), memory, 2);
  // Accumulators stored by stmatrix, to swizzled memory and to what wgmma reads.
  checkMatrixPlan(ttg::toLinearLayout({64, 64}, mma), memory, 2);
  for (bool transposed : {false, true})
    checkMatrixPlan(ttg::toLinearLayout({64, 64}, mma3(context, 64, 16)),
                    ttg::toLinearLayout({64, 64}, ttg::NvmmaSharedEncodingAttr::get(&context, 128, transposed, 16)), 2);
}

TEST_CASE("conversions from matrix layouts store by stmatrix") {
  Context context;
  auto rows = ttg::BlockedEncodingAttr::get(&context, {1, 8}, {4, 8}, {4, 1}, {1, 0});
  auto columns = ttg::BlockedEncodingAttr::get(&context, {8, 1}, {8, 4}, {1, 4}, {0, 1});
  SmallVector<int64_t> shape{64, 64};
  unsigned planned = 0, inPasses = 0;
  for (auto blocked : {rows, columns})
    for (auto mma : {mma2(context, 2, 2), mma3(context, 64, 16)})
      for (unsigned bytes : {1u, 2u, 4u, 8u})
        for (uint64_t limit : {UINT64_MAX, uint64_t(64 * 32 * bytes), uint64_t(64 * 16 * bytes)}) {
          ConversionPlan plan = planThroughShared(ttg::toLinearLayout(shape, mma), ttg::toLinearLayout(shape, blocked),
                                                  bytes, {}, {limit, limit});
          for (unsigned pass = 0; pass < plan.passes(); ++pass) {
            auto access = plan.matrixStores(pass, bytes);
            if (!access)
              continue;
            ++planned;
            inPasses += plan.passes() > 1;
            std::set<unsigned> expected, covered;
            for (const ConversionPlan::Access &one : plan.stores(pass))
              expected.insert(one.registers.begin(), one.registers.end());
            for (unsigned warp = 0; warp < 4; ++warp)
              for (const MatrixAccess::Instruction &instruction : access->instructions) {
                covered.insert(instruction.registers.begin(), instruction.registers.end());
                forEachMatrixByte(*access, instruction, warp, bytes, [&](unsigned lane, unsigned i, uint64_t address) {
                  uint64_t offset = plan.store.apply(
                      {{HwDim::Register, instruction.registers[i / bytes]}, {HwDim::Lane, lane}, {HwDim::Warp, warp}});
                  CHECK(address == offset * bytes + i % bytes);
                });
              }
            CHECK(covered == expected);
            CHECK(bankConflicts(*access, bytes) <= 2); // the memory was chosen for other accesses
          }
        }
  CHECK(planned > inPasses);
  CHECK(inPasses > 0);
  // The common one: half-precision results on their way to wide stores.
  auto common =
      planThroughShared(ttg::toLinearLayout(shape, mma3(context, 64, 16)), ttg::toLinearLayout(shape, rows), 2)
          .matrixStores(0, 2);
  REQUIRE(common);
  CHECK(common->count == 4);
  CHECK(bankConflicts(*common, 2) == 1);
}

TEST_CASE("half-precision results on their way to wide accesses are stored by stmatrix") {
  Context context;
  SharedMemoryModel hopper;
  hopper.matrixStores = true;
  for (unsigned m : {64u, 128u, 256u})
    for (unsigned n : {16u, 32u, 64u, 128u, 256u})
      for (unsigned warps : {4u, 8u})
        for (bool rows : {true, false})
          for (uint64_t limit : {UINT64_MAX, uint64_t(32768)}) {
            if (m < 16 * warps)
              continue;
            SmallVector<int64_t> shape{m, n};
            LinearLayout src = ttg::toLinearLayout(shape, mma3(context, n, 16, warps));
            unsigned fastest = rows ? n : m, along = std::min(32u, fastest / 8), down = 32 / along;
            auto wide = rows ? ttg::BlockedEncodingAttr::get(&context, {1, 8}, {down, along}, {warps, 1}, {1, 0})
                             : ttg::BlockedEncodingAttr::get(&context, {8, 1}, {along, down}, {1, warps}, {0, 1});
            LinearLayout dst = ttg::toLinearLayout(shape, wide);
            if (dst.without(HwDim::Register).freeMask(HwDim::Lane) || dst.freeMask(HwDim::Warp))
              continue;
            CAPTURE(m);
            CAPTURE(n);
            CAPTURE(warps);
            CAPTURE(rows);
            ConversionPlan plan = planThroughShared(src, dst, 2, hopper, {limit, limit});
            CHECK(plan.vecLoad == 8);
            for (unsigned pass = 0; pass < plan.passes(); ++pass) {
              auto access = plan.matrixStores(pass, 2);
              REQUIRE(access);
              CHECK(access->transposed == !rows);
              CHECK(access->count == 4);
              CHECK(bankConflicts(*access, 2) == 1);
              CHECK(countConflicts(*access, 2) == 1);
              CHECK(access->instructions.size() * 4 * 2 == src.size(HwDim::Register) / plan.passes());
              CHECK(access->instructions.size() < plan.stores(pass).size());
            }
            CHECK(bankConflicts(dst, plan.memory, 8, 2) == 1);
          }
}

TEST_CASE("what is not made of ldmatrix's rows is refused") {
  Context context;
  auto swizzled = [&](unsigned vec, unsigned perPhase, unsigned maxPhase, ArrayRef<unsigned> order) {
    return ttg::toLinearLayout({64, 64},
                               ttg::SwizzledSharedEncodingAttr::get(&context, vec, perPhase, maxPhase, order));
  };
  LinearLayout a = operand(mma2(context), 0, 2, {64, 64}), rows = swizzled(1, 1, 1, {1, 0});
  CHECK(planMatrixLoad(a, rows, 2));
  CHECK(planMatrixLoad(a, rows, 4) == std::nullopt); // of 32-bit elements a lane holds single ones
  CHECK(planMatrixLoad(a, rows, 8) == std::nullopt);
  CHECK(planMatrixLoad(a, swizzled(4, 1, 8, {1, 0}), 2) == std::nullopt); // rows of 8 bytes
  CHECK(planMatrixLoad(operand(mma2(context), 0, 4, {64, 64}), swizzled(1, 1, 1, {0, 1}), 1) == std::nullopt);
  CHECK(planMatrixLoad(a, swizzled(1, 1, 1, {0, 1}), 2)->transposed);
  // One row of a buffer whose rows move by 8 bytes: a part may start in the middle of 16.
  CHECK(planMatrixLoad(operand(mma2(context), 0, 2, {1, 64}), swizzled(4, 1, 8, {1, 0}), 2) == std::nullopt);
  auto blocked = ttg::BlockedEncodingAttr::get(&context, {1, 8}, {4, 8}, {4, 1}, {1, 0});
  CHECK(planMatrixLoad(ttg::toLinearLayout({64, 64}, blocked), rows, 2) == std::nullopt);
}

// ---- wgmma ----------------------------------------------------------------------------------------------------------

namespace {

/// Where wgmma looks for element (mn, k) of an operand, by the canonical layouts of the PTX ISA.
uint64_t wgmmaAddress(const WarpGroupOperand &operand, uint64_t start, unsigned mn, unsigned k, unsigned bytes) {
  unsigned width = operand.swizzleBytes;
  uint64_t leading = operand.leadingBytes, stride = operand.strideBytes;
  if (width == 0) { // core matrices of 8 rows of 16 bytes, one row after the other
    if (!operand.transposed)
      return start + mn % 8 * 16 + mn / 8 * stride + k * bytes / 16 * leading + k * bytes % 16;
    return start + k % 8 * 16 + k / 8 * leading + mn * bytes / 16 * stride + mn * bytes % 16;
  }
  uint64_t address = operand.transposed
                         ? start + k % 8 * width + k / 8 * stride + mn * bytes / width * leading + mn * bytes % width
                         : start + mn % 8 * width + mn / 8 * stride + k * bytes;
  unsigned mask = width == 128 ? 7 : width == 64 ? 3 : 1;
  return address ^ (address >> 7 & mask) << 4;
}

/// Every element of every instruction's operand is where wgmma looks for it.
void checkWgmma(const LinearLayout &memory, unsigned kDim, unsigned extent, unsigned bytes) {
  auto operand = planWarpGroupOperand(memory, kDim, extent, bytes);
  REQUIRE(operand);
  unsigned kElements = 32 / bytes;
  for (unsigned k0 = 0; k0 < memory.shape()[kDim]; k0 += kElements)
    for (unsigned m0 = 0; m0 < memory.shape()[1 - kDim]; m0 += extent) {
      auto coords = [&](unsigned mn, unsigned k) {
        SmallVector<int64_t> at(2);
        at[kDim] = k;
        at[1 - kDim] = mn;
        return at;
      };
      uint64_t start = operand->startBytes(coords(m0, k0));
      CHECK(start % 16 == 0);
      for (unsigned mn = 0; mn < extent; ++mn)
        for (unsigned k = 0; k < kElements; ++k) {
          uint64_t address = wgmmaAddress(*operand, start, mn, k, bytes);
          REQUIRE(address / bytes < static_cast<uint64_t>(memory.size(HwDim::Offset)));
          CHECK(memory.apply({{HwDim::Offset, address / bytes}}) == memory.flat(coords(m0 + mn, k0 + k)));
        }
    }
}

} // namespace

TEST_CASE("wgmma finds its operands in nvmma_shared buffers") {
  Context context;
  for (unsigned bytes : {1u, 2u, 4u})
    for (bool transposed : {false, true})
      for (int64_t rows : {16, 64, 128})
        for (int64_t columns : {16, 32, 64, 128}) {
          SmallVector<int64_t> shape{rows, columns};
          auto encoding = ttg::NvmmaSharedEncodingAttr::get(
              &context, shape, transposed ? ArrayRef<unsigned>{0, 1} : ArrayRef<unsigned>{1, 0}, 8 * bytes);
          LinearLayout memory = ttg::toLinearLayout(shape, encoding);
          for (unsigned kDim : {0u, 1u}) {
            bool kContiguous = kDim == encoding.getContiguousDim();
            if (shape[kDim] * bytes < 32 || (!kContiguous && bytes != 2) || encoding.getSwizzlingByteWidth() == 0)
              continue;
            for (unsigned extent : {8u, 16u, 64u, 128u})
              if (extent <= shape[1 - kDim]) {
                CAPTURE(bytes);
                CAPTURE(rows);
                CAPTURE(columns);
                CAPTURE(extent);
                checkWgmma(memory, kDim, extent, bytes);
                auto operand = planWarpGroupOperand(memory, kDim, extent, bytes);
                CHECK(operand->swizzleBytes == encoding.getSwizzlingByteWidth());
                CHECK(operand->transposed == !kContiguous);
              }
          }
        }
}

TEST_CASE("strides of wgmma descriptors as the ISA's examples have them") {
  Context context;
  auto plan = [&](ArrayRef<int64_t> shape, unsigned swizzle, bool transposed, unsigned kDim, unsigned extent) {
    auto encoding = ttg::NvmmaSharedEncodingAttr::get(&context, swizzle, transposed, 16);
    return *planWarpGroupOperand(ttg::toLinearLayout(shape, encoding), kDim, extent, 2);
  };
  // K-major, 128 bytes: eight rows are 1024 bytes; steps of k are 32 bytes, and the next block is all rows away.
  WarpGroupOperand a = plan({128, 128}, 128, false, 1, 64);
  CHECK(a.strideBytes == 1024);
  CHECK(a.startBytes({0, 16}) == 32);
  CHECK(a.startBytes({0, 48}) == 96);
  CHECK(a.startBytes({0, 64}) == 128 * 128);
  CHECK(a.startBytes({64, 0}) == 64 * 128);
  // MN-major, 64x256 (K x N): blocks of 64 columns are 64 rows of 128 bytes; eight rows of k are 1024 bytes.
  WarpGroupOperand b = plan({64, 256}, 128, false, 0, 256);
  CHECK(b.transposed);
  CHECK(b.leadingBytes == 64 * 128);
  CHECK(b.strideBytes == 1024);
  CHECK(b.startBytes({16, 0}) == 16 * 128);
}

TEST_CASE("wgmma without swizzle: core matrices one after the other") {
  // 16-byte columns of 64 rows each: K-major with 1024 bytes between units along k, 128 between groups of rows.
  LinearLayout unit({1, 8}, {{HwDim::Offset, {1, 2, 4}}}), rows({64, 1}, {{HwDim::Offset, {1, 2, 4, 8, 16, 32}}}),
      columns({1, 4}, {{HwDim::Offset, {1, 2}}});
  LinearLayout memory = unit.times(rows).times(columns);
  checkWgmma(memory, 1, 64, 2);
  auto operand = planWarpGroupOperand(memory, 1, 64, 2);
  CHECK(operand->swizzleBytes == 0);
  CHECK(operand->leadingBytes == 64 * 16);
  CHECK(operand->strideBytes == 128);
  // The same memory read along the rows: B of N = 8 … 32 columns.
  for (unsigned n : {8u, 16u, 32u})
    checkWgmma(memory, 0, n, 2);
}

TEST_CASE("what wgmma cannot read is refused") {
  Context context;
  auto swizzled = [&](unsigned vec, unsigned perPhase, unsigned maxPhase) {
    return ttg::toLinearLayout(
        {64, 64}, ttg::SwizzledSharedEncodingAttr::get(&context, vec, perPhase, maxPhase, ArrayRef<unsigned>{1, 0}));
  };
  CHECK(planWarpGroupOperand(swizzled(8, 1, 8), 1, 64, 2)); // the same memory as nvmma_shared's
  CHECK(planWarpGroupOperand(swizzled(1, 1, 1), 1, 64, 2) == std::nullopt);
  CHECK(planWarpGroupOperand(swizzled(8, 1, 4), 1, 64, 2) == std::nullopt);
  CHECK(planWarpGroupOperand(swizzled(4, 1, 8), 1, 64, 2) == std::nullopt);
  LinearLayout memory = ttg::toLinearLayout({64, 64}, ttg::NvmmaSharedEncodingAttr::get(&context, 64, false, 8));
  CHECK(planWarpGroupOperand(memory, 1, 64, 1));
  CHECK(planWarpGroupOperand(memory, 0, 64, 1) == std::nullopt); // only 16-bit types are transposed
  CHECK(planWarpGroupOperand(memory, 1, 128, 1) == std::nullopt);
  CHECK(planWarpGroupOperand(memory, 1, 64, 8) == std::nullopt);
  CHECK(planWarpGroupOperand(memory, 2, 64, 1) == std::nullopt);
}
