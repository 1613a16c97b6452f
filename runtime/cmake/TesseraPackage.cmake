# What leaves the build folder: `cmake --install` (package `tessera` for find_package) and the target `bundle`.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)

# ---- the package: one library and the public headers, none of which sees MLIR or LLVM -----------------------------------
set_target_properties(tessera PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS tessera tessera_launch EXPORT tesseraTargets)
install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION ${package_dir})
install(DIRECTORY dsl/include/tessera runtime/include/tessera DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ir/include/tessera/ir/ir_module.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tessera/ir)
install(FILES codegen/include/tessera/codegen/target.h codegen/include/tessera/codegen/compile.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tessera/codegen)
configure_package_config_file(runtime/cmake/tesseraConfig.cmake.in tesseraConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tesseraConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES runtime/cmake/TesseraKernels.cmake DESTINATION ${package_dir})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tesseraConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/tesseraConfigVersion.cmake
        DESTINATION ${package_dir})
file(RELATIVE_PATH from_tools /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
set(tools tessera-opt tessera-translate tessera-layout tessera-cache)
set_target_properties(${tools} PROPERTIES INSTALL_RPATH "$ORIGIN/${from_tools}" INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS ${tools} RUNTIME OPTIONAL) # a build of the library alone installs too
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# ---- the bundle: a tree that runs from any folder of any machine with glibc >= 2.36, libstdc++, libz and libzstd ----------
# Programs say that they belong in it by appending themselves to the global property TESSERA_BUNDLE; build RPATHs are
# $ORIGIN/../lib already, so copies are enough.
get_property(bundled GLOBAL PROPERTY TESSERA_BUNDLE)
if(bundled)
  set(tree ${CMAKE_BINARY_DIR}/tessera-bundle)
  set(programs)
  foreach(program ${bundled})
    list(APPEND programs $<TARGET_FILE:${program}>)
  endforeach()
  add_custom_target(bundle
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${tree}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${tree}/bin ${tree}/lib
    COMMAND ${CMAKE_COMMAND} -E copy ${programs} ${tree}/bin
    COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:tessera> ${tree}/lib/$<TARGET_SONAME_FILE_NAME:tessera>
    COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:tessera_launch> ${tree}/lib/$<TARGET_SONAME_FILE_NAME:tessera_launch>
    COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/tests/e2e/run_all.sh ${CMAKE_SOURCE_DIR}/tests/bench/compare.py ${CMAKE_SOURCE_DIR}/tests/bench/contest.py ${tree}
    COMMAND sh -c "strip '${tree}'/bin/* '${tree}'/lib/*"
    COMMAND tar -C ${CMAKE_BINARY_DIR} "--use-compress-program=xz -T0" -cf tessera-bundle.tar.xz tessera-bundle
    COMMAND sh -c "ls -lh tessera-bundle.tar.xz"
    DEPENDS tessera tessera_launch ${bundled} WORKING_DIRECTORY ${CMAKE_BINARY_DIR} VERBATIM
    COMMENT "Packing the relocatable tree into ${CMAKE_BINARY_DIR}/tessera-bundle.tar.xz")
endif()
