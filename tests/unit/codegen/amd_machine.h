#pragma once
// An AMD GPU that executes LLVM IR: the lanes of a program one by one, until they exchange something. Intrinsics do
// what the ISA documents say of their instructions (CDNA3 ISA 7.9 "DPP", 9.1.5 "Range checking", 10.2 "Swizzle"; RDNA3
// ISA 7.7; CDNA4 ISA "V_PERMLANE32_SWAP", "GLOBAL_LOAD_LDS", "DS_READ_B64_TR_B16"), with matrices where
// runtime/lib/cpu/matrix.h has them. Sums that LLVM was told cannot wrap make poison where they do, and so do bytes of
// LDS that nobody wrote.
#include "amd_values.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/SourceMgr.h"

#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/codegen/compile.h>

#include "cpu/matrix.h"

namespace tessera::test {

class Machine {
public:
  Machine(const compiled_kernel &kernel, Memory &global)
      : lanes(kernel.metadata.warp_size), arch(kernel.compiled_for.arch), global(global),
        shared(kernel.metadata.shared_bytes), written(shared.size()), threads(kernel.metadata.num_warps * lanes) {
    llvm::SMDiagnostic bad;
    module = llvm::parseAssemblyString(*kernel.find("llir"), bad, context);
    REQUIRE(module);
    f = module->getFunction(kernel.metadata.name);
    unsigned slot = 0;
    for (llvm::Argument &a : f->args())
      slots[&a] = slot++;
    for (llvm::Instruction &i : llvm::instructions(*f))
      slots[&i] = slot++;
  }

  void run(llvm::ArrayRef<uint64_t> args, unsigned x, unsigned y = 0) {
    programs[0] = x, programs[1] = y;
    std::fill(written.begin(), written.end(), false);
    own.clear();
    for (unsigned id = 0; id < threads.size(); ++id) {
      Thread &t = threads[id] = {};
      t.id = id;
      t.values.resize(slots.size());
      for (llvm::Argument &a : f->args())
        t.values[slots[&a]] = {{args[a.getArgNo()]}};
      enter(t, &f->getEntryBlock());
    }
    for (bool all = false; !all;) {
      bool moved = false;
      for (Thread &t : threads)
        if (!t.waitsAt && t.block)
          advance(t), moved = true;
      all = llvm::all_of(threads, [](Thread &t) { return !t.block; });
      for (unsigned first = 0; first < threads.size() && !all; first += lanes)
        if (auto *at = together(first, lanes); at && !isBarrier(*at))
          exchange(*at, first), release(first, lanes), moved = true;
      if (auto *at = together(0, threads.size()); at && isBarrier(*at))
        release(0, threads.size()), ++barriers, moved = true;
      REQUIRE((moved || all)); // else lanes wait at different places
    }
  }
  unsigned buffers = 0, plain = 0, copies = 0, matrices = 0, barriers = 0; ///< accesses and instructions of each kind

private:
  static constexpr uint64_t sharedStart = 1 << 20;
  struct Copy {
    uint64_t from, to;
    unsigned bytes;
  };
  struct Thread {
    unsigned id = 0;
    llvm::BasicBlock *block = nullptr; ///< null: it has ended
    llvm::BasicBlock::iterator at;
    llvm::CallInst *waitsAt = nullptr; ///< for the others of the warp, or of the program
    std::vector<Value> values;
    std::deque<Copy> flying;
  };

  static unsigned bitsOf(llvm::Type *type) {
    if (!type->isPtrOrPtrVectorTy())
      return type->getScalarSizeInBits();
    return type->getPointerAddressSpace() == 3 ? 32 : 64;
  }
  static unsigned elements(llvm::Type *type) {
    auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
    return vector ? vector->getNumElements() : 1;
  }
  static bool isBarrier(llvm::CallInst &c) { return c.getIntrinsicID() == llvm::Intrinsic::amdgcn_s_barrier; }
  static llvm::StringRef nameOf(llvm::CallInst &c) {
    return c.getCalledFunction() ? c.getCalledFunction()->getName() : "assembly";
  }
  static bool multiplies(llvm::CallInst &c) {
    return nameOf(c).starts_with("llvm.amdgcn.mfma.") || nameOf(c).starts_with("llvm.amdgcn.wmma.");
  }
  static bool isShared(llvm::Value *pointer) { return pointer->getType()->getPointerAddressSpace() == 3; }

  // ---- control flow
  void enter(Thread &t, llvm::BasicBlock *block) {
    std::vector<std::pair<llvm::Value *, Value>> phis; // all at once
    for (llvm::PHINode &phi : block->phis())
      phis.emplace_back(&phi, get(t, phi.getIncomingValueForBlock(t.block)));
    for (auto &[phi, v] : phis)
      t.values[slots[phi]] = std::move(v);
    t.block = block, t.at = block->getFirstNonPHIIt();
  }
  void advance(Thread &t) {
    while (t.block && !t.waitsAt) {
      llvm::Instruction &i = *t.at++;
      if (auto *branch = llvm::dyn_cast<llvm::BranchInst>(&i))
        enter(t, branch->getSuccessor(branch->isConditional() && !sound(t, branch->getCondition())));
      else if (llvm::isa<llvm::ReturnInst>(i))
        t.block = nullptr;
      else if (auto *call = llvm::dyn_cast<llvm::CallInst>(&i); call && isCollective(*call))
        t.waitsAt = call;
      else
        t.values[slots[&i]] = execute(t, i);
    }
  }
  /// Where all those threads wait, if they do at one place.
  llvm::CallInst *together(unsigned first, unsigned count) {
    llvm::CallInst *at = threads[first].waitsAt;
    for (unsigned k = 0; k < count; ++k)
      if (threads[first + k].waitsAt != at)
        return nullptr;
    return at;
  }
  void release(unsigned first, unsigned count) {
    for (unsigned k = 0; k < count; ++k)
      threads[first + k].waitsAt = nullptr;
  }

  // ---- values
  Value get(Thread &t, llvm::Value *v) {
    if (auto it = slots.find(v); it != slots.end())
      return t.values[it->second];
    if (llvm::isa<llvm::GlobalVariable>(v)) {
      if (isShared(v))
        return {{sharedStart}};
      REQUIRE(llvm::cast<llvm::GlobalVariable>(v)->getInitializer()->isNullValue());
      return {{zeros}};
    }
    auto *constant = llvm::cast<llvm::Constant>(v);
    Value result;
    if (auto *expression = llvm::dyn_cast<llvm::ConstantExpr>(constant)) { // a place in LDS
      auto *gep = llvm::dyn_cast<llvm::GEPOperator>(expression);
      REQUIRE(gep);
      llvm::APInt offset(32, 0);
      REQUIRE((isShared(gep) && gep->accumulateConstantOffset(module->getDataLayout(), offset)));
      return {{get(t, gep->getPointerOperand()).front().v + offset.getZExtValue()}};
    }
    for (unsigned e = 0; e < elements(v->getType()); ++e) {
      llvm::Constant *element = v->getType()->isVectorTy() ? constant->getAggregateElement(e) : constant;
      auto *integer = llvm::dyn_cast<llvm::ConstantInt>(element);
      auto *real = llvm::dyn_cast<llvm::ConstantFP>(element);
      bool poison = llvm::isa<llvm::UndefValue>(element);
      require(integer || real || poison || element->isNullValue(), "a constant that is not described here");
      result.push_back({integer ? integer->getZExtValue()
                        : real  ? real->getValue().bitcastToAPInt().getZExtValue()
                                : 0,
                        poison});
    }
    return result;
  }
  uint64_t sound(Thread &t, llvm::Value *v) {
    Bits b = get(t, v).front();
    require(!b.poison, "poison decides");
    return b.v;
  }
  static uint64_t constant(llvm::Value *v) { return llvm::cast<llvm::ConstantInt>(v)->getZExtValue(); }

  Value each(Thread &t, llvm::Instruction &i, unsigned operands,
             llvm::function_ref<Bits(llvm::ArrayRef<uint64_t>)> fn) {
    std::vector<Value> all;
    for (unsigned k = 0; k < operands; ++k)
      all.push_back(get(t, i.getOperand(k)));
    Value result;
    llvm::SmallVector<uint64_t> args(operands);
    for (unsigned e = 0; e < elements(i.getType()); ++e) {
      bool poison = false;
      for (unsigned k = 0; k < operands; ++k) {
        Bits b = all[k][all[k].size() == 1 ? 0 : e];
        args[k] = b.v;
        poison |= b.poison;
      }
      Bits b = fn(args);
      result.push_back({cut(b.v, bitsOf(i.getType())), b.poison || poison});
    }
    return result;
  }

  static double number(llvm::Type *type, uint64_t bits) {
    const llvm::fltSemantics &format = type->getScalarType()->getFltSemantics();
    llvm::APFloat v(format, llvm::APInt(bitsOf(type), bits));
    bool exact;
    v.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &exact);
    return v.convertToDouble();
  }
  static uint64_t bitsFor(llvm::Type *type, double value) {
    llvm::APFloat v(value);
    bool exact;
    v.convert(type->getScalarType()->getFltSemantics(), llvm::APFloat::rmNearestTiesToEven, &exact);
    return v.bitcastToAPInt().getZExtValue();
  }
  Value real(Thread &t, llvm::Instruction &i, unsigned operands,
             llvm::function_ref<double(llvm::ArrayRef<double>)> fn) {
    llvm::Type *from = i.getOperand(0)->getType();
    return each(t, i, operands, [&](auto a) {
      llvm::SmallVector<double> numbers;
      for (uint64_t bits : a)
        numbers.push_back(number(from, bits));
      return Bits{bitsFor(i.getType(), fn(numbers))};
    });
  }

  // ---- memory
  Bits readByte(uint64_t address, bool isLocal) {
    if (!isLocal && address >= ownStart && address < zeros)
      return own[(address - ownStart) / ownSpan].at(address % ownSpan);
    if (!isLocal)
      return {address >= zeros ? uint64_t(0) : global.read(address)};
    require(address - sharedStart < shared.size(), "an access outside of LDS");
    return {shared[address - sharedStart], !written[address - sharedStart]};
  }
  void writeByte(uint64_t address, unsigned char byte, bool isLocal) {
    if (!isLocal && address >= ownStart)
      return void(own[(address - ownStart) / ownSpan].at(address % ownSpan) = {byte});
    if (!isLocal)
      return global.write(address, byte);
    require(address - sharedStart < shared.size(), "an access outside of LDS");
    shared[address - sharedStart] = byte, written[address - sharedStart] = true;
  }
  Value load(llvm::Type *type, uint64_t address, bool isLocal) {
    Value result(elements(type));
    unsigned bytes = bitsOf(type) / 8;
    for (unsigned byte = 0; byte < bytes * result.size(); ++byte) {
      Bits b = readByte(address + byte, isLocal);
      result[byte / bytes].v |= b.v << (8 * (byte % bytes));
      result[byte / bytes].poison |= b.poison;
    }
    return result;
  }
  void store(llvm::Type *type, const Value &data, uint64_t address, bool isLocal) {
    unsigned bytes = bitsOf(type) / 8;
    for (unsigned byte = 0; byte < bytes * data.size(); ++byte) {
      require(!data[byte / bytes].poison, "poison is stored");
      writeByte(address + byte, data[byte / bytes].v >> (8 * (byte % bytes)), isLocal);
    }
  }

  // ---- what a lane does alone
  Value call(Thread &t, llvm::CallInst &c) {
    using namespace llvm::Intrinsic;
    auto arg = [&](unsigned k) { return c.getArgOperand(k); };
    unsigned bits = c.getType()->isVoidTy() ? 0 : bitsOf(c.getType());
    if (auto *text = llvm::dyn_cast<llvm::InlineAsm>(c.getCalledOperand())) {
      llvm::StringRef code = text->getAsmString();
      if (code.empty()) // a copy that LLVM does not see through
        return get(t, arg(0));
      REQUIRE((code == "v_cvt_i32_f32 $0, $1" || code == "v_cvt_u32_f32 $0, $1")); // truncates, saturates, NaN to 0
      bool isSigned = code.contains("_i32");
      double least = isSigned ? INT32_MIN : 0, most = isSigned ? INT32_MAX : UINT32_MAX;
      return each(t, c, 1, [&](auto a) {
        double v = number(arg(0)->getType(), a[0]);
        return Bits{std::isnan(v) ? 0 : uint64_t(int64_t(std::clamp(std::trunc(v), least, most)))};
      });
    }
    auto ordered = [&](auto choose) {
      return each(t, c, 2, [&](auto a) { return Bits{uint64_t(choose(extended(a[0], bits), extended(a[1], bits)))}; });
    };
    switch (c.getIntrinsicID()) {
    case amdgcn_workitem_id_x: return {{t.id}};
    case amdgcn_workgroup_id_x: return {{programs[0]}};
    case amdgcn_workgroup_id_y: return {{programs[1]}};
    case assume:
    case amdgcn_sched_barrier: return {};
    case umin: return each(t, c, 2, [](auto a) { return Bits{std::min(a[0], a[1])}; });
    case umax: return each(t, c, 2, [](auto a) { return Bits{std::max(a[0], a[1])}; });
    case smin: return ordered([](int64_t a, int64_t b) { return std::min(a, b); });
    case smax: return ordered([](int64_t a, int64_t b) { return std::max(a, b); });
    case maxnum: return real(t, c, 2, [](auto a) { return std::fmax(a[0], a[1]); });
    case minnum: return real(t, c, 2, [](auto a) { return std::fmin(a[0], a[1]); });
    case llvm::Intrinsic::fabs: return real(t, c, 1, [](auto a) { return std::abs(a[0]); });
    case maximum: return real(t, c, 2, [](auto a) { return std::isnan(a[0] + a[1]) ? NAN : std::fmax(a[0], a[1]); });
    case minimum: return real(t, c, 2, [](auto a) { return std::isnan(a[0] + a[1]) ? NAN : std::fmin(a[0], a[1]); });
    case llvm::Intrinsic::floor: return real(t, c, 1, [](auto a) { return std::floor(a[0]); });
    case llvm::Intrinsic::ceil: return real(t, c, 1, [](auto a) { return std::ceil(a[0]); });
    case llvm::Intrinsic::trunc: return real(t, c, 1, [](auto a) { return std::trunc(a[0]); });
    case llvm::Intrinsic::rint: return real(t, c, 1, [](auto a) { return std::nearbyint(a[0]); });
    case llvm::Intrinsic::sqrt: return real(t, c, 1, [](auto a) { return std::sqrt(a[0]); });
    case llvm::Intrinsic::fma:
    case fmuladd: return real(t, c, 3, [](auto a) { return std::fma(a[0], a[1], a[2]); });
    case amdgcn_exp2: return real(t, c, 1, [](auto a) { return std::exp2(a[0]); });
    case bitreverse:
      return each(t, c, 1, [&](auto a) { return Bits{llvm::APInt(bits, a[0]).reverseBits().getZExtValue()}; });
    case vector_reduce_add: {
      Bits sum;
      for (Bits b : get(t, arg(0)))
        sum = {cut(sum.v + b.v, bits), sum.poison || b.poison};
      return {sum};
    }
    case llvm::Intrinsic::copysign:
      return each(t, c, 2, [&](auto a) { return Bits{cut(a[0], bits - 1) | (a[1] >> (bits - 1) & 1) << (bits - 1)}; });
    case amdgcn_cvt_pk_fp8_f32:
    case amdgcn_cvt_pk_bf8_f32: {
      bool bf8 = c.getIntrinsicID() == amdgcn_cvt_pk_bf8_f32;
      CHECK(constant(arg(3)) == 0); // the low half of the word
      llvm::Type *type = arg(0)->getType();
      return each(t, c, 3, [&](auto a) {
        return Bits{(a[2] & 0xffff0000) | toFp8(bf8, number(type, a[0])) | toFp8(bf8, number(type, a[1])) << 8};
      });
    }
    case amdgcn_cvt_pk_f32_fp8:
    case amdgcn_cvt_pk_f32_bf8:
    case amdgcn_cvt_scalef32_pk_f16_fp8:
    case amdgcn_cvt_pk_f16_fp8: {
      const Format &format = smallFormat(c.getIntrinsicID() == amdgcn_cvt_pk_f32_bf8);
      Value result;
      for (unsigned k = 0; k < 2; ++k) {
        unsigned byte = sound(t, arg(0)) >> (8 * k) & 0xff;
        double magnitude = fnuz() && byte == 0x80 ? NAN : format.decode(byte & 0x7f);
        result.push_back({bitsFor(c.getType(), byte & 0x80 ? -magnitude : magnitude)});
      }
      return result;
    }
    case amdgcn_make_buffer_rsrc:
      CHECK(sound(t, arg(1)) == 0);
      return {get(t, arg(0)).front(), {sound(t, arg(2))}}; // base and size
    case amdgcn_raw_ptr_buffer_load:
    case amdgcn_raw_ptr_buffer_store: {
      bool loads = c.getIntrinsicID() == amdgcn_raw_ptr_buffer_load;
      llvm::Type *type = loads ? c.getType() : arg(0)->getType();
      Value buffer = get(t, arg(!loads));
      uint64_t offset = sound(t, arg(!loads + 1));
      bool inRange = offset + bitsOf(type) / 8 * elements(type) <= buffer[1].v;
      ++buffers;
      require(!inRange || !buffer[0].poison, "poison is an address");
      uint64_t address = (buffer[0].v + offset) & 0xffffffffffff; // of 48 bits
      if (loads)
        return inRange ? load(type, address, false) : Value(elements(type));
      if (inRange)
        store(type, get(t, arg(0)), address, false);
      return {};
    }
    case amdgcn_global_load_lds: { // a lane's place follows that of the lane before; in flight until waited for
      uint64_t bytes = constant(arg(2));
      t.flying.push_back({sound(t, arg(0)), sound(t, arg(1)) + t.id % lanes * bytes, unsigned(bytes)});
      ++copies;
      return {};
    }
    case amdgcn_s_waitcnt: {
      uint64_t mask = constant(arg(0)), pending = (mask & 15) | (mask >> 14 & 3) << 4;
      for (; t.flying.size() > pending; t.flying.pop_front())
        for (unsigned byte = 0; byte < t.flying.front().bytes; ++byte)
          writeByte(t.flying.front().to + byte, readByte(t.flying.front().from + byte, false).v, true);
      return {};
    }
    default: FAIL("a function that is not described here: " << nameOf(c).str()); return {};
    }
  }

  Value execute(Thread &t, llvm::Instruction &i) {
    unsigned from = i.getNumOperands() ? bitsOf(i.getOperand(0)->getType()) : 0;
    switch (i.getOpcode()) {
    case llvm::Instruction::FAdd: return real(t, i, 2, [](auto a) { return a[0] + a[1]; });
    case llvm::Instruction::FSub: return real(t, i, 2, [](auto a) { return a[0] - a[1]; });
    case llvm::Instruction::FMul: return real(t, i, 2, [](auto a) { return a[0] * a[1]; });
    case llvm::Instruction::FDiv: return real(t, i, 2, [](auto a) { return a[0] / a[1]; });
    case llvm::Instruction::FNeg: return real(t, i, 1, [](auto a) { return -a[0]; });
    case llvm::Instruction::FPExt:
    case llvm::Instruction::FPTrunc: return real(t, i, 1, [](auto a) { return a[0]; });
    case llvm::Instruction::SIToFP:
      return each(t, i, 1, [&](auto a) { return Bits{bitsFor(i.getType(), double(extended(a[0], from)))}; });
    case llvm::Instruction::UIToFP:
      return each(t, i, 1, [&](auto a) { return Bits{bitsFor(i.getType(), double(a[0]))}; });
    case llvm::Instruction::SExt: return each(t, i, 1, [&](auto a) { return Bits{uint64_t(extended(a[0], from))}; });
    case llvm::Instruction::PtrToInt:
    case llvm::Instruction::IntToPtr: return each(t, i, 1, [](auto a) { return Bits{a[0]}; });
    case llvm::Instruction::Fence: return {};
    default: break;
    }
    if (auto *binary = llvm::dyn_cast<llvm::BinaryOperator>(&i)) {
      auto *wraps = llvm::dyn_cast<llvm::OverflowingBinaryOperator>(binary);
      bool nuw = wraps && wraps->hasNoUnsignedWrap(), nsw = wraps && wraps->hasNoSignedWrap();
      auto *apart = llvm::dyn_cast<llvm::PossiblyDisjointInst>(binary);
      auto *exact = llvm::dyn_cast<llvm::PossiblyExactOperator>(binary);
      return each(t, i, 2, [&](auto args) -> Bits {
        llvm::APInt a(from, args[0]), b(from, args[1]), r(from, 0);
        bool u = false, s = false, poison = false;
        switch (binary->getOpcode()) {
        case llvm::Instruction::Add: r = a.uadd_ov(b, u), (void)a.sadd_ov(b, s); break;
        case llvm::Instruction::Sub: r = a.usub_ov(b, u), (void)a.ssub_ov(b, s); break;
        case llvm::Instruction::Mul: r = a.umul_ov(b, u), (void)a.smul_ov(b, s); break;
        case llvm::Instruction::And: r = a & b; break;
        case llvm::Instruction::Or:
          r = a | b;
          poison = apart && apart->isDisjoint() && a.intersects(b);
          break;
        case llvm::Instruction::Xor: r = a ^ b; break;
        case llvm::Instruction::Shl:
          poison = b.uge(from);
          if (!poison)
            r = a.ushl_ov(b, u), (void)a.sshl_ov(b, s);
          break;
        case llvm::Instruction::LShr:
        case llvm::Instruction::AShr:
          poison = b.uge(from) || (exact && exact->isExact() && a.countr_zero() < b.getLimitedValue());
          if (!poison)
            r = binary->getOpcode() == llvm::Instruction::LShr ? a.lshr(b) : a.ashr(b);
          break;
        case llvm::Instruction::UDiv:
        case llvm::Instruction::URem:
        case llvm::Instruction::SDiv:
        case llvm::Instruction::SRem: {
          bool isSigned =
              binary->getOpcode() == llvm::Instruction::SDiv || binary->getOpcode() == llvm::Instruction::SRem;
          bool divides =
              binary->getOpcode() == llvm::Instruction::UDiv || binary->getOpcode() == llvm::Instruction::SDiv;
          require(!b.isZero(), "a division by zero");
          r = isSigned ? (divides ? a.sdiv(b) : a.srem(b)) : divides ? a.udiv(b) : a.urem(b);
          break;
        }
        default: FAIL("an operation that is not described here: " << std::string(binary->getOpcodeName()));
        }
        return {r.getZExtValue(), poison || (nuw && u) || (nsw && s)};
      });
    }
    if (auto *compare = llvm::dyn_cast<llvm::ICmpInst>(&i))
      return each(t, i, 2, [&](auto a) {
        return Bits{llvm::ICmpInst::compare(llvm::APInt(from, a[0]), llvm::APInt(from, a[1]), compare->getPredicate())};
      });
    if (auto *compare = llvm::dyn_cast<llvm::FCmpInst>(&i))
      return each(t, i, 2, [&](auto a) {
        llvm::Type *type = compare->getOperand(0)->getType();
        return Bits{llvm::FCmpInst::compare(llvm::APFloat(number(type, a[0])), llvm::APFloat(number(type, a[1])),
                                            compare->getPredicate())};
      });
    if (llvm::isa<llvm::SelectInst>(i)) {
      Value condition = get(t, i.getOperand(0)), yes = get(t, i.getOperand(1)), no = get(t, i.getOperand(2)), result;
      for (unsigned e = 0; e < yes.size(); ++e) {
        Bits c = condition[condition.size() == 1 ? 0 : e], chosen = c.v ? yes[e] : no[e];
        result.push_back({chosen.v, chosen.poison || c.poison});
      }
      return result;
    }
    if (auto *zext = llvm::dyn_cast<llvm::ZExtInst>(&i))
      return each(t, i, 1, [&](auto a) { return Bits{a[0], zext->hasNonNeg() && extended(a[0], from) < 0}; });
    if (auto *trunc = llvm::dyn_cast<llvm::TruncInst>(&i)) {
      unsigned to = bitsOf(i.getType());
      return each(t, i, 1, [&](auto a) {
        return Bits{a[0], (trunc->hasNoUnsignedWrap() && cut(a[0], to) != a[0]) ||
                              (trunc->hasNoSignedWrap() && extended(a[0], to) != extended(a[0], from))};
      });
    }
    if (llvm::isa<llvm::FreezeInst>(i)) {
      Value v = get(t, i.getOperand(0));
      for (Bits &b : v)
        b.poison = false;
      return v;
    }
    if (llvm::isa<llvm::BitCastInst>(i)) { // low elements first
      Value source = get(t, i.getOperand(0)), result(elements(i.getType()));
      unsigned have = from / 8, want = bitsOf(i.getType()) / 8;
      for (unsigned byte = 0; byte < have * source.size(); ++byte) {
        result[byte / want].v |= (source[byte / have].v >> (8 * (byte % have)) & 0xff) << (8 * (byte % want));
        result[byte / want].poison |= source[byte / have].poison;
      }
      return result;
    }
    if (auto *gep = llvm::dyn_cast<llvm::GetElementPtrInst>(&i)) {
      Value base = get(t, gep->getPointerOperand());
      for (auto type = llvm::gep_type_begin(gep); type != llvm::gep_type_end(gep); ++type) {
        Bits index = get(t, type.getOperand()).front();
        base.front().v += type.getSequentialElementStride(module->getDataLayout()) *
                          extended(index.v, bitsOf(type.getOperand()->getType()));
        base.front().poison |= index.poison;
      }
      base.front().v = cut(base.front().v, bitsOf(gep->getType()));
      return base;
    }
    if (auto *array = llvm::dyn_cast<llvm::AllocaInst>(&i)) {
      own.emplace_back(module->getDataLayout().getTypeAllocSize(array->getAllocatedType()), Bits{0, true});
      return {{ownStart + (own.size() - 1) * ownSpan}};
    }
    if (llvm::isa<llvm::LoadInst>(i)) {
      plain += !isShared(i.getOperand(0));
      return load(i.getType(), sound(t, i.getOperand(0)), isShared(i.getOperand(0)));
    }
    if (llvm::isa<llvm::StoreInst>(i)) {
      plain += !isShared(i.getOperand(1));
      store(i.getOperand(0)->getType(), get(t, i.getOperand(0)), sound(t, i.getOperand(1)), isShared(i.getOperand(1)));
      return {};
    }
    if (llvm::isa<llvm::ExtractElementInst>(i))
      return {get(t, i.getOperand(0))[constant(i.getOperand(1))]};
    if (auto *extract = llvm::dyn_cast<llvm::ExtractValueInst>(&i))
      return {get(t, i.getOperand(0))[extract->getIndices()[0]]};
    if (llvm::isa<llvm::InsertElementInst>(i)) {
      Value vector = get(t, i.getOperand(0));
      vector[constant(i.getOperand(2))] = get(t, i.getOperand(1)).front();
      return vector;
    }
    if (auto *shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&i)) {
      Value all = get(t, i.getOperand(0)), second = get(t, i.getOperand(1)), result;
      all.insert(all.end(), second.begin(), second.end());
      for (int k : shuffle->getShuffleMask())
        result.push_back(k < 0 ? Bits{0, true} : all[k]);
      return result;
    }
    if (auto *c = llvm::dyn_cast<llvm::CallInst>(&i))
      return call(t, *c);
    FAIL("an instruction that is not described here: " << std::string(i.getOpcodeName()));
    return {};
  }

  bool fnuz() const { return arch == "gfx942"; } ///< the formats that it calls fp8 and bf8 are of that kind
  const Format &smallFormat(bool bf8) const { return fnuz() ? (bf8 ? e5m2fnuz : e4m3fnuz) : (bf8 ? e5m2 : e4m3); }
  /// v_cvt_pk_fp8_f32 and v_cvt_pk_bf8_f32 without a clamp: too much is infinity, or NaN where there is none. gfx942's
  /// formats have neither infinity nor -0, and one NaN.
  unsigned toFp8(bool bf8, double v) const {
    const Format &format = smallFormat(bf8);
    unsigned sign = std::signbit(v) ? 0x80 : 0, magnitude = std::isnan(v) ? ~0u : format.round(std::abs(v));
    if (fnuz())
      return magnitude > format.largest ? 0x80 : magnitude ? sign | magnitude : 0;
    return sign | (std::isnan(v) ? 0x7f : std::min(magnitude, format.largest + 1));
  }

  // ---- what the lanes of a warp do together
  static bool isCollective(llvm::CallInst &c) {
    using namespace llvm::Intrinsic;
    switch (c.getIntrinsicID()) {
    case amdgcn_update_dpp:
    case amdgcn_readfirstlane:
    case amdgcn_readlane:
    case amdgcn_ds_swizzle:
    case amdgcn_ds_bpermute:
    case amdgcn_permlanex16:
    case amdgcn_permlane32_swap:
    case amdgcn_ds_read_tr16_b64:
    case amdgcn_s_barrier: return true;
    default: return multiplies(c);
    }
  }

  void exchange(llvm::CallInst &c, unsigned first) {
    using namespace llvm::Intrinsic;
    if (multiplies(c))
      return multiply(c, first);
    auto arg = [&](unsigned k) { return c.getArgOperand(k); };
    auto of = [&](unsigned lane, unsigned k) { return get(threads[first + lane], arg(k)); };
    std::vector<Value> results(lanes, Value(1));
    auto permute = [&](unsigned k, llvm::function_ref<std::optional<unsigned>(unsigned)> source) {
      for (unsigned l = 0; l < lanes; ++l)
        if (auto s = source(l))
          results[l] = of(*s, k);
    };
    switch (c.getIntrinsicID()) {
    case amdgcn_update_dpp: permute(1, [&](unsigned l) { return moved(constant(arg(2)), l); }); break;
    case amdgcn_readfirstlane: permute(0, [](unsigned) { return 0u; }); break;
    case amdgcn_readlane: permute(0, [&](unsigned) { return unsigned(constant(arg(1))); }); break;
    case amdgcn_ds_swizzle: { // bit mode: and, or, xor within 32 lanes
      unsigned mode = constant(arg(1));
      REQUIRE(mode < 0x8000);
      permute(0, [&](unsigned l) {
        return (l & 32) | ((((l & 31) & (mode & 31)) | (mode >> 5 & 31)) ^ (mode >> 10 & 31));
      });
      break;
    }
    case amdgcn_ds_bpermute: permute(1, [&](unsigned l) { return unsigned(of(l, 0).front().v / 4 % lanes); }); break;
    case amdgcn_permlanex16: { // the other row, lanes chosen by 4 bits each
      uint64_t chosen = constant(arg(2)) | constant(arg(3)) << 32;
      permute(1, [&](unsigned l) { return unsigned(((l & 16) ^ 16) | (chosen >> (4 * (l & 15)) & 15)); });
      break;
    }
    case amdgcn_permlane32_swap: // upper half of the first with the lower of the second
      for (unsigned l = 0; l < 64; ++l)
        results[l] = {(l < 32 ? of(l, 0) : of(l - 32, 1)).front(), (l < 32 ? of(l + 32, 0) : of(l, 1)).front()};
      break;
    case amdgcn_ds_read_tr16_b64: // a transposed block of 16 lanes
      for (unsigned l = 0; l < lanes; ++l) {
        results[l].clear();
        for (unsigned e = 0; e < 4; ++e)
          results[l].push_back(
              load(c.getType()->getScalarType(), of(l / 16 * 16 + l % 16 / 4 + 4 * e, 0).front().v + l % 4 * 2, true)
                  .front());
      }
      break;
    default: FAIL("an exchange that is not described here: " << nameOf(c).str());
    }
    for (unsigned l = 0; l < lanes; ++l)
      threads[first + l].values[slots[&c]] = results[l];
  }

  /// Source lane of lane l, or none.
  std::optional<unsigned> moved(unsigned control, unsigned l) {
    unsigned row = l & ~15u, in = l & 15;
    if (control <= 0xff)
      return (l & ~3u) | (control >> (2 * (l & 3)) & 3); // quad_perm
    if (control > 0x120 && control < 0x130)
      return row | ((in + 16 - (control & 15)) & 15); // row_ror
    if (control == 0x140)
      return row | (15 - in); // row_mirror
    if (control == 0x141)
      return (l & ~7u) | (7 - (l & 7)); // row_half_mirror
    if (control == 0x142 && lanes == 64)
      return row ? std::optional(row - 1) : std::nullopt; // row_bcast:15, of the row before
    if (control == 0x143 && lanes == 64)
      return l >= 32 ? std::optional(31u) : std::nullopt; // row_bcast:31
    if (control >= 0x160 && lanes == 32)
      return l ^ (control & 15); // row_xmask
    FAIL("a control that this processor has not");
    return std::nullopt;
  }

  /// What the name of an intrinsic says: llvm.amdgcn.mfma.f32.32x32x8f16, llvm.amdgcn.wmma.i32.16x16x16.iu8.…
  tessera_cpu_matrix instructionOf(llvm::CallInst &c) {
    llvm::StringRef rest = nameOf(c), type;
    rest = rest.substr(rest.find_first_of("x") - 2);
    tessera_cpu_matrix i{};
    bool bad = rest.consumeInteger(10, i.m) || !rest.consume_front("x") || rest.consumeInteger(10, i.n) ||
               !rest.consume_front("x") || rest.consumeInteger(10, i.k);
    REQUIRE(!bad);
    rest.consume_front(".");
    rest.consume_front("_");
    auto small = [&](bool e4) {
      return e4 ? (fnuz() ? tessera_matrix_e4m3fnuz : tessera_matrix_e4m3)
                : (fnuz() ? tessera_matrix_e5m2fnuz : tessera_matrix_e5m2);
    };
    if (rest.starts_with("f8f6f4"))
      i.a = small(constant(c.getArgOperand(3)) == 0), i.b = small(constant(c.getArgOperand(4)) == 0);
    else if (rest.starts_with("fp8") || rest.starts_with("bf8"))
      i.a = small(rest.starts_with("fp8")), i.b = small(rest.substr(4).starts_with("fp8"));
    else
      i.a = i.b = rest.starts_with("bf16")                            ? tessera_matrix_bf16
                  : rest.starts_with("f16")                           ? tessera_matrix_f16
                  : rest.starts_with("xf32")                          ? tessera_matrix_tf32
                  : rest.starts_with("f32")                           ? tessera_matrix_f32
                  : rest.starts_with("f64")                           ? tessera_matrix_f64
                  : rest.starts_with("i8") || rest.starts_with("iu8") ? tessera_matrix_s8
                                                                      : ~0u;
    REQUIRE(i.a != ~0u);
    i.unit = arch == "gfx90a"            ? tessera_unit_cdna2
             : lanes == 64               ? tessera_unit_cdna3
             : arch.starts_with("gfx11") ? tessera_unit_rdna3
                                         : tessera_unit_rdna4;
    return i;
  }

  /// The elements of an operand, one after the other as its registers hold them.
  std::vector<double> unpacked(const Value &v, unsigned bits, std::uint32_t type) {
    std::vector<unsigned char> raw(v.size() * bits / 8);
    for (unsigned byte = 0; byte < raw.size(); ++byte) {
      require(!v[byte / (bits / 8)].poison, "poison is multiplied");
      raw[byte] = v[byte / (bits / 8)].v >> (8 * (byte % (bits / 8)));
    }
    std::vector<double> numbers(raw.size() / cpu::matrix_bytes(type));
    if (type == tessera_matrix_f64) {
      std::memcpy(numbers.data(), raw.data(), raw.size());
      return numbers;
    }
    std::vector<std::uint32_t> wide(numbers.size());
    cpu::widen(type, raw.data(), wide.data(), wide.size());
    for (size_t k = 0; k < wide.size(); ++k)
      numbers[k] = cpu::is_integer(type) ? std::int32_t(wide[k]) : std::bit_cast<float>(wide[k]);
    return numbers;
  }

  void multiply(llvm::CallInst &c, unsigned first) {
    ++matrices;
    const tessera_cpu_matrix i = instructionOf(c);
    bool signs = nameOf(c).contains(".iu8");
    if (signs) { // both operands are signed, sums wrap
      CHECK(constant(c.getArgOperand(0)) == 1);
      CHECK(constant(c.getArgOperand(2)) == 1);
      CHECK(constant(c.getArgOperand(5)) == 0);
    }
    llvm::Value *operands[] = {c.getArgOperand(signs), c.getArgOperand(signs ? 3 : 1), c.getArgOperand(signs ? 4 : 2)};
    std::vector<double> a(i.m * i.k), b(i.n * i.k);
    for (unsigned l = 0; l < lanes; ++l)
      for (bool isB : {false, true}) {
        llvm::Value *operand = operands[isB];
        auto all = unpacked(get(threads[first + l], operand), bitsOf(operand->getType()), isB ? i.b : i.a);
        REQUIRE(all.size() == cpu::amd_elements(i, isB));
        for (unsigned e = 0; e < all.size(); ++e) {
          cpu::amd_place p = cpu::amd_operand(i, isB, e, l);
          (isB ? b : a)[p.row * i.k + p.column] = all[e];
        }
      }
    llvm::Type *sums = c.getType();
    for (unsigned l = 0; l < lanes; ++l) {
      Thread &t = threads[first + l];
      Value d = get(t, operands[2]);
      REQUIRE(d.size() == i.m * i.n / lanes);
      for (unsigned e = 0; e < d.size(); ++e) {
        cpu::amd_place p = cpu::amd_sum(i, e, l);
        double sum = 0;
        for (unsigned k = 0; k < i.k; ++k)
          sum += a[p.row * i.k + k] * b[p.column * i.k + k];
        bool integer = sums->getScalarType()->isIntegerTy();
        d[e].v = integer ? cut(d[e].v + int64_t(sum), 32) : bitsFor(sums, number(sums, d[e].v) + sum);
      }
      t.values[slots[&c]] = d;
    }
  }

  static constexpr uint64_t zeros = uint64_t(1) << 62; ///< where constants are, which are zeros
  static constexpr uint64_t ownStart = uint64_t(1) << 61, ownSpan = 1 << 20; ///< where the threads' own arrays are
  std::vector<std::vector<Bits>> own;                                        ///< bytes, poison until written

  unsigned lanes, programs[2] = {};
  std::string arch;
  Memory &global;
  std::vector<unsigned char> shared;
  std::vector<bool> written;
  std::vector<Thread> threads;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  llvm::Function *f = nullptr;
  llvm::DenseMap<llvm::Value *, unsigned> slots;
};

} // namespace tessera::test
