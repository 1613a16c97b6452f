// The folder of entries: what is damaged is never given, whatever a file operation does; the limit; claims.
#include "temporary_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <thread>

#include <doctest/doctest.h>

#include <tessera/runtime/cache.h>

namespace fs = std::filesystem;
using namespace tessera;

namespace {

cache_key key_of(const std::string &name) {
  return cache_key("kernel", "kernel: " + name + "\ntarget: cpu\n\nbody of " + name);
}

std::string contents(const fs::path &file) {
  std::ostringstream out;
  out << std::ifstream(file, std::ios::binary).rdbuf();
  return out.str();
}
void write(const fs::path &file, const std::string &bytes) { std::ofstream(file, std::ios::binary) << bytes; }

std::vector<fs::path> files_in(const fs::path &folder) {
  std::vector<fs::path> all;
  if (fs::exists(folder))
    for (auto &f : fs::recursive_directory_iterator(folder))
      if (f.is_regular_file())
        all.push_back(f.path());
  return all;
}

/// Does what the system's layer does, until the operation numbered `at`.
class faulty_files : public detail::file_layer {
public:
  enum class fault {
    error,   ///< this operation fails
    partial, ///< a read or write does half of it; other operations fail
    death,   ///< this and every later operation fails: the process is gone
    half     ///< a write does half of it, then the process is gone
  };
  faulty_files(int at, fault f, int error) : at_(at), fault_(f), error_(error) {}
  int operations() const { return count_; }
  bool struck() const { return count_ > at_; }

  int open(const std::string &p, int flags) override { return fails() ? -error_ : file_layer::open(p, flags); }
  long read(int f, void *to, std::size_t n) override {
    if (!fails())
      return file_layer::read(f, to, n);
    return fault_ == fault::partial ? file_layer::read(f, to, n / 2) : -error_;
  }
  long write(int f, const void *from, std::size_t n) override {
    if (!fails())
      return file_layer::write(f, from, n);
    return fault_ == fault::partial || (fault_ == fault::half && count_ == at_ + 1) ? file_layer::write(f, from, n / 2)
                                                                                    : -error_;
  }
  int close(int f) override {
    const bool failed = fails();
    file_layer::close(f); // as in the system, the descriptor is gone either way
    return failed ? -error_ : 0;
  }
  int info(int f, detail::file_info &i) override { return fails() ? -error_ : file_layer::info(f, i); }
  int info(const std::string &p, detail::file_info &i) override { return fails() ? -error_ : file_layer::info(p, i); }
  int rename(const std::string &a, const std::string &b) override {
    return fails() ? -error_ : file_layer::rename(a, b);
  }
  int remove(const std::string &p) override { return fails() ? -error_ : file_layer::remove(p); }
  int make_folder(const std::string &p) override { return fails() ? -error_ : file_layer::make_folder(p); }
  int list(const std::string &p, std::vector<std::string> &n) override {
    return fails() ? -error_ : file_layer::list(p, n);
  }
  int touch(int f) override { return fails() ? -error_ : file_layer::touch(f); }
  int try_lock(int f) override { return fails() ? -error_ : file_layer::try_lock(f); }

private:
  bool fails() {
    const int n = count_++;
    return fault_ == fault::death || fault_ == fault::half ? n >= at_ : n == at_;
  }
  int at_, count_ = 0;
  fault fault_;
  int error_;
};

void set_used(const std::string &file, int seconds_ago) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const timespec t{now.tv_sec - seconds_ago, 0};
  const timespec times[2] = {t, t};
  REQUIRE(utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
}

} // namespace

TEST_SUITE("runtime.disk_cache") {

  TEST_CASE_FIXTURE(temporary_folder, "what is stored is found, by its own key alone") {
    disk_cache c(*this / "a/b/c");
    CHECK_FALSE(c.load(key_of("x")));
    const std::string payload("bytes\0with zeros", 16);
    CHECK(c.store(key_of("x"), payload) == 0);
    CHECK(c.load(key_of("x")) == payload);
    CHECK_FALSE(c.load(key_of("y")));
    CHECK_FALSE(c.load(cache_key("tuning", key_of("x").text())));
    CHECK(c.store(key_of("x"), "newer") == 0);
    CHECK(c.load(key_of("x")) == "newer");
    CHECK(c.store(key_of("empty"), "") == 0);
    CHECK(c.load(key_of("empty")) == "");
    CHECK(disk_cache(c.folder()).load(key_of("x")) == "newer"); // another process
    CHECK(files_in(path).size() == 2);
    c.remove(key_of("x"));
    CHECK_FALSE(c.load(key_of("x")));
  }

  TEST_CASE_FIXTURE(temporary_folder, "entries are listed with their keys") {
    disk_cache c(path);
    c.store(key_of("first"), "1");
    c.store(key_of("second"), "22");
    write(*this / "readme", "not ours");
    write(*this / "0a", "a file where a folder could be");
    // Another program's, which is no entry and never removed.
    fs::create_directory(*this / "ab");
    const auto theirs = *this / "ab/ab0123456789abcdef0123456789abcd.jpg", half_theirs = *this / "ab/.download.part";
    write(theirs, "a picture"), write(half_theirs, "half a picture");
    set_used(theirs, 1 << 20), set_used(half_theirs, 1 << 20);
    CHECK(c.store(cache_key("jpg", "kernel: x"), "payload") == EINVAL);
    auto all = c.list(true);
    REQUIRE(all.size() == 2);
    std::set<std::string_view> names;
    for (auto &e : all) {
      names.insert(e.field("kernel"));
      CHECK(e.field("target") == "cpu");
      CHECK(e.field("body of first").empty());
      CHECK(e.kind == "kernel");
      CHECK(e.damage.empty());
      CHECK(c.read(e).has_value());
    }
    CHECK(names == std::set<std::string_view>{"first", "second"});
    CHECK(c.shrink(0) == 2);
    CHECK(c.list().empty());
    CHECK(contents(*this / "readme") == "not ours");
    CHECK(contents(theirs) == "a picture");
    CHECK(contents(half_theirs) == "half a picture");
  }

  TEST_CASE_FIXTURE(temporary_folder,
                    "every truncation and every flipped bit is found, and the entry can be made again") {
    disk_cache c(path);
    const auto key = key_of("damaged");
    REQUIRE(c.store(key, "payload") == 0);
    const fs::path file = files_in(path).at(0);
    const std::string good = contents(file);
    std::uint64_t found = 0;
    auto refused = [&](const std::string &bytes) {
      write(file, bytes);
      const auto listed = c.list(true);
      const bool seen = std::ranges::count_if(listed, [](auto &e) { return !e.damage.empty(); }) == 1;
      const bool given = c.load(key).has_value();
      ++found;
      return seen && !given && !fs::exists(file) && c.damaged() == found;
    };
    for (std::size_t n = 0; n < good.size(); ++n)
      REQUIRE(refused(good.substr(0, n)));
    for (std::size_t i = 0; i < good.size(); ++i)
      for (int bit = 0; bit < 8; ++bit) {
        std::string bad = good;
        bad[i] = char(bad[i] ^ 1 << bit);
        REQUIRE(refused(bad));
      }
    CHECK(refused(good + "x"));
    CHECK(refused(std::string(good.size(), '\0')));
    CHECK(refused("#!/bin/sh\necho this is somebody else's file, longer than the head of an entry is\n"));
    // An entry that is right in itself, under another's name.
    REQUIRE(c.store(key_of("other"), "other's") == 0);
    CHECK(refused(contents(files_in(path).at(0))));
    REQUIRE(c.store(key, "payload") == 0);
    CHECK(c.load(key) == "payload");
  }

  TEST_CASE_FIXTURE(
      temporary_folder,
      "whatever file operation fails, nothing is thrown, nothing wrong is given, and the next one works") {
    using fault = faulty_files::fault;
    const auto old_key = key_of("old"), new_key = key_of("new");
    for (fault f : {fault::error, fault::partial, fault::death, fault::half})
      for (int error : {EIO, ENOSPC, ENOENT}) {
        int last = 1;
        for (int at = 0; at < last; ++at) {
          CAPTURE(int(f));
          CAPTURE(error);
          CAPTURE(at);
          fs::remove_all(path);
          REQUIRE(disk_cache(path).store(old_key, std::string(500, 'o')) == 0);
          faulty_files files(at, f, error);
          {
            disk_cache c(path, {.max_bytes = 2000, .patience = std::chrono::milliseconds(1)}, files);
            auto claim = c.claim(new_key);
            if (auto old = c.load(old_key))
              REQUIRE(*old == std::string(500, 'o'));
            c.store(new_key, std::string(700, 'n'));
            if (auto made = c.load(new_key))
              REQUIRE(*made == std::string(700, 'n'));
            c.store(old_key, std::string(600, 'o'));
            if (auto old = c.load(old_key))
              REQUIRE((*old == std::string(600, 'o') || *old == std::string(500, 'o')));
            (void)c.list(true);
            c.store(key_of("third"), std::string(900, 't')); // beyond the limit
            c.shrink(100);
          }
          last = files.operations(); // the fault may change how many there are
          if (!files.struck())
            break;

          // Another process afterwards: only whole entries of the right content, and it can store.
          disk_cache after(path);
          for (auto &e : after.list(true))
            REQUIRE(e.damage == "");
          const auto old = after.load(old_key), made = after.load(new_key);
          REQUIRE((!old || *old == std::string(500, 'o') || *old == std::string(600, 'o')));
          REQUIRE((!made || *made == std::string(700, 'n')));
          REQUIRE(after.store(new_key, "again") == 0);
          REQUIRE(after.load(new_key) == "again");
          REQUIRE(after.damaged() == 0);
        }
      }
  }

  TEST_CASE_FIXTURE(temporary_folder, "a failed write leaves nothing behind") {
    for (int at = 0; at < 8; ++at) {
      fs::remove_all(path);
      faulty_files files(at, faulty_files::fault::error, ENOSPC);
      disk_cache c(path, {}, files);
      const int failed = c.store(key_of("x"), "payload");
      if (!files.struck())
        break;
      CAPTURE(at);
      if (failed)
        CHECK(files_in(path).empty());
      else // what failed was only tidying up
        CHECK(c.load(key_of("x")) == "payload");
    }
  }

  TEST_CASE_FIXTURE(temporary_folder, "the least recently used entries go first") {
    disk_cache c(path, {.max_bytes = 100'000});
    for (int i = 0; i < 8; ++i) {
      REQUIRE(c.store(key_of(std::to_string(i)), std::string(10'000, 'x')) == 0);
      for (auto &e : c.list())
        if (e.field("kernel") == std::to_string(i))
          set_used(e.file, 10'000 - 1000 * i);
    }
    CHECK(c.list().size() == 8);
    CHECK(c.load(key_of("0"))); // now the most recent
    for (int i = 8; i < 12; ++i)
      c.store(key_of(std::to_string(i)), std::string(10'000, 'x'));
    std::uint64_t total = 0;
    for (auto &e : c.list())
      total += e.bytes;
    CHECK(total <= 100'000);
    CHECK(c.evicted() > 0);
    CHECK(c.load(key_of("0")));
    CHECK(c.load(key_of("11")));
    CHECK_FALSE(c.load(key_of("1")));
    CHECK(c.store(key_of("huge"), std::string(200'000, 'x')) == EFBIG);
  }

  TEST_CASE_FIXTURE(temporary_folder, "what killed writers left is swept up when it is old") {
    disk_cache c(path);
    REQUIRE(c.store(key_of("x"), "payload") == 0);
    const fs::path entry = files_in(path).at(0), shard = entry.parent_path();
    const std::string stem = (shard / ('.' + entry.stem().string())).string(), part = stem + ".1.2.3.part",
                      fresh = stem + ".4.5.6.part", lock = entry.string() + ".lock";
    for (auto &f : {part, fresh, lock})
      write(f, "");
    set_used(part, 7200);
    set_used(lock, 7200);
    c.shrink(1 << 20);
    CHECK_FALSE(fs::exists(part));
    CHECK_FALSE(fs::exists(lock));
    CHECK(fs::exists(fresh));
    CHECK(c.load(key_of("x")));
  }

  TEST_CASE_FIXTURE(temporary_folder, "a folder that cannot be written, or is none, is a cache that never hits") {
    write(path, "a file");
    disk_cache c(path.string() + "/below");
    CHECK(c.store(key_of("x"), "payload") == ENOTDIR);
    CHECK_FALSE(c.load(key_of("x")));
    CHECK(c.list().empty());
    CHECK(c.shrink(0) == 0);
    CHECK_FALSE(c.claim(key_of("x")).waited());
    fs::remove(path);

    REQUIRE(disk_cache(path).store(key_of("x"), "payload") == 0);
    disk_cache readonly(path, {.writable = false});
    CHECK(readonly.load(key_of("x")) == "payload");
    CHECK(readonly.store(key_of("y"), "payload") == EROFS);
    readonly.remove(key_of("x"));
    CHECK(readonly.shrink(0) == 0);
    write(files_in(path).at(0), "damaged");
    CHECK_FALSE(readonly.load(key_of("x")));
    CHECK(files_in(path).size() == 1);
  }

  TEST_CASE_FIXTURE(temporary_folder, "a folder, a pipe or a link where an entry should be is no entry") {
    disk_cache c(path);
    REQUIRE(c.store(key_of("x"), "payload") == 0);
    const fs::path file = files_in(path).at(0);
    fs::remove(file);
    REQUIRE(mkfifo(file.c_str(), 0600) == 0); // reading it would wait for a writer
    CHECK_FALSE(c.load(key_of("x")));
    CHECK_FALSE(fs::exists(fs::symlink_status(file)));
    fs::create_symlink("/dev/zero", file);
    CHECK_FALSE(c.load(key_of("x")));
    fs::create_directory(file);
    CHECK_FALSE(c.load(key_of("x")));
    CHECK(c.store(key_of("x"), "payload") == EISDIR);
    CHECK(c.list(true).at(0).damage == "cut off");
    fs::remove(file);
    CHECK(c.store(key_of("x"), "payload") == 0);
    CHECK(c.load(key_of("x")) == "payload");

    disk_cache too_long(path.string() + '/' + std::string(300, 'x'));
    CHECK(too_long.store(key_of("x"), "payload") == ENAMETOOLONG);
    CHECK_FALSE(too_long.load(key_of("x")));
  }

  TEST_CASE_FIXTURE(temporary_folder, "one makes an entry, others wait for it, but not for ever") {
    disk_cache c(path, {.patience = std::chrono::milliseconds(20)});
    {
      auto first = c.claim(key_of("x"));
      CHECK_FALSE(first.waited());
      CHECK_FALSE(c.claim(key_of("y")).waited());
      CHECK(c.claim(key_of("x")).waited()); // gave up
    }
    CHECK(files_in(path).empty());

    disk_cache patient(path, {.patience = std::chrono::seconds(60)});
    int made = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&] {
        disk_cache own(path, {.patience = std::chrono::seconds(60)});
        auto claim = own.claim(key_of("z"));
        if (own.load(key_of("z")))
          return;
        ++made; // the claim excludes the others
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        own.store(key_of("z"), "payload");
      });
    for (auto &t : threads)
      t.join();
    CHECK(made == 1);
  }

  TEST_CASE_FIXTURE(temporary_folder, "threads that load, store and evict see whole entries") {
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        disk_cache c(path, {.max_bytes = 40'000});
        for (int i = 0; i < 200; ++i) {
          const int n = (i * 7 + t) % 10;
          const std::string expected(std::size_t(1000 * (n + 1)), char('a' + n));
          if (auto found = c.load(key_of(std::to_string(n))); found && *found != expected)
            ++wrong;
          if (c.store(key_of(std::to_string(n)), expected))
            ++wrong;
        }
        wrong += int(c.damaged());
      });
    for (auto &t : threads)
      t.join();
    CHECK(wrong == 0);
  }

  TEST_CASE("sizes") {
    CHECK(parse_bytes("0") == 0);
    CHECK(parse_bytes("1048576") == 1048576);
    CHECK(parse_bytes("500M") == 500u << 20);
    CHECK(parse_bytes("2GiB") == std::uint64_t(2) << 30);
    for (auto text : {"", "M", "-1", "1.5G", "2 G", "99999999999999999999", "16777216T", "1Q"})
      CHECK_FALSE(parse_bytes(text));
  }
}
