// In which order should programs compute the blocks of a matrix product?
//
// Programs start in the order of their numbers, and as many run at once as the device has room for: a wave. A block of
// C needs a block row of A and a block column of B. Row by row, a wave covers few rows of A but all of B; in groups of
// some block rows it covers a rectangle that is nearly square, and so touches fewer blocks. What does not come from
// memory comes from the cache. Three views of that: blocks touched by the first programs, a model of whole waves, and
// the time.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;
using i32 = tl::val<tl::i32>;

struct config {
  int bm = 32, bn = 32, bk = 32;
  int group = 1; ///< block rows that are launched together; 1: row by row
  int stages = 3;
};

/// The block of C that a program computes: its row and column among the blocks.
std::pair<i32, i32> block_of(i32 program, i32 M, i32 N, const config &c) {
  auto in_group = tl::cdiv(N, c.bn) * c.group;
  auto first = program / in_group * c.group;
  auto rows = tl::minimum(tl::cdiv(M, c.bm) - first, c.group); // the last group may have fewer
  return {first + program % in_group % rows, program % in_group / rows};
}

/// Writes down what block_of says.
const auto order = tl::kernel("order", [](tl::ptr<tl::i32> row, tl::ptr<tl::i32> col, i32 M, i32 N, config c) {
  auto program = tl::program_id(0);
  auto [r, k] = block_of(program, M, N, c);
  tl::store(row + program, r);
  tl::store(col + program, k);
});

const auto matmul = tl::kernel("matmul", [](tl::ptr<const tl::f16> A, tl::ptr<const tl::f16> B, tl::ptr<float> C, i32 M,
                                            i32 N, i32 K, config c) {
  using tl::all, tl::newaxis;
  auto [row, col] = block_of(tl::program_id(0), M, N, c);
  auto m = row * c.bm + tl::arange(0, c.bm), n = col * c.bn + tl::arange(0, c.bn), k = tl::arange(0, c.bk);
  tl::var a = A + (m % M)[all, newaxis] * K + k[newaxis, all]; // past the edge the first rows and columns come again
  tl::var b = B + k[all, newaxis] * N + (n % N)[newaxis, all];
  tl::var acc = tl::zeros<float>({c.bm, c.bn});
  for (auto k0 : tl::range(0, K, c.bk, {.stages = c.stages})) {
    acc = tl::dot(tl::load(a, k[newaxis, all] < K - k0), tl::load(b, k[all, newaxis] < K - k0), acc);
    a += c.bk;
    b += c.bk * N;
  }
  tl::store(C + m[all, newaxis] * N + n[newaxis, all], acc, m[all, newaxis] < M && n[newaxis, all] < N);
});

struct problem {
  std::int64_t m, n, k;
  [[nodiscard]] std::int64_t programs(const config &c) const {
    return tl::cdiv(m, std::int64_t(c.bm)) * tl::cdiv(n, std::int64_t(c.bn));
  }
};

/// The blocks in the order of the programs, from the device. Empty if they are not each block once.
std::vector<std::pair<int, int>> blocks_in_order(const tessera::stream &s, const problem &p, const config &c) {
  tessera::device_buffer<tl::i32> row(s.device(), p.programs(c)), col(s.device(), p.programs(c));
  order.with(c)(s, p.programs(c), row, col, p.m, p.n);
  s.synchronize();
  const auto r = row.to_host(), k = col.to_host();
  std::vector<std::pair<int, int>> blocks;
  for (std::size_t i = 0; i < r.size(); ++i)
    blocks.emplace_back(r[i], k[i]);
  const std::set<std::pair<int, int>> distinct(blocks.begin(), blocks.end());
  const bool covered = distinct.size() == blocks.size() && std::all_of(blocks.begin(), blocks.end(), [&](auto b) {
                         return b.first >= 0 && b.second >= 0 && b.first * c.bm < p.m && b.second * c.bn < p.n;
                       });
  if (!covered)
    blocks.clear();
  return blocks;
}

/// Rows of A and columns of B, in blocks, that programs first … last - 1 need.
std::pair<std::int64_t, std::int64_t> touched(const std::vector<std::pair<int, int>> &blocks, std::size_t first,
                                              std::size_t last) {
  std::set<int> rows, cols;
  for (std::size_t i = first; i < std::min(last, blocks.size()); ++i)
    rows.insert(blocks[i].first), cols.insert(blocks[i].second);
  return {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(cols.size())};
}

/// Blocks of A and of B read by the first `count` programs of a product of n x n blocks.
std::int64_t first_programs(const tessera::stream &s, int n, int group, std::size_t count) {
  const config c{.group = group};
  const problem p{n * c.bm, n * c.bn, n * c.bk};
  const auto [rows, cols] = touched(blocks_in_order(s, p, c), 0, count);
  return (rows + cols) * n; // each row of blocks, and each column, has n
}

/// Bytes that come from memory if the programs of a wave read every block once, and nothing stays for the next wave.
double wave_bytes(const std::vector<std::pair<int, int>> &blocks, const problem &p, const config &c, std::size_t wave) {
  double bytes = 0;
  for (std::size_t first = 0; first < blocks.size(); first += wave) {
    const auto [rows, cols] = touched(blocks, first, first + wave);
    bytes += sizeof(tl::f16) * static_cast<double>((rows * c.bm + cols * c.bn) * p.k);
  }
  return bytes;
}

std::vector<tl::f16> random(std::size_t n, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  std::vector<tl::f16> v(n);
  for (std::size_t i = 0; i < n; ++i)
    if (i >= 1'000'003)
      v[i] = v[i - 1'000'003];
    else if (float x = normal(bits); std::fabs(x) >= 0x1p-14f) // smaller f16 are zeros to the MI200's matrix cores
      v[i] = tl::f16(x);
  return v;
}

int main(int argc, char **argv) {
  std::int64_t size = 288, bench_size = 0, wave = 0;
  tessera::cli cli("launch_order", "Matrix product: the order in which programs compute its blocks");
  constexpr std::int64_t most = 46340; // squared it is below 2^31: the kernel counts elements with 32 bits
  cli.option("--size", size, "rows and columns of the product that is checked", 1, most);
  cli.option("--bench-size", bench_size, "the same of the one that the model describes and --bench times; 0: what suits the device", 0,
             most);
  cli.option("--wave", wave, "programs that run at once; 0: as many as the device has multiprocessors", 0);

  return cli.run(argc, argv, [&] {
    const int groups[] = {1, 2, 4, 8, 16, 32};
    if (cli.compile_only()) {
      cli.show(order.with({.group = 8}).compile_for(cli.target()));
      return cli.show(matmul.with({.group = 8}).compile_for(cli.target()));
    }
    const tessera::device device = cli.device();
    const tessera::stream stream(device);

    const std::int64_t by_rows = first_programs(stream, 9, 1, 9), grouped = first_programs(stream, 9, 3, 9);
    bool ok = by_rows == 90 && grouped == 54;
    std::printf(
        "%s (%s)\n9 x 9 blocks: the first nine programs touch %lld blocks row by row, %lld in groups of 3 rows: %s\n",
        device.name().c_str(), device.target().str().c_str(), static_cast<long long>(by_rows),
        static_cast<long long>(grouped), ok ? "right" : "WRONG");

    // The order decides only when a block is computed: results agree to the bit.
    {
      const problem p{size, size, size};
      tessera::device_buffer<tl::f16> a(device, random(size * size, 1)), b(device, random(size * size, 2));
      tessera::device_buffer<float> c(device, size * size);
      std::vector<float> first;
      for (int group : groups) {
        const config at{.group = group};
        c.fill(std::nanf(""));
        matmul.with(at)(stream, p.programs(at), a, b, c, size, size, size);
        stream.synchronize();
        const auto got = c.to_host();
        if (first.empty())
          first = got;
        const bool same = std::equal(got.begin(), got.end(), first.begin()); // false where there is a NaN
        ok = ok && same && !blocks_in_order(stream, p, at).empty();
        if (!same)
          std::printf("groups of %d rows: WRONG\n", group);
      }
      const auto x = a.to_host(), y = b.to_host();
      double worst = 0;
      for (std::int64_t i = 0; i < size; ++i) {
        const std::int64_t r = i * 31 % size, col = i;
        double sum = 0, norm = 0;
        for (std::int64_t k = 0; k < size; ++k) {
          const double product = static_cast<double>(x[r * size + k]) * static_cast<double>(y[k * size + col]);
          sum += product, norm += product * product;
        }
        const double error = std::fabs(first[r * size + col] - sum) /
                             (2 * std::sqrt(static_cast<double>(size)) * 0x1p-23 * std::sqrt(norm));
        worst = error <= worst ? worst : error;
      }
      ok = ok && worst < 1;
      std::printf("%lld x %lld product in %zu orders, the same to the bit: %s\n", static_cast<long long>(size),
                  static_cast<long long>(size), std::size(groups), ok ? "right" : "WRONG");
    }

    const bool emulated = device.target().emulated(), measured = cli.bench() && device.is_cpu();
    bench_size = bench_size ? bench_size : !measured ? 8192 : emulated ? 512 : 2048;
    const problem p{bench_size, bench_size, bench_size};
    config large{.bm = 128, .bn = 128, .bk = 64, .stages = 4};
    const std::size_t at_once = wave              ? static_cast<std::size_t>(wave)
                                : device.is_cpu() ? 132
                                                  : device.properties().multiprocessors;
    std::printf(
        "%lld^3, blocks of %d x %d, waves of %zu programs: from memory by the model, if a wave shares what it reads\n",
        static_cast<long long>(bench_size), large.bm, large.bn, at_once);
    double least = 0, row_major = 0;
    for (int group : groups) {
      large.group = group;
      const double bytes = wave_bytes(blocks_in_order(stream, p, large), p, large, at_once);
      if (group == 1)
        row_major = bytes;
      least = group == 1 ? bytes : std::min(least, bytes);
      std::printf("  groups of %2d rows: %7.4g GB, %6.1f FLOP per byte\n", group, bytes * 1e-9,
                  2 * std::pow(static_cast<double>(bench_size), 3) / bytes);
    }
    if (bench_size / large.bm > 16) // enough blocks for the order to matter
      ok = ok && least < 0.75 * row_major;

    if (cli.bench()) {
      const std::int64_t n = bench_size;
      tessera::device_buffer<tl::f16> a(device, random(n * n, 1)), b(device, random(n * n, 2));
      tessera::device_buffer<float> c(device, n * n);
      const double flops = 2 * std::pow(static_cast<double>(n), 3);
      double first = 0;
      for (int group : groups) {
        large.group = group;
        const auto k = matmul.with(large, {.num_warps = device.target().str() == "cpu" ? 0 : 4});
        const auto t = tessera::bench(stream, [&] { k(stream, p.programs(large), a, b, c, n, n, n); });
        if (group == 1)
          first = t.median;
        cli.report("matmul f16 " + std::to_string(n) + "^3 groups of " + std::to_string(group), t,
                   {{"tflops", t.tflops(flops)}, {"speedup", first / t.median}});
      }
    }
    return ok;
  });
}
