// LinearLayout: evaluation, shape operations and composition. Everything is arithmetic on the bases; no element is
// visited.
#include "tessera/ir/LinearLayout.h"

#include "F2.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cassert>

using namespace llvm;

namespace tessera {

StringRef stringifyHwDim(HwDim dim) {
  switch (dim) {
  case HwDim::Register: return "register";
  case HwDim::Lane: return "lane";
  case HwDim::Warp: return "warp";
  case HwDim::Block: return "block";
  case HwDim::Offset: return "offset";
  }
  return "";
}

LinearLayout::LinearLayout(ArrayRef<int64_t> shape, ArrayRef<In> ins) : shape_(shape), ins_(ins) {
  assert(all_of(shape_, [](int64_t n) { return n > 0 && isPowerOf2_64(n); }) && "extents must be powers of two");
  assert(
      all_of(ins_, [&](const In &in) { return all_of(in.bases, [&](Basis b) { return b < Basis(numElements()); }); }) &&
      "basis out of the shape");
}

LinearLayout LinearLayout::identity(ArrayRef<int64_t> shape, HwDim dim) {
  LinearLayout result(shape, {});
  Bases bases;
  for (unsigned i = 0; i < result.numOutBits(); ++i)
    bases.push_back(Basis(1) << i);
  return result.withIn(dim, bases);
}

// ---- facts ---------------------------------------------------------------------------------------------------------

int64_t LinearLayout::numElements() const { return product_of(shape_); }
unsigned LinearLayout::numOutBits() const { return Log2_64(numElements()); }

bool LinearLayout::has(HwDim dim) const {
  return any_of(ins_, [&](const In &in) { return in.dim == dim; });
}

ArrayRef<LinearLayout::Basis> LinearLayout::bases(HwDim dim) const {
  const In *in = find_if(ins_, [&](const In &in) { return in.dim == dim; });
  return in == ins_.end() ? ArrayRef<Basis>() : ArrayRef<Basis>(in->bases);
}

bool LinearLayout::isSurjective() const {
  f2::Span span;
  for (const In &in : ins_)
    span.addAll(in.bases);
  return span.rank() == numOutBits();
}

bool LinearLayout::isInjective() const {
  return all_of(ins_, [&](const In &in) { return freeMask(in.dim) == 0; });
}

uint64_t LinearLayout::freeMask(HwDim dim) const {
  f2::Span span;
  uint64_t mask = 0;
  for (const In &in : ins_)
    for (auto [i, basis] : enumerate(in.bases))
      if (!span.add(basis) && in.dim == dim)
        mask |= uint64_t(1) << i;
  return mask;
}

unsigned LinearLayout::numConsecutiveRegisters() const {
  unsigned k = 0;
  for (Basis basis : bases(HwDim::Register)) {
    if (basis != Basis(1) << k)
      break;
    ++k;
  }
  return 1u << k;
}

std::string LinearLayout::str() const {
  std::string text;
  raw_string_ostream os(text);
  auto list = [&](auto &&values) {
    os << '[';
    interleaveComma(values, os);
    os << ']';
  };
  interleave(
      ins_, os,
      [&](const In &in) {
        os << stringifyHwDim(in.dim) << " = ";
        list(in.bases);
      },
      ", ");
  os << " -> ";
  list(shape_);
  return text;
}

// ---- evaluation ----------------------------------------------------------------------------------------------------

LinearLayout::Basis LinearLayout::apply(ArrayRef<std::pair<HwDim, uint64_t>> at) const {
  Basis result = 0;
  for (auto [dim, index] : at)
    result ^= f2::combine(bases(dim), index);
  return result;
}

SmallVector<int64_t> LinearLayout::coords(Basis flat) const {
  SmallVector<int64_t> result(rank());
  for (unsigned i = rank(); i-- > 0; flat /= shape_[i])
    result[i] = flat % shape_[i];
  return result;
}

LinearLayout::Basis LinearLayout::flat(ArrayRef<int64_t> coords) const {
  Basis result = 0;
  for (auto [n, c] : zip_equal(shape_, coords))
    result = result * n + c;
  return result;
}

// ---- shape operations ----------------------------------------------------------------------------------------------

/// `layout` over `shape`, with each basis replaced by `f` of its coordinates.
template <class F> static LinearLayout mapCoords(const LinearLayout &layout, ArrayRef<int64_t> shape, F f) {
  LinearLayout target(shape, {});
  SmallVector<LinearLayout::In, 4> ins(layout.ins());
  for (LinearLayout::In &in : ins)
    for (LinearLayout::Basis &basis : in.bases)
      basis = target.flat(f(layout.coords(basis)));
  return LinearLayout(shape, ins);
}

LinearLayout LinearLayout::reshape(ArrayRef<int64_t> shape) const {
  assert(product_of(shape) == numElements() && "reshape keeps the number of elements");
  return LinearLayout(shape, ins_);
}

LinearLayout LinearLayout::transpose(ArrayRef<int32_t> order) const {
  auto permute = [&](ArrayRef<int64_t> values) {
    return map_to_vector(order, [&](int32_t from) { return values[from]; });
  };
  return mapCoords(*this, permute(shape_), permute);
}

LinearLayout LinearLayout::expandDims(unsigned axis) const {
  SmallVector<int64_t> shape(ArrayRef<int64_t>{shape_});
  shape.insert(shape.begin() + axis, 1);
  return LinearLayout(shape, ins_);
}

LinearLayout LinearLayout::slice(unsigned axis) const {
  auto drop = [&](ArrayRef<int64_t> values) {
    SmallVector<int64_t> result{values};
    result.erase(result.begin() + axis);
    return result;
  };
  return mapCoords(*this, drop(shape_), drop);
}

LinearLayout LinearLayout::broadcast(ArrayRef<int64_t> shape) const {
  LinearLayout result = mapCoords(*this, shape, [](ArrayRef<int64_t> coords) { return coords; });
  Bases registers(result.bases(HwDim::Register));
  unsigned bit = 0; // the flat bit at which dimension i starts
  for (unsigned i = rank(); i-- > 0; bit += Log2_64(shape[i])) {
    assert((shape_[i] == shape[i] || shape_[i] == 1) && "only extents of 1 can grow");
    if (shape_[i] != shape[i])
      for (unsigned b = 0; b < Log2_64(shape[i]); ++b)
        registers.push_back(Basis(1) << (bit + b));
  }
  return result.withIn(HwDim::Register, registers);
}

LinearLayout LinearLayout::within(ArrayRef<int64_t> shape) const {
  return mapCoords(*this, shape, [](ArrayRef<int64_t> coords) { return coords; });
}

LinearLayout LinearLayout::removeZeroBases(HwDim dim) const {
  if (!has(dim))
    return *this;
  Bases kept;
  copy_if(bases(dim), std::back_inserter(kept), [](Basis b) { return b != 0; });
  return withIn(dim, kept);
}

LinearLayout LinearLayout::withIn(HwDim dim, Bases bases) const {
  LinearLayout result(*this);
  In *in = find_if(result.ins_, [&](const In &in) { return in.dim == dim; });
  if (in == result.ins_.end())
    result.ins_.push_back({dim, std::move(bases)});
  else
    in->bases = std::move(bases);
  return result;
}

LinearLayout LinearLayout::without(HwDim dim) const {
  LinearLayout result(*this);
  erase_if(result.ins_, [&](const In &in) { return in.dim == dim; });
  return result;
}

// ---- algebra -------------------------------------------------------------------------------------------------------

LinearLayout LinearLayout::times(const LinearLayout &outer) const {
  auto product = [](ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
    SmallVector<int64_t> result;
    for (auto [x, y] : zip_equal(a, b))
      result.push_back(x * y);
    return result;
  };
  SmallVector<int64_t> shape = product(shape_, outer.shape_);
  auto scale = [&](ArrayRef<int64_t> coords) { return product(coords, shape_); };
  LinearLayout result = mapCoords(*this, shape, [](ArrayRef<int64_t> coords) { return coords; });
  LinearLayout scaled = mapCoords(outer, shape, scale);
  for (const In &in : scaled.ins()) {
    Bases bases(result.bases(in.dim));
    bases.append(in.bases.begin(), in.bases.end());
    result = result.withIn(in.dim, std::move(bases));
  }
  return result;
}

std::optional<LinearLayout> LinearLayout::divideLeft(const LinearLayout &tile) const {
  if (tile.rank() != rank())
    return std::nullopt;
  SmallVector<int64_t> shape;
  for (auto [whole, part] : zip(shape_, tile.shape_)) {
    if (part > whole)
      return std::nullopt;
    shape.push_back(whole / part);
  }
  for (const In &in : tile.ins_)
    if (!has(in.dim) || numBits(in.dim) < in.bases.size())
      return std::nullopt;
  // Take the quotient as if it existed, and see whether it does.
  auto divide = [&](ArrayRef<int64_t> coords) {
    SmallVector<int64_t> result;
    for (auto [c, part] : zip(coords, tile.shape_))
      result.push_back(c / part);
    return result;
  };
  LinearLayout outer(*this);
  for (In &in : outer.ins_)
    in.bases.erase(in.bases.begin(), in.bases.begin() + tile.numBits(in.dim));
  outer = mapCoords(outer, shape, divide);
  LinearLayout product = tile.times(outer);
  for (const In &in : ins_)
    if (product.bases(in.dim) != ArrayRef(in.bases))
      return std::nullopt;
  return outer;
}

LinearLayout LinearLayout::then(const LinearLayout &outer, HwDim outerDim) const {
  assert(outer.size(outerDim) == numElements() && "the inner layout must fill the outer one's input");
  SmallVector<In, 4> ins(ins_);
  for (In &in : ins)
    for (Basis &basis : in.bases)
      basis = outer.apply({{outerDim, basis}});
  return LinearLayout(outer.shape_, ins);
}

LinearLayout LinearLayout::toMemory(const LinearLayout &memory) const {
  // Independent offset bits are taken in order, so the solution uses the lowest ones.
  f2::Span span(memory.bases(HwDim::Offset));
  SmallVector<In, 4> ins(ins_);
  for (In &in : ins)
    for (Basis &basis : in.bases) {
      auto offset = span.solve(basis);
      assert(offset && "memory does not hold an element");
      basis = offset.value_or(0);
    }
  return LinearLayout({memory.size(HwDim::Offset)}, ins);
}

std::optional<LinearLayout> LinearLayout::findIn(const LinearLayout &src) const {
  constexpr HwDim dims[] = {HwDim::Register, HwDim::Lane, HwDim::Warp, HwDim::Block};
  unsigned start[5] = {0}; // of each dimension's bits in the packed position
  for (int i = 0; i < 4; ++i)
    start[i + 1] = start[i] + src.numBits(dims[i]);

  // within[k]: what can be reached by moves in the first k + 1 dimensions, smallest moves first.
  f2::Span within[4];
  for (int k = 0; k < 4; ++k)
    for (int i = 0; i <= k; ++i)
      within[k].addAll(src.bases(dims[i]));
  // Among solutions in the own warp, other lanes come before other registers: a shuffle costs the same from any lane, a
  // register that depends on the lane costs selects.
  f2::Span lanesFirst(src.bases(HwDim::Lane));
  lanesFirst.addAll(src.bases(HwDim::Register));
  auto lanesFirstSolve = [&](Basis target) -> std::optional<uint64_t> {
    auto c = lanesFirst.solve(target);
    unsigned lanes = src.numBits(HwDim::Lane), registers = start[1];
    if (c)
      c = (*c >> lanes) | (*c & maskTrailingOnes<uint64_t>(lanes)) << registers;
    return c;
  };

  SmallVector<In, 4> ins(ins_);
  for (In &in : ins)
    for (auto [i, basis] : enumerate(in.bases)) {
      std::optional<uint64_t> found;
      for (int k = 0; k < 4 && !found; ++k) {
        // Stay at the own position in the dimensions after k, where the source has that position.
        Basis target = basis;
        uint64_t own = 0;
        for (int d = k + 1; d < 4; ++d)
          if (dims[d] == in.dim && i < src.numBits(in.dim)) {
            own = uint64_t(1) << (start[d] + i);
            target ^= src.bases(in.dim)[i];
          }
        found = k == 1 && in.dim == HwDim::Lane ? lanesFirstSolve(target) : within[k].solve(target);
        if (found)
          *found |= own;
      }
      if (!found)
        return std::nullopt;
      basis = *found;
    }
  return LinearLayout({src.size(HwDim::Block), src.size(HwDim::Warp), src.size(HwDim::Lane), src.size(HwDim::Register)},
                      ins);
}

LinearLayout LinearLayout::sourceIn(const LinearLayout &src) const {
  auto found = findIn(src);
  assert(found && "the source lacks an element");
  return found.value_or(LinearLayout());
}

} // namespace tessera
