// out = x + y: the smallest kernel that does something. Each program adds one block; the mask keeps the last one
// inside.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;

struct config {
  int block = 1024; ///< elements of one program
};

const auto vector_add = tl::kernel(
    "vector_add", [](tl::ptr<const float> x, tl::ptr<const float> y, tl::ptr<float> out, tl::val<tl::i32> n, config c) {
      auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
      auto in = at < n;
      tl::store(out + at, tl::load(x + at, in) + tl::load(y + at, in), in);
    });

/// What --autotune tries: how much a program adds, with how many warps (which the CPU chooses by itself).
const auto tuned_add = tl::autotune(
    vector_add, {.arguments = "x y out n",
                 .key = "n",
                 .candidates = tl::candidates<config>({{.block = 256}, {.block = 1024}, {.block = 4096}, {.block = 16384}},
                                                      {{}, {.num_warps = 2}, {.num_warps = 8}}),
                 .skip = [](auto &c, auto &call) -> std::string {
                   return call.device().target().str() == "cpu" && c.options.num_warps ? "the CPU chooses its warps" : "";
                 }});

std::vector<float> random_vector(std::size_t n, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  std::vector<float> v(n);
  for (float &e : v)
    e = normal(bits);
  return v;
}

int main(int argc, char **argv) {
  std::int64_t n = 98432, block = 1024;
  tessera::cli cli("vector_add", "out = x + y");
  cli.option("--n", n, "elements", 1, 2'000'000'000); // the kernel counts with 32 bits
  cli.option("--block", block, "elements of one program, a power of two", 1, 1 << 20);

  return cli.run(argc, argv, [&] {
    auto add = vector_add.with({.block = static_cast<int>(block)});
    if (cli.compile_only())
      return cli.show(add.compile_for(cli.target()));

    const tessera::device device = cli.device();
    const tessera::stream stream(device);
    const auto host_x = random_vector(n, 1), host_y = random_vector(n, 2);
    tessera::device_buffer<float> x(device, host_x), y(device, host_y), out(device, n);
    out.fill(std::nanf("")); // an element that nobody writes is seen

    const auto grid = [&](const config &c) { return tl::cdiv(n, std::int64_t(c.block)); };
    if (cli.autotune()) {
      cli.report(tuned_add.tune(stream, grid, x, y, out, n));
      add = tuned_add.best(stream, grid, x, y, out, n);
      out.fill(std::nanf(""));
    }
    add(stream, grid, x, y, out, n);
    stream.synchronize();

    const auto result = out.to_host();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < n; ++i)
      wrong += result[i] != host_x[i] + host_y[i]; // one rounding: exact
    std::printf("%s (%s): vector_add n=%lld: %s\n", device.name().c_str(), device.target().str().c_str(),
                static_cast<long long>(n), wrong ? "WRONG" : "right");

    if (cli.bench()) {
      cli.show(add.prepare(stream, x, y, out, n));
      const auto time = tessera::bench(stream, [&] { add(stream, grid, x, y, out, n); });
      cli.report("vector_add f32 n=" + std::to_string(n), time, {{"gbps", time.gbytes_per_s(3.0 * sizeof(float) * n)}});
    }
    return wrong == 0;
  });
}
