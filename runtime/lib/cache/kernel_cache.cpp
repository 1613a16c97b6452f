// The cache of this process: settings, the kernels in memory, the folder behind them.
#include "kernel_cache.h"

#include "serialize.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <list>
#include <mutex>
#include <unordered_map>

#include <fmt/format.h>

#include <tessera/error.h>
#include <tessera/runtime/detail/config.h>

namespace tessera {
namespace {

/// The kernels used last. Copies of a kernel object share their code anyway: this serves kernels that are made again
/// and again, where the folder cannot.
class memory_cache {
public:
  std::shared_ptr<const compiled_kernel> find(const cache_key &key) {
    auto i = index_.find(key.hash());
    if (i == index_.end() || i->second->key != key.text())
      return nullptr;
    order_.splice(order_.begin(), order_, i->second);
    return i->second->kernel;
  }
  void insert(const cache_key &key, std::shared_ptr<const compiled_kernel> k) {
    erase(key);
    std::size_t bytes = key.text().size();
    for (auto &[name, text] : k->stages)
      bytes += text.size();
    order_.push_front({key.hash(), key.text(), std::move(k), bytes});
    index_[key.hash()] = order_.begin();
    bytes_ += bytes;
    while (bytes_ > most_bytes && order_.size() > 1) {
      bytes_ -= order_.back().bytes;
      index_.erase(order_.back().hash);
      order_.pop_back();
    }
  }
  void erase(const cache_key &key) {
    if (auto i = index_.find(key.hash()); i != index_.end()) {
      bytes_ -= i->second->bytes;
      order_.erase(i->second);
      index_.erase(i);
    }
  }

private:
  static constexpr std::size_t most_bytes = 64 << 20;
  struct entry {
    std::string hash, key;
    std::shared_ptr<const compiled_kernel> kernel;
    std::size_t bytes;
  };
  std::list<entry> order_; // most recently used first
  std::unordered_map<std::string, std::list<entry>::iterator> index_;
  std::size_t bytes_ = 0;
};

struct process_cache {
  std::mutex lock; // guards what follows; never held while files are read
  cache_settings settings;
  std::shared_ptr<disk_cache> disk;
  memory_cache memory;
  std::atomic<std::uint64_t> memory_hits, disk_hits, compiled, stored;
  std::atomic<bool> warned;

  process_cache() { use(cache_settings_from_environment()); }

  void use(const cache_settings &s) {
    using mode = cache_settings::mode;
    std::lock_guard guard(lock);
    settings = s;
    disk = s.use == mode::off || s.folder.empty()
               ? nullptr
               : std::make_shared<disk_cache>(s.folder, disk_cache::options{s.max_bytes, s.use != mode::readonly});
    memory = {};
    memory_hits = disk_hits = compiled = stored = 0;
    warned = false;
  }
  struct view {
    cache_settings::mode use;
    bool log;
    std::shared_ptr<disk_cache> disk;
  };
  view now() {
    std::lock_guard guard(lock);
    return {settings.use, settings.log, disk};
  }
  void log(const view &v, const char *what, const cache_key &key) const {
    if (!v.log)
      return;
    cache_entry e;
    e.key_text = key.text();
    fmt::print(stderr, "tessera cache: {} {} for {} ({})\n", what, e.field(key.kind()), e.field("target"),
               key.hash().substr(0, 12));
  }
};

/// Never destroyed: kernels at namespace scope compile and die when they like. Throws where the environment is wrong,
/// at every use until it is put right.
process_cache &process() {
  static process_cache *c = new process_cache;
  return *c;
}

std::string variable(const char *name) {
  const char *text = std::getenv(name);
  return text ? text : "";
}

} // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  std::uint64_t n = 0;
  std::size_t i = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
    if (n > (UINT64_MAX >> 44))
      return std::nullopt;
    else
      n = n * 10 + std::uint64_t(text[i] - '0');
  const std::string_view unit = text.substr(i);
  const int shift = unit.empty()                                   ? 0
                    : unit == "K" || unit == "KB" || unit == "KiB" ? 10
                    : unit == "M" || unit == "MB" || unit == "MiB" ? 20
                    : unit == "G" || unit == "GB" || unit == "GiB" ? 30
                    : unit == "T" || unit == "TB" || unit == "TiB" ? 40
                                                                   : -1;
  if (i == 0 || shift < 0 || n > (UINT64_MAX >> shift))
    return std::nullopt;
  return n << shift;
}

cache_settings cache_settings_from_environment() {
  cache_settings s;
  using mode = cache_settings::mode;
  if (const std::string use = variable("TESSERA_CACHE"); use == "off")
    s.use = mode::off;
  else if (use == "readonly")
    s.use = mode::readonly;
  else if (use == "refresh")
    s.use = mode::refresh;
  else if (!use.empty() && use != "on")
    throw error(stage::launch, fmt::format("TESSERA_CACHE is '{}'; use on, off, readonly or refresh", use));
  if (const char *folder = std::getenv("TESSERA_CACHE_DIR"))
    s.folder = folder;
  else if (const std::string xdg = variable("XDG_CACHE_HOME"); xdg.starts_with('/'))
    s.folder = xdg + "/tessera";
  else if (const std::string home = variable("HOME"); home.starts_with('/'))
    s.folder = home + "/.cache/tessera";
  std::error_code none; // the folder stays the same wherever the process goes later
  if (!s.folder.empty() && !s.folder.starts_with('/'))
    if (const auto here = std::filesystem::current_path(none); !none)
      s.folder = here / s.folder;
  while (s.folder.size() > 1 && s.folder.ends_with('/'))
    s.folder.pop_back();
  if (const std::string size = variable("TESSERA_CACHE_SIZE"); !size.empty()) {
    const auto bytes = parse_bytes(size);
    if (!bytes)
      throw error(stage::launch, fmt::format("TESSERA_CACHE_SIZE is '{}'; write it as 500M or 2G", size));
    s.max_bytes = *bytes;
  }
  const std::string log = variable("TESSERA_CACHE_LOG");
  s.log = !log.empty() && log != "0";
  return s;
}

cache_settings current_cache_settings() {
  process_cache &c = process();
  std::lock_guard guard(c.lock);
  return c.settings;
}
void set_cache(const cache_settings &s) { process().use(s); }

std::shared_ptr<const compiled_kernel> read_kernel(disk_cache &cache, const cache_entry &entry) {
  if (entry.kind != "kernel")
    return nullptr;
  const auto bytes = cache.read(entry);
  auto kernel = bytes ? detail::deserialize(*bytes) : std::nullopt;
  return kernel ? std::make_shared<const compiled_kernel>(std::move(*kernel)) : nullptr;
}

cache_counts cache_statistics() {
  process_cache &c = process();
  auto disk = c.now().disk;
  return {c.memory_hits, c.disk_hits, c.compiled, c.stored, disk ? disk->damaged() : 0, disk ? disk->evicted() : 0};
}

namespace detail {
namespace {

/// Bitcode libraries that the kernel names are part of its code: their content, not their names.
std::string named_libraries(const std::string &ttir) {
  constexpr std::string_view mark = "libpath = \"";
  std::string lines;
  for (std::size_t at = 0; (at = ttir.find(mark, at)) != ttir.npos;) {
    at += mark.size();
    const std::string path = ttir.substr(at, ttir.find('"', at) - at);
    if (path.empty())
      continue;
    std::string content;
    if (std::FILE *file = std::fopen(path.c_str(), "rb")) {
      char block[65536];
      while (std::size_t n = std::fread(block, 1, sizeof block, file))
        content.append(block, n);
      std::fclose(file);
    }
    lines += fmt::format("library: {} {}\n", path, cache_key("library", std::move(content)).hash());
  }
  return lines;
}

static_assert(field_count<compile_options>() == 9, "a new option: name it in the key");

} // namespace

cache_key kernel_key(std::string_view name, const target &t, const compile_options &o, std::string_view assembler,
                     const ir_module &traced) {
  // Lines of the source are in the machine code only where they were asked for.
  const std::string ttir = traced.str(o.line_info || o.debug);
  return cache_key(
      "kernel",
      fmt::format("kernel: {}\ntarget: {}\n"
                  "options: num_warps={} num_stages={} num_ctas={} maxnreg={} precise_math={} enable_fp_fusion={} "
                  "line_info={} debug={} count_traffic={}\n"
                  "toolchain: {}\ndriver: {}\n{}\n{}",
                  name, t.str(), o.num_warps, o.num_stages, o.num_ctas, o.maxnreg, o.precise_math, o.enable_fp_fusion,
                  o.line_info, o.debug, o.count_traffic, toolchain(t), assembler, named_libraries(ttir), ttir));
}

std::shared_ptr<disk_cache> current_disk_cache() { return process().now().disk; }

std::shared_ptr<compiled_kernel> find_kernel(const cache_key &key) {
  process_cache &c = process();
  const auto now = c.now();
  // Passes print when they run: a kernel that is not compiled would print nothing.
  if (now.use == cache_settings::mode::off || std::getenv("TESSERA_PRINT_AFTER"))
    return nullptr;
  {
    std::lock_guard guard(c.lock);
    if (auto k = c.memory.find(key)) {
      ++c.memory_hits;
      auto copy = std::make_shared<compiled_kernel>(*k);
      copy->cached = true;
      c.log(now, "in memory:", key);
      return copy;
    }
  }
  if (!now.disk || now.use == cache_settings::mode::refresh)
    return nullptr;
  auto bytes = now.disk->load(key);
  auto kernel = bytes ? deserialize(*bytes) : std::nullopt;
  if (!kernel) {
    if (bytes)
      now.disk->remove(key);
    return nullptr;
  }
  ++c.disk_hits;
  c.log(now, "on disk:", key);
  auto found = std::make_shared<compiled_kernel>(std::move(*kernel));
  found->cached = true;
  found->times.clear();
  std::lock_guard guard(c.lock);
  c.memory.insert(key, std::make_shared<compiled_kernel>(*found));
  return found;
}

void keep_kernel(const cache_key &key, const compiled_kernel &k) {
  process_cache &c = process();
  const auto now = c.now();
  ++c.compiled;
  c.log(now, "compiled:", key);
  if (now.use == cache_settings::mode::off)
    return;
  {
    std::lock_guard guard(c.lock);
    c.memory.insert(key, std::make_shared<compiled_kernel>(k));
  }
  if (now.disk)
    store_on_disk(*now.disk, key, serialize(k));
}

void store_on_disk(disk_cache &disk, const cache_key &key, std::string_view payload) {
  process_cache &c = process();
  if (c.now().use == cache_settings::mode::readonly)
    return;
  const int failed = disk.store(key, payload);
  if (!failed)
    ++c.stored;
  else if (failed != EFBIG && !c.warned.exchange(true))
    fmt::print(stderr,
               "tessera: the cache {} cannot be written ({}), so other processes compile the same kernels again. Set "
               "TESSERA_CACHE_DIR to a folder that can be, or TESSERA_CACHE=readonly.\n",
               disk.folder(), std::strerror(failed));
}

void discard_kernel(const cache_key &key) {
  process_cache &c = process();
  const auto now = c.now();
  {
    std::lock_guard guard(c.lock);
    c.memory.erase(key);
  }
  if (now.disk)
    now.disk->remove(key);
}

disk_cache::claim_guard claim_kernel(const cache_key &key) {
  const auto now = process().now();
  if (!now.disk || process().warned || now.use == cache_settings::mode::off ||
      now.use == cache_settings::mode::readonly)
    return {};
  return now.disk->claim(key);
}

} // namespace detail
} // namespace tessera
