#pragma once
// CPU code that the system's linker put into the program.
#include "../cpu/worker.h"

namespace tessera::cpu {

/// What stands for the object file of a kernel compiled ahead of time: where its code is.
struct linked_function {
  entry_point entry;
  bool has_barriers;
};

} // namespace tessera::cpu
