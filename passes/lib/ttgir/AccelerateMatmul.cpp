// Chooses how each dot is computed (wgmma, mma.sync or multiply-add), and the layouts of operands and accumulators.
#include "../Layouts.h"
#include "../MatrixUnits.h"
#include "tessera/ir/ttng/Ttng.h"
#include "tessera/passes/Allocation.h"
#include "tessera/passes/Passes.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTGIRACCELERATEMATMUL
#include "tessera/passes/Passes.h.inc"

namespace {

using layouts::tileType;
using Unit = TargetModel::MatrixUnit;

class AccelerateMatmul : public impl::TtgirAccelerateMatmulBase<AccelerateMatmul> {
public:
  void runOnOperation() override {
    model = TargetModel::of(getOperation());
    numWarps = ttg::lookupNumWarps(getOperation());
    lanes = ttg::lookupThreadsPerWarp(getOperation());
    SmallVector<tt::DotOp> dots;
    getOperation().walk([&](tt::DotOp dot) {
      if (!isa_and_nonnull<ttg::NvidiaMmaEncodingAttr>(dot.getType().getEncoding()))
        dots.push_back(dot);
    });
    for (tt::DotOp dot : dots)
      if (tt::DotOp next = consumerOfA(dot)) {
        chained.insert(dot);
        chained.insert(next);
      }
    for (tt::DotOp dot : dots) {
      Shape s = shapeOf(dot);
      int64_t depth = instructionDepth(dot, model);
      if (!depth || s.m < kMmaRows || s.n < kMmaColumns || s.k < depth)
        multiplyAdd(dot, s);
      else if (!warpGroup(dot, s, depth))
        warp(dot, s);
    }
  }

private:
  struct Shape {
    int64_t batch, m, n, k;
    unsigned rank;
  };

  TargetModel model;
  unsigned numWarps = 4, lanes = 32;
  llvm::DenseSet<Operation *> chained; ///< dots whose result is another's A, and those others

  static Shape shapeOf(tt::DotOp dot) {
    ArrayRef<int64_t> d = tileType(dot.getResult()).getShape();
    unsigned rank = d.size();
    return {rank == 3 ? d[0] : 1, d[rank - 2], d[rank - 1], tileType(dot.getA()).getShape().back(), rank};
  }

  /// The dot whose A is computed element by element from this one's result.
  static tt::DotOp consumerOfA(tt::DotOp dot) {
    SmallVector<Value> work{dot.getResult()};
    llvm::DenseSet<Value> seen;
    while (!work.empty()) {
      Value v = work.pop_back_val();
      if (!seen.insert(v).second)
        continue;
      for (OpOperand &use : v.getUses()) {
        Operation *user = use.getOwner();
        if (auto next = dyn_cast<tt::DotOp>(user)) {
          if (use.getOperandNumber() == 0)
            return next;
        } else if (user->getNumResults() == 1 && (isa<ttg::ConvertLayoutOp>(user) || layouts::isUniform(user)) &&
                   tileType(user->getResult(0))) {
          work.push_back(user->getResult(0));
        }
      }
    }
    return {};
  }

  //--- mma.sync -------------------------------------------------------------------------------------------------------

  /// Warps over (batch, rows, columns): each warp's part as square as possible, since it reads that many rows and
  /// columns of the operands. A chained dot keeps whole rows in a warp: its result then is the next one's A as it lies.
  SmallVector<unsigned> warpTiling(const Shape &s, bool rowsOnly) const {
    unsigned batch = std::min<int64_t>(numWarps, s.batch), rows = 1, columns = 1;
    while (batch * rows * columns < numWarps) {
      bool moreRows = s.m / rows > kMmaRows, moreColumns = s.n / columns > 2 * kMmaColumns; // ldmatrix takes two blocks
      if (moreRows && (rowsOnly || !moreColumns || s.m / rows > s.n / columns))
        rows *= 2;
      else
        columns *= 2;
    }
    if (s.rank == 2)
      return {rows, columns};
    return {batch, rows, columns};
  }

  void warp(tt::DotOp dot, const Shape &s) {
    OpBuilder b(dot);
    MLIRContext *context = &getContext();
    SmallVector<unsigned> instruction{unsigned(kMmaRows), unsigned(kMmaColumns)};
    if (s.rank == 3)
      instruction.insert(instruction.begin(), 1);
    auto mma = ttg::NvidiaMmaEncodingAttr::get(context, 2, warpTiling(s, chained.contains(dot)), instruction);
    auto operand = [&](Value v, unsigned index) {
      unsigned perRegister = 32 / tt::bitWidth(tileType(v).getElementType());
      return layouts::convertTo(b, v, ttg::DotOperandEncodingAttr::get(context, index, mma, perRegister));
    };
    Value a = operand(dot.getA(), 0), bb = operand(dot.getB(), 1), c = layouts::convertTo(b, dot.getC(), mma);
    replace(b, dot, tt::DotOp::create(b, dot.getLoc(), a, bb, c, dot.getInputPrecision(), dot.getMaxNumImpreciseAcc()));
  }

  //--- wgmma ----------------------------------------------------------------------------------------------------------

  /// Accumulators of wgmma, or null where it does not apply. Warp groups lie along the rows first: each then reads only
  /// its own rows of A.
  ttg::NvidiaMmaEncodingAttr warpGroupEncoding(const Shape &s, int64_t depth) {
    if (model.matrixUnit != Unit::WarpGroup || s.rank != 2 || s.m < 64 || numWarps % 4)
      return {};
    unsigned groups = numWarps / 4, alongRows = std::min<int64_t>(groups, s.m / 64), alongColumns = groups / alongRows;
    int64_t columns = std::min<int64_t>(256, s.n / alongColumns);
    if (columns < kMmaColumns)
      return {};
    return ttg::NvidiaMmaEncodingAttr::get(&getContext(), 3, {4 * alongRows, alongColumns},
                                           {16, unsigned(columns), unsigned(depth)});
  }

  /// An operand of wgmma in shared memory: rows along k, or, for 16-bit elements, as they lie in device memory.
  struct WarpGroupOperand {
    ttg::NvmmaSharedEncodingAttr encoding; ///< null where the instruction cannot read the tile
    bool transposed = false;               ///< rows have to change their direction on the way
  };
  WarpGroupOperand warpGroupOperand(Value v, unsigned index, unsigned extent) {
    RankedTensorType type = tileType(v);
    SmallVector<unsigned> order = layouts::memoryOrder(v);
    unsigned bits = tt::bitWidth(type.getElementType()), k = index == 0 ? 1 : 0;
    WarpGroupOperand operand;
    operand.transposed = bits != 16 && order[0] != k;
    if (operand.transposed)
      std::swap(order[0], order[1]);
    auto encoding = ttg::NvmmaSharedEncodingAttr::get(&getContext(), type.getShape(), order, bits);
    if (planWgmmaOperand(ttg::toLinearLayout(type.getShape(), encoding), k, extent, bits / 8))
      operand.encoding = encoding;
    return operand;
  }

  bool warpGroup(tt::DotOp dot, const Shape &s, int64_t depth) {
    auto mma = warpGroupEncoding(s, depth);
    if (!mma)
      return false;
    WarpGroupOperand a = warpGroupOperand(dot.getA(), 0, 64), bb = warpGroupOperand(dot.getB(), 1, mma.getInstrN());
    if (!a.encoding || !bb.encoding)
      return false;
    OpBuilder b(dot);
    auto memory = [&](Value v, const WarpGroupOperand &operand) {
      if (operand.transposed)
        transposeOnTheWay(v, operand.encoding.getElementBitWidth());
      return allocate(b, v, operand.encoding);
    };
    Value inA = memory(dot.getA(), a), inB = memory(dot.getB(), bb), c = layouts::convertTo(b, dot.getC(), mma);
    replace(b, dot,
            ttng::WarpGroupDotOp::create(b, dot.getLoc(), inA, inB, c, Value(), dot.getInputPrecision(),
                                         dot.getMaxNumImpreciseAcc(), false));
    return true;
  }

  /// The operand is loaded along m or n but has to lie along k. Elements of 32 bits: lanes take 8 elements along the
  /// run (one sector of memory) by 4 along k (one unit of 16 bytes in shared memory): copies of 4 bytes, asynchronous
  /// ones too, then use whole sectors and every bank once. Elements of 8 bits: a thread takes 4 elements along k, which
  /// is one register of shared memory's side.
  void transposeOnTheWay(Value v, unsigned bits) {
    tt::LoadOp load;
    while (Operation *op = v.getDefiningOp()) {
      if (!v.hasOneUse() || (load = dyn_cast<tt::LoadOp>(op)) || !isa<ttg::ConvertLayoutOp, tt::TransOp>(op))
        break;
      v = op->getOperand(0);
    }
    auto blocked = load ? dyn_cast<ttg::BlockedEncodingAttr>(layouts::encodingOf(v)) : ttg::BlockedEncodingAttr();
    if (!blocked)
      return;
    ArrayRef<int64_t> shape = tileType(v).getShape();
    unsigned run = blocked.getOrder()[0], k = blocked.getOrder()[1];
    SmallVector<unsigned> size{1, 1}, threads{1, 1}, warps{1, 1};
    if (bits == 32) {
      threads[run] = std::min<int64_t>(8, shape[run]);
      threads[k] = lanes / threads[run];
    } else {
      int64_t perThread = std::max<int64_t>(1, shape[0] * shape[1] / (int64_t(numWarps) * lanes));
      size[k] = std::min<int64_t>({4, shape[k], perThread});
      size[run] = std::min<int64_t>(blocked.getSizePerThread()[run], std::max<int64_t>(1, perThread / size[k]));
      threads[run] = std::min<int64_t>(lanes, std::max<int64_t>(1, shape[run] / size[run]));
      threads[k] = lanes / threads[run];
    }
    warps[run] = std::min<int64_t>(numWarps, std::max<int64_t>(1, shape[run] / (size[run] * threads[run])));
    warps[k] = numWarps / warps[run];
    layouts::setAccessEncoding(load,
                               ttg::BlockedEncodingAttr::get(&getContext(), size, threads, warps, blocked.getOrder()));
  }

  //--- multiply-add ---------------------------------------------------------------------------------------------------

  void multiplyAdd(tt::DotOp dot, const Shape &s) {
    OpBuilder b(dot);
    auto operand = [&](Value v) {
      SmallVector<unsigned> order;
      if (model.wideLanes) // the vector along n is loaded as it lies
        for (unsigned d = s.rank; d-- > 0;)
          order.push_back(d);
      else
        order = layouts::memoryOrder(v);
      return allocate(b, v, ttg::SwizzledSharedEncodingAttr::get(&getContext(), 1, 1, 1, order));
    };
    Value a = operand(dot.getA()), bb = operand(dot.getB());
    Value c = layouts::convertTo(b, dot.getC(), model.wideLanes ? vectorEncoding(s) : threadEncoding(s));
    replace(b, dot, ttg::LocalDotOp::create(b, dot.getLoc(), a, bb, c));
  }

  static Attribute blocked(MLIRContext *context, unsigned rank, SmallVector<unsigned> size,
                           SmallVector<unsigned> threads, SmallVector<unsigned> warps, unsigned batchWarps) {
    SmallVector<unsigned> order;
    for (unsigned d = rank; d-- > 0;)
      order.push_back(d);
    if (rank == 3) {
      size.insert(size.begin(), 1);
      threads.insert(threads.begin(), 1);
      warps.insert(warps.begin(), batchWarps);
    }
    return ttg::BlockedEncodingAttr::get(context, size, threads, warps, order);
  }

  /// Native CPU: the lanes along n are one vector of B; a warp has several rows, so that each vector is used as often.
  Attribute vectorEncoding(const Shape &s) {
    unsigned batch = std::min<int64_t>(numWarps, s.batch), rest = numWarps / batch;
    unsigned along = std::min<int64_t>(lanes, s.n);
    unsigned rows = std::min<int64_t>(rest, std::max<int64_t>(1, s.m / model.accumulatorRows));
    unsigned perWarp = std::min<int64_t>(16, std::max<int64_t>(1, s.m / rows));
    return blocked(&getContext(), s.rank, {perWarp, 1}, {lanes / along, along}, {rows, rest / rows}, batch);
  }

  /// GPUs: 4x4 elements a thread use each value they read four times; lanes along n read A's as one.
  Attribute threadEncoding(const Shape &s) {
    unsigned batch = std::min<int64_t>(numWarps, s.batch), rest = numWarps / batch;
    int64_t perThread = std::max<int64_t>(1, s.m * s.n / (int64_t(rest) * lanes));
    unsigned columns = std::min<int64_t>({4, s.n, perThread}), rows = std::min<int64_t>({4, s.m, perThread / columns});
    unsigned along = std::min<int64_t>(lanes, s.n / columns), down = lanes / along;
    unsigned warpRows = std::min<int64_t>(rest, std::max<int64_t>(1, s.m / (int64_t(rows) * down)));
    return blocked(&getContext(), s.rank, {rows, columns}, {down, along}, {warpRows, rest / warpRows}, batch);
  }

  //--- common ---------------------------------------------------------------------------------------------------------

  static Value allocate(OpBuilder &b, Value v, Attribute encoding) {
    while (auto convert = v.getDefiningOp<ttg::ConvertLayoutOp>()) // any layout can be stored
      v = convert.getSrc();
    return layouts::storeToShared(b, v, encoding);
  }

  static void replace(OpBuilder &b, tt::DotOp dot, Operation *by) {
    by->setDiscardableAttrs(dot->getDiscardableAttrDictionary());
    dot.replaceAllUsesWith(layouts::convertTo(b, by->getResult(0), dot.getType().getEncoding()));
    dot.erase();
  }
};

} // namespace
} // namespace tessera
