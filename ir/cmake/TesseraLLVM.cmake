# tessera::llvm: MLIR and LLVM, shared (development: links fast) or static (released library), and the flags their headers
# need. Plain interface libraries instead of LLVM's own macros: those force -fno-exceptions and link a second copy.
list(APPEND CMAKE_PREFIX_PATH /usr/lib/llvm-22)
find_package(MLIR 22.1 REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

add_library(tessera_llvm INTERFACE)
add_library(tessera::llvm ALIAS tessera_llvm)
target_include_directories(tessera_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
# Not a system directory: it must come before the system ones.
target_include_directories(tessera_llvm INTERFACE $<BUILD_INTERFACE:${CMAKE_CURRENT_LIST_DIR}/gcc>)
target_compile_definitions(tessera_llvm INTERFACE ${LLVM_DEFINITIONS_LIST})
if(NOT TESSERA_STATIC_LLVM)
  target_link_libraries(tessera_llvm INTERFACE MLIR LLVM)
else()
  # What the pipeline uses of MLIR, and of LLVM for the targets it emits. Debian's static MLIR libraries name the shared LLVM
  # in their link interface; it is struck out of every library reached, or two copies of LLVM would end up in one process.
  set(mlir_roots MLIRIR MLIRParser MLIRPass MLIRTransforms MLIRRewrite MLIRAnalysis MLIRSupport MLIRArithDialect MLIRArithUtils
                 MLIRMathDialect MLIRSCFDialect MLIRSCFTransforms MLIRSCFUtils MLIRControlFlowDialect MLIRUBDialect MLIRFuncDialect
                 MLIRInferTypeOpInterface MLIRLoopLikeInterface MLIROptLib)
  set(todo ${mlir_roots})
  set(reached)
  while(todo)
    list(POP_FRONT todo lib)
    if(NOT TARGET ${lib} OR lib IN_LIST reached)
      continue()
    endif()
    list(APPEND reached ${lib})
    get_target_property(deps ${lib} INTERFACE_LINK_LIBRARIES)
    if(NOT deps) # a library with none gives deps-NOTFOUND
      set(deps)
    endif()
    list(REMOVE_ITEM deps LLVM MLIR)
    set_target_properties(${lib} PROPERTIES INTERFACE_LINK_LIBRARIES "${deps}")
    list(FILTER deps INCLUDE REGEX "^MLIR")
    list(APPEND todo ${deps})
  endwhile()
  llvm_map_components_to_libnames(llvm_libraries
    core support irreader linker bitreader bitwriter passes target targetparser analysis transformutils ipo scalaropts vectorize
    orcjit executionengine jitlink orctargetprocess object mc asmparser
    option debuginfodwarf binaryformat demangle # what lld needs
    nvptxcodegen nvptxdesc nvptxinfo amdgpucodegen amdgpudesc amdgpuinfo amdgpuasmparser amdgpudisassembler x86codegen x86desc x86info x86asmparser x86disassembler)
  target_link_libraries(tessera_llvm INTERFACE ${mlir_roots} ${llvm_libraries})
endif()

# lld as a library, always static: it makes the code objects of AMD GPUs.
find_library(TESSERA_LLD_ELF lldELF HINTS ${LLVM_LIBRARY_DIR} REQUIRED)
find_library(TESSERA_LLD_COMMON lldCommon HINTS ${LLVM_LIBRARY_DIR} REQUIRED)
add_library(tessera_lld INTERFACE)
add_library(tessera::lld ALIAS tessera_lld)
target_link_libraries(tessera_lld INTERFACE ${TESSERA_LLD_ELF} ${TESSERA_LLD_COMMON} tessera::llvm z zstd)

find_program(TESSERA_LLD NAMES ld.lld-22 ld.lld HINTS ${LLVM_TOOLS_BINARY_DIR})
if(TESSERA_LLD)
  add_link_options(-B${CMAKE_BINARY_DIR}/linker -fuse-ld=lld)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/linker)
  file(CREATE_LINK ${TESSERA_LLD} ${CMAKE_BINARY_DIR}/linker/ld.lld SYMBOLIC)
endif()
