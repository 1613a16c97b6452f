// The HIP device against the fake runtime: what is called, what is passed, and what happens when the driver says no. A
// program of its own, since a driver is opened once per process; the suites hip.… are run by themselves, with other drivers.
#include "allocation_counter.h"
#include "messages.h"
#include "temporary_folder.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <doctest/doctest.h>

#include <tessera/tessera.h>

#include "fake_gpu.h"

namespace tl = tessera::tl;
using namespace tessera;

// The fake's own entry points.
extern "C" {
int hipModuleLoadData(void **module, const void *image);
int hipModuleUnload(void *module);
int hipModuleGetFunction(void **function, void *module, const char *name);
int hipModuleLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned,
                          unsigned shared, void *stream, void **args, void **extra);
}

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
  clean() { fake_hip().reset(); }
  ~clean() {
    if (!refusals_expected)
      CHECK(fake_hip().refusals() == std::vector<std::string>());
    fake_hip().reset();
  }
  bool refusals_expected = false;
};

bool version_5() { return device::hip(0).properties().driver_version < 60000000; }

} // namespace

TEST_CASE_FIXTURE(clean, "devices are listed with their architecture; those that no code is made for are not") {
  auto all = device::all();
  REQUIRE(all.size() == 3);
  CHECK(all[0].name() == "Fake gfx942");
  CHECK(all[0].target().str() == "hip:gfx942");
  CHECK(all[1].target().str() == "hip:gfx1100");
  CHECK(device::best() == all[0]);
  CHECK(device::open("auto") == all[0]);
  CHECK(device::open("hip") == all[0]);
  CHECK(device::open("hip:1") == all[1]);
  CHECK(device::open("hip:gfx1100") == all[1]);
  auto &p = all[0].properties();
  CHECK(p.multiprocessors == 304);
  CHECK(p.warp_size == 64);
  CHECK(all[1].properties().warp_size == 32);
  CHECK(p.max_shared_bytes == 65536);
  CHECK(p.max_grid[1] == 65535);
  CHECK(p.registers_per_multiprocessor == 65536);
  CHECK(p.l2_bytes == 256 << 20);
  CHECK(p.clock_ghz == doctest::Approx(2.1));
  const auto text = message_of([] { device::hip(2); });
  CHECK(contains(text, "there is no device hip:2; this machine has the CPU, hip:0 (Fake gfx942, gfx942), hip:1 (Fake "
                       "gfx1100, gfx1100) (hip:2 is not used: no code is made for gfx1036 (Fake gfx1036))"));
  CHECK(contains(message_of([] { device::open("hip:gfx950"); }), "no device that runs code for 'hip:gfx950'"));
  CHECK(contains(message_of([] { device::cuda(0); }), "there is no device cuda:0; this machine has the CPU, hip:0"));
  CHECK_THROWS_AS(device::open("hip:99999999999"), error);
  CHECK_THROWS_AS(device::open("hip:"), error);
}

TEST_CASE_FIXTURE(clean, "memory is copied, filled, and given back") {
  auto gpu = device::hip(0);
  const int before = fake_hip().allocations_alive();
  {
    std::vector<float> host{1, 2, 3, 4, 5, 6, 7};
    device_buffer<float> b(gpu, host), c(gpu, 7), on_cpu(device::cpu(), 7);
    CHECK(b.to_host() == host);
    c.copy_from(b.view());
    CHECK(c.to_host() == host);
    on_cpu.copy_from(b.view());
    CHECK(on_cpu.to_host() == host);
    auto filled = [&]<class T>(T v) {
      device_buffer<T> d(gpu, 11);
      d.fill(v);
      auto r = d.to_host();
      for (int i : {0, 7, 10})
        CHECK(std::memcmp(&r[std::size_t(i)], &v, sizeof v) == 0);
    };
    filled(std::uint8_t(7)), filled(std::uint16_t(0x1234)), filled(3.5f), filled(0.1), filled(1.0),
        filled(std::array<char, 3>{1, 2, 3});
  }
  CHECK(fake_hip().allocations_alive() == before);
  for (std::size_t bytes : {fake_gpu::memory_bytes + 1, SIZE_MAX})
    CHECK(contains(message_of([&] { device_buffer<char>(gpu, bytes); }), "out of memory: "));
  device_buffer<char> most(gpu, fake_gpu::memory_bytes - (1 << 20));
  CHECK(contains(message_of([&] { device_buffer<char>(gpu, 2 << 20); }),
                 "driver error: out of memory: 2097152 bytes asked for on hip:0 (Fake gfx942), which has 1073741824, "
                 "1048576 free: hipErrorOutOfMemory (out of memory)"));
  CHECK_NOTHROW(device_buffer<char>(gpu, 1 << 10));
}

TEST_CASE_FIXTURE(clean, "a launch passes grid, block, stream and exactly the parameters the code takes") {
  for (int d : {0, 1}) {
    fake_hip().reset();
    auto gpu = device::hip(d);
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
    auto launches = fake_hip().launches();
    REQUIRE(launches.size() == 2);
    auto &a = launches[0];
    CHECK(a.kernel == "copy");
    CHECK(a.device == d);
    CHECK(a.grid[0] == 2);
    CHECK(a.grid[1] == 3);
    CHECK(a.grid[2] == 1);
    CHECK(a.threads == 8 * gpu.properties().warp_size);
    CHECK(a.stream == s.native());
    REQUIRE(a.params.size() == 3);
    CHECK(value<float *>(a.params[0]) == x.data());
    CHECK(value<float *>(a.params[1]) == y.data());
    CHECK(value<int>(a.params[2]) == 1000);
    CHECK(launches[1].params.size() == 2); // n = 1 is part of the code
  }
}

TEST_CASE_FIXTURE(clean, "scalars of every width arrive") {
  auto gpu = device::hip(0);
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
  auto launches = fake_hip().launches();
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
  auto gpu = device::hip(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 4096), y(gpu, 4096);
  float *raw = y.data();
  auto copy = make_copy();
  auto launch = [&] {
    copy.with({.block = 1024})(
        s, [](const config &c) { return 4096 / c.block; }, x, raw, 4096);
  };
  launch();
  fake_hip().reset();
  const std::size_t before = allocations; // the fake, which records launches, has an allocator of its own
  launch();
  CHECK(allocations == before);
  CHECK(fake_hip().calls() == std::map<std::string, int>{{"hipGetDevice", 1}, {"hipModuleLaunchKernel", 1}});

  fake_hip().reset();
  copy.with({.block = 1024})(s, 0, x, raw, 4096);
  CHECK(fake_hip().total_calls() == 0);
  fake_hip().fail_next("hipModuleLaunchKernel", 701);
  CHECK(contains(message_of(launch), "driver error: launching a kernel failed: hipErrorLaunchOutOfResources"));
  CHECK_NOTHROW(launch());
}

TEST_CASE_FIXTURE(clean, "threads launch on the stream's device, whatever their own is; code is loaded once a device") {
  auto copy = make_copy("copy_by_threads");
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      try {
        auto gpu = device::hip(t % 2);
        stream s(gpu), other(device::hip(1 - t % 2));
        device_buffer<float> x(gpu, 256), y(gpu, 256);
        for (int i = 0; i < 50; ++i)
          copy(s, 1, x, y, 256);
      } catch (const std::exception &e) {
        MESSAGE(e.what());
        ++failed;
      }
    });
  for (auto &t : threads)
    t.join();
  CHECK(failed == 0);
  CHECK(fake_hip().calls()["hipModuleLoadData"] == 2);
  CHECK(fake_hip().launches().size() == 400);
}

TEST_CASE_FIXTURE(clean, "host memory given to a GPU kernel is refused, and the next launch works") {
  auto gpu = device::hip(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  std::vector<float> host(256);
  auto copy = make_copy();
  copy(s, 1, x, y, 256);
  auto text = message_of([&] { copy(s, 1, host, y, 256); });
  CHECK(contains(text, "launch error: argument 1 of kernel 'copy' is 0x"));
  CHECK(contains(text, "not memory of a GPU: pass a device_buffer, or memory from hipMalloc"));
  CHECK(contains(message_of([&] { copy(s, 1, x, host.data(), 256); }), "argument 2"));
  device_buffer<float> on_cpu(device::cpu(), 256);
  CHECK(contains(message_of([&] { copy(s, 1, on_cpu, y, 256); }),
                 "argument 1 of kernel 'copy' is a buffer of cpu, the stream is of hip:gfx942"));
  CHECK(contains(message_of([&] { copy(stream(device::cpu()), 1, x.data(), on_cpu, 256); }), "memory of a HIP device"));
  device_buffer<float> elsewhere(device::hip(1), 256);
  CHECK(contains(message_of([&] { copy(s, 1, elsewhere, y, 256); }),
                 "is a buffer of hip:gfx1100, the stream is of hip:gfx942"));
  CHECK(fake_hip().launches().size() == 1);
  copy(s, 1, x.data(), y.data() + 1, 255);
  CHECK(fake_hip().launches().size() == 2);
}

TEST_CASE_FIXTURE(clean, "an address is looked up once, and again after memory was freed") {
  auto gpu = device::hip(0);
  stream s(gpu);
  device_buffer<float> y(gpu, 256);
  auto copy = make_copy();
  float *freed;
  {
    device_buffer<float> x(gpu, 256);
    freed = x.data();
    for (int i = 0; i < 10; ++i)
      copy(s, 1, freed + i, y, 246);
    CHECK(fake_hip().calls()["hipPointerGetAttributes"] <= 2); // once, or again where the allocation crosses 2 MiB
  }
  CHECK(contains(message_of([&] { copy(s, 1, freed, y, 256); }), "not memory of a GPU"));
  auto other = reinterpret_cast<float *>(fake_hip().memory_of(1, 1024));
  CHECK(contains(message_of([&] { copy(s, 1, other, y, 256); }), "is memory of hip:1, which hip:0 cannot reach"));
  // Host memory that was registered has another address on the device.
  auto mapped = fake_hip().mapped_memory(1024, 0x100000000000);
  copy(s, 1, reinterpret_cast<float *>(mapped), y, 256);
  CHECK(value<std::uint64_t>(fake_hip().launches().back().params[0]) == mapped + 0x100000000000);
  std::vector<float> out(256);
  CHECK(message_of([&] { copy(stream(device::cpu()), 1, reinterpret_cast<float *>(mapped), out, 256); }) == "no error");
}

TEST_CASE_FIXTURE(clean, "DLPack tensors are taken from ROCm devices of the same number") {
  auto gpu = device::hip(1);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  struct { // as in dlpack.h; the launcher recognises the members
    void *data;
    struct { int device_type, device_id; } device;
    int ndim;
    struct { std::uint8_t code, bits; std::uint16_t lanes; } dtype;
    std::int64_t *shape, *strides;
    std::uint64_t byte_offset;
  } tensor{x.data(), {10, 1}, 1, {2, 32, 1}, nullptr, nullptr, 0};
  std::int64_t size = 256;
  tensor.shape = &size;
  auto copy = make_copy();
  copy(s, 1, tensor, y, 256);
  CHECK(value<float *>(fake_hip().launches().at(0).params[0]) == x.data());
  tensor.device = {10, 0};
  CHECK(contains(message_of([&] { copy(s, 1, tensor, y, 256); }), "on device type 10, number 0; the launch is on hip:1"));
  tensor.device = {2, 1};
  CHECK(contains(message_of([&] { copy(s, 1, tensor, y, 256); }), "on device type 2, number 1; the launch is on hip:1"));
  tensor.device = {11, 0}; // pinned by HIP: the GPU's and the host's
  copy(s, 1, tensor, y, 256);
  CHECK(fake_hip().launches().size() == 2);
}

TEST_CASE_FIXTURE(clean, "the handle knows what was made, and shared memory is what the code object has") {
  auto gpu = device::hip(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 64 * 64), y(gpu, 64 * 64);
  auto transpose = tl::kernel("transpose", [](tl::ptr<const float> x, tl::ptr<float> y) {
    auto row = tl::arange(0, 64), col = tl::arange(0, 64);
    auto tile = tl::load(x + row[tl::all, tl::newaxis] * 64 + col[tl::newaxis, tl::all]);
    tl::store(y + col[tl::all, tl::newaxis] * 64 + row[tl::newaxis, tl::all], tl::trans(tile));
  });
  transpose(s, 1, x, y);
  auto h = transpose.compile(gpu);
  CHECK(h.registers() > 0);
  CHECK(h.spills() == 0);
  CHECK(h.shared_bytes() > 0);
  CHECK(fake_hip().launches().at(0).shared_bytes == h.shared_bytes());
  CHECK(contains(h.stage("amdgcn"), "transpose.kd"));
  CHECK(h.stage("hsaco").starts_with("\x7f" "ELF"));
  CHECK(contains(h.summary(), "transpose for hip:gfx942: 4 warps"));
}

TEST_CASE_FIXTURE(clean, "a code object that the driver refuses is an error, and the next launch works") {
  auto gpu = device::hip(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("refused");
  fake_hip().fail_next("hipModuleLoadData", 209);
  CHECK(contains(message_of([&] { copy(s, 1, x, y, 256); }),
                 "driver error: loading the code object of kernel 'refused' for gfx942 (the HIP runtime is too old for "
                 "it, or made for another GPU) failed: hipErrorNoBinaryForGpu"));
  CHECK(fake_hip().launches().empty());
  copy(s, 1, x, y, 256);
  CHECK(fake_hip().launches().size() == 1);
}

TEST_CASE_FIXTURE(clean, "a fault of a kernel is reported when the stream is waited for") {
  auto gpu = device::hip(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256);
  make_copy("last_one")(s, 1, x, x, 256);
  fake_hip().fail_next("hipStreamSynchronize", 700, true);
  auto text = message_of([&] { s.synchronize(); });
  CHECK(contains(text, "execute error: a kernel read or wrote memory outside every allocation"));
  CHECK(contains(text, "hipErrorIllegalAddress (an illegal memory access was encountered), found while waiting for a "
                       "stream (the last kernel launched was 'last_one')"));
  CHECK(contains(message_of([&] { device_buffer<float>(gpu, 4); }), "execute error"));
}

TEST_CASE_FIXTURE(clean, "a kernel's code is unloaded with the last handle to the kernel") {
  auto gpu = device::hip(1);
  const int before = fake_hip().modules_alive();
  {
    auto copy = make_copy();
    auto same = copy.with({.block = 64});
    same.compile(gpu);
    CHECK(fake_hip().modules_alive() == before + 1);
  }
  CHECK(fake_hip().modules_alive() == before);
}

TEST_CASE_FIXTURE(clean, "grids beyond what a dispatch can count never reach the driver") {
  auto gpu = device::hip(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("wide"); // 256 threads
  copy(s, {16384, 16384, 16}, x, y, 256);
  copy(s, {(1 << 24) - 1, 2, 1}, x, y, 256);
  CHECK(fake_hip().launches().size() == 2);
  CHECK(contains(message_of([&] { copy(s, 1 << 24, x, y, 256); }),
                 "kernel 'wide' cannot be launched with 16777216 programs along x on hip:0: with 256 threads each at "
                 "most 16777215 are possible"));
  CHECK(contains(message_of([&] {
                   copy(s, {1, 65536, 1}, x, y, 256);
                 }),
                 "at most (2147483647, 65535, 65535) programs"));
  CHECK(fake_hip().launches().size() == 2);
}

TEST_CASE_FIXTURE(clean, "existing streams are used; events time") {
  auto gpu = device::hip(0);
  stream own(gpu);
  auto wrapped = stream::from_native(gpu, own.native());
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  make_copy()(wrapped, 1, x, y, 256);
  CHECK(fake_hip().launches().back().stream == own.native());
  stream second(device::hip(1));
  CHECK(stream::from_native(second.native()).device() == device::hip(1));
  CHECK(stream::from_native(nullptr).device() == device::hip(0)); // the current one
  auto r = bench(own, [] {}, {.warmup_ms = 0, .measure_ms = 1, .min_runs = 3, .max_runs = 8, .flush_cache = false});
  CHECK(r.median == doctest::Approx(0.25)); // the fake's clock moves a quarter of a millisecond an event
}

TEST_CASE_FIXTURE(clean, "warm launches are captured into a graph; loading in between is an error that says so") {
  auto gpu = device::hip(0);
  stream s(gpu), other(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("captured"), cold = make_copy("cold");
  copy.prepare(s, x, y, 256);
  fake_hip().begin_capture(s.native());
  copy(s, 1, x, y, 256);
  copy(s, 2, y, x, 256);
  copy(other, 3, x, y, 256); // not part of it
  CHECK(contains(message_of([&] { cold(s, 1, x, y, 256); }),
                 "A stream is being captured into a graph: compile and load with kernel.prepare"));
  const auto graph = fake_hip().end_capture();
  REQUIRE(graph.size() == 2);
  CHECK(value<float *>(graph[1].params[0]) == y.data());
  fake_hip().replay(graph);
  CHECK(fake_hip().launches().size() == 3);
}

TEST_CASE_FIXTURE(clean, "cooperative launches reach the driver as such; clusters are refused") {
  auto gpu = device::hip(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("grouped");
  if (version_5()) {
    CHECK(contains(message_of([&] { copy.launched({.cooperative = true})(s, 304, x, y, 256); }),
                   "cooperative launches need a newer HIP runtime; this one is 5.3"));
  } else {
    copy.launched({.cooperative = true})(s, 304, x, y, 256);
    copy(s, 1, x, y, 256);
    auto l = fake_hip().launches();
    REQUIRE(l.size() == 2);
    CHECK(l[0].cooperative);
    CHECK_FALSE(l[1].cooperative);
    CHECK(contains(message_of([&] { copy.launched({.cooperative = true})(s, 100000, x, y, 256); }),
                   "100000 programs of kernel 'grouped' does not fit on hip:0 at once"));
  }
  CHECK(contains(message_of([&] {
                   copy.launched({.cluster = {2, 1, 1}})(s, 4, x, y, 256);
                 }),
                 "clusters need an sm_90 GPU or a newer one; hip:0 is gfx942"));
}

TEST_CASE_FIXTURE(clean, "what was compiled is cached on disk by architecture") {
  temporary_folder folder;
  const auto before = current_cache_settings();
  auto launch = [&](int number) {
    set_cache({cache_settings::mode::on, folder.path.string()}); // as a new process
    auto d = device::hip(number);
    stream here(d);
    device_buffer<float> a(d, 256), b(d, 256);
    make_copy("kept")(here, 1, a, b, 256);
    return cache_statistics();
  };
  CHECK(launch(0).compiled == 1);
  CHECK(launch(0).disk_hits == 1);
  CHECK(launch(1).compiled == 1);
  CHECK(launch(1).disk_hits == 1);
  fake_hip().fail_next("hipModuleLoadData", 200); // what the driver refuses is made again
  const auto counts = launch(0);
  CHECK(counts.disk_hits == 1);
  CHECK(counts.compiled == 1);
  CHECK(fake_hip().launches().size() == 5);
  set_cache(before);
}

TEST_CASE_FIXTURE(clean, "the autotuner measures on the device and keeps the result for it") {
  temporary_folder folder;
  const auto before = current_cache_settings();
  auto gpu = device::hip(0);
  auto tune = [&] {
    set_cache({cache_settings::mode::on, folder.path.string()});
    stream s(gpu);
    device_buffer<float> x(gpu, 4096), y(gpu, 4096);
    const auto tuned = tl::autotune(
        make_copy("tuned"), {.arguments = "x y n",
                             .key = "n",
                             .candidates = tl::candidates<config>({{.block = 256}, {.block = 512}}, {{.num_warps = 4}, {.num_warps = 8}}),
                             .warmup_ms = 0,
                             .measure_ms = 1,
                             .progress = false});
    return tuned.tune(
        s, [](const config &c) { return 4096 / c.block; }, x, y, 4096);
  };
  const auto first = tune();
  CHECK(contains(first.table(), "Fake gfx942"));
  const auto launches = fake_hip().launches().size();
  CHECK(launches > 4);
  tune();
  CHECK(fake_hip().launches().size() == launches); // from the disk
  set_cache(before);
}

TEST_CASE_FIXTURE(clean, "the fake refuses what a GPU could not run") {
  refusals_expected = true;
  auto gpu = device::hip(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  const auto kernel = make_copy("checked").with_options({.num_warps = 2}).compile(gpu, {});
  const std::string good = kernel.stage("hsaco");
  auto refusal = [&] {
    const auto all = fake_hip().refusals();
    return all.empty() ? std::string("nothing") : all.back();
  };
  void *module = nullptr, *function = nullptr;
  auto load = [&](const std::string &image) {
    fake_hip().reset();
    hipModuleLoadData(&module, image.data());
    return refusal();
  };
  auto with = [&](std::size_t at, char byte) {
    std::string image = good;
    image.at(at) = byte;
    return image;
  };
  CHECK(contains(load(with(0, 'x')), "not an ELF file"));
  CHECK(contains(load(with(0x30, 0x41)), "the metadata is for amdgcn-amd-amdhsa--gfx942")); // the processor of e_flags
  CHECK(contains(load(make_copy("checked").compile_for("hip:gfx1100").stage("hsaco")), "code for gfx1100 on gfx942"));
  const auto field = [&](const std::string &name) { return good.find(name) + name.size(); };
  CHECK(contains(load(with(field(".group_segment_fixed_size"), 1)), "the LDS size is 0 in the descriptor, 1 in the metadata"));
  CHECK(contains(load(with(field(".wavefront_size"), 32)), "the wavefront size is 64 in the descriptor, 32"));
  CHECK(contains(load(with(field(".kernarg_segment_size"), 64)), "the kernarg size is"));

  REQUIRE(load(good) == "nothing");
  REQUIRE(hipModuleGetFunction(&function, module, "checked") == 0);
  std::uint64_t in = reinterpret_cast<std::uint64_t>(x.data()), out = reinterpret_cast<std::uint64_t>(y.data());
  int n = 256;
  void *args[] = {&in, &out, &n};
  auto launch = [&](unsigned programs, unsigned threads, unsigned shared) {
    fake_hip().reset();
    hipModuleLaunchKernel(function, programs, 1, 1, threads, 1, 1, shared, s.native(), args, nullptr);
    return refusal();
  };
  CHECK(launch(1, 128, 0) == "nothing");
  CHECK(contains(launch(1, 96, 0), "96 threads are no whole wavefronts of 64"));
  CHECK(contains(launch(1, 256, 0), "256 threads, the code object allows 128"));
  CHECK(contains(launch(1u << 25, 128, 0), "more threads than a dispatch counts"));
  CHECK(contains(launch(1, 128, 65537), "65537 bytes of LDS"));
  out = 12;
  CHECK(contains(launch(1, 128, 0), "argument 2 is 0xc, no memory of the device"));
  CHECK(fake_hip().launches().empty());
  CHECK(hipModuleUnload(module) == 0);
}

TEST_SUITE("hip.two_vendors") {
  TEST_CASE("GPUs of both vendors are listed, CUDA's first; memory and streams are told apart") {
    auto all = device::all();
    REQUIRE(all.size() == 5);
    CHECK(all[0] == device::cuda(0));
    CHECK(all[2] == device::hip(0));
    CHECK(all[4] == device::cpu());
    CHECK(device::best() == device::cuda(0));
    CHECK(device::open("hip") == device::hip(0));
    auto text = message_of([] { device::hip(7); });
    CHECK(contains(text, "no device hip:7; this machine has the CPU, cuda:0 (Fake H200, sm_90a), cuda:1 (Fake A100, "
                         "sm_80), hip:0 (Fake gfx942, gfx942)"));
    device_buffer<float> on_cuda(device::cuda(0), 256), on_hip(device::hip(0), 256);
    stream cuda(device::cuda(0)), hip(device::hip(0));
    auto copy = make_copy();
    copy(cuda, 1, on_cuda, on_cuda, 256);
    copy(hip, 1, on_hip, on_hip, 256);
    CHECK(fake_cuda().launches().size() == 1);
    CHECK(fake_hip().launches().size() == 1);
    CHECK(contains(message_of([&] { copy(hip, 1, on_cuda, on_hip, 256); }), "is a buffer of cuda:sm_90a"));
    CHECK(contains(message_of([&] { copy(hip, 1, on_cuda.data(), on_hip, 256); }), "not memory of a GPU"));
    CHECK(contains(message_of([&] { copy(cuda, 1, on_cuda, on_hip.data(), 256); }), "not memory of a GPU"));
    CHECK(contains(message_of([&] { stream::from_native(hip.native()); }), "GPUs of two vendors"));
    CHECK(stream::from_native(device::hip(0), hip.native()).device() == device::hip(0));
    on_hip.fill(3);
    on_cuda.copy_from(on_hip.view());
    CHECK(on_cuda.to_host() == std::vector<float>(256, 3.0f));
  }
}

TEST_SUITE("hip.roctx") {
  TEST_CASE_FIXTURE(clean, "ROCTX ranges have the kernels' names") {
    stream s(device::hip(0));
    device_buffer<float> x(device::hip(0), 256);
    make_copy("ranged")(s, 3, x, x, 256);
    CHECK(fake_hip().nvtx_log() == std::vector<std::string>{"ranged", ""});
  }
}

TEST_SUITE("hip.no_device") {
  TEST_CASE("a real HIP runtime without a GPU leaves the CPU") {
    CHECK(device::best() == device::cpu());
    auto text = message_of([] { device::hip(0); });
    CHECK(contains(text, "launch error: there is no device hip:0; this machine has the CPU only (the HIP runtime "
                         "libamdhip64.so finds no GPU: hipErrorNoDevice"));
  }
}
