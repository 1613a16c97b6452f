#pragma once
// Compiled kernels in the cache: what their key is made of, and the look-up in memory, then on disk.
#include <memory>
#include <string_view>

#include <tessera/codegen/compile.h>
#include <tessera/runtime/cache.h>

namespace tessera::detail {

/// Everything that decides the machine code. `assembler`: of a driver that turns the PTX into machine code, else empty.
cache_key kernel_key(std::string_view name, const target &t, const compile_options &o, std::string_view assembler,
                     const ir_module &traced);

/// The kernel of that key, or nullptr. `compiled_kernel::cached` is set.
std::shared_ptr<compiled_kernel> find_kernel(const cache_key &key);
/// Keeps a kernel just compiled. Says once in a process that the folder cannot be written.
void keep_kernel(const cache_key &key, const compiled_kernel &k);
/// Forgets a kernel that could not be loaded.
void discard_kernel(const cache_key &key);
/// Waits for other processes that compile the same kernel.
disk_cache::claim_guard claim_kernel(const cache_key &key);

/// The disk cache in use, or nullptr.
std::shared_ptr<disk_cache> current_disk_cache();
/// Stores, and warns at the first failure.
void store_on_disk(disk_cache &disk, const cache_key &key, std::string_view payload);

} // namespace tessera::detail
