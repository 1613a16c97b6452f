// Pipelined products on emulated GPUs, and what is reported when a wait, a barrier or a fence is taken out of their
// ttgir.
#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/codegen/compile.h>
#include <tessera/error.h>
#include <tessera/runtime/cpu_executor.h>

using namespace tessera;

namespace {

/// C (64 x 64) = A (64 x K) * B (K x 64), f16, tiles of 32 along K, three stages. B is doubled on its way where
/// `through` says so: then it goes through registers.
std::string product(bool through_registers) {
  std::string text = R"(
tt.func public @product(%A: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %B: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %C: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %K: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %m = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %k = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %m1 = tt.expand_dims %m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %n1 = tt.expand_dims %m {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %k0 = tt.expand_dims %k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %k1 = tt.expand_dims %k {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %Ks = tt.splat %K : i32 -> tensor<64x1xi32>
  %rows = arith.muli %m1, %Ks : tensor<64x1xi32>
  %rows2 = tt.broadcast %rows : tensor<64x1xi32> -> tensor<64x32xi32>
  %along = tt.broadcast %k0 : tensor<1x32xi32> -> tensor<64x32xi32>
  %ai = arith.addi %rows2, %along : tensor<64x32xi32>
  %c64 = arith.constant dense<64> : tensor<32x1xi32>
  %down = arith.muli %k1, %c64 : tensor<32x1xi32>
  %down2 = tt.broadcast %down : tensor<32x1xi32> -> tensor<32x64xi32>
  %n2 = tt.broadcast %n1 : tensor<1x64xi32> -> tensor<32x64xi32>
  %bi = arith.addi %down2, %n2 : tensor<32x64xi32>
  %d = scf.for %i = %c0 to %K step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %ap = tt.addptr %A, %i : !tt.ptr<f16>, i32
    %as = tt.splat %ap : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %aps = tt.addptr %as, %ai : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    %a = tt.load %aps : tensor<64x32x!tt.ptr<f16>>
    %c64s = arith.constant 64 : i32
    %skip = arith.muli %i, %c64s : i32
    %bp = tt.addptr %B, %skip : !tt.ptr<f16>, i32
    %bs = tt.splat %bp : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
    %bps = tt.addptr %bs, %bi : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
    %b = tt.load %bps : tensor<32x64x!tt.ptr<f16>>
    // DOUBLE
    %next = tt.dot %a, %b, %acc : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  } {tt.num_stages = 3 : i32}
  %cm = arith.constant dense<64> : tensor<64x1xi32>
  %cr = arith.muli %m1, %cm : tensor<64x1xi32>
  %cr2 = tt.broadcast %cr : tensor<64x1xi32> -> tensor<64x64xi32>
  %cn = tt.broadcast %n1 : tensor<1x64xi32> -> tensor<64x64xi32>
  %ci = arith.addi %cr2, %cn : tensor<64x64xi32>
  %cs = tt.splat %C : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %cp = tt.addptr %cs, %ci : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %cp, %d : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
)";
  if (through_registers) {
    text.replace(text.find("// DOUBLE"), 9, "%b2 = arith.addf %b, %b : tensor<32x64xf16>");
    text.replace(text.find("tt.dot %a, %b,"), 14, "tt.dot %a, %b2,");
  }
  return text;
}

/// Products whose A wgmma gets in registers: tf32 of B loaded against k (it is A, transposed), or f16, which is
/// doubled.
std::string product_of_registers(bool tf32) {
  std::string text = product(false);
  if (tf32) {
    for (std::size_t at; (at = text.find("f16")) != text.npos;)
      text.replace(at, 3, "f32");
    text.replace(text.find("%b, %acc :"), 10, "%b, %acc, inputPrecision = tf32 :");
  } else {
    text.replace(text.find("// DOUBLE"), 9, "%a2 = arith.addf %a, %a : tensor<64x32xf16>");
    text.replace(text.find("tt.dot %a,"), 10, "tt.dot %a2,");
  }
  return text;
}

constexpr int depth = 256;

std::uint16_t encode(std::uint16_t, int value) { // f16, -3 … 3
  std::uint16_t size[] = {0, 0x3c00, 0x4000, 0x4200};
  return std::uint16_t(size[value < 0 ? -value : value] | (value < 0 ? 0x8000 : 0));
}
float encode(float, int value) { return float(value); }

/// Runs the kernel on small integers; the error's text, "wrong" where the result is, "" where all is well.
template <class Element = std::uint16_t> std::string run(const std::string &text, const char *target, int factor) {
  ir_module module = parse_ir(text, "kernel.ttir");
  auto kernel = cpu_kernel::load(compile(module, parse_target(target)));
  alignas(16) static Element a[64 * depth], b[depth * 64];
  alignas(16) static float c[64 * 64];
  auto value_a = [](int m, int k) { return (m * 5 + k * 3) % 7 - 3; };
  auto value_b = [](int k, int n) { return (k * 4 + n * 9) % 7 - 3; };
  for (int i = 0; i < 64; ++i)
    for (int k = 0; k < depth; ++k) {
      a[i * depth + k] = encode(Element(), value_a(i, k));
      b[k * 64 + i] = encode(Element(), value_b(k, i));
    }
  const Element *ap = a, *bp = b;
  float *cp = c;
  int k = depth;
  const void *args[] = {&ap, &bp, &cp, &k};
  try {
    kernel->run({1, 1, 1}, args);
  } catch (const error &e) {
    CHECK(e.stage() == stage::execute);
    std::string message = e.what();
    CHECK(message.find("kernel.ttir:") != message.npos); // the operation that was caught
    return message;
  }
  for (int m = 0; m < 64; ++m)
    for (int n = 0; n < 64; ++n) {
      int want = 0;
      for (int x = 0; x < depth; ++x)
        want += factor * value_a(m, x) * value_b(x, n);
      if (c[m * 64 + n] != float(want))
        return "wrong";
    }
  return "";
}

std::string ttgir_of(const std::string &text, const char *target) {
  ir_module module = parse_ir(text, "product.ttir");
  return *compile(module, parse_target(target), {}, "ttgir").find("ttgir");
}

/// Position of `what` in the body of the loop.
std::size_t in_loop(const std::string &text, const std::string &what, std::size_t from = 0) {
  std::size_t at = text.find(what, std::max(from, text.find("scf.for")));
  REQUIRE(at != text.npos);
  REQUIRE(at < text.find("scf.yield"));
  return at;
}

std::string without_line(std::string text, std::size_t at) {
  std::size_t begin = text.rfind('\n', at) + 1;
  return text.erase(begin, text.find('\n', at) + 1 - begin);
}

/// Another number for the attribute that begins at or after `at`.
std::string with_number(std::string text, std::size_t at, const char *attribute, const char *number) {
  at = text.find(std::string(attribute) + " = ", at);
  REQUIRE(at != text.npos);
  at += std::string(attribute).size() + 3;
  return text.replace(at, text.find(' ', at) - at, number);
}

template <class Element = std::uint16_t>
void check_report(const std::string &text, const char *target, const char *expected, int factor = 1) {
  std::string message = run<Element>(text, target, factor);
  INFO(target << ": " << expected << "\n" << message << "\n" << text);
  CHECK(message.find(expected) != message.npos);
}

} // namespace

TEST_CASE("pipelined products are right, and clean") {
  for (const char *target : {"cpu", "cpu:emulate=sm_80", "cpu:emulate=sm_90a", "cpu:emulate=gfx90a",
                             "cpu:emulate=gfx942", "cpu:emulate=gfx950", "cpu:emulate=gfx1100", "cpu:emulate=gfx1201"})
    for (bool through_registers : {false, true}) {
      INFO(target);
      CHECK(run(product(through_registers), target, through_registers ? 2 : 1) == "");
    }
}

TEST_CASE("a copy that is not waited for, or read without a barrier, is reported") {
  for (const char *target : {"cpu:emulate=sm_80", "cpu:emulate=sm_90a", "cpu:emulate=gfx950"}) {
    std::string text = ttgir_of(product(false), target);
    CHECK(run(text, target, 1) == "");
    std::size_t wait = in_loop(text, "ttg.async_wait");
    check_report(with_number(text, wait, "num", "7"), target, "that nobody has waited for");
    check_report(without_line(text, in_loop(text, "ttg.barrier local", wait)), target, "with no barrier between");
  }
}

TEST_CASE("a copy into the buffer that is being read is reported") {
  // The copies of the loop go where its products read.
  for (const char *target : {"cpu:emulate=sm_80", "cpu:emulate=sm_90a", "cpu:emulate=gfx950"}) {
    std::string text = ttgir_of(product(false), target);
    std::size_t copy = in_loop(text, "ttg.async_copy_global_to_local");
    std::string slot = text.substr(text.find(", %", copy) + 2, text.find(" mask", copy) - text.find(", %", copy) - 2);
    std::size_t written = text.find("[%", text.find(slot + " = ttg.memdesc_index"));
    std::size_t read = text.find("[%", written + 1);
    std::string index = text.substr(read, text.find(']', read) - read);
    text.replace(written, text.find(']', written) - written, index);
    check_report(text, target, "shared memory");
  }
}

TEST_CASE("a product whose wait is missing or late is reported") {
  const char *target = "cpu:emulate=sm_90a";
  std::string text = ttgir_of(product(false), target);
  std::size_t wait = in_loop(text, "ttng.warp_group_dot_wait");
  check_report(with_number(text, wait, "pendings", "7"), target, "before the wgmma was waited for");
  check_report(without_line(text, in_loop(text, "ttg.barrier local", wait)), target, "with no barrier between");
  std::size_t last = text.find("ttng.warp_group_dot_wait", text.find("scf.yield"));
  REQUIRE(last != text.npos);
  check_report(with_number(text, last, "pendings", "1"), target, "reads a result of its wgmma");
}

TEST_CASE("a sum that is read while products add to it is reported") {
  const char *target = "cpu:emulate=sm_90a", *expected = "reads a result of its wgmma at kernel.ttir:";
  std::string text = ttgir_of(product(false), target);
  std::size_t wait = in_loop(text, "ttng.warp_group_dot_wait");
  // In the loop: doubled before it goes on. Behind a wait for all products that is allowed, if not what was meant.
  std::size_t name = text.rfind('%', wait), yield = text.find("scf.yield");
  std::string sum = text.substr(name, text.find(' ', name) - name), twice = text;
  twice.replace(text.find(sum, yield), sum.size(), "%twice");
  twice.insert(yield, "%twice = arith.addf " + sum + ", " + sum + " : tensor<64x64xf32, #mma>\n");
  check_report(twice, target, expected);
  CHECK(run(with_number(twice, wait, "pendings", "0"), target, 1) == "wrong");
  // Without any wait: that can be seen when it is compiled.
  std::size_t in_flight = text.find('%', wait);
  std::string product_of = text.substr(in_flight, text.find(' ', in_flight) - in_flight), direct = text;
  direct.replace(text.find(sum, yield), sum.size(), "%twice");
  direct.insert(yield, "%twice = arith.addf " + product_of + ", " + product_of + " : tensor<64x64xf32, #mma>\n");
  check_report(direct, target, expected);
  ir_module module = parse_ir(direct, "kernel.ttir");
  CHECK_THROWS_WITH(compile(module, parse_target("cuda:sm_90a"), {}, "ptx"),
                    doctest::Contains("reads a product in flight"));
  // Behind the loop: what goes into the wait, and not what comes out of it.
  std::size_t last = text.find("ttng.warp_group_dot_wait", yield), in = text.find('%', last),
              out = text.rfind('%', last);
  std::string unfinished = text.substr(in, text.find(' ', in) - in), done = text.substr(out, text.find(' ', out) - out);
  std::size_t use = text.find(done + " ", last);
  REQUIRE(use != text.npos);
  check_report(text.replace(use, done.size(), unfinished), target, "reads a result of its wgmma, which");
}

TEST_CASE("registers that are loaded while a product in flight reads them are reported") {
  const char *target = "cpu:emulate=sm_90a", *expected = "writes a register that its wgmma";
  auto check = [&]<class Element>(Element, std::string text, int factor) {
    for (const char *other : {"cpu", "cpu:emulate=sm_80", "cpu:emulate=gfx942"})
      CHECK(run<Element>(text, other, factor) == "");
    text = ttgir_of(text, target);
    CHECK(run<Element>(text, target, factor) == "");
    // Two slices, in front of whose loads there is a wait each.
    std::size_t first = in_loop(text, "ttng.warp_group_dot_wait"), load = in_loop(text, "ttg.local_load", first);
    std::size_t second = in_loop(text, "ttng.warp_group_dot_wait", load);
    std::size_t last = in_loop(text, "ttg.local_load", second);
    CHECK(in_loop(text, "isAsync = true", load) < second);
    CHECK(in_loop(text, "isAsync = true", last) > last);
    for (std::size_t wait : {first, second}) {
      std::string early = with_number(text, wait, "pendings", "7");
      check_report<Element>(early, target, expected, factor);
      ir_module module = parse_ir(early, "kernel.ttir");
      CHECK_THROWS_WITH(compile(module, parse_target("cuda:sm_90a"), {}, "ptx"),
                        doctest::Contains("with A in registers is left unfinished"));
    }
  };
  check(float(), product_of_registers(true), 1);
  check(std::uint16_t(), product_of_registers(false), 2);
}

TEST_CASE("a missing fence between stores and the product that reads them is reported") {
  const char *target = "cpu:emulate=sm_90a";
  std::string text = ttgir_of(product(true), target);
  CHECK(run(text, target, 2) == "");
  std::size_t fence = text.find("ttng.fence_async_shared");
  REQUIRE(fence != text.npos);
  for (; fence != text.npos; fence = text.find("ttng.fence_async_shared"))
    text = without_line(text, fence);
  check_report(text, target, "asynchronous-proxy fence", 2);
}

TEST_CASE("ldmatrix and stmatrix that follow different swizzles are reported") {
  // A tile is stored in one layout of the memory, and read as an operand of mma.sync in another.
  auto text = [](const char *tile, const char *read) {
    return std::string(R"(
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#operand = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#written = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
#tile = )") +
           tile + "\n#read = " + read + R"(
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.shared = 4096 : i32, ttg.target = "cuda:90"} {
  tt.func public @tiles(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %k: i32) {
    %tile = arith.constant dense<1.0> : tensor<64x32xf16, #tile>
    %x = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<64x32xf16, #written, #smem, mutable>
    %y = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<64x32xf16, #read, #smem, mutable>
    ttg.local_store %tile, %x : tensor<64x32xf16, #tile> -> !ttg.memdesc<64x32xf16, #written, #smem, mutable>
    ttg.barrier local
    %v = ttg.local_load %y : !ttg.memdesc<64x32xf16, #read, #smem, mutable> -> tensor<64x32xf16, #operand>
    tt.return
  }
})";
  };
  const char *right = "#ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>",
             *wrong = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}>";
  for (const char *tile : {"#blocked", "#mma"}) { // by stores, and by stmatrix where there is one
    INFO(tile);
    for (const char *target : {"cpu:emulate=sm_80", "cpu:emulate=sm_90a"}) {
      CHECK(run(text(tile, right), target, 1) == "wrong"); // it computes nothing, but is clean
      check_report(text(tile, wrong), target, "wrong element");
    }
  }
  ir_module module = parse_ir(text("#mma", right), "kernel.ttir");
  std::string code = *compile(module, parse_target("cpu:emulate=sm_90a"), {}, "llir").find("llir");
  CHECK(code.find("call void @tessera_cpu_load_matrix") != code.npos);
  CHECK(code.find("call void @tessera_cpu_store_matrix") != code.npos);
}
