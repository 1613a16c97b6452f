// The autotuner: what trials leave of the caller's data, which candidates are tried, what is remembered.
#include "messages.h"
#include "temporary_folder.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <pty.h>
#include <thread>
#include <unistd.h>

#include <doctest/doctest.h>

#include <tessera/tessera.h>

namespace fs = std::filesystem;
namespace tl = tessera::tl;
using namespace tessera;

namespace {

struct config {
  int block = 128;
  int repeat = 1; ///< does the same work so many times
  bool even = false;
};

/// x *= 0.5 in place.
const auto halve = tl::kernel("halve", [](tl::ptr<float> x, tl::val<tl::i32> n, config c) {
  auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
  tl::store(x + at, tl::load(x + at, at < n) * 0.5f, at < n);
});

/// out += x: every run adds.
const auto accumulate =
    tl::kernel("accumulate", [](tl::ptr<const float> x, tl::ptr<float> out, tl::val<tl::i32> n, config c) {
      auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
      tl::store(out + at, tl::load(out + at, at < n) + tl::load(x + at, at < n), at < n);
    });

/// y = 2 x, as often as the configuration says; one that is `even` needs no mask.
const auto twice = tl::kernel("twice", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<tl::i32> n, config c) {
  auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
  for (auto i : tl::range(0, c.repeat)) {
    (void)i;
    if (c.even)
      tl::store(y + at, tl::load(x + at) * 2.0f);
    else
      tl::store(y + at, tl::load(x + at, at < n) * 2.0f, at < n);
  }
});

auto grid_for(int n) {
  return [n](const config &c) { return tl::cdiv(n, c.block); };
}

/// Quick and quiet.
tl::tuning<config> quick(std::string arguments, std::string key, std::vector<tl::candidate<config>> candidates) {
  tl::tuning<config> t;
  t.arguments = std::move(arguments), t.key = std::move(key), t.candidates = std::move(candidates);
  t.warmup_ms = 0, t.measure_ms = 0.5;
  t.progress = false;
  return t;
}

struct tuner_test : temporary_folder {
  cache_settings before = current_cache_settings();
  stream s{device::cpu()};
  tuner_test() { new_process(); }
  ~tuner_test() { set_cache(before); }
  void new_process() const { set_cache({cache_settings::mode::on, path.string()}); }
};

std::vector<float> counting(int n) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i)
    v[std::size_t(i)] = float(i);
  return v;
}

const tl::candidate<config> broken{{.block = 512}, {.num_warps = 3}};

} // namespace

TEST_SUITE("runtime.autotune") {

  TEST_CASE_FIXTURE(tuner_test,
                    "a kernel that works in place is tuned without harm to its data, whatever candidates fail") {
    for (const char *target : {"cpu", "cpu:emulate=sm_80"}) {
      const device d = device::open(target);
      stream s(d);
      auto t = quick("x n", "n",
                     {{{.block = 128}, {.num_warps = 4}},
                      broken,
                      {{.block = 256}, {.num_warps = 4}},
                      {{.block = 256}, {.num_warps = 8}}});
      t.restore_value = "x";
      const auto tuned = tl::autotune(halve, t);
      device_buffer<float> x(d, std::vector<float>(1000, 1024.0f));
      for (float expected : {512.0f, 256.0f, 128.0f}) {
        tuned(s, grid_for(1000), x, 1000);
        CHECK(x.to_host() == std::vector<float>(1000, expected));
      }
      tuned(s, grid_for(500), x, 500); // a new key
      auto got = x.to_host();
      for (int i = 0; i < 1000; ++i)
        REQUIRE(got[std::size_t(i)] == (i < 500 ? 64.0f : 128.0f));
      const auto report = tuned.tune(s, grid_for(1000), x, 1000);
      CHECK(report.key == "n=1000");
      REQUIRE(report.trials.size() == 4);
      CHECK(contains(report.trials[1].skipped, "num_warps = 3"));
      CHECK_FALSE(report.trials[1].measured());
      CHECK(report.trials[std::size_t(report.best)].measured());
    }
  }

  TEST_CASE_FIXTURE(tuner_test, "a candidate that needs too much shared memory is skipped, and disturbs nothing") {
    struct tile {
      int rows = 16;
    };
    // A matrix product takes its operands from shared memory: `rows` times 512 bytes of it. x is halved in place.
    const auto flip = tl::kernel("flip", [](tl::ptr<tl::f16> x, tl::ptr<float> y, tile c) {
      auto row = tl::arange(0, c.rows), k = tl::arange(0, 256), col = tl::arange(0, 16);
      auto at = row[tl::all, tl::newaxis] * 256 + k[tl::newaxis, tl::all];
      auto v = tl::load(x + at) * 0.5f;
      tl::store(x + at, v);
      auto ones = tl::zeros<tl::f16>({256, 16}) + 1.0f;
      tl::store(y + row[tl::all, tl::newaxis] * 16 + col[tl::newaxis, tl::all], tl::dot(v, ones));
    });
    const device d = device::open("cpu:emulate=sm_80");
    stream gpu(d);
    tl::tuning<tile> t;
    t.arguments = "x y", t.restore_value = "x";
    t.warmup_ms = 0, t.measure_ms = 0.5, t.progress = false;
    t.candidates = {{{.rows = 512}}, {{.rows = 16}}, {{.rows = 32}}};
    const auto tuned = tl::autotune(flip, t);
    device_buffer<tl::f16> x(d, std::vector<tl::f16>(512 * 256, tl::f16(8.0f)));
    device_buffer<float> y(d, 512 * 16);
    for (float want : {4.0f, 2.0f, 1.0f}) {
      tuned(gpu, 1, x, y);
      const auto got = x.to_host();
      CHECK(float(got[0]) == want);
      CHECK(float(got[16 * 256 - 1]) == want);
      CHECK(float(got[32 * 256]) == 8.0f);
      CHECK(y.to_host()[15 * 16] == 256 * want);
    }
    const auto report = tuned.tune(gpu, 1, x, y);
    CHECK(contains(report.trials[0].skipped, "shared memory"));
    CHECK(report.trials[1].measured());
    t.candidates = {{{.rows = 512}}};
    CHECK(contains(message_of([&] { tl::autotune(flip, t)(gpu, 1, x, y); }), "no candidate of kernel 'flip' can run"));
    CHECK(float(x.to_host()[0]) == 1.0f);
  }

  TEST_CASE_FIXTURE(tuner_test, "what a hook throws ends the tuning with memory as it was, and the next call tunes") {
    for (bool before : {true, false})
      for (bool ours : {true, false}) {
        auto t = quick("x n", "n", {{{.block = 128}}, {{.block = 256}}});
        t.restore_value = "x";
        int calls = 0, fail_at = 3;
        auto hook = [&](const tl::candidate<config> &, const tuning_call &) {
          if (++calls != fail_at)
            return;
          if (ours)
            throw error(stage::launch, "the hook's");
          throw std::runtime_error("the hook's");
        };
        (before ? t.before_run : t.after_run) = hook;
        const auto tuned = tl::autotune(halve, t);
        std::vector<float> x(1000, 1024.0f);
        CHECK_THROWS_WITH(tuned(s, grid_for(1000), x, 1000), doctest::Contains("the hook's"));
        CHECK(x == std::vector<float>(1000, 1024.0f));
        tuned(s, grid_for(1000), x, 1000);
        CHECK(x == std::vector<float>(1000, 512.0f));
        new_process();
        fs::remove_all(path);
      }
  }

  TEST_CASE_FIXTURE(tuner_test, "a hook may use another tuned kernel, and is told where it uses the one being tuned") {
    auto inner = quick("x y n", "n", {{{.block = 128}}, {{.block = 64}}});
    const auto prepare = tl::autotune(twice, inner);
    auto t = quick("x n", "n", {{{.block = 128}}, {{.block = 256}}});
    const auto in = counting(100);
    std::vector<float> out(100), x(1000, 1.0f);
    t.before_run = [&](const tl::candidate<config> &, const tuning_call &) { prepare(s, grid_for(100), in, out, 100); };
    tl::autotune(halve, t)(s, grid_for(1000), x, 1000);
    CHECK(out[99] == 198.0f);

    std::function<void()> again;
    t.key = "";
    t.before_run = [&](const tl::candidate<config> &, const tuning_call &) { again(); };
    const auto itself = tl::autotune(halve, t);
    again = [&] { itself(s, grid_for(1000), x, 1000); };
    CHECK(contains(message_of([&] { itself(s, grid_for(1000), x, 1000); }),
                   "kernel 'halve' is called for a key that it is being tuned for"));
  }

  TEST_CASE_FIXTURE(tuner_test, "a lambda that throws for some candidates does not spoil the others") {
    const auto picky = tl::kernel("picky", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<tl::i32> n, config c) {
      if (c.block == 64)
        throw std::runtime_error("not 64");
      if (c.block == 32)
        throw 32;
      auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
      tl::store(y + at, tl::load(x + at, at < n) * 2.0f, at < n);
    });
    const auto x = counting(100);
    std::vector<float> y(100);
    const auto tuned = tl::autotune(
        picky, quick("x y n", "n", {{{.block = 64}}, {{.block = 32}}, {{.block = 128}}, {{.block = 100}}}));
    for (bool from_cache : {false, true}) {
      const auto report =
          (from_cache
               ? tl::autotune(
                     picky, quick("x y n", "n", {{{.block = 64}}, {{.block = 32}}, {{.block = 128}}, {{.block = 100}}}))
               : tuned)
              .tune(s, grid_for(100), x, y, 100);
      CHECK(report.from_cache == from_cache);
      CHECK(report.best == 2);
      CHECK(report.trials[0].skipped == "its lambda throws: not 64");
      CHECK(report.trials[1].skipped == "its lambda throws");
      CHECK(contains(report.trials[3].skipped, "power"));
    }
  }

  TEST_CASE_FIXTURE(tuner_test, "a tuned kernel that its own lambda launches is an error, not a wait without end") {
    std::vector<float> out(64);
    std::function<void()> again;
    auto kernel = tl::kernel("endless", [&](tl::ptr<float> o, tl::val<tl::i32> n, config c) {
      again();
      auto at = tl::arange(0, c.block);
      tl::store(o + at, 1.0f, at < n);
    });
    auto tuning = quick("o n", "n", {{{.block = 32}}, {{.block = 64}}});
    tuning.compile_threads = 2;
    const auto tuned = tl::autotune(kernel, tuning);
    again = [&] { tuned(s, 1, out, 64); };
    CHECK(contains(message_of([&] { tuned(s, 1, out, 64); }), "'endless' is launched while its own lambda is traced"));
  }

  TEST_CASE_FIXTURE(tuner_test, "a bar on a terminal, no wider than it is, and two lines elsewhere") {
    /// What tuning writes to a standard error that is `file`, read from `from`.
    auto shown = [&](int file, int from) {
      auto t = quick("x y n", "n", {{{.block = 128}}, {{.block = 256}}});
      t.progress = true;
      const auto x = counting(300);
      std::vector<float> y(300);
      const int before = dup(2);
      dup2(file, 2);
      tl::autotune(twice, t)(s, grid_for(300), x, y, 300);
      fflush(stderr);
      dup2(before, 2);
      close(before);
      std::string text;
      char part[4096];
      fcntl(from, F_SETFL, O_NONBLOCK);
      for (long n; (n = read(from, part, sizeof part)) > 0;)
        text.append(part, std::size_t(n));
      return text;
    };
    const char *quiet = std::getenv("TESSERA_AUTOTUNE_PROGRESS");
    if (quiet && std::string_view(quiet) == "0")
      return;
    int master = -1, terminal = -1, ends[2];
    const winsize small{.ws_row = 10, .ws_col = 50, .ws_xpixel = 0, .ws_ypixel = 0};
    REQUIRE(openpty(&master, &terminal, nullptr, nullptr, &small) == 0);
    const auto bar = shown(terminal, master);
    CHECK(contains(bar, "\r\033[K############............ 1/2 compiling twice for"));
    CHECK(contains(bar, " 1/2 measuring twice for"));
    for (std::size_t at = 0; (at = bar.find("\r\033[K", at)) != bar.npos;) {
      const auto end = bar.find('\r', at += 4);
      if (bar.compare(at, 8, "tessera:") != 0) // the last line stays, and may be broken
        CHECK(std::min(end, bar.size()) - at < 50);
    }
    CHECK(contains(bar, "tessera: tuned twice for n=300: block="));
    close(master), close(terminal);

    new_process();
    fs::remove_all(path);
    REQUIRE(pipe(ends) == 0);
    const auto lines = shown(ends[1], ends[0]);
    CHECK(lines.starts_with("tessera: tuning twice for n=300: 2 candidates on "));
    CHECK(contains(lines, "\ntessera: tuned twice for n=300: block="));
    CHECK(std::ranges::count(lines, '\n') == 2);
    CHECK_FALSE(contains(lines, "\r"));
    close(ends[0]), close(ends[1]);
  }

  TEST_CASE_FIXTURE(tuner_test, "where pruning leaves nothing, the error gives its reasons") {
    auto t = quick("x n", "n", {{{.block = 128}}, {{.block = 256}}});
    t.skip = [](const tl::candidate<config> &c, const tuning_call &) { return c.config.block == 128 ? "no" : "never"; };
    std::vector<float> x(1000, 3.0f);
    const auto text = message_of([&] { tl::autotune(halve, t)(s, grid_for(1000), x, 1000); });
    CHECK(contains(text, "no candidate of kernel 'halve' can run for n=1000:"));
    CHECK(contains(text, "block=128, repeat=1, even=false: no"));
    CHECK(contains(text, "block=256, repeat=1, even=false: never"));
    CHECK(x[0] == 3.0f);
  }

  TEST_CASE_FIXTURE(tuner_test, "a model may have no opinion, and may keep none") {
    auto t = quick("x n", "n", {{{.block = 32}}, {{.block = 64}}, {{.block = 128}}, {{.block = 256}}});
    t.model = [](const tl::candidate<config> &c, const tuning_call &) {
      return c.config.block == 128 ? 1 : std::numeric_limits<double>::quiet_NaN();
    };
    t.model_keeps = 0; // one at least
    std::vector<float> x(1000, 3.0f);
    const auto report = tl::autotune(halve, t).tune(s, grid_for(1000), x, 1000);
    CHECK(report.best == 2);
    CHECK(std::ranges::count_if(report.trials, [](auto &trial) { return trial.measured(); }) == 1);
  }

  TEST_CASE_FIXTURE(tuner_test, "where no candidate can run, the error names each reason, and nothing is changed") {
    auto t = quick("x n", "n", {broken, {{.block = 1024}, {.num_warps = 5}}});
    t.restore_value = "x";
    const auto tuned = tl::autotune(halve, t);
    std::vector<float> x(1000, 3.0f);
    for (int i = 0; i < 2; ++i) {
      auto text = message_of([&] { tuned(s, grid_for(1000), x, 1000); });
      CHECK(contains(text, "autotune_test.cpp"));
      CHECK(contains(text, "launch error: no candidate of kernel 'halve' can run for n=1000:"));
      CHECK(contains(text, "block=512, repeat=1, even=false, num_warps=3: codegen error: num_warps = 3 is not"));
      CHECK(contains(text, "num_warps=5: "));
    }
    CHECK(x == std::vector<float>(1000, 3.0f));
    CHECK(
        contains(message_of([&] { tl::autotune(halve, quick("x n", "n", {}))(s, 1, x, 1000); }), "has no candidates"));
  }

  TEST_CASE_FIXTURE(tuner_test, "sums start from zero in every trial and in the first real run") {
    auto t = quick("x out n", "n", {{{.block = 64}}, {{.block = 128}}, {{.block = 256}}});
    t.reset_to_zero = "out";
    const auto tuned = tl::autotune(accumulate, t);
    const auto x = counting(300);
    std::vector<float> out(300, 77.0f);
    tuned(s, grid_for(300), x, out, 300);
    CHECK(out == x);
    tuned(s, grid_for(300), x, out, 300); // later calls do what the kernel does
    CHECK(out[7] == 14.0f);
    // The same where the result was found on disk.
    new_process();
    const auto later = tl::autotune(accumulate, t);
    later(s, grid_for(300), x, out, 300);
    CHECK(out == x);
    later(s, grid_for(300), x, out, 300);
    CHECK(out[7] == 14.0f);
    CHECK(later.tune(s, grid_for(300), x, out, 300).from_cache);
  }

  TEST_CASE_FIXTURE(tuner_test, "memory of unknown size cannot be put back") {
    auto t = quick("x n", "n", {{{.block = 128}}});
    t.restore_value = "x";
    std::vector<float> x(1000, 2.0f);
    auto text = message_of([&] { tl::autotune(halve, t)(s, grid_for(1000), x.data(), 1000); });
    CHECK(contains(text, "cannot restore argument 'x': it was passed as a plain address"));
    CHECK(x[0] == 2.0f);
  }

  TEST_CASE_FIXTURE(tuner_test, "names are checked when the tuner is made") {
    auto refused = [&](auto change) {
      auto t = quick("x y n", "n", {{{.block = 128}}});
      change(t);
      return message_of([&] { tl::autotune(twice, t); });
    };
    CHECK(refused([](auto &) {}) == "no error");
    CHECK(contains(refused([](auto &t) { t.arguments = "x n"; }), "2 arguments are named, the kernel takes 3"));
    CHECK(contains(refused([](auto &t) { t.arguments = "x, x, n"; }), "two arguments are named 'x'"));
    CHECK(contains(refused([](auto &t) { t.key = "m"; }), "'m' in key is none of the arguments x, y, n"));
    CHECK(contains(refused([](auto &t) { t.key = "n y"; }), "'y' in key is a pointer"));
    CHECK(contains(refused([](auto &t) { t.restore_value = "n"; }), "'n' in restore_value is no pointer"));
    CHECK(contains(refused([](auto &t) { t.reset_to_zero = "x"; }),
                   "'x' in reset_to_zero is never written by the kernel"));
  }

  TEST_CASE_FIXTURE(tuner_test, "heuristics follow the arguments of each call, also those outside the key") {
    auto t = quick("x y n", "", {{{.block = 128}}, {{.block = 256}}});
    int asked = 0;
    t.heuristics = [&](tl::candidate<config> &c, const tuning_call &call) {
      c.config.even = call.integer("n") % c.config.block == 0;
      CHECK(call.number("n") == double(call.integer("n")));
      CHECK(call.bytes("x") == std::size_t(call.integer("n")) * 4);
      CHECK(contains(message_of([&] { (void)call.integer("z"); }), "no argument 'z'; it has x, y, n"));
      CHECK(contains(message_of([&] { (void)call.integer("x"); }), "not an integer"));
      ++asked;
    };
    const auto tuned = tl::autotune(twice, t);
    for (int n : {512, 513, 1024, 1000}) {
      const auto x = counting(n);
      std::vector<float> y(x.size() + 1, -1.0f);
      const int before = asked;
      tuned(s, grid_for(n), x, std::span(y).first(x.size()), n);
      for (int i = 0; i < n; ++i)
        REQUIRE(y[std::size_t(i)] == 2 * float(i));
      CHECK(y.back() == -1.0f);
      CHECK(asked > before);
      CHECK(tuned.best(s, grid_for(n), x, std::span(y).first(x.size()), n).configuration().even ==
            (n % tuned.best(s, grid_for(n), x, std::span(y).first(x.size()), n).configuration().block == 0));
    }
  }

  TEST_CASE_FIXTURE(tuner_test, "candidates are pruned by the user's function and by a model, with reasons") {
    auto t = quick(
        "x y n", "n",
        tl::candidates<config>({{.block = 32}, {.block = 64}, {.block = 128}, {.block = 256}, {.block = 512}}, {{}}));
    t.skip = [](const tl::candidate<config> &c, const tuning_call &call) {
      return c.config.block > call.integer("n") ? std::string("the block is larger than the row") : std::string();
    };
    t.model = [](const tl::candidate<config> &c, const tuning_call &) { return 1000.0 / c.config.block; };
    t.model_keeps = 2;
    const auto x = counting(300);
    std::vector<float> y(300);
    const auto report = tl::autotune(twice, t).tune(s, grid_for(300), x, y, 300);
    REQUIRE(report.trials.size() == 5);
    CHECK(report.trials[4].skipped == "the block is larger than the row");
    CHECK(report.trials[3].measured());
    CHECK(report.trials[2].measured());
    CHECK(report.trials[1].skipped == "the model expects 15.62, and 2 candidates to be faster");
    CHECK(contains(report.trials[0].skipped, "the model expects 31.25"));
    const auto table = report.table();
    CHECK(contains(table, "twice for n=300 on "));
    CHECK(contains(table, "* block="));
    CHECK(contains(table, "the block is larger than the row"));
    CHECK(contains(report.json(), "\"skipped\": \"the block is larger than the row\""));
  }

  TEST_CASE_FIXTURE(tuner_test, "hooks run around every trial, and hopeless candidates are given up") {
    auto t = quick("x y n", "n", {{{.block = 256}}, {{.block = 256, .repeat = 400}}});
    t.measure_ms = 5;
    int before_runs = 0, after_runs = 0;
    t.before_run = [&](const tl::candidate<config> &, const tuning_call &call) {
      before_runs += call.integer("n") == 4096;
    };
    t.after_run = [&](const tl::candidate<config> &, const tuning_call &) { ++after_runs; };
    const auto x = counting(4096);
    std::vector<float> y(4096);
    const auto report = tl::autotune(twice, t).tune(s, grid_for(4096), x, y, 4096);
    CHECK(before_runs > 3);
    CHECK(before_runs == after_runs);
    CHECK(report.best == 0);
    CHECK(contains(report.trials[1].skipped, "given up after 3 runs"));
    CHECK(report.trials[1].measured());
    CHECK(contains(report.table(), "given up"));
  }

  TEST_CASE_FIXTURE(tuner_test, "the winner is a kernel like any other") {
    auto t = quick("x y n", "n", {{{.block = 64}, {.num_warps = 2}}});
    const auto x = counting(100);
    std::vector<float> y(100);
    const auto best = tl::autotune(twice, t).best(s, grid_for(100), x, y, 100);
    CHECK(best.configuration().block == 64);
    CHECK(best.options().num_warps == 2);
    best(s, 2, x, y, 100);
    CHECK(y[99] == 198.0f);
  }

  TEST_CASE_FIXTURE(tuner_test, "results are kept on disk, for the same kernel, candidates, key and device alone") {
    const std::vector<tl::candidate<config>> two{{{.block = 64}}, {{.block = 128}}};
    const auto x = counting(1000);
    std::vector<float> y(1000);
    auto from_cache = [&](const auto &kernel, const std::vector<tl::candidate<config>> &c, int n, const device &d) {
      new_process();
      stream here(d);
      return tl::autotune(kernel, quick("x y n", "n", c)).tune(here, grid_for(n), x, y, n).from_cache;
    };
    const device cpu = device::cpu(), emulated = device::open("cpu:emulate=sm_80");
    CHECK_FALSE(from_cache(twice, two, 1000, cpu));
    CHECK(from_cache(twice, two, 1000, cpu));
    CHECK_FALSE(from_cache(twice, two, 999, cpu));
    CHECK_FALSE(from_cache(twice, two, 1000, emulated));
    CHECK(from_cache(twice, two, 1000, emulated));
    CHECK_FALSE(from_cache(twice, {{{.block = 64}}, {{.block = 256}}}, 1000, cpu));
    CHECK_FALSE(from_cache(twice, {{{.block = 64}}, {{.block = 128}, {.num_stages = 2}}}, 1000, cpu));
    const auto other = tl::kernel("twice", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<tl::i32> n, config c) {
      auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
      tl::store(y + at, tl::load(x + at, at < n) + tl::load(x + at, at < n), at < n);
    });
    CHECK_FALSE(from_cache(other, two, 1000, cpu));
    CHECK(from_cache(twice, two, 1000, cpu));

    // What it was measured as is what it says later.
    new_process();
    const auto tuned = tl::autotune(twice, quick("x y n", "n", two));
    const auto report = tuned.tune(s, grid_for(1000), x, y, 1000);
    CHECK(report.trials[0].measured());
    CHECK(report.trials[1].config == "block=128, repeat=1, even=false");
    CHECK(contains(report.table(), "measured by an earlier process"));

    // Entries that are whole, but no report.
    disk_cache folder(path.string());
    for (const char *bad :
         {"", "{}", "[1]", "{\"trials\": [1, 2], \"best\": 0}", "{\"trials\": [{}, {}], \"best\": \"x\"}",
          "{\"trials\": [{\"config\": 1}, {\"config\": 2}], \"best\": 1}",
          "{\"trials\": [{\"config\": \"block=64, repeat=1, even=false\"}, {\"config\": \"block=128, repeat=1, "
          "even=false\", \"median_ms\": \"fast\"}], \"best\": 1}"}) {
      for (auto &e : folder.list())
        if (e.kind == "tuning")
          CHECK(folder.store(cache_key(e.kind, e.key_text), bad) == 0);
      CHECK_FALSE(from_cache(twice, two, 1000, cpu));
      CHECK(from_cache(twice, two, 1000, cpu));
    }

    for (auto &f : fs::recursive_directory_iterator(path))
      if (f.path().extension() == ".tuning")
        fs::resize_file(f.path(), f.file_size() - 3);
    CHECK_FALSE(from_cache(twice, two, 1000, cpu));
    CHECK(from_cache(twice, two, 1000, cpu));
  }

  TEST_CASE_FIXTURE(tuner_test, "threads and devices tune side by side; one key is tuned once") {
    auto t = quick("x y n", "n", {{{.block = 64}}, {{.block = 128}}, broken});
    std::atomic<int> wrong = 0;
    std::atomic<int> runs = 0;
    t.before_run = [&](const tl::candidate<config> &, const tuning_call &) { ++runs; };
    const auto tuned = tl::autotune(twice, t);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&, i] {
        try {
          stream mine(device::open(i % 2 ? "cpu" : "cpu:emulate=sm_90a"));
          for (int n : {500, 700, 500}) {
            const auto x = counting(n);
            std::vector<float> y(x.size(), -1);
            tuned(mine, grid_for(n), x, y, n);
            for (int k = 0; k < n; ++k)
              if (y[std::size_t(k)] != 2 * float(k)) {
                ++wrong;
                break;
              }
          }
        } catch (const std::exception &e) {
          MESSAGE(e.what());
          ++wrong;
        }
      });
    for (auto &thread : threads)
      thread.join();
    CHECK(wrong == 0);
    const int after = runs;
    const auto x = counting(500);
    std::vector<float> y(500);
    tuned(s, grid_for(500), x, y, 500);
    CHECK(runs == after); // known by now
  }

  TEST_CASE("configurations are written with the names of their fields") {
    enum class mode { slow, fast };
    struct inner {
      int q = 1;
    };
    struct all {
      int block = 3;
      bool relu = false;
      float scale = 0.1f;
      mode m = mode::fast;
      inner i;
      int arr[2] = {1, 2};
      std::string name = "hi";
    };
    CHECK(tessera::detail::config_text(all{}) ==
          "block=3, relu=false, scale=0.1, m=1, i={q=1}, arr=[1, 2], name=\"hi\"");
    CHECK(tessera::detail::config_text(no_config{}).empty());
    CHECK(tessera::detail::config_text(config{}) == "block=128, repeat=1, even=false");
  }
}
