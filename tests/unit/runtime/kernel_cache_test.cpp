// Which kernels are taken from the cache and which must not be: each required hit and miss by itself.
#include "messages.h"
#include "temporary_folder.h"

#include <cstdlib>
#include <fstream>

#include <doctest/doctest.h>

#include <tessera/tessera.h>

namespace fs = std::filesystem;
namespace tl = tessera::tl;
using namespace tessera;

namespace {

/// A cache in an empty folder, for this test alone.
struct own_cache : temporary_folder {
  cache_settings before = current_cache_settings();
  own_cache() { use(); }
  ~own_cache() { set_cache(before); }
  void use(cache_settings::mode m = cache_settings::mode::on) const { set_cache({m, path.string()}); }
  /// As a new process would be: nothing in memory.
  void new_process() const { use(); }
};

struct config {
  int block = 64;
};

/// `x + add`, as a kernel made anew.
template <class T = float> auto make_add(T add, const char *name = "add") {
  return tl::kernel(name, [add](tl::ptr<T> x, tl::val<tl::i32> n, config c) {
    auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
    tl::store(x + at, tl::load(x + at, at < n) + add, at < n);
  });
}

enum class from { compiler, memory, disk };
/// Where compiling `k` took it from.
template <class K> from source(const K &k, const target &t = {}, specialization s = specialization::aligned()) {
  const auto before = cache_statistics();
  const auto h = k.compile_for(t, s);
  const auto after = cache_statistics();
  CHECK(after.compiled + after.disk_hits + after.memory_hits ==
        before.compiled + before.disk_hits + before.memory_hits + 1);
  CHECK(h.cached() == (after.compiled == before.compiled));
  return after.compiled > before.compiled         ? from::compiler
         : after.memory_hits > before.memory_hits ? from::memory
                                                  : from::disk;
}

struct environment {
  std::string name, before;
  bool was_set;
  environment(const char *n, const char *value)
      : name(n), before(std::getenv(n) ? std::getenv(n) : ""), was_set(std::getenv(n) != nullptr) {
    setenv(n, value, 1);
  }
  ~environment() { was_set ? setenv(name.c_str(), before.c_str(), 1) : unsetenv(name.c_str()); }
};

float helper_a(int) { return 2; }
float helper_b(int) { return 3; }

} // namespace

TEST_SUITE("runtime.kernel_cache") {

  TEST_CASE_FIXTURE(own_cache, "the same kernel is compiled once: found in memory, then on disk, with every stage") {
    const auto first = make_add(1.0f);
    const auto compiled = first.compile_for("cpu");
    CHECK_FALSE(compiled.cached());
    CHECK(source(make_add(1.0f)) == from::memory);
    new_process();
    const auto found = make_add(1.0f).compile_for("cpu");
    CHECK(found.cached());
    REQUIRE(found.stages() == compiled.stages());
    for (auto s : found.stages())
      CHECK(found.stage(s) == compiled.stage(s));
    CHECK(found.options() == compiled.options());
    CHECK(found.target() == compiled.target());
    CHECK(found.num_warps() == compiled.num_warps());
    CHECK(found.shared_bytes() == compiled.shared_bytes());
    CHECK(found.summary() == compiled.summary());
    CHECK(found.times().size() == 2); // trace and cache: nothing was compiled
  }

  TEST_CASE_FIXTURE(own_cache, "a cached kernel runs") {
    for (int round = 0; round < 2; ++round) {
      new_process();
      std::vector<float> x(100, 1.0f);
      auto k = make_add(41.0f);
      k(
          stream(device::cpu()), [](const config &c) { return tl::cdiv(100, c.block); }, x, 100);
      CHECK(x == std::vector<float>(100, 42.0f));
      CHECK(cache_statistics().disk_hits == std::uint64_t(round));
    }
  }

  TEST_CASE_FIXTURE(own_cache, "a constant that changed is a miss, one that changed back is a hit") {
    CHECK(source(make_add(123.0f)) == from::compiler);
    new_process();
    CHECK(source(make_add(1234.0f)) == from::compiler);
    new_process();
    CHECK(source(make_add(1234.0f)) == from::disk);
    new_process();
    CHECK(source(make_add(123.0f)) == from::disk);
    CHECK(source(make_add(124.0f)) == from::compiler);
    CHECK(source(make_add(0.0f)) == from::compiler);
    CHECK(source(make_add(-0.0f)) == from::compiler);
  }

  TEST_CASE_FIXTURE(own_cache, "a capture of another type is a miss") {
    CHECK(source(make_add<float>(1)) == from::compiler);
    CHECK(source(make_add<tl::i32>(1)) == from::compiler);
    CHECK(source(make_add<tl::i64>(1)) == from::compiler);
    CHECK(source(make_add<double>(1)) == from::compiler);
  }

  TEST_CASE_FIXTURE(own_cache, "a helper that gives something else is a miss") {
    auto using_helper = [](float (*helper)(int)) {
      return tl::kernel("k", [helper](tl::ptr<float> x) { tl::store(x, tl::load(x) * helper(0)); });
    };
    CHECK(source(using_helper(helper_a)) == from::compiler);
    CHECK(source(using_helper(helper_b)) == from::compiler);
    CHECK(source(using_helper(helper_a)) == from::memory);
  }

  TEST_CASE_FIXTURE(own_cache, "the same name with another body is a miss, another name with the same body too") {
    auto one = tl::kernel("k", [](tl::ptr<float> x) { tl::store(x, 1.0f); });
    auto two = tl::kernel("k", [](tl::ptr<float> x) { tl::store(x, 1.0f), tl::store(x + 1, 1.0f); });
    CHECK(source(one) == from::compiler);
    CHECK(source(two) == from::compiler);
    CHECK(source(make_add(1.0f, "p")) == from::compiler);
    CHECK(source(make_add(1.0f, "q")) == from::compiler);
  }

  TEST_CASE_FIXTURE(own_cache, "every option is part of the key") {
    const target gpu{target_kind::cuda, "sm_80"};
    const auto k = make_add(1.0f);
    CHECK(source(k, gpu) == from::compiler);
    for (compile_options o : std::initializer_list<compile_options>{{.num_warps = 8},
                                                                    {.num_stages = 4},
                                                                    {.maxnreg = 64},
                                                                    {.precise_math = true},
                                                                    {.enable_fp_fusion = false},
                                                                    {.line_info = false},
                                                                    {.debug = true}}) {
      CHECK(source(k.with_options(o), gpu) == from::compiler);
      CHECK(source(make_add(1.0f).with_options(o), gpu) == from::memory);
    }
    CHECK(source(k.with_options({.count_traffic = true})) == from::compiler);
    CHECK(source(k.with({.block = 128}), gpu) == from::compiler);
  }

  TEST_CASE_FIXTURE(own_cache, "targets and specialisations are part of the key") {
    const auto k = make_add(1.0f);
    for (const char *t : {"cpu", "cpu:emulate=sm_80", "cpu:emulate=sm_90a", "cuda:sm_80", "cuda:sm_90a"})
      CHECK(source(k, parse_target(t)) == from::compiler);
    CHECK(source(k, {}, {0, 0}) == from::compiler);
    CHECK(source(k, {}, {1, 0}) == from::compiler);
    CHECK(source(k, {}, {0, 2}) == from::compiler);
    new_process();
    for (const char *t : {"cpu", "cpu:emulate=sm_90a", "cuda:sm_80"})
      CHECK(source(make_add(1.0f), parse_target(t)) == from::disk);
    CHECK(source(make_add(1.0f), {}, {0, 2}) == from::disk);
  }

  TEST_CASE_FIXTURE(own_cache, "another assembler is a miss") {
    const target gpu{target_kind::cuda, "sm_80"};
    {
      environment none("TESSERA_PTXAS", "");
      CHECK(source(make_add(1.0f), gpu) == from::compiler);
      CHECK(source(make_add(1.0f), gpu) == from::memory);
    }
    environment broken("TESSERA_PTXAS", "/bin/false");
    CHECK_THROWS_AS(make_add(1.0f).compile_for(gpu), error);
  }

  TEST_CASE_FIXTURE(own_cache, "where the source is counts only where its lines are in the code") {
    // Two kernels with one body on two lines.
    const compile_options with_lines{.line_info = true}, without{.line_info = false};
    auto a = tl::kernel("k", [](tl::ptr<float> x) { tl::store(x, 7.0f); });
    auto b = tl::kernel("k", [](tl::ptr<float> x) { tl::store(x, 7.0f); });
    CHECK(source(a.with_options(with_lines)) == from::compiler);
    CHECK(source(b.with_options(with_lines)) == from::compiler);
    CHECK(source(a.with_options(without)) == from::compiler);
    CHECK(source(b.with_options(without)) == from::memory);
  }

  TEST_CASE_FIXTURE(own_cache, "printing after a pass compiles, since passes print when they run") {
    CHECK(source(make_add(1.0f)) == from::compiler);
    {
      environment print("TESSERA_PRINT_AFTER", "ttgir-insert-no-such-thing");
      CHECK_THROWS_WITH_AS(source(make_add(1.0f)),
                           doctest::Contains("TESSERA_PRINT_AFTER: there is no pass 'ttgir-insert-no-such-thing'"), error);
    }
    environment print("TESSERA_PRINT_AFTER", "convert-ttir-to-ttgir,cse");
    CHECK(source(make_add(1.0f)) == from::compiler);
  }

  TEST_CASE_FIXTURE(own_cache, "damaged entries are compiled again") {
    for (auto damage : {0, 1, 2}) {
      fs::remove_all(path);
      use();
      CHECK(source(make_add(5.0f)) == from::compiler);
      for (auto &f : fs::recursive_directory_iterator(path))
        if (f.is_regular_file()) {
          std::fstream file(f.path(), std::ios::in | std::ios::out | std::ios::binary);
          file.seekp(damage == 0 ? 4 : std::streamoff(f.file_size() / 2));
          if (damage == 2)
            fs::resize_file(f.path(), f.file_size() - 1);
          else
            file.put('!');
        }
      new_process();
      CHECK(source(make_add(5.0f)) == from::compiler);
      CHECK(cache_statistics().damaged == 1);
      new_process();
      CHECK(source(make_add(5.0f)) == from::disk);
    }
  }

  TEST_CASE_FIXTURE(own_cache, "an entry whose checksum is right, but whose content is no kernel, is made again") {
    CHECK(source(make_add(5.0f)) == from::compiler);
    disk_cache c(path.string());
    const auto entry = c.list().at(0);
    const cache_key key(entry.kind, entry.key_text);
    const std::string payload = c.read(entry).value();
    for (std::size_t n = 0; n < payload.size(); n += 1 + payload.size() / 40) {
      CHECK(c.store(key, payload.substr(0, n)) == 0);
      new_process();
      CHECK(source(make_add(5.0f)) == from::compiler);
    }
    CHECK(c.store(key, payload + '\0') == 0);
    new_process();
    CHECK(source(make_add(5.0f)) == from::compiler);
    // Lengths that lie: whatever they say, nothing outside is read.
    for (std::size_t i = 0; i < std::min<std::size_t>(payload.size(), 400); ++i) {
      std::string bad = payload;
      bad[i] = '\xff';
      CHECK(c.store(key, bad) == 0);
      (void)read_kernel(c, c.list().at(0));
    }
  }

  TEST_CASE_FIXTURE(own_cache, "modes: off, readonly, refresh; a folder that cannot be written") {
    using mode = cache_settings::mode;
    use(mode::readonly);
    CHECK(source(make_add(1.0f)) == from::compiler);
    CHECK_FALSE(fs::exists(path));
    use(mode::on);
    CHECK(source(make_add(1.0f)) == from::compiler);
    use(mode::readonly);
    CHECK(source(make_add(1.0f)) == from::disk);
    use(mode::refresh);
    CHECK(source(make_add(1.0f)) == from::compiler);
    CHECK(source(make_add(1.0f)) == from::memory);
    use(mode::off);
    CHECK(source(make_add(1.0f)) == from::compiler);
    CHECK(source(make_add(1.0f)) == from::compiler);
    set_cache({mode::on, "/dev/null/nowhere"}); // warns once
    CHECK(source(make_add(1.0f)) == from::compiler);
    CHECK(source(make_add(1.0f)) == from::memory);
    CHECK(source(make_add(2.0f)) == from::compiler);
    set_cache({mode::on, ""});
    CHECK(source(make_add(1.0f)) == from::compiler);
    CHECK(source(make_add(1.0f)) == from::memory);
  }

  TEST_CASE("settings come from the environment") {
    environment dir("TESSERA_CACHE_DIR", "/some/where/"), size("TESSERA_CACHE_SIZE", "3M"),
        use("TESSERA_CACHE", "readonly"), log("TESSERA_CACHE_LOG", "1");
    auto s = cache_settings_from_environment();
    CHECK(s.folder == "/some/where");
    CHECK(s.max_bytes == 3 << 20);
    CHECK(s.use == cache_settings::mode::readonly);
    CHECK(s.log);
    {
      environment none("TESSERA_CACHE_DIR", "");
      CHECK(cache_settings_from_environment().folder.empty());
    }
    {
      environment relative("TESSERA_CACHE_DIR", "some/where");
      CHECK(cache_settings_from_environment().folder == (fs::current_path() / "some/where").string());
    }
    unsetenv("TESSERA_CACHE_DIR");
    {
      environment xdg("XDG_CACHE_HOME", "/x");
      CHECK(cache_settings_from_environment().folder == "/x/tessera");
    }
    environment no_xdg("XDG_CACHE_HOME", ""), home("HOME", "/home/me");
    CHECK(cache_settings_from_environment().folder == "/home/me/.cache/tessera");
    environment bad_size("TESSERA_CACHE_SIZE", "lots");
    CHECK(contains(message_of([] { cache_settings_from_environment(); }),
                   "TESSERA_CACHE_SIZE is 'lots'; write it as 500M"));
    environment good_size("TESSERA_CACHE_SIZE", "1G"), bad_use("TESSERA_CACHE", "maybe");
    CHECK(contains(message_of([] { cache_settings_from_environment(); }), "use on, off, readonly or refresh"));
  }
}
