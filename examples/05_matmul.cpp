// C = A x B: any sizes, any strides, operands stored either way round, for every element type that tl::dot multiplies.
//
// A program computes one tile of C: it walks along K, loads a tile of A and one of B, and lets tl::dot add up their
// product. Programs are launched in groups of block rows, so that those that run at the same time share operands in the
// cache; 06_launch_order measures what that is worth. The rest of the file is the check against float64, and the count
// of bytes that were read.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;
using i32 = tl::val<tl::i32>;

template <class T> constexpr bool is_integer = std::is_integral_v<T>;
/// What products of T add up in, and what C holds.
template <class T>
using accumulator =
    std::conditional_t<is_integer<T>, tl::i32, std::conditional_t<std::is_same_v<T, double>, double, float>>;
template <class T>
using result =
    std::conditional_t<sizeof(T) == 1 && !is_integer<T>, tl::f16, std::conditional_t<is_integer<T>, tl::i32, T>>;

struct config {
  int bm = 64, bn = 64, bk = 32; ///< the tiles: bm x bk of A, bk x bn of B
  int group = 8;                 ///< block rows of C launched together; 1: row by row
  int stages = 3;                ///< tiles of the loop in flight
  bool leaky_relu = false;       ///< the epilogue
  tl::precision precision = tl::precision::ieee;
};

template <class T>
const auto matmul = tl::kernel("matmul", [](tl::ptr<const T> A, tl::ptr<const T> B, tl::ptr<result<T>> C, i32 M, i32 N,
                                            i32 K, i32 am, i32 ak, i32 bk, i32 bn, i32 cm, config c) {
  using tl::all, tl::newaxis;
  auto pid = tl::program_id(0);
  auto in_group = tl::cdiv(N, c.bn) * c.group; // programs of a group: they go down its block rows, column by column
  auto first = pid / in_group * c.group;
  auto rows = tl::minimum(tl::cdiv(M, c.bm) - first, c.group);
  auto m = (first + pid % in_group % rows) * c.bm + tl::arange(0, c.bm);
  auto n = pid % in_group / rows * c.bn + tl::arange(0, c.bn);

  // Rows and columns past the edge wrap around: what becomes of them is not stored. So only K needs a mask.
  auto k = tl::arange(0, c.bk);
  tl::var a = A + (m % M)[all, newaxis] * am + k[newaxis, all] * ak;
  tl::var b = B + k[all, newaxis] * bk + (n % N)[newaxis, all] * bn;
  tl::var acc = tl::zeros<accumulator<T>>({c.bm, c.bn});
  for (auto k0 : tl::range(0, K, c.bk, {.stages = c.stages})) {
    auto left = K - k0;
    acc = tl::dot(tl::load(a, k[newaxis, all] < left), tl::load(b, k[all, newaxis] < left), acc,
                  {.input_precision = c.precision});
    a += c.bk * ak;
    b += c.bk * bk;
  }
  if constexpr (!is_integer<T>)
    if (c.leaky_relu)
      acc = tl::where(acc > 0, acc, acc * 0.01);
  tl::store(C + m[all, newaxis] * cm + n[newaxis, all], tl::cast<result<T>>(acc),
            m[all, newaxis] < M && n[newaxis, all] < N);
});

/// What the command line asks for. Zeros are chosen by the target.
struct settings {
  std::int64_t m = 300, n = 200, k = 150, pad = 0;
  std::int64_t bm = 0, bn = 0, bk = 0, group = 8, stages = 0, warps = 0;
  bool trans_a = false, trans_b = false, leaky_relu = false;

  [[nodiscard]] std::int64_t programs(const config &c) const {
    return tl::cdiv(m, std::int64_t(c.bm)) * tl::cdiv(n, std::int64_t(c.bn));
  }
  [[nodiscard]] double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

/// A reasonable tile, and how many warps share it; --autotune finds better ones.
template <class T>
std::pair<config, tessera::compile_options> choose(const settings &s, const tessera::target &t, tl::precision p) {
  const bool native = t.str() == "cpu", large = s.m >= 1024 && s.n >= 1024 && !t.emulated();
  config c{.group = static_cast<int>(s.group), .leaky_relu = s.leaky_relu, .precision = p};
  int warps = 4;
  if (native) { // no shared memory to run out of, and it chooses its warps
    c.bm = 128, c.bn = large ? 256 : 128, c.bk = 64, warps = 0;
  } else if (large && t.arch == "sm_90a" && sizeof(T) <= 2) { // what a warp group multiplies at once is 64 x 256
    c.bm = 128, c.bn = 256, c.bk = 128 / static_cast<int>(sizeof(T)), warps = 8;
  } else if (large && t.kind == tessera::target_kind::hip) { // tiles in flight are held in registers
    c.bm = 128, c.bn = 128, c.bk = std::max(16, 128 / static_cast<int>(sizeof(T))), warps = 8;
  } else if (large && t.arch == "sm_90a" && p == tl::precision::tf32) { // B, the narrower one, passes through registers
    c.bm = 256, c.bn = 128, c.bk = 32, warps = 8;
  } else if (large) {
    c.bm = 128, c.bn = 128, c.bk = std::max(16, 64 / static_cast<int>(sizeof(T))), c.stages = 4, warps = 8;
  }
  if (t.arch.starts_with("gfx"))
    c.stages = 2;
  if (s.m <= 16)
    c.bm = 16;
  if (s.bm)
    c.bm = static_cast<int>(s.bm);
  if (s.bn)
    c.bn = static_cast<int>(s.bn);
  if (s.bk)
    c.bk = static_cast<int>(s.bk);
  if (s.stages)
    c.stages = static_cast<int>(s.stages);
  if (s.warps)
    warps = static_cast<int>(s.warps);
  return {c, {.num_warps = warps}};
}

/// What --autotune tries.
template <class T> std::vector<tl::candidate<config>> candidates(const config &like, const tessera::target &t) {
  std::vector<config> configs;
  for (auto [bm, bn] : {std::pair(64, 64), {64, 128}, {64, 256}, {128, 64}, {128, 128}, {128, 256}, {256, 128}})
    for (int row_bytes : {64, 128}) {
      if (like.bm < 64 && bm > 64) // few rows: only the width is of interest
        continue;
      config c = like;
      c.bm = like.bm < 64 ? like.bm : bm;
      c.bn = bn;
      c.bk = std::max(16, row_bytes / static_cast<int>(sizeof(T)));
      configs.push_back(c);
    }
  if (t.str() == "cpu") // chooses its warps itself
    return tl::candidates(configs, {{}});
  return tl::candidates(configs, {{.num_warps = 4}, {.num_warps = 8}});
}

/// What no result may be: NaN, or an integer out of reach.
template <class T> T poison() {
  if constexpr (is_integer<T>)
    return std::numeric_limits<T>::min();
  else
    return T(std::nanf(""));
}
template <class T> bool is_poison(T v) { return is_integer<T> ? v == poison<T>() : std::isnan(static_cast<double>(v)); }

/// rows x cols elements with a stride for each dimension, of which one is 1; `pad` elements that nobody may read follow
/// each run.
template <class T> struct matrix {
  std::int64_t rows, cols, row_stride, col_stride;
  std::vector<T> host;
  tessera::device_buffer<T> mem;

  matrix(const tessera::device &d, std::int64_t rows, std::int64_t cols, bool transposed, std::int64_t pad,
         unsigned seed)
      : rows(rows), cols(cols), row_stride(transposed ? 1 : cols + pad), col_stride(transposed ? rows + pad : 1),
        host(random(seed)), mem(d, host) {}
  /// Elements from the first to the last, with what lies between.
  static std::int64_t elements(std::int64_t runs, std::int64_t run) {
    if (runs > std::numeric_limits<tl::i32>::max() / run)
      throw tessera::error(tessera::stage::launch, "the kernel counts elements with 32 bits: a smaller m, n, k or pad");
    return runs * run;
  }
  [[nodiscard]] double at(std::int64_t r, std::int64_t c) const {
    return static_cast<double>(host[r * row_stride + c * col_stride]);
  }

private:
  [[nodiscard]] std::vector<T> random(unsigned seed) const {
    std::mt19937 bits(seed);
    std::normal_distribution<float> normal;
    std::uniform_int_distribution<int> bytes(-128, 127);
    std::vector<T> v(std::max(elements(rows, row_stride), elements(cols, col_stride)), poison<T>());
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c)
        if constexpr (is_integer<T>)
          v[r * row_stride + c * col_stride] = static_cast<T>(bytes(bits));
        else if (float x = normal(bits); std::fabs(x) >= 0x1p-14f) // smaller f16 are zeros to the MI200's matrix cores
          v[r * row_stride + c * col_stride] = T(x);
        else
          v[r * row_stride + c * col_stride] = T(0.0f);
    return v;
  }
};

/// The relative error of one product of T as it is added up …
template <class T> double rounding_of_products(tl::precision p) {
  if (is_integer<T>)
    return 0;
  if (sizeof(T) == 1)
    return 0x1p-12; // matrix units add fp8 products with fewer bits than f32 has
  if (std::is_same_v<T, float> && p != tl::precision::ieee)
    return p == tl::precision::tf32 ? 0x1p-10 : 0x1p-20;
  return std::is_same_v<T, double> ? 0x1p-52 : 0x1p-23;
}
/// … and of the sum as it is stored in C.
template <class R>
constexpr double rounding_of_result = std::is_integral_v<R>         ? 0
                                      : std::is_same_v<R, tl::bf16> ? 0x1p-8
                                      : std::is_same_v<R, tl::f16>  ? 0x1p-11
                                      : std::is_same_v<R, double>   ? 0x1p-52
                                                                    : 0x1p-23;
/// Below this the spacing of C's values stays the same.
template <class R> constexpr double smallest_normal = std::is_same_v<R, tl::f16> ? 0x1p-14 : 0x1p-126;

/// Compares with float64: all rows of small problems, eight of large ones; and looks for elements that nobody wrote.
template <class T>
bool check(const settings &s, tl::precision precision, const matrix<T> &a, const matrix<T> &b,
           const std::vector<result<T>> &got, std::int64_t pitch) {
  const std::int64_t rows = s.flops() < 1e9 ? s.m : std::min<std::int64_t>(s.m, 8);
  std::vector<double> b_norm(s.n), want(s.n);
  for (std::int64_t k = 0; k < s.k; ++k)
    for (std::int64_t n = 0; n < s.n; ++n)
      b_norm[n] += b.at(k, n) * b.at(k, n);
  double worst = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t m = rows == s.m ? i : i * (s.m - 1) / (rows - 1);
    double a_norm = 0;
    std::fill(want.begin(), want.end(), 0);
    for (std::int64_t k = 0; k < s.k; ++k) {
      const double x = a.at(m, k);
      a_norm += x * x;
      for (std::int64_t n = 0; n < s.n; ++n)
        want[n] += x * b.at(k, n);
    }
    for (std::int64_t n = 0; n < s.n; ++n) {
      const double w = s.leaky_relu && !is_integer<T> && want[n] < 0 ? 0.01 * want[n] : want[n];
      // A sum of K random products has the size |a| |b| / sqrt(K), and its rounding errors grow with sqrt(K).
      const double root = std::sqrt(static_cast<double>(s.k)), size = std::sqrt(a_norm * b_norm[n]) / root;
      const double stored = std::max(std::fabs(w), smallest_normal<result<T>>);
      const double allowed =
          rounding_of_result<result<T>> * stored + 2 * root * rounding_of_products<T>(precision) * size;
      const double error = std::fabs(static_cast<double>(got[m * pitch + n]) - w);
      const double part = error == 0 ? 0 : error / allowed;
      worst = part <= worst ? worst : part; // NaN stays
    }
  }
  std::int64_t unwritten = 0, outside = 0;
  for (std::int64_t m = 0; m < s.m; ++m)
    for (std::int64_t n = 0; n < pitch; ++n)
      (n < s.n ? unwritten : outside) += is_poison(got[m * pitch + n]) == (n < s.n);
  const bool ok = worst <= 1 && !unwritten && !outside;
  std::printf("  error %.2f of what sqrt(K) allows; %lld unwritten, %lld written outside: %s\n", worst,
              static_cast<long long>(unwritten), static_cast<long long>(outside), ok ? "right" : "WRONG");
  return ok;
}

template <class T>
bool run(tessera::cli &cli, const settings &s, const std::string &type, tl::precision precision = tl::precision::ieee) {
  auto [c, options] = choose<T>(s, cli.target(), precision);
  if (cli.compile_only()) {
    // Parameters 6 to 9 are the strides of A and B: those that are 1 make the accesses contiguous.
    auto known = tessera::specialization::aligned();
    known.equal_to_1 = 1u << (s.trans_a ? 6 : 7) | 1u << (s.trans_b ? 8 : 9);
    return cli.show(matmul<T>.with(c, options).compile_for(cli.target(), known));
  }
  const tessera::device device = cli.device();
  const tessera::stream stream(device);
  const matrix<T> a(device, s.m, s.k, s.trans_a, s.pad, 1), b(device, s.k, s.n, s.trans_b, s.pad, 2);
  const std::int64_t pitch = s.n + s.pad;
  tessera::device_buffer<result<T>> out(device, matrix<T>::elements(s.m, pitch));
  // f(stream, grid, arguments…): f is the kernel, or something else that is done with these arguments.
  const auto call = [&](const auto &f) {
    return f(
        stream, [&](const config &c) { return s.programs(c); }, a.mem, b.mem, out, s.m, s.n, s.k, a.row_stride,
        a.col_stride, b.row_stride, b.col_stride, pitch);
  };
  auto kernel = matmul<T>.with(c, options);
  if (cli.autotune()) {
    const auto tuned = tl::autotune(kernel, {.arguments = "a b c m n k am ak bk bn cm",
                                             .key = "m n k am ak bk bn",
                                             .candidates = candidates<T>(c, device.target())});
    cli.report(call([&](auto &&...x) { return tuned.tune(x...); }));
    kernel = call([&](auto &&...x) { return tuned.best(x...); });
    c = kernel.configuration();
  }

  std::printf("%s (%s): matmul %s %lld x %lld x %lld%s%s%s, tiles of %d x %d x %d\n", device.name().c_str(),
              device.target().str().c_str(), type.c_str(), static_cast<long long>(s.m), static_cast<long long>(s.n),
              static_cast<long long>(s.k), s.trans_a ? ", A transposed" : "", s.trans_b ? ", B transposed" : "",
              s.leaky_relu ? is_integer<T> ? ", no leaky relu for integers" : ", leaky relu" : "", c.bm,
              c.bn, c.bk);
  out.fill(poison<result<T>>());
  call(kernel);
  stream.synchronize();
  bool ok = check(s, precision, a, b, out.to_host(), pitch);

  // Every program reads bm rows of A and bn columns of B.
  const double in = sizeof(T), once = in * static_cast<double>(s.m * s.k + s.k * s.n),
               written = sizeof(result<T>) * static_cast<double>(s.m * s.n);
  const double read = in * static_cast<double>(s.programs(c) * (c.bm + c.bn) * s.k);
  std::printf("  %.4g FLOP; %.4g bytes of operands and result: %.1f FLOP per byte; read by tiles: %.4g bytes: %.1f "
              "FLOP per byte\n",
              s.flops(), once + written, s.flops() / (once + written), read, s.flops() / (read + written));
  if (device.is_cpu()) {
    auto counting = kernel.options();
    counting.count_traffic = true;
    stream.reset_counters();
    call(kernel.with_options(counting));
    const auto n = stream.counters();
    const bool as_said = static_cast<double>(n.bytes_loaded) == read && static_cast<double>(n.bytes_stored) == written;
    std::printf("  counted: %llu bytes loaded, %llu stored: %s\n", static_cast<unsigned long long>(n.bytes_loaded),
                static_cast<unsigned long long>(n.bytes_stored), as_said ? "as the formula says" : "WRONG");
    ok = ok && as_said;
  }
  if (cli.bench()) {
    cli.show(call([&](auto &on, auto &&, auto &&...x) { return kernel.prepare(on, x...); }));
    const auto t = tessera::bench(stream, [&] { call(kernel); });
    cli.report("matmul " + type + " " + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k), t,
               {{"tflops", t.tflops(s.flops())}, {"gbps", t.gbytes_per_s(once + written)}});
  }
  return ok;
}

int main(int argc, char **argv) {
  settings s;
  std::string type = "f16";
  tessera::cli cli("matmul", "C = A x B");
  constexpr std::int64_t most = std::numeric_limits<tl::i32>::max();
  cli.option("--m", s.m, "rows of A and C", 1, most);
  cli.option("--n", s.n, "columns of B and C", 1, most);
  cli.option("--k", s.k, "columns of A, rows of B", 1, most);
  cli.option("--type", type, "f16, bf16, f32, tf32, tf32x3, f64, f8e4m3, f8e5m2, f8e4m3fnuz, f8e5m2fnuz, i8 or all");
  cli.flag("--trans-a", s.trans_a, "store A column by column");
  cli.flag("--trans-b", s.trans_b, "store B column by column");
  cli.option("--pad", s.pad, "elements between the rows (or columns) of every matrix", 0, most);
  cli.flag("--leaky-relu", s.leaky_relu, "C = leaky_relu(A x B), where its elements are floats");
  cli.option("--bm", s.bm, "rows of a tile of C; 0: what suits the target, here and below", 0, 1 << 20);
  cli.option("--bn", s.bn, "columns of a tile of C", 0, 1 << 20);
  cli.option("--bk", s.bk, "columns of a tile of A", 0, 1 << 20);
  cli.option("--group", s.group, "block rows launched together", 1, 1024);
  cli.option("--stages", s.stages, "tiles in flight", 0, 64);
  cli.option("--warps", s.warps, "warps of a program", 0, 64);

  return cli.run(argc, argv, [&] {
    bool ok = true, known = false;
    const auto chosen = [&](const char *name) { return (type == name || type == "all") && (known = true); };
    if (chosen("f16"))
      ok &= run<tl::f16>(cli, s, "f16");
    if (chosen("bf16"))
      ok &= run<tl::bf16>(cli, s, "bf16");
    if (chosen("f32"))
      ok &= run<float>(cli, s, "f32");
    if (chosen("tf32"))
      ok &= run<float>(cli, s, "tf32", tl::precision::tf32);
    if (chosen("tf32x3"))
      ok &= run<float>(cli, s, "tf32x3", tl::precision::tf32x3);
    if (chosen("f64"))
      ok &= run<double>(cli, s, "f64");
    if (chosen("f8e4m3"))
      ok &= run<tl::f8e4m3>(cli, s, "f8e4m3");
    if (chosen("f8e5m2"))
      ok &= run<tl::f8e5m2>(cli, s, "f8e5m2");
    if (chosen("f8e4m3fnuz"))
      ok &= run<tl::f8e4m3fnuz>(cli, s, "f8e4m3fnuz");
    if (chosen("f8e5m2fnuz"))
      ok &= run<tl::f8e5m2fnuz>(cli, s, "f8e5m2fnuz");
    if (chosen("i8"))
      ok &= run<tl::i8>(cli, s, "i8");
    if (!known)
      throw tessera::error(tessera::stage::launch, "--type: '" + type + "' is no element type here");
    return ok;
  });
}
