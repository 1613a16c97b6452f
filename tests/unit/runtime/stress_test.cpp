// Many threads, several kernels, cold and warm, some launches failing: each sees its own results and its own errors.
#include "messages.h"

#include <atomic>
#include <doctest/doctest.h>
#include <numeric>
#include <thread>

#include <tessera/tessera.h>

namespace tl = tessera::tl;
using namespace tessera;

namespace {

struct row_config {
  int cols = 1024;
};

// Warps of a program wait for each other in the sum; the loop makes them do so again and again.
auto make_row_sums() {
  return tl::kernel("row_sums",
                    [](tl::ptr<const tl::i32> x, tl::ptr<tl::i32> out, tl::val<tl::i32> rows, row_config c) {
                      auto col = tl::arange(0, c.cols);
                      for (auto row : tl::range(tl::program_id(0), rows, tl::num_programs(0)))
                        tl::store(out + row, tl::sum(tl::load(x + row * c.cols + col), 0));
                    });
}

auto make_scale() {
  return tl::kernel("scale",
                    [](tl::ptr<const tl::i32> x, tl::ptr<tl::i32> out, tl::val<tl::i32> by, tl::val<tl::i32> n) {
                      auto at = tl::program_id(0) * 256 + tl::arange(0, 256);
                      tl::store(out + at, tl::load(x + at, at < n) * by, at < n);
                    });
}

} // namespace

TEST_SUITE("runtime.stress") {

  TEST_CASE("threads launch several kernels, and failing ones, at the same time") {
    auto row_sums = make_row_sums();
    auto scale = make_scale();
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        try {
          stream s(device::open(t % 4 == 3 ? "cpu:emulate=sm_90a" : "cpu"));
          const int rows = 40 + t, cols = t % 2 ? 1024 : 2048;
          std::vector<tl::i32> x(std::size_t(rows) * cols), sums(rows), expected(rows), scaled(x.size());
          for (std::size_t i = 0; i < x.size(); ++i)
            x[i] = tl::i32(i % 251) - 100 * t;
          for (int r = 0; r < rows; ++r)
            expected[r] = std::accumulate(x.begin() + std::size_t(r) * cols, x.begin() + std::size_t(r + 1) * cols, 0);
          for (int round = 0; round < 6; ++round) {
            std::fill(sums.begin(), sums.end(), -1);
            row_sums.with({.cols = cols})(s, 7, x, sums, rows);
            wrong += sums != expected;

            std::fill(scaled.begin(), scaled.end(), -1);
            scale(s, unsigned(x.size() + 255) / 256, x, scaled, 3 + round, int(x.size()));
            for (std::size_t i = 0; i < x.size(); ++i)
              if (scaled[i] != x[i] * (3 + round)) {
                ++wrong;
                break;
              }

            // An address that nothing is mapped at: this launch fails, the others on the same pool do not.
            auto *nowhere = reinterpret_cast<tl::i32 *>(std::uintptr_t(4096));
            wrong += !contains(message_of([&] {
                                 row_sums.with({.cols = cols})(s, 5, static_cast<const tl::i32 *>(nowhere), sums, rows);
                                 s.synchronize();
                               }),
                               "illegal memory access");
          }
        } catch (const std::exception &e) {
          MESSAGE(e.what());
          ++wrong;
        }
      });
    for (auto &thread : threads)
      thread.join();
    CHECK(wrong == 0);
  }
}
