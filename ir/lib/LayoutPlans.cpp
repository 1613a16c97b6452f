// How conversions and reductions are carried out: the choice between register moves, warp shuffles and shared memory.
#include "tessera/ir/LayoutPlans.h"

#include "LayoutPlansImpl.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace tessera {
using namespace f2;

static constexpr HwDim hardwareDims[] = {HwDim::Register, HwDim::Lane, HwDim::Warp, HwDim::Block};

/// The same layout with all hardware dimensions present, in the usual order.
static LinearLayout ordered(const LinearLayout &layout) {
  SmallVector<LinearLayout::In, 4> ins;
  for (HwDim dim : hardwareDims)
    ins.push_back({dim, LinearLayout::Bases(layout.bases(dim))});
  return LinearLayout(layout.shape(), ins);
}

uint64_t duplicateRegisterBits(const LinearLayout &layout) {
  Vecs registers(layout.bases(HwDim::Register));
  return LinearLayout(layout.shape(), {{HwDim::Register, registers}}).freeMask(HwDim::Register);
}

/// For each register the first one that holds the same element.
static SmallVector<unsigned> firstWithSameElement(const LinearLayout &layout) {
  ArrayRef<Vec> registers = layout.bases(HwDim::Register);
  Span span(registers);
  SmallVector<unsigned> result;
  for (unsigned r = 0; r < layout.size(HwDim::Register); ++r)
    result.push_back(*span.solve(combine(registers, r)));
  return result;
}

// ---- shuffles ------------------------------------------------------------------------------------------------------

namespace {

/// dst.sourceIn(src) in parts: dst register r of lane l in warp w is at src lane
///   lane_r r ^ lane_l l ^ lane_w w, register reg_r r ^ reg_l l ^ reg_w w, same warp.
struct SourceParts {
  Vecs laneOfRegister, laneOfLane, laneOfWarp, registerOfRegister, registerOfLane, registerOfWarp;
};

} // namespace

/// Splits `source`; nothing when an element comes from another warp, or its place in the warp depends on the block.
static std::optional<SourceParts> splitSource(const LinearLayout &source, const LinearLayout &src) {
  unsigned registerBits = src.numBits(HwDim::Register), laneBits = src.numBits(HwDim::Lane);
  SourceParts parts;
  auto split = [&](HwDim dim, Vecs &lanes, Vecs &registers) {
    for (auto [i, basis] : enumerate(source.bases(dim))) {
      registers.push_back(basis & maskTrailingOnes<uint64_t>(registerBits));
      lanes.push_back(basis >> registerBits & maskTrailingOnes<uint64_t>(laneBits));
      if (basis >> (registerBits + laneBits) != (dim == HwDim::Warp ? uint64_t(1) << i : 0))
        return false;
    }
    return true;
  };
  unsigned blockStart = registerBits + laneBits + src.numBits(HwDim::Warp);
  for (auto [i, basis] : enumerate(source.bases(HwDim::Block)))
    if (basis != uint64_t(1) << (blockStart + i))
      return std::nullopt;
  if (split(HwDim::Register, parts.laneOfRegister, parts.registerOfRegister) &&
      split(HwDim::Lane, parts.laneOfLane, parts.registerOfLane) &&
      split(HwDim::Warp, parts.laneOfWarp, parts.registerOfWarp))
    return parts;
  return std::nullopt;
}

/// Selects that move register r to r ^ f(lane, warp) for the linear f with the given images of lane and warp bits.
static SmallVector<ConversionPlan::Select> selectsFor(ArrayRef<Vec> ofLane, ArrayRef<Vec> ofWarp) {
  Vecs images(ofLane);
  images.append(ofWarp.begin(), ofWarp.end());
  Vecs basis = complement({}, images);
  Span span(basis);
  SmallVector<ConversionPlan::Select> selects;
  for (auto [k, image] : enumerate(basis)) {
    ConversionPlan::Select select{0, 0, unsigned(image)};
    for (auto [i, v] : enumerate(ofLane))
      select.laneBits |= unsigned(*span.solve(v) >> k & 1) << i;
    for (auto [i, v] : enumerate(ofWarp))
      select.warpBits |= unsigned(*span.solve(v) >> k & 1) << i;
    selects.push_back(select);
  }
  return selects;
}

/// One shuffle per register, with selects before and after.
///
/// A shuffle can only fetch, from each source lane, the one register that this lane offers. The shuffle numbered r
/// serves dst register r ^ M l of lane l, from source lane A r ^ B' l and register C r ^ G l, where A, C are the
/// register's parts of the source position, B, D the lane's, B' = A M ^ B and G = C M ^ D. It works when the register
/// is a function of the source lane: G = E B'. Then
///   before: src registers move by E(source lane), so that every lane offers the same register;
///   after:  tmp registers move by M(lane).
/// M is 0 where B or D suffice, and otherwise takes lanes that B misses from the registers' part A.
static bool planShuffles(ConversionPlan &plan, const LinearLayout &source, const LinearLayout &src,
                         const LinearLayout &dst, unsigned elementBytes) {
  auto parts = splitSource(source, src);
  if (!parts)
    return false;
  const Vecs &a = parts->laneOfRegister, &b = parts->laneOfLane, &c = parts->registerOfRegister,
             &d = parts->registerOfLane;
  unsigned laneBits = b.size();
  uint64_t duplicates = duplicateRegisterBits(dst);

  // Lane directions that do not change the source lane but do change the register need an M.
  Vecs basisOfLanes, moveOfBasis;
  Span reached(b), needed;
  for (Vec direction : kernel(b)) {
    if (!needed.add(combine(d, direction)))
      continue;
    auto bits = seq<unsigned>(0, a.size());
    auto bit = find_if(bits, [&](unsigned r) { return !(duplicates >> r & 1) && !reached.contains(a[r]); });
    if (bit == bits.end())
      return false;
    reached.add(a[*bit]);
    basisOfLanes.push_back(direction);
    moveOfBasis.push_back(Vec(1) << *bit);
  }
  // On the rest of the kernel, and on a complement of it, M is 0.
  for (Vec relation : kernel(map_to_vector(kernel(b), [&](Vec k) { return combine(d, k); })))
    basisOfLanes.push_back(combine(kernel(b), relation));
  for (unsigned i = 0; i < laneBits; ++i)
    basisOfLanes.push_back(Vec(1) << i);
  moveOfBasis.resize(basisOfLanes.size(), 0);
  Span lanes(basisOfLanes);
  Vecs move, sourceLane, offered;
  for (unsigned i = 0; i < laneBits; ++i) {
    move.push_back(combine(moveOfBasis, *lanes.solve(Vec(1) << i)));
    sourceLane.push_back(b[i] ^ combine(a, move[i]));
    offered.push_back(d[i] ^ combine(c, move[i]));
  }
  for (Vec relation : kernel(sourceLane))
    if (combine(offered, relation))
      return false;

  // E, extended by 0 to lanes nobody reads.
  Vecs lanesThenUnits(sourceLane);
  for (unsigned i = 0; i < laneBits; ++i)
    lanesThenUnits.push_back(Vec(1) << i);
  Span fromLane(lanesThenUnits);
  auto registerOfSourceLane = [&](Vec lane) {
    return combine(offered, *fromLane.solve(lane) & maskTrailingOnes<uint64_t>(laneBits));
  };
  Vecs shiftOfLane, shiftOfWarp;
  for (unsigned i = 0; i < laneBits; ++i)
    shiftOfLane.push_back(registerOfSourceLane(Vec(1) << i));
  for (auto [lane, reg] : zip_equal(parts->laneOfWarp, parts->registerOfWarp))
    shiftOfWarp.push_back(reg ^ registerOfSourceLane(lane));

  plan.kind = ConversionPlan::Kind::Shuffle;
  plan.before = selectsFor(shiftOfLane, shiftOfWarp);
  plan.after = selectsFor(move, {});
  plan.sourceLane = LinearLayout({src.size(HwDim::Lane)},
                                 {{HwDim::Register, a}, {HwDim::Lane, sourceLane}, {HwDim::Warp, parts->laneOfWarp}});
  unsigned shuffles = 0, distinct = 0;
  for (unsigned r = 0; r < dst.size(HwDim::Register); ++r) {
    plan.registerOf.push_back(combine(c, r) ^ registerOfSourceLane(combine(a, r)));
    distinct += plan.sameAs[r] == r;
    shuffles += plan.sameAs[r] == r && plan.xorMask(r) != 0u;
  }
  unsigned offeredRegisters = 1u << (src.numBits(HwDim::Register) - popcount(duplicateRegisterBits(src)));
  unsigned selects = offeredRegisters * plan.before.size() + distinct * plan.after.size();
  plan.cost = (elementBytes > 4 ? 2 : 1) * (2 * shuffles + selects);
  return true;
}

std::optional<unsigned> ConversionPlan::xorMask(unsigned r) const {
  for (auto [i, basis] : enumerate(sourceLane.bases(HwDim::Lane)))
    if (basis != Vec(1) << i)
      return std::nullopt;
  if (any_of(sourceLane.bases(HwDim::Warp), [](Vec v) { return v != 0; }))
    return std::nullopt;
  return sourceLane.apply({{HwDim::Register, r}});
}

// ---- conversions ---------------------------------------------------------------------------------------------------

static ConversionPlan plan(LinearLayout src, LinearLayout dst, unsigned elementBytes, const SharedMemoryModel &model,
                           const ScratchLimits &limits, bool allowShuffles) {
  src = ordered(src);
  dst = ordered(dst);
  ConversionPlan result;
  result.sameAs = firstWithSameElement(dst);
  result.srcDuplicates = duplicateRegisterBits(src);
  result.dstDuplicates = duplicateRegisterBits(dst);

  bool sameHardware = src.shape() == dst.shape();
  for (HwDim dim : {HwDim::Lane, HwDim::Warp, HwDim::Block})
    sameHardware &= src.numBits(dim) == dst.numBits(dim);
  auto source = sameHardware ? dst.findIn(src) : std::nullopt;
  bool sameThread = true, sameProgram = true;
  unsigned start = src.numBits(HwDim::Register);
  unsigned blockStart = start + src.numBits(HwDim::Lane) + src.numBits(HwDim::Warp);
  if (source)
    for (HwDim dim : hardwareDims) {
      for (auto [i, basis] : enumerate(source->bases(dim))) {
        uint64_t own = dim == HwDim::Register ? 0 : uint64_t(1) << (start + i);
        sameThread &= dim == HwDim::Register ? basis >> start == 0 : basis == own;
        sameProgram &= basis >> blockStart == own >> blockStart;
      }
      if (dim != HwDim::Register)
        start += src.numBits(dim);
    }
  if (!source || !sameProgram) {
    result.kind = ConversionPlan::Kind::Impossible;
    return result;
  }
  if (sameThread) {
    for (unsigned r = 0; r < dst.size(HwDim::Register); ++r)
      result.registerOf.push_back(source->apply({{HwDim::Register, r}}));
    return result;
  }

  ConversionPlan shared = result;
  planShared(shared, src, dst, elementBytes, model, limits);
  if (allowShuffles && planShuffles(result, *source, src, dst, elementBytes) && result.cost <= shared.cost)
    return result;
  return shared;
}

ConversionPlan planConversion(const LinearLayout &src, const LinearLayout &dst, unsigned elementBytes,
                              const SharedMemoryModel &model, ScratchLimits limits) {
  return plan(src, dst, elementBytes, model, limits, /*allowShuffles=*/true);
}

ConversionPlan planThroughShared(const LinearLayout &src, const LinearLayout &dst, unsigned elementBytes,
                                 const SharedMemoryModel &model, ScratchLimits limits) {
  return plan(src, dst, elementBytes, model, limits, /*allowShuffles=*/false);
}

// ---- reductions ----------------------------------------------------------------------------------------------------

ReductionPlan planReduction(const LinearLayout &source, unsigned axis) {
  LinearLayout src = ordered(source), sliced = src.slice(axis);
  ReductionPlan plan;
  plan.src = source;
  plan.axis = axis;
  Vecs registersOfResult; // the src register bit of each result register bit
  for (unsigned bit = 0; bit < src.numBits(HwDim::Register); ++bit)
    if (!(duplicateRegisterBits(sliced) >> bit & 1))
      registersOfResult.push_back(Vec(1) << bit);
  Vecs resultBases = complement({}, sliced.bases(HwDim::Register));
  plan.result = sliced.withIn(HwDim::Register, resultBases);

  // An element's place along the axis: linear in the flat index.
  auto along = [&](Vec flat) { return Vec(src.coords(flat)[axis]); };
  auto movesAlong = [&](HwDim dim) { // moves that keep the result element
    return map_to_vector(kernel(sliced.bases(dim)), [&](uint64_t move) {
      return std::pair(unsigned(move), along(combine(src.bases(dim), move)));
    });
  };

  // 1. Registers of each result register, every element once.
  SmallVector<unsigned> first = firstWithSameElement(src);
  Span results(resultBases);
  plan.registersOf.resize(size_t(1) << resultBases.size());
  for (unsigned r = 0; r < first.size(); ++r)
    if (first[r] == r)
      plan.registersOf[*results.solve(combine(sliced.bases(HwDim::Register), r))].push_back(r);

  // `axisBasis` starts with the directions along the axis that value[i] covers. A move that adds none leads to a copy.
  Vecs axisBasis;
  Span covered;
  auto cover = [&](Vec direction) {
    bool isNew = covered.add(direction);
    if (isNew)
      axisBasis.push_back(direction);
    return isNew;
  };
  for (auto [move, direction] : movesAlong(HwDim::Register))
    cover(direction);
  // 2. Lanes.
  for (auto [move, direction] : movesAlong(HwDim::Lane))
    if (cover(direction))
      plan.laneMasks.push_back(move);
  // 3. What is left is spread over lanes and warps, mixed in any way with the other dimensions; scratch sorts it.
  unsigned numCovered = axisBasis.size();
  for (HwDim dim : {HwDim::Register, HwDim::Lane, HwDim::Warp})
    for (Vec basis : src.bases(dim))
      cover(along(basis));
  plan.scratchParts = 1u << (axisBasis.size() - numCovered);
  plan.crossesBlocks = any_of(src.bases(HwDim::Block), [&](Vec basis) { return along(basis) != 0; });
  if (plan.scratchParts == 1)
    return plan;

  plan.scratchElements = plan.scratchParts * sliced.numElements();
  Span coordinates(axisBasis);
  auto offset = [&](HwDim dim, uint64_t bits) {
    uint64_t part = coordinates.solve(along(combine(src.bases(dim), bits))).value_or(0) >> numCovered;
    return part * sliced.numElements() + combine(sliced.bases(dim), bits);
  };
  SmallVector<LinearLayout::In, 4> ins;
  for (HwDim dim : hardwareDims) {
    ins.push_back({dim, {}});
    for (unsigned i = 0; i < plan.result.numBits(dim); ++i)
      ins.back().bases.push_back(offset(dim, dim == HwDim::Register ? registersOfResult[i] : Vec(1) << i));
  }
  plan.scratchStore = LinearLayout({plan.scratchElements}, ins);
  plan.idleLanes = plan.scratchStore.freeMask(HwDim::Lane);
  plan.idleWarps = plan.scratchStore.freeMask(HwDim::Warp);
  return plan;
}

} // namespace tessera
