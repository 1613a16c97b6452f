// Layer norm: y = (x - mean) / sqrt(variance + eps) * w + b over each row, and its gradients.
//
// The backward pass sums over rows what each column contributes to dw and db. Programs do not wait for one another, so
// it takes two launches: programs that stride over the rows write dx and add up their share of dw and db in registers;
// then a second kernel adds those shares. There are no atomics, so the order of the sums is fixed.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;
using tl::all, tl::newaxis;
using src = tl::ptr<const float>;
using dst = tl::ptr<float>;
using i32 = tl::val<tl::i32>;
using f32 = tl::val<float>;

struct config {
  int block = 1024; ///< columns of the tile: a power of two, no fewer than a row has
};

const auto forward =
    tl::kernel("layer_norm", [](src x, src w, src b, dst y, dst mean, dst rstd, i32 cols, f32 eps, config c) {
      auto row = tl::program_id(0);
      auto col = tl::arange(0, c.block);
      auto in = col < cols;
      auto n = cols.to<float>();
      auto v = tl::load(x + row * cols + col, in);
      auto mu = tl::sum(v, 0) / n;
      auto d = tl::where(in, v - mu, 0.0f);
      auto rs = tl::rsqrt(tl::sum(d * d, 0) / n + eps);
      tl::store(mean + row, mu);
      tl::store(rstd + row, rs);
      auto scaled = d * rs * tl::load(w + col, in); // a statement of its own: b is loaded when w has been used
      tl::store(y + row * cols + col, scaled + tl::load(b + col, in), in);
    });

const auto backward_rows =
    tl::kernel("layer_norm_backward_rows", [](src x, src dy, src w, src mean, src rstd, dst dx, dst dw_part,
                                              dst db_part, i32 rows, i32 cols, config c) {
      auto first = tl::program_id(0);
      auto col = tl::arange(0, c.block);
      auto in = col < cols;
      auto n = cols.to<float>();
      auto weight = tl::load(w + col, in);
      tl::var dw = tl::zeros<float>({c.block});
      tl::var db = tl::zeros<float>({c.block});
      for (auto row : tl::range(first, rows, tl::num_programs(0))) {
        auto at = row * cols + col;
        auto g = tl::load(dy + at, in);
        auto rs = tl::load(rstd + row);
        auto xhat = tl::where(in, (tl::load(x + at, in) - tl::load(mean + row)) * rs, 0.0f);
        auto wg = weight * g;
        auto along_x = tl::sum(xhat * wg, 0) / n, along_1 = tl::sum(wg, 0) / n;
        tl::store(dx + at, (wg - xhat * along_x - along_1) * rs, in);
        dw += g * xhat;
        db += g;
      }
      tl::store(dw_part + first * cols + col, dw, in);
      tl::store(db_part + first * cols + col, db, in);
    });

struct sum_config {
  int rows = 16, cols = 64; ///< the tile
};

const auto sum_parts =
    tl::kernel("layer_norm_sum", [](src dw_part, src db_part, dst dw, dst db, i32 parts, i32 cols, sum_config c) {
      auto col = tl::program_id(0) * c.cols + tl::arange(0, c.cols);
      tl::var w = tl::zeros<float>({c.rows, c.cols});
      tl::var b = tl::zeros<float>({c.rows, c.cols});
      for (auto k : tl::range(0, parts, c.rows)) {
        auto row = k + tl::arange(0, c.rows);
        auto at = row[all, newaxis] * cols + col[newaxis, all];
        auto in = row[all, newaxis] < parts && col[newaxis, all] < cols;
        w += tl::load(dw_part + at, in);
        b += tl::load(db_part + at, in);
      }
      tl::store(dw + col, tl::sum(w, 0), col < cols);
      tl::store(db + col, tl::sum(b, 0), col < cols);
    });

/// What both passes give for one input.
struct gradients {
  std::vector<double> y, dx, dw, db;
};

gradients reference(const std::vector<float> &x, const std::vector<float> &w, const std::vector<float> &b,
                    const std::vector<float> &dy, std::int64_t rows, std::int64_t cols, double eps) {
  gradients g{std::vector<double>(rows * cols), std::vector<double>(rows * cols), std::vector<double>(cols),
              std::vector<double>(cols)};
  std::vector<double> xhat(cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t at = r * cols;
    double mean = 0, variance = 0, along_x = 0, along_1 = 0;
    for (std::int64_t c = 0; c < cols; ++c)
      mean += x[at + c] / static_cast<double>(cols);
    for (std::int64_t c = 0; c < cols; ++c)
      variance += (x[at + c] - mean) * (x[at + c] - mean) / static_cast<double>(cols);
    const double rstd = 1 / std::sqrt(variance + eps);
    for (std::int64_t c = 0; c < cols; ++c) {
      xhat[c] = (x[at + c] - mean) * rstd;
      g.y[at + c] = xhat[c] * w[c] + b[c];
      g.dw[c] += dy[at + c] * xhat[c], g.db[c] += dy[at + c];
      along_x += xhat[c] * w[c] * dy[at + c] / static_cast<double>(cols),
          along_1 += w[c] * dy[at + c] / static_cast<double>(cols);
    }
    for (std::int64_t c = 0; c < cols; ++c)
      g.dx[at + c] = (w[c] * dy[at + c] - xhat[c] * along_x - along_1) * rstd;
  }
  return g;
}

/// Largest difference, as a part of the largest value.
bool agrees(const char *what, const tessera::device_buffer<float> &got, const std::vector<double> &want) {
  const auto values = got.to_host();
  double error = 0, scale = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double e = std::fabs(values[i] - want[i]);
    error = e <= error ? error : e; // NaN stays
    scale = std::max(scale, std::fabs(want[i]));
  }
  const bool ok = error <= 1e-5 * scale;
  std::printf("  %-2s relative error %.1e: %s\n", what, scale > 0 ? error / scale : error, ok ? "right" : "WRONG");
  return ok;
}

std::vector<float> random(std::size_t n, unsigned seed, float mean) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal(mean, 1);
  std::vector<float> v(n);
  std::generate(v.begin(), v.end(), [&] { return normal(bits); });
  return v;
}

int main(int argc, char **argv) {
  std::int64_t rows = 1151, cols = 1000;
  tessera::cli cli("layer_norm", "Layer norm of the rows of a matrix, forward and backward");
  cli.option("--rows", rows, "rows");
  cli.option("--cols", cols, "columns", 1, 1 << 20); // a tile has no more

  return cli.run(argc, argv, [&] {
    const config tile{.block = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(cols)))};
    const tessera::compile_options options{.num_warps =
                                               cli.target().str() == "cpu" ? 0 : std::clamp(tile.block / 1024, 4, 16)};
    auto norm = forward.with(tile, options);
    auto norm_backward = backward_rows.with(tile, options);
    if (cli.compile_only()) {
      cli.show(norm.compile_for(cli.target()));
      cli.show(norm_backward.compile_for(cli.target()));
      return cli.show(sum_parts.compile_for(cli.target()));
    }

    if (rows > std::numeric_limits<tl::i32>::max() / cols)
      throw tessera::error(tessera::stage::launch, "the kernels count elements with 32 bits: fewer rows or columns");
    const tessera::device device = cli.device();
    const tessera::stream stream(device);
    const float eps = 1e-5f;
    const auto host_x = random(rows * cols, 1, 0.5f), host_w = random(cols, 2, 1), host_b = random(cols, 3, 0),
               host_dy = random(rows * cols, 4, 0);
    tessera::device_buffer<float> x(device, host_x), w(device, host_w), b(device, host_b), dy(device, host_dy);
    tessera::device_buffer<float> y(device, rows * cols), mean(device, rows), rstd(device, rows),
        dx(device, rows * cols), dw(device, cols), db(device, cols);
    const std::int64_t programs =
        std::min<std::int64_t>(rows, device.properties().multiprocessors * (device.is_cpu() ? 1 : 2));
    tessera::device_buffer<float> dw_part(device, programs * cols), db_part(device, programs * cols);
    for (auto *out : {&y, &mean, &rstd, &dx, &dw, &db, &dw_part, &db_part})
      out->fill(std::nanf(""));

    if (cli.autotune()) {
      const std::vector<tessera::compile_options> warps{
          {.num_warps = 1}, {.num_warps = 2}, {.num_warps = 4}, {.num_warps = 8}, {.num_warps = 16}};
      const auto candidates =
          tl::candidates<config>({tile}, device.target().str() == "cpu" ? std::vector{options} : warps);
      const auto tuned =
          tl::autotune(forward, {.arguments = "x w b y mean rstd cols eps", .key = "cols", .candidates = candidates});
      const auto tuned_backward = tl::autotune(
          backward_rows,
          {.arguments = "x dy w mean rstd dx dw_part db_part rows cols", .key = "rows cols", .candidates = candidates});
      norm = tuned.best(stream, rows, x, w, b, y, mean, rstd, cols, eps);
      norm(stream, rows, x, w, b, y, mean, rstd, cols, eps); // the backward pass reads mean and rstd
      norm_backward = tuned_backward.best(stream, programs, x, dy, w, mean, rstd, dx, dw_part, db_part, rows, cols);
      cli.report(tuned.tune(stream, rows, x, w, b, y, mean, rstd, cols, eps));
      cli.report(tuned_backward.tune(stream, programs, x, dy, w, mean, rstd, dx, dw_part, db_part, rows, cols));
    }

    const auto run_forward = [&] { norm(stream, rows, x, w, b, y, mean, rstd, cols, eps); };
    const auto run_backward = [&] {
      norm_backward(stream, programs, x, dy, w, mean, rstd, dx, dw_part, db_part, rows, cols);
      sum_parts(
          stream, [&](const sum_config &c) { return tl::cdiv(cols, std::int64_t(c.cols)); }, dw_part, db_part, dw, db,
          programs, cols);
    };
    run_forward();
    run_backward();
    stream.synchronize();

    std::printf("%s (%s): layer norm %lld x %lld\n", device.name().c_str(), device.target().str().c_str(),
                static_cast<long long>(rows), static_cast<long long>(cols));
    const auto want = reference(host_x, host_w, host_b, host_dy, rows, cols, eps);
    const bool ok =
        agrees("y", y, want.y) & agrees("dx", dx, want.dx) & agrees("dw", dw, want.dw) & agrees("db", db, want.db);

    if (cli.bench()) {
      cli.show(norm.prepare(stream, x, w, b, y, mean, rstd, cols, eps));
      const double matrix = sizeof(float) * static_cast<double>(rows * cols);
      const auto size = std::to_string(rows) + "x" + std::to_string(cols);
      const auto fwd = tessera::bench(stream, run_forward), bwd = tessera::bench(stream, run_backward);
      cli.report("layer_norm fwd f32 " + size, fwd, {{"gbps", fwd.gbytes_per_s(2 * matrix)}});
      cli.report("layer_norm bwd f32 " + size, bwd, {{"gbps", bwd.gbytes_per_s(3 * matrix)}});
    }
    return ok;
  });
}
