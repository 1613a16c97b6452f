// What compiling tiles of 32768 elements costs, by kernel, target and number of warps: processor time of this process and
// of the assembler, the stages that took it, and what came out. Nothing is run, and nothing is read from a cache.
//
//     compile_times [--kernels=softmax,…] [--targets=cuda:sm_90a,…] [--warps=0,1,2,4,8,16] [--above=MS] [--dump=ttir:DIR]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;
using tl::all, tl::newaxis;
using num = tl::val<tl::i32>;
template <class T> using src = tl::ptr<const T>;
template <class T> using dst = tl::ptr<T>;

namespace {

constexpr int kElements = 32768, kRows = 128, kCols = kElements / kRows;

template <class T>
const auto softmax = tl::kernel("softmax", [](src<T> x, dst<T> y, num stride, num cols) {
  auto col = tl::arange(0, kElements);
  auto in = col < cols;
  auto v = tl::load(x + tl::program_id(0) * stride + col, in, {.other = -tl::inf}).template to<float>();
  auto e = tl::exp(v - tl::max(v, 0));
  tl::store(y + tl::program_id(0) * stride + col, (e / tl::sum(e, 0)).template to<T>(), in);
});

template <class T>
const auto layer_norm =
    tl::kernel("layer_norm", [](src<T> x, src<T> w, src<T> b, dst<T> y, dst<float> mean, num cols, tl::val<float> eps) {
      auto col = tl::arange(0, kElements);
      auto in = col < cols;
      auto n = cols.to<float>();
      auto v = tl::load(x + tl::program_id(0) * cols + col, in).template to<float>();
      auto mu = tl::sum(v, 0) / n;
      auto d = tl::where(in, v - mu, 0.0f);
      auto scale = tl::rsqrt(tl::sum(d * d, 0) / n + eps);
      tl::store(mean + tl::program_id(0), mu);
      auto scaled = d * scale * tl::load(w + col, in).template to<float>();
      auto shifted = scaled + tl::load(b + col, in).template to<float>();
      tl::store(y + tl::program_id(0) * cols + col, shifted.template to<T>(), in);
    });

const auto layer_norm_backward =
    tl::kernel("layer_norm_backward", [](src<float> x, src<float> dy, src<float> w, src<float> mean, src<float> rstd,
                                         dst<float> dx, dst<float> dw_part, dst<float> db_part, num rows, num cols) {
      auto first = tl::program_id(0);
      auto col = tl::arange(0, kElements);
      auto in = col < cols;
      auto n = cols.to<float>();
      auto weight = tl::load(w + col, in);
      tl::var dw = tl::zeros<float>({kElements});
      tl::var db = tl::zeros<float>({kElements});
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

template <class T>
const auto chain = tl::kernel("chain", [](src<T> x, dst<T> y, num n) {
  auto at = tl::program_id(0) * kElements + tl::arange(0, kElements);
  auto v = tl::load(x + at, at < n);
  tl::store(y + at, tl::pow(tl::log(tl::erf(tl::tanh(tl::sin(v))) + T(2)), v), at < n);
});

struct one_function {
  int which = 0;
};
template <class T>
const auto function = tl::kernel("function", [](src<T> x, dst<T> y, num n, one_function f) {
  auto at = tl::program_id(0) * kElements + tl::arange(0, kElements);
  auto v = tl::load(x + at, at < n);
  using value = tl::val<T>;
  auto r = f.which == 0   ? value(tl::sin(v))
           : f.which == 1 ? value(tl::erf(v))
           : f.which == 2 ? value(tl::pow(v, v))
           : f.which == 3 ? value(tl::exp(v))
           : f.which == 4 ? value(tl::sqrt(v))
                          : value(v / (v + T(1)));
  tl::store(y + at, r, at < n);
});

num row() { return tl::arange(0, kRows)[all, newaxis]; }
num col() { return tl::arange(0, kCols)[newaxis, all]; }

template <class T>
const auto argmax_both = tl::kernel("argmax_both", [](src<T> x, dst<tl::i32> rows, dst<tl::i32> cols, num stride) {
  auto v = tl::load(x + row() * stride + col());
  tl::store(rows + tl::arange(0, kRows), tl::argmax(v, 1));
  tl::store(cols + tl::arange(0, kCols), tl::argmax(v, 0));
});

template <class T>
const auto sum_both = tl::kernel("sum_both", [](src<T> x, dst<T> rows, dst<T> cols, num m, num n) {
  auto v = tl::load(x + row() * n + col(), row() < m && col() < n, {.other = 1});
  tl::store(rows + tl::arange(0, kRows), tl::sum(v, 1));
  tl::store(cols + tl::arange(0, kCols), tl::sum(v, 0));
});

template <class T>
const auto outer = tl::kernel("outer", [](src<T> x, src<T> y, dst<T> z, num m, num n) {
  auto a = tl::load(x + row(), row() < m), b = tl::load(y + col(), col() < n);
  tl::store(z + row() * n + col(), a * b, row() < m && col() < n);
});

template <class T>
const auto transpose = tl::kernel("transpose", [](src<T> x, dst<T> y, num m, num n) {
  auto v = tl::load(x + row() * n + col(), row() < m && col() < n);
  auto r = tl::arange(0, kCols)[all, newaxis], c = tl::arange(0, kRows)[newaxis, all];
  tl::store(y + r * m + c, tl::trans(v), r < n && c < m);
});

template <class F, class T>
const auto cast = tl::kernel("cast", [](src<F> x, dst<T> y, num n) {
  auto at = tl::program_id(0) * kElements + tl::arange(0, kElements);
  tl::store(y + at, tl::load(x + at, at < n).template to<T>(), at < n);
});

template <class T>
const auto divide = tl::kernel("divide", [](src<T> x, src<T> y, dst<T> z, num n) {
  auto at = tl::program_id(0) * kElements + tl::arange(0, kElements);
  auto a = tl::load(x + at, at < n, {.other = 7}), b = tl::load(y + at, at < n, {.other = 3});
  tl::store(z + at, a / b + a % b, at < n);
});

const auto gather_rows = tl::kernel("gather_rows", [](src<float> x, src<tl::i64> index, dst<float> y, num n) {
  auto at = tl::program_id(0) * kElements + tl::arange(0, kElements);
  auto i = tl::load(index + at, at < n, {.other = 0});
  tl::store(y + at, tl::load(x + i, at < n && i >= 0, {.other = tl::nan}), at < n);
});

const auto joined = tl::kernel("joined", [](src<float> x, src<float> y, dst<float> z) {
  auto at = tl::arange(0, kElements / 2);
  auto both = tl::join(tl::load(x + at), tl::load(y + at));
  tl::store(z + tl::arange(0, kElements), tl::reshape(both, {kElements}));
});

template <class T, class A>
const auto product = tl::kernel("product", [](src<T> a, src<T> b, dst<T> c, num M, num N, num K) {
  constexpr int bk = sizeof(T) == 8 ? 16 : 32;
  auto m = tl::program_id(0) * kRows + tl::arange(0, kRows), n = tl::program_id(1) * kCols + tl::arange(0, kCols);
  tl::var acc = tl::zeros<A>({kRows, kCols});
  for (auto k0 : tl::range(0, K, bk)) {
    auto k = k0 + tl::arange(0, bk);
    auto x = tl::load(a + m[all, newaxis] * K + k[newaxis, all], m[all, newaxis] < M && k[newaxis, all] < K);
    auto y = tl::load(b + k[all, newaxis] * N + n[newaxis, all], k[all, newaxis] < K && n[newaxis, all] < N);
    acc = tl::dot(x, y, acc);
  }
  tl::store(c + m[all, newaxis] * N + n[newaxis, all], acc.template to<T>(), m[all, newaxis] < M && n[newaxis, all] < N);
});

struct subject {
  std::string name;
  std::function<tessera::kernel_handle(const std::string &target, const tessera::compile_options &)> compile;
};

template <class K> subject of(std::string name, K kernel) {
  return {std::move(name), [kernel](const std::string &target, const tessera::compile_options &options) {
            return kernel.with_options(options).compile_for(target);
          }};
}

std::vector<subject> subjects() {
  return {of("softmax f32", softmax<float>),
          of("softmax f16", softmax<tl::f16>),
          of("layer norm f32", layer_norm<float>),
          of("layer norm f16", layer_norm<tl::f16>),
          of("layer norm backward", layer_norm_backward),
          of("chain f32", chain<float>),
          of("chain f64", chain<double>),
          of("sin f32", function<float>.with({0})),
          of("erf f32", function<float>.with({1})),
          of("pow f64", function<double>.with({2})),
          of("exp f64", function<double>.with({3})),
          of("sqrt f64", function<double>.with({4})),
          of("quotient f64", function<double>.with({5})),
          of("argmax both f32", argmax_both<float>),
          of("argmax both f64", argmax_both<double>),
          of("argmax both i64", argmax_both<tl::i64>),
          of("argmax both f16", argmax_both<tl::f16>),
          of("sum both f32", sum_both<float>),
          of("sum both i64", sum_both<tl::i64>),
          of("outer f32", outer<float>),
          of("outer f64", outer<double>),
          of("transpose f32", transpose<float>),
          of("transpose f16", transpose<tl::f16>),
          of("transpose i8", transpose<tl::i8>),
          of("transpose f64", transpose<double>),
          of("cast f32 f16", cast<float, tl::f16>),
          of("cast f32 fp8", cast<float, tl::f8e4m3>),
          of("cast fp8 f32", cast<tl::f8e4m3, float>),
          of("cast f64 i64", cast<double, tl::i64>),
          of("cast i64 f32", cast<tl::i64, float>),
          of("divide i32", divide<tl::i32>),
          of("divide i64", divide<tl::i64>),
          of("gather f32", gather_rows),
          of("join f32", joined),
          of("product f16", product<tl::f16, float>),
          of("product f32", product<float, float>),
          of("product f64", product<double, double>)};
}

/// Seconds of processor time of this process and of children that have ended.
double seconds_spent() {
  double seconds = 0;
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    getrusage(who, &used);
    for (const timeval &t : {used.ru_utime, used.ru_stime})
      seconds += double(t.tv_sec) + 1e-6 * double(t.tv_usec);
  }
  return seconds;
}

std::vector<std::string> split(const std::string &list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');)
    parts.push_back(part);
  return parts;
}

/// Lines of a text that begin with white space and a letter: its instructions, near enough.
std::size_t instructions(const std::string *text) {
  std::size_t count = 0;
  std::istringstream lines(text ? *text : std::string());
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find_first_not_of(" \t");
    count += first != line.npos && first > 0 && (std::isalpha(static_cast<unsigned char>(line[first])) || line[first] == '%');
  }
  return count;
}

} // namespace

int main(int argc, char **argv) {
  ::setenv("TESSERA_CACHE", "off", 1);
  std::string kernels, targets, warps = "0";
  double above = 0;
  std::int64_t most = 0;
  tessera::cli cli("compile_times", "Processor time to compile tiles of 32768 elements");
  cli.option("--kernels", kernels, "only those whose names contain one of these, comma-separated");
  cli.option("--targets", targets, "comma-separated; all without it");
  cli.option("--warps", warps, "numbers of warps, comma-separated; 0: the compiler's choice");
  cli.option("--above", above, "print only what takes more milliseconds");
  cli.option("--most", most, "fail where there are more LLVM instructions: what time grows with, but the same in every run");
  return cli.run(argc, argv, [&] {
    if (targets.empty())
      targets = "cpu,cuda:sm_80,cuda:sm_86,cuda:sm_89,cuda:sm_90a,cuda:sm_100a,hip:gfx90a,hip:gfx942,hip:gfx950,hip:gfx1100,"
                "hip:gfx1201,hip:gfx1250,cpu:emulate=sm_80,cpu:emulate=sm_90a,cpu:emulate=gfx90a,cpu:emulate=gfx942,"
                "cpu:emulate=gfx950,cpu:emulate=gfx1100,cpu:emulate=gfx1201";
    const auto wanted = split(kernels);
    double worst = 0;
    bool right = true;
    std::printf("%-20s %-20s %5s %8s %8s %6s %6s  %s\n", "kernel", "target", "warps", "ms", "llir", "regs", "spill", "stages of 30 ms or more");
    for (const std::string &target : split(targets))
      for (const std::string &w : split(warps))
        for (const subject &s : subjects()) {
          if (!wanted.empty() && std::none_of(wanted.begin(), wanted.end(), [&](const std::string &part) {
                return s.name.find(part) != s.name.npos;
              }))
            continue;
          tessera::compile_options options;
          options.num_warps = std::stoi(w);
          try {
            const double start = seconds_spent();
            const auto handle = s.compile(target, options);
            const double ms = 1e3 * (seconds_spent() - start);
            worst = std::max(worst, ms);
            const std::size_t length = instructions(handle.compiled().find("llir"));
            const bool tooLong = most > 0 && length > static_cast<std::size_t>(most);
            right &= !tooLong;
            if (ms < above && !tooLong)
              continue;
            std::string stages;
            for (auto &t : handle.times())
              if (t.milliseconds >= 30)
                stages += " " + t.name + " " + std::to_string(int(t.milliseconds));
            std::printf("%-20s %-20s %5s %8.0f %8zu %6d %6d %s\n", s.name.c_str(), target.c_str(), w.c_str(), ms,
                        length, handle.compiled().registers, handle.compiled().spills,
                        (stages + (tooLong ? " TOO LONG" : "")).c_str());
          } catch (const tessera::error &e) {
            right = false;
            std::string why = e.what();
            std::printf("%-20s %-20s %5s        - %s\n", s.name.c_str(), target.c_str(), w.c_str(), why.substr(0, 160).c_str());
          }
          std::fflush(stdout);
        }
    std::printf("longest: %.0f ms\n", worst);
    return right;
  });
}
