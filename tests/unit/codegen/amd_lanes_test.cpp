// What AMD's exchanges between lanes, range-checked accesses and fp8 conversions do, executed: the LLVM IR of kernels of one warp, instruction
// by instruction for all lanes, with the intrinsics as the ISA documents describe their instructions (CDNA3 ISA 7.9 "DPP", 9.1.5
// "Range checking", 10.2 "Swizzle"; RDNA3 ISA 7.7; CDNA4 ISA "V_PERMLANE32_SWAP").
#include <doctest/doctest.h>

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <tessera/codegen/compile.h>

using namespace tessera;

namespace {

using Lanes = std::vector<uint64_t>; ///< one value a lane
using Value = std::vector<Lanes>;    ///< one for each element of a vector

/// A binary float: `mantissa` bits, exponents from 1 - bias on. Magnitudes as bits; more than `largest` is no number.
struct Format {
  int mantissa, bias;
  unsigned largest;
  bool infinity = false; ///< one above largest

  double decode(unsigned bits) const {
    int e = bits >> mantissa, m = bits & ((1 << mantissa) - 1);
    if (bits > largest)
      return infinity && bits == largest + 1 ? INFINITY : NAN;
    return e ? std::ldexp(1 + std::ldexp(m, -mantissa), e - bias) : std::ldexp(m, 1 - bias - mantissa);
  }
  /// To nearest even, without a limit: the result may be more than largest.
  unsigned round(double magnitude) const {
    if (std::isinf(magnitude))
      return ~0u;
    int e = std::max(magnitude > 0 ? std::ilogb(magnitude) : -1000, 1 - bias);
    return unsigned(std::nearbyint(std::ldexp(magnitude, mantissa - e))) + ((e + bias - 1) << mantissa);
  }
};
constexpr Format f16{10, 15, 0x7bff, true}, f32{23, 127, 0x7f7fffff, true}, e4m3{3, 7, 0x7e}, e5m2{2, 15, 0x7b, true},
    e4m3fnuz{3, 8, 0x7f}, e5m2fnuz{2, 16, 0x7f};

class Warp {
public:
  Warp(const compiled_kernel &kernel, unsigned program)
      : lanes(kernel.metadata.warp_size), program(program), halfRange(kernel.compiled_for.arch == "gfx942") {
    llvm::SMDiagnostic bad;
    module = llvm::parseAssemblyString(*kernel.find("llir"), bad, context);
    REQUIRE(module);
    function = module->getFunction(kernel.metadata.name);
  }

  /// Runs the kernel; pointers are bytes that it may touch, in `memory`, and others arguments.
  void run(std::vector<std::vector<unsigned char> *> memory, std::vector<uint64_t> scalars) {
    size_t nextMemory = 0, nextScalar = 0;
    for (llvm::Argument &a : function->args()) {
      bool pointer = a.getType()->isPointerTy();
      if (pointer)
        segments.push_back({(nextMemory + 1) << 36, memory[nextMemory]});
      values[&a] = {Lanes(lanes, pointer ? segments.back().first : scalars[nextScalar++])};
      nextMemory += pointer;
    }
    REQUIRE(function->size() == 1); // no branch: what is masked is so by range checks
    for (llvm::Instruction &i : function->front())
      if (!i.isTerminator())
        values[&i] = execute(i);
  }
  unsigned buffers = 0; ///< accesses through descriptors

private:
  static unsigned bitsOf(llvm::Type *type) { return type->isPointerTy() ? 64 : type->getScalarSizeInBits(); }
  static uint64_t cut(uint64_t v, unsigned bits) { return bits >= 64 ? v : v & ((uint64_t(1) << bits) - 1); }
  static int64_t extended(uint64_t v, unsigned bits) { return int64_t(v << (64 - bits)) >> (64 - bits); }
  static unsigned elements(llvm::Type *type) {
    auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
    return vector ? vector->getNumElements() : 1;
  }

  Value get(llvm::Value *v) {
    if (auto it = values.find(v); it != values.end())
      return it->second;
    auto *constant = llvm::dyn_cast<llvm::Constant>(v);
    REQUIRE(constant);
    Value result;
    for (unsigned e = 0; e < elements(v->getType()); ++e) {
      llvm::Constant *element = v->getType()->isVectorTy() ? constant->getAggregateElement(e) : constant;
      auto *integer = llvm::dyn_cast<llvm::ConstantInt>(element);
      auto *real = llvm::dyn_cast<llvm::ConstantFP>(element);
      uint64_t bits = integer ? integer->getZExtValue() : real ? real->getValue().bitcastToAPInt().getZExtValue() : 0;
      result.push_back(Lanes(lanes, bits)); // of null, or of poison, which nobody reads
    }
    return result;
  }
  Lanes one(llvm::Value *v) { return get(v).front(); }
  uint64_t constant(llvm::Value *v) { return llvm::cast<llvm::ConstantInt>(v)->getZExtValue(); }

  Value each(llvm::Instruction &i, llvm::function_ref<uint64_t(llvm::ArrayRef<uint64_t>)> fn) {
    llvm::SmallVector<Value> operands;
    for (llvm::Value *operand : i.operands())
      if (!llvm::isa<llvm::Function>(operand))
        operands.push_back(get(operand));
    Value result(elements(i.getType()), Lanes(lanes));
    llvm::SmallVector<uint64_t> args(operands.size());
    for (unsigned e = 0; e < result.size(); ++e)
      for (unsigned l = 0; l < lanes; ++l) {
        for (auto [arg, operand] : llvm::zip_equal(args, operands))
          arg = operand[operand.size() == 1 ? 0 : e][l];
        result[e][l] = cut(fn(args), bitsOf(i.getType()));
      }
    return result;
  }

  unsigned char *at(uint64_t address, unsigned bytes) {
    for (auto &[start, memory] : segments)
      if (address - start < memory->size() && address - start + bytes <= memory->size())
        return memory->data() + (address - start);
    FAIL("an access outside of all memory");
    return nullptr;
  }
  /// Element e of each lane's access, or nothing where the lane does none.
  Value load(llvm::Type *type, const Lanes &addresses, const std::vector<bool> &inRange) {
    unsigned bytes = bitsOf(type) / 8;
    Value result(elements(type), Lanes(lanes));
    for (unsigned e = 0; e < result.size(); ++e)
      for (unsigned l = 0; l < lanes; ++l)
        if (inRange[l])
          std::memcpy(&result[e][l], at(addresses[l] + e * bytes, bytes), bytes);
    return result;
  }
  void store(llvm::Type *type, const Value &data, const Lanes &addresses, const std::vector<bool> &inRange) {
    unsigned bytes = bitsOf(type) / 8;
    for (unsigned e = 0; e < data.size(); ++e)
      for (unsigned l = 0; l < lanes; ++l)
        if (inRange[l])
          std::memcpy(at(addresses[l] + e * bytes, bytes), &data[e][l], bytes);
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

  Value intrinsic(llvm::CallInst &call) {
    auto permuted = [&](const Lanes &from, llvm::function_ref<std::optional<unsigned>(unsigned)> source) {
      Lanes to(lanes);
      for (unsigned l = 0; l < lanes; ++l)
        if (auto s = source(l))
          to[l] = from[*s];
      return Value{to};
    };
    auto arg = [&](unsigned k) { return call.getArgOperand(k); };
    switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::amdgcn_workitem_id_x: {
      Lanes ids(lanes);
      for (unsigned l = 0; l < lanes; ++l)
        ids[l] = l;
      return {ids};
    }
    case llvm::Intrinsic::amdgcn_workgroup_id_x: return {Lanes(lanes, program)};
    case llvm::Intrinsic::amdgcn_update_dpp:
      CHECK(constant(arg(3)) == 0xf);
      CHECK(constant(arg(4)) == 0xf);
      return permuted(one(arg(1)), [&](unsigned l) { return moved(constant(arg(2)), l); });
    case llvm::Intrinsic::amdgcn_readfirstlane: return {Lanes(lanes, one(arg(0))[0])};
    case llvm::Intrinsic::amdgcn_readlane: return {Lanes(lanes, one(arg(0))[constant(arg(1))])};
    case llvm::Intrinsic::amdgcn_ds_swizzle: { // bit mode: and, or, xor within 32 lanes
      unsigned mode = constant(arg(1));
      REQUIRE(mode < 0x8000);
      return permuted(one(arg(0)), [&](unsigned l) {
        return (l & 32) | ((((l & 31) & (mode & 31)) | (mode >> 5 & 31)) ^ (mode >> 10 & 31));
      });
    }
    case llvm::Intrinsic::amdgcn_ds_bpermute: {
      Lanes addresses = one(arg(0));
      return permuted(one(arg(1)), [&](unsigned l) { return unsigned(addresses[l] / 4 % lanes); });
    }
    case llvm::Intrinsic::amdgcn_permlanex16: { // the other row, lanes chosen by 4 bits each
      uint64_t chosen = constant(arg(2)) | constant(arg(3)) << 32;
      REQUIRE(lanes == 32);
      return permuted(one(arg(1)), [&](unsigned l) { return unsigned(((l & 16) ^ 16) | (chosen >> (4 * (l & 15)) & 15)); });
    }
    case llvm::Intrinsic::amdgcn_permlane32_swap: { // upper half of the first with the lower of the second
      Lanes a = one(arg(0)), b = one(arg(1));
      for (unsigned l = 0; l < 32; ++l)
        std::swap(a[l + 32], b[l]);
      return {a, b};
    }
    case llvm::Intrinsic::amdgcn_make_buffer_rsrc:
      records[&call] = constant(arg(2));
      CHECK(constant(arg(1)) == 0);
      return {one(arg(0))};
    case llvm::Intrinsic::amdgcn_raw_ptr_buffer_load:
    case llvm::Intrinsic::amdgcn_raw_ptr_buffer_store: {
      bool loads = call.getIntrinsicID() == llvm::Intrinsic::amdgcn_raw_ptr_buffer_load;
      llvm::Value *descriptor = arg(!loads);
      llvm::Type *type = loads ? call.getType() : arg(0)->getType();
      Lanes base = one(descriptor), offset = one(arg(!loads + 1)), addresses(lanes);
      CHECK(std::set(base.begin(), base.end()).size() == 1); // scalar registers
      std::vector<bool> inRange(lanes);
      for (unsigned l = 0; l < lanes; ++l) {
        inRange[l] = offset[l] + bitsOf(type) / 8 * elements(type) <= records.at(descriptor);
        addresses[l] = base[l] + offset[l];
      }
      ++buffers;
      if (loads)
        return load(type, addresses, inRange);
      store(type, get(arg(0)), addresses, inRange);
      return {};
    }
    case llvm::Intrinsic::vector_reduce_add: {
      Lanes total(lanes);
      for (const Lanes &element : get(arg(0)))
        for (unsigned l = 0; l < lanes; ++l)
          total[l] = cut(total[l] + element[l], bitsOf(call.getType()));
      return {total};
    }
    case llvm::Intrinsic::fabs:
      return each(call, [&](auto a) { return cut(a[0], bitsOf(call.getType()) - 1); });
    case llvm::Intrinsic::copysign:
      return each(call, [&](auto a) {
        unsigned sign = bitsOf(call.getType()) - 1;
        return cut(a[0], sign) | (a[1] >> sign & 1) << sign;
      });
    case llvm::Intrinsic::amdgcn_cvt_pk_fp8_f32:
    case llvm::Intrinsic::amdgcn_cvt_pk_bf8_f32: {
      bool bf8 = call.getIntrinsicID() == llvm::Intrinsic::amdgcn_cvt_pk_bf8_f32;
      CHECK(constant(arg(3)) == 0); // the low half of the word
      llvm::Type *type = arg(0)->getType();
      return each(call, [&](auto a) {
        return (a[2] & 0xffff0000) | toFp8(bf8, number(type, a[0])) | toFp8(bf8, number(type, a[1])) << 8;
      });
    }
    case llvm::Intrinsic::amdgcn_cvt_pk_f32_fp8:
    case llvm::Intrinsic::amdgcn_cvt_scalef32_pk_f16_fp8:
    case llvm::Intrinsic::amdgcn_cvt_pk_f16_fp8: {
      REQUIRE(!halfRange);
      Lanes word = one(arg(0));
      Value result(2, Lanes(lanes));
      for (unsigned k = 0; k < 2; ++k)
        for (unsigned l = 0; l < lanes; ++l) {
          unsigned byte = word[l] >> (8 * k) & 0xff;
          double magnitude = e4m3.decode(byte & 0x7f);
          result[k][l] = bitsFor(call.getType(), byte & 0x80 ? -magnitude : magnitude);
        }
      return result;
    }
    case llvm::Intrinsic::smax:
      return each(call, [&](auto a) {
        unsigned bits = bitsOf(call.getType());
        return uint64_t(std::max(extended(a[0], bits), extended(a[1], bits)));
      });
    default: break;
    }
    FAIL("an intrinsic that is not described here: " << call.getCalledFunction()->getName().str());
    return {};
  }

  Value execute(llvm::Instruction &i) {
    unsigned from = i.getNumOperands() ? bitsOf(i.getOperand(0)->getType()) : 0;
    std::vector<bool> everywhere(lanes, true);
    if (i.getOpcode() == llvm::Instruction::FMul)
      return each(i, [&](auto a) {
        return bitsFor(i.getType(), number(i.getType(), a[0]) * number(i.getType(), a[1]));
      });
    if (llvm::isa<llvm::FPExtInst, llvm::FPTruncInst>(i))
      return each(i, [&](auto a) { return bitsFor(i.getType(), number(i.getOperand(0)->getType(), a[0])); });
    if (auto *compare = llvm::dyn_cast<llvm::FCmpInst>(&i))
      return each(i, [&](auto a) {
        llvm::Type *type = compare->getOperand(0)->getType();
        return llvm::FCmpInst::compare(llvm::APFloat(number(type, a[0])), llvm::APFloat(number(type, a[1])),
                                       compare->getPredicate());
      });
    if (auto *binary = llvm::dyn_cast<llvm::BinaryOperator>(&i))
      return each(i, [&](auto a) -> uint64_t {
        switch (binary->getOpcode()) {
        case llvm::Instruction::Add: return a[0] + a[1];
        case llvm::Instruction::Sub: return a[0] - a[1];
        case llvm::Instruction::Mul: return a[0] * a[1];
        case llvm::Instruction::And: return a[0] & a[1];
        case llvm::Instruction::Or: return a[0] | a[1];
        case llvm::Instruction::Xor: return a[0] ^ a[1];
        case llvm::Instruction::Shl: return a[0] << a[1];
        case llvm::Instruction::LShr: return a[0] >> a[1];
        case llvm::Instruction::AShr: return extended(a[0], from) >> a[1];
        default: FAIL("an operation that is not described here"); return 0;
        }
      });
    if (auto *compare = llvm::dyn_cast<llvm::ICmpInst>(&i))
      return each(i, [&](auto a) {
        return llvm::ICmpInst::compare(llvm::APInt(from, a[0]), llvm::APInt(from, a[1]), compare->getPredicate());
      });
    if (llvm::isa<llvm::SelectInst>(i))
      return each(i, [](auto a) { return a[0] ? a[1] : a[2]; });
    if (llvm::isa<llvm::SExtInst>(i))
      return each(i, [&](auto a) { return uint64_t(extended(a[0], from)); });
    if (llvm::isa<llvm::ZExtInst, llvm::TruncInst, llvm::PtrToIntInst, llvm::IntToPtrInst, llvm::FreezeInst>(i))
      return each(i, [](auto a) { return a[0]; });
    if (llvm::isa<llvm::BitCastInst>(i)) { // low elements first
      Value source = get(i.getOperand(0)), result(elements(i.getType()), Lanes(lanes));
      unsigned have = from / 8, want = bitsOf(i.getType()) / 8;
      for (unsigned byte = 0; byte < have * source.size(); ++byte)
        for (unsigned l = 0; l < lanes; ++l)
          result[byte / want][l] |= (source[byte / have][l] >> (8 * (byte % have)) & 0xff) << (8 * (byte % want));
      return result;
    }
    if (auto *gep = llvm::dyn_cast<llvm::GetElementPtrInst>(&i)) {
      Lanes address = one(gep->getPointerOperand());
      for (auto type = llvm::gep_type_begin(gep); type != llvm::gep_type_end(gep); ++type) {
        uint64_t size = type.getSequentialElementStride(module->getDataLayout());
        Lanes index = one(type.getOperand());
        for (unsigned l = 0; l < lanes; ++l)
          address[l] += size * extended(index[l], bitsOf(type.getOperand()->getType()));
      }
      return {address};
    }
    if (llvm::isa<llvm::LoadInst>(i))
      return load(i.getType(), one(i.getOperand(0)), everywhere);
    if (llvm::isa<llvm::StoreInst>(i))
      return store(i.getOperand(0)->getType(), get(i.getOperand(0)), one(i.getOperand(1)), everywhere), Value();
    if (llvm::isa<llvm::ExtractElementInst>(i))
      return {get(i.getOperand(0))[constant(i.getOperand(1))]};
    if (auto *extract = llvm::dyn_cast<llvm::ExtractValueInst>(&i))
      return {get(i.getOperand(0))[extract->getIndices()[0]]};
    if (llvm::isa<llvm::InsertElementInst>(i)) {
      Value vector = get(i.getOperand(0));
      vector[constant(i.getOperand(2))] = one(i.getOperand(1));
      return vector;
    }
    if (auto *shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&i)) {
      Value all = get(i.getOperand(0)), result;
      llvm::append_range(all, get(i.getOperand(1)));
      for (int k : shuffle->getShuffleMask())
        result.push_back(k < 0 ? Lanes(lanes) : all[k]);
      return result;
    }
    if (auto *call = llvm::dyn_cast<llvm::CallInst>(&i))
      return intrinsic(*call);
    FAIL("an instruction that is not described here: " << std::string(i.getOpcodeName()));
    return {};
  }

  static const Format &formatOf(llvm::Type *type) { return type->getScalarType()->isHalfTy() ? f16 : f32; }
  static double number(llvm::Type *type, uint64_t bits) {
    const Format &format = formatOf(type);
    unsigned sign = bitsOf(type) - 1;
    double magnitude = format.decode(cut(bits, sign));
    return bits >> sign & 1 ? -magnitude : magnitude;
  }
  /// As arithmetic rounds: beyond the largest number infinity.
  static uint64_t bitsFor(llvm::Type *type, double value) {
    const Format &format = formatOf(type);
    unsigned magnitude = std::isnan(value) ? format.largest + 2 : std::min(format.round(std::abs(value)), format.largest + 1);
    return magnitude | uint64_t(std::signbit(value)) << (bitsOf(type) - 1);
  }
  /// v_cvt_pk_fp8_f32 and v_cvt_pk_bf8_f32 without a clamp: too much is infinity, or NaN where there is none. gfx942's formats
  /// have neither infinity nor -0, and one NaN.
  unsigned toFp8(bool bf8, double v) {
    const Format &format = halfRange ? (bf8 ? e5m2fnuz : e4m3fnuz) : (bf8 ? e5m2 : e4m3);
    unsigned sign = std::signbit(v) ? 0x80 : 0, magnitude = std::isnan(v) ? ~0u : format.round(std::abs(v));
    if (halfRange)
      return magnitude > format.largest ? 0x80 : magnitude ? sign | magnitude : 0;
    return sign | (std::isnan(v) ? 0x7f : std::min(magnitude, format.largest + 1));
  }

  unsigned lanes, program;
  bool halfRange; ///< fp8 of the processor is fnuz
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  llvm::Function *function = nullptr;
  std::map<llvm::Value *, Value> values;
  std::map<llvm::Value *, uint64_t> records;
  std::vector<std::pair<uint64_t, std::vector<unsigned char> *>> segments;
};

const char *const archs[] = {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"};

compiled_kernel build(std::string text, const std::string &arch) {
  ir_module module = parse_ir(text, "kernel.ttir");
  return compile(module, parse_target("hip:" + arch), {.num_warps = 1}, "llir");
}

std::vector<int32_t> numbers(size_t n) {
  std::mt19937 random(7);
  std::vector<int32_t> list(n);
  for (int32_t &v : list)
    v = int32_t(random());
  return list;
}
template <class T> std::vector<unsigned char> bytes(const std::vector<T> &list) {
  std::vector<unsigned char> b(list.size() * sizeof(T));
  std::memcpy(b.data(), list.data(), b.size());
  return b;
}
template <class T> std::vector<T> elements(const std::vector<unsigned char> &b) {
  std::vector<T> list(b.size() / sizeof(T));
  std::memcpy(list.data(), b.data(), b.size());
  return list;
}

const char *const sum = R"(
tt.func public @sum(%x: !tt.ptr<TYPE> {tt.divisibility = 16 : i32}, %y: !tt.ptr<TYPE>) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<TYPE> -> tensor<256x!tt.ptr<TYPE>>
  %p = tt.addptr %xs, %i : tensor<256x!tt.ptr<TYPE>>, tensor<256xi32>
  %v = tt.load %p : tensor<256x!tt.ptr<TYPE>>
  %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%l: TYPE, %r: TYPE):
    %t = arith.addi %l, %r : TYPE
    tt.reduce.return %t : TYPE
  }) : (tensor<256xTYPE>) -> TYPE
  tt.store %y, %s : !tt.ptr<TYPE>
  tt.return
})";

const char *const columns = R"(
tt.func public @columns(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %r1 = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %w = arith.constant dense<16> : tensor<16x1xi32>
  %rw = arith.muli %r1, %w : tensor<16x1xi32>
  %rb = tt.broadcast %rw : tensor<16x1xi32> -> tensor<16x16xi32>
  %c1 = tt.expand_dims %r {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %cb = tt.broadcast %c1 : tensor<1x16xi32> -> tensor<16x16xi32>
  %at = arith.addi %rb, %cb : tensor<16x16xi32>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<16x16x!tt.ptr<i32>>
  %p = tt.addptr %xs, %at : tensor<16x16x!tt.ptr<i32>>, tensor<16x16xi32>
  %v = tt.load %p : tensor<16x16x!tt.ptr<i32>>
  %s = "tt.reduce"(%v) <{axis = AXIS : i32}> ({
  ^bb0(%l: i32, %rr: i32):
    %t = arith.maxsi %l, %rr : i32
    tt.reduce.return %t : i32
  }) : (tensor<16x16xi32>) -> tensor<16xi32>
  %ys = tt.splat %y : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
  %q = tt.addptr %ys, %r : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
  tt.store %q, %s : tensor<16x!tt.ptr<i32>>
  tt.return
})";

const char *const copy = R"(
tt.func public @copy(%x: !tt.ptr<TYPE> {tt.divisibility = 16 : i32}, %y: !tt.ptr<TYPE> {tt.divisibility = 16 : i32}, %n: i32) {
  %c512 = arith.constant 512 : i32
  %pid = tt.get_program_id x : i32
  %first = arith.muli %pid, %c512 : i32
  %range = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %firsts = tt.splat %first : i32 -> tensor<512xi32>
  %i = arith.addi %firsts, %range : tensor<512xi32>
  %ns = tt.splat %n : i32 -> tensor<512xi32>
  %in = arith.cmpi slt, %i, %ns : tensor<512xi32>
  %other = arith.constant dense<OTHER> : tensor<512xTYPE>
  %xs = tt.splat %x : !tt.ptr<TYPE> -> tensor<512x!tt.ptr<TYPE>>
  %p = tt.addptr %xs, %i : tensor<512x!tt.ptr<TYPE>>, tensor<512xi32>
  %v = tt.load %p, %in, %other : tensor<512x!tt.ptr<TYPE>>
  %ys = tt.splat %y : !tt.ptr<TYPE> -> tensor<512x!tt.ptr<TYPE>>
  %q = tt.addptr %ys, %range : tensor<512x!tt.ptr<TYPE>>, tensor<512xi32>
  tt.store %q, %v : tensor<512x!tt.ptr<TYPE>>
  %z = tt.addptr %xs, %i : tensor<512x!tt.ptr<TYPE>>, tensor<512xi32>
  tt.store %z, %other, %in : tensor<512x!tt.ptr<TYPE>>
  tt.return
})";

const char *const convert = R"(
tt.func public @convert(%x: !tt.ptr<FROM> {tt.divisibility = 16 : i32}, %y: !tt.ptr<TO> {tt.divisibility = 16 : i32}) {
  %c1024 = arith.constant 1024 : i32
  %pid = tt.get_program_id x : i32
  %first = arith.muli %pid, %c1024 : i32
  %range = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %firsts = tt.splat %first : i32 -> tensor<1024xi32>
  %i = arith.addi %firsts, %range : tensor<1024xi32>
  %xs = tt.splat %x : !tt.ptr<FROM> -> tensor<1024x!tt.ptr<FROM>>
  %p = tt.addptr %xs, %i : tensor<1024x!tt.ptr<FROM>>, tensor<1024xi32>
  %v = tt.load %p : tensor<1024x!tt.ptr<FROM>>
  %r = tt.fp_to_fp %vROUND : tensor<1024xFROM> -> tensor<1024xTO>
  %ys = tt.splat %y : !tt.ptr<TO> -> tensor<1024x!tt.ptr<TO>>
  %q = tt.addptr %ys, %i : tensor<1024x!tt.ptr<TO>>, tensor<1024xi32>
  tt.store %q, %r : tensor<1024x!tt.ptr<TO>>
  tt.return
})";

std::string with(std::string text, const std::string &key, const std::string &value) {
  for (size_t at; (at = text.find(key)) != std::string::npos;)
    text.replace(at, key.size(), value);
  return text;
}

} // namespace

TEST_SUITE_BEGIN("gpu"); // as on any host: run once

TEST_CASE("the steps of a reduction bring all lanes together") {
  auto check = [&]<class T>(const char *type, const std::vector<T> &x, const char *arch) {
    CAPTURE(std::string(arch));
    CAPTURE(std::string(type));
    std::vector<unsigned char> in = bytes(x), out(sizeof(T));
    Warp(build(with(sum, "TYPE", type), arch), 0).run({&in, &out}, {});
    std::make_unsigned_t<T> expected = 0;
    for (T v : x)
      expected += v;
    CHECK(elements<T>(out)[0] == T(expected));
  };
  for (const char *arch : archs) {
    auto x = numbers(256);
    check("i32", x, arch);
    check("i64", std::vector<int64_t>(x.begin(), x.end()), arch);
    check("i16", std::vector<int16_t>(x.begin(), x.end()), arch);
  }
}

TEST_CASE("lanes far and near exchange what they hold") {
  auto x = numbers(256);
  for (const char *arch : archs)
    for (int axis : {0, 1}) {
      CAPTURE(std::string(arch));
      CAPTURE(axis);
      std::vector<unsigned char> in = bytes(x), out(16 * 4);
      Warp(build(with(columns, "AXIS", std::to_string(axis)), arch), 0).run({&in, &out}, {});
      auto most = elements<int32_t>(out);
      for (int k = 0; k < 16; ++k) {
        int32_t expected = INT32_MIN;
        for (int j = 0; j < 16; ++j)
          expected = std::max(expected, x[axis == 0 ? 16 * j + k : 16 * k + j]);
        CHECK(most[k] == expected);
      }
    }
}

TEST_CASE("fp8 are OCP's whatever the processor's instruction makes") {
  std::vector<uint16_t> halves(65536);
  for (unsigned i = 0; i < halves.size(); ++i)
    halves[i] = i;
  std::vector<uint8_t> all(1024);
  for (unsigned i = 0; i < all.size(); ++i)
    all[i] = i;
  for (const char *arch : {"gfx942", "gfx950", "gfx1201", "gfx1250"})
    for (auto &[type, format] : {std::pair("f8E4M3FN", e4m3), std::pair("f8E5M2", e5m2)}) {
      CAPTURE(std::string(arch));
      CAPTURE(std::string(type));
      auto kernel = [&](const char *from, const char *to, const char *rounding) {
        return build(with(with(with(convert, "FROM", from), "TO", to), "ROUND", rounding), arch);
      };
      compiled_kernel narrow = kernel("f16", type, ", rounding = rtne"), widen = kernel(type, "f16", "");
      CHECK(narrow.find("llir")->find(".cvt.pk.") != std::string::npos);
      std::vector<unsigned char> in = bytes(halves), out(65536);
      for (unsigned program = 0; program < 64; ++program)
        Warp(narrow, program).run({&in, &out}, {});
      unsigned wrong = 0;
      for (unsigned i = 0; i < 65536; ++i) {
        double v = f16.decode(i & 0x7fff);
        unsigned expected = std::min(format.round(v), format.largest) | (i >> 8 & 0x80);
        wrong += std::isnan(v) ? !std::isnan(format.decode(out[i] & 0x7f)) : out[i] != expected;
      }
      CHECK(wrong == 0);

      std::vector<unsigned char> small = bytes(all), wide(2048);
      Warp(widen, 0).run({&small, &wide}, {});
      auto results = elements<uint16_t>(wide);
      for (unsigned i = 0; i < 256; ++i) {
        double v = format.decode(i & 0x7f), is = f16.decode(results[i] & 0x7fff);
        wrong += std::isnan(v) ? !std::isnan(is) : is != v || (results[i] >> 15) != (i >> 7);
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE("masked lanes are out of range and touch nothing") {
  for (const char *arch : archs)
    for (const char *type : {"i32", "i8", "i64"})
      for (int n : {512 + 300, 512 + 1, 1024}) {
        CAPTURE(std::string(arch));
        CAPTURE(std::string(type));
        CAPTURE(n);
        unsigned size = type == std::string("i8") ? 1 : type == std::string("i64") ? 8 : 4;
        std::vector<unsigned char> in(n * size), out(512 * size, 0xcc); // in ends with the last element
        for (size_t i = 0; i < in.size(); ++i)
          in[i] = (i * 7 + 1) & 0x3f;
        std::vector<unsigned char> before = in;
        Warp warp(build(with(with(copy, "TYPE", type), "OTHER", "-1"), arch), 1);
        warp.run({&in, &out}, {uint64_t(n)});
        CHECK(warp.buffers >= 2);
        unsigned valid = (n - 512) * size;
        CHECK(std::equal(out.begin(), out.begin() + valid, before.begin() + 512 * size));
        CHECK(std::all_of(out.begin() + valid, out.end(), [](unsigned char c) { return c == 0xff; }));
        CHECK(std::equal(before.begin(), before.begin() + 512 * size, in.begin()));
        CHECK(std::all_of(in.begin() + 512 * size, in.end(), [](unsigned char c) { return c == 0xff; }));
      }
}

TEST_SUITE_END();
