#pragma once
// The line between the headers and the IR builder: opaque ids cross it, never an MLIR type. Everything here is called
// by the language's operators and functions; users have no need to.
#include <array>
#include <concepts>
#include <cstdint>
#include <source_location>
#include <span>
#include <string_view>

#include <tessera/dsl/dtype.h>
#include <tessera/export.h>

namespace tessera::tl {

/// The shape of a tile, outermost dimension first; empty for a scalar.
struct dims {
  static constexpr int max_rank = 8;
  std::array<std::int64_t, max_rank> extent{};
  int rank = 0;
  bool overflow = false; ///< more dimensions were given than a tile may have; reported where the shape is used

  constexpr dims() = default;
  /// Integers of any types, constants of an enumeration: `{c.rows, v.size()}`; one is a shape of one dimension.
  template <class... E>
    requires(sizeof...(E) > 0 && ((std::convertible_to<E, std::int64_t> && !float_element<E>) && ...))
  constexpr dims(E... e) {
    (push_back(static_cast<std::int64_t>(e)), ...);
  }
  constexpr void push_back(std::int64_t e) {
    if (rank < max_rank) extent[static_cast<std::size_t>(rank++)] = e;
    else overflow = true;
  }
  constexpr std::int64_t operator[](int i) const { return extent[static_cast<std::size_t>(i)]; }
  constexpr bool operator==(const dims &) const = default;
};

/// Which memory caches an access uses (PTX's names).
enum class cache : std::uint8_t { none, ca, cg, wb, cs, wt, cv };
/// How soon a cache line may leave the cache.
enum class evict : std::uint8_t { normal, first, last };
/// Whether a NaN operand of minimum, maximum or clamp gives NaN (all) or is ignored (none).
enum class propagate_nan : bool { none, all };
enum class rounding : std::uint8_t { nearest, toward_zero };
/// How dot multiplies f32: as it is; rounded to the 10 bits of mantissa that matrix units take; or split into three such
/// products, which keeps nearly all of its bits.
enum class precision : std::uint8_t { ieee, tf32, tf32x3 };

/// Options of a traced loop: `tl::range(0, K, BK, {.stages = 3})`. Zero means the compiler chooses.
struct loop_options {
  int stages = 0; ///< software pipelining depth
  int unroll = 0; ///< copies of the body per iteration
};

} // namespace tessera::tl

namespace tessera::detail {

using location = std::source_location;

struct trace_state;

/// A value of the trace numbered `epoch`, or a variable of it: read_variable gives the value that one has now.
struct handle {
  std::uint32_t id = 0, epoch = 0;
  bool variable = false;
};

/// A host number on its way to a constant of some element type.
struct literal {
  enum class kind : std::uint8_t { boolean, integer, unsigned_integer, real } tag = kind::integer;
  union {
    std::int64_t i = 0;
    std::uint64_t u;
    double f;
  };
};

enum class unary_op : std::uint8_t {
  neg, bit_not, abs, exp, exp2, log, log2, log10, sqrt, sqrt_rn, rsqrt, sin, cos, tan, tanh, erf, floor, ceil, trunc,
  round, rint
};
enum class binary_op : std::uint8_t {
  add, sub, mul, div, rem, bit_and, bit_or, bit_xor, shl, shr, min, max, min_nan, max_nan, pow, mulhi, div_rn
};
enum class compare_op : std::uint8_t { lt, le, gt, ge, eq, ne };
enum class reduce_op : std::uint8_t { sum, max, min, max_nan, min_nan, bit_xor };
enum class hint : std::uint8_t { divisibility, contiguity, constancy };

inline constexpr int all_axes = INT32_MIN;

// ---- values ---------------------------------------------------------------------------------------------------------
TESSERA_API tl::dims shape_of(handle x, const location &w);
TESSERA_API handle constant(element_type t, const literal &x, const tl::dims &shape, const location &w);
TESSERA_API handle full(handle scalar, const tl::dims &shape, const location &w);
TESSERA_API handle arange(std::int64_t first, std::int64_t last, const location &w);
TESSERA_API handle program_id(int axis, bool count, const location &w);

TESSERA_API handle unary(unary_op op, dtype t, handle a, const location &w);
TESSERA_API handle binary(binary_op op, dtype t, handle a, handle b, const location &w);
TESSERA_API handle compare(compare_op op, element_type t, handle a, handle b, const location &w);
TESSERA_API handle select(handle c, handle a, handle b, const location &w);
TESSERA_API handle fma(handle a, handle b, handle c, const location &w);
TESSERA_API handle clamp(dtype t, handle x, handle lo, handle hi, bool propagate_nan, const location &w);
TESSERA_API handle cast(element_type from, element_type to, handle a, tl::rounding r, const location &w);
TESSERA_API handle bitcast(element_type from, element_type to, handle a, const location &w);
TESSERA_API handle add_pointer(handle p, handle offset, dtype offset_type, bool subtract, const location &w);

// ---- shapes ---------------------------------------------------------------------------------------------------------
TESSERA_API handle subscript(handle a, std::span<const bool> is_new, const location &w);
TESSERA_API handle expand_dims(handle a, int axis, const location &w);
TESSERA_API handle broadcast_to(handle a, const tl::dims &shape, const location &w);
TESSERA_API handle reshape(handle a, const tl::dims &shape, bool can_reorder, const location &w);
TESSERA_API handle permute(handle a, const tl::dims &order, const location &w);
TESSERA_API handle join(handle a, handle b, const location &w);
TESSERA_API std::array<handle, 2> split(handle a, const location &w);
TESSERA_API handle cat(handle a, handle b, int axis, const location &w);

// ---- memory ---------------------------------------------------------------------------------------------------------
struct access {
  handle mask{}, other{}; ///< absent when epoch is 0
  tl::cache cache = tl::cache::none;
  tl::evict evict = tl::evict::normal;
  bool is_volatile = false;
};
TESSERA_API handle load(dtype t, handle p, const access &a, const location &w);
TESSERA_API void store(dtype t, handle p, handle value, const access &a, const location &w);

// ---- reductions -----------------------------------------------------------------------------------------------------
TESSERA_API handle reduce(reduce_op op, dtype t, handle x, int axis, bool keep_dims, const location &w);
/// The extreme value and the lowest index it is at.
TESSERA_API std::array<handle, 2> reduce_index(bool maximum, dtype t, handle x, int axis, bool keep_dims,
                                               const location &w);
/// Opens the combine region of a reduction of `x`; `args` receives the accumulated, then the new scalars.
TESSERA_API std::uint32_t open_combine(std::span<const handle> x, int axis, std::span<handle> args, const location &w);
/// `results` holds the combined scalars and receives the reduced values.
TESSERA_API void close_combine(std::span<handle> results, bool keep_dims, const location &w);

// ---- matrix product -------------------------------------------------------------------------------------------------
/// a * b + c; `c` absent (epoch 0): zeros of type `out`.
TESSERA_API handle dot(handle a, handle b, handle c, dtype out, tl::precision p, int max_num_imprecise_acc,
                       const location &w);

// ---- variables and control flow -------------------------------------------------------------------------------------
TESSERA_API handle declare_variable(handle initial, const location &w);
TESSERA_API handle read_variable(handle variable, const location &w);
TESSERA_API void assign_variable(handle variable, handle value, const location *w);
TESSERA_API location variable_location(handle variable);

/// Opens the body of a for loop and gives its induction value. The region's number goes to `close_for`.
struct open_loop {
  std::uint32_t region = 0;
  handle induction{};
};
TESSERA_API open_loop open_for(dtype t, handle lo, handle hi, handle step, const tl::loop_options &o,
                               const location &w);
/// Ends the body. True: the body is to be traced once more (strict mode); the region is open again.
TESSERA_API bool close_for(std::uint32_t region, handle &induction);
/// Reports a loop that was left before its end.
[[noreturn]] TESSERA_API void loop_left_early(std::uint32_t region, const location &w);

TESSERA_API std::uint32_t open_if(handle condition, const location &w);
TESSERA_API void open_else(std::uint32_t region);
/// Ends the open branch; `yielded` are the values of the value form.
TESSERA_API void close_branch(std::uint32_t region, std::span<const handle> yielded, const location &w);
/// Builds the branch's operation; `results` receives the value form's values.
TESSERA_API void finish_if(std::uint32_t region, std::span<handle> results);

TESSERA_API std::uint32_t open_while(const location &w);
TESSERA_API void while_condition(std::uint32_t region, handle condition);
/// As close_for: true means that condition and body are to be traced once more.
TESSERA_API bool close_while(std::uint32_t region);

/// Drops region `region` and all opened inside it: an exception is passing.
TESSERA_API void abandon(std::uint32_t region) noexcept;

// ---- hints and debugging --------------------------------------------------------------------------------------------
TESSERA_API handle set_hint(hint h, handle x, const tl::dims &values, const location &w);
TESSERA_API void assume(handle condition, const location &w);
TESSERA_API void device_assert(handle condition, std::string_view message, handle mask, const location &w);
TESSERA_API void device_print(std::string_view prefix, std::span<const handle> values,
                              std::span<const element_type> types, bool hex, const location &w);
[[noreturn]] TESSERA_API void fail(std::string_view message, const location &w);

/// While alive, everything built carries one location: functions composed of other tile operations show their caller's.
class TESSERA_API location_scope {
public:
  explicit location_scope(const location &w);
  ~location_scope();
  location_scope(const location_scope &) = delete;
  location_scope &operator=(const location_scope &) = delete;

private:
  location where_;
  const location *outer_;
};

} // namespace tessera::detail
