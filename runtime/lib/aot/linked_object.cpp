// cpu/loader.h for kernels compiled ahead of time: there is nothing to load.
#include "../cpu/loader.h"
#include "linked_function.h"

#include <cstring>

namespace tessera::cpu {

struct loaded_object::library {};

loaded_object::loaded_object(std::string_view object, const std::string &symbol) : symbol_(symbol) {
  linked_function f;
  if (object.size() != sizeof f)
    throw error(stage::launch, "kernel '" + symbol + "' is no code that was linked into this program");
  std::memcpy(&f, object.data(), sizeof f);
  entry_ = f.entry, has_barriers_ = f.has_barriers;
}
loaded_object::~loaded_object() = default;

source_position loaded_object::position(std::uint64_t) const { return {}; } // a debugger knows

} // namespace tessera::cpu
