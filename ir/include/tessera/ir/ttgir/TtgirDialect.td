#ifndef TESSERA_TTGIR_DIALECT
#define TESSERA_TTGIR_DIALECT

include "mlir/IR/DialectBase.td"

def TTG_Dialect : Dialect {
  let name = "ttg";
  let cppNamespace = "::tessera::ttg";
  let summary = "Layouts of tiles over a program's lanes and shared memory, with the names of Triton 3.6's dialect";
  let description = [{
    An encoding on a tensor type says which register of which lane of which warp holds each element. Encodings are names
    for linear layouts (LinearLayout.h): two encodings are equal in meaning iff their linear layouts are.
  }];
  let dependentDialects = ["::tessera::tt::TTDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
}

#endif
