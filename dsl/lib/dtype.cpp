#include <tessera/dsl/dtype.h>

namespace tessera {

std::string_view name(dtype t) noexcept {
  constexpr std::string_view names[] = {"i1",         "i8",  "i16",  "i32",    "i64",    "u8",
                                        "u16",        "u32", "u64",  "f8e4m3", "f8e5m2", "f8e4m3fnuz",
                                        "f8e5m2fnuz", "f16", "bf16", "f32",    "f64"};
  return names[static_cast<std::size_t>(t)];
}

} // namespace tessera
