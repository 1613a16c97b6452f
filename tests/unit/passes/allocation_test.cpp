// What ops need of shared memory, and the choice of the number of warps.
#include "random_function.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/passes/Allocation.h"
#include "tessera/passes/Pipelines.h"

#include "mlir/Parser/Parser.h"

#include <string>

#include <doctest/doctest.h>

using namespace mlir;
using namespace tessera;
using namespace tessera::testing;

namespace {

const std::string header =
    "#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>\n"
    "#w = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>\n"
    "#c = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>\n"
    "module attributes {\"ttg.num-warps\" = 4 : i32, \"ttg.threads-per-warp\" = 32 : i32} {\n";

/// Scratch of the first op named `name` of a function of one tile.
unsigned scratchOf(const std::string &argument, const std::string &body, StringRef name) {
  auto context = makeContext();
  auto module = parseSourceString<ModuleOp>(
      header + "tt.func @f(%x: " + argument + ") {\n" + body + "\ntt.return\n}\n}", context.get());
  REQUIRE(module);
  std::optional<unsigned> bytes;
  module->walk([&](Operation *op) {
    if (op->getName().getStringRef() == name && !bytes)
      bytes = scratchBytes(op);
  });
  REQUIRE(bytes);
  return *bytes;
}

std::string sum(const std::string &tile, const std::string &element, const std::string &result) {
  return "%r = \"tt.reduce\"(%x) <{axis = 0 : i32}> ({\n^bb0(%a: " + element + ", %b: " + element +
         "):\n  %s = arith.addf %a, %b : " + element + "\n  tt.reduce.return %s : " + element + "\n}) : (" + tile +
         ") -> " + result;
}

} // namespace

TEST_CASE("storage bytes") {
  auto context = makeContext();
  Builder b(context.get());
  CHECK(storageBytes(b.getI1Type()) == 1);
  CHECK(storageBytes(b.getBF16Type()) == 2);
  CHECK(storageBytes(b.getF64Type()) == 8);
  CHECK(storageBytes(tt::PointerType::get(b.getI8Type(), 1)) == 8);
  CHECK(storageBytes(RankedTensorType::get({8}, b.getF32Type())) == 4);
}

TEST_CASE("scratch of reductions and conversions") {
  // One element of each warp, in a piece of aligned size.
  CHECK(scratchOf("tensor<1024xf32, #b>", sum("tensor<1024xf32, #b>", "f32", "f32"), "tt.reduce") == 16);
  CHECK(scratchOf("tensor<1024xf16, #b>", sum("tensor<1024xf16, #b>", "f16", "f16"), "tt.reduce") == 16);
  // All warps hold copies: no other warp is asked.
  CHECK(scratchOf("tensor<32xf32, #c>", sum("tensor<32xf32, #c>", "f32", "f32"), "tt.reduce") == 0);
  // Registers of one thread in another order, against elements of another warp.
  CHECK(scratchOf("tensor<128xf32, #b>", "%r = ttg.convert_layout %x : tensor<128xf32, #b> -> tensor<128xf32, #b>",
                  "ttg.convert_layout") == 0);
  CHECK(scratchOf("tensor<1024xf32, #b>", "%r = ttg.convert_layout %x : tensor<1024xf32, #b> -> tensor<1024xf32, #c>",
                  "ttg.convert_layout") >= 4096);
  // No more than the bound where passes can be made.
  CHECK(scratchOf("tensor<65536xf32, #b>",
                  "%r = ttg.convert_layout %x : tensor<65536xf32, #b> -> tensor<65536xf32, #c>",
                  "ttg.convert_layout") <= kMaxConversionScratchBytes);
}

TEST_CASE("number of warps by the largest tile") {
  auto context = makeContext();
  auto warps = [&](int64_t n, unsigned size) {
    auto module = parseSourceString<ModuleOp>(
        "tt.func @f() {\n  %r = tt.make_range {start = 0 : i32, end = " + std::to_string(n) + " : i32} : tensor<" +
            std::to_string(n) + "xi32>\n  tt.return\n}",
        context.get());
    REQUIRE(module);
    return chooseNumWarps(*module, size);
  };
  CHECK(warps(1, 8) == 1);
  CHECK(warps(512, 8) == 1);
  CHECK(warps(1024, 8) == 2);
  CHECK(warps(32768, 16) == 32);
}
