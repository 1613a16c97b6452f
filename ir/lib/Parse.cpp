// Reading IR text, and refusing the few texts that crash MLIR's parser.
#include "tessera/ir/Parse.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"

#include <array>

using namespace mlir;

namespace tessera {

/// Where `array<index` stands in the text outside strings and comments: MLIR 22 takes the width of the element type of
/// a dense array, and an index has none.
static std::optional<size_t> findArrayOfIndex(StringRef text) {
  if (!text.contains("array"))
    return std::nullopt;
  std::array<StringRef, 2> before; // the two tokens before the current one
  for (size_t i = 0; i < text.size();) {
    size_t start = i;
    char c = text[i];
    if (llvm::isSpace(c)) {
      ++i;
      continue;
    }
    if (text.substr(i).starts_with("//")) {
      i = text.find('\n', i);
      continue; // npos ends the loop
    }
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\')
          ++i;
      ++i;
    } else if (llvm::isAlnum(c) || c == '_') {
      while (i < text.size() && (llvm::isAlnum(text[i]) || text[i] == '_' || text[i] == '.' || text[i] == '$'))
        ++i;
    } else {
      ++i;
    }
    StringRef token = text.slice(start, i);
    if (token == "index" && before[0] == "array" && before[1] == "<")
      return start;
    before = {before[1], token};
  }
  return std::nullopt;
}

LogicalResult checkParsable(StringRef text, StringRef name, MLIRContext *context) {
  std::optional<size_t> at = findArrayOfIndex(text);
  if (!at)
    return success();
  StringRef upTo = text.take_front(*at);
  unsigned line = upTo.count('\n') + 1, column = *at - (upTo.rfind('\n') + 1) + 1; // npos + 1 is 0
  return emitError(FileLineColLoc::get(context, name, line, column))
         << "an array attribute holds integers or floats, not indices";
}

OwningOpRef<ModuleOp> parseModule(StringRef text, StringRef name, MLIRContext *context) {
  if (failed(checkParsable(text, name, context)))
    return {};
  return parseSourceString<ModuleOp>(text, ParserConfig(context), name);
}

} // namespace tessera
