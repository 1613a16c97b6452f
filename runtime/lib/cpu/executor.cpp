// cpu_kernel: spreads a grid over the thread pool and turns the first failure into an error.
#include <tessera/runtime/cpu_executor.h>

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <limits>
#include <mutex>

#include "loader.h"
#include "thread_pool.h"
#include "worker.h"

#include <tessera/error.h>

namespace tessera {

using cpu::failure;
using reason = failure::reason;

std::uint64_t program_count(const std::array<std::uint32_t, 3> &grid) {
  unsigned __int128 count = static_cast<unsigned __int128>(grid[0]) * grid[1] * grid[2];
  if (count > std::numeric_limits<std::uint64_t>::max())
    throw error(stage::launch,
                fmt::format("a grid of {} x {} x {} has more programs than 64 bits count", grid[0], grid[1], grid[2]));
  return static_cast<std::uint64_t>(count);
}

unsigned cpu_threads() { return cpu::thread_pool::instance().threads(); }

// ---- errors -------------------------------------------------------------------------------------------------------

static std::string place(const tessera_cpu_site *site) {
  return site && *site->file ? fmt::format(" at {}:{}", site->file, site->line) : std::string();
}

static std::string describe(const failure &f) {
  auto thread = fmt::format("warp {} lane {}", f.warp, f.lane);
  auto other =
      f.other_warp == ~0u ? std::string("several threads") : fmt::format("warp {} lane {}", f.other_warp, f.other_lane);
  auto other_place = place(f.other_site);
  switch (f.why) {
  case reason::read_after_write:
    return fmt::format("race: {} reads byte {} of shared memory that {} wrote{} with no barrier between", thread,
                       f.address, other, other_place);
  case reason::write_after_read:
    return fmt::format("race: {} writes byte {} of shared memory that {} read{} with no barrier between", thread,
                       f.address, other, other_place);
  case reason::write_after_write:
    return fmt::format("race: {} writes byte {} of shared memory that {} wrote{} with no barrier between", thread,
                       f.address, other, other_place);
  case reason::uninitialised:
    return fmt::format(
        "{} reads byte {} of shared memory, which no thread has written yet: a store or a barrier is missing", thread,
        f.address);
  case reason::wrong_element:
    return fmt::format(
        "wrong element: {} reads element {} at byte {} of shared memory, but {} stored element {} there{}: the "
        "two sides disagree on the layout (swizzle)",
        thread, f.expected, f.address, other, f.found, other_place);
  case reason::out_of_bounds:
    return fmt::format("{} accesses {} bytes at byte {} of shared memory, which has {}", thread, f.found, f.address,
                       f.expected);
  case reason::misaligned_shared:
    return fmt::format("{} accesses shared memory at byte {}, not a multiple of {}", thread, f.address, f.expected);
  case reason::misaligned_global:
    return fmt::format("{} accesses address {:#x}, not a multiple of {}: a vector access the GPU refuses", thread,
                       f.address, f.expected);
  case reason::read_in_flight:
    return fmt::format(
        "{} reads byte {} of shared memory, to which {} has started an asynchronous copy{} that nobody has "
        "waited for",
        thread, f.address, other, other_place);
  case reason::write_in_flight:
    return fmt::format("race: {} writes byte {} of shared memory, to which {} has started an asynchronous copy{} that "
                       "nobody has waited for",
                       thread, f.address, other, other_place);
  case reason::changed_in_flight:
    return fmt::format("race: a wgmma of warp {} reads byte {} of shared memory, which {} overwrote{} before the wgmma "
                       "was waited for",
                       f.warp, f.address, other, other_place);
  case reason::source_changed:
    return fmt::format(
        "race: {} copies asynchronously from address {:#x}, which changed before the copy was waited for", thread,
        f.address);
  case reason::missing_proxy_fence:
    return fmt::format("a wgmma of warp {} reads byte {} of shared memory that {} wrote{}: an asynchronous-proxy fence "
                       "is missing between",
                       f.warp, f.address, other, other_place);
  case reason::missing_register_fence:
    return fmt::format("warp {} starts a wgmma on registers that other instructions wrote, with no wgmma fence between",
                       f.warp);
  case reason::register_in_flight:
    return fmt::format("race: warp {} writes a register that its wgmma{} reads, which was not waited for", f.warp,
                       other_place);
  case reason::sum_in_flight:
    return fmt::format("race: warp {} reads a result of its wgmma{}, which was not waited for", f.warp, other_place);
  case reason::unequal_halves:
    return fmt::format("{} gives a WMMA instruction another operand than lane {}, which it must repeat", thread,
                       f.lane - 16);
  case reason::never_waited: return fmt::format("warp {} ends, but nobody has waited for its wgmma", f.warp);
  case reason::assertion: return fmt::format("device_assert failed: {}", f.message);
  case reason::barrier_divergence:
    return fmt::format("warp {} waits at a barrier, but warp {} has ended", f.warp, f.other_warp);
  case reason::memory_fault:
    return f.address
               ? fmt::format(
                     "illegal memory access near address {:#x}: check the pointers, sizes and masks of the launch",
                     f.address)
               : std::string(
                     "illegal memory access: the address is null or not canonical; check the pointers of the launch");
  case reason::stack_overflow: return "the tile needs more stack than a warp has; use smaller blocks or more warps";
  case reason::none: break;
  }
  return "unknown failure";
}

// ---- kernel -------------------------------------------------------------------------------------------------------

struct cpu_kernel::impl {
  impl(const compiled_kernel &kernel, const std::string &object)
      : name(kernel.metadata.name), object(object, kernel.metadata.name) {
    code.entry = this->object.entry();
    code.num_warps = static_cast<std::uint32_t>(std::max(1, kernel.metadata.num_warps));
    code.shared_bytes = kernel.metadata.shared_bytes;
    code.emulated = kernel.compiled_for.emulated();
    code.has_barriers = this->object.has_barriers();
  }
  std::string name;
  cpu::loaded_object object;
  cpu::program_code code;
};

cpu_kernel::cpu_kernel(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
cpu_kernel::~cpu_kernel() = default;

std::shared_ptr<const cpu_kernel> cpu_kernel::load(const compiled_kernel &kernel) {
  const std::string *object = kernel.find("obj");
  if (kernel.compiled_for.kind != target_kind::cpu || !object)
    throw error(stage::launch,
                fmt::format("kernel '{}' for target {} has no code the CPU can run; compile it for a cpu target",
                            kernel.metadata.name, kernel.compiled_for.str()));
  return std::shared_ptr<const cpu_kernel>(new cpu_kernel(std::make_unique<impl>(kernel, *object)));
}

cpu_counters cpu_kernel::run(const std::array<std::uint32_t, 3> &grid, const void *const *args) const {
  const std::uint64_t total = program_count(grid);
  if (total == 0)
    return {};
  cpu::fault_guard guard;
  cpu_counters counters;
  std::mutex mutex; // of what follows
  failure first;
  std::uint64_t first_program = total;
  std::atomic<bool> stop = false;

  cpu::thread_pool::instance().run(total, [&](cpu::thread_pool::ranges &ranges) {
    cpu::worker &worker = cpu::worker::current();
    worker.begin(impl_->code, args, grid.data());
    std::uint64_t programs = 0, begin = 0, end = 0;
    while (!stop.load(std::memory_order_relaxed) && ranges.next(begin, end)) {
      std::uint32_t at[3] = {static_cast<std::uint32_t>(begin % grid[0]),
                             static_cast<std::uint32_t>(begin / grid[0] % grid[1]),
                             static_cast<std::uint32_t>(begin / grid[0] / grid[1])};
      for (std::uint64_t program = begin; program < end; ++program) {
        if (!worker.run(at)) {
          stop = true;
          std::lock_guard lock(mutex);
          // Of several failures report that of the lowest program, so that runs agree more often.
          if (program < first_program) {
            first = worker.error();
            first_program = program;
          }
          break;
        }
        ++programs;
        if (++at[0] == grid[0]) {
          at[0] = 0;
          if (++at[1] == grid[1]) {
            at[1] = 0;
            ++at[2];
          }
        }
        if (stop.load(std::memory_order_relaxed))
          break;
      }
    }
    std::lock_guard lock(mutex);
    counters.programs += programs;
    worker.collect(counters.bytes_loaded, counters.bytes_stored, counters.flops);
  });

  if (first.why != reason::none) {
    source_position where;
    if (first.site && *first.site->file)
      where = {first.site->file, first.site->line, first.site->column};
    else if (first.instruction)
      where = impl_->object.position(first.instruction);
    throw error(stage::execute,
                fmt::format("kernel '{}', program ({}, {}, {}): {}", impl_->name, first.program[0], first.program[1],
                            first.program[2], describe(first)),
                where);
  }
  return counters;
}

} // namespace tessera
