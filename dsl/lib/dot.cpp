// The matrix product.
#include "state.h"

#include <fmt/format.h>

using namespace mlir;

namespace tessera::detail {

handle dot(handle ha, handle hb, handle hc, dtype out, tl::precision p, int max_num_imprecise_acc, const location &w) {
  trace_state &s = trace_state::current(w);
  const Value a = s.use(ha, w), b = s.use(hb, w);
  const ArrayRef<std::int64_t> x = shape_of(a), y = shape_of(b);
  const std::size_t rank = x.size();
  if (rank != y.size() || (rank != 2 && rank != 3))
    fail_at(fmt::format("dot multiplies two tiles of two dimensions, or of three with the batch first, not {} and {}",
                        to_string(x), to_string(y)),
            w);
  if (x[rank - 1] != y[rank - 2] || (rank == 3 && x[0] != y[0]))
    fail_at(fmt::format("dot: {} times {}: the columns of the first must be as many as the rows of the second{}",
                        to_string(x), to_string(y), rank == 3 ? ", and the batches as many" : ""),
            w);
  SmallVector<std::int64_t> shape(x);
  shape.back() = y.back();
  check_shape(shape, w);
  const Value c = hc.epoch ? s.use(hc, w) : s.constant({out}, {}, shape, w);
  if (shape_of(c) != ArrayRef<std::int64_t>(shape))
    fail_at(fmt::format("dot: the product is {}, the accumulator {}", to_string(shape), to_string(shape_of(c))), w);
  if (max_num_imprecise_acc < 0)
    fail_at("dot: max_num_imprecise_acc is a number of products, or 0 for any", w);

  static constexpr tt::InputPrecision precisions[] = {tt::InputPrecision::IEEE, tt::InputPrecision::TF32,
                                                      tt::InputPrecision::TF32x3};
  return s.make(tt::DotOp::create(s.b, s.at(w), c.getType(), a, b, c, precisions[int(p)],
                                  static_cast<std::uint32_t>(max_num_imprecise_acc)));
}

} // namespace tessera::detail
