#include "FastSine.h"

#include "llvm/IR/Intrinsics.h"

#include <cmath>
#include <numbers>

namespace tessera::codegen {

namespace Intrinsic = llvm::Intrinsic;
using V = llvm::Value *;

V beyondFastAngle(llvm::IRBuilderBase &b, V x) {
  V magnitude = b.CreateUnaryIntrinsic(Intrinsic::fabs, b.CreateFPExt(x, b.getFloatTy()));
  return b.CreateFCmpOGT(magnitude, llvm::ConstantFP::get(b.getFloatTy(), maxFastAngle));
}

V sineOrCosine(llvm::IRBuilderBase &b, V x, int quadrant, llvm::function_ref<V(V)> toInt) {
  llvm::Type *type = x->getType();
  auto number = [&](double value) { return llvm::ConstantFP::get(type, value); };
  auto fma = [&](V u, V v, V w) -> V { return b.CreateIntrinsic(Intrinsic::fma, {type}, {u, v, w}); };
  auto polynomial = [&](V at, std::initializer_list<double> coefficients) {
    V sum = nullptr;
    for (double c : coefficients)
      sum = sum ? fma(sum, at, number(c)) : number(c);
    return sum;
  };
  // Subtract the nearest multiple of pi/2, which three floats hold: |rest| <= pi/4.
  V turns = b.CreateUnaryIntrinsic(Intrinsic::rint, b.CreateFMul(x, number(2 * std::numbers::inv_pi)));
  V rest = x;
  double left = std::numbers::pi / 2;
  for (int i = 0; i < 3; ++i) {
    float part = float(left);
    rest = fma(turns, number(-double(part)), rest);
    left -= part;
  }
  V square = b.CreateFMul(rest, rest);
  // Minimax polynomials on [-pi/4, pi/4].
  V sine =
      fma(b.CreateFMul(rest, square), polynomial(square, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1}), rest);
  V cosine = fma(b.CreateFMul(square, square),
                 polynomial(square, {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2}),
                 fma(square, number(-0.5), number(1)));
  V count = b.CreateAdd(toInt(turns), b.getInt32(quadrant));
  auto bit = [&](unsigned mask) { return b.CreateICmpNE(b.CreateAnd(count, mask), b.getInt32(0)); };
  V value = b.CreateSelect(bit(1), cosine, sine);
  return b.CreateSelect(bit(2), b.CreateFNeg(value), value);
}

} // namespace tessera::codegen
