#pragma once
// TESSERA_DUMP and --dump: writes the stages of kernels as they are compiled.
#include <tessera/codegen/compile.h>

namespace tessera::detail {

/// Writes the stages asked for of `kernel`, from its `first`-th stage on, and when `last` a line about registers and
/// memory.
void dump(const compiled_kernel &kernel, std::size_t first, bool last);

} // namespace tessera::detail
