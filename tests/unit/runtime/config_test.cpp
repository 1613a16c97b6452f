// Equality and hash of kernel configurations: a miss gives stale kernels, a false difference compiles at every launch.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <tessera/runtime/detail/config.h>

using tessera::detail::config_equal;
using tessera::detail::config_hash;
using tessera::detail::field_count;

namespace {

struct ints {
  int a = 1, b = 2;
};
struct padded {
  char a = 1;
  int b = 2;
  bool c = true;
};
enum class mode { slow, fast };
struct mixed {
  int block = 128;
  float scale = 1;
  bool relu = false;
  mode m = mode::fast;
  double eps = 1e-5;
};
struct nested {
  padded p;
  std::array<float, 3> weights{1, 2, 3};
  int tiles[2] = {4, 5};
  bool on = false;
};
struct arrays {
  float a[2] = {1, 2};
  double b[2][2] = {};
};
struct lists {
  std::vector<double> v;
  std::vector<bool> b = {};
  std::string s = {};
};
struct by_operator {
  std::string name;
  float x = 0;
  bool operator==(const by_operator &) const = default;
};
struct sixteen {
  float a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
};

template <class C> bool same(const C &a, const C &b) {
  const bool equal = config_equal(a, b);
  if (equal)
    CHECK(config_hash(a) == config_hash(b));
  return equal;
}

/// A copy whose padding bytes differ.
template <class C> C with_dirty_padding(const C &c) {
  alignas(C) unsigned char bytes[sizeof(C)];
  std::memset(bytes, 0xa5, sizeof bytes);
  C *d = new (bytes) C(c);
  return *d;
}

} // namespace

TEST_SUITE("runtime.config") {

  TEST_CASE("fields are counted, nested aggregates and arrays as one each") {
    CHECK(field_count<ints>() == 2);
    CHECK(field_count<mixed>() == 5);
    CHECK(field_count<nested>() == 4);
    CHECK(field_count<sixteen>() == 16);
  }

  TEST_CASE("every field counts") {
    CHECK(same(ints{}, ints{}));
    CHECK_FALSE(same(ints{}, ints{1, 3}));
    CHECK(same(mixed{}, mixed{}));
    CHECK_FALSE(same(mixed{}, mixed{.block = 64}));
    CHECK_FALSE(same(mixed{}, mixed{.scale = 2}));
    CHECK_FALSE(same(mixed{}, mixed{.relu = true}));
    CHECK_FALSE(same(mixed{}, mixed{.m = mode::slow}));
    CHECK_FALSE(same(mixed{}, mixed{.eps = 0}));
    CHECK(same(nested{}, nested{}));
    CHECK_FALSE(same(nested{}, nested{.p = {.c = false}}));
    CHECK_FALSE(same(nested{}, nested{{}, {1, 2, 4}}));
    CHECK_FALSE(same(nested{}, nested{{}, {1, 2, 3}, {4, 6}}));
    CHECK_FALSE(same(by_operator{"a", 1}, by_operator{"b", 1}));
    CHECK(same(by_operator{"a", 1}, by_operator{"a", 1}));
  }

  TEST_CASE("padding does not count") {
    CHECK(same(padded{}, with_dirty_padding(padded{})));
    CHECK(same(mixed{}, with_dirty_padding(mixed{})));
  }

  TEST_CASE("floats are compared by their bits") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK(same(mixed{.scale = nan}, mixed{.scale = nan}));
    CHECK_FALSE(same(mixed{.scale = 0.0f}, mixed{.scale = -0.0f}));
    CHECK(same(nested{{}, {nan, 2, 3}}, nested{{}, {nan, 2, 3}}));
    CHECK_FALSE(same(nested{{}, {0.0f, 2, 3}}, nested{{}, {-0.0f, 2, 3}}));
    CHECK(same(arrays{{nan, 1}, {{1, 2}, {3, 4}}}, arrays{{nan, 1}, {{1, 2}, {3, 4}}}));
    CHECK_FALSE(same(arrays{{0.0f, 1}, {}}, arrays{{-0.0f, 1}, {}}));
    CHECK_FALSE(same(arrays{{}, {{1, 2}, {3, 4}}}, arrays{{}, {{1, 2}, {3, 5}}}));
    CHECK_FALSE(same(lists{{1, 0}}, lists{{1, -0.0}}));
    CHECK_FALSE(same(lists{{1}}, lists{{1, 2}}));
    CHECK_FALSE(same(lists{{1}, {true}}, lists{{1}, {false}}));
    CHECK(same(lists{{1}, {true, false}, "x"}, lists{{1}, {true, false}, "x"}));
  }

  TEST_CASE("hashes spread") {
    CHECK(config_hash(ints{1, 2}) != config_hash(ints{2, 1}));
    CHECK(config_hash(mixed{.scale = 1}) != config_hash(mixed{.scale = 2}));
  }
}
