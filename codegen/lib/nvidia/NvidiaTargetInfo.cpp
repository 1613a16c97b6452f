// Kernel, thread ids, barriers, shuffles, printing; PTX out of LLVM.
#include "NvidiaTargetInfo.h"
#include "WholeTiles.h"

#include "../common/Optimize.h"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <fmt/format.h>
#include <mutex>

#include <tessera/error.h>

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace tessera::codegen {

namespace Intrinsic = llvm::Intrinsic;

NvidiaArch nvidiaArch(llvm::StringRef arch) {
  static constexpr struct {
    llvm::StringLiteral name;
    NvidiaArch facts;
  } known[] = {{"sm_80", {80, 74}},    {"sm_86", {86, 74}},   {"sm_87", {87, 74}},    {"sm_89", {89, 78}},
               {"sm_90", {90, 78}},    {"sm_90a", {90, 80}},  {"sm_100", {100, 86}},  {"sm_100a", {100, 86}},
               {"sm_103a", {103, 88}}, {"sm_120", {120, 87}}, {"sm_120a", {120, 87}}, {"sm_121a", {121, 88}}};
  std::string names;
  for (auto &entry : known) {
    if (entry.name == arch)
      return entry.facts;
    names += (names.empty() ? "" : ", ") + entry.name.str();
  }
  throw error(stage::codegen, fmt::format("unknown NVIDIA architecture '{}'; known are {}", arch.str(), names));
}

NvidiaTargetInfo::NvidiaTargetInfo(const target &t, const compile_options &options)
    : arch(t.arch), facts(nvidiaArch(t.arch)), preciseMath(options.precise_math) {}

std::unique_ptr<TargetInfo> createNvidiaTargetInfo(const target &t, const compile_options &options) {
  return std::make_unique<NvidiaTargetInfo>(t, options);
}

std::unique_ptr<llvm::TargetMachine> NvidiaTargetInfo::createTargetMachine(const compile_options &options) const {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  // 32-bit addresses in shared memory. LLVM has no other switch for it than this option of the whole process, which target
  // machines read when they are made.
  std::lock_guard lock(processOptions());
  auto &known = llvm::cl::getRegisteredOptions();
  if (auto it = known.find("nvptx-short-ptr"); it != known.end() && !it->second->getNumOccurrences())
    it->second->addOccurrence(0, "nvptx-short-ptr", "true");
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string message;
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!found)
    throw error(stage::internal, "LLVM was built without the NVPTX target: " + message);
  llvm::TargetOptions target;
  // The kernel's own operations carry the flag that lets them fuse; libclc's must not: its exact sums and products of
  // pairs would be lost.
  target.AllowFPOpFusion = options.enable_fp_fusion ? llvm::FPOpFusion::Standard : llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(triple, arch, fmt::format("+ptx{}", facts.ptx),
                                                                         target, llvm::Reloc::PIC_, std::nullopt,
                                                                         llvm::CodeGenOptLevel::Aggressive));
}

V NvidiaTargetInfo::specialRegister(B &b, Intrinsic::ID id, unsigned limit) {
  llvm::CallInst *call = b.CreateIntrinsic(b.getInt32Ty(), id, llvm::ArrayRef<V>());
  call->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt(32, limit)));
  return call;
}

llvm::Function *NvidiaTargetInfo::createKernel(llvm::Module &m, B &b, llvm::StringRef name,
                                               llvm::ArrayRef<llvm::Type *> types, llvm::SmallVectorImpl<V> &args,
                                               const compile_options &options, unsigned sharedBytes) {
  auto *type = llvm::FunctionType::get(b.getVoidTy(), types, false);
  auto *kernel = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, m);
  kernel->setCallingConv(llvm::CallingConv::PTX_Kernel);
  kernel->addFnAttr(llvm::Attribute::NoUnwind);
  unsigned threads = options.num_warps * warpSize();
  kernel->addFnAttr("nvvm.reqntid", std::to_string(threads));
  if (options.maxnreg > 0)
    kernel->addFnAttr("nvvm.maxnreg", std::to_string(options.maxnreg));
  if (options.num_ctas > 1)
    kernel->addFnAttr("nvvm.cluster_dim", std::to_string(options.num_ctas));
  for (llvm::Argument &arg : kernel->args())
    args.push_back(&arg);
  if (sharedBytes) {
    sharedMemory =
        new llvm::GlobalVariable(m, llvm::ArrayType::get(b.getInt8Ty(), 0), false, llvm::GlobalValue::ExternalLinkage,
                                 nullptr, name == "shared_memory" ? "shared_memory_" : "shared_memory", nullptr, llvm::GlobalValue::NotThreadLocal, 3);
    sharedMemory->setAlignment(llvm::Align(16));
  }
  b.SetInsertPoint(llvm::BasicBlock::Create(m.getContext(), "entry", kernel));
  thread = specialRegister(b, Intrinsic::nvvm_read_ptx_sreg_tid_x, threads);
  return kernel;
}

V NvidiaTargetInfo::programId(B &b, unsigned axis) {
  static constexpr Intrinsic::ID ids[] = {Intrinsic::nvvm_read_ptx_sreg_ctaid_x, Intrinsic::nvvm_read_ptx_sreg_ctaid_y,
                                          Intrinsic::nvvm_read_ptx_sreg_ctaid_z};
  return specialRegister(b, ids[axis], axis ? 0xffff : 0x7fffffff);
}

V NvidiaTargetInfo::numPrograms(B &b, unsigned axis) {
  static constexpr Intrinsic::ID ids[] = {Intrinsic::nvvm_read_ptx_sreg_nctaid_x,
                                          Intrinsic::nvvm_read_ptx_sreg_nctaid_y,
                                          Intrinsic::nvvm_read_ptx_sreg_nctaid_z};
  return specialRegister(b, ids[axis], axis ? 0x10000 : 0x80000000);
}

void NvidiaTargetInfo::barrier(B &b) {
  b.CreateIntrinsic(Intrinsic::nvvm_barrier_cta_sync_aligned_all, {}, {b.getInt32(0)});
}

/// Shuffles move 32 bits: narrower values are widened, wider ones go in two halves.
V NvidiaTargetInfo::shuffle(B &b, V v, Intrinsic::ID id, V operand) {
  llvm::Type *type = v->getType();
  auto exchange = [&](V word) { return b.CreateIntrinsic(id, {}, {b.getInt32(-1), word, operand, b.getInt32(31)}); };
  unsigned bits = type->isPointerTy() ? 64 : type->getPrimitiveSizeInBits().getFixedValue();
  V integer = type->isPointerTy() ? b.CreatePtrToInt(v, b.getInt64Ty()) : b.CreateBitCast(v, b.getIntNTy(bits));
  V result = nullptr;
  if (bits <= 32) {
    result = b.CreateTrunc(exchange(b.CreateZExt(integer, b.getInt32Ty())), b.getIntNTy(bits));
  } else {
    V low = b.CreateZExt(exchange(b.CreateTrunc(integer, b.getInt32Ty())), b.getInt64Ty());
    V high = b.CreateZExt(exchange(b.CreateTrunc(b.CreateLShr(integer, 32), b.getInt32Ty())), b.getInt64Ty());
    result = b.CreateOr(low, b.CreateShl(high, 32), "", true);
  }
  return type->isPointerTy() ? b.CreateIntToPtr(result, type) : b.CreateBitCast(result, type);
}

V NvidiaTargetInfo::shuffleXor(B &b, V v, unsigned mask) {
  return shuffle(b, v, Intrinsic::nvvm_shfl_sync_bfly_i32, b.getInt32(mask));
}

V NvidiaTargetInfo::shuffleIdx(B &b, V v, V index) { return shuffle(b, v, Intrinsic::nvvm_shfl_sync_idx_i32, index); }

V NvidiaTargetInfo::warpReduce(B &b, V v, unsigned numLanes, llvm::StringRef combine) {
  if (numLanes != 32 || !v->getType()->isIntegerTy(32))
    return nullptr;
  auto id = llvm::StringSwitch<Intrinsic::ID>(combine)
                .Case("add", Intrinsic::nvvm_redux_sync_add)
                .Case("and", Intrinsic::nvvm_redux_sync_and)
                .Case("or", Intrinsic::nvvm_redux_sync_or)
                .Case("xor", Intrinsic::nvvm_redux_sync_xor)
                .Case("min", Intrinsic::nvvm_redux_sync_min)
                .Case("max", Intrinsic::nvvm_redux_sync_max)
                .Case("umin", Intrinsic::nvvm_redux_sync_umin)
                .Case("umax", Intrinsic::nvvm_redux_sync_umax)
                .Default(Intrinsic::not_intrinsic);
  return id ? b.CreateIntrinsic(id, {}, {v, b.getInt32(-1)}) : nullptr;
}

void NvidiaTargetInfo::assertTrue(B &b, V cond, llvm::StringRef message) {
  llvm::Module &m = *b.GetInsertBlock()->getModule();
  llvm::Function *kernel = b.GetInsertBlock()->getParent();
  auto *fail = llvm::BasicBlock::Create(m.getContext(), "assert.fail", kernel);
  auto *next = llvm::BasicBlock::Create(m.getContext(), "assert.end", kernel);
  b.CreateCondBr(cond, next, fail);
  b.SetInsertPoint(fail);
  llvm::Type *pointer = b.getPtrTy();
  auto function =
      m.getOrInsertFunction("__assertfail", b.getVoidTy(), pointer, pointer, b.getInt32Ty(), pointer, b.getInt64Ty());
  std::string file;
  unsigned line = 0;
  if (const llvm::DebugLoc &at = b.getCurrentDebugLocation()) {
    file = at->getFilename().str();
    line = at->getLine();
  }
  auto text = [&](llvm::StringRef s) { return b.CreateAddrSpaceCast(b.CreateGlobalString(s, "", 1), pointer); };
  b.CreateCall(function, {text(message), text(file), b.getInt32(line), text(kernel->getName()), b.getInt64(1)});
  b.CreateBr(
      next); // __assertfail does not return; keeping the edge keeps control flow uniform for the barriers after it
  b.SetInsertPoint(next);
}

void NvidiaTargetInfo::print(B &b, llvm::StringRef prefix, llvm::ArrayRef<V> values, llvm::ArrayRef<bool> isSigned,
                             bool hex) {
  llvm::Module &m = *b.GetInsertBlock()->getModule();
  llvm::Type *pointer = b.getPtrTy();
  auto function = m.getOrInsertFunction("vprintf", b.getInt32Ty(), pointer, pointer);
  std::string escaped;
  for (char c : prefix)
    escaped += c == '%' ? "%%" : std::string(1, c);
  auto line = [&](V value, bool sign) {
    std::string format = "pid (%u, %u, %u) thread %u" + (escaped.empty() ? "" : " " + escaped);
    llvm::SmallVector<V> args{programId(b, 0), programId(b, 1), programId(b, 2), thread};
    if (value) {
      llvm::Type *type = value->getType();
      if (type->isPointerTy()) {
        format += "0x%llx";
        value = b.CreatePtrToInt(value, b.getInt64Ty());
      } else if (type->isFloatingPointTy()) {
        format += "%f";
        value = b.CreateFPExt(value, b.getDoubleTy());
      } else {
        bool wide = type->getIntegerBitWidth() > 32;
        format += hex ? (wide ? "0x%016llx" : "0x%08x") : sign ? (wide ? "%lld" : "%d") : (wide ? "%llu" : "%u");
        value = b.CreateIntCast(value, wide ? b.getInt64Ty() : b.getInt32Ty(), sign && !hex);
      }
      args.push_back(value);
    }
    llvm::SmallVector<llvm::Type *> types;
    for (V arg : args)
      types.push_back(arg->getType());
    auto *buffer = llvm::StructType::get(m.getContext(), types);
    llvm::IRBuilderBase::InsertPoint here = b.saveIP();
    llvm::BasicBlock &entry = b.GetInsertBlock()->getParent()->getEntryBlock();
    b.SetInsertPoint(&entry, entry.begin());
    V memory = b.CreateAlloca(buffer);
    b.restoreIP(here);
    for (auto [i, arg] : llvm::enumerate(args))
      b.CreateStore(arg, b.CreateStructGEP(buffer, memory, i));
    V text = b.CreateAddrSpaceCast(b.CreateGlobalString(format + "\n", "", 1), pointer);
    b.CreateCall(function, {text, memory});
  };
  if (values.empty())
    line(nullptr, false);
  for (auto [value, sign] : llvm::zip_equal(values, isSigned))
    line(value, sign);
}

constexpr unsigned kRegisters = 65536; ///< of a multiprocessor, allocated to a warp by 8 a thread

/// What a thread of a program of so many may have.
static int registersOf(unsigned threads) { return std::min<int>(255, llvm::alignDown(kRegisters / threads, 8)); }

/// How many programs a multiprocessor should hold at least, if a few registers are all that is in the way of one more:
/// `ptxas` takes as many as it likes for the longer of two versions. 0 where that is not so.
static unsigned oneMoreProgram(int registers, unsigned threads) {
  constexpr unsigned kFew = 4;
  if (registers <= 0)
    return 0;
  unsigned more = kRegisters / (llvm::alignTo(registers, 8) * threads) + 1;
  unsigned limit = llvm::alignDown(kRegisters / (more * threads), 8);
  return more <= kFew && limit + limit / 8 >= unsigned(registers) ? more : 0;
}

void NvidiaTargetInfo::emitMachineCode(llvm::Module &m, llvm::TargetMachine &tm, compiled_kernel &out,
                                       llvm::StringRef lastStage) const {
  using clock = std::chrono::steady_clock;
  auto since = [](clock::time_point start) {
    return std::chrono::duration<double, std::milli>(clock::now() - start).count();
  };
  auto start = clock::now();
  llvm::SmallString<0> ptx;
  {
    llvm::raw_svector_ostream stream(ptx);
    llvm::legacy::PassManager passes;
    if (tm.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
      throw error(stage::internal, "LLVM's NVPTX target cannot write PTX");
    passes.run(m);
  }
  // LLVM writes the version it was asked for before the instructions were known; inline PTX may need a later one.
  constexpr llvm::StringLiteral directive = ".version ";
  if (size_t at = llvm::StringRef(ptx).find(directive); at != llvm::StringRef::npos) {
    std::string version = fmt::format("{}.{}", facts.ptx / 10, facts.ptx % 10);
    std::copy(version.begin(), version.end(), ptx.begin() + at + directive.size());
  }
  out.stages.emplace_back("ptx", std::string(ptx));
  out.times.push_back({"isel", since(start)});
  if (lastStage == "ptx")
    return;

  std::string ptxas = findPtxas();
  if (ptxas.empty()) {
    // The driver assembles PTX itself: no cubin is no failure unless it was asked for.
    if (lastStage == "cubin")
      throw error(stage::assemble, "ptxas was not found: set TESSERA_PTXAS, add it to PATH, or stop at stage ptx");
    return;
  }
  start = clock::now();
  Assembled result = assemblePtx(ptxas, ptx, arch, out.options);
  const bool twoVersions = llvm::any_of(m, [](const llvm::Function &f) { return f.hasFnAttribute(kTwoVersions); });
  const unsigned threads = out.options.num_warps * warpSize();
  /// Assembles again for so many programs on a multiprocessor at least; kept if no more bytes are spilled.
  auto again = [&](unsigned programs, int mostSpills) {
    std::string denser = ptx.str().str();
    constexpr llvm::StringLiteral size = ".reqntid ";
    if (denser.find(size) == std::string::npos)
      return;
    denser.insert(denser.find('\n', denser.find(size)) + 1, fmt::format(".minnctapersm {}\n", programs));
    if (Assembled second = assemblePtx(ptxas, denser, arch, out.options); second.spills <= mostSpills) {
      result = std::move(second);
      out.stages.back().second = std::move(denser);
    }
  };
  const bool free = !out.options.maxnreg; // else the user has chosen
  if (unsigned programs = free && twoVersions && !result.spills ? oneMoreProgram(result.registers, threads) : 0)
    again(programs, 0);
  // ptxas may give 32 registers to a kernel that does not fit into those that so many threads can have. A few bytes
  // cost less than a program less on each multiprocessor.
  if (free && result.spills > 64 && result.registers + 8 <= registersOf(threads))
    again(1, result.spills - 1);
  out.times.push_back({"ptxas", since(start)});
  out.registers = result.registers;
  out.spills = result.spills;
  out.stages.emplace_back("cubin", std::move(result.cubin));
}

} // namespace tessera::codegen
