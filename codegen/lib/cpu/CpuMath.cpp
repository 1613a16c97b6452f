// Float functions: glibc's vector library where the host has it (at most 4 ulp), the scalar library lane by lane where
// not. With `precise`, f32 functions are computed by the f64 vector functions and rounded once.
#include "CpuTargetInfo.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/IR/Module.h"

#include <dlfcn.h>

using namespace llvm;

namespace tessera::codegen {

namespace {
struct Function_ {
  const char *name;        ///< in the C library, for double
  Intrinsic::ID intrinsic; ///< 0: none
  bool inlineVector;       ///< the intrinsic is an instruction or two for vectors
};

Function_ describe(MathFn fn) {
  switch (fn) {
  case MathFn::Exp: return {"exp", Intrinsic::exp, false};
  case MathFn::Exp2: return {"exp2", Intrinsic::exp2, false};
  case MathFn::Log: return {"log", Intrinsic::log, false};
  case MathFn::Log2: return {"log2", Intrinsic::log2, false};
  case MathFn::Log10: return {"log10", Intrinsic::log10, false};
  case MathFn::Sin: return {"sin", Intrinsic::sin, false};
  case MathFn::Cos: return {"cos", Intrinsic::cos, false};
  case MathFn::Tan: return {"tan", Intrinsic::tan, false};
  case MathFn::Tanh: return {"tanh", Intrinsic::tanh, false};
  case MathFn::Pow: return {"pow", Intrinsic::pow, false};
  case MathFn::Erf: return {"erf", Intrinsic::not_intrinsic, false};
  case MathFn::Sqrt: return {"sqrt", Intrinsic::sqrt, true};
  case MathFn::Floor: return {"floor", Intrinsic::floor, true};
  case MathFn::Ceil: return {"ceil", Intrinsic::ceil, true};
  case MathFn::Trunc: return {"trunc", Intrinsic::trunc, true};
  case MathFn::Round: return {"round", Intrinsic::round, true};
  case MathFn::Fma: return {"fma", Intrinsic::fma, true};
  case MathFn::Abs: return {"fabs", Intrinsic::fabs, true};
  case MathFn::Rsqrt:
  case MathFn::Div: break; // never get here
  }
  return {"", Intrinsic::not_intrinsic, false};
}
} // namespace

/// The vector function for `lanes` elements of `elem`, or "" where the host's library has none.
static std::string vectorFunction(const HostCpu &host, StringRef name, unsigned args, Type *elem, unsigned lanes) {
  static void *library = dlopen("libmvec.so.1", RTLD_LAZY | RTLD_LOCAL);
  std::string symbol = ("_ZGV" + Twine(host.mathIsa) + "N" + Twine(lanes) + std::string(args, 'v') + "_" + name +
                        (elem->isFloatTy() ? "f" : ""))
                           .str();
  return library && dlsym(library, symbol.c_str()) ? symbol : "";
}

static V callVector(Builder &b, StringRef symbol, ArrayRef<V> args) {
  Module &m = *b.GetInsertBlock()->getModule();
  Type *type = args[0]->getType();
  FunctionCallee f =
      m.getOrInsertFunction(symbol, FunctionType::get(type, SmallVector<Type *>(args.size(), type), false));
  auto *declaration = cast<Function>(f.getCallee());
  declaration->setDoesNotThrow();
  declaration->setDoesNotAccessMemory();
  declaration->setWillReturn();
  return b.CreateCall(f, args);
}

/// Calls `fn` on pieces of `chunk` lanes and joins the results.
static V inChunks(Builder &b, unsigned chunk, ArrayRef<V> args, function_ref<V(Builder &, ArrayRef<V>)> fn) {
  unsigned lanes = cast<FixedVectorType>(args[0]->getType())->getNumElements();
  if (chunk >= lanes)
    return fn(b, args);
  V result = PoisonValue::get(args[0]->getType());
  for (unsigned start = 0; start < lanes; start += chunk) {
    SmallVector<V> parts;
    for (V v : args)
      parts.push_back(
          b.CreateExtractVector(FixedVectorType::get(v->getType()->getScalarType(), chunk), v, uint64_t(start)));
    result = b.CreateInsertVector(result->getType(), result, fn(b, parts), uint64_t(start));
  }
  return result;
}

V CpuTargetInfo::math(B &b, MathFn fn, ArrayRef<V> args, bool precise) {
  Type *type = args[0]->getType(), *elem = type->getScalarType();
  if (fn == MathFn::Div)
    return b.CreateFDiv(args[0], args[1]);
  if (fn == MathFn::Rsqrt)
    return b.CreateFDiv(ConstantFP::get(type, 1.0), b.CreateUnaryIntrinsic(Intrinsic::sqrt, args[0]));
  Function_ f = describe(fn);
  if (f.intrinsic && (f.inlineVector || !type->isVectorTy()))
    return b.CreateIntrinsic(type, f.intrinsic, args);

  std::string scalarName = f.name + std::string(elem->isFloatTy() ? "f" : "");
  auto scalar = [&](Builder &b, ArrayRef<V> values) -> V {
    if (f.intrinsic)
      return b.CreateIntrinsic(elem, f.intrinsic, values);
    return callVector(b, scalarName, values);
  };
  if (!type->isVectorTy())
    return scalar(b, args);

  // f32 by f64: the error before the one rounding is some 2^-29 of the last place.
  if (precise && elem->isFloatTy()) {
    SmallVector<V> wide = map_to_vector(args, [&](V v) { return b.CreateFPExt(v, laneType(b.getDoubleTy())); });
    return b.CreateFPTrunc(math(b, fn, wide, false), type);
  }
  unsigned chunk = host.vectorBytes / (elem->isFloatTy() ? 4 : 8);
  std::string symbol = precise ? "" : vectorFunction(host, f.name, args.size(), elem, chunk);
  std::string name = std::string("math.") + f.name + (precise ? ".precise." : ".") + typeName(type);
  auto body = [&](Builder &b, ArrayRef<V> values) -> V {
    if (symbol.empty())
      return mapLanes(b, type, values, scalar);
    return inChunks(b, chunk, values, [&](Builder &b, ArrayRef<V> parts) { return callVector(b, symbol, parts); });
  };
  // One or two calls are shorter than a call of a function that makes them.
  if (!symbol.empty() && lanes <= 2 * chunk)
    return body(b, args);
  return callOutlined(b, name, type, args, body);
}

} // namespace tessera::codegen
