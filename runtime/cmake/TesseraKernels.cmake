# tessera_add_kernels(NAME SOURCES export.cpp… TARGETS cuda:sm_90a hip:gfx942 cpu…)
#
# Builds the sources, which list kernels with TESSERA_EXPORT_KERNELS, into a program, runs it, and makes of its output the
# static library NAME with the header NAME.h. What links NAME needs libtessera-launch.so, but neither libtessera.so nor LLVM.
function(tessera_add_kernels name)
  cmake_parse_arguments(arg "" "" "SOURCES;TARGETS;ENVIRONMENT" ${ARGN})
  if(NOT arg_SOURCES OR NOT arg_TARGETS)
    message(FATAL_ERROR "tessera_add_kernels(${name}): name SOURCES and TARGETS, such as TARGETS cuda:sm_90a cpu")
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name}.dir)
  add_executable(${name}_export ${arg_SOURCES})
  target_link_libraries(${name}_export PRIVATE tessera::tessera)
  set(targets ${arg_TARGETS})
  list(TRANSFORM targets PREPEND "--target=")
  set(archive ${folder}/${CMAKE_STATIC_LIBRARY_PREFIX}${name}_cpu${CMAKE_STATIC_LIBRARY_SUFFIX})
  add_custom_command(OUTPUT ${folder}/${name}.h ${folder}/${name}.c ${archive}
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${folder}
    COMMAND ${CMAKE_COMMAND} -E env TESSERA_CACHE=off ${arg_ENVIRONMENT} $<TARGET_FILE:${name}_export> --name=${name} --out=${folder} ${targets}
    COMMAND ${CMAKE_AR} rcs ${archive} @${folder}/${name}.objects
    DEPENDS ${name}_export $<TARGET_FILE:tessera::tessera> VERBATIM COMMENT "Compiling the kernels of ${name} for ${arg_TARGETS}")
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT C IN_LIST languages)
    set_source_files_properties(${folder}/${name}.c PROPERTIES LANGUAGE CXX)
  endif()
  add_library(${name} STATIC ${folder}/${name}.c ${folder}/${name}.h)
  add_custom_target(${name}_files DEPENDS ${archive})
  add_dependencies(${name} ${name}_files)
  target_include_directories(${name} PUBLIC ${folder})
  target_link_libraries(${name} PUBLIC tessera::launch ${archive})
  if("cpu" IN_LIST arg_TARGETS) # vector math, where the C library has it
    find_library(TESSERA_LIBMVEC mvec)
    target_link_libraries(${name} PUBLIC $<$<BOOL:${TESSERA_LIBMVEC}>:mvec> m)
  endif()
endfunction()
