#pragma once
// Random layouts for property tests: distributed layouts as kernels have them, and wilder ones.
#include "tessera/ir/LinearLayout.h"

#include <algorithm>
#include <random>

namespace tessera::testing {

inline std::mt19937_64 &rng() {
  static std::mt19937_64 engine(20240229);
  return engine;
}
inline unsigned below(unsigned n) { return rng()() % n; }

/// How the bits of the tensor are dealt to the hardware.
struct RandomLayoutOptions {
  unsigned lanes = 5, warps = 2, blocks = 0; ///< bits
  unsigned copies = 3;                       ///< upper bound on zero or repeated bases strewn in
  bool mixed = false;                        ///< bases that move along several dimensions or bits at once
};

/// A surjective layout over `shape`: a shuffled basis of the tensor's bits plus copies, dealt to warps, lanes,
/// registers.
inline LinearLayout randomLayout(llvm::ArrayRef<int64_t> shape, const RandomLayoutOptions &o) {
  unsigned n = LinearLayout(shape, {}).numOutBits();
  std::vector<uint64_t> basis;
  for (unsigned i = 0; i < n; ++i)
    basis.push_back(uint64_t(1) << i);
  std::shuffle(basis.begin(), basis.end(), rng());
  if (o.mixed) // unitriangular row operations keep it a basis
    for (unsigned k = 0; k < 2 * n; ++k)
      if (unsigned i = below(n), j = below(n); i != j)
        basis[i] ^= basis[j];
  unsigned copies = o.copies ? below(o.copies + 1) : 0;
  if (n < o.lanes + o.warps + o.blocks) // fewer elements than threads: the rest are copies
    copies = std::max(copies, o.lanes + o.warps + o.blocks - n);
  for (unsigned k = 0; k < copies; ++k) {
    uint64_t copy = below(2) && n ? basis[below(n)] : 0;
    basis.insert(basis.begin() + below(basis.size() + 1), copy);
  }
  auto take = [&](unsigned count) {
    LinearLayout::Bases bases(basis.end() - count, basis.end());
    basis.resize(basis.size() - count);
    return bases;
  };
  auto block = take(o.blocks), warp = take(o.warps), lane = take(o.lanes), reg = take(basis.size());
  return LinearLayout(shape, {{HwDim::Register, reg}, {HwDim::Lane, lane}, {HwDim::Warp, warp}, {HwDim::Block, block}});
}

/// A blocked layout: `perThread` elements along the fastest dimension, then lanes, then warps, in `order`; then
/// repeats.
inline LinearLayout blockedLayout(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<unsigned> order,
                                  llvm::ArrayRef<int64_t> perThread, llvm::ArrayRef<int64_t> lanes,
                                  llvm::ArrayRef<int64_t> warps) {
  LinearLayout space(shape, {});
  LinearLayout::Bases reg, lane, warp;
  llvm::SmallVector<int64_t> reached(shape.size(), 1);
  auto deal = [&](LinearLayout::Bases &to, llvm::ArrayRef<int64_t> extent) {
    for (unsigned d : order)
      for (int64_t k = 1; k < extent[d]; k *= 2) {
        llvm::SmallVector<int64_t> at(shape.size(), 0);
        at[d] = reached[d] < shape[d] ? reached[d] : 0;
        to.push_back(space.flat(at));
        reached[d] *= 2;
      }
  };
  deal(reg, perThread), deal(lane, lanes), deal(warp, warps);
  llvm::SmallVector<int64_t> rest;
  for (unsigned d = 0; d < shape.size(); ++d)
    rest.push_back(std::max<int64_t>(shape[d] / reached[d], 1));
  deal(reg, rest);
  return LinearLayout(shape, {{HwDim::Register, reg}, {HwDim::Lane, lane}, {HwDim::Warp, warp}, {HwDim::Block, {}}});
}

} // namespace tessera::testing
