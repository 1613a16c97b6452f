// Loads, stores, reductions, hints, checks and prints.
#include "state.h"

#include <fmt/format.h>

using namespace mlir;

namespace tessera::detail {

mlir::Value combine(trace_state &s, binary_op op, dtype t, Value a, Value b, Location loc); // tile.cpp

// ---- memory ---------------------------------------------------------------------------------------------------------

namespace {
tt::CacheModifier cache_of(tl::cache c, bool is_store, const location &w) {
  static constexpr const char *names[] = {"none", "ca", "cg", "wb", "cs", "wt", "cv"};
  using enum tl::cache;
  const bool ok = is_store ? c != ca && c != cv : c == none || c == ca || c == cg || c == cv;
  if (!ok)
    fail_at(fmt::format("cache::{} is not for {}; {}", names[int(c)], is_store ? "stores" : "loads",
                        is_store ? "they take none, wb, cg, cs, wt" : "they take none, ca, cg, cv"),
            w);
  using enum tt::CacheModifier;
  static constexpr tt::CacheModifier to[] = {NONE, CA, CG, WB, CS, WT, CV};
  return to[int(c)];
}

tt::EvictionPolicy evict_of(tl::evict e) {
  return e == tl::evict::first  ? tt::EvictionPolicy::EVICT_FIRST
         : e == tl::evict::last ? tt::EvictionPolicy::EVICT_LAST
                                : tt::EvictionPolicy::NORMAL;
}

Value mask_of(trace_state &s, handle mask, Value p, const location &w) {
  return mask.epoch ? s.fit(s.use(mask, w), p.getType(), "the mask", w) : Value();
}
} // namespace

// A bool takes a byte of memory: 0 or 1 is written, anything but 0 is true.
handle load(dtype t, handle ptr, const access &a, const location &w) {
  trace_state &s = trace_state::current(w);
  const Value p = s.use(ptr, w), mask = mask_of(s, a.mask, p, w);
  if (a.other.epoch && !mask)
    fail_at("other is the value where a mask is false; give a mask before it", w);
  const Location loc = s.at(w);
  Value other;
  if (a.other.epoch) {
    other = s.fit(s.use(a.other, w), p.getType(), "other", w);
    if (t == dtype::i1)
      other = s.fold<arith::ExtUIOp>(loc, with_shape(s.b.getI8Type(), shape_of(other)), other);
  }
  const auto cache = cache_of(a.cache, false, w);
  const Value v = tt::LoadOp::create(s.b, loc, p, mask, other, cache, evict_of(a.evict), a.is_volatile);
  if (t != dtype::i1)
    return s.make(v);
  return s.make(s.fold<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, v, s.constant({dtype::u8}, {}, shape_of(v), w)));
}

void store(dtype t, handle ptr, handle value, const access &a, const location &w) {
  trace_state &s = trace_state::current(w);
  const Value p = s.use(ptr, w), mask = mask_of(s, a.mask, p, w);
  Value v = s.fit(s.use(value, w), p.getType(), "the value stored", w);
  const auto cache = cache_of(a.cache, true, w);
  const Location loc = s.at(w);
  if (t == dtype::i1)
    v = s.fold<arith::ExtUIOp>(loc, with_shape(s.b.getI8Type(), shape_of(v)), v);
  tt::StoreOp::create(s.b, loc, p, v, mask, cache, evict_of(a.evict));
}

// ---- reductions -----------------------------------------------------------------------------------------------------

namespace {
/// What a reduction of `v` along `axis` works on.
struct reduction {
  SmallVector<Value> in;
  int axis;
  SmallVector<std::int64_t> kept; ///< the result's shape with keep_dims

  reduction(trace_state &s, ArrayRef<Value> v, int a, const location &w) : in(v), axis(a) {
    const SmallVector<std::int64_t> shape(shape_of(v[0]));
    for (Value x : v)
      if (shape_of(x) != ArrayRef<std::int64_t>(shape))
        fail_at(fmt::format("tiles reduced together have one shape, not {} and {}", to_string(shape),
                            to_string(shape_of(x))),
                w);
    if (shape.empty())
      fail_at("a scalar has no axis to reduce", w);
    kept = shape;
    const int rank = static_cast<int>(shape.size());
    if (axis == all_axes) {
      for (Value &x : in)
        if (rank > 1)
          x = s.fold<tt::ReshapeOp>(s.at(w), ArrayRef<std::int64_t>(ShapedType::getNumElements(shape)), x, false);
      axis = 0;
      llvm::fill(kept, 1);
      return;
    }
    if (axis < -rank || axis >= rank)
      fail_at(fmt::format("axis {} is not in a tile of shape {}", axis, to_string(shape)), w);
    if (axis < 0)
      axis += rank;
    kept[static_cast<std::size_t>(axis)] = 1;
  }

  /// Builds the operation with an empty combine block; `body` fills it and gives what it returns.
  template <class Body> SmallVector<Value> build(trace_state &s, bool keep_dims, Location loc, Body body) {
    auto op = tt::ReduceOp::create(s.b, loc, in, axis);
    {
      OpBuilder::InsertionGuard guard(s.b);
      Region &region = op.getCombineOp();
      Block *block = region.empty() ? s.b.createBlock(&region) : &region.front();
      s.b.setInsertionPointToEnd(block);
      tt::ReduceReturnOp::create(s.b, loc, ValueRange(body(block)));
    }
    SmallVector<Value> out;
    for (Value r : op.getResults()) {
      if (keep_dims)
        r = shape_of(r).empty() ? s.to_shape(r, kept, loc) : s.fold<tt::ExpandDimsOp>(loc, r, axis);
      out.push_back(r);
    }
    return out;
  }
};
} // namespace

handle reduce(reduce_op op, dtype t, handle x, int axis, bool keep_dims, const location &w) {
  static constexpr binary_op combiners[] = {binary_op::add,     binary_op::max,     binary_op::min,
                                            binary_op::max_nan, binary_op::min_nan, binary_op::bit_xor};
  trace_state &s = trace_state::current(w);
  reduction r(s, s.use(x, w), axis, w);
  const Location loc = s.at(w);
  return s.make(r.build(s, keep_dims, loc, [&](Block *block) {
    const Type e = getElementTypeOrSelf(r.in[0].getType());
    block->addArguments({e, e}, {loc, loc});
    return SmallVector<Value>{combine(s, combiners[int(op)], t, block->getArgument(0), block->getArgument(1), loc)};
  })[0]);
}

// Left wins if it is better, or equal and earlier. A number is better than NaN, and NaNs are equal: so the index is
// that of what tl::max or tl::min gives.
std::array<handle, 2> reduce_index(bool maximum, dtype t, handle x, int axis, bool keep_dims, const location &w) {
  trace_state &s = trace_state::current(w);
  const Location loc = s.at(w);
  const Value v = s.use(x, w);
  const SmallVector<std::int64_t> shape(shape_of(v));
  const int rank = static_cast<int>(shape.size());
  const bool flat = axis == all_axes;
  const std::int64_t n = flat                           ? ShapedType::getNumElements(shape)
                         : axis >= -rank && axis < rank ? shape[static_cast<std::size_t>((axis + rank) % rank)]
                                                        : 1;
  Value index = tt::MakeRangeOp::create(s.b, loc, with_shape(s.b.getI32Type(), {n}), 0, static_cast<std::uint32_t>(n));
  if (rank > 1) {
    if (flat) {
      index = s.fold<tt::ReshapeOp>(loc, ArrayRef<std::int64_t>(shape), index, false);
    } else if (axis >= -rank && axis < rank) { // else the reduction reports the axis
      const int a = (axis + rank) % rank;
      for (int i = 0; i < rank; ++i)
        if (i != a)
          index = s.fold<tt::ExpandDimsOp>(loc, index, i);
      index = s.to_shape(index, shape, loc);
    }
  }
  reduction r(s, rank && (flat || (axis >= -rank && axis < rank)) ? ArrayRef<Value>{v, index} : ArrayRef<Value>{v},
              axis, w);
  const auto out = r.build(s, keep_dims, loc, [&](Block *block) {
    const Type e = getElementTypeOrSelf(v.getType()), i32 = s.b.getI32Type();
    block->addArguments({e, i32, e, i32}, SmallVector<Location>(4, loc));
    const Value a = block->getArgument(0), ia = block->getArgument(1), c = block->getArgument(2),
                ic = block->getArgument(3);
    auto both = [&](Value p, Value q) { return s.fold<arith::AndIOp>(loc, p, q); };
    auto either = [&](Value p, Value q) { return s.fold<arith::OrIOp>(loc, p, q); };
    Value better, no_worse;
    if (is_float(t)) {
      auto cmp = [&](arith::CmpFPredicate p, Value l, Value q) { return s.fold<arith::CmpFOp>(loc, p, l, q); };
      using P = arith::CmpFPredicate;
      const Value c_nan = cmp(P::UNO, c, c);
      better = either(cmp(maximum ? P::OGT : P::OLT, a, c), both(cmp(P::ORD, a, a), c_nan));
      no_worse = either(cmp(maximum ? P::OGE : P::OLE, a, c), c_nan);
    } else {
      using P = arith::CmpIPredicate;
      const P more = is_signed(t) ? P::sgt : P::ugt, less = is_signed(t) ? P::slt : P::ult;
      better = s.fold<arith::CmpIOp>(loc, maximum ? more : less, a, c);
      const P at_least = is_signed(t) ? P::sge : P::uge, at_most = is_signed(t) ? P::sle : P::ule;
      no_worse = s.fold<arith::CmpIOp>(loc, maximum ? at_least : at_most, a, c);
    }
    // A select, not logic: where the order of the indices is known, one of the two is all that is left.
    const Value left =
        s.fold<arith::SelectOp>(loc, s.fold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, ia, ic), no_worse, better);
    return SmallVector<Value>{s.fold<arith::SelectOp>(loc, left, a, c), s.fold<arith::SelectOp>(loc, left, ia, ic)};
  });
  return {s.make(out[0]), s.make(out[1])};
}

std::uint32_t open_combine(std::span<const handle> x, int axis, std::span<handle> args, const location &w) {
  trace_state &s = trace_state::current(w);
  SmallVector<Value> in;
  for (handle h : x)
    in.push_back(s.use(h, w));
  reduction r(s, in, axis, w); // checks before the region opens
  construct &c = s.open_construct(w);
  c.operands.assign(in.begin(), in.end());
  c.axis = axis;
  frame &f = s.push(c, region_kind::combine);
  for (std::size_t i = 0; i < args.size(); ++i)
    args[i] = s.make(f.block->addArgument(getElementTypeOrSelf(in[i % in.size()].getType()), c.loc));
  return c.id;
}

void close_combine(std::span<handle> results, bool keep_dims, const location &w) {
  trace_state &s = trace_state::current(w);
  construct &c = *s.constructs.back();
  SmallVector<Value> returned;
  for (handle h : results) {
    returned.push_back(s.use(h, w));
    if (!shape_of(returned.back()).empty())
      fail_at("a combine function works on scalars and returns scalars", w);
  }
  for (Operation &op : *s.frames.back().block)
    if (!isMemoryEffectFree(&op))
      fail_at("a combine function computes from its arguments only: no loads, stores, prints or asserts", w);
  frame f = s.pop();
  reduction r(s, ArrayRef<Value>(c.operands), c.axis, w);
  const auto out = r.build(s, keep_dims, c.loc, [&](Block *block) {
    for (BlockArgument a : f.block->getArguments())
      a.replaceAllUsesWith(block->addArgument(a.getType(), a.getLoc()));
    SmallVector<Value> values;
    for (Value v : returned) { // an argument returned as it is moved to the new block
      auto a = dyn_cast<BlockArgument>(v);
      values.push_back(a && a.getOwner() == f.block ? Value(block->getArgument(a.getArgNumber())) : v);
    }
    block->getOperations().splice(block->end(), f.block->getOperations());
    s.b.setInsertionPointToEnd(block);
    return values;
  });
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = s.make(out[i]);
  s.constructs.pop_back();
}

// ---- hints and debugging --------------------------------------------------------------------------------------------

handle set_hint(hint h, handle x, const tl::dims &values, const location &w) {
  static constexpr const char *names[] = {"tt.divisibility", "tt.contiguity", "tt.constancy"};
  trace_state &s = trace_state::current(w);
  const Value v = s.use(x, w);
  const std::size_t rank = std::max<std::size_t>(shape_of(v).size(), 1);
  if (static_cast<std::size_t>(values.rank) != rank || values.overflow)
    fail_at(fmt::format("the hint has {} number{}, the value is {}: one for each dimension", values.rank,
                        values.rank == 1 ? "" : "s", to_string(shape_of(v))),
            w);
  SmallVector<std::int32_t> list;
  for (int i = 0; i < values.rank; ++i) {
    if (values[i] <= 0 || values[i] > INT32_MAX)
      fail_at(fmt::format("a hint is a positive number, not {}", values[i]), w);
    list.push_back(static_cast<std::int32_t>(values[i]));
  }
  const auto attr =
      DenseIntElementsAttr::get(RankedTensorType::get({values.rank}, s.b.getI32Type()), ArrayRef<std::int32_t>(list));
  s.keep({v, names[int(h)], attr, w});
  return x;
}

/// Puts a promise on the operation that makes the value, or on the function for an argument. What a region's argument
/// stands for is known when the region closes.
void trace_state::keep(const promise &p) {
  if (Operation *op = p.of.getDefiningOp())
    return op->setAttr(p.name, p.numbers);
  auto a = cast<BlockArgument>(p.of);
  if (a.getOwner() != frames[0].block) {
    auto owner = llvm::find_if(frames, [&](const frame &f) { return f.block == a.getOwner(); });
    if (owner->kind == region_kind::combine)
      fail_at("a combine function computes from its arguments only: a hint has no meaning there", p.where);
    owner->promises.push_back(p);
  } else if (p.name == llvm::StringRef("tt.divisibility")) { // scalars have no other facts
    const auto wanted = *p.numbers.value_begin<std::int32_t>();
    auto known = function.getArgAttrOfType<IntegerAttr>(a.getArgNumber(), p.name); // of this launch's argument
    function.setArgAttr(a.getArgNumber(), p.name,
                        b.getI32IntegerAttr(std::max(wanted, known ? static_cast<std::int32_t>(known.getInt()) : 1)));
  }
}

void assume(handle condition, const location &w) {
  trace_state &s = trace_state::current(w);
  const Value c = s.use(condition, w);
  if (!shape_of(c).empty())
    fail_at(fmt::format("assume takes a scalar condition, not a tile of shape {}", to_string(shape_of(c))), w);
  tt::AssumeOp::create(s.b, s.at(w), c);
}

void device_assert(handle condition, std::string_view message, handle mask, const location &w) {
  trace_state &s = trace_state::current(w);
  Value c = s.use(condition, w);
  const Location loc = s.at(w);
  if (mask.epoch) { // where the mask is false the condition does not count
    Value v[] = {c, s.use(mask, w)};
    s.broadcast(v, w);
    c = s.fold<arith::OrIOp>(loc, v[0],
                             s.fold<arith::XOrIOp>(loc, v[1], s.constant({dtype::i1}, {.i = 1}, shape_of(v[1]), w)));
  }
  tt::AssertOp::create(s.b, loc, c, StringRef(message.data(), message.size()));
}

void device_print(std::string_view prefix, std::span<const handle> values, std::span<const element_type> types,
                  bool hex, const location &w) {
  trace_state &s = trace_state::current(w);
  SmallVector<Value> args;
  SmallVector<std::int32_t> is_signed;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Value v = s.use(values[i], w);
    if (!types[i].pointer && is_float8(types[i].base))
      v = s.use(cast(types[i], {dtype::f32}, values[i], tl::rounding::nearest, w), w);
    args.push_back(v);
    is_signed.push_back(!types[i].pointer && tessera::is_signed(types[i].base));
  }
  tt::PrintOp::create(s.b, s.at(w), StringRef(prefix.data(), prefix.size()), hex, args, is_signed);
}

} // namespace tessera::detail
