// Tiles: constants, element-wise operations, casts and shapes.
#include "state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace mlir;

namespace tessera::detail {

// ---- shapes ---------------------------------------------------------------------------------------------------------

llvm::ArrayRef<std::int64_t> shape_of(Type t) {
  auto tile = dyn_cast<RankedTensorType>(t);
  return tile ? tile.getShape() : ArrayRef<std::int64_t>();
}

std::string to_string(llvm::ArrayRef<std::int64_t> shape) {
  return shape.empty() ? "a scalar" : fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

Type with_shape(Type t, llvm::ArrayRef<std::int64_t> shape) {
  const Type e = getElementTypeOrSelf(t);
  return shape.empty() ? e : RankedTensorType::get(shape, e);
}

void check_shape(llvm::ArrayRef<std::int64_t> shape, const location &w) {
  std::int64_t count = 1;
  for (std::int64_t d : shape) {
    if (d <= 0 || (d & (d - 1)))
      fail_at(fmt::format("tile shape {}: {} is not a power of two; round it up and mask what is too much",
                          to_string(shape), d),
              w);
    if (d > tt::maxTileElements || (count *= d) > tt::maxTileElements)
      fail_at(fmt::format("tile shape {} has more than {} elements; use more programs, or a loop", to_string(shape),
                          tt::maxTileElements),
              w);
  }
}

llvm::ArrayRef<std::int64_t> checked(const tl::dims &shape, const location &w) {
  if (shape.overflow)
    fail_at(fmt::format("a tile has at most {} dimensions", tl::dims::max_rank), w);
  const ArrayRef<std::int64_t> s(shape.extent.data(), static_cast<std::size_t>(shape.rank));
  check_shape(s, w);
  return s;
}

Value trace_state::to_shape(Value v, llvm::ArrayRef<std::int64_t> shape, Location loc) {
  if (shape_of(v) == shape)
    return v;
  if (shape_of(v).empty())
    return fold<tt::SplatOp>(loc, with_shape(v.getType(), shape), v);
  while (shape_of(v).size() < shape.size())
    v = fold<tt::ExpandDimsOp>(loc, v, 0);
  return shape_of(v) == shape ? v : fold<tt::BroadcastOp>(loc, with_shape(v.getType(), shape), v);
}

namespace {
/// NumPy's rule; false if the shapes do not agree.
bool merge(SmallVectorImpl<std::int64_t> &shape, ArrayRef<std::int64_t> other) {
  if (shape.size() < other.size())
    shape.insert(shape.begin(), other.size() - shape.size(), 1);
  for (std::size_t i = 0; i < other.size(); ++i) {
    std::int64_t &d = shape[shape.size() - 1 - i];
    const std::int64_t o = other[other.size() - 1 - i];
    if (d != o && d != 1 && o != 1)
      return false;
    d = std::max(d, o);
  }
  return true;
}

/// A negative axis counts from the end.
int checked_axis(int axis, std::size_t rank, const char *what, const location &w) {
  const int n = static_cast<int>(rank);
  if (axis < -n || axis >= n)
    fail_at(fmt::format("{}: axis {} is not in a tile of {} dimension{}", what, axis, n, n == 1 ? "" : "s"), w);
  return axis < 0 ? axis + n : axis;
}

tl::dims dims_of(ArrayRef<std::int64_t> shape) {
  tl::dims d;
  for (std::int64_t e : shape)
    d.push_back(e);
  return d;
}
} // namespace

void trace_state::broadcast(llvm::MutableArrayRef<Value> v, const location &w) {
  SmallVector<std::int64_t> shape;
  for (Value x : v)
    if (!merge(shape, shape_of(x)))
      fail_at(fmt::format("shapes {} and {} do not broadcast: dimensions must be equal or 1, counted from the last",
                          to_string(shape_of(v[0])), to_string(shape_of(x))),
              w);
  check_shape(shape, w);
  for (Value &x : v)
    x = to_shape(x, shape, at(w));
}

Value trace_state::fit(Value v, Type like, const char *what, const location &w) {
  const ArrayRef<std::int64_t> target = shape_of(like);
  SmallVector<std::int64_t> shape(target);
  if (!merge(shape, shape_of(v)) || ArrayRef<std::int64_t>(shape) != target)
    fail_at(fmt::format("{} is {}; it does not broadcast to {}", what, to_string(shape_of(v)), to_string(target)), w);
  return to_shape(v, target, at(w));
}

tl::dims shape_of(handle x, const location &w) {
  trace_state &s = trace_state::current(w);
  return dims_of(shape_of(s.use(x, w)));
}

// ---- constants ------------------------------------------------------------------------------------------------------

namespace {
const llvm::fltSemantics &exact = APFloat::IEEEquad(); // holds every number a literal may be

APFloat converted(APFloat v, const llvm::fltSemantics &to) {
  bool lossy;
  v.convert(to, APFloat::rmNearestTiesToEven, &lossy);
  return v;
}
} // namespace

Value trace_state::constant(element_type t, const literal &x, llvm::ArrayRef<std::int64_t> shape, const location &w) {
  const Location loc = at(w);
  const Type type = type_of(t);
  TypedAttr attr;
  if (auto f = dyn_cast<FloatType>(type)) {
    APFloat v = x.tag == literal::kind::real ? converted(APFloat(x.f), exact) : APFloat(exact);
    if (x.tag != literal::kind::real)
      v.convertFromAPInt(APInt(64, x.u), x.tag == literal::kind::integer, APFloat::rmNearestTiesToEven);
    if (is_float8(t.base) && !v.isNaN()) { // saturates, as conversions do
      const APFloat largest = converted(APFloat::getLargest(f.getFloatSemantics()), exact);
      v = minnum(maxnum(v, -largest), largest);
    }
    v = converted(v, f.getFloatSemantics());
    attr = FloatAttr::get(f, v);
  } else {
    // A number fits if it does as signed or as unsigned: masks such as 0xffffffff are written for i32 too.
    const unsigned bits = type.getIntOrFloatBitWidth();
    const bool fits = bits == 64 || (x.tag == literal::kind::integer
                                         ? x.i >= -(std::int64_t(1) << (bits - 1)) && x.i < (std::int64_t(1) << bits)
                                         : x.u >> bits == 0);
    if (!fits)
      fail_at(x.tag == literal::kind::integer
                  ? fmt::format("{} does not fit the element type {}", x.i, tessera::name(t.base))
                  : fmt::format("{} does not fit the element type {}", x.u, tessera::name(t.base)),
              w);
    attr = IntegerAttr::get(type, APInt(bits, x.u, false, /*implicitTrunc=*/true));
  }
  if (!shape.empty())
    attr = DenseElementsAttr::get(cast<ShapedType>(with_shape(type, shape)), static_cast<Attribute>(attr));
  return arith::ConstantOp::create(b, loc, attr);
}

handle constant(element_type t, const literal &x, const tl::dims &shape, const location &w) {
  trace_state &s = trace_state::current(w);
  const handle h = s.make(s.constant(t, x, checked(shape, w), w));
  s.values[h.id].number = shape.rank == 0;
  return h;
}

handle full(handle scalar, const tl::dims &shape, const location &w) {
  trace_state &s = trace_state::current(w);
  return s.make(s.fit(s.use(scalar, w), with_shape(s.use(scalar, w).getType(), checked(shape, w)), "the value", w));
}

handle arange(std::int64_t first, std::int64_t last, const location &w) {
  trace_state &s = trace_state::current(w);
  if (last <= first)
    fail_at(fmt::format("arange({}, {}) is empty", first, last), w);
  if (first < INT32_MIN || last - 1 > INT32_MAX)
    fail_at(fmt::format("arange({}, {}) is beyond i32; add a tl::i64 offset to a smaller one", first, last), w);
  const std::int64_t shape[] = {last - first};
  check_shape(shape, w);
  return s.make(tt::MakeRangeOp::create(s.b, s.at(w), with_shape(s.b.getI32Type(), shape),
                                        static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last)));
}

handle program_id(int axis, bool count, const location &w) {
  trace_state &s = trace_state::current(w);
  if (axis < 0 || axis > 2)
    fail_at(fmt::format("a grid has the axes 0, 1 and 2, not {}", axis), w);
  const Location loc = s.at(w);
  return s.make(count ? Value(tt::GetNumProgramsOp::create(s.b, loc, axis))
                      : Value(tt::GetProgramIdOp::create(s.b, loc, axis)));
}

// ---- element-wise ---------------------------------------------------------------------------------------------------

handle unary(unary_op op, dtype t, handle h, const location &where) {
  trace_state &s = trace_state::current(where);
  const Value a = s.use(h, where);
  Location loc = s.at(where);
  if (!where.line() && a.getDefiningOp())
    loc = a.getLoc(); // `!` cannot know its own line
  auto other = [&](std::int64_t i) { return s.constant({t}, {.i = i}, shape_of(a), where); };
  switch (op) {
  case unary_op::neg:
    return s.make(is_float(t) ? s.fold<arith::NegFOp>(loc, a) : s.fold<arith::SubIOp>(loc, other(0), a));
  case unary_op::bit_not: return s.make(s.fold<arith::XOrIOp>(loc, a, other(t == dtype::i1 ? 1 : -1)));
  case unary_op::abs:
    return s.make(is_float(t) ? s.fold<math::AbsFOp>(loc, a) : is_signed(t) ? s.fold<math::AbsIOp>(loc, a) : a);
  case unary_op::exp: return s.make(s.fold<math::ExpOp>(loc, a));
  case unary_op::exp2: return s.make(s.fold<math::Exp2Op>(loc, a));
  case unary_op::log: return s.make(s.fold<math::LogOp>(loc, a));
  case unary_op::log2: return s.make(s.fold<math::Log2Op>(loc, a));
  case unary_op::log10: return s.make(s.fold<math::Log10Op>(loc, a));
  case unary_op::sqrt: return s.make(s.fold<math::SqrtOp>(loc, a));
  case unary_op::sqrt_rn: return s.make(s.fold<tt::PreciseSqrtOp>(loc, a));
  case unary_op::rsqrt: return s.make(s.fold<math::RsqrtOp>(loc, a));
  case unary_op::sin: return s.make(s.fold<math::SinOp>(loc, a));
  case unary_op::cos: return s.make(s.fold<math::CosOp>(loc, a));
  case unary_op::tan: return s.make(s.fold<math::TanOp>(loc, a));
  case unary_op::tanh: return s.make(s.fold<math::TanhOp>(loc, a));
  case unary_op::erf: return s.make(s.fold<math::ErfOp>(loc, a));
  case unary_op::floor: return s.make(s.fold<math::FloorOp>(loc, a));
  case unary_op::ceil: return s.make(s.fold<math::CeilOp>(loc, a));
  case unary_op::trunc: return s.make(s.fold<math::TruncOp>(loc, a));
  case unary_op::round: return s.make(s.fold<math::RoundOp>(loc, a));
  case unary_op::rint: return s.make(s.fold<math::RoundEvenOp>(loc, a));
  }
  fail_at("unknown unary operation", where);
}

Value combine(trace_state &s, binary_op op, dtype t, Value a, Value b, Location loc) {
  const bool f = is_float(t), sgn = is_signed(t);
  switch (op) {
  case binary_op::add: return f ? s.fold<arith::AddFOp>(loc, a, b) : s.fold<arith::AddIOp>(loc, a, b);
  case binary_op::sub: return f ? s.fold<arith::SubFOp>(loc, a, b) : s.fold<arith::SubIOp>(loc, a, b);
  case binary_op::mul: return f ? s.fold<arith::MulFOp>(loc, a, b) : s.fold<arith::MulIOp>(loc, a, b);
  case binary_op::div:
    return f     ? s.fold<arith::DivFOp>(loc, a, b)
           : sgn ? s.fold<arith::DivSIOp>(loc, a, b)
                 : s.fold<arith::DivUIOp>(loc, a, b);
  case binary_op::rem:
    return f     ? s.fold<arith::RemFOp>(loc, a, b)
           : sgn ? s.fold<arith::RemSIOp>(loc, a, b)
                 : s.fold<arith::RemUIOp>(loc, a, b);
  case binary_op::bit_and: return s.fold<arith::AndIOp>(loc, a, b);
  case binary_op::bit_or: return s.fold<arith::OrIOp>(loc, a, b);
  case binary_op::bit_xor: return s.fold<arith::XOrIOp>(loc, a, b);
  case binary_op::shl: return s.fold<arith::ShLIOp>(loc, a, b);
  case binary_op::shr: return sgn ? s.fold<arith::ShRSIOp>(loc, a, b) : s.fold<arith::ShRUIOp>(loc, a, b);
  case binary_op::min:
  case binary_op::min_nan:
    if (f)
      return op == binary_op::min ? s.fold<arith::MinNumFOp>(loc, a, b) : s.fold<arith::MinimumFOp>(loc, a, b);
    return sgn ? s.fold<arith::MinSIOp>(loc, a, b) : s.fold<arith::MinUIOp>(loc, a, b);
  case binary_op::max:
  case binary_op::max_nan:
    if (f)
      return op == binary_op::max ? s.fold<arith::MaxNumFOp>(loc, a, b) : s.fold<arith::MaximumFOp>(loc, a, b);
    return sgn ? s.fold<arith::MaxSIOp>(loc, a, b) : s.fold<arith::MaxUIOp>(loc, a, b);
  case binary_op::pow: return s.fold<math::PowFOp>(loc, a, b);
  case binary_op::mulhi: return s.fold<tt::MulhiUIOp>(loc, a, b);
  case binary_op::div_rn: return s.fold<tt::PreciseDivFOp>(loc, a, b);
  }
  fail_at("unknown binary operation", s.last);
}

handle binary(binary_op op, dtype t, handle a, handle b, const location &w) {
  trace_state &s = trace_state::current(w);
  Value v[] = {s.use(a, w), s.use(b, w)};
  const location at = w.line() ? w : s.last;
  s.broadcast(v, at);
  return s.make(combine(s, op, t, v[0], v[1], s.at(at)));
}

handle compare(compare_op op, element_type t, handle a, handle b, const location &w) {
  trace_state &s = trace_state::current(w);
  Value v[] = {s.use(a, w), s.use(b, w)};
  s.broadcast(v, w);
  const Location loc = s.at(w);
  using P = arith::CmpIPredicate;
  using F = arith::CmpFPredicate;
  // Ordered, but for !=, which is true of a NaN as in C++.
  static constexpr F floats[] = {F::OLT, F::OLE, F::OGT, F::OGE, F::OEQ, F::UNE};
  static constexpr P signed_[] = {P::slt, P::sle, P::sgt, P::sge, P::eq, P::ne};
  static constexpr P unsigned_[] = {P::ult, P::ule, P::ugt, P::uge, P::eq, P::ne};
  if (t.pointer)
    for (Value &x : v)
      x = s.fold<tt::PtrToIntOp>(loc, with_shape(s.b.getI64Type(), shape_of(x)), x);
  else if (is_float(t.base))
    return s.make(s.fold<arith::CmpFOp>(loc, floats[int(op)], v[0], v[1]));
  return s.make(
      s.fold<arith::CmpIOp>(loc, !t.pointer && is_signed(t.base) ? signed_[int(op)] : unsigned_[int(op)], v[0], v[1]));
}

handle select(handle c, handle a, handle b, const location &w) {
  trace_state &s = trace_state::current(w);
  Value v[] = {s.use(c, w), s.use(a, w), s.use(b, w)};
  s.broadcast(v, w);
  return s.make(s.fold<arith::SelectOp>(s.at(w), v[0], v[1], v[2]));
}

handle fma(handle a, handle b, handle c, const location &w) {
  trace_state &s = trace_state::current(w);
  Value v[] = {s.use(a, w), s.use(b, w), s.use(c, w)};
  s.broadcast(v, w);
  return s.make(s.fold<math::FmaOp>(s.at(w), v[0], v[1], v[2]));
}

handle clamp(dtype t, handle x, handle lo, handle hi, bool propagate_nan, const location &w) {
  trace_state &s = trace_state::current(w);
  Value v[] = {s.use(x, w), s.use(lo, w), s.use(hi, w)};
  s.broadcast(v, w);
  const Location loc = s.at(w);
  if (is_float(t))
    return s.make(
        s.fold<tt::ClampFOp>(loc, v[0], v[1], v[2], propagate_nan ? tt::PropagateNan::ALL : tt::PropagateNan::NONE));
  return s.make(combine(s, binary_op::min, t, combine(s, binary_op::max, t, v[0], v[1], loc), v[2], loc));
}

// ---- casts ----------------------------------------------------------------------------------------------------------

namespace {
Value cast_integer(trace_state &s, dtype from, Value v, Type to, Location loc) {
  const unsigned n = getElementTypeOrSelf(v.getType()).getIntOrFloatBitWidth(), m = to.getIntOrFloatBitWidth();
  const Type type = with_shape(to, shape_of(v));
  if (n == m)
    return v; // signedness is not in the type
  if (n > m)
    return s.fold<arith::TruncIOp>(loc, type, v);
  return is_signed(from) ? s.fold<arith::ExtSIOp>(loc, type, v) : s.fold<arith::ExtUIOp>(loc, type, v);
}

Value cast_float(trace_state &s, Value v, Type to, tl::rounding r, Location loc) {
  const Type from = getElementTypeOrSelf(v.getType());
  if (from == to)
    return v;
  const unsigned n = from.getIntOrFloatBitWidth(), m = to.getIntOrFloatBitWidth();
  if (n == m || (n == 8 && m == 64)) // f16 and bf16, the two of fp8: f32 holds both
    return cast_float(s, cast_float(s, v, s.b.getF32Type(), r, loc), to, r, loc);
  const Type type = with_shape(to, shape_of(v));
  if (n == 8)
    return s.fold<tt::FpToFpOp>(loc, type, v, tt::RoundingModeAttr());
  if (m == 8) {
    const auto mode = r == tl::rounding::toward_zero ? tt::RoundingMode::RTZ : tt::RoundingMode::RTNE;
    return s.fold<tt::FpToFpOp>(loc, type, v, tt::RoundingModeAttr::get(s.b.getContext(), mode));
  }
  if (n < m)
    return s.fold<arith::ExtFOp>(loc, type, v);
  if (r == tl::rounding::toward_zero)
    return s.fold<tt::FpToFpOp>(loc, type, v, tt::RoundingModeAttr::get(s.b.getContext(), tt::RoundingMode::RTZ));
  return s.fold<arith::TruncFOp>(loc, type, v);
}
} // namespace

handle cast(element_type from, element_type to, handle h, tl::rounding r, const location &w) {
  trace_state &s = trace_state::current(w);
  Value v = s.use(h, w);
  if (from == to)
    return h;
  const Location loc = s.at(w);
  const Type target = s.type_of(to), type = with_shape(target, shape_of(v)), i64 = s.b.getI64Type();
  if (from.pointer && to.pointer)
    return s.make(v.getType() == type ? v : s.fold<tt::BitcastOp>(loc, type, v));
  if (from.pointer || to.pointer) {
    const dtype number = from.pointer ? to.base : from.base;
    if (!is_integer(number))
      fail_at("an address converts to and from integers only", w);
    if (from.pointer)
      return s.make(
          cast_integer(s, dtype::u64, s.fold<tt::PtrToIntOp>(loc, with_shape(i64, shape_of(v)), v), target, loc));
    return s.make(s.fold<tt::IntToPtrOp>(loc, type, cast_integer(s, from.base, v, i64, loc)));
  }
  if (is_float8(from.base) && !is_float(to.base)) // f32 holds every fp8 number, and every integer below what saturates
    return cast({dtype::f32}, to, s.make(cast_float(s, v, s.b.getF32Type(), r, loc)), r, w);
  if (is_float8(to.base) && !is_float(from.base))
    return cast({dtype::f32}, to, cast(from, {dtype::f32}, h, r, w), r, w);
  const bool ff = is_float(from.base), tf = is_float(to.base);
  if (to.base == dtype::i1) { // anything but 0
    const Value zero = s.constant(from, {}, shape_of(v), w);
    return s.make(ff ? s.fold<arith::CmpFOp>(loc, arith::CmpFPredicate::UNE, v, zero)
                     : s.fold<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, v, zero));
  }
  if (ff && tf)
    return s.make(cast_float(s, v, target, r, loc));
  if (ff)
    return s.make(is_signed(to.base) ? s.fold<arith::FPToSIOp>(loc, type, v) : s.fold<arith::FPToUIOp>(loc, type, v));
  if (tf)
    return s.make(is_signed(from.base) ? s.fold<arith::SIToFPOp>(loc, type, v) : s.fold<arith::UIToFPOp>(loc, type, v));
  return s.make(cast_integer(s, from.base, v, target, loc));
}

handle bitcast(element_type from, element_type to, handle h, const location &w) {
  trace_state &s = trace_state::current(w);
  const Value v = s.use(h, w);
  const Type type = with_shape(s.type_of(to), shape_of(v));
  auto bits = [](element_type t) {
    return t.pointer ? 64u : t.base == dtype::i1 ? 1u : static_cast<unsigned>(8 * size_of(t.base));
  };
  if (bits(from) != bits(to) || from.pointer != to.pointer)
    fail_at(fmt::format("bitcast needs types of one width, not {} and {} bits; pointers become pointers only",
                        bits(from), bits(to)),
            w);
  return s.make(v.getType() == type ? v : s.fold<tt::BitcastOp>(s.at(w), type, v));
}

handle add_pointer(handle p, handle offset, dtype t, bool subtract, const location &w) {
  trace_state &s = trace_state::current(w);
  const Location loc = s.at(w);
  Value o = s.use(offset, w);
  // Offsets are signed in the IR: narrow ones are widened, u32 to 64 bits.
  if (size_of(t) < 4)
    o = cast_integer(s, t, o, s.b.getI32Type(), loc);
  else if (t == dtype::u32)
    o = cast_integer(s, t, o, s.b.getI64Type(), loc);
  if (subtract)
    o = s.fold<arith::SubIOp>(
        loc,
        s.constant({getElementTypeOrSelf(o.getType()).isInteger(64) ? dtype::i64 : dtype::i32}, {}, shape_of(o), w), o);
  Value v[] = {s.use(p, w), o};
  s.broadcast(v, w);
  return s.make(s.fold<tt::AddPtrOp>(loc, v[0].getType(), v[0], v[1]));
}

// ---- changing shapes ------------------------------------------------------------------------------------------------

handle expand_dims(handle a, int axis, const location &w) {
  trace_state &s = trace_state::current(w);
  const Value v = s.use(a, w);
  const Location loc = s.at(w);
  axis = checked_axis(axis, shape_of(v).size() + 1, "expand_dims", w);
  return s.make(shape_of(v).empty() ? s.to_shape(v, {1}, loc) : s.fold<tt::ExpandDimsOp>(loc, v, axis));
}

handle subscript(handle a, std::span<const bool> is_new, const location &w) {
  trace_state &s = trace_state::current(w);
  const Value v = s.use(a, w);
  const auto kept = static_cast<std::size_t>(llvm::count(llvm::ArrayRef<bool>(is_new.data(), is_new.size()), false));
  if (kept != shape_of(v).size())
    fail_at(fmt::format("the subscript has tl::all {} time{}, the value is {}: one for each dimension", kept,
                        kept == 1 ? "" : "s", to_string(shape_of(v))),
            w);
  for (std::size_t i = 0; i < is_new.size(); ++i)
    if (is_new[i])
      a = expand_dims(a, static_cast<int>(i), w);
  return a;
}

handle broadcast_to(handle a, const tl::dims &shape, const location &w) {
  trace_state &s = trace_state::current(w);
  const Value v = s.use(a, w);
  return s.make(s.fit(v, with_shape(v.getType(), checked(shape, w)), "broadcast_to: the value", w));
}

handle reshape(handle a, const tl::dims &shape, bool can_reorder, const location &w) {
  trace_state &s = trace_state::current(w);
  const Value v = s.use(a, w);
  const ArrayRef<std::int64_t> from = shape_of(v), to = checked(shape, w);
  if (ShapedType::getNumElements(from) != ShapedType::getNumElements(to))
    fail_at(fmt::format("reshape from {} to {}: the numbers of elements differ", to_string(from), to_string(to)), w);
  if (from == to)
    return a;
  const Location loc = s.at(w);
  if (from.empty())
    return s.make(s.to_shape(v, to, loc));
  if (!to.empty())
    return s.make(s.fold<tt::ReshapeOp>(loc, to, v, can_reorder));
  return s.make(s.fold<tt::UnsplatOp>(loc, v));
}

handle permute(handle a, const tl::dims &order, const location &w) {
  trace_state &s = trace_state::current(w);
  const Value v = s.use(a, w);
  const int rank = static_cast<int>(shape_of(v).size());
  SmallVector<std::int32_t> o;
  if (order.rank == 0) {
    if (rank < 2)
      fail_at(fmt::format("trans needs two dimensions; the value is {}", to_string(shape_of(v))), w);
    for (int i = 0; i < rank; ++i)
      o.push_back(i);
    std::swap(o[o.size() - 1], o[o.size() - 2]);
  } else {
    if (order.rank != rank || order.overflow)
      fail_at(fmt::format("permute of {} needs {} dimensions, not {}", to_string(shape_of(v)), rank, order.rank), w);
    for (int i = 0; i < rank; ++i)
      o.push_back(checked_axis(static_cast<int>(order[i]), static_cast<std::size_t>(rank), "permute", w));
    for (int i = 0; i < rank; ++i)
      if (!llvm::is_contained(o, i))
        fail_at(fmt::format("permute: dimension {} is missing in the order", i), w);
  }
  return s.make(s.fold<tt::TransOp>(s.at(w), v, s.b.getDenseI32ArrayAttr(o)));
}

handle join(handle a, handle b, const location &w) {
  trace_state &s = trace_state::current(w);
  const Location loc = s.at(w);
  Value v[] = {s.use(a, w), s.use(b, w)};
  s.broadcast(v, w);
  if (!shape_of(v[0]).empty())
    return s.make(s.fold<tt::JoinOp>(loc, v[0], v[1]));
  for (Value &x : v)
    x = s.to_shape(x, {1}, loc);
  return reshape(s.make(s.fold<tt::JoinOp>(loc, v[0], v[1])), {2}, false, w);
}

std::array<handle, 2> split(handle a, const location &w) {
  trace_state &s = trace_state::current(w);
  Value v = s.use(a, w);
  const Location loc = s.at(w);
  const auto shape = shape_of(v);
  if (shape.empty() || shape.back() != 2)
    fail_at(fmt::format("split needs a last dimension of 2; the value is {}", to_string(shape)), w);
  const bool scalars = shape.size() == 1;
  if (scalars)
    v = s.fold<tt::ExpandDimsOp>(loc, v, 0);
  auto op = tt::SplitOp::create(s.b, loc, v);
  std::array<handle, 2> out;
  for (unsigned i = 0; i < 2; ++i)
    out[i] = s.make(scalars ? s.fold<tt::UnsplatOp>(loc, op->getResult(i)) : Value(op->getResult(i)));
  return out;
}

// Joining puts the halves beside each other; moving that dimension before `axis` puts them after each other.
handle cat(handle a, handle b, int axis, const location &w) {
  trace_state &s = trace_state::current(w);
  const SmallVector<std::int64_t> shape(shape_of(s.use(a, w)));
  if (s.use(a, w).getType() != s.use(b, w).getType() || shape.empty())
    fail_at(fmt::format("cat takes two tiles of one shape, not {} and {}", to_string(shape),
                        to_string(shape_of(s.use(b, w)))),
            w);
  axis = checked_axis(axis, shape.size(), "cat", w);
  tl::dims order, result;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    if (i == axis)
      order.push_back(static_cast<int>(shape.size()));
    order.push_back(i);
    result.push_back(shape[static_cast<std::size_t>(i)] * (i == axis ? 2 : 1));
  }
  return reshape(permute(join(a, b, w), order, w), result, false, w);
}

} // namespace tessera::detail
