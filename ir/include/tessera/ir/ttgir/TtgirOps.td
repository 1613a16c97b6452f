#ifndef TESSERA_TTGIR_OPS
#define TESSERA_TTGIR_OPS

include "TtgirDialect.td"
include "TtgirAttrs.td"
include "TtgirTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TTG_SharedMemory : Resource<"::tessera::ttg::SharedMemory">;
def TTG_Tensor : RankedTensorOf<[AnyType]>;

class TTG_Op<string mnemonic, list<Trait> traits = []> : Op<TTG_Dialect, mnemonic, traits>;

def TTG_ConvertLayoutOp : TTG_Op<"convert_layout", [Pure, SameOperandsAndResultShape, SameOperandsAndResultElementType]> {
  let summary = "the same tile in another encoding";
  let arguments = (ins TTG_Tensor:$src);
  let results = (outs TTG_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}

def TTG_LocalAllocOp : TTG_Op<"local_alloc", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a buffer in shared memory, filled with a tile if one is given";
  let description = [{ Without `src` the buffer must be mutable. It lives until local_dealloc, or its last use. }];
  let arguments = (ins Optional<TTG_Tensor>:$src);
  let results = (outs TTG_MemDescType:$result);
  let assemblyFormat = "($src^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def TTG_LocalDeallocOp : TTG_Op<"local_dealloc", [MemoryEffects<[MemFree<TTG_SharedMemory>]>]> {
  let summary = "ends the life of a buffer";
  let arguments = (ins TTG_MemDescType:$src);
  let assemblyFormat = "$src attr-dict `:` qualified(type($src))";
}
def TTG_LocalLoadOp : TTG_Op<"local_load", [MemoryEffects<[MemRead<TTG_SharedMemory>]>]> {
  let summary = "reads a tile from shared memory";
  let arguments = (ins TTG_MemDescType:$src);
  let results = (outs TTG_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` qualified(type($src)) `->` type($result)";
  let hasVerifier = 1;
}
def TTG_LocalStoreOp : TTG_Op<"local_store", [MemoryEffects<[MemWrite<TTG_SharedMemory>]>]> {
  let summary = "writes a tile to shared memory";
  let arguments = (ins TTG_Tensor:$src, TTG_MemDescType:$dst);
  let assemblyFormat = "$src `,` $dst attr-dict `:` type($src) `->` qualified(type($dst))";
  let hasVerifier = 1;
}
def TTG_MemDescIndexOp : TTG_Op<"memdesc_index", [Pure]> {
  let summary = "one of several buffers: the leading dimension at `index`";
  let arguments = (ins TTG_MemDescType:$src, I32:$index);
  let results = (outs TTG_MemDescType:$result);
  let assemblyFormat = "$src `[` $index `]` attr-dict `:` qualified(type($src)) `->` qualified(type($result))";
  let hasVerifier = 1;
}
def TTG_MemDescTransOp : TTG_Op<"memdesc_trans", [Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "a view with permuted dimensions: result dimension i is source dimension order[i]";
  let arguments = (ins TTG_MemDescType:$src, DenseI32ArrayAttr:$order);
  let results = (outs TTG_MemDescType:$result);
  let assemblyFormat = "$src attr-dict `:` qualified(type($src)) `->` qualified(type($result))";
  let hasFolder = 1;
}

def TTG_BarrierOp : TTG_Op<"barrier", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "all warps of the program wait for one another; memory accesses of addrSpace before it are seen after it";
  let arguments = (ins TTG_AddrSpaceAttr:$addrSpace);
  let assemblyFormat = "$addrSpace attr-dict";
}

#endif
