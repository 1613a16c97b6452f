// Measuring: what bench runs and when, sweeps in all their forms, the report of a kernel's stages.
#include "messages.h"
#include "temporary_folder.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

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
    CHECK(linear_steps(0, INFINITY, 1).empty());
    CHECK(linear_steps(0, NAN, 1).empty());
    CHECK(geometric_steps(1, INFINITY, 2).empty());
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
    for (const char *name : {"r.svg", "r.png", "r.csv", "r.json"})
      r.write(*this / name);
    CHECK(text_of(*this / "r.csv") == r.csv());
    CHECK(contains(text_of(*this / "r.json"), "\"x_label\": \"elements\""));
    const auto svg = text_of(*this / "r.svg");
    CHECK(contains(svg, "Copy, &lt;all&gt;"));
    CHECK(contains(svg, ">2048</text>")); // a tick of the logarithmic axis
    CHECK(contains(svg, "fill-opacity=\"0.15\""));
    CHECK_FALSE(contains(svg, "nan"));
    CHECK_FALSE(contains(svg, "inf"));
    CHECK(contains(message_of([&] { r.write(*this / "r.gif"); }), "no format that a sweep can be written in"));
    CHECK(contains(message_of([&] { write_plot(*this / "r.gif", "", "", "", {}); }), "no format that a plot can be"));
    CHECK(contains(message_of([&] { r.write("/dev/null/x.csv"); }), "cannot be written"));
    // Axes without values, and values that an axis cannot show.
    CHECK_NOTHROW(write_plot(*this / "e.svg", "", "", "", {}, {.log_x = true, .log_y = true}));
    write_plot(*this / "z.svg", "", "", "", {{"l", {0, 1, 10, 100}, {1, -1, 5, NAN}}}, {.log_x = true, .log_y = true});
    CHECK_FALSE(contains(text_of(*this / "z.svg"), "nan"));
    CHECK_FALSE(contains(text_of(*this / "z.svg"), "inf"));
    const auto log = text_of(*this / "z.svg");
    CHECK(contains(log, "h0\"")); // a point between gaps is a dot
  }

  TEST_CASE_FIXTURE(temporary_folder, "axes of any range have a few ticks, and plots of any value end") {
    std::filesystem::create_directory(path);
    const double cases[][2] = {{1e16, 1e16 + 2}, {0, 0},        {1e-320, 2e-320}, {-1e300, 1e300}, {1e308, 1.7e308},
                               {5e-324, 1},      {1, 1},        {1e300, 1e300},   {-5, -5},        {1000, 1000.1},
                               {1e-300, 1e300},  {1e-12, 1e-3}, {0, 1e-310},      {3, INFINITY},   {4096, 67108864}};
    for (auto &[a, b] : cases)
      for (int logs = 0; logs < 4; ++logs) {
        CAPTURE(a);
        CAPTURE(b);
        CAPTURE(logs);
        const plot_options how{.log_x = bool(logs & 1), .log_y = bool(logs & 2)};
        write_plot(*this / "p.svg", "t", "x", "y", {{"l", {a, b}, {b, a}, {b, a}, {b, a}}}, how);
        const auto svg = text_of(*this / "p.svg");
        int labels = 0;
        for (std::size_t at = 0; (at = svg.find("<text", at)) != svg.npos; ++at)
          ++labels;
        CHECK(labels >= 4 + 3); // title, names of axes and line; and on the axes
        CHECK(labels <= 4 + 30);
        CHECK_FALSE(contains(svg, "nan"));
        CHECK_FALSE(contains(svg, "inf"));
      }
    // A report with one point, and with names that are no UTF-8.
    perf_report one({.title = "one \xff\x01", .x = {7}, .progress = false});
    one.line("l\xc3", [](double) { return INFINITY; }).line("m", [](double) { return 5.0; }).run();
    CHECK(contains(one.csv(), "\n7,inf,inf,inf,5,5,5\n"));
    CHECK(contains(one.json(), "\"value\": null"));
    CHECK(contains(one.table(), "inf"));
    for (const char *name : {"o.svg", "o.png", "o.json", "o.csv"})
      one.write(*this / name);
    CHECK(contains(text_of(*this / "o.svg"), "one &#xfffd; "));
  }

  TEST_CASE_FIXTURE(temporary_folder, "plots are PNG, with lines and letters in them") {
    std::filesystem::create_directory(path);
    auto picture = [&](const std::string &title, const std::vector<plot_line> &lines) {
      write_plot(*this / "p.png", title, "columns", "GB/s", lines);
      int width = 0, height = 0, channels = 0;
      unsigned char *pixels = stbi_load((*this / "p.png").c_str(), &width, &height, &channels, 3);
      REQUIRE(pixels);
      std::vector<unsigned char> copy(pixels, pixels + std::size_t(3) * unsigned(width) * unsigned(height));
      stbi_image_free(pixels);
      CHECK(width == 1800);
      CHECK(height == 1080);
      return copy;
    };
    auto count = [](const std::vector<unsigned char> &image, int x0, int y0, int x1, int y1, auto &&is) {
      int n = 0;
      for (int y = y0; y < y1; ++y)
        for (int x = x0; x < x1; ++x) {
          const unsigned char *p = &image[3 * (std::size_t(y) * 1800 + std::size_t(x))];
          n += is(p[0], p[1], p[2]);
        }
      return n;
    };
    auto blue = [](int r, int g, int b) { return r == 0x1f && g == 0x77 && b == 0xb4; };
    auto light_blue = [](int r, int g, int b) { return r > 200 && g > 220 && b > 235 && r < b - 8; };
    auto black = [](int r, int g, int b) { return r + g + b < 90; };
    const auto plain = picture("", {{"l", {0, 1}, {4, 4}, {3, 3}, {5, 5}}, {"m", {0, 1}, {5, 5}}});
    // From 0 to 5 over 50 to 480: y = 4 is at 136, drawn from 80 to 700 units, 2 wide; the band is around it.
    CHECK(count(plain, 160, 268, 1400, 277, blue) > 1200 * 3);
    CHECK(count(plain, 160, 300, 1400, 900, blue) == 0);
    CHECK(count(plain, 160, 110, 1400, 260, light_blue) > 1200 * 70);
    // The title is in the middle above, as black letters; more letters are more black.
    auto title = [&](const std::string &text) {
      const auto image = picture(text, {});
      return count(image, 160, 20, 1400, 70, black);
    };
    const int one = title("W"), three = title("WWW"), greek = title("\u00b5\u2265");
    CHECK(title("") == 0);
    CHECK(one > 30);
    CHECK(three > 2 * one);
    CHECK(greek > 20);
    CHECK(count(plain, 0, 400, 50, 700, black) > 30); // "GB/s", upwards
    CHECK_THROWS_AS(write_plot(*this / "no/p.png", "", "", "", {}), error);
  }

  TEST_CASE("bench takes limits that contradict each other, and work that takes no time") {
    stream s(device::cpu());
    int runs = 0, finished = 0;
    auto r =
        bench(s, [&] { ++runs; },
              {.warmup_ms = 0, .measure_ms = 1e9, .max_runs = 2, .flush_cache = false, .finish = [&] { ++finished; }});
    CHECK(r.runs == 2);
    CHECK(finished == runs);
    CHECK(
        bench(s, [] {}, {.warmup_ms = 0, .measure_ms = 0, .min_runs = -3, .max_runs = -5, .flush_cache = false}).runs ==
        1);
    CHECK(bench(s, [] {}, {.warmup_ms = 0, .measure_ms = NAN, .min_runs = 3, .flush_cache = false}).runs == 3);
    bench_result nothing;
    CHECK(nothing.gbytes_per_s(1) == INFINITY);
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
