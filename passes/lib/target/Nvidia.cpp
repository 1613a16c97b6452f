// NVIDIA's matrix instructions: mma.sync of one warp, wgmma of four.
#include "MatrixModel.h"

#include "../Layouts.h"
#include "tessera/ir/ttng/Ttng.h"
#include "tessera/passes/Allocation.h"

using namespace mlir;

namespace tessera {

namespace {

using layouts::tileType;

/// Accumulators of one mma.sync; wgmma has the same depth.
constexpr int64_t kMmaRows = 16, kMmaColumns = 8;

class NvidiaMatrixModel final : public MatrixModel {
public:
  explicit NvidiaMatrixModel(unsigned capability) : capability(capability) {}

  std::optional<MatrixInstruction> instruction(const Product &s) const final {
    auto deep = [](unsigned bits) { return MatrixInstruction{MatrixFamily::Mma, 2, 16, 8, 256 / bits, bits}; };
    Type a = s.a(), b = s.b(), c = s.c();
    if (isFp8(a) && isFp8(b) && c.isF32() && takesFp8())
      return deep(8);
    if (a != b)
      return std::nullopt;
    if ((a.isF16() || a.isBF16()) && c.isF32())
      return deep(16);
    if (a.isF32() && c.isF32() && tt::DotOp(s.dot).getInputPrecision() == tt::InputPrecision::TF32)
      return deep(32);
    if (a.isInteger(8) && c.isInteger(32))
      return deep(8);
    if (a.isF64() && c.isF64())
      return MatrixInstruction{MatrixFamily::Mma, 2, 8, 8, 4, 64};
    return std::nullopt;
  }

  /// All formats fit in f16.
  Type operandType(Type a, Type b) const final {
    return takes(a) && takes(b) ? Type() : Type(Float16Type::get(a.getContext()));
  }

  tt::InputPrecision precision(tt::InputPrecision asked) const final { return asked; }

  bool executes(const MatrixInstruction &i, Type a, Type b) const final {
    return i.family == MatrixFamily::Mma && i.version == 2 && takes(a) && takes(b);
  }

  ttg::MatrixEncoding accumulators(const Product &s, const MatrixInstruction &) const final {
    SmallVector<unsigned> instruction{unsigned(kMmaRows), unsigned(kMmaColumns)};
    if (s.rank == 3)
      instruction.insert(instruction.begin(), 1);
    return ttg::NvidiaMmaEncodingAttr::get(s.dot->getContext(), 2, warpTiling(s), instruction);
  }

  MatrixInstruction widest(const MatrixInstruction &i, int64_t rows, int64_t depth) const final {
    return widestOnNvidia(capability, i, rows, depth);
  }

  /// What a register holds. Of f64 two elements, 16 bytes of a row, and what a lane has of a sum that is the next A; but
  /// the wide instruction wants two rows side by side in its registers, so that words of 16 bytes would have to be taken
  /// apart.
  unsigned kWidth(const Product &p, const MatrixInstruction &i) const final {
    if (i.bits != 64)
      return 32 / i.bits;
    bool wide = widest(i, 2 * i.m, p.k) != i;
    return (!wide || p.fedByDot) && p.k >= 8 ? 2 : 1;
  }

  /// Rows stay rows, so that copies are wide, and the swizzle is chosen so that reads do not conflict.
  Attribute sharedEncoding(const StoredOperand &stored) const final {
    RankedTensorType operand = stored.type;
    ArrayRef<unsigned> memoryOrder = stored.memoryOrder;
    ArrayRef<int32_t> order = stored.order;
    unsigned bytes = storageBytes(operand);
    // The tile as it is stored: its dimension order[i] is the operand's dimension i.
    SmallVector<int64_t> shape(order.size());
    for (auto [i, d] : llvm::enumerate(order))
      shape[d] = operand.getShape()[i];
    unsigned row = shape[memoryOrder[0]];
    LinearLayout registers = ttg::toLinearLayout(operand);
    auto make = [&](unsigned vec, unsigned perPhase, unsigned maxPhase) {
      return ttg::SwizzledSharedEncodingAttr::get(operand.getContext(), vec, perPhase, maxPhase, memoryOrder);
    };
    auto wavefronts = [&](Attribute shared) {
      LinearLayout memory = ttg::toLinearLayout(shape, shared).transpose(order);
      return sharedLoadWavefronts(registers, memory, bytes, /*matrixLoad=*/true);
    };

    // Eight rows of 16 bytes are read at once: rows that start in the same banks are shifted against each other.
    unsigned vec = std::min(16 / bytes, row);
    unsigned perPhase = std::clamp(128 / (row * bytes), 1u, 8u), maxPhase = std::min(8 / perPhase, row / vec);
    Attribute best = make(vec, perPhase, maxPhase);
    unsigned cost = wavefronts(best);
    // Other shapes of access (no ldmatrix: 8 and 32 bits against the order) need other swizzles; whole 16-byte units
    // stay.
    unsigned least = std::max<uint64_t>(1, registers.size(HwDim::Register) * registers.size(HwDim::Lane) * bytes / 128);
    for (unsigned v = vec; v <= row && cost > least; v *= 2)
      for (unsigned max = 2; max <= std::min(16u, row / v); max *= 2)
        for (unsigned per = 1; per <= 8; per *= 2) {
          Attribute candidate = make(v, per, max);
          if (unsigned c = wavefronts(candidate); c < cost)
            cost = c, best = candidate;
        }
    return best;
  }

  bool byWarpGroup(const Product &s) const final {
    tt::DotOp dot = s.dot;
    auto i = instruction(s);
    auto mma = i && i->bits != 64 ? warpGroupEncoding(s, i->k) : ttg::NvidiaMmaEncodingAttr();
    if (!mma)
      return false;
    WarpGroupOperand a = warpGroupOperand(dot.getA(), 0, 64), bb = warpGroupOperand(dot.getB(), 1, mma.getInstrN());
    if (i->bits == 32 && a.encoding && !a.transposed && bb.transposed && fitsExchanged(s, i->k))
      if (tt::DotOp other = exchanged(dot))
        return byWarpGroup(Product::of(other));
    if (!a.encoding || !bb.encoding)
      return false;
    OpBuilder b(dot);
    auto memory = [&](Value v, const WarpGroupOperand &operand) {
      unsigned bits = operand.encoding.getElementBitWidth();
      if (operand.transposed && !(bits == 32 && v == dot.getA())) // that goes through registers
        transposeOnTheWay(s, v, bits);
      return allocateOperand(b, v, operand.encoding);
    };
    Value inA = memory(dot.getA(), a), inB = memory(dot.getB(), bb), c = layouts::convertTo(b, dot.getC(), mma);
    replaceDot(b, dot,
               ttng::WarpGroupDotOp::create(b, dot.getLoc(), inA, inB, c, Value(), dot.getInputPrecision(),
                                            dot.getMaxNumImpreciseAcc(), false));
    return true;
  }

private:
  unsigned capability;

  bool takesFp8() const { return capability >= 89; }
  bool takes(Type t) const { return !tt::isFloat8(t) || (isFp8(t) && takesFp8()); }

  /// Warps over (batch, rows, columns): each warp's part as square as possible, since it reads that many rows and
  /// columns of the operands. A chained dot keeps whole rows in a warp: its result then is the next one's A as it lies.
  static SmallVector<unsigned> warpTiling(const Product &s) {
    bool rowsOnly = s.feedsA || s.fedByDot;
    unsigned batch = std::min<int64_t>(s.numWarps, s.batch), rows = 1, columns = 1;
    while (batch * rows * columns < s.numWarps) {
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

  //--- wgmma ----------------------------------------------------------------------------------------------------------

  /// Accumulators of wgmma, or null where it does not apply. Warp groups lie along the rows first: each then reads only
  /// its own rows of A.
  ttg::NvidiaMmaEncodingAttr warpGroupEncoding(const Product &s, unsigned depth) const {
    if (!hasWarpGroupMma(capability) || s.rank != 2 || s.m < 64 || s.numWarps % 4)
      return {};
    unsigned groups = s.numWarps / 4, alongRows = std::min<int64_t>(groups, s.m / 64),
             alongColumns = groups / alongRows;
    // An instruction's accumulators take half of a thread's registers at most: no program compiles that needs them all.
    int64_t columns = std::min<int64_t>({256, 2048 / s.numWarps, s.n / alongColumns});
    if (columns < kMmaColumns)
      return {};
    return ttg::NvidiaMmaEncodingAttr::get(s.dot->getContext(), 3, {4 * alongRows, alongColumns},
                                           {16, unsigned(columns), depth});
  }

  /// An operand of wgmma in shared memory: rows along k, or, for 16-bit elements, as they lie in device memory.
  struct WarpGroupOperand {
    ttg::NvmmaSharedEncodingAttr encoding; ///< null where the instruction cannot read the tile
    bool transposed = false;               ///< rows have to change their direction on the way
  };
  static WarpGroupOperand warpGroupOperand(Value v, unsigned index, unsigned extent) {
    RankedTensorType type = tileType(v);
    SmallVector<unsigned> order = layouts::memoryOrder(v);
    unsigned bits = tt::bitWidth(type.getElementType()), k = index == 0 ? 1 : 0;
    WarpGroupOperand operand;
    operand.transposed = bits != 16 && order[0] != k;
    if (operand.transposed)
      std::swap(order[0], order[1]);
    auto encoding = ttg::NvmmaSharedEncodingAttr::get(v.getContext(), type.getShape(), order, bits);
    if (planWarpGroupOperand(ttg::toLinearLayout(type.getShape(), encoding), k, extent, bits / 8))
      operand.encoding = encoding;
    return operand;
  }

  bool fitsExchanged(const Product &s, unsigned depth) const {
    Product t = s;
    std::swap(t.m, t.n);
    auto mma = s.feedsA ? ttg::NvidiaMmaEncodingAttr() : warpGroupEncoding(t, depth);
    if (!mma)
      return false;
    SmallVector<int64_t> shape{s.k, s.m};
    auto encoding = ttg::NvmmaSharedEncodingAttr::get(s.dot->getContext(), shape, {0, 1}, 32);
    return planWarpGroupOperand(ttg::toLinearLayout(shape, encoding), 0, mma.getInstrN(), 4).has_value();
  }

  /// (B^T A^T)^T: of 32-bit elements only A can lie against k, since its fragments are read by single elements. Null
  /// where that would be in vain, or the sum is not just carried around a loop, which then carries it transposed.
  static tt::DotOp exchanged(tt::DotOp dot) {
    auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
    auto arg = dyn_cast<BlockArgument>(dot.getC());
    if (!loop || !loadOf(dot.getB()) || !arg || arg.getOwner() != loop.getBody() || !arg.hasOneUse() ||
        !dot->hasOneUse() || loop.getTiedLoopYieldedValue(arg)->get() != dot.getResult())
      return {};
    OpBuilder b(loop);
    auto turned = [&](Value v) -> Value {
      return tt::TransOp::create(b, dot.getLoc(), v, ArrayRef<int32_t>{1, 0}).getResult();
    };
    OpOperand &init = *loop.getTiedLoopInit(arg);
    Value result = loop.getTiedLoopResult(arg);
    init.set(turned(init.get()));
    arg.setType(init.get().getType());
    result.setType(init.get().getType());
    b.setInsertionPointAfter(loop);
    Value back = turned(result);
    result.replaceAllUsesExcept(back, back.getDefiningOp());
    b.setInsertionPoint(dot);
    Value a = turned(dot.getB()), bb = turned(dot.getA());
    auto other = tt::DotOp::create(b, dot.getLoc(), a, bb, arg, dot.getInputPrecision(), dot.getMaxNumImpreciseAcc());
    other->setDiscardableAttrs(dot->getDiscardableAttrDictionary());
    loop.getTiedLoopYieldedValue(arg)->set(other);
    dot.erase();
    return other;
  }

  /// The operand is loaded along m or n but has to lie along k. Elements of 32 bits: lanes take 8 elements along the
  /// run (one sector of memory) by 4 along k (one unit of 16 bytes in shared memory): copies of 4 bytes, asynchronous
  /// ones too, then use whole sectors and every bank once. Elements of 8 bits: a thread takes 4 elements along k, which
  /// is one register of shared memory's side.
  static void transposeOnTheWay(const Product &s, Value v, unsigned bits) {
    tt::LoadOp load = loadOf(v);
    auto blocked =
        load ? dyn_cast<ttg::BlockedEncodingAttr>(layouts::encodingOf(load.getResult())) : ttg::BlockedEncodingAttr();
    if (!blocked)
      return;
    ArrayRef<int64_t> shape = tileType(load.getResult()).getShape();
    unsigned run = blocked.getOrder()[0], k = blocked.getOrder()[1];
    SmallVector<unsigned> size{1, 1}, threads{1, 1}, warps{1, 1};
    if (bits == 32) {
      threads[run] = std::min<int64_t>(8, shape[run]);
      threads[k] = s.lanes / threads[run];
    } else {
      int64_t perThread = std::max<int64_t>(1, shape[0] * shape[1] / (int64_t(s.numWarps) * s.lanes));
      size[k] = std::min<int64_t>({4, shape[k], perThread});
      size[run] = std::min<int64_t>(blocked.getSizePerThread()[run], std::max<int64_t>(1, perThread / size[k]));
      threads[run] = std::min<int64_t>(s.lanes, std::max<int64_t>(1, shape[run] / size[run]));
      threads[k] = s.lanes / threads[run];
    }
    // Copies of 4 bytes are many: a warp takes neighbouring sectors, so that they share addresses.
    unsigned first = bits == 32 ? k : run, second = bits == 32 ? run : k;
    warps[first] = std::min<int64_t>(s.numWarps, std::max<int64_t>(1, shape[first] / (size[first] * threads[first])));
    warps[second] = s.numWarps / warps[first];
    layouts::setAccessEncoding(
        load, ttg::BlockedEncodingAttr::get(load.getContext(), size, threads, warps, blocked.getOrder()));
  }
};

} // namespace

std::unique_ptr<MatrixModel> nvidiaMatrixModel(unsigned capability) {
  return capability >= 80 ? std::make_unique<NvidiaMatrixModel>(capability) : nullptr;
}

} // namespace tessera
