// The CPU target against a loop written by hand (softmax_loop.h), on the same threads: fused softmax of 4096 x 1024
// f32.
#include <bit>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <tessera/tessera.h>

#include "softmax_loop.h"

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

int main(int argc, char **argv) {
  std::int64_t rows = 4096, cols = 1024;
  double min_ratio = 0;
  tessera::cli cli("softmax_cpu", "Fused softmax on the CPU against a hand-written loop");
  cli.option("--rows", rows, "rows");
  cli.option("--cols", cols, "columns");
  cli.option("--min-ratio", min_ratio, "fail where Tessera reaches less than this part of the loop's speed");

  return cli.run(argc, argv, [&] {
    const auto device = tessera::device::cpu();
    const tessera::stream stream(device);
    const unsigned threads = tessera::cpu_threads();
    std::vector<float> x(rows * cols), ours(x.size()), loop(x.size());
    std::mt19937 bits(1);
    std::normal_distribution<float> normal;
    for (float &v : x)
      v = normal(bits);

    const auto kernel = softmax.with({.block = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(cols)))});
    const auto run_kernel = [&] { kernel(stream, rows, x, ours, cols); };
    const auto run_loop = [&] { softmax_loop(x.data(), loop.data(), rows, cols, threads); };
    run_kernel();
    run_loop();
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      worst = std::fmax(worst, std::fabs(ours[i] - loop[i]) / (loop[i] + 1e-6));

    const auto a = tessera::bench(stream, run_kernel), b = tessera::bench(stream, run_loop);
    const double bytes = 8.0 * static_cast<double>(rows * cols), ratio = b.median / a.median;
    std::printf("%s, %u threads, softmax %lld x %lld\n", device.name().c_str(), threads, static_cast<long long>(rows),
                static_cast<long long>(cols));
    cli.report("tessera", a, {{"gbps", a.gbytes_per_s(bytes)}});
    cli.report("hand-written loop", b, {{"gbps", b.gbytes_per_s(bytes)}});
    std::printf("tessera reaches %.2f of the loop's speed; largest difference %.1e\n", ratio, worst);
    return worst < 1e-5 && ratio >= min_ratio;
  });
}
