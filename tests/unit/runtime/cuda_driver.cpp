// The CUDA device against the fake driver: what CUDA alone has. A program of its own, since the driver is opened once per
// process; what it shares with HIP is in gpu_driver.cpp.
#include "gpu_driver.h"

#include "temporary_folder.h"

#include <cstdlib>

const gpu_vendor &vendor() {
  static const gpu_vendor cuda{.fake = fake_cuda,
                               .gpu = [](int number) { return device::cuda(number); },
                               .place = "cuda:0",
                               .name = "Fake H200",
                               .target = "cuda:sm_90a",
                               .launch = "cuLaunchKernel",
                               .load = "cuModuleLoadData",
                               .look_up = "cuPointerGetAttributes",
                               .wait = "cuStreamSynchronize",
                               .out_of_memory = "CUDA_ERROR_OUT_OF_MEMORY",
                               .out_of_resources = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
                               .illegal_address = "CUDA_ERROR_ILLEGAL_ADDRESS",
                               .device_memory = "memory of a CUDA device",
                               .warm_calls = {{"cuLaunchKernel", 1},
                                              {"cuCtxGetCurrent", 1},
                                              {"cuCtxPushCurrent", 1}, // no context is current on this thread
                                              {"cuCtxPopCurrent", 1}}};
  return cuda;
}

namespace {
/// Whether the test was started with such a variable.
bool given(const std::string &value) {
  for (const char *name : {"TESSERA_NVTX", "TESSERA_PTXAS"})
    if (const char *text = std::getenv(name); text && text == value)
      return true;
  return false;
}
} // namespace

TEST_CASE_FIXTURE(clean, "devices are listed with their architecture") {
  auto all = device::all();
  REQUIRE(all.size() == fake_gpu::cuda_devices + 1);
  CHECK(all[0].name() == "Fake H200");
  CHECK(all[0].target().str() == "cuda:sm_90a");
  CHECK(all[1].target().str() == "cuda:sm_80");
  CHECK(device::best() == all[0]);
  CHECK(device::open("cuda:1") == all[1]);
  CHECK(all[0].properties().multiprocessors == 132);
  CHECK(all[0].properties().max_shared_bytes == 232448);
  CHECK(all[0].properties().max_grid[1] == 65535);
  CHECK(all[0].properties().peak_gbytes_per_s == doctest::Approx(4917).epsilon(0.01));
  CHECK(contains(message_of([] { device::cuda(2); }),
                 "there is no device cuda:2; this machine has the CPU, cuda:0 (Fake H200, sm_90a), cuda:1"));
  // Older code runs on newer GPUs, architecture-specific code on its own alone.
  CHECK(device::open("cuda:sm_80").properties().name == "Fake H200");
  CHECK(device::open("cuda:sm_80").target().arch == "sm_80");
  CHECK(contains(message_of([] { device::open("cuda:sm_100a"); }), "no device that runs code for 'cuda:sm_100a'"));
}

TEST_CASE("a device that does not answer is left out, and the others work" * doctest::skip(!std::getenv("FAKE_GPU_FAIL"))) {
  CHECK(device::all().size() == fake_gpu::cuda_devices);
  CHECK(device::best().target().str() == "cuda:sm_80");
  CHECK(contains(message_of([] { device::cuda(0); }),
                 "there is no device cuda:0; this machine has the CPU, cuda:1 (Fake A100, sm_80) (cuda:0 is not used: looking "
                 "at a CUDA device failed: CUDA_ERROR_"));
  std::vector<float> x(256, 1.0f), y(256);
  make_copy()(stream(device::cpu()), 1, x, y, 256);
  CHECK(y == x);
}

TEST_CASE_FIXTURE(clean, "PTX that the driver refuses is an error with the driver's log, and the next launch works") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("refused");
  fake().fail_next("cuLinkAddData", 218);
  auto text = message_of([&] { copy(s, 1, x, y, 256); });
  CHECK(contains(text, "assemble error: the driver (CUDA 13.0) refused the PTX of kernel 'refused' for cuda:sm_90a: "
                       "CUDA_ERROR_INVALID_PTX"));
  CHECK(contains(text, "line 9; error   : Unexpected instruction types"));
  fake().fail_next("cuLinkAddData", 222);
  CHECK(contains(message_of([&] { copy(s, 1, x, y, 256); }), "install a newer driver"));
  CHECK(fake().launches().empty());
  copy(s, 1, x, y, 256);
  CHECK(fake().launches().size() == 1);
}

TEST_CASE_FIXTURE(clean, "the handle knows what the driver made") {
  auto gpu = device::cuda(0);
  auto h = make_copy().compile(gpu);
  CHECK(h.registers() == 42);
  CHECK(h.spills() == 0);
  CHECK(contains(h.stage("cubin"), "FAKE CUBIN"));
  CHECK(contains(h.stage("ptx"), ".entry copy"));
  CHECK(contains(h.summary(), "copy for cuda:sm_90a: 4 warps"));
}

TEST_CASE_FIXTURE(clean, "grids beyond the device's limits never reach the driver") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy();
  copy(s, {16384, 16384, 16}, x, y, 256); // the 32-bit product is 0
  copy(s, {2147483647, 2, 1}, x, y, 256);
  CHECK(fake().launches().size() == 2);
  CHECK(contains(message_of([&] {
                   copy(s, {65536, 65536, 1}, x, y, 256);
                 }),
                 "at most (2147483647, 65535, 65535) programs"));
  CHECK(fake().launches().size() == 2);
}

TEST_CASE_FIXTURE(clean, "more than 48 KiB of shared memory are asked for") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 128 * 256), y(gpu, 128 * 256);
  auto transpose = tl::kernel("transpose", [](tl::ptr<const float> x, tl::ptr<float> y) {
    auto row = tl::arange(0, 128), col = tl::arange(0, 256);
    auto tile = tl::load(x + row[tl::all, tl::newaxis] * 256 + col[tl::newaxis, tl::all]);
    tl::store(y + col[tl::all, tl::newaxis] * 128 + row[tl::newaxis, tl::all], tl::trans(tile));
  });
  transpose(s, 1, x, y);
  auto launches = fake().launches();
  REQUIRE(launches.size() == 1);
  CHECK(launches[0].shared_bytes > 48 * 1024); // the fake refuses what the function's attribute does not allow
  CHECK(fake().dynamic_shared_limit() == int(launches[0].shared_bytes));
  CHECK(transpose.compile(gpu).shared_bytes() == launches[0].shared_bytes);
}

TEST_CASE_FIXTURE(clean, "cooperative launches and clusters reach the driver as such") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("grouped");
  copy.launched({.cluster = {2, 1, 1}})(s, {4, 3}, x, y, 256);
  copy.launched({.cooperative = true})(s, 132, x, y, 256);
  copy.launched({.cooperative = true, .cluster = {4, 2, 2}})(s, {8, 2, 2}, x, y, 256);
  copy(s, 1, x, y, 256);
  auto l = fake().launches();
  REQUIRE(l.size() == 4);
  CHECK(l[0].cluster[0] == 2);
  CHECK_FALSE(l[0].cooperative);
  CHECK(l[1].cooperative);
  CHECK(l[1].cluster[0] == 1);
  CHECK(l[2].cooperative);
  CHECK(l[2].cluster[2] == 2);
  CHECK_FALSE(l[3].cooperative);
  CHECK(fake().calls()["cuModuleLoadData"] == 1);
  CHECK(fake().calls()["cuLaunchKernelEx"] == 3);

  CHECK(contains(message_of([&] {
                   copy.launched({.cluster = {2, 1, 1}})(s, 3, x, y, 256);
                 }),
                 "grid (3, 1, 1) in clusters of (2, 1, 1): each number of programs must be a multiple"));
  CHECK(contains(message_of([&] { copy.launched({.cluster = {0, 1, 1}})(s, 3, x, y, 256); }), "which is 1 to 16"));
  auto text = message_of([&] { copy.launched({.cooperative = true})(s, 100000, x, y, 256); });
  CHECK(contains(text, "cuda_driver.cpp"));
  CHECK(contains(text, "100000 programs of kernel 'grouped' does not fit on cuda:0 at once"));
  auto older = device::cuda(1);
  device_buffer<float> x1(older, 256), y1(older, 256);
  CHECK(contains(message_of([&] {
                   copy.launched({.cluster = {2, 1, 1}})(stream(older), 2, x1, y1, 256);
                 }),
                 "clusters need an sm_90 GPU or a newer one; cuda:1 is sm_80"));
  std::vector<float> a(256, 1.0f), b(256);
  stream cpu(device::cpu());
  copy.launched({.cluster = {2, 1, 1}})(cpu, 2, a, b, 256);
  CHECK(b == a);
  CHECK(contains(message_of([&] { copy.launched({.cooperative = true})(cpu, 2, a, b, 256); }),
                 "a cooperative launch needs a GPU"));
}

TEST_CASE_FIXTURE(clean, "trial runs of the autotuner are launched as the kernel is") {
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  tl::tuning<copy_config> t;
  t.arguments = "x y n";
  t.candidates = {{{.block = 128}}, {{.block = 256}}};
  t.warmup_ms = 0, t.measure_ms = 0.1, t.progress = false;
  const auto tuned = tl::autotune(make_copy("tuned").launched({.cooperative = true, .cluster = {2, 1, 1}}), t);
  tuned(s, 2, x, y, 256);
  const auto all = fake().launches();
  CHECK(all.size() > 6);
  for (auto &l : all) {
    CHECK(l.cooperative);
    CHECK(l.cluster[0] == 2);
  }
}

TEST_CASE_FIXTURE(clean, "NVTX ranges") { // run by itself, with TESSERA_NVTX
  if (!std::getenv("TESSERA_NVTX"))
    return;
  auto gpu = device::cuda(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("ranged");
  copy(s, 3, x, y, 256);
  set_launch_hooks({.before = [](const launch_info &) {}});
  copy(s, 3, x, y, 256);
  set_launch_hooks({});
  copy(s, 3, x, y, 256);
  CHECK(fake().nvtx_log() == std::vector<std::string>{"ranged", "", "ranged", "", "ranged", ""});
}

TEST_CASE("what a variable names and does not exist is an error" * doctest::skip(!given("/nonexistent/file"))) {
  stream s(device::cuda(0));
  device_buffer<float> x(device::cuda(0), 256), y(device::cuda(0), 256);
  auto copy = make_copy("unfound");
  for (int again : {1, 2})
    CHECK(contains(message_of([&] { copy(s, again, x, y, 256); }), " is '/nonexistent/file', "));
}

TEST_CASE_FIXTURE(clean, "an existing stream is of its context's device, none of the current one's") {
  CHECK(contains(message_of([] { stream::from_native(nullptr); }), "name the device"));
}

TEST_CASE_FIXTURE(clean, "machine code that the driver made is cached, by GPU") {
  temporary_folder folder;
  const auto before = current_cache_settings();
  auto launch = [&](const device &d) {
    set_cache({cache_settings::mode::on, folder.path.string()}); // as a new process
    stream here(d);
    device_buffer<float> a(d, 256), b(d, 256);
    make_copy("kept")(here, 1, a, b, 256);
    return cache_statistics();
  };
  CHECK(launch(gpu(0)).compiled == 1);
  CHECK(fake().calls()["cuLinkCreate"] == 1);
  CHECK(launch(gpu(0)).disk_hits == 1);
  CHECK(fake().calls()["cuLinkCreate"] == 1);              // the driver's result was in the cache
  CHECK(launch(gpu(1)).compiled == 1);                     // another GPU
  CHECK(launch(device::open("cuda:sm_80")).compiled == 1); // its code, made by the driver for this GPU
  set_cache(before);
}
