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

// Accumulators of a matrix instruction; beside DistributedEncoding. Passes and lowering know vendors' instructions by it.
def TTG_MatrixEncoding : AttrInterface<"MatrixEncoding"> {
  let cppNamespace = "::tessera::ttg";
  let methods = [
    InterfaceMethod<"Warps along each dimension.", "::llvm::ArrayRef<unsigned>", "getWarpsPerCTA">,
    InterfaceMethod<"Dimensions in which consecutive warps lie, fastest first.", "::llvm::SmallVector<unsigned>",
                    "getWarpOrder">,
    InterfaceMethod<"Bases of programs of a cluster, as in the encoding's text.", "::llvm::ArrayRef<unsigned>",
                    "getCgaLayout">,
    InterfaceMethod<"Whether one warp executes the instruction, with operands in registers (else several do together).",
                    "bool", "isOfOneWarp">,
    InterfaceMethod<"Whether rows and columns of the accumulators are exchanged: the instruction gets B as its A and A "
                    "as its B, both transposed.", "bool", "isTransposed">,
    InterfaceMethod<"The instruction of a warp for operands of `elementBits` bits; its m, n, k are 0 where there is none.",
                    "::tessera::MatrixInstruction", "getInstruction", (ins "unsigned":$elementBits)>,
    InterfaceMethod<"Tiles of one instruction that a warp has side by side, in each dimension.",
                    "::llvm::SmallVector<unsigned>", "getTilesOfWarp">,
    InterfaceMethod<"Why dot_op cannot have this as parent; empty if it can.", "::std::string", "refusesOperand",
                    (ins "unsigned":$opIdx, "unsigned":$kWidth)>,
  ];
  let extraClassDeclaration = [{
    unsigned getRank() const { return getWarpsPerCTA().size(); }
  }];
}

#endif
