// Assembly that a kernel brings along.
#include "Emitter.h"

#include "llvm/IR/InlineAsm.h"

namespace tessera::codegen {

using mlir::LogicalResult;
using mlir::success;

/// Why LLVM would end the process over `text`, or nothing: its printer takes "$N", "${N:modifier}" and "$$" and calls
/// every other use of the sign a fatal error.
static std::optional<std::string> badAssembly(llvm::StringRef text, uint64_t operands) {
  for (size_t dollar = text.find('$'); dollar != text.npos; dollar = text.find('$')) {
    text = text.drop_front(dollar + 1);
    if (text.consume_front("$"))
      continue;
    bool braces = text.consume_front("{");
    uint64_t number = 0;
    if (text.consumeInteger(10, number))
      return "has '$' before '" + text.take_front(1).str() + "' in its assembly: write $N, ${N:modifier} or $$";
    if (number >= operands)
      return "names operand $" + std::to_string(number) + " in its assembly, but its operands are $0 to $" +
             std::to_string(operands - 1);
    if (!braces)
      continue;
    if (text.consume_front(":"))
      text = text.drop_while([](char c) { return llvm::isAlnum(c); });
    if (!text.consume_front("}"))
      return "does not close '${" + std::to_string(number) + "' in its assembly";
  }
  return std::nullopt;
}

/// Triton's form: every call handles packed_element elements of each argument, narrow ones packed into 32-bit
/// registers.
LogicalResult Emitter::emitInlineAsm(tt::ElementwiseInlineAsmOp op) {
  if (!target.supportsInlineAsm())
    return op.emitOpError("target assembly needs a GPU target");
  unsigned pack = op.getPackedElement();
  unsigned count = numValues(op->getResult(0).getType());
  llvm::SmallVector<Lanes> operands;
  for (mlir::Value operand : op.getArgs())
    operands.push_back(getAsLanes(operand, count));
  // How `pack` elements of a type travel: words of `perWord` elements.
  auto perWord = [&](llvm::Type *type) {
    return type->isPointerTy() ? 1u : std::max(1u, std::min(pack, 32 / type->getScalarSizeInBits()));
  };
  auto wordType = [&](llvm::Type *type) -> llvm::Type * {
    unsigned n = perWord(type);
    return n == 1 ? type : b.getIntNTy(n * type->getScalarSizeInBits());
  };
  llvm::SmallVector<llvm::Type *> resultWords;
  for (mlir::Type type : op.getResultTypes())
    for (unsigned i = 0; i < pack; i += perWord(scalarType(type)))
      resultWords.push_back(wordType(scalarType(type)));
  llvm::Type *returned =
      resultWords.size() == 1 ? resultWords.front() : llvm::StructType::get(b.getContext(), resultWords);
  llvm::SmallVector<Lanes> results(op->getNumResults());
  for (unsigned r = 0; r < count; r += pack) {
    llvm::SmallVector<V> words;
    llvm::SmallVector<llvm::Type *> types;
    for (Lanes &list : operands) {
      llvm::Type *type = list.front()->getType();
      unsigned n = perWord(type);
      for (unsigned i = 0; i < pack; i += n) {
        V word = list[std::min(r + i, count - 1)];
        if (n > 1) {
          V vector = llvm::PoisonValue::get(llvm::FixedVectorType::get(type, n));
          for (unsigned k = 0; k < n; ++k)
            vector = b.CreateInsertElement(vector, list[std::min(r + i + k, count - 1)], k);
          word = b.CreateBitCast(vector, wordType(type));
        }
        words.push_back(word);
        types.push_back(word->getType());
      }
    }
    auto *type = llvm::FunctionType::get(returned, types, false);
    if (auto error = llvm::InlineAsm::verify(type, op.getConstraints()))
      return op.emitOpError() << "has bad constraints: " << llvm::toString(std::move(error));
    if (auto reason = badAssembly(op.getAsmString(), resultWords.size() + words.size()))
      return op.emitOpError() << *reason;
    V call =
        b.CreateCall(type, llvm::InlineAsm::get(type, op.getAsmString(), op.getConstraints(), !op.getPure()), words);
    unsigned word = 0;
    for (auto [list, resultType] : llvm::zip_equal(results, op.getResultTypes())) {
      llvm::Type *element = scalarType(resultType);
      unsigned n = perWord(element);
      for (unsigned i = 0; i < pack; i += n, ++word) {
        V value = resultWords.size() == 1 ? call : b.CreateExtractValue(call, word);
        V vector = n > 1 ? b.CreateBitCast(value, llvm::FixedVectorType::get(element, n)) : nullptr;
        for (unsigned k = 0; k < n && list.size() < count; ++k)
          list.push_back(vector ? b.CreateExtractElement(vector, k) : value);
      }
    }
  }
  for (auto [result, list] : llvm::zip_equal(op->getResults(), results))
    set(result, std::move(list));
  return success();
}

} // namespace tessera::codegen
