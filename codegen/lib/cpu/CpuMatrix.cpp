// Matrix instructions and asynchronous copies of emulated NVIDIA GPUs: calls of the executor, which carries them out by
// the rules of the PTX ISA.
#include "CpuTargetInfo.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"

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
  }
  return 0;
}

static Constant *matrixConstant(Builder &b, Module &m, ArrayRef<uint32_t> sizes, Constant *site) {
  SmallVector<Constant *> fields = map_to_vector(sizes, [&](uint32_t n) -> Constant * { return b.getInt32(n); });
  // tessera_cpu_site begins with a pointer: seven numbers before it need the eighth.
  fields.push_back(b.getInt32(0));
  fields.push_back(site);
  static_assert(offsetof(tessera_cpu_matrix, site) == 8 * sizeof(uint32_t));
  return privateConstant(m, ConstantStruct::getAnon(fields), "matrix");
}

MatrixFeatures CpuTargetInfo::matrixFeatures() const {
  return {computeCapability >= 80, computeCapability >= 90, computeCapability >= 80 ? 4u : 0u};
}

void CpuTargetInfo::countProduct(B &b, uint64_t multiplyAdds) {
  if (counting)
    count(b, offsetof(tessera_cpu_context, flops), b.getInt64(2 * multiplyAdds));
}

// ---- mma.sync ------------------------------------------------------------------------------------------------------

SmallVector<V> CpuTargetInfo::mma(B &b, const MmaShape &shape, ArrayRef<V> a, ArrayRef<V> bb, ArrayRef<V> c) {
  if (!computeCapability)
    return {};
  countProduct(b, uint64_t(shape.m) * shape.n * shape.k);
  Constant *matrix = matrixConstant(
      b, *kernel->getParent(), {shape.m, shape.n, shape.k, abiType(shape.a), abiType(shape.b), 0, 0}, site(b, false));
  V sums = toSlot(b, "mma.c", c);
  call(b, "tessera_cpu_mma", {matrix, toSlot(b, "mma.a", a), toSlot(b, "mma.b", bb), sums});
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

void CpuTargetInfo::storeMatrix(B &b, bool transposed, V rowOffset, ArrayRef<V> registers, ArrayRef<V> tags) {
  unsigned bytes = 4 * registers.size() / tags.size();
  call(b, "tessera_cpu_store_matrix",
       {context, accessOf(b, bytes, 16 / bytes, 16, 0), b.getInt32(registers.size()), b.getInt32(transposed),
        toSlot(b, "address", {rowOffset}), toSlot(b, "tags", tags), toSlot(b, "matrix", registers)});
}

// ---- wgmma ---------------------------------------------------------------------------------------------------------
// Until the wait a result is a ticket: one number, the same in all lanes, plus the number of the register.

SmallVector<V> CpuTargetInfo::wgmma(B &b, const WgmmaShape &shape, ArrayRef<V> a, V descB, ArrayRef<V> c, V useAcc) {
  if (computeCapability != 90)
    return {};
  countProduct(b, uint64_t(16) * shape.n * shape.k); // of the warp
  Constant *matrix = matrixConstant(
      b, *kernel->getParent(), {64, shape.n, shape.k, abiType(shape.a), abiType(shape.b), shape.transA, shape.transB},
      site(b, false));
  auto *null = ConstantPointerNull::get(b.getPtrTy());
  bool inRegisters = a[0]->getType()->isVectorTy();
  Type *lane32 = laneType(b.getInt32Ty());
  // A product on top of the one just started names its ticket; else the registers say whether they are one.
  bool chained = ArrayRef(tickets) == c;
  V sums = null, previous = b.getInt32(0);
  if (chained)
    previous = b.CreateSelect(useAcc, ticket, previous);
  else if (useAcc != b.getFalse())
    sums = b.CreateSelect(
        useAcc, toSlot(b, "wgmma.c", map_to_vector(c, [&](V v) { return b.CreateBitCast(v, lane32); })), null);
  ticket = call(b, "tessera_cpu_wgmma_start",
                {context, matrix, inRegisters ? toSlot(b, "wgmma.a", a) : null, inRegisters ? b.getInt64(0) : a[0],
                 descB, sums, previous},
                b.getInt32Ty());
  tickets.clear();
  for (unsigned i = 0; i < c.size(); ++i)
    tickets.push_back(b.CreateBitCast(splat(b, b.CreateAdd(ticket, b.getInt32(i))), laneType(shape.acc)));
  return tickets;
}

SmallVector<V> CpuTargetInfo::wgmmaWait(B &b, unsigned pending, ArrayRef<V> values) {
  Type *lane32 = laneType(b.getInt32Ty());
  auto mayBeTicket = [&](V v) {
    return v->getType()->isVectorTy() && v->getType()->getScalarType()->getPrimitiveSizeInBits() == 32;
  };
  SmallVector<V> results(values), registers;
  for (V v : values)
    if (mayBeTicket(v))
      registers.push_back(b.CreateBitCast(v, lane32));
  V memory = registers.empty() ? ConstantPointerNull::get(b.getPtrTy()) : toSlot(b, "wgmma.c", registers);
  call(b, "tessera_cpu_wgmma_wait", {context, b.getInt32(pending), b.getInt32(registers.size()), memory});
  registers = fromSlot(b, memory, lane32, registers.size());
  for (V *next = registers.begin(); V & v : results)
    if (mayBeTicket(v))
      v = b.CreateBitCast(*next++, v->getType());
  return results;
}

// ---- cp.async ------------------------------------------------------------------------------------------------------

void CpuTargetInfo::asyncCopy(B &b, unsigned bytes, V sharedOffset, V globalPtr, V active, V pred, const AccessHints &,
                              ArrayRef<V> tags) {
  V reads = active && pred ? b.CreateAnd(active, pred) : active ? active : pred;
  countLanes(b, offsetof(tessera_cpu_context, bytes_loaded), reads, bytes);
  unsigned elements = tags.empty() ? 1 : tags.size();
  call(b, "tessera_cpu_copy_start",
       {context, accessOf(b, bytes / elements, elements, bytes, 0), laneMask(b, active), laneMask(b, reads),
        toSlot(b, "address", {sharedOffset}), toSlot(b, "pointer", {globalPtr}),
        tags.empty() ? ConstantPointerNull::get(b.getPtrTy()) : toSlot(b, "tags", tags)});
}

} // namespace tessera::codegen
