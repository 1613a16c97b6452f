// The emulated mma.sync, ldmatrix and stmatrix against tables of the PTX ISA.
#include <vector>

#include "cpu/matrix.h"
#include "cpu_program.h"
#include "matrix_numbers.h"

using namespace tessera;
using namespace tessera::test;
using cpu::failure;
using reason = failure::reason;

namespace {

// ---- fragments, as the PTX ISA lists them for each instruction -----------------------------------------------------

struct place {
  unsigned row, column;
};
struct fragments {
  std::uint32_t type, m, k;
  unsigned a_elements, b_elements;
  place (*a)(unsigned i, unsigned group, unsigned thread);
  place (*b)(unsigned i, unsigned group, unsigned thread);
};

const fragments every_mma[] = {
    {tessera_matrix_f16, 16, 8, 4, 2,
     [](unsigned i, unsigned g, unsigned t) {
       return place{i < 2 ? g : g + 8, t * 2 + (i & 1)};
     },
     [](unsigned i, unsigned g, unsigned t) {
       return place{t * 2 + i, g};
     }},
    {tessera_matrix_f16, 16, 16, 8, 4,
     [](unsigned i, unsigned g, unsigned t) {
       return place{i < 2 || (4 <= i && i < 6) ? g : g + 8, i < 4 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8};
     },
     [](unsigned i, unsigned g, unsigned t) {
       return place{i < 2 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8, g};
     }},
    {tessera_matrix_bf16, 16, 16, 8, 4,
     [](unsigned i, unsigned g, unsigned t) {
       return place{i < 2 || (4 <= i && i < 6) ? g : g + 8, i < 4 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8};
     },
     [](unsigned i, unsigned g, unsigned t) {
       return place{i < 2 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8, g};
     }},
    {tessera_matrix_tf32, 16, 4, 2, 1,
     [](unsigned i, unsigned g, unsigned t) {
       return place{i == 0 ? g : g + 8, t};
     },
     [](unsigned, unsigned g, unsigned t) {
       return place{t, g};
     }},
    {tessera_matrix_tf32, 16, 8, 4, 2,
     [](unsigned i, unsigned g, unsigned t) {
       return place{i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4};
     },
     [](unsigned i, unsigned g, unsigned t) {
       return place{i == 0 ? t : t + 4, g};
     }},
    {tessera_matrix_s8, 16, 16, 8, 4,
     [](unsigned i, unsigned g, unsigned t) {
       return place{i < 4 ? g : g + 8, t * 4 + (i & 3)};
     },
     [](unsigned i, unsigned g, unsigned t) {
       return place{t * 4 + i, g};
     }},
    {tessera_matrix_s8, 16, 32, 16, 8,
     [](unsigned i, unsigned g, unsigned t) {
       return place{i < 4 || (8 <= i && i < 12) ? g : g + 8, i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16};
     },
     [](unsigned i, unsigned g, unsigned t) {
       return place{i < 4 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16, g};
     }},
    {tessera_matrix_f64, 8, 4, 1, 1,
     [](unsigned, unsigned g, unsigned t) {
       return place{g, t};
     },
     [](unsigned, unsigned g, unsigned t) {
       return place{t, g};
     }},
    {tessera_matrix_f64, 16, 4, 2, 1,
     [](unsigned i, unsigned g, unsigned t) {
       return place{i == 0 ? g : g + 8, t};
     },
     [](unsigned, unsigned g, unsigned t) {
       return place{t, g};
     }},
    {tessera_matrix_f64, 16, 8, 4, 2,
     [](unsigned i, unsigned g, unsigned t) {
       return place{i % 2 == 0 ? g : g + 8, i < 2 ? t : t + 4};
     },
     [](unsigned i, unsigned g, unsigned t) {
       return place{i * 4 + t, g};
     }},
    {tessera_matrix_f64, 16, 16, 8, 4,
     [](unsigned i, unsigned g, unsigned t) {
       return place{i % 2 == 0 ? g : g + 8, i % 2 == 0 ? i * 2 + t : i * 2 - 2 + t};
     },
     [](unsigned i, unsigned g, unsigned t) {
       return place{t + i * 4, g};
     }},
};

template <class Element> void check_mma(fragments f, std::uint32_t type) {
  constexpr bool wide = sizeof(Element) == 8;
  bool integer = type == tessera_matrix_s8 || type == tessera_matrix_u8;
  numbers random;
  unsigned bytes = cpu::matrix_bytes(type), per_word = wide ? 1 : 4 / bytes;
  std::vector<int> a(f.m * f.k), b(f.k * 8), c(f.m * 8);
  for (auto *list : {&a, &b, &c})
    for (int &v : *list)
      v = random(type);
  std::vector<std::byte> a_registers(f.a_elements * bytes * 32), b_registers(f.b_elements * bytes * 32);
  std::vector<Element> sums(f.m * 8);
  auto put = [&](std::vector<std::byte> &registers, unsigned i, unsigned lane, int value) {
    std::byte *at = registers.data() + (i / per_word * 32 + lane) * per_word * bytes + i % per_word * bytes;
    std::uint32_t code = encode(type, value);
    if (double number = value; wide)
      std::memcpy(at, &number, 8);
    else
      std::memcpy(at, &code, bytes);
  };
  auto c_place = [&](unsigned i, unsigned lane) {
    return place{i < 2 ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (i & 1)};
  };
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < f.a_elements; ++i) {
      place at = f.a(i, lane / 4, lane % 4);
      put(a_registers, i, lane, a[at.row * f.k + at.column]);
    }
    for (unsigned i = 0; i < f.b_elements; ++i) {
      place at = f.b(i, lane / 4, lane % 4);
      put(b_registers, i, lane, b[at.row * 8 + at.column]);
    }
    for (unsigned i = 0; i < f.m / 4; ++i) {
      place at = c_place(i, lane);
      if constexpr (wide)
        sums[i * 32 + lane] = c[at.row * 8 + at.column];
      else
        sums[i * 32 + lane] = word_of(c[at.row * 8 + at.column], integer);
    }
  }
  tessera_cpu_matrix matrix{f.m, 8, f.k, type, type, 0, 0, tessera_unit_nvidia, {"", 0, 0}, {}};
  tessera_cpu_mma(nullptr, &matrix, a_registers.data(), b_registers.data(), sums.data());
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < f.m / 4; ++i) {
      place at = c_place(i, lane);
      double expect = c[at.row * 8 + at.column];
      for (unsigned x = 0; x < f.k; ++x)
        expect += a[at.row * f.k + x] * b[x * 8 + at.column];
      Element want;
      if constexpr (wide)
        want = expect;
      else
        want = word_of(expect, integer);
      if (sums[i * 32 + lane] != want)
        FAIL_CHECK("type " << type << " k " << f.k << " lane " << lane << " register " << i);
    }
}

} // namespace

TEST_CASE("every small float means what its format says") {
  auto check = [](std::uint32_t type, unsigned count, int exponent_bits, int mantissa_bits, bool finite_only) {
    for (unsigned i = 0; i < count; ++i) {
      std::uint16_t half = std::uint16_t(i);
      std::uint8_t byte = std::uint8_t(i);
      std::uint32_t out[8] = {};
      std::uint16_t halves[8] = {half, half, half, half, half, half, half, half};
      if (count > 256)
        cpu::widen(type, halves, out, 8); // by the host's instruction, where it has one
      else
        cpu::widen(type, &byte, out, 1);
      double expect = value_of(i, exponent_bits, mantissa_bits, finite_only), got = std::bit_cast<float>(out[0]);
      if (!(std::isnan(expect) ? std::isnan(got) : got == expect && std::signbit(got) == std::signbit(expect)))
        FAIL_CHECK(type << ": " << i << " is " << got << ", not " << expect);
      if (count > 256) {
        cpu::widen(type, &half, out, 1);
        if (!std::isnan(expect) && std::bit_cast<float>(out[0]) != expect)
          FAIL_CHECK(type << ": " << i << " is " << std::bit_cast<float>(out[0]) << ", not " << expect);
      }
    }
  };
  check(tessera_matrix_e4m3, 256, 4, 3, true);
  check(tessera_matrix_e5m2, 256, 5, 2, false);
  check(tessera_matrix_f16, 65536, 5, 10, false);
  check(tessera_matrix_bf16, 65536, 8, 7, false);
}

TEST_CASE("mma.sync multiplies the fragments of the PTX ISA") {
  for (const fragments &f : every_mma) {
    if (f.type == tessera_matrix_f64)
      check_mma<double>(f, f.type);
    else
      check_mma<std::uint32_t>(f, f.type);
    if (f.type == tessera_matrix_s8)
      for (auto type : {tessera_matrix_u8, tessera_matrix_e4m3, tessera_matrix_e5m2})
        check_mma<std::uint32_t>(f, type);
  }
}

TEST_CASE("products are exact, sums are f32 in the order of k, integer sums wrap") {
  auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  float a = 1 + 0x1p-10f, b = 1 - 0x1p-11f; // their product needs 22 bits
  std::vector<std::uint32_t> left{bits(a)}, right(8, bits(b)), product(8, bits(-1));
  cpu::multiply_add(false, 1, 8, 1, left.data(), right.data(), product.data());
  CHECK(double(std::bit_cast<float>(product[0])) == double(a) * double(b) - 1);
  // 2^24 + 1 + 1 in f32, one after the other, stays 2^24; the other way round it does not.
  std::vector<float> ones{1, 1, 1}, up(24), down(24);
  for (int i = 0; i < 8; ++i) {
    up[i] = down[16 + i] = 0x1p24f;
    up[8 + i] = up[16 + i] = down[i] = down[8 + i] = 1;
  }
  auto sum = [&](std::vector<float> &values) {
    std::vector<float> result(8);
    cpu::multiply_add(false, 1, 8, 3, reinterpret_cast<std::uint32_t *>(ones.data()),
                      reinterpret_cast<std::uint32_t *>(values.data()),
                      reinterpret_cast<std::uint32_t *>(result.data()));
    return result[5];
  };
  CHECK(sum(up) == 0x1p24f);
  CHECK(sum(down) == 0x1p24f + 2);
  std::vector<std::uint32_t> x{0x7fffffff}, y(8, 2), z(8, 3);
  cpu::multiply_add(true, 1, 8, 1, x.data(), y.data(), z.data());
  CHECK(z[7] == 1);
}

// ---- ldmatrix, stmatrix --------------------------------------------------------------------------------------------

namespace {
constexpr tessera_cpu_access rows16{32, 2, 8, 16, 0, {"kernel.cpp", 21, 1}};

/// 32 rows of 8 elements of 16 bits, element (row, column) of matrix i being 64 i + 8 row + column; row r at
/// `row_offset(r)`.
void fill_matrices(tessera_cpu_context &ctx, auto row_offset, bool tagged = false) {
  static constexpr tessera_cpu_access half{32, 2, 1, 2, 0, {"kernel.cpp", 20, 1}};
  for (unsigned column = 0; column < 8; ++column) {
    std::uint32_t offsets[32], tags[32];
    std::uint16_t data[32];
    for (unsigned row = 0; row < 32; ++row) {
      offsets[row] = row_offset(row) + 2 * column;
      tags[row] = 8 * row + column;
      data[row] = std::uint16_t(8 * row + column);
    }
    tessera_cpu_shared_store(&ctx, &half, ~0u, offsets, tagged ? tags : nullptr, data);
  }
}
std::uint32_t swizzled(std::uint32_t row) { return (row ^ (row >> 2 & 3)) * 16; }
} // namespace

TEST_CASE("ldmatrix gives a lane two elements of row lane / 4, or of that column when transposed") {
  for (unsigned count : {1u, 2u, 4u})
    for (bool transposed : {false, true}) {
      std::uint32_t registers[4 * 32];
      CHECK(run_program(1, [&](tessera_cpu_context &ctx) {
              fill_matrices(ctx, swizzled);
              tessera_cpu_barrier(&ctx);
              std::uint32_t offsets[32];
              for (unsigned lane = 0; lane < 32; ++lane)
                offsets[lane] = lane < 8 * count ? swizzled(lane) : 12345; // not looked at
              tessera_cpu_load_matrix(&ctx, &rows16, count, transposed, offsets, nullptr, registers);
            }).why == reason::none);
      for (unsigned i = 0; i < count; ++i)
        for (unsigned lane = 0; lane < 32; ++lane)
          for (unsigned half = 0; half < 2; ++half) {
            unsigned row = lane / 4, column = lane % 4 * 2 + half;
            if (transposed)
              std::swap(row, column);
            CHECK((registers[i * 32 + lane] >> 16 * half & 0xffff) == 64 * i + 8 * row + column);
          }
    }
}

TEST_CASE("stmatrix is the reverse of ldmatrix") {
  for (bool transposed : {false, true}) {
    std::uint32_t out[4 * 32], in[4 * 32];
    for (unsigned i = 0; i < 128; ++i)
      out[i] = i * 0x00010003u + 5;
    CHECK(run_program(1, [&](tessera_cpu_context &ctx) {
            std::uint32_t offsets[32];
            for (unsigned lane = 0; lane < 32; ++lane)
              offsets[lane] = swizzled(lane);
            tessera_cpu_store_matrix(&ctx, &rows16, 4, transposed, offsets, nullptr, out);
            tessera_cpu_barrier(&ctx);
            tessera_cpu_load_matrix(&ctx, &rows16, 4, transposed, offsets, nullptr, in);
          }).why == reason::none);
    CHECK(std::memcmp(out, in, sizeof in) == 0);
  }
}

TEST_CASE("ldmatrix reports races, foreign elements, bounds and alignment") {
  auto with = [](auto row_offset, bool barrier, const std::uint32_t *tags = nullptr) {
    return run_program(1, [&](tessera_cpu_context &ctx) {
      fill_matrices(ctx, swizzled, true);
      if (barrier)
        tessera_cpu_barrier(&ctx);
      std::uint32_t offsets[32], registers[4 * 32];
      for (unsigned lane = 0; lane < 32; ++lane)
        offsets[lane] = row_offset(lane);
      tessera_cpu_load_matrix(&ctx, &rows16, 4, 0, offsets, tags, registers);
    });
  };
  std::uint32_t tags[4 * 2 * 32];
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned half = 0; half < 2; ++half)
      for (unsigned lane = 0; lane < 32; ++lane)
        tags[(i * 2 + half) * 32 + lane] = 64 * i + lane / 4 * 8 + lane % 4 * 2 + half;
  CHECK(with(swizzled, true, tags).why == reason::none);
  failure f = with([](unsigned row) { return row * 16; }, true, tags); // the wrong swizzle
  CHECK(f.why == reason::wrong_element);
  CHECK(f.site->line == 21);
  CHECK(f.other_site->line == 20);
  CHECK(with(swizzled, false).why == reason::read_after_write);
  CHECK(with([](unsigned row) { return row * 16 + 8; }, true).why == reason::misaligned_shared);
  CHECK(with([](unsigned row) { return row * 48; }, true).why == reason::out_of_bounds);
}
