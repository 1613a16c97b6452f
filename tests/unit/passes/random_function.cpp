#include "random_function.h"

#include "tessera/ir/Register.h"
#include "tessera/ir/ttir/Ttir.h"

using namespace mlir;

namespace tessera::testing {

namespace {

class Generator {
public:
  Generator(MLIRContext *context, unsigned seed) : b(context), random(seed) {}

  OwningOpRef<ModuleOp> make() {
    auto module = ModuleOp::create(b.getUnknownLoc());
    b.setInsertionPointToEnd(module.getBody());
    Type i32 = b.getI32Type(), ptr = tt::PointerType::get(i32, 1);
    auto type = b.getFunctionType({ptr, i32, i32, i32, ptr}, {});
    auto func = tt::FuncOp::create(b, b.getUnknownLoc(), "f", type);
    func.setArgAttr(0, "tt.divisibility", b.getI32IntegerAttr(16));
    func.setArgAttr(1, "tt.divisibility", b.getI32IntegerAttr(16));
    Block *entry = func.addEntryBlock();
    b.setInsertionPointToEnd(entry);
    pointer = entry->getArgument(0);
    for (unsigned i = 1; i < 4; ++i)
      scalars.push_back(entry->getArgument(i));
    for (int k = 0; k < 4; ++k)
      addSource();
    for (int k = 0; k < 14; ++k)
      addOp(1);
    addPointer();
    for (std::vector<Value> *set : {&rows, &planes})
      for (int k = 0; k < 3; ++k)
        addStore(pick(*set), entry->getArgument(4));
    tt::ReturnOp::create(b, b.getUnknownLoc());
    return module;
  }

private:
  OpBuilder b;
  std::mt19937 random;
  Value pointer;
  std::vector<Value> scalars, rows, planes, bits; ///< i32; 1-D i32; 2-D i32; i1 of any shape

  static constexpr int64_t kRow = 16, kCols = 8;
  unsigned below(unsigned n) { return random() % n; }
  Value pick(std::vector<Value> &v) { return v[below(v.size())]; }
  Location loc() { return b.getUnknownLoc(); }
  RankedTensorType tile(std::initializer_list<int64_t> shape, Type element) {
    return RankedTensorType::get(shape, element);
  }

  int64_t number() {
    static constexpr int64_t values[] = {0, 1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 31, 32, 64, -1, -2, -4, -8, -16, -64};
    return values[below(std::size(values))];
  }
  Value constant(Type type) {
    int64_t v = number();
    if (auto t = dyn_cast<RankedTensorType>(type))
      return arith::ConstantOp::create(b, loc(), DenseElementsAttr::get(t, b.getIntegerAttr(t.getElementType(), v)));
    return arith::ConstantOp::create(b, loc(), b.getIntegerAttr(type, v));
  }

  void addSource() {
    Type i32 = b.getI32Type();
    int64_t start = below(2) ? 0 : number();
    rows.push_back(tt::MakeRangeOp::create(b, loc(), tile({kRow}, i32), start, start + kRow));
    rows.push_back(tt::SplatOp::create(b, loc(), tile({kRow}, i32), pick(scalars)));
    rows.push_back(constant(tile({kRow}, i32)));
    scalars.push_back(constant(i32));
    Value c = tt::MakeRangeOp::create(b, loc(), tile({kCols}, i32), 0, kCols);
    Value e = tt::ExpandDimsOp::create(b, loc(), c, 0);
    planes.push_back(tt::BroadcastOp::create(b, loc(), tile({kRow, kCols}, i32), e));
    expand();
  }
  void expand() {
    Value e = tt::ExpandDimsOp::create(b, loc(), pick(rows), 1);
    planes.push_back(tt::BroadcastOp::create(b, loc(), tile({kRow, kCols}, b.getI32Type()), e));
  }

  Value binary(Value x, Value y) {
    switch (below(15)) {
    case 0:
    case 1: return arith::AddIOp::create(b, loc(), x, y);
    case 2: return arith::SubIOp::create(b, loc(), x, y);
    case 3: return arith::MulIOp::create(b, loc(), x, y);
    case 4: return arith::DivSIOp::create(b, loc(), x, y);
    case 5: return arith::DivUIOp::create(b, loc(), x, y);
    case 6: return arith::RemSIOp::create(b, loc(), x, y);
    case 7: return arith::RemUIOp::create(b, loc(), x, y);
    case 8: return arith::AndIOp::create(b, loc(), x, y);
    case 9: return arith::OrIOp::create(b, loc(), x, y);
    case 10: return arith::XOrIOp::create(b, loc(), x, y);
    case 11: return arith::ShLIOp::create(b, loc(), x, y);
    case 12: return arith::ShRSIOp::create(b, loc(), x, y);
    case 13: return arith::ShRUIOp::create(b, loc(), x, y);
    default: break;
    }
    switch (below(4)) {
    case 0: return arith::MaxSIOp::create(b, loc(), x, y);
    case 1: return arith::MinSIOp::create(b, loc(), x, y);
    case 2: return arith::MaxUIOp::create(b, loc(), x, y);
    default: return arith::MinUIOp::create(b, loc(), x, y);
    }
  }

  void addOp(unsigned depth) {
    std::vector<Value> &set = below(4) == 0 ? scalars : below(2) ? rows : planes;
    Value x = pick(set), y = below(3) ? pick(set) : constant(x.getType());
    switch (below(12)) {
    case 0: {
      auto predicate = static_cast<arith::CmpIPredicate>(below(10));
      bits.push_back(arith::CmpIOp::create(b, loc(), predicate, x, y));
      break;
    }
    case 1: {
      Value c = arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::slt, pick(set), pick(set));
      if (isa<RankedTensorType>(x.getType()) && below(2)) {
        Value s = arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::sge, pick(scalars), pick(scalars));
        c = s; // one condition for the tile
      }
      set.push_back(arith::SelectOp::create(b, loc(), c, x, y));
      break;
    }
    case 2: { // through a narrow type and back
      Type narrow = b.getIntegerType(below(2) ? 8 : 16);
      Type to = narrow;
      if (auto t = dyn_cast<RankedTensorType>(x.getType()))
        to = RankedTensorType::get(t.getShape(), narrow);
      Value n = arith::TruncIOp::create(b, loc(), to, x);
      set.push_back(below(2) ? Value(arith::ExtSIOp::create(b, loc(), x.getType(), n))
                             : Value(arith::ExtUIOp::create(b, loc(), x.getType(), n)));
      break;
    }
    case 3: {
      Value plane = pick(planes);
      Value t = tt::TransOp::create(b, loc(), plane, ArrayRef<int32_t>{1, 0});
      t = arith::AddIOp::create(b, loc(), t, constant(t.getType()));
      planes.push_back(tt::TransOp::create(b, loc(), t, ArrayRef<int32_t>{1, 0}));
      break;
    }
    case 4: {
      Value flat = tt::ReshapeOp::create(b, loc(), ArrayRef<int64_t>{kRow * kCols}, pick(planes));
      flat = arith::AddIOp::create(b, loc(), flat, constant(flat.getType()));
      planes.push_back(tt::ReshapeOp::create(b, loc(), ArrayRef<int64_t>{kRow, kCols}, flat));
      break;
    }
    case 5: expand(); break;
    case 6:
      if (depth == 0)
        break;
      if (below(4))
        addLoop();
      else
        addWhile();
      break;
    case 7: {
      Value c = arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::slt, pick(scalars), pick(scalars));
      auto branch = scf::IfOp::create(b, loc(), TypeRange{x.getType()}, c, /*withElse=*/true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(branch.thenBlock());
      scf::YieldOp::create(b, loc(), x);
      b.setInsertionPointToEnd(branch.elseBlock());
      scf::YieldOp::create(b, loc(), y);
      set.push_back(branch.getResult(0));
      break;
    }
    case 8: addLoad(); break;
    case 9: addReduction(); break;
    default: set.push_back(binary(x, y));
    }
  }

  void addLoad() {
    std::vector<Value> &set = below(2) ? rows : planes;
    Value offset = pick(set), mask, other;
    auto shape = cast<RankedTensorType>(offset.getType()).getShape();
    Type type = RankedTensorType::get(shape, pointer.getType());
    Value p = tt::SplatOp::create(b, loc(), type, pointer);
    p = tt::AddPtrOp::create(b, loc(), type, p, offset);
    if (below(2))
      mask = arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::slt, pick(set), pick(set));
    if (mask && below(2))
      other = pick(set);
    set.push_back(tt::LoadOp::create(b, loc(), p, mask, other));
  }

  Value reduce(Value v, unsigned axis, unsigned kind) {
    auto shape = llvm::to_vector(cast<RankedTensorType>(v.getType()).getShape());
    shape.erase(shape.begin() + axis);
    Type i32 = b.getI32Type(), type = shape.empty() ? i32 : Type(RankedTensorType::get(shape, i32));
    OperationState state(loc(), tt::ReduceOp::getOperationName());
    state.addOperands(v);
    state.addTypes(type);
    state.addAttribute("axis", b.getI32IntegerAttr(axis));
    Block *block = new Block;
    state.addRegion()->push_back(block);
    Value x = block->addArgument(i32, loc()), y = block->addArgument(i32, loc());
    Operation *op = b.create(state);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(block);
    tt::ReduceReturnOp::create(b, loc(), combine(x, y, kind));
    return op->getResult(0);
  }
  Value combine(Value x, Value y, unsigned kind) {
    if (kind == 0)
      return arith::AddIOp::create(b, loc(), x, y);
    if (kind == 1)
      return arith::MaxSIOp::create(b, loc(), x, y);
    return arith::XOrIOp::create(b, loc(), x, y);
  }
  void addReduction() {
    if (below(3) == 0)
      scalars.push_back(reduce(pick(rows), 0, below(3)));
    else
      rows.push_back(reduce(pick(planes), 1, below(3)));
  }
  /// Every store has memory of its own.
  void addStore(Value v, Value out) {
    auto type = cast<RankedTensorType>(v.getType());
    int64_t n = type.getNumElements();
    Value index = tt::MakeRangeOp::create(b, loc(), tile({n}, b.getI32Type()), stored, stored + n);
    stored += n;
    if (type.getRank() == 2)
      index = tt::ReshapeOp::create(b, loc(), type.getShape(), index);
    Type pointers = RankedTensorType::get(type.getShape(), out.getType());
    Value p = tt::SplatOp::create(b, loc(), pointers, out);
    Value address = tt::AddPtrOp::create(b, loc(), pointers, p, index);
    tt::StoreOp::create(b, loc(), address, v, Value());
  }
  int64_t stored = 0;

  void addLoop() {
    Value lb = constant(b.getI32Type());
    Value trips = arith::ConstantOp::create(b, loc(), b.getI32IntegerAttr(below(4) * 4));
    Value ub = arith::AddIOp::create(b, loc(), lb, trips);
    Value step = arith::ConstantOp::create(b, loc(), b.getI32IntegerAttr(1 << below(3)));
    Value init = pick(rows), second = pick(planes);
    auto loop = scf::ForOp::create(b, loc(), lb, ub, step, ValueRange{init, second, pick(scalars)});
    if (below(2))
      loop->setAttr("tt.num_stages", b.getI32IntegerAttr(1 + below(4)));
    auto outer = std::tuple(scalars, rows, planes, bits);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      scalars.push_back(loop.getInductionVar());
      rows.push_back(loop.getRegionIterArg(0));
      planes.push_back(loop.getRegionIterArg(1));
      for (int k = 0; k < 5; ++k)
        addOp(0);
      unsigned kind = below(3);
      Value row = below(2) ? binary(loop.getRegionIterArg(0), pick(rows))
                           : combine(loop.getRegionIterArg(0), reduce(pick(planes), 1, kind), kind);
      kind = below(3);
      Value next[] = {row, pick(planes), combine(reduce(pick(rows), 0, kind), loop.getRegionIterArg(2), kind)};
      scf::YieldOp::create(b, loc(), next);
    }
    std::tie(scalars, rows, planes, bits) = outer;
    rows.push_back(loop.getResult(0));
    planes.push_back(loop.getResult(1));
    scalars.push_back(loop.getResult(2));
  }

  /// Counts up while a condition on a carried tile and the count holds.
  void addWhile() {
    Type i32 = b.getI32Type();
    Value zero = arith::ConstantOp::create(b, loc(), b.getI32IntegerAttr(0)), init = pick(rows);
    Value limit = arith::ConstantOp::create(b, loc(), b.getI32IntegerAttr(below(4)));
    SmallVector<Type> types{i32, init.getType()};
    auto loop = scf::WhileOp::create(b, loc(), types, ValueRange{zero, init});
    auto outer = std::tuple(scalars, rows, planes, bits);
    OpBuilder::InsertionGuard guard(b);
    Block *before = b.createBlock(&loop.getBefore(), {}, types, {loc(), loc()});
    Value row = arith::AddIOp::create(b, loc(), before->getArgument(1), constant(init.getType()));
    Value go = arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::slt, before->getArgument(0), limit);
    scf::ConditionOp::create(b, loc(), go, ValueRange{before->getArgument(0), row});
    Block *after = b.createBlock(&loop.getAfter(), {}, types, {loc(), loc()});
    scalars.push_back(after->getArgument(0));
    rows.push_back(after->getArgument(1));
    for (int k = 0; k < 4; ++k)
      addOp(0);
    Value one = arith::ConstantOp::create(b, loc(), b.getI32IntegerAttr(1));
    Value next = arith::AddIOp::create(b, loc(), after->getArgument(0), one);
    Value last = rows.back();
    scf::YieldOp::create(b, loc(), ValueRange{next, last});
    std::tie(scalars, rows, planes, bits) = outer;
    rows.push_back(loop.getResult(1));
    scalars.push_back(loop.getResult(0));
  }

  void addPointer() {
    for (std::vector<Value> *set : {&rows, &planes}) {
      Value offset = pick(*set);
      Type type = RankedTensorType::get(cast<RankedTensorType>(offset.getType()).getShape(), pointer.getType());
      Value p = tt::SplatOp::create(b, loc(), type, pointer);
      p = tt::AddPtrOp::create(b, loc(), type, p, offset);
      tt::AddPtrOp::create(b, loc(), type, p, pick(*set));
    }
  }
};

} // namespace

std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

OwningOpRef<ModuleOp> randomFunction(MLIRContext &context, unsigned seed) { return Generator(&context, seed).make(); }

llvm::SmallVector<int64_t> randomArguments(std::mt19937 &random) {
  auto any = [&] { return int64_t(random() % 200) - 60; };
  int64_t in = int64_t(1) << 40 | int64_t(random() % 64) * 16;
  return {in, (int64_t(random() % 40) - 10) * 16, any(), any(), int64_t(1) << 50};
}

} // namespace tessera::testing
