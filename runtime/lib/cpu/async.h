#pragma once
// What a warp of an emulated NVIDIA target has started and not yet waited for. Nothing happens before the wait, which
// is as late as the hardware may be; what happens too early or too often in between is seen by the shadow memory or as
// a wrong result.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tessera/codegen/cpu_abi.h>

namespace tessera::cpu {

struct warp_state;

/// A queue whose entries are closed to groups by commits and completed group by group.
template <class T> struct group_queue {
  std::vector<T> entries;
  std::vector<std::size_t> ends; ///< of the committed groups, in `entries`

  void commit() { ends.push_back(entries.size()); }
  /// Takes the groups but the `pending` youngest out, after `complete(entry)` of each entry.
  template <class F> void wait(std::size_t pending, F complete) {
    if (ends.size() <= pending)
      return;
    std::size_t groups = ends.size() - pending, end = ends[groups - 1];
    for (std::size_t i = 0; i < end; ++i)
      complete(entries[i]);
    entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(end));
    ends.erase(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(groups));
    for (std::size_t &e : ends)
      e -= end;
  }
  void clear() {
    entries.clear();
    ends.clear();
  }
};

class async_state {
public:
  /// Before each program.
  void begin();
  /// The position of a wgmma that nobody waited for, or null.
  [[nodiscard]] const tessera_cpu_site *forgotten() const;

  // ---- cp.async ----
  void start_copy(warp_state &warp, const tessera_cpu_access &access, std::uint64_t mask, std::uint64_t reads,
                  const std::uint32_t *offsets, const void *pointers, const std::uint32_t *tags);
  void commit_copies() { copies_.commit(); }
  void wait_copies(warp_state &warp, std::uint32_t pending);

  // ---- wgmma ----
  std::uint32_t start_wgmma(warp_state &warp, const tessera_cpu_matrix &matrix, const std::uint32_t *a,
                            std::uint64_t a_matrix, std::uint64_t b_matrix, const std::uint32_t *c,
                            std::uint32_t chained);
  void fence_registers() { registers_fenced_ = true; }
  void write_register(warp_state &warp, std::uint32_t number, const tessera_cpu_site *site) const;
  void read_register(warp_state &warp, const std::uint32_t *lanes, const tessera_cpu_site *site) const;
  void commit_wgmma() { products_.commit(); }
  void wait_wgmma(warp_state &warp, std::uint32_t pending, std::uint32_t count, std::uint32_t *registers);

private:
  /// What one lane copies.
  struct copy {
    const tessera_cpu_access *access;
    const std::byte *from; ///< null: zeros
    std::byte data[16];    ///< as it was at the start
    std::uint32_t to, lane;
    std::uint32_t tags[16]; ///< of each element
  };
  /// The sums a warp's registers hold: 16 rows of n columns.
  struct accumulator {
    std::uint32_t ticket = 0; ///< of the latest wgmma on it; 0: free
    std::uint32_t n = 0, pending = 0;
    std::vector<std::uint32_t> sums;
  };
  struct product {
    const tessera_cpu_matrix *matrix;
    std::uint64_t a_matrix, b_matrix;
    bool in_registers;
    std::uint32_t a[4 * 32];
    std::uint32_t accumulator, started, ticket;
  };
  std::uint32_t find(std::uint32_t ticket) const;
  std::uint32_t take_accumulator(std::uint32_t n);
  void multiply(warp_state &warp, const product &p);

  group_queue<copy> copies_;
  group_queue<product> products_;
  std::vector<accumulator> accumulators_;
  std::vector<std::uint32_t> left_, right_; ///< operands of the wgmma being computed
  std::uint32_t last_ticket_ = 0, issued_ = 0; ///< number of the latest ticket; how many the program has made
  bool registers_fenced_ = false;
};

} // namespace tessera::cpu
