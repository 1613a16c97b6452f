// The shared library's own translation unit: everything else comes from the stages' archives.
#include <tessera/version.h>

namespace tessera {

std::string_view version() noexcept { return TESSERA_VERSION; }

} // namespace tessera
