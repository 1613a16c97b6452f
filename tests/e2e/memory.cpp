// Loads and stores: masks against vector width, masked lanes that must not touch memory, strides, alignment of
// arguments, every element type, offsets of 64 bits.
#include <numeric>
#include <optional>

#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"

using namespace e2e;

namespace {

struct tile_config {
  int block = 128;
  int limit = -1; ///< mask bound known while tracing; -1: it is an argument
};

/// Input that ends (`first`: starts) exactly at memory nobody may touch, where the device is a CPU.
template <class T> class fenced {
public:
  fenced(const std::vector<T> &host, bool first = false) {
    if (!dev().is_cpu()) {
      gpu_.emplace(dev(), host);
      data_ = gpu_->data();
      return;
    }
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inner = (host.size() * sizeof(T) + page - 1) / page * page;
    size_ = inner + 2 * page;
    base_ = static_cast<std::byte *>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(base_ != MAP_FAILED);
    mprotect(base_, page, PROT_NONE);
    mprotect(base_ + page + inner, page, PROT_NONE);
    std::byte *at = base_ + page + (first ? 0 : inner - host.size() * sizeof(T));
    std::memcpy(at, host.data(), host.size() * sizeof(T));
    data_ = reinterpret_cast<T *>(at);
  }
  ~fenced() {
    if (base_)
      munmap(base_, size_);
  }
  fenced(const fenced &) = delete;
  T *data() const { return data_; }

private:
  std::optional<tessera::device_buffer<T>> gpu_;
  std::byte *base_ = nullptr;
  std::size_t size_ = 0;
  T *data_ = nullptr;
};

/// Copies through tiles of every length: the ends of blocks, one element, more than one program.
template <class T> void test_copy() {
  const auto kernel = tl::kernel("copy", [](tl::ptr<const T> x, tl::ptr<T> y, tl::val<i32> n, tile_config c) {
    auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
    tl::store(y + at, tl::load(x + at, at < n), at < n);
  });
  for (int n : {1, 3, 64, 255, 256, 257, 600}) {
    const auto x = random<T>(n, -100, 100);
    input<T> in(x);
    output<T> out(n);
    launch(kernel.with({.block = 256}), tl::cdiv(n, 256), *in, *out, n);
    check_equal<T>("copy of " + std::to_string(n), out.read(), x);
    // Both pointers one element further: less aligned than the first launch of the same kernel.
    if (n > 1) {
      output<T> shifted(n);
      launch(kernel.with({.block = 256}), tl::cdiv(n - 1, 256), (*in).slice(1), (*shifted).slice(1), n - 1);
      auto got = shifted.read();
      CHECK(output<T>::is_poison(got[0]));
      check_equal<T>("shifted copy", part(got, 1, n - 1), part(x, 1, n - 1));
    }
  }
}

/// Ones where index < m, nothing elsewhere: the mask is narrower than what one lane stores at once.
template <class T> void test_narrow_masks(int num_warps) {
  const auto kernel = tl::kernel("ones", [](tl::ptr<T> y, tl::val<i32> m, tile_config c) {
    auto at = tl::arange(0, c.block);
    auto mask = c.limit >= 0 ? at < c.limit : at < m;
    tl::store(y + at, tl::full<T>({c.block}, make<T>(1)), mask);
  });
  for (int block : {128, 256, 512, 1024})
    for (int m : {0, 1, 2, 3, 5, 127})
      for (bool constant : {false, true}) {
        if (constant && block != 512)
          continue;
        output<T> out(std::vector<T>(1024, make<T>(0)));
        launch(kernel.with({.block = block, .limit = constant ? m : -1}, {.num_warps = num_warps}), 1, *out, m);
        std::vector<T> want(1024, make<T>(0));
        std::fill(want.begin(), want.begin() + m, make<T>(1));
        check_equal<T>("first " + std::to_string(m) + " of " + std::to_string(block), out.read(), want);
      }
}

/// A window of 8 at `s` over an array of 8: what lies outside must read as -1 and not be touched, nor written.
template <class T> void test_overrun() {
  const auto read = tl::kernel("window_load", [](tl::ptr<const T> x, tl::ptr<T> y, tl::val<i32> s) {
    auto o = tl::arange(0, 8) + s;
    tl::store(y + tl::arange(0, 8), tl::load(x + o, o >= 0 && o < 8, {.other = make<T>(-1)}));
  });
  const auto write = tl::kernel("window_store", [](tl::ptr<T> y, tl::val<i32> s) {
    auto o = tl::arange(0, 8) + s;
    tl::store(y + o, tl::arange(0, 8).template to<T>(), o >= 0 && o < 8);
  });
  const auto x = iota<T>(8, 10);
  for (int s : {3, -2, 8, -8, 0})
    for (bool first : {false, true}) {
      fenced<T> in(x, first);
      output<T> out(8);
      launch(read, 1, in.data(), *out, s);
      std::vector<T> want(8);
      for (int i = 0; i < 8; ++i)
        want[i] = i + s >= 0 && i + s < 8 ? x[i + s] : make<T>(-1);
      check_equal<T>("window at " + std::to_string(s), out.read(), want);

      output<T> stored(std::vector<T>(8, make<T>(99)));
      launch(write, 1, *stored, s);
      std::vector<T> kept(8, make<T>(99));
      for (int i = 0; i < 8; ++i)
        if (i + s >= 0 && i + s < 8)
          kept[i + s] = make<T>(i);
      check_equal<T>("store at " + std::to_string(s), stored.read(), kept);
    }
}

} // namespace

TEST_SUITE_BEGIN("memory");

TEST_CASE("copies of every type") {
  test_copy<i8>();
  test_copy<u16>();
  test_copy<i32>();
  test_copy<u64>();
  test_copy<f16>();
  test_copy<bf16>();
  test_copy<float>();
  test_copy<double>();
}

TEST_CASE("a masked store narrower than the vector width") {
  test_narrow_masks<float>(0);
  test_narrow_masks<float>(4);
  test_narrow_masks<f16>(0);
  test_narrow_masks<i8>(0);
}

TEST_CASE("a masked access that runs past either end") {
  test_overrun<float>();
  test_overrun<i32>();
  test_overrun<i8>();
}

TEST_CASE("masked-off lanes without `other` are 0") {
  const auto kernel = tl::kernel("zeros_elsewhere", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<i32> m) {
    auto at = tl::arange(0, 64);
    tl::store(y + at, tl::load(x + at, at % 3 < m));
  });
  const auto x = random<float>(64, 1, 2);
  input<float> in(x);
  output<float> out(64);
  launch(kernel, 1, *in, *out, 2);
  std::vector<float> want(64);
  for (int i = 0; i < 64; ++i)
    want[i] = i % 3 < 2 ? x[i] : 0;
  check_equal<float>("load", out.read(), want);
}

TEST_CASE("what a row lacks stays 0, whatever is subtracted from the rest") {
  const auto kernel = tl::kernel("deviations", [](tl::ptr<const f16> x, tl::ptr<const float> mean, tl::ptr<float> y,
                                                  tl::ptr<float> z, tl::val<i32> rows, tl::val<i32> cols) {
    auto row = tl::arange(0, 4), col = tl::arange(0, 128);
    auto in = row[tl::all, tl::newaxis] < rows && col[tl::newaxis, tl::all] < cols;
    auto at = row[tl::all, tl::newaxis] * 128 + col[tl::newaxis, tl::all];
    auto v = tl::load(x + at, in).to<float>();
    auto m = tl::load(mean + row)[tl::all, tl::newaxis];
    tl::store(y + at, tl::where(in, v - m, 0.0f));
    tl::store(z + at, tl::where(in, m + v, 0.0f));
  });
  const auto values = random<f16>(4 * 128, 1, 2);
  const std::vector<float> means{0.5f, INFINITY, NAN, -0.0f};
  input<f16> in(values);
  input<float> mean(means);
  for (int cols : {1, 37, 64, 127, 128})
    for (int rows : {3, 4}) {
      output<float> y(4 * 128), z(4 * 128);
      launch(kernel, 1, *in, *mean, *y, *z, rows, cols);
      std::vector<float> difference(4 * 128), sum(4 * 128);
      for (int i = 0; i < 4 * 128; ++i)
        if (i / 128 < rows && i % 128 < cols) {
          difference[i] = static_cast<float>(values[i]) - means[i / 128];
          sum[i] = static_cast<float>(values[i]) + means[i / 128];
        }
      check_equal<float>("difference", y.read(), difference);
      check_equal<float>("sum", z.read(), sum);
    }
}

TEST_CASE("a row pitch that is no multiple of the vector width, and shifted outputs") {
  const auto kernel = tl::kernel("pitch", [](tl::ptr<float> y, tl::val<i32> n) {
    auto i = tl::program_id(0) * 256 + tl::arange(0, 256);
    tl::store(y + i / 64 * 1185 + i % 64, i.to<float>(), i < n);
  });
  tessera::device_buffer<float> y(dev(), 4 * 1185 + 4);
  for (int shift : {0, 1, 0}) {
    y.fill(-1);
    launch(kernel, 1, y.slice(shift), 256);
    std::vector<float> want(y.size(), -1);
    for (int i = 0; i < 256; ++i)
      want[shift + i / 64 * 1185 + i % 64] = static_cast<float>(i);
    check_equal<float>("pitch, shift " + std::to_string(shift), y.to_host(), want);
  }
}

TEST_CASE("strided, reversed and gathered access") {
  const auto kernel = tl::kernel("strides", [](tl::ptr<const i32> x, tl::ptr<i32> y, tl::val<i32> stride) {
    auto at = tl::arange(0, 128);
    tl::store(y + at, tl::load(x + at * stride));
    tl::store(y + 128 + at, tl::load(x + (127 - at)));
    auto index = tl::load(x + at) * 37 % 128;
    tl::store(y + 256 + at, tl::load(x + index));
    tl::store(y + 384 + index, at); // 37 is odd: every place is written once
  });
  const auto x = iota<i32>(384);
  input<i32> in(x);
  output<i32> out(512);
  launch(kernel, 1, *in, *out, 3);
  std::vector<i32> want(512);
  for (int i = 0; i < 128; ++i) {
    want[i] = 3 * i, want[128 + i] = 127 - i, want[256 + i] = 37 * i % 128;
    want[384 + 37 * i % 128] = i;
  }
  check_equal<i32>("strides", out.read(), want);
}

TEST_CASE("single values: loaded, stored, masked") {
  const auto kernel = tl::kernel("scalars", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<i32> n) {
    auto p = tl::program_id(0);
    auto v = tl::load(x + p, p < n, {.other = -1.0f});
    tl::store(y + p, v * 2.0f);
    tl::store(y + 8 + p, v, p != 3);
  });
  const auto x = random<float>(8, -1, 1);
  input<float> in(x);
  output<float> out(std::vector<float>(16, 5));
  launch(kernel, 8, *in, *out, 6);
  std::vector<float> want(16);
  for (int p = 0; p < 8; ++p) {
    const float v = p < 6 ? x[p] : -1;
    want[p] = 2 * v, want[8 + p] = p != 3 ? v : 5;
  }
  check_equal<float>("scalars", out.read(), want);
}

TEST_CASE("cache modifiers, eviction policies and volatile change no value") {
  const auto kernel = tl::kernel("hints", [](tl::ptr<const float> x, tl::ptr<float> y) {
    auto at = tl::arange(0, 256);
    auto a = tl::load(x + at, {.cache = tl::cache::ca}), b = tl::load(x + at, {.cache = tl::cache::cg});
    auto c = tl::load(x + at, {.evict = tl::evict::first}), d = tl::load(x + at, {.is_volatile = true});
    tl::store(y + at, a + b, {.cache = tl::cache::wb});
    tl::store(y + 256 + at, c + d, {.cache = tl::cache::cs, .evict = tl::evict::last});
  });
  const auto x = random<float>(256, -1, 1);
  input<float> in(x);
  output<float> out(512);
  launch(kernel, 1, *in, *out);
  std::vector<float> want(512);
  for (int i = 0; i < 512; ++i)
    want[i] = 2 * x[i % 256];
  check_equal<float>("hints", out.read(), want);
}

TEST_CASE("a tile of 32768 elements") {
  const auto kernel = tl::kernel("wide", [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<i32> n) {
    auto at = tl::arange(0, 32768);
    tl::store(y + at, tl::load(x + at, at < n) + 1.0f, at < n);
  });
  const int n = 32001;
  const auto x = random<float>(n, -1, 1);
  input<float> in(x);
  output<float> out(n);
  launch(kernel, 1, *in, *out, n);
  std::vector<float> want(n);
  for (int i = 0; i < n; ++i)
    want[i] = x[i] + 1;
  check_equal<float>("wide", out.read(), want);
}

TEST_CASE("offsets of 64 bits; 32-bit products wrap") {
  const auto kernel = tl::kernel("offsets", [](tl::val<i32> b, tl::val<i32> stride, tl::ptr<i64> y, tl::ptr<f16> p) {
    tl::store(y, b.to<i64>() * stride.to<i64>());
    tl::store(y + 1, (b * stride).to<i64>());
    auto moved = p + b.to<i64>() * stride.to<i64>();
    tl::store(y + 2, moved.to<i64>() - p.to<i64>());
  });
  output<i64> out(3);
  tessera::device_buffer<f16> p(dev(), 1);
  launch(kernel, 1, 319, 7864320, *out, p);
  check_equal<i64>("offsets", out.read(), {2508718080, -1786249216, 5017436160});
}

TEST_CASE("loads see what other threads of the program stored") {
  // Turned round within a program, in place: every element is read by another thread than the one that wrote it.
  const auto turn = tl::kernel("turn", [](tl::ptr<i32> x, tl::ptr<i32> y, tile_config c) {
    auto i = tl::arange(0, c.block);
    auto first = x + tl::program_id(0) * c.block;
    tl::store(first + i, tl::load(first + i) + 1);
    tl::store(first + (c.block - 1 - i), tl::load(first + i) * 2); // reads all before it writes
    tl::store(y + tl::program_id(0) * c.block + i, tl::load(first + i));
  });
  // A number that a loop keeps in memory.
  const auto count = tl::kernel("count", [](tl::ptr<const i32> x, tl::ptr<i32> y, tl::val<i32> n) {
    for (auto i : tl::range(0, n))
      tl::store(y, tl::load(y) + tl::load(x + i));
  });
  for (int block : {32, 256, 1024}) {
    const auto x = random<i32>(2 * block, -1000, 1000);
    std::vector<i32> want(x.size());
    for (int i = 0; i < 2 * block; ++i)
      want[size_t(i)] = 2 * (x[size_t(i / block * block + block - 1 - i % block)] + 1);
    for (int warps : {1, 4, 8}) {
      output<i32> a(x), y(2 * block);
      launch(turn.with({.block = block}, {.num_warps = warps}), 2, *a, *y);
      check_equal("y, block " + std::to_string(block), y.read(), want);
      check_equal("x, block " + std::to_string(block), a.read(), want);
    }
  }
  const auto x = random<i32>(50, -1000, 1000);
  input<i32> in(x);
  output<i32> sum(std::vector<i32>{7});
  launch(count, 1, *in, *sum, 50);
  check_equal("sum", sum.read(), std::vector<i32>{std::accumulate(x.begin(), x.end(), 7)});
}

TEST_SUITE_END();
