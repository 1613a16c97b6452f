#ifndef TESSERA_TTNG_OPS
#define TESSERA_TTNG_OPS

include "tessera/ir/ttgir/TtgirTypes.td"
include "tessera/ir/ttir/TtirAttrs.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TTNG_Dialect : Dialect {
  let name = "ttng";
  let cppNamespace = "::tessera::ttng";
  let summary = "What only some NVIDIA GPUs have, with the names of Triton 3.6's dialect";
  let dependentDialects = ["::tessera::ttg::TTGDialect"];
}

def TTNG_SharedMemory : Resource<"::tessera::ttg::SharedMemory">;
def TTNG_Tensor : RankedTensorOf<[AnyFloat, AnySignlessInteger]>;
def TTNG_TensorOrMemDesc : AnyTypeOf<[TTNG_Tensor, TTG_MemDescType], "tile or memdesc">;

class TTNG_Op<string mnemonic, list<Trait> traits = []> : Op<TTNG_Dialect, mnemonic, traits>;
// Order accesses to shared memory around them, and touch none themselves.
defvar TTNG_ordersShared = MemoryEffects<[MemRead<TTNG_SharedMemory>, MemWrite<TTNG_SharedMemory>]>;

def TTNG_WarpGroupDotOp : TTNG_Op<"warp_group_dot", [AllTypesMatch<["c", "d"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "c + a * b by wgmma: b, and a unless it is a tile, are read in shared memory";
  let description = [{
    Attributes as in tt.dot. With `useC` false c counts as 0. When isAsync, the result may be used only as c of another
    asynchronous dot or after a warp_group_dot_wait, and the buffers read must stay as they are until then.
  }];
  let arguments = (ins TTNG_TensorOrMemDesc:$a, TTG_MemDescType:$b, TTNG_Tensor:$c, Optional<I1>:$useC,
                   DefaultValuedAttr<TT_InputPrecisionAttr, "::tessera::tt::InputPrecision::IEEE">:$inputPrecision,
                   DefaultValuedAttr<I32Attr, "0">:$maxNumImpreciseAcc, DefaultValuedAttr<BoolAttr, "false">:$isAsync);
  let results = (outs TTNG_Tensor:$d);
  let assemblyFormat = [{
    $a `,` $b `,` $c (`,` $useC^)? attr-dict `:` qualified(type($a)) `*` qualified(type($b)) `->` type($d)
  }];
  let hasVerifier = 1;
}

def TTNG_WarpGroupDotWaitOp : TTNG_Op<"warp_group_dot_wait", [InferTypeOpAdaptor, TTNG_ordersShared]> {
  let summary = "waits until at most the `pendings` youngest asynchronous dots are in flight; results are the operands";
  let description = [{
    Using a dot's result only through the wait says that it is valid; passing a buffer says that it is read no more.
  }];
  let arguments = (ins Variadic<TTNG_TensorOrMemDesc>:$inputs, I32Attr:$pendings);
  let results = (outs Variadic<TTNG_TensorOrMemDesc>:$outputs);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs)";
  let hasVerifier = 1;
}

def TTNG_FenceAsyncSharedOp : TTNG_Op<"fence_async_shared", [TTNG_ordersShared]> {
  let summary = "makes ordinary writes to shared memory visible to what reads it asynchronously (wgmma, bulk copies)";
  let arguments = (ins BoolAttr:$bCluster);
  let assemblyFormat = "attr-dict";
}

#endif
