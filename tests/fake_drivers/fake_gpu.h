#pragma once
// GPU drivers without a GPU: libfake_cuda.so and libfake_hip.so have the entry points that libtessera opens, with memory on
// the host. They check every call as a driver would and more strictly, execute nothing, and record launches. A test links
// one and names it in TESSERA_LIBCUDA or TESSERA_LIBHIP. Other programs run on them too: FAKE_GPU_LOG=FILE then gets a line
// of JSON for every launch and every refusal.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fake_gpu {

struct launch {
  std::string kernel;
  bool cooperative = false;
  unsigned cluster[3] = {1, 1, 1};
  unsigned grid[3] = {}, threads = 0;
  unsigned shared_bytes = 0; ///< what a program gets: of the code object and of the launch
  void *stream = nullptr;
  int device = 0;
  std::vector<std::vector<unsigned char>> params; ///< bytes of each, sized as the machine code declares them
};

inline constexpr std::size_t memory_bytes = std::size_t(1) << 30; ///< of each device
inline constexpr int cuda_devices = 2;                            ///< an sm_90 and an sm_80

/// What a test asks of a fake driver.
class driver {
public:
  /// Launches since the last reset.
  virtual std::vector<launch> launches() = 0;
  /// How often each entry point was called since the last reset.
  virtual std::map<std::string, int> calls() = 0;
  /// Why calls were refused since the last reset, "cuLaunchKernel: …" each.
  virtual std::vector<std::string> refusals() = 0;
  /// The next call of `function` gives `result`. `sticky`: so does every later call of any function, as after a fault.
  virtual void fail_next(const std::string &function, int result, bool sticky = false) = 0;
  /// Memory of device `ordinal` that something else allocated. (Host memory the driver knows nothing of is never a device
  /// address.)
  virtual std::uint64_t memory_of(int ordinal, std::size_t bytes) = 0;
  /// Host memory that the device may use under another address, which is `shift` away.
  virtual std::uint64_t mapped_memory(std::size_t bytes, std::uint64_t shift) = 0;
  virtual int modules_alive() = 0;
  /// Allocations not freed.
  virtual int allocations_alive() = 0;
  /// Begins and ends recording of what is launched on `stream`; as in a driver, little else may be called meanwhile.
  virtual void begin_capture(void *stream) = 0;
  virtual std::vector<launch> end_capture() = 0;
  /// Runs what was recorded.
  virtual void replay(const std::vector<launch> &graph) = 0;
  /// Names of the NVTX or ROCTX ranges opened so far, "" for each closed.
  virtual std::vector<std::string> nvtx_log() = 0;
  /// What the function attribute "maximum dynamic shared memory" was last set to.
  virtual int dynamic_shared_limit() = 0;
  virtual void reset() = 0;
  int total_calls() {
    int n = 0;
    for (auto &[name, count] : calls())
      n += count;
    return n;
  }

protected:
  ~driver() = default;
};

} // namespace fake_gpu

/// Each in its own library.
fake_gpu::driver &fake_cuda();
fake_gpu::driver &fake_hip();
