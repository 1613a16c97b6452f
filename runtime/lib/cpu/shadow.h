#pragma once
// What the emulated targets know of each byte of shared memory: who wrote and read it since which barrier, which tensor
// element it holds, and whether an asynchronous copy is on its way to it. Two threads (warp, lane) that touch a byte
// between the same two barriers, one of them writing, are a race on the GPU, though lanes and warps take turns here.
#include <array>
#include <cstdint>
#include <vector>

#include <tessera/codegen/cpu_abi.h>

namespace tessera::cpu {

/// Why a program was stopped. Plain data: filled where no exception may be thrown and no memory taken.
struct failure {
  enum class reason : std::uint8_t {
    none,
    read_after_write,
    write_after_read,
    write_after_write,
    uninitialised,
    wrong_element,
    out_of_bounds,
    misaligned_shared,
    misaligned_global,
    read_in_flight,    ///< of what an asynchronous copy has not delivered
    write_in_flight,   ///< to where an asynchronous copy goes
    changed_in_flight, ///< what a wgmma reads was written between its start and its wait
    source_changed,    ///< what an asynchronous copy reads was written between its start and its wait
    missing_proxy_fence,
    missing_register_fence,
    register_in_flight, ///< a register is written that a wgmma reads until it is waited for
    sum_in_flight,      ///< a register is read that a wgmma writes until it is waited for
    unequal_halves, ///< lanes 16 to 31 of an operand of WMMA do not repeat lanes 0 to 15 (RDNA3)
    never_waited,
    assertion,
    barrier_divergence,
    memory_fault,
    stack_overflow,
  };
  reason why = reason::none;
  std::uint32_t program[3] = {};
  std::uint32_t warp = 0, lane = 0;             ///< the thread that was caught
  std::uint32_t other_warp = 0, other_lane = 0; ///< the thread it collided with
  const tessera_cpu_site *site = nullptr, *other_site = nullptr;
  std::uint64_t address = 0;             ///< byte offset or pointer
  std::uint32_t expected = 0, found = 0; ///< element indices, sizes, alignments or warps
  const char *message = nullptr;         ///< of an assertion
  std::uint64_t instruction = 0;         ///< that faulted
};

class shadow {
public:
  /// Starts a program with `bytes` of shared memory, all of it uninitialised.
  void begin_program(std::uint32_t bytes);
  /// All warps have met at a barrier.
  void next_epoch() { ++epoch_; }

  // Each takes one thread's access to [offset, offset + size); where it is wrong, it returns false and fills the
  // reason, the other thread and the values of `f`.

  /// `tag`: index of the tensor element, or no_tag.
  bool read(std::uint32_t thread, std::uint32_t offset, std::uint32_t size, std::uint32_t tag,
            const tessera_cpu_site *site, failure &f);
  /// `same`: the bytes do not change.
  bool write(std::uint32_t thread, std::uint32_t offset, std::uint32_t size, std::uint32_t tag, bool same,
             const tessera_cpu_site *site, failure &f);

  /// An asynchronous copy by `thread` starts, and arrives. In between nobody may touch its target.
  bool start_copy(std::uint32_t thread, std::uint32_t offset, std::uint32_t size, const tessera_cpu_site *site,
                  failure &f);
  void finish_copy(std::uint32_t thread, std::uint32_t offset, std::uint32_t size, std::uint32_t tag,
                   const tessera_cpu_site *site);

  /// The time of an asynchronous read of `warp` that starts now; later writes have a later time.
  std::uint32_t start_time() { return now_++; }
  /// The checks when an asynchronous read of `warp` starts, and when it takes place at the latest: `started` is its
  /// time.
  bool start_read(std::uint32_t warp, std::uint32_t offset, std::uint32_t size, const tessera_cpu_site *site,
                  failure &f);
  bool finish_read(std::uint32_t warp, std::uint32_t offset, std::uint32_t size, std::uint32_t started,
                   const tessera_cpu_site *site, failure &f);
  /// Writes of `warp` until now, and writes of others before the last barrier, may be read asynchronously.
  void fence(std::uint32_t warp) { fences_[warp] = {now_++, epoch_}; }

  [[nodiscard]] std::uint32_t size() const { return bytes_; }
  static constexpr std::uint32_t no_tag = ~0u;
  /// A thread as one number. Lane 63, which no NVIDIA warp has, stands for what a warp does asynchronously.
  static constexpr std::uint32_t thread(std::uint32_t warp, std::uint32_t lane) { return warp * 64 + lane; }
  static constexpr std::uint32_t async_lane = 63;

private:
  struct cell {
    const tessera_cpu_site *write_site, *read_site;
    std::uint32_t write_epoch, read_epoch; ///< 0: never
    std::uint32_t writer, reader;          ///< threads; `many` where several read
    std::uint32_t tag;
    std::uint32_t write_time;
    bool in_flight; ///< an asynchronous copy by `writer` goes here
    bool copied;    ///< written by an asynchronous copy
  };
  struct fence_point {
    std::uint32_t time, epoch; ///< epoch 0: none yet
  };
  bool blame_writer(failure::reason why, const cell &c, std::uint32_t offset, failure &f);
  bool blame_reader(const cell &c, std::uint32_t offset, failure &f);
  /// Nobody else has touched the byte since the barrier: it may be written.
  bool unused_by_others(const cell &c, std::uint32_t thread, std::uint32_t offset, failure &f);
  /// Something was written there, and has arrived.
  bool has_value(const cell &c, std::uint32_t offset, failure &f);
  bool flying(const cell &c) const { return c.in_flight && c.write_epoch >= first_epoch_; }
  void note_write(cell &c, std::uint32_t thread, const tessera_cpu_site *site);
  void note_read(cell &c, std::uint32_t thread, const tessera_cpu_site *site);

  static constexpr std::uint32_t many = ~0u;
  std::vector<cell> cells_;
  std::array<fence_point, 64> fences_{}; ///< of each warp the last
  std::uint32_t bytes_ = 0;
  std::uint32_t epoch_ = 0, first_epoch_ = 1; ///< cells older than first_epoch_ belong to earlier programs
  std::uint32_t now_ = 0;                     ///< counts fences and asynchronous reads
};

} // namespace tessera::cpu
