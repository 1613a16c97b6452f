// The CPU target: kernel frame, lanes, barriers, machine code. Memory is in CpuMemory.cpp, float functions in
// CpuMath.cpp.
#include "CpuTargetInfo.h"

#include "../amd/AmdInstructions.h"
#include "Disassemble.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"

#include <chrono>
#include <cstddef>
#include <mutex>

#include <tessera/codegen/cpu_abi.h>
#include <tessera/error.h>

using namespace llvm;

namespace tessera::codegen {

std::unique_ptr<TargetInfo> createCpuTargetInfo(const target &t, const compile_options &options) {
  return std::make_unique<CpuTargetInfo>(t, options);
}

CpuTargetInfo::CpuTargetInfo(const target &t, const compile_options &options)
    : emulated(t.emulated()), counting(options.count_traffic), amd(t.arch.starts_with("gfx")), lanes(t.warp_size()),
      host(hostCpu()) {
  StringRef arch(t.arch);
  if (arch.consume_front("sm_"))
    arch.consumeInteger(10, computeCapability);
  amdVersion = amdMatrixVersion(t.arch);
}

// ---- module -------------------------------------------------------------------------------------------------------

std::unique_ptr<TargetMachine> CpuTargetInfo::createTargetMachine(const compile_options &options) const {
  static std::once_flag once;
  std::call_once(once, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
  });
  Triple triple(host.triple);
  std::string reason;
  const Target *native = TargetRegistry::lookupTarget(triple, reason);
  if (!native)
    throw error(stage::codegen, "this build of LLVM has no code generator for the host: " + reason);
  TargetOptions target;
  target.AllowFPOpFusion = options.enable_fp_fusion ? FPOpFusion::Fast : FPOpFusion::Strict;
  // Emulation is for checking: there vectors are many registers wide, and the time to compile them counts more.
  CodeGenOptLevel level = emulated ? CodeGenOptLevel::None : CodeGenOptLevel::Aggressive;
  return std::unique_ptr<TargetMachine>(native->createTargetMachine(
      triple, host.cpu, host.features, target, Reloc::PIC_, CodeModel::Small, level, /*JIT=*/true));
}

Function *CpuTargetInfo::createKernel(Module &m, B &b, StringRef name, ArrayRef<Type *> types, SmallVectorImpl<V> &args,
                                      const compile_options &options, unsigned sharedBytes) {
  LLVMContext &c = m.getContext();
  Type *ptr = PointerType::getUnqual(c);
  kernel = Function::Create(FunctionType::get(Type::getVoidTy(c), {ptr, ptr}, false), GlobalValue::ExternalLinkage,
                            name + tessera_cpu_entry_suffix, m);
  setVectorAttributes(*kernel);
  kernel->addParamAttr(1, Attribute::NoAlias);
  kernel->getArg(0)->setName("args");
  kernel->getArg(1)->setName("ctx");
  slots.clear();
  tickets.clear();
  operandRegisters.clear();
  unfinished.clear();
  accumulatorSlots.clear();
  copies = {};
  numWarps = std::max(1, options.num_warps);
  b.SetInsertPoint(BasicBlock::Create(c, "entry", kernel));
  context = kernel->getArg(1);

  MDNode *invariant = MDNode::get(c, {});
  auto load = [&](Type *type, V from, uint64_t offset) {
    LoadInst *value = b.CreateLoad(type, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), from, offset));
    value->setMetadata(LLVMContext::MD_invariant_load, invariant);
    return value;
  };
  for (unsigned axis = 0; axis < 3; ++axis) {
    program[axis] = load(b.getInt32Ty(), context, offsetof(tessera_cpu_context, program) + 4 * axis);
    grid[axis] = load(b.getInt32Ty(), context, offsetof(tessera_cpu_context, grid) + 4 * axis);
  }
  warp = numWarps == 1 ? static_cast<V>(b.getInt32(0))
                       : load(b.getInt32Ty(), context, offsetof(tessera_cpu_context, warp));
  shared = load(ptr, context, offsetof(tessera_cpu_context, shared));
  for (auto [i, type] : enumerate(types)) {
    V value = load(ptr, kernel->getArg(0), sizeof(void *) * i);
    if (type->isIntegerTy(1)) // a bool is a byte in memory
      args.push_back(b.CreateIsNotNull(load(b.getInt8Ty(), value, 0)));
    else
      args.push_back(load(type, value, 0));
  }
  return kernel;
}

void CpuTargetInfo::linkLibraries(Module &m) const { prepareForHost(m); }

void CpuTargetInfo::emitMachineCode(Module &m, TargetMachine &tm, compiled_kernel &out, StringRef lastStage) const {
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  auto timed = [&](const char *name) {
    auto end = Clock::now();
    out.times.push_back({name, std::chrono::duration<double, std::milli>(end - start).count()});
    start = end;
  };
  // Some processors' models have a scheduler after register allocation whose time is the square of a block's length.
  // Long blocks are scheduled for a processor without one.
  for (Function &f : m)
    if (tm.getTargetTriple().isX86_64() && any_of(f, [](BasicBlock &block) { return block.size() > 4096; }))
      f.addFnAttr("tune-cpu", "x86-64-v3");
  SmallString<0> object;
  raw_svector_ostream stream(object);
  legacy::PassManager passes;
  if (tm.addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::ObjectFile))
    throw error(stage::codegen, "the host's code generator cannot write an object file");
  passes.run(m);
  timed("isel");
  out.stages.emplace_back("asm", disassemble(object, tm));
  timed("disassemble");
  if (lastStage != "asm")
    out.stages.emplace_back("obj", object.str().str());
}

std::pair<unsigned, unsigned> CpuTargetInfo::accumulatorBlock(Type *acc) const {
  if (emulated)
    return {0, 0};
  // Half of the registers, AVX-512's being 32, others' 16: the rest is for operands.
  unsigned vectors = std::max(1u, lanes * acc->getScalarSizeInBits() / 8 / host.vectorBytes);
  unsigned block = std::max(2u, (host.vectorBytes == 64 ? 16 : 8) / vectors);
  return {block / 2, 2};
}

// ---- lanes and warps ----------------------------------------------------------------------------------------------

Type *CpuTargetInfo::laneType(Type *elem) const { return FixedVectorType::get(elem, lanes); }

V CpuTargetInfo::laneId(B &b) {
  auto ids = to_vector(seq<uint32_t>(0, lanes));
  return ConstantDataVector::get(b.getContext(), ids);
}

void CpuTargetInfo::barrier(B &b) {
  // One native warp is one thread of execution; emulated lanes are ordered by barriers only, so the executor must know.
  if (numWarps > 1 || emulated)
    call(b, "tessera_cpu_barrier", {context});
}

V CpuTargetInfo::shuffleXor(B &b, V v, unsigned mask) {
  SmallVector<int> from;
  for (unsigned lane = 0; lane < lanes; ++lane)
    from.push_back(lane ^ mask);
  return b.CreateShuffleVector(v, from);
}

V CpuTargetInfo::shuffleIdx(B &b, V v, V index) {
  // Through memory, in elements that can be gathered.
  Type *type = v->getType(), *elem = type->getScalarType();
  unsigned bits = elem->isPointerTy() ? 64 : elem->getPrimitiveSizeInBits();
  Type *exact = laneType(b.getIntNTy(bits)), *wide = laneType(b.getIntNTy(bits <= 32 ? 32 : 64));
  V carried = elem->isPointerTy() ? b.CreatePtrToInt(v, exact) : b.CreateBitCast(v, exact);
  carried = b.CreateZExt(carried, wide);
  V memory = slot(b, "shuffle", wide);
  b.CreateStore(carried, memory);
  V lane = b.CreateAnd(index, ConstantInt::get(index->getType(), lanes - 1));
  V result = perLaneLoad(b, wide->getScalarType(), b.CreateGEP(wide->getScalarType(), memory, lane), nullptr, nullptr,
                         wide->getScalarSizeInBits() / 8);
  result = b.CreateTrunc(result, exact);
  return elem->isPointerTy() ? b.CreateIntToPtr(result, type) : b.CreateBitCast(result, type);
}

// ---- calls of the executor ----------------------------------------------------------------------------------------

V CpuTargetInfo::call(B &b, StringRef helper, ArrayRef<V> args, Type *result) {
  Module &m = *kernel->getParent();
  SmallVector<Type *> types = map_to_vector(args, [](V v) { return v->getType(); });
  FunctionCallee f = m.getOrInsertFunction(helper, FunctionType::get(result ? result : b.getVoidTy(), types, false));
  cast<Function>(f.getCallee())->addFnAttr(Attribute::NoUnwind);
  return b.CreateCall(f, args);
}

GlobalVariable *privateConstant(Module &m, Constant *value, StringRef name) {
  auto *global = new GlobalVariable(m, value->getType(), true, GlobalValue::PrivateLinkage, value, name);
  global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
  return global;
}

Constant *CpuTargetInfo::site(B &b, bool asPointer) {
  Module &m = *kernel->getParent();
  std::string file;
  unsigned line = 0, column = 0;
  if (DebugLoc at = b.getCurrentDebugLocation()) {
    StringRef directory = at->getDirectory(), name = at->getFilename();
    file = directory.empty() || name.starts_with("/") ? name.str() : (directory + "/" + name).str();
    line = at.getLine();
    column = at.getCol();
  }
  std::string key = "site " + file;
  V &text = slots[key];
  if (!text)
    text = b.CreateGlobalString(file, "file", 0, &m);
  Constant *value = ConstantStruct::getAnon({cast<Constant>(text), b.getInt32(line), b.getInt32(column)});
  return asPointer ? privateConstant(m, value, "site") : value;
}

V CpuTargetInfo::laneMask(B &b, V pred) {
  if (!pred)
    return b.getInt64(lanes == 64 ? ~uint64_t(0) : (uint64_t(1) << lanes) - 1);
  return b.CreateZExt(b.CreateBitCast(pred, b.getIntNTy(lanes)), b.getInt64Ty());
}

V CpuTargetInfo::slot(B &b, StringRef purpose, Type *type) {
  uint64_t bytes = kernel->getParent()->getDataLayout().getTypeAllocSize(type);
  V &memory = slots[(purpose + Twine(bytes)).str()];
  if (!memory) {
    IRBuilder<> entry(&kernel->getEntryBlock(), kernel->getEntryBlock().begin());
    AllocaInst *space = entry.CreateAlloca(entry.getInt8Ty(), entry.getInt64(bytes), purpose);
    space->setAlignment(Align(64));
    memory = space;
  }
  return memory;
}

void CpuTargetInfo::assertTrue(B &b, V cond, StringRef message) {
  V bad = b.CreateNot(cond);
  V failed = cond->getType()->isVectorTy() ? laneMask(b, bad) : b.CreateZExt(bad, b.getInt64Ty());
  call(b, "tessera_cpu_assert", {context, failed, b.CreateGlobalString(message), site(b, true)});
}

void CpuTargetInfo::print(B &b, StringRef prefix, ArrayRef<V> values, ArrayRef<bool> isSigned, bool hex) {
  V text = b.CreateGlobalString(prefix);
  if (values.empty())
    call(b, "tessera_cpu_print",
         {context, text, b.getInt32(tessera_print_signed), b.getInt32(0), b.getInt32(0),
          ConstantPointerNull::get(b.getPtrTy()), b.getInt32(0), b.getInt32(0)});
  for (auto [reg, given, sign] : enumerate(values, isSigned)) {
    V value = given;
    Type *type = value->getType(), *elem = type->getScalarType();
    auto *vector = dyn_cast<FixedVectorType>(type);
    auto sameShape = [&](Type *e) -> Type * { return vector ? laneType(e) : e; };
    tessera_cpu_print_kind kind = sign ? tessera_print_signed : tessera_print_unsigned;
    if (elem->isPointerTy()) {
      kind = tessera_print_pointer;
    } else if (elem->isFloatingPointTy()) {
      kind = tessera_print_float;
      if (elem->isHalfTy() || elem->isBFloatTy())
        value = b.CreateFPExt(value, sameShape(b.getFloatTy()));
    } else if (elem->isIntegerTy(1)) {
      value = b.CreateZExt(value, sameShape(b.getInt8Ty()));
    }
    V memory = slot(b, "print", value->getType());
    b.CreateStore(value, memory);
    uint64_t bytes = kernel->getParent()->getDataLayout().getTypeStoreSize(value->getType()->getScalarType());
    call(b, "tessera_cpu_print",
         {context, text, b.getInt32(kind), b.getInt32(hex), b.getInt32(reg), memory, b.getInt32(bytes),
          b.getInt32(vector ? lanes : 1)});
  }
}

// ---- counters -----------------------------------------------------------------------------------------------------

void CpuTargetInfo::count(B &b, unsigned field, V amount) {
  V counter = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), context, field);
  b.CreateStore(b.CreateAdd(b.CreateLoad(b.getInt64Ty(), counter), amount), counter);
}

void CpuTargetInfo::countLanes(B &b, unsigned field, V pred, unsigned bytesPerLane) {
  if (counting)
    count(b, field, b.CreateMul(b.CreateUnaryIntrinsic(Intrinsic::ctpop, laneMask(b, pred)), b.getInt64(bytesPerLane)));
}

/// Every warp runs what the program does once.
V CpuTargetInfo::once(B &b) { return b.CreateICmpEQ(warp, b.getInt32(0)); }

void CpuTargetInfo::countFlops(B &b, uint64_t flops) {
  count(b, offsetof(tessera_cpu_context, flops), b.CreateSelect(once(b), b.getInt64(flops), b.getInt64(0)));
}

void CpuTargetInfo::countUniform(B &b, unsigned field, V pred, Type *elem) {
  if (!counting)
    return;
  V active = once(b);
  if (pred)
    active = b.CreateAnd(active, pred);
  uint64_t bytes = kernel->getParent()->getDataLayout().getTypeStoreSize(elem);
  count(b, field, b.CreateSelect(active, b.getInt64(bytes), b.getInt64(0)));
}

} // namespace tessera::codegen
