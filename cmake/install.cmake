include(CMakePackageConfigHelpers)

install(TARGETS td td_static EXPORT tdTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TD_CUDA)
  # A component of its own: who has no GPU can do without its 3 MB and without CUDA's libraries.
  install(TARGETS td_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cuda NAMELINK_SKIP)
endif()
install(FILES include/td/td.h include/td/td.hpp include/td/td_mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/td)
install(EXPORT tdTargets NAMESPACE td:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/td)
if(TD_BUILD_CLI)
  install(TARGETS td_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  configure_file(cli/td.1.in ${PROJECT_BINARY_DIR}/td.1 @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/td.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES cli/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME td)
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
configure_file(cmake/td-static.pc.in ${PROJECT_BINARY_DIR}/td-static.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/td.pc ${PROJECT_BINARY_DIR}/td-static.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE README.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# cpack -G DEB: package td, with dependencies on what the library and the command were linked with, and package td-cuda
# where the backend for GPUs was built.
set(CPACK_PACKAGE_NAME td)
set(CPACK_PACKAGE_VENDOR "the td authors")
set(CPACK_PACKAGE_CONTACT "the td authors <td@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION "CP decomposition of sparse and dense tensors by alternating least squares: a C library, \
its header, a Fortran module as source, and the command td.")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION math)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL Unspecified)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME td)
if(TD_MPI AND TD_BUILD_CLI)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
  set(CPACK_COMPONENT_MPI_DESCRIPTION "The plug-in by which mpirun makes one run of several processes of the command td.")
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME td-mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "td (= ${PROJECT_VERSION})")
endif()
if(TD_CUDA)
  # CUDA's libraries are in NVIDIA's packages, which not everybody who has them has them from: recommended, not needed.
  # All else that the backend links, td depends on.
  set(td_cuda_release ${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR})
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  set(CPACK_COMPONENT_CUDA_DESCRIPTION "The backend of td for NVIDIA GPUs, which td loads when it is asked for one. It \
needs a driver and CUDA's runtime, cuBLAS and cuSOLVER.")
  set(CPACK_DEBIAN_CUDA_PACKAGE_NAME td-cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "td (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_CUDA_PACKAGE_RECOMMENDS "cuda-cudart-${td_cuda_release}, libcublas-${td_cuda_release}, libcusolver-${td_cuda_release}")
endif()
# The loader is told of the library.
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/triggers)
include(CPack)
