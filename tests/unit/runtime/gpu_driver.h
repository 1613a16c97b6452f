#pragma once
// GPU devices against fake drivers. gpu_driver.cpp is one list of tests for both vendors; it is part of both programs, each of
// which says here what differs. Below it, what their own tests use too.
#include "messages.h"

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <tessera/tessera.h>

#include "fake_gpu.h"

namespace tl = tessera::tl;
using namespace tessera;

struct gpu_vendor {
  fake_gpu::driver &(*fake)();
  device (*gpu)(int); ///< of the fake's devices, 0 and 1
  const char *place;  ///< of device 0: "cuda:0"
  const char *name, *target;
  const char *launch, *load, *look_up, *wait;                         ///< entry points
  const char *out_of_memory, *out_of_resources, *illegal_address;     ///< what results 2, 701 and 700 are called
  const char *device_memory;                                          ///< how memory of this kind is called
  std::map<std::string, int> warm_calls; ///< of a warm launch on a thread that has used nothing, at the most
};
/// Of the program that is linked.
const gpu_vendor &vendor();

inline fake_gpu::driver &fake() { return vendor().fake(); }
inline device gpu(int number) { return vendor().gpu(number); }

struct copy_config {
  int block = 256;
};
inline auto make_copy(const char *name = "copy") {
  return tl::kernel(name, [](tl::ptr<const float> x, tl::ptr<float> y, tl::val<tl::i32> n, copy_config c) {
    auto at = tl::program_id(0) * c.block + tl::arange(0, c.block);
    tl::store(y + at, tl::load(x + at, at < n), at < n);
  });
}

/// The bytes of a parameter as a T.
template <class T> T value(const std::vector<unsigned char> &bytes) {
  REQUIRE(bytes.size() == sizeof(T));
  T v;
  std::memcpy(&v, bytes.data(), sizeof v);
  return v;
}

/// A fake driver that nothing was asked of; at the end of the test it must have refused nothing.
struct clean {
  clean() { fake().reset(); }
  ~clean() {
    if (!refusals_expected)
      CHECK(fake().refusals() == std::vector<std::string>());
    fake().reset();
  }
  bool refusals_expected = false;
};
