// What fusion saves: softmax as five kernels, one an operation, against one kernel.
//
// With M rows and N columns the chain reads 5MN + 2M elements and writes 3MN + 2M; the fused kernel reads MN and writes
// MN; both do 5MN - 2M operations. The CPU target counts what kernels move and do when asked to, so the formulas are
// checked, not believed.
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;
using src = tl::ptr<const float>;
using dst = tl::ptr<float>;
using i32 = tl::val<tl::i32>;

struct config {
  int cols = 1024; ///< of the matrix and of the tile: a power of two here, so no masks
};

// Each program has one row: at(row, c) are the offsets of its elements.
auto at(i32 row, config c) { return row * c.cols + tl::arange(0, c.cols); }

const auto row_max = tl::kernel("row_max", [](src x, dst m, config c) {
  auto row = tl::program_id(0);
  tl::store(m + row, tl::max(tl::load(x + at(row, c)), 0));
});
const auto subtract = tl::kernel("subtract", [](src x, src m, dst z, config c) {
  auto row = tl::program_id(0);
  tl::store(z + at(row, c), tl::load(x + at(row, c)) - tl::load(m + row));
});
const auto exponential = tl::kernel("exponential", [](src z, dst e, config c) {
  auto row = tl::program_id(0);
  tl::store(e + at(row, c), tl::exp(tl::load(z + at(row, c))));
});
const auto row_sum = tl::kernel("row_sum", [](src e, dst s, config c) {
  auto row = tl::program_id(0);
  tl::store(s + row, tl::sum(tl::load(e + at(row, c)), 0));
});
const auto divide = tl::kernel("divide", [](src e, src s, dst y, config c) {
  auto row = tl::program_id(0);
  tl::store(y + at(row, c), tl::load(e + at(row, c)) / tl::load(s + row));
});

const auto fused = tl::kernel("fused_softmax", [](src x, dst y, config c) {
  auto row = tl::program_id(0);
  auto v = tl::load(x + at(row, c));
  auto e = tl::exp(v - tl::max(v, 0));
  tl::store(y + at(row, c), e / tl::sum(e, 0));
});

int main(int argc, char **argv) {
  std::int64_t rows = 4096, cols = 1024;
  tessera::cli cli("fusion_traffic", "Softmax operation by operation against fused: bytes moved, and time");
  cli.option("--rows", rows, "rows, M");
  cli.option("--cols", cols, "columns, N: a power of two", 1, 1 << 20);

  return cli.run(argc, argv, [&] {
    const config c{.cols = static_cast<int>(cols)};
    if (cli.compile_only())
      return cli.show(fused.with(c).compile_for(cli.target()));

    if (rows > std::numeric_limits<tl::i32>::max() / cols)
      throw tessera::error(tessera::stage::launch, "the kernels count elements with 32 bits: fewer rows or columns");
    const tessera::device device = cli.device();
    const tessera::stream stream(device);
    std::vector<float> host(rows * cols);
    std::mt19937 bits(1);
    std::normal_distribution<float> normal;
    for (float &v : host)
      v = normal(bits);
    tessera::device_buffer<float> x(device, host), z(device, host.size()), e(device, host.size()), m(device, rows),
        s(device, rows);
    tessera::device_buffer<float> by_steps(device, host.size()), at_once(device, host.size());

    tessera::compile_options options;
    const auto run_steps = [&] {
      row_max.with(c, options)(stream, rows, x, m);
      subtract.with(c, options)(stream, rows, x, m, z);
      exponential.with(c, options)(stream, rows, z, e);
      row_sum.with(c, options)(stream, rows, e, s);
      divide.with(c, options)(stream, rows, e, s, by_steps);
    };
    const auto run_fused = [&] { fused.with(c, options)(stream, rows, x, at_once); };

    bool ok = true;
    if (device.is_cpu()) {
      options.count_traffic = true; // part of the options: these are kernels of their own, timed ones do not count
      const auto count = [&](const char *what, auto &&run, double loads, double stores, const char *formula) {
        stream.reset_counters();
        run();
        const auto n = stream.counters();
        // A difference, an exponential and a quotient for each element; maximum and sum of N take N - 1.
        const double flops = static_cast<double>(rows) * (5 * static_cast<double>(cols) - 2);
        const bool as_said = n.bytes_loaded == 4 * loads && n.bytes_stored == 4 * stores && n.flops == flops;
        std::printf("%-14s %6llu programs  loaded %11llu B  stored %11llu B  flops %9llu   expected %s, 5MN-2M flops: %s\n", what,
                    static_cast<unsigned long long>(n.programs), static_cast<unsigned long long>(n.bytes_loaded),
                    static_cast<unsigned long long>(n.bytes_stored), static_cast<unsigned long long>(n.flops), formula,
                    as_said ? "right" : "WRONG");
        ok = ok && as_said;
      };
      const double M = static_cast<double>(rows), MN = M * static_cast<double>(cols);
      count("by operation", run_steps, 5 * MN + 2 * M, 3 * MN + 2 * M, "5MN+2M / 3MN+2M");
      count("fused", run_fused, MN, MN, "MN / MN");
      options.count_traffic = false;
    }

    by_steps.fill(std::nanf(""));
    at_once.fill(std::nanf(""));
    run_steps();
    run_fused();
    stream.synchronize();
    const auto a = by_steps.to_host(), b = at_once.to_host();
    double worst = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      double top = -HUGE_VAL, total = 0;
      for (std::int64_t k = r * cols; k < (r + 1) * cols; ++k)
        top = std::fmax(top, host[k]);
      for (std::int64_t k = r * cols; k < (r + 1) * cols; ++k)
        total += std::exp(host[k] - top);
      for (std::int64_t k = r * cols; k < (r + 1) * cols; ++k) {
        const double want = std::exp(host[k] - top) / total,
                     error = (std::fabs(a[k] - want) + std::fabs(b[k] - want)) / (want + 1e-6);
        worst = error <= worst ? worst : error; // NaN stays
      }
    }
    ok = ok && worst < 1e-5;
    std::printf("%s (%s): softmax %lld x %lld both ways, relative error %.1e: %s\n", device.name().c_str(),
                device.target().str().c_str(), static_cast<long long>(rows), static_cast<long long>(cols), worst,
                ok ? "right" : "WRONG");

    if (cli.bench()) {
      const auto slow = tessera::bench(stream, run_steps), fast = tessera::bench(stream, run_fused);
      cli.report("softmax by operation", slow);
      cli.report("softmax fused", fast, {{"speedup", slow.median / fast.median}});
    }
    return ok;
  });
}
