// From packed arguments to a running kernel: variants, specialisations, compilation on demand, checks, launch.
#include "cache/kernel_cache.h"
#include "device_impl.h"
#include "dump.h"
#include "launch_hooks.h"
#include "launch_options.h"
#include "publish_table.h"

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include <tessera/error.h>
#include <tessera/runtime/launch.h>

namespace tessera {

// ---- handle
// ------------------------------------------------------------------------------------------------------------

std::vector<std::string_view> kernel_handle::stages() const {
  std::vector<std::string_view> names;
  for (auto &[name, text] : kernel_->stages)
    names.push_back(name);
  return names;
}

const std::string &kernel_handle::stage(std::string_view stage) const {
  if (const std::string *text = kernel_->find(stage))
    return *text;
  throw error(tessera::stage::launch, fmt::format("kernel '{}' for {} has no stage '{}'; it has {}", name(),
                                                  target().str(), stage, fmt::join(stages(), ", ")));
}

std::string kernel_handle::summary() const {
  std::string text = fmt::format("{} for {}: {} warps, {} bytes of shared memory", name(), target().str(), num_warps(),
                                 shared_bytes());
  if (registers() >= 0)
    text += fmt::format(", {} registers", registers());
  if (spills() >= 0)
    text += fmt::format(", {} bytes spilled", spills());
  return text;
}

namespace detail {
namespace {

/// Whether machine code differs with the size of buffers: AMD's buffer instructions have 32-bit offsets.
bool sizes_matter(const target &t) { return t.kind == target_kind::hip || t.arch.starts_with("gfx"); }

/// A specialisation loaded on a device. Immutable: launches read it without a lock.
struct loaded_kernel {
  const device_impl *device;
  specialization spec;
  std::unique_ptr<loaded_code> code;
  std::shared_ptr<const compiled_kernel> kernel;
  std::vector<std::uint8_t> passed; ///< parameters the machine code takes, in order

  static std::uint64_t hash(const device_impl *d, const specialization &s) {
    return mix(reinterpret_cast<std::uintptr_t>(d) ^
               mix(s.divisible_by_16 + 0x9e3779b97f4a7c15u * s.equal_to_1 + 0xff51afd7ed558ccdu * s.below_2g));
  }
};

/// A specialisation compiled for a target. It is claimed while it is compiled and loaded: others that want the same wait,
/// others that want something else do not.
struct compilation {
  std::shared_ptr<const compiled_kernel> kernel;
  std::mutex lock;
  std::atomic<std::thread::id> owner;
};

class compiling {
public:
  compiling(compilation &c, const std::string &kernel) : c_(c) {
    if (c.owner == std::this_thread::get_id())
      throw error(stage::trace,
                  fmt::format("kernel '{}' is launched while its own lambda is traced, which would never end", kernel));
    c.lock.lock();
    c.owner = std::this_thread::get_id();
  }
  ~compiling() {
    c_.owner = std::thread::id();
    c_.lock.unlock();
  }
  compiling(const compiling &) = delete;
  compiling &operator=(const compiling &) = delete;

private:
  compilation &c_;
};

/// Milliseconds since it was made, or since the last lap.
class stopwatch {
public:
  double lap() {
    const auto before = std::exchange(last_, std::chrono::steady_clock::now());
    return std::chrono::duration<double, std::milli>(last_ - before).count();
  }

private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

source_position position(launch_site s) { return {s.file, s.line, 0}; }

/// Runs `work`; an error that knows no line of the user's, of the options for instance, gets `where`.
template <class F> decltype(auto) located(launch_site where, const F &work) {
  try {
    return work();
  } catch (const error &e) {
    if (e.where().line || !where.line)
      throw;
    throw error(e.stage(), e.message(), position(where));
  }
}

} // namespace

struct kernel_variant {
  std::shared_ptr<const void> config;
  compile_options options;

  publish_table<loaded_kernel> loaded; // read without a lock
  std::mutex lock;                     // guards what follows, and insertion into `loaded`
  std::vector<std::unique_ptr<loaded_kernel>> owned;
  std::map<std::pair<std::string, specialization>, std::unique_ptr<compilation>> compilations;

  loaded_kernel *find(const device_impl *d, const specialization &s) const {
    return loaded.find(loaded_kernel::hash(d, s), [&](const loaded_kernel &k) { return k.device == d && k.spec == s; });
  }
  compilation &slot(const target &t, const specialization &s) {
    std::lock_guard guard(lock);
    auto &c = compilations[{t.str(), s}];
    if (!c)
      c = std::make_unique<compilation>();
    return *c;
  }
};

struct kernel_core::impl {
  std::vector<param_type> params;
  specialization meaningful; ///< bits that can be set: divisibility of pointers and integers, one of integers, …
  config_type config;

  publish_table<kernel_variant> variants; // read without a lock
  std::mutex lock;                        // guards insertion
  std::vector<std::unique_ptr<kernel_variant>> owned;

  /// Without what makes no difference for parameters of these types, or on this target.
  specialization reduced(specialization s, const target &t) const {
    s.divisible_by_16 &= meaningful.divisible_by_16 & ~s.equal_to_1;
    s.equal_to_1 &= meaningful.equal_to_1;
    s.below_2g &= sizes_matter(t) ? meaningful.below_2g : 0;
    return s;
  }

  ir_module trace(const kernel_core &core, const std::string &symbol, const kernel_variant &v,
                  const specialization &s) const {
    if (symbol.empty())
      throw error(stage::trace, "a kernel has no name: tl::kernel(\"name\", …) gives the machine code its symbol");
    std::vector<param_spec> specs(params.size());
    for (std::size_t i = 0; i < specs.size(); ++i)
      specs[i] = {bool(s.divisible_by_16 >> i & 1), bool(s.equal_to_1 >> i & 1), bool(s.below_2g >> i & 1)};
    return core.trace(symbol, v.config.get(), specs);
  }

  /// Gives the kernel to `finish`, from the cache where it is there and `finish` takes it, else compiled; what was
  /// compiled is kept as `finish` left it. `assembler`: of the driver that will make the machine code, if one will.
  template <class F>
  void obtain(const kernel_core &core, const std::string &symbol, const kernel_variant &v, const target &t,
              const specialization &s, std::string_view assembler, const F &finish) const {
    stopwatch clock;
    ir_module module = trace(core, symbol, v, s);
    const stage_time traced{"trace", clock.lap()};
    const cache_key key = kernel_key(symbol, t, v.options, assembler, module);
    auto use_cached = [&] {
      std::shared_ptr<compiled_kernel> kernel = find_kernel(key);
      if (!kernel)
        return false;
      kernel->times = {traced, {"cache", clock.lap()}};
      try {
        finish(std::move(kernel));
        return true;
      } catch (const error &) {
        discard_kernel(key); // if it is the device's fault, the kernel compiled anew will say so
        return false;
      }
    };
    if (use_cached())
      return;
    const auto claim = claim_kernel(key);
    if (claim.waited() && use_cached())
      return;

    auto kernel = std::make_shared<compiled_kernel>();
    kernel->metadata.name = symbol;
    kernel->times.push_back(traced);
    try {
      compile_into(*kernel, module, t, v.options);
    } catch (const error &) {
      dump(*kernel, 0, false); // the stages before the one that failed are what one wants to see
      throw;
    }
    finish(kernel);
    keep_kernel(key, *kernel);
  }

  std::shared_ptr<const compiled_kernel> compile(const kernel_core &core, kernel_variant &v, compilation &c,
                                                 const target &t, const specialization &s) const {
    if (!c.kernel)
      obtain(core, core.name(), v, t, s, {}, [&](std::shared_ptr<compiled_kernel> kernel) {
        dump(*kernel, 0, true);
        c.kernel = std::move(kernel);
      });
    return c.kernel;
  }

  loaded_kernel &load(const kernel_core &core, kernel_variant &v, device_impl &d, const specialization &s) const {
    compilation &c = v.slot(d.target, s);
    const compiling claimed(c, core.name());
    if (loaded_kernel *k = v.find(&d, s)) // another thread was first
      return *k;

    start_profiling();
    auto k = std::make_unique<loaded_kernel>();
    k->device = &d;
    k->spec = s;
    for (std::size_t i = 0; i < params.size(); ++i)
      if (!(s.equal_to_1 >> i & 1))
        k->passed.push_back(std::uint8_t(i));
    auto finish = [&](std::shared_ptr<compiled_kernel> kernel) {
      const std::size_t compiled_stages = kernel->stages.size();
      dump(*kernel, 0, false);
      check_params(*kernel, k->passed);
      stopwatch clock;
      k->code = d.load(*kernel);
      kernel->times.push_back({"load", clock.lap()});
      dump(*kernel, std::min(compiled_stages, kernel->stages.size()), true);
      k->kernel = std::move(kernel);
    };
    const std::string assembler = d.assembler();
    if (c.kernel && assembler.empty())
      finish(std::make_shared<compiled_kernel>(*c.kernel));
    else
      obtain(core, core.name(), v, d.target, s, assembler, finish);

    std::lock_guard guard(v.lock);
    v.owned.push_back(std::move(k));
    v.loaded.insert(loaded_kernel::hash(&d, s), v.owned.back().get());
    return *v.owned.back();
  }

  // The machine code must take what the launch passes: a difference would read the wrong bytes.
  void check_params(const compiled_kernel &k, const std::vector<std::uint8_t> &passed) const {
    auto &taken = k.metadata.params;
    bool same = taken.size() == passed.size();
    for (std::size_t i = 0; same && i < taken.size(); ++i) {
      const param_type &p = params[passed[i]];
      same = taken[i].pointer == p.pointer && taken[i].size == (p.pointer ? 8 : size_of(p.element));
    }
    if (!same)
      throw error(
          stage::internal,
          fmt::format("kernel '{}' was compiled to take other parameters than its signature has", k.metadata.name));
  }
};

kernel_core::kernel_core(std::string name, std::span<const param_type> params, config_type config, launch_site declared)
    : name_(std::move(name)), declared_(declared), impl_(std::make_unique<impl>()) {
  impl_->params.assign(params.begin(), params.end());
  impl_->config = config;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const bool integer = !params[i].pointer && is_integer(params[i].element);
    impl_->meaningful.divisible_by_16 |= std::uint64_t(integer || params[i].pointer) << i;
    impl_->meaningful.equal_to_1 |= std::uint64_t(integer) << i;
    impl_->meaningful.below_2g |= std::uint64_t(params[i].pointer) << i;
  }
}
kernel_core::~kernel_core() = default;

kernel_variant &kernel_core::variant(std::uint64_t config_hash, const void *config, const compile_options &o) const {
  const std::uint64_t hash =
      mix(config_hash ^ mix(std::uint64_t(o.num_warps) << 32 ^ std::uint64_t(o.num_stages) << 16 ^
                            std::uint64_t(o.maxnreg) << 4 ^ o.num_ctas));
  auto same = [&](const kernel_variant &v) { return v.options == o && impl_->config.equal(v.config.get(), config); };
  if (kernel_variant *v = impl_->variants.find(hash, same)) [[likely]]
    return *v;
  std::lock_guard guard(impl_->lock);
  if (kernel_variant *v = impl_->variants.find(hash, same))
    return *v;
  auto v = std::make_unique<kernel_variant>();
  v->config = impl_->config.copy(config);
  v->options = o;
  impl_->owned.push_back(std::move(v));
  impl_->variants.insert(hash, impl_->owned.back().get());
  return *impl_->owned.back();
}

const void *kernel_core::config_of(const kernel_variant &v) noexcept { return v.config.get(); }
const compile_options &kernel_core::options_of(const kernel_variant &v) noexcept { return v.options; }

void kernel_core::fail_argument(std::size_t index, const std::string &message, launch_site where) const {
  throw error(stage::launch, fmt::format("argument {} of kernel '{}' {}", index + 1, name_, message), position(where));
}

namespace {

bool is_empty(const grid &g) { return g.x == 0 || g.y == 0 || g.z == 0; }

[[noreturn]] void fail_grid(const std::string &kernel, const device_impl &d, const grid &g, launch_site where) {
  auto &most = d.properties.max_grid;
  throw error(stage::launch,
              fmt::format("kernel '{}' cannot be launched with grid ({}, {}, {}) on {}: {}", kernel, g.x, g.y, g.z,
                          d.target.str(),
                          g.x < 0 || g.y < 0 || g.z < 0
                              ? "a grid is not negative; was it computed with 32 bits?"
                              : fmt::format("at most ({}, {}, {}) programs are possible; let each do more", most[0],
                                            most[1], most[2])),
              position(where));
}

} // namespace

namespace {

/// The launch itself in its rarer forms: with options, with hooks around it.
[[gnu::noinline]] void launch_unusual(const std::string &name, const loaded_kernel &k, device_impl &d, const grid &g,
                                      const void **args, const stream &s, const launch_options *how,
                                      const active_hooks *hooks, launch_site where) {
  const checked_grid programs{std::uint32_t(g.x), std::uint32_t(g.y), std::uint32_t(g.z)};
  if (const std::string why = how ? refused(*how, g) : ""; !why.empty())
    throw error(stage::launch, fmt::format("kernel '{}' cannot be launched {}", name, why), position(where));
  std::optional<launch_info> info;
  std::optional<kernel_handle> handle;
  if (hooks) {
    handle.emplace(k.kernel);
    info.emplace(launch_info{name, *handle, g, s});
    if (hooks->nvtx)
      hooks->nvtx->push(name.c_str());
  }
  struct range { // ends whatever throws
    const active_hooks *hooks;
    ~range() {
      if (hooks && hooks->nvtx)
        hooks->nvtx->pop();
    }
  } range{hooks};
  if (hooks && hooks->user.before)
    hooks->user.before(*info);
  auto after = [&] {
    if (hooks && hooks->user.after)
      hooks->user.after(*info);
  };
  try {
    if (how)
      located(where, [&] { d.launch_with(*how, *k.code, programs, args, s.native()); });
    else
      d.launch(*k.code, programs, args, s.native());
  } catch (...) {
    after();
    throw;
  }
  after();
}

} // namespace

void kernel_core::launch(kernel_variant &v, const stream &s, const grid &g, launch_args &args, launch_site where,
                         const launch_options *how) const {
  device_impl &d = s.impl();
  auto beyond = [](std::int64_t n, std::uint64_t most) { return std::uint64_t(n) > most; }; // a negative one is large
  auto &most = d.properties.max_grid;
  if (beyond(g.x, most[0]) || beyond(g.y, most[1]) || beyond(g.z, most[2])) [[unlikely]]
    fail_grid(name_, d, g, where);
  if (is_empty(g)) [[unlikely]]
    return;

  if (!sizes_matter(d.target))
    args.spec.below_2g = 0;

  std::string why;
  for (std::uint64_t left = args.unchecked; left; left &= left - 1) {
    const int i = std::countr_zero(left);
    if (!d.usable_pointer(args.values[i], why)) [[unlikely]]
      fail_argument(i, why, where);
  }

  loaded_kernel *k = v.find(&d, args.spec);
  if (!k) [[unlikely]]
    k = &located(where, [&]() -> loaded_kernel & { return impl_->load(*this, v, d, args.spec); });

  const void *passed[64];
  const std::uint8_t *index = k->passed.data();
  for (std::size_t i = 0, n = k->passed.size(); i < n; ++i)
    passed[i] = &args.values[index[i]];
  const active_hooks *hooks = hooks_in_use.load(std::memory_order_acquire);
  const bool usual = !how || *how == launch_options();
  if (hooks || !usual) [[unlikely]]
    return launch_unusual(name_, *k, d, g, passed, s, usual ? nullptr : how, hooks, where);
  d.launch(*k->code, {std::uint32_t(g.x), std::uint32_t(g.y), std::uint32_t(g.z)}, passed, s.native());
}

std::span<const param_type> kernel_core::params() const noexcept { return impl_->params; }

kernel_handle kernel_core::compile_as(const std::string &symbol, kernel_variant &v, const target &t,
                                      specialization s) const {
  s = impl_->reduced(s, t);
  return located(declared_, [&] {
    std::shared_ptr<const compiled_kernel> made;
    impl_->obtain(*this, symbol, v, t, s, {}, [&](std::shared_ptr<compiled_kernel> k) {
      dump(*k, 0, true);
      made = std::move(k);
    });
    return kernel_handle(made);
  });
}

std::string kernel_core::fingerprint(kernel_variant &v, const device &d, specialization s) const {
  s = impl_->reduced(s, d.target());
  return located(declared_, [&] {
    return kernel_key(name(), d.target(), v.options, d.impl().assembler(), impl_->trace(*this, name(), v, s)).hash();
  });
}

kernel_handle kernel_core::prepare(kernel_variant &v, const device &d, specialization s) const {
  s = impl_->reduced(s, d.target());
  loaded_kernel *k = v.find(&d.impl(), s);
  if (!k)
    k = &located(declared_, [&]() -> loaded_kernel & { return impl_->load(*this, v, d.impl(), s); });
  return kernel_handle(k->kernel);
}

kernel_handle kernel_core::compile_for(kernel_variant &v, const target &t, specialization s) const {
  s = impl_->reduced(s, t);
  compilation &c = v.slot(t, s);
  const compiling claimed(c, name());
  return kernel_handle(located(declared_, [&] { return impl_->compile(*this, v, c, t, s); }));
}

} // namespace detail
} // namespace tessera
