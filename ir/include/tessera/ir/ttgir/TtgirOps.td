#ifndef TESSERA_TTGIR_OPS
#define TESSERA_TTGIR_OPS

include "tessera/ir/ttgir/TtgirDialect.td"
include "tessera/ir/ttgir/TtgirAttrs.td"
include "tessera/ir/ttgir/TtgirTypes.td"
include "tessera/ir/ttir/TtirAttrs.td"
include "tessera/ir/ttir/TtirTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TTG_SharedMemory : Resource<"::tessera::ttg::SharedMemory">;
def TTG_Tensor : RankedTensorOf<[AnyType]>;

def TTG_AsyncGroups : Resource<"::tessera::ttg::AsyncGroups">;

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
  let description = [{ `token`, of the async_wait that makes the data valid, is only a hint to the reader of the IR. }];
  let arguments = (ins TTG_MemDescType:$src, Optional<TTG_AsyncTokenType>:$token);
  let results = (outs TTG_Tensor:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$src), [{
    build($_builder, $_state, result, src, ::mlir::Value());
  }]>];
  let assemblyFormat = "$src (`token` $token^)? attr-dict `:` qualified(type($src)) `->` type($result)";
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

def TTG_MemDescSubsliceOp : TTG_Op<"memdesc_subslice", [Pure]> {
  let summary = "a view of the part of a buffer that starts at constant offsets";
  let description = [{
    Every offset is a multiple of the part's size in that dimension, so that the part's linear layout is a piece of the
    whole's. The result's allocShape stays that of the whole: it is what the encoding describes.
  }];
  let arguments = (ins TTG_MemDescType:$src, DenseI32ArrayAttr:$offsets);
  let results = (outs TTG_MemDescType:$result);
  let assemblyFormat = [{
    $src `[` custom<Offsets>($offsets) `]` attr-dict `:` qualified(type($src)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TTG_LocalDotOp : TTG_Op<"local_dot", [AllTypesMatch<["c", "result"]>, MemoryEffects<[MemRead<TTG_SharedMemory>]>]> {
  let summary = "c + a * b without a matrix unit: every thread computes its own elements, reading a and b in shared memory";
  let description = [{
    The form of every matrix product for which the target has no instruction. Element (m, n) is c[m, n] to which
    a[m, k] * b[k, n] is added in the order of k by multiply-add in c's type; a batch dimension may come first.
  }];
  let arguments = (ins TTG_MemDescType:$a, TTG_MemDescType:$b, TTG_Tensor:$c);
  let results = (outs TTG_Tensor:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $c attr-dict `:` qualified(type($a)) `*` qualified(type($b)) `,` type($c) `->` type($result)
  }];
  let hasVerifier = 1;
}

// ---- asynchronous copies --------------------------------------------------------------------------------------------

def TTG_AsyncCopyGlobalToLocalOp : TTG_Op<"async_copy_global_to_local", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    OptionalTypesMatchWith<"mask has one bit per pointer", "src", "mask", "::tessera::tt::boolLike($_self)">,
    OptionalTypesMatchWith<"other is what the pointer points to", "src", "other", "::tessera::tt::pointeeLike($_self)">]> {
  let summary = "starts copying one element per pointer to shared memory; done once its group has been waited for";
  let description = [{
    Elements are those tt.load would give: `other`, or 0 without it, where the mask is false. `contiguity` promises that
    as many elements along the fastest dimension lie together in memory, with one mask value.
  }];
  let arguments = (ins TT_PtrTensor:$src, TTG_MemDescType:$result, Optional<TT_BoolTensor>:$mask,
                   Optional<TTG_Tensor>:$other,
                   DefaultValuedAttr<TT_CacheModifierAttr, "::tessera::tt::CacheModifier::NONE">:$cache,
                   DefaultValuedAttr<TT_EvictionPolicyAttr, "::tessera::tt::EvictionPolicy::NORMAL">:$evict,
                   DefaultValuedAttr<BoolAttr, "false">:$isVolatile, DefaultValuedAttr<I32Attr, "1">:$contiguity);
  let results = (outs TTG_AsyncTokenType:$token);
  let builders = [OpBuilder<(ins "::mlir::Value":$src, "::mlir::Value":$result, "::mlir::Value":$mask,
      "::mlir::Value":$other, "::tessera::tt::CacheModifier":$cache, "::tessera::tt::EvictionPolicy":$evict,
      "bool":$isVolatile, CArg<"uint32_t", "1">:$contiguity), [{
    build($_builder, $_state, AsyncTokenType::get($_builder.getContext()), src, result, mask, other, cache, evict,
          isVolatile, contiguity);
  }]>];
  let assemblyFormat = [{
    $src `,` $result (`mask` $mask^)? (`other` $other^)? oilist(`cacheModifier` `=` $cache | `evictionPolicy` `=` $evict)
    attr-dict `:` type($src) `->` type($result)
  }];
  let hasVerifier = 1;
}
def TTG_AsyncCommitGroupOp : TTG_Op<"async_commit_group", [
    MemoryEffects<[MemRead<TTG_AsyncGroups>, MemWrite<TTG_AsyncGroups>]>]> {
  let summary = "makes a group of the copies this thread has started and not yet committed";
  let arguments = (ins Variadic<TTG_AsyncTokenType>:$inputTokens);
  let results = (outs TTG_AsyncTokenType:$token);
  let builders = [OpBuilder<(ins CArg<"::mlir::ValueRange", "{}">:$inputTokens), [{
    build($_builder, $_state, AsyncTokenType::get($_builder.getContext()), inputTokens);
  }]>];
  let assemblyFormat = "(`tokens` $inputTokens^)? attr-dict";
}
def TTG_AsyncWaitOp : TTG_Op<"async_wait", [MemoryEffects<[MemRead<TTG_AsyncGroups>, MemWrite<TTG_AsyncGroups>,
    MemRead<TTG_SharedMemory>, MemWrite<TTG_SharedMemory>]>]> {
  let summary = "waits until at most the `num` youngest groups of this thread are in flight";
  let description = [{ Other threads see the data after a barrier. Touches no memory itself: its effects keep accesses in place. }];
  let arguments = (ins Variadic<TTG_AsyncTokenType>:$inputTokens, I32Attr:$num);
  let results = (outs TTG_AsyncTokenType:$token);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$inputTokens, "uint32_t":$num), [{
    build($_builder, $_state, AsyncTokenType::get($_builder.getContext()), inputTokens, num);
  }]>];
  let assemblyFormat = "($inputTokens^)? attr-dict";
  let hasVerifier = 1;
}

def TTG_BarrierOp : TTG_Op<"barrier", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "all warps of the program wait for one another; memory accesses of addrSpace before it are seen after it";
  let arguments = (ins TTG_AddrSpaceAttr:$addrSpace);
  let assemblyFormat = "custom<AddrSpace>($addrSpace) attr-dict";
}

#endif
