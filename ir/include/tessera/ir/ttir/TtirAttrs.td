#ifndef TESSERA_TTIR_ATTRS
#define TESSERA_TTIR_ATTRS

include "mlir/IR/EnumAttr.td"

class TT_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tessera::tt";
}

// Numbers are Triton's: they appear in the generic textual form.
def TT_CacheModifierAttr : TT_Enum<"CacheModifier", "which caches an access uses", [
  I32EnumAttrCase<"NONE", 1, "none">, I32EnumAttrCase<"CA", 2, "ca">, I32EnumAttrCase<"CG", 3, "cg">,
  I32EnumAttrCase<"WB", 4, "wb">, I32EnumAttrCase<"CS", 5, "cs">, I32EnumAttrCase<"WT", 6, "wt">,
  I32EnumAttrCase<"CV", 7, "cv">]>;
def TT_EvictionPolicyAttr : TT_Enum<"EvictionPolicy", "how soon a cache line may leave the cache", [
  I32EnumAttrCase<"NORMAL", 1, "evict_normal">, I32EnumAttrCase<"EVICT_FIRST", 2, "evict_first">,
  I32EnumAttrCase<"EVICT_LAST", 3, "evict_last">]>;
def TT_RoundingModeAttr : TT_Enum<"RoundingMode", "rounding of a float conversion", [
  I32EnumAttrCase<"RTZ", 0, "rtz">, I32EnumAttrCase<"RTNE", 1, "rtne">]>;
def TT_InputPrecisionAttr : TT_Enum<"InputPrecision", "how exactly f32 operands of a matrix product are taken", [
  I32EnumAttrCase<"TF32", 0, "tf32">, I32EnumAttrCase<"TF32x3", 1, "tf32x3">, I32EnumAttrCase<"IEEE", 2, "ieee">]>;
def TT_PropagateNanAttr : TT_Enum<"PropagateNan", "whether a NaN operand gives NaN", [
  I32EnumAttrCase<"NONE", 0, "none">, I32EnumAttrCase<"ALL", 65535, "all">]>;
def TT_ProgramDimAttr : TT_Enum<"ProgramIDDim", "axis of the grid", [
  I32EnumAttrCase<"X", 0, "x">, I32EnumAttrCase<"Y", 1, "y">, I32EnumAttrCase<"Z", 2, "z">]>;

#endif
