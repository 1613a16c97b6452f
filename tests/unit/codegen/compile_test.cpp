// The compiler's entry: targets by name, stages, metadata, refusals.
#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include <tessera/codegen/compile.h>
#include <tessera/error.h>

using namespace tessera;

namespace {

const char *const scale = R"(
tt.func public @scale(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %by: f32, %flag: i1) {
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %ns = tt.splat %n : i32 -> tensor<1024xi32>
  %in = arith.cmpi slt, %i, %ns : tensor<1024xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %v = tt.load %p, %in : tensor<1024x!tt.ptr<f32>>
  %f = tt.splat %by : f32 -> tensor<1024xf32>
  %w = arith.mulf %v, %f : tensor<1024xf32>
  tt.store %p, %w, %in : tensor<1024x!tt.ptr<f32>>
  tt.return
})";

compiled_kernel build(const std::string &text, const char *target, compile_options options = {},
                      const char *last = "") {
  ir_module module = parse_ir(text, "scale.ttir");
  return compile(module, parse_target(target), options, last);
}

std::string refusal(auto &&body, stage expected) {
  try {
    body();
  } catch (const error &e) {
    CHECK(e.stage() == expected);
    return e.message();
  }
  FAIL("nothing was refused");
  return {};
}

std::vector<std::string> names(const compiled_kernel &kernel) {
  std::vector<std::string> list;
  for (auto &[name, text] : kernel.stages)
    list.push_back(name);
  return list;
}

} // namespace

TEST_CASE("targets are what their text says") {
  for (const char *text :
       {"cpu", "cpu:emulate=sm_90a", "cpu:emulate=gfx942", "cuda:sm_80", "cuda", "hip:gfx1100", "hip"})
    CHECK(parse_target(text).str() == text);
  CHECK(parse_target("cuda:sm_90a").warp_size() == 32);
  CHECK(parse_target("cpu:emulate=gfx942").warp_size() == 64);
  CHECK(parse_target("cpu:emulate=gfx1100").warp_size() == 32);
  CHECK(parse_target("cpu:emulate=sm_80").emulated());
  CHECK(!parse_target("cpu").emulated());
  CHECK(parse_target("cuda:sm_90a").max_shared_bytes() == 227 * 1024);
  for (const char *text :
       {"", "gpu", "cpu:sm_90a", "cpu:emulate=", "cuda:", "cuda:gfx942", "hip:sm_90a", "cuda:sm_10", "cpu:"})
    CHECK(refusal([&] { parse_target(text); }, stage::launch).find("cpu:emulate=ARCH") != std::string::npos);
}

TEST_CASE("a kernel stops at the stage asked for") {
  using list = std::vector<std::string>;
  CHECK(names(build(scale, "cuda:sm_90a", {}, "ttir")) == list{"ttir"});
  CHECK(names(build(scale, "cuda:sm_90a", {}, "ptx")) == list{"ttir", "ttgir", "llir", "ptx"});
  CHECK(names(build(scale, "cpu", {}, "llir")) == list{"ttir", "ttgir", "llir"});
  compiled_kernel kernel = build(scale, "cuda:sm_80", {.num_warps = 8}, "ptx");
  CHECK(kernel.metadata.name == "scale");
  CHECK(kernel.metadata.num_warps == 8);
  CHECK(kernel.metadata.warp_size == 32);
  REQUIRE(kernel.metadata.params.size() == 4);
  CHECK(kernel.metadata.params[0].pointer);
  CHECK(kernel.metadata.params[0].size == 8);
  CHECK(kernel.metadata.params[1].size == 4);
  CHECK(kernel.metadata.params[3].size == 1);
  CHECK(kernel.find("ptx")->find(".reqntid 256") != std::string::npos);
  CHECK(kernel.find("cubin") == nullptr);
  CHECK(!kernel.times.empty());
}

TEST_CASE("a program has four warps, and more for a tile that their lanes could not hold") {
  const auto warps = [](const char *elements, const char *type, const char *target, const char *product = "") {
    const std::string tile = std::string("tensor<") + elements + "x" + type + ">", many = std::string(elements) + "x!tt.ptr<" + type + ">>";
    const std::string text = std::string("tt.func public @f(%x: !tt.ptr<") + type + ">) {\n  %i = tt.make_range {start = 0 : i32, end = " +
                             elements + " : i32} : tensor<" + elements + "xi32>\n  %xs = tt.splat %x : !tt.ptr<" + type + "> -> tensor<" + many +
                             "\n  %p = tt.addptr %xs, %i : tensor<" + many + ", tensor<" + elements + "xi32>\n  %v = tt.load %p : tensor<" + many +
                             "\n" + product + "  tt.store %p, %v : tensor<" + many + "\n  tt.return\n}";
    return build(text, target, {}, "ttgir").options.num_warps;
  };
  CHECK(warps("1024", "f32", "cuda:sm_90a") == 4);
  CHECK(warps("16384", "f32", "cuda:sm_90a") == 4);
  CHECK(warps("32768", "f32", "cuda:sm_90a") == 8);
  CHECK(warps("32768", "f64", "cuda:sm_90a") == 16);
  CHECK(warps("131072", "f32", "cuda:sm_90a") == 16);
  CHECK(warps("32768", "f32", "hip:gfx942") == 4); // lanes are 64
  CHECK(warps("32768", "f32", "hip:gfx1201") == 8);
  CHECK(warps("32768", "f32", "cpu:emulate=gfx1201") == 8);
  const char *product = "  %a = arith.constant dense<1.0> : tensor<128x16xf16>\n  %b = arith.constant dense<1.0> : tensor<16x256xf16>\n"
                        "  %z = arith.constant dense<0.0> : tensor<128x256xf32>\n"
                        "  %d = tt.dot %a, %b, %z : tensor<128x16xf16> * tensor<16x256xf16> -> tensor<128x256xf32>\n"
                        "  %w = tt.reshape %d : tensor<128x256xf32> -> tensor<32768xf32>\n  tt.store %p, %w : tensor<32768x!tt.ptr<f32>>\n";
  CHECK(warps("32768", "f32", "cuda:sm_90a", product) == 4);
}

TEST_CASE("the same module and options give the same code, from ttgir too") {
  compiled_kernel first = build(scale, "cuda:sm_90a", {}, "ptx"), second = build(scale, "cuda:sm_90a", {}, "ptx");
  CHECK(*first.find("ptx") == *second.find("ptx"));
  compile_options plain{.line_info = false};
  compiled_kernel from_ttir = build(scale, "cuda:sm_90a", plain, "ptx");
  compiled_kernel from_ttgir = build(*from_ttir.find("ttgir"), "cuda:sm_90a", plain, "ptx");
  CHECK(names(from_ttgir) == std::vector<std::string>{"ttgir", "llir", "ptx"});
  CHECK(*from_ttgir.find("ptx") == *from_ttir.find("ptx"));
}

TEST_CASE("kernels compile on several threads at once") {
  std::string expected = *build(scale, "cuda:sm_90a", {}, "ptx").find("ptx");
  std::vector<std::string> made(4);
  {
    std::vector<std::jthread> threads;
    for (std::string &text : made)
      threads.emplace_back([&text] { text = *build(scale, "cuda:sm_90a", {}, "ptx").find("ptx"); });
  }
  for (const std::string &text : made)
    CHECK(text == expected);
}

TEST_CASE("every known NVIDIA architecture has code") {
  for (const char *arch : {"sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103a",
                           "sm_120", "sm_120a", "sm_121a"}) {
    compiled_kernel kernel = build(scale, (std::string("cuda:") + arch).c_str(), {}, "ptx");
    CHECK(kernel.find("ptx")->find(std::string(".target ") + arch) != std::string::npos);
  }
}

TEST_CASE("options that cannot be met are refused") {
  CHECK(refusal([] { build(scale, "cuda:sm_90a", {.num_warps = 64}); }, stage::codegen).find("num_warps") !=
        std::string::npos);
  CHECK(refusal([] { build(scale, "cuda:sm_90a", {.num_warps = -1}); }, stage::codegen).find("num_warps") !=
        std::string::npos);
  CHECK(refusal([] { build(scale, "cuda:sm_90a", {.num_ctas = 2}); }, stage::codegen).find("num_ctas") !=
        std::string::npos);
  CHECK(refusal([] { build(scale, "cuda:sm_90a", {}, "sass"); }, stage::codegen).find("stages are") !=
        std::string::npos);
  CHECK(refusal([] { build("tt.func public @f(", "cpu"); }, stage::verify) != "");
  CHECK(refusal([] { build("", "cpu"); }, stage::verify).find("no public tt.func") != std::string::npos);
}
