// The processor, as a program without LLVM sees it.
#include "../../../codegen/lib/cpu/HostCpu.h"

#include <tessera/codegen/target.h>

namespace tessera {

namespace codegen {
const HostCpu &hostCpu() {
  static const HostCpu host = [] {
    HostCpu h;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    h.vectorBytes = avx512 ? 64 : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 32 : 16;
#endif
    return h;
  }();
  return host;
}
} // namespace codegen

std::string host_cpu() { return std::to_string(8 * codegen::hostCpu().vectorBytes) + "-bit vectors"; }
bool has_assembler() { return false; }

} // namespace tessera
