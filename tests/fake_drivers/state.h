#pragma once
// What the fake drivers of both vendors keep: memory, streams, what was called, launched and refused.
#include "fake_gpu.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

namespace fake_gpu {

struct allocation {
  std::size_t bytes;
  int ordinal;
  bool on_host = false;
  std::uint64_t shift = 0;
};
struct stream_or_event {
  int device;
  double time = -1;
};

struct state final : driver {
  state(std::string vendor, int capture_unsupported, std::vector<std::string> forbidden_in_capture)
      : vendor(std::move(vendor)), capture_unsupported(capture_unsupported),
        forbidden_in_capture(std::move(forbidden_in_capture)) {
    // FAKE_GPU_FAIL=FUNCTION=RESULT: as fail_next, for what is called before a test can ask.
    const char *text = std::getenv("FAKE_GPU_FAIL"), *at = text ? std::strchr(text, '=') : nullptr;
    if (at)
      failures[std::string(text, at)] = {std::atoi(at + 1), false};
  }

  std::vector<launch> launches() override;
  std::map<std::string, int> calls() override;
  std::vector<std::string> refusals() override;
  void fail_next(const std::string &function, int result, bool sticky) override;
  std::uint64_t memory_of(int ordinal, std::size_t bytes) override;
  std::uint64_t mapped_memory(std::size_t bytes, std::uint64_t shift) override;
  int modules_alive() override;
  int allocations_alive() override;
  void begin_capture(void *stream) override;
  std::vector<launch> end_capture() override;
  void replay(const std::vector<launch> &graph) override;
  std::vector<std::string> nvtx_log() override;
  int dynamic_shared_limit() override;
  void reset() override;

  /// Counts the call, and gives the failure that a test asked for, or 0.
  int enter(const char *function);
  /// Notes why, for the test and the log. Gives `result`.
  int refuse(const char *function, int result, const std::string &why);
  void record(launch l);

  /// 0 where `ordinal` has no room. What was there before is not zero, nor what it will be.
  std::uint64_t allocate(std::size_t bytes, int ordinal);
  bool free(std::uint64_t address);
  allocation *find(std::uint64_t p, std::uint64_t *base = nullptr);
  bool inside(std::uint64_t p, std::size_t bytes);
  /// What is wrong with a pointer argument of a kernel on `device`; empty: nothing.
  std::string wrong_pointer(std::uint64_t p, int device);

  const std::string vendor;
  const int capture_unsupported;
  const std::vector<std::string> forbidden_in_capture;
  std::recursive_mutex lock;
  std::map<std::string, int> call_counts;
  std::map<std::string, std::pair<int, bool>> failures; // result, and whether all later calls give it too
  int sticky_failure = 0;
  std::vector<launch> launch_log, graph;
  std::vector<std::string> refusal_log, ranges;
  void *captured = nullptr; // the stream
  std::map<std::uint64_t, allocation> allocations; // by address
  std::map<int, std::size_t> allocated;
  int modules = 0, shared_limit = 0;
  double now = 0;
};

} // namespace fake_gpu
