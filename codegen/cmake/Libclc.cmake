# The functions that the targets' math calls, cut out of libclc's bitcode at build time and embedded in the library: a user's
# machine needs neither libclc nor a vendor's toolkit.
find_program(TESSERA_LLVM_EXTRACT NAMES llvm-extract-22 llvm-extract HINTS ${LLVM_TOOLS_BINARY_DIR} REQUIRED)

# Embeds them as tessera_libclc_<name> … tessera_libclc_<name>_end, from the bitcode `file`.
function(tessera_embed_libclc name file)
  string(TOUPPER TESSERA_LIBCLC_${name} source)
  find_file(${source} ${file} PATHS /usr/lib/clc /usr/share/clc REQUIRED)
  set(functions)
  foreach(function exp exp2 log log2 log10 sin cos tan tanh erf)
    string(LENGTH ${function} length)
    list(APPEND functions --func=_Z${length}${function}f --func=_Z${length}${function}d)
  endforeach()
  list(APPEND functions --func=_Z3powff --func=_Z3powdd --func=_Z4fmoddd)

  set(bitcode ${CMAKE_CURRENT_BINARY_DIR}/libclc_${name}.bc)
  add_custom_command(OUTPUT ${bitcode}
    COMMAND ${TESSERA_LLVM_EXTRACT} --recursive ${functions} "--rglob=.*(_TBL|_TBL_|_EP_|_HEAD|_TAIL).*" ${${source}} -o ${bitcode}
    DEPENDS ${${source}} VERBATIM)

  set(assembly ${CMAKE_CURRENT_BINARY_DIR}/libclc_${name}.S)
  file(CONFIGURE OUTPUT ${assembly} CONTENT [[
  .section .rodata
  .balign 16
  .globl tessera_libclc_@name@
  .hidden tessera_libclc_@name@
tessera_libclc_@name@:
  .incbin "@bitcode@"
  .globl tessera_libclc_@name@_end
  .hidden tessera_libclc_@name@_end
tessera_libclc_@name@_end:
  .byte 0
  .section .note.GNU-stack,"",@progbits
]] @ONLY)
  set_source_files_properties(${assembly} PROPERTIES LANGUAGE ASM OBJECT_DEPENDS ${bitcode})
  target_sources(tessera_codegen PRIVATE ${assembly})
endfunction()

tessera_embed_libclc(nvptx nvptx64--.bc)
tessera_embed_libclc(amdgcn amdgcn-amd-amdhsa.bc)
