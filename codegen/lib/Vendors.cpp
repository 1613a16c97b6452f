#include "common/Vendors.h"

namespace tessera::codegen {

extern const Vendor nvidiaVendor, amdVendor;

std::span<const Vendor *const> vendors() {
  static constexpr const Vendor *all[] = {&nvidiaVendor, &amdVendor};
  return all;
}

} // namespace tessera::codegen
