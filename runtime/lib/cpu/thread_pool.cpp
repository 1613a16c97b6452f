// The pool starts its threads at the first launch that has work for them.
#include "thread_pool.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <utility>

#include <tessera/error.h>

namespace tessera::cpu {

bool thread_pool::ranges::next(std::uint64_t &begin, std::uint64_t &end) {
  // Compare and swap, not add: the counter must not pass the end, which may be near 2^64.
  begin = next_.load(std::memory_order_relaxed);
  do {
    if (begin >= total_)
      return false;
    end = begin + std::min(chunk_, total_ - begin);
  } while (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed));
  return true;
}

/// One launch, on the stack of the thread that made it.
struct thread_pool::job {
  const body &work;
  ranges parts;
  unsigned places;     ///< threads that may still join
  unsigned active = 0; ///< pool threads inside `work`
  std::exception_ptr failed;
  std::condition_variable done;
};

static unsigned choose_threads() {
  if (const char *text = std::getenv("TESSERA_CPU_THREADS"); text && *text) {
    unsigned count = 0;
    auto [end, bad] = std::from_chars(text, text + std::strlen(text), count);
    if (bad != std::errc() || *end || count == 0 || count > 4096)
      throw error(stage::launch, std::string("TESSERA_CPU_THREADS is '") + text + "'; give a number from 1 to 4096");
    return count;
  }
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    return std::max(1, CPU_COUNT(&allowed));
  return std::max(1u, std::thread::hardware_concurrency());
}

thread_pool &thread_pool::instance() {
  // A child of fork() has none of the threads, and perhaps a lock that one of them held: it gets a pool of its own, and the
  // parent's is left as it is, for ending it would wait for them.
  static struct holder {
    thread_pool *pool = new thread_pool;
    ~holder() { delete std::exchange(pool, nullptr); }
  } current;
  static const int watched [[maybe_unused]] =
      pthread_atfork(nullptr, nullptr, [] {
        if (current.pool)
          current.pool = new thread_pool(current.pool->threads_);
      });
  return *current.pool;
}

thread_pool::thread_pool() : thread_pool(choose_threads()) {}

thread_pool::~thread_pool() {
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wake_.notify_all();
  for (std::thread &worker : workers_)
    worker.join();
}

void thread_pool::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto open = [](job *j) { return j->places > 0; };
    wake_.wait(lock, [&] { return quit_ || std::any_of(jobs_.begin(), jobs_.end(), open); });
    if (quit_)
      return;
    job &mine = **std::find_if(jobs_.begin(), jobs_.end(), open);
    --mine.places;
    ++mine.active;
    lock.unlock();
    std::exception_ptr failed;
    try {
      mine.work(mine.parts);
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    if (failed)
      mine.failed = failed;
    if (--mine.active == 0)
      mine.done.notify_one();
  }
}

void thread_pool::run(std::uint64_t total, const body &work) {
  if (total == 0)
    return;
  // Chunks small enough to balance, large enough that taking one costs nothing beside running it.
  std::uint64_t chunk = std::clamp<std::uint64_t>(total / (std::uint64_t(threads_) * 16), 1, 1024);
  job mine{work, ranges(total, chunk), 0, 0, nullptr, {}};
  unsigned helpers = static_cast<unsigned>(std::min<std::uint64_t>(threads_ - 1, total - 1));
  if (helpers) {
    std::lock_guard lock(mutex_);
    while (workers_.size() + 1 < threads_)
      workers_.emplace_back([this] { loop(); });
    mine.places = helpers;
    jobs_.push_back(&mine);
  }
  if (helpers)
    wake_.notify_all();
  std::exception_ptr failed;
  try {
    work(mine.parts);
  } catch (...) {
    failed = std::current_exception();
  }
  if (helpers) {
    std::unique_lock lock(mutex_);
    mine.places = 0;
    std::erase(jobs_, &mine);
    mine.done.wait(lock, [&] { return mine.active == 0; });
  }
  if (failed || mine.failed)
    std::rethrow_exception(failed ? failed : mine.failed);
}

} // namespace tessera::cpu
