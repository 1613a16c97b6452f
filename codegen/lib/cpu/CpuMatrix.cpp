// Matrix instructions and asynchronous copies of emulated GPUs: calls of the executor, which carries them out by the
// rules of the vendors' ISA documents.
#include "../amd/AmdInstructions.h"
#include "CpuTargetInfo.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"

#include <cstddef>

#include <tessera/codegen/cpu_abi.h>

using namespace llvm;

namespace tessera::codegen {

static uint32_t abiType(MatrixType type) {
  switch (type) {
  case MatrixType::F16: return tessera_matrix_f16;
  case MatrixType::BF16: return tessera_matrix_bf16;
  case MatrixType::TF32: return tessera_matrix_tf32;
  case MatrixType::F64: return tessera_matrix_f64;
  case MatrixType::E4M3: return tessera_matrix_e4m3;
  case MatrixType::E5M2: return tessera_matrix_e5m2;
  case MatrixType::S8: return tessera_matrix_s8;
  case MatrixType::U8: return tessera_matrix_u8;
  case MatrixType::F32: return tessera_matrix_f32;
  case MatrixType::E4M3FNUZ: return tessera_matrix_e4m3fnuz;
  case MatrixType::E5M2FNUZ: return tessera_matrix_e5m2fnuz;
  }
  return 0;
}

static Constant *matrixConstant(Builder &b, Module &m, ArrayRef<uint32_t> sizes, Constant *site,
                                ArrayRef<uint32_t> registers = {0, 0, 0, 0}) {
  SmallVector<Constant *> fields = map_to_vector(sizes, [&](uint32_t n) -> Constant * { return b.getInt32(n); });
  fields.push_back(site);
  for (uint32_t number : registers)
    fields.push_back(b.getInt32(number));
  static_assert(offsetof(tessera_cpu_matrix, site) == 8 * sizeof(uint32_t));
  return privateConstant(m, ConstantStruct::getAnon(fields), "matrix");
}

MatrixFeatures CpuTargetInfo::matrixFeatures() const {
  return {.loadMatrix = computeCapability >= 80,
          .storeMatrix = computeCapability >= 90,
          .minAsyncCopyBytes = computeCapability >= 80 || countsCopies() ? 4u : 0u,
          .copiesInLaneOrder = countsCopies(),
          .loadTransposed = countsCopies()};
}

bool CpuTargetInfo::countsCopies() const { return amdVersion == std::pair(MatrixFamily::Mfma, 4u); }

// ---- mma.sync, MFMA, WMMA ------------------------------------------------------------------------------------------

/// Whose tables the executor takes; none: it has no such instruction.
static std::optional<tessera_cpu_matrix_unit> unitOf(const MmaShape &shape) {
  const MatrixInstruction &i = shape.instruction;
  if (i.family == MatrixFamily::Mma)
    return tessera_unit_nvidia;
  if (!findAmdInstruction(shape))
    return std::nullopt;
  if (i.family == MatrixFamily::Mfma)
    return i.version == 2 ? tessera_unit_cdna2 : tessera_unit_cdna3;
  return i.version == 1   ? std::optional(tessera_unit_rdna3)
         : i.version == 2 ? std::optional(tessera_unit_rdna4)
                          : std::nullopt; // no document says where gfx1250 has its elements
}

MatrixInstruction CpuTargetInfo::widest(const MatrixInstruction &i, int64_t rows, int64_t depth) const {
  return widestOnNvidia(computeCapability, i, rows, depth);
}

SmallVector<V> CpuTargetInfo::mma(B &b, const MmaShape &shape, ArrayRef<V> a, ArrayRef<V> bb, ArrayRef<V> c) {
  const MatrixInstruction &i = shape.instruction;
  std::optional<tessera_cpu_matrix_unit> unit = unitOf(shape);
  bool ours = computeCapability ? i.family == MatrixFamily::Mma : amdVersion == std::pair(i.family, i.version);
  if (!unit || !ours)
    return {};
  Constant *matrix = matrixConstant(b, *kernel->getParent(),
                                    {i.m, i.n, i.k, abiType(shape.a), abiType(shape.b), 0, 0, *unit}, site(b, false));
  V sums = toSlot(b, "mma.c", c);
  call(b, "tessera_cpu_mma", {context, matrix, toSlot(b, "mma.a", a), toSlot(b, "mma.b", bb), sums});
  return fromSlot(b, sums, c[0]->getType(), c.size());
}

// Registers of 32 bits hold as many elements as there are tags of each.
SmallVector<V> CpuTargetInfo::loadMatrix(B &b, unsigned count, bool transposed, V rowOffset, ArrayRef<V> tags) {
  unsigned bytes = 4 * count / tags.size();
  V memory = slot(b, "matrix", ArrayType::get(laneType(b.getInt32Ty()), count));
  call(b, "tessera_cpu_load_matrix",
       {context, accessOf(b, bytes, 16 / bytes, 16, 0), b.getInt32(count), b.getInt32(transposed),
        toSlot(b, "address", {rowOffset}), toSlot(b, "tags", tags), memory});
  return fromSlot(b, memory, laneType(b.getInt32Ty()), count);
}

SmallVector<V> CpuTargetInfo::loadTransposed(B &b, V rowOffset, ArrayRef<V> tags) {
  V memory = slot(b, "matrix", ArrayType::get(laneType(b.getInt32Ty()), 2));
  call(b, "tessera_cpu_load_transposed",
       {context, accessOf(b, 2, 4, 8, 0), toSlot(b, "address", {rowOffset}), toSlot(b, "tags", tags), memory});
  return fromSlot(b, memory, laneType(b.getInt32Ty()), 2);
}

void CpuTargetInfo::storeMatrix(B &b, bool transposed, V rowOffset, ArrayRef<V> registers, ArrayRef<V> tags) {
  unsigned bytes = 4 * registers.size() / tags.size();
  call(b, "tessera_cpu_store_matrix",
       {context, accessOf(b, bytes, 16 / bytes, 16, 0), b.getInt32(registers.size()), b.getInt32(transposed),
        toSlot(b, "address", {rowOffset}), toSlot(b, "tags", tags), toSlot(b, "matrix", registers)});
}

// ---- wgmma ---------------------------------------------------------------------------------------------------------
// Until the wait a result is a ticket: one number, the same in all lanes, plus the number of the register.

SmallVector<V> CpuTargetInfo::warpGroupMma(B &b, const WarpGroupShape &shape, ArrayRef<V> a, V descB, ArrayRef<V> c,
                                           V useAcc) {
  if (!hasWarpGroupMma(computeCapability))
    return {};
  bool inRegisters = a[0]->getType()->isVectorTy();
  SmallVector<uint32_t> registers(4, 0);
  if (inRegisters)
    transform(a, registers.begin(), [&](V word) { return registerOf(word); });
  Constant *matrix = matrixConstant(
      b, *kernel->getParent(),
      {64, shape.n, shape.k, abiType(shape.a), abiType(shape.b), shape.transA, shape.transB, tessera_unit_nvidia},
      site(b, false), registers);
  auto *null = ConstantPointerNull::get(b.getPtrTy());
  // A product on top of the one just started names its ticket; else the registers say whether they are one.
  bool chained = ArrayRef(tickets) == c;
  V sums = null, previous = b.getInt32(0);
  if (chained)
    previous = b.CreateSelect(useAcc, ticket, previous);
  else if (useAcc != b.getFalse())
    sums = b.CreateSelect(useAcc, accumulatorsToSlot(b, c), null);
  ticket = call(b, "tessera_cpu_wgmma_start",
                {context, matrix, inRegisters ? toSlot(b, "wgmma.a", a) : null, inRegisters ? b.getInt64(0) : a[0],
                 descB, sums, previous},
                b.getInt32Ty());
  tickets.clear();
  for (unsigned i = 0; i < c.size(); ++i)
    tickets.push_back(b.CreateBitCast(splat(b, b.CreateAdd(ticket, b.getInt32(i))), laneType(shape.acc)));
  unfinished.insert(tickets.begin(), tickets.end());
  return tickets;
}

SmallVector<V> CpuTargetInfo::warpGroupWait(B &b, unsigned pending, ArrayRef<V> values) {
  Type *lane32 = laneType(b.getInt32Ty());
  auto mayBeTicket = [&](V v) {
    return v->getType()->isVectorTy() && v->getType()->getScalarType()->getPrimitiveSizeInBits() == 32;
  };
  SmallVector<V> results(values), registers;
  for (V v : values)
    if (mayBeTicket(v))
      registers.push_back(v);
  V memory = registers.empty() ? ConstantPointerNull::get(b.getPtrTy()) : accumulatorsToSlot(b, registers);
  call(b, "tessera_cpu_wgmma_wait", {context, b.getInt32(pending), b.getInt32(registers.size()), memory});
  registers = fromSlot(b, memory, lane32, registers.size());
  if (pending) // of what was committed, that is: what was not is never waited for
    unfinished.insert(registers.begin(), registers.end());
  for (V *next = registers.begin(); V & v : results)
    if (mayBeTicket(v))
      v = b.CreateBitCast(*next++, v->getType());
  return results;
}

V CpuTargetInfo::accumulatorsToSlot(B &b, ArrayRef<V> values) {
  Type *lane32 = laneType(b.getInt32Ty());
  V memory = toSlot(b, "wgmma.c", map_to_vector(values, [&](V v) { return b.CreateBitCast(v, lane32); }));
  accumulatorSlots.insert(memory);
  return memory;
}

// Before its wait a result may be handed on, to the next wgmma, to a wait, around a loop. Before every other
// instruction that takes it the executor looks whether it is a ticket still.
void CpuTargetInfo::checkAccumulatorReads(B &b) {
  MapVector<std::pair<V, BasicBlock *>, Instruction *> reads; // the first of the block
  SetVector<V> handedOn = std::move(unfinished);
  for (size_t i = 0; i < handedOn.size(); ++i)
    for (User *user : handedOn[i]->users()) {
      auto *by = cast<Instruction>(user);
      auto *store = dyn_cast<StoreInst>(by);
      if (isa<PHINode, BitCastInst>(by)) {
        handedOn.insert(by);
      } else if (!store || !accumulatorSlots.contains(getUnderlyingObject(store->getPointerOperand()))) {
        Instruction *&first = reads[{handedOn[i], by->getParent()}];
        if (!first || by->comesBefore(first))
          first = by;
      }
    }
  for (auto &[read, by] : reads) {
    b.SetInsertPoint(by);
    V lanes = b.CreateBitCast(read.first, laneType(b.getInt32Ty()));
    call(b, "tessera_cpu_register_read", {context, toSlot(b, "read", {lanes}), site(b, true)});
  }
}

uint32_t CpuTargetInfo::registerOf(V word) {
  return isa<Instruction>(word) ? operandRegisters.insert({word, operandRegisters.size() + 1}).first->second : 0;
}

// Here every wgmma has its own copy of A. On the GPU a value has one register, which is written whenever the code that
// makes it is passed again; and what has no effects may be moved there by a compiler, as far up as the last instruction
// with effects that it depends on.
void CpuTargetInfo::markRegisterWrites(B &b) {
  if (operandRegisters.empty())
    return;
  DominatorTree tree(*kernel);
  LoopInfo loops(tree);
  for (auto [word, number] : operandRegisters) {
    Instruction *written = nullptr;
    SmallVector<Instruction *> work{cast<Instruction>(word)};
    SmallPtrSet<Instruction *, 16> seen;
    while (!work.empty()) {
      Instruction *i = work.pop_back_val();
      if (!seen.insert(i).second)
        continue;
      if (isa<PHINode>(i) || i->mayReadOrWriteMemory()) {
        if (!written || tree.dominates(written, i))
          written = i;
        continue;
      }
      for (Value *operand : i->operands())
        if (auto *from = dyn_cast<Instruction>(operand))
          work.push_back(from);
    }
    if (!written || !loops.getLoopFor(written->getParent())) // once
      continue;
    b.SetInsertPoint(written->getParent(), *written->getInsertionPointAfterDef());
    b.SetCurrentDebugLocation(written->getDebugLoc());
    call(b, "tessera_cpu_register_written", {context, b.getInt32(number), site(b, true)});
  }
}

// ---- cp.async, global_load_lds -------------------------------------------------------------------------------------
// Where the hardware counts copies and not groups, each copy is a group of the executor, and the wait that of the GPU's
// code.

void CpuTargetInfo::asyncCopy(B &b, unsigned bytes, V sharedOffset, V globalPtr, V active, V pred, const AccessHints &,
                              ArrayRef<V> tags) {
  V reads = active && pred ? b.CreateAnd(active, pred) : active ? active : pred;
  countLanes(b, offsetof(tessera_cpu_context, bytes_loaded), reads, bytes);
  unsigned elements = tags.empty() ? 1 : tags.size();
  call(b, "tessera_cpu_copy_start",
       {context, accessOf(b, bytes / elements, elements, bytes, 0), laneMask(b, active), laneMask(b, reads),
        toSlot(b, "address", {sharedOffset}), toSlot(b, "pointer", {globalPtr}),
        tags.empty() ? ConstantPointerNull::get(b.getPtrTy()) : toSlot(b, "tags", tags)});
  if (countsCopies()) {
    call(b, "tessera_cpu_copy_commit", {context});
    copies.copy(b.GetInsertBlock());
  }
}

void CpuTargetInfo::asyncCommit(B &b) {
  if (countsCopies())
    copies.commit(b.GetInsertBlock());
  else
    call(b, "tessera_cpu_copy_commit", {context});
}

void CpuTargetInfo::asyncWait(B &b, unsigned pending) {
  V wait = call(b, "tessera_cpu_copy_wait", {context, b.getInt32(pending)});
  if (countsCopies())
    copies.wait(cast<CallInst>(wait), pending);
}

void CpuTargetInfo::finishKernel(B &b) {
  b.CreateRetVoid();
  markRegisterWrites(b);
  checkAccumulatorReads(b);
  copies.finish([](CallInst *call, unsigned pending) {
    call->setArgOperand(1, ConstantInt::get(Type::getInt32Ty(call->getContext()), pending));
  });
}

} // namespace tessera::codegen
