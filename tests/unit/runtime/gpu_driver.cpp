// What devices of both vendors must do: what is called, what is passed, and what happens when the driver says no.
#include "gpu_driver.h"

#include "allocation_counter.h"
#include "temporary_folder.h"

#include <array>
#include <atomic>
#include <stdexcept>
#include <thread>

namespace {
bool says(const std::string &text, const std::string &part) { return contains(text, part.c_str()); }
} // namespace

#ifdef __SANITIZE_ADDRESS__
// The driver's objects stay where a test makes the function fail that destroys them; that no others do is counted here.
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options() { return "detect_leaks=0"; }
#endif

TEST_CASE_FIXTURE(clean, "memory is copied, filled, and given back") {
  const int before = fake().allocations_alive();
  {
    std::vector<float> host{1, 2, 3, 4, 5, 6, 7};
    device_buffer<float> b(gpu(0), host), c(gpu(0), 7), on_cpu(device::cpu(), 7);
    CHECK(b.to_host() == host);
    c.copy_from(b.view());
    CHECK(c.to_host() == host);
    on_cpu.copy_from(b.view());
    CHECK(on_cpu.to_host() == host);
    c.fill(0);
    c.copy_from(on_cpu.view());
    CHECK(c.to_host() == host);

    auto filled = [&]<class T>(T v) {
      device_buffer<T> d(gpu(0), 11);
      d.fill(v);
      auto r = d.to_host();
      for (int i : {0, 7, 10})
        CHECK(std::memcmp(&r[std::size_t(i)], &v, sizeof v) == 0);
    };
    filled(std::uint8_t(7)), filled(std::uint16_t(0x1234)), filled(3.5f), filled(0.1), filled(1.0),
        filled(std::array<char, 3>{1, 2, 3});
  }
  CHECK(fake().allocations_alive() == before);
}

TEST_CASE_FIXTURE(clean, "a copy between GPUs waits for both, and is done when it returns unless a stream is named") {
  std::vector<float> host{1, 2, 3};
  device_buffer<float> a(gpu(0), host), b(gpu(1), 3);
  stream s(gpu(1));
  auto calls = [&](const char *part) {
    int n = 0;
    for (auto &[name, count] : fake().calls())
      n += says(name, part) ? count : 0;
    return n;
  };
  fake().reset();
  b.copy_from(a.view());
  CHECK(b.to_host() == host);
  CHECK(calls("EventRecord") == 1);
  CHECK(calls("StreamWaitEvent") == 1);
  fake().reset();
  b.copy_from(a.view(), s);
  CHECK(calls("StreamWaitEvent") == 0);
  CHECK(calls("StreamSynchronize") == 0);
  event e(gpu(0));
  CHECK(says(message_of([&] { e.record(s); }), "an event is recorded on a stream of the device it was made for"));
  e.record(stream::default_of(gpu(0)));
  e.wait(s); // of another device
  CHECK(calls("StreamWaitEvent") == 1);
  event moved = std::move(e);
  CHECK(says(message_of([&] { e.synchronize(); }), "this event was moved from"));
}

TEST_CASE_FIXTURE(clean, "memory that does not suffice is an error, and the next allocation works") {
  for (std::size_t bytes : {fake_gpu::memory_bytes + 1, SIZE_MAX})
    CHECK(says(message_of([&] { device_buffer<char>(gpu(0), bytes); }), "out of memory: "));
  device_buffer<char> most(gpu(0), fake_gpu::memory_bytes - (1 << 20));
  CHECK(says(message_of([&] { device_buffer<char>(gpu(0), 2 << 20); }),
             std::string("driver error: out of memory: 2097152 bytes asked for on ") + vendor().place + " (" +
                 vendor().name + "), which has 1073741824, 1048576 free: " + vendor().out_of_memory +
                 " (out of memory)"));
  CHECK_NOTHROW(device_buffer<char>(gpu(0), 1 << 10));
}

TEST_CASE_FIXTURE(clean, "a launch passes grid, block, stream and exactly the parameters the code takes") {
  for (int d : {0, 1}) {
    fake().reset();
    stream s(gpu(d));
    device_buffer<float> x(gpu(d), 1000), y(gpu(d), 1000);
    auto copy = make_copy();
    copy.with({.block = 512}, {.num_warps = 8})(
        s,
        [](const copy_config &c) {
          return grid{(1000 + c.block - 1) / c.block, 3};
        },
        x, y, 1000);
    copy(s, 1, x, y, 1);
    auto launches = fake().launches();
    REQUIRE(launches.size() == 2);
    auto &a = launches[0];
    CHECK(a.kernel == "copy");
    CHECK(a.device == d);
    CHECK(a.grid[0] == 2);
    CHECK(a.grid[1] == 3);
    CHECK(a.grid[2] == 1);
    CHECK(a.threads == 8 * gpu(d).properties().warp_size);
    CHECK(a.stream == s.native());
    REQUIRE(a.params.size() == 3);
    CHECK(value<float *>(a.params[0]) == x.data());
    CHECK(value<float *>(a.params[1]) == y.data());
    CHECK(value<int>(a.params[2]) == 1000);
    CHECK(launches[1].params.size() == 2); // n = 1 is part of the code
    CHECK(launches[1].threads == 4 * gpu(d).properties().warp_size);
  }
}

TEST_CASE_FIXTURE(clean, "scalars of every width arrive") {
  stream s(gpu(0));
  device_buffer<double> out(gpu(0), 8);
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
  auto launches = fake().launches();
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
  stream s(gpu(0));
  device_buffer<float> x(gpu(0), 4096), y(gpu(0), 4096);
  float *raw = y.data();
  auto copy = make_copy();
  auto launch = [&] {
    copy.with({.block = 1024})(
        s, [](const copy_config &c) { return 4096 / c.block; }, x, raw, 4096);
  };
  launch();
  fake().reset();
  const std::size_t before = allocations; // the fake, which records launches, has an allocator of its own
  launch();
#ifndef __SANITIZE_ADDRESS__ // whose operator new serves the fake too
  CHECK(allocations == before);
#endif
  for (auto &[function, times] : fake().calls()) {
    INFO(function);
    auto allowed = vendor().warm_calls.find(function);
    CHECK(times <= (allowed == vendor().warm_calls.end() ? 0 : allowed->second));
  }
  CHECK(fake().calls()[vendor().launch] == 1);

  fake().reset();
  copy.with({.block = 1024})(s, 0, x, raw, 4096);
  CHECK(fake().total_calls() == 0);
  fake().fail_next(vendor().launch, 701);
  CHECK(says(message_of(launch), std::string("driver error: launching a kernel failed: ") + vendor().out_of_resources));
  CHECK_NOTHROW(launch());
}

TEST_CASE_FIXTURE(clean, "threads launch on the stream's device, whatever their own is; code is loaded once a device") {
  auto copy = make_copy("copy_by_threads");
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      try {
        stream s(gpu(t % 2)), other(gpu(1 - t % 2));
        device_buffer<float> x(gpu(t % 2), 256), y(gpu(t % 2), 256);
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
  CHECK(fake().calls()[vendor().load] == 2);
  CHECK(fake().launches().size() == 400);
}

TEST_CASE_FIXTURE(clean, "host memory given to a GPU kernel is refused, and the next launch works") {
  stream s(gpu(0));
  device_buffer<float> x(gpu(0), 256), y(gpu(0), 256);
  std::vector<float> host(256);
  auto copy = make_copy();
  copy(s, 1, x, y, 256);
  auto text = message_of([&] { copy(s, 1, host, y, 256); });
  CHECK(says(text, "launch error: argument 1 of kernel 'copy' is 0x"));
  CHECK(says(text, "not memory of a GPU: pass a device_buffer, or memory from "));
  CHECK(says(message_of([&] { copy(s, 1, x, host.data(), 256); }), "argument 2"));
  device_buffer<float> on_cpu(device::cpu(), 256), elsewhere(gpu(1), 256);
  CHECK(says(message_of([&] { copy(s, 1, on_cpu, y, 256); }),
             std::string("argument 1 of kernel 'copy' is a buffer of cpu, the stream is of ") + vendor().place));
  CHECK(says(message_of([&] { copy(stream(device::cpu()), 1, x.data(), on_cpu, 256); }), vendor().device_memory));
  CHECK(says(message_of([&] { copy(s, 1, elsewhere, y, 256); }),
             "is a buffer of " + gpu(1).place() + ", the stream is of " + vendor().place));
  CHECK(device::open(gpu(1).place()) == gpu(1));
  CHECK(says(message_of([&] { x.copy_from(host, stream(gpu(1))); }),
             "this memory is of " + gpu(0).place() + ", the stream of " + gpu(1).place()));
  auto *odd = reinterpret_cast<float *>(reinterpret_cast<std::uintptr_t>(x.data()) + 2);
  CHECK(says(message_of([&] { copy(s, 1, odd, y, 255); }), "argument 1 of kernel 'copy' is an address that is not a multiple of its "
                                                           "elements' 4 bytes"));
  CHECK(fake().launches().size() == 1);
  copy(s, 1, x.data(), y.data() + 1, 255);
  CHECK(fake().launches().size() == 2);
}

TEST_CASE_FIXTURE(clean, "an address is looked up once, and again after memory was freed") {
  stream s(gpu(0));
  device_buffer<float> y(gpu(0), 256);
  auto copy = make_copy();
  float *freed;
  {
    device_buffer<float> x(gpu(0), 256);
    freed = x.data();
    for (int i = 0; i < 10; ++i)
      copy(s, 1, freed + i, y, 246);
    CHECK(fake().calls()[vendor().look_up] <= 2); // once, or again where the allocation crosses 2 MiB
  }
  CHECK(says(message_of([&] { copy(s, 1, freed, y, 256); }), "not memory of a GPU"));
  auto other = reinterpret_cast<float *>(fake().memory_of(1, 1024));
  CHECK(says(message_of([&] { copy(s, 1, other, y, 256); }), std::string(", which ") + vendor().place + " cannot reach"));
  // Host memory that was registered has another address on the device.
  auto mapped = fake().mapped_memory(1024, 0x100000000000);
  copy(s, 1, reinterpret_cast<float *>(mapped), y, 256);
  CHECK(value<std::uint64_t>(fake().launches().back().params[0]) == mapped + 0x100000000000);
  std::vector<float> out(256);
  CHECK(message_of([&] { copy(stream(device::cpu()), 1, reinterpret_cast<float *>(mapped), out, 256); }) == "no error");
}

TEST_CASE_FIXTURE(clean, "a fault of a kernel is reported when the stream is waited for") {
  stream s(gpu(0));
  device_buffer<float> x(gpu(0), 256);
  make_copy("last_one")(s, 1, x, x, 256);
  fake().fail_next(vendor().wait, 700, true);
  auto text = message_of([&] { s.synchronize(); });
  CHECK(says(text, "execute error: a kernel read or wrote memory outside every allocation"));
  CHECK(says(text, std::string(vendor().illegal_address) +
                       " (an illegal memory access was encountered), found while waiting for a stream (the last kernel "
                       "launched was 'last_one')"));
  CHECK(says(message_of([&] { device_buffer<float>(gpu(0), 4); }), "execute error"));
}

TEST_CASE_FIXTURE(clean, "a kernel's code is unloaded with the last handle to the kernel") {
  const int before = fake().modules_alive();
  {
    auto copy = make_copy();
    auto same = copy.with({.block = 64});
    same.compile(gpu(1));
    CHECK(fake().modules_alive() == before + 1);
  }
  CHECK(fake().modules_alive() == before);
}

TEST_CASE_FIXTURE(clean, "whichever call of the driver fails, nothing is lost, and the next run works") {
  refusals_expected = true;
  const std::vector<float> host(256, 2.0f);
  auto work = [&] {
    stream s(gpu(0)), other(gpu(1));
    event start(gpu(0)), stop(gpu(0));
    device_buffer<float> x(gpu(0), host), y(gpu(0), 256), z(gpu(1), 256);
    start.record(s);
    y.fill(0, s);
    make_copy("unlucky")(s, 1, x, y.data(), 256);
    y.copy_from(x.view(), s);
    stop.record(s);
    stop.wait(other);
    z.copy_from(y.view());
    if (stop.elapsed_ms(start) <= 0 || z.to_host() != host || gpu(0).free_bytes() == 0)
      throw std::runtime_error("wrong");
    gpu(0).synchronize();
  };
  work();
  auto alive = [] { return std::pair(fake().allocations_alive(), fake().modules_alive()); };
  auto lost = alive();
  fake().reset();
  work();
  const auto called = fake().calls();
  CHECK(called.size() > 20);
  int noticed = 0;
  for (auto &[function, times] : called) {
    INFO(function);
    fake().fail_next(function, 999);
    const std::string text = message_of(work);
    noticed += text != "no error";
    // Of what frees, nothing can be said.
    CHECK((text == "no error" || says(text, " failed: ") || says(text, "refused the PTX") || says(text, "not memory of a GPU")));
    fake().reset();
    CHECK(message_of(work) == "no error");
    if (says(function, "Free") || says(function, "Unload")) // the driver kept it
      lost = alive();
    else
      CHECK(alive() == lost);
  }
  CHECK(noticed > 15);
}

TEST_CASE_FIXTURE(clean, "existing streams are used; events time") {
  stream own(gpu(0));
  auto wrapped = stream::from_native(gpu(0), own.native());
  device_buffer<float> x(gpu(0), 256), y(gpu(0), 256);
  make_copy()(wrapped, 1, x, y, 256);
  CHECK(fake().launches().back().stream == own.native());
  stream second(gpu(1));
  CHECK(stream::from_native(second.native()).device() == gpu(1));
  make_copy()(stream::default_of(gpu(0)), 1, x, y, 256);
  CHECK(fake().launches().back().stream == nullptr);
  auto r = bench(own, [] {}, {.warmup_ms = 0, .measure_ms = 1, .min_runs = 3, .max_runs = 8, .flush_cache = false});
  CHECK(r.median == doctest::Approx(0.25)); // the fake's clock moves a quarter of a millisecond an event
}

TEST_CASE_FIXTURE(
    clean, "warm launches are captured into a graph, which repeats them; loading in between is an error that says so") {
  stream s(gpu(0)), other(gpu(0));
  device_buffer<float> x(gpu(0), 256), y(gpu(0), 256);
  auto copy = make_copy("captured"), cold = make_copy("cold");
  copy.prepare(s, x, y, 256);
  fake().begin_capture(s.native());
  copy(s, 1, x, y, 256);
  copy(s, 2, y, x, 256);
  copy(other, 3, x, y, 256); // not part of it
  CHECK(says(message_of([&] { cold(s, 1, x, y, 256); }),
             "A stream is being captured into a graph: compile and load with kernel.prepare"));
  const auto graph = fake().end_capture();
  REQUIRE(graph.size() == 2);
  CHECK(graph[0].grid[0] == 1);
  CHECK(graph[1].grid[0] == 2);
  CHECK(value<float *>(graph[1].params[0]) == y.data());
  CHECK(fake().launches().size() == 1);
  fake().replay(graph);
  fake().replay(graph);
  CHECK(fake().launches().size() == 5);
  cold(s, 1, x, y, 256);
  CHECK(fake().launches().size() == 6);
}

TEST_CASE_FIXTURE(clean, "hooks see every launch, and cost nothing when they are taken away") {
  stream s(gpu(0));
  device_buffer<float> x(gpu(0), 256), y(gpu(0), 256);
  auto copy = make_copy("hooked");
  std::vector<std::string> log;
  set_launch_hooks({.before =
                        [&](const launch_info &i) {
                          CHECK(i.compiled.registers() > 0);
                          CHECK(&i.where == &s);
                          log.push_back(i.kernel + " " + std::to_string(i.grid.x));
                        },
                    .after = [&](const launch_info &) { log.push_back("done"); }});
  copy(s, 3, x, y, 256);
  fake().fail_next(vendor().launch, 701);
  CHECK_THROWS_AS(copy(s, 4, x, y, 256), error);
  set_launch_hooks({});
  copy(s, 5, x, y, 256);
  CHECK(log == std::vector<std::string>{"hooked 3", "done", "hooked 4", "done"});
}

TEST_CASE_FIXTURE(clean, "what a hook throws comes out of the launch, and the next launch works") {
  stream s(gpu(0));
  device_buffer<float> x(gpu(0), 256), y(gpu(0), 256);
  auto copy = make_copy("hooked_badly");
  copy(s, 1, x, y, 256);
  set_launch_hooks({.before = [](const launch_info &) { throw std::runtime_error("mine"); }});
  CHECK_THROWS_WITH(copy(s, 2, x, y, 256), "mine");
  set_launch_hooks({.after = [](const launch_info &) { throw std::runtime_error("mine"); }});
  CHECK_THROWS_WITH(copy(s, 3, x, y, 256), "mine");
  fake().fail_next(vendor().launch, 701);
  CHECK_THROWS_WITH(copy(s, 4, x, y, 256), "mine");
  set_launch_hooks({});
  copy(s, 5, x, y, 256);
  std::vector<unsigned> grids;
  for (auto &l : fake().launches())
    grids.push_back(l.grid[0]);
  CHECK(grids == std::vector<unsigned>{1, 3, 5});
}

TEST_CASE_FIXTURE(clean, "what was compiled is cached on disk by architecture; what the driver refuses is made again") {
  temporary_folder folder;
  const auto before = current_cache_settings();
  auto launch = [&](int number) {
    set_cache({cache_settings::mode::on, folder.path.string()}); // as a new process
    stream here(gpu(number));
    device_buffer<float> a(gpu(number), 256), b(gpu(number), 256);
    make_copy("kept")(here, 1, a, b, 256);
    return cache_statistics();
  };
  CHECK(launch(0).compiled == 1);
  CHECK(launch(0).disk_hits == 1);
  CHECK(launch(1).compiled == 1); // another GPU
  CHECK(launch(1).disk_hits == 1);
  fake().fail_next(vendor().load, 200);
  const auto counts = launch(0);
  CHECK(counts.disk_hits == 1);
  CHECK(counts.compiled == 1);
  CHECK(launch(0).disk_hits == 1); // stored again
  CHECK(fake().launches().size() == 6);
  set_cache(before);
}

TEST_CASE_FIXTURE(clean, "the autotuner measures on the device and keeps the result for it") {
  temporary_folder folder;
  const auto before = current_cache_settings();
  auto tune = [&] {
    set_cache({cache_settings::mode::on, folder.path.string()});
    stream s(gpu(0));
    device_buffer<float> x(gpu(0), 4096), y(gpu(0), 4096);
    const auto tuned = tl::autotune(make_copy("tuned"),
                                    {.arguments = "x y n",
                                     .key = "n",
                                     .candidates = tl::candidates<copy_config>({{.block = 256}, {.block = 512}},
                                                                               {{.num_warps = 4}, {.num_warps = 8}}),
                                     .warmup_ms = 0,
                                     .measure_ms = 1,
                                     .progress = false});
    return tuned.tune(
        s, [](const copy_config &c) { return 4096 / c.block; }, x, y, 4096);
  };
  const auto first = tune();
  CHECK(says(first.table(), vendor().name));
  const auto launches = fake().launches().size();
  CHECK(launches > 4);
  tune();
  CHECK(fake().launches().size() == launches); // from the disk
  set_cache(before);
}
