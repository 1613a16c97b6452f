#pragma once
// An object file made by the CPU target, linked into this process.
#include <memory>
#include <string>
#include <string_view>

#include "worker.h"

#include <tessera/error.h>

namespace tessera::cpu {

class loaded_object {
public:
  /// Links `object`, resolving the helpers of cpu_abi.h and the math library. Throws tessera::error (launch).
  loaded_object(std::string_view object, const std::string &symbol);
  ~loaded_object();
  loaded_object(const loaded_object &) = delete;
  loaded_object &operator=(const loaded_object &) = delete;

  [[nodiscard]] entry_point entry() const { return entry_; }
  [[nodiscard]] bool has_barriers() const { return has_barriers_; }
  /// The user's source line an instruction came from, if it is this object's and was compiled with line information.
  [[nodiscard]] source_position position(std::uint64_t instruction) const;

private:
  struct library;
  std::string symbol_, bytes_;
  std::unique_ptr<library> library_;
  entry_point entry_ = nullptr;
  bool has_barriers_ = false;
};

} // namespace tessera::cpu
