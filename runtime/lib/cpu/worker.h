#pragma once
// One thread that runs programs: its shared memory, its warps and the way out of generated code when a program fails.
// Generated code always runs on a fiber: its stack is large and ends at a guard page, warps wait for each other by
// switching, and a failed program is left by switching away for good.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "async.h"
#include "shadow.h"

#include <tessera/codegen/cpu_abi.h>

namespace tessera::cpu {

using entry_point = void (*)(const void *const *args, tessera_cpu_context *ctx);

/// What a worker needs to know of a kernel.
struct program_code {
  entry_point entry = nullptr;
  std::uint32_t num_warps = 1;
  std::uint32_t shared_bytes = 0;
  bool emulated = false;
  bool has_barriers = false; ///< its warps wait for each other
};

class worker;

/// A warp's context and its fiber. Without barriers the first warp's fiber runs all warps, one after the other.
struct warp_state : tessera_cpu_context {
  worker *owner = nullptr;
  void *resume = nullptr;     ///< where the fiber goes on
  std::byte *stack = nullptr; ///< lowest usable byte; a guard page lies below
  void *sanitizer_stack = nullptr;
  enum class status : std::uint8_t { ready, waiting, done } state = status::ready;
  async_state async; ///< emulated NVIDIA targets
};

/// Not shared between threads. One per thread is kept, so that stacks and buffers are made once.
class worker {
public:
  worker();
  ~worker();
  worker(const worker &) = delete;
  worker &operator=(const worker &) = delete;

  /// The calling thread's worker.
  static worker &current();

  /// Prepares for programs of one launch.
  void begin(const program_code &code, const void *const *args, const std::uint32_t grid[3]);
  /// Runs one program to its end; false where it failed, and then `error()` says why.
  bool run(const std::uint32_t program[3]);
  [[nodiscard]] const failure &error() const { return failure_; }
  /// Adds the counters of all programs since begin().
  void collect(std::uint64_t &loaded, std::uint64_t &stored, std::uint64_t &flops) const;

  // ---- called from generated code, on a warp's stack ----
  void barrier(warp_state &warp);
  /// Leaves generated code; the failure has been filled in.
  [[noreturn]] void stop();
  /// A fault in the thread's generated code, from a signal handler. Returns where it is not ours.
  static void on_fault(std::uint64_t address, std::uint64_t instruction);

  failure failure_;
  shadow shadow_;
  warp_state *running = nullptr;               ///< the warp whose code is being run
  const tessera_cpu_site *last_site = nullptr; ///< of the emulated access being made

private:
  friend struct fiber;
  void make_warps(std::uint32_t count, std::uint32_t stacks);
  bool resume(warp_state &warp);
  void yield(warp_state &warp, bool for_good);
  void finish(warp_state &warp); ///< its code has returned
  void leave_fibers();           ///< after a failure: nobody goes on where the fibers stopped

  program_code code_;
  const void *const *args_ = nullptr;
  std::vector<std::unique_ptr<warp_state>> warps_;
  std::byte *memory_ = nullptr;
  std::size_t memory_bytes_ = 0;
  void *scheduler_ = nullptr; ///< where run() goes on
  bool failed_ = false;
  // The thread's own stack (for the address sanitizer), and a stack for signal handlers.
  const void *thread_stack_ = nullptr;
  std::size_t thread_stack_bytes_ = 0;
  void *signal_stack_ = nullptr;
};

/// While one of these lives, memory faults inside generated code become failures; other faults go to whoever handled
/// them before. Not longer than that: signal handlers belong to the program.
class fault_guard {
public:
  fault_guard();
  ~fault_guard();
  fault_guard(const fault_guard &) = delete;
  fault_guard &operator=(const fault_guard &) = delete;
};

} // namespace tessera::cpu
