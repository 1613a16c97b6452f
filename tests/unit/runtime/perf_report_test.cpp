// Measuring: what bench runs and when, sweeps in all their forms, the report of a kernel's stages.
#include "messages.h"
#include "temporary_folder.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>

#include <tessera/tessera.h>

namespace tl = tessera::tl;
using namespace tessera;

namespace {

std::string text_of(const std::string &file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

perf_report make_report() {
  perf_report r({.title = "Copy, <all>",
                 .x_label = "elements",
                 .y_label = "GB/s",
                 .x = {1024, 4096, 16384},
                 .log_x = true,
                 .progress = false});
  r.line("one", [](double x) { return x / 1024; });
  r.line("two, fast", [](double x) -> perf_value {
    if (x == 4096)
      throw error(stage::launch, "too large a tile");
    return {x, x - 1, x + 1};
  });
  return std::move(r.run());
}

} // namespace

TEST_SUITE("runtime.perf_report") {

  TEST_CASE("steps") {
    CHECK(linear_steps(0, 1, 0.25) == std::vector<double>{0, 0.25, 0.5, 0.75, 1});
    CHECK(linear_steps(256, 12672, 128).size() == 98);
    CHECK(linear_steps(1, 0, 1).empty());
    CHECK(linear_steps(0, 1, 0).empty());
    CHECK(geometric_steps(4, 64, 2) == std::vector<double>{4, 8, 16, 32, 64});
    CHECK(geometric_steps(4, 64, 1).empty());
  }

  TEST_CASE("a sweep as table, CSV and JSON, with gaps where a measurement failed") {
    const auto r = make_report();
    REQUIRE(r.results().size() == 2);
    CHECK(r.results()[0].values[2].value == 16);
    CHECK(std::isnan(r.results()[1].values[1].value));
    const auto table = r.table();
    CHECK(contains(table, "Copy, <all> (GB/s)"));
    CHECK(contains(table, "        4096           4           -\n"));
    CHECK(contains(table, "two, fast at 4096: launch error: too large a tile"));
    CHECK(r.csv() == "elements,one,one (20 %),one (80 %),\"two, fast\",\"two, fast (20 %)\",\"two, fast (80 %)\"\n"
                     "1024,1,1,1,1024,1023,1025\n4096,4,4,4,,,\n16384,16,16,16,16384,16383,16385\n");
    const auto json = r.json();
    CHECK(contains(json, "\"note\": \"launch error: too large a tile\""));
    CHECK(contains(json, "\"value\": null"));
    CHECK(contains(json, "\"p20\": 16383.0"));
  }

  TEST_CASE_FIXTURE(temporary_folder, "a sweep is written in the format of the file's name") {
    std::filesystem::create_directory(path);
    const auto r = make_report();
    for (const char *name : {"r.svg", "r.csv", "r.json"})
      r.write(*this / name);
    CHECK(text_of(*this / "r.csv") == r.csv());
    CHECK(contains(text_of(*this / "r.json"), "\"x_label\": \"elements\""));
    const auto svg = text_of(*this / "r.svg");
    CHECK(contains(svg, "Copy, &lt;all&gt;"));
    CHECK(contains(svg, ">2048</text>")); // a tick of the logarithmic axis
    CHECK(contains(svg, "fill-opacity=\"0.15\""));
    CHECK_FALSE(contains(svg, "nan"));
    CHECK_FALSE(contains(svg, "inf"));
    CHECK(contains(message_of([&] { r.write(*this / "r.png"); }), "no format that a sweep can be written in"));
    CHECK(contains(message_of([&] { r.write("/dev/null/x.csv"); }), "cannot be written"));
    // Axes without values, and values that an axis cannot show.
    CHECK_NOTHROW(write_svg_plot(*this / "e.svg", "", "", "", {}, {.log_x = true, .log_y = true}));
    write_svg_plot(*this / "z.svg", "", "", "", {{"l", {0, 1, 10, 100}, {1, -1, 5, NAN}}},
                   {.log_x = true, .log_y = true});
    CHECK_FALSE(contains(text_of(*this / "z.svg"), "nan"));
    CHECK_FALSE(contains(text_of(*this / "z.svg"), "inf"));
  }

  TEST_CASE("rates keep the order of their quantiles") {
    bench_result b;
    b.median = 2, b.p20 = 1, b.p80 = 4;
    const auto rate = gbytes_per_s(b, 8e6);
    CHECK(rate.value == doctest::Approx(4));
    CHECK(rate.low == doctest::Approx(2));
    CHECK(rate.high == doctest::Approx(8));
    CHECK(tflops(b, 8e9).value == doctest::Approx(4));
    CHECK(milliseconds(b).high == 4);
  }

  TEST_CASE("bench prepares every run, and does not count what that takes") {
    stream s(device::cpu());
    int prepared = 0, ran = 0;
    bool in_order = true;
    const auto r =
        bench(s,
              [&] {
                in_order &= prepared == ran + 1;
                ++ran;
              },
              {.warmup_ms = 0, .measure_ms = 2, .min_runs = 4, .max_runs = 4, .flush_cache = false, .setup = [&] {
                 ++prepared;
                 const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(3);
                 while (std::chrono::steady_clock::now() < until)
                   ;
               }});
    CHECK(in_order);
    CHECK(prepared == ran);
    CHECK(r.runs == 4);
    CHECK(r.min < 3);
  }

  TEST_CASE("the stages of a kernel's first launch") {
    const auto before = current_cache_settings();
    set_cache({cache_settings::mode::on, ""});
    auto make = [] { return tl::kernel("timed", [](tl::ptr<float> out) { tl::store(out, 1.0f); }); };
    const auto cold = timing_report(make().compile(device::cpu()));
    CHECK(contains(cold, "timed for cpu: "));
    for (const char *stage : {"  trace ", "  llvm-opt ", "  isel ", "  load "})
      CHECK(contains(cold, stage));
    const auto found = timing_report(make().compile(device::cpu()));
    CHECK(contains(found, "found in the cache"));
    CHECK_FALSE(contains(found, "llvm-opt"));
    set_cache(before);
  }
}
