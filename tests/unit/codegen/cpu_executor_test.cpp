// The executor without the compiler: C++ functions in the place of generated code call the helpers of cpu_abi.h, so
// that every report of the checker and every way a program can fail is reached directly.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <sys/mman.h>
#include <vector>

#include "cpu/thread_pool.h"
#include "cpu_program.h"

#include <tessera/error.h>
#include <tessera/runtime/cpu_executor.h>

using namespace tessera;
using cpu::failure;
using test::load;
using test::store;
using test::word;
using reason = failure::reason;

static failure run(std::uint32_t warps, std::function<void(tessera_cpu_context &)> body) {
  return test::run_program(warps, std::move(body));
}

TEST_CASE("warps meet at barriers and keep their values") {
  std::vector<int> order;
  failure f = run(4, [&](tessera_cpu_context &ctx) {
    int mine = int(ctx.warp) + 1;
    for (int round = 0; round < 3; ++round) {
      order.push_back(round);
      tessera_cpu_barrier(&ctx);
      CHECK(mine == int(ctx.warp) + 1);
    }
  });
  CHECK(f.why == reason::none);
  CHECK(order == std::vector{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2});
}

TEST_CASE("values cross warps through shared memory after a barrier") {
  failure f = run(2, [](tessera_cpu_context &ctx) {
    store(ctx, 5, 4 * ctx.warp, 100 + ctx.warp);
    tessera_cpu_barrier(&ctx);
    CHECK(load(ctx, 6, 4 * (1 - ctx.warp)) == 100 + (1 - ctx.warp));
  });
  CHECK(f.why == reason::none);
}

TEST_CASE("a read of another warp's write without a barrier is reported") {
  failure f = run(2, [](tessera_cpu_context &ctx) {
    if (ctx.warp == 0)
      store(ctx, 3, 8, 1);
    else
      load(ctx, 4, 8);
    tessera_cpu_barrier(&ctx);
  });
  CHECK(f.why == reason::read_after_write);
  CHECK(f.warp == 1);
  CHECK(f.lane == 4);
  CHECK(f.other_warp == 0);
  CHECK(f.other_lane == 3);
  CHECK(f.address == 8);
  CHECK(f.site->line == 9);
  CHECK(f.other_site->line == 7);
}

TEST_CASE("lanes of one warp are not ordered either") {
  CHECK(run(1, [](tessera_cpu_context &ctx) {
          store(ctx, 0, 0, 1);
          load(ctx, 1, 0);
        }).why == reason::read_after_write);
  CHECK(run(1, [](tessera_cpu_context &ctx) {
          store(ctx, 0, 0, 1);
          load(ctx, 0, 0);
        }).why == reason::none);
}

TEST_CASE("write after read and write after write are reported") {
  auto start = [](tessera_cpu_context &ctx) {
    store(ctx, 0, 0, 1);
    tessera_cpu_barrier(&ctx);
  };
  failure f = run(1, [&](tessera_cpu_context &ctx) {
    start(ctx);
    load(ctx, 1, 0);
    store(ctx, 2, 0, 5);
  });
  CHECK(f.why == reason::write_after_read);
  CHECK(f.other_lane == 1);
  f = run(1, [&](tessera_cpu_context &ctx) {
    start(ctx);
    load(ctx, 1, 0);
    load(ctx, 3, 0);
    store(ctx, 1, 0, 5);
  });
  CHECK(f.why == reason::write_after_read);
  CHECK(f.other_warp == ~0u); // several threads
  f = run(1, [&](tessera_cpu_context &ctx) {
    start(ctx);
    store(ctx, 1, 0, 5);
    store(ctx, 2, 0, 6);
  });
  CHECK(f.why == reason::write_after_write);
  f = run(1, [&](tessera_cpu_context &ctx) {
    start(ctx);
    store(ctx, 1, 0, 5);
    store(ctx, 2, 0, 5);
  });
  CHECK(f.why == reason::none); // copies that agree
}

TEST_CASE("uninitialised, foreign, out of bounds and misaligned accesses are reported") {
  CHECK(run(1, [](tessera_cpu_context &ctx) { load(ctx, 0, 16); }).why == reason::uninitialised);
  failure f = run(1, [](tessera_cpu_context &ctx) {
    store(ctx, 0, 0, 1, 17);
    load(ctx, 0, 0, 18);
  });
  CHECK(f.why == reason::wrong_element);
  CHECK(f.expected == 18);
  CHECK(f.found == 17);
  CHECK(run(1, [](tessera_cpu_context &ctx) { store(ctx, 0, 1021, 1); }).why == reason::out_of_bounds);
  CHECK(run(1, [](tessera_cpu_context &ctx) { store(ctx, 0, ~0u, 1); }).why == reason::out_of_bounds);
  CHECK(run(1, [](tessera_cpu_context &ctx) { store(ctx, 0, 2, 1); }).why == reason::misaligned_shared);
  float data[8] = {}, out[4][32];
  const void *pointers[32] = {reinterpret_cast<std::byte *>(data) + (16 - reinterpret_cast<std::uintptr_t>(data) % 16) +
                              4};
  tessera_cpu_access four{32, 4, 4, 16, 0, {"", 0, 0}};
  CHECK(run(1, [&](tessera_cpu_context &ctx) { tessera_cpu_global_load(&ctx, &four, 1, pointers, out); }).why ==
        reason::misaligned_global);
}

TEST_CASE("what one program wrote is uninitialised in the next") {
  CHECK(run(1, [](tessera_cpu_context &ctx) { store(ctx, 0, 0, 1); }).why == reason::none);
  CHECK(run(1, [](tessera_cpu_context &ctx) { load(ctx, 0, 0); }).why == reason::uninitialised);
}

TEST_CASE("a warp that ends while others wait is reported") {
  failure f = run(4, [](tessera_cpu_context &ctx) {
    if (ctx.warp != 2)
      tessera_cpu_barrier(&ctx);
  });
  CHECK(f.why == reason::barrier_divergence);
  CHECK(f.other_warp == 2);
}

TEST_CASE("faults inside a kernel end the program, not the process") {
  for (int round = 0; round < 3; ++round) {
    failure f = run(2, [](tessera_cpu_context &ctx) {
      tessera_cpu_barrier(&ctx);
      if (ctx.warp == 1)
        *reinterpret_cast<volatile int *>(std::uintptr_t(0x40)) = 1;
    });
    CHECK(f.why == reason::memory_fault);
    CHECK(f.address == 0x40);
    CHECK(f.warp == 1);
  }
  CHECK(run(2, [](tessera_cpu_context &ctx) { tessera_cpu_barrier(&ctx); }).why == reason::none);
}

TEST_CASE("an assertion names the lane") {
  failure f = run(1, [](tessera_cpu_context &ctx) { tessera_cpu_assert(&ctx, 0b1000, "x > 0", &word.site); });
  CHECK(f.why == reason::assertion);
  CHECK(f.lane == 3);
  CHECK(std::string(f.message) == "x > 0");
}

TEST_CASE("grids are counted in 64 bits") {
  CHECK(program_count({16384, 16384, 16}) == 4294967296u);
  CHECK(program_count({65536, 65536, 1}) == 4294967296u);
  CHECK(program_count({2147483647, 2, 1}) == 4294967294u);
  CHECK(program_count({5, 0, 7}) == 0);
  CHECK_THROWS_AS(program_count({~0u, ~0u, ~0u}), error);
  for (std::uint64_t total : {std::uint64_t(4294967296), std::uint64_t(4294967294)}) {
    cpu::thread_pool::ranges ranges(total, 1u << 20);
    std::uint64_t sum = 0, begin, end;
    while (ranges.next(begin, end)) {
      CHECK(begin == sum);
      sum = end;
    }
    CHECK(sum == total);
    CHECK_FALSE(ranges.next(begin, end));
  }
}

TEST_CASE("the pool runs every index once, also nested in other threads, and passes exceptions on") {
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([] {
      std::vector<std::atomic<int>> seen(10007);
      cpu::thread_pool::instance().run(seen.size(), [&](cpu::thread_pool::ranges &ranges) {
        for (std::uint64_t begin, end; ranges.next(begin, end);)
          for (; begin < end; ++begin)
            ++seen[begin];
      });
      for (auto &count : seen)
        CHECK(count == 1);
    });
  for (auto &caller : callers)
    caller.join();
  CHECK_THROWS_AS(
      cpu::thread_pool::instance().run(4, [](cpu::thread_pool::ranges &) { throw error(stage::launch, "no"); }), error);
}
