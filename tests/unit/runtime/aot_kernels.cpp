// Kernels for aot_launch.cpp, compiled when the tests are built.
#include <tessera/aot/export.h>

namespace tl = tessera::tl;

struct config {
  int block = 64;
};

TESSERA_EXPORT_KERNELS(out) {
  const auto copy = tl::kernel("copy", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<tl::i32> stride, config c) {
    auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
    tl::store(y + at, tl::load(x + at * stride));
  });
  // Any arguments; all aligned; a stride of one.
  out.add(copy, {.arguments = "x, y, stride", .specializations = {{0, 0}, {7, 0}, {3, 4}}});
  out.add(copy.with({.block = 128}),
          {.symbol = "copy_aligned", .specializations = {tessera::specialization::aligned()}});

  const auto row_sum = tl::kernel("row_sum", [](tl::ptr<const double> x, tl::ptr<double> y, tl::val<tl::f16> by,
                                                config c) {
    auto col = tl::arange(0, 4 * c.block); // warps wait for one another
    tl::store(y + tl::program_id(0), tl::sum(tl::load(x + tl::program_id(0) * 4 * c.block + col), 0) * by.to<double>());
  });
  out.add(row_sum.with_options({.num_warps = 4}), {.arguments = "x y by"});

  out.add(copy.launched({.cooperative = true, .cluster = {2, 1, 1}}),
          {.symbol = "copy_together", .specializations = {{0, 0}}});
}
