#pragma once
// Random loops of ttgir as the software pipeliner meets them.
#include <cstdint>
#include <string>

namespace tessera::testing {

/// A module with one function `f(data, index, trips, n, out)` (three pointers, two i32) for a target: a loop, or a loop
/// in a loop, with matrix products of loaded tiles, indirect and masked loads, stores, carried and exchanged values,
/// branches.
std::string randomLoop(unsigned seed);

} // namespace tessera::testing
