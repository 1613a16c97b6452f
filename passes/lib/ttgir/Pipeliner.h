#pragma once
// What the three passes of the software pipeliner share: the attributes they talk through, and which loops and ops may
// be pipelined.
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/ir/ttng/Ttng.h"
#include "tessera/passes/AxisInfo.h"
#include "tessera/passes/TargetModel.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>

namespace tessera::pipeliner {

/// On a loop: how many iterations are in flight, the one being computed included.
inline constexpr llvm::StringLiteral kNumStages = "tt.num_stages";
/// On an op: its users in the same iteration are scheduled as many stages later at least. On a warp_group_dot: it stays
/// in flight for one iteration.
inline constexpr llvm::StringLiteral kLatency = "tt.latency";
/// On every op of a scheduled loop's body: in trip t of the pipelined loop it runs for iteration t - stage, in the
/// order of clusters, within a cluster in the order of the text.
inline constexpr llvm::StringLiteral kStage = "loop.stage", kCluster = "loop.cluster";
/// While a loop is expanded: which of its waits this is a copy of.
inline constexpr llvm::StringLiteral kWaitIndex = "loop.wait";

std::optional<int> intAttr(mlir::Operation *op, llvm::StringRef name);
void setIntAttr(mlir::Operation *op, llvm::StringRef name, int value);
inline int latencyOf(mlir::Operation *op) { return intAttr(op, kLatency).value_or(0); }

/// The op of the loop's body that is or contains `op`; null if the loop does not contain it.
mlir::Operation *ancestorInBody(mlir::scf::ForOp loop, mlir::Operation *op);

/// Whether reads of memory may move across iterations: stores are the only writes to global memory in the body, and loops
/// inside would have to run within one stage.
bool canPipeline(mlir::scf::ForOp loop);

/// Loads of the body that may read what the loop stores; they must stay where they are. Pointers made from different
/// arguments of the kernel are taken to lead to different memory, those made of anything else (an integer, a pointer in
/// memory) to any.
llvm::DenseSet<mlir::Operation *> readsOfStores(mlir::scf::ForOp loop);

/// The op may run for an iteration that does not exist, and out of order with ops that have effects.
bool isMovable(mlir::Operation *op);

/// Views of a buffer: the op that defines what `memdesc` is a view of (null for an argument).
mlir::Operation *bufferOf(mlir::Value memdesc);

/// How a load that fills a buffer is done by an asynchronous copy.
struct AsyncCopy {
  ttg::LocalAllocOp buffer; ///< the `local_alloc` of the loaded tile
  unsigned contiguity;      ///< elements that are consecutive, and masked alike, in global memory
};
/// Nothing if the load feeds no buffer, or the target has no such copy: too narrow, or filled with other than zeros.
std::optional<AsyncCopy> asAsyncCopy(tt::LoadOp load, const AxisInfoAnalysis &axes, const TargetModel &target);

/// The dot does nothing with its accumulator but carry it (alone, or in a chain of such dots): its result may be left
/// unfinished until the next iteration.
bool onlyAccumulates(ttng::WarpGroupDotOp dot, mlir::scf::ForOp loop);
/// Removes dots next to which in a chain there is one that is not in `dots`: that one would wait for them.
void keepWholeChains(llvm::SmallVectorImpl<ttng::WarpGroupDotOp> &dots);

/// Where values of a scheduled loop pass from one stage to a later one through shared memory, gives them a ring of
/// buffers: loads in `copies` become asynchronous copies, filled buffers local_stores. The loop is replaced by one with
/// counters for the rings; new ops carry stages and clusters as well.
struct Rings {
  mlir::scf::ForOp loop;
  /// The waits, and the commits of what each waits for. kWaitIndex is the index in here; `num` is not known yet.
  llvm::SmallVector<std::pair<ttg::AsyncWaitOp, llvm::SmallVector<ttg::AsyncCommitGroupOp>>> waits;
  llvm::SmallVector<ttg::LocalAllocOp> buffers;
};
Rings makeRings(mlir::RewriterBase &rewriter, mlir::scf::ForOp loop,
                const llvm::DenseMap<mlir::Operation *, AsyncCopy> &copies);

} // namespace tessera::pipeliner
