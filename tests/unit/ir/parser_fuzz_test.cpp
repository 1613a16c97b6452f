// Mutated IR texts: whatever the text, parser, verifiers, folders and printer report errors or go on; they never crash.
// The seed is fixed, so a failure is the same every time; the text is in the failing case's message.
#include "../../fuzz/mutate.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "tessera/ir/Parse.h"
#include "tessera/ir/Register.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include <doctest/doctest.h>

#include <cstdlib>

using namespace mlir;

TEST_CASE("no text crashes parser, verifier, folders or printer") {
  std::vector<tessera::fuzz::tokens> originals;
  for (const std::string &text : tessera::fuzz::read_texts(TESSERA_LIT_DIR, {"ttir", "ttgir", "triton"}))
    originals.push_back(tessera::fuzz::split(text));
  REQUIRE(originals.size() > 50);
  const char *seed = std::getenv("TESSERA_FUZZ_SEED");
  std::mt19937 random(seed ? std::atoi(seed) : 20);
  const unsigned rounds = std::getenv("TESSERA_FUZZ_ROUNDS") ? std::atoi(std::getenv("TESSERA_FUZZ_ROUNDS")) : 100;
  unsigned accepted = 0, refused = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    MLIRContext context(MLIRContext::Threading::DISABLED);
    DialectRegistry registry;
    tessera::registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    unsigned errors = 0;
    context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) { errors += diagnostic.getSeverity() == DiagnosticSeverity::Error; });
    for (const auto &original : originals) {
      std::string text = tessera::fuzz::mutate(original, originals[random() % originals.size()], random);
      if (const char *path = std::getenv("TESSERA_FUZZ_LAST"))
        std::ofstream(path) << text;
      errors = 0;
      OwningOpRef<ModuleOp> module = tessera::parseModule(text, "fuzz", &context);
      if (!module) {
        ++refused;
        INFO(text);
        CHECK(errors > 0); // a refusal says why
        continue;
      }
      ++accepted;
      PassManager passes(&context);
      passes.addPass(createCanonicalizerPass());
      passes.addPass(createCSEPass());
      bool simplified = succeeded(passes.run(*module));
      INFO(text);
      CHECK(simplified); // what verifies still verifies
      std::string printed;
      llvm::raw_string_ostream stream(printed);
      module->print(stream);
      bool parsedAgain = static_cast<bool>(tessera::parseModule(printed, "printed", &context));
      INFO(printed);
      CHECK(parsedAgain);
    }
  }
  MESSAGE(accepted << " texts accepted, " << refused << " refused");
  // Some mutants of both kinds, or the mutations are of no use.
  CHECK(accepted > rounds);
  CHECK(refused > rounds);
}
