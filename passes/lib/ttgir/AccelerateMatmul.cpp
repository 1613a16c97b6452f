// Chooses how each dot is computed (by a matrix instruction or multiply-add), and the layouts of operands and
// accumulators.
#include "../Layouts.h"
#include "../target/MatrixModel.h"
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

class AccelerateMatmul : public impl::TtgirAccelerateMatmulBase<AccelerateMatmul> {
public:
  void runOnOperation() override {
    model = TargetModel::of(getOperation());
    numWarps = ttg::lookupNumWarps(getOperation());
    lanes = ttg::lookupThreadsPerWarp(getOperation());
    SmallVector<tt::DotOp> dots;
    getOperation().walk([&](tt::DotOp dot) {
      if (!ttg::getMatrixEncoding(dot.getType()))
        dots.push_back(dot);
    });
    llvm::DenseSet<Operation *> heads, tails;
    for (tt::DotOp dot : dots)
      if (tt::DotOp next = consumerOfA(dot)) {
        heads.insert(dot);
        tails.insert(next);
      }
    for (tt::DotOp dot : dots) {
      Product p = Product::of(dot);
      p.feedsA = heads.contains(dot);
      p.fedByDot = tails.contains(dot);
      auto instruction = model.matrix ? model.matrix->instruction(p) : std::nullopt;
      auto [rows, columns, depth] = instruction ? model.matrix->smallest(*instruction) : std::array<int64_t, 3>{};
      if (!instruction || p.m < rows || p.n < columns || p.k < depth)
        multiplyAdd(p);
      else if (!model.matrix->byWarpGroup(p))
        storeAsComputed(warp(p, *instruction, *model.matrix));
    }
  }

private:
  TargetModel model;
  unsigned numWarps = 4, lanes = 32;

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

  //--- matrix instructions --------------------------------------------------------------------------------------------

  static tt::DotOp warp(const Product &p, const MatrixInstruction &instruction, const MatrixModel &matrix) {
    tt::DotOp dot = p.dot;
    OpBuilder b(dot);
    ttg::MatrixEncoding accumulators = matrix.accumulators(p, instruction);
    unsigned kWidth = matrix.kWidth(p, instruction);
    auto operand = [&](unsigned index) {
      auto encoding = ttg::DotOperandEncodingAttr::get(b.getContext(), index, accumulators, kWidth);
      matrix.prepareLoad(p, instruction, encoding, index);
      return layouts::convertTo(b, dot->getOperand(index), encoding);
    };
    Value a = operand(0), bb = operand(1), c = layouts::convertTo(b, dot.getC(), accumulators);
    auto product = tt::DotOp::create(b, dot.getLoc(), a, bb, c, dot.getInputPrecision(), dot.getMaxNumImpreciseAcc());
    replaceDot(b, dot, product);
    return product;
  }

  /// Of an element of an operand in shared memory: what widens it is computed behind that.
  static unsigned bytesAsStored(Value operand) {
    unsigned bytes = storageBytes(tileType(operand));
    for (Operation *op = operand.getDefiningOp(); op && op->getNumOperands() == 1 && tileType(op->getOperand(0)) &&
                                                  (isa<ttg::ConvertLayoutOp>(op) || layouts::isUniform(op));
         op = op->getOperand(0).getDefiningOp())
      bytes = std::min(bytes, storageBytes(tileType(op->getOperand(0))));
    return bytes;
  }

  /// Stores of the product, and of tiles computed of it element by element, are done in a layout that the target likes.
  void storeAsComputed(tt::DotOp dot) {
    ttg::MatrixEncoding encoding = ttg::getMatrixEncoding(dot.getType());
    uint64_t operandBytes = 0;
    for (Value operand : {dot.getA(), dot.getB()})
      operandBytes += uint64_t(tileType(operand).getNumElements()) * bytesAsStored(operand);
    SmallVector<Value> work{dot.getResult()};
    llvm::DenseSet<Value> seen;
    while (!work.empty()) {
      Value v = work.pop_back_val();
      RankedTensorType type = tileType(v);
      if (!type || type.getShape() != dot.getType().getShape() || !seen.insert(v).second)
        continue;
      for (OpOperand &use : llvm::make_early_inc_range(v.getUses())) {
        Operation *user = use.getOwner();
        if (auto store = dyn_cast<tt::StoreOp>(user)) {
          Attribute wanted =
              store.getValue() == v ? model.matrix->storeEncoding(encoding, type, operandBytes) : Attribute();
          if (wanted)
            layouts::setAccessEncoding(store, wanted);
        } else if (isa<scf::YieldOp>(user)) {
          if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp()))
            work.push_back(loop.getResult(use.getOperandNumber()));
        } else if (isa<ttg::ConvertLayoutOp>(user) || (layouts::isUniform(user) && isMemoryEffectFree(user))) {
          llvm::append_range(work, user->getResults());
        }
      }
    }
  }

  //--- multiply-add ---------------------------------------------------------------------------------------------------

  void multiplyAdd(const Product &s) {
    tt::DotOp dot = s.dot;
    OpBuilder b(dot);
    auto operand = [&](Value v) {
      SmallVector<unsigned> order;
      if (model.wideLanes) // the vector along n is loaded as it lies
        for (unsigned d = s.rank; d-- > 0;)
          order.push_back(d);
      else
        order = layouts::memoryOrder(v);
      return allocateOperand(b, v, ttg::SwizzledSharedEncodingAttr::get(&getContext(), 1, 1, 1, order));
    };
    Value a = operand(dot.getA()), bb = operand(dot.getB());
    Value c = layouts::convertTo(b, dot.getC(), model.wideLanes ? vectorEncoding(s) : threadEncoding(s));
    replaceDot(b, dot, ttg::LocalDotOp::create(b, dot.getLoc(), a, bb, c));
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
  Attribute vectorEncoding(const Product &s) {
    unsigned batch = std::min<int64_t>(numWarps, s.batch), rest = numWarps / batch;
    unsigned along = std::min<int64_t>(lanes, s.n);
    unsigned rows = std::min<int64_t>(rest, std::max<int64_t>(1, s.m / model.accumulatorRows));
    unsigned perWarp = std::min<int64_t>(16, std::max<int64_t>(1, s.m / rows));
    return blocked(&getContext(), s.rank, {perWarp, 1}, {lanes / along, along}, {rows, rest / rows}, batch);
  }

  /// GPUs: 4x4 elements a thread use each value they read four times; lanes along n read A's as one.
  Attribute threadEncoding(const Product &s) {
    unsigned batch = std::min<int64_t>(numWarps, s.batch), rest = numWarps / batch;
    int64_t perThread = std::max<int64_t>(1, s.m * s.n / (int64_t(rest) * lanes));
    unsigned columns = std::min<int64_t>({4, s.n, perThread}), rows = std::min<int64_t>({4, s.m, perThread / columns});
    unsigned along = std::min<int64_t>(lanes, s.n / columns), down = lanes / along;
    unsigned warpRows = std::min<int64_t>(rest, std::max<int64_t>(1, s.m / (int64_t(rows) * down)));
    return blocked(&getContext(), s.rank, {rows, columns}, {down, along}, {warpRows, rest / warpRows}, batch);
  }
};

} // namespace
} // namespace tessera
