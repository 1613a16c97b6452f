// Memory accesses of a warp. Native: one vector access where the lanes touch one run of memory, else gathers. Emulated:
// every access is a call of the executor, which knows which thread may touch what. Masked-off lanes never touch memory.
#include "CpuTargetInfo.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Analysis/VectorUtils.h"

#include <cstddef>

#include <tessera/codegen/cpu_abi.h>

using namespace llvm;

namespace tessera::codegen {

static unsigned storeBytes(Type *type) { return type->isPointerTy() ? 8 : (type->getScalarSizeInBits() + 7) / 8; }
static Align alignOf(unsigned bytes) { return Align(bytes ? bytes & -bytes : 1); }

// f16 and bf16 move as integers: without hardware for them, the code generator would convert each element to f32 and
// back.
static bool isSmallFloat(Type *type) {
  return type->getScalarType()->isHalfTy() || type->getScalarType()->isBFloatTy();
}
static V asBits(Builder &b, V v) {
  return v && isSmallFloat(v->getType()) ? b.CreateBitCast(v, v->getType()->getWithNewType(b.getInt16Ty())) : v;
}
static SmallVector<V> asBits(Builder &b, ArrayRef<V> values) {
  return map_to_vector(values, [&](V v) { return asBits(b, v); });
}
static V fromBits(Builder &b, V v, Type *elem) {
  return isSmallFloat(elem) ? b.CreateBitCast(v, v->getType()->getWithNewType(elem)) : v;
}
static SmallVector<V> fromBits(Builder &b, ArrayRef<V> values, Type *elem) {
  return map_to_vector(values, [&](V v) { return fromBits(b, v, elem); });
}

/// Emits `body(lane)` for each lane that `mask`, a vector of i1, has set.
static void activeLanes(Builder &b, V mask, function_ref<void(Builder &, V)> body) {
  V memory = spill(b, mask);
  laneLoop(b, cast<FixedVectorType>(mask->getType())->getNumElements(), [&](Builder &b, V lane) {
    emitIf(b, loadLane(b, mask->getType(), memory, lane), [&](Builder &b) { body(b, lane); });
  });
}

// ---- one vector access --------------------------------------------------------------------------------------------

V CpuTargetInfo::runLoad(B &b, Type *vector, V ptr, V pred, V other, const AccessHints &hints) {
  Align align = alignOf(hints.alignment);
  if (!pred)
    return b.CreateAlignedLoad(vector, ptr, align, hints.isVolatile);
  if (!other)
    other = Constant::getNullValue(vector);
  // AVX-512 masks every element size, AVX2 only 32 and 64 bits.
  unsigned bytes = storeBytes(vector->getScalarType());
  if (host.vectorBytes == 64 || (host.vectorBytes == 32 && bytes >= 4))
    return b.CreateMaskedLoad(vector, ptr, align, pred, other);
  return callOutlined(b, "load." + typeName(vector), vector, {ptr, pred, other}, [&](B &b, ArrayRef<V> args) {
    V memory = spill(b, args[2]);
    Type *elem = vector->getScalarType();
    V all = b.CreateAndReduce(args[1]);
    emitIf(b, all, [&](B &b) { b.CreateStore(b.CreateAlignedLoad(vector, args[0], Align(1)), memory); });
    emitIf(b, b.CreateNot(all), [&](B &b) {
      activeLanes(b, args[1], [&](B &b, V lane) {
        storeLane(b, memory, lane, b.CreateAlignedLoad(elem, b.CreateGEP(elem, args[0], lane), Align(1)));
      });
    });
    return b.CreateLoad(vector, memory);
  });
}

void CpuTargetInfo::runStore(B &b, V ptr, V pred, V value, const AccessHints &hints) {
  Align align = alignOf(hints.alignment);
  Type *vector = value->getType(), *elem = vector->getScalarType();
  if (!pred) {
    b.CreateAlignedStore(value, ptr, align, hints.isVolatile);
  } else if (host.vectorBytes == 64) {
    b.CreateMaskedStore(value, ptr, align, pred);
  } else {
    // AVX2 has masked stores, but on some processors they take tens of cycles: not where all lanes are active.
    callOutlined(b, "store." + typeName(vector), b.getVoidTy(), {ptr, pred, value}, [&](B &b, ArrayRef<V> args) -> V {
      V all = b.CreateAndReduce(args[1]);
      emitIf(b, all, [&](B &b) { b.CreateAlignedStore(args[2], args[0], Align(1)); });
      emitIf(b, b.CreateNot(all), [&](B &b) {
        if (host.vectorBytes == 32 && storeBytes(elem) >= 4) {
          b.CreateMaskedStore(args[2], args[0], Align(1), args[1]);
          return;
        }
        V memory = spill(b, args[2]);
        activeLanes(b, args[1], [&](B &b, V lane) {
          b.CreateAlignedStore(loadLane(b, vector, memory, lane), b.CreateGEP(elem, args[0], lane), Align(1));
        });
      });
      return nullptr;
    });
  }
}

// ---- one access a lane --------------------------------------------------------------------------------------------

V CpuTargetInfo::perLaneLoad(B &b, Type *elem, V ptrs, V pred, V other, unsigned alignment) {
  Type *vector = laneType(elem);
  if (!pred)
    pred = Constant::getAllOnesValue(laneType(b.getInt1Ty()));
  if (!other)
    other = Constant::getNullValue(vector);
  if (host.vectorBytes == 64 && storeBytes(elem) >= 4)
    return b.CreateMaskedGather(vector, ptrs, alignOf(alignment), pred, other);
  return callOutlined(b, "gather." + typeName(vector), vector, {ptrs, pred, other}, [&](B &b, ArrayRef<V> args) {
    V memory = spill(b, args[2]), from = spill(b, args[0]);
    activeLanes(b, args[1], [&](B &b, V lane) {
      storeLane(b, memory, lane, b.CreateAlignedLoad(elem, loadLane(b, args[0]->getType(), from, lane), Align(1)));
    });
    return b.CreateLoad(vector, memory);
  });
}

void CpuTargetInfo::perLaneStore(B &b, V ptrs, V pred, V value, unsigned alignment) {
  Type *vector = value->getType();
  if (!pred)
    pred = Constant::getAllOnesValue(laneType(b.getInt1Ty()));
  if (host.vectorBytes == 64 && storeBytes(vector->getScalarType()) >= 4) {
    b.CreateMaskedScatter(value, ptrs, alignOf(alignment), pred);
    return;
  }
  callOutlined(b, "scatter." + typeName(vector), b.getVoidTy(), {ptrs, pred, value}, [&](B &b, ArrayRef<V> args) -> V {
    V memory = spill(b, args[2]), to = spill(b, args[0]);
    activeLanes(b, args[1], [&](B &b, V lane) {
      b.CreateAlignedStore(loadLane(b, vector, memory, lane), loadLane(b, args[0]->getType(), to, lane), Align(1));
    });
    return nullptr;
  });
}

// ---- checked accesses ---------------------------------------------------------------------------------------------

Constant *CpuTargetInfo::accessOf(B &b, unsigned elemBytes, unsigned vec, unsigned alignment, unsigned run) {
  Constant *access = ConstantStruct::getAnon({b.getInt32(lanes), b.getInt32(elemBytes), b.getInt32(vec),
                                              b.getInt32(alignment), b.getInt32(run), site(b, false)});
  return privateConstant(*kernel->getParent(), access, "access");
}

V CpuTargetInfo::toSlot(B &b, StringRef purpose, ArrayRef<V> values) {
  Type *type = values[0]->getType();
  V memory = slot(b, purpose, ArrayType::get(type, values.size()));
  for (auto [i, value] : enumerate(values))
    b.CreateStore(value, b.CreateConstInBoundsGEP1_32(type, memory, i));
  return memory;
}

SmallVector<V> CpuTargetInfo::fromSlot(B &b, V memory, Type *type, unsigned count) {
  SmallVector<V> values;
  for (unsigned i = 0; i < count; ++i)
    values.push_back(b.CreateLoad(type, b.CreateConstInBoundsGEP1_32(type, memory, i)));
  return values;
}

SmallVector<V> CpuTargetInfo::checkedAccess(B &b, StringRef helper, Type *elem, unsigned vec, V address, V pred,
                                            ArrayRef<V> tags, ArrayRef<V> data, unsigned alignment, bool run) {
  Type *vector = laneType(elem);
  unsigned bytes = storeBytes(elem);
  bool isLoad = helper.ends_with("load");
  V tagMemory = tags.size() == vec ? toSlot(b, "tags", tags) : ConstantPointerNull::get(b.getPtrTy());
  // What all lanes load needs no initial value.
  V dataMemory = isLoad && !pred ? slot(b, "data", ArrayType::get(vector, vec)) : toSlot(b, "data", data);
  SmallVector<V> args = {context, accessOf(b, bytes, vec, alignment, run ? bytes * vec : 0), laneMask(b, pred),
                         run ? firstLane(b, address) : toSlot(b, "address", {address})};
  if (!address->getType()->getScalarType()->isPointerTy())
    args.push_back(tagMemory);
  args.push_back(dataMemory);
  call(b, helper, args);
  return isLoad ? fromSlot(b, dataMemory, vector, vec) : SmallVector<V>();
}

// ---- global memory ------------------------------------------------------------------------------------------------

/// Widens a vector of one value a lane to `vec` values a lane: {a0, a0, a1, a1, …}.
static V repeatLanes(Builder &b, V v, unsigned vec) {
  SmallVector<int> from;
  for (unsigned i = 0, n = cast<FixedVectorType>(v->getType())->getNumElements() * vec; i < n; ++i)
    from.push_back(i / vec);
  return b.CreateShuffleVector(v, from);
}

/// vec vectors of W lanes -> one of W * vec elements in memory order.
static V interleave(Builder &b, ArrayRef<V> values) {
  if (values.size() == 1)
    return values[0];
  unsigned lanes = cast<FixedVectorType>(values[0]->getType())->getNumElements(), vec = values.size();
  SmallVector<V> level(values.begin(), values.end());
  // Concatenate pairwise, then one permutation.
  for (unsigned n = lanes; level.size() > 1; n *= 2) {
    SmallVector<V> next;
    auto all = to_vector(seq<int>(0, 2 * n));
    for (unsigned i = 0; i < level.size(); i += 2)
      next.push_back(b.CreateShuffleVector(level[i], level[i + 1], all));
    level = std::move(next);
  }
  SmallVector<int> from;
  for (unsigned i = 0; i < lanes * vec; ++i)
    from.push_back(i % vec * lanes + i / vec);
  return b.CreateShuffleVector(level[0], from);
}

/// The reverse of interleave.
static SmallVector<V> deinterleave(Builder &b, V run, unsigned vec) {
  if (vec == 1)
    return {run};
  SmallVector<V> values;
  for (unsigned i = 0, lanes = cast<FixedVectorType>(run->getType())->getNumElements() / vec; i < vec; ++i) {
    SmallVector<int> from;
    for (unsigned lane = 0; lane < lanes; ++lane)
      from.push_back(lane * vec + i);
    values.push_back(b.CreateShuffleVector(run, from));
  }
  return values;
}

SmallVector<V> CpuTargetInfo::loadGlobal(B &b, Type *elem, unsigned vec, V ptr, V pred, ArrayRef<V> other,
                                         const AccessHints &hints) {
  if (isSmallFloat(elem))
    return fromBits(b, loadGlobal(b, b.getInt16Ty(), vec, ptr, pred, asBits(b, other), hints), elem);
  unsigned bytes = storeBytes(elem);
  V once = pred && hints.firstCopies ? b.CreateAnd(pred, hints.firstCopies) : pred ? pred : hints.firstCopies;
  countLanes(b, offsetof(tessera_cpu_context, bytes_loaded), once, bytes * vec);
  SmallVector<V> initial(other.begin(), other.end());
  if (initial.empty())
    initial.assign(vec, Constant::getNullValue(laneType(elem)));
  if (emulated) {
    // NVIDIA faults on a vector access that is not naturally aligned; AMD needs 4 bytes.
    unsigned needed = std::min(bytes * vec, amd ? 4u : 16u);
    return checkedAccess(b, "tessera_cpu_global_load", elem, vec, ptr, pred, {}, initial, needed,
                         hints.contiguousLanes);
  }
  if (!hints.contiguousLanes) {
    SmallVector<V> result;
    for (unsigned i = 0; i < vec; ++i)
      result.push_back(perLaneLoad(b, elem, i ? b.CreateConstGEP1_32(elem, ptr, i) : ptr, pred, initial[i],
                                   i ? std::min(hints.alignment, bytes) : hints.alignment));
    return result;
  }
  Type *vector = FixedVectorType::get(elem, lanes * vec);
  V run = runLoad(b, vector, firstLane(b, ptr), pred && vec > 1 ? repeatLanes(b, pred, vec) : pred,
                  interleave(b, initial), hints);
  return deinterleave(b, run, vec);
}

void CpuTargetInfo::storeGlobal(B &b, Type *elem, V ptr, V pred, ArrayRef<V> values, const AccessHints &hints) {
  if (isSmallFloat(elem))
    return storeGlobal(b, b.getInt16Ty(), ptr, pred, asBits(b, values), hints);
  unsigned bytes = storeBytes(elem), vec = values.size();
  countLanes(b, offsetof(tessera_cpu_context, bytes_stored), pred, bytes * vec);
  if (emulated) {
    checkedAccess(b, "tessera_cpu_global_store", elem, vec, ptr, pred, {}, values,
                  std::min(bytes * vec, amd ? 4u : 16u), hints.contiguousLanes);
    return;
  }
  if (hints.contiguousLanes) {
    runStore(b, firstLane(b, ptr), pred && vec > 1 ? repeatLanes(b, pred, vec) : pred, interleave(b, values), hints);
    return;
  }
  for (unsigned i = 0; i < vec; ++i)
    perLaneStore(b, i ? b.CreateConstGEP1_32(elem, ptr, i) : ptr, pred, values[i],
                 i ? std::min(hints.alignment, bytes) : hints.alignment);
}

// A masked scalar access goes to a slot of the stack instead: no branch, so that a target may be asked anywhere.
V CpuTargetInfo::loadUniform(B &b, Type *elem, V ptr, V pred, V other, const AccessHints &hints) {
  if (isSmallFloat(elem))
    return fromBits(b, loadUniform(b, b.getInt16Ty(), ptr, pred, asBits(b, other), hints), elem);
  countUniform(b, offsetof(tessera_cpu_context, bytes_loaded), pred, elem);
  if (pred) {
    V memory = slot(b, "uniform", elem);
    b.CreateStore(other ? other : Constant::getNullValue(elem), memory);
    ptr = b.CreateSelect(pred, ptr, memory);
  }
  return b.CreateAlignedLoad(elem, ptr, Align(1), hints.isVolatile);
}

void CpuTargetInfo::storeUniform(B &b, V ptr, V pred, V value, const AccessHints &hints) {
  value = asBits(b, value);
  countUniform(b, offsetof(tessera_cpu_context, bytes_stored), pred, value->getType());
  if (!isa<Constant>(warp)) {
    V first = b.CreateICmpEQ(warp, b.getInt32(0));
    pred = pred ? b.CreateAnd(pred, first) : first;
  }
  if (pred)
    ptr = b.CreateSelect(pred, ptr, slot(b, "uniform", value->getType()));
  b.CreateAlignedStore(value, ptr, Align(1), hints.isVolatile);
}

// ---- shared memory ------------------------------------------------------------------------------------------------

/// A lane value that grows evenly from lane to lane: scalar + constant + lane * step.
struct LaneRun {
  V scalar = nullptr; ///< null: 0
  int64_t constant = 0, step = 0;
};

/// Bits that a scalar may have set. LLVM's analysis would believe a loop's phi before its last value is known.
static uint32_t possibleBits(V v, unsigned depth = 0) {
  if (auto *number = dyn_cast<ConstantInt>(v))
    return number->getZExtValue();
  auto *op = dyn_cast<BinaryOperator>(v);
  if (!op || depth == 8)
    return ~0u;
  auto operand = [&](unsigned i) { return possibleBits(op->getOperand(i), depth + 1); };
  auto *amount = dyn_cast<ConstantInt>(op->getOperand(1));
  switch (op->getOpcode()) {
  case Instruction::And: return operand(0) & operand(1);
  case Instruction::Or:
  case Instruction::Xor: return operand(0) | operand(1);
  case Instruction::Shl: return amount ? operand(0) << amount->getZExtValue() : ~0u;
  case Instruction::LShr: return amount ? operand(0) >> amount->getZExtValue() : ~0u;
  default: return ~0u;
  }
}

/// What an i32 lane value is, where its expression says that; nothing where it does not. Offsets do not overflow.
static std::optional<LaneRun> laneRun(Builder &b, V v) {
  unsigned lanes = cast<FixedVectorType>(v->getType())->getNumElements();
  if (V scalar = getSplatValue(v)) {
    if (auto *number = dyn_cast<ConstantInt>(scalar))
      return LaneRun{nullptr, number->getSExtValue(), 0};
    return LaneRun{scalar, 0, 0};
  }
  if (auto *data = dyn_cast<ConstantDataVector>(v)) {
    auto at = [&](unsigned lane) { return cast<ConstantInt>(data->getElementAsConstant(lane))->getSExtValue(); };
    LaneRun run{nullptr, at(0), at(1) - at(0)};
    for (unsigned lane = 2; lane < lanes; ++lane)
      if (at(lane) != run.constant + run.step * lane)
        return std::nullopt;
    return run;
  }
  auto *op = dyn_cast<BinaryOperator>(v);
  if (!op)
    return std::nullopt;
  auto left = laneRun(b, op->getOperand(0)), right = laneRun(b, op->getOperand(1));
  if (!left || !right)
    return std::nullopt;
  auto combined = [&](auto join) -> V {
    return !left->scalar ? right->scalar : !right->scalar ? left->scalar : join(left->scalar, right->scalar);
  };
  switch (op->getOpcode()) {
  case Instruction::Or:
    if (!cast<PossiblyDisjointInst>(op)->isDisjoint())
      return std::nullopt;
    [[fallthrough]];
  case Instruction::Add:
    return LaneRun{combined([&](V x, V y) { return b.CreateAdd(x, y, "", true, true); }),
                   left->constant + right->constant, left->step + right->step};
  case Instruction::Shl:
    if (right->scalar || right->step)
      return std::nullopt;
    return LaneRun{left->scalar ? b.CreateShl(left->scalar, right->constant, "", true, true) : nullptr,
                   left->constant << right->constant, left->step * (int64_t(1) << right->constant)};
  case Instruction::Xor: {
    // Where no bit meets another it is a sum; where only scalars meet, theirs is an xor.
    auto bits = [&](const LaneRun &run) {
      return uint32_t(run.constant) | (run.scalar ? possibleBits(run.scalar) : 0);
    };
    auto laneBits = [&](const LaneRun &run) {
      uint32_t mask = 0;
      for (unsigned lane = 0; lane < lanes; ++lane)
        mask |= uint32_t(run.step * lane);
      return mask;
    };
    uint32_t x = bits(*left), y = bits(*right), alongX = laneBits(*left), alongY = laneBits(*right);
    if ((alongX & (x | y | alongY)) || (alongY & (x | y)) || (left->constant && left->scalar) ||
        (right->constant && right->scalar))
      return std::nullopt;
    int64_t constant = left->constant ^ right->constant;
    V scalar = combined([&](V s, V t) { return b.CreateXor(s, t); });
    if (scalar && constant && (x & y)) {
      scalar = b.CreateXor(scalar, b.getInt32(constant));
      constant = 0;
    }
    return LaneRun{scalar, constant, left->step + right->step};
  }
  default: return std::nullopt;
  }
}

V CpuTargetInfo::sharedPointer(B &b, const LaneRun &run) {
  // The constant last: it becomes the displacement of the access.
  V start =
      run.scalar ? b.CreateGEP(b.getInt8Ty(), shared, b.CreateZExt(run.scalar, b.getInt64Ty(), "", true)) : shared;
  return b.CreateConstGEP1_64(b.getInt8Ty(), start, run.constant);
}

SmallVector<V> CpuTargetInfo::loadShared(B &b, Type *elem, unsigned vec, V offset, V pred, ArrayRef<V> tags) {
  if (isSmallFloat(elem))
    return fromBits(b, loadShared(b, b.getInt16Ty(), vec, offset, pred, tags), elem);
  unsigned bytes = storeBytes(elem);
  SmallVector<V> result;
  if (emulated) {
    SmallVector<V> initial(vec, Constant::getNullValue(laneType(elem)));
    return checkedAccess(b, "tessera_cpu_shared_load", elem, vec, offset, pred, tags, initial,
                         std::min(bytes * vec, 16u), false);
  }
  auto run = laneRun(b, offset);
  AccessHints hints;
  hints.alignment = bytes;
  if (run && run->step == 0 && !pred) { // one place: a scalar for all lanes
    for (unsigned i = 0; i < vec; ++i, run->constant += bytes)
      result.push_back(splat(b, b.CreateAlignedLoad(elem, sharedPointer(b, *run), Align(bytes))));
  } else if (run && run->step == vec * bytes) {
    V wide = pred && vec > 1 ? repeatLanes(b, pred, vec) : pred;
    V all = runLoad(b, FixedVectorType::get(elem, lanes * vec), sharedPointer(b, *run), wide, nullptr, hints);
    result = deinterleave(b, all, vec);
  } else {
    for (unsigned i = 0; i < vec; ++i)
      result.push_back(perLaneLoad(b, elem, sharedPointers(b, offset, i * bytes), pred, nullptr, bytes));
  }
  return result;
}

void CpuTargetInfo::storeShared(B &b, Type *elem, V offset, V pred, ArrayRef<V> values, ArrayRef<V> tags) {
  if (isSmallFloat(elem))
    return storeShared(b, b.getInt16Ty(), offset, pred, asBits(b, values), tags);
  unsigned bytes = storeBytes(elem), vec = values.size();
  if (emulated) {
    checkedAccess(b, "tessera_cpu_shared_store", elem, vec, offset, pred, tags, values, std::min(bytes * vec, 16u),
                  false);
    return;
  }
  auto run = laneRun(b, offset);
  if (run && run->step == vec * bytes) {
    AccessHints hints;
    hints.alignment = bytes;
    runStore(b, sharedPointer(b, *run), pred && vec > 1 ? repeatLanes(b, pred, vec) : pred, interleave(b, values),
             hints);
    return;
  }
  for (unsigned i = 0; i < vec; ++i)
    perLaneStore(b, sharedPointers(b, offset, i * bytes), pred, values[i], bytes);
}

V CpuTargetInfo::sharedPointers(B &b, V offset, unsigned bytes) {
  // 32-bit offsets to one base: what gathers take directly.
  return b.CreateGEP(b.getInt8Ty(), b.CreateConstGEP1_32(b.getInt8Ty(), shared, bytes), offset);
}

} // namespace tessera::codegen
