#ifndef TESSERA_TTGIR_ATTRS
#define TESSERA_TTGIR_ATTRS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/IR/EnumAttr.td"
include "tessera/ir/ttgir/TtgirDialect.td"
include "tessera/ir/ttgir/TtgirInterfaces.td"

class TTG_Attr<string name, string keyword, list<Trait> traits = []> : AttrDef<TTG_Dialect, name, traits> {
  let mnemonic = keyword;
}
class TTG_Encoding<string name, string keyword, list<Trait> traits> : TTG_Attr<name # "Encoding", keyword, traits> {
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}
class TTG_Distributed<string name, string keyword, list<string> methods = [], list<Trait> traits = []>
    : TTG_Encoding<name, keyword, !listconcat([DeclareAttrInterfaceMethods<TTG_DistributedEncoding, methods>,
                                               DeclareAttrInterfaceMethods<VerifiableTensorEncoding>], traits)>;
// Accumulators of a matrix instruction. What TTG_MatrixEncoding asks for and is no parameter is declared in Body.
class TTG_Matrix<string name, string keyword> : TTG_Distributed<name, keyword, [], [TTG_MatrixEncoding]> {
  code MatrixMethods = [{
    ::llvm::SmallVector<unsigned> getWarpOrder() const;
    bool isOfOneWarp() const;
    bool isTransposed() const;
    ::tessera::MatrixInstruction getInstruction(unsigned elementBits) const;
    ::llvm::SmallVector<unsigned> getTilesOfWarp() const;
    ::std::string refusesOperand(unsigned opIdx, unsigned kWidth) const;
  }];
  let extraClassDeclaration = MatrixMethods;
}
class TTG_Shared<string name, string keyword, list<string> methods = []> : TTG_Encoding<name, keyword, [
    DeclareAttrInterfaceMethods<TTG_SharedEncoding, methods>]>;

// Layout parameters are lists of unsigned. A list of basis vectors is stored flat: `rank` numbers per basis. CGALayout has
// one basis per bit of the program index in the cluster, in units of one program's part of the tensor.
defvar TTG_List = ArrayRefParameter<"unsigned">;
defvar TTG_Bases = OptionalArrayRefParameter<"unsigned">;

def TTG_BlockedEncoding : TTG_Distributed<"Blocked", "blocked", ["transpose"]> {
  let summary = "blocks of sizePerThread elements per lane, lanes and warps side by side, repeated to cover the tensor";
  let parameters = (ins TTG_List:$sizePerThread, TTG_List:$threadsPerWarp, TTG_List:$warpsPerCTA, TTG_List:$order,
                    TTG_Bases:$cgaLayout);
  let builders = [
    AttrBuilder<(ins "::llvm::ArrayRef<unsigned>":$sizePerThread, "::llvm::ArrayRef<unsigned>":$threadsPerWarp,
        "::llvm::ArrayRef<unsigned>":$warpsPerCTA, "::llvm::ArrayRef<unsigned>":$order), [{
      return $_get($_ctxt, sizePerThread, threadsPerWarp, warpsPerCTA, order, ::llvm::ArrayRef<unsigned>());
    }]>,
    // Spreads lanes, then warps, over `shape` in `order`; what is left over goes to the slowest dimension.
    AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::llvm::ArrayRef<unsigned>":$sizePerThread,
        "::llvm::ArrayRef<unsigned>":$order, "unsigned":$numWarps, "unsigned":$threadsPerWarp)>];
}

def TTG_SliceEncoding : TTG_Distributed<"Slice", "slice"> {
  let summary = "the parent encoding with dimension `dim` removed; what the parent spread over it are copies";
  let parameters = (ins "unsigned":$dim, "::tessera::ttg::DistributedEncoding":$parent);
}

def TTG_LinearEncoding : TTG_Distributed<"Linear", "linear"> {
  let summary = "any linear layout, by the basis vectors of its register, lane, warp and block bits";
  let parameters = (ins "unsigned":$rank, TTG_Bases:$registers, TTG_Bases:$lanes, TTG_Bases:$warps, TTG_Bases:$blocks);
  let builders = [AttrBuilder<(ins "const ::tessera::LinearLayout &":$layout)>];
}

def TTG_NvidiaMmaEncoding : TTG_Matrix<"NvidiaMma", "nvidia_mma"> {
  let summary = "accumulators of NVIDIA's matrix instructions, in the fragment layouts of the PTX ISA";
  let description = [{
    versionMajor 2: mma.sync of one warp, instrShape [16, 8] ([1, 16, 8] with a batch dimension). versionMajor 3: wgmma of
    four warps along the rows, instrShape [16, N, K] is a warp's part. Warps are side by side, rows first in version 3 and
    columns first in version 2; the whole is repeated, columns first, to cover the tensor.
  }];
  let parameters = (ins "unsigned":$versionMajor, "unsigned":$versionMinor, TTG_List:$warpsPerCTA, TTG_Bases:$cgaLayout,
                    TTG_List:$instrShape);
  let builders = [AttrBuilder<(ins "unsigned":$versionMajor, "::llvm::ArrayRef<unsigned>":$warpsPerCTA,
      "::llvm::ArrayRef<unsigned>":$instrShape), [{
    return $_get($_ctxt, versionMajor, 0u, warpsPerCTA, ::llvm::ArrayRef<unsigned>(), instrShape);
  }]>];
  let extraClassDeclaration = MatrixMethods # [{
    /// Whether the instruction is wgmma, of four warps, and not mma.sync, of one.
    bool isWarpGroup() const { return getVersionMajor() == 3; }
    /// Columns of one instruction.
    unsigned getInstrN() const { return isWarpGroup() ? getInstrShape()[1] : getInstrShape().back(); }
  }];
}

def TTG_AmdMfmaEncoding : TTG_Matrix<"AmdMfma", "amd_mfma"> {
  let summary = "accumulators of AMD's MFMA instructions (wavefronts of 64 lanes), as the CDNA ISA documents show them";
  let description = [{
    version 2: gfx90a, 3: gfx942, 4: gfx950. instrShape is [m, n, k] of one instruction: 16 or 32 rows and as many columns.
    Warps are side by side, columns first, each with tilesPerWarp instructions side by side; the whole is repeated, columns
    first. isTransposed: the instruction gets B's columns as rows of its A, so that a lane holds consecutive columns.
    elementBitWidth is that of an accumulator: 64 for f64, whose lanes lie otherwise.
  }];
  let parameters = (ins "unsigned":$version, TTG_List:$warpsPerCTA, TTG_List:$instrShape, "bool":$isTransposed,
                    TTG_Bases:$cgaLayout, TTG_List:$tilesPerWarp, "unsigned":$elementBitWidth);
  let builders = [AttrBuilder<(ins "unsigned":$version, "::llvm::ArrayRef<unsigned>":$warpsPerCTA,
      "::llvm::ArrayRef<unsigned>":$instrShape, "bool":$isTransposed, CArg<"unsigned", "32">:$elementBitWidth), [{
    return $_get($_ctxt, version, warpsPerCTA, instrShape, isTransposed, ::llvm::ArrayRef<unsigned>(),
                 ::llvm::SmallVector<unsigned>(warpsPerCTA.size(), 1), elementBitWidth);
  }]>];
}

def TTG_AmdWmmaEncoding : TTG_Matrix<"AmdWmma", "amd_wmma"> {
  let summary = "accumulators of AMD's WMMA instructions (wavefronts of 32 lanes), as the RDNA ISA documents show them";
  let description = [{
    version 1: gfx11, 2: gfx12, 3: gfx1250. instrShape is [16, 16, k], with k 16 if not written. Warps and isTranspose as
    in amd_mfma.
  }];
  let parameters = (ins "unsigned":$version, "bool":$isTransposed, TTG_List:$warpsPerCTA, TTG_Bases:$cgaLayout,
                    TTG_List:$tilesPerWarp, TTG_List:$instrShape);
  let builders = [AttrBuilder<(ins "unsigned":$version, "::llvm::ArrayRef<unsigned>":$warpsPerCTA,
      "::llvm::ArrayRef<unsigned>":$instrShape, "bool":$isTransposed), [{
    return $_get($_ctxt, version, isTransposed, warpsPerCTA, ::llvm::ArrayRef<unsigned>(),
                 ::llvm::SmallVector<unsigned>(warpsPerCTA.size(), 1), instrShape);
  }]>];
}

def TTG_DotOperandEncoding : TTG_Distributed<"DotOperand", "dot_op"> {
  let summary = "operand opIdx (0: A, 1: B) of a matrix instruction whose accumulators have the layout `parent`";
  let description = [{
    A lane holds kWidth consecutive elements along k; what follows is the parent's: for nvidia_mma those of 8 rows on (A
    only), then those 4 * kWidth further along k; for amd_mfma and amd_wmma those kWidth times the lanes along k further.
    kWidth may be a multiple of what an instruction takes of a lane: the order along k is free as long as A and B have the
    same. Warps side by side along the other operand's dimension hold copies.
  }];
  let parameters = (ins "unsigned":$opIdx, "::tessera::ttg::MatrixEncoding":$parent, "unsigned":$kWidth);
  let extraClassDeclaration = [{
    /// The dimension summed over.
    unsigned getKDim() const { return getRank() - (getOpIdx() == 0 ? 1 : 2); }
  }];
}

def TTG_SwizzledSharedEncoding : TTG_Shared<"SwizzledShared", "swizzled_shared", ["transpose"]> {
  let summary = "row-major by `order`, groups of `vec` elements of a row permuted by xor with the row's phase";
  let description = [{
    Element (r, c), c along order[0], is at r * columns + ((c / vec) ^ ((r / perPhase) % maxPhase)) * vec + c % vec.
  }];
  let parameters = (ins "unsigned":$vec, "unsigned":$perPhase, "unsigned":$maxPhase, TTG_List:$order, TTG_Bases:$cgaLayout);
  let builders = [AttrBuilder<(ins "unsigned":$vec, "unsigned":$perPhase, "unsigned":$maxPhase,
      "::llvm::ArrayRef<unsigned>":$order), [{
    return $_get($_ctxt, vec, perPhase, maxPhase, order, ::llvm::ArrayRef<unsigned>());
  }]>];
}

def TTG_AmdRotatingSharedEncoding : TTG_Shared<"AmdRotatingShared", "amd_rotating_shared", ["transpose"]> {
  let summary = "swizzled_shared whose phases rotate: rows whose phases would be equal again get others";
  let description = [{
    As swizzled_shared, with the phase p ^ (p / maxPhase), p = r / perPhase, in place of p, taken modulo maxPhase. Lanes
    that write units of neighbouring rows and of rows maxPhase * perPhase apart then both find free banks.
  }];
  let parameters = (ins "unsigned":$vec, "unsigned":$perPhase, "unsigned":$maxPhase, TTG_List:$order, TTG_Bases:$cgaLayout);
  let builders = [AttrBuilder<(ins "unsigned":$vec, "unsigned":$perPhase, "unsigned":$maxPhase,
      "::llvm::ArrayRef<unsigned>":$order), [{
    return $_get($_ctxt, vec, perPhase, maxPhase, order, ::llvm::ArrayRef<unsigned>());
  }]>];
}

def TTG_PaddedSharedEncoding : TTG_Shared<"PaddedShared", "padded_shared"> {
  let summary = "a linear layout with `paddings[k]` elements left free after every `intervals[k]` elements";
  let description = [{
    The linear part maps an offset i to an element; the element is stored at i + sum_k (i / intervals[k]) * paddings[k].
    Either `order` and `shape` (row-major by order) or the basis vectors `offset` and `block` give the linear part.
  }];
  let parameters = (ins TTG_List:$intervals, TTG_List:$paddings, "unsigned":$rank, TTG_Bases:$offsets, TTG_Bases:$blocks);
  let builders = [AttrBuilder<(ins "::llvm::ArrayRef<unsigned>":$intervals, "::llvm::ArrayRef<unsigned>":$paddings,
      "::llvm::ArrayRef<unsigned>":$order, "::llvm::ArrayRef<int64_t>":$shape)>];
  let extraClassDeclaration = [{
    /// Where the element at linear offset `i` is stored.
    uint64_t paddedOffset(uint64_t i) const;
  }];
}

def TTG_NvmmaSharedEncoding : TTG_Shared<"NvmmaShared", "nvmma_shared", ["transpose"]> {
  let summary = "what wgmma and the tensor memory accelerator read: blocks as wide as the swizzle, one below the other";
  let description = [{
    Rows run along dimension 1, or dimension 0 if transposed. A block of swizzlingByteWidth bytes of every row comes first,
    then the next block. Within a block 16-byte units are permuted as the hardware does: with W = swizzlingByteWidth, unit
    u of row r is at u ^ ((r * W / 128) % (W / 16)). Without swizzle (0) rows are whole.
  }];
  let parameters = (ins "unsigned":$swizzlingByteWidth, "bool":$transposed, "unsigned":$elementBitWidth,
                    TTG_Bases:$cgaLayout);
  let builders = [
    AttrBuilder<(ins "unsigned":$swizzlingByteWidth, "bool":$transposed, "unsigned":$elementBitWidth), [{
      return $_get($_ctxt, swizzlingByteWidth, transposed, elementBitWidth, ::llvm::ArrayRef<unsigned>());
    }]>,
    // The widest swizzle that fits `shape`, with dimension order[0] contiguous.
    AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::llvm::ArrayRef<unsigned>":$order,
        "unsigned":$elementBitWidth)>];
  let extraClassDeclaration = [{
    /// Where a buffer must start for the hardware's permutation, which is one of address bits, to be that of the layout.
    unsigned getAlignment() const { return std::max(getSwizzlingByteWidth(), 16u) * 8; }
    /// The dimension along which rows run.
    unsigned getContiguousDim() const { return getTransposed() ? 0 : 1; }
  }];
}

def TTG_SharedMemorySpaceAttr : TTG_Attr<"SharedMemorySpace", "shared_memory"> {
  let summary = "memory of one program, shared by its warps";
}

// What a barrier orders.
def TTG_AddrSpaceAttr : I32BitEnumAttr<"AddrSpace", "memory a barrier orders", [
    I32BitEnumAttrCaseNone<"None", "none">, I32BitEnumAttrCaseBit<"Local", 0, "local">,
    I32BitEnumAttrCaseBit<"GlobalRead", 1, "global_read">, I32BitEnumAttrCaseBit<"GlobalWrite", 2, "global_write">]> {
  let cppNamespace = "::tessera::ttg";
  let separator = "|";
}

#endif
