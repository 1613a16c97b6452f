#pragma once
// What the software pipeliner says to those who lower its loops.
#include "llvm/ADT/StringRef.h"

namespace tessera {

/// On a `tt.splat` of a condition: where that is false, an asynchronous copy with it in its mask is for a trip that the
/// loop does not have. Nobody reads what it would write, so it need not write zeros either.
inline constexpr llvm::StringLiteral kTripExists = "loop.trip_exists";

} // namespace tessera
