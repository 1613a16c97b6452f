// Mutated IR texts through everything: parse, verify, both pipelines, lowering, LLVM. Whatever the text, the compiler
// makes code or throws tessera::error with a sentence of its own; it never crashes, hangs, or makes invalid LLVM IR.
//   TESSERA_FUZZ_SEED, TESSERA_FUZZ_ROUNDS  other texts, more texts
//   TESSERA_FUZZ_LAST=FILE                  the text being compiled, for what takes the process down
//   TESSERA_FUZZ_STAGE=STAGE                how far texts go (llir); "machine": to ptx or obj
//   TESSERA_FUZZ_TEXTS=FOLDER               more texts to start from
#include "mutate.h"

#include <chrono>
#include <cstdlib>
#include <doctest/doctest.h>

#include <tessera/codegen/compile.h>
#include <tessera/error.h>

using namespace tessera;

namespace {

struct outcome {
  bool compiled = false;
  std::string complaint; ///< why the compiler's answer is none
};

/// Compiles `text` as far as `last_stage`, "" for machine code.
outcome compile_text(const std::string &text, const target &t, std::string_view last_stage) {
  try {
    ir_module module = parse_ir(text, "fuzz");
    (void)compile(module, t, {}, last_stage);
    return {true, {}};
  } catch (const error &e) {
    if (e.stage() == stage::internal)
      return {false, e.what()};
    // The sentences for diagnostics that nobody emitted.
    for (std::string_view nothing :
         {"a pass failed without saying why", "the kernel cannot be lowered", "the text is no module"})
      if (e.message().empty() || e.message() == nothing)
        return {false, std::string("an error without a reason: ") + e.what()};
    return {};
  } catch (const std::exception &e) {
    return {false, std::string("another exception: ") + e.what()};
  }
}

unsigned number(const char *name, unsigned otherwise) {
  const char *text = std::getenv(name);
  return text ? static_cast<unsigned>(std::atoi(text)) : otherwise;
}

} // namespace

TEST_CASE("no text takes the compiler down") {
  const target targets[] = {parse_target("cuda:sm_90a"), parse_target("cuda:sm_80"), parse_target("cpu"),
                            parse_target("cpu:emulate=sm_90a"), parse_target("cpu:emulate=gfx942")};
  const char *stage_text = std::getenv("TESSERA_FUZZ_STAGE");
  const std::string last_stage = stage_text ? stage_text : "llir";
  auto stage_for = [&](const target &t) {
    if (last_stage == "machine")
      return t.kind == target_kind::cuda ? "ptx" : "obj";
    return last_stage.c_str();
  };
  auto modules = fuzz::read_texts(TESSERA_LIT_DIR, {"ttir", "ttgir", "triton", "passes", "codegen"});
  if (const char *folder = std::getenv("TESSERA_FUZZ_TEXTS"))
    for (std::string &text : fuzz::read_texts(folder, {"."}))
      modules.push_back(std::move(text));
  // Texts of tests that expect an error are no use: most of their mutants end where they do.
  std::vector<fuzz::tokens> originals;
  for (const std::string &module : modules)
    for (const std::string &text : fuzz::one_kernel_each(module))
      if (std::any_of(std::begin(targets), std::end(targets),
                      [&](const target &t) { return compile_text(text, t, "ttgir").compiled; }))
        originals.push_back(fuzz::split(text));
  REQUIRE(originals.size() > 40);

  std::mt19937 random(number("TESSERA_FUZZ_SEED", 7));
  const char *last = std::getenv("TESSERA_FUZZ_LAST");
  const unsigned rounds = number("TESSERA_FUZZ_ROUNDS", 40);
  unsigned compiled = 0, refused = 0;
  for (unsigned round = 0; round < rounds; ++round)
    for (const auto &original : originals) {
      const std::string text = fuzz::mutate(original, originals[random() % originals.size()], random);
      const target &t = targets[random() % std::size(targets)];
      INFO("target " << t.str() << ", round " << round << "\n" << text);
      if (last)
        std::ofstream(last) << "// " << t.str() << "\n" << text;
      auto start = std::chrono::steady_clock::now();
      outcome result = compile_text(text, t, stage_for(t));
      std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      CHECK_MESSAGE(result.complaint.empty(), result.complaint);
      CHECK(spent.count() < 60); // hangs, not speed: a tile of a million elements takes long
      ++(result.compiled ? compiled : refused);
    }
  MESSAGE(originals.size() << " originals; " << compiled << " mutants compiled, " << refused << " refused");
  CHECK(compiled > rounds);
  CHECK(refused > rounds);
}
