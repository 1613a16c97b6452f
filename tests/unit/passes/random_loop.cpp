#include "random_loop.h"

#include <fmt/format.h>
#include <random>
#include <vector>

namespace tessera::testing {

namespace {

constexpr const char *kHeader = R"(
#row = #ttg.blocked<{{sizePerThread = [1, {vector}], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}}>
#mma2 = #ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}}>
#mma3 = #ttg.nvidia_mma<{{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8, 16]}}>
#shared = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}}>
#sharedT = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}}>
#nvmma = #ttg.nvmma_shared<{{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}}>
#nvmmaT = #ttg.nvmma_shared<{{swizzlingByteWidth = 0, transposed = true, elementBitWidth = 16}}>
#smem = #ttg.shared_memory
#col = #ttg.slice<{{dim = 0, parent = #row}}>
#line = #ttg.slice<{{dim = 1, parent = #row}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "{target}", "ttg.threads-per-warp" = 32 : i32}} {{
tt.func public @f(%data: !tt.ptr<{type}> {{tt.divisibility = 16 : i32}}, %index: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %trips: i32, %n: i32 {{tt.divisibility = 16 : i32}}, %out: !tt.ptr<{sum}>) {{
)";

class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  std::string make() {
    static constexpr const char *targets[] = {"cuda:90", "cuda:80", "hip:gfx942", "cuda:90", "cuda:80"};
    std::string target = targets[below(5)];
    if (target == "cuda:90" && below(4))
      unit = WarpGroup;
    else if (target != "hip:gfx942" && below(3))
      unit = Warp;
    else
      unit = None;
    m = unit == WarpGroup ? 64 : 16;
    n = unit == None ? 4 : 8;
    k = unit == WarpGroup && below(4) ? 32 : 16; // one or two steps of the instruction
    type = unit == None ? "f32" : "f16";
    text = fmt::format(kHeader, fmt::arg("vector", below(4) ? (type == "f16" ? 2 : 1) : 1), fmt::arg("target", target),
                       fmt::arg("type", type), fmt::arg("sum", sum));
    line("%c0 = arith.constant 0 : i32");
    line("%c1 = arith.constant 1 : i32");
    line("%c2 = arith.constant 2 : i32");
    line("%c5 = arith.constant 5 : i32");
    line("%zero = arith.constant dense<0.0> : {}", accType());
    addPattern("a", m, k);
    addPattern("b", k, n);
    addPattern("d", m, n);
    bool nested = below(3) == 0;
    if (nested) {
      line("%outer = scf.for %z = %c0 to %c2 step %c1 iter_args(%start = %zero) -> ({}) : i32 {{", accType());
      addLoop("%start");
      line("scf.yield %acc0 : {}", accType());
      line("}}");
    } else {
      addLoop("%zero");
    }
    store(nested ? "%outer" : "%acc0", accLayout(), 0);
    line("tt.return");
    return text + "}\n}\n";
  }

private:
  enum Unit { None, Warp, WarpGroup };
  std::mt19937 random;
  std::string text, type;
  const std::string sum = "f32";
  Unit unit = None;
  int m = 0, n = 0, k = 0, names = 0;

  unsigned below(unsigned bound) { return random() % bound; }
  std::string name(const char *stem) { return fmt::format("%{}_{}", stem, names++); }
  template <typename... Args> void line(fmt::format_string<Args...> f, Args &&...args) {
    text += fmt::format(f, std::forward<Args>(args)...) + '\n';
  }
  static std::string tile(int rows, int columns, std::string element, std::string layout) {
    return fmt::format("tensor<{}x{}x{}, {}>", rows, columns, element, layout);
  }
  std::string accLayout() { return unit == None ? "#row" : unit == Warp ? "#mma2" : "#mma3"; }
  std::string accType() { return tile(m, n, sum, accLayout()); }
  std::string ptr(std::string element) { return "!tt.ptr<" + element + ">"; }
  std::string offsets(int rows, int columns) { return tile(rows, columns, "i32", "#row"); }

  /// %off_X: row-major offsets; %cols_X: column numbers; %rows_X: row numbers (tiles of i32).
  void addPattern(const char *x, int rows, int columns) {
    auto t = offsets(rows, columns);
    line("%r1_{} = tt.make_range {{start = 0 : i32, end = {} : i32}} : tensor<{}xi32, #line>", x, rows, rows);
    line("%r2_{0} = tt.expand_dims %r1_{0} {{axis = 1 : i32}} : tensor<{1}xi32, #line> -> tensor<{1}x1xi32, #row>", x,
         rows);
    line("%rows_{0} = tt.broadcast %r2_{0} : tensor<{1}x1xi32, #row> -> {2}", x, rows, t);
    line("%k1_{} = tt.make_range {{start = 0 : i32, end = {} : i32}} : tensor<{}xi32, #col>", x, columns, columns);
    line("%k2_{0} = tt.expand_dims %k1_{0} {{axis = 0 : i32}} : tensor<{1}xi32, #col> -> tensor<1x{1}xi32, #row>", x,
         columns);
    line("%cols_{0} = tt.broadcast %k2_{0} : tensor<1x{1}xi32, #row> -> {2}", x, columns, t);
    line("%width_{} = arith.constant dense<{}> : {}", x, columns, t);
    line("%down_{0} = arith.muli %rows_{0}, %width_{0} : {1}", x, t);
    line("%off_{0} = arith.addi %down_{0}, %cols_{0} : {1}", x, t);
    line("%base_{0} = tt.splat %data : {1} -> {2}", x, ptr(type), tile(rows, columns, ptr(type), "#row"));
    line("%start_{0} = tt.addptr %base_{0}, %off_{0} : {1}, {2}", x, tile(rows, columns, ptr(type), "#row"), t);
    line("%step_{} = arith.constant dense<{}> : {}", x, rows * columns * (1 + below(3)), t);
  }

  /// A tile of pointers for this trip.
  std::string pointers(const char *x, int rows, int columns, bool carried) {
    auto t = offsets(rows, columns), p = tile(rows, columns, ptr(type), "#row");
    std::string scalar;
    switch (carried ? 0 : 1 + below(4)) {
    case 0: return fmt::format("%p_{}", x);
    case 1: scalar = "%i"; break;
    case 2: scalar = "%count"; break;
    default: { // through an index in memory
      auto at = name("at"), value = name("index");
      line("{} = tt.addptr %index, {} : !tt.ptr<i32>, i32", at, below(2) ? "%i" : "%count");
      line("{} = tt.load {} : !tt.ptr<i32>", value, at);
      if (below(3) == 0) { // of another index
        line("{0}b = tt.addptr %index, {1} : !tt.ptr<i32>, i32", at, value);
        line("{1}b = tt.load {0}b : !tt.ptr<i32>", at, value);
        value += "b";
      }
      scalar = value;
    }
    }
    auto far = name("far"), s = name("s"), o = name("o"), q = name("q");
    line("{} = arith.muli {}, %n : i32", far, scalar);
    line("{} = tt.splat {} : i32 -> {}", s, far, t);
    if (below(3) == 0) { // a tile of indices
      auto ip = name("ip"), is = name("is"), it = name("it"), sum = name("sum");
      auto ptrs = tile(rows, columns, "!tt.ptr<i32>", "#row");
      line("{} = tt.splat %index : !tt.ptr<i32> -> {}", ip, ptrs);
      line("{} = tt.addptr {}, {} : {}, {}", is, ip, s, ptrs, t);
      line("{} = tt.load {} : {}", it, is, ptrs);
      line("{} = arith.addi {}, {} : {}", sum, s, it, t);
      s = sum;
    }
    line("{} = arith.addi {}, %off_{} : {}", o, s, x, t);
    line("{} = tt.addptr %base_{}, {} : {}, {}", q, x, o, p, t);
    return q;
  }

  std::string load(const char *x, int rows, int columns, bool carried) {
    auto q = pointers(x, rows, columns, carried), v = name("v"), t = offsets(rows, columns);
    auto p = tile(rows, columns, ptr(type), "#row"), e = tile(rows, columns, type, "#row");
    std::string mask;
    if (below(2)) {
      auto left = name("left"), s = name("ls"), bit = name("mask");
      line("{} = arith.subi %n, {} : i32", left, below(2) ? "%i" : "%count");
      line("{} = tt.splat {} : i32 -> {}", s, left, t);
      line("{} = arith.cmpi slt, %{}_{}, {} : {}", bit, below(2) ? "cols" : "rows", x, s, t);
      mask = ", " + bit;
      if (unsigned other = below(4)) {
        auto c = name("other");
        line("{} = arith.constant dense<{}.0> : {}", c, other == 3 ? 7 : 0, e);
        mask += ", " + c;
      }
    }
    line("{} = tt.load {}{} : {}", v, q, mask, p);
    if (!mask.empty() && below(4) == 0) { // the mask again, where the tile is used
      line("{0}z = arith.addf {0}, {0} : {1}", v, e);
      line("{0}s = arith.select {2}, {0}, {0}z : tensor<{3}x{4}xi1, #row>, {1}", v, e,
           mask.substr(2, mask.find(',', 2) - 2), rows, columns);
      v += "s";
    }
    return v;
  }

  /// An operand of a product: a buffer, or a tile in the layout of a matrix instruction.
  std::string operand(std::string v, int rows, int columns, bool isA, std::string &operandType) {
    auto e = tile(rows, columns, type, "#row");
    if (below(4) == 0) { // computed with first
      auto w = name("w");
      line("{} = arith.addf {}, {} : {}", w, v, v, e);
      v = w;
    }
    bool trans = below(4) == 0;
    auto buffer = name("buffer");
    std::string enc = unit == WarpGroup ? "#nvmma" : "#shared";
    auto descriptor = [&](int r, int c, std::string layout) {
      return fmt::format("!ttg.memdesc<{}x{}x{}, {}, #smem>", r, c, type, layout);
    };
    if (trans) { // the tile is transposed, its view is transposed back
      auto tv = name("tv"), cv = name("cv"), tb = name("tb");
      auto linear = fmt::format("{}_t", tv);
      line("{} = ttg.local_alloc {} : ({}) -> {}", tb, v, e, descriptor(rows, columns, enc));
      line("{}_1 = ttg.memdesc_trans {} {{order = array<i32: 1, 0>}} : {} -> {}", tb, tb,
           descriptor(rows, columns, enc), descriptor(columns, rows, enc + "T"));
      line("{0} = ttg.memdesc_trans {1}_1 {{order = array<i32: 1, 0>}} : {2} -> {3}", buffer, tb,
           descriptor(columns, rows, enc + "T"), descriptor(rows, columns, enc));
    } else {
      line("{} = ttg.local_alloc {} : ({}) -> {}", buffer, v, e, descriptor(rows, columns, enc));
    }
    operandType = descriptor(rows, columns, enc);
    if (unit != Warp && !(unit == WarpGroup && isA && below(2) == 0))
      return buffer;
    auto d = name("reg");
    std::string layout = fmt::format("#ttg.dot_op<{{opIdx = {}, parent = {}, kWidth = 2}}>", isA ? 0 : 1, accLayout());
    line("{} = ttg.local_load {} : {} -> {}", d, buffer, operandType, tile(rows, columns, type, layout));
    operandType = tile(rows, columns, type, layout);
    if (below(4) == 0) {
      line("{0}b = arith.addf {0}, {0} : {1}", d, operandType);
      d += "b";
    }
    return d;
  }

  std::string dot(std::string a, std::string b, std::string c) {
    std::string ta, tb, d = name("dot");
    a = operand(a, m, k, true, ta);
    b = operand(b, k, n, false, tb);
    if (unit == None)
      line("{} = ttg.local_dot {}, {}, {} : {} * {}, {} -> {}", d, a, b, c, ta, tb, accType(), accType());
    else if (unit == Warp)
      line("{} = tt.dot {}, {}, {} : {} * {} -> {}", d, a, b, c, ta, tb, accType());
    else
      line("{} = ttng.warp_group_dot {}, {}, {} : {} * {} -> {}", d, a, b, c, ta, tb, accType());
    return d;
  }

  void addLoop(std::string init) {
    auto pa = tile(m, k, ptr(type), "#row"), pb = tile(k, n, ptr(type), "#row"), pd = tile(m, n, type, "#row");
    bool extra = below(3) == 0, carry = below(3) == 0, exchange = below(3) == 0, products = below(8);
    std::string step = fmt::format("%c{}", below(3) ? 1 : 2);
    std::string begin = below(3) ? "%c0" : "%begin", end = below(4) ? "%trips" : "%end";
    line("%begin = arith.constant {} : i32", below(2) ? -2 : 1);
    line("%end = arith.constant {} : i32", below(6));
    line("%none = arith.constant dense<0.0> : {}", pd);
    line("%acc0, %acc1, %pa1, %pb1, %count1, %x1, %y1, %e1 = scf.for {}%i = {} to {} step {} iter_args(%acc = {}, "
         "%other = %zero, %p_a = %start_a, %p_b = %start_b, %count = %c0, %x = %c2, %y = %c5, %e = %none) -> ({}, {}, "
         "{}, "
         "{}, i32, i32, i32, {}) : i32 {{",
         begin == "%c0" && below(3) == 0 ? "unsigned " : "", begin, end, step, init, accType(), accType(), pa, pb, pd);
    std::string acc = "%acc", other = "%other", x = "%x", y = "%y", e = "%e";
    unsigned writes = below(8); // what the loop stores: 0 to 2 numbers, 3 tiles of what it loads, 4 indices
    if (writes == 3 && below(2))
      write("%e");
    if (carry) { // used, then replaced by what the next trip will use
      auto used = name("used");
      line("{} = arith.addf %e, %e : {}", used, pd);
      if (below(2))
        e = load("d", m, n, false);
      else
        e = used;
    }
    if (products) {
      auto a = load("a", m, k, below(2)), b = load("b", k, n, below(2));
      acc = dot(a, b, acc);
      if (below(3) == 0) {
        auto a2 = below(2) ? a : load("a", m, k, below(2)), b2 = below(2) ? b : load("b", k, n, below(2));
        if (below(2))
          acc = dot(a2, b2, acc);
        else
          other = dot(a2, b2, other);
      }
      if (extra) { // a tile of the product is needed elsewhere
        auto total = name("total"), c = name("ci");
        line("{} = arith.addf {}, {} : {}", total, b, b, tile(k, n, type, "#row"));
        if (m == k) {
          line("{} = arith.addf {}, %e : {}", c, total, pd);
          e = c;
        }
      }
      if (below(4) == 0) {
        auto twice = name("twice");
        line("{} = arith.addf {}, {} : {}", twice, acc, other, accType());
        acc = twice;
      }
    }
    if (below(3) == 0 || !products) { // a load of its own
      auto v = load("d", m, n, false), s = name("ev");
      line("{} = arith.addf {}, {} : {}", s, v, e, pd);
      e = s;
    }
    if (below(4) == 0) { // a load in a branch
      auto odd = name("odd"), r = name("branch");
      line("{} = arith.cmpi sgt, %i, {} : i32", odd, below(2) ? "%c1" : "%x");
      line("{} = scf.if {} -> ({}) {{", r, odd, pd);
      auto v = load("d", m, n, false);
      line("scf.yield {} : {}", v, pd);
      line("}} else {{");
      line("scf.yield {} : {}", e, pd);
      line("}}");
      e = r;
    }
    if (exchange) {
      auto up = name("up");
      line("{} = arith.addi %x, %y : i32", up);
      x = "%y";
      y = below(2) ? up : below(2) ? "%x" : "%c5";
    }
    auto nc = name("nc");
    line("{} = arith.addi %count, {} : i32", nc, below(2) ? "%c1" : "%x");
    if (writes < 3) {
      auto at = name("w");
      line("{} = tt.addptr %out, {} : {}, i32", at, writes == 1 ? nc : "%count", ptr(sum));
      line("{0}f = arith.constant 3.0 : f32", at);
      if (writes == 2) { // in a branch
        line("{0}c = arith.cmpi sgt, %i, %x : i32", at);
        line("scf.if {0}c {{\ntt.store {0}, {0}f : {1}\n}}", at, ptr(sum));
      } else {
        line("tt.store {0}, {0}f : {1}", at, ptr(sum));
      }
    } else if (writes == 3) {
      write(e);
    } else if (writes == 4) {
      auto at = name("w");
      line("{} = tt.addptr %index, %count : !tt.ptr<i32>, i32", at);
      line("tt.store {}, %c5 : !tt.ptr<i32>", at);
    }
    auto na = name("na"), nb = name("nb");
    line("{} = tt.addptr %p_a, %step_a : {}, {}", na, pa, offsets(m, k));
    line("{} = tt.addptr %p_b, %step_b : {}, {}", nb, pb, offsets(k, n));
    line("scf.yield {}, {}, {}, {}, {}, {}, {}, {} : {}, {}, {}, {}, i32, i32, i32, {}", acc, other, na, nb, nc, x, y,
         e, accType(), accType(), pa, pb, pd);
    line("}} {}", below(2) ? fmt::format("{{tt.num_stages = {} : i32}}", 1 + below(5)) : "");
    store("%acc1", accLayout(), 1);
    if (below(2))
      store("%e1", "#row", 2);
    if (below(3) == 0)
      store("%x1", "", 3);
    if (below(3) == 0)
      store("%count1", "", 4);
  }

  /// Where loads of this trip or another read.
  void write(std::string e) {
    auto q = pointers("d", m, n, false);
    line("tt.store {}, {} : {}", q, e, tile(m, n, ptr(type), "#row"));
  }

  /// At a place of its own.
  void store(std::string v, std::string layout, int place) {
    auto f = name("f"), at = name("at"), c = name("place");
    line("{} = arith.constant {} : i32", c, 100000 + place * 10000);
    line("{} = tt.addptr %out, {} : {}, i32", at, c, ptr(sum));
    if (layout.empty()) {
      line("{} = arith.sitofp {} : i32 to f32", f, v);
      line("tt.store {}, {} : {}", at, f, ptr(sum));
      return;
    }
    auto p = name("p"), q = name("q"), ptrs = tile(m, n, ptr(sum), "#row");
    if (layout != "#row") {
      line("{} = ttg.convert_layout {} : {} -> {}", f, v, tile(m, n, sum, layout), tile(m, n, sum, "#row"));
    } else if (type != sum) {
      line("{} = arith.extf {} : {} to {}", f, v, tile(m, n, type, "#row"), tile(m, n, sum, "#row"));
    } else {
      f = v;
    }
    line("{} = tt.splat {} : {} -> {}", p, at, ptr(sum), ptrs);
    line("{} = tt.addptr {}, %off_d : {}, {}", q, p, ptrs, offsets(m, n));
    line("tt.store {}, {} : {}", q, f, ptrs);
  }
};

} // namespace

std::string randomLoop(unsigned seed) { return Generator(seed).make(); }

} // namespace tessera::testing
