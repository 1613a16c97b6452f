// The kernels of 09_ahead_of_time.c: this file is compiled into a program that the build runs, and that writes them as
// machine code.
#include <tessera/aot/export.h>

namespace tl = tessera::tl;

struct config {
  int block = 1024;
};

const auto softmax =
    tl::kernel("softmax", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<tl::i32> cols, config c) {
      auto row = tl::program_id(0);
      auto col = tl::arange(0, c.block);
      auto in = col < cols;
      auto v = tl::load(x + row * cols + col, in, {.other = -tl::inf});
      auto e = tl::exp(v - tl::max(v, 0));
      tl::store(y + row * cols + col, e / tl::sum(e, 0), in);
    });

const auto scale = tl::kernel("scale", [](tl::ptr<float> x, tl::val<float> by, tl::val<tl::i32> n, config c) {
  auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
  tl::store(x + at, tl::load(x + at, at < n) * by, at < n);
});

TESSERA_EXPORT_KERNELS(out) {
  out.add(softmax.with({.block = 256}), {.symbol = "softmax_256", .arguments = "x y cols"});
  out.add(softmax.with({.block = 1024}), {.symbol = "softmax_1024", .arguments = "x y cols"});
  out.add(scale, {.arguments = "x by n"});
}
