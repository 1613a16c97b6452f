// Unrolls loops on demand.
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "tessera/ir/ttir/Ttir.h"
#include "tessera/passes/Passes.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTIRLOOPUNROLL
#include "tessera/passes/Passes.h.inc"

namespace {

constexpr StringLiteral kFactor = "tt.loop_unroll_factor";
constexpr int64_t kMostOps = 1 << 16; ///< of an unrolled loop: more would take minutes to compile and run no faster

class LoopUnroll : public impl::TtirLoopUnrollBase<LoopUnroll> {
public:
  void runOnOperation() override {
    SmallVector<std::pair<scf::ForOp, int64_t>> loops; // inner ones first
    WalkResult walked = getOperation().walk([&](scf::ForOp loop) {
      auto factor = loop->getAttrOfType<IntegerAttr>(kFactor);
      if (!loop->hasAttr(kFactor))
        return WalkResult::advance();
      if (!factor || factor.getInt() < 1) {
        loop.emitError() << "'" << kFactor << "' must be an integer of at least 1";
        return WalkResult::interrupt();
      }
      loop->removeAttr(kFactor); // copies of the loop must not be unrolled again
      if (factor.getInt() > 1)
        loops.push_back({loop, factor.getInt()});
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    for (auto [loop, factor] : loops) {
      int64_t ops = 0;
      loop.getBody()->walk([&](Operation *) { ++ops; });
      if (ops > kMostOps / factor) {
        loop.emitError() << "unrolling " << factor << " times makes " << kMostOps << " operations or more of a body of "
                         << ops << ": choose a smaller factor";
        return signalPassFailure();
      }
      if (failed(loopUnrollByFactor(loop, factor)))
        loop.emitRemark("could not be unrolled");
    }
  }
};

} // namespace
} // namespace tessera
