#ifndef TESSERA_TTIR_DIALECT
#define TESSERA_TTIR_DIALECT

include "mlir/IR/DialectBase.td"

def TT_Dialect : Dialect {
  let name = "tt";
  let cppNamespace = "::tessera::tt";
  let summary = "Tile programs, with the names and textual form of Triton 3.6's dialect";
  let description = [{
    One program works on tiles: ranked tensors whose dimensions are powers of two. Element-wise arithmetic is arith and
    math, control flow is scf; this dialect has what those lack: pointers and memory access, tile shapes, reductions,
    the program's place in the grid, and functions.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
  let hasConstantMaterializer = 1;
  let useDefaultTypePrinterParser = 1;
}

#endif
