#pragma once
// Kernels as text, compiled and run on matrices of small integers.
#include <bit>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

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

/// `text` with every KEY of a pair replaced by its value, in the order of the pairs.
inline std::string with(std::string text, std::initializer_list<std::pair<std::string_view, std::string>> words) {
  for (auto &[key, value] : words)
    for (std::size_t at = 0; (at = text.find(key, at)) != text.npos; at += value.size())
      text.replace(at, key.size(), value);
  return text;
}

/// %NAMEp: a pointer tile over the row-major matrix behind `argument`. All values get the prefix NAME. Their layout is
/// #NAME, or with `layouts` false none.
inline std::string pointers(const char *name, const char *argument, const char *type, int rows, int columns,
                            bool layouts = true) {
  auto slice = [&](int dim) {
    return layouts ? fmt::format(", #ttg.slice<{{dim = {}, parent = #{}}}>", dim, name) : std::string();
  };
  return with(R"(
    %$r = tt.make_range {start = 0 : i32, end = ROWS : i32} : tensor<ROWSxi32 OF_ROWS>
    %$r1 = tt.expand_dims %$r {axis = 1 : i32} : tensor<ROWSxi32 OF_ROWS> -> tensor<ROWSx1xi32 LAYOUT>
    %$w = arith.constant dense<COLUMNS> : tensor<ROWSx1xi32 LAYOUT>
    %$r2 = arith.muli %$r1, %$w : tensor<ROWSx1xi32 LAYOUT>
    %$r3 = tt.broadcast %$r2 : tensor<ROWSx1xi32 LAYOUT> -> tensor<ROWSxCOLUMNSxi32 LAYOUT>
    %$c = tt.make_range {start = 0 : i32, end = COLUMNS : i32} : tensor<COLUMNSxi32 OF_COLUMNS>
    %$c1 = tt.expand_dims %$c {axis = 0 : i32} : tensor<COLUMNSxi32 OF_COLUMNS> -> tensor<1xCOLUMNSxi32 LAYOUT>
    %$c2 = tt.broadcast %$c1 : tensor<1xCOLUMNSxi32 LAYOUT> -> tensor<ROWSxCOLUMNSxi32 LAYOUT>
    %$i = arith.addi %$r3, %$c2 : tensor<ROWSxCOLUMNSxi32 LAYOUT>
    %$s = tt.splat ARGUMENT : !tt.ptr<TYPE> -> tensor<ROWSxCOLUMNSx!tt.ptr<TYPE> LAYOUT>
    %$p = tt.addptr %$s, %$i : tensor<ROWSxCOLUMNSx!tt.ptr<TYPE> LAYOUT>, tensor<ROWSxCOLUMNSxi32 LAYOUT>)",
              {{" OF_ROWS", slice(1)},
               {" OF_COLUMNS", slice(0)},
               {" LAYOUT", layouts ? fmt::format(", #{}", name) : ""},
               {"ROWS", std::to_string(rows)},
               {"COLUMNS", std::to_string(columns)},
               {"ARGUMENT", argument},
               {"TYPE", type},
               {"$", name}});
}

/// %NAMEp: `size` pointers from `argument` on.
inline std::string pointers(const char *name, const char *argument, const char *type, int size) {
  return with(R"(
    %$r = tt.make_range {start = 0 : i32, end = SIZE : i32} : tensor<SIZExi32>
    %$s = tt.splat ARGUMENT : !tt.ptr<TYPE> -> tensor<SIZEx!tt.ptr<TYPE>>
    %$p = tt.addptr %$s, %$r : tensor<SIZEx!tt.ptr<TYPE>>, tensor<SIZExi32>)",
              {{"SIZE", std::to_string(size)}, {"ARGUMENT", argument}, {"TYPE", type}, {"$", name}});
}

/// `result` = the reduction of `value`, of type `from`, along `axis` by `op` ("arith.addi").
inline std::string reduction(const char *result, const char *value, int axis, const char *op, const char *element,
                             const char *from, const char *to) {
  return with(R"(
    RESULT = "tt.reduce"(VALUE) <{axis = AXIS : i32}> ({
    ^bb0(%l: ELEMENT, %r: ELEMENT):
      %both = OP %l, %r : ELEMENT
      tt.reduce.return %both : ELEMENT
    }) : (FROM) -> TO)",
              {{"RESULT", result},
               {"VALUE", value},
               {"AXIS", std::to_string(axis)},
               {"OP", op},
               {"ELEMENT", element},
               {"FROM", from},
               {"TO", to}});
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
