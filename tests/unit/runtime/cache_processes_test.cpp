// Many processes on one cache folder: none sees another's half-done work, killed ones leave nothing that hurts.
//
// TESSERA_CACHE_STRESS=PROCESSES,KERNELS,ROUNDS makes it harder (64,20,10).
#include "temporary_folder.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <utility>

#include <doctest/doctest.h>

#include <tessera/runtime/cache.h>

extern char **environ;
namespace fs = std::filesystem;

namespace {

std::string read(const fs::path &file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

/// A worker at work; its standard output and error go to files.
struct process {
  pid_t pid = -1;
  fs::path out, err;
  bool killed = false;
  int status = -1;

  process(const fs::path &folder, int number, std::vector<std::string> args, std::vector<std::string> variables,
          const char *program = "cache_worker")
      : out(folder / (std::to_string(number) + ".out")), err(folder / (std::to_string(number) + ".err")) {
    args.insert(args.begin(), fs::read_symlink("/proc/self/exe").parent_path() / program);
    for (char **e = environ; *e; ++e)
      if (!std::string_view(*e).starts_with("TESSERA_CACHE"))
        variables.push_back(*e);
    auto pointers = [](std::vector<std::string> &strings) {
      std::vector<char *> p;
      for (auto &s : strings)
        p.push_back(s.data());
      p.push_back(nullptr);
      return p;
    };
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    REQUIRE(posix_spawn(&pid, args[0].c_str(), &files, nullptr, pointers(args).data(), pointers(variables).data()) ==
            0);
    posix_spawn_file_actions_destroy(&files);
  }
  void wait() {
    if (status < 0)
      REQUIRE(waitpid(pid, &status, 0) == pid);
  }
  /// A number the worker printed.
  int number(const std::string &name) const {
    const std::string text = read(out);
    const auto at = text.find(name + ' ');
    return at == text.npos ? -1 : std::atoi(text.c_str() + at + name.size() + 1);
  }
};

struct workplace : temporary_folder {
  fs::path cache = path / "cache", logs = path / "logs";
  workplace() { fs::create_directories(logs); }

  /// Runs one worker; how many kernels it compiled, -1 where it failed.
  int compiled(std::vector<std::string> args, std::vector<std::string> variables = {}) {
    variables.push_back("TESSERA_CACHE_DIR=" + cache.string());
    process p(logs, 0, std::move(args), std::move(variables));
    p.wait();
    CHECK(p.status == 0);
    if (p.status)
      MESSAGE(read(p.err));
    warning = read(p.err);
    return p.number("compiled");
  }
  std::string warning;

  /// Runs tessera-cache; what it printed, and its exit status.
  std::pair<std::string, int> tool(std::vector<std::string> args) {
    process p(logs, 1, std::move(args), {"TESSERA_CACHE_DIR=" + cache.string()}, "tessera-cache");
    p.wait();
    return {read(p.out) + read(p.err), WIFEXITED(p.status) ? WEXITSTATUS(p.status) : -1};
  }
};

bool has(const std::string &text, const std::string &part) { return text.find(part) != text.npos; }

} // namespace

TEST_SUITE("runtime.cache_processes") {

  TEST_CASE_FIXTURE(workplace, "a captured constant, in processes of its own") {
    CHECK(compiled({"value", "123"}) == 1);
    CHECK(compiled({"value", "1234"}) == 1);
    CHECK(compiled({"value", "1234"}) == 0);
    CHECK(compiled({"value", "123"}) == 0);
  }

  TEST_CASE_FIXTURE(workplace, "the environment that changes code is part of the key, other variables are not") {
    CHECK(compiled({"cpu"}) == 2);
    CHECK(compiled({"cpu"}) == 0);
    CHECK(compiled({"cpu"}, {"TESSERA_CPU_THREADS=1", "TESSERA_TRACE_STRICT=1", "HOME=/"}) == 0);
    CHECK(compiled({"cpu"}, {"TESSERA_CPU_ISA=sse2"}) == 2);
    CHECK(compiled({"cpu"}, {"TESSERA_CPU_ISA=sse2"}) == 0);
    CHECK(compiled({"cpu"}) == 0);
    CHECK(compiled({"cpu"}, {"TESSERA_CACHE=off"}) == 2);
  }

  TEST_CASE_FIXTURE(workplace, "a folder that cannot be written is one warning") {
    std::ofstream(cache) << "a file, where the folder should be";
    CHECK(compiled({"kernels", "3", "1"}) == 6);
    CHECK(warning.find("cannot be written (Not a directory)") != warning.npos);
    CHECK(std::count(warning.begin(), warning.end(), '\n') == 1);
    CHECK(compiled({"kernels", "3", "1"}, {"TESSERA_CACHE=readonly"}) == 6);
    CHECK(warning.empty());
  }

  TEST_CASE_FIXTURE(workplace, "tessera-cache lists, shows, verifies and clears") {
    CHECK(has(tool({"list"}).first, "0 entries, 0 B in "));
    CHECK(compiled({"kernels", "2", "1"}) == 4);
    CHECK(compiled({"value", "7"}) == 1);
    auto [listed, ok] = tool({"list"});
    CHECK(ok == 0);
    CHECK(has(listed, "affine_1"));
    CHECK(has(listed, "5 entries, "));
    const std::string hash = tessera::disk_cache(cache.string()).list()[0].hash;
    CHECK(has(tool({"list", "--json"}).first, "\"hash\": \"" + hash + "\""));
    CHECK(has(tool({"list", "--kind=tuning"}).first, "0 entries"));

    auto [shown, found] = tool({"show", "value"});
    CHECK(found == 0);
    CHECK(has(shown, "value for cpu: "));
    CHECK(has(shown, "options: num_warps=0"));
    CHECK(has(shown, "stages: ttir ("));
    CHECK(has(tool({"show", "value", "--stage=ttir"}).first, "tt.func public @value"));
    CHECK(has(tool({"show", "value", "--stage=ptx"}).first, "has no stage 'ptx'"));
    CHECK(has(tool({"show", "affine_1"}).first, "'affine_1' are 2 entries; name one by its hash"));
    CHECK(has(tool({"show", "nothing"}).first, "is 'nothing'"));

    CHECK(has(tool({"verify"}).first, "5 entries, 0 damaged"));
    const auto file = tessera::disk_cache(cache.string()).list()[0].file;
    fs::resize_file(file, 100);
    auto [damaged, status] = tool({"verify"});
    CHECK(status == 1);
    CHECK(has(damaged, file + ": cut off"));
    CHECK(has(tool({"list"}).first, "DAMAGED: cut off"));
    CHECK(has(tool({"show", hash.substr(0, 8)}).first, "is damaged: cut off"));
    CHECK(tool({"verify", "--remove"}).second == 0);
    CHECK(has(tool({"clear", "--unused-for=1"}).first, "0 entries removed"));
    CHECK(has(tool({"clear"}).first, "4 entries removed"));
    CHECK(has(tool({"list"}).first, "0 entries"));
    CHECK(tool({"frobnicate"}).second != 0);
    CHECK(tool({"clear", "--unused-for=-1"}).second != 0); // not: all
    CHECK(tool({"clear", "--unused-for=nan"}).second != 0);
    CHECK(has(tool({"list", "--folder=" + logs.string()}).first, "0 entries, 0 B in " + logs.string()));
    CHECK(has(tool({"list", "--folder=/dev/null"}).first, "cannot be read: Not a directory"));
    CHECK(tool({"clear", "--folder=/dev/null"}).second == 2);
    CHECK(has(tool({"list", "--folder=" + (path / "later").string()}).first, "0 entries"));
  }

  TEST_CASE_FIXTURE(workplace, "many processes start at once, some are killed, entries are damaged in between") {
    int processes = 8, kernels = 4, rounds = 3;
    if (const char *text = std::getenv("TESSERA_CACHE_STRESS"))
      REQUIRE(std::sscanf(text, "%d,%d,%d", &processes, &kernels, &rounds) == 3);
    std::mt19937 random(7);
    auto below = [&](std::size_t n) { return std::size_t(random() % n); };
    int most_compiled = 0;
    for (int round = 0; round < rounds; ++round) {
      CAPTURE(round);
      fs::remove_all(cache);
      std::vector<process> running;
      for (int i = 0; i < processes; ++i)
        running.emplace_back(logs, i, std::vector<std::string>{"kernels", std::to_string(kernels), std::to_string(i)},
                             std::vector<std::string>{"TESSERA_CACHE_DIR=" + cache.string(), "TESSERA_CPU_THREADS=1"});
      const auto began = std::chrono::steady_clock::now();
      for (int i = 0; i < processes; i += 5) {
        std::this_thread::sleep_for(std::chrono::milliseconds(below(200 + std::size_t(processes) * 10)));
        running[std::size_t(i)].killed = kill(running[std::size_t(i)].pid, SIGKILL) == 0;
      }
      int total = 0;
      for (auto &p : running) {
        p.wait();
        const bool finished = WIFEXITED(p.status);
        CHECK((finished ? WEXITSTATUS(p.status) == 0 : p.killed));
        if (finished && WEXITSTATUS(p.status))
          MESSAGE(read(p.err));
        if (finished) {
          total += p.number("compiled");
          CHECK(p.number("damaged") == 0);
        }
      }
      // Nobody sees part of an entry, and each kernel is made about once; a killed process may have made some too.
      tessera::disk_cache c(cache.string());
      const auto entries = c.list(true);
      CHECK(entries.size() == std::size_t(2 * kernels));
      for (auto &e : entries)
        CHECK(e.damage == "");
      most_compiled = std::max(most_compiled, total);
      CHECK(total <= 2 * 2 * kernels);
      MESSAGE("round ", round, ": ", total, " compilations of ", 2 * kernels, " kernels by ", processes, " processes, ",
              std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(), " s");

      // Damage some of what there is; who comes next finds and repairs it.
      int damaged = 0;
      for (auto &e : entries)
        if (below(3) == 0) {
          if (below(2)) {
            fs::resize_file(e.file, below(e.bytes));
          } else {
            std::fstream file(e.file, std::ios::in | std::ios::out | std::ios::binary);
            const auto at = std::streamoff(below(e.bytes));
            file.seekg(at);
            const int old = file.get();
            file.seekp(at);
            file.put(char(old ^ 1 << below(8)));
          }
          ++damaged;
        }
      CHECK(compiled({"kernels", std::to_string(kernels), "99"}) == damaged);
      CHECK(compiled({"kernels", std::to_string(kernels), "98"}) == 0);
    }
  }
}
