// Kernel, ids, barriers, exchange between lanes; assembly and code object out of LLVM.
#include "AmdTargetInfo.h"

#include "../common/Analyses.h"

#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/MemoryModelRelaxationAnnotations.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/AMDGPUAddrSpace.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <fmt/format.h>
#include <mutex>

#include <tessera/error.h>

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTarget();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUAsmPrinter();
void LLVMInitializeAMDGPUAsmParser();
}

namespace tessera::codegen {

namespace Intrinsic = llvm::Intrinsic;
namespace AS = llvm::AMDGPUAS;

const AmdArch &amdArch(llvm::StringRef arch) {
  static constexpr AmdArch known[] = {
      {"gfx90a", 9, 64, false, 0},   {"gfx942", 9, 64, false, 0},   {"gfx950", 9, 64, true, 2},
      {"gfx1100", 11, 32, false, 0}, {"gfx1201", 12, 32, false, 1}, {"gfx1250", 12, 32, true, 3},
  };
  std::string names;
  for (const AmdArch &entry : known) {
    if (entry.is(arch))
      return entry;
    names += (names.empty() ? "" : ", ") + entry.name.str();
  }
  throw error(stage::codegen, fmt::format("unknown AMD architecture '{}'; known are {}", arch.str(), names));
}

AmdTargetInfo::AmdTargetInfo(const target &t, const compile_options &options)
    : arch(amdArch(t.arch)), preciseMath(options.precise_math), maxRegisters(options.maxnreg) {}

std::unique_ptr<TargetInfo> createAmdTargetInfo(const target &t, const compile_options &options) {
  return std::make_unique<AmdTargetInfo>(t, options);
}

std::unique_ptr<llvm::TargetMachine> AmdTargetInfo::createTargetMachine(const compile_options &options) const {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    LLVMInitializeAMDGPUAsmParser();
  });
  llvm::Triple triple("amdgcn-amd-amdhsa");
  std::string message;
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!found)
    throw error(stage::internal, "LLVM was built without the AMDGPU target: " + message);
  llvm::TargetOptions target;
  target.AllowFPOpFusion = options.enable_fp_fusion ? llvm::FPOpFusion::Standard : llvm::FPOpFusion::Strict;
  target.MCOptions.AsmVerbose = true; // registers and occupancy as comments
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, arch.name, features(), target, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

std::string AmdTargetInfo::features() const {
  return arch.generation > 9 ? fmt::format("+wavefrontsize{}", arch.waveSize) : std::string();
}

void AmdTargetInfo::takeTurn(B &b, V turn, unsigned warps) {
  ThreadTargetInfo::takeTurn(b, turn, warps);
  // What is kept for each turn stays in scratch. LLVM would move some to LDS, of which it does not know how much is taken.
  std::string own = features();
  b.GetInsertBlock()->getParent()->addFnAttr("target-features", own + (own.empty() ? "" : ",") + "-promote-alloca");
}

llvm::Function *AmdTargetInfo::createKernel(llvm::Module &m, B &b, llvm::StringRef name,
                                            llvm::ArrayRef<llvm::Type *> types, llvm::SmallVectorImpl<V> &args,
                                            const compile_options &options, unsigned sharedBytes) {
  // The lowest version of code objects that all architectures here have.
  m.addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", 500);
  auto *type = llvm::FunctionType::get(b.getVoidTy(), types, false);
  auto *kernel = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, m);
  kernel->setVisibility(llvm::GlobalValue::ProtectedVisibility);
  kernel->setCallingConv(llvm::CallingConv::AMDGPU_KERNEL);
  kernel->addFnAttr(llvm::Attribute::NoUnwind);
  threads = options.num_warps * warpSize();
  kernel->addFnAttr("amdgpu-flat-work-group-size", fmt::format("{0},{0}", threads));
  kernel->addFnAttr("uniform-work-group-size", "true");
  auto word = [&](unsigned value) { return llvm::ConstantAsMetadata::get(b.getInt32(value)); };
  kernel->setMetadata("reqd_work_group_size", llvm::MDNode::get(m.getContext(), {word(threads), word(1), word(1)}));
  // Loaded before the kernel starts, where hardware and firmware can. Of gfx1250's 32 registers that hold such values LLVM
  // 22 cannot write down the last one; four are for other things.
  unsigned preloaded = 0, most = arch.is("gfx1250") ? (31 - 4) * 4 : ~0u;
  for (llvm::Argument &arg : kernel->args()) {
    uint64_t bytes = m.getDataLayout().getTypeAllocSize(arg.getType());
    preloaded = llvm::alignTo(preloaded, bytes) + bytes;
    if (preloaded <= most)
      arg.addAttr(llvm::Attribute::InReg);
    args.push_back(&arg);
  }
  if (sharedBytes) {
    // Without a size, which setSharedBytes puts in: LLVM would spend registers up to the occupancy that it allows.
    sharedMemory = new llvm::GlobalVariable(m, llvm::ArrayType::get(b.getInt8Ty(), 0), false,
                                            llvm::GlobalValue::ExternalLinkage, nullptr, "shared_memory", nullptr,
                                            llvm::GlobalValue::NotThreadLocal, AS::LOCAL_ADDRESS);
    sharedMemory->setAlignment(llvm::Align(16));
  }
  copies = {};
  multiplies = false;
  scopeOfCopies = nullptr;
  b.SetInsertPoint(llvm::BasicBlock::Create(m.getContext(), "entry", kernel));
  llvm::CallInst *id = b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::amdgcn_workitem_id_x, llvm::ArrayRef<V>());
  id->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt(32, threads)));
  thread = id;
  return kernel;
}

V AmdTargetInfo::programId(B &b, unsigned axis) {
  static constexpr Intrinsic::ID ids[] = {Intrinsic::amdgcn_workgroup_id_x, Intrinsic::amdgcn_workgroup_id_y,
                                          Intrinsic::amdgcn_workgroup_id_z};
  llvm::CallInst *call = b.CreateIntrinsic(b.getInt32Ty(), ids[axis], llvm::ArrayRef<V>());
  call->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt(32, axis ? 0x10000 : 0x7fffffff)));
  return call;
}

V AmdTargetInfo::numPrograms(B &b, unsigned axis) {
  // hsa_kernel_dispatch_packet_t: grid_size_x, y, z (in work-items) from byte 12 on (HSA runtime specification 2.9).
  V packet = b.CreateIntrinsic(b.getPtrTy(AS::CONSTANT_ADDRESS), Intrinsic::amdgcn_dispatch_ptr, llvm::ArrayRef<V>());
  V at = b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), packet, 12 + 4 * axis);
  llvm::LoadInst *items = b.CreateAlignedLoad(b.getInt32Ty(), at, llvm::Align(4));
  items->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
  return axis ? V(items) : b.CreateLShr(items, llvm::Log2_32(threads));
}

void AmdTargetInfo::barrier(B &b) {
  // Products do not move below: what is stored there waits for global memory, and the matrix unit would stand still.
  if (multiplies)
    b.CreateIntrinsic(Intrinsic::amdgcn_sched_barrier, {}, {b.getInt32(0)});
  if (matrixFeatures().minAsyncCopyBytes)
    return barrierAmongCopies(b);
  // Only shared memory is ordered: a wait for all of global memory would stop loads that run ahead.
  llvm::MDNode *local = llvm::MMRAMetadata::getTagMD(b.getContext(), "amdgpu-synchronize-as", "local");
  llvm::SyncScope::ID scope = b.getContext().getOrInsertSyncScopeID("workgroup");
  auto fence = [&](llvm::AtomicOrdering order) {
    b.CreateFence(order, scope)->setMetadata(llvm::LLVMContext::MD_mmra, local);
  };
  fence(llvm::AtomicOrdering::Release);
  b.CreateIntrinsic(Intrinsic::amdgcn_s_barrier, {});
  fence(llvm::AtomicOrdering::Acquire);
}

void AmdTargetInfo::globalBarrier(B &b) {
  // Where the wavefronts of a program may have first-level caches of their own (gfx11, gfx12), stores must have left them.
  llvm::SyncScope::ID scope = b.getContext().getOrInsertSyncScopeID("workgroup");
  b.CreateFence(llvm::AtomicOrdering::Release, scope);
  b.CreateIntrinsic(Intrinsic::amdgcn_s_barrier, {});
  b.CreateFence(llvm::AtomicOrdering::Acquire, scope);
}

// ---- exchange between lanes -----------------------------------------------------------------------------------------

V AmdTargetInfo::mapWords(B &b, V v, llvm::function_ref<V(V)> fn) {
  llvm::Type *type = v->getType();
  unsigned bits = type->isPointerTy() ? 64 : type->getPrimitiveSizeInBits().getFixedValue();
  V integer = type->isPointerTy() ? b.CreatePtrToInt(v, b.getInt64Ty()) : b.CreateBitCast(v, b.getIntNTy(bits));
  V result = nullptr;
  if (bits <= 32) {
    result = b.CreateTrunc(fn(b.CreateZExt(integer, b.getInt32Ty())), b.getIntNTy(bits));
  } else {
    auto *pair = llvm::FixedVectorType::get(b.getInt32Ty(), 2);
    V words = b.CreateBitCast(integer, pair), mapped = llvm::PoisonValue::get(pair); // both are set
    for (unsigned i = 0; i < 2; ++i)
      mapped = b.CreateInsertElement(mapped, fn(b.CreateExtractElement(words, i)), i);
    result = b.CreateBitCast(mapped, b.getInt64Ty());
  }
  return type->isPointerTy() ? b.CreateIntToPtr(result, type) : b.CreateBitCast(result, type);
}

/// Controls of data-parallel primitives (CDNA3 ISA 7.9, RDNA3 ISA 7.7).
namespace dpp {
constexpr unsigned quadXor(unsigned mask) { return (0 ^ mask) | (1 ^ mask) << 2 | (2 ^ mask) << 4 | (3 ^ mask) << 6; }
constexpr unsigned rowRotate8 = 0x128, rowMirror = 0x140, rowHalfMirror = 0x141, rowBroadcast15 = 0x142,
                   rowBroadcast31 = 0x143, rowXor = 0x160;
} // namespace dpp

V AmdTargetInfo::dataParallel(B &b, V word, unsigned control) {
  // All rows and banks, and zero from lanes that are not there: so the move becomes part of the operation that reads it.
  return b.CreateIntrinsic(word->getType(), Intrinsic::amdgcn_update_dpp,
                           {llvm::PoisonValue::get(word->getType()), word, b.getInt32(control), b.getInt32(0xf),
                            b.getInt32(0xf), b.getTrue()});
}

V AmdTargetInfo::laneHere(B &b) {
  if (llvm::cast<llvm::Instruction>(thread)->getFunction() == b.GetInsertBlock()->getParent())
    return laneId(b);
  V low = b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::amdgcn_mbcnt_lo, {b.getInt32(-1), b.getInt32(0)});
  return arch.waveSize == 32 ? low
                             : b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::amdgcn_mbcnt_hi, {b.getInt32(-1), low});
}

V AmdTargetInfo::firstLane(B &b, V lane) {
  return mapWords(b, lane,
                  [&](V w) { return b.CreateIntrinsic(w->getType(), Intrinsic::amdgcn_readfirstlane, {w}); });
}

V AmdTargetInfo::shuffleXor(B &b, V v, unsigned mask) {
  if (!mask)
    return v;
  auto all = [&](llvm::function_ref<V(V)> fn) { return mapWords(b, v, fn); };
  if (mask >= 32) {
    if (!arch.laneSwaps)
      return shuffleIdx(b, v, b.CreateXor(laneHere(b), mask));
    // Swapped with itself, a word becomes its lower half twice and its upper half twice.
    V low = b.CreateICmpULT(laneHere(b), b.getInt32(32));
    V other = all([&](V w) {
      V both = b.CreateIntrinsic(Intrinsic::amdgcn_permlane32_swap, {}, {w, w, b.getFalse(), b.getFalse()});
      return b.CreateSelect(low, b.CreateExtractValue(both, 1), b.CreateExtractValue(both, 0));
    });
    return shuffleXor(b, other, mask & 31);
  }
  if (mask & 16) {
    if (arch.generation > 9) { // the other row of 16, lanes chosen by 4 bits each
      uint64_t lanes = 0;
      for (uint64_t l = 0; l < 16; ++l)
        lanes |= (l ^ (mask & 15)) << (4 * l);
      return all([&](V w) {
        return b.CreateIntrinsic(w->getType(), Intrinsic::amdgcn_permlanex16,
                                 {llvm::PoisonValue::get(w->getType()), w, b.getInt32(uint32_t(lanes)),
                                  b.getInt32(uint32_t(lanes >> 32)), b.getFalse(), b.getFalse()});
      });
    }
    // Bit mode: xor, or, and masks of 5 bits.
    return all([&](V w) {
      return b.CreateIntrinsic(Intrinsic::amdgcn_ds_swizzle, {}, {w, b.getInt32(mask << 10 | 0x1f)});
    });
  }
  if (arch.generation > 9)
    return all([&](V w) { return dataParallel(b, w, dpp::rowXor | mask); });
  return all([&](V w) {
    unsigned rest = mask;
    auto step = [&](unsigned control, unsigned flips) {
      w = dataParallel(b, w, control);
      rest ^= flips;
    };
    if ((rest & 12) == 12)
      step(dpp::rowMirror, 15);
    if (rest & 8)
      step(dpp::rowRotate8, 8);
    if (rest & 4)
      step(dpp::rowHalfMirror, 7);
    if (rest)
      step(dpp::quadXor(rest), rest);
    return w;
  });
}

V AmdTargetInfo::shuffleIdx(B &b, V v, V index) {
  V address = b.CreateShl(index, 2);
  return mapWords(b, v, [&](V w) { return b.CreateIntrinsic(Intrinsic::amdgcn_ds_bpermute, {}, {address, w}); });
}

V AmdTargetInfo::reductionPartner(B &b, V v, unsigned mask, unsigned done, bool whole) {
  if (arch.generation > 9)
    return shuffleXor(b, v, mask);
  // A move that also flips bits that are done costs no second one.
  if (mask == 4 && (done & 3) == 3)
    return mapWords(b, v, [&](V w) { return dataParallel(b, w, dpp::rowHalfMirror); });
  // Rows to the last lane: 15 to row 1, 47 to row 3; then 31 to rows 2 and 3. The others hold what nobody reads.
  if (whole && mask >= 16 && (done & 15) == 15)
    return mapWords(
        b, v, [&](V w) { return dataParallel(b, w, mask == 16 ? dpp::rowBroadcast15 : dpp::rowBroadcast31); });
  return shuffleXor(b, v, mask);
}

V AmdTargetInfo::reductionResult(B &b, V v) {
  if (arch.generation > 9)
    return v;
  return mapWords(b, v, [&](V w) {
    return b.CreateIntrinsic(w->getType(), Intrinsic::amdgcn_readlane, {w, b.getInt32(arch.waveSize - 1)});
  });
}

// ---- errors ---------------------------------------------------------------------------------------------------------

void AmdTargetInfo::assertTrue(B &b, V cond, llvm::StringRef message) {
  // The trap ends the queue; the HIP runtime reports a hardware exception, without a text. Whether any lane fails is asked
  // first, so that control flow stays uniform.
  llvm::Function *kernel = b.GetInsertBlock()->getParent();
  auto *fail = llvm::BasicBlock::Create(b.getContext(), "assert.fail", kernel);
  auto *next = llvm::BasicBlock::Create(b.getContext(), "assert.end", kernel);
  llvm::Type *wave = b.getIntNTy(arch.waveSize);
  V failing = b.CreateIntrinsic(wave, Intrinsic::amdgcn_ballot, {b.CreateNot(cond)});
  b.CreateCondBr(b.CreateICmpNE(failing, llvm::ConstantInt::get(wave, 0)), fail, next,
                 llvm::MDBuilder(b.getContext()).createUnlikelyBranchWeights());
  b.SetInsertPoint(fail);
  b.CreateIntrinsic(Intrinsic::trap, {});
  b.CreateUnreachable();
  b.SetInsertPoint(next);
}

llvm::StringRef AmdTargetInfo::whyNoPrint() const {
  return "is not supported on AMD GPUs: printing needs the device library of ROCm; run the kernel on cpu or "
         "cpu:emulate=ARCH";
}

// ---- machine code ---------------------------------------------------------------------------------------------------

void AmdTargetInfo::finishModule(llvm::Module &m, llvm::TargetMachine &tm) const {
  for (llvm::Function &f : m)
    if (!f.isDeclaration())
      lowerMaskedAccesses(f, tm, arch);
  // Which of the hardware's values and hidden arguments a kernel does without could not be seen before.
  Analyses analyses(tm);
  llvm::ModulePassManager passes;
  if (llvm::Error failed = analyses.builder.parsePassPipeline(passes, "amdgpu-attributor"))
    throw error(stage::internal, llvm::toString(std::move(failed)));
  passes.run(m, analyses.modules);
  analyses.functions.clear();
  for (llvm::Function &f : m)
    if (!f.isDeclaration())
      recomputeBehindLoops(f, analyses.functions);
}

/// The size of shared memory, in the kernel's descriptor and in the note, where LLVM saw an array of none.
static std::string setSharedBytes(llvm::StringRef assembly, unsigned bytes) {
  std::string text = assembly.str();
  for (std::string key : {".amdhsa_group_segment_fixed_size ", ".group_segment_fixed_size: "}) {
    size_t at = text.find(key + "0\n");
    if (at == std::string::npos)
      throw error(stage::internal, "the assembly says nothing of " + key);
    text.replace(at + key.size(), 1, std::to_string(bytes));
  }
  return text;
}

void AmdTargetInfo::emitMachineCode(llvm::Module &m, llvm::TargetMachine &tm, compiled_kernel &out,
                                    llvm::StringRef lastStage) const {
  using clock = std::chrono::steady_clock;
  auto start = clock::now();
  auto finish = [&](llvm::StringRef step) {
    out.times.push_back({step.str(), std::chrono::duration<double, std::milli>(clock::now() - start).count()});
    start = clock::now();
  };
  unsigned sharedBytes = out.metadata.shared_bytes;
  std::string assembly = setSharedBytes(
      writeAmdAssembly(m, tm, arch, threads / arch.waveSize, sharedBytes, multiplies && !out.options.maxnreg), sharedBytes);
  out.stages.emplace_back("amdgcn", assembly);
  finish("isel");
  if (lastStage == "amdgcn")
    return;
  std::string object = assembleAmd(assembly, tm);
  finish("assemble");
  std::string codeObject = linkAmd(object);
  finish("lld");
  AmdKernelFacts facts = readAmdFacts(codeObject, out.metadata);
  out.registers = facts.vectorRegisters;
  out.spills = facts.scratchBytes;
  out.stages.emplace_back("hsaco", std::move(codeObject));
}

} // namespace tessera::codegen
