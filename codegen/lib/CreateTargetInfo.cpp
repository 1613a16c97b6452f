// The target interface of each kind of target.
#include "tessera/codegen/TargetInfo.h"

namespace tessera::codegen {

std::unique_ptr<TargetInfo> createTargetInfo(const target &t, const compile_options &options) {
  switch (t.kind) {
  case target_kind::cpu: return createCpuTargetInfo(t, options);
  case target_kind::cuda: return createNvidiaTargetInfo(t, options);
  case target_kind::hip: return createAmdTargetInfo(t, options);
  }
  return nullptr;
}

} // namespace tessera::codegen
