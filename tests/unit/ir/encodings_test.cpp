// Encodings: the linear layout of each against its definition, and the encodings inferred for results of shape
// operations.
#include "context.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include <doctest/doctest.h>

#include <random>
#include <set>

using namespace mlir;
using namespace tessera;

namespace {

Attribute parse(MLIRContext &context, const std::string &text) { return parseAttribute("#ttg." + text, &context); }

RankedTensorType tensor(ArrayRef<int64_t> shape, Attribute encoding) {
  return RankedTensorType::get(shape, Float32Type::get(encoding.getContext()), encoding);
}

/// Every (register, lane, warp) with the element it holds.
template <typename F> void forEachPosition(const LinearLayout &layout, F &&body) {
  for (int64_t warp = 0; warp < layout.size(HwDim::Warp); ++warp)
    for (int64_t lane = 0; lane < layout.size(HwDim::Lane); ++lane)
      for (int64_t reg = 0; reg < layout.size(HwDim::Register); ++reg)
        body(reg, lane, warp, layout.apply({{HwDim::Register, reg}, {HwDim::Lane, lane}, {HwDim::Warp, warp}}));
}

unsigned power(std::mt19937 &random, unsigned most) { return 1u << random() % (most + 1); }

/// A blocked encoding with 32 lanes and 4 warps, at random.
ttg::BlockedEncodingAttr randomBlocked(MLIRContext &context, std::mt19937 &random, unsigned rank) {
  SmallVector<unsigned> size(rank), lanes(rank, 1), warps(rank, 1), order(rank);
  for (unsigned i = 0; i < rank; ++i) {
    size[i] = power(random, 2);
    order[i] = i;
  }
  for (unsigned i = 0; i < 5; ++i)
    lanes[random() % rank] *= 2;
  for (unsigned i = 0; i < 2; ++i)
    warps[random() % rank] *= 2;
  std::shuffle(order.begin(), order.end(), random);
  return ttg::BlockedEncodingAttr::get(&context, size, lanes, warps, order);
}

SmallVector<int64_t> randomShape(std::mt19937 &random, unsigned rank, unsigned most = 6) {
  SmallVector<int64_t> shape(rank);
  for (int64_t &size : shape)
    size = power(random, most);
  return shape;
}

} // namespace

TEST_CASE("a blocked layout puts blocks of a lane's registers side by side") {
  Context context;
  Attribute encoding = parse(
      context, "blocked<{sizePerThread = [2, 4], threadsPerWarp = [8, 4], warpsPerCTA = [2, 2], order = [1, 0]}>");
  REQUIRE(encoding);
  LinearLayout layout = ttg::toLinearLayout({64, 64}, encoding);
  // 2x4 per lane, 16x16 per warp, 32x32 per repetition, so 2x2 repetitions, columns first.
  CHECK(layout.size(HwDim::Register) == 32);
  forEachPosition(layout, [&](int64_t reg, int64_t lane, int64_t warp, uint64_t element) {
    int64_t row = reg / 4 % 2 + lane / 4 * 2 + warp / 2 * 16 + reg / 16 * 32;
    int64_t column = reg % 4 + lane % 4 * 4 + warp % 2 * 16 + reg / 8 % 2 * 32;
    CHECK(element == static_cast<uint64_t>(row * 64 + column));
  });
}

TEST_CASE("a tensor smaller than the lanes is held in copies, never twice in a lane") {
  Context context;
  Attribute encoding =
      parse(context, "blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>");
  LinearLayout layout = ttg::toLinearLayout({16}, encoding);
  CHECK(layout.numBits(HwDim::Register) == 2);
  CHECK(layout.bases(HwDim::Lane) == ArrayRef<uint64_t>{4, 8, 0, 0, 0});
  CHECK(layout.bases(HwDim::Warp) == ArrayRef<uint64_t>{0, 0});
  CHECK(layout.has(HwDim::Block));
  CHECK(ttg::toLinearLayout({2}, encoding).numBits(HwDim::Register) == 1);
  CHECK(ttg::toLinearLayout({1}, encoding).numBits(HwDim::Register) == 0);
}

TEST_CASE("every blocked layout covers every shape, without copies in a lane") {
  Context context;
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    unsigned rank = 1 + random() % 3;
    auto encoding = randomBlocked(context, random, rank);
    LinearLayout layout = ttg::toLinearLayout(randomShape(random, rank), encoding);
    CHECK(layout.isSurjective());
    CHECK(layout.numBits(HwDim::Lane) == 5);
    CHECK(layout.numBits(HwDim::Warp) == 2);
    std::set<uint64_t> held;
    for (int64_t reg = 0; reg < layout.size(HwDim::Register); ++reg)
      held.insert(layout.apply({{HwDim::Register, reg}}));
    CHECK(held.size() == static_cast<size_t>(layout.size(HwDim::Register)));
  }
}

TEST_CASE("a slice holds the parent's elements with one coordinate left out") {
  Context context;
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    unsigned rank = 2 + random() % 2, dim = random() % rank;
    auto parent = randomBlocked(context, random, rank);
    SmallVector<int64_t> shape = randomShape(random, rank, 4);
    LinearLayout whole = ttg::toLinearLayout(shape, parent);
    SmallVector<int64_t> sliced(shape);
    sliced.erase(sliced.begin() + dim);
    LinearLayout layout = ttg::toLinearLayout(sliced, ttg::SliceEncodingAttr::get(&context, dim, parent));
    // Each lane holds just what it holds of the parent.
    for (int64_t lane = 0; lane < 32; ++lane) {
      std::set<SmallVector<int64_t>> expected, held;
      for (int64_t reg = 0; reg < whole.size(HwDim::Register); ++reg) {
        auto at = whole.coords(whole.apply({{HwDim::Register, reg}, {HwDim::Lane, lane}, {HwDim::Warp, 3}}));
        at.erase(at.begin() + dim);
        expected.insert(at);
      }
      for (int64_t reg = 0; reg < layout.size(HwDim::Register); ++reg)
        held.insert(layout.coords(layout.apply({{HwDim::Register, reg}, {HwDim::Lane, lane}, {HwDim::Warp, 3}})));
      CHECK(held == expected);
    }
  }
}

TEST_CASE("layouts of a cluster give each program its part") {
  Context context;
  Attribute encoding =
      parse(context,
            "blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1]]}>");
  REQUIRE(encoding);
  LinearLayout layout = ttg::toLinearLayout({512}, encoding);
  CHECK(layout.bases(HwDim::Block) == ArrayRef<uint64_t>{256});
  CHECK(layout.bases(HwDim::Register) == ArrayRef<uint64_t>{128});
  CHECK(layout.isSurjective());
}

TEST_CASE("swizzled memory follows its formula") {
  Context context;
  for (auto [vec, perPhase, maxPhase] : {std::tuple{4u, 1u, 8u}, {8u, 2u, 4u}, {1u, 1u, 1u}, {2u, 4u, 16u}}) {
    auto encoding = ttg::SwizzledSharedEncodingAttr::get(&context, vec, perPhase, maxPhase, ArrayRef<unsigned>{1, 0});
    LinearLayout layout = ttg::toLinearLayout({32, 64}, encoding);
    for (unsigned row = 0; row < 32; ++row)
      for (unsigned column = 0; column < 64; ++column) {
        unsigned group = (column / vec) ^ ((row / perPhase) % maxPhase);
        unsigned offset = row * 64 + (group * vec) % 64 + column % vec;
        CHECK(layout.apply({{HwDim::Offset, offset}}) == row * 64 + column);
      }
  }
}

TEST_CASE("padded memory") {
  Context context;
  auto encoding = dyn_cast_or_null<ttg::PaddedSharedEncodingAttr>(
      parse(context, "padded_shared<[4:+2, 16:+1] {order = [0, 1], shape = [8, 4]}>"));
  REQUIRE(encoding);
  CHECK(encoding.paddedOffset(3) == 3);
  CHECK(encoding.paddedOffset(4) == 6);
  CHECK(encoding.paddedOffset(17) == 17 + 4 * 2 + 1);
  LinearLayout layout = ttg::toLinearLayout({8, 4}, encoding);
  CHECK(layout.apply({{HwDim::Offset, 8 + 3}}) == 3 * 4 + 1); // column 1, row 3
}

TEST_CASE("a layout keeps its meaning when it is named again") {
  Context context;
  std::mt19937 random(3);
  unsigned named = 0;
  for (int i = 0; i < 300; ++i) {
    unsigned rank = 1 + random() % 3;
    auto shape = randomShape(random, rank);
    LinearLayout layout = ttg::toLinearLayout(shape, randomBlocked(context, random, rank));
    Attribute again = ttg::encodingOf(&context, layout);
    CHECK(ttg::toLinearLayout(shape, again) == layout);
    named += isa<ttg::BlockedEncodingAttr>(again);
    // The linear form says the same, and prints and parses as itself.
    auto linear = ttg::LinearEncodingAttr::get(&context, layout);
    CHECK(ttg::areEquivalent(shape, linear, again));
    std::string text;
    llvm::raw_string_ostream(text) << Attribute(linear);
    CHECK(parseAttribute(text, &context) == linear);
  }
  CHECK(named > 10); // those whose lanes all hold something of their own
}

TEST_CASE("encodings of results hold the elements where the operation leaves them") {
  Context context;
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) {
    unsigned rank = 1 + random() % 3;
    auto shape = randomShape(random, rank, 5);
    RankedTensorType src = tensor(shape, randomBlocked(context, random, rank));
    LinearLayout from = ttg::toLinearLayout(src);

    unsigned axis = random() % (rank + 1);
    SmallVector<int64_t> expanded(shape);
    expanded.insert(expanded.begin() + axis, 1);
    auto expand = ttg::inferExpandDims(src, axis);
    REQUIRE(succeeded(expand));
    CHECK(ttg::toLinearLayout(expanded, *expand) == from.expandDims(axis));

    SmallVector<int32_t> order;
    for (unsigned dim = 0; dim < rank; ++dim)
      order.push_back(dim);
    std::shuffle(order.begin(), order.end(), random);
    SmallVector<int64_t> transposed;
    for (int32_t dim : order)
      transposed.push_back(shape[dim]);
    auto trans = ttg::inferTrans(src, order);
    REQUIRE(succeeded(trans));
    CHECK(isa<ttg::BlockedEncodingAttr>(*trans));
    CHECK(ttg::toLinearLayout(transposed, *trans) == from.transpose(order));

    auto reshape = ttg::inferReshape(src, src.getNumElements());
    REQUIRE(succeeded(reshape));
    CHECK(ttg::toLinearLayout({src.getNumElements()}, *reshape) == from.reshape({src.getNumElements()}));

    // Split undoes join.
    auto join = ttg::inferJoin(src);
    REQUIRE(succeeded(join));
    SmallVector<int64_t> joined(shape);
    joined.push_back(2);
    auto split = ttg::inferSplit(tensor(joined, *join));
    REQUIRE(succeeded(split));
    CHECK(ttg::areEquivalent(shape, *split, src.getEncoding()));

    auto cat = ttg::inferCat(src);
    REQUIRE(succeeded(cat));
    SmallVector<int64_t> doubled(shape);
    doubled[0] *= 2;
    CHECK(ttg::toLinearLayout(doubled, *cat).numBits(HwDim::Register) == from.numBits(HwDim::Register) + 1);
  }
}

TEST_CASE("expand_dims of a slice gives back the parent; reduce gives the slice") {
  Context context;
  std::mt19937 random(5);
  auto parent = randomBlocked(context, random, 2);
  auto slice = ttg::SliceEncodingAttr::get(&context, 1, parent);
  CHECK(*ttg::inferExpandDims(tensor({16}, slice), 1) == parent);
  CHECK(*ttg::inferExpandDims(tensor({16}, slice), 0) != parent);
  CHECK(*ttg::inferReduce(tensor({16, 8}, parent), 1) == slice);
}
