// Where AMD's code touches memory, for addresses and masks of all kinds: random kernels, of which each access is known,
// and the LLVM IR that they become, executed.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "amd_machine.h"

using namespace tessera;
using namespace tessera::test;

namespace {

/// There is none: a byte is a hash of its address, stores are recorded.
struct Nowhere : Memory {
  std::map<uint64_t, unsigned char> stored;
  static unsigned char byteAt(uint64_t address) { return (address * 0x9e3779b97f4a7c15u) >> 56; }
  unsigned char read(uint64_t address) override { return byteAt(address); }
  void write(uint64_t address, unsigned char byte) override { stored[address] = byte; }
};

// ---- random kernels, and what they do -------------------------------------------------------------------------------

/// A tile of integers, or one, in the text and as numbers.
struct Tile {
  std::string name;
  unsigned bits;
  std::vector<uint64_t> v;
  bool scalar() const { return v.size() == 1; }
};

constexpr uint64_t input = uint64_t(1) << 44, output = uint64_t(3) << 44;

class Kernel {
public:
  explicit Kernel(unsigned seed) : random(seed) {
    size = std::vector<unsigned>{1, 2, 4, 8}[below(4)];
    n = 64u << below(4);
    program = below(3) ? below(8) : 40000 + below(25000);
    stride = std::vector<uint32_t>{1, 2, 3, 16, 64, 100, 4096, 1u << 20, 0u - 1, 0u - 16}[below(10)];
    limit = std::vector<uint32_t>{0, 1, 17, n, 3 * n + 5, 1u << 30, 0u - 3}[below(7)];
    wide = std::vector<uint64_t>{0, 1, 1u << 20, uint64_t(5) << 30, uint64_t(0) - (uint64_t(3) << 30)}[below(5)];
    body();
  }

  std::string text() const {
    std::string type = "i" + std::to_string(8 * size), hint = below2g ? ", tt.pointer_range = 32 : i32" : "";
    return "tt.func public @k(%x: !tt.ptr<" + type + "> {tt.divisibility = 16 : i32" + hint + "}, %y: !tt.ptr<" + type +
           "> {tt.divisibility = 16 : i32}, %s: i32, %n: i32, %w: i64) {\n" + lines + "  tt.return\n}\n";
  }
  std::vector<uint64_t> arguments() const { return {input, output, stride, limit, wide}; }

  unsigned program, n;
  std::map<uint64_t, unsigned char> expected; ///< stores
  bool below2g = false;
  bool possible = false; ///< addresses have no more bits than those of a process

private:
  unsigned below(unsigned most) { return random() % most; }
  std::string fresh() { return "%v" + std::to_string(count++); }
  std::string typeOf(const Tile &t, const std::string &element) const {
    return t.scalar() ? element : "tensor<" + std::to_string(n) + "x" + element + ">";
  }
  std::string typeOf(const Tile &t) const { return typeOf(t, "i" + std::to_string(t.bits)); }
  void line(const std::string &text) { lines += "  " + text + "\n"; }

  Tile constant(uint64_t value, unsigned bits, bool scalar) {
    Tile t{fresh(), bits, std::vector<uint64_t>(scalar ? 1 : n, cut(value, bits))};
    std::string number = std::to_string(extended(value, bits));
    line(t.name + " = arith.constant " + (scalar ? number : "dense<" + number + ">") + " : " + typeOf(t));
    return t;
  }
  Tile splat(const Tile &a) {
    Tile t{fresh(), a.bits, std::vector<uint64_t>(n, a.v[0])};
    line(t.name + " = tt.splat " + a.name + " : " + typeOf(a) + " -> " + typeOf(t));
    return t;
  }
  Tile extend(const Tile &a, bool isSigned) {
    Tile t{fresh(), 64, a.v};
    for (uint64_t &v : t.v)
      v = isSigned ? uint64_t(extended(v, a.bits)) : v;
    line(t.name + " = arith." + (isSigned ? "extsi " : "extui ") + a.name + " : " + typeOf(a) + " to " + typeOf(t));
    return t;
  }
  Tile binary(const std::string &op, const Tile &a, const Tile &b, uint64_t (*fn)(uint64_t, uint64_t)) {
    Tile t{fresh(), a.bits, a.v};
    for (size_t i = 0; i < t.v.size(); ++i)
      t.v[i] = cut(fn(a.v[i], b.v[i]), a.bits);
    line(t.name + " = arith." + op + " " + a.name + ", " + b.name + " : " + typeOf(a));
    return t;
  }
  Tile add(const Tile &a, const Tile &b) {
    return binary("addi", a, b, [](uint64_t p, uint64_t q) { return p + q; });
  }
  Tile mul(const Tile &a, const Tile &b) {
    return binary("muli", a, b, [](uint64_t p, uint64_t q) { return p * q; });
  }

  /// A scalar of 32 bits.
  Tile uniform() {
    switch (below(4)) {
    case 0: return {"%s", 32, {stride}};
    case 1:
      return constant(std::vector<uint64_t>{0, 1, 5, 64, 4096, 1u << 24, uint64_t(-1), uint64_t(-4096)}[below(8)], 32,
                      true);
    case 2: return mul({"%p", 32, {program}}, constant(n << below(4), 32, true));
    default: return mul({"%p", 32, {program}}, {"%s", 32, {stride}});
    }
  }
  /// A tile of 32 bits, which varies or not.
  Tile index(unsigned depth) {
    switch (below(depth ? 7 : 2)) {
    case 0: {
      Tile t{fresh(), 32, std::vector<uint64_t>(n)};
      unsigned start = below(3) ? 0 : below(1000);
      for (unsigned i = 0; i < n; ++i)
        t.v[i] = start + i;
      line(t.name + " = tt.make_range {start = " + std::to_string(start) +
           " : i32, end = " + std::to_string(start + n) + " : i32} : " + typeOf(t));
      return t;
    }
    case 1: return splat(uniform());
    case 2: return mul(index(depth - 1), splat(uniform()));
    case 3:
      return binary("andi", index(depth - 1), constant((1u << below(12)) - 1, 32, false),
                    [](uint64_t p, uint64_t q) { return p & q; });
    case 4:
      return binary("shrui", index(depth - 1), constant(below(8), 32, false),
                    [](uint64_t p, uint64_t q) { return p >> q; });
    default: return add(index(depth - 1), index(depth - 1));
    }
  }
  /// One that is often a program's own part.
  Tile place() {
    if (below(3))
      return index(2);
    Tile range{fresh(), 32, std::vector<uint64_t>(n)};
    for (unsigned i = 0; i < n; ++i)
      range.v[i] = i;
    line(range.name + " = tt.make_range {start = 0 : i32, end = " + std::to_string(n) + " : i32} : " + typeOf(range));
    return add(splat(mul({"%p", 32, {program}}, constant(n, 32, true))), range);
  }
  Tile offset() {
    Tile a = place();
    if (below(4))
      return a;
    a = extend(a, below(2));
    if (below(2))
      a = mul(a, constant(std::vector<uint64_t>{1, 3, 4096, 1u << 20}[below(4)], 64, false));
    return below(2) ? add(a, splat({"%w", 64, {wide}})) : a;
  }
  Tile compare() {
    static const char *const names[] = {"slt", "ult", "sge", "eq"};
    Tile a = place(), b = splat({"%n", 32, {limit}}), t{fresh(), 1, a.v};
    unsigned k = below(8) ? below(3) : 3;
    for (unsigned i = 0; i < n; ++i) {
      int32_t p = int32_t(a.v[i]), q = int32_t(limit);
      t.v[i] = k == 0 ? p < q : k == 1 ? uint32_t(p) < uint32_t(q) : k == 2 ? p >= q : p == q;
    }
    line(t.name + " = arith.cmpi " + names[k] + ", " + a.name + ", " + b.name + " : " + typeOf(a));
    return t;
  }

  Tile advance(const Tile &p, const Tile &by) {
    Tile t{fresh(), 64, p.v};
    std::string pointer = "!tt.ptr<i" + std::to_string(8 * size) + ">";
    for (size_t i = 0; i < t.v.size(); ++i)
      t.v[i] += size * extended(by.v[i], by.bits);
    line(t.name + " = tt.addptr " + p.name + ", " + by.name + " : " + typeOf(p, pointer) + ", " + typeOf(by));
    return t;
  }
  Tile pointers(const char *argument, uint64_t address) {
    Tile p{argument, 64, {address}};
    std::string pointer = "!tt.ptr<i" + std::to_string(8 * size) + ">";
    if (below(2))
      p = advance(p, uniform());
    Tile t{fresh(), 64, std::vector<uint64_t>(n, p.v[0])};
    line(t.name + " = tt.splat " + p.name + " : " + pointer + " -> " + typeOf(t, pointer));
    return t;
  }
  Tile load(const Tile &p, const Tile *mask, const Tile *other) {
    Tile t{fresh(), 8 * size, std::vector<uint64_t>(n)};
    for (unsigned i = 0; i < n; ++i) {
      if (mask && !mask->v[i]) {
        t.v[i] = other ? other->v[i] : 0;
        continue;
      }
      touched.push_back(p.v[i]);
      for (unsigned byte = 0; byte < size; ++byte)
        t.v[i] |= uint64_t(Nowhere::byteAt(p.v[i] + byte)) << (8 * byte);
    }
    line(t.name + " = tt.load " + p.name + (mask ? ", " + mask->name : "") + (other ? ", " + other->name : "") + " : " +
         typeOf(t, "!tt.ptr<i" + std::to_string(8 * size) + ">"));
    return t;
  }

  void body() {
    std::string pointer = "!tt.ptr<i" + std::to_string(8 * size) + ">", tile = "tensor<" + std::to_string(n) + "x";
    line("%p = tt.get_program_id x : i32");
    Tile p = pointers("%x", input);
    for (unsigned more = below(2) + 1; more; --more)
      p = advance(p, offset());
    Tile mask, other;
    bool masked = below(4), defaulted = masked && below(2);
    if (masked)
      mask = compare();
    if (defaulted)
      other = constant(uint64_t(-1), 8 * size, false);
    Tile sum;
    if (unsigned trips = below(2) * (below(3) + 1)) { // a loop, whose pointers move
      Tile zero = constant(0, 8 * size, false), step = uniform();
      std::string moving = fresh(), total = fresh(), from = fresh(), to = fresh(), by = fresh(), result = fresh();
      line(from + " = arith.constant 0 : i32");
      line(to + " = arith.constant " + std::to_string(trips) + " : i32");
      line(by + " = arith.constant 1 : i32");
      Tile steps = splat(step);
      line(result + ":2 = scf.for " + fresh() + " = " + from + " to " + to + " step " + by + " iter_args(" + moving +
           " = " + p.name + ", " + total + " = " + zero.name + ") -> (" + tile + pointer + ">, " + typeOf(zero) +
           ") : i32 {");
      std::string before = lines;
      Tile at{moving, 64, p.v}, all{total, 8 * size, zero.v};
      for (unsigned trip = 0; trip < trips; ++trip) { // the text is that of one
        unsigned number = count;
        lines = before;
        Tile v = load(at, masked ? &mask : nullptr, defaulted ? &other : nullptr);
        Tile s = add(all, v), moved = advance(at, steps);
        line("scf.yield " + moved.name + ", " + s.name + " : " + tile + pointer + ">, " + typeOf(s));
        at.v = moved.v, all.v = s.v;
        if (trip + 1 < trips)
          count = number;
      }
      line("}");
      sum = {result + "#1", 8 * size, all.v};
    } else {
      sum = load(p, masked ? &mask : nullptr, defaulted ? &other : nullptr);
    }
    // Everything to its own place; under a mask where the place is in doubt.
    Tile range{fresh(), 32, std::vector<uint64_t>(n)};
    for (unsigned i = 0; i < n; ++i)
      range.v[i] = i;
    line(range.name + " = tt.make_range {start = 0 : i32, end = " + std::to_string(n) + " : i32} : " + typeOf(range));
    Tile q = advance(pointers("%y", output), below(2) ? range : add(range, splat(uniform())));
    bool partly = below(2);
    Tile where = partly ? compare() : Tile();
    line("tt.store " + q.name + ", " + sum.name + (partly ? ", " + where.name : "") + " : " + tile + pointer + ">");
    for (unsigned i = 0; i < n; ++i)
      for (unsigned byte = 0; byte < size && (!partly || where.v[i]); ++byte)
        expected[q.v[i] + byte] = sum.v[i] >> (8 * byte);
    possible = std::all_of(touched.begin(), touched.end(), [](uint64_t a) { return a >> 47 == 0; }) &&
               (expected.empty() || expected.rbegin()->first >> 47 == 0);
    uint64_t end = (uint64_t(1) << 31) - 1;
    below2g =
        below(2) && std::all_of(touched.begin(), touched.end(), [&](uint64_t a) { return a - input <= end - size; });
  }

  std::mt19937 random;
  unsigned size, count = 0;
  uint32_t stride, limit;
  uint64_t wide;
  std::string lines;
  std::vector<uint64_t> touched; ///< addresses in the input
};

} // namespace

TEST_SUITE_BEGIN("gpu"); // as on any host: run once

TEST_CASE("random addresses under random masks are those that the kernel says") {
  const char *const archs[] = {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"};
  const char *asked = std::getenv("TESSERA_RANDOM_KERNELS");
  unsigned kernels = asked ? std::atoi(asked) : 300, buffers = 0, plain = 0, promised = 0;
  for (unsigned seed = 0; seed < kernels; ++seed) {
    Kernel kernel(seed);
    if (!kernel.possible)
      continue;
    const std::string arch = archs[seed % 6], text = kernel.text();
    CAPTURE(seed);
    CAPTURE(arch);
    CAPTURE(text);
    ir_module module = parse_ir(text, "kernel.ttir");
    compiled_kernel code = compile(module, parse_target("hip:" + arch), {.num_warps = 1}, "llir");
    Nowhere memory;
    Machine machine(code, memory);
    machine.run(kernel.arguments(), kernel.program);
    CHECK(memory.stored == kernel.expected);
    buffers += machine.buffers, plain += machine.plain;
    promised += kernel.below2g;
  }
  // All ways were taken.
  CHECK(buffers > 10 * kernels);
  CHECK(plain > 10 * kernels);
  CHECK(promised > kernels / 10);
}

TEST_SUITE_END();
