// What a launch costs the host: the first one (traced, compiled, loaded), by stage, and warm ones with 5 and 20
// arguments beside the driver's own launch (cuLaunchKernel, hipModuleLaunchKernel) of the same code in the same process.
//
//     launch_overhead --target=cuda|hip --bench
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;

namespace {

using clock_type = std::chrono::steady_clock;

double milliseconds(clock_type::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

struct row_config {
  int block = 4096;
};
const auto softmax =
    tl::kernel("softmax", [](tl::ptr<float> out, tl::ptr<const float> x, tl::val<tl::i32> cols, row_config c) {
      auto col = tl::arange(0, c.block);
      auto in = col < cols;
      auto v = tl::load(x + tl::program_id(0) * cols + col, in, {.other = -tl::inf});
      auto e = tl::exp(v - tl::max(v, 0));
      tl::store(out + tl::program_id(0) * cols + col, e / tl::sum(e, 0), in);
    });

const auto five = tl::kernel("five", [](tl::ptr<const float> x, tl::ptr<const float> y, tl::ptr<float> out,
                                        tl::val<tl::i32> n, tl::val<float> scale) {
  auto i = tl::arange(0, 128);
  tl::store(out + i, tl::load(x + i, i < n) * scale + tl::load(y + i, i < n), i < n);
});

using in = tl::ptr<const float>;
using num = tl::val<tl::i32>;
const auto twenty =
    tl::kernel("twenty", [](in a, in b, in c, in d, in e, in f, in g, in h, in i, tl::ptr<float> out, num n0, num n1,
                            num n2, num n3, num n4, num n5, num n6, num n7, num n8, num n9) {
      auto at = tl::arange(0, 128);
      auto sum = n0 + n1 + n2 + n3 + n4 + n5 + n6 + n7 + n8 + n9;
      auto all = tl::load(a + at) + tl::load(b + at) + tl::load(c + at) + tl::load(d + at) + tl::load(e + at) +
                 tl::load(f + at) + tl::load(g + at) + tl::load(h + at) + tl::load(i + at);
      tl::store(out + at, all, at < sum);
    });

/// The driver's own launch, of machine code that tessera compiled.
class bare_function {
public:
  bare_function(const tessera::device &d, const tessera::kernel_handle &k)
      : shared_(k.shared_bytes()), threads_(d.properties().warp_size * k.num_warps()) {
    const bool hip = d.target().kind == tessera::target_kind::hip;
    void *library = open(hip);
    auto load = reinterpret_cast<int (*)(void **, const void *)>(dlsym(library, hip ? "hipModuleLoadData" : "cuModuleLoadData"));
    auto find = reinterpret_cast<int (*)(void **, void *, const char *)>(
        dlsym(library, hip ? "hipModuleGetFunction" : "cuModuleGetFunction"));
    launch_ = reinterpret_cast<decltype(launch_)>(dlsym(library, hip ? "hipModuleLaunchKernel" : "cuLaunchKernel"));
    if (hip) {
      shared_ = 0; // it is part of the code object
      set_device_ = reinterpret_cast<decltype(set_device_)>(dlsym(library, "hipSetDevice"));
      device_ = d.properties().index;
    } else {
      auto retain = reinterpret_cast<int (*)(void **, int)>(dlsym(library, "cuDevicePrimaryCtxRetain"));
      set_context_ = reinterpret_cast<decltype(set_context_)>(dlsym(library, "cuCtxSetCurrent"));
      if (retain(&context_, d.properties().index))
        throw tessera::error(tessera::stage::driver, "the device has no primary context");
    }
    enter_thread();
    const std::string &code = k.stage(hip ? "hsaco" : k.has("cubin") ? "cubin" : "ptx");
    void *module = nullptr;
    if (load(&module, code.c_str()) || find(&function_, module, k.name().c_str()))
      throw tessera::error(tessera::stage::driver, "the driver does not load the kernel again");
  }
  /// Makes the device current for this thread, which the driver's launch needs.
  void enter_thread() const {
    if (set_context_ ? set_context_(context_) : set_device_(device_))
      throw tessera::error(tessera::stage::driver, "the device cannot be made current");
  }
  void operator()(void *stream, void **args) const {
    launch_(function_, 1, 1, 1, threads_, 1, 1, shared_, stream, args, nullptr);
  }

private:
  /// The library that tessera has opened already.
  static void *open(bool hip) {
    if (const char *named = std::getenv(hip ? "TESSERA_LIBHIP" : "TESSERA_LIBCUDA"); named && *named)
      return dlopen(named, RTLD_NOW);
    for (const char *name : hip ? std::array{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}
                                : std::array{"libcuda.so.1", "libcuda.so.1", "libcuda.so.1", "libcuda.so.1"})
      if (void *library = dlopen(name, RTLD_NOW | RTLD_NOLOAD))
        return library;
    throw tessera::error(tessera::stage::driver, "the driver's library is not found again");
  }

  using launch_type = int(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
  int (*set_context_)(void *) = nullptr;
  int (*set_device_)(int) = nullptr;
  int device_ = 0;
  void *context_ = nullptr, *function_ = nullptr;
  launch_type *launch_ = nullptr;
  unsigned shared_, threads_;
};

/// Microseconds of host time a call, the median over rounds that fit into the device's queue.
double cost(const tessera::stream &s, const std::function<void()> &call) {
  constexpr int calls = 400, rounds = 31;
  std::vector<double> times;
  for (int r = 0; r < rounds; ++r) {
    s.synchronize();
    const auto start = clock_type::now();
    for (int i = 0; i < calls; ++i)
      call();
    times.push_back(milliseconds(clock_type::now() - start) * 1e3 / calls);
  }
  return tessera::quantile(times, 0.5);
}

void print(const char *what, double warm, double bare) {
  std::printf("%-44s %7.3f us, bare launch %7.3f us: + %.3f us, %.2f x\n", what, warm, bare, warm - bare,
              warm / bare);
}

void first_launch(const tessera::stream &s) {
  tessera::device_buffer<float> x(s.device(), std::vector<float>(4096 * 64, 1.5f)), out(s.device(), 4096 * 64);
  s.synchronize();
  for (int block : {4096, 2048}) { // the first also starts LLVM
    const auto k = softmax.with({.block = block}, {.num_warps = 8});
    const auto start = clock_type::now();
    k(s, 64, out, x, block);
    s.synchronize();
    const double total = milliseconds(clock_type::now() - start);
    std::printf("first launch of softmax, %d columns: %.1f ms\n", block, total);
    double named = 0;
    for (const auto &[stage, ms] : k.prepare(s, out, x, block).times()) {
      named += ms;
      if (ms >= 0.5)
        std::printf("    %-32s %8.2f ms\n", stage.c_str(), ms);
    }
    std::printf("    %-32s %8.2f ms\n", "stages under 0.5 ms, load, run", total - named);
  }
}

bool measure(const tessera::stream &s) {
  first_launch(s);
  std::vector<tessera::device_buffer<float>> buffers;
  for (int i = 0; i < 10; ++i)
    buffers.emplace_back(s.device(), std::vector<float>(128, 1.0f));
  auto &b = buffers;
  const float scale = 0.5f;
  auto call5 = [&](const tessera::stream &to) { five(to, 1, b[0], b[1], b[2], 128, scale); };
  auto call20 = [&] {
    twenty(s, 1, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
  };
  call5(s);
  call20();
  s.synchronize();
  if (s.device().is_cpu()) {
    std::printf(
        "warm launch, 5 arguments: %.3f us; 20 arguments: %.3f us (with the run itself: the CPU runs at once)\n",
        cost(s, [&] { call5(s); }), cost(s, call20));
    return true;
  }

  std::array<void *, 10> address;
  for (int i = 0; i < 10; ++i)
    address[i] = b[i].data();
  std::array<int, 10> numbers{2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  int n = 128;
  float scale_argument = scale;
  const bare_function bare5(s.device(), five.prepare(s, b[0], b[1], b[2], 128, scale));
  const bare_function bare20(
      s.device(), twenty.prepare(s, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  void *args5[] = {&address[0], &address[1], &address[2], &n, &scale_argument};
  void *args20[20];
  for (int i = 0; i < 10; ++i)
    args20[i] = &address[i], args20[10 + i] = &numbers[i];

  const tessera::stream work(s.device());
  print("warm launch, 5 arguments", cost(work, [&] { call5(work); }), cost(work, [&] { bare5(work.native(), args5); }));
  print("warm launch, 20 arguments", cost(s, call20), cost(s, [&] { bare20(s.native(), args20); }));

  // Eight threads, a stream each, at once.
  auto threaded = [&](auto call) {
    std::vector<double> times(8);
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
          bare5.enter_thread();
          const tessera::stream mine(s.device());
          times[t] = cost(mine, [&] { call(mine); });
        });
    }
    return tessera::quantile(times, 0.5);
  };
  print("warm launch, 5 arguments, 8 threads", threaded(call5),
        threaded([&](const tessera::stream &to) { bare5(to.native(), args5); }));

  const auto got = b[2].to_host();
  return std::all_of(got.begin(), got.end(), [&](float v) { return v == 1.5f; });
}

} // namespace

int main(int argc, char **argv) {
  tessera::cli cli("launch_overhead", "Host time of first and warm launches");
  return cli.run(argc, argv, [&] {
    tessera::set_cache({.use = tessera::cache_settings::mode::off}); // first_launch measures that of cached ones
    return measure(tessera::stream(cli.device()));
  });
}
