#pragma once
// A module of tile IR as the outside sees it: text in, text out. Plain C++: safe in public headers.
#include <memory>
#include <string>
#include <string_view>

#include <tessera/export.h>

namespace tessera {

/// A module of ttir or ttgir, owned together with its MLIRContext; made by the tracer or by parse_ir.
class TESSERA_API ir_module {
public:
  struct impl;
  explicit ir_module(std::unique_ptr<impl> p);
  ir_module(ir_module &&) noexcept;
  ir_module &operator=(ir_module &&) noexcept;
  ~ir_module();
  /// The module's text, with locations when `locations`.
  [[nodiscard]] std::string str(bool locations = false) const;
  [[nodiscard]] impl &get() const { return *impl_; }

private:
  std::unique_ptr<impl> impl_;
};

/// Parses IR text (ttir or ttgir). Throws tessera::error (stage verify) with the position.
TESSERA_API ir_module parse_ir(std::string_view text, std::string_view name = "<text>");

} // namespace tessera
