#pragma once
// Finds the fastest of some configurations of a kernel, once for each problem size, and remembers it on disk.
//
//     const auto softmax = tl::autotune(row_softmax, {
//         .arguments = "x y ld rows cols", // the kernel's parameters, which C++ keeps no names of
//         .key = "rows cols",              // tuned anew where these change
//         .candidates = {{{.block = 1024}, {.num_warps = 4}}, {{.block = 1024}, {.num_warps = 8}}}});
//     softmax(stream, grid, x, y, ld, rows, cols); // the first call tunes
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/runtime/bench.h>
#include <tessera/runtime/detail/config_text.h>
#include <tessera/runtime/kernel.h>

namespace tessera {

/// The arguments of the call that is tuned for, by the names given to the tuner.
class TESSERA_API tuning_call {
public:
  /// Throws tessera::error (launch) where there is no integer argument of that name.
  [[nodiscard]] std::int64_t integer(std::string_view name) const;
  /// Any scalar argument as a number.
  [[nodiscard]] double number(std::string_view name) const;
  /// Bytes of the memory passed for a pointer; 0 where only an address was passed.
  [[nodiscard]] std::size_t bytes(std::string_view name) const;
  [[nodiscard]] const tessera::device &device() const noexcept { return device_; }

  tuning_call(const std::vector<std::string> &names, std::span<const param_type> types, const std::uint64_t *values,
              const std::size_t *bytes, const tessera::device &d)
      : names_(names), types_(types), values_(values), bytes_(bytes), device_(d) {}

private:
  std::size_t index(std::string_view name) const;
  const std::vector<std::string> &names_;
  std::span<const param_type> types_;
  const std::uint64_t *values_;
  const std::size_t *bytes_;
  tessera::device device_;
};

/// What became of one candidate.
struct tuning_trial {
  std::string config;      ///< "block=128, stages=3"
  compile_options options; ///< as asked for
  /// Milliseconds of a run; NaN where it was not measured.
  double median_ms = std::numeric_limits<double>::quiet_NaN(), p20_ms = median_ms, p80_ms = median_ms;
  std::string skipped; ///< why it was not measured, or not to the end; empty: it was
  double compile_ms = 0;
  int registers = -1, spills = -1;
  unsigned shared_bytes = 0;
  [[nodiscard]] bool measured() const { return median_ms == median_ms; }
};

/// What a tuner found for one key.
struct tuning_report {
  std::string kernel, target, device;
  std::string key; ///< "m=4096, n=4096"
  std::vector<tuning_trial> trials;
  int best = -1; ///< the winner among `trials`
  double seconds = 0;
  bool from_cache = false; ///< found on disk: measured by an earlier process
  /// All candidates, the fastest first, those skipped with their reasons last.
  [[nodiscard]] TESSERA_API std::string table() const;
  [[nodiscard]] TESSERA_API std::string json() const;
};

namespace tl {

/// A configuration to try.
template <class Config> struct candidate {
  Config config{};
  compile_options options{}; ///< num_warps, num_stages, num_ctas, maxnreg, …
};

/// Every configuration with every set of options.
template <class Config>
std::vector<candidate<Config>> candidates(const std::vector<Config> &configs,
                                          const std::vector<compile_options> &options) {
  std::vector<candidate<Config>> list;
  for (auto &c : configs)
    for (auto &o : options)
      list.push_back({c, o});
  return list;
}

/// What to tune and how. Names are those of `arguments`, separated by spaces or commas.
template <class Config> struct tuning {
  template <class R> using function = std::function<R(const candidate<Config> &, const tuning_call &)>;

  std::string arguments = {}; ///< a name for every parameter of the kernel, in order
  std::string key = {};       ///< scalar arguments whose values decide; others may differ between calls
  std::vector<candidate<Config>> candidates = {};

  /// Arguments that a kernel adds to: zero before every trial run, and before the first real one for a key, whether
  /// that tuned or found an earlier result.
  std::string reset_to_zero = {};
  /// Arguments that a kernel reads and writes: trial runs leave them as they were.
  std::string restore_value = {};

  /// Changes a candidate by the call's arguments, in calls after tuning too:
  /// `c.config.even = call.integer("k") % 64 == 0`.
  std::function<void(candidate<Config> &, const tuning_call &)> heuristics = {};
  /// Why not to try a candidate; empty: try it.
  function<std::string> skip = {};
  /// How long a run may take, in any unit: only the `model_keeps` best are tried.
  function<double> model = {};
  int model_keeps = 10;
  /// Around every trial run, not timed. What they throw ends the tuning, with memory as it was before; they must not
  /// call the kernel being tuned for the same key.
  function<void> before_run = {}, after_run = {};

  double warmup_ms = 5, measure_ms = 40; ///< of each candidate
  double give_up = 2; ///< a candidate whose first runs take so many times the best is not measured further; 0: all are
  int compile_threads = 0; ///< 0: one for every processor
  bool progress = true;    ///< a bar on the standard error where that is a terminal, else two lines
};

template <class F> class autotuned;

} // namespace tl

namespace detail {

/// A candidate without its type, for one call.
struct tuning_candidate {
  std::string config, skip;
  double model = 0;
  kernel_variant *variant = nullptr;
  grid programs;
  std::function<void()> before, after;
};

/// The part of a tuner that knows no types.
class TESSERA_API tuner {
public:
  struct settings {
    std::string arguments, key, reset_to_zero, restore_value;
    bool has_model = false;
    int model_keeps = 0;
    double warmup_ms = 0, measure_ms = 0, give_up = 0;
    int compile_threads = 0;
    bool progress = true;
  };
  struct call {
    const stream &s;
    const launch_args &args;
    const std::size_t *bytes;
    launch_site where;
    const launch_options *how; ///< of the kernel; trial runs are launched so, too
  };
  struct choice {
    int best;
    kernel_variant *variant; ///< of the winner, before heuristics of later calls
    tuning_report report;
  };
  /// Throws tessera::error (launch) for names that are wrong.
  tuner(const kernel_core &core, std::span<const param_type> types, settings s);
  ~tuner();

  /// What was found for the call's key, or nullptr. Takes no lock and allocates nothing.
  const choice *find(const stream &s, const std::uint64_t *values) const noexcept;
  /// Tunes, or waits for the thread that does. Leaves memory as `reset_to_zero` and `restore_value` say.
  const choice &tune(const call &c, const std::function<std::vector<tuning_candidate>()> &make) const;
  [[nodiscard]] tuning_call describe(const call &c) const;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// Bytes of memory behind an argument; 0: not known.
template <class A> std::size_t argument_bytes(const A &a) {
  using X = std::remove_cvref_t<A>;
  auto of_tensor = [](const dlpack_view &t) {
    std::size_t n = std::size_t(t.bits) * std::size_t(t.lanes) / 8;
    for (int i = 0; i < t.ndim; ++i)
      n *= std::size_t(t.shape[i]);
    return n;
  };
  if constexpr (buffer_like<X>)
    return a.size_bytes();
  else if constexpr (dlpack_tensor<X>)
    return of_tensor(view_of(a));
  else if constexpr (dlpack_managed<X>)
    return of_tensor(view_of(a.dl_tensor));
  else if constexpr (contiguous_host_range<X>)
    return std::ranges::size(a) * sizeof(*std::ranges::data(a));
  else
    return 0;
}

} // namespace detail

namespace tl {

/// A kernel that chooses its configuration by the call's arguments. Copies share what was found; calls are thread-safe,
/// and for one key only one of them tunes.
template <class F> class autotuned {
  using signature = kernel_signature<F>;
  using core = tessera::detail::tuner;

public:
  using config = typename kernel<F>::config;

  autotuned(kernel<F> k, tuning<config> t) : state_(std::make_shared<state>(std::move(k), std::move(t))) {}

  [[nodiscard]] const std::string &name() const noexcept { return state_->base.name(); }

  /// Launches the best configuration, after finding it where the key is new. Throws tessera::error (launch) with every
  /// reason where no candidate can run.
  template <class... A> void operator()(const stream &s, tessera::detail::launch_grid<config> g, A &&...args) const {
    prepared<A...> p(*this, s, g, args...);
    const core::choice &c = choose(p);
    auto &variant = state_->options.heuristics ? adapted(c.best, p) : *c.variant;
    state_->base.model_->launch(variant, s, g.resolve(kernel<F>::model::config_of(variant)), p.packed.args, g.site(),
                                &state_->base.how_);
  }
  /// The kernel with the best configuration for such a call.
  template <class... A> kernel<F> best(const stream &s, tessera::detail::launch_grid<config> g, A &&...args) const {
    prepared<A...> p(*this, s, g, args...);
    const candidate<config> c = with_heuristics(choose(p).best, p);
    return state_->base.with(c.config, c.options);
  }
  /// Everything that was tried for such a call.
  template <class... A> tuning_report tune(const stream &s, tessera::detail::launch_grid<config> g, A &&...args) const {
    prepared<A...> p(*this, s, g, args...);
    return choose(p).report;
  }

private:
  struct state {
    state(kernel<F> k, tuning<config> t)
        : base(std::move(k)), options(std::move(t)),
          tuner(*base.model_, signature::types,
                {options.arguments, options.key, options.reset_to_zero, options.restore_value, bool(options.model),
                 options.model_keeps, options.warmup_ms, options.measure_ms, options.give_up, options.compile_threads,
                 options.progress}) {}
    kernel<F> base;
    tuning<config> options;
    core tuner;
  };

  template <class... A> struct prepared {
    prepared(const autotuned &t, const stream &s, const tessera::detail::launch_grid<config> &g, A &...args)
        : grid(g),
          packed(t.state_->base.pack(s, g.site(), values, args...)), bytes{tessera::detail::argument_bytes(args)..., 0},
          call{s, packed.args, bytes, g.site(), &t.state_->base.how_} {}
    std::uint64_t values[signature::count + 1];
    const tessera::detail::launch_grid<config> &grid;
    tessera::detail::packer<signature> packed;
    std::size_t bytes[sizeof...(A) + 1];
    core::call call;
  };

  template <class P> const core::choice &choose(P &p) const {
    if (auto *c = state_->tuner.find(p.call.s, p.values)) [[likely]]
      return *c;
    return state_->tuner.tune(p.call, [&] {
      const tuning_call call = state_->tuner.describe(p.call);
      const tuning<config> &t = state_->options;
      std::vector<tessera::detail::tuning_candidate> list;
      for (std::size_t i = 0; i < t.candidates.size(); ++i) {
        const candidate<config> c = with_heuristics(int(i), p);
        tessera::detail::tuning_candidate out;
        out.config = tessera::detail::config_text(c.config);
        out.variant = &variant(c);
        out.skip = t.skip ? t.skip(c, call) : std::string();
        if (out.skip.empty() && t.model)
          if (out.model = t.model(c, call); std::isnan(out.model)) // has no place in an order
            out.model = std::numeric_limits<double>::infinity();
        out.programs = p.grid.resolve(kernel<F>::model::config_of(*out.variant));
        if (t.before_run)
          out.before = [&t, c, call] { t.before_run(c, call); };
        if (t.after_run)
          out.after = [&t, c, call] { t.after_run(c, call); };
        list.push_back(std::move(out));
      }
      return list;
    });
  }
  template <class P> candidate<config> with_heuristics(int index, P &p) const {
    candidate<config> c = state_->options.candidates[std::size_t(index)];
    if (state_->options.heuristics)
      state_->options.heuristics(c, state_->tuner.describe(p.call));
    return c;
  }
  tessera::detail::kernel_variant &variant(const candidate<config> &c) const {
    return state_->base.model_->variant(tessera::detail::config_hash(c.config), &c.config, c.options);
  }
  template <class P> tessera::detail::kernel_variant &adapted(int index, P &p) const {
    return variant(with_heuristics(index, p));
  }

  std::shared_ptr<state> state_;
};

/// Makes a kernel choose among candidates.
template <class F> autotuned<F> autotune(const kernel<F> &k, tuning<typename kernel<F>::config> t) {
  return {k, std::move(t)};
}

} // namespace tl
} // namespace tessera
