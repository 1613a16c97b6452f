#pragma once
// Linear algebra over F2 on vectors of up to 64 bits: the arithmetic behind layouts. Internal to ir/lib.
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"

#include <cstdint>
#include <optional>

namespace tessera::f2 {

using Vec = uint64_t;
using Vecs = llvm::SmallVector<Vec, 8>;

inline bool parity(uint64_t v) { return llvm::popcount(v) & 1; }

/// A subspace that grows vector by vector and knows each of its members as a combination of the vectors added: bit i of
/// a combination stands for the i-th add(), of at most 64. Vectors that do not grow it take part in no combination.
class Span {
public:
  Span() = default;
  explicit Span(llvm::ArrayRef<Vec> vectors) { addAll(vectors); }

  /// True when `v` was not in the span yet.
  bool add(Vec v) {
    auto [rest, combination] = reduce(v);
    unsigned index = count_++;
    if (rest)
      rows_.push_back({rest, combination ^ uint64_t(1) << (index & 63)});
    return rest != 0;
  }
  void addAll(llvm::ArrayRef<Vec> vectors) {
    for (Vec v : vectors)
      add(v);
  }
  bool contains(Vec v) const { return reduce(v).first == 0; }
  /// The combination of added vectors that gives `v`; linear in v.
  std::optional<uint64_t> solve(Vec v) const {
    auto [rest, combination] = reduce(v);
    return rest ? std::nullopt : std::optional(combination);
  }
  unsigned rank() const { return rows_.size(); }

private:
  struct Row {
    Vec vec;
    uint64_t combination;
  };
  std::pair<Vec, uint64_t> reduce(Vec v) const {
    uint64_t combination = 0;
    for (const Row &row : rows_)
      if (v & llvm::bit_floor(row.vec)) {
        v ^= row.vec;
        combination ^= row.combination;
      }
    return {v, combination};
  }

  llvm::SmallVector<Row, 16> rows_; ///< a row's leading bit is clear in all rows after it
  unsigned count_ = 0;
};

inline unsigned rank(llvm::ArrayRef<Vec> vectors) { return Span(vectors).rank(); }

/// Those of `candidates` that grow span(base), one after the other.
inline Vecs complement(llvm::ArrayRef<Vec> base, llvm::ArrayRef<Vec> candidates) {
  Span span(base);
  Vecs result;
  for (Vec v : candidates)
    if (span.add(v))
      result.push_back(v);
  return result;
}

/// The sum of the images selected by the bits of `combination`.
inline Vec combine(llvm::ArrayRef<Vec> images, uint64_t combination) {
  Vec sum = 0;
  for (auto [i, v] : llvm::enumerate(images))
    if (combination >> i & 1)
      sum ^= v;
  return sum;
}

/// A basis of the combinations that give 0.
inline Vecs kernel(llvm::ArrayRef<Vec> images) {
  Span span;
  Vecs result;
  for (auto [i, v] : llvm::enumerate(images)) {
    if (auto combination = span.solve(v))
      result.push_back(*combination ^ uint64_t(1) << i);
    span.add(v);
  }
  return result;
}

/// A basis of span(a) ∩ span(b). Members of `a` itself come first, in their order.
inline Vecs intersect(llvm::ArrayRef<Vec> a, llvm::ArrayRef<Vec> b) {
  Vecs candidates, both(complement({}, a));
  Span inB(b);
  for (Vec v : a)
    if (inB.contains(v))
      candidates.push_back(v);
  unsigned numA = both.size();
  both.append(complement({}, b));
  for (uint64_t combination : kernel(both))
    candidates.push_back(combine(llvm::ArrayRef(both).take_front(numA), combination));
  return complement({}, candidates);
}

} // namespace tessera::f2
