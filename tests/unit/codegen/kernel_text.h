#pragma once
// Kernels as text, compiled and run on matrices of small integers.
#include <bit>
#include <string>
#include <string_view>

#include "small_floats.h"

#include <fmt/format.h>
#include <tessera/codegen/compile.h>
#include <tessera/runtime/cpu_executor.h>

namespace tessera::test {

inline compiled_kernel compile_text(const std::string &text, const std::string &t, const char *last = "") {
  ir_module module = parse_ir(text, "kernel.ttir");
  return compile(module, parse_target(t), {}, last);
}

template <class... T> void launch(const compiled_kernel &kernel, unsigned programs, T... args) {
  const void *pointers[] = {&args...};
  cpu_kernel::load(kernel)->run({programs, 1, 1}, pointers);
}

/// A pointer tile over a row-major matrix in the layout #NAME; values get the prefix NAME.
inline std::string pointers(const char *name, const char *argument, const char *type, int rows, int columns) {
  return fmt::format(R"(
    %{0}r = tt.make_range {{start = 0 : i32, end = {3} : i32}} : tensor<{3}xi32, #ttg.slice<{{dim = 1, parent = #{0}}}>>
    %{0}r1 = tt.expand_dims %{0}r {{axis = 1 : i32}} : tensor<{3}xi32, #ttg.slice<{{dim = 1, parent = #{0}}}>> -> tensor<{3}x1xi32, #{0}>
    %{0}w = arith.constant dense<{4}> : tensor<{3}x1xi32, #{0}>
    %{0}r2 = arith.muli %{0}r1, %{0}w : tensor<{3}x1xi32, #{0}>
    %{0}r3 = tt.broadcast %{0}r2 : tensor<{3}x1xi32, #{0}> -> tensor<{3}x{4}xi32, #{0}>
    %{0}c = tt.make_range {{start = 0 : i32, end = {4} : i32}} : tensor<{4}xi32, #ttg.slice<{{dim = 0, parent = #{0}}}>>
    %{0}c1 = tt.expand_dims %{0}c {{axis = 0 : i32}} : tensor<{4}xi32, #ttg.slice<{{dim = 0, parent = #{0}}}>> -> tensor<1x{4}xi32, #{0}>
    %{0}c2 = tt.broadcast %{0}c1 : tensor<1x{4}xi32, #{0}> -> tensor<{3}x{4}xi32, #{0}>
    %{0}i = arith.addi %{0}r3, %{0}c2 : tensor<{3}x{4}xi32, #{0}>
    %{0}s = tt.splat {1} : !tt.ptr<{2}> -> tensor<{3}x{4}x!tt.ptr<{2}>, #{0}>
    %{0}p = tt.addptr %{0}s, %{0}i : tensor<{3}x{4}x!tt.ptr<{2}>, #{0}>, tensor<{3}x{4}xi32, #{0}>)",
                     name, argument, type, rows, columns);
}

inline std::uint64_t encoded(std::string_view type, int value) { // small integers are exact in every type
  auto bits = std::bit_cast<std::uint32_t>(float(value));
  return type == "f16"          ? encode_small(value, 5, 10)
         : type == "bf16"       ? bits >> 16
         : type == "f8E4M3FN"   ? encode_small(value, 4, 3)
         : type == "f8E5M2"     ? encode_small(value, 5, 2)
         : type == "f8E4M3FNUZ" ? encode_small(2 * value, 4, 3) // the same bits mean half as much
         : type == "f8E5M2FNUZ" ? encode_small(2 * value, 5, 2)
         : type == "f32"        ? bits
         : type == "f64"        ? std::bit_cast<std::uint64_t>(double(value))
                                : std::uint64_t(value);
}
inline std::size_t bytes_of(std::string_view type) {
  return type == "f64" ? 8 : type == "f32" || type == "i32" ? 4 : type == "f16" || type == "bf16" ? 2 : 1;
}

} // namespace tessera::test
