#ifndef TESSERA_TTGIR_TYPES
#define TESSERA_TTGIR_TYPES

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "tessera/ir/ttgir/TtgirDialect.td"

def TTG_MemDescType : TypeDef<TTG_Dialect, "MemDesc", [ShapedTypeInterface]> {
  let mnemonic = "memdesc";
  let summary = "a tile in shared memory";
  let description = [{
    The encoding describes the last dimensions; one more leading dimension counts buffers. `allocShape` is the shape of
    the allocation this is a view of.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType, "::mlir::Attribute":$encoding,
                    "::mlir::Attribute":$memorySpace, "bool":$mutableMemory, ArrayRefParameter<"int64_t">:$allocShape);
  let builders = [TypeBuilderWithInferredContext<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
      "::mlir::Attribute":$encoding, "::mlir::Attribute":$memorySpace, CArg<"bool", "false">:$mutableMemory), [{
    return $_get(elementType.getContext(), shape, elementType, encoding, memorySpace, mutableMemory, shape);
  }]>];
  let extraClassDeclaration = [{
    MemDescType cloneWith(std::optional<::llvm::ArrayRef<int64_t>> shape, ::mlir::Type elementType) const;
    bool hasRank() const { return true; }
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def TTG_AsyncTokenType : TypeDef<TTG_Dialect, "AsyncToken"> {
  let mnemonic = "async.token";
  let summary = "says that an asynchronous operation has been started, or waited for; only an order, no data";
}

#endif
