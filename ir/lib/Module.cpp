// The owned module: parsing, printing, lifetime.
#include "tessera/ir/Module.h"
#include "tessera/ir/Diagnostics.h"
#include "tessera/ir/Parse.h"
#include "tessera/ir/Register.h"

#include "llvm/Support/raw_ostream.h"

namespace tessera {

ir_module::ir_module(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
ir_module::ir_module(ir_module &&) noexcept = default;
ir_module &ir_module::operator=(ir_module &&) noexcept = default;
ir_module::~ir_module() = default;

std::string printModule(mlir::ModuleOp module, bool locations) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::OpPrintingFlags flags;
  if (locations)
    flags.enableDebugInfo();
  module->print(stream, flags);
  if (!text.ends_with('\n'))
    stream << '\n';
  return text;
}

std::string ir_module::str(bool locations) const { return printModule(*impl_->module, locations); }

ir_module parse_ir(std::string_view text, std::string_view name) {
  auto p = std::make_unique<ir_module::impl>();
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  p->context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  p->context->loadAllAvailableDialects();
  Diagnostics diagnostics(p->context.get());
  p->module = parseModule({text.data(), text.size()}, {name.data(), name.size()}, p->context.get());
  if (!p->module)
    diagnostics.raise(stage::verify, "the text is no module");
  return ir_module(std::move(p));
}

} // namespace tessera
