// What exporting kernels writes, and the names it refuses. Running the result is aot_launch.cpp's.
#include "messages.h"
#include "temporary_folder.h"

#include <fstream>
#include <sstream>

#include <doctest/doctest.h>

#include <tessera/aot/export.h>

namespace tl = tessera::tl;
using namespace tessera;

namespace {

struct config {
  int block = 64;
};
const auto add_one =
    tl::kernel("add_one", [](tl::ptr<const tl::f16> x, tl::ptr<tl::f16> y, tl::val<tl::u8> n, config c) {
      auto at = tl::arange(0, c.block);
      tl::store(y + at, tl::load(x + at, at < n.to<tl::i32>()) + 1.0f, at < n.to<tl::i32>());
    });

std::string text_of(const std::string &file) {
  std::ostringstream out;
  out << std::ifstream(file, std::ios::binary).rdbuf();
  return out.str();
}

} // namespace

TEST_SUITE("runtime.export") {

  TEST_CASE_FIXTURE(temporary_folder, "a header, C source and objects") {
    tl::kernel_exporter out;
    out.add(add_one, {.arguments = "x y n"});
    out.add(add_one.with({.block = 32}), {.symbol = "small", .specializations = {{0, 0}}});
    out.write("kernels", path.string(), {parse_target("cpu"), parse_target("cuda:sm_80")});
    const auto header = text_of(*this / "kernels.h"), source = text_of(*this / "kernels.c");
    CHECK(contains(header, "#ifndef KERNELS_H"));
    CHECK(contains(header, "/* add_one, block=64: cpu, cuda:sm_80. */"));
    CHECK(contains(
        header,
        "int add_one(tessera_stream stream, tessera_grid programs, const uint16_t *x, uint16_t *y, uint8_t n);"));
    CHECK(contains(
        header,
        "int small(tessera_stream stream, tessera_grid programs, const uint16_t *a0, uint16_t *a1, uint8_t a2);"));
    CHECK(contains(source, "{\"cpu\", \"add_one__cpu_0\", 7u, 0u,"));
    CHECK(contains(source, "__asm__(\"small__cpu_0.kernel\")"));
    CHECK(contains(source, "{\"cuda:sm_80\", \"small__sm_80_1\", 0u, 0u,"));
    std::istringstream objects(text_of(*this / "kernels.objects"));
    int count = 0;
    for (std::string file; std::getline(objects, file); ++count)
      CHECK(text_of(file).starts_with("\x7f"
                                      "ELF"));
    CHECK(count == 3);
    CHECK(contains(message_of([&] { out.write("kernels", path.string(), {parse_target("cpu:emulate=sm_80")}); }),
                   "it is no target to ship"));
    CHECK(contains(message_of([&] { out.write("kernels", path.string(), {}); }), "name the targets"));
    CHECK(contains(message_of([&] { out.write("my kernels", path.string(), {parse_target("cpu")}); }),
                   "'my kernels' is no name"));
  }

  TEST_CASE_FIXTURE(temporary_folder, "names that C gives a meaning are refused or written so that they have none") {
    tl::kernel_exporter out;
    const auto odd = tl::kernel("a \"b\" \\ */ ?", [](tl::ptr<float> x) { tl::store(x, 1.0f); });
    out.add(odd.launched({.cooperative = true, .cluster = {2, 1, 1}}), {.symbol = "odd", .arguments = "values"});
    for (const char *name : {"int", "class", "tessera_launch", "odd_prepare", "2x", ""})
      CHECK(message_of([&] { out.add(odd, {.symbol = name}); }) != "no error");
    for (const char *name : {"stream", "programs", "restrict", "this", "tessera_values"})
      CHECK(contains(message_of([&] { out.add(odd, {.symbol = "s", .arguments = name}); }), "is no name of an argument"));
    out.write("tessera_kernels", path.string(), {parse_target("cpu")});
    const auto header = text_of(*this / "tessera_kernels.h"), source = text_of(*this / "tessera_kernels.c");
    CHECK(contains(header, "/* a \"b\"   * / ?: cpu. */"));
    CHECK(contains(source, "{\"a \\042b\\042 \\134 */ \\077\", odd__parameters, odd__images, 1, 2, {2, 1, 1}, 1, 0}"));
  }

  TEST_CASE("names are checked") {
    auto refused = [](tl::export_options o) {
      tl::kernel_exporter out;
      out.add(add_one.with({.block = 128}), {.symbol = "taken"});
      return message_of([&] { out.add(add_one, o); });
    };
    CHECK(refused({}) == "no error");
    CHECK(contains(refused({.symbol = "2nd"}), "'2nd' is no name of a C function"));
    CHECK(contains(refused({.symbol = "taken"}), "another one is called 'taken' too"));
    CHECK(contains(refused({.arguments = "x y"}), "2 arguments are named, it takes 3"));
    CHECK(contains(refused({.arguments = "x x n"}), "'x' is no name of an argument, or the name of two"));
    CHECK(contains(refused({.specializations = {}}), "no specialisation is named"));
  }
}
