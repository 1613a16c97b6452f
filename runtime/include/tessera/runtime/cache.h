#pragma once
// What was compiled or tuned once is kept: in memory, and in a folder that processes share.
//
// Environment: TESSERA_CACHE_DIR (the folder; empty: none), TESSERA_CACHE_SIZE (its limit: 500M, 2G), TESSERA_CACHE
// (on, off, readonly, refresh), TESSERA_CACHE_LOG (1: a line on the standard error for every look-up).
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/export.h>
#include <tessera/runtime/detail/files.h>

namespace tessera {

struct compiled_kernel;

/// What an entry of the cache is looked up by: everything that decides its content, written out. The text is kept with
/// the entry and compared whole, so that no two keys are taken for each other; its hash only names the file.
class TESSERA_API cache_key {
public:
  /// `kind` is "kernel" or "tuning"; what is of another cannot be stored. `text` starts with lines "name: value"; what follows an empty line is
  /// opaque.
  cache_key(std::string kind, std::string text);
  [[nodiscard]] const std::string &kind() const noexcept { return kind_; }
  [[nodiscard]] const std::string &text() const noexcept { return text_; }
  /// 32 hexadecimal digits.
  [[nodiscard]] const std::string &hash() const noexcept { return hash_; }

private:
  std::string kind_, text_, hash_;
};

/// An entry as `disk_cache::list` finds it.
struct cache_entry {
  std::string kind, hash, file;
  std::string key_text;            ///< empty where the file is damaged so that it cannot be told
  std::uint64_t bytes = 0;         ///< of the whole file
  std::int64_t used = 0, made = 0; ///< nanoseconds since 1970
  std::string damage;              ///< what is wrong with it; empty: nothing found
  /// The value of "name: value" among the first lines of the key; empty where there is none.
  [[nodiscard]] TESSERA_API std::string_view field(std::string_view name) const;
};

/// A folder of entries, shared by any number of processes and threads.
///
/// A file holds one whole entry: key, payload, a checksum over both. It is written under another name and renamed, so
/// that nobody sees part of one; readers check all of it, and what is wrong is removed and counts as missing. Nothing
/// here throws (but std::bad_alloc): a cache that does not work is one that never hits.
class TESSERA_API disk_cache {
public:
  struct options {
    std::uint64_t max_bytes = std::uint64_t(2) << 30; ///< beyond it the least recently used entries are removed
    bool writable = true;                             ///< false: never changes the folder
    std::chrono::milliseconds patience{20000};        ///< how long `claim` waits for another process
  };
  /// The folder is made at the first write. `files` outlives the cache.
  explicit disk_cache(std::string folder, const options &o, detail::file_layer &files = detail::system_files());
  explicit disk_cache(std::string folder) : disk_cache(std::move(folder), options()) {}
  disk_cache(const disk_cache &) = delete;
  disk_cache &operator=(const disk_cache &) = delete;
  ~disk_cache();

  [[nodiscard]] const std::string &folder() const noexcept;
  /// The payload stored under `key`, checked; nothing where there is none or it is damaged.
  [[nodiscard]] std::optional<std::string> load(const cache_key &key);
  /// Puts an entry in place of an older one. Gives 0 or the errno of what failed, and then leaves nothing behind.
  int store(const cache_key &key, std::string_view payload);
  /// Takes an entry out, as when its payload proves to be unusable.
  void remove(const cache_key &key);

  /// The right to make an entry: held by one process and thread at a time, given back at the end of its life.
  class claim_guard {
  public:
    claim_guard() = default;
    claim_guard(claim_guard &&) noexcept;
    claim_guard &operator=(claim_guard &&) noexcept;
    ~claim_guard();
    /// Somebody else had it meanwhile: look again, the entry may be there.
    [[nodiscard]] bool waited() const noexcept { return waited_; }

  private:
    friend disk_cache;
    void release() noexcept;
    detail::file_layer *files_ = nullptr;
    std::string path_;
    int file_ = -1;
    bool waited_ = false;
  };
  /// Waits until nobody else makes this entry, but no longer than `patience`: then several may make it, which costs
  /// time alone. A process that dies gives its claim back.
  [[nodiscard]] claim_guard claim(const cache_key &key);

  /// All entries, most recently used first; `check`: read and verified whole, not only their heads.
  [[nodiscard]] std::vector<cache_entry> list(bool check = false);
  /// Key and payload of an entry of `list`; nothing where it is damaged or gone.
  [[nodiscard]] std::optional<std::string> read(const cache_entry &entry);
  /// Removes entries, least recently used first, until no more than `bytes` are left, and what killed writers left
  /// behind. Gives the number of entries removed.
  int shrink(std::uint64_t bytes);
  /// Removes one entry of `list`. Gives 0 or an errno.
  int remove(const cache_entry &entry);

  /// How often `load` found an entry that was damaged, and how many entries were removed to keep the limit.
  [[nodiscard]] std::uint64_t damaged() const noexcept;
  [[nodiscard]] std::uint64_t evicted() const noexcept;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// How this process uses the cache.
struct cache_settings {
  enum class mode {
    on,
    off,      ///< nothing is looked up or kept, in memory either
    readonly, ///< the folder is read, never written
    refresh   ///< everything is made again once and stored over what there was
  };
  mode use = mode::on;
  std::string folder = {}; ///< empty: in memory only
  std::uint64_t max_bytes = std::uint64_t(2) << 30;
  bool log = false; ///< a line on the standard error for every look-up
};

/// What the environment says: TESSERA_CACHE_DIR, else $XDG_CACHE_HOME/tessera, else ~/.cache/tessera. Throws
/// tessera::error (launch) for a variable that cannot be understood.
TESSERA_API cache_settings cache_settings_from_environment();
/// Those in use; at the start what the environment says.
TESSERA_API cache_settings current_cache_settings();
/// Changes them for what is compiled from now on, and forgets what is kept in memory and the counts.
TESSERA_API void set_cache(const cache_settings &settings);

/// What was asked of the cache since the start or the last set_cache.
struct cache_counts {
  std::uint64_t memory_hits = 0; ///< the same kernel in another kernel object
  std::uint64_t disk_hits = 0;
  std::uint64_t compiled = 0; ///< kernels that were in neither
  std::uint64_t stored = 0;
  std::uint64_t damaged = 0; ///< entries found broken, removed and made again
  std::uint64_t evicted = 0; ///< entries removed to keep the limit
};
TESSERA_API cache_counts cache_statistics();

/// The compiled kernel in an entry of kind "kernel", with every stage; null where it is another, damaged or gone.
TESSERA_API std::shared_ptr<const compiled_kernel> read_kernel(disk_cache &cache, const cache_entry &entry);

/// "500M", "2G", "1048576" as bytes; nothing for another text.
TESSERA_API std::optional<std::uint64_t> parse_bytes(std::string_view text);

} // namespace tessera
