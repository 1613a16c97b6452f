#pragma once
#include <string_view>

#include <tessera/export.h>

namespace tessera {

/// Of the library the program runs with, as "0.1.0".
TESSERA_API std::string_view version() noexcept;

} // namespace tessera
