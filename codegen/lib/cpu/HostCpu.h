#pragma once
// The processor this process runs on, as far as TESSERA_CPU_ISA lets the CPU target use it.
#include <string>

namespace tessera::codegen {

struct HostCpu {
  std::string triple, cpu, features;
  unsigned vectorBytes = 16;   ///< of the widest vector registers used
  char mathIsa = 'b';          ///< letter of the vector function ABI: b SSE, d AVX2, e AVX-512, n NEON
  bool halfConversion = false; ///< f16 <-> f32 in hardware
  unsigned lanes() const { return vectorBytes / 4; }
};

/// Found once. Throws tessera::error for an unknown TESSERA_CPU_ISA.
const HostCpu &hostCpu();

} // namespace tessera::codegen
