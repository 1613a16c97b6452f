// Runs the suite on one target: tessera-e2e --target=cpu [--also-compile=cuda:sm_90a] [--exhaustive] [--random=500]
// [--shard=I/N] [doctest options, such as -ts=reduce].
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "harness.h"

namespace {
std::optional<tessera::device> device;
std::optional<tessera::target> second;
bool every_combination = false;
int products = 0, shard = 0, shards = 1;
} // namespace

const tessera::device &e2e::dev() { return *device; }
const std::optional<tessera::target> &e2e::also_compile() { return second; }
bool e2e::exhaustive() { return every_combination; }
int e2e::random_products() { return products; }
bool e2e::mine() {
  static int count = 0;
  return count++ % shards == shard;
}
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
      else if (arg == "--exhaustive")
        every_combination = true;
      else if (arg.starts_with("--random="))
        products = std::atoi(argv[i] + 9);
      else if (arg.starts_with("--shard=") &&
               (std::sscanf(argv[i] + 8, "%d/%d", &shard, &shards) != 2 || shard < 0 || shard >= shards)) {
        std::fprintf(stderr, "--shard=I/N: I counts from 0 to N - 1\n"); // no shard is empty, and passes, by mistake
        return 2;
      }
    device = tessera::device::open(target);
  } catch (const tessera::error &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return target.starts_with("cuda") || target.starts_with("hip") ? 77 : 2; // no GPU here: skipped
  }
  std::printf("device: %s (%s)\n", device->name().c_str(), device->target().str().c_str());
  return doctest::Context(argc, argv).run();
}
