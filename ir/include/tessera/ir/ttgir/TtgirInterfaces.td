#ifndef TESSERA_TTGIR_INTERFACES
#define TESSERA_TTGIR_INTERFACES

include "mlir/IR/OpBase.td"

class TTG_LayoutInterface<string name> : AttrInterface<name> {
  let cppNamespace = "::tessera::ttg";
  let methods = [
    InterfaceMethod<"Rank of the tensors it describes.", "unsigned", "getRank">,
    InterfaceMethod<"The layout of a tensor of `shape` (powers of two, of this rank).", "::tessera::LinearLayout",
                    "toLinearLayout", (ins "::llvm::ArrayRef<int64_t>":$shape)>,
    InterfaceMethod<"The encoding of the transposed tensor, or null if only a linear encoding can say it.",
                    "::mlir::Attribute", "transpose", (ins "::llvm::ArrayRef<int32_t>":$order), "",
                    "return ::mlir::Attribute();">,
  ];
}
// Register, lane, warp, block -> element. All four inputs are present.
def TTG_DistributedEncoding : TTG_LayoutInterface<"DistributedEncoding">;
// Offset in shared memory, in elements (and block when a cluster shares the tensor) -> element.
def TTG_SharedEncoding : TTG_LayoutInterface<"SharedEncoding">;

#endif
