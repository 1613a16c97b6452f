#ifndef TESSERA_TTIR_TYPES
#define TESSERA_TTIR_TYPES

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "tessera/ir/ttir/TtirDialect.td"

def TT_PtrType : TypeDef<TT_Dialect, "Pointer"> {
  let mnemonic = "ptr";
  let summary = "pointer to elements in one address space; 1 is global memory";
  let parameters = (ins "::mlir::Type":$pointeeType, DefaultValuedParameter<"int", "1">:$addressSpace);
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::Type":$pointeeType, CArg<"int", "1">:$addressSpace), [{
    return $_get(pointeeType.getContext(), pointeeType, addressSpace);
  }]>];
  let assemblyFormat = "`<` $pointeeType (`,` $addressSpace^)? `>`";
  let genVerifyDecl = 1;
}

// Scalars and tiles of them. A tile's element may be a pointer.
defvar TT_Float = AnyFloat;
defvar TT_Int = AnySignlessInteger;
defvar TT_Ptr = TT_PtrType;

def TT_FloatTensor : RankedTensorOf<[TT_Float]>;
def TT_IntTensor : RankedTensorOf<[TT_Int]>;
def TT_BoolTensor : RankedTensorOf<[I1]>;
def TT_PtrTensor : RankedTensorOf<[TT_Ptr]>;
def TT_Tensor : RankedTensorOf<[TT_Float, TT_Int, TT_Ptr]>;

def TT_FloatLike : AnyTypeOf<[TT_Float, TT_FloatTensor], "float or tile of floats">;
def TT_IntLike : AnyTypeOf<[TT_Int, TT_IntTensor], "integer or tile of integers">;
def TT_BoolLike : AnyTypeOf<[I1, TT_BoolTensor], "i1 or tile of i1">;
def TT_PtrLike : AnyTypeOf<[TT_Ptr, TT_PtrTensor], "pointer or tile of pointers">;
def TT_Scalar : AnyTypeOf<[TT_Float, TT_Int, TT_Ptr], "float, integer or pointer">;
def TT_Type : AnyTypeOf<[TT_Float, TT_Int, TT_Ptr, TT_Tensor], "float, integer, pointer or tile of these">;

#endif
