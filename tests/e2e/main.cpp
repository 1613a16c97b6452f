// Runs the suite on one target: e2e --target=cpu [doctest options, such as -ts=reduce].
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <optional>

#include "harness.h"

namespace {
std::optional<tessera::device> device;
}

const tessera::device &e2e::dev() { return *device; }
const tessera::stream &e2e::on() {
  static const auto stream = tessera::stream::default_of(*device);
  return stream;
}

int main(int argc, char **argv) {
  std::string target = "cpu";
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]).starts_with("--target="))
      target = argv[i] + 9;
  try {
    device = tessera::device::open(target);
  } catch (const tessera::error &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 77; // no such device here: skipped
  }
  std::printf("device: %s (%s)\n", device->name().c_str(), device->target().str().c_str());
  return doctest::Context(argc, argv).run();
}
