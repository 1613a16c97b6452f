// Conversion through shared memory: which passes, which memory layout.
//
// A memory layout is a basis of the tile's space; the bits of an offset, from low to high, are
//   [vector | rest of the bank's word | bank | row]
// Two lanes of one phase conflict when their words differ in row bits only. So the span R of the row bits must meet
// neither the span A of what one phase of the stores touches nor the span B of what one phase of the loads touches.
// Neither has more dimensions than there are bits below the row, and two such spaces have a common complement: with
// bases a_i and b_i of A and B beyond A ∩ B, the sums a_i + b_i and everything outside A + B. That is the whole
// swizzle.
#include "LayoutPlansImpl.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace llvm;

namespace tessera {
using namespace f2;

unsigned phaseBits(unsigned laneBits, unsigned accessBytes, const SharedMemoryModel &model) {
  unsigned lanes = model.banks * model.bankBytes / std::max(accessBytes, model.bankBytes);
  return lanes ? std::min(laneBits, Log2_32(lanes)) : 0;
}

unsigned conflictBits(ArrayRef<Vec> offsets, unsigned vecBytes, unsigned elementBytes, const SharedMemoryModel &model) {
  Vecs words, banks;
  for (Vec offset : offsets.take_front(phaseBits(offsets.size(), vecBytes, model)))
    words.push_back(offset * elementBytes / model.bankBytes);
  for (uint64_t byte = model.bankBytes; byte < vecBytes; byte *= 2)
    words.push_back(byte / model.bankBytes);
  for (Vec word : words)
    banks.push_back(word % model.banks);
  return rank(words) - rank(banks);
}

unsigned bankConflicts(const LinearLayout &distributed, const LinearLayout &memory, unsigned vec, unsigned elementBytes,
                       const SharedMemoryModel &model) {
  Vecs lanes(distributed.bases(HwDim::Lane));
  LinearLayout perLane(distributed.shape(), {{HwDim::Lane, lanes}});
  return 1u << conflictBits(perLane.toMemory(memory).bases(HwDim::Lane), vec * elementBytes, elementBytes, model);
}

static Vecs concat(ArrayRef<Vec> a, ArrayRef<Vec> b) {
  Vecs result(a);
  result.append(b.begin(), b.end());
  return result;
}

namespace {

/// What one side of the conversion accesses in a pass.
struct Side {
  Vecs registers; ///< image of each register bit that matters within a pass
  Vecs lanes;     ///< image of each lane bit, 0 for idle ones
  Vecs threads;   ///< images of all bits that tell threads apart: lanes, warps, blocks
};

struct MemoryChoice {
  Vecs bases;
  unsigned storeBits = 0, loadBits = 0; ///< log2 of the vector widths
  unsigned cost = 0;
};

/// Finds the memory layout of the tile that `src` holds in a pass.
class MemoryChooser {
public:
  /// `matrixStores`: whether the stores may be stmatrix.
  MemoryChooser(const Side &src, const Side &dst, unsigned elementBytes, const SharedMemoryModel &model,
                bool matrixStores)
      : src(src), dst(dst), elementBytes(elementBytes), model(model), matrixStores(matrixStores),
        tile(complement({}, concat(src.threads, src.registers))),
        maxVecBits(Log2_32(std::max(model.maxVectorBytes / elementBytes, 1u))) {}

  /// The widest vectors that both sides can have; or wider ones on one side, or rows that stmatrix writes, where that is
  /// cheaper on the whole.
  MemoryChoice best() const {
    Vecs common = complement(concat(src.threads, dst.threads), intersect(src.registers, dst.registers));
    common.truncate(std::min<size_t>(common.size(), maxVecBits));
    MemoryChoice best = choose(common, {}, /*widenStore=*/false);
    for (bool widenStore : {false, true}) {
      Vecs extra = extension(common, widenStore ? src : dst);
      for (unsigned n = 1; n <= extra.size(); ++n) {
        MemoryChoice choice = choose(common, ArrayRef(extra).take_front(n), widenStore);
        if (choice.cost < best.cost)
          best = std::move(choice);
      }
    }
    for (bool transposed : {false, true}) // also at equal cost
      if (auto choice = matrixRows(transposed); choice && choice->cost <= best.cost)
        best = std::move(*choice);
    return best;
  }

private:
  /// A layout whose rows of 16 bytes are loaded by one lane each and stored by stmatrix: along the row lie the elements of
  /// a register, and the lanes that share a row in the instruction.
  std::optional<MemoryChoice> matrixRows(bool transposed) const {
    constexpr unsigned kRowBytes = 16, kRegisterBytes = 4, kUnitBytes = 2, kLaneBits = 5;
    if (!matrixStores || src.lanes.size() != kLaneBits || elementBytes > (transposed ? kUnitBytes : kRegisterBytes))
      return std::nullopt;
    unsigned elementBits = Log2_32((transposed ? kUnitBytes : kRegisterBytes) / elementBytes);
    Vecs common = complement(concat(src.threads, dst.threads), intersect(src.registers, dst.registers));
    if (common.size() < elementBits || (transposed && src.registers.size() <= elementBits))
      return std::nullopt;
    common.truncate(elementBits);
    unsigned first = transposed ? 2 : 0, along = Log2_32(kRowBytes / elementBytes) - elementBits;
    Vecs row(ArrayRef(src.lanes).slice(first, along)), vector = concat(common, row);
    ArrayRef<Vec> wanted = ArrayRef(dst.registers).take_front(vector.size()); // or words would have to be taken apart
    if (!fits(common, row, dst) || intersect(wanted, vector).size() != vector.size())
      return std::nullopt;
    // What one matrix stores at once: its rows are numbered by the other lanes, and in a transposed one by a register bit.
    Vecs phase = row;
    if (transposed)
      phase.push_back(src.registers[elementBits]);
    for (auto [i, lane] : enumerate(src.lanes))
      if (i < first || i >= first + along)
        phase.push_back(lane);
    return choose(common, row, /*widenStore=*/false, phase);
  }

  /// Whether vectors of `common` and `extra` can be accessed whole by `wide`, and those of `common` by the other side: no
  /// thread of the wide side moves along the vector, and no thread of either side along its common part.
  bool fits(ArrayRef<Vec> common, ArrayRef<Vec> extra, const Side &wide) const {
    Vecs vector = concat(common, extra), others = concat(concat(src.threads, dst.threads), extra);
    return complement(wide.threads, vector).size() == vector.size() &&
           complement(others, common).size() == common.size();
  }

  /// Register moves by which the vectors of the side `wide` alone can grow, up to the maximal width.
  Vecs extension(ArrayRef<Vec> common, const Side &wide) const {
    Vecs extra;
    for (Vec candidate : wide.registers) {
      if (common.size() + extra.size() >= maxVecBits)
        break;
      Vecs grown = concat(extra, ArrayRef(candidate));
      if (fits(common, grown, wide))
        extra = std::move(grown);
    }
    return extra;
  }

  ArrayRef<Vec> phase(const Side &side, unsigned vecBits) const {
    return ArrayRef(side.lanes).take_front(phaseBits(side.lanes.size(), elementBytes << vecBits, model));
  }

  /// The best layout whose low bits are `common` then `extra`, the latter being vector bits for the wide side only.
  /// `storePhase`: what the narrow side stores at once, if not by vectors.
  MemoryChoice choose(ArrayRef<Vec> common, ArrayRef<Vec> extra, bool widenStore, ArrayRef<Vec> storePhase = {}) const {
    const Side &wide = widenStore ? src : dst, &narrow = widenStore ? dst : src;
    Vecs vector = concat(common, extra);
    unsigned wordBits = Log2_32(std::max(model.bankBytes / elementBytes, 1u));
    unsigned bitsBelowRow = Log2_32(std::max(model.banks * model.bankBytes / elementBytes, 1u));
    ArrayRef<Vec> widePhase = phase(wide, vector.size());
    ArrayRef<Vec> narrowPhase = storePhase.empty() ? phase(narrow, common.size()) : storePhase;

    // `high`: what the bits above the vector span. The wide side's threads must lie in it, so that their vectors start
    // at multiples of the width. To the narrow side `extra` are bank bits over which its lanes should spread: a lane
    // whose place along `extra` is still free enters with one of those directions added.
    Vecs high;
    Span all(vector), covered;
    auto add = [&](Vec v) {
      if (!all.contains(v)) {
        all.add(v);
        high.push_back(v);
      }
    };
    for (Vec v : wide.threads)
      add(v);
    for (Vec v : narrowPhase)
      if (auto c = all.solve(v))
        covered.add(*c >> common.size() & maskTrailingOnes<uint64_t>(extra.size()));
    for (Vec v : narrowPhase) {
      if (all.contains(v))
        continue;
      for (auto [k, direction] : enumerate(extra))
        if (covered.add(Vec(1) << k)) {
          v ^= direction;
          break;
        }
      add(v);
    }
    for (Vec v : concat(narrow.threads, tile))
      add(v);

    // Lanes that share a word do not conflict: fill it with what both sides' phases touch, where there is such.
    Vecs word;
    Vecs candidates = concat(intersect(widePhase, narrowPhase), concat(narrowPhase, widePhase));
    for (Vec v : complement({}, intersect(concat(candidates, high), high)))
      if (vector.size() + word.size() < wordBits)
        word.push_back(v);

    // Rows: outside of what either phase touches, then sums over both, then what conflicts on one side, then on both.
    unsigned narrowPart = std::max<size_t>(common.size(), std::min<size_t>(wordBits, vector.size()));
    Vecs a = intersect(concat(widePhase, concat(vector, word)), high);
    Vecs b = intersect(concat(narrowPhase, concat(ArrayRef(vector).take_front(narrowPart), word)), high);
    Vecs both = intersect(a, b), onlyA = complement(both, a), onlyB = complement(both, b);
    Vecs rowCandidates = complement(concat(a, b), high);
    for (auto [x, y] : zip(onlyA, onlyB))
      rowCandidates.push_back(x ^ y);
    rowCandidates = concat(concat(rowCandidates, concat(onlyA, onlyB)), both);
    Vecs rows = complement(word, rowCandidates);
    rows.truncate(std::min<size_t>(rows.size(), tile.size() > bitsBelowRow ? tile.size() - bitsBelowRow : 0));
    Vecs bank = complement(concat(word, rows), high);

    MemoryChoice choice{concat(concat(vector, word), concat(bank, rows))};
    choice.storeBits = widenStore ? vector.size() : common.size();
    choice.loadBits = widenStore ? common.size() : vector.size();
    choice.cost = storeCost(choice) + cost(choice.bases, dst, choice.loadBits);
    return choice;
  }

  /// By vectors, or by stmatrix where that takes fewer instructions.
  unsigned storeCost(const MemoryChoice &choice) const {
    unsigned vectors = cost(choice.bases, src, choice.storeBits);
    if (!matrixStores)
      return vectors;
    Span memory(choice.bases);
    auto offsets = [&](ArrayRef<Vec> images) {
      Vecs result;
      for (Vec image : images)
        result.push_back(memory.solve(image).value_or(0));
      return result;
    };
    auto access = planMatrix(LinearLayout({int64_t(1) << choice.bases.size()},
                                          {{HwDim::Register, offsets(src.registers)},
                                           {HwDim::Lane, offsets(src.lanes)},
                                           {HwDim::Warp, offsets(ArrayRef(src.threads).drop_front(src.lanes.size()))}}),
                             elementBytes);
    unsigned accesses = 1u << (src.registers.size() - choice.storeBits);
    if (!access || access->instructions.size() >= accesses)
      return vectors;
    return access->instructions.size() * (1 + access->count * bankConflicts(*access, elementBytes, model));
  }

  /// Instructions plus wavefronts of a warp.
  unsigned cost(ArrayRef<Vec> bases, const Side &side, unsigned vecBits) const {
    Span memory(bases);
    Vecs offsets;
    for (Vec lane : side.lanes)
      offsets.push_back(memory.solve(lane).value_or(0));
    unsigned vecBytes = elementBytes << vecBits;
    unsigned phases = 1u << (offsets.size() - phaseBits(offsets.size(), vecBytes, model));
    unsigned accesses = 1u << (side.registers.size() - vecBits);
    return accesses + accesses * (phases << conflictBits(offsets, vecBytes, elementBytes, model));
  }

  const Side &src, &dst;
  unsigned elementBytes;
  const SharedMemoryModel &model;
  bool matrixStores;
  Vecs tile;
  unsigned maxVecBits;
};

/// Bits that select a pass, of src and of dst: see findPasses.
struct PassBit {
  HwDim dim;      ///< of src: Register, Warp or Lane
  unsigned ofSrc; ///< bit of that
  unsigned ofDst; ///< register bit
};
using PassBits = SmallVector<PassBit>;

} // namespace

/// All bases but those that `leaveOut` picks.
static Vecs allBut(const LinearLayout &layout, function_ref<bool(HwDim, unsigned)> leaveOut) {
  Vecs result;
  for (HwDim dim : {HwDim::Register, HwDim::Lane, HwDim::Warp, HwDim::Block})
    for (auto [i, basis] : enumerate(layout.bases(dim)))
      if (!leaveOut(dim, i))
        result.push_back(basis);
  return result;
}

/// A pass handles the elements of one coset of a subspace. A bit b of src and register bit j of dst can be a bit of the
/// pass number when everything else spans a space W without src(b), and src(b) ^ dst(j) is in W: then both sides agree
/// which elements a pass moves. Takes as few as keep the limits: registers first, high bits, which are no vectors,
/// first.
static PassBits findPasses(const LinearLayout &src, const LinearLayout &dst, unsigned elementBytes,
                           const ScratchLimits &limits) {
  PassBits bits;
  auto ofSrc = [&](HwDim dim, unsigned i) {
    return any_of(bits, [&](const PassBit &b) { return b.dim == dim && b.ofSrc == i; });
  };
  auto ofDst = [&](HwDim dim, unsigned i) {
    return dim == HwDim::Register && any_of(bits, [&](const PassBit &b) { return b.ofDst == i; });
  };
  unsigned tileBits = rank(allBut(src, ofSrc));
  auto fits = [&] {
    Span within(allBut(src, ofSrc));
    for (Vec v : allBut(dst, ofDst))
      within.add(v);
    return within.rank() + bits.size() == tileBits && all_of(bits, [&](const PassBit &b) {
             return within.contains(src.bases(b.dim)[b.ofSrc] ^ dst.bases(HwDim::Register)[b.ofDst]);
           });
  };
  auto tryBit = [&](HwDim dim, unsigned i, unsigned j, uint64_t mostBytes) {
    if (ofSrc(dim, i) || ofDst(HwDim::Register, j) || uint64_t(elementBytes) << (tileBits - bits.size()) <= mostBytes)
      return;
    bits.push_back({dim, i, j});
    if (!fits())
      bits.pop_back();
  };
  auto down = [](unsigned n) { return reverse(seq<unsigned>(0, n)); };
  unsigned srcRegisters = src.numBits(HwDim::Register), dstRegisters = dst.numBits(HwDim::Register);
  for (unsigned i : down(srcRegisters))
    for (unsigned j : down(dstRegisters))
      tryBit(HwDim::Register, i, j, std::min(limits.wantedBytes, limits.mostBytes));
  for (unsigned j : down(dstRegisters))
    for (HwDim dim : {HwDim::Warp, HwDim::Lane})
      for (unsigned i : down(src.numBits(dim)))
        tryBit(dim, i, j, limits.mostBytes);
  return bits;
}

void planShared(ConversionPlan &plan, const LinearLayout &src, const LinearLayout &dst, unsigned elementBytes,
                const SharedMemoryModel &model, const ScratchLimits &limits) {
  plan.kind = ConversionPlan::Kind::Shared;
  plan.idleLanes = src.without(HwDim::Block).freeMask(HwDim::Lane);
  plan.idleWarps = src.without(HwDim::Block).freeMask(HwDim::Warp);
  for (const PassBit &b : findPasses(src, dst, elementBytes, limits)) {
    plan.srcIterated.push_back({b.dim, b.ofSrc});
    plan.dstIterated.push_back(b.ofDst);
  }
  auto isPassBit = [&](HwDim dim, unsigned i) { return is_contained(plan.srcIterated, std::pair(dim, i)); };

  // Blocks keep their own elements, wherever these lie: only the difference of the two layouts moves offsets.
  Vecs blockMoves;
  for (auto [s, d] : zip_equal(src.bases(HwDim::Block), dst.bases(HwDim::Block)))
    blockMoves.push_back(s ^ d);

  Side from, to;
  for (auto [i, basis] : enumerate(src.bases(HwDim::Register)))
    if (!(plan.srcDuplicates >> i & 1) && !isPassBit(HwDim::Register, i))
      from.registers.push_back(basis);
  for (auto [i, basis] : enumerate(dst.bases(HwDim::Register)))
    if (!(plan.dstDuplicates >> i & 1) && !is_contained(plan.dstIterated, i))
      to.registers.push_back(basis);
  for (auto [i, basis] : enumerate(src.bases(HwDim::Lane)))
    from.lanes.push_back((plan.idleLanes >> i & 1) || isPassBit(HwDim::Lane, i) ? 0 : basis);
  from.threads = from.lanes;
  for (auto [i, basis] : enumerate(src.bases(HwDim::Warp)))
    if (!(plan.idleWarps >> i & 1) && !isPassBit(HwDim::Warp, i))
      from.threads.push_back(basis);
  to.lanes = Vecs(dst.bases(HwDim::Lane));
  to.threads = concat(concat(to.lanes, dst.bases(HwDim::Warp)), blockMoves);

  bool wholeWarps = !plan.idleLanes && none_of(plan.srcIterated, [](auto bit) { return bit.first == HwDim::Lane; });
  MemoryChoice choice = MemoryChooser(from, to, elementBytes, model, model.matrixStores && wholeWarps).best();
  plan.memory = LinearLayout(src.shape(), {{HwDim::Offset, choice.bases}});
  plan.vecStore = 1u << choice.storeBits;
  plan.vecLoad = 1u << choice.loadBits;
  plan.scratchElements = 1u << choice.bases.size();
  plan.cost = (choice.cost + 40) << plan.srcIterated.size(); // 40: two barriers and the latency of a round trip

  // Offsets of a position: pass bits of src count 0, those of dst only what sets them apart from src's.
  Span memory(choice.bases);
  auto offsetsOf = [&](const LinearLayout &layout, ArrayRef<Vec> blocks, function_ref<Vec(HwDim, unsigned)> passBit) {
    SmallVector<LinearLayout::In, 4> ins;
    for (HwDim dim : {HwDim::Register, HwDim::Lane, HwDim::Warp, HwDim::Block}) {
      Vecs images(dim == HwDim::Block ? blocks : layout.bases(dim));
      for (auto [i, image] : enumerate(images))
        image = memory.solve(image ^ passBit(dim, i)).value_or(0);
      ins.push_back({dim, images});
    }
    return LinearLayout({plan.scratchElements}, ins);
  };
  plan.store = offsetsOf(src, Vecs(blockMoves.size(), 0),
                         [&](HwDim dim, unsigned i) { return isPassBit(dim, i) ? src.bases(dim)[i] : 0; });
  plan.load = offsetsOf(dst, blockMoves, [&](HwDim dim, unsigned i) -> Vec {
    auto it = dim == HwDim::Register ? find(plan.dstIterated, i) : plan.dstIterated.end();
    if (it == plan.dstIterated.end())
      return 0;
    auto [srcDim, bit] = plan.srcIterated[it - plan.dstIterated.begin()];
    return src.bases(srcDim)[bit];
  });
}

/// The vectors among registers of the pass that are no duplicates.
static SmallVector<ConversionPlan::Access> accesses(const LinearLayout &offsets, uint64_t duplicates,
                                                    PassRegisters pass, unsigned vec) {
  SmallMapVector<unsigned, ConversionPlan::Access, 16> byOffset;
  for (unsigned r = 0; r < offsets.size(HwDim::Register); ++r) {
    if (r & (duplicates | pass.bits))
      continue;
    unsigned offset = offsets.apply({{HwDim::Register, r | pass.values}});
    ConversionPlan::Access &access = byOffset[offset & ~(vec - 1)];
    access.offset = offset & ~(vec - 1);
    access.registers.resize(vec);
    access.registers[offset & (vec - 1)] = r | pass.values;
  }
  SmallVector<ConversionPlan::Access> result;
  for (auto &[offset, access] : byOffset)
    result.push_back(std::move(access));
  return result;
}

PassRegisters passRegisters(const ConversionPlan &plan, unsigned pass, bool store) {
  PassRegisters result;
  for (auto [k, iterated] : enumerate(plan.srcIterated)) {
    if (store && iterated.first != HwDim::Register)
      continue;
    unsigned bit = store ? iterated.second : plan.dstIterated[k];
    result.bits |= uint64_t(1) << bit;
    result.values |= uint64_t(pass >> k & 1) << bit;
  }
  return result;
}

SmallVector<ConversionPlan::Access> ConversionPlan::stores(unsigned pass) const {
  return accesses(store, srcDuplicates, passRegisters(*this, pass, /*store=*/true), vecStore);
}

SmallVector<ConversionPlan::Access> ConversionPlan::loads(unsigned pass) const {
  return accesses(load, dstDuplicates, passRegisters(*this, pass, /*store=*/false), vecLoad);
}

ConversionPlan::Threads ConversionPlan::storers(unsigned pass) const {
  Threads threads{idleLanes, 0, idleWarps, 0};
  for (auto [k, iterated] : enumerate(srcIterated)) {
    auto [dim, bit] = iterated;
    if (dim == HwDim::Lane) {
      threads.laneMask |= 1u << bit;
      threads.lane |= (pass >> k & 1) << bit;
    } else if (dim == HwDim::Warp) {
      threads.warpMask |= 1u << bit;
      threads.warp |= (pass >> k & 1) << bit;
    }
  }
  return threads;
}

} // namespace tessera
