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
    cache.emplace(s.device(), std::max<std::size_t>(2 * s.device().properties().l2_bytes,
                                                    s.device().is_cpu() ? 32 << 20 : 256 << 20));
  auto flush = [&] { // and what the user does before a run
    if (o.setup)
      o.setup();
    if (cache)
      cache->fill(0, s);
  };
  auto run_once = [&] {
    if (o.setup)
      o.setup();
    work();
    s.synchronize();
    if (o.finish)
      o.finish();
  };

  // The first run may compile; the next ones say how many fit into the time. What comes between runs may take longer
  // than they do (a large cache takes long to overwrite), but not many times as long in all.
  run_once();
  double of_runs = 0, in_all = 0;
  int tries = 0;
  do {
    const auto start = clock::now();
    flush();
    s.synchronize();
    const auto flushed = clock::now();
    work();
    s.synchronize();
    of_runs += ms_since(flushed);
    if (o.finish)
      o.finish();
    in_all += ms_since(start);
  } while (++tries < 5 && in_all < o.measure_ms);

  const auto began_warmup = clock::now();
  while (ms_since(began_warmup) < o.warmup_ms)
    run_once();

  const double fitting =
      std::min(o.measure_ms / std::max(of_runs / tries, 1e-3), 5 * o.measure_ms / std::max(in_all / tries, 1e-3));
  const int most = std::max(o.max_runs, 1);
  const int runs = std::clamp(int(fitting > 0 ? std::min(fitting, 1e6) : 1.0), std::clamp(o.min_runs, 1, most), most);
  std::vector<double> times;
  if (s.device().is_cpu()) {
    for (int i = 0; i < runs; ++i) {
      flush();
      const auto start = clock::now();
      work();
      times.push_back(ms_since(start));
      if (o.finish)
        o.finish();
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
      if (o.finish)
        o.finish();
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
