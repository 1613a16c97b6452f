#pragma once
// Whose GPUs there is code for, and their architectures: facts that need no LLVM. Each vendor's are in its folder.
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tessera/codegen/target.h>

namespace tessera::codegen {

struct ArchFacts {
  std::string_view name;
  unsigned warpSize;
  unsigned sharedBytes;   ///< that one program may use
  std::string_view model; ///< what `ttg.target` calls it: all that the passes know
};

/// A function of a vendor's math library, by its usual name: "tanh".
struct LibraryFunction {
  std::string_view name;
  bool precise = true;
};

struct Vendor {
  target_kind kind;
  std::string_view name, prefix; ///< "NVIDIA", and "cuda" as in "cuda:sm_90a"
  std::span<const ArchFacts> archs;
  std::array<std::string_view, 2> stages; ///< text and binary behind llir
  int numStages;                          ///< of a pipelined loop, where the options do not say
  std::string_view libraryPrefix;         ///< what all symbols of the vendor's math library begin with
  /// What `symbol` of the vendor's math library computes for floats of `bits`; nothing where it is none of its symbols.
  std::optional<LibraryFunction> (*libraryFunction)(std::string_view symbol, unsigned bits);
};

std::span<const Vendor *const> vendors(); ///< lib/Vendors.cpp
const Vendor *vendorOf(target_kind kind); ///< nullptr: the CPU
const Vendor *vendorOf(std::string_view arch, const ArchFacts **facts = nullptr);
/// The text of `ttg.target`.
std::string modelOf(const target &t);

} // namespace tessera::codegen
