// One kernel of a user's program.
#include <cstdio>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;

struct config {
  int block = 256;
};

const auto scale = tl::kernel("scale", [](tl::ptr<float> x, tl::val<tl::i32> n, tl::val<float> factor, config c) {
  auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
  auto in = at < n;
  tl::store(x + at, tl::load(x + at, in) * factor, in);
});

int main() {
  std::vector<float> x(1000, 3);
  const auto stream = tessera::stream::default_of(tessera::device::cpu());
  scale(
      stream, [&](const config &c) { return tl::cdiv(x.size(), static_cast<std::size_t>(c.block)); }, x, x.size(),
      2.0f);
  for (float v : x)
    if (v != 6)
      return std::printf("got %g\n", v), 1;
  std::puts("the consumer's kernel gave the right result");
}
