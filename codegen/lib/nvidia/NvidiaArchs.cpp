#include "../common/Vendors.h"

namespace tessera::codegen {

constexpr unsigned KiB = 1024;
// sm_90 without the "a" has no wgmma: as the chip before.
static constexpr ArchFacts archs[] = {
    {"sm_80", 32, 163 * KiB, "cuda:80"},   {"sm_86", 32, 99 * KiB, "cuda:86"},    {"sm_87", 32, 163 * KiB, "cuda:87"},
    {"sm_89", 32, 99 * KiB, "cuda:89"},    {"sm_90", 32, 227 * KiB, "cuda:89"},   {"sm_90a", 32, 227 * KiB, "cuda:90"},
    {"sm_100", 32, 227 * KiB, "cuda:100"}, {"sm_100a", 32, 227 * KiB, "cuda:100"}, {"sm_103a", 32, 227 * KiB, "cuda:103"},
    {"sm_120", 32, 99 * KiB, "cuda:120"},  {"sm_120a", 32, 99 * KiB, "cuda:120"}, {"sm_121a", 32, 99 * KiB, "cuda:121"}};

/// libdevice: __nv_tanhf and __nv_tanh, __nv_fast_expf.
static std::optional<LibraryFunction> libraryFunction(std::string_view symbol, unsigned bits) {
  constexpr std::string_view prefix = "__nv_", fast = "fast_";
  if (!symbol.starts_with(prefix) || (bits == 32 && !symbol.ends_with('f')) || (bits != 32 && bits != 64))
    return std::nullopt;
  symbol.remove_prefix(prefix.size());
  symbol.remove_suffix(bits == 32);
  bool precise = !symbol.starts_with(fast);
  symbol.remove_prefix(precise ? 0 : fast.size());
  return LibraryFunction{symbol, precise};
}

extern const Vendor nvidiaVendor;
constexpr Vendor nvidiaVendor{target_kind::cuda, "NVIDIA", "cuda", archs, {"ptx", "cubin"}, 3, "__nv_", libraryFunction};

} // namespace tessera::codegen
