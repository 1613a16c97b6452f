#pragma once
// What the runtime asks of a device. The CPU, CUDA and HIP implement it; everything else is written once.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/codegen/compile.h>
#include <tessera/runtime/cpu_executor.h>
#include <tessera/runtime/device.h>
#include <tessera/runtime/launch.h>

namespace tessera::detail {

/// Machine code loaded on a device, ready to launch. Immutable once published, so launches read it without a lock.
struct loaded_code {
  virtual ~loaded_code() = default;
};

/// A grid whose numbers were checked.
struct checked_grid {
  std::uint32_t x, y, z;
};

class device_impl {
public:
  tessera::target target;
  device_properties properties;
  int memory_space = 0; ///< 0: host memory; else a number of this GPU's

  virtual ~device_impl() = default;

  // ---- memory; `stream` is the native handle, null for the default stream
  // --------------------------------------------
  virtual void *allocate(std::size_t bytes) = 0;
  virtual void release(void *memory) noexcept = 0;
  virtual void copy_in(void *to, const void *from, std::size_t bytes, void *stream) = 0;
  virtual void copy_out(void *to, const void *from, std::size_t bytes, void *stream) = 0;
  virtual void copy_within(void *to, const void *from, std::size_t bytes, void *stream) = 0;
  /// `count` times the `width` bytes at `pattern`.
  virtual void fill(void *to, const void *pattern, std::size_t width, std::size_t count, void *stream) = 0;
  virtual std::size_t free_bytes() = 0;
  /// Whether a kernel of this device may use the address a caller passed as a plain pointer; if not, `why` completes
  /// the sentence "the argument …". May replace the address by the one to pass on. Cheap for addresses seen before.
  virtual bool usable_pointer(std::uint64_t &address, std::string &why) = 0;

  // ---- queues
  // --------------------------------------------------------------------------------------------------------
  virtual void *create_stream() = 0;
  virtual void destroy_stream(void *stream) noexcept = 0;
  virtual void synchronize(void *stream) = 0;
  virtual void synchronize_all() = 0;
  virtual void *create_event() = 0;
  virtual void destroy_event(void *event) noexcept = 0;
  virtual void record(void *event, void *stream) = 0;
  virtual void synchronize_event(void *event) = 0;
  virtual void wait(void *stream, void *event) = 0;
  virtual double elapsed_ms(void *start, void *stop) = 0;

  // ---- kernels
  // -------------------------------------------------------------------------------------------------------
  /// What of this device turns the compiled kernel into machine code: the driver, where there is no assembler. Empty: nothing.
  virtual std::string assembler() const { return {}; }
  /// The same GPU compiled for another architecture; nullptr where it cannot run that code.
  virtual std::unique_ptr<device_impl> for_arch(const std::string &arch) { return nullptr; }
  /// Loads machine code; fills in registers and spills, and the "cubin" stage where the driver made it.
  virtual std::unique_ptr<loaded_code> load(compiled_kernel &kernel) = 0;
  /// args[i] points to the value of the machine code's i-th parameter.
  virtual void launch(const loaded_code &code, checked_grid grid, const void **args, void *stream) = 0;
  /// The same with options other than the usual ones, which were checked against the grid.
  virtual void launch_with(const launch_options &how, const loaded_code &code, checked_grid grid, const void **args,
                           void *stream) = 0;

  virtual cpu_counters counters() const = 0;
  virtual void reset_counters() = 0;
};

/// The CPU device for `t`, and the GPUs of this machine by vendor (empty without a driver). Live until the process ends.
std::unique_ptr<device_impl> make_cpu_device(const tessera::target &t);
std::vector<std::unique_ptr<device_impl>> make_cuda_devices();
std::vector<std::unique_ptr<device_impl>> make_hip_devices();
/// The ordinal of the GPU whose stream `native` is; null: of the GPU that is current on this thread.
int cuda_ordinal_of_stream(void *native);
int hip_ordinal_of_stream(void *native);
/// Why that vendor's devices are not there: `none`, or only some of those that its driver lists. Empty: all are.
std::string why_no_cuda_device(bool none);
std::string why_no_hip_device(bool none);
/// "this machine has the CPU, cuda:0 (NVIDIA H200, sm_90a) (there is no AMD GPU: …)".
std::string what_machine_has();

} // namespace tessera::detail
