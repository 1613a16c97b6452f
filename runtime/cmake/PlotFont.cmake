# The letters of PNG plots: DejaVu Sans, embedded whole (its licence and notices are in it), so that a user's machine needs
# no fonts.
find_file(TESSERA_PLOT_FONT DejaVuSans.ttf PATHS /usr/share/fonts/truetype/dejavu /usr/share/fonts/dejavu /usr/share/fonts/TTF REQUIRED)
set(assembly ${CMAKE_CURRENT_BINARY_DIR}/plot_font.S)
file(CONFIGURE OUTPUT ${assembly} CONTENT [[
  .section .rodata
  .balign 16
  .globl tessera_plot_font
  .hidden tessera_plot_font
tessera_plot_font:
  .incbin "@TESSERA_PLOT_FONT@"
  .section .note.GNU-stack,"",@progbits
]] @ONLY)
set_source_files_properties(${assembly} PROPERTIES LANGUAGE ASM OBJECT_DEPENDS ${TESSERA_PLOT_FONT})
target_sources(tessera_runtime PRIVATE ${assembly})
