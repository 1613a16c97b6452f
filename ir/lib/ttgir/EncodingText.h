#pragma once
// Reading, printing and checking the parameters of encodings: for Encodings.cpp and MatrixEncodings.cpp.
#include "mlir/IR/DialectImplementation.h"
#include "tessera/ir/ttgir/Ttgir.h"

namespace tessera::ttg {

using namespace mlir;

constexpr unsigned maxRank = 8;
constexpr unsigned maxParameter = 1u << 20;
using EmitError = function_ref<InFlightDiagnostic()>;
using List = SmallVector<unsigned>;
using Ref = ArrayRef<unsigned>;

/// Reads `<{key = value, …}>`; every getter reports what is wrong at the attribute's place.
class DictReader {
public:
  explicit DictReader(AsmParser &parser) : parser(parser), loc(parser.getCurrentLocation()) {}

  ParseResult open(bool brackets = true) {
    if ((brackets && parser.parseLess()) || parser.parseAttribute(dict) || (brackets && parser.parseGreater()))
      return failure();
    return success();
  }
  bool has(StringRef key) const { return static_cast<bool>(dict.get(key)); }

  ParseResult boolean(StringRef key, bool &value) {
    auto flag = dyn_cast_or_null<BoolAttr>(get(key));
    if (!flag)
      return error(key, "must be true or false");
    value = flag.getValue();
    return success();
  }

  ParseResult number(StringRef key, unsigned &value) { return toNumber(get(key), key, value); }

  ParseResult list(StringRef key, List &values) {
    auto array = dyn_cast_or_null<ArrayAttr>(get(key));
    if (!array)
      return error(key, "must be a list of integers");
    return toList(array, key, values);
  }

  /// [[…], …] with vectors of one length, which sets `rank` if it is 0. An absent key is an empty list.
  ParseResult bases(StringRef key, unsigned &rank, List &values) {
    if (!has(key))
      return success();
    auto array = dyn_cast_or_null<ArrayAttr>(get(key));
    if (!array)
      return error(key, "must be a list of basis vectors");
    for (Attribute entry : array) {
      auto vector = dyn_cast<ArrayAttr>(entry);
      if (!vector || vector.empty())
        return error(key, "must be a list of basis vectors, each a list of integers");
      if (rank == 0)
        rank = vector.size();
      if (vector.size() != rank)
        return error(key, "has basis vectors of another length than the rest of the layout");
      if (toList(vector, key, values))
        return failure();
    }
    return success();
  }

  Attribute get(StringRef key) {
    used.push_back(key);
    return dict.get(key);
  }

  /// Reports a key that nothing asked for.
  ParseResult close() {
    for (NamedAttribute entry : dict)
      if (!llvm::is_contained(used, entry.getName().getValue()))
        return error(entry.getName(), "is not a parameter of this layout");
    return success();
  }

  ParseResult error(StringRef key, const Twine &message) {
    return parser.emitError(loc) << "'" << key << "' " << message;
  }
  EmitError emitter() {
    emit = [this] { return parser.emitError(loc); };
    return emit;
  }

private:
  ParseResult toNumber(Attribute attr, StringRef key, unsigned &value) {
    auto integer = dyn_cast_or_null<IntegerAttr>(attr);
    if (!integer || integer.getValue().ugt(maxParameter))
      return error(key, "must be an integer from 0 to " + Twine(maxParameter));
    value = integer.getValue().getZExtValue();
    return success();
  }
  ParseResult toList(ArrayAttr array, StringRef key, List &values) {
    for (Attribute entry : array)
      if (toNumber(entry, key, values.emplace_back()))
        return failure();
    return success();
  }

  AsmParser &parser;
  SMLoc loc;
  DictionaryAttr dict;
  SmallVector<StringRef> used;
  std::function<InFlightDiagnostic()> emit;
};

inline void printList(AsmPrinter &printer, StringRef key, ArrayRef<unsigned> values) {
  printer << key << " = [";
  llvm::interleaveComma(values, printer.getStream());
  printer << "]";
}

inline void printBases(AsmPrinter &printer, StringRef key, ArrayRef<unsigned> values, unsigned rank) {
  printer << key << " = [";
  for (size_t i = 0; i + rank <= values.size(); i += rank) {
    printer << (i ? ", [" : "[");
    llvm::interleaveComma(values.slice(i, rank), printer.getStream());
    printer << "]";
  }
  printer << "]";
}

inline void printCga(AsmPrinter &printer, ArrayRef<unsigned> bases, unsigned rank) {
  if (bases.empty())
    return;
  printer << ", ";
  printBases(printer, "CGALayout", bases, rank);
}

inline LogicalResult verifyPowersOfTwo(EmitError emitError, StringRef key, ArrayRef<unsigned> values, unsigned rank,
                                       uint64_t maxProduct) {
  if (values.size() != rank)
    return emitError() << key << " has " << values.size() << " entries where order has " << rank;
  uint64_t product = 1;
  for (unsigned value : values) {
    if (value == 0 || (value & (value - 1)))
      return emitError() << key << " must hold powers of two, not " << value;
    if ((product *= value) > maxProduct)
      return emitError() << "the product of " << key << " is more than " << maxProduct;
  }
  return success();
}

inline LogicalResult verifyOrder(EmitError emitError, ArrayRef<unsigned> order) {
  if (order.empty() || order.size() > maxRank)
    return emitError() << "a layout has 1 to " << maxRank << " dimensions, not " << order.size();
  llvm::SmallVector<bool> seen(order.size(), false);
  for (unsigned dim : order) {
    if (dim >= order.size() || seen[dim])
      return emitError() << "order must name every dimension from 0 to " << order.size() - 1 << " once";
    seen[dim] = true;
  }
  return success();
}

inline LogicalResult verifyCga(EmitError emitError, ArrayRef<unsigned> bases, unsigned rank) {
  if (bases.size() % rank || bases.size() / rank > 4)
    return emitError() << "CGALayout has at most 4 basis vectors of " << rank << " entries each";
  for (unsigned value : bases)
    if ((value & (value - 1)) || value > 8)
      return emitError() << "CGALayout holds 0 or powers of two up to 8, not " << value;
  return success();
}

/// A tensor with an encoding has the encoding's rank, and dimensions that are powers of two.
inline LogicalResult verifyTensor(ArrayRef<int64_t> shape, unsigned rank, EmitError emitError) {
  if (shape.size() != rank)
    return emitError() << "the encoding describes " << rank << " dimensions, the tensor has " << shape.size();
  uint64_t count = 1;
  for (int64_t size : shape) {
    if (size <= 0 || (size & (size - 1)) || size > tt::maxTileElements)
      return emitError() << "a tensor with a layout needs dimensions that are powers of two, at most "
                         << tt::maxTileElements;
    if ((count *= size) > static_cast<uint64_t>(tt::maxTileElements))
      return emitError() << "a tile has at most " << tt::maxTileElements << " elements";
  }
  return success();
}

/// Rank over F2 of basis vectors given as coordinates.
inline unsigned f2Rank(ArrayRef<unsigned> bases, unsigned rank) {
  using Row = std::array<uint32_t, maxRank>;
  SmallVector<Row> rows;
  for (size_t i = 0; i + rank <= bases.size(); i += rank) {
    Row row = {};
    llvm::copy(bases.slice(i, rank), row.begin());
    for (const Row &pivot : rows) {
      // Each pivot row's leading bit is cleared from the new row.
      unsigned dim = llvm::find_if(pivot, [](uint32_t x) { return x != 0; }) - pivot.begin();
      if (row[dim] & llvm::bit_floor(pivot[dim]))
        for (unsigned d = 0; d < maxRank; ++d)
          row[d] ^= pivot[d];
    }
    if (llvm::any_of(row, [](uint32_t x) { return x != 0; }))
      rows.push_back(row);
  }
  return rows.size();
}

/// The basis vectors reach every element of the smallest power-of-two box around them.
inline LogicalResult verifySurjective(EmitError emitError, ArrayRef<unsigned> bases, unsigned rank) {
  unsigned bits = 0;
  for (unsigned dim = 0; dim < rank; ++dim) {
    unsigned all = 0;
    for (size_t i = dim; i < bases.size(); i += rank)
      all |= bases[i];
    bits += llvm::bit_width(all);
  }
  if (f2Rank(bases, rank) != bits)
    return emitError() << "the basis vectors do not reach every element of the tensor they span";
  return success();
}

} // namespace tessera::ttg
