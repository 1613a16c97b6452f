#pragma once
// Launching without templates: what tl::kernel's typed calls come down to, and the handle to a compiled kernel.
#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/codegen/compile.h>
#include <tessera/dsl/trace.h>
#include <tessera/export.h>
#include <tessera/runtime/device.h>
#include <tessera/runtime/stream.h>

namespace tessera {

/// How many programs run along x, y and z. Numbers are 64 bits wide, so that a product computed for a grid is not cut
/// off: too large a grid is an error before the launch, a zero makes the launch do nothing.
struct grid {
  std::int64_t x = 1, y = 1, z = 1;
};

/// How a GPU runs the programs of a launch. The CPU runs them in any order, a few at once.
struct launch_options {
  /// All programs run at the same time, so that they may wait for one another: an error where they do not fit, and on the
  /// CPU.
  bool cooperative = false;
  /// Neighbouring programs along x, y, z that run on one part of the GPU (from sm_90 on); a grid is a multiple of it.
  std::array<unsigned, 3> cluster{1, 1, 1};
  bool operator==(const launch_options &) const = default;
};

/// What a launch is specialised on: bit i speaks of parameter i.
struct specialization {
  std::uint64_t divisible_by_16 = 0; ///< pointers and integers
  std::uint64_t equal_to_1 = 0;      ///< integers
  /// Pointers behind which less than 2^31 bytes are touched, and nothing before them: whole device_buffers of that size.
  /// Where it makes no difference (all but AMD GPUs and their emulation) it is ignored.
  std::uint64_t below_2g = 0;
  auto operator<=>(const specialization &) const = default;
  /// All pointers and integers divisible by 16, and buffers below 2 GiB: what aligned arrays give.
  static constexpr specialization aligned() { return {~std::uint64_t(0), 0, ~std::uint64_t(0)}; }
};

/// A compiled kernel: every stage's text and what it uses. Cheap to copy; stays valid after the kernel is gone.
class TESSERA_API kernel_handle {
public:
  explicit kernel_handle(std::shared_ptr<const compiled_kernel> k) : kernel_(std::move(k)) {}
  // Moving copies, so that there is no empty handle.
  kernel_handle(const kernel_handle &) = default;
  kernel_handle &operator=(const kernel_handle &) = default;

  [[nodiscard]] const std::string &name() const { return kernel_->metadata.name; }
  [[nodiscard]] const tessera::target &target() const { return kernel_->compiled_for; }
  /// As used: zeros replaced by what was chosen.
  [[nodiscard]] const compile_options &options() const { return kernel_->options; }
  /// "ttir", "ttgir", "llir", "ptx", "cubin" | "asm", "obj", in pipeline order.
  [[nodiscard]] std::vector<std::string_view> stages() const;
  [[nodiscard]] bool has(std::string_view stage) const { return kernel_->find(stage) != nullptr; }
  /// The text (or bytes) of a stage. Throws tessera::error naming those there are.
  [[nodiscard]] const std::string &stage(std::string_view stage) const;
  /// Per thread; -1 where not known (CPU, or never assembled).
  [[nodiscard]] int registers() const { return kernel_->registers; }
  /// Bytes of registers that a thread spills to memory; -1 where not known.
  [[nodiscard]] int spills() const { return kernel_->spills; }
  [[nodiscard]] unsigned shared_bytes() const { return kernel_->metadata.shared_bytes; }
  [[nodiscard]] int num_warps() const { return kernel_->metadata.num_warps; }
  /// Found in the compile cache instead of being compiled.
  [[nodiscard]] bool cached() const { return kernel_->cached; }
  /// Milliseconds each stage and pass took: "trace", the passes, "llir", "llvm-opt", "isel", "ptxas", "load"; of a cached
  /// kernel "trace", "cache" and "load".
  [[nodiscard]] std::span<const stage_time> times() const { return kernel_->times; }
  /// One line: target, registers, spills, shared bytes, warps.
  [[nodiscard]] std::string summary() const;
  [[nodiscard]] const compiled_kernel &compiled() const { return *kernel_; }

private:
  std::shared_ptr<const compiled_kernel> kernel_;
};

/// Where each of `stages` (comma-separated) of every kernel compiled from now on is written: `spec` is "ttir,ptx" or
/// "ttir,ptx:DIR", as in the environment variable TESSERA_DUMP. Empty: nowhere. Throws tessera::error for unknown
/// stages.
TESSERA_API void set_dump(std::string_view spec);

/// A launch as a profiler sees it.
struct launch_info {
  const std::string &kernel;
  const kernel_handle &compiled;
  tessera::grid grid;
  const stream &where;
};

/// Called on the launching thread around every launch, of any thread, after its code was compiled and loaded.
struct launch_hooks {
  std::function<void(const launch_info &)> before = {}, after = {};
};

/// Replaces the hooks of this process; {} takes them away. What a hook throws comes out of the launch. With TESSERA_NVTX=1, or under a profiler
/// that sets NVTX_INJECTION64_PATH, each launch is an NVTX range with the kernel's name besides.
TESSERA_API void set_launch_hooks(launch_hooks hooks);

namespace detail {

/// The arguments of one launch, packed by tl::kernel: one 8-byte slot per parameter, the value in its first bytes.
struct launch_args {
  std::uint64_t *values;
  specialization spec;
  std::uint64_t unchecked = 0; ///< bit i: parameter i came as a plain address, and is to be checked for this device
};

/// Where a launch is written in the user's source.
struct launch_site {
  const char *file = "";
  unsigned line = 0;
};

/// One kernel with one configuration and one set of options.
struct kernel_variant;

/// How to compare and keep a configuration whose type is known only to tl::kernel.
struct config_type {
  bool (*equal)(const void *, const void *);
  std::shared_ptr<const void> (*copy)(const void *);
};

/// A kernel without its lambda's type. Launches may come from many threads: a warm one takes no lock and allocates
/// nothing; threads that launch the same new specialisation compile it once.
class TESSERA_API kernel_core {
public:
  /// `declared`: where the kernel is written.
  kernel_core(std::string name, std::span<const param_type> params, config_type config, launch_site declared = {});
  kernel_core(const kernel_core &) = delete;
  kernel_core &operator=(const kernel_core &) = delete;
  virtual ~kernel_core();

  [[nodiscard]] const std::string &name() const noexcept { return name_; }
  [[nodiscard]] std::span<const param_type> params() const noexcept;
  /// The variant, made at its first use. `hash` is of `config` alone; its address does not change any more.
  kernel_variant &variant(std::uint64_t hash, const void *config, const compile_options &options) const;
  /// The configuration kept with the variant.
  static const void *config_of(const kernel_variant &v) noexcept;
  static const compile_options &options_of(const kernel_variant &v) noexcept;

  /// `how` null: no options.
  void launch(kernel_variant &v, const stream &s, const grid &g, launch_args &args, launch_site where,
              const launch_options *how = nullptr) const;
  /// Compiled and loaded as a launch with these arguments would have it.
  kernel_handle prepare(kernel_variant &v, const device &d, specialization spec) const;
  /// Compiled only; no device is needed.
  kernel_handle compile_for(kernel_variant &v, const target &t, specialization spec) const;

  /// Compiled under another name, as code that is linked with other code needs.
  kernel_handle compile_as(const std::string &symbol, kernel_variant &v, const target &t, specialization spec) const;

  /// Names the code that such a launch would run: the hash of its key in the compile cache. Traces.
  std::string fingerprint(kernel_variant &v, const device &d, specialization spec) const;

  [[noreturn]] void fail_argument(std::size_t index, const std::string &message, launch_site where) const;

protected:
  virtual ir_module trace(const std::string &symbol, const void *config, std::span<const param_spec> specs) const = 0;

private:
  struct impl;
  std::string name_;
  launch_site declared_;
  std::unique_ptr<impl> impl_;
};

} // namespace detail
} // namespace tessera
