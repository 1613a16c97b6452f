// Mutated IR texts: whatever the text, parser, verifiers, folders and printer report errors or go on; they never crash.
// The seed is fixed, so a failure is the same every time; the text is in the failing case's message.
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "tessera/ir/Parse.h"
#include "tessera/ir/Register.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

using namespace mlir;

namespace {

std::vector<std::string> seeds() {
  std::vector<std::string> texts;
  std::vector<std::filesystem::path> files;
  for (const char *folder : {"ttir", "ttgir", "triton"})
    for (const auto &entry : std::filesystem::directory_iterator(std::filesystem::path(TESSERA_LIT_DIR) / folder))
      if (entry.is_regular_file())
        files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto &path : files) {
    std::ifstream file(path);
    std::string line, text;
    auto flush = [&] {
      if (!text.empty())
        texts.push_back(std::move(text));
      text.clear();
    };
    while (std::getline(file, line)) {
      if (line == "// -----")
        flush();
      else if (line.find("//") == line.npos)
        text += line + "\n";
    }
    flush();
  }
  return texts;
}

/// Texts are cut into words, numbers and single other characters; mutations replace, drop, repeat and swap these.
std::vector<std::string> tokens(const std::string &text) {
  std::vector<std::string> result;
  auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (isWord(text[i]))
      while (end < text.size() && isWord(text[end]))
        ++end;
    result.push_back(text.substr(i, end - i));
    i = end;
  }
  return result;
}

std::string mutate(const std::vector<std::string> &original, const std::vector<std::string> &other, std::mt19937 &random) {
  static const char *const words[] = {"0", "-1", "1", "2", "3", "8", "64", "1024", "1048577", "4294967296",
                                      "99999999999999999999", "f32", "i1", "i64", "f8E5M2", "index", "bf16", "tensor", "x",   "<",
                                      ">",     "[",    "]",     "{",   "}",         "(",       ")",     ",",      "?",       "*",
                                      "#smem", "none", "\"s\"", "!tt.ptr<f32>", "dense<0>", "array<i32>", "tensor<4xf32>", "vector<4xf32>"};
  std::vector<std::string> text = original;
  auto isNumber = [](const std::string &token) { return std::isdigit(static_cast<unsigned char>(token[0])); };
  for (unsigned n = 1 + random() % 2; n-- > 0 && !text.empty();) {
    size_t at = random() % text.size();
    // Often a number becomes another: such texts get past the parser.
    if (random() % 2) {
      for (unsigned tries = 0; tries < 40 && !isNumber(text[at]); ++tries)
        at = random() % text.size();
      text[at] = words[random() % 10];
      continue;
    }
    switch (random() % 6) {
    case 0: text[at] = words[random() % std::size(words)]; break;
    case 1: text.erase(text.begin() + at); break;
    case 2: text.insert(text.begin() + at, text[random() % text.size()]); break;
    case 3: std::swap(text[at], text[random() % text.size()]); break;
    case 4: text[at] = other[random() % other.size()]; break;
    case 5: text.erase(text.begin() + at, text.begin() + std::min(text.size(), at + random() % 12)); break;
    }
  }
  std::string joined;
  for (const std::string &token : text)
    joined += token;
  return joined;
}

} // namespace

TEST_CASE("no text crashes parser, verifier, folders or printer") {
  std::vector<std::vector<std::string>> originals;
  for (const std::string &text : seeds())
    originals.push_back(tokens(text));
  REQUIRE(originals.size() > 50);
  std::mt19937 random(20);
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
      std::string text = mutate(original, originals[random() % originals.size()], random);
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
