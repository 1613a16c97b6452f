// What a lambda's signature says about a kernel, and that tracing keeps to itself.
#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include <tessera/tile.h>

namespace tl = tessera::tl;
using namespace tessera;

namespace {
struct config { int n = 4; };
void function(tl::ptr<float> p, const config &c) { tl::store(p, static_cast<float>(c.n)); }
} // namespace

TEST_CASE("signatures") {
  auto f = [](tl::ptr<const tl::f16>, const tl::ptr<float> &, tl::val<bool>, tl::val<tl::u64>, config) {};
  using s = kernel_signature<decltype(f)>;
  static_assert(s::count == 4 && s::has_config && std::is_same_v<s::config, config>);
  static_assert(s::types[0] == param_type{dtype::f16, true, true});
  static_assert(s::types[1] == param_type{dtype::f32, true, false});
  static_assert(s::types[2] == param_type{dtype::i1, false, false});
  static_assert(s::types[3] == param_type{dtype::u64, false, false});
  static_assert(std::is_same_v<s::host_args, std::tuple<const half *, float *, bool, std::uint64_t>>);
  static_assert(kernel_signature<decltype([] {})>::count == 0);
  static_assert(!kernel_signature<decltype([](tl::val<float>) {})>::has_config);
  static_assert(kernel_signature<decltype(&function)>::count == 1);
  CHECK(trace_kernel("f", &function, config{3}).str().find("3.000000e+00") != std::string::npos);
}

TEST_CASE("one result type, whatever was combined") {
  static_assert(std::is_same_v<decltype(tl::val<float>(detail::handle{}) + 1), tl::val<float>>);
  static_assert(std::is_same_v<decltype(1 - tl::val<tl::u8>(detail::handle{})), tl::val<tl::u8>>);
  static_assert(std::is_same_v<decltype(tl::val<float>(detail::handle{}) < 1), tl::val<bool>>);
  static_assert(std::is_same_v<decltype(tl::ptr<const float>(detail::handle{}) + 1), tl::ptr<const float>>);
  static_assert(std::is_same_v<decltype(tl::load(tl::ptr<const bool>(detail::handle{}))), tl::val<bool>>);
  static_assert(std::is_same_v<decltype(tl::sum(tl::val<bool>(detail::handle{}))), tl::val<tl::i32>>);
  static_assert(std::is_same_v<decltype(tl::sum(tl::val<tl::u16>(detail::handle{}))), tl::val<tl::u32>>);
  static_assert(std::is_same_v<decltype(tl::sum(tl::val<tl::i64>(detail::handle{}))), tl::val<tl::i64>>);
}

TEST_CASE("traces on several threads, and one inside another") {
  auto trace = [](int n) {
    return trace_kernel("k", [](tl::ptr<float> p, tl::val<tl::i32> m, config c) {
      tl::var acc = 0.0f;
      for (auto i : tl::range(0, m, c.n)) acc += i.to<float>();
      tl::store(p, acc);
    }, config{n}).str();
  };
  const std::string expected[] = {trace(1), trace(2), trace(3), trace(4)};
  std::vector<std::thread> threads;
  std::string got[4];
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 8; ++k) got[i] = trace(i + 1);
    });
  for (auto &t : threads) t.join();
  for (int i = 0; i < 4; ++i) CHECK(got[i] == expected[i]);

  std::string inner;
  const std::string outer = trace_kernel("outer", [&](tl::ptr<float> p) {
    auto x = tl::load(p);
    inner = trace(1);
    tl::store(p, x + 1);
  }).str();
  CHECK(inner == expected[0]);
  CHECK(outer.find("scf.for") == std::string::npos);
}
