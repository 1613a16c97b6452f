// LinearLayout against brute force: every operation is compared, position by position, with what it means for
// coordinates.
#include "random_layout.h"
#include "tessera/ir/LinearLayout.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

#include <doctest/doctest.h>

using namespace tessera;
using namespace tessera::testing;
using Shape = llvm::SmallVector<int64_t>;

namespace {

constexpr HwDim hardware[] = {HwDim::Register, HwDim::Lane, HwDim::Warp, HwDim::Block};

LinearLayout sample(llvm::ArrayRef<int64_t> shape) {
  return randomLayout(shape, {.lanes = 3, .warps = 1, .blocks = 1, .copies = 2, .mixed = below(2) == 0});
}

/// Calls visit(position) for every position of the layout.
template <class F> void forEachPosition(const LinearLayout &layout, F visit) {
  for (int64_t b = 0; b < layout.size(HwDim::Block); ++b)
    for (int64_t w = 0; w < layout.size(HwDim::Warp); ++w)
      for (int64_t l = 0; l < layout.size(HwDim::Lane); ++l)
        for (int64_t r = 0; r < layout.size(HwDim::Register); ++r)
          visit(llvm::SmallVector<std::pair<HwDim, uint64_t>>{
              {HwDim::Register, r}, {HwDim::Lane, l}, {HwDim::Warp, w}, {HwDim::Block, b}});
}

/// Checks that the element at every position of `layout` is, in `result`, the element with coordinates f(coordinates).
template <class F> void checkMapped(const LinearLayout &layout, const LinearLayout &result, F f) {
  INFO(layout.str(), " and ", result.str());
  bool same = true;
  forEachPosition(layout, [&](auto position) {
    same &= result.coords(result.apply(position)) == f(layout.coords(layout.apply(position)));
  });
  CHECK(same);
}

} // namespace

TEST_CASE("flat indices are row-major") {
  LinearLayout layout({4, 2, 8}, {});
  CHECK(layout.numElements() == 64);
  CHECK(layout.numOutBits() == 6);
  CHECK(layout.flat({3, 1, 5}) == 3 * 16 + 8 + 5);
  for (int64_t i = 0; i < 64; ++i)
    CHECK(layout.flat(layout.coords(i)) == uint64_t(i));
  CHECK(LinearLayout({}, {}).numElements() == 1);
}

TEST_CASE("positions are linear combinations of bases") {
  LinearLayout layout({16, 16}, {{HwDim::Register, {1, 2}}, {HwDim::Lane, {4, 8, 16 + 1, 32 + 2}}, {HwDim::Warp, {0}}});
  CHECK(layout.apply({{HwDim::Register, 3}, {HwDim::Lane, 4}}) == (16 ^ 1 ^ 3));
  CHECK(layout.coords(layout.apply({{HwDim::Register, 3}, {HwDim::Lane, 4}})) == Shape{1, 2});
  CHECK(layout.size(HwDim::Lane) == 16);
  CHECK(layout.size(HwDim::Block) == 1);
  CHECK_FALSE(layout.has(HwDim::Block));
  CHECK(layout.freeMask(HwDim::Warp) == 1);
  CHECK_FALSE(layout.isInjective());
  CHECK_FALSE(layout.isSurjective());
  CHECK(layout.numConsecutiveRegisters() == 4);
  CHECK(layout.str() == "register = [1, 2], lane = [4, 8, 17, 34], warp = [0] -> [16, 16]");
  CHECK(LinearLayout::identity({4, 4}, HwDim::Offset).str() == "offset = [1, 2, 4, 8] -> [4, 4]");
}

TEST_CASE("free bits are those that reach nothing new") {
  for (unsigned round = 0; round < 50; ++round) {
    LinearLayout layout = sample({8, 16});
    std::set<uint64_t> all, withoutFree;
    uint64_t positions = 0;
    forEachPosition(layout, [&](auto position) {
      bool free = llvm::any_of(position, [&](auto p) { return (p.second & layout.freeMask(p.first)) != 0; });
      all.insert(layout.apply(position));
      positions += !free;
      if (!free)
        withoutFree.insert(layout.apply(position));
    });
    CHECK(all == withoutFree);
    CHECK(positions == all.size());
    CHECK(layout.isSurjective() == (int64_t(all.size()) == layout.numElements()));
  }
}

TEST_CASE("shape operations follow the tensor operation") {
  for (unsigned round = 0; round < 50; ++round) {
    LinearLayout layout = sample({4, 8, 2});
    checkMapped(layout, layout.reshape({16, 4}), [&](Shape c) {
      int64_t flat = (c[0] * 8 + c[1]) * 2 + c[2];
      return Shape{flat / 4, flat % 4};
    });
    checkMapped(layout, layout.transpose({2, 0, 1}), [](Shape c) { return Shape{c[2], c[0], c[1]}; });
    checkMapped(layout, layout.expandDims(1), [](Shape c) { return Shape{c[0], 0, c[1], c[2]}; });
    checkMapped(layout, layout.slice(1), [](Shape c) { return Shape{c[0], c[2]}; });
    CHECK(layout.transpose({2, 0, 1}).transpose({1, 2, 0}) == layout);

    // Broadcasting adds registers; the old ones stay where they were, and every element is held somewhere.
    LinearLayout flatter = sample({4, 1, 8}), wide = flatter.broadcast({4, 4, 8});
    checkMapped(flatter, wide, [](Shape c) { return c; });
    CHECK(wide.isSurjective());
    CHECK(wide.numBits(HwDim::Register) == flatter.numBits(HwDim::Register) + 2);
    forEachPosition(wide, [&](auto position) {
      auto before = position;
      before[0].second &= flatter.size(HwDim::Register) - 1;
      Shape c = wide.coords(wide.apply(position)), old = flatter.coords(flatter.apply(before));
      c[1] = 0;
      REQUIRE(c == old);
    });
  }
}

TEST_CASE("zero bases can be dropped") {
  LinearLayout layout({8}, {{HwDim::Register, {0, 1, 0}}, {HwDim::Lane, {2, 0, 4}}});
  CHECK(layout.removeZeroBases(HwDim::Register).str() == "register = [1], lane = [2, 0, 4] -> [8]");
  CHECK(layout.removeZeroBases(HwDim::Warp) == layout);
  CHECK(layout.without(HwDim::Lane).str() == "register = [0, 1, 0] -> [8]");
}

TEST_CASE("composition applies one layout after the other") {
  for (unsigned round = 0; round < 20; ++round) {
    LinearLayout inner = sample({64});
    LinearLayout outer = randomLayout({8, 8}, {.lanes = 0, .warps = 0, .copies = 0, .mixed = true});
    LinearLayout both = inner.then(outer, HwDim::Register);
    CHECK(both.shape() == outer.shape());
    forEachPosition(inner, [&](auto position) {
      REQUIRE(both.apply(position) == outer.apply({{HwDim::Register, inner.apply(position)}}));
    });
  }
}

TEST_CASE("toMemory finds the offset that holds the element") {
  for (unsigned round = 0; round < 50; ++round) {
    LinearLayout layout = sample({8, 16});
    LinearLayout random = randomLayout({8, 16}, {.lanes = 0, .warps = 0, .copies = 2, .mixed = true});
    LinearLayout memory({8, 16}, {{HwDim::Offset, LinearLayout::Bases(random.bases(HwDim::Register))}});
    LinearLayout offsets = layout.toMemory(memory);
    bool right = true, lowest = true;
    forEachPosition(layout, [&](auto position) {
      uint64_t offset = offsets.apply(position);
      right &= memory.apply({{HwDim::Offset, offset}}) == layout.apply(position);
      for (uint64_t lower = 0; lower < offset; ++lower)
        lowest &= memory.apply({{HwDim::Offset, lower}}) != layout.apply(position);
    });
    CHECK(right);
    CHECK(lowest);
  }
}

TEST_CASE("sourceIn stays as near as it can") {
  for (unsigned round = 0; round < 100; ++round) {
    LinearLayout src = sample({4, 8}), dst = sample({4, 8}), source = dst.sourceIn(src);
    unsigned size[4] = {};
    for (int i = 0; i < 4; ++i)
      size[i] = src.size(hardware[i]);
    auto unpack = [&](uint64_t packed) {
      llvm::SmallVector<std::pair<HwDim, uint64_t>> at;
      for (int i = 0; i < 4; ++i, packed /= size[i - 1])
        at.push_back({hardware[i], packed % size[i]});
      return at;
    };
    forEachPosition(dst, [&](auto position) {
      auto at = unpack(source.apply(position));
      REQUIRE(src.apply(at) == dst.apply(position));
    });
    // For single bits: if the own thread (warp, block) holds the element, that is where it is read.
    for (int d = 0; d < 4; ++d)
      for (unsigned bit = 0; bit < dst.numBits(hardware[d]); ++bit) {
        llvm::SmallVector<std::pair<HwDim, uint64_t>> own{{hardware[d], uint64_t(1) << bit}};
        auto at = unpack(source.apply(own));
        auto inOwn = [&](auto place, int from) {
          for (int i = from; i < 4; ++i)
            if (place[i].second != (i == d ? uint64_t(1) << bit : 0))
              return false;
          return true;
        };
        for (int from : {1, 2, 3}) {
          bool possible = false;
          forEachPosition(src,
                          [&](auto place) { possible |= inOwn(place, from) && src.apply(place) == dst.apply(own); });
          CHECK(inOwn(at, from) == possible);
        }
      }
  }
  LinearLayout half({4, 8}, {{HwDim::Lane, {1, 2, 4}}});
  CHECK_FALSE(sample({4, 8}).findIn(half));
}

TEST_CASE("a product is divided by its factor") {
  LinearLayout tile({2, 8}, {{HwDim::Register, {1, 8}}, {HwDim::Lane, {2, 4}}});
  LinearLayout outer({8, 2}, {{HwDim::Register, {2}}, {HwDim::Lane, {1, 4}}, {HwDim::Warp, {8}}});
  LinearLayout whole = tile.times(outer);
  CHECK(whole.shape() == llvm::ArrayRef<int64_t>{16, 16});
  CHECK(whole.isSurjective());
  // Low bits are the tile's, high bits say which tile.
  CHECK(whole.coords(whole.apply({{HwDim::Register, 2}, {HwDim::Lane, 1}})) == Shape{1, 2});
  CHECK(whole.coords(whole.apply({{HwDim::Register, 4}, {HwDim::Lane, 4}, {HwDim::Warp, 1}})) == Shape{2 + 8, 8});
  CHECK(whole.divideLeft(tile) == outer);
  CHECK_FALSE(whole.divideLeft(tile.withIn(HwDim::Lane, {4, 2})));
  CHECK_FALSE(whole.withIn(HwDim::Warp, {1}).divideLeft(tile)); // a warp inside the tile
  CHECK_FALSE(tile.divideLeft(whole));
  CHECK_FALSE(whole.without(HwDim::Lane).divideLeft(tile));
  CHECK_FALSE(whole.reshape({256}).divideLeft(tile));
}

TEST_CASE("tables") {
  LinearLayout layout({2, 4}, {{HwDim::Register, {1}}, {HwDim::Lane, {2, 0}}, {HwDim::Warp, {4}}});
  CHECK(renderTable(layout) == "(0,0):  T0:0 W0|T2:0 W0  T0:1 W0|T2:1 W0  T1:0 W0|T3:0 W0  T1:1 W0|T3:1 W0\n"
                               "(1,0):  T0:0 W1|T2:0 W1  T0:1 W1|T2:1 W1  T1:0 W1|T3:0 W1  T1:1 W1|T3:1 W1\n");
  CHECK(renderHardware(layout) ==
        "T0 W0:  (0,0)  (0,1)\nT1 W0:  (0,2)  (0,3)\nT2 W0:  (0,0)  (0,1)\nT3 W0:  (0,2)  (0,3)\n"
        "T0 W1:  (1,0)  (1,1)\nT1 W1:  (1,2)  (1,3)\nT2 W1:  (1,0)  (1,1)\nT3 W1:  (1,2)  (1,3)\n");
  LinearLayout memory({4, 4}, {{HwDim::Offset, {1, 2, 4 + 1, 8 + 2}}}); // rows xored with the column
  CHECK(renderTable(memory) ==
        "(0,0):  0   1   2   3\n(1,0):  5   4   7   6\n(2,0):  10  11  8   9\n(3,0):  15  14  13  12\n");
  CHECK(renderHardware(memory) ==
        "0:  (0,0)  (0,1)  (0,2)  (0,3)  (1,1)  (1,0)  (1,3)  (1,2)  (2,2)  (2,3)  (2,0)  (2,1)  "
        "(3,3)  (3,2)  (3,1)  (3,0)\n");
  LinearLayout line({32}, {{HwDim::Register, {1}}, {HwDim::Lane, {2, 4, 8, 16}}});
  CHECK(llvm::StringRef(renderTable(line)).starts_with("(0) :  T0:0   T0:1   T1:0"));
  CHECK(llvm::StringRef(renderTable(line)).contains("\n(16):  T8:0"));
}
