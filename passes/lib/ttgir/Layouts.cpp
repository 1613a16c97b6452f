// Relations between the encodings of operands and results.
#include "../Layouts.h"

#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::layouts {

Attribute encodingOf(Value v) {
  auto type = tileType(v);
  return type ? type.getEncoding() : Attribute();
}

RankedTensorType withEncoding(RankedTensorType type, Attribute encoding) {
  return RankedTensorType::get(type.getShape(), type.getElementType(), encoding);
}

void setEncoding(Value v, Attribute encoding) {
  RankedTensorType type = withEncoding(tileType(v), encoding);
  v.setType(type);
  if (auto constant = v.getDefiningOp<arith::ConstantOp>())
    if (auto data = dyn_cast<DenseElementsAttr>(constant.getValue()))
      constant.setValueAttr(data.reshape(type));
}

bool isUniform(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() ||
         isa<tt::LoadOp, tt::StoreOp, tt::BroadcastOp, tt::ElementwiseInlineAsmOp>(op) ||
         isa<tt::ExternElementwiseOp, tt::AddPtrOp>(op);
}

bool isSource(Operation *op) { return isa<arith::ConstantOp, tt::SplatOp, tt::MakeRangeOp, ub::PoisonOp>(op); }

bool isForced(Operation *op) { return isa<tt::ReduceOp, tt::JoinOp, tt::SplitOp, tt::CatOp>(op); }

Value memoryPointer(Operation *op) {
  Value ptr;
  if (auto load = dyn_cast<tt::LoadOp>(op))
    ptr = load.getPtr();
  if (auto store = dyn_cast<tt::StoreOp>(op))
    ptr = store.getPtr();
  return ptr && tileType(ptr) ? ptr : Value();
}

static Attribute orNull(ttg::InferredEncoding e) { return succeeded(e) ? *e : Attribute(); }

Attribute resultEncoding(Operation *op, unsigned index, Attribute encoding) {
  if (isUniform(op))
    return encoding;
  auto src = index < op->getNumOperands() ? tileType(op->getOperand(index)) : RankedTensorType();
  if (!src)
    return {};
  src = withEncoding(src, encoding);
  return llvm::TypeSwitch<Operation *, Attribute>(op)
      .Case([&](tt::ExpandDimsOp o) { return orNull(ttg::inferExpandDims(src, o.getAxis())); })
      .Case([&](tt::TransOp o) { return orNull(ttg::inferTrans(src, o.getOrder())); })
      .Case([&](tt::ReshapeOp o) { return orNull(ttg::inferReshape(src, o.getType().getShape())); })
      .Case(
          [&](tt::ReduceOp o) { return src.getRank() > 1 ? orNull(ttg::inferReduce(src, o.getAxis())) : Attribute(); })
      .Case([&](tt::JoinOp) { return orNull(ttg::inferJoin(src)); })
      .Case([&](tt::SplitOp) { return orNull(ttg::inferSplit(src)); })
      .Case([&](tt::CatOp) { return orNull(ttg::inferCat(src)); })
      .Case([&](tt::GatherOp) { return index == 1 ? encoding : Attribute(); })
      .Default(Attribute());
}

/// `encoding` of `shape` without the register that holds flat bit `bit`, the bits above moved down: what join and cat
/// add.
static Attribute withoutRegister(RankedTensorType src, ArrayRef<int64_t> shape, Attribute encoding, unsigned bit) {
  if (!isa<ttg::DistributedEncoding>(encoding))
    return {};
  LinearLayout layout = ttg::toLinearLayout(shape, encoding);
  uint64_t mask = uint64_t(1) << bit;
  SmallVector<LinearLayout::In> ins;
  unsigned removed = 0;
  for (const LinearLayout::In &in : layout.ins()) {
    LinearLayout::In out{in.dim, {}};
    for (uint64_t basis : in.bases) {
      if (in.dim == HwDim::Register && basis == mask) {
        ++removed;
        continue;
      }
      if (basis & mask)
        return {};
      out.bases.push_back(((basis & ~(mask - 1)) >> 1) | (basis & (mask - 1)));
    }
    ins.push_back(std::move(out));
  }
  if (removed != 1)
    return {};
  return ttg::encodingOf(encoding.getContext(), LinearLayout(src.getShape(), ins));
}

Attribute operandEncoding(Operation *op, unsigned index, Attribute encoding) {
  auto src = tileType(op->getOperand(index));
  if (!src || !encoding)
    return {};
  if (isUniform(op))
    return encoding;
  Attribute candidate =
      llvm::TypeSwitch<Operation *, Attribute>(op)
          .Case<tt::ExpandDimsOp, tt::TransOp, tt::ReshapeOp>(
              [&](auto) { return orNull(ttg::inferSourceOf(op, encoding)); })
          .Case([&](tt::ReduceOp o) {
            auto slice = dyn_cast<ttg::SliceEncodingAttr>(encoding);
            return slice && slice.getDim() == o.getAxis() ? Attribute(slice.getParent()) : Attribute();
          })
          .Case([&](tt::JoinOp o) { return withoutRegister(src, o.getType().getShape(), encoding, 0); })
          .Case([&](tt::SplitOp o) { return orNull(ttg::inferJoin(withEncoding(o.getOutLHS().getType(), encoding))); })
          .Case([&](tt::CatOp o) {
            return withoutRegister(src, o.getType().getShape(), encoding, llvm::Log2_64(src.getNumElements()));
          })
          .Case([&](tt::GatherOp) { return index == 1 ? encoding : Attribute(); })
          .Default(Attribute());
  // Join and cat put their register at one end: not every layout comes from a source.
  if (candidate && isForced(op)) {
    Attribute back = resultEncoding(op, index, candidate);
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    if (!back || !ttg::areEquivalent(result.getShape(), back, encoding))
      return {};
  }
  return candidate;
}

Value convertTo(OpBuilder &b, Value v, Attribute encoding) {
  if (encodingOf(v) == encoding)
    return v;
  return ttg::ConvertLayoutOp::create(b, v.getLoc(), withEncoding(tileType(v), encoding), v);
}

void setAccessEncoding(Operation *op, Attribute encoding) {
  OpBuilder b(op);
  for (OpOperand &operand : op->getOpOperands())
    if (tileType(operand.get()))
      operand.set(convertTo(b, operand.get(), encoding));
  b.setInsertionPointAfter(op);
  for (Value result : op->getResults())
    if (auto type = tileType(result); type && type.getEncoding() != encoding) {
      setEncoding(result, encoding);
      Value back = ttg::ConvertLayoutOp::create(b, op->getLoc(), type, result);
      result.replaceAllUsesExcept(back, back.getDefiningOp());
    }
}

Value storeToShared(OpBuilder &b, Value v, Attribute encoding) {
  OpBuilder::InsertionGuard guard(b);
  Operation *at = &*b.getInsertionPoint();
  while (auto loop = dyn_cast<LoopLikeOpInterface>(at->getParentOp())) {
    if (!loop.isDefinedOutsideOfLoop(v))
      break;
    at = loop;
  }
  b.setInsertionPoint(at);
  RankedTensorType type = tileType(v);
  auto memory = ttg::MemDescType::get(type.getShape(), type.getElementType(), encoding,
                                      ttg::SharedMemorySpaceAttr::get(b.getContext()));
  return ttg::LocalAllocOp::create(b, v.getLoc(), memory, v);
}

SmallVector<unsigned> memoryOrder(Value v) {
  unsigned rank = tileType(v).getRank();
  SmallVector<unsigned> seenAs =
      llvm::to_vector(llvm::seq(rank)); // dimension i of the operand is dimension seenAs[i] of v
  while (Operation *op = v.getDefiningOp()) {
    if (auto trans = dyn_cast<tt::TransOp>(op)) {
      for (unsigned &d : seenAs)
        d = trans.getOrder()[d];
    } else if (!isa<ttg::ConvertLayoutOp>(op) && (isa<tt::LoadOp, tt::BroadcastOp>(op) || !isUniform(op))) {
      break;
    }
    Value next;
    for (Value operand : op->getOperands())
      if (tileType(operand) && !(operand.getDefiningOp() && isSource(operand.getDefiningOp()))) {
        next = operand;
        break;
      }
    if (!next)
      break;
    v = next;
  }
  SmallVector<unsigned> order, own; // of the operand, of v
  Attribute encoding = encodingOf(v);
  if (auto blocked = dyn_cast_or_null<ttg::BlockedEncodingAttr>(encoding))
    llvm::append_range(own, blocked.getOrder());
  else if (rank == 2 && isa_and_nonnull<ttg::LinearEncodingAttr>(encoding)) {
    const LinearLayout layout = ttg::toLinearLayout(tileType(v)); // the dimension of a lane's consecutive elements first
    for (uint64_t basis : layout.bases(HwDim::Register).take_front(1))
      own.push_back(rank - 1 - (basis >= uint64_t(tileType(v).getShape().back())));
  }
  for (unsigned d = rank; d-- > 0;)
    if (!llvm::is_contained(own, d))
      own.push_back(d);
  for (unsigned d : own)
    order.push_back(llvm::find(seenAs, d) - seenAs.begin());
  return order;
}

Attribute defaultEncoding(MLIRContext *context, ArrayRef<int64_t> shape, unsigned numWarps, unsigned threadsPerWarp) {
  SmallVector<unsigned> size(shape.size(), 1), order;
  for (unsigned d = shape.size(); d-- > 0;)
    order.push_back(d);
  return ttg::BlockedEncodingAttr::get(context, shape, size, order, numWarps, threadsPerWarp);
}

} // namespace tessera::layouts
