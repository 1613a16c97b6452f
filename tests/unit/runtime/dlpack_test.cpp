// Tensors of other libraries as arguments.
#include <doctest/doctest.h>

#include <tessera/tessera.h>

namespace tl = tessera::tl;
using namespace tessera;

namespace {

// As in dlpack.h; the launcher recognises the members, not the header.
struct dl_device {
  int device_type, device_id;
};
struct dl_type {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct tensor {
  void *data;
  dl_device device;
  int ndim;
  dl_type dtype;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
struct managed {
  tensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(managed *);
};
struct managed_versioned {
  struct {
    std::uint32_t major, minor;
  } version;
  void *manager_ctx;
  void (*deleter)(managed_versioned *);
  std::uint64_t flags;
  tensor dl_tensor;
};
static_assert(dlpack_managed<managed_versioned>);
static_assert(dlpack_tensor<tensor> && dlpack_managed<managed>);
static_assert(!dlpack_tensor<managed> && !dlpack_tensor<device_buffer<float>>);

struct fixture {
  float data[24] = {};
  std::int64_t shape[2] = {4, 6}, strides[2] = {6, 1};
  tensor t{data, {1, 0}, 2, {2, 32, 1}, shape, strides, 0};
  stream s = stream::default_of(device::cpu());

  std::string why(dtype element = dtype::f32, bool contiguous = true) {
    std::string text;
    std::uint64_t p = detail::dlpack_address(detail::view_of(t), element, s, contiguous, true, text);
    CHECK((p == 0) == !text.empty());
    return text;
  }
};
bool contains(const std::string &text, const char *part) { return text.find(part) != text.npos; }

} // namespace

TEST_SUITE("runtime.dlpack") {

  TEST_CASE_FIXTURE(fixture, "the byte offset is part of the address") {
    std::string why;
    t.byte_offset = 8;
    CHECK(detail::dlpack_address(detail::view_of(t), dtype::f32, s, true, true, why) ==
          reinterpret_cast<std::uint64_t>(data + 2));
    t.byte_offset = 6;
    CHECK(contains(this->why(), "not a multiple of its elements' 4 bytes"));
  }

  TEST_CASE_FIXTURE(fixture, "the element type must be the parameter's") {
    CHECK(why() == "");
    CHECK(contains(why(dtype::f16), "tensor of f32, the kernel's parameter is a pointer to f16"));
    CHECK(contains(why(dtype::i32), "pointer to i32"));
    t.dtype = {4, 16, 1};
    CHECK(why(dtype::bf16) == "");
    CHECK(contains(why(dtype::f16), "tensor of bf16"));
    t.dtype = {1, 8, 1};
    CHECK(why(dtype::u8) == "");
    CHECK(why(dtype::i1) == "");
    t.dtype = {10, 8, 1};
    CHECK(why(dtype::f8e4m3) == "");
    CHECK(contains(why(dtype::f8e5m2), "tensor of f8e4m3"));
    t.dtype = {12, 8, 1};
    CHECK(why(dtype::f8e5m2) == "");
    t.dtype = {11, 8, 1};
    CHECK(why(dtype::f8e4m3fnuz) == "");
    CHECK(contains(why(dtype::f8e4m3), "tensor of f8e4m3fnuz"));
    t.dtype = {13, 8, 1};
    CHECK(why(dtype::f8e5m2fnuz) == "");
    CHECK(contains(why(dtype::f8e5m2), "tensor of f8e5m2fnuz"));
    t.dtype = {2, 32, 4};
    CHECK(contains(why(), "f32 x 4"));
  }

  TEST_CASE_FIXTURE(fixture, "it must be on the launch's device") {
    for (int gpu : {2, 10}) { // CUDA's, ROCm's
      t.device = {gpu, 0};
      CHECK(contains(why(), "the launch is on the CPU"));
      t.device = {gpu + 1, 0}; // pinned host memory
      CHECK(why() == "");
    }
  }

  TEST_CASE_FIXTURE(fixture, "it must be contiguous unless the kernel gets the strides") {
    t.strides = nullptr;
    CHECK(why() == "");
    t.strides = strides;
    strides[0] = 8;
    CHECK(contains(why(), "not contiguous"));
    CHECK(why(dtype::f32, false) == "");
    shape[0] = 1; // the stride of a dimension of size 1 says nothing
    CHECK(why() == "");
    shape[0] = 0;
    CHECK(why() == "");
  }

  TEST_CASE_FIXTURE(fixture, "it must have data") {
    t.data = nullptr;
    CHECK(contains(why(), "without data"));
  }

  TEST_CASE_FIXTURE(fixture, "a kernel runs on tensors") {
    for (int i = 0; i < 24; ++i)
      data[i] = float(i);
    float out[24];
    auto twice = tl::kernel("twice", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<tl::i32> n) {
      auto at = tl::arange(0, 32);
      tl::store(y + at, tl::load(x + at, at < n) * 2.0f, at < n);
    });
    managed m{t, nullptr, nullptr};
    twice(s, 1, &m, out, 24);
    for (int i = 0; i < 24; ++i)
      CHECK(out[i] == float(2 * i));
    twice(s, 1, strided(t), out, 24);
    static int deleted = 0; // a launch borrows
    managed_versioned v{{1, 1}, nullptr, [](managed_versioned *) { ++deleted; }, 1, t};
    twice(s, 1, v, out, 24);
    CHECK_THROWS_WITH_AS(twice(s, 1, t, v, 24),
                         doctest::Contains("argument 2 of kernel 'twice' is a read-only DLPack tensor"), error);
    CHECK_THROWS_WITH_AS(twice(s, 1, t, strided(v), 24), doctest::Contains("read-only"), error);
    v.flags = 2;
    v.dl_tensor.data = out;
    out[5] = -1;
    twice(s, 1, t, &v, 24);
    CHECK(out[5] == 10);
    v.version.major = 2;
    CHECK_THROWS_WITH_AS(twice(s, 1, v, out, 24), doctest::Contains("DLPack tensor of version 2"), error);
    CHECK(deleted == 0);
    CHECK_THROWS_WITH_AS(twice(s, 1, strided(static_cast<tensor *>(nullptr)), out, 24), doctest::Contains("null pointer"),
                         error);
    t.dtype.bits = 64;
    CHECK_THROWS_WITH_AS(twice(s, 1, t, out, 24),
                         doctest::Contains("argument 1 of kernel 'twice' is a DLPack tensor of f64"), error);
  }
}
