#pragma once
// Decisions that both shared-memory allocation and code generation must take alike: how a convert_layout is done and
// how a reduction is done. Pure functions of linear layouts.
#include "tessera/ir/LinearLayout.h"

namespace tessera {

/// Shared memory as the hardware sees it.
struct SharedMemoryModel {
  unsigned banks = 32;
  unsigned bankBytes = 4;
  unsigned maxVectorBytes = 16;
};

/// How `convert_layout` from `src` to `dst` is carried out. In every kind the dst registers that hold the same element
/// as an earlier one are not computed: dst register r equals dst register sameAs[r] (<= r).
struct ConversionPlan {
  enum class Kind {
    Copy,       ///< same lane and warp: dst register r is src register registerOf[r]
    Shuffle,    ///< same warp: selects between registers and one warp shuffle per register
    Shared,     ///< through shared memory
    Impossible, ///< dst needs elements of another program of the cluster, or elements nobody holds
  };
  Kind kind = Kind::Copy;
  llvm::SmallVector<unsigned> sameAs;
  uint64_t srcDuplicates = 0, dstDuplicates = 0; ///< register bits that only reach elements of earlier register bits
  unsigned cost = 0;                             ///< instructions and wavefronts of a warp, roughly; 0 for Copy

  // ---- Copy ----
  llvm::SmallVector<unsigned> registerOf; ///< for each dst register the src register

  // ---- Shuffle: select, shuffle, select ----
  /// In lanes where parity(lane & laneBits) ^ parity(warp & warpBits) is 1, register r takes the value of register
  /// r ^ registerXor (all registers at once).
  struct Select {
    unsigned laneBits = 0, warpBits = 0, registerXor = 0;
  };
  llvm::SmallVector<Select> before; ///< 1. on the src registers, one after the other
  /// 2. tmp[r] = shuffle(src register registerOf[r], lane sourceLane(r, lane, warp)) for each r with sameAs[r] == r
  LinearLayout sourceLane;         ///< (Register of dst, Lane, Warp) -> lane, shape {lanes}
  llvm::SmallVector<Select> after; ///< 3. on tmp; then dst register r is tmp[sameAs[r]]
  /// When step 2 for register r is an exchange with lane ^ mask: the mask (0 = no shuffle at all).
  std::optional<unsigned> xorMask(unsigned r) const;

  // ---- Shared: passes() times { barrier if not the first; stores(pass); barrier; loads(pass) } ----
  /// One vector access of a lane: element i, of register registers[i], is at `offset` ^ store/load(lane, warp) + i.
  struct Access {
    unsigned offset = 0; ///< in elements
    llvm::SmallVector<unsigned, 8> registers;
  };
  llvm::SmallVector<Access> stores(unsigned pass) const; ///< of src registers, by threads that are not idle
  llvm::SmallVector<Access> loads(unsigned pass) const;  ///< into dst registers r with sameAs[r] == r
  /// Lanes (warps) whose index has any of these bits set hold only copies and must not store.
  unsigned idleLanes = 0, idleWarps = 0;

  LinearLayout memory;      ///< Offset -> flat index, of the elements of pass 0
  LinearLayout store, load; ///< src (dst) position -> offset, shape {scratchElements}; use them for Lane and Warp
  llvm::SmallVector<unsigned> srcIterated, dstIterated; ///< register bits that are the bits of the pass number
  unsigned vecStore = 1, vecLoad = 1;                   ///< elements per access
  unsigned scratchElements = 0;                         ///< of one pass; the passes use the same memory
  unsigned passes() const { return 1u << srcIterated.size(); }
};

/// Plans src -> dst (same shape). `elementBytes`: 1, 2, 4 or 8. `maxScratchBytes` bounds one pass where possible.
ConversionPlan planConversion(const LinearLayout &src, const LinearLayout &dst, unsigned elementBytes,
                              const SharedMemoryModel &model = {}, uint64_t maxScratchBytes = UINT64_MAX);
/// As above but never Shuffle: for tests and for measuring.
ConversionPlan planThroughShared(const LinearLayout &src, const LinearLayout &dst, unsigned elementBytes,
                                 const SharedMemoryModel &model = {}, uint64_t maxScratchBytes = UINT64_MAX);

/// Wavefronts one warp-wide access of `vec` elements needs, 1 = conflict-free (relative to the minimum its width
/// allows).
unsigned bankConflicts(const LinearLayout &distributed, const LinearLayout &memory, unsigned vec, unsigned elementBytes,
                       const SharedMemoryModel &model = {});

/// How a reduction over `axis` of a tensor with layout `src` is carried out:
///   1. within a lane: value[i] = combination of the src registers registersOf[i];
///   2. within a warp: for each mask in turn, value[i] = combine(value[i], shuffleXor(value[i], mask));
///   3. when scratchParts > 1: lanes and warps that are not idle store value[i] at scratchStore(i, lane, warp);
///   barrier;
///      value[i] = combination of scratch[k * resultElements + result(i, lane, warp)] over k < scratchParts.
/// No element is counted twice, however many copies `src` holds. Afterwards value[i] is result register i in every
/// lane.
struct ReductionPlan {
  LinearLayout src;
  unsigned axis = 0;
  /// Layout of the result: src.slice(axis) with duplicate registers removed.
  LinearLayout result;
  llvm::SmallVector<llvm::SmallVector<unsigned>> registersOf;
  llvm::SmallVector<unsigned> laneMasks;
  unsigned scratchParts = 1;
  unsigned scratchElements = 0; ///< scratchParts * resultElements, 0 when there is no scratch; for each operand
  LinearLayout scratchStore;    ///< (Register of result, Lane, Warp) -> offset, shape {scratchElements}
  unsigned idleLanes = 0, idleWarps = 0; ///< as in ConversionPlan
  bool crossesBlocks = false; ///< elements along the axis are in several programs of a cluster: not supported
};
ReductionPlan planReduction(const LinearLayout &src, unsigned axis);

} // namespace tessera
