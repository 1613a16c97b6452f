// Timing of launches.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>

#include <tessera/error.h>
#include <tessera/runtime/bench.h>
#include <tessera/runtime/buffer.h>
#include <tessera/runtime/event.h>

namespace tessera {

double quantile(std::vector<double> samples, double q) {
  if (samples.empty())
    return 0;
  std::ranges::sort(samples);
  const double at = std::clamp(q, 0.0, 1.0) * double(samples.size() - 1);
  const auto low = std::size_t(at), high = std::min(low + 1, samples.size() - 1);
  return samples[low] + (samples[high] - samples[low]) * (at - double(low));
}

bench_result bench(const stream &s, const std::function<void()> &work, const bench_options &o) {
  using clock = std::chrono::steady_clock;
  auto ms_since = [](clock::time_point t) {
    return std::chrono::duration<double, std::milli>(clock::now() - t).count();
  };

  std::optional<device_buffer<unsigned char>> cache;
  if (o.flush_cache)
    // On a GPU as much as triton.testing.do_bench writes, so that both measure from the same state of the cache.
    cache.emplace(s.device(), std::max<std::size_t>(2 * s.device().properties().l2_bytes, s.device().is_cpu() ? 32 << 20 : 256 << 20));
  auto flush = [&] {
    if (cache)
      cache->fill(0, s);
  };

  // The first run may compile; the next ones say how many fit into the time.
  work();
  s.synchronize();
  auto began = clock::now();
  for (int i = 0; i < 5; ++i)
    work();
  s.synchronize();
  const double estimate = std::max(ms_since(began) / 5, 1e-3);

  began = clock::now();
  while (ms_since(began) < o.warmup_ms) {
    work();
    s.synchronize();
  }

  const int runs =
      std::clamp(int(std::min(o.measure_ms / estimate, 1e6)), std::max(o.min_runs, 1), std::max(o.max_runs, 1));
  std::vector<double> times;
  if (s.device().is_cpu()) {
    for (int i = 0; i < runs; ++i) {
      flush();
      began = clock::now();
      work();
      times.push_back(ms_since(began));
    }
  } else {
    // Give the device all runs at once, or the host's pauses would be measured.
    std::vector<event> starts, stops;
    for (int i = 0; i < runs; ++i)
      starts.emplace_back(s.device()), stops.emplace_back(s.device());
    for (int i = 0; i < runs; ++i) {
      flush();
      starts[i].record(s);
      work();
      stops[i].record(s);
    }
    s.synchronize();
    for (int i = 0; i < runs; ++i)
      times.push_back(stops[i].elapsed_ms(starts[i]));
  }

  bench_result r;
  r.runs = runs;
  r.median = quantile(times, 0.5), r.p20 = quantile(times, 0.2), r.p80 = quantile(times, 0.8);
  r.min = std::ranges::min(times), r.max = std::ranges::max(times);
  r.mean = std::accumulate(times.begin(), times.end(), 0.0) / runs;
  return r;
}

} // namespace tessera
