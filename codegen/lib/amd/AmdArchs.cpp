#include "../common/Vendors.h"

namespace tessera::codegen {

constexpr unsigned KiB = 1024;
static constexpr ArchFacts archs[] = {
    {"gfx90a", 64, 64 * KiB, "hip:gfx90a"},   {"gfx942", 64, 64 * KiB, "hip:gfx942"},
    {"gfx950", 64, 160 * KiB, "hip:gfx950"},  {"gfx1100", 32, 64 * KiB, "hip:gfx1100"},
    {"gfx1201", 32, 64 * KiB, "hip:gfx1201"}, {"gfx1250", 32, 320 * KiB, "hip:gfx1250"}};

/// ocml: __ocml_tanh_f32 and __ocml_tanh_f64, __ocml_native_exp_f32.
static std::optional<LibraryFunction> libraryFunction(std::string_view symbol, unsigned bits) {
  constexpr std::string_view prefix = "__ocml_", fast = "native_";
  std::string suffix = "_f" + std::to_string(bits);
  if (!symbol.starts_with(prefix) || !symbol.ends_with(suffix))
    return std::nullopt;
  symbol.remove_prefix(prefix.size());
  symbol.remove_suffix(suffix.size());
  bool precise = !symbol.starts_with(fast);
  symbol.remove_prefix(precise ? 0 : fast.size());
  return LibraryFunction{symbol, precise};
}

extern const Vendor amdVendor;
constexpr Vendor amdVendor{target_kind::hip, "AMD", "hip", archs, {"amdgcn", "hsaco"}, 2, "__ocml_", libraryFunction};

} // namespace tessera::codegen
