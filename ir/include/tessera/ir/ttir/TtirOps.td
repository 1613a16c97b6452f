#ifndef TESSERA_TTIR_OPS
#define TESSERA_TTIR_OPS

include "tessera/ir/ttir/TtirDialect.td"
include "tessera/ir/ttir/TtirTypes.td"
include "tessera/ir/ttir/TtirAttrs.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TT_TileShapes : NativeOpTrait<"TileShapes"> { let cppNamespace = "::tessera::tt"; }
def TT_GlobalMemory : Resource<"::tessera::tt::GlobalMemory">;

class TT_Op<string mnemonic, list<Trait> traits = []> : Op<TT_Dialect, mnemonic, !listconcat(traits, [TT_TileShapes])>;
// Infers its result's type; encodings are compared as linear layouts.
defvar TT_compatibleTypes = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange a, ::mlir::TypeRange b) { return areCompatible(a, b); }
}];
class TT_InferringOp<string mnemonic, list<Trait> traits = []> : TT_Op<mnemonic, !listconcat([Pure,
    DeclareOpInterfaceMethods<InferTypeOpInterface>], traits)> {
  let extraClassDeclaration = TT_compatibleTypes;
}

// ---- place in the grid ----------------------------------------------------------------------------------------------

class TT_GridOp<string mnemonic> : TT_Op<mnemonic, [Pure]> {
  let arguments = (ins TT_ProgramDimAttr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "int":$axis), [{
    build($_builder, $_state, $_builder.getI32Type(), static_cast<ProgramIDDim>(axis));
  }]>];
  let extraClassDeclaration = "int32_t getAxisAsInt() { return static_cast<int32_t>(getAxis()); }";
}
def TT_GetProgramIdOp : TT_GridOp<"get_program_id"> { let summary = "index of this program along a grid axis"; }
def TT_GetNumProgramsOp : TT_GridOp<"get_num_programs"> { let summary = "number of programs along a grid axis"; }

// ---- casts and element-wise operations that arith and math lack -----------------------------------------------------

class TT_CastOp<string mnemonic, Type from, Type to> : TT_Op<mnemonic, [SameOperandsAndResultShape,
    Pure, Elementwise]> {
  let arguments = (ins from:$src);
  let results = (outs to:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
}
def TT_IntToPtrOp : TT_CastOp<"int_to_ptr", TT_IntLike, TT_PtrLike> {
  let summary = "address (i64) to pointer";
  let hasFolder = 1;
}
def TT_PtrToIntOp : TT_CastOp<"ptr_to_int", TT_PtrLike, TT_IntLike> { let summary = "pointer to address (i64)"; }
def TT_BitcastOp : TT_CastOp<"bitcast", TT_Type, TT_Type> {
  let summary = "the same bits as another type of the same width; pointers only to pointers";
  let hasFolder = 1;
}
def TT_FpToFpOp : TT_CastOp<"fp_to_fp", TT_FloatLike, TT_FloatLike> {
  let summary = "float conversion with chosen rounding, and conversions from and to 8-bit floats";
  let arguments = (ins TT_FloatLike:$src, OptionalAttr<TT_RoundingModeAttr>:$rounding);
  let assemblyFormat = "$src attr-dict (`,` `rounding` `=` $rounding^)? `:` type($src) `->` type($result)";
  let hasFolder = 1;
}

def TT_ClampFOp : TT_Op<"clampf", [Elementwise, Pure, SameOperandsAndResultType]> {
  let summary = "min(max(x, min), max); a NaN x gives min unless NaN is propagated; min > max or NaN bounds: unspecified";
  let arguments = (ins TT_FloatLike:$x, TT_FloatLike:$min, TT_FloatLike:$max, TT_PropagateNanAttr:$propagateNan);
  let results = (outs TT_FloatLike:$result);
  let assemblyFormat = "$x `,` $min `,` $max `,` `propagateNan` `=` $propagateNan attr-dict `:` type($result)";
}
def TT_PreciseSqrtOp : TT_Op<"precise_sqrt", [Elementwise, Pure, SameOperandsAndResultType]> {
  let summary = "square root, correctly rounded";
  let arguments = (ins TT_FloatLike:$x);
  let results = (outs TT_FloatLike:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}
def TT_PreciseDivFOp : TT_Op<"precise_divf", [Elementwise, Pure, SameOperandsAndResultType]> {
  let summary = "quotient, correctly rounded";
  let arguments = (ins TT_FloatLike:$x, TT_FloatLike:$y);
  let results = (outs TT_FloatLike:$result);
  let assemblyFormat = "$x `,` $y attr-dict `:` type($x)";
}
def TT_MulhiUIOp : TT_Op<"mulhiui", [Elementwise, Pure, Commutative, SameOperandsAndResultType]> {
  let summary = "upper half of the full product of two unsigned integers";
  let arguments = (ins TT_IntLike:$x, TT_IntLike:$y);
  let results = (outs TT_IntLike:$result);
  let assemblyFormat = "$x `,` $y attr-dict `:` type($x)";
  let hasFolder = 1;
}
def TT_ExternElementwiseOp : TT_Op<"extern_elementwise", [Elementwise, SameOperandsAndResultShape,
    ConditionallySpeculatable, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "calls a device function for every element";
  let arguments = (ins Variadic<TT_Type>:$srcs, StrAttr:$libname, StrAttr:$libpath, StrAttr:$symbol, BoolAttr:$pure);
  let results = (outs TT_Type:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, $result)";
  let extraClassDeclaration = "::mlir::Speculation::Speculatability getSpeculatability();";
  let hasVerifier = 1;
}
def TT_ElementwiseInlineAsmOp : TT_Op<"elementwise_inline_asm", [ConditionallySpeculatable,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "target assembly for every packed_element elements";
  let arguments = (ins StrAttr:$asm_string, StrAttr:$constraints, BoolAttr:$pure, I32Attr:$packed_element,
                   Variadic<TT_Type>:$args);
  let results = (outs Variadic<TT_Type>:$result);
  let assemblyFormat = "$asm_string attr-dict ($args^ `:` type($args))? `->` type($result)";
  let extraClassDeclaration = "::mlir::Speculation::Speculatability getSpeculatability();";
  let hasVerifier = 1;
}

// ---- pointers and memory --------------------------------------------------------------------------------------------

def TT_AddPtrOp : TT_Op<"addptr", [Pure, Elementwise, AllTypesMatch<["ptr", "result"]>]> {
  let summary = "pointer plus a signed offset in elements";
  let arguments = (ins TT_PtrLike:$ptr, TT_IntLike:$offset);
  let results = (outs TT_PtrLike:$result);
  let assemblyFormat = "$ptr `,` $offset attr-dict `:` type($result) `,` type($offset)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TT_LoadOp : TT_Op<"load", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    TypesMatchWith<"result is what the pointer points to", "ptr", "result", "pointeeLike($_self)">,
    OptionalTypesMatchWith<"mask has one bit per pointer", "ptr", "mask", "boolLike($_self)">,
    OptionalTypesMatchWith<"other is what the pointer points to", "ptr", "other", "pointeeLike($_self)">]> {
  let summary = "reads one element per pointer";
  let description = [{
    Where the mask is false memory is not touched and the value is `other`, or 0 without `other` (Triton leaves it
    undefined).
  }];
  let arguments = (ins TT_PtrLike:$ptr, Optional<TT_BoolLike>:$mask, Optional<TT_Type>:$other,
                   DefaultValuedAttr<TT_CacheModifierAttr, "CacheModifier::NONE">:$cache,
                   DefaultValuedAttr<TT_EvictionPolicyAttr, "EvictionPolicy::NORMAL">:$evict,
                   DefaultValuedAttr<BoolAttr, "false">:$isVolatile);
  let results = (outs TT_Type:$result);
  let assemblyFormat = [{
    $ptr (`,` $mask^)? (`,` $other^)? oilist(`cacheModifier` `=` $cache | `evictionPolicy` `=` $evict)
    attr-dict `:` type($ptr)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def TT_StoreOp : TT_Op<"store", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    TypesMatchWith<"value is what the pointer points to", "ptr", "value", "pointeeLike($_self)">,
    OptionalTypesMatchWith<"mask has one bit per pointer", "ptr", "mask", "boolLike($_self)">]> {
  let summary = "writes one element per pointer where the mask is true";
  let arguments = (ins TT_PtrLike:$ptr, TT_Type:$value, Optional<TT_BoolLike>:$mask,
                   DefaultValuedAttr<TT_CacheModifierAttr, "CacheModifier::NONE">:$cache,
                   DefaultValuedAttr<TT_EvictionPolicyAttr, "EvictionPolicy::NORMAL">:$evict);
  let assemblyFormat = [{
    $ptr `,` $value (`,` $mask^)? oilist(`cacheModifier` `=` $cache | `evictionPolicy` `=` $evict)
    attr-dict `:` type($ptr)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

// ---- tiles: creation and shape --------------------------------------------------------------------------------------

def TT_SplatOp : TT_Op<"splat", [Pure]> {
  let summary = "tile with one value everywhere";
  let arguments = (ins TT_Scalar:$src);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def TT_UnsplatOp : TT_InferringOp<"unsplat"> {
  let summary = "the element of a tile that has only one";
  let arguments = (ins TT_Tensor:$src);
  let results = (outs TT_Scalar:$result);
  let assemblyFormat = "$src attr-dict `:` type($src)";
  let hasFolder = 1;
}
def TT_MakeRangeOp : TT_Op<"make_range", [Pure]> {
  let summary = "1-D tile start, start + 1, …, end - 1";
  let arguments = (ins I32Attr:$start, I32Attr:$end);
  let results = (outs TT_IntTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def TT_ExpandDimsOp : TT_InferringOp<"expand_dims"> {
  let summary = "inserts a dimension of size 1 at `axis`";
  let arguments = (ins TT_Tensor:$src, I32Attr:$axis);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}
def TT_BroadcastOp : TT_Op<"broadcast", [Pure]> {
  let summary = "repeats dimensions of size 1; rank and encoding stay";
  let arguments = (ins TT_Tensor:$src);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}
def TT_ReshapeOp : TT_Op<"reshape", [Pure]> {
  let summary = "the same elements in row-major order under another shape";
  let description = [{
    With `allow_reorder` elements may come in any order, so any result encoding is allowed; `efficient_layout` says that
    a pass chose the encoding and should keep it.
  }];
  let arguments = (ins TT_Tensor:$src, UnitAttr:$allow_reorder, UnitAttr:$efficient_layout);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $src (`allow_reorder` $allow_reorder^)? (`efficient_layout` $efficient_layout^)? attr-dict
    `:` type($src) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Value":$src, CArg<"bool", "false">:$allowReorder)>];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}
def TT_TransOp : TT_InferringOp<"trans"> {
  let summary = "permutes dimensions: result dimension i is source dimension order[i]";
  let arguments = (ins TT_Tensor:$src, DenseI32ArrayAttr:$order);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}
def TT_CatOp : TT_Op<"cat", [Pure, SameTypeOperands]> {
  let summary = "the elements of two tiles along dimension 0; may reorder them";
  let description = [{
    With an encoding, the result has twice the registers of an operand: a lane's registers are those of lhs, then rhs.
  }];
  let arguments = (ins TT_Tensor:$lhs, TT_Tensor:$rhs);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let hasVerifier = 1;
}
def TT_JoinOp : TT_InferringOp<"join", [SameTypeOperands]> {
  let summary = "two tiles as the two elements of a new last dimension";
  let arguments = (ins TT_Tensor:$lhs, TT_Tensor:$rhs);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let hasFolder = 1;
}
def TT_SplitOp : TT_InferringOp<"split", [AllTypesMatch<["outLHS", "outRHS"]>]> {
  let summary = "inverse of join; a lane must hold both elements of the last dimension in registers";
  let arguments = (ins TT_Tensor:$src);
  let results = (outs TT_Tensor:$outLHS, TT_Tensor:$outRHS);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($outLHS)";
  let hasFolder = 1;
}
def TT_GatherOp : TT_InferringOp<"gather"> {
  let summary = "result[i0, …, ia, …] = src[i0, …, indices[i0, …, ia, …], …] with a = axis";
  let arguments = (ins TT_Tensor:$src, TT_IntTensor:$indices, I32Attr:$axis, UnitAttr:$efficient_layout);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src `[` $indices `]` attr-dict `:` functional-type(operands, results)";
}

// ---- matrix product -------------------------------------------------------------------------------------------------

def TT_DotOp : TT_Op<"dot", [Pure, AllTypesMatch<["c", "d"]>]> {
  let summary = "c + a * b, for tiles of two dimensions, or three with the batch first";
  let description = [{
    Products are exact and sums are in c's type, in an order the target chooses. inputPrecision concerns f32 operands:
    ieee takes them as they are, tf32 rounds them to 10 fraction bits, tf32x3 makes up for that with two more products.
    maxNumImpreciseAcc (8-bit floats): at most so many elements along k may be summed less exactly than f32; 0 says
    nothing.
  }];
  let arguments = (ins TT_Tensor:$a, TT_Tensor:$b, TT_Tensor:$c,
                   DefaultValuedAttr<TT_InputPrecisionAttr, "InputPrecision::IEEE">:$inputPrecision,
                   DefaultValuedAttr<I32Attr, "0">:$maxNumImpreciseAcc);
  let results = (outs TT_Tensor:$d);
  let assemblyFormat = [{
    $a `,` $b `,` $c (`,` `inputPrecision` `=` $inputPrecision^)? attr-dict `:` type($a) `*` type($b) `->` type($d)
  }];
  let hasVerifier = 1;
}

// ---- reduction ------------------------------------------------------------------------------------------------------

def TT_ReduceOp : TT_InferringOp<"reduce", [SingleBlock]> {
  let summary = "combines the elements along `axis` with an associative, commutative region";
  let description = [{
    The region takes one accumulated scalar per operand, then one new scalar per operand, and returns one per operand.
    Reducing the only dimension gives scalars.
  }];
  let arguments = (ins Variadic<TT_Tensor>:$srcs, I32Attr:$axis);
  let results = (outs Variadic<TT_Type>:$result);
  let regions = (region SizedRegion<1>:$combineOp);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = TT_compatibleTypes # [{
    /// Element type of each operand.
    ::llvm::SmallVector<::mlir::Type> getElementTypes();
    /// The region's only block; its first half of arguments is the accumulated side.
    ::mlir::Block &getCombineBlock() { return getCombineOp().front(); }
    /// The combining op when the region is one binary op on its two arguments (sum, max, …), else null.
    ::mlir::Operation *getSingleCombiner();
  }];
}
def TT_ReduceReturnOp : TT_Op<"reduce.return", [HasParent<"ReduceOp">, Pure, Terminator, ReturnLike]> {
  let summary = "the combined scalars";
  let arguments = (ins Variadic<TT_Scalar>:$result);
  let assemblyFormat = "$result attr-dict `:` type($result)";
}

// ---- debugging ------------------------------------------------------------------------------------------------------

def TT_PrintOp : TT_Op<"print", [MemoryEffects<[MemWrite<TT_GlobalMemory>]>]> {
  let summary = "prints scalars or tiles from the device";
  let arguments = (ins StrAttr:$prefix, BoolAttr:$hex, Variadic<TT_Type>:$args, DenseI32ArrayAttr:$isSigned);
  let assemblyFormat = "$prefix attr-dict (`:` $args^ `:` type($args))?";
  let hasVerifier = 1;
}
def TT_AssertOp : TT_Op<"assert", [MemoryEffects<[MemWrite<TT_GlobalMemory>]>]> {
  let summary = "stops the kernel with a message where the condition is false";
  let arguments = (ins TT_IntLike:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
  let hasCanonicalizer = 1;
}
// Triton has no op of its own for this and writes the LLVM dialect's. That name is registered with tt: the rest of that
// dialect is not wanted in a tile program. Its effect keeps it where it is.
class TT_BorrowedName<string dialect> : Dialect {
  let name = dialect;
  let cppNamespace = "::tessera::tt";
}
def TT_LlvmName : TT_BorrowedName<"llvm">;
def TT_AssumeOp : Op<TT_LlvmName, "intr.assume", [MemoryEffects<[MemWrite<TT_GlobalMemory>]>]> {
  let summary = "promises that a scalar condition holds";
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict `:` type($condition)";
}
// Likewise tl.debug_barrier.
def TT_GpuName : TT_BorrowedName<"gpu">;
def TT_DebugBarrierOp : Op<TT_GpuName, "barrier", [MemoryEffects<[MemRead<TT_GlobalMemory>, MemWrite<TT_GlobalMemory>]>]> {
  let summary = "all warps of the program wait for one another, and see each other's memory accesses before it";
  let assemblyFormat = "attr-dict";
}

// ---- functions ------------------------------------------------------------------------------------------------------

def TT_FuncOp : TT_Op<"func", [AffineScope, AutomaticAllocationScope, IsolatedFromAbove, FunctionOpInterface]> {
  let summary = "a kernel (public) or a helper (private)";
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                   OptionalAttr<StrAttr>:$sym_visibility, OptionalAttr<DictArrayAttr>:$arg_attrs,
                   OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type,
      CArg<"::llvm::ArrayRef<::mlir::NamedAttribute>", "{}">:$attrs,
      CArg<"::llvm::ArrayRef<::mlir::DictionaryAttr>", "{}">:$argAttrs)>];
  let extraClassDeclaration = [{
    ::mlir::Region *getCallableRegion() { return isExternal() ? nullptr : &getBody(); }
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}
def TT_CallOp : TT_Op<"call", [CallOpInterface, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "calls a tt.func of the same module";
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyType>:$operands, OptionalAttr<DictArrayAttr>:$arg_attrs,
                   OptionalAttr<DictArrayAttr>:$res_attrs);
  let results = (outs Variadic<AnyType>);
  let assemblyFormat = "$callee `(` $operands `)` attr-dict `:` functional-type($operands, results)";
  let builders = [OpBuilder<(ins "FuncOp":$callee, CArg<"::mlir::ValueRange", "{}">:$operands), [{
    build($_builder, $_state, callee.getFunctionType().getResults(), ::mlir::SymbolRefAttr::get(callee), operands, {}, {});
  }]>];
  let extraClassDeclaration = [{
    ::mlir::CallInterfaceCallable getCallableForCallee() { return (*this)->getAttrOfType<::mlir::SymbolRefAttr>("callee"); }
    void setCalleeFromCallable(::mlir::CallInterfaceCallable callee) {
      (*this)->setAttr("callee", ::llvm::cast<::mlir::SymbolRefAttr>(callee));
    }
    operand_range getArgOperands() { return getOperands(); }
    ::mlir::MutableOperandRange getArgOperandsMutable() { return getOperandsMutable(); }
  }];
}
def TT_ReturnOp : TT_Op<"return", [Pure, HasParent<"FuncOp">, ReturnLike, Terminator]> {
  let summary = "ends a function";
  let arguments = (ins Variadic<AnyType>:$srcs);
  let assemblyFormat = "attr-dict ($srcs^ `:` type($srcs))?";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
  let hasVerifier = 1;
}

#endif
