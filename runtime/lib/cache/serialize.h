#pragma once
// A compiled kernel as bytes, for the cache and for kernels embedded in programs.
#include <optional>
#include <string>
#include <string_view>

#include <tessera/codegen/compile.h>

namespace tessera::detail {

/// All of `k` but where it came from.
std::string serialize(const compiled_kernel &k);
/// Nothing where the bytes are not what serialize gave; never reads outside them.
std::optional<compiled_kernel> deserialize(std::string_view bytes);

} // namespace tessera::detail
