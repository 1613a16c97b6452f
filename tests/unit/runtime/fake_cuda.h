#pragma once
// A CUDA driver without a GPU: implements the entry points that libtessera opens, with memory on the host, checks every
// call as a driver would, and records launches. Tests link it and name it in TESSERA_LIBCUDA.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fake_cuda {

struct launch {
  std::string kernel;
  bool cooperative = false;
  unsigned cluster[3] = {1, 1, 1};
  unsigned grid[3], threads, shared_bytes;
  void *stream;
  std::vector<std::vector<unsigned char>> params; ///< bytes of each, sized as the PTX declares them
};

/// Launches since the last reset.
std::vector<launch> launches();
/// How often each entry point was called since the last reset.
std::map<std::string, int> calls();
/// Sum of calls().
int total_calls();
/// The next call of `function` gives `result`. `sticky`: so does every later call of any function, as after a fault.
void fail_next(const std::string &function, int result, bool sticky = false);
/// Host memory that the driver knows nothing of is never a device address; this is memory of device `ordinal`.
std::uint64_t memory_of(int ordinal, std::size_t bytes);
int modules_alive();
/// Allocations not freed.
int allocations_alive();
/// Begins and ends recording of what is launched on `stream`; as in a driver, little else may be called meanwhile.
void begin_capture(void *stream);
std::vector<launch> end_capture();
/// Runs what was recorded.
void replay(const std::vector<launch> &graph);
/// Names of the NVTX ranges opened so far, "" for each closed.
std::vector<std::string> nvtx_log();
/// What the function attribute "maximum dynamic shared memory" was last set to.
int dynamic_shared_limit();
void reset();

inline constexpr std::size_t memory_bytes = std::size_t(1) << 30;
inline constexpr int num_devices = 2;

} // namespace fake_cuda
