// Matrix products on matrix units: packed words, and the instructions of one warp (those of warp groups are in
// WarpGroupDot.cpp). Which elements an instruction multiplies is read off the linear layouts of operands and
// accumulators; the encodings are not asked. Elements that a small tile lacks are zeros in the operands.
#include "MatrixTile.h"

#include "tessera/ir/ttng/Ttng.h"

#include "llvm/ADT/TypeSwitch.h"

namespace tessera::codegen {

using mlir::LogicalResult;
using mlir::success;
using Tile = MatrixTile;

std::optional<MatrixType> matrixType(mlir::Type type) {
  return llvm::TypeSwitch<mlir::Type, std::optional<MatrixType>>(type)
      .Case<mlir::Float16Type>([](auto) { return MatrixType::F16; })
      .Case<mlir::BFloat16Type>([](auto) { return MatrixType::BF16; })
      .Case<mlir::Float32Type>([](auto) { return MatrixType::TF32; })
      .Case<mlir::Float64Type>([](auto) { return MatrixType::F64; })
      .Case<mlir::Float8E4M3FNType>([](auto) { return MatrixType::E4M3; })
      .Case<mlir::Float8E5M2Type>([](auto) { return MatrixType::E5M2; })
      .Case<mlir::Float8E4M3FNUZType>([](auto) { return MatrixType::E4M3FNUZ; })
      .Case<mlir::Float8E5M2FNUZType>([](auto) { return MatrixType::E5M2FNUZ; })
      .Case<mlir::IntegerType>([](auto t) { return t.getWidth() == 8 ? std::optional(MatrixType::S8) : std::nullopt; })
      .Default([](auto) { return std::nullopt; });
}

namespace {

/// The fragments of an instruction's operands, and what follows from them.
struct Fragments {
  Tile a, b, c;
  explicit Fragments(const MatrixInstruction &i)
      : a(fragmentOf(i, MatrixOperand::A)), b(fragmentOf(i, MatrixOperand::B)), c(fragmentOf(i, MatrixOperand::C)) {}

  /// Where register `reg` of an operand is along k among those of its lane.
  static unsigned placeAlongK(const Tile &fragment, unsigned reg, bool kIsRow) {
    auto along = [&](Tile::At at) { return kIsRow ? at.row : at.column; };
    int64_t moved = along(fragment.imageOf(reg)), ofRegisters = 0;
    for (unsigned bit = 0; bit < fragment.numBits(HwDim::Register); ++bit)
      ofRegisters |= along(fragment.basis(HwDim::Register, bit));
    unsigned place = 0;
    for (unsigned at = 0; ofRegisters; ofRegisters &= ofRegisters - 1, ++at)
      place |= unsigned((moved & ofRegisters & -ofRegisters) != 0) << at;
    return place;
  }
};

/// Whether lanes, warps and registers hold operands and accumulators as the instruction wants them; less in a tile that
/// is smaller. The order along k is free as long as both operands have the same.
bool fits(const Fragments &f, const Tile &a, const Tile &b, const Tile &c) {
  auto clip = [](int64_t moved, int64_t extent) { return moved < extent ? moved : 0; };
  unsigned lanes = f.c.numBits(HwDim::Lane);
  for (const Tile *tile : {&a, &b, &c})
    if (tile->numBits(HwDim::Lane) != lanes)
      return false;
  for (unsigned bit = 0; bit < lanes; ++bit) {
    Tile::At inA = a.basis(HwDim::Lane, bit), inB = b.basis(HwDim::Lane, bit), inC = c.basis(HwDim::Lane, bit);
    Tile::At ofA = f.a.basis(HwDim::Lane, bit), ofB = f.b.basis(HwDim::Lane, bit), ofC = f.c.basis(HwDim::Lane, bit);
    if (inC != Tile::At{0, clip(ofC.row, c.rows()), clip(ofC.column, c.columns())} ||
        inA != Tile::At{0, clip(ofA.row, a.rows()), ofA.column ? inA.column : 0} ||
        inB != Tile::At{0, ofB.row ? inA.column : 0, clip(ofB.column, b.columns())})
      return false;
  }
  for (unsigned bit = 0; bit < c.numBits(HwDim::Warp); ++bit) {
    Tile::At inC = c.basis(HwDim::Warp, bit);
    if (a.basis(HwDim::Warp, bit) != Tile::At{inC.batch, inC.row, 0} ||
        b.basis(HwDim::Warp, bit) != Tile::At{inC.batch, 0, inC.column})
      return false;
  }
  for (unsigned bit = 0; bit < f.c.numBits(HwDim::Register); ++bit) {
    Tile::At moved = f.c.basis(HwDim::Register, bit);
    if (moved.row < c.rows() && moved.column < c.columns() && !c.find(moved))
      return false;
  }
  return true;
}

} // namespace

// ---- packed words ---------------------------------------------------------------------------------------------------

Lanes Emitter::unpack(V word, llvm::Type *scalar) {
  unsigned bits = scalar->getPrimitiveSizeInBits().getFixedValue();
  llvm::Type *integer = target.laneType(b.getIntNTy(bits)), *type = target.laneType(scalar);
  Lanes elements;
  for (unsigned i = 0; i < 32 / bits; ++i) {
    V element = b.CreateBitCast(b.CreateTrunc(b.CreateLShr(word, i * bits), integer), type);
    elements.push_back(element);
    wordOf[element] = {word, i};
  }
  return elements;
}

V Emitter::pack(llvm::ArrayRef<V> elements) {
  // Elements that came in one word are that word.
  auto it = wordOf.find(elements.front());
  if (it != wordOf.end() && it->second.second == 0) {
    auto together = [&](unsigned i) {
      auto found = wordOf.find(elements[i]);
      return found != wordOf.end() && found->second == std::pair(it->second.first, i);
    };
    if (llvm::all_of(llvm::seq<unsigned>(1, elements.size()), together))
      return it->second.first;
  }
  llvm::Type *type = elements.front()->getType();
  unsigned bits = type->getScalarSizeInBits();
  llvm::Type *word = target.laneType(b.getInt32Ty());
  // The same byte of four words: 4 x 4 bytes change places in eight shuffles, of which the four results share half.
  auto isSameByte = [&](V v) {
    auto found = wordOf.find(v);
    return found != wordOf.end() && found->second.second == it->second.second;
  };
  if (elements.size() == 4 && it != wordOf.end() && !type->isVectorTy() && llvm::all_of(elements, isSameByte)) {
    auto *bytes = llvm::FixedVectorType::get(b.getInt8Ty(), 4);
    auto source = [&](unsigned i) { return b.CreateBitCast(wordOf.find(elements[i])->second.first, bytes); };
    int half = it->second.second / 2 * 2, odd = it->second.second % 2 * 2;
    auto two = [&](unsigned i) {
      return b.CreateShuffleVector(source(i), source(i + 1), {half, 4 + half, half + 1, 5 + half});
    };
    V low = two(0), high = two(2);
    return b.CreateBitCast(b.CreateShuffleVector(low, high, {odd, odd + 1, 4 + odd, 5 + odd}), word);
  }
  if (elements.size() == 1)
    return b.CreateBitCast(elements.front(), word);
  V packed = nullptr;
  if (!type->isVectorTy()) { // a vector is what instruction selection makes packed conversions of
    packed = llvm::PoisonValue::get(llvm::FixedVectorType::get(type, elements.size())); // every element is set
    for (auto [i, v] : llvm::enumerate(elements))
      packed = b.CreateInsertElement(packed, v, i);
    return b.CreateBitCast(packed, word);
  }
  for (auto [i, v] : llvm::enumerate(elements)) {
    V part = b.CreateShl(b.CreateZExt(b.CreateBitCast(v, target.laneType(b.getIntNTy(bits))), word), i * bits);
    packed = packed ? b.CreateOr(packed, part, "", true) : part;
  }
  return packed;
}

// ---- instructions of one warp ---------------------------------------------------------------------------------------

/// One tt.dot: from here on A is what the instruction gets as its A.
class Emitter::WarpProduct {
public:
  WarpProduct(Emitter &e, tt::DotOp op, const MatrixInstruction &instruction, MatrixType kindA, MatrixType kindB,
              bool swapped)
      : e(e), op(op), bits(instruction.bits), typeA(swapped ? op.getB().getType() : op.getA().getType()),
        typeB(swapped ? op.getA().getType() : op.getB().getType()), valuesA(e.get(swapped ? op.getB() : op.getA())),
        valuesB(e.get(swapped ? op.getA() : op.getB())), a(e.layoutOf(typeA), swapped), b(e.layoutOf(typeB), swapped),
        c(e.layoutOf(op.getType()), swapped), shape{e.target.widest(instruction, a.rows(), a.columns()),
                                                    swapped ? kindB : kindA, swapped ? kindA : kindB,
                                                    e.scalarType(op.getType())},
        fragments(shape.instruction) {}

  LogicalResult emit() {
    if (!fits(fragments, a, b, c) || !collectSteps())
      return misfit(op);
    findCopies();
    return multiply();
  }
  static LogicalResult misfit(tt::DotOp op) {
    return op.emitOpError("has operands whose layouts do not meet in a matrix instruction");
  }

private:
  Emitter &e;
  tt::DotOp op;
  unsigned bits; ///< of an element of A and B
  mlir::Type typeA, typeB;
  llvm::ArrayRef<V> valuesA, valuesB;
  const Tile a, b, c;
  MmaShape shape;
  const Fragments fragments;
  /// What one lane holds along k, the same for both operands; an instruction takes a piece of it, `perStep` long.
  llvm::SmallVector<int64_t> ks;
  unsigned perStep = 1;
  /// Where k is shorter than an instruction's, further lanes hold copies that must not count: i1, where lanes do.
  V counts = nullptr;
  bool missing = false; ///< a register that the instruction needs is in no lane that has it

  bool collectSteps() {
    auto along = [](const Tile &tile, bool kIsRow) {
      llvm::SmallVector<int64_t> all;
      for (unsigned r = 0; r < tile.numRegisters(); ++r) {
        Tile::At at = tile.imageOf(r);
        if (int64_t k = kIsRow ? at.row : at.column; !llvm::is_contained(all, k))
          all.push_back(k);
      }
      llvm::sort(all);
      return all;
    };
    ks = along(a, false);
    for (unsigned r = 0; r < fragments.b.numRegisters(); ++r)
      perStep = std::max(perStep, Fragments::placeAlongK(fragments.b, r, true) + 1);
    return ks == along(b, true);
  }

  void findCopies() {
    unsigned copies = 0; // bits of the lane
    for (unsigned bit = 0; bit < fragments.a.numBits(HwDim::Lane); ++bit)
      copies |= unsigned(fragments.a.basis(HwDim::Lane, bit).column && !a.basis(HwDim::Lane, bit).column) << bit;
    auto number = [&](unsigned n) { return llvm::ConstantInt::get(e.lane->getType(), n); };
    if (copies)
      counts = e.b.CreateICmpEQ(e.b.CreateAnd(e.lane, number(copies)), number(0));
  }

  /// The words of an operand's fragment for the rows (of A) or columns (of B) at `origin`, from k number `first` on.
  Lanes words(const Tile &fragment, const Tile &tile, llvm::ArrayRef<V> values, mlir::Type type, bool kIsRow,
              Tile::At origin, unsigned first) {
    unsigned perWord = std::max(1u, 32 / bits);
    V zero = llvm::Constant::getNullValue(e.valueType(type));
    Lanes result, elements;
    for (unsigned r = 0; r < fragment.numRegisters(); ++r) {
      unsigned k = first + Fragments::placeAlongK(fragment, r, kIsRow);
      Tile::At at = origin, moved = fragment.imageOf(r);
      V element = zero;
      if (k < ks.size()) {
        at.row = kIsRow ? ks[k] : at.row | moved.row;
        at.column = kIsRow ? at.column | moved.column : ks[k];
        if (auto reg = tile.find(at))
          element = values[*reg];
        else
          missing |= at.row < tile.rows() && at.column < tile.columns();
      }
      elements.push_back(element);
      if (elements.size() < perWord)
        continue;
      V word = bits == 64 ? element : e.pack(elements);
      result.push_back(counts ? e.b.CreateSelect(counts, word, llvm::Constant::getNullValue(word->getType())) : word);
      elements.clear();
    }
    return result;
  }

  LogicalResult multiply() {
    Tile::At ofRegisters{0, 0, 0}; // what registers of the accumulator's fragment move
    for (unsigned r = 0; r < fragments.c.numRegisters(); ++r) {
      ofRegisters.row |= fragments.c.imageOf(r).row;
      ofRegisters.column |= fragments.c.imageOf(r).column;
    }
    Lanes result(e.get(op.getC()));
    V none = llvm::Constant::getNullValue(e.target.laneType(shape.acc));
    for (unsigned first = 0; first < ks.size(); first += perStep) {
      llvm::DenseMap<std::pair<int64_t, int64_t>, Lanes> rowsOf, columnsOf; // words, by batch and row or column
      for (unsigned r = 0; r < c.numRegisters(); ++r) {
        Tile::At at = c.imageOf(r);
        if ((at.row & ofRegisters.row) || (at.column & ofRegisters.column))
          continue;
        Lanes &rows = rowsOf[{at.batch, at.row}], &columns = columnsOf[{at.batch, at.column}];
        if (rows.empty())
          rows = words(fragments.a, a, valuesA, typeA, false, {at.batch, at.row, 0}, first);
        if (columns.empty())
          columns = words(fragments.b, b, valuesB, typeB, true, {at.batch, 0, at.column}, first);
        llvm::SmallVector<std::optional<unsigned>> registers;
        Lanes sums;
        for (unsigned i = 0; i < fragments.c.numRegisters(); ++i) {
          Tile::At moved = fragments.c.imageOf(i);
          registers.push_back(c.find({at.batch, at.row | moved.row, at.column | moved.column}));
          sums.push_back(registers[i] ? result[*registers[i]] : none);
        }
        llvm::SmallVector<V> done = e.target.mma(e.b, shape, rows, columns, sums);
        if (done.size() != sums.size())
          return op.emitOpError("needs a matrix instruction that the target does not have, or does not emulate");
        for (auto [reg, value] : llvm::zip_equal(registers, done))
          if (reg)
            result[*reg] = value;
      }
    }
    if (missing)
      return misfit(op);
    e.set(op.getResult(), std::move(result));
    return success();
  }
};

LogicalResult Emitter::emitDot(tt::DotOp op) {
  mlir::Type elementA = mlir::getElementTypeOrSelf(op.getA()), elementB = mlir::getElementTypeOrSelf(op.getB());
  auto kindA = matrixType(elementA), kindB = matrixType(elementB);
  llvm::Type *acc = scalarType(op.getType());
  ttg::MatrixEncoding encoding = ttg::getMatrixEncoding(op.getType());
  if (!encoding || !encoding.isOfOneWarp())
    return WarpProduct::misfit(op);
  unsigned bits = elementA.getIntOrFloatBitWidth();
  MatrixInstruction instruction = encoding.getInstruction(bits);
  if (kindA == MatrixType::TF32 && op.getInputPrecision() != tt::InputPrecision::TF32)
    kindA = kindB = instruction.family == MatrixFamily::Mma ? std::nullopt : std::optional(MatrixType::F32);
  if (!kindA || !kindB || elementB.getIntOrFloatBitWidth() != bits || !instruction.k ||
      !(acc->isFloatTy() || acc->isDoubleTy() || acc->isIntegerTy(32)))
    return op.emitOpError("has element types or a precision that no matrix instruction takes");
  if (target.warpSize() != instruction.lanes())
    return WarpProduct::misfit(op);
  return WarpProduct(*this, op, instruction, *kindA, *kindB, encoding.isTransposed()).emit();
}

std::optional<LogicalResult> Emitter::emitMatrixOp(mlir::Operation *op) {
  return llvm::TypeSwitch<mlir::Operation *, std::optional<LogicalResult>>(op)
      .Case<tt::DotOp>([&](auto o) { return emitDot(o); })
      .Case<ttng::WarpGroupDotOp>([&](auto o) { return emitWarpGroupDot(o); })
      .Case<ttg::LocalDotOp>([&](auto o) { return emitLocalDot(o); })
      .Case<ttng::WarpGroupDotWaitOp>([&](auto o) { return emitWarpGroupWait(o); })
      .Case<ttng::FenceAsyncSharedOp>([&](auto) {
        target.fenceAsyncShared(b);
        return success();
      })
      .Default([](auto) { return std::nullopt; });
}

} // namespace tessera::codegen
