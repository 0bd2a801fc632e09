include(CMakePackageConfigHelpers)

install(TARGETS td EXPORT tdTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/td/td.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/td)
install(EXPORT tdTargets NAMESPACE td:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/td)
if(TD_BUILD_CLI)
  install(TARGETS td_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(cmake/tdConfig.cmake.in ${PROJECT_BINARY_DIR}/tdConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/td)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tdConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tdConfig.cmake ${PROJECT_BINARY_DIR}/tdConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/td)

# td.pc finds the prefix from its own place, so that an installed tree can be moved. A folder that was given as an
# absolute path stays where it is.
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE td_pc_folder)
cmake_path(APPEND td_pc_folder pkgconfig)
file(RELATIVE_PATH td_pc_to_prefix ${td_pc_folder} ${CMAKE_INSTALL_PREFIX})
foreach(folder LIBDIR INCLUDEDIR)
  set(td_pc_${folder} "\${prefix}")
  cmake_path(APPEND td_pc_${folder} "${CMAKE_INSTALL_${folder}}")
endforeach()
configure_file(cmake/td.pc.in ${PROJECT_BINARY_DIR}/td.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/td.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
