// The emulated MFMA and WMMA: against what AMD publishes, against the compiler's layouts, and as products. The
// published maps are entered here by hand.
#include "tessera/ir/MatrixInstructions.h"

#include <string_view>
#include <vector>

#include "cpu/matrix.h"
#include "cpu_program.h"
#include "matrix_numbers.h"

using namespace tessera;
using namespace tessera::test;
using cpu::amd_place;
using reason = cpu::failure::reason;

namespace {

tessera_cpu_matrix instruction(std::uint32_t unit, unsigned m, unsigned n, unsigned k, std::uint32_t type) {
  return {m, n, k, type, type, 0, 0, unit, {"kernel.cpp", 30, 5}};
}

// ---- what is published ---------------------------------------------------------------------------------------------

/// A register (of 32 bits; f64: of 64) and the lane that hold an element, and the element's lowest bit.
struct home {
  unsigned reg, lane, bit;
  bool operator==(const home &) const = default;
};
struct published {
  std::string_view name, where;
  tessera_cpu_matrix instruction;
  home (*a)(unsigned i, unsigned k); ///< B[k][j] is where A[j][k] is, in all of them
  home (*c)(unsigned i, unsigned j);
};

// "Matrix element to register mapping" of the AMD matrix instruction calculator (--detail-instruction), unless another
// place is named. WMMA of RDNA3 also has each element of A and B 16 lanes further.
const published tables[] = {
    {"v_mfma_f32_32x32x8_f16", "calculator, CDNA3", instruction(tessera_unit_cdna3, 32, 32, 8, tessera_matrix_f16),
     [](unsigned i, unsigned k) {
       return home{k / 2 % 2, 32 * (k / 4) + i, 16 * (k % 2)};
     },
     [](unsigned i, unsigned j) {
       return home{4 * (i / 8) + i % 4, 32 * (i / 4) % 64 + j, 0};
     }},
    {"v_mfma_f32_16x16x16_f16", "calculator, CDNA2", instruction(tessera_unit_cdna2, 16, 16, 16, tessera_matrix_f16),
     [](unsigned i, unsigned k) {
       return home{k / 2 % 2, 16 * (k / 4) + i, 16 * (k % 2)};
     },
     [](unsigned i, unsigned j) {
       return home{i % 4, 16 * (i / 4) + j, 0};
     }},
    {"v_mfma_f32_16x16x32_fp8_fp8", "calculator, CDNA3",
     instruction(tessera_unit_cdna3, 16, 16, 32, tessera_matrix_e4m3fnuz),
     [](unsigned i, unsigned k) {
       return home{k / 4 % 2, 16 * (k / 8) + i, 8 * (k % 4)};
     },
     [](unsigned i, unsigned j) {
       return home{i % 4, 16 * (i / 4) + j, 0};
     }},
    {"v_mfma_f32_16x16x4_f32", "CDNA3 ISA, 7.1: one element of k in each quarter of the lanes",
     instruction(tessera_unit_cdna3, 16, 16, 4, tessera_matrix_f32),
     [](unsigned i, unsigned k) {
       return home{0, 16 * k + i, 0};
     },
     [](unsigned i, unsigned j) {
       return home{i % 4, 16 * (i / 4) + j, 0};
     }},
    // f64: four rows of one register lie in the four quarters of the lanes, as the calculator prints for 4x4x4.
    {"v_mfma_f64_16x16x4_f64", "CDNA3 ISA, 7.1", instruction(tessera_unit_cdna3, 16, 16, 4, tessera_matrix_f64),
     [](unsigned i, unsigned k) {
       return home{0, 16 * k + i, 0};
     },
     [](unsigned i, unsigned j) {
       return home{i / 4, 16 * (i % 4) + j, 0};
     }},
    {"v_mfma_f32_32x32x16_f16", "CDNA4 ISA, 7.1: eight elements of k in each half",
     instruction(tessera_unit_cdna3, 32, 32, 16, tessera_matrix_f16),
     [](unsigned i, unsigned k) {
       return home{k % 8 / 2, 32 * (k / 8) + i, 16 * (k % 2)};
     },
     [](unsigned i, unsigned j) {
       return home{4 * (i / 8) + i % 4, 32 * (i / 4 % 2) + j, 0};
     }},
    {"v_wmma_i32_16x16x16_iu8", "calculator, RDNA3", instruction(tessera_unit_rdna3, 16, 16, 16, tessera_matrix_s8),
     [](unsigned i, unsigned k) {
       return home{k / 4, i, 8 * (k % 4)};
     },
     [](unsigned i, unsigned j) {
       return home{16 * i / 32, 16 * i % 32 + j, 0};
     }},
    {"v_wmma_f32_16x16x16_f16", "RDNA3 ISA, 7.9", instruction(tessera_unit_rdna3, 16, 16, 16, tessera_matrix_f16),
     [](unsigned i, unsigned k) {
       return home{k / 2, i, 16 * (k % 2)};
     },
     [](unsigned i, unsigned j) {
       return home{i / 2, 16 * (i % 2) + j, 0};
     }},
    {"v_wmma_f32_16x16x16_f16", "RDNA4 ISA, 7.12; GPUOpen, Using the matrix cores of AMD RDNA 4",
     instruction(tessera_unit_rdna4, 16, 16, 16, tessera_matrix_f16),
     [](unsigned i, unsigned k) {
       return home{k % 8 / 2, 16 * (k / 8) + i, 16 * (k % 2)};
     },
     [](unsigned i, unsigned j) {
       return home{i % 8, 16 * (i / 8) + j, 0};
     }},
    {"v_wmma_f32_16x16x16_fp8_fp8", "RDNA4 ISA, 7.12", instruction(tessera_unit_rdna4, 16, 16, 16, tessera_matrix_e4m3),
     [](unsigned i, unsigned k) {
       return home{k % 8 / 4, 16 * (k / 8) + i, 8 * (k % 4)};
     },
     [](unsigned i, unsigned j) {
       return home{i % 8, 16 * (i / 8) + j, 0};
     }},
};

// ---- all instructions ----------------------------------------------------------------------------------------------

struct atom {
  MatrixInstruction layout;
  tessera_cpu_matrix instruction;
};

std::vector<atom> every_atom() {
  std::vector<atom> list;
  auto mfma = [&](unsigned version, unsigned m, unsigned k, std::initializer_list<std::uint32_t> types) {
    for (std::uint32_t type : types)
      list.push_back({{MatrixFamily::Mfma, version, m, m, k, 8 * cpu::matrix_bytes(type)},
                      instruction(version == 2 ? tessera_unit_cdna2 : tessera_unit_cdna3, m, m, k, type)});
  };
  for (unsigned version : {2u, 3u, 4u}) {
    mfma(version, 32, 2, {tessera_matrix_f32});
    mfma(version, 16, 4, {tessera_matrix_f32, tessera_matrix_f64});
    mfma(version, 32, 8, {tessera_matrix_f16, tessera_matrix_bf16});
    mfma(version, 16, 16, {tessera_matrix_f16, tessera_matrix_bf16});
  }
  mfma(2, 32, 8, {tessera_matrix_s8});
  mfma(2, 16, 16, {tessera_matrix_s8});
  mfma(3, 32, 4, {tessera_matrix_tf32});
  mfma(3, 16, 8, {tessera_matrix_tf32});
  mfma(3, 32, 16, {tessera_matrix_s8, tessera_matrix_e4m3fnuz, tessera_matrix_e5m2fnuz});
  mfma(3, 16, 32, {tessera_matrix_s8, tessera_matrix_e4m3fnuz, tessera_matrix_e5m2fnuz});
  mfma(4, 32, 16,
       {tessera_matrix_f16, tessera_matrix_bf16, tessera_matrix_s8, tessera_matrix_e4m3, tessera_matrix_e5m2});
  mfma(4, 16, 32,
       {tessera_matrix_f16, tessera_matrix_bf16, tessera_matrix_s8, tessera_matrix_e4m3, tessera_matrix_e5m2});
  mfma(4, 32, 32, {tessera_matrix_s8});
  mfma(4, 16, 64, {tessera_matrix_s8});
  mfma(4, 32, 64, {tessera_matrix_e4m3, tessera_matrix_e5m2});
  mfma(4, 16, 128, {tessera_matrix_e4m3, tessera_matrix_e5m2});
  for (auto type :
       {tessera_matrix_f16, tessera_matrix_bf16, tessera_matrix_s8, tessera_matrix_e4m3, tessera_matrix_e5m2}) {
    if (type != tessera_matrix_e4m3 && type != tessera_matrix_e5m2)
      list.push_back({{MatrixFamily::Wmma, 1, 16, 16, 16, 8 * cpu::matrix_bytes(type)},
                      instruction(tessera_unit_rdna3, 16, 16, 16, type)});
    list.push_back({{MatrixFamily::Wmma, 2, 16, 16, 16, 8 * cpu::matrix_bytes(type)},
                    instruction(tessera_unit_rdna4, 16, 16, 16, type)});
  }
  return list;
}

amd_place at(const LinearLayout &layout, unsigned reg, unsigned lane) {
  auto coords = layout.coords(layout.apply({{HwDim::Register, reg}, {HwDim::Lane, lane}}));
  return {unsigned(coords[0]), unsigned(coords[1])};
}

std::uint32_t code_of(std::uint32_t type, int value) {
  switch (type) { // half the value of the other formats' codes
  case tessera_matrix_e4m3fnuz: return encode_small(2 * value, 4, 3);
  case tessera_matrix_e5m2fnuz: return encode_small(2 * value, 5, 2);
  case tessera_matrix_f32: return std::bit_cast<std::uint32_t>(float(value));
  default: return encode(type, value);
  }
}

/// The registers of an instruction, filled by the compiler's layouts.
struct registers {
  std::vector<std::byte> a, b, c;
  unsigned lanes, bytes;

  registers(const atom &x, const std::vector<int> &left, const std::vector<int> &right, const std::vector<int> &sums)
      : lanes(x.layout.lanes()), bytes(cpu::matrix_bytes(x.instruction.a)) {
    const MatrixInstruction &i = x.layout;
    auto fill = [&](MatrixOperand operand, std::vector<std::byte> &out, const std::vector<int> &values,
                    unsigned columns) {
      LinearLayout layout = fragmentOf(i, operand);
      bool sum = operand == MatrixOperand::C, wide = bytes == 8;
      unsigned size = sum && !wide ? 4 : bytes, per_word = wide ? 1 : 4 / size, count = layout.size(HwDim::Register);
      out.resize(count * lanes * size);
      for (unsigned reg = 0; reg < count; ++reg)
        for (unsigned lane = 0; lane < lanes; ++lane) {
          amd_place p = at(layout, reg, lane);
          int value = values[p.row * columns + p.column];
          double number = value;
          std::uint32_t code = sum ? word_of(value, cpu::is_integer(x.instruction.a)) : code_of(x.instruction.a, value);
          std::byte *to = out.data() + (reg / per_word * lanes + lane) * per_word * size + reg % per_word * size;
          std::memcpy(to, wide ? static_cast<const void *>(&number) : &code, size);
        }
    };
    fill(MatrixOperand::A, a, left, i.k);
    fill(MatrixOperand::B, b, right, i.n);
    fill(MatrixOperand::C, c, sums, i.n);
  }
};

cpu::failure run(const tessera_cpu_matrix &i, registers &r) {
  return run_program(1,
                     [&](tessera_cpu_context &ctx) { tessera_cpu_mma(&ctx, &i, r.a.data(), r.b.data(), r.c.data()); });
}

} // namespace

TEST_CASE("MFMA and WMMA have elements where AMD says") {
  for (const published &p : tables) {
    INFO(p.name << " (" << p.where << ")");
    const tessera_cpu_matrix &i = p.instruction;
    unsigned bytes = cpu::matrix_bytes(i.a), per_word = bytes == 8 ? 1 : 4 / bytes, lanes = cpu::amd_lanes(i);
    unsigned wrong = 0, seen = 0;
    for (bool is_b : {false, true})
      for (unsigned outer = 0; outer < i.m; ++outer)
        for (unsigned k = 0; k < i.k; ++k) {
          home h = p.a(outer, k);
          unsigned element = h.reg * per_word + h.bit / (8 * bytes);
          wrong += cpu::amd_operand(i, is_b, element, h.lane) != amd_place{outer, k};
          if (i.unit == tessera_unit_rdna3)
            wrong += cpu::amd_operand(i, is_b, element, h.lane + 16) != amd_place{outer, k};
          seen += element < cpu::amd_elements(i, is_b);
        }
    for (unsigned row = 0; row < i.m; ++row)
      for (unsigned column = 0; column < i.n; ++column) {
        home h = p.c(row, column);
        wrong += cpu::amd_sum(i, h.reg, h.lane) != amd_place{row, column};
        seen += h.reg < i.m * i.n / lanes && h.lane < lanes;
      }
    CHECK(wrong == 0);
    CHECK(seen == 2 * i.m * i.k + i.m * i.n);
  }
}

TEST_CASE("the compiler's layouts of MFMA and WMMA are those of the executor") {
  for (const atom &x : every_atom()) {
    const MatrixInstruction &i = x.layout;
    INFO("version " << i.version << " " << i.m << "x" << i.n << "x" << i.k << " type " << x.instruction.a);
    for (MatrixOperand operand : {MatrixOperand::A, MatrixOperand::B, MatrixOperand::C}) {
      LinearLayout layout = fragmentOf(i, operand);
      CHECK(layout.size(HwDim::Lane) == i.lanes());
      bool sum = operand == MatrixOperand::C, is_b = operand == MatrixOperand::B;
      CHECK(layout.size(HwDim::Register) == (sum ? i.m * i.n / i.lanes() : cpu::amd_elements(x.instruction, is_b)));
      unsigned wrong = 0;
      for (unsigned reg = 0; reg < layout.size(HwDim::Register); ++reg)
        for (unsigned lane = 0; lane < i.lanes(); ++lane) {
          amd_place ours = at(layout, reg, lane);
          amd_place theirs =
              sum ? cpu::amd_sum(x.instruction, reg, lane) : cpu::amd_operand(x.instruction, is_b, reg, lane);
          wrong += (is_b ? amd_place{ours.column, ours.row} : ours) != theirs;
        }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("MFMA and WMMA multiply") {
  for (const atom &x : every_atom()) {
    const MatrixInstruction &i = x.layout;
    INFO("version " << i.version << " " << i.m << "x" << i.n << "x" << i.k << " type " << x.instruction.a);
    numbers random;
    std::vector<int> a(i.m * i.k), b(i.k * i.n), c(i.m * i.n);
    for (auto *list : {&a, &b, &c})
      for (int &v : *list)
        v = random(x.instruction.a);
    registers r(x, a, b, c);
    CHECK(run(x.instruction, r).why == reason::none);
    std::vector<int> sums(c);
    for (unsigned row = 0; row < i.m; ++row)
      for (unsigned column = 0; column < i.n; ++column)
        for (unsigned k = 0; k < i.k; ++k)
          sums[row * i.n + column] += a[row * i.k + k] * b[k * i.n + column];
    CHECK(r.c == registers(x, a, b, sums).c); // small integers: exact in every type
  }
}

TEST_CASE("8-bit floats without infinities and -0 have half the values of the others' codes") {
  for (auto [type, exponent, mantissa] : {std::tuple(tessera_matrix_e4m3fnuz, 4, 3), {tessera_matrix_e5m2fnuz, 5, 2}})
    for (unsigned i = 0; i < 256; ++i) {
      auto code = std::uint8_t(i);
      std::uint32_t bits = 0;
      cpu::widen(type, &code, &bits, 1);
      float got = std::bit_cast<float>(bits);
      if (i == 128) {
        CHECK(std::isnan(got));
        continue;
      }
      int e = int(i >> mantissa) & ((1 << exponent) - 1), m = int(i) & ((1 << mantissa) - 1),
          bias = 1 << (exponent - 1);
      double expect = e ? std::ldexp((1 << mantissa) + m, e - bias - mantissa) : std::ldexp(m, 1 - bias - mantissa);
      CHECK(got == (i & 128 ? -expect : expect));
    }
  std::uint8_t largest[] = {0x7f};
  std::uint32_t bits = 0;
  cpu::widen(tessera_matrix_e4m3fnuz, largest, &bits, 1);
  CHECK(std::bit_cast<float>(bits) == 240);
  cpu::widen(tessera_matrix_e5m2fnuz, largest, &bits, 1);
  CHECK(std::bit_cast<float>(bits) == 57344);
}

TEST_CASE("CDNA2 takes denormals of f16 and bf16 as zeros, CDNA3 does not") {
  for (auto [unit, keeps] : {std::pair(tessera_unit_cdna2, false), {tessera_unit_cdna3, true}}) {
    atom x{{MatrixFamily::Mfma, 2, 16, 16, 16, 16}, instruction(unit, 16, 16, 16, tessera_matrix_f16)};
    std::vector<int> a(256, 1), b(256, 1), c(256, 0);
    registers r(x, a, b, c);
    for (std::size_t i = 0; i < r.a.size(); i += 2) {
      std::uint16_t denormal = 0x0200; // 2^-15
      std::memcpy(&r.a[i], &denormal, 2);
    }
    CHECK(run(x.instruction, r).why == reason::none);
    float sum;
    std::memcpy(&sum, r.c.data(), 4);
    CHECK(sum == (keeps ? 16 * 0x1p-15f : 0));
    // Sums below 2^-126.
    registers small(x, a, std::vector<int>(256, 0), c);
    std::uint32_t tiny = 0x00400000;
    std::memcpy(small.c.data(), &tiny, 4);
    CHECK(run(x.instruction, small).why == reason::none);
    std::uint32_t left;
    std::memcpy(&left, small.c.data(), 4);
    CHECK(left == (keeps ? tiny : 0));
  }
}

TEST_CASE("WMMA of RDNA3 wants its operands in both halves of the lanes") {
  atom x{{MatrixFamily::Wmma, 1, 16, 16, 16, 16}, instruction(tessera_unit_rdna3, 16, 16, 16, tessera_matrix_f16)};
  std::vector<int> a(256, 1), b(256, 2), c(256, 0);
  registers r(x, a, b, c);
  r.b[4 * (3 * 32 + 21)] ^= std::byte(1); // register 3 of lane 21
  cpu::failure f = run(x.instruction, r);
  CHECK(f.why == reason::unequal_halves);
  CHECK(f.lane == 21);
  CHECK(f.site->line == 30);
}

TEST_CASE("a transposing load gives lane i of 16 element i of four rows") {
  static constexpr tessera_cpu_access halves{64, 2, 1, 2, 0, {"kernel.cpp", 20, 1}},
      access{64, 2, 4, 8, 0, {"kernel.cpp", 21, 1}};
  // 16 rows of 16 elements, element (row, column) being 16 row + column; row r begins at byte 40 r.
  auto with = [&](unsigned shift, bool barrier, std::uint32_t *registers, const std::uint32_t *tags = nullptr) {
    return run_program(1, [&, shift, barrier, registers, tags](tessera_cpu_context &ctx) {
      for (unsigned part = 0; part < 4; ++part) {
        std::uint32_t offsets[64], written[64];
        std::uint16_t data[64];
        for (unsigned lane = 0; lane < 64; ++lane) {
          unsigned element = 64 * part + lane;
          offsets[lane] = element / 16 * 40 + element % 16 * 2;
          data[lane] = std::uint16_t(element);
          written[lane] = element;
        }
        tessera_cpu_shared_store(&ctx, &halves, ~std::uint64_t(0), offsets, written, data);
      }
      if (barrier)
        tessera_cpu_barrier(&ctx);
      std::uint32_t offsets[64]; // 16 lanes read 4 rows, four lanes a row
      for (unsigned lane = 0; lane < 64; ++lane)
        offsets[lane] = lane / 4 * 40 + lane % 4 * 8 + shift;
      tessera_cpu_load_transposed(&ctx, &access, offsets, tags, registers);
    });
  };
  std::uint32_t registers[2 * 64], tags[4 * 64];
  for (unsigned lane = 0; lane < 64; ++lane)
    for (unsigned e = 0; e < 4; ++e)
      tags[e * 64 + lane] = 16 * (lane / 16 * 4 + e) + lane % 16;
  CHECK(with(0, true, registers, tags).why == reason::none);
  for (unsigned lane = 0; lane < 64; ++lane)
    for (unsigned e = 0; e < 4; ++e)
      CHECK((registers[e / 2 * 64 + lane] >> e % 2 * 16 & 0xffff) == tags[e * 64 + lane]);
  CHECK(with(0, false, registers).why == reason::read_after_write);
  CHECK(with(4, true, registers).why == reason::misaligned_shared);
  CHECK(with(960, true, registers).why == reason::out_of_bounds);
  tags[70] += 1;
  CHECK(with(0, true, registers, tags).why == reason::wrong_element);
}
