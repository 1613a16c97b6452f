#pragma once
// Runs machine code of the CPU target, native or emulating a GPU: loads an object file, spreads the grid over a thread
// pool and, for emulated targets, checks every access to shared memory. Plain C++: what the CPU device is built from.
#include <array>
#include <cstdint>
#include <memory>

#include <tessera/codegen/compile.h>
#include <tessera/export.h>

namespace tessera {

/// What a launch did; all but `programs` are zero unless the kernel was compiled with compile_options::count_traffic.
struct cpu_counters {
  std::uint64_t programs = 0;
  std::uint64_t bytes_loaded = 0; ///< from global memory, of elements that no mask excludes
  std::uint64_t bytes_stored = 0;
  std::uint64_t flops = 0; ///< float operations on the elements of tiles, fma counted as 2; the same on every target
};

/// Programs in a grid. Throws tessera::error (launch) where the product needs more than 64 bits.
TESSERA_API std::uint64_t program_count(const std::array<std::uint32_t, 3> &grid);

/// Threads that run programs: TESSERA_CPU_THREADS, else the processors this process may use.
TESSERA_API unsigned cpu_threads();

/// A loaded kernel. May be run from many threads at once.
class TESSERA_API cpu_kernel {
public:
  /// Loads the "obj" stage. Throws tessera::error (launch).
  static std::shared_ptr<const cpu_kernel> load(const compiled_kernel &kernel);
  cpu_kernel(const cpu_kernel &) = delete;
  cpu_kernel &operator=(const cpu_kernel &) = delete;
  ~cpu_kernel();

  /// Runs every program of `grid` and returns when all are done; args[i] points to the value of metadata.params[i].
  /// An empty grid does nothing. Throws tessera::error (execute) for what a program reported or a memory fault;
  /// programs that had not started by then are not run, and the kernel can be run again.
  cpu_counters run(const std::array<std::uint32_t, 3> &grid, const void *const *args) const;

private:
  struct impl;
  explicit cpu_kernel(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

} // namespace tessera
