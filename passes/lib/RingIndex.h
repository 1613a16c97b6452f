#pragma once
// Which buffer of a ring an index names, as far as that can be told at compile time.
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Value.h"

#include <cstdint>
#include <optional>

namespace tessera {

/// A number modulo the size of a ring: `phase`, plus, if there is a loop, the number of its trips so far.
struct RingIndex {
  mlir::Operation *loop = nullptr;
  int64_t phase = 0;
};

/// Understands constants and the counters that the pipeliner makes: values carried by an scf.for that start from a
/// constant and go on by `i + 1 >= size ? 0 : i + 1` (or a remainder) in each trip.
std::optional<RingIndex> ringIndexOf(mlir::Value index, int64_t size);

} // namespace tessera
