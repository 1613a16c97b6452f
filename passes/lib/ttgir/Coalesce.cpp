// Layouts of memory accesses: wide accesses per thread, neighbouring threads on neighbouring addresses.
#include "../Layouts.h"
#include "tessera/passes/Allocation.h"
#include "tessera/passes/AxisInfo.h"
#include "tessera/passes/Passes.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTGIRCOALESCE
#include "tessera/passes/Passes.h.inc"

namespace {

/// Accesses of tiles of one shape along the same dimensions share a layout, so that no conversion comes between them.
struct Group {
  SmallVector<int64_t> shape;
  SmallVector<unsigned> order; ///< fastest dimension first
  SmallVector<Operation *> ops;
  unsigned loads = 1;           ///< widest useful access of the loads, in elements
  unsigned stores = UINT32_MAX; ///< narrowest of the stores': wider blocks would leave gaps between threads
};

class Coalesce : public impl::TtgirCoalesceBase<Coalesce> {
public:
  using TtgirCoalesceBase::TtgirCoalesceBase;

  void runOnOperation() override {
    AxisInfoAnalysis axis(getOperation());
    numWarps = ttg::lookupNumWarps(getOperation());
    lanes = ttg::lookupThreadsPerWarp(getOperation());
    for (auto func : getOperation().getOps<tt::FuncOp>()) {
      SmallVector<Group> groups;
      llvm::DenseMap<ArrayRef<int64_t>, unsigned> reduced; // shape -> bit set of the axes that reductions remove
      func.walk([&](Operation *op) {
        if (Value ptr = layouts::memoryPointer(op))
          add(groups, op, ptr, axis);
        if (auto reduce = dyn_cast<tt::ReduceOp>(op); reduce && !reduce.getSrcs().empty())
          reduced[cast<RankedTensorType>(reduce.getSrcs().front().getType()).getShape()] |= 1u << reduce.getAxis();
      });
      for (const Group &group : groups)
        for (Attribute encoding = encodingFor(group, reduced.lookup(group.shape)); Operation * op : group.ops)
          layouts::setAccessEncoding(op, encoding);
    }
  }

private:
  int64_t numWarps = 4, lanes = 32;

  void add(SmallVectorImpl<Group> &groups, Operation *op, Value ptr, const AxisInfoAnalysis &axis) {
    auto type = cast<RankedTensorType>(ptr.getType());
    auto pointee = cast<tt::PointerType>(type.getElementType()).getPointeeType();
    const AxisInfo *known = axis.lookup(ptr);
    AxisInfo fact = known ? *known : AxisInfo::unknown(type.getRank());

    SmallVector<unsigned> order;
    for (unsigned d = type.getRank(); d-- > 0;)
      order.push_back(d);
    llvm::stable_sort(order, [&](unsigned a, unsigned b) { return fact.contiguity[a] > fact.contiguity[b]; });

    unsigned bytes = std::max(1u, storageBytes(pointee)), fastest = order.front();
    int64_t width = std::max<int64_t>(1, std::min({fact.contiguity[fastest], fact.divisibility[fastest] / bytes,
                                                   int64_t(maxVectorBits / 8 / bytes)}));
    bool runs = fact.contiguity[fastest] > 1;

    auto *group = llvm::find_if(groups, [&](const Group &g) { return g.shape == type.getShape() && g.order == order; });
    if (group == groups.end()) {
      groups.push_back({SmallVector<int64_t>(type.getShape()), order, {}});
      group = &groups.back();
    }
    group->ops.push_back(op);
    if (isa<tt::LoadOp>(op))
      group->loads = std::max<unsigned>(group->loads, width);
    else if (runs)
      group->stores = std::min<unsigned>(group->stores, width);
  }

  Attribute encodingFor(const Group &group, unsigned reducedAxes) {
    int64_t elements = 1;
    for (int64_t s : group.shape)
      elements *= s;
    unsigned rank = group.shape.size(), fastest = group.order.front();

    int64_t width = group.stores == UINT32_MAX ? group.loads : std::max(group.loads, group.stores);
    width = std::min<int64_t>(
        {width, group.stores, group.shape[fastest], std::max<int64_t>(1, elements / (numWarps * lanes))});
    if (wideLanes)
      width = 1; // the warp's vector register is the wide access
    SmallVector<unsigned> size(rank, 1), threads(rank, 1), warps(rank, 1);
    size[fastest] = width;

    // What is left when the tile is covered goes to the last dimension served: those lanes or warps hold copies.
    auto spread = [&](int64_t count, ArrayRef<unsigned> dims, SmallVectorImpl<unsigned> &out) {
      for (unsigned d : dims) {
        int64_t free = std::max<int64_t>(1, group.shape[d] / (int64_t(size[d]) * threads[d] * warps[d]));
        out[d] = std::min(count, free);
        count /= out[d];
      }
      out[dims.back()] *= count;
    };
    spread(lanes, group.order, threads);
    SmallVector<unsigned> warpOrder(group.order);
    if (wideLanes) // a warp reads whole rows, one after the other: warps do not run side by side
      std::reverse(warpOrder.begin(), warpOrder.end());
    llvm::stable_sort(warpOrder,
                      [&](unsigned a, unsigned b) { return (reducedAxes >> a & 1) < (reducedAxes >> b & 1); });
    spread(numWarps, warpOrder, warps);
    return ttg::BlockedEncodingAttr::get(&getContext(), size, threads, warps, group.order);
  }
};

} // namespace
} // namespace tessera
