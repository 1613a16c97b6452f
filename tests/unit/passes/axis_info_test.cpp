// The axis analysis: cases with known answers, and random functions whose claimed facts are compared with computed
// values.
#include "interpreter.h"
#include "random_function.h"
#include "tessera/passes/AxisInfo.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <random>
#include <string>

#include <doctest/doctest.h>

using namespace mlir;
using namespace tessera;
using namespace tessera::testing;

namespace {

std::string str(const AxisInfo &f) {
  std::string s;
  llvm::raw_string_ostream os(s);
  auto dims = [&](const char *name, const AxisInfo::Dims &d) {
    os << name << " [";
    llvm::interleaveComma(d, os);
    os << "] ";
  };
  dims("contiguity", f.contiguity);
  dims("divisibility", f.divisibility);
  dims("constancy", f.constancy);
  if (f.constantValue)
    os << "value " << *f.constantValue;
  return s;
}

/// The first way in which the elements contradict the facts, or "".
std::string contradiction(Value v, const Elements &e, const AxisInfo &f, bool wraps) {
  SmallVector<int64_t> shape{1};
  if (auto t = dyn_cast<RankedTensorType>(v.getType()))
    shape.assign(t.getShape().begin(), t.getShape().end());
  Type element = getElementTypeOrSelf(v);
  int64_t step = 1;
  if (auto p = dyn_cast<tt::PointerType>(element))
    step = p.getPointeeType().getIntOrFloatBitWidth() / 8;
  unsigned bits = isa<IntegerType>(element) ? element.getIntOrFloatBitWidth() : 64;
  if (f.contiguity.size() != shape.size())
    return "wrong rank";
  int64_t stride = e.size();
  for (unsigned d = 0; d < shape.size(); ++d) {
    stride /= shape[d];
    for (int64_t k = 0; k < static_cast<int64_t>(e.size()); ++k) {
      int64_t c = (k / stride) % shape[d];
      int64_t first = k - c % f.contiguity[d] * stride, same = k - c % f.constancy[d] * stride;
      uint64_t expected = static_cast<uint64_t>(e[first]) + c % f.contiguity[d] * step;
      bool contiguous =
          bits >= 64 ? static_cast<uint64_t>(e[k]) == expected : ((e[k] ^ expected) & ((1ull << bits) - 1)) == 0;
      if (!wraps && !contiguous)
        return "not contiguous along " + std::to_string(d);
      if (!wraps && e[k] != e[same])
        return "not constant along " + std::to_string(d);
      if (first == k && bits > 1 && e[k] % f.divisibility[d]) {
        // A number of few bits can only be said to be divisible modulo its range.
        uint64_t low = bits >= 64 ? f.divisibility[d] - 1 : (f.divisibility[d] - 1) & ((1ull << bits) - 1);
        if (static_cast<uint64_t>(e[k]) & low)
          return "not divisible along " + std::to_string(d);
      }
    }
  }
  for (int64_t x : e) {
    if (f.constantValue && x != *f.constantValue)
      return "not the constant";
    if (!wraps && f.nonNegative && x < 0)
      return "negative";
  }
  return "";
}

AxisInfo factOf(MLIRContext &context, const std::string &body, const std::string &args = "") {
  std::string text = "tt.func @f(" + args + ") {\n" + body + "\n  tt.return\n}";
  auto module = parseSourceString<ModuleOp>(text, &context);
  REQUIRE(module);
  AxisInfoAnalysis axis(*module);
  Operation *last = nullptr;
  module->walk([&](Operation *op) {
    if (!isa<tt::ReturnOp, tt::FuncOp, ModuleOp>(op) && op->getNumResults())
      last = op;
  });
  REQUIRE(last);
  const AxisInfo *fact = axis.lookup(last->getResult(0));
  REQUIRE(fact);
  return *fact;
}

using Dims = AxisInfo::Dims;

} // namespace

TEST_CASE("axis info: ranges, hints and pointers") {
  auto context = makeContext();
  const std::string range = "  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>\n";
  const std::string p16 =
      "%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %m: i32";
  const std::string address = "  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>\n"
                              "  %q = tt.addptr %ps, %o : tensor<128x!tt.ptr<f32>>, tensor<128xi32>";

  AxisInfo f = factOf(*context, range);
  CHECK(f.contiguity == Dims{128});
  CHECK(f.divisibility == Dims{AxisInfo::kMaxDivisibility});
  CHECK(f.nonNegative);

  f = factOf(*context,
             range + "  %c = arith.constant dense<0> : tensor<128xi32>\n  %o = arith.addi %r, %c : tensor<128xi32>\n" +
                 address,
             p16);
  CHECK(f.contiguity == Dims{128});
  CHECK(f.divisibility == Dims{16});

  // A loop's author may know more of its variable than the bounds tell.
  const std::string loop = "  scf.for %k = %m to %n step %m : i32 {\n"
                           "    %ks = tt.splat %k : i32 -> tensor<128xi32>\n    %o = arith.addi %ks, %r : tensor<128xi32>\n  }";
  CHECK(factOf(*context, range + loop, p16).divisibility == Dims{1});
  f = factOf(*context, range + loop + " {tt.divisibility_arg0 = dense<32> : tensor<1xi32>}", p16);
  CHECK(f.divisibility == Dims{32});
  CHECK(f.contiguity == Dims{128});

  // A row pitch that is not known to be a multiple of 4: contiguous, but aligned to single elements only.
  const std::string row =
      "  %pid = tt.get_program_id x : i32\n  %off = arith.muli %pid, %PITCH : i32\n"
      "  %offs = tt.splat %off : i32 -> tensor<128xi32>\n  %o = arith.addi %offs, %r : tensor<128xi32>\n";
  auto pitch = [&](std::string text, const std::string &name) { return text.replace(text.find("%PITCH"), 6, name); };
  f = factOf(*context, range + pitch(row, "%m") + address, p16);
  CHECK(f.contiguity == Dims{128});
  CHECK(f.divisibility == Dims{4});
  f = factOf(*context, range + pitch(row, "%n") + address, p16);
  CHECK(f.divisibility == Dims{16});
  f = factOf(*context, range + "  %PITCH1 = arith.constant 1185 : i32\n" + pitch(row, "%PITCH1") + address, p16);
  CHECK(f.divisibility == Dims{4});

  f = factOf(*context,
             "  %x = arith.addi %o, %o {tt.contiguity = dense<32> : tensor<1xi32>, tt.divisibility = dense<16> : "
             "tensor<1xi32>} : tensor<128xi32>",
             "%o: tensor<128xi32>");
  CHECK(f.contiguity == Dims{32});
  CHECK(f.divisibility == Dims{16});
}

TEST_CASE("axis info: signed division and remainder below zero") {
  auto context = makeContext();
  const std::string tail = "  %d = arith.constant dense<32> : tensor<8xi32>\n  %q = arith.divsi %x, %d : tensor<8xi32>";
  AxisInfo f =
      factOf(*context, "  %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>\n"
                       "  %k = arith.constant dense<64> : tensor<8xi32>\n  %x = arith.subi %r, %k : tensor<8xi32>\n" +
                           tail);
  CHECK(f.constancy == Dims{1}); // -2, -1, -1, …
  f = factOf(*context, "  %x = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>\n" + tail);
  CHECK(f.constancy == Dims{8});
  // As in a tiled product: (block start + lane) mod size keeps runs.
  f = factOf(*context,
             "  %pid = tt.get_program_id x : i32\n  %c = arith.constant 8 : i32\n  %b = arith.muli %pid, %c : i32\n"
             "  %bs = tt.splat %b : i32 -> tensor<8xi32>\n  %r = tt.make_range {start = 0 : i32, end = 8 : i32} : "
             "tensor<8xi32>\n"
             "  %x = arith.addi %bs, %r : tensor<8xi32>\n  %ns = tt.splat %n : i32 -> tensor<8xi32>\n"
             "  %m = arith.remsi %x, %ns : tensor<8xi32>",
             "%n: i32 {tt.divisibility = 16 : i32}");
  CHECK(f.contiguity == Dims{8});
  // Block columns of a grouped launch order, whose height is a difference.
  f = factOf(*context,
             "  %pid = tt.get_program_id x : i32\n  %c = arith.constant 8 : i32\n  %g = arith.divsi %pid, %per : i32\n"
             "  %left = arith.subi %rows, %g : i32\n  %in = arith.remsi %pid, %per : i32\n"
             "  %pn = arith.divsi %in, %left : i32\n  %b = arith.muli %pn, %c : i32\n"
             "  %bs = tt.splat %b : i32 -> tensor<8xi32>\n  %r = tt.make_range {start = 0 : i32, end = 8 : i32} : "
             "tensor<8xi32>\n"
             "  %x = arith.addi %bs, %r : tensor<8xi32>\n  %ns = tt.splat %n : i32 -> tensor<8xi32>\n"
             "  %m = arith.remsi %x, %ns : tensor<8xi32>",
             "%n: i32 {tt.divisibility = 16 : i32}, %per: i32, %rows: i32");
  CHECK(f.contiguity == Dims{8});
}

TEST_CASE("axis info: masks") {
  auto context = makeContext();
  const std::string compare =
      "  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>\n"
      "  %ns = tt.splat %n : i32 -> tensor<64xi32>\n  %m = arith.cmpi PRED, %r, %ns : tensor<64xi32>";
  auto with = [&](std::string text, const std::string &p) { return text.replace(text.find("PRED"), 4, p); };
  const std::string n16 = "%n: i32 {tt.divisibility = 16 : i32}";
  CHECK(factOf(*context, with(compare, "slt"), n16).constancy == Dims{16});
  CHECK(factOf(*context, with(compare, "slt"), "%n: i32").constancy == Dims{1});
  CHECK(factOf(*context, with(compare, "sle"), n16).constancy == Dims{1});
  CHECK(factOf(*context, with(compare, "uge"), n16).constancy == Dims{16});
  CHECK(factOf(*context, with(compare, "eq"), n16).constancy == Dims{1});
}

TEST_CASE("axis info: loop-carried pointers") {
  auto context = makeContext();
  auto loop = [&](const std::string &step) {
    return "  %c0 = arith.constant 0 : i32\n  %c1 = arith.constant 1 : i32\n"
           "  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>\n"
           "  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n"
           "  %q = tt.addptr %ps, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
           "  %s = arith.constant dense<" +
           step +
           "> : tensor<64xi32>\n"
           "  %e = scf.for %i = %c0 to %n step %c1 iter_args(%a = %q) -> tensor<64x!tt.ptr<f32>> : i32 {\n"
           "    %b = tt.addptr %a, %s : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
           "    scf.yield %b : tensor<64x!tt.ptr<f32>>\n  }\n"
           "  %z = tt.addptr %e, %s : tensor<64x!tt.ptr<f32>>, tensor<64xi32>";
  };
  const std::string args = "%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32";
  AxisInfo f = factOf(*context, loop("64"), args);
  CHECK(f.contiguity == Dims{64});
  CHECK(f.divisibility == Dims{16});
  CHECK(factOf(*context, loop("6"), args).divisibility == Dims{8});
}

TEST_CASE("axis info: facts hold in random functions") {
  auto context = makeContext();
  int checked = 0, skipped = 0, strong = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    auto module = randomFunction(*context, seed);
    REQUIRE(succeeded(verify(*module)));
    AxisInfoAnalysis axis(*module);
    auto func = *module->getOps<tt::FuncOp>().begin();
    std::mt19937 random(seed);
    for (int run = 0; run < 2; ++run) {
      auto args = randomArguments(random);
      // First without looking: what overflows or divides by zero is outside of what the facts promise.
      Interpreter probe;
      probe.run(func, args);
      if (probe.undefined) {
        ++skipped;
        continue;
      }
      Interpreter check;
      std::string wrong;
      check.observe = [&](Value v, const Elements &e) {
        const AxisInfo *fact = axis.lookup(v);
        if (!fact || !wrong.empty())
          return;
        strong += llvm::any_of(fact->contiguity, [](int64_t c) { return c > 1; });
        std::string text = contradiction(v, e, *fact, probe.overflowed);
        if (text.empty())
          return;
        llvm::raw_string_ostream os(wrong);
        os << text << ": " << str(*fact) << "\n  of " << v << "\nin\n" << func << "\nvalues:";
        for (int64_t x : e)
          os << ' ' << x;
      };
      check.run(func, args);
      CHECK_MESSAGE(wrong.empty(), "seed ", seed, ": ", wrong);
      if (!wrong.empty())
        return;
      ++checked;
    }
  }
  CHECK(checked > 1000);
  CHECK(strong > 10000);
  MESSAGE(checked, " runs checked, ", skipped, " skipped");
}
