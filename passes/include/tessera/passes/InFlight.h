#pragma once
// Registers that an asynchronous product (`ttng.warp_group_dot`) still reads.
#include "tessera/ir/ttng/Ttng.h"

namespace tessera {

/// Whether the registers that hold `dot`'s A may be written again before a `warp_group_dot_wait` says that the product
/// is done. A register is written wherever the ops run that its value is computed from: the last of these with effects
/// (a load, a wait), or the end of a trip for what a loop carries. Never true of a product that waits for itself, or
/// whose A is in shared memory.
bool overwritesOperandInFlight(ttng::WarpGroupDotOp dot);

} // namespace tessera
