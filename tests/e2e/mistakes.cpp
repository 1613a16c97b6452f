// Launches that must be refused with a sentence, on every target; after each of them the next launch works.
#include "harness.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace e2e;

namespace {

const auto twice = tl::kernel("twice", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<i32> n) {
  auto at = tl::program_id(0) * 128 + tl::arange(0, 128);
  tl::store(y + at, tl::load(x + at, at < n) * 2.0f, at < n);
});
const unsigned twice_line = __LINE__ - 1; // a call's line is that of its end

/// TESSERA_PTXAS while it lives.
class assembler {
public:
  explicit assembler(const std::string &path) {
    if (const char *before = std::getenv("TESSERA_PTXAS"))
      before_ = before;
    setenv("TESSERA_PTXAS", path.c_str(), 1);
  }
  ~assembler() { before_ ? setenv("TESSERA_PTXAS", before_->c_str(), 1) : unsetenv("TESSERA_PTXAS"); }

private:
  std::optional<std::string> before_;
};

/// What `mistake` throws; then a right launch, which must give the right result.
template <class F> std::string after(F &&mistake) {
  std::string text = "no error";
  try {
    mistake();
    on().synchronize();
  } catch (const tessera::error &e) {
    text = e.what();
  }
  const std::vector<float> in{1, -2, 3.5f};
  tessera::device_buffer<float> x(dev(), in), y(dev(), in.size());
  launch(twice, 1, x, y, 3);
  on().synchronize();
  CHECK(y.to_host() == std::vector<float>{2, -4, 7});
  return text;
}

bool says(const std::string &text, const char *part) {
  INFO(text);
  const bool found = text.find(part) != text.npos;
  CHECK(found);
  return found;
}

} // namespace

TEST_SUITE("mistakes") {

  TEST_CASE("a null pointer") {
    tessera::device_buffer<float> y(dev(), 4);
    const float *none = nullptr;
    const std::string text = after([&] { launch(twice, 1, none, y, 4); });
    says(text, "argument 1 of kernel 'twice' is a null pointer");
    says(text, "mistakes.cpp:");
  }

  TEST_CASE("a buffer that was moved from, and one of no elements") {
    tessera::device_buffer<float> x(dev(), 4), y(dev(), 4), none(dev(), 0);
    const auto moved = std::move(x);
    says(after([&] { launch(twice, 1, x, y, 4); }), "argument 1 of kernel 'twice' is a device_buffer that was moved from");
    says(after([&] { launch(twice, 1, x.view(), y, 4); }), "argument 1 of kernel 'twice' is a device_buffer that was moved from");
    says(after([&] { launch(twice, 1, none, none, 0); }), "no error");
  }

  TEST_CASE("host memory given to a GPU") {
    if (dev().is_cpu())
      return;
    const std::vector<float> host(128, 1.0f);
    tessera::device_buffer<float> y(dev(), 128);
    says(after([&] { launch(twice, 1, host.data(), y, 128); }), "which is not memory of a GPU");
    says(after([&] { launch(twice, 1, std::span(host), y, 128); }), "which is not memory of a GPU");
  }

  TEST_CASE("a buffer of another device") {
    if (dev().is_cpu())
      return;
    tessera::device_buffer<float> x(tessera::device::cpu(), 128), y(dev(), 128);
    says(after([&] { launch(twice, 1, x, y, 128); }), "is a buffer of cpu");
  }

  TEST_CASE("more memory than there is") {
    const std::string text = after([&] { tessera::device_buffer<float> huge(dev(), std::size_t(1) << 50); });
    says(text, "memory");
  }

  TEST_CASE("grids beyond the device, and none") {
    tessera::device_buffer<float> x(dev(), 4), y(dev(), 4);
    says(after([&] { launch(twice, std::int64_t(1) << 40, x, y, 4); }), "cannot be launched with grid (1099511627776, 1, 1)");
    says(after([&] { launch(twice, -1, x, y, 4); }), "not negative");
    says(after([&] { launch(twice, 0, x, y, 4); }), "no error");
  }

  TEST_CASE("an integer that its parameter cannot hold") {
    tessera::device_buffer<float> x(dev(), 4), y(dev(), 4);
    says(after([&] { launch(twice, 1, x, y, std::int64_t(1) << 33); }), "which its type in the kernel, i32, cannot hold");
  }

  TEST_CASE("PTX that the driver refuses") {
    if (dev().is_cpu())
      return;
    // WARP_SZ is a constant of PTX: no kernel can be called so.
    const auto kernel = tl::kernel("WARP_SZ", [](tl::ptr<float> y) { tl::store(y + tl::arange(0, 4), 1.0f); });
    tessera::device_buffer<float> y(dev(), 4);
    const std::string text = after([&] {
      assembler none("");
      kernel(on(), 1, y);
    });
    says(text, "refused the PTX of kernel 'WARP_SZ'");
    says(text, "mistakes.cpp:");
    says(after([&] { kernel(on(), 1, y); }), "refused the PTX"); // ptxas, where there is one
  }

  TEST_CASE("machine code that the driver refuses") {
    if (dev().is_cpu())
      return;
    // An assembler that answers with anything but a cubin.
    const auto script = std::filesystem::temp_directory_path() / ("tessera-no-ptxas-" + std::to_string(std::rand()));
    std::ofstream(script) << "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\necho no machine code > \"$2\"\n";
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    const auto kernel = tl::kernel("refused", [](tl::ptr<float> y) { tl::store(y + tl::arange(0, 4), 1.0f); });
    tessera::device_buffer<float> y(dev(), 4);
    const std::string text = after([&] {
      assembler wrong(script);
      kernel(on(), 1, y);
    });
    says(text, "loading the machine code of kernel 'refused'");
    says(text, "mistakes.cpp:");
    kernel(on(), 1, y); // compiled again, by the right one
    CHECK(y.to_host() == std::vector<float>(4, 1.0f));
    std::filesystem::remove(script);
  }

  TEST_CASE("options that no device takes") {
    tessera::device_buffer<float> x(dev(), 4), y(dev(), 4);
    if (dev().target().str() != "cpu") // the CPU chooses its own number
      says(after([&] { launch(twice.with_options({.num_warps = 64}), 1, x, y, 4); }), "num_warps");
    const auto refused = [&](const tessera::compile_options &o, const char *sentence) {
      const auto k = twice.with_options(o);
      unsigned line = __LINE__ + 1;
      std::string text = after([&] { k(on(), 1, x, y, 4); });
      says(text, sentence);
      says(text, ("mistakes.cpp:" + std::to_string(line)).c_str());
      text = after([&] { (void)k.compile(dev()); }); // no launch: the kernel's own line
      says(text, sentence);
      says(text, ("mistakes.cpp:" + std::to_string(twice_line)).c_str());
    };
    refused({.num_warps = 3}, "num_warps = 3 is not a power of two");
    refused({.num_stages = -1}, "num_stages = -1 is negative");
    refused({.num_stages = 65}, "num_stages = 65: at most 64 trips of a loop can be in flight");
    refused({.maxnreg = -8}, "maxnreg = -8 is negative");
    refused({.num_ctas = 2}, "num_ctas = 2: a program on several thread blocks");
  }
}
