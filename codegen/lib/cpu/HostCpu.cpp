// Detects the host's vector unit. TESSERA_CPU_ISA lowers it, so that the code for older processors is tested on new
// ones.
#include "HostCpu.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/TargetParser/Triple.h"

#include <algorithm>
#include <cstdlib>

#include <tessera/codegen/target.h>
#include <tessera/error.h>

namespace tessera::codegen {

static HostCpu detect() {
  llvm::StringMap<bool> has = llvm::sys::getHostCPUFeatures();
  HostCpu host;
  host.triple = llvm::sys::getProcessTriple();
  host.cpu = llvm::sys::getHostCPUName().str();
  bool x86 = llvm::Triple(host.triple).isX86();
  unsigned limit = 64;
  if (const char *isa = std::getenv("TESSERA_CPU_ISA"); isa && *isa && x86) {
    llvm::StringRef name = isa;
    limit = name == "sse2" ? 16 : name == "avx2" ? 32 : name == "avx512" ? 64 : 0;
    if (!limit)
      throw error(stage::codegen, "TESSERA_CPU_ISA is '" + name.str() + "'; use sse2, avx2 or avx512");
    // The named micro-architecture levels leave nothing of the real processor's extensions behind.
    if (limit < 64) {
      host.cpu = limit == 16 ? "x86-64" : "x86-64-v3";
      for (auto &feature : has) {
        llvm::StringRef f = feature.getKey();
        bool wide = f.starts_with("avx512") || f.starts_with("avx10") || f.starts_with("amx") || f == "evex512";
        bool vex = f.starts_with("avx") || f == "fma" || f == "f16c" || f == "fma4" || f == "xop" || f.starts_with("v");
        if (wide || (limit == 16 && (vex || f.starts_with("sse4") || f == "ssse3" || f == "sse3" || f == "gfni")))
          feature.second = false;
      }
    }
  }
  // Masked operations on 8- and 16-bit elements, and half the mask moves, need BW, DQ and VL: without them use AVX2.
  bool avx512 = has["avx512f"] && has["avx512bw"] && has["avx512dq"] && has["avx512vl"];
  if (x86) {
    host.vectorBytes = std::min(limit, avx512 ? 64u : has["avx2"] && has["fma"] ? 32u : 16u);
    host.mathIsa = host.vectorBytes == 64 ? 'e' : host.vectorBytes == 32 ? 'd' : 'b';
    host.halfConversion = has["f16c"];
  } else {
    host.mathIsa = 'n';
    host.halfConversion = llvm::Triple(host.triple).isAArch64();
  }
  llvm::SubtargetFeatures features;
  std::vector<std::string> names;
  for (auto &feature : has)
    names.push_back((feature.second ? "+" : "-") + feature.getKey().str());
  std::sort(names.begin(), names.end());
  for (auto &name : names)
    features.AddFeature(name);
  host.features = features.getString();
  return host;
}

const HostCpu &hostCpu() {
  static const HostCpu host = detect();
  return host;
}

} // namespace tessera::codegen

namespace tessera {
std::string host_cpu() {
  const codegen::HostCpu &host = codegen::hostCpu();
  return host.triple + ' ' + host.cpu + ' ' + host.features;
}
} // namespace tessera
