// The target interface of each kind of target.
#include "tessera/codegen/TargetInfo.h"

#include <fmt/format.h>

#include <tessera/codegen/target.h>
#include <tessera/error.h>

namespace tessera::codegen {

std::unique_ptr<TargetInfo> createTargetInfo(const target &t, const compile_options &options) {
  switch (t.kind) {
  case target_kind::cpu: return createCpuTargetInfo(t, options);
  case target_kind::cuda: return createNvidiaTargetInfo(t, options);
  case target_kind::hip: break;
  }
  throw error(stage::codegen,
              fmt::format("no code can be made for target '{}' yet: cpu:emulate={} executes the same decisions "
                          "on the CPU",
                          t.str(), t.arch.empty() ? "gfx942" : t.arch));
}

} // namespace tessera::codegen
