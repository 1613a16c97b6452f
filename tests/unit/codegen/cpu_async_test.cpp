// The emulated wgmma and cp.async: descriptors against tables of the PTX ISA, and every fault that is reported.
#include <array>
#include <vector>

#include "cpu/matrix.h"
#include "cpu_program.h"
#include "matrix_numbers.h"

using namespace tessera;
using namespace tessera::test;
using cpu::failure;
using reason = failure::reason;

// ---- wgmma ---------------------------------------------------------------------------------------------------------

TEST_CASE("descriptors put chunks where the tables of the PTX ISA have them") {
  auto descriptor = [](std::uint64_t start, std::uint64_t leading, std::uint64_t stride, std::uint64_t mode,
                       std::uint64_t base = 0) {
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | base << 49 | mode << 62;
  };
  // K-major: chunk (row, c) of 16 bytes; c counts two in the 32 bytes of one instruction.
  cpu::shared_matrix none(descriptor(256, 128, 512, 0), false, 2);
  CHECK(none.chunk(0, 0) == 256);
  CHECK(none.chunk(1, 0) == 256 + 16);
  CHECK(none.chunk(7, 8) == 256 + 7 * 16 + 128);
  CHECK(none.chunk(9, 8) == 256 + 512 + 16 + 128);
  // Rows of 128 bytes: the column of the chunk is xored with the row's number among eight.
  const unsigned columns128[8][2] = {{0, 1}, {1, 0}, {2, 3}, {3, 2}, {4, 5}, {5, 4}, {6, 7}, {7, 6}};
  cpu::shared_matrix wide(descriptor(2048, 0, 1024, 1), false, 2);
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned c = 0; c < 2; ++c)
      CHECK(wide.chunk(row, 8 * c) == 2048 + row / 8 * 1024 + row % 8 * 128 + columns128[row % 8][c] * 16);
  // The next 32 bytes of k, by the start address alone.
  cpu::shared_matrix next(descriptor(2048 + 32, 0, 1024, 1), false, 2);
  const unsigned further[8][2] = {{2, 3}, {3, 2}, {0, 1}, {1, 0}, {6, 7}, {7, 6}, {4, 5}, {5, 4}};
  for (unsigned row = 0; row < 8; ++row)
    for (unsigned c = 0; c < 2; ++c)
      CHECK(next.chunk(row, 8 * c) == 2048 + row * 128 + further[row][c] * 16);
  // 64 bytes: two rows share a number; 32 bytes: four.
  const unsigned columns64[8] = {0, 0, 1, 1, 2, 2, 3, 3}, columns32[8] = {0, 0, 0, 0, 1, 1, 1, 1};
  cpu::shared_matrix middle(descriptor(512, 0, 512, 2), false, 2), narrow(descriptor(256, 0, 256, 3), false, 2);
  for (unsigned row = 0; row < 8; ++row) {
    CHECK(middle.chunk(row, 0) == 512 + row * 64 + columns64[row] * 16);
    CHECK(narrow.chunk(row, 8) == 256 + row * 32 + (columns32[row] ^ 1) * 16);
  }
  // M- or N-major: a row of the atom is one k.
  cpu::shared_matrix tall(descriptor(4096, 8192, 1024, 1), true, 2);
  CHECK(tall.chunk(0, 0) == 4096);
  CHECK(tall.chunk(8, 0) == 4096 + 16);
  CHECK(tall.chunk(8, 3) == 4096 + 3 * 128 + (1 ^ 3) * 16);
  CHECK(tall.chunk(64, 9) == 4096 + 8192 + 1024 + 128 + 1 * 16);
  cpu::shared_matrix flat(descriptor(0, 256, 2048, 0), true, 2);
  CHECK(flat.chunk(8, 0) == 2048);
  CHECK(flat.chunk(0, 1) == 16);
  CHECK(flat.chunk(16, 9) == 2 * 2048 + 256 + 16);
  // A pattern that does not start at its boundary, with the base offset that says so.
  cpu::shared_matrix shifted(descriptor(2048 + 384, 0, 1024, 1, 3), false, 2);
  for (unsigned row = 0; row < 5; ++row)
    CHECK(shifted.chunk(row, 0) == 2048 + 384 + row * 128 + row * 16);
}

namespace {

enum class memory { k_major, n_major };

/// One wgmma in the hands of four warps: A is 64 x k, B is k x n.
struct wgmma_case {
  std::uint32_t type, n;
  memory a = memory::k_major, b = memory::k_major;
  bool a_in_registers = false;
  unsigned swizzle = 128;
};

constexpr tessera_cpu_site wgmma_site{"kernel.cpp", 33, 1};

struct wgmma_run {
  wgmma_case c;
  unsigned bytes, k;
  std::uint64_t mode;
  std::vector<int> a, b;
  tessera_cpu_matrix matrix;
  tessera_cpu_access access;
  std::uint32_t b_start = 0;

  explicit wgmma_run(wgmma_case given)
      : c(given), bytes(cpu::matrix_bytes(c.type)), k(32 / bytes), mode(c.swizzle == 128  ? 1
                                                                        : c.swizzle == 64 ? 2
                                                                        : c.swizzle == 32 ? 3
                                                                                          : 0),
        a(64 * k), b(k * c.n),
        matrix{64,         c.n, k, c.type, c.type, c.a == memory::n_major, c.b == memory::n_major, tessera_unit_nvidia,
               wgmma_site, {}},
        access{32, bytes, 1, bytes, 0, {"kernel.cpp", 31, 1}} {
    numbers random;
    for (auto *list : {&a, &b})
      for (int &v : *list)
        v = random(c.type);
    // A takes 64 rows of a swizzled line at most, or as many lines of 64 rows.
    b_start = c.a_in_registers ? 0 : 64 * 128 * 2;
  }

  /// Where element (row, k) of an operand with `rows` rows lies: lines of `swizzle` bytes, written down by hand.
  std::uint32_t offset(std::uint32_t start, memory order, unsigned rows, unsigned row, unsigned at) const {
    unsigned line = c.swizzle == 16 ? 16 : c.swizzle, along = order == memory::k_major ? at : row;
    unsigned across = order == memory::k_major ? row : at, lines = order == memory::k_major ? rows : k;
    unsigned byte = along * bytes;
    std::uint32_t linear = byte / line * (lines * line) + across * line + byte % line;
    unsigned chunk = linear / 16, mask = line / 16 - 1;
    return start + (chunk ^ (linear / 128 & mask)) * 16 + linear % 16;
  }
  std::uint64_t descriptor(std::uint32_t start, memory order, unsigned rows) const {
    unsigned line = c.swizzle, lines = order == memory::k_major ? rows : k;
    std::uint64_t next_eight = 8 * line, next_line = std::uint64_t(lines) * line;
    std::uint64_t leading = next_line, stride = next_eight;
    if (order == memory::n_major && c.swizzle == 16)
      std::swap(leading, stride);
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62;
  }

  void put(tessera_cpu_context &ctx, std::uint32_t start, memory order, unsigned rows, bool is_a) {
    // Two warps write, each element once.
    for (unsigned row = ctx.warp; row < rows; row += 4)
      for (unsigned at = 0; at < k; ++at) {
        std::uint32_t offsets[32] = {offset(start, order, rows, row, at)}, data[32] = {};
        std::uint32_t code = encode(c.type, is_a ? a[row * k + at] : b[at * c.n + row]);
        std::memcpy(data, &code, bytes);
        tessera_cpu_shared_store(&ctx, &access, 1, offsets, nullptr, data);
      }
  }
  void put_all(tessera_cpu_context &ctx) {
    if (!c.a_in_registers)
      put(ctx, 0, c.a, 64, true);
    put(ctx, b_start, c.b, c.n, false);
  }
  /// All that has to come before the first wgmma.
  void ready(tessera_cpu_context &ctx) {
    put_all(ctx);
    tessera_cpu_fence_async(&ctx);
    tessera_cpu_barrier(&ctx);
    tessera_cpu_wgmma_fence(&ctx);
  }
  std::uint32_t start(tessera_cpu_context &ctx, const std::uint32_t *sums, std::uint32_t chained = 0) {
    std::uint32_t registers[4 * 32];
    unsigned per_word = 4 / bytes;
    for (unsigned r = 0; r < 4; ++r)
      for (unsigned lane = 0; lane < 32; ++lane) {
        std::uint32_t packed = 0;
        for (unsigned i = 0; i < per_word; ++i) {
          unsigned row = ctx.warp % 4 * 16 + lane / 4 + 8 * (r & 1);
          unsigned at = lane % 4 * per_word + i + r / 2 * 4 * per_word;
          packed |= encode(c.type, a[row * k + at]) << i * bytes * 8;
        }
        registers[r * 32 + lane] = packed;
      }
    return tessera_cpu_wgmma_start(&ctx, &matrix, c.a_in_registers ? registers : nullptr, descriptor(0, c.a, 64),
                                   descriptor(b_start, c.b, c.n), sums, chained);
  }
  /// The results in the registers of the warp; `times` products were added to `initial`.
  void check(const tessera_cpu_context &ctx, const std::uint32_t *sums, double initial, int times) const {
    bool integer = cpu::is_integer(c.type);
    for (unsigned i = 0; i < c.n / 2; ++i)
      for (unsigned lane = 0; lane < 32; ++lane) {
        unsigned row = ctx.warp % 4 * 16 + lane / 4 + (i % 4 < 2 ? 0 : 8),
                 column = 8 * (i / 4) + lane % 4 * 2 + (i & 1);
        double expect = initial;
        for (unsigned x = 0; x < k; ++x)
          expect += times * a[row * k + x] * b[x * c.n + column];
        if (sums[i * 32 + lane] != word_of(expect, integer)) {
          FAIL_CHECK("type " << c.type << " n " << c.n << " swizzle " << c.swizzle << " row " << row << " column "
                             << column);
          return;
        }
      }
  }
};

/// A warp's accumulators, up to n = 256. On the stack: a program that fails leaves its fiber without destructors.
using registers = std::array<std::uint32_t, 128 * 32>;

void tickets(std::uint32_t ticket, registers &sums) {
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] = ticket + std::uint32_t(i / 32);
}

/// A right use of wgmma: two products added to 3, by a ticket and by registers.
failure multiply(wgmma_case c, bool check = true) {
  wgmma_run r(c);
  return run_program(
      4,
      [&](tessera_cpu_context &ctx) {
        r.put_all(ctx);
        tessera_cpu_fence_async(&ctx);
        tessera_cpu_barrier(&ctx);
        registers sums;
        sums.fill(word_of(3, cpu::is_integer(c.type)));
        tessera_cpu_wgmma_fence(&ctx);
        std::uint32_t first = r.start(ctx, sums.data());
        tickets(r.start(ctx, nullptr, first), sums);
        tessera_cpu_wgmma_commit(&ctx);
        tickets(r.start(ctx, sums.data()), sums);
        tessera_cpu_wgmma_commit(&ctx);
        registers pending = sums;
        tessera_cpu_wgmma_wait(&ctx, 1, c.n / 2, sums.data());
        CHECK(bool(sums == pending)); // still in flight
        tessera_cpu_wgmma_wait(&ctx, 0, c.n / 2, sums.data());
        if (check)
          r.check(ctx, sums.data(), 3, 3);
      },
      65536);
}

} // namespace

TEST_CASE("wgmma multiplies what its descriptors describe") {
  for (auto type : {tessera_matrix_f16, tessera_matrix_bf16, tessera_matrix_tf32, tessera_matrix_e4m3,
                    tessera_matrix_e5m2, tessera_matrix_s8, tessera_matrix_u8})
    for (unsigned n : {8u, 64u, 256u})
      for (bool in_registers : {false, true})
        CHECK(multiply({type, n, memory::k_major, memory::k_major, in_registers, n == 256 ? 32u : 16u}).why ==
              reason::none);
  for (unsigned swizzle : {16u, 32u, 64u, 128u})
    for (memory a : {memory::k_major, memory::n_major})
      for (memory b : {memory::k_major, memory::n_major}) {
        // A line of k is 32 bytes here: wider ones are the business of the next test.
        if (swizzle > 32 && (a == memory::k_major || b == memory::k_major))
          continue;
        CHECK(multiply({tessera_matrix_f16, 64, a, b, false, swizzle}).why == reason::none);
      }
}

TEST_CASE("a wgmma's results are tickets until the wait") {
  wgmma_run r({tessera_matrix_f16, 16, memory::k_major, memory::k_major, true, 16});
  run_program(
      4,
      [&](tessera_cpu_context &ctx) {
        r.ready(ctx);
        std::uint32_t ticket = r.start(ctx, nullptr);
        CHECK(std::isnan(std::bit_cast<float>(ticket)));
        CHECK(std::isnan(std::bit_cast<float>(ticket) + 1));
        tessera_cpu_wgmma_commit(&ctx);
        tessera_cpu_wgmma_wait(&ctx, 0, 0, nullptr);
      },
      65536);
}

TEST_CASE("what a wgmma is used wrongly for is reported") {
  const wgmma_case c{tessera_matrix_f16, 16, memory::k_major, memory::k_major, true, 16};
  struct steps {
    bool proxy_fence = true, barrier = true, register_fence = true, overwrite = false, wait = true,
         barrier_after = true, refill = false;
  };
  wgmma_run r(c);
  auto with = [&](steps s) {
    return run_program(
        4,
        [&](tessera_cpu_context &ctx) {
          r.put_all(ctx);
          if (s.proxy_fence)
            tessera_cpu_fence_async(&ctx);
          if (s.barrier)
            tessera_cpu_barrier(&ctx);
          if (s.register_fence)
            tessera_cpu_wgmma_fence(&ctx);
          registers sums{};
          tickets(r.start(ctx, sums.data()), sums);
          tessera_cpu_wgmma_commit(&ctx);
          if (s.overwrite) {
            tessera_cpu_barrier(&ctx);
            store(ctx, ctx.warp, 4 * ctx.warp, 7);
          }
          if (s.wait)
            tessera_cpu_wgmma_wait(&ctx, 0, c.n / 2, sums.data());
          if (s.barrier_after)
            tessera_cpu_barrier(&ctx);
          if (s.refill)
            store(ctx, ctx.warp, 4 * ctx.warp, 7);
          tessera_cpu_barrier(&ctx);
        },
        65536);
  };
  CHECK(with({}).why == reason::none);
  CHECK(with({.refill = true}).why == reason::none);
  failure f = with({.proxy_fence = false});
  CHECK(f.why == reason::missing_proxy_fence);
  CHECK(f.site->line == 33);
  CHECK(f.other_site->line == 31);
  CHECK(with({.register_fence = false}).why == reason::missing_register_fence);
  CHECK(with({.barrier = false}).why == reason::read_after_write);
  f = with({.overwrite = true});
  CHECK(f.why == reason::changed_in_flight);
  CHECK(f.site->line == 33);
  CHECK(f.other_site->line == 7);
  CHECK(with({.barrier_after = false, .refill = true}).why == reason::write_after_read);
  f = with({.wait = false});
  CHECK(f.why == reason::never_waited);
  CHECK(f.site->line == 33);
}

TEST_CASE("a register that a wgmma in flight reads may not be written") {
  constexpr tessera_cpu_site write_site{"kernel.cpp", 41, 1};
  wgmma_run in_registers({tessera_matrix_f16, 16, memory::k_major, memory::k_major, true, 16});
  wgmma_run in_memory({tessera_matrix_f16, 16, memory::k_major, memory::k_major, false, 16});
  for (wgmma_run *r : {&in_registers, &in_memory})
    for (std::uint32_t i = 0; i < 4; ++i)
      r->matrix.registers[i] = 11 + i;
  auto with = [&](std::uint32_t number, std::uint32_t pending, bool memory) {
    wgmma_run &r = memory ? in_memory : in_registers;
    return run_program(
        4,
        [&](tessera_cpu_context &ctx) {
          r.put_all(ctx);
          tessera_cpu_fence_async(&ctx);
          tessera_cpu_barrier(&ctx);
          tessera_cpu_register_written(&ctx, number, &write_site); // before, by whom it may
          tessera_cpu_wgmma_fence(&ctx);
          r.start(ctx, nullptr);
          tessera_cpu_wgmma_commit(&ctx);
          tessera_cpu_wgmma_wait(&ctx, pending, 0, nullptr);
          tessera_cpu_register_written(&ctx, number, &write_site);
          tessera_cpu_wgmma_wait(&ctx, 0, 0, nullptr);
        },
        65536);
  };
  failure f = with(14, 1, false);
  CHECK(f.why == reason::register_in_flight);
  CHECK(f.site->line == 41);
  CHECK(f.other_site->line == 33);
  CHECK(with(11, 1, false).why == reason::register_in_flight);
  CHECK(with(15, 1, false).why == reason::none);
  CHECK(with(14, 0, false).why == reason::none);
  CHECK(with(14, 1, true).why == reason::none);
}

TEST_CASE("a result of a wgmma may not be read before the wait, nor anywhere but where the wait puts it") {
  constexpr tessera_cpu_site read_site{"kernel.cpp", 43, 1};
  wgmma_run r({tessera_matrix_f16, 16, memory::k_major, memory::k_major, true, 16});
  enum class what { in_flight, left_in_flight, old_register, returned, other_nan, one_lane };
  auto with = [&](what read) {
    return run_program(
        4,
        [&](tessera_cpu_context &ctx) {
          r.ready(ctx);
          registers sums, started;
          tickets(r.start(ctx, nullptr), started);
          tessera_cpu_wgmma_commit(&ctx);
          if (read == what::other_nan)
            started.fill(0x7fffe000); // of the f16 with all bits set
          if (read == what::one_lane)
            started[3 * 32 + 5] = 0;
          if (read != what::old_register && read != what::returned && read != what::left_in_flight)
            tessera_cpu_register_read(&ctx, &started[3 * 32], &read_site);
          sums = started;
          if (read == what::left_in_flight) {
            tessera_cpu_wgmma_wait(&ctx, 1, r.c.n / 2, sums.data());
            tessera_cpu_register_read(&ctx, &sums[3 * 32], &read_site);
          }
          tessera_cpu_wgmma_wait(&ctx, 0, r.c.n / 2, sums.data());
          tessera_cpu_register_read(&ctx, read == what::old_register ? &started[3 * 32] : &sums[3 * 32], &read_site);
        },
        65536);
  };
  for (what read : {what::in_flight, what::left_in_flight}) {
    failure f = with(read);
    CHECK(f.why == reason::sum_in_flight);
    CHECK(f.site->line == 43);
    CHECK(f.other_site->line == 33);
  }
  failure f = with(what::old_register);
  CHECK(f.why == reason::sum_in_flight);
  CHECK(f.other_site == nullptr);
  for (what read : {what::returned, what::other_nan})
    CHECK(with(read).why == reason::none);
  CHECK(with(what::one_lane).why == reason::none);
}

TEST_CASE("a wgmma may not add to what a wait has put elsewhere") {
  wgmma_run r({tessera_matrix_f16, 16, memory::k_major, memory::k_major, true, 16});
  auto with = [&](bool registers_too) {
    return run_program(
        4,
        [&](tessera_cpu_context &ctx) {
          r.ready(ctx);
          registers sums, old;
          std::uint32_t ticket = r.start(ctx, nullptr);
          tickets(ticket, sums);
          old = sums;
          tessera_cpu_wgmma_commit(&ctx);
          tessera_cpu_wgmma_wait(&ctx, 0, r.c.n / 2, sums.data());
          tessera_cpu_wgmma_fence(&ctx);
          r.start(ctx, registers_too ? old.data() : nullptr, registers_too ? 0 : ticket);
        },
        65536);
  };
  for (bool registers_too : {false, true}) {
    failure f = with(registers_too);
    CHECK(f.why == reason::sum_in_flight);
    CHECK(f.site->line == 33);
  }
}

TEST_CASE("a wgmma may not add to registers that are only some of those of another") {
  wgmma_run r({tessera_matrix_f16, 16, memory::k_major, memory::k_major, true, 16});
  failure f = run_program(
      4,
      [&](tessera_cpu_context &ctx) {
        r.ready(ctx);
        registers sums;
        tickets(r.start(ctx, nullptr) + 4, sums); // its second half
        tessera_cpu_wgmma_commit(&ctx);
        r.start(ctx, sums.data());
      },
      65536);
  CHECK(f.why == reason::sum_in_flight);
  CHECK(f.site->line == 33);
}

TEST_CASE("a fence by the reader, after the barrier, is as good as one by the writer") {
  wgmma_run r({tessera_matrix_f16, 16, memory::k_major, memory::k_major, true, 16});
  auto with = [&](bool before) {
    return run_program(
        4,
        [&](tessera_cpu_context &ctx) {
          if (before && ctx.warp != 3)
            tessera_cpu_fence_async(&ctx); // too early for what follows
          r.put_all(ctx);
          tessera_cpu_barrier(&ctx);
          if (!before)
            tessera_cpu_fence_async(&ctx);
          tessera_cpu_wgmma_fence(&ctx);
          r.start(ctx, nullptr);
          tessera_cpu_wgmma_commit(&ctx);
          tessera_cpu_wgmma_wait(&ctx, 0, 0, nullptr);
        },
        65536);
  };
  CHECK(with(false).why == reason::none);
  CHECK(with(true).why == reason::missing_proxy_fence);
}

TEST_CASE("a wgmma that reads elsewhere or as another layout gives another result, or none") {
  wgmma_run r({tessera_matrix_f16, 64, memory::n_major, memory::n_major, false, 64});
  auto with = [&](std::uint64_t change) {
    bool same = true;
    failure f = run_program(
        4,
        [&](tessera_cpu_context &ctx) {
          r.ready(ctx);
          registers sums;
          std::uint32_t ticket = tessera_cpu_wgmma_start(&ctx, &r.matrix, nullptr, r.descriptor(0, r.c.a, 64),
                                                         r.descriptor(r.b_start, r.c.b, r.c.n) ^ change, nullptr, 0);
          tickets(ticket, sums);
          tessera_cpu_wgmma_commit(&ctx);
          tessera_cpu_wgmma_wait(&ctx, 0, r.c.n / 2, sums.data());
          for (unsigned lane = 0; lane < 32; ++lane) {
            double expect = 0;
            for (unsigned x = 0; x < r.k; ++x)
              expect += r.a[(ctx.warp * 16 + lane / 4) * r.k + x] * r.b[x * r.c.n + lane % 4 * 2 + 8];
            same &= sums[4 * 32 + lane] == word_of(expect, false);
          }
        },
        65536);
    return f.why == reason::none && same;
  };
  CHECK(with(0));
  CHECK_FALSE(with(std::uint64_t(3) << 62)); // 128 bytes in the place of 64
  CHECK_FALSE(with(std::uint64_t(1) << 32)); // stride
  CHECK_FALSE(with(1));                      // start
  CHECK_FALSE(with(0x2000));                 // beyond the end
}

// ---- cp.async ------------------------------------------------------------------------------------------------------

namespace {
constexpr tessera_cpu_access copy16{32, 4, 4, 16, 0, {"kernel.cpp", 41, 1}};

struct copier {
  alignas(16) std::uint32_t from[128];
  std::uint32_t offsets[32];
  const void *pointers[32];
  copier() {
    for (unsigned i = 0; i < 128; ++i)
      from[i] = 1000 + i;
    for (unsigned lane = 0; lane < 32; ++lane) {
      offsets[lane] = 16 * lane;
      pointers[lane] = from + 4 * lane;
    }
  }
  void start(tessera_cpu_context &ctx, std::uint64_t mask = ~0u, std::uint64_t reads = ~0u,
             const std::uint32_t *tags = nullptr) {
    tessera_cpu_copy_start(&ctx, &copy16, mask, reads, offsets, pointers, tags);
  }
};
} // namespace

TEST_CASE("copies arrive at the wait of their group, with zeros where nothing is read") {
  copier c;
  CHECK(run_program(1, [&](tessera_cpu_context &ctx) {
          for (unsigned i = 0; i < 128; ++i)
            store(ctx, i / 4, 4 * i, 5);
          tessera_cpu_barrier(&ctx);
          c.start(ctx, 0b0011, 0b0101);
          tessera_cpu_copy_commit(&ctx);
          c.start(ctx, 0b1100, 0b0101);
          tessera_cpu_copy_commit(&ctx);
          tessera_cpu_copy_commit(&ctx); // an empty group counts
          auto raw = [&](unsigned i) {
            std::uint32_t value;
            std::memcpy(&value, ctx.shared + 4 * i, 4);
            return value;
          };
          CHECK(raw(0) == 5);
          tessera_cpu_copy_wait(&ctx, 2);
          CHECK(raw(3) == 1003);
          CHECK(raw(4) == 0);
          CHECK(raw(8) == 5);
          tessera_cpu_copy_wait(&ctx, 0);
          CHECK(raw(8) == 1008);
          CHECK(raw(12) == 0);
          CHECK(raw(16) == 5);
          tessera_cpu_barrier(&ctx);
          CHECK(load(ctx, 9, 32) == 1008);
        }).why == reason::none);
}

TEST_CASE("what a copy is used wrongly for is reported") {
  copier c;
  struct steps {
    bool read_before = false, barrier_before = true, wait = true, barrier_after = true, overwrite = false,
         change = false, commit = true, twice = false;
  };
  auto with = [&](steps s) {
    return run_program(2, [&](tessera_cpu_context &ctx) {
      if (ctx.warp == 0)
        store(ctx, 0, 64, 1);
      tessera_cpu_barrier(&ctx);
      if (s.read_before && ctx.warp == 0)
        load(ctx, 3, 64);
      if (s.barrier_before)
        tessera_cpu_barrier(&ctx);
      if (ctx.warp == 1) {
        c.start(ctx);
        if (s.twice)
          c.start(ctx);
        if (s.commit)
          tessera_cpu_copy_commit(&ctx);
        if (s.overwrite)
          store(ctx, 4, 64, 2);
        if (s.change)
          ++c.from[7];
        if (s.wait)
          tessera_cpu_copy_wait(&ctx, 0);
      }
      if (s.barrier_after)
        tessera_cpu_barrier(&ctx);
      if (ctx.warp == 1)
        load(ctx, 5, 64); // the copy was lane 4's
    });
  };
  CHECK(with({}).why == reason::none);
  CHECK(with({.read_before = true}).why == reason::none);
  CHECK(with({.read_before = true, .barrier_before = false}).why == reason::write_after_read);
  failure f = with({.wait = false});
  CHECK(f.why == reason::read_in_flight);
  CHECK(f.site->line == 9);
  CHECK(f.other_site->line == 41);
  CHECK(f.other_warp == 1);
  CHECK(f.other_lane == 4);
  CHECK(with({.commit = false}).why == reason::read_in_flight);
  CHECK(with({.barrier_after = false}).why == reason::read_after_write);
  CHECK(with({.overwrite = true}).why == reason::write_in_flight);
  CHECK(with({.twice = true}).why == reason::write_in_flight);
  CHECK(with({.change = true}).why == reason::source_changed);
}

TEST_CASE("copies check elements, bounds, alignment and addresses") {
  copier c;
  std::uint32_t tags[4 * 32];
  for (unsigned i = 0; i < 128; ++i)
    tags[i % 4 * 32 + i / 4] = i;
  auto with = [&](std::uint32_t tag) {
    return run_program(1, [&](tessera_cpu_context &ctx) {
      c.start(ctx, ~0u, ~0u, tags);
      tessera_cpu_copy_commit(&ctx);
      tessera_cpu_copy_wait(&ctx, 0);
      tessera_cpu_barrier(&ctx);
      load(ctx, 0, 68, tag);
    });
  };
  CHECK(with(17).why == reason::none);
  failure f = with(18);
  CHECK(f.why == reason::wrong_element);
  CHECK(f.found == 17);
  auto place = [](auto change) {
    copier d;
    change(d);
    return run_program(1, [&](tessera_cpu_context &ctx) { d.start(ctx); }).why;
  };
  CHECK(place([](copier &d) { d.offsets[3] = 1016; }) == reason::out_of_bounds);
  CHECK(place([](copier &d) { d.offsets[3] = 8 + 512; }) == reason::misaligned_shared);
  CHECK(place([](copier &d) { d.pointers[3] = d.from + 1; }) == reason::misaligned_global);
  CHECK(place([](copier &d) { d.pointers[3] = reinterpret_cast<void *>(64); }) == reason::memory_fault);
}

TEST_CASE("wgmma reads what copies brought without a proxy fence, but not before it arrived") {
  wgmma_run r({tessera_matrix_f16, 8, memory::k_major, memory::k_major, true, 16});
  alignas(16) std::uint16_t image[8 * 16];
  for (unsigned row = 0; row < 8; ++row)
    for (unsigned at = 0; at < 16; ++at)
      image[r.offset(0, memory::k_major, 8, row, at) / 2] =
          std::uint16_t(encode(tessera_matrix_f16, r.b[at * 8 + row]));
  auto with = [&](bool wait) {
    return run_program(4, [&](tessera_cpu_context &ctx) {
      if (ctx.warp == 0) {
        std::uint32_t offsets[32];
        const void *pointers[32];
        for (unsigned lane = 0; lane < 16; ++lane) {
          offsets[lane] = 16 * lane;
          pointers[lane] = image + 8 * lane;
        }
        tessera_cpu_copy_start(&ctx, &copy16, 0xffff, 0xffff, offsets, pointers, nullptr);
        tessera_cpu_copy_commit(&ctx);
        if (wait)
          tessera_cpu_copy_wait(&ctx, 0);
      }
      tessera_cpu_barrier(&ctx);
      tessera_cpu_wgmma_fence(&ctx);
      registers sums;
      tickets(r.start(ctx, nullptr), sums);
      tessera_cpu_wgmma_commit(&ctx);
      tessera_cpu_wgmma_wait(&ctx, 0, 4, sums.data());
      r.check(ctx, sums.data(), 0, 1);
    });
  };
  CHECK(with(true).why == reason::none);
  CHECK(with(false).why == reason::read_in_flight);
}
