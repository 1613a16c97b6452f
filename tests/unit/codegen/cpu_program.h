#pragma once
// C++ functions in the place of generated code: the executor without the compiler.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>

#include "cpu/worker.h"

#include <tessera/codegen/cpu_abi.h>

namespace tessera::test {

inline thread_local std::function<void(tessera_cpu_context &)> cpu_program;
inline void cpu_entry(const void *const *, tessera_cpu_context *ctx) { cpu_program(*ctx); }

/// Runs `body` as each warp of one program and says how it ended.
inline cpu::failure run_program(std::uint32_t warps, std::function<void(tessera_cpu_context &)> body,
                                std::uint32_t shared_bytes = 1024) {
  cpu::fault_guard guard;
  cpu_program = std::move(body);
  cpu::program_code code{cpu_entry, warps, shared_bytes, true, true};
  const std::uint32_t grid[3] = {1, 1, 1}, program[3] = {0, 0, 0};
  cpu::worker &worker = cpu::worker::current();
  worker.begin(code, nullptr, grid);
  bool passed = worker.run(program);
  CHECK(passed == (worker.error().why == cpu::failure::reason::none));
  return worker.error();
}

inline constexpr tessera_cpu_access word{32, 4, 1, 4, 0, {"kernel.cpp", 7, 3}};
inline constexpr tessera_cpu_access other_word{32, 4, 1, 4, 0, {"kernel.cpp", 9, 1}};

inline void store(tessera_cpu_context &ctx, std::uint32_t lane, std::uint32_t offset, std::uint32_t value,
                  std::uint32_t tag = ~0u) {
  std::uint32_t offsets[32], tags[32], data[32];
  offsets[lane] = offset;
  tags[lane] = tag;
  data[lane] = value;
  tessera_cpu_shared_store(&ctx, &word, std::uint64_t(1) << lane, offsets, tags, data);
}

inline std::uint32_t load(tessera_cpu_context &ctx, std::uint32_t lane, std::uint32_t offset, std::uint32_t tag = ~0u) {
  std::uint32_t offsets[32], tags[32], data[32];
  offsets[lane] = offset;
  tags[lane] = tag;
  tessera_cpu_shared_load(&ctx, &other_word, std::uint64_t(1) << lane, offsets, tags, data);
  return data[lane];
}

} // namespace tessera::test
