// Matrix units and asynchronous copies. mma, wgmma and cp.async are inline PTX: one text for every shape and type, and
// wgmma's accumulators can be tied to its results, which no intrinsic says. What moves fragments through shared memory
// are intrinsics, whose addresses LLVM folds.
#include "NvidiaTargetInfo.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

#include <fmt/format.h>

namespace tessera::codegen {

namespace Intrinsic = llvm::Intrinsic;

namespace {

const char *nameOf(MatrixType type) {
  switch (type) {
  case MatrixType::F16: return "f16";
  case MatrixType::BF16: return "bf16";
  case MatrixType::TF32: return "tf32";
  case MatrixType::F64: return "f64";
  case MatrixType::E4M3: return "e4m3";
  case MatrixType::E5M2: return "e5m2";
  case MatrixType::S8: return "s8";
  case MatrixType::U8: return "u8";
  default: return ""; // no type of PTX
  }
}

bool isFp8(MatrixType type) { return type == MatrixType::E4M3 || type == MatrixType::E5M2; }

const char *nameOf(llvm::Type *acc) {
  return acc->isDoubleTy() ? "f64" : acc->isFloatTy() ? "f32" : acc->isIntegerTy(64) ? "s64" : "s32";
}

char constraintOf(llvm::Type *type) {
  if (type->isPointerTy())
    return type->getPointerAddressSpace() == 3 ? 'r' : 'l';
  if (type->isDoubleTy())
    return 'd';
  if (type->isFloatTy())
    return 'f';
  switch (type->getIntegerBitWidth()) {
  case 1: return 'b';
  case 16: return 'h';
  case 64: return 'l';
  default: return 'r';
  }
}

/// An inline assembly call in the making. Results come first; `tied` inputs share the registers of the results.
class Assembly {
public:
  Assembly(llvm::IRBuilderBase &b, llvm::Type *result = nullptr, unsigned numResults = 0)
      : b(b), resultType(result), numResults(numResults) {
    for (unsigned i = 0; i < numResults; ++i)
      add(fmt::format("={}", constraintOf(result)));
  }
  void tie(llvm::ArrayRef<V> values) {
    for (auto [i, v] : llvm::enumerate(values)) {
      add(std::to_string(i));
      take(v);
    }
  }
  std::string in(V v) {
    add(std::string(1, constraintOf(v->getType())));
    return "$" + std::to_string(take(v));
  }
  /// "{$4, $5}"
  std::string in(llvm::ArrayRef<V> values) {
    std::string list;
    for (V v : values)
      list += (list.empty() ? "" : ", ") + in(v);
    return "{" + list + "}";
  }
  std::string results() const { return results(0, numResults); }
  std::string results(unsigned first, unsigned count) const {
    std::string list = "{";
    for (unsigned i = first; i < first + count; ++i)
      list += (i > first ? ", $" : "$") + std::to_string(i);
    return list + "}";
  }
  llvm::SmallVector<V> emit(llvm::StringRef text, bool sideEffects) {
    llvm::Type *returned = numResults == 0 ? b.getVoidTy() : numResults == 1 ? resultType : structOfResults();
    auto *type = llvm::FunctionType::get(returned, types, false);
    llvm::CallInst *call = b.CreateCall(type, llvm::InlineAsm::get(type, text, constraints, sideEffects), operands);
    call->setConvergent();
    call->setDoesNotThrow();
    if (!sideEffects)
      call->setDoesNotAccessMemory();
    llvm::SmallVector<V> values;
    for (unsigned i = 0; i < numResults; ++i)
      values.push_back(numResults == 1 ? call : b.CreateExtractValue(call, i));
    return values;
  }

private:
  void add(llvm::StringRef constraint) {
    if (!constraints.empty())
      constraints += ',';
    constraints += constraint;
  }
  /// Named: the text of the module would consist of them otherwise.
  llvm::StructType *structOfResults() {
    llvm::SmallVector<llvm::Type *> elements(numResults, resultType);
    std::string name = fmt::format("{}x{}", nameOf(resultType), numResults);
    auto *known = llvm::StructType::getTypeByName(b.getContext(), name);
    return known ? known : llvm::StructType::create(elements, name);
  }
  unsigned take(V v) {
    operands.push_back(v);
    types.push_back(v->getType());
    return numResults + operands.size() - 1;
  }

  llvm::IRBuilderBase &b;
  llvm::Type *resultType;
  unsigned numResults;
  std::string constraints;
  llvm::SmallVector<V> operands;
  llvm::SmallVector<llvm::Type *> types;
};

/// A pointer and the constant that is added to it last.
std::pair<V, int64_t> splitOffset(V pointer) {
  auto *gep = llvm::dyn_cast<llvm::GEPOperator>(pointer);
  if (!gep || gep->getNumIndices() != 1 || !gep->getSourceElementType()->isIntegerTy(8))
    return {pointer, 0};
  auto *offset = llvm::dyn_cast<llvm::ConstantInt>(gep->getOperand(1));
  return offset ? std::pair{gep->getPointerOperand(), offset->getSExtValue()} : std::pair{pointer, int64_t(0)};
}

} // namespace

MatrixFeatures NvidiaTargetInfo::matrixFeatures() const {
  return {.loadMatrix = true, .storeMatrix = facts.capability >= 90, .minAsyncCopyBytes = 4, .minBranchedCopies = 10};
}

MatrixInstruction NvidiaTargetInfo::widest(const MatrixInstruction &i, int64_t rows, int64_t depth) const {
  return widestOnNvidia(facts.capability, i, rows, depth);
}

llvm::SmallVector<V> NvidiaTargetInfo::mma(B &b, const MmaShape &shape, llvm::ArrayRef<V> a, llvm::ArrayRef<V> bb,
                                           llvm::ArrayRef<V> c) {
  if (isFp8(shape.a))
    requirePtx(84);
  Assembly code(b, shape.acc, c.size());
  std::string text =
      fmt::format("mma.sync.aligned.m{}n{}k{}.row.col.{}.{}.{}.{} {}", shape.instruction.m, shape.instruction.n,
                  shape.instruction.k, nameOf(shape.acc), nameOf(shape.a), nameOf(shape.b), nameOf(shape.acc),
                  code.results());
  for (llvm::ArrayRef<V> operand : {a, bb, c})
    text += ", " + code.in(operand);
  return code.emit(text + ";", false);
}

// One statement for all chains and steps: LLVM's time goes into the operands, and the accumulators are most of them. It
// begins with the fence, so that no register is written between the two; a fence before each chain would cost 8 % of a
// product with two of them.
llvm::SmallVector<V> NvidiaTargetInfo::warpGroupChains(B &b, const WarpGroupShape &shape, llvm::ArrayRef<V> a,
                                                       llvm::ArrayRef<V> descB, llvm::ArrayRef<V> c, V useAcc) {
  Assembly code(b, shape.acc, c.size());
  auto *known = llvm::dyn_cast<llvm::ConstantInt>(useAcc);
  if (known && known->isZero())
    code.tie(llvm::SmallVector<V>(c.size(), llvm::PoisonValue::get(shape.acc))); // not read
  else
    code.tie(c);
  size_t own = shape.n / 2, steps = descB.size() * own / c.size(), perStep = a.size() / descB.size();
  bool inRegisters = perStep > 1;
  std::string head = fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} ", shape.n, shape.k, nameOf(shape.acc),
                                 nameOf(shape.a), nameOf(shape.b));
  std::string tail;
  if (shape.acc->isFloatTy())
    tail = ", 1, 1"; // neither operand negated
  if (shape.a == MatrixType::F16 || shape.a == MatrixType::BF16)
    tail += fmt::format("{}, {:d}", inRegisters ? "" : fmt::format(", {:d}", shape.transA), shape.transB);
  std::string text = "wgmma.fence.sync.aligned;", use = code.in(useAcc), always = steps > 1 ? code.in(b.getTrue()) : "";
  for (auto [i, desc] : llvm::enumerate(descB)) {
    llvm::ArrayRef<V> operand = a.slice(i * perStep, perStep);
    text += "\n\t" + head + code.results(i / steps * own, own) + ", ";
    text += (inRegisters ? code.in(operand) : code.in(operand.front())) + ", ";
    text += code.in(desc) + ", " + (i % steps ? always : use) + tail + ";";
  }
  return code.emit(text, true);
}

V NvidiaTargetInfo::sharedBaseOfDescriptors(B &b) {
  V address = b.CreatePtrToInt(sharedMemory, b.getInt32Ty());
  return b.CreateLShr(b.CreateAnd(address, 0x3ffff), 4); // higher bits name the program in its cluster
}

void NvidiaTargetInfo::warpGroupCommit(B &b) { b.CreateIntrinsic(Intrinsic::nvvm_wgmma_commit_group_sync_aligned, {}); }

llvm::SmallVector<V> NvidiaTargetInfo::warpGroupWait(B &b, unsigned pending, llvm::ArrayRef<V> values) {
  // Passed through the wait, no use of a result can move above it.
  std::string text = fmt::format("wgmma.wait_group.sync.aligned {};", pending);
  llvm::SmallVector<V> results;
  if (values.empty())
    Assembly(b).emit(text, true);
  for (llvm::ArrayRef<V> rest = values; !rest.empty();) {
    // One statement holds values of one type: a second one for others finds nothing to wait for.
    llvm::Type *type = rest.front()->getType();
    llvm::ArrayRef<V> alike = rest.take_while([&](V v) { return v->getType() == type; });
    Assembly code(b, type, alike.size());
    code.tie(alike);
    results.append(code.emit(text, true));
    rest = rest.drop_front(alike.size());
  }
  return results;
}

void NvidiaTargetInfo::fenceAsyncShared(B &b) { b.CreateIntrinsic(Intrinsic::nvvm_fence_proxy_async_shared_cta, {}); }

void NvidiaTargetInfo::asyncCopy(B &b, unsigned bytes, V sharedOffset, V globalPtr, V active, V pred,
                                 const AccessHints &hints, llvm::ArrayRef<V>) {
  // 16 bytes go past L1: every element is read once by a program. L2 fetches whole lines: 3 % on products with both
  // operands K-major, where a tile has 128 bytes of a row and the next tile the next 128.
  bool policy = hints.evict != EvictionPolicy::Normal;
  auto [shared, sharedConstant] = splitOffset(sharedPointer(b, sharedOffset));
  auto [global, globalConstant] = splitOffset(globalPtr);
  Assembly code(b);
  std::string text;
  if (active)
    text = "@" + code.in(active) + " ";
  text += fmt::format("cp.async.{}.shared.global{}", bytes == 16 ? "cg" : "ca", policy ? ".L2::cache_hint" : "");
  if (bytes == 16) {
    requirePtx(74);
    text += ".L2::128B";
  }
  text += fmt::format(" [{} + {}]", code.in(shared), sharedConstant);
  text += fmt::format(", [{} + {}], {}", code.in(global), globalConstant, bytes);
  if (pred) {
    requirePtx(75);
    text += ", " + code.in(b.CreateNot(pred)); // whether to ignore the source
  }
  if (policy)
    text += ", " + code.in(cachePolicy(b, hints.evict));
  code.emit(text + ";", true);
}

void NvidiaTargetInfo::asyncCommit(B &b) { b.CreateIntrinsic(Intrinsic::nvvm_cp_async_commit_group, {}); }

void NvidiaTargetInfo::asyncWait(B &b, unsigned pending) {
  b.CreateIntrinsic(Intrinsic::nvvm_cp_async_wait_group, {}, {b.getInt32(pending)});
}

llvm::SmallVector<V> NvidiaTargetInfo::loadMatrix(B &b, unsigned count, bool transposed, V rowOffset,
                                                  llvm::ArrayRef<V>) {
  static constexpr Intrinsic::ID ids[2][3] = {
      {Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x1_b16, Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_b16,
       Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16},
      {Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x1_trans_b16, Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16,
       Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16}};
  V pointer = sharedPointer(b, rowOffset);
  V loaded = b.CreateIntrinsic(ids[transposed][llvm::Log2_32(count)], {pointer->getType()}, {pointer});
  if (count == 1)
    return {loaded};
  llvm::SmallVector<V> registers;
  for (unsigned i = 0; i < count; ++i)
    registers.push_back(b.CreateExtractValue(loaded, i));
  return registers;
}

void NvidiaTargetInfo::storeMatrix(B &b, bool transposed, V rowOffset, llvm::ArrayRef<V> registers, llvm::ArrayRef<V>) {
  static constexpr Intrinsic::ID ids[2][3] = {
      {Intrinsic::nvvm_stmatrix_sync_aligned_m8n8_x1_b16, Intrinsic::nvvm_stmatrix_sync_aligned_m8n8_x2_b16,
       Intrinsic::nvvm_stmatrix_sync_aligned_m8n8_x4_b16},
      {Intrinsic::nvvm_stmatrix_sync_aligned_m8n8_x1_trans_b16, Intrinsic::nvvm_stmatrix_sync_aligned_m8n8_x2_trans_b16,
       Intrinsic::nvvm_stmatrix_sync_aligned_m8n8_x4_trans_b16}};
  V pointer = sharedPointer(b, rowOffset);
  llvm::SmallVector<V> args{pointer};
  llvm::append_range(args, registers);
  b.CreateIntrinsic(ids[transposed][llvm::Log2_32(registers.size())], {pointer->getType()}, args);
}

llvm::SmallVector<V> NvidiaTargetInfo::convertToFp8(B &b, MatrixType to, V low, V high) {
  if (facts.capability < 89 || !isFp8(to))
    return {};
  requirePtx(facts.capability == 89 ? 81 : 78);
  V packed = nullptr;
  if (low->getType()->isHalfTy()) {
    V pair = b.CreateInsertElement(llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getHalfTy(), 2)), low, 0ul);
    pair = b.CreateBitCast(b.CreateInsertElement(pair, high, 1), b.getInt32Ty());
    Assembly code(b, b.getInt16Ty(), 1);
    packed = code.emit(fmt::format("cvt.rn.satfinite.{}x2.f16x2 $0, {};", nameOf(to), code.in(pair)), false).front();
  } else {
    Assembly code(b, b.getInt16Ty(), 1);
    std::string upper = code.in(high);
    packed =
        code.emit(fmt::format("cvt.rn.satfinite.{}x2.f32 $0, {}, {};", nameOf(to), upper, code.in(low)), false).front();
  }
  return {b.CreateTrunc(packed, b.getInt8Ty()), b.CreateTrunc(b.CreateLShr(packed, 8), b.getInt8Ty())};
}

llvm::SmallVector<V> NvidiaTargetInfo::convertFromFp8(B &b, MatrixType from, V low, V high) {
  if (facts.capability < 89 || !isFp8(from))
    return {};
  requirePtx(facts.capability == 89 ? 81 : 78);
  V wideHigh = b.CreateShl(b.CreateZExt(high, b.getInt16Ty()), 8);
  V packed = b.CreateOr(b.CreateZExt(low, b.getInt16Ty()), wideHigh, "", true);
  Assembly code(b, b.getInt32Ty(), 1);
  V pair = code.emit(fmt::format("cvt.rn.f16x2.{}x2 $0, {};", nameOf(from), code.in(packed)), false).front();
  pair = b.CreateBitCast(pair, llvm::FixedVectorType::get(b.getHalfTy(), 2));
  return {b.CreateExtractElement(pair, 0ul), b.CreateExtractElement(pair, 1)};
}

} // namespace tessera::codegen
