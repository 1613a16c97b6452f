#pragma once
// The one exception type of the library: a stage, the user's source location and a sentence that says what to do.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <tessera/export.h>

namespace tessera {

/// The stage that refused the work.
enum class stage : std::uint8_t {
  trace,     ///< building the tile IR from the user's lambda: the user's mistake
  verify,    ///< the IR is malformed (parser, verifier)
  passes,    ///< a rewrite failed
  codegen,   ///< lowering to LLVM IR or machine code
  assemble,  ///< ptxas, linker, driver's JIT
  launch,    ///< arguments, grid, device limits
  execute,   ///< reported while or after a kernel ran (faults, emulation checker, device_assert)
  driver,    ///< any other failure of a driver's API
  internal,  ///< a bug of this library
};

/// "trace", "verify", …
TESSERA_API std::string_view name(stage s) noexcept;

/// A position in the user's C++ source; line 0 means unknown.
struct source_position {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

/// Thrown for everything that goes wrong. `what()` is "file:line:column: stage error: message".
class TESSERA_API error : public std::runtime_error {
public:
  error(tessera::stage s, std::string message, source_position where = {});
  ~error() override;

  [[nodiscard]] tessera::stage stage() const noexcept { return stage_; }
  /// The sentence alone, without the location and stage.
  [[nodiscard]] const std::string &message() const noexcept { return message_; }
  [[nodiscard]] const source_position &where() const noexcept { return where_; }

private:
  tessera::stage stage_;
  std::string message_;
  source_position where_;
};

} // namespace tessera
