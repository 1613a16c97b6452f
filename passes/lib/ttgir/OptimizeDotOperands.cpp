// How operands of dots get where the instruction reads them: through which shared memory, or without any.
#include "../Layouts.h"
#include "../target/MatrixModel.h"
#include "mlir/IR/IRMapping.h"
#include "tessera/ir/ttng/Ttng.h"
#include "tessera/passes/Allocation.h"
#include "tessera/passes/Passes.h"

using namespace mlir;

namespace tessera {

#define GEN_PASS_DEF_TTGIROPTIMIZEDOTOPERANDS
#include "tessera/passes/Passes.h.inc"

namespace {

using layouts::tileType;

/// What lies between a tile and the operand made of it: element-wise ops, transpositions, conversions.
struct Chain {
  Value source;                         ///< what is stored to shared memory
  SmallVector<Operation *> elementwise; ///< from the operand back to the source
  SmallVector<int32_t> order;           ///< dimension i of the operand is dimension order[i] of the source

  bool transposed() const { return !llvm::equal(order, llvm::seq<int32_t>(order.size())); }
};

/// The one tile operand of a pure element-wise op whose other operands can be made again in any layout.
OpOperand *soleTile(Operation *op) {
  if (!layouts::isUniform(op) || !isMemoryEffectFree(op) || isa<tt::BroadcastOp>(op) || op->getNumResults() != 1)
    return nullptr;
  OpOperand *tile = nullptr;
  for (OpOperand &operand : op->getOpOperands()) {
    Operation *def = operand.get().getDefiningOp();
    if (!tileType(operand.get()) || (def && layouts::isSource(def)))
      continue;
    if (tile && tile->get() != operand.get())
      return nullptr;
    tile = &operand;
  }
  return tile;
}

/// Follows `v` back to a load. With `throughElementwise` false, or where there is no load at the end, only past
/// conversions and transpositions.
Chain chainOf(Value v, bool throughElementwise) {
  Chain plain{v, {}, llvm::to_vector(llvm::seq<int32_t>(tileType(v).getRank()))}, chain = plain;
  while (Operation *op = chain.source.getDefiningOp()) {
    if (auto trans = dyn_cast<tt::TransOp>(op)) {
      for (int32_t &d : chain.order)
        d = trans.getOrder()[d];
      chain.source = trans.getSrc();
    } else if (auto convert = dyn_cast<ttg::ConvertLayoutOp>(op)) {
      chain.source = convert.getSrc();
    } else if (OpOperand *tile = throughElementwise ? soleTile(op) : nullptr) {
      chain.elementwise.push_back(op);
      chain.source = tile->get();
    } else {
      break;
    }
    if (chain.elementwise.empty())
      plain = chain;
  }
  return chain.source.getDefiningOp<tt::LoadOp>() ? chain : plain;
}

class OptimizeDotOperands : public impl::TtgirOptimizeDotOperandsBase<OptimizeDotOperands> {
public:
  void runOnOperation() override {
    model = TargetModel::of(getOperation());
    SmallVector<ttg::LocalAllocOp> allocs;
    SmallVector<ttg::ConvertLayoutOp> conversions;
    getOperation().walk([&](Operation *op) {
      if (auto alloc = dyn_cast<ttg::LocalAllocOp>(op); alloc && alloc.getSrc())
        allocs.push_back(alloc);
      if (auto convert = dyn_cast<ttg::ConvertLayoutOp>(op))
        if (model.matrix && isa_and_nonnull<ttg::DotOperandEncodingAttr>(convert.getType().getEncoding()))
          conversions.push_back(convert);
    });
    for (ttg::LocalAllocOp alloc : allocs)
      if (!toRegisters(alloc))
        fuseTranspose(alloc);
    for (ttg::ConvertLayoutOp convert : conversions)
      throughShared(convert);
    shareBuffers();
  }

private:
  TargetModel model;

  /// A of warp_group_dot may stay in registers: where it is the previous dot's result and lanes already hold what they
  /// need, where something is computed with a loaded tile first, and where 32-bit elements are loaded against k, as the
  /// instruction cannot read them from memory.
  bool toRegisters(ttg::LocalAllocOp alloc) {
    if (!alloc->hasOneUse())
      return false;
    OpOperand &use = *alloc->use_begin();
    auto dot = dyn_cast<ttng::WarpGroupDotOp>(use.getOwner());
    if (!dot || use.getOperandNumber() != 0)
      return false;
    Value a = alloc.getSrc();
    while (auto convert = a.getDefiningOp<ttg::ConvertLayoutOp>())
      a = convert.getSrc();
    RankedTensorType type = tileType(a);
    auto wanted = ttg::DotOperandEncodingAttr::get(alloc.getContext(), 0, ttg::getMatrixEncoding(dot.getType()),
                                                   32 / tt::bitWidth(type.getElementType()));
    OpBuilder b(alloc);
    Chain chain = chainOf(a, true);
    bool againstK = storageBytes(type) == 4 && layouts::memoryOrder(a)[0] != 1; // single elements are read as well
    if ((!chain.elementwise.empty() || againstK) && chain.source.getDefiningOp<tt::LoadOp>()) {
      use.set(load(b, chain, wanted));
    } else {
      ConversionPlan plan =
          planConversion(ttg::toLinearLayout(type), ttg::toLinearLayout(type.getShape(), wanted), storageBytes(type));
      if (!ttg::getMatrixEncoding(type) || plan.kind != ConversionPlan::Kind::Copy)
        return false;
      use.set(layouts::convertTo(b, a, wanted));
    }
    alloc.erase();
    return true;
  }

  /// local_alloc(trans(x)) -> memdesc_trans(local_alloc(x)): the rows of x are stored as they are.
  static void fuseTranspose(ttg::LocalAllocOp alloc) {
    Chain chain = chainOf(alloc.getSrc(), false);
    if (!chain.transposed()) {
      alloc.getSrcMutable().assign(chain.source);
      return;
    }
    OpBuilder b(alloc);
    // The source's encoding is the operand's seen the other way round.
    SmallVector<int32_t> inverse(chain.order.size());
    for (auto [i, d] : llvm::enumerate(chain.order))
      inverse[d] = i;
    Attribute encoding = cast<ttg::SharedEncoding>(alloc.getType().getEncoding()).transpose(inverse);
    if (!encoding)
      return;
    alloc.replaceAllUsesWith(transposedView(b, layouts::storeToShared(b, chain.source, encoding), chain));
    alloc.erase();
  }

  /// Registers in a dot_op layout come from shared memory, unless every lane holds them already.
  void throughShared(ttg::ConvertLayoutOp convert) {
    RankedTensorType type = convert.getType();
    Chain chain = chainOf(convert.getSrc(), true);
    bool loaded = chain.source.getDefiningOp<tt::LoadOp>() != nullptr;
    ConversionPlan plan =
        planConversion(ttg::toLinearLayout(convert.getSrc().getType()), ttg::toLinearLayout(type), storageBytes(type));
    if (plan.kind == ConversionPlan::Kind::Copy || (plan.kind == ConversionPlan::Kind::Shuffle && !loaded))
      return;
    // Behind all loads of its block, so that none of them waits for the one before it.
    OpBuilder b(convert);
    if (Operation *user = firstUserInBlock(convert))
      b.setInsertionPoint(user);
    convert.replaceAllUsesWith(load(b, chain, cast<ttg::DotOperandEncodingAttr>(type.getEncoding())));
    convert.erase();
  }

  static Operation *firstUserInBlock(Operation *op) {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers()) {
      Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
      if (!here || here != user) // a loop: stay outside of it
        return nullptr;
      if (!first || here->isBeforeInBlock(first))
        first = here;
    }
    return first;
  }

  static Value transposedView(OpBuilder &b, Value memory, const Chain &chain) {
    if (!chain.transposed())
      return memory;
    return ttg::MemDescTransOp::create(b, memory.getLoc(), memory, chain.order);
  }

  /// The operand at the end of `chain` in `encoding`: its source through shared memory, the rest computed behind that.
  Value load(OpBuilder &b, const Chain &chain, ttg::DotOperandEncodingAttr encoding) {
    RankedTensorType type = tileType(chain.source);
    SmallVector<int64_t> shape;
    for (int32_t d : chain.order)
      shape.push_back(type.getShape()[d]);
    auto operand = RankedTensorType::get(shape, type.getElementType(), encoding);
    SmallVector<unsigned> memoryOrder = layouts::memoryOrder(chain.source);
    Attribute shared =
        model.matrix->sharedEncoding({operand, memoryOrder, chain.order, layouts::encodingOf(chain.source)});
    Value memory = transposedView(b, layouts::storeToShared(b, chain.source, shared), chain);
    Value v = ttg::LocalLoadOp::create(b, chain.source.getLoc(), operand, memory);
    for (Operation *op : llvm::reverse(chain.elementwise)) {
      IRMapping map;
      OpOperand *tile = soleTile(op);
      for (OpOperand &other : op->getOpOperands())
        if (tileType(other.get()) && other.get() != tile->get()) {
          Operation *copy = b.clone(*other.get().getDefiningOp());
          retype(copy->getResult(0), shape, encoding);
          map.map(other.get(), copy->getResult(0));
        }
      map.map(tile->get(), v);
      v = b.clone(*op, map)->getResult(0);
      retype(v, shape, encoding);
    }
    return v;
  }

  static void retype(Value v, ArrayRef<int64_t> shape, Attribute encoding) {
    auto type = RankedTensorType::get(shape, tileType(v).getElementType(), encoding);
    v.setType(type);
    if (auto constant = v.getDefiningOp<arith::ConstantOp>())
      if (auto data = dyn_cast<DenseElementsAttr>(constant.getValue()))
        constant.setValueAttr(data.isSplat() ? data.resizeSplat(type) : data.reshape(type));
  }

  /// One buffer for all operands that are the same tile in the same layout.
  void shareBuffers() {
    getOperation().walk([](Block *block) {
      llvm::DenseMap<std::pair<Value, Type>, ttg::LocalAllocOp> known;
      for (auto alloc : llvm::make_early_inc_range(block->getOps<ttg::LocalAllocOp>())) {
        if (!alloc.getSrc() || alloc.getType().getMutableMemory())
          continue;
        auto [it, fresh] = known.try_emplace({alloc.getSrc(), alloc.getType()}, alloc);
        if (fresh)
          continue;
        alloc.replaceAllUsesWith(it->second.getResult());
        alloc.erase();
      }
    });
  }
};

} // namespace
} // namespace tessera
