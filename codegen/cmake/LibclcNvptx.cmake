# The functions NvidiaMath.cpp calls, cut out of libclc's bitcode at build time and embedded in the library: a user's
# machine needs neither libclc nor a CUDA toolkit.
find_file(TESSERA_LIBCLC_NVPTX nvptx64--.bc PATHS /usr/lib/clc /usr/share/clc REQUIRED)
find_program(TESSERA_LLVM_EXTRACT NAMES llvm-extract-22 llvm-extract HINTS ${LLVM_TOOLS_BINARY_DIR} REQUIRED)

set(functions)
foreach(name exp exp2 log log2 log10 sin cos tan tanh erf)
  string(LENGTH ${name} length)
  list(APPEND functions --func=_Z${length}${name}f --func=_Z${length}${name}d)
endforeach()
list(APPEND functions --func=_Z3powff --func=_Z3powdd)

set(bitcode ${CMAKE_CURRENT_BINARY_DIR}/libclc_nvptx.bc)
add_custom_command(OUTPUT ${bitcode}
  COMMAND ${TESSERA_LLVM_EXTRACT} --recursive ${functions} "--rglob=.*(_TBL|_TBL_|_EP_|_HEAD|_TAIL).*" ${TESSERA_LIBCLC_NVPTX} -o ${bitcode}
  DEPENDS ${TESSERA_LIBCLC_NVPTX} VERBATIM)

set(assembly ${CMAKE_CURRENT_BINARY_DIR}/libclc_nvptx.S)
file(CONFIGURE OUTPUT ${assembly} CONTENT [[
  .section .rodata
  .balign 16
  .globl tessera_libclc_nvptx
  .hidden tessera_libclc_nvptx
tessera_libclc_nvptx:
  .incbin "@bitcode@"
  .globl tessera_libclc_nvptx_end
  .hidden tessera_libclc_nvptx_end
tessera_libclc_nvptx_end:
  .byte 0
  .section .note.GNU-stack,"",@progbits
]] @ONLY)
set_source_files_properties(${assembly} PROPERTIES LANGUAGE ASM OBJECT_DEPENDS ${bitcode})
target_sources(tessera_codegen PRIVATE ${assembly})
