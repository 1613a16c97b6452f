// Matrix products on matrix units. Which elements an instruction multiplies is read off the linear layouts of operands
// and accumulators; the encodings are not asked. Elements that a small tile lacks are zeros in the operands.
#include "Emitter.h"

#include "tessera/ir/ttng/Ttng.h"
#include "tessera/passes/Allocation.h"
#include "tessera/passes/InFlight.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tessera::codegen {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

namespace {

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

/// A layout of two dimensions, or three with the batch first, by coordinates; `swapped`: of the transposed tile.
class Tile {
public:
  struct At {
    int64_t batch, row, column;
    bool operator==(const At &) const = default;
  };

  explicit Tile(const LinearLayout &layout, bool swapped = false) : layout(layout), swapped(swapped) {
    for (unsigned r = 0, n = layout.size(HwDim::Register); r < n; ++r)
      registers.try_emplace(registerImage(layout, r), r);
  }
  int64_t rows() const { return layout.shape()[layout.rank() - (swapped ? 1 : 2)]; }
  int64_t columns() const { return layout.shape()[layout.rank() - (swapped ? 2 : 1)]; }
  At locate(uint64_t flat) const {
    auto coords = layout.coords(flat);
    int64_t row = coords[coords.size() - 2], column = coords.back();
    return {coords.size() == 3 ? coords[0] : 0, swapped ? column : row, swapped ? row : column};
  }
  At imageOf(unsigned reg) const { return locate(registerImage(layout, reg)); }
  At basis(HwDim dim, unsigned bit) const { return locate(layout.bases(dim)[bit]); }
  unsigned numBits(HwDim dim) const { return layout.numBits(dim); }
  unsigned numRegisters() const { return layout.size(HwDim::Register); }
  /// The register of lane 0 of warp 0 that holds the element, if one does.
  std::optional<unsigned> find(At at) const {
    if (at.row >= rows() || at.column >= columns())
      return std::nullopt;
    llvm::SmallVector<int64_t, 3> coords{at.batch, swapped ? at.column : at.row, swapped ? at.row : at.column};
    auto it = registers.find(layout.flat(llvm::ArrayRef(coords).take_back(layout.rank())));
    return it == registers.end() ? std::nullopt : std::optional(it->second);
  }

private:
  LinearLayout layout;
  bool swapped;
  llvm::DenseMap<uint64_t, unsigned> registers;
};

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

/// What lane bit `bit` of an accumulator fragment of a warp group moves: columns by 2 and 4, then rows by 1, 2 and 4.
bool isAccumulatorLane(const Tile &c, unsigned bit) {
  int64_t column = bit < 2 ? 2 << bit : 0, row = bit < 2 ? 0 : 1 << (bit - 2);
  return c.basis(HwDim::Lane, bit) == Tile::At{0, row < c.rows() ? row : 0, column < c.columns() ? column : 0};
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

LogicalResult Emitter::emitDot(tt::DotOp op) {
  auto typeA = mlir::cast<mlir::RankedTensorType>(op.getA().getType()),
       typeB = mlir::cast<mlir::RankedTensorType>(op.getB().getType());
  auto kindA = matrixType(typeA.getElementType()), kindB = matrixType(typeB.getElementType());
  llvm::Type *acc = scalarType(op.getType());
  auto misfit = [&] { return op.emitOpError("has operands whose layouts do not meet in a matrix instruction"); };
  ttg::MatrixEncoding encoding = ttg::getMatrixEncoding(op.getType());
  if (!encoding || !encoding.isOfOneWarp())
    return misfit();
  unsigned bits = typeA.getElementTypeBitWidth();
  MatrixInstruction instruction = encoding.getInstruction(bits);
  if (kindA == MatrixType::TF32 && op.getInputPrecision() != tt::InputPrecision::TF32)
    kindA = kindB = instruction.family == MatrixFamily::Mma ? std::nullopt : std::optional(MatrixType::F32);
  if (!kindA || !kindB || typeB.getElementTypeBitWidth() != bits || !instruction.k ||
      !(acc->isFloatTy() || acc->isDoubleTy() || acc->isIntegerTy(32)))
    return op.emitOpError("has element types or a precision that no matrix instruction takes");
  if (target.warpSize() != instruction.lanes())
    return misfit();

  // From here on A is what the instruction gets as its A.
  bool swapped = encoding.isTransposed();
  llvm::ArrayRef<V> valuesA = get(op.getA()), valuesB = get(op.getB());
  if (swapped) {
    std::swap(typeA, typeB);
    std::swap(kindA, kindB);
    std::swap(valuesA, valuesB);
  }
  const Tile a(layoutOf(typeA), swapped), bb(layoutOf(typeB), swapped), c(layoutOf(op.getType()), swapped);
  instruction = target.widest(instruction, a.rows(), a.columns());
  const Fragments fragments(instruction);
  if (!fits(fragments, a, bb, c))
    return misfit();

  // What one lane holds along k, the same for both operands; an instruction takes a piece of it.
  llvm::SmallVector<int64_t> ks;
  auto collect = [](llvm::SmallVectorImpl<int64_t> &list, int64_t k) {
    if (!llvm::is_contained(list, k))
      list.push_back(k);
  };
  for (unsigned r = 0; r < a.numRegisters(); ++r)
    collect(ks, a.imageOf(r).column);
  llvm::SmallVector<int64_t> ksOfB;
  for (unsigned r = 0; r < bb.numRegisters(); ++r)
    collect(ksOfB, bb.imageOf(r).row);
  llvm::sort(ks);
  llvm::sort(ksOfB);
  if (ks != ksOfB)
    return misfit();
  MmaShape shape{instruction, *kindA, *kindB, acc};
  // Where k is shorter than an instruction's, further lanes hold copies that must not count.
  unsigned copies = 0, perStep = 1, perWord = std::max(1u, 32 / bits);
  for (unsigned bit = 0; bit < fragments.a.numBits(HwDim::Lane); ++bit)
    copies |= unsigned(fragments.a.basis(HwDim::Lane, bit).column && !a.basis(HwDim::Lane, bit).column) << bit;
  for (unsigned r = 0; r < fragments.b.numRegisters(); ++r)
    perStep = std::max(perStep, Fragments::placeAlongK(fragments.b, r, true) + 1);
  V counts = copies ? b.CreateICmpEQ(b.CreateAnd(lane, llvm::ConstantInt::get(lane->getType(), copies)),
                                     llvm::ConstantInt::get(lane->getType(), 0))
                    : nullptr;

  // The words of an operand's fragment for the rows (of A) or columns (of B) at `origin`, from k number `first` on.
  bool missing = false;
  auto words = [&](const Tile &fragment, const Tile &tile, llvm::ArrayRef<V> values, mlir::Type type, bool kIsRow,
                   Tile::At origin, unsigned first) {
    V zero = llvm::Constant::getNullValue(valueType(type));
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
      V word = bits == 64 ? element : pack(elements);
      result.push_back(counts ? b.CreateSelect(counts, word, llvm::Constant::getNullValue(word->getType())) : word);
      elements.clear();
    }
    return result;
  };

  Tile::At ofRegisters{0, 0, 0}; // what registers of the accumulator's fragment move
  for (unsigned r = 0; r < fragments.c.numRegisters(); ++r) {
    ofRegisters.row |= fragments.c.imageOf(r).row;
    ofRegisters.column |= fragments.c.imageOf(r).column;
  }
  Lanes result(get(op.getC()));
  V none = llvm::Constant::getNullValue(target.laneType(acc));
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
        columns = words(fragments.b, bb, valuesB, typeB, true, {at.batch, 0, at.column}, first);
      llvm::SmallVector<std::optional<unsigned>> registers;
      Lanes sums;
      for (unsigned i = 0; i < fragments.c.numRegisters(); ++i) {
        Tile::At moved = fragments.c.imageOf(i);
        registers.push_back(c.find({at.batch, at.row | moved.row, at.column | moved.column}));
        sums.push_back(registers[i] ? result[*registers[i]] : none);
      }
      llvm::SmallVector<V> done = target.mma(b, shape, rows, columns, sums);
      if (done.size() != sums.size())
        return op.emitOpError("needs a matrix instruction that the target does not have, or does not emulate");
      for (auto [reg, value] : llvm::zip_equal(registers, done))
        if (reg)
          result[*reg] = value;
    }
  }
  if (missing)
    return misfit();
  set(op.getResult(), std::move(result));
  return success();
}

// ---- warp groups
// -------------------------------------------------------------------------------------------------------

namespace {

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

LogicalResult Emitter::emitWarpGroupDot(ttng::WarpGroupDotOp op) {
  auto elementOf = [](mlir::Value v) { return mlir::cast<mlir::ShapedType>(v.getType()).getElementType(); };
  auto kindA = matrixType(elementOf(op.getA())), kindB = matrixType(elementOf(op.getB()));
  auto accType = mlir::cast<mlir::RankedTensorType>(op.getType());
  llvm::Type *acc = scalarType(accType);
  auto mma = ttg::getMma(accType);
  if (!kindA || !kindB || kindA == MatrixType::F64 || !(acc->isFloatTy() || acc->isIntegerTy(32)) || !mma)
    return op.emitOpError("has element types that no matrix instruction takes");
  const Tile c(layoutOf(accType));
  unsigned bytes = storageBytes(elementOf(op.getA())), columns = mma.getInstrN();
  auto typeB = mlir::cast<ttg::MemDescType>(op.getB().getType());
  int64_t sizeK = typeB.getShape()[0];
  WarpGroupShape shape{columns, 32 / bytes, *kindA, *kindB, acc, false, false};
  if (!fitsWarpGroup(c, columns) || sizeK < shape.k)
    return op.emitOpError("has accumulators whose layout is not that of its instruction");
  unsigned steps = sizeK / shape.k;

  // The instructions' tiles, and where the operands of each begin.
  struct Part {
    int64_t row, column;
  };
  llvm::SmallVector<Part> parts;
  llvm::SmallVector<int64_t> rows, cols;
  for (unsigned r = 0; r < c.numRegisters(); ++r) {
    Tile::At at = c.imageOf(r);
    if (at.row & 8 || at.column % columns)
      continue;
    parts.push_back({at.row, at.column});
    if (!llvm::is_contained(rows, at.row))
      rows.push_back(at.row);
    if (!llvm::is_contained(cols, at.column))
      cols.push_back(at.column);
  }
  auto misplaced = [&] {
    return op.emitOpError("has an operand in shared memory in a form that the warp group cannot read");
  };
  auto descriptorsOf = [&](mlir::Value buffer, unsigned kDim, unsigned size, llvm::ArrayRef<int64_t> starts,
                           bool &transposed) -> llvm::SmallVector<V> {
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
    return descriptors(buffer, *operand, origins, warps);
  };
  llvm::SmallVector<V> descB = descriptorsOf(op.getB(), 0, columns, cols, shape.transB), descA;
  if (descB.empty())
    return misplaced();
  auto tileA = mlir::dyn_cast<mlir::RankedTensorType>(op.getA().getType());
  std::optional<Tile> a;
  if (tileA) {
    a.emplace(layoutOf(tileA));
    for (unsigned bit = 0; bit < 5; ++bit)
      if (a->basis(HwDim::Lane, bit) !=
          (bit < 2 ? Tile::At{0, 0, int64_t(4 / bytes) << bit} : Tile::At{0, int64_t(1) << (bit - 2), 0}))
        return op.emitOpError("has an operand A whose layout is not that of its instruction");
    if (!target.wantsTags() && overwritesOperandInFlight(op)) // an executor with checks reports it
      return op.emitOpError("with A in registers is left unfinished where these are written again: wait for it before");
  } else if ((descA = descriptorsOf(op.getA(), 1, 64, rows, shape.transA)).empty()) {
    return misplaced();
  }
  auto appendA = [&](llvm::SmallVectorImpl<V> &words, unsigned row, unsigned step) {
    if (!a) {
      words.push_back(descA[row * steps + step]);
      return true;
    }
    llvm::ArrayRef<V> values = get(op.getA());
    for (unsigned half : {0, 1})
      for (unsigned upper : {0, 8}) {
        Lanes elements;
        for (unsigned i = 0; i < 4 / bytes; ++i) {
          auto reg = a->find({0, rows[row] | upper, int64_t(step * shape.k + half * shape.k / 2 + i)});
          if (!reg)
            return false;
          elements.push_back(values[*reg]);
        }
        words.push_back(pack(elements));
      }
    return true;
  };

  unsigned stepsAtOnce = stepsOfPart(op);
  bool partial = stepsAtOnce > 0;
  if (!partial)
    stepsAtOnce = steps;
  V useC = op.getUseC() ? getUniform(op.getUseC()) : b.getInt1(!isZero(op.getC()));
  V none = llvm::Constant::getNullValue(valueType(accType));
  Lanes result(get(op.getC()));
  if (llvm::SmallPtrSet<mlir::Value, 8> seen; partial && mayBeInFlight(op.getC(), seen))
    result = Lanes(target.warpGroupWait(b, 0, result)); // it is read by ordinary additions
  // Loads of A's words come just before the rows that take them, and so while the rows before are multiplied.
  llvm::BasicBlock *block = b.GetInsertBlock();
  auto writers = llvm::make_filter_range(llvm::reverse(*block), [](auto &i) { return i.mayWriteToMemory(); });
  llvm::Instruction *writer = writers.empty() ? nullptr : &*writers.begin();
  auto bringLoads = [&](llvm::ArrayRef<V> words) {
    for (V word : words) {
      auto *cast = llvm::dyn_cast<llvm::BitCastInst>(word);
      auto *load = cast ? llvm::dyn_cast<llvm::LoadInst>(cast->getOperand(0)) : nullptr;
      if (load && load->hasOneUse() && load->getParent() == block && (!writer || writer->comesBefore(load)))
        load->moveBefore(cast->getIterator());
    }
  };
  for (unsigned first = 0; first < steps; first += stepsAtOnce) {
    unsigned end = std::min(steps, first + stepsAtOnce);
    Lanes sums = result;
    target.warpGroupFence(b);
    llvm::SmallVector<unsigned> registers; // of accumulators, and what is added to them, not started yet
    llvm::SmallVector<V> values, words, inB;
    for (auto [i, part] : llvm::enumerate(parts)) {
      for (unsigned j = 0; j < columns / 2; ++j) { // of a row, by 8 columns; then the row 8 on; then the next column
        registers.push_back(*c.find({0, part.row | (j & 2) * 4, part.column | (j / 4 * 8 + j % 2)}));
        values.push_back(sums[registers.back()]);
      }
      unsigned row = llvm::find(rows, part.row) - rows.begin(), column = llvm::find(cols, part.column) - cols.begin();
      for (unsigned step = first; step < end; ++step)
        if (!appendA(words, row, step))
          return op.emitOpError("has an operand A whose layout is not that of its instruction");
      inB.append(descB.begin() + column * steps + first, descB.begin() + column * steps + end);
      // With both operands in memory all start together; with A in registers each when its words are there, unless
      // other products are in flight meanwhile: behind a fence between the rows the wait would leave fewer of them in
      // flight.
      if ((!a || op.getIsAsync()) && i + 1 < parts.size())
        continue;
      bringLoads(words);
      values = target.warpGroupChains(b, shape, words, inB, values, partial ? b.getFalse() : useC);
      if (values.size() != registers.size())
        return op.emitOpError("needs a matrix instruction that the target does not have, or does not emulate");
      for (auto [reg, value] : llvm::zip_equal(registers, values))
        sums[reg] = value;
      for (auto *list : {&values, &words, &inB})
        list->clear();
      registers.clear();
    }
    target.warpGroupCommit(b);
    if (partial || !op.getIsAsync())
      sums = Lanes(target.warpGroupWait(b, 0, sums));
    for (auto [sum, value] : llvm::zip_equal(result, sums))
      sum = !partial ? value : first ? b.CreateFAdd(sum, value) : b.CreateFAdd(b.CreateSelect(useC, sum, none), value);
  }
  set(op.getResult(), std::move(result));
  return success();
}

std::optional<LogicalResult> Emitter::emitMatrixOp(mlir::Operation *op) {
  return llvm::TypeSwitch<mlir::Operation *, std::optional<LogicalResult>>(op)
      .Case<tt::DotOp>([&](auto o) { return emitDot(o); })
      .Case<ttng::WarpGroupDotOp>([&](auto o) { return emitWarpGroupDot(o); })
      .Case<ttg::LocalDotOp>([&](auto o) { return emitLocalDot(o); })
      .Case<ttng::WarpGroupDotWaitOp>([&](auto o) {
        // A sum to which only further products in flight add stays where it is: LLVM's time goes with what is passed
        // on.
        auto onlyAdds = [](mlir::OpOperand &use) {
          auto dot = mlir::dyn_cast<ttng::WarpGroupDotOp>(use.getOwner());
          return dot && dot.getIsAsync() && &use == &dot.getCMutable();
        };
        auto passes = [&](mlir::Value input, mlir::Value output) {
          return isTensor(input) && (o.getPendings() == 0 || !llvm::all_of(output.getUses(), onlyAdds));
        };
        Lanes all;
        for (auto [input, output] : llvm::zip_equal(o.getInputs(), o.getOutputs()))
          if (passes(input, output))
            all.append(get(input).begin(), get(input).end());
        llvm::SmallVector<V> waited = target.warpGroupWait(b, o.getPendings(), all);
        llvm::ArrayRef<V> rest = waited;
        for (auto [input, output] : llvm::zip_equal(o.getInputs(), o.getOutputs())) {
          bool passed = passes(input, output);
          set(output, passed ? Lanes(rest.take_front(get(input).size())) : Lanes(get(input)));
          rest = rest.drop_front(passed ? get(input).size() : 0);
        }
        return success();
      })
      .Case<ttng::FenceAsyncSharedOp>([&](auto) {
        target.fenceAsyncShared(b);
        return success();
      })
      .Default([](auto) { return std::nullopt; });
}

} // namespace tessera::codegen
