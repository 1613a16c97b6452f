// The CPU target from IR text to results: native code and emulated GPUs.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <limits>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <tessera/codegen/compile.h>
#include <tessera/error.h>
#include <tessera/runtime/cpu_executor.h>

using namespace tessera;

namespace {

const char *const every_target[] = {"cpu", "cpu:emulate=sm_80", "cpu:emulate=sm_90a", "cpu:emulate=gfx942",
                                    "cpu:emulate=gfx1100"};

compiled_kernel compile_text(const std::string &text, const std::string &t, compile_options options = {},
                             const char *last = "") {
  ir_module module = parse_ir(text, "kernel.ttir");
  return compile(module, parse_target(t), options, last);
}

template <class... T> cpu_counters launch(const compiled_kernel &kernel, std::array<std::uint32_t, 3> grid, T... args) {
  const void *pointers[] = {&args...};
  return cpu_kernel::load(kernel)->run(grid, pointers);
}

std::string message_of(auto &&body) {
  try {
    body();
  } catch (const error &e) {
    CHECK(e.stage() == stage::execute);
    return e.what();
  }
  return "";
}

/// Memory that ends (or starts) at a page nobody may touch.
template <class T> struct guarded {
  static constexpr std::size_t page = 4096;
  std::byte *base;
  std::size_t pages;
  T *at_end, *at_start;
  explicit guarded(std::size_t count) : pages((count * sizeof(T) + page - 1) / page) {
    base = static_cast<std::byte *>(
        mmap(nullptr, (pages + 2) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base, page, PROT_NONE);
    mprotect(base + (pages + 1) * page, page, PROT_NONE);
    at_start = reinterpret_cast<T *>(base + page);
    at_end = reinterpret_cast<T *>(base + (pages + 1) * page) - count;
  }
  ~guarded() { munmap(base, (pages + 2) * page); }
};

/// y[i] = x[i + shift] where 0 <= i + shift < n, else `other`; and y is written where 0 <= i < n only.
std::string masked_copy(const char *type, const char *other, int block) {
  return fmt::format(R"(
tt.func public @masked_copy(%x: !tt.ptr<{0}>, %y: !tt.ptr<{0}>, %n: i32, %shift: i32) {{
  %r = tt.make_range {{start = 0 : i32, end = {2} : i32}} : tensor<{2}xi32>
  %s = tt.splat %shift : i32 -> tensor<{2}xi32>
  %i = arith.addi %r, %s : tensor<{2}xi32>
  %zero = arith.constant dense<0> : tensor<{2}xi32>
  %ns = tt.splat %n : i32 -> tensor<{2}xi32>
  %low = arith.cmpi sge, %i, %zero : tensor<{2}xi32>
  %high = arith.cmpi slt, %i, %ns : tensor<{2}xi32>
  %mask = arith.andi %low, %high : tensor<{2}xi1>
  %other = arith.constant dense<{1}> : tensor<{2}x{0}>
  %xs = tt.splat %x : !tt.ptr<{0}> -> tensor<{2}x!tt.ptr<{0}>>
  %xp = tt.addptr %xs, %i : tensor<{2}x!tt.ptr<{0}>>, tensor<{2}xi32>
  %v = tt.load %xp, %mask, %other : tensor<{2}x!tt.ptr<{0}>>
  %ys = tt.splat %y : !tt.ptr<{0}> -> tensor<{2}x!tt.ptr<{0}>>
  %yp = tt.addptr %ys, %r : tensor<{2}x!tt.ptr<{0}>>, tensor<{2}xi32>
  %store = arith.cmpi slt, %r, %ns : tensor<{2}xi32>
  tt.store %yp, %v, %store : tensor<{2}x!tt.ptr<{0}>>
  tt.return
}})",
                     type, other, block);
}

template <class T> void check_masked_copy(const char *target, const char *type, const char *other, T other_value) {
  for (int block : {16, 256}) {
    compiled_kernel kernel = compile_text(masked_copy(type, other, block), target);
    for (int n : {1, 7, 13, 16})
      for (int shift : {0, 3, -2, 16, -16})
        for (bool at_end : {true, false}) {
          guarded<T> x(n), y(n);
          T *xs = at_end ? x.at_end : x.at_start, *ys = at_end ? y.at_end : y.at_start;
          for (int i = 0; i < n; ++i)
            xs[i] = T(i + 10);
          launch(kernel, {1, 1, 1}, xs, ys, n, shift);
          for (int i = 0; i < n; ++i) {
            T expect = i + shift >= 0 && i + shift < n ? T(i + shift + 10) : other_value;
            if (ys[i] != expect)
              FAIL_CHECK(target << " " << type << " n=" << n << " shift=" << shift << " i=" << i);
          }
        }
  }
}

/// Row softmax, one row a program; the row is `block` wide.
std::string softmax(int block) {
  return fmt::format(R"(
tt.func public @softmax(%x: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}, %y: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}, %n: i32) {{
  %row = tt.get_program_id x : i32
  %base = arith.muli %row, %n : i32
  %r = tt.make_range {{start = 0 : i32, end = {0} : i32}} : tensor<{0}xi32>
  %ns = tt.splat %n : i32 -> tensor<{0}xi32>
  %mask = arith.cmpi slt, %r, %ns : tensor<{0}xi32>
  %other = arith.constant dense<0xFF800000> : tensor<{0}xf32>
  %xr = tt.addptr %x, %base : !tt.ptr<f32>, i32
  %xs = tt.splat %xr : !tt.ptr<f32> -> tensor<{0}x!tt.ptr<f32>>
  %xp = tt.addptr %xs, %r : tensor<{0}x!tt.ptr<f32>>, tensor<{0}xi32>
  %v = tt.load %xp, %mask, %other : tensor<{0}x!tt.ptr<f32>>
  %max = "tt.reduce"(%v) <{{axis = 0 : i32}}> ({{
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tt.reduce.return %c : f32
  }}) : (tensor<{0}xf32>) -> f32
  %maxs = tt.splat %max : f32 -> tensor<{0}xf32>
  %d = arith.subf %v, %maxs : tensor<{0}xf32>
  %e = math.exp %d : tensor<{0}xf32>
  %sum = "tt.reduce"(%e) <{{axis = 0 : i32}}> ({{
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }}) : (tensor<{0}xf32>) -> f32
  %sums = tt.splat %sum : f32 -> tensor<{0}xf32>
  %out = arith.divf %e, %sums : tensor<{0}xf32>
  %yr = tt.addptr %y, %base : !tt.ptr<f32>, i32
  %ys = tt.splat %yr : !tt.ptr<f32> -> tensor<{0}x!tt.ptr<f32>>
  %yp = tt.addptr %ys, %r : tensor<{0}x!tt.ptr<f32>>, tensor<{0}xi32>
  tt.store %yp, %out, %mask : tensor<{0}x!tt.ptr<f32>>
  tt.return
}})",
                     block);
}

/// out[i] = op(a[i], b[i]) on `block` elements.
std::string binary(const std::string &op, const char *type, int block) {
  return fmt::format(R"(
tt.func public @binary(%a: !tt.ptr<{1}>, %b: !tt.ptr<{1}>, %out: !tt.ptr<{1}>) {{
  %r = tt.make_range {{start = 0 : i32, end = {2} : i32}} : tensor<{2}xi32>
  %as = tt.splat %a : !tt.ptr<{1}> -> tensor<{2}x!tt.ptr<{1}>>
  %ap = tt.addptr %as, %r : tensor<{2}x!tt.ptr<{1}>>, tensor<{2}xi32>
  %x = tt.load %ap : tensor<{2}x!tt.ptr<{1}>>
  %bs = tt.splat %b : !tt.ptr<{1}> -> tensor<{2}x!tt.ptr<{1}>>
  %bp = tt.addptr %bs, %r : tensor<{2}x!tt.ptr<{1}>>, tensor<{2}xi32>
  %y = tt.load %bp : tensor<{2}x!tt.ptr<{1}>>
  %z = {0} %x, %y : tensor<{2}x{1}>
  %os = tt.splat %out : !tt.ptr<{1}> -> tensor<{2}x!tt.ptr<{1}>>
  %op = tt.addptr %os, %r : tensor<{2}x!tt.ptr<{1}>>, tensor<{2}xi32>
  tt.store %op, %z : tensor<{2}x!tt.ptr<{1}>>
  tt.return
}})",
                     op, type, block);
}

template <class T> void check_division(const char *target, const char *type) {
  constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  const T interesting[] = {low, T(low + 1), T(-7), T(-1), 0, 1, 2, 7, T(high - 1), high, 3, T(low / 3)};
  std::vector<T> a, b;
  for (T x : interesting)
    for (T y : interesting)
      a.push_back(x), b.push_back(y);
  a.resize(256, 1), b.resize(256, 1);
  for (bool remainder : {false, true}) {
    std::vector<T> out(256);
    compiled_kernel kernel = compile_text(binary(remainder ? "arith.remsi" : "arith.divsi", type, 256), target);
    launch(kernel, {1, 1, 1}, a.data(), b.data(), out.data());
    for (int i = 0; i < 256; ++i) {
      if (b[i] == 0) // no trap; the value is whatever
        continue;
      T expect = b[i] == T(-1) ? (remainder ? T(0) : T(0 - std::make_unsigned_t<T>(a[i])))
                 : remainder   ? T(a[i] % b[i])
                               : T(a[i] / b[i]);
      if (out[i] != expect)
        FAIL_CHECK(target << " " << type << " " << +a[i] << (remainder ? " % " : " / ") << +b[i] << " gave "
                          << +out[i]);
    }
  }
}

float bfloat(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t(bits) << 16); }

} // namespace

TEST_CASE("masked lanes never touch memory") {
  for (const char *target : every_target) {
    check_masked_copy<float>(target, "f32", "-1.0", -1.0f);
    check_masked_copy<std::int32_t>(target, "i32", "-1", -1);
    check_masked_copy<std::int8_t>(target, "i8", "-1", -1);
    check_masked_copy<std::int16_t>(target, "i16", "-1", -1);
    check_masked_copy<std::int64_t>(target, "i64", "-1", -1);
    check_masked_copy<double>(target, "f64", "-1.0", -1.0);
  }
}

TEST_CASE("softmax agrees with a reference on every target") {
  for (const char *target : every_target)
    for (int block : {32, 1024, 4096}) {
      compile_options options;
      options.num_warps = block == 32 ? 1 : 4;
      compiled_kernel kernel = compile_text(softmax(block), target, options);
      int rows = 5, n = block - block / 4;
      std::vector<float> x(rows * n), y(rows * n, -1);
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = 4 * std::sin(float(i) * 0.37f);
      launch(kernel, {unsigned(rows), 1, 1}, x.data(), y.data(), n);
      double worst = 0;
      for (int r = 0; r < rows; ++r) {
        double max = -1e30, sum = 0;
        for (int j = 0; j < n; ++j)
          max = std::max<double>(max, x[r * n + j]);
        for (int j = 0; j < n; ++j)
          sum += std::exp(x[r * n + j] - max);
        for (int j = 0; j < n; ++j)
          worst = std::max(worst, std::fabs(y[r * n + j] - std::exp(x[r * n + j] - max) / sum) * sum);
      }
      INFO(target << " block " << block);
      CHECK(worst < 2e-6);
    }
}

TEST_CASE("integer division neither traps nor rounds") {
  for (const char *target : every_target) {
    check_division<std::int8_t>(target, "i8");
    check_division<std::int16_t>(target, "i16");
    check_division<std::int32_t>(target, "i32");
    check_division<std::int64_t>(target, "i64");
  }
}

TEST_CASE("bf16 arithmetic is f32 arithmetic rounded to nearest even, denormals kept") {
  for (const char *target : every_target) {
    compiled_kernel kernel = compile_text(binary("arith.addf", "bf16", 256), target);
    std::vector<std::uint16_t> a(256), b(256), out(256);
    for (int i = 0; i < 256; ++i) {
      a[i] = std::uint16_t(i * 7919);
      b[i] = std::uint16_t(i * 104729 + 77);
    }
    a[0] = 1, b[0] = 2; // denormals
    launch(kernel, {1, 1, 1}, a.data(), b.data(), out.data());
    for (int i = 0; i < 256; ++i) {
      float sum = bfloat(a[i]) + bfloat(b[i]);
      if (std::isnan(sum)) {
        CHECK(std::isnan(bfloat(out[i])));
        continue;
      }
      auto bits = std::bit_cast<std::uint32_t>(sum);
      CHECK(out[i] == std::uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
    }
  }
}

/// The sum of `rows` row maxima: the reduction's scratch is used again in every trip of the loop.
static const char *const looped_reduction = R"(
tt.func public @looped(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %rows: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c1024 = arith.constant 1024 : i32
  %start = arith.constant 0.0 : f32
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %total = scf.for %row = %c0 to %rows step %c1 iter_args(%acc = %start) -> (f32) : i32 {
    %base = arith.muli %row, %c1024 : i32
    %xr = tt.addptr %x, %base : !tt.ptr<f32>, i32
    %xs = tt.splat %xr : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %xp = tt.addptr %xs, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %v = tt.load %xp : tensor<1024x!tt.ptr<f32>>
    %max = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<1024xf32>) -> f32
    %next = arith.addf %acc, %max : f32
    scf.yield %next : f32
  }
  tt.store %out, %total : !tt.ptr<f32>
  tt.return
})";

TEST_CASE("a barrier taken out of the ttgir is reported with the source line") {
  for (const char *target : {"cpu:emulate=sm_90a", "cpu:emulate=gfx942"}) {
    int rows = 5;
    float out = 0;
    std::vector<float> x(rows * 1024);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = float(i);
    std::string ttgir = *compile_text(looped_reduction, target, {}, "ttgir").find("ttgir");
    launch(compile_text(ttgir, target), {1, 1, 1}, x.data(), &out, rows);
    CHECK(out == 1023 * 5 + 1024 * 10);
    auto at = ttgir.find("ttg.barrier local");
    REQUIRE(at != ttgir.npos);
    for (; at != ttgir.npos; at = ttgir.find("ttg.barrier local"))
      ttgir.erase(at, ttgir.find('\n', at) - at);
    compiled_kernel broken = compile_text(ttgir, target);
    std::string message = message_of([&] { launch(broken, {1, 1, 1}, x.data(), &out, rows); });
    INFO(message);
    CHECK(message.find("race: warp") != message.npos);
    CHECK(message.find("kernel.ttir:") != message.npos);
    CHECK(message.find("kernel 'looped', program (0, 0, 0)") != message.npos);
  }
}

static std::string through_shared(const char *load_swizzle, const char *middle) {
  return fmt::format(R"(
#blocked = #ttg.blocked<{{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}}>
#other = #ttg.blocked<{{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}}>
#written = #ttg.swizzled_shared<{{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0]}}>
#read = #ttg.swizzled_shared<{{{0}, order = [1, 0]}}>
#smem = #ttg.shared_memory
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.shared = 4096 : i32, ttg.target = "cuda:90"}} {{
  tt.func public @through_shared(%out: !tt.ptr<f32>) {{
    %tile = arith.constant dense<1.0> : tensor<32x32xf32, #blocked>
    %a = ttg.local_alloc {{allocation.offset = 0 : i32}} : () -> !ttg.memdesc<32x32xf32, #written, #smem, mutable>
    %b = ttg.local_alloc {{allocation.offset = 0 : i32}} : () -> !ttg.memdesc<32x32xf32, #read, #smem, mutable>
    {1}
    tt.return
  }}
}})",
                     load_swizzle, middle);
}

static const char *const store_op =
    "ttg.local_store %tile, %a : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #written, #smem, mutable>\n";
static const char *const load_op =
    "%v = ttg.local_load %b : !ttg.memdesc<32x32xf32, #read, #smem, mutable> -> tensor<32x32xf32, #other>\n"
    "%t = arith.addf %v, %v : tensor<32x32xf32, #other>\n"
    "%s = \"tt.reduce\"(%t) <{axis = 0 : i32}> ({\n^bb0(%p: f32, %q: f32):\n%r = arith.addf %p, %q : f32\n"
    "tt.reduce.return %r : f32\n}) {allocation.offset = 0 : i32} : (tensor<32x32xf32, #other>) -> tensor<32xf32, "
    "#ttg.slice<{dim = 0, parent = #other}>>\n";

TEST_CASE("a wrong swizzle, a missing barrier and an unwritten buffer are reported") {
  float out[1024];
  auto run = [&](const char *swizzle, std::string middle) {
    compiled_kernel kernel = compile_text(through_shared(swizzle, middle.c_str()), "cpu:emulate=sm_90a");
    return message_of([&] { launch(kernel, {1, 1, 1}, static_cast<float *>(out)); });
  };
  const char *right = "vec = 4, perPhase = 1, maxPhase = 8", *wrong = "vec = 4, perPhase = 2, maxPhase = 4";
  std::string store = store_op, load = load_op, barrier = "ttg.barrier local\n";
  CHECK(run(right, store + barrier + load) == "");
  std::string message = run(wrong, store + barrier + load);
  INFO(message);
  CHECK(message.find("wrong element") != message.npos);
  CHECK(message.find("swizzle") != message.npos);
  CHECK(message.find("kernel.ttir:") != message.npos);
  message = run(right, store + load);
  // Warp 0 goes first, and comes to what the others have yet to write.
  CHECK(message.find("no thread has written") != message.npos);
  message = run(right, load);
  CHECK(message.find("no thread has written") != message.npos);
}

TEST_CASE("a misaligned vector access is reported as the GPU would fault") {
  std::string text = binary("arith.addf", "f32", 1024), fact = " {tt.divisibility = 16 : i32}";
  for (const char *argument : {"%a: !tt.ptr<f32>", "%b: !tt.ptr<f32>", "%out: !tt.ptr<f32>"})
    text.insert(text.find(argument) + std::strlen(argument), fact);
  compiled_kernel built = compile_text(text, "cpu:emulate=sm_90a");
  std::vector<float> x(1100);
  auto *aligned = reinterpret_cast<float *>((reinterpret_cast<std::uintptr_t>(x.data()) + 63) / 64 * 64);
  CHECK(message_of([&] { launch(built, {1, 1, 1}, aligned, aligned, aligned); }) == "");
  std::string message = message_of([&] { launch(built, {1, 1, 1}, aligned, aligned + 1, aligned); });
  INFO(message);
  CHECK(message.find("not a multiple of 16") != message.npos);
}

TEST_CASE("faults and failed assertions are errors, and the next launch works") {
  const char *text = R"(
tt.func public @checked(%out: !tt.ptr<i32>, %n: i32) {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %ns = tt.splat %n : i32 -> tensor<64xi32>
  %ok = arith.cmpi slt, %r, %ns : tensor<64xi32>
  tt.assert %ok, "index out of range" : tensor<64xi1>
  %os = tt.splat %out : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %op = tt.addptr %os, %r : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  tt.store %op, %r : tensor<64x!tt.ptr<i32>>
  tt.return
})";
  for (const char *target : every_target) {
    compile_options options;
    options.debug = true;
    auto kernel = cpu_kernel::load(compile_text(text, target, options));
    std::vector<int> out(64, -1);
    int *good = out.data(), *bad = nullptr, n = 64, few = 63;
    const void *fails[] = {&good, &few}, *faults[] = {&bad, &n}, *works[] = {&good, &n};
    std::string message = message_of([&] { kernel->run({8, 1, 1}, fails); });
    CHECK(message.find("index out of range") != message.npos);
    CHECK(message.find("kernel.ttir:6") != message.npos);
    message = message_of([&] { kernel->run({64, 1, 1}, faults); });
    CHECK(message.find("illegal memory access") != message.npos);
    if (std::string_view(target) != "cpu" ||
        parse_target("cpu").warp_size() == 16) // narrower hosts store by a helper function
      CHECK(message.find("kernel.ttir:9") != message.npos);
    CHECK(kernel->run({2, 2, 2}, works).programs == 8);
    CHECK(out[63] == 63);
  }
}

TEST_CASE("a fault of a scalar access is not put down to the access before it") {
  const char *text = R"(
tt.func public @scalar(%x: !tt.ptr<i32>, %s: !tt.ptr<i32>) {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %xp = tt.addptr %xs, %r : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  tt.store %xp, %r : tensor<64x!tt.ptr<i32>>
  %n = tt.load %s : !tt.ptr<i32>
  %square = arith.muli %n, %n : i32
  %ns = tt.splat %square : i32 -> tensor<64xi32>
  tt.store %xp, %ns : tensor<64x!tt.ptr<i32>>
  tt.return
})";
  for (const char *target : every_target) {
    auto kernel = cpu_kernel::load(compile_text(text, target));
    std::vector<int> out(64, -1);
    int *good = out.data(), *bad = nullptr, value = 5, *place = &value;
    const void *faults[] = {&good, &bad}, *works[] = {&good, &place};
    const std::string message = message_of([&] { kernel->run({1, 1, 1}, faults); });
    CHECK(message.find("illegal memory access") != message.npos);
    CHECK_MESSAGE(message.find("kernel.ttir:7") != message.npos, std::string(target), ": ", message);
    kernel->run({1, 1, 1}, works);
    CHECK(out[63] == 25);
  }
}

TEST_CASE("device_print writes each value with its place") {
  const char *text = R"(
tt.func public @printing(%n: i32) {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %ns = tt.splat %n : i32 -> tensor<64xi32>
  %v = arith.subi %r, %ns : tensor<64xi32>
  %f = arith.sitofp %n : i32 to f16
  tt.print "value: " {hex = false, isSigned = array<i32: 1>} : %v : tensor<64xi32>
  tt.print "scalar: " {hex = false, isSigned = array<i32: 0>} : %f : f16
  tt.return
})";
  for (const char *target : {"cpu", "cpu:emulate=sm_90a"}) {
    compiled_kernel kernel = compile_text(text, target);
    std::fflush(stdout);
    int saved = dup(1);
    std::FILE *file = std::tmpfile();
    dup2(fileno(file), 1);
    launch(kernel, {1, 1, 1}, 3);
    std::fflush(stdout);
    dup2(saved, 1);
    close(saved);
    std::rewind(file);
    std::string printed(1 << 16, 0);
    printed.resize(std::fread(printed.data(), 1, printed.size(), file));
    std::fclose(file);
    INFO(printed);
    CHECK(printed.find("value: -3\n") != printed.npos);
    CHECK(printed.find("value: 60\n") != printed.npos);
    CHECK(printed.find("pid (0, 0, 0): scalar: 3\n") != printed.npos);
    CHECK(printed.find("scalar", printed.find("scalar") + 1) == printed.npos);
  }
}

TEST_CASE("an empty grid does nothing, one kernel runs on many threads at once") {
  auto kernel = cpu_kernel::load(compile_text(masked_copy("f32", "0.0", 64), "cpu"));
  CHECK(kernel->run({0, 5, 5}, nullptr).programs == 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<float> x(64, float(t)), y(64);
      float *xp = x.data(), *yp = y.data();
      int n = 64, shift = 0;
      const void *args[] = {&xp, &yp, &n, &shift};
      for (int i = 0; i < 50; ++i)
        kernel->run({3, 3, 3}, args);
      CHECK(y == x);
    });
  for (auto &thread : threads)
    thread.join();
}

TEST_CASE("traffic is counted where asked for") {
  for (const char *target : every_target) {
    compile_options options;
    options.count_traffic = true;
    int rows = 6, n = 1000;
    std::vector<float> x(rows * n), y(rows * n);
    cpu_counters counters =
        launch(compile_text(softmax(1024), target, options), {unsigned(rows), 1, 1}, x.data(), y.data(), n);
    CHECK(counters.programs == 6);
    CHECK(counters.bytes_loaded == 6u * 1000 * 4);
    CHECK(counters.bytes_stored == 6u * 1000 * 4);
    CHECK(counters.flops == 6u * (5 * 1024 - 2)); // difference, exp, quotient; two reductions
    counters = launch(compile_text(softmax(1024), target), {unsigned(rows), 1, 1}, x.data(), y.data(), n);
    CHECK(counters.bytes_loaded == 0);
    CHECK(counters.programs == 6);
    // Most lanes hold copies; they do not count.
    counters = launch(compile_text(softmax(8), target, options), {2, 1, 1}, x.data(), y.data(), 7);
    CHECK(counters.bytes_loaded == 2u * 7 * 4);
    CHECK(counters.bytes_stored == 2u * 7 * 4);
    CHECK(counters.flops == 2u * (5 * 8 - 2));
  }
}

TEST_CASE("tiles of 32768 elements compile in well under a second") {
  for (const char *target : every_target) {
    std::clock_t start = std::clock();
    compiled_kernel kernel = compile_text(softmax(32768), target);
    double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
    INFO(target);
    WARN(seconds < 1.0);
    CHECK(seconds < 4.0);
    int n = 32000;
    std::vector<float> x(n, 1), y(n);
    launch(kernel, {1, 1, 1}, x.data(), y.data(), n);
    CHECK(y[n - 1] == doctest::Approx(1.0 / n));
  }
}

TEST_CASE("a tile of 32768 elements is reduced over its rows and its columns without a lane doing every warp's work") {
  const std::string text = R"(
#rows = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [32, 1], order = [1, 0]}>
#column = #ttg.slice<{dim = 0, parent = #rows}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 32 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
  tt.func public @columns(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %w = arith.constant dense<1024> : tensor<32x1xi32, #rows>
    %i = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %j = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #column>
    %i2 = tt.expand_dims %i {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<32x1xi32, #rows>
    %j2 = tt.expand_dims %j {axis = 0 : i32} : tensor<1024xi32, #column> -> tensor<1x1024xi32, #rows>
    %iw = arith.muli %i2, %w : tensor<32x1xi32, #rows>
    %ib = tt.broadcast %iw : tensor<32x1xi32, #rows> -> tensor<32x1024xi32, #rows>
    %jb = tt.broadcast %j2 : tensor<1x1024xi32, #rows> -> tensor<32x1024xi32, #rows>
    %at = arith.addi %ib, %jb : tensor<32x1024xi32, #rows>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<32x1024x!tt.ptr<f32>, #rows>
    %p = tt.addptr %xs, %at : tensor<32x1024x!tt.ptr<f32>, #rows>, tensor<32x1024xi32, #rows>
    %v = tt.load %p : tensor<32x1024x!tt.ptr<f32>, #rows>
    %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<32x1024xf32, #rows>) -> tensor<1024xf32, #column>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #column>
    %q = tt.addptr %ys, %j : tensor<1024x!tt.ptr<f32>, #column>, tensor<1024xi32, #column>
    tt.store %q, %s : tensor<1024x!tt.ptr<f32>, #column>
    tt.return
  }
})";
  compiled_kernel kernel = compile_text(text, "cpu:emulate=sm_80");
  const std::string &llir = *kernel.find("llir");
  std::size_t adds = 0;
  for (std::size_t i = llir.find("fadd"); i != llir.npos; i = llir.find("fadd", i + 1))
    ++adds;
  CHECK(adds <= 32 * 2); // 1 of a lane's 32 columns, 32 partials each; 1024 where each warp adds up all
  std::vector<float> x(32768), y(1024);
  for (int i = 0; i < 32768; ++i)
    x[i] = float(i % 1024 % 7 + i / 1024);
  launch(kernel, {1, 1, 1}, x.data(), y.data());
  for (int j = 0; j < 1024; ++j)
    CHECK(y[j] == 32 * (j % 7) + 496);
}

TEST_CASE("the assembly names what it calls") {
  compiled_kernel kernel = compile_text(softmax(256), "cpu");
  REQUIRE(kernel.find("asm"));
  CHECK(kernel.find("asm")->find("softmax.kernel:\n") != std::string::npos);
  CHECK(kernel.find("asm")->find("# _ZGV") != std::string::npos);
  CHECK(kernel.find("obj"));
  CHECK(compile_text(softmax(256), "cpu", {}, "asm").find("obj") == nullptr);
}
