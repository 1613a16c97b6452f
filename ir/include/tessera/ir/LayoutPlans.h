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
  /// Which lanes are served at once in loads of 16 bytes: those whose index is a combination of these, and sums of
  /// further ones; empty: lanes that follow each other, as in all other accesses.
  llvm::SmallVector<unsigned, 6> wideLoadLanes;
  bool matrixStores = false; ///< there is stmatrix
};

/// How a warp moves 8x8 matrices of 16-byte rows between memory and registers: ldmatrix and stmatrix. In each
/// instruction the lanes 8 i to 8 i + 7 give where the rows of matrix i start, and 32-bit register i of lane l has
///   plain:      bytes 4 (l % 4) to 4 (l % 4) + 3 of row l / 4;
///   transposed: 16-bit unit l / 4 of row 2 (l % 4), then the same of the next row.
struct MatrixAccess {
  bool transposed = false;
  unsigned count = 1; ///< matrices, and 32-bit registers, of an instruction: 1, 2 or 4
  /// (Lane, Warp, Block) -> offset, in elements, of the row whose start a lane gives in the first instruction
  LinearLayout rowOffset;
  struct Instruction {
    unsigned offset = 0; ///< in elements: rows are at rowOffset ^ offset
    /// Layout registers in the order of the elements of 32-bit register 0, then of register 1, and so on.
    llvm::SmallVector<unsigned, 16> registers;
  };
  llvm::SmallVector<Instruction> instructions;
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
  llvm::SmallVector<Access> stores(unsigned pass) const; ///< of src registers, by storers(pass)
  llvm::SmallVector<Access> loads(unsigned pass) const;  ///< into dst registers r with sameAs[r] == r
  /// Those with (lane & laneMask) == lane and (warp & warpMask) == warp.
  struct Threads {
    unsigned laneMask = 0, lane = 0, warpMask = 0, warp = 0;
  };
  Threads storers(unsigned pass) const;
  /// The stores of a pass by stmatrix, if they can be. Idle lanes take part: they hold copies.
  std::optional<MatrixAccess> matrixStores(unsigned pass, unsigned elementBytes) const;
  /// Lanes (warps) whose index has any of these bits set hold only copies and never store.
  unsigned idleLanes = 0, idleWarps = 0;

  LinearLayout memory;      ///< Offset -> flat index, of the elements of pass 0
  LinearLayout store, load; ///< src (dst) position -> offset, shape {scratchElements}; use them for Lane and Warp
  /// What the bits of the pass number are: of src a register bit, or a bit of warp or lane, so that every thread
  /// stores in one pass of several; of dst a register bit.
  llvm::SmallVector<std::pair<HwDim, unsigned>> srcIterated;
  llvm::SmallVector<unsigned> dstIterated;
  unsigned vecStore = 1, vecLoad = 1; ///< elements per access
  unsigned scratchElements = 0;       ///< of one pass; the passes use the same memory
  unsigned passes() const { return 1u << srcIterated.size(); }
};

/// Bounds on the scratch of a pass, both kept where possible.
struct ScratchLimits {
  uint64_t wantedBytes = UINT64_MAX; ///< for passes over registers, which cost a barrier each
  uint64_t mostBytes = UINT64_MAX;   ///< for passes over threads too, in which most wait for others
};

/// Plans src -> dst (same shape). `elementBytes`: 1, 2, 4 or 8.
ConversionPlan planConversion(const LinearLayout &src, const LinearLayout &dst, unsigned elementBytes,
                              const SharedMemoryModel &model = {}, ScratchLimits limits = {});
/// As above but never Shuffle: for tests and for measuring.
ConversionPlan planThroughShared(const LinearLayout &src, const LinearLayout &dst, unsigned elementBytes,
                                 const SharedMemoryModel &model = {}, ScratchLimits limits = {});

/// Wavefronts one warp-wide access of `vec` elements needs, 1 = conflict-free (relative to the minimum its width
/// allows).
unsigned bankConflicts(const LinearLayout &distributed, const LinearLayout &memory, unsigned vec, unsigned elementBytes,
                       const SharedMemoryModel &model = {});

/// How memory -> `distributed` is made of ldmatrix, if it can be. `memory`: single input Offset, of the shape of
/// `distributed` or a larger one, whose first part is then read (or any other part at multiples of its size).
std::optional<MatrixAccess> planMatrixLoad(const LinearLayout &distributed, const LinearLayout &memory,
                                           unsigned elementBytes);
/// The same for `distributed` -> memory by stmatrix; copies are written once by each holder.
std::optional<MatrixAccess> planMatrixStore(const LinearLayout &distributed, const LinearLayout &memory,
                                            unsigned elementBytes);
/// Wavefronts of each matrix, 1 = conflict-free.
unsigned bankConflicts(const MatrixAccess &access, unsigned elementBytes, const SharedMemoryModel &model = {});

/// Wavefronts that a warp needs to read `distributed` from memory, by ldmatrix where `matrixLoad` allows it and it can
/// be used, else by the widest vectors.
unsigned sharedLoadWavefronts(const LinearLayout &distributed, const LinearLayout &memory, unsigned elementBytes,
                              bool matrixLoad, const SharedMemoryModel &model = {});

/// What it costs a warp to move `distributed` to or from memory by vectors, the widest that both allow.
struct SharedAccessCost {
  unsigned accesses = 0;   ///< instructions
  unsigned wavefronts = 0; ///< of all of them
};
SharedAccessCost sharedAccessCost(const LinearLayout &distributed, const LinearLayout &memory, unsigned elementBytes,
                                  bool load, const SharedMemoryModel &model = {});

/// How wgmma finds an operand in shared memory (PTX ISA, asynchronous warpgroup matrix layouts). All numbers in bytes.
struct WarpGroupOperand {
  unsigned swizzleBytes = 0; ///< 0, 32, 64 or 128; the buffer starts at a multiple of 8 * max(16, swizzleBytes)
  bool transposed = false;   ///< the m or n dimension is contiguous, and not k
  unsigned leadingBytes = 0, strideBytes = 0;
  LinearLayout memory;
  unsigned elementBytes = 1;
  /// Where, from the start of the buffer, the operand of an instruction starts whose first element is at `coords`:
  /// multiples of the instruction's extents.
  uint64_t startBytes(llvm::ArrayRef<int64_t> coords) const;
};

/// How to describe to wgmma the operand that lies in `memory` (rank 2, single input Offset), with k along dimension
/// `kDim`. An instruction reads 32 bytes along k and `extent` (64 for A, N for B) along the other dimension.
std::optional<WarpGroupOperand> planWarpGroupOperand(const LinearLayout &memory, unsigned kDim, unsigned extent,
                                             unsigned elementBytes);

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
