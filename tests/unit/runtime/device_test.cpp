// The CPU device, launches on it, and what is said where something is missing or wrong. TESSERA_LIBCUDA and TESSERA_LIBHIP
// point at nothing.
#include "messages.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <doctest/doctest.h>

#include <tessera/tessera.h>

namespace tl = tessera::tl;
using namespace tessera;

namespace {

struct config {
  int block = 64;
};
auto make_add() {
  return tl::kernel(
      "add", [](tl::ptr<const float> x, tl::ptr<const float> y, tl::ptr<float> out, tl::val<tl::i32> n, config c) {
        auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
        tl::store(out + at, tl::load(x + at, at < n) + tl::load(y + at, at < n), at < n);
      });
}


} // namespace

TEST_SUITE("runtime.device") {

  TEST_CASE("the CPU is always there") {
    auto all = device::all();
    REQUIRE(!all.empty());
    CHECK(all.back() == device::cpu());
    CHECK(device::open("cpu") == device::cpu());
    CHECK(device::cpu().properties().warp_size >= 4);
    auto emulated = device::open("cpu:emulate=sm_90a");
    CHECK(emulated != device::cpu());
    CHECK(emulated == device::open("cpu:emulate=sm_90a"));
    CHECK(emulated.properties().warp_size == 32);
    CHECK(device::open("cpu:emulate=gfx942").properties().warp_size == 64);
  }

  TEST_CASE("an absent device is an error that says what is there") {
    if (device::all().size() > 1)
      return; // this machine has a GPU
    CHECK(device::best() == device::cpu());
    auto text = message_of([] { device::cuda(0); });
    CHECK(contains(text, "launch error: there is no device cuda:0; this machine has the CPU only"));
    CHECK(contains(text, "cannot be opened"));
    CHECK(contains(message_of([] { device::open("cuda:sm_90a"); }), "no device that runs code for 'cuda:sm_90a'"));
    CHECK(contains(message_of([] { device::open("hip:gfx942"); }), "no device that runs code for 'hip:gfx942'"));
    CHECK(contains(message_of([] { device::hip(1); }), "there is no device hip:1; this machine has the CPU only (the HIP "
                                                       "runtime cannot be opened"));
    CHECK_THROWS_AS(device::open("cuda:99999999999"), error);
    CHECK_THROWS_AS(device::open("toaster"), error);
  }

  TEST_CASE("buffers copy, fill and slice") {
    auto cpu = device::cpu();
    std::vector<int> host{1, 2, 3, 4, 5};
    device_buffer<int> b(cpu, host);
    CHECK(b.to_host() == host);
    b.slice(1, 2).fill(9);
    CHECK(b.to_host() == std::vector<int>{1, 9, 9, 4, 5});
    device_buffer<int> c(cpu, 2);
    c.copy_from(b.slice(3));
    CHECK(c.to_host() == std::vector<int>{4, 5});
    auto moved = std::move(b);
    CHECK(moved.size() == 5);
    CHECK(b.size() == 0);
    CHECK(contains(message_of([&] { (void)moved.slice(3, 3); }),
                   "slice of 3 elements from 3 on is not inside a buffer of 5"));
    CHECK(contains(message_of([&] { moved.copy_from(std::vector<int>(4)); }), "4 elements given, the buffer has 5"));
  }

  TEST_CASE("memory that does not suffice is an error, and the next allocation works") {
    auto cpu = device::cpu();
    CHECK(contains(message_of([&] { device_buffer<double>(cpu, SIZE_MAX / 4); }), "driver error: out of memory"));
    CHECK(contains(message_of([&] { device_buffer<double>(cpu, std::size_t(1) << 50); }), "out of memory"));
    CHECK_NOTHROW(device_buffer<double>(cpu, 10));
  }

  TEST_CASE("a kernel runs with its default and with other configurations") {
    auto add = make_add();
    stream s(device::cpu());
    const int n = 1000;
    std::vector<float> x(n, 1), y(n, 2);
    device_buffer<float> out(device::cpu(), n);
    auto all = [&](float v) { return out.to_host() == std::vector<float>(n, v); };
    add(
        s, [&](const config &c) { return (n + c.block - 1) / c.block; }, x, y, out, n);
    CHECK(all(3));
    out.fill(-1);
    add.with({.block = 128})(s, 8, x, y, out, n);
    CHECK(all(3));
    out.fill(-1);
    add.with({.block = 128}, {.debug = true})(s, {8, 1, 1}, x, y, out.data(), std::size_t(n));
    CHECK(all(3));
    CHECK(add.with({.block = 32}).configuration().block == 32);
  }

  TEST_CASE("grids are 64-bit numbers") {
    auto add = make_add();
    stream s(device::cpu());
    float x = 0;
    device_buffer<float> out(device::cpu(), 1);
    // Nothing to run: nothing is compiled or checked either.
    for (grid g : {grid{0, 1, 1}, grid{1, 0, 1}, grid{5, 5, 0}})
      CHECK_NOTHROW(add(s, g, &x, &x, out, 1));
    const unsigned line = __LINE__ + 1;
    auto text = message_of([&] { add(s, {std::int64_t(1) << 32, 1}, &x, &x, out, 1); });
    CHECK(contains(text, "kernel 'add' cannot be launched with grid (4294967296, 1, 1)"));
    CHECK(contains(text, (std::string("device_test.cpp:") + std::to_string(line)).c_str()));
    CHECK(contains(message_of([&] { add(s, -1, &x, &x, out, 1); }), "computed with 32 bits"));
    CHECK(contains(message_of([&] { add(s, std::uint64_t(-1), &x, &x, out, 1); }), "at most"));
    // An emulated GPU refuses what the GPU refuses.
    stream gpu(device::open("cpu:emulate=sm_80"));
    CHECK(contains(message_of([&] { add(gpu, {1, 65536}, &x, &x, out, 1); }), "at most (2147483647, 65535, 65535)"));
  }

  TEST_CASE("arguments are checked before the launch") {
    auto add = make_add();
    stream s(device::cpu());
    std::vector<float> x(64), out(64);
    CHECK(contains(message_of([&] { add(s, 1, x, static_cast<const float *>(nullptr), out, 64); }),
                   "argument 2 of kernel 'add' is a null pointer"));
    CHECK_NOTHROW(add(s, 1, x, x, out, 64));
  }

  TEST_CASE("threads that launch at once compile once and agree") {
    std::atomic<int> traces = 0;
    auto kernel = tl::kernel("fill", [&traces](tl::ptr<tl::i32> out, tl::val<tl::i32> v) {
      ++traces;
      auto at = tl::arange(0, 16);
      tl::store(out + at, tl::zeros<tl::i32>({16}) + v);
    });
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        stream s(device::cpu());
        device_buffer<tl::i32> out(device::cpu(), 16);
        for (int i = 0; i < 20; ++i) {
          kernel(s, 1, out, 32 * t + 2 + 2 * (i % 2)); // never 1, not divisible by 16
          if (out.to_host() != std::vector<tl::i32>(16, 32 * t + 2 + 2 * (i % 2)))
            ++wrong;
        }
      });
    for (auto &t : threads)
      t.join();
    CHECK(wrong == 0);
    CHECK(traces == 1);
  }

  TEST_CASE("different specialisations compile at the same time") {
    auto add = make_add();
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        try {
          for (const char *target : {"cpu", "cpu:emulate=gfx942", "cuda:sm_80"})
            wrong += !add.with({.block = 16 << t}).compile_for(target).has("llir");
          stream s(device::open(t % 2 ? "cpu" : "cpu:emulate=sm_90a"));
          std::vector<float> x(100, float(t)), out(100, -1.0f);
          add.with({.block = 16 << t})(s, 100, x, x, out, 100);
          wrong += out != std::vector<float>(100, float(2 * t));
        } catch (const std::exception &) {
          ++wrong;
        }
      });
    for (auto &t : threads)
      t.join();
    CHECK(wrong == 0);
  }

  TEST_CASE("an exception of the lambda passes through, and the next launch works") {
    bool fail = true;
    auto kernel = tl::kernel("fails_once", [&](tl::ptr<float> out) {
      if (fail)
        throw std::runtime_error("mine");
      tl::store(out, tl::program_id(0).to<float>());
    });
    stream s(device::cpu());
    std::vector<float> out(1, -1.0f);
    CHECK_THROWS_WITH_AS(kernel(s, 1, out), "mine", std::runtime_error);
    fail = false;
    kernel(s, 1, out);
    CHECK(out[0] == 0);
  }

  TEST_CASE("alignment facts come from this launch, not from the first one") {
    int traces = 0;
    auto copy = tl::kernel("copy", [&](tl::ptr<const float> x, tl::ptr<float> y, tl::val<tl::i32> n) {
      ++traces;
      auto at = tl::arange(0, 64);
      tl::store(y + at, tl::load(x + at, at < n), at < n);
    });
    stream s(device::cpu());
    std::vector<float> data(80);
    for (int i = 0; i < 80; ++i)
      data[std::size_t(i)] = float(i);
    device_buffer<float> x(device::cpu(), data), y(device::cpu(), 64);
    auto run = [&](std::size_t offset, int n) {
      y.fill(-1);
      copy(s, 1, x.slice(offset), y, n);
      auto r = y.to_host();
      for (int i = 0; i < 64; ++i)
        CHECK(r[std::size_t(i)] == (i < n ? float(i + int(offset)) : -1.0f));
    };
    run(0, 64);
    CHECK(traces == 1);
    run(4, 48);
    CHECK(traces == 1); // 16 bytes on: the same facts hold
    run(1, 64);
    CHECK(traces == 2);
    run(0, 1);
    CHECK(traces == 3);
    run(0, 17);
    CHECK(traces == 4);
    run(0, 64);
    CHECK(traces == 4);
  }

  TEST_CASE("a handle has every stage") {
    auto h = make_add().compile(device::cpu());
    CHECK(contains(h.stage("ttir"), "tt.func"));
    CHECK(contains(h.stage("ttgir"), "#ttg"));
    CHECK(contains(h.stage("llir"), "define"));
    CHECK(h.has("obj"));
    CHECK(contains(message_of([&] { (void)h.stage("ptx"); }), "has no stage 'ptx'; it has ttir, ttgir, llir"));
    CHECK(!h.times().empty());
    auto ptx = make_add().compile_for("cuda:sm_90a"); // no GPU needed
    CHECK(contains(ptx.stage("ptx"), ".visible .entry add"));
    auto says_size = [](const char *target) {
      return contains(make_add().compile_for(target).stage("ttir"), "tt.pointer_range = 32");
    };
    CHECK(says_size("hip:gfx942")); // buffer instructions have offsets of 32 bits
    CHECK(says_size("cpu:emulate=gfx942"));
    CHECK(!says_size("cuda:sm_90a"));
    CHECK(!says_size("cpu"));
  }

  TEST_CASE("a kernel that launches itself while it is traced is an error") {
    stream s(device::cpu());
    std::vector<float> out(1);
    std::function<void()> again = [] {};
    auto kernel = tl::kernel("endless", [&](tl::ptr<float> o) {
      again();
      tl::store(o, tl::program_id(0).to<float>() + 1);
    });
    again = [&] { kernel(s, 1, out); };
    CHECK(contains(message_of([&] { kernel(s, 1, out); }), "kernel 'endless' is launched while its own lambda is traced"));
    again = [&] { kernel.compile_for("cuda:sm_80"); };
    CHECK(contains(message_of([&] { kernel.compile_for("cuda:sm_80"); }), "'endless' is launched while"));
    again = [] {};
    kernel(s, 1, out);
    CHECK(out[0] == 1);
  }

  TEST_CASE("a child of fork() launches on threads of its own, and ends") {
    auto add = make_add();
    stream s(device::cpu());
    std::vector<float> x(10000, 1), out(10000);
    auto works = [&](float more) {
      std::vector<float> y(10000, more);
      add(s, 200, x, y, out, 10000);
      return out == std::vector<float>(10000, 1 + more);
    };
    REQUIRE(works(1)); // the parent's threads run
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      const int wrong = works(2) ? 0 : 1;
#if defined(__SANITIZE_ADDRESS__) // what the parent's threads own is a leak to its eyes
      _exit(wrong);
#endif
      std::exit(wrong); // destructors of the library included
    }
    int status = -1;
    for (int i = 0; i < 3000 && waitpid(child, &status, WNOHANG) == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const bool ended = status != -1;
    if (!ended) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
    }
    CHECK(ended);
    CHECK(status == 0);
    CHECK(works(3));
  }

  TEST_CASE("what was moved from says so, or works") {
    auto cpu = device::cpu();
    stream s(cpu);
    event a(cpu), b(cpu);
    b.record(s);
    event c = std::move(a);
    CHECK(contains(message_of([&] { a.record(s); }), "this event was moved from"));
    CHECK(contains(message_of([&] { (void)b.elapsed_ms(a); }), "this event was moved from"));
    c.record(s);
    CHECK(c.elapsed_ms(b) >= 0);
    stream other = std::move(s);
    auto add = make_add(), same = std::move(add);
    auto handle = add.compile(cpu), handle_too = std::move(handle);
    CHECK(handle.summary() == handle_too.summary());
    std::vector<float> x(64, 1), out(64);
    add(s, 1, x, x, out, 64);
    CHECK(out == std::vector<float>(64, 2.0f));
    device_buffer<float> from(cpu, 64), to = std::move(from);
    CHECK(contains(message_of([&] { add(s, 1, x, from.view(), out, 64); }), "argument 2 of kernel 'add' is a device_buffer that "
                                                                            "was moved from"));
    device_buffer<float> old(cpu, 64); // which is given up, not given to the other
    old = std::move(to);
    CHECK(contains(message_of([&] { add(s, 1, x, to.view(), out, 64); }), "was moved from"));
    stream mine(cpu);
    mine = std::move(other);
    CHECK(other.native() == nullptr);
  }

  TEST_CASE("events time the CPU") {
    stream s(device::cpu());
    event a(device::cpu()), b(device::cpu());
    CHECK(contains(message_of([&] { (void)b.elapsed_ms(a); }), "event::record"));
    a.record(s);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    b.record(s);
    CHECK(b.elapsed_ms(a) >= 2);
  }

  TEST_CASE("bench runs the work and sorts the times") {
    CHECK(quantile({3, 1, 2}, 0.5) == 2);
    CHECK(quantile({1, 2}, 0.75) == 1.75);
    CHECK(quantile({}, 0.5) == 0);
    stream s(device::cpu());
    int runs = 0;
    auto r = bench(s, [&] { ++runs; },
                   {.warmup_ms = 0, .measure_ms = 1, .min_runs = 3, .max_runs = 10, .flush_cache = false});
    CHECK(r.runs == 10);
    CHECK(runs >= 10);
    CHECK(r.min <= r.median);
    CHECK(r.median <= r.max);
  }
}
