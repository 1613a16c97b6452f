#include <tessera/error.h>

#include <fmt/format.h>

namespace tessera {

std::string_view name(stage s) noexcept {
  switch (s) {
  case stage::trace: return "trace";
  case stage::verify: return "verify";
  case stage::passes: return "passes";
  case stage::codegen: return "codegen";
  case stage::assemble: return "assemble";
  case stage::launch: return "launch";
  case stage::execute: return "execute";
  case stage::driver: return "driver";
  case stage::internal: return "internal";
  }
  return "unknown";
}

namespace {
std::string render(stage s, const std::string &message, const source_position &where) {
  if (where.line == 0)
    return fmt::format("{} error: {}", name(s), message);
  if (where.column == 0)
    return fmt::format("{}:{}: {} error: {}", where.file, where.line, name(s), message);
  return fmt::format("{}:{}:{}: {} error: {}", where.file, where.line, where.column, name(s), message);
}
} // namespace

error::error(tessera::stage s, std::string message, source_position where)
    : std::runtime_error(render(s, message, where)), stage_(s), message_(std::move(message)), where_(std::move(where)) {
}
error::~error() = default;

} // namespace tessera
