// Runs the suite on one target: tessera-e2e --target=cpu [--also-compile=cuda:sm_90a] [doctest options, such as
// -ts=reduce].
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <optional>

#include "harness.h"

namespace {
std::optional<tessera::device> device;
std::optional<tessera::target> second;
} // namespace

const tessera::device &e2e::dev() { return *device; }
const std::optional<tessera::target> &e2e::also_compile() { return second; }
const tessera::stream &e2e::on() {
  static const auto stream = tessera::stream::default_of(*device);
  return stream;
}

int main(int argc, char **argv) {
  std::string target = "cpu";
  try {
    for (int i = 1; i < argc; ++i)
      if (const std::string_view arg = argv[i]; arg.starts_with("--target="))
        target = arg.substr(9);
      else if (arg.starts_with("--also-compile="))
        second = tessera::parse_target(arg.substr(15));
    device = tessera::device::open(target);
  } catch (const tessera::error &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return target.starts_with("cuda") ? 77 : 2; // no GPU here: skipped
  }
  std::printf("device: %s (%s)\n", device->name().c_str(), device->target().str().c_str());
  return doctest::Context(argc, argv).run();
}
