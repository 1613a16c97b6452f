// How launch arguments become bytes and specialisation bits, and what is refused.
#include "messages.h"

#include <array>
#include <cstring>
#include <span>

#include <doctest/doctest.h>

#include <tessera/tessera.h>

namespace tl = tessera::tl;
using namespace tessera;

namespace {

struct core_without_code final : detail::kernel_core {
  explicit core_without_code(std::span<const param_type> params) : kernel_core("k", params, {}) {}
  ir_module trace(const std::string &, const void *, std::span<const param_spec>) const override { throw std::logic_error("not traced"); }
};

template <std::size_t N> struct packed {
  std::array<std::uint64_t, N> values{};
  specialization spec;
  std::uint64_t unchecked = 0;
  template <class T> T get(std::size_t i) const {
    T v;
    std::memcpy(&v, &values[i], sizeof v);
    return v;
  }
};

/// Packs arguments for a kernel with the parameters of `f`.
template <class F, class... A> auto pack(F, A &&...args) {
  using signature = kernel_signature<F>;
  static_assert(sizeof...(A) == signature::count);
  core_without_code core(signature::types);
  stream s = stream::default_of(device::cpu());
  packed<sizeof...(A)> out;
  detail::packer<signature> p{core, s, {"f.cpp", 7}, {out.values.data(), {}, 0}};
  [&]<std::size_t... I>(std::index_sequence<I...>) { (p.template put<I>(args), ...); }
  (std::index_sequence_for<A...>{});
  out.spec = p.args.spec;
  out.unchecked = p.args.unchecked;
  return out;
}


} // namespace

TEST_SUITE("runtime.packing") {

  TEST_CASE("scalars take as many bytes as their type has") {
    auto p = pack([](tl::val<tl::i8>, tl::val<tl::f16>, tl::val<double>, tl::val<tl::bf16>, tl::val<tl::i64>,
                     tl::val<float>, tl::val<bool>) {},
                  tl::i8(-3), 42.0f, 0.1, 1.5f, -5000000000, 0.1f, true);
    CHECK(p.get<std::int8_t>(0) == -3);
    CHECK(p.values[0] == 0xfd); // nothing above the value's bytes
    CHECK(p.values[1] == 0x5140);
    CHECK(p.get<double>(2) == 0.1);
    CHECK(p.values[3] == 0x3fc0);
    CHECK(p.get<std::int64_t>(4) == -5000000000);
    CHECK(p.get<float>(5) == 0.1f);
    CHECK(p.values[6] == 1);
  }

  TEST_CASE("integers and pointers are specialised on 16 and 1, others on nothing") {
    alignas(16) float data[8];
    auto f = [](tl::ptr<float>, tl::val<tl::i32>, tl::val<float>, tl::val<bool>, tl::val<tl::u64>) {};
    auto p = pack(f, data, 1, 1.0f, true, 32u);
    CHECK(p.spec.divisible_by_16 == 0b10001);
    CHECK(p.spec.equal_to_1 == 0b00010);
    CHECK(p.unchecked == 1); // a plain pointer
    p = pack(f, data + 1, -16, 16.0f, false, 1u);
    CHECK(p.spec.divisible_by_16 == 0b00010);
    CHECK(p.spec.equal_to_1 == 0b10000);
    p = pack(f, nullptr, 0, 0.0f, false, 17u);
    CHECK(p.spec.divisible_by_16 == 0b00011);
    CHECK(p.spec.equal_to_1 == 0);
    CHECK(p.unchecked == 0);
  }

  TEST_CASE("an integer must fit its parameter") {
    auto f = [](tl::val<tl::i32>) {};
    CHECK(pack(f, std::size_t(1) << 30).get<int>(0) == 1 << 30);
    auto text = message_of([&] { pack(f, std::size_t(1) << 31); });
    CHECK(contains(text, "f.cpp:7"));
    CHECK(contains(text, "argument 1 of kernel 'k' is 2147483648, which its type in the kernel, i32, cannot hold"));
    CHECK(contains(message_of([] { pack([](tl::val<tl::u8>) {}, -1); }), "cannot hold"));
  }

  TEST_CASE("everything that holds an address is taken") {
    auto cpu = device::cpu();
    device_buffer<float> buffer(cpu, 64);
    const auto &readable = buffer;
    std::vector<float> host(64);
    auto f = [](tl::ptr<const float>) {};
    auto address = [](const void *p) { return reinterpret_cast<std::uint64_t>(p); };
    CHECK(pack(f, buffer).values[0] == address(buffer.data()));
    CHECK(pack(f, readable).values[0] == address(buffer.data()));
    CHECK(pack(f, buffer.slice(3)).values[0] == address(buffer.data() + 3));
    CHECK(pack(f, buffer.slice(3)).spec.divisible_by_16 == 0);
    CHECK(pack(f, buffer.slice(4, 2)).spec.divisible_by_16 == 1);
    CHECK(pack(f, buffer).spec.below_2g == 1);
    CHECK(pack(f, readable).spec.below_2g == 1);
    CHECK(pack(f, buffer.slice(0)).spec.below_2g == 0); // there may be more around it
    CHECK(pack(f, host).spec.below_2g == 0);
    CHECK(pack(f, host.data()).values[0] == address(host.data()));
    CHECK(pack(f, std::span<const float>(host)).values[0] == address(host.data()));
    CHECK(pack(f, host).values[0] == address(host.data()));
    CHECK(pack(f, std::span<float>()).values[0] == 0); // empty: nothing will be read
    CHECK(contains(message_of([&] { pack(f, static_cast<float *>(nullptr)); }),
                   "argument 1 of kernel 'k' is a null pointer"));
    device_buffer<float> empty(cpu, 0);
    CHECK(empty.data() != nullptr);
    CHECK(empty.size() == 0);
  }
}
