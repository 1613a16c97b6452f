// The CUDA device against the fake driver: what is called, what is passed, and what happens when the driver says no.
// A program of its own, since the driver is opened once per process.
#include "allocation_counter.h"
#include "messages.h"
#include "temporary_folder.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include <doctest/doctest.h>

#include <tessera/tessera.h>

#include "fake_gpu.h"

namespace tl = tessera::tl;
using namespace tessera;

namespace {

struct config {
  int block = 256;
};
auto make_copy(const char *name = "copy") {
  return tl::kernel(name, [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<tl::i32> n, config c) {
    auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
    tl::store(y + at, tl::load(x + at, at < n), at < n);
  });
}

template <class T> T value(const std::vector<unsigned char> &bytes) {
  REQUIRE(bytes.size() == sizeof(T));
  T v;
  std::memcpy(&v, bytes.data(), sizeof v);
  return v;
}

struct clean {
  clean() { fake_cuda().reset(); }
  ~clean() {
    CHECK(fake_cuda().refusals() == std::vector<std::string>());
    fake_cuda().reset();
  }
};

} // namespace

TEST_CASE_FIXTURE(clean, "devices are listed with their architecture") {
  auto all = device::all();
  REQUIRE(all.size() == fake_gpu::cuda_devices + 1);
  CHECK(all[0].name() == "Fake H200");
  CHECK(all[0].target().str() == "cuda:sm_90a");
  CHECK(all[1].target().str() == "cuda:sm_80");
  CHECK(device::best() == all[0]);
  CHECK(device::open("cuda:1") == all[1]);
  CHECK(all[0].properties().multiprocessors == 132);
  CHECK(all[0].properties().max_shared_bytes == 232448);
  CHECK(all[0].properties().max_grid[1] == 65535);
  CHECK(all[0].properties().peak_gbytes_per_s == doctest::Approx(4917).epsilon(0.01));
  CHECK(contains(message_of([] { device::cuda(2); }),
                 "there is no device cuda:2; this machine has the CPU, cuda:0 (Fake H200, sm_90a), cuda:1"));
  // Older code runs on newer GPUs, architecture-specific code on its own alone.
  CHECK(device::open("cuda:sm_80").properties().name == "Fake H200");
  CHECK(device::open("cuda:sm_80").target().arch == "sm_80");
  CHECK(contains(message_of([] { device::open("cuda:sm_100a"); }), "no device that runs code for 'cuda:sm_100a'"));
}

TEST_CASE_FIXTURE(clean, "memory is copied, filled, and given back") {
  auto gpu = device::cuda(0);
  const int before = fake_cuda().allocations_alive();
  {
    std::vector<float> host{1, 2, 3, 4, 5, 6, 7};
    device_buffer<float> b(gpu, host);
    CHECK(b.to_host() == host);
    device_buffer<float> c(gpu, 7);
    c.copy_from(b.view());
    CHECK(c.to_host() == host);
    device_buffer<float> on_cpu(device::cpu(), 7);
    on_cpu.copy_from(b.view());
    CHECK(on_cpu.to_host() == host);
    c.fill(0);
    c.copy_from(on_cpu.view());
    CHECK(c.to_host() == host);

    auto filled = [&]<class T>(T v) {
      device_buffer<T> d(gpu, 11);
      d.fill(v);
      auto r = d.to_host();
      CHECK(std::memcmp(&r[10], &v, sizeof v) == 0);
      CHECK(std::memcmp(&r[0], &v, sizeof v) == 0);
      CHECK(std::memcmp(&r[7], &v, sizeof v) == 0);
    };
    filled(std::uint8_t(7)), filled(std::uint16_t(0x1234)), filled(3.5f), filled(0.1), filled(1.0),
        filled(std::array<char, 3>{1, 2, 3});
  }
  CHECK(fake_cuda().allocations_alive() == before);
}

TEST_CASE_FIXTURE(clean, "memory that does not suffice is an error, and the next allocation works") {
  auto gpu = device::cuda(0);
  for (std::size_t bytes : {fake_gpu::memory_bytes + 1, SIZE_MAX})
    CHECK(contains(message_of([&] { device_buffer<char>(gpu, bytes); }), "out of memory: "));
  device_buffer<char> most(gpu, fake_gpu::memory_bytes - (1 << 20));
  auto text = message_of([&] { device_buffer<char>(gpu, 2 << 20); });
  CHECK(contains(
      text,
      "driver error: out of memory: 2097152 bytes asked for on cuda:0 (Fake H200), which has 1073741824, 1048576 free: "
      "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"));
  CHECK_NOTHROW(device_buffer<char>(gpu, 1 << 10));
}

TEST_CASE_FIXTURE(clean, "a launch passes grid, block, stream and exactly the parameters the code takes") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 1000), y(gpu, 1000);
  auto copy = make_copy();
  copy.with({.block = 512}, {.num_warps = 8})(
      s,
      [](const config &c) {
        return grid{(1000 + c.block - 1) / c.block, 3};
      },
      x, y, 1000);
  copy(s, 1, x, y, 1);
  auto launches = fake_cuda().launches();
  REQUIRE(launches.size() == 2);
  auto &a = launches[0];
  CHECK(a.kernel == "copy");
  CHECK(a.grid[0] == 2);
  CHECK(a.grid[1] == 3);
  CHECK(a.grid[2] == 1);
  CHECK(a.threads == 256);
  CHECK(a.stream == s.native());
  REQUIRE(a.params.size() == 3);
  CHECK(value<float *>(a.params[0]) == x.data());
  CHECK(value<float *>(a.params[1]) == y.data());
  CHECK(value<int>(a.params[2]) == 1000);
  CHECK(launches[1].params.size() == 2); // n = 1 is part of the code
  CHECK(launches[1].threads == 128);
}

TEST_CASE_FIXTURE(clean, "scalars of every width arrive") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<double> out(gpu, 8);
  auto all = tl::kernel("scalars", [](tl::val<tl::i8> a, tl::val<tl::f16> h, tl::ptr<double> o, tl::val<double> d,
                                      tl::val<tl::bf16> b, tl::val<tl::i64> n, tl::val<float> f) {
    tl::store(o, a.to<double>());
    tl::store(o + 1, h.to<double>());
    tl::store(o + 2, d);
    tl::store(o + 3, b.to<double>());
    tl::store(o + 4, n.to<double>());
    tl::store(o + 5, f.to<double>());
  });
  all(s, 1, -3, 42.0f, out, 0.1, 1.5f, -5000000000, 0.1f);
  auto launches = fake_cuda().launches();
  REQUIRE(launches.size() == 1);
  auto &p = launches[0].params;
  REQUIRE(p.size() == 7);
  CHECK(value<std::int8_t>(p[0]) == -3);
  CHECK(value<std::uint16_t>(p[1]) == 0x5140);
  CHECK(value<double *>(p[2]) == out.data());
  CHECK(value<double>(p[3]) == 0.1);
  CHECK(value<std::uint16_t>(p[4]) == 0x3fc0);
  CHECK(value<std::int64_t>(p[5]) == -5000000000);
  CHECK(value<float>(p[6]) == 0.1f);
}

TEST_CASE_FIXTURE(clean, "a warm launch asks the driver for nothing but the launch, and allocates nothing") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 4096), y(gpu, 4096);
  float *raw = y.data();
  auto copy = make_copy();
  auto launch = [&] {
    copy.with({.block = 1024})(
        s, [](const config &c) { return 4096 / c.block; }, x, raw, 4096);
  };
  launch();
  fake_cuda().reset();
  const std::size_t before = allocations; // the fake, which records launches, has an allocator of its own
  launch();
  CHECK(allocations == before);
  auto calls = fake_cuda().calls();
  CHECK(calls["cuLaunchKernel"] == 1);
  CHECK(calls["cuCtxGetCurrent"] == 1);
  CHECK(calls["cuCtxPushCurrent"] <= 1); // no context is current on this thread
  CHECK(calls["cuPointerGetAttributes"] == 0);
  CHECK(calls["cuModuleLoadData"] == 0);

  fake_cuda().reset();
  copy.with({.block = 1024})(s, 0, x, raw, 4096);
  CHECK(fake_cuda().total_calls() == 0);
  fake_cuda().fail_next("cuLaunchKernel", 701);
  CHECK(contains(message_of(launch), "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
  CHECK_NOTHROW(launch());
}

TEST_CASE_FIXTURE(clean, "threads without a current context launch; the same specialisation is loaded once") {
  auto gpu = device::cuda(0);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("copy_by_threads");
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      try {
        stream s(gpu);
        for (int i = 0; i < 50; ++i)
          copy(s, 1, x, y, 256);
      } catch (const std::exception &) {
        ++failed;
      }
    });
  for (auto &t : threads)
    t.join();
  CHECK(failed == 0);
  CHECK(fake_cuda().calls()["cuModuleLoadData"] == 1);
  CHECK(fake_cuda().launches().size() == 400);
}

TEST_CASE_FIXTURE(clean, "host memory given to a GPU kernel is refused, and the next launch works") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  std::vector<float> host(256);
  auto copy = make_copy();
  copy(s, 1, x, y, 256);
  auto text = message_of([&] { copy(s, 1, host, y, 256); });
  CHECK(contains(text, "launch error: argument 1 of kernel 'copy' is 0x"));
  CHECK(contains(text, "not memory of a GPU"));
  CHECK(contains(message_of([&] { copy(s, 1, x, host.data(), 256); }), "argument 2"));
  device_buffer<float> on_cpu(device::cpu(), 256);
  CHECK(contains(message_of([&] { copy(s, 1, on_cpu, y, 256); }),
                 "argument 1 of kernel 'copy' is a buffer of cpu, the stream is of cuda:sm_90a"));
  CHECK(
      contains(message_of([&] { copy(stream(device::cpu()), 1, x.data(), on_cpu, 256); }), "memory of a CUDA device"));
  CHECK(fake_cuda().launches().size() == 1);
  copy(s, 1, x.data(), y.data() + 1, 255);
  CHECK(fake_cuda().launches().size() == 2);
}

TEST_CASE_FIXTURE(clean, "an address is looked up once, and again after memory was freed") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> y(gpu, 256);
  auto copy = make_copy();
  float *freed;
  {
    device_buffer<float> x(gpu, 256);
    freed = x.data();
    for (int i = 0; i < 10; ++i)
      copy(s, 1, freed + i, y, 246);
    CHECK(fake_cuda().calls()["cuPointerGetAttributes"] <= 2); // once, or again where the allocation crosses 2 MiB
  }
  CHECK(contains(message_of([&] { copy(s, 1, freed, y, 256); }), "not memory of a GPU"));
  auto other = reinterpret_cast<float *>(fake_cuda().memory_of(1, 1024));
  CHECK(contains(message_of([&] { copy(s, 1, other, y, 256); }), "is memory of cuda:1, which cuda:0 cannot reach"));
}

TEST_CASE_FIXTURE(clean, "PTX that the driver refuses is an error with the driver's log, and the next launch works") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("refused");
  fake_cuda().fail_next("cuLinkAddData", 218);
  auto text = message_of([&] { copy(s, 1, x, y, 256); });
  CHECK(contains(text, "assemble error: the driver (CUDA 13.0) refused the PTX of kernel 'refused' for cuda:sm_90a: "
                       "CUDA_ERROR_INVALID_PTX"));
  CHECK(contains(text, "line 9; error   : Unexpected instruction types"));
  fake_cuda().fail_next("cuLinkAddData", 222);
  CHECK(contains(message_of([&] { copy(s, 1, x, y, 256); }), "install a newer driver"));
  CHECK(fake_cuda().launches().empty());
  copy(s, 1, x, y, 256);
  CHECK(fake_cuda().launches().size() == 1);
}

TEST_CASE_FIXTURE(clean, "the handle knows what the driver made") {
  auto gpu = device::cuda(0);
  auto h = make_copy().compile(gpu);
  CHECK(h.registers() == 42);
  CHECK(h.spills() == 0);
  CHECK(contains(h.stage("cubin"), "FAKE CUBIN"));
  CHECK(contains(h.stage("ptx"), ".entry copy"));
  CHECK(contains(h.summary(), "copy for cuda:sm_90a: 4 warps"));
}

TEST_CASE_FIXTURE(clean, "a fault of a kernel is reported when the stream is waited for") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256);
  make_copy("last_one")(s, 1, x, x, 256);
  fake_cuda().fail_next("cuStreamSynchronize", 700, true);
  auto text = message_of([&] { s.synchronize(); });
  CHECK(contains(text, "execute error: a kernel read or wrote memory outside every allocation"));
  CHECK(contains(text, "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered), found while waiting for "
                       "a stream (the last kernel launched was 'last_one')"));
  CHECK(contains(message_of([&] { device_buffer<float>(gpu, 4); }), "execute error"));
}

TEST_CASE_FIXTURE(clean, "a kernel's code is unloaded with the last handle to the kernel") {
  auto gpu = device::cuda(0);
  const int before = fake_cuda().modules_alive();
  {
    auto copy = make_copy();
    auto same = copy.with({.block = 64});
    same.compile(gpu);
    CHECK(fake_cuda().modules_alive() == before + 1);
  }
  CHECK(fake_cuda().modules_alive() == before);
}

TEST_CASE_FIXTURE(clean, "grids beyond the device's limits never reach the driver") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy();
  copy(s, {16384, 16384, 16}, x, y, 256); // the 32-bit product is 0
  copy(s, {2147483647, 2, 1}, x, y, 256);
  CHECK(fake_cuda().launches().size() == 2);
  CHECK(contains(message_of([&] {
                   copy(s, {65536, 65536, 1}, x, y, 256);
                 }),
                 "at most (2147483647, 65535, 65535) programs"));
  CHECK(fake_cuda().launches().size() == 2);
}

TEST_CASE_FIXTURE(clean, "more than 48 KiB of shared memory are asked for") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 128 * 256), y(gpu, 128 * 256);
  auto transpose = tl::kernel("transpose", [](tl::ptr<const float> x, tl::ptr<float> y) {
    auto row = tl::arange(0, 128), col = tl::arange(0, 256);
    auto tile = tl::load(x + row[tl::all, tl::newaxis] * 256 + col[tl::newaxis, tl::all]);
    tl::store(y + col[tl::all, tl::newaxis] * 128 + row[tl::newaxis, tl::all], tl::trans(tile));
  });
  transpose(s, 1, x, y);
  auto launches = fake_cuda().launches();
  REQUIRE(launches.size() == 1);
  CHECK(launches[0].shared_bytes > 48 * 1024); // the fake refuses what the function's attribute does not allow
  CHECK(fake_cuda().dynamic_shared_limit() == int(launches[0].shared_bytes));
  CHECK(transpose.compile(gpu).shared_bytes() == launches[0].shared_bytes);
}

TEST_CASE_FIXTURE(clean, "existing streams are used") {
  auto gpu = device::cuda(0);
  stream own(gpu);
  auto wrapped = stream::from_native(gpu, own.native());
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  make_copy()(wrapped, 1, x, y, 256);
  CHECK(fake_cuda().launches().back().stream == own.native());
  stream second(device::cuda(1));
  CHECK(stream::from_native(second.native()).device() == device::cuda(1));
  CHECK(contains(message_of([] { stream::from_native(nullptr); }), "name the device"));
  make_copy()(stream::default_of(gpu), 1, x, y, 256);
  CHECK(fake_cuda().launches().back().stream == nullptr);
}

TEST_CASE_FIXTURE(clean, "bench uses the device's events") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  auto r = bench(s, [] {}, {.warmup_ms = 0, .measure_ms = 1, .min_runs = 3, .max_runs = 8, .flush_cache = false});
  CHECK(r.median == doctest::Approx(0.25)); // the fake's clock moves a quarter of a millisecond an event
}

TEST_CASE_FIXTURE(
    clean, "warm launches are captured into a graph, which repeats them; loading in between is an error that says so") {
  auto gpu = device::cuda(0);
  stream s(gpu), other(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("captured"), cold = make_copy("cold");
  copy.prepare(s, x, y, 256);
  fake_cuda().begin_capture(s.native());
  copy(s, 1, x, y, 256);
  copy(s, 2, y, x, 256);
  copy(other, 3, x, y, 256); // not part of it
  CHECK(contains(message_of([&] { cold(s, 1, x, y, 256); }),
                 "A stream is being captured into a graph: compile and load with "
                 "kernel.prepare"));
  const auto graph = fake_cuda().end_capture();
  REQUIRE(graph.size() == 2);
  CHECK(graph[0].grid[0] == 1);
  CHECK(graph[1].grid[0] == 2);
  CHECK(value<float *>(graph[1].params[0]) == y.data());
  CHECK(fake_cuda().launches().size() == 1);
  fake_cuda().replay(graph);
  fake_cuda().replay(graph);
  CHECK(fake_cuda().launches().size() == 5);
  cold(s, 1, x, y, 256);
  CHECK(fake_cuda().launches().size() == 6);
}

TEST_CASE_FIXTURE(clean, "cooperative launches and clusters reach the driver as such") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("grouped");
  copy.launched({.cluster = {2, 1, 1}})(s, {4, 3}, x, y, 256);
  copy.launched({.cooperative = true})(s, 132, x, y, 256);
  copy.launched({.cooperative = true, .cluster = {4, 2, 2}})(s, {8, 2, 2}, x, y, 256);
  copy(s, 1, x, y, 256);
  auto l = fake_cuda().launches();
  REQUIRE(l.size() == 4);
  CHECK(l[0].cluster[0] == 2);
  CHECK_FALSE(l[0].cooperative);
  CHECK(l[1].cooperative);
  CHECK(l[1].cluster[0] == 1);
  CHECK(l[2].cooperative);
  CHECK(l[2].cluster[2] == 2);
  CHECK_FALSE(l[3].cooperative);
  CHECK(fake_cuda().calls()["cuModuleLoadData"] == 1);
  CHECK(fake_cuda().calls()["cuLaunchKernelEx"] == 3);

  CHECK(contains(message_of([&] {
                   copy.launched({.cluster = {2, 1, 1}})(s, 3, x, y, 256);
                 }),
                 "grid (3, 1, 1) in clusters of (2, 1, 1): each number of programs must be a multiple"));
  CHECK(contains(message_of([&] { copy.launched({.cluster = {0, 1, 1}})(s, 3, x, y, 256); }), "which is 1 to 16"));
  auto text = message_of([&] { copy.launched({.cooperative = true})(s, 100000, x, y, 256); });
  CHECK(contains(text, "cuda_driver.cpp"));
  CHECK(contains(text, "100000 programs of kernel 'grouped' does not fit on cuda:0 at once"));
  auto older = device::cuda(1);
  device_buffer<float> x1(older, 256), y1(older, 256);
  CHECK(contains(message_of([&] {
                   copy.launched({.cluster = {2, 1, 1}})(stream(older), 2, x1, y1, 256);
                 }),
                 "clusters need an sm_90 GPU or a newer one; cuda:1 is sm_80"));
  std::vector<float> a(256, 1.0f), b(256);
  stream cpu(device::cpu());
  copy.launched({.cluster = {2, 1, 1}})(cpu, 2, a, b, 256);
  CHECK(b == a);
  CHECK(contains(message_of([&] { copy.launched({.cooperative = true})(cpu, 2, a, b, 256); }),
                 "a cooperative launch needs a GPU"));
}

TEST_CASE_FIXTURE(clean, "hooks see every launch, and cost nothing when they are taken away") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("hooked");
  std::vector<std::string> log;
  set_launch_hooks({.before =
                        [&](const launch_info &i) {
                          CHECK(i.compiled.registers() == 42);
                          CHECK(&i.where == &s);
                          log.push_back(i.kernel + " " + std::to_string(i.grid.x));
                        },
                    .after = [&](const launch_info &) { log.push_back("done"); }});
  copy(s, 3, x, y, 256);
  fake_cuda().fail_next("cuLaunchKernel", 701);
  CHECK_THROWS_AS(copy(s, 4, x, y, 256), error);
  set_launch_hooks({});
  copy(s, 5, x, y, 256);
  CHECK(log == std::vector<std::string>{"hooked 3", "done", "hooked 4", "done"});
}

TEST_CASE_FIXTURE(clean, "what a hook throws comes out of the launch, and the next launch works") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("hooked_badly");
  copy(s, 1, x, y, 256);
  set_launch_hooks({.before = [](const launch_info &) { throw std::runtime_error("mine"); }});
  CHECK_THROWS_WITH(copy(s, 2, x, y, 256), "mine");
  set_launch_hooks({.after = [](const launch_info &) { throw std::runtime_error("mine"); }});
  CHECK_THROWS_WITH(copy(s, 3, x, y, 256), "mine");
  fake_cuda().fail_next("cuLaunchKernel", 701);
  CHECK_THROWS_WITH(copy(s, 4, x, y, 256), "mine");
  set_launch_hooks({});
  copy(s, 5, x, y, 256);
  std::vector<unsigned> grids;
  for (auto &l : fake_cuda().launches())
    grids.push_back(l.grid[0]);
  CHECK(grids == std::vector<unsigned>{1, 3, 5});
}

TEST_CASE_FIXTURE(clean, "trial runs of the autotuner are launched as the kernel is") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  tl::tuning<config> t;
  t.arguments = "x y n";
  t.candidates = {{{.block = 128}}, {{.block = 256}}};
  t.warmup_ms = 0, t.measure_ms = 0.1, t.progress = false;
  const auto tuned = tl::autotune(make_copy("tuned").launched({.cooperative = true, .cluster = {2, 1, 1}}), t);
  tuned(s, 2, x, y, 256);
  const auto all = fake_cuda().launches();
  CHECK(all.size() > 6);
  for (auto &l : all) {
    CHECK(l.cooperative);
    CHECK(l.cluster[0] == 2);
  }
}

TEST_CASE_FIXTURE(clean, "NVTX ranges") { // run by itself, with TESSERA_NVTX
  if (!std::getenv("TESSERA_NVTX"))
    return;
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("ranged");
  copy(s, 3, x, y, 256);
  set_launch_hooks({.before = [](const launch_info &) {}});
  copy(s, 3, x, y, 256);
  set_launch_hooks({});
  copy(s, 3, x, y, 256);
  CHECK(fake_cuda().nvtx_log() == std::vector<std::string>{"ranged", "", "ranged", "", "ranged", ""});
}

TEST_CASE_FIXTURE(clean, "machine code that the driver made is cached; what it refuses later is made again") {
  temporary_folder folder;
  const auto before = current_cache_settings();
  auto new_process = [&] { set_cache({cache_settings::mode::on, folder.path.string()}); };
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto launch = [&](const device &d) {
    new_process();
    stream here(d);
    device_buffer<float> a(d, 256), b(d, 256);
    make_copy("kept")(here, 1, a, b, 256);
    return cache_statistics();
  };
  CHECK(launch(gpu).compiled == 1);
  CHECK(fake_cuda().calls()["cuLinkCreate"] == 1);
  CHECK(launch(gpu).disk_hits == 1);
  CHECK(fake_cuda().calls()["cuLinkCreate"] == 1);          // the driver's result was in the cache
  CHECK(launch(device::cuda(1)).compiled == 1);            // another GPU
  CHECK(launch(device::open("cuda:sm_80")).compiled == 1); // its code, made by the driver for this GPU

  fake_cuda().fail_next("cuModuleLoadData", 200);
  const auto counts = launch(gpu);
  CHECK(counts.disk_hits == 1);
  CHECK(counts.compiled == 1);
  CHECK(launch(gpu).disk_hits == 1); // stored again
  CHECK(fake_cuda().launches().size() == 6);
  set_cache(before);
}
