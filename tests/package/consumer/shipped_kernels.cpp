// Kernels that are compiled with the program that uses them.
#include <tessera/aot/export.h>

namespace tl = tessera::tl;

struct config {
  int block = 256;
};

TESSERA_EXPORT_KERNELS(out) {
  out.add(tl::kernel("add",
                     [](tl::ptr<float> x, tl::val<tl::i32> n, tl::val<float> what, config c) {
                       auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
                       tl::store(x + at, tl::load(x + at, at < n) + what, at < n);
                     }),
          {.arguments = "x n what"});
}
