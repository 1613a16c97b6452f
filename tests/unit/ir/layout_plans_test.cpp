// Conversion and reduction plans are executed here by a small simulator of warps, shuffles and shared memory, on random
// layouts; memory layouts are judged by a simulated bank model.
#include "random_layout.h"
#include "tessera/ir/LayoutPlans.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <set>

#include <doctest/doctest.h>

using namespace tessera;
using namespace tessera::testing;
using Kind = ConversionPlan::Kind;

namespace {

constexpr int64_t nobody = -1;

/// The registers of every thread of one program; a value is the flat index of the element it should hold.
struct Machine {
  unsigned lanes, warps;
  std::vector<std::vector<int64_t>> registers; ///< [warp * lanes + lane][register]

  Machine(unsigned lanes, unsigned warps, unsigned registersPerLane)
      : lanes(lanes), warps(warps), registers(lanes * warps, std::vector<int64_t>(registersPerLane, nobody)) {}
  std::vector<int64_t> &at(unsigned warp, unsigned lane) { return registers[warp * lanes + lane]; }
};

Machine holding(const LinearLayout &layout, unsigned block = 0) {
  Machine m(layout.size(HwDim::Lane), layout.size(HwDim::Warp), layout.size(HwDim::Register));
  for (unsigned w = 0; w < m.warps; ++w)
    for (unsigned l = 0; l < m.lanes; ++l)
      for (unsigned r = 0; r < layout.size(HwDim::Register); ++r)
        m.at(w, l)[r] = layout.apply({{HwDim::Register, r}, {HwDim::Lane, l}, {HwDim::Warp, w}, {HwDim::Block, block}});
  return m;
}

void select(Machine &m, const llvm::SmallVector<ConversionPlan::Select> &selects) {
  for (const auto &s : selects)
    for (unsigned w = 0; w < m.warps; ++w)
      for (unsigned l = 0; l < m.lanes; ++l)
        if ((__builtin_popcount(l & s.laneBits) ^ __builtin_popcount(w & s.warpBits)) & 1) {
          auto old = m.at(w, l);
          for (unsigned r = 0; r < old.size(); ++r)
            m.at(w, l)[r] = old[r ^ s.registerXor];
        }
}

/// Runs `plan` on src; returns what the dst registers hold. Reports misaligned vectors, races and reads of nothing.
Machine execute(const ConversionPlan &plan, const LinearLayout &src, const LinearLayout &dst, unsigned block) {
  Machine from = holding(src, block);
  Machine to(from.lanes, from.warps, dst.size(HwDim::Register));
  if (plan.kind == Kind::Copy) {
    for (unsigned w = 0; w < to.warps; ++w)
      for (unsigned l = 0; l < to.lanes; ++l)
        for (unsigned r = 0; r < plan.registerOf.size(); ++r)
          to.at(w, l)[r] = from.at(w, l)[plan.registerOf[r]];
  } else if (plan.kind == Kind::Shuffle) {
    select(from, plan.before);
    Machine tmp = to;
    for (unsigned w = 0; w < to.warps; ++w)
      for (unsigned l = 0; l < to.lanes; ++l)
        for (unsigned r = 0; r < plan.registerOf.size(); ++r)
          if (plan.sameAs[r] == r) {
            unsigned lane = plan.sourceLane.apply({{HwDim::Register, r}, {HwDim::Lane, l}, {HwDim::Warp, w}});
            if (auto mask = plan.xorMask(r))
              CHECK((l ^ *mask) == lane);
            tmp.at(w, l)[r] = from.at(w, lane)[plan.registerOf[r]];
          }
    select(tmp, plan.after);
    to = tmp;
  } else {
    for (unsigned pass = 0; pass < plan.passes(); ++pass) {
      std::vector<int64_t> memory(plan.scratchElements, nobody);
      bool race = false, misplaced = false;
      for (unsigned w = 0; w < from.warps; ++w)
        for (unsigned l = 0; l < from.lanes; ++l) {
          auto storers = plan.storers(pass);
          if ((l & storers.laneMask) != storers.lane || (w & storers.warpMask) != storers.warp)
            continue;
          unsigned base = plan.store.apply({{HwDim::Lane, l}, {HwDim::Warp, w}, {HwDim::Block, block}});
          for (const auto &access : plan.stores(pass)) {
            unsigned offset = base ^ access.offset;
            misplaced |= offset % plan.vecStore != 0 || access.registers.size() != plan.vecStore;
            for (unsigned i = 0; i < access.registers.size(); ++i) {
              race |= memory.at(offset + i) != nobody;
              memory[offset + i] = from.at(w, l)[access.registers[i]];
            }
          }
        }
      CHECK_FALSE(race);
      for (unsigned w = 0; w < to.warps; ++w)
        for (unsigned l = 0; l < to.lanes; ++l) {
          unsigned base = plan.load.apply({{HwDim::Lane, l}, {HwDim::Warp, w}, {HwDim::Block, block}});
          for (const auto &access : plan.loads(pass)) {
            unsigned offset = base ^ access.offset;
            misplaced |= offset % plan.vecLoad != 0 || access.registers.size() != plan.vecLoad;
            for (unsigned i = 0; i < access.registers.size(); ++i)
              to.at(w, l)[access.registers[i]] = memory.at(offset + i);
          }
        }
      CHECK_FALSE(misplaced);
    }
  }
  for (auto &registers : to.registers)
    for (unsigned r = 0; r < registers.size(); ++r)
      if (plan.sameAs[r] != r)
        registers[r] = registers[plan.sameAs[r]];
  return to;
}

void checkConversion(const ConversionPlan &plan, const LinearLayout &src, const LinearLayout &dst) {
  INFO("src ", src.str());
  INFO("dst ", dst.str());
  INFO("kind ", int(plan.kind));
  REQUIRE(plan.kind != Kind::Impossible);
  for (unsigned block = 0; block < dst.size(HwDim::Block); ++block) {
    Machine got = execute(plan, src, dst, block), want = holding(dst, block);
    bool same = got.registers == want.registers;
    REQUIRE(same);
  }
}

/// Wavefronts of the worst phase of a warp-wide access, by counting words in banks.
unsigned simulatedConflicts(const LinearLayout &offsets, unsigned vec, unsigned elementBytes,
                            const SharedMemoryModel &model, unsigned idleLanes = 0) {
  unsigned bytes = vec * elementBytes, lanes = offsets.size(HwDim::Lane);
  unsigned phase = std::min(lanes, model.banks * model.bankBytes / std::max(bytes, model.bankBytes)), worst = 1;
  for (unsigned start = 0; start < lanes; start += phase) {
    std::map<unsigned, std::set<unsigned>> wordsOfBank;
    for (unsigned l = start; l < start + phase; ++l)
      if (!(l & idleLanes))
        for (unsigned b = 0; b < bytes; ++b) {
          unsigned word = (offsets.apply({{HwDim::Lane, l}}) * elementBytes + b) / model.bankBytes;
          wordsOfBank[word % model.banks].insert(word);
        }
    for (auto &[bank, words] : wordsOfBank)
      worst = std::max<unsigned>(worst, words.size());
  }
  return worst;
}

unsigned storeConflicts(const ConversionPlan &p, unsigned bytes, const SharedMemoryModel &m = {}) {
  return simulatedConflicts(p.store, p.vecStore, bytes, m, p.idleLanes);
}
unsigned loadConflicts(const ConversionPlan &p, unsigned bytes, const SharedMemoryModel &m = {}) {
  return simulatedConflicts(p.load, p.vecLoad, bytes, m);
}

llvm::SmallVector<int64_t> randomShape(unsigned maxBits) {
  llvm::SmallVector<int64_t> shape(1 + below(3), 1);
  for (unsigned k = below(maxBits + 1); k > 0; --k)
    shape[below(shape.size())] *= 2;
  return shape;
}

} // namespace

TEST_CASE("random conversions move every element to its place") {
  std::map<Kind, unsigned> seen;
  for (unsigned round = 0; round < 600; ++round) {
    auto shape = randomShape(11);
    RandomLayoutOptions o{.lanes = 2 + below(4), .warps = below(3), .copies = below(4), .mixed = below(3) == 0};
    unsigned warps = o.warps;
    if (below(2)) // nothing in warps: room for shuffles
      o.warps = 0;
    auto random = [&] { return randomLayout(shape, o).withIn(HwDim::Warp, LinearLayout::Bases(warps - o.warps, 0)); };
    LinearLayout src = o.warps ? randomLayout(shape, o) : random(), dst = o.warps ? randomLayout(shape, o) : random();
    unsigned bytes = 1u << below(4);
    ConversionPlan plan = planConversion(src, dst, bytes);
    seen[plan.kind]++;
    checkConversion(plan, src, dst);
    ConversionPlan shared = planThroughShared(src, dst, bytes);
    checkConversion(shared, src, dst);
    for (ScratchLimits limits : {ScratchLimits{256}, {UINT64_MAX, 512}, {256, 64}}) {
      ConversionPlan small = planThroughShared(src, dst, bytes, {}, limits);
      checkConversion(small, src, dst);
      CHECK(small.scratchElements <= shared.scratchElements);
    }
    if (shared.kind == Kind::Shared) {
      CHECK(bankConflicts(src, shared.memory, 1, bytes) ==
            simulatedConflicts(src.toMemory(shared.memory), 1, bytes, {}));
      unsigned vec = shared.vecLoad;
      CHECK(bankConflicts(dst, shared.memory, vec, bytes) ==
            simulatedConflicts(dst.toMemory(shared.memory), vec, bytes, {}));
    }
  }
  CHECK(seen[Kind::Copy] > 20);
  CHECK(seen[Kind::Shuffle] > 20);
  CHECK(seen[Kind::Shared] > 100);
}

TEST_CASE("random conversions of full tiles have no bank conflicts") {
  // Without widening one side only, a conflict-free layout always exists; widening may trade conflicts for width.
  for (unsigned round = 0; round < 300; ++round) {
    RandomLayoutOptions o{.copies = below(3), .mixed = below(3) == 0};
    LinearLayout src = randomLayout({64, 64}, o), dst = randomLayout({64, 64}, o);
    unsigned bytes = 1u << below(4);
    ConversionPlan plan = planThroughShared(src, dst, bytes);
    if (plan.kind != Kind::Shared)
      continue;
    INFO("src ", src.str(), " dst ", dst.str(), " bytes ", bytes, " vec ", plan.vecStore, ' ', plan.vecLoad);
    unsigned store = storeConflicts(plan, bytes), load = loadConflicts(plan, bytes);
    if (plan.vecStore == plan.vecLoad)
      CHECK(store * load == 1);
    else
      CHECK((plan.vecStore > plan.vecLoad ? store : load) == 1);
    // A conflict is paid for: the wide side saves at least what the narrow side loses.
    CHECK(store * load * plan.passes() <=
          std::max(plan.vecStore, plan.vecLoad) / std::min(plan.vecStore, plan.vecLoad));
  }
}

TEST_CASE("a transpose is wide and free of conflicts") {
  for (unsigned bytes : {1u, 2u, 4u, 8u}) {
    CAPTURE(bytes);
    int64_t vec = 16 / bytes, across = 64 / vec, down = 32 / across; // a row of a warp: 64 elements
    auto rows = blockedLayout({64, 64}, {1, 0}, {1, vec}, {down, across}, {4, 1});
    auto columns = blockedLayout({64, 64}, {0, 1}, {vec, 1}, {across, down}, {1, 4});
    ConversionPlan plan = planConversion(rows, columns, bytes);
    REQUIRE(plan.kind == Kind::Shared);
    CHECK(plan.scratchElements == 64 * 64); // no padding
    CHECK(storeConflicts(plan, bytes) == 1);
    CHECK(loadConflicts(plan, bytes) == 1);
    CHECK(std::max(plan.vecStore, plan.vecLoad) == vec);
    checkConversion(plan, rows, columns);
  }
}

TEST_CASE("the same rows in other threads keep the whole width on both sides") {
  auto a = blockedLayout({64, 64}, {1, 0}, {1, 4}, {2, 16}, {4, 1});
  auto b = blockedLayout({64, 64}, {1, 0}, {1, 4}, {8, 4}, {1, 4});
  ConversionPlan plan = planConversion(a, b, 4);
  REQUIRE(plan.kind == Kind::Shared);
  CHECK(plan.vecStore == 4);
  CHECK(plan.vecLoad == 4);
  CHECK(storeConflicts(plan, 4) == 1);
  CHECK(loadConflicts(plan, 4) == 1);
  checkConversion(plan, a, b);
}

TEST_CASE("passes keep scratch small") {
  auto a = blockedLayout({128, 128}, {1, 0}, {1, 4}, {2, 16}, {4, 1});
  auto b = blockedLayout({128, 128}, {1, 0}, {1, 4}, {8, 4}, {1, 4});
  ConversionPlan plan = planThroughShared(a, b, 4, {}, {16 << 10});
  REQUIRE(plan.kind == Kind::Shared);
  CHECK(plan.passes() == 4);
  CHECK(plan.scratchElements * 4 == 16 << 10);
  CHECK(plan.vecStore == 4);
  checkConversion(plan, a, b);
}

TEST_CASE("passes over threads where no register serves both sides") {
  // A transpose: what a thread holds in registers, the other side spreads over threads.
  auto rows = blockedLayout({128, 256}, {1, 0}, {1, 4}, {1, 64}, {4, 1});
  auto columns = blockedLayout({128, 256}, {0, 1}, {4, 1}, {32, 2}, {1, 4});
  ConversionPlan whole = planThroughShared(rows, columns, 4, {}, {32 << 10});
  CHECK(whole.scratchElements == 128 * 256);
  for (unsigned kbytes : {64, 32, 4, 1}) {
    CAPTURE(kbytes);
    ConversionPlan plan = planThroughShared(rows, columns, 4, {}, {UINT64_MAX, kbytes << 10});
    CHECK(plan.scratchElements * 4 == kbytes << 10);
    CHECK(plan.passes() == 128 / kbytes);
    CHECK(loadConflicts(plan, 4) == 1);
    checkConversion(plan, rows, columns);
  }
}

TEST_CASE("moves within a thread or a warp need no memory") {
  LinearLayout rows({4, 32}, {{HwDim::Register, {32, 64}}, {HwDim::Lane, {1, 2, 4, 8, 16}}, {HwDim::Warp, {0}}});
  SUBCASE("register permutation") {
    auto swapped = rows.withIn(HwDim::Register, {64, 32});
    auto plan = planConversion(rows, swapped, 4);
    REQUIRE(plan.kind == Kind::Copy);
    CHECK(plan.registerOf == llvm::SmallVector<unsigned>{0, 2, 1, 3});
  }
  SUBCASE("own copy first") { // every warp has everything: nobody asks another warp
    auto spread = rows.withIn(HwDim::Register, {32}).withIn(HwDim::Warp, {64});
    auto plan = planConversion(rows, spread, 4);
    REQUIRE(plan.kind == Kind::Shuffle); // the register depends on the warp: selects
    CHECK(plan.xorMask(0) == 0u);
    checkConversion(plan, rows, spread);
  }
  SUBCASE("lane permutation") {
    auto rotated = rows.withIn(HwDim::Lane, {2, 4, 8, 16, 1});
    auto plan = planConversion(rows, rotated, 4);
    REQUIRE(plan.kind == Kind::Shuffle);
    CHECK(plan.before.empty());
    CHECK(plan.after.empty());
    CHECK_FALSE(plan.xorMask(0));
    checkConversion(plan, rows, rotated);
  }
  SUBCASE("transpose between registers and lanes") { // 4 x 4: one shuffle per register
    auto exchanged = rows.withIn(HwDim::Register, {1, 2}).withIn(HwDim::Lane, {32, 64, 4, 8, 16});
    auto plan = planConversion(rows, exchanged, 4);
    REQUIRE(plan.kind == Kind::Shuffle);
    CHECK(plan.before.size() == 2);
    CHECK(plan.after.size() == 2);
    checkConversion(plan, rows, exchanged);
  }
}

TEST_CASE("conversions that one program cannot do are reported") {
  LinearLayout a({64}, {{HwDim::Lane, {1, 2, 4, 8, 16}}, {HwDim::Block, {32}}});
  LinearLayout b({64}, {{HwDim::Lane, {32, 2, 4, 8, 16}}, {HwDim::Block, {1}}});
  CHECK(planConversion(a, b, 4).kind == Kind::Impossible);
  CHECK(planConversion(a, a, 4).kind == Kind::Copy);
  LinearLayout partial({64}, {{HwDim::Lane, {1, 2, 4, 8, 16}}, {HwDim::Block, {0}}});
  CHECK(planConversion(partial, a, 4).kind == Kind::Impossible);
  LinearLayout otherBlocks({64}, {{HwDim::Lane, {2, 1, 4, 8, 16}}, {HwDim::Block, {32 + 1}}});
  checkConversion(planConversion(a, otherBlocks, 4), a, otherBlocks);
  checkConversion(planThroughShared(a, otherBlocks, 4), a, otherBlocks);
}

// ---- reductions ----------------------------------------------------------------------------------------------------

namespace {

using Counts = std::map<int64_t, int>; ///< how often each element has been taken in

Counts operator+(Counts a, const Counts &b) {
  for (auto [element, n] : b)
    a[element] += n;
  return a;
}

void checkReduction(const LinearLayout &src, unsigned axis) {
  INFO("src ", src.str(), " axis ", axis);
  ReductionPlan plan = planReduction(src, axis);
  REQUIRE_FALSE(plan.crossesBlocks);
  Machine from = holding(src);
  unsigned n = plan.registersOf.size();
  REQUIRE(n == plan.result.size(HwDim::Register));
  std::vector<std::vector<Counts>> values(from.registers.size(), std::vector<Counts>(n));
  for (unsigned t = 0; t < values.size(); ++t)
    for (unsigned i = 0; i < n; ++i)
      for (unsigned r : plan.registersOf[i])
        values[t][i][from.registers[t][r]]++;
  for (unsigned mask : plan.laneMasks) {
    auto old = values;
    for (unsigned t = 0; t < values.size(); ++t)
      for (unsigned i = 0; i < n; ++i)
        values[t][i] = old[t][i] + old[t ^ mask][i];
  }
  auto at = [&](const LinearLayout &layout, unsigned i, unsigned t) {
    return layout.apply({{HwDim::Register, i}, {HwDim::Lane, t % from.lanes}, {HwDim::Warp, t / from.lanes}});
  };
  if (plan.scratchParts > 1) {
    std::vector<std::optional<Counts>> scratch(plan.scratchElements);
    bool race = false;
    for (unsigned t = 0; t < values.size(); ++t)
      if (!(t % from.lanes & plan.idleLanes) && !(t / from.lanes & plan.idleWarps))
        for (unsigned i = 0; i < n; ++i) {
          auto &place = scratch.at(at(plan.scratchStore, i, t));
          race |= place.has_value();
          place = values[t][i];
        }
    CHECK_FALSE(race);
    for (unsigned t = 0; t < values.size(); ++t)
      for (unsigned i = 0; i < n; ++i) {
        values[t][i].clear();
        for (unsigned k = 0; k < plan.scratchParts; ++k)
          values[t][i] = values[t][i] + scratch.at(k * plan.result.numElements() + at(plan.result, i, t)).value();
      }
  }
  // Each result is made of exactly the elements with its other coordinates.
  std::map<int64_t, Counts> want;
  for (int64_t e = 0; e < src.numElements(); ++e) {
    auto coords = src.coords(e);
    coords.erase(coords.begin() + axis);
    want[plan.result.flat(coords)][e] = 1;
  }
  bool right = true;
  for (unsigned t = 0; t < values.size(); ++t)
    for (unsigned i = 0; i < n; ++i)
      right &= values[t][i] == want[at(plan.result, i, t)];
  REQUIRE(right);
}

} // namespace

TEST_CASE("random reductions count every element once") {
  for (unsigned round = 0; round < 400; ++round) {
    auto shape = randomShape(9);
    RandomLayoutOptions o{.lanes = 2 + below(4), .warps = below(3), .copies = below(5), .mixed = below(3) == 0};
    checkReduction(randomLayout(shape, o), below(shape.size()));
  }
}

TEST_CASE("a reduction within warps uses shuffles only") {
  auto layout = blockedLayout({16, 128}, {1, 0}, {1, 4}, {1, 32}, {4, 1});
  ReductionPlan plan = planReduction(layout, 1);
  CHECK(plan.registersOf.size() == 4);
  CHECK(plan.registersOf[0] == llvm::SmallVector<unsigned>{0, 1, 2, 3});
  CHECK(plan.laneMasks == llvm::SmallVector<unsigned>{1, 2, 4, 8, 16});
  CHECK(plan.scratchElements == 0);
  plan = planReduction(layout, 0); // 4 registers, then 4 warps
  CHECK(plan.laneMasks.empty());
  CHECK(plan.scratchParts == 4);
  CHECK(plan.scratchElements == 4 * 128);
}

TEST_CASE("a reduction leaves copies out") {
  LinearLayout few({8}, {{HwDim::Register, {0}}, {HwDim::Lane, {1, 2, 4, 0, 0}}, {HwDim::Warp, {0, 0}}});
  ReductionPlan plan = planReduction(few, 0);
  CHECK(plan.registersOf[0].size() == 1);
  CHECK(plan.laneMasks == llvm::SmallVector<unsigned>{1, 2, 4});
  CHECK(plan.scratchParts == 1);
  checkReduction(few, 0);
}

TEST_CASE("a reduction across programs is reported") {
  LinearLayout a({2, 64}, {{HwDim::Lane, {1, 2, 4, 8, 16}}, {HwDim::Warp, {64}}, {HwDim::Block, {32}}});
  CHECK(planReduction(a, 1).crossesBlocks);
  CHECK_FALSE(planReduction(a, 0).crossesBlocks);
}
