#pragma once
// What the emulated targets know of each byte of shared memory: who wrote and read it since which barrier, and which
// tensor element it holds. Two threads (warp, lane) that touch a byte between the same two barriers, one of them
// writing, are a race on the GPU, though lanes and warps take turns here.
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

  /// One thread's access to [offset, offset + size). `tag`: index of the tensor element, or no_tag. Return false and
  /// fill the reason, the other thread and the values of `f` where the access is wrong. `same`: the bytes do not
  /// change.
  bool read(std::uint32_t thread, std::uint32_t offset, std::uint32_t size, std::uint32_t tag,
            const tessera_cpu_site *site, failure &f);
  bool write(std::uint32_t thread, std::uint32_t offset, std::uint32_t size, std::uint32_t tag, bool same,
             const tessera_cpu_site *site, failure &f);

  [[nodiscard]] std::uint32_t size() const { return bytes_; }
  static constexpr std::uint32_t no_tag = ~0u;

private:
  struct cell {
    const tessera_cpu_site *write_site, *read_site;
    std::uint32_t write_epoch, read_epoch; ///< 0: never
    std::uint32_t writer, reader;          ///< threads; `many` where several read
    std::uint32_t tag;
  };
  static constexpr std::uint32_t many = ~0u;
  std::vector<cell> cells_;
  std::uint32_t bytes_ = 0;
  std::uint32_t epoch_ = 0, first_epoch_ = 1; ///< cells older than first_epoch_ belong to earlier programs
};

} // namespace tessera::cpu
