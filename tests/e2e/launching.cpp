// Launching itself: graphs captured from a stream and replayed, cooperative launches and clusters, many threads.
#include "harness.h"

#include <atomic>
#include <dlfcn.h>
#include <numeric>
#include <thread>

using namespace e2e;

namespace {

struct config {
  int block = 128;
};

const auto affine = tl::kernel("affine", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<i32> n, config c) {
  auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
  tl::store(y + at, tl::load(x + at, at < n) * 2.0f + 1.0f, at < n);
});
const auto add_in_place =
    tl::kernel("add_in_place", [](tl::ptr<float> y, tl::ptr<const float> x, tl::val<i32> n, config c) {
      auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
      tl::store(y + at, tl::load(y + at, at < n) + tl::load(x + at, at < n), at < n);
    });
/// Warps of a program wait for one another in the sum.
const auto block_sum = tl::kernel("block_sum", [](tl::ptr<const float> y, tl::ptr<float> s, tl::val<i32> n, config c) {
  auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
  tl::store(s + tl::program_id(0), tl::sum(tl::load(y + at, at < n), 0));
});

auto blocks(int n) {
  return [n](const config &c) { return tl::cdiv(n, c.block); };
}

/// Graphs by the driver's own functions: the library has none, since any launch can be captured.
class graph_api {
public:
  explicit graph_api(const tessera::device &d) : hip_(d.target().kind == tessera::target_kind::hip) {
    const char *variable = std::getenv(hip_ ? "TESSERA_LIBHIP" : "TESSERA_LIBCUDA");
    const std::string name = variable && *variable ? variable : hip_ ? "libamdhip64.so" : "libcuda.so.1";
    library_ = dlopen(name.c_str(), RTLD_NOW);
    REQUIRE_MESSAGE(library_ != nullptr, name, " cannot be opened again");
    if (hip_) {
      CHECK(call<int(int)>("hipSetDevice")(d.properties().index) == 0);
    } else {
      void *context = nullptr;
      CHECK(call<int(void **, int)>("cuDevicePrimaryCtxRetain")(&context, d.properties().index) == 0);
      CHECK(call<int(void *)>("cuCtxSetCurrent")(context) == 0);
    }
  }
  /// `work` gives launches to `s`, which are recorded instead of run. Null where the capture came to nothing.
  template <class F> void *capture(const tessera::stream &s, const F &work) const {
    REQUIRE(call<int(void *, int)>(hip_ ? "hipStreamBeginCapture" : "cuStreamBeginCapture_v2")(s.native(), 0) == 0);
    void *graph = nullptr, *executable = nullptr;
    try {
      work();
    } catch (...) {
      end(s, &graph);
      throw;
    }
    if (end(s, &graph) != 0)
      return nullptr;
    const int made =
        hip_ ? call<int(void **, void *, void **, char *, std::size_t)>("hipGraphInstantiate")(&executable, graph,
                                                                                               nullptr, nullptr, 0)
             : call<int(void **, void *, unsigned long long)>("cuGraphInstantiateWithFlags")(&executable, graph, 0);
    CHECK(made == 0);
    return executable;
  }
  void replay(void *executable, const tessera::stream &s) const {
    CHECK(call<int(void *, void *)>(hip_ ? "hipGraphLaunch" : "cuGraphLaunch")(executable, s.native()) == 0);
  }

private:
  template <class F> F *call(const char *name) const {
    auto *function = reinterpret_cast<F *>(dlsym(library_, name));
    REQUIRE_MESSAGE((function != nullptr), "the driver has no ", name);
    return function;
  }
  int end(const tessera::stream &s, void **graph) const {
    return call<int(void *, void **)>(hip_ ? "hipStreamEndCapture" : "cuStreamEndCapture")(s.native(), graph);
  }
  bool hip_;
  void *library_ = nullptr;
};

} // namespace

TEST_SUITE_BEGIN("launching");

TEST_CASE("three launches captured into a graph are replayed with other data") {
  if (dev().is_cpu())
    return; // which runs work when it is given
  constexpr int n = 1000, programs = 8;
  const graph_api graphs(dev());
  const tessera::stream s(dev());
  tessera::device_buffer<float> x(dev(), n), y(dev(), n), sums(dev(), programs);
  float *plain = sums.data(); // looked up in the driver while the stream is being captured
  affine.prepare(s, x, y, n);
  add_in_place.prepare(s, y, x, n);
  block_sum.prepare(s, y, plain, n);
  sums.fill(-1.0f);
  s.synchronize();
  void *graph = graphs.capture(s, [&] {
    affine(s, blocks(n), x, y, n);
    add_in_place(s, blocks(n), y, x, n);
    block_sum(s, blocks(n), y, plain, n);
  });
  REQUIRE(graph);
  s.synchronize();
  CHECK(sums.to_host() == std::vector<float>(programs, -1.0f)); // recorded, not run
  for (int round = 0; round < 3; ++round) {
    std::vector<float> data(n), want(programs, 0.0f);
    for (int i = 0; i < n; ++i) {
      data[std::size_t(i)] = float((i * 7 + round * 13) % 50);
      want[std::size_t(i / 128)] += 3 * data[std::size_t(i)] + 1; // small integers: exact in any order
    }
    x.copy_from(data);
    sums.fill(-1.0f);
    graphs.replay(graph, s);
    s.synchronize();
    CHECK(sums.to_host() == want);
  }
}

TEST_CASE("a launch that would have to load code while its stream is captured says what to do, and works later") {
  if (dev().is_cpu())
    return;
  const graph_api graphs(dev());
  const tessera::stream s(dev());
  const auto cold = tl::kernel("cold_while_captured", [](tl::ptr<i32> y) { tl::store(y, 42); });
  tessera::device_buffer<i32> y(dev(), 1);
  y.fill(0);
  s.synchronize();
  void *graph = nullptr;
  std::string said;
  try {
    graph = graphs.capture(s, [&] { cold(s, 1, y); });
  } catch (const tessera::error &e) {
    said = e.what();
  }
  if (said.empty()) { // this driver can load code meanwhile
    REQUIRE(graph);
    graphs.replay(graph, s);
  } else {
    CHECK_MESSAGE(said.find("prepare") != said.npos, said);
    cold(s, 1, y);
  }
  s.synchronize();
  CHECK(y.to_host() == std::vector<i32>{42});
}

TEST_CASE("programs of a cooperative launch wait for one another; too many of them are refused") {
  // Every program announces itself, and goes on when it has seen all others.
  const auto meet = tl::kernel("meet", [](tl::ptr<i32> seen, tl::ptr<i32> out, tl::val<i32> n) {
    auto who = tl::arange(0, 1024);
    auto me = tl::program_id(0);
    tl::store(seen + me, me + 1);
    auto look = [&] { return tl::load(seen + who, who < n, {.other = 1, .is_volatile = true}); };
    tl::var<i32> missing = 1;
    tl::while_([&] { return missing > 0; },
               [&] { missing = tl::sum(tl::where(look() == 0, tl::zeros<i32>({1024}) + 1, 0), 0); });
    tl::store(out + me, tl::sum(tl::where(who < n, look(), 0), 0));
  });
  const auto together = meet.launched({.cooperative = true});
  output<i32> seen(1024), out(1024);
  const int n = dev().is_cpu() ? 2 : int(std::min(1024u, dev().properties().multiprocessors));
  if (dev().is_cpu()) {
    CHECK_THROWS_WITH_AS(together(on(), n, *seen, *out, n), doctest::Contains("a cooperative launch needs a GPU"),
                         tessera::error);
    return;
  }
  for (int round = 0; round < 3; ++round) {
    (*seen).fill(0);
    together(on(), n, *seen, *out, n);
    on().synchronize();
    auto got = out.read();
    for (int i = 0; i < n; ++i)
      REQUIRE(got[std::size_t(i)] == n * (n + 1) / 2);
  }
  CHECK_THROWS_WITH_AS(together(on(), 1 << 20, *seen, *out, n), doctest::Contains("does not fit"), tessera::error);
  (*seen).fill(0);
  together(on(), n, *seen, *out, n); // the refusal did no harm
  on().synchronize();
  CHECK(out.read()[0] == n * (n + 1) / 2);
}

TEST_CASE("clusters of programs compute what programs by themselves do") {
  const auto place = tl::kernel("place", [](tl::ptr<i32> y) {
    tl::store(y + (tl::program_id(2) * 4 + tl::program_id(1)) * 8 + tl::program_id(0),
              tl::program_id(0) + 10 * tl::program_id(1) + 100 * tl::program_id(2));
  });
  std::vector<i32> want;
  for (int r = 0; r < 2; ++r)
    for (int q = 0; q < 4; ++q)
      for (int p = 0; p < 8; ++p)
        want.push_back(p + 10 * q + 100 * r);
  const std::string &arch = dev().properties().arch;
  const bool able = dev().is_cpu() || (arch.starts_with("sm_") && std::atoi(arch.c_str() + 3) >= 90);
  for (auto cluster : {std::array{2u, 1u, 1u}, {1u, 4u, 2u}, {8u, 1u, 1u}, {8u, 2u, 1u}}) { // 16 programs are many
    const auto grouped = place.launched({.cluster = cluster});
    output<i32> out(64);
    if (!able) {
      CHECK_THROWS_AS(grouped(on(), {8, 4, 2}, *out), tessera::error);
      continue;
    }
    grouped(on(), {8, 4, 2}, *out);
    check_equal<i32>("cluster", out.read(), want);
  }
  output<i32> out(64);
  CHECK_THROWS_WITH_AS(place.launched({.cluster = {3, 1, 1}})(on(), {8, 4, 2}, *out),
                       doctest::Contains("must be a multiple"), tessera::error);
  place(on(), {8, 4, 2}, *out);
  check_equal<i32>("no cluster", out.read(), want);
}

TEST_CASE("a grid of 2^32 programs runs all of them") {
  if (dev().is_cpu() || !exhaustive())
    return; // takes seconds
  const auto corners = tl::kernel("corners", [](tl::ptr<i32> y) {
    auto p = tl::program_id(0), q = tl::program_id(1), r = tl::program_id(2);
    tl::if_(p % 16383 == 0 && q % 16383 == 0 && r % 15 == 0,
            [&] { tl::store(y + p / 16383 + 2 * (q / 16383) + 4 * (r / 15), p + q + r); });
  });
  output<i32> out(8);
  launch(corners.with_options({.num_warps = 1}), {16384, 16384, 16}, *out); // the 32-bit product is 0
  on().synchronize();
  check_equal<i32>("corners", out.read(), {0, 16383, 16383, 32766, 15, 16398, 16398, 32781});
}

TEST_CASE("eight threads launch the same kernels on streams of their own, from the first launch on") {
  constexpr int n = 777, rounds = 25;
  std::atomic<int> wrong = 0, before = 0, after = 0;
  tessera::set_launch_hooks({.before = [&](const tessera::launch_info &) { ++before; },
                             .after = [&](const tessera::launch_info &) { ++after; }});
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      try {
        const tessera::stream s(dev());
        std::vector<float> data(n);
        for (int i = 0; i < n; ++i)
          data[std::size_t(i)] = float((i + 31 * t) % 97);
        tessera::device_buffer<float> x(dev(), data), y(dev(), n), sums(dev(), 16);
        for (int round = 0; round < rounds; ++round) {
          const int block = round % 2 ? 128 : 256;
          affine.with({.block = block})(s, blocks(n), x, y, n);
          add_in_place.with({.block = block})(s, blocks(n), y, x, n);
          block_sum.with({.block = block}).launched({.cluster = {1, 1, 1}})(s, blocks(n), y, sums, n);
          s.synchronize();
          const auto got = sums.to_host();
          std::vector<float> want(std::size_t((n + block - 1) / block), 0.0f);
          for (int i = 0; i < n; ++i)
            want[std::size_t(i / block)] += 3 * data[std::size_t(i)] + 1;
          wrong += part(got, 0, want.size()) != want;
        }
      } catch (const std::exception &e) {
        MESSAGE(e.what());
        ++wrong;
      }
    });
  for (auto &t : threads)
    t.join();
  tessera::set_launch_hooks({});
  CHECK(wrong == 0);
  CHECK(before == 8 * rounds * 3);
  CHECK(after == before);
}

TEST_SUITE_END();
