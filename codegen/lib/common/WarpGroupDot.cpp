// Matrix products of warp groups: operands in shared memory by descriptors, A also in registers.
#include "MatrixTile.h"

#include "tessera/ir/ttng/Ttng.h"
#include "tessera/passes/Allocation.h"
#include "tessera/passes/InFlight.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace tessera::codegen {

using mlir::LogicalResult;
using mlir::success;
using Tile = MatrixTile;

namespace {

/// What lane bit `bit` of an accumulator fragment of a warp group moves: columns by 2 and 4, then rows by 1, 2 and 4.
bool isAccumulatorLane(const Tile &c, unsigned bit) {
  int64_t column = bit < 2 ? 2 << bit : 0, row = bit < 2 ? 0 : 1 << (bit - 2);
  return c.basis(HwDim::Lane, bit) == Tile::At{0, row < c.rows() ? row : 0, column < c.columns() ? column : 0};
}

/// Whether lanes and the four warps of a group hold accumulators as its instruction does.
bool fitsWarpGroup(const Tile &c, unsigned columns) {
  for (unsigned bit = 0; bit < 5; ++bit)
    if (!isAccumulatorLane(c, bit))
      return false;
  for (unsigned bit = 0; bit < 2; ++bit)
    if (c.basis(HwDim::Warp, bit) != Tile::At{0, 16 << bit, 0})
      return false;
  return c.rows() >= 64 && c.columns() >= columns;
}

bool isZero(mlir::Value v) {
  return mlir::matchPattern(v, mlir::m_Zero()) || mlir::matchPattern(v, mlir::m_AnyZeroFloat());
}

/// Products of 8-bit floats are summed with fewer bits than f32 has. Where that is limited, parts of the sum are added
/// up apart: the steps along k of one part. 0: all steps at once.
unsigned stepsOfPart(ttng::WarpGroupDotOp op) {
  auto b = mlir::cast<ttg::MemDescType>(op.getB().getType());
  unsigned limit = op.getMaxNumImpreciseAcc(), depth = 32; // of a step
  if (!limit || storageBytes(b.getElementType()) != 1 || !mlir::isa<mlir::FloatType>(b.getElementType()))
    return 0;
  unsigned steps = std::max(1u, limit / depth);
  return steps * depth < b.getShape()[0] ? steps : 0;
}

/// Whether the sum may be one that is still being added to.
bool mayBeInFlight(mlir::Value sum, llvm::SmallPtrSetImpl<mlir::Value> &seen) {
  if (!seen.insert(sum).second)
    return false;
  if (auto dot = sum.getDefiningOp<ttng::WarpGroupDotOp>())
    return dot.getIsAsync() && !stepsOfPart(dot); // parts are waited for
  if (auto wait = sum.getDefiningOp<ttng::WarpGroupDotWaitOp>())
    return wait.getPendings() &&
           mayBeInFlight(wait.getInputs()[mlir::cast<mlir::OpResult>(sum).getResultNumber()], seen);
  auto arg = mlir::dyn_cast<mlir::BlockArgument>(sum);
  auto loop = arg ? mlir::dyn_cast<mlir::scf::ForOp>(arg.getOwner()->getParentOp()) : nullptr;
  return loop && arg != loop.getInductionVar() &&
         (mayBeInFlight(loop.getTiedLoopInit(arg)->get(), seen) ||
          mayBeInFlight(loop.getTiedLoopYieldedValue(arg)->get(), seen));
}

} // namespace

/// Byte offset of the buffer's allocation in units of 16 bytes.
V Emitter::descriptorStart(mlir::Value buffer) {
  if (auto trans = buffer.getDefiningOp<ttg::MemDescTransOp>())
    return descriptorStart(trans.getSrc());
  if (auto part = buffer.getDefiningOp<ttg::MemDescSubsliceOp>())
    return descriptorStart(part.getSrc());
  if (auto one = buffer.getDefiningOp<ttg::MemDescIndexOp>()) {
    V moved = b.CreateMul(getUniform(one.getIndex()), b.getInt32(bufferStride(one) / 16), "", true, true);
    return addLast(descriptorStart(one.getSrc()), moved);
  }
  return b.CreateLShr(getUniform(buffer), 4);
}

/// Descriptors of the parts of `buffer` that start at the flat indices `origins` (of the whole view) for warp 0; those
/// of the other warps are further by `warps`. Empty where the hardware's permutation would not be the layout's.
llvm::SmallVector<V> Emitter::descriptors(mlir::Value buffer, const WarpGroupOperand &operand,
                                          llvm::ArrayRef<uint64_t> origins, const LinearLayout::Bases &warps) {
  auto type = mlir::cast<ttg::MemDescType>(buffer.getType());
  // Every origin is an input of its own: they need be no linear function of their number.
  LinearLayout parts(type.getShape(), {{HwDim::Register, LinearLayout::Bases(origins)}, {HwDim::Warp, warps}});
  SharedTile tile = placeOf(parts, buffer);
  if (tile.movingView)
    return {};
  unsigned shift = llvm::Log2_32(16 / tile.elementBytes); // elements to units of 16 bytes
  LinearLayout::Bases moves;
  uint64_t mask = 0, unaligned = 0;
  for (uint64_t basis : tile.offsets.bases(HwDim::Warp)) {
    moves.push_back(basis >> shift);
    unaligned |= basis;
  }

  // What is the same in every iteration of a loop is computed in the entry block.
  V fixed = nullptr;
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b);
    llvm::BasicBlock &entry = function->getEntryBlock();
    if (!entry.getTerminator())
      b.SetInsertPoint(&entry);
    fixed = b.CreateOr(target.sharedBaseOfDescriptors(b), b.getInt32(operand.leadingBytes / 16 << 16), "", true);
    if (llvm::any_of(moves, [](uint64_t move) { return move != 0; }))
      fixed = b.CreateAdd(fixed, applyBits(moves, target.uniformWarpId(b), mask), "", true, true);
  }
  V start = addLast(fixed, descriptorStart(buffer));
  unsigned swizzle = operand.swizzleBytes ? 8 - llvm::Log2_32(operand.swizzleBytes) : 0; // 128: 1, 64: 2, 32: 3
  uint64_t high = operand.strideBytes / 16 | uint64_t(swizzle) << 30;
  llvm::SmallVector<V> result;
  for (uint64_t offset : tile.offsets.bases(HwDim::Register)) {
    offset ^= tile.view;
    unaligned |= offset;
    if (mask & offset >> shift)
      return {}; // the sum would not be the xor
    V low = addLast(start, b.getInt32(offset >> shift));
    result.push_back(b.CreateOr(b.CreateZExt(low, b.getInt64Ty()), b.getInt64(high << 32), "", true));
  }
  if (unaligned & ((1u << shift) - 1))
    return {};
  return result;
}

class Emitter::WarpGroupProduct {
public:
  WarpGroupProduct(Emitter &e, ttng::WarpGroupDotOp op)
      : e(e), op(op), c(e.layoutOf(op.getType())), bytes(storageBytes(elementOf(op.getA()))) {}

  LogicalResult emit() {
    if (failed(findInstruction()) || failed(checkReaders()))
      return mlir::failure();
    findParts();
    if (failed(takeOperands()))
      return mlir::failure();
    return multiply();
  }

private:
  /// One instruction's tile of accumulators, in the part of warp 0.
  struct Part {
    int64_t row, column;
  };
  Emitter &e;
  ttng::WarpGroupDotOp op;
  const Tile c;
  unsigned bytes; ///< of an element of A and B
  WarpGroupShape shape{};
  unsigned steps = 0; ///< instructions along k
  llvm::SmallVector<Part> parts;
  llvm::SmallVector<int64_t> rows, columns; ///< where parts begin
  llvm::SmallVector<V> descA, descB;        ///< by row (or column) and step
  std::optional<Tile> a;                    ///< where A is in registers

  static mlir::Type elementOf(mlir::Value v) { return mlir::cast<mlir::ShapedType>(v.getType()).getElementType(); }

  LogicalResult findInstruction() {
    auto kindA = matrixType(elementOf(op.getA())), kindB = matrixType(elementOf(op.getB()));
    auto mma = ttg::getMma(mlir::cast<mlir::RankedTensorType>(op.getType()));
    llvm::Type *acc = e.scalarType(op.getType());
    if (!kindA || !kindB || kindA == MatrixType::F64 || !(acc->isFloatTy() || acc->isIntegerTy(32)) || !mma)
      return op.emitOpError("has element types that no matrix instruction takes");
    shape = {mma.getInstrN(), 32 / bytes, *kindA, *kindB, acc, false, false};
    int64_t sizeK = mlir::cast<ttg::MemDescType>(op.getB().getType()).getShape()[0];
    if (!fitsWarpGroup(c, shape.n) || sizeK < shape.k)
      return op.emitOpError("has accumulators whose layout is not that of its instruction");
    steps = sizeK / shape.k;
    return success();
  }

  /// A sum in flight may be handed on, to products that add to it, to waits and around loops; others would read
  /// registers that nobody has written yet. An executor with checks reports it, and sees more.
  LogicalResult checkReaders() {
    if (!op.getIsAsync() || stepsOfPart(op) || e.target.wantsTags())
      return success();
    for (mlir::OpOperand &use : op->getUses()) {
      mlir::Operation *user = use.getOwner();
      auto dot = mlir::dyn_cast<ttng::WarpGroupDotOp>(user);
      bool handsOn = dot ? &use == &dot.getCMutable()
                         : mlir::isa<ttng::WarpGroupDotWaitOp, mlir::LoopLikeOpInterface>(user) ||
                               user->hasTrait<mlir::OpTrait::IsTerminator>();
      if (!handsOn)
        return user->emitOpError("reads a product in flight: wait for it before (ttng.warp_group_dot_wait)");
    }
    return success();
  }

  void findParts() {
    for (unsigned r = 0; r < c.numRegisters(); ++r) {
      Tile::At at = c.imageOf(r);
      if (at.row & 8 || at.column % shape.n)
        continue;
      parts.push_back({at.row, at.column});
      if (!llvm::is_contained(rows, at.row))
        rows.push_back(at.row);
      if (!llvm::is_contained(columns, at.column))
        columns.push_back(at.column);
    }
  }

  /// Descriptors of the operand in `buffer` for each of `starts` (rows or columns), step by step. Empty where the
  /// instruction cannot read it.
  llvm::SmallVector<V> descriptorsOf(mlir::Value buffer, unsigned kDim, unsigned size, llvm::ArrayRef<int64_t> starts,
                                     bool &transposed) {
    auto type = mlir::cast<ttg::MemDescType>(buffer.getType());
    auto operand = planWarpGroupOperand(ttg::allocationLayout(type), kDim, size, bytes);
    if (!operand)
      return {};
    transposed = operand->transposed;
    auto flat = [&](int64_t k, int64_t other) -> uint64_t {
      return kDim == 1 ? other * type.getShape()[1] + k : k * type.getShape()[1] + other;
    };
    llvm::SmallVector<uint64_t> origins;
    for (int64_t start : starts)
      for (unsigned step = 0; step < steps; ++step)
        origins.push_back(flat(step * shape.k, start));
    LinearLayout::Bases warps;
    for (unsigned bit = 0; bit < c.numBits(HwDim::Warp); ++bit) {
      Tile::At moved = c.basis(HwDim::Warp, bit);
      warps.push_back(bit < 2 ? 0 : flat(0, kDim == 1 ? moved.row : moved.column));
    }
    return e.descriptors(buffer, *operand, origins, warps);
  }

  LogicalResult takeOperands() {
    auto misplaced = [&] {
      return op.emitOpError("has an operand in shared memory in a form that the warp group cannot read");
    };
    descB = descriptorsOf(op.getB(), 0, shape.n, columns, shape.transB);
    if (descB.empty())
      return misplaced();
    auto tileA = mlir::dyn_cast<mlir::RankedTensorType>(op.getA().getType());
    if (!tileA) {
      descA = descriptorsOf(op.getA(), 1, 64, rows, shape.transA);
      return descA.empty() ? LogicalResult(misplaced()) : success();
    }
    a.emplace(e.layoutOf(tileA));
    for (unsigned bit = 0; bit < 5; ++bit)
      if (a->basis(HwDim::Lane, bit) !=
          (bit < 2 ? Tile::At{0, 0, int64_t(4 / bytes) << bit} : Tile::At{0, int64_t(1) << (bit - 2), 0}))
        return misplacedA();
    if (!e.target.wantsTags() && overwritesOperandInFlight(op)) // an executor with checks reports it
      return op.emitOpError("with A in registers is left unfinished where these are written again: wait for it before");
    return success();
  }
  LogicalResult misplacedA() { return op.emitOpError("has an operand A whose layout is not that of its instruction"); }

  /// What a product at that row and step takes as its A: one descriptor, or four words; false where registers lack
  /// them.
  bool appendA(llvm::SmallVectorImpl<V> &words, unsigned row, unsigned step) {
    if (!a) {
      words.push_back(descA[row * steps + step]);
      return true;
    }
    llvm::ArrayRef<V> values = e.get(op.getA());
    for (unsigned half : {0, 1})
      for (unsigned upper : {0, 8}) {
        Lanes elements;
        for (unsigned i = 0; i < 4 / bytes; ++i) {
          auto reg = a->find({0, rows[row] | upper, int64_t(step * shape.k + half * shape.k / 2 + i)});
          if (!reg)
            return false;
          elements.push_back(values[*reg]);
        }
        words.push_back(e.pack(elements));
      }
    return true;
  }

  /// Loads of A's words come just before the rows that take them, and so while the rows before are multiplied; not
  /// across `writer`, the last instruction of `block` that writes memory.
  static void bringLoads(llvm::ArrayRef<V> words, llvm::BasicBlock *block, llvm::Instruction *writer) {
    for (V word : words) {
      auto *cast = llvm::dyn_cast<llvm::BitCastInst>(word);
      auto *load = cast ? llvm::dyn_cast<llvm::LoadInst>(cast->getOperand(0)) : nullptr;
      if (load && load->hasOneUse() && load->getParent() == block && (!writer || writer->comesBefore(load)))
        load->moveBefore(cast->getIterator());
    }
  }

  LogicalResult multiply() {
    unsigned stepsAtOnce = stepsOfPart(op);
    const bool partial = stepsAtOnce > 0;
    if (!partial)
      stepsAtOnce = steps;
    V useC = op.getUseC() ? e.getUniform(op.getUseC()) : e.b.getInt1(!isZero(op.getC()));
    V none = llvm::Constant::getNullValue(e.valueType(op.getType()));
    Lanes result(e.get(op.getC()));
    if (llvm::SmallPtrSet<mlir::Value, 8> seen; partial && mayBeInFlight(op.getC(), seen))
      result = Lanes(e.target.warpGroupWait(e.b, 0, result)); // it is read by ordinary additions
    llvm::BasicBlock *block = e.b.GetInsertBlock();
    auto writers = llvm::make_filter_range(llvm::reverse(*block), [](auto &i) { return i.mayWriteToMemory(); });
    llvm::Instruction *writer = writers.empty() ? nullptr : &*writers.begin();
    for (unsigned first = 0; first < steps; first += stepsAtOnce) {
      Lanes sums = result;
      if (failed(emitGroup(first, std::min(steps, first + stepsAtOnce), partial ? e.b.getFalse() : useC, writer, sums)))
        return mlir::failure();
      if (partial || !op.getIsAsync())
        sums = Lanes(e.target.warpGroupWait(e.b, 0, sums));
      for (auto [sum, value] : llvm::zip_equal(result, sums))
        sum = !partial ? value
              : first  ? e.b.CreateFAdd(sum, value)
                       : e.b.CreateFAdd(e.b.CreateSelect(useC, sum, none), value);
    }
    e.set(op.getResult(), std::move(result));
    return success();
  }

  /// Starts the products of all parts for the steps [first, end) and closes the group: `sums`, ignored where the
  /// uniform i1 `useSums` is false, become their results.
  LogicalResult emitGroup(unsigned first, unsigned end, V useSums, llvm::Instruction *writer, Lanes &sums) {
    llvm::BasicBlock *block = e.b.GetInsertBlock();
    e.target.warpGroupFence(e.b);
    llvm::SmallVector<unsigned> registers; // of accumulators, and what is added to them, not started yet
    llvm::SmallVector<V> values, words, inB;
    for (auto [i, part] : llvm::enumerate(parts)) {
      for (unsigned j = 0; j < shape.n / 2; ++j) { // of a row, by 8 columns; then the row 8 on; then the next column
        registers.push_back(*c.find({0, part.row | (j & 2) * 4, part.column | (j / 4 * 8 + j % 2)}));
        values.push_back(sums[registers.back()]);
      }
      unsigned row = llvm::find(rows, part.row) - rows.begin(),
               column = llvm::find(columns, part.column) - columns.begin();
      for (unsigned step = first; step < end; ++step)
        if (!appendA(words, row, step))
          return misplacedA();
      inB.append(descB.begin() + column * steps + first, descB.begin() + column * steps + end);
      // With both operands in memory all start together; with A in registers each when its words are there, unless
      // other products are in flight meanwhile: behind a fence between the rows the wait would leave fewer of them in
      // flight.
      if ((!a || op.getIsAsync()) && i + 1 < parts.size())
        continue;
      bringLoads(words, block, writer);
      values = e.target.warpGroupChains(e.b, shape, words, inB, values, useSums);
      if (values.size() != registers.size())
        return op.emitOpError("needs a matrix instruction that the target does not have, or does not emulate");
      for (auto [reg, value] : llvm::zip_equal(registers, values))
        sums[reg] = value;
      for (auto *list : {&values, &words, &inB})
        list->clear();
      registers.clear();
    }
    e.target.warpGroupCommit(e.b);
    return success();
  }
};

LogicalResult Emitter::emitWarpGroupDot(ttng::WarpGroupDotOp op) { return WarpGroupProduct(*this, op).emit(); }

LogicalResult Emitter::emitWarpGroupWait(ttng::WarpGroupDotWaitOp op) {
  // A sum to which only further products in flight add stays where it is: LLVM's time goes with what is passed on.
  auto onlyAdds = [](mlir::OpOperand &use) {
    auto dot = mlir::dyn_cast<ttng::WarpGroupDotOp>(use.getOwner());
    return dot && dot.getIsAsync() && &use == &dot.getCMutable();
  };
  auto passes = [&](mlir::Value input, mlir::Value output) {
    return isTensor(input) && (op.getPendings() == 0 || !llvm::all_of(output.getUses(), onlyAdds));
  };
  Lanes all;
  for (auto [input, output] : llvm::zip_equal(op.getInputs(), op.getOutputs()))
    if (passes(input, output))
      llvm::append_range(all, get(input));
  llvm::SmallVector<V> waited = target.warpGroupWait(b, op.getPendings(), all);
  llvm::ArrayRef<V> rest = waited;
  for (auto [input, output] : llvm::zip_equal(op.getInputs(), op.getOutputs())) {
    bool passed = passes(input, output);
    set(output, passed ? Lanes(rest.take_front(get(input).size())) : Lanes(get(input)));
    rest = rest.drop_front(passed ? get(input).size() : 0);
  }
  return success();
}

} // namespace tessera::codegen
