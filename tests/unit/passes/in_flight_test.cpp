// Whether the registers of a product in flight are written too early.
#include "random_function.h"
#include "tessera/passes/InFlight.h"

#include "mlir/Parser/Parser.h"

#include <doctest/doctest.h>
#include <vector>

using namespace mlir;
using namespace tessera;

namespace {

constexpr const char *kHeader = R"(
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#columns = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [0, 1]}>
#rows = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 32}>
#smem = #ttg.shared_memory
!left = !ttg.memdesc<64x16xf32, #columns, #smem, mutable>
!right = !ttg.memdesc<16x64xf32, #rows, #smem, mutable>
!frag = tensor<64x16xf32, #a>
!acc = tensor<64x64xf32, #mma>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%n: i32, %flag: i1) -> !acc {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !acc
  %as = ttg.local_alloc : () -> !left
  %bs = ttg.local_alloc : () -> !right
  %first = ttg.local_load %as : !left -> !frag
)";

/// One line a step; `L x`: x is loaded, `+ x y`: x = y + y, `D d a c` and `S d a c`: the product d = c + a * b, left in
/// flight or not, `W w c n`: w = c, at most n in flight. Anything else is IR.
std::string body(const std::string &steps) {
  std::string out;
  for (size_t begin = 0; begin < steps.size();) {
    size_t end = std::min(steps.find('\n', begin), steps.size());
    std::string line = steps.substr(begin, end - begin);
    begin = end + 1;
    std::vector<std::string> words;
    for (size_t at = 0; at < line.size();) {
      size_t stop = std::min(line.find(' ', at), line.size());
      if (stop > at)
        words.push_back(line.substr(at, stop - at));
      at = stop + 1;
    }
    if (words.empty())
      continue;
    if (words[0] == "L")
      out += words[1] + " = ttg.local_load %as : !left -> !frag\n";
    else if (words[0] == "+")
      out += words[1] + " = arith.addf " + words[2] + ", " + words[2] + " : !frag\n";
    else if (words[0] == "D" || words[0] == "S")
      out += words[1] + " = ttng.warp_group_dot " + words[2] + ", %bs, " + words[3] + " {inputPrecision = 0 : i32" +
             (words[0] == "D" ? ", isAsync = true" : "") + "} : !frag * !right -> !acc\n";
    else if (words[0] == "W")
      out += words[1] + " = ttng.warp_group_dot_wait " + words[2] + " {pendings = " + words[3] + " : i32} : !acc\n";
    else
      out += line + "\n";
  }
  return out;
}

/// What is found of each asynchronous product, in order.
std::vector<bool> overwritten(const std::string &steps) {
  auto context = testing::makeContext();
  std::string text = kHeader + body(steps + "\nW %last %sum 0") + "tt.return %last : !acc\n}\n}\n";
  auto module = parseSourceString<ModuleOp>(text, context.get());
  REQUIRE_MESSAGE(module, text);
  std::vector<bool> found;
  module->walk([&](ttng::WarpGroupDotOp dot) {
    if (dot.getIsAsync())
      found.push_back(overwritesOperandInFlight(dot));
    else
      CHECK(!overwritesOperandInFlight(dot));
  });
  return found;
}

std::string loop(const std::string &steps, const std::string &yielded) {
  return "%sum = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (!acc) : i32 {\n" + steps + "\nscf.yield " +
         yielded + " : !acc\n}\n";
}

using found = std::vector<bool>;

} // namespace

TEST_CASE("a product's registers are free behind the wait for it") {
  CHECK(overwritten(loop("L %a\nD %d %a %c\nW %w %d 1", "%w")) == found{true});
  CHECK(overwritten(loop("L %a\nD %d %a %c\nW %w %d 0", "%w")) == found{false});
  CHECK(overwritten(loop("W %w %c 0\nL %a\nD %d %a %w", "%d")) == found{false});
  CHECK(overwritten(loop("L %a\nW %w %c 0\nD %d %a %w", "%d")) == found{true});
  CHECK(overwritten(loop("L %a\nD %d %a %c\nL %b\nS %e %b %d", "%e")) == found{false});
  // Without a loop, or with the same registers in every trip.
  CHECK(overwritten("L %a\nD %d %a %zero\nW %sum %d 1") == found{false});
  CHECK(overwritten(loop("D %d %first %c", "%d")) == found{false});
}

TEST_CASE("several products of a trip: the oldest is waited for") {
  auto slices = [](const char *first, const char *second) {
    return overwritten(
        loop(std::string("W %u %c ") + first + "\nL %a\nD %d %a %u\nW %v %d " + second + "\nL %b\nD %e %b %v", "%e"));
  };
  CHECK(slices("1", "1") == found{false, false});
  CHECK(slices("2", "1") == found{true, false});
  CHECK(slices("1", "2") == found{false, true});
  CHECK(slices("0", "2") == found{false, false});
}

TEST_CASE("what is computed of a loaded value may be computed as soon as it is loaded") {
  CHECK(overwritten(loop("L %x\nW %w %c 0\n+ %a %x\nD %d %a %w", "%d")) == found{true});
  CHECK(overwritten(loop("W %w %c 0\nL %x\n+ %a %x\nD %d %a %w", "%d")) == found{false});
  CHECK(overwritten(loop("+ %a %first\nD %d %a %c", "%d")) == found{false});
  // Of several, when the last is.
  const std::string sum = "%a = arith.addf %x, %y : !frag\nD %d %a %w";
  CHECK(overwritten(loop("L %x\nW %w %c 0\nL %y\n" + sum, "%d")) == found{false});
  CHECK(overwritten(loop("L %x\nL %y\nW %w %c 0\n" + sum, "%d")) == found{true});
  CHECK(overwritten(loop("W %w %c 0\n%y = arith.addf %first, %first : !frag\nL %x\n" + sum, "%d")) == found{false});
}

TEST_CASE("a loop writes what it carries at the end of a trip") {
  auto carrying = [](const std::string &steps) {
    return overwritten("%sum, %rest = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero, %a = %first) -> (!acc, "
                       "!frag) : i32 {\n" +
                       steps + "\nscf.yield %d, %next : !acc, !frag\n}\n");
  };
  CHECK(carrying("W %w %c 0\nL %next\nD %d %a %w") == found{true});
  CHECK(carrying("D %d %a %c\nL %next\nW %w %d 0") == found{false});
  CHECK(carrying("W %w %c 0\nL %x\n%b = arith.addf %a, %x : !frag\nD %d %b %w\nL %next") == found{false});
}

TEST_CASE("paths through branches and loops around") {
  auto branch = [](const std::string &behind) {
    return overwritten(
        loop("%r = scf.if %flag -> !acc {\nL %a\nD %d %a %c\nscf.yield %d : !acc\n} else {\nscf.yield %c "
             ": !acc\n}\n" +
                 behind,
             "%w"));
  };
  CHECK(branch("W %w %r 0") == found{false});
  CHECK(branch("W %w %r 1") == found{true});
  auto nested = [](const std::string &behind) {
    return overwritten(loop("L %a\n%r = scf.for %j = %c0 to %n step %c1 iter_args(%k = %c) -> (!acc) : i32 {\nD %d %a "
                            "%k\nscf.yield %d : !acc\n}\n" +
                                behind,
                            "%w"));
  };
  CHECK(nested("W %w %r 0") == found{false});
  CHECK(nested("W %w %r 1") == found{true});
}
