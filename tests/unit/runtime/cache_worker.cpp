// A process that uses the cache, for cache_processes_test.cpp: prints how many kernels were compiled; exits 1 where a
// result is wrong.
//
//     cache_worker kernels COUNT SEED   COUNT kernels, two specialisations each, in an order of its own
//     cache_worker value VALUE          one kernel that stores a captured constant
//     cache_worker cpu                  one kernel for the CPU, whose code depends on the processor
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <tessera/tessera.h>

namespace tl = tessera::tl;

namespace {

/// y = 2 x + 1 + which.
auto make_affine(int which) {
  return tl::kernel("affine_" + std::to_string(which),
                    [which](tl::ptr<const float> x, tl::ptr<float> y, tl::val<tl::i32> n) {
                      auto at = tl::program_id(0) * 64 + tl::arange(0, 64);
                      tl::store(y + at, tl::load(x + at, at < n) * 2.0f + (1.0f + float(which)), at < n);
                    });
}

bool run_affine(const tessera::stream &s, int which) {
  constexpr int n = 100;
  alignas(16) float x[n + 1], y[n + 1];
  const auto kernel = make_affine(which);
  bool right = true;
  for (int shift : {0, 1}) { // aligned, and one element further: another specialisation
    for (int i = 0; i <= n; ++i)
      x[i] = float(i), y[i] = -1;
    kernel(s, 2, std::span<const float>(x + shift, n), std::span<float>(y + shift, n), n);
    for (int i = shift; i < n + shift; ++i)
      right &= y[i] == 2 * float(i) + 1 + float(which);
  }
  return right;
}

int report(bool right) {
  const auto counts = tessera::cache_statistics();
  std::printf("compiled %llu disk %llu damaged %llu\n", static_cast<unsigned long long>(counts.compiled),
              static_cast<unsigned long long>(counts.disk_hits), static_cast<unsigned long long>(counts.damaged));
  return right ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) try {
  const std::string command = argc > 1 ? argv[1] : "";
  tessera::stream s(tessera::device::cpu());
  if (command == "kernels" && argc == 4) {
    std::vector<int> order(std::size_t(std::atoi(argv[2])));
    for (int i = 0; i < int(order.size()); ++i)
      order[std::size_t(i)] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937(unsigned(std::atoi(argv[3]))));
    bool right = true;
    for (int which : order)
      right &= run_affine(s, which);
    return report(right);
  }
  if (command == "value" && argc == 3) {
    const int value = std::atoi(argv[2]);
    int out = -1;
    tl::kernel("value", [value](tl::ptr<tl::i32> o) { tl::store(o, value); })(s, 1, &out);
    return report(out == value);
  }
  if (command == "cpu")
    return report(run_affine(s, 0));
  std::fprintf(stderr, "usage: cache_worker kernels COUNT SEED | value VALUE | cpu\n");
  return 2;
} catch (const std::exception &e) {
  std::fprintf(stderr, "cache_worker: %s\n", e.what());
  return 3;
}
