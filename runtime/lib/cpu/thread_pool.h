#pragma once
// Threads that share the index range of a launch. Several launches may be in flight; the calling thread always works on
// its own, so a launch makes progress whatever the others do, and a small one never waits for a thread to wake.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera::cpu {

class thread_pool {
public:
  /// Hands out parts of [0, total).
  class ranges {
  public:
    ranges(std::uint64_t total, std::uint64_t chunk) : total_(total), chunk_(chunk) {}
    /// The next part; false at the end.
    bool next(std::uint64_t &begin, std::uint64_t &end);

  private:
    std::atomic<std::uint64_t> next_ = 0;
    std::uint64_t total_, chunk_;
  };
  using body = std::function<void(ranges &)>;

  static thread_pool &instance();
  thread_pool(const thread_pool &) = delete;
  thread_pool &operator=(const thread_pool &) = delete;
  ~thread_pool();

  /// Calls `work` on the calling thread and up to threads() - 1 others; returns when all calls have. An exception of
  /// any call is thrown again.
  void run(std::uint64_t total, const body &work);
  [[nodiscard]] unsigned threads() const { return threads_; }

private:
  struct job;
  thread_pool();
  explicit thread_pool(unsigned threads) : threads_(threads) {}
  void loop();

  unsigned threads_ = 1;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<job *> jobs_;
  bool quit_ = false;
  std::vector<std::thread> workers_;
};

} // namespace tessera::cpu
