// A folder of checked entries: FOLDER/ab/ab….KIND, each file written under another name and renamed into place.
#include <tessera/runtime/cache.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <random>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {
namespace {

using detail::file_info;
using detail::file_layer;

constexpr char magic[8] = {'t', 'e', 's', 's', 'e', 'r', 'a', '\n'};
constexpr std::uint32_t format_version = 1;
constexpr std::uint64_t largest_entry = std::uint64_t(1) << 30;
constexpr std::int64_t nanoseconds = 1'000'000'000;

/// Begins every file; the key's text and the payload follow. Numbers are in the machine's order: an entry from a
/// machine of the other order has another format version.
struct head {
  char magic[8];
  std::uint32_t format;
  std::uint32_t key_bytes;
  std::uint64_t payload_bytes;
  std::int64_t made;         ///< nanoseconds since 1970
  std::uint64_t checksum[2]; ///< of everything else, this field taken as zero
};
static_assert(sizeof(head) == 48);

void sum(head h, std::string_view key, std::string_view payload, std::uint64_t (&out)[2]) {
  h.checksum[0] = h.checksum[1] = 0;
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, &h, sizeof h);
  XXH3_128bits_update(&state, key.data(), key.size());
  XXH3_128bits_update(&state, payload.data(), payload.size());
  const XXH128_hash_t digest = XXH3_128bits_digest(&state);
  out[0] = digest.low64, out[1] = digest.high64;
}

std::int64_t now() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return std::int64_t(t.tv_sec) * nanoseconds + t.tv_nsec;
}

/// A descriptor that is closed with its scope.
struct open_file {
  file_layer &files;
  int number;
  ~open_file() { close(); }
  int close() { return number < 0 ? 0 : files.close(std::exchange(number, -1)); }
};

/// Reads `bytes`; 0, -errno, or 1 where the file ends before.
int read_all(file_layer &files, int file, char *to, std::size_t bytes) {
  while (bytes) {
    const long n = files.read(file, to, bytes);
    if (n <= 0)
      return n < 0 ? int(n) : 1;
    to += n, bytes -= std::size_t(n);
  }
  return 0;
}
int write_all(file_layer &files, int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const long n = files.write(file, bytes.data(), bytes.size());
    if (n <= 0)
      return n < 0 ? int(n) : -ENOSPC;
    bytes.remove_prefix(std::size_t(n));
  }
  return 0;
}

constexpr std::string_view hex_digits = "0123456789abcdef";
bool is_hex(std::string_view s) { return s.find_first_not_of(hex_digits) == s.npos; }
constexpr std::size_t hash_digits = 32;
/// Files of other kinds are never ours, whatever their names: other programs shard folders by hashes, too.
bool is_kind(std::string_view s) { return s == "kernel" || s == "tuning"; }

/// What a file's name says it is.
enum class file_role { foreign, entry, leftover, lock };
file_role role_of(std::string_view shard, std::string_view name, std::string_view &kind) {
  const bool unfinished = name.starts_with('.') && name.ends_with(".part");
  if (unfinished)
    name.remove_prefix(1);
  if (name.size() < hash_digits + 2 || !is_hex(name.substr(0, hash_digits)) || !name.starts_with(shard) ||
      name[hash_digits] != '.')
    return file_role::foreign;
  if (unfinished)
    return file_role::leftover;
  kind = name.substr(hash_digits + 1);
  if (kind.ends_with(".lock"))
    return is_kind(kind.substr(0, kind.size() - 5)) ? file_role::lock : file_role::foreign;
  return is_kind(kind) ? file_role::entry : file_role::foreign;
}

/// Tells the writers of one folder apart.
std::string unique_suffix() {
  static const std::uint64_t process = [] {
    std::random_device random;
    return std::uint64_t(random()) << 32 ^ random() ^ std::uint64_t(now()) * 0x9e3779b97f4a7c15u ^
           std::uint64_t(getpid());
  }();
  static std::atomic<unsigned> count = 0;
  return fmt::format("{:x}.{:016x}.{:x}", getpid(), process, count++);
}

} // namespace

cache_key::cache_key(std::string kind, std::string text) : kind_(std::move(kind)), text_(std::move(text)) {
  const XXH128_hash_t h = XXH3_128bits_withSeed(text_.data(), text_.size(), XXH3_64bits(kind_.data(), kind_.size()));
  hash_ = fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

std::string_view cache_entry::field(std::string_view name) const {
  std::string_view text = key_text;
  while (!text.empty() && text.front() != '\n') {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(name) && line.substr(name.size()).starts_with(": "))
      return line.substr(name.size() + 2);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return {};
}

struct disk_cache::impl {
  std::string folder;
  options o;
  file_layer &files;
  std::atomic<std::uint64_t> damaged = 0, evicted = 0, written_since_scan = 0;
  std::atomic<bool> scanned = false;

  std::string shard(const cache_key &k) const { return folder + '/' + k.hash().substr(0, 2); }
  std::string path(const cache_key &k) const { return shard(k) + '/' + k.hash() + '.' + k.kind(); }

  /// Makes `path` and the folders above it.
  int make_folders(const std::string &path) const {
    int r = files.make_folder(path);
    if (r == -ENOENT) {
      const auto slash = path.find_last_of('/');
      if (slash == path.npos || slash == 0)
        return r;
      if (r = make_folders(path.substr(0, slash)); r == 0)
        r = files.make_folder(path);
    }
    return r == -EEXIST ? 0 : r;
  }

  struct content {
    head h;
    std::string key, payload;
  };
  /// Reads a file. Gives 0 and all of it (`whole`) or its head and key; -errno; or 1 and what is `wrong` with it.
  int read(const std::string &path, bool whole, bool touch, content &out, std::string &wrong) const {
    open_file f{files, files.open(path, O_RDONLY | O_NONBLOCK)}; // a pipe of that name is not waited for
    if (f.number < 0)
      return f.number;
    file_info info;
    if (int r = files.info(f.number, info))
      return r;
    auto damaged = [&](const char *why) { return wrong = why, 1; };
    if (info.folder || info.bytes < sizeof(head))
      return damaged("cut off");
    if (int r = read_all(files, f.number, reinterpret_cast<char *>(&out.h), sizeof(head)))
      return r < 0 ? r : damaged("cut off");
    if (std::memcmp(out.h.magic, magic, sizeof magic) != 0)
      return damaged("not an entry of this cache");
    if (out.h.format != format_version)
      return damaged("written by another version of the cache");
    const std::uint64_t expected = sizeof(head) + std::uint64_t(out.h.key_bytes) + out.h.payload_bytes;
    if (out.h.payload_bytes > largest_entry || expected != info.bytes)
      return damaged(info.bytes < expected ? "cut off" : "longer than it says");
    auto fill = [&](std::string &text, std::size_t bytes) {
      text.resize(bytes);
      return read_all(files, f.number, text.data(), bytes);
    };
    int r = fill(out.key, out.h.key_bytes);
    if (r == 0 && whole)
      r = fill(out.payload, std::size_t(out.h.payload_bytes));
    if (r)
      return r < 0 ? r : damaged("cut off");
    if (whole) {
      std::uint64_t found[2];
      sum(out.h, out.key, out.payload, found);
      if (std::memcmp(found, out.h.checksum, sizeof found) != 0)
        return damaged("the checksum does not agree");
    }
    // The time of the file is that of its last use, and decides what is evicted; to the minute is enough.
    if (touch && now() - info.written > 60 * nanoseconds)
      (void)files.touch(f.number);
    return 0;
  }

  /// Calls `visit(shard, name)` for every file one level down.
  template <class F> void each_file(const F &visit) const {
    std::vector<std::string> shards;
    if (files.list(folder, shards))
      return;
    for (auto &s : shards)
      if (s.size() == 2 && is_hex(s))
        each_file_of(s, visit);
  }
  template <class F> void each_file_of(const std::string &s, const F &visit) const {
    std::vector<std::string> names;
    if (files.list(folder + '/' + s, names) == 0)
      for (auto &name : names)
        visit(s, name);
  }

  /// After a write of `bytes`: are there too many? One shard of the 256 tells about how much there is in all.
  void limit(const std::string &written_shard, std::uint64_t bytes) {
    const std::uint64_t since = written_since_scan += bytes;
    if (scanned && since <= o.max_bytes / 64)
      return;
    std::uint64_t in_shard = 0;
    each_file_of(written_shard, [&](auto &s, auto &name) {
      if (auto e = visit(s, name))
        in_shard += e->bytes;
    });
    if (in_shard < o.max_bytes / 512)
      return;
    scanned = true;
    written_since_scan = 0;
    evict(o.max_bytes, o.max_bytes - o.max_bytes / 8);
  }

  /// Where there is more than `most`, removes the least recently used until no more than `target` is left.
  int evict(std::uint64_t most, std::uint64_t target) {
    std::vector<file> entries;
    std::uint64_t total = 0;
    each_file([&](auto &s, auto &name) {
      if (auto e = visit(s, name))
        total += e->bytes, entries.push_back(std::move(*e));
    });
    if (total <= most)
      return 0;
    std::ranges::sort(entries, {}, &file::used);
    int removed = 0;
    for (auto &e : entries) {
      if (total <= target)
        break;
      if (files.remove(e.path) == 0)
        ++removed;
      total -= e.bytes;
    }
    evicted += std::uint64_t(removed);
    return removed;
  }

  struct file {
    std::int64_t used;
    std::uint64_t bytes;
    std::string path;
  };
  /// The entry of that name, if it is one. What a killed writer left is removed when it is old.
  std::optional<file> visit(const std::string &shard, const std::string &name) const {
    std::string_view kind;
    const file_role role = role_of(shard, name, kind);
    file_info info;
    std::string path = folder + '/' + shard + '/' + name;
    if (role == file_role::foreign || files.info(path, info) || info.folder)
      return std::nullopt;
    if (role == file_role::entry)
      return file{info.written, info.bytes, std::move(path)};
    if (now() - info.written > 3600 * nanoseconds) {
      // A lock that somebody holds is not old, however long ago it was made.
      open_file f{files, role == file_role::lock ? files.open(path, O_RDWR) : -1};
      if (role == file_role::leftover || (f.number >= 0 && files.try_lock(f.number) == 0))
        (void)files.remove(path);
    }
    return std::nullopt;
  }
};

disk_cache::disk_cache(std::string folder, const options &o, detail::file_layer &files)
    : impl_(new impl{std::move(folder), o, files}) {}
disk_cache::~disk_cache() = default;

const std::string &disk_cache::folder() const noexcept { return impl_->folder; }
std::uint64_t disk_cache::damaged() const noexcept { return impl_->damaged; }
std::uint64_t disk_cache::evicted() const noexcept { return impl_->evicted; }

std::optional<std::string> disk_cache::load(const cache_key &key) {
  impl::content c;
  std::string wrong;
  const std::string path = impl_->path(key);
  int r = impl_->read(path, true, impl_->o.writable, c, wrong);
  if (r == 0 && c.key == key.text())
    return std::move(c.payload);
  if (r >= 0) { // damaged, or somebody's copy under a wrong name: out of the way, so that it is made again
    ++impl_->damaged;
    if (impl_->o.writable)
      (void)impl_->files.remove(path);
  }
  return std::nullopt;
}

int disk_cache::store(const cache_key &key, std::string_view payload) {
  impl &c = *impl_;
  if (!c.o.writable)
    return EROFS;
  if (!is_kind(key.kind()))
    return EINVAL;
  const std::uint64_t bytes = sizeof(head) + key.text().size() + payload.size();
  if (key.text().size() > UINT32_MAX || payload.size() > largest_entry || bytes > c.o.max_bytes)
    return EFBIG;
  head h{};
  std::memcpy(h.magic, magic, sizeof magic);
  h.format = format_version;
  h.key_bytes = std::uint32_t(key.text().size());
  h.payload_bytes = payload.size();
  h.made = now();
  sum(h, key.text(), payload, h.checksum);

  const std::string shard = c.shard(key), temporary = shard + "/." + key.hash() + '.' + unique_suffix() + ".part";
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL;
  open_file f{c.files, c.files.open(temporary, flags)};
  if (f.number == -ENOENT) {
    if (int r = c.make_folders(shard))
      return -r;
    f.number = c.files.open(temporary, flags);
  }
  if (f.number < 0)
    return -f.number;
  int r = write_all(c.files, f.number, {reinterpret_cast<const char *>(&h), sizeof h});
  if (r == 0)
    r = write_all(c.files, f.number, key.text());
  if (r == 0)
    r = write_all(c.files, f.number, payload);
  if (const int closed = f.close(); r == 0) // some file systems say only now that the disk is full
    r = closed;
  if (r == 0)
    r = c.files.rename(temporary, c.path(key));
  if (r) {
    (void)c.files.remove(temporary);
    return -r;
  }
  c.limit(key.hash().substr(0, 2), bytes);
  return 0;
}

void disk_cache::remove(const cache_key &key) {
  if (impl_->o.writable)
    (void)impl_->files.remove(impl_->path(key));
}
int disk_cache::remove(const cache_entry &e) { return impl_->o.writable ? -impl_->files.remove(e.file) : EROFS; }

std::vector<cache_entry> disk_cache::list(bool check) {
  std::vector<cache_entry> entries;
  impl_->each_file([&](auto &shard, auto &name) {
    std::string_view kind;
    if (role_of(shard, name, kind) != file_role::entry)
      return;
    cache_entry e;
    e.kind = kind, e.hash = name.substr(0, hash_digits);
    e.file = impl_->folder + '/' + shard + '/' + name;
    file_info info;
    if (impl_->files.info(e.file, info))
      return; // removed meanwhile
    e.bytes = info.bytes, e.used = e.made = info.written;
    impl::content c;
    const int r = impl_->read(e.file, check, false, c, e.damage);
    if (r == -ENOENT)
      return;
    if (r < 0)
      e.damage = std::strerror(-r);
    if (r == 0) {
      e.key_text = std::move(c.key), e.made = c.h.made;
      if (check && cache_key(e.kind, e.key_text).hash() != e.hash)
        e.damage = "stored under the name of another key";
    }
    entries.push_back(std::move(e));
  });
  std::ranges::sort(entries, std::greater<>(), &cache_entry::used);
  return entries;
}

std::optional<std::string> disk_cache::read(const cache_entry &e) {
  impl::content c;
  std::string wrong;
  if (impl_->read(e.file, true, false, c, wrong))
    return std::nullopt;
  return std::move(c.payload);
}

int disk_cache::shrink(std::uint64_t bytes) { return impl_->o.writable ? impl_->evict(bytes, bytes) : 0; }

// ---- claims ---------------------------------------------------------------------------------------------------------

disk_cache::claim_guard disk_cache::claim(const cache_key &key) {
  claim_guard g;
  if (!impl_->o.writable)
    return g;
  file_layer &files = impl_->files;
  const std::string path = impl_->path(key) + ".lock";
  int file = files.open(path, O_RDWR | O_CREAT);
  if (file == -ENOENT && impl_->make_folders(impl_->shard(key)) == 0)
    file = files.open(path, O_RDWR | O_CREAT);
  if (file < 0)
    return g; // the write will say what is wrong
  using clock = std::chrono::steady_clock;
  const auto give_up = clock::now() + impl_->o.patience;
  std::chrono::microseconds pause(200);
  int r;
  while ((r = files.try_lock(file)) == -EWOULDBLOCK && clock::now() < give_up) {
    g.waited_ = true;
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(2 * pause, std::chrono::milliseconds(10));
  }
  if (r) {
    files.close(file);
    return g;
  }
  g.files_ = &files, g.path_ = path, g.file_ = file;
  return g;
}

void disk_cache::claim_guard::release() noexcept {
  if (file_ < 0)
    return;
  // Removed before it is unlocked: who waits with this file finds the entry made, who comes later makes a new file.
  (void)files_->remove(path_);
  (void)files_->close(std::exchange(file_, -1));
}
disk_cache::claim_guard::claim_guard(claim_guard &&other) noexcept
    : files_(other.files_), path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)),
      waited_(other.waited_) {}
disk_cache::claim_guard &disk_cache::claim_guard::operator=(claim_guard &&other) noexcept {
  release();
  files_ = other.files_, path_ = std::move(other.path_), file_ = std::exchange(other.file_, -1),
  waited_ = other.waited_;
  return *this;
}
disk_cache::claim_guard::~claim_guard() { release(); }

} // namespace tessera
