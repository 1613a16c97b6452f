// The HIP device against the fake runtime: what HIP alone has. A program of its own, since a driver is opened once per
// process; what it shares with CUDA is in gpu_driver.cpp; the suites hip.… are run by themselves, with other drivers.
#include "gpu_driver.h"

// The fake's own entry points.
extern "C" {
int hipModuleLoadData(void **module, const void *image);
int hipModuleUnload(void *module);
int hipModuleGetFunction(void **function, void *module, const char *name);
int hipModuleLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned,
                          unsigned shared, void *stream, void **args, void **extra);
}

const gpu_vendor &vendor() {
  static const gpu_vendor hip{.fake = fake_hip,
                              .gpu = [](int number) { return device::hip(number); },
                              .place = "hip:0",
                              .name = "Fake gfx942",
                              .target = "hip:gfx942",
                              .launch = "hipModuleLaunchKernel",
                              .load = "hipModuleLoadData",
                              .look_up = "hipPointerGetAttributes",
                              .wait = "hipStreamSynchronize",
                              .out_of_memory = "hipErrorOutOfMemory",
                              .out_of_resources = "hipErrorLaunchOutOfResources",
                              .illegal_address = "hipErrorIllegalAddress",
                              .device_memory = "memory of a HIP device",
                              .warm_calls = {{"hipGetDevice", 1}, {"hipModuleLaunchKernel", 1}}};
  return hip;
}

namespace {
bool version_5() { return device::hip(0).properties().driver_version < 60000000; }
} // namespace

TEST_CASE_FIXTURE(clean, "devices are listed with their architecture; those that no code is made for are not") {
  auto all = device::all();
  REQUIRE(all.size() == 3);
  CHECK(all[0].name() == "Fake gfx942");
  CHECK(all[0].target().str() == "hip:gfx942");
  CHECK(all[1].target().str() == "hip:gfx1100");
  CHECK(device::best() == all[0]);
  CHECK(device::open("auto") == all[0]);
  CHECK(device::open("hip") == all[0]);
  CHECK(device::open("hip:1") == all[1]);
  CHECK(device::open("hip:gfx1100") == all[1]);
  auto &p = all[0].properties();
  CHECK(p.multiprocessors == 304);
  CHECK(p.warp_size == 64);
  CHECK(all[1].properties().warp_size == 32);
  CHECK(p.max_shared_bytes == 65536);
  CHECK(p.max_grid[1] == 65535);
  CHECK(p.registers_per_multiprocessor == 65536);
  CHECK(p.l2_bytes == 256 << 20);
  CHECK(p.clock_ghz == doctest::Approx(2.1));
  const auto text = message_of([] { device::hip(2); });
  CHECK(contains(text, "there is no device hip:2; this machine has the CPU, hip:0 (Fake gfx942, gfx942), hip:1 (Fake "
                       "gfx1100, gfx1100) (hip:2 is not used: no code is made for gfx1036 (Fake gfx1036))"));
  CHECK(contains(message_of([] { device::open("hip:gfx950"); }), "no device that runs code for 'hip:gfx950'"));
  CHECK(contains(message_of([] { device::cuda(0); }), "there is no device cuda:0; this machine has the CPU, hip:0"));
  CHECK_THROWS_AS(device::open("hip:99999999999"), error);
  CHECK_THROWS_AS(device::open("hip:"), error);
}

TEST_CASE_FIXTURE(clean, "DLPack tensors are taken from ROCm devices of the same number") {
  auto gpu = device::hip(1);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  struct { // as in dlpack.h; the launcher recognises the members
    void *data;
    struct { int device_type, device_id; } device;
    int ndim;
    struct { std::uint8_t code, bits; std::uint16_t lanes; } dtype;
    std::int64_t *shape, *strides;
    std::uint64_t byte_offset;
  } tensor{x.data(), {10, 1}, 1, {2, 32, 1}, nullptr, nullptr, 0};
  std::int64_t size = 256;
  tensor.shape = &size;
  auto copy = make_copy();
  copy(s, 1, tensor, y, 256);
  CHECK(value<float *>(fake().launches().at(0).params[0]) == x.data());
  tensor.device = {10, 0};
  CHECK(contains(message_of([&] { copy(s, 1, tensor, y, 256); }), "on device type 10, number 0; the launch is on hip:1"));
  tensor.device = {2, 1};
  CHECK(contains(message_of([&] { copy(s, 1, tensor, y, 256); }), "on device type 2, number 1; the launch is on hip:1"));
  tensor.device = {11, 0}; // pinned by HIP: the GPU's and the host's
  copy(s, 1, tensor, y, 256);
  CHECK(fake().launches().size() == 2);
}

TEST_CASE_FIXTURE(clean, "the handle knows what was made, and shared memory is what the code object has") {
  auto gpu = device::hip(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 64 * 64), y(gpu, 64 * 64);
  auto transpose = tl::kernel("transpose", [](tl::ptr<const float> x, tl::ptr<float> y) {
    auto row = tl::arange(0, 64), col = tl::arange(0, 64);
    auto tile = tl::load(x + row[tl::all, tl::newaxis] * 64 + col[tl::newaxis, tl::all]);
    tl::store(y + col[tl::all, tl::newaxis] * 64 + row[tl::newaxis, tl::all], tl::trans(tile));
  });
  transpose(s, 1, x, y);
  auto h = transpose.compile(gpu);
  CHECK(h.registers() > 0);
  CHECK(h.spills() == 0);
  CHECK(h.shared_bytes() > 0);
  CHECK(fake().launches().at(0).shared_bytes == h.shared_bytes());
  CHECK(contains(h.stage("amdgcn"), "transpose.kd"));
  CHECK(h.stage("hsaco").starts_with("\x7f" "ELF"));
  CHECK(contains(h.summary(), "transpose for hip:gfx942: 4 warps"));
}

TEST_CASE_FIXTURE(clean, "a code object that the driver refuses is an error, and the next launch works") {
  auto gpu = device::hip(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("refused");
  fake().fail_next("hipModuleLoadData", 209);
  CHECK(contains(message_of([&] { copy(s, 1, x, y, 256); }),
                 "driver error: loading the code object of kernel 'refused' for gfx942 (the HIP runtime is too old for "
                 "it, or made for another GPU) failed: hipErrorNoBinaryForGpu"));
  CHECK(fake().launches().empty());
  copy(s, 1, x, y, 256);
  CHECK(fake().launches().size() == 1);
}

TEST_CASE_FIXTURE(clean, "grids beyond what a dispatch can count never reach the driver") {
  auto gpu = device::hip(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("wide"); // 256 threads
  copy(s, {16384, 16384, 16}, x, y, 256);
  copy(s, {(1 << 24) - 1, 2, 1}, x, y, 256);
  CHECK(fake().launches().size() == 2);
  CHECK(contains(message_of([&] { copy(s, 1 << 24, x, y, 256); }),
                 "kernel 'wide' cannot be launched with 16777216 programs along x on hip:0: with 256 threads each at "
                 "most 16777215 are possible"));
  CHECK(contains(message_of([&] {
                   copy(s, {1, 65536, 1}, x, y, 256);
                 }),
                 "at most (2147483647, 65535, 65535) programs"));
  CHECK(fake().launches().size() == 2);
}

TEST_CASE_FIXTURE(clean, "cooperative launches reach the driver as such; clusters are refused") {
  auto gpu = device::hip(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  auto copy = make_copy("grouped");
  if (version_5()) {
    CHECK(contains(message_of([&] { copy.launched({.cooperative = true})(s, 304, x, y, 256); }),
                   "cooperative launches need a newer HIP runtime; this one is 5.3"));
  } else {
    copy.launched({.cooperative = true})(s, 304, x, y, 256);
    copy(s, 1, x, y, 256);
    auto l = fake().launches();
    REQUIRE(l.size() == 2);
    CHECK(l[0].cooperative);
    CHECK_FALSE(l[1].cooperative);
    CHECK(contains(message_of([&] { copy.launched({.cooperative = true})(s, 100000, x, y, 256); }),
                   "100000 programs of kernel 'grouped' does not fit on hip:0 at once"));
  }
  CHECK(contains(message_of([&] {
                   copy.launched({.cluster = {2, 1, 1}})(s, 4, x, y, 256);
                 }),
                 "clusters need an sm_90 GPU or a newer one; hip:0 is gfx942"));
}

TEST_CASE_FIXTURE(clean, "the fake refuses what a GPU could not run") {
  refusals_expected = true;
  auto gpu = device::hip(0);
  stream s(gpu);
  device_buffer<float> x(gpu, 256), y(gpu, 256);
  const auto kernel = make_copy("checked").with_options({.num_warps = 2}).compile(gpu, {});
  const std::string good = kernel.stage("hsaco");
  auto refusal = [&] {
    const auto all = fake().refusals();
    return all.empty() ? std::string("nothing") : all.back();
  };
  void *module = nullptr, *function = nullptr;
  auto load = [&](const std::string &image) {
    fake().reset();
    hipModuleLoadData(&module, image.data());
    return refusal();
  };
  auto with = [&](std::size_t at, char byte) {
    std::string image = good;
    image.at(at) = byte;
    return image;
  };
  CHECK(contains(load(with(0, 'x')), "not an ELF file"));
  CHECK(contains(load(with(0x30, 0x41)), "the metadata is for amdgcn-amd-amdhsa--gfx942")); // the processor of e_flags
  CHECK(contains(load(make_copy("checked").compile_for("hip:gfx1100").stage("hsaco")), "code for gfx1100 on gfx942"));
  const auto field = [&](const std::string &name) { return good.find(name) + name.size(); };
  CHECK(contains(load(with(field(".group_segment_fixed_size"), 1)), "the LDS size is 0 in the descriptor, 1 in the metadata"));
  CHECK(contains(load(with(field(".wavefront_size"), 32)), "the wavefront size is 64 in the descriptor, 32"));
  CHECK(contains(load(with(field(".kernarg_segment_size"), 64)), "the kernarg size is"));

  REQUIRE(load(good) == "nothing");
  REQUIRE(hipModuleGetFunction(&function, module, "checked") == 0);
  std::uint64_t in = reinterpret_cast<std::uint64_t>(x.data()), out = reinterpret_cast<std::uint64_t>(y.data());
  int n = 256;
  void *args[] = {&in, &out, &n};
  auto launch = [&](unsigned programs, unsigned threads, unsigned shared) {
    fake().reset();
    hipModuleLaunchKernel(function, programs, 1, 1, threads, 1, 1, shared, s.native(), args, nullptr);
    return refusal();
  };
  CHECK(launch(1, 128, 0) == "nothing");
  CHECK(contains(launch(1, 96, 0), "96 threads are no whole wavefronts of 64"));
  CHECK(contains(launch(1, 256, 0), "256 threads, the code object allows 128"));
  CHECK(contains(launch(1u << 25, 128, 0), "more threads than a dispatch counts"));
  CHECK(contains(launch(1, 128, 65537), "65537 bytes of LDS"));
  out = 12;
  CHECK(contains(launch(1, 128, 0), "argument 2 is 0xc, no memory of the device"));
  CHECK(fake().launches().empty());
  CHECK(hipModuleUnload(module) == 0);
}

TEST_CASE_FIXTURE(clean, "no stream is the default one of the current device") {
  CHECK(stream::from_native(nullptr).device() == device::hip(0));
}

TEST_SUITE("hip.two_vendors") {
  TEST_CASE("GPUs of both vendors are listed, CUDA's first; memory and streams are told apart") {
    auto all = device::all();
    REQUIRE(all.size() == 5);
    CHECK(all[0] == device::cuda(0));
    CHECK(all[2] == device::hip(0));
    CHECK(all[4] == device::cpu());
    CHECK(device::best() == device::cuda(0));
    CHECK(device::open("hip") == device::hip(0));
    auto text = message_of([] { device::hip(7); });
    CHECK(contains(text, "no device hip:7; this machine has the CPU, cuda:0 (Fake H200, sm_90a), cuda:1 (Fake A100, "
                         "sm_80), hip:0 (Fake gfx942, gfx942)"));
    device_buffer<float> on_cuda(device::cuda(0), 256), on_hip(device::hip(0), 256);
    stream cuda(device::cuda(0)), hip(device::hip(0));
    auto copy = make_copy();
    copy(cuda, 1, on_cuda, on_cuda, 256);
    copy(hip, 1, on_hip, on_hip, 256);
    CHECK(fake_cuda().launches().size() == 1);
    CHECK(fake_hip().launches().size() == 1);
    CHECK(contains(message_of([&] { copy(hip, 1, on_cuda, on_hip, 256); }), "is a buffer of cuda:0"));
    CHECK(contains(message_of([&] { copy(hip, 1, on_cuda.data(), on_hip, 256); }), "not memory of a GPU"));
    CHECK(contains(message_of([&] { copy(cuda, 1, on_cuda, on_hip.data(), 256); }), "not memory of a GPU"));
    CHECK(contains(message_of([&] { stream::from_native(hip.native()); }), "GPUs of two vendors"));
    CHECK(stream::from_native(device::hip(0), hip.native()).device() == device::hip(0));
    on_hip.fill(3);
    on_cuda.copy_from(on_hip.view());
    CHECK(on_cuda.to_host() == std::vector<float>(256, 3.0f));
  }
}

TEST_SUITE("hip.roctx") {
  TEST_CASE_FIXTURE(clean, "ROCTX ranges have the kernels' names") {
    stream s(device::hip(0));
    device_buffer<float> x(device::hip(0), 256);
    make_copy("ranged")(s, 3, x, x, 256);
    CHECK(fake().nvtx_log() == std::vector<std::string>{"ranged", ""});
  }
}

TEST_SUITE("hip.no_device") {
  TEST_CASE("a real HIP runtime without a GPU leaves the CPU") {
    CHECK(device::best() == device::cpu());
    auto text = message_of([] { device::hip(0); });
    CHECK(contains(text, "launch error: there is no device hip:0; this machine has the CPU only (the HIP runtime "
                         "libamdhip64.so finds no GPU: hipErrorNoDevice"));
  }
}
