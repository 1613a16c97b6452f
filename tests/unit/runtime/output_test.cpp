// What the runtime writes: dumps of stages, plots, and the shared command line's results.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include <doctest/doctest.h>

#include <tessera/tessera.h>

namespace fs = std::filesystem;
namespace tl = tessera::tl;
using namespace tessera;

namespace {

struct temporary_folder {
  fs::path path = fs::temp_directory_path() / ("tessera_output_test." + std::to_string(getpid()));
  temporary_folder() { fs::remove_all(path); }
  ~temporary_folder() { fs::remove_all(path); }
  std::string text(const std::string &name) const {
    std::ostringstream out;
    out << std::ifstream(path / name).rdbuf();
    return out.str();
  }
};

auto make_one() {
  return tl::kernel("one", [](tl::ptr<float> out) { tl::store(out, 1.0f + tl::program_id(0).to<float>()); });
}

/// Runs a program's command line; `body` sees the cli.
int run(std::vector<std::string> words, const std::function<bool(cli &)> &body, std::int64_t *rows = nullptr) {
  cli c("program", "what it does");
  std::int64_t unused = 0;
  c.option("--rows", rows ? *rows : unused, "rows");
  words.insert(words.begin(), "program");
  std::vector<char *> argv;
  for (auto &w : words)
    argv.push_back(w.data());
  return c.run(int(argv.size()), argv.data(), [&] { return body(c); });
}

} // namespace

TEST_SUITE("runtime.output") {

  TEST_CASE_FIXTURE(temporary_folder, "stages are dumped to files as kernels are compiled") {
    set_dump("ttir,llir:" + path.string());
    make_one().compile_for("cuda:sm_80");
    make_one().compile(device::cpu());
    set_dump("");
    make_one().compile_for("cuda:sm_90a"); // not any more
    std::vector<std::string> names;
    for (auto &f : fs::directory_iterator(path))
      names.push_back(f.path().filename().string());
    CHECK(names.size() == 4);
    for (auto &n : names) {
      CHECK(n.starts_with("one.c"));
      CHECK(text(n).find(n.ends_with(".ttir") ? "tt.func public @one" : "define") != std::string::npos);
    }
    CHECK_THROWS_WITH_AS(set_dump("ptx,sass"),
                         doctest::Contains("'sass' is no stage that can be dumped; there are ttir"), error);
    for (const char *none : {",", ":/tmp"})
      CHECK_THROWS_WITH_AS(set_dump(none), doctest::Contains("names no stage to dump"), error);
  }

  TEST_CASE_FIXTURE(temporary_folder, "a compilation that fails dumps the stages before") {
    const char *before = std::getenv("TESSERA_PTXAS");
    setenv("TESSERA_PTXAS", "/bin/false", 1);
    set_dump("ptx:" + path.string());
    CHECK_THROWS_WITH_AS(make_one().compile_for("cuda:sm_80"), doctest::Contains("/bin/false refused the PTX"), error);
    set_dump("");
    before ? setenv("TESSERA_PTXAS", before, 1) : unsetenv("TESSERA_PTXAS");
    REQUIRE(fs::exists(path));
    CHECK(text(fs::directory_iterator(path)->path().filename()).find(".entry one") != std::string::npos);
  }

  TEST_CASE_FIXTURE(temporary_folder, "plots are SVG") {
    fs::create_directory(path);
    auto file = (path / "p.svg").string();
    write_plot(file, "a < b", "columns", "GB/s",
                   {{"one", {1, 2, 3}, {10, 30, 20}}, {"two", {1, 2, 3}, {5, 5, NAN}}});
    auto svg = text("p.svg");
    CHECK(svg.starts_with("<svg"));
    CHECK(svg.ends_with("</svg>\n"));
    CHECK(svg.find("a &lt; b") != std::string::npos);
    CHECK(svg.find("nan") == std::string::npos);
    CHECK_NOTHROW(write_plot(file, "empty", "x", "y", {}));
    CHECK_THROWS_AS(write_plot((path / "no" / "p.svg").string(), "", "", "", {}), error);
  }

  TEST_CASE("the command line gives target, sizes and results") {
    std::int64_t rows = 5;
    CHECK(run(
              {"--target=cpu:emulate=sm_80", "--rows=7"},
              [&](cli &c) {
                CHECK(c.device() == device::open("cpu:emulate=sm_80"));
                CHECK(c.target().str() == "cpu:emulate=sm_80");
                CHECK(!c.compile_only());
                CHECK(!c.bench());
                return true;
              },
              &rows) == 0);
    CHECK(rows == 7);
    CHECK(run({}, [](cli &) { return false; }) == 1);
    CHECK(run({}, [](cli &) -> bool { throw error(stage::execute, "broken"); }) == 2);
    CHECK(run({"--nonsense"}, [](cli &) { return true; }) == 2);
    CHECK(run({"--rows=0"}, [](cli &) { return true; }, &rows) == 2);
    CHECK(run({"--rows=-3"}, [](cli &) { return true; }, &rows) == 2);
    rows = 5;
    for (const char *huge : {"--rows=99999999999999999999", "--rows=-99999999999999999999"})
      CHECK(run({huge}, [](cli &) { return true; }, &rows) == 2);
    CHECK(run({}, [](cli &) -> bool { throw std::bad_alloc(); }) == 2);
    CHECK(run({"--target=toaster"}, [](cli &c) { return c.device().is_cpu(); }) == 2);
    CHECK(run({"--dump=sass"}, [](cli &) { return true; }) == 2);
    CHECK(run({"--target=cuda:sm_90a", "--compile-only"}, [](cli &c) {
            CHECK(c.compile_only());
            return c.show(make_one().compile_for(c.target()));
          }) == 0);
    if (device::all().size() == 1)
      for (auto [asked, compiled_for] : {std::pair("--target=cuda", "cuda:sm_90a"), {"--target=hip", "hip:gfx942"},
                                         {"--target=hip:gfx1100", "hip:gfx1100"}}) {
        CHECK(run({asked}, [](cli &c) { return c.device().is_cpu(); }) == 77);
        CHECK(run({asked, "--compile-only"}, [&](cli &c) { return c.target().str() == compiled_for; }) == 0);
      }
  }

  TEST_CASE_FIXTURE(temporary_folder, "measurements are written as JSON") {
    fs::create_directory(path);
    CHECK(
        run({"--target=cpu:emulate=sm_80", "--bench", "--json=" + (path / "r.json").string(), "--plot=" + (path / "r.svg").string()},
            [](cli &c) {
              bench_result r;
              r.median = 2;
              (void)c.device();
              c.report("copy", r, {{"GB/s", r.gbytes_per_s(4e9)}});
              c.plot("title", "x", "y", {{"line", {1, 2}, {3, 4}}});
              return true;
            }) == 0);
    auto json = text("r.json");
    CHECK(json.find("\"median_ms\": 2.0") != std::string::npos);
    CHECK(json.find("\"GB/s\": 2000.0") != std::string::npos);
    CHECK(json.find("\"program\": \"program\"") != std::string::npos);
    CHECK(json.find("\"target\": \"cpu:emulate=sm_80\"") != std::string::npos); // what "auto" was, too
    CHECK(json.find("\"device\": \"" + device::cpu().name()) != std::string::npos);
    CHECK(fs::exists(path / "r.svg"));
    bool started = false;
    CHECK(run({"--target=cpu", "--bench", "--plot=p.gif"}, [&](cli &) { return started = true; }) == 2);
    CHECK(run({"--target=cpu", "--bench", "--plot=p"}, [&](cli &) { return started = true; }) == 2);
    for (const char *kind : {"--json=", "--plot="}) // what was measured would be lost
      for (const std::string &file : {path.string() + "/no/such.svg", path.string()})
        CHECK(run({"--bench", kind + file}, [&](cli &) { return started = true; }) == 2);
    for (const char *what : {"--bench", "--autotune"})
      CHECK(run({"--compile-only", what}, [&](cli &) { return started = true; }) == 2);
    CHECK_FALSE(started);
    CHECK(run({"--autotune"}, [&](cli &) { return true; }) == 2); // it has nothing to tune,
    CHECK(run({"--bench", "--json=" + (path / "none.json").string()}, [&](cli &) { return true; }) == 2); // to measure,
    CHECK_FALSE(fs::exists(path / "none.json"));
    CHECK(run({"--bench", "--plot=" + (path / "none.svg").string()}, [&](cli &) { return true; }) == 2); // to draw
  }

  TEST_CASE("a size has limits") {
    std::int64_t n = 0;
    auto parse = [&](const char *word) {
      cli c("program", "what it does");
      c.option("--n", n, "a size", 0, 100);
      char name[] = "program";
      std::string copy = word;
      char *argv[] = {name, copy.data()};
      return c.run(2, argv, [] { return true; });
    };
    CHECK(parse("--n=0") == 0);
    CHECK(parse("--n=100") == 0);
    CHECK(n == 100);
    CHECK(parse("--n=101") == 2);
    CHECK(parse("--n=4294967297") == 2);
    CHECK(parse("--n=-1") == 2);
  }
}
