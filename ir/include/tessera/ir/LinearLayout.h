#pragma once
// Layouts as linear maps over F2 (Zhou et al., "Linear Layouts: Robust Code Generation of Efficient Tensor Computation
// Using F2", arXiv 2505.23819): hardware position bits -> tensor index bits. One class answers every layout question.
//
// An output is a *flat* index: the row-major position in `shape` (last dimension in the low bits). With power-of-two
// shapes this is the concatenation of the coordinates' bits, so reshape and expand_dims are the identity on bases and
// transpose permutes bits.
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace tessera {

/// Where a value lives: register of a lane, lane of a warp, warp of a program, program of a cluster; or offset in
/// memory (in elements).
enum class HwDim : uint8_t { Register, Lane, Warp, Block, Offset };
llvm::StringRef stringifyHwDim(HwDim dim); ///< "register", "lane", "warp", "block", "offset"

class LinearLayout {
public:
  using Basis = uint64_t; ///< a flat index: a bit vector over F2
  using Bases = llvm::SmallVector<Basis, 8>;
  struct In {
    HwDim dim;
    Bases bases; ///< bases[i] = image of input bit i
    bool operator==(const In &o) const { return dim == o.dim && bases == o.bases; }
  };

  LinearLayout() = default;
  /// `shape`: powers of two. Bases must be < numElements.
  LinearLayout(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<In> ins);

  /// The identity from `dim` (row-major offset) onto `shape`.
  static LinearLayout identity(llvm::ArrayRef<int64_t> shape, HwDim dim);

  // ---- facts ----
  llvm::ArrayRef<int64_t> shape() const { return shape_; }
  unsigned rank() const { return shape_.size(); }
  int64_t numElements() const;
  unsigned numOutBits() const;
  llvm::ArrayRef<In> ins() const { return ins_; }
  bool has(HwDim dim) const;
  llvm::ArrayRef<Basis> bases(HwDim dim) const; ///< empty when absent
  unsigned numBits(HwDim dim) const { return bases(dim).size(); }
  int64_t size(HwDim dim) const { return int64_t(1) << numBits(dim); }
  bool isSurjective() const;
  bool isInjective() const;
  /// Bits of `dim` that do not reach a new element (zero or dependent on the bits before them, in `ins` order): copies.
  uint64_t freeMask(HwDim dim) const;
  bool operator==(const LinearLayout &o) const { return shape_ == o.shape_ && ins_ == o.ins_; }

  // ---- evaluation ----
  Basis apply(llvm::ArrayRef<std::pair<HwDim, uint64_t>> at) const; ///< flat index
  llvm::SmallVector<int64_t> coords(Basis flat) const;              ///< flat index -> coordinates
  Basis flat(llvm::ArrayRef<int64_t> coords) const;

  // ---- shape operations: the layout of the result of the tensor operation ----
  LinearLayout reshape(llvm::ArrayRef<int64_t> shape) const;
  LinearLayout transpose(llvm::ArrayRef<int32_t> order) const; ///< result dim i = source dim order[i]
  LinearLayout expandDims(unsigned axis) const;
  LinearLayout slice(unsigned axis) const;                     ///< removes `axis`; its bases become 0 (copies)
  LinearLayout broadcast(llvm::ArrayRef<int64_t> shape) const; ///< source dims of size 1 grow: new register bits
  LinearLayout within(llvm::ArrayRef<int64_t> shape) const; ///< the same coordinates in a larger tensor
  LinearLayout removeZeroBases(HwDim dim) const;
  LinearLayout withIn(HwDim dim, Bases bases) const; ///< replaces or appends one input
  LinearLayout without(HwDim dim) const;

  // ---- algebra ----
  /// `this` repeated as `outer` says: extents and sizes multiply, this layout's bits are the low bits of each input and
  /// of each dimension. Ranks agree.
  LinearLayout times(const LinearLayout &outer) const;
  /// The `outer` for which `tile.times(outer)` is this layout, if there is one: then an instruction that moves or
  /// computes `tile` can be repeated to do the whole.
  std::optional<LinearLayout> divideLeft(const LinearLayout &tile) const;
  /// b ∘ a where this layout's flat output feeds `outer`'s single input `outerDim` (sizes must agree).
  LinearLayout then(const LinearLayout &outer, HwDim outerDim) const;
  /// For an invertible layout with one input: flat -> input, as a layout whose single input is Offset over shape
  /// {size}. For this = A (distributed) and memory = M (single input Offset, injective): the map A's inputs -> Offset,
  /// with M(result(x)) = A(x). Requires M surjective onto A's elements; the pseudo-inverse gives the lowest offset.
  LinearLayout toMemory(const LinearLayout &memory) const;
  /// For each input position of this layout, a position in `src` that holds the same element: the map inputs(this) ->
  /// (register, lane, warp, block) of src packed as one flat index over the shape {blocks, warps, lanes, registers} of
  /// src. Same lane/warp preferred where src holds copies. Requires src surjective.
  LinearLayout sourceIn(const LinearLayout &src) const;
  /// As sourceIn; nothing when `src` lacks an element.
  std::optional<LinearLayout> findIn(const LinearLayout &src) const;

  /// Consecutive elements along the register bits, low bits first: 2^k where bases(Register)[i] == 2^i for i < k.
  unsigned numConsecutiveRegisters() const;

  /// "register = [1, 2], lane = [4, …] -> [128, 64]"
  std::string str() const;

private:
  llvm::SmallVector<int64_t, 4> shape_;
  llvm::SmallVector<In, 4> ins_;
};

/// The layout as text, element by element: "T<lane>:<register>", with "W<warp>" and "B<block>" where there are several
/// of these, or the offset of a memory layout (through `storedAt`, for padded ones); holders of copies are separated by
/// "|". One row for each index of all but the last dimension; a one-dimensional layout is broken into rows of 16.
std::string renderTable(const LinearLayout &layout, llvm::function_ref<uint64_t(uint64_t)> storedAt = nullptr);
/// The reverse view: for each lane (and warp and block) the coordinates of the elements in its registers; for a memory
/// layout the elements in the order of offsets, 16 a row.
std::string renderHardware(const LinearLayout &layout);

} // namespace tessera
