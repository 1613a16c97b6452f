// The part of the autotuner without types: which key, who tunes, trials, and who else has tuned.
#include <tessera/runtime/autotune.h>

#include "cache/kernel_cache.h"
#include "device_impl.h"
#include "publish_table.h"
#include "tuning_report.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <tessera/error.h>
#include <tessera/runtime/cpu_executor.h>

namespace tessera {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> parts;
  constexpr std::string_view separators = " ,\n\t";
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(separators), text.size());
    if (end)
      parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

} // namespace

// ---- calls
// --------------------------------------------------------------------------------------------------------------

std::size_t tuning_call::index(std::string_view name) const {
  const auto at = std::ranges::find(names_, name);
  if (at == names_.end())
    throw error(stage::launch,
                fmt::format("the tuned kernel has no argument '{}'; it has {}", name, fmt::join(names_, ", ")));
  return std::size_t(at - names_.begin());
}

double tuning_call::number(std::string_view name) const {
  const std::size_t i = index(name);
  if (types_[i].pointer)
    throw error(stage::launch, fmt::format("argument '{}' of the tuned kernel is a pointer, not a number", name));
  const std::uint64_t bits = values_[i];
  auto as = [&]<class T>(T v) {
    std::memcpy(&v, &bits, sizeof v);
    return double(v);
  };
  switch (types_[i].element) {
  case dtype::f64: return as(double());
  case dtype::f32: return as(float());
  case dtype::f16: return double(float(std::bit_cast<half>(std::uint16_t(bits))));
  case dtype::bf16: return double(float(std::bit_cast<bfloat16>(std::uint16_t(bits))));
  case dtype::f8e4m3: return double(float(std::bit_cast<float8_e4m3>(std::uint8_t(bits))));
  case dtype::f8e5m2: return double(float(std::bit_cast<float8_e5m2>(std::uint8_t(bits))));
  case dtype::f8e4m3fnuz: return double(float(std::bit_cast<float8_e4m3fnuz>(std::uint8_t(bits))));
  case dtype::f8e5m2fnuz: return double(float(std::bit_cast<float8_e5m2fnuz>(std::uint8_t(bits))));
  default: return is_integer(types_[i].element) ? double(integer(name)) : double(bits & 0xff);
  }
}

std::int64_t tuning_call::integer(std::string_view name) const {
  const std::size_t i = index(name);
  const dtype t = types_[i].element;
  if (types_[i].pointer || !(is_integer(t) || t == dtype::i1))
    throw error(stage::launch, fmt::format("argument '{}' of the tuned kernel is not an integer", name));
  const int unused_bits = 64 - 8 * int(size_of(t));
  const std::uint64_t high = values_[i] << unused_bits;
  return is_signed(t) ? std::int64_t(high) >> unused_bits : std::int64_t(high >> unused_bits);
}

std::size_t tuning_call::bytes(std::string_view name) const { return bytes_[index(name)]; }

// ---- tuner ----------------------------------------------------------------------------------------------------------

namespace detail {

struct tuner::impl {
  const kernel_core &core;
  std::vector<param_type> types;
  settings set;
  std::vector<std::string> names;
  std::vector<std::size_t> key, zeroed, restored; ///< indices of arguments

  /// Found for one device and key. Immutable once published.
  struct entry {
    const device_impl *device;
    std::vector<std::uint64_t> key;
    choice found;
  };
  publish_table<entry> found; // read without a lock
  std::mutex lock;            // guards what follows, and insertion into `found`
  std::vector<std::unique_ptr<entry>> owned;
  /// Held by the thread that tunes for a key; recursive, so that one that comes back from a hook is told so.
  struct place {
    std::recursive_mutex lock;
    bool taken = false;
  };
  std::map<std::pair<const device_impl *, std::vector<std::uint64_t>>, std::unique_ptr<place>> at_work;

  impl(const kernel_core &core, std::span<const param_type> types, settings s)
      : core(core), types(types.begin(), types.end()), set(std::move(s)), names(words(set.arguments)) {
    auto refuse = [&](std::string message) {
      throw error(stage::launch, fmt::format("autotune of kernel '{}': {}", core.name(), message));
    };
    if (names.size() != types.size())
      refuse(fmt::format("{} arguments are named, the kernel takes {}", names.size(), types.size()));
    for (std::size_t i = 0; i < names.size(); ++i)
      if (std::find(names.begin(), names.begin() + std::ptrdiff_t(i), names[i]) != names.begin() + std::ptrdiff_t(i))
        refuse(fmt::format("two arguments are named '{}'", names[i]));
    auto indices = [&](const std::string &list, bool pointers, const char *what) {
      std::vector<std::size_t> all;
      for (auto &name : words(list)) {
        const auto at = std::ranges::find(names, name);
        if (at == names.end())
          refuse(fmt::format("'{}' in {} is none of the arguments {}", name, what, fmt::join(names, ", ")));
        const std::size_t i = std::size_t(at - names.begin());
        if (types[i].pointer != pointers)
          refuse(fmt::format("'{}' in {} is {}", name, what,
                             pointers ? "no pointer" : "a pointer: a key is made of numbers"));
        if (pointers && types[i].is_const)
          refuse(fmt::format("'{}' in {} is never written by the kernel", name, what));
        all.push_back(i);
      }
      return all;
    };
    key = indices(set.key, false, "key");
    zeroed = indices(set.reset_to_zero, true, "reset_to_zero");
    restored = indices(set.restore_value, true, "restore_value");
  }

  std::uint64_t hash(const device_impl *d, const std::uint64_t *values) const noexcept {
    std::uint64_t h = mix(reinterpret_cast<std::uintptr_t>(d));
    for (std::size_t i : key)
      h = mix(h ^ values[i]);
    return h;
  }
  const entry *find(const device_impl *d, const std::uint64_t *values) const noexcept {
    return found.find(hash(d, values), [&](const entry &e) {
      if (e.device != d)
        return false;
      for (std::size_t k = 0; k < key.size(); ++k)
        if (e.key[k] != values[key[k]])
          return false;
      return true;
    });
  }

  tuning_report describe(const call &c, const std::vector<tuning_candidate> &candidates) const;
  cache_key disk_key(const call &c, const tuning_report &r, const std::vector<tuning_candidate> &candidates) const;
  /// Finds the fastest of the candidates; throws where none can run.
  void search(const call &c, tuning_report &r, const std::vector<tuning_candidate> &candidates,
              std::chrono::steady_clock::time_point began) const;
  void prune(tuning_report &r, const std::vector<tuning_candidate> &candidates) const;
  void compile(const call &c, tuning_report &r, const std::vector<tuning_candidate> &candidates,
               tuning_progress &p) const;
  void measure(const call &c, tuning_report &r, const std::vector<tuning_candidate> &candidates,
               tuning_progress &p) const;
};

namespace {

/// One thread measures at a time on a device; the CPU and all that it emulates are one device. Recursive: a hook may
/// call another kernel that is tuned.
std::recursive_mutex &measuring(const device_impl &d) {
  static std::mutex lock;
  static auto *mutexes = new std::map<int, std::recursive_mutex>;
  std::lock_guard guard(lock);
  return (*mutexes)[d.memory_space];
}

/// Copies of what trial runs change. Afterwards memory is as before them, and zero where it is to be reset.
class keeper {
public:
  keeper(const tuner::call &c, const std::vector<std::string> &names, const std::vector<std::size_t> &zeroed,
         const std::vector<std::size_t> &restored)
      : call_(c) {
    auto part = [&](std::size_t i, bool keep) {
      void *at = reinterpret_cast<void *>(c.args.values[i]);
      if (!at)
        return;
      if (!c.bytes[i])
        throw error(
            stage::launch,
            fmt::format("autotune cannot {} argument '{}': it was passed as a plain address, of which the size is not "
                        "known; pass a device_buffer, a slice or a std::span",
                        keep ? "restore" : "reset", names[i]),
            {c.where.file, c.where.line, 0});
      parts_.push_back({at, c.bytes[i], {}});
      if (keep) {
        parts_.back().copy.emplace(c.s.device(), c.bytes[i]);
        c.s.impl().copy_within(parts_.back().copy->data_, at, c.bytes[i], c.s.native());
      }
    };
    for (std::size_t i : zeroed)
      part(i, false);
    for (std::size_t i : restored)
      part(i, true);
  }
  keeper(const keeper &) = delete;
  void finish() {
    if (!parts_.empty()) {
      restore();
      call_.s.synchronize(); // before the copies go
    }
    finished_ = true;
  }
  /// Where a hook throws, too. A device that is lost restores nothing, which is what was thrown then.
  ~keeper() {
    if (!finished_)
      try {
        finish();
      } catch (const error &) {
      }
  }
  /// Everything as before the first run, after the work given to the stream so far.
  void restore() const {
    const unsigned char zero = 0;
    for (auto &p : parts_)
      if (p.copy)
        call_.s.impl().copy_within(p.at, p.copy->data_, p.bytes, call_.s.native());
      else
        call_.s.impl().fill(p.at, &zero, 1, p.bytes, call_.s.native());
  }

private:
  struct part {
    void *at;
    std::size_t bytes;
    std::optional<raw_buffer> copy;
  };
  const tuner::call &call_;
  std::vector<part> parts_;
  bool finished_ = false;
};

} // namespace

tuning_report tuner::impl::describe(const call &c, const std::vector<tuning_candidate> &candidates) const {
  tuning_report r;
  r.kernel = core.name(), r.target = c.s.device().target().str(), r.device = c.s.device().name();
  const tuning_call values(names, types, c.args.values, c.bytes, c.s.device());
  for (std::size_t i : key) {
    const bool integer = is_integer(types[i].element);
    r.key += fmt::format("{}{}=", r.key.empty() ? "" : ", ", names[i]) +
             (integer ? fmt::format("{}", values.integer(names[i])) : fmt::format("{}", values.number(names[i])));
  }
  for (auto &k : candidates) {
    tuning_trial t;
    t.config = k.config, t.options = kernel_core::options_of(*k.variant), t.skipped = k.skip;
    r.trials.push_back(std::move(t));
  }
  return r;
}

cache_key tuner::impl::disk_key(const call &c, const tuning_report &r,
                                const std::vector<tuning_candidate> &candidates) const {
  auto &p = c.s.device().properties();
  std::string text =
      fmt::format("tuning: {}\ntarget: {}\noptions: {}\ndevice: {}, {} multiprocessors, driver {}\ntypes:", r.kernel,
                  r.target, r.key, r.device, p.multiprocessors, p.driver_version);
  for (auto &t : types)
    text += fmt::format(" {}{}", t.pointer ? "*" : "", tessera::name(t.element));
  text += "\n\n";
  // The code of every candidate is part of the key: another body of the kernel is another problem.
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    auto &k = candidates[i];
    std::string code;
    if (k.skip.empty())
      try {
        code = core.fingerprint(*k.variant, c.s.device(), c.args.spec);
      } catch (...) { // it will be skipped for that
      }
    text += fmt::format("{} | {} | {} | {} | {}\n", text_of(r.trials[i]), code, k.skip, k.model, i);
  }
  return cache_key("tuning", std::move(text));
}

void tuner::impl::prune(tuning_report &r, const std::vector<tuning_candidate> &candidates) const {
  if (!set.has_model)
    return;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (r.trials[i].skipped.empty())
      order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return candidates[i].model; });
  for (std::size_t rank = std::size_t(std::max(set.model_keeps, 1)); rank < order.size(); ++rank)
    r.trials[order[rank]].skipped =
        fmt::format("the model expects {:.4g}, and {} candidates to be faster", candidates[order[rank]].model, rank);
}

/// The tuner whose candidates this thread compiles.
static thread_local const void *compiling_for = nullptr;

void tuner::impl::compile(const call &c, tuning_report &r, const std::vector<tuning_candidate> &candidates,
                          tuning_progress &p) const {
  std::vector<std::size_t> todo;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (r.trials[i].skipped.empty())
      todo.push_back(i);
  std::atomic<std::size_t> next = 0, done = 0;
  std::mutex showing;
  auto work = [&] {
    struct marked {
      const void *outer;
      ~marked() { compiling_for = outer; }
    } marked{std::exchange(compiling_for, this)};
    for (std::size_t n; (n = next++) < todo.size();) {
      tuning_trial &t = r.trials[todo[n]];
      try {
        const kernel_handle h = core.prepare(*candidates[todo[n]].variant, c.s.device(), c.args.spec);
        for (auto &time : h.times())
          t.compile_ms += time.milliseconds;
        t.registers = h.registers(), t.spills = h.spills(), t.shared_bytes = h.shared_bytes();
      } catch (const error &e) {
        t.skipped = fmt::format("{} error: {}", name(e.stage()), e.message());
      } catch (const std::exception &e) { // of the kernel's lambda
        t.skipped = fmt::format("its lambda throws: {}", e.what());
      } catch (...) {
        t.skipped = "its lambda throws";
      }
      std::lock_guard guard(showing);
      p.step("compiling", ++done, todo.size());
    }
  };
  const unsigned threads = set.compile_threads > 0 ? unsigned(set.compile_threads) : cpu_threads();
  std::vector<std::jthread> helpers;
  for (std::size_t t = 1; t < std::min<std::size_t>(threads, todo.size()); ++t)
    try {
      helpers.emplace_back(work);
    } catch (const std::system_error &) { // no more threads: those there are do it
      break;
    }
  work();
}

void tuner::impl::measure(const call &c, tuning_report &r, const std::vector<tuning_candidate> &candidates,
                          tuning_progress &p) const {
  std::lock_guard alone(measuring(c.s.impl()));
  keeper kept(c, names, zeroed, restored);
  bool in_hook = false;
  auto call_hook = [&](const std::function<void()> &hook) {
    if (!hook)
      return;
    in_hook = true;
    hook();
    in_hook = false;
  };
  std::vector<std::uint64_t> values(types.size() + 1);
  auto time = [&](std::size_t i, const bench_options &o) {
    auto &k = candidates[i];
    bench_options with_setup = o;
    with_setup.setup = [&] {
      kept.restore();
      call_hook(k.before);
    };
    with_setup.finish = [&] { call_hook(k.after); };
    return bench(
        c.s,
        [&] {
          std::copy_n(c.args.values, types.size(), values.begin()); // a launch may translate addresses
          launch_args args = c.args;
          args.values = values.data();
          core.launch(*k.variant, c.s, k.programs, args, c.where, c.how);
        },
        with_setup);
  };
  auto best_time = [&] {
    return r.best < 0 ? std::numeric_limits<double>::infinity() : r.trials[std::size_t(r.best)].median_ms;
  };
  auto note = [&](std::size_t i, const bench_result &b) {
    tuning_trial &t = r.trials[i];
    t.median_ms = b.median, t.p20_ms = b.p20, t.p80_ms = b.p80;
  };
  // A GPU's cache is overwritten before each run, as its inputs will come from memory. The CPU's is so large that doing
  // so would take most of the time.
  const bool flush = !c.s.device().is_cpu();
  const bench_options full{.warmup_ms = set.warmup_ms, .measure_ms = set.measure_ms, .flush_cache = flush};
  const bench_options quick{.warmup_ms = 0, .measure_ms = 1, .min_runs = 3, .max_runs = 3, .flush_cache = flush};
  bench_options longer = full;
  longer.measure_ms *= 3;

  std::vector<std::size_t> todo;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (r.trials[i].skipped.empty())
      todo.push_back(i);
  std::ranges::stable_sort(todo, {}, [&](std::size_t i) { return candidates[i].model; }); // promising ones first
  for (std::size_t n = 0; n < todo.size(); ++n) {
    const std::size_t i = todo[n];
    p.step("measuring", n, todo.size());
    try {
      if (set.give_up > 0 && r.best >= 0) {
        const bench_result first = time(i, quick);
        if (first.min > set.give_up * best_time()) {
          note(i, first);
          r.trials[i].skipped = fmt::format("given up after {} runs", first.runs);
          continue;
        }
      }
      note(i, time(i, full));
      if (r.trials[i].median_ms < best_time())
        r.best = int(i);
    } catch (const error &e) {
      if (in_hook || (e.stage() == stage::execute && !c.s.device().is_cpu()))
        throw; // the user's, or the device is lost
      r.trials[i].skipped = fmt::format("{} error: {}", name(e.stage()), e.message());
    }
  }

  // Those close to the best once more, and longer: what decides between them must not be noise.
  std::vector<std::size_t> close;
  for (std::size_t i : todo)
    if (r.trials[i].skipped.empty() && r.trials[i].median_ms <= 1.05 * best_time())
      close.push_back(i);
  std::ranges::sort(close, {}, [&](std::size_t i) { return r.trials[i].median_ms; });
  close.resize(std::min<std::size_t>(close.size(), 4));
  if (close.size() > 1) {
    for (std::size_t i : close)
      note(i, time(i, longer));
    r.best = int(*std::ranges::min_element(close, {}, [&](std::size_t i) { return r.trials[i].median_ms; }));
  }
  kept.finish();
}

void tuner::impl::search(const call &c, tuning_report &r, const std::vector<tuning_candidate> &candidates,
                         std::chrono::steady_clock::time_point began) const {
  {
    tuning_progress p(set.progress, r);
    prune(r, candidates);
    compile(c, r, candidates, p);
    measure(c, r, candidates, p);
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  if (r.best >= 0)
    return;
  std::string reasons;
  for (auto &t : r.trials)
    reasons += fmt::format("\n  {}: {}", text_of(t), first_line(t.skipped));
  throw error(
      stage::launch,
      fmt::format("no candidate of kernel '{}' can run{}:{}", r.kernel, r.key.empty() ? "" : " for " + r.key, reasons),
      {c.where.file, c.where.line, 0});
}

tuner::tuner(const kernel_core &core, std::span<const param_type> types, settings s)
    : impl_(std::make_unique<impl>(core, types, std::move(s))) {}
tuner::~tuner() = default;

tuning_call tuner::describe(const call &c) const {
  return {impl_->names, impl_->types, c.args.values, c.bytes, c.s.device()};
}

const tuner::choice *tuner::find(const stream &s, const std::uint64_t *values) const noexcept {
  const impl::entry *e = impl_->find(&s.impl(), values);
  return e ? &e->found : nullptr;
}

const tuner::choice &tuner::tune(const call &c, const std::function<std::vector<tuning_candidate>()> &make) const {
  impl &m = *impl_;
  if (compiling_for == &m) // its lock is held by the thread that waits for this one
    throw error(
        stage::trace,
        fmt::format("kernel '{}' is launched while its own lambda is traced, which would never end", m.core.name()),
        {c.where.file, c.where.line, 0});
  const device_impl *d = &c.s.impl();
  std::vector<std::uint64_t> key;
  for (std::size_t i : m.key)
    key.push_back(c.args.values[i]);
  impl::place *mine;
  {
    std::lock_guard guard(m.lock);
    auto &slot = m.at_work[{d, key}];
    if (!slot)
      slot = std::make_unique<impl::place>();
    mine = slot.get();
  }
  std::lock_guard one_at_a_time(mine->lock);
  if (const choice *done = find(c.s, c.args.values)) { // another thread was first
    keeper(c, m.names, m.zeroed, {}).finish();
    return *done;
  }
  if (mine->taken)
    throw error(stage::launch,
                fmt::format("kernel '{}' is called for a key that it is being tuned for, by a hook of that tuning",
                            m.core.name()),
                {c.where.file, c.where.line, 0});
  mine->taken = true;
  struct leaving {
    bool &taken;
    ~leaving() { taken = false; }
  } leaving{mine->taken};

  const auto began = std::chrono::steady_clock::now();
  const std::vector<tuning_candidate> candidates = make();
  if (candidates.empty())
    throw error(stage::launch, fmt::format("autotune of kernel '{}' has no candidates", m.core.name()),
                {c.where.file, c.where.line, 0});
  auto e = std::make_unique<impl::entry>();
  e->device = d, e->key = key;
  tuning_report &r = e->found.report;
  r = m.describe(c, candidates);

  const auto disk = current_disk_cache();
  const bool refresh = current_cache_settings().use == cache_settings::mode::refresh;
  const std::optional<cache_key> stored_as = disk ? std::optional(m.disk_key(c, r, candidates)) : std::nullopt;
  auto known = [&] {
    const auto text = stored_as && !refresh ? disk->load(*stored_as) : std::nullopt;
    tuning_report from_disk = r;
    if (!text || !read_report(from_disk, *text))
      return false;
    from_disk.from_cache = true;
    r = std::move(from_disk);
    return true;
  };
  bool found_on_disk = known();
  if (found_on_disk)
    keeper(c, m.names, m.zeroed, {}).finish();
  disk_cache::claim_guard claim; // processes that measure at once would measure one another
  if (!found_on_disk && stored_as && !refresh) {
    claim = disk->claim(*stored_as);
    found_on_disk = claim.waited() && known();
    if (found_on_disk)
      keeper(c, m.names, m.zeroed, {}).finish();
  }
  if (!found_on_disk) {
    m.search(c, r, candidates, began);
    if (stored_as)
      store_on_disk(*disk, *stored_as, stored_form(r));
  }
  e->found.best = r.best;
  e->found.variant = candidates[std::size_t(r.best)].variant;

  std::lock_guard guard(m.lock);
  m.owned.push_back(std::move(e));
  m.found.insert(m.hash(d, c.args.values), m.owned.back().get());
  return m.owned.back()->found;
}

} // namespace detail
} // namespace tessera
