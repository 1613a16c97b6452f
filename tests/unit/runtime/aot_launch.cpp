// Kernels compiled ahead of time, on the CPU and on the fake drivers. A program of its own that does not hold
// libtessera; the suite aot.hip is run by itself, with the other driver.
#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "aot_unit_kernels.h"
#include "fake_gpu.h"

namespace {

const tessera_stream cpu{-1, nullptr}, gpu{0, nullptr}, older_gpu{1, nullptr};

struct clean {
  clean() { fake_cuda().reset(), fake_hip().reset(); }
  ~clean() { fake_cuda().reset(), fake_hip().reset(); }
};

bool failed_with(int result, const std::string &text) {
  const bool found = result != 0 && std::string(tessera_error()).find(text) != std::string::npos;
  if (!found)
    MESSAGE("result ", result, ": ", tessera_error());
  return found;
}

/// Device memory of the fake.
struct memory {
  int device;
  void *at = nullptr;
  memory(int device, std::size_t bytes) : device(device) { REQUIRE(tessera_allocate(device, bytes, &at) == 0); }
  ~memory() { tessera_release(device, at); }
  float *floats() const { return static_cast<float *>(at); }
};

} // namespace

TEST_CASE_FIXTURE(clean, "neither the compiler nor LLVM is in the process") {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    for (const char *name : {"LLVM", "MLIR", "libtessera.so"})
      CHECK(line.find(name) == line.npos);
}

TEST_CASE_FIXTURE(clean, "kernels run on the CPU, whatever the arguments allow") {
  alignas(16) float x[400], y[130];
  for (int i = 0; i < 400; ++i)
    x[i] = float(i);
  for (int shift : {0, 1})
    for (int stride : {1, 2, 3}) {
      std::fill(std::begin(y), std::end(y), -1.0f);
      REQUIRE(copy(cpu, {2, 1, 1}, x, y + shift, stride) == 0);
      for (int i = 0; i < 128; ++i)
        REQUIRE(y[i + shift] == float(i * stride));
      REQUIRE(y[shift ? 0 : 128] == -1.0f);
    }
  std::vector<double> rows(3 * 256, 0.5), sums(3);
  REQUIRE(row_sum(cpu, {3, 1, 1}, rows.data(), sums.data(), 0x4000 /* 2.0 as f16 */) == 0);
  CHECK(sums == std::vector<double>(3, 256.0));
  CHECK(copy(cpu, {0, 1, 1}, x, y, 1) == 0);
}

TEST_CASE_FIXTURE(clean, "a GPU gets the best code that it runs and that the arguments allow") {
  memory x(0, 4096), y(0, 4096), x1(1, 4096), y1(1, 4096);
  REQUIRE(copy(gpu, {2, 3, 1}, x.floats(), y.floats(), 16) == 0);
  REQUIRE(copy(gpu, {1, 1, 1}, x.floats(), y.floats(), 1) == 0);
  REQUIRE(copy(gpu, {1, 1, 1}, x.floats(), y.floats() + 1, 1) == 0);
  REQUIRE(copy(gpu, {1, 1, 1}, x.floats(), y.floats(), 5) == 0);
  REQUIRE(copy(older_gpu, {1, 1, 1}, x1.floats(), y1.floats(), 5) == 0);
  const auto l = fake_cuda().launches();
  REQUIRE(l.size() == 5);
  CHECK(l[0].kernel.find("copy__sm_90a") == 0);
  CHECK(l[0].params.size() == 3);
  CHECK(l[0].grid[1] == 3);
  CHECK(l[1].params.size() == 2); // the stride is part of the code
  CHECK(l[2].params.size() == 3);
  CHECK(l[3].kernel == l[2].kernel);
  CHECK(l[0].kernel != l[1].kernel);
  CHECK(l[0].kernel != l[2].kernel);
  CHECK(l[4].kernel.find("copy__sm_80") == 0);
  CHECK(fake_cuda().calls()["cuModuleLoadData"] == 4);
  REQUIRE(copy(gpu, {1, 1, 1}, x.floats(), y.floats(), 7) == 0);
  CHECK(fake_cuda().calls()["cuModuleLoadData"] == 4);
}

TEST_CASE_FIXTURE(clean, "what goes wrong is a sentence") {
  memory x(0, 4096), y(0, 4096);
  float host[64];
  CHECK(failed_with(copy({7, nullptr}, {1, 1, 1}, host, host, 1), "there is no device 7: this machine has the CPU, cuda:0 (Fake H200, sm_90a), cuda:1"));
  CHECK(failed_with(copy({-2, nullptr}, {1, 1, 1}, host, host, 1), "there is no device -2"));
  CHECK(failed_with(copy(gpu, {1, 1, 1}, host, y.floats(), 1), "argument 1 of kernel 'copy' is 0x"));
  CHECK(
      failed_with(copy(gpu, {1, 70000, 1}, x.floats(), y.floats(), 1), "at most (2147483647, 65535, 65535) programs"));
  CHECK(failed_with(copy(gpu, {-1, 1, 1}, x.floats(), y.floats(), 1), "cannot be launched with grid (-1, 1, 1)"));
  CHECK(failed_with(copy_aligned(gpu, {1, 1, 1}, x.floats(), y.floats() + 1, 1),
                    "'copy' was not compiled for such arguments"));
  CHECK(failed_with(tessera_allocate(0, fake_gpu::memory_bytes + 1, &x.at), "out of memory"));
  CHECK(fake_cuda().launches().empty());
  fake_cuda().fail_next("cuLaunchKernel", 701);
  CHECK(failed_with(copy(gpu, {1, 1, 1}, x.floats(), y.floats(), 1), "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
  CHECK(copy(gpu, {1, 1, 1}, x.floats(), y.floats(), 1) == 0);
  CHECK(std::string(tessera_error()).empty());
}

TEST_CASE_FIXTURE(clean, "launch options are part of an exported kernel") {
  memory x(0, 4096), y(0, 4096);
  REQUIRE(copy_together(gpu, {4, 1, 1}, x.floats(), y.floats(), 1) == 0);
  const auto l = fake_cuda().launches();
  REQUIRE(l.size() == 1);
  CHECK(l[0].cooperative);
  CHECK(l[0].cluster[0] == 2);
  CHECK(l[0].cluster[1] == 1);
  CHECK(failed_with(copy_together(gpu, {3, 1, 1}, x.floats(), y.floats(), 1),
                    "kernel 'copy' cannot be launched with grid (3, 1, 1) in clusters of (2, 1, 1)"));
  float in[64] = {}, out[64];
  CHECK(failed_with(copy_together(cpu, {2, 1, 1}, in, out, 1), "a cooperative launch needs a GPU"));
  REQUIRE(copy(gpu, {3, 1, 1}, x.floats(), y.floats(), 1) == 0);
  CHECK_FALSE(fake_cuda().launches().back().cooperative);
}

TEST_CASE_FIXTURE(clean, "prepared kernels are captured; threads load code once") {
  memory x(0, 4096), y(0, 4096);
  tessera_stream s;
  REQUIRE(tessera_create_stream(0, &s) == 0);
  REQUIRE(row_sum_prepare(s) == 0);
  fake_cuda().begin_capture(s.native);
  REQUIRE(row_sum(s, {1, 1, 1}, static_cast<double *>(x.at), static_cast<double *>(y.at), 0) == 0);
  CHECK(fake_cuda().end_capture().size() == 1);
  CHECK(tessera_synchronize(s) == 0);
  CHECK(tessera_destroy_stream(s) == 0);

  fake_cuda().reset();
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        failed += copy_aligned(gpu, {1, 1, 1}, x.floats(), y.floats(), 16) != 0;
    });
  for (auto &t : threads)
    t.join();
  CHECK(failed == 0);
  CHECK(fake_cuda().calls()["cuModuleLoadData"] == 1);
  CHECK(fake_cuda().launches().size() == 400);
}

TEST_SUITE("aot.hip") {
  TEST_CASE_FIXTURE(clean, "a GPU by HIP gets the code object of its architecture") {
    int count = 0;
    REQUIRE(tessera_count_devices(&count) == 0);
    REQUIRE(count == 2);
    const char *first, *second, *host;
    REQUIRE(tessera_target_of(0, &first) == 0);
    REQUIRE(tessera_target_of(1, &second) == 0);
    REQUIRE(tessera_target_of(-1, &host) == 0);
    CHECK(std::string(first) + second + host == "hip:gfx942hip:gfx1100cpu");
    memory x(0, 4096), y(0, 4096), x1(1, 4096), y1(1, 4096);
    tessera_stream s;
    REQUIRE(tessera_create_stream(0, &s) == 0);
    REQUIRE(row_sum_prepare(s) == 0);
    fake_hip().begin_capture(s.native);
    REQUIRE(row_sum(s, {1, 1, 1}, static_cast<double *>(x.at), static_cast<double *>(y.at), 0) == 0);
    CHECK(fake_hip().end_capture().size() == 1);
    REQUIRE(tessera_destroy_stream(s) == 0);
    REQUIRE(copy(gpu, {2, 3, 1}, x.floats(), y.floats(), 16) == 0);
    REQUIRE(copy(gpu, {1, 1, 1}, x.floats(), y.floats(), 1) == 0);
    REQUIRE(copy(older_gpu, {1, 1, 1}, x1.floats(), y1.floats(), 5) == 0);
    const auto l = fake_hip().launches();
    REQUIRE(l.size() == 3);
    CHECK(l[0].kernel.find("copy__gfx942") == 0);
    CHECK(l[0].params.size() == 3);
    CHECK(l[0].grid[1] == 3);
    CHECK(l[0].threads % 64 == 0);
    CHECK(l[1].params.size() == 2); // the stride is part of the code
    CHECK(l[2].kernel.find("copy__gfx1100") == 0);
    CHECK(l[2].device == 1);
    float host_memory[64];
    CHECK(failed_with(copy(gpu, {1, 1, 1}, host_memory, y.floats(), 1), "argument 1 of kernel 'copy' is 0x"));
    CHECK(failed_with(copy({2, nullptr}, {1, 1, 1}, x.floats(), y.floats(), 1), "there is no device 2"));
    CHECK(fake_hip().refusals().empty());
    // The CPU's code reads no memory of a GPU.
    CHECK(failed_with(copy(cpu, {1, 1, 1}, x.floats(), host_memory, 1), "memory of a HIP device"));
  }
}
