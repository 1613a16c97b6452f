#pragma once
// The machines kernels run on: the CPU, an emulated GPU, or a GPU by CUDA or HIP. All have one interface.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/codegen/target.h>
#include <tessera/export.h>

namespace tessera {

namespace detail {
class device_impl;
}

/// What a device is and how much it has. Zero: unknown or does not apply.
struct device_properties {
  std::string name;             ///< "NVIDIA H200", or the processor's name
  std::string arch;             ///< "sm_90a", "gfx942"; on the CPU the vector width used, or the architecture emulated
  int index = 0;                ///< ordinal among devices of its kind
  unsigned multiprocessors = 0; ///< SMs, compute units; threads of the pool on the CPU
  unsigned warp_size = 0;
  unsigned max_threads_per_program = 0;
  unsigned max_shared_bytes = 0; ///< shared memory one program may use
  unsigned shared_bytes_per_multiprocessor = 0;
  unsigned registers_per_multiprocessor = 0;
  std::array<std::uint64_t, 3> max_grid{}; ///< programs along x, y, z
  std::size_t memory_bytes = 0;
  std::size_t l2_bytes = 0; ///< last level cache
  double clock_ghz = 0;
  double peak_gbytes_per_s = 0; ///< memory bandwidth on paper; HIP does not tell
  int driver_version = 0;       ///< 13000 is CUDA 13.0, 60342134 is HIP 6.3.42134
};

/// A device: a small handle, free to copy, valid for the whole process. Two handles are equal when they are the same
/// machine and the same target.
class TESSERA_API device {
public:
  /// Every device of this machine: CUDA's, HIP's, the CPU; emulated ones are not listed, nor are AMD GPUs that no code
  /// can be made for. Never throws for a missing driver.
  static std::vector<device> all();
  /// The first CUDA device, else the first of HIP, else the CPU.
  static device best();
  static device cpu();
  /// Throws tessera::error (launch) saying what was found, where there is no such device.
  static device cuda(int index = 0);
  static device hip(int index = 0);
  /// By target: "auto", "cpu", "cpu:emulate=sm_90a", "cuda", "cuda:1", "cuda:sm_80" (the first GPU that runs that
  /// code), "hip", "hip:1", "hip:gfx942".
  static device open(std::string_view target);

  [[nodiscard]] const device_properties &properties() const noexcept;
  /// What kernels are compiled for on this device.
  [[nodiscard]] const tessera::target &target() const noexcept;
  [[nodiscard]] const std::string &name() const noexcept { return properties().name; }
  /// Which one it is, as open() takes it: "cpu", "cpu:emulate=sm_90a", "cuda:1".
  [[nodiscard]] std::string place() const;
  [[nodiscard]] bool is_cpu() const noexcept { return target().kind == target_kind::cpu; }
  /// Waits for everything given to the device. Throws what a kernel did wrong (stage execute).
  void synchronize() const;
  /// Bytes of memory free now.
  [[nodiscard]] std::size_t free_bytes() const;

  bool operator==(const device &) const = default;

  explicit device(detail::device_impl &impl) noexcept : impl_(&impl) {}
  [[nodiscard]] detail::device_impl &impl() const noexcept { return *impl_; }

private:
  detail::device_impl *impl_;
};

} // namespace tessera
