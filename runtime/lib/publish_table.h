#pragma once
// A hash table that many threads read without a lock while one inserts. Entries are never removed.
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tessera::detail {

/// Mixes all bits of `x` into all bits of the result.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x ^= x >> 32, x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32, x *= 0xd6e8feb86659fd93u;
  return x ^ x >> 32;
}

/// Open addressing over pointers. A reader loads the current array once and probes; a writer stores a new entry into a
/// free slot, or, when the array is half full, publishes a larger copy. Arrays that readers may still look at are kept
/// until the table dies: they grow by doubling, so that all of them together are no larger than the last.
template <class Entry> class publish_table {
public:
  publish_table() = default;
  publish_table(const publish_table &) = delete;
  publish_table &operator=(const publish_table &) = delete;

  /// The entry of that hash for which `equal` holds, or nullptr.
  template <class Equal> Entry *find(std::uint64_t hash, const Equal &equal) const noexcept {
    const array *a = current_.load(std::memory_order_acquire);
    if (!a)
      return nullptr;
    for (std::size_t i = hash & a->mask;; i = (i + 1) & a->mask) {
      Entry *e = a->slots[i].load(std::memory_order_acquire);
      if (!e || equal(*e))
        return e;
    }
  }

  /// Adds an entry that is not there yet. Callers exclude one another; `entry` outlives the table.
  void insert(std::uint64_t hash, Entry *entry) {
    if (!current_ || 2 * (entries_.size() + 1) > current_.load()->mask + 1)
      grow();
    entries_.push_back({hash, entry});
    place(*current_.load(), hash, entry);
  }

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

private:
  struct array {
    explicit array(std::size_t size) : mask(size - 1), slots(new std::atomic<Entry *>[size]()) {}
    std::size_t mask;
    std::unique_ptr<std::atomic<Entry *>[]> slots;
  };

  static void place(array &a, std::uint64_t hash, Entry *entry) {
    std::size_t i = hash & a.mask;
    while (a.slots[i].load(std::memory_order_relaxed))
      i = (i + 1) & a.mask;
    a.slots[i].store(entry, std::memory_order_release);
  }

  void grow() {
    auto larger = std::make_unique<array>(arrays_.empty() ? 8 : 2 * (arrays_.back()->mask + 1));
    for (auto &[hash, entry] : entries_)
      place(*larger, hash, entry);
    arrays_.push_back(std::move(larger));
    current_.store(arrays_.back().get(), std::memory_order_release);
  }

  std::atomic<array *> current_ = nullptr;
  std::vector<std::unique_ptr<array>> arrays_;
  std::vector<std::pair<std::uint64_t, Entry *>> entries_;
};

} // namespace tessera::detail
