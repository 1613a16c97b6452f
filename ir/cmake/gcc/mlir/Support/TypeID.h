#pragma once
// MLIR names an op trait's identity by __PRETTY_FUNCTION__ of a function-local class, which GCC and Clang spell
// differently: "Trait<mlir::TypeID::get<Trait>()::Empty>" and "Trait<Empty>". The packaged MLIR is built by Clang, so code
// compiled by GCC would see none of its traits (is it a terminator, a symbol table, isolated from above?), and MLIR none of
// ours. Here GCC's name is replaced by Clang's. This header stands in front of MLIR's own in the include path.
#include_next <mlir/Support/TypeID.h>

#if defined(__GNUC__) && !defined(__clang__)
#include <string>
#include <string_view>
#include <type_traits>

namespace mlir::detail {

/// Whether T is the class `Empty` local to TypeID::get.
template <typename T> consteval bool isTypeIDEmpty() {
  constexpr std::string_view name = __PRETTY_FUNCTION__;
  return name.find("T = mlir::TypeID::get") != name.npos && name.ends_with("::Empty]");
}

template <template <typename> class Trait, typename E>
class TypeIDResolver<Trait<E>, std::enable_if_t<std::is_empty_v<E> && isTypeIDEmpty<E>()>> : public FallbackTypeIDResolver {
public:
  static TypeID resolveTypeID() {
    // The registry keeps a reference to the name.
    static const std::string *name = [] {
      llvm::StringRef own = llvm::getTypeName<Trait<E>>();
      return new std::string(own.substr(0, own.find("<mlir::TypeID::get")).str() + "<Empty>");
    }();
    static TypeID id = registerImplicitTypeID(*name);
    return id;
  }
};

} // namespace mlir::detail
#endif
