// Variables through random nests of loops and branches: the kernel must compute what the same program computes on the
// host.
#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <random>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;

namespace {

constexpr int variables = 5;

struct statement {
  enum kind { assign, branch, loop, repeat, value_form } what;
  int target, a, b, op, number;
  std::vector<statement> first, second;
};

struct generator {
  std::mt19937 random;
  int pick(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }
  std::vector<statement> block(int depth) {
    std::vector<statement> list(static_cast<std::size_t>(1 + pick(3)));
    for (auto &s : list)
      s = one(depth);
    return list;
  }
  statement one(int depth) {
    const int roll = depth > 0 ? pick(10) : 0;
    const auto what = roll < 4   ? statement::assign
                      : roll < 6 ? statement::branch
                      : roll < 8 ? statement::loop
                      : roll < 9 ? statement::repeat
                                 : statement::value_form;
    statement s{what, pick(variables), pick(variables), pick(variables), pick(6), pick(7) - 2, {}, {}};
    if (what != statement::assign)
      s.first = block(depth - 1);
    if (what == statement::branch && pick(2))
      s.second = block(depth - 1);
    return s;
  }
};

using u32 = std::uint32_t;

// One definition of the arithmetic, for host numbers and for traced values.
template <class T, class V> T calculate(int op, V a, V b, u32 number) {
  switch (op) {
  case 0: return a + b;
  case 1: return a - b * number;
  case 2: return a ^ (b + number);
  case 3: return b;
  case 4: return a * 3u + number;
  default: return a + 1u;
  }
}

// Loops run 0 … 3 times: both sides compute the bounds from the variables.
void run(const std::vector<statement> &list, std::array<u32, variables> &v) {
  for (auto &s : list) {
    auto &target = v[static_cast<std::size_t>(s.target)];
    const u32 a = v[static_cast<std::size_t>(s.a)], b = v[static_cast<std::size_t>(s.b)],
              n = static_cast<u32>(s.number);
    switch (s.what) {
    case statement::assign: target = calculate<u32>(s.op, a, b, n); break;
    case statement::branch:
      if ((a & 3u) > 1u)
        run(s.first, v);
      else
        run(s.second, v);
      break;
    case statement::loop: {
      const u32 lo = a & 1u, hi = b & 3u;
      for (u32 i = lo; i < hi; ++i) {
        v[static_cast<std::size_t>(s.target)] += i;
        run(s.first, v);
      }
      break;
    }
    case statement::repeat: {
      u32 left = a & 3u;
      while (left > 0) {
        run(s.first, v);
        left -= 1;
      }
      break;
    }
    case statement::value_form: target = a < b ? a + n : b; break;
    }
  }
}

using traced = std::vector<std::unique_ptr<tl::var<u32>>>;

void record(const std::vector<statement> &list, traced &v) {
  for (auto &s : list) {
    auto &target = *v[static_cast<std::size_t>(s.target)];
    const tl::val<u32> a = *v[static_cast<std::size_t>(s.a)], b = *v[static_cast<std::size_t>(s.b)];
    const u32 n = static_cast<u32>(s.number);
    switch (s.what) {
    case statement::assign: target = calculate<tl::val<u32>>(s.op, a, b, n); break;
    case statement::branch:
      if (s.second.empty())
        tl::if_((a & 3u) > 1u, [&] { record(s.first, v); });
      else
        tl::if_((a & 3u) > 1u, [&] { record(s.first, v); }).else_([&] { record(s.second, v); });
      break;
    case statement::loop:
      for (auto i : tl::range(a & 1u, b & 3u)) {
        target += i;
        record(s.first, v);
      }
      break;
    case statement::repeat: {
      tl::var left = a & 3u;
      tl::while_([&] { return left > 0u; },
                 [&] {
                   record(s.first, v);
                   left -= 1;
                 });
      break;
    }
    case statement::value_form:
      target = tl::cond(
          a < b, [&] { return a + n; }, [&] { return b; });
      break;
    }
  }
}

} // namespace

TEST_CASE("random control flow") {
  constexpr int programs = 60;
  std::vector<std::vector<statement>> list;
  for (int i = 0; i < programs; ++i)
    list.push_back(generator{std::mt19937(static_cast<unsigned>(i))}.block(4));

  const auto kernel = tl::kernel("random_control", [list](tl::ptr<const u32> in, tl::ptr<u32> out) {
    for (int i = 0; i < programs; ++i) {
      traced v;
      for (int k = 0; k < variables; ++k)
        v.push_back(std::make_unique<tl::var<u32>>(tl::load(in + k)));
      record(list[static_cast<std::size_t>(i)], v);
      for (int k = 0; k < variables; ++k)
        tl::store(out + (i * variables + k), *v[static_cast<std::size_t>(k)]);
    }
  });

  const tessera::device cpu = tessera::device::cpu();
  const tessera::stream s = tessera::stream::default_of(cpu);
  std::mt19937 random(7);
  for (int round = 0; round < 4; ++round) {
    std::vector<u32> in(variables);
    for (u32 &x : in)
      x = round ? random() : 0;
    tessera::device_buffer<u32> device_in(cpu, in), device_out(cpu, programs * variables);
    kernel(s, 1, device_in, device_out);
    std::vector<u32> out(programs * variables);
    device_out.copy_to(out, s);
    s.synchronize();
    for (int i = 0; i < programs; ++i) {
      std::array<u32, variables> v;
      for (int k = 0; k < variables; ++k)
        v[static_cast<std::size_t>(k)] = in[static_cast<std::size_t>(k)];
      run(list[static_cast<std::size_t>(i)], v);
      for (int k = 0; k < variables; ++k) {
        CAPTURE(i);
        CAPTURE(k);
        CHECK(out[static_cast<std::size_t>(i * variables + k)] == v[static_cast<std::size_t>(k)]);
      }
    }
  }
}
